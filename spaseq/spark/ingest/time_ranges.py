"""Events in ranges of time, one range a task, so that their instants can be numbered.

An event's instant is counted inside its range, and `first_positions` says how many instants lie in the ranges before.
Equal times are never in two ranges. Where the ranges begin is worked out once, from the times, and is a constant of the
plan: a range that is lost with an executor is the same when it is computed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spaseq.rdf import StreamOptions

INDEX_BITS: Final = 33  # monotonically_increasing_id: the partition's number above, the row's below


_ACCURACY: Final = 1_000
"""Of quantiles: ranges differ by a thousandth of all events."""


def quantiles(column: str, tasks: int) -> Column:
    """Where `tasks` ranges of about equal numbers of rows begin, by the values of a column, as an array."""
    return F.percentile_approx(column, F.array(*(F.lit(k / tasks) for k in range(tasks))), _ACCURACY)


def parted_at(frame: DataFrame, column: str, bounds: Iterable[int] | None) -> DataFrame:
    """`frame` in ranges of a column, one a task: below the second of `bounds`, from there to below the third, …"""
    inner = sorted(set(bounds or ()))[1:]
    return frame.repartitionById(len(inner) + 1, _range_number(F.col(column), inner, 0))


def _range_number(value: Column, bounds: Sequence[int], first: int) -> Column:
    """`first` and how many of the bounds are not above the value: a search by halves."""
    if not bounds:
        return F.lit(first)
    middle = len(bounds) // 2
    above = _range_number(value, bounds[middle + 1 :], first + middle + 1)
    return F.when(value < F.lit(bounds[middle]), _range_number(value, bounds[:middle], first)).otherwise(above)


def in_ranges(events: DataFrame, bounds: Iterable[int] | None) -> DataFrame:
    """The events of SOLVED (`spaseq.spark.session.tables`) in ranges of time that begin at `bounds`, one a task, in
    order in it, and `id` (task and row) as last column.

    Events of equal time are in the order of the FROM clause, then of their files, or, in DataFrames, of their graphs'
    names.
    """
    ordered = parted_at(events, "time", bounds).sortWithinPartitions("time", "stream", "file", "graph", "number")
    return ordered.withColumn("id", F.monotonically_increasing_id())


def first_positions(ordered: DataFrame, options: StreamOptions) -> dict[int, int]:
    """The position of the first instant of each range of `ordered`, by the range's number."""
    task = F.shiftright("id", INDEX_BITS).alias("task")
    instants = F.count("*") if options.apart else F.countDistinct("time")
    counted = ordered.groupBy(task).agg(instants.alias("instants")).collect()
    positions: dict[int, int] = {}
    total = 0
    for row in sorted(counted, key=itemgetter("task")):
        positions[row["task"]] = total
        total += row["instants"]
    return positions


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, one after another."""
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
