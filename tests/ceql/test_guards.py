"""Guards: what registers accept is what every choice of events satisfies."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ceql.expressions.scalar import compile_condition
from ceql.guards.guard import Guard
from ceql.guards.registers import GuardRegisters
from ceql.operators import values
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.events import EventBatch, EventOptions, EventStream
from tests.support.sizes import some


@dataclass(frozen=True)
class Batch:
    events: EventBatch


def guard(text: str) -> Guard:
    condition = parse(f"SELECT * WHERE A FILTER {text}").where.condition  # type: ignore[attr-defined]
    return Guard(condition, frozenset("xyz"[: 3 if "z." in text else 2]))


def loaded(registers: GuardRegisters, events: list[dict[str, Any]]) -> GuardRegisters:
    (batch,) = EventStream({"": [{"type": "A", **e} for e in events]}, EventOptions())
    registers.load(Batch(batch))
    return registers


GUARDS = ["x.p < y.p", "x.p >= y.p", "x.p = y.p", "x.p != y.p", "y.p = x.q + 1", "y.p > x.p OR y.q = x.q",
          "NOT x.p = y.p", "x.p + y.p > z.p", "x.p IN RANGE(y.p, y.q)"]  # fmt: skip
event = st.fixed_dictionaries({"p": st.none() | st.integers(0, 3), "q": st.none() | st.integers(0, 3)})
taken = st.lists(st.tuples(event, st.sets(st.sampled_from("xyz"), min_size=1)), min_size=1, max_size=6)


def _lookup(attribute: ast.Attribute) -> Callable[[Mapping[str, Mapping[str, Any]]], Any]:
    variable = attribute.variable
    assert variable is not None
    return lambda choice: choice[variable].get(attribute.name)


@settings(max_examples=some(400), deadline=None)
@given(st.sampled_from(GUARDS), taken)
def test_registers_decide_for_all_choices(text: str, moves: list[tuple[dict[str, Any], set[str]]]) -> None:
    g = guard(text)
    registers = loaded(GuardRegisters((g,)), [e for e, _ in moves])
    holds = compile_condition(g.condition, _lookup)
    row: Any = registers.empty
    sets: dict[str, list[dict[str, Any]]] = {v: [] for v in g.variables}
    for index, (attributes, variables) in enumerate(moves):
        mine = frozenset(variables) & g.variables
        if not mine:
            continue
        for variable in mine:
            sets[variable].append(attributes)
        expected = all(
            holds(dict(zip(sets, choice, strict=True))) is True for choice in itertools.product(*sets.values())
        )
        row = registers.take(row, g, mine, index)
        assert (row is not None) == expected
        if row is None:
            return
    assert registers.leave(row, g) == registers.empty


def test_rows_keep_what_the_guard_needs_and_no_more() -> None:
    events = [{"p": p} for p in (3, 1, 2, None)]
    g = guard("x.p < y.p")
    registers = loaded(GuardRegisters((g,)), events)
    row = registers.empty
    for index in range(3):
        row = registers.take(row, g, frozenset("x"), index)
    assert row == registers.take(registers.empty, g, frozenset("x"), 0)  # only the greatest x can still fail
    assert registers.take(row, g, frozenset("y"), 3) is None  # NULL is not known to be greater


def test_rows_of_different_guards_do_not_mix() -> None:
    one, two = guard("x.p < y.p"), guard("x.p = y.p")
    registers = loaded(GuardRegisters((one, two)), [{"p": 1}])
    row = registers.take(registers.take(registers.empty, two, frozenset("x"), 0), one, frozenset("x"), 0)
    assert row == registers.take(registers.take(registers.empty, one, frozenset("x"), 0), two, frozenset("x"), 0)
    assert registers.leave(row, one) == registers.take(registers.empty, two, frozenset("x"), 0)


def test_registers_pickle() -> None:
    g = guard("x.p < y.p")
    copy = pickle.loads(pickle.dumps(GuardRegisters((g,))))
    assert loaded(copy, [{"p": 1}]).take((), guard("x.p < y.p"), frozenset("x"), 0) is not None


def test_integers_and_decimals_are_compared_by_value() -> None:
    assert values.compare("=", 2**53 + 1, float(2**53)) is False
    assert values.compare(">", 2**53 + 1, float(2**53)) is True
    assert values.compare("=", 2**53, float(2**53)) is True
    assert values.compare("<", 2**53, 2**53 + 1) is True
