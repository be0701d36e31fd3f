"""Events in the order of their times: put right within the lateness, streams merged, instants formed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from spaseq.errors import EventError
from spaseq.events.time import format_time
from spaseq.rdf.model import Counters, GraphEvent, Instant
from spaseq.rdf.options import ARRIVAL, StreamOptions

__all__ = ["InOrder", "goes_back", "in_order", "instants", "merge_streams"]


def in_order(events: Iterable[GraphEvent], options: StreamOptions, counters: Counters) -> Iterator[GraphEvent]:
    """The events of one stream sorted by time, equal times in the order they came; as `InOrder` has it."""
    order = InOrder(options, counters)
    for event in events:
        yield from order.push(event)
    yield from order.close()


class InOrder:
    """Puts events that come one by one in order of time, equal times in the order they came.

    An event is held until the latest time seen is `options.lateness` past its own; so memory is what arrives within
    the lateness. One that comes when the latest time is already further ahead is dropped and counted (`late="drop"`)
    or an EventError.
    """

    def __init__(self, options: StreamOptions, counters: Counters) -> None:
        self._options = options
        self._counters = counters
        self._held: list[tuple[int, int, GraphEvent]] = []
        self._latest: GraphEvent | None = None
        self._count = 0

    def push(self, event: GraphEvent) -> Iterator[GraphEvent]:
        """The events that are in order now that `event` has come; exhaust it before the next call."""
        latest, lateness = self._latest, self._options.lateness
        if latest is None or event.time > latest.time:
            latest = self._latest = event
        elif event.time < latest.time - lateness:
            if self._options.late != "drop":
                raise goes_back(event, latest, lateness)
            self._counters.late += 1
            return
        self._count += 1
        heapq.heappush(self._held, (event.time, self._count, event))
        while self._held and self._held[0][0] <= latest.time - lateness:
            yield heapq.heappop(self._held)[2]

    def close(self) -> Iterator[GraphEvent]:
        """The rest: nothing more comes."""
        while self._held:
            yield heapq.heappop(self._held)[2]


def goes_back(event: GraphEvent, latest: GraphEvent, lateness: int) -> EventError:
    """`event` comes when `latest` was seen."""
    allowed = f", more than the lateness of {lateness / 1e9:g} s" if lateness else ""
    return EventError(
        f"stream {event.stream} goes back in time{allowed}: {format_time(event.time)} comes after "
        f"{format_time(latest.time)} ({latest.source}:{latest.record})",
        source=event.source,
        record=event.record,
        hint="--lateness DURATION puts in order what comes late by no more than that; "
        "--late drop leaves out what comes later and counts it",
    )


def merge_streams(streams: Sequence[tuple[str, Iterable[GraphEvent]]]) -> Iterator[GraphEvent]:
    """The events of all streams by time; equal times in the order of `streams` (that of the FROM clause), then of the
    source.

    Each stream must be in order. One event of each is held, so nothing comes out before every stream has said
    something.
    """
    return heapq.merge(*(events for _, events in streams), key=attrgetter("time"))


def instants(merged: Iterable[GraphEvent], options: StreamOptions) -> Iterator[Instant]:
    """The instants of a streamset: one per distinct time, numbered from 0.

    With time from arrival, and with `ties="arrival"`, each event is an instant of its own.
    """
    if options.time == ARRIVAL or options.ties == "arrival":
        for position, event in enumerate(merged):
            yield Instant(position, event.time, (event,))
    else:
        for position, (time, events) in enumerate(groupby(merged, key=attrgetter("time"))):
            yield Instant(position, time, tuple(events))
