"""A time that nobody gave is never used for what needs times; what is guessed is said."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
import spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.engine import Settings
from spaseq.core.errors import EventError, OptionError
from spaseq.tools.studio.answers import run_form
from spaseq.tools.studio.language import Inputs

WITHIN = "SELECT * WHERE A AS a ; B AS b WITHIN 10 SECONDS"
ONE: list[dict[str, Any]] = [{"type": "A", "ts": 0}, {"type": "B", "ts": 5}, {"type": "B", "ts": 60}]
EVENTS: list[dict[str, Any]] = [{**event, "sent_at": event["ts"]} for event in ONE]
ROWS = "type,ts,sent_at\nA,0,0\nB,5,5\nB,60,60\n"
AT = "http://example.org/at"
DATED = f"""<urn:1> <urn:v> "3" .
<urn:1> <{AT}> "2026-06-15T08:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<urn:2> <urn:v> "4" .
<urn:2> <{AT}> "2026-06-15T08:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
"""
NUMBERED = """<urn:1> <urn:v> "3" <urn:g> .
<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "1" .
"""
GRAPHS = """SELECT ?v ?w {} FROM STREAM S <urn:s> WHERE {{ SEQ (A ; B)
  DEFINE GPM A ON S {{ ?a <urn:v> ?v }} DEFINE GPM B ON S {{ ?b <urn:v> ?w }} }}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text(ROWS)
    (tmp_path / "none.csv").write_text("type,v\nA,1\nB,2\n")
    (tmp_path / "timed.csv").write_text("type,time\nA,1\nB,2\n")
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    (tmp_path / "s.nt").write_text(DATED)
    (tmp_path / "s.ttl").write_text(DATED)
    (tmp_path / "n.nq").write_text(NUMBERED)
    return tmp_path


# -- tuples


ROADS: dict[str, Callable[[ceql.Query, dict[str, Any]], int]] = {
    "run": lambda query, words: len(list(query.run(EVENTS, **words))),
    "count": lambda query, words: query.run("e.csv", **words).count(),
    "csv": lambda query, words: len(list(query.run("e.csv", **words))),
    "json lines": lambda query, words: len(list(query.run("e.jsonl", **words))),
    "table": lambda query, words: query.run(pa.Table.from_pylist(EVENTS), **words).to_arrow().num_rows,
    "one by one": lambda query, words: _pushed(query.open(**words), [[event] for event in EVENTS]),
    "at once": lambda query, words: _pushed(query.open(**words), [EVENTS]),
    "alerts": lambda query, words: query.alerts().count(EVENTS, **words),
    "alerts, pushed": lambda query, words: _pushed(query.alerts().open(**words), [[event] for event in EVENTS]),
}


def _pushed(session: Any, pieces: list[list[dict[str, Any]]]) -> int:
    return sum(len(session.push(piece)) for piece in pieces) + len(session.close())


@pytest.mark.parametrize("road", ROADS)
def test_a_window_in_time_needs_times(road: str, folder: Path) -> None:
    query = ceql.compile(WITHIN)
    with pytest.raises(OptionError) as told:
        ROADS[road](query, {})
    assert told.value.problem.startswith("WITHIN 10 SECONDS needs the times of the events, and ")
    hint = 'time="ts" takes them from that column (or sent_at); time_from="arrival" counts the events'
    assert told.value.hint.startswith(hint)
    assert ROADS[road](query, {"time": "ts"}) == 1, "what the error says"
    assert ROADS[road](query, {"time_from": "arrival"}) == ROADS[road](query, {"interval": "1s"}) == 2
    assert ROADS[road](query, {"interval": "8s"}) == 1
    assert ROADS[road](ceql.compile(WITHIN.replace("10 SECONDS", "10 EVENTS")), {}) == 2, "which needs none"


@pytest.mark.parametrize(
    ("query", "settings", "words", "needs"),
    [
        ("SELECT * WHERE A ; B", None, {"lateness": "5s"}, "lateness"),
        ("SELECT * WHERE A ; B PARTITION BY [ts]", Settings(forget_keys_after=5.0), {}, "forget_keys_after"),
        ("SELECT * WHERE A ; NOT B WITHIN 2 MINUTES", None, {}, "WITHIN 2 MINUTES"),
    ],
)
def test_what_else_needs_times(query: str, settings: Any, words: dict[str, Any], needs: str) -> None:
    compiled = ceql.compile(query, settings=settings)
    with pytest.raises(OptionError, match=f"^{needs} needs the times"):
        compiled.run(EVENTS, **words).count()
    with pytest.raises(OptionError, match=f"^{needs} needs the times"):
        compiled.open(**words).push(EVENTS[0])
    compiled.run(EVENTS, **words, time_from="arrival").count()


