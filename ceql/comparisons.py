"""Guards that are comparisons, for the kernels: what they compare, and values as numbers that compare alike.

A guard `left symbol right` whose sides are each about one variable is evaluated on numbers: both sides are worked out
for a whole batch, and every value becomes an int64 code. Within one guard codes compare as the values do: numbers as
doubles, or exactly where there are whole numbers beyond 2^53; times as nanoseconds; truth as 0 and 1; texts, which are
only compared for being equal, by a number each.

A run keeps a code for each side of each guard. Of many values one decides: the greatest of those that must be less, the
smallest of those that must be greater; for `=` two different ones are as good as NULL, for nothing equals both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import numpy as np

from ceql import ast
from ceql.columnar import operand
from ceql.walk import attributes_of, calls_of
from spaseq.automata import Action, Again, Avoid, Leave, Transition
from spaseq.engine.ops import NOTHING, UNKNOWN, Both, Drop, Keep, Op, Test, Unless
from spaseq.errors import InternalError
from spaseq.events import Column, ListColumn, NumberColumn, TextColumn, TimeColumn, TruthColumn
from spaseq.events.batch import Instant

if TYPE_CHECKING:
    from ceql.guards import Guard

__all__ = ["ValueCodes", "comparison_of"]

_EXACT: Final = 1 << 53
_TEXTS: Final = 1 << 16
_MIRROR: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_RULES: Final = {
    "=": ("same", "same"),
    "!=": ("one", "one"),
    "<": ("greatest", "least"),
    "<=": ("greatest", "least"),
    ">": ("least", "greatest"),
    ">=": ("least", "greatest"),
}
"""What to keep of the values of the left and of the right side."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A guard `left symbol right`, by the variables of its sides."""

    symbol: str
    left: str
    right: str


def comparison_of(guard: Guard) -> Comparison | None:
    """What a guard compares; None where it is not `left symbol right` with a variable on each side."""
    condition = guard.condition
    if not isinstance(condition, ast.Compare) or len(guard.variables) != 2 or any(calls_of(condition)):
        return None
    left, right = ({a.variable for a in attributes_of(side)} for side in (condition.left, condition.right))
    if len(left) != 1 or len(right) != 1 or left == right or left | right != guard.variables:
        return None
    if condition.operator == "!=" and not all(
        isinstance(side, ast.Attribute) for side in (condition.left, condition.right)
    ):
        return None  # its registers hold attributes, not the values of the sides
    (first,), (second,) = left, right
    assert first is not None and second is not None
    return Comparison(condition.operator, first, second)


