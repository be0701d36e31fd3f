"""Aggregates over all matches of each event, which are not listed: two stacks beside the update without aggregates.

Claim: an event costs the same in every window, however many matches end at it, and a few times what the update without
aggregates costs. A stream has 300,000 events of the types A, B and C at random with values from 0 to 999 (seed 7). The
query is `A AS a ; B AS b ; C AS c` within w events. "update" waits for a fourth type, so no match ends; "count" is
COUNT(*), "five" has COUNT(*), SUM(a.v), AVG(b.v), MIN(a.v), MAX(c.v).

`python -m benchmarks.matches` prints processor time an event, the least of three runs, and the matches counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import ceql

SEED, EVENTS = 7, 300_000
WINDOWS = (10, 100, 1_000, 10_000, 100_000)
FIVE = "COUNT(*) AS n, SUM(a.v) AS s, AVG(b.v) AS m, MIN(a.v) AS lo, MAX(c.v) AS hi"
QUERIES = {
    "update": "SELECT * WHERE A AS a ; B AS b ; Z AS c WITHIN {} EVENTS",
    "count": "SELECT COUNT(*) AS n WHERE A AS a ; B AS b ; C AS c WITHIN {} EVENTS GROUP BY EVENT",
    "five": f"SELECT {FIVE} WHERE A AS a ; B AS b ; C AS c WITHIN {{}} EVENTS GROUP BY EVENT",
}


def stream() -> pa.Table:
    """The events."""
    rng = np.random.default_rng(SEED)
    kinds = np.array(["A", "B", "C"])[rng.integers(0, 3, EVENTS)]
    return pa.table({"type": kinds, "v": rng.integers(0, 1000, EVENTS)})


def least_time(work: Callable[[], Any]) -> float:
    """The processor seconds of the fastest of three runs."""
    found = []
    for _ in range(3):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def evaluate(query: ceql.Query, events: pa.Table) -> pa.Table:
    """The rows of a query."""
    return query.run(events).to_arrow()


def main() -> None:
    """Print the table."""
    events = stream()
    for window in WINDOWS:
        line = f"w = {window:>7,}:"
        for name, text in QUERIES.items():
            query = ceql.compile(text.format(window))
            taken = least_time(partial(evaluate, query, events))
            line += f"  {name} {taken / EVENTS * 1e6:.2f} us"
        counts = ceql.compile(QUERIES["count"].format(window)).run(events).to_arrow().column("n").to_pylist()
        print(f"{line}  {sum(counts):,} matches, up to {max(counts):,} at an event")


if __name__ == "__main__":
    main()
