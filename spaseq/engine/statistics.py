"""What a stream is like, as far as the choice of an evaluator depends on it: rates, window sizes, selectivities.

Counters with exponential decay over events, begun anew where a rate has plainly changed; and for conditions over
several events a pool of events of each kind, of which tuples are drawn. All of it is a function of the events alone, so
a run over the same batches always chooses alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from spaseq.engine.lazy.conditions import Conditions
from spaseq.engine.lazy.normal import Branch, Test
from spaseq.engine.settings import Batch
from spaseq.errors import EventError
from spaseq.pattern import Predicate

__all__ = ["Statistics"]

TUPLES: Final = 256
"""Tuples that a selectivity is estimated from, per observation."""
FEW: Final = 16
"""With fewer tuples in the pattern's order, tuples in any order are tried."""
POOL: Final = 64
"""The latest events of each kind that tuples are drawn of; a rare kind's may be older than a frequent one's."""
MEMORY: Final = 32_000
"""Events over which counters decay to about a third."""
PARTS: Final = 8
"""So many parts of a long batch are looked at, if it can be cut."""
GLANCE: Final = 2
"""And so many where only rates are wanted."""
PART: Final = 512
"""Events of a part."""
CHANGE: Final = 5.0
"""Standard deviations by which what came must differ from what was expected for a rate to have changed."""
FACTOR: Final = 2.0
"""And the factor: streams come in bursts."""

Kind = frozenset[Predicate]


class Statistics:
    """Rates of sets of predicates and selectivities of tests of `branches`; O(events) per observation."""

    def __init__(self, branches: Sequence[Branch], conditions: Conditions | None) -> None:
        leaves = [leaf for branch in branches for leaf in branch.all_leaves()]
        self._kind_of = {leaf.number: leaf.predicates for leaf in leaves}
        absent = [a.predicates for branch in branches for x in branch.absences for a in x.alternatives]
        self._kinds = tuple(dict.fromkeys([*self._kind_of.values(), *absent]))
        tests = {t: _order_of(t, branch) for branch in branches for t in _tests(branch) if not t.whole}
        self._tests: dict[Test, int] = tests
        self._held = dict.fromkeys(tests, (0.0, 0.0))
        self._counts = dict.fromkeys(self._kinds, 0.0)
        self.events = 0.0
        """Decayed number of events."""
        self.window = 0.0
        """Decayed sum of the number of events in the windows that end with each."""
        self.changes = 0
        """How often a rate has plainly changed."""
        self._draws = 0
        self._pool = _Pool(conditions, self._kinds) if conditions is not None and tests else None

    def observe(self, batch: Batch, in_window: float, sample: bool) -> None:
        """Count what there is in `batch`; `in_window`: events in a window. `sample`: selectivities too."""
        parts = _parts(batch, PARTS if sample else GLANCE)
        counts = dict.fromkeys(self._kinds, 0)
        for part in parts:
            found = self._found(part)
            for kind, rows in found.items():
                counts[kind] += len(rows)
            if sample and self._pool is not None:
                self._pool.add(part, found)
        self.count(sum(map(len, parts)), in_window, counts)
        if sample:
            self._sample(in_window if batch.keys is None else math.inf)

    def count(self, events: int, in_window: float, counts: Mapping[Kind, int]) -> None:
        """Take note of so many events, among them `counts` of each kind."""
        fade = math.exp(-events / MEMORY)
        if self._has_changed(events, counts):
            fade = 0.0
            self.changes += 1
        self.events = self.events * fade + events
        self.window = self.window * fade + events * in_window
        for kind in self._kinds:
            self._counts[kind] = self._counts[kind] * fade + counts[kind]

    def recount(self, events: int, counts: Mapping[Kind, int]) -> None:
        """Take these events for the ones observed last, of which only parts were looked at."""
        self.window = self.events_in_window * events
        self.events = events
        self._counts = {kind: float(counts[kind]) for kind in self._kinds}

    def observed(self, tried: Mapping[Test, tuple[int, int]]) -> None:
        """Take note of tests that were made, and how many of them held, instead of what samples said."""
        for test, (made, held) in tried.items():
            if made >= TUPLES and test in self._held:
                self._held[test] = held / made * TUPLES, TUPLES

    def rate(self, leaf: int) -> float:
        """Events of a leaf's kind per event; never 0, for what has not come may come."""
        return self.rate_of(self._kind_of[leaf])

    def rate_of(self, kind: Kind) -> float:
        """The same of a kind that some leaf is of, or that must be absent somewhere."""
        return max(self._counts[kind], 0.5) / max(self.events, 1.0)

    def rates(self) -> tuple[float, ...]:
        """What tells whether the stream has changed: the rate of every kind, and the size of windows."""
        return (*(max(c, 0.5) / max(self.events, 1.0) for c in self._counts.values()), self.events_in_window)

    def selectivity(self, test: Test) -> float:
        """The part of the tuples that hold; 1/2 while nothing is known."""
        held, tried = self._held.get(test, (0.0, 0.0))
        return (held + 0.5) / (tried + 1.0)

    @property
    def events_in_window(self) -> float:
        """On average."""
        return self.window / max(self.events, 1.0)

    def state(self) -> Any:
        """What a snapshot must hold. The pool is filled anew."""
        return (list(self._held.values()), list(self._counts.values()), self.events, self.window, self._draws,
                self.changes)  # fmt: skip

    def restore(self, state: Any) -> None:
        """The opposite of `state`, for the same branches."""
        held, counts, self.events, self.window, self._draws, self.changes = state
        self._held = dict(zip(self._tests, held, strict=True))
        self._counts = dict(zip(self._kinds, counts, strict=True))

    def _has_changed(self, events: int, counts: Mapping[Kind, int]) -> bool:
        """Whether the rates so far cannot be those of these events."""
        ratio = events / max(self.events, 1.0)
        for kind, before in self._counts.items():
            # Both are counts, so about as far off as their square roots; of what has not come one might have.
            expected = (before + 1.0) * ratio
            deviation = math.sqrt(expected * (1.0 + ratio))
            got = counts[kind]
            far = max(got, expected) > FACTOR * min(got, expected)
            if self.events and far and abs(got - expected) > CHANGE * deviation:
                return True
        return False

    def _found(self, batch: Batch) -> dict[Kind, np.ndarray]:
        """The rows of each kind."""
        holds: dict[Predicate, np.ndarray] = {
            p: p.evaluate(batch) for p in dict.fromkeys(p for kind in self._kinds for p in kind)
        }
        there = np.ones(len(batch), bool) if batch.keys is None else np.asarray(batch.keys) >= 0
        return {
            kind: np.flatnonzero(np.logical_and.reduce([there, *(holds[p] for p in kind)])) for kind in self._kinds
        }

    def _sample(self, near: float) -> None:
        rng = np.random.default_rng(self._draws)
        self._draws += 1
        for test, order in self._tests.items():
            if self._pool is None:
                return
            kinds = [[self._kind_of[n] for n in sorted(leaves) if n in self._kind_of] for _, leaves in test.variables]
            found = self._pool.holding(test, kinds, order, near, rng)
            if found is not None:
                held, tried = self._held[test]
                self._held[test] = held / 2 + found, tried / 2 + TUPLES


