"""Files of text that grow, read as lines are added, and standard input as it comes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from io import BufferedReader
from stat import S_ISREG
from typing import IO, Final, cast

from spaseq.core.errors import EventError, OptionError

_HEAD: Final = 4096
_CHUNK: Final = 1 << 20
_TEXTS: Final = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class GrowingFile:
    """A CSV, TSV or JSON Lines file that is written to while it is read, or `-` for standard input.

    The present contents are read first, then every `poll` seconds the new ones; a line counts once it is whole. A file
    has no end, standard input ends when it is closed. Raises `OptionError` if the format cannot be read as it grows.
    """

    path: str
    poll: float = 0.2

    def __post_init__(self) -> None:
        if self.path != "-" and not self.path.lower().endswith(_TEXTS):
            raise OptionError(
                f"{self.path}: only text can be read as it grows",
                "a .csv, .tsv or .jsonl file that is not compressed, or - for standard input",
            )

    @property
    def name(self) -> str:
        """The name in errors."""
        return "<stdin>" if self.path == "-" else self.path


class Watched:
    """A file that is read as it grows: the number of bytes read, and a check that it is still the same file."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._head = b""
        self.read: int = 0

    def check(self, piece: bytes = b"") -> None:
        """Count a piece that was read, and check the file; to be called for each piece. Raises `EventError` if the file
        is another one, or no longer holds the bytes already read. New content would otherwise be lost, or read from its
        middle."""
        self._head += piece[: max(0, _HEAD - self.read)]
        self.read += len(piece)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            raise self._problem("the file is gone") from None
        begun = os.fstat(self._file.fileno())
        if not S_ISREG(begun.st_mode):  # a pipe that has a name
            return
        if (there.st_dev, there.st_ino) != (begun.st_dev, begun.st_ino):
            raise self._problem("the file was replaced by another")
        if there.st_size < self.read:
            raise self._problem(f"the file became shorter, it has {there.st_size:,} bytes")
        if os.pread(self._file.fileno(), len(self._head), 0) != self._head:
            raise self._problem("the file was written anew")

    def _problem(self, what: str) -> EventError:
        return EventError(
            f"{what} while it was followed: {self.read:,} bytes of it had been read",
            source=self._path,
            hint="a file that is followed only grows, at its end; what comes next goes to its end, or to another file",
        )


class GrowingBytes:
    """The bytes of a growing file in whole lines; see `spaseq.core.events.blocks.read_some` for `live`."""

    live: Final = True

    def __init__(self, source: GrowingFile, file: IO[bytes]) -> None:
        self._source = source
        self._file = file
        self._rest = b""
        self._watched = None if source.path == "-" else Watched(source.path, file)

    def read(self, size: int = -1) -> bytes:
        """The lines that have come, however long they are; waits for one. Empty at the end of standard input."""
        while True:
            piece = cast(BufferedReader, self._file).read1(_CHUNK)
            if self._watched is not None:
                self._watched.check(piece)
            self._rest += piece
            cut = self._rest.rfind(b"\n") + 1 if piece else 0
            if cut or (not piece and self._source.path == "-"):
                lines, self._rest = (self._rest[:cut], self._rest[cut:]) if cut else (self._rest, b"")
                return lines
            if not piece:
                time.sleep(self._source.poll)
