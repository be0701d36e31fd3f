"""A SPAseq query as a Spark batch job: the same matches as `Query.run`.

    files ─► statements ─► events ─► instants and their solutions ─► with knowledge ─► engine ─► matches
    parts    source        events    solutions                       solutions         job

`plan` decides what is joined by Spark, and where the table of solutions may be cut for the engine.

Up to the numbering of the instants the job runs when `run` is called: the number of an instant depends on all before
it, and so wrong input is an error of `run`. The rest runs when somebody asks for the DataFrame's rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from spaseq.errors import OptionError
from spaseq.gpm import Knowledge
from spaseq.language.query import Query, Streams, compile_query, knowledge_of, stream_options, stream_sources
from spaseq.language.run import Match, match_table
from spaseq.rdf import Counters, StreamOptions, file_options, settle, term_from_key, term_key
from spaseq.spark.bar import progress_bar
from spaseq.spark.events import FilePlan, assemble_events, first_positions, ordered_events, rows_of, summarise
from spaseq.spark.failures import carried, clear_errors
from spaseq.spark.parts import cut, input_files, number_lines
from spaseq.spark.plan import Layout, lay_out
from spaseq.spark.solutions import QueryText, instants_of, join_knowledge, solve_events
from spaseq.spark.source import read_statements

__all__ = ["collect", "explain", "matches", "run"]

_LOG: Final = logging.getLogger("spaseq.spark")
_INSTANTS: Final = 256  # rows of the table before the engine is called
_MATCHES: Final = 10_000  # matches in a record batch

Shape = Callable[[Sequence[Match], Sequence[str]], pa.RecordBatch]
"""Matches and the names of their variables, as a record batch."""


def run(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    options: StreamOptions | None = None,
    partitions: int | None = None,
    progress: bool | None = False,
    counters: Counters | None = None,
    **words: str | None,
) -> DataFrame:
    """The matches over files, as a DataFrame with the columns and values of `Query.run(…).to_arrow()`, in no order.

    Args:
        query: compiled, or its text.
        streams, kb, options, words: as for `Query.run`. The workers must be able to open the streams' files.
        partitions: how many tasks a stage has; by default as many as the session runs at a time.
        progress: show a bar on stderr while the streams are read: True, False, or None for only on a terminal.
        counters: is given what was read, late or malformed.

    Raises `OptionError` and `EventError` as the local engine does. What goes wrong in the last step, which runs when
    rows are asked for, comes out as clearly only through `collect`.
    """
    job = _prepare(query, spark, kb, stream_options(options, words), partitions)
    table = _table(job, streams, progress, counters)
    return _recognise(job, table, match_table, _table_schema(job.compiled.variables))


def collect(matches: DataFrame, *, progress: bool | None = False) -> pa.Table:
    """The rows of a DataFrame that `run` gave, in order of their ends. An error of a worker comes out as itself."""
    with progress_bar(matches.sparkSession, "finding matches", enabled=progress), clear_errors():
        table = matches.toArrow()
    return table.sort_by([("end", "ascending"), ("start", "ascending")])


def matches(
    query: Query | str,
    spark: SparkSession,
    streams: Streams,
    kb: Knowledge | Mapping[str, Any] | None = None,
    *,
    options: StreamOptions | None = None,
    partitions: int | None = None,
    progress: bool | None = False,
    counters: Counters | None = None,
    **words: str | None,
) -> Iterator[Match]:
    """The matches over files as the local engine's objects, without their events, in order of their ends. See `run`."""
    job = _prepare(query, spark, kb, stream_options(options, words), partitions)
    table = _table(job, streams, progress, counters)
    frame = _recognise(job, table, _as_terms, _TERMS)
    found = collect(frame, progress=progress)
    variables = job.compiled.variables
    for batch in found.to_batches():
        for start, end, positions, times, terms in rows_of([batch]):
            bound = sorted((name, key) for name, key in zip(variables, terms, strict=True) if key is not None)
            bindings = {name: term_from_key(key) for name, key in bound}
            yield Match(start, end, tuple(positions), bindings, tuple(times), ())


def explain(query: Query | str) -> str:
    """How `run` lays the query out."""
    return "\n".join(lay_out(compile_query(query) if isinstance(query, str) else query).explain())


# -- the job


@dataclass(frozen=True, slots=True)
class _Job:
    """A query with everything it is run with."""

    spark: SparkSession
    query: QueryText
    layout: Layout
    knowledge: Knowledge
    options: StreamOptions
    tasks: int

    @property
    def compiled(self) -> Query:
        return self.query.compiled()


def _prepare(query: Query | str, spark: SparkSession, kb: Any, options: StreamOptions, partitions: int | None) -> _Job:
    """Checks what was given, before anything runs."""
    if partitions is not None and partitions < 1:
        raise OptionError(f"partitions={partitions}: a stage has at least one task")
    query = compile_query(query) if isinstance(query, str) else query
    query.check_parts()
    knowledge = knowledge_of(kb)
    knowledge.check(query.checked.patterns.values())
    layout = lay_out(query)
    for line in layout.explain():
        _LOG.info(line)
    text = QueryText(query.text, query.source, query.settings)
    return _Job(spark, text, layout, knowledge, options, partitions or spark.sparkContext.defaultParallelism)


