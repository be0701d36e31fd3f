"""Bytes of RDF become rows of numbered terms. A parser reads a document (Turtle, TriG) and writes it as lines of
N-Quads, which are read as files of lines are.

The kernel takes the lines that are certainly right. All others go to the parser behind `spaseq.rdf.statements`, which
is the authority. If that finds anything but one statement on each of them, the rest of the block goes to it too. So
both roads refuse the same input, with the same messages and counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Final, Literal

import numpy as np
import pyoxigraph

from spaseq.core.events.unfinished import Unfinished
from spaseq.core.jit import attempt_rows, interprets
from spaseq.rdf.columns.dictionary import Block, Described, Dictionary, byte_classes
from spaseq.rdf.columns.kernels import layout
from spaseq.rdf.columns.kernels import scanning as k
from spaseq.rdf.files import Format, format_of
from spaseq.rdf.model import Counters
from spaseq.rdf.statements import LONGEST_TERM, Document, Quads, Statement, is_too_long, parse_statements, statement_of
from spaseq.rdf.terms import Term, Terms, term_bytes
from spaseq.rdf.triple_terms import TRIPLE, TRIPLE_END, triple_key

_XSD_STRING: Final = "http://www.w3.org/2001/XMLSchema#string"
_TRIPLE: Final = term_bytes(TRIPLE)
_ROOM: Final = 1 << 12
_PIECE: Final = 1 << 11
"""Bytes that are interpreted between two looks at the clock."""
_BYTES: Final = 3
"""Bytes of a line that take as long as a row, of `attempt_rows`."""
_QUADS: Final = format_of("quads.nq")
_ASCII: Final = byte_classes(utf8=False)
_UTF8: Final = byte_classes(utf8=True)


class Scanner:
    """Reads files into rows, one block after another.

    `rows`: int32 (capacity, 4), terms of subject, predicate, object and graph, NIL in the default graph; `lines`: int64
    (capacity,); `count` of them hold something. With wanted predicates in `dictionary`, an object that is not kept is
    NIL. A row that only stands for a graph without triples has NIL for all of its triple.
    """

    __slots__ = ("_block", "_malformed", "_slow", "_terms", "count", "counters", "dictionary", "lines", "rows")

    def __init__(self, dictionary: Dictionary, counters: Counters, malformed: Literal["error", "drop"]) -> None:
        self.dictionary: Dictionary = dictionary
        self.rows: np.ndarray = np.empty((_ROOM, 4), dtype=np.int32)
        self.lines: np.ndarray = np.empty(_ROOM, dtype=np.int64)
        self.count: int = 0
        self._slow = np.empty((_ROOM, 4), dtype=np.int64)
        self._block = Block()
        self.counters = counters
        self._malformed: Literal["error", "drop"] = malformed
        self._terms = Terms()

    def empty(self, terms: int = 0, text: int = 0) -> Scanner:
        """Another one for the same files, with rows and terms of its own, of which `terms` with keys of `text` bytes
        are expected; nothing is counted yet."""
        return Scanner(self.dictionary.empty(terms, text), Counters(), self._malformed)

    def read(self, chunks: Iterable[bytes], form: Format, source: str, line: int = 1) -> Iterator[bool]:
        """Adds the rows of a file, or of a part that begins with the line number `line`, a block at a time. Yields
        False after each chunk, even if it ends no line.

        EventError as of `parse_statements`; the rows before it have been added, but not yielded after.
        """
        for block in whole_lines(chunks, source):
            if block is not None:
                line = self.read_block(block, form, source, line)
            yield False

    def read_document(self, document: Document) -> Iterator[bool]:
        """Adds the rows of a document, some thousand at a time; yields after each time if the document waits.

        EventError as of `Document.parts` and `statement_of`, behind the rows before it.
        """
        for part in document.parts():
            self._add_quads(part, document.source)
            yield document.waits

    def _add_quads(self, part: Quads, source: str) -> None:
        """Adds a row for each quad of a document. EventError for one that rdflib cannot hold, behind those before."""
        first, counted = self.count, self.counters.triples
        text = pyoxigraph.serialize(part.quads, format=_QUADS.code)
        assert text is not None
        try:
            if self.scan(Lines(text, b"", 0), _QUADS, 0) is not None:  # the parser does not read the next line again
                done = self.count - first
                left = zip(part.quads[done:], chain(part.lines[done:], repeat(0)), strict=False)
                self._add_statements(statement_of(quad, line, self._terms, source) for quad, line in left)
        finally:
            added = self.count - first
            empty = [place for place in part.empty if place < added]
            self.lines[first : self.count] = part.lines[:added] or 0
            self.rows[first : self.count][empty, :3] = layout.NIL
            self.counters.triples = counted + added - len(empty)

    def _add_statements(self, statements: Iterable[Statement]) -> None:
        """Adds a row for each statement, also of those before an error."""
        found: list[Statement] = []
        try:
            for statement in statements:
                found.append(statement)
        finally:
            count = self.count + len(found)
            self._grow(count)
            self.rows[self.count : count] = self._numbers(found)
            self.lines[self.count : count] = [statement[4] for statement in found]
            self.count = count

    def read_block(self, block: Lines, form: Format, source: str, line: int) -> int:
        """Adds the rows of the block, whose first line is number `line`. The number of the line behind it.

        EventError as of `parse_statements`, behind the rows that come before."""
        rest = self.scan(block, form, line)
        return self.line if rest is None else self.read_rest(rest, block, form, source, line)

    @property
    def line(self) -> int:
        """The number of the line behind what was scanned last."""
        return int(self.dictionary.state[k.LINE])

    def scan(self, block: Lines, form: Format, line: int) -> tuple[int, int] | None:
        """Adds the block's rows up to the part for the parser: its first byte and line number; None if all is read."""
        state = self.dictionary.state
        before = self.count
        block.into(self._block)
        state[[k.AT, k.LINE, k.ROWS, k.SLOW]] = (block.size, line, before, 0) if block.odd else (0, line, before, 0)
        classes = _ASCII if block.ascii or not block.utf8 else _UTF8
        while state[k.AT] < block.size:
            self._make_room(block.size - int(state[k.AT]))
            size = self._block.line_behind(int(state[k.AT]) + _PIECE, block.size) if interprets(k.scan) else block.size
            attempt_rows(k.scan, (size - int(state[k.AT])) // _BYTES, self._block.data, size, form.named, self.rows,
                         self.lines, self._slow, self.dictionary.table, state, classes)  # fmt: skip
        self.count = int(state[k.ROWS])
        slow = self._slow[: int(state[k.SLOW])]
        rest = (0, line) if block.odd else None
        if len(slow) and not self._read_slow(slow, block, form):
            first = slow[0]
            self.count = int(first[0])
            rest = int(first[2]), int(first[1])
        self.counters.triples += self.count - before
        return rest

    def _make_room(self, left: int) -> None:
        """Make room for about the contents of `left` bytes; the kernel asks again if it was too little."""
        about = left // 64 + 64
        state = self.dictionary.state
        self._grow(int(state[k.ROWS]) + about)
        if int(state[k.SLOW]) + 64 > len(self._slow):
            self._slow = grow(self._slow, 2 * len(self._slow))
        self.dictionary.room(2 * about, 2 * left)

    def _grow(self, rows: int) -> None:
        if rows > len(self.rows):
            self.rows = grow(self.rows, max(rows, 2 * len(self.rows)))
            self.lines = grow(self.lines, len(self.rows))

    def _read_slow(self, slow: np.ndarray, block: Lines, form: Format) -> bool:
        """Fill in the rows of the `slow` lines, if the parser finds one statement on each of them."""
        text = b"".join(block.part(begin, end) for begin, end in slow[:, 2:].tolist())
        try:
            found = list(pyoxigraph.parse(text, form.code))
            if len(found) != len(slow):
                return False
            terms: dict[object, int] = {}
            flat = [terms.setdefault(term, len(terms)) for quad in found for term in _four(quad)]
            described = [_describe(term) for term in terms if term is not None]
        except (SyntaxError, ValueError):
            return False
        except MemoryError as error:
            if is_too_long(error):
                return False
            raise
        self.rows[slow[:, 0]] = self._place(terms, flat, self.dictionary.intern_described(described))
        return True

    def read_rest(self, where: tuple[int, int], block: Lines, form: Format, source: str, first: int) -> int:
        """Add the rows of the block from `where` on, as `scan` gives it, by the parser alone. The number of the line
        behind the block, which begins with line `first`."""
        begin, line = where
        rest = (block.part(begin, block.size),)
        self._add_statements(
            parse_statements(rest, form, source, first_line=line, terms=self._terms, counters=self.counters,
                             malformed=self._malformed)
        )  # fmt: skip
        return first + block.lines

    def _numbers(self, statements: list[Statement]) -> np.ndarray:
        """int32 (n, 4): the terms of the statements."""
        terms: dict[Term | None, int] = {}
        flat = [terms.setdefault(term, len(terms)) for statement in statements for term in statement[:4]]
        numbers = self.dictionary.intern_terms([term for term in terms if term is not None])
        return self._place(terms, flat, numbers)

    @staticmethod
    def _place(terms: Iterable[object], flat: list[int], numbers: np.ndarray) -> np.ndarray:
        """int32 (n, 4): of the `terms` at the places `flat`, None being NIL, the `numbers` that the others have."""
        known = np.array([term is not None for term in terms], dtype=np.bool_)
        placed = np.full(len(known), layout.NIL, dtype=np.int32)
        placed[known] = numbers
        return placed[np.array(flat, dtype=np.int64)].reshape(-1, 4)


