"""The kinds that the caller gives columns of CSV: the same in one block and in many, and errors that name the place."""

from __future__ import annotations

import datetime
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions, blocks, tables
from spaseq.core.events.timestamps import form_of

ROWS = "type,id,zip,price,ok,at\nA,007,01234,1,yes,2026-01-02\nB,008,99999,2.5,no,2026-01-03T10:00:00Z\n"
UTC = datetime.UTC


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str, wanted: list[str] | None = None, **words: Any) -> tuple[pa.Table, list[str]]:
    """The table and the guesses."""
    Path("e.csv").write_text(text)
    form = form_of(EventOptions.parse(**words))
    return pa.concat_tables(tables("e.csv", wanted, form), promote_options="permissive"), form.guesses


@pytest.mark.parametrize(("words", "name", "values"), [
    ("id=TEXT", "id", ["007", "008"]), ("id=varchar", "id", ["007", "008"]), ({"id": "String"}, "id", ["007", "008"]),
    ("id=INT", "id", [7, 8]), ("price=FLOAT", "price", [1.0, 2.5]), ("id=NUMBER", "id", [7.0, 8.0]),
    ("id = DOUBLE , ok = BOOL", "ok", [True, False]), ("ok=BOOLEAN,id=BIGINT", "id", [7, 8]),
    ("at=TIMESTAMP", "at", [datetime.datetime(2026, 1, 2, tzinfo=UTC), datetime.datetime(2026, 1, 3, 10, tzinfo=UTC)]),
    ("at=TEXT", "at", ["2026-01-02", "2026-01-03T10:00:00Z"]), ("price=TEXT", "price", ["1", "2.5"]),
])  # fmt: skip
def test_a_kind_by_each_word(words: Any, name: str, values: list[Any]) -> None:
    table, said = read(ROWS, column_types=words)
    found = table[name].to_pylist()
    assert found == values and all(isinstance(v, type(w)) for v, w in zip(found, values, strict=True))
    assert not any(name in note for note in said)
    assert read(ROWS, [name], column_types=words)[0][name].to_pylist() == values
    assert read(ROWS, ["type"], column_types=words)[0][name].to_pylist() == [None, None]  # it is not looked at


def test_empty_fields_are_null_and_quotes_make_a_text() -> None:
    table, _ = read('a,b\n,1\n"",2\nNULL,3\n"NULL",4\n', column_types="a=TEXT, b=TEXT")
    assert table["a"].to_pylist() == [None, "", None, "NULL"]
    assert read("a,b\n,1\n,2\n", column_types="a=TIMESTAMP")[0]["a"].to_pylist() == [None, None]
    assert read("a,b\n,1\n,2\n", column_types="a=BOOL")[0].schema.field("a").type == pa.bool_()


@pytest.mark.parametrize(("text", "words", "place", "said"), [
    (ROWS, {"column_types": "price=INTEGER"}, 3, "attribute price is '2.5' here, and column_types says INTEGER"),
    (ROWS, {"column_types": {"ok": "int"}}, 2, "attribute ok is 'yes' here, and column_types says int"),
    (ROWS, {"column_types": "price=BOOL"}, 3, "attribute price is '2.5' here, and column_types says BOOL"),
    (ROWS, {"column_types": "id=TIMESTAMP"}, 2, "attribute id is '007' here, and column_types says TIMESTAMP"),
    (ROWS, {"column_types": "at=TIMESTAMP", "time_format": "%Y-%m-%d"}, 3, "attribute at is '2026-01-03T10:00:00Z'"),
    ('a,n\n"x\ny",1\n\n"z",two\n', {"column_types": "n=FLOAT"}, 5, "attribute n is 'two' here, and column_types says"),
    ('a,n\n"x\ny",t\n\n"z",two\n', {"column_types": "n=BOOL"}, 5, "attribute n is 'two' here, and column_types says"),
    ("a;n\n1;1.234\n2;1.5x\n", {"column_types": "n=FLOAT", "decimal": ","}, 3, "attribute n is '1.5x' here"),
    ("a;n\n1;1.234\n2;1,5\n", {"column_types": "n=INT", "decimal": ","}, 3, "attribute n is '1,5' here"),
    ("n\n1\n9.999.999.999.999.999.999\n", {"column_types": "n=INT", "decimal": ","}, 3, "attribute n is '9.999.999"),
    ("n\n1\n9223372036854775808\n", {"column_types": "n=INT"}, 3, "attribute n is '9223372036854775808' here"),
])  # fmt: skip
def test_another_value_is_an_error_with_its_row(text: str, words: dict[str, Any], place: int, said: str) -> None:
    with pytest.raises(EventError) as told:
        read(text, **words)
    assert str(told.value).startswith(f"e.csv:{place}: {said}"), str(told.value)
    assert "=TEXT" in told.value.hint or "decimal" in told.value.hint


