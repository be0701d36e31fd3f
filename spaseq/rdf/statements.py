"""Files as statements: subject, predicate, object, graph name (None in the default graph), and the line they stand on.

The parser (pyoxigraph) does not say where a statement stood. N-Triples and N-Quads are cut into blocks of whole
lines, each statement having a line of its own; TriG and Turtle are fed to the parser line by line, and a statement is
said to stand on the last line that the parser asked for, which is the line where it ended.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO, Final, Literal, TypeAlias, cast

import pyoxigraph

from spaseq.core.errors import EventError
from spaseq.core.events.unfinished import LONGEST, Fed, Unfinished, too_long
from spaseq.rdf.empty_graphs import MARK, EmptyGraphs
from spaseq.rdf.entities import bounded_entities
from spaseq.rdf.files import Format, byte_chunks
from spaseq.rdf.model import Counters
from spaseq.rdf.terms import Term, Terms

__all__ = [
    "LONGEST_TERM", "Document", "Statement", "is_too_long", "parse_statements", "read_statements", "statement_of",
    "unmarked",
]  # fmt: skip

Statement: TypeAlias = tuple[Term, Term, Term, Term | None, int]

_MARK: Final = pyoxigraph.NamedNode(MARK)
LONGEST_TERM: Final = 1 << 24
"""Bytes of a term, and of a line of N-Triples and N-Quads, at most: the parser's own bound."""
_PREFIX: Final = re.compile(
    r"^Parser error (?:at|between) line \d+ (?:between columns \d+ and (?:line \d+ column )?\d+"
    r"|column \d+(?: and line \d+ column \d+)?): "
)
_SUFFIX: Final = re.compile(r" \(line \d+\)$")


def read_statements(
    path: str,
    form: Format,
    *,
    terms: Terms | None = None,
    counters: Counters | None = None,
    malformed: Literal["error", "drop"] = "error",
) -> Iterator[Statement]:
    """The statements of the file `path` in order. Errors as of `parse_statements` and `byte_chunks`."""
    return parse_statements(byte_chunks(path), form, path, terms=terms, counters=counters, malformed=malformed)


def parse_statements(
    chunks: Iterable[bytes],
    form: Format,
    source: str,
    *,
    first_line: int = 1,
    terms: Terms | None = None,
    counters: Counters | None = None,
    malformed: Literal["error", "drop"] = "error",
) -> Iterator[Statement]:
    """The statements in `chunks`, the bytes of `source` cut anywhere; the first of them belongs to line `first_line`.

    EventError with file and line if the text is not in the format. In a format by lines and with `malformed="drop"`,
    such a line is counted in `counters` and left out.
    """
    terms = terms or Terms()
    counters = counters or Counters()
    if first_line == 1:
        chunks = unmarked(chunks)
    if form.lines:
        return _by_lines(chunks, form, source, first_line, terms, counters, malformed == "drop")
    return _by_document(Document(chunks, form, source, first_line), terms, counters)


