"""AFTER MATCH and SELECT FIRST over longer streams: kernels against sets of register rows, in any cut, and by key."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ceql
from spaseq.core.engine.program.settings import After
from spaseq.core.engine.runs import evaluator as engine
from spaseq.core.errors import UnsupportedFeature
from tests.ceql.test_guarded import events, reported
from tests.support import oracle, oracle_ceql_text

FORMULAS = (
    "(A AS x ; B AS y) FILTER x.p < y.p",
    "(A AS x ; B AS y ; C AS z) FILTER x.p < y.p AND y.p < z.p",
    "(A AS x ; B+ AS y ; C AS z) FILTER x.p <= y.p",
    "(A AS x ; NOT (B AS n FILTER n.p = x.p) ; C AS y) FILTER x.s = y.s",
    "A AS x ; (B AS y OR C AS z) ; A",
    "A AS x : B AS y",
)
RULES = (
    "AFTER MATCH SKIP PAST LAST EVENT",
    "AFTER MATCH SKIP TO NEXT EVENT",
    "AFTER MATCH SKIP TO FIRST y",
    "AFTER MATCH SKIP TO LAST y",
    "AFTER MATCH SKIP TO LAST x",
)
ENDINGS = ("", "PARTITION BY [k]", "WITHIN 12 EVENTS", "PARTITION BY [k] WITHIN 6 EVENTS", "WITHIN 9 [n]")


_QUICK = [
    pytest.param(formula, rule, marks=[] if (i + j) % 4 == 1 else [pytest.mark.slow])
    for i, formula in enumerate(FORMULAS)
    for j, rule in enumerate(RULES)
]
"""Each formula with a rule or two; the others are slow."""


@pytest.mark.parametrize(("formula", "rule"), _QUICK)
def test_every_road_gives_the_same(formula: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole and in batches with snapshots, by kernels and by sets of register rows, and pushed one by one."""
    rng = random.Random(formula + rule)
    for ending in rng.sample(ENDINGS, 2):
        query = ceql.compile(f"SELECT * WHERE {formula} {ending} {rule}")
        stream = events(rng, 60, floats=False)
        with monkeypatch.context() as context:
            context.setattr(engine, "codes_of", lambda program: None)
            expected = reported(query, stream)
            assert reported(query, stream, rng) == expected, ending
        assert reported(query, stream) == expected, ending
        assert reported(query, stream, rng) == expected, ending
        assert pushed(query, stream) == expected, ending
        assert list(query.alerts().run(stream)) == sorted({end for _, end, _ in expected}), ending


def pushed(query: ceql.Query, stream: list[dict[str, Any]]) -> list[Any]:
    with query.open() as session:
        found = [match for event in stream for match in session.push(event)]
    return sorted((m.start, m.end, tuple(m.positions)) for m in found + session.rest)


@pytest.mark.parametrize("rule", RULES)
def test_short_windows_over_long_streams_are_the_oracles(rule: str) -> None:
    rng = random.Random(rule)
    for formula in ("A AS x ; B AS y ; C", "A AS x ; B+ AS y ; C", "A+ AS x : B AS y"):
        text = f"SELECT * WHERE {formula} PARTITION BY [k] WITHIN 5 EVENTS {rule}"
        stream = [{"type": rng.choice("AABBC"), "k": rng.choice("gh")} for _ in range(400)]
        expected = oracle.evaluate_long(oracle_ceql_text.read(text), stream)
        found = reported(ceql.compile(text), stream)
        assert found == expected and len(found) > 20, text
        assert reported(ceql.compile(text), stream, rng) == expected, text


def test_once_is_for_each_key_and_begins_anew_behind_a_pause() -> None:
    rows = [("A", 1, 0), ("B", 1, 1), ("A", 1, 2), ("B", 1, 3), ("A", 2, 4), ("B", 2, 5), ("A", 1, 90), ("B", 1, 91)]
    stream = [{"type": kind, "k": key, "time": time} for kind, key, time in rows]
    text = "SELECT FIRST * WHERE A ; B PARTITION BY [k]"
    assert pushed(ceql.compile(text), stream) == [(0, 1, (0, 1)), (4, 5, (4, 5))]
    forgets = ceql.compile(text, settings=ceql.Settings(forget_keys_after=60))
    for found in (pushed(forgets, stream), reported(forgets, stream)):
        assert found == [(0, 1, (0, 1)), (4, 5, (4, 5)), (6, 7, (6, 7))]


def test_explain_names_the_rule() -> None:
    text = ceql.compile("SELECT * WHERE A AS x ; B AFTER MATCH SKIP TO LAST x").explain()
    assert "after a match: TO LAST x" in text
    past = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k] AFTER MATCH SKIP PAST LAST EVENT")
    assert "after a match: PAST LAST" in past.explain()
    after = past.program().choice.after
    assert after is not None and after.rule is After.PAST_LAST
    assert "consume by: PARTITION" in past.explain()


@pytest.mark.parametrize("text", ["SELECT FIRST * WHERE A ; B", "SELECT * WHERE A ; B AFTER MATCH SKIP TO NEXT EVENT"])
def test_forecasts_and_lazy_evaluators_refuse_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeature, match="AFTER MATCH or SELECT FIRST has no register match automaton"):
        _ = ceql.compile(text).alerts().automaton
    with pytest.raises(UnsupportedFeature, match=r"report all matches: not (AFTER MATCH|SELECT FIRST)"):
        ceql.compile(text, settings=ceql.Settings(evaluator="chain"))
    assert pushed(ceql.compile(text, settings=ceql.Settings(evaluator="auto")), [{"type": "A"}, {"type": "B"}]) == [
        (0, 1, (0, 1))
    ]
