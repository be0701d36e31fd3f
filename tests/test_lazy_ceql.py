"""The lazy evaluators on random CEQL queries: conditions over several events, aggregates, negation, partitions."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ceql
from ceql.cli import main as cli
from ceql.query import Query
from ceql.runtime.run import Run
from spaseq.core.engine import Settings
from spaseq.core.engine.choice import auto
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.engine.lazy import LazyEvaluator, plan_of
from spaseq.core.engine.program.normal_form import Branch
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from spaseq.core.events import EventFeed, EventOptions
from spaseq.core.trees import walk
from tests.support import harness, oracle
from tests.support.changing import Changing
from tests.support.sizes import share, some
from tests.support.snapshots import rewritten
from tests.support.strategies import (
    NUMERIC,
    CeqlCase,
    absence_case,
    ceql_case,
    ceql_toml,
    draw_condition,
    draw_stream,
    interesting,
    shrink_ceql,
)
from tests.test_cases import CASES

SAMPLE = some(40)
FULL = int(os.environ.get("SPASEQ_RANDOM", "2000"))
WAYS = ("chain", "order", "tree", "changing")


def lazily(text: str, batches: list[harness.Events], way: str, rng: random.Random) -> list[oracle.Match]:
    """What a lazy evaluator reports, now and then through a snapshot. `UnsupportedFeature` where it refuses."""
    query = ceql.compile(text)
    lowered, program = query.compiled.lowered, query.program()
    if lowered.around.is_timed or lowered.around.repeated is not None:
        raise UnsupportedFeature("NOT … FOR")
    plan = plan_of(lowered.pattern, strict=lowered.strict, choice=lowered.choice, registers=lowered.registers)
    orders = None
    if way == "changing":
        return _reported(query, batches, Changing(dataclasses.replace(program, spare=plan)), rng)
    if way == "order":
        orders = tuple(tuple(rng.sample([x.number for x in b.leaves], len(b.leaves))) for b in plan.branches)
    evaluator = LazyEvaluator(program, plan, tree=way == "tree", orders=orders, first_chance=rng.random() < 0.7)
    return _reported(query, batches, evaluator, rng)


def _reported(
    query: Query, batches: list[harness.Events], evaluator: LazyEvaluator | Changing, rng: random.Random
) -> list[oracle.Match]:
    run = Run(query.compiled.lowered, evaluator.program, evaluator)
    feed = EventFeed(query.stream_names(()), EventOptions())
    found = []
    for events in [*batches, None]:
        for batch in feed.finish() if events is None else feed.push(events, None):
            for matches, _ in run.advance(batch):
                found.append(matches)
        if rng.random() < 0.2:
            run.evaluator = _restored(run.evaluator)
    found += [matches for matches, _ in run.close()]
    return [
        (int(s), int(e), tuple(m.positions[a:b].tolist()))
        for m in found for s, e, a, b in zip(m.start, m.end, m.offsets[:-1], m.offsets[1:], strict=True)
    ]  # fmt: skip


def _restored(evaluator: Any) -> Any:
    if isinstance(evaluator, LazyEvaluator):
        return LazyEvaluator.restore(evaluator.program, evaluator._plan, rewritten(evaluator.snapshot()))
    restored = AutoEvaluator.restore(evaluator.program, rewritten(evaluator.snapshot()))
    restored.__class__ = Changing
    return restored


def plain(case: CeqlCase) -> CeqlCase:
    """The case with selection ALL, which is what lazy evaluation reports."""
    strategy = case.query.strategy if case.query.strategy == "STRICT" else "ALL"
    return replace(case, query=replace(case.query, strategy=strategy, consume="NONE", limit=None))


def nary(case: CeqlCase, rng: random.Random) -> CeqlCase:
    """The case under one more condition, over three or four variables if it has as many."""
    names = sorted(oracle.variables_of(case.query.formula))
    some = rng.sample(names, min(len(names), rng.choice((3, 3, 4))))
    left, *others = [*(("of", name, rng.choice(NUMERIC)) for name in some), ("value", rng.randint(0, 3))]
    right: tuple[Any, ...] = others[0]
    for other in others[1:]:
        right = (rng.choice("+-"), right, other)
    condition: tuple[Any, ...] = ("for all", (rng.choice(("!=", "<", "<=", ">", ">=")), left, right))
    if rng.random() < 0.2:
        condition = (rng.choice(("all", "any")), condition, draw_condition(rng, names))
    return replace(case, query=replace(case.query, formula=oracle.Filter(case.query.formula, condition)))


def drawn(rng: random.Random) -> CeqlCase:
    """A case of any kind; half of them with such a condition."""
    case = plain(ceql_case(rng))
    return nary(case, rng) if rng.random() < 0.5 else case


def difference(case: CeqlCase, seed: int) -> str:
    expected = oracle.evaluate(case.query, case.stream)
    lines = []
    for way in WAYS:
        rng = random.Random(seed)
        batches = list(harness.cut(case.stream, rng)) if rng.random() < 0.6 else [case.stream]
        try:
            found = lazily(case.text, batches, way, rng)
        except UnsupportedFeature:
            return ""
        except Exception as error:  # belongs into the report, with the case
            lines.append(f"{way}: {type(error).__name__}: {error}")
            continue
        wrong = oracle.compare(expected, sorted(found))
        if wrong:
            lines.append(f"{way}: missing {wrong.missing}, surplus {wrong.surplus}")
    return "\n".join(lines)


def check(seed: int) -> None:
    def matches(case: CeqlCase) -> int:
        return len(oracle.evaluate(case.query, case.stream))

    case = interesting(drawn, matches, random.Random(seed))
    if difference(case, seed):
        small = shrink_ceql(case, lambda c: bool(difference(c, seed)))
        report = difference(small, seed)
        found = [[s, e, list(d)] for s, e, d in oracle.evaluate(small.query, small.stream)]
        toml = f"{ceql_toml(small, f'random {seed}')}matches = {found}\n"
        pytest.fail(f"seed {seed}\n{report}\n\n{toml}", pytrace=False)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the rates after each batch."""
    for name, value in (("FIRST", 1), ("EVERY", 1), ("PATIENCE", 0)):
        monkeypatch.setattr(auto, name, value)


