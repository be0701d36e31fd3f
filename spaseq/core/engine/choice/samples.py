"""Samples of a stream from which selectivities are estimated: some events of each kind, and tuples of them.

Conditions may be dependent. If prices move together, two conditions that hold make a third likely. Tuples that pass may
also have more, or fewer, of some event in their windows than others. So besides each test by itself (`Pool.holding`) a
chain's order is followed through the sample (`Pool.join`), which gives for each prefix the part of all tuples that
passes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.core.engine.program.guard_conditions import Conditions
from spaseq.core.engine.program.normal_form import Test
from spaseq.core.errors import EventError
from spaseq.core.pattern import Batch, Predicate

TUPLES: Final = 256
"""Tuples that a selectivity is estimated from, per observation."""
FEW: Final = 16
"""With fewer tuples in the pattern's order, tuples in any order are tried."""
POOL: Final = 64
"""The latest events of each kind that tuples are drawn of; a rare kind's may be older than a frequent one's."""
CANDIDATES: Final = 2048
"""Tuples looked at for one step of a chain, spread over all there are."""
KEPT: Final = 64
"""Of those that passed, as many are extended further."""
PRIOR: Final = 0.5
"""The prior estimate, of independent tests, counts as much as so many tuples that passed."""
REACHED: Final = 8.0
"""That all have equally many events in reach counts as much as so many tuples that passed."""

Kind = frozenset[Predicate]


@dataclass(frozen=True, slots=True)
class Join:
    """A prefix of a chain's order, its `leaves`.

    `part`: of the tuples in the pattern's order and a window, what passes all tests. `dense`: how many more events of
    the next leaf those have in reach than all have. `tuples`: looked at.
    """

    leaves: frozenset[int]
    part: float
    dense: float
    tuples: int


