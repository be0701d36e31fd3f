"""The events that matches to come may name: blocks of them in order, found by position, forgotten from the front."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Generic, Protocol, TypeVar

import numpy as np

from spaseq.core.integers import apart
from spaseq.core.snapshot import expect

_THERE: Final = "a match names events that are there"
"""It fails only after a damaged snapshot."""


class _Consecutive(Protocol):
    """Events in order: their positions, ascending, and times, ns, int64 (n,) each."""

    @property
    def positions(self) -> np.ndarray | range: ...
    @property
    def times(self) -> np.ndarray: ...
    def __len__(self) -> int: ...


_B = TypeVar("_B", bound=_Consecutive)


class Blocks(Generic[_B]):
    """Blocks of events in order, perhaps without those that no match names. `firsts`: each block's first position."""

    def __init__(self, blocks: Sequence[_B] = (), firsts: Sequence[int] = ()) -> None:
        self.blocks: list[_B] = list(blocks)
        self.firsts: list[int] = list(firsts)

    def __len__(self) -> int:
        """The number of events."""
        return sum(map(len, self.blocks))

    def put(self, block: _B, first: int) -> None:
        """Adds a block behind all others; `first` is, or will be, its first position."""
        self.blocks.append(block)
        self.firsts.append(first)

    def drop(self, count: int) -> None:
        """Forgets the first `count` blocks."""
        del self.blocks[:count], self.firsts[:count]

    def place(self, position: int) -> tuple[_B, int]:
        """The block of an event, and its row there. `OptionError` for an event that is not there. O(log n)."""
        number = bisect_right(self.firsts, position) - 1
        expect(number >= 0, _THERE)
        block = self.blocks[number]
        positions, row = block.positions, position - self.firsts[number]
        if row >= len(positions) or positions[row] != position:
            row = int(np.searchsorted(positions, position))
            expect(row < len(positions) and positions[row] == position, _THERE)
        return block, row

    def places(self, positions: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Block by block: its number, which of `positions` are in it, bool (n,), and the rows of these: int64.
        `OptionError` for events that are not there."""
        numbers = np.searchsorted(np.array(self.firsts, np.int64), positions, "right") - 1
        for number in apart(numbers).tolist():
            expect(number >= 0, _THERE)
            own, there = numbers == number, self.blocks[number].positions
            rows = np.searchsorted(there, positions[own])
            expect(rows.max() < len(there), _THERE)
            yield number, own, rows

    def times(self, positions: np.ndarray) -> np.ndarray:
        """The times of the events at `positions`: int64 (n,), ns."""
        found = np.empty(len(positions), np.int64)
        for number, own, rows in self.places(positions):
            found[own] = self.blocks[number].times[rows]
        return found
