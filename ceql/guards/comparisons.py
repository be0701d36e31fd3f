"""Guards that compare a value of one variable with a value of another, and the codes that kernels compare instead.

For a guard `left symbol right`, each side an expression over one variable, both sides are computed for a whole batch,
and every value becomes an int64 code. Within one guard, codes have the order of the values. Numbers are doubles, or
integers if there are some beyond 2^53 (with both, codes do not do); times are nanoseconds; truth values are 0 and 1.
Texts get a number each if they are only tested for equality, and labels in their order
(`spaseq.core.engine.program.text_order`) otherwise.

A run keeps one code for each side of each guard. One is enough for a side with several values: the greatest of those
that must be less, the smallest of those that must be greater. For `=`, two different values become NULL, as no value is
equal to both. For `!=` see `MergeRule.ONE`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import numpy as np
import pyarrow as pa

from ceql.expressions.vectorized import operand
from ceql.guards.guard import Guard
from ceql.syntax import ast
from ceql.syntax.walk import has_uncoded, replace
from spaseq.core.automata import Avoid, Leave, Take
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.engine.program.register_ops import (
    NOTHING,
    POOLED,
    UNKNOWN,
    ColumnTest,
    Drop,
    Keep,
    MergeRule,
    Op,
    Test,
    Unless,
)
from spaseq.core.engine.program.text_order import TextOrder
from spaseq.core.errors import EventError
from spaseq.core.events import (
    Column,
    Duration,
    DurationColumn,
    EventBatch,
    Instant,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
)
from spaseq.core.events.columns import is_small
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect

KINDS: Final = (None, "double", "whole", "number", "text", "truth", "time", "duration")
"""The kinds of values that a column of codes stands for; None before the first value. A "number" is a double, by the
same code, or a whole number up to 2^51, by one that no double has: those of NaN."""
_INFINITE: Final = 0x7FF << 52
"""The code of the infinite double."""
_RULES: Final = {
    "=": MergeRule.SAME,
    "!=": MergeRule.ONE,
    "<": MergeRule.GREATEST,
    "<=": MergeRule.GREATEST,
    ">": MergeRule.LEAST,
    ">=": MergeRule.LEAST,
}
"""The rule by which the register of the left side takes in a further code; the right side has that of the mirror."""


@dataclass(slots=True)
class Texts:
    """A number for each text, and back. A number that was evicted is not given to another text. `order`: of the texts
    whose order is asked for, apart from the others."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    following: int = 0
    order: TextOrder = field(default_factory=TextOrder)

    def number(self, text: str) -> int:
        """The text's number, a new one if it has none."""
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = self.following
            self.names[number] = text
            self.following += 1
        return number

    def evict(self, used: set[int]) -> None:
        """Drops all texts but those whose numbers are in `used`."""
        self.names = {number: text for number, text in self.names.items() if number in used}
        self.numbers = {text: number for number, text in self.names.items()}

    def snapshot(self) -> Any:
        """The texts and their numbers, as plain values; and those that are ordered, if any."""
        order = (self.order.snapshot(),) if len(self.order) else ()
        return list(self.names), list(self.names.values()), self.following, *order

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        numbers, texts, self.following, *order = state
        if order:
            self.order.restore(*order)
        self.names = dict(zip(numbers, texts, strict=True))
        self.numbers = {text: number for number, text in self.names.items()}
        expect(all(type(n) is int and 0 <= n < self.following < 1 << 61 for n in numbers), "a number for each text")
        expect(len(self.names) == len(self.numbers) == len(texts) and all(type(t) is str for t in texts),
               "each text once")  # fmt: skip


def comparison_of(guard: Guard) -> Comparison | None:
    """The guard as a `Comparison`; None if it is not `left symbol right` with exactly one variable on each side."""
    sides, condition = guard.sides(), guard.condition
    if sides is None or has_uncoded(condition):
        return None
    assert isinstance(condition, ast.Compare)
    attributes = isinstance(condition.left, ast.Attribute) and isinstance(condition.right, ast.Attribute)
    if condition.operator == "!=" and not attributes:
        return None  # for != `GuardRegisters` keeps attributes, not the values of sides
    return Comparison(condition, *sides)


