"""The statistics of a stream that the choice of an evaluator depends on: rates, window sizes, selectivities.

Counters decay exponentially over events, and begin anew if a rate has plainly changed. For conditions over several
events there is a pool of events of each kind, from which tuples are drawn. All of it is a function of the events alone,
so a run over the same batches always makes the same choice.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from spaseq.core.engine.choice.samples import CANDIDATES, TUPLES, Kind, Pool
from spaseq.core.engine.program.guard_conditions import Conditions
from spaseq.core.engine.program.normal_form import Branch, Test, membership, tests_of
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect

MEMORY: Final = 32_000
"""Events over which counters decay to about a third."""
PARTS: Final = 8
"""So many parts of a long batch are sampled."""
GLANCE: Final = 2
"""And so many are looked at if only rates are wanted and it can be cut."""
PART: Final = 512
"""Events of a part."""
CHANGE: Final = 5.0
"""Standard deviations between the expected and the actual count that mean a changed rate."""
FACTOR: Final = 2.0
"""And the factor: streams come in bursts."""
DRIFTED: Final = 3.0
"""Standard deviations by which a rate must differ to have drifted, which takes longer to see."""
COUNTED: Final = 2 * CANDIDATES
"""Tuples that a lazy evaluator's own counts weigh at most, against those of samples."""

Steps = Mapping[tuple[frozenset[int], int], tuple[int, int]]
"""For leaves taken and the next one: candidates, and how many of them passed."""


