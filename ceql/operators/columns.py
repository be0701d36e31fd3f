"""Columns as arguments and results of functions: constants among them, choices between them, and values in a list.

A column is one of `spaseq.core.events`; `None` stands for one that is NULL throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ceql.operators.values import ARROW_TYPES, ELEMENTS, kind_of
from spaseq.core.events import (
    Column,
    Duration,
    DurationColumn,
    Instant,
    ListColumn,
    MixedColumn,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    text_array,
    truths_of,
)
from spaseq.core.events.mixed import array_of

_EXACT: Final = 1 << 53
_SPANS: Final[dict[str, type[TimeColumn] | type[DurationColumn]]] = {"time": TimeColumn, "duration": DurationColumn}


class ByRow(Exception):
    """Columns do not hold the values exactly: they are computed one by one."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every event: int, float, str, bool, `Instant` or `Duration`."""

    value: Any


Operand = Column | Constant | None


def operand_kind(operand: Column | Constant) -> str:
    """The kind of its values (`ceql.operators.values.kind_of`), or "mixed"."""
    return kind_of(operand.value) if isinstance(operand, Constant) else operand.kind


def known_rows(operand: Operand, count: int) -> np.ndarray:
    """bool (count,), false for NULL."""
    if operand is None:
        return np.zeros(count, bool)
    if isinstance(operand, TextColumn):
        return np.asarray(operand.codes >= 0)
    if isinstance(operand, Constant) or operand.known is None:
        return np.ones(count, bool)
    return operand.known


