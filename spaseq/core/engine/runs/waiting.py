"""`Ending` for one event at a time: the same, without an array operation over all matches that wait.

`WaitingOnes` takes the waiting matches over from an `Ending` and gives them back. Meanwhile a match costs a few steps
in Python when it begins to wait, is called off or is reported, however many others wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from sys import byteorder
from typing import TypeAlias

import numpy as np

from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.program.open_matches import OpenMatches
from spaseq.core.engine.runs.ending import Ending
from spaseq.core.tecs.kernels.layout import NEVER

_One: TypeAlias = tuple[int, int, bytes, int, int, int]
"""Start, end, positions, partition, the position that it must start before, and one that neither it starts before nor
any that came later."""


class WaitingOnes:
    """The matches that wait in `ending`, which have no labels, or the roots. To be used until `close`. `low`: the first
    live start by now, or less."""

    def __init__(self, ending: Ending, low: int) -> None:
        self._ending = ending
        self._by_key = ending.window.per_partition
        self._by_end = ending.patience is not None
        self._bounded = self._by_end or ending.window.is_bounded
        self._indexed = ending.against is not None
        self._roots = ending.roots
        self._open: OpenMatches[_One] = OpenMatches()
        self._lows: dict[int, int] = {}
        matches, keys, highs = ending.waiting
        starts = np.minimum.accumulate(np.minimum(matches.start, low)[::-1])[::-1]
        self._add(matches, keys.tolist(), highs.tolist(), starts.tolist())

    def add(self, matches: MatchBatch, key: int, low: int, high: int) -> None:
        """Matches that were just completed in partition `key`, at the first live start `low`, and must start before
        `high`."""
        if self._roots is not None and not self._by_end:
            # With their own first starts they are not looked at before one of these is due.
            starts = matches.start.tolist()
            rows = list(zip(matches.positions.tolist(), starts, starts, matches.end.tolist(), strict=True))
            matches = replace(matches, start=np.array(self._roots.nodes.next_starts_of_few(rows), np.int64))
        count = len(matches)
        self._add(matches, [key] * count, [high] * count, [low] * count)

    def _add(self, matches: MatchBatch, keys: list[int], highs: list[int], lows: list[int]) -> None:
        bounds = matches.offsets.tolist()
        for i, (start, end) in enumerate(zip(matches.start.tolist(), matches.end.tolist(), strict=True)):
            if start >= highs[i]:
                continue
            key, positions = keys[i], matches.positions[bounds[i] : bounds[i + 1]].tobytes()
            names = (key, (start, positions)) if self._indexed else (key,)
            bound = end if self._by_end else start
            one = (start, end, positions, key, highs[i], lows[i])
            self._open.add(one, names, bound if self._bounded else None, self._windows(key))

    def _windows(self, key: int) -> int | None:
        return key if self._by_key else None

    def reach(self, low: int, key: int) -> Iterable[MatchBatch]:
        """The matches that are decided at an event of partition `key` whose first live start (with patience, the first
        end that waits) is `low`. To be called for each event, before it is evaluated."""
        if self._by_key:
            self._lows[key] = low
        closed = self._open.due(low, key if self._by_key else None)
        if not closed:
            return ()
        if self._roots is None:
            return (_batch([self._open.drop(number) for number in closed]),)
        given = [self._open[number] for number in closed]
        rows = [
            (int.from_bytes(node, byteorder), start, high if self._by_end else min(low, high), end)
            for start, end, node, _, high, _ in given
        ]
        starts = [NEVER] * len(rows) if self._by_end else self._roots.nodes.next_starts_of_few(rows)
        for number, (_, end, node, own, high, first), start in zip(closed, given, starts, strict=True):
            if start >= high:
                self._open.drop(number)
            else:  # other matches of the root start later
                self._open.delay(number, (start, end, node, own, high, first), start, self._windows(own))
        return self._roots.matches(np.array(rows, np.int64))

    @property
    def first_start(self) -> int:
        """As of `Ending`, or less."""
        first = self._open.first if self._by_end else None
        return NEVER if first is None else first[-1]

    def forbid(self, key: int) -> None:
        """An event of partition `key` that must follow none of its matches."""
        for number in self._open.numbers_under(key):
            self._open.drop(number)

    def call_off(self, found: MatchBatch) -> None:
        """Matches with an event behind them that they must not have."""
        bounds = found.offsets.tolist()
        for i, start in enumerate(found.start.tolist()):
            for number in self._open.numbers_under((start, found.positions[bounds[i] : bounds[i + 1] - 1].tobytes())):
                self._open.drop(number)

    @property
    def undecided(self) -> int | None:
        """`Ending.undecided`: the first that still waits, as they came in order of their ends."""
        return None if (first := self._open.first) is None else first[1]

    def close(self) -> None:
        """Give back the waiting matches."""
        left = [match for _, match in self._open.items()]
        keys, highs = (np.array([match[place] for match in left], np.int64) for place in (3, 4))
        self._ending.take_back(_batch(left), keys, highs, self._lows)


def _batch(matches: list[_One]) -> MatchBatch:
    taken = [np.frombuffer(positions, np.int64) for _, _, positions, *_ in matches]
    return MatchBatch(
        np.array([start for start, *_ in matches], np.int64),
        np.array([end for _, end, *_ in matches], np.int64),
        np.cumsum([0, *map(len, taken)]),
        np.concatenate(taken) if taken else np.zeros(0, np.int64),
    )
