"""A function is a row of the table: calls of it are parsed, checked, and evaluated in all places by the row alone."""

from __future__ import annotations

from typing import Any

import pytest

import ceql
from ceql.operators.functions import FUNCTIONS, Function
from ceql.semantics.schemas import Schema
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_query

ROWS = (
    Function("BEGINS", ("text", "text"), "truth", str.startswith),
    Function("ROOT", ("number",), "number", lambda value: value**0.5 if value >= 0 else None),
    Function("LOWERED", ("text",), "text", str.lower),
)
EVENTS = [
    {"type": "A", "name": "ab", "v": 4},
    {"type": "A", "name": "Ba", "v": -1},
    {"type": "A", "name": None, "v": 9.0},
    {"type": "B", "name": "a", "v": 2},
    {"type": "B", "name": "B", "v": 3},
]


@pytest.fixture(autouse=True)
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS:
        monkeypatch.setitem(FUNCTIONS, row.name, row)


def found(text: str) -> list[tuple[int, ...]]:
    """The matches in batches, which are those of single events."""
    query = ceql.compile(f"SELECT * WHERE {text}")
    batch = sorted(match.positions for match in query.run(EVENTS))
    session = query.open()
    pushed = [match.positions for event in EVENTS for match in session.push(event)]
    assert sorted(pushed) == batch
    return batch


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x[begins(name, 'a')]", [(0,)]),
        ("x[NOT BEGINS(name, 'a')]", [(1,)]),
        ("x[BEGINS(name, 'a') = FALSE OR v = 9]", [(1,), (2,)]),
        ("x[BEGINS(LOWERED(name), 'b') AND v < 0]", [(1,)]),
        ("x[ROOT(v) >= 2]", [(0,), (2,)]),
        ("x[ROOT(v) + 1 IN {3, 4}]", [(0,), (2,)]),
    ],
)
def test_conditions_on_one_event(condition: str, expected: list[tuple[int, ...]]) -> None:
    assert found(f"A AS x FILTER {condition}") == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("BEGINS(x.name, y.name)", [(0, 3), (1, 4)]),
        ("LOWERED(x.name) > LOWERED(y.name)", [(0, 3), (1, 3), (1, 4)]),
        ("ROOT(x.v) = y.v", [(0, 3), (2, 4)]),
        ("ROOT(x.v + y.v) = 3 OR BEGINS(x.name, y.name)", [(0, 3), (1, 4)]),
        ("BEGINS(x.name, 'a') AND COUNT(y) = 1", [(0, 3), (0, 4)]),
    ],
)
def test_guards(condition: str, expected: list[tuple[int, ...]]) -> None:
    assert found(f"A AS x ; B AS y FILTER {condition}") == expected


def test_guards_stay_in_the_kernels() -> None:
    plan = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER BEGINS(x.name, y.name)").explain()
    assert "the kernel moves (states, codes held)" in plan


def test_the_text_of_a_call() -> None:
    query = parse("SELECT * WHERE A AS x FILTER BEGINS(x.name, 'a')")
    assert print_query(query).endswith("FILTER BEGINS(x.name, 'a') = TRUE")
    assert parse(print_query(query)) == query


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("BEGINS(x.name) = TRUE", "BEGINS takes two values, and there are 1"),
        ("BEGINS(x.v, 'a')", "BEGINS of x.v, which is a number"),
        ("BEGINS(x, 'a')", "BEGINS of which attribute of x"),
        ("ROOT(x.v)", "is a value, and a condition is needed"),
        ("ROOT(x.name) > 1", "ROOT of x.name, which is a text"),
    ],
)
def test_mistakes_that_the_row_finds(condition: str, problem: str) -> None:
    with pytest.raises(ceql.QueryError, match=problem):
        ceql.compile(f"SELECT * WHERE A AS x FILTER {condition}").run(EVENTS, schema=_schema()).count()


def _schema() -> Any:
    return Schema({"name": "text", "v": "number"})


def test_values_of_another_kind() -> None:
    query = ceql.compile("SELECT * WHERE A AS x FILTER x[BEGINS(v, 'a')]")
    with pytest.raises(ceql.EventError, match="BEGINS is of two texts, and this is a number"):
        query.run(EVENTS).count()
