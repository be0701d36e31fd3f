"""Columns with values of several kinds: whole numbers and decimals, numbers and lists, texts and truth values.

Each value keeps its own kind, so that a batch has the same meaning as its events one by one. In a table such a column
is a dense union of Arrow with a child for each type. Arrow would give whole numbers and decimals one type. `array_of`
and `together` do not: doubles cannot hold every whole number, and arithmetic of whole numbers is exact.
`spaseq.core.events.columns.column_of` reads a union.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST: Final = 127
"""Types that the codes of a union can tell apart."""
DEEPEST: Final = 64
"""Lists in lists, and dicts, that a value may have: as many as Arrow's files hold. Arrow ends the process at some
thousands, by recursion."""
_CONTAINERS: Final = (list, tuple, dict)
_FAILURES: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)


class Odd(Exception):
    """The value at `row` is of no type that columns have."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row: int = row


def array_of(values: Sequence[Any]) -> pa.Array:
    """The values as an array, each of the kind it has alone; NaN is NULL. O(values).

    Raises `Odd` for a value of no kind, `UnicodeEncodeError` for a text that is none.

    Arrow makes doubles of truth values and of whole numbers, whole numbers of NumPy's truth values, times of numbers
    and bytes of texts. It ends the process (pyarrow 26) if one of NumPy's times stands before one of its whole numbers
    or truth values, in a list too. PERF: looking at types takes 20 ns a value.
    """
    found = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, _CONTAINERS) for kind in found):
        nested = [row for row, value in enumerate(values) if isinstance(value, _CONTAINERS)]
        odd = {row for row in nested if _has_numpy_time(values[row], row)}
        values = [_python_time(v) if row in odd else v for row, v in enumerate(values)] if odd else values
    if np.datetime64 in found and len(found) > 1:
        return _union_of(values)
    try:
        array = of_known_items(pa.array(values, from_pandas=True))
    except UnicodeEncodeError:
        raise
    except _FAILURES:
        return _union_of(values)
    kind = array.type
    if found == {int, float}:
        return _numbers(values, array)
    if kind == pa.string() or kind == pa.bool_():
        return array
    other = (str, bool, np.bool_, *(() if pa.types.is_integer(kind) else (int, np.integer)))
    if any(issubclass(t, other) for t in found) or (len(found) > 1 and pa.types.is_temporal(kind)):
        return _union_of(values)
    return array


def of_known_items(array: Any) -> Any:
    """The array, or chunked array, of lists with missing elements alone as one of lists of doubles, and lists of views
    as lists of strings. Arrow's `take` of lists of type null gives arrays that are longer than their values, and there
    is none of views (pyarrow 26)."""
    kind = array.type
    if not has_odd_items(kind):
        return array
    item = pa.float64() if pa.types.is_null(kind.value_type) else pa.string()
    return array.cast(pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item))


def has_odd_items(kind: pa.DataType) -> bool:
    """True for lists of type null or of views."""
    return _is_list(kind) and (pa.types.is_null(kind.value_type) or kind.value_type == pa.string_view())


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _has_numpy_time(value: Any, row: int) -> bool:
    """True if one of NumPy's times is in a list or dict, at any depth. Raises `Odd` if the value is nested too deeply,
    or in itself.
    """
    level, has = [value], False
    for _ in range(DEEPEST):
        items = list(itertools.chain.from_iterable(own.values() if isinstance(own, dict) else own for own in level))
        kinds = set(map(type, items))
        has |= np.datetime64 in kinds
        held = {kind for kind in kinds if issubclass(kind, _CONTAINERS)}
        if not held:
            return has
        level = list({id(item): item for item in items if type(item) in held}.values())
    raise Odd(row)


def _python_time(value: Any) -> Any:
    """The value with Python's times, of microseconds, in place of NumPy's, in lists and dicts too."""
    if type(value) is np.datetime64:
        return value.astype("datetime64[us]").item()
    if isinstance(value, dict):
        return {name: _python_time(each) for name, each in value.items()}
    return list(map(_python_time, value)) if isinstance(value, _CONTAINERS) else value


def _numbers(values: Sequence[Any], doubles: pa.Array) -> pa.Array:
    """Whole numbers and decimals, of which `doubles` are all exactly.

    PERF: three times as fast as `_mixed`, a tenth of what reading lists of dicts takes.
    """
    whole = np.fromiter([kind is int for kind in map(type, values)], bool, len(values))
    codes = np.where(whole, np.int8(0), np.int8(1))
    return _union(codes, np.arange(len(values), dtype=np.int32), [doubles, doubles], (pa.int64(), pa.float64()))


