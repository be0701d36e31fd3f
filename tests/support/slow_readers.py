"""Commands whose output is read slowly or not at all, and that are interrupted while they wait for their reader.

    python -m tests.support.slow_readers < TRIALS   # in an empty folder

TRIALS is a JSON array of `Trial`s; the output is one of `Outcome`s. Each runs in a child of this process, which has
imported the command, so that they cost little.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import signal
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["Outcome", "Trial", "interrupted"]

_PAGE: Final = 4_096
_AT_ONCE: Final = 5
"""Trials that run at once."""
_PATIENCE: Final = {True: 10.0, False: 0.3}
"""Seconds that the command waits for a reader who reads, and for one who does not: in it a reader must get its turn."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial. `arguments`: of the command, its name first. `reads`: True if the output is read slowly after the
    interrupt; else it is read only once the command no longer expects that. `fifo`: True if the output goes to a named
    pipe by `--output`."""

    arguments: Sequence[str]
    reads: bool = True
    fifo: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code, the output, the standard error, and True if the command was waiting when it was interrupted."""

    code: int
    out: str
    err: str
    waited: bool


def _child(trial: Trial, output: str, errors: int) -> None:
    name, *rest = trial.arguments
    os.dup2(errors, 2)
    if not trial.fifo:
        os.dup2(os.open(output, os.O_WRONLY), 1)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
    vars(importlib.import_module("spaseq.tools.command.process"))["_AGAIN"] = _PATIENCE[trial.reads]
    sys.argv = [name, *rest, *(["--output", output] if trial.fifo else [])]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    importlib.import_module(f"{name}.cli.main").entry()


def _unread(reader: int) -> int:
    return int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, bytes(4)), sys.byteorder)


def _waits(child: int) -> bool:
    """True if the process waits for the reader of a pipe; if the system does not report the cause, True if it waits."""
    state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
    where = Path(f"/proc/{child}/wchan").read_text()
    return state == "S" and ("pipe" in where or where in ("", "0"))


def _ran(trial: Trial, child: int, reader: int, errors: Any, outcomes: dict[int, Outcome], number: int) -> None:
    seen, still, until = -1, 0, time.monotonic() + 300
    while still < 4 and time.monotonic() < until:
        time.sleep(0.1)
        before, seen = seen, _unread(reader)
        still = still + 1 if before == seen > 0 and _waits(child) else 0
    os.set_blocking(reader, True)
    os.kill(child, signal.SIGINT)
    out = b""
    if not trial.reads:
        time.sleep(4 * _PATIENCE[False])
    while piece := os.read(reader, 1 << 16 if not trial.reads else 700):
        out += piece
        time.sleep(0.02 * trial.reads)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    errors.seek(0)
    outcomes[number] = Outcome(code, out.decode(errors="replace"), errors.read().decode(), still == 4)


def _start(trial: Trial, path: str) -> tuple[int, int, Any]:
    """The process, the end of its pipe that is read, and the file of its standard error."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - until the end
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, _PAGE)
    child = os.fork()
    if not child:
        _child(trial, path, errors.fileno())
    return child, reader, errors


def _main() -> None:
    trials = [Trial(**given) for given in json.load(sys.stdin)]
    for name in {trial.arguments[0] for trial in trials}:
        importlib.import_module(f"{name}.cli.main")
        importlib.import_module(f"{name}.cli.output")
        importlib.import_module(f"{name}.{'query' if name == 'ceql' else 'language.query'}")
    outcomes: dict[int, Outcome] = {}
    for first in range(0, len(trials), _AT_ONCE):
        some = list(enumerate(trials[first : first + _AT_ONCE], first))
        started = [_start(trial, f"pipe{number}") for number, trial in some]
        threads = [threading.Thread(target=_ran, args=(trial, *given, outcomes, number))
                   for (number, trial), given in zip(some, started, strict=True)]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(json.dumps([asdict(outcomes[number]) for number in range(len(trials))]))


def interrupted(trials: Sequence[Trial], folder: Path) -> list[Outcome]:
    """The outcomes of the trials, run in the folder."""
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "tests.support.slow_readers"], cwd=folder, input=json.dumps(list(map(asdict, trials))),
        stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return [Outcome(**found) for found in json.loads(done.stdout)]


if __name__ == "__main__":
    _main()
