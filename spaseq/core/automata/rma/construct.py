"""From bounded expressions to register match automata ([RMA] Theorem 5.1, Algorithms 1, 3 and 4).

By induction on the expression. An event is one transition; OR joins two parts by a new start and a new final state; `;`
and iteration add one ε-transition. A part before which events may lie has a TRUE/∘ loop on its first state; so has the
whole automaton, since a match may begin anywhere. A condition adds no states: it becomes part of the formula of the
transitions for its last variable, and the events of its other variables are written to registers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition, check_registers, numbered, on_every_way
from spaseq.core.automata.rma.epsilon import eliminate_epsilon, merge_alike
from spaseq.core.automata.rma.expressions import (
    Either,
    Expression,
    Maybe,
    Plus,
    Read,
    RelationAs,
    Then,
    Where,
    Within,
    check_bounded,
    show_expression,
    without_window,
)
from spaseq.core.automata.rma.formulas import Formula
from spaseq.core.automata.rma.limits import Limits
from spaseq.core.automata.rma.unroll import unroll
from spaseq.core.errors import InternalError


def build(expression: Expression, *, anywhere: bool = True, limits: Limits = Limits()) -> RMA:  # noqa: B008 - frozen
    """The automaton of a bounded expression, without ε-transitions and with states of the same future merged. If the
    expression has a window (`Within`), it is unrolled.

    Raises as `construct`, and `BudgetExceeded` if unrolling needs more than `max_states`.
    """
    inner, window = without_window(expression)
    automaton = merge_alike(eliminate_epsilon(construct(inner, anywhere=anywhere)))
    return automaton if window is None else unroll(automaton, window, limits=limits)


def construct(expression: Expression, *, anywhere: bool = True) -> RMA:
    """The automaton of a bounded expression as the paper constructs it, with its ε-transitions.

    Its matches over a stream are those of the expression (Theorem 5.1). Without `anywhere` a match must begin with the
    first event. The size is linear in the expression, but an iteration of which only the first round, or only further
    rounds, may wait (`A : (B)+`) is built twice.

    Raises: `QuerySemanticsError` if the expression is not bounded, or has a window (see `build`); `OptionError` if a
    register that it names may be empty when it is read.
    """
    check_bounded(expression)
    builder = _Builder()
    part = builder.part(expression, anywhere)
    transitions = tuple(builder.transition(e) for e in part.edges)
    used = {r for t in transitions for r in (*t.writes, *t.reads)}
    automaton = RMA(tuple(builder.names), frozenset({part.start}), frozenset({part.final}), numbered(used), transitions)
    check_registers(eliminate_epsilon(automaton))
    return automaton


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    final: int
    edges: tuple[Transition, ...]


class _Builder:
    """Numbers states and registers. `registers` maps a variable to its register (the inverse of rx in Appendix
    A.1)."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.registers: dict[str, str] = {}

    def transition(self, edge: Transition) -> Transition:
        """`edge` with writes to the registers of its variables."""
        return replace(edge, writes=edge.writes | {self.registers[v] for v in edge.variables if v in self.registers})

    def _state(self) -> int:
        self.names.append(f"q{len(self.names)}")
        return len(self.names) - 1

    def part(self, expression: Expression, waits: bool) -> _Part:
        """The automaton of a part. `waits`: the run may pass over events before the first one of this part."""
        match expression:
            case RelationAs(condition, names):
                return self._event(condition, frozenset(), True, names, waits)
            case Read(condition, writes, marks):
                return self._event(condition, writes, marks, frozenset(), waits)
            case Either(left, right):
                return self._either(self.part(left, waits), self.part(right, waits))
            case Then(left, right, adjacent):
                return self._then(self.part(left, waits), self.part(right, not adjacent))
            case Plus(child, adjacent) if waits == (not adjacent):
                inner = self.part(child, waits)
                return _Part(inner.start, inner.final, (*inner.edges, _epsilon(inner.final, inner.start)))
            case Plus(child, adjacent):
                return self._rounds(self.part(child, waits), self.part(child, not adjacent))
            case Maybe(child):
                return self._maybe(self.part(child, waits), waits)
            case Where(child, condition):
                return self._where(self.part(child, waits), condition)
            case Within():
                without_window(expression.child)
                raise InternalError(f"a window that was not taken off: {show_expression(expression)}")
            case _:
                assert_never(expression)  # type: ignore[arg-type]

    def _event(
        self, condition: Formula, writes: frozenset[str], marks: bool, names: frozenset[str], waits: bool
    ) -> _Part:
        start, final = self._state(), self._state()
        loop = (Transition(start, f.TRUE, start),) if waits else ()
        return _Part(start, final, (*loop, Transition(start, condition, final, writes, marks, variables=names)))

    def _either(self, left: _Part, right: _Part) -> _Part:
        start, final = self._state(), self._state()
        joints = (_epsilon(start, left.start), _epsilon(start, right.start),
                  _epsilon(left.final, final), _epsilon(right.final, final))  # fmt: skip
        return _Part(start, final, (*left.edges, *right.edges, *joints))

    def _rounds(self, first: _Part, again: _Part) -> _Part:
        """`first`, then `again` any number of times."""
        final = self._state()
        joints = (_epsilon(first.final, again.start), _epsilon(again.final, again.start),
                  _epsilon(first.final, final), _epsilon(again.final, final))  # fmt: skip
        return _Part(first.start, final, (*first.edges, *again.edges, *joints))

    def _maybe(self, inner: _Part, waits: bool) -> _Part:
        """`inner` or nothing. It has new start and final states: if `inner` is an iteration, its next round must not
        return to a state from which the part can be left out."""
        start, final = self._state(), self._state()
        loop = (Transition(start, f.TRUE, start),) if waits else ()
        joints = (_epsilon(start, inner.start), _epsilon(start, final), _epsilon(inner.final, final))
        return _Part(start, final, (*inner.edges, *loop, *joints))

    def _then(self, left: _Part, right: _Part) -> _Part:
        return _Part(left.start, right.final, (*left.edges, _epsilon(left.final, right.start), *right.edges))

    def _where(self, part: _Part, condition: Formula) -> _Part:
        """Algorithm 3: adds the condition to each transition for one of its variables, if all its other variables have
        taken their events before."""
        needed = frozenset(f.arguments(condition))
        seen = on_every_way(len(self.names), {part.start}, ((e.source, e.target, e.variables) for e in part.edges))
        edges = []
        for edge in part.edges:
            before = seen[edge.source] or frozenset()
            if edge.variables & needed and needed - edge.variables <= before:
                formula = f.rename(condition, self._places(needed, edge.variables))
                edge = replace(edge, formula=f.conjunction(edge.formula, formula))
            edges.append(edge)
        return _Part(part.start, part.final, tuple(edges))

    def _places(self, needed: frozenset[str], current: frozenset[str]) -> dict[str, str]:
        """Algorithm 4: the argument for each variable: `CURRENT` for those that take the event at hand, a register for
        the others."""
        for variable in sorted(needed - current):
            self.registers.setdefault(variable, f"r{len(self.registers) + 1}")
        return {v: f.CURRENT if v in current else self.registers[v] for v in needed}


def _epsilon(source: int, target: int) -> Transition:
    return Transition(source, f.TRUE, target, epsilon=True)
