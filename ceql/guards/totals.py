"""Guards with aggregates in the form of the kernels: totals that registers keep, and a test when the run leaves.

* `Threshold`: COUNT, MIN or MAX against a number. COUNT is counted no further than the condition can tell, so k rounds
  are k + 1 register rows at most. MIN and MAX are a flag: less than the number, equal to it, or greater. Runs with the
  same flag are one.
* `Totals`: any other condition over COUNT, SUM, AVG, MIN, MAX and attributes, as `AVG(b.price) > a.price`. A register
  for each sum, count and extreme, and for each attribute outside of aggregates. Runs with different sums stay apart.

Codes of numbers are typed (`spaseq.core.engine.kernels.registers.totals`): a code is the value, whole or decimal, so
the kernel adds as Python does. Whole numbers and sums of them beyond 2^51, NaN, and values that are not numbers
have no such code. With them the evaluation goes on in Python (`ceql.guards.aggregates`), as it does if an attribute
outside of aggregates takes two values.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ceql.expressions.exact import compare
from ceql.expressions.vectorized import operand
from ceql.guards.aggregates import CALLS, AggregateGuard, named_by
from ceql.guards.comparisons import Texts, double_codes
from ceql.guards.guard import Guard
from ceql.guards.questions import program_of
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, has_uncoded, is_aggregate, replace
from spaseq.core.automata import Action, Leave, Take
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.engine.kernels.registers.layout import INFINITE, WHOLE
from spaseq.core.engine.program.register_ops import (
    NOTHING,
    UNKNOWN,
    Drop,
    Gather,
    Keep,
    MergeRule,
    Op,
    Operand,
    ResidualTest,
    Test,
    Total,
    TotalTest,
    Value,
)
from spaseq.core.errors import EventError, InternalError
from spaseq.core.events import Column, EventBatch, NumberColumn, TextColumn
from spaseq.core.snapshot import expect

_MOST: Final = 1 << 27
"""The greatest count that `Gather.most` can have."""
_ONE: Final = INFINITE + 2
_ZERO: Final = INFINITE + 1
_RULES: Final = {
    "count": Total.SUM,
    "known": Total.SUM,
    "sum": Total.SUM,
    "MIN": Total.LEAST,
    "MAX": Total.GREATEST,
}
_CELLS: Final = {
    "SUM": ("sum",),
    "AVG": ("sum", "known"),
    "MIN": ("MIN",),
    "MAX": ("MAX",),
}
"""The totals that an aggregate is computed of; COUNT is "count" of a variable, "known" of an attribute."""
_Cell = tuple[str, str, ast.Expression | None]
"""The contents of a register: one of `_RULES`, or "value" for an attribute outside of aggregates; the variable; the
expression, None for the events themselves."""


def totals_of(guard: Guard, number: int) -> Threshold | Totals | None:
    """The guard, as question `number` if it asks one; None if it has no aggregate or one that registers do not keep."""
    calls = tuple(aggregates_of(guard.condition))
    others = replace(guard.condition, lambda node: ast.Number(0) if is_aggregate(node) else None)
    if not calls or has_uncoded(others):
        return None
    if any(call.function not in _CELLS and call.function != "COUNT" for call in calls):
        return None
    named = {named_by(call) for call in calls} | {a.variable for a in attributes_of(others)}
    return (_threshold_of(guard) or Totals(guard, number)) if named == guard.variables else None


def contents_of(guard: Guard) -> str:
    """The contents of the registers for a guard with aggregates, in words; empty for other guards."""
    form = totals_of(guard, 0)
    return "" if form is None else form.contents


class _OfNumbers:
    """A form of guards whose registers hold numbers alone, in codes that mean the same in every batch."""

    def texts(self) -> tuple[int, ...]:
        """No register holds the number of a text, nor its label."""
        return ()

    labels = texts

    def snapshot(self) -> Any:
        """None: there is nothing to keep."""

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        expect(state is None, "no state of a total")


# -- against a number


def _threshold_of(guard: Guard) -> Threshold | None:
    condition, negated = guard.condition, False
    if isinstance(condition, ast.Not):
        condition, negated = condition.child, True  # unknown stays unknown
    match condition:
        case ast.Compare(symbol, ast.Call() as call, ast.Number(bound)):
            pass
        case ast.Compare(symbol, ast.Number(bound), ast.Call() as call):
            symbol = COMPARISONS[symbol].mirror
        case _:
            return None
    if call.function not in ("COUNT", "MIN", "MAX") or guard.variables != {named_by(call)}:
        return None
    return Threshold(call, COMPARISONS[symbol].negation if negated else symbol, bound)


class Threshold(_OfNumbers):
    """COUNT, MIN or MAX against a number. Of two registers only the first is used: the count, or 0, 1 or 2 for an
    extreme below, at or above the number. The second column is what the register is tested against."""

    width = 2
    asked = 0

    def __init__(self, call: ast.Call, symbol: str, bound: float) -> None:
        self._call = call
        self._variable = named_by(call)
        self._bound = bound
        self._most = 0
        self._at_once: str | None = None
        self._symbol: str | None = symbol
        self._against = 1
        if call.function == "COUNT":
            self._count(symbol, bound)

    def _count(self, symbol: str, bound: float) -> None:
        """A count is a whole number: the test as one against a whole number."""
        low, high = (max(-1, min(f(bound), 1 << 62)) for f in (math.floor, math.ceil))
        match symbol:
            case ">=" | ">":
                self._symbol, self._against = ">=", high if symbol == ">=" else low + 1
            case "<=" | "<":  # decided as soon as it fails
                self._symbol, self._at_once, self._against = None, "<=", low if symbol == "<=" else high - 1
            case "=":
                self._at_once, self._against = "<=", low if low == high else -1
            case _:
                self._symbol, self._against = "!=" if low == high else None, low
        most = self._against + (symbol not in (">=", ">"))
        self._most = max(most, 1) if most <= _MOST else 0

    @property
    def contents(self) -> str:
        """The contents of a run's registers, in words."""
        if self._call.function != "COUNT":
            return "a run keeps a flag: below the number, at it or above it"
        return f"a run counts to {self._most:,} at most" if self._most else "a run counts"

    def ops(self, action: Action, at: int) -> tuple[Op, ...]:
        """As of `Question`."""
        match action:
            case Take(_, variables):
                if self._variable not in variables:
                    return ()
                rule = _RULES[self._call.function] if self._call.function != "COUNT" else Total.COUNT
                tests = () if self._at_once is None else (Test(self._at_once, at, at + 1),)
                return Gather(rule, at, at, self._most), *tests
            case Leave():
                return *(() if self._symbol is None else (Test(self._symbol, at, at + 1),)), Drop(at)
        raise InternalError(f"an aggregate under {type(action).__name__}")

    def load(self, events: EventBatch, rows: np.ndarray, texts: Texts, out: np.ndarray) -> bool:
        """As of `Question`."""
        out[:, 1] = self._against
        (argument,) = self._call.arguments
        if isinstance(argument, ast.Variable):
            out[:, 0] = 1
            return True
        try:
            column = operand(argument, events)
        except EventError:
            return False  # maybe of an event that no run takes
        if self._call.function == "COUNT":
            out[:, 0] = 0 if column is None else _has_value(column)
        elif column is not None:
            if not isinstance(column, NumberColumn):
                return False
            sides = 1 + compare(">", column, self._bound).astype(np.int64) - compare("<", column, self._bound)
            out[:, 0] = np.where(_has_value(column), sides, UNKNOWN)
        return True

    def values(self, held: list[int], texts: Texts) -> Any:
        """The state of `AggregateGuard`, for a run that goes on in Python. Of MIN and MAX only the side of the number
        is known, and any value on that side decides the condition the same."""
        code = held[0]
        if code == NOTHING:
            return ()
        value: int | float | None = code
        if self._call.function != "COUNT":
            value = None if code == UNKNOWN else _beside(self._bound, code - 1)
        return frozenset((self._variable,)), (), (value,)

    def answer(self, codes: list[int], texts: dict[int, str]) -> bool:
        """Never called: it asks nothing."""
        raise InternalError("a threshold asks nothing")


