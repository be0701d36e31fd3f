"""Sequence queries on the stock trace of [CORE] (appendix D): 224,473 BUY and SELL events of one day, ten stocks.

Claim: an event costs the transitions that fire, not the states of the automaton nor the events in the window. So a
sequence of 24 costs about as much as one of 3, and four times the window costs the same. The data is preloaded as
columns; predicates, symbol classes, windows, the structure and the enumeration are measured. One thread.

For scale, the C++ CORE on such a machine, data preloaded and predicates included, has 2.24 M events/s on S3'. It has
1.04 M on S24', and 1.18 M on S3 with its matches enumerated.
"""

from __future__ import annotations

from collections.abc import Callable

import ceql
from benchmarks.harness import DATA, Workload
from ceql.runtime.run import Run
from spaseq.core.events import EventBatch, EventOptions, EventStream

TRACE = DATA / "stock" / "stock_data.csv.gz"
_TEN = ("INTC", "RIMM", "QQQ", "IPIX", "AMAT", "CSCO", "YHOO", "DELL", "ORCL", "MSFT")
NAMES = (*_TEN, "INTC", "RIMM", *_TEN, "INTC", "RIMM")


def sequence(length: int, *, impossible: bool = False, window: int = 10_000) -> str:
    """S<length> of the appendix; with `impossible` its variant S<length>' that ends in an event that never occurs."""
    atoms = [f"{'SELL' if i % 3 == 0 else 'BUY'} AS T{i + 1}" for i in range(length)]
    filters = [f"T{i + 1}[name = '{NAMES[i]}']" for i in range(length)]
    if impossible:
        atoms.append("BUY AS NE")
        filters.append("NE[name = 'NotExists']")
    return f"SELECT * FROM S WHERE ({'; '.join(atoms)}) FILTER {' AND '.join(filters)} WITHIN {window} [stock_time]"


Q1 = (
    "SELECT * FROM S WHERE (SELL AS msft; BUY AS oracle; BUY AS csco; SELL AS amat) FILTER msft[name = 'MSFT'] AND "
    "oracle[name = 'ORCL'] AND csco[name = 'CSCO'] AND amat[name = 'AMAT'] WITHIN 30000 [stock_time]"
)
Q7 = (
    "SELECT * FROM S WHERE (SELL AS msft; (BUY OR SELL)+ AS qqq; SELL AS amat) FILTER msft[name = 'MSFT'] AND "
    "qqq[name = 'QQQ'] AND qqq[volume = 4000] AND amat[name = 'AMAT'] WITHIN 30000 [stock_time]"
)


def preload() -> list[EventBatch]:
    """The trace in columns, as the engine gets it."""
    return list(EventStream({"S": str(TRACE)}, EventOptions(type_column="event_type", from_arrival=True)))


def counting(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    """Update and count: matches are walked, not written."""
    query = ceql.compile(text)

    def run() -> int:
        evaluation = Run(query.compiled.lowered, query.program())
        return sum(evaluation.count(batch) for batch in batches)

    return run


def enumerating(text: str, batches: list[EventBatch]) -> Callable[[], int]:
    """Every match written to arrays."""
    query = ceql.compile(text)

    def run() -> int:
        evaluation = Run(query.compiled.lowered, query.program())
        return sum(len(matches) for batch in batches for matches, _ in evaluation.advance(batch))

    return run


def workloads() -> list[Workload]:
    """The workloads of this file; none if the trace is missing."""
    if not TRACE.exists():
        print(f"stock: skipped, {TRACE} is not there (set SPASEQ_DATA)")
        return []
    batches = preload()
    events = sum(map(len, batches))
    found = [
        Workload("S3, enumerated", "every match written", events, enumerating(sequence(3), batches), "CORE C++ 1.18 M"),
    ]
    for length, scale in ((3, "CORE C++ 2.24 M"), (6, "1.69 M"), (12, "1.43 M"), (24, "1.04 M")):
        text = sequence(length, impossible=True)
        found.append(Workload(f"S{length}'", "update only", events, counting(text, batches), scale))
    for times in (2, 4):
        text = sequence(3, impossible=True, window=10_000 * times)
        found.append(Workload(f"S3' window x{times}", "as S3'", events, counting(text, batches)))
    for name, text, scale in (("Q1", Q1, "CORE C++ 2.4 M matches/s"), ("Q7", Q7, "")):
        found.append(Workload(f"{name}, enumerated", "many matches", events, enumerating(text, batches), scale))
        found.append(Workload(f"{name}, counted", "walked, not written", events, counting(text, batches)))
    return found
