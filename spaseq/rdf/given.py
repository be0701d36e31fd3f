"""Terms and graphs as a program gives them: of rdflib or of pyoxigraph. Anything else is refused by name.

`to_pyoxigraph` is the way back, for results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import pyoxigraph
from rdflib import BNode, ConjunctiveGraph, Dataset, Graph, Literal, URIRef
from rdflib.graph import DATASET_DEFAULT_GRAPH_ID

from spaseq.core.errors import OptionError
from spaseq.core.measure import shorten
from spaseq.rdf.terms import Term, Terms, Triple, term_key
from spaseq.rdf.triple_terms import DirectionalString, TripleTerm, split_tag

_TERMS: Final = frozenset({URIRef, BNode, Literal, DirectionalString, TripleTerm})
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


def term_of(value: Any, place: str, terms: Terms | None = None) -> Term:
    """`value` as a term of rdflib. Raises `OptionError`, which calls it `place`, for other values. `terms` remembers
    those of pyoxigraph that were converted."""
    if isinstance(value, TripleTerm):
        return value
    for kind in (URIRef, BNode, Literal):
        if isinstance(value, kind):
            return value if value.__class__ is kind or kind is Literal else kind(value)  # a subclass equals none
    if not isinstance(value, (*FOREIGN, pyoxigraph.Triple)):
        hint = _HINT
        if isinstance(value, str):
            hint = "write rdflib.URIRef(…) of an IRI and rdflib.Literal(…) of a text, or pyoxigraph's terms"
        raise OptionError(f"{place} is {_call(value)}, which is no RDF term", hint)
    try:
        return (terms or Terms()).convert(value)
    except ValueError as error:
        raise OptionError(f"{place}: {error}", _HINT) from None


def iri_of(value: Any, place: str) -> str:
    """The text of an IRI that is given as text or as a term. Raises `OptionError` for anything else."""
    if isinstance(value, pyoxigraph.NamedNode):
        return value.value
    if not isinstance(value, str) or isinstance(value, BNode | Literal):
        raise OptionError(f"{place} is {_call(value)}", "give its IRI, as a text")
    return str(value)


def to_pyoxigraph(term: Term) -> Any:
    """The term of pyoxigraph that an rdflib term is. Raises `OptionError` for texts that pyoxigraph takes for none: an
    IRI with a blank, a language tag that is no such tag."""
    try:
        if isinstance(term, URIRef):
            return pyoxigraph.NamedNode(str(term))
        if isinstance(term, BNode):
            return pyoxigraph.BlankNode(str(term))
        if isinstance(term, TripleTerm):
            return pyoxigraph.Triple(*map(to_pyoxigraph, term.parts))
        if term.language:
            tag, direction = split_tag(term.language)
            base = pyoxigraph.BaseDirection(direction) if direction else None
            return pyoxigraph.Literal(str(term), language=tag, direction=base)
        if term.datatype is None:
            return pyoxigraph.Literal(str(term))
        return pyoxigraph.Literal(str(term), datatype=pyoxigraph.NamedNode(str(term.datatype)))
    except ValueError as error:
        raise OptionError(f"pyoxigraph has no term for {shorten(term_key(term), 60)}: {error}", _ONLY_RDFLIB) from None


_ONLY_RDFLIB: Final = 'as_="rdflib" gives a graph of rdflib'
RdflibGraph: TypeAlias = Graph
PyoxigraphDataset: TypeAlias = pyoxigraph.Dataset


def graph_as(library: str, triples: tuple[Triple, ...], prefixes: Mapping[str, str]) -> Any:
    """`triples` as a `Graph` of `rdflib`, with `prefixes`, as a `Dataset` of `pyoxigraph`, or, as `triples`,
    themselves. Raises `OptionError` for another word."""
    if library == "triples":
        return triples
    if library == "rdflib":
        graph = Graph(bind_namespaces="core")
        for label, iri in prefixes.items():
            graph.bind(label, iri, override=True, replace=True)
        for triple in triples:
            graph.add(triple)
        return graph
    if library == "pyoxigraph":
        return pyoxigraph.Dataset(pyoxigraph.Quad(*map(to_pyoxigraph, triple)) for triple in triples)
    raise OptionError(f"as_={library!r}: no such form of a graph", "one of rdflib, pyoxigraph, triples")


def hash_of_terms(terms: Mapping[str, Term], place: tuple[int, ...]) -> str:
    """A text that differs for different bindings and places, of letters and digits: it names blank nodes."""
    texts = [*map(str, place), *(f"{name} {term_key(term)}" for name, term in sorted(terms.items()))]
    data = "\0".join(texts).encode(errors="surrogatepass")
    return f"m{hashlib.sha256(data).hexdigest()[:24]}"


def is_graph(value: object) -> bool:
    """True for a graph or a dataset of rdflib, a store or a dataset of pyoxigraph."""
    return isinstance(value, (Graph, pyoxigraph.Store, pyoxigraph.Dataset))


def is_dataset(value: object) -> bool:
    """True for those of them that hold named graphs."""
    return isinstance(value, (ConjunctiveGraph, pyoxigraph.Store, pyoxigraph.Dataset))


def graph_names(given: Any) -> list[Term]:
    """The names of the graphs of a dataset, those without a triple too; of some kinds of datasets none are known."""
    if isinstance(given, pyoxigraph.Store):
        names: Iterable[Any] = given.named_graphs()
    elif isinstance(given, Dataset):
        names = (graph.identifier for graph in given.graphs())
    else:
        return []
    return [name for found in names if (name := _name(found, "a dataset")) is not None]


def named_graphs(given: Any, place: str) -> dict[Term, list[Triple]]:
    """The triples of a dataset by the name of their graph; those of the default graph, which has none, are left out.

    Raises `OptionError`, which calls it `place`, as `triples_of`.
    """
    found: dict[Term, list[Triple]] = {name: [] for name in graph_names(given)}
    for triple, name in statements_of(given, place):
        if name is not None:
            found.setdefault(name, []).append(triple)
    return found


def triples_of(given: Any, place: str) -> tuple[tuple[Triple, ...], Term | None]:
    """The triples of a graph, a tuple of them, or whatever gives triples or quads, and the name of the graph of quads.

    Raises `OptionError`, which calls it `place`, for anything else, and for quads of several graphs.
    """
    names: dict[Term | None, None] = {}
    triples = []
    for triple, name in statements_of(given, place):
        triples.append(triple)
        names[name] = None
    if len(names) > 1:
        raise OptionError(f"{place}: these statements are of {len(names)} graphs", "make an event of each graph")
    return tuple(triples), next(iter(names), None)


def graph_of(given: Any, place: str) -> Iterator[Triple]:
    """The triples of a graph, a dataset or a store; those of named graphs are merged. Raises as `triples_of`."""
    return (triple for triple, _ in statements_of(given, place))


def statements_of(given: Any, place: str, terms: Terms | None = None) -> Iterator[tuple[Triple, Term | None]]:
    """The triples of a graph, a dataset, or whatever gives triples or quads, each with the name of its graph: None in
    the default graph. Raises `OptionError`, which calls it `place`, for anything else. `terms` as of `term_of`."""
    terms = terms or Terms()
    one = isinstance(given, Graph) and not isinstance(given, ConjunctiveGraph)
    own = given.identifier if one else None
    name_of_all = _name(own, place) if isinstance(own, URIRef) else None
    if isinstance(given, ConjunctiveGraph) and not isinstance(given, Dataset):
        given = given.quads((None, None, None, None))  # iterating gives triples
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        problem = f"{place}: a {type(given).__name__} holds no triples"
        raise OptionError(problem, "give triples (subject, predicate, object) of RDF terms, or a Graph")
    for number, statement in enumerate(given, 1):
        if statement.__class__ is tuple and are_plain((statement,)):
            yield statement, name_of_all
            continue
        at = f"{place}, triple {number}"
        parts = None if isinstance(statement, (str, bytes, *FOREIGN)) else _parts(statement)
        if parts is None or len(parts) not in (3, 4):
            raise OptionError(f"{at} is {_call(statement)}", "a triple is (subject, predicate, object), of RDF terms")
        s, p, o = (term_of(part, f"{at}, {name}", terms) for part, name in zip(parts, _NAMES, strict=False))
        if isinstance(s, (Literal, TripleTerm)) or not isinstance(p, URIRef):
            what = "a literal" if isinstance(s, Literal) else "a triple term"
            wrong = f"subject is {what}" if isinstance(s, (Literal, TripleTerm)) else "predicate is no IRI"
            raise OptionError(f"{at}: the {wrong}", "subjects are IRIs or blank nodes, predicates IRIs")
        yield (s, p, o), _name(parts[3], at) if len(parts) == 4 else name_of_all


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
