"""SPAseq queries over streams that go on: Spark Structured Streaming around the same engine.

files ─► events ─► parcels ─► an evaluation for each bucket ─► matches ─► sink
         datasource  parcels    processor, evaluation, clock
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.core.engine import Window
from spaseq.core.events.options import Duration
from spaseq.core.files.places import whole_name
from spaseq.gpm import Knowledge
from spaseq.language.query import Query, compile_query
from spaseq.language.runtime.opened import stream_sources
from spaseq.language.runtime.unmatched import Input
from spaseq.rdf import ARRIVAL, StreamOptions, StreamSource
from spaseq.spark.batch.form import MatchRows, PlacedRows
from spaseq.spark.batch.job import prepared
from spaseq.spark.batch.quads import time_type
from spaseq.spark.ingest.files import Reading, for_tasks, parts_of_files, settled_by_names
from spaseq.spark.ingest.frames import Frames, Streams, frame_options, is_frames, quads_of_streams, streams_of_frames
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.session.connecting import task_count
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.options import QueryOptions, QueryWords
from spaseq.spark.session.spreading import spread
from spaseq.spark.session.tables import LATE_GRAPHS
from spaseq.spark.streaming.bucket_messages import Cut, send_parcels
from spaseq.spark.streaming.evaluation import GraphEvaluation
from spaseq.spark.streaming.knowledge_join import attach_knowledge
from spaseq.spark.streaming.processor import Outcome, evaluated
from spaseq.spark.streaming.starting import LateSink, Place, Sink, begin, use_rocks
from spaseq.spark.streaming.watermark import Silence


class StreamWords(QueryWords, total=False):
    """Keywords of `stream_matches`, without `format`."""

    reading: Reading | None
    tasks: int | None
    buckets: int | None
    terms: str
    idle: Duration
    clock: Duration | None


class StartWords(StreamWords, total=False):
    """Keywords of `start`: those of `stream_matches`, and the places of late events."""

    late_output: str | None
    foreach_late: Callable[[DataFrame, int], None] | None


def start(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    checkpoint: str,
    output: str | None = None,
    format: str = "parquet",
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    every: str | None = None,
    available_now: bool = False,
    sink: Mapping[str, str] | None = None,
    **words: Unpack[StartWords],
) -> StreamingQuery:
    """Begin, or go on with, a query over streams; what it finds goes to files or to a function.

    Args:
        checkpoint: a folder for what must survive a restart. The same folder goes on with the same query.

    `query`, `streams`, `kb` and `words` are as for `stream_matches`, whose rows are found. `output`, `format`,
    `foreach_batch`, `every` and `available_now` say where the matches go, and how often: see `Sink`, whose `settings`
    are given as `sink`.

    `late_output` is a folder, or a topic, for the graphs that come too late and are dropped, and `foreach_late` a
    function that gets those of each batch, as of `start_tuples`. A row has the IRI of its `stream`, `time` (ns), the
    name of its `graph`, and `triples`, a list of texts of N-Triples. `source` and `record` are its file and line, NULL
    in a DataFrame, and `late_by` is the ns to the time that its stream had come to. For this all triples are read.

    Raises OptionError where the checkpoint or the output cannot be used. Errors while it runs stop the query:
    `wait` raises them as they are.
    """
    place = Place.of(spark, checkpoint)
    tasks = place.tasks(spark, words.get("tasks"))
    buckets = words.get("buckets") or place.buckets(tasks)
    given: dict[str, Any] = {**words, "tasks": tasks, "buckets": buckets}
    late = LateSink.of(given.pop("late_output", None), given.pop("foreach_late", None), words.get("late"))
    compiled = compile_query(query) if isinstance(query, str) else query
    frame, outcome = _stream(compiled, spark, streams, kb, late_rows=late is not None, **given)
    silence = Silence.of(words.get("idle", 0), words.get("clock"))
    where = Sink(output, format, foreach_batch, every, available_now, sink or {}, outcome, late).with_clock(silence)
    identity = {**_identity(compiled, streams, words), **silence.identity, "buckets": buckets}
    return begin(frame, where, place, tasks, identity)


def _identity(query: Query, streams: Streams, words: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same wherever a checkpoint is gone on from. Budgets, lateness, limits and `idle` may change."""
    settings = query.settings
    kept = ("event_by", "time", "time_unit", "ties", "interval", "entailment", "reference", "terms")
    options = words.get("options")
    given = {name: words.get(name, getattr(options, name, None)) for name in kept}
    return {
        "query": " ".join(query.text.split()),
        "settings": f"variants={settings.variants}, negated_conditions={settings.negated_conditions}, "
        f"forget_keys_after={settings.forget_keys_after}",
        "options": {name: str(value) for name, value in given.items() if value not in (None, False)},
        "sources": sources_of(query, streams),
        **query.compiled.own.identity(query.compiled.functions),
    }


