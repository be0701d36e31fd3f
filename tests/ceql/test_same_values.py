"""Equalities that follow from others are tested against one register, whichever way they are written."""

from __future__ import annotations

import datetime
import itertools
import random
from typing import Any

import pytest

import ceql

ABC, ABCD = "A AS a ; B AS b ; C AS c", "A AS a ; B AS b ; C AS c ; D AS d"
WINDOW = "WITHIN 500 EVENTS"


def kept(pattern: str, condition: str) -> list[str]:
    """The lines of `explain` on the keeping of runs, without the number of the state."""
    found = ceql.compile(f"SELECT * WHERE {pattern} FILTER {condition} {WINDOW}").explain().splitlines()
    return [line.partition(": ")[2] for line in found if "runs in state" in line]


def places(text: str, batches: list[list[dict[str, Any]]]) -> list[tuple[int, ...]]:
    """The positions of the matches of events that come in batches."""
    session = ceql.compile(text).open()
    return [tuple(match.positions) for batch in batches for match in session.push(batch)]


@pytest.mark.parametrize(
    ("pattern", "equalities"),
    [
        (ABC, "b.id = a.id AND c.id = a.id"),
        (ABC, "b.id = a.id AND c.id = b.id"),
        (ABC, "a.id = b.id AND b.id = c.id"),
        (ABC, "c.id = b.id AND b.id = a.id"),
        (ABC, "c.id = b.id AND b.id = a.id AND c.id = a.id"),
        (ABC, "b.src = a.dst AND c.src = a.dst"),
        (ABC, "LOWER(b.name) = LOWER(a.name) AND LOWER(c.name) = LOWER(b.name)"),
        (ABCD, "b.id = a.id AND c.id = b.id AND d.id = c.id"),
        (ABCD, "c.id = a.id AND b.id = a.id AND d.id = b.id"),
        ("A AS a ; B AS b ; NOT (X AS x FILTER x.id = b.id) ; C AS c", "b.id = a.id AND c.id = a.id"),
    ],
)
def test_all_states_look_up_one_register(pattern: str, equalities: str) -> None:
    last = "d" if pattern == ABCD else "c"
    lines = kept(pattern, f"{equalities} AND {last}.price > a.price")
    if "NOT" in pattern:  # an event there may end runs: no pools of several steps
        assert "equality" in lines[0] and "O(log n)" in lines[1]
    else:
        assert len(lines) == (3 if pattern == ABCD else 2) and all("O(log² n)" in line for line in lines), lines


@pytest.mark.parametrize(
    ("pattern", "equalities"),
    [
        (ABC, "a.id = c.id AND b.id = c.id"),  # b may come with any id
        (ABC, "b.id = a.id AND c.id = b.other"),
        (ABCD, "b.id = a.id AND d.id = c.id"),
        ("A AS a ; (B AS b)? ; C AS c", "b.id = a.id AND c.id = b.id"),  # without b, c may have any id
        (f"({ABC} FILTER b.id = a.id AND c.id = b.id AND c.price > a.price)+ ; D AS d", "d.price > 3"),
    ],
)
def test_what_does_not_follow_is_tested_as_it_is_written(pattern: str, equalities: str) -> None:
    last = "d" if "D AS d" in pattern else "c"
    condition = equalities if "+" in pattern else f"{equalities} AND {last}.price > a.price"
    assert not all("O(log² n)" in line for line in kept(pattern, condition))


@pytest.mark.parametrize("equalities", ["b.id = a.id AND c.id = b.id", "b.id = a.id AND c.id = a.id"])
@pytest.mark.parametrize("odd", ["x", [1, 2], True])
def test_runs_go_on_with_all_values_if_a_kind_changes(equalities: str, odd: Any) -> None:
    """A run that has taken b compares c with it, though no register held b.id."""
    text = f"SELECT * WHERE {ABC} FILTER {equalities} AND c.price > a.price {WINDOW}"
    begun = [{"type": kind, "id": 1, "price": 1} for kind in "AB"]
    ends = [[{"type": "C", "id": number, "price": 5}] for number in (2, 1, 1.0)]
    assert places(text, [begun, [{"type": "D", "id": odd, "price": 0}], *ends]) == [(0, 1, 4), (0, 1, 5)]


def test_texts_that_are_equal_to_one_time_may_differ() -> None:
    """So `=` is no equivalence of values of several kinds, and the condition that is written decides."""
    day = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    found: dict[tuple[int, str], set[int]] = {}
    for order in itertools.permutations((day, "2020-01-01", "2020-01-01T00:00:00")):
        events = [
            {"type": kind, "id": value, "price": n} for n, (kind, value) in enumerate(zip("ABC", order, strict=True))
        ]
        for known in ("a", "b"):
            text = f"SELECT * WHERE {ABC} FILTER b.id = a.id AND c.id = {known}.id AND c.price > a.price {WINDOW}"
            for batches in ([events], [[event] for event in events]):
                found.setdefault((order.index(day), known), set()).add(len(places(text, batches)))
    assert found == {(0, "a"): {1}, (0, "b"): {0}, (1, "a"): {0}, (1, "b"): {1}, (2, "a"): {0}, (2, "b"): {0}}


