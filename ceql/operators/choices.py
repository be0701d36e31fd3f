"""The functions that choose one of their arguments: COALESCE, NULLIF, LEAST and GREATEST.

COALESCE is the first argument that is not NULL. NULLIF(a, b) is NULL if a = b, else a. LEAST and GREATEST are NULL if
an argument is; of equal arguments they give the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ceql.operators.columns import Constant, Operand, both_known, choose, known_rows
from ceql.operators.function import Function
from ceql.operators.values import compare
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.events import NumberColumn
from spaseq.core.events.columns import is_small


def _coalesce(*arguments: Any) -> Any:
    return next((argument for argument in arguments if argument is not None), None)


def _coalesce_columns(*operands: Operand, count: int) -> Operand:
    rest, parts = np.ones(count, bool), []
    for operand in operands:
        known = known_rows(operand, count)
        parts.append((rest & known, operand))
        rest = rest & ~known
    return choose(parts, count)


def _null_if(value: Any, other: Any) -> Any:
    return None if compare("=", value, other) else value


def _null_if_columns(column: Operand, other: Operand, count: int) -> Any:
    if not isinstance(column, NumberColumn) or not isinstance(other, Constant) or column.whole is not None:
        return NotImplemented
    kind, value = column.values.dtype.kind, other.value
    if isinstance(value, bool | str) or isinstance(value, int) != (kind == "i"):
        return NotImplemented
    return NumberColumn(column.values, both_known(column.known, column.values != value))


def _extreme(symbol: str) -> Callable[..., Any]:
    def extreme(*arguments: Any) -> Any:
        found = arguments[0]
        for argument in arguments[1:]:
            found = argument if compare(symbol, argument, found) else found
        return found

    return extreme


def _extreme_columns(symbol: str) -> Callable[..., Any]:
    better = COMPARISONS[symbol].holds

    def extreme(*operands: Operand, count: int) -> Any:
        """Of whole numbers alone, or of numbers that doubles hold."""
        if not all(isinstance(operand, NumberColumn) or _is_number(operand) for operand in operands):
            return NotImplemented
        columns = [_as_column(operand) for operand in operands]
        known = None
        for column in columns:
            known = both_known(known, column.known)
        whole: Any = None
        if any(column.values.dtype == np.float64 for column in columns):
            if not all(is_small(column) for column in columns):
                return NotImplemented
            whole = _whole_of(columns[0])
        values = columns[0].values
        for column in columns[1:]:
            change = better(column.values, values)
            values = np.where(change, column.values, values)
            if whole is not None:
                whole = np.where(change, _whole_of(column), whole)
        whole = None if whole is None else np.broadcast_to(whole, count)
        return NumberColumn(np.broadcast_to(values, count), known, whole if whole is not None and whole.any() else None)

    return extreme


def _is_number(operand: Operand) -> bool:
    return isinstance(operand, Constant) and type(operand.value) in (int, float)


def _as_column(operand: Operand) -> NumberColumn:
    """A constant as a column of one row, which numpy takes for any number of rows."""
    if isinstance(operand, Constant):
        return NumberColumn(np.array([operand.value]), None)
    assert isinstance(operand, NumberColumn)
    return operand


def _whole_of(column: NumberColumn) -> Any:
    return column.values.dtype == np.int64 if column.whole is None else column.whole


CHOICES: Final = (
    Function("COALESCE", ("any",), "argument", _coalesce, repeats=True, takes_null=True, columns=_coalesce_columns,
             sample="COALESCE(x.price, 0)"),
    Function("NULLIF", ("any", "any"), "argument", _null_if, takes_null=True, columns=_null_if_columns,
             sample="NULLIF(x.price, 0)"),
    Function("LEAST", ("ordered",), "argument", _extreme("<"), repeats=True, columns=_extreme_columns("<"),
             sample="LEAST(x.price, 10)"),
    Function("GREATEST", ("ordered",), "argument", _extreme(">"), repeats=True, columns=_extreme_columns(">"),
             sample="GREATEST(x.price, 10)"),
)  # fmt: skip
