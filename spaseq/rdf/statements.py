"""Files as statements: subject, predicate, object, graph name (None in the default graph), and the line they stand on.

The parser (pyoxigraph) does not say where a statement stood. N-Triples and N-Quads are cut into blocks of whole
lines, each statement having a line of its own; TriG and Turtle are fed to the parser line by line, and a statement is
said to stand on the last line that the parser asked for, which is the line where it ended.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from typing import IO, Final, Literal, TypeAlias, cast

import pyoxigraph
from rdflib import URIRef

from spaseq.core.errors import EventError
from spaseq.core.events.unfinished import LONGEST, Fed, Unfinished, too_long
from spaseq.rdf.empty_graphs import MARK, EmptyGraphs
from spaseq.rdf.entities import bounded_entities
from spaseq.rdf.files import Format, byte_chunks
from spaseq.rdf.model import Counters
from spaseq.rdf.terms import Term, Terms

__all__ = [
    "LONGEST_TERM", "NO_TRIPLE", "Statement", "is_too_long", "parse_statements", "read_statements", "unmarked",
]  # fmt: skip

Statement: TypeAlias = tuple[Term, Term, Term, Term | None, int]

NO_TRIPLE: Final = URIRef(MARK)
"""The subject, the same object, of what stands for the statements of an empty graph."""

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
    empty_graphs: bool = False,
) -> Iterator[Statement]:
    """The statements of the file `path` in order. Errors as of `parse_statements` and `byte_chunks`."""
    return parse_statements(
        byte_chunks(path), form, path, terms=terms, counters=counters, malformed=malformed, empty_graphs=empty_graphs
    )


def parse_statements(
    chunks: Iterable[bytes],
    form: Format,
    source: str,
    *,
    first_line: int = 1,
    terms: Terms | None = None,
    counters: Counters | None = None,
    malformed: Literal["error", "drop"] = "error",
    empty_graphs: bool = False,
) -> Iterator[Statement]:
    """The statements in `chunks`, the bytes of `source` cut anywhere; the first of them belongs to line `first_line`.

    With `empty_graphs`, a graph of a TriG document that has no triples comes as one statement, of `NO_TRIPLE`, where it
    ends. EventError with file and line where the text is not in the format, or, in a format by lines and with
    `malformed="drop"`, such a line is counted in `counters` and left out.
    """
    terms = terms or Terms()
    counters = counters or Counters()
    if first_line == 1:
        chunks = unmarked(chunks)
    if form.lines:
        return _by_lines(chunks, form, source, first_line, terms, counters, malformed == "drop")
    graphs = EmptyGraphs() if empty_graphs and form.named else None
    return _by_document(chunks, form, source, first_line, terms, counters, graphs)


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
            held = _statement(quad, number, terms, source)
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


class _Lines(io.RawIOBase):
    """Chunks as a file that never gives more than one line at a time, and knows on which line it is.

    `graphs`, if given, marks its empty graphs.
    """

    def __init__(
        self, chunks: Iterable[bytes], source: str, line: int, graphs: EmptyGraphs | None, *, xml: bool
    ) -> None:
        self._graphs = graphs
        self._last = b""
        self.fed = Fed(source)
        self._blocks = _whole_lines(bounded_entities(chunks, source, self.fed) if xml else chunks, source)
        self._lines: Iterator[bytes] = iter(())
        self._rest = b""
        self.number = line - 1

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
        line = next(self._lines, b"")
        while not line:
            block = next(self._blocks, b"")
            if not block:
                return b""
            self._lines = iter(block.splitlines(keepends=True))
            if self._graphs is not None:
                self._graphs.begin(block)
            line = next(self._lines, b"")
        self.number += line.endswith(b"\n") or not line.endswith(b"\r")
        if self._graphs is None:
            return line
        self._last = line
        return self._graphs.marked(line)

    def column(self, line: int | None, column: int | None) -> int | None:
        """A column of what was given as line `line`, in the document's own line."""
        if self._graphs is None or column is None or line != self.number:
            return column
        return self._graphs.column(self._last, column)


def _by_document(
    chunks: Iterable[bytes],
    form: Format,
    source: str,
    line: int,
    terms: Terms,
    counters: Counters,
    graphs: EmptyGraphs | None,
) -> Iterator[Statement]:
    lines = _Lines(chunks, source, line, graphs, xml=form.code == pyoxigraph.RdfFormat.RDF_XML)
    try:
        for quad in pyoxigraph.parse(cast(IO[bytes], lines), form.code):
            lines.fed.since = 0
            statement = _statement(quad, lines.number, terms, source)
            if graphs is not None and graphs.waiting and statement[0] == NO_TRIPLE:
                graphs.waiting -= 1
                if statement[3] is not None:  # the default graph may be empty
                    yield NO_TRIPLE, NO_TRIPLE, NO_TRIPLE, *statement[3:]
                continue
            counters.triples += 1
            yield statement
    except MemoryError as error:
        if not is_too_long(error):
            raise
        raise too_long("term", source, LONGEST_TERM, lines.number) from None
    except SyntaxError as error:
        at = line + error.lineno - 1 if error.lineno else None
        column = lines.column(at, error.offset)
        raise _malformed(error, form, source, at, "nexpected end" in str(error), column) from None


def _statement(quad: pyoxigraph.Quad, line: int, terms: Terms, source: str) -> Statement:
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
