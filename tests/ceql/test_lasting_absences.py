"""NOT … FOR at the borders of parts, in loops, in OR and AND: queries that mean the same as others without."""

from __future__ import annotations

import random

import pytest

import ceql
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from tests.support.harness import ceql_whole

STREAMS = 25
_NEAR = "NOT (B AS b FILTER b.time <= x.time + 2)"
_LATE = "D AS d FILTER d.time > x.time + 2"
SAME = {
    "X ; (A ; NOT B FOR 2 SECONDS) ; D": ("X ; A ; NOT B FOR 2 SECONDS ; D",),
    "X ; ((NOT B FOR 2 SECONDS ; A) OR C) ; D": ("X ; NOT B FOR 2 SECONDS ; A ; D", "X ; C ; D"),
    "X ; ((A ; NOT B FOR 2 SECONDS) OR (C ; NOT A FOR 1 SECOND)) ; D": (
        "X ; A ; NOT B FOR 2 SECONDS ; D", "X ; C ; NOT A FOR 1 SECOND ; D",
    ),
    "X ; (NOT B FOR 1 SECOND ; A){2} ; D": ("X ; NOT B FOR 1 SECOND ; A ; NOT B FOR 1 SECOND ; A ; D",),
    "X ; (A ; NOT B FOR 1 SECOND){1,2} ; D": (
        "X ; A ; NOT B FOR 1 SECOND ; D", "X ; A ; NOT B FOR 1 SECOND ; A ; NOT B FOR 1 SECOND ; D",
    ),
    "X ; (NOT B FOR 2 SECONDS ; A)? ; D": ("X ; NOT B FOR 2 SECONDS ; A ; D", "X ; D"),
    "X ; (NOT B FOR 2 SECONDS OR C) ; D": ("X ; NOT B FOR 2 SECONDS ; D", "X ; C ; D"),
    "X -> (C OR NOT B FOR 2 SECONDS) -> D": ("X -> NOT B FOR 2 SECONDS -> D", "X -> C -> D"),
    "X ; (C OR NOT B FOR 2 SECONDS OR A OR NOT A FOR 3 SECONDS) ; D": (
        "X ; C ; D", "X ; A ; D", "X ; NOT B FOR 2 SECONDS ; D", "X ; NOT A FOR 3 SECONDS ; D",
    ),
    "(A OR X) ; (NOT B FOR 1 SECOND OR C) ; (NOT C FOR 1 SECOND OR NOT X FOR 2 SECONDS) ; D": (
        "(A OR X) ; C ; NOT C FOR 1 SECOND ; D", "(A OR X) ; C ; NOT X FOR 2 SECONDS ; D",
        "(A OR X) ; NOT B FOR 1 SECOND ; NOT C FOR 1 SECOND ; D",
        "(A OR X) ; NOT B FOR 1 SECOND ; NOT X FOR 2 SECONDS ; D",
    ),
    "X ; AND(A, NOT B FOR 2 SECONDS) ; D": (f"X AS x ; {_NEAR} ; A ; {_NEAR} ; {_LATE}",),
    "X -> AND(A, NOT B FOR 2 SECONDS) -> D": (f"X AS x -> {_NEAR} -> A -> {_NEAR} -> {_LATE}",),
    "X ; AND(A, NOT B FOR 2 SECONDS, C) ; D": (
        f"X AS x ; {_NEAR} ; A ; {_NEAR} ; C ; {_NEAR} ; {_LATE}",
        f"X AS x ; {_NEAR} ; C ; {_NEAR} ; A ; {_NEAR} ; {_LATE}",
    ),
    "X ; AND(A, NOT B FOR 2 SECONDS, NOT C) ; D": (
        f"X AS x ; NOT C ; {_NEAR} ; A ; NOT C ; {_NEAR} ; {_LATE}",
    ),
    "X ; AND(A{2}, NOT B FOR 2 SECONDS) ; D": (f"X AS x ; {_NEAR} ; A ; {_NEAR} ; A ; {_NEAR} ; {_LATE}",),
}  # fmt: skip
"""Formulas, each with those of which it is the union."""


def _streams() -> list[list[dict[str, object]]]:
    rng = random.Random(39)
    found = []
    for _ in range(STREAMS):
        times = sorted(rng.choice((*range(11), 1.5, 2.5)) for _ in range(rng.randint(9, 14)))
        found.append([{"type": rng.choice("XABCD"), "time": time} for time in times])
    return found


