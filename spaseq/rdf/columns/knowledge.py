"""Background knowledge: files of RDF in any format as one graph ([SPAseq] Definition 15).

Files are read by the kernels that read streams, without an object for a triple. Errors in a document are worded by the
reader of statements, which knows the lines.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np
import rdflib
from rdflib import BNode

from spaseq.core.errors import EventError
from spaseq.core.files.places import file_size, is_elsewhere, local_path, open_file
from spaseq.rdf.columns.kept import KeptKnowledge, described_kept, is_kept, open_kept, write_kept
from spaseq.rdf.columns.model import BLANK
from spaseq.rdf.columns.triples import GraphColumns, different
from spaseq.rdf.files import STDIN, Format, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters
from spaseq.rdf.statements import Document, is_too_long, parse_statements, unmark
from spaseq.rdf.terms import term_bytes
from spaseq.rdf.triple_terms import TripleTerm, with_nodes

if TYPE_CHECKING:
    from spaseq.rdf.columns.dictionary import Dictionary
    from spaseq.rdf.columns.scanner import Scanner

_ROWS: Final = 1 << 20
"""Rows that the reader holds before they are put aside."""
_SEEN: Final = 1 << 14
"""Bytes at both ends of a file that tell it from others of its name and size."""


def load_knowledge(path: str | Sequence[str], *, format: str | None = None) -> rdflib.Graph:
    """`read_knowledge` as an rdflib graph."""
    return read_knowledge(path, format=format).graph()


def read_knowledge(path: str | Sequence[str], *, format: str | None = None) -> GraphColumns:
    """The triples of the file (or files, or globs) `path` as one graph, named graphs in it merged.

    The format is given by the extension (N-Triples, N-Quads, TriG, Turtle, N3, RDF/XML, JSON-LD; `.gz` and `.zst` are
    decompressed) or by `format`. Blank nodes of different files stay different. EventError with file and line if a file
    cannot be read. About a microsecond for a triple of a file of lines, two in a document.

    A file that `build_knowledge` made is mapped, not read, if it is the only one. Else it is added to the others.
    """
    from spaseq.rdf.columns.dictionary import Dictionary

    files = expand_files([path] if isinstance(path, str) else path)
    if len(files) == 1 and format is None and is_kept(files[0]):
        return open_kept(files[0])
    dictionary, parts = Dictionary(), list[np.ndarray]()
    for file in files:
        if format is None and is_kept(file):
            parts.append(open_kept(file).rows_over(dictionary))
        else:
            parts += _rows(byte_chunks(file), format_of(file, format, documents=True), file, file, dictionary)
    return _graph(parts, dictionary)


def build_knowledge(path: str | Sequence[str], into: str, *, format: str | None = None) -> KeptKnowledge:
    """Keeps the triples of `path` (`read_knowledge`) in the file `into`, named `*.spaseq-kb`. Returns its summary.

    The file stands for its sources wherever knowledge is named by files, and is mapped there. It is one graph; its user
    gives its IRI. Errors as of `read_knowledge`; OptionError for another name, EventError if it cannot be written.
    """
    files = expand_files([path] if isinstance(path, str) else path)
    sources = [(file, None if file == STDIN else file_size(file)) for file in files]
    write_kept(_alone(read_knowledge(files, format=format)), into, sources)
    return described_kept(into)


def _alone(graph: GraphColumns) -> GraphColumns:
    """A graph without the terms that none of its triples has, as labels that a parser made up."""
    from spaseq.rdf.columns.dictionary import Dictionary

    dictionary = Dictionary()
    return _graph([graph.rows_over(dictionary)], dictionary)


def read_part(chunks: Iterable[bytes], form: Format, source: str, path: str, *, first_line: int = 1) -> GraphColumns:
    """The triples of a part of a file that begins with the line `first_line`, as `read_knowledge` has them. `source`:
    the file's name as the user gave it, of which the names of blank nodes are made; `path` is named in errors."""
    from spaseq.rdf.columns.dictionary import Dictionary

    dictionary = Dictionary()
    return _graph(list(_rows(chunks, form, source, path, dictionary, first_line)), dictionary)


def _graph(parts: list[np.ndarray], dictionary: Dictionary) -> GraphColumns:
    rows = np.concatenate(parts) if parts else np.zeros((0, 3), dtype=np.int32)
    parts.clear()
    return GraphColumns(different(rows), dictionary.as_terms(dictionary.finder()))


def _rows(
    chunks: Iterable[bytes], form: Format, source: str, path: str, dictionary: Dictionary, first_line: int = 1
) -> Iterator[np.ndarray]:
    """The rows of a file, int32 (·, 3), in parts."""
    from spaseq.rdf.columns.scanner import Scanner

    scanner = Scanner(dictionary, Counters(), "error")
    blanks = _Blanks(dictionary, source, path, form)
    if form.lines:
        blocks = scanner.read(chunks, form, path, first_line)
    else:
        blocks = _document(chunks, form, path, scanner)
    for _ in blocks:
        if scanner.count >= _ROWS:
            yield blanks.named(_take(scanner))
    yield blanks.named(_take(scanner))


