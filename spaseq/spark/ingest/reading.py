"""A part of a feed as statements, and as batches of its events in the order of the source."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace

from spaseq.rdf import Counters, GraphBatch, Statement, Terms, format_of, parse_statements
from spaseq.spark.ingest.feed import Feed, FeedPart
from spaseq.spark.ingest.parts import part_chunks


def quarantine_names(part: FeedPart) -> dict[str, str]:
    """The name of the file for lines of a part that cannot be read (`spaseq.spark.ingest.quarantine.counted`)."""
    return {part.path: f"{part.feed}-{part.order[0]}-{part.start}-{os.path.basename(part.path)}.tsv"}


def part_statements(feed: Feed, part: FeedPart, counters: Counters) -> Iterator[Statement]:
    """The statements of a part, in order."""
    return parse_statements(
        part_chunks(part.path, part.start, part.end),
        format_of(part.path, feed.options.format),
        part.path,
        first_line=part.line,
        terms=Terms(),
        counters=counters,
        malformed=feed.options.malformed,
    )


def event_batches(
    feed: Feed, part: FeedPart, wanted: Collection[str] | None, counters: Counters
) -> Iterator[GraphBatch]:
    """The events of a part in the order of the source, whatever their times, some at a time.

    `wanted`: IRIs of the predicates whose triples are needed (None: all). Blank nodes of different parts have different
    labels. EventError for what cannot be read, behind the batches of what comes before it.
    """
    from spaseq.rdf.columns.reader import ColumnFiles  # loads the kernels

    iri = feed.source.iri
    source = replace(feed.source, iri=iri if part.start == 0 else f"{iri} {part.start}")
    files = ColumnFiles(source, feed.options, counters, wanted, ordered=False)
    chunks = part_chunks(part.path, part.start, part.end)
    for batch in files.read(part.path, chunks, last=True, line=part.line, has_more=lambda: True):
        yield replace(batch, stream=iri)
