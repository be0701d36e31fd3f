"""Bytes of files in blocks of whole lines; the readers of text formats share them."""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from spaseq.core.errors import EventError
from spaseq.core.events.unfinished import Unfinished

_BLOCK: Final = 16 << 20


def read_some(stream: Any, size: int) -> bytes:
    """Up to `size` bytes, fewer only at the end. From a `live` stream: the bytes that have arrived, none only at the
    end.
    """
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
        """True if the rest arrives piece by piece, in whole lines."""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return self._head.read() + bytes(self._rest.read())
        part = self._head.read(size)
        return part if part else bytes(self._rest.read(size))


class Recoded:
    """A stream of bytes in some encoding, read as UTF-8. Raises `EventError` for bytes that are not in it."""

    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding, self._name, self._line = encoding, name, 1
        self.live: bool = getattr(stream, "live", False)

    def read(self, size: int = -1) -> bytes:
        """About `size` bytes; none at the end alone."""
        while True:
            piece = bytes(self._stream.read(size))
            try:
                text = self._decoder.decode(piece, final=not piece)
            except UnicodeError as error:
                at = self._line + piece[: getattr(error, "start", 0)].count(b"\n")
                hint = 'encoding="NAME" names another one: utf-8, utf-16, latin-1, windows-1252'
                problem = f"this is not {self._encoding} text"
                raise EventError(problem, source=self._name, record=at, hint=hint) from None
            self._line += text.count("\n")
            if text or not piece:
                return text.encode()


def to_arrow(data: bytes) -> pa.BufferReader:
    """The bytes for a reader of pyarrow, copied to memory of its own.

    Its threads may drop what they read when the process already ends. If Python owned it, they would ask for Python's
    lock. Python then ends such a thread, and that aborts the process ("terminate called without an active exception").
    With pyarrow 26 and Python 3.11, three of 4,000 processes that had read a small file ended so.
    """
    memory = pa.BufferOutputStream()
    memory.write(data)
    return pa.BufferReader(memory.getvalue())


def decode(line: bytes, name: str, record: int) -> str:
    """A line as text. Raises `EventError` if it is not UTF-8."""
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise not_utf8(name, record) from None


def not_utf8(name: str, record: int) -> EventError:
    """The error for a line that is in another encoding."""
    hint = 'encoding="latin-1" (or windows-1252, utf-16, …) reads another encoding; or convert the file to UTF-8'
    return EventError("this is not UTF-8 text", source=name, record=record, hint=hint)


def check_names(names: Sequence[str], source: str, record: int | None = None) -> None:
    """Raise `EventError` if two columns have one name."""
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise EventError(f"two columns are called {twice!r}", source=source, record=record, attribute=twice)


def line_blocks(stream: Joined, name: str, quote: bytes = b"") -> Iterator[bytes]:
    """The stream in blocks that end with a line; if there is a `quote`, not inside a field between two.

    Errors as of `Unfinished`."""
    rest = Unfinished(name)
    odd = False  # inside a quoted field at the start of the part
    while part := read_some(stream, _BLOCK):
        if len(part) < _BLOCK and not stream.live:
            rest.add(part)
            break
        cut = _cut(part, odd, quote)
        if cut:
            yield rest.take(part[:cut])
            part, odd = part[cut:], False
        odd = quote != b"" and (part.count(quote) + odd) % 2 == 1
        rest.add(part)
    if rest.size:
        yield rest.take()


def _cut(part: bytes, odd: bool, quote: bytes) -> int:
    """The offset behind the last whole line of a part, 0 if no line ends in it. Line ends between two of `quote` do not
    count; the part begins in such a field if `odd`."""
    cut = part.rfind(b"\n") + 1
    quotes = part.count(quote, 0, cut) + odd if quote else 0
    while cut and quotes % 2:
        last = part.rfind(quote, 0, cut)
        before = part.rfind(b"\n", 0, last) + 1 if last >= 0 else 0
        quotes -= part.count(quote, before, cut)
        cut = before
    return cut


def first_line(error: Exception) -> str:
    """The first line of a library's error, for our own messages."""
    return clean(str(error))


def clean(message: str) -> str:
    """One line without the library's own prefixes."""
    return re.sub(r"\s+", " ", message.split("Detail:")[0]).strip().rstrip(".")[:300]
