"""Graphs of TriG that hold no triple: events as others are, on every road, whatever the text around them looks like."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq.core.errors import EventError
from spaseq.rdf import Counters, GraphEvent, StreamOptions, StreamSource, format_of, parse_statements
from spaseq.rdf.columns.follow import Followed
from spaseq.rdf.statements import Document
from tests.support.graph_events import read_stream

E = "http://example.org/"
HEAD = "@prefix : <http://example.org/> .\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"
STREAM = """
:g1 { :u :a 1 . }
:g1 prov:generatedAtTime "1" .
:g2 { } # :g2 prov:generatedAtTime "7" .
:g2 prov:generatedAtTime "2" .
:g3 { :v :b 2 }
:g3 prov:generatedAtTime "3" .
"""
QUERY = """PREFIX : <http://example.org/> SELECT * WITHIN 100 SECONDS FROM STREAM S <http://example.org/S>
WHERE { SEQ (A %s B) DEFINE GPM A ON S { ?a :a ?x } DEFINE GPM B ON S { ?b :b ?y } }"""
NOTHING = """PREFIX : <http://example.org/> SELECT * WITHIN 100 SECONDS FROM STREAM S <http://example.org/S>
WHERE { SEQ (A) DEFINE GPM A ON S { FILTER NOT EXISTS { ?s ?p ?o } } }"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + STREAM)
    return str(path)


def events(path: str, **options: Any) -> list[GraphEvent]:
    return list(read_stream(E + "S", (path,), StreamOptions(**options)))


def test_an_empty_graph_stands_between(path: str) -> None:
    """An event, so `A , B` does not match across it."""
    counters = Counters()
    found = list(read_stream(E + "S", (path,), StreamOptions(), counters))
    assert [(e.time // 10**9, str(e.graph)[-2:], len(e.triples)) for e in found] == [
        (1, "g1", 1), (2, "g2", 0), (3, "g3", 1),
    ]  # fmt: skip
    assert (counters.events, counters.triples, counters.ignored) == (3, 5, 0)
    assert found[1].record == 6
    next_to, later = spaseq.compile(QUERY % ","), spaseq.compile(QUERY % ";")
    assert [m.times for m in next_to.run({"S": path})] == []
    assert [m.times for m in later.run({"S": path})] == [(10**9, 3 * 10**9)]
    for query, expected in ((next_to, 0), (later, 1)):
        with query.open() as session:
            assert len(session.push(found) + session.close()) == expected
        with query.open() as session:
            assert len([m for event in found for m in session.push([event])] + session.close()) == expected


def test_what_holds_of_nothing_holds_of_an_empty_graph(path: str) -> None:
    query = spaseq.compile(NOTHING)
    assert [m.times for m in query.run({"S": path})] == [(2 * 10**9,)]
    with query.open() as session:
        assert [m.times for m in session.push(events(path)) + session.close()] == [(2 * 10**9,)]


def test_an_empty_graph_is_followed(path: str) -> None:
    found = Followed([StreamSource(E + "S", (path,))], StreamOptions())
    assert [e.time // 10**9 for e in found if e is not None] == [1, 2, 3]


def test_an_empty_graph_needs_a_time_as_others_do(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_text(HEAD + ":g1 { } :g2 { :a :b :c }")
    with pytest.raises(EventError, match="g1 has no time"):
        events(str(path))
    assert [len(e.triples) for e in events(str(path), time="arrival")] == [0, 1]


def test_n_quads_cannot_say_that_a_graph_is_empty(tmp_path: Path) -> None:
    """A time said about a graph that has no statement is counted."""
    path = tmp_path / "s.nq"
    said = '<http://example.org/g%d> <http://www.w3.org/ns/prov#generatedAtTime> "%d" .\n'
    path.write_text(said % (2, 2) + "<e:a> <e:b> <e:c> <http://example.org/g1> .\n" + said % (1, 1))
    counters = Counters()
    found = list(read_stream("S", (str(path),), StreamOptions(), counters))
    assert [e.time // 10**9 for e in found] == [1]
    assert counters.ignored == 1


BLANKS = ("", " ", "\n", " # { :x :y :z }\n", "\t#}\n \r\n")
OBJECTS = {
    '"{ }"': "{ }",
    "'# {'": "# {",
    '"\\"{}"': '"{}',
    '"""{\n\n}"""': "{\n\n}",
    "'''a'{''}'''": "a'{''}",
    '"""\\""""': '"',
    "<http://e/#{>": None,
    "<http://e/a#b>": URIRef("http://e/a#b"),
    ":c\\#d": URIRef(E + "c#d"),
    ":don\\'t": URIRef(E + "don't"),
    '"x"@en': Literal("x", lang="en"),
}


def documents(rng: random.Random) -> tuple[str, list[tuple[str, list[Any]]]]:
    """A text, and its graphs with the objects of their triples."""
    objects = [text for text, value in OBJECTS.items() if value is not None]
    graphs, text = [], HEAD
    for number in range(rng.randrange(1, 8)):
        inside = [rng.choice(objects) for _ in range(rng.choice((0, 0, 1, 2)))]
        blank = lambda: rng.choice(BLANKS)  # noqa: E731
        name = rng.choice((f":g{number}", f"<http://example.org/g{number}>", f"GRAPH :g{number}"))
        body = f" {blank()}.{blank()}".join(f"{blank()}:s{i} :p {o}" for i, o in enumerate(inside))
        text += f"{name} {blank()}{{{blank()}{body} {blank()}}}{blank()}"
        text += rng.choice(("", " { } ", ":x :y \"{\" . ", "# it's\n"))  # fmt: skip
        graphs.append((E + f"g{number}", [OBJECTS[o] for o in inside]))
    return text, graphs


def cut(data: bytes, rng: random.Random) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = rng.choice((1, 3, 1000))
        yield data[at : at + size]
        at += size


@pytest.mark.parametrize("seed", range(150))
def test_graphs_are_those_that_were_written(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text, graphs = documents(rng)
    path = tmp_path / "s.trig"
    path.write_bytes(text.encode())
    found = events(str(path), time="arrival")
    assert [(str(e.graph), [_value(o) for _, _, o in e.triples]) for e in found] == graphs
    form, counters = format_of("s.trig"), Counters()
    statements = list(parse_statements(cut(text.encode(), rng), form, "s", counters=counters))
    assert counters.triples == len(statements)  # nobody else sees what stands for no triple
    assert sum(len(objects) for _, objects in graphs) == sum(g is not None for *_, g, _ in statements)


def _value(term: Any) -> Any:
    return str(term) if isinstance(term, Literal) and not term.language else term


@pytest.mark.parametrize(
    "text", [":g {} :h { :a :b } ", ":g { } :h { :x :y :z } oops", ':é {} "', ":a{}:b{}:c{", ":a{}}", ":a{}\n:b {} x"]
)
def test_errors_point_into_the_text_as_it_is(text: str) -> None:
    told = []
    for by_graph in (False, True):
        with pytest.raises(EventError) as error:
            list(Document([(HEAD + text).encode()], format_of("s.trig"), "s", by_graph=by_graph).parts())
        told.append(str(error.value))
    assert told[0] == told[1]
