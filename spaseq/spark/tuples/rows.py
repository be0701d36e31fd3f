"""In a task: the engine over tuples as they come, and the rows of its matches.

Arrow batches of a few thousand tuples are put together to batches that the engine takes at once. It holds the tuples
that live runs may still name, and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spaseq.core.errors import EventError
from spaseq.core.events import EventOptions
from spaseq.core.events.timestamps import Part
from spaseq.spark.tuples.frames import Layout
from spaseq.spark.tuples.plan import TupleQuery

_EVENTS: Final = 1 << 16
"""Tuples that are put together for the engine."""
POSITION: Final = "spaseq position"
"""The attribute of a tuple's number in the order of all, if it is asked for."""
_PLACES: Final = ("start", "end", "positions")


@dataclass(frozen=True, slots=True)
class Job:
    """The work of a task: the matches of `query` over the streams `names`, whose columns `layout` tells.

    `options` say how types are read; `iso` and `options.unit` are the form of times in rows. `schema` are the columns
    of the rows, `events` the attributes of the events in them, None without. `late`: the columns of late tuples, if
    these are rows too.
    """

    query: TupleQuery
    names: tuple[str, ...]
    layout: Layout
    options: EventOptions
    iso: bool
    schema: pa.Schema
    events: tuple[str, ...] | None
    late: pa.Schema | None = None


class Task:
    """The engine over the tuples of a task, or of one of its slices of time, which come in order: batches in, rows out.
    `bounds`: of a slice, its number, its first time and that of the next one."""

    def __init__(self, job: Job, bounds: Sequence[int | None] = ()) -> None:
        self._job = job
        self._bounds = bounds
        self._matches = job.query.in_order(job.names, job.options, iso=job.iso)
        self._held: list[pa.RecordBatch] = []
        self._count = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """The rows that the next tuples complete. Exhaust it before the next call."""
        self._held.append(batch)
        self._count += batch.num_rows
        if self._count >= _EVENTS:
            yield from self._recognise()

    def close(self) -> Iterator[pa.Table]:
        """The rows that the end of the tuples completes."""
        if self._count:
            yield from self._recognise()
        yield from self._rows(self._matches.close())

    def _recognise(self) -> Iterator[pa.Table]:
        chunk = parts(self._job, pa.Table.from_batches(self._held))
        self._held, self._count = [], 0
        yield from self._rows(self._matches.push(chunk))

    def _rows(self, matches: Iterator[Any]) -> Iterator[pa.Table]:
        for found in matches:
            yield _own_rows(self._job, found, self._bounds)


