"""Partial matches that time out on Spark: the local rows, in batches, in slices and in streams."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import ceql
from spaseq.core.errors import OptionError, UnsupportedFeature
from spaseq.spark import collect, explain_match, match, start_tuples, wait
from tests.support.buckets import FAR, START, rows_of_buckets
from tests.support.sizes import some
from tests.support.timed_out_by_definition import draw, draw_events

pytestmark = pytest.mark.spark

ORDERS = """SELECT o.item AS item, COUNT(p) AS parts, s.at AS shipped
WHERE ordered AS o ; packed+ AS p ; sent AS s PARTITION BY [order] WITHIN 10 SECONDS"""
SCHEMA = "type string, time long, order string, item string, at long"
EVENTS = [
    ("ordered", 1, "a", "pen", None), ("ordered", 2, "b", "ink", None), ("packed", 3, "a", None, None),
    ("packed", 4, "a", None, None), ("sent", 5, "c", None, 5), ("ordered", 30, "d", "cap", None),
]  # fmt: skip


def _drawn(seed: int) -> tuple[Any, list[dict[str, Any]]] | None:
    """A query's partial matches that time out, and events; None if a query has none."""
    random = Random(seed)
    drawn, events = draw(random), draw_events(random)
    try:
        return ceql.compile(drawn.text).timed_out(), events
    except UnsupportedFeature:
        return None


def _local(rows: Any) -> list[Any]:
    """A row for each step and the events taken. Locally there are more if variables, which SELECT * shows there, tell
    them apart."""
    return sorted({(row["waiting_for"], row["start"], row["end"], tuple(row["positions"])) for row in rows})


def _of_spark(rows: list[Any]) -> list[Any]:
    return sorted((row["waiting_for"], row["start"], row["end"], tuple(row["positions"])) for row in rows)


def test_rows_have_the_step_the_times_the_key_and_what_select_computes(spark: Any) -> None:
    timed_out = ceql.compile(ORDERS).timed_out()
    frame = spark.createDataFrame(EVENTS, SCHEMA).coalesce(1)
    found = frame.transform(match(timed_out, partitions=2, events=True))
    assert found.columns == ["waiting_for", "since", "start_time", "order", "item", "parts", "shipped", "events"]
    table = collect(found)
    rows = sorted(table.drop_columns(["events"]).to_pylist(), key=lambda row: (row["start_time"], row["since"]))
    names = [column for column in found.columns if column != "events"]
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("sent AS s", 3, 1, "a", "pen", 1, None),
        ("sent AS s", 4, 1, "a", "pen", 1, None),
        ("sent AS s", 4, 1, "a", "pen", 2, None),
        ("packed+ AS p", 2, 2, "b", "ink", None, None),
        ("packed+ AS p", 30, 30, "d", "cap", None, None),
    ]
    assert sorted(len(events) for events in table["events"].to_pylist()) == [1, 1, 2, 2, 3]
    local = timed_out.run([dict(zip(("type", "time", "order", "item", "at"), event, strict=True)) for event in EVENTS])
    assert sorted(str(row) for row in local) == sorted(str({n: r[n] for n in timed_out.columns}) for r in rows)
    assert explain_match(timed_out) == "partitioned by the key order: one shuffle"


def _compare(seed: int, spark: Any, cut: str = "auto") -> int:
    drawn = _drawn(seed)
    if drawn is None:
        return 0
    timed_out, events = drawn
    expected = _local(timed_out.run(events))
    frame = spark.createDataFrame(events, "type string, time long, x long, k long").coalesce(1)
    found = collect(frame.transform(match(timed_out, positions=True, partitions=2, cut=cut)))
    assert _of_spark(found.to_pylist()) == expected, f"{seed}\n{timed_out._query.text}\n{events}"
    return len(expected)


def test_random_sequences_in_a_batch(spark: Any) -> None:
    assert sum(_compare(seed, spark) for seed in range(3)) > 1


@pytest.mark.slow
def test_many_random_sequences_in_a_batch(spark: Any) -> None:
    assert sum(_compare(seed, spark) > 0 for seed in range(3, 220)) > 60


def _compare_stream(seed: int) -> int:
    """The number of rows of a stream in micro-batches; they are those of a session that is advanced."""
    drawn = _drawn(seed)
    if drawn is None:
        return 0
    timed_out, events = drawn
    timed = [{**event, "time": event["time"] + START, "number": number} for number, event in enumerate(events)]
    with timed_out.open() as session:
        expected = _local(session.push(timed) + session.advance(FAR))
        session.close()
    rows = rows_of_buckets(timed_out, timed, Random(seed), ("number",))
    numbered = [(row["waiting_for"], tuple(event["number"] for event in row["events"])) for row in rows]
    assert sorted(numbered) == sorted((step, positions) for step, *_, positions in expected), f"{seed}"
    return len(expected)


def test_random_sequences_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(some(40))) > some(40) // 4


@pytest.mark.slow
def test_many_random_sequences_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(40, 600)) > 150


def test_what_has_no_steps_and_what_is_unknown_is_refused(spark: Any) -> None:
    with pytest.raises(UnsupportedFeature, match="a query without WITHIN"):
        ceql.compile("SELECT * WHERE A ; B").timed_out()
    frame = spark.createDataFrame([], "type string, time long")
    timed_out = ceql.compile("SELECT x.v AS v WHERE A AS x ; B AS y WITHIN 3 EVENTS").timed_out()
    with pytest.raises(ceql.QuerySemanticsError, match="no event has an attribute v"):
        frame.transform(match(timed_out))
    with pytest.raises(OptionError, match="a window in EVENTS counts all events"):
        match(timed_out, cut="slices")


@pytest.mark.slow
def test_a_stream_of_spark(spark: Any, tmp_path: Path) -> None:
    """And another query's checkpoint is refused: that of the matches is not that of the partial ones."""
    query = ceql.compile(ORDERS)
    (tmp_path / "in").mkdir()
    spark.createDataFrame([*EVENTS, ("end", 99, "e", None, None), ("end", 100, "e", None, None)], SCHEMA).coalesce(
        1
    ).write.mode("overwrite").parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    words: dict[str, Any] = {"checkpoint": str(tmp_path / "state"), "output": str(tmp_path / "out"), "tasks": 2}
    assert wait(start_tuples(query.timed_out(), frame, available_now=True, **words))
    assert spark.read.parquet(str(tmp_path / "out")).count() == 5
    with pytest.raises(OptionError, match="query"):
        start_tuples(query, frame, available_now=True, **words)
