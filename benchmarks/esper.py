"""Esper on the stock trace, beside this engine in the same run: sequences with all of their matches.

Optional: `make bench-peers` fetches Esper with Maven and compiles the driver (`benchmarks/peers/`); without it the
suite says so and is skipped. Both have the trace in memory, one thread, and count matches: Esper's listener gets them
as objects, here they are written to arrays. The numbers of matches must agree.

Esper's pattern keeps the runs of `every`; its window is a timer on the trace's own time, one millisecond longer, as it
does not include its end.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import Measurement, Workload
from benchmarks.stock import NAMES, TRACE, enumerating, preload, sequence

PEERS = Path(__file__).parent / "peers"
CLASSES = PEERS / "target"
_RUNS = 3


def statement(length: int, window: int = 10_000) -> str:
    """S<length> in EPL."""
    steps = [f"every e{i}={'Sell' if i % 3 == 0 else 'Buy'}(name='{NAMES[i]}')" for i in range(length)]
    first, rest = steps[0], " -> ".join(steps[1:])
    return f"select * from pattern [{first} -> (({rest}) where timer:within({window + 1} milliseconds))]"


@functools.cache
def esper(length: int) -> Measurement:
    """Esper's runs, the first left out."""
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
    path = os.pathsep.join([str(CLASSES), (CLASSES / "classpath").read_text().strip()])
    done = subprocess.run(
        [java, "-Xmx4g", "-cp", path, "EsperTrades", str(TRACE), statement(length), str(_RUNS + 1)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    runs = [(float(seconds), int(matches)) for seconds, matches in map(str.split, done.stdout.splitlines())]
    workload = Workload(f"S{length} by Esper", "for scale", 0, lambda: runs[0][1])
    return Measurement(workload, runs[0][1], tuple(seconds for seconds, _ in runs[1:]))


def agreeing(length: int, run: Callable[[], int]) -> Callable[[], int]:
    """`run`, whose matches must be as many as Esper's."""

    def check_matches() -> int:
        found, theirs = run(), esper(length).matches
        if found != theirs:
            raise AssertionError(f"S{length}: {found} matches here, {theirs} by Esper")
        return found

    return check_matches


def workloads() -> list[Workload]:
    """S3 by both; none if Esper or the trace is missing."""
    missing = "the trace (set SPASEQ_DATA)" if not TRACE.exists() else "Java" if not shutil.which("java") else ""
    if not missing and not (CLASSES / "EsperTrades.class").exists():
        missing = "Esper (make bench-peers fetches it)"
    if missing:
        print(f"esper: skipped, not installed: {missing}")
        return []
    batches = preload()
    events = sum(map(len, batches))
    found = []
    for length in (3,):
        theirs = esper(length)
        scale = f"Esper {events / theirs.median / 1e6:.2f} M events/s ±{theirs.spread:.0%}"
        run = agreeing(length, enumerating(sequence(length), batches))
        found.append(Workload(f"S{length}, beside Esper", "every match written", events, run, scale))
    return found