def _four(quad: pyoxigraph.Quad) -> tuple[object, ...]:
    subject, predicate, obj, graph = quad
    return subject, predicate, obj, None if isinstance(graph, pyoxigraph.DefaultGraph) else graph


def _describe(term: object) -> Described:
    """A term of the parser's. ValueError for anything else."""
    if type(term) is pyoxigraph.NamedNode:
        return f"<{term.value}>".encode(), layout.IRI, layout.NIL, None
    if type(term) is pyoxigraph.BlankNode:
        return f"_:{term.value}".encode(), layout.BLANK, layout.NIL, None
    if type(term) is pyoxigraph.Triple:
        parts = [_describe(part)[0].decode() for part in (term.subject, term.predicate, term.object)]
        key = triple_key(*parts).encode()
        return key, layout.LITERAL, len(key) - len(TRIPLE_END) - 1, _TRIPLE
    if type(term) is not pyoxigraph.Literal:
        raise ValueError(f"no term of RDF: {type(term).__name__}")
    text = term.value.encode()
    if term.language is not None:
        tag = term.language if term.direction is None else f"{term.language}--{term.direction.value}"
        return b'"%b"@%b' % (text, tag.encode()), layout.LITERAL, len(text), None
    if term.datatype.value == _XSD_STRING:
        return b'"%b"' % text, layout.LITERAL, len(text), None
    datatype = f"<{term.datatype.value}>".encode()
    return b'"%b"^^%b' % (text, datatype), layout.LITERAL, len(text), datatype


