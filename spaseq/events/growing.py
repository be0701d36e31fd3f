"""Files of text that grow, read as lines are added, and standard input as it comes."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from io import BufferedReader
from typing import IO, Final, cast

from spaseq.errors import EventError, OptionError

__all__ = ["GrowingBytes", "GrowingFile"]

_CHUNK: Final = 1 << 20
_TEXTS: Final = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class GrowingFile:
    """A CSV, TSV or JSON Lines file that is written to while it is read, or `-` for standard input.

    What is there is read first, then every `poll` seconds what has come; a line counts once it is whole. A file has no
    end, standard input ends when it is closed. Raises `OptionError` where the format cannot be read as it grows.
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
        """What errors call it."""
        return "<stdin>" if self.path == "-" else self.path


class GrowingBytes:
    """The bytes of a growing file in whole lines; see `spaseq.events.blocks.read_some` for `live`."""

    live: Final = True

    def __init__(self, source: GrowingFile, file: IO[bytes]) -> None:
        self._source = source
        self._file = file
        self._rest = b""
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        """The lines that have come, however long they are; waits for one. Empty at the end of standard input."""
        while True:
            piece = cast(BufferedReader, self._file).read1(_CHUNK)
            self._read += len(piece)
            self._rest += piece
            cut = self._rest.rfind(b"\n") + 1 if piece else 0
            if cut or (not piece and self._source.path == "-"):
                lines, self._rest = (self._rest[:cut], self._rest[cut:]) if cut else (self._rest, b"")
                return lines
            if not piece:
                self._wait()

    def _wait(self) -> None:
        if os.stat(self._source.path).st_size < self._read:
            raise EventError("the file became shorter while it was followed", source=self._source.name)
        time.sleep(self._source.poll)
