"""NOT at the borders of parts, in loops, alternatives and AND: queries that mean the same as others without."""

from __future__ import annotations

import random

import pytest

import ceql
from ceql.rewrites import lp_normal_form, safe_form
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_formula, print_query
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import And, Atom, Bordered, Iterate, Optional, Or, Sequence, Skip, borders
from spaseq.core.pattern.nodes import Absent
from tests.support import oracle
from tests.support.harness import ceql_whole

STREAMS = 100
BORDERS = {
    "X ; ((NOT B ; A) OR C) ; D": ("X ; NOT B ; A ; D", "X ; C ; D"),
    "X ; ((A ; NOT B) OR C) ; D": ("X ; A ; NOT B ; D", "X ; C ; D"),
    "X ; ((A ; NOT B) OR C) ; ((NOT A ; D) OR X)": (
        "X ; A ; NOT (A OR B) ; D", "X ; A ; NOT B ; X", "X ; C ; NOT A ; D", "X ; C ; X",
    ),
    "X ; (NOT B ; A)? ; D": ("X ; NOT B ; A ; D", "X ; D"),
    "X ; (A ; NOT B)? ; D": ("X ; A ; NOT B ; D", "X ; D"),
    "X ; (NOT B ; A){2} ; D": ("X ; NOT B ; A ; NOT B ; A ; D",),
    "X ; (A ; NOT B){1,2} ; D": ("X ; A ; NOT B ; D", "X ; A ; NOT B ; A ; NOT B ; D"),
    "X ; AND(A, NOT B) ; D": ("X ; NOT B ; A ; NOT B ; D",),
    "X ; AND(A, NOT B, C) ; D": (
        "X ; NOT B ; A ; NOT B ; C ; NOT B ; D", "X ; NOT B ; C ; NOT B ; A ; NOT B ; D",
    ),
    "X ; AND(A, NOT (B OR D)) ; C": ("X ; NOT (B OR D) ; A ; NOT (B OR D) ; C",),
    "X ; AND(A?, NOT B, C) ; D": ("X ; NOT B ; C ; NOT B ; D", "X ; AND(A, NOT B, C) ; D"),
    "X ; AND(A?, NOT B) ; D": ("X ; NOT B ; A ; NOT B ; D", "X ; D"),
    "X ; AND((A -> C), NOT B) ; D": ("X ; NOT B ; (A -> NOT B -> C) ; NOT B ; D",),
    "X ; AND((A : C), NOT B) ; D": ("X ; NOT B ; (A : C) ; NOT B ; D",),
    "X ; AND(A, NOT B, AND(C, D)) ; X": ("X ; AND(A, C, NOT B, D) ; X",),
    "X ; AND(A{2}, NOT B) ; D": ("X ; NOT B ; A ; NOT B ; A ; NOT B ; D",),
    "X -> AND(A, NOT B) -> D": ("X -> NOT B -> A -> NOT B -> D",),
    "X -> (NOT B -> A ; NOT C) ; D": ("X -> NOT B -> A ; NOT C ; D",),
    "X ; ((A ; NOT B) AS n FILTER A[v > 1]) ; D": ("X ; (A AS n FILTER A[v > 1]) ; NOT B ; D",),
    "X AS x ; ((NOT (B AS b FILTER b.v > x.v) ; A) OR C) ; D": (
        "X AS x ; NOT (B AS b FILTER b.v > x.v) ; A ; D", "X ; C ; D",
    ),
    "X AS a ; (C OR (A AS a ; NOT (B AS b FILTER b.v > a.v))) ; D": (
        "X ; C ; D", "X ; A AS a ; NOT (B AS b FILTER b.v > a.v) ; D",
    ),
}  # fmt: skip
"""Formulas, each with those of which it is the union."""


Events = list[dict[str, object]]


def _streams() -> list[Events]:
    """Short streams, whose events say by `s` of which one they are."""
    rng = random.Random(39)
    return [
        [{"type": rng.choice("XABCD"), "v": rng.randint(0, 4), "s": s} for _ in range(rng.randint(8, 14))]
        for s in range(STREAMS)
    ]


def _found(formula: str, streams: list[Events]) -> list[oracle.Match]:
    """The matches in all the streams, in order: one evaluation of many partitions is quicker than many evaluations."""
    events = [event for stream in streams for event in stream]
    return sorted(ceql_whole(f"SELECT * WHERE {formula} PARTITION BY [s]", events))


