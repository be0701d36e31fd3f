"""Mutated inputs of all kinds, run in a process with a watchdog. `make fuzz`, or

python -m tests.fuzz --seconds 3600 --first 1000 --into finds

A find is an input after which the process is dead, hangs, or holds more memory than it should, that takes more than ten
seconds, or of which something comes that may not (`checks`). It is written to the folder `--into`, and
`python -m tests.fuzz --again FILE` runs it again. An input is what its kind and its seed make it. The file `progress`
of that folder says after each round what came so far, by kind.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.kinds import KINDS, Input

__all__ = ["Campaign", "main"]

BLOCK = 20
"""Inputs of one kind in a row."""
DEAF = 150.0
"""Seconds, of processor time or four times as long by the clock, after which a process at one input is ended. Kernels
that are not in the cache yet are compiled in this time; `worker.SLOW` is what an input may take by itself."""
MEMORY = 3 << 30
"""Bytes that the process may hold."""
WORKER = ("-m", "tests.fuzz.worker")
ANEW = 4_000
"""Inputs after which a new process is taken."""


@dataclass
class Campaign:
    """`into`: where finds are written. What came of inputs is counted by kind.

    `deaf` and `most` are as `DEAF` and `MEMORY`, `worker` is what Python is told to run.
    """

    into: Path
    bounds: bool = False
    deaf: float = DEAF
    most: int = MEMORY
    worker: Sequence[str] = WORKER
    counted: dict[str, Counter[str]] = field(default_factory=dict)
    finds: list[Path] = field(default_factory=list)
    seconds: Counter[str] = field(default_factory=Counter)
    memory: int = 0
    _process: Any = None
    _ran: int = 0

    def run(self, kind: str, first: int, end: int) -> None:
        """The inputs of a kind with the seeds from `first` to `end`."""
        while first < end:
            if self._process is None or self._ran >= ANEW:
                self._start()
            self._process.stdin.write(json.dumps({"kind": kind, "first": first, "end": end}).encode() + b"\n")
            self._process.stdin.flush()
            first = self._watch(kind, first, end)

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        self.close()
        self.into.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
        if self.bounds:
            cache = environment.get("NUMBA_CACHE_DIR") or str(Path(tempfile.gettempdir(), "spaseq-boundscheck"))
            environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": cache}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = subprocess.Popen(
            [sys.executable, *self.worker, "--into", str(self.into)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment,
        )  # fmt: skip
        self._ran = 0
        self._rest = b""

    def _watch(self, kind: str, first: int, end: int) -> int:
        """Until the block is done or the process ended; the seed to go on with."""
        seed, began, clock = first, self._used(), time.monotonic()
        while True:
            for line in self._lines():
                said = json.loads(line)
                if "begin" in said:
                    seed, began, clock = said["begin"][1], self._used(), time.monotonic()
                elif "end" in said:
                    self._ran += 1
                    self.seconds[kind] += said["seconds"]
                    word, text = said["said"]
                    self.counted.setdefault(kind, Counter())[text if word == "ok" else "find"] += 1
                    if word != "ok":
                        self._found(kind, seed, text)
                else:
                    return end
            code = self._process.poll()
            if code is not None:
                return self._ended(kind, seed, f"the process ended with {code}")
            used, held = self._used() - began, self._held()
            self.memory = max(self.memory, held)
            if used > self.deaf or time.monotonic() - clock > 4 * self.deaf:
                return self._ended(kind, seed, f"hangs: {used:.0f} s of processor time")
            if held > self.most:
                return self._ended(kind, seed, f"holds {held >> 20:,} MB")

    def _ended(self, kind: str, seed: int, what: str) -> int:
        self._process.send_signal(signal.SIGUSR1)
        time.sleep(0.5)
        self.close()
        self._errors.seek(0)
        self.counted.setdefault(kind, Counter())["find"] += 1
        self._found(kind, seed, f"{what}\n{self._errors.read()[-4000:].decode('utf-8', 'replace')}")
        return seed + 1

    def _found(self, kind: str, seed: int, what: str) -> None:
        path = self.into / f"{kind.replace(' ', '-')}-{seed}.json"
        if self._process is None:  # it could not write it itself
            whole = json.loads((self.into / "current").read_text("utf-8"))
            path.write_text(json.dumps({"problem": what.splitlines(), **whole}, indent=1), "utf-8")
        self.finds.append(path)
        print(f"-- {path}\n{what}", flush=True)

    def _lines(self) -> list[bytes]:
        ready, _, _ = select.select([self._process.stdout], [], [], 0.5)
        if not ready:
            return []
        self._rest += os.read(self._process.stdout.fileno(), 1 << 16)
        *lines, self._rest = self._rest.split(b"\n")
        return lines

    def _used(self) -> float:
        """Seconds of processor time that the process has taken."""
        try:
            told = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")

    def _held(self) -> int:
        try:
            return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def __str__(self) -> str:
        lines = []
        for kind, found in sorted(self.counted.items()):
            told = ", ".join(f"{text} {n:,}" for text, n in found.most_common())
            lines.append(f"{kind}: {sum(found.values()):,} in {self.seconds[kind]:,.0f} s: {told}")
        ran = sum(sum(found.values()) for found in self.counted.values())
        lines.append(f"{ran:,} inputs, {len(self.finds)} finds, at most {self.memory >> 20:,} MB")
        return "\n".join(lines)


def again(path: Path) -> int:
    """Runs a find in this process, and says what came of it."""
    from tests.fuzz import checks

    with tempfile.TemporaryDirectory() as folder:
        try:
            print(checks.run(Input.of_json(path.read_text()), Path(folder)))
        except checks.Wrong as wrong:
            print(wrong)
            return 1
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="how long (120)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--count", type=int, help="so many of each kind, however long they take")
    parser.add_argument("--kinds", default="", help="only those whose names match this regular expression")
    parser.add_argument("--bounds", action="store_true", help="kernels with bounds checks, from a cache of their own")
    parser.add_argument("--into", type=Path, default=Path(tempfile.gettempdir(), "spaseq-fuzz"), help="for finds")
    parser.add_argument("--again", type=Path, metavar="FILE", help="run a find again, in this process")
    options = parser.parse_args(arguments)
    if options.again:
        return again(options.again)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by `finally`
    names = [name for name in KINDS if re.search(options.kinds, name)]
    if not names:
        parser.error(f"no kind matches {options.kinds!r}; there are: {', '.join(KINDS)}")
    campaign, began, first = Campaign(options.into, options.bounds), time.monotonic(), options.first
    try:
        while options.count is None or first < options.first + options.count:
            end = first + BLOCK if options.count is None else min(first + BLOCK, options.first + options.count)
            for name in names:
                if options.count is None and time.monotonic() - began > options.seconds:
                    return 1 if campaign.finds else 0
                campaign.run(name, first, end)
            first = end
            (campaign.into / "progress").write_text(f"{campaign}\nseeds up to {first:,}\n", "utf-8")
    finally:
        campaign.close()
        print(campaign, flush=True)
    return 1 if campaign.finds else 0
