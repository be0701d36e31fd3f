"""Streams that go on: growing files, folders that get files, the clock, and Ctrl-C."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.cli.main import main
from spaseq.core.events.growing import Watched
from spaseq.rdf import Followed, GraphEvent, StreamOptions, StreamSource
from tests.support import harness

E = "http://example.org/"
AT = "<http://www.w3.org/ns/prov#generatedAtTime>"
QUERY = f"""PREFIX : <{E}>
SELECT ?a ?x
FROM STREAM S <{E}S>
WHERE {{ SEQ (A; B) DEFINE GPM A ON S {{ ?a :p ?x }} DEFINE GPM B ON S {{ ?a :q ?x }} }}
"""
PATIENCE = 300.0
"""Seconds after which something that should come is given up: enough to compile all kernels on a busy machine."""


def _graph(number: int, time_: int, predicate: str) -> str:
    graph = f"<{E}g{number}>"
    return f'{graph} {AT} "{time_}" .\n<{E}u> <{E}{predicate}> "{number}" {graph} .\n'


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


class _Taken:
    """What comes out of `Followed` in a thread of its own."""

    def __init__(self, sources: list[StreamSource], options: StreamOptions) -> None:
        self.events: list[GraphEvent] = []
        self.error: Exception | None = None
        self.followed = Followed(sources, options, poll=0.02)
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        try:
            self.events.extend(event for event in self.followed if event is not None)
        except Exception as error:
            self.error = error

    def seconds(self) -> list[int]:
        return [event.time // 10**9 for event in self.events]

    def end(self) -> None:
        self.followed.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def taken() -> Iterator[Callable[..., _Taken]]:
    made: list[_Taken] = []

    def start(files: dict[str, Path], **options: Any) -> _Taken:
        sources = [StreamSource(E + name, (str(path),)) for name, path in files.items()]
        made.append(_Taken(sources, StreamOptions.parse(**options)))
        return made[-1]

    yield start
    for one in made:
        one.end()


def _append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_what_is_there_is_merged_by_time_and_files_grow(tmp_path: Path, taken: Callable[..., _Taken]) -> None:
    """A silent stream holds nobody up; a line counts when it is whole, a graph when the next begins."""
    s, t = tmp_path / "s.nq", tmp_path / "t.nq"
    s.write_text("".join(_graph(i, i, "p") for i in (1, 4, 5, 9)))
    t.write_text("".join(_graph(i, i, "p") for i in (2, 3, 6, 7)))
    found = taken({"S": s, "T": t}, lateness="10s")
    _append(s, _graph(30, 30, "p"))
    _append(s, _graph(31, 31, "p") + _graph(32, 32, "p")[:-9])
    _wait_for(lambda: 9 in found.seconds())
    _append(s, _graph(32, 32, "p")[-9:] + _graph(50, 50, "p") + _graph(60, 60, "p"))
    _wait_for(lambda: 32 in found.seconds())
    assert found.seconds() == sorted(found.seconds()) == [1, 2, 3, 4, 5, 6, 9, 30, 31, 32]


def test_a_folder_gets_files(tmp_path: Path, taken: Callable[..., _Taken]) -> None:
    """By name; what is no stream is left alone; a file is done when the next is there, so its last graph counts."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.nq").write_text(_graph(1, 1, "p") + _graph(2, 2, "p"))
    (folder / "notes.md").write_text("no stream")
    found = taken({"S": folder})
    _wait_for(lambda: found.seconds() == [1])
    (tmp_path / "b.nq").write_text(_graph(3, 3, "p") + _graph(4, 4, "p"))
    (tmp_path / "b.nq").rename(folder / "b.nq")
    _wait_for(lambda: found.seconds() == [1, 2, 3])
    _append(folder / "b.nq", _graph(5, 5, "p"))
    _wait_for(lambda: found.seconds() == [1, 2, 3, 4])
    assert found.followed.counters.events == 4


def test_what_goes_wrong_is_raised_where_events_are_taken(tmp_path: Path, taken: Callable[..., _Taken]) -> None:
    path = tmp_path / "s.nq"
    path.write_text(_graph(1, 1, "p") + _graph(2, 2, "p") + _graph(3, 3, "p"))
    found = taken({"S": path})
    _wait_for(lambda: found.seconds() == [1, 2])
    _append(path, "this is no statement\n")
    _wait_for(lambda: found.error is not None)
    assert isinstance(found.error, spaseq.EventError) and found.error.record == 7


def test_late_events_over_streams(tmp_path: Path, taken: Callable[..., _Taken]) -> None:
    s, t = tmp_path / "s.nq", tmp_path / "t.nq"
    s.write_text(_graph(1, 10, "p") + _graph(2, 20, "p"))
    t.write_text("")
    found = taken({"S": s, "T": t}, late="drop")
    _wait_for(lambda: found.seconds() == [10])
    _append(t, _graph(3, 5, "p") + _graph(4, 15, "p") + _graph(5, 16, "p"))
    _wait_for(lambda: found.seconds() == [10, 15])
    assert found.followed.counters.late == 1


def test_a_file_that_shrinks_is_an_error(tmp_path: Path, taken: Callable[..., _Taken]) -> None:
    path = tmp_path / "s.nq"
    path.write_text(_graph(1, 1, "p") + _graph(2, 2, "p"))
    found = taken({"S": path})
    _wait_for(lambda: found.seconds() == [1])
    path.write_text("")
    _wait_for(lambda: found.error is not None)
    assert "became shorter" in str(found.error)


def _unlink(path: Path) -> None:
    path.unlink()


def _put_another(path: Path) -> None:
    other = path.with_suffix(".other")
    other.write_text(path.read_text() + _graph(3, 3, "p"))
    other.replace(path)


