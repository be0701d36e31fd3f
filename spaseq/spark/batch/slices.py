"""Streams in order of time, as logs are: the whole local engine in each task, on a slice of time, without a shuffle.

A task looks in each file for the bytes of its slice (`spaseq.spark.ingest.seeking`), reads them and what the window
reaches back to (and on to, with a NOT at the end), and reports the matches that end in its slice, as `Query.run` finds
them. The knowledge is there as the answers to what the query asks of it. So no event leaves its task.

That a file is in order is not known before; the tasks see it. A task that meets an event out of order, or anything
that is wrong, says so, and all of them are forgotten: the other plan (`spaseq.spark.solving.table`) gives the matches,
or the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spaseq.core.engine import Window
from spaseq.core.errors import EventError
from spaseq.language.results.match import Match
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.opened import stream_sources
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.semantics.lasting import Lasting
from spaseq.language.solving.chunks import merge_batches, solve_each
from spaseq.rdf import Counters, GraphBatch, StreamOptions, term_key
from spaseq.spark.batch.form import Form
from spaseq.spark.ingest.files import for_tasks
from spaseq.spark.ingest.frames import Streams, is_frames
from spaseq.spark.ingest.parts import part_chunks
from spaseq.spark.ingest.seeking import TimedFile, first_times, timed_files
from spaseq.spark.session.connecting import share
from spaseq.spark.session.keeping import keep
from spaseq.spark.session.steps import step, streams_and_patterns
from spaseq.spark.session.storage import Access, access_to
from spaseq.spark.session.tables import TOLD, spark_schema
from spaseq.spark.solving.solutions import Answers, Graphs, answered_solver
from spaseq.spark.solving.table import Job

SMALL: Final = 16 << 20
"""Bytes of all files below which slices are not worth it: a second of reading."""
_PROBES: Final = 16
"""Events that are looked at for each slice, to make slices of about equal bytes."""
_OF_AN_EVENT: Final = re.compile(r"e[0-9a-f]{8}n")
"""How the label of a blank node of an event begins. It has the number of the event in its file, unknown to a slice."""


@dataclass(frozen=True, slots=True)
class Slices:
    """`lows`: the time at which each slice but the first begins; one ends where the next begins. `options`: settled."""

    files: tuple[TimedFile, ...]
    options: StreamOptions
    lows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.lows) + 1

    def bounds(self, number: int) -> tuple[int | None, int | None]:
        """The first time of a slice, and that of the next one; None for all there is."""
        return (None, *self.lows)[number], (*self.lows, None)[number]


def hindrance(query: CompiledQuery) -> str:
    """What keeps a query from being run in slices of time; empty for nothing."""
    window, clauses = query.window(), query.checked.clauses
    if clauses.ask:
        return "an ASK has one answer for the whole run"
    if not window.is_bounded:
        return "without WITHIN a match may begin anywhere"
    if window.by_position:
        return "WITHIN … EVENTS counts the instants of the whole stream"
    if query.checked.tree.once:
        return "FIRST reports one match of the whole stream, or of each key"
    if query.checked.lasting != Lasting():
        return "what must not come for a time may lie outside of the window"
    if window.slides and query.checked.after is not None:
        return "what AFTER MATCH discards reaches back beyond any window"
    if window.slides and clauses.by_window:
        return "a clause ranges over solutions of windows that overlap"
    return ""


def planned_slices(job: Job, streams: Streams, quarantine: str, *, forced: bool) -> Slices | str:
    """How the streams are cut into slices, for as many tasks as the job has, or why they are not. `forced`: also where
    it is not worth it. Looks at some events."""
    if is_frames(streams):
        return "the streams are DataFrames"
    if quarantine:
        return "lines that cannot be read are put aside, by file"
    if why := hindrance(job.compiled):
        return why
    if any(side.table is None for sides in job.sides.values() for side in sides):
        return "an answer of the knowledge is left on Spark"
    sources = for_tasks(job.spark, stream_sources(job.compiled.checked, streams))
    settled = job.compiled.settled(job.options, sources).settled
    files, why = timed_files(sources, settled)
    if why:
        return why
    size = sum(file.size for file in files)
    if size < SMALL and not forced:
        return f"the files have {size:,} bytes, too few to be worth it"
    try:
        times = first_times(files, job.tasks, job.tasks * _PROBES)
    except EventError as error:
        return str(error)
    bounds = slice_bounds(times, job.compiled.window(settled.unit))
    if 2 * len(bounds) <= job.tasks and not forced:
        return f"the files have {max(1, len(bounds))} windows for {job.tasks} tasks"
    return Slices(tuple(files), settled, tuple(bounds[1:]))


def slice_bounds(times: Sequence[int], window: Window) -> list[int]:
    """The first times of slices, from those of ranges of equal work: no window that tumbles is cut, and no slice is
    shorter than what a window that slides has it read besides."""
    bounds: list[int] = []
    for time in times:
        low = window.open_from(time) if window.tumbles else time
        if not bounds or low - bounds[-1] >= max(window.size, 1):
            bounds.append(low)
    return bounds


def sliced_matches(job: Job, slices: Slices, form: Form, counters: Counters) -> DataFrame | str:
    """The matches, with their positions in the whole, or why it cannot be done so. Runs it all; the matches are kept.

    `counters` is given what was read.
    """
    answers = {name: [(side.names, _rows(side.table)) for side in sides] for name, sides in job.sides.items()}
    shared = share(job.spark, (job.graphs, answers))
    access = access_to(job.spark, [file.path for file in slices.files])
    given = _Work(form, slices, job.compiled.window(slices.options.unit), access)
    work = step(f"run on slices of time ({streams_and_patterns(job.compiled)})", _of_slices, given, shared)
    numbers = job.spark.range(0, len(slices), numPartitions=len(slices))
    rows = numbers.mapInArrow(work, spark_schema(pa.schema([*form.schema, *TOLD])))
    plain = {name: f"c{number}" for number, name in enumerate(form.schema.names)}  # ?a and ?A are one name to Spark
    found = keep(rows.toDF(*plain.values(), *TOLD.names))
    last = found.where(F.col("?told").isNotNull() | F.col("?why").isNotNull()).select(*TOLD.names).collect()
    if whys := [row["?why"] for row in last if row["?why"] is not None]:
        return str(whys[0])
    own = {row["?slice"]: row["?told"] for row in last}
    for _, *read in own.values():
        counters.add(Counters(*read))
    firsts = np.cumsum([0, *(own[number][0] for number in range(len(slices) - 1))]).tolist()
    first = F.get(F.array(*map(F.lit, firsts)), F.col("?slice")).cast("long")
    placed = {name: F.col(plain[name]) + first for name in ("start", "end")}
    placed["positions"] = F.transform(plain["positions"], lambda position: position + first)
    columns = [placed.get(name, F.col(column)).alias(name) for name, column in plain.items()]
    return found.where(F.col("?told").isNull()).select(*columns)


def _rows(table: pa.Table) -> list[tuple[str | None, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# -- in a task


@dataclass(frozen=True, slots=True)
class _Work:
    form: Form
    slices: Slices
    window: Window
    access: Access | None = None


class _Unsound(Exception):
    """A slice is not what it was planned to be."""


def _of_slices(work: _Work, shared: Any, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if work.access is not None:
        work.access.use()
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _of_slice(work, number, *shared.value)


def _of_slice(work: _Work, number: int, graphs: Graphs, answers: Answers) -> Iterator[pa.RecordBatch]:
    """The rows of a slice's matches, and its last row."""
    own = _Slice(work, number)
    try:
        for rows in work.form.rows(own.matches(graphs, answers)):
            yield _with(rows, rows.num_rows, number, None, None)
    except (EventError, _Unsound) as error:
        yield _with(None, 1, number, None, str(error), work.form.schema)
        return
    yield _with(None, 1, number, [own.instants, *astuple(own.counters)], None, work.form.schema)


