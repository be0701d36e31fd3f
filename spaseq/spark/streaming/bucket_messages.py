"""What a task of a streaming batch sends to each bucket: the times of its events, and those rows that the bucket needs.

A *bucket* is a coarse key of Spark's state: the evaluation of some windows or some PARTITION BY keys, or of all. Every
task sends a parcel to every bucket, also an empty one. So each bucket sees the time of every event of every stream, in
the order of the source. It can work out alone how far each stream has come, which events are late, and the place of
each instant in the order of all. A parcel is one value to Spark, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from spaseq.core.engine import Window
from spaseq.core.snapshot import decode, encode
from spaseq.gpm.serialise import graph_object
from spaseq.language.solving.solve import Solver
from spaseq.rdf import Counters, GraphEvent
from spaseq.spark.ingest.columns import Placed, part_batches
from spaseq.spark.ingest.datasource import planned_part
from spaseq.spark.ingest.frames import NAME
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.ingest.quarantine import counted
from spaseq.spark.ingest.reading import quarantine_names
from spaseq.spark.ingest.time_ranges import rows_of
from spaseq.spark.ingest.told import Told
from spaseq.spark.session.connecting import share
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.steps import step, streams_and_patterns
from spaseq.spark.session.tables import MIXED, PARCELS, batch_of, spark_schema
from spaseq.spark.solving.bucket_rows import Row, found_in
from spaseq.spark.solving.solutions import Graphs, solver_of

_EVENTS: Final = 5_000
"""Events for which one parcel is made: it is held in memory, in the task and in the bucket."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """`times`: int64 (n,), ns, of all events of a stretch of a stream, in order; `lines`: int64 (n,), where they stand.
    `rows`: what the bucket is to know of them. `file`, for messages. `told`: at the end of a part, what it held.
    `attached`: only more rows of the events of the parcel with the same place. `graphs`: of each event the name of its
    graph and its triples, as of `graph_object`, if late ones become rows."""

    times: np.ndarray
    lines: np.ndarray
    rows: list[Any]
    file: str
    told: Told | None
    attached: bool = False
    graphs: list[tuple[str | None, list[str]]] = field(default_factory=list)

    def pack(self) -> bytes:
        """As a value for Spark."""
        told = None if self.told is None else self.told.row()
        return encode((self.times, self.lines, self.rows, self.file, told, self.attached, self.graphs))

    @staticmethod
    def unpack(body: bytes) -> Parcel:
        """The inverse of `pack`."""
        times, lines, rows, file, told, attached, *graphs = decode(body)  # those of an older log have no graphs
        return Parcel(times, lines, rows, file, None if told is None else Told.of(told), attached, *graphs)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which bucket a row belongs to. `buckets`: their keys. `window`: the tumbling one they are cut by, or one of kind
    none. `by_key`: by the PARTITION BY key."""

    buckets: tuple[int, ...]
    by_key: bool
    window: Window

    def of(self, time: int, key: tuple[str, ...] | None) -> int:
        """The place in `buckets` for what happens at `time` (ns) under `key`."""
        number = self.window.number(time)
        if self.by_key and key is not None:
            number += crc32("\0".join(key).encode())
        return number % len(self.buckets)


@dataclass(frozen=True, slots=True)
class _Send:
    """`late`: the first bucket makes rows of late events, so it is sent all graphs, with all their triples."""

    query: QueryText
    layout: Layout
    cut: Cut
    late: bool = False

    def predicates(self, solver: Solver) -> Collection[str] | None:
        """The predicates whose triples are read; None: all."""
        return None if self.late else solver.wanted


def send_parcels(
    events: DataFrame, query: QueryText, layout: Layout, cut: Cut, graphs: Graphs, reader: QuadReader | None,
    late: bool = False,
) -> DataFrame:  # fmt: skip
    """The PARCELS (`spaseq.spark.session.tables`) of a DataFrame of PARTS to be read, or, with a `reader`, of QUADS.

    If the layout has `joined` GPMs, rows of MIXED: parcels without what those find, and that in rows of its own, to be
    joined with its knowledge (`spaseq.spark.streaming.knowledge_join`). `late`: late events become rows.
    """
    shared = share(events.sparkSession, graphs)
    job = _Send(query, layout, cut, late)
    name = f"read {'rows' if reader else 'files'} ({streams_and_patterns(query.compiled())})"
    run = step(name, _send_quads, job, reader, shared) if reader else step(name, _send_parts, job, shared)
    return events.mapInArrow(run, spark_schema(MIXED if layout.joined else PARCELS))


_SOLVERS: Final = 8
_solvers: dict[tuple[QueryText, Layout], tuple[Graphs, Solver]] = {}


