"""CEQL queries over streams of tuples: the same rows as in batches, buckets and a clock as for graphs.

The streams are streaming DataFrames from any of Spark's sources (files, Kafka, …). A DataFrame has no order but that of
its times. So a tuple is late only if it is more than the lateness behind what came in batches before its own. The
buckets are those of PARTITION BY, written or inferred; a query without keys has one. A bucket is sent its own tuples
and, of each task, the latest time that it read; so all buckets know alike how far the streams have come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.core.errors import EventError, OptionError, UnsupportedFeature
from spaseq.core.events import EventOptions, TupleWords
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import Duration, one_of
from spaseq.core.events.reorder import NEVER
from spaseq.core.events.streams import table_bytes, table_of_bytes
from spaseq.core.snapshot import decode, encode, expect, seal, unseal
from spaseq.rdf import StreamOptions
from spaseq.spark.session.failures import carried
from spaseq.spark.session.spreading import spread
from spaseq.spark.session.tables import PARCELS, batch_of, spark_schema
from spaseq.spark.streaming.processor import Outcome, evaluated
from spaseq.spark.streaming.starting import LateSink, Place, Sink, begin, use_rocks
from spaseq.spark.streaming.watermark import AWAKE, Clock, Silence
from spaseq.spark.tuples.frames import key_columns, one_frame
from spaseq.spark.tuples.match import Tuples, analyse, check_tasks
from spaseq.spark.tuples.plan import Plan, Tabular, TupleQuery, grouping_of, tuple_query
from spaseq.spark.tuples.rows import Job, as_spark, parts, row_table

_LOG: Final = logging.getLogger("spaseq.spark")
_STATE: Final = "tuples as they are read"
"""The form of a bucket's state. Another one needs another text here, so that older checkpoints are refused."""
_BUCKETS: Final = 32
"""The least number of buckets of a query with keys, so that tasks may become more.

PERF: they cost little. 20,000 tuples a batch, 2 tasks on a busy machine: 2.3 s with 2 buckets, 1.7 s with 32."""


class StreamWords(TupleWords, total=False):
    """Keywords of streams of tuples, besides those that read them."""

    tasks: int | None
    events: bool
    idle: Duration
    clock: Duration | None
    malformed: str


def start_tuples(
    query: TupleQuery | Tabular,
    tuples: Tuples,
    *,
    checkpoint: str,
    output: str | None = None,
    format: str = "parquet",
    foreach_batch: Callable[[DataFrame, int], None] | None = None,
    every: str | None = None,
    available_now: bool = False,
    sink: Mapping[str, str] | None = None,
    late_output: str | None = None,
    foreach_late: Callable[[DataFrame, int], None] | None = None,
    **words: Unpack[StreamWords],
) -> StreamingQuery:
    """Begin, or go on with, a query over streams of tuples.

    `query` is what `ceql.compile` gives, its `timed_out()`, or a `ceql.Network`. `tuples` is a streaming DataFrame, or
    one for each stream. `words` are as of `spaseq.spark.match`, whose rows are found. `tasks` is how many tasks hold
    state. It may be another number at each start; by default it is that of the last start, then the session's.

    A stream that brought nothing for `idle` ("30s", or ns) no longer holds the others up; with 0 it always does. With
    `clock="5s"` a batch that brings nothing lets time go on to that of the batch, so much earlier: absences are known
    on a silent stream. Batches then begin at each trigger, each second if `every` does not say it.

    `malformed` is for messages that `parse_json` could not read, and for tuples whose time cannot be read: "error", or
    "drop" them and count. The rest is as of `spaseq.spark.start`.

    `late_output` is a folder, or a topic, for the events that come too late and are dropped. A row has the columns of
    the event, `stream` if there are several, and `late_by`, the ns to the time that its stream had come to.
    `foreach_late` is a function that gets those of each batch, as `foreach_batch` gets the matches. With either, each
    batch of `output` and of `late_output` is a folder `batch=NUMBER` there, written anew if the batch is done again.

    The checkpoint goes on with the same query over the columns that it reads; others may come and go.
    """
    single: TupleQuery = tuple_query(query)
    one, names = _split(words)
    check_tasks("tasks", one["tasks"])
    options = EventOptions.parse(**names)
    late = LateSink.of(late_output, foreach_late, words.get("late"))
    if late is not None:
        options = replace(options, late="drop")
    named, job = analyse(single, tuples, options, events=one["events"], positions=False, late=late is not None)
    spark = next(iter(named.values())).sparkSession
    place = Place.of(spark, checkpoint)
    count = place.tasks(spark, one["tasks"])
    buckets = place.buckets(max(_BUCKETS, count))
    silence = Silence.of(one["idle"], one["clock"])
    frame = _rows(named, job, buckets, silence, one["malformed"])
    outcome = Outcome(job.schema, job.late)
    where = Sink(output, format, foreach_batch, every, available_now, sink or {}, outcome, late).with_clock(silence)
    identity = {**_identity(job), **silence.identity, "buckets": buckets}
    return begin(frame, where, place, count, identity)


