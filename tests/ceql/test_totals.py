"""Aggregates in the registers of the kernels: the same matches as in Python, exact numbers, few runs that differ."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
from ceql import Settings
from ceql.guards.totals import number_of
from spaseq.core.engine.kernels.registers import layout as reg
from spaseq.core.engine.kernels.registers import totals
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.engine.runs.row_sets import RegisterRun
from spaseq.core.errors import EventError
from tests.support.sizes import some

FORMULAS = [
    "A ; B+ AS b ; C FILTER SUM(b.p) > 9",
    "A AS a ; B+ AS b ; C FILTER AVG(b.p) > a.p",
    "A ; B+ AS b ; C AS c FILTER AVG(b.p) <= c.p AND SUM(b.f) < 2",
    "A ; B:+ AS b ; C FILTER COUNT(b.p) > 1 AND COUNT(b) <= 3",
    "A+ ; C ; A+ FILTER COUNT(A) >= 3",
    "A ; B+ AS b ; C FILTER COUNT(b.s) != 1",
    "A ; B+ AS b ; C FILTER MIN(b.p) > 2 AND MAX(b.p) <= 6",
    "A AS a ; B+ AS b ; C AS c FILTER MIN(b.p) > a.p OR MAX(b.p) = c.p",
    "A ; B+ AS b ; C FILTER NOT (MAX(b.p) > 5)",
    "A AS a ; B+ AS b FILTER NOT (AVG(b.p) = a.p)",
    "A AS a ; B+ AS b ; C AS c FILTER SUM(b.p) + a.p > 2 * c.p",
    "A AS a ; (B OR C)+ AS b FILTER COUNT(B) >= 2 AND AVG(b.p) * COUNT(b) > a.p + 7",
    "((A ; B+ AS b ; C) FILTER SUM(b.p) > 5)+",
    "(A+ AS a OR C) ; B+ AS b FILTER SUM(a.p) < SUM(b.p)",
    "AND(A+ AS a, B AS b) FILTER SUM(a.p) > b.p",
    "A AS a ; B+ AS b FILTER SUM(b.p * b.f) <= a.f",
    "A ; B+ AS b ; C FILTER AVG(b.p) IN {2..4}",
    "A+ AS a ; A+ AS b FILTER SUM(a.p) > AVG(b.p)",
    "A+ AS a ; B FILTER SUM(a.p) > a.f",
    "A ; B+ AS b FILTER MAX(b.s) = 'v'",
]
GIVEN_UP = {"((A ; B+ AS b ; C) FILTER SUM(b.p) > 5)+", *FORMULAS[-3:]}
"""The loop may go on or be left for another round; an event may be of either loop; an attribute takes several values;
texts have no totals."""
ENDINGS = ["WITHIN 9 EVENTS", "WITHIN 9 EVENTS CONSUME BY ANY", "PARTITION BY [k] WITHIN 6 EVENTS", "WITHIN 12 [n]"]


def events(rng: random.Random, size: int, decimals: float) -> list[dict[str, Any]]:
    """Events with NULLs, ties, and a share of decimals among whole numbers."""
    return [
        {
            "type": rng.choice("AABBBCCD"),
            "p": None if rng.random() < 0.1 else rng.randrange(8) + (0.5 if rng.random() < decimals else 0),
            "f": rng.choice([-1.5, 0.0, -0.0, 2.25, None]),
            "s": rng.choice(["u", "v", None]),
            "k": rng.choice(["g", "h", None]),
            "n": i,
        }
        for i in range(size)
    ]


def reported(query: ceql.Query, stream: list[dict[str, Any]], rng: random.Random | None = None) -> list[Any]:
    """The matches, whole, or in random pieces through snapshots, some of them single events."""
    if rng is None:
        return sorted((m.start, m.end, tuple(m.positions)) for m in query.run(stream))
    found, at, session = [], 0, query.open()
    while at < len(stream):
        size = rng.choice((1, 1, 2, 30))
        piece: Any = stream[at] if size == 1 else stream[at : at + size]
        found += [(m.start, m.end, tuple(m.positions)) for m in session.push(piece)]
        at += size
        if rng.random() < 0.2:
            session = query.open(session.snapshot())
    found += [(m.start, m.end, tuple(m.positions)) for m in session.close()]
    return sorted(found)


def run_of(query: ceql.Query, stream: list[dict[str, Any]]) -> Any:
    session = query.open()
    session.push(stream)
    run = session._run.evaluator.run  # type: ignore[union-attr]
    assert isinstance(run, GuardRun | RegisterRun)
    return run


@pytest.mark.parametrize(
    "formula", [pytest.param(each, marks=[] if i % 2 == 0 else [pytest.mark.slow]) for i, each in enumerate(FORMULAS)]
)
def test_the_kernels_and_python_agree(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(formula)
    for ending in ENDINGS:
        strategy = rng.choice(("ALL", "ALL", "NEXT", "LAST", "STRICT", "MAX"))
        query = ceql.compile(f"SELECT {strategy} * WHERE {formula} {ending}")
        stream = events(rng, 90, rng.choice((0, 0.3, 1)))
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            expected = reported(query, stream)
        assert reported(query, stream) == expected, (strategy, ending)
        assert reported(query, stream, rng) == expected, (strategy, ending)


def test_most_aggregates_stay_in_the_kernels() -> None:
    stream = events(random.Random(2), 200, 0.3)
    gone = {f for f in FORMULAS if isinstance(run_of(ceql.compile(f"SELECT * WHERE {f} WITHIN 9 EVENTS"), stream),
                                              RegisterRun)}  # fmt: skip
    assert gone == GIVEN_UP


@pytest.mark.parametrize(
    ("condition", "most"),
    [("COUNT(B) > 3", 5), ("COUNT(B) = 3", 5), ("MAX(B.n) > 100", 4), ("MIN(B.n) > 100", 4), ("COUNT(B.p) >= 7", 9)],
)
def test_against_a_number_runs_do_not_grow_with_the_window(condition: str, most: int) -> None:
    """B is counted over two loops, so that registers count it."""
    stream = events(random.Random(3), 400, 0.3)
    query = ceql.compile(f"SELECT * WHERE A ; B+ ; D ; B+ ; C FILTER {condition} WITHIN 300 EVENTS LIMIT 1")
    assert run_of(query, stream).statistics["live_runs"] <= 4 * most


def test_a_threshold_that_is_too_large_to_write_out_is_counted() -> None:
    stream = [{"type": "F"}] * 60
    text = "SELECT * WHERE F:+ AS f FILTER COUNT(f) >= 40 LIMIT 1"
    written, counted = ceql.compile(text), ceql.compile(text, settings=Settings(repeated_events=30))
    assert "F:+" in counted.explain() and "a run counts to 40 at most" in counted.explain()
    assert reported(written, stream) == reported(counted, stream) != []
    assert isinstance(run_of(counted, stream), GuardRun)


LARGE = 1 << 51


@pytest.mark.parametrize(
    ("condition", "values", "wanted"),
    [
        (f"SUM(b.p) > {LARGE}", [LARGE, 1], True),  # beyond typed codes: Python goes on
        (f"SUM(b.p) > {2 * LARGE}", [LARGE, 1, LARGE], True),
        (f"SUM(b.p) = {1 << 60}", [1 << 60], True),  # no code for the value itself
        (f"SUM(b.p) >= {(1 << 60) + 1}", [1 << 60], False),
        ("SUM(b.p) = 0.1", [0.1], True),
        ("SUM(b.p) = 0.3", [0.1, 0.2], False),  # as Python adds doubles
        ("SUM(b.p) = 0.30000000000000004", [0.1, 0.2], True),
        ("AVG(b.p) = 0.2", [0.1, 0.3], True),
        ("SUM(b.p) > 1e308", [1e308, 1e308], True),
        ("MAX(b.p) < 3 OR SUM(b.p) >= 0", [1e308, 1e308, -1e308], True),
        ("SUM(b.p) > 0 OR SUM(b.p) <= 0", [math.inf, -math.inf], False),  # NaN is NULL
        ("AVG(b.p) > 0", [None, None], False),
        ("COUNT(b.p) = 0", [None, None], True),
        ("MIN(b.p) = -1", [-1.0, 4], True),
        ("SUM(b.p) = 3", [1.0, 2], True),
    ],
)
def test_numbers_are_exact(condition: str, values: list[Any], wanted: bool) -> None:
    stream = [{"type": "A"}, *({"type": "B", "p": p} for p in values), {"type": "C"}]
    query = ceql.compile(f"SELECT * WHERE A : B:+ AS b : C FILTER {condition}")
    match = [(0, len(values) + 1, tuple(range(len(values) + 2)))]
    assert reported(query, stream) == (match if wanted else [])
    assert reported(query, stream, random.Random(1)) == (match if wanted else [])


def test_a_value_of_the_wrong_kind_is_an_error_at_its_event() -> None:
    query = ceql.compile("SELECT * WHERE A ; B+ AS b FILTER SUM(b.p) > 3")
    stream: list[dict[str, Any]] = [{"type": "B", "p": "x"}, {"type": "A"}, {"type": "B", "p": 4}]
    assert reported(query, stream) == [(1, 2, (1, 2))]  # no run takes the text
    with pytest.raises(EventError, match=r"event 4: SUM\(b.p\) > 3: 'y' is not a number"):
        reported(query, [*stream, {"type": "B", "p": "y"}])


def test_a_question_of_fewer_codes_than_another() -> None:
    """A question has room for the codes of the longest."""
    conditions = "SUM(x.p * x.f) + 1 < z.p AND AVG(x.p) + 1 = A.f + z.p"
    query = ceql.compile(f"SELECT * WHERE A AS x ; C AS z FILTER {conditions}")
    stream: list[dict[str, Any]] = [{"type": "A", "p": 1}, {"type": "C", "p": 3}, {"type": "C"}]
    assert reported(query, stream) == []


def code_of(number: int | float | None) -> int:
    if number is None:
        return reg.UNKNOWN
    if isinstance(number, int):
        return number - 1 - reg.INFINITE if number < 0 else number + 1 + reg.INFINITE
    bits = int(np.float64(number + 0.0).view(np.int64))
    return bits if bits >= 0 else bits ^ ((1 << 63) - 1)


typed = st.integers(-reg.WHOLE, reg.WHOLE) | st.floats(allow_nan=False) | st.integers(-3, 3) | st.floats(-3, 3)


@settings(max_examples=some(300), deadline=None)
@given(typed, typed)
def test_typed_codes_add_and_compare_as_numbers_do(one: int | float, two: int | float) -> None:
    first, second = np.int64(code_of(one)), np.int64(code_of(two))
    assert number_of(int(first)) == one and type(number_of(int(first))) is type(one)
    total, found = one + two, int(totals.add_numbers(first, second))
    if (isinstance(total, int) and abs(total) > reg.WHOLE) or total != total:
        assert found == reg.NOTHING
    else:
        assert number_of(found) == total and type(number_of(found)) is type(total)
    assert (float(totals.number_of(first)) < float(totals.number_of(second))) == (one < two)
