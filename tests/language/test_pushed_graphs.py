"""Graphs that a program has: pushed, and given to `run` in place of files; knowledge in a store; constructed graphs."""

from __future__ import annotations

import itertools
import json
import pickle
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas
import pyoxigraph as ox
import pytest
import rdflib
from rdflib import BNode, Literal, URIRef

import spaseq
from spaseq.core.errors import EventError, InternalError, OptionError, SpaseqError
from spaseq.rdf import GraphBatch, given_time
from tests.support.graph_kinds import KINDS, NAME, read_triples, time_in_some_form

S1 = 10**9
PREFIX = "PREFIX : <urn:e#> "
GPMS = "DEFINE GPM A ON S { ?x :p ?v } DEFINE GPM B ON S { ?y :q ?w } "
QUERY = spaseq.compile(f"{PREFIX} SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ (A; B) {GPMS} }}")
SHARED = spaseq.compile(
    f"{PREFIX} SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ (A; B) "
    "DEFINE GPM A ON S { ?x :p ?n } DEFINE GPM B ON S { ?y :q ?n } }"
)
TWO = spaseq.compile(
    f"{PREFIX} SELECT * FROM STREAM S <urn:s> FROM STREAM T <urn:t> WHERE {{ SEQ (A; B) "
    "DEFINE GPM A ON S { ?x :p ?v } DEFINE GPM B ON T { ?y :q ?w } }"
)
CONSTRUCT = spaseq.compile(
    f"{PREFIX} CONSTRUCT {{ [] :of ?x ; :value ?v }} FROM STREAM S <urn:s> WHERE {{ SEQ (A) "
    "DEFINE GPM A ON S { ?x :p ?v } }"
)
FIRST = read_triples('<urn:x> <urn:e#p> "10"^^<http://www.w3.org/2001/XMLSchema#integer> .\n<urn:x> <urn:e#r> _:b .')
SECOND = read_triples('<urn:y> <urn:e#q> "chat"@fr .\n_:b <urn:e#r> _:c .')
PROV = "http://www.w3.org/ns/prov#generatedAtTime"


def _found(matches: Any) -> list[Any]:
    return [(match.times, match.bindings) for match in matches]


ANSWER = [((S1, 2 * S1), {"x": URIRef("urn:x"), "v": Literal(10),
                         "y": URIRef("urn:y"), "w": Literal("chat", lang="fr")})]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_graph_is_pushed_and_run(kind: str, tmp_path: Path) -> None:
    """As the same events of a file: one graph, one event."""
    make = KINDS[kind]
    with QUERY.open() as session:
        assert session.push(make(FIRST), time=S1) == []
        session.push(make(SECOND), time="1970-01-01T00:00:02Z", stream="S")
    assert _found(session.rest) == ANSWER
    assert (session.counters.events, session.counters.triples) == (2, 4)
    pairs = QUERY.run({"S": [(S1, make(FIRST)), (2 * S1, make(SECOND))]})
    assert _found(pairs) == ANSWER
    if not isinstance(make(FIRST), type(iter(()))) and kind not in ("an iterator", "quads of a graph"):
        assert _found(pairs) == ANSWER, "a list is read again"
    made = [spaseq.GraphEvent("urn:s", S1, KINDS["triples of rdflib"](FIRST))]
    assert _found(QUERY.run({"urn:s": (event for event in (*made, (2 * S1, make(SECOND))))})) == ANSWER
    path = tmp_path / "s.nq"
    with path.open("wb") as file:
        for number, triples in ((1, FIRST), (2, SECOND)):
            name = ox.NamedNode(f"urn:g{number}")
            quads = [ox.Quad(name, ox.NamedNode(PROV), ox.Literal(number)), *(ox.Quad(*each, name) for each in triples)]
            ox.serialize(quads, file, ox.RdfFormat.N_QUADS)
    assert _found(QUERY.run({"S": str(path)})) == ANSWER


