"""Batches of several streams, as they arrive, in order of time: `spaseq.core.events.reorder` over columns.

The events of a batch that wait stay together as a run, in order of time; a heap tells which run has the earliest. So
taking a batch costs its own events and those that come out, whatever else waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.events.reorder import NEVER, Arrivals
from spaseq.core.integers import in_order
from spaseq.rdf.columns.model import GraphBatch
from spaseq.rdf.model import late_event
from spaseq.rdf.options import StreamOptions

_Run: TypeAlias = tuple[int, int, GraphBatch, int]
"""Events of a batch, in order of time, of which those from an index on wait. (The time of the first that waits, the
number of the batch, the batch, the index.)"""


class ArrivedBatches:
    """Puts the events of batches in order of time, over all their streams, within the lateness of `options`.

    An event is late, an EventError or dropped, as `spaseq.core.events.reorder` says.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._arrivals = Arrivals(options)
        self._waiting: list[_Run] = []  # a heap
        self._count = 0

    def push(
        self, batches: Sequence[GraphBatch], order: np.ndarray | None = None
    ) -> tuple[list[GraphBatch], EventError | None]:
        """The events that no event on time can precede any more, as batches in order of time, then of arrival.

        Also the error of the first late event, which ends the stream.

        `order`: the events of all `batches`, numbered one batch after another, in the order in which they came, int64;
        by default that of the numbers. Of one batch they come in its order.
        """
        times = np.concatenate([np.zeros(0, np.int64), *(batch.times for batch in batches)])
        bounds = np.cumsum([0, *map(len, batches)])
        kept, error = self._on_time(batches, times, bounds, order)
        found: list[tuple[int, GraphBatch]] = []
        for place, batch in enumerate(batches):
            rows = None if kept is None else kept[bounds[place] : bounds[place + 1]]
            self._cut(self._count, _by_time(batch, rows), 0, self._arrivals.end, found)
            self._count += 1
        return self._release(self._arrivals.end, found), error

    @property
    def high(self) -> int:
        """The greatest time of an event (ns); `NEVER` before the first."""
        return self._arrivals.high

    def advance(self, now: int, *said: str) -> list[GraphBatch]:
        """The waiting events before `now` (ns), as `push` gives them. One before it that comes later is late; `said` of
        it, as of `spaseq.core.events.reorder.Arrivals.advance`."""
        self._arrivals.advance(now, *said)
        return self._release(self._arrivals.end, [])

    def close(self) -> list[GraphBatch]:
        """The waiting events, as `push` gives them: the streams end."""
        return self._release(None, [])

    def take_dropped(self) -> int:
        """The number of late events dropped since the last call."""
        return self._arrivals.take_dropped()

    def _on_time(
        self, batches: Sequence[GraphBatch], times: np.ndarray, bounds: np.ndarray, order: np.ndarray | None
    ) -> tuple[np.ndarray | None, EventError | None]:
        """The events that are taken, bool (n,), None if all are."""

        def event(row: int) -> tuple[GraphBatch, int]:
            number = row if order is None else int(order[row])
            place = int(np.searchsorted(bounds, number, "right")) - 1
            return batches[place], number - int(bounds[place])

        def where(row: int) -> tuple[str, int]:
            batch, index = event(row)
            return batch.source, int(batch.records[index])

        came = times if order is None else times[order]
        late, error = self._arrivals.judge(came, where, lambda row: f"stream {event(row)[0].stream}")
        if self._arrivals.on_late is not None:
            for row, behind in self._arrivals.take_late():
                batch, index = event(row)
                self._arrivals.on_late(late_event(batch.event(index), behind))
        if late is None:
            return None, None
        taken = ~late
        if error is not None:
            taken[int(np.argmax(late)) :] = False
        if order is None:
            return taken, error
        kept = np.empty(len(times), bool)
        kept[order] = taken
        return kept, error

    def _release(self, end: int | None, found: list[tuple[int, GraphBatch]]) -> list[GraphBatch]:
        """The batches `found`, by their numbers, and those that waited for the time `end`."""
        waiting = self._waiting
        while waiting and (end is None or waiting[0][0] < end):
            _, number, batch, first = heapq.heappop(waiting)
            self._cut(number, batch, first, end, found)
        return [batch for _, batch in sorted(found, key=lambda pair: pair[0])]

    def _cut(
        self, number: int, batch: GraphBatch, first: int, end: int | None, found: list[tuple[int, GraphBatch]]
    ) -> None:
        """Of the events from `first` on, those before `end` are `found`; the rest waits."""
        if first == len(batch):
            return
        last = len(batch)
        if end is not None and end <= batch.times[-1]:
            last = max(first, int(np.searchsorted(batch.times, max(end, NEVER))))
        if last > first:
            whole = last - first == len(batch)
            found.append((number, batch if whole else batch.select(np.arange(first, last))))
        if last < len(batch):
            heapq.heappush(self._waiting, (int(batch.times[last]), number, batch, last))


def _by_time(batch: GraphBatch, kept: np.ndarray | None) -> GraphBatch:
    """Those events of a batch that are `kept`, in order of time."""
    rows = np.arange(len(batch)) if kept is None else np.flatnonzero(kept)
    times = batch.times[rows]
    if not bool((times[1:] >= times[:-1]).all()):
        rows = rows[in_order(times)]
    elif len(rows) == len(batch):
        return batch
    return batch.select(rows)
