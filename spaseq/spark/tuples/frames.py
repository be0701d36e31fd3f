"""The tuples of all streams in one DataFrame, each with its time, in the tasks that need them. Nothing runs here.

Its columns are numbered, so names with dots, and names that differ in case alone, do no harm: a `Layout` tells what
they are. Columns of several streams are one if they have one name and one type. Behind them stand:

* `time`: in ns. Spark computes it of timestamps, dates and whole numbers; of others a Python task does.
* `stream`: the number of the stream, if there are several.
* `order`: increases as Spark reads the rows of a stream. Tuples of equal times keep the order of the streams, then
  this.
* `part`, `low`, `high`: of slices of time, the number of the slice, its first time and that of the next one, NULL for
  none.
* `position`: if asked for, the tuple's number in the order of all, from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DateType,
    IntegralType,
    LongType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spaseq.core.events import EventOptions
from spaseq.core.events.timestamps import TIME_COLUMNS, TimestampAssigner
from spaseq.spark.ingest.clock import nanoseconds
from spaseq.spark.ingest.messages import MALFORMED, MESSAGE_PLACE, times_read
from spaseq.spark.session.failures import carried
from spaseq.spark.session.spreading import spread
from spaseq.spark.tuples.plan import Plan
from spaseq.spark.tuples.slices import cut_into_slices


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of the one DataFrame. `streams`: for each stream the number of the column of each attribute.
    `clocks`: the column of its times, None for the order in which Spark reads it; `times`: the type of that. `kinds`:
    the types of the numbered columns."""

    streams: tuple[Mapping[str, int], ...]
    clocks: tuple[str | None, ...]
    times: tuple[DataType | None, ...]
    kinds: tuple[DataType, ...]

    @staticmethod
    def of(schemas: Iterable[StructType], read: frozenset[str] | None, options: EventOptions) -> Layout:
        """`schemas`: the columns of each stream. `read`: the attributes that are read; None for all."""
        numbers: dict[tuple[str, str], int] = {}
        streams, clocks, times = [], [], []
        kinds: list[DataType] = []
        for schema in schemas:
            clock = clock_column(schema.names, options)
            clocks.append(clock)
            times.append(None if clock is None else next(f.dataType for f in schema.fields if f.name == clock))
            own = {}
            for field in schema.fields:
                if (read is None or field.name in read) and field.name != MALFORMED:
                    number = numbers.setdefault((field.name, field.dataType.json()), len(numbers))
                    if number == len(kinds):
                        kinds.append(field.dataType)
                    own[field.name] = number
            streams.append(own)
        return Layout(tuple(streams), tuple(clocks), tuple(times), tuple(kinds))

    def types(self, name: str) -> list[DataType]:
        """The types that an attribute has."""
        return [self.kinds[number] for number in self.numbers(name)]

    def numbers(self, name: str) -> list[int]:
        """The numbers of an attribute's columns."""
        return list(dict.fromkeys(own[name] for own in self.streams if name in own))


def clock_column(names: list[str], options: EventOptions) -> str | None:
    """The column of a stream that its times are taken from; None for arrival."""
    if options.from_arrival:
        return None
    return options.time or next((name for name in TIME_COLUMNS if name in names), None)


def one_frame(frames: list[DataFrame], layout: Layout, options: EventOptions, *, drop: bool = False) -> DataFrame:
    """All tuples, with `time`, `order`, and `stream` if there are several. With `drop` a tuple whose time cannot be
    read has none, else that is an error of its task."""
    timed = [_with_times(frame, number, layout, options, drop) for number, frame in enumerate(frames)]
    return reduce(DataFrame.union, timed)


def _with_times(frame: DataFrame, stream: int, layout: Layout, options: EventOptions, drop: bool) -> DataFrame:
    own, clock = layout.streams[stream], layout.clocks[stream]
    places = {field.name: place for place, field in enumerate(frame.schema.fields)}
    numbered = frame.toDF(*(f"f{place}" for place in range(len(places)))) if places else frame
    columns = [
        F.col(f"f{places[name]}").alias(f"c{number}")
        if (name := next((n for n, k in own.items() if k == number), None)) is not None
        else F.lit(None).cast(kind).alias(f"c{number}")
        for number, kind in enumerate(layout.kinds)
    ]
    kind = layout.times[stream]
    tail = [] if frame.isStreaming else [F.monotonically_increasing_id().alias("order")]  # a stream has no such order
    if len(layout.streams) > 1:
        tail.append(F.lit(stream).alias("stream"))
    if clock is None:
        counted = numbered.select(*columns, *tail)
        place = F.row_number().over(Rows.orderBy("order")).cast("long") - 1
        given = [f"c{n}" for n in range(len(columns))]
        return counted.select(*given, (place * F.lit(options.step)).alias("time"), *counted.columns[len(given) :])
    time = None
    if MALFORMED not in places and options.time_format is None:
        time = nanoseconds(F.col(f"f{places[clock]}"), kind, options.unit)
    if time is not None:
        return numbered.select(*columns, time.alias("time"), *tail)
    names = tuple(name for name in (clock, MALFORMED, *MESSAGE_PLACE) if name in places)
    extra = [F.col(f"f{places[name]}").alias(name) for name in names]
    fields = [StructField(f"c{number}", kind) for number, kind in enumerate(layout.kinds)]
    schema = StructType([*fields, StructField("time", LongType())])
    given = numbered.select(*columns, *(column.alias(f"x{k}") for k, column in enumerate(extra)))
    read = given.mapInArrow(carried(_read_clock, replace(options, type_column=None), names, len(columns), drop), schema)
    return read.select("*", *tail)


