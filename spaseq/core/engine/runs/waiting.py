"""`Ending` for one event at a time: the same, without an array operation over all matches that wait.

`WaitingOnes` takes the waiting matches over from an `Ending` and gives them back. Meanwhile a match costs a few steps
in Python when it begins to wait, is called off or is reported, however many others wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace
from sys import byteorder

import numpy as np

from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.runs.ending import Ending
from spaseq.core.tecs.kernels.layout import NEVER


class WaitingOnes:
    """The matches that wait in `ending`, which have no labels, or the roots. To be used until `close`.

    Memory: for each match a tuple, its positions as bytes, and an entry in up to three tables. If a match is called
    off, its entry in a heap stays until its window has closed.
    """

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self._by_key = ending.window.per_partition
        self._bounded = ending.window.is_bounded
        self._indexed = ending.against is not None
        self._roots = ending.roots
        self._open: dict[int, tuple[int, int, bytes, int]] = {}  # start, end, positions, key; by a number
        self._of_key: dict[int, dict[int, None]] = {}
        self._starts: dict[int, list[tuple[int, int]]] = {}  # heaps of start and number
        self._named: dict[tuple[int, bytes], int] = {}
        self._lows: dict[int, int] = {}
        self._least = self._next = 0
        matches, keys = ending.waiting
        self._add(matches, keys.tolist())

    def add(self, matches: MatchBatch, key: int) -> None:
        """Matches that were just completed in partition `key`."""
        if self._roots is not None:  # with their own first starts they are not looked at before one of these is due
            starts = matches.start.tolist()
            rows = list(zip(matches.positions.tolist(), starts, starts, matches.end.tolist(), strict=True))
            matches = replace(matches, start=np.array(self._roots.nodes.next_starts_of_few(rows), np.int64))
        self._add(matches, [key] * len(matches))

    def _add(self, matches: MatchBatch, keys: list[int]) -> None:
        bounds = matches.offsets.tolist()
        for i, (start, end) in enumerate(zip(matches.start.tolist(), matches.end.tolist(), strict=True)):
            number, key = self._next, keys[i]
            self._next += 1
            positions = matches.positions[bounds[i] : bounds[i + 1]].tobytes()
            self._open[number] = (start, end, positions, key)
            self._of_key.setdefault(key, {})[number] = None
            if self._bounded:
                heapq.heappush(self._starts.setdefault(key if self._by_key else 0, []), (start, number))
            if self._indexed:
                self._named[start, positions] = number

    def reach(self, low: int, key: int) -> Iterable[MatchBatch]:
        """The matches whose windows are closed at an event of partition `key` whose first live start is `low`. To be
        called for each event, before it is evaluated."""
        if self._by_key:
            self._lows[key] = low
        starts = self._starts.get(key if self._by_key else 0)
        if not starts or starts[0][0] >= low:
            return []
        closed = []
        while starts and starts[0][0] < low:
            number = heapq.heappop(starts)[1]
            if number in self._open:
                closed.append(number)
        closed.sort()
        return self._give(closed, low) if closed else ()

    def _give(self, numbers: list[int], low: int) -> Iterable[MatchBatch]:
        """The matches that start before `low`, of these. A root waits on if others start later."""
        if self._roots is None:
            return (_batch([self._drop(number) for number in numbers]),)
        given = [self._open[number] for number in numbers]
        rows = [(int.from_bytes(node, byteorder), start, low, end) for start, end, node, _ in given]
        for number, start in zip(numbers, self._roots.nodes.next_starts_of_few(rows), strict=True):
            if start == NEVER:
                self._drop(number)
                continue
            _, end, node, key = self._open[number]
            self._open[number] = (start, end, node, key)
            heapq.heappush(self._starts[key if self._by_key else 0], (start, number))
        return self._roots.matches(np.array(rows, np.int64))

    def forbid(self, key: int) -> None:
        """An event of partition `key` that must follow none of its matches."""
        for number in list(self._of_key.get(key, ())):
            self._drop(number)

    def call_off(self, found: MatchBatch) -> None:
        """Matches with an event behind them that they must not have."""
        bounds = found.offsets.tolist()
        for i, start in enumerate(found.start.tolist()):
            number = self._named.get((start, found.positions[bounds[i] : bounds[i + 1] - 1].tobytes()))
            if number is not None:
                self._drop(number)

    def _drop(self, number: int) -> tuple[int, int, bytes, int]:
        start, _, positions, key = match = self._open.pop(number)
        mine = self._of_key[key]
        del mine[number]
        if not mine:
            del self._of_key[key]
            if self._by_key:
                self._starts.pop(key, None)
        if self._indexed:
            del self._named[start, positions]
        return match

    @property
    def undecided(self) -> int | None:
        """`Ending.undecided`: the first that still waits, as they came in order of their ends."""
        if not self._open:
            return None
        while self._least not in self._open:
            self._least += 1
        return self._open[self._least][1]

    def close(self) -> None:
        """Give back the waiting matches."""
        left = list(self._open.values())
        keys = np.array([key for *_, key in left], np.int64)
        self._ending.take_back(_batch(left), keys, self._lows)


def _batch(matches: list[tuple[int, int, bytes, int]]) -> MatchBatch:
    taken = [np.frombuffer(positions, np.int64) for _, _, positions, _ in matches]
    return MatchBatch(
        np.array([start for start, *_ in matches], np.int64),
        np.array([end for _, end, *_ in matches], np.int64),
        np.cumsum([0, *map(len, taken)]),
        np.concatenate(taken) if taken else np.zeros(0, np.int64),
    )