@pytest.mark.parametrize(
    ("columns", "candidates"),
    [
        ({"v": [1]}, ""),
        ({"date": ["2026-06-15"], "at": [4], "v": ["x"]}, "date at"),
        ({"ts": [5], "noted": ["2026-06-15T08:00:00Z"]}, "noted ts"),
        ({"t": [21.5], "when": ["soon"]}, "t"),
        ({"stock_time": [5], "eventTime": [5], "at": [True], "length": [3]}, "stock_time eventTime"),
        ({"x": pa.array([datetime(2026, 6, 15)], pa.date32()), "t": pa.array([None], pa.float64())}, "x t"),
    ],
)
def test_the_candidates_are_named(columns: dict[str, Any], candidates: str) -> None:
    with pytest.raises(OptionError) as told:
        ceql.compile(WITHIN).run(pa.table({"type": ["A"], **columns})).count()
    first, *others = candidates.split() or ["COLUMN"]
    also = f" (or {', '.join(others)})" if others else ""
    said = f"takes them from that column{also}" if candidates else "names the column that holds times"
    assert told.value.hint.startswith(f'time="{first}" {said}; ')


@pytest.mark.parametrize("road", ROADS)
def test_the_only_column_that_may_hold_times_is_taken(road: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the query does not read it, and is counted from a file of columns."""
    (folder / "e.csv").write_text("type,ts,v\nA,0,1\nB,5,2\nB,60,3\n")
    (folder / "e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in ONE))
    monkeypatch.setitem(globals(), "EVENTS", ONE)
    assert ROADS[road](ceql.compile(WITHIN), {}) == 1
    assert ROADS[road](ceql.compile(WITHIN), {"time_from": "arrival"}) == 2
    assert ROADS[road](ceql.compile("SELECT * WHERE A ; B WITHIN 1 EVENTS"), {}) == 1, "which needs no times"


@pytest.mark.parametrize(
    ("column", "values", "words", "unit"),
    [
        ("ts", [1, 2], {}, ", as seconds"),
        ("created_at", ["2026-06-15T08:00:00Z", "2026-06-15T08:00:01Z"], {}, ""),
        ("@timestamp", ["2026-06-15", "2026-06-16"], {}, ""),
        ("Time", [1, 2], {}, ", as seconds"),
        ("x", pa.array([datetime(2026, 6, 15), datetime(2026, 6, 16)]), {}, ""),
        ("Zeit", ["15.06.2026", "16.06.2026"], {"time_format": "%d.%m.%Y"}, ""),
    ],
)
def test_the_column_of_times_is_guessed_and_said(column: str, values: Any, words: dict[str, Any], unit: str) -> None:
    table = pa.table({"type": ["A", "B"], column: values, "v": ["x", "y"]})
    query = ceql.compile("SELECT * WHERE A ; B WITHIN 2 DAYS")
    more = ' and time_unit="ms" read others)' if unit else " reads others)"
    said = f'times are read from the column {column}{unit} (time="COLUMN"{more}'
    matches, session = query.run(table, **words), query.open(**words)
    assert matches.count() == sum(len(session.push(table.slice(row, 1))) for row in range(2))
    assert matches.notes == session.notes == (said,)
    told = query.run(table, time=column, **words)
    assert told.count() == matches.count()
    again = query.open(session.snapshot())
    assert len(again.push(table.slice(1, 1))) == len(session.push(table.slice(1, 1))) > 0


def test_times_of_standard_input_and_of_iterators_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    """These cannot be read anew, so all their columns are read."""
    query = ceql.compile(WITHIN)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"type,ts,v\nA,0,1\nB,5,2\nB,60,3\n")))
    assert query.run("-").count() == 1
    table = pa.Table.from_pylist(ONE)
    assert query.run(iter([table])).count() == query.run(table.to_reader()).count() == 1


def test_several_streams_are_merged_by_the_times_that_are_guessed() -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A ; T>B")
    streams = {"S": [{"type": "A", "ts": 5}], "T": [{"type": "B", "sent": 4, "ts": 4}, {"type": "B", "ts": 6}]}
    matches = query.run(streams=streams)
    assert [match.positions for match in matches] == [(1, 2)]
    assert matches.notes == ('times are read from the column ts, as seconds (time="COLUMN" and time_unit="ms" read '
                             "others)",)  # fmt: skip


def test_times_come_with_the_first_event_or_never(folder: Path) -> None:
    session = ceql.compile("SELECT * WHERE A ; B").open()
    assert session.push({"type": "A"}) == [] == session.push({"type": "A", "v": 1})
    with pytest.raises(EventError, match="event 3: this event has a time, in the column time, and those before it"):
        session.push({"type": "B", "time": 3})
    assert len(session.push({"type": "B"})) == 2 and session.counters.events == 3, "nothing was taken of it"
    counted = ceql.compile("SELECT * WHERE A ; B").open(time_from="arrival")
    assert counted.push({"type": "A"}) == [] and len(counted.push({"type": "B", "time": 3})) == 1
    for road in ("run", "csv"):
        events: Any = [{"type": "A"}, {"type": "B", "time": 3}]
        if road == "csv":
            (folder / "x.csv").write_text("type,time\nA,\nB,3\n")
            events = "x.csv"
        with pytest.raises(EventError, match="event 1: this event has no time"):
            ceql.compile("SELECT * WHERE A ; B").run(events).count()


def test_all_streams_have_times_or_none_has(folder: Path) -> None:
    query = ceql.compile("SELECT * FROM S, T WHERE S>A ; T>B")
    with pytest.raises(OptionError, match="T has times and S has none: their order is unknown") as told:
        query.run(streams={"S": "e.csv", "T": "timed.csv"}).count()
    assert told.value.hint.startswith('time="ts" takes them from that column')
    session = query.open()
    session.push([{"type": "A", "time": 1}], "T")
    with pytest.raises(OptionError, match="T has times and S has none"):
        session.push([{"type": "A"}], "S")
    session.push([{"type": "A", "time": 1}], "S")
    untimed = query.run(streams={"S": "e.csv", "T": "none.csv"})
    assert untimed.count() == 1 and untimed.notes[0].startswith("no stream has times, so their events are taken by")
    said = query.run(streams={"S": "e.csv", "T": "none.csv"}, time_from="arrival")
    assert said.count() == 1 and said.notes == ()


SAID = "times are read from the column"
NOTED: list[tuple[dict[str, Any], dict[str, str], list[str]]] = [
    ({"time": [1]}, {}, [f'{SAID} time, as seconds (time="COLUMN" and time_unit="ms" read others)']),
    ({"time": [1]}, {"time": "time"}, [f'{SAID} time, as seconds (time_unit="ms" reads others)']),
    ({"time": [1]}, {"time": "time", "time_unit": "s"}, []),
    ({"time": ["2026-06-15"]}, {}, []),
    ({"timestamp": ["2026-06-15"]}, {}, [f'{SAID} timestamp (time="COLUMN" reads others)']),
    ({"time": ["2026-06-15"], "ts": [4]}, {}, [f'{SAID} time (time="ts" reads others)']),
    (
        {"event_type": ["B"], "time": ["2026-06-15"]},
        {},
        ['types are read from the column type (type_column="event_type" reads another one)'],
    ),
    ({"event_type": ["B"], "time": ["2026-06-15"]}, {"type_column": "type"}, []),
]


@pytest.mark.parametrize(("columns", "words", "notes"), NOTED)
def test_guesses_of_columns_have_notes(columns: dict[str, Any], words: dict[str, Any], notes: list[str]) -> None:
    table = pa.table({"type": ["A"], **columns})
    matches = ceql.compile(WITHIN).run(table, **words)
    assert matches.notes == (), "nothing was read"
    matches.count()
    assert list(matches.notes) == notes
    session = ceql.compile(WITHIN).open(**words)
    session.push(table.slice(0, 1))
    session.push(table.slice(0, 1))
    assert list(session.notes) == notes


def test_the_command_speaks_its_own_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ceql_main(["run", WITHIN, "--events", "e.csv"]) == 2
    assert capsys.readouterr().err == (
        "WITHIN 10 SECONDS needs the times of the events, and e.csv has no column time or timestamp; there are: "
        "type, ts, sent_at\nhint: --time ts takes them from that column (or sent_at); --time-from arrival counts the "
        "events instead, 1 ms apart\n"
    )
    assert ceql_main(["alert", WITHIN, "--events", "e.csv"]) == 2
    assert ceql_main(["run", WITHIN, "--events", "e.csv", "--time", "ts"]) == 0
    said = "note: times are read from the column ts, as seconds (--time-unit ms reads others)\n"
    assert capsys.readouterr().err.endswith(said)
    assert ceql_main(["run", WITHIN, "--events", "e.csv", "--time", "ts", "--time-unit", "s"]) == 0
    assert ceql_main(["run", WITHIN, "--events", "e.csv", "--time-from", "arrival"]) == 0
    assert capsys.readouterr().err == ""


def test_the_studio_shows_errors_and_notes(folder: Path) -> None:
    def run(**reading: str) -> dict[str, Any]:
        inputs = Inputs(events=(str(folder / "e.csv"),), reading=reading)
        return run_form("ceql", WITHIN, "q.ceql", inputs, Settings(), 10)

    (error,) = run()["errors"]
    assert error["hint"].startswith('time="ts" takes them')
    found = run(time="ts")
    assert found["errors"] == [] and len(found["rows"]) == 1
    assert found["notes"] == ['times are read from the column ts, as seconds (time_unit="ms" reads others)']


# -- graphs


@pytest.mark.parametrize("window", ["WITHIN 10 SECONDS", "WITHIN 10 SECONDS SLIDING"])
@pytest.mark.parametrize("file", ["s.nt", "s.ttl"])
def test_a_window_over_graphs_needs_times(window: str, file: str, folder: Path) -> None:
    query = spaseq.compile(GRAPHS.format(window))
    for use in (lambda found: list(found), lambda found: found.count(), lambda found: found.to_arrow()):
        with pytest.raises(OptionError) as told:
            use(query.run({"S": file}))
        assert told.value.problem == f"{window} needs the times of the events, and none are named of {file}"
        assert told.value.hint.startswith(f'time="{AT}" takes them from that predicate; time_from="arrival" counts')
    words: dict[str, Any] = {"event_by": "subject"}
    assert query.run({"S": file}, time=AT, **words).count() == 1
    assert query.run({"S": file}, time_from="arrival", **words).count() == 1
    assert query.run({"S": file}, interval="8s", **words).count() == 1
    assert spaseq.compile(GRAPHS.format("")).run({"S": file}, **words).count() == 1, "which needs none"
    with pytest.raises(OptionError, match=r"^lateness needs the times"):
        spaseq.compile(GRAPHS.format("")).run({"S": file}, lateness="5s").count()


def test_guesses_of_graphs_have_notes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = spaseq.compile(GRAPHS.format(""))
    for file, said in (("s.nt", "each subject of s.nt is one event"), ("s.ttl", "s.ttl is one event, as Turtle")):
        matches = query.run({"S": file})
        assert not matches.notes
        matches.count()
        (note,) = matches.notes
        assert note.startswith(said) and 'event_by="' in note
        told = query.run({"S": file}, event_by="subject")
        told.count()
        assert told.notes == ()
    timed = spaseq.compile(GRAPHS.format("WITHIN 10 SECONDS"))
    dated = timed.run({"S": "n.nq"})
    dated.count()
    (note,) = dated.notes
    assert note.startswith("times are read from http://www.w3.org/ns/prov#generatedAtTime, as seconds")
    told = timed.run({"S": "n.nq"}, time_unit="s")
    told.count()
    assert told.notes == ()
    assert spaseq_main(["run", GRAPHS.format("WITHIN 10 SECONDS"), "--stream", "S=s.nt"]) == 2
    assert f"hint: --time {AT} takes them from that predicate; --time-from arrival" in capsys.readouterr().err
    assert spaseq_main(["run", GRAPHS.format(""), "--stream", "S=s.nt"]) == 0
    assert capsys.readouterr().err == (
        "note: each subject of s.nt is one event, as N-Triples has no named graphs (--event-by size:N: N triples)\n"
    )


def test_a_graph_without_a_time_has_its_candidates_named(folder: Path) -> None:
    (folder / "g.nq").write_text(DATED.replace(" .\n", " <urn:g> .\n"))
    with pytest.raises(EventError) as told:
        spaseq.compile(GRAPHS.format("WITHIN 10 SECONDS")).run({"S": "g.nq"}).count()
    assert f'time="{AT}" takes them from that predicate' in told.value.hint


@pytest.mark.parametrize(
    "formula", ["A ; NOT B FOR 3 SECONDS", "NOT B FOR 3 SECONDS ; A", "A ; NOT B FOR 3 SECONDS ; C"]
)
def test_an_absence_for_a_time_needs_times(formula: str) -> None:
    """As WITHIN 3 SECONDS does: they are not counted in silence, and a guess is told."""
    query = ceql.compile(f"SELECT * WHERE {formula}")
    with pytest.raises(OptionError, match="NOT B FOR 3 SECONDS needs the times of the events"):
        query.run([{"type": "A", "v": 1}]).count()
    with pytest.raises(OptionError, match="needs the times"):
        query.open().push([{"type": "A", "v": 1}])
    matches = query.run([{"type": "A", "time": 1}, {"type": "C", "time": 9}])
    assert matches.count() == 1
    assert matches.notes[0].startswith("times are read from the column time, as seconds")
    assert query.run([{"type": "A"}, {"type": "C"}], time_from="arrival", interval="5s").count() == 1
