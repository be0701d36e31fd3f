"""`ceql run --follow`: files that grow, folders that get files, pipes, the clock, and Ctrl-C."""

from __future__ import annotations

import csv
import io
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ceql
from ceql.cli.main import main
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import growing
from tests.support import harness
from tests.support.sizes import some

PATIENCE = 300.0
"""Seconds after which what should come is given up: enough to compile all kernels on a busy machine."""
PAIRS = "SELECT * WHERE A AS x ; B AS y FILTER x.v <= y.v PARTITION BY [user] WITHIN 6 SECONDS"
ROWS = (
    "SELECT user, x.v AS first, y.v AS then, y.note AS note WHERE A AS x ; B AS y PARTITION BY [user] WITHIN 6 SECONDS"
)
ABSENT = "SELECT * WHERE A AS x ; NOT B PARTITION BY [user] WITHIN 3 SECONDS"
LOOPS = "SELECT x[v], y[note] WHERE A AS x -> (B AS y)->+ -> C WITHIN 8 SECONDS"
QUERIES = {"pairs": PAIRS, "rows": ROWS, "absence": ABSENT, "loops": LOOPS}


def _events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    found, at = [], 0
    for number in range(count):
        at += rng.choice((0, 0, 1, 1, 2))
        event = {"type": rng.choice("ABC"), "time": at, "user": rng.choice(("ann", "bob", None))}
        event |= {
            "v": rng.choice((0, 1, 2.5, None)) if number > 1 else 1,
            "note": rng.choice(("a, b", "NULL", "", None)),
        }
        found.append(event)
    return found


def _text(events: list[dict[str, Any]], form: str) -> str:
    if form == "jsonl":
        return "".join(json.dumps({k: v for k, v in event.items() if v is not None}) + "\n" for event in events)
    sign = {"csv": ",", "tsv": "\t"}[form]
    lines = [sign.join(events[0])]
    for event in events:
        lines.append(sign.join(_field(value) for value in event.values()))
    return "\n".join(lines) + "\n"


def _field(value: Any) -> str:
    return "" if value is None else f'"{value}"' if isinstance(value, str) and value != "ann" else str(value)