def _with(
    rows: pa.RecordBatch | None,
    count: int,
    number: int,
    told: list[int] | None,
    why: str | None,
    schema: pa.Schema | None = None,
) -> pa.RecordBatch:
    """Rows with TOLD behind them; without matches where they are None."""
    ours = [pa.array([value] * count, field.type) for value, field in zip((number, told, why), TOLD, strict=True)]
    if rows is not None:
        return pa.record_batch([*rows.columns, *ours], schema=pa.schema([*rows.schema, *TOLD]))
    assert schema is not None
    nothing = [pa.nulls(count, field.type) for field in schema]
    return pa.record_batch([*nothing, *ours], schema=pa.schema([*schema, *TOLD]))


class _Slice:
    """One slice: `instants` of its own, and `counters` of what it read as its own."""

    def __init__(self, work: _Work, number: int) -> None:
        self._work = work
        self._low, self._high = work.slices.bounds(number)
        self.instants = 0
        self.counters = Counters()
        self._before = 0

    def matches(self, graphs: Graphs, answers: Answers) -> Iterator[Match]:
        """The matches that end in the slice, with positions from its first instant on."""
        form, options = self._work.form, self._work.slices.options
        compiled = form.query.compiled()
        solver = answered_solver(form.query, graphs, answers)
        recogniser = Recogniser(compiled.checked, compiled.program(options.unit), solver, keep_events=False)
        behind = any(variant.after for variant in compiled.checked.variants)
        parts: list[Iterator[GraphBatch]] = []
        for _, files in groupby(self._work.slices.files, key=lambda file: file.chain):
            parts += self._of_chain(list(files), solver.wanted, behind)
        chunks = merge_batches([solve_each(part, solver.solve_ahead) for part in parts], apart=options.apart)
        pushed = (match for chunk in chunks for match in recogniser.push_chunk(self._counted(chunk)))
        for match in chain(pushed, matches_at_the_end(recogniser)):
            if self._is_own(match.times[-1]):
                yield self._placed(match)

    def _of_chain(
        self, files: list[TimedFile], wanted: frozenset[str] | None, behind: bool
    ) -> Iterable[Iterator[GraphBatch]]:
        """What is to be merged: the parts of a file, or those of several files one after another."""
        if len(files) == 1:
            return self._parts(files[0], wanted, behind)
        return [chain.from_iterable(part for file in files for part in self._parts(file, wanted, behind))]

    def _parts(self, file: TimedFile, wanted: frozenset[str] | None, behind: bool) -> Iterator[Iterator[GraphBatch]]:
        """What is read of a file: in front of the slice, of it, and behind it."""
        window, low, high = self._work.window, self._low, self._high
        first = 0 if low is None else file.place_of(low)
        last = file.size if high is None else file.place_of(high)
        begin = first if low is None else file.place_of(window.open_from(low), early=True)
        end = last
        if high is not None and behind and window.slides:
            closes = window.closes_at(high)
            assert closes is not None
            end = file.place_of(closes + 1)
        options = replace(file.options, lateness=0, late="error")  # what is in order is never late

        def read(start: int, stop: int, counters: Counters) -> Iterator[GraphBatch]:
            from spaseq.rdf.columns.reader import read_batches  # loads the kernels

            chunks = partial(_chunks, start, stop)
            for batch in read_batches(file.source, options, counters, wanted, chunks=chunks):
                batch.terms.scope += f"{start}n"  # events are counted in each part: blank nodes of two are different
                yield batch

        if begin < first:
            yield read(begin, first, Counters())
        if first < last:
            yield self._checked(read(first, last, self.counters))
        if last < end:
            yield read(last, end, Counters())

    def _checked(self, batches: Iterator[GraphBatch]) -> Iterator[GraphBatch]:
        for batch in batches:
            if len(batch) and not (self._is_own(int(batch.times[0])) and self._is_own(int(batch.times[-1]))):
                raise _Unsound(f"{batch.source} is not in order of time")
            yield batch

    def _is_own(self, time: int) -> bool:
        return (self._low is None or self._low <= time) and (self._high is None or time < self._high)

    def _counted(self, chunk: Any) -> Any:
        low = 0 if self._low is None else int(np.searchsorted(chunk.times, self._low))
        high = len(chunk) if self._high is None else int(np.searchsorted(chunk.times, self._high))
        self._before += low
        self.instants += high - low
        return chunk

    def _placed(self, match: Match) -> Match:
        if any(_OF_AN_EVENT.match(t) and term_key(t).startswith("_:") for t in match.bindings.values()):
            raise _Unsound("matches have blank nodes of events, which are named by the number of their event")
        if not self._before:
            return match
        start, end, *positions = (p - self._before for p in (match.start, match.end, *match.positions))
        return Match(start, end, tuple(positions), match.bindings, match.times, match.events)


def _chunks(start: int, stop: int, path: str) -> Iterator[bytes]:
    return part_chunks(path, start, stop)


def matches_at_the_end(recogniser: Recogniser) -> Iterator[Match]:
    """What the end completes, asked when all else is done."""
    yield from recogniser.close()
