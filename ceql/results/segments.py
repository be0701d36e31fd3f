"""Aggregates over consecutive segments of a column: one value for each match, of the events that a variable took.

They have the meaning of the rows of `ceql.operators.functions`, which compute them of single values; a property test
compares the two. Segment i is `offsets[i]` to `offsets[i + 1]`. Values that columns do not hold exactly are aggregated
one by one: several kinds, and sums of whole numbers beyond 64 bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ceql.operators.functions import FUNCTIONS
from ceql.operators.times import nearest
from ceql.operators.values import ARROW_TYPES, INT64
from spaseq.core.errors import EventError
from spaseq.core.events import Column, MixedColumn, NumberColumn, TextColumn, TimeColumn, TruthColumn
from spaseq.core.events.columns import DurationColumn, ListColumn, getter_of

Values = tuple[np.ndarray, np.ndarray]
"""Numbers, and where they are not NULL: (m,) and bool (m,)."""

_SHORT: Final = 64
"""Elements of all segments are added side by side up to this one, the rest segment by segment."""
_SAFE: Final = 2.0**62
_SMALL: Final = 1 << 21
_FEW: Final = 1 << 9


def aggregate(name: str, column: Column | None, offsets: np.ndarray) -> pa.Array | None:
    """The aggregate `name` of each segment; None if it has to be taken value by value (`one_by_one`).

    `column` has the values of all segments, None if all are NULL. Arguments: `offsets`, int64 (m + 1,), from 0.
    """
    if column is None:
        none = len(offsets) - 1
        return pa.array(np.zeros(none, np.int64)) if name in ("COUNT", "COUNT DISTINCT") else pa.nulls(none)
    work = _WORK.get(name)
    return None if work is None or isinstance(column, MixedColumn | ListColumn) else work(column, offsets)


def one_by_one(name: str, column: Column | None, offsets: np.ndarray) -> list[Any]:
    """The aggregate of each segment, by its row of `FUNCTIONS`. None for NULL, and for FIRST and LAST of none."""
    function, get = FUNCTIONS[name], getter_of(column)
    assert function.add is not None
    found = []
    for start, end in itertools.pairwise(offsets.tolist()):
        state = function.start
        for row in range(start, end):
            state = function.add(state, get(row))
        found.append(None if start == end and name in ("FIRST", "LAST") else function.work(state))
    return found


def extreme(name: str, column: Column | None, offsets: np.ndarray) -> np.ndarray | None:
    """The place of the MIN or MAX of each segment, of the first of equal ones: int64 (m,), -1 if all are NULL. None for
    columns whose values it cannot compare as a whole."""
    count = len(offsets) - 1
    if column is None:
        return np.full(count, -1)
    if isinstance(column, TruthColumn):
        raise EventError(f"{name} of a truth value", hint="these have no order")
    ordered = comparable(column)
    if ordered is None:
        return None
    values, known = ordered
    better = np.greater if name == "MAX" else np.less
    best = np.full(count, -1)

    def step(live: np.ndarray, rows: np.ndarray) -> None:
        before = best[live]
        wins = known[rows] & ((before < 0) | better(values[rows], values[before]))
        best[live[wins]] = rows[wins]

    def rest(segment: int, start: int, end: int) -> None:
        rows = np.flatnonzero(known[start:end]) + start
        if len(rows):
            found = rows[np.argmax(values[rows]) if name == "MAX" else np.argmin(values[rows])]
            step(np.array([segment]), np.array([found]))

    _side_by_side(offsets, step, rest)
    return best


def comparable(column: Column) -> tuple[np.ndarray, np.ndarray] | None:
    """Numbers with the order of the values of a column, int64 or float64 (n,), and False for NULL, bool (n,). None for
    columns whose values numpy does not compare."""
    if isinstance(column, TextColumn):
        order = np.argsort(np.array(column.texts.to_pylist(), object))  # by code point
        ranks = np.empty(len(order) + 1, np.int64)
        ranks[order], ranks[-1] = np.arange(len(order)), -1
        return ranks[column.codes], column.codes >= 0
    if isinstance(column, NumberColumn | TimeColumn | DurationColumn):
        return column.values, np.ones(len(column.values), bool) if column.known is None else column.known
    return None


def _side_by_side(
    offsets: np.ndarray,
    step: Callable[[np.ndarray, np.ndarray], None],
    rest: Callable[[int, int, int], None],
) -> None:
    """Calls `step(segments, rows)` for the first element of each segment, then for the second of those that have one,
    and so on; `rest(segment, start, end)` for what is left of long ones. So each segment is met in its order."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    live = np.flatnonzero(lengths)
    for place in range(_SHORT):
        if not len(live):
            return
        step(live, starts[live] + place)
        live = live[lengths[live] > place + 1]
    for segment in live.tolist():
        rest(segment, int(starts[segment]) + _SHORT, int(offsets[segment + 1]))


