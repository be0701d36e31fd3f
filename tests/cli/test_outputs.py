"""Ways out: a full disk, an output that lacks letters, a terminal, and an output that is an input."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ceql.cli.formats import ALERTS, MATCHES
from ceql.cli.main import main as ceql
from spaseq.cli.formats import FORMATS
from spaseq.cli.main import main as spaseq
from spaseq.tools.command.formats import CSV, JSON, JSONL, Format
from spaseq.tools.command.outputs import opened

Main = Callable[[list[str]], int]
PARTS = "FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s <urn:p> ?v } }"
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202e"
SEEN = "␛]0;owned␇␛[2J\ufffd31m␡\ufffd"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.ceql").write_text("SELECT x[v] WHERE A AS x")
    Path("e.csv").write_text("type,v\n" + "".join(f"A,{i}.179\n" for i in range(3_000)))
    Path("q.rq").write_text(f"SELECT ?s ?v {PARTS}")
    Path("c.rq").write_text(f"CONSTRUCT {{ ?s <urn:q> ?v . ?s <urn:r> ?v }} {PARTS}")
    Path("s.nt").write_text("".join(f'<urn:{i}> <urn:p> "{i}.179" .\n' for i in range(3_000)))


RUNS: list[tuple[Main, list[str], str]] = [
    *((ceql, ["run", "q.ceql", "--events", "e.csv"], form) for form in MATCHES if form != "count"),
    *((ceql, ["alert", "q.ceql", "--events", "e.csv"], form) for form in ALERTS if form != "count"),
    *(
        (spaseq, ["run", "c.rq" if form == "nquads" else "q.rq", "--stream", "S=s.nt", "--event-by", "size:1"], form)
        for form in FORMATS
    ),
]


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """As on a full disk: what is beyond cannot be written."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(("main", "words", "form"), RUNS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_file_that_takes_no_more_ends_with_a_whole_result(
    main: Main, words: list[str], form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--format", form, "--output", "whole"]) == 0
    whole = Path("whole").read_bytes()
    Path("cut").write_bytes(b"before")
    size = len(whole) * 2 // 3 + 1
    capsys.readouterr()
    with _files_of_at_most(size):
        assert main([*words, "--format", form, "--output", "cut"]) == 3
    cut, said = Path("cut").read_bytes(), capsys.readouterr().err
    if {**ALERTS, **MATCHES, **FORMATS}[form].whole:
        assert cut == b"before" and said == "cut: File too large: no result was written\n"
        assert not [name for name in os.listdir() if name.endswith(".part")]
        return
    assert whole.startswith(cut) and cut.endswith(b"\n") and size - 400 < len(cut) <= size
    assert said == f"cut: File too large: {cut.count(10):,} lines were written, the results behind them are missing\n"
    if form == "nquads":
        assert cut.count(b"\n") % 3 == 0


def test_a_document_that_an_error_ends_has_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.csv").write_text("typ\nA\n")
    words = ["run", "q.ceql", "--events", "e.csv", "--events", "wrong.csv"]
    for name in ("o.json", "o.parquet"):
        assert ceql([*words, "--output", name]) == 3
    assert len(json.loads(Path("o.json").read_text())) == pq.read_table("o.parquet").num_rows == 3_000
    for name in ("o.json", "o.parquet"):
        before = Path(name).read_bytes()
        assert ceql(["run", "q.ceql", "--events", "wrong.csv", "--output", name]) == 3
        assert Path(name).read_bytes() == before, "nothing was found"
    assert not [name for name in os.listdir() if name.endswith(".part")]
    capsys.readouterr()


