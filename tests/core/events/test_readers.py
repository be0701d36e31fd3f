"""Readers: every source gives the same events, and damaged ones give one clear error."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import blocks, csv_files
from spaseq.core.events.ahead import ahead
from spaseq.core.events.readers import common_schema, tables

EVENTS: list[dict[str, Any]] = [
    {"type": "A", "price": 1.5, "volume": 10, "name": "x"},
    {"type": "B", "price": None, "volume": 20, "name": None},
    {"type": "A", "price": 2.0, "volume": None, "name": "y, z"},
]
CSV = 'type,price,volume,name\nA,1.5,10,x\nB,,20,\nA,2.0,,"y, z"\n'
TSV = "type\tprice\tvolume\tname\nA\t1.5\t10\tx\nB\t\t20\t\nA\t2.0\t\ty, z\n"
JSONL = "\n".join(json.dumps({k: v for k, v in e.items() if v is not None}) for e in EVENTS) + "\n\n"


def rows(source: Any) -> list[dict[str, Any]]:
    return [row for table in tables(source) for row in table.to_pylist()]


def make(folder: pathlib.Path, name: str) -> str:
    path = folder / name
    text = CSV if ".csv" in name else TSV if ".tsv" in name else JSONL
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(EVENTS), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif name.endswith(".zst"):
        path.write_bytes(zstandard.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    "name", ["e.csv", "e.tsv", "e.jsonl", "e.ndjson", "e.parquet", "e.csv.gz", "e.csv.zst", "e.jsonl.gz", "e.tsv.zst"]
)
def test_files(tmp_path: pathlib.Path, name: str) -> None:
    assert rows(make(tmp_path, name)) == EVENTS


def test_frames_tables_and_dicts() -> None:
    table = pa.Table.from_pylist(EVENTS)
    assert rows(EVENTS) == rows(table) == rows(table.to_batches()[0]) == rows(table.to_reader()) == EVENTS
    assert rows(pandas.DataFrame(EVENTS).convert_dtypes()) == EVENTS
    assert rows([{"a": 1}, {"b": 2.5}, {"a": 2.5}]) == [
        {"a": 1.0, "b": None},
        {"a": None, "b": 2.5},
        {"a": 2.5, "b": None},
    ]
    assert rows([]) == []


def test_globs_and_lists_follow_each_other(tmp_path: pathlib.Path) -> None:
    for name in ("b.csv", "a.csv"):
        make(tmp_path, name)
    (tmp_path / "a.csv").write_text("type,price,volume,name\nZ,1.0,1,q\n")
    assert [r["type"] for r in rows(str(tmp_path / "*.csv"))] == ["Z", "A", "B", "A"]
    assert [r["type"] for r in rows([str(tmp_path / "b.csv"), str(tmp_path / "a.csv")])] == ["A", "B", "A", "Z"]


@pytest.mark.parametrize("text", [CSV, TSV, JSONL], ids=["csv", "tsv", "jsonl"])
def test_standard_input_and_unknown_names_are_looked_at(tmp_path: pathlib.Path, text: str) -> None:
    (tmp_path / "events").write_text(text)
    assert rows(str(tmp_path / "events")) == EVENTS


def test_files_stream_in_blocks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    lines = [f'A,{k},"line {k}"' if k % 3 else f'A,{k},"two\nlines, {k}"' for k in range(100)]
    lines[70] = 'A,70.5,"a decimal among integers"'
    path = tmp_path / "e.csv"
    path.write_text("type,k,text\n" + "\n".join(lines))
    found = list(tables(str(path)))
    assert len(found) > 10
    texts = [t for table in found for t in table["text"].to_pylist()]
    assert len(texts) == 100 and texts[99] == "two\nlines, 99"
    (tmp_path / "e.jsonl").write_text("\n".join(json.dumps({"type": "A", "k": k}) for k in range(100)))
    found = list(tables(str(tmp_path / "e.jsonl")))
    assert len(found) > 10 and [k for table in found for k in table["k"].to_pylist()] == list(range(100))


def test_text_that_looks_missing(tmp_path: pathlib.Path) -> None:
    (tmp_path / "e.csv").write_text('type,n\nA,""\nA,\nA,NA\nA,NULL\n')
    assert [r["n"] for r in rows(str(tmp_path / "e.csv"))] == ["", None, "NA", None]


@pytest.mark.parametrize(
    ("name", "content", "message", "record"),
    [
        ("e.csv", b"type,p\nA,1\nA\n", "this record has 1 fields and the header names 2", 3),
        ("e.csv", b"type,p\n\nA,1\n\nA\n", "this record has 1 fields and the header names 2", 5),
        ("e.csv", b"\n\ntype,p\n\nA\n", "this record has 1 fields and the header names 2", 5),
        ("e.csv", b"type,p,p\nA,1,2\n", "two columns are called 'p'", 1),
        ("e.csv", b"\n\ntype,p,p\nA,1,2\n", "two columns are called 'p'", 3),
        ("e.csv", "type,p\nA,1\n".encode("utf-16"), "not UTF-8", 1),
        ("e.csv", "type,p\nA,1\n".encode("utf-16-le"), "not UTF-8", 1),
        ("e.csv", b"type,p\nA,1\nA,\xff\xfe\n", "not UTF-8", 3),
        ("e.jsonl", b'{"type": "A"}\n{"type": \n', "not JSON", 2),
        ("e.jsonl", b'{"type": "A"}\n[1]\n', "not an object", 2),
        ("e.jsonl", b'[{"type": "A"}]', "a JSON array", 1),
        ("e.csv.gz", gzip.compress(CSV.encode() * 500)[:-20], "damaged or cut off", None),
        ("e.csv.gz", b"no gzip at all, just text", "cannot be read|damaged", None),
        ("e.csv.zst", zstandard.compress(CSV.encode() * 500)[:-20], "damaged or cut off", None),
        ("e.parquet", b"PAR1 and then nothing", "cannot be read", None),
        ("e.bin", b"hello", "format of these events is not known", None),
    ],
)
def test_damaged_files(tmp_path: pathlib.Path, name: str, content: bytes, message: str, record: int | None) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(EventError, match=message) as caught:
        rows(str(path))
    assert caught.value.source == str(path) and caught.value.record == record


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("first", ["~", "~~~", "\ufeff~", "~\ufeff", "~\ufeff~", "  ~", "\ufeff"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_blank_lines_before_the_names_of_columns(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, suffix: str, first: str, end: str
) -> None:
    """With and without the columns that a query reads, and where the format is guessed."""
    text = (first + "type,p~A,1~~A,2~").replace("~", end).replace(",", "\t" if suffix == ".tsv" else ",")
    path = tmp_path / f"e{suffix}"
    path.write_bytes(text.encode())
    found = [{"type": "A", "p": 1}, {"type": "A", "p": 2}]
    assert rows(str(path)) == found
    assert [row for table in tables(str(path), ["type"]) for row in table.to_pylist()] == [
        {**f, "p": None} for f in found
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert rows("-") == found


@pytest.mark.parametrize("lines", [[b"\n"], [b"\n", b"\r\n"], [b"type\n", b"\n"], [b" \n", b"type\n", b"\r\n", b"\n"]])
def test_lines_of_a_growing_file_that_come_one_by_one_and_are_blank(lines: list[bytes]) -> None:
    class Growing:
        live = True

        def read(self, size: int) -> bytes:
            return lines.pop(0) if lines else b""

    assert list(csv_files.read_csv(blocks.Joined(b"", Growing()), "e.csv", ",")) == []


def test_parquet_with_a_column_name_that_is_not_utf8(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": ["A"], "naXe": ["x"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"naXe", b"na\x80e"))
    with pytest.raises(EventError, match=r"the name of a column is not UTF-8: b'na\\x80e'") as caught:
        rows(str(path))
    assert caught.value.source == str(path)


def test_parquet_with_two_columns_of_one_name(tmp_path: pathlib.Path) -> None:
    """Also where nothing looks at them."""
    path = str(tmp_path / "e.parquet")
    for names, wanted in (
        (["type", "p", "p"], ["type"]),
        (["type", "type", "p"], ["type"]),
        (["type", "p", "p"], None),
    ):
        pq.write_table(pa.Table.from_arrays([pa.array(["A"])] * 3, names=names), path)
        with pytest.raises(EventError, match=f"^{path}: two columns are called"):
            list(tables(path, wanted))


def test_parquet_that_reads_as_fewer_events_than_it_holds(tmp_path: pathlib.Path) -> None:
    """The reader takes a damaged header of a page at its word, and would end early."""
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"type": ["A", "B", "C"]}), path, compression="none")
    data = bytearray(path.read_bytes())
    data[5] = 6
    path.write_bytes(data)
    with pytest.raises(EventError, match="the file is damaged: its pages cannot be told apart") as caught:
        rows(str(path))
    assert caught.value.source == str(path)


def test_a_column_changes_its_mind(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    path = tmp_path / "e.csv"
    path.write_text("type,p\n" + "A,1\n" * 40 + "A,n/a\n")
    with pytest.raises(EventError, match=r"attribute p is 'n/a' here, and a number in the records before") as caught:
        rows(str(path))
    assert (caught.value.record, caught.value.attribute) == (42, "p")


def test_what_holds_no_events(tmp_path: pathlib.Path) -> None:
    for source, message in [
        (str(tmp_path), "folder"), (str(tmp_path / "no*.csv"), "no such file"), (5, "int holds no events"),
        ({"type": "A"}, "a dict is one event"),
        ([{"p": 1}, 5], "int is not an event"),
        ([{"p": 1}, {"p": 10**30}], "record 2: attribute p holds a whole number of more than 64 bits"),
        ([{"p": object()}], "of no known kind: object"),
    ]:  # fmt: skip
        with pytest.raises((EventError, OptionError), match=message):
            rows(source)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("type,p\n")
    assert rows(str(tmp_path / "empty.csv")) == rows(str(tmp_path / "header.csv")) == []


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pandas.DataFrame({"p": [1j]}), "cannot be read as columns: .*complex128"),
        (pandas.DataFrame({"p": pandas.arrays.SparseArray([1])}), "cannot be read as columns: Sparse pandas data"),
        (pandas.DataFrame([[1, 2]], columns=["p", "p"]), "cannot be read as columns: Duplicate column names"),
        (pandas.Series([1], name="p"), "a Series holds no events"),
    ],
)
def test_frames_that_are_no_columns(frame: object, message: str) -> None:
    with pytest.raises((EventError, OptionError), match=message):
        rows(frame)


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.parquet", "e.csv.gz"])
def test_columns_nobody_wants_are_null(tmp_path: pathlib.Path, name: str) -> None:
    path = make(tmp_path, name)
    kept = {"type", "price", "nothing"}
    found = [row for table in tables(path, kept) for row in table.to_pylist()]
    assert found == [{k: v if k in kept else None for k, v in e.items()} for e in EVENTS]


def test_texts_of_files_are_dictionaries(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain strings where there are too many different ones; what is NULL and what is text stays the same."""
    path = tmp_path / "e.csv"
    path.write_text('type,name\nA,"NULL"\nA,NULL\nB,""\nB,\n')
    (table,) = tables(str(path))
    assert pa.types.is_dictionary(table.schema.field("name").type)
    expected = [{"type": t, "name": n} for t, n in (("A", "NULL"), ("A", None), ("B", ""), ("B", None))]
    assert table.to_pylist() == expected
    monkeypatch.setattr(csv_files, "_TEXTS", 1)
    (table,) = tables(str(path))
    assert table.schema.field("type").type == pa.string() and table.to_pylist() == expected


