"""The cost of each evaluator on a stream with given statistics: microseconds per event, roughly.

Let W be the events in a window and r the rate of a leaf. A set S of leaves has about

    card(S) = Π W r · joint(S) · (orders of S that the pattern allows) / |S|!

partial matches in a window, and |S| card(S) / W of them are made per event. The part of the tuples that pass all tests
within S, as measured (`Statistics.joint`), is joint(S); if none was measured, the product of their selectivities.

A chain pays for the candidates of each of its prefixes and for the instances they become; its best order is found over
all subsets. A tree goes by frequency alone, and lets an instance wait until every remaining leaf has candidates. Lazy
evaluators also pay for each event they buffer and each block they look at.

The compact structure pays for its runs. Those in state S differ in the values that the remaining tests read of them, so
there are min(card(S), card(leaves of S that such tests read)). If guards are operations on codes, an event that could
move these runs costs only the runs that one of its tests lets pass, as these are looked up. If guards are evaluated one
by one, it costs all of them. If a set of runs is kept in pools, it costs their depth, whatever passes
(`docs/algorithms.md`).

The constants were fitted to `benchmarks/lazy/experiments.py` and to queries over its stock and bar workloads, on one
machine; only their ratios matter. Those of guards as codes and of partitions were fitted to one half of the made-up
trades of `benchmarks/lazy/fit.py` and every other query over stock trades and bars. They were tried on the rest. A move
of a run has the cost of a stream whose values recur, as prices do, so that runs that agree are one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from spaseq.core.automata import CEA
from spaseq.core.engine.choice.shape import SUBSETS, Shape, bits
from spaseq.core.engine.choice.statistics import Statistics
from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.engine.program.normal_form import Branch

EVENT: Final = 0.04
"""An event pushed, whatever the evaluator."""
BUFFERED: Final = 0.2
"""An event put into the buffer for a leaf and out again."""
KEYED: Final = 0.2
"""The same event, in addition, if there are partitions."""
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
"""A live run whose guards are evaluated on an event, one by one."""
STEP: Final = 3.0
"""An event for which such runs are evaluated."""
KERNEL_EVENT: Final = 0.25
"""An event that some leaf can take, if guards are operations on codes."""
KERNEL_START: Final = 0.05
"""A run that begins there."""
KERNEL_RUN: Final = 0.01
"""A run that an event's codes select."""
KERNEL_ASK: Final = 0.08
"""A condition over more than two events, evaluated for such a run (2026-11-28: sums and squares of three prices)."""
KERNEL_MOVE: Final = 0.13
"""A run that an event's codes select, and that moves on to wait. Four times that if no value recurs."""
POOLED: Final = 0.03
"""A row of a pool that an event meets on its way down."""
CROWD: Final = 1.25
"""The factor on all of that for very many partitions, as their runs lie far apart."""
CROWDED: Final = 600.0
"""So many partitions make half of it."""
MATCH: Final = 0.003
"""A match of the compact structure."""
LAZY_MATCH: Final = 0.12
"""A match of a lazy evaluator."""
WHOLE: Final = 6.0
"""A guard about all events of a match at once, asked by a lazy evaluator."""
TIE: Final = 1.05
"""Orders whose costs differ by less are equally good."""
ROUNDS: Final = 10.0
"""At most so many events of an iteration, of which any may be in a match, as a power of two."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Microseconds per event of each evaluator, and the orders that `chain` is about."""

    compact: float
    chain: float
    tree: float
    orders: tuple[tuple[int, ...], ...]
    steps: float
    """The part of `chain` that depends on its orders."""

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
    """The costs on a stream like that of `statistics`; see `Costs.estimate`."""
    return Costs(plan).estimate(statistics, batch, chains, kernel)


