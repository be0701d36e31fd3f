"""NEXT and LAST over lists of places: against frontiers on longer streams, and what it costs."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spaseq.core.automata.preference import Preferences
from spaseq.core.engine import Choice, Consume, Evaluator, MatchBatch, Selection, Settings, Window, compile_program
from spaseq.core.engine.runs import evaluator as runs
from spaseq.core.engine.runs.preferred import PreferredRun
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import choices, structure
from spaseq.core.tecs.kernels import layout as k
from tests.support import oracle as o
from tests.support.engine_patterns import HasType, Rows, lower, random_rows
from tests.support.sizes import some
from tests.support.snapshots import rewritten

SIZE = int(os.environ.get("SPASEQ_RANDOM", "300"))
STRATEGIES = [Selection.NEXT, Selection.LAST]
A, B, C, D = map(o.Type, "ABCD")
SHAPES: dict[str, o.Formula] = {
    "A ; B ; C": o.Then(o.Then(A, B), C),
    "A ; B+ ; C": o.Then(o.Then(A, o.Plus(B)), C),
    "A+ ; C": o.Then(o.Plus(A), C),
    "(A ; B+)+ ; C": o.Then(o.Plus(o.Then(A, o.Plus(B))), C),
    "A{3,} ; C": o.Then(o.Repeat(A, 3, None), C),
    "AND((B OR A)+, B)": o.And(o.Plus(o.Or(B, A)), B),
}


def as_list(batch: MatchBatch) -> list[o.Match]:
    ends = batch.offsets[1:].tolist()
    return sorted(
        (s, e, tuple(batch.positions[a:b].tolist()))
        for s, e, a, b in zip(batch.start.tolist(), batch.end.tolist(), batch.offsets.tolist(), ends, strict=False)
    )


def by_lists(pattern: Any, window: Window = Window("none"), choice: Choice = Choice(), **others: Any) -> Any:  # noqa: B008
    """The program with the choice as it is, also if compiling proves that a cheaper one is the same."""
    return replace(compile_program(pattern, window, choice=choice, **others), choice=choice)


def shape(name: str) -> o.Formula:
    """A formula of SHAPES; `A{3,}` as the algebra has it."""
    return o.Then(o.Then(o.Then(A, A), o.Plus(A)), C) if name == "A{3,} ; C" else SHAPES[name]


def stream(size: int, seed: int = 3, letters: str = "ABCD", keys: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    partitions = rng.integers(-1, keys, size) if keys else None
    return Rows(rng.choice(list(letters), size), np.zeros(size, np.int64), np.arange(size), np.arange(size), partitions)


def formula(rng: random.Random, depth: int) -> o.Formula:
    """A formula whose matches mark all of their events."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice((A, B, C, D))
    left, right = formula(rng, depth - 1), formula(rng, depth - 1)
    match rng.randrange(8):
        case 0 | 1 | 2 | 3:
            return o.Then(left, right, rng.random() < 0.3)
        case 4:
            return o.Or(left, right)
        case 5:
            return o.And(left, right)
        case _:
            return o.Plus(left, rng.random() < 0.3)


def window(rng: random.Random) -> Window:
    size = rng.randrange(1, 60)
    return rng.choice((Window("none"), Window("events", size), Window("span", size), Window("tumbling", size + 5, 2)))


