"""What both commands share: formats by suffix, settings, tables, what cannot be written."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pyarrow.parquet as pq
import pytest

import ceql
from ceql.cli.formats import MATCHES
from ceql.cli.main import main as ceql_main
from spaseq.cli.formats import FORMATS as SPASEQ_FORMATS
from spaseq.cli.main import main as spaseq_main
from spaseq.core.errors import EventError, OptionError, in_reader_words
from spaseq.core.measure import width_of
from spaseq.tools.command import Format, Table, chosen_format, run_main
from spaseq.tools.command.writers import Results
from spaseq.tools.studio.answers import error_form

TUPLES = "type,price\nA,1\nB,2\n"
GRAPHS = '<urn:a> <urn:e#p> "1" .\n<urn:b> <urn:e#p> "2" .\n'
FORMATS = {
    "table": Format("m:t", ("txt",)),
    "json": Format("m:j", ("json",), whole=True),
    "jsonl": Format("m:l", ("jsonl", "ndjson")),
    "parquet": Format("m:p", ("parquet",), whole=True, binary=True),
}
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Run:
    """The command named by the parameter on a query with one match, with more arguments."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text(TUPLES)
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A AS x ; B AS y")
    (tmp_path / "s.nt").write_text(GRAPHS)
    (tmp_path / "q.rq").write_text(
        "PREFIX : <urn:e#> SELECT ?x FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?x :p '1' } }"
    )
    if request.param == "ceql":
        return lambda *more: ceql_main(["run", "q.ceql", "--events", "events.csv", *more])
    return lambda *more: spaseq_main(["run", "q.rq", "--stream", "S=s.nt", "--event-by", "size:1", *more])


both = pytest.mark.parametrize("run", ["ceql", "spaseq"], indirect=True)


def test_errors_name_what_their_reader_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the library, and of the page of the studio, spoke of the options of the commands."""
    (tmp_path / "e.csv").write_text("type,time\nA,5\nB,1\n")
    query = ceql.compile("SELECT * WHERE A ; B")
    with pytest.raises(EventError) as caught:
        query.run(str(tmp_path / "e.csv")).count()
    assert '(lateness="5s")' in str(caught.value) and 'late="drop"' in str(caught.value)
    form = error_form(caught.value)
    assert 'late="drop"' in form["hint"] and "--" not in form["hint"] + form["problem"] + str(caught.value)
    assert ceql_main(["run", query.text, "--events", str(tmp_path / "e.csv")]) == 3
    said = capsys.readouterr().err
    assert "(--lateness 5s)" in said and "--late drop" in said
    with pytest.raises(OptionError, match=r'streams=\{"NAME": "FILE"\} for each'):
        ceql.compile("SELECT * FROM S, T WHERE S>A ; T>B").run([{"type": "A"}])
    assert in_reader_words("--event-by size:N, --set x=2GB, --format dot, 'a--late'") == (
        "event_by=\"size:N\", settings=Settings(x=2GB), --format dot, 'a--late'"
    )


@both
def test_the_suffix_of_the_output_chooses_the_format(run: Run, tmp_path: Path) -> None:
    assert run("--output", "m.parquet") == 0 and pq.read_table(tmp_path / "m.parquet").num_rows == 1
    assert run("--output", "m.JSONL") == 0 and (tmp_path / "m.JSONL").read_text().startswith('{"start": 0')
    assert run("--output", "m.csv") == 0 and "," in (tmp_path / "m.csv").read_text().splitlines()[0]
    assert run("--output", "m.csv", "--format", "tsv") == 0 and "\t" in (tmp_path / "m.csv").read_text()
    assert run("--output", "m.unknown") == 0 and "  " in (tmp_path / "m.unknown").read_text()


@pytest.mark.parametrize("run", ["ceql"], indirect=True)
def test_a_query_is_given_as_its_text(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For both commands, which `run` has written the queries and events of."""
    for main, file, events in (
        (ceql_main, "q.ceql", ["--events", "events.csv"]),
        (spaseq_main, "q.rq", ["--stream", "S=s.nt", "--event-by", "size:1"]),
    ):
        assert main(["run", file, *events, "--format", "csv"]) == 0
        named = capsys.readouterr().out
        assert main(["run", (tmp_path / file).read_text(), *events, "--format", "csv"]) == 0
        assert capsys.readouterr().out == named and named.count("\n") == 2
        assert main(["run", "SELECT wrong", *events]) == 2
        assert capsys.readouterr().err.startswith("<query>:1:")
        with pytest.raises(SystemExit):
            main(["run", file, "events.csv"])
        assert f"hint: events are named by {events[0]}" in capsys.readouterr().err
        (tmp_path / "select (a).q").write_text((tmp_path / file).read_text())  # a file is a file
        assert main(["run", "select (a).q", *events]) == 0
        capsys.readouterr()


