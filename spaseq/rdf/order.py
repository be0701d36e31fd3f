"""Events in the order of their times: put right within the lateness, streams merged, instants formed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from spaseq.core.events.reorder import SingleReorderer
from spaseq.rdf.model import Counters, GraphEvent, Instant
from spaseq.rdf.options import StreamOptions

__all__ = ["described", "in_order", "instants", "merge_streams"]


def in_order(events: Iterable[GraphEvent], options: StreamOptions, counters: Counters) -> Iterator[GraphEvent]:
    """The events of one stream sorted by time, equal times in the order they came; `spaseq.core.events.reorder`."""
    order = SingleReorderer(options, described)
    for event in events:
        yield from order.push(event.time, event)
        counters.late += order.take_dropped()
    yield from order.due(last=True)


def described(event: GraphEvent) -> tuple[str, tuple[str, int]]:
    """What errors about an event's time call its stream, and its place."""
    return f"stream {event.stream}", (event.source, event.record)


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
    if options.apart:
        for position, event in enumerate(merged):
            yield Instant(position, event.time, (event,))
    else:
        for position, (time, events) in enumerate(groupby(merged, key=attrgetter("time"))):
            yield Instant(position, time, tuple(events))
