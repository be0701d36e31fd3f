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
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

import numpy as np

from ceql.expressions.vectorized import operand
from ceql.guards.guard import Guard
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, calls_of
from spaseq.automata import Avoid, Leave, Take
from spaseq.engine.program.register_ops import NOTHING, UNKNOWN, Both, Drop, Keep, Op, Test, Unless
from spaseq.events import Column, EventBatch, ListColumn, NumberColumn, TextColumn, TimeColumn, TruthColumn
from spaseq.events.batch import Instant
from spaseq.snapshot import expect

__all__ = ["KINDS", "Comparison", "Texts", "coded", "comparison_of", "decoded", "double_codes", "kind_of"]

_EXACT: Final = 1 << 53
_MIRROR: Final = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
KINDS: Final = (None, "double", "whole", "text", "truth", "time")
"""Of values that are codes; None before there is one."""
_RULES: Final = {
    "=": ("same", "same"),
    "!=": ("one", "one"),
    "<": ("greatest", "least"),
    "<=": ("greatest", "least"),
    ">": ("least", "greatest"),
    ">=": ("least", "greatest"),
}
"""What to keep of the values of the left and of the right side."""


@dataclass(slots=True)
class Texts:
    """A number for each text, and back. `forget` lets go of those that are not used any more; no number comes again."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    following: int = 0

    def number(self, text: str) -> int:
        """The text's number, a new one if it has none."""
        number = self.numbers.get(text)
        if number is None:
            number = self.numbers[text] = self.following
            self.names[number] = text
            self.following += 1
        return number

    def forget(self, used: set[int]) -> None:
        """Only the numbers in `used` are still in use."""
        self.names = {number: text for number, text in self.names.items() if number in used}
        self.numbers = {text: number for number, text in self.names.items()}

    def snapshot(self) -> Any:
        """The texts and their numbers, as plain values."""
        return list(self.names), list(self.names.values()), self.following

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        numbers, texts, self.following = state
        self.names = dict(zip(numbers, texts, strict=True))
        self.numbers = {text: number for number, text in self.names.items()}
        expect(all(type(n) is int and 0 <= n < self.following < 1 << 61 for n in numbers), "a number for each text")
        expect(len(self.names) == len(self.numbers) == len(texts) and all(type(t) is str for t in texts),
               "each text once")  # fmt: skip


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
    return Comparison(condition, first, second)


class Comparison:
    """A guard `left symbol right`, by the variables of its sides: a register and a column for each."""

    width = 2
    asked = 0

    def __init__(self, condition: ast.Compare, left: str, right: str) -> None:
        self._condition = condition
        self._symbol = condition.operator
        self._variables = (left, right)
        self._kind: str | None = None

    def ops(self, action: Take | Avoid | Leave, at: int) -> tuple[Op, ...]:
        """What an action of this guard does to the registers from `at` on."""
        if isinstance(action, Leave):
            return Drop(at), Drop(at + 1)
        taken = [side for side in (0, 1) if self._variables[side] in action.variables]
        tests = self._tests(at, taken)
        if isinstance(action, Avoid):
            return (Unless(tests),)
        rules = _RULES[self._symbol]
        return *tests, *(Keep(rules[side], at + side, at + side) for side in taken)

    def _tests(self, at: int, taken: list[int]) -> tuple[Test | Both, ...]:
        """That an event satisfies the guard with all that was taken for the other side, and with itself."""
        tests: list[Test | Both] = []
        if 0 in taken:
            tests.append(Test(_MIRROR[self._symbol], at + 1, at))
        if 1 in taken:
            tests.append(Test(self._symbol, at, at + 1))
        if len(taken) == 2:
            tests.append(Both(self._symbol, at, at + 1))
        return tuple(tests)

    def load(self, events: EventBatch, texts: Texts, out: np.ndarray) -> bool:
        """Enter the codes of a batch into `out`, int64 (n, 2); False where they cannot be held against those before.
        `EventError` where a side cannot be computed."""
        sides = [operand(side, events) for side in (self._condition.left, self._condition.right)]
        kind = self._kind_with([s for s in sides if s is not None])
        if kind == "" or (kind in ("text", "truth") and self._symbol not in ("=", "!=")):
            return False
        self._kind = kind
        for side, column in enumerate(sides):
            if column is not None:
                out[:, side] = out[:, 0] if side and column is sides[0] else coded(column, kind, texts)
        return True

    def _kind_with(self, columns: Sequence[Column]) -> str | None:
        """The kind that fits the columns and what came before; None while all is NULL, "" where there is none."""
        if any(isinstance(column, ListColumn) for column in columns):
            return ""
        kinds = {_size_of(column) for column in columns}
        if "small" in kinds:
            kinds.remove("small")
            kinds.add("whole" if "whole" in (*kinds, self._kind) else "double")
        if self._kind is not None:
            kinds.add(self._kind)
        if "whole" in kinds and any(_is_number(c) and c.values.min(initial=0) <= UNKNOWN for c in columns):
            return ""
        return "" if len(kinds) > 1 else next(iter(kinds), None)

    def texts(self) -> tuple[int, ...]:
        """Which of the registers hold numbers of texts."""
        return (0, 1) if self._kind == "text" else ()

    def values(self, held: list[int], texts: dict[int, str]) -> tuple[frozenset[Any], ...]:
        """What `ceql.guards.registers` keeps of each variable, in order of their names, given the registers."""
        sides = [self._side(code, texts) for code in held]
        left, right = self._variables
        return tuple(sides if left < right else sides[::-1])

    def _side(self, code: int, texts: dict[int, str]) -> frozenset[Any]:
        if code == NOTHING:
            return frozenset()
        value = decoded(code, self._kind, texts)
        return frozenset(((value,),)) if self._symbol == "!=" else frozenset((value,))

    def snapshot(self) -> Any:
        """The kind of the values so far."""
        return self._kind

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        expect(state in KINDS, "a kind of values")
        self._kind = state


# -- columns


def coded(column: Column, kind: str | None, texts: Texts) -> np.ndarray:
    """The codes of a column's values as of a kind: int64 (n,)."""
    if isinstance(column, TextColumn):
        numbers = np.array([texts.number(t) for t in column.texts.to_pylist()] + [UNKNOWN], np.int64)
        return np.asarray(numbers[column.codes])
    assert not isinstance(column, ListColumn)
    codes = double_codes(column.values) if kind == "double" else column.values.astype(np.int64)
    return codes if column.known is None else np.where(column.known, codes, UNKNOWN)


def decoded(code: int, kind: str | None, texts: dict[int, str]) -> Any:
    """The value of a code of a kind; None for NULL."""
    if code == UNKNOWN:
        return None
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


def double_codes(values: np.ndarray) -> np.ndarray:
    """int64 in the order of the doubles."""
    bits = np.add(values, 0.0, dtype=np.float64).view(np.int64)  # -0.0 is 0.0
    negative = bits >> 63
    negative &= (1 << 63) - 1
    bits ^= negative
    return bits


def kind_of(column: Column) -> str:
    """double or whole, text, truth, time, list."""
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
            return "double" if values.dtype == np.float64 else "whole"


def _size_of(column: Column) -> str:
    """The same, but `small` where doubles hold all the whole numbers."""
    kind = kind_of(column)
    if kind == "whole" and _is_number(column):
        values = column.values
        return "small" if values.size == 0 or max(values.max(), -values.min()) <= _EXACT else "whole"
    return kind


def _is_number(column: Column) -> TypeGuard[NumberColumn]:
    return isinstance(column, NumberColumn)