def test_parquet_goes_into_a_pipe() -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert ceql(["run", "q.ceql", "--events", "e.csv", "--limit", "5", "--output", "pipe", "--format", "parquet"]) == 0
    assert pq.read_table(io.BytesIO(os.read(reader, 1 << 20))).num_rows == 5
    assert Path("pipe").is_fifo()


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("form", [CSV, JSON, JSONL, ALERTS["text"]])
def test_no_format_commands_a_terminal(form: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    for out, people in ((_Terminal(), True), (io.StringIO(), form.people)):
        monkeypatch.setattr(sys, "stdout", out)
        with opened(None, form) as file:
            file.write(f"{EVIL}\tx\n")
        assert out.getvalue() == (f"{SEEN}\tx\n" if people else f"{EVIL}\tx\n")


def test_tables_and_messages_show_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    Path("e.jsonl").write_text(json.dumps({"type": "A", "v": EVIL}) + "\n")
    Path("v.nt").write_text(f"<urn:a> <urn:p> {json.dumps(EVIL)} .\n")
    assert ceql(["run", "q.ceql", "--events", "e.jsonl"]) == 0
    assert spaseq(["run", "q.rq", "--stream", "S=v.nt", "--event-by", "size:1", "--format", "table"]) == 0
    out = capsys.readouterr().out
    assert out.count(SEEN) == 2 and all(c.isprintable() or c == "\n" for c in out)
    for words in (
        ["run", f"SELECT * WHERE A FILTER A[v = '{EVIL}' AND", "--events", "e.csv"],
        ["run", f"{EVIL}.ceql", "--events", "e.csv"],
        ["run", "q.ceql", "--events", f"{EVIL}.csv"],
        ["run", "q.ceql", "--set", f"{EVIL}=1"],
        ["explain", f"SELECT * WHERE A FILTER A[v = '{EVIL}']"],
    ):
        ceql(words)
        said = "".join(capsys.readouterr())
        assert SEEN in said and all(c.isprintable() or c == "\n" for c in said)
    with pytest.raises(SystemExit):
        ceql(["run", "q.ceql", f"--{EVIL}"])
    assert f"--{SEEN}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "pipe"),
    [
        ("table", False),
        ("csv", True),
        ("jsonl", False),
        *(pytest.param(form, form != "csv", marks=pytest.mark.slow) for form in ("table", "csv", "jsonl")),
    ],
)
def test_an_output_that_has_not_all_letters(form: str, pipe: bool) -> None:
    """Standard output is not UTF-8: JSON and tables have escapes, CSV an error behind what could be written."""
    Path("e.jsonl").write_text("".join(json.dumps({"type": "A", "v": v}) + "\n" for v in ("é", "…", "é")))
    words = [sys.executable, "-m", "ceql", "run", "q.ceql", "--events", "e.jsonl", "--format", form]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    with open("out", "wb") as file:
        done = subprocess.run(
            words, stdout=subprocess.PIPE if pipe else file, stderr=subprocess.PIPE, env=environment, check=False
        )
    out, said = (done.stdout if pipe else Path("out").read_bytes()).decode("latin-1"), done.stderr.decode("latin-1")
    if form == "table":
        assert done.returncode == 0 and "x.v=\\u2026" in out and out.count("x.v=é") == 2
        return
    if form == "jsonl":
        assert done.returncode == 0 and out.isascii()
        assert [json.loads(line)["attributes"]["x"][0]["v"] for line in out.splitlines()] == ["é", "…", "é"]
        return
    assert done.returncode == 3 and out.count("é") == 1
    assert said.splitlines() == [
        "cannot write the results: standard output is latin-1, which has no U+2026",
        "hint: PYTHONIOENCODING=utf-8 changes that; --output FILE is always UTF-8",
    ]


