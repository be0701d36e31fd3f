"""Does it match now? Alerts against enumeration, on the stock trace of [CORE].

Claim: nothing needs to be enumerated to find the events at which a query matches. A configuration of the engine then
holds one number instead of union lists, so an event costs the transitions that fire. An iteration, whose matches are
exponentially many, costs as much as a sequence. With conditions over several events, an event costs the different
values that live runs hold, of those that do not just complete.

Each query runs three times: `recognised` (the number of events at which a match ends, in the column of matches),
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
    """The workloads of this file; none if the trace is missing."""
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