def rows(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the matches among the tuples of a task, which come in order, slice by slice."""
    for bounds, pieces in groupby(slice_by_slice(batches), key=lambda piece: piece[0]):
        task = Task(job, bounds)
        found = chain(chain.from_iterable(task.push(batch) for _, batch in pieces), task.close())
        for table in found:
            yield from table.to_batches()


def slice_by_slice(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """The batches, cut where the slice changes; with each its number, its first time and that of the next one."""
    for batch in batches:
        if "part" not in batch.schema.names:
            yield (), batch
            continue
        numbers = batch.column("part").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, end in pairwise(cuts):
            if end > start:
                bounds = tuple(batch.column(name)[start].as_py() for name in ("part", "low", "high"))
                yield bounds, batch.slice(start, end - start)


def parts(job: Job, table: pa.Table) -> list[Part]:
    """The tuples of each stream, with their times."""
    times = table["time"]
    if times.null_count:
        clocks = {clock for clock in job.layout.clocks if clock is not None}
        raise EventError(
            "this event has no time, or one outside those that can be held (1677 to 2262)", source="<events>",
            attribute=next(iter(clocks), ""), hint="is the unit right? time_unit= is s, ms, us or ns",
        )  # fmt: skip
    stamps = times.to_numpy()
    more = {POSITION: table["position"]} if "position" in table.column_names else {}
    if len(job.names) == 1:
        return [Part(_with_names(table, job.layout.streams[0], more), stamps)]
    streams = table["stream"].to_numpy()
    found = []
    for number, own in enumerate(job.layout.streams):
        mine = np.flatnonzero(streams == number)
        whole = _with_names(table, own, more)
        found.append(Part(whole.take(pa.array(mine)), stamps[mine]))
    return found


def _with_names(table: pa.Table, own: Any, more: dict[str, Any]) -> pa.Table:
    return pa.table({name: table[f"c{number}"] for name, number in own.items()} | more)


def _own_rows(job: Job, found: Any, bounds: Sequence[int | None]) -> pa.Table:
    """The rows of matches, of a slice those that end in it."""
    table = row_table(job, found)
    if not bounds:
        return table
    _, low, high = bounds
    ends = found.history.times(found.matches.end)
    own = np.ones(len(ends), bool)
    if low is not None:
        own &= ends >= low
    if high is not None:
        own &= ends < high
    return table if own.all() else table.filter(pa.array(own))


def row_table(job: Job, found: Any) -> pa.Table:
    """The rows of matches, of `job.schema`: what the query computes, then the numbers of tuples and the events, as they
    are asked for."""
    table = found.rows()
    matches = found.matches
    if _PLACES[0] in job.schema.names and found.history.columns([POSITION]).num_columns:
        history = found.history
        numbers = history.columns([POSITION]).column(POSITION).to_numpy()
        for name, positions in zip(_PLACES, (matches.start, matches.end, matches.positions), strict=True):
            values = pa.array(numbers[history.rows(positions)])
            table = table.append_column(name, _lists(matches, values) if name == _PLACES[2] else values)
    if job.events is not None:
        chosen = pa.array(found.history.rows(matches.positions), pa.int64())
        kinds = job.schema.field("events").type.value_type
        taken = found.history.columns(job.events).take(chosen)
        columns = [
            _plain(taken.column(field.name), field.type) if field.name in taken.column_names
            else pa.nulls(len(chosen), field.type)
            for field in kinds
        ]  # fmt: skip
        table = table.append_column("events", _lists(matches, pa.StructArray.from_arrays(columns, fields=list(kinds))))
    return as_spark(table, job.schema)


def _plain(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column of events in one array, with the type that Spark has for it."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks().cast(kind) if column.num_chunks != 1 else column.chunk(0).cast(kind)


def _lists(matches: Any, values: pa.Array) -> pa.ListArray:
    offsets = matches.offsets - (matches.offsets[0] if len(matches.offsets) else 0)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def as_spark(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with Spark's types, whose times and durations are of microseconds. `EventError` for a column whose
    values are not of the type that was found before the first one."""
    columns: list[Any] = []
    for field in schema:
        if pa.types.is_struct(field.type) and pa.types.is_struct(rows.schema.field(field.name).type):
            columns.append(_struct_as_spark(rows.column(field.name), field.type))
            continue
        moments = pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)
        try:
            columns.append(rows.column(field.name).cast(field.type, safe=not moments))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            problem = (
                f"the column {field.name} is of {field.type}, and has values of {rows.schema.field(field.name).type}"
            )
            raise EventError(problem, source="SELECT", hint="CAST(… AS NUMBER) or AS TEXT gives it one type") from None
    return pa.table(columns, schema=schema)


def _struct_as_spark(column: pa.ChunkedArray, kind: pa.StructType) -> pa.Array:
    """A column of structs that are not NULL, with Spark's types; errors as of `as_spark`."""
    fields = [kind.field(place) for place in range(kind.num_fields)]
    whole = column.combine_chunks()
    parts = {field.name: whole.field(field.name) for field in fields}
    inner = as_spark(pa.table(parts), pa.schema(fields)) if fields else pa.table({})
    arrays = [part.combine_chunks() for part in inner.columns]
    return pa.StructArray.from_arrays(arrays, fields=fields) if fields else whole
