"""Functions mean the same on columns, on single values and in the generated code of pushed events."""

from __future__ import annotations

import datetime
import functools
import os
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ceql
from ceql.expressions.codegen import Unfit, compile_bits
from ceql.expressions.predicates import Satisfies
from ceql.expressions.scalar import compile_condition
from ceql.expressions.vectorized import evaluate
from ceql.operators.columns import ByRow, Constant, values_of
from ceql.operators.times import move, moved_columns
from ceql.syntax import ast
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_query
from spaseq.core.errors import EventError, QuerySemanticsError
from spaseq.core.events import Duration, DurationColumn, EventBatch, EventOptions, EventStream, NumberColumn
from tests.support import drawn_functions
from tests.support.sizes import some


def batch_of(events: list[dict[str, Any]]) -> EventBatch:
    (batch,) = EventStream({"": [{"type": "E", **e} for e in events]}, EventOptions(from_arrival=True))
    return batch


def condition(text: str) -> ast.Condition:
    query = parse(f"SELECT * WHERE E FILTER E[{text}]")
    assert parse(print_query(query)) == query, text
    formula = query.where
    assert isinstance(formula, ast.Filter) and isinstance(formula.condition, ast.Holds)
    return formula.condition.condition


ERROR = "error"
COUNT = int(os.environ.get("SPASEQ_RANDOM", 250))


def by_column(node: ast.Condition, events: list[dict[str, Any]]) -> list[bool] | str:
    try:
        return [bool(t) for t in evaluate(node, batch_of(events))]
    except EventError:
        return ERROR


def by_event(node: ast.Condition, events: list[dict[str, Any]]) -> list[bool] | str:
    batch = batch_of(events)
    test = compile_condition(node, lambda attribute: batch.getter(attribute.name))
    try:
        return [test(row) is True for row in range(len(batch))]
    except EventError:
        return ERROR


def by_code(node: ast.Condition, events: list[dict[str, Any]]) -> list[bool] | str:
    """As pushed events are tested, one by one; those that need columns as batches of one."""
    bits = compile_bits((Satisfies(node),), "type", "")
    assert bits is not None
    found = []
    try:
        for event in events:
            try:
                found.append(bits({"type": "E", **event}) == 1)
            except Unfit:
                found.append(bool(evaluate(node, batch_of([event]))[0]))
    except EventError:
        return ERROR
    return found


@pytest.mark.parametrize("mixes", [False, True])
def test_all_evaluators_agree_on_random_conditions(mixes: bool) -> None:
    truths: dict[Any, int] = {}
    for seed in range(COUNT):
        draw = random.Random(f"{seed} {mixes}")
        text = drawn_functions.expression("c", draw, draw.randrange(1, 4))
        events = [drawn_functions.event(draw, mixes) for _ in range(draw.randrange(1, 7))]
        node = condition(text)
        expected = by_event(node, events)
        assert by_column(node, events) == expected, (text, events)
        assert by_code(node, events) == expected, (text, events)
        for truth in {expected} if expected == ERROR else expected:
            truths[truth] = truths.get(truth, 0) + 1
    assert truths[True] > COUNT / 3 and truths[False] > COUNT / 3, truths
    assert not mixes or truths[ERROR] > COUNT / 50


@pytest.mark.parametrize(
    "text", ["LEAST((to - at) / 0 SECONDS, 1) IS NULL", "MOD(f, 0) IS NULL", "(to - at) / 0 IS NULL"]
)
def test_a_constant_that_makes_null_everywhere(text: str) -> None:
    """Found by random conditions: a column's known rows were a single truth value."""
    at = datetime.datetime(2026, 1, 1)
    events: list[dict[str, Any]] = [{"at": at, "to": at, "f": 1.5}, {"at": at}]
    assert by_column(condition(text), events) == by_event(condition(text), events) == [True, True]


def check_two_variables(seed: int) -> int:
    """The kernels, with batches and with pushed events, against every pair of events: the number of matches."""
    draw = random.Random(seed)
    text = drawn_functions.expression("c", draw, draw.randrange(1, 3), ("x", "y"))
    if not {"x", "y"} <= set(re.findall(r"\b[xy](?=\.)", text)):
        return 0
    events = [{"type": draw.choice("AB"), **drawn_functions.event(draw, False)} for _ in range(9)]
    formula = parse(f"SELECT * WHERE A AS x ; B AS y FILTER {text}").where
    assert isinstance(formula, ast.Filter)
    batch = batch_of(events)
    test = compile_condition(formula.condition, functools.partial(_of_pair, batch))
    expected = [
        (i, j) for j in range(9) for i in range(j)
        if (events[i]["type"], events[j]["type"]) == ("A", "B") and test((i, j)) is True
    ]  # fmt: skip
    try:
        query = ceql.compile(f"SELECT * WHERE A AS x ; B AS y FILTER {text}")
    except QuerySemanticsError as error:
        assert error.problem == "this condition is about no variable", text  # of a part
        return 0
    assert sorted(m.positions for m in query.run(events)) == sorted(expected), (text, events)
    session = query.open()
    pushed = [m.positions for event in events for m in session.push(event)]
    assert sorted(pushed) == sorted(expected), (text, events)
    return len(expected)


