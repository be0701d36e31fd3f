"""Does it match now? Alerts against enumeration, on the stock trace of [CORE].

Claim: to say at which events a query matches, nothing needs to be enumerated. A configuration of the engine then holds
one number instead of union lists, so an event costs the transitions that fire; an iteration, whose matches are
exponentially many, costs what a sequence does. With conditions over several events it costs the different values that
live runs hold, of those that do not just complete.

Each query runs three times: `recognised` (at how many events a match ends; the number of matches says that),
`counted` (the engine walks all matches, writing none) and `written`. Data is preloaded as columns; predicates, symbol
classes and windows are measured. One thread.
"""

from __future__ import annotations

from collections.abc import Callable

import ceql
from benchmarks.harness import Workload
from benchmarks.stock import Q1, Q7, TRACE, counting, enumerating, preload, sequence
from ceql.runtime.run import Run
from spaseq.core.events import EventBatch

RISE = (
    "SELECT * FROM S WHERE (SELL AS low; BUY AS high) FILTER low[name = 'INTC'] AND high[name = 'INTC'] AND "
    "high.price > low.price WITHIN 10000 [stock_time]"
)
FALL_AND_RISE = (
    "SELECT * FROM S WHERE ((SELL AS a; BUY AS b) FILTER a[name = 'MSFT'] AND b[name = 'MSFT'] AND b.price < a.price); "
    "((SELL AS c; BUY AS d) FILTER c[name = 'ORCL'] AND d[name = 'ORCL'] AND d.price > c.price) "
    "WITHIN 10000 [stock_time]"
)


def recognising(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    """At how many events a match ends."""
    query = ceql.compile(text)
    program = query.alerts().program

    def run() -> int:
        evaluation = Run(query.compiled.lowered, program)
        return sum(len(evaluation.ends(batch)) for batch in batches)

    return run


def workloads() -> list[Workload]:
    """The workloads of this file; none where the trace is not there."""
    if not TRACE.exists():
        print(f"rma: skipped, {TRACE} is not there (set SPASEQ_DATA)")
        return []
    batches = preload()
    events = sum(map(len, batches))
    queries = {
        "S3": (sequence(3), "three events"),
        "S12": (sequence(12), "twelve events"),
        "Q1": (Q1, "four events, 30 s"),
        "Q7": (Q7, "an iteration, 30 s"),
        "rise": (RISE, "a condition over two events"),
        "fall, rise": (FALL_AND_RISE, "two such conditions"),
    }
    ways = {"recognised": recognising, "counted": counting, "written": enumerating}
    return [
        Workload(f"{name}, {way}", claim, events, make(text, batches))
        for name, (text, claim) in queries.items()
        for way, make in ways.items()
    ]
