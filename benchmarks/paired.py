"""Two checkouts of the project side by side: `python benchmarks/paired.py BEFORE SUITE … [--pairs N] [--starts N]`.

Claim: a change costs no workload more than a twentieth. Every workload of a suite that both checkouts have runs in a
process of each, in turn: B A B A …, after a warm-up of both. So both see the same machine in the same minutes. The
report is the median over pairs of the ratio of their times, which does not depend on drifts in the machine's speed.
Each process draws the places of arrays and compiled code in memory anew, which moves one checkout against itself by up
to a fifth. So both are started `--starts` times, and the median over starts is reported with the least and the most.
`cpu` is processor time with that of child processes. BEFORE is a folder with the other checkout (`git worktree add`);
this one is the folder the file is in. Both run in the environment that starts them; inputs, sizes and seeds are the
suite's own. Appends to results/DATE-paired.csv.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
HEADER = ("suite", "workload", "matches_before", "matches", "cpu_before_s", "cpu_s", "cpu_ratio", "wall_ratio", "pairs")

Run = tuple[int, float, float]
"""Matches, seconds of processor time, seconds."""


class Side:
    """One checkout, in a process that runs its workloads on request."""

    def __init__(self, checkout: Path, suite: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", suite],
            cwd=checkout, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.names: list[str] = self._answer()

    def run(self, name: str) -> Run:
        assert self._process.stdin
        print(json.dumps(name), file=self._process.stdin, flush=True)
        matches, cpu, wall = self._answer()
        return matches, cpu, wall

    def close(self) -> None:
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the benchmark ended with exit {self._process.wait()}")
        return json.loads(line)


def serve(suite: str) -> None:
    """Run the workloads that standard input names; answer on the original standard output."""
    sys.path.remove(str(Path(__file__).resolve().parent))  # `benchmarks` is the package of the checkout
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    workloads = {w.name: w for w in importlib.import_module(f"benchmarks.{suite}").workloads()}
    print(json.dumps(list(workloads)), file=out, flush=True)
    for line in sys.stdin:
        before, start = processor_time(), time.perf_counter()
        matches = workloads[json.loads(line)].run()
        answer = (matches, processor_time() - before, time.perf_counter() - start)
        print(json.dumps(answer), file=out, flush=True)


def processor_time() -> float:
    """Of this process and of its children that have ended, in seconds."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compare(suite: str, before: Path, pairs: int, starts: int, only: str) -> Iterator[tuple[Any, ...]]:
    """A row of HEADER for each workload of both, as all of its runs are done."""
    matches: dict[str, tuple[int, int]] = {}
    runs: dict[str, list[tuple[Run, Run]]] = {}
    for _ in range(starts):
        one, other = Side(before, suite), Side(HERE, suite)
        for name in (n for n in other.names if n in one.names and only in n):
            warm = one.run(name), other.run(name)
            matches[name] = warm[0][0], warm[1][0]
            runs.setdefault(name, []).extend((one.run(name), other.run(name)) for _ in range(pairs))
        one.close()
        other.close()
    for name, done in runs.items():
        by_start = [statistics.median(b[1] / a[1] for a, b in done[i : i + pairs]) for i in range(0, len(done), pairs)]
        cpu, least, most = statistics.median(by_start), min(by_start), max(by_start)
        wall = statistics.median(b[2] / a[2] for a, b in done)
        times = [statistics.median(run[side][1] for run in done) for side in (0, 1)]
        told = (
            f"{suite:8} {name:28} {times[0]:8.3f} s -> {times[1]:8.3f} s   cpu x {cpu:.2f} ({least:.2f} to {most:.2f})"
        )
        changed = "" if len(set(matches[name])) == 1 else "   {:,} matches, now {:,}".format(*matches[name])
        print(f"{told}   wall x {wall:.2f}{changed}", flush=True)
        ratios = (f"{r:.3f}" for r in (cpu, wall))
        yield suite, name, *matches[name], *(f"{t:.4f}" for t in times), *ratios, pairs * starts


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/paired.py")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("before", nargs="?", type=Path, help="the other checkout")
    parser.add_argument("suites", nargs="*", help="of benchmarks/: stock, cel, …")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--starts", type=int, default=5, help="of both processes; each runs all pairs")
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve)
        return
    if options.before is None or not options.suites:
        parser.error("name the other checkout and at least one suite")
    path = HERE / "benchmarks" / "results" / f"{datetime.date.today().isoformat()}-paired.csv"
    for suite in options.suites:
        for row in compare(suite, options.before.resolve(), options.pairs, options.starts, options.only):
            fresh = not path.exists()
            with path.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([HEADER, row] if fresh else [row])


if __name__ == "__main__":
    main(sys.argv[1:])
