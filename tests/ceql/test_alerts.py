"""Alerts are the engine's: at which events matches end, for every query, in one batch, in any cut, and pushed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ceql
from spaseq.core.automata import rma
from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, UnsupportedFeature


def ends(query: str, events: Any, **options: Any) -> list[int]:
    """Where the matches end that the query reports."""
    return sorted({match.end for match in ceql.compile(query).run(events, **options)})


def events_of(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Events of (type, v, w)."""
    return [dict(zip(("type", "v", "w"), row, strict=False)) for row in rows]


W3 = events_of(("A", 0, 4), ("A", 0, 0), ("A", 3, 2), ("B", 3, 2))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * WHERE A AS x FILTER A.w <= x.v", [1, 2]),
        ("SELECT * WHERE (A AS x) AS y FILTER x.w <= y.v", [1, 2]),
        ("SELECT * WHERE A AS x ; B AS y FILTER B.w <= y.v", [3]),
        ("SELECT A WHERE A AS x ; A AS y FILTER y.v >= x.v", [1, 2]),
    ],
)
def test_conditions_that_relate_two_names_of_one_event(query: str, expected: list[int]) -> None:
    asked = ceql.compile(query).alerts()
    assert list(asked.run(W3)) == ends(query, W3) == expected
    # and the register match automaton, which forecasts go by
    run = rma.SingleRun(ceql.compile(f"{query} WITHIN 4 EVENTS").alerts().deterministic())
    (rows,) = asked.rows(W3)
    assert np.flatnonzero(run.push(rows).accepted).tolist() == expected
    assert np.flatnonzero(rma.Recogniser(asked.automaton).push(rows)).tolist() == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * WHERE A ; NOT B ; C",
        "SELECT * WHERE AND(A, B)",
        "SELECT x WHERE A AS x ; B",
        "SELECT STRICT * WHERE A ; B",
        "SELECT NEXT * WHERE A ; B WITHIN 3 EVENTS",
        "SELECT LAST * WHERE A ; B",
        "SELECT MAX * WHERE A ; B+ WITHIN 4 EVENTS",
        "SELECT * WHERE A ; B CONSUME BY ANY",
        "SELECT * WHERE A ; B PARTITION BY [w] CONSUME BY PARTITION",
        "SELECT * WHERE A ; B WITHIN 6 EVENTS LIMIT 1",
        "SELECT * WHERE A AS x ; (B AS y)+ FILTER x.v < y.v",
        "SELECT * WHERE (A AS x OR B AS y) ; C AS z FILTER x.v < z.v",
        "SELECT * WHERE (A+) AS x FILTER COUNT(x) > 2 WITHIN 5 EVENTS",
        "SELECT x[v] WHERE A AS x ; B",
        "SELECT NONE WHERE A ; B",
    ],
)
def test_queries_that_no_register_match_automaton_takes(query: str) -> None:
    rng = random.Random(1)
    stream = events_of(*((rng.choice("ABC"), rng.randrange(4), rng.randrange(2)) for _ in range(40)))
    expected = ends(query, stream)
    asked = ceql.compile(query).alerts()
    assert expected and list(asked.run(stream)) == expected
    assert asked.ask(stream) and asked.count(stream) == len(expected)


def test_not_at_the_end_is_answered_as_windows_close() -> None:
    query = "SELECT * WHERE A AS x ; NOT B FILTER x.v < 3 WITHIN 2 EVENTS"
    stream = events_of(*((kind, i % 4) for i, kind in enumerate("ACCAABCACCCBACA")))
    expected = ends(query, stream)
    asked = ceql.compile(query).alerts()
    assert expected == [0, 12, 14]
    assert list(asked.run(stream)) == expected
    # In batches: each event once, in order, with its answer; the last ones wait for the end.
    parts = [stream[i : i + 2] for i in range(0, len(stream), 2)]
    answers = [(batch.positions.tolist(), found.tolist()) for batch, found in asked.answers(parts)]
    seen = [pair for some in answers for pair in zip(*some, strict=True)]
    assert seen == [(p, p in expected) for p in range(len(stream))]
    with asked.open() as pushed:
        found = [pushed.push(event) for event in stream]
        assert sorted([p for some in found for p in some] + pushed.close()) == expected
    assert found[2] == [] and found[3] == [0], "no B came within two events of event 0"


