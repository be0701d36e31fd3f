"""What a task of a streaming batch sends to each bucket: the times of its events, and those rows that the bucket needs.

A *bucket* is a coarse key of Spark's state: the evaluation of some windows or some PARTITION BY keys, or of all. Every
task sends a parcel to every bucket, also an empty one. So each bucket sees the time of every event of every stream, in
the order of the source, and can work out alone what the whole streamset says: how far each stream has come, which
events are late, and the place of each instant in the order of all. A parcel is one value to Spark, whatever it holds.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from spaseq.gpm import Knowledge
from spaseq.language.solve import InstantSolutions, Solver
from spaseq.rdf import GraphEvent, Instant, Triple, term_from_key, term_key
from spaseq.spark.datasource import Told
from spaseq.spark.events import rows_of
from spaseq.spark.failures import carried
from spaseq.spark.plan import Layout
from spaseq.spark.solutions import Graphs, QueryText

__all__ = ["SCHEMA", "Cut", "Parcel", "Row", "graph_keys", "knowledge_of_keys", "parcel_batch", "send_parcels"]

SCHEMA: Final = "bucket int, feed int, file_number long, start long, part int, body binary"
_ARROW: Final = pa.schema(
    [
        ("bucket", pa.int32()),
        ("feed", pa.int32()),
        ("file_number", pa.int64()),
        ("start", pa.int64()),
        ("part", pa.int32()),
        ("body", pa.binary()),
    ]
)
_EVENTS: Final = 5_000
"""Events for which one parcel is made: it is held in memory, in the task and in the bucket."""

Row = tuple[int, tuple[str, ...] | None, list[tuple[int, tuple[str | None, ...]]]]
"""Which event of the parcel; the PARTITION BY key, as term keys by name; mappings: the GPM's place, and its terms."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """`times`: int64 (n,), ns, of all events of a stretch of a stream, in order; `lines`: int64 (n,), where they stand.
    `rows`: what the bucket is to know of them. `file`, for messages. `told`: at the end of a part, what it held."""

    times: np.ndarray
    lines: np.ndarray
    rows: list[Any]
    file: str
    told: Told | None

    def pack(self) -> bytes:
        """As a value for Spark."""
        return pickle.dumps((self.times, self.lines, self.rows, self.file, self.told), pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def unpack(body: bytes) -> Parcel:
        """The inverse of `pack`."""
        return Parcel(*pickle.loads(body))


@dataclass(frozen=True, slots=True)
class Cut:
    """Which bucket a row belongs to. `buckets`: their keys. `size`, `origin`: of the tumbling windows they are cut by,
    or 0. `by_key`: by the PARTITION BY key."""

    buckets: tuple[int, ...]
    by_key: bool
    size: int
    origin: int

    def of(self, time: int, key: tuple[str, ...] | None) -> int:
        """The place in `buckets` for what happens at `time` (ns) under `key`."""
        number = (time - self.origin) // self.size if self.size else 0
        if self.by_key and key is not None:
            number += crc32("\0".join(key).encode())
        return number % len(self.buckets)


@dataclass(frozen=True, slots=True)
class _Send:
    query: QueryText
    layout: Layout
    cut: Cut


def graph_keys(graph: Iterable[Any]) -> tuple[tuple[str, ...], ...]:
    """A graph of background knowledge to be sent."""
    return tuple(tuple(term_key(term) for term in triple) for triple in graph)


def knowledge_of_keys(graphs: Graphs) -> Knowledge:
    """The inverse, for several graphs."""
    from spaseq.gpm import event_graph

    return Knowledge({iri: event_graph(_triples(graph)) for iri, graph in graphs.items()})


def _triples(graph: Iterable[Sequence[str]]) -> Iterator[Triple]:
    for s, p, o in graph:
        yield term_from_key(s), term_from_key(p), term_from_key(o)


def send_parcels(events: DataFrame, query: QueryText, layout: Layout, cut: Cut, graphs: Graphs) -> DataFrame:
    """The parcels (SCHEMA) of a DataFrame of events (`spaseq.spark.datasource.EVENTS`)."""
    shared = events.sparkSession.sparkContext.broadcast(graphs)
    job = _Send(query, layout, cut)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _send(job, shared, batches)

    return events.mapInArrow(run, SCHEMA)


@carried
def _send(job: _Send, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    solver = Solver(job.query.compiled().checked, knowledge_of_keys(shared.value))
    for head, rows in groupby(rows_of(batches), key=lambda row: row[:3]):
        part = 0
        packing = _Packing(job, solver)
        for row in rows:
            packing.add(row)
            if len(packing.times) >= _EVENTS or packing.told is not None:
                yield parcel_batch(head, part, packing.parcels(), job.cut.buckets)
                part += 1
                packing = _Packing(job, solver)
        if packing.times:
            yield parcel_batch(head, part, packing.parcels(), job.cut.buckets)


class _Packing:
    """A parcel for each bucket, in the making."""

    def __init__(self, job: _Send, solver: Solver) -> None:
        self.times: list[int] = []
        self.told: Told | None = None
        self._lines: list[int] = []
        self._job = job
        self._solver = solver
        self._rows: list[list[Row]] = [[] for _ in job.cut.buckets]
        self._file = ""

    def add(self, row: tuple[Any, ...]) -> None:
        """A row of EVENTS."""
        _, _, _, stream, time, file, line, graph, keys, counts = row
        self._file = file
        if counts is not None:
            self.told = Told.of(counts)
            return
        terms = list(map(term_from_key, keys))
        triples = tuple(zip(terms[::3], terms[1::3], terms[2::3], strict=True))
        event = GraphEvent(stream, time, triples, None if graph is None else term_from_key(graph), file, line)
        for solutions in self._solver.solve(Instant(0, time, (event,))):
            found = self._row(len(self.times), solutions)
            if found is not None:
                self._rows[self._job.cut.of(time, found[1])].append(found)
        self.times.append(time)
        self._lines.append(line)

    def _row(self, number: int, solutions: InstantSolutions) -> Row | None:
        layout = self._job.layout
        key = None if solutions.key is None else tuple(term_key(term) for _, term in sorted(solutions.key))
        mappings: list[tuple[int, tuple[str | None, ...]]] = []
        for gpm, (name, variables) in enumerate(zip(layout.gpms, layout.variables, strict=True)):
            for mapping in solutions.values.get(name, ()):
                terms = dict(mapping)
                mappings.append((gpm, tuple(term_key(terms[v]) if v in terms else None for v in variables)))
        return (number, key, mappings) if mappings or layout.blanks else None

    def parcels(self) -> list[bytes]:
        """One for each bucket; the first has the lines, and what was told."""
        times, lines = np.array(self.times, np.int64), np.array(self._lines, np.int64)
        first = Parcel(times, lines, self._rows[0], self._file, self.told)
        none = np.zeros(0, np.int64)
        ends = None if self.told is None else Told(type(self.told.counters)(), self.told.last)
        rest = [Parcel(times, none, rows, self._file, ends) for rows in self._rows[1:]]
        return [parcel.pack() for parcel in (first, *rest)]


def parcel_batch(head: tuple[Any, ...], part: int, bodies: Sequence[bytes], buckets: Sequence[int]) -> pa.RecordBatch:
    """Parcels, one for each bucket, as rows of SCHEMA; `head`: feed, file number, start."""
    count = len(bodies)
    columns = [list(buckets), *([value] * count for value in head), [part] * count, list(bodies)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)
