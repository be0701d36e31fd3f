"""A streaming query of ours, begun with its checkpoint and its sink; what it has seen, and what goes wrong in it.

Spark keeps the offsets of the sources, the state of the buckets and what the sink has in one checkpoint, so a query
that is killed and started again goes on where it was, and into file sinks each match goes exactly once.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import ArrayType

from spaseq.core.errors import OptionError
from spaseq.core.files.places import whole_name
from spaseq.spark.session.connecting import is_connect, task_count
from spaseq.spark.session.failures import carried_batches, clear_errors
from spaseq.spark.streaming.checkpoint import (
    check_folder,
    check_note,
    file_manager,
    locked,
    read_note,
    started,
    unusable,
    write_note,
)
from spaseq.spark.streaming.processor import COUNTERS, Outcome
from spaseq.spark.streaming.retasking import divide_anew
from spaseq.spark.streaming.watermark import Silence

__all__ = ["Place", "Sink", "begin", "progress", "use_rocks", "wait"]

_STORE: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKS: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The state store that queries with state of ours need, and its setting."""
_KAFKA: Final = "kafka"
_LOG: Final = logging.getLogger("spaseq.spark")
_CONFIGURATION: Final = {
    _STORE: _ROCKS,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class LateSink:
    """The place of late events: a folder or topic, of the format of the matches, or a function."""

    output: str | None
    function: Callable[[DataFrame, int], None] | None

    @staticmethod
    def of(output: str | None, function: Callable[[DataFrame, int], None] | None, late: str | None) -> LateSink | None:
        """The place that the words `late_output` and `foreach_late` name, None without. `late`: the word of that name.
        `OptionError` if it says that late events are errors."""
        if output is None and function is None:
            return None
        if late == "error":
            raise OptionError("late events are rows, so they are dropped, and late is error", "leave late out")
        return LateSink(output, function)


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
    * `outcome`: the columns of the rows. `late`: the place of late events, if they are rows too. Then each batch is
      written by itself (`in_batches`).
    """

    output: str | None
    format: str
    foreach_batch: Callable[[DataFrame, int], None] | None
    every: str | None
    available_now: bool
    settings: Mapping[str, str]
    outcome: Outcome
    late: LateSink | None = None

    @property
    def identity(self) -> dict[str, str]:
        """The part of a checkpoint's note that must stay the same."""
        return {} if self.late is None else {"late events": "are rows"}

    @property
    def folder(self) -> str | None:
        """Where files go."""
        return None if self.format == _KAFKA else self.output

    @property
    def folders(self) -> list[str]:
        """All folders that files go to."""
        late = None if self.late is None or self.format == _KAFKA else self.late.output
        return [folder for folder in (self.folder, late) if folder is not None]

    def whole(self) -> Sink:
        """The same with folders as this process names them: Java may stand in another one."""
        if self.format == _KAFKA:
            return self
        late = self.late
        if late is not None and late.output is not None:
            late = replace(late, output=whole_name(late.output))
        return replace(self, output=None if self.output is None else whole_name(self.output), late=late)

    def in_format(self, frame: DataFrame) -> DataFrame:
        """The rows as the format has them: CSV has no lists, and Kafka a key and a value."""
        if self.format == "csv":
            lists = {field.name for field in frame.schema if isinstance(field.dataType, ArrayType)}
            return frame.select(*(F.to_json(name).alias(name) if name in lists else name for name in frame.columns))
        if self.format == _KAFKA:
            value = F.to_json(F.struct(*frame.columns))
            return frame.select(F.md5(value).alias("key"), value.alias("value"))
        return frame

    def in_batches(self, late: LateSink) -> Callable[[DataFrame, int], None]:
        """The function that Spark calls with the rows of each batch: matches, and late events.

        All tasks of the batch run once, whatever the functions look at, as their rows are kept meanwhile. Batches
        without rows are not written, but for the first one, so that a folder's columns are known.
        """
        functions = [
            None if one is None else carried_batches(one, unusable) for one in (self.foreach_batch, late.function)
        ]
        places = (self.output, late.output)

        def take(frame: DataFrame, number: int) -> None:
            kept = frame.persist()
            try:
                for (rows, count), function, place in zip(self.outcome.divide(kept), functions, places, strict=True):
                    if function is not None:
                        function(rows, number)
                    if place is not None and (count or not number):
                        self._write(rows, place, number)
            finally:
                kept.unpersist()

        return take

    def _write(self, rows: DataFrame, place: str, number: int) -> None:
        """Writes the rows of a batch."""
        writer = self.in_format(rows).write.format(self.format).options(**self.settings)
        if self.format == _KAFKA:
            writer.option("topic", place).save()
        else:
            writer.mode("overwrite").save(f"{place}/batch={number}")

    def with_clock(self, silence: Silence) -> Sink:
        """The sink of a stream whose silence ends so. With a clock Spark would begin batches without a pause, so there
        is one each second if `every` does not say it. `OptionError` with `available_now`, which would never stop."""
        if silence.behind is None:
            return self
        if self.available_now:
            hint = "leave clock out: what is there has a last event, and no time passes behind it"
            raise OptionError("clock= lets time go on, and available_now=True stops", hint)
        return replace(self, every=self.every or "1 second")


def use_rocks(spark: SparkSession) -> None:
    """The session's state store is that of RocksDB from now on; the log says so if it was another."""
    if spark.conf.get(_STORE, "") != _ROCKS:
        spark.conf.set(_STORE, _ROCKS)
        _LOG.info(f"{_STORE} is set to that of RocksDB, which a stream with state of ours needs")


@dataclass(frozen=True, slots=True)
class Place:
    """A checkpoint and its note, as it was before this start. The note has the number of buckets, and that of tasks if
    a start asks for none."""

    checkpoint: str
    before: Mapping[str, Any]

    @staticmethod
    def of(spark: SparkSession, checkpoint: str) -> Place:
        """OptionError where the checkpoint cannot be used."""
        if not is_connect(spark):  # as this process names it: Java may stand in another folder
            checkpoint = whole_name(checkpoint)
            check_folder("checkpoint", checkpoint)
        with started(checkpoint, None):
            return Place(checkpoint, read_note(spark, checkpoint))

    def tasks(self, spark: SparkSession, tasks: int | None) -> int:
        return int(tasks or self.before.get("tasks") or task_count(spark))

    def buckets(self, least: int) -> int:
        return int(self.before.get("buckets", least))


def begin(frame: DataFrame, sink: Sink, place: Place, tasks: int, identity: Mapping[str, Any]) -> StreamingQuery:
    """Start what a streaming DataFrame of matches says. `identity`: what it is of. See `start`."""
    checkpoint = place.checkpoint
    if not is_connect(frame.sparkSession):
        sink = sink.whole()
    output, format, late = sink.output, sink.format, sink.late
    if (output is None) == (sink.foreach_batch is None):
        raise OptionError("where do the matches go?", "give output=FOLDER or foreach_batch=FUNCTION, one of them")
    spark = frame.sparkSession
    frame = frame if late is not None else sink.in_format(frame)
    writer = frame.writeStream.option("checkpointLocation", checkpoint).outputMode("append")
    if not is_connect(spark):
        for folder in sink.folders:
            check_folder("output", folder)
    if late is not None:
        if not place.before:
            _expect_no_batches(sink.folders)
        writer = writer.foreachBatch(sink.in_batches(late))
    elif output is not None:
        writer = writer.format(format).options(**sink.settings)
        writer = writer.option("topic" if sink.folder is None else "path", output)
    elif sink.foreach_batch is not None:
        writer = writer.foreachBatch(carried_batches(sink.foreach_batch, unusable))
    with started(checkpoint, output):
        files = file_manager(spark, [checkpoint, *sink.folders])
    with _configured(spark, tasks, files), started(checkpoint, output), clear_errors():
        if sink.available_now:
            writer = writer.trigger(availableNow=True)
        elif sink.every is not None:
            writer = writer.trigger(processingTime=sink.every)
        whole = {**identity, **sink.identity, "tasks": tasks}
        return locked(spark, checkpoint, partial(_begun, writer, spark, place, sink.folder, whole))


def _expect_no_batches(folders: Iterable[str]) -> None:
    """Raises `OptionError` for a folder of this machine that has batches, which are of another checkpoint."""
    for folder in folders:
        names = os.listdir(folder) if os.path.isdir(folder) else []
        if any(name.startswith("batch=") for name in names):
            raise OptionError(f"output {folder} has batches of another checkpoint", "begin with a folder of its own")


def _begun(
    writer: DataStreamWriter, spark: SparkSession, place: Place, folder: str | None, identity: Mapping[str, Any]
) -> StreamingQuery:
    """The query, started once the checkpoint is known to be its own, and its state is divided for its tasks."""
    checkpoint, now = place.checkpoint, json.loads(json.dumps(identity))
    before = read_note(spark, checkpoint)  # again, as another driver may have had it until now
    check_note(checkpoint, before, now)
    if before.get("tasks", now["tasks"]) != now["tasks"]:
        write_note(spark, checkpoint, {**now, "tasks": None})  # if this process dies, the next one begins here again
        try:
            divide_anew(spark, checkpoint, folder, before["tasks"], now["tasks"])
        except OptionError:
            write_note(spark, checkpoint, before)
            raise
    if before != now:
        write_note(spark, checkpoint, now)
    return writer.start()


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
