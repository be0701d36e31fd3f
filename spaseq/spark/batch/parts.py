"""The table of solutions in the parts that the layout allows, and the engine's matches in each.

A part is a window, the keys that a task was given, a slice of time, or the whole. The rows of a table may have the
`position` of their instant. Without, a task counts the instants that it sees: such numbers tell what comes next, and
nothing outside the task.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, groupby
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spaseq.core.engine import Window
from spaseq.language.results.match import Match
from spaseq.language.runtime.recogniser import Recogniser
from spaseq.language.solving.solve import InstantSolutions
from spaseq.spark.batch.form import Form, chunks
from spaseq.spark.batch.slices import matches_at_the_end
from spaseq.spark.session.layout import Layout
from spaseq.spark.session.steps import step
from spaseq.spark.session.tables import spark_schema
from spaseq.spark.solving.solutions import instants_of
from spaseq.spark.tuples.plan import Plan
from spaseq.spark.tuples.rows import slice_by_slice
from spaseq.spark.tuples.slices import cut_into_slices

INSTANT_ORDER: Final = ("time", "stream", "graph")
"""The columns in whose order the events of DataFrames come; if events of equal time are one instant, the first alone
differs between instants."""
_INSTANTS: Final = 256
"""Rows of the table before the engine is called."""


def matches_in_parts(table: DataFrame, times: DataFrame, layout: Layout, form: Form, tasks: int) -> DataFrame:
    """The rows of the matches in `table`. `times`: the column `time` of all events, by which slices are cut."""
    compiled = form.query.compiled()
    window = compiled.window(form.time_unit)
    place = places(table.columns)
    if layout.by_slice:
        behind = any(variant.after for variant in compiled.checked.variants)
        sliced = cut_into_slices(table, Plan((), True, window, behind, ""), tasks, times=times)
        parted = sliced.repartitionById(tasks, F.col("part").cast("int")).sortWithinPartitions("part", *place)
    else:
        tasks = tasks if layout.by_window or layout.by_key else 1
        parted = table.repartitionById(tasks, _part(layout, window, tasks)).sortWithinPartitions(*place)
    find = step(f"find matches in {_named(layout)}", _rows, form, layout, place)
    found = parted.mapInArrow(find, spark_schema(form.schema))
    merges = layout.by_key and not set(compiled.checked.partition) <= set(compiled.variables)
    return found.distinct() if merges else found  # equal matches of several keys are one


def places(columns: Sequence[str]) -> tuple[str, ...]:
    """Of a table's columns, those that differ between instants, in whose order these come."""
    return ("position",) if "position" in columns else tuple(name for name in INSTANT_ORDER if name in columns)


def _named(layout: Layout) -> str:
    if layout.by_slice:
        return "slices of time"
    return " and ".join(["windows"] * layout.by_window + ["keys"] * layout.by_key) or "one part"


def _part(layout: Layout, window: Window, tasks: int) -> Column:
    cuts: list[Column] = []
    if layout.by_window:
        cuts.append(F.expr(_window_number(window)))
    if layout.by_key:
        cuts.append(F.hash("key").cast("long"))
    parts = (F.pmod(cut, F.lit(tasks)) for cut in cuts)
    return F.pmod(reduce(Column.__add__, parts, F.lit(0)), F.lit(tasks)).cast("int")


def _window_number(window: Window) -> str:
    """The number of the tumbling window of `time` but for a constant, without overflow, as SQL."""
    size, first = window.size, window.origin % window.size
    number = f"(time div {size}L) - if(time % {size}L < 0, 1L, 0L)"  # div cuts towards zero
    return f"{number} - if(pmod(time, {size}L) < {first}L, 1L, 0L)"


# -- in a task


def _rows(
    form: Form, layout: Layout, place: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of the matches in the parts of a task, whose instants come in order."""
    for bounds, pieces in groupby(slice_by_slice(batches), key=lambda piece: piece[0]):
        instants = instants_of((batch for _, batch in pieces), layout, form.query.compiled().checked.partition, place)
        yield from form.rows(_matches(form, instants, *bounds[1:]))


def _matches(
    form: Form, instants: Iterator[list[InstantSolutions]], low: int | None = None, high: int | None = None
) -> Iterator[Match]:
    """The matches of one part; of a slice, those that end in it."""
    compiled = form.query.compiled()
    recogniser = Recogniser(compiled.checked, compiled.program(form.time_unit), None, keep_events=False)
    found = (m for rows in chunks(instants, _INSTANTS) for m in recogniser.push_rows([r for row in rows for r in row]))
    for match in chain(found, matches_at_the_end(recogniser)):
        if (low is None or low <= match.times[-1]) and (high is None or match.times[-1] < high):
            yield match
