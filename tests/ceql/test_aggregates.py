"""Guards with aggregates: they accept what the condition says of all that was taken, and their state stays small."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
from ceql import Settings
from ceql.guards.guard import Guard
from ceql.guards.registers import GuardRegisters
from ceql.syntax.parse import parse
from spaseq.core.errors import BudgetExceeded, EventError
from spaseq.core.events import EventBatch, EventOptions, EventStream
from tests.support.sizes import some


@dataclass(frozen=True)
class Batch:
    events: EventBatch


def guard(text: str, variables: str) -> Guard:
    condition = parse(f"SELECT * WHERE A FILTER {text}").where.condition  # type: ignore[attr-defined]
    return Guard(condition, frozenset(variables))


def taken(g: Guard, events: list[tuple[str, dict[str, Any]]]) -> tuple[GuardRegisters, Any]:
    """The row after taking each event for its variable; None where the guard rejected one."""
    registers = GuardRegisters((g,))
    (batch,) = EventStream({"": [{"type": "A", **e} for _, e in events]}, EventOptions())
    registers.load(Batch(batch))
    row: Any = registers.empty
    for index, (variable, _) in enumerate(events):
        row = registers.take(row, g, frozenset(variable), index)
        if row is None:
            break
    return registers, row


def holds(text: str, events: list[tuple[str, dict[str, Any]]], variables: str = "x") -> bool:
    g = guard(text, variables)
    registers, row = taken(g, events)
    return row is not None and registers.leave(row, g) is not None


def xs(*values: Any) -> list[tuple[str, dict[str, Any]]]:
    return [("x", {"p": v}) for v in values]


numbers = st.lists(st.none() | st.integers(-50, 50) | st.floats(-50, 50), min_size=1, max_size=8)


@settings(max_examples=some(300), deadline=None)
@given(numbers)
def test_aggregates_are_what_they_are_called(values: list[Any]) -> None:
    known = [v for v in values if v is not None]
    doubles = [float(v) for v in known] if any(isinstance(v, float) for v in known) else known
    wanted = {
        "AVG": statistics.fmean(known) if known else None,
        "SUM": math.fsum(known) if known else None,
        "MIN": min(doubles, default=None),
        "MAX": max(doubles, default=None),
        "STDDEV": statistics.stdev(known) if len(known) > 1 else None,
        "FIRST": values[0],
        "LAST": values[-1],
    }
    for name, value in wanted.items():
        near = f"{name}(x.p) - {value!r} <= 1e-6 AND {value!r} - {name}(x.p) <= 1e-6"
        if value is None:
            assert not holds(f"{name}(x.p) = 0 OR {name}(x.p) != 0", xs(*values)), name
        else:
            assert holds(near.replace("- -", "+ "), xs(*values)), (name, values)
    assert holds(f"COUNT(x.p) = {len(known)}", xs(*values)) and holds(f"COUNT(x) = {len(values)}", xs(*values))


@settings(max_examples=some(200), deadline=None)
@given(
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.integers(-1, 5) | st.just(2.5),
    st.integers(1, 6),
    st.booleans(),
)
def test_a_count_is_compared_whatever_is_decided_early(symbol: str, bound: float, count: int, mirrored: bool) -> None:
    compare = {"=": "==", "!=": "!="}.get(symbol, symbol)
    text = f"{bound} {symbol} COUNT(x)" if mirrored else f"COUNT(x) {symbol} {bound}"
    python = f"{bound} {compare} {count}" if mirrored else f"{count} {compare} {bound}"
    assert holds(text, xs(*range(count))) == eval(python)


def test_a_count_goes_no_further_than_it_must() -> None:
    g = guard("COUNT(x) >= 3", "x")
    assert taken(g, xs(*range(5)))[1] == taken(g, xs(*range(9)))[1]
    assert taken(guard("COUNT(x) < 3", "x"), xs(1, 2, 3))[1] is None


def test_what_is_kept_does_not_grow_with_the_events() -> None:
    g = guard("AVG(x.p) < y.p AND MIN(x.p) > 0 AND STDDEV(x.p) < 100 AND LAST(x.p) > FIRST(x.p)", "xy")
    few, many = (len(repr(taken(g, xs(*([1, 2, 3] * n)))[1])) for n in (1, 40))
    assert many < few + 20


@settings(max_examples=some(200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 4)), min_size=1, max_size=7))
def test_every_event_outside_of_the_aggregates(moves: list[tuple[str, int]]) -> None:
    values = {v: [p for w, p in moves if w == v] for v in "xy"}
    expected = not all(values.values()) or all(
        sum(values["x"]) > y and x < 4 + y for x, y in itertools.product(values["x"], values["y"])
    )
    events = [(v, {"p": p}) for v, p in moves]
    assert holds("SUM(x.p) > y.p AND x.p < 4 + y.p", events, "xy") == expected


def test_large_numbers() -> None:
    big = 2**62
    assert holds("SUM(x.p) > 0", xs(big)) and not holds("SUM(x.p) > 0 OR SUM(x.p) <= 0", xs(big, big))  # NULL
    assert holds(f"AVG(x.p) = {big}", xs(big, big))
    assert holds("SUM(x.p) > 1e308", xs(1e308, 1e308)) and holds("MAX(x.p) = 1e308", xs(1.0, 1e308))


def test_aggregates_of_texts() -> None:
    assert holds("MIN(x.p) = 'a' AND LAST(x.p) = 'b'", xs("a", "b"))
    with pytest.raises(EventError, match=r"SUM\(x.p\) > 3: 'a' is not a number"):
        holds("SUM(x.p) > 3", xs("a"))
    with pytest.raises(EventError, match="a text"):
        holds("MAX(x.p) > 3", xs("a"))


def test_what_one_event_may_move_has_a_budget() -> None:
    """Each distinct sum is a register row, and an event moves them all."""
    events = [{"type": "A", "v": 1 << i} for i in range(9)]
    for text in ("A+ AS x ; B FILTER SUM(x.v) > 3", "A+ AS x FILTER AVG(x.v) > 3"):
        query = ceql.compile(f"SELECT * WHERE {text}", settings=Settings(live_runs=100))
        with query.open() as session, pytest.raises(BudgetExceeded, match=r"live_runs is 100 runs and \d+ are needed"):
            for event in events:
                session.push(event)
        with pytest.raises(BudgetExceeded, match="raise live_runs"):
            query.run(events).count()


def test_an_event_in_every_batch_is_read_anew() -> None:
    query = ceql.compile("SELECT * WHERE A+ AS x ; B AS y FILTER SUM(x.v) = y.v")
    with query.open() as session:
        for v in (1, 2, 4):
            session.push([{"type": "A", "v": v}])
        found = [list(m.positions) for v in (7, 3, 5) for m in session.push([{"type": "B", "v": v}])]
    assert found == [[0, 1, 2, 3], [0, 1, 4], [0, 2, 5]]


@pytest.mark.parametrize("evaluator", ["chain", "tree"])
def test_pushed_events_that_are_numbered_anew_keep_their_own_values(evaluator: str) -> None:
    """A guard remembers what the last event brings, by its number in the memory, which forgets events."""
    rng = random.Random(20)
    events = [{"type": rng.choice("AC"), "b": rng.randrange(5), "t": t // 2} for t in range(200)]
    text = "SELECT * WHERE C ; (A FILTER FIRST(A.b) != 4) :+ WITHIN 3 [t]"
    query = ceql.compile(text, settings=Settings(evaluator=evaluator))
    session = query.open()
    pushed = [match.positions for event in events for match in session.push([event])]
    assert sorted(pushed) == sorted(match.positions for match in query.run(events))
    assert sorted(pushed) == sorted(match.positions for match in ceql.compile(text).run(events))
