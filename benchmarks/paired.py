"""Two checkouts of the project side by side: `python benchmarks/paired.py BEFORE SUITE … [--pairs N] [--only TEXT]`.

Claim: a change costs no workload more than a twentieth. Every workload of a suite that both checkouts have runs in a
process of each, in turn: B A B A …, after a warm-up of both. So both see the same machine in the same minutes, and what
is told is the median over pairs of the ratio of their times, which a machine whose speed drifts leaves alone. `cpu` is
processor time with that of child processes. BEFORE is a folder with the other checkout (`git worktree add`); this
one is the folder the file is in. Both run in the environment that starts them; inputs, sizes and seeds are the suite's
own. Appends to results/DATE-paired.csv.
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


class Side:
    """One checkout, in a process that runs its workloads when told."""

    def __init__(self, checkout: Path, suite: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", suite],
            cwd=checkout, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.names: list[str] = self._answer()

    def run(self, name: str) -> tuple[int, float, float]:
        """(matches, seconds of processor time, seconds) of one run."""
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
    """Run the workloads that standard input names, answering on what standard output was."""
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


def compare(suite: str, before: Path, pairs: int, only: str) -> Iterator[tuple[Any, ...]]:
    """A row of HEADER for each workload of both, as it is measured."""
    one, other = Side(before, suite), Side(HERE, suite)
    for name in other.names:
        if name not in one.names or only not in name:
            continue
        warm = one.run(name), other.run(name)
        runs = [(one.run(name), other.run(name)) for _ in range(pairs)]
        cpu = statistics.median(b[1] / a[1] for a, b in runs)
        wall = statistics.median(b[2] / a[2] for a, b in runs)
        times = [statistics.median(run[side][1] for run in runs) for side in (0, 1)]
        matches = [run[0] for run in warm]
        told = f"{suite:8} {name:28} {times[0]:8.3f} s -> {times[1]:8.3f} s   cpu x {cpu:.2f}   wall x {wall:.2f}"
        changed = "" if matches[0] == matches[1] else f"   {matches[0]:,} matches, now {matches[1]:,}"
        print(told + changed, flush=True)
        yield suite, name, *matches, *(f"{t:.4f}" for t in times), f"{cpu:.3f}", f"{wall:.3f}", pairs
    one.close()
    other.close()


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python benchmarks/paired.py")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("before", nargs="?", type=Path, help="the other checkout")
    parser.add_argument("suites", nargs="*", help="of benchmarks/: stock, cel, …")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", default="", metavar="TEXT", help="workloads whose name contains this")
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve)
        return
    if options.before is None or not options.suites:
        parser.error("name the other checkout and at least one suite")
    path = HERE / "benchmarks" / "results" / f"{datetime.date.today().isoformat()}-paired.csv"
    for suite in options.suites:
        for row in compare(suite, options.before.resolve(), options.pairs, options.only):
            fresh = not path.exists()
            with path.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([HEADER, row] if fresh else [row])


if __name__ == "__main__":
    main(sys.argv[1:])
