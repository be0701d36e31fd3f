"""Knowledge kept as a file, `NAME.spaseq-kb`: the arrays of a graph as they are in memory, mapped when it is opened.

Opening a file reads its header and its list of predicates. The rest is read as a query uses it. It is numbered terms
with their table of hashes, rows by predicate, and for each predicate its rows in order of subjects and of objects
(`GraphColumns`, `TermTable`). So a start does not depend on the size of the knowledge, processes share the memory, and
unused parts stay on the disk.

A file is the header, and *sections*, arrays that begin at multiples of 64 bytes. The header is `_HEAD` and a text of
JSON. `_HEAD` has the magic number, the version of the format, and the byte order of the arrays. It also has the sizes
of the header's text and of the file, and a BLAKE2b of the header. The text has the sections with their places, counts
and hashes, and the sources of the file. `VERSION` changes with the meaning of the arrays: the layout, the bytes of
terms, the function that hashes them. The same sources give the same file.

*Trust.* `open_kept` checks the header by its hash, and that all sections lie in the file and fit together in their
counts. It does not read the contents of sections. They are checked on use, so that a damaged or a forged file is an
error, or gives false answers, and never makes a kernel read outside of the arrays. `find_below` and `find_rows` check
by themselves, everything else in `GraphColumns` and `TermTable`. `check_kept` reads the whole file and compares all
hashes. A file that is cut while it is mapped ends the process, as with any mapped file; so files are written beside
their place and renamed.

Rejected: SQLite, LMDB or Parquet (terms would be read into arrays again, the cost that the file is to save). Also
rejected: a cache beside the sources that makes itself (it may be stale, and the place may not be writable).
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy as np

from spaseq.core.errors import EventError, OptionError
from spaseq.core.files.beside import write_beside
from spaseq.core.files.places import is_elsewhere, local_path, open_file
from spaseq.core.jit import attempt_rows
from spaseq.rdf.columns.kernels import layout
from spaseq.rdf.columns.model import TermTable, damaged_file
from spaseq.rdf.columns.triples import GraphColumns

EXTENSION: Final = ".spaseq-kb"
MAGIC: Final = b"SPASEQKB"
VERSION: Final = 1
_HEAD: Final = struct.Struct("<8sIIQQ32s")
_ORDERS: Final = {"little": 1, "big": 2}
_ALIGNED: Final = 64
_SECTIONS: Final = {
    "text": np.uint64, "start": np.int64, "length": np.int32, "kind": np.uint8, "lexical": np.int32,
    "datatype": np.int32, "hashes": np.uint64, "slots": np.int32, "rows": np.int32, "predicates": np.int32,
    "begins": np.int64, "by_subject": np.int32, "by_object": np.int32,
}  # fmt: skip
_TERMS: Final = ("start", "length", "kind", "lexical", "datatype", "hashes")
Source = tuple[str, int | None]
"""The name of a file of which knowledge was made, as it was given, and its bytes, if that is known."""


@dataclass(frozen=True, slots=True)
class KeptKnowledge:
    """The contents of a file. `triples`: their number. For each predicate its IRI and the number of its triples, the
    most frequent first. `sources`: those it was made from. `size` in bytes."""

    path: str
    size: int
    triples: int
    predicates: tuple[tuple[str, int], ...]
    sources: tuple[Source, ...]


def is_kept(path: str) -> bool:
    """True if a file is one of kept knowledge, by its name."""
    return path.endswith(EXTENSION)


# -- writing


def write_kept(graph: GraphColumns, into: str, sources: Sequence[Source] = ()) -> None:
    """Keeps a graph that was read (`read_knowledge`) in the file `into`, which is there as a whole or not at all.

    OptionError if the name does not end in EXTENSION, EventError if it cannot be written. 0.4 s for a million triples.
    """
    if not is_kept(into) or is_elsewhere(into):
        raise OptionError(f"{into}: no name for kept knowledge", f"name a file of this machine NAME{EXTENSION}")
    sections = {name: np.ascontiguousarray(array, _SECTIONS[name]) for name, array in _arrays(graph).items()}
    try:
        with write_beside(local_path(into)) as file:
            for piece in _pieces(sections, sources):
                file.write(piece)
    except OSError as error:
        raise EventError(f"cannot write: {error.strerror or error}", source=into) from error


def _arrays(graph: GraphColumns) -> dict[str, np.ndarray]:
    from spaseq.rdf.columns.dictionary import Finder

    terms, orders = graph.terms, graph.orders()
    finder = terms.finds
    if not isinstance(finder, Finder) or len(terms.own):
        raise ValueError("only knowledge that was read is kept")
    table, count = finder.table, len(terms)
    used = int((terms.start + terms.length).max(initial=0) + 7) >> 3
    groups = [bounds for _, bounds in sorted(graph.groups.items())]
    return {
        "text": table.text[:used],
        "hashes": table.hashes[:count],
        "slots": _slots(table, count),
        **{name: getattr(terms, name) for name in ("start", "length", "kind", "lexical", "datatype")},
        "rows": graph.rows.ravel(),
        "predicates": np.array(sorted(graph.groups)),
        "begins": np.array([0, *(high for _, high in groups)]),
        "by_subject": orders[0],
        "by_object": orders[2],
    }


def _slots(table: Any, count: int) -> np.ndarray:
    """The slots of the first `count` terms, as few as there may be."""
    from spaseq.rdf.columns.kernels.scanning import rehash

    slots = np.full(1 << max(4, (2 * count - 1).bit_length()), layout.NIL, dtype=np.int32)
    attempt_rows(rehash, count, count, table._replace(slots=slots))
    return slots


def _pieces(sections: Mapping[str, np.ndarray], sources: Sequence[Source]) -> Iterator[Any]:
    """The bytes of the file."""
    listed = {
        name: [0, len(array), blake2b(array.data, digest_size=16).hexdigest()] for name, array in sections.items()
    }
    about = {"sources": [list(source) for source in sources], "sections": listed}
    # Places are numbers of one width, so that the text has its size before they are known.
    room = len(json.dumps(about)) + 20 * len(listed)
    at = _align(_HEAD.size + room)
    for name, array in sections.items():
        listed[name][0] = at
        at = _align(at + array.nbytes)
    text = json.dumps(about).encode().ljust(room)
    yield _head(text, at)
    yield text
    written = _HEAD.size + room
    for array in sections.values():
        yield b"\0" * (_align(written) - written)
        yield array.data
        written = _align(written) + array.nbytes
    yield b"\0" * (at - written)


def _head(text: bytes, size: int) -> bytes:
    fields = MAGIC, VERSION, _ORDERS[sys.byteorder], len(text), size
    return _HEAD.pack(*fields, blake2b(_HEAD.pack(*fields, b"") + text, digest_size=32).digest())


def _align(at: int) -> int:
    return -(-at // _ALIGNED) * _ALIGNED


# -- opening


def open_kept(path: str) -> GraphColumns:
    """The graph that is kept in a file, mapped; the cost does not depend on its size.

    A file that only Spark's libraries read is read whole. EventError for a file that is none, cut off, damaged, or of
    another version or byte order.
    """
    from spaseq.rdf.columns.dictionary import Finder
    from spaseq.rdf.columns.kernels.scanning import Table

    found, _ = _open(path)
    count = len(found["kind"])
    none = np.zeros(0, np.int32)  # guesses of those who read streams
    table = Table(**{name: found[name] for name in ("text", *_TERMS, "slots")}, follow=none, before=none)
    start, length, kind, lexical, datatype = (found[name] for name in _TERMS[:-1])
    text, find = found["text"].view(np.uint8), Finder(count, table)
    terms = TermTable(text, start, length, kind, lexical, datatype, find=find)
    terms.kept = path
    begins = found["begins"].tolist()
    groups = dict(zip(found["predicates"].tolist(), pairwise(begins), strict=True))
    orders = {0: found["by_subject"], 2: found["by_object"]}
    return GraphColumns(found["rows"].reshape(-1, 3), terms, groups, orders)


def described_kept(path: str) -> KeptKnowledge:
    """The contents of a file. Raises EventError as `open_kept` does."""
    _, about = _open(path)
    graph = open_kept(path)
    counted = ((str(graph.terms.term(number)), high - low) for number, (low, high) in graph.groups.items())
    sources = tuple((str(name), size) for name, size in about["sources"])
    predicates = tuple(sorted(counted, key=lambda pair: (-pair[1], pair[0])))
    size = _align(max(_bytes_of(*each) for each in _places(about).values()))
    return KeptKnowledge(path, size, len(graph), predicates, sources)


def check_kept(path: str) -> None:
    """Read the whole file. Raises EventError if a section differs from the one that was written."""
    sections, about = _open(path)
    for name, array in sections.items():
        if blake2b(array.data, digest_size=16).hexdigest() != about["sections"][name][2]:
            raise damaged_file(path, f"damaged: {name} is not what was written")


def _open(path: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The sections, and the header."""
    try:
        data, size = _map(path)
    except FileNotFoundError:
        raise EventError("no such file", source=path) from None
    except (OSError, ValueError) as error:
        raise EventError(f"cannot read: {getattr(error, 'strerror', None) or error}", source=path) from error
    text = _header(data, size, path)
    try:
        about = json.loads(text)
        places = _places(about)
        if sorted(places) != sorted(_SECTIONS) or any(_bytes_of(*each) > size for each in places.values()):
            raise ValueError
        arrays = {
            name: np.frombuffer(data, kind, count, at) if count else np.zeros(0, kind)
            for name, (kind, at, count) in places.items()
        }
        for name, bytes_read in about["sources"]:
            if type(name) is not str or not (bytes_read is None or type(bytes_read) is int):
                raise ValueError
        if _agree(arrays):
            return arrays, about
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        pass
    raise damaged_file(path)


