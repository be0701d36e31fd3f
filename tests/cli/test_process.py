"""Commands as processes: an interrupt that a library swallows comes again, one that is being handled does not."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.tools.command.lines import write_whole_lines
from tests.support import harness

_SCRIPT = """
import signal
import time
from spaseq.tools.command.process import run_command, settle_interrupt

def main():
    try:
        print("ready", flush=True)
        time.sleep(50)
    except:
        signal.raise_signal(signal.SIGALRM)  # a look at the limits that was due at that moment
        print("swallowed", flush=True)
    try:
        time.sleep(50)
    except KeyboardInterrupt:
        settle_interrupt()
        time.sleep(1.2)  # nothing more comes
        return 130

run_command(main)
"""


def test_an_interrupt_that_was_swallowed_comes_again() -> None:
    command = [sys.executable, "-c", _SCRIPT]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=harness.hear_interrupts
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)
    assert (process.returncode, out, err) == (130, "swallowed\n", "")


def test_a_pipe_gets_whole_lines_in_pieces_that_it_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a larger piece a full pipe takes a part, after which the process may be killed. Packets show the pieces."""
    reader, writer = os.pipe2(os.O_DIRECT)
    monkeypatch.setattr(sys, "stdout", open(writer, "w", encoding="utf-8"))  # noqa: SIM115 - closed below
    before = sys.stdout
    write_whole_lines()
    lines = [character * size + "\n" for character in "aé" for size in (10, 700, 33, 1900, 120) * 3]
    for line in lines:
        sys.stdout.write(line)
    sys.stdout.flush()
    before.close()
    pieces = list(iter(lambda: os.read(reader, 1 << 16), b""))
    os.close(reader)
    assert b"".join(pieces).decode() == "".join(lines)
    assert all(piece.endswith(b"\n") and len(piece) <= select.PIPE_BUF for piece in pieces)
    assert len(pieces) < len(lines)


def test_a_line_longer_than_a_pipe_takes_at_once_and_what_is_no_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as pipe, open(tmp_path / "out", "w") as file:
        monkeypatch.setattr(sys, "stdout", pipe)
        write_whole_lines()
        print("x" * 10_000, flush=True)
        assert os.read(reader, 1 << 16) == b"x" * 10_000 + b"\n"
        monkeypatch.setattr(sys, "stdout", file)
        write_whole_lines()
        assert sys.stdout is file
    monkeypatch.setattr(sys, "stdout", None)
    write_whole_lines()
    os.close(reader)
