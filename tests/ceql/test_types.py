"""Schemas: where they come from, and what is said of a query that does not fit, before the first event."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ceql
from ceql.cli.main import main
from ceql.semantics.schemas import read_schema
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError

SCHEMA: dict[str, Any] = {
    "t": "time",
    "SELL": {"name": "text", "price": "number", "open": "truth", "h": "list"},
    "BUY": {"name": "text", "volume": "int"},
}

WRONG = [
    ("A FILTER A.prise > 3", "1:25: no event has an attribute prise", "did you mean price?"),
    ("SELL FILTER SELL[zzz = 1]", "1:33: no event has an attribute zzz", "the attributes of schema are t, name, price"),
    (
        "SELL AS x ; BUY AS y FILTER y.t - x.t > 30",
        "y.t - x.t > 30: a duration cannot be combined with a number",
        "in schema, y.t - x.t is a duration; a number of seconds is a time by TO_TIME(x.time, 's')",
    ),
    ("SELL AS x FILTER x[price LIKE 'a']", "a number cannot be combined with a text", "in schema, price is a number"),
    ("SELL AS x FILTER x.name > 3", "1:33: x.name > 3: a text cannot be combined with a number", "x.name is a text"),
    ("SELL AS x FILTER x[price = 'a']", "1:35: price = 'a': a number cannot be combined with a text", "price is a"),
    (
        "SELL AS x FILTER x.name + 1 > 3",
        "1:33: x.name + 1: a text cannot be combined with a number",
        "x.name is a text",
    ),
    ("SELL AS x FILTER -x.name > 3", "1:33: -x.name: a text cannot be combined with a number", "x.name is a text"),
    ("SELL AS x FILTER x.price LIKE 'a'", "1:33: x.price LIKE 'a': a number cannot be combined with a text", "x.price"),
    ("SELL AS x FILTER x.name IN {'a', 3}", "a text cannot be combined with a number", "x.name is a text"),
    ("SELL AS x FILTER x.price IN RANGE('a', 'b')", "a number cannot be combined with a text", "x.price is a number"),
    ("SELL AS x FILTER x.open > TRUE", "1:33: x.open > TRUE: a truth value cannot be combined with a truth value", ""),
    ("SELL AS x FILTER x.t > 'noon'", "1:39: 'noon' is not a time", ""),
    ("SELL AS x FILTER x.t > 2026-01-05", "cannot be combined", "a number; a time is written as a text: '2026-01-05',"),
    ("SELL AS x FILTER x.t > 5", "a time cannot be combined with a number", "x.t is a time"),
    ("SELL AS x FILTER x.h = x.h", "a list of numbers cannot be combined with a list of numbers", ""),
    (
        "SELL AS x ; BUY AS y FILTER x.name = y.volume",
        "a text cannot be combined with a number",
        "y.volume is a number",
    ),
    ("SELL+ AS x FILTER AVG(x.name) > 3", "1:38: AVG of x.name, which is a text", "AVG is of numbers"),
    ("SELL+ AS x FILTER MAX(x.open) = TRUE", "MAX of a truth value", "these have no order"),
    ("SELL+ AS x FILTER MAX(x.name) > 3", "a text cannot be combined with a number", ""),
    ("SELL AS x ; BUY AS y FILTER CORR(x.h, x.price) > 0", "CORR of x.price, which is a number", "lists of numbers"),
    ("SELL ; NOT (BUY AS n FILTER n.nam = 'a') ; SELL", "1:44: no event has an attribute nam", "did you mean name?"),
    ("SELL WITHIN 5 [name]", "1:31: WITHIN is measured in name, which is a text", "numbers or times"),
    ("SELL WITHIN 5 [stock_time]", "no event has an attribute stock_time", "the attributes of schema are"),
    ("SELL PARTITION BY [nam]", "1:35: no event has an attribute nam", "did you mean name?"),
    ("SELL PARTITION BY [h]", "PARTITION BY h, which is a list of numbers", ""),
]
RIGHT = [
    "SELL AS x ; BUY AS y FILTER x.price > y.volume AND x.name = y.name",
    "SELL AS x FILTER x.volume > 3",  # only BUY has it: NULL
    "(SELL OR BUY) AS x FILTER x.price > 3 AND x.name LIKE 'a.*'",
    "SELL AS x FILTER x.t > '2026-01-01' AND x.open = TRUE",
    "(NOT SELL) AS x FILTER x.volume > 3",
    "SELL+ AS x FILTER AVG(x.price) > 3 AND COUNT(x.name) > 1 AND FIRST(x.name) = 'a' AND MIN(x.t) < MAX(x.t)",
    "SELL AS x ; SELL AS y FILTER CORR(x.h, y.h) > 0.5 WITHIN 5 [t]",
    "SELL PARTITION BY [price, volume], [name]",
]


@pytest.mark.parametrize(("text", "problem", "hint"), WRONG, ids=[w[0] for w in WRONG])
def test_wrong(text: str, problem: str, hint: str) -> None:
    with pytest.raises(QuerySemanticsError) as caught:
        ceql.compile(f"SELECT * WHERE {text}").run([], schema=SCHEMA)
    message = str(caught.value)
    assert problem in message and hint in message and "^" in message
    said = [part.split(" is ")[0] for part in message.split("hint: ")[-1].removeprefix("in schema, ").split(" and ")]
    assert len(said) == len(set(said)), "one thing is said to be of two kinds"


@pytest.mark.parametrize("text", RIGHT)
def test_right(text: str) -> None:
    query = ceql.compile(f"SELECT * WHERE {text}")
    query.run([], schema=SCHEMA)
    query.open(schema=SCHEMA)


def test_listed_attributes_are_looked_up() -> None:
    with pytest.raises(QuerySemanticsError, match="1:10: no event has an attribute prise"):
        ceql.compile("SELECT x[prise] WHERE SELL AS x").open(schema=SCHEMA)


TABLE = pa.table({"type": ["A", "B"], "name": ["x", "y"], "price": [1, 2], "at": [datetime.datetime(2026, 1, 1)] * 2})


def sources(tmp_path: Path) -> list[Any]:
    """The same events in every form whose columns are known from the start."""
    import pandas
    import pyarrow.csv
    import pyarrow.parquet

    pyarrow.csv.write_csv(TABLE, tmp_path / "events.csv")
    pyarrow.parquet.write_table(TABLE, tmp_path / "events.parquet")
    frame = pandas.DataFrame(TABLE.to_pydict())
    return [TABLE, TABLE.to_batches()[0], frame, str(tmp_path / "events.csv"), str(tmp_path / "events.parquet")]


def test_columns_of_the_input_are_a_schema(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        for text, problem in [
            ("A FILTER A.prize > 3", "1:25: no event has an attribute prize"),
            ("A ; B FILTER A.name > B.price", "a text cannot be combined with a number"),
            ("A WITHIN 3 [name]", "WITHIN is measured in name, which is a text"),
            ("A PARTITION BY [key]", "no event has an attribute key"),
        ]:
            with pytest.raises(QuerySemanticsError, match=problem):
                ceql.compile(f"SELECT * WHERE {text}").run(source).count()
            with pytest.raises(QuerySemanticsError, match=problem):
                list(ceql.compile(f"SELECT * WHERE {text}").run(source))
        right = "SELECT * WHERE A ; B FILTER A.price < B.price AND A.at <= '2026-02-01'"
        assert ceql.compile(right).run(source).count() == 1


def test_an_empty_table_is_checked_too() -> None:
    with pytest.raises(QuerySemanticsError, match="no event has an attribute prize"):
        ceql.compile("SELECT * WHERE A FILTER A.prize > 3").run(TABLE.schema.empty_table()).count()


def test_an_attribute_of_another_stream_is_null() -> None:
    other = pa.table({"type": ["A"], "volume": [7]})
    query = ceql.compile("SELECT * FROM S, T WHERE S>A AS x FILTER x.volume > 3")
    assert query.run(streams={"S": TABLE, "T": other}).count() == 0
    slip = ceql.compile("SELECT * FROM S, T WHERE S>A AS x FILTER x.volum > 3")
    with pytest.raises(QuerySemanticsError, match=r"(?s)no event has an attribute volum.*did you mean volume"):
        slip.run(streams={"S": TABLE, "T": other}).count()
    dicts = [{"type": "A", "volum": 5}]
    assert ceql.compile("SELECT * FROM S, T WHERE T>A AS x FILTER x.volum > 3").run(
        streams={"S": TABLE, "T": dicts}
    ).count() == 1, "dicts may bring any attribute"  # fmt: skip


def test_what_may_come_later_is_null() -> None:
    """Dicts, and JSON Lines, have no columns from the start."""
    assert ceql.compile("SELECT * WHERE A FILTER A.prize > 3").run([{"type": "A"}]).count() == 0
    parts = [[{"type": "A"}], [{"type": "A", "prize": 5}]]
    assert ceql.compile("SELECT * WHERE A FILTER A.prize > 3").run(parts).count() == 1


def test_input_that_is_not_what_the_schema_says() -> None:
    query = ceql.compile("SELECT * WHERE A FILTER A.price > 3")
    with pytest.raises(EventError, match="attribute name is a text here and a number in schema"):
        query.run(TABLE, schema={"price": "number", "name": "number"}).count()
    assert query.run(TABLE, schema=TABLE.schema).count() == 0


def test_schemas_of_files(tmp_path: Path) -> None:
    lines = tmp_path / "types.txt"
    lines.write_text("# attributes of all\nt: timestamp\nSELL.name: string  # of one type\nSELL.price: double\n")
    document = tmp_path / "types.json"
    document.write_text(json.dumps({"t": "time", "SELL": {"name": "text", "price": "number"}}))
    first, second = read_schema(str(lines)), read_schema(document)
    assert (first.common, first.of_type) == (second.common, second.of_type)
    assert first.kind("price", frozenset({"SELL"})) == "number" and first.kind("price", frozenset({"BUY"})) is None
    kinds = read_schema(pa.schema({"a": pa.int8(), "b": pa.dictionary(pa.int8(), pa.string()), "c": pa.date32(),
                                   "d": pa.list_(pa.float32()), "e": pa.bool_(), "f": pa.null()}))  # fmt: skip
    assert list(kinds.common.values()) == ["number", "text", "time", "list", "truth", None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("price number", "types:1: 'price number' is not NAME: KIND"),
        ("price: numbre", "types: price is of no known kind: 'numbre'"),
        ("{ 'price' }", "types:1:3: this is not JSON"),
    ],
)
def test_wrong_schemas(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "types").write_text(text)
    with pytest.raises(OptionError) as caught:
        read_schema(str(tmp_path / "types"))
    assert message in str(caught.value)


def test_schema_of_no_kind() -> None:
    for given in (7, "no/such/file"):
        with pytest.raises(OptionError):
            ceql.compile("SELECT * WHERE A").run([], schema=given)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "query.ceql").write_text("SELECT * WHERE A AS x\nFILTER x.prise > 3")
    (tmp_path / "types").write_text("price: number")
    (tmp_path / "events.jsonl").write_text('{"type": "A", "price": 5}\n')
    command = ["run", str(tmp_path / "query.ceql"), "--events", str(tmp_path / "events.jsonl")]
    assert main([*command, "--schema", str(tmp_path / "types")]) == 2
    place = "query.ceql:2:8: no event has an attribute prise\n  FILTER x.prise > 3\n         ^^^^^^^\n"
    assert capsys.readouterr().err.endswith(place + "hint: did you mean price?\n")
    assert main(command) == 0
    assert "note: no event has an attribute prise" in capsys.readouterr().err
