"""Limits of both commands: --limit stops the work, Ctrl-C and limits of time and memory end it with whole results."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ceql
import spaseq
from ceql.cli.main import main as ceql_main
from spaseq.cli.main import main as spaseq_main
from spaseq.core.engine import Evaluator
from tests.support import harness

_EXPLOSION = "SELECT * WHERE A AS x ; A+ AS y ; A AS z"
"""Over n events some 2^n matches."""
_LONG = "SELECT * WHERE A ; A ; A"
"""Over n events, n^2 nodes are counted."""
_DENSE = """PREFIX : <urn:e#> SELECT ?s ?t FROM STREAM S <urn:s>
WHERE { SEQ (A: B+: C) DEFINE GPM A ON S { ?s :p ?x } DEFINE GPM B ON S { ?v :p ?z } DEFINE GPM C ON S { ?t :p ?y } }"""
_WRONG = [("time_limit", "30s"), ("live_runs", -1), ("memory_limit", 1.5), ("variants", True), ("threads", 0)]
_TEXTS = {"jsonl", "csv", "tsv", "table", "json"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.ceql").write_text(_EXPLOSION)
    (tmp_path / "e.csv").write_text("type\n" + "A\n" * 200)
    (tmp_path / "long.ceql").write_text(_LONG)
    (tmp_path / "many.csv").write_text("type\n" + "A\n" * 1_000_000)
    (tmp_path / "q.rq").write_text(_DENSE)
    lines = (f'<urn:g{i}> <urn:e#p> "{i}" .\n' for i in range(200))
    (tmp_path / "s.nt").write_text("".join(lines))
    return tmp_path


_FORMS = [("ceql", "count"), *((language, form) for language in ("ceql", "spaseq") for form in sorted(_TEXTS))]
"""`spaseq run` does not count."""
_CEQL = ["run", "q.ceql", "--events", "e.csv"]
_COUNT = ["run", "long.ceql", "--events", "many.csv", "--format", "count"]
_SPASEQ = ["run", "q.rq", "--stream", "S=s.nt", "--event-by", "size:1"]


def _run(language: str, *more: str) -> int:
    return ceql_main([*_CEQL, *more]) if language == "ceql" else spaseq_main([*_SPASEQ, *more])


@pytest.mark.parametrize(("language", "form"), [*_FORMS, ("ceql", "parquet"), ("spaseq", "parquet")])
def test_a_limit_stops_the_work(folder: Path, language: str, form: str) -> None:
    """There are more matches than anybody can list."""
    assert _run(language, "--limit", "3", "--format", form, "--output", "out") == 0
    if form == "count":
        assert (folder / "out").read_text() == "3\n"
    elif form in ("jsonl", "csv", "tsv"):
        assert len((folder / "out").read_text().splitlines()) == (3 if form == "jsonl" else 4)
    else:
        assert (folder / "out").stat().st_size > 0


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_a_limit_beyond_numbers_is_none(folder: Path, form: str) -> None:
    (folder / "q.rq").write_text(_DENSE.replace("B+: C", "C").replace("DEFINE GPM B ON S { ?v :p ?z }", ""))
    (folder / "s.nt").write_text('<urn:g> <urn:e#p> "1" .\n' * 3)
    assert spaseq_main([*_SPASEQ, "--limit", "1" + "0" * 5_000, "--format", form, "--output", "out"]) == 0
    assert (folder / "out").read_text().count("urn:g") == 2 * (3 if form == "jsonl" else 2)


def test_an_iterator_left_early_costs_little(folder: Path) -> None:
    assert next(iter(ceql.compile(_EXPLOSION).run("e.csv"))).start == 0
    query = spaseq.compile(_DENSE)
    assert next(iter(query.run({"S": "s.nt"}, event_by="size:1"))).start == 0
    assert ceql.compile(_EXPLOSION).run("e.csv").count(limit=10) == 10
    assert ceql.compile("SELECT * WHERE A").run("e.csv").count(limit=1000) == 200


_QUICK = {("ceql", "count"), ("ceql", "jsonl"), ("ceql", "json"), ("spaseq", "csv"), ("spaseq", "table")}
"""Each way to write, of one language; the other forms are written in one of these ways."""


@pytest.mark.parametrize(
    ("language", "form"), [pytest.param(*f, marks=[] if f in _QUICK else [pytest.mark.slow]) for f in _FORMS]
)
def test_a_time_limit_ends_a_query_with_whole_results(
    folder: Path, language: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--set", "time_limit=300ms", "--output", "out"]
    assert (ceql_main([*_COUNT, *more]) if form == "count" else _run(language, *more, "--format", form)) == 4
    error = capsys.readouterr().err
    assert "stopped at time_limit, which is 0.3 seconds" in error and "events read" in error
    if form == "count":
        assert not (folder / "out").exists()  # there is no number before all matches are counted
        return
    text = (folder / "out").read_text()
    if form == "json":
        json.loads(text)
    elif form == "jsonl":
        assert all(map(json.loads, text.splitlines())) and text.endswith("\n")
    else:
        assert text == "" or text.endswith("\n")


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_a_memory_limit_ends_a_query(folder: Path, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(language, "--set", "memory_limit=1MB", "--output", "out") == 4
    assert "stopped at memory_limit, which is 1,000,000 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["jsonl", pytest.param("count", marks=pytest.mark.slow)])
def test_a_system_without_memory_is_no_bug(folder: Path, form: str) -> None:
    """Matches wait for the end of the stream, as it has no window: as many as there are sets of its A. Counting them is
    slow: they wait in the same way."""
    text = "SELECT * WHERE A+ AS a ; C AS c ; NOT (B AS n FILTER n.v > a.v AND n.v > c.v)"
    lines = [f'{{"type": "{kind}", "v": {number % 3}}}\n' for number, kind in enumerate("AACB" * 60)]
    (folder / "many.jsonl").write_text("".join(lines))

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))

    command = [sys.executable, "-m", "ceql", "run", text, "--events", "many.jsonl", "--format", form]
    for budget, said in (
        (["--set", "output_bytes=8GB"], "the system gives no more memory: 240 events read, 0 matches written\nhint: "),
        ([], "output_bytes is 375,000,000 bytes"),  # an eighth of what there is
    ):
        whole = [*command, *budget]
        done = subprocess.run(whole, cwd=folder, text=True, capture_output=True, check=False, preexec_fn=little)
        assert (done.returncode, "Traceback" in done.stderr) == (4, False), done.stderr
        assert done.stderr.startswith(said)
        assert done.stdout == ""


@pytest.mark.parametrize("background", [False, True], ids=["Ctrl-C is heard", "a shell has it ignored"])
def test_a_time_limit_counts_while_the_query_is_compiled(folder: Path, background: bool) -> None:
    rows = " ".join(f"<urn:{n}>" for n in range(10_000))
    (folder / "q.rq").write_text(_DENSE.replace("?s :p ?x", f"?s :p ?x VALUES ?s {{ {rows} }}"))
    done = subprocess.run(
        [sys.executable, "-m", "spaseq", "check", "q.rq", "--set", "time_limit=300ms"], cwd=folder, text=True,
        capture_output=True, check=False,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_IGN) if background else harness.hear_interrupts,
    )  # fmt: skip
    assert done.returncode == 4 and "stopped at time_limit, which is 0.3 seconds" in done.stderr


def test_alerts_have_limits(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ceql_main(["alert", "q.ceql", "--events", "e.csv", "--set", "time_limit=0s"]) == 4
    assert "time_limit" in capsys.readouterr().err


def test_limits_in_python(folder: Path) -> None:
    settings = ceql.Settings(time_limit=0.2)
    with pytest.raises(ceql.LimitReached, match="time_limit") as caught:
        ceql.compile(_LONG, settings=settings).run("many.csv").count()
    assert caught.value.setting == "time_limit" and caught.value.exit_code == 4
    with pytest.raises(spaseq.LimitReached, match="memory_limit"):
        list(spaseq.compile(_DENSE, settings=spaseq.Settings(memory_limit=1)).run({"S": "s.nt"}, event_by="size:1"))
    session = ceql.compile(_EXPLOSION, settings=settings).open()
    with pytest.raises(ceql.LimitReached):
        session.push([{"type": "A"}] * 60)
    with pytest.raises(ceql.OptionError, match="stopped in the middle of its work, by LimitReached"):
        session.push({"type": "A"})
    quick = ceql.compile("SELECT * WHERE A", settings=settings).open()
    time.sleep(0.3)  # of a session each call has its own time
    assert len(quick.push([{"type": "A"}])) == 1


@pytest.mark.parametrize(("name", "value"), _WRONG)
def test_settings_that_are_none(name: str, value: Any) -> None:
    with pytest.raises(ceql.OptionError, match=name):
        ceql.Settings(**{name: value})
    wrong: Any = {name: value}
    for compiled in (lambda: ceql.compile(_EXPLOSION, settings=wrong), lambda: spaseq.compile(_DENSE, settings=wrong)):
        with pytest.raises(ceql.OptionError, match=r"settings are spaseq\.Settings, and this is a dict"):
            compiled()


def test_solution_rows_can_be_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.rq").write_text(
        "PREFIX : <urn:e#> SELECT ?s FROM STREAM S <urn:s> WHERE { SEQ (A) DEFINE GPM A ON S { ?s :p ?x . ?t :p ?y } }"
    )
    more = ["--set", "solution_rows=1000", "--event-by", "size:200"]
    assert spaseq_main([*_SPASEQ[:-1], "size:200", *more]) == 4
    assert "solution_rows is 1,000 rows" in capsys.readouterr().err


def test_an_order_without_a_window_is_said_before_and_ends_at_a_budget(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each b is above all the a's before it, so the structure grows with their pairs."""
    query = "SELECT * WHERE A AS a ; B AS b FILTER b.v > a.v"
    assert ceql_main(["check", query]) == 0
    assert "memory grows with the number of distinct b.v and a.v" in capsys.readouterr().err
    rows = [*(f"A,{n}" for n in range(200)), *(f"B,{n}" for n in range(500, 600))]
    (folder / "e.csv").write_text("\n".join(["type,v", *rows]))
    assert ceql_main(["run", query, "--events", "e.csv", "--output", "out.csv", "--set", "arena_bytes=600KB"]) == 4
    error = capsys.readouterr().err
    assert "arena_bytes is 600,000 bytes" in error and "give a WITHIN where there is none" in error


