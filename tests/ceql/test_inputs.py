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
from tests.support.sizes import some

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


def _push_road(size: int, *, again: bool = False) -> Road:
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
    "pushed one by one": _push_road(1),
    "pushed in pieces": _push_road(3),
    "snapshots": _push_road(1, again=True),
    "snapshots of pieces": _push_road(3, again=True),
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
        ({"type": "\ud800"}, "type '.*ud800': no Unicode text"),
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
    for number in range(some(12)):
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


# -- inputs of one type each


FAILS: list[dict[str, Any]] = [
    {"time": 1, "user": "a", "why": "pin"},
    {"time": 3, "user": "b"},
    {"time": 5, "user": "a"},
]
LOGINS: list[dict[str, Any]] = [{"time": 1, "user": "a", "host": 7}, {"time": 5, "user": "b"}, {"time": 6, "user": "a"}]
THEN = "SELECT * WHERE fail AS f ; login AS l FILTER f[why = 'pin'] OR l.user = f.user WITHIN 10 SECONDS"


def _merged() -> list[dict[str, Any]]:
    """Both with a column of types, in order of time, the failures first: by the definition."""
    events = [{"type": "fail", **event} for event in FAILS] + [{"type": "login", **event} for event in LOGINS]
    return sorted(events, key=lambda event: event["time"])  # stable


TYPED: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "dicts": lambda events: events,
    "arrow": pa.Table.from_pylist,
    "csv": lambda events: _csv([{"time": 0, "user": "", "why": "", "host": ""} | event for event in events]),
    "json lines": _json,
    "parquet": _parquet,
}


