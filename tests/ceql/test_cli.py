"""The `ceql` command: each format and standard input as a process, all else within this one."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ceql.cli.main import main

ROOT = pathlib.Path(__file__).parents[2]
CSV = """type,price,time
A,1,2024-01-01T00:00:00Z
B,3,2024-01-01T00:00:01Z
A,2,2024-01-01T00:00:01.5Z
B,,2024-01-01T00:00:02Z
B,9,2024-01-01T00:00:03Z
"""
QUERY = "SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price WITHIN 2 SECONDS"


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "events.csv").write_text(CSV)
    (tmp_path / "query.ceql").write_text(QUERY)
    return tmp_path


Done = subprocess.CompletedProcess[str]


def run(folder: pathlib.Path, *arguments: str, stdin: str = "") -> Done:
    """The command within this process: to start one takes a second of a processor."""
    out, err, outer = io.StringIO(), io.StringIO(), sys.stdin
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        sys.stdin = io.StringIO(stdin)
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdin = outer
    return Done(arguments, code, out.getvalue(), err.getvalue())


def run_process(folder: pathlib.Path, *arguments: str, stdin: str = "") -> Done:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ceql.cli.main import entry; entry()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, input=stdin, capture_output=True, text=True, timeout=120
    )


def good(done: Done) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


EXPECTED = {
    "table": """\
                  from                    to  start  end  positions
  2024-01-01T00:00:00Z  2024-01-01T00:00:01Z      0    1  0 1
2024-01-01T00:00:01.5Z  2024-01-01T00:00:03Z      2    4  2 4
2 matches
""",
    "csv": """\