def _split(words: StreamWords) -> tuple[dict[str, Any], TupleWords]:
    """The words of streams, all of them, and those that say how tuples are read."""
    own: dict[str, Any] = {"tasks": None, "events": False, "idle": 0, "clock": None, "malformed": "error"}
    names: Any = {word: value for word, value in words.items() if word not in own}
    return own | {word: value for word, value in words.items() if word in own}, names


def _identity(job: Job) -> dict[str, Any]:
    """The values that must be the same to go on from a checkpoint. Budgets, lateness and `idle` may change."""
    options, layout = job.options, job.layout
    kept = {**options.typing, "time": options.time, "time_unit": options.unit}
    sources = {
        name: {attribute: layout.kinds[number].simpleString() for attribute, number in sorted(own.items())}
        | ({} if kind is None else {f"time {clock}": kind.simpleString()})
        for name, own, clock, kind in zip(job.names, layout.streams, layout.clocks, layout.times, strict=True)
    }
    return {
        "query": " ".join(job.query.text.split()),
        "settings": job.query.identity.get("settings", ""),
        "options": {name: value for name, value in kept.items() if value is not None},
        "sources": sources,
        **job.query.compiled.own.identity(job.query.compiled.functions),
    }


def stream_rows(
    query: TupleQuery, tuples: Tuples, options: EventOptions, *, partitions: int | None, events: bool,
    silence: Silence, malformed: str,
) -> DataFrame:  # fmt: skip
    """The rows of the matches as a streaming DataFrame, of the columns of batches. Arguments: those of
    `spaseq.spark.match`, and of `start_tuples`.

    Rows come when every stream is past the end of their matches; an absence, when the watermark passes its end.
    """
    named, job = analyse(query, tuples, options, events=events, positions=False)
    spark = next(iter(named.values())).sparkSession
    use_rocks(spark)
    buckets, tasks = partitions or _BUCKETS, int(spark.conf.get("spark.sql.shuffle.partitions"))
    if tasks > buckets:
        _LOG.warning(
            f"a batch of this stream has {tasks} tasks for {buckets} buckets: before its first start, set "
            "spark.sql.shuffle.partitions to the number of cores"
        )
    return _rows(named, job, buckets, silence, malformed)


def _rows(named: Mapping[str, DataFrame], job: Job, count: int, silence: Silence, malformed: str) -> DataFrame:
    one_of("malformed", malformed, "error", "drop")
    grouping = grouping_of(job.query)
    if grouping is not None and grouping.key and grouping.length is None:
        hint = (
            "GROUP BY KEY, 1 HOUR gives the rows of each hour when it is over, and GROUP BY EVENT those of each event"
        )
        raise UnsupportedFeature(
            "GROUP BY KEY over a stream on Spark, which has no end: its rows come there", hint=hint
        )
    for name, frame in named.items():
        if not frame.isStreaming:
            raise OptionError(f"the stream {name or 'of events'} is no streaming DataFrame", "all are, or none")
    for clock, frame in zip(job.layout.clocks, named.values(), strict=True):
        if clock is None:
            raise OptionError(
                f"no column of times in the stream; there are: {', '.join(frame.columns)}",
                "time=COLUMN; in a stream without order there is no time from arrival",
            )
    plan = Plan.of(job.query)
    buckets = tuple(spread(count)) if plan.keys else (0,)
    whole = one_frame(list(named.values()), job.layout, job.options, drop=malformed == "drop")
    bucket = F.lit(0)
    if plan.keys:
        numbers = F.array(*map(F.lit, buckets))
        hashed = F.element_at(numbers, F.pmod(F.hash(*key_columns(plan, job.layout)), F.lit(len(buckets))) + 1)
        present = [key.isNotNull() for key in key_columns(plan, job.layout)]
        bucket = F.when(F.array_min(F.array(*present)), hashed)
    send = carried(_send, _Send(len(named), buckets, malformed == "drop"))
    parcels = whole.withColumn("bucket", bucket).mapInArrow(send, spark_schema(PARCELS))
    order = StreamOptions(time="time", ties="arrival", lateness=job.options.lateness, late=job.options.late)
    make = partial(TupleEvaluation, job, order, silence, len(buckets))
    return evaluated(parcels, make, Outcome(job.schema, job.late), buckets[0], timed=silence.behind is not None)