def _table(job: _Job, streams: Streams, progress: bool | None, counters: Counters | None) -> DataFrame:
    """The table of solutions, knowledge joined. Reads the streams."""
    sources = stream_sources(job.compiled.checked, streams)
    settled = settle(job.options, sources)
    plans = [
        FilePlan(file, sources[file.stream].iri, file_options(file.path, sources[file.stream], settled))
        for file in input_files(sources)
    ]
    with progress_bar(job.spark, "reading the streams", enabled=progress), clear_errors():
        ordered, firsts = _events(job, plans, settled, counters)
    table = solve_events(ordered, job.query, job.layout, job.knowledge, plans, firsts, settled)
    if job.layout.joined:  # it is read once for each of them
        table = table.localCheckpoint(eager=False)
    return join_knowledge(table, job.query, job.layout, job.knowledge)


def _events(
    job: _Job, plans: Sequence[FilePlan], settled: StreamOptions, counters: Counters | None
) -> tuple[DataFrame, dict[int, int]]:
    """The events in order, and the position of each range's first instant.

    They are kept by a checkpoint and not by `persist`: were they planned again, the ranges could fall elsewhere.
    """
    form = job.options.format
    parts = number_lines(job.spark, cut([plan.file for plan in plans], form, job.tasks))
    assembled = assemble_events(read_statements(job.spark, parts, form, job.options.malformed), plans).persist()
    try:
        summary = summarise(assembled)
        ordered = ordered_events(assembled, summary, plans, settled, job.tasks).localCheckpoint(eager=False)
        firsts = first_positions(ordered, settled)
    finally:
        assembled.unpersist()
    if counters is not None:
        counters.add(summary.counters)
    return ordered, firsts


def _recognise(job: _Job, table: DataFrame, shape: Shape, schema: StructType) -> DataFrame:
    """The matches in `table`, in parts that the layout allows."""
    window = job.compiled.window(job.options.time_unit)
    cuts: list[Column] = []
    if job.layout.by_window:
        since = f"(time - ({window.origin}L))"
        cuts.append(F.expr(f"({since} - pmod({since}, {window.size}L)) div {window.size}L"))
    if job.layout.by_key:
        cuts.append(F.hash("key").cast("long"))
    tasks = job.tasks if cuts else 1
    part = F.pmod(reduce(Column.__add__, cuts, F.lit(0)), F.lit(tasks)).cast("int")
    parted = table.repartitionById(tasks, part).sortWithinPartitions("position")
    found = parted.mapInArrow(partial(_matches, job.query, job.layout, job.options.time_unit, shape), schema)
    kept = set(job.compiled.variables)
    merges = any(name not in kept for name in job.compiled.checked.partition)
    return found.distinct() if merges else found  # equal matches of several keys are one


@carried
def _matches(
    query: QueryText, layout: Layout, time_unit: str, shape: Shape, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The engine's matches in one part of the table, whose rows come in order of position."""
    compiled = query.compiled()
    recogniser = compiled.recogniser(time_unit)
    instants = instants_of(batches, layout, compiled.checked.partition)
    found: list[Match] = []
    while chunk := list(islice(instants, _INSTANTS)):
        for match in recogniser.push_rows([row for rows in chunk for row in rows]):
            found.append(match)
            if len(found) == _MATCHES:
                yield shape(found, compiled.variables)
                found = []
    found += recogniser.close()
    if found:
        yield shape(found, compiled.variables)


def _as_terms(matches: Sequence[Match], variables: Sequence[str]) -> pa.RecordBatch:
    """Matches with the times of their positions and their terms as keys, from which objects can be made again."""
    columns = [
        pa.array([m.start for m in matches], pa.int64()),
        pa.array([m.end for m in matches], pa.int64()),
        pa.array([list(m.positions) for m in matches], pa.list_(pa.int64())),
        pa.array([list(m.times) for m in matches], pa.list_(pa.int64())),
        pa.array([[_key(m.bindings.get(v)) for v in variables] for m in matches], pa.list_(pa.string())),
    ]
    return pa.record_batch(columns, names=_TERMS.fieldNames())


def _key(term: Any) -> str | None:
    return None if term is None else term_key(term)


_TERMS: Final = StructType(
    [
        StructField("start", LongType()),
        StructField("end", LongType()),
        StructField("positions", ArrayType(LongType())),
        StructField("times", ArrayType(LongType())),
        StructField("terms", ArrayType(StringType())),
    ]
)


def _table_schema(variables: Sequence[str]) -> StructType:
    """Spark's name for the columns of `match_table`."""
    types = {pa.int64(): LongType(), pa.string(): StringType(), pa.list_(pa.int64()): ArrayType(LongType())}
    return StructType([StructField(field.name, types[field.type]) for field in match_table([], variables).schema])
