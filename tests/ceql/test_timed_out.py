"""Partial matches that time out, as rows: against their definition, on every road; their columns; what is refused."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from ceql.cli.main import main
from ceql.query import Query, compile_query
from spaseq.core.engine import Settings
from spaseq.core.errors import OptionError, UnsupportedFeature
from tests.support.sizes import some
from tests.support.timed_out_by_definition import Row, draw, draw_events


def _rows(query: Query, found: Iterable[dict[str, Any]]) -> list[Row]:
    variables = query.timed_out().columns[6:]
    return [(row["waiting_for"], row["start"], row["end"], {v: row[v] for v in variables if row[v]}) for row in found]


def _sorted(rows: list[Row]) -> list[Any]:
    return sorted((start, waiting, end, sorted(taken.items())) for waiting, start, end, taken in rows)


def _compare(seed: int) -> int:
    """The number of rows that random sequence `seed` has by its definition, if it is told."""
    random = Random(seed)
    drawn, events = draw(random), draw_events(random)
    query = compile_query(drawn.text)
    try:
        timed_out = query.timed_out()
    except UnsupportedFeature as error:
        said = ("relates a NOT at the end", "in a NOT", "before a part with a condition on other parts")
        assert any(part in str(error) for part in said), f"{drawn.text}\n{error}"
        return -1
    expected = drawn.rows(events)
    found = _rows(query, timed_out.run(events))
    assert _sorted(found) == _sorted(expected), f"{seed}\n{drawn.text}\n{events}"
    in_order = drawn.by_time or not drawn.keyed  # else the windows of each key close by themselves
    assert not in_order or [(r[1], r[0], r[2]) for r in found] == [(r[1], r[0], r[2]) for r in expected], seed
    size = random.randint(1, 3)
    with timed_out.open() as session:
        pushed = [row for i in range(0, len(events), size) for row in session.push(events[i : i + size])]
        if drawn.by_time:
            pushed += session.advance((events[-1]["time"] + drawn.window + 1) * 10**9)
            before = len(pushed)
    pushed += session.rest
    assert not drawn.by_time or len(pushed) == before, f"{seed}: the clock closes all windows"
    came = _rows(query, pushed)
    assert came == found if in_order else _sorted(came) == _sorted(found), f"{seed}: pushed by {size}"
    resumed = _rows(query, _push_with_snapshots(drawn.text, events, random))
    assert resumed == found if in_order else _sorted(resumed) == _sorted(found), f"{seed}: with snapshots"
    return len(expected)


def _push_with_snapshots(text: str, events: list[dict[str, Any]], random: Random) -> list[dict[str, Any]]:
    """The rows of events that are pushed in random pieces, to sessions that each go on from a snapshot of the last."""
    session, found, rest = compile_query(text).timed_out().open(), [], events
    while rest:
        size = random.choice((1, 1, 2, 5))
        found += session.push(rest[:size])
        rest = rest[size:]
        if random.random() < 0.5:
            session = compile_query(text).timed_out().open(session.snapshot())
    return found + session.close()


def test_rows_are_those_of_the_definition() -> None:
    counted = [_compare(seed) for seed in range(some(60))]
    assert sum(count > 0 for count in counted) > some(15)
    assert sum(count < 0 for count in counted) < 15


@pytest.mark.random
def test_rows_are_those_of_the_definition_at_full_size() -> None:
    first = 1000
    for seed in range(first, first + int(os.environ.get("SPASEQ_RANDOM", "2000"))):
        _compare(seed)


def _events(text: str) -> list[dict[str, Any]]:
    """An event of each letter, a second behind the one before; x counts them."""
    return [{"type": kind, "time": second, "x": second} for second, kind in enumerate(text)]


EXAMPLES = [
    ("each step", "A ; B ; C WITHIN 3 EVENTS", "ABXXXAXXXXX", [("C", 0, 1), ("B", 5, 5)]),
    ("an event that goes on ends the waiting of all", "A ; B ; C WITHIN 3 EVENTS", "AABXX", [("C", 0, 2), ("C", 1, 2)]),
    ("the end of the stream ends the time", "A ; B WITHIN 9 EVENTS", "XA", [("B", 1, 1)]),
    ("an event at the window's end is inside", "A ; B WITHIN 2 EVENTS", "AXB", []),
    ("an event behind it is not", "A ; B WITHIN 2 EVENTS", "AXXB", [("B", 0, 0)]),
    ("NOT between ends the waiting", "A ; NOT X ; B WITHIN 3 EVENTS", "AYXYYAYYYY", [("B", 5, 5)]),
    ("next to each other", "A : B WITHIN 3 EVENTS", "AXBA", [("B", 3, 3)]),
    ("the next event that fits", "A -> B -> C WITHIN 4 EVENTS", "ABBXXX", [("C", 0, 1)]),
    ("all that are taken", "A ; B -> C WITHIN 4 EVENTS", "ABBXXX", [("C", 0, 1), ("C", 0, 2)]),
    ("a run waits for another round and for what follows", "A -> B->+ -> C WITHIN 5 EVENTS", "ABXBXXXXXX",
     [("C", 0, 3)]),
    ("a run that came to what follows waits for no round", "A -> B->+ -> C -> D WITHIN 5 EVENTS", "ABCBXXXXX",
     [("D", 0, 2)]),
    ("a round is one by its conditions", "A AS a -> (B AS b)->+ -> C FILTER b.x > a.x + 2 WITHIN 6 EVENTS",
     "ABXBXXXXXX", [("C", 0, 3)]),
    ("a part that may be left out is not waited for", "A ; B? ; C WITHIN 3 EVENTS", "ABXXXX",
     [("C", 0, 0), ("C", 0, 1)]),
    ("rounds: each subset of them waits", "A ; B+ ; C WITHIN 3 EVENTS", "ABBXXX",
     [("C", 0, 1), ("C", 0, 2), ("C", 0, 2)]),
    ("a match that waits for an absence is complete", "A ; B ; NOT C WITHIN 3 EVENTS", "ABXXXA", [("B", 5, 5)]),
    ("conditions on the next event", "A AS a ; B AS b FILTER b.x > a.x + 2 WITHIN 5 SECONDS", "ABBXXXX",
     [("B AS b", 0, 0)]),
    ("conditions that are not decided", "A AS a ; B AS b ; C AS c FILTER c.x > a.x + 3 WITHIN 4 SECONDS", "ABC",
     [("C AS c", 0, 1)]),
    ("aggregates of the parts before", "A ; B+ AS b ; C FILTER COUNT(b) >= 2 WITHIN 9 SECONDS", "ABB", [("C", 0, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "events", "rows"), [case[1:] for case in EXAMPLES], ids=[c[0] for c in EXAMPLES])
def test_examples(query: str, events: str, rows: list[tuple[str, int, int]]) -> None:
    timed_out = compile_query(f"SELECT * WHERE {query}").timed_out()
    assert [(r["waiting_for"], r["start"], r["end"]) for r in timed_out.run(_events(events))] == rows


def test_columns_of_select_are_null_if_their_variables_are_not_there() -> None:
    query = compile_query(
        "SELECT k, a.x AS first, COUNT(b) AS n, c.x - a.x AS took, MATCH_END AS at "
        "WHERE A AS a ; B+ AS b ; C AS c PARTITION BY [k] WITHIN 4 SECONDS"
    )
    found = list(query.timed_out().run([{**event, "k": 7} for event in _events("ABXXXXAX")]))
    assert list(found[0]) == ["waiting_for", "since", "start_time", "k", "first", "n", "took", "at"]
    assert [tuple(row.values()) for row in found] == [
        ("C AS c", 1, 0, 7, 0, 1, None, 1),
        ("B+ AS b", 6, 6, 7, 6, None, None, 6),
    ]
    assert query.timed_out().run([]).to_arrow().column_names == list(found[0])


def test_a_list_of_variables_shows_those_that_are_there() -> None:
    timed_out = compile_query("SELECT b, c[x] WHERE A ; B AS b ; C AS c WITHIN 4 SECONDS").timed_out()
    (row,) = timed_out.run(_events("AB"))
    assert row == {
        "waiting_for": "C AS c", "since": 1, "start_time": 0, "start": 0, "end": 1, "positions": [1], "b": [1],
        "c": None, "c.x": None,
    }  # fmt: skip
    assert [step.waiting_for for step in timed_out.steps] == ["B AS b", "C AS c"]
    assert timed_out.steps[1].query == "SELECT b\nWHERE A ; B AS b ; NOT C AS c\nWITHIN 4 SECONDS"
    assert timed_out.run(_events("AXAB")).count() == 2 and timed_out.run(_events("AXAB")).count(1) == 1


def test_times_are_dates_if_events_have_dates() -> None:
    events = [{"type": "A", "time": "2026-03-01T12:00:00.25Z"}, {"type": "X", "time": "2026-03-01T12:01:00Z"}]
    timed_out = compile_query("SELECT * WHERE A ; B WITHIN 5 SECONDS").timed_out()
    table = timed_out.run(events).to_arrow()
    assert str(table.schema.field("since").type) == "timestamp[ns, tz=UTC]"
    assert table["since"].to_pylist()[0].isoformat() == "2026-03-01T12:00:00.250000+00:00"
    with timed_out.open() as session:
        assert session.push(events) == list(timed_out.run(events))


def test_streams_and_types_of_inputs() -> None:
    query = compile_query("SELECT * FROM S, T WHERE S>A AS a ; T>B AS b WITHIN 2 SECONDS").timed_out()
    given = {"S": _events("AXXAXX"), "T": _events("XBXXXX")}
    (row,) = query.run(streams=given)
    assert (row["waiting_for"], row["since"]) == ("T>B AS b", 3)
    with query.open() as session:
        pushed = session.push(given["S"][:1], "S") + session.push(given["T"][3:4], "T")
    assert [row["start"] for row in pushed] == [0]
    by_type = compile_query("SELECT * WHERE A AS a ; B AS b WITHIN 2 SECONDS").timed_out()
    inputs = {"A": [{"time": 0}, {"time": 9}], "B": [{"time": 1}]}
    assert [row["since"] for row in by_type.run(types=inputs)] == [9]
    with by_type.open(types=["A", "B"]) as session:
        assert session.push({"time": 0}, type="A") == []
        assert [row["since"] for row in session.push({"time": 3}, type="B")] == [0]


def test_snapshots() -> None:
    """A session goes on with its options, its held events and its form of times; the clock goes on, too."""
    query = compile_query("SELECT a.v AS v WHERE A AS a ; B WITHIN 10 SECONDS")
    at = "2026-06-15T08:00:{:02}Z".format
    with query.timed_out().open(lateness="5s", late="drop") as session:
        assert session.push([{"type": "A", "time": at(8), "v": 1}, {"type": "A", "time": at(4), "v": 2}]) == []
        state = session.snapshot()
    assert session.rest == []  # it goes on
    session = query.timed_out().open(state)
    rows = session.push({"type": "C", "time": at(30)}) + session.close()
    assert [(row["v"], row["start_time"].second) for row in rows] == [(2, 4), (1, 8)]
    again = query.timed_out().open(state)
    again.push({"type": "C", "time": at(2)})
    assert again.counters.late == 1
    now = int(rows[0]["start_time"].timestamp() * 10**9) + 11 * 10**9
    assert [row["v"] for row in query.timed_out().open(state).advance(now)] == [2]
    late: list[Any] = []
    query.timed_out().open(state, on_late=late.append).push({"type": "C", "time": at(2)})
    assert [one.behind for one in late] == [6 * 10**9]


def test_snapshots_of_others_are_refused() -> None:
    query = compile_query("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 10 SECONDS")
    state = query.timed_out().open().snapshot()
    others: dict[str, Any] = {
        "query": compile_query("SELECT * WHERE A ; C PARTITION BY [k] WITHIN 10 SECONDS").timed_out(),
        "rows": query,
        "settings": compile_query(query.text, settings=Settings(forget_keys_after=5)).timed_out(),
    }
    for what, other in others.items():
        with pytest.raises(OptionError, match=what):
            other.open(state)
    with pytest.raises(OptionError, match="rows"):
        query.timed_out().open(query.open().snapshot())
    for damaged in (state[:-1], b"", state[:40] + b"x" + state[41:]):
        with pytest.raises(OptionError):
            query.timed_out().open(damaged)
    session = query.timed_out().open(state)
    session.close()
    with pytest.raises(OptionError, match="this stream is closed"):
        session.snapshot()


def test_a_session_says_them_as_they_happen() -> None:
    timed_out = compile_query("SELECT * WHERE A AS a ; B WITHIN 2 SECONDS").timed_out()
    session = timed_out.open(late="drop")
    assert session.push({"type": "A", "time": 0}) == []
    assert session.advance(2 * 10**9) == []  # an event of this time may come
    assert [row["since"] for row in session.advance(2 * 10**9 + 1)] == [0]
    assert session.push({"type": "B", "time": 1}) == []
    assert session.counters.late == 1
    assert session.push({"type": "A", "time": 5}) == []
    assert [row["since"] for row in session.close()] == [5]
    with pytest.raises(OptionError, match="this stream is closed"):
        session.push({"type": "A", "time": 6})


@pytest.mark.parametrize("evaluator", ["auto", "chain", "tree"])
def test_evaluators(evaluator: str) -> None:
    query = compile_query("SELECT a.x WHERE A AS a ; B ; C WITHIN 4 SECONDS", settings=Settings(evaluator=evaluator))
    found = [(row["waiting_for"], row["x"]) for row in query.timed_out().run(_events("ABXAXXXXXXA"))]
    assert found == [("C", 0), ("B", 3), ("B", 10)]


REFUSED = [
    ("A ; B", "a query without WITHIN"),
    ("A WITHIN 3 EVENTS", "a formula of one event"),
    ("A OR B WITHIN 3 EVENTS", "OR around the whole formula"),
    ("AND(A, B) WITHIN 3 EVENTS", r"AND\(…\)"),
    ("A ; AND(B, C) WITHIN 3 EVENTS", r"AND\(…\)"),
    ("(A ; B)+ WITHIN 3 EVENTS", "a repetition of the whole formula"),
    ("A ; (B ; C)+ WITHIN 3 EVENTS", "a part of several events"),
    ("A ; (B ; C FILTER B.x < C.x) ; D WITHIN 3 EVENTS", "a part of several events"),
    ("A ; B{2,3} WITHIN 3 EVENTS", "a repetition of at least 2 rounds"),
    ("A -> B->{1,3} -> C WITHIN 3 EVENTS", "such a repetition by -> with a part behind it"),
    ("A -> B->+ ; C WITHIN 3 EVENTS", "such a repetition by -> with a part behind it"),
    ("A -> B->+ ALL -> C WITHIN 3 EVENTS", "such a repetition by -> with a part behind it"),
    ("A -> B->+ -> NOT X -> C WITHIN 3 EVENTS", "such a repetition by -> with a part behind it"),
    ("A -> B->+ -> (B OR C) WITHIN 3 EVENTS", "a repetition by -> of events that may be those of the part behind it"),
    ("A -> B->+ AS b -> C FILTER COUNT(b) > 1 WITHIN 3 EVENTS", "a repetition by -> under a condition on its rounds"),
    ("A AS a -> B->+ -> C FILTER C.x > a.x WITHIN 3 EVENTS", "a repetition by -> before a part with a condition on"),
    ("A -> B? -> C WITHIN 3 EVENTS", "a part beside -> that may be empty"),
    ("A ; B? WITHIN 3 EVENTS", "a formula of which one event is a match"),
    ("A ; B+ UNTIL X WITHIN 3 EVENTS", "a repetition with UNTIL that is waited for"),
    ("A ; (NOT B) AS n WITHIN 3 EVENTS", "an event that is described by NOT and waited for"),
    ("A ; NOT (X ; Y) ; B WITHIN 3 EVENTS", "a NOT of several events"),
    ("A ; NOT (X FILTER X.x < B.x) ; B WITHIN 3 EVENTS", "a NOT with a condition on the part behind it"),
    ("A ; (B AS b FILTER b.x < c.x) ; C AS c WITHIN 3 EVENTS", "a condition in a part on a later one"),
    ("A ; B ; A FILTER A.x < B.x WITHIN 3 EVENTS", "a condition that relates A, which several parts take, to others"),
    ("(A ; B AS m) AS m WITHIN 3 EVENTS", "a name around a part with the same name"),
    ("A ; B WITHIN 3 EVENTS CONSUME BY ANY", "CONSUME BY ANY"),
    ("A ; B WITHIN 3 EVENTS LIMIT 2", "LIMIT"),
    ("A ; B WITHIN 3 EVENTS AFTER MATCH SKIP PAST LAST EVENT", "AFTER MATCH"),
    (" ; ".join("A" * 70) + " WITHIN 100 EVENTS", "a sequence of 70 parts; 64 is the most"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "what"), REFUSED)
def test_what_has_no_steps_is_refused_by_name(query: str, what: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"partial matches that time out are not reported for {what}"):
        compile_query(f"SELECT * WHERE {query}").timed_out()


@pytest.mark.parametrize("strategy", ["NEXT", "LAST", "MAX", "ANY", "STRICT", "FIRST"])
def test_strategies_are_refused_by_name(strategy: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"not reported for SELECT {strategy}"):
        compile_query(f"SELECT {strategy} * WHERE A ; B WITHIN 3 EVENTS").timed_out()


def test_what_an_absence_cannot_be_is_refused_with_the_query_of_the_step() -> None:
    text = "SELECT * WHERE A ; B+ AS b ; C AS c FILTER c.x > AVG(b.x) WITHIN 9 SECONDS"
    with pytest.raises(UnsupportedFeature, match=r"<query>, waiting for C AS c:.* an aggregate in a NOT"):
        compile_query(text).timed_out()


def _run(tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, *more: str) -> tuple[int, str, str]:
    (tmp_path / "e.csv").write_text("type,time,x\nA,0,1\nB,1,2\nX,9,3\nA,10,4\nB,11,5\nC,12,6\n", encoding="utf-8")
    query = "SELECT a.x, c.x AS last WHERE A AS a ; B ; C AS c WITHIN 4 SECONDS"
    code = main(["run", query, "--events", str(tmp_path / "e.csv"), "--timed-out", str(tmp_path / file), *more])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("t.csv", "waiting_for,since,start_time,x,last\nC AS c,1,0,1,\n"),
        ("t.jsonl", '{"waiting_for": "C AS c", "since": 1, "start_time": 0, "x": 1, "last": null}\n'),
        ("t.txt", "waiting_for  since  start_time  x  last\n-----------  -----  ----------  -  ----\n"
                  "C AS c           1           0  1  NULL\n1 partial match timed out\n"),
    ],
)  # fmt: skip
def test_the_command(file: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, capsys, file, "--format", "csv")[:2] == (0, "x,last\n4,6\n")
    assert (tmp_path / file).read_text("utf-8") == text


def test_the_command_has_dates_if_events_have_dates(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("type,time\nA,2026-03-01T12:00:00.25Z\nX,2026-03-01T12:01:00Z\n", "utf-8")
    words = ["SELECT * WHERE A ; B WITHIN 5 SECONDS", "--events", str(tmp_path / "e.csv")]
    assert main(["run", *words, "--timed-out", str(tmp_path / "t.csv")]) == 0
    text = "waiting_for,since,start_time,start,end,positions,A,B\n"
    time = "2026-03-01T12:00:00.25Z"
    assert (tmp_path / "t.csv").read_text("utf-8") == f"{text}B,{time},{time},0,0,[0],[0],\n"


def test_the_command_in_other_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(tmp_path, capsys, "t.parquet", "--format", "count")[:2] == (0, "1\n")
    assert pq.read_table(tmp_path / "t.parquet")["waiting_for"].to_pylist() == ["C AS c"]
    code, _, said = _run(tmp_path, capsys, "t.csv", "--limit", "1")
    assert code == 2 and "--timed-out with --limit" in said
    code, _, said = _run(tmp_path, capsys, "t.csv", "--output", str(tmp_path / "t.csv"))
    assert code == 2 and "a file of its own" in said
    code, _, said = _run(tmp_path, capsys, "e.csv")
    assert code == 2 and "is an input" in said
    assert (tmp_path / "e.csv").read_text("utf-8").startswith("type,time,x")
