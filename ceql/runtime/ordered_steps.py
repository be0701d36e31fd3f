"""The partial matches that time out over events that come in order, in columns, with rows that stand for themselves.

A row has `waiting_for`, `since` and `start_time`, then the keys and the columns of SELECT, as the rows of matches have
them (`ceql.runtime.ordered`). A column that reads a variable of a later part is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ceql.results.matches import MatchTable, OverTable
from ceql.results.selected import Selected, Times
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.ordered import OrderedMatches
from ceql.semantics.selection import column_name, with_whole_rows
from ceql.syntax.ast import MATCH_TIMES
from spaseq.core.events import EventOptions
from spaseq.core.events.streams import in_one_batch
from spaseq.core.events.timestamps import Part
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True)
class StepTable(OverTable):
    """Partial matches that timed out at one step. `columns`: the names of all columns behind the first three."""

    waiting_for: str
    found: MatchTable
    times: Times = field(repr=False)
    columns: tuple[str, ...] = field(repr=False)

    def rows(self) -> pa.Table:
        """A row for each partial match."""
        matches, count = self.matches, len(self.found)
        rows = {"waiting_for": pa.array([self.waiting_for] * count, pa.string())}
        rows |= {
            name: self.times.column(self.history.times(places))
            for name, places in (("since", matches.end), ("start_time", matches.start))
        }
        own = self.found.rows()
        known = set(own.column_names)
        return pa.table(rows | {n: own.column(n) if n in known else pa.nulls(count) for n in self.columns})


class OrderedSteps:
    """The rows over events in order. Its methods are those of `ceql.runtime.ordered.OrderedMatches`.

    `steps`: the queries of the steps of `query`, by the part that each waits for."""

    def __init__(
        self, query: CompiledQuery, steps: Sequence[tuple[str, CompiledQuery]], names: tuple[str, ...],
        options: EventOptions, iso: bool,
    ) -> None:  # fmt: skip
        self._names = names
        self._options = options
        self._times = Times(lambda: iso, options.unit)
        self._steps = [(waiting_for, OrderedMatches(step, names, options, lambda: iso)) for waiting_for, step in steps]
        self._whole = Selected(with_whole_rows(query.tree, query.lowered.partition))
        written = {column_name(column).casefold() for column in query.tree.selection.columns}
        times = {name.lower() for name in MATCH_TIMES if name.casefold() not in written}
        self._columns = tuple(name for name in self._whole.names if name not in times)

    def types(self, attributes: Mapping[str, pa.DataType], times: pa.DataType) -> pa.Schema:
        """As of `OrderedMatches.types`."""
        found = {"waiting_for": pa.string(), "since": times, "start_time": times}
        whole = self._whole.types(attributes, times)
        return pa.schema(list((found | {name: whole.field(name).type for name in self._columns}).items()))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that rows read."""
        read = (*self._whole.attributes, *(name for _, step in self._steps for name in step.attributes))
        return tuple(dict.fromkeys(read))

    @property
    def waits(self) -> int | None:
        """As of `OrderedMatches.waits`."""
        return max((step.waits for _, step in self._steps if step.waits is not None), default=None)

    def push(self, chunk: Sequence[Part]) -> Iterator[StepTable]:
        """The rows of the partial matches whose windows the next events close."""
        events = in_one_batch(chunk, self._names, self._options, self._steps[0][1].position)
        yield from self._tables(lambda step: step.advance(events))

    def close(self) -> Iterator[StepTable]:
        """The rows of those whose windows the end of the streams closes."""
        yield from self._tables(lambda step: step.close())

    def wait_until(self, now: int) -> Iterator[StepTable]:
        """The rows of those whose windows closed before `now` (ns), before which no event will come any more."""
        yield from self._tables(lambda step: step.wait_until(now))

    def _tables(self, advance: Callable[[OrderedMatches], Iterator[MatchTable]]) -> Iterator[StepTable]:
        for waiting_for, step in self._steps:
            for found in advance(step):
                yield StepTable(waiting_for, found, self._times, self._columns)

    def contents(self) -> dict[str, Any]:
        """The progress, as plain values."""
        return {"steps": [step.contents() for _, step in self._steps]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The opposite of `contents`, of the same query."""
        expect(len(state["steps"]) == len(self._steps), "the progress of each step")
        for (_, step), place in zip(self._steps, state["steps"], strict=True):
            step.restore(place)
