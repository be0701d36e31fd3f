"""Pools: runs that differ in one compared value, kept in a tree by it. Against the definition, and their laws."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import ceql
from ceql.runtime.session import Session
from spaseq.core.engine.runs import pooled
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.heaps import add_to_heap, meld
from spaseq.core.tecs.kernels.structure import new_node
from tests.support import oracle, oracle_ceql_text
from tests.support.drawn_orders import KEPT, PATTERNS, draw_with_matches, early_pools
from tests.support.laws import check_laws, check_pools
from tests.support.sizes import some


@pytest.fixture(autouse=True)
def _pools_from_the_start() -> Iterator[None]:
    with early_pools():
        yield


def run_of(session: Session) -> Any:
    evaluator: Any = session._run.evaluator
    return evaluator.eager.run


def places(matches: Any) -> list[tuple[int, ...]]:
    return sorted((int(m.start), int(m.end), *map(int, m.positions)) for m in matches)


@pytest.mark.parametrize("block", range(6))
def test_matches_are_the_oracles_and_the_laws_hold_after_every_batch(block: int) -> None:
    """In batches and one by one, over snapshots; alerts find the same ends."""
    cases = some(20)
    assert laws_hold(range(block * 20, block * 20 + cases), PATTERNS) >= 6 * cases // 20


@pytest.mark.parametrize("block", range(4))
def test_matches_and_laws_of_pools_with_several_steps(block: int) -> None:
    cases = some(20)
    assert laws_hold(range(block * 20, block * 20 + cases), KEPT) >= 6 * cases // 20


def laws_hold(seeds: Iterable[int], patterns: Any) -> int:
    """Compares random queries with the definition and checks the laws: how many pools there were after batches."""
    pools = 0
    for seed in seeds:
        rng = random.Random(seed)
        text, events = draw_with_matches(rng, patterns)
        expected = oracle.evaluate(oracle_ceql_text.read(text), events)
        query = ceql.compile(text)
        session, alerts = query.open(), query.alerts().open()
        found, ends, at = [], [], 0
        while at < len(events):
            size = rng.randrange(1, 6)
            part = events[at : at + size]
            at += size
            found += session.push(part[0] if len(part) == 1 else part)
            ends += alerts.push(part)
            if isinstance(run_of(session), GuardRun):
                own = run_of(session)
                low = int(own._arena.st[k.LOW])
                check_laws(own._arena, low)
                check_pools(own)
                pools += len(own._pool_cells) if own._pools is not None else 0
            if rng.random() < 0.2:
                session = query.open(session.snapshot())
        found += session.close()
        ends += alerts.close()
        assert places(found) == sorted((s, e, *at) for s, e, at in expected), text
        assert sorted(ends) == sorted({e for _, e, _ in expected}), text
    return pools


@pytest.mark.parametrize(
    ("pattern", "condition"),
    [
        ("A AS a ; B AS b", "b.p < a.p"),
        ("A AS a ; B AS b", "b.p < a.p AND b.k < a.k"),
        ("A AS a ; B AS b ; C AS c", "c.p < a.p"),
    ],
)
def test_runs_enter_behind_a_snapshot_wherever_it_is(pattern: str, condition: str) -> None:
    rng = random.Random(7)
    events = [{"type": rng.choice("AABBC"), "p": rng.randrange(40), "k": rng.randrange(99)} for _ in range(60)]
    query = ceql.compile(f"SELECT * FROM S WHERE ({pattern}) FILTER {condition} WITHIN 30 EVENTS")
    expected = places(query.run(events))
    assert len(expected) > 20
    for cut in range(1, len(events)):
        session = query.open()
        found = list(session.push(events[:cut]))
        session = query.open(session.snapshot())
        assert places([*found, *session.push(events[cut:]), *session.close()]) == expected, cut


def test_a_set_without_pools_has_no_pool_that_lost_its_runs() -> None:
    """B consumes the run of a pool, and C takes away the pools of its set. A snapshot has that pool no more."""
    pattern = "(A ; NOT C ; B) OR (A AS a ; D AS b) FILTER b.p <= a.p"
    query = ceql.compile(f"SELECT * FROM S WHERE {pattern} PARTITION BY [g] CONSUME BY PARTITION")
    session = query.open()
    found = []
    for kind, group, value in (("A", 0, 43), ("A", 1, 22), ("B", 0, 12), ("C", 1, 6), ("D", 1, 9)):
        found += session.push([{"type": kind, "g": group, "p": value}])
        session = query.open(session.snapshot())
    assert places(found) == [(0, 2, 0, 2), (1, 4, 1, 4)]


@pytest.mark.parametrize("block", range(2))
def test_a_limit_has_the_latest_starts(block: int) -> None:
    """Of each event as many matches as there are, up to the limit; none twice, and none that began before another."""
    limits = 0
    for seed in range(block * 40, block * 40 + some(40)):
        text, events = draw_with_matches(random.Random(seed), KEPT)
        if "CONSUME" in text:
            continue
        found, every = (_by_end(ceql.compile(query).run(events)) for query in (text + " LIMIT 2", text))
        assert found.keys() == every.keys(), text
        for end, few in found.items():
            assert len(few) == len(set(few)) == min(2, len(every[end])) and set(few) <= set(every[end]), text
            assert [start for start, *_ in few] == sorted((start for start, *_ in every[end]), reverse=True)[:2], text
            limits += len(every[end]) > 2
    assert limits >= 2


def _by_end(matches: Any) -> dict[int, list[tuple[int, ...]]]:
    """For each event the matches that end there, each with its start first; those that began last come first."""
    found: dict[int, list[tuple[int, ...]]] = {}
    for start, end, *at in places(matches):
        found.setdefault(end, []).append((start, *at))
    return {end: sorted(few, key=lambda match: -match[0]) for end, few in found.items()}


def test_explain_says_how_runs_are_kept() -> None:
    def line(condition: str, select: str = "*") -> str:
        text = f"SELECT {select} FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER {condition}"
        return next(x for x in ceql.compile(text).explain().splitlines() if "runs in state 1" in x)

    assert "O(log n)" in line("b.p > a.p") and "O(log n)" in line("b.p > a.p AND c.p > b.p")
    assert "O(log n)" in line("b.k = a.k AND b.p > a.p") and "O(log n)" in line("b.p != a.p")
    assert "2 values" in line("b.p > a.p AND b.k > a.k") and "3 values" in line("b.p > a.p AND b.k > a.k AND b.r < a.r")
    assert "O(log² n)" in line("c.p > a.p") and "the value" in line("b.p > a.p AND c.p > a.p")
    assert "in the order of a value" in line("b.p > a.p AND c.k = a.k AND c.p > a.p")
    assert "in the order of a value" in line("b.p > a.p", "NEXT *")
    assert "equality" in line("b.p = a.p") and "one by one" in line("b.p + a.p > 3")


@pytest.mark.parametrize("marks", ["", "[p > 1]"], ids=["apart", "together"])
def test_many_alternatives_are_no_product_of_all(marks: str) -> None:
    """Forty ways to take an event: those that may fire together are not all subsets of them."""
    ways = " OR ".join(f"(T{n} AS x{n} FILTER x{n}[p > {n}])" if marks else f"T{n}" for n in range(40))
    text = f"SELECT * FROM S WHERE (A AS a ; ({ways}) ; C AS c) FILTER c.p > a.p"
    assert "runs in state 1" in ceql.compile(text).explain()


def test_pools_begin_where_an_event_moves_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooled, "FROM", 8)
    session = ceql.compile("SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b.p > a.p").open()
    session.push([{"type": "A", "p": i} for i in range(8)] + [{"type": "B", "p": 100}])
    assert not len(run_of(session)._pool_cells)
    session.push([{"type": "A", "p": 8}, {"type": "B", "p": 100}])
    assert len(run_of(session)._pool_cells) == 1
    assert len(session.push({"type": "C", "p": 0})) == 8 + 9


def test_the_runs_of_pools_go_on_as_sets_of_configurations() -> None:
    """Decimals and a whole number beyond 2^53 have no codes in common: the evaluation is handed over."""
    session = ceql.compile("SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b.p > a.p").open()
    session.push([{"type": "A", "p": i % 5 + 0.5} for i in range(20)] + [{"type": "B", "p": 3.0}])
    assert len(run_of(session)._pool_cells)
    session.push([{"type": "A", "p": 2**60 + 1}, {"type": "B", "p": 2**60 + 3}])
    assert not isinstance(run_of(session), GuardRun)
    assert len(session.push({"type": "C", "p": 0.0})) == 12 + 21


def test_a_pool_that_an_event_leaves_in_part_becomes_configurations() -> None:
    """A run waits for B until a C comes, and for D: C takes it from both to D alone."""
    text = "SELECT * FROM S WHERE ((A AS a ; NOT C ; B AS b) OR (A AS a ; D AS b)) FILTER b.p > a.p"
    query = ceql.compile(text)
    events = [{"type": kind, "p": p} for kind, p in zip("AABACBDACBD", (1, 4, 2, 0, 9, 3, 3, 1, 0, 5, 2), strict=True)]
    session = query.open()
    found = [match for event in events for match in session.push(event)]
    expected = oracle.evaluate(oracle_ceql_text.read(text), events)
    assert places(found) == sorted((s, e, *at) for s, e, at in expected)


def test_ranges_of_three_values_have_as_many_pieces_as_needed() -> None:
    """One event moves a part of 6,000 runs in all directions; another one ends a part of them."""
    rng = np.random.default_rng(3)
    values = rng.random((6_000, 3)).round(3)
    events = [{"type": "A", "p": p, "k": k, "r": r} for p, k, r in values.tolist()]
    text = "SELECT * FROM S WHERE (A AS a ; {} B AS b ; C AS c) FILTER b.p > a.p AND b.k > a.k AND b.r > a.r"
    middle = {"type": "B", "p": 0.67, "k": 0.73, "r": 0.61}
    below = (values < [0.67, 0.73, 0.61]).all(axis=1)
    session = ceql.compile(text.format("")).open()
    session.push([*events, middle])
    assert len(session.push({"type": "C"})) == below.sum()
    assert len(run_of(session)._pools._pieces) > k.PIECES
    session = ceql.compile(text.format("NOT (D AS d FILTER d.p > a.p AND d.k > a.k) ;")).open()
    session.push([*events, {**middle, "type": "D", "k": 0.2}, middle])
    assert len(session.push({"type": "C"})) == (below & ~(values[:, :2] < [0.67, 0.2]).all(axis=1)).sum()


def test_labels_of_texts_that_are_given_anew_keep_the_order() -> None:
    """Texts between texts: labels run out, all are given anew, and the trees with them."""
    session = ceql.compile("SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b.p > a.p WITHIN 200 EVENTS").open()
    texts, found = [], 0
    for i in range(300):
        texts.append("a" * i)
        found += len(session.push([{"type": "A", "p": texts[-1]}, {"type": "B", "p": "a" * (i // 2)}]))
    assert len(run_of(session)._pool_cells) == 1
    ends = session.push({"type": "C", "p": ""})
    events = [e for i in range(300) for e in ((i, "A"), (i // 2, "B"))]
    expected = sum(1 for j, (n, kind) in enumerate(events) if kind == "B" and j >= 400
                   for m, other in events[400:j] if other == "A" and n > m)  # fmt: skip
    assert len(ends) == expected


def test_rows_are_bounded_by_the_budget_and_freed_with_the_window() -> None:
    text = "SELECT * FROM S WHERE (A AS a ; B AS b ; C AS c) FILTER b.p > a.p"
    kept = ceql.compile(f"{text} WITHIN 100 EVENTS").open()
    for at in range(0, 20_000, 500):
        kept.push([{"type": "AB"[i % 2], "p": float(i)} for i in range(at, at + 500)])
    assert len(run_of(kept)._pools._rows) <= 1 << 12
    assert run_of(kept).statistics["live_runs"] < 300
    all_of_them = ceql.compile(text, settings=ceql.Settings(live_runs=5_000)).open()
    with pytest.raises(ceql.BudgetExceeded, match="live_runs"):
        for at in range(0, 40_000, 500):
            all_of_them.push([{"type": "AB"[i % 2], "p": float(i)} for i in range(at, at + 500)])


def test_melding_keeps_all_nodes_and_the_shape() -> None:
    """Nodes in any order of starts, in one cell and in one heap."""
    rng = random.Random(7)
    path = np.zeros((k.MELD_DEPTH, 2), np.int64)
    for _ in range(some(100)):
        arena = Arena(1 << 24)
        arena.add_cells(1)
        arena.st[k.RANDOM] = 1
        heap, size = k.NIL, rng.randrange(1, 60)
        for pos in range(size):
            start = rng.randrange(pos + 1)
            node = new_node(arena.nodes, arena.st, k.NIL, k.IS_OUTPUT, pos, start)
            add_to_heap(arena.nodes, arena.cells, arena.entries, arena.st, 0, node, start, 0, path)
            heap = node if heap < 0 else meld(arena.nodes, arena.st, heap, node, 0, path)
            check_laws(arena)
        assert arena.cells[0, k.LENGTH] <= 2
        todo, found = [int(heap)], []
        while todo:
            left, right, pos, _ = arena.nodes[todo.pop()].tolist()
            found += [pos] if right < 0 else []
            todo += [left, right] if right >= 0 else []
        assert sorted(found) == list(range(size))
