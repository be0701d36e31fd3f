"""Files as statements: subject, predicate, object, graph name (None in the default graph), and the line they stand on.

The parser (pyoxigraph) does not report the place of a statement. N-Triples and N-Quads are cut into blocks of whole
lines, in which each statement has a line of its own. TriG and Turtle are fed to the parser line by line. Their
statements get the last line that the parser read, which is the line where they ended.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final, Literal, NamedTuple, TypeAlias, cast

import pyoxigraph

from spaseq.core.errors import EventError
from spaseq.core.events.unfinished import LONGEST, Fed, Unfinished, too_long
from spaseq.rdf.empty_graphs import MARK, EmptyGraphs
from spaseq.rdf.entities import bounded_entities
from spaseq.rdf.files import Format, byte_chunks
from spaseq.rdf.model import Counters
from spaseq.rdf.terms import Term, Terms

Statement: TypeAlias = tuple[Term, Term, Term, Term | None, int]

_MARK: Final = pyoxigraph.NamedNode(MARK)
_PART: Final = 1 << 14
"""Quads of a document that are handed on at once."""
_READ: Final = 1 << 24
"""Bytes of a document whose quads are handed on at once."""
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
        chunks = unmark(chunks)
    if form.lines:
        return _by_lines(chunks, form, source, first_line, terms, counters, malformed == "drop")
    return _by_document(Document(chunks, form, source, first_line), terms, counters)


def unmark(chunks: Iterable[bytes]) -> Iterator[bytes]:
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
        failed = _malformed_error(error, form, source, at, not block.endswith(b"\n") and at == last, error.offset)
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
    """True if the parser refused a term for its length, which it reports as lack of memory."""
    return "buffer" in str(error)


def _is_whole(text: bytes, form: Format) -> bool:
    """True if a line can be read by itself."""
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


class Quads(NamedTuple):
    """Some quads of a document: the line on which each ended, and the places of those that stand for an empty graph."""

    quads: list[pyoxigraph.Quad]
    lines: list[int]
    empty: list[int]


class Document(io.RawIOBase):
    """A document that is parsed while it is read: the file that its parser reads, and the quads that come of it.

    `chunks` are its bytes, cut anywhere; its first line is number `first_line`. `by_graph`: named graphs are events, so
    those of TriG that hold no triple count. The parser gets one line at a time, so that the line of a quad is known.
    Without `by_line` it gets the chunks, in a third of the time, and lines are not known.

    `has_more` returns True if more can be read at once; `waits` is True once it returned False with all input parsed.
    """

    def __init__(
        self,
        chunks: Iterable[bytes],
        form: Format,
        source: str,
        first_line: int = 1,
        *,
        by_graph: bool = False,
        by_line: bool = True,
        has_more: Callable[[], bool] = lambda: True,
    ) -> None:
        self.source = source
        self.waits = False
        self._fed = Fed(source)
        self._form = form
        self._by_graph = by_graph
        self._by_line = by_line
        self._has_more = has_more
        self._graphs = EmptyGraphs() if by_graph and form.code == pyoxigraph.RdfFormat.TRIG else None
        xml = form.code == pyoxigraph.RdfFormat.RDF_XML
        bounded = bounded_entities(chunks, source, self._fed) if xml else iter(chunks)
        self._blocks = _whole_lines(bounded, source) if by_line else bounded
        self._lines: deque[bytes] = deque()
        self._last = b""
        self._line = b""
        self._at = 0
        self._before = first_line - 1
        self._number = self._before
        self._graph: object = None

    def parts(self) -> Iterator[Quads]:
        """The quads, some thousand at a time. While the document `waits`, a quad that may end an event comes at once.

        EventError with file and line if the text is not in the format, behind the quads before it.
        """
        graphs, fed, source, by_line = self._graphs, self._fed, self.source, self._by_line
        quads, lines, empty = some = Quads([], [], [])
        begun = 0
        failure: EventError | None = None
        try:
            for quad in pyoxigraph.parse(cast(IO[bytes], self), self._form.code):
                fed.since = 0
                if graphs is not None and graphs.waiting and quad.subject == _MARK:
                    graphs.waiting -= 1
                    if isinstance(quad.graph_name, pyoxigraph.DefaultGraph):  # which may be empty
                        continue
                    empty.append(len(quads))
                quads.append(quad)
                if by_line:
                    lines.append(self._number)
                if len(quads) == _PART or fed.all - begun > _READ or (self.waits and self._may_end(quad)):
                    yield some
                    quads, lines, empty = some = Quads([], [], [])
                    begun = fed.all
        except EventError as error:
            failure = error
        except MemoryError as error:
            if not is_too_long(error):
                raise
            failure = too_long("term", source, LONGEST_TERM, self._number)
        except SyntaxError as error:
            at = self._before + error.lineno if error.lineno else None
            column = self._column(at, error.offset)
            failure = _malformed_error(error, self._form, source, at, "nexpected end" in str(error), column)
        if quads:
            yield some
        if failure is not None:
            raise failure

    def _may_end(self, quad: pyoxigraph.Quad) -> bool:
        """True if an event may end with the quad, or in front of it, or get its time by it."""
        before, self._graph = self._graph, quad.graph_name
        return not self._by_graph or self._graph != before or isinstance(self._graph, pyoxigraph.DefaultGraph)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._at == len(self._line):
            self._line, self._at = self._next_line(), 0
        out = self._line[self._at : None if size < 0 else self._at + size]
        self._at += len(out)
        self._fed.add(len(out))
        self.waits = self._at == len(self._line) and not self._lines and not self._has_more()
        self._graph = None
        return out

    def _next_line(self) -> bytes:
        while not self._lines:
            block = next(self._blocks, b"")
            if not block:
                return b""
            self._lines.extend(block.splitlines(keepends=True) if self._by_line else (block,))
            if self._graphs is not None:
                self._graphs.begin(block)
        line = self._lines.popleft()
        self._number += line.endswith(b"\n") or not line.endswith(b"\r")
        if self._graphs is None:
            return line
        self._last = line
        return self._graphs.marked(line)

    def _column(self, line: int | None, column: int | None) -> int | None:
        """A column of the text given as line `line`, in the document's own line."""
        if self._graphs is None or column is None or line != self._number:
            return column
        return self._graphs.column(self._last, column)


def _by_document(document: Document, terms: Terms, counters: Counters) -> Iterator[Statement]:
    for quads, lines, _ in document.parts():
        for quad, line in zip(quads, lines, strict=True):
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


def _malformed_error(
    error: SyntaxError, form: Format, source: str, line: int | None, cut: bool, column: int | None
) -> EventError:
    reason = _SUFFIX.sub("", _PREFIX.sub("", error.msg or str(error)))
    place = f" at column {column}" if column else ""
    if "LoadDocumentCallback" in reason:
        reason, hint = "remote contexts are not fetched", "write the context into the document"
    elif cut:
        hint = "the file ends in the middle of a statement: it seems to be cut off"
    elif reason.startswith("No scheme found"):
        hint = "IRIs are written in full" + (
            "" if form.lines else ", or the document says what they are relative to: @base"
        )
    else:
        hint = ""
    return EventError(f"not {form.name}{place}: {reason}", source=source, record=line, hint=hint)
