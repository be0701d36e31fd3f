"""Input files cut into parts that tasks can read at the same time.

A file of N-Triples or N-Quads that is not compressed is cut at byte offsets. A line belongs to the part in which it
*begins*: a reader skips to the first line that begins at or after its offset and reads on to the end of the line that
its last byte falls into. So the parts of a file have each line once, wherever the cuts fall. Any other file is one
part.

For messages a part must know the number of its first line; a short job that counts newlines finds it before
parsing begins (about a gigabyte a second and core).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import ceil
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from spaseq.errors import EventError, OptionError
from spaseq.rdf import StreamSource, byte_chunks, expand_files, format_of

__all__ = ["FilePart", "InputFile", "cut", "input_files", "number_lines", "part_chunks"]

_SMALLEST: Final = 1 << 20
_BLOCK: Final = 1 << 18
_COMPRESSED: Final = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the stream number `stream` (in the order of the FROM clause); `number` counts the files of all streams.

    `name` is the file as the user called it, for messages; `path` can be opened from any folder.
    """

    number: int
    stream: int
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class FilePart:
    """The lines of the file number `file` that begin in the bytes [`start`, `end`); `end` None: the whole file,
    decompressed.

    `first_line` is the number, from 1, of the first of them.
    """

    file: int
    name: str
    path: str
    start: int = 0
    end: int | None = None
    first_line: int = 1


def input_files(sources: Sequence[StreamSource]) -> list[InputFile]:
    """The files of `sources`, globs expanded, in order. OptionError for standard input: only the driver has it."""
    found: list[InputFile] = []
    for stream, source in enumerate(sources):
        for path in expand_files(source.files):
            if path == "-":
                raise OptionError("Spark cannot read standard input", "name a file, or use --engine local")
            found.append(InputFile(len(found), stream, path, str(Path(path).resolve())))
    return found


def cut(files: Sequence[InputFile], form: str | None, tasks: int, smallest: int = _SMALLEST) -> list[FilePart]:
    """Parts for `tasks` tasks of about equal work, none shorter than `smallest` bytes unless its file is."""
    sizes = [Path(file.path).stat().st_size for file in files]
    size = max(smallest, ceil(sum(sizes) / max(1, tasks)), 1)
    parts: list[FilePart] = []
    for file, length in zip(files, sizes, strict=True):
        splittable = format_of(file.path, form).lines and not file.path.endswith(_COMPRESSED)
        if not splittable:
            parts.append(FilePart(file.number, file.name, file.path))
            continue
        bounds = [*range(0, max(1, length - size // 2), size), length]
        parts += [FilePart(file.number, file.name, file.path, start, end) for start, end in pairwise(bounds)]
    return parts


def part_chunks(part: FilePart) -> Iterator[bytes]:
    """The bytes of the part's lines. EventError where the file cannot be read."""
    try:
        yield from byte_chunks(part.path) if part.end is None else _range(part.path, part.start, part.end)
    except EventError as error:
        raise EventError(error.problem, source=part.name, hint=error.hint) from error
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=part.name) from error


def _range(path: str, start: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        if start:
            file.seek(start - 1)
            file.readline()
        while (left := end - file.tell()) > 0:
            block = file.read(min(_BLOCK, left))
            if not block:
                return
            yield block if block.endswith(b"\n") else block + file.readline()


def number_lines(spark: SparkSession, parts: Sequence[FilePart]) -> list[FilePart]:
    """`parts`, in their order, with the numbers of their first lines. A job over the files that have several parts."""
    several = {part.file for part in parts if part.start}
    asked = [part for part in parts if part.file in several]
    if not asked:
        return list(parts)
    counts = spark.sparkContext.parallelize(asked, len(asked)).map(newlines_before_end).collect()
    numbered = iter(with_lines(asked, counts))
    return [next(numbered) if part.file in several else part for part in parts]


def with_lines(parts: Iterable[FilePart], newlines: Iterable[int]) -> Iterator[FilePart]:
    """`parts` of files that are cut, with the numbers of their first lines, given `newlines_before_end` of each."""
    for _, group in groupby(zip(parts, newlines, strict=True), key=lambda pair: pair[0].file):
        total = 0
        for part, count in group:
            yield replace(part, first_line=total + (2 if part.start else 1))
            total += count


def newlines_before_end(part: FilePart) -> int:
    """Newlines among the bytes [start - 1, end - 1): as many lines begin in the part (one more in a file's first)."""
    assert part.end is not None
    count = 0
    with open(part.path, "rb") as file:
        file.seek(max(0, part.start - 1))
        left = part.end - 1 - file.tell()
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            count += block.count(b"\n")
            left -= len(block)
    return count
