"""Streams from DataFrames of quads, in batch and as streams that go on.

A row is a triple of an event: columns `stream` (the IRI or the name that the query has for it), `time` (a timestamp, a
number in `time_unit`, or the text of an xsd:dateTime), `graph` (or null), `subject`, `predicate` and `object`, terms in
N-Triples form. Rows of equal stream, time and graph are one event. `stream` may be left out where each stream has a
DataFrame of its own, `{name: frame, …}`; rows of streams that the query does not read are passed over.

A DataFrame has no order but that of its times: nothing is late in a batch, and events of equal time stand in the order
of the FROM clause, then of their graphs' names. In a stream an event is late only behind what came in earlier batches,
and its rows must come in one batch: send a message for each event, and take it apart with `parse_rdf`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    CharType,
    DateType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.time import parse_time
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.opened import Streams as Files
from spaseq.language.runtime.opened import by_iri
from spaseq.rdf import StreamOptions
from spaseq.spark.ingest.clock import nanoseconds
from spaseq.spark.session.failures import carried
from spaseq.spark.session.tables import QUADS, spark_schema, with_plain_names

Streams: TypeAlias = Files | DataFrame | Mapping[str, DataFrame]
"""What a query reads: files by stream name, or DataFrames of quads."""

_TERMS: Final = tuple(QUADS.names[2:])
_PLACE: Final = tuple(QUADS.names[:3])
_TEXTS: Final = (StringType, CharType, VarcharType, BinaryType)
_TIMES: Final = (*_TEXTS, NumericType, TimestampType, TimestampNTZType, DateType)
NAME: Final = "<DataFrame>"
"""The source of events, in errors."""


@dataclass(frozen=True, slots=True)
class Frames:
    """`frames`: each with a column `stream`. `iris`: of the query's streams, in order; `numbers`: by IRI and name."""

    frames: tuple[DataFrame, ...]
    iris: tuple[str, ...]
    numbers: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.iris)


def is_frames(streams: Streams) -> bool:
    """Whether streams are DataFrames. OptionError where some are and some are not."""
    if isinstance(streams, DataFrame):
        return True
    if not isinstance(streams, Mapping):
        raise OptionError("the streams are neither a DataFrame nor given by name", '{"NAME": FILES-OR-DATAFRAME, …}')
    kinds = {isinstance(value, DataFrame) for value in streams.values()}
    if len(kinds) > 1:
        raise OptionError("some streams are DataFrames and some are files", "give all of them in one way")
    return kinds == {True}


def frame_options(options: StreamOptions) -> StreamOptions:
    """The options for DataFrames. OptionError for those that are about files."""
    for name in ("event_by", "time", "format"):
        if getattr(options, name) is not None:
            raise OptionError(
                f"{name} with DataFrames: their rows say what is an event, and when", "leave it out, for DataFrames"
            )
    return replace(options, time="time")


def streams_of_frames(query: CompiledQuery, streams: Any) -> Frames:
    """The DataFrames of a query's streams. OptionError for a stream that is unknown or missing; EventError for a
    column that is."""
    iris = tuple(iri for _, iri in query.streams)
    numbers = {name: i for i, (key, iri) in enumerate(query.streams) for name in (key, iri, f"<{iri}>")}
    if isinstance(streams, DataFrame):
        return Frames((with_columns(streams, QUADS.names, "events"),), iris, numbers)
    given = by_iri(streams, query.checked)
    frames = [with_columns(given[iri], QUADS.names[1:], "events").withColumn("stream", F.lit(iri)) for iri in iris]
    return Frames(tuple(frames), iris, numbers)


