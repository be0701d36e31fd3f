"""Bytes of files, in blocks of whole lines; what the readers of text formats share."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from spaseq.errors import EventError

__all__ = ["Joined", "check_names", "clean", "decoded", "first_line", "line_blocks", "not_utf8", "read_some"]

_BLOCK: Final = 16 << 20


def read_some(stream: Any, size: int) -> bytes:
    """Up to `size` bytes, fewer only at the end; of a `live` stream what has come, none only at the end."""
    if getattr(stream, "live", False):
        return bytes(stream.read(size))
    parts: list[bytes] = []
    while size > 0 and (part := bytes(stream.read(size))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Joined(io.RawIOBase):
    """Bytes already read, and then the rest of the stream."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest
        self.live: bool = getattr(rest, "live", False)
        """Whether the rest comes bit by bit, in whole lines."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return self._head.read() + bytes(self._rest.read())
        part = self._head.read(size)
        return part if part else bytes(self._rest.read(size))


def decoded(line: bytes, name: str, record: int) -> str:
    """A line as text; `EventError` where it is not UTF-8."""
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise not_utf8(name, record) from None


def not_utf8(name: str, record: int) -> EventError:
    """The error for a line that is in another encoding."""
    return EventError("this is not UTF-8 text", source=name, record=record, hint="convert the file to UTF-8")


def check_names(names: Sequence[str], source: str, record: int | None = None) -> None:
    """Raise `EventError` if two columns have one name."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise EventError(f"two columns are called {twice!r}", source=source, record=record, attribute=twice)


def line_blocks(stream: Joined, quoted: bool) -> Iterator[bytes]:
    """The stream in blocks that end with a line; with `quoted`, not inside a quoted field."""
    rest = b""
    while part := read_some(stream, _BLOCK):
        rest += part
        if len(part) < _BLOCK and not stream.live:
            break
        cut = rest.rfind(b"\n") + 1
        quotes = rest.count(b'"', 0, cut) if quoted else 0
        while cut and quotes % 2:
            before = rest.rfind(b"\n", 0, cut - 1) + 1
            quotes -= rest.count(b'"', before, cut)
            cut = before
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def first_line(error: Exception) -> str:
    """What an error of a library says, for our own messages."""
    return clean(str(error))


def clean(message: str) -> str:
    """One line without the library's own prefixes."""
    return re.sub(r"\s+", " ", message.split("Detail:")[0]).strip().rstrip(".")[:300]
