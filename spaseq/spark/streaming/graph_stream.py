"""SPAseq queries over streams that go on: Spark Structured Streaming around the same engine.

    files ─► events ─► parcels ─► an evaluation for each bucket ─► matches ─► sink
             datasource  parcels    processor, evaluation, clock

Spark keeps the offsets of the sources, the state of the buckets and what the sink has in one checkpoint, so a query
that is killed and started again goes on where it was, and into file sinks each match goes exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Unpack

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import ArrayType

from spaseq.core.engine import Window
from spaseq.core.errors import OptionError
from spaseq.core.events.options import length_of
from spaseq.core.events.places import whole_name
from spaseq.gpm import Knowledge
from spaseq.language.query import Query, compile_query
from spaseq.language.results.solutions import match_table
from spaseq.language.runtime.opened import stream_sources
from spaseq.language.runtime.unmatched import Input
from spaseq.rdf import ARRIVAL, StreamOptions, StreamSource
from spaseq.spark.batch.job import prepared
from spaseq.spark.ingest.files import Reading, for_tasks, parts_of_files, settled_by_names
from spaseq.spark.ingest.frames import Frames, Streams, event_rows, frame_options, is_frames, streams_of_frames
from spaseq.spark.session.connecting import is_connect, task_count
from spaseq.spark.session.failures import carried_batches, clear_errors
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.options import QueryOptions, QueryWords
from spaseq.spark.session.spreading import spread
from spaseq.spark.streaming.bucket_messages import Cut, send_parcels
from spaseq.spark.streaming.checkpoint import check_folder, check_note, file_manager, locked, started, unusable
from spaseq.spark.streaming.evaluation import GraphEvaluation, graph_rows
from spaseq.spark.streaming.knowledge_join import attach_knowledge
from spaseq.spark.streaming.processor import COUNTERS, evaluated

__all__ = ["Reading", "Sink", "begin", "columns_of", "progress", "start", "stream_matches", "wait"]

_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_KAFKA: Final = "kafka"
_CONFIGURATION: Final = {
    "spark.sql.streaming.stateStore.providerClass": _ROCKS,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


class StreamWords(QueryWords, total=False):
    """Keywords of `stream_matches`, without `format`."""

    reading: Reading | None
    tasks: int | None
    keys: bool
    idle: str | None


@dataclass(frozen=True, slots=True)
class Sink:
    """Where the matches go, and how often.

    * `output`, `format`: a folder for files of `format` (parquet, json, csv, orc), each match in it exactly once (read
      it through Spark, which knows which files count). In CSV a list is JSON.
    * Or `foreach_batch(frame, number)`: see Spark's `foreachBatch`; a batch may come again after a failure, with the
      same number and the same rows.
    * Or `format="kafka"`, `output` a topic: each match is a message of JSON, its key a digest of it. After a failure
      Kafka may be given the matches of a batch again, with the same keys.
    * `settings`: what else Spark's writer of the format is told, as `kafka.bootstrap.servers`.
    * `every`: begin a batch so often ("10 seconds"); else at once after the one before. `available_now`: read what is
      there, in as many batches as the limits ask for, and stop.
    """

    output: str | None
    format: str
    foreach_batch: Callable[[DataFrame, int], None] | None
    every: str | None
    available_now: bool
    settings: Mapping[str, str]

    @property
    def folder(self) -> str | None:
        """Where files go."""
        return None if self.format == _KAFKA else self.output


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
    **words: Unpack[StreamWords],
) -> StreamingQuery:
    """Begin, or go on with, a query over streams; what it finds goes to files or to a function.

    Args:
        checkpoint: a folder for what must survive a restart. The same folder goes on with the same query.

    `query`, `streams`, `kb` and `words` are as for `stream_matches`, whose rows are found. `output`, `format`,
    `foreach_batch`, `every` and `available_now` say where the matches go, and how often: see `Sink`, whose `settings`
    are given as `sink`.

    Raises OptionError where the checkpoint or the output cannot be used. Errors while it runs stop the query:
    `wait` raises them as they are.
    """
    frame = stream_matches(query, spark, streams, kb, **words)
    compiled = compile_query(query) if isinstance(query, str) else query
    where = Sink(output, format, foreach_batch, every, available_now, sink or {})
    return begin(frame, where, checkpoint, words.get("tasks"), _identity(compiled, streams, words))


def _identity(query: Query, streams: Streams, words: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same wherever a checkpoint is gone on from. Budgets, lateness, limits and `idle` may change."""
    settings = query.settings
    kept = ("event_by", "time", "time_unit", "ties", "interval", "entailment", "reference", "keys")
    options = words.get("options")
    given = {name: words.get(name, getattr(options, name, None)) for name in kept}
    return {
        "query": " ".join(query.text.split()),
        "settings": f"variants={settings.variants}, negated_conditions={settings.negated_conditions}, "
        f"forget_keys_after={settings.forget_keys_after}",
        "options": {name: str(value) for name, value in given.items() if value not in (None, False)},
        "sources": sources_of(query, streams),
    }


