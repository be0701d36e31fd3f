"""The instants that a match to come may hold: their times, and their events where matches show them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from spaseq.rdf import GraphEvent

__all__ = ["History"]

_Events = tuple["GraphEvent", ...]


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

    def of(self, position: int) -> tuple[int, _Events]:
        place = int(np.searchsorted(self.positions, position))
        if self._events is None:
            return int(self.times[place]), ()
        made = self._made.get(place + self._dropped)
        if made is None:
            made = self._made[place + self._dropped] = self._events(place + self._dropped)
        return int(self.times[place]), made


class History:
    """Instants by position. They are added in order, and forgotten from the front."""

    def __init__(self) -> None:
        self._blocks: list[_Block] = []
        self._firsts: list[int] = []

    def add(self, positions: np.ndarray, times: np.ndarray, events: Callable[[int], _Events] | None) -> None:
        """Instants behind all there are; `events(i)` gives the events of the i-th of these, None: they show none."""
        if len(positions):
            self._blocks.append(_Block(positions, times, events))
            self._firsts.append(int(positions[0]))

    def __len__(self) -> int:
        return sum(len(block.positions) for block in self._blocks)

    def __getitem__(self, position: int) -> tuple[int, _Events]:
        """The time and the events of an instant."""
        return self._blocks[bisect_right(self._firsts, position) - 1].of(position)

    def forget(self, first: float) -> None:
        """Drops what lies before the time `first`."""
        count = 0
        while count < len(self._blocks) and self._blocks[count].times[-1] < first:
            count += 1
        if count:
            del self._blocks[:count], self._firsts[:count]
        if self._blocks and (before := int(np.searchsorted(self._blocks[0].times, first))):
            self._blocks[0].drop(before)
            self._firsts[0] = int(self._blocks[0].positions[0])

    def state(self) -> Any:
        """What a snapshot must hold."""
        return [
            (block.positions, block.times, [block.of(int(p))[1] for p in block.positions]) for block in self._blocks
        ]

    def restore(self, state: Any) -> None:
        """The opposite of `state`."""
        self._blocks, self._firsts = [], []
        for positions, times, events in state:
            self.add(positions, times, events.__getitem__)