def test_decimal_commas_and_groups_of_three() -> None:
    words: dict[str, Any] = {"delimiter": ";", "decimal": ","}
    table, _ = read("n;m;t\n1.234;1.234,5;1,5\n7;2;2,5\n", column_types="n=INT, m=FLOAT, t=TEXT", **words)
    assert table.to_pylist() == [{"n": 1234, "m": 1234.5, "t": "1,5"}, {"n": 7, "m": 2.0, "t": "2,5"}]
    assert read("n;m\n1.234;1\n7;2\n", column_types="n=FLOAT", **words)[0].schema.field("n").type == pa.float64()
    table, said = read("n;t\n1.5;1,5\n2.5;3,5\n", column_types="t=TEXT")  # a text shows no decimal comma
    assert table["n"].to_pylist() == [1.5, 2.5] and len(said) == 1


def test_whole_numbers_among_doubles_stay_exact() -> None:
    table, _ = read("n\n9007199254740993\n1.5\n", column_types="n=NUMBER")
    assert table["n"].to_pylist() == [9007199254740993, 1.5]


def test_one_block_and_many_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(37)
    lines = [f"{draw.randrange(1000):03d},{draw.choice(['t', 'no', '1', ''])},2026-01-{draw.randrange(1, 29):02d},"
             f"{draw.choice(['1', '2.5', ''])}" for _ in range(300)]  # fmt: skip
    text, words = "id,ok,at,n\n" + "\n".join(lines) + "\n", "id=TEXT, ok=BOOL, at=TIMESTAMP, n=FLOAT"
    whole, _ = read(text, column_types=words)
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    parts, _ = read(text, column_types=words)
    assert whole.to_pylist() == parts.to_pylist() and whole.schema == parts.schema
    with pytest.raises(EventError, match=r"e.csv:302: attribute ok is 'x' here, and column_types says BOOL"):
        read(text + "001,x,,\n", column_types=words)


@pytest.mark.parametrize(("given", "said"), [
    ("id", "column_types 'id': not NAME=KIND\nhint: for example id=TEXT, price=FLOAT"),
    ("id=", "column_types 'id=': not NAME=KIND"), ("", "column_types '': not NAME=KIND"),
    ("id=TEXT,", "column_types '': not NAME=KIND"), ("id=TEXT, id=INT", "column_types names id twice"),
    ("id=TXT", "column_types id=TXT: no kind of values\nhint: did you mean TEXT?"),
    ({"id": "blob"}, "column_types id=blob: no kind of values\nhint: kinds are NUMBER, INTEGER, TEXT, BOOLEAN, TIMEST"),
    ({"id": 5}, "column_types: 5 is not a text"), ({5: "TEXT"}, "column_types: 5 is not a text"),
    (5, "column_types cannot be a int"), ([("id", "TEXT")], "column_types cannot be a list"),
])  # fmt: skip
def test_words_that_are_none(given: Any, said: str) -> None:
    with pytest.raises(OptionError) as told:
        EventOptions.parse(column_types=given)
    assert str(told.value).startswith(said)


def test_a_column_that_no_file_has() -> None:
    Path("e.csv").write_text(ROWS)
    Path("f.csv").write_text("type,usr\nA,1\n")
    query = ceql.compile("SELECT x.id WHERE ANY AS x")
    with pytest.raises(EventError) as told:
        query.run("e.csv", column_types={"prise": "TEXT"}).to_arrow()
    assert str(told.value) == (
        "e.csv: no column 'prise', to which column_types gives a kind; there are: type, id, zip, price, ok, at\n"
        "hint: did you mean 'price'?"
    )
    for text in ("type,id\n", ROWS):  # a file without a row too
        Path("e.csv").write_text(text)
        with pytest.raises(EventError, match="no column 'nope'"):
            query.run("e.csv", column_types="nope=TEXT").count()
    both = query.run(types={"A": "e.csv", "B": "f.csv"}, column_types="id=TEXT, usr=TEXT")  # one has each
    assert sorted(str(row["id"]) for row in both.to_arrow().to_pylist()) == ["007", "008", "None"]
    Path("e.jsonl").write_text('{"type": "A", "id": 1}\n')
    mixed = ceql.compile("SELECT x.usr WHERE B AS x").run(types={"A": "e.jsonl", "B": "f.csv"}, column_types="usr=TEXT")
    assert mixed.to_arrow()["usr"].to_pylist() == ["1"]
    for events in ("e.jsonl", [{"type": "A", "id": 1}], pa.table({"type": ["A"], "id": [1]})):
        with pytest.raises(OptionError, match="kinds to columns of CSV, and no events are read from CSV"):
            query.run(events, column_types="id=TEXT").count()
    with pytest.raises(OptionError, match="no events are read from CSV"):
        query.open(column_types="id=TEXT")


