"""RDF terms in DataFrames: N-Triples outside, keys of terms inside.

What a user sees or gives in a DataFrame is a term in N-Triples form (`"say \\"hi\\""@en`). Inside, a term is the text
that `spaseq.rdf.term_key` gives: the same without escapes, and of each term there is one. `ntriples` turns a key into
N-Triples; `keys_of_lines` reads N-Triples, by the parser that reads streams, so what it accepts is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from spaseq.core.errors import EventError
from spaseq.rdf import Terms, format_of, is_triple_key, parse_statements, parts_of_key, term_key

Keys = tuple[str, str, str, str | None, int]
"""The keys of subject, predicate, object and graph (None: none), and which row they stand in."""

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def ntriples(key: str) -> str:
    """A term in N-Triples form, given its key."""
    if is_triple_key(key):
        return f"<<( {' '.join(map(ntriples, parts_of_key(key)))} )>>"
    if not key.startswith('"'):
        return key
    end = key.rindex('"')
    return f'"{key[1:end].translate(_ESCAPES)}{key[end:]}'


def lines_of_terms(rows: Iterable[Sequence[str | None]], what: str) -> Iterator[str]:
    """A line of N-Triples (or N-Quads) for each row of terms; EventError for an empty or a broken one.

    `what` names the DataFrame in messages. A graph, the fourth term, may be None.
    """
    for row in rows:
        if None in row[:3]:
            raise EventError("a triple lacks a term", source=what, hint=f"the row is {_shown(row)}")
        if any(term is not None and ("\n" in term or "\r" in term) for term in row):
            raise refused_row("a line break inside a term", what, _shown(row))
        yield " ".join(term for term in row if term is not None) + " ."


def keys_of_lines(lines: Sequence[str | None], what: str, form: str = "nt") -> Iterator[Keys]:
    """The statements of lines of N-Triples or N-Quads (`form` nt or nq), which may be blank or comments, in order.

    EventError with the line for one that is neither.
    """
    for line in lines:
        if line is not None and "\n" in line.strip("\n"):
            raise refused_row("a line break inside a line", what, line)
    block = "".join(f"{(line or '').strip()}\n" for line in lines).encode("utf-8")
    try:
        for s, p, o, g, row in parse_statements([block], format_of(f"lines.{form}", None), what, terms=Terms()):
            yield term_key(s), term_key(p), term_key(o), None if g is None else term_key(g), row - 1
    except EventError as error:
        if error.record is None:
            raise
        raise refused_row(error.problem, what, lines[error.record - 1] or "") from None


def refused_row(problem: str, what: str, shown: str) -> EventError:
    """The error about a row of terms, which is `shown`."""
    return EventError(problem, source=what, hint=f"the row is {shown[:300]}; write terms as in N-Triples")


def _shown(row: Sequence[str | None]) -> str:
    return " ".join(str(term) for term in row)[:300]
