"""Merges batches of several streams by time into chunks of instants, without an object per event.

A batch is solved once, before it comes here. A chunk has the events of all streams up to a time that every stream has
reached, so that no earlier event can still come. Events of equal time keep the order of the FROM clause, then that of
the source.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.integers import different, in_order
from spaseq.rdf import GraphBatch, GraphEvent, Instant

if TYPE_CHECKING:
    from spaseq.gpm.columnar.evaluate import Solutions, Unsolved

Solved = tuple[GraphBatch, Mapping[str, "Solutions | Unsolved"]]
"""A batch, and the values of its GPMs."""
Part = tuple[GraphBatch, int, int, Mapping[str, "Solutions | Unsolved"]]
"""Events of a batch, from an index up to another, and the values of its GPMs at all of its events."""
SolvePushed = Callable[[str, Sequence[GraphEvent]], Mapping[str, "Solutions"]]


class Holder(Protocol):
    """A batch, or a list, that gives events by index."""

    def event(self, index: int) -> GraphEvent: ...


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Events `low` to `high` of a batch. `instants`: the index in the chunk of each event's instant, int64
    (high - low,), ascending.

    `solutions`: the value of each GPM of its stream at each event of the whole batch.
    """

    batch: Holder
    low: int
    high: int
    instants: np.ndarray
    solutions: Mapping[str, Solutions | Unsolved]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive instants. `times`: int64 (n,), ns; `first`: the position of the first of them in the streamset.

    `pieces` are in the order of the FROM clause, then of the source.
    """

    first: int
    times: np.ndarray
    pieces: tuple[Piece, ...]

    def __len__(self) -> int:
        return len(self.times)

    def events(self, instant: int) -> tuple[GraphEvent, ...]:
        """The events of an instant of the chunk, as objects."""
        found: list[GraphEvent] = []
        for piece in self.pieces:
            begin, end = np.searchsorted(piece.instants, [instant, instant + 1])
            found += [piece.batch.event(piece.low + i) for i in range(int(begin), int(end))]
        return tuple(found)


class _Stream:
    """The events of one stream that have been read and not yet given to a chunk."""

    def __init__(self, batches: Iterator[Solved]) -> None:
        self._batches = batches
        self._held: deque[tuple[GraphBatch, int, Mapping[str, Solutions | Unsolved]]] = deque()
        self._failure: EventError | None = None
        self.ended = False

    def read(self) -> None:
        """Reads one more batch, if there is one. An `EventError` is raised by the next call, so that the events before
        it are evaluated first."""
        if self._failure is not None:
            raise self._failure
        try:
            found = next(self._batches, None)
        except EventError as error:
            self._failure = error
            return
        if found is None:
            self.ended = True
        elif len(found[0]):
            self._held.append((found[0], 0, found[1]))

    @property
    def latest(self) -> int | None:
        """The time of the last event that has been read and not taken; None if there is none."""
        return int(self._held[-1][0].times[-1]) if self._held else None

    def take(self, before: int | None) -> list[Part]:
        """Takes the events before a time (None: all)."""
        parts: list[Part] = []
        while self._held:
            batch, low, solutions = self._held[0]
            high = len(batch) if before is None else int(np.searchsorted(batch.times, before, "left"))
            if high > low:
                parts.append((batch, low, high, solutions))
            if high < len(batch):
                self._held[0] = (batch, max(low, high), solutions)
                break
            self._held.popleft()
        return parts


def solve_each(
    batches: Iterator[GraphBatch], solve: Callable[[GraphBatch], Mapping[str, Solutions | Unsolved]]
) -> Iterator[Solved]:
    """The batches of a stream, each with the result of `solve` for it, computed on demand."""
    return ((batch, solve(batch)) for batch in batches)


def merge_batches(streams: Sequence[Iterator[Solved]], *, apart: bool) -> Iterator[Chunk]:
    """The instants of streams given in the order of the FROM clause, each in order of time.

    `apart`: each event is an instant of its own. Memory: the batches by which a stream is ahead of the slowest one. An
    `EventError` of a stream is raised once all instants before it have been yielded.
    """
    states = [_Stream(batches) for batches in streams]
    first = 0
    while True:
        for state in states:
            while state.latest is None and not state.ended:
                state.read()
        waiting = [(latest, state) for state in states if not state.ended and (latest := state.latest) is not None]
        until = min((latest for latest, _ in waiting), default=None)
        parts = [part for state in states for part in state.take(until)]
        if parts:
            chunk = chunk_of_parts(first, parts, apart)
            first += len(chunk)
            yield chunk
        elif until is None:
            return
        else:
            for latest, state in waiting:
                if latest == until:
                    state.read()


def chunk_of_parts(first: int, parts: Sequence[Part], apart: bool) -> Chunk:
    """The chunk of parts of batches, in the order of the FROM clause, then of the source; its first instant has the
    position `first`. `apart`: each event is an instant of its own."""
    every = np.concatenate([batch.times[low:high] for batch, low, high, _ in parts])
    if apart:
        order = in_order(every)
        times = every[order]
        places = np.empty(len(every), np.int64)
        places[order] = np.arange(len(every))
    else:
        times, places = different(every)
    ends = np.cumsum([high - low for _, low, high, _ in parts])
    pieces = (
        Piece(batch, low, high, places[end - (high - low) : end].astype(np.int64), solutions)
        for (batch, low, high, solutions), end in zip(parts, ends.tolist(), strict=True)
    )
    return Chunk(first, times, tuple(pieces))


def by_stream(instants: Sequence[Instant]) -> dict[str, tuple[list[GraphEvent], list[int]]]:
    """For each stream its events at some instants, and for each event the index of its instant, ascending."""
    found: dict[str, tuple[list[GraphEvent], list[int]]] = {}
    for place, instant in enumerate(instants):
        for event in instant.events:
            events, places = found.setdefault(event.stream, ([], []))
            events.append(event)
            places.append(place)
    return found


def places_of(instants: Sequence[Instant]) -> tuple[np.ndarray, np.ndarray]:
    """The positions and times of instants: int64 (n,) each."""
    positions = np.array([instant.position for instant in instants], np.int64)
    return positions, np.array([instant.time for instant in instants], np.int64)


def chunk_of(instants: Sequence[Instant], solve: SolvePushed) -> Chunk:
    """The chunk of consecutive instants whose events are objects already."""
    pieces = tuple(
        Piece(EventList(events), 0, len(events), np.array(places, np.int64), solve(stream, events))
        for stream, (events, places) in by_stream(instants).items()
    )
    return Chunk(instants[0].position, np.array([i.time for i in instants], np.int64), pieces)


class EventList(list[GraphEvent]):
    """Events that are objects already, as a `Holder`."""

    def event(self, index: int) -> GraphEvent:
        return self[index]
