"""A log in a file as a source, and a file of JSON Lines as a sink. They need no server, and no other package."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.growing import Watched
from spaseq.live.delivery import Delivery
from spaseq.live.payloads import ID, Decode, OnBad, events_of, json_bytes, json_lines

_PAUSE: Final = 0.02
_HEAD: Final = 4096
_PIECE: Final = 1 << 16
"""Bytes of a batch. States are taken between batches, so a small one loses less work with a crash."""
_LONGEST: Final = 1 << 26
"""Bytes of a line."""


class LogSource:
    """The lines of a file that only grows, as they are added; a position is a number of bytes.

    Each piece of whole lines is a payload for `decode`. Without `follow` it ends at the end of the file. Raises
    `EventError` if the file becomes shorter or another file takes its place, and for a line of more than 64 MB.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        follow: bool = True,
        decode: Decode = json_lines,
        on_bad: OnBad | None = None,
        pause: float = _PAUSE,
    ) -> None:
        """`on_bad` is called with a line that cannot be read, which is dropped then. `pause`: seconds between two looks
        at the file."""
        self._path = os.fspath(path)
        self._follow = follow
        self._decode = decode
        self._on_bad = on_bad
        self._pause = pause
        self._position = 0
        self.idle: bool = False
        """True at the end of the file."""

    async def seek(self, position: Any) -> None:
        """Begin at a byte. `OptionError` if the file does not reach to there."""
        try:
            size = os.stat(self._path).st_size
        except OSError as error:
            raise self._unreadable(error) from None
        if type(position) is not int or not 0 <= position <= size:
            problem = f"{self._path} has {size:,} bytes, and the state covers it up to {position!r}"
            raise OptionError(problem, "it is another file, or lost its end; without a state it is read from its start")
        self._position = position

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self._deliveries()

    async def _deliveries(self) -> AsyncIterator[Delivery]:
        with self._open() as file:
            watched = Watched(self._path, file)
            self._skip(file, watched)
            rest = b""
            while True:
                piece = file.read(_PIECE)
                watched.check(piece)
                if piece:
                    self.idle = False
                    cut = piece.rfind(b"\n") + 1
                    if not cut:
                        rest += piece
                        if len(rest) > _LONGEST:
                            raise EventError("a line has more than 64 MB", source=self._path)
                        continue
                    lines, rest = rest + piece[:cut], piece[cut:]
                    start, self._position = self._position, self._position + len(lines)
                    yield Delivery(self._events(lines, start), self._position)
                    await asyncio.sleep(0)
                elif self._follow:
                    self.idle = True
                    await asyncio.sleep(self._pause)
                else:
                    if rest:
                        yield Delivery(self._events(rest, self._position), self._position + len(rest))
                    return

    def _open(self) -> Any:
        try:
            return open(self._path, "rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> OptionError:
        return OptionError(f"cannot read {self._path}: {error.strerror}", "a log is there before it is read")

    def _skip(self, file: BinaryIO | Any, watched: Watched) -> None:
        """Go to the position; the file's start is read, for the checks."""
        watched.check(file.read(min(self._position, _HEAD)))
        file.seek(self._position)
        watched.read = self._position

    def _events(self, lines: bytes, start: int) -> list[Any]:
        if self._on_bad is None:
            return events_of(lines, self._decode, None, f"{self._path}, from byte {start}")
        found: list[Any] = []
        for line in lines.splitlines(keepends=True):
            found += events_of(line, self._decode, self._on_bad, f"{self._path}, byte {start}")
            start += len(line)
        return found


class FileSink:
    """A file of JSON Lines, a record a line, which knows ids: a record whose id is in the file is dropped.

    Each record is on the disk when `send` returns, which takes milliseconds. Without `sync` the system has it: it is
    safe from a crash of the process, not of the machine. A line that a crash left unfinished is removed when the
    file is opened. `known`: the latest ids that are held, 100 bytes each.
    """

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = True, known: int = 1_000_000) -> None:
        """Opens the file, which is made if it is not there. `OSError` if that is impossible."""
        self._ids: dict[str, None] = {}
        self._known = known
        self._sync = sync
        path = Path(path)
        whole = 0
        with suppress(FileNotFoundError), path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                with suppress(ValueError, AttributeError):  # a line of another writer
                    self._remember(json.loads(line).get(ID))
        self._file = path.open("ab")
        if self._file.tell() > whole:
            self._file.truncate(whole)

    async def send(self, record: Mapping[str, Any], *, id: str | None = None) -> None:
        """Write the record, with its id as the member `match_id`, unless that is known."""
        if id is not None and id in self._ids:
            return
        self._file.write(json_bytes(record if id is None else {**record, ID: id}) + b"\n")
        self._file.flush()
        if self._sync:
            os.fsync(self._file.fileno())
        self._remember(id)

    def _remember(self, id: Any) -> None:
        if isinstance(id, str):
            self._ids[id] = None
            if len(self._ids) > self._known:
                del self._ids[next(iter(self._ids))]

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()
