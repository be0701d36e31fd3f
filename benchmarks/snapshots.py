"""Snapshots amid a stream: the time to take and to open them, and their bytes.

Claim: a snapshot's time and bytes depend on the runs alive in the window, a checksum and checks of every reference
included. The stock trace is that of `stock`: 60,000 events are pushed before the snapshot is taken. Queries: a sequence
of three; one without a window; one under conditions between events (`guards`); one in partitions; one whose events are
pushed one by one, 10,000. The graphs are the smart-grid readings of `reading` (seed 42): 40,000 triples, a window of
five hours, matches show their events. "events" are those pushed, "matches" the bytes of the snapshot. One thread.
Beside the format before (pickle, a83cfcb) by `benchmarks/paired.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import ceql
import spaseq
from benchmarks import reading, stock
from benchmarks.guards import query as guarded
from benchmarks.harness import Workload
from spaseq.rdf import StreamOptions, StreamSource
from spaseq.rdf.columns.reader import open_batches

EVENTS, SINGLE, TRIPLES = 60_000, 10_000, 40_000
_GRID = """
PREFIX : <http://smartgrid.org/ns#>
SELECT ?house ?fr1 ?other ?fr2 WITHIN 5 HOURS SLIDING FROM STREAM S <urn:s>
WHERE { SEQ (A; B)
  DEFINE GPM A ON S { ?house :loc ?l ; :pow ?p1 . ?p1 :source "fuel" ; :fare ?fr1 . FILTER (?fr1 > 45) }
  DEFINE GPM B ON S { ?other :loc ?l ; :pow ?p2 . ?p2 :source "solar" ; :fare ?fr2 . FILTER (?fr2 < 5) } }
"""


@cache
def _trades() -> pa.Table:
    return pa.concat_tables([batch.table for batch in stock.preload()], promote_options="permissive").slice(0, EVENTS)


def _tuples(text: str, *, single: bool = False) -> tuple[Callable[..., Any], int]:
    @cache
    def taken() -> tuple[Any, Any]:
        query = ceql.compile(text)
        stream = query.open(type_column="event_type", time_from="arrival")
        if single:
            for event in _trades().slice(0, SINGLE).to_pylist():
                stream.push(event)
        else:
            stream.push(_trades())
        return query, stream

    return taken, SINGLE if single else EVENTS


def _graphs() -> tuple[Callable[..., Any], int]:
    @cache
    def taken() -> tuple[Any, Any]:
        query = spaseq.compile(_GRID)
        with tempfile.TemporaryDirectory() as folder:
            source = StreamSource("urn:s", (reading.write(Path(folder), "smart grid", TRIPLES),))
            ((_, batches),), options = open_batches([source], StreamOptions())
            session = query.open(options=options)
            session.push(batch.event(index) for batch in batches for index in range(len(batch)))
        return query, session

    return taken, TRIPLES


def _work(name: str, taken: Callable[..., Any], events: int, rounds: int) -> list[Workload]:
    def take() -> int:
        _, session = taken()
        return [len(session.snapshot()) for _ in range(rounds)][-1]

    @cache
    def state() -> bytes:
        found: bytes = taken()[1].snapshot()
        return found

    def open_again() -> int:
        query, _ = taken()
        for _ in range(rounds):
            query.open(state())
        return len(state())

    claim = f"{rounds} times"
    return [
        Workload(f"{name}, taken", claim, events, take),
        Workload(f"{name}, opened", claim, events, open_again),
    ]


def workloads() -> list[Workload]:
    sequence = stock.sequence(3, window=30_000)
    everything = "SELECT * FROM S WHERE SELL AS a; BUY AS b; NEVER AS c"
    of_one = "SELECT * FROM S WHERE SELL AS a; BUY AS b; NEVER AS c PARTITION BY [name] WITHIN 20000 [stock_time]"
    return [
        *_work("sequence", *_tuples(sequence), 10),
        *_work("all windows", *_tuples(everything), 3),
        *_work("conditions", *_tuples(guarded(("b.price > a.price", "c.price < a.price - 0.1"), 400_000)), 10),
        *_work("partitions", *_tuples(of_one), 10),
        *_work("one by one", *_tuples(sequence, single=True), 3),
        *_work("graphs", *_graphs(), 3),
    ]
