"""The choice of an evaluator while the stream runs, and the change from one to another.

An `AutoEvaluator` begins with the compact structure and measures the stream (`spaseq.core.engine.choice.statistics`).
From time to time it compares the costs of all evaluators (`spaseq.core.engine.choice.cost`). If another would be `GAIN`
times cheaper, and the change pays, that one takes over between two batches.

It reads the batches of the current window again, and its matches of those are left out, because the evaluator before it
has reported them. So each match is reported once, by the evaluator that was in charge at its end. A change needs all
batches that a window reaches back to; they are kept up to `HISTORY` events.

A lazy evaluator tries other pairs of events, and holds other runs. If it refuses a pair or reaches a budget, the
compact structure takes over from the window on, and its answer counts. If the settings name no evaluator, none may miss
an error of the compact structure either. Then a lazy one is only for values of one kind, of which no pair is refused.
Single events are for the compact structure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from spaseq.core.engine.choice.cost import Costs, Estimate
from spaseq.core.engine.choice.reach import Reach
from spaseq.core.engine.choice.statistics import Statistics
from spaseq.core.engine.lazy.evaluator import LazyEvaluator
from spaseq.core.engine.program.lazy_plan import LazyPlan
from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.program.program import codes_of
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.engine.runs.evaluation import Pushed
from spaseq.core.engine.runs.evaluator import Evaluator
from spaseq.core.engine.runs.row_sets import RegisterRun
from spaseq.core.errors import BudgetExceeded, EventError, InternalError
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from spaseq.core.engine.program.program import Program

FIRST: Final = 256
"""Events to have seen before the first choice."""
EVERY: Final = 4096
"""Events between two looks at the rates. Up to the first of these, each look is a choice: windows fill, and rates of
rare events become known."""
PATIENCE: Final = 2
"""So many looks the first comparison is good for, if the rates are still about the same."""
LONGEST: Final = 128
"""The next is good for twice as many, and so on up to this, as long as evaluator and rates stay the same."""
DRIFT: Final = 1.4
"""The factor by which a rate may change until evaluators are compared again."""
MATTERS: Final = 0.2
"""The part of a chain's cost that must depend on its order for orders to be followed through a sample."""
FOLLOWED: Final = 4
"""So often at most."""
GAIN: Final = 1.05
"""The factor by which another evaluator must be cheaper to take over."""
REORDER: Final = 1.2
"""The same for another order of a chain: a part of 2 % found from 2,048 tuples is off by about a sixth."""
PART: Final = 4096
"""Events of which a lazy evaluator gives the matches at once, as long as another may have to take over."""
ROBUST: Final = 1.3
"""The same if the compact structure's guards are codes: bursts cost it little, and averages do not show them."""
CLEAR: Final = 2.0
"""The same if the settings name no evaluator: nobody asked for a change that gains little."""

AnyEvaluator = Evaluator | LazyEvaluator
_KEPT: Final = (
    "_name", "_orders", "_kernel", "_seen", "_next_choice", "_pushes", "_changes", "_changes_known", "_stale",
    "_patience", "_rates", "_inside", "_kind",
)  # fmt: skip
"""The numbers and names that a snapshot holds as they are."""


