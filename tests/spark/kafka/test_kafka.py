"""The recipes of docs/spark.md with a broker: messages in, matches out to a topic and to files, and bad messages."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import ceql
import spaseq
import spaseq.spark
from spaseq.core.errors import EventError
from tests.spark.kafka.broker import Broker, artifacts, connected
from tests.spark.kafka.messages import messages_of, quads_of
from tests.spark.kill_streams import QUERY, streams_of, write_streams
from tests.support.fences import ROOT, fences

pytestmark = pytest.mark.spark

FIELDS = "time long NOT NULL, type string NOT NULL, name string, price double"
TEXT = "SELECT * FROM trades WHERE (SELL; BUY) FILTER BUY[price > 20] WITHIN 8 [time] PARTITION BY [name]"


@pytest.fixture(scope="module")
def broker(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    connected(spark)
    made = Broker(tmp_path_factory.mktemp("broker"))
    made.start()
    yield made
    made.kill()


def send(spark: Any, broker: Broker, topic: str, messages: Sequence[tuple[str, str]]) -> None:
    """Messages of (key, value), in order of time in each partition; the partition is the key's."""
    frame = spark.createDataFrame(list(messages), "key string, value string").coalesce(1)
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("topic", topic).save()


def make(spark: Any, broker: Broker, *topics: str) -> None:
    """Topics with one message without a value, which `received` leaves out, before several tasks write to them.

    Where two tasks make a topic by writing to it and the broker is slow to answer (it was stopped for 20 s), Kafka's
    client may never learn who leads a partition, and gives up after its delivery time-out: 120 s.
    """
    for topic in topics:
        frame = spark.createDataFrame([("made", None)], "key string, value string").coalesce(1)
        frame.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("topic", topic).save()


