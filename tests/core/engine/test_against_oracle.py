"""The engine against the oracle: random patterns, windows, partitions, cuts into batches, budgets, snapshots."""

from __future__ import annotations

import dataclasses
import os
import random
from fractions import Fraction

import numpy as np
import pytest

from spaseq.core.engine import (
    Around,
    Choice,
    Consume,
    Evaluator,
    MatchBatch,
    Selection,
    Settings,
    Window,
    compile_program,
)
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import NoneOf
from tests.support import oracle as o
from tests.support.engine_patterns import Rows, atoms, lower, random_absent, random_formula, random_rows
from tests.support.laws import check_laws
from tests.support.sizes import some
from tests.support.snapshots import rewritten

SIZE = int(os.environ.get("SPASEQ_RANDOM", "300"))


def as_list(batch: MatchBatch) -> list[o.Match]:
    ends = batch.offsets[1:].tolist()
    return sorted(
        (s, e, tuple(batch.positions[a:b].tolist()))
        for s, e, a, b in zip(batch.start.tolist(), batch.end.tolist(), batch.offsets.tolist(), ends, strict=False)
    )


def random_window(rng: random.Random) -> tuple[Window, o.Within | None]:
    size = rng.randrange(1, 6)
    match rng.randrange(3):
        case 0:
            return Window("none"), None
        case 1:
            return Window("events", size), o.Within(Fraction(size), "events")
        case _:
            return Window("span", size), o.Within(Fraction(size), "attribute", "t")


def draw(seed: int) -> tuple[random.Random, Rows, Window, bool, o.Query, list[o.Match]]:
    """A case small enough for the oracle."""
    rng = random.Random(seed)
    while True:
        partitions = rng.choice((0, 0, 1, 2))
        rows = random_rows(rng, rng.randrange(0, 15), partitions)
        formula = random_formula(rng, rng.randrange(1, 5), [])
        window, within = random_window(rng)
        strict = rng.random() < 0.2
        query = o.Query(formula, None, "STRICT" if strict else "ALL", (("k",),) if partitions else (), within)
        try:
            return rng, rows, window, strict, query, o.evaluate(query, rows.events())
        except o.TooBig:
            continue


def in_batches(evaluator: Evaluator, rows: Rows, rng: random.Random, window: Window, laws: bool = True) -> MatchBatch:
    parts, at = [], 0
    while at < len(rows):
        size = rng.randrange(1, 5)
        parts.append(evaluator.push(rows[at : at + size]))
        at += size
        if laws:
            check_laws(evaluator._arena, 0 if window.kind == "none" else int(rows.positions[min(at, len(rows)) - 1]))
    return MatchBatch.concat(parts)


