"""Aggregates that decide: COUNT, MIN, MAX, SUM and AVG over a loop, by the size of the window.

Claim: COUNT against a number is part of the automaton, MIN and MAX are a flag, so an event costs the same in every
window. Sums are registers of the kernel: an event costs the live runs that it moves, with different sums. There are
40,000 random events of four types with distinct prices (seed 7), and windows of 10 to 10,000 events. Each end has one
match at most, so finding is measured and not the listing of 2^n subsets. *By user* are 400,000 events of 1,000 users.
One thread, tables in memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload

EVENTS, BY_USER = 40_000, 400_000
FLAT = {
    "COUNT(b) > 3": "A ; B+ AS b ; C FILTER COUNT(b) > 3",
    "COUNT(b) >= 20": "B+ AS b FILTER COUNT(b) >= 20",
    "MIN(b) > 500": "A ; B+ AS b ; C FILTER MIN(b.price) > 500",
    "MAX(b) > 990": "A ; B+ AS b ; C FILTER MAX(b.price) > 990",
}
ALL = {
    "SUM(b) > 3000": "A ; B+ AS b ; C FILTER SUM(b.price) > 3000",
    "AVG(b) > a": "A AS a ; B+ AS b ; C FILTER AVG(b.price) > a.price",
}
"""Every subset of the Bs is a run, and most have a sum of their own: the number doubles with each B in the window."""
ONE_RUN = {
    "SUM(b) > 30000, steps": "A -> B->+ AS b -> C FILTER SUM(b.price) > 30000",
    "AVG(b) > a, steps": "A AS a -> B->+ AS b -> C FILTER AVG(b.price) > a.price",
}
"""One run for each A: an event costs the As in the window, of which a B moves all."""
IN_A_ROW = {
    "SUM > 40000, every event": "A : (A OR B OR C OR D):+ AS b FILTER SUM(b.price) > 40000",
    "AVG > a, every event": "A AS a : (A OR B OR C OR D):+ AS b FILTER AVG(b.price) > a.price",
}
"""One run for each A, and every event moves all of them."""
WINDOWS = (10, 100, 1_000, 10_000)


def stream(size: int) -> pa.Table:
    """Events of types A to D, with distinct prices up to 1,000 and one of 1,000 users."""
    rng = np.random.default_rng(7)
    types = pa.array(np.array(list("ABCD"))[rng.integers(0, 4, size)])
    return pa.table({"type": types, "price": rng.random(size) * 1000, "user": rng.integers(0, 1000, size)})


def counting(formula: str, ending: str, events: pa.Table) -> Callable[[], int]:
    """Counts the matches, one at most for each end."""
    query = ceql.compile(f"SELECT * WHERE {formula} {ending} LIMIT 1")
    return lambda: query.run(events).count()


def workloads() -> list[Workload]:
    """Those that are flat in the window, those of all subsets in small windows, those with one run for each start."""
    events = stream(EVENTS)
    found = [(name, formula, window) for name, formula in FLAT.items() for window in WINDOWS]
    found += [(name, formula, window) for name, formula in ALL.items() for window in (10, 20)]
    found += [(name, formula, window) for name, formula in ONE_RUN.items() for window in WINDOWS]
    found += [(name, formula, window) for name, formula in IN_A_ROW.items() for window in WINDOWS[:3]]
    every = [
        Workload(f"{name}, w {window:,}", "flat, or by live runs", EVENTS,
                 counting(formula, f"WITHIN {window} EVENTS", events), repeats=5)
        for name, formula, window in found
    ]  # fmt: skip
    users = counting("B+ AS b FILTER COUNT(b) >= 20", "PARTITION BY [user] WITHIN 200 EVENTS", stream(BY_USER))
    return [*every, Workload("COUNT(b) >= 20 by user", "over 200,000 events/s", BY_USER, users, repeats=5)]
