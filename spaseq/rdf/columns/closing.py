"""The consequences of the classes and properties that graphs describe (RDFS), over numbered terms.

The rules are those with consequences for instances: rdfs7 and rdfs9 (sub-properties, subclasses), rdfs2 and rdfs3
(domain, range), with the schema closed under rdfs5 and rdfs11. The schema comes from all graphs together only.
Axiomatic triples (everything is an rdfs:Resource) are left out. Pairs of terms are int32 (n, 2), each once, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from rdflib.namespace import RDF, RDFS

from spaseq.core.integers import apart
from spaseq.rdf.columns.inherited import Hierarchy
from spaseq.rdf.columns.model import IRI, LITERAL, TermTable
from spaseq.rdf.columns.pairs import NO_PAIRS, compose, once, transitive
from spaseq.rdf.columns.triples import GraphColumns, widen
from spaseq.rdf.terms import term_bytes

_CLASSES, _PROPERTIES, _DOMAINS, _RANGES = range(4)
_LINKS: Final = (RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range)
"""The predicates of the schema."""


@dataclass(slots=True, eq=False)
class SchemaColumns:
    """A schema, closed, of the terms that are IRIs: neither events nor patterns can name the others.

    `keys`: the terms, as `term_bytes`, in the order of their texts; a number is a place there. `classes`, `properties`:
    pairs of a term and another above it; `domains`, `ranges`: of a property and a class of its subjects or its objects.
    """

    keys: list[bytes]
    classes: np.ndarray
    properties: np.ndarray
    domains: np.ndarray
    ranges: np.ndarray


def close_rdfs(
    graphs: Mapping[str, GraphColumns], most: int | None = None
) -> tuple[dict[str, GraphColumns], SchemaColumns]:
    """The graphs with their consequences, and the schema of all of them together.

    A graph from which nothing follows is the same object. O(triples + consequences), with a Python step for each pair
    of terms of the schema. This is repeated while the graphs grow, if the schema has triples about its own predicates
    (for example, a property below rdfs:subClassOf). Raises BudgetExceeded if a closed graph or the schema has more than
    `most` (`closed_triples`), EventError if a graph that is kept in a file is damaged.
    """
    terms, closed = _over_one_table(graphs)
    while True:
        schema = _schema_of(terms, closed.values(), most)
        links = _numbers(terms, (RDF.type, *_LINKS))
        grown = {iri: _closed(graph, schema, links, most) for iri, graph in closed.items()}
        same = all(grown[iri] is closed[iri] for iri in closed)
        about = np.concatenate([schema[_PROPERTIES].ravel(), schema[_DOMAINS][:, 0], schema[_RANGES][:, 0]])
        closed = grown
        if same or not np.isin(about, list(links.values())).any():
            return closed, _of_iris(terms, schema)


def _over_one_table(graphs: Mapping[str, GraphColumns]) -> tuple[TermTable, dict[str, GraphColumns]]:
    """The graphs over one table, which has rdf:type if anything may follow. One graph stays as it is if it can."""
    from spaseq.rdf.columns.dictionary import Dictionary  # loads the kernels

    says = [graph for graph in graphs.values() if graph.numbers(_LINKS)]
    first = next(iter(graphs.values()))
    if not says or (len(graphs) == 1 and first.terms.id_of(RDF.type) >= 0):
        return first.terms, dict(graphs)
    dictionary = Dictionary()
    dictionary.intern([term_bytes(RDF.type)])
    rows = {iri: graph.rows_over(dictionary) for iri, graph in graphs.items()}
    terms = dictionary.as_terms(dictionary.finder())
    return terms, {iri: GraphColumns(own, terms) for iri, own in rows.items()}


def _numbers(terms: TermTable, wanted: Iterable[Any]) -> dict[Any, int]:
    found = {term: terms.id_of(term) for term in wanted}
    return {term: number for term, number in found.items() if number >= 0}


def _schema_of(terms: TermTable, graphs: Iterable[GraphColumns], most: int | None) -> list[np.ndarray]:
    """The pairs of classes, properties, domains and ranges, closed, by the terms' numbers."""
    graphs = tuple(graphs)
    stated = []
    for link in _LINKS:
        parts = [graph.about([link])[:, [0, 2]] for graph in graphs if graph.numbers([link])]
        stated.append(once(np.concatenate([NO_PAIRS, *parts])))
    classes, properties = transitive(stated[_CLASSES], most), transitive(stated[_PROPERTIES], most)
    found = [classes, properties]
    for own in stated[_DOMAINS:]:
        # statements about a property's super-properties hold for it
        own = np.concatenate([own, compose(properties, own, most)])
        found.append(once(np.concatenate([own, compose(own, classes, most)])))
    return found


