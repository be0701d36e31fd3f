"""Columns of a batch as plain arrays, each of one of seven kinds.

================  =====================================  ==========================================================
kind              arrays                                 made of
================  =====================================  ==========================================================
`NumberColumn`    `values` int64 or float64              integers; floats and decimals (NaN is NULL)
`TextColumn`      `codes` int32 into `texts`, -1 NULL    strings, times of day, binary as UTF-8; encoded once
`TruthColumn`     `values` bool                          booleans
`TimeColumn`      `values` int64 ns since the epoch      timestamps (UTC where they name no zone) and dates
`DurationColumn`  `values` int64 ns                      durations, and differences of times
`ListColumn`      `values` tuples, or None               lists of numbers, lists of texts (None for a missing one)
`MixedColumn`     `values` Python values, or None        values of several of these kinds (`spaseq.core.events.mixed`)
================  =====================================  ==========================================================

`known` is a bool array that is false for NULL, or None if no value is NULL.

A column of whole numbers and decimals is a `NumberColumn` of doubles if doubles hold all of them exactly. Its `whole`
marks the whole numbers; only arithmetic treats the two differently. Otherwise it is a `MixedColumn`, as is a column
with whole numbers from 2^63 on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.errors import EventError
from spaseq.core.events.mixed import parts_of


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """`whole`, bool (n,), for `values` that are doubles: true for those that stand for whole numbers, within 2^53. None
    if none does.
    """

    kind: ClassVar[str] = "number"

    values: np.ndarray
    known: np.ndarray | None
    whole: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class TruthColumn:
    kind: ClassVar[str] = "truth"

    values: np.ndarray
    known: np.ndarray | None


@dataclass(frozen=True, slots=True)
class TimeColumn:
    kind: ClassVar[str] = "time"

    values: np.ndarray
    known: np.ndarray | None


@dataclass(frozen=True, slots=True)
class DurationColumn:
    kind: ClassVar[str] = "duration"

    values: np.ndarray
    known: np.ndarray | None


@dataclass(frozen=True, slots=True)
class TextColumn:
    """Row i holds `texts[codes[i]]`; `texts` is an Arrow string array without NULL."""

    kind: ClassVar[str] = "text"

    codes: np.ndarray
    texts: pa.StringArray

    def where(self, answers: np.ndarray) -> np.ndarray:
        """The truth per row, given the truth per text: bool (n,), false for NULL.

        Comparing codes with a few of them is vectorised and several times faster than gathering: this is done if few
        texts are true, or few are false.
        """
        true = np.flatnonzero(answers)
        if len(true) <= _FEW:
            return self._one_of(true)
        false = np.flatnonzero(~answers)
        if len(false) <= _FEW:
            return np.asarray((self.codes >= 0) & ~self._one_of(false))
        return np.asarray(np.append(answers, False)[self.codes])

    def _one_of(self, codes: np.ndarray) -> np.ndarray:
        found = np.zeros(len(self.codes), bool)
        for code in codes.astype(np.int32):
            found |= self.codes == code
        return found


@dataclass(frozen=True, slots=True)
class ListColumn:
    """`values` has a tuple of numbers or of texts per row, or None; `known` as with the others. A missing element is
    None.

    Numbers are doubles, and whole numbers if doubles do not hold them.
    """

    values: tuple[tuple[Any, ...] | None, ...]
    known: np.ndarray | None

    @property
    def kind(self) -> str:
        """ "texts" if a list has a text, else "list". O(elements) up to the first that is not missing."""
        return kind_of_list(element for row in self.values if row is not None for element in row)


@dataclass(frozen=True, slots=True)
class MixedColumn:
    """`values` has an int, float, str, bool, `Instant`, tuple or None per row, as the getters of the other columns give
    them. Conditions are evaluated on such a column value by value.
    """

    kind: ClassVar[str] = "mixed"

    values: tuple[Any, ...]
    known: np.ndarray | None


class Instant(int):
    """A time attribute as a Python value, ns since the epoch; compared with times and texts, not with numbers."""

    __slots__ = ()


class Duration(int):
    """A difference of times as a Python value, in ns; compared with other durations, not with numbers."""

    __slots__ = ()


Column = NumberColumn | TextColumn | TruthColumn | TimeColumn | DurationColumn | ListColumn | MixedColumn

_FEW = 6
_INT64_MAX = (1 << 63) - 1
_EXACT: Final = 1 << 53


NO_VALUE: Final = (
    "attributes are numbers, texts, truths, times, durations, lists of numbers or texts: flatten nested values first"
)
"""The hint for values of other types."""
_NUMBERS: Final = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
_KINDS: Final = {pa.from_numpy_dtype(np.dtype(name)): np.dtype(name) for name in _NUMBERS.split()}
"""Arrow's types of numbers, and numpy's."""


def rows_of(column: Column, rows: slice) -> Column:
    """Some rows of a column, without a copy."""
    if isinstance(column, TextColumn):
        return TextColumn(column.codes[rows], column.texts)
    known = None if column.known is None else column.known[rows]
    if isinstance(column, NumberColumn) and column.whole is not None:
        return NumberColumn(column.values[rows], known, column.whole[rows])
    return type(column)(column.values[rows], known)  # type: ignore[arg-type]


def getter_of(column: Column | None) -> Callable[[int], Any]:
    """A function from a row to its value: a number, str, bool, `Instant`, tuple (list), None."""
    if column is None:
        return lambda row: None
    if isinstance(column, TextColumn):
        texts: list[Any] = [*column.texts.to_pylist(), None]
        codes = column.codes
        return lambda row: texts[codes[row]]
    if isinstance(column, ListColumn | MixedColumn):
        return column.values.__getitem__
    values, known = column.values, column.known
    if isinstance(column, DurationColumn):
        return lambda row: None if known is not None and not known[row] else Duration(values[row])
    if isinstance(column, TimeColumn):
        return lambda row: None if known is not None and not known[row] else Instant(values[row])
    if isinstance(column, NumberColumn) and (whole := column.whole) is not None:
        number = [int(v) if w else v for v, w in zip(values.tolist(), whole.tolist(), strict=True)]
        return lambda row: None if known is not None and not known[row] else number[row]
    return lambda row: None if known is not None and not known[row] else values[row].item()


def mixed_column(values: Sequence[Any]) -> MixedColumn | None:
    """The column of these values, which are as `MixedColumn` has them; None if all are NULL."""
    known = np.fromiter((value is not None for value in values), bool, len(values))
    return MixedColumn(tuple(values), None if known.all() else known) if known.any() else None


def _as_text(array: pa.Array, name: str, source: str) -> pa.Array:
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:  # text is stored as strings or binary already
        problem = f"attribute {name} holds bytes that are not UTF-8 text"
        raise EventError(problem, source=source, attribute=name, hint="make texts of them, or leave it out") from None


def column_of(values: pa.ChunkedArray | pa.Array, name: str, source: str = "") -> Column | None:
    """The column of an attribute; None if it is NULL throughout. `EventError`, with the `source` of the events, for a
    type that is no value (structs, lists of times …)."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):  # pyarrow keeps chunks if they would not fit into one array
        array = pa.concat_arrays(array.chunks)
    kind = array.type
    if pa.types.is_union(kind):
        return _of_union(array, name, source)
    if pa.types.is_null(kind) or array.null_count == len(array):
        return None
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return column_of(array.dictionary_decode(), name, source)
        return _text(array)
    if _is_text(kind) or pa.types.is_time(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _text(pc.dictionary_encode(_as_text(array, name, source) if kind != pa.string() else array))
    known = None if array.null_count == 0 else truths_of(pc.is_valid(array))
    if pa.types.is_boolean(kind):
        return TruthColumn(_fill_nulls(array.cast(pa.uint8()), known).astype(bool), known)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return TimeColumn(_nanoseconds(array, name, known, source), known)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _number(array, known)
    if pa.types.is_duration(kind):
        return DurationColumn(_nanoseconds(array, name, known, source), known)
    items = kind_of_items(kind)
    if items:
        elements = tuple if items == "texts" else _numbers
        return ListColumn(tuple(None if row is None else elements(row) for row in array.to_pylist()), known)
    raise EventError(
        f"attribute {name} holds values of type {kind}, which have no meaning in a query",
        source=source,
        attribute=name,
        hint=NO_VALUE,
    )


def text_array(texts: Sequence[str]) -> pa.StringArray:
    """An Arrow array of `texts`, made of its buffers: `pa.array` and `pa.scalar` would import pandas if they can."""
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def truths_of(answers: pa.BooleanArray) -> np.ndarray:
    """An Arrow array of truths without NULL as bool; `to_numpy` of one would import pandas if it can."""
    return _fill_nulls(answers.cast(pa.uint8()), None).view(bool)


def kind_of_list(elements: Iterable[Any]) -> str:
    """The kind of a list with these elements: "texts", or "list" for one of numbers, or of missing elements alone."""
    return "texts" if isinstance(next((each for each in elements if each is not None), None), str) else "list"


def kind_of_items(kind: pa.DataType) -> str:
    """The kind of lists of an Arrow type: "list" if elements are numbers or all missing, "texts"; empty for others."""
    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return ""
    item = kind.value_type
    if types.is_dictionary(item):
        item = item.value_type
    if _is_text(item):
        return "texts"
    numbers = types.is_integer(item) or types.is_floating(item) or types.is_decimal(item)
    return "list" if numbers or types.is_null(item) else ""


def _numbers(row: list[Any]) -> tuple[Any, ...]:
    """Doubles, and whole numbers beyond them; None for NaN."""
    return tuple(
        None if value is None or value != value
        else value if isinstance(value, int) and not -_EXACT <= value <= _EXACT else float(value)
        for value in row
    )  # fmt: skip


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def _fill_nulls(array: pa.Array, known: np.ndarray | None) -> np.ndarray:
    """The numbers of an array of a fixed width, 0 for NULL; a view if no value is NULL.

    Reads the buffer itself: making an Arrow scalar, as `fill_null` does, imports pandas if it is installed (half a
    second). So does `to_pandas_dtype`, which pyarrow 18 cannot do without pandas.
    """
    data = array.buffers()[1]
    kind = _KINDS[array.type]
    numbers = np.frombuffer(data, kind, len(array), array.offset * kind.itemsize) if len(array) else np.zeros(0, kind)
    return numbers if known is None else np.where(known, numbers, kind.type(0))


def _text(array: pa.DictionaryArray) -> TextColumn:
    """The codes and texts of a dictionary array whose dictionary may hold NULL."""
    known = None if array.indices.null_count == 0 else truths_of(pc.is_valid(array.indices))
    codes = _fill_nulls(array.indices.cast(pa.int32()), known)
    codes = codes if known is None else np.where(known, codes, np.int32(-1))
    texts = array.dictionary if array.dictionary.type == pa.string() else array.dictionary.cast(pa.string())
    if texts.null_count:
        valid = truths_of(pc.is_valid(texts))
        renumber = np.append(np.where(valid, np.cumsum(valid) - 1, -1), -1).astype(np.int32)
        codes, texts = renumber[codes], texts.drop_null()
    return TextColumn(codes, texts)


def _of_union(array: pa.UnionArray, name: str, source: str) -> Column | None:
    """The column of a union: a `NumberColumn` if all values are numbers that doubles hold."""
    parts = [(rows, column_of(child, name, source)) for rows, child in parts_of(array)]
    held = [(rows, column) for rows, column in parts if column is not None]
    if len(held) == 1 and len(held[0][0]) == len(array):
        return held[0][1]
    doubles, known, whole = np.zeros(len(array)), np.zeros(len(array), bool), np.zeros(len(array), bool)
    for rows, column in held:
        if not isinstance(column, NumberColumn) or not is_small(column):
            break
        doubles[rows] = column.values
        known[rows] = True if column.known is None else column.known
        whole[rows] = column.values.dtype == np.int64
    else:
        return NumberColumn(doubles, None if known.all() else known, whole & known) if known.any() else None
    found: list[Any] = [None] * len(array)
    for rows, column in held:
        get = getter_of(column)
        for place, row in enumerate(rows.tolist()):
            found[row] = get(place)
    return mixed_column(found)


def is_small(column: NumberColumn) -> bool:
    """True if doubles hold all numbers of a column exactly."""
    values = column.values
    return values.dtype == np.float64 or bool(
        values.min(initial=0) >= -_EXACT and values.max(initial=0) <= _EXACT
    )  # fmt: skip


def _number(array: pa.Array, known: np.ndarray | None) -> NumberColumn | MixedColumn | None:
    kind = array.type
    if pa.types.is_integer(kind):
        if kind == pa.uint64() and (pc.max(array).as_py() or 0) > _INT64_MAX:
            return mixed_column(array.to_pylist())
        return NumberColumn(_fill_nulls(array.cast(pa.int64(), safe=False), known), known)
    values = _fill_nulls(array.cast(pa.float64(), safe=False), known)
    nan = np.isnan(values)
    if nan.any():
        known = ~nan if known is None else known & ~nan
        values = np.where(nan, 0.0, values)
    return NumberColumn(values, known)


def _nanoseconds(array: pa.Array, name: str, known: np.ndarray | None, source: str) -> np.ndarray:
    try:
        span = pa.types.is_duration(array.type)
        stamps = array.cast(pa.duration("ns") if span else pa.timestamp("ns", tz=getattr(array.type, "tz", None)))
    except pa.ArrowInvalid as error:
        what = "a duration of more than 292 years" if span else "a time outside those that can be held (1677 to 2262)"
        raise EventError(
            f"attribute {name} holds {what}",
            source=source,
            attribute=name,
        ) from error
    return _fill_nulls(stamps.cast(pa.int64()), known)
