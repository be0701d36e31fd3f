"""CEQL queries as Spark batch jobs over DataFrames of tuples.

A query is any object that is a `TupleQuery`: `ceql.compile` gives one, and this package knows CEQL by no more.

1. The tuples of all streams are put in order: by time, then by stream, then as they stand in their DataFrame. Each gets
   its position in the whole. (A DataFrame has no order but that of its times, so nothing is ever late.)
2. They are cut into parts that change no answer (`spaseq.spark.batch.cuts`): by PARTITION BY keys, written or inferred;
   by slices of the window's coordinate that overlap by one window, each of which reports the matches whose ends it
   owns; or not at all.
3. The same engine runs on each part.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import groupby, pairwise
from typing import Any, Final, TypeAlias, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions, TupleWords
from spaseq.core.events.timestamps import TimestampAssigner
from spaseq.core.words import TEXT_FORM
from spaseq.spark.batch.columns import checked_frames, has_dates, row_schema
from spaseq.spark.batch.cuts import (
    ORDER,
    POSITION,
    SOURCE,
    STREAM,
    TIME,
    TupleCut,
    TupleQuery,
    choose_cut,
    column_of,
    slices_of,
)
from spaseq.spark.ingest.messages import readable
from spaseq.spark.ingest.time_ranges import parted_at, quantiles
from spaseq.spark.session.connecting import task_count
from spaseq.spark.session.failures import carried, clear_errors
from spaseq.spark.session.keeping import keep
from spaseq.spark.session.options import refuse_limits
from spaseq.spark.session.steps import step
from spaseq.spark.session.tables import TUPLE_MATCHES, spark_schema, with_own_names, with_plain_names

_LOG: Final = logging.getLogger("spaseq.spark")
_INDEX_BITS: Final = 33
_OWN: Final = (TIME, STREAM, ORDER, POSITION, SOURCE)

_POSITIONS: Final = (
    "positions count the tuples in order of time, then of their streams, then as Spark reads them: they are no numbers "
    "of a DataFrame's rows"
)
Tuples: TypeAlias = DataFrame | Mapping[str, DataFrame]
_Found: TypeAlias = tuple[Any, np.ndarray, np.ndarray]
_Finder: TypeAlias = Callable[[pa.Table], _Found]


def run_tuples(
    query: TupleQuery,
    events: Tuples,
    *,
    partitions: int | None = None,
    cut: str = "auto",
    **reading: Unpack[TupleWords],
) -> DataFrame:
    """The rows that SELECT computes of the matches of a query over tuples, with Spark's types.

    If it computes none, the matches: start, end, positions (in the merged stream, from 0) and times (ns).

    Positions count the tuples in order of time, then of their streams, then as Spark reads them; they are no numbers of
    a DataFrame's rows. Attributes that SELECT lists, and keys, are not in the rows: a warning of the log `spaseq.spark`
    says so.

    Args:
        query: what `ceql.compile` gives.
        events: a DataFrame, or one for each stream that the query names.
        partitions: how many tasks a stage has; by default as many as the session runs at a time.
        cut: how to divide the work: "auto", "keys", "slices" or "one". What would change an answer is refused.

    `type_column`, `type`, `time`, `time_from` and `time_unit` are as for CEQL's `run`, and may be left out. With
    `time_from="arrival"`, and without a time column if the query needs no times, the k-th tuple of a stream, as its
    DataFrame stands, is at k times `interval`. No tuple is ever late.

    The order is worked out when this is called, the matches when somebody asks for rows. Raises `OptionError` and
    `EventError`; what goes wrong in the last step comes out as clearly only through `spaseq.spark.collect`.
    """
    options = EventOptions.parse(**reading)
    named = checked_streams(query, events, options, "run_tuples")
    spark = next(iter(named.values())).sparkSession
    tasks = task_count(spark) if partitions is None else partitions
    if tasks < 1:
        raise OptionError(f"partitions={partitions}: a stage has at least one task")
    if lacking := _lacking(query):
        _LOG.warning(f"{lacking}; {_POSITIONS}")
    with clear_errors():
        timed = [_timed(frame, number, options) for number, frame in enumerate(named.values())]
        ordered = _positioned(reduce(partial(DataFrame.unionByName, allowMissingColumns=True), timed), tasks)
        chosen = choose_cut(query, ordered, tasks, cut)
    for line in chosen.explain():
        _LOG.info(line)
    rows = row_schema(query, named, options)
    find_part = partial(_find, query, tuple(named), options.typing)
    times = {"iso": has_dates(named, options), "unit": options.unit}
    job = partial(_positions, find_part) if rows is None else partial(_rows, find_part, times, rows)
    find = step(f"find matches in {', '.join(filter(None, named)) or 'one stream'}", _each_part, job)
    return _parted(ordered, chosen).mapInArrow(find, spark_schema(TUPLE_MATCHES if rows is None else rows))


def explain_tuples(query: TupleQuery) -> str:
    """How `run_tuples` would cut the work, as far as the query alone says, and what its rows have."""
    _check_query(query, "explain_tuples")
    said = f"rows: {', '.join(query.columns)}" if query.columns else _POSITIONS
    return "\n".join(filter(None, [*TupleCut.of(query).explain(), _lacking(query), said]))


def _lacking(query: TupleQuery) -> str:
    """Says what the query asks for and the rows of `run_tuples` do not have; empty if there is nothing."""
    if query.columns:
        return ""
    asked = f"SELECT asks for {', '.join(query.selected)}" if query.selected else ""
    keys = ", ".join(" or ".join(bracket) for bracket in query.partition)
    missing = " and ".join(filter(None, (asked, f"the key is {keys}" if keys else "")))
    return f"the rows of run_tuples have positions and times only: {missing}, which they lack" if missing else ""


def checked_streams(query: TupleQuery, events: Tuples, options: EventOptions, caller: str) -> dict[str, DataFrame]:
    """The DataFrames by stream name, in the order of the FROM clause, with the columns that can be read. Runs nothing.

    `caller`: the function that was called. Raises `OptionError` for a query or events that are none, else the local
    engine's errors on the columns.
    """
    _check_query(query, caller)
    for word in TEXT_FORM:
        if getattr(options, word) is not None:
            raise OptionError(
                f"{caller} takes no {word}=: Spark reads the files", "spark.read.csv has sep=, encoding=, …"
            )
    refuse_limits(query.settings)
    named = _named_streams(query, events)
    if any(options.clock(frame.columns) for frame in named.values()):
        hint = "F.concat_ws(' ', 'date', 'clock') makes one column of two"
        raise OptionError(f"{caller} takes times from one column, and --time {options.time} are two", hint)
    for frame in named.values():
        for name in _OWN:
            if name in frame.columns:
                raise OptionError(f"the column name {name} is taken", "rename it: names that begin so are used here")
    return checked_frames(query, named, options)


def _check_query(query: Any, caller: str) -> None:
    """Raises `OptionError` for what is no compiled query over tuples."""
    if hasattr(query, "window_attribute") and hasattr(query, "stream_names"):
        return
    graphs = hasattr(query, "streams")
    hint = f"ceql.compile(text) makes one: spaseq.spark.{caller}(ceql.compile(text), …)"
    given = "a text" if isinstance(query, str) else _kind(query)
    raise OptionError(
        f"{caller} takes a compiled query over tuples, and this is {given}",
        "queries over graphs are run by spaseq.spark.run and spaseq.spark.start" if graphs else hint,
    )


def _kind(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}"


def _named_streams(query: TupleQuery, events: Tuples) -> dict[str, DataFrame]:
    """The DataFrames by stream name, in the order of the FROM clause; one without a name is stream ''."""
    if isinstance(events, Mapping):
        if not events:
            raise OptionError("no streams to run over", "run(query, spark, {name: DataFrame, …})")
        for name, frame in events.items():
            if not isinstance(frame, DataFrame):
                raise OptionError(f"the stream {name} is no DataFrame, but {_kind(frame)}", "{name: DataFrame, …}")
        return {name: events[name] for name in query.stream_names(tuple(events))}
    if not isinstance(events, DataFrame):
        problem = f"the events are neither a DataFrame nor DataFrames by stream, but {_kind(events)}"
        raise OptionError(problem, "give a DataFrame of Spark, or {name: DataFrame, …}")
    names = query.stream_names(())
    if len(names) > 1:
        raise OptionError(
            f"the query reads several streams: {', '.join(names)}", "give each its own: {name: DataFrame, …}"
        )
    return {names[0]: events}


# -- 1. order


def _timed(frame: DataFrame, number: int, options: EventOptions) -> DataFrame:
    """The tuples of one stream with their times, their stream's number and their order in it."""
    # An attribute may be missing in a stream, and a text column in one be a number in another: that is for the engine.
    arrival = options.from_arrival or (options.time is None and not {"time", "timestamp"} & set(frame.columns))
    plain = with_plain_names(frame)
    with_order = plain.withColumn(ORDER, F.monotonically_increasing_id()).withColumn(STREAM, F.lit(number))
    if arrival:
        return _counted(keep(with_order), options.step)
    schema = StructType([*with_order.schema, StructField(TIME, LongType())])
    return with_order.mapInArrow(carried(_read_clock, options), schema)


