"""Selection MAX beside ALL, and the first query of the README.

Claims. MAX costs at most three times ALL and does not depend on the window. This does not hold if an event may both
belong to a run and begin another one (`A+ ; B+ ; C`): then there are as many live sets as starts in the window.
`fail{3,} ; login` by user reads 400,000 events a second. Events are of four types at random (seed 1). Every query has
LIMIT 1, so that listing matches costs the same.

`python -m benchmarks.maximal` prints microseconds an event of MAX and ALL, the least of five runs, and appends them to
results/DATE-maximal-windows.csv. As a suite it has few events, which a slow version can do.
"""

from __future__ import annotations

import csv
import datetime
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload

SEED, EVENTS, FEW = 1, 200_000, 4_000
WINDOWS = (10, 100, 1_000, 10_000)
PATTERNS = ("A ; B ; C", "A ; B+ ; C", "A+ ; C", "A+ ; B+ ; C", "(A ; B)+ ; C")
PUSHED = "SELECT MAX * WHERE A ; B+ ; C WITHIN 20 EVENTS LIMIT 1"
README = "SELECT MAX * WHERE fail{3,} ; login PARTITION BY [user] WITHIN 1 MINUTE"


def letters(events: int) -> pa.Table:
    """Events of the types A, B, C, D, each as likely as the others."""
    types = np.random.default_rng(SEED).choice(list("ABCD"), events)
    return pa.table({"type": types, "time": np.arange(events)})


def logins(events: int, users: int = 100) -> pa.Table:
    """Half of the events fail and a fifth are logins, ten a second, of any user."""
    rng = np.random.default_rng(SEED)
    types = np.array(["fail", "login", "other"])[rng.choice(3, events, p=[0.5, 0.2, 0.3])]
    user = [f"u{i}" for i in rng.integers(0, users, events)]
    return pa.table({"type": types, "user": user, "time": np.arange(events) / 10})


def counting(text: str, table: pa.Table) -> Callable[[], int]:
    """Counts the matches of a query."""
    return partial(lambda query: query.run(table).count(), ceql.compile(text))


def pushing(text: str, table: pa.Table) -> Callable[[], int]:
    """Pushes the events one by one."""
    query, events = ceql.compile(text), table.to_pylist()

    def push() -> int:
        with query.open() as session:
            return sum(len(session.push(event)) for event in events)

    return push


def workloads() -> list[Workload]:
    """The shapes at which MAX was slow, with few events."""
    few = letters(FEW)
    found = [
        Workload(f"MAX {pattern}, {window}", "three times ALL", FEW, counting(
            f"SELECT MAX * WHERE {pattern} WITHIN {window} EVENTS LIMIT 1", few), repeats=3)
        for pattern in ("A ; B ; C", "A ; B+ ; C")
        for window in WINDOWS[:3]
    ]  # fmt: skip
    found.append(Workload("README's first query", "400,000 events a second", 40_000, counting(README, logins(40_000))))
    found.append(Workload("pushed, MAX A ; B+ ; C, 20", "as ALL", FEW, pushing(PUSHED, few), repeats=3))
    return found


def compare() -> None:
    """A row for each pattern and window."""
    table = letters(EVENTS)
    today = datetime.date.today().isoformat()
    path = Path(__file__).parent / "results" / f"{today}-maximal-windows.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        out = csv.writer(file)
        if fresh:
            out.writerow(["pattern", "window", "events", "all_us", "max_us", "ratio"])
        for pattern in PATTERNS:
            for window in WINDOWS:
                events = EVENTS if pattern in PATTERNS[:3] or window < 1_000 else EVENTS // 20
                cost = [
                    least(counting(f"SELECT {name} * WHERE {pattern} WITHIN {window} EVENTS LIMIT 1", table[:events]))
                    / events
                    * 1e6
                    for name in ("ALL", "MAX")
                ]
                row = [pattern, window, events, *(f"{us:.3f}" for us in cost), f"{cost[1] / cost[0]:.2f}"]
                print(*row, sep="\t", flush=True)
                out.writerow(row)


def least(run: Callable[[], int]) -> float:
    """Seconds of the fastest of five runs, after one that compiles."""
    run()
    found = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    compare()
