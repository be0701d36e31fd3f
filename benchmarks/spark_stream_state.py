"""The state of a stream on Spark: its bytes after ever more events, and the bytes that a batch writes.

    python -m benchmarks.spark_stream_state --millions 1 10 100

Claims. (1) The state of all buckets does not grow with the stream, for every kind of window. Once every user is there,
it is as large after 100 million events as after 10 million.
(2) A batch writes in proportion to the users that had events in it, not to those that are held.

`state`: tuples come a millisecond apart in batches of 100,000, made anew for each batch (seed 1). A tuple has a type
(A, B and C, 1 % each; else X), one of 20,000 users, and a number that grows. They go through the tasks' function
(`_send`), and through the processor that Spark calls, whose state is a dictionary instead of RocksDB. There are 4
buckets, or one if there is no key. A row has the bytes of snapshot and log together, then those of the snapshot. Behind
them stand the bytes written for each event since the row before, and the processor time.

`users`: 200,000 users have live runs; then each batch has events of 1 %, 10 % and 100 % of them, 40 batches each. Rows
have the median and the mean of the bytes that a batch wrote. `warm` is the time of a batch of 1 % of the users if the
worker keeps the bucket, `cold` if it goes on from the state.

`spark`: a real stream of the events of `state`, in 10 batches, with a window of time and keys. The bytes are those that
`progress` tells, and the seconds those of a batch (median).

Small by default. Rows are added to results/DATE-spark_stream_state.csv.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_type

import ceql
from spaseq.core.events import EventOptions
from spaseq.rdf import StreamOptions
from spaseq.spark import local_session, start_tuples, wait
from spaseq.spark.streaming import processor as processing
from spaseq.spark.streaming.processor import Processor
from spaseq.spark.streaming.tuple_stream import TupleEvaluation, _Send, _send
from spaseq.spark.tuples.columns import has_dates, row_schema
from spaseq.spark.tuples.frames import Layout
from spaseq.spark.tuples.plan import Plan
from spaseq.spark.tuples.rows import Job

RESULTS = Path(__file__).parent / "results"
BATCH, BUCKETS, SEED = 100_000, 4, 1
WINDOWS: Final = {
    "time": "SELECT a, c WHERE A AS a ; B ; C AS c WITHIN 2 SECONDS",
    "time, keys": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [user] WITHIN 10 MINUTES",
    "time, keys ever new": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [fresh] WITHIN 10 SECONDS",
    "time, an absence": "SELECT a WHERE A AS a ; NOT B PARTITION BY [user] WITHIN 10 MINUTES",
    "events": "SELECT a, c WHERE A AS a ; B ; C AS c WITHIN 2000 EVENTS",
    "events of a key": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [user] WITHIN 20 EVENTS",
    "attribute": "SELECT a, c WHERE A AS a ; B ; C AS c WITHIN 2000 [seq]",
    "attribute, keys": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [user] WITHIN 600000 [seq]",
    "none, CONSUME": "SELECT a, c WHERE A AS a ; B ; C AS c CONSUME BY ANY",
    "none, AFTER MATCH": "SELECT a, c WHERE A AS a ; B ; C AS c AFTER MATCH SKIP PAST LAST EVENT",
    "none, CONSUME, keys": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [user] CONSUME BY PARTITION",
    "none, AFTER MATCH, keys": (
        "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [user] AFTER MATCH SKIP PAST LAST EVENT"
    ),
    "none, keys forgotten after a pause": "SELECT a, c WHERE A AS a ; B ; C AS c PARTITION BY [fresh]",
}
SCHEMA: Final = pa.schema({
    "type": pa.string(), "time": pa.int64(), "user": pa.int64(), "fresh": pa.int64(), "seq": pa.int64(),
})  # fmt: skip


class Store:
    """The state that Spark keeps of a bucket, with the bytes that were written."""

    def __init__(self) -> None:
        self.held: dict[str, list[tuple[Any, ...]]] = {}
        self.written = 0

    def size(self, *names: str) -> int:
        return sum(len(row[0]) for name in names for row in self.held.get(name, []))

    def getValueState(self, name: str, schema: Any) -> _Value:
        return _Value(self, name)

    getListState = getValueState


class _Value:
    def __init__(self, store: Store, name: str) -> None:
        self.store, self.name = store, name

    def exists(self) -> bool:
        return bool(self.store.held.get(self.name))

    def get(self) -> Any:
        rows = self.store.held.get(self.name, [])
        return iter(rows) if self.name == "log" else rows[0]

    def update(self, row: tuple[Any, ...]) -> None:
        self.store.held[self.name] = [row]
        self.store.written += len(row[0])

    def appendValue(self, row: tuple[Any, ...]) -> None:
        self.store.held.setdefault(self.name, []).append(row)
        self.store.written += len(row[0])

    def clear(self) -> None:
        self.store.held.pop(self.name, None)


class Stream:
    """The buckets of a query, without Spark."""

    def __init__(self, text: str, **settings: Any) -> None:
        query = ceql.compile(text, settings=ceql.Settings(**settings))
        brackets = Plan.of(query).keys
        self.key = brackets[0][0] if brackets else None
        buckets = BUCKETS if self.key else 1
        names = ["type", "seq", *([self.key] if self.key else [])]
        own = {name: number for number, name in enumerate(dict.fromkeys(names))}
        kinds = tuple(from_arrow_type(SCHEMA.field(name).type) for name in own)
        layout = Layout((own,), ("time",), (from_arrow_type(pa.int64()),), kinds)
        options = EventOptions(time_unit="ms")
        job = Job(
            query, ("",), layout, options, has_dates(layout), row_schema(query, ("",), layout, options, None), None
        )
        self.columns = list(own)
        clock = StreamOptions(time="time", ties="arrival", late="error")
        self.send = _Send(1, tuple(range(buckets)), drop=False)
        self.stores = [Store() for _ in range(buckets)]
        self.processors = []
        for store in self.stores:
            each = Processor(partial(TupleEvaluation, job, clock), f"{id(self)}", job.schema, 0)
            each.init(store)
            self.processors.append(each)
        self.rows = 0

    def push(self, events: pa.Table) -> None:
        """A micro-batch."""
        columns = {f"c{number}": events[name] for number, name in enumerate(self.columns)}
        times = events["time"].to_numpy() * 1_000_000
        own = np.zeros(len(times), np.int32)
        if self.key:
            own = (events[self.key].to_numpy() * 2654435761 % 2**32 >> 16).astype(np.int32) % len(self.stores)
        table = pa.table(columns | {"time": pa.array(times), "bucket": pa.array(own)})
        sent: list[tuple[Any, ...]] = []
        for batch in _send(self.send, iter(table.combine_chunks().to_batches())):
            sent += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        for bucket, each in enumerate(self.processors):
            rows = [row[1:] for row in sent if row[0] == bucket]
            frame = pd.DataFrame(rows, columns=["feed", "file_number", "start", "part", "body"]).assign(now=0)
            for found in each.handleInputRows((bucket,), iter([frame]), None):
                self.rows += int((found["kind"] == 0).sum())

    def size(self, *names: str) -> int:
        return sum(store.size(*names) for store in self.stores)

    def sizes(self) -> tuple[int, int]:
        """Bytes of all state, and those of snapshots alone."""
        return self.size("evaluation", "log"), self.size("evaluation")

    def take_written(self) -> int:
        """Bytes since the last call."""
        total = sum(store.written for store in self.stores)
        for store in self.stores:
            store.written = 0
        return total


def events(first: int, count: int, draw: np.random.Generator, users: int = 20_000) -> pa.Table:
    """The next events of the stream of `state`."""
    seq = np.arange(first, first + count)
    kinds = pa.array(["A", "B", "C", "X"]).take(pa.array(draw.choice(4, count, p=[0.01, 0.01, 0.01, 0.97])))
    values = [kinds, seq, draw.integers(0, users, count), seq // 1000 * 10 + draw.integers(0, 10, count), seq]
    return pa.table([kinds, *map(pa.array, values[1:])], schema=SCHEMA)


def state_rows(millions: list[float], names: list[str]) -> Iterator[list[Any]]:
    """The bytes of state of each kind of window."""
    for name in names:
        stream = Stream(WINDOWS[name], **({"forget_keys_after": 10.0} if "pause" in name else {}))
        draw, done, start = np.random.default_rng(SEED), 0, time.process_time()
        for wanted in millions:
            before = done
            while done < wanted * 1_000_000:
                stream.push(events(done, BATCH, draw))
                done += BATCH
            each = f"{stream.take_written() / max(1, done - before):.2f}"
            yield ["state", name, done, *stream.sizes(), each, stream.rows, f"{time.process_time() - start:.1f}"]


def user_rows(users: int, batches: int = 40) -> Iterator[list[Any]]:
    """Bytes written by batches in which some users have events."""
    stream, draw, now = Stream(WINDOWS["time, keys"].replace("10 MINUTES", "10 DAYS")), np.random.default_rng(SEED), 0

    def push(own: np.ndarray, kind: str) -> float:
        nonlocal now
        times = np.arange(now, now + len(own))
        now += len(own)
        table = pa.table([[kind] * len(own), times, own, own, times], schema=SCHEMA)
        start = time.perf_counter()
        stream.push(table)
        return time.perf_counter() - start

    push(np.arange(users), "A")
    push(np.arange(1), "X")
    yield ["users", "all begin", users, *stream.sizes(), stream.take_written(), "", ""]
    for share in (0.01, 0.1, 1.0):
        written, seconds = [], []
        for _ in range(batches):
            seconds.append(push(draw.permutation(users)[: int(share * users)], "X"))
            written.append(stream.take_written())
        middle = f"{statistics.median(seconds):.3f}"
        yield ["users", f"{share:.0%}", int(share * users), *stream.sizes(), statistics.median(written), "", middle]
        yield ["users", f"{share:.0%}, mean", int(share * users), "", "", int(statistics.mean(written)), "", ""]
    for name, cold in (("warm", False), ("cold", True)):
        seconds = []
        for _ in range(5):
            if cold:
                processing._kept.clear()
            seconds.append(push(draw.permutation(users)[: users // 100], "X"))
        yield ["users", name, users // 100, *stream.sizes(), "", "", f"{statistics.median(seconds):.3f}"]


def spark_rows(millions: float) -> Iterator[list[Any]]:
    """The bytes of state that a stream on Spark tells, after so many million events."""
    spark, draw, count = local_session(parallelism=2), np.random.default_rng(SEED), int(millions * 100_000)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(10):
            os.makedirs(f"{folder}/in", exist_ok=True)
            pq.write_table(events(number * count, count, draw), f"{folder}/in/{number}.parquet")
            os.utime(f"{folder}/in/{number}.parquet", (number + 1, number + 1))  # Spark reads them in order of that
        fields = "type string, time long, user long, fresh long, seq long"
        frame = spark.readStream.schema(fields).option("maxFilesPerTrigger", 1).parquet(f"{folder}/in")
        words: Any = {"checkpoint": f"{folder}/state", "output": f"{folder}/out", "available_now": True, "tasks": 2}
        running = start_tuples(ceql.compile(WINDOWS["time, keys"]), frame, time_unit="ms", **words)
        wait(running)
        told = [(p.observedMetrics["spaseq"], p.durationMs["triggerExecution"]) for p in running.recentProgress]
        for metrics, _ in told:
            if metrics["events"] is not None:
                yield ["spark", "time, keys", metrics["events"], metrics["state_bytes"], "", "", metrics["matches"], ""]
        seconds = statistics.median(taken for metrics, taken in told if metrics["events"] is not None) / 1000
        yield ["spark", "a batch", count, "", "", "", "", f"{seconds:.2f}"]
    spark.stop()


def main() -> None:
    """Runs what is asked for, and adds its rows."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark_stream_state", description="The state of a stream.")
    parser.add_argument("--millions", type=float, nargs="+", default=[0.2, 0.4])
    parser.add_argument("--windows", nargs="*", default=list(WINDOWS))
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--spark", type=float, default=0.1, help="millions of events on Spark; 0 for none")
    options = parser.parse_args()
    path = RESULTS / f"{datetime.date.today()}-spark_stream_state.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if fresh:
            out.writerow(["part", "name", "events", "state_bytes", "snapshot_bytes", "written", "rows", "seconds"])
        parts = [state_rows(options.millions, options.windows)]
        parts += [user_rows(options.users)] if options.users else []
        parts += [spark_rows(options.spark)] if options.spark else []
        for part in parts:
            for row in part:
                out.writerow(row)
                file.flush()
                print(*row, sep=" | ", flush=True)


if __name__ == "__main__":
    main()