def received(spark: Any, broker: Broker, topic: str) -> Any:
    """All that is in a topic."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").load().where("value IS NOT NULL")


def trades(seed: int, first: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    times = (first + number // 3 for number in range(count))
    return [{"time": t, "type": rng.choice(["SELL", "BUY"]), "name": rng.choice("abc"), "price": rng.uniform(10, 30)}
            for t in times]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("turns", [1, 2])
def test_tuples_as_json_into_a_topic(turns: int, spark: Any, broker: Broker, tmp_path: Path) -> None:
    """Messages that are no trades are put aside. Before a second start of the query the broker is killed, which is
    slow."""
    trades_in, found_in, dead_in = (f"{name}-{turns}" for name in ("trades", "found", "dead"))
    query = ceql.compile(TEXT)
    every: list[dict[str, Any]] = []
    bad = ["{", '{"time": "noon", "type": "BUY"}', '{"type": "BUY"}']
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", trades_in)
        .option("startingOffsets", "earliest")
        .load()
    )
    tuples = spaseq.spark.parse_json(raw.select("value", "topic", "partition", "offset"), FIELDS)

    def run() -> dict[str, int]:
        running = spaseq.spark.start_tuples(
            query, tuples, checkpoint=str(tmp_path / "state"), tasks=2, available_now=True, malformed="drop",
            events=True, format="kafka", output=found_in, sink={"kafka.bootstrap.servers": broker.servers},
        )  # fmt: skip
        spaseq.spark.wait(running)
        return spaseq.spark.progress(running)

    make(spark, broker, found_in, dead_in)
    for turn in range(turns):
        part = trades(turn, 100 * turn, 60)
        every += part
        ends = [{"time": 100 * turn + 50, "type": "END", "name": name} for name in "abc"]
        every += ends
        sent = [(row["name"], json.dumps(row)) for row in (*part, *ends)]
        send(spark, broker, trades_in, [*sent[:30], *(("a", text) for text in bad), *sent[30:]])
        told = run()
        if turn + 1 < turns:
            broker.kill()
            broker.start()
    assert told["malformed"] == turns * len(bad)
    found = [json.loads(row.value) for row in received(spark, broker, found_in).selectExpr("string(value)").collect()]
    names = ("time", "type", "name", "price")
    table = pa.table({name: [row.get(name) for row in every] for name in names})
    expected = [[dict(e) for e in match.events] for match in query.run(table)]
    shown = [[{name: e.get(name) for name in names} for e in row["events"]] for row in found]
    assert sorted(map(str, shown)) == sorted(str([{n: e.get(n) for n in names} for e in m]) for m in expected) != []
    keys = [row.key for row in received(spark, broker, found_in).select("key").collect()]
    assert len(set(map(bytes, keys))) == len(found)

    dead = spaseq.spark.dead_letters(raw, schema=FIELDS)
    letters = dead.select("key", "value", F.expr("array(named_struct('key', 'error', 'value', cast(error AS binary)))")
                          .alias("headers"))  # fmt: skip
    writing = (
        letters.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("topic", dead_in)
        .option("checkpointLocation", str(tmp_path / "dead"))
        .trigger(availableNow=True)
        .start()
    )
    assert spaseq.spark.wait(writing)
    put = [row.value for row in received(spark, broker, dead_in).selectExpr("string(value)").collect()]
    assert sorted(put) == sorted(turns * bad)


@pytest.mark.slow
def test_graphs_as_nquads_into_files(spark: Any, broker: Broker, tmp_path: Path) -> None:
    """The broker is killed while the query runs; a message that is no RDF is named, or dropped and counted."""
    write_streams(tmp_path, 240)
    messages = messages_of(tmp_path)
    send(spark, broker, "graphs", [("k", text) for text in (*messages, "nonsense")])
    query = spaseq.compile(QUERY)
    options = {"kafka.bootstrap.servers": broker.servers, "subscribe": "graphs", "startingOffsets": "earliest",
               "maxOffsetsPerTrigger": "60"}  # fmt: skip
    quads = quads_of(spark.readStream.format("kafka").options(**options).load())
    words: dict[str, Any] = {"output": str(tmp_path / "out"), "tasks": 2, "available_now": True}
    with pytest.raises(EventError, match=r"topic graphs, partition \d, offset 482:1: not N-Quads"):
        spaseq.spark.wait(
            spaseq.spark.start(query, spark, quads, checkpoint=str(tmp_path / "a"), malformed="error", **words)
        )
    words["output"] = str(tmp_path / "dropped")
    running = spaseq.spark.start(query, spark, quads, checkpoint=str(tmp_path / "b"), malformed="drop", **words)
    while not spaseq.spark.progress(running):
        assert not spaseq.spark.wait(running, 0.2)
    broker.kill()
    broker.start()
    spaseq.spark.wait(running)
    assert spaseq.spark.progress(running)["malformed"] == 1
    rows = spark.read.parquet(str(tmp_path / "dropped")).select("start", "end", "positions", *query.variables)
    local = query.run(streams_of(tmp_path)).to_arrow().select(["start", "end", "positions", *query.variables])
    assert sorted(map(str, rows.toArrow().to_pylist())) == sorted(map(str, local.to_pylist())) != []


@pytest.mark.slow
def test_the_recipes_of_the_guide(spark: Any, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of docs/spark.md that need a broker, as they stand."""
    monkeypatch.chdir(tmp_path)
    part = trades(5, 0, 30)
    send(spark, broker, "trades-in", [*((row["name"], json.dumps(row)) for row in part), ("a", "no trade")])
    line = '<http://example.org/s1> <http://example.org/heat> "21"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    for topic in ("power", "storage"):
        send(spark, broker, topic, [("k", line)] * 3)
    names: dict[str, Any] = {
        "spark": spark, "ceql": ceql, "spaseq": spaseq, "text": TEXT, "kb": {},
        "query": QUERY.replace("PARTITION BY (?s) ", ""),
    }  # fmt: skip
    blocks = [fence for fence in fences(ROOT / "docs" / "spark.md") if "a broker" in fence.options.get("norun", "")]
    assert len(blocks) == 3
    started = []
    make(spark, broker, "matches", "dead")
    try:
        for fence in blocks:
            text = fence.text.replace('"…"', repr(broker.servers)).replace('"trades"', '"trades-in"')
            text = text.replace('"dead-state"', repr(str(tmp_path / "dead-state")))
            exec(compile("\n" * (fence.line - 1) + text, str(fence.page), "exec"), names)
            for running in spark.streams.active:
                running.processAllAvailable()
                started.append(spaseq.spark.progress(running))
                running.stop()
    finally:
        for running in spark.streams.active:
            running.stop()
    tuples, letters, graphs = started
    assert (tuples["events"], tuples["malformed"], letters, graphs["events"]) == (len(part), 1, {}, 6)
    assert received(spark, broker, "dead").where("cast(value AS string) = 'no trade'").count() == 1
    assert tuples["matches"] == received(spark, broker, "matches").count() > 0


def test_without_maven_the_reason_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing to be had: Maven is not there, or gets nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"no Maven \(mvn\), which fetches Kafka"):
        artifacts.__wrapped__("broker")
    (tmp_path / "mvn").write_text("#!/bin/sh\necho '[ERROR] Could not transfer artifact'\nexit 1\n")
    (tmp_path / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(pytest.skip.Exception, match=r"does not get the broker for Kafka: .*Could not transfer"):
        artifacts.__wrapped__("broker")