def begin(
    frame: DataFrame, sink: Sink, checkpoint: str, tasks: int | None, identity: Mapping[str, Any]
) -> StreamingQuery:
    """Start what a streaming DataFrame of matches says. `identity`: what it is of. See `start`."""
    if not is_connect(frame.sparkSession):  # as this process names them: Java may stand in another folder
        checkpoint = whole_name(checkpoint)
        sink = sink if sink.folder is None else replace(sink, output=whole_name(sink.folder))
    output, format = sink.output, sink.format
    if (output is None) == (sink.foreach_batch is None):
        raise OptionError("where do the matches go?", "give output=FOLDER or foreach_batch=FUNCTION, one of them")
    spark = frame.sparkSession
    if not is_connect(spark):
        check_folder("checkpoint", checkpoint)
    count = tasks or task_count(spark)
    if format == "csv":  # it has no lists
        lists = {field.name for field in frame.schema if isinstance(field.dataType, ArrayType)}
        frame = frame.select(*(F.to_json(name).alias(name) if name in lists else name for name in frame.columns))
    if format == _KAFKA:
        value = F.to_json(F.struct(*frame.columns))
        frame = frame.select(F.md5(value).alias("key"), value.alias("value"))
    writer = frame.writeStream.option("checkpointLocation", checkpoint).outputMode("append")
    if output is not None:
        if sink.folder is not None and not is_connect(spark):
            check_folder("output", output)
        writer = writer.format(format).options(**sink.settings)
        writer = writer.option("topic" if sink.folder is None else "path", output)
    if sink.foreach_batch is not None:
        writer = writer.foreachBatch(carried_batches(sink.foreach_batch, unusable))
    with started(checkpoint, output):
        files = file_manager(spark, [checkpoint, *([] if sink.folder is None else [sink.folder])])
    with _configured(spark, count, files), started(checkpoint, output), clear_errors():
        if sink.available_now:
            writer = writer.trigger(availableNow=True)
        elif sink.every is not None:
            writer = writer.trigger(processingTime=sink.every)
        return locked(spark, checkpoint, partial(_begun, spark, writer, checkpoint, {**identity, "tasks": count}))


def _begun(
    spark: SparkSession, writer: DataStreamWriter, checkpoint: str, identity: Mapping[str, Any]
) -> StreamingQuery:
    """The query, started once the checkpoint is known to be its own."""
    check_note(spark, checkpoint, identity)
    return writer.start()


