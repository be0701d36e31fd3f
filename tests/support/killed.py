"""Commands that are killed at random moments while they write. `killed` tells which of them left half a line.

    python -m tests.support.killed COUNT SEED   # in an empty folder

Each is a child of this process, which has run the command before, so that a kill costs little.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Final

__all__ = ["killed"]

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
"""Linux copies the data of a write to a file page by page, and a killed process stops between two of them.

So a line over the edge of a page may be cut there, even if it is written at once; once in some hundred kills.
"""
_CEQL: Final = ("ceql", "run", "q.ceql", "--events", "e.csv", "--format")
_SPASEQ: Final = ("spaseq", "run", "q.rq", "--stream", "S=s.nt", "--event-by", "size:1", "--format")
COMMANDS: Final = (
    *((*_CEQL, form) for form in ("jsonl", "csv", "tsv", "table")),
    *((*_SPASEQ, form) for form in ("jsonl", "csv", "tsv", "table")),
    ("spaseq", "run", "c.rq", *_SPASEQ[3:], "nquads"),
    (*_SPASEQ, "jsonl", "--follow"),
    ("ceql", "alert", "a.ceql", "--events", "e.csv", "--format", "jsonl"),
)


def _files() -> None:
    where = "FROM STREAM S <urn:s> WHERE { SEQ (A: B) DEFINE GPM A ON S { ?s :p ?x } DEFINE GPM B ON S { ?t :p ?y } }"
    Path("q.ceql").write_text("SELECT * WHERE A AS x ; A+ AS y ; A AS z")
    Path("a.ceql").write_text("SELECT * WHERE A")
    Path("e.csv").write_text("type\n" + "A\n" * 30_000)
    Path("q.rq").write_text(f"PREFIX : <urn:e#> SELECT ?s ?t {where}")
    Path("c.rq").write_text(f"PREFIX : <urn:e#> CONSTRUCT {{ ?s :q ?t . ?t :q ?s }} {where}")
    Path("s.nt").write_text("".join(f'<urn:g{i}> <urn:e#p> "{i}" .\n' for i in range(3_000)))


def _child(words: tuple[str, ...], out: int) -> None:
    os.dup2(out, 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
    sys.argv = list(words)
    importlib.import_module(f"{words[0]}.cli.main").entry()


def _drain(reader: int, gulp: int, pause: float, begun: threading.Event, found: list[bytes]) -> None:
    while piece := os.read(reader, gulp):
        begun.set()
        found.append(piece)
        time.sleep(pause)


def _one(rng: random.Random, number: int) -> tuple[str, bool, bytes]:
    """The command and its output's place, True if it was killed while it wrote, and its output."""
    words, into = rng.choice(COMMANDS), rng.choice(("pipe", "slow pipe", "file"))
    path, found, begun = f"out{number}", list[bytes](), threading.Event()
    ends: tuple[int | None, int]
    if into == "file":
        ends = None, os.open(path, os.O_WRONLY | os.O_CREAT)
    else:
        ends = os.pipe()
    child = os.fork()
    if not child:
        _child(words, ends[1])
    os.close(ends[1])
    if ends[0] is not None:
        pause = 0.002 if into == "slow pipe" else 0.0
        reading = threading.Thread(
            target=_drain, args=(ends[0], rng.choice((100, 5_000, 1 << 16)), pause, begun, found)
        )
        reading.start()
        begun.wait(120)
    else:
        until = time.monotonic() + 120
        while not os.path.getsize(path) and time.monotonic() < until:
            time.sleep(0.001)
    time.sleep(rng.uniform(0, 0.15))
    os.kill(child, signal.SIGKILL)
    died = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if ends[0] is not None:
        reading.join()
        os.close(ends[0])
        return f"{into}: {' '.join(words)}", died, b"".join(found)
    written = Path(path).read_bytes()
    Path(path).unlink()
    return f"{into}: {' '.join(words)}", died, written


def _is_torn(told: str, written: bytes) -> bool:
    if written and not written.endswith(b"\n"):
        return True
    if "jsonl" not in told:
        return False
    try:
        return not all(json.loads(line) for line in written.splitlines()[-3:])
    except ValueError:
        return True


def _main() -> None:
    count, seed = map(int, sys.argv[1:])
    rng, counted, torn = random.Random(seed), Counter[str](), list[Any]()
    _files()
    for words in COMMANDS:
        if "--follow" not in words:
            module = importlib.import_module(f"{words[0]}.cli.main")
            module.main([*words[1:], "--limit", "10", "--output", "warm"])
    for number in range(count):
        told, died, written = _one(rng, number)
        counted["killed while it wrote" if died else "was done"] += 1
        counted[told.partition(":")[0]] += 1
        if told.startswith("file") and written and not len(written) % _PAGE and not written.endswith(b"\n"):
            counted["file that ends with a page"] += 1
        elif _is_torn(told, written):
            torn.append((told, written[-300:].decode(errors="replace")))
    print(json.dumps({"counted": counted, "torn": torn}))


def killed(count: int, seed: int, folder: Path) -> tuple[dict[str, int], list[Any]]:
    """The number killed while they wrote, and those that left half a line: the command, and the end of it."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.killed", str(count), str(seed)], cwd=folder, stdout=subprocess.PIPE,
        text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    whole = json.loads(done.stdout.splitlines()[-1])
    return whole["counted"], whole["torn"]


if __name__ == "__main__":
    _main()