@pytest.mark.parametrize("block", range(10))
def test_matches_are_the_oracles_in_any_cut(block: int) -> None:
    for seed in range(block * SIZE // 10, block * SIZE // 10 + some(SIZE // 10)):
        rng, rows, window, strict, query, expected = draw(seed)
        program = compile_program(lower(query.formula), window, strict=strict)
        whole = as_list(Evaluator(program).push(rows))
        assert not o.compare(expected, whole), (seed, query, rows)
        cut = as_list(in_batches(Evaluator(program), rows, rng, window))
        assert cut == whole, (seed, query, rows)
        assert Evaluator(program).count(rows) == len(whole)


def test_a_tiny_automaton_cache_gives_the_same_matches() -> None:
    """Clearing the cache keeps the live states; when they alone are too many it goes on without, within `live_runs`.

    `any:+ : A : any : any : any : any` has 2^4 deterministic states, of which a short window keeps few alive.
    """
    anything = o.Or(o.Type("A"), o.Type("B"))
    formula = o.Then(o.Plus(anything, True), o.Type("A"), True)
    for _ in range(4):
        formula = o.Then(formula, anything, True)
    rng = random.Random(11)
    rows = random_rows(rng, 300)
    rows.types[rows.types == "C"] = "A"
    window = Window("events", 6)
    free = Evaluator(compile_program(lower(formula), window))
    expected = as_list(free.push(rows))
    needed = free.statistics["automaton_bytes"]
    assert free.statistics["deterministic_states"] > 15
    for budget in (needed * 2 // 3, needed * 9 // 10):
        program = compile_program(lower(formula), window, settings=Settings(automaton_bytes=budget))
        evaluator = Evaluator(program)
        assert as_list(in_batches(evaluator, rows, rng, window)) == expected
        assert evaluator.statistics["automaton_clears"] > 3
        assert evaluator.statistics["fell_back"] == 0
    evaluator = Evaluator(compile_program(lower(formula), window, settings=Settings(automaton_bytes=500)))
    assert as_list(in_batches(evaluator, rows, rng, window)) == expected
    assert evaluator.statistics["fell_back"] == 1
    with pytest.raises(BudgetExceeded, match="live_runs is 2 runs"):
        settings = Settings(automaton_bytes=500, live_runs=2)
        Evaluator(compile_program(lower(formula), window, settings=settings)).push(rows)


def test_without_deterministic_states_the_matches_are_the_same() -> None:
    """No budget for them at all: it falls back at the first state, in partitions, under any choice, in any cut."""
    choices = [Choice(), Choice(Selection.NEXT), Choice(Selection.LAST), Choice(limit=2), Choice(consume=Consume.ANY),
               Choice(consume=Consume.PARTITION)]  # fmt: skip
    fell_back, cases = 0, some(60)
    for seed in range(cases):
        rng, rows, window, strict, query, _ = draw(seed)
        for choice in choices:
            program = compile_program(lower(query.formula), window, strict=strict, choice=choice)
            broke = dataclasses.replace(program, settings=Settings(automaton_bytes=rng.choice((0, 900, 1500))))
            expected = as_list(Evaluator(program).push(rows))
            evaluator, cut = Evaluator(broke), rng.randrange(len(rows) + 1)
            found = as_list(evaluator.push(rows[:cut]))
            evaluator = Evaluator.restore(broke, rewritten(evaluator.snapshot()))
            rest = in_batches(evaluator, rows[cut:], rng, window, laws=choice.selection is Selection.ALL)
            found = sorted(found + as_list(rest))
            if choice.limit is None:
                assert found == expected, (seed, choice, query, rows)
            else:
                assert len(found) == len(expected), (seed, choice, query, rows)
            fell_back += evaluator.statistics["fell_back"]
    assert fell_back > cases * 50 // 60


def test_partitions_have_a_budget() -> None:
    """The engine forgets no partition by itself: with ever new numbers, an error names the setting."""
    rows = Rows(np.array(list("ABAB")), np.zeros(4, np.int64), np.arange(4), np.arange(4), np.array([0, 0, 1, 2]))
    program = compile_program(lower(o.Then(o.Type("A"), o.Type("B"))), settings=Settings(partitions=2))
    evaluator = Evaluator(program)
    assert len(evaluator.push(rows[:3])) == 1
    with pytest.raises(BudgetExceeded, match="partitions is 2 keys and 3 are needed"):
        evaluator.push(rows[3:])


def test_a_snapshot_goes_on_where_it_was_taken() -> None:
    for seed in range(100):
        rng, rows, window, strict, query, expected = draw(seed)
        program = compile_program(lower(query.formula), window, strict=strict)
        cut = rng.randrange(len(rows) + 1)
        first = Evaluator(program)
        found = as_list(first.push(rows[:cut]))
        second = Evaluator.restore(program, rewritten(first.snapshot()))
        found += as_list(second.push(rows[cut:]))
        assert not o.compare(expected, sorted(found)), (seed, query, rows)


def test_positions_may_be_large_and_have_gaps() -> None:
    for seed in range(50):
        _, rows, window, strict, query, expected = draw(seed)
        if window.kind == "events" and rows.keys is None:
            continue
        program = compile_program(lower(query.formula), window, strict=strict)
        moved = Rows(rows.types, rows.values, rows.positions * 3 + 2**40, rows.times, rows.keys)
        expected = [(a * 3 + 2**40, b * 3 + 2**40, tuple(p * 3 + 2**40 for p in d)) for a, b, d in expected]
        assert as_list(Evaluator(program).push(moved)) == expected, (seed, query)


def test_memory_is_one_windows_worth() -> None:
    """The ring does not grow after the first windows, however long the stream (the arena's bound, docstring)."""
    rng = np.random.default_rng(7)
    size = 200_000
    rows = Rows(rng.choice(list("ABC"), size), rng.integers(0, 4, size), np.arange(size), np.arange(size))
    formula = o.Then(o.Then(o.Type("A"), o.Type("B")), o.Type("Z"))
    evaluator = Evaluator(compile_program(lower(formula), Window("span", 1000)))
    evaluator.count(rows[:10_000])
    after_ten_windows = evaluator.statistics["arena_bytes"]
    for at in range(10_000, size, 10_000):
        evaluator.count(rows[at : at + 10_000])
    assert evaluator.statistics["arena_bytes"] == after_ten_windows
    states, moves = 2, 3
    assert after_ten_windows <= 2 * 32 * 1001 * moves * (3 * (states + 4) + 8) + (1 << 17)


@pytest.mark.parametrize("settings", [Settings(), Settings(automaton_bytes=0)], ids=["classes", "set by set"])
def test_memory_ends_where_matches_were_consumed(settings: Settings) -> None:
    """Without a window, what CONSUME BY ANY forgets is reclaimed."""
    letters = np.random.default_rng(8).choice(list("ABC"), 60_000, p=[0.45, 0.45, 0.1])
    rows = Rows(letters, np.zeros(60_000, np.int64), np.arange(60_000), np.arange(60_000))
    formula = o.Then(o.Then(o.Type("A"), o.Type("B")), o.Type("C"))
    choice = Choice(consume=Consume.ANY)
    evaluator = Evaluator(compile_program(lower(formula), choice=choice, settings=settings))
    found = sum(evaluator.count(rows[at : at + 7000]) for at in range(0, 60_000, 7000))
    started = pairs = expected = 0
    for letter in letters.tolist():
        if letter == "A":
            started += 1
        elif letter == "B":
            pairs += started
        elif pairs:
            expected, started, pairs = expected + pairs, 0, 0
    assert found == expected
    assert len(evaluator._arena.nodes) == 1 << 14


def test_partitions_with_windows_of_their_own_are_compacted() -> None:
    """Memory is one window for each partition, and matches are those of a structure that forgot nothing."""
    rng = np.random.default_rng(9)
    size, partitions = 60_000, 50
    keys = np.minimum(rng.geometric(0.1, size) - 1, partitions - 1)  # some partitions are quiet for long
    rows = Rows(rng.choice(list("ABZ"), size, p=[0.5, 0.499, 0.001]), rng.integers(0, 4, size), np.arange(size),
                np.arange(size), keys)  # fmt: skip
    formula = o.Then(o.Then(o.Type("A"), o.Plus(o.Type("B"))), o.Type("Z"))
    evaluator = Evaluator(compile_program(lower(formula), Window("events", 7)))
    compacted = MatchBatch.concat([evaluator.push(rows[at : at + 7000]) for at in range(0, size, 7000)])
    assert len(evaluator._arena.nodes) == 1 << 14
    apart = []
    for key in range(partitions):
        own = np.flatnonzero(keys == key)
        if len(own):
            part = Rows(rows.types[own], rows.values[own], np.arange(len(own)), np.arange(len(own)))
            found = Evaluator(compile_program(lower(formula), Window("events", 7))).push(part)
            apart += [(own[s], own[e], tuple(own[list(d)].tolist())) for s, e, d in as_list(found)]
    assert as_list(compacted) == sorted(apart)
    assert len(apart) > 500


STRATEGIES = ["NEXT", "LAST", "MAX", "ANY"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_selection_within_the_window(strategy: str) -> None:
    check_selection(strategy, range(some(SIZE)))


@pytest.mark.random
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_selection_on_a_hundred_thousand_cases(strategy: str) -> None:
    check_selection(strategy, range(1_000_000, 1_025_000))


def check_selection(strategy: str, seeds: range) -> None:
    for seed in seeds:
        rng, rows, window, _, query, _ = draw(seed)
        program = compile_program(lower(query.formula), window, choice=Choice(Selection[strategy]))
        query = dataclasses.replace(query, strategy=strategy)
        expected = o.evaluate(query, rows.events())
        found = as_list(in_batches(Evaluator(program), rows, rng, window, laws=False))
        if strategy == "ANY":
            assert set(found) <= set(expected), (seed, query, rows)
            ends = sorted((m[1], key_of(rows, m)) for m in found)
            assert ends == sorted({(m[1], key_of(rows, m)) for m in expected}), (seed, query, rows)
        else:
            assert not o.compare(expected, found), (strategy, seed, query, rows)


def key_of(rows: Rows, match: o.Match) -> int:
    return 0 if rows.keys is None else int(rows.keys[match[1]])


def test_a_limit_keeps_the_most_recent_starts() -> None:
    for seed in range(some(SIZE)):
        rng, rows, window, strict, query, expected = draw(seed)
        for limit in (1, 2, 5):
            program = compile_program(lower(query.formula), window, strict=strict, choice=Choice(limit=limit))
            found = as_list(in_batches(Evaluator(program), rows, rng, window))
            assert set(found) <= set(expected)
            for end in {m[1] for m in expected}:
                starts = sorted((m[0] for m in expected if m[1] == end), reverse=True)
                assert sorted((m[0] for m in found if m[1] == end), reverse=True) == starts[:limit], (seed, query)


@pytest.mark.parametrize("consume", [Consume.ANY, Consume.PARTITION])
def test_consumption_forgets_the_runs_so_far(consume: Consume) -> None:
    """Event by event: what was consumed before is taken out of the stream that the oracle sees."""
    for seed in range(some(SIZE)):
        rng, rows, window, strict, query, everything = draw(seed)
        program = compile_program(lower(query.formula), window, strict=strict, choice=Choice(consume=consume))
        floors: dict[int, int] = {}
        expected = []
        for match in sorted(everything, key=lambda m: m[1]):
            key = key_of(rows, match) if consume is Consume.PARTITION else 0
            consumed_at = floors.get(key, -1)
            if match[0] > consumed_at or (match[1] == consumed_at and match[0] > floors.get(~key, -1)):
                if match[1] != consumed_at:
                    floors[~key], floors[key] = consumed_at, match[1]
                expected.append(match)
        found = as_list(in_batches(Evaluator(program), rows, rng, window))
        assert not o.compare(sorted(expected), found), (consume, seed, query, rows)


def test_absence_at_the_end_is_reported_as_the_window_closes() -> None:
    reported_late = 0
    for seed in range(some(SIZE)):
        rng, rows, window, strict, query, matches = draw(seed)
        absent = random_absent(rng)
        strays = {v.start for v in o.valuations(absent, rows.events())}
        around = Around(NoneOf(frozenset(a.predicates for a in atoms(absent))))
        program = compile_program(lower(query.formula), window, strict=strict, around=around)
        expected = [m for m in matches if not any(_spoils(rows, query, m, p) for p in strays if p > m[1])]
        evaluator = Evaluator(program)
        early = as_list(in_batches(evaluator, rows, rng, window))
        late = as_list(MatchBatch.concat(list(evaluator.close())))
        assert not o.compare(expected, sorted(early + late)), (seed, query, absent, rows)
        assert not as_list(MatchBatch.concat(list(evaluator.close())))
        reported_late += bool(early) and bool(late)
    assert reported_late > some(SIZE) // 50


def _spoils(rows: Rows, query: o.Query, match: o.Match, stray: int) -> bool:
    """Whether the event at `stray` lies in the partition and the window of `match`."""
    if rows.keys is not None and rows.keys[stray] != rows.keys[match[1]]:
        return False
    own = range(len(rows)) if rows.keys is None else np.flatnonzero(rows.keys == rows.keys[match[1]]).tolist()
    places = list(own)
    return o.inside(query.within, places.index(match[0]), places.index(stray), places, rows.events())
