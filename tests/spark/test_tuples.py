"""CEQL on Spark: the local engine's matches, however the tuples are divided."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import ceql
import spaseq.spark
from spaseq.core.errors import EventError, OptionError, QuerySyntaxError, SpaseqError
from spaseq.spark import explain_match, match
from spaseq.spark.tuples.plan import Plan
from tests.support import harness
from tests.support.roads import list_kind

pytestmark = pytest.mark.spark

_CASES = [
    case for case in harness.load_all()
    if not case.is_spaseq and case.error is None and " FOR EVERY " not in case.query  # refused on Spark
]  # fmt: skip


def _schema(events: list[dict[str, Any]], names: list[str]) -> str:
    kinds = {bool: "boolean", int: "bigint", float: "double", str: "string"}
    found = {}
    for name in names:
        types = {type(event[name]) for event in events if event.get(name) is not None} or {str}
        found[name] = "double" if types == {int, float} else ""
        if len(types) == 1:
            found[name] = list_kind(events, name) or kinds[next(iter(types))]
    if "" in found.values():
        pytest.skip("no DataFrame has a column of several types: the events of this case cannot be one")
    return ", ".join(f"`{name}` {kind}" for name, kind in found.items())


def _rows(frame: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    table = spaseq.spark.collect(frame).to_pydict()
    return sorted(zip(table["start"], table["end"], map(tuple, table["positions"]), strict=True))


def _events(seed: int, count: int, hot: float = 0.2) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    now = 0
    events = []
    for _ in range(count):
        now += rng.choice((0, 0, 1, 1, 3))
        key = 0 if rng.random() < hot else rng.randint(1, 9)
        events.append({"type": rng.choice("ABC"), "time": now, "id": key, "v": rng.randint(0, 9), "seq": now * 10})
    return events


QUERIES = [
    ("keys", "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v PARTITION BY [id] WITHIN 20 SECONDS"),
    ("inferred keys", "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a.id = b.id AND b.id = c.id WITHIN 30 SECONDS"),
    ("slices", "SELECT * WHERE A AS a ; B AS b FILTER a[v > 7] AND b[v > 6] WITHIN 9 SECONDS"),
    ("slices of positions", "SELECT * WHERE A : B+ : C WITHIN 6 EVENTS"),
    ("slices of an attribute", "SELECT * WHERE A AS a ; B AS b FILTER a[v = 9] AND b[v > 7] WITHIN 100 [seq]"),
    ("what comes behind", "SELECT * WHERE A AS a ; B AS b ; NOT C FILTER a[v > 5] WITHIN 4 SECONDS"),
    ("what comes in front", "SELECT * WHERE NOT C ; A AS a ; B AS b FILTER a[v > 5] WITHIN 4 SECONDS"),
    (
        "times of their own",
        "SELECT * WHERE NOT C FOR 3 SECONDS ; A AS a ; B AS b ; NOT C FOR 2 SECONDS FILTER a[v > 2] WITHIN 4 SECONDS",
    ),
    ("next in slices", "SELECT NEXT * WHERE A AS a ; B AS b ; C AS c WITHIN 12 SECONDS"),
    ("events in a partition", "SELECT * WHERE A : B : C PARTITION BY [id] WITHIN 20 EVENTS"),
    ("one part", "SELECT * WHERE A ; B FILTER A[v > 8] WITHIN 9 SECONDS CONSUME BY ANY"),
    ("no window", "SELECT * WHERE A AS a ; B AS b FILTER a[v > 8] AND b[v = 0] PARTITION BY [id]"),
]


def _some(queries: list[tuple[str, str]], quick: int) -> list[Any]:
    """The first `quick` in every run, the others in the slow one."""
    marks = [[] if i < quick else [pytest.mark.slow] for i in range(len(queries))]
    return [pytest.param(*query, id=query[0], marks=mark) for query, mark in zip(queries, marks, strict=True)]


@pytest.mark.parametrize(("name", "text"), _some(QUERIES, 3))
def test_random_tuples_have_the_same_matches(name: str, text: str, spark: Any) -> None:
    query = ceql.compile(text)
    events = _events(3, 300)
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(events))
    shuffled = spark.createDataFrame(events, "type string, time long, id long, v long, seq long").coalesce(1)
    assert _rows(match(query, positions=True, partitions=3)(shuffled)) == expected != []


def test_a_hot_key_is_cut_by_time_too(spark: Any) -> None:
    query = ceql.compile(QUERIES[0][1])
    events = _events(4, 600, hot=0.9)
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(events))
    frame = spark.createDataFrame(events, "type string, time long, id long, v long, seq long").coalesce(1)
    found = match(query, positions=True, partitions=4, cut="keys and slices")(frame)
    assert _rows(found) == expected
    assert found.rdd.getNumPartitions() == 8
    hot = match(query, partitions=4, cut="keys and slices")(frame).where("id = 0")
    assert hot.groupBy(F.spark_partition_id()).count().count() == 4
    assert "groups with more than twice their share" in explain_match(query, cut="keys and slices")


def test_several_streams(spark: Any) -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A AS a ; T>B AS b FILTER b.v > a.v WITHIN 5 SECONDS")
    one, two = _events(1, 60), _events(2, 60)
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(streams={"S": one, "T": two}))
    schema = "type string, time long, id long, v long, seq long"
    frames = {"S": spark.createDataFrame(one, schema).coalesce(1), "T": spark.createDataFrame(two, schema).coalesce(1)}
    for cut in ("auto", "one"):
        assert _rows(match(query, positions=True, partitions=3, cut=cut)(frames)) == expected


def test_explain_and_refusal(spark: Any) -> None:
    frame = spark.createDataFrame(_events(1, 9), "type string, time long, id long, v long, seq long")
    assert "partitioned by the key id" in explain_match(ceql.compile(QUERIES[1][1]))
    assert "cut into slices of time, each reaching 9,000,000,000 ns further back" in explain_match(
        ceql.compile(QUERIES[2][1])
    )
    assert "reaches back beyond any window" in explain_match(ceql.compile(QUERIES[10][1]))
    with pytest.raises(OptionError, match="cut='slices': what CONSUME forgets"):
        match(ceql.compile(QUERIES[10][1]), positions=True, cut="slices")(frame)
    with pytest.raises(OptionError, match="no key that may be cut by"):
        match(ceql.compile(QUERIES[2][1]), positions=True, cut="keys")(frame)
    with pytest.raises(OptionError, match="no such way"):
        match(ceql.compile(QUERIES[2][1]), positions=True, cut="quarters")(frame)
    assert Plan.of(ceql.compile(QUERIES[5][1])).behind


STRANGE = "Type string, time long, Price long, st struct<a: int>, month interval month, clock time"


@pytest.mark.parametrize("stream", [False, True], ids=["batch", "stream"])
def test_what_is_wrong_with_columns_is_said_before_a_job_runs(stream: bool, spark: Any, tmp_path: Path) -> None:
    def run(conditions: str, frame: Any, **words: Any) -> Any:
        query = ceql.compile(f"SELECT * WHERE A AS a ; B AS b {conditions} WITHIN 9 SECONDS")
        return match(query, **words)(frame)

    def frame(columns: str) -> Any:
        return spark.readStream.schema(columns).json(str(tmp_path)) if stream else spark.createDataFrame([], columns)

    for conditions, words, said in [
        ("", {"type_column": "kind"}, "no column 'kind'"),
        ("", {"time": "when"}, "no column 'when'"),
        ("", {"type_column": "st"}, "attribute st holds values of type struct"),
        ("", {"time": "st"}, "attribute st holds values of type struct"),
        ("FILTER a[st = 1]", {}, "attribute st holds values of type struct"),
        ("FILTER a[month = 1]", {}, "column 'month' is interval month, which cannot be read"),
        ("FILTER a[clock = 1]", {}, r"column 'clock' is time\(6\), which cannot be read"),
        ("FILTER a[PRICE > 1] AND b[price > 1]", {}, "'price' and 'PRICE' are one column, Price"),
    ]:
        with pytest.raises(EventError, match=said):
            run(conditions, frame(STRANGE), **words)
    with pytest.raises(EventError, match="'price' may be any of the columns Price, PRICE"):
        run("FILTER a[price > 1]", frame("type string, time long, Price long").selectExpr("*", "1 AS PRICE"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(EventError, match="no column 'type'"):
            run("", frame(STRANGE))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert run("FILTER a[price > 1]", frame(STRANGE)).columns == ["match_start", "match_end"]


def test_columns_that_the_query_does_not_read_are_of_any_type(spark: Any) -> None:
    """Their names are as Spark compares them, and the query may write those that it reads in another case."""
    rows = spark.createDataFrame([("A", 1, 5), ("A", 2, 1), ("B", 3, 7)], "Type string, TIME long, Price long")
    frame = rows.selectExpr("*", "INTERVAL '1' MONTH AS month", "TIME'10:00:00' AS clock", "struct(Price) AS st")
    query = ceql.compile("SELECT * WHERE A AS a ; B AS b FILTER a[price > 1] WITHIN 9 SECONDS")
    found = spaseq.spark.collect(match(query, positions=True, partitions=1)(frame))
    assert found["positions"].to_pylist() == [[0, 2]]


def test_rows_have_the_key_what_select_lists_and_the_times(spark: Any) -> None:
    query = "SELECT a[name], b[price] WHERE A AS a+ ; B AS b PARTITION BY [name] WITHIN 9 SECONDS"
    rows = [("A", 1, "x", 5), ("A", 2, "x", None), ("B", 3, "x", 7), ("B", 4, "y", 8)]
    frame = spark.createDataFrame(rows, "type string, time long, name string, price long")
    found = frame.transform(match(query, partitions=2, events=True))
    assert found.columns == ["name", "a.name", "b.price", "match_start", "match_end", "events"]
    table = spaseq.spark.collect(found).to_pylist()
    assert sorted((r["name"], r["a.name"], r["b.price"], r["match_start"], r["match_end"]) for r in table) == [
        ("x", ["x"], [7], 1, 3), ("x", ["x"], [7], 2, 3), ("x", ["x", "x"], [7], 1, 3)
    ]  # fmt: skip
    last = max(table, key=lambda row: len(row["events"]))
    assert [(event["type"], event["price"]) for event in last["events"]] == [("A", 5), ("A", None), ("B", 7)]


def test_times_that_are_texts_beside_a_named_column_of_types(spark: Any) -> None:
    rows = [("A", "2026-01-01T00:00:02Z"), ("B", "2026-01-01T01:00:03+01:00"), ("A", "2026-01-01T00:00:01Z")]
    frame = spark.createDataFrame(rows, "kind string, at string")
    found = match("SELECT COUNT(b) AS n WHERE A AS a ; B AS b WITHIN 9 SECONDS", type_column="kind", time="at")(frame)
    ends = [(row["match_start"].second, row["match_end"].second) for row in spaseq.spark.collect(found).to_pylist()]
    assert sorted(ends) == [(1, 3), (2, 3)]


def test_what_is_no_query_over_tuples_is_an_error_that_says_what_it_is() -> None:
    tuples = ceql.compile("SELECT * WHERE A")
    given: list[tuple[Any, Any, str]] = [
        (3, None, "this is a builtins.int\nhint: match"),
        (tuples, "trades.csv", "the events are neither a DataFrame nor DataFrames by stream, but a builtins.str"),
        (tuples, {"S": [1]}, "the stream S is no DataFrame, but a builtins.list"),
    ]
    for query, events, said in given:
        with pytest.raises(OptionError, match=said):
            match(query)(events)
    with pytest.raises(QuerySyntaxError, match="expected"):
        match("SELECT WHERE")
    match("SELECT * WHERE GPM AS a")  # a type of events may have that name
    for tasks in (0, -1, True, 2.0):
        with pytest.raises(OptionError, match="a stage has at least one task"):
            match("SELECT * WHERE A", partitions=tasks)  # type: ignore[arg-type]


def test_words_of_streams_are_refused_in_a_batch(spark: Any) -> None:
    frame = spark.createDataFrame([], "type string, time long")
    for words in ({"idle": 5}, {"malformed": "drop"}):
        with pytest.raises(OptionError, match="is for a stream, and these events are all there"):
            match("SELECT * WHERE A", **words)(frame)


def test_what_is_wrong_with_tuples_is_said_on_the_driver(spark: Any) -> None:
    query = ceql.compile("SELECT * WHERE A AS a ; B AS b FILTER a[v > 1] WITHIN 9 SECONDS")
    frame = spark.createDataFrame(_events(1, 9), "type string, time long, id long, v long, seq long")
    with pytest.raises(EventError, match="no column 'kind'"):
        match(query, positions=True, type_column="kind")(frame)
    with pytest.raises(EventError, match="no column 'when'"):
        match(query, positions=True, time="when")(frame)
    with pytest.raises(OptionError, match="match takes times from one column, and time id,seq is two"):
        match(query, time="id,seq")(frame)
    with pytest.raises(SpaseqError, match="v "):
        spaseq.spark.collect(match(query, positions=True)(frame.withColumn("v", F.lit("text"))))
    with pytest.raises(EventError, match="this event has no seq"):
        worse = frame.withColumn("seq", F.when(F.col("time") > 3, F.col("seq")))
        spaseq.spark.collect(match(ceql.compile(QUERIES[4][1]), positions=True)(worse))


def test_a_query_of_the_builder_is_taken_as_its_text(spark: Any) -> None:
    frame = spark.createDataFrame(_events(3, 60), "type string, time long, id long, v long, seq long")
    a, b = ceql.event("A"), ceql.event("B")
    built = ceql.seq(a, b).where(b.v > a.v).over("id").within("20s")
    found = _rows(match(built, positions=True)(frame))
    assert found == _rows(match(str(built), positions=True)(frame)) != []
    assert explain_match(built) == explain_match(str(built))
    with pytest.raises(OptionError, match="one object is one event"):
        match(ceql.seq(a, b).where(ceql.event("C").v > 1))
