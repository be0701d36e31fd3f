"""Programs as a stranger writes them from the pages: an analyst with frames, and the author of a service.

Plain Python says beside each what it must find.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ceql
from ceql import adjacent, event, key, no, seq

Events = list[dict[str, Any]]
START = datetime(2026, 6, 15, 8, tzinfo=UTC)


# The analyst


def test_two_small_payments_and_a_large_one_in_a_polars_frame() -> None:
    rng, now = random.Random(1), START
    rows: Events = []
    for _ in range(200):
        now += timedelta(seconds=rng.randrange(1, 90))
        amount = rng.choice([1.5, 2.0, 3.5, 50.0, 900.0])
        rows.append({"time": now, "card": rng.choice("abcd"), "amount": amount, "shop": rng.choice("xyz")})

    first, second, large = event(), event(), event()
    query = (
        seq(first, second, large)
        .where(first.amount < 5, second.amount < 5, large.amount > 800, large.shop != second.shop)
        .over("card")
        .within("10m")
        .select(key("card"), lost=large.amount, at=large.time, took=large.time - first.time)
    )
    found = ceql.match(pl.DataFrame(rows), query)

    small = [row for row in rows if row["amount"] < 5]
    expected = [
        (c["card"], c["amount"], c["time"], c["time"] - a["time"])
        for c in rows
        for b in small
        for a in small
        if c["amount"] > 800 and a["card"] == b["card"] == c["card"] and a["time"] < b["time"] < c["time"]
        if c["shop"] != b["shop"] and c["time"] - a["time"] <= timedelta(minutes=10)
    ]
    assert expected and sorted(found.rows()) == sorted(expected)


def test_a_lazy_frame_over_a_file_is_grouped_afterwards(tmp_path: Path) -> None:
    rng = random.Random(2)
    rows = [(1000 * i, rng.choice(["s1", "s2"]), round(rng.gauss(20, 5), 1)) for i in range(2000)]
    pl.DataFrame(rows, schema=["ts", "sensor", "degrees"], orient="row").write_parquet(tmp_path / "s.parquet")
    lazy = pl.scan_parquet(tmp_path / "s.parquet").filter(pl.col("degrees") > 15)

    reading = event()
    rising = reading.where(reading.degrees > reading.prev().degrees).times(3, by="adjacent")
    query = adjacent(reading, rising).over("sensor").within("20s").select(key("sensor"), top=reading.degrees.last())
    found = ceql.match(lazy, query, time="ts", time_unit="ms")
    assert isinstance(found, pl.LazyFrame)
    counts = dict(found.group_by("sensor").agg(pl.len()).collect().rows())

    expected: dict[str, int] = defaultdict(int)
    for sensor in ("s1", "s2"):
        own = [row for row in rows if row[1] == sensor and row[2] > 15]
        for a, b, c, d in zip(own, own[1:], own[2:], own[3:], strict=False):
            expected[sensor] += a[2] < b[2] < c[2] < d[2] and d[0] - a[0] <= 20_000
    assert counts == expected


def test_a_failing_path_in_a_relation_of_duckdb() -> None:
    log = duckdb.sql("""
        SELECT i AS n, timestamp '2026-01-01' + INTERVAL (i * 7) SECOND AS time, 'GET' AS type,
            '/' || (i * i % 5) AS path, CASE WHEN i * i % 11 = 3 THEN 500 ELSE 200 END AS status
        FROM range(300) t(i)""")
    hits = ceql.match(log, """
        SELECT path, a.n AS ok, b.n AS bad WHERE GET AS a -> GET AS b FILTER a.status = 200 AND b.status = 500
        PARTITION BY [path] WITHIN 30 SECONDS""")  # fmt: skip

    rows = [(i, f"/{i * i % 5}", 500 if i * i % 11 == 3 else 200) for i in range(300)]
    expected = []
    for n, path, status in rows:
        bad = next((m for m, other, code in rows[n + 1 :] if other == path and code == 500), None)
        if status == 200 and bad is not None and (bad - n) * 7 <= 30:
            expected.append((path, n, bad))
    assert expected and sorted(hits.filter("bad > ok").fetchall()) == sorted(expected)


def test_a_pandas_frame_with_an_index_of_local_times() -> None:
    rng = random.Random(3)
    index = pd.date_range("2026-03-01", periods=200, freq="1min", tz="Europe/Paris")
    prices, symbols = [rng.randrange(90, 110) for _ in index], [rng.choice("AB") for _ in index]
    found = ceql.match(
        pd.DataFrame({"price": prices, "symbol": symbols}, index=index),
        "SELECT symbol, a.price AS low, b.price AS high, MATCH_END AS at WHERE ANY AS a ; ANY AS b "
        "FILTER b.price > a.price + 15 PARTITION BY [symbol] WITHIN 3 MINUTES",
    )

    rows = list(zip(index, prices, symbols, strict=True))
    expected = [
        (s, p, q, u)
        for i, (u, q, s) in enumerate(rows)
        for t, p, other in rows[:i]
        if s == other and q > p + 15 and u - t <= pd.Timedelta("3min")
    ]
    assert expected and sorted(found.itertuples(index=False, name=None)) == sorted(expected)


def test_the_gaps_of_a_ship() -> None:
    rng, now, times = random.Random(4), 1_443_677_401, []
    for _ in range(300):
        now += rng.choice([60, 60, 60, 700])
        times.append(now)
    beat = event()
    silent = seq(beat, no(beat, lasting="10m")).over("ship").select(since=beat.time)
    found = ceql.match(pl.DataFrame({"time": times, "ship": ["a"] * len(times)}), silent)

    gaps = [t for t, u in pairwise(times) if u - t > 600]
    assert found["since"].to_list() == [*gaps, times[-1]]


def test_one_result_in_every_kind_of_frame() -> None:
    rows: Events = [{"type": "A" if i % 3 else "B", "v": i} for i in range(30)]
    matches = ceql.compile("SELECT a.v AS x, b.v AS y WHERE A AS a : B AS b").run(rows)
    expected = [{"x": i - 1, "y": i} for i in range(3, 30, 3)]
    assert pa.table(matches).to_pylist() == expected
    assert pl.DataFrame(matches).to_dicts() == expected
    relation: Any = duckdb.sql("FROM matches")
    assert relation.fetchall() == [tuple(row.values()) for row in expected]
    assert matches.to_pandas().to_dict("records") == expected
    assert [match.row for match in matches.collect()[2:5]] == expected[2:5]
    assert len(matches.head(2)) == 2 and matches[0].row == expected[0] and matches[-1].row == expected[-1]


def test_objects_of_classes_and_rows_of_plain_times() -> None:
    @dataclass
    class Order:
        id: int
        time: datetime

    @dataclass
    class Payment:
        id: int
        time: datetime

    day = [Order(1, START), Order(2, START + timedelta(minutes=1)), Payment(1, START + timedelta(minutes=5))]
    order, payment = event("Order"), event("Payment")
    paid = seq(order, payment).where(order.id == payment.id).within("1h")
    found = ceql.match(day, paid.select(order.id, took=payment.time - order.time))
    assert found == [{"id": 1, "took": timedelta(minutes=5)}]
    assert type(found[0]["took"]) is timedelta  # as in `match.row`, and not that of pandas


def test_falls_of_a_price_in_a_network_over_a_frame() -> None:
    rng = random.Random(5)
    rows = [(rng.choice("AB"), START + timedelta(minutes=i), rng.randrange(1, 30)) for i in range(400)]
    network = ceql.Network(
        {
            "fall": "SELECT symbol, FIRST(b.close) AS top, LAST(b.close) AS bottom "
            "WHERE bar AS b : (bar AS b FILTER b.close < PREV(b.close)):{2} PARTITION BY [symbol]",
            "twice": "SELECT x.top, y.bottom WHERE fall AS x ; fall AS y "
            "FILTER x.symbol = y.symbol AND y.bottom < x.bottom WITHIN 30 MINUTES",
        },
        report=["twice"],
    )
    frame = pd.DataFrame(rows, columns=["symbol", "time", "close"])
    found = [(match.row["top"], match.row["bottom"]) for _, match in network.run(frame, type="bar")]

    falls, own = [], defaultdict(list)
    for symbol, time, close in rows:
        own[symbol].append(close)
        if len(own[symbol]) > 2 and own[symbol][-1] < own[symbol][-2] < own[symbol][-3]:
            falls.append((symbol, time, own[symbol][-3], close))
    expected = [
        (x[2], y[3])
        for i, y in enumerate(falls)
        for x in falls[:i]
        if x[0] == y[0] and y[3] < x[3] and y[1] - x[1] <= timedelta(minutes=30)
    ]
    assert expected and sorted(found) == sorted(expected)


# The author of a service


def test_a_session_that_restarts_every_fifty_events() -> None:
    fail, login = event("fail"), event("login")
    query = seq(fail.times(3, None), login).over("user").within("1m").keep("max")
    query = query.select(key("user"), n=fail.count(), at=login.time)
    rng, now = random.Random(6), START
    log: Events = []
    for _ in range(200):
        now += timedelta(seconds=rng.randrange(0, 9))
        log.append({"type": rng.choice(["fail", "fail", "login"]), "user": rng.choice("ab"), "time": now})
    session, found = query.compile().open(), []
    for number, one in enumerate(log, 1):
        found += [match.row for match in session.push(one)]
        if number % 50 == 0:
            session = ceql.compile(str(query)).open(session.snapshot())
    found += [match.row for match in session.close()]

    expected, fails = [], defaultdict(list)
    for one in log:
        if one["type"] == "fail":
            fails[one["user"]].append(one["time"])
        elif (n := sum(one["time"] - at <= timedelta(minutes=1) for at in fails[one["user"]])) >= 3:
            expected.append({"user": one["user"], "n": n, "at": one["time"]})
    assert expected and found == expected


def test_a_network_that_is_pushed_and_restarted() -> None:
    network = ceql.Network(
        {
            "burst": "SELECT MAX user, COUNT(f) AS failures WHERE fail{2,} AS f ; login "
            "PARTITION BY [user] WITHIN 1 MINUTE",
            "theft": "SELECT b.user AS who, b.failures AS tries, w.amount AS amount WHERE burst AS b ; withdraw AS w "
            "FILTER b.user = w.user AND w.amount > 100 WITHIN 2 MINUTES",
        },
        report=["theft"],
    )
    rng, now = random.Random(7), 0
    log: Events = []
    for _ in range(150):
        now += rng.randrange(1, 6)
        kind = rng.choice(["fail", "fail", "login", "withdraw"])
        log.append({"type": kind, "user": rng.choice("abc"), "amount": rng.choice([20, 200]), "time": now})
    session, found = network.open(), []
    for number, one in enumerate(log):
        found += session.push(one)
        if number in (50, 100):
            session = network.open(session.snapshot())
    found += session.close()

    expected, bursts = [], []
    for one in log:
        if one["type"] == "login":
            tries = [e for e in log if e["type"] == "fail" and e["user"] == one["user"]]
            n = sum(one["time"] - 60 <= e["time"] < one["time"] for e in tries)
            bursts += [(one["user"], n, one["time"])] if n >= 2 else []
        elif one["type"] == "withdraw" and one["amount"] > 100:
            recent = [(u, n) for u, n, at in bursts if u == one["user"] and one["time"] - at <= 120]
            expected += [(u, n, one["amount"]) for u, n in recent]
    rows = [(m.row["who"], m.row["tries"], m.row["amount"]) for _, m in found]
    assert expected and sorted(rows) == sorted(expected)
    assert sorted((m.row["who"], m.row["tries"], m.row["amount"]) for _, m in network.run(log)) == sorted(expected)


def test_late_events_are_kept_by_the_service() -> None:
    rng = random.Random(8)
    dropped: list[Any] = []
    found: list[ceql.Match] = []
    log: Events = [
        {"type": rng.choice("AB"), "n": i, "time": 100 + 2 * i - rng.choice([0, 0, 3, 30])} for i in range(150)
    ]
    query = ceql.compile("SELECT a.n AS a, b.n AS b WHERE A AS a : B AS b")
    with query.open(lateness="5s", on_late=dropped.append) as session:
        for one in log:
            found += session.push(one)
    found += session.rest

    high, late, kept = 0, [], []
    for one in log:
        if one["time"] < high - 5:
            late.append((one["n"], high - one["time"]))
        else:
            kept.append(one)
        high = max(high, one["time"])
    kept.sort(key=lambda one: one["time"])
    pairs = [(x, y) for x, y in pairwise(kept) if (x["type"], y["type"]) == ("A", "B")]
    assert [match.row for match in found] == [{"a": x["n"], "b": y["n"]} for x, y in pairs]
    assert late and [(one.event["n"], one.behind // 10**9) for one in dropped] == late
    assert session.counters.late == len(late)


def test_orders_that_time_out_over_a_restart() -> None:
    query = ceql.compile("SELECT o.id WHERE order AS o ; pay AS p ; ship AS s PARTITION BY [id] WITHIN 1 HOUR")
    rng, now = random.Random(9), START
    log: Events = []
    for i in range(60):
        now += timedelta(minutes=rng.randrange(1, 5))
        known = [one["id"] for one in log if one["type"] == "order"]
        if not known or rng.random() < 0.5:
            log.append({"type": "order", "id": i, "time": now})
        else:
            log.append({"type": rng.choice(["pay", "ship"]), "id": rng.choice(known[-3:]), "time": now})
    session, rows = query.timed_out().open(), []
    for number, one in enumerate(log):
        rows += session.push(one)
        if number == 20:
            session = query.timed_out().open(session.snapshot())
    rows += session.advance(now + timedelta(hours=2))

    hour, expected = timedelta(hours=1), []
    for order in log:
        if order["type"] == "order":
            own = [e for e in log if e["id"] == order["id"] and e["time"] - order["time"] <= hour]
            pays = [e["time"] for e in own if e["type"] == "pay"]
            ships = [e["time"] for e in own if e["type"] == "ship"]
            expected += [] if pays else [("pay AS p", order["time"], order["id"])]
            expected += [("ship AS s", at, order["id"]) for at in pays if not any(at < ship for ship in ships)]
    found = [(row["waiting_for"], row["since"], row["id"]) for row in rows]
    assert expected and sorted(found, key=str) == sorted(expected, key=str)


def test_a_folder_is_followed_as_files_arrive(tmp_path: Path) -> None:
    def write(name: str, numbers: range) -> None:
        lines = [json.dumps({"type": "AB"[i % 2], "v": i, "time": i}) for i in numbers]
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    write("1.jsonl", range(6))
    found: list[dict[str, Any]] = []
    for match in ceql.compile("SELECT a.v AS a, b.v AS b WHERE A AS a : B AS b").follow(tmp_path):
        found.append(match.row)
        if len(found) == 3:
            write("2.jsonl", range(6, 10))
        if len(found) == 5:
            break
    assert found == [{"a": i, "b": i + 1} for i in range(0, 10, 2)]


@pytest.mark.parametrize("one_by_one", [True, False])
def test_an_event_that_a_condition_refuses_does_not_harm_the_next(one_by_one: bool) -> None:
    query = ceql.compile("SELECT a.v AS x, b.v AS y WHERE A AS a ; B AS b FILTER b.v > a.v")
    session, found = query.open(), []
    for one in ({"type": "A", "v": 1}, {"type": "B", "v": "five"}, {"type": "B", "v": 5}, {"type": "B", "v": 0}):
        try:
            found += session.push(one if one_by_one else pa.Table.from_pylist([one]))
        except ceql.EventError as error:
            assert one["v"] == "five" and "a text cannot be combined with a number" in str(error)
    assert [match.row for match in found] == [{"x": 1, "y": 5}]


@pytest.mark.parametrize("events", [list, lambda rows: iter(rows)])
def test_an_event_that_is_refused_behind_others_of_its_push_stops_the_session(events: Any) -> None:
    query = ceql.compile("SELECT a.v AS x, b.v AS y WHERE A AS a ; B AS b FILTER b.v > a.v")
    session = query.open()
    session.push({"type": "A", "v": 1})
    state = session.snapshot()
    with pytest.raises(ceql.EventError, match="a text cannot be combined with a number"):
        session.push(events([{"type": "A", "v": 2}, {"type": "B", "v": "five"}]))
    with pytest.raises(ceql.OptionError, match="stopped in the middle of its work, by EventError"):
        session.push({"type": "B", "v": 5})
    assert [match.row for match in query.open(state).push({"type": "B", "v": 5})] == [{"x": 1, "y": 5}]


@pytest.mark.parametrize("of", ["a network", "partial matches"])
def test_an_event_that_is_refused_stops_sessions_of_several_queries(of: str) -> None:
    network = ceql.Network(
        {"p": "SELECT a.v AS v WHERE A AS a", "q": "SELECT * WHERE p AS a ; B AS b FILTER b.v > a.v"}
    )
    query = ceql.compile("SELECT a.v WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 10 SECONDS")
    session: Any = network.open() if of == "a network" else query.timed_out().open()
    rows = [{"type": "A", "v": 1, "time": 1}, {"type": "A", "v": 2, "time": 2}, {"type": "B", "v": "x", "time": 3}]
    with pytest.raises(ceql.EventError, match="a text cannot be combined with a number"):
        session.push(rows)
    with pytest.raises(ceql.OptionError, match="stopped in the middle of its work, by EventError"):
        session.push([{"type": "C", "v": 1, "time": 9}])


def test_a_push_that_a_condition_on_one_event_refuses_has_taken_nothing() -> None:
    query = ceql.compile("SELECT a.v AS x, b.v AS y WHERE A AS a ; B AS b FILTER a.v < 5 AND b.v > 1 WITHIN 4 SECONDS")
    session = query.open()
    session.push([{"type": "A", "v": 1, "time": 1}])
    with pytest.raises(ceql.EventError, match="a text cannot be combined with a number"):
        session.push([{"type": "A", "v": 2, "time": 2}, {"type": "B", "v": "five", "time": 90}])
    assert [match.row for match in session.push([{"type": "B", "v": 5, "time": 3}])] == [{"x": 1, "y": 5}]
