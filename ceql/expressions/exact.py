"""Comparisons of columns of numbers by value: whole numbers of 64 bits and doubles, exactly.

numpy compares both as doubles, which do not hold all whole numbers beyond 2^53. Here a column is compared with a
constant as one of its own kind. A column of whole numbers is compared with one of doubles as doubles, but exactly in
rows that are equal as doubles, if that matters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spaseq.core.comparisons import COMPARISONS
from spaseq.core.events import NumberColumn
from spaseq.core.events.columns import is_small

_LOW, _HIGH = -(1 << 63), (1 << 63) - 1


def compare(symbol: str, left: NumberColumn, right: NumberColumn | int | float) -> np.ndarray:
    """bool (n,), true if `left symbol right`; any value for NULL."""
    if not isinstance(right, NumberColumn):
        return _with_constant(symbol, left.values, right)
    if left.values.dtype == right.values.dtype or (is_small(left) and is_small(right)):
        return np.asarray(COMPARISONS[symbol].holds(left.values, right.values))
    if left.values.dtype == np.float64:
        return _of_both(COMPARISONS[symbol].mirror, right.values, left.values)
    return _of_both(symbol, left.values, right.values)


def same_as(constants: frozenset[int | float], kind: str) -> np.ndarray:
    """The constants that a column of this `dtype.kind` ("i" or "f") can hold, ascending and as its values."""
    if kind == "f":
        return np.array(sorted({float(c) for c in constants if float(c) == c}), np.float64)
    whole = {int(c) for c in constants if math.isfinite(c) and c == int(c)}
    return np.array(sorted(c for c in whole if _LOW <= c <= _HIGH), np.int64)


def _with_constant(symbol: str, values: np.ndarray, constant: int | float) -> np.ndarray:
    """As `compare`; the constant becomes one of the column's kind, and `<` and `<=` are adapted to it."""
    below: Any = constant
    if values.dtype == np.float64:
        below = float(constant)
        if below > constant:
            below = math.nextafter(below, -math.inf)
    elif not math.isfinite(constant) or not _LOW <= constant <= _HIGH:
        return np.full(len(values), symbol == "!=" or symbol[0] == ("<" if constant > 0 else ">"))
    else:
        below = math.floor(constant)
    if below == constant:
        return np.asarray(COMPARISONS[symbol].holds(values, below))
    match symbol:  # the constant lies between `below` and the next value
        case "<" | "<=":
            return np.asarray(values <= below)
        case ">" | ">=":
            return np.asarray(values > below)
    return np.full(len(values), symbol == "!=")


def _of_both(symbol: str, whole: np.ndarray, doubles: np.ndarray) -> np.ndarray:
    near = whole.astype(np.float64)
    found = np.asarray(COMPARISONS[symbol].holds(near, doubles))
    same = np.flatnonzero((near == doubles) & (np.abs(near) >= 2.0**53))
    if len(same):
        exact = [
            COMPARISONS[symbol].holds(w, int(d))
            for w, d in zip(whole[same].tolist(), doubles[same].tolist(), strict=True)
        ]
        found[same] = exact
    return found
