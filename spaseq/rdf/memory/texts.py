"""RDF as a text that a program has, a message say: its syntax, and its statements."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pyoxigraph

from spaseq.core.errors import EventError, OptionError
from spaseq.core.measure import shorten
from spaseq.rdf.files import Format, format_of
from spaseq.rdf.statements import Document, parse_statements, statement_of, unmark
from spaseq.rdf.terms import Term, Terms, Triple

SOURCE: Final = "<text>"
"""The name of a text in errors."""
_XML: Final = re.compile(rb"\s*<(?:\?xml\s|!DOCTYPE\s|!--|[\w.-]+:RDF\s)")
_NAME: Final = re.compile(r"[^\s<>{}\"]+")
_GUESSED: Final = "the text was read as TriG, which includes Turtle and N-Triples; format= names another syntax"


def read_text(
    text: str | bytes, format: Any = None, terms: Terms | None = None
) -> Iterator[tuple[Triple | None, Term | None]]:
    """The triples of a text, each with the name of its graph: None in the default graph. For a named graph of TriG
    without a triple, None and its name.

    `format` as of `format_of`, or a media type, or a format of pyoxigraph. Without it the text is RDF/XML, JSON-LD or
    N-Quads if it begins as, or is, such a document, and otherwise TriG. No text has two meanings. XML begins with a tag
    that is no IRI. What is JSON and TriG too is empty. What is N-Quads and TriG too is N-Triples, a part of both.

    `terms` remembers the terms of other texts.

    Raises `EventError` with the line of a text that is not in the syntax, `OptionError` for the name of a file.
    """
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else bytes(text)
    form = _guess(data.removeprefix(codecs.BOM_UTF8)) if format is None else _format_for(format)
    try:
        yield from _parse(data, form, terms or Terms())
    except EventError as error:
        shown = data.decode(errors="replace").strip()
        if _NAME.fullmatch(shown) and not shown.startswith("@"):
            raise OptionError(
                f"a text or a path, which is no RDF: {shorten(shown, 60)!r}",
                "query.run(streams={name: path}) reads a file",
            ) from None
        if format is None and form.code == pyoxigraph.RdfFormat.TRIG and not error.hint:
            raise EventError(error.problem, source=error.source, record=error.record, hint=_GUESSED) from None
        raise


def _format_for(format: Any) -> Format:
    """The format of a name, a media type (`text/turtle; charset=utf-8`), or a format of pyoxigraph."""
    if isinstance(format, str) and "/" in format:
        format = pyoxigraph.RdfFormat.from_media_type(format) or format
    if isinstance(format, pyoxigraph.RdfFormat):
        format = format.file_extension
    return format_of("a text", format, documents=True)


def _parse(data: bytes, form: Format, terms: Terms) -> Iterator[tuple[Triple | None, Term | None]]:
    if form.lines:
        for s, p, o, name, _ in parse_statements([data], form, SOURCE, terms=terms):
            yield (s, p, o), name
        return
    for quads, lines, empty in Document(unmark([data]), form, SOURCE, by_graph=True).parts():
        marks = frozenset(empty)
        for place, (quad, line) in enumerate(zip(quads, lines, strict=True)):
            s, p, o, name, _ = statement_of(quad, line, terms, SOURCE)
            yield None if place in marks else (s, p, o), name


def _guess(data: bytes) -> Format:
    if _XML.match(data):
        return format_of("a text.rdf", documents=True)
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            return format_of("a text.trig")
        return format_of("a text.jsonld", documents=True)
    try:
        for _ in pyoxigraph.parse(data, pyoxigraph.RdfFormat.N_QUADS):
            pass
    except (SyntaxError, MemoryError):
        return format_of("a text.trig")
    return format_of("a text.nq")
