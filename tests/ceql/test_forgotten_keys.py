"""Keys whose window has passed give their numbers to others; no match is gained or lost by that, on any road."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import ceql
from ceql.runtime import batch, single_events
from spaseq.core.engine import Partitions, Window
from spaseq.core.errors import EventError, OptionError
from tests.support.harness import Case
from tests.support.roads import ROADS, Ride

QUERIES = [
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE A ; B+ ; A PARTITION BY [k] WITHIN 2 SECONDS",
    "SELECT * WHERE A : B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT STRICT * WHERE A ; B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT NEXT * WHERE A ; B ; C PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT LAST * WHERE A ; B ; C PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT MAX * WHERE A+ ; B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 3 SECONDS CONSUME BY PARTITION",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 3 SECONDS CONSUME BY ANY",
    "SELECT * WHERE A ; NOT C ; B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE A ; NOT B PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.v < y.v PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE (A AS x ; B AS y+ ; C AS z) FILTER x.v < y.v AND z.v = x.v PARTITION BY [k] WITHIN 3 SECONDS",
    "SELECT * WHERE (A AS x ; B AS y) FILTER x.k = y.k WITHIN 3 SECONDS",
    "SELECT * WHERE A ; B ; C PARTITION BY [k], [l] WITHIN 4 SECONDS",
    "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 30 [n]",
]
ROADS_HERE = [road for road in ROADS if road.language == "ceql" and not road.spark]


def _events(seed: int, count: int = 300) -> list[dict[str, Any]]:
    """Each key is used for some seconds, and some come again later; an event comes each tenth of a second."""
    rng = random.Random(seed)
    events = []
    for number in range(count):
        key = number // 40 * 3 + rng.randrange(5) if rng.random() < 0.9 else rng.randrange(8)
        event = {"type": rng.choice("ABC"), "time": round(number * 0.1, 1), "n": number}
        event |= {"l": rng.randrange(2), "v": rng.randrange(4)}
        events.append(event | {"k": key} if rng.random() < 0.95 else event)
    return events


@pytest.mark.parametrize(
    "text", [pytest.param(each, marks=[] if i % 2 == 0 else [pytest.mark.slow]) for i, each in enumerate(QUERIES)]
)
def test_every_road_finds_what_is_found_without_forgetting(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = _events(len(text))
    monkeypatch.setattr(Partitions, "worth", 1 << 40)
    query = ceql.compile(text)
    expected = sorted((m.start, m.end, tuple(m.positions)) for m in query.run(events, time="time"))
    assert expected
    held = _most_keys(query, events)
    monkeypatch.setattr(Partitions, "worth", 0)
    monkeypatch.setattr(single_events, "_BLOCK", 8)
    monkeypatch.setattr(batch, "_ROWS", 16)
    assert _most_keys(query, events) < held
    case = Case("forgotten keys", text, events=events)
    walked = 0
    for road in ROADS_HERE:
        if not road.leaves(case):
            found = road.take(case, Ride(random.Random(1), tmp_path, anew=False))
            ends = sorted({end for _, end, _ in expected})
            assert sorted(found) == (ends if road.ends else expected), road.name
            walked += 1
    assert walked >= 7


def _most_keys(query: ceql.Query, events: list[dict[str, Any]]) -> int:
    """The most partitions at a time: numbers are as small as can be, and there is a budget for them."""
    few, many = 1, 1 << 10
    while few < many:
        middle = (few + many) // 2
        session = ceql.compile(query.text, settings=ceql.Settings(partitions=middle)).open()
        try:
            for event in events:
                session.push([event])
            many = middle
        except ceql.BudgetExceeded:
            few = middle + 1
    return few


def test_windows_in_events_and_none_forget_nothing() -> None:
    for window in (Window("none"), Window("events", 5)):
        numbers = Partitions(window)
        for key in range(5_000):
            assert numbers.number(key) == key
            numbers.reach(key * 10**9, key * 10**9)
        assert len(numbers) == 5_000


def test_a_key_keeps_its_number_while_the_window_reaches_it() -> None:
    numbers = Partitions(Window("span", 100))
    held = {}
    for place in range(0, 1_000_000, 10):
        numbers.reach(place, place)
        held[numbers.number("always")] = True
        numbers.number(place)
    assert list(held) == [0]
    assert len(numbers) < 5_000


@pytest.mark.parametrize("wrong", [
    ([1, 2], [0, 0], [True, True], None, 0), ([1], [-1], [True], None, 0), ([1], ["0"], [True], None, 0),
    ([1], [0], [True], "x", 0), ([1], [0], [True], None, -1), ([1], [0], [], None, 0), ([1], [100], [True], None, 0),
])  # fmt: skip
def test_numbers_of_a_snapshot_are_checked(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(OptionError):
        Partitions(Window("span", 1)).restore((*wrong, None), 100)


def test_numbers_that_a_snapshot_does_not_use_are_given_away() -> None:
    numbers = Partitions(Window("span", 1))
    numbers.restore((["a", "b"], [3, 1], [True, False], 7, 0, None), 100)
    assert [numbers.number(key) for key in "abcdef"] == [3, 1, 0, 2, 4, 5]


def test_a_list_is_no_key_on_either_road() -> None:
    query = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 3 SECONDS")
    events = [{"type": "A", "time": 1, "k": 1}, {"type": "A", "time": 2, "k": [1, 2]}]
    session = query.open()
    session.push(events[0])
    for push in (lambda: session.push(events[1]), lambda: query.open().push(events[1:])):
        with pytest.raises(EventError, match="attribute k is a list"):
            push()
