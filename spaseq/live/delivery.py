"""The protocols of sources and sinks, and what a source delivers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Delivery:
    """Events, with the place of the source behind them.

    `events`: what a push of the session takes: in CEQL a dict, a list of dicts, a table or a frame; in SPAseq graph
    events, or graphs. `position`: all that the source needs to begin behind these events, as plain values: numbers,
    texts, tuples, dicts. None if it has no positions. `stream`, `type`: the words of the push, if the query reads
    several. `time`: of a graph that does not state its own, in SPAseq.
    """

    events: Any
    position: Any = None
    stream: str | None = None
    type: str | None = None
    time: Any = None


class Source(Protocol):
    """An asynchronous iterator of batches: events as a push takes them, or a `Delivery` of such.

    It may have these members too, which are looked up by name:

    * `async seek(position)`: begin behind the events of this position, one that a `Delivery` had. Called before the
      first batch is asked for.
    * `async commit(position)`: a saved state covers the events up to here, so nobody asks for them again. Called while
      the next batch may be waited for.
    * `idle`: a bool, False while it knows of events that it has not given out, or is not connected. Time does not go on
      by the clock then. Without it, a source that makes its caller wait is idle.
    * `async aclose()`: the evaluation has ended.

    A source that loses its server waits and tries again, or raises an error, which ends the evaluation.
    """

    def __aiter__(self) -> AsyncIterator[Any]: ...


class Sink(Protocol):
    """A place for the results of a program. A sink that *knows ids* drops a record whose id it already has."""

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Write a record; it is safe when this returns. Raises an error of the client if it is not."""

    async def aclose(self) -> None:
        """End the connection."""