def _write_anew(path: Path) -> None:
    """In one step: a file that is cut off first is seen as shorter, if it is looked at then."""
    with path.open("r+") as file:
        file.write("".join(_graph(i, i, "p") for i in range(5, 9)))


@pytest.mark.parametrize(
    "change, message",
    [(_unlink, "the file is gone"), (_put_another, "replaced by another"), (_write_anew, "written anew")],
)
def test_a_followed_file_that_is_no_longer_the_same(
    change: Callable[[Path], None], message: str, tmp_path: Path, taken: Callable[..., _Taken]
) -> None:
    path = tmp_path / "s.nq"
    path.write_text(_graph(1, 1, "p") + _graph(2, 2, "p"))
    size = path.stat().st_size
    found = taken({"S": path})
    _wait_for(lambda: found.seconds() == [1])
    change(path)
    _wait_for(lambda: found.error is not None)
    assert isinstance(found.error, spaseq.EventError) and found.error.source == str(path)
    assert message in found.error.problem
    assert change is _write_anew or f"{size:,} bytes of it had been read" in found.error.problem


def test_a_followed_file_that_goes_between_two_looks_at_it(
    tmp_path: Path, taken: Callable[..., _Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at as the same file, and then for the next one: that found no file by this name."""
    path, look = tmp_path / "s.nq", Watched.check
    path.write_text(_graph(1, 1, "p") + _graph(2, 2, "p"))

    def check(watched: Watched, piece: bytes = b"") -> None:
        look(watched, piece)
        if not piece:
            path.unlink()

    monkeypatch.setattr(Watched, "check", check)
    found = taken({"S": path})
    _wait_for(lambda: found.error is not None)
    assert "the file is gone while it was followed" in str(found.error)


def test_files_of_a_folder_that_were_read_may_go_and_none_may_come_in_front(
    tmp_path: Path, taken: Callable[..., _Taken]
) -> None:
    for number in (2, 4):
        (tmp_path / f"{number}.nq").write_text(_graph(number, number, "p") + _graph(number + 1, number + 1, "p"))
    found = taken({"S": tmp_path})
    _wait_for(lambda: found.seconds() == [2, 3, 4])
    for number in (2, 4):
        (tmp_path / f"{number}.nq").unlink()
    (tmp_path / "6.nq").write_text(_graph(6, 6, "p") + _graph(7, 7, "p"))
    _wait_for(lambda: found.seconds() == [2, 3, 4, 5, 6])
    (tmp_path / "3.nq").write_text(_graph(8, 8, "p") + _graph(9, 9, "p"))
    _wait_for(lambda: found.error is not None)
    assert "appeared in front of 6.nq" in str(found.error)


@pytest.mark.parametrize(
    ("absence", "within"), [("B!", "WITHIN 250 MILLISECONDS SLIDING"), ("B! FOR 250 MILLISECONDS", "WITHIN 1 HOURS")]
)
def test_by_the_clock_absence_is_reported_without_another_event(tmp_path: Path, absence: str, within: str) -> None:
    """`A; B!` within a quarter of a second, or for as long: the clock ends that, though nothing more comes."""
    path = tmp_path / "s.nt"
    path.write_text("".join(f'<{E}u{i}> <{E}p> "1" .\n' for i in range(2)))
    text = QUERY.replace("(A; B)", f"(A; {absence})").replace("SELECT ?a ?x", f"SELECT ?a {within}")
    before = time.time_ns()
    matches = iter(spaseq.compile(text).follow({"S": str(path)}, time_from="arrival"))
    match = next(matches)
    assert str(match.bindings["a"]) == f"{E}u0" and before <= match.time <= time.time_ns() - 250_000_000
    matches.close()  # type: ignore[attr-defined]


def test_standard_input_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q.rq").write_text(QUERY)
    lines = f'<{E}u> <{E}p> "1" .\n<{E}v> <{E}p> "1" .\n<{E}u> <{E}q> "1" .\n'.encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    words = ["run", str(tmp_path / "q.rq"), "--stream", "S=-", "--follow", "--event-by", "subject"]
    assert main(words) == 0
    captured = capsys.readouterr()
    assert [json.loads(line)["positions"] for line in captured.out.splitlines()] == [[0, 2]] and captured.err == ""


def test_results_come_as_they_are_found_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    """As a process: each match is out before the next event is there; SIGINT gives 130 and a summary."""
    path = tmp_path / "s.nq"
    (tmp_path / "q.rq").write_text(QUERY)
    path.write_text(_graph(1, 1, "p").replace('"1" <', '"x" <'))
    command = [sys.executable, "-m", "spaseq.cli.main", "run", "q.rq", "--stream", "S=s.nq", "--follow"]
    process = subprocess.Popen(
        [*command, "--format", "csv"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=harness.hear_interrupts,
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    try:
        rows = [process.stdout.readline()]
        for number in (2, 4):
            # the match needs its instant to be over, and the graph behind it to have begun
            _append(
                path, "".join(_graph(number + i, number + i, "q").replace(f'"{number}" <', '"x" <') for i in (0, 1))
            )
            _append(path, _graph(90 + number, number + 1, "r"))
            rows.append(process.stdout.readline())
            if number == 2:
                _append(path, _graph(80, 3, "p").replace('"80" <', '"x" <'))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert rows == ["time,a,x\n", f"2,{E}u,x\n", f"4,{E}u,x\n"] and out == ""
    told = err.splitlines()[0]  # a warning follows if it was still at work
    assert process.returncode == 130 and told.startswith("interrupted: ") and told.endswith("2 results written")
