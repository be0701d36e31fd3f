"""Events in memory as Arrow tables: frames of any library, dicts, and objects of classes.

* A pyarrow Table, RecordBatch, RecordBatchReader or Dataset.
* A pandas frame, with its index of times. A Polars frame; a lazy one is collected part by part.
* Whatever has `__arrow_c_stream__` or `__arrow_c_array__`, the Arrow PyCapsule interface: relations of DuckDB, frames
  of narwhals, cuDF and others. It is read as it is asked for.
* A list of events: dicts, named tuples, and objects of classes, those of dataclasses, attrs, pydantic and msgspec among
  them. An object has its public attributes. If none of them is called `type`, the name of its class is its type.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Final, Literal

import pyarrow as pa

from spaseq.core.errors import EventError, OptionError, SpaseqError
from spaseq.core.events.blocks import first_line
from spaseq.core.events.columns import NO_VALUE
from spaseq.core.events.csv_files import pad
from spaseq.core.events.mixed import Odd, array_of
from spaseq.core.events.timestamps import INDEX

EVENTS: Final = "<events>"
"""The name in errors of events that come from no file."""
_ROWS: Final = 1 << 18
"""Rows at a time. PERF: 10 million rows of a table take 3.1 s and 750 MB beside it as a whole, 1.5 s and 115 MB in
parts. Of a lazy frame, a dataset or a relation they take 2.0 to 2.5 s, and 215 to 600 MB in all."""
_SURROGATE_HINT: Final = "\\ud800 to \\udfff stand for a character only in pairs, the first one below \\udc00"
_TYPE: Final = "type"
_RECORDS: Final = ("__dataclass_fields__", "__attrs_attrs__", "__struct_fields__", "model_fields")
"""Marks of classes whose objects are records: of the standard library, attrs, msgspec and pydantic."""
_TABLES: Final = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__", "to_arrow", "collect")
_BEHAVES: Final = ("__iter__", "__next__", "__getitem__", "__len__", "__enter__", *_TABLES)
"""Members of containers, frames and connections, which are no events."""


def tables_in_memory(
    source: Any, wanted: Collection[str] | None, parts_of: Callable[[Any], Iterator[tuple[str, pa.Table]]]
) -> Iterator[tuple[str, pa.Table]]:
    """The tables of a frame, a list of events or an iterable, each part of which is read by `parts_of`.

    `wanted` are the columns whose values will be used (None: all). A pyarrow Dataset reads no others.
    """
    if isinstance(source, pa.Table):
        yield from _cut(source)
    elif isinstance(source, pa.RecordBatch):
        yield EVENTS, pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        for batch in source:
            yield EVENTS, pa.Table.from_batches([batch])
    elif isinstance(source, type):
        raise no_events(source)
    elif hasattr(source, "collect") and hasattr(source, "lazy"):
        for frame in _guard(_collect, source):
            yield EVENTS, _table(frame)
    elif hasattr(source, "to_arrow"):
        for table in _guard(lambda frame: [_table(frame)], source):
            yield from _cut(table)
    elif hasattr(source, "iloc"):
        yield from _cut(_from_pandas(source))
    elif hasattr(source, "scanner") and hasattr(source, "schema"):
        yield from _from_dataset(source, wanted)
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        for batch in _guard(_reader, source):
            yield EVENTS, pa.Table.from_batches([batch])
    elif isinstance(source, list) and (not source or is_event(source[0])):
        yield EVENTS, from_dicts(source)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview | pa.Array):
        for part in source:
            yield from parts_of([part] if is_event(part) else part)
    else:
        raise no_events(source)


def _cut(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Some rows of a table at a time: what is made of them stays small."""
    for first in range(0, max(len(table), 1), _ROWS):
        yield EVENTS, table.slice(first, _ROWS)


def _collect(lazy: Any) -> Iterator[Any]:
    """The frames of a lazy frame of Polars, in its order."""
    batches = getattr(lazy, "collect_batches", None)
    return iter([lazy.collect()]) if batches is None else iter(batches(chunk_size=_ROWS, maintain_order=True))


