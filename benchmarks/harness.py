"""Measure, print, keep: medians over repeated runs, one CSV row each."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.plot import plot

RESULTS = Path(__file__).parent / "results"
DATA = Path(os.environ.get("SPASEQ_DATA", Path(__file__).resolve().parents[1] / "../shared/data")).resolve()


@dataclass(frozen=True, slots=True)
class Workload:
    """`run` does the work once and says how many matches it found; `events` is how many it read."""

    name: str
    claim: str
    events: int
    run: Callable[[], int]
    scale: str = ""
    """The results of others, for scale."""
    repeats: int = 9
    """Timed runs; a single one is timed without a warm-up."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds of each run, the warm-up apart."""

    workload: Workload
    matches: int
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def events_per_second(self) -> float:
        return self.workload.events / self.median

    @property
    def spread(self) -> float:
        """Half the distance from the fastest to the slowest run, as a part of the median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median


def measure(workload: Workload, repeats: int | None = None) -> Measurement:
    """One warm-up, which compiles kernels and decodes columns, then the timed runs, which must agree on the matches."""
    repeats = workload.repeats if repeats is None else min(repeats, workload.repeats)
    matches = workload.run() if repeats > 1 else None
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        again = workload.run()
        seconds.append(time.perf_counter() - start)
        if matches is not None and again != matches:
            raise AssertionError(f"{workload.name}: {matches} matches, then {again}")
        matches = again
    assert matches is not None
    return Measurement(workload, matches, tuple(seconds))


def report(name: str, measurements: Iterable[Measurement]) -> Path:
    """Print a line for each measurement as it is made, append it to results/DATE-NAME.csv, and draw DATE-NAME.svg."""
    today = datetime.date.today().isoformat()
    path = RESULTS / f"{today}-{name}.csv"
    path.parent.mkdir(exist_ok=True)
    fresh = not path.exists()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if fresh:
            out.writerow(
                ["workload", "events", "matches", "median_s", "spread", "events_per_s", "runs", "commit", "machine"]
            )
        bars = []
        for m in measurements:
            w = m.workload
            bars.append((w.name, m.events_per_second, m.spread))
            rate = f"{m.median:8.4f} s {m.events_per_second / 1e6:7.2f} M events/s"
            found = f"{m.matches:>12,} matches, {m.matches / m.median / 1e6:5.1f} M/s"
            print(f"{w.name:24} {rate:>18} ±{m.spread:4.0%} {found}   {w.claim}. {w.scale}", flush=True)
            out.writerow([w.name, w.events, m.matches, f"{m.median:.6f}", f"{m.spread:.3f}",
                          f"{m.events_per_second:.0f}", len(m.seconds), commit.strip(), machine])  # fmt: skip
    plot(path.with_suffix(".svg"), f"{name}, {today}, {commit.strip()}", bars)
    return path