# -- the tasks


@dataclass(frozen=True, slots=True)
class _Send:
    feeds: int
    buckets: tuple[int, ...]
    drop: bool


def _send(job: _Send, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A parcel of each batch for each bucket that it has tuples of. Then one for every bucket with the latest time of
    each stream. That of the first bucket has the numbers of tuples that belong to none, and of those without a time."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    latest, loose, unread, part = [int(NEVER)] * job.feeds, 0, 0, 0
    for batch in batches:
        times = batch.column("time")
        if times.null_count:
            if not job.drop:
                raise EventError("this event has no time that can be read", source="<events>", hint='malformed="drop"')
            unread += times.null_count
            batch = batch.filter(times.is_valid())
        if not batch.num_rows:
            continue
        stamps = batch.column("time").to_numpy()
        feeds = np.zeros(len(stamps), np.int64) if job.feeds == 1 else batch.column("stream").to_numpy()
        for feed in np.unique(feeds).tolist():
            latest[feed] = max(latest[feed], int(stamps[feeds == feed].max()))
        buckets = batch.column("bucket")
        loose += buckets.null_count
        own = buckets.fill_null(-1).to_numpy()
        table = pa.Table.from_batches([batch.drop_columns(["bucket"])])
        sent = []
        for bucket in np.unique(own[buckets.is_valid().to_numpy(zero_copy_only=False)]).tolist():
            rows = np.flatnonzero(own == bucket)
            body = encode((None, table_bytes(table.take(pa.array(rows)))))
            sent.append((bucket, 0, task, 0, part, body))
        yield batch_of(PARCELS, sent)
        part += 1
    if part or unread:
        ends = [
            encode(((latest, loose, unread) if place == 0 else (latest, 0, 0), None))
            for place in range(len(job.buckets))
        ]
        yield batch_of(
            PARCELS, [(bucket, 0, task, 0, part, end) for bucket, end in zip(job.buckets, ends, strict=True)]
        )


# -- a bucket


class TupleEvaluation:
    """One bucket's evaluation, of BUCKETS: parcels of tuples in, the rows of `job` out. `silence`: as of `Clock`."""

    def __init__(self, job: Job, options: StreamOptions, silence: Silence = AWAKE, buckets: int = 1) -> None:
        self._job = job
        self._buckets = buckets
        feeds = len(self._job.names)
        self._clock = Clock(feeds, options, loose=True, silence=silence)
        self._matches = self._job.query.in_order(self._job.names, self._job.options, iso=self._job.iso)
        self._pending: list[pa.Table] = []
        self._counts = [0, 0, 0]
        self._late: list[pa.Table] = []

    def begin(self, now: int) -> None:
        """The next batch begins, at `now` (ns) by the clock."""
        self._late = []
        self._clock.begin_batch(now)

    def is_attached(self, body: bytes) -> bool:
        return False

    def take(self, feed: int, body: bytes) -> None:
        """The next parcel of a task. EventError for a late tuple."""
        told, rows = decode(body)
        if told is not None:
            latest, loose, unread = told
            for number, time in enumerate(latest):
                if time > NEVER:
                    self._clock.hear(number, time)
            self._counts[0] += loose
            self._counts[1] += unread
            return
        table = table_of_bytes(rows)
        times = table["time"].to_numpy()
        feeds = table["stream"].to_numpy() if "stream" in table.column_names else np.zeros(len(times), np.int32)
        late_by = np.zeros(len(times), np.int64)
        for number in np.unique(feeds).tolist():
            own = np.flatnonzero(feeds == number)
            late_by[own] = self._clock.judge(number, times[own], own + 1, "<events>")
        if late_by.any():
            self._tell_late(table, feeds, late_by)
            table = table.filter(pa.array(late_by == 0))
        if table.num_rows:
            self._pending.append(table)

    def _tell_late(self, table: pa.Table, feeds: np.ndarray, late_by: np.ndarray) -> None:
        """Note the late ones of some tuples, if they are rows of their own."""
        schema = self._job.late
        if schema is None:
            return
        for number in np.unique(feeds[late_by > 0]).tolist():
            which = np.flatnonzero((late_by > 0) & (feeds == number))
            own, rows = self._job.layout.streams[number], table.take(pa.array(which))
            columns = {
                name: rows[f"c{own[name]}"] if name in own else pa.nulls(len(which), kind)
                for name, kind in zip(schema.names, schema.types, strict=True)
            }
            columns["late_by"] = pa.array(late_by[which], pa.int64())
            if len(self._job.names) > 1:
                columns["stream"] = pa.array([self._job.names[number]] * len(which), pa.string())
            self._late.append(as_spark(pa.table(columns), schema))

    def late_rows(self) -> Iterator[pa.Table]:
        """The late tuples of this batch, of `Job.late`."""
        yield from self._late

    def pass_silence(self) -> None:
        """Nothing came in this batch: time goes on. `OptionError` if times are not of a clock."""
        self._clock.pass_silence(next((clock for clock in self._job.layout.clocks if clock is not None), None))

    @property
    def awaits(self) -> bool:
        """True if time alone may complete something."""
        return self._clock.awaits(self._matches.waits)

    def release(self) -> Iterator[pa.Table]:
        """The rows of the matches that are now complete."""
        self._clock.end_batch()
        mark = self._clock.watermark
        self._clock.complete()
        if mark is None:
            return
        ready = self._ready(mark)
        if ready is not None:
            yield from self._tables(self._matches.push(parts(self._job, ready)))
        yield from self._tables(self._matches.wait_until(mark))

    def _tables(self, found: Iterator[Any]) -> Iterator[pa.Table]:
        for matches in found:
            self._counts[2] += len(matches)
            yield row_table(self._job, matches)

    def _ready(self, mark: int) -> pa.Table | None:
        """The tuples before `mark`, in order; None if there are none. The others wait on."""
        if not self._pending:
            return None
        table = pa.concat_tables(self._pending)
        times = table["time"].to_numpy()
        ready = times < mark
        rest = np.flatnonzero(~ready)
        self._pending = [table.take(pa.array(rest))] if len(rest) else []
        streams = table["stream"].to_numpy() if "stream" in table.column_names else np.zeros(len(times), np.int32)
        order = np.lexsort((streams, times))
        order = order[ready[order]]
        return table.take(pa.array(order)) if len(order) else None

    def words(self) -> tuple[Any, ...]:
        return self._clock.words()

    def use(self, words: tuple[Any, ...]) -> None:
        self._clock.use(words)

    def _identity(self) -> dict[str, str]:
        streams = f"{', '.join(self._job.names)}: {self._clock.identity()}"
        return {**self._job.query.identity, "language": "CEQL on Spark", "streams": streams, "state": _STATE,
                "buckets": str(self._buckets)}  # fmt: skip

    def snapshot(self) -> bytes:
        """The state between two batches."""
        state = {
            "clock": self._clock.snapshot(),
            "pending": [table_bytes(table) for table in self._pending],
            "counts": self._counts,
            "matches": self._matches.contents(),
        }
        return seal(self._identity(), state, (INSTANTS, DURATIONS))

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot of an evaluation of the same query. `OptionError` for anything else."""
        unseal(state, self._identity(), (INSTANTS, DURATIONS), self._restored)

    def _restored(self, state: dict[str, Any]) -> None:
        self._clock.restore(state["clock"])
        self._pending = [table_of_bytes(table) for table in state["pending"]]
        expect(all({"time"} <= set(table.column_names) for table in self._pending), "the times of what waits")
        self._counts = list(state["counts"])
        expect(len(self._counts) == 3 and all(type(count) is int for count in self._counts), "counts")
        self._matches.restore(state["matches"])

    def counts(self, first: bool) -> list[int]:
        """As of `Evaluation`; live runs are not counted."""
        loose, unread, found = self._counts
        return [self._clock.events + loose, self._clock.late, unread, found, 0]
