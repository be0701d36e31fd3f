"""After a match: the rules for what it discards, against the oracle, in any cut, in every kind of run."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from spaseq.core.engine import After, AfterMatch, Choice, Consume, Evaluator, MatchBatch, Selection, Settings, Window
from spaseq.core.engine import compile_program, ends_only
from spaseq.core.engine.program.selection import after_rule, kernel_order
from spaseq.core.errors import BudgetExceeded
from spaseq.core.tecs.kernels import layout as k
from tests.core.engine.test_against_oracle import SIZE, as_list, draw, in_batches
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, lower
from tests.support.snapshots import rewritten

RULES = [After.PAST_LAST, After.TO_NEXT, After.TO_FIRST, After.TO_LAST, After.ONCE]


def expect(rule: After, variable: str, query: o.Query, rows: Rows) -> list[o.Match]:
    """The matches by definition."""
    if rule is After.ONCE:
        changed = dataclasses.replace(query, strategy="FIRST")
        assert query.strategy == "ALL"
    else:
        changed = dataclasses.replace(query, after=(rule.name.replace("_", " "), variable))
    return o.evaluate(changed, rows.events())


def after(rule: After, rng: random.Random, query: o.Query) -> AfterMatch:
    names = sorted(o.variables_of(query.formula) | {"x", "y"})
    variable = rng.choice(names) if rule in (After.TO_FIRST, After.TO_LAST) else ""
    return AfterMatch(rule, variable, keyed=bool(query.partition))


@pytest.mark.parametrize("rule", RULES, ids=[rule.value for rule in RULES])
def test_the_rules_are_the_oracles_in_any_cut(rule: After) -> None:
    check_rule(rule, range(SIZE))


@pytest.mark.random
@pytest.mark.parametrize("rule", RULES, ids=[rule.value for rule in RULES])
def test_the_rules_on_a_hundred_thousand_cases(rule: After) -> None:
    check_rule(rule, range(2_000_000, 2_020_000))


def check_rule(rule: After, seeds: range) -> None:
    """Whole, cut, from a snapshot, and without deterministic states."""
    fewer = 0
    for seed in seeds:
        rng, rows, window, strict, query, everything = draw(seed)
        if rule is After.ONCE and strict:
            continue
        which = after(rule, rng, query)
        expected = expect(rule, which.variable, query, rows)
        fewer += len(expected) < len(everything)
        program = compile_program(lower(query.formula), window, strict=strict, choice=Choice(after=which))
        found = as_list(Evaluator(program).push(rows))
        assert not o.compare(expected, found), (seed, which, query, rows, expected, found)
        assert Evaluator(program).count(rows) == len(expected)
        assert as_list(in_batches(Evaluator(program), rows, rng, window, laws=False)) == found, (seed, which, query)
        settings = Settings(automaton_bytes=rng.choice((0, 900, 1500)))
        for settled in (program, dataclasses.replace(program, settings=settings)):
            evaluator, cut = Evaluator(settled), rng.randrange(len(rows) + 1)
            before = as_list(in_batches(evaluator, rows[:cut], rng, window, laws=False))
            evaluator = Evaluator.restore(settled, rewritten(evaluator.snapshot()))
            rest = as_list(in_batches(evaluator, rows[cut:], rng, window, laws=False))
            assert sorted(before + rest) == found, (seed, which, query, rows)
        ends = [] if not len(rows) else Evaluator(ends_only(program)).push(rows).end.tolist()
        assert sorted({(end, key) for end, key in with_keys(rows, ends)}) == sorted(
            {(end, key) for end, key in with_keys(rows, [m[1] for m in found])}
        ), (seed, which, query)
    assert fewer > len(seeds) // 50


def with_keys(rows: Rows, ends: list[int]) -> list[tuple[int, int]]:
    return [(end, 0 if rows.keys is None else int(rows.keys[end])) for end in ends]
