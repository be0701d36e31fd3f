"""Where tables begin: attributes that no event of a type has, an index of times, and times in two columns."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import EventError, OptionError

UTC = datetime.UTC


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- attributes that no event of a variable's types has

FAILS, LOGINS = "time,user\n1,ann\n2,bob\n", "time,usr\n3,ann\n4,bob\n"
LACKS = "no event of type login has an attribute user, so l.user is NULL; did you mean usr?"


def lacking(matches: Any) -> list[str]:
    matches.to_arrow()
    return [note for note in matches.notes if "no event" in note]


@pytest.mark.parametrize(("select", "notes"), [
    ("f.user, l.user AS other", [LACKS]), ("f.user, l.usr", []), ("f[user], l[user]", [LACKS]), ("*", []),
    ("f.user, COUNT(l.user) AS n, CONCAT(l.user, 'x') AS m", [LACKS]), ("f.user, FIRST(l.user) AS n", [LACKS]),
    ("f.usr, l.user", ["no event of type fail has an attribute usr, so f.usr is NULL; did you mean user?", LACKS]),
    ("f.user, PREV(l.user) AS p", [LACKS]),
])  # fmt: skip
def test_an_attribute_that_only_other_types_have(select: str, notes: list[str]) -> None:
    """Found by a newcomer: two files spelled it differently, and a column was NULL without a word."""
    Path("f.csv").write_text(FAILS)
    Path("l.csv").write_text(LOGINS)
    query = ceql.compile(f"SELECT {select} WHERE fail AS f ; login AS l")
    matches = query.run(types={"fail": "f.csv", "login": "l.csv"})
    assert lacking(matches) == notes
    rows = [{"type": "fail", "time": 1, "user": "ann"}, {"type": "login", "time": 2, "usr": "ann"}]
    assert lacking(query.run(rows)) == notes
    assert (
        lacking(query.run(pa.table({name: [row.get(name) for row in rows] for name in ("type", "user", "usr")})))
        == notes
    )
    matches.count()  # which does not read what SELECT does
    assert not [note for note in matches.notes if "so " in note]


def test_no_note_without_events_of_the_type_or_with_a_later_value() -> None:
    query = ceql.compile("SELECT f.user, l.user AS other WHERE fail AS f ; (login OR fail) AS l")
    assert lacking(query.run([{"type": "fail", "user": 1}])) == []
    query = ceql.compile("SELECT f.user, l.user AS other WHERE fail AS f ; login AS l")
    assert lacking(query.run([{"type": "fail", "user": 1}])) == []
    parts = [pa.table({"type": ["fail", "login"], "user": ["a", None]}), pa.table({"type": ["login"], "user": ["b"]})]
    assert lacking(query.run(parts)) == [] and lacking(query.run(parts[:1])) == [LACKS.partition(";")[0]]
    assert lacking(ceql.compile("SELECT x.nope WHERE ANY AS x").run(parts)) == [
        "no event has an attribute nope, so no condition on it holds"
    ]


def test_the_command_prints_the_note(capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.csv").write_text(FAILS)
    Path("l.csv").write_text(LOGINS)
    query = "SELECT f.user, l.user AS other WHERE fail AS f ; login AS l"
    assert main(["run", query, "--events", "fail=f.csv", "--events", "login=l.csv", "--format", "csv"]) == 0
    assert f"note: {LACKS}" in capsys.readouterr().err.splitlines()


# -- a pandas frame's index of times

HOURS = "SELECT a.v, b.v AS w, MATCH_END AS at WHERE ANY AS a ; ANY AS b WITHIN 1 HOUR"


def frame(**columns: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"v": [1, 2, 3], **columns}, index=pandas.date_range("2026-01-01", periods=3, freq="h"))


@pytest.mark.parametrize("name", [None, "Date", "odd name", 5])
def test_an_index_of_times_is_the_time(name: Any) -> None:
    column = name if isinstance(name, str) else "index"
    given = frame().rename_axis(name)
    matches = ceql.compile(HOURS).run(given)
    rows = matches.to_arrow().to_pylist()
    assert [(row["v"], row["w"], row["at"].hour) for row in rows] == [(1, 2, 1), (2, 3, 2)]
    assert f'times are read from the column {column} (time="COLUMN" reads others)' in matches.notes
    for time in (None, column):
        session = ceql.compile(HOURS).open(time=time)
        assert [(match.row["v"], match.row["w"]) for match in session.push(given)] == [(1, 2), (2, 3)]
    counted = ceql.compile("SELECT a.v, b.v AS w WHERE ANY AS a : ANY AS b").run(given)
    assert counted.count() == 2
    if column in ("index", "Date"):
        told = f'the query needs no times, so events count in their order (time="{column}" reads times)'
        assert told in counted.notes


def test_an_index_beside_other_times() -> None:
    days = [datetime.datetime(2026, 1, day) for day in (1, 2, 3)]
    with pytest.raises(OptionError, match="there are: v, opened, index") as told:
        ceql.compile(HOURS).run(frame(opened=days)).to_arrow()
    assert told.value.hint.startswith('time="opened" takes them from that column (or index)')
    assert ceql.compile(HOURS).run(frame(opened=days), time="index").count() == 2
    assert ceql.compile(HOURS).run(frame(opened=days), time="opened").count() == 0
    assert ceql.compile(HOURS).run(frame(time=days)).count() == 0  # time is the usual name
    assert ceql.compile("SELECT x.index WHERE ANY AS x").run(frame(index=[7, 8, 9])).to_arrow()["index"][0].as_py() == 7
    assert ceql.compile("SELECT * WHERE ANY").run(frame()[[]]).count() == 3
    pandas = pytest.importorskip("pandas")
    with pytest.raises(OptionError, match="there are: v\n"):
        ceql.compile(HOURS).run(pandas.DataFrame({"v": [1]}, index=[5])).to_arrow()


# -- the date and the time of day in two columns

PAIRS = "SELECT a.v, b.v AS w, MATCH_START AS at WHERE ANY AS a ; ANY AS b WITHIN 30 MINUTES"
TIMED: list[dict[str, Any]] = [
    {"date": "2026-01-02", "clock": "09:00", "v": 1},
    {"date": "2026-01-02", "clock": "09:30", "v": 2},
    {"date": "2026-01-03", "clock": "09:45:10", "v": 3},
]


def lines_of(rows: list[dict[str, Any]], sign: str = ",") -> str:
    return "\n".join([sign.join(rows[0]), *(sign.join(map(str, row.values())) for row in rows)]) + "\n"


@pytest.mark.parametrize("time", ["date,clock", "date, clock"])
def test_a_date_and_a_clock_are_a_time_on_every_road(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [{"v": 1, "w": 2, "at": datetime.datetime(2026, 1, 2, 9, tzinfo=UTC)}]
    Path("e.csv").write_text(lines_of(TIMED))
    Path("e.jsonl").write_text("\n".join(map(json.dumps, TIMED)))
    query = ceql.compile(PAIRS)
    pandas = pytest.importorskip("pandas")
    typed = [{**row, "date": datetime.date.fromisoformat(row["date"]),
              "clock": datetime.time.fromisoformat(row["clock"])} for row in TIMED]  # fmt: skip
    midnights = pandas.DataFrame(TIMED).assign(date=lambda rows: pandas.to_datetime(rows["date"]))
    for events in ("e.csv", "e.jsonl", TIMED, pa.Table.from_pylist(TIMED), pa.Table.from_pylist(typed),
                   pandas.DataFrame(TIMED), midnights):  # fmt: skip
        assert query.run(events, time=time).to_arrow().to_pylist() == wanted, type(events)
    assert query.run("e.csv", time=time).count() == 1 and list(query.alerts().run("e.csv", time=time)) == [1]
    for again in (False, True):
        session, found = query.open(time=time), []
        for row in TIMED:
            found += session.push(row)
            if again:
                session = query.open(session.snapshot())
        assert [(match.row["v"], match.row["w"]) for match in found] == [(1, 2)]
    assert main(["run", PAIRS, "--events", "e.csv", "--time", time, "--format", "csv"]) == 0
    assert capsys.readouterr().out == "v,w,at\n1,2,2026-01-02T09:00:00Z\n"


def test_columns_stay_as_they_are_written_and_unnamed_ones_as_they_were() -> None:
    Path("e.csv").write_text("day;at;v\n01/02/2026;0900;1\n01/02/2026;0930;2\n")
    query = ceql.compile("SELECT a.day, a.at WHERE ANY AS a ; ANY AS b WITHIN 30 MINUTES")
    found = query.run("e.csv", time="day,at", time_format="%m/%d/%Y %H%M").to_arrow().to_pylist()
    assert found == [{"day": "01/02/2026", "at": "0900"}]
    row = ceql.compile("SELECT a.day, a.at WHERE ANY AS a").run("e.csv").to_arrow().to_pylist()[0]
    assert row == {"day": "01/02/2026", "at": 900}


def test_a_column_of_that_name_is_itself() -> None:
    Path("e.csv").write_text('"date,clock",date,clock\n5,2026-01-02,09:00\n6,2026-01-02,09:01\n')
    found = ceql.compile("SELECT MATCH_START AS at WHERE ANY").run("e.csv", time="date,clock").to_arrow()
    assert found["at"].to_pylist() == [5, 6]


@pytest.mark.parametrize(("text", "words", "said"), [
    ("date,clock\n2026-01-02,\n", {}, "e.csv, event 1: this event has no time"),
    ("date,clock\n2026-01-02,09:00\n2026-01-02,9 am\n", {}, "e.csv, event 2: '2026-01-02 9 am' is not a time"),
    ("date,clok\n2026-01-02,09:00\n", {}, "e.csv: no column 'clock' to take times from; there are: date, clok\n"
     "hint: did you mean 'clok'?"),
    ("day,hour\n2026-01-02,09:00\n", {}, "e.csv: no column 'date' to take times from"),
    ("date,clock\n2026-01-02,0900\n", {"column_types": "clock=INT"}, 
     "e.csv: column 'clock' holds values of type int64, and times are joined of a date and a time of day"),
    ("date,clock\n2026-01-03,09:00\n2026-01-02,09:00\n", {}, "e.csv, event 2"),
])  # fmt: skip
def test_dates_and_clocks_that_are_none(text: str, words: dict[str, Any], said: str) -> None:
    Path("e.csv").write_text(text)
    with pytest.raises(EventError) as told:
        ceql.compile("SELECT * WHERE ANY WITHIN 1 HOUR").run("e.csv", time="date,clock", **words).to_arrow()
    assert str(told.value).startswith(said), str(told.value)


def test_random_dates_and_clocks_are_those_of_datetime() -> None:
    draw = random.Random(37)
    start = datetime.datetime(1999, 12, 31, 23, tzinfo=UTC)
    times = sorted(start + datetime.timedelta(seconds=draw.randrange(10**9)) for _ in range(500))
    rows = [{"d": time.date().isoformat(), "c": time.time().isoformat(), "v": 1} for time in times]
    Path("e.csv").write_text(lines_of(rows))
    query = ceql.compile("SELECT MATCH_START AS at WHERE ANY")
    for events in ("e.csv", rows):
        assert query.run(events, time="d,c").to_arrow()["at"].to_pylist() == times
