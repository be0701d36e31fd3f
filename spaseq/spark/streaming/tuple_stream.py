"""CEQL queries over streams of tuples: the same parcels, buckets and clock as for graphs.

The streams are streaming DataFrames from any of Spark's sources (files, Kafka, …). A DataFrame has no order but that of
its times, so a tuple is late only if it is more than the lateness behind what came in batches before its own. The
buckets are those of PARTITION BY, written or inferred; a query without keys has one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Final, Unpack
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spaseq.core.errors import OptionError
from spaseq.core.events import EventOptions, TupleWords
from spaseq.core.events.batch import DURATIONS, INSTANTS
from spaseq.core.events.options import one_of
from spaseq.core.events.streams import table_bytes, table_of_bytes
from spaseq.core.events.timestamps import TimestampAssigner
from spaseq.core.snapshot import array, expect, seal, unseal
from spaseq.rdf import Counters, StreamOptions
from spaseq.spark.batch.cuts import POSITION, TIME, TupleCut, TupleQuery
from spaseq.spark.batch.tuples import Tuples, checked_streams
from spaseq.spark.ingest.datasource import Told
from spaseq.spark.ingest.messages import readable
from spaseq.spark.session.connecting import task_count
from spaseq.spark.session.failures import carried
from spaseq.spark.session.tables import PARCELS, TUPLE_ROWS, spark_schema, with_own_names, with_plain_names
from spaseq.spark.streaming.bucket_messages import Parcel, parcel_batch
from spaseq.spark.streaming.graph_stream import Sink, begin, columns_of, spread
from spaseq.spark.streaming.processor import evaluated
from spaseq.spark.streaming.watermark import Clock

_LOG: Final = logging.getLogger("spaseq.spark")
_OWN: Final = (TIME, POSITION)
"""The columns of a bucket's tuples that are not the user's."""
_STATE: Final = "tuples with their positions"
"""The form of a bucket's state. Another one needs another text here, so that older checkpoints are refused."""


class StreamWords(TupleWords, total=False):
    """Keywords of `stream_tuples`."""

    tasks: int | None
    idle: int
    malformed: str


