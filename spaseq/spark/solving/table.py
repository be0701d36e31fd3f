"""From streams to the table of solutions: what a batch job does before the engine runs.

Files are read as columns by the local engine's readers; DataFrames become rows of events first (`frames`). Both are
evaluated as columns (`read_and_solve`), put into ranges of time, and numbered (`time_ranges`).
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from spaseq.core.errors import EventError, OptionError
from spaseq.language.runtime.compiled import CompiledQuery
from spaseq.language.runtime.opened import stream_sources
from spaseq.rdf import Counters, StreamOptions
from spaseq.spark.ingest.files import for_tasks
from spaseq.spark.ingest.frames import Streams, frame_options, is_frames, quads_in_order, streams_of_frames
from spaseq.spark.ingest.inputs import Input, inputs_of, out_of_turn
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.ingest.quarantine import check_folder
from spaseq.spark.ingest.time_ranges import first_positions, in_ranges
from spaseq.spark.session.bar import progress_bar
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.keeping import keep
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.query_text import QueryText
from spaseq.spark.solving.join_side import Sides
from spaseq.spark.solving.read_and_solve import Account, looked_over, solution_rows, solved_files, solved_quads
from spaseq.spark.solving.solutions import Graphs, join_knowledge

_LOG: Final = logging.getLogger("spaseq.spark")


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
    def compiled(self) -> CompiledQuery:
        return self.query.compiled()


def table_of(
    job: Job, streams: Streams, progress: bool | None, counters: Counters | None, quarantine: str
) -> tuple[DataFrame, DataFrame]:
    """The table of solutions, knowledge joined, and the times of all events. Reads the streams."""
    with progress_bar(job.spark, "reading the streams", enabled=progress), clear_errors():
        solved = _solved(job, streams, quarantine)
        try:
            ordered = keep(in_ranges(solved.events.where("counts is null").drop("counts"), solved.bounds))
            firsts = first_positions(ordered, solved.options)
        finally:
            solved.events.unpersist()
    if counters is not None:
        for account in solved.accounts:
            counters.add(account.counters)
    table = solution_rows(ordered, firsts, solved.options)
    return join_knowledge(table, job.query, job.layout, job.sides), ordered.select("time")


@dataclass(frozen=True, slots=True)
class _Solved:
    """The events with what the GPMs find on them, persisted; the options as settled; what was read, and where ranges of
    time begin."""

    events: DataFrame
    options: StreamOptions
    accounts: list[Account]
    bounds: list[int]

    @staticmethod
    def of(job: Job, events: DataFrame, options: StreamOptions) -> _Solved:
        events.persist()
        try:
            return _Solved(events, options, *looked_over(events, job.tasks))
        except BaseException:
            events.unpersist()
            raise


def _solved(job: Job, streams: Any, quarantine: str) -> _Solved:
    """Reads the streams."""
    layout, graphs = job.layout, job.graphs
    if is_frames(streams):
        if quarantine:
            raise OptionError("quarantine with DataFrames", "malformed=drop leaves such rows out and counts them")
        settled = frame_options(job.options)
        given = streams_of_frames(job.compiled, streams)
        quads, reader = quads_in_order(given, settled, job.tasks), QuadReader(given.iris, settled.malformed)
        return _Solved.of(job, solved_quads(quads, reader, job.query, layout, graphs), settled)
    sources = for_tasks(job.spark, stream_sources(job.compiled.checked, streams))
    settled = job.compiled.settled(job.options, sources).settled
    if quarantine:
        check_folder(quarantine)
        quarantine, settled = os.path.abspath(quarantine), replace(settled, malformed="drop")

    def read(inputs: list[Input]) -> _Solved:
        events = solved_files(job.spark, inputs, job.tasks, settled, job.query, layout, graphs, quarantine)
        return _Solved.of(job, events, settled)

    inputs = inputs_of(sources, settled, job.tasks, whole=bool(quarantine))
    if len({each.chain for each in inputs}) == len(inputs):
        return read(inputs)
    try:
        with clear_errors():
            found = read(inputs)
        why = _unsound(inputs, found, settled)
        if not why:
            return found
        found.events.unpersist()
    except EventError as error:
        why = str(error)
    _LOG.info("the files are read again, as the local engine reads them: %s", why)
    return read(inputs_of(sources, settled, job.tasks, whole=True))


def _unsound(inputs: list[Input], found: _Solved, options: StreamOptions) -> str:
    """Why the inputs may give other matches than those of the local engine; empty where they do not."""
    if any(account.named for account in found.accounts):
        return "solutions have blank nodes of events, which are named by the number of their event in its file"
    times = {account.number: account.times for account in found.accounts if account.times is not None}
    name = out_of_turn(inputs, times, options.lateness)
    return name and f"{name} begins before what is in front of it ends"
