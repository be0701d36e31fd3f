"""Absences around a match: the cost of an event while few matches wait, and while many do.

Claim: an event costs as much with 100,000 matches waiting as with 1,000, over batches and pushed one by one. This is
measured for NOT and NOT … FOR, at the end and in front. The bytes of a waiting match are measured, too.

Events come a millisecond apart: 40% A, 30% C, 0.001% B, else D (seed 7). In `A ; NOT B` each A waits for its window.
The number of matches that wait is about 0.4 times the window in milliseconds. `bytes` has no time of its own: the
number of matches it reports is the bytes for each match that waits: of runs, of events, and of waiting matches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload

EVENTS, SINGLE, SEED = 1_000_000, 200_000, 7
WAITING = (1_000, 10_000, 100_000)
QUERIES = {
    "behind, window": "SELECT * WHERE A ; NOT B WITHIN {span} MILLISECONDS",
    "behind, FOR": "SELECT * WHERE A ; NOT B FOR {span} MILLISECONDS",
    "in front, window": "SELECT * WHERE NOT B ; D ; A ; C WITHIN 20 MILLISECONDS",
    "in front, FOR": "SELECT * WHERE NOT B FOR {span} MILLISECONDS ; A",
}


@cache
def events(count: int) -> pa.Table:
    """The first `count` events."""
    rng = np.random.default_rng(SEED)
    kinds = rng.choice(np.array(["A", "C", "B", "D"]), EVENTS, p=(0.4, 0.3, 0.00001, 0.29999))
    return pa.table({"type": pa.array(kinds[:count]), "time": np.arange(count) / 1000})


def _over_batches(text: str) -> Callable[[], int]:
    query, table = ceql.compile(text), events(EVENTS)
    return lambda: query.run(table).count()


def _one_by_one(text: str) -> Callable[[], int]:
    query, rows = ceql.compile(text), events(SINGLE).to_pylist()

    def run() -> int:
        with query.open() as session:
            return sum([len(session.push(row)) for row in rows]) + len(session.close())

    return run


def _bytes(text: str, waiting: int) -> Callable[[], int]:
    query = ceql.compile(text)

    def run() -> int:
        session = query.open()
        session.push(events(4 * waiting))
        held = session.held()
        session.close()
        return (held.waiting + held.runs + held.events) // waiting

    return run


def workloads() -> list[Workload]:
    found = []
    for name, text in QUERIES.items():
        for waiting in WAITING if "{span}" in text else WAITING[:1]:
            query = text.format(span=int(waiting / 0.4))
            told = f"{name}, {waiting:,}" if "{span}" in text else name
            found.append(Workload(f"{told}, batches", "as much with all", EVENTS, _over_batches(query), repeats=3))
            found.append(Workload(f"{told}, one by one", "as much with all", SINGLE, _one_by_one(query), repeats=1))
            if name.startswith("behind"):
                found.append(Workload(f"{told}, bytes", "linear", 4 * waiting, _bytes(query, waiting), repeats=1))
    return found