def _union_of(values: Sequence[Any]) -> pa.Array:
    rows: dict[type, list[int]] = {}
    for row, value in enumerate(values):
        if value is not None:
            rows.setdefault(type(value), []).append(row)
    parts: dict[pa.DataType, list[tuple[list[int], pa.Array]]] = {}
    for some in rows.values():
        try:
            found: list[tuple[list[int], pa.Array]] = [
                (some, of_known_items(pa.array([values[row] for row in some], from_pandas=True)))
            ]
        except UnicodeEncodeError:
            raise
        except _FAILURES:  # lists of numbers, and lists of texts
            found = [([row], _alone(values[row], row)) for row in some]
        for which, array in found:
            parts.setdefault(array.type, []).append((which, array))
    if len(parts) > _MOST:
        raise Odd(next(iter(list(parts.values())[_MOST]))[0][0])
    nothing = np.ones(len(values), bool)
    codes, offsets, children = np.zeros(len(values), np.int8), np.zeros(len(values), np.int32), []
    for code, (kind, pieces) in enumerate(parts.items()):
        taken = np.fromiter(itertools.chain.from_iterable(some for some, _ in pieces), np.int64)
        codes[taken], offsets[taken], nothing[taken] = code, np.arange(len(taken)), False
        children.append(pa.concat_arrays([*(array for _, array in pieces), pa.nulls(1, kind)]))
    offsets[nothing] = len(children[0]) - 1
    return _union(codes, offsets, children)


def _alone(value: Any, row: int) -> pa.Array:
    try:
        return of_known_items(pa.array([value], from_pandas=True))
    except UnicodeEncodeError:
        raise
    except _FAILURES:
        raise Odd(row) from None


def _union(
    codes: np.ndarray, offsets: np.ndarray, children: list[pa.Array], types: Sequence[pa.DataType] = ()
) -> pa.Array:
    """A union; its children with the values that it has of them alone, in the order of the rows, as Arrow wants it."""
    for code, child in enumerate(children):
        rows = np.flatnonzero(codes == code)
        children[code] = child.take(pa.array(offsets[rows]))
        offsets[rows] = np.arange(len(rows))
        if types:
            children[code] = children[code].cast(types[code])
    names = [str(child.type) for child in children]
    return pa.UnionArray.from_dense(pa.array(codes, pa.int8()), pa.array(offsets, pa.int32()), children, names)


def parts_of(array: pa.UnionArray) -> Iterator[tuple[np.ndarray, pa.Array]]:
    """The children of a union, each with the rows, int64 ascending, that it has the values of."""
    codes, offsets = np.asarray(array.type_codes), np.asarray(array.offsets)
    for code in range(array.type.num_fields):
        rows = np.flatnonzero(codes == code)
        if len(rows):
            child, places = array.field(code), offsets[rows]
            whole = len(child) == len(rows) and np.array_equal(places, np.arange(len(rows)))
            yield rows, child if whole else child.take(pa.array(places))


def unite(columns: Sequence[pa.ChunkedArray]) -> list[pa.Array]:
    """Columns of several types as arrays of one type, a union. Raises `Odd` if the union has too many types."""
    whole = [column.combine_chunks() for column in columns]
    arrays = [a if isinstance(a, pa.Array) else pa.concat_arrays(a.chunks) for a in whole]
    found: dict[pa.DataType, pa.Array] = {}
    for array in arrays:
        for kind in _types(array.type):
            found.setdefault(kind, pa.nulls(1, kind))
    if len(found) > _MOST:
        raise Odd(0)
    return [_as(array, found) for array in arrays]


def _types(kind: pa.DataType) -> Iterable[pa.DataType]:
    if pa.types.is_union(kind):
        return (_wide(kind.field(i).type) for i in range(kind.num_fields))
    return () if pa.types.is_null(kind) else (_wide(kind),)


def _wide(kind: pa.DataType) -> pa.DataType:
    """The one type of all that hold the same values."""
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.string() if pa.types.is_large_string(kind) or kind == pa.string_view() else kind