def write_markdown(results: Results, out: IO[str]) -> int:
    """A format that neither command has."""
    rows = [f"| {' | '.join(row)} |\n" for row in results.texts()]
    out.writelines(rows)
    return len(rows) - 1


@both
def test_one_writer_serves_both_commands(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    language = request.node.callspec.params["run"]
    formats = {"ceql": MATCHES, "spaseq": SPASEQ_FORMATS}[language]
    monkeypatch.setitem(formats, "md", Format(f"{__name__}:write_markdown", ("md",)))
    assert run("--output", "m.md") == 0
    head = {"ceql": "| from | to | start | end | positions |", "spaseq": "| time | ?x |"}[language]
    assert (tmp_path / "m.md").read_text().splitlines()[0] == head


@pytest.mark.parametrize("name", ["table", "csv", "jsonl"])
@both
def test_a_name_beyond_ascii_stays_as_it_is(run: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("type,price\nA,Ω\nB,2\n", "utf-8")
    (tmp_path / "q.ceql").write_text("SELECT x[price] WHERE A AS x ; B AS y")
    (tmp_path / "s.nt").write_text('<urn:Ω> <urn:e#p> "1" .\n', "utf-8")
    assert run("--output", "m", "--format", name) == 0
    assert "Ω" in (tmp_path / "m").read_text("utf-8")


@both
def test_budgets_can_be_set(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--set", "arena_bytes=100000000", "--set", "partitions=7") == 0
    capsys.readouterr()
    assert run("--set", "nothing=1") == 2
    assert "--set nothing=1: there is no such setting\nhint: there is arena_bytes" in capsys.readouterr().err
    assert run("--set", "partitions=many") == 2
    assert "--set partitions=many: not a count" in capsys.readouterr().err


@both
def test_a_full_disk_is_said(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full, a file that is always full")
    assert run("--output", "/dev/full", "--format", "jsonl") == 3
    assert capsys.readouterr().err.splitlines()[-1] == "/dev/full: No space left on device"


def test_a_lost_connection_is_no_failure_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    """As when Spark's JVM goes away: nothing is wrong with the output."""

    def refused() -> argparse.ArgumentParser:
        raise ConnectionRefusedError(111, "Connection refused")

    assert run_main("ceql", refused, []) == 1
    assert capsys.readouterr().err.startswith("ceql failed: ConnectionRefusedError: ")


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", ""])
def test_a_wrong_setting_of_the_environment_is_one_error(seconds: str, tmp_path: Path) -> None:
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A AS x")
    (tmp_path / "e.csv").write_text(TUPLES)
    command = [sys.executable, "-m", "ceql", "run", str(tmp_path / "q.ceql"), "--events", str(tmp_path / "e.csv")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SPASEQ_INTERPRET": seconds})
    assert done.returncode == 2
    assert done.stderr.startswith(f"SPASEQ_INTERPRET is {seconds!r}, which is no number of seconds\nhint: 0 compiles")


@both
def test_wrong_numbers_and_missing_files(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--limit", "-1")
    assert "argument --limit: '-1' is not a count" in capsys.readouterr().err
    assert run("--format", "parquet") == 2
    assert "--format parquet is written to a file\nhint: add --output FILE.parquet" in capsys.readouterr().err
    for name in ("m.parquet", "m.csv"):
        assert run("--output", f"no/such/{name}") == 2
        assert f"cannot write no/such/{name}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "output", "live", "chosen"),
    [
        (None, None, False, "table"),
        (None, "x.ndjson", False, "jsonl"),
        (None, "x.txt", False, "table"),
        (None, "x.2026", False, "table"),
        ("json", "x.xlsx", False, "json"),
        (None, "-", False, "table"),
        ("json", "x.parquet", False, "json"),
        (None, "x.jsonl", True, "jsonl"),
    ],
)
def test_chosen_format(asked: str | None, output: str | None, live: bool, chosen: str) -> None:
    assert chosen_format(FORMATS, asked, output, "table", live=live) == chosen


@pytest.mark.parametrize(
    ("output", "hint"), [("a/x.xlsx", "end it with"), ("x.json.gz", "results are not compressed: end it with")]
)
def test_a_suffix_that_says_another_form_gets_no_table(output: str, hint: str) -> None:
    with pytest.raises(OptionError, match=r"cannot write x\.[a-z.]+: no format is called \.[xlsgz]+") as error:
        chosen_format(FORMATS, None, output, "table")
    assert error.value.hint.startswith(hint)


def test_formats_that_do_not_fit() -> None:
    with pytest.raises(OptionError, match="--format json with --follow") as error:
        chosen_format(FORMATS, "json", None, "table", live=True)
    assert error.value.hint == "json can be read only once it is complete: use table or jsonl"
    with pytest.raises(OptionError, match="is written to a file"):
        chosen_format(FORMATS, "parquet", "-", "table")


def test_tables_align_wide_characters() -> None:
    out = io.StringIO()
    table = Table(out, ["name", "n"], right=[1])
    for name, n in (("東京", "1"), ("é\tx", "12"), ("Lyon", "123")):
        table.row([name, n])
    table.flush()
    assert out.getvalue().splitlines() == [
        "name    n",
        "----  ---",
        "東京    1",
        "é x    12",
        "Lyon  123",
    ]


def test_a_live_table_writes_each_row() -> None:
    out = io.StringIO()
    table = Table(out, ["a"], live=True, rule=False)
    table.row(["1"])
    assert out.getvalue() == "a\n1\n"
    table.row(["longer"])
    assert out.getvalue() == "a\n1\nlonger\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    from spaseq.tools.command.progress import watching

    plain = io.StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    with watching(lambda: 1, lambda: 1, "matches"):
        pass
    assert plain.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with watching(lambda: 1_500, lambda: 3, "matches"):
        pass
    assert "1,500 events, 3 matches, " in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
    with watching(lambda: 1, lambda: 1, "matches"):
        pass
    assert terminal.getvalue() == "", "not into the results"


ROWS = [
    [
        "2026-06-15T08:00:00.123456789Z",
        "<http://example.org/houses/number/17>",
        "26.253412",
        "a long text of many words",
    ],
    ["2026-06-15T08:00:01Z", "東京東京東京東京東京東京東京東京", "1234567.25", "short"],
]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_fits_the_terminal_and_cuts_no_number(width: int) -> None:
    table = Table(out := io.StringIO(), ["time", "?house", "?power", "?text"], right=[2], width=width)
    for row in ROWS:
        table.row(row)
    table.flush()
    lines = out.getvalue().splitlines()
    assert max(map(width_of, lines)) <= max(width, 30 + 2 + 25), out.getvalue()
    assert "2026-06-15T08:00:00.123456789Z" in lines[2]
    if not table.left_out:
        assert "26.253412" in lines[2] and "1234567.25" in lines[3] and "er/17>" in lines[2]
    assert table.left_out == {40: 2, 80: 0, 120: 0}[width]


def test_a_pipe_gets_what_it_got(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = []
    for out, width in ((io.StringIO(), None), (_Terminal(), 200)):
        table = Table(out, ["a", "b"], width=width)
        table.row(["x" * 70, "1"])
        table.flush()
        shown.append(out.getvalue())
    assert shown[0] == f"{'a':60}  b\n{'-' * 60}  -\n{'x' * 70}  1\n"
    assert shown[1].startswith("\x1b[1ma") and "…" in shown[1]


def test_colours_are_for_terminals_and_can_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from spaseq.tools.command.colours import styled

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert styled("note:", "note", _Terminal()) == "\x1b[36mnote:\x1b[0m"
    assert styled("note:", "note", io.StringIO()) == "note:"
    monkeypatch.setenv("NO_COLOR", "1")
    assert styled("note:", "note", _Terminal()) == "note:"