def with_columns(frame: DataFrame, wanted: Sequence[str], what: str) -> DataFrame:
    """The columns that count, whatever the others are: `time` of a type that times have, the others texts. EventError
    for one that is not there once, or of another type."""
    for name in wanted:
        if frame.columns.count(name) != 1:
            problem = f"{'no column' if name not in frame.columns else 'more than one column'} {name}"
            raise EventError(
                f"{problem} in the DataFrame of {what}",
                attribute=name,
                hint=f"it has {', '.join(frame.columns)}; there must be {', '.join(wanted)}",
            )
    fields = dict(zip(frame.columns, frame.schema.fields, strict=True))
    for name in wanted:
        kind, kinds = fields[name].dataType, _TIMES if name == "time" else _TEXTS
        if not isinstance(kind, (NullType, *kinds)):
            meant = "a timestamp, a date, a number or a text" if name == "time" else "a text"
            raise EventError(
                f"column {name} in the DataFrame of {what} is {kind.simpleString()}, where {meant} is wanted",
                attribute=name,
                hint=f'frame.withColumn("{name}", …)' + ("" if name == "time" else ": a term in N-Triples form"),
            )
    return with_plain_names(frame).select(*wanted)  # so that names are told apart by case, as here


def quads_in_order(given: Frames, options: StreamOptions, tasks: int) -> DataFrame:
    """The QUADS of DataFrames, those of an event together, events in order of their streams and times."""
    if any(frame.isStreaming for frame in given.frames):
        raise OptionError("a streaming DataFrame in a batch", "spaseq.spark.start(…) runs a query over streams")
    return _quads(given, options).repartition(tasks, *_PLACE).sortWithinPartitions(*QUADS.names)


def quads_of_streams(given: Frames, options: StreamOptions, tasks: int) -> DataFrame:
    """The QUADS of streaming DataFrames, those of an event in one task, in no order."""
    if not all(frame.isStreaming for frame in given.frames):
        raise OptionError("a DataFrame that is no stream", "spaseq.spark.run(…) runs a query over what is there")
    return _quads(given, options).repartition(tasks, *_PLACE)


def times_of(given: Frames, options: StreamOptions) -> DataFrame:
    """The times of all events, as `time`, a row for each quad."""
    return _quads(given, options).select("time")


# -- rows to quads


def _quads(given: Frames, options: StreamOptions) -> DataFrame:
    return reduce(DataFrame.unionByName, [_timed(frame, given.numbers, options) for frame in given.frames])


def _timed(frame: DataFrame, numbers: Mapping[str, int], options: StreamOptions) -> DataFrame:
    """The rows of the query's streams, with the numbers of these and times in ns. NULL for a time that cannot be read,
    if such rows are dropped."""
    name = F.col("stream").cast("string")
    unread = F.col("subject").isNull() & F.col("predicate").isNull()  # of whatever stream it would have been
    known = F.create_map(*(F.lit(each) for pair in numbers.items() for each in pair))
    number = F.try_element_at(known, name).alias("stream")
    terms = [F.col(term).cast("string").alias(term) for term in _TERMS]
    kept = frame.where(name.isin(list(numbers)) | unread)
    time = nanoseconds(F.col("time"), frame.schema["time"].dataType, options.unit)
    if time is not None:
        return kept.select(number, time.alias("time"), *terms)
    given = kept.select(number, F.col("time").cast("string").alias("time"), *terms)
    return given.mapInArrow(carried(_read_times, options.unit, options.malformed == "drop"), spark_schema(QUADS))


def _read_times(unit: str, drop: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        unread = batch.column("subject").is_null().to_pylist()  # what is said of a message comes before its time
        texts = zip(batch.column("time").to_pylist(), unread, strict=True)
        times = [_time(text, unit, drop or no_triple) for text, no_triple in texts]
        columns = [pa.array(times, pa.int64()) if name == "time" else batch.column(name) for name in QUADS.names]
        yield pa.record_batch(columns, schema=QUADS)


@lru_cache(1 << 14)
def _time(text: str | None, unit: str, drop: bool) -> int | None:
    if text is None:
        return None
    try:
        return parse_time(text, unit)
    except EventError as error:
        if drop:
            return None
        raise EventError(error.problem, source=NAME, attribute="time", hint=error.hint) from None
