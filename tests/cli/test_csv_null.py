"""NULL and the empty text in CSV and TSV: what a command writes, the same command, Arrow and DuckDB read back."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

import ceql
from ceql.cli.main import main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.events import tables
from spaseq.core.events.options import TextForm
from spaseq.tools.command.writers import Results, write_csv
from tests.support.sizes import some

TEXTS = (None, "", "NULL", "null", "a", "a,b", 'say "x"', "two\nlines", " ", "nan", "\t", "Null", '""', "x;y")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Rows(Results):
    def __init__(self, rows: list[list[Any]], end: str = "\n") -> None:
        self._rows = rows
        self.line_end = end

    def objects(self) -> Any:
        return iter(())

    def cells(self) -> Any:
        return iter(self._rows)


def read_back(text: str, suffix: str, names: list[str]) -> list[list[Any]]:
    Path(f"back.{suffix}").write_bytes(text.encode())
    form = TextForm(column_types=dict.fromkeys(names, "TEXT"), delimiter="\t" if suffix == "tsv" else ",")
    parts = list(tables(f"back.{suffix}", None, form))
    return [list(row.values()) for part in parts for row in part.to_pylist()]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_random_texts_are_read_back(suffix: str, width: int, end: str) -> None:
    draw = random.Random(f"{suffix} {width}")
    names = [f"c{i}" for i in range(width)]
    for _ in range(some(60)):
        rows = [[draw.choice(TEXTS) for _ in names] for _ in range(draw.randrange(1, 6))]
        out = io.StringIO()
        assert write_csv(Rows([names, *rows], end), out, "\t" if suffix == "tsv" else ",") == len(rows)
        assert read_back(out.getvalue(), suffix, names) == rows, (rows, out.getvalue())


def test_the_command_reads_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    pa.csv.write_csv(pa.table({"type": ["A"] * 4, "t": ["", None, "NULL", "x"], "n": [1, None, 3, 4]}), "first.csv")
    query = "SELECT a.t, a.n, a.t IS NULL AS no WHERE A AS a"
    assert main(["run", query, "--events", "first.csv", "--format", "csv", "--output", "second.csv"]) == 0
    assert Path("second.csv").read_text() == 't,n,no\n"",1,false\n,,true\n"NULL",3,false\nx,4,false\n'
    capsys.readouterr()
    assert main(["run", "SELECT a.t, a.n, a.t IS NULL AS no WHERE ANY AS a", "--events", "second.csv",
                 "--format", "csv"]) == 0  # fmt: skip
    assert capsys.readouterr().out == Path("second.csv").read_text()
    kept = pa.csv.read_csv("second.csv", convert_options=pa.csv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=False))  # fmt: skip
    assert kept["t"].to_pylist() == ["", None, "NULL", "x"]
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql("SELECT t, n FROM read_csv('second.csv', allow_quoted_nulls = false)").fetchall()
    assert found == [("", 1), (None, None), ("NULL", 3), ("x", 4)]


def test_a_null_alone_is_no_blank_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"type": "A", "t": "x"}, {"type": "A"}, {"type": "A", "t": ""}, {"type": "A", "t": "NULL"}]
    Path("e.jsonl").write_text(
        '{"type": "A", "t": "x"}\n{"type": "A"}\n{"type": "A", "t": ""}\n{"type": "A", "t": "NULL"}'
    )
    query = "SELECT a.t WHERE {} AS a"
    assert main(["run", query.format("A"), "--events", "e.jsonl", "--output", "o.csv"]) == 0
    assert Path("o.csv").read_text() == 't\nx\nNULL\n""\n"NULL"\n'
    found = ceql.compile(query.format("ANY")).run("o.csv").to_arrow()["t"].to_pylist()
    assert found == [row.get("t") for row in rows]


def test_positions_of_no_event_are_empty(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.csv").write_text("type\nA\nB\n")
    assert main(["run", "SELECT NONE WHERE A ; B", "--events", "e.csv", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "0,1,,0,0.001"
    assert main(["run", "SELECT * WHERE A AS a? ; B AS b", "--events", "e.csv", "--format", "csv", "--valuations"]) == 0
    assert "1,1,1,0.001,0.001,,[],1," in capsys.readouterr().out


def test_an_empty_literal_and_an_unbound_variable_of_spaseq(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.nq").write_text('<urn:a> <urn:p> "" <urn:g> .\n<urn:b> <urn:p> "NULL" <urn:g> .\n<urn:g> <urn:at> 1 .\n'
                            .replace(" 1 .", ' "1"^^<http://www.w3.org/2001/XMLSchema#integer> .'))  # fmt: skip
    query = ("SELECT ?v ?w FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S "
             "{ ?x <urn:p> ?v OPTIONAL { ?x <urn:q> ?w } } }")  # fmt: skip
    words = ["--stream", "S=s.nq", "--time", "urn:at", "--format", "csv"]
    assert spaseq_main(["run", query, *words]) == 0
    assert sorted(capsys.readouterr().out.splitlines()) == ['1,"",', '1,"NULL",', "time,v,w"]
