"""Events pushed one by one as dicts: the same bits, matches, errors and states as on columns."""

from __future__ import annotations

import csv
import datetime
import math
import pathlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ceql
from ceql.expressions.codegen import Unfit, _Source, compile_bits
from ceql.expressions.predicates import Satisfies, StreamIs, TypeIs
from ceql.runtime.batch import EngineBatch
from ceql.syntax import ast
from spaseq.core.engine import Settings
from spaseq.core.engine.runs import ending, waiting
from spaseq.core.errors import BudgetExceeded, EventError
from spaseq.core.events import EventOptions, EventStream
from spaseq.core.pattern import NoneOf, Predicate
from tests.ceql.test_expressions import condition, conditions, row
from tests.support.sizes import some


def on_columns(predicates: list[Predicate], event: dict[str, Any]) -> int:
    (batch,) = EventStream({"S": [event]}, EventOptions(from_arrival=True))
    engine = EngineBatch(batch, batch.positions, batch.times, None)
    return sum(int(p.evaluate(engine)[0]) << i for i, p in enumerate(predicates))


def agree(predicates: list[Predicate], event: dict[str, Any]) -> None:
    bits_of = compile_bits(tuple(predicates), "type", "S")
    assert bits_of is not None
    try:
        expected = on_columns(predicates, event)
    except EventError:
        with pytest.raises((Unfit, EventError)):
            bits_of(event)
        return
    assert bits_of(event) == expected
    assert bits_of(dict(event)) == expected  # and with the texts it has learnt


ODD_VALUES = [datetime.datetime(2024, 5, 1, 12), datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC), math.nan, math.inf,
              "", "2024-05-01T12:00:00Z", True, 1, 1.0, 2**53 + 1, -(2**63), None]  # fmt: skip
event = st.builds(lambda e, t: {**e, "type": t}, row, st.sampled_from(["A", "B", None]))


@settings(max_examples=some(200), deadline=None)
@given(st.lists(conditions, min_size=1, max_size=3), event)
@example([condition("i < 9007199254740992.0")], {"type": "A", "i": 2**53 + 1})
@example([condition("i != 1.5"), condition("i = i")], {"type": None, "i": math.nan})
@example([condition("i < 3 AND t = 'a' OR NOT i = 1")], {"type": "A", "i": 1, "t": "a"})
def test_bits_are_those_of_columns(nodes: list[Any], event: dict[str, Any]) -> None:
    alone = [Satisfies(node) for node in nodes]
    parts: list[Predicate] = [TypeIs("A"), TypeIs("B"), StreamIs("S"), StreamIs("T"), *dict.fromkeys(alone)]
    nothing = NoneOf(frozenset({frozenset({TypeIs("A"), alone[0]}), frozenset({TypeIs("C")})}))
    agree([*parts, nothing], event)


@pytest.mark.parametrize("value", ODD_VALUES)
@pytest.mark.parametrize("text", ["v = 1", "v < 1.0", "1 >= v", "v != 'x'", "v = TRUE", "NOT v = 1", "v < 1 OR v > 0",
                                  "v > '2024-05-01T11:00:00Z'", "v LIKE '.*'", "v IN {1, 2}", "v + 1 > 2"])  # fmt: skip
def test_every_kind_of_value(text: str, value: Any) -> None:
    agree([TypeIs("A"), Satisfies(condition(text))], {"type": "A", "v": value})


@pytest.mark.parametrize("value", [2**63, 10**30, np.int64(1), np.float64(1), [1], b"x", datetime.date(2024, 5, 1), 1j])
def test_values_for_the_columnar_road(value: Any) -> None:
    bits_of = compile_bits((TypeIs("A"), Satisfies(condition("v = 1"))), "type", "S")
    assert bits_of is not None
    with pytest.raises(Unfit):
        bits_of({"type": "A", "v": value})
    with pytest.raises(KeyError):
        bits_of({"v": 1})
    with pytest.raises(Unfit):
        bits_of({"type": 3, "v": 1})


