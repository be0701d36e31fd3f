"""NOT at the end, whose matches wait as roots of the compact structure: against the definition, however events come."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

import ceql
from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded

SECOND = 1_000_000_000


def some_events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    """Events of three types and two keys, some at one time."""
    time, found = 0, []
    for _ in range(count):
        time += rng.choice((0, 1, 1, 2, 5))
        found.append({"type": rng.choice("AABC"), "k": rng.choice("xy"), "time": time})
    return found


def by_definition(events: list[dict[str, Any]], window: str, size: int, keyed: bool) -> list[tuple[Any, ...]]:
    """(start, end, positions) of `A+ ; B ; NOT A` in a window: every choice of As, a B behind, and no A that follows it
    in the window that the first A opens."""
    found = []
    for key in "xy" if keyed else [None]:
        own = [i for i, event in enumerate(events) if key is None or event["k"] == key]
        place = {i: n if window == "events" else events[i]["time"] for n, i in enumerate(own)}
        for b in (i for i in own if events[i]["type"] == "B"):
            before = [i for i in own if events[i]["type"] == "A" and i < b]
            for chosen in (c for n in range(1, len(before) + 1) for c in combinations(before, n)):
                closes = place[chosen[0]] + size if window != "none" else float("inf")
                behind = (i for i in own if i > b and events[i]["type"] == "A")
                if place[b] <= closes and not any(place[i] <= closes for i in behind):
                    found.append((chosen[0], b, (*chosen, b)))
    return sorted(found)


def cut(rng: random.Random, events: list[Any], most: int) -> list[list[Any]]:
    """The events in parts of up to `most`."""
    parts: list[list[Any]] = []
    while events:
        size = rng.randint(1, most)
        parts, events = [*parts, events[:size]], events[size:]
    return parts


def plain(matches: Any) -> list[tuple[Any, ...]]:
    return sorted((m.start, m.end, tuple(m.positions)) for m in matches)


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.slow] if n % 3 else []) for n in range(40)])
def test_roots_stand_for_the_matches_that_wait(seed: int) -> None:
    rng = random.Random(seed)
    window, keyed = rng.choice(["none", "time", "events"]), rng.random() < 0.5
    size = rng.randint(1, 12)
    events = some_events(rng, rng.randint(3, 15))
    within = {"none": "", "time": f"WITHIN {size} SECONDS", "events": f"WITHIN {size} EVENTS"}[window]
    text = f"SELECT * WHERE A+ ; B ; NOT A {'PARTITION BY [k]' if keyed else ''} {within}"
    expected = by_definition(events, window, size, keyed)
    query = ceql.compile(text)
    assert plain(query.run(events)) == expected, (text, events)
    assert query.run(events).count() == len(expected)
    assert list(query.alerts().run(events)) == sorted({end for _, end, _ in expected})
    alerts = query.alerts().open()
    told = [end for event in events for end in alerts.push(event)]
    assert told + alerts.close() == sorted({end for _, end, _ in expected})
    for most in (1, 4, 200):  # one by one, a few dicts at once, batches
        session, found = query.open(), []
        for part in cut(rng, events, most):
            found += session.push(part if most < 200 else ceql_table(part))
            if rng.random() < 0.3:
                session = query.open(session.snapshot())
        assert plain(found + session.close()) == expected, (text, events, most)
    for evaluator in ("chain", "tree"):
        lazily = ceql.compile(text, settings=Settings(evaluator=evaluator))
        assert plain(lazily.run(events)) == expected


def ceql_table(events: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(events)


def test_many_matches_wait_as_few_roots() -> None:
    """2^60 matches wait behind sixty events; the first C closes the windows of those that start at 0, half of them."""
    events = [{"type": "A", "time": i} for i in range(60)] + [{"type": "B", "time": 60}, {"type": "C", "time": 61}]
    query = ceql.compile("SELECT * WHERE A+ ; B ; NOT A WITHIN 60 SECONDS", settings=Settings(output_bytes=1 << 20))
    first = next(iter(query.run(events)))
    assert (first.start, first.end) == (0, 60)
    assert query.run(events).count(limit=100_000) == 100_000
    assert list(query.alerts().run(events)) == [60]
    session = query.open()
    for event in events[:-1]:
        assert session.push(event) == []
    assert session.counters.memory.total < 20_000_000
    assert len(session.snapshot()) < 50_000
    with pytest.raises(BudgetExceeded, match="output_bytes"):
        session.push(events[-1])


@pytest.mark.parametrize("within", ["WITHIN 20 EVENTS", pytest.param("WITHIN 20 SECONDS", marks=pytest.mark.slow)])
@pytest.mark.parametrize("singly", [True, False])
def test_nodes_behind_every_window_are_dropped(within: str, singly: bool) -> None:
    """Keys that come for ever, each with a match that waits: the structure holds those of one window."""
    query = ceql.compile(f"SELECT * WHERE A ; B ; NOT C PARTITION BY [k] {within}")
    session, held, found = query.open(), [], 0
    for part in range(8):
        times = range(part * 4_000, (part + 1) * 4_000)
        events = [{"type": "AB"[t % 2], "k": t // 2 % 50, "time": t} for t in times]
        found += sum(len(session.push(event)) for event in events) if singly else len(session.push(ceql_table(events)))
        held.append(session._run.evaluator.statistics["arena_bytes"])
    assert found > 12_000
    assert held[-1] == held[2] < 4_000_000
