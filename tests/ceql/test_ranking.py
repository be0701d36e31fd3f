"""ORDER BY with LIMIT over the nodes that matches share: the matches that come first in the whole sorted list."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import ceql
from ceql.results.ranking import Ranks
from spaseq.core.engine import node_best
from spaseq.core.errors import BudgetExceeded, EventError
from tests.ceql.test_node_sums import matches
from tests.support.drawn_orders import early_pools

FORMULAS = (
    "A AS a ; B AS b ; C AS c",
    "A AS a ; B AS b ; C AS c FILTER b.v > a.v",
    "A AS a ; B+ AS b ; C AS c",
    "(A OR C) AS a ; B AS b ; C AS c FILTER c.v <> b.v PARTITION BY [k]",
    "A AS a ; (B AS b ; A AS x OR B AS b) ; C AS c FILTER c.w >= a.w",
    "ANY AS a ; NOT B ; ANY AS c PARTITION BY [k] CONSUME BY PARTITION",
)
KEPT = (
    "A AS a ; B AS b ; C AS c FILTER b.v > a.v AND c.v > a.v",
    "A AS a ; B AS b ; C AS c FILTER c.w > a.w",
    "A AS a ; B AS b ; (B OR C) AS x ; C AS c FILTER x.v >= a.v AND c.v > a.v",
    "A AS a ; B+ AS b ; C AS c FILTER c.v > a.v",
    "A AS a ; (B OR A) AS b ; (C OR B) AS x ; C AS c FILTER c.w != a.w PARTITION BY [k]",
)
"""Values are compared again, so matches have products."""
KEYS = (
    "c.v - a.v DESC",
    "a.w",
    "2 * a.v - c.w * 3 + 1, c.v",
    "a.w - c.w DESC, a.v * a.v",
    "-a.x",
    "c.t - a.t, a.v DESC",
    "0.1 * a.v + c.x * 0.7 DESC",
    "CASE WHEN a.v > 2 THEN a.v ELSE 7 END DESC, a.x",
)


def stream(seed: int, count: int) -> list[dict[str, Any]]:
    """Values of few kinds, so that many tie; some missing, some texts, some too great to be added."""
    rng = random.Random(seed)
    odd: list[Any] = [None, float("inf"), 2**62, 1e308] if seed % 3 == 0 else [None] if seed % 3 == 1 else [4]
    days = [datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 5)]
    small, decimal = [*range(5)] * 6, [0.5, 1, 2.25, 3, 10] * 4
    return [
        {"type": rng.choice("AABBC"), "k": rng.randrange(2), "v": rng.choice([*small, *odd[:1]]),
         "w": rng.choice([0.1, 0.2, 0.3, 0.7, 1.1, 2.5, 1e6]), "x": rng.choice([*decimal, *odd]),
         "t": rng.choice(days), "time": i // 3}
        for i in range(count)
    ]  # fmt: skip


def positions(query: ceql.Query, events: list[dict[str, Any]], cuts: random.Random | None = None) -> list[Any]:
    """The matches, of one run or in cuts."""
    return [(match.end, match.positions) for match in matches(query, events, cuts)]


def first(found: list[Any], most: int) -> list[Any]:
    """As many of each event."""
    return [match for _, own in groupby(found, key=lambda match: match[0]) for match in list(own)[:most]]


@pytest.mark.parametrize("seed", range(12))
def test_the_first_ones_of_the_whole_list(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays so short that they grow, and matches that are written in parts."""
    rng = random.Random(seed)
    monkeypatch.setattr("spaseq.core.tecs.arena._FIRST_NODES", 64)
    for name, room in (("_WAYS", 4), ("_MATCHES", 8), ("_PLACES", 16), ("_CHOICES", 200)):
        monkeypatch.setattr(f"spaseq.core.engine.node_best.{name}", room)
    formula, key, most = FORMULAS[seed % 6], rng.choice(KEYS), rng.choice((1, 2, 3, 10))
    wide = 8 if "+" in formula else rng.choice((8, 16))
    body, _, partition = formula.partition(" PARTITION")
    parts = ("PARTITION" + partition).partition(" CONSUME") if partition else ("", "", "")
    window = f"{parts[0]} WITHIN {wide} EVENTS {parts[1]}{parts[2]} ORDER BY"
    text = f"SELECT * WHERE {body} {window}"
    events = stream(seed, 60)
    query, whole = ceql.compile(f"{text} {key} LIMIT {most}"), ceql.compile(f"{text} {key}")
    assert isinstance(query.compiled.ranks, Ranks) and not isinstance(whole.compiled.ranks, Ranks)
    expected = first(positions(whole, events), most)
    assert positions(query, events) == expected
    assert positions(query, events, random.Random(seed)) == expected


