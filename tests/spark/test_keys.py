"""Keys by which tuples are sent to tasks and buckets: equal wherever they are one key to the local engine."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import ceql
from ceql.runtime.batch import Partition
from spaseq.core.engine import Partitions, Window
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.batch import encode_texts
from spaseq.spark import match
from spaseq.spark.tuples.frames import Layout, key_columns
from spaseq.spark.tuples.plan import Plan
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


@pytest.mark.spark
def test_equal_keys_are_equal_to_spark(spark: Any) -> None:
    """Over streams whose columns have different types, as each DataFrame has its own."""
    values = [(kind, value) for kind, pool in POOLS for value in pool]
    tables = [pa.table({"a": pa.array([value], kind)}) for kind, value in values if not pa.types.is_uint8(kind)]
    frames = [spark.createDataFrame(table).coalesce(1) for table in tables]
    layout = Layout.of([frame.schema for frame in frames], None, EventOptions(from_arrival=True))
    one = reduce(DataFrame.union, [
        frame.select(*(F.col("a").alias(f"c{n}") if n == own["a"] else F.lit(None).cast(kind).alias(f"c{n}")
                       for n, kind in enumerate(layout.kinds)))
        for frame, own in zip(frames, layout.streams, strict=True)
    ])  # fmt: skip
    plan = Plan.of(ceql.compile("SELECT * WHERE A PARTITION BY [a]"))
    texts = [row[0] for row in one.select(*key_columns(plan, layout)).collect()]
    partition = Partition((("a",),), Partitions(Window("none")))
    clock, text_of = np.arange(1), dict[int, Any]()
    for table, text in zip(tables, texts, strict=True):
        (key,) = partition.keys(EventBatch(encode_texts(table), "type", clock, clock), clock).tolist()
        assert (key < 0) == (text is None), table
        assert text_of.setdefault(key, text) == text, table


KEYS = [0.0, -0.0, NAN, 1.0, NAN, None, -0.0, 1.0, 0.0, 7.5]


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
        assert _rows(match(query, positions=True, partitions=5, cut="keys")(frame)) == expected != []
    query = ceql.compile("SELECT * WHERE A AS x ; A AS y FILTER x.d = y.d WITHIN 9 SECONDS")
    days = [datetime.date(2020, 1, 1 + second % 3) for second in range(40)]
    dated = spark.createDataFrame([(*row, day) for row, day in zip(rows, days, strict=True)],
                                  "type string, time long, k double, l string, d date")  # fmt: skip
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(dated.toArrow().drop_columns(["l"])))
    assert _rows(match(query, positions=True, partitions=5)(dated)) == expected != []
