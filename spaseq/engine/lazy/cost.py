"""What each evaluator would cost on a stream with given statistics: microseconds per event, roughly.

Let W be the events in a window and r the rate of a leaf. A set S of leaves has about

    card(S) = Π W r · Π selectivity(tests within S) · (orders of S that the pattern allows) / |S|!

partial matches in a window, and |S| card(S) / W of them are made per event. A chain pays for the candidates of each of
its prefixes and for the instances they become; its best order is found over all subsets. A tree goes by frequency
alone. The compact structure pays a constant for each event, and with registers for each live run whose state can move:
those are the partial matches of the prefixes in sequence, as their registers usually differ. Such a run costs little
where guards are operations on codes, and much where they are asked one by one.

The constants are those of one machine (`benchmarks/lazy.py`); only their ratios matter.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

from spaseq.engine.lazy.normal import Branch
from spaseq.engine.lazy.planning import LazyPlan
from spaseq.engine.statistics import Statistics

__all__ = ["Estimate", "estimate"]

EVENT: Final = 0.4
"""An event pushed, whatever the evaluator."""
CANDIDATE: Final = 0.1
"""A candidate looked at by a lazy evaluator, conditions included."""
INSTANCE: Final = 0.3
"""An instance made."""
BLOCK: Final = 250.0
"""A state asked about a block of events."""
BLOCK_EVENTS: Final = 4096
RUN: Final = 4.0
"""A live run that is asked whether it moves on an event, where guards are asked one by one."""
KERNEL_RUN: Final = 0.12
"""The same where guards are operations on codes (`spaseq.engine.guard_run`)."""
MATCH: Final = 2.0
"""A match, for a lazy evaluator; the compact structure's cost next to nothing."""
TREE: Final = 3.0
"""A tree asks about every leaf that is left, where a chain asks about one."""
SUBSETS: Final = 12
"""Leaves of a branch up to which all orders are compared."""


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
    compact = chain = tree = EVENT
    orders: list[tuple[int, ...]] = []
    for number, branch in enumerate(plan.branches):
        sets = _Sets(branch, statistics)
        overhead = BLOCK * len(branch.leaves) / size + MATCH * sets.matches()
        if chains is None:
            best, order = sets.best_order()
        else:
            order = chains[number]
            best = sets.chain([sets.numbers.index(leaf) for leaf in order])
        orders.append(order)
        chain += best + overhead
        tree += TREE * sets.chain(sets.by_rate()) + 1.5 * overhead
        compact += sets.runs(KERNEL_RUN if kernel else RUN) if plan.guarded else 0.0
    return Estimate(compact, chain, tree, tuple(orders))


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
        self.card = functools.cache(self._card)
        self.extensions = functools.cache(self._extensions)

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

    def step(self, before: int, leaf: int) -> float:
        """What it costs per event to extend the partial matches of `before` by `leaf`."""
        after = before | 1 << leaf
        new = [s for need, s in self.tests if need & after == need and need >> leaf & 1]
        made = len(_bits(after)) * self.card(after) / self.window
        return CANDIDATE * made / max(math.prod(new), 1e-9) + INSTANCE * made

    def chain(self, order: list[int]) -> float:
        """What a chain costs per event, but for its blocks."""
        total, mask = 0.0, 0
        for leaf in order:
            total += self.step(mask, leaf)
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
            # Of equal costs, leaves first that end the pattern: those after them wait for nothing.
            best[mask] = min(options, key=lambda o: (round(o[0], 9), [-self.preceding[i].bit_count() for i in o[1]]))
        cost, found = best[(1 << count) - 1]
        return cost, tuple(self.numbers[i] for i in found)

    def matches(self) -> float:
        """Matches per event."""
        return len(self.numbers) * self.card((1 << len(self.numbers)) - 1) / self.window

    def runs(self, cost: float) -> float:
        """What registers cost per event: live runs by the states they are in, times what can move them."""
        count = len(self.numbers)
        if count > SUBSETS:
            return sum(cost * self.card((1 << i + 1) - 1) for i in range(count - 1))
        total = 0.0
        for mask in range(1, (1 << count) - 1):
            if any(self.preceding[i] & ~mask for i in _bits(mask)):
                continue  # no run takes an event before those that precede it
            able = [i for i in range(count) if not mask >> i & 1 and not self.preceding[i] & ~mask]
            total += cost * self.card(mask) * min(1.0, sum(self.rates[i] for i in able))
        # Iterations multiply runs; how much is not known.
        return total * 4 ** len(self.branch.rounds)


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