class _Pieces:
    """Standard input that comes in pieces."""

    def __init__(self, text: bytes, rng: random.Random) -> None:
        size = rng.choice((3, 20, 200, 2_000))
        cuts = sorted({0, len(text), *(rng.randrange(len(text)) for _ in range(len(text) // size))})
        self._pieces = [text[a:b] for a, b in pairwise(cuts)]

    @property
    def buffer(self) -> _Pieces:
        return self

    def read1(self, size: int = -1) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


def _shown(text: str, form: str) -> list[Any]:
    """The results as values: 1 and 1.0 are one."""
    if form == "jsonl":
        return [json.loads(line, parse_int=float) for line in text.splitlines()]
    rows = list(csv.reader(io.StringIO(text), delimiter="," if form == "csv" else "\t"))
    return [[_number(cell) for cell in row] for row in rows]


def _ordered(result: Any) -> str:
    return json.dumps(result, sort_keys=True)


def _number(cell: str) -> Any:
    """A number, or a list of numbers; else the text."""
    try:
        return json.loads(cell, parse_int=float)
    except ValueError:
        return cell


# TSV is CSV with another delimiter.
@pytest.mark.parametrize("form", ["csv", pytest.param("tsv", marks=pytest.mark.slow), "jsonl"])
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_whatever_comes_together_it_is_the_run_over_the_whole(
    query: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(f"{query} {form}")
    for _ in range(some(12)):
        path = tmp_path / f"events.{form}"
        path.write_text(_text(_events(rng, rng.randrange(2, 60)), form))
        shown = rng.choice(("csv", "tsv", "jsonl"))
        words = ["run", query, "--events", str(path), "--format", shown]
        assert main(words) == 0
        whole = _shown(capsys.readouterr().out, shown)
        monkeypatch.setattr(sys, "stdin", _Pieces(path.read_bytes(), rng))
        assert main(["run", query, "--events", "-", "--follow", "--format", shown]) == 0
        found = _shown(capsys.readouterr().out, shown)
        assert found[:1] == whole[:1] or shown == "jsonl"
        assert sorted(map(_ordered, found)) == sorted(map(_ordered, whole))
        if query is not ABSENT:  # those of windows that close together come by starts, if they come by ends together
            assert found == whole


class _Command:
    """The command as a process, and the lines it prints, each with the time at which it came."""

    def __init__(self, *words: str, cwd: Path) -> None:
        command = [sys.executable, "-m", "ceql", "run", *words, "--follow"]
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=harness.hear_interrupts,
        )  # fmt: skip
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def expect(self, *lines: str) -> None:
        """Wait for these lines, which are all so far."""
        deadline = time.monotonic() + PATIENCE
        while len(self.lines) < len(lines):
            assert time.monotonic() < deadline and self.process.poll() is None, self.end()
            time.sleep(0.01)
        assert self.lines == [*lines]

    def end(self, number: int = signal.SIGKILL) -> tuple[int, str]:
        """Its exit code, and what it said."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        assert self.process.stderr is not None
        return code, self.process.stderr.read()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., _Command]]:
    begun: list[_Command] = []

    def start(*words: str) -> _Command:
        begun.append(_Command(*words, cwd=tmp_path))
        return begun[-1]

    yield start
    for command in begun:
        if command.process.poll() is None:
            command.end()


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


SUMS = "SELECT x.v AS a, y.v + 1 AS b WHERE A AS x : B AS y"


@pytest.mark.parametrize(
    ("form", "head", "rows"),
    [
        ("csv", ["a,b"], ["1,3", "5,7"]),
        # TSV is CSV with another delimiter; of JSON lines that come at once there is a quick test in `test_clock`.
        pytest.param("tsv", ["a\tb"], ["1\t3", "5\t7"], marks=pytest.mark.slow),
        pytest.param("jsonl", [], ['{"a": 1, "b": 3}', '{"a": 5, "b": 7}'], marks=pytest.mark.slow),
        ("table", [], ["a  b", "-  -", "1  3", "5  7"]),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_each_match_is_out_before_the_next_event(
    form: str, head: list[str], rows: list[str], number: int, tmp_path: Path, begin: Callable[..., _Command]
) -> None:
    """A signal ends it; what was found is counted, and what waits for its window is named. The form of matches does not
    depend on the signal, and each command takes as long to start as all else here: SIGTERM is slow."""
    path = tmp_path / "log.csv"
    path.write_text("type,v\nA,1\n")
    command = begin(SUMS, "--events", "log.csv", "--format", form)
    command.expect(*head)
    _append(path, "B,2\nA,")
    first = rows[:-1]
    command.expect(*head, *first)
    _append(path, "5\nB,6\n")
    command.expect(*head, *rows)
    time.sleep(0.3)  # until it waits
    code, said = command.end(number)
    assert command.lines == [*head, *rows]
    assert code == (130 if number == signal.SIGINT else 143)
    assert said.splitlines()[0].endswith(": 4 events read, 2 matches written")


def test_a_pipe_ends_it_and_standard_input_needs_no_name(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    command = begin(SUMS, "--events", "-", "--format", "csv")
    assert command.process.stdin is not None
    command.process.stdin.write('{"type": "A", "v": 1}\n{"type": "B", "v": 2}\n')
    command.process.stdin.flush()
    command.expect("a,b", "1,3")
    command.process.stdin.write('{"type": "A", "v": 7}\n{"type": "B", "v": 9}')
    command.process.stdin.close()
    assert command.process.wait(PATIENCE) == 0
    command.expect("a,b", "1,3", "7,10")


@pytest.mark.slow
def test_what_waits_for_its_window_is_told(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    """Slow, as the same is told of alerts in `test_signals`, without a process."""
    (tmp_path / "log.csv").write_text("type,time\nA,1\nA,2\n")
    command = begin("SELECT * WHERE A ; NOT B WITHIN 10 SECONDS", "--events", "log.csv", "--format", "csv")
    command.expect("start,end,positions,start_time,end_time")
    time.sleep(1)
    code, said = command.end(signal.SIGINT)
    assert code == 130
    assert "2 events read, 0 matches written" in said
    assert "2 matches are not written: what comes next decides about them" in said


def test_a_folder_gets_files_of_every_form(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    """In the order of their names, each with a head of its own; one that may grow ends as the next is there."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_text("type,v\nA,1\n")
    (folder / "notes.md").write_text("no events")
    (folder / ".2.csv").write_text("half of a fi")
    command = begin(SUMS, "--events", "in", "--format", "csv")
    command.expect("a,b")

    def move(name: str, write: Callable[[Path], Any]) -> None:
        write(tmp_path / name)
        (tmp_path / name).rename(folder / name)

    move("2.jsonl", lambda path: path.write_text('{"v": 2, "type": "B"}\n{"v": 3, "type": "A"}'))
    command.expect("a,b", "1,3")
    table = pa.table({"type": ["B", "A"], "v": [4, 5]})
    move("3.parquet", lambda path: pq.write_table(table, path))
    command.expect("a,b", "1,3", "3,5")
    move("4.tsv", lambda path: path.write_text("v\ttype\n6\tB\n7\tA\n"))
    command.expect("a,b", "1,3", "3,5", "5,7")
    _append(folder / "4.tsv", "8\tB\n")
    command.expect("a,b", "1,3", "3,5", "5,7", "7,9")
    (folder / "4.tsv").unlink()
    move("3.csv", lambda path: path.write_text("type,v\n"))
    code = command.process.wait(PATIENCE)
    assert command.process.stderr is not None
    assert code == 3 and "appeared in front of 4.tsv" in command.process.stderr.read()


@pytest.mark.slow
def test_the_clock_closes_windows(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    """An absence is known as its window closes, and a query over an attribute that is not the time as well.
    Slow, as `test_clock` has alerts of absences."""
    now = time.time()
    (tmp_path / "log.csv").write_text(f"type,time\nA,{now}\n")
    words = ("--events", "log.csv", "--clock", "200ms", "--format", "csv", "--time-unit", "s")
    command = begin("SELECT MATCH_START AS at WHERE A ; NOT B WITHIN 300 MILLISECONDS", *words)
    deadline = time.monotonic() + PATIENCE
    while len(command.lines) < 2:
        assert time.monotonic() < deadline and command.process.poll() is None, command.end()
        time.sleep(0.01)
    assert command.lines[0] == "at" and abs(float(command.lines[1]) - now) < 1e-3


@pytest.mark.parametrize("form", ["csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_what_times_out_is_written_as_it_happens(form: str, tmp_path: Path, begin: Callable[..., _Command]) -> None:
    """Beside the matches, by events and by the clock; the same rows as over the whole."""
    now = int(time.time())
    path, late = tmp_path / "log.csv", tmp_path / f"late.{form}"
    path.write_text(f"type,time,v\nA,{now - 9},1\nA,{now - 8},2\nB,{now - 7},3\n")
    query = "SELECT a.v AS v, b.v AS w WHERE A AS a ; B AS b ; C AS c WITHIN 2 SECONDS"
    words = (query, "--events", "log.csv", "--timed-out", late.name, "--format", "csv")
    command = begin(*words, "--clock", "4s")  # even if the machine is busy, the event below is on time
    rows = _wait_for_rows(late, form, 2, command)
    assert [row[-2:] for row in rows] == [[1, 3], [2, 3]]
    _append(path, f"A,{time.time():.3f},7\n")
    rows = _wait_for_rows(late, form, 3, command)  # by the clock
    assert rows[2][-2:] == [7, None]
    command.end(signal.SIGINT)
    whole = tmp_path / f"whole.{form}"
    assert (
        main(["run", query, "--events", str(path), "--timed-out", str(whole), "--output", str(tmp_path / "m.csv")]) == 0
    )
    assert late.read_text() == whole.read_text()


def _wait_for_rows(path: Path, form: str, count: int, command: _Command) -> list[list[Any]]:
    deadline = time.monotonic() + PATIENCE
    rows: list[list[Any]] = []
    while len(rows) < count:
        assert time.monotonic() < deadline and command.process.poll() is None, command.end()
        time.sleep(0.02)
        text = path.read_text() if path.exists() else ""
        found = _shown(text, form)
        rows = [list(row.values()) for row in found] if form == "jsonl" else [
            [None if cell == "" else cell for cell in row] for row in found[1:]
        ]  # fmt: skip
    return rows


def test_the_limit_ends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.csv").write_text("type,v\nA,1\nB,2\nA,3\nB,4\n")
    assert main(["run", SUMS, "--events", str(tmp_path / "log.csv"), "--follow", "--limit", "1"]) == 0
    assert capsys.readouterr().out == '{"a": 1, "b": 3}\n'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--events", "a.parquet", "--follow"], "a.parquet: only text can be read as it grows"),
        (["--events", "a.arrow", "--follow"], "a.arrow: only text can be read as it grows"),
        (["--events", "*.csv", "--follow"], "*.csv: a glob is not followed"),
        (["--events", "a.csv.gz", "--follow"], "a.csv.gz: only text can be read as it grows"),
        (["--events", "a.csv", "--events", "b.csv", "--follow"], "one file is followed, or one for each stream"),
        (["--stream", "S=a.csv,b.csv", "--follow"], "one file is followed, or one for each stream"),
        (["--events", "a.csv", "--clock", "2s"], "--clock without --follow"),
        (["--events", "a.csv", "--follow", "--clock", "1ms"], "a clock 1ms behind"),
        (["--events", "a.csv", "--follow", "--format", "json"], "--format json with --follow"),
        (["--events", "a.csv", "--follow", "--format", "count"], "--format count with --follow"),
        (["--events", "a.csv", "--follow", "--output", "found.parquet"], "--format parquet with --follow"),
        (["--events", "a.csv", "--follow", "--timed-out", "late.parquet"], "--format parquet with --follow"),
    ],
)
def test_what_cannot_be_followed(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", SUMS, *words]) == 2
    assert said in capsys.readouterr().err


def test_the_library_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    path.write_text("type,v\nA,1\n")
    pieces = iter(["B,2\n", "A,3\n"])

    def sleep(seconds: float) -> None:
        _append(path, next(pieces, "B,4\n"))

    monkeypatch.setattr(growing.time, "sleep", sleep)
    query = ceql.compile(SUMS)
    matches = query.follow(path)
    assert next(iter(matches)).row == {"a": 1, "b": 3}
    with pytest.raises(OptionError, match="read once"):
        next(iter(matches))
    assert query.follow(str(path)).count(2) == 2
    assert query.follow(streams={"S": path}).count(1) == 1
    with pytest.raises(OptionError, match="neither true nor false"):
        bool(query.follow(path))
    with pytest.raises(OptionError, match="is no file that grows"):
        query.follow([{"type": "A"}])
    with pytest.raises(OptionError, match="one file is followed"):
        query.follow([path, path])
    with pytest.raises(EventError, match="no such file"):
        next(iter(query.follow(tmp_path / "none.csv")))
    assert "none is shown" in query.follow(path)._repr_html_()


def test_what_came_before_the_next_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is added to a file between the last look at it and the look for the next file is not lost."""
    (tmp_path / "1.csv").write_text("type,v\nA,1\n")
    look = growing.InTurn.upcoming
    looks = iter(range(1_000))

    def upcoming(files: growing.InTurn) -> str | None:
        if next(looks) == 2:
            _append(tmp_path / "1.csv", "B,2")
            (tmp_path / "2.csv").write_text("type,v\nA,3\nB,4\n")
        return look(files)

    monkeypatch.setattr(growing.InTurn, "upcoming", upcoming)
    found = [match.row for match in _first(ceql.compile(SUMS).follow(tmp_path), 2)]
    assert found == [{"a": 1, "b": 3}, {"a": 3, "b": 5}]


def _first(matches: Any, count: int) -> Iterator[Any]:
    """The first so many matches; no more are waited for."""
    return islice(matches, count)


# -- several streams

JOINED = "SELECT x.id AS x, y.id AS y, z.id AS z FROM S, T, U WHERE S>A AS x ; T>B AS y ; U>C AS z WITHIN 6 SECONDS"
FAR = 5_000
"""A time behind all others, at which every stream has an event: what waits for its order comes out."""


def _streams(rng: random.Random, jitter: int) -> dict[str, list[str]]:
    """Lines of CSV of each stream; times go back by up to so much. No two streams have equal times: with a lateness
    these come in the order of arrival."""
    found = {}
    for place, (name, kind) in enumerate(zip("STU", "ABC", strict=True)):
        at, lines = 0, []
        for number in range(rng.randrange(25)):
            at += rng.choice((0, 1, 1, 2))
            lines.append(f"{kind},{max(0, at - rng.randrange(jitter + 1)) + place / 4},{number}\n")
        found[name] = ["type,time,id\n", *lines, f"X,{FAR},0\n"]
    return found


def _write(folder: Path, streams: dict[str, list[str]], rng: random.Random | None = None) -> None:
    """The lines, all or, at random, some behind those that were written before."""
    for name, lines in streams.items():
        count = len(lines) if rng is None else rng.randrange(len(lines) + 1)
        _append(folder / f"{name}.csv", "".join(lines[:count]))
        del lines[:count]


@pytest.mark.parametrize("jitter", [0, 3])
def test_streams_that_are_there_are_merged_by_time(jitter: int, tmp_path: Path) -> None:
    query = ceql.compile(JOINED)
    for seed in range(6):
        folder = tmp_path / str(seed)
        folder.mkdir()
        _write(folder, _streams(random.Random(seed), jitter))
        paths = {name: str(folder / f"{name}.csv") for name in "STU"}
        whole = [match.row for match in query.run(streams=paths, lateness=f"{jitter}s")]
        followed = query.follow(streams=paths, lateness=f"{jitter}s", late="drop")
        found = [match.row for match in _first(followed, len(whole))]
        assert found == whole and followed.counters.late == 0
    assert not [thread for thread in threading.enumerate() if thread.name == "spaseq ahead"]


def test_streams_that_grow_wait_for_no_silent_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a lateness beyond the whole span, the order in which they come is immaterial."""
    query, looks, sleep = ceql.compile(JOINED), Counter[int](), time.sleep

    def look_again(seconds: float) -> None:
        looks[threading.get_ident()] += 1
        sleep(0.01)

    def wait_until_all_is_read() -> None:
        """Each reader has looked twice and found nothing."""
        before, deadline = Counter(looks), time.monotonic() + PATIENCE
        while sum(looks[thread] > before[thread] + 1 for thread in list(looks)) < 3:
            assert time.monotonic() < deadline
            sleep(0.01)

    for seed in range(4):
        rng = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        streams, paths = _streams(rng, 3), {name: str(folder / f"{name}.csv") for name in "STU"}
        _write(folder, {name: list(lines) for name, lines in streams.items()})
        whole = [match.row for match in query.run(streams=paths, lateness="9s")]
        for path in folder.iterdir():
            path.unlink()
            path.touch()
        last = {name: [lines.pop()] for name, lines in streams.items()}
        found: list[Any] = []
        followed = query.follow(streams=paths, lateness=f"{FAR - 1000}s")

        def take(followed: Any = followed, found: list[Any] = found, count: int = len(whole)) -> None:
            found += [match.row for match in _first(followed, count)]

        with monkeypatch.context() as patch:
            looks.clear()
            patch.setattr(growing.time, "sleep", look_again)
            taking = threading.Thread(target=take)
            taking.start()
            while any(streams.values()):
                _write(folder, streams, rng)
                sleep(rng.choice((0.0, 0.02, 0.1)))
            if whole:
                wait_until_all_is_read()
            _write(folder, last)
            taking.join(PATIENCE)
        assert not taking.is_alive() and found == whole


def test_a_late_stream_is_late(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    """As a process: matches come though one stream is silent; what comes behind them is an error, or dropped."""
    (tmp_path / "a.csv").write_text("time,v\n1,1\n5,2\n")
    (tmp_path / "b.jsonl").write_text('{"time": 6, "v": 3}\n')
    query = "SELECT x.v AS v, y.v AS w WHERE A AS x : B AS y"
    words = (query, "--events", "A=a.csv", "--events", "B=b.jsonl", "--format", "csv")
    dropping, failing = begin(*words, "--late", "late.csv"), begin(*words)
    for command in (dropping, failing):
        command.expect("v,w", "2,3")
    _append(tmp_path / "a.csv", "3,4\n8,5\n")
    code = failing.process.wait(PATIENCE)
    _wait_for_rows(tmp_path / "late.csv", "csv", 1, dropping)  # else the other stream may be ahead of this one
    _append(tmp_path / "b.jsonl", '{"time": 9, "v": 6}\n')
    dropping.expect("v,w", "2,3", "5,6")
    assert failing.process.stderr is not None
    said = failing.process.stderr.read()
    assert code == 3 and "a.csv, event 3: the stream goes back in time by 3 s" in said and "(b.jsonl, event 1)" in said
    code, said = dropping.end(signal.SIGINT)
    assert code == 130 and "A, B: 1 event came too late and was dropped" in said
    late = (tmp_path / "late.csv").read_text().splitlines()[1:]
    assert late == ['PT3S,3,A,a.csv,3,"{""time"": 3, ""v"": 4}"']


def test_streams_by_the_clock(tmp_path: Path, begin: Callable[..., _Command]) -> None:
    now = int(time.time())
    for name in "AB":
        (tmp_path / f"{name}.csv").write_text("time\n" + (f"{now}\n" if name == "A" else ""))
    command = begin("SELECT 1 AS n WHERE A ; NOT B WITHIN 1 SECOND", "--events", "A=A.csv", "--events", "B=B.csv",
                    "--clock", "100ms", "--format", "csv")  # fmt: skip
    command.expect("n", "1")


def test_streams_without_times_have_no_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "AB":
        (tmp_path / f"{name}.csv").write_text("v\n1\n")
    files = [word for name in "AB" for word in ("--events", f"{name}={tmp_path / name}.csv")]
    assert main(["run", "SELECT * WHERE A ; B", *files, "--follow"]) == 2
    assert "streams that go on have no common order" in capsys.readouterr().err