class _Pool:
    """The latest `POOL` events of each kind, with what conditions read of them."""

    def __init__(self, conditions: Conditions, kinds: tuple[Kind, ...]) -> None:
        self._kinds = kinds
        self._memory = conditions.memory()
        self._is_of = np.zeros((len(kinds), 0), bool)
        self._positions = np.zeros(0, np.int64)

    def add(self, batch: Batch, found: Mapping[Kind, np.ndarray]) -> None:
        rows = np.unique(np.concatenate([rows[_spread(len(rows))] for rows in found.values()]))
        self._memory.append(batch, rows)
        fresh = np.stack([np.isin(rows, found[kind]) for kind in self._kinds])
        both = np.hstack([self._is_of, fresh])
        # Of what each kind had before, only as much as there is too little of now.
        kept = np.unique(np.concatenate([np.flatnonzero(row)[-POOL:] for row in both]))
        self._memory.keep(kept)
        self._is_of = both[:, kept]
        self._positions = np.concatenate([self._positions, np.asarray(batch.positions)[rows]])[kept]

    def holding(
        self, test: Test, kinds: list[list[Kind]], order: int, near: float, rng: np.random.Generator
    ) -> float | None:
        """How many of `TUPLES` tuples the test lets pass; None where some kind has no event, or values do not compare.

        Tuples are no more than `near` positions wide, and the event of the first variable comes first or last (`order`
        1 or -1), where there are `FEW` of that kind.
        """
        pools = [np.flatnonzero(self._is_of[[self._kinds.index(kind) for kind in some]].any(axis=0)) for some in kinds]
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


def _spread(count: int) -> np.ndarray:
    """At most `POOL` of so many, over all of them."""
    return np.unique(np.linspace(0, count - 1, min(POOL, count)).astype(np.int64)) if count else np.zeros(0, np.int64)


def _parts(batch: Batch, count: int) -> list[Batch]:
    """A short batch; of a long one that can be cut (`part(start, stop)`), so many parts."""
    cut: Any = getattr(batch, "part", None)
    if cut is None or len(batch) <= 2 * PARTS * PART:
        return [batch]
    starts = np.linspace(0, len(batch) - PART, count).astype(np.int64).tolist()
    return [cut(start, start + PART) for start in starts]


def _order_of(test: Test, branch: Branch) -> int:
    """1 if the events of the first of two variables come before those of the second, -1 the other way, else 0."""
    if len(test.variables) != 2:
        return 0
    (_, left), (_, right) = test.variables
    for sign, pairs in ((1, itertools.product(left, right)), (-1, itertools.product(right, left))):
        if all(pair in branch.before for pair in pairs):
            return sign
    return 0


def _tests(branch: Branch) -> list[Test]:
    return [*branch.tests, *(t for r in branch.rounds for b in r.branches for t in _tests(b))]
