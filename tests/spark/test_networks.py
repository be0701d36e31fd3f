"""Networks of queries on Spark as one job: the matches of the local network, in batches and in streams."""

from __future__ import annotations

import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

import ceql
from ceql.network import Network
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError
from spaseq.spark import collect, explain_match, match, start_tuples, wait
from tests.ceql.test_network import EVENTS, LOGINS, THEFT
from tests.support.buckets import FAR, START, rows_of_buckets
from tests.support.sizes import some

pytestmark = pytest.mark.spark

SCHEMA = "type string, time long, v long, k long"


def _draw(rng: Random) -> Network:
    """Two to four queries, of which some read others; with a key in half of the networks."""
    by = " PARTITION BY [k]" if rng.random() < 0.5 else ""
    queries: dict[str, str] = {}
    for number in range(rng.randint(2, 4)):
        kinds = ["A", "B", *queries, *queries]
        one, two = rng.choice(kinds), rng.choice(kinds)
        queries[f"q{number}"] = rng.choice([
            f"SELECT x.v AS v WHERE {one} AS x ; {two} AS y FILTER y.v > x.v{by} WITHIN 4 SECONDS",
            f"SELECT NEXT x.v AS v, COUNT(y) AS n WHERE {one} AS x ; {two}+ AS y{by} WITHIN 3 SECONDS",
            f"SELECT y.v AS v WHERE {one} AS x ; {two} AS y{by} WITHIN 3 EVENTS",
            f"SELECT x.v AS v WHERE {one} AS x ; NOT {two} FOR 2 SECONDS{by}",
            f"SELECT x.v AS v WHERE {one} AS x ; NOT {two}{by} WITHIN 3 SECONDS",
            f"SELECT LAST x.v + 1 AS v WHERE {one} AS x : ANY{by} WITHIN 5 SECONDS",
        ])  # fmt: skip
    report = rng.sample(list(queries), rng.randint(1, len(queries))) if rng.random() < 0.3 else None
    return Network(queries, report=report)


def _events(rng: Random, start: int = 0) -> list[dict[str, Any]]:
    time, events = start, []
    for _ in range(rng.randint(4, 18)):
        time += rng.choice((0, 0, 1, 1, 2))
        events.append({"type": rng.choice("AAB"), "time": time, "v": rng.randint(0, 3), "k": rng.randint(0, 2)})
    return events


def _of_rows(rows: list[dict[str, Any]]) -> list[str]:
    """The names and rows of matches; all columns of other queries are NULL."""
    for row in rows:
        assert [name for name, value in row.items() if value is not None] == ["query", row["query"]]
    return sorted(str((row["query"], row[row["query"]])) for row in rows)


def _of_matches(found: Any) -> list[str]:
    """The same of a local network's matches."""
    rows = [(name, dict(match.row)) for name, match in found]
    return sorted(str(one) for one in rows)


def _compare(seed: int, spark: Any) -> int:
    rng = Random(seed)
    network, events = _draw(rng), _events(rng)
    expected = _of_matches(network.run(events))
    frame = spark.createDataFrame(events, SCHEMA).coalesce(1)
    found = collect(frame.transform(match(network, partitions=2)))
    assert _of_rows(found.to_pylist()) == expected, f"{seed}: {network.in_tables().text}\n{events}"
    return len(expected)


def test_random_networks_in_a_batch(spark: Any) -> None:
    assert sum(_compare(seed, spark) for seed in range(2)) > 1


@pytest.mark.slow
def test_many_random_networks_in_a_batch(spark: Any) -> None:
    assert sum(_compare(seed, spark) > 0 for seed in range(2, 310)) > 150


def _compare_stream(seed: int) -> int:
    rng = Random(seed)
    network, events = _draw(rng), _events(rng, START)
    session = network.open()
    expected = _of_matches(session.push(events) + session.advance(FAR))
    session.close()
    assert _of_rows(rows_of_buckets(network, events, rng)) == expected, f"{seed}: {network.in_tables().text}\n{events}"
    return len(expected)


def test_random_networks_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(some(30))) > some(30) // 2


@pytest.mark.slow
def test_many_random_networks_in_a_stream() -> None:
    assert sum(_compare_stream(seed) > 0 for seed in range(30, 900)) > 415


def test_rows_are_structs_of_each_query(spark: Any) -> None:
    network = Network({"theft": THEFT, "suspicious": LOGINS})
    frame = spark.createDataFrame(
        [(e["type"], e["user"], e["time"]) for e in EVENTS], "type string, user string, time long"
    )
    found = frame.coalesce(1).transform(match(network, partitions=2))
    assert found.columns == ["query", "suspicious", "theft"]
    rows = sorted((row.asDict() for row in found.where("query = 'theft'").select("theft.*").collect()), key=str)
    assert rows == [
        {"user": "ann", "n": 2, "took": 2, "match_start": 3, "match_end": 5},
        {"user": "bob", "n": 1, "took": 0, "match_start": 6, "match_end": 6},
    ]
    assert explain_match(network) == "partitioned by the key user: one shuffle"
    start = datetime.datetime(2026, 1, 1)
    dated = [(e["type"], e["user"], start + datetime.timedelta(seconds=e["time"])) for e in EVENTS]
    of_dates = spark.createDataFrame(dated, "kind string, user string, at timestamp").coalesce(1)
    renamed = Network({"suspicious": LOGINS, "theft": THEFT.replace(".time", ".at")}, report="theft")
    took = collect(of_dates.transform(match(renamed, type_column="kind", time="at", partitions=1)))["theft"].to_pylist()
    assert sorted(row["took"].total_seconds() for row in took) == [0, 2]


