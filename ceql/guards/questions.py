"""Guards without aggregates that do not compare one variable with another, in the form of the kernels.

Examples are `x.v + y.v > z.v` and `x.name LIKE 'a.*' OR y.v > 3`. The kernel computes sums, products and comparisons of
numbers in doubles, with a bound on the error. Conditions it cannot decide, and those not about numbers, become a
question to Python, asked once for the same values. A run keeps for each variable the codes of the attributes of the
event it took, and beside them the doubles to compute with. If a variable takes events with different values, one code
is not enough, and the evaluation goes on with sets of values (`MergeRule.ONE`).
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from ceql.guards.comparisons import KINDS, Texts, coded, decode, double_codes, kind_of
from ceql.guards.guard import Guard
from ceql.operators.arithmetic import ARITHMETIC
from ceql.operators.values import ELEMENTS
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, has_uncoded
from spaseq.core.automata import Avoid, Leave, Take
from spaseq.core.engine.program.register_ops import (
    NOTHING,
    UNKNOWN,
    Drop,
    Keep,
    MergeRule,
    Op,
    Operand,
    ResidualTest,
    Unless,
)
from spaseq.core.events import Column, EventBatch, NumberColumn
from spaseq.core.snapshot import expect

_Place = tuple[str, str]
"""An attribute of a variable: the variable's name and the attribute's."""


def question_of(guard: Guard, number: int) -> Question | None:
    """The guard as question `number`; None if it has an aggregate or CORR, or a variable of which it reads nothing."""
    places = {(a.variable, a.name) for a in attributes_of(guard.condition)}
    if has_uncoded(guard.condition) or {variable for variable, _ in places} != guard.variables:
        return None
    return Question(guard, number)


class Question:
    """A guard as a `ResidualTest`: a register and a column for each attribute, with its code, and another for each that
    arithmetic or a comparison reads, with its double."""

    def __init__(self, guard: Guard, number: int) -> None:
        self._number = number
        found = guard.on_single_events()
        assert found is not None
        slots, self._test = found
        self._order = sorted(guard.variables)
        self._places: list[_Place] = [(v, name) for v in self._order for name in slots[v]]
        self._program = tuple(program_of(guard.condition) or ())
        self._numbers = [place for place in self._places if place in self._program]
        self._kinds: list[str | None] = [None] * len(self._places)
        self.asked: int = len(self._places)
        self.width: int = len(self._places) + len(self._numbers)

    def ops(self, action: Take | Avoid | Leave, at: int) -> tuple[Op, ...]:
        """The register operations of an action of this guard, whose registers and columns begin at `at`."""
        variables = [variable for variable, _ in (*self._places, *self._numbers)]
        if isinstance(action, Leave):
            return tuple(Drop(at + i) for i in range(self.width))

        def ask(new: tuple[str, ...]) -> ResidualTest:
            operands = [
                Operand(column=at + i) if variable in new else Operand(register=at + i)
                for i, variable in enumerate(variables)
            ]
            numbers = dict(zip(self._numbers, operands[len(self._places) :], strict=True))
            program = tuple(numbers[step] if isinstance(step, tuple) else step for step in self._program)
            return ResidualTest(self._number, tuple(operands[: len(self._places)]), program, lenient=True)

        taken = [variable for variable in self._order if variable in action.variables]
        # An event taken for several variables is tested for each choice of which of them it stands for; the others
        # stand for what they took before.
        asks = tuple(ask(new) for size in range(len(taken), 0, -1) for new in itertools.combinations(taken, size))
        if isinstance(action, Avoid):
            return (Unless(asks),)
        kept = [i for i, variable in enumerate(variables) if variable in action.variables]
        return *asks, *(Keep(MergeRule.ONE, at + i, at + i) for i in kept)

    def load(self, events: EventBatch, rows: np.ndarray, texts: Texts, out: np.ndarray) -> bool:
        """Writes the codes of a batch into `out`, int64 (n, width); False as `Comparison.load`."""
        for i, (_, name) in enumerate(self._places):
            column = events.column(name)
            if column is None:
                continue
            kind = kind_of(column)
            if {kind, self._kinds[i]} == {"double", "number"}:
                kind = "number"
            elif kind in (*ELEMENTS, "mixed") or self._kinds[i] not in (None, kind):
                return False
            if kind == "number" and _is_far(column):
                return False
            self._kinds[i] = kind
            out[:, i] = codes = coded(column, kind, texts)
            if kind == "whole" and isinstance(column, NumberColumn) and column.values.min(initial=0) <= UNKNOWN:
                return False
            if self._places[i] in self._numbers and isinstance(column, NumberColumn):
                near = np.where((codes == UNKNOWN) | np.isnan(column.values), UNKNOWN, double_codes(column.values))
                out[:, len(self._places) + self._numbers.index(self._places[i])] = near
        return True

    def answer(self, codes: list[int], texts: dict[int, str]) -> bool:
        """True if the condition holds for these codes, one for each attribute."""
        return self._test(self._choice(codes, texts)) is True

    def _choice(self, codes: list[int], texts: dict[int, str]) -> tuple[tuple[Any, ...], ...]:
        """For each variable, in order of names, the values of its attributes."""
        values = [decode(code, kind, texts) for code, kind in zip(codes, self._kinds, strict=False)]
        found = list(zip(self._places, values, strict=False))
        return tuple(tuple(value for (of, _), value in found if of == variable) for variable in self._order)

    def texts(self) -> tuple[int, ...]:
        """The registers that hold numbers of texts."""
        return tuple(i for i, kind in enumerate(self._kinds) if kind == "text")

    def labels(self) -> tuple[int, ...]:
        """As of `Comparison`."""
        return ()

    def values(self, held: list[int], texts: Texts) -> tuple[Any, ...]:
        """The values of each variable, as `Comparison.values` gives them."""
        taken = {variable for (variable, _), code in zip(self._places, held, strict=False) if code != NOTHING}
        known = [UNKNOWN if code == NOTHING else code for code in held[: self.asked]]
        choice = zip(self._order, self._choice(known, texts.names), strict=True)
        return tuple(frozenset({values} if variable in taken else ()) for variable, values in choice)

    def snapshot(self) -> Any:
        """The kinds of the attributes' values so far."""
        return self._kinds

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        expect(len(state) == len(self._kinds) and all(kind in KINDS for kind in state), "a kind for each attribute")
        self._kinds = list(state)


