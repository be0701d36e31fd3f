"""Terms and graphs as a program gives them: of rdflib or of pyoxigraph. Anything else is refused by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyoxigraph
from rdflib import BNode, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from spaseq.core.errors import OptionError
from spaseq.core.measure import shorten
from spaseq.rdf.terms import Term, Terms, Triple

_TERMS: Final = frozenset({URIRef, BNode, Literal})
NODES: Final = frozenset({URIRef, BNode})
"""The classes of subjects and of names of graphs."""
FOREIGN: Final = (pyoxigraph.NamedNode, pyoxigraph.BlankNode, pyoxigraph.Literal)
"""The classes of terms that `term_of` converts."""
_HINT: Final = "terms are those of rdflib (URIRef, BNode, Literal) or of pyoxigraph (NamedNode, BlankNode, Literal)"


def are_plain(triples: tuple[Any, ...]) -> bool:
    """True if these are triples of rdflib's terms, each in a place in which it may stand.

    PERF: by class, not by `isinstance`: 0.1 µs a triple.
    """
    try:
        for s, p, o in triples:
            if p.__class__ is not URIRef or s.__class__ not in NODES or o.__class__ not in _TERMS:
                return False
    except (TypeError, ValueError):
        return False
    return True


def term_of(value: Any, place: str) -> Term:
    """`value` as a term of rdflib. Raises `OptionError`, which calls it `place`, for other values."""
    for kind in (URIRef, BNode, Literal):
        if isinstance(value, kind):
            return value if value.__class__ is kind or kind is Literal else kind(value)  # a subclass equals none
    if not isinstance(value, FOREIGN):
        hint = _HINT
        if isinstance(value, str):
            hint = "write rdflib.URIRef(…) of an IRI and rdflib.Literal(…) of a text, or pyoxigraph's terms"
        raise OptionError(f"{place} is {_call(value)}, which is no RDF term", hint)
    try:
        return Terms().convert(value)
    except ValueError as error:
        raise OptionError(f"{place}: {error}", _HINT) from None


def iri_of(value: Any, place: str) -> str:
    """The text of an IRI that is given as text or as a term. Raises `OptionError` for anything else."""
    if isinstance(value, pyoxigraph.NamedNode):
        return value.value
    if not isinstance(value, str) or isinstance(value, BNode | Literal):
        raise OptionError(f"{place} is {_call(value)}", "give its IRI, as a text")
    return str(value)


def triples_of(given: Any, place: str) -> tuple[tuple[Triple, ...], Term | None]:
    """The triples of a graph, a tuple of them, or whatever gives triples or quads, and the name of the graph of quads.

    Raises `OptionError`, which calls it `place`, for anything else, and for quads of several graphs.
    """
    names: dict[Term | None, None] = {}
    triples = []
    for triple, name in _statements(given, place):
        triples.append(triple)
        names[name] = None
    if len(names) > 1:
        raise OptionError(f"{place}: these statements are of {len(names)} graphs", "make an event of each graph")
    return tuple(triples), next(iter(names), None)


def graph_of(given: Any, place: str) -> Iterator[Triple]:
    """The triples of a graph, a dataset or a store; those of named graphs are merged. Raises as `triples_of`."""
    return (triple for triple, _ in _statements(given, place))


def _statements(given: Any, place: str) -> Iterator[tuple[Triple, Term | None]]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        problem = f"{place}: a {type(given).__name__} holds no triples"
        raise OptionError(problem, "give triples (subject, predicate, object) of RDF terms, or a Graph")
    for number, statement in enumerate(given, 1):
        if statement.__class__ is tuple and are_plain((statement,)):
            yield statement, None
            continue
        at = f"{place}, triple {number}"
        parts = None if isinstance(statement, (str, bytes, *FOREIGN)) else _parts(statement)
        if parts is None or len(parts) not in (3, 4):
            raise OptionError(f"{at} is {_call(statement)}", "a triple is (subject, predicate, object), of RDF terms")
        s, p, o = (term_of(part, f"{at}, {name}") for part, name in zip(parts, _NAMES, strict=False))
        if isinstance(s, Literal) or not isinstance(p, URIRef):
            wrong = "subject is a literal" if isinstance(s, Literal) else "predicate is no IRI"
            raise OptionError(f"{at}: the {wrong}", "subjects are IRIs or blank nodes, predicates IRIs")
        yield (s, p, o), _name(parts[3], at) if len(parts) == 4 else None


_NAMES: Final = ("subject", "predicate", "object")


def _parts(statement: Any) -> tuple[Any, ...] | None:
    return tuple(statement) if isinstance(statement, Iterable) else None


def _name(value: Any, place: str) -> Term | None:
    """The name of a graph; None of the default one. rdflib gives a graph for its name in some versions."""
    if value is None or isinstance(value, pyoxigraph.DefaultGraph):
        return None
    name = term_of(getattr(value, "identifier", value), f"{place}, graph")
    return None if name == DATASET_DEFAULT_GRAPH_ID else name


def _call(value: object) -> str:
    kind = "a text" if type(value) is str else f"of the type {type(value).__name__}"
    return f"{kind}: {shorten(repr(value), 60)}" if isinstance(value, str | int | float) else kind
