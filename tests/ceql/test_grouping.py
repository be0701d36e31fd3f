"""GROUP BY: numbers beyond what can be listed, kinds of values, keys and times, and what it does not go with."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

import ceql
from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    OptionError,
    QuerySemanticsError,
    QuerySyntaxError,
    UnsupportedFeature,
)

MOST = (1 << 63) - 1


def rows(text: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return ceql.compile(text).run(events).to_arrow().to_pylist()


def test_numbers_beyond_64_bits_are_null_and_those_behind_them_exact() -> None:
    """A+ has 2^k - 1 rounds at the k-th A. Nothing of what was too much is left when the window has passed it."""
    events = [{"type": "A", "v": 1}] * 70 + [{"type": "C", "v": 0}] * 80 + [{"type": "A", "v": -2}] * 3
    found = rows(
        "SELECT COUNT(*) AS n, SUM(a.v) AS s, MIN(a.v) AS lo WHERE A+ AS a WITHIN 79 EVENTS GROUP BY EVENT", events
    )
    counts = [2**k for k in range(70)]
    assert [row["n"] for row in found[:70]] == [n if n < MOST else None for n in counts]
    assert [row["s"] for row in found[:3]] == [1, 3, 8]
    assert found[66]["s"] is None and found[66]["lo"] == 1
    assert [(row["n"], row["s"], row["lo"]) for row in found[70:]] == [(1, -2, -2), (2, -6, -2), (4, -16, -2)]


def test_twenty_seven_thousand_million_matches() -> None:
    """Without a window, and in one that leaves 1,000 of the A."""
    events = [{"type": "A"}] * 3000 + [{"type": "B"}] * 3000 + [{"type": "C"}] * 3000 + [{"type": "D"}]
    (row,) = rows("SELECT COUNT(*) AS n WHERE A ; B ; C ; D GROUP BY EVENT", events)
    assert row["n"] == 3000**3
    (row,) = rows("SELECT COUNT(*) AS n WHERE A ; B ; C ; D WITHIN 7000 EVENTS GROUP BY EVENT", events)
    assert row["n"] == 1000 * 3000**2


def test_times_and_durations() -> None:
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    events: list[dict[str, Any]] = [
        {"type": "A", "at": day + datetime.timedelta(days=i), "d": datetime.timedelta(hours=i)} for i in range(4)
    ]
    events.append({"type": "B"})
    (row,) = rows(
        "SELECT AVG(a.at) AS m, MIN(a.at) AS lo, SUM(a.d) AS s, MAX(a.d) AS hi WHERE A AS a ; B GROUP BY EVENT", events
    )
    assert row["m"] == day + datetime.timedelta(days=1.5) and row["lo"] == day
    assert row["s"] == datetime.timedelta(hours=6) and row["hi"] == datetime.timedelta(hours=3)


@pytest.mark.parametrize("strategy", ["ALL", "LAST"])
def test_kinds_that_do_not_go_together(strategy: str) -> None:
    """Listed or not, in one batch or in two."""
    for first, function, problem in [
        ("x", "MIN", "MIN of"),
        ("x", "SUM", "SUM"),
        (datetime.timedelta(1), "SUM", "an aggregate"),
    ]:
        query = ceql.compile(f"SELECT {strategy} {function}(a.v) AS s WHERE A+ AS a ; B GROUP BY EVENT")
        with query.open() as session, pytest.raises(EventError, match=problem):
            for value in (first, 1):
                session.push({"type": "A", "v": value})
            session.push({"type": "B", "v": 1})


def test_whole_numbers_and_doubles() -> None:
    values = [1, 2.5, None, -3, 1 << 60, 0.25]
    events: list[dict[str, Any]] = [{"type": "A", "v": v} for v in values]
    columns = "SUM(a.v) AS s, MIN(a.v) AS lo, MAX(a.v) AS hi, COUNT(a.v) AS k, COUNT(a) AS n"
    for given in (events[:1], events[:2], events[:5], events):
        (row,) = rows(f"SELECT {columns} WHERE A AS a ; B GROUP BY EVENT", [*given, {"type": "B"}])
        known = [e["v"] for e in given if e["v"] is not None]
        assert row == {"s": sum(known), "lo": min(known), "hi": max(known), "k": len(known), "n": len(given)}


def test_plan_says_if_matches_are_listed() -> None:
    plain = ceql.compile("SELECT COUNT(*) AS n WHERE A ; B GROUP BY EVENT").explain()
    assert "none of which is listed" in plain and "memory grows" not in plain
    related = ceql.compile("SELECT COUNT(*) AS n WHERE A AS a ; B AS b FILTER b.v > a.v GROUP BY EVENT").explain()
    assert "none is listed, by the nodes they share" in related and "memory grows" in related
    chosen = ceql.compile("SELECT LAST COUNT(*) AS n WHERE A AS a ; B AS b FILTER b.v > a.v GROUP BY EVENT").explain()
    assert "of a list of them, O(matches), since matches are chosen among those of an event" in chosen


def test_what_it_does_not_go_with() -> None:
    text = "SELECT COUNT(*) AS n WHERE A ; B WITHIN 5 EVENTS GROUP BY EVENT"
    query = ceql.compile(text)
    with pytest.raises(OptionError, match="GROUP BY lists none"):
        query.run([], valuations=True)
    with pytest.raises(UnsupportedFeature, match="GROUP BY"):
        query.timed_out()
    with pytest.raises(UnsupportedFeature, match="GROUP BY, in a network"):
        ceql.Network({"q": text})
    with pytest.raises(UnsupportedFeature, match="NOT at the end"):
        ceql.compile("SELECT COUNT(*) AS n WHERE A ; NOT B WITHIN 5 SECONDS GROUP BY EVENT")


def test_matches_are_those_without_group_by() -> None:
    """Random 28466: two valuations of one set of events differ in the variable of AFTER MATCH, which counts."""
    text = "SELECT COUNT(A) AS n WHERE (C AS z OR (NOT A) AS x) ; A AFTER MATCH SKIP TO FIRST z"
    events = [{"type": "C"}, {"type": "A"}]
    listed = rows(text, events)
    assert rows(f"{text} GROUP BY EVENT", events) == [{"n": len(listed)}] == [{"n": 2}]


def test_keys_and_alerts() -> None:
    rng = random.Random(5)
    events = [{"type": rng.choice("ABC"), "k": rng.randrange(5), "v": rng.randrange(9)} for _ in range(100)]
    text = "SELECT {} WHERE A AS a ; B+ AS b ; C PARTITION BY [k] WITHIN 10 EVENTS"
    query = ceql.compile(text.format("k, COUNT(*) AS n, SUM(b.v) AS s") + " GROUP BY EVENT")
    listed = ceql.compile(text.format("k, SUM(b.v) AS s")).run(events)
    wanted: dict[int, dict[str, Any]] = {}
    for match in listed:
        row = wanted.setdefault(match.end, {"k": match.row["k"], "n": 0, "s": 0})
        row["n"] += 1
        row["s"] += match.row["s"]
    assert {match.end: match.row for match in query.run(events)} == wanted
    assert list(query.alerts().run(events)) == sorted(wanted)
    assert query.run(events).count() == len(wanted)


COLUMNS = "COUNT(*) AS n, SUM(b.v) AS s, MAX(b.v) AS m"
FORMULA = "WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 20 SECONDS"


def stream(count: int) -> list[dict[str, Any]]:
    rng, time = random.Random(7), 0
    found = []
    for _ in range(count):
        time += rng.randrange(4)
        found.append(
            {"type": rng.choice("AB"), "k": rng.choice([1, 1.0, "1", True]), "v": rng.randrange(9), "time": time}
        )
    return found


def key_of(value: Any) -> str:
    """1 and 1.0 are one key; '1' and TRUE are others."""
    return value if isinstance(value, str) else f"{type(value) is bool} {float(value)}"


@pytest.mark.parametrize("by", ["KEY", "10 SECONDS", "KEY, 10 SECONDS"])
def test_groups_are_sums_of_events(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches, pushed one by one, and after snapshots, with rows that are added often."""
    monkeypatch.setattr("ceql.results.groups._FEW", 2)
    events, key, start = stream(300), "k, " * ("KEY" in by), "GROUP_START, " * ("10" in by)
    wanted: dict[Any, Any] = {}
    for match in ceql.compile(f"SELECT k, MATCH_END AS at, {COLUMNS} {FORMULA} GROUP BY EVENT").run(events):
        row = match.row
        group = (key_of(row["k"]) if key else "", row["at"] // 10 * 10 if start else 0)
        n, s, m = wanted.get(group, (0, 0, 0))
        wanted[group] = n + row["n"], s + row["s"], max(m, row["m"])
    query = ceql.compile(f"SELECT {key}{start}{COLUMNS} {FORMULA} GROUP BY {by}")
    matches = query.run(events)
    found = [match.row for match in matches]
    own = {(key_of(row.get("k", "")), row.get("GROUP_START", 0)): (row["n"], row["s"], row["m"]) for row in found}
    assert own == wanted and len(found) == len(wanted) == query.run(events).count()
    session, pushed = query.open(), []
    for i, event in enumerate(events):
        pushed += session.push(event)
        if i % 90 == 40:
            session = query.open(session.snapshot())
    assert [match.row for match in [*pushed, *session.close()]] == found


def test_snapshots_of_snapshots_know_more_states_than_the_rows_have_room_for() -> None:
    """Case 12637 of the proof of aggregates. Each restored evaluation learns the states behind those that it knows."""
    query = ceql.compile(
        "SELECT MIN(z.a * z.b) AS low WHERE (C ; C AS z){1,3} PARTITION BY [k] GROUP BY 2500 MILLISECONDS"
    )
    session = query.open()
    for kind, k, at in (("C", 1, 1), ("A", None, 3), ("C", None, 7.5)):
        assert not session.push([{"type": kind, "k": k, "a": 1, "b": 1, "time": at}])
        session = query.open(session.snapshot())
    assert not session.close()


def test_a_key_that_conditions_imply_makes_no_groups() -> None:
    events = [{"type": kind, "user": "x", "device": device} for kind in "AB" for device in (1, 2)]
    text = (
        "SELECT user, COUNT(*) AS n WHERE A AS a ; B AS b FILTER a.device = b.device PARTITION BY [user] GROUP BY KEY"
    )
    assert ceql.compile(text).partition == (("user",), ("device",))
    assert rows(text, events) == [{"user": "x", "n": 2}]


def test_rows_of_an_hour_come_with_the_first_event_behind_it_or_by_the_clock() -> None:
    query = ceql.compile("SELECT GROUP_START, COUNT(*) AS n WHERE A GROUP BY 10 SECONDS")
    session = query.open()
    assert not session.push([{"type": "A", "time": 1}, {"type": "A", "time": 9.5}])
    assert [match.row for match in session.push({"type": "X", "time": 10})] == [{"GROUP_START": 0, "n": 2}]
    assert not session.push({"type": "A", "time": 12})
    assert [match.row["n"] for match in session.advance(20 * 10**9)] == [1]
    assert not session.close()


def test_groups_have_a_budget() -> None:
    text = "SELECT k, COUNT(*) AS n WHERE A PARTITION BY [k] WITHIN 1 SECOND GROUP BY KEY"
    query = ceql.compile(text, settings=ceql.Settings(partitions=5000))
    events = [{"type": "A", "k": k, "time": 2 * k} for k in range(6000)]
    with pytest.raises(BudgetExceeded, match="partitions is 5,000"):
        query.run(events).to_arrow()
    assert "each has a row of GROUP BY" in query.explain()


def test_wrong_groups() -> None:
    for text, problem in [("KEY, KEY", "twice"), ("0 SECONDS", "within no time"), ("user", "a KEY of PARTITION BY")]:
        with pytest.raises(QuerySyntaxError, match=problem):
            ceql.compile(f"SELECT COUNT(*) AS n WHERE A PARTITION BY [user] GROUP BY {text}")
    with pytest.raises(OptionError, match="each kind of group once"):
        ceql.event("A").over("k").group_by("key", "key")


def test_some_of_the_rows() -> None:
    """Slices of rows, in hand or as they are found, with whole numbers, doubles and texts beside them."""
    events = [{"type": "A", "v": v} for v in (1, 2.5, 4)] + [{"type": "B"}] * 3
    query = ceql.compile(
        "SELECT COUNT(*) AS n, SUM(a.v) AS s, MAX(a.v) AS hi WHERE A AS a ; B WITHIN 4 EVENTS GROUP BY EVENT"
    )
    every = [match.row for match in query.run(events)]
    assert [row["n"] for row in every] == [3, 3, 2]
    matches = query.run(events)
    assert matches.head(1).to_arrow().to_pylist() == every[:1] and matches[2].row == every[2]
    assert matches[1:].to_arrow().to_pylist() == [m.row for m in matches.collect()[1:]] == every[1:]
    assert matches.collect()[::-2].to_arrow().to_pylist() == every[::-2]


def test_wrong_kinds_are_named() -> None:
    """By the argument of the aggregate, where it stands if the input has a schema."""
    for value, function in ((True, "AVG"), (True, "MAX"), ("x", "MIN"), ("x", "SUM")):
        query = ceql.compile(f"SELECT {function}(a.v) AS x, COUNT(*) AS n WHERE A AS a ; B GROUP BY EVENT")
        with pytest.raises(EventError, match=rf"{function} of a\.v over all matches, which is a t.*\nhint: .*numbers"):
            query.run([{"type": "A", "v": value}, {"type": "B"}]).to_arrow()
        with pytest.raises(QuerySemanticsError, match=rf"1:1\d: {function} of a") as found:
            query.run(pa.table({"type": ["A", "B"], "v": [value, value]})).to_arrow()
        assert "^^^" in str(found.value)
