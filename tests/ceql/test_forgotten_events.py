"""Windows of events in partitions: events that no partition's window reaches go; every match has its events."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.results.history import Past
from ceql.runtime import single_events
from spaseq.core.engine import Partitions

QUERIES = [
    "SELECT * WHERE A AS x ; B AS y PARTITION BY [k] WITHIN 2 EVENTS",
    "SELECT x[v, s], y[s] WHERE A AS x ; B+ AS y PARTITION BY [k] WITHIN 3 EVENTS",
    "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v PARTITION BY [k] WITHIN 4 EVENTS",
    "SELECT * WHERE A ; B ; NOT C PARTITION BY [k] WITHIN 2 EVENTS",
    "SELECT NEXT * WHERE A AS x ; B AS y PARTITION BY [k] WITHIN 3 EVENTS",
]


def _events(count: int) -> list[dict[str, Any]]:
    """Two keys are rare, so that their windows reach far back."""
    rng = random.Random(count)
    keys = rng.choices("abcde", (10, 10, 10, 1, 0.3), k=count)
    return [
        {"type": rng.choice("ABC"), "k": key, "v": rng.randrange(5), "s": f"s{number}", "n": number}
        | ({"z": number / 2} if rng.random() < 0.3 else {})
        for number, key in enumerate(keys)
    ]


def _found(matches: Any) -> list[Any]:
    return sorted(
        (m.start, m.end, m.positions, m.times, m.time, sorted(m.bindings.items()), str(m.attributes), str(m.events))
        for m in matches
    )


@pytest.mark.parametrize("text", QUERIES)
def test_every_match_has_its_events(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    query, events = ceql.compile(text), _events(400)
    expected = _found(query.run(events))
    assert expected
    monkeypatch.setattr(Past, "worth", 20)
    monkeypatch.setattr(single_events, "_BLOCK", 8)
    one, rows, rng, held = query.open(), [], random.Random(1), 0
    at = 0
    while at < len(events):
        step = rng.choice((1, 1, 1, 30))
        found = [m for event in events[at : at + step] for m in one.push(event)] if step == 1 else []
        rows += _found(found or (one.push(events[at : at + step]) if step > 1 else []))
        at += step
        held = max(held, sum(map(len, one._run.past.blocks)))
        if rng.random() < 0.05:
            one = query.open(one.snapshot())
    assert sorted(rows + _found(one.close())) == expected
    assert held < 200
    tables = list(query.run(events).tables())
    assert sum(table.to_arrow(False).num_rows for table in tables) == len(expected)


def test_what_is_held_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Past, "worth", 64)
    query = ceql.compile("SELECT x[s] WHERE A AS x ; B AS y PARTITION BY [k] WITHIN 3 EVENTS")
    with query.open() as session:
        sizes = []
        for start in range(0, 4_000, 50):
            session.push(pa.Table.from_pylist(_events(4_000)[start : start + 50]))
            sizes.append(sum(len(batch) for batch in session._run.past.blocks))
        batches: list[Any] = session._run.past.blocks
        texts = sum(len(batch.table["s"].chunk(0).dictionary) for batch in batches)
    assert max(sizes) < 300 and texts < 300


@pytest.mark.parametrize("window", ["", "WITHIN 200 EVENTS"])
def test_a_match_that_a_forgotten_key_made_sure_has_its_events(window: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is forgotten between two pushes; the match is given with the next one."""
    monkeypatch.setattr(Past, "worth", 10)
    monkeypatch.setattr(Partitions, "worth", 1)
    settings = ceql.Settings(forget_keys_after=5)
    query = ceql.compile(f"SELECT * WHERE A ; NOT B PARTITION BY [k] {window}", settings=settings)
    events = [{"type": "A" if n % 10 == 0 else "C", "k": n // 20, "time": n} for n in range(400)]
    session, found = query.open(), []
    for start in range(0, len(events), 40):
        found += session.push(pa.Table.from_pylist(events[start : start + 40]))
        session = query.open(session.snapshot())
    found += session.close()
    assert [m.start for m in found] == list(range(0, 400, 10))
    assert [m.events for m in found] == [[events[m.start]] for m in found]


@pytest.mark.parametrize("window", ["", "WITHIN 50 EVENTS"])
@pytest.mark.parametrize("related", [False, True])
def test_all_events_of_a_match_that_a_forgotten_key_made_sure_are_there(
    window: str, related: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those between its first and its last, too: of matches that wait as roots, and of those that wait one by one."""
    monkeypatch.setattr(Past, "worth", 10)
    monkeypatch.setattr(Partitions, "worth", 1)
    absent = "(B AS b FILTER b.time > d.time)" if related else "B"
    text = f"SELECT * WHERE A AS a ; C+ AS c ; D AS d ; NOT {absent} PARTITION BY [k] {window}"
    query = ceql.compile(text, settings=ceql.Settings(forget_keys_after=5))
    events = [{"type": "ACCDXXXXXX"[n % 10], "k": n // 10, "time": n} for n in range(600)]
    session, found = query.open(), []
    for start in range(0, len(events), 25):
        found += session.push(pa.Table.from_pylist(events[start : start + 25]))
        session = query.open(session.snapshot())
    found += session.close()
    assert len(found) == 3 * 60
    assert [m.events for m in found] == [[events[place] for place in m.positions] for m in found]