@pytest.mark.parametrize(
    "formula", [pytest.param(each, marks=[] if i % 2 == 0 else [pytest.mark.slow]) for i, each in enumerate(SAME)]
)
def test_a_time_is_for_the_gap_around(formula: str) -> None:
    found = 0
    for events in _streams():
        expected = {m for other in SAME[formula] for m in ceql_whole(f"SELECT * WHERE {other}", events)}
        assert set(ceql_whole(f"SELECT * WHERE {formula}", events)) == expected
        found += len(expected)
    assert found > 2


@pytest.mark.parametrize(
    ("formula", "line"),
    [
        (
            "X ; ((NOT B FOR 1 SECOND ; A) OR C) ; D",
            "1:43 before A: none of the events that lie there may be B for 1 s, and it comes later",
        ),
        (
            "(A ; NOT B FOR 1 SECOND)+ ; D",
            "1:17 behind A: none of the events that lie there may be B for 1 s, and what follows comes later",
        ),
        (
            "X ; AND(A, NOT B FOR 2 SECONDS, C) ; D",
            "1:20 behind the part in front of AND(A, NOT B FOR 2 SECONDS, C): "
            "none may be B for 2 s, and what follows comes later",
        ),
    ],
)
def test_explain_says_for_how_long(formula: str, line: str) -> None:
    assert f"  {line}\n" in ceql.compile(f"SELECT * WHERE {formula}").explain()


@pytest.mark.parametrize(
    ("formula", "problem"),
    [
        ("A : NOT B FOR 1 SECOND", "NOT … FOR with no part in front of it or behind it"),
        ("X ; (NOT B FOR 1 SECOND OR C) AS n ; D", "a silence as a side of OR"),
        ("X ; (NOT B FOR 1 SECOND OR C)+", "a silence as a side of OR"),
        ("X -> (A -> NOT B FOR 1 SECOND)->+ -> D", "behind an optional part or a loop with ->"),
        ("(NOT A ; NOT B)+ AS x FILTER COUNT(x) > 2", "a sequence of NOTs alone"),
    ],
)
def test_what_has_no_meaning_or_is_not_run(formula: str, problem: str) -> None:
    with pytest.raises(UnsupportedFeature) as error:
        ceql.compile(f"SELECT * WHERE {formula}")
    assert problem in error.value.problem


def test_copies_for_the_sides_of_ors_are_bounded() -> None:
    several = " -> ".join("(NOT B FOR 1 SECOND OR C)" for _ in range(30))
    with pytest.raises(BudgetExceeded, match="rewrite_size is 2,000 nodes"):
        ceql.compile(f"SELECT * WHERE X -> {several} -> D")


def test_the_last_round_is_told_when_its_time_is_over() -> None:
    with ceql.compile("SELECT * WHERE (A ; NOT B FOR 5 SECONDS){2,} PARTITION BY [k]").open() as session:
        pushed = [{"type": "A", "time": time, "k": k} for time, k in ((0, 1), (1, 2), (6, 1), (7, 2))]
        assert not [match for event in pushed for match in session.push(event)]
        assert [tuple(m.positions) for m in session.advance(11_000_000_001)] == [(0, 2)]
        assert not list(session.push({"type": "B", "time": 12, "k": 2}))
        assert not list(session.advance(60 * 10**9))


@pytest.mark.parametrize(
    ("formula", "word", "at_once", "later"),
    [
        ("A ; (B OR NOT C FOR 10 SECONDS)", [("A", 0), ("B", 2)], [(0, 1)], {10: [(0,)]}),
        ("(A ; NOT C FOR 5 SECONDS) OR (B ; NOT C FOR 8 SECONDS)", [("A", 0), ("B", 1)], [], {5: [(0,)], 9: [(1,)]}),
        ("A ; NOT B FOR 5 SECONDS ; NOT C FOR 8 SECONDS", [("A", 0)], [], {8: [(0,)]}),
        ("AND(A, B, NOT C FOR 10 SECONDS)", [("A", 0), ("B", 4)], [], {10: [(0, 1)]}),
        ("X ; AND(A, NOT C FOR 10 SECONDS)", [("X", 0), ("A", 4), ("A", 12)], [(0, 1), (0, 2)], {}),
    ],
)
def test_a_match_is_told_as_the_last_time_of_its_alternative_is_over(
    formula: str, word: list[tuple[str, int]], at_once: list[tuple[int, ...]], later: dict[int, list[tuple[int, ...]]]
) -> None:
    with ceql.compile(f"SELECT * WHERE {formula}").open() as session:
        events = [{"type": name, "time": time} for name, time in word]
        found = [tuple(match.positions) for event in events for match in session.push(event)]
        assert sorted(found) == at_once
        for time, expected in later.items():
            assert not list(session.advance(time * 10**9))
            assert [tuple(match.positions) for match in session.advance(time * 10**9 + 1)] == expected
        assert not list(session.advance(60 * 10**9))
