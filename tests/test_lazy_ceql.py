"""The lazy evaluators on random CEQL queries: conditions over several events, aggregates, negation, partitions."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import harness
import oracle
import pytest
from strategies import CeqlCase, ceql_case, ceql_toml, interesting, shrink_ceql
from test_cases import CASES

import ceql
from ceql.run import Run
from spaseq.engine.lazy import LazyEvaluator, plan_of
from spaseq.errors import UnsupportedFeature
from spaseq.events import EventFeed, EventOptions

SAMPLE = 100
FULL = int(os.environ.get("SPASEQ_RANDOM", "10000"))
WAYS = ("chain", "order", "tree")


def lazily(text: str, batches: list[harness.Events], way: str, rng: random.Random) -> list[oracle.Match]:
    """What a lazy evaluator reports, now and then through a snapshot. `UnsupportedFeature` where it refuses."""
    query = ceql.compile(text)
    lowered, program = query._lowered, query.automaton
    plan = plan_of(lowered.pattern, strict=lowered.strict, choice=lowered.choice, registers=lowered.registers)
    orders = None
    if way == "order":
        orders = tuple(tuple(rng.sample([x.number for x in b.leaves], len(b.leaves))) for b in plan.branches)
    evaluator = LazyEvaluator(program, plan, tree=way == "tree", orders=orders, first_chance=rng.random() < 0.7)
    run = Run(lowered, program, evaluator)  # type: ignore[arg-type]
    feed = EventFeed(query._names(()), EventOptions())
    found = []
    for events in [*batches, None]:
        for batch in feed.finish() if events is None else feed.push(events, None):
            for matches, _ in run.advance(batch):
                found.append(matches)
        if rng.random() < 0.2:
            run._evaluator = LazyEvaluator.restore(program, plan, run._evaluator.snapshot())  # type: ignore[assignment]
    found.append(run.close()[0])
    return [
        (int(s), int(e), tuple(m.positions[a:b].tolist()))
        for m in found for s, e, a, b in zip(m.start, m.end, m.offsets[:-1], m.offsets[1:], strict=True)
    ]  # fmt: skip


def plain(case: CeqlCase) -> CeqlCase:
    """The case with selection ALL, which is what lazy evaluation reports."""
    strategy = case.query.strategy if case.query.strategy == "STRICT" else "ALL"
    return replace(case, query=replace(case.query, strategy=strategy, consume="NONE", limit=None))


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
        return len(oracle.evaluate(plain(case).query, case.stream))

    case = plain(interesting(ceql_case, matches, random.Random(seed)))
    if difference(case, seed):
        small = shrink_ceql(case, lambda c: bool(difference(c, seed)))
        report = difference(small, seed)
        found = [[s, e, list(d)] for s, e, d in oracle.evaluate(small.query, small.stream)]
        toml = f"{ceql_toml(small, f'random {seed}')}matches = {found}\n"
        pytest.fail(f"seed {seed}\n{report}\n\n{toml}", pytrace=False)


def test_sample() -> None:
    for seed in range(SAMPLE):
        check(seed)


@pytest.mark.random
@pytest.mark.parametrize("block", range(50))
def test_full(block: int) -> None:
    for seed in range(3_000_000 + block * FULL // 50, 3_000_000 + (block + 1) * FULL // 50):
        check(seed)


RUN = [c for c in CASES if c.error is None and not c.is_spaseq and not c.oracle_only]


@pytest.mark.parametrize("way", WAYS)
def test_cases(way: str) -> None:
    """Every case that the lazy evaluators take; those of selection, consumption and limits they refuse."""
    taken = 0
    for case in RUN:
        rng = random.Random(3)
        try:
            found = lazily(case.query, list(harness.cut(case.events, rng)), way, rng)
        except UnsupportedFeature:
            continue
        taken += 1
        assert sorted(found) == case.matches, (case.place, way)
    assert taken > len(RUN) * 0.7