TIMES: dict[str, Any] = {
    "ns": 1_781_510_400 * S1, "numpy": np.int64(1_781_510_400 * S1), "text": "2026-06-15T08:00:00Z",
    "no zone": "2026-06-15T08:00", "a zone": "2026-06-15T10:00:00+02:00", "seconds": "1781510400",
    "a literal": Literal("2026-06-15T08:00:00Z", datatype=rdflib.XSD.dateTime),
    "of pyoxigraph": ox.Literal("2026-06-15T08:00:00Z"), "datetime": datetime(2026, 6, 15, 8, tzinfo=UTC),
    "naive": datetime(2026, 6, 15, 8), "offset": datetime(2026, 6, 15, 10, tzinfo=timezone(timedelta(hours=2))),
    "pandas": pandas.Timestamp("2026-06-15T08:00"), "datetime64": np.datetime64("2026-06-15T08"),
}  # fmt: skip


@pytest.mark.parametrize("time", TIMES.values(), ids=TIMES)
def test_times_in_each_form(time: Any) -> None:
    assert given_time(time) == 1_781_510_400 * S1
    session = QUERY.open()
    session.push(FIRST, time=time)
    session.push(SECOND, time=1_781_510_401 * S1)
    assert [match.time for match in session.advance(datetime(2026, 6, 15, 8, 0, 2))] == [1_781_510_401 * S1]


def test_times_to_the_nanosecond() -> None:
    assert given_time(pandas.Timestamp(5)) == 5 and given_time("0.000000005") == 5
    assert given_time(datetime(1969, 12, 31, 23, 59, 59, 999_999)) == -1000
    assert given_time("5", "ms") == 5_000_000
    rng = random.Random(4)
    for _ in range(300):
        time = rng.randrange(-(10**17), 10**18) // 1000 * 1000 + rng.choice((0, 7))
        assert given_time(time_in_some_form(time, rng)) == time


def test_the_unit_of_numbers_is_that_of_the_session() -> None:
    session = QUERY.open(time_unit="ms")
    session.push(FIRST, time="1000")
    session.push(SECOND, time=Literal(2000))
    assert [match.times for match in session.close()] == [(S1, 2 * S1)]


def test_times_that_graphs_state() -> None:
    """As in files: by the predicate of the option, by default that of named graphs."""
    at = ox.NamedNode("urn:e#at")
    graphs = [[*FIRST, (FIRST[0][0], at, ox.Literal("1"))], [*SECOND, (SECOND[0][0], at, ox.Literal("2"))]]
    for options in ({"time": "urn:e#at"}, {"time": ":at"}):
        with QUERY.open(**cast(Any, options)) as session:
            for graph in graphs:
                session.push(graph)
        assert _found(session.rest) == ANSWER
    stores = [KINDS["a store"](graph) for graph in graphs]
    assert _found(QUERY.run({"S": stores}, time=":at")) == ANSWER
    inside = [(NAME, ox.NamedNode(PROV), ox.Literal("1"))]
    with QUERY.open() as session:
        session.push(KINDS["a dataset of rdflib"](FIRST + inside))
        session.push(SECOND, time=2 * S1)
    assert _found(session.rest) == ANSWER


def _dataset(*, first: str = "1", second: str = "2", others: str = "") -> str:
    return (
        "@prefix : <urn:e#> . @prefix prov: <http://www.w3.org/ns/prov#> . "
        f":h prov:generatedAtTime {second} . {others} "
        ':h { <urn:y> :q "chat"@fr } '
        f":g {{ <urn:x> :p 10 . :g prov:generatedAtTime {first} }}"
    )