def _beside(bound: float, side: int) -> int | float:
    """A number at `bound`, or below (-1) or above it (1)."""
    if side == 0 or isinstance(bound, int):
        return bound + side
    return math.nextafter(bound, side * math.inf)


# -- other conditions


class Totals(_OfNumbers):
    """A condition over totals and attributes: a register and a column for each of `_cells`. When the run leaves the
    guard's scope, a comparison of two of them, or of one with a number, is a `TotalTest`, any other condition a
    `ResidualTest`."""

    def __init__(self, guard: Guard, number: int) -> None:
        self._number = number
        self._guard = AggregateGuard(guard.condition, guard.variables, _unread)
        cells: list[_Cell] = []
        self._steps: list[list[_Cell]] = []
        for call in self._guard.calls:
            self._steps.append([(kind, named_by(call), argument) for kind, argument in _cells_of(call)])
            cells += self._steps[-1]
        for variable, names in self._guard.plain.items():
            cells += [("value", variable, ast.Attribute(name)) for name in names]
        self._cells = tuple(dict.fromkeys(cells))
        self._places = {cell: i for i, cell in enumerate(self._cells)}
        self.width = len(self._cells)
        self._sides = self._sides_of(guard.condition)
        self._program = () if self._sides else tuple(program_of(self._guard.body) or ())
        self.asked = 0 if self._sides else self.width

    @property
    def contents(self) -> str:
        """The contents of a run's registers, in words."""
        words = {"count": "counts", "known": "counts", "sum": "sums", "MIN": "least values", "MAX": "greatest values"}
        parts = list(dict.fromkeys(words.get(kind, "attributes") for kind, _, _ in self._cells))
        return f"runs with different {' or '.join(parts)} stay apart"

    def ops(self, action: Action, at: int) -> tuple[Op, ...]:
        """As of `Question`."""
        match action:
            case Take(_, variables):
                return tuple(
                    Keep(MergeRule.ONE, at + i, at + i) if kind == "value" else Gather(_RULES[kind], at + i, at + i)
                    for i, (kind, variable, _) in enumerate(self._cells)
                    if variable in variables
                )
            case Leave():
                drops = tuple(Drop(at + i) for i in range(self.width))
                if self._sides is not None:
                    symbol, left, right = self._sides
                    rest = right if isinstance(right, float) else tuple(at + i for i in right)
                    return TotalTest(symbol, tuple(at + i for i in left), rest), *drops
                about = tuple(Operand(register=at + i) for i in range(self.width))
                program = tuple(step for part in self._program for step in self._step(part, at))
                ask = ResidualTest(self._number, about, program, lenient=True)
                return ask, *drops
        raise InternalError(f"an aggregate under {type(action).__name__}")

    def _sides_of(self, condition: ast.Condition) -> tuple[str, tuple[int, ...], tuple[int, ...] | float] | None:
        """The symbol and the registers of both sides, of a comparison of totals, attributes and numbers; else None."""
        negated = isinstance(condition, ast.Not)
        if isinstance(condition, ast.Not):
            condition = condition.child
        if not isinstance(condition, ast.Compare):
            return None
        symbol, sides = condition.operator, [self._side(side) for side in (condition.left, condition.right)]
        if isinstance(sides[0], float):
            symbol, sides = COMPARISONS[symbol].mirror, sides[::-1]
        left, right = sides
        if left is None or right is None or isinstance(left, float):
            return None
        return COMPARISONS[symbol].negation if negated else symbol, left, right

    def _side(self, node: ast.Expression) -> tuple[int, ...] | float | None:
        match node:
            case ast.Number(value) if float(value) == value:
                return float(value)
            case ast.Attribute(name, str() as variable):
                return (self._places["value", variable, ast.Attribute(name)],)
            case ast.Call() if is_aggregate(node):
                return tuple(self._places[cell] for cell in self._steps[self._guard.calls.index(node)])
        return None

    def _step(self, step: float | str | tuple[str, str], at: int) -> list[Operand | Value | float | str]:
        """A step of `program_of` as steps of `ResidualTest.program`; the registers begin at `at`."""
        if isinstance(step, float):
            return [Value(step) if abs(step) < 1 << 53 else step]
        if isinstance(step, str):
            return [f"exact {step}" if step in COMPARISONS else step]
        variable, name = step
        cells = self._steps[int(name)] if variable == CALLS else [("value", variable, ast.Attribute(name))]
        found = [Operand(register=at + self._places[cell], exact=True) for cell in cells]
        return [*found, "mean"] if len(found) > 1 else [*found]

    def load(self, events: EventBatch, rows: np.ndarray, texts: Texts, out: np.ndarray) -> bool:
        """As of `Question`."""
        known: dict[ast.Expression, Column | None] = {}
        for i, (kind, _, argument) in enumerate(self._cells):
            if argument is None:
                out[:, i] = _ONE
                continue
            if argument not in known:
                try:
                    known[argument] = operand(argument, events)
                except EventError:
                    return False  # maybe of an event that no run takes
            column = known[argument]
            if kind == "known":
                out[:, i] = _ZERO if column is None else np.where(_has_value(column), _ONE, _ZERO)
            elif column is not None and not _write_numbers(column, rows, out[:, i]):
                return False
        return True

    def values(self, held: list[int], texts: Texts) -> Any:
        """The state of `AggregateGuard`, for a run that goes on in Python; () before it took an event."""
        taken = frozenset(variable for (_, variable, _), code in zip(self._cells, held, strict=True) if code != NOTHING)
        if not taken:
            return ()
        numbers = {cell: number_of(code) for cell, code in zip(self._cells, held, strict=True)}
        kept = tuple(
            frozenset((tuple(numbers["value", v, ast.Attribute(name)] for name in names),) if v in taken else ())
            for v, names in self._guard.plain.items()
        )
        sums = [_sum_of(numbers, cells) for cells in self._steps]
        return taken, kept, tuple(sums)

    def answer(self, codes: list[int], texts: dict[int, str]) -> bool:
        """True if the condition holds for these codes, one for each register."""
        return self._guard.leave(self.values(codes[: self.width], Texts()))  # there may be room for more