def _guard(parts_of: Callable[[Any], Iterable[Any]], source: Any) -> Iterator[Any]:
    """`parts_of(source)`; what its library raises as it evaluates the frame or relation is an `EventError`."""
    try:
        yield from parts_of(source)
    except (SpaseqError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        said = first_line(error).partition(" Resolved plan until failure")[0].partition(" This error occurred")[0]
        raise EventError(f"the {type(source).__name__} cannot be read: {said}", source=EVENTS) from error


def _from_dataset(dataset: Any, wanted: Collection[str] | None) -> Iterator[tuple[str, pa.Table]]:
    names = dataset.schema.names
    columns = None if wanted is None else [name for name in names if name in wanted]
    for batch in dataset.to_batches(columns=columns):
        table = pa.Table.from_batches([batch])
        yield EVENTS, table if columns is None else pad(table, names)


def _reader(source: Any) -> Iterable[pa.RecordBatch]:
    try:
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source)
        return [pa.record_batch(source)]
    except (pa.ArrowException, TypeError, ValueError):  # a series is no table
        raise no_events(source) from None


def _table(frame: Any) -> pa.Table:
    """The table of a frame; a series makes something else. `EventError` if Polars holds objects of Python in a column:
    Arrow would get their addresses."""
    for name, kind in zip(getattr(frame, "columns", ()), getattr(frame, "dtypes", ()), strict=False):
        if str(kind) == "Object":
            problem = f"attribute {name} holds objects of Python"
            raise EventError(problem, source=EVENTS, attribute=name, hint=NO_VALUE)
    made = frame.to_arrow()
    if not isinstance(made, pa.Table):
        raise no_events(frame)
    return made


def no_events(source: object) -> OptionError:
    """The error that `source` is nothing that holds events."""
    taken = (
        "events are dicts, named tuples or objects such as dataclasses, in a list; or a pyarrow Table, a pandas or "
        "Polars frame, or another one that Arrow reads"
    )
    return OptionError(f"a {type(source).__name__} holds no events", taken)


def _from_pandas(frame: Any) -> pa.Table:
    if not hasattr(frame, "columns"):
        raise no_events(frame)
    mixed: dict[str, pa.Array] = {}
    try:
        names = [name for name, kind in frame.dtypes.items() if str(kind) == "object"]
        if names and frame.columns.is_unique:
            from pandas.api.types import infer_dtype

            names = [name for name in names if infer_dtype(frame[name]).startswith("mixed")]
            arrays = {name: _values(frame[name].tolist(), str(name)) for name in names}
            mixed = {str(name): array for name, array in arrays.items() if pa.types.is_union(array.type)}
            frame = frame.assign(**{name: None for name in names if str(name) in mixed}) if mixed else frame
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:  # sparse columns, two of one name
        raise EventError(f"the frame cannot be read as columns: {first_line(error)}") from None
    for name, array in mixed.items():
        table = table.set_column(table.column_names.index(name), name, array)
    return _with_index(table, frame.index)


def _with_index(table: pa.Table, index: Any) -> pa.Table:
    """The table with an index of times as its last column, under its name, or `INDEX`; if no column is called so."""
    if not str(getattr(index, "dtype", "")).startswith("datetime64"):
        return table
    name = index.name if isinstance(index.name, str) else INDEX
    if not table.num_columns:
        return pa.table({name: pa.Array.from_pandas(index)})
    return table if name in table.column_names else table.append_column(name, pa.Array.from_pandas(index))


def frame_of(rows: Callable[[], pa.Table], library: Literal["pandas", "polars"] = "pandas") -> Any:
    """The rows as a `DataFrame` of a library. `OptionError` if it is not installed, before any are made."""
    try:
        if library == "polars":
            import polars
        else:
            import pandas  # noqa: F401
    except ImportError:
        hint = f"install {library}, or take to_arrow(), whose tables pandas, Polars, DuckDB and others read"
        raise OptionError(f"to_{library} needs {library}, which is not installed", hint) from None
    return polars.from_arrow(rows()) if library == "polars" else rows().to_pandas()


def frame_like(source: Any, rows: Callable[[], pa.RecordBatchReader]) -> Any:
    """The rows as a frame of the kind that `source` is: of pandas, Polars (lazy if it is), DuckDB or narwhals. A
    RecordBatchReader gives a reader, a list of events a list of dicts, and anything else a pyarrow Table."""
    if isinstance(source, pa.RecordBatchReader):
        return rows()
    library = type(source).__module__.partition(".")[0].lstrip("_")
    if library == "narwhals":
        return sys.modules["narwhals"].from_native(frame_like(source.to_native(), rows))
    if library == "duckdb":
        import duckdb

        return duckdb.from_arrow(rows().read_all())
    if library == "polars":
        frame = frame_of(lambda: rows().read_all(), "polars")
        return frame.lazy() if hasattr(source, "collect") else frame
    if hasattr(source, "iloc"):
        return frame_of(lambda: rows().read_all())
    table = rows().read_all()
    if isinstance(source, list | tuple | Iterator) and not isinstance(source, str):
        return in_microseconds(table).to_pylist()
    return table