class Comparison:
    """A guard `left symbol right`, each side an expression over one variable: a register and a column for each side."""

    width = 2
    asked = 0

    def __init__(self, condition: ast.Compare, left: str, right: str) -> None:
        self._condition = condition
        self._symbol = condition.operator
        self._is_order = COMPARISONS[condition.operator].is_order
        self._variables = (left, right)
        self._kind: str | None = None

    @property
    def columns(self) -> tuple[Hashable | None, ...]:
        """As of `share`. Guards over the same two expressions code alike, if both are orders or neither is."""
        sides = tuple(replace(side, _of_any_event) for side in (self._condition.left, self._condition.right))
        return tuple((self._is_order, frozenset(sides), side) for side in sides)

    def ops(self, action: Take | Avoid | Leave, at: int) -> tuple[Op, ...]:
        """The register operations of an action of this guard, whose registers and columns begin at `at`."""
        if isinstance(action, Leave):
            return Drop(at), Drop(at + 1)
        taken = [side for side in (0, 1) if self._variables[side] in action.variables]
        tests = self._tests(at, taken)
        if isinstance(action, Avoid):
            return (Unless(tests),)
        rules = _RULES[self._symbol], _RULES[COMPARISONS[self._symbol].mirror]
        return *tests, *(Keep(rules[side], at + side, at + side) for side in taken)

    def _tests(self, at: int, taken: list[int]) -> tuple[Test | ColumnTest, ...]:
        """Tests that an event taken for the sides `taken` satisfies the guard with all values of the other side; taken
        for both, also with itself."""
        tests: list[Test | ColumnTest] = []
        if 0 in taken:
            tests.append(Test(COMPARISONS[self._symbol].mirror, at + 1, at))
        if 1 in taken:
            tests.append(Test(self._symbol, at, at + 1))
        if len(taken) == 2:
            tests.append(ColumnTest(self._symbol, at, at + 1))
        return tuple(tests)

    def load(self, events: EventBatch, rows: np.ndarray, texts: Texts, out: np.ndarray) -> bool:
        """Writes the codes of a batch into `out`, int64 (n, 2), those of `rows` at least.

        False if `texts.order` is full, or the codes cannot be compared with those of earlier batches: values are of
        another kind, lists, without an order, or not computable.
        """
        try:
            sides = [operand(side, events) for side in (self._condition.left, self._condition.right)]
        except EventError:
            return False  # maybe of an event that no run takes
        kind = self._kind_with([s for s in sides if s is not None])
        if kind == "" or (kind == "truth" and self._is_order):
            return False
        self._kind = kind
        for side, column in enumerate(sides):
            if column is None:
                continue
            if side and column is sides[0]:
                out[:, side] = out[:, 0]
            elif not isinstance(column, TextColumn) or not self._is_order:
                out[:, side] = coded(column, kind, texts)
            elif not _labelled(column, texts.order, rows, out[:, side]):
                return False
        return True

    def _kind_with(self, columns: Sequence[Column]) -> str | None:
        """The one kind of values of these columns and of earlier batches; None if all were NULL, "" if there is
        none."""
        if any(isinstance(column, ListColumn | MixedColumn) for column in columns):
            return ""
        kinds = {_size_of(column) for column in columns}
        if "small" in kinds:
            kinds.remove("small")
            kinds.add("whole" if "whole" in (*kinds, self._kind) else "double")
        if self._kind is not None:
            kinds.add(self._kind)
        if not kinds.isdisjoint(("whole", "duration")) and any(_reaches_unknown(column) for column in columns):
            return ""
        return "" if len(kinds) > 1 else next(iter(kinds), None)

    def texts(self) -> tuple[int, ...]:
        """The registers that hold numbers of texts."""
        return (0, 1) if self._kind == "text" and not self._is_order else ()

    def labels(self) -> tuple[int, ...]:
        """The registers that hold labels of texts."""
        return (0, 1) if self._kind == "text" and self._is_order else ()

    def values(self, held: list[int], texts: Texts) -> tuple[frozenset[Any], ...]:
        """The values of each variable, in order of their names, as `ceql.guards.registers` keeps them. `held` are this
        guard's registers; `texts` has the text of each number."""
        sides = [self._side(code, texts) for code in held]
        left, right = self._variables
        return tuple(sides if left < right else sides[::-1])

    def _side(self, code: int, texts: Texts) -> frozenset[Any]:
        if code == NOTHING:
            return frozenset()
        value = self.value(code, texts)
        return frozenset(((value,),)) if self._symbol == "!=" else frozenset((value,))

    def value(self, code: int, texts: Texts) -> Any:
        """The value that a code stands for, which is not `NOTHING`."""
        if code != UNKNOWN and self.labels():
            return texts.order.text(code)
        return decode(code, self._kind, texts.names)

    def snapshot(self) -> Any:
        """The kind of the values so far."""
        return self._kind

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        expect(state in KINDS, "a kind of values")
        self._kind = state