@pytest.mark.parametrize(
    ("form", "escaped"), [("xml", "&#233;&#120120;"), ("nquads", r"\u00E9\U0001D538"), ("json", r"\u00e9\ud835\udd38")]
)
def test_formats_with_escapes_need_no_letters(
    form: str, escaped: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("v.nt").write_text('<urn:a> <urn:p> "é𝔸" .\n', "utf-8")
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    query = "c.rq" if form == "nquads" else "q.rq"
    assert spaseq(["run", query, "--stream", "S=v.nt", "--event-by", "size:1", "--format", form]) == 0
    out.flush()
    assert escaped in out.buffer.getvalue().decode("ascii")


_NAMES = ("same", "dotted", "link", "hard link", "link to a link")


def _also_called(name: str, path: str) -> str:
    match name:
        case "same":
            return path
        case "dotted":
            return f"../{Path.cwd().name}/./{path}"
        case "hard link":
            os.link(path, "other")
        case "link":
            os.symlink(path, "other")
        case _:
            os.symlink(path, "between")
            os.symlink("between", "other")
    return "other"


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize(
    ("main", "command", "read"),
    [
        (ceql, "run q.ceql --events e.csv", "e.csv q.ceql"),
        (ceql, "run q.ceql --events *.csv", "e.csv"),
        (ceql, "run q.ceql --stream S=e.csv,f.csv --schema schema.txt", "e.csv f.csv q.ceql schema.txt"),
        (ceql, "plot q.ceql --events e.csv", "e.csv q.ceql"),
        (ceql, "alert q.ceql --events e.csv --events f.csv", "e.csv f.csv q.ceql"),
        (ceql, "forecast q.ceql --events e.csv --train f.csv", "e.csv f.csv q.ceql"),
        (spaseq, "run q.rq --stream S=s.nt,f.nt --kb urn:kb=kb.nt", "s.nt f.nt q.rq kb.nt"),
        (spaseq, "run q.rq --streams streams.txt", "s.nt streams.txt q.rq"),
        (spaseq, "plot q.rq --stream S=s.nt", "s.nt q.rq"),
        (spaseq, "run q.rq --stream S=s.nt --engine spark", "s.nt q.rq"),
        (spaseq, "knowledge build s.nt kb.spaseq-kb", "kb.spaseq-kb"),
    ],
)
def test_an_output_is_never_an_input(
    main: Main, command: str, read: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in ("f.csv", "schema.txt", "f.nt", "kb.nt", "kb.spaseq-kb"):
        Path(file).write_text("what it was")
    Path("streams.txt").write_text("<urn:s> s.nt 1\n")
    for file in read.split():
        before = Path(file).read_bytes()
        output = _also_called(name, file)
        form = [] if "plot" in command or "knowledge" in command else ["--format", "csv"]
        assert main([*command.split(), "--output", output, *form]) == 2
        assert f"{output} is an input, " in capsys.readouterr().err
        assert Path(file).read_bytes() == before
        for made in ("other", "between"):
            Path(made).unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--events", "*.csv", "--output", "new.csv"], "new.csv is an input, *.csv"),
        (["--events", "**/*.csv", "--output", "a/new.csv"], "a/new.csv is an input, **/*.csv"),
        (["--events", "-", "--output", "e.csv"], "e.csv is an input, standard input"),
        (["--events", "e.csv"], "the output is an input: e.csv"),
        (["--events", "-"], "the output is an input: standard input"),
    ],
)
def test_an_output_that_will_be_an_input(words: list[str], problem: str) -> None:
    """By a glob that finds it once it is there, or by what standard input and output are."""
    command = [sys.executable, "-m", "ceql", "run", "q.ceql", *words]
    before = Path("e.csv").read_bytes()
    with open("e.csv", "rb") as read, open("e.csv" if "--output" not in words else os.devnull, "ab") as out:
        done = subprocess.run(command, stdin=read, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(problem)
    assert Path("e.csv").read_bytes() == before and not Path("new.csv").exists()


def test_an_output_beside_inputs_is_none() -> None:
    os.mkdir("out")
    for output in ("out/new.csv", "new.tsv", "out.csv", os.devnull):
        words = ["run", "q.ceql", "--events", "[e-f].csv", "--output", output, "--limit", "1", "--format", "csv"]
        assert ceql(words) == ceql(words) == 0
