"""What a stream of RDF files has given so far, as an offset, and what comes next, as parts for tasks.

A `Feed` is one named stream: files that appear in a folder, in the order of their names. Its offset is the place where
reading goes on: a file, a byte where an event begins, the number of the line there. So an offset stays small however
many files there are, and the same two offsets give the same events whenever they are read (the files' bytes must not
change; a file may grow at its end where the feed is `growing`).

The rules that writers of files keep: a new file's name sorts behind those there before; without `growing` a file is
complete when it appears (write it elsewhere and move it there), with it a file is complete when the next one appears.
A file that appears in front is an error, not silently left out.

Files of lines are cut where events begin (`spaseq.spark.boundaries`): for tasks, and for `max_bytes` a batch. Others
(TriG, Turtle, compressed ones, events of N triples) are read whole.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from spaseq.errors import EventError, OptionError
from spaseq.rdf import StreamOptions, StreamSource, file_options, format_of
from spaseq.spark.boundaries import first_boundary, last_boundary, newlines

__all__ = ["Feed", "FeedPart", "Listing", "Place", "advance", "listing", "parts_between"]

Listing = dict[str, int]
"""Files with their sizes in bytes."""

_COMPRESSED: Final = (".gz", ".zst")
_SMALLEST: Final = 1 << 20
"""Bytes below which a part is not cut for another task."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream to be read: `number` is its place among the streams of the query.

    `growing`: files may grow. `whole`: files are not cut. `max_bytes`, `max_files`: the most for one batch (0: no
    limit; at least one event or one file that cannot be cut).
    """

    number: int
    source: StreamSource
    options: StreamOptions
    growing: bool = False
    whole: bool = False
    max_bytes: int = 0
    max_files: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on: behind `files` files of which `name` is the last one begun, at `byte` of it, which is the
    begin of line `line`. `closed`: nothing more comes, and that has been said."""

    name: str = ""
    files: int = 0
    byte: int = 0
    line: int = 1
    closed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As Spark keeps it."""
        return {"name": self.name, "files": self.files, "byte": self.byte, "line": self.line, "closed": self.closed}

    @staticmethod
    def of(value: dict[str, Any]) -> Place:
        """The inverse of `to_dict`."""
        return Place(value["name"], value["files"], value["byte"], value["line"], bool(value["closed"]))


@dataclass(frozen=True, slots=True)
class FeedPart:
    """Whole events for one task: the bytes [`start`, `end`) of a file (`end` None: all of it, decompressed), `line` the
    number of the first line. `order` places the parts of a stream. `last`: the stream ends here (then no file)."""

    feed: int
    order: tuple[int, int]
    path: str
    start: int
    end: int | None
    line: int
    last: bool = False


def listing(feed: Feed) -> Listing:
    """The files that are there now."""
    return {name: _size(name) for name in _files(feed)}


def advance(
    feed: Feed, start: Place, *, limited: bool = True, closing: bool = False, among: Listing | None = None
) -> Place:
    """The place up to which the next batch may read. The same as `start` where there is nothing new.

    `limited` False: as far as there is something, whatever the limits. `closing`: the files will not grow, so the last
    event is complete; and where all was read the place is `closed`. `among`: files that came after this listing was
    taken, or what was added to others, do not count.
    """
    if start.closed:
        return start
    among = listing(feed) if among is None else among
    names = sorted(among)
    _check_order(feed, names, start)
    names = [name for name in names if name >= start.name]
    place, budget, count = start, feed.max_bytes if limited else 0, 0
    for index, name in enumerate(names):
        complete = closing or not feed.growing or index + 1 < len(names)
        if name != place.name:
            if limited and feed.max_files and count == feed.max_files:
                return place
            if place.name and _cuttable(feed, place.name) and place.byte < among.get(place.name, 0):
                return place
            place = Place(name, place.files + 1)
        before = place
        place = _further(feed, place, among[name], complete, budget)
        count += place != before
        if budget:
            budget -= place.byte - before.byte
            if budget <= 0:
                return place
    if closing and place == start:
        return Place(place.name, place.files, place.byte, place.line, True)
    return place


def _files(feed: Feed) -> list[str]:
    """The stream's files, by name."""
    found: set[str] = set()
    for pattern in feed.source.files:
        if os.path.isdir(pattern):
            raise EventError("a folder, not a file", source=pattern, hint=f"name its files: {pattern.rstrip('/')}/*.nq")
        if glob.has_magic(pattern):
            found.update(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
        elif os.path.exists(pattern):
            found.add(pattern)
    return sorted(found)


def _check_order(feed: Feed, names: Sequence[str], start: Place) -> None:
    before = sum(name <= start.name for name in names)
    if start.name and before > start.files:
        raise EventError(
            f"{before} files are named up to {os.path.basename(start.name)}, and there were {start.files} when it "
            "was read: one appeared in front of those already read",
            source=feed.source.iri,
            hint="a stream's files are read in the order of their names: name a new one behind the others",
        )


def _cuttable(feed: Feed, name: str) -> bool:
    kind = file_options(name, feed.source, feed.options).event_by
    lines = format_of(name, feed.options.format).lines and not name.endswith(_COMPRESSED)
    return lines and not feed.whole and kind is not None and kind.kind in ("graph", "subject")


def _size(name: str) -> int:
    try:
        return os.stat(name).st_size
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=name) from error


def _further(feed: Feed, place: Place, size: int, complete: bool, budget: int) -> Place:
    """As far into the file of `place`, which has `size` bytes, as may be read."""
    if not _cuttable(feed, place.name):
        if feed.growing and not complete:
            raise OptionError(
                f"{place.name}: a file that grows must be N-Triples or N-Quads, uncompressed, with an event a graph or "
                "a subject",
                "put files in place when they are complete, without growing",
            )
        return Place(place.name, place.files, size, 1)
    with open(place.name, "rb") as file:
        end = size if complete else last_boundary(file, place.byte, size)
        if budget and end - place.byte > budget:
            end = first_boundary(file, place.byte + budget, end)
        line = place.line + newlines(file, place.byte, end)
    return Place(place.name, place.files, end, line)


def parts_between(feed: Feed, start: Place, end: Place, tasks: int, smallest: int = _SMALLEST) -> list[FeedPart]:
    """Parts of about equal length, for `tasks` tasks, that hold what lies between two places."""
    if end.closed:
        return [] if start.closed else [FeedPart(feed.number, (end.files + 1, 0), end.name, 0, 0, 1, last=True)]
    names = [name for name in _files(feed) if start.name <= name <= end.name]
    spans = [(name, *_span(feed, name, start, end)) for name in names]
    total = sum(high - low for _, low, high in spans)
    size = max(smallest, -(-total // max(1, tasks)))
    parts: list[FeedPart] = []
    for name, low, high in spans:
        number = end.files - sum(name < other for other in names)
        if not _cuttable(feed, name):
            if low == 0 and name != start.name:
                parts.append(FeedPart(feed.number, (number, 0), name, 0, None, 1))
            continue
        line = start.line if name == start.name else 1
        with open(name, "rb") as file:
            while low < high:
                cut = high if high - low <= size * 1.5 else first_boundary(file, low + size, high)
                parts.append(FeedPart(feed.number, (number, low), name, low, cut, line))
                line += newlines(file, low, cut)
                low = cut
    return parts


def _span(feed: Feed, name: str, start: Place, end: Place) -> tuple[int, int]:
    low = start.byte if name == start.name else 0
    return low, end.byte if name == end.name else _size(name)
