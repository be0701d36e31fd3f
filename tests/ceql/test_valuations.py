"""Valuations and listed attributes in every form: match objects, Arrow, pandas, CSV, JSON, Parquet, the table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import OptionError

EVENTS = [
    {"type": "A", "price": 3, "name": "a b"},
    {"type": "B", "price": 2},
    {"type": "A", "price": 7, "name": "c"},
    {"type": "B", "price": 5},
]
LISTED = "SELECT y[price, missing], x[name] WHERE A+ AS x ; B AS y FILTER y.price > 4"


def test_matches_say_what_variables_took() -> None:
    matches = list(ceql.compile("SELECT * WHERE A+ AS x ; B AS y FILTER y.price > 4").run(EVENTS, valuations=True))
    found = sorted(str(m.bindings) for m in matches)
    assert found == ["{'x': [0, 2], 'y': [3]}", "{'x': [0], 'y': [3]}", "{'x': [2], 'y': [3]}"]
    (both,) = [m for m in matches if len(m.positions) == 3]
    assert both.attributes["x"] == [EVENTS[0], EVENTS[2]] and both.attributes["y"] == [EVENTS[3]]
    assert both.events == [EVENTS[0], EVENTS[2], EVENTS[3]]
    plain = ceql.compile("SELECT * WHERE A+ AS x ; B AS y").run(EVENTS)
    assert all(m.bindings == {} and m.attributes == {} for m in plain)


def test_listed_attributes_are_all_that_is_shown() -> None:
    (both,) = [m for m in ceql.compile(LISTED).run(EVENTS) if len(m.positions) == 3]
    assert both.bindings == {"y": [3], "x": [0, 2]}
    assert both.attributes == {"y": [{"price": 5}], "x": [{"name": "a b"}, {"name": "c"}]}
    assert both.events == [{"name": "a b"}, {"name": "c"}, {"price": 5}]
    query = ceql.compile("SELECT x[name], p[price] WHERE (A AS x ; B AS y) AS p")
    match = next(iter(query.run(EVENTS)))
    assert match.events == [{"name": "a b", "price": 3}, {"price": 2}], "what each of an event's variables lists"
    assert ceql.compile("SELECT x[name], x WHERE A AS x").run(EVENTS).to_arrow().column_names[5:] == [
        "x", "x.type", "x.price", "x.name",
    ]  # fmt: skip


def test_columns() -> None:
    matches = ceql.compile(LISTED).run(EVENTS)
    table = matches.to_arrow()
    names = ["start", "end", "positions", "start_time", "end_time", "y", "y.price", "y.missing", "x", "x.name"]
    assert table.column_names == names
    row = next(r for r in table.to_pylist() if len(r["positions"]) == 3)
    assert (row["y"], row["y.price"], row["y.missing"]) == ([3], [5], [None])
    assert (row["x"], row["x.name"]) == ([0, 2], ["a b", "c"])
    assert matches.to_pandas().columns.tolist() == names
    assert ceql.compile(LISTED).run([{"type": "C"}]).to_arrow().column_names == names


def test_batches_that_know_different_attributes() -> None:
    """One table all the same; NULL where a batch does not have an attribute."""
    parts = [pa.table({"type": ["A"], "p": [1]}), pa.table({"type": ["A"], "q": ["x"]})]
    table = ceql.compile("SELECT * WHERE A AS x").run(parts, valuations=True).to_arrow()
    assert table.column("x.p").to_pylist() == [[1], None] and table.column("x.q").to_pylist() == [None, ["x"]]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "query.ceql").write_text(LISTED)
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    return tmp_path


def run(files: Path, *more: str, query: str | None = None) -> int:
    if query is not None:
        (files / "query.ceql").write_text(query)
    return main(["run", str(files / "query.ceql"), "--events", str(files / "events.jsonl"), *more])


def test_csv(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files, "--format", "csv") == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "start,end,positions,start_time,end_time,y,y.price,y.missing,x,x.name"
    assert '0,3,0 2 3,0,0.003,3,[5],[null],0 2,"[""a b"", ""c""]"' in rows and len(rows) == 3
    assert run(files, "--format", "csv", query="SELECT x[name], y WHERE Z AS x ; B AS y") == 0
    assert capsys.readouterr().out == "start,end,positions,start_time,end_time,x,x.name,y\n"


def test_json_lines(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files, "--format", "jsonl") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    row = next(r for r in rows if len(r["positions"]) == 3)
    assert row["bindings"] == {"y": [3], "x": [0, 2]}
    assert row["attributes"] == {"y": [{"price": 5}], "x": [{"name": "a b"}, {"name": "c"}]}


def test_without_lists_all_attributes_are_shown(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT * WHERE A AS x ; B AS y"
    assert run(files, "--valuations", "--format", "csv", "--limit", "1", query=query) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.endswith("end_time,x,x.type,x.price,x.name,y,y.type,y.price,y.name")
    assert row == '0,1,0 1,0,0.001,0,"[""A""]",[3],"[""a b""]",1,"[""B""]",[2],[null]'
    assert run(files, "--format", "jsonl", "--limit", "1", query=query) == 0
    assert "attributes" not in json.loads(capsys.readouterr().out)


def test_parquet(files: Path) -> None:
    path = files / "out.parquet"
    assert run(files, "--format", "parquet", "--output", str(path)) == 0
    table = pq.read_table(path)
    assert table.column_names[5:] == ["y", "y.price", "y.missing", "x", "x.name"]
    assert sorted(table.column("x.name").to_pylist()) == [["a b"], ["a b", "c"], ["c"]]
    assert run(files, "--format", "parquet", "--output", str(path), query="SELECT x[name] WHERE Z AS x") == 0
    assert pq.read_table(path).column_names[5:] == ["x", "x.name"]


def test_attributes_that_come_late(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file's columns are those of its first matches, unless a schema says what there will be."""
    parts = [pa.table({"type": ["A"]}), pa.table({"type": ["A"], "price": [5.0]})]
    for number, part in enumerate(parts):
        pq.write_table(part, files / f"part{number}.parquet")
    (files / "query.ceql").write_text("SELECT * WHERE A AS x")
    (files / "types").write_text("type: text\nprice: number\n")
    command = ["run", str(files / "query.ceql"), "--events", str(files / "part*.parquet"), "--valuations"]
    out = files / "out.parquet"
    for form in ("csv", "parquet"):
        assert main([*command, "--format", form, "--output", str(out)]) == 3
        assert "price comes up after" in capsys.readouterr().err
        assert main([*command, "--format", form, "--output", str(out), "--schema", str(files / "types")]) == 0
    assert pq.read_table(out).column("x.price").to_pylist() == [[None], [5.0]]
    assert main([*command, "--format", "jsonl"]) == 0


def test_the_table(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["bindings", "from", "to", "start", "end", "positions"]
    assert any(line.startswith("y=3  y.price=5  y.missing=NULL  x=0,2  x.name=a b,c ") for line in lines)


def test_snapshots_remember_that_matches_are_valuations() -> None:
    query = ceql.compile("SELECT * WHERE (A AS x OR A AS z) ; B AS y")
    stream = query.open(valuations=True)
    stream.push(EVENTS[:1])
    found = query.open(stream.snapshot()).push(EVENTS[1:2])
    assert sorted(str(m.bindings) for m in found) == ["{'x': [0], 'y': [1]}", "{'z': [0], 'y': [1]}"]
    with pytest.raises(OptionError, match="of another query"):
        ceql.compile("SELECT * WHERE A").open(stream.snapshot())


def test_events_one_by_one() -> None:
    with ceql.compile("SELECT x[price] WHERE A AS x ; B AS y").open() as stream:
        found = [match for event in EVENTS for match in stream.push(event)]
    assert sorted(m.attributes["x"][0]["price"] for m in found) == [3, 3, 7]
