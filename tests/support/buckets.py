"""Buckets of a stream of tuples on Spark, without Spark: random batches, and restarts from snapshots and logs. The last
batch brings nothing, and time goes on past all windows."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type

from ceql.runtime.batch import Partition
from spaseq.core.engine import Partitions, Window
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.batch import encode_texts
from spaseq.core.snapshot import encode
from spaseq.rdf import StreamOptions
from spaseq.spark.streaming.processor import _again, _take_batch
from spaseq.spark.streaming.tuple_stream import TupleEvaluation, _Send, _send
from spaseq.spark.streaming.watermark import Silence
from spaseq.spark.tuples.columns import has_dates, row_schema
from spaseq.spark.tuples.frames import Layout
from spaseq.spark.tuples.plan import Plan, tuple_query
from spaseq.spark.tuples.rows import Job

SECOND: Final = 10**9
START: Final = 1_700_000_000
"""The seconds since 1970 at which streams begin: silence is ended by a clock that runs."""
FAR: Final = (START + 100_000) * SECOND
"""A time behind all windows."""


def rows_of_buckets(query: Any, events: list[dict[str, Any]], rng: Random, attributes: Any = None) -> list[Any]:
    """The rows that three buckets, or one, give of `events`, which have a column `time` in seconds, in order.
    `attributes`: of the events that rows have in a column `events`; None without."""
    query = tuple_query(query)
    table = pa.Table.from_pylist(events)
    times = [event["time"] * SECOND for event in events]
    keys = Plan.of(query).keys
    count = 3 if keys else 1
    numbers = np.zeros(len(events), np.int64)
    if keys:
        clocks = np.arange(len(events))
        numbers = Partition(keys, Partitions(Window("none"))).keys(
            EventBatch(encode_texts(table), "type", clocks, clocks), clocks
        )
    buckets = [None if key < 0 else int(key) % count for key in numbers.tolist()]
    own = {name: number for number, name in enumerate(table.column_names)}
    kinds = tuple(from_arrow_type(field.type) for field in table.schema)
    layout = Layout((own,), ("time",), (kinds[own["time"]],), kinds)
    options = EventOptions()
    rows = row_schema(query, ("",), layout, options, attributes)
    job = Job(query, ("",), layout, options, has_dates(layout), rows, attributes)
    order = StreamOptions(time="time", ties="arrival", late="error")
    held = [TupleEvaluation(job, order, Silence(0, SECOND), count) for _ in range(count)]
    logs: list[list[Any]] = [[evaluation.snapshot()] for evaluation in held]
    found: list[Any] = []
    send, done = _Send(1, tuple(range(count)), drop=False), 0
    while True:
        size = rng.choice((1, 3, 10))
        which = list(range(min(done, len(events)), min(done + size, len(events))))
        sent: list[Any] = []
        if which:
            columns = {f"c{number}": column for number, column in enumerate(table.take(pa.array(which)).columns)}
            columns |= {"time": pa.array([times[i] for i in which], pa.int64())}
            columns |= {"bucket": pa.array([buckets[i] for i in which], pa.int32())}
            (batch,) = pa.table(columns).combine_chunks().to_batches()
            for part in _send(send, iter([batch])):
                sent += zip(*(column.to_pylist() for column in part.columns), strict=True)
        done += size
        now = times[which[-1]] if which else FAR + SECOND
        for bucket, evaluation in enumerate(held):
            bodies = [(0, body) for to, *_, body in sent if to == bucket] if which else None
            logs[bucket].append((now, bodies))
            found += (row for part in _take_batch(evaluation, now, bodies) for row in part.to_pylist())
            if rng.random() < 0.3:
                again = TupleEvaluation(job, order, Silence(0, SECOND), count)
                again.restore(logs[bucket][0])
                _again(again, [encode((again.words(), *entry)) for entry in logs[bucket][1:]])
                held[bucket] = again
                if rng.random() < 0.5:
                    logs[bucket] = [again.snapshot()]
        if not which:
            return found