DATASETS: dict[str, Callable[[str], Any]] = {
    "text": str, "bytes": str.encode, "json": lambda text: _in(text, ox.RdfFormat.JSON_LD),
    "nquads": lambda text: _in(text, ox.RdfFormat.N_QUADS).decode(),
    "store": lambda text: _loaded(text), "ox dataset": lambda text: ox.Dataset(ox.parse(text, ox.RdfFormat.TRIG)),
    "quads": lambda text: list(ox.parse(text, ox.RdfFormat.TRIG)), "rdflib": lambda text: _of_rdflib(text),
}  # fmt: skip


def _in(text: str, form: ox.RdfFormat) -> Any:
    return ox.serialize(ox.parse(text, ox.RdfFormat.TRIG), format=form)


def _loaded(text: str) -> ox.Store:
    store = ox.Store()
    store.load(text, ox.RdfFormat.TRIG)
    return store


def _of_rdflib(text: str) -> rdflib.Dataset:
    dataset = rdflib.Dataset()
    for quad in ox.parse(text, ox.RdfFormat.TRIG):
        name = quad.graph_name
        graph = dataset.default_graph if isinstance(name, ox.DefaultGraph) else dataset.graph(URIRef(str(name)[1:-1]))
        graph.add(tuple(KINDS["triples of rdflib"]([(quad.subject, quad.predicate, quad.object)])[0]))
    return dataset


@pytest.mark.parametrize("kind", DATASETS)
def test_each_named_graph_of_a_dataset_is_an_event(kind: str, tmp_path: Path) -> None:
    """As in a file: with the time that it states or that is stated about it, whatever their order."""
    make = DATASETS[kind]
    text = _dataset(others=":note :about 5 . :later prov:generatedAtTime 9 .")
    path = tmp_path / "s.trig"
    path.write_text(_dataset(others=":note :about 5 ."))
    with QUERY.open() as session:
        session.push(make(text))
    assert (
        _found(session.rest)
        == ANSWER
        == _found(QUERY.run({"S": make(text) if kind in SETS else str(path)}, lateness="1s"))
    )
    assert (session.counters.events, session.counters.ignored) == (2, 2)
    with QUERY.open() as session:
        session.push(make(text), time=7)
    assert session.counters.events == 1 and session.rest == []


SETS = {"store", "ox dataset", "quads", "rdflib"}


def test_a_graph_without_triples_is_an_event() -> None:
    """An instant passes with it."""
    query = spaseq.compile(f"{PREFIX} SELECT * WITHIN 1 EVENTS FROM STREAM S <urn:s> WHERE {{ SEQ (A; B) {GPMS} }}")
    empties: list[Any] = [[], rdflib.Graph(), ox.Store(), "", ox.Dataset(), iter(())]
    for empty in empties:
        with query.open() as session:
            session.push(FIRST, time=0)
            session.push(empty, time=1)
            session.push(SECOND, time=2)
        assert session.rest == [] and session.counters.events == 3
    session = QUERY.open()
    assert session.push([]) == session.push(ox.Store()) == session.push(iter(())) == [] == TWO.open().push([])
    session.push("@prefix prov: <http://www.w3.org/ns/prov#> . <urn:g> {} <urn:g> prov:generatedAtTime 5 .")
    store = ox.Store()
    store.add(ox.Quad(NAME, ox.NamedNode(PROV), ox.Literal("6")))
    store.add_graph(NAME)
    session.push(store)
    assert session.counters.events == 2