class ValueCodes:
    """`spaseq.engine.Codes` for guards with their comparisons; one for each evaluation.

    Register and column 2 g are of the left side of guard g, 2 g + 1 of the right one.
    """

    outputs: tuple[int, ...] = ()
    asked = 0

    def __init__(self, guards: Sequence[Guard], comparisons: Sequence[Comparison]) -> None:
        self._guards = tuple(guards)
        self._comparisons = tuple(comparisons)
        self._kinds: list[str | None] = [None] * len(guards)
        self._texts: dict[str, int] = {}
        self._next = 0
        self._full = _TEXTS
        self.registers = 2 * len(self._guards)

    def ops(self, transition: Transition) -> tuple[Op, ...]:
        """What the actions of a transition do to the registers."""
        return tuple(op for action in transition.actions for op in self._ops(action))

    def _ops(self, action: Action) -> tuple[Op, ...]:
        if isinstance(action, Again):
            raise InternalError("a register action between rounds, in CEQL")
        number = self._guards.index(action.guard)
        if isinstance(action, Leave):
            return Drop(2 * number), Drop(2 * number + 1)
        comparison = self._comparisons[number]
        taken = [side for side in (0, 1) if (comparison.left, comparison.right)[side] in action.variables]
        tests = self._tests(2 * number, comparison.symbol, taken)
        if isinstance(action, Avoid):
            return (Unless(tests),)
        rules = _RULES[comparison.symbol]
        return *tests, *(Keep(rules[side], 2 * number + side, 2 * number + side) for side in taken)

    @staticmethod
    def _tests(at: int, symbol: str, taken: list[int]) -> tuple[Test | Both, ...]:
        """That an event satisfies the guard with all that was taken for the other side, and with itself."""
        tests: list[Test | Both] = []
        if 0 in taken:
            tests.append(Test(_MIRROR[symbol], at + 1, at))
        if 1 in taken:
            tests.append(Test(symbol, at, at + 1))
        if len(taken) == 2:
            tests.append(Both(symbol, at, at + 1))
        return tuple(tests)

    @property
    def extras(self) -> np.ndarray:
        """An event has one value."""
        return np.zeros((0, 2 * len(self._guards)), np.int64)

    def load(self, batch: Any) -> np.ndarray | None:
        """int64 (n, 2 guards), as of `Codes.load`. `EventError` where a side cannot be computed."""
        out = np.full((len(batch), 2 * len(self._guards)), UNKNOWN, np.int64)
        for g, guard in enumerate(self._guards):
            condition = guard.condition
            assert isinstance(condition, ast.Compare)
            sides = [operand(side, batch.events) for side in (condition.left, condition.right)]
            kind = self._kind(self._kinds[g], [s for s in sides if s is not None])
            if kind == "" or (kind == "text" and condition.operator not in ("=", "!=")):
                return None
            if kind == "truth" and condition.operator not in ("=", "!="):
                return None
            self._kinds[g] = kind
            for side, column in enumerate(sides):
                if column is not None:
                    out[:, 2 * g + side] = self._coded(column, kind)
        return out

    def _kind(self, before: str | None, columns: Sequence[Column]) -> str | None:
        """The kind that fits the columns and what came before; None while all is NULL, "" where there is none."""
        if any(isinstance(column, ListColumn) for column in columns):
            return ""
        kinds = {_kind_of(column) for column in columns}
        if "small" in kinds:
            kinds.remove("small")
            kinds.add("whole" if "whole" in (*kinds, before) else "double")
        if before is not None:
            kinds.add(before)
        if "whole" in kinds and any(_is_number(c) and c.values.min(initial=0) <= UNKNOWN for c in columns):
            return ""
        return "" if len(kinds) > 1 else next(iter(kinds), None)

    def _coded(self, column: Column, kind: str | None) -> np.ndarray:
        if isinstance(column, TextColumn):
            numbers = np.array([self._number(t) for t in column.texts.to_pylist()] + [UNKNOWN], np.int64)
            return np.asarray(numbers[column.codes])
        assert not isinstance(column, ListColumn)
        codes = _double_codes(column.values) if kind == "double" else column.values.astype(np.int64)
        return codes if column.known is None else np.where(column.known, codes, UNKNOWN)

    def _number(self, text: str) -> int:
        number = self._texts.setdefault(text, self._next)
        self._next += number == self._next
        return number

    def answer(self, number: int, codes: list[int], row: int) -> bool:
        """Nothing is asked: all guards are comparisons."""
        raise InternalError("a question about comparisons")

    @property
    def full(self) -> bool:
        """Whether it is time to `forget`."""
        return len(self._texts) > self._full

    def forget(self, held: np.ndarray) -> None:
        """Let go of the texts that are in none of these registers: int64 (runs, 2 guards)."""
        columns = [2 * g + side for g, kind in enumerate(self._kinds) if kind == "text" for side in (0, 1)]
        numbers = set(np.unique(held[:, columns]).tolist())
        self._texts = {text: number for text, number in self._texts.items() if number in numbers}
        self._full = 2 * len(self._texts) + _TEXTS

    def row(self, codes: list[list[int]], state: int) -> Any:
        """The row of `GuardRegisters`: (guard number, values of each variable in order of their names)."""
        (held,) = codes  # an event has one value
        texts = {number: text for text, number in self._texts.items()}
        entries = []
        for g, comparison in enumerate(self._comparisons):
            sides = [self._values(held[2 * g + side], g, texts) for side in (0, 1)]
            if any(sides):
                entries.append((g, tuple(sides if comparison.left < comparison.right else sides[::-1])))
        return tuple(entries)

    def state(self) -> Any:
        """What a snapshot must hold."""
        return self._kinds, self._texts, self._next

    def restore(self, state: Any) -> None:
        """The opposite of `state`."""
        self._kinds, self._texts, self._next = state

    def _values(self, code: int, g: int, texts: dict[int, str]) -> frozenset[Any]:
        if code == NOTHING:
            return frozenset()
        value = None if code == UNKNOWN else _decoded(code, self._kinds[g], texts)
        return frozenset(((value,),)) if self._comparisons[g].symbol == "!=" else frozenset((value,))


def _is_number(column: Column) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn)


def _kind_of(column: Column) -> str:
    match column:
        case TextColumn():
            return "text"
        case TruthColumn():
            return "truth"
        case TimeColumn():
            return "time"
        case ListColumn():
            return "list"
        case NumberColumn(values):
            if values.dtype == np.float64:
                return "double"
            return "small" if values.size == 0 or max(values.max(), -values.min()) <= _EXACT else "whole"


def _double_codes(values: np.ndarray) -> np.ndarray:
    """int64 in the order of the doubles."""
    bits = (values.astype(np.float64) + 0.0).view(np.int64)  # -0.0 is 0.0
    return np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)


def _decoded(code: int, kind: str | None, texts: dict[int, str]) -> Any:
    match kind:
        case "text":
            return texts[code]
        case "truth":
            return bool(code)
        case "time":
            return Instant(code)
        case "double":
            bits = code ^ ((1 << 63) - 1) if code < 0 else code
            return float(np.int64(bits).view(np.float64))
        case _:
            return code