class Lines:
    """A block of whole lines: `head`, and `tail` up to `cut`; and properties of its bytes."""

    __slots__ = ("_chunk", "_head", "_tail", "size")

    def __init__(self, head: bytes, tail: bytes, cut: int) -> None:
        self._head = head
        self._chunk = tail
        self._tail = memoryview(tail)[:cut]
        self.size = len(head) + cut

    def into(self, block: Block) -> None:
        """Copy it to where kernels can read it."""
        block.fill(self._head, self._tail)

    @property
    def ascii(self) -> bool:
        """True if it is certainly plain ASCII."""
        return self._head.isascii() and self._chunk.isascii()

    @property
    def odd(self) -> bool:
        """True if a carriage return stands anywhere but before a newline: the parser takes it for a line's end."""
        if b"\r" not in self._chunk and b"\r" not in self._head:
            return False
        whole = self.part(0, self.size)
        return whole.count(b"\r") != whole.count(b"\r\n")

    @property
    def utf8(self) -> bool:
        """True if it is valid UTF-8."""
        try:
            self.part(0, self.size).decode()
        except UnicodeDecodeError:
            return False
        return True

    @property
    def lines(self) -> int:
        """The number of newlines."""
        return self.part(0, self.size).count(b"\n")

    def part(self, begin: int, end: int) -> bytes:
        """The bytes from `begin` up to `end`."""
        cut = len(self._head)
        if begin >= cut:
            return bytes(self._tail[begin - cut : end - cut])
        return self._head[begin:end] + self._tail[: max(end - cut, 0)]


def whole_lines(chunks: Iterable[bytes], source: str) -> Iterator[Lines | None]:
    """The chunks of the file `source` in blocks of whole lines, of which the last one may lack its newline; None behind
    a chunk that ends no line. Errors as of `Unfinished`."""
    rest = Unfinished(source, LONGEST_TERM)
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield Lines(rest.take(), chunk, cut)
        rest.add(chunk[cut:])
        if not cut:
            yield None
    if rest.size:
        yield Lines(rest.take(), b"", 0)


def grow(array: np.ndarray, rows: int) -> np.ndarray:
    """A copy of an array with room for so many rows."""
    new = np.empty((rows, *array.shape[1:]), dtype=array.dtype)
    new[: len(array)] = array
    return new