def _as(array: pa.Array, types: dict[pa.DataType, pa.Array]) -> pa.Array:
    """The array as a union of these types, whose values are arrays of one NULL."""
    if pa.types.is_union(array.type):
        pieces = list(parts_of(array))
    else:
        pieces = [] if pa.types.is_null(array.type) else [(np.arange(len(array)), array)]
    held: dict[pa.DataType, list[tuple[np.ndarray, pa.Array]]] = {}
    for rows, child in pieces:
        kind = _wide(child.type)
        held.setdefault(kind, []).append((rows, child.cast(kind)))
    codes, offsets, children = np.zeros(len(array), np.int8), np.zeros(len(array), np.int32), []
    for code, (kind, nothing) in enumerate(types.items()):
        start = 1  # behind the NULL
        for rows, _ in held.get(kind, []):
            codes[rows], offsets[rows] = code, np.arange(start, start + len(rows))
            start += len(rows)
        children.append(pa.concat_arrays([nothing, *(child for _, child in held.get(kind, []))]))
    return _union(codes, offsets, children)


def together(columns: Sequence[pa.ChunkedArray]) -> bool:
    """True if columns of one attribute have types that only a union holds, with each value as it is."""
    types = {kind for column in columns for kind in _types(column.type)}
    return len(types) > 1 or any(pa.types.is_union(column.type) for column in columns)


def beyond_exact(column: pa.ChunkedArray) -> bool:
    """True if some finite value of a column of doubles is so large that it may be a whole number, rounded."""
    for chunk in column.chunks:
        size = len(chunk)
        values = np.frombuffer(chunk.buffers()[1], np.float64, size, 8 * chunk.offset) if size else np.zeros(0)
        far = values[np.abs(values) >= 2.0**53]
        if np.isfinite(far).any():
            return True
    return False


def flatten(array: pa.Array) -> pa.Array:
    """A column for files and frames, which have no unions. Numbers that doubles hold exactly are doubles, as are those
    of lists. Other values are texts, each as JSON writes it; so are the elements of lists of numbers and texts."""
    if pa.types.is_list(array.type) and pa.types.is_union(array.type.value_type):
        mask = pa.array(np.asarray(array.is_null())) if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, flatten(array.values), mask=mask)
    if not pa.types.is_union(array.type):
        return array
    children = [child for _, child in parts_of(array)]
    lists = _lists(array)
    if lists is not None:
        return lists
    if all(pa.types.is_integer(c.type) or pa.types.is_floating(c.type) for c in children):
        try:
            doubles = np.full(len(array), np.nan)
            valid = np.zeros(len(array), bool)
            for rows, child in parts_of(array):
                doubles[rows] = np.asarray(pc.fill_null(child.cast(pa.float64()), 0.0))
                valid[rows] = np.asarray(child.is_valid())
            return pa.array(doubles, mask=~valid)
        except pa.ArrowInvalid:
            pass  # a whole number that no double is
    return pa.array(list(map(_text, array.to_pylist())), pa.string())


def _lists(array: pa.UnionArray) -> pa.Array | None:
    """The lists of a union as ones of doubles, if these hold all numbers exactly, else of texts; None if some are of
    other values than numbers and texts."""
    parts = list(parts_of(array))
    kinds = [child.type.value_type if _is_list(child.type) else pa.null() for _, child in parts]
    if not parts or not all(map(_is_item, kinds)):
        return None
    if all(
        _is_number(kind) or child.flatten().null_count == len(child.flatten())
        for kind, (_, child) in zip(kinds, parts, strict=True)
    ):
        try:
            lists = pa.concat_arrays([child.cast(pa.list_(pa.float64())) for _, child in parts])
            return lists.take(pa.array(np.argsort(np.concatenate([rows for rows, _ in parts]))))
        except pa.ArrowInvalid:
            pass  # a whole number that no double is
    texts = [None if row is None else list(map(_text, row)) for row in array.to_pylist()]
    return pa.array(texts, pa.list_(pa.string()))


def _text(value: Any) -> str | None:
    """A value as JSON writes it; a text as it is."""
    return value if value is None or isinstance(value, str) else json.dumps(value, default=str)


def _is_item(kind: pa.DataType) -> bool:
    return _is_number(kind) or bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def flat_type(kind: pa.DataType) -> pa.DataType:
    """The type that `flatten` gives of a column of this one, if it has no values."""
    if pa.types.is_list(kind) and pa.types.is_union(kind.value_type):
        return pa.list_(flat_type(kind.value_type))
    if not pa.types.is_union(kind):
        return kind
    children = [kind.field(place).type for place in range(kind.num_fields)]
    if all(map(_is_number, children)):
        return pa.float64()
    items = [child.value_type if _is_list(child) else pa.null() for child in children]
    if all(map(_is_item, items)):
        return pa.list_(pa.float64() if all(map(_is_number, items)) else pa.string())
    return pa.string()
