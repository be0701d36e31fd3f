"""The tasks that newcomers came with, answered by CEQL, and by pandas or DuckDB on the same tables."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import ceql

START = pd.Timestamp("2026-03-01T08:00:00Z")


def rows(text: str, events: Any, **reading: Any) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    found = ceql.compile(text).run(events, **reading).to_pandas()
    return sorted_rows(found)


def sorted_rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.itertuples(index=False)), key=repr)


def ask(text: str, **tables: Any) -> pd.DataFrame:
    """DuckDB's answer over these tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        return connection.execute(text).df()


def visits(seed: int, count: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    gaps = draw.choice([20, 300, 1799, 1801, 4000], count)
    frame = pd.DataFrame({
        "time": START + pd.to_timedelta(np.cumsum(gaps // 4), unit="s"), "type": "view",
        "visitor": draw.choice(["v1", "v2", "v3", "v4"], count), "page": draw.choice(["home", "lamp", "chair"], count),
    })  # fmt: skip
    return frame


@pytest.mark.parametrize("seed", [1, 2])
def test_sessions_by_a_gap(seed: int) -> None:
    frame = visits(seed)
    found = rows(
        "SELECT NEXT visitor, COUNT(v) AS pages, (v.time - FIRST(v.time)) / 1 SECOND AS stay, FIRST(v.page) AS entry, "
        "v.page AS exit "
        "WHERE (view AS v FILTER v.time - PREV(v.time) <= 30 MINUTES):+ : view AS z "
        "FILTER z.time - LAST(v.time) > 30 MINUTES PARTITION BY [visitor]", frame)  # fmt: skip
    frame["session"] = frame.groupby("visitor").time.diff().gt(pd.Timedelta(minutes=30)).groupby(frame.visitor).cumsum()
    grouped = frame.groupby(["visitor", "session"]).agg(
        pages=("page", "size"), first=("time", "min"), last=("time", "max"), entry=("page", "first"),
        exit=("page", "last"))  # fmt: skip
    grouped["stay"] = (grouped["last"] - grouped["first"]).dt.total_seconds()
    over = grouped.reset_index()
    over = over[over.session < over.groupby("visitor").session.transform("max")]  # the last one is still open
    assert len(over) > 20 and found == sorted_rows(over[["visitor", "pages", "stay", "entry", "exit"]])


@pytest.mark.parametrize("seed", [3, 4])
def test_failures_and_their_addresses_before_a_success(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = 300
    frame = pd.DataFrame({
        "time": START + pd.to_timedelta(np.cumsum(draw.integers(1, 200, count)), unit="s"),
        "type": draw.choice(["fail", "fail", "login"], count), "user": draw.choice(["a", "b", "c"], count),
        "ip": draw.choice(["x", "y", "z"], count),
    })  # fmt: skip
    found = rows(
        "SELECT MAX user, COUNT(f) AS failures, COUNT(DISTINCT f.ip) AS addresses, ok.time - FIRST(f.time) AS took "
        "WHERE fail{2,} AS f ; login AS ok PARTITION BY [user] WITHIN 10 MINUTES", frame)  # fmt: skip
    wanted = ask(
        """
        SELECT ok."user", count(*) AS failures, count(DISTINCT f.ip) AS addresses, ok.time - min(f.time) AS took
        FROM frame ok JOIN frame f ON f."user" = ok."user" AND f.type = 'fail' AND f.time < ok.time
            AND f.time >= ok.time - INTERVAL 10 MINUTE
        WHERE ok.type = 'login' GROUP BY ok."user", ok.time HAVING count(*) >= 2""",
        frame=frame,
    )
    assert len(wanted) > 10 and found == sorted_rows(wanted)


def test_drops_of_five_percent_within_a_minute() -> None:
    draw = np.random.default_rng(5)
    count = 300
    frame = pd.DataFrame({
        "time": START + pd.to_timedelta(np.cumsum(draw.integers(1, 20, count)), unit="s"), "type": "tick",
        "symbol": draw.choice(["A", "B"], count), "price": np.round(100 * np.exp(draw.normal(0, 0.04, count)), 2),
    })  # fmt: skip
    found = rows(
        "SELECT symbol, a.price AS high, b.price AS low, ROUND(100 * (a.price - b.price) / a.price, 3) AS percent "
        "WHERE tick AS a ; tick AS b FILTER b.price <= a.price * 0.95 PARTITION BY [symbol] WITHIN 1 MINUTE",
        frame)  # fmt: skip
    wanted = ask(
        """
        SELECT a.symbol, a.price AS high, b.price AS low, round(100 * (a.price - b.price) / a.price, 3) AS percent
        FROM frame a JOIN frame b ON a.symbol = b.symbol AND a.time < b.time AND b.time <= a.time + INTERVAL 1 MINUTE
        WHERE b.price <= a.price * 0.95""",
        frame=frame,
    )
    assert len(wanted) > 50 and found == sorted_rows(wanted)


def test_three_rising_readings_of_a_european_file(tmp_path: Path) -> None:
    draw = np.random.default_rng(6)
    count = 200
    times = START.tz_localize(None) + pd.to_timedelta(np.arange(count), unit="min")
    frame = pd.DataFrame({"time": times, "sensor": draw.choice(["s1", "s2"], count),
                          "value": np.round(draw.normal(1500, 40, count), 1)})  # fmt: skip
    file = tmp_path / "readings.csv"
    lines = ["Zeit;Sensor;Wert"]
    for row in frame.itertuples():
        number = f"{row.value:,.1f}".replace(",", " ").replace(".", ",").replace(" ", ".")
        lines.append(f"{row.time:%d.%m.%Y %H:%M};{row.sensor};{number}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = rows(
        "SELECT Sensor, ROUND((a.Wert + b.Wert + c.Wert) / 3, 4) AS mean, c.Wert AS last "
        "WHERE ANY AS a : ANY AS b : ANY AS c FILTER b.Wert > a.Wert AND c.Wert > b.Wert PARTITION BY [Sensor]",
        str(file), time="Zeit", time_format="%d.%m.%Y %H:%M")  # fmt: skip
    wanted = []
    for sensor, own in frame.groupby("sensor"):
        values = own.value.tolist()
        wanted += [(sensor, round(sum(three) / 3, 4), three[2])
                   for three in zip(values, values[1:], values[2:], strict=False)
                   if three[0] < three[1] < three[2]]  # fmt: skip
    assert len(wanted) > 10
    assert [(s, pytest.approx(m), v) for s, m, v in sorted(wanted, key=repr)] == found


def test_the_longest_fall_of_bars_without_a_type() -> None:
    draw = np.random.default_rng(7)
    count = 250
    frame = pd.DataFrame({"time": START + pd.to_timedelta(np.arange(count), unit="min"),
                          "symbol": draw.choice(["A", "B", "C"], count),
                          "close": draw.integers(10, 40, count)})  # fmt: skip
    found = (
        ceql.compile(
            "SELECT NEXT symbol, COUNT(b) AS bars, FIRST(b.close) - b.close AS fall "
            "WHERE (ANY AS b FILTER b.close < PREV(b.close)):+ PARTITION BY [symbol]"
        )
        .run(frame)
        .to_arrow()
    )
    longest = ask("SELECT symbol, max(bars) AS bars FROM found GROUP BY symbol", found=found)
    wanted = []
    for symbol, own in frame.groupby("symbol"):
        falls = own.close.diff().lt(0).tolist()
        runs = [1 + sum(1 for _ in group) for falling, group in itertools.groupby(falls) if falling]
        wanted.append((symbol, max(runs)))
    assert sorted_rows(longest) == sorted(wanted, key=repr)


def test_orders_and_their_payments_in_two_tables() -> None:
    draw = np.random.default_rng(8)
    orders = pd.DataFrame({"time": START + pd.to_timedelta(np.arange(100), unit="h"), "id": np.arange(100),
                           "amount": draw.integers(5, 50, 100)})  # fmt: skip
    paid = orders.sample(70, random_state=1).sort_values("id")
    payments = pd.DataFrame({"time": paid.time + pd.to_timedelta(draw.integers(1, 120, 70), unit="h"), "id": paid.id})
    payments = payments.sort_values("time")
    query = ceql.compile("SELECT id, o.amount, (p.time - o.time) / 1 HOUR AS hours "
                         "WHERE order AS o ; payment AS p PARTITION BY [id] WITHIN 3 DAYS")  # fmt: skip
    found = sorted_rows(query.run(types={"order": orders, "payment": payments}).to_pandas())
    wanted = ask(
        """
        SELECT o.id, o.amount, date_diff('hour', o.time, p.time)::DOUBLE AS hours
        FROM orders o JOIN payments p ON o.id = p.id WHERE p.time <= o.time + INTERVAL 3 DAY""",
        orders=orders,
        payments=payments,
    )
    assert len(wanted) > 20 and found == sorted_rows(wanted)
    late = ceql.compile("SELECT id, o.amount WHERE order AS o ; NOT payment PARTITION BY [id] WITHIN 3 DAYS")
    unpaid = sorted_rows(late.run(types={"order": orders, "payment": payments}).to_pandas())
    assert unpaid == sorted_rows(orders[~orders.id.isin(wanted.id)][["id", "amount"]])