def _read_clock(options: EventOptions, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    clock = TimestampAssigner(options, "<events>", types=())
    for batch in batches:
        if batch.num_rows:
            _, times = readable(with_own_names(batch).drop_columns([ORDER, STREAM]), clock)
            yield batch.append_column(TIME, pa.array(times, pa.int64()))


def _counted(frame: DataFrame, interval: int) -> DataFrame:
    """Times from arrival."""
    return _numbered(frame, ORDER).withColumn(TIME, F.col(POSITION) * F.lit(interval)).drop(POSITION)


def _numbered(frame: DataFrame, by: str) -> DataFrame:
    """`frame` with POSITION, from 0, given ids (`by`) that Spark gave its rows as they stand. Runs a job."""
    task = F.shiftright(by, _INDEX_BITS)
    counts = frame.groupBy(task.alias("task")).count().collect()
    firsts: dict[int, int] = {}
    total = 0
    for row in sorted(counts, key=lambda row: row["task"]):
        firsts[row["task"]] = total
        total += row["count"]
    if not firsts:
        return frame.withColumn(POSITION, F.lit(0).cast("long"))
    table = F.create_map(*(F.lit(value) for pair in firsts.items() for value in pair))
    index = F.col(by).bitwiseAND(F.lit((1 << _INDEX_BITS) - 1))
    return frame.withColumn(POSITION, (F.element_at(table, task) + index).cast("long"))


def _positioned(frame: DataFrame, tasks: int) -> DataFrame:
    """All tuples in order, a range per task, with their positions."""
    timed = frame.persist()
    try:
        bounds = timed.agg(quantiles(TIME, tasks).alias("times")).first()["times"]
        ranged = parted_at(timed, TIME, bounds).sortWithinPartitions(TIME, STREAM, ORDER)
        return _numbered(keep(ranged.withColumn(SOURCE, F.monotonically_increasing_id())), SOURCE)
    finally:
        timed.unpersist()


# -- 2. parts


def _parted(ordered: DataFrame, cut: TupleCut) -> DataFrame:
    """Each tuple in the parts it belongs to: `part`, and whether a match that ends with it is that part's to report."""
    frame = ordered.withColumn("spaseq_slice", F.lit(0)).withColumn("spaseq_own", F.lit(True))
    if cut.slices:
        coordinate = column_of(cut.coordinate)
        frame = frame.withColumn("spaseq_slice", slices_of(coordinate, cut.slices, cut.window, behind=cut.behind))
        lows = F.array(*(F.lit(bound) for bound in cut.slices))
        mine = F.size(F.filter(lows, lambda low: low <= coordinate)) - 1
        frame = frame.withColumn("spaseq_own", F.col("spaseq_slice") == F.greatest(mine, F.lit(0)))
    keys = cut.key_columns(ordered)
    group = F.pmod(F.hash(*keys), F.lit(cut.groups)) if cut.groups > 1 else F.lit(0)
    if keys:
        frame = frame.where(reduce(Column.__and__, (key.isNotNull() for key in keys)))
    frame = frame.withColumn("spaseq_part", group + F.col("spaseq_slice") * F.lit(cut.groups)).drop("spaseq_slice")
    count = max(1, cut.groups * max(1, len(cut.slices)))
    return frame.repartitionById(count, F.col("spaseq_part").cast("int")).sortWithinPartitions("spaseq_part", POSITION)


# -- 3. the engine


def _each_part(find: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches in each part of a task's rows, which come part by part."""
    for _, pieces in groupby(_pieces(batches), key=lambda piece: piece[0]):
        yield from find(with_own_names(*(batch for _, batch in pieces)))


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches cut where the part changes."""
    for batch in batches:
        parts = batch.column("spaseq_part").to_numpy()
        bounds = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
        for start, end in pairwise(bounds):
            if end > start:
                yield int(parts[start]), batch.slice(start, end - start)


def _find(query: TupleQuery, names: Sequence[str], typing: Mapping[str, str | None], part: pa.Table) -> _Found:
    """The matches of a part; for each of its events the position in the whole stream, and whether the part reports a
    match that ends there."""
    positions = part[POSITION].to_numpy()
    owned = part["spaseq_own"].to_numpy()
    kept = part.drop_columns([ORDER, POSITION, SOURCE, "spaseq_part", "spaseq_own"])
    streams = kept[STREAM].to_numpy()
    tables = {name: kept.filter(pa.array(streams == i)).drop_columns([STREAM]) for i, name in enumerate(names)}
    given: dict[str, Any] = {"events": next(iter(tables.values()))} if len(names) == 1 else {"streams": tables}
    return query.run(**given, **typing, time=TIME, time_unit="ns"), positions, owned


def _positions(find: _Finder, part: pa.Table) -> Iterator[pa.RecordBatch]:
    """The matches of a part as rows of TUPLE_MATCHES, with positions in the whole stream."""
    matches, positions, owned = find(part)
    found = matches.to_arrow()
    found = found.filter(pa.array(owned[found["end"].to_numpy()], pa.bool_()))
    for batch in found.to_batches():
        start, end = (pa.array(positions[batch.column(name).to_numpy()]) for name in ("start", "end"))
        lists = batch.column("positions").cast(pa.list_(pa.int64()))
        flat = pa.array(positions[lists.flatten().to_numpy()])
        offsets = lists.offsets.to_numpy()
        again = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), flat)
        times = [batch.column(name).cast(pa.int64()) for name in ("start_time", "end_time")]
        yield pa.record_batch([start, end, again, *times], schema=TUPLE_MATCHES)


def _rows(find: _Finder, times: Mapping[str, Any], schema: pa.Schema, part: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows that SELECT computes of the matches of a part."""
    matches, _, owned = find(part)
    for table in matches.with_times(**times).tables():
        rows = table.rows().filter(pa.array(owned[table.matches.end], pa.bool_()))
        yield from as_spark(rows, schema).to_batches()


def as_spark(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with Spark's types, whose times and durations are of microseconds. `EventError` for a column whose
    values are not of the type that was found before the first one."""
    columns = []
    for field in schema:
        moments = pa.types.is_timestamp(field.type) or pa.types.is_duration(field.type)
        try:
            columns.append(rows.column(field.name).cast(field.type, safe=not moments))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            problem = (
                f"the column {field.name} is of {field.type}, and has values of {rows.schema.field(field.name).type}"
            )
            raise EventError(problem, source="SELECT", hint="CAST(… AS NUMBER) or AS TEXT gives it one type") from None
    return pa.table(columns, schema=schema)
