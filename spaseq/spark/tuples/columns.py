"""The columns of users' DataFrames of tuples: which the query reads, and whether it can, before anything runs.

Spark compares the names of columns without case, unless `spark.sql.caseSensitive` says otherwise. So a name that the
query or an option has is that of the column it equals, else of the one it equals but for case.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import DataType, IntegralType, NumericType, StructField, StructType

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions
from spaseq.core.events.columns import column_of
from spaseq.core.events.time import unit_nanoseconds
from spaseq.core.events.timestamps import TIME_COLUMNS, TimestampAssigner, no_times, unlike_clocks
from spaseq.spark.session.tables import arrow_type, one_name_each
from spaseq.spark.tuples.frames import Layout
from spaseq.spark.tuples.plan import TupleQuery

_LOG: Final = logging.getLogger("spaseq.spark")
_SOURCE: Final = "<events>"


def checked_columns(
    query: TupleQuery, schemas: Mapping[str, StructType], options: EventOptions, *, case_sensitive: bool
) -> dict[str, dict[int, StructField]]:
    """The columns of each stream that can be read, by their places, with the names that the query has for them.

    Raises the local engine's errors on the columns that are read, found on tables without rows; `EventError` for a
    column of a type that cannot be read, and for a name that several columns have but for case. Runs no job.
    """
    read = (*names_read(query, options), *_times_read(options))
    found = {}
    for stream, schema in schemas.items():
        names = schema.names if case_sensitive else _names(schema.names, read)
        found[stream] = _readable([_with_name(*pair) for pair in zip(schema.fields, names, strict=True)], read)
    tables = {name: _empty_table(columns.values()) for name, columns in found.items()}
    times, streams = _times_read(options), ", ".join(filter(None, schemas)) or _SOURCE
    for table in tables.values():
        TimestampAssigner(options, _SOURCE, types=()).read(table)  # `query.run` asks for types
        for name in read:
            if name in table.column_names:
                column_of(_sample(table.schema.field(name).type), name, _SOURCE if name in times else streams)
    counted = _are_counted(query, tables, options)
    given: dict[str, Any] = {"events": next(iter(tables.values()))} if len(tables) == 1 else {"streams": tables}
    words = {word: getattr(options, word) for word in ("time", "time_unit", "interval", "lateness")}
    query.run(**given, **words, **options.typing, time_from="arrival" if counted else None).to_arrow()
    return found


def row_schema(
    query: TupleQuery, names: tuple[str, ...], layout: Layout, options: EventOptions, events: tuple[str, ...] | None
) -> pa.Schema:
    """The columns of rows, with their types: what SELECT computes, keys and times, and with `events` a list of structs
    of these attributes. Runs no job.

    Raises `OptionError` for a column whose type the columns of the DataFrames do not tell.
    """
    given = {name: _one_type(layout.types(name)) for own in layout.streams for name in own}
    known = {name: kind for name, kind in given.items() if kind is not None}
    fields = []
    for field in query.in_order(names, options, iso=has_dates(layout)).types(known, _time_type(layout, options)):
        unknown = pa.types.is_null(field.type) and known.get(field.name) != pa.null()
        if unknown and any(bracket[0] == field.name for bracket in query.partition) and field.name not in query.columns:
            _LOG.warning(f"the rows lack the key {field.name}: its attributes have several types, or none")
            continue
        if unknown:
            raise _unknown_type(field.name)
        fields.append(_in_microseconds(field))
    if events is not None:
        fields.append(pa.field("events", pa.list_(pa.struct(_of_one_type(layout, events, "events=True")))))
    return pa.schema(fields)


def late_schema(names: tuple[str, ...], layout: Layout, attributes: tuple[str, ...]) -> pa.Schema:
    """The columns of late tuples: their own (`attributes`), and the name of their `stream` if there are several. Last
    comes `late_by`, the ns from a tuple's time to the time that its stream had come to.

    Raises `OptionError` for a column that has another type in each stream, or one of these names.
    """
    fields = _of_one_type(layout, attributes, "a row of a late event")
    if len(names) > 1:
        fields.append(pa.field("stream", pa.string()))
    return one_name_each(pa.schema([*fields, pa.field("late_by", pa.int64())]))


def _of_one_type(layout: Layout, attributes: Iterable[str], what: str) -> list[pa.Field]:
    """The columns with their types. Raises `OptionError` for one that has another type in each stream."""
    fields = []
    for name in attributes:
        kind = _one_type(layout.types(name))
        if kind is None:
            problem = f"the column {name} has another type in each stream, and {what} has one"
            raise OptionError(problem, "cast it to one type")
        fields.append(pa.field(name, kind))
    return fields


def _in_microseconds(field: pa.Field) -> pa.Field:
    """The column with the type that Spark has for it: times and durations are of microseconds. Raises `OptionError` for
    a column of a struct whose type is not known."""
    kind = field.type
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("us", kind.tz)
    elif pa.types.is_duration(kind):
        kind = pa.duration("us")
    elif pa.types.is_struct(kind):
        inner = [kind.field(place) for place in range(kind.num_fields)]
        for one in inner:
            if pa.types.is_null(one.type):
                raise _unknown_type(f"{field.name}.{one.name}")
        kind = pa.struct(list(map(_in_microseconds, inner)))
    return field.with_type(kind)


def _unknown_type(name: str) -> OptionError:
    hint = "give the attributes of one bracket of PARTITION BY one type, and one name one type in all streams"
    return OptionError(f"the type of the column {name} is not known", hint)


def _one_type(kinds: list[DataType]) -> pa.DataType | None:
    return arrow_type(kinds[0]) if len(kinds) == 1 else None


def _time_type(layout: Layout, options: EventOptions) -> pa.DataType:
    """The type of the times of matches."""
    if has_dates(layout):
        return pa.timestamp("us", "UTC")
    scale = unit_nanoseconds(options.unit)
    whole = (isinstance(kind, IntegralType) or (kind is None and options.step % scale == 0) for kind in layout.times)
    return pa.int64() if all(whole) else pa.float64()


def has_dates(layout: Layout) -> bool:
    """True if the times of some stream are dates, or texts of dates, not numbers: then rows show dates, as locally."""
    return any(kind is not None and not isinstance(kind, NumericType) for kind in layout.times)


def _are_counted(query: TupleQuery, tables: Mapping[str, pa.Table], options: EventOptions) -> bool:
    """True if tuples have no times but their places. Here no other column is guessed than those of `TIME_COLUMNS`.

    Raises `OptionError` if times are needed, or if one stream has them and another has not.
    """
    if options.from_arrival or options.time is not None:
        return options.from_arrival
    timed = {name: not set(TIME_COLUMNS).isdisjoint(table.column_names) for name, table in tables.items()}
    untimed = [name for name, has in timed.items() if not has]
    if untimed and len(untimed) < len(timed):
        raise unlike_clocks(next(name for name, has in timed.items() if has), untimed[0], tables[untimed[0]])
    needs = query.compiled.timed or ("lateness" if options.lateness else "")
    if untimed and needs and not options.counts:
        raise no_times(needs, _SOURCE, tables[untimed[0]])
    return bool(untimed)


def names_read(query: TupleQuery, options: EventOptions) -> tuple[str, ...]:
    """The attributes that the query, its rows and the options name, each once, but for the column of times."""
    names = chain(
        [options.type_column or "type"] if options.in_columns else (),
        query.in_order(("",), options, iso=False).attributes,
        query.attributes,
        *query.partition,
        (query.window_attribute,),
    )
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _times_read(options: EventOptions) -> tuple[str, ...]:
    """The columns that times may be taken from."""
    return () if options.from_arrival else (options.time,) if options.time else TIME_COLUMNS


def _names(columns: Sequence[str], read: tuple[str, ...]) -> list[str]:
    """The names of columns, as in `read` if they differ from it in case alone."""
    names = list(columns)
    taken: dict[int, str] = {}
    for name in read:
        if name in columns:
            continue
        same = [place for place, column in enumerate(columns) if column.casefold() == name.casefold()]
        if len(same) > 1:
            among = ", ".join(columns[place] for place in same)
            hint = "write the name of one of them, or rename them"
            raise EventError(f"{name!r} may be any of the columns {among}", source=_SOURCE, attribute=name, hint=hint)
        for place in same:
            if columns[place] in read or place in taken:
                other = taken.get(place, columns[place])
                problem = f"{name!r} and {other!r} are one column, {columns[place]}"
                hint = "write it in one way, or set spark.sql.caseSensitive"
                raise EventError(problem, source=_SOURCE, attribute=name, hint=hint)
            names[place] = taken[place] = name
    return names


def _with_name(field: StructField, name: str) -> StructField:
    return StructField(name, field.dataType, field.nullable, field.metadata)


def _readable(fields: Sequence[StructField], read: tuple[str, ...]) -> dict[int, StructField]:
    """The columns whose types can be read, by their places. `EventError` if another one is in `read`."""
    found = {}
    for place, field in enumerate(fields):
        if _arrow_field(field) is not None:
            found[place] = field
            continue
        name, kind = field.name, field.dataType.simpleString()
        if name in read:
            hint = "cast it to a type that can be, a text or a number"
            raise EventError(
                f"column {name!r} is {kind}, which cannot be read", source=_SOURCE, attribute=name, hint=hint
            )
        _LOG.info(
            f"the column {name} is left out: it is {kind}, which cannot be read, and the query does not ask for it"
        )
    return found


def _arrow_field(field: StructField) -> pa.Field | None:
    """The field as Arrow has it; None if Spark gives Python no column of its type."""
    try:
        kind = arrow_type(field.dataType)
    except PySparkException:
        return None
    return None if _has_time_of_day(kind) else pa.field(field.name, kind)


def _has_time_of_day(kind: pa.DataType) -> bool:
    """True for TIME, and for what is made of it: PySpark has a type for it, and Spark sends none."""
    return pa.types.is_time(kind) or any(_has_time_of_day(kind.field(i).type) for i in range(kind.num_fields))


def _sample(kind: pa.DataType) -> pa.Array:
    """An array with a value of a type that may have no meaning in a query, with NULL of any other."""
    value: Any = {} if pa.types.is_struct(kind) else [] if pa.types.is_nested(kind) else None
    return pa.array([value], kind)


def _empty_table(fields: Iterable[StructField]) -> pa.Table:
    """A table with these columns, and no rows."""
    return pa.schema([found for field in fields if (found := _arrow_field(field)) is not None]).empty_table()
