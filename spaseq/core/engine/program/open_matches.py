"""Matches that wait one by one for their windows to close, and for events that call them off; of both languages."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

_M = TypeVar("_M")


class OpenMatches(Generic[_M]):
    """Matches by number, in the order in which they came. O(log matches) steps for each match that a call is about.

    Memory: for each match an entry in a table, one under each of its names, and one in a heap. If a match is called
    off, its entry in the heap stays until its window has closed, or no match has the heap's name.
    """

    def __init__(self) -> None:
        self._open: dict[int, tuple[_M, tuple[Hashable, ...]]] = {}
        self._named: dict[Hashable, dict[int, None]] = {}
        self._bounds: dict[Hashable, list[tuple[int, int]]] = {}  # heaps of bound and number
        self._least = self._next = 0

    def add(self, match: _M, names: tuple[Hashable, ...], bound: int | None = None, windows: Hashable = None) -> None:
        """Enter a match under the `names` by which events find those that they may call off (`numbers_under`).

        Its window closes behind `bound` (`due`), None for never. `windows`: one of the names, if its matches have
        windows of their own.
        """
        number = self._next
        self._next += 1
        self._open[number] = match, names
        for name in names:
            self._named.setdefault(name, {})[number] = None
        if bound is not None:
            heappush(self._bounds.setdefault(windows, []), (bound, number))

    def numbers_under(self, name: Hashable) -> list[int]:
        """The matches under a name."""
        return list(self._named.get(name, ()))

    def due(self, place: int, windows: Hashable = None) -> list[int]:
        """The matches whose bounds are before `place`, in order. To be dropped or delayed."""
        bounds = self._bounds.get(windows)
        if not bounds or bounds[0][0] >= place:
            return []
        found = []
        while bounds and bounds[0][0] < place:
            number = heappop(bounds)[1]
            if number in self._open:
                found.append(number)
        return sorted(found)

    def delay(self, number: int, match: _M, bound: int, windows: Hashable = None) -> None:
        """Let `match` wait until `bound` in place of one that was due."""
        self._open[number] = match, self._open[number][1]
        heappush(self._bounds[windows], (bound, number))

    def drop(self, number: int) -> _M:
        """Take out a match, which waits no more."""
        match, names = self._open.pop(number)
        for name in names:
            mine = self._named[name]
            del mine[number]
            if not mine:
                del self._named[name]
                self._bounds.pop(name, None)
        return match

    def __getitem__(self, number: int) -> _M:
        return self._open[number][0]

    def items(self) -> list[tuple[int, _M]]:
        """The numbers and matches that wait, in order."""
        return [(number, match) for number, (match, _) in self._open.items()]

    @property
    def first(self) -> _M | None:
        """The match that waits and came first; None if none waits."""
        if not self._open:
            return None
        while self._least not in self._open:
            self._least += 1
        return self._open[self._least][0]
