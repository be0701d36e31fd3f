"""Selection MAX against the oracle on each of its ways: as ALL, as one run a start, as NEXT, by shapes, set by set."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import numpy as np
import pytest

from spaseq.core.automata import compile_pattern
from spaseq.core.automata.inclusion import find_largest, has_nested_matches
from spaseq.core.engine import Choice, Consume, Evaluator, Program, Selection, Settings, Window, compile_program
from spaseq.core.engine.program import program as programs
from spaseq.core.engine.runs.maximal import MaxRun
from spaseq.core.engine.runs.shaped import ShapedRun
from tests.core.engine.test_against_oracle import SIZE, as_list, draw, in_batches, key_of
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, lower
from tests.support.sizes import some
from tests.support.snapshots import rewritten

A, B, C = (o.Type(name) for name in "ABC")
F_L = o.Then(o.Plus(A), C)
BY_SHAPES: dict[str, o.Formula] = {
    "A ; B+ ; C": o.Then(o.Then(A, o.Plus(B)), C),
    "A+ ; B+ ; C": o.Then(o.Then(o.Plus(A), o.Plus(B)), C),
    "(A ; B)+ ; C": o.Then(o.Plus(o.Then(A, B)), C),
    "A ; B of A ; B+ ; C": o.Project(o.Then(o.As(o.Then(A, o.Plus(B)), "x"), C), frozenset("B")),
    "(A OR B)+ : C": o.Then(o.Plus(o.Or(A, o.Then(A, B))), C, True),
}


@pytest.fixture
def as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are evaluated by the selection that was asked for, without proofs."""
    monkeypatch.setattr(programs, "cheaper_choice", lambda cea, choice: (choice, ""))


def check(seeds: range, strategies: str = "MAX") -> Counter[str]:
    """Whole, cut, counted, from a snapshot, with small budgets, with CONSUME BY and LIMIT. The selections that were
    evaluated."""
    evaluated: Counter[str] = Counter()
    for seed in seeds:
        rng, rows, window, strict, query, everything = draw(seed)
        if strict:
            continue
        strategy = rng.choice(strategies.split())
        choice = Choice(Selection[strategy])
        program = compile_program(lower(query.formula), window, choice=choice)
        evaluated[program.choice.selection.name] += 1
        case = (strategy, seed, query, rows)
        expected = o.evaluate(dataclasses.replace(query, strategy=strategy), rows.events())
        whole = as_list(Evaluator(program).push(rows))
        assert not o.compare(expected, whole), case
        assert as_list(in_batches(Evaluator(program), rows, rng, window, laws=False)) == whole, case
        assert Evaluator(program).count(rows) == len(whole), case
        small = Settings(automaton_bytes=rng.choice((0, 900, 1_500, 5_000)))
        for settled in (program, dataclasses.replace(program, settings=small)):
            first, cut = Evaluator(settled), rng.randrange(len(rows) + 1)
            found = as_list(first.push(rows[:cut]))
            second = Evaluator.restore(settled, rewritten(first.snapshot()))
            found += as_list(in_batches(second, rows[cut:], rng, window, laws=False))
            assert sorted(found) == whole, case
        consume = rng.choice((Consume.ANY, Consume.PARTITION))
        program = compile_program(lower(query.formula), window, choice=dataclasses.replace(choice, consume=consume))
        found = as_list(in_batches(Evaluator(program), rows, rng, window, laws=False))
        assert found == consumed(strategy, consume, everything, rows), (consume, case)
        program = compile_program(lower(query.formula), window, choice=dataclasses.replace(choice, limit=1))
        found = as_list(in_batches(Evaluator(program), rows, rng, window, laws=False))
        latest = {(end, max(m[0] for m in whole if m[1] == end)) for _, end, _ in whole}
        assert set(found) <= set(whole) and {(m[1], m[0]) for m in found} == latest and len(found) == len(latest), case
    return evaluated


def consumed(strategy: str, consume: Consume, everything: list[o.Match], rows: Rows) -> list[o.Match]:
    """The matches under CONSUME BY, event by event."""
    floors: dict[int, int] = {}
    expected: list[o.Match] = []
    for end in range(len(rows)):
        key = key_of(rows, (end, end, ())) if consume is Consume.PARTITION else 0
        here = {(m[0], m[1], frozenset(m[2])) for m in everything if m[1] == end and m[0] > floors.get(key, -1)}
        if here:
            floors[key] = end
            expected += [(s, e, tuple(sorted(d))) for s, e, d in o.select(strategy, here)]
    return sorted(expected)


