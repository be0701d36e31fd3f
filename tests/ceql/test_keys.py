"""Equalities that become partitions: where they do, where they must not, and that no answer changes."""

from __future__ import annotations

import random

import pytest

import ceql
from ceql.query import Query
from tests.support import harness, oracle
from tests.support.strategies import draw_stream


def keys(text: str) -> tuple[str, ...]:
    return ceql.compile(text).compiled.lowered.keys


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k", ("k",)),
        ("SELECT x WHERE A AS x ; B+ AS y ; C AS z FILTER x.k = y.k AND z.k = x.k AND x.a < z.a", ("k",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k AND x.s = y.s WITHIN 3 SECONDS", ("k", "s")),
        ("SELECT * WHERE A AS x ; (B AS y FILTER y.k = x.k)+", ("k",)),
        ("SELECT * WHERE A AS x ; (B OR C) AS y FILTER x.k = y.k", ("k",)),
        ("SELECT * WHERE AND(A AS x, B AS y) FILTER x.k = y.k", ("k",)),
        ("SELECT NEXT * WHERE A AS x ; B AS y FILTER x.k = y.k CONSUME BY ANY LIMIT 2", ("k",)),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k PARTITION BY [s]", ("k",)),
        # an event that no condition is about, a variable that may be empty, groups apart, another attribute, an OR
        ("SELECT * WHERE A AS x ; B AS y ; C FILTER x.k = y.k", ()),
        ("SELECT * WHERE A AS x ; (B AS y OR C AS w) ; D AS z FILTER x.k = y.k AND y.k = z.k AND w.k = z.k", ()),
        ("SELECT * WHERE A AS x ; B AS y ; C AS z ; D AS w FILTER x.k = y.k AND z.k = w.k", ()),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.s", ()),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k OR x.a = y.a", ()),
        ("SELECT * WHERE A AS x ; B AS y FILTER NOT x.k = y.k", ()),
        ("SELECT * WHERE ((A AS x ; B AS y ; C) FILTER x.k = y.k) AS x", ()),
        # what counts events of the whole stream
        ("SELECT * WHERE A AS x : B AS y FILTER x.k = y.k", ()),
        ("SELECT * WHERE A AS x ; B:+ AS y FILTER x.k = y.k", ()),
        ("SELECT STRICT * WHERE A AS x ; B AS y FILTER x.k = y.k", ()),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k WITHIN 3 EVENTS", ()),
        ("SELECT * WHERE A AS x ; NOT C ; B AS y FILTER x.k = y.k", ()),
        ("SELECT * WHERE A AS x ; B AS y ; NOT C FILTER x.k = y.k", ()),
        ("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k CONSUME BY PARTITION", ()),
    ],
)
def test_where_an_equality_becomes_a_key(text: str, found: tuple[str, ...]) -> None:
    assert keys(text) == found


def test_explain_says_so() -> None:
    text = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k").explain()
    assert "partition by: k\n  k by conditions that every event of a match is under" in text
    assert "no registers" in text


FORMULAS = (
    "{A} AS x ; {B} AS y",
    "{A} AS x ; {B}+ AS y",
    "({A} AS x ; {B} AS y){{1,2}}",
    "({A} AS x ; {B} AS y)+",
    "({A} OR {B}) AS x ; {C} AS y",
    "AND({A} AS x, {B} AS y)",
    "{A} AS x ; ({B} AS y FILTER y.k = x.k)+",
    "{A} AS x ; (NOT {B}) AS y",
    "{A} AS x ; ({B} OR {C} AS y)",
)


def draw(rng: random.Random) -> str:
    a, b, c = (rng.choice("ABC") for _ in range(3))
    formula = rng.choice(FORMULAS).format(A=a, B=b, C=c)
    strategy = rng.choice(("", "", "NEXT ", "LAST ", "MAX "))
    selected = rng.choice(("*", "*", "x", "y", "NONE"))
    condition = rng.choice(
        ("x.k = y.k", "y.k = x.k AND x.a <= y.a", "x.k = y.k AND x.s = y.s", "x.k = y.k AND x[a > 0]")
    )
    window = rng.choice(("", "WITHIN 4 [t]", "WITHIN 3 SECONDS"))
    clauses = rng.choice(("", "", "PARTITION BY [s]"))
    consume = rng.choice(("", "", "CONSUME BY ANY"))
    return f"SELECT {strategy}{selected} WHERE ({formula}) FILTER {condition} {clauses} {window} {consume}"


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_no_answer_changes(block: int) -> None:
    inferred = matched = 0
    for seed in range(block * 60, block * 60 + 60):
        rng = random.Random(seed)
        text = draw(rng)
        timed = True if "SECONDS" in text else None
        stream = [dict(event) for event in draw_stream(rng, rng.randint(5, 11), timed=timed)]
        try:
            expected = harness.ceql_oracle(text, stream)
        except oracle.TooBig:
            continue
        inferred += bool(keys(text))
        matched += bool(expected)
        assert sorted(harness.ceql_whole(text, stream)) == expected, (seed, text, stream)
        cut = harness.ceql_batches(text, list(harness.cut(stream, rng)), rng)
        assert sorted(cut) == expected, (seed, text, stream)
    assert inferred > 40 and matched > 15


def test_values_are_one_key_where_they_are_equal() -> None:
    """Also across batches whose columns are of different types; NULL is no key."""
    query: Query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER x.k = y.k")
    stream = query.open()
    found = [*stream.push([{"type": "A", "k": 1}, {"type": "A", "k": None}, {"type": "A"}])]
    found += stream.push([{"type": "B", "k": 1.0}, {"type": "B", "k": 1.5}, {"type": "B", "k": None}])
    assert [m.positions for m in found] == [(0, 3)]


@pytest.mark.parametrize("size", [1, 2, 40])
def test_keys_of_two_kinds_are_told_on_every_road(size: int) -> None:
    """A session said nothing, and a batch with both kinds in one column "the key k is a number"."""
    query = ceql.compile("SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 9 EVENTS")
    events = [
        {"type": kind, "k": key, "time": second} for second, (kind, key) in enumerate([("A", 1), ("B", "x")] * 20)
    ]
    told = "the key k is a number and a text in different events: values of two kinds are never equal"
    matches = query.run(events)
    assert (matches.count(), matches.notes[-1]) == (0, told)
    session = query.open()
    for first in range(0, len(events), size):
        session.push(events[first] if size == 1 else events[first : first + size])
    assert session.notes[-1] == told
    assert query.open().notes == ()