def _is_far(column: Column) -> bool:
    """True if whole numbers among decimals are beyond those that codes tell from decimals."""
    if not isinstance(column, NumberColumn) or column.whole is None:
        return False
    return bool((column.whole & (np.abs(column.values) > 1 << 51)).any())


_Program = list[float | str | _Place]
_LOGIC: Final = {ast.And: "and", ast.Or: "or"}


def program_of(node: ast.Expression) -> _Program | None:
    """A condition in the postfix notation of `ResidualTest.program`, over attributes; None if it has parts that kernels
    do not compute (LIKE, IN, %, texts)."""
    match node:
        case ast.Compare(symbol, left, right):
            return _postfix((_number(left), _number(right)), symbol)
        case ast.And(left, right) | ast.Or(left, right):
            return _postfix((program_of(left), program_of(right)), _LOGIC[type(node)])
        case ast.Not(child):
            return _postfix((program_of(child),), "not")
    return None


def _number(node: ast.Expression) -> _Program | None:
    match node:
        case ast.Number(value):
            return [float(value)]
        case ast.Attribute(name, variable):
            return [(variable or "", name)]
        case ast.Negate(child):
            return _postfix((_number(child),), "neg")
        case ast.Arithmetic(symbol, left, right) if ARITHMETIC[symbol].in_kernels:
            return _postfix((_number(left), _number(right)), symbol)
    return None


def _postfix(parts: tuple[_Program | None, ...], sign: str) -> _Program | None:
    joined: _Program = []
    for part in parts:
        if part is None:
            return None
        joined += part
    return [*joined, sign]