HOSTILE = [
    "'",
    "\\",
    "\n",
    "'''",
    "\"] or open('made', 'w') or get[\"",
    "{x!r}",
    "\\x27",
    "\u2028",
    "\ud800",
    "#",
    "v\n    exit()",
]


@pytest.mark.parametrize("odd", HOSTILE)
def test_no_text_of_a_query_gets_into_the_generated_one(odd: str, tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    """Names of attributes and of types, texts, and the type column."""
    monkeypatch.chdir(tmp_path)

    def source(name: str, text: str, number: float) -> tuple[str, Callable[[Any], int]]:
        one, two, value = ast.Attribute(name), ast.Attribute(f"two {name}"), ast.Number(number)
        parts = [ast.Compare("=", one, ast.Text(text)), ast.Compare("<", two, value), ast.Compare("<=", value, two),
                 ast.Compare("!=", one, two)]  # fmt: skip
        made = _Source(name, "S")
        written = made.text((TypeIs(text), TypeIs("A"), *map(Satisfies, parts)))
        return written, made.function(written)

    written, bits_of = source(odd, odd + odd, 12345678.5)
    assert written == source("plain", "text", 2)[0]
    assert bits_of({odd: None, f"two {odd}": 12345678.0}) == 0b001000
    assert list(tmp_path.iterdir()) == []


# Pushed one by one, in batches, and across snapshots

QUERIES = [
    "SELECT * WHERE A AS a ; B AS b",
    "SELECT * WHERE A AS a ; B AS b ; C AS c FILTER a[v > 1] AND b[t = 'x'] WITHIN 6 EVENTS",
    "SELECT * WHERE (A OR B)+ ; C WITHIN 4 SECONDS",
    "SELECT * WHERE A : (B OR C) WITHIN 3 EVENTS",
    "SELECT * WHERE A ; B PARTITION BY [t] WITHIN 2 EVENTS",
    "SELECT * WHERE A ; B ; A PARTITION BY [t, v] WITHIN 3 SECONDS",
    "SELECT * WHERE A+ ; C WITHIN 2.5 [n]",
    "SELECT * WHERE A ; B WITHIN 3 [n]",
    "SELECT NEXT * WHERE A ; B ; C WITHIN 5 SECONDS",
    "SELECT LAST * WHERE A ; B+ PARTITION BY [t]",
    "SELECT MAX * WHERE A ; B+ WITHIN 5 EVENTS",
    "SELECT * WHERE A ; B+ ; C PARTITION BY [t] WITHIN 9 SECONDS CONSUME BY PARTITION",
    "SELECT * WHERE A ; B CONSUME BY ANY",
    "SELECT * WHERE A ; B+ WITHIN 7 EVENTS LIMIT 2",
    "SELECT STRICT * WHERE A ; B ; C",
    "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 5 SECONDS",
    "SELECT * WHERE A AS a ; B AS b FILTER b.t = a.t AND b.v != a.v PARTITION BY [t] WITHIN 4 EVENTS",
    "SELECT * WHERE A ; NOT B ; C WITHIN 6 SECONDS",
    "SELECT * WHERE A ; NOT C WITHIN 2 SECONDS",
    "SELECT * WHERE A ; (B OR C) ; NOT (A OR D) PARTITION BY [t] WITHIN 3 EVENTS",
    "SELECT * WHERE A AS a ; NOT (C AS c FILTER c.v != a.v) WITHIN 3 SECONDS",
    "SELECT * WHERE A AS a ; B+ ; NOT (C AS c FILTER c.t = a.t OR c[v > 1]) PARTITION BY [t] WITHIN 4 [n]",
    "SELECT * WHERE AND(A, B) ; C WITHIN 5 EVENTS",
]
OPTIONS: list[dict[str, Any]] = [{}, {"time_from": "arrival", "interval": "700ms"}, {"lateness": "2s"}]


def rows_of(matches: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (m.end, m.start, m.positions, m.times, str([sorted(e.items()) for e in m.events]), str(m.bindings))
        for m in matches
    )


_AS_TIME: list[Callable[[int], Any]] = [int, float, lambda t: t / 2, lambda t: f"1970-01-01T00:00:{t // 2:02d}Z"]
_AS_NUMBER: list[Callable[[int], Any]] = [int, float, lambda t: t + 0.25]


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Events in order of time, whose times are ints, floats or texts, all of one stream of one kind."""
    count = draw(st.integers(0, 24))
    steps = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    as_time = draw(st.sampled_from(_AS_TIME))
    number = draw(st.sampled_from(_AS_NUMBER))
    times = np.cumsum(steps).tolist()
    body = st.fixed_dictionaries(
        {"type": st.sampled_from(["A", "B", "C", "D", None])},
        optional={"v": st.none() | st.integers(0, 3), "t": st.none() | st.sampled_from(["x", "y"]), "w": st.floats()},
    )
    return [{**draw(body), "time": as_time(t), "n": number(t)} for t in times]


def pushed(query: Any, events: list[dict[str, Any]], cuts: list[int], kept: list[bool], options: dict[str, Any]) -> Any:
    """The matches of the events pushed in parts of these sizes, 0 being a dict; a snapshot before each part `kept`."""
    stream, found, at = query.open(**options), [], 0
    for size, keep in zip(cuts, kept, strict=True):
        if keep:
            stream = query.open(stream.snapshot())
        part: Any = events[at : at + size] if size else (events[at] if at < len(events) else [])
        found += stream.push(part)
        at += max(size, 1)
    found += stream.push(events[at:])
    assert stream.counters.events + sum(stream.counters.dropped.values()) <= len(events)
    return found + stream.close(), stream.counters


cut_at = st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 1, 3]), st.sampled_from([False] * 9 + [True])), max_size=30)


def check_cut(text: str, events: Any, cuts: list[tuple[int, bool]], options: Any) -> None:
    query = ceql.compile(text)
    whole = query.open(**options)
    expected = whole.push(events) if events else []
    found, summary = pushed(query, events, [c for c, _ in cuts], [k for _, k in cuts], options)
    assert rows_of(found) == rows_of(expected + whole.close())
    assert summary == whole.counters


@settings(max_examples=some(150), deadline=None)
@given(st.sampled_from(QUERIES), streams(), cut_at, st.sampled_from(OPTIONS))
def test_any_cut_gives_the_same(text: str, events: Any, cuts: list[tuple[int, bool]], options: Any) -> None:
    check_cut(text, events, cuts, options)


@pytest.mark.random
@settings(max_examples=some(5000), deadline=None)
@given(st.sampled_from(QUERIES), streams(), cut_at, st.sampled_from(OPTIONS))
def test_any_cut_gives_the_same_at_length(text: str, events: Any, cuts: list[tuple[int, bool]], options: Any) -> None:
    check_cut(text, events, cuts, options)


def test_what_is_pushed_may_change_afterwards() -> None:
    with ceql.compile("SELECT * WHERE A ; A").open() as stream:
        event: dict[str, Any] = {"type": "A", "v": 0}
        for v in range(3):
            event["v"] = v
            found = stream.push(event)
        assert sorted([e["v"] for e in m.events] for m in found) == [[0, 2], [1, 2]]


@pytest.mark.parametrize(
    "event",
    [
        {"v": 1, "time": 9, "n": 8},
        {"type": "A", "v": "x", "time": 9, "n": 8},
        {"type": "A", "v": [1], "time": 9, "n": 8},
        {"type": "A", "v": 1, "time": 3, "n": 8},
        {"type": "A", "v": 1, "time": "noon", "n": 8},
        {"type": "A", "v": 1, "n": 8},
        {"type": "A", "v": 1, "time": None, "n": 8},
        {"type": "A", "v": 1, "time": 10**30, "n": 8},
        {"type": "A", "v": 1, "time": True, "n": 8},
        {"type": "A", "time": 9, "n": 4},
        {"type": "A", "time": 9},
        {"type": "A", "time": 9, "n": float("inf")},
        {"type": "A", "v": 1, "time": "NaN", "n": 8},
        {"type": "A", "v": 1, "time": float("nan"), "n": 8},
        {"type": "A", "v": 1, "time": float("inf"), "n": 8},
    ],
    ids=str,
)
def test_errors_are_those_of_columns(event: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    query = ceql.compile("SELECT * WHERE A AS a ; B FILTER a[v > 1] WITHIN 4 [n]")
    told = []
    for _ in range(2):
        with query.open() as stream:
            for t in (5, 6, 7):
                stream.push({"type": "A", "v": 2, "time": t, "n": t})
            with pytest.raises(EventError) as error:
                stream.push(event)
            told.append(str(error.value))
            assert len(stream.push({"type": "B", "time": 9, "n": 9})) == 3  # nothing of it was taken
        monkeypatch.setattr("ceql.runtime.session.Singles.of", lambda *_: None)
    assert told[0] == told[1]


def test_a_window_over_whole_numbers_goes_on_over_decimals() -> None:
    """As in a batch, whose column has one type from the start."""
    events = [{"type": "A", "n": n} for n in (1, 2, 2.5, 3, 5, 5.25, 6)]
    for size in ("2", "0.5", "0.25", "2.75"):
        query = ceql.compile(f"SELECT * WHERE A ; A WITHIN {size} [n]")
        with query.open() as stream:
            found = [(m.start, m.end) for event in events for m in stream.push(event)]
        assert sorted(found) == sorted((m.start, m.end) for m in query.run(events))


def test_single_events_take_their_own_road() -> None:
    with ceql.compile("SELECT * WHERE A ; B WITHIN 5 EVENTS").open() as stream:
        stream.push({"type": "A"})
        for _ in range(3000):
            stream.push({"type": "A"})
        assert stream._singles is not None and stream._singles._entered
        assert len(stream._run.past.blocks) <= 4  # blocks that the window has left are forgotten
        assert len(stream.push({"type": "B"})) == 5


@pytest.mark.parametrize("related", ["", " FILTER b.k = a.k"])
def test_a_not_at_the_end_takes_the_road_of_single_events(related: str) -> None:
    query = ceql.compile(f"SELECT * WHERE A AS a ; NOT (B AS b{related}) WITHIN 5 EVENTS")
    with query.open() as stream:
        stream.push({"type": "A", "k": -1})
        found = [m for k in range(3000) for m in stream.push({"type": "A", "k": k})]
        assert stream._singles is not None and stream._singles._entered
        assert [m.start for m in found] == list(range(2995))
        assert len(stream._run.past.blocks) <= 4  # blocks that the window has left are forgotten
        assert [m.start for m in stream.push({"type": "B", "k": 2999})] == [2995]
        assert [m.start for m in stream.close()] == ([2996, 2997, 2998, 2999] if related else [])


@pytest.mark.parametrize("single", [False, True])
def test_of_many_that_wait_only_those_called_off_are_looked_at(single: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the steps in Python nor the matches that are found off grow with what waits and stays."""
    looked: list[int] = []
    name, call_off = ending._name, waiting.WaitingOnes.call_off

    def counted(matches: Any, row: int, behind: int = 0) -> Any:
        looked.append(row)
        return name(matches, row, behind)

    def each_counted(ones: Any, found: Any) -> None:
        looked.extend(found.start.tolist())
        call_off(ones, found)

    if not single:
        monkeypatch.setattr("ceql.runtime.session.Singles.of", lambda *_: None)
    monkeypatch.setattr(ending, "_name", counted)
    monkeypatch.setattr(waiting.WaitingOnes, "call_off", each_counted)
    query = ceql.compile("SELECT * WHERE A AS a ; NOT (B AS b FILTER b.v > a.v)")
    alarms = [{"type": "A", "v": k} for k in range(300)]
    with query.open() as stream:
        stream.push(alarms)
        for k in [1, 5, 5, 5, 9]:
            stream.push({"type": "B", "v": k} if single else [{"type": "B", "v": k}] * 2)
        left = [m.start for m in stream.close()]
    assert left == list(range(9, 300)) and len(looked) == (9 if single else 18)


@pytest.mark.parametrize("text", QUERIES)
def test_counting_reads_only_what_the_query_does(text: str, tmp_path: pathlib.Path) -> None:
    types = ["ABCDACB"[k * 5 % 7] for k in range(22)]
    events = [{"type": t, "v": k % 3, "t": "xy"[k % 2], "time": k // 5, "n": k // 2} for k, t in enumerate(types)]
    with (tmp_path / "e.csv").open("w") as file:
        out = csv.DictWriter(file, events[0])
        out.writeheader()
        out.writerows(events)
    matches = ceql.compile(text).run(str(tmp_path / "e.csv"))
    assert matches.count() == len(list(matches))


def test_budgets_hold_for_single_events() -> None:
    query = ceql.compile("SELECT * WHERE A ; B PARTITION BY [t]", settings=Settings(partitions=3))
    with query.open() as stream:
        for k in range(3):
            stream.push({"type": "A", "t": k})
            stream.push({"type": "C", "t": -1 - k})  # moves nothing, so its partition is nobody's business
        with pytest.raises(BudgetExceeded, match="partitions is 3 keys and 4 are needed"):
            stream.push({"type": "A", "t": 3})


@pytest.mark.parametrize("budget", [0, 900, 1500])
def test_single_events_where_determinisation_explodes(budget: int, caplog: pytest.LogCaptureFixture) -> None:
    text = "SELECT * WHERE (A OR B)+ ; A ; (A OR B) ; (A OR B) WITHIN 6 EVENTS"
    events = [{"type": "ABABBAABBBAACAB"[k * 7 % 15]} for k in range(40)]
    expected = ceql.compile(text).open().push(events)
    stream, found = ceql.compile(text, settings=Settings(automaton_bytes=budget)).open(), []
    for event in events:
        found += stream.push(event)
    assert rows_of(found) == rows_of(expected) and stream._run.statistics["fell_back"] == 1
    assert [r.getMessage().count("automaton_bytes") for r in caplog.records] == [1]


def test_what_nobody_reads_is_not_checked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spaseq.core.events.blocks._BLOCK", 64)
    lines = ["type,v,w", *(f"{'AB'[k % 2]},{k},{k}" for k in range(30))]
    (tmp_path / "odd.csv").write_text("\n".join([*lines, "B,30,odd"]))
    (tmp_path / "short.csv").write_text("\n".join([*lines, "B,30"]))
    query = ceql.compile("SELECT * WHERE A AS a ; B AS b FILTER a[v = 28]")
    matches = query.run(str(tmp_path / "odd.csv"))
    assert matches.count() == 2
    with pytest.raises(EventError, match="attribute w is 'odd' here"):
        list(matches)
    with pytest.raises(EventError, match="this record has 2 fields"):
        query.run(str(tmp_path / "short.csv")).count()
    with query.open() as stream:
        assert stream.push({"type": "A", "v": 28, "w": 1}) == [] and len(stream.push({"type": "B", "w": {}})) == 1


@pytest.mark.parametrize(
    "push", [lambda stream, event: stream.push(event), lambda stream, event: stream.push([event] * 2)]
)
@pytest.mark.parametrize("evaluator", ["compact", "chain", "auto"])
@pytest.mark.parametrize("condition", ["", "FILTER x.k <= y.k"])
def test_what_a_push_returns_has_a_budget(push: Callable[[Any, Any], Any], evaluator: str, condition: str) -> None:
    query = ceql.compile(f"SELECT * WHERE A AS x ; A AS y {condition} WITHIN 9 EVENTS",
                         settings=Settings(output_bytes=150, evaluator=evaluator))  # fmt: skip
    with query.open() as stream, pytest.raises(BudgetExceeded, match="output_bytes is 150 bytes"):
        for k in range(9):
            assert len(push(stream, {"type": "A", "k": k})) < 9


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * WHERE A AS a ; B AS b FILTER b[v > 2] PARTITION BY [k] WITHIN 6 SECONDS",
        "SELECT * WHERE A ; B ; A WITHIN 5 EVENTS",
        "SELECT * WHERE A AS a ; B AS b FILTER a.v < b.v",
    ],
)
def test_a_few_at_once_are_what_they_are_one_by_one(text: str) -> None:
    rng = random.Random(text)
    events = [{"type": rng.choice("ABC"), "time": i, "k": i % 3 % 2, "v": rng.randrange(5)} for i in range(200)]
    query = ceql.compile(text)
    expected = [(m.start, m.end, m.positions, m.times) for m in query.run(events, time="time")]
    few, at = [], 0
    session = query.open(time="time")
    while at < len(events):
        size = rng.choice((1, 2, 10, 40))
        few += [(m.start, m.end, m.positions, m.times) for m in session.push(events[at : at + size])]
        at += size
    assert sorted(few) == sorted(expected) and session.counters.events == 200


@pytest.mark.parametrize(
    "wrong", [{"type": "A", "time": 9, "v": "x"}, {"type": "A", "time": 1, "v": 1}, {"type": "B", "time": "soon"}]
)
def test_an_event_that_is_refused_takes_those_pushed_with_it_along(wrong: dict[str, Any]) -> None:
    """As in a batch: nothing of a push that is refused has happened."""
    query = ceql.compile("SELECT * WHERE A AS a ; B AS b FILTER a[v > 0] AND b[v > 0]")
    session = query.open(time="time")
    session.push([{"type": "A", "time": 5, "v": 1}, {"type": "C", "time": 6, "v": 1}])
    with pytest.raises(EventError):
        session.push([{"type": "A", "time": 7, "v": 1}, {"type": "B", "time": 8, "v": 1}, wrong])
    assert [
        m.positions for m in session.push([{"type": "B", "time": 9, "v": 1}, {"type": "C", "time": 9, "v": 1}])
    ] == [(0, 2)]
    assert session.counters.events == 4


GUARDED = "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v WITHIN 6 EVENTS"


def test_a_few_guarded_events_at_once_go_one_by_one() -> None:
    """A batch has a cost of its own; many that move runs are cheaper as columns, many that do not are not."""
    with ceql.compile(GUARDED).open() as stream:
        stream.push([{"type": "A", "v": 1}] * 2)
        for kinds, single in (("A" * 10, True), ("C" * 100, True), ("A" * 40, False)):
            stream.push([{"type": kind, "v": 1} for kind in kinds])
            assert stream._singles is not None and stream._singles._entered == single


@pytest.mark.parametrize("columns", [False, True])
def test_an_event_that_a_condition_refuses_has_not_been(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushed alone, it has no place in the stream; pushed with others, it ends the session."""
    if columns:
        monkeypatch.setattr("ceql.runtime.session.Singles.of", lambda *_: None)
    wrong = {"type": "B", "v": "x"}
    with ceql.compile(GUARDED).open() as stream:
        stream.push([{"type": "A", "v": 1}, {"type": "A", "v": 2}])
        for _ in range(2):
            with pytest.raises(EventError, match=r"event 3: b\.v > a\.v"):
                stream.push(wrong)
            assert stream.counters.events == 2
        assert [m.positions for m in stream.push({"type": "B", "v": 5})] == [(0, 2), (1, 2)]
        with pytest.raises(EventError, match=r"event 5: b\.v > a\.v"):
            stream.push([{"type": "B", "v": 7}, wrong, {"type": "B", "v": 9}])
        assert stream.counters.events == 3
        with pytest.raises(ceql.OptionError, match="stopped in the middle of its work"):
            stream.push({"type": "B", "v": 7})
