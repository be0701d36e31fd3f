"""The instants that a match to come may hold: their times, and their events if matches show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import Any, overload

import numpy as np

from spaseq.core.engine.recognition.past import Blocks
from spaseq.core.errors import OptionError
from spaseq.core.snapshot import array, expect
from spaseq.core.snapshot.checks import damage_error
from spaseq.rdf import GraphEvent, Term

_Events = tuple[GraphEvent, ...]
Made = Callable[[Sequence[int]], tuple[GraphEvent, ...]]
"""The events of a snapshot by their numbers."""


class Events(Sequence[GraphEvent]):
    """The events of some instants, like a tuple of them. They are made when they are first looked at. `teller` finds
    the steps and the way of a match that has them (`StepFinder`); None if no query is known for them.

    PERF: made with every match, events took 60% of a run over 30,000 instants with 8,271 matches of three or more.
    """

    __slots__ = ("_all", "_instants", "_parts", "teller")

    def __init__(self, parts: Sequence[tuple[_Block, int]], teller: Any = None) -> None:
        self._parts = parts
        self._all: _Events | None = None
        self._instants: tuple[_Events, ...] = ()
        self.teller = teller

    def _made(self) -> _Events:
        if self._all is None:
            self._instants = tuple(block.made(place) for block, place in self._parts)
            self._all = tuple(event for instant in self._instants for event in instant)
            self._parts = ()  # their source is released
        return self._all

    @property
    def instants(self) -> tuple[_Events, ...]:
        """The events by instant."""
        self._made()
        return self._instants

    @overload
    def __getitem__(self, index: int) -> GraphEvent: ...
    @overload
    def __getitem__(self, index: slice) -> _Events: ...
    def __getitem__(self, index: int | slice) -> GraphEvent | _Events:
        return self._made()[index]

    def __len__(self) -> int:
        return len(self._made())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._made() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._made())

    def __repr__(self) -> str:
        return repr(self._made())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self._made(),)


class _Block:
    """Consecutive instants: positions and times, int64 (n,), ascending; `events` makes those of the i-th."""

    __slots__ = ("_made", "events", "positions", "times")

    def __init__(self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], _Events] | None) -> None:
        self.positions = positions
        self.times = times
        self.events = events
        self._made: dict[int, _Events] = {}

    def __len__(self) -> int:
        return len(self.positions)

    def made(self, row: int) -> _Events:
        """The events of an instant."""
        if self.events is None:
            return ()
        made = self._made.get(row)
        if made is None:
            made = self._made[row] = self.events(row)
        return made


class History(Blocks[_Block]):
    """Instants by position. They are added in order, and forgotten from the front.

    `teller`: as of `Events`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._gone = 0  # instants of the first block that are forgotten
        self.teller: Any = None

    def add(self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], _Events] | None) -> None:
        """Instants behind all there are; `events(i)` gives the events of the i-th of these, None: they show none."""
        if len(positions):
            self.put(_Block(positions, times, events), int(positions[0]))

    def __len__(self) -> int:
        return super().__len__() - self._gone

    @property
    def first(self) -> int | None:
        """The position of the first instant that is held; None if none is."""
        return int(self.blocks[0].positions[self._gone]) if self.blocks else None

    def time(self, position: int) -> int:
        """The time of an instant."""
        block, row = self.place(position)
        return int(block.times[row])

    def held(self, positions: Sequence[int]) -> tuple[tuple[int, ...], Events]:
        """The times of instants, and their events."""
        parts = [self.place(position) for position in positions]
        return tuple(int(block.times[row]) for block, row in parts), Events(parts, self.teller)

    def capture(self, positions: np.ndarray) -> tuple[np.ndarray, Callable[[int, int], Sequence[GraphEvent]]]:
        """The times of instants that are held, int64, and what gives the events of those from one index up to another,
        also when they have been dropped since."""
        times, blocks, teller = self.times(positions), list(self.blocks), self.teller
        if all(block.events is None for block in blocks):
            return times, lambda first, last: ()
        behind, places = np.empty((2, len(positions)), np.int64)
        for number, own, rows in self.places(positions):
            behind[own], places[own] = number, rows

        def between(first: int, last: int) -> Events:
            pairs = zip(behind[first:last].tolist(), places[first:last].tolist(), strict=True)
            return Events([(blocks[number], row) for number, row in pairs], teller)

        return times, between

    def evict(self, first: int, of: Callable[[_Block], np.ndarray] = attrgetter("times")) -> None:
        """Drops the instants before the time `first`, or before that position if `of` gives positions."""
        blocks = self.blocks
        if not blocks or of(blocks[0])[self._gone] >= first:
            return
        count = 0
        while count < len(blocks) and of(blocks[count])[-1] < first:
            count += 1
        self.drop(count)
        self._gone = int(np.searchsorted(of(blocks[0]), first)) if blocks else 0

    def snapshot(self, pool: Pool) -> Any:
        """The instants, as plain values; their events are put into `pool`."""
        gone = [self._gone, *[0] * len(self.blocks)]
        return [
            (block.positions[low:], block.times[low:], [pool.put(block.made(row)) for row in range(low, len(block))])
            for block, low in zip(self.blocks, gone, strict=False)
        ]

    def restore(self, state: Any, events: Made) -> None:
        """The opposite of `snapshot`; `events` gives those of the pool."""
        self.drop(len(self.blocks))
        before = -1
        for positions, times, numbers in state:
            places, when = array(positions, "positions", low=before + 1), array(times, "times", rows=len(positions))
            expect(len(numbers) == len(places) > 0 and (np.diff(places) > 0).all(), "instants in order")
            before = int(places[-1])
            self.add(places, when, list(map(events, numbers)).__getitem__)