def _sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum of each segment, added from left to right; -0.0 of none."""
    total = np.full(len(offsets) - 1, -0.0 if values.dtype.kind == "f" else 0, values.dtype)

    def step(live: np.ndarray, rows: np.ndarray) -> None:
        total[live] += values[rows]

    def rest(segment: int, start: int, end: int) -> None:
        total[segment] = np.add.accumulate(np.append(total[segment], values[start:end]))[-1]

    with np.errstate(all="ignore"):
        _side_by_side(offsets, step, rest)
    return total


def _validity(column: Column) -> np.ndarray | None:
    return column.codes >= 0 if isinstance(column, TextColumn) else column.known


def _counts(column: Column, offsets: np.ndarray) -> np.ndarray:
    known = _validity(column)
    if known is None:
        return np.diff(offsets)
    return np.diff(np.concatenate([[0], np.cumsum(known)])[offsets])


def _numbers(name: str, column: Column) -> NumberColumn | None:
    """The column, if its values are all doubles, or all whole numbers."""
    if not isinstance(column, NumberColumn):
        function = FUNCTIONS[name]
        raise function.wrong(0, column.kind)
    return column if column.whole is None else None


def _count(column: Column, offsets: np.ndarray) -> pa.Array:
    return pa.array(_counts(column, offsets), pa.int64())


def _distinct(column: Column, offsets: np.ndarray) -> pa.Array:
    if isinstance(column, TextColumn):
        codes = column.codes.astype(np.int64)
    else:
        assert not isinstance(column, ListColumn | MixedColumn)
        codes = np.unique(column.values, return_inverse=True)[1].astype(np.int64)
    segments = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    known = _validity(column)
    if known is not None:
        segments, codes = segments[known], codes[known]
    pairs = np.unique(segments * (codes.max(initial=0) + 1) + codes)
    owners = pairs // (codes.max(initial=0) + 1)
    return pa.array(np.bincount(owners, minlength=len(offsets) - 1).astype(np.int64))


def _sum_of(name: str, column: Column, offsets: np.ndarray) -> Values | None:
    """The sums, and where there is anything to add; None if whole numbers come near the limits of 64 bits."""
    numbers = _numbers(name, column)
    if numbers is None:
        return None
    values = numbers.values
    if values.dtype.kind == "i" and len(values) and np.abs(values.astype(np.float64)).sum() >= _SAFE:
        return None
    if numbers.known is not None:
        values = np.where(numbers.known, values, -0.0 if values.dtype.kind == "f" else 0)
    return _sums(values, offsets), _counts(column, offsets) > 0


def _array(values: np.ndarray, known: np.ndarray) -> pa.Array:
    """An Arrow array; NaN is NULL."""
    if values.dtype.kind == "f":
        known = known & ~np.isnan(values)
    return pa.array(values, mask=None if known.all() else ~known)


def _sum(column: Column, offsets: np.ndarray) -> pa.Array | None:
    if isinstance(column, DurationColumn):
        total = _total(column, offsets, 0)
        if total is None:
            return None
        return _array(total, _counts(column, offsets) > 0).cast(ARROW_TYPES["duration"])
    found = _sum_of("SUM", column, offsets)
    return None if found is None else _array(*found)


def _total(column: DurationColumn | TimeColumn, offsets: np.ndarray, start: int) -> np.ndarray | None:
    """The sums of nanoseconds since `start`; None if they come near the limits of 64 bits."""
    values = column.values if column.known is None else np.where(column.known, column.values, start)
    if len(values) and np.abs(values.astype(np.float64) - start).sum() >= _SAFE:
        return None
    return _sums(values - start, offsets)


def _mean_span(column: DurationColumn | TimeColumn, offsets: np.ndarray) -> pa.Array | None:
    """Means of times are taken from the least one on, as sums of nanoseconds since 1970 exceed 64 bits soon."""
    known = column.values if column.known is None else column.values[column.known]
    start = int(known.min(initial=INT64[-1])) if isinstance(column, TimeColumn) and len(known) else 0
    total, count = _total(column, offsets, start), _counts(column, offsets)
    if total is None:
        return None
    return _array(nearest(total, np.maximum(count, 1), start), count > 0).cast(ARROW_TYPES[column.kind])


def _mean(column: Column, offsets: np.ndarray) -> pa.Array | None:
    if isinstance(column, DurationColumn | TimeColumn):
        return _mean_span(column, offsets)
    found = _sum_of("AVG", column, offsets)
    if found is None:
        return None
    total, known = found
    with np.errstate(all="ignore"):
        return _array(total.astype(np.float64) / np.maximum(_counts(column, offsets), 1), known)


def _deviation(column: Column, offsets: np.ndarray) -> pa.Array | None:
    numbers = _numbers("STDDEV", column)
    if numbers is None:
        return None
    values, count = numbers.values, _counts(column, offsets)
    known = np.ones(len(values), bool) if numbers.known is None else numbers.known
    if values.dtype.kind == "i" and (np.abs(values).max(initial=0) >= _SMALL or count.max(initial=0) >= _FEW):
        return None
    rows = np.append(np.flatnonzero(known), len(values))  # the first value of each segment, if it has any
    first = np.append(values, values[:1])[rows[np.searchsorted(rows, offsets[:-1])] % max(len(values), 1)]
    with np.errstate(all="ignore"):
        distance = values - np.repeat(first, np.diff(offsets))
        distance = np.where(known, distance, distance.dtype.type(0))
        total, squares = _sums(distance, offsets), _sums(distance * distance, offsets)
        variance = (count * squares - total * total).astype(np.float64) / np.maximum(count * (count - 1), 1)
        return _array(np.sqrt(np.maximum(variance, 0.0)), count > 1)


_WORK: Final[dict[str, Callable[[Any, np.ndarray], pa.Array | None]]] = {
    "COUNT": _count,
    "COUNT DISTINCT": _distinct,
    "SUM": _sum,
    "AVG": _mean,
    "STDDEV": _deviation,
}
