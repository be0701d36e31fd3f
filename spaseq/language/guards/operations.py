"""The guards of an automaton as operations on codes, so that the kernels can join mappings themselves.

Not in this form are FILTERs between GPMs with RAND and the like, and a Kleene+ whose variables an earlier element binds
on some ways only. Nor are alternatives that wait for different absences, and lists of the rounds of a sequence.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from spaseq.core.automata import CEA, INITIAL, Action, Again, Avoid, Leave, Transition
from spaseq.core.automata import Take as TakeAction
from spaseq.core.engine.program import register_ops as do
from spaseq.core.engine.program.register_ops import Op
from spaseq.core.errors import InternalError
from spaseq.gpm import GraphPattern
from spaseq.language.guards.bound import (
    Bound,
    MayBind,
    bound_in_states,
    collected_in_states,
    freed_by_rounds,
    transitions,
)
from spaseq.language.guards.compared import Asked, Filters, outer_filters
from spaseq.language.guards.guards import Free, Lasts, Meets, Pass, Take, joins_of
from spaseq.language.guards.layout import Layout, layout_of
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import Join, conjunction_binds


def compile_guards(patterns: MappingABC[str, GraphPattern], cea: CEA) -> CompiledGuards | None:
    """The guards of `cea` on codes of terms; None in the cases that the module names."""
    guards = [a.guard for t in transitions(cea) for a in t.actions if isinstance(a, TakeAction | Avoid)]
    filters = outer_filters(patterns, dict.fromkeys(join for guard in guards for join in joins_of(guard)))
    bound = None if filters is None else bound_in_states(patterns, cea)
    freed = None if bound is None else freed_by_rounds(cea, patterns, bound)
    if filters is None or bound is None or freed is None:
        return None
    may_bind = MayBind(patterns, freed, cea)
    takes = [guard for guard in guards if isinstance(guard, Take)]
    if any(take.collect and not take.begins_round for take in takes):
        return None
    asked_later = frozenset().union(*map(may_bind.behind, transitions(cea)))
    collected = collected_in_states(cea, patterns, bound)
    times = sorted({guard.time for guard in guards if isinstance(guard, Lasts)})
    layout = layout_of(patterns, filters, takes, asked_later, collected, times)
    return CompiledGuards(patterns, filters, bound, freed, may_bind, layout, collected)


@dataclass(frozen=True, slots=True)
class CompiledGuards:
    """The guards of a query on the codes of `layout`. `filters` are those decided in each join with the run.

    `bound`, `freed`, `may_bind`, `collected`: see `spaseq.language.guards.bound`.
    """

    patterns: MappingABC[str, GraphPattern]
    filters: MappingABC[Join, Filters]
    bound: MappingABC[int, Bound]
    freed: MappingABC[Free, frozenset[str]]
    may_bind: MayBind
    layout: Layout
    collected: MappingABC[tuple[int, Take], frozenset[str]]

    def ops(self, transition: Transition) -> tuple[Op, ...]:
        """The operations on registers of a transition's actions, in their order."""
        ops: list[Op] = []
        known = self.may_bind.before(transition)
        for action in transition.actions:
            if transition.source == INITIAL:
                unseen = [self.layout.unseen[c] for c in getattr(getattr(action, "guard", None), "before", ())]
                ops += [do.ColumnTest("=", column, column) for column in unseen]
            ops += self._ops(action, known, transition.source)
            known = self.may_bind.after(known, action)
        return tuple(ops)

    def _ops(self, action: Action, known: frozenset[str], state: int) -> tuple[Op, ...]:
        match action:
            case TakeAction(Take() as take):
                return self._take(take, known, self.collected[state, take])
            case TakeAction(Pass(conjunctions)):
                return tuple(op for c in conjunctions for op in self._unless(c, known))
            case TakeAction(Lasts(time)):
                return (do.Keep(do.MergeRule.SET, self.layout.deadlines[time], self.layout.late[time]),)
            case TakeAction(Meets()):
                return ()  # `Lasts` of the same gap keeps the time
            case Avoid(Lasts(time)):
                return (do.Unless((self._in_time(time),)),)
            case Avoid(Meets(conjunction, time)):
                return self._unless(conjunction, known, () if time is None else (self._in_time(time),))
            case Leave(Lasts(time)):
                return (do.Drop(self.layout.deadlines[time]),)
            case Leave(Meets()):
                return ()
            case Again(Free() as free):
                freed = self.freed[free]
                return tuple(do.Drop(register) for register, name, _ in self.layout.held() if name in freed)
            case _:
                raise InternalError(f"no operations for {action}")

    def _take(self, take: Take, known: frozenset[str], collected: frozenset[str]) -> tuple[Op, ...]:
        conjunction, columns = take.conjunction, self.layout.columns[take.conjunction]
        ops: list[Op] = [
            do.ForEachValue(columns.others, columns.first),
            *self._joins((conjunction, take.decided), known),
        ]
        binds, certain = conjunction_binds(self.patterns, conjunction), self._certain(conjunction)
        for register, name, value in self.layout.held():
            if name not in take.keep:
                ops.append(do.Drop(register))
            elif name in binds:
                rule = do.MergeRule.SET if name in certain else do.MergeRule.OVERWRITE
                ops.append(do.Keep(rule, register, columns.place(*value)))
        if collected and self.layout.list is not None:
            ops.append(do.Append(self.layout.list, columns.place("round", " ".join(sorted(collected & binds)))))
        return tuple(ops)

    def _certain(self, conjunction: Conjunction) -> frozenset[str]:
        """The variables that each mapping of a conjunction binds."""
        return frozenset().union(*(self.patterns[name].certain for name in conjunction))

    def _joins(self, join: Join, known: frozenset[str]) -> tuple[do.Test | do.ResidualTest, ...]:
        """The tests that the run's mapping and the conjunction's are compatible, and satisfy the FILTERs over both."""
        conjunction, layout, filters = join[0], self.layout, self.filters[join]
        columns = layout.columns[conjunction]
        shared = known & conjunction_binds(self.patterns, conjunction)
        same = [do.Test("=", register, columns.place("term", n)) for n, register in layout.terms.items() if n in shared]
        compared = [
            do.Test(c.turned, layout.numbers[c.outer], columns.place("number", c.inner), strict=True)
            for c in filters.compared
        ]
        # These tests always hold. They mark the register of a term as read, so that it is kept: sets of mappings, if
        # they take over, need the term behind a number. Runs are not looked up by `!=`, as they would be by `=`.
        outer = [layout.terms[c.outer.name] for c in filters.compared if c.outer.name in layout.terms]
        whole = [do.Test("!=", register, columns.nothing) for register in outer]
        return (*same, *compared, *(self._ask(conjunction, question) for question in filters.asked), *whole)

    def _ask(self, conjunction: Conjunction, question: Asked) -> do.ResidualTest:
        """A question about the values of the event; for a variable that it does not bind, about the run's."""
        columns, certain = self.layout.columns[conjunction], self._certain(conjunction)

        def operand(kind: str, name: str) -> do.Operand:
            registers = self.layout.terms if kind == "term" else self.layout.near
            register = None if name in certain else registers.get(name)
            if (kind, name) in columns.values:
                return do.Operand(register, columns.place(kind, name))
            return do.Operand(register, columns.nothing if register is None else None)

        def step(of: str | float) -> do.Operand | str | float:
            return operand("near", of[1:]) if isinstance(of, str) and of.startswith("?") else of

        about = tuple(operand("term", name) for name in question.names)
        return do.ResidualTest(question.number, about, tuple(map(step, question.program)))

    def _in_time(self, time: int) -> do.Test:
        """The test that an instant is no later than `time` behind the one that the run keeps."""
        return do.Test(">=", self.layout.deadlines[time], self.layout.now)

    def _unless(
        self, conjunction: Conjunction, known: frozenset[str], more: tuple[do.Test, ...] = ()
    ) -> tuple[Op, ...]:
        columns = self.layout.columns[conjunction]
        # the code of no mapping, UNKNOWN, equals nothing, itself included
        has_mapping = do.ColumnTest("=", columns.present, columns.present)
        each = do.ForEachValue(columns.others, columns.first)
        return each, do.Unless((has_mapping, *more, *self._joins((conjunction, None), known)))
