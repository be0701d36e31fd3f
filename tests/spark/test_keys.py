"""Keys by which tuples are sent to tasks and buckets: equal wherever they are one key to the local engine."""

from __future__ import annotations

import datetime
import json
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ceql
from ceql.runtime.batch import Partition
from spaseq.core.engine import Partitions, Window
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.batch import encode_texts
from spaseq.spark.batch.tuples import run_tuples
from spaseq.spark.streaming.tuple_stream import _places, _Send
from tests.spark.test_tuple_streams import _in_micro_batches
from tests.spark.test_tuples import _rows

NAN = float("nan")
POOLS: list[tuple[Any, list[Any]]] = [
    (pa.float64(), [0.0, -0.0, 1.0, NAN, None, 2.0**53, -5e-324, float("inf")]),
    (pa.float32(), [0.0, -0.0, 0.1, NAN, None]),
    (pa.int64(), [0, 1, 2**53, 2**53 + 1, None, -(2**63)]),
    (pa.uint8(), [0, 1, None]),
    (pa.decimal128(20, 2), [Decimal("0"), Decimal("1.00"), Decimal("0.10"), None]),
    (pa.string(), ["0", "0.0", "-0.0", "1", "NaN", "", None, "true"]),
    (pa.bool_(), [True, False, None]),
    (pa.date32(), [datetime.date(1970, 1, 1), datetime.date(2020, 2, 29), None]),
    (pa.timestamp("ms"), [datetime.datetime(1970, 1, 1), datetime.datetime(2020, 2, 29), None]),
    (pa.timestamp("us", "UTC"), [datetime.datetime(2020, 2, 29, tzinfo=datetime.UTC), None]),
]


def _column(rng: random.Random, size: int) -> pa.Array:
    kind, pool = rng.choice(POOLS)
    return pa.array([rng.choice(pool) for _ in range(size)], kind)


@pytest.mark.parametrize("brackets", [(("a",),), (("a", "b"),), (("a",), ("b",))])
def test_equal_keys_go_to_one_bucket(brackets: tuple[tuple[str, ...], ...]) -> None:
    """Over streams whose columns have different types, as each DataFrame has its own."""
    rng = random.Random(1)
    job = _Send(0, EventOptions(), brackets, tuple(range(1 << 20)))  # so many buckets that no two keys share one
    for _ in range(300):
        partition = Partition(brackets, Partitions(Window("none")))
        bucket_of: dict[int, int] = {}
        for _ in range(2):
            table = pa.table({"a": _column(rng, 6), "b": _column(rng, 6)})
            clock = np.arange(6)
            keys = partition.keys(EventBatch(encode_texts(table), "type", clock, clock), clock).tolist()
            for key, bucket in zip(keys, _places(table, job).tolist(), strict=True):
                assert (key < 0) == (bucket < 0), table
                assert bucket_of.setdefault(key, bucket) == bucket, table


QUERY = "SELECT * WHERE A AS x ; A AS y PARTITION BY [k]"
KEYS = [0.0, -0.0, NAN, 1.0, NAN, None, -0.0, 1.0, 0.0, 7.5]
EVENTS = [{"type": "A", "time": second, "k": key} for second, key in enumerate(KEYS)]


def test_zeros_of_both_signs_are_one_key_in_a_stream() -> None:
    query = ceql.compile(QUERY)
    expected = sorted((m.start, m.end) for m in query.run(EVENTS))
    more = [{"type": "end", "time": 100 + i, "k": float(i)} for i in range(40)]
    schema = pa.schema([("type", pa.string()), ("time", pa.int64()), ("k", pa.float64())])
    found = _in_micro_batches(query, [*EVENTS, *more], 1, 5, schema)
    assert sorted((row[0], row[1]) for row in found) == expected != []
    assert all(json.loads(row[5]) for row in found)


@pytest.mark.spark
def test_zeros_of_both_signs_are_one_key_in_a_batch(spark: Any) -> None:
    """And NaN is NULL: with [k, l] the key is then l."""
    rng = random.Random(3)
    rows = [("A", second, rng.choice(KEYS), rng.choice(("a", "b", "1"))) for second in range(40)]
    frame = spark.createDataFrame(rows, "type string, time long, k double, l string")
    events = [dict(zip(("type", "time", "k", "l"), row, strict=True)) for row in rows]
    for bracket in ("[k]", "[k, l]"):
        query = ceql.compile(f"SELECT * WHERE A AS x ; A AS y PARTITION BY {bracket} WITHIN 9 SECONDS")
        expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(events))
        assert _rows(run_tuples(query, frame, partitions=5, cut="keys")) == expected != []
    query = ceql.compile("SELECT * WHERE A AS x ; A AS y FILTER x.d = y.d WITHIN 9 SECONDS")
    days = [datetime.date(2020, 1, 1 + second % 3) for second in range(40)]
    dated = spark.createDataFrame([(*row, day) for row, day in zip(rows, days, strict=True)],
                                  "type string, time long, k double, l string, d date")  # fmt: skip
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(dated.toArrow().drop_columns(["l"])))
    assert _rows(run_tuples(query, dated, partitions=5)) == expected != []
