"""Lazy evaluation of a program ([Lazy]): the rare events first, the frequent ones from a buffer.

`LazyEvaluator` has the face of `spaseq.core.engine.Evaluator` and reports the same matches for the same batches, in
order of their ends. It needs a pattern in disjunctive normal form (`spaseq.core.engine.program.normal_form`), selection
ALL, and guards that are conditions on tuples (`spaseq.core.engine.program.guard_conditions`); `plan_of` names the parts
that it does not support.

Cost per event: its predicates, and for each instance that waits for its kind a binary search; then the tuples that the
order of leaves selects. Memory: the events of a window that some leaf can take, and the waiting instances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spaseq.core.engine.lazy.automaton import Automaton
from spaseq.core.engine.lazy.buffers import SHIFT
from spaseq.core.engine.lazy.output import Found
from spaseq.core.engine.lazy.plan import BranchPlan, Kinds
from spaseq.core.engine.lazy.space import Space, Steps, Trace
from spaseq.core.engine.program.batch_order import check_order, last_place
from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.program.normal_form import Test, membership, tests_of
from spaseq.core.engine.program.window import Lows
from spaseq.core.engine.runs.base import grow
from spaseq.core.engine.runs.evaluation import Evaluation
from spaseq.core.engine.runs.evaluator import open_against, restore_ending
from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import apart, in_order
from spaseq.core.pattern import Batch, Predicate
from spaseq.core.snapshot import expect
from spaseq.core.watch import check

if TYPE_CHECKING:
    from spaseq.core.engine.program.program import Program

BLOCK: Final = 4096
"""Events that are buffered before instances look at them: a batch is taken in such steps."""

Orders = tuple[tuple[int, ...] | None, ...]
"""For each branch the order of its chain, or None for a tree."""


class LazyEvaluator(Evaluation):
    """One evaluation of `plan` under the window and budgets of `program`."""

    def __init__(
        self, program: Program, plan: LazyPlan, *, tree: bool = False, orders: Orders | None = None,
        first_chance: bool = True, trace: bool = False,
    ) -> None:  # fmt: skip
        """`orders`: the chains; by ascending frequency in the first batch if not given. `tree`: trees instead.

        `first_chance`, `trace`: see `BranchPlan`, `Trace`.
        """
        super().__init__(program)
        open_against(self)
        self._plan = plan
        self._kinds: Kinds = {}
        self._plans = [BranchPlan(branch, self._kinds, first_chance) for branch in plan.branches]
        self._marks = [frozenset(x.number for x in b.all_leaves() if x.variables) for b in plan.branches]
        self._unique = len(plan.branches) == 1 and plan.branches[0].is_unique
        self._tree = tree
        self._given = orders
        self._first_chance = first_chance
        self._tests = tuple(dict.fromkeys(test for branch in plan.branches for test in tests_of(branch)))
        self._trace = Trace() if trace else None
        self._last: tuple[int, Any] | None = None
        self._pushed = 0
        self._started = False
        self._looked_at: tuple[Batch | None, np.ndarray] = (None, np.zeros((0, 0), bool))
        self.events_in_window: float | None = None
        """In the last batch, as `Reach.in_window`; None before there is one, and with partitions."""

    # Pushing

    def kinds_in(self, batch: Batch) -> dict[frozenset[Predicate], int]:
        """The number of events of each kind in a batch. If the batch is the next to be pushed, it is evaluated only
        once."""
        self._looked_at = (batch, self._truth(batch))
        counts = [int(np.count_nonzero(row)) for row in self._looked_at[1]]
        return dict(zip(self._kinds, counts, strict=True))

    @property
    def last_position(self) -> int | None:
        return None if self._last is None else self._last[0]

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for people."""
        if not self._started:
            return {}
        space = self._space
        return {
            "buffered_events": len(space.rows),
            "buffer_insertions": sum(p.inserted for p in space.postings),
            "waiting_instances": sum(map(len, self._automata)),
            "instances_made": space.instances,
            "searches": space.searches,
            "predicate_evaluations": space.evaluations,
            "states": sum(len(a.states) for a in self._automata),
            "lazy_bytes": self._nbytes,
        }

    def tried(self) -> tuple[dict[Test, tuple[int, int]], Steps]:
        """The counters since the last call: `Space.tried` and `Space.steps`."""
        if not self._started:
            return {}, {}
        space = self._space
        found = space.tried, space.steps
        space.tried, space.steps = {}, {}
        return found

    @property
    def trace(self) -> Trace | None:
        """The trace, if the evaluator was made with `trace`."""
        return self._trace

    @property
    def orders(self) -> Orders:
        """The order of each branch's chain; None for a tree. Empty before the first event."""
        return tuple(a.order for a in self._automata) if self._started else ()

    # The stages of a block

    def _start(self, batch: Batch, truth: np.ndarray) -> None:
        counts = truth.sum(axis=1).tolist()
        orders = self._given
        if orders is None:
            orders = tuple(None if self._tree else by_frequency(plan, counts) for plan in self._plans)
        self._begin(batch.keys is not None, orders)

    def _begin(self, keyed: bool, orders: Orders) -> None:
        """Make the state before the first event. `keyed`: True if there are partitions."""
        window, registers = self.program.window, self.program.registers
        self._own_windows = keyed and window.per_partition
        memory = registers.conditions().memory() if self._plan.guarded else None  # type: ignore[union-attr]
        self._space = Space(len(self._kinds), keyed, self._own_windows, memory)
        self._space.trace = self._trace
        self._lows = Lows(window, keyed)
        self.lows = Lows(window, keyed)
        self._automata = [Automaton(plan, order) for plan, order in zip(self._plans, orders, strict=True)]
        self._started = True

    def _complete(self, batch: Batch) -> Iterator[MatchBatch]:
        self._last = check_order(batch, self._last)
        truth = self._truth(batch)
        self._looked_at = (None, truth)
        if not self._started:
            self._start(batch, truth)
        sequence = np.arange(self._pushed, self._pushed + len(batch), dtype=np.int64)
        self._pushed += len(batch)
        lows = self._lows_of(batch, sequence)
        if batch.keys is None:
            sizes = (sequence - lows).astype(np.float64)
            self.events_in_window = math.sqrt(float(sizes @ sizes) / len(sizes)) + 1.0
        ordinals = self._ordinals(batch, sequence)
        kept: np.ndarray = np.asarray(truth.any(axis=0))
        for start in range(0, len(batch), BLOCK):
            check()
            stop = min(start + BLOCK, len(batch))
            rows = start + np.flatnonzero(kept[start:stop])
            fresh = self._space.rows.end
            self._append(batch, rows, truth, sequence, ordinals, lows)
            self._raise_counts(batch, slice(start, stop))
            if len(rows):
                found = self._advance(batch, rows, fresh)
                if len(found):
                    yield found
            self._evict(batch, slice(start, stop), lows)

    def _first_live(self, batch: Batch) -> np.ndarray:
        assert self.lows is not None
        places = self.program.window.places(batch)
        return self.lows.of(np.asarray(batch.positions, np.int64), places, batch.keys)[0]

    def _truth(self, batch: Batch) -> np.ndarray:
        """The membership of events in kinds: bool (kinds, n)."""
        if self._looked_at[0] is batch:
            return self._looked_at[1]
        return membership(tuple(self._kinds), batch)

    def _lows_of(self, batch: Batch, sequence: np.ndarray) -> np.ndarray:
        """The first event in a window that ends with each, by number."""
        keys = None if batch.keys is None else np.asarray(batch.keys, np.int64)
        return self._lows.of(sequence, self.program.window.places(batch), keys)[0]

    def _ordinals(self, batch: Batch, sequence: np.ndarray) -> np.ndarray:
        """The number of each event in its partition; without a partition, any."""
        if batch.keys is None:
            return sequence
        keys = np.asarray(batch.keys, np.int64)
        self._grow(int(keys.max()) + 1)
        counts = self._space.counts
        order = in_order(keys)
        own = keys[order]
        first = np.searchsorted(own, own)
        ordinals = np.empty(len(keys), np.int64)
        ordinals[order] = np.arange(len(keys)) - first + np.where(own >= 0, counts[own], 0)
        return ordinals

    def _grow(self, keys: int) -> None:
        self._space.counts = grow(self._space.counts, keys)
        if self._own_windows:
            self._space.floors = grow(self._space.floors, keys)

    def _raise_counts(self, batch: Batch, rows: slice) -> None:
        counts = self._space.counts
        if batch.keys is None:
            counts[0] = counts[0] + (rows.stop - rows.start)
        else:
            keys = np.asarray(batch.keys)[rows]
            np.add.at(counts, keys[keys >= 0], 1)

    def _append(
        self, batch: Batch, rows: np.ndarray, truth: np.ndarray, sequence: np.ndarray, ordinals: np.ndarray,
        lows: np.ndarray,
    ) -> None:  # fmt: skip
        space = self._space
        if not len(rows):
            return
        handles = space.rows.end + np.arange(len(rows))
        if int(handles[-1]) >= (1 << SHIFT) - 2:
            raise BudgetExceeded("events of one lazy evaluation", 1 << SHIFT, int(handles[-1]), "events")
        keys = np.zeros(len(rows), np.int64) if batch.keys is None else np.asarray(batch.keys, np.int64)[rows]
        table = space.rows
        table.sequence.append(sequence[rows])
        table.position.append(np.asarray(batch.positions, np.int64)[rows])
        table.ordinal.append(ordinals[rows])
        table.key.append(keys)
        table.low.append(table.base + np.searchsorted(table.sequence.values, lows[rows]))
        for number, postings in enumerate(space.postings):
            there = truth[number, rows]
            postings.append(handles[there], keys[there])
        if space.memory is not None:
            space.memory.append(batch, rows)

    def _advance(self, batch: Batch, rows: np.ndarray, fresh: int) -> MatchBatch:
        keys = np.zeros(1, np.int64) if batch.keys is None else apart(np.asarray(batch.keys, np.int64)[rows])
        found: list[Found] = []
        used = 0
        for automaton, marks in zip(self._automata, self._marks, strict=True):
            for partial in automaton.advance(self._space, keys, fresh):
                found.append(Found.of(self._space, automaton.plan, partial, marks, self._plan.strict))
                used += found[-1].nbytes
                self._check("output_bytes", used)
        return Found.together(found, self._unique) if found else MatchBatch()

    def _evict(self, batch: Batch, rows: slice, lows: np.ndarray) -> None:
        """Forget the events that no window from now on holds; then check the budgets."""
        space, table = self._space, self._space.rows
        ends = table.base + np.searchsorted(table.sequence.values, lows[rows])
        if self._own_windows:
            assert batch.keys is not None
            keys = np.asarray(batch.keys)[rows]
            space.floors[keys[keys >= 0]] = ends[keys >= 0]
        else:
            space.floors[0] = ends[-1]
        for automaton in self._automata:
            automaton.evict(space)
        if self._own_windows:
            self._compact()
        else:
            floor = int(space.floors[0])
            dropped = table.evict_before(floor)
            if dropped:
                for postings in space.postings:
                    postings.evict_before(floor)
                if space.memory is not None:
                    space.memory.drop(dropped)
        self._check("live_runs", sum(map(len, self._automata)), "runs")
        self._check("arena_bytes", self._nbytes)

    def _compact(self) -> None:
        """Partitions with windows of their own: forget events when less than half of those kept are in a window."""
        space, table = self._space, self._space.rows
        handles = table.base + np.arange(len(table))
        live = handles >= space.floors[table.key.values]
        kept = np.flatnonzero(live)
        if len(table) < 1024 or 2 * len(kept) > len(table):
            return
        base = table.base
        renumber = table.keep(kept)
        for postings in space.postings:
            postings.keep(live, base, renumber)
        for automaton in self._automata:
            automaton.renumber(renumber)
        space.floors = renumber(space.floors)
        if space.memory is not None:
            space.memory.keep(kept)

    @property
    def _nbytes(self) -> int:
        space = self._space
        buffers = space.rows.nbytes + sum(p.codes.nbytes for p in space.postings)
        return buffers + sum(a.nbytes for a in self._automata) + (0 if space.memory is None else space.memory.nbytes)

    def _check(self, setting: str, used: int, unit: str = "bytes") -> None:
        budget = getattr(self.program.settings, setting)
        if used > budget:
            raise BudgetExceeded(setting, budget, used, unit)

    # Snapshots

    def snapshot(self) -> dict[str, Any]:
        """The state of the evaluation as plain values and the front end's; `restore` goes on from it."""
        found: dict[str, Any] = {
            "how": (self._tree, self._given, self._first_chance),
            "last": last_place(self._last),
            "pushed": self._pushed,
            "in_window": self.events_in_window,
            "ending": None if self.ending is None else self.ending.snapshot(),
            "started": None,
        }
        if self._started:
            assert self.lows is not None
            found["started"] = {
                "keyed": self._lows.partitioned,
                "orders": self.orders,
                "space": self._space.snapshot(self._tests),
                "lows": self._lows.snapshot(),
                "places": self.lows.snapshot(),
                "automata": [automaton.snapshot() for automaton in self._automata],
            }
        return found

    @staticmethod
    def restore(program: Program, plan: LazyPlan, state: dict[str, Any]) -> LazyEvaluator:
        """An evaluator that goes on from `snapshot`, of the same program."""
        tree, orders, first_chance = state["how"]
        evaluator = LazyEvaluator(program, plan, tree=tree, orders=orders, first_chance=first_chance)
        evaluator._last = last_place(state["last"])
        pushed, in_window = evaluator._pushed, evaluator.events_in_window = state["pushed"], state["in_window"]
        expect(type(pushed) is int and (in_window is None or type(in_window) in (int, float)), "counts of events")
        restore_ending(evaluator, state["ending"])
        if state["started"] is not None:
            evaluator._restart(state["started"])
        return evaluator

    def _restart(self, state: dict[str, Any]) -> None:
        orders = state["orders"]
        for branch, order in zip(self._plans, orders, strict=True):
            expect(order is None or sorted(order) == sorted(branch.leaves), "an order of the leaves")
        self._begin(state["keyed"], orders)
        assert self.lows is not None
        self._space.restore(state["space"], self._tests)
        most = self.program.settings.partitions
        self._lows.restore(state["lows"], most)
        self.lows.restore(state["places"], most)
        for automaton, kept in zip(self._automata, state["automata"], strict=True):
            automaton.restore(kept, self._space)


def by_frequency(plan: BranchPlan, counts: list[int]) -> tuple[int, ...]:
    """The leaves, the rarest first ([Lazy] §4); of equally rare ones the last of a sequence: it waits for none."""
    return tuple(sorted(plan.leaves, key=lambda n: (counts[plan.kind[n]], -len(plan.after[n]))))
