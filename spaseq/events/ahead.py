"""Work ahead of who uses the results: an iterator run by a thread, a few items before they are asked for."""

from __future__ import annotations

import atexit
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

__all__ = ["ahead"]

T = TypeVar("T")
_DEPTH: Final = 2
_PATIENCE: Final = 0.05


def ahead(make: Callable[[], Iterator[T]], depth: int = _DEPTH) -> Iterator[T]:
    """What `make()` gives, in order; a thread calls it and keeps up to `depth` items waiting.

    What it raises is raised here, behind the items before it. When the caller stops early, the thread ends with the
    item it is at, and its iterator is closed.
    """
    waiting: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(depth)
    stop = threading.Event()

    def offer(item: T | None, error: BaseException | None) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                return waiting.put((item, error), timeout=_PATIENCE)

    def work() -> None:
        try:
            for item in make():
                offer(item, None)
                if stop.is_set():
                    return
        except BaseException as error:
            offer(None, error)
        else:
            offer(None, _End())

    thread = threading.Thread(target=work, daemon=True)
    _at_work[thread] = stop
    thread.start()
    try:
        while True:
            item, error = waiting.get()
            if isinstance(error, _End):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stop.set()
        thread.join()
        _at_work.pop(thread, None)


_at_work: Final[dict[threading.Thread, threading.Event]] = {}


@atexit.register
def _stop_all() -> None:
    """A thread that is in a library's code when the interpreter ends would abort the process: none is left then.

    An error may keep an iterator from being closed before.
    """
    for thread, stop in list(_at_work.items()):
        stop.set()
        thread.join()


class _End(Exception):
    """There is no more."""
