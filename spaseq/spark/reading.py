"""A part of a feed as statements and as events, with what cannot be read dropped, counted or put aside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from spaseq.rdf import (
    Counters,
    GraphEvent,
    Statement,
    Terms,
    assemble,
    file_options,
    format_of,
    parse_statements,
)
from spaseq.spark.feed import Feed, FeedPart
from spaseq.spark.parts import FilePart, part_chunks
from spaseq.spark.quarantine import Aside, good_statements

__all__ = ["part_events", "part_statements"]


def part_statements(feed: Feed, part: FeedPart, counters: Counters, quarantine: str = "") -> Iterator[Statement]:
    """The statements of a part, in order. `quarantine`: the folder for lines that cannot be read ("": nowhere)."""
    file = FilePart(part.feed, part.path, part.path, part.start, part.end, part.line)
    form = format_of(part.path, feed.options.format)
    chunks: Iterable[bytes] = part_chunks(file)
    if quarantine and form.lines:
        aside = Aside(quarantine, f"{part.feed}-{part.order[0]}-{part.start}-{os.path.basename(part.path)}.tsv")
        return good_statements(chunks, form, part.path, part.line, counters, aside)
    policy = feed.options.malformed
    return parse_statements(
        chunks, form, part.path, first_line=part.line, terms=Terms(), counters=counters, malformed=policy
    )


def part_events(feed: Feed, part: FeedPart, counters: Counters, quarantine: str = "") -> Iterator[GraphEvent]:
    """The events of a part, in order. Blank nodes of different parts have different labels."""
    statements = part_statements(feed, part, counters, quarantine)
    options = file_options(part.path, feed.source, feed.options)
    scope = feed.source.iri if part.start == 0 else f"{feed.source.iri} {part.start}"
    return assemble(statements, options, stream=scope, source=part.path, counters=counters)
