"""SIGTERM and SIGHUP end a command as Ctrl-C does: what was found is written, and what is held back is said."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ceql.cli.main import main as ceql
from spaseq.cli.main import main as spaseq
from spaseq.rdf.columns.follow import Followed
from tests.support import harness

_QUERY = """SELECT ?s ?t FROM STREAM S <urn:s> WHERE { SEQ (A, B)
DEFINE GPM A ON S { ?s <urn:p> 1 } DEFINE GPM B ON S { ?t <urn:p> 2 } }"""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_GRAPH = f"""<urn:g{{0}}> <http://www.w3.org/ns/prov#generatedAtTime> "2020-01-01T00:00:0{{0}}Z"^^<{_XSD}dateTime> .
<urn:n{{0}}> <urn:p> "{{1}}"^^<{_XSD}integer> <urn:g{{0}}> .
"""
_PATIENCE = 120


def _started(folder: Path, *words: str, hear: Callable[[], None] = harness.hear_interrupts) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, preexec_fn=hear,
    )  # fmt: skip


def _ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[str, str]:
    process.send_signal(number)
    try:
        return process.communicate(timeout=_PATIENCE)
    finally:
        process.kill()


def test_followed_streams_say_what_is_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the four graphs the last may get company; only a later one would say that it is alone."""
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(_QUERY)
    Path("s.nq").write_text(
        "".join(_GRAPH.format(i, 2 - i % 2) for i in range(1, 5)) + "<urn:x> <urn:p> <urn:y> <urn:g5> .\n"
    )
    arrived = Followed._arrived

    def interrupted(self: Followed) -> Iterator[Any]:
        taken = 0
        for found in arrived(self):
            yield found
            taken += sum(map(len, found or ()))
            if taken == 4:  # all are evaluated
                raise KeyboardInterrupt

    monkeypatch.setattr(Followed, "_arrived", interrupted)
    assert spaseq(["run", "q.rq", "--stream", "S=s.nq", "--follow", "--format", "csv"]) == 130
    out, err = capsys.readouterr()
    assert out.splitlines()[1:] == ["2020-01-01T00:00:02Z,urn:n1,urn:n2"]
    assert err.startswith("interrupted: 4 events read, 1 results written\n")
    assert "warning: 1 match is not written: what comes next decides about it\n" in err


def test_followed_alerts_say_what_is_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spaseq.core.events.growing.time.sleep", interrupt)
    Path("q.ceql").write_text("SELECT * WHERE A ; NOT B WITHIN 3 [time]")
    Path("e.csv").write_text("type,time\nA,1\nC,8\nA,9\nC,11\nC,12\n")
    words = ["alert", "q.ceql", "--events", "e.csv", "--follow", "--format", "csv", "--lateness", "2s"]
    assert ceql(words) == 130
    out, err = capsys.readouterr()
    assert out == "position,time,type\n0,1,A\n"
    assert err.startswith("interrupted: 3 events read, 1 lines written\n")
    assert "warning: 1 match is not written: what comes next decides about it\n" in err
    assert "warning: 2 events were held back for their order, and not evaluated\n" in err


_GRAPHS = "spaseq run q.rq --stream S=s.nq --follow --format csv"
_TUPLES = "ceql alert q.ceql --events e.csv --follow"
_SLOW = pytest.mark.slow


# Slow are those of which the command is quick with another signal, and the signal with the other command.
@pytest.mark.parametrize(
    ("words", "number"),
    [
        (_GRAPHS, signal.SIGTERM),
        pytest.param(_GRAPHS, signal.SIGHUP, marks=_SLOW),
        pytest.param(_GRAPHS, signal.SIGINT, marks=_SLOW),
        pytest.param(_TUPLES, signal.SIGTERM, marks=_SLOW),
        (_TUPLES, signal.SIGHUP),
        (_TUPLES, signal.SIGINT),
    ],
)
def test_signals_end_what_is_followed(tmp_path: Path, words: str, number: signal.Signals) -> None:
    (tmp_path / "q.rq").write_text(_QUERY)
    (tmp_path / "s.nq").write_text("".join(_GRAPH.format(i, 2 - i % 2) for i in range(1, 5)))
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A")
    (tmp_path / "e.csv").write_text("type\nA\n")
    process = _started(tmp_path, *words.split())
    assert process.stdout is not None and process.stdout.readline()
    _, err = _ended(process, number)
    assert process.returncode == 128 + number
    assert re.match(r"(interrupted|ended by SIG\w+): \d+ events read, \d+ (results|lines) written\n", err)
    assert ("interrupted" in err) == (number == signal.SIGINT) and (number == signal.SIGINT or number.name in err)


def test_a_long_run_that_is_ended_has_its_document(tmp_path: Path) -> None:
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A+ ; B")
    (tmp_path / "e.csv").write_text("type\n" + "A\n" * 40 + "B\n" + "A\n" * 40 + "B\n")
    process = _started(tmp_path, "ceql", "run", "q.ceql", "--events", "e.csv", "--format", "json")
    assert process.stdout is not None
    first = process.stdout.read(1 << 16)
    out, err = _ended(process, signal.SIGTERM)
    assert process.returncode == 143 and err.startswith("ended by SIGTERM: 82 events read, ")
    assert (first + out).startswith("[\n  {") and (first + out).endswith("}\n]\n")


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    script = """
import time
from spaseq.tools.command.process import run_command

def main():
    try:
        print("ready", flush=True)
        time.sleep(50)
    except KeyboardInterrupt:
        print("first", flush=True)
        while True:
            try:
                time.sleep(50)
            except KeyboardInterrupt:
                pass

run_command(main)
"""
    process = _started(tmp_path, "timeit", "-n1", "-r1", script)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "first\n"
    _ended(process, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM


def test_a_signal_that_is_ignored_is_not_heard(tmp_path: Path) -> None:
    """As under nohup."""
    (tmp_path / "q.ceql").write_text("SELECT * WHERE A")

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = _started(tmp_path, "ceql", "run", "q.ceql", "--events", "-", "--format", "count", hear=ignore)
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate("type,v\nA,1\n", timeout=_PATIENCE)
    assert (process.returncode, out, err) == (0, "1\n", "")
