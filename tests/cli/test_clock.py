"""The clock goes on while a followed stream is silent: an absence is told in time, and what contradicts it is late."""

from __future__ import annotations

import datetime
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ceql.cli.main
import spaseq
import spaseq.cli.main
from spaseq.core.errors import OptionError
from spaseq.core.events import EventOptions, EventStream, GrowingFile

PATIENCE = 300.0
"""Seconds after which what should come is given up: enough to compile all kernels on a busy machine."""
BEHIND = 0.2
ABSENCE = "SELECT * WHERE alarm ; NOT ack WITHIN 300 MILLISECONDS"
GRAPHS = """PREFIX : <http://example.org/>
SELECT ?a WITHIN 300 MILLISECONDS SLIDING FROM STREAM S <http://example.org/S>
WHERE { SEQ (A; B!) DEFINE GPM A ON S { ?a :alarm ?x } DEFINE GPM B ON S { ?b :ack ?y } }"""
E = "http://example.org/"


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class _Command:
    """A command that follows standard input, and the lines it prints, each with the time at which it came."""

    def __init__(self, module: str, *words: str) -> None:
        command = [sys.executable, "-m", module, *words, "--follow", "--clock", f"{BEHIND}s", "--format", "jsonl"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._graphs = module == "spaseq"
        self._sent = 0
        self.lines: list[tuple[datetime.datetime, dict[str, Any]]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append((_now(), json.loads(line)))

    def send(self, kind: str, at: datetime.datetime | None = None) -> datetime.datetime:
        """Write an event, and return its time."""
        assert self._process.stdin is not None
        at = at or _now()
        self._sent += 1
        text = json.dumps({"type": kind, "time": at.isoformat()}) + "\n"
        if self._graphs:
            graph = f"<{E}g{self._sent}>"
            text = f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at.isoformat()}" .\n'
            text += f'<{E}u{self._sent}> <{E}{kind}> "{self._sent}" {graph} .\n'
        self._process.stdin.write(text)
        self._process.stdin.flush()
        return at

    def expect(self, count: int) -> None:
        """Wait for so many lines."""
        deadline = time.monotonic() + PATIENCE
        while len(self.lines) < count:
            assert time.monotonic() < deadline and self._process.poll() is None, self.end()
            time.sleep(0.005)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> tuple[int, str]:
        """The exit code and what it wrote on standard error, once its input has ended."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        code = process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert process.stderr is not None
        return code, process.stderr.read()


@pytest.fixture(params=["ceql", "spaseq"])
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    (tmp_path / "q.rq").write_text(GRAPHS, encoding="utf-8")
    (tmp_path / "q.ceql").write_text(ABSENCE, encoding="utf-8")
    if request.param == "ceql":
        yield "ceql", "alert", str(tmp_path / "q.ceql"), "--events", "-"
    else:
        yield "spaseq", "run", str(tmp_path / "q.rq"), "--stream", "S=-"


def test_an_absence_is_told_on_a_silent_stream(words: tuple[str, ...]) -> None:
    """On a machine with nothing else to do it comes 10 to 25 ms behind its time."""
    command = _Command(*words, "--late", "drop")
    command.send("other")
    delays = []
    for number in range(4):
        due = command.send("alarm") + datetime.timedelta(seconds=0.3 + BEHIND)
        command.expect(number + 1)
        delays.append((command.lines[-1][0] - due).total_seconds())
    assert min(delays) > -0.01  # the clock of the system may be set meanwhile, by a little
    assert min(delays) < 0.5
    command.send("alarm")
    command.send("ack")
    code, said = command.end()
    assert code == 0, said
    assert len(command.lines) == 4


@pytest.mark.parametrize(
    ("words", "late"),
    [
        ("ceql", "error"),
        ("spaseq", "drop"),
        pytest.param("ceql", "drop", marks=pytest.mark.slow),
        pytest.param("spaseq", "error", marks=pytest.mark.slow),
    ],
    indirect=["words"],
)
def test_a_late_event_is_counted_or_an_error(words: tuple[str, ...], late: str) -> None:
    command = _Command(*words, *(["--late", "drop"] if late == "drop" else []))
    at = command.send("alarm")
    command.expect(1)
    command.send("ack", at + datetime.timedelta(milliseconds=1))
    code, said = command.end()
    if late == "drop":
        assert code == 0 and len(command.lines) == 1
        assert "1 event came too late and was dropped" in said or "1 event(s) dropped" in said
    else:
        assert code == 3
        assert "goes back in time, behind the clock" in said and "a longer --clock waits for it" in said


@pytest.mark.parametrize("words", [pytest.param("ceql", marks=pytest.mark.slow), "spaseq"], indirect=True)
def test_an_interrupt_ends_it(words: tuple[str, ...]) -> None:
    command = _Command(*words)
    command.send("alarm")
    command.expect(1)
    command.interrupt()
    code, _ = command.end()
    assert code == 130


def test_a_file_that_grows(tmp_path: Path) -> None:
    """The times between batches say that nothing before them comes; the thread that reads ends with the stream."""
    path = tmp_path / "log.csv"
    path.write_text(f"type,time\nA,{_now().isoformat()}\n", encoding="utf-8")
    stream = EventStream({"": GrowingFile(str(path), clock=50_000_000)}, EventOptions()).as_it_comes()
    first = next(stream)
    assert not isinstance(first, int) and len(first) == 1
    one, two = next(stream), next(stream)
    assert isinstance(one, int) and isinstance(two, int) and one < two <= time.time_ns() - 50_000_000
    with path.open("a", encoding="utf-8") as file:
        file.write(f"B,{_now().isoformat()}\n")
    batch = next(item for item in stream if not isinstance(item, int))
    assert batch.positions.tolist() == [1]
    stream.close()  # type: ignore[attr-defined]
    assert not any(thread.name == "spaseq ahead" for thread in threading.enumerate())


def test_what_is_held_back_for_its_order_comes_by_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(f"type,time\nA,{_now().isoformat()}\n", encoding="utf-8")
    source = GrowingFile(str(path), clock=50_000_000)
    stream = EventStream({"": source}, EventOptions.parse(lateness="1h")).as_it_comes()
    assert len(next(item for item in stream if not isinstance(item, int))) == 1
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("type,x\nA,1\n", "the events have no times for the clock to go on from"),
        ("type,time\nA,5\n", "the clock goes on, and time is not of it: 1970-01-01T00:00:05Z"),
    ],
)
def test_times_that_are_of_no_clock_are_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OptionError, match=said):
        list(EventStream({"": GrowingFile(str(path), clock=50_000_000)}, EventOptions()).as_it_comes())


def test_what_cannot_be_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.rq").write_text(GRAPHS, encoding="utf-8")
    (tmp_path / "s.nq").write_text("", encoding="utf-8")
    tuples = ["alert", ABSENCE, "--events", "log.csv", "--clock"]
    graphs = ["run", str(tmp_path / "q.rq"), "--stream", f"S={tmp_path / 's.nq'}", "--clock", "1s"]
    for main, words, said in (
        (ceql.cli.main.main, [*tuples, "1s"], "--clock without --follow"),
        (ceql.cli.main.main, [*tuples, "10ms", "--follow"], "a clock 10ms behind: events would be late as they come"),
        (ceql.cli.main.main, [*tuples, "soon", "--follow"], "clock soon: not a duration"),
        (spaseq.cli.main.main, graphs, "--clock without --follow"),
        (spaseq.cli.main.main, [*graphs, "--follow", "--engine", "spark"], "--clock is of the local engine"),
        (spaseq.cli.main.main, [*graphs, "--follow", "--time-from", "arrival"], "leave --clock out"),
    ):
        assert main(words) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(OptionError, match="a clock 1ms behind"):
        spaseq.compile(GRAPHS).follow({"S": str(tmp_path / "s.nq")}, clock="1ms")