def _read_clock(
    options: EventOptions, names: tuple[str, ...], count: int, drop: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The batches, whose columns behind `count` are `names`, with their times in place of these."""
    clock = TimestampAssigner(options, "<events>", types=())
    return (with_time(batch, clock, names, count, drop=drop) for batch in batches if batch.num_rows)


def with_time(
    batch: pa.RecordBatch, clock: TimestampAssigner, names: tuple[str, ...], count: int, *, drop: bool = False
) -> pa.RecordBatch:
    """The first `count` columns of a batch, and `time`, which `clock` reads from the others, whose names are `names`.
    Errors and `drop` as of `times_read`."""
    given = pa.table(dict(zip(names, batch.columns[count:], strict=True)))
    kept = pa.RecordBatch.from_arrays(batch.columns[:count], batch.schema.names[:count])
    return kept.append_column("time", times_read(given, clock, drop=drop))


# -- in the tasks that need them


def with_positions(frame: DataFrame, layout: Layout) -> DataFrame:
    """The tuples with their numbers in the order of all: one task counts them."""
    place = F.row_number().over(Rows.orderBy(*_order(layout))).cast("long") - 1
    return frame.withColumn("position", place)


def _order(layout: Layout) -> list[str]:
    return ["time", *(["stream"] if len(layout.streams) > 1 else []), "order"]


def divide(frame: DataFrame, layout: Layout, plan: Plan, tasks: int | None) -> DataFrame:
    """The tuples in the tasks that need them, in order. `tasks`: how many, at most; None for as many as a stage of the
    session has, which Spark may make fewer."""
    order = _order(layout)
    if tasks == 1 or not (plan.keys or plan.slices):
        return frame.repartition(1).sortWithinPartitions(*order)
    keys = key_columns(plan, layout)
    kept = frame.where(reduce(Column.__and__, (key.isNotNull() for key in keys))) if keys else frame
    if not plan.slices:
        sent = kept.repartition(*keys) if tasks is None else kept.repartition(tasks, *keys)
        return sent.sortWithinPartitions(*order)
    count = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")) if tasks is None else tasks
    group = F.pmod(F.hash(*keys), F.lit(count)) if keys else None
    sliced = cut_into_slices(kept, plan, count, group)
    # Of a group that is cut, the first slice stays in its task, and the others go to as many further ones.
    number, slice = F.col("part") % count, F.floor(F.col("part") / count)
    most = 2 * count if keys else count
    task = F.when(slice > 0, count + F.pmod(number * 7 + slice - 1, F.lit(count))).otherwise(number).cast("int")
    place = F.element_at(F.array(*(F.lit(place) for place in spread(most))), task + 1)
    sent = sliced.repartition(place) if tasks is None else sliced.repartition(most, place)
    return sent.sortWithinPartitions("part", *order)


def key_columns(plan: Plan, layout: Layout) -> list[Column]:
    """For each bracket of the key a value that is the same for equal keys; NULL if a tuple has none."""
    return [_key(bracket, layout) for bracket in plan.keys]


def _key(bracket: tuple[str, ...], layout: Layout) -> Column:
    """A value that is the same for equal keys: that of the first attribute of a bracket that is not NULL. A whole
    number or a text as it is, if a bracket has no others; else a text."""
    kinds = [kind for name in bracket for kind in layout.types(name)]
    columns = [(F.col(f"c{number}"), layout.kinds[number]) for name in bracket for number in layout.numbers(name)]
    if not columns:
        return F.lit(None).cast("string")
    if all(isinstance(kind, IntegralType) for kind in kinds):
        plain = [column.cast("long") for column, _ in columns]
    elif all(isinstance(kind, StringType) for kind in kinds):
        plain = [column for column, _ in columns]
    else:
        plain = [_key_text(column, kind) for column, kind in columns]
    return plain[0] if len(plain) == 1 else F.coalesce(*plain)


def _key_text(column: Column, kind: DataType) -> Column:
    """Numbers as doubles, so that equal ones of different types have one text; 0.0 and -0.0 are equal, and NaN is NULL,
    as for the local engine. Dates and timestamps in microseconds. Different keys may share a text: a task partitions
    again."""
    match kind:
        case NumericType():
            number = column.cast("double")
            zeroed = F.when(number == 0, F.lit(0.0)).otherwise(number)
            return F.when(~F.isnan(number), zeroed).cast("string")
        case DateType() | TimestampType() | TimestampNTZType():
            time = nanoseconds(column, kind)
            assert time is not None
            return time.cast("string")
    return column.cast("string")