def test_blank_nodes_of_two_pushes_are_different() -> None:
    """They have one label, or are one object: pyoxigraph gives the labels of a text."""
    first, second = read_triples("<urn:x> <urn:e#p> _:b ."), read_triples("<urn:y> <urn:e#q> _:b .")
    both = [(0, first), (1, second)]
    for make in KINDS.values():
        made = [(time, make(graph)) for time, graph in both]
        with SHARED.open() as session:
            for time, graph in made:
                session.push(graph, time=time)
        assert session.rest == []
    assert not SHARED.run({"S": both})
    node = BNode()
    shared = [(0, [(URIRef("urn:x"), URIRef("urn:e#p"), node)]), (1, [(URIRef("urn:y"), URIRef("urn:e#q"), node)])]
    assert not SHARED.run({"S": shared})
    texts = ["@prefix : <urn:e#> . :g { <urn:x> :p _:b } :h { <urn:y> :q _:b } "]
    assert not SHARED.run({"S": cast(Any, ox.Dataset(ox.parse(texts[0], ox.RdfFormat.TRIG)))}, time_from="arrival")
    session = SHARED.open()
    session.push(first, time=0)
    session = SHARED.open(session.snapshot())
    session.push(second, time=1)
    assert session.close() == [], "nor behind a snapshot"
    within = spaseq.compile(f"{PREFIX} SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ (A) "
                            "DEFINE GPM A ON S { ?x :p ?n . ?n :q ?y } }")  # fmt: skip
    with within.open() as session:
        session.push("@prefix : <urn:e#> . <urn:x> :p [ :q 5 ] .", time=0)
    assert len(session.rest) == 1, "in one graph they are one"


def test_triples_count_once() -> None:
    count = spaseq.compile(
        f"{PREFIX} SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ "
        "{ SELECT (COUNT(?v) AS ?n) { ?x :p ?v } } } }"
    )
    text = Literal("x", datatype=rdflib.XSD.string), Literal("x"), Literal("x")
    with count.open() as session:
        session.push([(URIRef("urn:x"), URIRef("urn:e#p"), each) for each in text], time=0)
    assert [match.bindings["n"].value for match in session.rest] == [1]


def test_graphs_are_counted() -> None:
    session = QUERY.open(time_from="arrival", interval="1s")
    assert session.push(FIRST) == []
    assert [match.times for match in session.push(KINDS["Turtle"](SECOND))] == [(0, S1)]
    assert [match.times for match in QUERY.run({"S": map(_graph, (FIRST, SECOND))}, time_from="arrival")] == [
        (0, 1_000_000)
    ]


def _graph(triples: Any) -> rdflib.Graph:
    return cast(rdflib.Graph, KINDS["a graph of rdflib"](triples))


def test_streams_by_name_and_by_iri() -> None:
    for first, second in itertools.product(("S", "urn:s", URIRef("urn:s")), ("T", "urn:t", ox.NamedNode("urn:t"))):
        with TWO.open() as session:
            session.push(FIRST, time=S1, stream=first)
            session.push(SECOND, time=2 * S1, stream=cast(Any, second))
        assert _found(session.rest) == ANSWER
    assert _found(TWO.run({"T": [(2 * S1, SECOND)], "S": [(S1, FIRST)]})) == ANSWER
    with pytest.raises(OptionError, match=r'reads 2 streams.*\n.*stream="S".*S, T'):
        TWO.open().push(FIRST, time=1)
    with pytest.raises(OptionError, match=r"no stream U\n.*S, T"):
        TWO.open().push(FIRST, time=1, stream="U")


def test_files_and_graphs_together(tmp_path: Path) -> None:
    (tmp_path / "t.trig").write_text(_dataset())
    file = str(tmp_path / "t.trig")
    assert _found(TWO.run({"S": [(S1, FIRST)], "T": file}, lateness="1s")) == ANSWER
    (tmp_path / "t.ttl").write_text("<urn:y> <urn:e#q> 5 .")
    with pytest.raises(OptionError, match=r"stream <urn:s> has graphs with times and .*t.ttl has none"):
        list(TWO.run({"S": [(S1, FIRST)], "T": str(tmp_path / "t.ttl")}))