def stream_matches(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    reading: Reading | None = None,
    tasks: int | None = None,
    buckets: int | None = None,
    terms: str = "text",
    idle: Duration = 0,
    clock: Duration | None = None,
    **words: Unpack[QueryWords],
) -> DataFrame:
    """The matches as a streaming DataFrame, for a sink of one's own: start, end, positions, time, times, and a column
    for each variable, as of `spaseq.spark.run`; `times` (list of long, ns) are those of the positions.

    Args:
        streams: files, named by globs, that come and perhaps grow, or a streaming DataFrame
            (`spaseq.spark.ingest.frames`).
        reading: how files come, and limits.
        tasks: how many tasks read.
        buckets: how many hold state, where the query may be cut; by default as many. `start` keeps to the number of the
            checkpoint's first run.
        terms: the form of terms, as for `spaseq.spark.match`.
        idle: a stream that brought nothing for so long ("30s") no longer holds the others up. The clock is that of the
            batches: while no stream brings anything, nothing is completed.
        clock: in a batch that brings nothing, time goes on to that of the batch, so much earlier ("5s"). Batches then
            begin at each trigger, so give the writer one: `trigger(processingTime="1 second")`.

    `query`, `kb`, `format` and `words` are as for `spaseq.spark.run`.

    The session must have Spark's RocksDB state store (`start` sees to it).
    """
    query = compile_query(query) if isinstance(query, str) else query
    own: dict[str, Any] = {"format": format, "reading": reading, "tasks": tasks, "buckets": buckets, "terms": terms}
    return _stream(query, spark, streams, kb, **own, idle=idle, clock=clock, **words)[0]


def _stream(
    query: Query, spark: SparkSession, streams: Streams, kb: Any, *, format: str | None = None,
    reading: Reading | None = None, tasks: int | None = None, buckets: int | None = None, terms: str = "text",
    late_rows: bool = False, **words: Any,
) -> tuple[DataFrame, Outcome]:  # fmt: skip
    """The streaming DataFrame of `stream_matches`, and its columns. `late_rows`: late events are rows in it, too."""
    silence = Silence.of(words.pop("idle", 0), words.pop("clock", None))
    options = QueryOptions.of(format, **words).of_query(query)
    if late_rows:
        options = replace(options, events=replace(options.events, late="drop"))
    how = _How(reading or Reading(), tasks, buckets, silence, late_rows)
    return _found(query, spark, streams, kb, options, PlacedRows(terms), how)


def stream_rows_over_quads(
    query: Query, quads: DataFrame | Mapping[str, DataFrame], kb: Any, options: QueryOptions, *,
    partitions: int | None, silence: Silence, terms: str,
) -> DataFrame:  # fmt: skip
    """The rows of the matches as a streaming DataFrame, of the columns of batches. Arguments: those of
    `spaseq.spark.match`."""
    given = streams_of_frames(query.compiled, quads)
    options = options.of_query(query)
    shape = MatchRows(terms, time_type(given), options.events.unit, positions=False)
    spark = given.frames[0].sparkSession
    use_rocks(spark)
    return _found(query, spark, quads, kb, options, shape, _How(Reading(), partitions, None, silence))[0]


@dataclass(frozen=True, slots=True)
class _How:
    """The words of a stream: `reading`, `tasks` and `buckets` as of `stream_matches`, `silence` as of `Clock`. `late`:
    late events are rows."""

    reading: Reading
    tasks: int | None
    buckets: int | None
    silence: Silence
    late: bool = False


def _found(
    query: Query, spark: SparkSession, streams: Streams, kb: Any, options: QueryOptions, shape: PlacedRows | MatchRows,
    how: _How,
) -> tuple[DataFrame, Outcome]:  # fmt: skip
    """The rows of the matches, in a shape, and their columns."""
    count = how.tasks or task_count(spark)
    text, layout, graphs, sides, _ = prepared(spark, query, kb, options)
    feeds: Frames | list[StreamSource]
    reader: QuadReader | None = None
    if is_frames(streams):
        settled = frame_options(options.events)
        feeds = given = streams_of_frames(query.compiled, streams)
        events, reader = quads_of_streams(given, settled, count), QuadReader(given.iris, settled.malformed)
    else:
        feeds = sources = for_tasks(spark, stream_sources(query.checked, streams))
        settled = settled_by_names(options.events, sources)
        Input(sources, options.events, settled, query.compiled.timed).check()
        events = parts_of_files(spark, sources, settled, how.reading, count)
    cut = _cut(query, layout, settled, how.buckets or count)
    parcels = send_parcels(events, text, layout, cut, graphs, reader, how.late)
    if layout.joined:
        parcels = attach_knowledge(parcels, text, layout, cut, sides, count)
    make = partial(
        GraphEvaluation, text, layout, settled, len(feeds), shape, loose=is_frames(streams),
        silence=how.silence, buckets=len(cut.buckets),
    )  # fmt: skip
    timed = how.silence.behind is not None
    outcome = Outcome(shape.table(query.variables), LATE_GRAPHS if how.late else None)
    return evaluated(parcels, make, outcome, cut.buckets[0], timed=timed), outcome


def sources_of(query: Query, streams: Streams) -> dict[str, Any]:
    """Of each stream its files, by their whole names, or the columns of its DataFrame."""
    if isinstance(streams, DataFrame):
        return {"": columns_of(streams)}
    if is_frames(streams):
        return {name: columns_of(frame) for name, frame in streams.items()}
    return {source.iri: list(map(whole_name, source.files)) for source in stream_sources(query.checked, streams)}


# -- its pieces


def columns_of(frame: DataFrame) -> str:
    """The columns of a DataFrame, as text."""
    return str(frame.schema.simpleString())


def _cut(query: Query, layout: Layout, options: StreamOptions, buckets: int) -> Cut:
    """The buckets of a query: so many where its windows or keys are separate, else one."""
    window = query.compiled.window(options.unit)
    merges = not set(query.checked.partition) <= set(query.variables)  # matches of several keys may be equal
    by_key = layout.by_key and not merges
    by_window = layout.by_window and options.time != ARRIVAL and not (layout.by_key and not by_key)
    if not (by_key or by_window):
        return Cut((0,), False, Window("none"))
    return Cut(tuple(spread(buckets)), by_key, window if by_window else Window("none"))
