"""Spark over tables of tuples: `match` beside what a data engineer would write, in one run.

    python -m benchmarks.spark_tables --rows 1000000

Claim: `events.transform(spaseq.spark.match(query))` takes at most 1.25 times the processor time of twenty lines. These
repartition by the key, sort by time, and call the same engine in `mapInArrow`. Seven columns cost what three do, as
those that the query does not read are left out.

The events are generated (seed 1): logins of 20,000 users, 30 % of them failures, in a Parquet file of seven columns.
The time is the processor time of all processes together, the median of --turns turns. A turn takes the ways one after
another; the first warms up and does not count. Rows go to results/DATE-spark_tables.csv.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ceql
import spaseq.spark

RESULTS = Path(__file__).parent / "results"
_WHERE = "PARTITION BY [user] WITHIN 1 HOUR"
QUERIES = {
    "pair": f"SELECT user, COUNT(a) AS n WHERE fail AS a : fail : login {_WHERE}",
    "max": f"SELECT MAX user, COUNT(f) AS n, SUM(f.amount) AS total WHERE fail AS f{{3,}} ; login {_WHERE}",
}
ROWS = {"pair": "user string, n long", "max": "user string, n long, total double"}


def processor_time() -> float:
    """Seconds of this process and of all below it, with those that they waited for."""
    tick, children, times = os.sysconf("SC_CLK_TCK"), dict[int, list[int]](), dict[int, float]()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            children.setdefault(int(words[1]), []).append(int(name))
            times[int(name)] = sum(map(int, words[11:15])) / tick
    waiting, total = [os.getpid()], 0.0
    while waiting:
        process = waiting.pop()
        total += times.get(process, 0.0)
        waiting += children.get(process, [])
    return total


def write_events(path: str, count: int) -> None:
    """The events, as a Parquet file."""
    draw = np.random.default_rng(1)
    times = np.datetime64("2026-01-01", "us") + np.cumsum(draw.integers(0, 200_000, count)).astype("timedelta64[us]")
    types = np.array(["fail", "login", "view"])[draw.choice(3, count, p=[0.3, 0.2, 0.5])]
    table = pa.table({
        "user": [f"u{number}" for number in draw.integers(0, 20_000, count)], "type": types.tolist(),
        "ts": pa.array(times, pa.timestamp("us", "UTC")), "amount": draw.random(count),
        "ip": [f"10.0.{n % 256}.{n % 251}" for n in range(count)], "k": np.arange(count), "note": ["x" * 20] * count,
    })  # fmt: skip
    pq.write_table(table, path, row_group_size=100_000)


def by_hand(frame: Any, name: str, tasks: int) -> Any:
    """The rows by twenty lines over the same engine, as a data engineer would write them."""
    query = ceql.compile(QUERIES[name])

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(list(batches))
        if table.num_rows:
            yield from query.run(table, time="ts").to_arrow().to_batches()

    return frame.repartition(tasks, "user").sortWithinPartitions("ts").mapInArrow(run, ROWS[name])


def main() -> None:
    """Runs all ways, and writes their times."""
    parser = argparse.ArgumentParser(prog="benchmarks.spark_tables", description="Spark over tables of tuples.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=4)
    options = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_events(f"{folder}/logins.parquet", options.rows)
        spark = spaseq.spark.local_session(parallelism=2)
        frame = spark.read.parquet(f"{folder}/logins.parquet")
        frame.createOrReplaceTempView("logins")
        spaseq.spark.register(spark)
        for turn in range(options.turns):
            for name, query in QUERIES.items():
                match = spaseq.spark.match(query, time="ts", partitions=2)
                split = spaseq.spark.match(query, time="ts", partitions=2, cut="keys and slices")
                read = {"user", "type", "ts", *(["amount"] * (name == "max"))}
                few = frame.select(*(column for column in frame.columns if column in read))
                ways: dict[str, Callable[[], Any]] = {
                    "by hand, columns that are read": partial(by_hand, few, name, 2),
                    "by hand, seven columns": partial(by_hand, frame, name, 2),
                    "match, seven columns": partial(match, frame),
                    "match, columns that are read": partial(match, few),
                    "match, keys and slices": partial(split, frame),
                    "ceql in SQL, seven columns": partial(
                        spark.sql, f"SELECT * FROM ceql(TABLE(logins), {query!r}, time => 'ts')"
                    ),
                }
                for way, make in ways.items():
                    before = processor_time()
                    make().write.format("noop").mode("overwrite").save()
                    if turn:
                        found.setdefault((name, way), []).append(processor_time() - before)
        spark.stop()
    path = RESULTS / f"{datetime.date.today()}-spark_tables.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query", "way", "rows", "processor_seconds", "turns"])
        for (name, way), times in found.items():
            rows.writerow([name, way, options.rows, f"{statistics.median(times):.2f}", len(times)])
            print(f"{name:5} {way:35} {statistics.median(times):6.2f} s", flush=True)


if __name__ == "__main__":
    main()
