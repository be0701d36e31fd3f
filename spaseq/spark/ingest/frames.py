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
from itertools import groupby, islice
from typing import Any, Final, TypeAlias
from zlib import crc32

import pyarrow as pa
from pyspark.sql import Column, DataFrame
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
from spaseq.language.runtime.opened import named
from spaseq.rdf import Counters, StreamOptions
from spaseq.spark.ingest.terms import Keys, keys_of_lines, lines_of_terms
from spaseq.spark.ingest.time_ranges import rows_of
from spaseq.spark.ingest.told import UNREADABLE, Told
from spaseq.spark.session.failures import carried
from spaseq.spark.session.tables import EVENTS, QUADS, batch_of, spark_schema, with_plain_names

Streams: TypeAlias = Files | DataFrame | Mapping[str, DataFrame]
"""What a query reads: files by stream name, or DataFrames of quads."""

_TERMS: Final = tuple(QUADS.names[2:])
_TEXTS: Final = (StringType, CharType, VarcharType, BinaryType)
_TIMES: Final = (*_TEXTS, NumericType, TimestampType, TimestampNTZType, DateType)
_DAY: Final = 86_400_000_000
_NAME: Final = "<DataFrame>"
_MALFORMED: Final = -1
"""In place of a stream's number: the row's `time` says how many rows were left out."""


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
    given = named(streams, query.checked)
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


def ordered_events(given: Frames, options: StreamOptions, tasks: int) -> DataFrame:
    """The graph events (EVENTS) of DataFrames, those of a stream in one task together."""
    if any(frame.isStreaming for frame in given.frames):
        raise OptionError("a streaming DataFrame in a batch", "spaseq.spark.start(…) runs a query over streams")
    quads = _quads(given, options).repartition(tasks, "stream", "time", "graph")
    ordered = quads.sortWithinPartitions("stream", "time", "graph")
    return ordered.mapInArrow(carried(_event_rows, given.iris, True), spark_schema(EVENTS))


def times_of(given: Frames, options: StreamOptions) -> DataFrame:
    """The times of all events, as `time`, a row for each quad."""
    picked = reduce(DataFrame.unionByName, [_picked(frame, given.numbers).select("time") for frame in given.frames])
    return picked.mapInArrow(carried(_read_times, options.unit), "time long")


