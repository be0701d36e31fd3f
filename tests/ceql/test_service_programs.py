"""More programs as strangers write them from the pages: networks in frames, rows as objects, services that restart.

Plain Python says beside each what it must find.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
import pyarrow.compute as pc

import ceql
from spaseq.live import FileSink, LogSource, match_id

Events = list[dict[str, Any]]
START = datetime(2026, 6, 15, 8, tzinfo=UTC)


# The analyst


def test_where_baskets_are_left_counted_by_duckdb() -> None:
    rng, now = random.Random(11), START
    rows: Events = []
    for _ in range(300):
        now += timedelta(seconds=rng.randrange(1, 40))
        rows.append({"type": rng.choice(["view", "view", "cart", "pay"]), "user": rng.choice("abcdef"), "time": now})
    query = ceql.compile("SELECT * WHERE view -> cart -> pay PARTITION BY [user] WITHIN 2 MINUTES")
    baskets = query.timed_out().run(pl.DataFrame(rows))
    grouped = duckdb.sql("SELECT waiting_for, count(*) FROM baskets GROUP BY waiting_for")
    assert grouped is not None
    counts = dict(grouped.fetchall())
    assert dict(baskets.to_polars()["waiting_for"].value_counts().rows()) == counts

    expected = Counter[str]()
    for number, view in enumerate(rows):
        if view["type"] != "view":
            continue
        wanted = ["cart", "pay"]
        for event in rows[number + 1 :]:
            if event["time"] - view["time"] > timedelta(minutes=2) or not wanted:
                break
            if (event["user"], event["type"]) == (view["user"], wanted[0]):
                del wanted[0]
        if wanted:
            expected[wanted[0]] += 1
    assert len(expected) == 2 and counts == expected


def test_a_network_over_a_polars_frame_gives_a_frame_of_each_query() -> None:
    rng = random.Random(12)
    frame = pl.DataFrame(
        {
            "type": "reading",
            "time": [START + timedelta(seconds=10 * i) for i in range(400)],
            "pump": [rng.choice("xyz") for _ in range(400)],
            "bar": [rng.choice([2.0, 2.5, 3.0, 7.5, 8.0]) for _ in range(400)],
        }
    )
    network = ceql.Network(
        {
            "jump": "SELECT pump, b.bar - a.bar AS rise, b.time WHERE reading AS a ; reading AS b "
            "FILTER b.bar - a.bar > 4 PARTITION BY [pump] WITHIN 1 EVENTS",
            "shaky": "SELECT pump, COUNT(j) AS jumps, SUM(j.rise) AS total WHERE jump{3} AS j "
            "PARTITION BY [pump] WITHIN 10 MINUTES",
        }
    )
    matches = network.run(frame)
    jumps, shaky = matches.of("jump").to_polars(), matches.of("shaky").to_polars()

    expected: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    for (pump,), own in frame.group_by("pump", maintain_order=True):
        for a, b in pairwise(own.iter_rows(named=True)):
            if b["bar"] - a["bar"] > 4:
                expected[str(pump)].append((b["time"], b["bar"] - a["bar"]))
    found = sorted(zip(jumps["pump"], jumps["time"], jumps["rise"], strict=True))
    assert found == sorted((pump, *one) for pump, own in expected.items() for one in own) and len(found) > 20
    triples = [
        (pump, 3, a[1] + b[1] + c[1])
        for pump, own in expected.items()
        for i, a in enumerate(own)
        for j, b in enumerate(own[i + 1 :], i + 1)
        for c in own[j + 1 :]
        if c[0] - a[0] <= timedelta(minutes=10)
    ]
    assert triples and sorted(shaky.select("pump", "jumps", "total").rows()) == sorted(triples)
    everything = matches.to_polars()
    assert dict(everything["query"].value_counts().rows()) == {"jump": len(found), "shaky": len(triples)}
    assert everything.filter(pl.col("query") == "jump")["jumps"].is_null().all() and matches.count() == len(everything)


def test_ships_that_leave_a_circle_by_a_function_over_arrays() -> None:
    def from_port(x: Any, y: Any) -> Any:
        return pc.sqrt(pc.add(pc.multiply(x, x), pc.multiply(y, y)))

    ceql.register_function("FROM_PORT", from_port, vectorized=True, replace=True)
    rng, where = random.Random(13), {"a": [0.0, 0.0], "b": [3.0, 0.0]}
    rows: list[tuple[int, str, float, float]] = []
    for time in range(300):
        ship = rng.choice("ab")
        where[ship] = [p + rng.choice([-1.0, 0.0, 1.0]) for p in where[ship]]
        rows.append((time, ship, *where[ship]))  # type: ignore[arg-type]
    frame = pl.DataFrame(rows, schema=["time", "ship", "x", "y"], orient="row")
    out = ceql.match(frame, """
        SELECT ship, b.time AS left, CASE WHEN FROM_PORT(b.x, b.y) > 4 THEN 'far' ELSE 'near' END AS zone
        WHERE ANY AS a ; ANY AS b FILTER FROM_PORT(a.x, a.y) <= 3 AND FROM_PORT(b.x, b.y) > 3
        PARTITION BY [ship] WITHIN 1 EVENTS""")  # fmt: skip

    expected = []
    for ship in "ab":
        for (*_, x, y), (time, _, u, v) in pairwise(row for row in rows if row[1] == ship):
            if (x * x + y * y) ** 0.5 <= 3 < (u * u + v * v) ** 0.5:
                expected.append((ship, time, "far" if (u * u + v * v) ** 0.5 > 4 else "near"))
    assert expected and sorted(out.rows()) == sorted(expected)


# The author of a service


@dataclass(frozen=True)
class Burst:
    user: str
    failures: int
    took: timedelta


class Theft(NamedTuple):
    user: str
    amount: float | None


def test_a_service_with_a_queue_and_rows_as_objects() -> None:
    rng, now = random.Random(14), START
    log: Events = []
    for _ in range(250):
        now += timedelta(seconds=rng.randrange(0, 20))
        kind = rng.choice(["fail", "fail", "login", "wire"])
        log.append({"type": kind, "user": rng.choice("abc"), "time": now})
        if kind == "wire":
            log[-1]["amount"] = rng.choice([None, 10.5, 99.0])
    network = ceql.Network(
        {
            "burst": "SELECT MAX user, COUNT(f) AS failures, LAST(f.time) - FIRST(f.time) AS took "
            "WHERE fail{2,} AS f ; login PARTITION BY [user] WITHIN 1 MINUTE",
            "theft": "SELECT user, w.amount AS amount WHERE burst ; wire AS w PARTITION BY [user] WITHIN 30 SECONDS",
        }
    )

    async def serve() -> tuple[list[Burst], list[Theft]]:
        queue = asyncio.Queue[dict[str, Any] | None]()

        async def fill() -> None:
            for event in [*log, None]:
                await queue.put(event)
                await asyncio.sleep(0)

        bursts, thefts = list[Burst](), list[Theft]()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fill())
            async for name, match in network.alive(queue):
                if name == "burst":
                    bursts.append(match.as_(Burst))
                else:
                    thefts.append(match.as_(Theft))
        return bursts, thefts

    bursts, thefts = asyncio.run(serve())
    expected, ends = list[Burst](), list[tuple[int, str]]()
    for number, event in enumerate(log):
        if event["type"] == "login":
            own = [e for e in log[:number] if e["user"] == event["user"] and e["type"] == "fail"]
            own = [e for e in own if event["time"] - e["time"] <= timedelta(minutes=1)]
            if len(own) >= 2:
                expected.append(Burst(event["user"], len(own), own[-1]["time"] - own[0]["time"]))
                ends.append((number, event["user"]))
    assert bursts == expected and len(expected) > 5
    stolen = [
        Theft(user, wire.get("amount"))
        for i, wire in enumerate(log)
        for end, user in ends
        if wire["type"] == "wire" and i > end and wire["user"] == user
        if wire["time"] - log[end]["time"] <= timedelta(seconds=30)
    ]
    assert thefts == stolen and any(theft.amount is None for theft in stolen)


def test_an_alarm_bell_that_restarts() -> None:
    """It rings if a door was forced three times in a minute, and not again for two."""
    rng, log, now = random.Random(15), list[dict[str, Any]](), 0
    for _ in range(400):
        now += rng.randrange(0, 9)
        log.append({"type": rng.choice(["knock", "open", "shut"]), "door": rng.choice([1, 2]), "time": now})
    query = ceql.compile("SELECT * WHERE knock ; open PARTITION BY [door] WITHIN 2 EVENTS")
    bell = query.alerts(at_least=3, timeframe="1m", realert="2m")
    stream, rings = bell.open(), list[int]()
    for number, event in enumerate(log):
        rings += stream.push(event)
        if number % 70 == 69:
            saved = stream.snapshot()
            stream = query.alerts(at_least=3, timeframe="1m", realert="2m").open(saved)
    rings += stream.close()

    expected, forced, rang = list[int](), defaultdict[int, list[int]](list), dict[int, int]()
    for number, event in enumerate(log):
        door, time = event["door"], event["time"]
        before = [e["type"] for e in log[:number] if e["door"] == door][-2:]
        if event["type"] == "open" and "knock" in before:
            forced[door] = [t for t in [*forced[door], time] if t >= time - 60]
            if len(forced[door]) >= 3 and time - rang.get(door, -999) >= 120:
                rang[door] = time
                expected.append(number)
    assert rings == expected and len(expected) > 3
    assert list(bell.run(log)) == expected and bell.notes[-1].endswith("too soon after one that was")


def test_a_network_reads_a_log_stops_and_goes_on(tmp_path: Path) -> None:
    """Each record of the sink is there once, although the second life reads some events again."""
    log = tmp_path / "log.jsonl"
    rows = [{"type": "up" if i % 3 else "down", "host": f"h{i % 2}", "time": i} for i in range(60)]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    network = ceql.Network(
        {
            "flap": "SELECT NEXT host WHERE down ; up PARTITION BY [host] WITHIN 3 SECONDS",
            "unstable": "SELECT host WHERE flap ; flap PARTITION BY [host] WITHIN 10 SECONDS",
        },
        report=["unstable"],
    )

    async def live(most: int | None) -> int:
        sink, taken = FileSink(tmp_path / "out.jsonl"), 0
        source = LogSource(log, follow=False)
        async with network.alive(source, state=tmp_path / "state", save=tmp_path / "state", every="0s") as alive:
            async for name, match in alive:
                record = {"query": name, **match.row}
                await sink.send(record, id=match_id(network, (name, match)))
                taken += 1
                if taken == most:
                    break
        await sink.aclose()
        return taken

    first, second = asyncio.run(live(3)), asyncio.run(live(None))
    written = pl.read_ndjson(tmp_path / "out.jsonl")
    expected = [match.row for _, match in network.run(rows)]
    assert first == 3 and second > 0 and len(expected) > 5
    assert written.select("host", "match_start", "match_end").rows() == [
        (row["host"], row["match_start"], row["match_end"]) for row in expected
    ]
