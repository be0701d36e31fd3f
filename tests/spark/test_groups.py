"""Aggregates over all matches on Spark: the local rows of GROUP BY, however the tuples are divided."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ceql
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.core.events import EventOptions
from spaseq.spark import collect, explain_match, match, register, start_tuples, wait
from spaseq.spark.tuples.plan import Plan
from tests.support.buckets import FAR, START, rows_of_buckets

pytestmark = pytest.mark.spark

SCHEMA = "type string, time long, k long, v long, x double"
COLUMNS = (
    "COUNT(*) AS n, COUNT(b.v) AS c, SUM(a.v) AS s, SUM(b.x) AS t, AVG(a.v) AS m, MIN(b.x) AS lo, MAX(a.v + 1) AS hi"
)
FORMULAS = (
    "A AS a ; B AS b",
    "A AS a ; B AS b+ ; C",
    "A AS a ; B AS b FILTER b.v > a.v",
    "A AS a ; B AS b FILTER a.v = b.v",
)
BATCHES = [
    ("B AS b ; A AS a WITHIN 9 SECONDS GROUP BY EVENT", "slices"),
    ("A AS a ; B AS b ; C PARTITION BY [k] WITHIN 50 SECONDS GROUP BY KEY", "auto"),
    ("A AS a ; B AS b ; C PARTITION BY [k] WITHIN 9 SECONDS GROUP BY 10 SECONDS", "auto"),
    ("A AS a ; B AS b ; C PARTITION BY [k] WITHIN 30 SECONDS GROUP BY EVENT", "keys and slices"),
    ("A AS a ; B AS b ; C PARTITION BY [k] WITHIN 30 SECONDS GROUP BY EVENT", "slices"),
    ("A AS a ; B AS b PARTITION BY [k] WITHIN 20 SECONDS GROUP BY KEY, 1 MINUTE", "keys and slices"),
    ("A AS a ; B AS b PARTITION BY [k] WITHIN 50 SECONDS GROUP BY KEY, 7 SECONDS", "auto"),
    ("A AS a ; B AS b FILTER a.v = b.v PARTITION BY [k] GROUP BY KEY", "auto"),
    ("A AS a ; B AS b FILTER a.v < b.v PARTITION BY [k] GROUP BY 1 MINUTE", "auto"),
    ("A AS a ; B AS b WITHIN 7 SECONDS GROUP BY 2500 MILLISECONDS", "slices"),
    ("A AS a ; B AS b WITHIN 70 SECONDS GROUP BY 10 SECONDS", "slices"),
    ("A AS a ; B AS b PARTITION BY [k] WITHIN 9 SECONDS CONSUME BY ANY GROUP BY KEY", "auto"),
]


def _events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    now, found = 0, [{"type": "A", "time": 0, "k": 1, "v": 3, "x": 1.5}]  # which has each attribute
    for _ in range(1, count):
        now += rng.choice((0, 0, 1, 1, 3))
        event = {"type": rng.choice("ABC"), "time": now, "k": rng.choice((None, 1, 2, 2))}
        found.append({**event, "v": rng.choice((None, -1, 0, 3, 8)), "x": rng.choice((None, -0.5, 1.5, 4.0))})
    return found


def _select(query: str) -> str:
    """The query with all aggregates, and what its groups have."""
    formula, _, groups = query.partition(" GROUP BY ")
    keyed = "PARTITION BY" in formula and groups.startswith(("KEY", "EVENT"))
    timed = "SECOND" in groups or "MINUTE" in groups
    own = ["MATCH_END AS at", *["k"] * keyed, *["GROUP_START AS g"] * timed]
    return f"SELECT {COLUMNS}, {', '.join(own)} WHERE {query}"


def _sorted(rows: list[dict[str, Any]], query: ceql.Query) -> list[str]:
    return sorted(repr([row[name] for name in query.columns]) for row in rows)


def _compare(text: str, cut: str, spark: Any, seed: int = 3, count: int = 200) -> None:
    query, events = ceql.compile(_select(text)), _events(random.Random(seed), count)
    frame = spark.createDataFrame([tuple(event.values()) for event in events], SCHEMA).coalesce(1)
    found = collect(frame.transform(match(query, partitions=3, cut=cut)))
    expected = query.run(events).to_arrow()
    assert _sorted(found.to_pylist(), query) == _sorted(expected.to_pylist(), query) != []
    for field in expected.schema:
        assert found.schema.field(field.name).type == field.type


@pytest.mark.parametrize(("text", "cut"), BATCHES[:2])
def test_rows_of_groups_in_a_batch(text: str, cut: str, spark: Any) -> None:
    _compare(text, cut, spark)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "cut"), BATCHES[2:])
def test_more_rows_of_groups_in_a_batch(text: str, cut: str, spark: Any) -> None:
    for seed in (3, 4):
        _compare(text, cut, spark, seed, 500)


def test_a_row_has_the_key_and_the_times_that_its_group_has(spark: Any) -> None:
    text = "SELECT COUNT(*) AS n, SUM(b.v) AS s WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 5 MINUTES GROUP BY {}"
    columns = {
        "EVENT": ["k", "n", "s", "match_end"],
        "KEY": ["k", "n", "s", "match_end"],
        "KEY, 1 MINUTE": ["k", "n", "s", "group_start", "match_end"],
        "1 MINUTE": ["n", "s", "group_start", "match_end"],
    }
    frame = spark.createDataFrame([], SCHEMA)
    for group, names in columns.items():
        found = frame.transform(match(text.format(group)))
        assert found.columns == names and {kind for _, kind in found.dtypes} == {"bigint"}
    half = frame.transform(match(text.format("KEY, 2500 MILLISECONDS")))
    assert dict(half.dtypes)["group_start"] == "double" and dict(half.dtypes)["match_end"] == "bigint"
    dated = frame.selectExpr("type", "k", "v", "timestamp_seconds(time) AS time")
    assert dict(dated.transform(match(text.format("1 MINUTE"))).dtypes)["group_start"] == "timestamp"
    named = text.replace("COUNT(*) AS n", "COUNT(*) AS k, MATCH_END")
    assert frame.transform(match(named.format("EVENT"))).columns == ["k", "MATCH_END", "s"]


def test_the_division_is_one_that_keeps_groups_whole() -> None:
    def plan(clauses: str, cut: str = "auto") -> Plan:
        return Plan.of(ceql.compile(f"SELECT COUNT(*) AS n WHERE {clauses}"), cut)

    related = "A AS a ; B AS b FILTER a.v = b.v"
    assert plan(f"{related} PARTITION BY [k] WITHIN 9 SECONDS GROUP BY EVENT").keys == (("k",), ("v",))
    assert plan(f"{related} PARTITION BY [k] WITHIN 9 SECONDS GROUP BY KEY").keys == (("k",),)
    hours = plan(f"{related} PARTITION BY [k] WITHIN 9 SECONDS GROUP BY 1 HOUR")
    assert (hours.keys, hours.slices, hours.stretch) == ((), True, 3600 * 10**9)
    assert "and beginning with a stretch of time of GROUP BY" in next(hours.explain())
    said = explain_match("SELECT COUNT(*) AS n WHERE A ; B PARTITION BY [k] GROUP BY 1 HOUR")
    assert said == (
        "recognised in one task: GROUP BY adds up the matches of all keys and without WITHIN a match may begin anywhere"
    )
    for cut, by, problem in [
        ("slices", "KEY", "cut='slices': GROUP BY KEY adds up the matches of all times"),
        ("keys", "1 HOUR", "cut='keys': GROUP BY adds up the matches of all keys"),
    ]:
        with pytest.raises(OptionError, match=problem):
            plan(f"A ; B PARTITION BY [k] WITHIN 9 SECONDS GROUP BY {by}", cut)


def test_what_a_row_of_several_matches_has_not_is_refused(spark: Any, tmp_path: Path) -> None:
    text = "SELECT COUNT(*) AS n WHERE A ; B PARTITION BY [k] GROUP BY KEY"
    words: list[dict[str, Any]] = [{"events": True}, {"positions": True}]
    for given in words:
        (word,) = given
        with pytest.raises(OptionError, match=f"{word}=True is of one match, and a row of GROUP BY stands for several"):
            match(text, **given)(spark.createDataFrame([], SCHEMA))
    live = spark.readStream.schema(SCHEMA).json(str(tmp_path))
    with pytest.raises(UnsupportedFeature, match=r"GROUP BY KEY over a stream(.|\n)*hint: GROUP BY KEY, 1 HOUR gives"):
        match(text)(live)
    assert match(f"{text}, 1 HOUR")(live).columns == ["k", "n", "group_start", "match_end"]


def _compare_stream(seed: int) -> int:
    """The number of rows of a stream in micro-batches; they are those of a session that is advanced."""
    rng = random.Random(seed)
    key, by = rng.choice(("", "PARTITION BY [k] ")), rng.choice(("EVENT", "5 SECONDS", "1 MINUTE"))
    by = f"KEY, {by}" if key and by != "EVENT" and rng.random() < 0.5 else by
    window = rng.choice(("", "WITHIN 4 EVENTS ", "WITHIN 6 SECONDS "))
    query = ceql.compile(_select(f"{rng.choice(FORMULAS)} {key}{window}GROUP BY {by}"))
    events = [{**event, "time": event["time"] + START} for event in _events(rng, rng.randint(1, 40))]
    with query.open() as session:
        expected = [found.row for found in session.push(events) + session.advance(FAR)]
        assert not session.close()
    found = rows_of_buckets(query, events, rng)
    assert _sorted(found, query) == _sorted(expected, query), f"{seed}\n{query.text}\n{events}"
    return len(expected)


def test_time_alone_may_end_a_stretch_of_time() -> None:
    for by, waits in (("1 HOUR", 3600 * 10**9), ("EVENT", None)):
        query = ceql.compile(f"SELECT COUNT(*) AS n WHERE A ; B GROUP BY {by}")
        assert query.in_order(("",), EventOptions(), iso=False).waits == waits


def test_random_groups_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(2, 4)) > 1


@pytest.mark.slow
def test_many_random_groups_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(4, 600)) > 300


@pytest.mark.slow
def test_a_stream_of_spark_with_a_restart(spark: Any, tmp_path: Path) -> None:
    """Rows come with the time that ends their group, each once, whichever start sees that time."""
    text = _select("A AS a ; B AS b PARTITION BY [k] WITHIN 20 SECONDS GROUP BY KEY, 10 SECONDS")
    query, events = ceql.compile(text), _events(random.Random(6), 240)
    folder, output = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    for number in range(3):
        part = events[number * 80 : (number + 1) * 80]
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, part)), encoding="utf-8")
        frame = spark.readStream.schema(SCHEMA).json(str(folder))
        words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(output), "tasks": 2}
        assert wait(start_tuples(query, frame, available_now=True, **words))
    with query.open() as session:
        expected = [found.row for found in session.push(events)]
    found = [row.asDict() for row in spark.read.parquet(str(output)).collect()]
    assert _sorted(found, query) == _sorted(expected, query) != []


@pytest.mark.slow
def test_groups_in_sql(spark: Any) -> None:
    register(spark)
    events = [{**event, "seq": number} for number, event in enumerate(_events(random.Random(8), 200))]
    rows = [tuple(event.values()) for event in events]
    spark.createDataFrame(rows, f"{SCHEMA}, seq long").createOrReplaceTempView("given")
    for by in ("EVENT", "KEY", "KEY, 10 SECONDS", "10 SECONDS"):
        query = ceql.compile(_select(f"A AS a ; B AS b PARTITION BY [k] WITHIN 9 SECONDS GROUP BY {by}"))
        found = spark.sql(f"SELECT * FROM ceql(TABLE(given), '{query.text}', order_by => 'seq')").toArrow().to_pylist()
        assert _sorted(found, query) == _sorted(query.run(events).to_arrow().to_pylist(), query) != []
