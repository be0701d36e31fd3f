"""Readers: every source gives the same events, and damaged ones give one clear error."""

from __future__ import annotations

import gzip
import json
import pathlib
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from spaseq.errors import EventError
from spaseq.events import readers
from spaseq.events.readers import tables

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
    monkeypatch.setattr(readers, "_BLOCK", 64)
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
        ("e.csv", b"type,p,p\nA,1,2\n", "two columns are called 'p'", 1),
        ("e.csv", b"type,p\nA,1\nA,\xff\xfe\n", "not UTF-8", 3),
        ("e.jsonl", b'{"type": "A"}\n{"type": \n', "not JSON", 2),
        ("e.jsonl", b'{"type": "A"}\n[1]\n', "not an object", 2),
        ("e.jsonl", b'[{"type": "A"}]', "a JSON array", 1),
        ("e.jsonl", b'{"p": 1}\n\n{"p": "x"}\n', "values of different kinds: int, str", 3),
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


def test_a_column_changes_its_mind(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 64)
    path = tmp_path / "e.csv"
    path.write_text("type,p\n" + "A,1\n" * 40 + "A,n/a\n")
    with pytest.raises(EventError, match=r"attribute p is 'n/a' here, and a number in the records before") as caught:
        rows(str(path))
    assert (caught.value.record, caught.value.attribute) == (42, "p")


def test_what_holds_no_events(tmp_path: pathlib.Path) -> None:
    for source, message in [
        (str(tmp_path), "folder"), (str(tmp_path / "no*.csv"), "no such file"), (5, "int holds no events"),
        ({"type": "A"}, "dict holds no events"), ([{"p": 1}, {"p": "x"}], "different kinds"),
        ([{"p": 1}, 5], "int is not an event"),
    ]:  # fmt: skip
        with pytest.raises(EventError, match=message):
            rows(source)
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("type,p\n")
    assert rows(str(tmp_path / "empty.csv")) == rows(str(tmp_path / "header.csv")) == []