def test_sample() -> None:
    for seed in range(SAMPLE):
        check(seed)


def test_every_kind_of_pattern_is_drawn() -> None:
    """So that the random cases are of what they should be."""
    seen: set[str] = set()
    for seed in range(250):
        query = ceql.compile(drawn(random.Random(seed)).text)
        lowered = query.compiled.lowered
        try:
            plan = plan_of(lowered.pattern, strict=lowered.strict, choice=lowered.choice, registers=lowered.registers)
        except UnsupportedFeature:
            continue
        seen |= {f"window {lowered.window.kind}"}
        seen |= {"absent at the end"} if lowered.around.absent is not None else set()
        seen |= {"partitions"} if lowered.partition else set()
        seen |= {"strict"} if lowered.strict else set()
        seen |= {"alternatives"} if len(plan.branches) > 1 else set()
        for branch in plan.branches:
            seen |= set(parts_of(branch))
    assert seen == {
        "window none", "window events", "window span", "absent at the end", "partitions", "strict", "alternatives",
        "adjacent", "partial order", "absence", "absence under a condition", "rounds", "rounds in rounds",
        "rounds of alternatives", "absence in rounds", "whole", "tuples of 2", "tuples of 3", "tuples of 4",
        "tuples of 2 in rounds", "tuples of 3 in rounds",
    } | (seen & {"tuples of 4 in rounds"})  # fmt: skip


def parts_of(branch: Branch) -> Iterator[str]:
    """What a branch has, by name."""
    if branch.adjacent:
        yield "adjacent"
    if 2 * len(branch.before) < len(branch.nodes) * (len(branch.nodes) - 1):
        yield "partial order"
    for absence in branch.absences:
        yield "absence under a condition" if any(a.test for a in absence.alternatives) else "absence"
    for test in branch.tests:
        inside = " in rounds" if test.leaves - branch.nodes else ""
        yield "whole" if test.whole else f"tuples of {len(test.variables)}{inside}"
    for rounds in branch.rounds:
        yield "rounds" if len(rounds.branches) == 1 else "rounds of alternatives"
        if any(inner.rounds for inner in rounds.branches):
            yield "rounds in rounds"
        if any(inner.absences for inner in rounds.branches):
            yield "absence in rounds"


def test_conditions_of_a_negation_on_later_events() -> None:
    watched = 0
    for seed in range(3 * SAMPLE):
        case = plain(absence_case(random.Random(seed)))
        try:
            parts = list(walk(ceql.compile(case.text).pattern))
        except (UnsupportedFeature, BudgetExceeded):
            continue
        assert not difference(case, seed), (seed, case)
        watched += any(getattr(part, "watched", ()) for part in parts)
    assert watched > SAMPLE / 5


