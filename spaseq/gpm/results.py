"""RDF terms and mappings as people and programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rdflib.term import BNode, Literal, URIRef
from rdflib.util import from_n3

from spaseq.errors import InternalError

__all__ = ["json_term", "nquads_term", "parse_term", "plain_text", "short_text"]


def json_term(term: Any) -> dict[str, str]:
    """The term as SPARQL 1.1 Query Results JSON writes it (§3.2.2)."""
    match term:
        case URIRef():
            return {"type": "uri", "value": str(term)}
        case BNode():
            return {"type": "bnode", "value": str(term)}
        case Literal(language=str() as language):
            return {"type": "literal", "value": str(term), "xml:lang": language}
        case Literal(datatype=URIRef() as datatype):
            return {"type": "literal", "value": str(term), "datatype": str(datatype)}
        case Literal():
            return {"type": "literal", "value": str(term)}
        case _:
            raise InternalError(f"a solution holds a {type(term).__name__}")


_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def nquads_term(term: Any) -> str:
    """The term as N-Quads writes it, on one line."""
    if not isinstance(term, Literal):
        return str(term.n3())
    escaped = "".join(_ESCAPES.get(c, c) for c in str(term))
    if term.language:
        return f'"{escaped}"@{term.language}'
    return f'"{escaped}"' + (f"^^<{term.datatype}>" if term.datatype else "")


def plain_text(term: Any) -> str:
    """The term as SPARQL 1.1 Query Results CSV writes it: bare, blank nodes with `_:`."""
    return f"_:{term}" if isinstance(term, BNode) else str(term)


def short_text(term: Any, prefixes: Sequence[tuple[str, str]]) -> str:
    """The term for a table: IRIs with a prefix where one fits, literals bare."""
    if isinstance(term, URIRef):
        for label, iri in prefixes:
            local = str(term).removeprefix(iri)
            if iri and local != str(term) and local and not any(c in local for c in "/#:"):
                return f"{label}:{local}"
        return f"<{term}>"
    return plain_text(term)


def parse_term(text: str) -> Any:
    """The term that `text` writes in N-Triples syntax."""
    return from_n3(text)
