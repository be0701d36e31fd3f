"""Several sources as one, in the order in which their batches come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from spaseq.core.errors import expect_type
from spaseq.live.delivery import Delivery
from spaseq.live.given import batches_of

_END: Final = object()


class Several:
    """The batches of several sources, as they come. A source that is ahead waits until its batch was taken.

    The events are in the order of arrival, so a lateness must cover the time by which one source may be behind
    another. That is the whole time of an outage if a state is gone on from, since each source has its own backlog. A
    position is a dict of theirs by name. It ends when all have ended, and with the first error of one.
    """

    def __init__(self, sources: Mapping[str, Any], by: Literal["stream", "type"] | None = "stream") -> None:
        """`sources` by name: of their stream, or with `by="type"` of the type of their events; None: neither, as
        in SPAseq, whose events name their streams."""
        expect_type("sources", sources, Mapping, "give sources by name: {'S': source}")
        self._sources = dict(sources)
        self._by = by
        self._positions: dict[str, Any] = {}
        self._reads: dict[str, asyncio.Task[Any]] = {}

    @property
    def idle(self) -> bool:
        """True if all are, and none has given a batch that was not taken."""
        waiting = any(read.done() for read in self._reads.values())
        return not waiting and all(getattr(source, "idle", True) for source in self._sources.values())

    async def seek(self, position: Any) -> None:
        """Each goes to its own position."""
        expect_type("the position of several sources", position, dict, "it is one of these sources")
        for name, own in position.items():
            await self._sources[name].seek(own)
        self._positions = dict(position)

    async def commit(self, position: Any) -> None:
        """Each that can hears of its own."""
        for name, own in position.items():
            if (commit := getattr(self._sources[name], "commit", None)) is not None:
                await commit(own)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        batches = {name: batches_of(source) for name, source in self._sources.items()}
        reads = self._reads
        try:
            while batches:
                for name in batches:
                    if name not in reads:
                        reads[name] = asyncio.create_task(_next_of(batches[name]))
                await asyncio.wait(reads.values(), return_when=asyncio.FIRST_COMPLETED)
                for name in [name for name in batches if reads[name].done()]:
                    item = reads.pop(name).result()
                    if item is _END:
                        del batches[name]
                    else:
                        yield self._delivery(name, item)
        finally:
            for read in reads.values():
                read.cancel()
            await asyncio.gather(*reads.values(), return_exceptions=True)
            reads.clear()
            for closed in (*batches.values(), *self._sources.values()):
                if (close := getattr(closed, "aclose", None)) is not None:
                    await close()

    def _delivery(self, name: str, item: Any) -> Delivery:
        delivery = item if isinstance(item, Delivery) else Delivery(item)
        if delivery.position is not None:
            self._positions[name] = delivery.position
        delivery = replace(delivery, position=dict(self._positions) or None)
        if self._by is None:
            return delivery
        return replace(delivery, stream=name) if self._by == "stream" else replace(delivery, type=name)


async def _next_of(batches: AsyncIterator[Any]) -> Any:
    try:
        return await anext(batches)
    except StopAsyncIteration:
        return _END