def test_an_end_whose_matches_close_at_different_times_is_one_answer() -> None:
    """Found by random queries: [0, 1] closes before [1, 1] does."""
    query = ceql.compile("SELECT * WHERE A :+ ; NOT B WITHIN 2.5 SECONDS")
    stream = [{"type": kind, "time": time} for kind, time in (("A", 4.0), ("A", 6.0), ("C", 7.0))]
    with query.alerts().open() as pushed:
        assert [p for event in stream for p in pushed.push(event)] + pushed.close() == [0, 1]
    assert list(query.alerts().run(stream)) == [0, 1]


def test_a_window_forgets_and_the_latest_start_counts() -> None:
    """A run that began earlier leaves the window first; the one that began later is still there."""
    query = "SELECT * WHERE A ; B ; C WITHIN 3 EVENTS"
    for word, expected in (("ABXC", [3]), ("ABXXC", []), ("AABXC", [4]), ("ABABC", [4]), ("ABXBXC", [])):
        assert list(ceql.compile(query).alerts().run(events_of(*((kind,) for kind in word)))) == expected, word


def test_consumption_forgets_what_began_before_an_end() -> None:
    stream = events_of(("A", 0, 0), ("A", 0, 1), ("B", 0, 0), ("B", 0, 1), ("A", 0, 1), ("B", 0, 1))
    for policy, expected in (("NONE", [2, 3, 5]), ("ANY", [2, 5]), ("PARTITION", [2, 3, 5])):
        query = f"SELECT * WHERE A ; B PARTITION BY [w] CONSUME BY {policy}"
        assert list(ceql.compile(query).alerts().run(stream)) == ends(query, stream) == expected


def test_alerts_of_several_streams_and_single_events() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A AS x ; T>B AS y FILTER x.v < y.v")
    streams = {"S": events_of(("A", 1), ("A", 5)), "T": events_of(("B", 0), ("B", 3))}
    for name, times in (("S", (0, 3)), ("T", (1, 2))):
        streams[name] = [event | {"time": t} for event, t in zip(streams[name], times, strict=True)]
    assert list(query.alerts().run(streams=streams)) == [2]
    plain = ceql.compile("SELECT * WHERE A ; B WITHIN 2 EVENTS")
    with plain.alerts().open() as pushed:
        assert [pushed.push(event) for event in W3] == [[], [], [], [3]]
        assert pushed.counters.events == 4


def test_deterministic_states_beyond_their_budget() -> None:
    """The engine goes on set by set, and so do alerts."""
    query = "SELECT * WHERE (A OR B) ; A ; (A OR B) ; (A OR B) ; (A OR B) ; C"
    rng = random.Random(2)
    stream = events_of(*((rng.choice("AABBC"),) for _ in range(30)))
    tight = ceql.compile(query, settings=Settings(automaton_bytes=1))
    assert list(tight.alerts().run(stream)) == ends(query, stream)


def test_configurations_beyond_their_budget() -> None:
    query = "SELECT * WHERE A AS x ; B AS y FILTER x.v < y.v"
    stream = events_of(*(("A", i) for i in range(100)))
    with pytest.raises(BudgetExceeded, match="live_runs is 20"):
        ceql.compile(query, settings=Settings(live_runs=20)).alerts().count(stream)
    within = ceql.compile(query + " WITHIN 5 EVENTS", settings=Settings(live_runs=20))
    assert within.alerts().count([*stream, *events_of(("B", 97))]) == 1