PAIR = "SELECT x.v AS v WHERE A AS x ; A AS y PARTITION BY [k] WITHIN 9 SECONDS"
SILENT = "SELECT x.v AS v WHERE A AS x ; NOT B FOR 2 SECONDS PARTITION BY [k]"
TWO = "SELECT * WHERE pair ; silent PARTITION BY [k] WITHIN 9 SECONDS"


@pytest.mark.parametrize(
    ("queries", "keys"),
    [
        ({"pair": PAIR, "next": "SELECT * WHERE pair ; B PARTITION BY [k] WITHIN 9 SECONDS"}, True),
        ({"pair": PAIR, "next": "SELECT * WHERE pair ; B WITHIN 9 SECONDS"}, False),
        ({"silent": SILENT, "next": "SELECT * WHERE silent ; B PARTITION BY [k] WITHIN 9 SECONDS"}, True),
        ({"silent": SILENT, "pair": PAIR, "two": TWO}, True),  # a match that waited is behind all of its time
        ({"pair": PAIR.replace("x.v AS v", "x.v AS k"), "next": "SELECT * WHERE pair ; B PARTITION BY [k]"}, False),
        ({"pair": PAIR.replace("x.v AS v", "k"), "next": "SELECT * WHERE pair ; B PARTITION BY [k]"}, True),
        ({"pair": PAIR + " CONSUME BY ANY", "next": "SELECT * WHERE pair ; B PARTITION BY [k]"}, False),
    ],
)  # fmt: skip
def test_keys_divide_a_network_if_no_two_keys_meet(queries: dict[str, str], keys: bool) -> None:
    told = explain_match(Network(queries))
    assert told.startswith("partitioned by the key k" if keys else "recognised in one task: the matches of a network's")


def test_what_a_network_cannot_do_on_spark_is_said(spark: Any) -> None:
    frame = spark.createDataFrame([("A", 1, 1, 1)], SCHEMA)
    network = Network({"pair": PAIR, "next": "SELECT x.v AS v WHERE pair AS x ; B WITHIN 9 SECONDS"})
    given: list[dict[str, Any]] = [{"events": True}, {"positions": True}]
    for words in given:
        with pytest.raises(OptionError, match="=True is of one query: the matches of a network's queries are events"):
            frame.transform(match(network, **words))
    for cut in ("slices", "keys and slices"):
        with pytest.raises(OptionError, match=r"a slice of time does not have all of them|no key"):
            match(network, cut=cut)
    with pytest.raises(OptionError, match="the events of a network are of one stream"):
        match(network)({"S": frame})
    with pytest.raises(OptionError, match="a query has the name Query"):
        match(Network({"Query": PAIR}))
    with pytest.raises(QuerySemanticsError, match=r"no event has an attribute w") as found:
        frame.transform(match(Network({"pair": PAIR, "next": "SELECT * WHERE pair AS x ; B FILTER x[w > 1]"})))
    assert "are type, time, v, k, match_start, match_end" in found.value.hint
    clashing = spark.createDataFrame([("pair", 1, 1, 1)], SCHEMA)
    with pytest.raises(EventError, match="pair is a query, and the type of given events"):
        collect(clashing.transform(match(network)))
    mixed = Network(
        {"pair": PAIR.replace("x.v AS v", "CAST(x.v AS TEXT) AS v"), "next": "SELECT x.v AS v WHERE (pair OR A) AS x"}
    )
    with pytest.raises(OptionError, match=r"the type of the column next.v is not known"):
        frame.transform(match(mixed))


@pytest.mark.slow
def test_a_stream_of_spark(spark: Any, tmp_path: Path) -> None:
    network = Network({"suspicious": LOGINS, "theft": THEFT})
    given = [*((e["type"], e["user"], e["time"]) for e in EVENTS), ("end", "eve", 99), ("end", "eve", 100)]
    schema = "type string, user string, time long"
    spark.createDataFrame(given, schema).coalesce(1).write.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    running = start_tuples(
        network, frame, checkpoint=str(tmp_path / "state"), output=str(tmp_path / "out"), tasks=2, available_now=True
    )
    assert wait(running)
    rows = [row.asDict(recursive=True) for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert _of_rows(rows) == _of_matches(network.run(EVENTS))
    assert ceql.Network is Network
