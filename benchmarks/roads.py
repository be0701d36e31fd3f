"""Five patterns over road segments, beside Flink CEP in the same run: the shapes that CEP2ASP compares.

Claim: the cost of an event depends on neither the pattern nor the window nor the runs that wait. Flink CEP keeps each
run, so it grows with them.

Rows are made: 2,500 segments, a row a minute each for an hour (150,000 rows; seed 7): id, time in milliseconds,
velocity and quantity, both uniform in 0..100. Slow roads are the lowest `part` percent of the velocities, full ones
the highest of the quantities that are not slow. A window is 15 minutes, and its end does not count, as in Flink.

Optional: `make bench-peers` fetches Flink with Maven and compiles the driver; without it this engine runs alone. Both
have the rows in memory and one thread for the operator, and count all matches: Flink hands them to a function, here
they are written to arrays. The numbers of matches must agree. AND is two patterns in one job of Flink, which has none.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.esper import CLASSES
from benchmarks.harness import Workload
from benchmarks.stock import enumerating
from spaseq.core.events import EventBatch, EventOptions, EventStream

SEGMENTS, MINUTES, SEED = 2_500, 60, 7
_WINDOW = 15 * 60_000
_RUNS = 1
# (name, by key, percent of the rows that a step takes). The parts keep Flink's matches to some hundred thousand.
CASES = (
    ("SEQ", False, 0.5), ("AND", False, 0.5), ("OR", False, 5.0), ("NOT", False, 0.5), ("ITER", False, 0.05),
    ("SEQ", True, 10.0), ("ITER", True, 20.0),
)  # fmt: skip


def pattern(name: str, part: float, *, by_id: bool) -> str:
    """The pattern `name` in CEQL."""
    slow, full = f"velocity < {part}", f"quantity > {100 - part} AND velocity >= {part}"
    formula = {
        "SEQ": f"R AS a; R AS b FILTER a[{slow}] AND b[{full}]",
        "AND": f"AND(R AS a, R AS b) FILTER a[{slow}] AND b[{full}]",
        "OR": f"R AS a FILTER a[{slow} OR {full}]",
        "NOT": f"R AS a; NOT (R AS n FILTER n[velocity > {100 - part / 50}]); R AS b FILTER a[{slow}] AND b[{full}]",
        "ITER": f"R{{3}} AS a FILTER a[{slow}]",
    }[name]
    return f"SELECT * FROM S WHERE {formula} {'PARTITION BY [id]' if by_id else ''} WITHIN {_WINDOW - 1} [time]"


@functools.cache
def rows() -> Path:
    """The rows as a file, in order of time; each has a time of its own."""
    random = np.random.default_rng(SEED)
    count = SEGMENTS * MINUTES
    ids = np.concatenate([random.permutation(SEGMENTS) for _ in range(MINUTES)])
    times = np.arange(count) * (60_000 // SEGMENTS)
    values = random.uniform(0, 100, (count, 2)).round(6)
    path = Path(tempfile.mkdtemp(prefix="roads")) / "roads.csv"
    lines = zip(ids.tolist(), times.tolist(), *values.T.tolist(), strict=True)
    path.write_text("id,time,velocity,quantity\n" + "".join(f"{i},{t},{v},{q}\n" for i, t, v, q in lines))
    return path


@functools.cache
def preload() -> list[EventBatch]:
    """The rows in columns."""
    return list(EventStream({"S": str(rows())}, EventOptions(type="R", from_arrival=True)))


@functools.cache
def flink(name: str, part: float, *, by_id: bool) -> tuple[float, int]:
    """Seconds (the fastest run, the first left out) and matches of Flink CEP."""
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if "JAVA_HOME" in os.environ else "java"
    path = os.pathsep.join([str(CLASSES), (CLASSES / "classpath").read_text().strip()])
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.util", "java.lang", "java.time")]
    arguments = [str(rows()), name, str(by_id).lower(), str(_WINDOW), str(part), str(_RUNS + 1)]
    done = subprocess.run(
        [java, "-Xmx4g", *opened, "-cp", path, "FlinkRoads", *arguments], capture_output=True, text=True, check=True
    )
    runs = [(float(seconds), int(matches)) for seconds, matches in map(str.split, done.stdout.splitlines())]
    return min(seconds for seconds, _ in runs[1:]), runs[0][1]


def agreeing(run: Callable[[], int], matches: int, name: str) -> Callable[[], int]:
    """`run`, which must find `matches`."""

    def check_matches() -> int:
        if (found := run()) != matches:
            raise AssertionError(f"{name}: {found} matches here, {matches} by Flink")
        return found

    return check_matches


def workloads() -> list[Workload]:
    """Each pattern here, beside Flink if it is there."""
    beside = bool(shutil.which("java")) and (CLASSES / "FlinkRoads.class").exists()
    if not beside:
        print("roads: without Flink (Java and make bench-peers)")
    found = []
    for name, by_id, part in CASES:
        run = enumerating(pattern(name, part, by_id=by_id), preload())
        title, scale = f"{name}{' by id' if by_id else ''}, {part} %", ""
        if beside:
            seconds, matches = flink(name, part, by_id=by_id)
            run = agreeing(run, matches, title)
            scale = f"Flink CEP {SEGMENTS * MINUTES / seconds / 1e6:.3f} M events/s"
        found.append(Workload(title, "every match written", SEGMENTS * MINUTES, run, scale))
    return found
