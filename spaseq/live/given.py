"""Objects that are taken as sources: asynchronous iterators, queues, iterables."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from spaseq.core.errors import OptionError

_HINT: Final = (
    "give an asynchronous iterator of batches (lists of events), an asyncio.Queue, or an iterable; [frame] is a source "
    "of one batch"
)


def batches_of(given: Any) -> AsyncIterator[Any]:
    """The batches of a source. Raises `OptionError` for an object that is none.

    A queue ends with None, or by `shutdown()` (Python 3.13). An iterable is read in the loop's thread, and other tasks
    run between two batches.
    """
    if hasattr(given, "__aiter__"):
        return aiter(given)
    if isinstance(given, asyncio.Queue):
        return _items_of(given)
    frame = isinstance(given, str | bytes | os.PathLike | Mapping) or hasattr(given, "__arrow_c_stream__")
    if frame or hasattr(given, "__dataframe__") or not isinstance(given, Iterable):
        raise OptionError(f"a {type(given).__name__} is no source of batches", _HINT)
    return _given_out(given)


async def _items_of(queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    shut_down = getattr(asyncio, "QueueShutDown", ())
    while True:
        try:
            item = await queue.get()
        except shut_down:
            return
        if item is None:
            return
        yield item


async def _given_out(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
        await asyncio.sleep(0)
