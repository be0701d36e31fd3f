"""The functions of numbers: ABS, ROUND, POWER and others.

ABS, ROUND, FLOOR, CEIL and MOD of whole numbers are whole, exactly; outside of 64 bits they are NULL. POWER, SQRT, LN
and EXP are of doubles. A root or a logarithm of what has none is NULL, as 1 / 0 is. ROUND takes a half away from zero.

Values and columns are computed by the same functions of numpy, so that they agree in the last digit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ceql.operators.arithmetic import ARITHMETIC
from ceql.operators.columns import Constant, Operand, both_known
from ceql.operators.function import Function
from ceql.operators.texts import whole_number
from ceql.operators.values import INT64
from spaseq.core.events import NumberColumn

_MOST: Final = 300
"""Digits that ROUND tells apart: 10^300 is a double."""


def _absolute(value: int | float) -> int | float | None:
    found = abs(value)
    return found if isinstance(value, float) or found in INT64 else None


def _absolute_column(column: Operand, count: int) -> Any:
    if not isinstance(column, NumberColumn):
        return NotImplemented
    known = column.known
    if column.values.dtype == np.int64 and (least := column.values == INT64[0]).any():
        known = both_known(known, ~least)
    return NumberColumn(np.abs(column.values), known, column.whole)


def round_number(value: int | float, digits: Any = 0) -> int | float | None:
    """ROUND of one number."""
    places = max(-_MOST, min(_MOST, whole_number(digits, "ROUND")))
    if isinstance(value, float):
        return _round_double(value, places)
    if places >= 0:
        return value
    unit = 10**-places
    many, rest = divmod(abs(value), unit)
    found = (many + (2 * rest >= unit)) * unit
    return (found if value >= 0 else -found) if found in INT64 else None


def _round_double(value: float, places: int) -> float:
    """As `round_doubles`, step by step."""
    unit = float(10 ** abs(places))
    scaled = value * unit if places >= 0 else value / unit
    if not math.isfinite(scaled):
        return value
    whole = float(math.trunc(scaled))
    if abs(scaled - whole) >= 0.5:
        whole += math.copysign(1.0, scaled)
    found = whole / unit if places >= 0 else whole * unit
    return found if math.isfinite(found) else value


def round_doubles(values: np.ndarray, places: int) -> np.ndarray:
    """A half goes away from zero; values too large to have such digits stay."""
    unit = float(10 ** abs(places))
    scaled = values * unit if places >= 0 else values / unit
    whole = np.trunc(scaled)
    whole = whole + np.where(np.abs(scaled - whole) >= 0.5, np.sign(scaled), 0.0)
    found = whole / unit if places >= 0 else whole * unit
    return np.where(np.isfinite(scaled) & np.isfinite(found), found, values)


def _round_column(column: Operand, digits: Operand = None, *, count: int) -> Any:
    if not isinstance(column, NumberColumn) or not isinstance(digits, Constant | None):
        return NotImplemented
    places = 0 if digits is None else max(-_MOST, min(_MOST, whole_number(digits.value, "ROUND")))
    if places >= 0 and column.values.dtype == np.int64:
        return column
    if column.values.dtype == np.int64 or (column.whole is not None and places < 0):
        return NotImplemented
    with np.errstate(all="ignore"):
        return NumberColumn(round_doubles(column.values, places), column.known, column.whole)


def _towards(ufunc: np.ufunc) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """FLOOR and CEIL."""

    def of_value(value: int | float) -> int | float:
        return float(ufunc(value)) if isinstance(value, float) else value

    def of_column(column: Operand, count: int) -> Any:
        if not isinstance(column, NumberColumn):
            return NotImplemented
        if column.values.dtype == np.int64:
            return column
        return NumberColumn(ufunc(column.values), column.known, column.whole)

    return of_value, of_column


def _sign(value: int | float) -> int:
    return (value > 0) - (value < 0)


def _sign_column(column: Operand, count: int) -> Any:
    if not isinstance(column, NumberColumn):
        return NotImplemented
    return NumberColumn(np.sign(column.values).astype(np.int64), column.known)


def _mod(left: Any, right: Any) -> Any:
    return ARITHMETIC["%"].of_values(left, right)


def _array(operand: Operand) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The values of a column, or a constant, that are all whole or all doubles; None for others."""
    if isinstance(operand, NumberColumn) and operand.whole is None:
        return operand.values, operand.known
    if isinstance(operand, Constant) and type(operand.value) in (int, float):
        return np.asarray(operand.value), None
    return None


def _mod_columns(left: Operand, right: Operand, count: int) -> Any:
    one, two = _array(left), _array(right)
    if one is None or two is None:
        return NotImplemented
    with np.errstate(all="ignore"):
        found, defined = ARITHMETIC["%"].of_columns(one[0], two[0])
    known = both_known(both_known(one[1], two[1]), defined)
    return NumberColumn(found if known is None else np.where(known, found, 0), known)


def _of_doubles(compute: Callable[..., np.ndarray]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function of doubles, NULL if its result is NaN: of values and of columns."""

    def of_values(*values: int | float) -> float | None:
        with np.errstate(all="ignore"):
            found = float(compute(*[np.array([value], np.float64) for value in values])[0])
        return None if math.isnan(found) else found

    def of_columns(*operands: Operand, count: int) -> Any:
        known, arrays = None, []
        for operand in operands:
            if isinstance(operand, NumberColumn):
                known = both_known(known, operand.known)
                arrays.append(operand.values.astype(np.float64))
            else:
                assert isinstance(operand, Constant)
                arrays.append(np.full(count, float(operand.value)))
        with np.errstate(all="ignore"):
            found = compute(*arrays)
        nan = np.isnan(found)
        if nan.any():
            known = both_known(known, ~nan)
            found = np.where(nan, 0.0, found)
        return NumberColumn(found, known)

    return of_values, of_columns


def _logarithms(values: np.ndarray) -> np.ndarray:
    return np.log(np.where(values > 0, values, np.nan))


_FLOOR, _CEIL = _towards(np.floor), _towards(np.ceil)


def _powers(base: Any, exponent: Any) -> Any:
    """Of -0.0 those of 0.0, which it is equal to: registers of the kernels hold the one for the other."""
    return np.power(base + 0.0, exponent)


_POWER, _SQRT = _of_doubles(_powers), _of_doubles(np.sqrt)
_LN, _EXP = _of_doubles(_logarithms), _of_doubles(np.exp)

NUMBERS: Final = (
    Function("ABS", ("number",), "number", _absolute, columns=_absolute_column),
    Function("ROUND", ("number", "number"), "number", round_number, optional=1, columns=_round_column,
             sample="ROUND(x.price, 2)"),
    Function("FLOOR", ("number",), "number", _FLOOR[0], columns=_FLOOR[1]),
    Function("CEIL", ("number",), "number", _CEIL[0], columns=_CEIL[1]),
    Function("MOD", ("number", "number"), "number", _mod, columns=_mod_columns, sample="MOD(x.price, 2)"),
    Function("POWER", ("number", "number"), "number", _POWER[0], columns=_POWER[1], sample="POWER(x.price, 2)"),
    Function("SQRT", ("number",), "number", _SQRT[0], columns=_SQRT[1]),
    Function("LN", ("number",), "number", _LN[0], columns=_LN[1]),
    Function("EXP", ("number",), "number", _EXP[0], columns=_EXP[1]),
    Function("SIGN", ("number",), "number", _sign, columns=_sign_column),
)  # fmt: skip
