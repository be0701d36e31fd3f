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
from spaseq.core.events import NumberColumn


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


def _extreme_columns(pick: np.ufunc) -> Callable[..., Any]:
    def extreme(*operands: Operand, count: int) -> Any:
        known, found = None, []
        for operand in operands:
            if isinstance(operand, NumberColumn) and operand.whole is None:
                known = both_known(known, operand.known)
                found.append(operand.values)
            elif isinstance(operand, Constant) and type(operand.value) in (int, float):
                found.append(np.asarray(operand.value))
            else:
                return NotImplemented
        if len({array.dtype for array in found}) > 1:
            return NotImplemented
        values = found[0]
        for array in found[1:]:
            values = pick(values, array)
        return NumberColumn(np.broadcast_to(values, count), known)

    return extreme


CHOICES: Final = (
    Function("COALESCE", ("any",), "argument", _coalesce, repeats=True, takes_null=True, columns=_coalesce_columns,
             sample="COALESCE(x.price, 0)"),
    Function("NULLIF", ("any", "any"), "argument", _null_if, takes_null=True, columns=_null_if_columns,
             sample="NULLIF(x.price, 0)"),
    Function("LEAST", ("ordered",), "argument", _extreme("<"), repeats=True, columns=_extreme_columns(np.minimum),
             sample="LEAST(x.price, 10)"),
    Function("GREATEST", ("ordered",), "argument", _extreme(">"), repeats=True, columns=_extreme_columns(np.maximum),
             sample="GREATEST(x.price, 10)"),
)  # fmt: skip