def events_in_order(
    parts: Iterable[tuple[Sequence[int], Sequence[int], Sequence[GraphEvent]]],
) -> tuple[GraphEvent, ...]:
    """The events of several matches, each once, by their positions. Of each match the positions, their times, and the
    events. Each event is a position, or no two positions have one time."""
    found: dict[int, tuple[int, GraphEvent]] = {}
    for positions, times, events in parts:
        of_time = dict(zip(times, positions, strict=True))
        places = positions if len(events) == len(positions) else [of_time[event.time] for event in events]
        for place, event in zip(places, events, strict=True):
            found.setdefault(id(event), (place, event))
    return tuple(event for _, event in sorted(found.values(), key=itemgetter(0)))


class Pool:
    """The events that a snapshot holds, each once: those of one instant may stand in many matches."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._events: list[GraphEvent] = []

    def put(self, events: Iterable[GraphEvent]) -> list[int]:
        """Their numbers."""
        found = []
        for event in events:
            number = self._numbers.setdefault(id(event), len(self._events))
            if number == len(self._events):
                self._events.append(event)  # and holds it, so that no other gets its id
            found.append(number)
        return found

    def snapshot(self) -> list[tuple[Any, ...]]:
        """The events by number, as plain values and terms."""
        return [(e.stream, e.time, e.triples, e.graph, e.source, e.record) for e in self._events]

    @staticmethod
    def restore(state: list[tuple[Any, ...]]) -> Made:
        """A function from the numbers of a snapshot's events to these."""
        for stream, time, triples, _, source, _ in state:
            expect(type(stream) is type(source) is str and type(time) is int, "a stream and a time for each event")
            expect(type(triples) is tuple and all(len(triple) == 3 for triple in triples), "triples of three")
            expect(all(isinstance(term, Term) for triple in triples for term in triple), "terms in triples")
        try:
            made = [GraphEvent(*event) for event in state]
        except OptionError:
            raise damage_error("expected events of a stream") from None

        def events(numbers: Sequence[int]) -> _Events:
            expect(min(numbers, default=0) >= 0, "events that are there")
            return tuple(map(made.__getitem__, numbers))

        return events