class AutoEvaluator(Pushed):
    """One evaluation of `program`, which has a plan to choose by, by the evaluator that is the cheapest."""

    def __init__(self, program: Program, eager: Evaluator | None = None) -> None:
        super().__init__(program)
        plan = program.choosable
        assert plan is not None
        self._plan: LazyPlan = plan
        self._name = "compact"
        self._orders: tuple[tuple[int, ...], ...] = ()
        eager = eager or Evaluator(program)
        self._current: AnyEvaluator = eager
        self._kernel = codes_of(program) is not None
        """True if the compact structure's guards are operations on codes."""
        conditions = program.registers.conditions() if self._plan.guarded else None  # type: ignore[union-attr]
        self._conditions = None if program.settings.evaluator else conditions
        self._kind: str | None = ""
        """The kind of all values so far, if the settings name no evaluator; None if the compact structure is in charge
        for good."""
        self._statistics = Statistics(self._plan.branches, conditions)
        values = eager.run.automaton.pooled_values if isinstance(eager.run, GuardRun) else None
        self._costs = Costs(self._plan, program.cea, values)
        self._estimate: Estimate | None = None
        self._reach = Reach(program.window)
        self._seen = 0
        self._next_choice = FIRST
        self._pushes = 0
        self._changes = 0
        self._changes_known = 0
        """Changes of rates that the last choice knew of."""
        self._stale = 0.0
        self._patience = PATIENCE / 2
        self._rates: tuple[float, ...] = ()
        self._sampled: Batch | None = None
        """The batch whose events have just been sampled."""
        self._inside = 0.0

    def stream(self, batch: Batch) -> Iterator[MatchBatch]:
        if not len(batch):
            return
        self._prepare(batch)
        for part in self._parts(batch):
            if isinstance(self._current, LazyEvaluator) and self._reach.is_whole:
                try:
                    found = self._current.at_once(self._current.stream(part))
                except (BudgetExceeded, EventError):
                    self._settle()
                else:
                    yield from found
                    self._reach.append(part)
                    continue
            yield from self._current.stream(part)
            self._reach.append(part)

    def count(self, batch: Batch, most: int | None = None) -> int:
        if not len(batch):
            return 0
        self._prepare(batch)
        found = 0
        for part in self._parts(batch):
            left = None if most is None else most - found
            try:
                found += self._current.count(part, left)
            except (BudgetExceeded, EventError):
                if isinstance(self._current, Evaluator) or not self._reach.is_whole:
                    raise
                self._settle()
                found += self._current.count(part, left)
            self._reach.append(part)
            if most is not None and found >= most:
                break
        return found

    def _parts(self, batch: Batch) -> Iterator[Batch]:
        """The batch, in parts while a lazy evaluator is in charge."""
        cut: Any = getattr(batch, "part", None)
        at = 0
        while at < len(batch):
            end = len(batch) if cut is None or isinstance(self._current, Evaluator) else min(at + PART, len(batch))
            yield batch if end - at == len(batch) else cut(at, end)
            at = end

    def advance(self, place: int) -> Iterator[MatchBatch]:
        return self._current.advance(place)

    def close(self) -> Iterator[MatchBatch]:
        return self._current.close()

    @property
    def last_position(self) -> int | None:
        return self._current.last_position

    @property
    def eager(self) -> Evaluator | None:
        """As of `Pushed`: the compact structure."""
        return self._current if isinstance(self._current, Evaluator) else None

    def take_singles(self) -> bool:
        """As of `Pushed`: the compact structure takes over. False if the window cannot be read again, or if its guards
        are no codes."""
        if self._kernel and self.eager is None and self._reach.is_whole:
            self._change("compact")
        return self._kernel and self.eager is not None

    def pass_singles(self, position: int, place: Any) -> None:
        """As of `Pushed`."""
        self._reach.drop_all(position if self.program.window.by_position else place)

    @property
    def midway(self) -> bool:
        """As of `Evaluation`."""
        return self.eager is not None and self.eager.midway

    def nameable(self) -> np.ndarray | None:
        return self._current.nameable()

    def parts(self) -> dict[str, list[Any]]:
        return {**self._current.parts(), "rest": [self]}

    @property
    def evaluator(self) -> str:
        """The name of the evaluator in charge."""
        return self._name

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for people: those of the evaluator in charge, and how often it was changed."""
        return {**self._current.statistics, "evaluator_changes": self._changes}

    def explain(self) -> str:
        """The choice as text: its estimate, and the counters."""
        lines = [f"evaluator: {self._name}, after {self._seen:,} events and {self._changes} changes"]
        if self._estimate is not None:
            lines.append(f"  estimated: {self._estimate}")
            statistics = self._statistics
            rates = {leaf.number: statistics.rate(leaf.number) for b in self._plan.branches for leaf in b.leaves}
            shown = ", ".join(f"{rate:.3g}" for rate in rates.values())
            lines.append(f"  rates of the pattern's events: {shown}; {statistics.events_in_window:,.0f} in a window")
        lines += [f"  {name}: {value:,}" for name, value in self.statistics.items()]
        return "\n".join(lines)

    def _prepare(self, batch: Batch) -> None:
        """Look at the batch, and choose its evaluator."""
        self._pushes += 1
        self._reach.evict()
        self._look_at_kind(batch)
        inside = self._current.events_in_window if isinstance(self._current, LazyEvaluator) else None
        if inside is None:
            inside = self._reach.in_window(batch)
            self._statistics.partitions = self._reach.partitions
        self._seen += len(batch)
        self._statistics.seen = self._seen
        due = self._seen >= self._next_choice
        # A lazy evaluator says itself how often its tests hold.
        sample = due and self._stale <= 0 and isinstance(self._current, Evaluator)
        if sample or (isinstance(self._current, Evaluator) and (due or self._seen < EVERY)):
            self._statistics.observe(batch, inside, sample)
        elif isinstance(self._current, LazyEvaluator):
            self._statistics.count(len(batch), inside, self._current.kinds_in(batch))
        if due:
            self._next_choice = self._seen * 2 if self._seen < EVERY else self._seen + EVERY
            drifted = bool(self._rates) and self._statistics.has_drifted(self._rates, DRIFT)
            early = self._seen <= EVERY
            if self._stale <= 0 or drifted or early:
                self._patience = PATIENCE if drifted or early else min(2.0 * self._patience, LONGEST)
                self._stale = self._patience
                self._sampled = batch if sample or self._resample(batch, inside) else None
                self._inside = inside
                self._choose()
                self._sampled = None
            self._stale -= 1

    def _look_at_kind(self, batch: Batch) -> None:
        """From values of two kinds on, the compact structure is in charge."""
        if self._conditions is None or self._kind is None:
            return
        found = self._conditions.kind_of_values(batch)
        if found is not None and (not found or self._kind in ("", found)):
            self._kind = self._kind or found
        elif self._reach.is_whole:
            self._settle()

    def _settle(self) -> None:
        """The compact structure is in charge from here on, for good."""
        self._kind = None
        if self.eager is None:
            self._change("compact")

    def _choose(self) -> None:
        self._rates = self._statistics.rates()
        if isinstance(self._current, LazyEvaluator):
            self._statistics.observed(*self._current.tried())
        elif isinstance(self._current.run, RegisterRun):
            self._kernel = False
        size = self._seen / self._pushes
        found = self._estimate = self._estimate_costs(size)
        now = self._cost_now(found)
        best = "compact" if self._kind is None else found.best
        gain = REORDER if best == self._name else GAIN
        if self._name == "compact" and self._kernel:
            gain = ROBUST if self._conditions is None else CLEAR
        if best == "chain" and self._name != "compact" and self._statistics.changes > self._changes_known:
            # These counts are part old, part new: a tree is right for both. Choose again at the next look.
            best, gain, self._stale = "tree", 0.0, 1
        self._changes_known = self._statistics.changes
        other = best != self._name or (best == "chain" and self._is_better_known(found.orders))
        cost = getattr(found, best)
        if other and cost * gain < now and self._reach.is_whole and (not gain or self._pays(now - cost, cost)):
            self._change(best, found.orders)

    def _is_better_known(self, orders: tuple[tuple[int, ...], ...]) -> bool:
        """True if these are other chains, which have been followed through a sample.

        Conditions hold together more often than if they were independent. For the present chains that was measured. A
        chain without the measurement would seem cheaper than it is.
        """
        long = [order for order in orders if len(order) > 2]
        known = self._sampled is not None and all(map(self._statistics.has_followed, long))
        return orders != self._orders and (known or not long)

    def _pays(self, saving: float, cost: float) -> bool:
        """True if reading the window again costs less than the change saves until evaluators are compared again."""
        return saving * self._stale * EVERY > cost * self._reach.open_events

    def _resample(self, batch: Batch, inside: float) -> bool:
        """Look at the tuples of a batch while a chain is in charge, if another order might be much better."""
        found = self._estimate
        if self._name != "chain" or found is None or not self._depends_on_order(found):
            return False
        self._statistics.sample(batch, inside)
        return True

    def _depends_on_order(self, found: Estimate) -> bool:
        long = any(len(order) > 2 for order in found.orders)
        return long and found.steps > MATTERS * found.chain and found.chain < found.compact

    def _estimate_costs(self, size: float) -> Estimate:
        """The costs. With a new sample orders are followed through it, until the one that might be best has been."""
        found = self._costs.estimate(self._statistics, size, kernel=self._kernel)
        if self._sampled is None or not self._depends_on_order(found):
            return found
        for _ in range(FOLLOWED):
            orders = self._costs.orders(self._statistics)
            pairs = zip(self._plan.branches, orders, strict=True)
            new = [(b, o) for b, o in pairs if len(o) > 2 and not self._statistics.has_followed(o)]
            if not new:
                break
            for branch, order in new:
                self._statistics.follow(branch, order, self._sampled, self._inside)
        return self._costs.estimate(self._statistics, size, kernel=self._kernel)

    def _cost_now(self, found: Estimate) -> float:
        if self._name != "chain" or self._orders == found.orders:
            return float(getattr(found, self._name))
        return self._costs.estimate(self._statistics, self._seen / self._pushes, self._orders).chain

    def _change(self, name: str, orders: tuple[tuple[int, ...], ...] = ()) -> None:
        """Hand over to another evaluator: it reads the current window's batches again. `orders`: of a chain."""
        match name:
            case "compact":
                fresh: AnyEvaluator = Evaluator(self.program)
            case "chain":
                fresh = LazyEvaluator(self.program, self._plan, orders=orders)
            case "tree":
                fresh = LazyEvaluator(self.program, self._plan, tree=True)
            case _:
                raise InternalError(f"no evaluator {name}")
        for batch in self._reach.open_batches():
            for _ in fresh.stream(batch):
                pass  # reported before
        self._current, self._name, self._orders = fresh, name, orders
        self._changes += 1

    def snapshot(self) -> dict[str, Any]:
        """The state of the evaluation as plain values and the front end's; `restore` goes on from it.

        Batches to be read again are not in it: after `restore`, no change before they are out of the window.
        """
        found = self._estimate
        return {
            "own": {name: getattr(self, name) for name in _KEPT},
            "estimate": None if found is None else dataclasses.astuple(found),
            "reach": self._reach.snapshot(),
            "statistics": self._statistics.snapshot(),
            "current": self._current.snapshot(),
        }

    @staticmethod
    def restore(program: Program, state: dict[str, Any]) -> AutoEvaluator:
        """An evaluator that goes on from `snapshot`, of the same program."""
        new = AutoEvaluator(program)
        for name in _KEPT:
            fresh, kept = getattr(new, name), state["own"].get(name, "")
            kinds = (int, float) if type(fresh) in (int, float) else (type(fresh),)
            left_out = fresh is None or (name == "_kind" and kept is None)
            expect(left_out or type(kept) in kinds, "what the choice goes by")
            setattr(new, name, kept)
        expect(new._name in ("compact", "chain", "tree"), "an evaluator's name")
        new._estimate = None if state["estimate"] is None else Estimate(*state["estimate"])
        new._reach.restore(state["reach"])
        new._statistics.restore(state["statistics"])
        if new._name == "compact":
            new._current = Evaluator.restore(program, state["current"])
        else:
            new._current = LazyEvaluator.restore(program, new._plan, state["current"])
        return new