def unmarked(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes without the mark with which some editors begin UTF-8 (EF BB BF)."""
    rest = iter(chunks)
    head = b""
    for chunk in rest:
        head += chunk
        if len(head) >= len(codecs.BOM_UTF8):
            break
    yield head.removeprefix(codecs.BOM_UTF8)
    yield from rest


def _whole_lines(chunks: Iterable[bytes], source: str, most: int = LONGEST) -> Iterator[bytes]:
    """The same bytes cut only after newlines; the last piece may lack one. Errors as of `Unfinished`."""
    rest = Unfinished(source, most)
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest.take(chunk[:cut])
        rest.add(chunk[cut:])
    if rest.size:
        yield rest.take()


def _by_lines(
    chunks: Iterable[bytes], form: Format, source: str, line: int, terms: Terms, counters: Counters, drop: bool
) -> Iterator[Statement]:
    for block in _whole_lines(chunks, source, LONGEST_TERM):
        rest = block
        while rest:
            failed: EventError | None = None
            try:
                yield from _block(rest, form, source, line, terms, counters)
            except EventError as error:
                if not drop or error.record is None:
                    raise
                failed = error
            if failed is None or failed.record is None:
                line += rest.count(b"\n")
                break
            lines = rest.split(b"\n", failed.record - line + 1)
            counters.leave_out(source, failed.record, lines[failed.record - line])
            rest = lines[-1] if len(lines) > failed.record - line + 1 else b""
            line = failed.record + 1


def _block(block: bytes, form: Format, source: str, line: int, terms: Terms, counters: Counters) -> Iterator[Statement]:
    """The statements of whole lines. One is held back until its line is known to hold nothing else."""
    numbers = iter(_statement_lines(block, line))
    number = line
    held: Statement | None = None
    failed: EventError | None = None
    try:
        for quad in pyoxigraph.parse(block, form.code):
            if held is not None:
                counters.triples += 1
                yield held
                held = None
            number = next(numbers, number)
            held = statement_of(quad, number, terms, source)
    except SyntaxError as error:
        last = line + block.count(b"\n") - block.endswith(b"\n")
        at = min(line + (error.lineno or 1) - 1, last)  # the parser sees what is missing where the block ends
        failed = _malformed(error, form, source, at, not block.endswith(b"\n") and at == last, error.offset)
        begun = next(numbers, at)
        if held is not None and number < at and not _is_whole(block.split(b"\n")[number - line], form):
            begun = number  # the parser gave the statement, and then missed the dot
        if begun < at:  # and it sees on a later line that this one was cut off
            failed = EventError(f"not {form.name}: the line ends within a statement", source=source, record=begun)
    except MemoryError as error:
        if not is_too_long(error):
            raise
        failed = too_long("term", source, LONGEST_TERM, next(numbers, number))
    if held is not None and (failed is None or failed.record != number):
        counters.triples += 1
        yield held
    if failed is not None:
        raise failed from None


def is_too_long(error: MemoryError) -> bool:
    """True if the parser refused a term for its length: it says so as if there were no memory."""
    return "buffer" in str(error)


def _is_whole(text: bytes, form: Format) -> bool:
    """Whether a line can be read by itself."""
    try:
        return len(list(pyoxigraph.parse(text, form.code))) == 1
    except SyntaxError:
        return False


def _statement_lines(block: bytes, line: int) -> Iterator[int]:
    """The numbers of the lines of `block` that hold a statement: neither blank nor a comment."""
    for number, text in enumerate(block.split(b"\n"), line):
        lead = text.lstrip()
        if lead and not lead.startswith(b"#"):
            yield number


class Document(io.RawIOBase):
    """A document that is parsed while it is read: the file that its parser reads, and the quads that come of it.

    `chunks` are its bytes, cut anywhere; its first line is number `first_line`. `by_graph`: named graphs are events, so
    `quads` also has those of TriG that hold no triple. The parser gets one line at a time, so that the line of a quad
    is known.
    """

    def __init__(
        self, chunks: Iterable[bytes], form: Format, source: str, first_line: int = 1, *, by_graph: bool = False
    ) -> None:
        self.fed = Fed(source)
        self.source = source
        self.by_graph = by_graph
        self._form = form
        self._graphs = EmptyGraphs() if by_graph and form.named else None
        xml = form.code == pyoxigraph.RdfFormat.RDF_XML
        self._blocks = _whole_lines(bounded_entities(chunks, source, self.fed) if xml else chunks, source)
        self._lines: deque[bytes] = deque()
        self._last = b""
        self._rest = b""
        self._before = first_line - 1
        self._number = self._before

    @property
    def used_up(self) -> bool:
        """True if the parser has all that has been read, so that the next quad may have to wait for more."""
        return not self._rest and not self._lines

    def quads(self) -> Iterator[tuple[pyoxigraph.Quad, int, bool]]:
        """Each quad with the line on which it ended, and True if it only stands for a graph without triples.

        EventError with file and line if the text is not in the format.
        """
        graphs, source = self._graphs, self.source
        try:
            for quad in pyoxigraph.parse(cast(IO[bytes], self), self._form.code):
                self.fed.since = 0
                empty = graphs is not None and graphs.waiting > 0 and quad.subject == _MARK
                if empty and graphs is not None:
                    graphs.waiting -= 1
                    if isinstance(quad.graph_name, pyoxigraph.DefaultGraph):  # which may be empty
                        continue
                yield quad, self._number, empty
        except MemoryError as error:
            if not is_too_long(error):
                raise
            raise too_long("term", source, LONGEST_TERM, self._number) from None
        except SyntaxError as error:
            at = self._before + error.lineno if error.lineno else None
            column = self._column(at, error.offset)
            raise _malformed(error, self._form, source, at, "nexpected end" in str(error), column) from None

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._rest = self._next_line()
        size = len(self._rest) if size < 0 else size
        out, self._rest = self._rest[:size], self._rest[size:]
        self.fed.add(len(out))
        return out

    def _next_line(self) -> bytes:
        while not self._lines:
            block = next(self._blocks, b"")
            if not block:
                return b""
            self._lines.extend(block.splitlines(keepends=True))
            if self._graphs is not None:
                self._graphs.begin(block)
        line = self._lines.popleft()
        self._number += line.endswith(b"\n") or not line.endswith(b"\r")
        if self._graphs is None:
            return line
        self._last = line
        return self._graphs.marked(line)

    def _column(self, line: int | None, column: int | None) -> int | None:
        """A column of what was given as line `line`, in the document's own line."""
        if self._graphs is None or column is None or line != self._number:
            return column
        return self._graphs.column(self._last, column)


def _by_document(document: Document, terms: Terms, counters: Counters) -> Iterator[Statement]:
    for quad, line, _ in document.quads():
        statement = statement_of(quad, line, terms, document.source)
        counters.triples += 1
        yield statement


def statement_of(quad: pyoxigraph.Quad, line: int, terms: Terms, source: str) -> Statement:
    """The statement of a quad on the line `line` of `source`. EventError for terms that rdflib cannot hold."""
    subject, predicate, obj, graph = quad
    convert = terms.convert
    try:
        name = None if isinstance(graph, pyoxigraph.DefaultGraph) else convert(graph)
        return convert(subject), convert(predicate), convert(obj), name, line
    except ValueError as error:
        raise EventError(str(error), source=source, record=line) from None


def _malformed(
    error: SyntaxError, form: Format, source: str, line: int | None, cut: bool, column: int | None
) -> EventError:
    reason = _SUFFIX.sub("", _PREFIX.sub("", error.msg or str(error)))
    place = f" at column {column}" if column else ""
    if cut:
        hint = "the file ends in the middle of a statement: it seems to be cut off"
    elif reason.startswith("No scheme found"):
        hint = "IRIs are written in full" + (
            "" if form.lines else ", or the document says what they are relative to: @base"
        )
    else:
        hint = ""
    return EventError(f"not {form.name}{place}: {reason}", source=source, record=line, hint=hint)