@pytest.mark.parametrize(
    "formula", [pytest.param(each, marks=[] if i % 2 == 0 else [pytest.mark.slow]) for i, each in enumerate(BORDERS)]
)
def test_a_border_is_for_the_gap_around(formula: str) -> None:
    streams = _streams()
    expected = {match for other in BORDERS[formula] for match in _found(other, streams)}
    assert set(_found(formula, streams)) == expected
    assert len(expected) > 2


def test_a_loop_has_its_borders_in_every_gap() -> None:
    loop = "X ; (NOT B ; A ; NOT C)+ ; D"
    rounds = ["A", "A ; NOT (B OR C) ; A", "A ; NOT (B OR C) ; A ; NOT (B OR C) ; A"]
    streams = [
        [event for i, event in enumerate(events[:7]) if event["type"] != "A" or i < 6]  # few rounds beside X and D
        for events in _streams()
    ]
    written = {match for r in rounds for match in _found(f"X ; NOT B ; {r} ; NOT C ; D", streams)}
    assert {match for match in _found(loop, streams) if len(match[2]) <= 5} == written
    assert written


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        ("X ; ((NOT B ; A) OR C)", "1:30 before A: none of the events that lie there may be B"),
        ("X ; ((A ; NOT B) OR C) ; D", "1:22 behind A: none of the events that lie there may be B"),
        (
            "X ; AND(A, NOT B, C) ; D",
            "1:20 between the events of AND(A, NOT B, C): none may be B, nor may those before and behind them",
        ),
    ],
)
def test_explain_says_what_must_not_come(formula: str, line: str) -> None:
    assert f"  {line}\n" in ceql.compile(f"SELECT * WHERE {formula}").explain()


def test_borders_of_patterns() -> None:
    a, b, c = (Atom(frozenset(), frozenset({name})) for name in "abc")
    no = Absent(b, Skip.ANY)
    before, behind = Bordered(a, before=(no,)), Bordered(a, behind=(no,))
    own, none = frozenset({no}), frozenset[Absent]()
    assert borders(a).before == borders(a).behind == {none}
    assert borders(before).before == {own} and borders(before).behind == {none}
    assert borders(Or(before, c)).before == {own, none}
    assert borders(Sequence(Optional(c), before, Skip.ANY)).before == {own, none}
    assert borders(Sequence(behind, Optional(c), Skip.ANY)).behind == {own, none}
    assert borders(Iterate(behind, Skip.ANY)).behind == {own}
    assert borders(And(before, c)).before == {none}
    assert borders(Bordered(before, before=(Absent(c),))).before == {own | {Absent(c)}}
    assert borders(Sequence(Optional(a), Optional(c), Skip.ANY)).empty


def test_forms_keep_what_must_not_come() -> None:
    formula = "X ; (((NOT B ; A AS x) OR C) FILTER x[v > 1]) ; AND(A AS x, NOT B, C) ; D"
    query = parse(f"SELECT * WHERE {formula}")
    pushed = print_formula(lp_normal_form(query.where, 10_000))
    assert "NOT B ; " in pushed and "NOT B AS" not in pushed and "NOT B, C" in pushed
    safe = safe_form(query, 10_000)
    assert "x_2" in print_query(safe)
    streams = _streams()
    written = _found(formula, streams)
    assert written
    for other in (pushed, print_formula(safe.where)):
        assert _found(other, streams) == written


def test_alternatives_with_borders_of_their_own_are_bounded() -> None:
    """In a loop each pair of them has a state to wait in."""
    several = " OR ".join(f"(NOT B{i} ; A{i} ; NOT C{i})" for i in range(17))
    text = f"SELECT * WHERE X ; ({several})+ ; D"
    with pytest.raises(BudgetExceeded, match="negated_conditions is 8 alternatives with NOTs of their own"):
        ceql.compile(text)
    assert ceql.compile(text, settings=ceql.Settings(negated_conditions=9)).program().cea.states > 17 * 17


def test_what_a_border_of_several_events_costs_is_bounded() -> None:
    names = " ; ".join(f"B{i}" for i in range(12))
    with pytest.raises(BudgetExceeded, match="negated_conditions"):
        ceql.compile(f"SELECT * WHERE X ; (NOT ({names}) ; A)+ ; D")
