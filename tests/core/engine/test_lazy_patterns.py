"""The lazy evaluators against the oracle: random patterns, windows, partitions, cuts, orders; chains and trees."""

from __future__ import annotations

import os
import random

import pytest

from spaseq.core.engine import (
    Around,
    Choice,
    Evaluator,
    MatchBatch,
    Program,
    Selection,
    Settings,
    Window,
    compile_program,
)
from spaseq.core.engine.lazy import LazyEvaluator, plan_of
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from spaseq.core.pattern import Atom, Correlate, Iterate, NoneOf, Or, Pattern, Sequence, Skip
from tests.core.engine.test_against_oracle import as_list, draw
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, atoms, lower, random_absent, random_rows
from tests.support.snapshots import rewritten

SIZE = int(os.environ.get("SPASEQ_RANDOM", "80"))


def lazily(program: Program, pattern: Pattern, rng: random.Random, strict: bool = False) -> list[LazyEvaluator]:
    """A chain by frequency, one in some random order, and a tree."""
    plan = plan_of(pattern, strict=strict, choice=program.choice, registers=program.registers)
    orders = tuple(tuple(rng.sample([x.number for x in b.leaves], len(b.leaves))) for b in plan.branches)
    return [
        LazyEvaluator(program, plan),
        LazyEvaluator(program, plan, orders=orders, first_chance=rng.random() < 0.5),
        LazyEvaluator(program, plan, tree=True),
    ]


def in_batches(evaluator: LazyEvaluator, rows: Rows, rng: random.Random) -> MatchBatch:
    parts, at = [], 0
    while at < len(rows):
        size = rng.randrange(1, 5)
        parts.append(evaluator.push(rows[at : at + size]))
        at += size
        if rng.random() < 0.2:
            evaluator = LazyEvaluator.restore(evaluator.program, evaluator._plan, rewritten(evaluator.snapshot()))
    return MatchBatch.concat(parts)


def check(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        rng, rows, window, strict, query, expected = draw(seed)
        pattern = lower(query.formula)
        program = compile_program(pattern, window, strict=strict)
        try:
            evaluators = lazily(program, pattern, rng, strict) + lazily(program, pattern, rng, strict)
        except UnsupportedFeature:
            refused += 1
            continue
        for i, evaluator in enumerate(evaluators):
            found = as_list(evaluator.push(rows) if i < 3 else in_batches(evaluator, rows, rng))
            assert not o.compare(expected, found), (seed, i, query, rows)
    assert refused < len(seeds) / 20


@pytest.mark.parametrize("block", range(5))
def test_matches_are_the_oracles_in_any_order_and_cut(block: int) -> None:
    check(range(block * SIZE // 5, (block + 1) * SIZE // 5))


@pytest.mark.random
@pytest.mark.parametrize("block", range(20))
def test_matches_are_the_oracles_on_many_patterns(block: int) -> None:
    check(range(2_000_000 + block * 1000, 2_000_000 + (block + 1) * 1000))


def test_absence_at_the_end() -> None:
    for seed in range(SIZE // 2):
        rng, rows, window, strict, query, _ = draw(seed)
        pattern, absent = lower(query.formula), random_absent(rng)
        none_of = NoneOf(frozenset(a.predicates for a in atoms(absent)))
        program = compile_program(pattern, window, strict=strict, around=Around(none_of))
        other = Evaluator(program)
        expected = as_list(other.push(rows)), as_list(MatchBatch.concat(list(other.close())))
        for evaluator in lazily(program, pattern, rng, strict):
            found = as_list(evaluator.push(rows)), as_list(MatchBatch.concat(list(evaluator.close())))
            assert found == expected, (seed, query, rows)


A, B, C = (Atom(lower(o.Type(name)).predicates, frozenset({name})) for name in "ABC")  # type: ignore[attr-defined]


def test_what_is_not_taken_is_refused_by_name() -> None:
    def refused(pattern: Pattern, choice: Choice = Choice()) -> str:  # noqa: B008 - frozen
        with pytest.raises(UnsupportedFeature) as caught:
            plan_of(pattern, strict=False, choice=choice, registers=None)
        return str(caught.value)

    assert "skip-till-next" in refused(Sequence(A, B, Skip.NEXT))
    assert "single events on a run's registers" in refused(Atom(A.predicates, A.variables, "guard"))
    assert "free variables" in refused(Iterate(A, Skip.ANY, "again"))
    assert "only decided event by event: guard" in refused(Correlate(Sequence(A, B, Skip.ANY), A.variables, "guard"))
    assert "not NEXT" in refused(A, Choice(Selection.NEXT))
    assert "consumption or LIMIT" in refused(A, Choice(limit=1))
    wide: Pattern = A
    for _ in range(7):
        wide = Sequence(wide, Or(A, B), Skip.ANY)
    assert "more than 64 branches" in refused(wide)


def test_budgets_have_the_names_of_their_settings() -> None:
    rng = random.Random(4)
    rows = random_rows(rng, 2000)
    pattern = Sequence(Sequence(A, B, Skip.ANY), C, Skip.ANY)
    orders = ((0, 1, 2),)  # as an eager automaton
    for settings in (Settings(live_runs=1000), Settings(arena_bytes=100_000), Settings(output_bytes=10_000)):
        program = compile_program(pattern, Window("events", 500), settings=settings)
        plan = plan_of(pattern, strict=False, choice=program.choice, registers=None)
        evaluator = LazyEvaluator(program, plan, orders=orders)
        (name,) = (n for n in ("live_runs", "arena_bytes", "output_bytes") if getattr(settings, n) < 200_000)
        with pytest.raises(BudgetExceeded, match=name):
            for at in range(0, 2000, 100):
                evaluator.push(rows[at : at + 100])


def test_a_chain_from_the_end_keeps_no_instances_and_a_window_of_events() -> None:
    rng = random.Random(5)
    rows = random_rows(rng, 20_000)
    pattern = Sequence(Sequence(A, B, Skip.ANY), C, Skip.ANY)
    program = compile_program(pattern, Window("events", 20))
    plan = plan_of(pattern, strict=False, choice=program.choice, registers=None)
    evaluator = LazyEvaluator(program, plan, orders=((2, 1, 0),))
    assert evaluator.count(rows) == Evaluator(program).count(rows)
    assert evaluator.statistics["waiting_instances"] == 0
    assert evaluator.statistics["buffered_events"] <= 21


def test_partitions_with_windows_of_their_own_are_forgotten() -> None:
    rng = random.Random(6)
    rows = random_rows(rng, 30_000, partitions=40)
    pattern = Sequence(A, Iterate(B, Skip.ANY), Skip.ANY)
    program = compile_program(pattern, Window("events", 5))
    plan = plan_of(pattern, strict=False, choice=program.choice, registers=None)
    for tree in (False, True):
        evaluator, compact = LazyEvaluator(program, plan, tree=tree), Evaluator(program)
        for at in range(0, 30_000, 5000):
            assert as_list(evaluator.push(rows[at : at + 5000])) == as_list(compact.push(rows[at : at + 5000]))
        assert evaluator.statistics["buffered_events"] < 1024 + 2 * 40 * 6