@pytest.mark.parametrize("seed", range(15))
def test_the_first_ones_below_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays that grow, in one run and in cuts; some matches tie in all that nodes tell."""
    rng = random.Random(seed)
    for name, room in (("_WAYS", 4), ("_MATCHES", 8), ("_PLACES", 16), ("_CHOICES", 200)):
        monkeypatch.setattr(f"spaseq.core.engine.node_best.{name}", room)
    products, find = list[bool](), node_best.NodeBest.find

    def spied(self: Any, nodes: Any, *given: Any, **named: Any) -> Any:
        products.append(bool(np.any((nodes.pairs[:, 0] < 0) & (nodes.pairs[:, 1] >= 0))))
        return find(self, nodes, *given, **named)

    monkeypatch.setattr(node_best.NodeBest, "find", spied)
    formula, key, most = KEPT[seed % 5], KEYS[seed * 3 % 8], rng.choice((1, 2, 3, 10))
    body, _, partition = formula.partition(" PARTITION")
    clauses = f"{partition and 'PARTITION' + partition} WITHIN {10 if '+' in formula else 18} EVENTS ORDER BY {key}"
    events = stream(seed, 60)
    whole = positions(ceql.compile(f"SELECT * WHERE {body} {clauses}"), events)
    query = ceql.compile(f"SELECT * WHERE {body} {clauses} LIMIT {most}")
    assert isinstance(query.compiled.ranks, Ranks)
    with early_pools():
        assert positions(query, events) == first(whole, most)
        assert positions(query, events, rng) == first(whole, most)
    assert any(products)


@pytest.mark.parametrize("key", KEYS)
def test_each_form_of_a_key(key: str) -> None:
    text, events = f"SELECT * WHERE A AS a ; B AS b ; C AS c WITHIN 16 EVENTS ORDER BY {key}", stream(len(key), 60)
    expected = first(positions(ceql.compile(text), events), 2)
    query = ceql.compile(f"{text} LIMIT 2")
    assert "by the nodes that matches share" in query.explain()
    assert positions(query, events) == expected and len(expected) > 9


@pytest.mark.parametrize("odd", ["text", True, [1, 2]])
def test_a_match_without_a_key_is_an_error_as_in_a_list(odd: Any) -> None:
    events = [{"type": kind, "v": value} for kind, value in (("A", 5), ("A", odd), ("A", 1), ("B", 9))]
    said = []
    for clause in ("", " LIMIT 1"):
        with pytest.raises(EventError, match="ORDER BY") as caught:
            ceql.compile(f"SELECT * WHERE A ; B ORDER BY B.v - A.v{clause}").run(events).to_arrow()
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_doubles_that_round_to_one_key_are_ties() -> None:
    """1 - 1e-17 is 1 as a double, as is 1 - 2e-17: the latest start comes first, though its sum is not the greatest."""
    events = [{"type": "A", "v": value} for value in (1e-17, 2e-17, 3e-17, 0.5)] + [{"type": "B", "v": 1.0}]
    query = ceql.compile("SELECT * WHERE A ; B ORDER BY B.v - A.v DESC LIMIT 1")
    assert isinstance(query.compiled.ranks, Ranks) and positions(query, events) == [(4, (2, 4))]


def test_nodes_are_under_the_budget() -> None:
    settings = ceql.Settings(arena_bytes=4_000_000)
    events = [{"type": "A", "v": i} for i in range(20_000)] + [{"type": "B", "v": 1}]
    with pytest.raises(BudgetExceeded, match="arena_bytes"):
        ceql.compile("SELECT * WHERE A ; B ORDER BY A.v LIMIT 1", settings=settings).run(events).to_arrow()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * WHERE A ; B ORDER BY A.v", None),
        ("SELECT * WHERE A+ AS a ; B ORDER BY a.v LIMIT 1", "a may have no event or several"),
        ("SELECT * WHERE (A OR C) ; B ORDER BY A.v LIMIT 1", "A may have no event or several"),
        ("SELECT * WHERE A ; B ORDER BY A.v * B.v LIMIT 1", "A.v * B.v is no sum of terms of one variable each"),
        ("SELECT * WHERE A ; B ORDER BY A.v > 2 LIMIT 1", "A.v > 2 is no sum of terms"),
        ("SELECT * WHERE A ; B ORDER BY MATCH_START LIMIT 1", "MATCH_START is no sum of terms"),
        ("SELECT * WHERE A ; B ORDER BY A.v LIMIT 5000", "LIMIT is 0 or above 4,096"),
        ("SELECT NEXT * WHERE A ; B ORDER BY A.v LIMIT 1", "matches are chosen among those of an event"),
    ],
)
def test_the_reason_for_a_list(query: str, why: str | None) -> None:
    said = ceql.compile(query).explain()
    assert "listed and sorted" in said and (why is None or f"all of them, since {why}" in said)