def _closed(graph: GraphColumns, schema: list[np.ndarray], links: Mapping[Any, int], most: int | None) -> GraphColumns:
    """The graph with the consequences of each of its triples; the same object if there are no new ones."""
    if not any(map(len, schema)):
        return graph
    whole = widen(graph.rows, _following(graph, schema, links, most), most)
    return graph if len(whole) == len(graph) else GraphColumns(whole, graph.terms)


def _following(
    graph: GraphColumns, schema: list[np.ndarray], links: Mapping[Any, int], most: int | None
) -> Iterator[np.ndarray]:
    """The consequences of each of a graph's triples."""
    classes, properties = (Hierarchy(pairs, len(graph.terms)) for pairs in schema[:_DOMAINS])
    rows, kind = graph.rows, links[RDF.type]
    low, high = graph.groups.get(kind, (0, 0))
    types = [rows[low:high]]
    for place, link in ((0, _DOMAINS), (2, _RANGES)):
        for predicate, end in classes.least(schema[link]).tolist():  # the others are above these
            low, high = graph.groups.get(predicate, (0, 0))
            owners = apart(rows[low:high, place])
            if place:
                owners = owners[graph.terms.kind[owners] != LITERAL]
            types.append(_triples(owners, kind, end))
            yield types[-1]
    yield from _above(classes, np.concatenate(types), most)
    for name, hierarchy in ((RDFS.subClassOf, classes), (RDFS.subPropertyOf, properties)):
        low, high = graph.groups.get(links.get(name, -1), (0, 0))
        yield from _above(hierarchy, rows[low:high], most)
    fits = graph.terms.kind[schema[_PROPERTIES][:, 1]] == IRI  # only IRIs can be predicates
    above = properties if fits.all() else Hierarchy(schema[_PROPERTIES][fits], len(graph.terms))
    own = [rows[low:high] for predicate, (low, high) in graph.groups.items() if predicate in above]
    if own:
        s, p, o = np.concatenate(own).T
        for found in above.of_links(s, p, o, most):
            yield _triples(*found)


def _above(hierarchy: Hierarchy, rows: np.ndarray, most: int | None) -> Iterator[np.ndarray]:
    """The rows, all of one predicate, with the terms above their objects."""
    for subjects, ends in hierarchy.of_terms(rows[:, 0], rows[:, 2], most):
        yield _triples(subjects, rows[0, 1], ends)


def _triples(s: np.ndarray, p: np.ndarray | int, o: np.ndarray | int) -> np.ndarray:
    found = np.empty((len(s), 3), np.int32)
    found[:, 0], found[:, 1], found[:, 2] = s, p, o
    return found


def _of_iris(terms: TermTable, schema: list[np.ndarray]) -> SchemaColumns:
    """The schema over keys of its own."""
    used = apart(np.concatenate([pairs.ravel() for pairs in schema]))
    keys = terms.keys(used)
    places = sorted((i for i, key in enumerate(keys) if key.startswith(b"<")), key=lambda i: keys[i][1:-1])
    numbers = np.full(len(keys), -1, np.int32)
    numbers[places] = np.arange(len(places))
    own = (numbers[np.searchsorted(used, pairs)] for pairs in schema)
    found = [once(pairs[(pairs >= 0).all(axis=1)]) for pairs in own]
    return SchemaColumns([keys[place] for place in places], *found)