def _cells_of(call: ast.Call) -> list[tuple[str, ast.Expression | None]]:
    (argument,) = call.arguments
    if isinstance(argument, ast.Variable):
        return [("count", None)]
    return [(kind, argument) for kind in (("known",) if call.function == "COUNT" else _CELLS[call.function])]


def _sum_of(numbers: dict[_Cell, Any], cells: list[_Cell]) -> Any:
    """The state of an aggregate (`ceql.operators.functions`), from the numbers in its cells."""
    kind = cells[0][0]
    first = numbers[cells[0]]
    if kind in ("count", "known"):
        return first or 0
    if kind != "sum" or first is None:
        return first
    return (1 if len(cells) == 1 else numbers[cells[1]]), first


def number_of(code: int) -> int | float | None:
    """The number that a typed code stands for; None for NULL, and where nothing was taken."""
    if code <= UNKNOWN:
        return None
    if code > INFINITE or code < -INFINITE - 1:
        return code + INFINITE + 1 if code < 0 else code - INFINITE - 1
    bits = code ^ ((1 << 63) - 1) if code < 0 else code
    return float(np.int64(bits).view(np.float64))


def _has_value(column: Column) -> np.ndarray | bool:
    """bool (n,), false for NULL; True if no value is."""
    if isinstance(column, TextColumn):
        return np.asarray(column.codes >= 0)
    return True if column.known is None else column.known


def _write_numbers(column: Column, rows: np.ndarray, out: np.ndarray) -> bool:
    """Writes the typed codes of `rows` into `out`, int64 (n,); False if a value has none."""
    if not isinstance(column, NumberColumn):
        return False
    values = column.values[rows]
    if values.dtype == np.float64:
        codes = double_codes(values)
        whole = None if column.whole is None else column.whole[rows]
    else:
        codes, whole = np.zeros(len(values), np.int64), np.ones(len(values), bool)
    known = None if column.known is None else column.known[rows]
    if whole is not None:
        far = whole & ((values > WHOLE) | (values < -WHOLE))
        if (far if known is None else far & known).any():
            return False
        numbers = np.where(whole & ~far, values, 0).astype(np.int64)
        codes = np.where(whole, np.where(numbers < 0, numbers - 1 - INFINITE, numbers + 1 + INFINITE), codes)
    out[rows] = codes if known is None else np.where(known, codes, UNKNOWN)
    return True


def _unread(attribute: ast.Attribute) -> Any:
    def read(event: int) -> Any:
        raise InternalError(f"{attribute.name} is in a register")

    return read
