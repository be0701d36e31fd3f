"""The matches over events that come in order, in columns, with rows that stand for themselves.

Callers that sort events, as Spark does, need no clock and no order: they give tables with their times. A row then has
the keys of its match and its times beside what SELECT computes, as the caller shows it in a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ceql.results.history import History
from ceql.results.matches import Computing, MatchTable
from ceql.results.selected import Selected, Times
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.runtime.single_events import Place, Singles
from ceql.semantics.selection import with_whole_rows
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.memory import from_dicts
from spaseq.core.events.reorder import NEVER
from spaseq.core.events.streams import in_one_batch, with_items
from spaseq.core.events.time import unit_nanoseconds
from spaseq.core.events.timestamps import Part
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch


class OrderedMatches:
    """The matches of a query over events of the streams `names`, which come in order of time. `iso` says that the times
    in rows are dates; else they are numbers in the unit of `options`."""

    def __init__(
        self, query: CompiledQuery, names: tuple[str, ...], options: EventOptions, iso: Callable[[], bool]
    ) -> None:
        self._names = names
        self._options = options
        self._selected = selected_rows(query)
        times = Times(iso, options.unit)
        self._computing = Computing(self._selected, times, {})
        self._bindings = query.bindings(query.valuations)
        self._run = Run(query.lowered, query.program(), ordering=query.ordering(times))
        self._place = Place()
        self._singles: Singles | None = None
        self._untried = True

    @property
    def position(self) -> int:
        """That of the next event."""
        return self._place.position if self._singles is None else self._singles.position

    def types(self, attributes: Mapping[str, pa.DataType], times: pa.DataType) -> pa.Schema:
        """The columns of `MatchTable.rows`, if the types of attributes and of times are these; null for one that is not
        known."""
        return self._selected.types(attributes, times, unit_nanoseconds(self._options.unit))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of `MatchTable.rows`."""
        return self._selected.names

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that rows read."""
        return self._selected.attributes

    @property
    def waits(self) -> int | None:
        """The time (ns) behind the last event within which time alone may complete a row; None if it completes none. It
        does with an absence at the end of the query, and with a stretch of time of GROUP BY."""
        lowered, around = self._run.lowered, self._run.lowered.around
        if lowered.grouping is not None:
            return lowered.grouping.length  # without an absence at the end
        if not around.waits or lowered.window_attribute is not None:
            return None
        window = int(lowered.window.size) if lowered.window.is_bounded and not lowered.window.by_position else 0
        longest = max((int(time.size) for time in around.patiences), default=0)
        return window + longest or None

    def push(self, chunk: Sequence[Part]) -> Iterator[MatchTable]:
        """The matches that the next events of each stream complete. None of them is before an event of an earlier call.
        Exhaust it before the next call."""
        yield from self.advance(in_one_batch(chunk, self._names, self._options, self.position))

    def advance(self, events: EventBatch) -> Iterator[MatchTable]:
        """As `push`, of the next events in one batch, which begins at `position`."""
        self._to_batches()
        if len(events):
            self._place.position += len(events)
            self._place.high = int(events.times[-1])
            yield from self._tables(self._run.advance(events))

    def push_singly(self, events: Sequence[dict[str, Any]], times: Sequence[int]) -> Iterator[MatchTable]:
        """As `push`, of events as dicts, which are on one stream, with their times (ns). They go without columns if
        `ceql.runtime.single_events` takes them."""
        if self._untried:
            self._singles = Singles.into(self._run, self._place, self._options.typed_by(self._names))
            self._untried = False
        for event, time in zip(events, times, strict=True):
            found = None if self._singles is None else self._singles.push(event, time)
            if found is None:
                yield from self.push([part_of([event], np.array([time]))])
            elif found:
                yield from self._tables(iter(found))

    def _to_batches(self) -> None:
        if self._singles is not None:
            self._singles.leave()

    def close(self) -> Iterator[MatchTable]:
        """The matches that the end of the streams completes."""
        self._to_batches()
        yield from self._tables(self._run.close())

    def wait_until(self, now: int) -> Iterator[MatchTable]:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        self._to_batches()
        yield from self._tables(self._run.wait_until(now))

    def _tables(self, found: Iterator[tuple[MatchBatch, History]]) -> Iterator[MatchTable]:
        for matches, history in found:
            yield MatchTable.of(matches, history, self._bindings, self._computing)

    def contents(self) -> dict[str, Any]:
        """The progress, as plain values."""
        self._to_batches()
        return {"position": self.position, "run": self._run.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `contents`, of the same query."""
        position = self._place.position = state["position"]
        expect(type(position) is int and 0 <= position < 1 << 61, "a place in the stream")
        self._run.restore(state["run"])
        self._place.high = NEVER if self._run.time is None else self._run.time
        last, past = self._run.evaluator.last_position, self._run.past.blocks
        expect(last is None or last < position, "the last event is in front of the next")
        expect(not past or past[-1].positions[-1] + 1 == position, "the events up to here")


def selected_rows(query: CompiledQuery) -> Selected:
    """The columns of rows that stand for themselves."""
    return Selected(with_whole_rows(query.tree, query.lowered.partition))


def part_of(events: Sequence[dict[str, Any]], times: np.ndarray) -> Part:
    """Events in columns, as a feed makes them, with their times: int64 (n,), ns."""
    return Part(with_items(from_dicts(events)), times)
