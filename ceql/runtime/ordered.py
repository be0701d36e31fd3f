"""The matches over events that come in order, in columns, with rows that stand for themselves.

Callers that sort events, as Spark does, need no clock and no order: they give tables with their times. A row then has
the keys of its match and its times beside what SELECT computes, as the caller shows it in a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ceql.results.history import History
from ceql.results.matches import Computing, MatchTable
from ceql.results.selected import Selected, Times
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.run import Run
from ceql.semantics.selection import with_whole_rows
from spaseq.core.events import EventBatch, EventOptions
from spaseq.core.events.streams import in_one_batch
from spaseq.core.events.timestamps import Part
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch


class OrderedMatches:
    """The matches of a query over events of the streams `names`, which come in order of time. `iso` says that the times
    in rows are dates; else they are numbers in the unit of `options`. `position`: that of the next event."""

    def __init__(
        self, query: CompiledQuery, names: tuple[str, ...], options: EventOptions, iso: Callable[[], bool]
    ) -> None:
        self._names = names
        self._options = options
        self._selected = Selected(with_whole_rows(query.tree, query.lowered.partition))
        self._computing = Computing(self._selected, Times(iso, options.unit), {})
        self._bindings = query.bindings(query.valuations)
        self._run = Run(query.lowered, query.program())
        self.position: int = 0

    def types(self, attributes: Mapping[str, pa.DataType], times: pa.DataType) -> pa.Schema:
        """The columns of `MatchTable.rows`, if the types of attributes and of times are these; null for one that is not
        known."""
        return self._selected.types(attributes, times)

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
        """The time (ns) behind the last event within which time alone may complete a match: that of an absence at the
        end of the query. None if it completes none."""
        lowered, around = self._run.lowered, self._run.lowered.around
        if around.absent is None or lowered.window_attribute is not None:
            return None
        lengths = [
            w.size for w in (lowered.window, around.patience) if w is not None and w.is_bounded and not w.by_position
        ]
        return sum(map(int, lengths)) if lengths else None

    def push(self, chunk: Sequence[Part]) -> Iterator[MatchTable]:
        """The matches that the next events of each stream complete. None of them is before an event of an earlier call.
        Exhaust it before the next call."""
        yield from self.advance(in_one_batch(chunk, self._names, self._options, self.position))

    def advance(self, events: EventBatch) -> Iterator[MatchTable]:
        """As `push`, of the next events in one batch, which begins at `position`."""
        if len(events):
            self.position += len(events)
            yield from self._tables(self._run.advance(events))

    def close(self) -> Iterator[MatchTable]:
        """The matches that the end of the streams completes."""
        yield from self._tables(self._run.close())

    def wait_until(self, now: int) -> Iterator[MatchTable]:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        yield from self._tables(self._run.wait_until(now))

    def _tables(self, found: Iterator[tuple[MatchBatch, History]]) -> Iterator[MatchTable]:
        for matches, history in found:
            yield MatchTable.of(matches, history, self._bindings, self._computing)

    def contents(self) -> dict[str, Any]:
        """The progress, as plain values."""
        return {"position": self.position, "run": self._run.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `contents`, of the same query."""
        self.position = state["position"]
        expect(type(self.position) is int and 0 <= self.position < 1 << 61, "a place in the stream")
        self._run.restore(state["run"])
        last, past = self._run.evaluator.last_position, self._run.past.blocks
        expect(last is None or last < self.position, "the last event is in front of the next")
        expect(not past or past[-1].positions[-1] + 1 == self.position, "the events up to here")
