"""ORs under AND in a FILTER: written out as alternatives or taken as conditions, they mean the same."""

from __future__ import annotations

import random

import pytest

import ceql
from ceql import Settings
from spaseq.core.errors import UnsupportedFeature
from tests.support import harness, strategies

_FORMULAS = (
    ("A AS x ; B AS y", "xy"),
    ("A+ AS x ; B+ AS y", "xy"),
    ("(A AS x OR B AS y) ; A AS z", "xyz"),
    ("(A AS x ; B AS y) OR (B AS y)+", "xy"),
    ("((A OR B) AS x) AS y", "xy"),
    ("A AS x ; (B AS y ; A AS z)+", "xyz"),
)
_RELATIONS = ("=", "!=", "<", "<=", ">", ">=")


def _test(rng: random.Random, names: str, depth: int) -> str:
    if depth and rng.random() < 0.8:
        sign = " AND " if depth % 2 else " OR "
        return "(" + sign.join(_test(rng, names, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    name, other = rng.choice(names), rng.choice(names)
    relation = rng.choice(_RELATIONS)
    if name != other and rng.random() < 0.3:
        return f"{name}.{rng.choice('ab')} {relation} {other}.b"
    return f"{rng.choice(('', 'NOT '))}{name}[b {relation} {rng.randint(0, 3)}]"


@pytest.mark.parametrize("seed", range(48))
def test_a_condition_means_what_the_alternatives_do(seed: int) -> None:
    """With `filter_alternatives=1` every OR has to become a condition, or is refused."""
    rng = random.Random(seed)
    formula, names = _FORMULAS[seed % len(_FORMULAS)]
    query = f"SELECT * WHERE ({formula}) FILTER {_test(rng, names, 3)} WITHIN 4 EVENTS"
    events = [dict(event) for event in strategies.draw_stream(rng, 9)]
    try:
        compiled = ceql.compile(query, settings=Settings(filter_alternatives=1))
    except UnsupportedFeature as error:
        assert "filter_alternatives is 1" in str(error)
        return
    found = sorted((m.start, m.end, tuple(m.positions)) for m in compiled.run(events))
    assert found == harness.ceql_oracle(query, events)


def test_most_ors_can_become_conditions() -> None:
    refused = 0
    for seed in range(120):
        formula, names = _FORMULAS[seed % len(_FORMULAS)]
        query = f"SELECT * WHERE ({formula}) FILTER {_test(random.Random(seed), names, 3)}"
        try:
            ceql.compile(query, settings=Settings(filter_alternatives=1))
        except UnsupportedFeature:
            refused += 1
    assert refused < 40


def _many(count: int, *sides: str) -> str:
    return " AND ".join("(" + " OR ".join(side.format(i) for side in sides) + ")" for i in range(count))


def test_forty_ors_are_no_harder_than_one() -> None:
    query = ceql.compile("SELECT * WHERE (A AS a ; B AS b) FILTER " + _many(40, "a[v > {}]", "b[v > {}]"))
    events = [{"type": kind, "v": v} for kind, v in (("A", 40), ("A", 3), ("B", 39), ("B", 40))]
    assert query.automaton.states < 10
    assert sorted((m.start, m.end) for m in query.run(events)) == [(0, 2), (0, 3), (1, 3)]


def test_an_or_of_what_several_events_satisfy_has_a_budget() -> None:
    text = "SELECT * WHERE (A+ AS a ; B) FILTER " + _many(40, "a[v > {}]", "a[w > {}]")
    with pytest.raises(UnsupportedFeature, match="more than a billion alternatives, and filter_alternatives is 256"):
        ceql.compile(text)
    few = "SELECT * WHERE (A+ AS a ; B) FILTER " + _many(3, "a[v > {}]", "a[w > {}]")
    with pytest.raises(UnsupportedFeature, match="stand for 8 alternatives, and filter_alternatives is 4"):
        ceql.compile(few, settings=Settings(filter_alternatives=4))
    nested = "SELECT * WHERE (A+ AS a ; B) " + " ".join("FILTER " + _many(3, "a[v > {}]", "a[w > {}]") for _ in "abc")
    with pytest.raises(UnsupportedFeature, match="stand for 512 alternatives"):
        ceql.compile(nested)


def test_ors_in_a_not() -> None:
    absent = ceql.compile("SELECT * WHERE A AS a ; NOT (B AS b FILTER " + _many(40, "b[v > {}]", "b[w > {}]") + ") ; C")
    events = [{"type": kind, "v": v, "w": 0} for kind, v in (("A", 0), ("B", 39), ("C", 0), ("B", 40), ("C", 0))]
    assert [(m.start, m.end) for m in absent.run(events)] == [(0, 2)]
    related = "SELECT * WHERE A AS a ; NOT (B AS b FILTER " + _many(40, "b.v > a.v + {}", "b[w > {}]") + ") ; C"
    with pytest.raises(UnsupportedFeature, match="filter_alternatives is 256"):
        ceql.compile(related)