# -- Ctrl-C


def _started(folder: Path, *command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=harness.hear_interrupts, env={**os.environ, "SPASEQ_INTERPRET": "0"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [["ceql", *_COUNT],
     pytest.param(["ceql", *_CEQL, "--format", "jsonl"], marks=pytest.mark.slow),  # `test_slow_readers` lists, too
     ["spaseq", *_SPASEQ, "--format", "jsonl"]],
    ids=["in a kernel", "listing", "spaseq"],
)  # fmt: skip
def test_ctrl_c_is_heard_and_says_what_was_done(folder: Path, command: list[str]) -> None:
    process = _started(folder, *command)
    lines: list[str] = []
    assert process.stdout is not None and process.stderr is not None
    if "jsonl" in command:
        lines = [process.stdout.readline() for _ in range(3)]
    else:
        time.sleep(5)
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))  # type: ignore[arg-type]
    reader.start()
    process.send_signal(signal.SIGINT)
    error = process.stderr.read()
    reader.join()
    assert process.wait(timeout=60) == 130
    assert error.startswith("interrupted") and "Traceback" not in error
    assert all(map(json.loads, lines)) and all(line.endswith("\n") for line in lines)


def test_ctrl_c_while_modules_are_imported(tmp_path: Path) -> None:
    """A module that gets its interrupt while it is imported; and both commands start by `spaseq.tools.start`."""
    (tmp_path / "late.py").write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n")
    process = subprocess.run(
        [sys.executable, "-c", "from spaseq.tools.start import command; command('late')"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, preexec_fn=harness.hear_interrupts, check=False,
    )  # fmt: skip
    assert (process.returncode, process.stderr) == (130, "interrupted\n")
    scripts = tomllib.loads((Path(spaseq.__file__).parents[1] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"spaseq": "spaseq.tools.start:spaseq", "ceql": "ceql.start:ceql"}


# -- streams that the process was started without, or that take nothing


def _slow(*case: Any) -> Any:
    """A case beside one of the same kind."""
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("command", "closed", "code", "output", "error"),
    [
        ("run q.ceql --events e.csv --format count", ">&-", 3, "", "cannot write the results: Bad file descriptor\n"),
        _slow("explain q.ceql", ">&-", 3, "", "cannot write the results: Bad file descriptor\n"),
        ("explain q.ceql", ">/dev/full", 3, "", "cannot write the results: No space left on device\n"),
        _slow("alert q.ceql --events e.csv", ">&-", 3, "", "cannot write the results: Bad file descriptor\n"),
        ("check q.ceql", ">&-", 0, "", ""),
        ("run q.ceql --events - --format count", "<&-", 0, "0\n", "note: no event was read\n"),
        ("run n.ceql --events e.csv --format count", "2>&-", 0, "0\n", ""),
        ("run q.ceql --events none.csv", "<&- >&- 2>&-", 3, "", ""),
    ],
)
def test_closed_streams(tmp_path: Path, command: str, closed: str, code: int, output: str, error: str) -> None:
    (tmp_path / "e.csv").write_text("type,time\nA,1\nA,2\n")
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A")
    (tmp_path / "n.ceql").write_text("SELECT * WHERE N")  # with a note
    line = f"{sys.executable} -m ceql {command} {closed}"
    found = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (code, output, error)


# -- sessions


@pytest.mark.parametrize("language", ["ceql", "spaseq"])
def test_a_session_used_twice_at_once_says_so(language: str) -> None:
    session: Any
    event: Any
    if language == "ceql":
        session = ceql.compile("SELECT * WHERE A ; B").open()
        event = {"type": "A"}
    else:
        session = spaseq.compile(_DENSE).open()
        event = spaseq.GraphEvent("urn:s", 1, ())

    other: list[BaseException] = []

    def push() -> None:
        try:
            session.push(event)
        except ceql.OptionError as error:
            other.append(error)

    with session._use:  # as a push in progress has it
        push()
        thread = threading.Thread(target=push)
        thread.start()
        thread.join()
    assert len(other) == 2 and all("in use" in str(error) for error in other)

    def events() -> object:
        yield event
        session.push(event)  # before its own events are looked at

    session.push(events())
    session.push([event])


def test_an_exception_in_the_middle_leaves_a_session_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ceql.compile("SELECT * WHERE A ; B").open()
    session.push([{"type": "A"}, {"type": "A"}])
    with monkeypatch.context() as patched:
        patched.setattr(Evaluator, "_moving", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.push([{"type": "B"}] * 1_000)  # not one by one
    with pytest.raises(ceql.OptionError, match="by ZeroDivisionError"):
        session.push({"type": "B"})
