"""The rows that SELECT computes on Spark: those of the local engine, with Spark's types, however tuples are divided."""

from __future__ import annotations

import datetime
import random
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

import ceql
import spaseq.spark
from spaseq.core.errors import EventError, OptionError
from spaseq.spark import match
from spaseq.spark.tuples.rows import as_spark

pytestmark = pytest.mark.spark

_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
COLUMNS = (
    "SELECT MAX id, COUNT(a) AS n, COUNT(DISTINCT a.name) AS names, SUM(a.v) AS total, AVG(a.x) AS mean, b.v + 1 AS k, "
    "FIRST(a.time) AS since, b.time - FIRST(a.time) AS took, MATCH_END AS ended, COLLECT(a.v) AS vs, b.x > 1 AS big, "
    "UPPER(b.name) AS loud, MIN(a.name) AS least, COALESCE(b.x, 0) AS x, AVG(a.time) AS middle, SUM(a.took) AS busy, "
    "AVG(a.took) AS usual, b.name = ANY(b.known) AS listed, b.v > ALL(a.sizes) AS largest "
)
QUERIES = (
    COLUMNS + "WHERE A AS a+ ; B AS b PARTITION BY [id] WITHIN 20 SECONDS",
    "SELECT a.v, b.v AS w, a.x / b.v AS ratio WHERE A AS a ; B AS b FILTER a[v > 7] AND b[v > 6] WITHIN 9 SECONDS",
    "SELECT a.v, COUNT(b) AS n, b.name WHERE A AS a : B+ AS b : C WITHIN 6 EVENTS",
    "SELECT MATCH_START, a.v WHERE A AS a ; B ; NOT C FILTER a[v > 5] WITHIN 4 SECONDS",
)


def _events(seed: int, count: int) -> list[dict[str, Any]]:
    rng, now, found = random.Random(seed), 0, []
    for _ in range(count):
        now += rng.choice((0, 1, 1, 3))
        found.append({
            "type": rng.choice("AABC"), "time": _START + datetime.timedelta(seconds=now), "id": rng.randint(0, 4),
            "v": rng.randint(0, 9), "x": rng.choice((None, 0.5, 2.0)), "name": rng.choice((None, "a", "B", "ä")),
            "took": rng.choice((None, datetime.timedelta(seconds=1), datetime.timedelta(microseconds=2_500_001))),
            "known": rng.choice((None, [], ["a", None], ["B", "ä"])), "sizes": rng.choice((None, [], [3, 4], [None])),
        })  # fmt: skip
    return found


def _frame(spark: SparkSession, events: list[dict[str, Any]]) -> Any:
    schema = "type string, time timestamp, id int, v bigint, x double, name string, took interval day to second, "
    schema += "known array<string>, sizes array<bigint>"
    return spark.createDataFrame([tuple(event.values()) for event in events], schema)


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    def value(one: Any) -> Any:
        if isinstance(one, datetime.datetime):
            return int(one.timestamp())
        return int(one.total_seconds()) if isinstance(one, datetime.timedelta) else one

    return sorted(repr({name: value(one) for name, one in row.items()}) for row in rows)


# The rows of an absence are quick in `test_sql`, which has the same plan; one part of all is one plan of all.
_QUICK = {("keys", "auto"), ("slices", "auto"), ("positions", "auto"), ("keys", "one")}
_QUERIES = [pytest.param(text, cut, id=f"{cut}-{name}", marks=[] if (name, cut) in _QUICK else [pytest.mark.slow])
            for name, text in zip(("keys", "slices", "positions", "absence"), QUERIES, strict=True)
            for cut in ("auto", "one")]  # fmt: skip


@pytest.mark.parametrize(("text", "cut"), _QUERIES)
def test_rows_are_those_of_the_local_engine(spark: SparkSession, text: str, cut: str) -> None:
    events = _events(3, 150)
    query = ceql.compile(text)
    frame = _frame(spark, events).transform(match(query, cut=cut, partitions=3))
    found = spaseq.spark.collect(frame).to_pylist()
    computed = [{name: row[name] for name in query.columns} for row in found]
    assert found and _plain(computed) == _plain(query.run(events).to_arrow().to_pylist())


