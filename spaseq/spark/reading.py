"""A part of a feed as statements and as events, with what cannot be read dropped, counted or put aside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from spaseq.errors import EventError, OptionError
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

__all__ = ["part_events", "part_statements"]


def part_statements(feed: Feed, part: FeedPart, counters: Counters, quarantine: str = "") -> Iterator[Statement]:
    """The statements of a part, in order. `quarantine`: the folder for lines that cannot be read ("": nowhere)."""
    file = FilePart(part.feed, part.path, part.path, part.start, part.end, part.line)
    form = format_of(part.path, feed.options.format)
    chunks: Iterable[bytes] = part_chunks(file)
    if quarantine and form.lines:
        return _good_lines(feed, part, chunks, counters, quarantine)
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


def _good_lines(
    feed: Feed, part: FeedPart, chunks: Iterable[bytes], counters: Counters, folder: str
) -> Iterator[Statement]:
    """Statement by statement; a line that is none goes to a file of the folder, written once the part is read.

    A part that is read again after a failure writes the same file again.
    """
    data = b"".join(chunks)
    form = format_of(part.path, feed.options.format)
    terms = Terms()
    bad: list[str] = []
    line = part.line
    rest = data
    while rest:
        try:
            yield from parse_statements([rest], form, part.path, first_line=line, terms=terms, counters=counters)
            break
        except EventError as error:
            if error.record is None:
                raise
            lines = rest.split(b"\n", error.record - line + 1)
            bad.append(f"{error.record}\t{lines[error.record - line].decode('utf-8', 'replace')}\n")
            counters.malformed += 1
            rest = lines[-1] if len(lines) > error.record - line + 1 else b""
            line = error.record + 1
    if bad:
        _put_aside(folder, f"{part.feed}-{part.order[0]}-{part.start}-{os.path.basename(part.path)}.tsv", bad)


def _put_aside(folder: str, name: str, lines: list[str]) -> None:
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(f"{path}.{os.getpid()}")
        raise OptionError(f"cannot write {path}: {error.strerror or error}", "malformed=quarantine:FOLDER") from error
