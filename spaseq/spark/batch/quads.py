"""The rows of the matches of a query over DataFrames of quads: analysed at once, computed by an action.

    quads ─► events, with what the GPMs find ─► with knowledge ─► engine, in parts ─► a row for each match

The steps are those of `spaseq.spark.batch.job`, but that nothing is looked over, numbered or kept in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import Window as Columns
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, NumericType

from spaseq.core.errors import OptionError
from spaseq.language.query import Query
from spaseq.spark.batch.form import Form, MatchRows
from spaseq.spark.batch.job import prepare
from spaseq.spark.batch.parts import INSTANT_ORDER, matches_in_parts
from spaseq.spark.ingest.frames import Frames, frame_options, quads_in_order, streams_of_frames, times_of
from spaseq.spark.ingest.quads import QuadReader
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.options import QueryOptions
from spaseq.spark.solving.read_and_solve import solved_quads, unfolded_rows
from spaseq.spark.solving.solutions import join_knowledge


def rows_over_quads(
    query: Query, quads: DataFrame | Mapping[str, DataFrame], kb: Any, options: QueryOptions, *,
    partitions: int | None, cut: str, positions: bool, terms: str,
) -> DataFrame:  # fmt: skip
    """The rows of the matches over quads that are all there. Arguments: those of `spaseq.spark.match`."""
    options = options.of_query(query)
    settled = frame_options(options.events)
    if settled.malformed == "drop":
        hint = "spaseq.spark.run(…, malformed='drop', counters=…) counts what it leaves out"
        raise OptionError("malformed='drop' in a batch, whose rows have no place for a count", hint)
    given = streams_of_frames(query.compiled, quads)
    shape = MatchRows(terms, time_type(given), settled.unit, positions)
    job = prepare(query, given.frames[0].sparkSession, kb, options, partitions)
    layout, window = parts_of(job.layout, query, cut), job.compiled.window(settled.unit)
    form = Form(job.query, settled.unit, shape, shape.table(job.compiled.variables), layout.ordered)
    ordered, reader = quads_in_order(given, settled, job.tasks), QuadReader(given.iris, settled.malformed)
    solved = solved_quads(ordered, reader, job.query, layout, job.graphs).where("counts is null")
    place: tuple[str, ...] = INSTANT_ORDER if settled.apart else INSTANT_ORDER[:1]
    if positions or window.by_position:
        number = F.dense_rank().over(Columns.orderBy(*place)).cast("long") - 1
        solved, place = solved.withColumn("position", number), ("position", "time")
    table = join_knowledge(unfolded_rows(solved, place), job.query, layout, job.sides)
    return matches_in_parts(table, times_of(given, settled), layout, form, job.tasks)


def parts_of(layout: Layout, query: Query, cut: str) -> Layout:
    """The layout with the division that is asked for. Matches of several keys that are equal must be one, and without
    positions only the engine can tell: keys that are not selected are no division."""
    if cut not in ("auto", "one"):
        raise OptionError(f"cut={cut!r} is for tuples; a query over graphs says it itself", "cut='auto', or 'one'")
    if cut == "one":
        return replace(layout, by_key=False, by_window=False, by_slice=False)
    merges = not set(query.compiled.checked.partition) <= set(query.variables)
    return replace(layout, by_key=False) if merges else layout


def time_type(given: Frames) -> pa.DataType:
    """The type of the times of matches: a number if all DataFrames have numbers, else a timestamp."""
    kinds = [frame.schema["time"].dataType for frame in given.frames]
    if not all(isinstance(kind, NumericType) for kind in kinds):
        return pa.timestamp("us", "UTC")
    return pa.int64() if all(isinstance(kind, IntegralType) for kind in kinds) else pa.float64()
