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

from spaseq.language.solve import InstantSolutions, Solver
from spaseq.rdf import GraphEvent, Instant, term_from_key, term_key
from spaseq.spark.datasource import Told
from spaseq.spark.events import rows_of
from spaseq.spark.failures import carried
from spaseq.spark.plan import Layout
from spaseq.spark.query_text import QueryText
from spaseq.spark.solutions import Graphs, solver_of

__all__ = ["MIXED", "SCHEMA", "Cut", "Parcel", "Row", "key_of", "parcel_batch", "send_parcels"]

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
MIXED: Final = f"{SCHEMA}, gpm int, number int, time long, terms array<string>"
_ARROW_MORE: Final = pa.schema(
    [("gpm", pa.int32()), ("number", pa.int32()), ("time", pa.int64()), ("terms", pa.list_(pa.string()))]
)
_ARROW_MIXED: Final = pa.schema([*_ARROW, *_ARROW_MORE])
_EVENTS: Final = 5_000
"""Events for which one parcel is made: it is held in memory, in the task and in the bucket."""

Row = tuple[int, tuple[str, ...] | None, list[tuple[int, tuple[str | None, ...]]]]
"""Which event of the parcel; the PARTITION BY key, as term keys by name; mappings: the GPM's place, and its terms."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """`times`: int64 (n,), ns, of all events of a stretch of a stream, in order; `lines`: int64 (n,), where they stand.
    `rows`: what the bucket is to know of them. `file`, for messages. `told`: at the end of a part, what it held.
    `attached`: only more rows of the events of the parcel with the same place."""

    times: np.ndarray
    lines: np.ndarray
    rows: list[Any]
    file: str
    told: Told | None
    attached: bool = False

    def pack(self) -> bytes:
        """As a value for Spark."""
        whole = (self.times, self.lines, self.rows, self.file, self.told, self.attached)
        return pickle.dumps(whole, pickle.HIGHEST_PROTOCOL)

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


def send_parcels(events: DataFrame, query: QueryText, layout: Layout, cut: Cut, graphs: Graphs) -> DataFrame:
    """The parcels of a DataFrame of events (`spaseq.spark.datasource.EVENTS`): rows of SCHEMA.

    If the layout has `joined` GPMs, rows of MIXED: parcels without what those find, and that in rows of its own, to be
    joined with its knowledge (`spaseq.spark.attach`).
    """
    shared = events.sparkSession.sparkContext.broadcast(graphs)
    job = _Send(query, layout, cut)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _send(job, shared, batches)

    return events.mapInArrow(run, MIXED if layout.joined else SCHEMA)


@carried
def _send(job: _Send, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    solver = solver_of(job.query, job.layout, shared.value)
    for head, rows in groupby(rows_of(batches), key=lambda row: row[:3]):
        part = 0
        packing = _Packing(job, solver)
        for row in rows:
            packing.add(row)
            if len(packing.times) >= _EVENTS or packing.told is not None:
                yield from packing.batches(head, part)
                part += 1
                packing = _Packing(job, solver)
        if packing.times:
            yield from packing.batches(head, part)


class _Packing:
    """A parcel for each bucket, in the making."""

    def __init__(self, job: _Send, solver: Solver) -> None:
        self.times: list[int] = []
        self.told: Told | None = None
        self._lines: list[int] = []
        self._job = job
        self._solver = solver
        self._rows: list[list[Row]] = [[] for _ in job.cut.buckets]
        self._unjoined: list[tuple[int, int, int, list[str | None]]] = []
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
            for found in self._found(len(self.times), solutions):
                self._rows[self._job.cut.of(time, found[1])].append(found)
        self.times.append(time)
        self._lines.append(line)

    def _found(self, number: int, solutions: InstantSolutions) -> Iterator[Row]:
        """What the buckets are to know of an instant's row. What is to be joined first is put aside."""
        layout = self._job.layout
        mappings: list[tuple[int, tuple[str | None, ...]]] = []
        for gpm, (name, variables) in enumerate(zip(layout.gpms, layout.variables, strict=True)):
            for mapping in solutions.values.get(name, ()):
                terms = dict(mapping)
                keys = [term_key(terms[v]) if v in terms else None for v in variables]
                if name in layout.joined:
                    self._unjoined.append((gpm, number, solutions.time, keys))
                else:
                    mappings.append((gpm, tuple(keys)))
        if layout.joined and (partition := self._job.query.compiled().checked.partition):
            for gpm, own in mappings:
                key = key_of(layout, partition, gpm, own)
                if key is not None:
                    yield number, key, [(gpm, own)]
        elif mappings or layout.blanks:
            key = None if solutions.key is None else tuple(term_key(term) for _, term in sorted(solutions.key))
            yield number, key, mappings

    def batches(self, head: tuple[Any, ...], part: int) -> Iterator[pa.RecordBatch]:
        """The parcels as rows; `head`: feed, file number, start."""
        sent = parcel_batch(head, part, self.parcels(), self._job.cut.buckets)
        if not self._job.layout.joined:
            yield sent
            return
        yield pa.record_batch([*sent.columns, *_unused(_ARROW_MORE, sent.num_rows)], schema=_ARROW_MIXED)
        if self._unjoined:
            count = len(self._unjoined)
            place = [[-1] * count, *([value] * count for value in head), [part] * count, [None] * count]
            columns = [*place, *zip(*self._unjoined, strict=True)]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW_MIXED, strict=True)]
            yield pa.record_batch(arrays, schema=_ARROW_MIXED)

    def parcels(self) -> list[bytes]:
        """One for each bucket; the first has the lines, and what was told."""
        times, lines = np.array(self.times, np.int64), np.array(self._lines, np.int64)
        first = Parcel(times, lines, self._rows[0], self._file, self.told)
        none = np.zeros(0, np.int64)
        ends = None if self.told is None else Told(type(self.told.counters)(), self.told.last)
        rest = [Parcel(times, none, rows, self._file, ends) for rows in self._rows[1:]]
        return [parcel.pack() for parcel in (first, *rest)]


def key_of(layout: Layout, partition: Sequence[str], gpm: int, terms: Sequence[str | None]) -> tuple[str, ...] | None:
    """The PARTITION BY key of a mapping of GPM number `gpm`; None where it does not bind all of it."""
    key = [terms[layout.variables[gpm].index(name)] for name in sorted(partition)]
    whole = tuple(term for term in key if term is not None)
    return whole if len(whole) == len(key) else None


def _unused(schema: pa.Schema, rows: int) -> list[pa.Array]:
    """Columns without values, but `gpm`, which is -1: of no GPM."""
    return [pa.array([-1 if field.name == "gpm" else None] * rows, field.type) for field in schema]


def parcel_batch(head: tuple[Any, ...], part: int, bodies: Sequence[bytes], buckets: Sequence[int]) -> pa.RecordBatch:
    """Parcels, one for each bucket, as rows of SCHEMA; `head`: feed, file number, start."""
    count = len(bodies)
    columns = [list(buckets), *([value] * count for value in head), [part] * count, list(bodies)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)