@pytest.mark.parametrize("first", TYPED)
@pytest.mark.parametrize("second", TYPED)
def test_inputs_of_one_type_each(first: str, second: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Merged by time, equal times in the order given; columns that one lacks are NULL."""
    query = ceql.compile(THEN)
    expected = sorted(match.positions for match in query.run(_merged()))
    assert expected == [(0, 1), (0, 4), (0, 5), (2, 4), (3, 5)]
    (tmp_path / "two").mkdir()
    one = TYPED[first](FAILS)
    one = str(tmp_path / one) if isinstance(one, str) else one
    monkeypatch.chdir(tmp_path / "two")
    types = {"fail": one, "login": TYPED[second](LOGINS)}
    found = query.run(types=types)
    assert sorted(match.positions for match in found) == expected and found.count() == len(expected)
    assert sorted(query.alerts().run(types=types)) == sorted({positions[-1] for positions in expected})
    turned = sorted(match.positions for match in query.run(types={"login": types["login"], "fail": one}))
    assert turned == [(1, 3), (1, 5), (2, 3), (4, 5)], "of equal times the logins come first now"


@pytest.mark.parametrize("again", [False, True], ids=["open", "snapshots"])
def test_pushes_of_one_type_each(again: bool) -> None:
    query = ceql.compile(THEN)
    expected = sorted(match.positions for match in query.run(_merged()))
    session, found = query.open(types=["fail", "login"]), []
    for event in _merged():
        kind = event.pop("type")
        found += session.push(event, type=kind)
        if again:
            session = query.open(session.snapshot())
    assert sorted(match.positions for match in [*found, *session.close()]) == expected
    with query.alerts().open(types=["fail", "login"]) as alerts:
        ends = [end for event in _merged() for end in alerts.push([event], type=event.pop("type"))]
    assert ends == sorted({positions[-1] for positions in expected})
    alone = ceql.compile("SELECT * WHERE fail AS a ; fail AS b").open(types=["fail"])
    found = [match for event in FAILS for match in alone.push(event)] + alone.push({"time": 6}, type="fail")
    assert sorted(match.positions for match in found) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_random_inputs_of_one_type_each() -> None:
    rng = random.Random(2)
    query = ceql.compile("SELECT * WHERE a AS x ; (b OR c) AS y FILTER x.v <= y.v WITHIN 4 EVENTS")
    for _ in range(20):
        types: dict[str, list[dict[str, Any]]] = {}
        for kind in rng.sample("abc", 3):
            times = sorted(rng.randrange(6) for _ in range(rng.randrange(1, 7)))
            types[kind] = [{"time": time, "v": rng.randrange(3), f"only_{kind}": 1} for time in times]
        whole = [{"type": kind, **event} for kind, events in types.items() for event in events]
        whole.sort(key=lambda event: event["time"])
        expected = sorted(match.positions for match in query.run(whole))
        assert sorted(match.positions for match in query.run(types=types)) == expected
        tables = {kind: pa.Table.from_pylist(events) for kind, events in types.items()}
        assert sorted(match.positions for match in query.run(types=tables)) == expected


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda q: q.run(FAILS, types={"fail": FAILS}), "events and types are given together"),
        (lambda q: q.run(streams={"S": FAILS}, types={"fail": FAILS}), "streams and types are given together"),
        (lambda q: q.run(types={}), "no inputs to run over"),
        (lambda q: q.run(types=FAILS), "types"),
        (lambda q: q.run(types={"fail": FAILS, 5: LOGINS}), "the type of an input"),
        (lambda q: q.run(types={"fail": FAILS, "": LOGINS}), "the type of an input is empty"),
        (lambda q: q.run(types={"fail": FAILS}), 'all events are given the type fail, and the query names login\nhint: '
         r'types={"login": events, …} gives'),
        (lambda q: q.run(types={"fail": FAILS, "logins": LOGINS}), "all events are given the type fail or logins, and "
         "the query names login\nhint: logins may stand for login"),
        (lambda q: q.run(types={"fail": FAILS, "login": LOGINS}, type="fail"), "type does not go with inputs"),
        (lambda q: q.run(types={"fail": FAILS, "login": LOGINS}, type_column="k"), "type_column does not go"),
        (lambda q: q.open(types="fail"), "types cannot be a str"),
        (lambda q: q.open(types=["fail"]), "all events are given the type fail"),
        (lambda q: q.open(types=["fail", "login"], streams=["S"]), "streams and types are given together"),
        (lambda q: q.open(types=["fail", "login"]).push(FAILS), "which type have these events\\?\nhint: push"),
        (lambda q: q.open(types=["fail", "login"]).push(FAILS, type="x"), "unknown type 'x'\nhint: open was given"),
        (lambda q: q.open(types=["fail", "login"]).push(FAILS, "fail", type="fail"), "type='fail': this session"),
        (lambda q: q.open().push(FAILS, type="fail"), "type='fail': this session takes no types\nhint: open.types="),
    ],
)  # fmt: skip
def test_inputs_of_types_that_cannot_be(use: Callable[[ceql.Query], Any], said: str) -> None:
    with pytest.raises(OptionError, match=f"^{said}"):
        use(ceql.compile(THEN))


def test_inputs_of_types_are_for_queries_without_streams() -> None:
    with pytest.raises(OptionError, match="the query reads streams: S, and types= is for one without"):
        ceql.compile("SELECT * FROM S WHERE fail").run(types={"fail": FAILS})


def test_the_command_merges_files_of_one_type_each(capsys: pytest.CaptureFixture[str]) -> None:
    Path("failures.csv").write_text("time;user;why\n1;a;pin\n3;b;\n5;a;\n")
    pq.write_table(pa.Table.from_pylist(LOGINS), "logins.parquet")
    Path("x=y.csv").write_text("type,time\nfail,1\nlogin,2\n")
    words = ["--events", "fail=failures.csv", "--events", "login=logins.parquet", "--time-unit", "s"]
    assert main(["run", THEN, *words, "--format", "count"]) == 0
    assert capsys.readouterr().out == "5\n"
    assert main(["alert", THEN, *words, "--format", "csv"]) == 0
    assert [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["1", "1", "login"], ["4", "5", "login"], ["5", "6", "login"]]  # fmt: skip
    assert main(["run", "SELECT * WHERE fail ; login", "--events", "x=y.csv", "--format", "count"]) == 0
    assert capsys.readouterr().out == "1\n", "a path that exists is one"
    assert main(["run", "SELECT * WHERE fail ; login", "--events", "?=y.csv", "--format", "count"]) == 0
    capsys.readouterr()
    for given, said in [
        (
            ["--events", "fail=failures.csv", "--events", "x=y.csv"],
            "--events x=y.csv has no type, and other events have",
        ),
        (["--events", "fail=failures.csv"], "all events are given the type fail, and the query names login"),
        (["--events", "fail=none.csv", "--events", "login=logins.parquet"], "none.csv: no such file"),
        ([*words, "--type", "fail"], "--type does not go with inputs that have a type each"),
        ([*words, "--stream", "S=failures.csv"], "--events and --stream are given together"),
        (["--events", "fail=-", "--events", "login=-"], "standard input is asked for twice"),
    ]:
        assert main(["run", THEN, *given]) in (2, 3)
        assert capsys.readouterr().err.startswith(said)
    assert main(["forecast", THEN, *words, "--train", "x=y.csv"]) == 2
    assert capsys.readouterr().err.startswith("forecasts are of one stream of events")
