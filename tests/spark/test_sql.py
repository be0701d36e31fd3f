"""The table function `ceql` of Spark's SQL: the rows and the columns of `match`, and its errors."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from spaseq.core.errors import EventError, OptionError, QuerySemanticsError, QuerySyntaxError
from spaseq.spark import clear_errors, collect, match, register
from spaseq.spark.session.versions import pyspark_version
from tests.spark.test_any_column import COLUMNS as ALL_COLUMNS
from tests.spark.test_any_column import KEYS, _row
from tests.spark.test_tuple_rows import QUERIES, _events, _frame
from tests.support.tables import check

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(pyspark_version() < (4, 1), reason="before PySpark 4.1 there are no table functions of Arrow"),
]
TEXT = (
    "SELECT COUNT(f) AS failures, ok.time - FIRST(f.time) AS took WHERE fail AS f{2,} ; login AS ok PARTITION BY [user]"
)
LOGINS = [("ann", "fail", 1), ("bob", "fail", 2), ("ann", "fail", 4), ("bob", "login", 5), ("ann", "login", 9)]


@pytest.fixture(scope="module", autouse=True)
def logins(spark: Any) -> Any:
    register(spark)
    frame = spark.createDataFrame(LOGINS, "user string, Type string, time long").repartition(3)
    frame.createOrReplaceTempView("logins")
    return frame


def _sql(spark: Any, arguments: str) -> Any:
    with clear_errors():
        return spark.sql(f"SELECT * FROM ceql({arguments})")


def _text(query: str) -> str:
    return "'" + query.replace("'", "\\'") + "'"


def _same(found: Any, expected: Any) -> int:
    """The number of rows of both; `AssertionError` if they, or their columns, differ."""
    assert [(f.name, f.dataType) for f in found.schema] == [(f.name, f.dataType) for f in expected.schema]
    rows = sorted(map(repr, collect(found).to_pylist()))
    assert rows == sorted(map(repr, collect(expected).to_pylist()))
    return len(rows)


# Slow: without keys, "absence" goes the same way to one task.
_MARKED = [
    pytest.param(text, id=name, marks=[pytest.mark.slow] if name in ("slices", "positions") else [])
    for name, text in zip(("keys", "slices", "positions", "absence"), QUERIES, strict=True)
]


@pytest.mark.parametrize("text", _MARKED)
def test_rows_and_columns_are_those_of_match(text: str, spark: Any) -> None:
    """Rows that come in no order, many of them at one time: `order_by` gives these an order."""
    frame = _frame(spark, _events(3, 150)).coalesce(1).selectExpr("*", "monotonically_increasing_id() AS seq")
    kept = frame.localCheckpoint()
    kept.repartition(5).createOrReplaceTempView("shuffled")
    expected = kept.transform(match(text, events=True))
    arguments = f"TABLE(shuffled), {_text(text)}, order_by => 'SEQ', events => true"
    assert _same(_sql(spark, f"{arguments}, partitions => 3"), expected)
    if "PARTITION" in text:
        own = f"TABLE(shuffled) PARTITION BY id ORDER BY (time, seq), {_text(text)}, events => true"
        assert _same(_sql(spark, f"{own}, partitioned => true"), expected)


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_any_type(key: str, spark: Any) -> None:
    frame = spark.createDataFrame([_row(i) for i in range(14)], ALL_COLUMNS)
    frame.createOrReplaceTempView("everything")
    query = f"SELECT * WHERE A AS a ; B AS b PARTITION BY [{key}]"
    expected = frame.transform(match(query, time="t", time_unit="ns"))
    spark.conf.set("spark.sql.caseSensitive", "true")  # two columns have names that differ in case alone
    try:
        found = _sql(spark, f"TABLE(everything), {_text(query)}, time => 't', time_unit => 'ns', partitions => 4")
        assert bool(_same(found, expected)) == (key != "nul")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@pytest.mark.parametrize(
    ("bracket", "single"),
    [
        ("[a, c]", False),
        pytest.param("[a, b]", False, marks=pytest.mark.slow),
        pytest.param("[c], [a, b]", False, marks=pytest.mark.slow),
        ("[a, d]", True),
    ],
)
def test_a_key_of_the_first_of_two_attributes_that_is_one(bracket: str, single: bool, spark: Any) -> None:
    """NaN is none; and attributes of two types have no key that Spark could send rows by."""
    some = [None, float("nan"), 0.0, -0.0, 1.0, 2.5]
    rows = [(second, some[second % 6], second % 4, some[second % 5], f"{second % 3}") for second in range(40)]
    frame = spark.createDataFrame(rows, "time long, a double, b int, c double, d string")
    frame.createOrReplaceTempView("brackets")
    query = f"SELECT x.time AS f WHERE ANY AS x ; ANY AS y PARTITION BY {bracket} WITHIN 20 SECONDS"
    found = _sql(spark, f"TABLE(brackets), {_text(query)}")
    assert ("SinglePartition" in found._jdf.queryExecution().toString()) == single
    assert _same(found, frame.transform(match(query)))


@pytest.mark.slow
def test_random_tables(spark: Any) -> None:
    """Of `python -m tests.support.tables`, with the query that was different once."""
    words = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = [spark.conf.get(word) for word in words]
    try:
        compared, different = check(spark, range(160, 170), 0.1)
    finally:
        for word, value in zip(words, before, strict=True):
            spark.conf.set(word, value)
    assert not different and compared["rows: match"] == compared["rows: ceql in SQL"] > 50


def test_the_plan_has_one_shuffle_and_the_columns_that_are_read(spark: Any) -> None:
    spark.range(9).selectExpr("id AS time", "'A' AS type", "id % 3 AS k", "'x' AS other").createOrReplaceTempView(
        "wide"
    )
    found = _sql(spark, "TABLE(wide), 'SELECT COUNT(a) AS n WHERE A AS a PARTITION BY [k]', partitions => 7")
    plan = found._jdf.queryExecution().toString().partition("== Physical Plan ==")[2]
    assert plan.count("Exchange") == 1 and "pmod(hash(" in plan and "other" not in plan


def test_a_view_is_read_by_any_sql(spark: Any) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW found AS SELECT * FROM ceql(TABLE(logins), {_text(TEXT)})")
    assert spark.sql("SELECT user, took FROM found WHERE failures > 1").collect() == [("ann", 8)]
    assert not spark.sql(f"SELECT * FROM ceql(TABLE(SELECT * FROM logins WHERE false), {_text(TEXT)})").collect()


def test_words(spark: Any) -> None:
    """By name in any order, and in any case; without times, rows count in the order of a column."""
    named = f"query => {_text(TEXT)}, PARTITIONS => 2, input => TABLE(logins)"
    assert [tuple(row) for row in _sql(spark, named).collect()] == [("ann", 2, 8, 1, 9)]
    pairs = "'SELECT a.user AS x, b.user AS y WHERE ANY AS a : ANY AS b'"
    found = _sql(spark, f"TABLE(logins), {pairs}, time_from => 'arrival', order_by => 'time'")
    users = [row[0] for row in LOGINS]
    assert {(row.x, row.y) for row in found.collect()} == set(pairwise(users))
    texts = "TABLE(SELECT user, type, concat('2026-01-0', time) AS day FROM logins)"  # their order is that of the days
    counts = "'SELECT COUNT(f) AS n WHERE fail AS f ; login PARTITION BY [user] WITHIN 9 DAYS'"
    assert sorted(row.n for row in _sql(spark, f"{texts}, {counts}, time => 'day'").collect()) == [1, 1, 1]


def _slow(*given: Any) -> Any:
    """A case beside one of the same kind."""
    return pytest.param(*given, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ("TABLE(logins), 'SELECT WHERE'", QuerySyntaxError, "the query ends too early"),
        _slow(
            "TABLE(logins), 'SELECT * WHERE A AS a FILTER a[x > 3]'",
            QuerySemanticsError,
            "no event has an attribute x",
        ),
        (f"TABLE(logins), '{TEXT}', time => 'nope'", EventError, "no column 'nope'"),
        _slow(
            f"TABLE(logins), '{TEXT}', order_by => 'nope'",
            EventError,
            "no column 'nope'; there are: user, Type, time",
        ),
        _slow(f"TABLE(logins), '{TEXT}', tyme => 'time'", OptionError, "there is no option tyme"),
        _slow(f"TABLE(logins), '{TEXT}', partitions => 0", OptionError, "partitions=0"),
        _slow(f"TABLE(logins), '{TEXT}', delimiter => ';'", OptionError, "Spark reads the files"),
        (f"TABLE(logins), '{TEXT}', order_by => uuid()", OptionError, "order_by of ceql is no"),
        (f"TABLE(logins), '{TEXT}', time_from => 'arrival'", OptionError, "its rows no order"),
        _slow(f"TABLE(logins), '{TEXT}', events => 1", OptionError, "events cannot be a int"),
        _slow("TABLE(logins), 3", OptionError, "query of ceql cannot be a int"),
        (f"'logins', '{TEXT}'", OptionError, "the first argument of ceql is no table"),
        _slow(
            "TABLE(logins), 'SELECT * FROM S, T WHERE S>A ; T>B'",
            OptionError,
            "the query reads several streams: S, T",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_at_analysis(arguments: str, error: Any, said: str, spark: Any) -> None:
    with pytest.raises(error, match=said):
        _sql(spark, arguments)


def test_a_partitioning_of_ones_own_is_given_where_it_is_said(spark: Any) -> None:
    own = f"TABLE(logins) PARTITION BY user ORDER BY (time), {_text(TEXT)}"
    with pytest.raises(AnalysisException, match="please remove these clauses"):
        _sql(spark, own)
    with pytest.raises(AnalysisException, match="partition_by_0"):
        _sql(spark, f"TABLE(logins), {_text(TEXT)}, partitioned => true")
    with pytest.raises(EventError, match="not in the order of their times"):
        collect(_sql(spark, f"{own.replace('(time)', '(time DESC)')}, partitioned => true"))


def test_a_row_without_a_time_and_a_stream_are_errors(spark: Any, tmp_path: Any) -> None:
    with pytest.raises(EventError, match="has no time"):
        collect(_sql(spark, f"TABLE(SELECT user, type, nullif(time, 4) AS time FROM logins), {_text(TEXT)}"))
    spark.readStream.schema("user string, type string, time long").json(str(tmp_path)).createOrReplaceTempView("live")
    for query in (TEXT, "SELECT * WHERE fail ; login"):
        found = _sql(spark, f"TABLE(live), {_text(query)}")
        with pytest.raises(AnalysisException, match="Sorting is not supported on streaming"):
            found.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "state")).start()
