"""The rows of the matches of a query over DataFrames of tuples: analysed at once, computed by an action."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from spaseq.core.errors import OptionError
from spaseq.core.events import EventOptions
from spaseq.core.words import TEXT_FORM
from spaseq.spark.ingest.messages import MALFORMED
from spaseq.spark.session.options import refuse_limits, refuse_on_late
from spaseq.spark.session.steps import step
from spaseq.spark.session.tables import one_name_each, spark_schema
from spaseq.spark.tuples.columns import checked_columns, has_dates, late_schema, names_read, row_schema
from spaseq.spark.tuples.frames import Layout, divide, one_frame, with_positions
from spaseq.spark.tuples.plan import Plan, TupleQuery, grouping_of, together
from spaseq.spark.tuples.rows import Job, rows

_LOG: Final = logging.getLogger("spaseq.spark")
_PLACES: Final = (("start", pa.int64()), ("end", pa.int64()), ("positions", pa.list_(pa.int64())))
Tuples: TypeAlias = DataFrame | Mapping[str, DataFrame]


def analyse(
    query: TupleQuery, tuples: Tuples, options: EventOptions, *, events: bool, positions: bool, late: bool = False
) -> tuple[dict[str, DataFrame], Job]:
    """The DataFrames by stream, with the columns that can be read, and the work of a task. Runs nothing. `late`: late
    tuples are rows of their own.

    Raises `OptionError` and `EventError` for what is wrong with the query, the options or the columns.
    """
    refuse_form(options)
    refuse_limits(query.settings)
    named = _named_streams(query, tuples)
    spark = next(iter(named.values())).sparkSession
    schemas = {name: frame.schema for name, frame in named.items()}
    sensitive = spark.conf.get("spark.sql.caseSensitive", "false") == "true"
    words = {"events": events, "positions": positions, "late": late}
    columns, job = planned_job(query, schemas, options, case_sensitive=sensitive, **words)
    return {name: _with_columns(frame, columns[name]) for name, frame in named.items()}, job


def planned_job(
    query: TupleQuery, schemas: Mapping[str, StructType], options: EventOptions, *, case_sensitive: bool, events: bool,
    positions: bool, late: bool = False,
) -> tuple[dict[str, dict[int, StructField]], Job]:  # fmt: skip
    """The columns of each stream that can be read, by their places in its schema, and the work of a task. Raises what
    `analyse` raises. O(columns); no session is needed."""
    if any(options.clock(schema.names) for schema in schemas.values()):
        hint = "F.concat_ws(' ', 'date', 'clock') makes one column of two"
        raise OptionError(f"match takes times from one column, and --time {options.time} is two", hint)
    for name, given in (("events", events), ("positions", positions)):
        if given and (said := together(query)):
            raise OptionError(f"{name}=True is of one query: {said}", "leave it out, and SELECT what is wanted of them")
        if given and grouping_of(query) is not None:
            problem = f"{name}=True is of one match, and a row of GROUP BY stands for several"
            raise OptionError(problem, f"leave {name} out; or leave GROUP BY out, and group the DataFrame of matches")
    columns = checked_columns(query, schemas, options, case_sensitive=case_sensitive)
    kept = [StructType(list(found.values())) for found in columns.values()]
    layout = Layout.of(kept, None if events or late else frozenset(names_read(query, options)), options)
    every = tuple(dict.fromkeys(name for schema in kept for name in schema.names if name != MALFORMED))
    attributes = every if events else None
    schema = row_schema(query, tuple(columns), layout, options, attributes)
    if positions:
        schema = pa.schema([*schema, *_PLACES])
    told = late_schema(tuple(columns), layout, every) if late else None
    job = Job(query, tuple(columns), layout, options, has_dates(layout), one_name_each(schema), attributes, told)
    return columns, job


def _with_columns(frame: DataFrame, columns: Mapping[int, StructField]) -> DataFrame:
    """The DataFrame with these columns of its own, by their places, under their names."""
    names = [field.name for field in columns.values()]
    if names == frame.columns:
        return frame
    # By place, as Spark takes names that differ in case alone for one.
    numbered = frame.toDF(*(f"column{place}" for place in range(len(frame.columns))))
    return numbered.select(*(f"column{place}" for place in columns)).toDF(*names)


def batch_rows(
    query: TupleQuery, tuples: Tuples, options: EventOptions, *, partitions: int | None, cut: str, events: bool,
    positions: bool,
) -> DataFrame:  # fmt: skip
    """The rows of the matches over tuples that are all there. Arguments: those of `spaseq.spark.match`."""
    plan = Plan.of(query, cut)
    named, job = analyse(query, tuples, options, events=events, positions=positions)
    whole = one_frame(list(named.values()), job.layout, options)
    if positions:
        whole = with_positions(whole, job.layout)
    for line in plan.explain():
        _LOG.info(line)
    find = step(f"find matches in {', '.join(filter(None, named)) or 'one stream'}", rows, job)
    return divide(whole, job.layout, plan, partitions).mapInArrow(find, spark_schema(job.schema))


def check_tasks(name: str, count: int | None) -> None:
    """Raises `OptionError` for what is no number of tasks; None leaves it to the session."""
    if count is not None and (type(count) is not int or count < 1):
        raise OptionError(f"{name}={count!r}: a stage has at least one task", "a whole number from 1 on")


def refuse_form(options: EventOptions) -> None:
    """Raises `OptionError` for options that say how text files are read, and for `on_late`."""
    refuse_on_late(options)
    for word in TEXT_FORM:
        if getattr(options, word) is not None:
            raise OptionError(f"match takes no {word}=: Spark reads the files", "spark.read.csv has sep=, encoding=, …")


def _named_streams(query: TupleQuery, events: Tuples) -> dict[str, DataFrame]:
    """The DataFrames by stream name, in the order of the FROM clause; one without a name is stream ''."""
    if isinstance(events, Mapping):
        if not events:
            raise OptionError("no streams to run over", "match(query)({name: DataFrame, …})")
        for name, frame in events.items():
            if not is_frame(frame):
                raise OptionError(f"the stream {name} is no DataFrame, but {kind_name(frame)}", "{name: DataFrame, …}")
        return {name: events[name] for name in query.stream_names(tuple(events))}
    if not is_frame(events):
        problem = f"the events are neither a DataFrame nor DataFrames by stream, but {kind_name(events)}"
        raise OptionError(problem, "give a DataFrame of Spark, or {name: DataFrame, …}")
    names = query.stream_names(())
    if len(names) > 1:
        raise OptionError(
            f"the query reads several streams: {', '.join(names)}",
            "match(query)({name: DataFrame, …}) gives each its own",
        )
    return {names[0]: events}


def is_frame(value: Any) -> bool:
    """True for a DataFrame of a session of any kind: before PySpark 4 those of Spark Connect have a class of their
    own."""
    return isinstance(value, DataFrame) or type(value).__module__.startswith("pyspark.sql.connect")


def kind_name(value: Any) -> str:
    """The kind of a value, for errors."""
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}"
