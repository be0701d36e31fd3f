"""Conditions that order two events, on values that all differ: pools beside a configuration for each value.

Claim: with pools an event costs O(log w) within w events, however many runs its condition lets pass. Memory is linear
in w. With configurations an event costs the runs it moves, O(w). Streams have 40,000
events of four types or three windows (seed 5). Prices are random, a random walk, rising, or rise for A and fall for B.
"chain" is `a < b < e`, "differs" `b != a`. "band", "two" and "inside" compare two values of one event: these go
together, or not, or in part. "absent" ends the runs of a range, "absent, same" those of a value. "falls, rises" has
PREV. "behind", "again" and "each" compare a value again, behind events that moved its runs: O(log² w), and as many
nodes. No event completes a match, so the update alone is measured, predicates included. The rows "configurations" are
the same queries with pools switched off, in the same run, up to 1,000 events.

`python -m benchmarks.figures orders` measures processor time and the size of the structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import pyarrow as pa

import ceql
from benchmarks.figures import Figure, Point
from benchmarks.harness import Workload
from ceql.runtime.run import Run
from spaseq.core.engine import Program
from spaseq.core.engine.program.register_ops import Codes
from spaseq.core.engine.runs import coded
from spaseq.core.engine.runs.coded_automaton import GuardedAutomaton, automaton_of
from spaseq.core.events import EventBatch, EventOptions, EventStream

SEED, EVENTS = 5, 40_000
WINDOWS = (10, 100, 1_000, 10_000, 100_000)
_PAIR = "(A AS a ; B AS b ; E AS e) FILTER "
PATTERNS = {
    "dropped": _PAIR + "b.price > a.price",
    "chain": _PAIR + "b.price > a.price AND e.price > b.price",
    "differs": _PAIR + "b.price != a.price",
    "band": _PAIR + "b.price > a.price * 0.9 AND b.price < a.price * 1.1",
    "two": _PAIR + "b.price > a.price AND b.size > a.size",
    "inside": _PAIR + "b.price > a.price AND b.price < a.price + a.size",
    "absent": "A AS a ; NOT (B AS b FILTER b.price < a.price * 0.001) ; E",
    "absent, same": "A AS a ; NOT (B AS b FILTER b.size = a.size) ; C ; E",
    "falls, rises": "A ; (B AS b FILTER b.price < PREV(b.price))+ ; (C AS c FILTER c.price > PREV(c.price))+ ; E",
    "behind": "(A AS a ; B AS b ; C AS c ; E) FILTER c.price > a.price",
    "again": "(A AS a ; B AS b ; C AS c ; E) FILTER b.price > a.price AND c.price > a.price",
    "each": "(A AS a ; (B AS b FILTER b.price < a.price)+ ; C AS c ; E) FILTER c.price > a.price",
}
MOVED_ONE_BY_ONE = 1_000
"""The largest window with configurations: an event moves a number of them that grows with it."""


def prices(shape: str, types: np.ndarray) -> np.ndarray:
    """float64 (n,): the prices of events of these types."""
    rng, n = np.random.default_rng(SEED + 1), len(types)
    match shape:
        case "random":
            return rng.random(n) * 100
        case "walk":
            return 100 + np.cumsum(rng.normal(0, 0.1, n))
        case "rising":
            return np.arange(n, dtype=np.float64)
        case _:
            return np.where(types == "A", np.arange(n), -np.arange(n)).astype(np.float64)


def stream(shape: str, events: int) -> list[EventBatch]:
    """Events of types A to D."""
    types = np.array(list("ABCD"))[np.random.default_rng(SEED).integers(0, 4, events)]
    sizes = np.random.default_rng(SEED + 2).random(events) * 100
    table = pa.table({"type": types, "price": prices(shape, types), "size": sizes})
    return list(EventStream({"S": table}, EventOptions(from_arrival=True)))


def evaluating(
    pattern: str, window: int, batches: list[EventBatch], pools: bool
) -> tuple[Callable[[], int], Callable[[], int]]:
    """Update and count, with or without pools: the matches; the same, and the bytes of the structure afterwards."""
    text = f"SELECT * FROM S WHERE {pattern} WITHIN {window} EVENTS"
    query = ceql.compile(text, settings=ceql.Settings(arena_bytes=1 << 33))

    def automaton(program: Program, codes: Codes) -> GuardedAutomaton:
        return automaton_of(program, codes) if pools else GuardedAutomaton(program.cea, codes, allowed=False)

    def evaluate() -> tuple[int, int]:
        with mock.patch.object(coded, "automaton_of", automaton):
            evaluation = Run(query.compiled.lowered, query.program())
        count = sum(evaluation.count(batch) for batch in batches)
        return count, evaluation.evaluator.statistics["arena_bytes"]

    return lambda: evaluate()[0], lambda: evaluate()[1]


def figures() -> list[Figure]:
    """The cost of an event and the bytes held, by the size of the window."""
    return [Figure("orders", "O(log w), O(w) with configurations", list(_points()))]


def _points() -> Iterator[Point]:
    for shape in ("random", "walk", "rising", "crossing"):
        for name, pattern in PATTERNS.items() if shape == "random" else [("dropped", PATTERNS["dropped"])]:
            for window in WINDOWS:
                events = max(EVENTS, 3 * window)
                batches = stream(shape, events)
                for series, pools in (("pools", True), ("configurations", False)):
                    if pools or window <= MOVED_ONE_BY_ONE:
                        run, held = evaluating(pattern, window, batches, pools)
                        yield Point(f"{shape}, {name}", series, f"{window:,}", events, run, held)


def workloads() -> list[Workload]:
    """The points for `python -m benchmarks`, which measures elapsed time."""
    return [workload for figure in figures() for workload in figure.workloads()]
