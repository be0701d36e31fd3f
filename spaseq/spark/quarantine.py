"""Lines that cannot be read, put aside: the statements of the others, and a file with what was left out.

The file is written once its part is read, under a name that says which part it is, so a part that is read again after a
failure writes the same file again. Each of its lines is a line's number, a tab, and the line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from spaseq.errors import EventError, OptionError
from spaseq.rdf import Counters, Format, Statement, Terms, parse_statements

__all__ = ["Aside", "check_folder", "good_statements"]


@dataclass(frozen=True, slots=True)
class Aside:
    """Where the lines of one part go that cannot be read."""

    folder: str
    name: str

    def put(self, lines: Iterable[str]) -> None:
        """Writes the file, whole or not at all. OptionError where that cannot be done."""
        path = os.path.join(self.folder, self.name)
        try:
            os.makedirs(self.folder, exist_ok=True)
            temporary = f"{path}.{os.getpid()}"
            with open(temporary, "w", encoding="utf-8") as file:
                file.writelines(lines)
            os.replace(temporary, path)
        except OSError as error:
            with suppress(OSError):
                os.unlink(f"{path}.{os.getpid()}")
            raise OptionError(f"cannot write {path}: {error.strerror or error}", "quarantine=FOLDER") from error


def check_folder(folder: str) -> None:
    """OptionError where a folder of this machine cannot be made."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OptionError(f"quarantine {folder} cannot be used: {error.strerror or error}", "name a folder") from None


def good_statements(
    chunks: Iterable[bytes], form: Format, source: str, line: int, counters: Counters, aside: Aside
) -> Iterator[Statement]:
    """The statements of the lines that are none the worse; the others are counted as malformed and put aside.

    A block of lines (of 256 KB, `byte_chunks`) is looked at again behind each of its bad lines.
    """
    terms = Terms()
    bad: list[str] = []
    for block in _blocks(chunks):
        rest = block
        while rest:
            try:
                yield from parse_statements([rest], form, source, first_line=line, terms=terms, counters=counters)
                line += rest.count(b"\n")
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
        aside.put(bad)


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes cut behind newlines only."""
    open_line: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join((*open_line, chunk[:cut]))
            open_line = []
        if cut < len(chunk):
            open_line.append(chunk[cut:])
    if open_line:
        yield b"".join(open_line)