def _kept_solver(query: QueryText, layout: Layout, graphs: Graphs) -> Solver:
    """The solver of a query, kept by the process for its next batch: knowledge is indexed and its GRAPH clauses are
    evaluated once, not in every batch. Spark gives the process one and the same `graphs` as long as the query runs."""
    known, solver = _solvers.pop((query, layout), (None, None))
    if solver is None or known is not graphs:
        solver = solver_of(query, layout, graphs)
    while len(_solvers) >= _SOLVERS:
        _solvers.pop(next(iter(_solvers)))
    _solvers[query, layout] = (graphs, solver)
    return solver


def _send_parts(job: _Send, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The parcels of parts, which are read here."""
    solver = _kept_solver(job.query, job.layout, shared.value)
    for *head, body in rows_of(batches):
        feed, part, quarantine = planned_part(body)
        with counted(quarantine, quarantine_names(part)) as counters:
            placed = () if part.last else part_batches(feed, part, job.predicates(solver), counters)
            number = yield from _sent(job, solver, tuple(head), placed)
        yield from _told(job, tuple(head), number, part.path, Told(counters, int(part.last)))


def _send_quads(
    job: _Send, reader: QuadReader, shared: Any, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The parcels of the events of quads, which come in no order."""
    from pyspark import TaskContext

    context = TaskContext.get()
    task = 0 if context is None else context.partitionId()
    solver = _kept_solver(job.query, job.layout, shared.value)
    counters, sent = Counters(), [0] * len(reader.iris)
    for events in reader.sorted_events(batches, job.predicates(solver), counters):
        head = (events.stream, task, 0)
        sent[events.stream] += yield from _sent(job, solver, head, [events.placed], sent[events.stream])
    if counters.malformed:  # a bucket counts events itself
        yield from _told(job, (0, task, 1), 0, NAME, Told(Counters(malformed=counters.malformed), 0))


def _sent(
    job: _Send, solver: Solver, head: tuple[Any, ...], batches: Iterable[Placed], first: int = 0
) -> Generator[pa.RecordBatch, None, int]:
    """Parcels of batches of events, as rows; how many there were. `head`: feed, file number, start."""
    part = first
    for placed in batches:
        batch, found = placed.batch, found_in(placed, solver, job.query, job.layout)
        order = np.argsort(placed.numbers)
        times, lines = batch.times[order], batch.records[order]
        for low in range(0, len(order), _EVENTS):
            high = min(low + _EVENTS, len(order))
            rows: list[list[Row]] = [[] for _ in job.cut.buckets]
            for number, key, mappings in found.rows(low, high):
                rows[job.cut.of(int(times[number]), key)].append((number - low, key, mappings))
            graphs = [_graph(batch.event(place)) for place in order[low:high].tolist()] if job.late else []
            bodies = _bodies(times[low:high], lines[low:high], rows, batch.source, graphs)
            yield _with_more(job, parcel_batch(head, part, bodies, job.cut.buckets))
            loose = [(g, n - low, int(times[n]), terms) for g, n, terms in found.unjoined(low, high)]
            if loose:
                yield _loose_batch(head, part, loose)
            part += 1
    return part - first


def _told(job: _Send, head: tuple[Any, ...], part: int, file: str, told: Told) -> Iterator[pa.RecordBatch]:
    """The parcels that only tell what a part held; the first bucket counts it."""
    none = np.zeros(0, np.int64)
    ends = Told(Counters(), told.last)
    bodies = [Parcel(none, none, [], file, told if i == 0 else ends).pack() for i in range(len(job.cut.buckets))]
    yield _with_more(job, parcel_batch(head, part, bodies, job.cut.buckets))


def _bodies(
    times: np.ndarray, lines: np.ndarray, rows: Sequence[list[Row]], file: str, graphs: list[Any]
) -> list[bytes]:
    """A parcel for each bucket; the first has the lines, and the graphs."""
    first, *others = rows
    bodies = [Parcel(times, lines, first, file, None, graphs=graphs).pack()]
    return bodies + [Parcel(times, lines[:0], own, file, None).pack() for own in others]


def _graph(event: GraphEvent) -> tuple[str | None, list[str]]:
    found = graph_object(event)
    return found["graph"], found["triples"]


def _with_more(job: _Send, sent: pa.RecordBatch) -> pa.RecordBatch:
    """PARCELS as MIXED, if that is what is sent."""
    if not job.layout.joined:
        return sent
    return batch_of(MIXED, [(*row, -1, None, None, None) for row in rows_of([sent])])


def _loose_batch(head: tuple[Any, ...], part: int, loose: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """What is to be joined first: (GPM, number in the parcel, time, terms)."""
    return batch_of(MIXED, [(-1, *head, part, None, *row) for row in loose])


def parcel_batch(head: tuple[Any, ...], part: int, bodies: Sequence[bytes], buckets: Sequence[int]) -> pa.RecordBatch:
    """PARCELS, one for each bucket; `head`: feed, file number, start."""
    return batch_of(PARCELS, [(bucket, *head, part, body) for bucket, body in zip(buckets, bodies, strict=True)])