class Pool:
    """The latest `POOL` events of each kind, with the values that conditions read of them, in order of position."""

    def __init__(self, conditions: Conditions, kinds: tuple[Kind, ...]) -> None:
        self._number = {kind: i for i, kind in enumerate(kinds)}
        self._memory = conditions.memory()
        self._is_of = np.zeros((len(kinds), 0), bool)
        self._positions = np.zeros(0, np.int64)

    def add(self, batch: Batch, truth: np.ndarray, ranges: Sequence[tuple[int, int]]) -> None:
        """Take some of a batch's events, the latest of those within `ranges` of rows; `truth`: bool (kinds, n), of
        which kind they are. O(n)."""
        own = [[_spread(start + np.flatnonzero(of[start:stop]), POOL) for start, stop in ranges] for of in truth]
        rows = np.unique(np.concatenate([np.concatenate(some)[-POOL:] for some in own]))
        self._memory.append(batch, rows)
        both = np.hstack([self._is_of, truth[:, rows]])
        # Keep at most `POOL` of each kind, the latest.
        kept = np.unique(np.concatenate([np.flatnonzero(row)[-POOL:] for row in both]))
        if len(kept) < both.shape[1]:
            self._memory.keep(kept)
        self._is_of = both[:, kept]
        self._positions = np.concatenate([self._positions, np.asarray(batch.positions)[rows]])[kept]

    def _of(self, kinds: Sequence[Kind]) -> np.ndarray:
        if len(kinds) == 1:
            return np.flatnonzero(self._is_of[self._number[kinds[0]]])
        return np.flatnonzero(self._is_of[[self._number[kind] for kind in kinds]].any(axis=0))

    def holding(
        self, test: Test, kinds: list[list[Kind]], order: int, near: float, rng: np.random.Generator
    ) -> float | None:
        """The number of `TUPLES` tuples that the test lets pass; None if some kind has no event, or values do not
        compare.

        Tuples are no more than `near` positions wide. The event of the first variable comes first or last (`order` 1 or
        -1), if there are `FEW` of that kind.
        """
        pools = [self._of(some) for some in kinds]
        if not all(len(pool) for pool in pools):
            return None
        tuples = np.stack([pool[rng.integers(len(pool), size=4 * TUPLES)] for pool in pools])
        places = self._positions[tuples]
        fits = places.max(axis=0) - places.min(axis=0) <= near
        if order:
            fits &= places[0] < places[1] if order > 0 else places[0] > places[1]
        tuples = tuples[:, fits] if np.count_nonzero(fits) >= FEW else tuples[:, :TUPLES]
        try:
            ok = self._memory.test(test.guard, {v: tuples[i] for i, (v, _) in enumerate(test.variables)})
        except EventError:
            return None  # the evaluation itself says so, should it come to compare such values
        return float(np.count_nonzero(ok)) / tuples.shape[1] * TUPLES

    def join(
        self, order: Sequence[int], kind_of: Mapping[int, Kind], before: frozenset[tuple[int, int]],
        tests: Mapping[Test, float], near: float,
    ) -> Iterator[Join]:  # fmt: skip
        """The results of a chain of `order` on the sample, prefix by prefix, until a prefix finds nothing.

        `before`: pairs of leaves in the pattern's order; `tests`: with the selectivity of each by itself; `near`: the
        width of tuples in positions. At most `CANDIDATES` tuples a prefix.
        """
        pools = [self._of([kind_of[leaf]]) for leaf in order]
        columns = {order[0]: pools[0]}
        reached = 1.0
        for turn in range(1, len(order)):
            leaf, done = order[turn], frozenset(order[: turn + 1])
            first, last = self._reach(columns, pools[turn], leaf, before, near)
            in_reach = int((last - first).sum()) >= FEW
            if not in_reach:
                first, last = np.zeros_like(first), np.full_like(last, len(pools[turn]))
            rows, at = _candidates(first, last)
            if not len(rows):
                return
            columns = {node: column[rows] for node, column in columns.items()} | {leaf: pools[turn][at]}
            decided = [t for t in tests if leaf in t.leaves and t.leaves <= done]
            passed = self._passing(columns, decided)
            if passed is None:
                return
            alone = math.prod(tests[t] for t in decided)
            part = reached * (len(passed) + PRIOR) / (len(rows) + PRIOR / alone)
            dense = 1.0
            if in_reach and decided and turn + 1 < len(order):
                low, high = self._reach(columns, pools[turn + 1], order[turn + 1], before, near)
                dense = _ratio(high - low, passed)
            yield Join(done, part, dense, len(rows))
            if not len(passed):
                return
            reached = part * dense
            passed = _spread(passed, KEPT)
            columns = {node: column[passed] for node, column in columns.items()}

    def _reach(
        self, columns: Mapping[int, np.ndarray], pool: np.ndarray, leaf: int, before: frozenset[tuple[int, int]],
        near: float,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """The events of `pool` that may extend each tuple, as bounds."""
        places = {node: self._positions[column] for node, column in columns.items()}
        low = np.maximum.reduce(list(places.values())) - near
        high = np.minimum.reduce(list(places.values())) + near
        for node, place in places.items():
            if (node, leaf) in before:
                low = np.maximum(low, place + 1)
            elif (leaf, node) in before:
                high = np.minimum(high, place - 1)
        own = self._positions[pool]
        first = np.searchsorted(own, low)
        return first, np.maximum(np.searchsorted(own, high, "right"), first)

    def _passing(self, columns: Mapping[int, np.ndarray], decided: Sequence[Test]) -> np.ndarray | None:
        """The tuples that pass all tests; None if values do not compare."""
        left = np.arange(len(next(iter(columns.values()))))
        for test in decided:
            for choice in itertools.product(*(sorted(leaves) for _, leaves in test.variables)):
                events = {v: columns[n][left] for (v, _), n in zip(test.variables, choice, strict=True)}
                try:
                    left = left[self._memory.test(test.guard, events)]
                except EventError:
                    return None  # the evaluation itself says so, should it come to compare such values
                if not len(left):
                    return left
        return left


def _candidates(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and members of the ranges, all or `CANDIDATES` spread over them."""
    ends = np.cumsum(last - first)
    total = int(ends[-1]) if len(ends) else 0
    flat = np.arange(total) if total <= CANDIDATES else np.arange(CANDIDATES) * total // CANDIDATES
    rows = np.searchsorted(ends, flat, "right")
    return rows, last[rows] - (ends[rows] - flat)


def _ratio(counts: np.ndarray, passed: np.ndarray) -> float:
    """The mean over those that passed to the mean over all."""
    mean = float(counts.mean())
    return (float(counts[passed].sum()) + REACHED * mean) / (len(passed) + REACHED) / mean if mean else 1.0


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many of `rows`, over all of them."""
    count = len(rows)
    return rows if count <= most else rows[np.arange(most) * (count - 1) // (most - 1)]
