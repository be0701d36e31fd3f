"""The operators + - * / %: a row for each, on values and on columns.

The rules stand in `ceql.operators.values`, those of times and durations in `ceql.operators.times`. Columns are int64 or
float64 arrays. A result on them is an array and a bool array, true if not NULL, or None for everywhere.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ceql.operators.times import move
from ceql.operators.values import INT64, kind_of, mismatch
from spaseq.core.events import Duration, Instant

_Columns = tuple[np.ndarray, np.ndarray | None]
_SPANS: Final = (Instant, Duration)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """An operator on two numbers.

    `rule` is its rule in the grammar, `level` its precedence in the printer. `real` computes with doubles, values or
    arrays; `whole` with ints and `wholes` with int64 arrays, if two whole numbers have a whole result.
    """

    symbol: str
    rule: str
    level: int
    real: Callable[[Any, Any], Any]
    whole: Callable[[int, int], int] | None
    wholes: Callable[[np.ndarray, np.ndarray], _Columns] | None
    divides: bool = False
    """True if the result is NULL for 0 on the right side."""
    in_kernels: bool = True
    """True if the engine's kernels compute it (`spaseq.core.engine.program.register_ops.ResidualTest`)."""

    def of_values(self, left: Any, right: Any) -> Any:
        """The value of `left symbol right`; None for NULL. `EventError` if the kinds do not go together."""
        if left is None or right is None:
            return None
        if isinstance(left, _SPANS) or isinstance(right, _SPANS):
            return move(self.symbol, left, right)
        for side in (left, right):
            if kind_of(side) != "number":
                raise mismatch(kind_of(left), kind_of(right), f"{left!r} {self.symbol} {right!r}")
        if self.divides and right == 0:
            return None
        if self.whole is not None and isinstance(left, int) and isinstance(right, int):
            total = self.whole(left, right)
            return total if total in INT64 else None
        result = self.real(float(left), float(right))
        return None if math.isnan(result) else result

    def of_columns(self, left: np.ndarray, right: np.ndarray) -> _Columns:
        """As `of_values`, on arrays that may be broadcast to one another."""
        defined = right != 0 if self.divides else None
        if self.wholes is not None and left.dtype.kind == "i" and right.dtype.kind == "i":
            result, fits = self.wholes(left, right)
            return result, fits if defined is None else np.broadcast_to(defined, result.shape)
        result = self.real(left.astype(np.float64), right.astype(np.float64))
        number = ~np.isnan(result)
        if number.all() and (defined is None or defined.all()):
            return result, None
        return result, number if defined is None else number & defined


def negate(value: Any) -> int | float | None:
    """The value of `-value`; None for NULL. `EventError` if it is not a number."""
    if value is None:
        return None
    if isinstance(value, Duration):
        return Duration(-value) if -value in INT64 else None
    if kind_of(value) != "number":
        raise mismatch(kind_of(value), "number", f"-{value!r}")
    if isinstance(value, int):
        return -value if -value in INT64 else None
    return -float(value)


def _sums(a: np.ndarray, b: np.ndarray) -> _Columns:
    total = a + b
    return total, ~(((a ^ total) & (b ^ total)) < 0)


def _differences(a: np.ndarray, b: np.ndarray) -> _Columns:
    total = a - b
    return total, ~(((a ^ b) & (a ^ total)) < 0)


def _products(a: np.ndarray, b: np.ndarray) -> _Columns:
    """Those near the limit of 64 bits are computed again as Python ints."""
    product = np.asarray(a * b)
    near = np.flatnonzero(np.abs(a.astype(np.float64) * b.astype(np.float64)) >= 2.0**62)
    if not len(near):
        return product, None
    wide_a, wide_b = np.broadcast_to(a, product.shape), np.broadcast_to(b, product.shape)
    fits = np.ones(product.shape, bool)
    fits[near] = [int(wide_a[i]) * int(wide_b[i]) in INT64 for i in near]
    return product, fits


def _rest(left: int, right: int) -> int:
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _rests(a: np.ndarray, b: np.ndarray) -> _Columns:
    return np.fmod(a, np.where(b == 0, 1, b)), None


def _real_rest(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return math.nan if math.isinf(left) else math.fmod(left, right)
    return np.fmod(left, right)


ARITHMETIC: Final = {
    row.symbol: row
    for row in (
        Arithmetic("+", "add", 4, operator.add, operator.add, _sums),
        Arithmetic("-", "subtract", 4, operator.sub, operator.sub, _differences),
        Arithmetic("*", "multiply", 5, operator.mul, operator.mul, _products),
        Arithmetic("/", "divide", 5, operator.truediv, None, None, divides=True),
        Arithmetic("%", "modulo", 5, _real_rest, _rest, _rests, divides=True, in_kernels=False),
    )
}
