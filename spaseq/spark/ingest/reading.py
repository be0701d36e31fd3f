"""A part of a feed as statements and as events, one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator

from spaseq.rdf import Counters, GraphEvent, Statement, Terms, assemble, file_options, format_of, parse_statements
from spaseq.spark.ingest.feed import Feed, FeedPart
from spaseq.spark.ingest.parts import part_chunks

__all__ = ["part_events", "part_statements", "quarantine_names"]


def quarantine_names(part: FeedPart) -> dict[str, str]:
    """The name of the file for lines of a part that cannot be read (`spaseq.spark.ingest.quarantine.counted`)."""
    return {part.path: f"{part.feed}-{part.order[0]}-{part.start}-{os.path.basename(part.path)}.tsv"}


def part_statements(
    feed: Feed, part: FeedPart, counters: Counters, *, empty_graphs: bool = False
) -> Iterator[Statement]:
    """The statements of a part, in order; `empty_graphs` as in `parse_statements`."""
    return parse_statements(
        part_chunks(part.path, part.start, part.end),
        format_of(part.path, feed.options.format),
        part.path,
        first_line=part.line,
        terms=Terms(),
        counters=counters,
        malformed=feed.options.malformed,
        empty_graphs=empty_graphs,
    )


def part_events(feed: Feed, part: FeedPart, counters: Counters) -> Iterator[GraphEvent]:
    """The events of a part, in order. Blank nodes of different parts have different labels."""
    options = file_options(part.path, feed.source, feed.options)
    scope = feed.source.iri if part.start == 0 else f"{feed.source.iri} {part.start}"
    statements = part_statements(feed, part, counters, empty_graphs=options.by_graph)
    return assemble(statements, options, stream=scope, source=part.path, counters=counters)
