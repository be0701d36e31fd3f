"""Statements become graph events, in order, each with the number of its instant.

1. `assemble_events`: the statements of each file, brought together in one task and put in order, go through
   `spaseq.rdf.assemble`, the function the local engine uses. Files are assembled at the same time.
2. `Summary` tells what came of each file: the counters, how many events, whether their times ever go back.
3. `ordered_events`: the policy for late events, then one range of time per task, in order. An event's instant is then
   counted inside its range, and `first_positions` says how many instants lie in the ranges before. Equal times are
   never in two ranges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache, partial
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spaseq.errors import InternalError
from spaseq.rdf import (
    ARRIVAL,
    Counters,
    GraphEvent,
    Instant,
    Statement,
    StreamOptions,
    assemble,
    in_order,
    term_from_key,
    term_key,
)
from spaseq.spark.failures import carried
from spaseq.spark.parts import InputFile

__all__ = [
    "SCHEMA",
    "FilePlan",
    "Summary",
    "assemble_events",
    "event_batch",
    "event_of",
    "first_positions",
    "no_ends",
    "ordered_events",
    "own_instants",
    "read_instants",
    "rows_of",
    "summarise",
]

SCHEMA: Final = (
    "file int, number long, stream int, time long, line long, graph string, terms array<string>, counts array<long>"
)
_ARROW: Final = pa.schema(
    [
        ("file", pa.int32()),
        ("number", pa.int64()),
        ("stream", pa.int32()),
        ("time", pa.int64()),
        ("line", pa.int64()),
        ("graph", pa.string()),
        ("terms", pa.list_(pa.string())),
        ("counts", pa.list_(pa.int64())),
    ]
)
_ROWS: Final = 5_000
_MOST_TASKS: Final = 1_000
INDEX_BITS: Final = 33  # monotonically_increasing_id: the partition's number above, the row's below


@dataclass(frozen=True, slots=True)
class FilePlan:
    """How one file is assembled: its stream's IRI, and options with `event_by` and `time` settled."""

    file: InputFile
    iri: str
    options: StreamOptions


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of the input. `events`: how many, by file number; `backwards`: in some stream the times go back."""

    counters: Counters
    events: dict[int, int]
    backwards: bool


# -- 1. assembling


def assemble_events(statements: DataFrame, plans: Sequence[FilePlan]) -> DataFrame:
    """The events of each file (SCHEMA), and for each file a row that has only `counts` (`Counters`, then `_Ends`).

    `number` counts the events of a file from 0; `time` from arrival counts within the file; `terms` are subject,
    predicate, object, subject, … of the triples.
    """
    tasks = max(1, min(len(plans), _MOST_TASKS))
    by_file = statements.repartitionById(tasks, "file").sortWithinPartitions("file", "place")
    return by_file.mapInArrow(partial(_assemble, {plan.file.number: plan for plan in plans}), SCHEMA)


@carried
def _assemble(plans: dict[int, FilePlan], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Events of a task's files, whose statements come in order."""
    rows: list[tuple[Any, ...]] = []
    for number, statements in groupby(rows_of(batches), key=itemgetter(0)):
        for row in _assembled(plans[number], statements):
            rows.append(row)
            if len(rows) == _ROWS:
                yield event_batch(rows)
                rows.clear()
    if rows:
        yield event_batch(rows)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, one after another."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _assembled(plan: FilePlan, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The rows of one file's events, and the row of its counters."""
    counters = Counters()
    file = plan.file
    ends = _Ends(file.number, file.stream)
    events = assemble(_statements(rows, counters), plan.options, stream=plan.iri, source=file.name, counters=counters)
    for number, event in enumerate(events):
        ends.see(event.time)
        terms = [term_key(term) for triple in event.triples for term in triple]
        graph = None if event.graph is None else term_key(event.graph)
        yield file.number, number, file.stream, event.time, event.record, graph, terms, None
    yield file.number, None, file.stream, None, None, None, None, [*astuple(counters), *astuple(ends)]


