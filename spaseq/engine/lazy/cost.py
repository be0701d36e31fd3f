"""What each evaluator would cost on a stream with given statistics: microseconds per event, roughly.

Let W be the events in a window and r the rate of a leaf. A set S of leaves has about

    card(S) = Π W r · Π selectivity(tests within S) · (orders of S that the pattern allows) / |S|!

partial matches in a window, and |S| card(S) / W of them are made per event. A chain pays for the candidates of each of
its prefixes and for the instances they become; its best order is found over all subsets. A tree goes by frequency
alone, and lets an instance wait until every leaf that is left has candidates. Lazy evaluators pay for each event they
buffer and each block they look at, too.

The compact structure pays for its runs: those in state S differ in what the tests still to come read of them, so there
are min(card(S), card(leaves of S that such tests read)). Where guards are operations on codes an event that could move
them costs those that one of its tests lets pass, as these are looked up; where guards are asked one by one, all.

The constants were fitted to `benchmarks/lazy.py` and to queries over its stock and bar workloads, on one machine; only
their ratios matter.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spaseq.engine.lazy.normal import Branch, Rounds
from spaseq.engine.lazy.planning import LazyPlan
from spaseq.engine.statistics import Statistics

__all__ = ["Estimate", "estimate"]

EVENT: Final = 0.04
"""An event pushed, whatever the evaluator."""
BUFFERED: Final = 0.2
"""An event put into the buffer for a leaf and out again."""
CANDIDATE: Final = 0.035
"""A candidate looked at by a lazy evaluator, conditions included."""
INSTANCE: Final = 0.1
"""An instance made."""
COUNTED: Final = 0.1
"""A tree's instance that counts the candidates of one leaf."""
BLOCK: Final = 40.0
"""A chain's leaf asked about a block of events."""
TREE_BLOCK: Final = 75.0
"""A tree's."""
BLOCK_EVENTS: Final = 4096
RUN: Final = 1.5
"""A live run that is asked whether it moves on an event, where guards are asked one by one."""
STEP: Final = 3.0
"""An event that such runs are asked about."""
KERNEL_RUN: Final = 0.02
"""A live run that an event's codes select."""
KERNEL_START: Final = 0.25
"""A run that begins where guards are operations on codes."""
KERNEL_MOVE: Final = 0.13
"""A run that an event's codes select, and that moves."""
MATCH: Final = 0.015
"""A match of the compact structure."""
LAZY_MATCH: Final = 0.12
"""A match of a lazy evaluator."""
WHOLE: Final = 6.0
"""A guard about all events of a match at once, asked by a lazy evaluator."""
SUBSETS: Final = 12
"""Leaves of a branch up to which all orders are compared."""
ROUNDS: Final = 10.0
"""At most so many events of an iteration, of which any may be in a match, as a power of two."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Microseconds per event of each evaluator, and the orders that `chain` is about."""

    compact: float
    chain: float
    tree: float
    orders: tuple[tuple[int, ...], ...]

    @property
    def best(self) -> str:
        """The name of the cheapest."""
        return min(("compact", "chain", "tree"), key=lambda name: getattr(self, name))

    def __str__(self) -> str:
        parts = [f"{name} {getattr(self, name):,.2f}" for name in ("compact", "chain", "tree")]
        return f"{', '.join(parts)} µs per event"


def estimate(
    plan: LazyPlan, statistics: Statistics, batch: float = BLOCK_EVENTS,
    chains: tuple[tuple[int, ...], ...] | None = None, kernel: bool = False,
) -> Estimate:  # fmt: skip
    """The costs on a stream like that of `statistics`, pushed in batches of about `batch` events.

    `chains`: the orders that `chain` is about, the best ones if not given. `kernel`: guards are operations on codes.
    """
    size = min(max(batch, 1.0), BLOCK_EVENTS)
    compact = EVENT
    chain = tree = EVENT + BUFFERED * _buffered(plan, statistics)
    orders: list[tuple[int, ...]] = []
    for number, branch in enumerate(plan.branches):
        sets = _Sets(branch, statistics)
        matches = sets.matches() * (LAZY_MATCH + WHOLE * sum(t.whole for t in branch.tests))
        if chains is None:
            best, order = sets.best_order()
        else:
            order = chains[number]
            best = sets.chain([sets.numbers.index(leaf) for leaf in order])
        orders.append(order)
        chain += best + matches + BLOCK * len(branch.leaves) / size
        tree += sets.tree() + matches + TREE_BLOCK * len(branch.leaves) / size
        compact += MATCH * sets.matches()
        if plan.guarded:
            compact += sets.kernel_runs() if kernel else sets.runs()
    return Estimate(compact, chain, tree, tuple(orders))