class Costs:
    """The cost model of one plan. Keeps the parts that do not depend on the stream.

    `pooled_values`: for each state of `cea`, the values that a row of its pools has, 0 if it has none.
    """

    def __init__(
        self, plan: LazyPlan, cea: CEA | None = None, pooled_values: Callable[[int], int] | None = None
    ) -> None:
        self._guarded = plan.guarded
        self._shapes = [Shape(branch) for branch in plan.branches]
        self._pooled: list[dict[int, int]] = [{} for _ in self._shapes]
        if cea is not None and pooled_values is not None:
            self._pooled = [shape.find_pooled(cea, pooled_values) for shape in self._shapes]
        self._whole = [sum(t.whole for t in branch.tests) for branch in plan.branches]
        self._kinds = {leaf.predicates: leaf.number for branch in plan.branches for leaf in branch.all_leaves()}

    def estimate(
        self, statistics: Statistics, batch: float = BLOCK_EVENTS, chains: tuple[tuple[int, ...], ...] | None = None,
        kernel: bool = False,
    ) -> Estimate:  # fmt: skip
        """The costs on a stream like that of `statistics`, pushed in batches of about `batch` events.

        `chains`: the orders that `chain` is about, the best ones if not given. `kernel`: guards are operations on
        codes. O(2^n n) for branches of n leaves, up to `SUBSETS`.
        """
        size = min(max(batch, 1.0), BLOCK_EVENTS)
        compact = EVENT
        buffered = BUFFERED + KEYED * (statistics.partitions > 1)
        chain = tree = EVENT + buffered * sum(map(statistics.rate, self._kinds.values()))
        others = statistics.partitions - 1
        crowd = 1.0 + CROWD * others / (others + CROWDED)
        steps = 0.0
        orders: list[tuple[int, ...]] = []
        for number, shape in enumerate(self._shapes):
            sets = _Sets(shape, statistics)
            found = sets.matches()
            matches = found * (LAZY_MATCH + WHOLE * self._whole[number])
            places = sets.best_order() if chains is None else [shape.place[leaf] for leaf in chains[number]]
            orders.append(tuple(shape.numbers[i] for i in places))
            own = sets.chain(places)
            steps += own
            chain += own + matches + BLOCK * len(shape.numbers) / size
            tree += sets.tree() + matches + TREE_BLOCK * len(shape.numbers) / size
            compact += MATCH * found
            if self._guarded:
                compact += crowd * sets.kernel_runs(self._pooled[number]) if kernel else sets.runs()
        return Estimate(compact, chain, tree, tuple(orders), steps)

    def orders(self, statistics: Statistics) -> tuple[tuple[int, ...], ...]:
        """The chains that might be best, given how far off the selectivities of single tests may be."""
        found = []
        for shape in self._shapes:
            order = _Sets(shape, statistics, hopeful=True).best_order()
            found.append(tuple(shape.numbers[i] for i in order))
        return tuple(found)


