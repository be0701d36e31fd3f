"""Conditions on each round of a loop: what they are compiled to, what they keep, and what is refused.

The definition is compared in `tests/test_proof.py` (kind `earlier`), the kernels in `test_guarded.py`, examples are
in `tests/cases/ceql_rounds.toml`.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import ceql
from ceql.guards import encoding
from ceql.rewrites import lp_normal_form, pop_filters, remove_unsatisfiable, safe_form
from ceql.semantics.rounds import with_rounds
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_formula, print_query
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.row_sets import RegisterRun
from spaseq.core.errors import QuerySemanticsError, UnsupportedFeature
from tests.support.data import DATA, needs

TRACE = DATA / "stock" / "stock_data.csv.gz"
FALL = "SELECT * WHERE (ANY AS b FILTER b.price < PREV(b.price)):+"


def prices(*values: float | None) -> list[dict[str, Any]]:
    return [{"type": "T", "price": value} for value in values]


def positions(text: str, events: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    return sorted(tuple(m.positions) for m in ceql.compile(text).run(events))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("(B AS b FILTER b.v > LAST(b.v))+", "(B AS b FILTER b.v > PREV(b.v))+"),
        ("(B AS b FILTER b.v > FIRST(b.v) OR NOT b[v > 3 AND v < LAST(v)]){2}",
         "(B AS b FILTER b.v > b[0].v OR NOT b[v > 3 AND v < PREV(v)]){2}"),
        ("(A AS a ; B AS b FILTER b.v > LAST(a.v * 2)):+", "(A AS a ; B AS b FILTER b.v > PREV(a.v) * 2):+"),
    ],
)  # fmt: skip
def test_first_and_last_inside_a_loop_are_events_before(text: str, meant: str) -> None:
    found = print_query(with_rounds(parse(f"SELECT * WHERE {text}")))
    assert found == print_query(parse(f"SELECT * WHERE {meant}"))


@pytest.mark.parametrize(
    "text",
    [
        "B+ AS b FILTER b.v <= LAST(b.v)",  # around the loop
        "(B AS b FILTER b.v > LAST(b.v)){1}",  # no loop
        "(B+ AS b FILTER FIRST(b.v) < LAST(b.v)):+",  # no event at hand
        "(B AS b FILTER b.v > LAST(b.v) + AVG(b.v))+",  # another aggregate
        "A ; NOT (B AS b FILTER b.v > 3) ; C",
    ],
)
def test_elsewhere_they_stay_aggregates(text: str) -> None:
    query = parse(f"SELECT * WHERE {text}")
    assert with_rounds(query) is query


@pytest.mark.parametrize(
    ("text", "kernels"),
    [
        ("A+ AS a ; B AS b FILTER b.v > LAST(a.v) AND b.v > 2 * FIRST(a.v)", True),
        ("(A AS a ; B AS b)+ FILTER b.v > LAST(a.v)", False),  # an a may come behind a b
        ("AND(A AS a, B AS b) FILTER b.v > LAST(a.v)", False),
        ("(A OR B AS b)+ AS a FILTER b.v > LAST(a.v)", False),
    ],
)
def test_the_last_event_of_a_loop_needs_no_python_if_it_comes_before(text: str, kernels: bool) -> None:
    assert ("tests of codes" in ceql.compile(f"SELECT * WHERE {text}").explain()) == kernels


def live_runs(text: str, events: list[dict[str, Any]]) -> int:
    session = ceql.compile(text).open()
    session.push(events)
    return session._run.statistics["live_runs"]


@pytest.mark.parametrize("window", [10, 100, 1_000])
def test_contiguous_runs_are_one_however_long(window: int) -> None:
    """They all hold the price of the event before; with gaps there is a run for each price in the window."""
    falling = prices(*range(3_000, 1_500, -1))
    assert live_runs(f"{FALL} WITHIN {window} EVENTS LIMIT 1", falling) <= 2
    gaps = f"{FALL.replace(':+', '+')} WITHIN {window} EVENTS LIMIT 1"
    assert window <= live_runs(gaps, falling) <= window + 300
    assert live_runs(gaps, prices(*[3, 2, 1] * 500)) <= 4


def test_the_slots_behind_the_one_that_is_read_are_kept_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of registers that only later events will read are not evicted."""
    monkeypatch.setattr(encoding, "_TEXTS", 4)
    rng = random.Random(7)
    events = [{"type": "T", "s": f"{rng.randrange(40)}x", "n": i} for i in range(400)]
    for condition in (
        "b.s = PREV(b.s, 3)",
        "b.s > PREV(b.s, 3)",
        "b.s LIKE '1.*' OR NOT b[s = PREV(s, 2) AND s < '3x']",
    ):
        query = ceql.compile(f"SELECT * WHERE (T AS b FILTER {condition}):+ WITHIN 9 EVENTS")
        expected = sorted(tuple(m.positions) for m in query.run(events))
        session, found = query.open(), []
        for at in range(0, len(events), 7):
            found += [tuple(m.positions) for m in session.push(events[at : at + 7])]
            session = query.open(session.snapshot())
        assert sorted(found) == expected
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            assert sorted(tuple(m.positions) for m in query.run(events)) == expected


def test_a_missing_event_holds_and_a_missing_value_does_not() -> None:
    assert positions(FALL, prices(None, 3, None)) == [(0,), (1,), (2,)]
    assert positions(FALL.replace("b.price < PREV", "NOT b.price < PREV"), prices(3, 3)) == [(0,), (0, 1), (1,)]


