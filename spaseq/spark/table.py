"""From streams to the table of solutions: what a batch job does before the engine runs.

Files are read as columns by the local engine's readers (`solved`). DataFrames, and files with a quarantine, go triple
by triple: statements, assembled by file, ordered, evaluated instant by instant (`source`, `frames`, `events`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from spaseq.errors import OptionError
from spaseq.language.query import Query, stream_sources
from spaseq.rdf import Counters, StreamOptions, file_options, settle
from spaseq.spark.bar import progress_bar
from spaseq.spark.events import (
    FilePlan,
    assemble_events,
    first_positions,
    in_ranges,
    ordered_events,
    summarise,
)
from spaseq.spark.failures import clear_errors
from spaseq.spark.frames import Streams, assembled_frames, frame_options, is_frames, streams_of_frames
from spaseq.spark.knowledge import Known, large_gpms
from spaseq.spark.parts import cut, input_files, number_lines
from spaseq.spark.plan import Layout
from spaseq.spark.quarantine import check_folder
from spaseq.spark.query_text import QueryText
from spaseq.spark.solutions import graph_keys, join_knowledge, solve_events
from spaseq.spark.solved import solution_rows, solved_events, total_counters
from spaseq.spark.source import read_statements

__all__ = ["Job", "table_of"]


@dataclass(frozen=True, slots=True)
class Job:
    """A query with everything it is run with."""

    spark: SparkSession
    query: QueryText
    layout: Layout
    known: Known
    options: StreamOptions
    tasks: int

    @property
    def compiled(self) -> Query:
        return self.query.compiled()


def table_of(
    job: Job, streams: Streams, progress: bool | None, counters: Counters | None, quarantine: str
) -> tuple[DataFrame, list[int]]:
    """The table of solutions, knowledge joined, and where in time ranges of equal work begin. Reads the streams."""
    frames = is_frames(streams)
    if not frames and not quarantine:
        return _solved_table(job, streams, progress, counters)
    if frames and quarantine:
        raise OptionError("quarantine with DataFrames", "malformed=drop leaves such rows out and counts them")
    with progress_bar(job.spark, "reading the streams", enabled=progress), clear_errors():
        read = _read_frames if frames else partial(_read_files, quarantine=quarantine)
        assembled, plans, settled = read(job, streams)
        assembled.persist()
        ordered, (firsts, times) = _events(job, assembled, plans, settled, counters)
    table = solve_events(ordered, job.query, job.layout, job.known.knowledge, plans, firsts, settled)
    if job.layout.joined:  # it is read once for each of them
        table = table.localCheckpoint(eager=False)
    return join_knowledge(table, job.query, job.layout, job.known), times


def _solved_table(
    job: Job, streams: Any, progress: bool | None, counters: Counters | None
) -> tuple[DataFrame, list[int]]:
    """The same of files, read as columns. Small knowledge is sent to the tasks, only large is joined."""
    sources = stream_sources(job.compiled.checked, streams)
    settled = settle(job.options, sources)
    patterns = job.compiled.checked.patterns
    layout = replace(job.layout, joined=large_gpms(patterns.values(), job.known))
    graphs = graph_keys(job.known.knowledge, job.known.knowledge.graphs)
    with progress_bar(job.spark, "reading the streams", enabled=progress), clear_errors():
        solved = solved_events(job.spark, sources, settled, job.query, layout, graphs).persist()
        try:
            total = total_counters(solved)
            events = solved.where("counts is null").drop("counts")
            ordered = in_ranges(events, settled, job.tasks).localCheckpoint(eager=False)
            firsts, times = first_positions(ordered, settled)
        finally:
            solved.unpersist()
    if counters is not None:
        counters.add(total)
    table = solution_rows(ordered, layout, firsts, settled)
    if layout.joined:  # it is read once for each of them
        table = table.localCheckpoint(eager=False)
    return join_knowledge(table, job.query, layout, job.known), times


_Read: TypeAlias = tuple[DataFrame, list[FilePlan], StreamOptions]


def _read_files(job: Job, streams: Any, quarantine: str) -> _Read:
    """The events of files, and what came of each."""
    sources = stream_sources(job.compiled.checked, streams)
    settled, form = settle(job.options, sources), job.options.format
    plans = [
        FilePlan(file, sources[file.stream].iri, file_options(file.path, sources[file.stream], settled))
        for file in input_files(sources)
    ]
    if quarantine:
        check_folder(quarantine)
    parts = number_lines(job.spark, cut([plan.file for plan in plans], form, job.tasks))
    statements = read_statements(job.spark, parts, form, job.options.malformed, quarantine)
    return assemble_events(statements, plans), plans, settled


def _read_frames(job: Job, streams: Any) -> _Read:
    """The same of DataFrames."""
    settled = frame_options(job.options)
    given = streams_of_frames(job.compiled, streams)
    return assembled_frames(given, settled, job.tasks), given.plans(settled), settled


def _events(
    job: Job, assembled: DataFrame, plans: Sequence[FilePlan], settled: StreamOptions, counters: Counters | None
) -> tuple[DataFrame, tuple[dict[int, int], list[int]]]:
    """The events in order, and `first_positions`.

    They are kept by a checkpoint and not by `persist`: were they planned again, the ranges could fall elsewhere.
    """
    try:
        summary = summarise(assembled)
        ordered = ordered_events(assembled, summary, plans, settled, job.tasks).localCheckpoint(eager=False)
        firsts = first_positions(ordered, settled)
    finally:
        assembled.unpersist()
    if counters is not None:
        counters.add(summary.counters)
    return ordered, firsts
