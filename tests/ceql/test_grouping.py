"""GROUP BY EVENT: numbers beyond what can be listed, kinds of values, and what it does not go with."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

import ceql
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError, UnsupportedFeature

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
    assert "of a list of them, O(matches), since conditions relate several events" in related


def test_what_it_does_not_go_with() -> None:
    text = "SELECT COUNT(*) AS n WHERE A ; B WITHIN 5 EVENTS GROUP BY EVENT"
    query = ceql.compile(text)
    with pytest.raises(OptionError, match="GROUP BY lists none"):
        query.run([], valuations=True)
    with pytest.raises(UnsupportedFeature, match="GROUP BY"):
        query.timed_out()
    with pytest.raises(UnsupportedFeature, match="GROUP BY EVENT, in a network"):
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
