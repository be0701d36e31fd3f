"""Aggregates over all matches of each event, which are not listed: two stacks beside the update without aggregates.

Claim: an event costs the same in every window, however many matches end at it, and a few times what the update without
aggregates costs. A stream has 300,000 events of the types A, B and C at random with values from 0 to 999 (seed 7). The
query is `A AS a ; B AS b ; C AS c` within w events. "update" waits for a fourth type, so no match ends; "count" is
COUNT(*), "five" has COUNT(*), SUM(a.v), AVG(b.v), MIN(a.v), MAX(c.v). "again" has the same five of the matches with
b.v > a.v and c.v > a.v. These are added up over nodes, so an event costs more in a longer window.
"list" writes the matches, "count()" counts them by the nodes of the structure.

`python -m benchmarks.figures matches` measures processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.figures import Figure, Point
from benchmarks.harness import Workload

SEED, EVENTS = 7, 300_000
WINDOWS = (10, 100, 1_000, 10_000, 100_000)
FIVE = "COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS m, MIN(a.v) AS lo, MAX(c.v) AS hi"
QUERIES = {
    "update": "SELECT * WHERE A AS a ; B AS b ; Z AS c WITHIN {} EVENTS",
    "count": "SELECT COUNT(*) AS n WHERE A AS a ; B AS b ; C AS c WITHIN {} EVENTS GROUP BY EVENT",
    "five": f"SELECT {FIVE} WHERE A AS a ; B AS b ; C AS c WITHIN {{}} EVENTS GROUP BY EVENT",
    "again": f"SELECT {FIVE} WHERE (A AS a ; B AS b ; C AS c) FILTER b.v > a.v AND c.v > a.v "
    "WITHIN {} EVENTS GROUP BY EVENT",
    "list": "SELECT * WHERE A AS a ; B AS b ; C AS c WITHIN {} EVENTS",
}
MOST = {"list": 10, "again": 10_000}
"""The largest window of which the matches are listed, and added up over nodes."""


def stream() -> pa.Table:
    """The events."""
    rng = np.random.default_rng(SEED)
    kinds = np.array(["A", "B", "C"])[rng.integers(0, 3, EVENTS)]
    return pa.table({"type": kinds, "v": rng.integers(0, 1000, EVENTS)})


def evaluating(text: str, events: pa.Table) -> Callable[[], int]:
    """The matches that the rows of a query stand for; without aggregates each row is one."""
    query = ceql.compile(text)

    def run() -> int:
        rows = query.run(events).to_arrow()
        return sum(rows.column("n").to_pylist()) if "n" in rows.column_names else rows.num_rows

    return run


def counting(text: str, events: pa.Table) -> Callable[[], int]:
    """The matches of a query, counted."""
    query = ceql.compile(text)
    return lambda: query.run(events).count()


def figures() -> list[Figure]:
    """The cost of an event by the size of the window."""
    return [Figure("matches", "flat, whatever the number of matches", list(_points()), runs=3)]


def _points() -> Iterator[Point]:
    events = stream()
    for window in WINDOWS:
        for name, text in QUERIES.items():
            if window <= MOST.get(name, window):
                yield Point("A ; B ; C", name, f"{window:,}", EVENTS, evaluating(text.format(window), events))
        yield Point("A ; B ; C", "count()", f"{window:,}", EVENTS, counting(QUERIES["list"].format(window), events))


def workloads() -> list[Workload]:
    """The points for `python -m benchmarks`, which measures elapsed time."""
    return [workload for figure in figures() for workload in figure.workloads()]