def both_known(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
    """True if both are; None is true everywhere."""
    if a is None or b is None:
        return b if a is None else a
    return np.asarray(a & b)


def values_of(operand: Operand, count: int) -> list[Any]:
    """The values as conditions read them one by one: `count` of them, None for NULL."""
    if operand is None or isinstance(operand, Constant):
        return [None if operand is None else operand.value] * count
    if isinstance(operand, TextColumn):
        texts = [*operand.texts.to_pylist(), None]
        return [texts[code] for code in operand.codes.tolist()]
    if isinstance(operand, ListColumn | MixedColumn):
        return list(operand.values)
    found: list[Any] = operand.values.tolist()
    if isinstance(operand, TimeColumn | DurationColumn):
        of = Instant if isinstance(operand, TimeColumn) else Duration
        found = [of(value) for value in found]
    if isinstance(operand, NumberColumn) and operand.whole is not None:
        found = [int(v) if whole else v for v, whole in zip(found, operand.whole.tolist(), strict=True)]
    if operand.known is None:
        return found
    return [value if known else None for value, known in zip(found, operand.known.tolist(), strict=True)]


def column_from(found: Sequence[Any]) -> Column | None:
    """The column of these values, which are as `values_of` gives them; None if all are NULL. `ByRow` if no column but a
    mixed one holds them."""
    is_known = np.fromiter((value is not None for value in found), bool, len(found))
    classes = {*map(type, found)} - {type(None)}
    kinds = {kind_of(value) for value in (next(v for v in found if type(v) is one) for one in classes)}
    if not kinds:
        return None
    if len(kinds) > 1 or kinds & ELEMENTS.keys():
        raise ByRow
    (kind,) = kinds
    if kind == "text":
        codes = np.where(is_known, np.arange(len(found)), -1).astype(np.int32)
        return TextColumn(codes, text_array([text or "" for text in found]))
    known = None if is_known.all() else is_known
    filled = [0 if value is None else value for value in found]
    if kind == "truth":
        return TruthColumn(np.array(filled, bool), known)
    if kind in _SPANS:
        return _SPANS[kind](np.array(filled, np.int64), known)
    whole = np.fromiter((isinstance(value, int) for value in found), bool, len(found))
    if (whole == is_known).all():
        return NumberColumn(np.array(filled, np.int64), known)
    if not whole.any():
        return NumberColumn(np.array(filled, np.float64), known)
    if any(isinstance(value, int) and abs(value) > _EXACT for value in filled):
        raise ByRow
    return NumberColumn(np.array(filled, np.float64), known, whole)


def arrow_of(operand: Operand, count: int) -> pa.Array:
    """`count` values as an Arrow array, those of several kinds as a union."""
    match operand:
        case None:
            return pa.nulls(count)
        case TextColumn(codes, texts):
            return texts.take(pa.array(codes, pa.int32(), mask=codes < 0))
        case TimeColumn(values, known) | DurationColumn(values, known):
            return pa.array(values, pa.int64(), mask=_nulls(known, count)).cast(ARROW_TYPES[operand.kind])
        case TruthColumn(values, known) | NumberColumn(values, known, None):
            return pa.array(values, mask=_nulls(known, count))
    return arrow_from(values_of(operand, count))


def arrow_from(found: Sequence[Any]) -> pa.Array:
    """Values as expressions have them, as an Arrow array; those of several kinds as a union. Raises `Odd` for lists of
    no one type."""
    kinds = {kind_of(value) for value in found if value is not None}
    if kinds in ({"time"}, {"duration"}):
        numbers = [None if value is None else int(value) for value in found]
        return pa.array(numbers, pa.int64()).cast(ARROW_TYPES[kinds.pop()])
    return array_of([list(value) if isinstance(value, tuple) else value for value in found])


def _nulls(known: np.ndarray | None, count: int) -> np.ndarray | None:
    """Arrow's mask of the rows that are NULL."""
    return None if known is None else np.broadcast_to(~np.asarray(known), count)


def rows_at(column: Column | None, rows: np.ndarray) -> Column | None:
    """The column with the values at `rows`, int (n,), in their order."""
    if column is None:
        return None
    if isinstance(column, TextColumn):
        return TextColumn(column.codes[rows], column.texts)
    if isinstance(column, ListColumn | MixedColumn):
        raise ByRow
    known = None if column.known is None else column.known[rows]
    if isinstance(column, NumberColumn):
        return NumberColumn(column.values[rows], known, None if column.whole is None else column.whole[rows])
    return type(column)(column.values[rows], known)


def compact(column: TextColumn) -> TextColumn:
    """The column without texts that no row has, if it has more texts than rows."""
    if len(column.texts) <= len(column.codes):
        return column
    used = np.unique(column.codes[column.codes >= 0])
    places = np.zeros(len(column.texts) + 1, np.int32)
    places[used], places[-1] = np.arange(len(used)), -1
    return TextColumn(places[column.codes], column.texts.take(pa.array(used)))


def renamed_texts(codes: np.ndarray, texts: pa.StringArray) -> TextColumn | None:
    """The text column whose row i is `texts[codes[i]]`, NULL if the code is -1 or the text is NULL. None if all texts
    are NULL."""
    # PERF: a text may stand in it twice. Finding them costs 120 ns a text, and no use of a column needs it.
    if not texts.null_count:
        return TextColumn(codes, texts)
    valid = truths_of(texts.is_valid())
    places = np.append(np.where(valid, np.cumsum(valid) - 1, -1), -1).astype(np.int32)
    return TextColumn(places[codes], texts.drop_null()) if valid.any() else None


def choose(parts: Sequence[tuple[np.ndarray, Operand]], count: int) -> Column | None:
    """The values of several operands: those of each in the rows of its mask, bool (count,), of which no two overlap;
    NULL elsewhere. `ByRow` if they are of several kinds, or no column holds them."""
    some = [(mask, operand) for mask, operand in parts if operand is not None and mask.any()]
    kinds = {operand_kind(operand) for _, operand in some}
    if not kinds:
        return None
    if len(kinds) > 1 or kinds & {*ELEMENTS, "mixed"}:
        raise ByRow
    (kind,) = kinds
    if kind == "text":
        return _choose_texts(some, count)
    known = np.zeros(count, bool)
    whole = np.zeros(count, bool)
    arrays = []
    for mask, operand in some:
        if isinstance(operand, Constant):
            known |= mask
            arrays.append(np.asarray(operand.value))
            whole |= mask & isinstance(operand.value, int)
        else:
            assert not isinstance(operand, TextColumn | ListColumn | MixedColumn) and operand is not None
            known |= mask if operand.known is None else mask & operand.known
            arrays.append(operand.values)
            if isinstance(operand, NumberColumn):
                is_whole = operand.values.dtype == np.int64 if operand.whole is None else operand.whole
                whole |= mask & is_whole
    doubles = any(array.dtype == np.float64 for array in arrays)
    if (
        kind == "number"
        and doubles
        and any(array.dtype == np.int64 and (np.abs(array.astype(np.float64)) >= _EXACT).any() for array in arrays)
    ):
        raise ByRow
    values = np.zeros(count, np.float64 if doubles else bool if kind == "truth" else np.int64)
    for (mask, _), array in zip(some, arrays, strict=True):
        np.copyto(values, array, where=mask, casting="same_kind" if array.dtype == values.dtype else "unsafe")
    held = None if known.all() else known
    if kind != "number":
        return TruthColumn(values, held) if kind == "truth" else _SPANS[kind](values, held)
    values[~known] = 0
    whole &= known
    return NumberColumn(values, held, whole if doubles and whole.any() else None)


def _choose_texts(parts: Sequence[tuple[np.ndarray, Operand]], count: int) -> TextColumn | None:
    codes, texts, first = np.full(count, -1, np.int32), [], 0
    for mask, operand in parts:
        if isinstance(operand, Constant):
            codes[mask] = first
            texts.append(text_array([operand.value]))
        else:
            assert isinstance(operand, TextColumn)
            found = operand.codes[mask]
            codes[mask] = np.where(found < 0, -1, found + first)
            texts.append(operand.texts)
        first += len(texts[-1])
    return renamed_texts(codes, pa.concat_arrays(texts))
