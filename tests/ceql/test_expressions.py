"""Expressions: column by column and event by event they mean the same, and NULL is never known to satisfy anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ceql.expressions.scalar import compile_condition
from ceql.expressions.vectorized import evaluate
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, EventOptions, EventStream
from tests.support.sizes import some


def batch_of(events: list[dict[str, Any]]) -> EventBatch:
    (batch,) = EventStream({"": [{"type": "E", **e} for e in events]}, EventOptions(from_arrival=True))
    return batch


def condition(text: str) -> ast.Condition:
    formula = parse(f"SELECT * WHERE E FILTER E[{text}]").where
    assert isinstance(formula, ast.Filter) and isinstance(formula.condition, ast.Holds)
    return formula.condition.condition


def by_column(node: ast.Condition, events: list[dict[str, Any]]) -> list[bool]:
    return [bool(t) for t in evaluate(node, batch_of(events))]


def by_event(node: ast.Condition, events: list[dict[str, Any]]) -> list[bool]:
    batch = batch_of(events)
    test = compile_condition(node, lambda attribute: batch.getter(attribute.name))
    return [test(row) is True for row in range(len(batch))]


EVENTS: list[dict[str, Any]] = [
    {"i": 1, "f": 0.5, "t": "abc", "b": True},
    {"i": None, "f": 2.0, "t": None, "b": False},
    {"i": 7, "f": None, "t": "abd", "b": None},
    {"i": -3, "f": -1.5, "t": "", "b": True},
]


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("i < 3", [1, 0, 0, 1]),
        ("NOT (i < 3)", [0, 0, 1, 0]),
        ("i < 3 OR f > 1", [1, 1, 0, 1]),
        ("NOT (i < 3 AND f > 1)", [1, 0, 1, 1]),
        ("i != 1", [0, 0, 1, 1]),
        ("missing = 1 OR NOT missing = 1", [0, 0, 0, 0]),
        ("i IN {1, 7.0}", [1, 0, 1, 0]),
        ("i NOT IN {1, 2}", [0, 0, 1, 1]),
        ("i IN {..1}", [1, 0, 0, 1]),
        ("NOT i IN {1..}", [0, 0, 0, 1]),
        ("i IN RANGE(f, 5)", [1, 0, 0, 0]),
        ("t LIKE 'ab.'", [1, 0, 1, 0]),
        ("t LIKE 'b'", [0, 0, 0, 0]),
        ("t NOT LIKE 'ab.'", [0, 0, 0, 1]),
        ("t > 'abc'", [0, 0, 1, 0]),
        ("'abc' >= t", [1, 0, 0, 1]),
        ("t IN {'abc', ''}", [1, 0, 0, 1]),
        ("b = TRUE", [1, 0, 0, 1]),
        ("b != TRUE", [0, 1, 0, 0]),
        ("i * 2 + 1 > f", [1, 0, 0, 0]),
        ("i / 2 = 3.5", [0, 0, 1, 0]),
        ("i / 0 = 1 OR NOT i / 0 = 1", [0, 0, 0, 0]),
        ("i % 2 = -1", [0, 0, 0, 1]),
        ("-i = 3", [0, 0, 0, 1]),
        ("1 < 2", [1, 1, 1, 1]),
        ("i = NULL OR NOT i = NULL", [0, 0, 0, 0]),
        ("COALESCE(NULL, i, NULL) = 7", [0, 0, 1, 0]),
        ("NULL IS NULL", [1, 1, 1, 1]),
        ("t LIKE 'ab.' OR t = NULL", [1, 0, 1, 0]),
        ("NOT i BETWEEN NULL AND 1", [0, 0, 1, 0]),
        ("CASE WHEN i > 1 THEN NULL ELSE 2 END = 2", [1, 1, 0, 1]),
    ],
)
def test_meaning(text: str, truth: list[int]) -> None:
    assert by_column(condition(text), EVENTS) == [bool(t) for t in truth]
    assert by_event(condition(text), EVENTS) == [bool(t) for t in truth]


@pytest.mark.parametrize("text", ["i = 'x'", "t > 3", "i LIKE 'x'", "t + 1 > 2", "b < TRUE", "b = 1", "t IN {1, 2}"])
def test_kinds_that_do_not_go_together_are_an_error(text: str) -> None:
    for way in (by_column, by_event):
        with pytest.raises(EventError):
            way(condition(text), EVENTS)


def test_times_are_compared_with_times_and_texts() -> None:
    import datetime

    times = [datetime.datetime(2024, 5, 1, 12), datetime.datetime(2024, 5, 2), None]
    events = [{"at": time} for time in times]
    for text, truth in [("at > '2024-05-01T13:00:00Z'", [0, 1, 0]), ("at = '2024-05-01T14:00:00+02:00'", [1, 0, 0])]:
        assert by_column(condition(text), events) == by_event(condition(text), events) == [bool(t) for t in truth]
    with pytest.raises(EventError, match="not a time"):
        by_column(condition("at > 'noon'"), events)


def test_nan_is_null() -> None:
    events = [{"f": math.nan}, {"f": 1.0}]
    assert by_column(condition("NOT f > 3"), events) == [False, True]


integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
floats = st.floats(allow_nan=False, width=64) | st.sampled_from([0.0, -0.0, 0.5, 1e308])
row = st.fixed_dictionaries({}, optional={
    "i": st.none() | integers, "j": st.none() | integers, "f": st.none() | floats, "g": st.none() | floats,
    "t": st.none() | st.sampled_from(["", "a", "ab", "b", "é"]), "u": st.none() | st.sampled_from(["a", "ab"]),
    "b": st.none() | st.booleans(), "c": st.none() | st.booleans(),
})  # fmt: skip
numbers = st.recursive(
    st.builds(ast.Attribute, st.sampled_from("ijfg"))
    | st.builds(ast.Number, integers | floats.filter(math.isfinite))
    | st.builds(ast.Null),
    lambda n: st.builds(ast.Arithmetic, st.sampled_from("+-*/%"), n, n) | st.builds(ast.Negate, n),
    max_leaves=4,
)
texts = st.builds(ast.Attribute, st.sampled_from("tu")) | st.builds(ast.Text, st.sampled_from(["a", "ab", "z"]))
truths = st.builds(ast.Attribute, st.sampled_from("bc")) | st.builds(ast.Truth, st.booleans())
symbols = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
leaves = (
    st.builds(ast.Compare, symbols, numbers, numbers)
    | st.builds(ast.Compare, symbols, texts, texts)
    | st.builds(ast.Compare, st.sampled_from(["=", "!="]), truths, truths)
    | st.builds(ast.Like, texts, st.sampled_from(["a.*", ".", "", "(a|b)+"]))
    | st.builds(ast.In, texts, st.lists(texts.filter(lambda t: isinstance(t, ast.Text)), min_size=1).map(tuple))
    | st.builds(ast.In, numbers, st.lists(st.builds(ast.Number, integers), min_size=1, max_size=3).map(tuple))
    | st.builds(ast.InRange, numbers, numbers, st.none() | numbers)
)
conditions = st.recursive(
    leaves,
    lambda c: st.builds(ast.And, c, c) | st.builds(ast.Or, c, c) | st.builds(ast.Not, c),
    max_leaves=5,
)


@settings(max_examples=some(150), deadline=None)
@given(conditions, st.lists(row, min_size=1, max_size=6))
@example(condition("i * j > 0"), [{"i": 2**62, "j": 2}, {"i": -(2**62), "j": 2}, {"i": 2**40, "j": 2**40}])
@example(condition("i % j = 0"), [{"i": -(2**63), "j": -1}, {"i": 5, "j": 0}])
@example(condition("-i > 0 OR i - j < 0"), [{"i": -(2**63), "j": 1}])
@example(condition("i + 0.0 = j"), [{"i": 2**53 + 1, "j": 2**53}])
def test_columns_and_events_agree(node: ast.Condition, events: list[dict[str, Any]]) -> None:
    assert by_column(node, events) == by_event(node, events)


def test_equal_predicates_are_equal_whatever_variable_they_were_written_for() -> None:
    import ceql

    query = ceql.compile("SELECT * WHERE E AS x ; E AS y FILTER x[i > 1] AND y[i > 1] AND y.i > 1")
    assert len(query.automaton.predicates) == 2  # the type, and i > 1


def test_a_predicate_is_looked_up_per_distinct_text() -> None:
    batch = batch_of([{"t": f"name {k % 40}"} for k in range(400)])
    column = batch.types
    assert column is not None and len(column.texts) == 1
    assert evaluate(condition("t LIKE 'name [0-9]'"), batch).sum() == 100
    assert evaluate(condition("NOT t LIKE 'name .*'"), batch).sum() == 0
    assert np.array_equal(evaluate(condition("t LIKE 'name .*'"), batch), np.ones(400, bool))
