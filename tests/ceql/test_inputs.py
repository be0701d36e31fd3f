"""Any table is a stream: events without types, types given for whole inputs, and the same answer on every road."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import EventError, OptionError

BARS: list[dict[str, Any]] = [
    {"time": time, "symbol": "AB"[time % 2], "price": price} for time, price in enumerate([9, 8, 7, 6, 8, 5, 9, 4])
]
FALLS = "SELECT * WHERE ANY AS a ; ANY AS b FILTER a.price > b.price WITHIN 4 EVENTS PARTITION BY [symbol]"
NAMED = "SELECT * WHERE bar AS a ; bar AS b FILTER a.price > b.price WITHIN 4 EVENTS PARTITION BY [symbol]"
UNTYPED = "no column type: events are of no type, and ANY takes them"
Positions = list[tuple[int, ...]]
Road = Callable[[ceql.Query, list[dict[str, Any]], dict[str, Any]], Positions]


def _run(read: Callable[[list[dict[str, Any]]], Any]) -> Road:
    return lambda query, events, words: sorted(match.positions for match in query.run(read(events), **words))


def _csv(events: list[dict[str, Any]]) -> str:
    lines = [",".join(events[0]), *(",".join(map(str, event.values())) for event in events)]
    Path("events.csv").write_text("\n".join(lines))
    return "events.csv"


def _json(events: list[dict[str, Any]]) -> str:
    Path("events.jsonl").write_text("\n".join(map(json.dumps, events)))
    return "events.jsonl"


def _parquet(events: list[dict[str, Any]]) -> str:
    pq.write_table(pa.Table.from_pylist(events), "events.parquet")
    return "events.parquet"


def _pandas(events: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(events)


def _polars(events: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(events)


def _pushed(size: int, *, again: bool = False) -> Road:
    """Pushed in pieces; with `again`, each to the session that goes on from a snapshot."""

    def run(query: ceql.Query, events: list[dict[str, Any]], words: dict[str, Any]) -> Positions:
        session, found = query.open(**words), []
        for start in range(0, len(events), size):
            piece = events[start : start + size]
            found += session.push(piece if size > 1 else piece[0])
            if again:
                session = query.open(session.snapshot())
        return sorted(match.positions for match in [*found, *session.close()])

    return run


ROADS: dict[str, Road] = {
    "dicts": _run(lambda events: events),
    "arrow": _run(pa.Table.from_pylist),
    "pandas": _run(_pandas),
    "polars": _run(_polars),
    "csv": _run(_csv),
    "json lines": _run(_json),
    "parquet": _run(_parquet),
    "pushed one by one": _pushed(1),
    "pushed in pieces": _pushed(3),
    "snapshots": _pushed(1, again=True),
    "snapshots of pieces": _pushed(3, again=True),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("valued", [False, True], ids=["positions", "valuations"])
@pytest.mark.parametrize("road", ROADS)
def test_a_table_without_types_and_types_given(road: str, valued: bool) -> None:
    """As the same table with a column of types."""
    more: dict[str, Any] = {"valuations": True} if valued else {}
    typed = [{"type": "bar", **event} for event in BARS]
    expected = sorted(match.positions for match in ceql.compile(NAMED).run(typed, **more))
    assert expected == [(0, 2), (0, 4), (1, 3), (1, 5), (1, 7), (3, 5), (3, 7), (5, 7)]
    assert ROADS[road](ceql.compile(FALLS), BARS, more) == expected
    assert ROADS[road](ceql.compile(NAMED), BARS, {"type": "bar", **more}) == expected
    assert ROADS[road](ceql.compile(FALLS), BARS, {"type": "bar", **more}) == expected


@pytest.mark.parametrize("road", ROADS)
def test_a_column_type_is_an_attribute_if_a_type_is_given(road: str) -> None:
    events = [{"type": kind, "x": x} for x, kind in enumerate("abab")]
    query = ceql.compile("SELECT * WHERE e AS p ; e AS q FILTER p[type = 'a'] AND q[type = 'b']")
    assert ROADS[road](query, events, {"type": "e"}) == [(0, 1), (0, 3), (2, 3)]


def test_alerts_counts_and_steps_of_untyped_events() -> None:
    query = ceql.compile(FALLS)
    ends = sorted({match.end for match in query.run(BARS)})
    assert list(query.alerts().run(BARS)) == ends and query.run(BARS).count() == 8
    with query.alerts().open() as session:
        assert [end for event in BARS for end in session.push(event)] == ends
        assert session.notes == (f'{UNTYPED} (type_column="COLUMN" reads types)',)
    given = list(ceql.compile("SELECT * WHERE bar").run(BARS, type="bar"))
    assert [step.name for step in given[0].steps] == ["bar"]
    with ceql.compile("SELECT * WHERE bar").open(type="bar") as pushed:
        found = [match for event in BARS for match in pushed.push(event)]
    assert [[step.name for step in match.steps] for match in found] == [["bar"]] * len(BARS)
    assert found[0].events == [BARS[0]], "the type that is given is no attribute"


def test_untyped_events_have_a_note() -> None:
    matches = ceql.compile(FALLS).run(BARS)
    matches.count()
    assert matches.notes == (f'{UNTYPED} (type_column="COLUMN" reads types)',)
    like = ceql.compile(FALLS).run([{"event_type": "x", **event} for event in BARS])
    like.count()
    assert like.notes == (f'{UNTYPED} (type_column="event_type" reads types)',)
    given: list[dict[str, Any]] = [{"type": "bar"}, {"type_column": "symbol"}]
    for words in given:
        said = ceql.compile(FALLS).run(BARS, **words)
        said.count()
        assert said.notes == ()


def test_ANY_takes_events_of_which_some_have_a_type() -> None:
    events: list[dict[str, Any]] = [{"x": 1}, {"type": "A", "x": 2}, {"x": 3}]
    query = ceql.compile("SELECT * WHERE ANY AS a ; ANY AS b")
    for road in ("dicts", "json lines", "pushed one by one", "pushed in pieces", "snapshots"):
        assert ROADS[road](query, events, {}) == [(0, 1), (0, 2), (1, 2)], road


@pytest.mark.parametrize(
    ("query", "events", "hint"),
    [
        ("fail ; ok", [{"kind": "ok", "at": "here"}, {"kind": "fail", "at": "here"}],
         'type_column="kind" reads the types of events from that column (ok, fail); type="NAME" gives all events'),
        ("fail ; ok", [{"status": "fail"}, {"status": "ok"}], 'type_column="status" reads the types'),
        ("fail", [{"event_type": "x", "at": "y"}], 'type_column="event_type" reads the types of events from that column'
         ' (x); type="fail" gives all events this type'),
        ("fail", [{"user": "u", "text": "a"}, {"user": "u", "text": "b"}], 'type_column="user" reads'),
        ("fail", [{"user": "u", "text": "a"}], 'type_column="COLUMN" names the column that holds the types of events; '
         'type="fail" gives all events this type'),
        ("fail", [{"at": f"2026-06-{day}"} for day in (15, 15, 16)], 'type_column="COLUMN" names the column'),
        ("fail", [{"x": 1}, {"x": 1}], 'type_column="COLUMN" names the column'),
    ],
)  # fmt: skip
def test_a_query_that_names_types_over_events_without(query: str, events: list[dict[str, Any]], hint: str) -> None:
    compiled = ceql.compile(f"SELECT * WHERE {query}")
    columns = ", ".join(events[0])
    for road in ROADS.keys() - {"pandas", "polars"}:
        with pytest.raises(EventError, match=f"no column 'type'.* there are: {columns}\n") as told:
            ROADS[road](compiled, events, {})
        if "pushed one" not in road and road != "snapshots":
            assert told.value.hint.startswith(hint), road


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"type": "bar", "type_column": "symbol"}, "type and type_column contradict each other"),
        ({"type": "baz"}, "all events are given the type baz, and the query names bar\nhint: baz may stand for bar"),
        ({"type": "x"}, "all events are given the type x, and the query names bar"),
        ({"type": ""}, "type is empty"),
        ({"type": 5}, "type=.5.: not a name"),
    ],
)
def test_types_that_cannot_be_given(words: dict[str, Any], said: str) -> None:
    query = ceql.compile(NAMED)
    for use in (lambda: query.run(BARS, **words), lambda: query.open(**words), lambda: query.alerts().open(**words)):
        with pytest.raises(OptionError, match=f"^{said}"):
            use()


def test_streams_of_one_type() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>bar AS a ; T>bar AS b")
    streams = {"S": [{"time": 1}, {"time": 4}], "T": [{"time": 2, "v": 1}, {"time": 5}]}
    assert sorted(m.positions for m in query.run(streams=streams, type="bar")) == [(0, 1), (0, 3), (2, 3)]
    session = query.open(type="bar")
    found = session.push({"time": 1}, "S") + session.push({"time": 2}, "T")
    assert [m.positions for m in found] == [(0, 1)]
    session = query.open(session.snapshot())
    assert [m.positions for m in session.push({"time": 5}, "T")] == [(0, 2)]


def test_random_untyped_events_on_every_road() -> None:
    """Each road as dicts with a column of types, by which the engine is checked against the definitions elsewhere."""
    rng = random.Random(37)
    texts = ["ANY AS a : ANY AS b : ANY AS c FILTER a.x > b.x AND b.x > c.x",
             "(ANY AS b FILTER b[x > 1]):+ ; ANY AS c FILTER c[x = 0]",
             "ANY AS a ; NOT (ANY AS c FILTER c[x = 1]) ; ANY AS b",
             "(ANY AS b FILTER b.x < PREV(b.x)):+"]  # fmt: skip
    for number in range(12):
        text = f"SELECT {rng.choice(['*', 'STRICT *', 'MAX *'])} WHERE {texts[number % 4]} WITHIN 5 EVENTS"
        if "MAX" in text and "NOT" in text:
            continue
        events = [{"x": rng.randrange(4), "k": rng.choice("ab")} for _ in range(12)]
        plain = ceql.compile(text)
        named = ceql.compile(text.replace("ANY AS", "E AS"))
        expected = sorted(match.positions for match in plain.run([{"type": "E", **event} for event in events]))
        for road in ("dicts", "csv", "parquet", "pushed one by one", "pushed in pieces", "snapshots"):
            assert ROADS[road](plain, events, {}) == expected, (text, road)
            assert ROADS[road](named, events, {"type": "E"}) == expected, (text, road)


def test_the_command_takes_untyped_tables(capsys: pytest.CaptureFixture[str]) -> None:
    _csv(BARS)
    assert main(["run", FALLS, "--events", "events.csv", "--format", "count"]) == 0
    said = capsys.readouterr()
    assert said.out == "8\n" and said.err == f"note: {UNTYPED} (--type-column COLUMN reads types)\n"
    assert main(["run", NAMED, "--events", "events.csv", "--format", "count", "--type", "bar"]) == 0
    assert capsys.readouterr().out == "8\n"
    assert main(["alert", NAMED, "--events", "events.csv", "--format", "csv", "--type", "bar"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(",bar")
    assert main(["run", NAMED, "--events", "events.csv"]) == 3
    assert capsys.readouterr().err.splitlines() == [
        "events.csv: no column 'type', which would say the type of each event; there are: time, symbol, price",
        "hint: --type-column symbol reads the types of events from that column (A, B); --type bar gives all events "
        "this type",
    ]
    assert main(["run", NAMED, "--events", "events.csv", "--type", "bar", "--type-column", "symbol"]) == 2
    assert capsys.readouterr().err.startswith("--type and --type-column contradict each other\n")
