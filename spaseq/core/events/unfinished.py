"""The parts read so far of an unfinished line or record: bounded, and joined once."""

from __future__ import annotations

from typing import Final

from spaseq.core.errors import EventError
from spaseq.core.watch import available_bytes, check, reserve, resident_bytes, to_hold

LONGEST: Final = 1 << 28
"""Bytes that a record of tuples or a statement of a document has at most: each is in memory as a whole."""
_COPIES: Final = 4
"""Copies of a long line in memory at one time, about: its parts, the line, and the values made of it."""

_LOOK: Final = 1 << 19
"""Bytes that a parser is given between two looks at the memory, of which it may take some hundred for each."""


class Unfinished:
    """The parts of a line of `source` whose end has not been read; it has at most `most` bytes. The size of a
    compressed file does not bound the decompressed line, so memory is checked before a part is added."""

    __slots__ = ("_most", "_parts", "_source", "size")

    def __init__(self, source: str, most: int = LONGEST) -> None:
        self._most = most
        self._source = source
        self._parts: list[bytes] = []
        self.size: int = 0

    def add(self, part: bytes) -> None:
        """Raises `EventError` for a line that is too long, `LimitReached` if it would be beyond the limits."""
        check()
        self.size += len(part)
        if self.size > self._most:
            raise too_long("line", self._source, self._most)
        if self._parts:
            to_hold(_COPIES * self.size)
        if part:
            self._parts.append(part)

    def take(self, end: bytes = b"") -> bytes:
        """The whole line, `end` being its last part; nothing of it is left."""
        if not self._parts:
            return end
        whole = b"".join((*self._parts, end))
        self._parts.clear()
        self.size = 0
        return whole


class Fed:
    """The size of the input that a parser of the document `source` was given; the parser keeps the input it has not
    parsed yet. `since`: the bytes since it gave its last statement, to be set to 0 with each; `all`: all bytes."""

    __slots__ = ("_look", "_source", "_taken", "all", "since")

    def __init__(self, source: str) -> None:
        self._source = source
        self._taken = resident_bytes()
        self._look = _LOOK
        self.since: int = 0
        self.all: int = 0

    def add(self, size: int) -> None:
        """So many bytes are given. Raises `EventError` for a statement longer than LONGEST, `LimitReached` beyond the
        limits, `MemoryError` if the parser, which may take as much again as it has taken, would not get it."""
        self.since += size
        self.all += size
        if self.all < self._look:
            return
        self._look = self.all + _LOOK
        if self.since > LONGEST:
            raise too_long("statement", self._source, LONGEST)
        check()
        reserve(_COPIES * self.since if self.since > _LOOK else 0)
        if available_bytes() < resident_bytes() - self._taken:
            raise MemoryError


def too_long(what: str, source: str, most: int, record: int | None = None) -> EventError:
    """The error for a line, a record, a term or a statement of more than `most` bytes."""
    hint = "the file is damaged, or made to fill the memory"
    return EventError(f"a {what} of more than {most:,} bytes", source=source, record=record, hint=hint)
