"""A graph in every form in which a program can have it: of rdflib, of pyoxigraph, and as texts. And the roads of
graphs: pushed with their times, and given to `run` in place of files."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyoxigraph as ox
import rdflib

import spaseq
from spaseq.core.events import format_time
from spaseq.rdf import term_of
from tests.support import harness, oracle_spaseq
from tests.support.harness import Case

Triple = tuple[Any, Any, Any]
"""Of pyoxigraph's terms."""
NAME = ox.NamedNode("urn:graph:of:its:own")


def read_triples(text: str) -> list[Triple]:
    """The triples of a text in N-Triples."""
    return [(t.subject, t.predicate, t.object) for t in ox.parse(text.encode(), ox.RdfFormat.N_TRIPLES)]


def of_rdflib(triples: Iterable[Triple]) -> list[Triple]:
    """The same of rdflib's terms, their texts as they were: rdflib's own parser would write numbers anew."""
    return [tuple(term_of(term, "a term") for term in triple) for triple in triples]  # type: ignore[misc]


def _graph(triples: list[Triple]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for triple in of_rdflib(triples):
        graph.add(triple)
    return graph


def _dataset(triples: list[Triple]) -> rdflib.Dataset:
    dataset = rdflib.Dataset()
    for triple in of_rdflib(triples):
        dataset.graph(rdflib.URIRef(NAME.value)).add(triple)
    return dataset


def _store(triples: list[Triple]) -> ox.Store:
    store = ox.Store()
    store.extend(ox.Quad(*triple, NAME) for triple in triples)
    return store


def _text(form: ox.RdfFormat) -> Callable[[list[Triple]], Any]:
    def text(triples: list[Triple]) -> Any:
        return ox.serialize((ox.Triple(*triple) for triple in triples), format=form)

    return text


KINDS: dict[str, Callable[[list[Triple]], Any]] = {
    "a graph of rdflib": _graph,
    "a dataset of rdflib": _dataset,
    "triples of rdflib": of_rdflib,
    "lists": lambda triples: [list(triple) for triple in of_rdflib(triples)],
    "an iterator": lambda triples: iter(of_rdflib(triples)),
    "a store": _store,
    "a dataset of pyoxigraph": lambda triples: ox.Dataset(ox.Quad(*triple) for triple in triples),
    "a set of triples": lambda triples: {ox.Triple(*triple) for triple in triples},
    "quads": lambda triples: [ox.Quad(*triple) for triple in triples],
    "quads of a graph": lambda triples: (ox.Quad(*triple, NAME) for triple in triples),
    "terms of pyoxigraph": list,
    "N-Triples": _text(ox.RdfFormat.N_TRIPLES),
    "Turtle": lambda triples: _text(ox.RdfFormat.TURTLE)(triples).decode(),
    "TriG": _text(ox.RdfFormat.TRIG),
    "N-Quads": lambda triples: _text(ox.RdfFormat.N_QUADS)(triples).decode(),
    "JSON-LD": _text(ox.RdfFormat.JSON_LD),
}


def time_in_some_form(time: int, rng: random.Random) -> Any:
    """A time in nanoseconds, as an int, a text, a literal of either library or, of whole microseconds, a datetime."""
    forms: list[Callable[[], Any]] = [
        lambda: time,
        lambda: format_time(time),
        lambda: rdflib.Literal(format_time(time), datatype=rdflib.XSD.dateTime, normalize=False),
        lambda: ox.Literal(f"{Decimal(time) / 10**9:f}"),
    ]
    if time % 1000 == 0:
        whole = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=time // 1000)
        forms += [lambda: whole, lambda: whole.replace(tzinfo=None), lambda: whole.astimezone().isoformat()]
    return rng.choice(forms)()


def _drawn_graphs(case: Case, rng: random.Random) -> dict[str, list[tuple[int, Any]]]:
    """By stream the times and graphs of its events, each graph in a form that is drawn."""
    return {
        name: [(time, _in_some_form(_triples(graph), rng)) for time, graph in events]
        for name, events in harness.streamset(case.graphs).items()
    }


def _in_some_form(triples: list[Triple], rng: random.Random) -> Any:
    kinds = [make for kind, make in KINDS.items() if kind != "a store" or _is_stored(triples)]
    return rng.choice(kinds)(triples)


def _is_stored(triples: list[Triple]) -> bool:
    """True if a store of pyoxigraph keeps them: of numbers and times it keeps the value, 2.0 for 2.00."""
    return {(quad.subject, quad.predicate, quad.object) for quad in _store(triples)} == set(triples)


def _triples(graph: oracle_spaseq.Graph) -> list[Triple]:
    return read_triples("".join(f"{s} {p} {o} .\n" for s, p, o in sorted(graph)))


def _known_dataset(case: Case) -> Any:
    """The knowledge as the named graphs of a store, or of a dataset if no store keeps it as it is."""
    if not case.kb:
        return None
    quads, stored = [], True
    store = ox.Store()
    for iri, graph in harness.knowledge(case.kb).items():
        triples, name = _triples(graph), ox.NamedNode(iri.strip("<>"))
        stored = stored and _is_stored(triples)
        store.add_graph(name)
        quads += [ox.Quad(*triple, name) for triple in triples]
    store.extend(quads)
    return store if stored else ox.Dataset(quads)


def push_graphs(query: spaseq.Query, case: Case, rng: random.Random) -> list[Any]:
    """The answers as graphs are pushed one by one, their times in forms that are drawn; some snapshots between."""
    place = {name: number for number, (name, _) in enumerate(query.streams)}
    graphs = _drawn_graphs(case, rng)
    events = [(time, place[name], graph) for name, given in graphs.items() for time, graph in given]
    kb = _known_dataset(case)
    session = query.open(kb=kb)
    found: list[Any] = []
    for time, number, graph in sorted(events, key=lambda event: event[:2]):
        stream = None if len(place) == 1 and rng.random() < 0.5 else rng.choice(query.streams[number])
        found += session.push(graph, time=time_in_some_form(time, rng), stream=stream)
        if rng.random() < 0.05:
            session = query.open(session.snapshot(), kb=kb)
    return [harness.answer_of(match) for match in found + session.close()]


def run_graphs(query: spaseq.Query, case: Case, rng: random.Random) -> list[Any]:
    """The answers over pairs of times and graphs in place of files; some streams are iterators."""
    streams: dict[str, Any] = {}
    for name, events in _drawn_graphs(case, rng).items():
        pairs = [(time_in_some_form(time, rng), graph) for time, graph in events]
        streams[name] = iter(pairs) if rng.random() < 0.3 else pairs
    return [harness.answer_of(match) for match in query.run(streams, _known_dataset(case))]
