"""The events of files as objects, for tests that look at them or push them; read as `Query.run` reads files."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from spaseq.rdf import Counters, EventBy, GraphEvent, StreamOptions, StreamSource
from spaseq.rdf.columns.reader import ColumnFiles, open_batches


def events_of(
    chunks: Iterable[bytes], path: str, options: StreamOptions, counters: Counters | None = None
) -> Iterator[GraphEvent]:
    """The events in the bytes of the file `path` of the stream `urn:s`, in the order of the file."""
    counters = counters if counters is not None else Counters()
    files = ColumnFiles(StreamSource("urn:s", (path,)), options, counters, None, ordered=False)
    for batch in files.read(path, chunks, last=True, has_more=lambda: True):
        yield from map(batch.event, range(len(batch)))


def open_streams(
    sources: Sequence[StreamSource], options: StreamOptions, counters: Counters | None = None
) -> tuple[Iterator[GraphEvent], StreamOptions]:
    """The events of `sources` by time, equal ones in the order of `sources`, and the options as settled."""
    streams, settled = open_batches(sources, options, counters)
    events = ((batch.event(index) for batch in batches for index in range(len(batch))) for _, batches in streams)
    return heapq.merge(*events, key=attrgetter("time")), settled


def read_stream(
    iri: str,
    files: Sequence[str],
    options: StreamOptions,
    counters: Counters | None = None,
    *,
    event_by: EventBy | None = None,
) -> Iterator[GraphEvent]:
    """The events of one stream, in order of time."""
    return open_streams([StreamSource(iri, tuple(files), event_by)], options, counters)[0]