def test_conditions_on_two_variables() -> None:
    assert sum(map(check_two_variables, range(some(400)))) > some(150)


def test_a_power_of_negative_zero_is_that_of_zero_on_every_road() -> None:
    """Found by random conditions: a pushed event came out of the kernel's registers with 0.0 for -0.0."""
    events = [{"type": "A", "f": -0.0}, {"type": "B", "i": -1, "f": 0.5}]
    for sign, found in (("<", []), (">", [(0, 1)])):
        query = ceql.compile(f"SELECT * WHERE A AS x ; B AS y FILTER POWER(x.f, y.i) {sign} FLOOR(y.f)")
        assert [match.positions for match in query.run(events)] == found
        with query.open() as session:
            assert [match.positions for event in events for match in session.push(event)] == found


KEPT = (
    "a.end - a.time < b.end - b.time",
    "a.end - a.time != b.end - b.time",
    "b.time - a.time > a.end - a.time OR a.v = b.v",
    "LOWER(a.name) = LOWER(b.name)",
    "COALESCE(a.name, 'x') < COALESCE(b.name, 'y')",
    "a.v IN b.l",
    "CASE WHEN a.v > b.v THEN a.name ELSE b.name END IS NULL",
    "b.time - PREV(b.time) > 10 MINUTES",
    "MAX(b.end) - MIN(b.time) > 1 HOUR",
    "AVG((b.end - b.time) / 1 MINUTE) > 30",
    "SUM(CASE WHEN b.name IS NULL THEN 1 ELSE 0 END) = 2",
    "a.name = ANY(b.w)",
    "b.name > ALL(a.w) OR a.v < ANY(b.l)",
    "SUM(b.end - b.time) > 1 HOUR",
    "AVG(b.end - b.time) > 30 MINUTES",
)


@pytest.mark.parametrize(
    "text", [pytest.param(each, marks=[] if i % 2 == 0 else [pytest.mark.slow]) for i, each in enumerate(KEPT)]
)
def test_snapshots_keep_computed_values(text: str) -> None:
    draw, events = random.Random(3), []
    for k in range(60):
        time = datetime.datetime(2026, 1, 1) + datetime.timedelta(minutes=7 * k + draw.randrange(5))
        end = None if draw.random() < 0.1 else time + datetime.timedelta(minutes=draw.randrange(60))
        events.append({"type": draw.choice("AB"), "time": time, "end": end, "name": draw.choice(["a", "A", "b", None]),
                       "l": [1.0, 2.0][: draw.randrange(3)], "w": ["a", None, "A"][draw.randrange(3) :],
                       "v": draw.randrange(3)})  # fmt: skip
    loop = any(word in text for word in ("PREV", "MAX", "AVG", "SUM"))
    what = "NEXT * WHERE A AS a ; B+ AS b" if loop else "* WHERE A AS a ; B AS b"
    query = ceql.compile(f"SELECT {what} FILTER {text} WITHIN {2 if loop else 3} HOURS")
    expected = sorted(match.positions for match in query.run(events))
    assert expected
    for cut in (0, 7, 30, 41):
        session = query.open()
        found = [match.positions for event in events[:cut] for match in session.push(event)]
        session = query.open(session.snapshot())
        found += [match.positions for event in events[cut:] for match in session.push(event)]
        assert sorted(found) == expected, cut


def _of_pair(batch: EventBatch, attribute: ast.Attribute) -> Callable[[tuple[int, int]], Any]:
    get, place = batch.getter(attribute.name), "xy".index(attribute.variable or "")
    return lambda pair: get(pair[place])


def test_durations_and_numbers_on_columns_are_exact() -> None:
    """Found by random columns of SELECT: a quotient was taken of doubles, which hold no 20 days in nanoseconds."""
    draw, compared = random.Random(1), 0
    far = (0, 1, -1, 2, 3, -7, 2**53 + 1, -(2**63), 2**63 - 1)

    def whole() -> int:
        return draw.choice((draw.choice(far), draw.randrange(-(2**63), 2**63), draw.randrange(-(10**6), 10**6)))

    for _ in range(400):
        spans = [Duration(whole()) for _ in range(5)]
        column = DurationColumn(np.array(spans, np.int64), None)
        for symbol in "*/":
            numbers, doubles = (
                [whole() for _ in spans],
                [draw.choice((0.0, 1.5, 1e300, -2.25, 3.0, 1e-9)) for _ in spans],
            )
            others: list[tuple[Any, list[Any]]] = [
                (NumberColumn(np.array(numbers, np.int64), None), numbers),
                (NumberColumn(np.array(doubles), None), doubles),
                *((Constant(some[0]), some[:1] * 5) for some in (numbers, doubles)),
            ]
            if symbol == "/":
                others.append((DurationColumn(np.array(numbers, np.int64), None), list(map(Duration, numbers))))
            for right, values in others:
                try:
                    found = values_of(moved_columns(symbol, column, right, ""), 5)
                except ByRow:
                    continue
                wanted = [move(symbol, span, value) for span, value in zip(spans, values, strict=True)]
                assert found == wanted and [*map(type, found)] == [*map(type, wanted)], (symbol, spans, values)
                compared += 5
    assert compared > 15_000
