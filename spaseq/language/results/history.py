"""The instants that a match to come may hold: their times, and their events if matches show them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, overload

import numpy as np

from spaseq.core.errors import OptionError
from spaseq.core.integers import apart
from spaseq.core.snapshot import array, damaged, expect
from spaseq.rdf import GraphEvent, Term

__all__ = ["Events", "History", "Made", "Pool"]

_Events = tuple[GraphEvent, ...]
Made = Callable[[Sequence[int]], tuple[GraphEvent, ...]]
"""The events of a snapshot by their numbers."""


class Teller(Protocol):
    """Says something of a match and the events of its instants."""

    def steps(self, match: Any, instants: Sequence[_Events]) -> Any: ...

    def way(self, match: Any, instants: Sequence[_Events]) -> Any: ...


class Events(Sequence[GraphEvent]):
    """The events of some instants, like a tuple of them. They are made on first use.

    PERF: made with every match, events took 60% of a run over 30,000 instants with 8,271 matches of three or more.
    """

    __slots__ = ("_all", "_instants", "_parts", "_teller")

    def __init__(self, parts: Sequence[tuple[_Block, int]], teller: Teller | None = None) -> None:
        self._parts = parts
        self._teller = teller
        self._all: _Events | None = None
        self._instants: tuple[_Events, ...] = ()

    def _made(self) -> _Events:
        if self._all is None:
            self._instants = tuple(block.made(place) for block, place in self._parts)
            self._all = tuple(event for instant in self._instants for event in instant)
            self._parts = ()  # their source is released
        return self._all

    def steps(self, match: Any) -> Any:
        """The result of `History.teller` for a match that has these events; None if there is none."""
        self._made()
        return None if self._teller is None else self._teller.steps(match, self._instants)

    def way(self, match: Any) -> Any:
        """The same of its way."""
        self._made()
        return None if self._teller is None else self._teller.way(match, self._instants)

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
    """Consecutive instants: positions and times, int64 (n,), ascending; `events` makes those of the i-th that there
    were at first."""

    __slots__ = ("_dropped", "_events", "_made", "positions", "times")

    def __init__(self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], _Events] | None) -> None:
        self.positions = positions
        self.times = times
        self._events = events
        self._made: dict[int, _Events] = {}
        self._dropped = 0

    def drop(self, count: int) -> None:
        """Forgets the first `count` instants."""
        self.positions, self.times = self.positions[count:], self.times[count:]
        self._dropped += count
        self._made = {place: events for place, events in self._made.items() if place >= self._dropped}

    def of(self, position: int) -> tuple[int, int]:
        """The time of an instant, and its place for `made`. Raises `OptionError` for one that is not held: a forged
        snapshot may have matches of instants that it does not hold."""
        place = int(np.searchsorted(self.positions, position))
        if place == len(self.positions) or self.positions[place] != position:
            raise _not_held(position)
        return int(self.times[place]), place + self._dropped

    def places(self, positions: np.ndarray) -> np.ndarray:
        """The places for `made` of instants that are held: int64."""
        return np.searchsorted(self.positions, positions) + self._dropped

    @property
    def shows(self) -> bool:
        """True if it has events."""
        return self._events is not None

    def made(self, place: int) -> _Events:
        """The events of an instant, also when it has been dropped since."""
        if self._events is None:
            return ()
        made = self._made.get(place)
        if made is None:
            made = self._made[place] = self._events(place)
        return made


def _not_held(position: int) -> OptionError:
    return damaged(f"a match has the instant {position}, which it does not hold")


class History:
    """Instants by position. They are added in order, and forgotten from the front.

    `teller`: as `Events` ask it.
    """

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._firsts: list[int] = []
        self.teller: Teller | None = None

    def add(self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], _Events] | None) -> None:
        """Instants behind all there are; `events(i)` gives the events of the i-th of these, None: they show none."""
        if len(positions):
            self._blocks.append(_Block(positions, times, events))
            self._firsts.append(int(positions[0]))

    def __len__(self) -> int:
        return sum(len(block.positions) for block in self._blocks)

    def time(self, position: int) -> int:
        """The time of an instant."""
        return self._block(position).of(position)[0]

    def times(self, positions: np.ndarray) -> np.ndarray:
        """The times of instants that are held: int64."""
        if not self._blocks:
            raise _not_held(-1)
        behind = np.searchsorted(np.array(self._firsts), positions, "right") - 1
        found = np.empty(len(positions), np.int64)
        for number in apart(behind).tolist():
            block, own = self._blocks[number], behind == number
            places = np.searchsorted(block.positions, positions[own])
            if number < 0 or places.max(initial=0) == len(block.positions):
                raise _not_held(int(positions[own][0]))
            found[own] = block.times[places]
        return found

    def held(self, positions: Sequence[int]) -> tuple[tuple[int, ...], Events]:
        """The times of instants, and their events."""
        times, parts = [], []
        for position in positions:
            block = self._block(position)
            time, place = block.of(position)
            times.append(time)
            parts.append((block, place))
        return tuple(times), Events(parts, self.teller)

    def capture(self, positions: np.ndarray) -> tuple[np.ndarray, Callable[[int, int], Sequence[GraphEvent]]]:
        """The times of instants that are held, int64, and a function that gives the events of a range of them, even if
        they have been dropped since."""
        times, blocks, teller = self.times(positions), list(self._blocks), self.teller
        if not any(block.shows for block in blocks):
            return times, lambda first, last: ()
        behind = np.searchsorted(np.array(self._firsts), positions, "right") - 1
        places = np.empty(len(positions), np.int64)
        for number in apart(behind).tolist():
            own = behind == number
            places[own] = blocks[number].places(positions[own])

        def between(first: int, last: int) -> Events:
            pairs = zip(behind[first:last].tolist(), places[first:last].tolist(), strict=True)
            return Events([(blocks[number], place) for number, place in pairs], teller)

        return times, between

    def _block(self, position: int) -> _Block:
        behind = bisect_right(self._firsts, position)
        if not behind:
            raise _not_held(position)
        return self._blocks[behind - 1]

    def evict(self, first: int) -> None:
        """Drop the instants before the time `first`."""
        if not self._blocks or self._blocks[0].times[0] >= first:
            return
        count = 0
        while count < len(self._blocks) and self._blocks[count].times[-1] < first:
            count += 1
        if count:
            del self._blocks[:count], self._firsts[:count]
        if self._blocks and (before := int(np.searchsorted(self._blocks[0].times, first))):
            self._blocks[0].drop(before)
            self._firsts[0] = int(self._blocks[0].positions[0])

    def evict_before(self, position: int) -> None:
        """Drops the instants before `position`."""
        count = bisect_right(self._firsts, position) - 1
        while count >= 0 and count < len(self._blocks) and self._blocks[count].positions[-1] < position:
            count += 1
        if count > 0:
            del self._blocks[:count], self._firsts[:count]
        if self._blocks and (before := int(np.searchsorted(self._blocks[0].positions, position))):
            self._blocks[0].drop(before)
            self._firsts[0] = int(self._blocks[0].positions[0])

    def snapshot(self, pool: Pool) -> Any:
        """The instants, as plain values; their events are put into `pool`."""
        return [
            (block.positions, block.times, [pool.put(block.made(block.of(int(p))[1])) for p in block.positions])
            for block in self._blocks
        ]

    def restore(self, state: Any, events: Made) -> None:
        """The opposite of `snapshot`; `events` gives those of the pool."""
        self._blocks, self._firsts = [], []
        before = -1
        for positions, times, numbers in state:
            places, when = array(positions, "positions", low=before + 1), array(times, "times", rows=len(positions))
            expect(len(numbers) == len(places) > 0 and (np.diff(places) > 0).all(), "instants in order")
            before = int(places[-1])
            self.add(places, when, list(map(events, numbers)).__getitem__)


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
        made = [GraphEvent(*event) for event in state]
        for event in made:
            texts = type(event.stream) is str and type(event.source) is str
            expect(texts and type(event.time) is int, "a stream and a time for each event")
            expect(type(event.triples) is tuple and all(len(t) == 3 for t in event.triples), "triples of three")
            expect(all(isinstance(term, Term) for t in event.triples for term in t), "terms in triples")

        def events(numbers: Sequence[int]) -> _Events:
            expect(min(numbers, default=0) >= 0, "events that are there")
            return tuple(map(made.__getitem__, numbers))

        return events
