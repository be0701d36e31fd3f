"""The bytes of a part of a file, for a task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from spaseq.core.errors import EventError
from spaseq.core.files.places import open_file
from spaseq.rdf import byte_chunks

_BLOCK: Final = 1 << 18


def part_chunks(path: str, start: int, end: int | None) -> Iterator[bytes]:
    """The bytes [`start`, `end`) of a file, which begin and end between lines; `end` None: all of it, decompressed.

    EventError where the file cannot be read or has fewer bytes.
    """
    if end is None:
        yield from byte_chunks(path)
        return
    try:
        with open_file(path) as file:
            yield from part_of(file, path, start, end)
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=path) from error


def part_of(file: BinaryIO, path: str, start: int, end: int) -> Iterator[bytes]:
    """`part_chunks` of the `file` that is open at `path`. OSError where it cannot be read."""
    file.seek(start)
    while start < end:
        block = file.read(min(_BLOCK, end - start))
        if not block:
            raise EventError(
                f"the file ends at byte {start:,}, and {end - start:,} more were planned to be read",
                source=path,
                hint="files of a stream only grow, at their ends, until they have been read",
            )
        start += len(block)
        yield block