def _of_any_event(node: ast.Expression) -> ast.Expression | None:
    """An attribute without the variable that it is of."""
    return ast.Attribute(node.name) if isinstance(node, ast.Attribute) else None


# -- columns


def coded(column: Column, kind: str | None, texts: Texts) -> np.ndarray:
    """The codes of a column's values, as values of `kind`: int64 (n,), `UNKNOWN` for NULL."""
    if isinstance(column, TextColumn):
        numbers = np.array([texts.number(t) for t in column.texts.to_pylist()] + [UNKNOWN], np.int64)
        return np.asarray(numbers[column.codes])
    assert not isinstance(column, ListColumn | MixedColumn)
    codes = double_codes(column.values) if kind in ("double", "number") else column.values.astype(np.int64)
    if kind == "number" and isinstance(column, NumberColumn) and column.whole is not None:
        values = np.where(column.whole, column.values, 0).astype(np.int64)
        codes = np.where(column.whole, np.where(values < 0, values - 1 - _INFINITE, values + 1 + _INFINITE), codes)
    return codes if column.known is None else np.where(column.known, codes, UNKNOWN)


def _labelled(column: TextColumn, order: TextOrder, rows: np.ndarray, out: np.ndarray) -> bool:
    """Writes the labels of a column's texts in `rows` into `out`, int64 (n,); False if there is no room for them."""
    texts, used = column.texts, None
    if len(texts) > len(rows):  # most are of other rows
        used = apart(column.codes[rows])
        used = used[used >= 0]
        texts = texts.take(pa.array(used))
    labels = order.labels(texts.to_pylist())
    if labels is None:
        return False
    every = np.full(len(column.texts) + 1, UNKNOWN, np.int64)  # the last one is of NULL, code -1
    every[slice(len(labels)) if used is None else used] = labels
    out[:] = every[column.codes]
    return True


def decode(code: int, kind: str | None, texts: dict[int, str]) -> Any:
    """The value that a code of `kind` stands for; None for NULL."""
    if code == UNKNOWN:
        return None
    match kind:
        case "text":
            return texts[code]
        case "truth":
            return bool(code)
        case "time":
            return Instant(code)
        case "duration":
            return Duration(code)
        case "number" if code > _INFINITE or code < -_INFINITE - 1:
            return code + _INFINITE + 1 if code < 0 else code - _INFINITE - 1
        case "double" | "number":
            bits = code ^ ((1 << 63) - 1) if code < 0 else code
            return float(np.int64(bits).view(np.float64))
        case _:
            return code


def double_codes(values: np.ndarray) -> np.ndarray:
    """int64 (n,) with the order of `values`, float64 (n,): the bits of a double, those of negative ones inverted."""
    bits = np.add(values, 0.0, dtype=np.float64).view(np.int64)  # -0.0 is 0.0
    negative = bits >> 63
    negative &= (1 << 63) - 1
    bits ^= negative
    return bits


def kind_of(column: Column) -> str:
    """The kind of a column's values: "double", "whole", "number" (doubles that hold whole numbers, too), "text",
    "truth", "time", "list", "texts" or "mixed"."""
    if isinstance(column, NumberColumn):
        if column.whole is not None:
            return "number"
        return "double" if column.values.dtype == np.float64 else "whole"
    return column.kind


def _size_of(column: Column) -> str:
    """`kind_of`, but "small" for integers that are all exact as doubles, and "double" for "number"."""
    kind = kind_of(column)
    if kind == "whole" and _is_number(column):
        return "small" if is_small(column) else "whole"
    return "double" if kind == "number" else kind


def _reaches_unknown(column: Column) -> bool:
    """True if a value is as small as the codes of no value."""
    return isinstance(column, NumberColumn | DurationColumn) and column.values.min(initial=0) <= POOLED


def _is_number(column: Column) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn)