@pytest.mark.random
@pytest.mark.parametrize("block", range(50))
def test_full(block: int) -> None:
    for seed in range(3_000_000 + block * FULL // 50, 3_000_000 + (block + 1) * FULL // 50):
        check(seed)


# Several streams are merged before any evaluator sees them.
RUN = [
    c for c in CASES
    if c.error is None and not c.is_spaseq and not any("stream" in e for e in c.events)
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_cases(way: str) -> None:
    """Every case that the lazy evaluators take; those of selection, consumption and limits they refuse."""
    taken = 0
    cases = share(RUN)
    for case in cases:
        rng = random.Random(3)
        try:
            found = lazily(case.query, list(harness.cut(case.events, rng)), way, rng)
        except UnsupportedFeature:
            continue
        taken += 1
        assert sorted(found) == case.matches, (case.place, way)
    assert taken > len(cases) * 0.5  # not those with steps, AFTER MATCH or a selection


NARY = [
    "A AS x ; B AS y ; C AS z FILTER x.a + y.a < z.b + 1",
    "A AS x ; (B AS y)+ ; C AS z FILTER x.a + y.a <= z.b + 1",
    "(A AS x OR B AS x)+ ; C AS z ; (D AS w)+ FILTER x.a * 2 >= w.b - z.a",
    "AND(A AS x, B AS y, C AS z) FILTER x.a + y.b != z.a AND x.b <= y.a",
    "AND((A AS x ; B AS y), (C AS z)+) FILTER x.a + z.a < y.b + 3",
    "((A AS x ; (B AS y)+ FILTER x.a < y.b)+ ; C AS z) FILTER x.a + y.a > z.a",
    "((A AS x ; B AS y)+ ; C AS z)+ FILTER x.a <= y.b",
    "(A AS x)+ ; B AS y FILTER AVG(x.a) + y.b < 5 AND COUNT(x) > 1",
    "((A AS x OR B AS y)+ AS all ; C AS z) FILTER SUM(all.a) > z.b AND x.a <= y.b",
    "A AS x ; NOT (B AS n FILTER n.a < x.b) ; (C AS y)+ ; NOT (D AS m FILTER m.a = y.a) ; A AS w",
    "(A AS x : (B AS y):+ ) ; C AS z FILTER y.a <= z.b",
    "((B AS b) AS c)+ ; A AS x FILTER b.a = c.a",
    "((B AS b) AS c)+ ; A AS x FILTER b.a <= c.b + x.a",
    "(A AS x ; B AS y){2,3} FILTER x.a <= y.a",
    "AND(A AS x, A AS y) FILTER x.a < y.b",
    "(A AS x ; NOT B ; C AS y) ; NOT D",
    "A AS x ; NOT (B AS n FILTER n.a < y.b) ; C AS y ; D",  # [Lazy] Pattern 4
    "A AS x ; NOT (B AS n FILTER n.a < z.b) ; (C AS y ; D AS z) FILTER x.a <= z.a",
    "(A AS x ; NOT (B AS n FILTER n.a < y.b AND n.b != x.a) ; C AS y)+ ; D AS z",
    "A AS x ; NOT (B AS n FILTER n.a < y.b OR n.b = x.a) ; (C AS y OR D AS y)",
    "AND(A AS x ; NOT (B AS n FILTER n.a <= y.b) ; C AS y, D AS z) FILTER z.a != x.a",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("formula", NARY)
def test_conditions_over_many_events_iterations_and_negations(formula: str, way: str) -> None:
    for seed in range(some(2)):
        rng = random.Random(seed)
        events = [dict(e) for e in draw_stream(rng, 9, timed=True)]
        for clauses in ("", " WITHIN 6 EVENTS", " WITHIN 4 SECONDS", " PARTITION BY [k] WITHIN 5 EVENTS"):
            text = f"SELECT * WHERE {formula}{clauses}"
            expected = harness.ceql_oracle(text, events)
            found = lazily(text, list(harness.cut(events, rng)), way, rng)
            assert sorted(found) == expected, text


def test_the_setting_chooses_and_explain_says_so() -> None:
    text = "SELECT * WHERE A AS x ; B AS y FILTER x.a < y.a WITHIN 10 EVENTS"
    events = [dict(e) for e in draw_stream(random.Random(1), 60, timed=False)]
    expected = [m.positions for m in ceql.compile(text).run(events)]
    for name in ("auto", "chain", "tree"):
        query = ceql.compile(text, settings=Settings(evaluator=name))
        assert f"evaluator: {name}" in query.explain()
        assert sorted(m.positions for m in query.run(events)) == sorted(expected)
        assert query.run(events).count() == len(expected)
    with pytest.raises(UnsupportedFeature, match="not NEXT"):
        ceql.compile(text.replace("*", "NEXT *"), settings=Settings(evaluator="chain"))


def test_the_command_line_says_who_evaluated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query, events = tmp_path / "query.ceql", tmp_path / "events.csv"
    query.write_text("SELECT * WHERE A AS x ; B AS y FILTER x.a < y.a WITHIN 10 EVENTS")
    events.write_text("type,a\n" + "A,1\nB,2\nB,1\nC,5\n" * 100)
    counts = set()
    for name in ("auto", "compact", "chain", "tree"):
        arguments = ["--events", str(events), "--format", "count", "--evaluator", name, "--explain"]
        assert cli.main(["run", str(query), *arguments]) == 0
        out, said = capsys.readouterr()
        counts.add(out)
        assert "evaluator: " in said
    assert len(counts) == 1
    assert cli.main(["explain", str(query), "--evaluator", "tree"]) == 0
    assert "evaluator: tree" in capsys.readouterr().out