def start_tuples(
    query: TupleQuery,
    events: Tuples,
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
    """Begin, or go on with, a query over streams of tuples.

    `query` is what `ceql.compile` gives, `events` a streaming DataFrame, or one for each stream. `words` are as of
    `stream_tuples`, the rest as of `spaseq.spark.start`.
    """
    frame = stream_tuples(query, events, **words)
    where = Sink(output, format, foreach_batch, every, available_now, sink or {})
    return begin(frame, where, checkpoint, words.get("tasks"), _identity(query, events, words))


def _identity(query: TupleQuery, events: Tuples, words: StreamWords) -> dict[str, Any]:
    """What must be the same wherever a checkpoint is gone on from. Budgets, lateness and `idle` may change."""
    given = events if isinstance(events, Mapping) else {"": events}
    reading = EventOptions.parse(**{word: words[word] for word in words.keys() & TupleWords.__annotations__.keys()})  # type: ignore[literal-required]
    kept = {**reading.typing, "time": reading.time, "time_unit": reading.unit}
    return {
        "query": " ".join(query.text.split()),
        "settings": query.identity.get("settings", ""),
        "options": {name: value for name, value in kept.items() if value is not None},
        "sources": {name: columns_of(frame) for name, frame in given.items()},
        **query.compiled.own.identity(query.compiled.functions),
    }


def stream_tuples(
    query: TupleQuery,
    events: Tuples,
    *,
    tasks: int | None = None,
    idle: int = 0,
    malformed: str = "error",
    **reading: Unpack[TupleWords],
) -> DataFrame:
    """The matches as a streaming DataFrame: start, end, positions, start_time, end_time (as of `run_tuples`), and
    `events`, the matched tuples as JSON.

    `reading`: as for CEQL's `run`; `lateness` and `late` are about tuples that come in a later batch than they should.
    Matches come when every stream is past their end, those left aside that brought nothing for `idle` ns (0: none is).
    `malformed`: what to do with a message that `parse_json` could not read, and with a tuple whose time cannot be read:
    "error", or "drop" it and count. Raises OptionError for tuples without a time column.
    """
    options = EventOptions.parse(**reading)
    one_of("malformed", malformed, "error", "drop")
    named = checked_streams(query, events, options, "stream_tuples")
    if query.columns:
        lacking = ", ".join(query.columns)
        _LOG.warning(f"the rows of a stream lack what SELECT computes: {lacking}; `events` has the matched tuples")
    frames = list(named.values())
    spark = frames[0].sparkSession
    _check_times(frames, options)
    keys = TupleCut.of(query).keys
    buckets = spread(spark, tasks or task_count(spark)) if keys else (0,)
    sent = [
        with_plain_names(frame).mapInArrow(
            carried(_send, _Send(number, options, keys, buckets, malformed == "drop")), spark_schema(PARCELS)
        )
        for number, frame in enumerate(frames)
    ]
    clock = StreamOptions(time=TIME, ties="arrival", lateness=options.lateness, late=options.late)
    make = partial(TupleEvaluation, query, tuple(named), clock, options.typing, idle)
    return evaluated(reduce(DataFrame.unionByName, sent), make, TUPLE_ROWS, buckets[0])


def _check_times(frames: Iterable[DataFrame], options: EventOptions) -> None:
    for frame in frames:
        wanted = {options.time} if options.time else {"time", "timestamp"}
        if options.from_arrival or not wanted & set(frame.columns):
            raise OptionError(
                f"no column {' or '.join(sorted(wanted))} to take times from; there are: {', '.join(frame.columns)}",
                "time=COLUMN; in a stream without order there is no time from arrival",
            )


# -- the tasks


@dataclass(frozen=True, slots=True)
class _Send:
    feed: int
    options: EventOptions
    keys: tuple[tuple[str, ...], ...]
    buckets: tuple[int, ...]
    drop: bool = False


def _send(job: _Send, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A parcel for each bucket from each batch of tuples. Its rows: tuples' numbers in the batch, and a table."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    times = TimestampAssigner(job.options, "<events>", types=())
    for part, batch in enumerate(batches):
        if not batch.num_rows:
            continue
        table, at = readable(with_own_names(batch), times, drop=job.drop)
        left_out = batch.num_rows - table.num_rows
        table = table.append_column(TIME, pa.array(at))
        places = _places(table, job)
        lines = np.arange(1, len(at) + 1)
        bodies = []
        for place in range(len(job.buckets)):
            rows = np.flatnonzero(places == place)
            body = [rows, table_bytes(table.take(pa.array(rows)))] if len(rows) else []
            told = Told(Counters(malformed=left_out), 0) if place == 0 and left_out else None
            bodies.append(Parcel(at, lines if place == 0 else lines[:0], body, "<events>", told).pack())
        yield parcel_batch((job.feed, task, 0), part, bodies, job.buckets)


def _places(table: pa.Table, job: _Send) -> np.ndarray:
    """The bucket of each tuple, int64 (n,); -1 for one without a key, which is in no partition."""
    places = np.zeros(table.num_rows, np.int64)
    for bracket in job.keys:
        texts = [_texts(table[name]) for name in bracket if name in table.column_names]
        if not texts:
            return np.full(table.num_rows, -1)
        codes = pc.dictionary_encode(pc.coalesce(*texts).combine_chunks())
        codes = codes if isinstance(codes, pa.DictionaryArray) else codes.combine_chunks()
        numbers = np.array([crc32(text.encode()) for text in codes.dictionary.to_pylist()] + [0], np.int64)
        index = np.asarray(pc.fill_null(codes.indices, -1))
        places = np.where((index < 0) | (places < 0), -1, places + numbers[index])
    return np.where(places < 0, -1, places % len(job.buckets))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Equal keys as equal texts, as `spaseq.spark.batch.cuts` has them: numbers of all types as doubles, 0.0 for -0.0,
    NULL for NaN; dates and timestamps in microseconds. Different keys may share a text: a bucket is partitioned
    again."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = pc.add(pc.cast(column, pa.float64(), safe=False), 0.0)  # -0.0 + 0.0 is 0.0
        column = pc.if_else(pc.is_nan(column), None, column)
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = pc.cast(pc.cast(column, pa.timestamp("us", getattr(kind, "tz", None)), safe=False), pa.int64())
    return pc.cast(column, pa.string())


# -- a bucket


class TupleEvaluation:
    """One bucket's evaluation: parcels of tuples in, matches out (TUPLE_ROWS)."""

    def __init__(
        self,
        query: TupleQuery,
        names: tuple[str, ...],
        options: StreamOptions,
        typing: Mapping[str, str | None] | None = None,
        idle: int = 0,
    ) -> None:
        self._query = query
        self._names = names
        self._words: dict[str, Any] = {**(typing or {}), "time": TIME, "time_unit": "ns"}
        self._clock = Clock(len(names), options, loose=True, idle=idle)
        self._stream = query.open(streams=[name for name in names if name] or None, **self._words)
        self._pending: list[tuple[np.ndarray, bytes]] = []
        self._matches = 0
        self._malformed = 0

    def begin(self, now: int) -> None:
        """The next batch begins, at `now` (ns) by the clock."""
        self._clock.begin_batch(now)

    def take(self, feed: int, parcel: Parcel) -> None:
        """The next parcel of a stream. EventError for a late tuple."""
        places, late = self._clock.take(feed, parcel.times, parcel.lines, parcel.file)
        if parcel.told is not None:
            self._malformed += parcel.told.counters.malformed
        if parcel.rows:
            rows, table = parcel.rows
            kept = np.flatnonzero(~late[rows])
            if len(kept) < len(rows):
                table = table_bytes(table_of_bytes(table).take(pa.array(kept)))
            if len(kept):
                self._pending.append((places[rows[kept]], table))

    def release(self) -> Iterator[tuple[Any, ...]]:
        """The rows of the matches that are now complete."""
        self._clock.end_batch()
        mark = self._clock.watermark
        positions = self._clock.complete()
        if mark is None or not self._pending:
            return
        places, table = self._ready(mark)
        if not len(places):
            return
        # The session keeps each tuple for as long as a match may have it, and with it its position in all buckets.
        own = pa.array([positions[t, f, n] for t, f, n in places.tolist()], pa.int64())
        for match in self._push(places[:, 1], table.append_column(POSITION, own)):
            self._matches += 1
            yield self._row(match)

    def _ready(self, mark: int) -> tuple[np.ndarray, pa.Table]:
        """The places and the tuples before `mark`, in order. The others wait on."""
        places = np.concatenate([at for at, _ in self._pending])
        table = pa.concat_tables([table_of_bytes(body) for _, body in self._pending], promote_options="permissive")
        ready = places[:, 0] < mark
        rest = np.flatnonzero(~ready)
        self._pending = [(places[rest], table_bytes(table.take(pa.array(rest))))] if len(rest) else []
        order = np.lexsort((places[:, 2], places[:, 1], places[:, 0]))
        order = order[ready[order]]
        return places[order], table.take(pa.array(order))

    def _push(self, feeds: np.ndarray, table: pa.Table) -> Iterator[Any]:
        """The matches that the tuples complete, stretches of one stream pushed at a time."""
        bounds = [0, *(np.flatnonzero(np.diff(feeds)) + 1).tolist(), len(feeds)]
        for start, end in pairwise(bounds):
            name = self._names[feeds[start]]
            yield from self._stream.push(table.slice(start, end - start), *([name] if name else []))

    def _row(self, match: Any) -> tuple[Any, ...]:
        (start, start_time), (end, end_time) = (_placed(match, position) for position in (match.start, match.end))
        positions = [_placed(match, position)[0] for position in match.positions]
        events = [{name: value for name, value in event.items() if name not in _OWN} for event in match.events]
        text = json.dumps(events, default=str, ensure_ascii=False)
        return start, end, positions, start_time, end_time, text

    def _identity(self) -> dict[str, str]:
        streams = f"{', '.join(self._names)}: {self._clock.identity()}"
        return {**self._query.identity, "language": "CEQL on Spark", "streams": streams, "state": _STATE}

    def snapshot(self) -> bytes:
        """The state between two batches."""
        state = {
            "clock": self._clock.snapshot(),
            "pending": self._pending,
            "counts": (self._matches, self._malformed),
            "stream": self._stream.contents(),
        }
        return seal(self._identity(), state, (INSTANTS, DURATIONS))

    def restore(self, state: bytes) -> None:
        """Goes on from a snapshot of an evaluation of the same query. `OptionError` for anything else."""
        unseal(state, self._identity(), (INSTANTS, DURATIONS), self._restored)

    def _restored(self, state: dict[str, Any]) -> None:
        self._clock.restore(state["clock"])
        self._pending = [(array(at, "places", columns=3), table) for at, table in state["pending"]]
        expect(all(table_of_bytes(table).num_rows == len(at) for at, table in self._pending), "a place for each tuple")
        self._matches, self._malformed = counts = state["counts"]
        expect(all(type(count) is int for count in counts), "counts")
        self._stream = self._query.reopened(state["stream"])

    def counts(self) -> list[int]:
        """As of `GraphEvaluation`; live runs are not counted for tuples without conditions over several."""
        return [self._clock.events, self._clock.late, self._malformed, self._matches, 0]


def _placed(match: Any, position: int) -> tuple[int, int]:
    """The position in all buckets, and the time (ns), of an event from the start to the end of a match."""
    batch, row = match.piece(position)
    return batch.getter(POSITION)(row), int(batch.times[row])