@pytest.mark.parametrize(("text", "note"), [
    ("a,zip\n1,01234\n2,99999\n", "01234 in zip of e.csv is read as the number 1234 (column_types=\"zip=TEXT\" keeps"),
    ("zip\n00\n01\n\n", "00 in zip of e.csv is read as the number 0"),
    ('zip\n"12345"\n"02345"\n', "02345 in zip of e.csv is read as the number 2345"),
    ("zip,n\n12345,1\n02345,1\n,2\n", "02345 in zip of e.csv"),
    ("zip\n12345\n2345\n", None), ("zip\n0\n5\n", None), ("zip\n012\n1234\n", None), ("zip\n-12\n012\n", None),
    ("zip\n01234\n1.5\n", None), ("time\n01\n02\n", None), ("zip\n12345\n 0123\n", None), ("zip\n10\n99\n", None),
])  # fmt: skip
def test_zeros_that_a_number_loses_are_noted(text: str, note: str | None) -> None:
    _, said = read(text)
    assert [line for line in said if "is read as the number" in line][:1] == ([] if note is None else said[:1])
    assert note is None or said[0].startswith(note)


def test_zeros_far_behind_the_first_lines_are_noted() -> None:
    many = "".join(f"{10000 + n}\n" for n in range(20_000))
    assert len(read(f"zip\n{many}00001\n")[1]) == 1 and not read(f"zip\n{many}123\n")[1]


KEYS = "SELECT a.id, b.id AS other, CONCAT(a.id, '!') AS said WHERE ANY AS a ; ANY AS b FILTER a.id < b.id"


def test_every_road_of_the_command_takes_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("e.csv").write_text(ROWS)
    words = ["--events", "e.csv", "--column-types", "id=TEXT, price=FLOAT", "--format"]
    assert main(["run", KEYS, *words, "csv"]) == 0
    assert capsys.readouterr().out == "id,other,said\n007,008,007!\n"
    assert main(["run", KEYS.replace("a.id, b.id AS other, CONCAT(a.id, '!') AS said", "*"), *words, "count"]) == 0
    assert capsys.readouterr().out == "1\n"
    query = "SELECT * WHERE ANY AS a FILTER a[id = '008']"
    assert main(["alert", query, *words, "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["position"] == 1
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(ROWS.encode()))))
    assert main(["alert", query, "--follow", "--events", "-", *words[2:], "count"]) == 2  # which is read whole
    assert main(["alert", query, "--follow", "--events", "-", *words[2:], "csv"]) == 0
    assert capsys.readouterr().out == "position,time,type\n1,1000000,B\n".replace("1000000", "0.001")
    assert main(["forecast", "SELECT * WHERE A : B FILTER B[id = '008']", "--train", "e.csv", *words, "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith(",true")
    assert main(["run", KEYS, *words[:2], "--column-types", "ID=TEXT"]) == 3
    assert "no column 'ID', to which --column-types gives a kind" in (said := capsys.readouterr().err)
    assert "did you mean 'id'?" in said
    assert main(["run", KEYS, *words[:2], "--column-types", "price=INT"]) == 3
    assert "e.csv:3: attribute price is '2.5' here, and --column-types says INT" in (said := capsys.readouterr().err)
    assert "hint: --column-types price=TEXT takes every value as it is" in said
    assert main(["run", "SELECT x.zip WHERE ANY AS x", *words[:2], "--format", "csv"]) == 0
    assert "(--column-types zip=TEXT keeps the zeros)" in capsys.readouterr().err


def test_kinds_reach_the_check_of_the_query() -> None:
    """As the columns of the file would: id is a text now."""
    Path("e.csv").write_text(ROWS)
    query = ceql.compile("SELECT x.id WHERE ANY AS x FILTER x.id > 7")
    assert query.run("e.csv").to_arrow()["id"].to_pylist() == [8]
    with pytest.raises(ceql.QueryError, match=r"x\.id is a text"):
        query.run("e.csv", column_types="id=TEXT").count()


def test_kinds_of_types_and_times() -> None:
    Path("e.csv").write_text("type,time\n007,20260102\n008,20260103\n")
    query = ceql.compile("SELECT MATCH_START AS at WHERE `007` ; `008` WITHIN 1 DAY")
    found = query.run("e.csv", column_types="type=TEXT, time=TEXT", time_format="%Y%m%d").to_arrow()
    assert found["at"].to_pylist() == [datetime.datetime(2026, 1, 2, tzinfo=UTC)]
