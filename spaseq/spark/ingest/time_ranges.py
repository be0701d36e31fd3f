"""Events in ranges of time, one range a task, so that their instants can be numbered.

An event's instant is counted inside its range, and `first_positions` says how many instants lie in the ranges before.
Equal times are never in two ranges, but where each event is an instant of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spaseq.rdf import StreamOptions

__all__ = ["INDEX_BITS", "first_positions", "in_ranges", "rows_of"]

INDEX_BITS: Final = 33  # monotonically_increasing_id: the partition's number above, the row's below


def in_ranges(events: DataFrame, options: StreamOptions, tasks: int) -> DataFrame:
    """The events of SOLVED (`spaseq.spark.session.tables`) in ranges of time, one a task, in order in it, and `id`
    (task and row) as last column.

    Events of equal time are in the order of the FROM clause, then of their files, or, in DataFrames, of their graphs'
    names. The ids and `first_positions` belong to one computation of the result, so it must be kept.
    """
    whole = ["time", "stream", "file", "graph", "number"]
    ranges = events.repartitionByRange(max(1, tasks), *(whole if options.apart else ["time"]))
    return ranges.sortWithinPartitions(*whole).withColumn("id", F.monotonically_increasing_id())


def first_positions(ordered: DataFrame, options: StreamOptions) -> tuple[dict[int, int], list[int]]:
    """The position of the first instant of each range of `ordered`, by the range's number, and the ranges' first times
    in order."""
    task = F.shiftright("id", INDEX_BITS).alias("task")
    instants = F.count("*") if options.apart else F.countDistinct("time")
    counted = ordered.groupBy(task).agg(instants.alias("instants"), F.min("time").alias("first")).collect()
    positions: dict[int, int] = {}
    times: list[int] = []
    total = 0
    for row in sorted(counted, key=itemgetter("task")):
        positions[row["task"]] = total
        times.append(row["first"])
        total += row["instants"]
    return positions, times


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, one after another."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
