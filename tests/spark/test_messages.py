"""Messages with the columns of Kafka: JSON and RDF taken apart; those that cannot be read named, counted, put aside.

`tests/spark/kafka` has the same with a broker.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from spaseq.core.errors import EventError, OptionError
from spaseq.spark import dead_letters, parse_json, parse_rdf, progress, start, start_tuples, wait
from tests.spark.test_streams import HEAT

pytestmark = pytest.mark.spark

COLUMNS = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
SCHEMA = "time long NOT NULL, type string NOT NULL, price double"
WORSE: dict[str | None, str] = {
    "nonsense": "not a JSON object with time bigint, type string, price double: nonsense",
    "": "not a JSON object",
    "null": "not a JSON object",
    "[1]": "not a JSON object",
    '{"time": 1, "type": "A"} x': "not a JSON object",
    '{"time": 1, "type": "A"}, {"time": 1, "type": "A"}': "not a JSON object",
    '{"time": 1, "type": "A"}{"time": 1, "type": "A"}': "not a JSON object",
    "{'time': 1, 'type': 'A'}": "not a JSON object",
    '{"time": "noon", "type": "A"}': "not a JSON object",
    '{"time": 1, "type": "A", "price": "much"}': "not a JSON object",
    '{"time": 1': "not a JSON object",
    '{"type": "A"}': "it has no time",
    '{"time": 1, "type": null}': "it has no type",
}


def _messages(spark: Any, *texts: str | None) -> Any:
    rows = [(b"k", None if t is None else t.encode(), "trades", 1, 7 + n, None) for n, t in enumerate(texts)]
    return spark.createDataFrame(rows, COLUMNS)


def _stream(spark: Any, path: Path, frame: Any) -> Any:
    frame.coalesce(1).write.mode("append").parquet(str(path))
    return spark.readStream.schema(COLUMNS).parquet(str(path))


def test_json_is_read_or_it_is_said_why_not(spark: Any) -> None:
    good = {
        '{"time": 1, "type": "A"}': (1, "A", None),
        ' {"price": 2, "type": "B", "more": [], "time": 3} ': (3, "B", 2.0),
    }
    messages = _messages(spark, *good, None, *WORSE)
    rows = parse_json(messages, SCHEMA).collect()
    assert [(r.time, r.type, r.price, r.spaseq_malformed) for r in rows[: len(good)]] == [
        (*v, None) for v in good.values()
    ]
    assert len(rows) == len(good) + len(WORSE)  # what has no value is no message
    for number, (row, why) in enumerate(zip(rows[len(good) :], WORSE.values(), strict=True)):
        assert row.spaseq_malformed.startswith(f"topic trades, partition 1, offset {10 + number}: {why}"), row
    bare = parse_json(messages.select("value"), SCHEMA).collect()[2]
    assert bare.spaseq_malformed.startswith("not a JSON object")
    dead = dead_letters(messages, schema=SCHEMA)
    assert dead.columns == [*messages.columns, "error"]
    assert [(bytes(r.value).decode(), r.offset) for r in dead.collect()] == [(t, 10 + n) for n, t in enumerate(WORSE)]


def test_dead_letters_of_rdf_are_what_cannot_be_read(spark: Any) -> None:
    messages = _messages(spark, "<a:a> <a:b> <a:c> .", None, "", "nonsense", "<a:a> <a:b> .")
    rows = dead_letters(messages, format="nt").collect()
    assert [(r.offset, bytes(r.value)) for r in rows] == [(10, b"nonsense"), (11, b"<a:a> <a:b> .")]
    assert all(r.error.startswith(f"topic trades, partition 1, offset {r.offset}:1: ") for r in rows)
    with pytest.raises(OptionError, match="no column body"):
        dead_letters(messages, format="nt", column="body")
    with pytest.raises(OptionError, match="format=, as parse_rdf has it, or schema="):
        dead_letters(messages)
    with pytest.raises(OptionError, match="schema time lonk: "):
        parse_json(messages, "time lonk")


def _tuples(spark: Any, path: Path, malformed: str, *texts: str) -> Any:
    """The positions of the matches, and what was counted."""
    raw = _stream(spark, path / "in", _messages(spark, *texts))
    tuples = parse_json(
        raw.select("value", "topic", "partition", "offset"), SCHEMA.replace("time long NOT NULL", "time string")
    )
    running = start_tuples(
        ceql.compile("SELECT * FROM S WHERE A; B WITHIN 9 EVENTS"), tuples, checkpoint=str(path / "state"),
        output=str(path / "out"), format="json", malformed=malformed, tasks=1, available_now=True, events=True,
    )  # fmt: skip
    wait(running)
    return progress(running)


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_stream_of_tuples_goes_on_behind_bad_messages(again: bool, spark: Any, tmp_path: Path) -> None:
    """Also in the next batch, from a checkpoint, which is slow; a time that cannot be read is malformed, too."""
    first = ['{"time": "1", "type": "A"}', "nonsense", '{"time": "noon", "type": "B"}', '{"time": "2", "type": "B"}']
    if not again:
        first += ['{"time": "9", "type": "C"}']
    assert _tuples(spark, tmp_path, "drop", *first)["malformed"] == 2
    if not again:
        assert [list(row.time) for row in _written(spark, tmp_path)] == [["1", "2"]]
        return
    found = _tuples(spark, tmp_path, "drop", '{"time": "3", "type": "B"}', "[]", '{"time": "9", "type": "C"}')
    assert (found["malformed"], found["events"]) == (3, 4)
    assert sorted(list(row.time) for row in _written(spark, tmp_path)) == [["1", "2"], ["1", "3"]]


def _written(spark: Any, path: Path) -> Any:
    return spark.read.json(str(path / "out")).select("events.time").collect()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "a message cannot be read: topic trades, partition 1, offset 8: not a JSON object"),
        pytest.param(
            '{"time": "noon", "type": "A"}',
            "topic trades, partition 1, offset 8: 'noon' is not a time",
            marks=pytest.mark.slow,  # such a time is quick where it is dropped
        ),
    ],
)
def test_a_bad_message_stops_a_stream_of_tuples_and_is_named(text: str, said: str, spark: Any, tmp_path: Path) -> None:
    with pytest.raises(EventError) as found:
        _tuples(spark, tmp_path, "error", '{"time": "1", "type": "A"}', text)
    assert said in str(found.value) and 'malformed="drop"' in str(found.value)
    with pytest.raises(OptionError, match="malformed quarantine: not one of error, drop"):
        _tuples(spark, tmp_path, "quarantine", text)


def test_a_bad_message_in_a_batch_of_tuples_is_named(spark: Any) -> None:
    frame = parse_json(_messages(spark, '{"time": 1, "type": "A"}', "nonsense", '{"time": 2, "type": "B"}'), SCHEMA)
    query = ceql.compile("SELECT * FROM S WHERE A; B WITHIN 9 EVENTS")
    with pytest.raises(EventError, match="topic trades, partition 1, offset 8: not a JSON object"):
        spaseq.spark.collect(spaseq.spark.match(query)(frame))
    found = spaseq.spark.collect(spaseq.spark.match(query, positions=True)(frame.where("spaseq_malformed IS NULL")))
    assert found["positions"].to_pylist() == [[0, 1]]


@pytest.mark.parametrize("malformed", ["error", pytest.param("drop", marks=pytest.mark.slow)])
def test_a_bad_message_of_rdf_is_named(malformed: str, spark: Any, tmp_path: Path) -> None:
    """In a stream of graphs, whose recipe is that of docs/spark.md. Going on behind it is slow:
    tuples do so, too."""
    frame = _messages(spark, '<a:a> <http://example.org/heat> "1" .', "nonsense")
    raw = _stream(spark, tmp_path / "in", frame)
    quads = parse_rdf(raw.selectExpr("value", "topic", "partition", "offset", "offset AS time",
                                     "concat('<m:', offset, '>') AS graph"), format="nt")  # fmt: skip
    running = start(HEAT, spark, {"S": quads}, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"),
                    available_now=True, tasks=1, malformed=malformed)  # fmt: skip
    if malformed == "error":
        with pytest.raises(EventError, match="cannot be read: topic trades, partition 1, offset 8:1: not N-Triples"):
            wait(running)
    else:
        wait(running)
        assert progress(running)["malformed"] == 1
