"""After a match: the rules for what it discards, against the oracle, in any cut, in every kind of run."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from spaseq.core.engine import (
    After,
    AfterMatch,
    Choice,
    Consume,
    Evaluator,
    Selection,
    Settings,
    Window,
    compile_program,
    ends_only,
)
from spaseq.core.engine.program.selection import after_rule, kernel_order
from spaseq.core.errors import BudgetExceeded
from spaseq.core.tecs.kernels import layout as k
from tests.core.engine.test_against_oracle import SIZE, as_list, draw, in_batches
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, lower
from tests.support.sizes import some
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
    check_rule(rule, range(some(SIZE // 2)))


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


def test_past_last_is_next_with_consumption_if_runs_mark_their_start() -> None:
    """So the first is evaluated as the second. With a projection that leaves starts out they differ."""
    same, other, cases = 0, 0, some(300)
    for seed in range(60, 60 + cases):  # of these, one leaves starts out and differs
        _, rows, window, _, query, _ = draw(seed)
        program = compile_program(lower(query.formula), window, choice=Choice(after=AfterMatch(After.PAST_LAST)))
        next_one = Choice(Selection.NEXT, Consume.PARTITION)
        found = as_list(Evaluator(program).push(rows))
        consumed = as_list(Evaluator(compile_program(lower(query.formula), window, choice=next_one)).push(rows))
        if after_rule(program) is None:
            same += bool(found)
            assert found == consumed, (seed, query, rows)
        else:
            other += found != consumed
            assert {m[1:] for m in found} == {m[1:] for m in consumed}, (seed, query, rows)
    assert same > cases // 20 and other > 0


def test_a_variable_that_never_takes_the_first_event_leaves_one_run_for_each_start() -> None:
    """`A ; B AS b ; C` keeps the best run of a start. With `A AS a`, or a variable that may be empty, a match leaves
    others with its start."""
    a, b, c = o.Type("A"), o.As(o.Type("B"), "b"), o.Type("C")
    chain, choice = o.Then(o.Then(a, b), c), o.Then(o.Then(a, o.Or(b, o.Type("B"))), c)
    for formula, variable, order in ((chain, "b", k.BEST_OF_START), (chain, "C", k.BEST_OF_START),
                                     (chain, "A", k.KEEP_ALL), (choice, "b", k.KEEP_ALL)):  # fmt: skip
        for rule in (After.TO_FIRST, After.TO_LAST):
            program = compile_program(lower(formula), choice=Choice(after=AfterMatch(rule, variable)))
            assert kernel_order(program) == order, (variable, rule)


def letters(seed: int, size: int, share: tuple[float, ...]) -> Rows:
    rng = np.random.default_rng(seed)
    return Rows(rng.choice(list("ABC"), size, p=share), rng.integers(0, 4, size), np.arange(size), np.arange(size))


@pytest.mark.parametrize(
    "rule",
    [After.TO_NEXT, After.TO_FIRST, pytest.param(After.TO_LAST, marks=pytest.mark.slow)],
    ids=["next", "first", "last"],
)
@pytest.mark.parametrize("settings", [Settings(), Settings(automaton_bytes=0)], ids=["classes", "set by set"])
def test_memory_is_one_windows_worth(rule: After, settings: Settings) -> None:
    """Runs out of the window and dead starts are forgotten, whether or not matches are found."""
    size = 60_000 if settings == Settings() else 6_000
    formula = o.Then(o.Then(o.Type("A"), o.As(o.Plus(o.Type("B")), "b")), o.Type("C"))
    choice = Choice(after=AfterMatch(rule, "b" if rule is not After.TO_NEXT else ""))
    for share in ((0.4, 0.4, 0.2), (0.5, 0.495, 0.005)):
        rows = letters(7, size, share)
        evaluator = Evaluator(compile_program(lower(formula), Window("span", 20), choice=choice, settings=settings))
        evaluator.push(rows[: size // 10])
        early = evaluator.statistics["arena_bytes"]
        for at in range(size // 10, size, size // 10):
            evaluator.push(rows[at : at + size // 10])
        assert evaluator.statistics["arena_bytes"] == early
        assert evaluator._arena.st[k.DEAD_COUNT] <= len(evaluator._arena.dead) // 2 <= 256


def test_dead_starts_are_dropped_from_quiet_cells() -> None:
    """Ever more starts die, in partitions of which most are quiet: the table is emptied, and nothing of it is told."""
    rows = letters(11, 4_000, (0.6, 0.3, 0.1))
    rows.keys = np.random.default_rng(12).integers(0, 20, len(rows))
    formula = o.Then(o.Type("A"), o.Or(o.Type("C"), o.Then(o.Type("B"), o.Type("C"))))
    program = compile_program(lower(formula), choice=Choice(after=AfterMatch(After.TO_NEXT)))
    evaluator = Evaluator(program)
    found = as_list(evaluator.push(rows))
    expected = []
    for key in range(20):
        begun: list[int] = []
        seen: dict[int, int] = {}
        for position in np.flatnonzero(rows.keys == key).tolist():
            match rows.types[position]:
                case "A":
                    begun.append(position)
                case "B":
                    seen.update((start, position) for start in begun if start not in seen)
                case _:
                    expected += [
                        (start, position, (start, seen[start], position) if start in seen else (start, position))
                        for start in begun
                    ]
                    begun, seen = [], {}
    assert found == sorted(expected)
    assert len(found) > 1_000 and len(evaluator._arena.dead) < len(found)


def test_the_matches_of_one_event_have_a_budget() -> None:
    """With TO FIRST of the first event all matches of an event are listed: too many of them are an error."""
    rows = Rows(np.array(list("A" + "B" * 30 + "C")), np.zeros(32, np.int64), np.arange(32), np.arange(32))
    formula = o.Then(o.Then(o.As(o.Type("A"), "a"), o.Plus(o.Type("B"))), o.Type("C"))
    choice = Choice(after=AfterMatch(After.TO_FIRST, "a"))
    program = compile_program(lower(formula), choice=choice, settings=Settings(arena_bytes=1 << 22))
    with pytest.raises(BudgetExceeded, match="arena_bytes"):
        Evaluator(program).push(rows)
    few = Evaluator(program).push(rows[:9])
    assert len(few) == 0
    sixty = Rows(np.array(list("A" + "B" * 12 + "C")), np.zeros(14, np.int64), np.arange(14), np.arange(14))
    assert len(Evaluator(program).push(sixty)) == 2**12 - 1