@pytest.mark.parametrize("block", range(4))
def test_matches_are_those_of_frontiers(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frontiers, which compare single runs, are checked against the oracle on streams short enough for it."""
    compared, cases = 0, some(SIZE // 4)
    for seed in range(block * SIZE // 4, block * SIZE // 4 + cases):
        rng = random.Random(seed)
        rows = stream(rng.choice((30, 90)), seed, rng.choice(("ABCD", "ABC", "AABC")), rng.choice((0, 0, 1, 3)))
        consume = rng.choice((Consume.NONE, Consume.NONE, Consume.ANY, Consume.PARTITION))
        choice = Choice(rng.choice(STRATEGIES), consume)
        settings = Settings(automaton_bytes=rng.choice((0, 3000, 1 << 26)))
        pattern = lower(formula(rng, rng.randrange(1, 5)))
        strict = rng.random() < 0.1
        program = by_lists(pattern, window(rng), choice=choice, strict=strict, settings=settings)
        if not runs.prefers_places(program):
            continue
        evaluator, found, at = Evaluator(program), [], 0
        assert type(evaluator.run) is PreferredRun
        while at < len(rows):
            size = rng.randrange(1, 40)
            found.append(evaluator.push(rows[at : at + size]))
            at += size
            if rng.random() < 0.3:
                evaluator = Evaluator.restore(program, rewritten(evaluator.snapshot()))
        with monkeypatch.context() as patch:
            patch.setattr(runs, "prefers_places", lambda _: False)
            expected = as_list(Evaluator(program).push(rows))
        assert as_list(MatchBatch.concat(found)) == expected, (seed, program)
        assert Evaluator(program).count(rows) == len(expected), (seed, program)
        compared += 1
    assert compared > cases * 4 // 5


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", SHAPES)
def test_an_event_costs_the_same_whatever_the_window_is(strategy: Selection, name: str) -> None:
    """Nodes made, entries of lists and groups of starts: all that an event's cost depends on."""
    made = []
    for size in (10, 100, 1_000, 10_000):
        rows = stream(20_000)
        evaluator = Evaluator(by_lists(lower(shape(name)), Window("events", size), choice=Choice(strategy)))
        evaluator.count(rows)
        run, st = evaluator.run, evaluator._arena.st
        assert isinstance(run, PreferredRun)
        assert np.count_nonzero(run._groups[:, k.G_LIST] >= 0) <= 3
        assert st[k.LONGEST] <= 16
        made.append(st[k.TAIL] / len(rows))
    assert made[-1] < 8, made
    assert made[-1] < 2 * made[1] + 1, made


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_memory_is_one_windows_worth(strategy: Selection) -> None:
    """Without partitions, and with windows of each partition, which are compacted."""
    for keys, held in ((0, Window("span", 200)), (40, Window("events", 200))):
        rows = stream(60_000, keys=keys)
        evaluator = Evaluator(by_lists(lower(SHAPES["A ; B+ ; C"]), held, choice=Choice(strategy)))
        for at in range(0, len(rows), 5_000):
            evaluator.count(rows[at : at + 5_000])
            if at == 15_000:
                settled = evaluator.statistics["arena_bytes"]
        assert evaluator.statistics["arena_bytes"] == settled


def test_without_a_window_one_machine_is_kept() -> None:
    """However many starts there are; so is it in a window that tumbles."""
    rows = stream(5_000, keys=3)
    for held in (Window("none"), Window("tumbling", 700)):
        for strategy in STRATEGIES:
            evaluator = Evaluator(by_lists(lower(SHAPES["(A ; B+)+ ; C"]), held, choice=Choice(strategy)))
            evaluator.count(rows)
            run = evaluator.run
            assert isinstance(run, PreferredRun)
            assert np.count_nonzero(run._groups[:, k.G_LIST] >= 0) <= 3  # one for each partition
            assert evaluator._arena.st[k.LONGEST] == 0


def test_groups_of_one_list_are_joined_with_the_nearest() -> None:
    """`AND((B OR A)+, B)` had a group for each pair of a B with the A's before it, which a fresh start had split."""
    rows = stream(3_000, letters="AB")
    for strategy in STRATEGIES:
        program = by_lists(lower(SHAPES["AND((B OR A)+, B)"]), Window("events", 2_000), choice=Choice(strategy))
        evaluator = Evaluator(program)
        evaluator.count(rows)
        assert isinstance(evaluator.run, PreferredRun)
        assert np.count_nonzero(evaluator.run._groups[:, k.G_LIST] >= 0) == 1


def test_places_that_never_meet_have_one_order() -> None:
    """LAST of a sequence of eight types has seven lists, and not the 5,040 orders in which seven types came last."""
    letters = "ABCDEFGH"
    sequence: o.Formula = o.Type("A")
    for letter in letters[1:]:
        sequence = o.Then(sequence, o.Type(letter))
    rows = stream(4_000, letters=letters)
    evaluator = Evaluator(by_lists(lower(sequence), Window("none"), choice=Choice(Selection.LAST)))
    evaluator.count(rows)
    assert evaluator.statistics["deterministic_states"] == 7


def test_an_automaton_of_many_states_is_compiled_at_once() -> None:
    """Not all pairs of 200 states are looked at, and a list of 200 places is made in its normal form at once."""
    pattern: o.Formula = A
    for _ in range(199):
        pattern = o.Then(pattern, A)
    rows = stream(300, letters="A")
    for strategy in STRATEGIES:
        evaluator = Evaluator(by_lists(lower(pattern), Window("none"), choice=Choice(strategy)))
        found = as_list(evaluator.push(rows))
        assert [m[1] for m in found] == list(range(199, 300))
        first = [(0, *range(1, 199), end) for end in range(199, 300)]
        last = [tuple(range(end - 199, end + 1)) for end in range(199, 300)]
        assert [m[2] for m in found] == (first if strategy is Selection.NEXT else last)


def test_live_lists_beyond_the_budget() -> None:
    """The evaluation goes on, drops lists that no start is in, and says so; `live_runs` bounds the live ones. A budget
    that no event got through made it drop the steps of an event before that made them, for ever."""
    pattern = lower(o.And(o.Then(A, B), o.Then(C, D)))
    rows = stream(400)
    for strategy in STRATEGIES:
        free = Evaluator(by_lists(pattern, Window("events", 50), choice=Choice(strategy)))
        expected = as_list(free.push(rows))
        settings = Settings(automaton_bytes=0)
        broke = Evaluator(by_lists(pattern, Window("events", 50), choice=Choice(strategy), settings=settings))
        assert as_list(broke.push(rows)) == expected
        assert broke.statistics["fell_back"] == 1
        assert broke.statistics["automaton_clears"] > 1
        assert free.statistics["automaton_clears"] == 0
        settings = Settings(automaton_bytes=0, live_runs=1)
        broke = Evaluator(by_lists(pattern, Window("events", 50), choice=Choice(strategy), settings=settings))
        with pytest.raises(BudgetExceeded, match="live_runs is 1 runs"):
            broke.push(rows)


def test_forgotten_partitions_start_anew() -> None:
    rows = stream(300, keys=2)
    program = by_lists(lower(SHAPES["A ; B ; C"]), Window("span", 100), choice=Choice(Selection.NEXT))
    evaluator = Evaluator(program)
    evaluator.push(rows[:150])
    assert evaluator.forget(np.array([0])) > 0
    assert evaluator.forget(np.array([0])) == 0
    found = as_list(evaluator.push(rows[150:]))
    assert rows.keys is not None
    own = rows.keys == 0
    assert all(m[0] >= 150 for m in found if own[m[1]])
    assert any(m[0] < 150 for m in found if not own[m[1]])


def test_damaged_snapshots_are_refused() -> None:
    program = by_lists(lower(SHAPES["A ; B ; C"]), Window("events", 40), choice=Choice(Selection.NEXT))
    evaluator = Evaluator(program)
    evaluator.push(stream(100))
    state = evaluator.snapshot()
    cells, keys, numbers, sets, lows, floors = state["run"]["live"]
    assert len(sets) > 1
    (places, place), *rest = sets
    damaged: list[dict[str, Any]] = [
        {"width": 3},
        {"width": "4"},
        {"oldest": state["run"]["oldest"][:-1]},
        {"live": (cells, keys, numbers, [(places, place + 1), *rest], lows, floors)},
        {"live": (cells, keys, numbers, [(places, 7), *rest], lows, floors)},
        {"live": (cells, keys, numbers, [((frozenset({99}),), 0), *rest], lows, floors)},
        {"live": (cells, keys, numbers, [((*places, frozenset({1})), place), *rest], lows, floors)},
        {"live": (cells, keys, numbers, [(places, place), 5, *rest[1:]], lows, floors)},
    ]
    for change in damaged:
        with pytest.raises(OptionError, match="damaged"):
            Evaluator.restore(program, {**state, "run": {**state["run"], **change}})
    assert Evaluator.restore(program, state).statistics["live_nodes"] > 0


# ------------------------------------------------------------------------------------------------- choices by start


def test_a_choice_asks_for_the_least_live_key() -> None:
    """Cells of random keys, joined and folded in any order, against a sorted list; paths have at most log2 choices."""
    trail = np.zeros((130, 4), np.int64)
    for seed in range(200):
        rng = random.Random(seed)
        arena = Arena(1 << 30)
        arena.add_cells(64)
        arena.grow_entries(4096)
        arena.st[k.NEEDED] = 1 << 14
        arena.grow_nodes()
        held: list[list[int]] = [[] for _ in range(64)]
        span = rng.choice((70, 1_000, 1 << 40))
        keys = sorted(rng.sample(range(span), 64))
        low = 0
        for cell, key in enumerate(keys):
            node = structure.new_node.interpreted(arena.nodes, arena.st, k.NIL, k.IS_OUTPUT, key, key)
            arena.cells[cell] = node, key, k.NIL, k.NIL, 0
            held[cell] = [key]
        cells = list(range(64))
        while len(cells) > 1:
            at = rng.randrange(len(cells) - 1)
            older, newer = cells[at], cells.pop(at + 1)
            if rng.random() < 0.3:  # an older cell folded to one run for all of its keys, as if it were marked
                arrays = arena.nodes, arena.cells, arena.entries, arena.st
                node = choices.fold.interpreted(*arrays, older, low)
                assert len(held[older]) == 1 or arena.nodes[node, k.RIGHT] >= 0
            arrays = arena.nodes, arena.cells, arena.entries, arena.st
            choices.prepend.interpreted(*arrays, newer, older, low, trail)
            held[older] += held[newer]
            assert arena.cells[newer, k.HEAD] == k.NIL
            check_cell(arena, older, sorted(held[older]))
        root = choices.fold.interpreted(arena.nodes, arena.cells, arena.entries, arena.st, cells[0], low)
        for key in keys:
            for asked in {max(0, key - 1), key}:
                least = min(x for x in keys if x >= asked)
                assert arena.nodes[choices.follow.interpreted(arena.nodes, root, asked), k.MAX] == least
                assert choices.start_of.interpreted(arena.nodes, root, asked) == least
        assert depth(arena, root) <= min(64, span.bit_length() + 1)


def check_cell(arena: Arena, cell: int, keys: list[int]) -> None:
    """The head is no choice and has the greatest key; entries decrease."""
    assert arena.cells[cell, k.HEAD_MAX] == keys[-1]
    assert arena.nodes[arena.cells[cell, k.HEAD], k.RIGHT] < 0
    entry, before, length = int(arena.cells[cell, k.FIRST]), keys[-1], 0
    while entry >= 0:
        assert arena.entries[entry, k.NODE_MAX] < before
        before, length = int(arena.entries[entry, k.NODE_MAX]), length + 1
        entry = int(arena.entries[entry, k.NEXT])
    assert arena.cells[cell, k.LENGTH] == length <= 64


def depth(arena: Arena, node: int) -> int:
    row = arena.nodes[node]
    return 0 if row[k.RIGHT] < 0 else 1 + max(depth(arena, int(row[k.LEFT])), depth(arena, int(row[k.RIGHT])))


def test_steps_follow_the_laws_of_the_orders() -> None:
    """`A ; B ; C` behind A, on B: with NEXT the run that marks B comes first. With LAST the two
    never meet, so their order is fixed. C changes nothing behind A, and accepts the run that marked B."""
    program = by_lists(lower(SHAPES["A ; B ; C"]))
    letters = [p.name for p in program.cea.predicates if isinstance(p, HasType)]
    for latest in (False, True):
        known = Preferences(program.cea, latest, 1 << 20)
        known.add_classes([1 << letters.index(letter) for letter in "ABC"])

        def step(number: int, symbol: int, known: Preferences = known) -> tuple[int, list[int], int]:
            """The list reached, the ways to its places, and the way accepted."""
            known.learn(number, symbol)
            tables = known.tables()
            reached, first, count, accepts = tables.heads[tables.of[number, symbol]].tolist()
            return reached, tables.ways[first : first + count].tolist(), accepts

        begun, ways, accepts = step(0, 0)
        assert (ways, accepts) == ([1], -1)
        both, ways, accepts = step(begun, 1)
        assert (ways, accepts) == ([2, 3] if latest else [3, 2], -1)
        assert known.learn(begun, 2) == 1
        assert known.tables().of[begun, 2] == 0
        _, _, accepts = step(both, 2)
        assert accepts == (2 * 1 + 3 if latest else 3)


def test_random_rows_with_ties_in_time() -> None:
    """Many events of one time in a window of time: several starts leave it at once."""
    rng = random.Random(5)
    rows = random_rows(rng, 60)
    within = o.Within(o.Fraction(3), "attribute", "t")
    for strategy in STRATEGIES:
        expected = o.evaluate(o.Query(SHAPES["A ; B ; C"], None, strategy.name, (), within), rows.events())
        program = by_lists(lower(SHAPES["A ; B ; C"]), Window("span", 3), choice=Choice(strategy))
        assert not o.compare(expected, as_list(Evaluator(program).push(rows)))
