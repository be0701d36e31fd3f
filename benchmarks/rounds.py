"""Conditions on each round of a loop: falling runs over windows of 10 to 10,000 events.

Claim: a configuration holds what the conditions read, so `:+` with PREV is flat in the window: all runs that took the
last event hold its price. With `+` a run may have stopped at any event. So there is a configuration for each distinct
price in the window, and an event moves those with a greater one. Prices are drawn by seed: falls of 5,000 events
between jumps (`long falls`), any of 50 prices (`few prices`), or of a million (`many prices`). One match is reported
for each end (LIMIT 1), as there are 2^w. One thread.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.harness import Workload

SEED = 36
EVENTS = 100_000
WINDOWS = (10, 100, 1_000, 10_000)
QUERIES = {
    ":+ PREV": "(ANY AS b FILTER b.price < PREV(b.price)):+",
    ":+ around": "ANY AS b:+ FILTER b.price < PREV(b.price)",
    ":+ arithmetic": "(ANY AS b FILTER b.price - PREV(b.price) < 0):+",
    ":+ PREV 3": "(ANY AS b FILTER b.price < PREV(b.price, 3)):+",
    ":+ first": "(ANY AS b FILTER b.price < b[0].price):+",
    "+ PREV": "(ANY AS b FILTER b.price < PREV(b.price))+",
    "last of a loop": "A:+ AS a ; B AS b FILTER b.price > LAST(a.price)",
}
STREAMS = {"+ PREV": ("few prices", "many prices"), "last of a loop": ("few prices",)}
"""The streams of a query; of others `long falls`."""
LARGEST = {("+ PREV", "many prices"): 1_000, (":+ first", "long falls"): 1_000}
"""The largest window of those that have a configuration for each price in it."""


def table(kind: str, events: int) -> pa.Table:
    """The events of a stream: types A and B, and prices."""
    rng = np.random.default_rng(SEED)
    if kind == "long falls":
        price = 5_000.0 - np.arange(events) % 5_000
    else:
        price = rng.integers(0, 50 if kind == "few prices" else 1_000_000, events).astype(np.float64)
    types = np.where(rng.random(events) < 0.5, "A", "B")
    return pa.table({"type": types, "price": price})


def counting(formula: str, window: int, events: pa.Table) -> Callable[[], int]:
    """Counts the ends of matches."""
    query = ceql.compile(f"SELECT * WHERE {formula} WITHIN {window} EVENTS LIMIT 1")
    return lambda: query.run(events).count()


def workloads() -> list[Workload]:
    """A workload for each query, stream and window."""
    found = []
    for name, formula in QUERIES.items():
        for kind in STREAMS.get(name, ("long falls",)):
            largest = LARGEST.get((name, kind), WINDOWS[-1])
            for window in (w for w in WINDOWS if w <= largest):
                count = EVENTS if largest == WINDOWS[-1] else min(EVENTS, 5_000_000 // window)
                run = counting(formula, window, table(kind, count))
                claim = "flat" if largest == WINDOWS[-1] else "a configuration for each price"
                found.append(Workload(f"{name}, {kind}, w {window:,}", claim, count, run, repeats=5))
    return found