@pytest.mark.parametrize("condition", ["b.price < PREV(b.price, 2)", "b.price + 0 * b[0].price < PREV(b.price, 2)"])
def test_values_of_another_kind_continue_in_python(condition: str) -> None:
    """Whole numbers beyond 2^53, and then decimals: the registers of the runs are handed over."""
    query = ceql.compile(f"SELECT * WHERE (T AS b FILTER {condition}) :+ WITHIN 3 EVENTS")
    session, found = query.open(), []
    big = 1 << 60
    for batch in (prices(big + 9, big + 3, big + 5), prices(big + 5, 2.5, 2.75), prices(2.25)):
        found += [tuple(m.positions) for m in session.push(batch)]
    assert isinstance(session._run.evaluator.run, RegisterRun)  # type: ignore[union-attr]
    runs = {(i, i + 1) for i in range(6)} | {(i,) for i in range(7)}
    assert set(found) == runs | {(0, 1, 2), (2, 3, 4), (2, 3, 4, 5), (3, 4, 5), (3, 4, 5, 6), (4, 5, 6)}


def test_rewrites_leave_them_where_they_are() -> None:
    text = "A AS a ; (B AS b FILTER b.v < PREV(b.v) AND a.v > 2 AND b.v > 5 AND b.v < PREV(a.v))+"
    formula = parse(f"SELECT * WHERE {text}").where
    popped = print_formula(pop_filters(formula, 1_000))
    assert "b.v < PREV(b.v)" in popped and popped.count("PREV") == text.count("PREV")
    assert print_formula(lp_normal_form(formula, 1_000)).count("PREV(b.v)") >= 1
    never = parse("SELECT * WHERE (B AS b FILTER b.v < PREV(b.v) AND b.v > PREV(b.v) AND b.v != b.v + 0)+").where
    assert remove_unsatisfiable(never) == (never, ())


def test_events_before_are_of_what_is_left_of_the_formula() -> None:
    """A branch that no event matches takes no events; the condition stays with the others."""
    text = "(B AS b) ; ((A AS b FILTER b[v > 3 AND v < 2]) OR (C AS c FILTER c.v > PREV(b.v)))+"
    events = [{"type": "B", "v": 2}, {"type": "C", "v": 1}, {"type": "C", "v": 3}]
    assert positions(f"SELECT * WHERE {text}", events) == [(0, 2)]


def test_there_is_no_safe_form_of_a_variable_in_two_parts() -> None:
    query = parse("SELECT * WHERE B AS b ; (B AS b FILTER b.v > PREV(b.v))")
    with pytest.raises(UnsupportedFeature, match="PREV"):
        safe_form(query, 1_000)


def test_keys_by_equalities_are_found_beside_them() -> None:
    query = ceql.compile("SELECT * WHERE A AS a ; B AS c FILTER a.k = c.k AND c.v > PREV(a.v)")
    assert query.explain().count("partition by: k") == 1
    whole = ceql.compile("SELECT * WHERE (A AS a FILTER a.k = PREV(a.k))+")
    assert "partition by" not in whole.explain()


def test_types_are_those_of_the_attribute() -> None:
    query = ceql.compile(FALL)
    with pytest.raises(QuerySemanticsError, match="no event has an attribute price"):
        query.run([], schema={"T": {"cost": "number"}})
    mixed = ceql.compile("SELECT * WHERE (ANY AS b FILTER b.price < PREV(b.name)):+")
    with pytest.raises(QuerySemanticsError, match="cannot be combined"):
        mixed.run([], schema={"T": {"price": "number", "name": "text"}})


def test_forecasts_refuse_them_by_name() -> None:
    with pytest.raises(UnsupportedFeature, match="PREV"):
        _ = ceql.compile("SELECT * WHERE A AS a ; B AS b FILTER b.v > PREV(a.v)").alerts().automaton


def test_any_is_no_type() -> None:
    events: list[dict[str, Any]] = [{"type": "ANY"}, {"type": "B"}, {"type": None}]
    assert positions("SELECT * WHERE `ANY`", events) == [(0,)]
    assert positions("SELECT * WHERE any", events) == [(0,), (1,), (2,)]
    assert positions("SELECT * WHERE A OR NOT ANY", events) == []
    query = ceql.compile("SELECT ANY WHERE ANY ; B")
    assert [m.positions for m in query.run(events)] == [(0,)]


def test_any_of_one_stream() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>ANY ; T>ANY AS t")
    streams = {"S": [{"type": "A", "time": 1}, {"type": "B", "time": 3}], "T": [{"type": "C", "time": 2}]}
    assert [m.positions for m in query.run(streams=streams)] == [(0, 1)]


# -- the stock trace


@needs(TRACE)
def test_falling_runs_of_a_stock() -> None:
    """Falling runs of each stock, directly one after the other: counted by hand, inside and around the loop."""
    table = pyarrow.csv.read_csv(TRACE)
    names, price = np.array(table["name"].to_pylist()), table["price"].to_numpy()
    count = 0
    for name in np.unique(names):
        fall = np.diff(price[names == name]) < 0
        length = 1
        for down in (*fall, False):
            if down:
                length += 1
            else:
                count += length * (length + 1) // 2
                length = 1
    for formula in ("(ANY AS b FILTER b.price < PREV(b.price)):+", "(ANY AS b):+ FILTER b.price < PREV(b.price)"):
        query = ceql.compile(f"SELECT * WHERE {formula} PARTITION BY [name]")
        assert query.run(TRACE, type_column="event_type").count() == count
