"""Guards in the kernels against guards worked out run by run: the same matches, on streams too long for the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ceql
from spaseq.core.engine.runs import coded as guard_run
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.engine.runs.row_sets import RegisterRun
from spaseq.core.errors import EventError

FORMULAS = [
    "(A AS x ; B AS y) FILTER x.p < y.p",
    "(A AS x ; B AS y) FILTER y.p <= x.p",
    "(A AS x ; C AS c ; B AS y) FILTER x.p > y.p",
    "(A AS x ; B AS y) FILTER x.s = y.s",
    "(A AS x ; C AS c ; B AS y) FILTER x.s = y.s AND c.p >= x.p",
    "(A AS x ; B+ AS y ; C AS z) FILTER x.p < y.p AND z.p > y.p",
    "(A+ AS x ; B AS y) FILTER x.p = y.p",
    "(A AS x ; B AS y ; C AS z) FILTER x.p != y.p AND z.s != x.s",
    "(A+ AS x ; B AS y) FILTER x.p != y.p",
    "((A AS x OR C) ; B AS y) FILTER y.s = x.s",
    "((A AS x OR C) ; B AS y) FILTER y.p > x.p",
    "(A AS x : B AS y ; C AS z) FILTER x.p < y.p AND z.p = x.p",
    "(A AS x ; (B OR C) AS y ; A AS z) FILTER y.p > x.p AND z.p < y.p",
    "(A AS x ; (B OR B) AS y ; A AS z) FILTER y.p > x.p AND z.p < y.p",
    "((A AS x ; B AS y) FILTER x.p + 1 < y.p * 2)+",
    "(A AS x ; NOT (B AS n FILTER n.p > x.p) ; C AS y) FILTER y.p >= x.p",
    "AND(A AS x, B AS y) FILTER x.p < y.p",
    "(A+ AS x ; A+ AS y ; B AS z) FILTER x.p < z.p AND y.p = z.p",
    "((A AS x ; B AS y) FILTER x.p < y.p) OR ((A AS x ; C AS z) FILTER x.p > z.p)",
    "(A AS x ; A AS y) FILTER x.t < y.t AND x.b = y.b AND x.f >= y.f",
    "(A AS x ; B AS y ; C AS z) FILTER x.p + y.p > z.p * 2",
    "(A AS x ; B AS y ; C AS z) FILTER x.p - y.p = z.p / 2 - 1 AND x.f < y.p",
    "(A AS x ; B AS y ; C AS z) FILTER (x.p < y.p OR z.s = x.s)",
    "(A AS x ; B AS y) FILTER (NOT (x.p * y.p < 10 AND x.b = y.b))",
    "(A AS x ; B AS y) FILTER (x.s LIKE 'u%' OR y.p / x.p > 1)",
    "(A AS x : B AS y ; C AS z) FILTER -x.p + y.p % 3 <= z.p",
    "((A AS x ; B AS y ; C AS z) FILTER x.p + z.p != y.p)+",
    "(A AS x ; C AS y ; NOT (B AS n FILTER n.p + y.p > x.p) ; C AS z) FILTER x.p < z.p",
    "(A AS x ; B+ AS y ; C AS z) FILTER x.p + y.p >= z.p",
    "AND(A AS x, B AS y, C AS z) FILTER x.p + y.p > z.p + 1",
    "((A OR B) AS x FILTER x.p < PREV(x.p)):+",
    "((A OR B) AS x FILTER x.p < PREV(x.p))+",
    "(ANY AS x FILTER x.s > PREV(x.s, 2) AND x.b != PREV(x.b)):+",
    "(ANY AS x FILTER x.s = x[0].s OR x.t > PREV(x.t)):+ : C",
    "(A AS x : ANY AS y FILTER y.p - PREV(y.p) < 2 * x[0].f + LAST(x.p))+",
    "((A AS x FILTER x.s LIKE 'u' OR x.p % 3 = PREV(x.p, 3) % 3)+ : B AS y FILTER PREV(y.p) <= 2 * y.p):+",
    "(A:+ AS x ; (B OR C):+ AS y) FILTER y.p > LAST(x.p) AND y.p > FIRST(x.f)",
    "(A+ AS x ; A+ AS y) FILTER y.p > PREV(x.p)",
]
ENDINGS = ["WITHIN 12 EVENTS", "WITHIN 12 EVENTS CONSUME BY ANY", "WITHIN 15 [n]", "PARTITION BY [k] WITHIN 8 EVENTS",
           "PARTITION BY [k] WITHIN 20 [n] CONSUME BY PARTITION", "WITHIN 20 [n] LIMIT 2"]  # fmt: skip
STRATEGIES = ["ALL", "NEXT", "LAST", "STRICT"]


def events(rng: random.Random, size: int, floats: bool) -> list[dict[str, Any]]:
    """Events with NULLs, ties, texts, truth, whole numbers and decimals."""
    return [
        {
            "type": rng.choice("AABBCCD"),
            "p": None if rng.random() < 0.05 else rng.randrange(8) + (0.5 if floats and rng.random() < 0.5 else 0),
            "s": rng.choice(["u", "v", "w", None]),
            "b": rng.random() < 0.5,
            "t": f"2026-01-01T00:00:{rng.randrange(60):02d}Z",
            "f": rng.choice([-1.5, 0.0, -0.0, 2.25]),
            "n": i,
            "k": rng.choice(["g", "h", None]),
        }
        for i in range(size)
    ]


def reported(query: ceql.Query, stream: list[dict[str, Any]], rng: random.Random | None = None) -> list[Any]:
    """The matches, whole, or in random batches through a snapshot."""
    if rng is None:
        return sorted((m.start, m.end, tuple(m.positions)) for m in query.run(stream))
    found, at, session = [], 0, query.open()
    while at < len(stream):
        size = rng.randrange(1, 40)
        found += [(m.start, m.end, tuple(m.positions)) for m in session.push(stream[at : at + size])]
        at += size
        if rng.random() < 0.3:
            session = query.open(session.snapshot())
    found += [(m.start, m.end, tuple(m.positions)) for m in session.close()]
    return sorted(found)


@pytest.mark.parametrize(
    "formula", [pytest.param(formula, marks=[pytest.mark.slow] if i % 4 else []) for i, formula in enumerate(FORMULAS)]
)
def test_the_kernels_and_the_runs_agree(formula: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(formula)
    for ending in ENDINGS:
        strategy = rng.choice(STRATEGIES) if "LIMIT" not in ending else "ALL"
        query = ceql.compile(f"SELECT {strategy} * WHERE {formula} {ending}")
        stream = events(rng, 120, floats=rng.random() < 0.5)
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            expected = reported(query, stream)
        if "LIMIT" in ending:  # which ones is open among equal starts
            assert [m[:2] for m in reported(query, stream)] == [m[:2] for m in expected], (strategy, ending)
            continue
        assert reported(query, stream) == expected, (strategy, ending)
        assert reported(query, stream, rng) == expected, (strategy, ending)


def handed_over(text: str, stream: list[dict[str, Any]]) -> bool:
    """Whether the kernels had to give up, after the matches were found right."""
    query = ceql.compile(text)
    evaluation = query.open()
    evaluation.push(stream)
    evaluator: Any = evaluation._run.evaluator
    run = evaluator.eager.run
    assert isinstance(run, GuardRun | RegisterRun)
    return isinstance(run, RegisterRun)


def test_most_queries_stay_in_the_kernels() -> None:
    stream = events(random.Random(2), 200, floats=False)
    stay = [f for f in FORMULAS if not handed_over(f"SELECT * WHERE {f} WITHIN 12 EVENTS", stream)]
    gone = set(FORMULAS) - set(stay)
    assert gone == {
        "(A+ AS x ; A+ AS y ; B AS z) FILTER x.p < z.p AND y.p = z.p",  # an event may be of x or of y
        "(A+ AS x ; B AS y) FILTER x.p != y.p",  # != would have to remember several values
        "(A AS x ; B+ AS y ; C AS z) FILTER x.p + y.p >= z.p",  # several values of y
        "(A+ AS x ; A+ AS y) FILTER y.p > PREV(x.p)",  # an event may be the last x, or a y that comes behind it
    }


def test_more_questions_than_answers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of answers is emptied, and grows where one event asks more than fits."""
    monkeypatch.setattr(guard_run, "_ANSWERS", 16)
    monkeypatch.setattr(guard_run, "_QUESTIONS", 4)
    text = "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER (x.n % 3 = y.n % 5 OR z.n % 7 = 1) WITHIN 60 EVENTS"
    stream = events(random.Random(3), 150, floats=False)
    found = reported(ceql.compile(text), stream)
    assert not handed_over(text, stream)
    monkeypatch.setattr(engine, "codes_of", lambda program: None)
    assert found == reported(ceql.compile(text), stream) != []