def test_lateness(tmp_path: Path) -> None:
    late = [(2 * S1, SECOND), (S1, FIRST)]
    assert _found(QUERY.run({"S": late}, lateness="1s")) == _found(
        QUERY.run({"S": late}, lateness=timedelta(seconds=1))
    )
    assert _found(QUERY.run({"S": late}, lateness=S1)) == ANSWER
    with pytest.raises(EventError, match="goes back in time"):
        list(QUERY.run({"S": late}))
    matches = QUERY.run({"S": late}, late="drop")
    assert list(matches) == [] and (matches.counters.events, matches.counters.late) == (2, 1)
    seen: list[Any] = []
    assert list(QUERY.run({"S": late}, on_late=seen.append)) == []
    assert [(one.time, one.behind, len(one.event.triples)) for one in seen] == [(S1, S1, 2)]
    session = QUERY.open(on_late=seen.append)
    assert session.push(SECOND, time=2) == session.push(FIRST, time=1) == [] and seen[1].behind == 1
    session = QUERY.open()
    session.push(SECOND, time=2)
    with pytest.raises(EventError, match="goes back in time"):
        session.push(FIRST, time=1)


def test_a_refused_push_has_taken_nothing() -> None:
    session = QUERY.open()
    for wrong in ([(1, FIRST), (None, SECOND)], [(1, FIRST), 5], [(2, FIRST), (1, SECOND)]):
        with pytest.raises(SpaseqError):
            session.push(wrong)

    def broken() -> Any:
        yield FIRST[0]
        raise KeyError

    with pytest.raises(KeyError):
        session.push([(0, broken())])
    assert session.counters.events == 0
    session.push([(S1, FIRST), (2 * S1, SECOND)])
    assert _found(session.close()) == ANSWER
    with pytest.raises(OptionError, match="stream is closed"):
        session.push(FIRST, time=3 * S1)


def test_errors_come_behind_the_events_before_them() -> None:
    found = []
    graphs = [*([(1, FIRST), (2, SECOND)] * 1), *((3, [*FIRST] * 9) for _ in range(9_000)), 5]
    with pytest.raises(OptionError, match="event 9003: "):
        for match in QUERY.run({"S": iter(graphs)}, ties="arrival"):
            found.append(match)
    assert len(found) == 1
    once = QUERY.run({"S": iter([(S1, FIRST), (2 * S1, SECOND)])})
    assert once.count() == 1
    with pytest.raises(OptionError, match="read only once"):
        list(once)


def test_many_graphs_are_several_batches() -> None:
    """More than one batch has, from an iterator."""
    many = 4_000
    triples = [tuple(map(URIRef, ("urn:x", "urn:e#r", f"urn:{i}"))) for i in range(40)]
    graphs = ((i, triples + KINDS["triples of rdflib"](SECOND if i % 1000 == 999 else [])) for i in range(many))
    query = spaseq.compile(f"{PREFIX} SELECT * FROM STREAM S <urn:s> WHERE {{ SEQ (B) {GPMS} }}")
    matches = query.run({"S": graphs})
    assert [match.times for match in matches] == [(i,) for i in range(999, many, 1000)]
    assert matches.counters.events == many


