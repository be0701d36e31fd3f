"""Parts of a feed as batches of graph events in columns, with the places of the events in the source.

What lines say is read by the kernels of `spaseq.rdf.columns`, a piece of 32 MB of whole events at a time. TriG and
Turtle come event by event and are gathered. Whether an event is late is not decided here: a batch is in order of time,
and says which event of the part each of its events is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.events.places import open_file
from spaseq.rdf import Counters, GraphBatch, GraphEvent, file_options, format_of, term_from_key
from spaseq.rdf.columns import BatchLimits
from spaseq.spark.ingest.boundaries import first_boundary, newlines
from spaseq.spark.ingest.datasource import Told
from spaseq.spark.ingest.feed import Feed, FeedPart
from spaseq.spark.ingest.parts import part_chunks
from spaseq.spark.ingest.reading import part_events

__all__ = ["Placed", "gathered", "graph_events", "part_batches"]

_PIECE: Final = 32 << 20
_GATHERED: Final = 5_000
_ANY_LATENESS: Final = 1 << 62
_ALL: Final = BatchLimits()


@dataclass(frozen=True, slots=True)
class Placed:
    """Events of one stream, and which of the events given together each is: `numbers`, int64 (m,), a permutation."""

    batch: GraphBatch
    numbers: np.ndarray


def part_batches(feed: Feed, part: FeedPart, wanted: Collection[str] | None, counters: Counters) -> Iterator[Placed]:
    """The events of a part, some at a time, in the order of the source from one batch to the next.

    `wanted`: IRIs of the predicates whose triples are needed (None: all). Counts what was read. Raises EventError.
    """
    if feed.access is not None:
        feed.access.use()
    options = file_options(part.path, feed.source, feed.options)
    form = format_of(part.path, feed.options.format)
    by = options.event_by
    if not form.lines or by is None or by.kind not in ("graph", "subject", "size"):
        yield from gathered(feed.source.iri, part_events(feed, part, counters))
        return
    for piece in _pieces(part) if by.kind != "size" else (part,):
        if (found := _read(feed, piece, wanted, counters)) is not None:
            yield found


def gathered(stream: str, events: Iterable[GraphEvent]) -> Iterator[Placed]:
    """Events as batches of up to 5,000, in their order."""
    rest = iter(events)
    while held := list(islice(rest, _GATHERED)):
        batch = replace(GraphBatch.of([replace(event, stream=stream) for event in held]), stream=stream)
        yield Placed(batch, np.arange(len(held)))


def graph_events(rows: Iterable[tuple[Any, ...]], told: list[tuple[str, Told]]) -> Iterator[GraphEvent]:
    """The events of EVENTS (`spaseq.spark.session.tables`); what such rows tell goes to `told`, with the file."""
    for _, _, _, stream, time, file, line, graph, keys, counts in rows:
        if counts is not None:
            told.append((file, Told.of(counts)))
            continue
        terms = list(map(_term, keys))
        triples = tuple(zip(terms[::3], terms[1::3], terms[2::3], strict=True))
        yield GraphEvent(stream, time, triples, None if graph is None else _term(graph), file, line)


_term = lru_cache(1 << 17)(term_from_key)


def _pieces(part: FeedPart) -> Iterator[FeedPart]:
    """A part of a file of lines, cut where events begin."""
    if part.end is None:
        yield part
        return
    start, line = part.start, part.line
    with open_file(part.path) as file:
        while start < part.end:
            cut = part.end if part.end - start <= 2 * _PIECE else first_boundary(file, start + _PIECE, part.end)
            yield replace(part, start=start, end=cut, line=line)
            line += newlines(file, start, cut) if cut < part.end else 0
            start = cut


def _read(feed: Feed, part: FeedPart, wanted: Collection[str] | None, counters: Counters) -> Placed | None:
    """The events of a piece; None where it has none."""
    batch = _columns(feed, part, wanted, counters)
    if batch is None:
        return None
    numbers = np.empty(len(batch), np.int64)
    numbers[np.argsort(batch.records, kind="stable")] = np.arange(len(batch))
    return Placed(replace(batch, stream=feed.source.iri), numbers)


def _columns(feed: Feed, part: FeedPart, wanted: Collection[str] | None, counters: Counters) -> GraphBatch | None:
    from spaseq.rdf.columns.reader import stages  # loads the kernels

    options = replace(feed.options, lateness=_ANY_LATENESS)
    scope = feed.source.iri if part.start == 0 else f"{feed.source.iri} {part.start}"
    scanner, drafting, ordering = stages(scope, options, counters, wanted)
    drafting.begin_file(part.path, file_options(part.path, feed.source, options))
    chunks = part_chunks(part.path, part.start, part.end)
    failure: EventError | None = None
    try:
        for _ in scanner.read(chunks, format_of(part.path, options.format), part.path, part.line):
            pass
    except EventError as error:
        failure = error
    problem = drafting.feed() or failure or drafting.end_file()
    made, late = ordering.batches(_ALL, at_end=True)
    if problem or late:
        raise problem or late or AssertionError
    assert len(made) <= 1  # it is one file
    return made[0] if made else None