def in_microseconds(table: pa.Table) -> pa.Table:
    """The table with times and durations that Python's own types hold, if they lose nothing."""
    for place, name in enumerate(table.column_names):
        kind = table.schema.types[place]
        if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
            short = pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us")
            with contextlib.suppress(pa.ArrowInvalid):
                table = table.set_column(place, name, table.column(place).cast(short))
    return table


# Events one by one


def is_event(value: object) -> bool:
    """True of one event: a dict, a named tuple, or an object of a class."""
    if isinstance(value, Mapping) or (isinstance(value, tuple) and hasattr(value, "_asdict")):
        return True
    kind: Any = type(value)
    if _fields_of(kind) is not None or isinstance(value, SimpleNamespace):
        return True
    if kind.__module__ == "builtins" or isinstance(value, ModuleType) or callable(value):
        return False
    return bool(_own(value)) and not any(hasattr(kind, name) for name in _BEHAVES)


@functools.lru_cache(maxsize=1024)
def _fields_of(kind: type) -> tuple[str, ...] | None:
    """The public attributes that a class of records declares; None for another class."""
    for mark in _RECORDS:
        if (declared := getattr(kind, mark, None)) is not None:
            return _public(str(getattr(name, "name", name)) for name in declared)
    return None


def _own(value: Any) -> tuple[str, ...]:
    """The public attributes that an object has, in `__slots__` or a dict of its own."""
    slots = (name for base in type(value).__mro__ for name in _names_in(getattr(base, "__slots__", ())))
    return _public((*(name for name in slots if hasattr(value, name)), *getattr(value, "__dict__", ())))


def _names_in(slots: str | Iterable[str]) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots


def _public(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if not name.startswith("_"))


def _mapping(event: Any, record: int) -> Mapping[str, Any]:
    """An event of a list as a mapping. Raises `EventError` if it is none."""
    if isinstance(event, Mapping):
        return event
    if not is_event(event):
        raise EventError(f"{type(event).__name__} is not an event", record=record, hint="an event is a dict")
    if isinstance(event, tuple):
        made: dict[str, Any] = event._asdict()  # type: ignore[attr-defined]
        return made
    kind: Any = type(event)
    declared = _fields_of(kind)
    made = {name: getattr(event, name) for name in (_own(event) if declared is None else declared)}
    return made if _TYPE in made else {_TYPE: kind.__name__, **made}


def from_dicts(events: Sequence[Any]) -> pa.Table:
    """A table of a list of dicts, named tuples or objects; a key that an event does not have is NULL."""
    names: dict[str, None] = {}
    for event in events:
        if not isinstance(event, Mapping):
            return from_dicts([_mapping(event, record) for record, event in enumerate(events, 1)])
        names.update(dict.fromkeys(event))
    for name in names:
        if not _is_text(str(name)):
            raise EventError(f"the name of an attribute, {name!r}, is no Unicode text", hint=_SURROGATE_HINT)
    columns = {str(name): _values([event.get(name) for event in events], str(name)) for name in names}
    return pa.table(columns) if columns else pa.Table.from_struct_array(pa.array(events, pa.struct([])))


def _values(values: list[Any], name: str) -> pa.Array:
    try:
        return array_of(values)
    except UnicodeEncodeError:
        odd = next((i for i, v in enumerate(values) if not _is_text(str(v))), 0)
        problem = f"attribute {name} is {values[odd]!r:.100}, which is no Unicode text"
        raise EventError(problem, record=odd + 1, attribute=name, hint=_SURROGATE_HINT) from None
    except Odd as odd_value:
        raise _not_a_column(values, odd_value.row, name) from None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_a_column(values: list[Any], odd: int, name: str) -> EventError:
    """Why the value at `odd` is in no column: it is of a kind that columns do not have."""
    if type(values[odd]) is int:
        problem, hint = f"attribute {name} holds a whole number of more than 64 bits", "write such numbers as floats"
    else:
        problem = f"attribute {name} holds values of no known kind: {type(values[odd]).__name__}"
        hint = NO_VALUE
    return EventError(problem, record=odd + 1, attribute=name, hint=hint)
