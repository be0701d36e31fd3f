"""Terms and graphs that a program gives: of rdflib and of pyoxigraph, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import pandas
import pyoxigraph as ox
import pytest
import rdflib
from rdflib import BNode, Literal, Namespace, URIRef, Variable

import spaseq
from spaseq.core.errors import OptionError, SpaseqError

KB = "http://kb"
QUERY = spaseq.compile(
    f"PREFIX : <urn:e#> SELECT ?x FROM STREAM S <urn:s> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?x :p ?v . "
    f"GRAPH <{KB}> {{ ?x :in ?y }} }} }}"
)
S, P, O = URIRef("urn:x"), URIRef("urn:e#p"), Literal("1")  # noqa: E741
NAMED, OX = ox.NamedNode, (ox.NamedNode("urn:x"), ox.NamedNode("urn:e#p"), ox.Literal("1"))
IN = URIRef("urn:x"), URIRef("urn:e#in"), URIRef("urn:y")
OX_IN = NAMED("urn:x"), NAMED("urn:e#in"), NAMED("urn:y")


def _graph(triple: Any) -> rdflib.Graph:
    graph = rdflib.Graph()
    graph.add(triple)
    return graph


def _dataset(triple: Any, name: str | None = "urn:g") -> rdflib.Dataset:
    dataset = rdflib.Dataset()
    (dataset if name is None else dataset.graph(URIRef(name))).add(triple)
    return dataset


def _store(triple: tuple[Any, Any, Any]) -> ox.Store:
    store = ox.Store()
    store.add(ox.Quad(triple[0], triple[1], triple[2], NAMED("urn:g")))
    return store


GRAPHS = {
    "rdflib": ((S, P, O),), "a list": [(S, P, O)], "lists": [[S, P, O]], "a graph": _graph((S, P, O)),
    "a subclass": ((rdflib.term.RDFLibGenid("urn:x"), P, O),), "pyoxigraph": (OX,), "mixed": ((S, OX[1], O),),
    "triples": [ox.Triple(*OX)], "quads": [ox.Quad(*OX)], "default": _dataset((S, P, O), None),
    "dataset": _dataset((S, P, O)), "store": _store(OX), "ox dataset": ox.Dataset([ox.Quad(*OX)]),
}  # fmt: skip


@pytest.mark.parametrize("triples", GRAPHS.values(), ids=GRAPHS)
def test_graphs_of_both_libraries_are_pushed(triples: Any) -> None:
    """Those of pyoxigraph never matched, and nothing said so."""
    event = spaseq.GraphEvent("urn:s", 0, triples)
    assert event.triples == ((S, P, O),) and [type(term) for term in event.triples[0]] == [URIRef, URIRef, Literal]
    with QUERY.open(kb={KB: _graph(IN)}) as session:
        session.push(event)
    assert [match.bindings for match in session.rest] == [{"x": S}]


def test_quads_name_their_graph() -> None:
    for given in (_dataset((S, P, O)), _store(OX)):
        assert spaseq.GraphEvent("urn:s", 0, given).graph == URIRef("urn:g")
        assert spaseq.GraphEvent("urn:s", 0, given, URIRef("urn:h")).graph == URIRef("urn:h")
    two = [ox.Quad(*OX, NAMED("urn:g")), ox.Quad(*OX, NAMED("urn:h"))]
    with pytest.raises(OptionError, match="of 2 graphs"):
        spaseq.GraphEvent("urn:s", 0, two)


def test_streams_and_times_in_other_forms() -> None:
    event = spaseq.GraphEvent(URIRef("urn:s"), np.int64(5), (), NAMED("urn:g"))
    assert (type(event.stream), type(event.time), event.graph) == (str, int, URIRef("urn:g"))
    assert spaseq.GraphEvent(cast(Any, NAMED("urn:s")), 0, ()).stream == "urn:s"


@pytest.mark.parametrize(
    "arguments",
    [
        ("urn:s", 1.5, ()), ("urn:s", True, ()), ("urn:s", "1", ()), ("urn:s", None, ()), ("urn:s", 1 << 63, ()),
        ("urn:s", datetime(2026, 1, 1, tzinfo=UTC).date(), ()), (5, 1, ()), (None, 1, ()), (Literal("urn:s"), 1, ()),
        ("urn:s", 1, None), ("urn:s", 1, "text"), ("urn:s", 1, b"text"), ("urn:s", 1, (S, P, O)),
        ("urn:s", 1, ((S, P),)),
        ("urn:s", 1, (5,)), ("urn:s", 1, (("http://a", P, O),)), ("urn:s", 1, ((S, "http://p", O),)),
        ("urn:s", 1, ((S, P, "text"),)), ("urn:s", 1, ((S, P, 5),)), ("urn:s", 1, ((O, P, O),)),
        ("urn:s", 1, ((S, O, O),)),
        ("urn:s", 1, ((S, BNode(), O),)), ("urn:s", 1, ((Namespace("http://a"), P, O),)),
        ("urn:s", 1, ((Variable("x"), P, O),)),
        ("urn:s", 1, (), "urn:g"), ("urn:s", 1, (), O), ("urn:s", 1, ((ox.Triple(*OX), P, S),)),
        ("urn:s", 1, ((S, P, _graph(IN)),)), ("urn:s", 1, ["spo"]),
    ],
)  # fmt: skip
def test_what_is_no_graph_event_is_refused_by_name(arguments: tuple[Any, ...]) -> None:
    """A text for a subject became a blank node, and a time of 1.5 was taken."""
    with pytest.raises(OptionError) as caught:
        spaseq.GraphEvent(*arguments)
    assert caught.value.hint


KNOWLEDGE = {
    "graph": _graph(IN), "default": _dataset(IN, None), "dataset": _dataset(IN), "store": _store(OX_IN),
    "triples": [IN],
    "iterator": iter([ox.Triple(*OX_IN)]), "terms": (OX_IN,), "dataset of pyoxigraph": ox.Dataset([ox.Quad(*OX_IN)]),
    "frame": pandas.DataFrame({"subject": [OX_IN[0]], "predicate": [IN[1]], "object": ["<urn:y>"]}),
}  # fmt: skip


@pytest.mark.parametrize("known", KNOWLEDGE.values(), ids=KNOWLEDGE)
def test_knowledge_of_both_libraries(known: Any) -> None:
    with QUERY.open(kb={URIRef(KB): known}) as session:
        session.push(spaseq.GraphEvent("urn:s", 0, ((S, P, O),)))
    assert len(session.rest) == 1


@pytest.mark.parametrize(
    "kb",
    [5, "kb.ttl", {5: "kb.ttl"}, {KB: 5}, {KB: None}, {KB: b"kb.ttl"}, {KB: {}}, {KB: [5]}, {KB: [("a", "b", "c")]},
     {KB: [(S, P)]}, {KB: ["kb.ttl", 5]}, {KB: spaseq.Grouped(5, "urn:p")}],
)  # fmt: skip
def test_what_is_no_knowledge_is_refused_by_name(kb: Any) -> None:
    for use in (lambda: QUERY.open(kb=kb), lambda: QUERY.run({"S": "none.nq"}, kb), lambda: spaseq.Knowledge(kb)):
        with pytest.raises(SpaseqError):
            use()
