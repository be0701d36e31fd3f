"""From streams to the table of solutions: what a batch job does before the engine runs.

Files are read as columns by the local engine's readers; DataFrames become rows of events first (`frames`). Both are
evaluated as columns (`read_and_solve`), put into ranges of time, and numbered (`time_ranges`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spaseq.errors import OptionError
from spaseq.language.query import Query, stream_sources
from spaseq.rdf import Counters, StreamOptions, settle
from spaseq.spark.ingest.files import for_tasks
from spaseq.spark.ingest.frames import Streams, frame_options, is_frames, ordered_events, streams_of_frames
from spaseq.spark.ingest.quarantine import check_folder
from spaseq.spark.ingest.time_ranges import first_positions, in_ranges
from spaseq.spark.session.bar import progress_bar
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.keeping import keep
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.join_side import Sides
from spaseq.spark.solving.read_and_solve import looked_over, solution_rows, solved_files, solved_rows
from spaseq.spark.solving.solutions import Graphs, join_knowledge

__all__ = ["Job", "table_of"]


@dataclass(frozen=True, slots=True)
class Job:
    """A query with all it is run with. `graphs`: the knowledge that tasks are sent; `sides`: what Spark joins."""

    spark: SparkSession
    query: QueryText
    layout: Layout
    graphs: Graphs
    sides: Sides
    options: StreamOptions
    tasks: int

    @property
    def compiled(self) -> Query:
        return self.query.compiled()


def table_of(
    job: Job, streams: Streams, progress: bool | None, counters: Counters | None, quarantine: str
) -> tuple[DataFrame, list[int]]:
    """The table of solutions, knowledge joined, and where in time ranges of equal work begin. Reads the streams."""
    layout = job.layout
    with progress_bar(job.spark, "reading the streams", enabled=progress), clear_errors():
        solved, settled = _solved(job, streams, quarantine)
        solved.persist()
        try:
            total, bounds = looked_over(solved, job.tasks)
            ordered = keep(in_ranges(solved.where("counts is null").drop("counts"), bounds))
            firsts, times = first_positions(ordered, settled)
        finally:
            solved.unpersist()
    if counters is not None:
        counters.add(total)
    table = solution_rows(ordered, layout, firsts, settled)
    if layout.joined:  # it is read once for each of them
        table = keep(table)
    return join_knowledge(table, job.query, layout, job.sides), times


def _solved(job: Job, streams: Any, quarantine: str) -> tuple[DataFrame, StreamOptions]:
    """The events with what the GPMs find on them, and the options as settled."""
    layout, graphs = job.layout, job.graphs
    if is_frames(streams):
        if quarantine:
            raise OptionError("quarantine with DataFrames", "malformed=drop leaves such rows out and counts them")
        settled = frame_options(job.options)
        events = ordered_events(streams_of_frames(job.compiled, streams), settled, job.tasks)
        return solved_rows(events, settled, job.query, layout, graphs), settled
    sources = for_tasks(job.spark, stream_sources(job.compiled.checked, streams))
    settled = settle(job.options, sources)
    if quarantine:
        check_folder(quarantine)
        quarantine, settled = os.path.abspath(quarantine), replace(settled, malformed="drop")
    return solved_files(job.spark, sources, settled, job.query, layout, graphs, quarantine), settled
