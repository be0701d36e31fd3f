"""The experiments of the papers by figure, and our own, on a machine that does other work too.

A figure is a set of points: a panel, a series, a place on the axis, and the work to measure there. A measurement is
processor time, the best of several runs. All points of a figure take turns, so a slow minute of the machine touches
them all. A run of less than 20 ms is repeated within its turn. Bytes are those that the evaluation says it holds, in a
run of its own, so they depend on no machine.

`python -m benchmarks.figures [GROUP …] [--runs N]` writes results/DATE-figures-GROUP.csv. Its column `how`
has the conditions of the measurement. `python -m tests.support.gallery` draws the newest results.

* `core`: [CORE] Figures 7, 8, 9 and 11 (`benchmarks/core.py`).
* `cel`: [CEL] Figures 4 and 5 (`benchmarks/cel_figures.py`).
* `lazy`: [Lazy] Figures 10 and 11 (`benchmarks/lazy/figures.py`).
* `orders`, `matches`: what no paper measures, by the size of the window: order conditions (`benchmarks/orders.py`) and
  aggregates over all matches (`benchmarks/matches.py`).
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import RESULTS, Workload

GROUPS = {"core": "benchmarks.core", "cel": "benchmarks.cel_figures", "lazy": "benchmarks.lazy.figures",
          "orders": "benchmarks.orders", "matches": "benchmarks.matches"}  # fmt: skip
"""Group -> the module with its `figures()`."""
HEADER = ("figure", "panel", "series", "x", "events", "matches", "cpu_s", "events_per_s", "slower_runs", "bytes", "how")
TURN = 0.02
"""Seconds that a turn takes at least; shorter work is repeated."""


@dataclass(frozen=True, slots=True)
class Point:
    """One place in a panel. `run` does the work and returns the number of matches; `held` returns bytes."""

    panel: str
    series: str
    x: str
    events: int
    run: Callable[[], int]
    held: Callable[[], int] | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper, such as `core 7`; `claim`: what its points are to show."""

    name: str
    claim: str
    points: Sequence[Point]
    runs: int = 5
    """Turns of each point."""

    def workloads(self) -> Iterator[Workload]:
        """The points for `python -m benchmarks`, which measures elapsed time."""
        for p in self.points:
            yield Workload(f"{self.name}: {p.panel}, {p.series}, {p.x}", self.claim, p.events, p.run, repeats=3)


def measure(figure: Figure, runs: int) -> Iterator[tuple[Point, int, float, float]]:
    """For each point its matches, seconds of processor time (the best turn), and the median turn as a multiple."""
    matches = [p.run() for p in figure.points]  # compiles kernels, makes columns
    first = [_seconds(p, 1)[0] for p in figure.points]
    times = [max(1, math.ceil(TURN / max(seconds, 1e-6))) for seconds in first]
    turns: list[list[float]] = [[] for _ in figure.points]
    for run in range(runs):
        order = range(len(turns)) if run % 2 == 0 else reversed(range(len(turns)))
        for i in order:
            seconds, again = _seconds(figure.points[i], times[i])
            if again != matches[i]:
                raise AssertionError(f"{figure.name}, {figure.points[i]}: {matches[i]} matches, then {again}")
            turns[i].append(seconds)
    for point, found, each in zip(figure.points, matches, turns, strict=True):
        yield point, found, min(each), statistics.median(each) / min(each)


def _seconds(point: Point, times: int) -> tuple[float, int]:
    """Processor time of one of so many runs, and the matches of the last."""
    found, start = 0, time.process_time()
    for _ in range(times):
        found = point.run()
    return (time.process_time() - start) / times, found


def write(group: str, figures: Sequence[Figure], most: int | None) -> Path:
    """Measure the figures in at most so many turns, print and keep a row for each point."""
    path = RESULTS / f"{datetime.date.today().isoformat()}-figures-{group}.csv"
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(HEADER)
        for figure in figures:
            runs = figure.runs if most is None else min(most, figure.runs)
            for p, matches, seconds, slower in measure(figure, runs):
                how = (
                    f"processor time, best of {runs} interleaved runs, load {os.getloadavg()[0]:.0f}, "
                    f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}, {commit.strip()}"
                )
                held = "" if p.held is None else p.held()
                out.writerow([figure.name, p.panel, p.series, p.x, p.events, matches, f"{seconds:.7f}",
                              f"{p.events / seconds:.0f}", f"{slower:.2f}", held, how])  # fmt: skip
                print(f"{figure.name:10} {p.panel:34} {p.series:14} {p.x:>8} {matches:>10,} matches"
                      f" {seconds / p.events * 1e6:9.3f} µs an event, median x {slower:.2f} {held:>12}",
                      flush=True)  # fmt: skip
            file.flush()
    return path


def main() -> None:
    """The groups that the command names, or all."""
    os.environ.setdefault("SPASEQ_INTERPRET", "0")  # compile at once; read when a group imports the engine
    parser = argparse.ArgumentParser(prog="python -m benchmarks.figures")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--runs", type=int, default=None, help="turns of each point at most")
    options = parser.parse_args()
    if unknown := set(options.groups) - GROUPS.keys():
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    for group in options.groups or GROUPS:
        print(f"-> {write(group, importlib.import_module(GROUPS[group]).figures(), options.runs)}")


if __name__ == "__main__":
    main()
