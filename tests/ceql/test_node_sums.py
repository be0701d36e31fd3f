"""Aggregates over matches with conditions between events: over the nodes that matches share, beside a list of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ceql
from spaseq.core.engine.program.program import Program
from spaseq.core.errors import BudgetExceeded, EventError

COLUMNS = "COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS m, MIN(a.v) AS lo, MAX(b.v) AS hi, COUNT(b) AS k"
PLAIN = (
    "A AS a ; B AS b FILTER b.v > a.v WITHIN 40 EVENTS",
    "A AS a ; B AS b ; C AS c FILTER b.v > a.v AND c.v > b.v WITHIN 4 SECONDS",
    "A AS a ; B+ AS b ; C AS c FILTER c.v > a.v WITHIN 9 EVENTS",
    "A AS a ; B AS b ; A AS c FILTER b.v <> a.v AND c.v = a.v PARTITION BY [k] WITHIN 30 EVENTS",
    "A AS a ; B AS b FILTER b.v >= a.v PARTITION BY [k] CONSUME BY PARTITION",
    "A AS a ; B AS b ; C AS c FILTER b.v > a.v AND c.v < b.v WITHIN 60 EVENTS CONSUME BY ANY",
    "(A AS a OR C AS a) ; B AS b ; NOT A ; C FILTER b.v > a.v WITHIN 25 EVENTS",
)
SETS = "A+ AS a ; B AS b FILTER AVG(a.v) > b.v WITHIN 8 EVENTS"


def stream(seed: int, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    values = [*range(6), 2.5, None]
    return [
        {"type": rng.choice("AABBC"), "k": rng.randrange(3), "v": rng.choice(values), "time": i // 3}
        for i in range(count)
    ]


def rows(query: ceql.Query, events: list[dict[str, Any]], cuts: random.Random | None = None) -> list[Any]:
    """The rows, as `matches` has them."""
    return [(match.end, match.row) for match in matches(query, events, cuts)]


def matches(query: ceql.Query, events: list[dict[str, Any]], cuts: random.Random | None = None) -> list[ceql.Match]:
    """The matches of one run; or, with `cuts`, of batches of any length, between some of them a snapshot, or nodes that
    are numbered anew."""
    if cuts is None:
        return list(query.run(events))
    session, found, at = query.open(), list[ceql.Match](), 0
    while at < len(events):
        size = cuts.choice((1, 1, 7, 40))
        found += session.push(events[at : at + size])
        at += size
        if cuts.random() < 0.1:
            session = query.open(session.snapshot())
        elif cuts.random() < 0.2:
            session._run.evaluator.number_anew()  # type: ignore[union-attr]
    return [*found, *session.close()]


@pytest.mark.parametrize("formula", [*PLAIN, SETS])
def test_as_many_as_are_listed(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays so short that they grow and nodes are written in parts; and with nodes that are numbered anew."""
    text, events = f"SELECT {COLUMNS} WHERE {formula} GROUP BY EVENT", stream(3, 200)
    query = ceql.compile(text)
    with monkeypatch.context() as patch:
        patch.setattr("spaseq.core.tecs.arena._FIRST_NODES", 64)
        patch.setattr("spaseq.core.tecs.arena._PLACES", 64)
        found = rows(query, events)
        assert rows(query, events, random.Random(5)) == found
    monkeypatch.setattr(Program, "why_listed", property(lambda _: "the test asks for it"))
    listed = ceql.compile(text)
    assert "of a list of them" in listed.explain() and "of a list of them" not in query.explain()
    assert found == rows(listed, events) and len(found) > 10


def test_values_without_a_sum_are_an_error_at_each_match_that_has_them() -> None:
    """Rows of nodes that were lost with the error are made again."""
    query = ceql.compile("SELECT SUM(a.w) AS s WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 5 EVENTS GROUP BY EVENT")
    session = query.open()
    for value in (1, "x"):
        session.push({"type": "A", "v": 1, "w": value})
    for _ in range(2):
        with pytest.raises(EventError, match=r"SUM of a\.w"):
            session.push({"type": "B", "v": 2})
    session.push({"type": "A", "v": 1, "w": 4})
    assert [match.row for match in session.push([{"type": "X"}] * 4 + [{"type": "B", "v": 2}])] == [{"s": 4}]


def test_rows_of_nodes_are_under_a_budget() -> None:
    text = f"SELECT {COLUMNS} WHERE A AS a ; B AS b ; C AS c FILTER b.v > a.v GROUP BY EVENT"
    query = ceql.compile(text, settings=ceql.Settings(arena_bytes=1 << 20))
    with pytest.raises(BudgetExceeded, match="arena_bytes is 1,048,576"):
        query.run(stream(1, 3000)).to_arrow()


def test_three_million_matches() -> None:
    events = [{"type": kind, "v": v} for kind in "ABCD" for v in range(50)] + [{"type": "E", "v": 50}]
    text = "SELECT COUNT(*) AS n, SUM(a.v) AS s WHERE A AS a ; B AS b ; C ; D ; E AS e FILTER b.v > a.v AND e.v > a.v"
    ((_, row),) = rows(ceql.compile(f"{text} GROUP BY EVENT"), events)
    assert row == {"n": 2500 * 1225, "s": 2500 * sum(a * (49 - a) for a in range(50))}