class Statistics:
    """Rates of sets of predicates and selectivities of tests of `branches`; O(events) per observation."""

    def __init__(self, branches: Sequence[Branch], conditions: Conditions | None) -> None:
        leaves = [leaf for branch in branches for leaf in branch.all_leaves()]
        self._kind_of = {leaf.number: leaf.predicates for leaf in leaves}
        absent = [a.predicates for branch in branches for x in branch.absences for a in x.alternatives]
        self._kinds = tuple(dict.fromkeys([*self._kind_of.values(), *absent]))
        tests = {t: _order_of(t, branch) for branch in branches for t in tests_of(branch) if not t.whole}
        self._tests: dict[Test, int] = tests
        self._held = dict.fromkeys(tests, (0.0, 0.0))
        self._counts = dict.fromkeys(self._kinds, 0.0)
        self.events: float = 0.0
        """Decayed number of events."""
        self.window: float = 0.0
        """Decayed sum of the number of events in the windows that end with each."""
        self.seen: float = 0.0
        """The number of events of the whole stream, if that is more: a kind that did not come in them is so rare."""
        self.partitions: int = 1
        """About as many take turns."""
        self.changes: int = 0
        """The number of plain changes of a rate."""
        self._joint: dict[frozenset[int], tuple[float, float]] = {}
        self._dense: dict[tuple[frozenset[int], int], tuple[float, float]] = {}
        self._followed: set[tuple[int, ...]] = set()
        """The orders that were followed through the present sample."""
        self._draws = 0
        self._pool = Pool(conditions, self._kinds) if conditions is not None and tests else None

    def observe(self, batch: Batch, in_window: float, sample: bool) -> None:
        """Count the events of `batch`; `in_window`: events in a window. `sample`: selectivities too.

        With `sample` all of a long batch is counted, as the rarest kind decides what a chain costs, else some parts.
        """
        parts = [batch] if sample else _glances(batch)
        truths = [membership(self._kinds, part) for part in parts]
        counts = np.sum([np.count_nonzero(truth, axis=1) for truth in truths], axis=0)
        found = dict(zip(self._kinds, counts.tolist(), strict=True))
        self.count(sum(map(len, parts)), in_window, found, whole=len(parts) == 1)
        if sample:
            self._draw(batch, truths[0], in_window)

    def sample(self, batch: Batch, in_window: float) -> None:
        """Look at tuples of a batch's events, without counting these."""
        if self._pool is not None:
            self._draw(batch, membership(self._kinds, batch), in_window)

    def has_followed(self, order: tuple[int, ...]) -> bool:
        """True if this chain was followed through the present sample."""
        return self._pool is None or order in self._followed

    def follow(self, branch: Branch, order: tuple[int, ...], batch: Batch, in_window: float) -> None:
        """Measure the part of the tuples of each prefix of a chain that passes, from the present sample."""
        assert self._pool is not None
        self._followed.add(order)
        tests = {t: self.selectivity(t) for t in branch.tests if not t.whole}
        for join in self._pool.join(order, self._kind_of, branch.before, tests, _near(batch, in_window)):
            _mix(self._joint, join.leaves, join.part, join.tuples)
            if len(join.leaves) < len(order):
                _mix(self._dense, (join.leaves, order[len(join.leaves)]), join.dense, join.tuples)

    def count(self, events: int, in_window: float, counts: Mapping[Kind, int], whole: bool = True) -> None:
        """Take note of so many events, among them `counts` of each kind.

        `whole`: they are all there were. A few parts of a stream with bursts do not say that rates have changed.
        """
        fade = math.exp(-events / MEMORY)
        if whole and self._has_changed(events, counts):
            fade = 0.0
            self.changes += 1
        self.events = self.events * fade + events
        self.window = self.window * fade + events * in_window
        for kind in self._kinds:
            self._counts[kind] = self._counts[kind] * fade + counts[kind]

    def observed(self, tried: Mapping[Test, tuple[int, int]], steps: Steps) -> None:
        """Record the counts of a lazy evaluator, in place of those of samples.

        `tried`: for tests of tuples that no other test had chosen, the number made and the number that held.
        """
        for test, (made, held) in tried.items():
            if made >= TUPLES and test in self._held:
                self._held[test] = held / made * TUPLES, TUPLES
        for (before, leaf), (made, held) in sorted(steps.items(), key=lambda item: len(item[0][0])):
            unknown = before not in self._joint and any(t.leaves <= before for t in self._tests)
            if made < TUPLES or not before or unknown:
                continue
            reached = self._joint.get(before, (1.0, 0.0))[0] * self._dense.get((before, leaf), (1.0, 0.0))[0]
            self._joint[before | {leaf}] = reached * (held + 0.5) / (made + 1.0), min(made, COUNTED)

    def joint(self, hopeful: bool = False) -> dict[frozenset[int], float]:
        """For sets of leaves, the measured part of all tuples that pass all tests within."""
        found = self._joint.items()
        return {leaves: _lower_bound(part, part * tuples) if hopeful else part for leaves, (part, tuples) in found}

    @property
    def dense(self) -> dict[tuple[frozenset[int], int], float]:
        """For such a set and one more leaf: how many more events of it those have in reach than all tuples have."""
        return {step: ratio for step, (ratio, _) in self._dense.items()}

    def rate(self, leaf: int) -> float:
        """Events of a leaf's kind per event; never 0, because a kind not seen yet may still come."""
        return self.rate_of(self._kind_of[leaf])

    def rate_of(self, kind: Kind) -> float:
        """The same of a kind that some leaf is of, or that must be absent somewhere."""
        events = max(self.events, 1.0)
        return max(self._counts[kind] / events, 0.5 / max(self.seen, events))

    def rates(self) -> tuple[float, ...]:
        """The values that show a change of the stream: the size of windows, and the rate of every kind."""
        return (self.events_in_window, *(max(c, 0.5) / max(self.events, 1.0) for c in self._counts.values()))

    def has_drifted(self, before: Sequence[float], factor: float) -> bool:
        """True if some of `rates` differs from its earlier value by `factor`, and not by chance."""
        for i, (new, old) in enumerate(zip(self.rates(), before, strict=True)):
            low, high = min(new, old), max(new, old)
            chance = DRIFTED * math.sqrt(high / max(self.events, 1.0)) if i else 0.0
            if high > factor * low and high - low > chance:
                return True
        return False

    def selectivity(self, test: Test, hopeful: bool = False) -> float:
        """The part of the tuples that hold; 1/2 before any was measured. `hopeful`: the smallest value that is
        likely."""
        held, tried = self._held.get(test, (0.0, 0.0))
        found = (held + 0.5) / (tried + 1.0)
        return _lower_bound(found, held) if hopeful else found

    @property
    def events_in_window(self) -> float:
        """On average."""
        return self.window / max(self.events, 1.0)

    def snapshot(self) -> Any:
        """The counters, as plain values. The pool is filled anew."""
        return (list(self._held.values()), list(self._counts.values()), self.events, self.window, self._draws,
                self.changes, self.partitions, self._joint, self._dense)  # fmt: skip

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`, for the same branches."""
        (held, counts, self.events, self.window, self._draws, self.changes, self.partitions, self._joint,
         self._dense) = state  # fmt: skip
        counted = (*counts, self.events, self.window, *(count for pair in held for count in pair))
        expect(all(type(count) in (int, float) and count >= 0 for count in counted), "counts of events")
        self._held = dict(zip(self._tests, held, strict=True))
        self._counts = dict(zip(self._kinds, counts, strict=True))

    def _has_changed(self, events: int, counts: Mapping[Kind, int]) -> bool:
        """True if the rates so far cannot be those of these events."""
        ratio = events / max(self.events, 1.0)
        for kind, before in self._counts.items():
            # Both are counts, so their errors are about their square roots; a kind not seen yet might have come once.
            expected = (before + 1.0) * ratio
            deviation = math.sqrt(expected * (1.0 + ratio))
            got = counts[kind]
            far = max(got, expected) > FACTOR * min(got, expected)
            if self.events and far and abs(got - expected) > CHANGE * deviation:
                return True
        return False

    def _draw(self, batch: Batch, truth: np.ndarray, in_window: float) -> None:
        """Take a sample of events and of tuples; `truth`: the `membership` of all events."""
        if self._pool is None:
            return
        self._pool.add(batch, truth, _ranges(len(batch), PARTS))
        near = _near(batch, in_window)
        rng = np.random.default_rng(self._draws)
        self._draws += 1
        self._followed.clear()
        _age(self._joint)
        _age(self._dense)
        for test, order in self._tests.items():
            kinds = [[self._kind_of[n] for n in sorted(leaves) if n in self._kind_of] for _, leaves in test.variables]
            found = self._pool.holding(test, kinds, order, near, rng)
            if found is not None:
                held, tried = self._held[test]
                self._held[test] = held / 2 + found, tried / 2 + TUPLES


def _near(batch: Batch, in_window: float) -> float:
    """The width that a tuple may have, in positions."""
    return in_window if batch.keys is None else math.inf


def _lower_bound(part: float, held: float) -> float:
    """A part of which so many were seen, less a standard deviation."""
    return part * (1.0 - 1.0 / math.sqrt(held + 2.0))


def _mix(table: dict[Any, tuple[float, float]], key: Any, value: float, tuples: float) -> None:
    """The average with the earlier value."""
    old, weight = table.get(key, (0.0, 0.0))
    table[key] = (old * weight + value * tuples) / (weight + tuples), weight + tuples


def _age(table: dict[Any, tuple[float, float]]) -> None:
    """Halve the weight of earlier measurements; drop those of few tuples."""
    for key, (value, weight) in list(table.items()):
        if weight < TUPLES:
            del table[key]
        else:
            table[key] = value, weight / 2.0


def _ranges(events: int, count: int) -> list[tuple[int, int]]:
    """The bounds of so many parts of a long batch; of a short one, those of all of it."""
    if events <= 2 * PARTS * PART:
        return [(0, events)]
    return [(start, start + PART) for start in np.linspace(0, events - PART, count).astype(np.int64).tolist()]


def _glances(batch: Batch) -> list[Batch]:
    """A short batch; of a long one that can be cut (`part(start, stop)`), `GLANCE` parts."""
    cut: Any = getattr(batch, "part", None)
    ranges = _ranges(len(batch), GLANCE)
    return [batch] if cut is None or len(ranges) == 1 else [cut(*bounds) for bounds in ranges]


def _order_of(test: Test, branch: Branch) -> int:
    """1 if the events of the first of two variables come before those of the second, -1 the other way, else 0."""
    if len(test.variables) != 2:
        return 0
    (_, left), (_, right) = test.variables
    for sign, pairs in ((1, itertools.product(left, right)), (-1, itertools.product(right, left))):
        if all(pair in branch.before for pair in pairs):
            return sign
    return 0