TEXTS = {
    "Turtle": "@prefix : <urn:e#> . <urn:x> :p 010 .", "rdf": '<?xml version="1.0"?>\n<rdf:RDF xmlns:e="urn:e#" '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="urn:x"><e:p rdf:datatype='
    '"http://www.w3.org/2001/XMLSchema#integer">010</e:p></rdf:Description></rdf:RDF>',
    "without a declaration": ' \n<rdf:RDF xmlns:e="urn:e#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about="urn:x" e:p="010"/></rdf:RDF>',
    "JSON-LD": json.dumps({"@id": "urn:x", "urn:e#p": {"@value": "010", "@type": str(rdflib.XSD.integer)}}),
    "a list of JSON-LD": json.dumps([{"@id": "urn:x", "urn:e#p": "010"}]), "a mark": "\ufeff<urn:x> <urn:e#p> 010 .",
    "TriG that begins with a brace": "{ <urn:x> <urn:e#p> 010 }", "a bracket": "[ <urn:e#p> 010 ] .",
    "quads": '<urn:x> <urn:e#p> "010" <urn:g> .', "SPARQL's prefix": "PREFIX : <urn:e#>\n<urn:x> :p 010 .",
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_the_syntax_of_a_text_is_told_from_it(name: str) -> None:
    for text in (TEXTS[name], TEXTS[name].encode(), bytearray(TEXTS[name].encode())):
        with CONSTRUCT.open() as session:
            session.push(cast(Any, text), time=0)
        (match,) = session.rest
        assert str(match.bindings["v"]) == "010"


@pytest.mark.parametrize(
    "format",
    ["ttl", "turtle", "TURTLE", "text/turtle", "text/turtle; charset=utf-8", "n3", ox.RdfFormat.TURTLE, "trig"],
)
def test_the_syntax_of_a_text_is_named(format: Any) -> None:
    for push in (lambda s: s.push(TEXTS["Turtle"], time=0, format=format), lambda s: s.push(TEXTS["Turtle"], time=0)):
        with CONSTRUCT.open(format="ttl") as session:
            push(session)
        assert len(session.rest) == 1


GRAPH = _graph(FIRST)
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "nothing": (lambda: QUERY.open().push(cast(Any, None), time=1), "NoneType.*no graph event"),
    "a number": (lambda: QUERY.open().push(cast(Any, 5)), "int.*no graph event"),
    "a dict": (lambda: QUERY.open().push({"@id": "urn:x"}, time=1), "dict holds no triples\n.*json.dumps"),
    "a triple": (lambda: QUERY.open().push(cast(Any, ox.Triple(*FIRST[0])), time=1), "Triple.*no graph event"),
    "one triple": (lambda: QUERY.open().push(tuple(FIRST[0]), time=1), "term of RDF is no graph\n.*a list"),
    "a path": (lambda: QUERY.open().push(cast(Any, Path("x.ttl")), time=1), "path.*\n.*run"),
    "a file's name": (lambda: QUERY.open().push("data/x.ttl", time=1), "a text or a path.*\n.*run"),
    "a frame": (lambda: QUERY.open().push(pandas.DataFrame({"a": [1]})), "graph"),
    "no RDF": (lambda: QUERY.open().push("once upon a time", time=1), "<text>:1: not TriG.*\n"),
    "JSON that is none": (lambda: QUERY.open().push('{"a": ', time=1), "not TriG"),
    "a context elsewhere": (
        lambda: QUERY.open().push('{"@context": "http://x.org/c", "@id": "urn:x"}', time=1), "remote contexts are not"),
    "a cut document": (lambda: QUERY.open().push("<urn:x> <urn:p> ", time=1), "cut off"),
    "a line": (lambda: QUERY.open().push("<urn:x> <urn:p> 5 .\n<urn:x> <urn:p> .", time=1), "<text>:2: "),
    "an unknown format": (lambda: QUERY.open().push("", time=1, format="docx"), "format docx: not known\n.*ttl"),
    "another format": (lambda: QUERY.open().push("<urn:x> <urn:p> 5 .", time=1, format="rdf"), "not RDF/XML"),
    "no UTF-8": (lambda: QUERY.open().push(b"<urn:x> <urn:p> \"\xff\" .", time=1), "not"),
    "a lone surrogate": (lambda: QUERY.open().push('<urn:x> <urn:p> "\ud800" .', time=1), "not"),
    "no time": (lambda: QUERY.open().push(GRAPH), r"no time.*generatedAtTime.*\n.*push\(graph, time=…\)"),
    "no time of a named graph": (lambda: QUERY.open().push(KINDS["a store"](FIRST)), "graph urn:graph.* no time"),
    "two times": (lambda: QUERY.open(time="urn:e#p").push("<urn:x> <urn:e#p> 1, 2 ."), "has 2 times"),
    "two times outside": (
        lambda: QUERY.open().push(_dataset().replace("generatedAtTime 2", "generatedAtTime 2, 3")), "has 2 times"),
    "a time that is none": (lambda: QUERY.open(time="urn:e#p").push("<urn:x> <urn:e#p> 'soon' ."), "'soon' is not a"),
    "a float": (lambda: QUERY.open().push(GRAPH, time=cast(Any, 1.5)), "'1.5'\n.*datetime"),
    "truth": (lambda: QUERY.open().push(GRAPH, time=True), "'True'\n.*datetime"),
    "a word": (lambda: QUERY.open().push(GRAPH, time="today"), "'today' is not a time"),
    "an IRI": (lambda: QUERY.open().push(GRAPH, time=URIRef("urn:x")), "URIRef is no time"),
    "NaT": (lambda: QUERY.open().push(GRAPH, time=pandas.NaT), "NaT"),
    "a date": (lambda: QUERY.open().push(GRAPH, time=cast(Any, datetime(2026, 1, 1).date())), "'2026-01-01'\n"),
    "NaT of numpy": (lambda: QUERY.open().push(GRAPH, time=np.datetime64("NaT")), "NaT"),
    "a far time": (lambda: QUERY.open().push(GRAPH, time=datetime(9999, 1, 1)), "beyond"),
    "a stream of a number": (lambda: QUERY.open().push(GRAPH, time=1, stream=cast(Any, 5)), "the stream is"),
    "a time of an event": (
        lambda: QUERY.open().push(spaseq.GraphEvent("urn:s", 1, GRAPH), time=2), "GraphEvent has its stream and its"),
    "a time of events": (lambda: QUERY.open().push([(1, GRAPH)], time=2), "time= is the time of one graph"),
    "a stream of a batch": (
        lambda: QUERY.open().push(GraphBatch.of([spaseq.GraphEvent("urn:s", 1, GRAPH)]), stream="S"), "GraphBatch has"),
    "texts": (lambda: QUERY.open().push(["<urn:x> <urn:p> 5 ."]), "pairs"),
    "a pair the other way": (
        lambda: QUERY.open().push([(GRAPH, 1)]), r"event 1: a Graph is no time\n.*\(time, graph\)"),
    "a pair of nothing": (lambda: QUERY.open().push([(1, None)]), "event 1: .*NoneType"),
    "lists of lists": (lambda: QUERY.open().push([[FIRST[0], FIRST[1], FIRST[0]]], time=1), "triple 1, subject"),
    "another kind among events": (
        lambda: QUERY.open().push([spaseq.GraphEvent("urn:s", 1, GRAPH), GRAPH]), "a Graph among GraphEvents"),
    "an event of another stream": (
        lambda: list(QUERY.run({"S": [spaseq.GraphEvent("urn:t", 1, GRAPH)]})), "<urn:t> is given for .* <urn:s>"),
    "bytes for a stream": (lambda: QUERY.run({"S": b"<urn:x> <urn:p> 5 ."}), "bytes is no path"),
    "numbers for a stream": (lambda: QUERY.run({"S": [1, 2]}), "stream <urn:s>: .*int"),
    "a mixed stream": (lambda: QUERY.run({"S": [(1, GRAPH), "x.nq"]}).count(), "a text or a path"),
    "files and graphs": (lambda: QUERY.run({"S": ["x.nq", GRAPH]}), "Graph is no path"),
    "event_by": (lambda: QUERY.run({"S": [(1, GRAPH)]}, event_by="size:3"), "event_by='size:3'.*\n.*each graph"),
    "graphs followed": (lambda: QUERY.follow({"S": [(1, GRAPH)]}), "tuple is no path"),
    "knowledge without names": (lambda: QUERY.open(kb=ox.Store()), "Store without named graphs"),
    "knowledge of a blank name": (
        lambda: QUERY.open(kb=ox.Dataset([ox.Quad(*FIRST[0], ox.BlankNode())])), "name of a graph of background"),
    "another library": (lambda: CONSTRUCT.construct({}, as_=cast(Any, "jena")), "one of rdflib, pyoxigraph"),
    "an IRI that is none": (
        lambda: CONSTRUCT.construct({"x": URIRef("a b"), "v": Literal(1)}, as_="pyoxigraph"), "pyoxigraph has no term"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(name: str) -> None:
    call, words = WRONG[name]
    with pytest.raises(SpaseqError, match=words) as caught:
        call()
    assert not isinstance(caught.value, InternalError)
    assert isinstance(caught.value, EventError) or cast(OptionError, caught.value).hint


KB = spaseq.compile(
    f"{PREFIX} SELECT ?x ?c FROM STREAM S <urn:s> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?x :p ?v . "
    "GRAPH <urn:k> { ?x :in ?r } GRAPH <urn:l> { ?r :of ?c } } }"
)
KNOWN = "@prefix : <urn:e#> . <urn:k> { <urn:x> :in _:r } <urn:l> { _:r :of <urn:c> } <urn:x> :in :default ."


@pytest.mark.parametrize("make", [DATASETS[kind] for kind in ("store", "ox dataset", "rdflib")])
def test_the_named_graphs_of_a_store_are_knowledge(make: Callable[[str], Any]) -> None:
    """A blank node in two of them is one node."""
    for kb in (make(KNOWN), make(KNOWN)):
        with KB.open(kb=kb) as session:
            session.push(FIRST, time=0)
        assert [match.bindings for match in session.rest] == [{"x": URIRef("urn:x"), "c": URIRef("urn:c")}]
        assert KB.run({"S": [(0, FIRST)]}, kb).count() == 1
    assert "GRAPH" in KB.explain(kb=make(KNOWN))
    with pytest.raises(OptionError, match="no such background knowledge"):
        KB.run({"S": []}, make("<urn:other> { <urn:x> <urn:in> <urn:y> }"))


def test_graphs_are_constructed() -> None:
    session = CONSTRUCT.open()
    found = [*session.push([(0, FIRST), (1, "<urn:z> <urn:e#p> 'text'@en .")]), *session.close()]
    first, second = found
    graph = CONSTRUCT.construct(first, as_="rdflib")
    assert isinstance(graph, rdflib.Graph) and set(graph) == set(CONSTRUCT.construct(first))
    assert "@prefix : <urn:e#>" in graph.serialize(format="turtle")
    made = CONSTRUCT.construct(first, as_="pyoxigraph")
    assert isinstance(made, ox.Dataset) and {str(quad.object) for quad in made} == {
        "<urn:x>", '"10"^^<http://www.w3.org/2001/XMLSchema#integer>'
    }  # fmt: skip
    store = ox.Store()
    for match in found:
        store.extend(CONSTRUCT.construct(match, as_="pyoxigraph"))
        graph += CONSTRUCT.construct(match, as_="rdflib")
    assert len(store) == len(graph) == 4, "blank nodes of two matches are two, those of one are one"
    assert CONSTRUCT.construct(first, 3) == CONSTRUCT.construct(first.bindings, 3) != CONSTRUCT.construct(first)
    again = pickle.loads(pickle.dumps(first))
    assert CONSTRUCT.construct(again) == CONSTRUCT.construct(first) != CONSTRUCT.construct(second)


def test_a_constructed_graph_is_pushed_on() -> None:
    """In each of its forms, it is an event of another query."""
    over = spaseq.compile(
        f"{PREFIX} SELECT ?x FROM STREAM S <urn:s> WHERE {{ SEQ (A) DEFINE GPM A ON S {{ ?n :of ?x }} }}"
    )
    (match,) = CONSTRUCT.run({"S": [(S1, FIRST)]})
    for form in ("triples", "rdflib", "pyoxigraph"):
        with over.open() as session:
            session.push(CONSTRUCT.construct(match, as_=cast(Any, form)), time=match.time)
        assert [(one.time, one.bindings) for one in session.rest] == [(S1, {"x": URIRef("urn:x")})]