def test_columns_have_sparks_types_before_any_job(spark: SparkSession) -> None:
    frame = _frame(spark, _events(1, 20)).transform(match(QUERIES[0]))
    kinds = {field.name: type(field.dataType) for field in frame.schema.fields}
    assert list(kinds) == [*ceql.compile(QUERIES[0]).columns, "match_start", "match_end"]
    assert kinds["id"] is T.IntegerType and kinds["n"] is kinds["total"] is kinds["k"] is T.LongType
    assert kinds["mean"] is kinds["x"] is T.DoubleType and kinds["big"] is T.BooleanType
    assert kinds["since"] is kinds["ended"] is T.TimestampType and kinds["took"] is T.DayTimeIntervalType
    assert kinds["busy"] is kinds["usual"] is T.DayTimeIntervalType and kinds["middle"] is T.TimestampType
    assert kinds["listed"] is kinds["largest"] is T.BooleanType
    assert kinds["vs"] is T.ArrayType and kinds["loud"] is kinds["least"] is T.StringType


SHIPPED = """
import spaseq.spark

def places(batches):
    import pyarrow, sys
    yield pyarrow.RecordBatch.from_pydict({"path": sys.path})

spark = spaseq.spark.local_session(1)
sent = spaseq.spark.ship(spark).rpartition("/")[2]
print(any(row.path.endswith(sent) for row in spark.range(1).mapInArrow(places, "path string").collect()))
"""


@pytest.mark.slow
def test_tasks_see_the_package_that_was_shipped() -> None:
    """PySpark 3.5 has another call for that than later versions."""
    done = subprocess.run([sys.executable, "-c", SHIPPED], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_division_by_zero_is_null_of_a_numbers_type(spark: SparkSession) -> None:
    query = ceql.compile("SELECT a.v / 0 AS q, (a.x % 0) % 2 AS r, a.v % 0 AS m, a.v / 0.0 AS x WHERE A AS a")
    frame = _frame(spark, _events(1, 20)).transform(match(query))
    assert [type(frame.schema[name].dataType) for name in "qrmx"] == [
        T.DoubleType, T.DoubleType, T.LongType, T.DoubleType
    ]  # fmt: skip
    assert {tuple(row)[:4] for row in frame.collect()} == {(None, None, None, None)}


def test_no_match_gives_no_rows_with_the_same_columns(spark: SparkSession) -> None:
    query = ceql.compile("SELECT a.v, b.name WHERE A AS a ; Z AS b")
    assert _frame(spark, _events(1, 20)).transform(match(query)).collect() == []


def test_a_column_of_an_unknown_type_is_refused_by_name(spark: SparkSession) -> None:
    query = ceql.compile("SELECT name, COUNT(a) AS n WHERE A AS a PARTITION BY [name, v]")
    with pytest.raises(OptionError, match="the type of the column name is not known"):
        _frame(spark, _events(1, 20)).transform(match(query))


def test_a_function_of_the_user_reaches_the_tasks(spark: SparkSession) -> None:
    scale = 3
    ceql.register_function("SCALED", lambda v: v * scale, replace=True)
    query = ceql.compile("SELECT SCALED(a.v) AS s WHERE A AS a FILTER a[SCALED(v) > 12]")
    events = _events(5, 60)
    found = spaseq.spark.collect(_frame(spark, events).transform(match(query)).select("s")).to_pylist()
    assert found and _plain(found) == _plain(query.run(events).to_arrow().to_pylist())


def test_values_of_another_type_than_was_found_are_an_error() -> None:
    """No value is cut: the type is found before the first value."""
    rows = pa.table({"n": [0.5], "at": pa.array([1500], pa.timestamp("ns", "UTC"))})
    whole = pa.schema([("n", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    with pytest.raises(EventError, match="the column n is of int64, and has values of double"):
        as_spark(rows, whole)
    double = whole.set(0, pa.field("n", pa.float64()))
    assert as_spark(rows, double)["at"].cast(pa.int64()).to_pylist() == [1]
