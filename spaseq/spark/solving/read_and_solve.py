"""The events of streams with what the GPMs find on them, for a batch: evaluated as columns, many events at once.

Of files a task reads some inputs (`spaseq.spark.ingest.inputs`) with the local engine's readers, so what is late,
malformed or wrong is what it is there, in the same words. Events of DataFrames come as quads. The rows made here
(SOLVED of `spaseq.spark.session.tables`) are an event each, without its triples; then `in_ranges` puts them into ranges
of time, and `solution_rows` makes the table of solutions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spaseq.core.errors import EventError
from spaseq.rdf import Counters, StreamOptions, byte_chunks, is_triple_key
from spaseq.spark.ingest.columns import Placed
from spaseq.spark.ingest.inputs import Input, dealt
from spaseq.spark.ingest.parts import part_chunks
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.ingest.quarantine import counted
from spaseq.spark.ingest.time_ranges import INDEX_BITS, quantiles
from spaseq.spark.session.connecting import share
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.session.steps import step, streams_and_patterns
from spaseq.spark.session.storage import Access, access_to
from spaseq.spark.session.tables import INPUTS, SOLUTIONS, SOLVED, batch_of, spark_schema
from spaseq.spark.solving.bucket_rows import Found, found_in
from spaseq.spark.solving.solutions import INSTANT, Graphs, solver_of

_OF_AN_EVENT: Final = re.compile(r"_:e[0-9a-f]{8}n")
"""How the key of a blank node of an event begins. It has the number of the event in its file."""


@dataclass(frozen=True, slots=True)
class _Job:
    query: QueryText
    layout: Layout
    options: StreamOptions
    quarantine: str = ""
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """What a task says of an input it has read: `counters`, the first and the last of the `times` if there are events,
    and whether it `named` blank nodes otherwise than the local engine."""

    number: int
    counters: Counters
    times: tuple[int, int] | None
    named: bool

    def row(self) -> pa.RecordBatch:
        """As SOLVED."""
        counts = [*astuple(self.counters), *(self.times or (None, None)), int(self.named)]
        return batch_of(SOLVED, [(self.number, *[None] * (len(SOLVED) - 2), counts)])

    @staticmethod
    def of(number: int, counts: Sequence[Any]) -> Account:
        """The inverse of `row`."""
        *read, low, high, named = counts
        return Account(number, Counters(*read), None if low is None else (low, high), bool(named))


def solved_files(
    spark: SparkSession,
    inputs: Sequence[Input],
    tasks: int,
    options: StreamOptions,
    query: QueryText,
    layout: Layout,
    graphs: Graphs,
    quarantine: str = "",
) -> DataFrame:
    """The events of all streams, and for each input an `Account` of it. `tasks`: how many run at a time. `options`
    are settled. `quarantine`: a folder for lines that cannot be read, which `options` then have dropped."""
    shared = share(spark, graphs)
    chosen, parts = dealt(inputs, tasks)
    rows = [(task, each.to_json()) for task, each in zip(chosen, inputs, strict=True)]
    given = spark.createDataFrame(rows, spark_schema(INPUTS))
    parted = given.repartitionById(parts, "number")
    job = _Job(query, layout, options, quarantine, access_to(spark, [name for each in inputs for name in each.names]))
    read = step(f"read files ({streams_and_patterns(query.compiled())})", _of_files, job, shared)
    return parted.mapInArrow(read, spark_schema(SOLVED))


def solved_quads(quads: DataFrame, reader: QuadReader, query: QueryText, layout: Layout, graphs: Graphs) -> DataFrame:
    """The same of QUADS in order."""
    shared = share(quads.sparkSession, graphs)
    name = f"read rows ({streams_and_patterns(query.compiled())})"
    return quads.mapInArrow(step(name, _of_quads, query, layout, reader, shared), spark_schema(SOLVED))


def _of_files(job: _Job, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    solver = solver_of(job.query, job.layout, shared.value)
    if job.access is not None:
        job.access.use()
    for batch in batches:
        for body in batch.column("body").to_pylist():
            given = Input.of_json(body)
            try:
                yield from _read(job, solver, given)
            except EventError as error:
                raise _named(error, given.names) from None


def _named(error: EventError, names: dict[str, str]) -> EventError:
    """The error with the file under the name the user gave it."""
    source, problem = error.source, error.problem
    for path, name in names.items():
        source, problem = (name if source == path else source), problem.replace(path, name)
    return EventError(problem, source=source, record=error.record, attribute=error.attribute, hint=error.hint)


def _read(job: _Job, solver: Any, given: Input) -> Iterator[pa.RecordBatch]:
    from spaseq.rdf.columns.reader import read_batches  # loads the kernels

    first, times, named = 0, None, False
    start, end = given.span or (0, 0)
    chunks: Any = byte_chunks if given.span is None else lambda path: part_chunks(path, start, end)
    with counted(job.quarantine, given.quarantined) as counters:
        for batch in read_batches(given.source, job.options, counters, solver.wanted, chunks=chunks):
            if not len(batch):
                continue
            times = (int(batch.times[0]) if times is None else times[0], int(batch.times[-1]))
            placed = Placed(batch, np.arange(len(batch)))
            found = found_in(placed, solver, job.query, job.layout)
            named = named or (start > 0 and _has_blank_nodes(found))
            graphs = pa.nulls(len(batch), pa.string())  # events of equal time have an order of their own
            yield _solved(placed, job.layout, found, given.number, given.stream, first, graphs)
            first += len(batch)
    yield Account(given.number, counters, times, named).row()


def _has_blank_nodes(solved: Found) -> bool:
    """Whether a solution has a blank node of an event."""
    terms = chain(*(own for _, _, found in solved.found for _, own in found), *(own for *_, own in solved.loose))
    return any(term is not None and (_OF_AN_EVENT.match(term) or _is_inside(term)) for term in terms)


def _is_inside(key: str) -> bool:
    """True if this is the key of a triple term, and may have a blank node of an event inside."""
    return is_triple_key(key) and _OF_AN_EVENT.search(key) is not None


def _of_quads(
    query: QueryText, layout: Layout, reader: QuadReader, shared: Any, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    solver = solver_of(query, layout, shared.value)
    counters, firsts = Counters(), [0] * len(reader.iris)
    for events in reader.events(batches, solver.wanted, counters):
        placed, stream = events.placed, events.stream
        found = found_in(placed, solver, query, layout)
        yield _solved(placed, layout, found, stream, stream, firsts[stream], events.graphs)
        firsts[stream] += len(placed.batch)
    yield Account(-1, counters, None, False).row()


def _solved(
    placed: Placed, layout: Layout, solved: Found, file: int, stream: int, first: int, graphs: pa.Array
) -> pa.RecordBatch:
    """The rows of a batch of events. `first`: the number of the first of them."""
    size = len(placed.batch)
    found: list[list[str | None] | None] = [None] * size
    every: list[tuple[int, Any]] = [(INSTANT, None)] if layout.blanks else []
    loose = ((number, None, [(gpm, terms)]) for gpm, number, terms in solved.loose)
    for number, key, mappings in chain(solved.found, loose):
        own = found[number] = found[number] or []
        for gpm, terms in chain(every, mappings):
            own.append(f"{gpm} {-1 if terms is None else len(terms)} {-1 if key is None else len(key)}")
            own += terms or ()
            own += key or ()
    return pa.record_batch(
        [
            pa.array(np.full(size, file, np.int32)),
            pa.array(np.arange(first, first + size)),
            pa.array(np.full(size, stream, np.int32)),
            pa.array(placed.batch.times),
            graphs,
            pa.array(found, SOLVED.field("found").type),
            pa.nulls(size, SOLVED.field("counts").type),
        ],
        schema=SOLVED,
    )


def looked_over(solved: DataFrame, tasks: int) -> tuple[list[Account], list[int]]:
    """What is told of what was read, and where `tasks` ranges of time begin. Runs the job."""
    told = F.when(F.col("counts").isNotNull(), F.struct("file", "counts"))
    row = solved.agg(F.collect_list(told).alias("told"), quantiles("time", tasks).alias("times")).first()
    return [Account.of(each["file"], each["counts"]) for each in row["told"]], row["times"] or []


# -- instants


def solution_rows(ordered: DataFrame, firsts: dict[int, int], options: StreamOptions) -> DataFrame:
    """The table of solutions (SOLUTIONS) of events in order, with `id` (task and row)."""
    work = step("number the instants", _rows, firsts, options.apart)
    return ordered.select("id", "time", "found").mapInArrow(work, spark_schema(SOLUTIONS))


def _rows(firsts: dict[int, int], apart: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    position, latest = -1, None
    for batch in batches:
        if not batch.num_rows:
            continue
        times = batch.column("time").to_numpy()
        if position < 0:
            position = firsts[int(batch.column("id")[0].as_py()) >> INDEX_BITS] - 1
        fresh = np.ones(len(times), bool) if apart else np.diff(times, prepend=times[0] - 1) != 0
        fresh[0] = apart or latest is None or times[0] != latest
        positions = position + np.cumsum(fresh)
        position, latest = int(positions[-1]), times[-1]
        own = [pa.array(positions), batch.column("time"), batch.column("found")]
        yield _unfolded(pa.record_batch(own, names=["position", "time", "found"]))


def unfolded_rows(solved: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """The rows of SOLVED as a table of solutions, with its columns `names` in place of `position` and `time`."""
    kept = solved.select(*names, "found")
    fields = [kept.schema[name] for name in names] + [spark_schema(SOLUTIONS)[name] for name in _FOUND]
    return kept.mapInArrow(step("unfold solutions", _unfold), StructType(fields))


def _unfold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return map(_unfolded, batches)


_FOUND: Final = ("gpm", "terms", "key")


def _unfolded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A row for each mapping in the column `found`, which is the last one, in place of one for each event."""
    found = batch.column("found")
    rows: list[int] = []
    mappings: list[tuple[int, list[str] | None, list[str] | None]] = []
    texts = found.flatten().to_pylist()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(found), 0))
    events = np.flatnonzero(lengths)
    at = 0
    for row, end in zip(events.tolist(), np.cumsum(lengths[events]).tolist(), strict=True):
        while at < end:
            gpm, terms, key = map(int, texts[at].split())
            middle = at + 1 + max(terms, 0)
            own = None if terms < 0 else texts[at + 1 : middle]
            at = middle + max(key, 0)
            rows.append(row)
            mappings.append((gpm, own, None if key < 0 else texts[middle:at]))
    kept = batch.select(batch.schema.names[:-1]).take(pa.array(rows, pa.int64()))
    more = batch_of(pa.schema([SOLUTIONS.field(name) for name in _FOUND]), mappings)
    return pa.record_batch([*kept.columns, *more.columns], names=[*kept.schema.names, *_FOUND])