def test_by_the_cheapest_way() -> None:
    ways = check(range(500_000, 500_000 + some(SIZE // 2)), "MAX MAX NEXT LAST")
    assert all(ways[name] for name in ("ALL", "LARGEST", "NEXT", "MAX"))


@pytest.mark.usefixtures("as_asked")
def test_by_shapes() -> None:
    check(range(600_000, 600_000 + some(SIZE // 3)))


@pytest.mark.random
@pytest.mark.parametrize("block", range(20))
def test_many(block: int, request: pytest.FixtureRequest) -> None:
    check(range(2_000_000 + 500 * block, 2_000_500 + 500 * block), "MAX NEXT LAST")
    request.getfixturevalue("as_asked")
    check(range(2_100_000 + 500 * block, 2_100_500 + 500 * block))


def test_the_proofs_hold_for_the_oracles_matches() -> None:
    """The strategies of [CEL] choose the same, by definition, from the matches of every end in every window."""
    proved: Counter[str] = Counter()
    for seed in range(700_000, 700_000 + some(SIZE)):
        _, _, _, strict, query, matches = draw(seed)
        cea = compile_pattern(lower(query.formula), strict=strict)
        found = {(s, e, frozenset(d)) for s, e, d in matches}
        if not has_nested_matches(cea):
            assert o.select("MAX", found) == found, (seed, query)
            proved["ALL"] += len(found) > 1
        if find_largest(cea) is not None:
            largest = o.select("MAX", found)
            assert largest == o.select("NEXT", found) == o.select("LAST", found), (seed, query)
            assert len({(end, d) for _, end, d in largest}) <= len({end for _, end, _ in largest}) or query.partition
            proved["NEXT"] += len(found) > 1
    assert min(proved["ALL"], proved["NEXT"]) > some(SIZE) // 30


def test_patterns_of_which_a_proof_is_known() -> None:
    three = o.Then(A, o.Then(A, o.Plus(A)))
    for formula, single in (
        (F_L, True), (o.Then(three, C), True), (o.Then(o.Plus(A, True), C, True), True), (o.Plus(A), True),
        (o.Project(o.Then(o.Then(o.As(A, "x"), o.Plus(B)), C), frozenset("BC")), False),
    ):  # fmt: skip
        largest = find_largest(compile_pattern(lower(formula)))
        assert largest is not None and largest.single is single, formula
    for formula in (o.Then(o.Then(A, o.Plus(B)), C), o.Then(A, C), o.Then(o.Plus(A), o.Plus(B))):
        assert find_largest(compile_pattern(lower(formula))) is None, formula
    for formula, nested in ((o.Then(o.Then(A, B), C), False), (o.Then(A, o.Or(B, C)), False), (F_L, True)):
        assert has_nested_matches(compile_pattern(lower(formula))) is nested, formula


def test_proofs_have_a_budget() -> None:
    """A pattern with more predicates or states than are looked at keeps its selection."""
    long: o.Formula = o.Plus(A)
    for _ in range(200):
        long = o.Then(A, long)
    assert find_largest(compile_pattern(lower(o.Then(long, C)))) is None
    wide: o.Formula = A
    for bound in range(13):
        wide = o.Or(wide, o.Filter(o.As(A, "x"), ("on", "x", ("<", ("attribute", "v"), ("value", bound)))))
    assert find_largest(compile_pattern(lower(o.Then(o.Plus(wide), C)))) is None


def test_explain_says_by_what_it_is_evaluated() -> None:
    def told(formula: o.Formula, selection: Selection) -> str:
        program = compile_program(lower(formula), choice=Choice(selection))
        return next(line for line in program.explain().split("\n") if line.startswith("selection"))

    assert told(F_L, Selection.MAX).startswith("selection: MAX, evaluated as one run for each start: ")
    assert told(F_L, Selection.LAST).startswith("selection: LAST, evaluated as one run for each start: ")
    assert told(o.Then(A, C), Selection.MAX).startswith("selection: MAX, evaluated as ALL: ")
    assert told(BY_SHAPES["A ; B+ ; C"], Selection.MAX) == "selection: MAX"
    assert told(F_L, Selection.ALL) == "selection: ALL"


def stream(size: int, partitions: int = 0, seed: int = 5) -> Rows:
    rng = np.random.default_rng(seed)
    keys = rng.integers(-1, partitions, size) if partitions else None
    return Rows(rng.choice(list("AABBBC"), size), np.zeros(size, np.int64), np.arange(size), np.arange(size) // 2, keys)


@pytest.mark.usefixtures("as_asked")
@pytest.mark.parametrize("name", BY_SHAPES)
def test_long_streams_set_by_set(name: str) -> None:
    """Arrays grow, nodes are compacted, live sets are freed; a run without shapes gives the same."""
    windows = (Window("events", 9), Window("span", 6), Window("tumbling", 8), Window("none"))
    each_once = [(window, number % 2 * 40) for number, window in enumerate(windows)]
    for window, partitions in [*each_once, *((window, 40 - keys) for window, keys in each_once)][: some(12)]:
        rows = stream(200 if window.kind == "none" else 700, partitions)
        choice = Choice(Selection.MAX, limit=3, consume=Consume.ANY if window.kind == "none" else Consume.NONE)
        program = compile_program(lower(BY_SHAPES[name]), window, choice=choice)
        one = Evaluator(program)
        assert isinstance(one.run, ShapedRun)
        other = Evaluator(dataclasses.replace(program, settings=Settings(automaton_bytes=0)))
        found = in_batches(one, rows, random.Random(3), window, laws=False)
        assert ends_of(found) == ends_of(other.push(rows)), (window, partitions)
        assert isinstance(other.run, MaxRun) and other.statistics["fell_back"] == 1
        assert one.statistics["fell_back"] == 0


def ends_of(batch: object) -> list[tuple[int, int, int]]:
    """LIMIT leaves open which of several matches with one start is reported."""
    return sorted((end, start, 0) for start, end, _ in as_list(batch))  # type: ignore[arg-type]


@pytest.mark.usefixtures("as_asked")
def test_live_sets_do_not_grow_with_the_window() -> None:
    """Unless an event both belongs to a run and begins another one."""
    held = {}
    for name in ("A ; B+ ; C", "A+ ; B+ ; C"):
        for size in (20, 200):
            program = compile_program(lower(BY_SHAPES[name]), Window("events", size), choice=Choice(Selection.MAX))
            evaluator = Evaluator(program)
            rows = stream(800)
            rows.types[rows.types == "C"] = "D"  # no match is enumerated
            evaluator.count(rows)
            held[name, size] = evaluator.statistics["live_runs"]
    assert held["A ; B+ ; C", 200] <= held["A ; B+ ; C", 20] + 2 <= 8
    assert held["A+ ; B+ ; C", 200] > 20
    without = compile_program(lower(BY_SHAPES["A+ ; B+ ; C"]), choice=Choice(Selection.MAX))
    evaluator = Evaluator(without)
    evaluator.count(rows)
    assert evaluator.statistics["live_runs"] <= 6


@pytest.mark.usefixtures("as_asked")
def test_quiet_partitions_are_freed() -> None:
    """Live sets out of the window make room for others, though no event of their partition comes again."""
    size = 6_000
    rows = Rows(
        np.array(["A"] * size), np.zeros(size, np.int64), np.arange(size), np.arange(size), np.arange(size) // 3
    )
    program = compile_program(lower(BY_SHAPES["A+ ; B+ ; C"]), Window("span", 50), choice=Choice(Selection.MAX))
    evaluator = Evaluator(program)
    evaluator.push(rows)
    assert len(evaluator._arena.cells) <= 1_024
    few = dataclasses.replace(program, settings=Settings(live_runs=10))
    with pytest.raises(Exception, match="live_runs is 10 runs"):
        Evaluator(few).push(rows)


def test_memory_of_one_run_a_start_is_that_of_the_window() -> None:
    rows = stream(60_000)
    program: Program = compile_program(lower(F_L), Window("events", 500), choice=Choice(Selection.NEXT))
    assert program.choice.selection is Selection.LARGEST
    evaluator = Evaluator(program)
    counts = [evaluator.count(rows[at : at + 6_000]) for at in range(0, 60_000, 6_000)]
    assert sum(counts) == int(np.sum(rows.types[1:] == "C"))
    assert len(evaluator._arena.nodes) == 1 << 14
