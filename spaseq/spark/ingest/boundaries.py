"""Where a file of N-Triples or N-Quads may be cut without cutting an event in two.

Each statement has an *owner*: in N-Quads its graph, or, in the default graph, its subject, as such a statement gives
the graph of that name its time; in N-Triples its subject. A cut falls only where the owner changes, so the statements
of an event graph, with those beside it about it, stay together. What this does not allow: times of many graphs in one
block in front of them all; such files are not to be cut (`whole` in `spaseq.spark.ingest.feed`).

A blank node outside of named graphs may belong to the subject before it or to the one behind it
(`spaseq.rdf.columns.drafts`). So beside one a cut falls only in front of an IRI, other than the last one before, that
does not point at a blank node. Between two such places there may be several events.

Events of N triples each are told by counting and have no such place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

_STATEMENT: Final = re.compile(
    rb"""\s*(<[^>]*>|_:[^\s<>"]+)\s*<[^>]*>\s*"""
    rb"""(?:<<\((?:[^"]|"(?:[^"\\]|\\.)*")*?\)>>|<[^>]*>|(_:[^\s<>"]+)|"(?:[^"\\]|\\.)*"(?:\^\^<[^>]*>|@[^\s.<_]+)?)\s*"""
    rb"""(<[^>]*>|_:[^\s<>"]+)?\s*\."""
)
_BLOCK: Final = 1 << 18


class _Owners:
    """Tells, line by line, where an event begins for certain."""

    __slots__ = ("_before", "_iri", "_named")

    def __init__(self) -> None:
        self._before: bytes | None = None
        self._named = False  # was that a graph
        self._iri: bytes | None = None  # the last subject that is an IRI, since the last graph

    def begins(self, line: bytes) -> bool:
        """Whether an event begins with this line; not with a comment, a blank line, or what is no statement."""
        found = _STATEMENT.match(line)
        if found is None:
            return False
        subject, pointed, graph = found.groups()
        mine, before, iri = graph or subject, self._before, self._iri
        blank = graph is None and subject.startswith(b"_:")
        if before is None:
            begins = False
        elif graph is not None or self._named:
            begins = mine != before
        elif before.startswith(b"_:"):
            begins = not blank and pointed is None and iri is not None and mine != iri
        else:
            begins = not blank and mine != before
        self._before, self._named = mine, graph is not None
        self._iri = None if graph is not None else iri if blank else mine
        return begins


def is_empty(file: BinaryIO, end: int) -> bool:
    """Whether the file has nothing but blank lines and comments before `end`. Reads to the first other line."""
    file.seek(0)
    return all(line.lstrip()[:1] in (b"", b"#") for line in _lines(file, end))


def first_boundary(file: BinaryIO, start: int, end: int) -> int:
    """The first place at or behind `start` where an event begins; `end` if there is none before it.

    Reads on from `start` to the end of the event there: O(its length).
    """
    file.seek(max(0, start - 1))
    if start:
        file.readline()  # the rest of the line that `start` falls into
    place = file.tell()
    owners = _Owners()
    for line in _lines(file, end):
        if owners.begins(line):
            return place
        place += len(line)
    return end


def last_boundary(file: BinaryIO, start: int, end: int) -> int:
    """The last place in (`start`, `end`) where an event begins; `start` if there is none.

    `start` is such a place. What follows the last one may still grow, so it is not to be read yet.
    Reads back from `end` in blocks: O(length of the last event).
    """
    size = _BLOCK
    while True:
        low = max(start, end - size)
        found = _last_after(file, low, end, whole=low == start)
        if found is not None or low == start:
            return start if found is None else found
        size *= 4


def _last_after(file: BinaryIO, low: int, end: int, *, whole: bool) -> int | None:
    file.seek(low)
    if not whole:
        file.readline()
    place = file.tell()
    owners = _Owners()
    found: int | None = None
    for line in _lines(file, end):
        if line.endswith(b"\n") and owners.begins(line):  # the last line may not be there in full
            found = place
        place += len(line)
    return found


def _lines(file: BinaryIO, end: int) -> Iterator[bytes]:
    """The lines from the file's place up to `end`, the last one cut off there."""
    left = end - file.tell()
    while left > 0 and (line := file.readline(left)):
        left -= len(line)
        yield line


def newlines(file: BinaryIO, start: int, end: int) -> int:
    """Newlines in the bytes [`start`, `end`)."""
    file.seek(start)
    count, left = 0, end - start
    while left > 0 and (block := file.read(min(_BLOCK, left))):
        count += block.count(b"\n")
        left -= len(block)
    return count