@pytest.mark.parametrize("equalities", ["b.id = a.id AND c.id = b.id", "b.id = a.id AND c.id = a.id"])
def test_null_is_equal_to_nothing_and_equal_numbers_are_one(equalities: str) -> None:
    values = [None, float("nan"), 0, -0.0, 2**53, 2**53 + 1, float(2**53)]
    for order in itertools.product(values, repeat=3):
        events = [
            {"type": kind, "id": value, "price": n} for n, (kind, value) in enumerate(zip("ABC", order, strict=True))
        ]
        text = f"SELECT * WHERE {ABC} FILTER {equalities} AND c.price > a.price {WINDOW}"
        is_known = not any(value is None or value != value for value in order)
        assert len(places(text, [events])) == (is_known and order[0] == order[1] == order[2]), order


ORDERS = "b.price > a.price AND c.price > a.price AND d.price <= a.price"


def test_orders_of_one_value_have_a_tree_by_it() -> None:
    assert all("a tree by the value compared" in line for line in kept(ABCD, ORDERS))
    assert "2 values" in kept(ABCD, ORDERS.replace("d.price <= a.price", "d.price <= a.price + 1"))[0]
    assert "2 values" in kept(ABCD, ORDERS.replace("d.price <= a.price", "d.price <= a.cost"))[0]


@pytest.mark.parametrize("kind", ["numbers", "texts", "times", "decimals beside NULL"])
@pytest.mark.parametrize("batch", [1, 30, 80])
def test_orders_of_one_value_have_the_matches_of_the_definition(kind: str, batch: int) -> None:
    day = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = {
        "numbers": lambda n: n,
        "texts": lambda n: f"t{n:02}",
        "times": lambda n: day + datetime.timedelta(hours=n),
        "decimals beside NULL": lambda n: None if n % 5 == 0 else n / 2,
    }[kind]
    rng = random.Random(41)
    events = [{"type": rng.choice("ABCD"), "price": made(rng.randrange(14))} for _ in range(80)]
    text = f"SELECT * WHERE {ABCD} FILTER {ORDERS} WITHIN 40 EVENTS"
    at = {kind: [n for n, event in enumerate(events) if event["type"] == kind] for kind in "ABCD"}
    price = [event["price"] for event in events]
    wanted = [
        (a, b, c, d)
        for a in at["A"] for b in at["B"] for c in at["C"] for d in at["D"]
        if a < b < c < d <= a + 40 and None not in (price[a], price[b], price[c], price[d])
        and price[b] > price[a] and price[c] > price[a] and price[d] <= price[a]
    ]  # fmt: skip
    found = places(text, [events[n : n + batch] for n in range(0, 80, batch)])
    assert sorted(found) == wanted != []


@pytest.mark.parametrize("odd", ["x", [1, 2], True])
def test_runs_go_on_with_both_values_of_orders_if_a_kind_changes(odd: Any) -> None:
    text = f"SELECT * WHERE {ABC} FILTER b.price > a.price AND c.price > a.price {WINDOW}"
    begun = [{"type": "A", "price": 1}, {"type": "A", "price": 3}, {"type": "B", "price": 4}]
    ends = [[{"type": "C", "price": price}] for price in (1, 2, 3.5)]
    assert sorted(places(text, [begun, [{"type": "D", "price": odd}], *ends])) == [(0, 2, 5), (0, 2, 6), (1, 2, 6)]


@pytest.mark.parametrize("strategy", ["", "NEXT", "LAST", "MAX", "STRICT", "FIRST"])
@pytest.mark.parametrize("join", [";", "->"])
def test_both_spellings_have_the_same_matches(strategy: str, join: str) -> None:
    events = [{"type": "ABC"[n * n % 7 % 3], "id": n * 5 % 11 % 3, "price": n * 7 % 13} for n in range(60)]
    events += [{"type": kind, "id": 9, "price": n} for n, kind in enumerate("ABC")]  # STRICT has these
    pattern = ABC.replace(";", join)
    queries = [
        f"SELECT {strategy} * WHERE {pattern} FILTER b.id = a.id AND c.id = {known}.id AND c.price > a.price"
        " WITHIN 20 EVENTS"
        for known in "ab"
    ]
    if strategy == "STRICT" and join == "->":
        with pytest.raises(ceql.QueryError, match="STRICT"):
            ceql.compile(queries[0])
        return
    star, chain = (places(text, [events[:31], events[31:]]) for text in queries)
    assert star == chain != []