def test_what_has_no_automaton_has_alerts_and_no_forecast() -> None:
    asked = ceql.compile("SELECT STRICT * WHERE A ; B").alerts()
    assert asked.count(W3) == 1
    with pytest.raises(UnsupportedFeature, match="SELECT STRICT"):
        asked.deterministic()


SAVED = [
    "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 4 EVENTS",
    "SELECT NEXT * WHERE A AS a ; A+ AS b ; C PARTITION BY [k] WITHIN 6 SECONDS",
    "SELECT * WHERE A AS a ; NOT B WITHIN 3 SECONDS",
    "SELECT * WHERE A AS a ; NOT (B AS b FILTER b.v = a.v) WITHIN 3 SECONDS",
    "SELECT * WHERE A AS a ; NOT B FOR 2 SECONDS PARTITION BY [k]",
    "SELECT * WHERE A+ AS a ; B AS b FILTER AVG(a.v) > b.v WITHIN 5 EVENTS",
    "SELECT * WHERE A AS a ; B AS b PARTITION BY [k] WITHIN 3 EVENTS CONSUME BY ANY",
    "SELECT * WHERE A+ AS a ; C FILTER COUNT(a) > 1 WITHIN 7 SECONDS AFTER MATCH SKIP TO NEXT ROW",
    "SELECT * WHERE A AS a ; B AS b FILTER a.v = b.v AND a.k != b.k WITHIN 6 SECONDS",
    "SELECT * WHERE A ; C",
]
RULES: list[dict[str, Any]] = [{}, {"at_least": 2, "timeframe": "4s", "realert": "1s"}]


@pytest.mark.parametrize("rule", RULES, ids=["all", "threshold"])
@pytest.mark.parametrize("text", SAVED)
def test_alerts_go_on_from_snapshots(text: str, rule: dict[str, Any]) -> None:
    rng = random.Random(text)
    alerts = ceql.compile(text).alerts(**rule)
    for _ in range(4):
        time, events = 0, list[dict[str, Any]]()
        for _ in range(rng.randint(5, 40)):
            time += rng.choice((0, 0, 1, 1, 2))
            event = {"type": rng.choice("AABBC"), "v": rng.randint(0, 4), "k": rng.choice("ab"), "time": time}
            events.append(event)
        expected, left = list(alerts.run(events)), list(events)
        stream, found = alerts.open(), list[int]()
        while left:
            size = rng.randint(1, 4)
            found += stream.push(left[0] if size == 1 else left[:size])
            left = left[size:]
            if rng.random() < 0.4:
                stream = ceql.compile(text).alerts(**rule).open(stream.snapshot())
            if rng.random() < 0.2 and left:
                found += stream.advance(left[0]["time"] * 10**9)
        with stream:
            pass
        assert found + stream.rest == expected and stream.counters.events == len(events)


def test_a_snapshot_of_other_alerts_is_refused() -> None:
    query = ceql.compile("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 5 SECONDS")
    stream = query.alerts(at_least=2, timeframe="4s").open()
    events = [{"type": kind, "k": 1, "time": time} for time, kind in enumerate("ABBA")]
    assert stream.push(events) == [2]
    blob = stream.snapshot()
    with query.alerts(at_least=2, timeframe="4s").open(blob) as same:
        assert same.notes[-1].startswith("1 alert not reported")
        same.snapshot()
    assert same.rest == []  # a snapshot was the last call: the stream goes on there
    for other in (query.alerts(), query.alerts(at_least=3, timeframe="4s"), query):
        with pytest.raises(ceql.OptionError, match="snapshot"):
            other.open(blob)
    with pytest.raises(ceql.OptionError, match="snapshot"):
        query.alerts(at_least=2, timeframe="4s").open(query.open().snapshot())
    with pytest.raises(ceql.OptionError, match="damaged"):
        query.alerts(at_least=2, timeframe="4s").open(blob[:-9] + b"x" + blob[-8:])
    stream.close()
    with pytest.raises(ceql.OptionError, match=r"this stream is closed\nhint: alerts\(\).open\(\) begins a new one"):
        stream.push(events)