class _Sets:
    """Cardinalities of the subsets of a branch's leaves, as bit masks over the leaves of its `Shape`."""

    def __init__(self, shape: Shape, statistics: Statistics, hopeful: bool = False) -> None:
        self.shape = shape
        self.window = max(statistics.events_in_window, 1.0)
        self.rates = [statistics.rate(n) for n in shape.numbers]
        self.selectivities = [statistics.selectivity(t, hopeful) for t in shape.tests]
        self.rounds = [
            (behind, factor)
            for (_, behind), factor in zip(shape.rounds, _rounds(shape.branch, statistics, self.window), strict=True)
        ]
        """The leaves behind each iteration, and the factor by which its rounds multiply the runs that have taken
        them."""
        self.absent = [(left, right, statistics.rate_of(kind)) for left, right, _, kind in shape.absent]
        self.known: dict[int, float] = {}
        """The part of the tuples that pass all tests within a set, if it was measured."""
        for leaves, part in statistics.joint(hopeful).items():
            mask = shape.mask(leaves)
            if mask is not None:
                self.known[mask] = part
        self.dense = {(shape.mask(before), shape.place.get(leaf)): d for (before, leaf), d in statistics.dense.items()}
        """By how much more events of a leaf those that pass the tests have in their windows than all tuples."""
        self._joint: dict[int, float] = {0: 1.0}
        self._many: dict[int, float] = {0: 1.0}
        self._untested: dict[int, float] = {}
        self._steps: dict[tuple[int, int], float] = {}

    def joint(self, mask: int) -> float:
        """The part of the tuples of `mask` that pass all tests within it."""
        found = self._joint.get(mask)
        if found is None:
            found = self.known.get(mask) or self._product_of_tests(mask)
            self._joint[mask] = found
        return found

    def _product_of_tests(self, mask: int) -> float:
        """The measured value of the largest set within `mask`, and the rest as if tests were independent."""
        inside = [known for known in self.known if known & mask == known]
        if not inside:
            rest = mask & (mask - 1)
            part = self.joint(rest)
            for test in self.shape.decided(rest, (mask ^ rest).bit_length() - 1):
                part *= self.selectivities[test]
            return part
        base = max(inside, key=int.bit_count)
        tests = set(self.shape.within(mask)) - set(self.shape.within(base))
        return self.known[base] * math.prod(self.selectivities[t] for t in tests)

    def untested(self, mask: int) -> float:
        """Tuples of `mask` in a window, in an order that the pattern allows."""
        found = self._untested.get(mask)
        if found is None:
            allowed = self.shape.allowed(mask) / self.window ** self.shape.near(mask)
            found = self._untested[mask] = self._product(mask) * allowed
        return found

    def _product(self, mask: int) -> float:
        found = self._many.get(mask)
        if found is None:
            rest = mask & (mask - 1)
            found = self._product(rest) * self.window * self.rates[(mask ^ rest).bit_length() - 1]
            self._many[mask] = found
        return found

    def card(self, mask: int) -> float:
        """Partial matches of this set in a window."""
        return self.untested(mask) * self.joint(mask)

    def made(self, after: int) -> float:
        """Partial matches of this set that are made per event."""
        return after.bit_count() * self.card(after) / self.window

    # The lazy evaluators

    def step(self, before: int, leaf: int) -> float:
        """The cost per event of extending the partial matches of `before` by `leaf`."""
        found = self._steps.get((before, leaf))
        if found is None:
            after = before | 1 << leaf
            candidates = self.joint(before) * self.dense.get((before, leaf), 1.0)
            tuples = after.bit_count() * self.untested(after) / self.window
            found = self._steps[before, leaf] = tuples * (CANDIDATE * candidates + INSTANCE * self.joint(after))
        return found

    def chain(self, order: list[int]) -> float:
        """The cost per event of a chain, without its blocks."""
        total, mask = 0.0, 0
        for leaf in order:
            total += self.step(mask, leaf)
            mask |= 1 << leaf
        return total

    def tree(self) -> float:
        """The cost per event of a tree, without its blocks."""
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
        return sorted(range(len(self.rates)), key=lambda i: (self.rates[i], -self.shape.behind[i]))

    def best_order(self) -> list[int]:
        """The cheapest order of all; the cheapest step after step if the leaves are too many."""
        count = len(self.rates)
        if count > SUBSETS:
            return self._greedy()
        behind = self.shape.behind
        best: list[tuple[float, list[int]]] = [(0.0, [])]
        for mask in range(1, 1 << count):
            options = []
            for leaf in bits(mask):
                rest = mask & ~(1 << leaf)
                options.append((best[rest][0] + self.step(rest, leaf), leaf))
            cost, leaf = min(options)
            good = [(c, i) for c, i in options if c <= TIE * cost]
            if len(good) > 1:
                # Of about equal costs, leaves first that end the pattern: those after them wait for nothing.
                orders = [(c, [*best[mask & ~(1 << i)][1], i]) for c, i in good]
                best.append(min(orders, key=lambda o: [-behind[i] for i in o[1]]))
            else:
                best.append((cost, [*best[mask & ~(1 << leaf)][1], leaf]))
        return best[-1][1]

    def _greedy(self) -> list[int]:
        order: list[int] = []
        mask = 0
        left = set(range(len(self.rates)))
        while left:
            leaf = min(left, key=lambda i: (self.step(mask, i), -self.shape.behind[i], i))
            order.append(leaf)
            left.remove(leaf)
            mask |= 1 << leaf
        return order

    # The compact structure

    def matches(self) -> float:
        """Matches per event."""
        return self.made(self.shape.all) * self.repeated(self.shape.all)

    def repeated(self, mask: int) -> float:
        """The number of runs or matches for each choice of `mask`, as iterations have rounds before the last."""
        return math.prod(factor for behind, factor in self.rounds if behind & mask)

    def configurations(self, mask: int) -> float:
        """Different runs that have taken `mask`: they differ in the values that the remaining tests read of them."""
        read = self.shape.read(mask)
        return min(self.card(mask), self.card(read) if read else 1.0) * self.repeated(mask)

    def strays(self, mask: int) -> float:
        """Events per event that runs in `mask` are compared with, as they must not come."""
        return sum(rate for left, right, rate in self.absent if left & mask == left and not right & mask)

    def runs(self) -> float:
        """The cost of registers per event if guards are evaluated one by one."""
        total = STEP * min(1.0, sum(self.rates))
        for mask, able in self.shape.moving():
            asked = sum(self.rates[i] for i in able) + self.strays(mask)
            total += RUN * self.configurations(mask) * min(1.0, asked)
        return total

    def kernel_runs(self, pooled: Mapping[int, int]) -> float:
        """The same if guards are operations on codes. `pooled`: as of `Shape.find_pooled`."""
        preceding = self.shape.preceding
        total = KERNEL_EVENT * min(1.0, sum(self.rates))
        total += KERNEL_START * sum(r for r, before in zip(self.rates, preceding, strict=True) if not before)
        for mask, able in self.shape.moving():
            runs = self.configurations(mask)
            if mask in pooled:
                met = _depth(runs, pooled[mask])
                entered = sum(self.rates[i] for i in self.shape.last(mask))
                total += POOLED * met * (entered + sum(self.rates[i] for i in able) + self.strays(mask))
                continue
            total += KERNEL_RUN * runs * self.strays(mask)
            for leaf in able:
                after = mask | 1 << leaf
                tests = self.shape.decided(mask, leaf)
                pairs = [t for t in tests if len(self.shape.tests[t].leaves) == 2]
                selected = min((self.selectivities[t] for t in pairs), default=1.0)
                asked = KERNEL_ASK * (len(tests) - len(pairs))
                moving = 0.0 if after == self.shape.all else min(1.0, self.joint(after) / self.joint(mask))
                total += self.rates[leaf] * runs * ((KERNEL_RUN + asked) * selected + KERNEL_MOVE * moving)
        return total


def _depth(rows: float, values: int) -> float:
    """About as many rows of a pool are met by an event: levels of a tree by one value, or what a k-d tree needs."""
    return math.log2(1.0 + rows) if values == 1 else values * float(rows) ** (1.0 - 1.0 / values)


def _rounds(branch: Branch, statistics: Statistics, window: float) -> list[float]:
    """By how much the rounds of each iteration multiply matches: any of the events between may be in them."""
    found = []
    for rounds in branch.rounds:
        between = 0.0
        for leaf in (leaf for inner in rounds.branches for leaf in inner.leaves):
            held = math.prod(statistics.selectivity(t) for t in branch.tests if leaf.number in t.leaves and not t.whole)
            between += window * statistics.rate(leaf.number) / (len(branch.leaves) + 1) * held
        found.append(1.0 if rounds.adjacent else 2.0 ** min(between, ROUNDS))
    return found
