"""Input files as chunks of bytes: names and globs, standard input, gzip, zstd, and the format by the extension."""

from __future__ import annotations

import glob
import gzip
import sys
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Final, Protocol, cast

import pyoxigraph
import zstandard

from spaseq.core.errors import EventError, OptionError
from spaseq.core.files.places import matching, open_file
from spaseq.core.watch import check

STDIN: Final = "-"
_CHUNK: Final = 1 << 20
COMPRESSED: Final = (".gz", ".zst")
_ZSTD: Final = 0xFD2FB528
_SKIPPABLE: Final = 0x184D2A5
_SEEN: Final = 4
"""Bytes at the beginning of a part of a zstd file that give its kind."""


@dataclass(frozen=True, slots=True)
class Format:
    """An RDF syntax: `name`, the parser's `code`, a statement a line (`lines`)?, can it name graphs (`named`)?"""

    name: str
    code: pyoxigraph.RdfFormat
    lines: bool = False
    named: bool = False


_NT: Final = Format("N-Triples", pyoxigraph.RdfFormat.N_TRIPLES, lines=True)
_NQ: Final = Format("N-Quads", pyoxigraph.RdfFormat.N_QUADS, lines=True, named=True)
_TRIG: Final = Format("TriG", pyoxigraph.RdfFormat.TRIG, named=True)
_TTL: Final = Format("Turtle", pyoxigraph.RdfFormat.TURTLE)
_N3: Final = Format("N3", pyoxigraph.RdfFormat.N3)
_XML: Final = Format("RDF/XML", pyoxigraph.RdfFormat.RDF_XML)
_JSON: Final = Format("JSON-LD", pyoxigraph.RdfFormat.JSON_LD, named=True)
_DOCUMENTS: Final = {
    "nt": _NT, "ntriples": _NT, "nq": _NQ, "nquads": _NQ, "trig": _TRIG, "ttl": _TTL, "turtle": _TTL, "n3": _N3,
    "rdf": _XML, "owl": _XML, "xml": _XML, "jsonld": _JSON, "json-ld": _JSON,
}  # fmt: skip
_STREAMS: Final = _DOCUMENTS | {"n3": _TTL}


def has_lines(path: str, form: Format) -> bool:
    """True if some of the file's bytes can be read by themselves: it has a statement a line, and is not compressed."""
    return form.lines and path != STDIN and not path.endswith(COMPRESSED)


def format_of(path: str, given: str | None = None, *, documents: bool = False) -> Format:
    """The format of the file `path`, or the one named `given`.

    It is N-Triples, N-Quads, TriG, Turtle, RDF/XML or JSON-LD; standard input is N-Quads by default, which includes
    N-Triples. `.n3` of a stream is read as Turtle, with `documents` as N3. Raises OptionError with the known
    extensions.
    """
    known = _DOCUMENTS if documents else _STREAMS
    if given is not None:
        if not isinstance(given, str) or given.lower() not in known:
            raise OptionError(f"format {given}: not known", "one of " + ", ".join(sorted(known)))
        return known[given.lower()]
    if path == STDIN:
        return _NQ
    name = Path(path)
    suffix = Path(name.stem).suffix if name.suffix in COMPRESSED else name.suffix
    found = known.get(suffix[1:].lower())
    if found is None:
        extensions = ", ".join("." + extension for extension in sorted(known))
        raise OptionError(
            f"{path}: cannot tell the format from the file's name",
            f"name it with one of {extensions} (and .gz or .zst after it)",
        )
    return found


def expand_files(files: Sequence[str]) -> tuple[str, ...]:
    """The files that the paths and globs in `files` stand for, in order, a glob's sorted by name.

    EventError for a file that is not there and a glob that matches nothing.
    """
    found: list[str] = []
    for path in files:
        if path == STDIN:
            found.append(path)
            continue
        try:
            matched = matching(path)
        except OSError as error:
            raise EventError(f"cannot read: {error.strerror or error}", source=path) from error
        if not matched:
            raise EventError("no file matches" if glob.has_magic(path) else "no such file", source=path)
        for name, size in matched.items():
            if size is None:
                hint = f"name the files in it: {name.rstrip('/')}/*.nq"
                raise EventError("a folder, not a file", source=name, hint=hint)
        found += matched
    return tuple(found)


def byte_chunks(path: str) -> Iterator[bytes]:
    """The content of `path`, decompressed, in pieces as they become available (so a pipe is read as it is written).

    Raises EventError if the file cannot be opened, is not compressed as its name implies, or ends too early.
    """
    try:
        yield from _open(path)
    except FileNotFoundError:
        raise EventError("no such file", source=path) from None
    except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise EventError(f"cannot decompress: {error}", source=path, hint="the file is cut off or damaged") from error
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=path) from error


def _open(path: str) -> Iterator[bytes]:
    if path == STDIN:
        yield from _pieces(cast(_Readable, sys.stdin.buffer))
    elif path.endswith(".gz"):
        with open_file(path) as packed, gzip.open(packed, "rb") as file:
            yield from _pieces(file)
    else:
        with cast(BufferedReader, open_file(path)) as file:
            yield from unzstd(_pieces(file)) if path.endswith(".zst") else _pieces(file)


class _Readable(Protocol):
    def read1(self, size: int = ..., /) -> bytes: ...


def _pieces(file: _Readable) -> Iterator[bytes]:
    while piece := file.read1(_CHUNK):
        check()
        yield piece


def unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """One zstd frame after another, in pieces of about 1 MB; unlike the library's reader it notices a cut frame.

    The decompressor is given a block at a time. It gives all output at once, and 64 kB can become 2 GB.
    """
    parts = _zstd_parts()
    left = next(parts)
    seen = b""
    frame = None
    for piece in pieces:
        made: list[bytes] = []
        at = size = 0
        while at < len(piece):
            part = piece[at : at + left]
            at, left, seen = at + len(part), left - len(part), (seen + part)[:_SEEN]
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            if out := frame.decompress(part):
                made.append(out)
                size += len(out)
            frame = None if frame.eof else frame
            while not left:
                left = parts.send(seen)
                seen = b""
            if size >= _CHUNK:
                yield b"".join(made)
                made, size = [], 0
        if made:
            yield b"".join(made)
    if frame is not None:
        raise EOFError("the compressed data ends too early")


def _zstd_parts() -> Generator[int, bytes, None]:
    """The number of bytes of each part of a zstd file (RFC 8878, 3.1), given the first bytes of the part before. No
    part holds more than one block, which is 128 kB decompressed."""
    while True:
        magic = int.from_bytes((yield 4), "little")
        if magic >> 4 == _SKIPPABLE:
            yield int.from_bytes((yield 4), "little")
            continue
        if magic != _ZSTD:
            yield _CHUNK  # which the decompressor refuses
            continue
        about = (yield 1)[0]
        alone = about >> 5 & 1
        yield 1 - alone + (0, 1, 2, 4)[about & 3] + (alone, 2, 4, 8)[about >> 6]
        last = False
        while not last:
            block = int.from_bytes((yield 3), "little")
            last = bool(block & 1)
            yield 1 if block >> 1 & 3 == 1 else block >> 3
        if about & 4:
            yield 4