def _buffered(plan: LazyPlan, statistics: Statistics) -> float:
    """Entries into the buffer per event: one for each kind of leaf."""
    kinds = {leaf.predicates: leaf.number for branch in plan.branches for leaf in branch.all_leaves()}
    return sum(statistics.rate(number) for number in kinds.values())


class _Sets:
    """Cardinalities of the subsets of a branch's leaves, as bit masks over `numbers`."""

    def __init__(self, branch: Branch, statistics: Statistics) -> None:
        self.branch = branch
        self.numbers = [leaf.number for leaf in branch.leaves]
        place = {n: i for i, n in enumerate(self.numbers)}
        self.window = max(statistics.events_in_window, 1.0)
        self.rates = [statistics.rate(n) for n in self.numbers]
        self.preceding = [
            sum(1 << place[a] for a, b in branch.before if b == n and a in place) for n in self.numbers
        ]
        self.tests = [
            (sum(1 << place[n] for n in t.leaves if n in place), statistics.selectivity(t))
            for t in branch.tests if not t.whole
        ]  # fmt: skip
        # Contiguity leaves one event of a window.
        self.adjacent = [
            sum(1 << place[n] for n in a.left | a.right if n in place) for a in branch.adjacent
        ]
        self.rounds = [
            (sum(1 << place[b] for a, b in branch.before if a == r.number and b in place), factor)
            for r, factor in _rounds(branch, statistics, self.window)
        ]  # fmt: skip
        """The leaves behind each iteration, and by how much its rounds multiply what has taken them."""
        self.absent = [
            (_mask(absence.left, place), _mask(absence.right, place), _mask(a.test.leaves, place),
             statistics.rate_of(a.predicates))
            for absence in branch.absences for a in absence.alternatives if a.test is not None
        ]  # fmt: skip
        """What is under a condition and must not come: between which leaves, with what it is compared, its rate."""
        self.card = functools.cache(self._card)
        self.step = functools.cache(self._step)
        self.extensions = functools.cache(self._extensions)

    @property
    def all(self) -> int:
        """The set of all leaves."""
        return (1 << len(self.numbers)) - 1

    def _extensions(self, mask: int) -> int:
        """Orders of the leaves in `mask` that the pattern allows."""
        if not mask:
            return 1
        last = [i for i in _bits(mask) if not any(self.preceding[j] >> i & 1 for j in _bits(mask))]
        return sum(self.extensions(mask & ~(1 << i)) for i in last)

    def _card(self, mask: int) -> float:
        return self._untested(mask) * math.prod(s for need, s in self.tests if need and need & mask == need)

    def _untested(self, mask: int) -> float:
        leaves = _bits(mask)
        many = math.prod(self.window * self.rates[i] for i in leaves)
        near = sum(need & mask == need for need in self.adjacent)
        allowed = self.extensions(mask) / math.factorial(len(leaves)) if len(leaves) <= SUBSETS else 1.0
        return float(many * allowed / self.window**near)

    def decided(self, before: int, leaf: int) -> list[float]:
        """The selectivities of the tests that `leaf` completes."""
        after = before | 1 << leaf
        return [s for need, s in self.tests if need & after == need and need >> leaf & 1]

    def made(self, after: int) -> float:
        """Partial matches of this set that are made per event."""
        return len(_bits(after)) * self.card(after) / self.window

    # The lazy evaluators

    def _step(self, before: int, leaf: int) -> float:
        """What it costs per event to extend the partial matches of `before` by `leaf`."""
        made = self.made(before | 1 << leaf)
        return CANDIDATE * made / max(math.prod(self.decided(before, leaf)), 1e-9) + INSTANCE * made

    def chain(self, order: list[int]) -> float:
        """What a chain costs per event, but for its blocks."""
        total, mask = 0.0, 0
        for leaf in order:
            total += self.step(mask, leaf)
            mask |= 1 << leaf
        return total

    def tree(self) -> float:
        """What a tree costs per event, but for its blocks."""
        total, mask = 0.0, 0
        order = self.by_rate()
        for turn, leaf in enumerate(order):
            left = order[turn:]
            ready = math.prod(1.0 - math.exp(-self.window * self.rates[i]) for i in left)
            total += COUNTED * len(left) * (self.made(mask) if mask else 0.0) + ready * self.step(mask, leaf)
            mask |= 1 << leaf
        return total

    def by_rate(self) -> list[int]:
        """The rarest first; of equally rare ones the last in a sequence."""
        return sorted(range(len(self.numbers)), key=lambda i: (self.rates[i], -self.preceding[i].bit_count()))

    def best_order(self) -> tuple[float, tuple[int, ...]]:
        """The cheapest order of all, or by rate where the leaves are too many: O(2^n n)."""
        count = len(self.numbers)
        if count > SUBSETS:
            order = self.by_rate()
            return self.chain(order), tuple(self.numbers[i] for i in order)
        best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        for mask in range(1, 1 << count):
            options = []
            for leaf in _bits(mask):
                cost, before = best[mask & ~(1 << leaf)]
                options.append((cost + self.step(mask & ~(1 << leaf), leaf), (*before, leaf)))
            # Of about equal costs, leaves first that end the pattern: those after them wait for nothing.
            best[mask] = min(options, key=lambda o: (_about(o[0]), [-self.preceding[i].bit_count() for i in o[1]]))
        cost, found = best[self.all]
        return cost, tuple(self.numbers[i] for i in found)

    # The compact structure

    def matches(self) -> float:
        """Matches per event."""
        return self.made(self.all) * self.repeated(self.all)

    def repeated(self, mask: int) -> float:
        """How many runs or matches there are for each choice of `mask`, as iterations have rounds before the last."""
        return math.prod(factor for behind, factor in self.rounds if behind & mask)

    def configurations(self, mask: int) -> float:
        """Different runs that have taken `mask`: they differ in what tests still to come read of them."""
        read = 0
        for need, _ in self.tests:
            if need & ~mask:
                read |= need & mask
        for _, right, compared, _ in self.absent:
            if right & ~mask:
                read |= compared & mask
        return min(self.card(mask), self.card(read) if read else 1.0) * self.repeated(mask)

    def strays(self, mask: int) -> float:
        """Events per event that runs in `mask` are compared with, as they must not come."""
        return sum(rate for left, right, _, rate in self.absent if left & mask == left and not right & mask)

    def moving(self) -> list[tuple[int, list[int]]]:
        """The sets that a run may have taken, each with the leaves that may be next."""
        count = len(self.numbers)
        if count > SUBSETS:
            return [((1 << i) - 1, [i]) for i in range(1, count)]
        found = []
        for mask in range(1, self.all):
            if any(self.preceding[i] & ~mask for i in _bits(mask)):
                continue  # no run takes an event before those that precede it
            found.append((mask, [i for i in range(count) if not mask >> i & 1 and not self.preceding[i] & ~mask]))
        return found

    def runs(self) -> float:
        """What registers cost per event where guards are asked one by one."""
        total = STEP * min(1.0, sum(self.rates))
        for mask, able in self.moving():
            asked = sum(self.rates[i] for i in able) + self.strays(mask)
            total += RUN * self.configurations(mask) * min(1.0, asked)
        return total

    def kernel_runs(self) -> float:
        """The same where guards are operations on codes."""
        total = KERNEL_START * sum(r for r, before in zip(self.rates, self.preceding, strict=True) if not before)
        for mask, able in self.moving():
            runs = self.configurations(mask)
            total += KERNEL_RUN * runs * self.strays(mask)
            for leaf in able:
                tests = self.decided(mask, leaf)
                selected = runs * min(tests, default=1.0)
                moving = runs * math.prod(tests)
                total += self.rates[leaf] * (KERNEL_RUN * selected + KERNEL_MOVE * moving)
        return total


def _rounds(branch: Branch, statistics: Statistics, window: float) -> list[tuple[Rounds, float]]:
    """By how much the rounds of each iteration multiply matches: any of the events between may be in them."""
    found = []
    for rounds in branch.rounds:
        between = 0.0
        for leaf in (leaf for inner in rounds.branches for leaf in inner.leaves):
            held = math.prod(statistics.selectivity(t) for t in branch.tests if leaf.number in t.leaves and not t.whole)
            between += window * statistics.rate(leaf.number) / (len(branch.leaves) + 1) * held
        found.append((rounds, 1.0 if rounds.adjacent else 2.0 ** min(between, ROUNDS)))
    return found


def _mask(leaves: frozenset[int], place: Mapping[int, int]) -> int:
    return sum(1 << place[n] for n in leaves if n in place)


def _about(cost: float) -> int:
    """Steps of a tenth."""
    return round(10 * math.log(max(cost, 1e-9)))


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
