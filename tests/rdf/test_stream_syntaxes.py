"""Streams in RDF/XML and JSON-LD: the events of the same data in N-Quads."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from spaseq.core.errors import EventError
from spaseq.rdf import StreamOptions
from spaseq.rdf.given import to_pyoxigraph
from tests.support.graph_events import read_stream

FORM = ox.RdfFormat
PROV = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
AT = ox.NamedNode("urn:e#at")


def _value(rng: random.Random, number: int) -> Any:
    return rng.choice(
        [
            ox.Literal(number), ox.Literal(f"0{number}", datatype=ox.NamedNode("http://www.w3.org/2001/XMLSchema#integer")),
            ox.Literal("chat", language="fr"), ox.Literal('{ "a": [ } <urn:x> {}'), ox.Literal("zwei\nZeilen"),
            ox.NamedNode(f"urn:o{number}"), ox.BlankNode(f"b{number % 2}"), ox.Literal(True),
        ]
    )  # fmt: skip


def _triples(rng: random.Random, subject: Any) -> dict[Any, None]:
    return {ox.Triple(subject, ox.NamedNode(f"urn:e#p{i}"), _value(rng, i)): None for i in range(rng.randrange(1, 5))}


def _shown(events: Any) -> list[Any]:
    """Times and graphs; blank nodes by their number in the event."""
    return [(event.time, None if event.graph is None else str(event.graph), _plain(event.triples)) for event in events]


def _plain(triples: Any) -> Any:
    return ox.Dataset(ox.Quad(*(to_pyoxigraph(term) for term in triple)) for triple in triples)


def _canonical(shown: list[Any]) -> list[Any]:
    for _, _, dataset in shown:
        dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return [(time, name, {str(quad) for quad in dataset}) for time, name, dataset in shown]


@pytest.mark.parametrize("seed", range(30))
def test_json_ld_as_n_quads(seed: int, tmp_path: Path) -> None:
    """Named graphs, each with a time in it, or about it in the default graph, before or behind it."""
    rng = random.Random(seed)
    quads = []
    for number in range(rng.randrange(1, 30)):
        name = ox.NamedNode(f"urn:g{number}")
        own = [ox.Quad(t.subject, t.predicate, t.object, name) for t in _triples(rng, ox.NamedNode("urn:s"))]
        time = ox.Quad(name, PROV, ox.Literal(str(number)), rng.choice((name, ox.DefaultGraph())))
        own.insert(rng.choice((0, len(own))), time)
        quads += own
    events = []
    for form, end in ((FORM.N_QUADS, "nq"), (FORM.JSON_LD, "jsonld"), (FORM.JSON_LD, "jsonld.gz"), (FORM.TRIG, "trig")):
        data = ox.serialize(quads, format=form)
        assert data is not None
        path = tmp_path / f"s.{end}"
        path.write_bytes(gzip.compress(data) if end.endswith("gz") else data)
        events.append(_canonical(_shown(read_stream("urn:s", [str(path)], StreamOptions()))))
    assert len(events[0]) and all(found == events[0] for found in events)


@pytest.mark.parametrize("seed", range(30))
def test_subjects_of_rdf_xml_and_json_ld_as_n_triples(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    triples: list[Any] = []
    for number in range(rng.randrange(1, 30)):
        subject = ox.NamedNode(f"urn:s{number}")
        triples += [ox.Triple(subject, AT, ox.Literal(str(number))), *_triples(rng, subject)]
    events = []
    for form, end in ((FORM.N_TRIPLES, "nt"), (FORM.RDF_XML, "rdf"), (FORM.JSON_LD, "jsonld"), (FORM.TURTLE, "ttl")):
        data = ox.serialize(triples, format=form)
        assert data is not None
        (tmp_path / f"s.{end}").write_bytes(data)
        options = StreamOptions.parse(event_by="subject", time=AT.value)
        events.append(_canonical(_shown(read_stream("urn:s", [str(tmp_path / f"s.{end}")], options))))
    assert len(events[0]) and all(found == events[0] for found in events)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("s.jsonld", '[{"@id": "urn:g",\n "@graph": [{"urn:p" 5}]}]', "s.jsonld:2: not JSON-LD"),
        (
            "s.jsonld",
            '{"@context": "http://x.org/c", "@id": "urn:x"}',
            "remote contexts are not fetched\n.*into the document",
        ),
        ("s.jsonld", '{"@id": "urn:x", "urn:p": 5}', "no named graph in the file"),
        ("s.rdf", "<rdf:RDF", "not RDF/XML"),
        ("s.xml", "<html><body></html>", "not RDF/XML"),
    ],
)
def test_errors(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(EventError, match=message):
        list(read_stream("urn:s", [str(tmp_path / name)], StreamOptions()))