start,end,positions,start_time,end_time
0,1,0 1,2024-01-01T00:00:00Z,2024-01-01T00:00:01Z
2,4,2 4,2024-01-01T00:00:01.5Z,2024-01-01T00:00:03Z
""",
    "jsonl": """\
{"start": 0, "end": 1, "positions": [0, 1], "bindings": {}, "time": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"]}
{"start": 2, "end": 4, "positions": [2, 4], "bindings": {}, "time": ["2024-01-01T00:00:01.5Z", "2024-01-01T00:00:03Z"]}
""",
    "count": "2\n",
}


@pytest.mark.parametrize("form", EXPECTED)
def test_formats(folder: pathlib.Path, form: str) -> None:
    done = run_process(folder, "run", "query.ceql", "--events", "events.csv", "--format", form)
    assert good(done) == EXPECTED[form]


def test_output_limit_and_standard_input(folder: pathlib.Path) -> None:
    arguments = ["run", "query.ceql", "--events", "-", "--limit", "1", "--output", "found.json", "--format", "json"]
    assert good(run_process(folder, *arguments, stdin=CSV)) == ""
    assert [m["positions"] for m in json.loads((folder / "found.json").read_text())] == [[0, 1]]
    good(run(folder, "run", "query.ceql", "--events", "events.csv", "--format", "parquet", "--output", "found.parquet"))
    assert pq.read_table(folder / "found.parquet").to_pydict()["positions"] == [[0, 1], [2, 4]]
    tsv = good(run(folder, "run", "-", "--events", "events.csv", "--format", "tsv", "--limit", "0", stdin=QUERY))
    assert tsv == "start\tend\tpositions\tstart_time\tend_time\n"
    done = run(folder, "run", "-", "--events", "events.csv", "--format", "json", stdin="SELECT * WHERE Z")
    assert (done.returncode, done.stdout) == (0, "[]\n") and done.stderr.startswith("note: 5 events were read: ")


def test_check_and_explain(folder: pathlib.Path) -> None:
    assert good(run(folder, "check", "query.ceql")) == ""
    grows = "note: without WITHIN no run ever ends: memory grows with "
    forget = "; forget_keys_after (--forget-keys-after 1h) ends the runs of keys that no event had for so long"
    events = "the events that some run has taken"
    for text, expected in (
        ("SELECT * WHERE A WITHIN 2 SECONDS", ""),
        ("SELECT * WHERE A ; B PARTITION BY [k] WITHIN 2 SECONDS", ""),
        ("SELECT * WHERE A ; B WITHIN 2 EVENTS", ""),
        ("SELECT * WHERE A", ""),
        (
            "SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price",
            f"{grows}the number of distinct y.price and x.price\n{grows}{events}\n",
        ),
        ("SELECT * WHERE A ; B", f"{grows}{events}\n"),
        (
            "SELECT * WHERE A ; B PARTITION BY [k, l], [m]",
            f"{grows}the number of distinct k or l and m{forget}\n{grows}{events}\n",
        ),
        (
            "SELECT * WHERE A ; B PARTITION BY [k] WITHIN 2 EVENTS",
            f"note: WITHIN … EVENTS is counted in each partition: memory grows with the number of distinct k{forget}\n",
        ),
    ):
        said = run(folder, "check", "-", stdin=text).stderr.splitlines(keepends=True)
        assert "".join(line for line in said if "memory grows" in line) == expected
    assert "y.price > x.price" in good(run(folder, "explain", "query.ceql"))


def test_streams(folder: pathlib.Path) -> None:
    (folder / "a.csv").write_text("type,time\nA,1\nA,3\n")
    (folder / "b.jsonl").write_text('{"type": "B", "time": 1}\n{"type": "B", "time": 4}\n')
    (folder / "two.ceql").write_text("SELECT * FROM S, T WHERE S>A ; T>B")
    arguments = ["run", "two.ceql", "--stream", "T=b.jsonl", "--stream", "S=a.csv", "--format", "jsonl"]
    rows = [json.loads(line) for line in good(run(folder, *arguments)).splitlines()]
    assert [(r["positions"], r["time"]) for r in rows] == [([0, 1], [1, 1]), ([2, 3], [3, 4]), ([0, 3], [1, 4])]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "bad.ceql", "--events", "events.csv"], 2, "bad.ceql:1:8: unknown variable z in SELECT"),
        (["check", "open.ceql"], 2, "open.ceql:1:16: '(' is not closed"),
        (["run", "query.ceql", "--events", "events.csv", "--type-column", "typ"], 3, "no column 'typ'"),
        (["run", "query.ceql", "--events", "none.csv"], 3, "none.csv: no such file"),
        (["run", "query.ceql", "--events", "back.csv"], 3, "back.csv, event 2: the stream goes back in time by 1 s"),
        (["run", "query.ceql", "--events", "cut.csv.gz"], 3, "cut.csv.gz: the compressed data is damaged or cut off"),
        (["run", "none.ceql", "--events", "events.csv"], 2, "cannot read the query none.ceql: No such file"),
        (["run", "query.ceql"], 2, "no events to run over"),
        (["run", "query.ceql", "--stream", "S"], 2, "this is not NAME=FILE"),
        (["run", "from.ceql", "--stream", "T=events.csv"], 2, "unknown stream T"),
        (["run", "query.ceql", "--events", "events.csv", "--lateness", "soon"], 2, "--lateness soon: not a duration"),
        (["run", "query.ceql", "--events", "events.csv", "--format", "parquet"], 2, "--output"),
        (["run", "-", "--events", "-"], 2, "standard input is asked for twice"),
        (["run", "query.ceql", "--stream", "S=-", "--stream", "T=-"], 2, "standard input is asked for twice"),
        (["plot", "query.ceql", "--events", "events.csv"], 2, "the following arguments are required: --output"),
        (["run", "query.ceql", "--events", "events.csv", "--format", "xml"], 2, "invalid choice"),
    ],
)
def test_wrong_input_is_one_clear_error(folder: pathlib.Path, arguments: list[str], code: int, message: str) -> None:
    import gzip

    (folder / "bad.ceql").write_text("SELECT z WHERE A")
    (folder / "open.ceql").write_text("SELECT * WHERE (A ; B")
    (folder / "from.ceql").write_text("SELECT * FROM S WHERE A")
    (folder / "back.csv").write_text("type,time\nA,2\nA,1\n")
    whole = gzip.compress(CSV.encode() * 100)
    (folder / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    done = run(folder, *arguments)
    assert done.returncode == code and message in done.stderr
    assert "Traceback" not in done.stderr


def test_output_that_cannot_be_written(folder: pathlib.Path) -> None:
    for form in ("csv", "parquet"):
        done = run(
            folder, "run", "query.ceql", "--events", "events.csv", "--format", form, "--output", "no/such/folder.out"
        )
        assert done.returncode in (2, 3) and "Traceback" not in done.stderr and done.stderr.count("\n") == 1


def test_what_was_dropped_and_what_nobody_has_is_said(folder: pathlib.Path) -> None:
    events = [("A", 1, 2), ("B", 2, 1), ("B", 2, 3)]
    lines = [f'{{"type": "{name}", "price": {price}, "time": {time}}}\n' for name, price, time in events]
    (folder / "late.jsonl").write_text("".join(lines))
    (folder / "typo.ceql").write_text("SELECT * WHERE A ; B FILTER A[prize > 3]")
    done = run(folder, "run", "typo.ceql", "--events", "late.jsonl", "--late", "drop", "--format", "count")
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert "late.jsonl: 1 event" in done.stderr and "no event has an attribute prize" in done.stderr
    assert "did you mean price?" in done.stderr


def test_what_cannot_match_is_a_warning(folder: pathlib.Path) -> None:
    (folder / "never.ceql").write_text("SELECT * WHERE A FILTER A[price > 5 AND price < 3]")
    for command in (["check", "never.ceql"], ["run", "never.ceql", "--events", "events.csv", "--format", "count"]):
        done = run(folder, *command)
        assert done.returncode == 0 and done.stdout in ("", "0\n")
        assert done.stderr.splitlines() == [
            "warning: never.ceql:1:16: A: price > 5 and price < 3 never hold together",
            "warning: never.ceql: no stream has a match: the query reports nothing",
        ]


def test_a_bug_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("ceql.cli.main.compiled", fail)
    assert main(["check", "query.ceql"]) == 1
    assert capsys.readouterr().err.startswith("ceql failed: ZeroDivisionError: oh\nhint: this is a bug")