def _read_times(unit: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        times = [_time(text, unit) for text in batch.column("time").to_pylist()]
        yield pa.record_batch([pa.array(times, pa.int64())], names=["time"])


def event_rows(given: Frames, options: StreamOptions, tasks: int) -> DataFrame:
    """The same of streaming DataFrames, in no order."""
    if not all(frame.isStreaming for frame in given.frames):
        raise OptionError("a DataFrame that is no stream", "spaseq.spark.run(…) runs a query over what is there")
    quads = _quads(given, options).repartition(tasks, "stream", "time", "graph")
    return quads.mapInArrow(carried(_event_rows, given.iris, False), spark_schema(EVENTS))


# -- rows to quads


@dataclass(frozen=True, slots=True)
class _Read:
    numbers: Mapping[str, int]
    unit: str
    drop: bool


def _quads(given: Frames, options: StreamOptions) -> DataFrame:
    job = _Read(given.numbers, options.unit, options.malformed == "drop")
    picked = [_picked(frame, given.numbers) for frame in given.frames]
    return reduce(DataFrame.unionByName, picked).mapInArrow(carried(_read, job), spark_schema(QUADS))


def _picked(frame: DataFrame, numbers: Mapping[str, int]) -> DataFrame:
    """The columns that count, all as texts; a timestamp as microseconds behind `@`."""
    kind = frame.schema["time"].dataType
    time: Column = F.col("time").cast("string")
    if isinstance(kind, TimestampType):
        time = F.concat(F.lit("@"), F.unix_micros("time").cast("string"))
    elif isinstance(kind, TimestampNTZType):  # as a text it is what it is in every zone of a session: one of UTC
        time = F.replace(time, F.lit(" "), F.lit("T"))
    elif isinstance(kind, DateType):
        time = F.concat(F.lit("@"), (F.unix_date("time") * F.lit(_DAY)).cast("string"))
    terms = (F.col(name).cast("string").alias(name) for name in _TERMS)
    unread = F.col("subject").isNull() & F.col("predicate").isNull()  # of whatever stream it would have been
    return frame.where(F.col("stream").isin(list(numbers)) | unread).select("stream", time.alias("time"), *terms)


def _read(job: _Read, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = list(rows_of([batch]))
        try:
            found, bad = _parsed(job, rows), 0
        except EventError:
            if not job.drop:
                raise
            found, bad = _readable(job, rows)
        if bad:
            found.append((_MALFORMED, bad, None, None, None, None))
        if found:
            yield batch_of(QUADS, found)


def _readable(job: _Read, rows: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], int]:
    """The rows that can be read, and how many cannot."""
    found: list[tuple[Any, ...]] = []
    for row in rows:
        try:
            found += _parsed(job, [row])
        except EventError:
            continue
    return found, len(rows) - len(found)


def _parsed(job: _Read, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of texts as quads: the stream's number, the time in ns, keys of terms."""
    for _, _, _, subject, predicate, said in rows:
        if subject is None and predicate is None and said is not None:  # as `parse_rdf` tells it
            raise EventError(f"a message cannot be read: {said}", source=_NAME, hint=UNREADABLE)
    lines = list(lines_of_terms(((s, p, o, g) for _, _, g, s, p, o in rows), _NAME))
    keys = list(keys_of_lines(lines, _NAME, "nq"))
    if len(keys) != len(rows):
        raise EventError("a row is no triple", source=_NAME, hint=f"of {lines[0]} and those behind it")
    return [_quad(job, row, key) for row, key in zip(rows, keys, strict=True)]


def _quad(job: _Read, row: tuple[Any, ...], keys: Keys) -> tuple[Any, ...]:
    stream, time, graph, *_ = row
    s, p, o, g, _ = keys
    if (g is None) != (graph is None):
        raise EventError("a row has more than one term in a column", source=_NAME, hint=f"the row is {row}")
    return job.numbers[stream], _time(time, job.unit), g, s, p, o


@lru_cache(1 << 14)
def _time(text: str | None, unit: str) -> int:
    if text is None:
        raise EventError("an event has no time", source=_NAME, attribute="time")
    try:
        return parse_time(text[1:], "us") if text.startswith("@") else parse_time(text, unit)
    except EventError as error:
        raise EventError(error.problem, source=_NAME, attribute="time", hint=error.hint) from None


# -- quads to events


@dataclass(frozen=True, slots=True)
class _Event:
    stream: int
    time: int
    graph: str | None
    terms: list[str]


def _events(rows: Iterable[tuple[Any, ...]], counters: Counters) -> Iterator[_Event]:
    """The events of rows that come in order; what was left out is counted."""
    for (stream, time, graph), own in groupby(rows, key=lambda row: row[:3]):
        if stream == _MALFORMED:
            counters.malformed += time * sum(1 for _ in own)
            continue
        triples = sorted({row[3:] for row in own})
        counters.events += 1
        counters.triples += len(triples)
        scope = f"_:f{crc32(f'{stream} {time} {graph}'.encode()):08x}b"
        yield _Event(stream, time, graph, _scoped([term for triple in triples for term in triple], scope))


def _scoped(terms: list[str], scope: str) -> list[str]:
    """The terms, blank nodes under labels of their event's own."""
    if not any(term.startswith("_:") for term in terms):
        return terms
    labels: dict[str, str] = {}
    return [labels.setdefault(term, f"{scope}{len(labels)}") if term.startswith("_:") else term for term in terms]


_ROWS: Final = 5_000


def _event_rows(iris: Sequence[str], ordered: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events (EVENTS) of quads, and what was counted. The quads come in order, or, in a batch of a stream, are sorted
    here."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    counters = Counters()
    quads = rows_of(batches)
    if not ordered:
        quads = iter(sorted(quads, key=lambda row: (row[0], row[1], row[2] or "")))
    events = enumerate(_events(quads, counters), 1)
    while held := list(islice(events, _ROWS)):
        rows = [(e.stream, task, 0, iris[e.stream], e.time, _NAME, n, e.graph, e.terms, None) for n, e in held]
        yield batch_of(EVENTS, rows)
    if ordered or counters.malformed:  # a stream counts its events itself
        told = Told(counters, 0).row()
        yield batch_of(EVENTS, [(0, task, 1, iris[0], None, _NAME, None, None, None, told)])