def _take(scanner: Scanner) -> np.ndarray:
    rows = scanner.rows[: scanner.count, :3].copy()
    scanner.count = 0
    return rows


def _document(chunks: Iterable[bytes], form: Format, path: str, scanner: Scanner) -> Iterator[bool]:
    """Reads a document into `scanner`, as `Scanner.read` reads lines."""
    held: list[bytes] = []

    def keep() -> Iterator[bytes]:
        for chunk in unmark(chunks):
            held.append(chunk)
            yield chunk

    try:
        yield from scanner.read_document(Document(keep(), form, path, by_line=False))
    except (ValueError, EventError, MemoryError) as error:
        if isinstance(error, MemoryError) and not is_too_long(error):
            raise
        # Which line is wrong, and how it is said, is known to the reader of statements.
        for _ in parse_statements(chain(held, chunks), form, path):
            pass
        raise EventError(f"not {form.name}: {error}", source=path) from error


def _sample(path: str) -> bytes:
    """The size of a file and its first and last bytes; nothing of a file that can be read only once."""
    if path == STDIN or not (is_elsewhere(path) or os.path.isfile(local_path(path))):
        return b""
    try:
        size = file_size(path)
        with open_file(path) as file:
            head = file.read(_SEEN)
            file.seek(max(0, size - _SEEN))
            return b"%d" % size + head + file.read(_SEEN)
    except OSError:  # which the reader tells
        return b""


class _Blanks:
    """Gives each blank node of a file a name that no other file has.

    In files of lines, the name holds the node's label, so that parts of a file have the names of the whole file. In
    documents the parser makes up labels, so blank nodes are numbered as they come.

    A file is identified by its name and by what `_sample` reads of it. So knowledge built of a file can be used beside
    a file of the same name in another folder, or of another time.
    """

    def __init__(self, dictionary: Dictionary, source: str, path: str, form: Format) -> None:
        self._dictionary = dictionary
        self._prefix = f"_:k{zlib.crc32(source.encode() + _sample(path)):08x}b".encode()
        self._numbered = not form.lines
        self._names: dict[int, int] = {}

    def named(self, rows: np.ndarray) -> np.ndarray:
        """Puts the nodes' own terms in the place of those that were read, in `rows`."""
        nested = self._dictionary.nested_blanks(rows[:, 2])
        if nested:
            self._dictionary.intern(list(dict.fromkeys(chain.from_iterable(map(_labels, nested.values())))), BLANK)
        count, table = len(self._dictionary), self._dictionary.table
        if not (table.kind[:count] == BLANK).any():
            return rows
        self._name_inside(rows, nested)
        ends = rows[:, [0, 2]].ravel()
        blank = np.flatnonzero(table.kind[ends] == BLANK)
        used, first = np.unique(ends[blank], return_index=True)
        self._name(used[np.argsort(first)].tolist())
        places = np.array([self._names[term] for term in used.tolist()], dtype=np.int32)
        ends[blank] = places[np.searchsorted(used, ends[blank])]
        rows[:, [0, 2]] = ends.reshape(-1, 2)
        return rows

    def _name(self, terms: Iterable[int]) -> None:
        """Names the blank nodes `terms` that have none yet, in this order."""
        fresh = [term for term in terms if term not in self._names]
        labels = [str(len(self._names) + i).encode() if self._numbered else self._label(t) for i, t in enumerate(fresh)]
        if fresh:
            numbers = self._dictionary.intern([self._prefix + label for label in labels], BLANK)
            self._names.update(zip(fresh, numbers.tolist(), strict=True))

    def _name_inside(self, rows: np.ndarray, nested: dict[int, TripleTerm]) -> None:
        """Puts in the place of triple terms in `rows`, those of `nested`, the same with the names of their nodes."""
        if not nested:
            return
        find = self._dictionary.finder()
        numbers = {key: find(key) for term in nested.values() for key in _labels(term)}
        self._name(numbers.values())
        names = {key: BNode(self._key(self._names[number])[2:]) for key, number in numbers.items()}
        terms = [with_nodes(term, lambda node: names[term_bytes(node)]) for term in nested.values()]
        place_of = dict(zip(nested, self._dictionary.intern_terms(terms).tolist(), strict=True))
        for place in np.flatnonzero(np.isin(rows[:, 2], list(nested))).tolist():
            rows[place, 2] = place_of[int(rows[place, 2])]

    def _key(self, term: int) -> str:
        """The key of a term of the dictionary."""
        table = self._dictionary.table
        start = int(table.start[term])
        return table.text.view(np.uint8)[start : start + int(table.length[term])].tobytes().decode()

    def _label(self, term: int) -> bytes:
        """The label of a blank node that was read."""
        return self._key(term)[2:].encode()


def _labels(term: TripleTerm) -> list[bytes]:
    """The keys of the blank nodes in a triple term."""
    found: list[bytes] = []
    for part in term.parts:
        if isinstance(part, BNode):
            found.append(term_bytes(part))
        elif isinstance(part, TripleTerm):
            found += _labels(part)
    return found