def _map(path: str) -> tuple[Any, int]:
    if is_elsewhere(path):
        with open_file(path) as file:
            data = bytearray(file.read())
        return data, len(data)
    with open(local_path(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        # A private mapping is one that may be written (nobody does): kernels are compiled for such arrays.
        return (mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b""), size


def _header(data: Any, size: int, path: str) -> bytes:
    """The text of the header."""
    if size < _HEAD.size or bytes(data[: len(MAGIC)]) != MAGIC:
        raise damaged_file(path, "no knowledge kept by spaseq")
    _, version, order, length, whole, digest = _HEAD.unpack_from(data)
    if version != VERSION:
        raise damaged_file(path, f"knowledge kept in format {version}, and this version of spaseq reads {VERSION}")
    if order != _ORDERS[sys.byteorder]:
        raise damaged_file(path, "knowledge kept on a machine with another byte order")
    if whole > size:
        raise damaged_file(path, f"cut off: {size:,} bytes of {whole:,}")
    text = bytes(data[_HEAD.size : _HEAD.size + min(length, size)])
    if whole != size or len(text) != length or bytes(_head(text, whole))[-len(digest) :] != digest:
        raise damaged_file(path, "damaged: its header is not what was written")
    return text


def _places(about: Mapping[str, Any]) -> dict[str, tuple[Any, int, int]]:
    """For each section the kind of its numbers, its offset, and their count. ValueError if the offset is wrong."""
    places = {}
    for name, (at, count, _) in about["sections"].items():
        if not (type(at) is type(count) is int and at >= _HEAD.size and at % _ALIGNED == 0 and count >= 0):
            raise ValueError(name)
        places[name] = _SECTIONS[name], at, count
    return places


def _bytes_of(kind: Any, at: int, count: int) -> int:
    """The end of a section."""
    return at + count * int(np.dtype(kind).itemsize)


def _agree(found: Mapping[str, np.ndarray]) -> bool:
    """True if the sections fit together in their counts, and the list of predicates in itself."""
    terms, triples = len(found["kind"]), len(found["by_subject"])
    slots, predicates, begins = found["slots"], found["predicates"], found["begins"]
    return (
        all(len(found[name]) == terms for name in _TERMS)
        and len(found["rows"]) == 3 * triples == 3 * len(found["by_object"])
        and len(slots) & (len(slots) - 1) == 0 < len(slots)
        and len(begins) == len(predicates) + 1
        and (int(begins[0]), int(begins[-1])) == (0, triples)
        and bool((np.diff(begins) > 0).all() and (np.diff(predicates) > 0).all())
        and (not len(predicates) or 0 <= int(predicates[0]) <= int(predicates[-1]) < terms)
    )