@dataclass(slots=True)
class _Ends:
    """How many events a file has, the lowest and the highest of their times, and whether (1) they ever go back."""

    file: int
    stream: int
    events: int = 0
    low: int = 0
    high: int = 0
    back: int = 0

    def see(self, time: int) -> None:
        """The next event's time."""
        if self.events:
            self.back |= time < self.high
        self.low = min(self.low, time) if self.events else time
        self.high = max(self.high, time) if self.events else time
        self.events += 1


def _statements(rows: Iterable[tuple[Any, ...]], counters: Counters) -> Iterator[Statement]:
    """Statements from rows of `spaseq.spark.source`; rows of dropped lines go to `counters`."""
    for _, _, line, s, p, o, g in rows:
        if s is None:
            counters.malformed += line
            continue
        counters.triples += 1
        yield _term(s), _term(p), _term(o), None if g is None else _term(g), line


def no_ends() -> list[int]:
    """What stands behind the counters of a task that is not about a file."""
    return list(astuple(_Ends(-1, -1)))


def event_batch(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    """Rows of SCHEMA."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


# -- 2. what came of it


def summarise(assembled: DataFrame) -> Summary:
    """Read what `assemble_events` noted on each file. Runs the job as far as there."""
    noted = [row["counts"] for row in assembled.where("counts is not null").select("counts").collect()]
    counters = Counters()
    for note in noted:
        counters.add(Counters(*note[: len(fields(Counters))]))
    ends = [_Ends(*note[len(fields(Counters)) :]) for note in noted]
    full = sorted((end for end in ends if end.events), key=attrgetter("file"))
    backwards = any(end.back for end in full) or any(
        left.stream == right.stream and left.high > right.low for left, right in pairwise(full)
    )
    return Summary(counters, {end.file: end.events for end in full}, backwards)


# -- 3. order and instants


def ordered_events(
    assembled: DataFrame, summary: Summary, plans: Sequence[FilePlan], options: StreamOptions, tasks: int
) -> DataFrame:
    """The events to be matched, a range of times per task, in order in it, and `id` (task and row) as last column.

    Late events are dropped and counted in `summary.counters`, or are an EventError, as `options` say. Must be
    persisted: the ids and `first_positions` belong to one computation of it.
    """
    events = assembled.where("counts is null").drop("counts")
    if options.time == ARRIVAL:
        events = _arrived(events, summary, plans, options.interval)
    elif summary.backwards:
        events = _without_late(events, summary, plans, options)
    whole = ["time", "stream", "file", "number", "graph"]  # events of DataFrames have no number
    ranges = events.repartitionByRange(max(1, tasks), *(whole if own_instants(options) else ["time"]))
    ordered = ranges.sortWithinPartitions(*whole)
    return ordered.withColumn("id", F.monotonically_increasing_id())


def in_ranges(events: DataFrame, options: StreamOptions, tasks: int) -> DataFrame:
    """Events in ranges of time, one a task, in order in it, and `id`, as of `ordered_events`."""
    whole = ["time", "stream", "file", "number"]
    ranges = events.repartitionByRange(max(1, tasks), *(whole if own_instants(options) else ["time"]))
    return ranges.sortWithinPartitions(*whole).withColumn("id", F.monotonically_increasing_id())


def own_instants(options: StreamOptions) -> bool:
    """Whether each event is an instant of its own."""
    return options.time == ARRIVAL or options.ties == "arrival"


def _arrived(events: DataFrame, summary: Summary, plans: Sequence[FilePlan], interval: int) -> DataFrame:
    """Times from arrival, counted on from the stream's earlier files."""
    before: dict[int, int] = {}
    offsets: list[tuple[int, int]] = []
    for plan in plans:
        seen = before.get(plan.file.stream, 0)
        offsets.append((plan.file.number, seen * interval))
        before[plan.file.stream] = seen + summary.events.get(plan.file.number, 0)
    table = events.sparkSession.createDataFrame(offsets, "file int, offset long")
    joined = events.join(F.broadcast(table), "file")
    return joined.withColumn("time", F.col("time") + F.col("offset")).select(*events.columns)


def _without_late(events: DataFrame, summary: Summary, plans: Sequence[FilePlan], options: StreamOptions) -> DataFrame:
    """`events` less those that come too late after a later one of their stream (as `spaseq.rdf.in_order` has it), or of
    their file where the files of a stream are merged by time."""
    merged = _merged_streams(plans, options)
    source = F.when(F.col("stream").isin(merged), F.col("file")).otherwise(F.lit(-1)).alias("source")
    slim = events.select("stream", "file", "number", "time", "line", source)
    before = Window.partitionBy("stream", "source").orderBy("file", "number").rowsBetween(Window.unboundedPreceding, -1)
    latest = F.max(F.struct("time", -F.col("file"), -F.col("number"), "line")).over(before)
    seen = slim.withColumn("latest", latest)
    late = seen.where(F.col("time") < F.col("latest.time") - options.lateness)
    if options.late != "drop":
        first = late.orderBy("stream", "file", "number").first()
        if first is not None:
            _raise_late(first, plans, options)
        return events
    late = late.select("file", "number").localCheckpoint()
    summary.counters.late += late.count()
    return events.join(F.broadcast(late), ["file", "number"], "left_anti").select(*events.columns)


def _merged_streams(plans: Sequence[FilePlan], options: StreamOptions) -> list[int]:
    """The streams whose files are merged by time: those of several files, up to `options.merge`."""
    files = Counter(plan.file.stream for plan in plans)
    return [stream for stream, count in files.items() if 1 < count <= options.merge]


def _raise_late(row: Any, plans: Sequence[FilePlan], options: StreamOptions) -> None:
    """The EventError of the local engine for a late event."""
    by_number = {plan.file.number: plan for plan in plans}

    def event(file: int, time: int, line: int) -> GraphEvent:
        plan = by_number[file]
        return GraphEvent(plan.iri, time, (), None, plan.file.name, line)

    latest = row["latest"]
    pair = [event(-latest[1], latest[0], latest[3]), event(row["file"], row["time"], row["line"])]
    list(in_order(pair, options, Counters()))
    raise InternalError("an event was late for Spark and is not for the local engine")


def first_positions(ordered: DataFrame, options: StreamOptions) -> tuple[dict[int, int], list[int]]:
    """The position of the first instant of each range of `ordered`, by the range's number, and the ranges' first times
    in order."""
    task = F.shiftright("id", INDEX_BITS).alias("task")
    instants = F.count("*") if own_instants(options) else F.countDistinct("time")
    counted = ordered.groupBy(task).agg(instants.alias("instants"), F.min("time").alias("first")).collect()
    positions: dict[int, int] = {}
    times: list[int] = []
    total = 0
    for row in sorted(counted, key=itemgetter("task")):
        positions[row["task"]] = total
        times.append(row["first"])
        total += row["instants"]
    return positions, times


def read_instants(
    batches: Iterable[pa.RecordBatch], plans: dict[int, FilePlan], firsts: dict[int, int], apart: bool
) -> Iterator[Instant]:
    """The instants of one range of `ordered_events`. `firsts`: see `first_positions`; `apart`: see `own_instants`."""
    position: int | None = None
    for _, rows in groupby(rows_of(batches), key=itemgetter(_ID if apart else _TIME)):
        events = [event_of(row, plans) for row in rows]
        if position is None:
            position = firsts[events[0][0] >> INDEX_BITS]
        yield Instant(position, events[0][1].time, tuple(event for _, event in events))
        position += 1


_TIME: Final = 3  # places of the columns of `ordered_events`
_ID: Final = 7


def event_of(row: tuple[Any, ...], plans: dict[int, FilePlan]) -> tuple[int, GraphEvent]:
    """The id and the event of a row of `ordered_events`."""
    file, _, _, time, line, graph, keys, identity = row
    terms = list(map(_term, keys))
    triples = tuple(zip(terms[::3], terms[1::3], terms[2::3], strict=True))
    plan = plans[file]
    name = None if graph is None else _term(graph)
    return identity, GraphEvent(plan.iri, time, triples, name, plan.file.name, line)


_term = lru_cache(1 << 17)(term_from_key)