def test_tables_with_and_without_dictionaries_go_together() -> None:
    plain = pa.table({"t": ["a", "b"]})
    coded = pa.table({"t": pa.array(["c", None]).dictionary_encode()})
    assert common_schema([plain, coded], "s").to_pylist() == [{"t": t} for t in ("a", "b", "c", None)]


def test_a_quote_that_never_closes_is_one_field_of_many_lines(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    path = tmp_path / "e.csv"
    path.write_text("type,t\n" + 'A,x\nB,"y\n' + "A,x\n" * 100 + '"\nC,z\n')
    assert [row["type"] for row in rows(str(path))] == ["A", "B", "C"]


# Ahead of who reads


def test_ahead_gives_items_then_errors_in_order() -> None:
    def items() -> Iterator[int]:
        yield from range(5)
        raise EventError("broken")

    found = []
    with pytest.raises(EventError, match="broken"):
        for item in ahead(items):
            found.append(item)
    assert found == [0, 1, 2, 3, 4] and list(ahead(lambda: iter(()))) == []


def test_ahead_stops_when_the_reader_does() -> None:
    made: list[int] = []
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            for k in itertools.count():
                made.append(k)
                yield k
        finally:
            closed.set()

    reader = ahead(items, 2)
    assert [next(reader), next(reader)] == [0, 1]
    reader.close()  # type: ignore[attr-defined]
    assert closed.wait(10) and len(made) <= 6


def test_reading_files_needs_no_pandas(tmp_path: pathlib.Path) -> None:
    """Importing it takes longer than reading a few million events."""
    (tmp_path / "e.csv").write_text("type,v,b,time\nA,1,true,1\nB,,,2\nA,2.5,false,3\n")
    code = (
        "import sys, ceql;"
        "q = ceql.compile(\"SELECT * WHERE A AS x ; A AS y FILTER y[v > 1 AND b = FALSE AND type = 'A'"
        " AND type IN {'A', 'B'} AND type LIKE 'A'] WITHIN 5 [time]\");"
        "print(q.run(sys.argv[1]).count(), 'pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "e.csv")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "False"]


@pytest.mark.parametrize("size", [3, 70_000])
def test_lines_that_end_with_carriage_returns(tmp_path: pathlib.Path, size: int) -> None:
    """The way of old Macintoshes; quoted fields and blocks of any size read alike."""
    rows = [f'A,{i},"x {i}"' for i in range(size)]
    file = tmp_path / "e.csv"
    file.write_bytes("\r".join(["type,n,t", *rows, ""]).encode())
    read = pa.concat_tables(tables(str(file)), promote_options="permissive")
    assert read.num_rows == size
    assert read.column("n").to_pylist() == list(range(size))


def test_a_line_of_names_that_is_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "e.csv").write_bytes(b"type,\rn\nA,1\n")
    with pytest.raises(EventError, match="the line of column names cannot be read") as raised:
        list(tables(str(tmp_path / "e.csv")))
    assert raised.value.record == 1


def test_a_line_of_names_longer_than_a_block(tmp_path: pathlib.Path) -> None:
    names = ["type", *(f"attribute_{i}" for i in range(9000))]
    (tmp_path / "e.csv").write_text(",".join(names) + "\n" + ",".join(["A", *map(str, range(9000))]) + "\n")
    (table,) = tables(str(tmp_path / "e.csv"))
    assert table.column_names == names
