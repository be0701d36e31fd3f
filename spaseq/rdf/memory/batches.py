"""The events of a stream in memory as batches, in order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from spaseq.core.errors import SpaseqError
from spaseq.core.events.ahead import Ahead
from spaseq.core.events.reorder import SingleReorderer
from spaseq.core.watch import check
from spaseq.rdf.columns.model import BatchLimits, GraphBatch
from spaseq.rdf.memory.events import GivenEvents
from spaseq.rdf.model import Counters, GraphEvent, late_event
from spaseq.rdf.options import StreamOptions
from spaseq.rdf.streams import GivenSource

_LIMITS: Final = BatchLimits()


def given_batches(
    source: GivenSource, options: StreamOptions, counters: Counters, *, ahead: Ahead | None = None
) -> Iterator[GraphBatch]:
    """The batches of a stream in memory, in order of time; errors come behind the events before them."""
    made = GivenEvents(source.iri, options)
    order = SingleReorderer[GraphEvent](options, lambda event: (f"stream {source.iri}", (event.source, event.record)))
    ready: list[GraphEvent] = []
    held = 0
    failure: SpaseqError | None = None
    events = made.events(source.begin())
    while failure is None:
        try:
            event = next(events, None)
            if event is None:
                break
            taken = order.push(event.time, event)
        except SpaseqError as error:
            failure = error
            break
        counters.events += 1
        counters.triples += len(event.triples)
        counters.late += order.take_dropped()
        if order.on_late is not None:
            for late, behind in order.take_late():
                order.on_late(late_event(late, behind))
        counters.ignored, made.ignored = counters.ignored + made.ignored, 0
        ready += taken
        held += sum(len(event.triples) + 1 for event in taken)
        if held >= _LIMITS.triples:
            check()
            yield from _batches(ready)
            ready, held = [], 0
    if failure is None:
        ready += order.due(last=True)
    yield from _batches(ready)
    if failure is not None:
        raise failure


def _batches(events: Sequence[GraphEvent]) -> Iterator[GraphBatch]:
    for _, group in groupby(events, key=lambda event: event.source):
        yield GraphBatch.of(list(group))