def test_a_question_that_has_no_answer_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text against a number, found by the kernel's question and by the runs."""
    text = "SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.p + y.p > z.s"
    stream = [{"type": "A", "p": 1}, {"type": "B", "p": 2}, {"type": "C", "p": 3, "s": "u"}]
    with pytest.raises(EventError) as asked:
        reported(ceql.compile(text), stream)
    monkeypatch.setattr(engine, "codes_of", lambda program: None)
    with pytest.raises(EventError) as told:
        reported(ceql.compile(text), stream)
    assert str(asked.value) == str(told.value) and "event 3: " in str(asked.value)


def test_whole_numbers_beyond_doubles_are_exact() -> None:
    big = 1 << 60
    stream = [{"type": "A", "p": big + 1}, {"type": "B", "p": big}, {"type": "B", "p": big + 2}]
    query = ceql.compile("SELECT * WHERE (A AS x ; B AS y) FILTER x.p < y.p")
    assert [m.positions for m in query.run(stream)] == [(0, 2)]
    session = query.open()
    session.push(stream[:1])
    assert len(list(session.push([{"type": "B", "p": 2.5}, {"type": "B", "p": 1e30}]))) == 1


def test_live_runs_are_those_that_differ_in_what_can_matter() -> None:
    """Behind y nothing reads x any more, so all pairs are one run."""
    query = ceql.compile("SELECT * WHERE (A AS x ; B AS y ; C AS z) FILTER x.p < y.p AND z.p = 1000 WITHIN 100 EVENTS")
    session = query.open()
    session.push([{"type": "AB"[i % 2], "p": i} for i in range(400)])
    assert session._run.statistics["live_runs"] <= 52


def test_equal_values_that_codes_tell_apart_are_handed_over() -> None:
    """3 and 3.0 have two codes and are one value; the second B has the kernel give up."""
    stream: list[dict[str, Any]] = [{"type": "A", "p": p} for p in (3, 3.0, 2.5)]
    stream += [{"type": "B", "p": 1}, {"type": "B", "p": 2}, {"type": "C", "p": 4}]
    text = "SELECT * WHERE (A AS x ; B+ AS y ; C AS z) FILTER x.p + y.p >= z.p"
    assert handed_over(text, stream)
    either = [(0, 5, (0, *b, 5)) for b in ((3,), (4,), (3, 4))]
    expected = sorted([*either, *((1, 5, (1, *p[1:])) for _, _, p in either), (2, 5, (2, 4, 5))])
    assert reported(ceql.compile(text), stream) == reported(ceql.compile(text), stream, random.Random(1)) == expected