def stream_matches(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    reading: Reading | None = None,
    tasks: int | None = None,
    keys: bool = False,
    idle: str | None = None,
    **words: Unpack[QueryWords],
) -> DataFrame:
    """The matches as a streaming DataFrame, for a sink of one's own: start, end, positions, time, times, and a column
    for each variable, as of `spaseq.spark.run`; `times` (list of long, ns) are those of the positions.

    Args:
        streams: files, named by globs, that come and perhaps grow, or a streaming DataFrame
            (`spaseq.spark.ingest.frames`).
        reading: how files come, and limits.
        tasks: how many tasks read, and how many buckets hold state, where the query may be cut; fixed by the
            checkpoint's first run.
        keys: terms as `spaseq.rdf.term_key` writes them, from which they can be made again, not as N-Triples.
        idle: a stream that brought nothing for so long ("30s") no longer holds the others up. The clock is that of the
            batches: while no stream brings anything, nothing is completed.

    `query`, `kb`, `format` and `words` are as for `spaseq.spark.run`.

    The session must have Spark's RocksDB state store (`start` sees to it).
    """
    query = compile_query(query) if isinstance(query, str) else query
    options = QueryOptions.of(format, **words).of_query(query)
    count = tasks or task_count(spark)
    text, layout, graphs, sides, _ = prepared(spark, query, kb, options)
    feeds: Frames | list[StreamSource]
    if is_frames(streams):
        settled = frame_options(options.events)
        feeds = given = streams_of_frames(query.compiled, streams)
        events = event_rows(given, settled, count)
    else:
        feeds = sources = for_tasks(spark, stream_sources(query.checked, streams))
        settled = settled_by_names(options.events, sources)
        Input(sources, options.events, settled, query.compiled.timed).check()
        events = parts_of_files(spark, sources, settled, reading or Reading(), count)
    cut = _cut(query, layout, settled, count)
    parcels = send_parcels(events, text, layout, cut, graphs, parts=not is_frames(streams))
    if layout.joined:
        parcels = attach_knowledge(parcels, text, layout, cut, sides, count)
    names = match_table([], query.variables).schema.names[4:]
    matches = graph_rows(len(names))
    quiet = 0 if idle is None else length_of("idle", idle)
    make = partial(GraphEvaluation, text, layout, settled, len(feeds), keys, loose=is_frames(streams), idle=quiet)
    found = evaluated(parcels, make, matches, cut.buckets[0])
    time = F.element_at("times", -1).alias("time")
    variables = [F.col(f"v{i}").alias(name) for i, name in enumerate(names)]
    return found.select("start", "end", "positions", time, "times", *variables)


def wait(query: StreamingQuery, timeout: float | None = None) -> bool:
    """Wait until the query has stopped, at most `timeout` seconds; whether it has. An error of ours comes out as
    itself."""
    try:
        with clear_errors():
            over = query.awaitTermination() is None if timeout is None else query.awaitTermination(timeout)
            return bool(over)
    except PySparkException as error:
        if (said := unusable(error)) is not None:
            raise said from None
        raise


def progress(query: StreamingQuery) -> dict[str, int]:
    """Totals since the query's first start, as of its last batch with data: `events`, `late` and `malformed` ones, and
    `matches`; what it holds now: `live_runs` and `state_bytes`. Empty before the first batch.

    Spark's own progress (`query.lastProgress`) has the same under `observedMetrics`. Spark Connect leaves their values
    out: there it is an OptionError.
    """
    if type(query).__module__.startswith("pyspark.sql.connect"):
        hint = "query.lastProgress has what Spark itself counts"
        raise OptionError("Spark Connect does not bring what a query of ours has counted", hint)
    for record in reversed(query.recentProgress):
        row = record.observedMetrics.get("spaseq") if hasattr(record, "observedMetrics") else None
        if row is not None and row["events"] is not None:
            return {name: row[name] for name in COUNTERS}
    return {}


def sources_of(query: Query, streams: Streams) -> dict[str, Any]:
    """Of each stream its files, by their whole names, or the columns of its DataFrame."""
    if isinstance(streams, DataFrame):
        return {"": columns_of(streams)}
    if is_frames(streams):
        return {name: columns_of(frame) for name, frame in streams.items()}
    return {source.iri: list(map(whole_name, source.files)) for source in stream_sources(query.checked, streams)}


def columns_of(frame: DataFrame) -> str:
    """The columns of a DataFrame, as text."""
    return str(frame.schema.simpleString())


# -- its pieces


def _cut(query: Query, layout: Layout, options: StreamOptions, tasks: int) -> Cut:
    """The buckets of a query: as many as tasks where its windows or keys are separate, else one."""
    window = query.compiled.window(options.unit)
    merges = not set(query.checked.partition) <= set(query.variables)  # matches of several keys may be equal
    by_key = layout.by_key and not merges
    by_window = layout.by_window and options.time != ARRIVAL and not (layout.by_key and not by_key)
    if not (by_key or by_window):
        return Cut((0,), False, Window("none"))
    return Cut(tuple(spread(tasks)), by_key, window if by_window else Window("none"))


@contextmanager
def _configured(spark: SparkSession, tasks: int, more: dict[str, str]) -> Iterator[None]:
    """While a query starts, the session has our state store, as many tasks as buckets, and `more`; then what it had."""
    wanted = _CONFIGURATION | {"spark.sql.shuffle.partitions": str(tasks)} | more
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)
