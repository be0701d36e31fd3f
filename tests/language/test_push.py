"""A pushed event is a batch of one: the same answers whether events come from files, all at once, or one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rdflib import Graph, Literal, URIRef
from rdflib.namespace import XSD

import spaseq
from spaseq.gpm.serialise import nquads_term
from spaseq.rdf import GraphEvent

E = "http://example.org/"
S = "http://streams.org/s"
PREFIXES = f"PREFIX : <{E}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>"
IN_ORDER = "SELECT * FROM STREAM S <http://streams.org/s> WHERE { SEQ (A) DEFINE GPM A ON S %s }"


def _events(graphs: list[str]) -> list[GraphEvent]:
    """An event a second."""
    events = []
    for second, text in enumerate(graphs):
        parsed = Graph().parse(data=f"@prefix : <{E}> .\n{text}", format="turtle")
        triples: Any = tuple(parsed)
        events.append(GraphEvent(S, second * 10**9, triples, None, "", second + 1))
    return events


def _shown(matches: Any) -> list[Any]:
    """Positions and terms of matches, in order."""
    return sorted(
        (match.positions, tuple(sorted((name, nquads_term(term)) for name, term in match.bindings.items())))
        for match in matches
    )


def _pushed(query: Any, events: list[GraphEvent], size: int) -> list[Any]:
    session = query.open()
    found = [match for i in range(0, len(events), size) for match in session.push(events[i : i + size])]
    return _shown([*found, *session.close()])


ROOM = "{ ?room :seen ?w . { SELECT ?s (%s AS ?n) { ?s :value ?x . FILTER (?x > 100) } GROUP BY ?s } }"

CASES: dict[str, tuple[str, str, list[dict[str, str]]]] = {
    "AVG of nothing in groups": (ROOM % "AVG(?x)", ':r1 :seen "x" . :s1 :value 5 .', []),
    "AVG of a group": (
        ROOM % "AVG(?x)",
        ':r1 :seen "x" . :s1 :value 105 .',
        [{"room": f"<{E}r1>", "w": "x", "s": f"<{E}s1>", "n": "105"}],
    ),
    "MAX where nothing matches": (
        "{ ?room :seen ?w . { SELECT ?s (MAX(?x) AS ?n) { ?s :value ?x } GROUP BY ?s } }",
        ':r1 :seen "x" .',
        [],
    ),
    "SUM over an IRI": ("{ { SELECT (SUM(?x) AS ?n) { ?s :value ?x } } }", ":s :value :a .", [{}]),
    "SUM(DISTINCT) with an unbound variable": (
        "{ { SELECT (SUM(DISTINCT ?x) AS ?n) { ?s :p ?y OPTIONAL { ?s :value ?x } } } }",
        ":s :p 1 ; :value 2 . :t :p 1 .",
        [{}],
    ),
    "AVG over a text": ("{ { SELECT (AVG(?x) AS ?n) { ?s :value ?x } } }", ':s :value 1, "abc" .', [{}]),
    "AVG over an IRI": ("{ { SELECT (AVG(?x) AS ?n) { ?s :value ?x } } }", ":s :value :a .", [{}]),
    "MIN over IRIs": (
        "{ { SELECT (MIN(?x) AS ?n) { ?s :value ?x } } }",
        ":s :value :b, :a .",
        [{"n": f"<{E}a>"}],
    ),
    "MINUS inside OPTIONAL": (
        "{ ?s :p ?o OPTIONAL { ?a :q ?b MINUS { ?b :r ?b } } }",
        ":s :p 1 . :u :q :v . :v :r :v .",
        [{"s": f"<{E}s>", "o": "1"}],
    ),
    "OPTIONAL { MINUS { … } … }": (
        "{ ?s :p ?o OPTIONAL { MINUS { ?b :r ?b } ?a :q ?b } }",
        ":s :p 1 . :u :q :v . :v :r :v .",
        [{"s": f"<{E}s>", "o": "1", "a": f"<{E}u>", "b": f"<{E}v>"}],
    ),
    "MINUS inside EXISTS": (
        "{ ?s :p ?o FILTER EXISTS { ?s :q ?x MINUS { ?s :r ?y } } }",  # ?s is replaced: nothing is shared
        ":s :p 1 ; :q 2 ; :r 3 .",
        [{"s": f"<{E}s>", "o": "1"}],
    ),
    "a count of nothing, on an event without triples": (
        "{ { SELECT (COUNT(?x) AS ?n) { ?s :p ?x } } }",
        "",
        [{"n": "0"}],
    ),
    "the label of a blank node is no text": ("{ ?s :p ?o BIND (STR(?o) AS ?t) }", ":s :p [] .", [{"s": f"<{E}s>"}]),
    "nor in a condition": ("{ ?s :p ?o FILTER (STR(?o) != 'x') }", ":s :p [] .", []),
}


@pytest.mark.parametrize("name", CASES)
def test_one_meaning(name: str) -> None:
    """What is right by SPARQL 1.1, for an event pushed alone, several, and many."""
    group, text, expected = CASES[name]
    query = spaseq.compile(f"{PREFIXES} {IN_ORDER % group}")
    for count in (1, 3, 20):
        events = _events([text] * count)
        for size in (1, count):
            found = _pushed(query, events, size)
            plain = [dict(bindings) for _, bindings in found]
            shown = [
                {n: t.split("^^")[0].strip('"') for n, t in row.items() if not t.startswith("_:")} for row in plain
            ]
            assert shown == expected * count, f"{count} events, {size} at a time"


@pytest.mark.parametrize("name", CASES)
def test_files_as_well(name: str, tmp_path: Path) -> None:
    group, text, expected = CASES[name]
    if not text:
        pytest.skip("N-Quads have no empty graphs")
    lines = []
    for event in _events([text] * 2):
        graph = f"<{E}g{event.record}>"
        time = f'"{event.time // 10**9}"'
        lines.append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n")
        lines += [" ".join(map(nquads_term, triple)) + f" {graph} .\n" for triple in event.triples]
    path = tmp_path / "s.nq"
    path.write_text("".join(lines).replace("_:", "_:b"), "utf-8")
    found = spaseq.compile(f"{PREFIXES} {IN_ORDER % group}").run({"S": str(path)})
    assert len(list(found)) == 2 * len(expected)


@pytest.mark.parametrize("size", [1, 2, 20])
def test_equal_terms_that_are_written_in_two_ways(size: int) -> None:
    """A tag in upper case and in lower case, a text with and without its type: one term, which two GPMs share."""
    pairs = [(Literal("x", lang="EN"), Literal("x", lang="en")), (Literal("y", datatype=XSD.string), Literal("y"))]
    names = [URIRef(f"{E}{name}") for name in ("s", "p", "q")]
    events = [
        GraphEvent(S, second * 10**9, ((names[0], names[1 + second % 2], term),), None, "", second + 1)
        for second, term in enumerate(term for pair in pairs for term in pair)
    ]
    gpms = "DEFINE GPM A ON S { ?x :p ?o } DEFINE GPM B ON S { ?y :q ?o }"
    query = spaseq.compile(f"{PREFIXES} SELECT ?o FROM STREAM S <{S}> WHERE {{ SEQ (A; B) {gpms} }}")
    assert [positions for positions, _ in _pushed(query, events, size)] == [(0, 1), (2, 3)]


def _one(second: int, *triples: tuple[str, str, Any]) -> GraphEvent:
    made = [(URIRef(E + s), URIRef(E + p), Literal(o) if isinstance(o, int) else o) for s, p, o in triples]
    return GraphEvent(S, second * 10**9, tuple(made), None, "", second + 1)


def _many(many: int) -> list[GraphEvent]:
    """Graphs of which each begins runs, some several; then some that end all of them, and so again, now with texts."""
    events: list[GraphEvent] = []
    rooms = [URIRef(f"{E}r{i}") for i in range(3)]
    for last in (0, Literal("x")):
        for i in range(many):
            values = [(f"s{i}", "p", i % 5 + j) for j in range(1 + 2 * (i % 7 == 0))]
            events.append(_one(len(events), *values, (f"s{i}", "in", rooms[i % 3])))
        events += [
            _one(len(events) + i, ("end", "q", i), ("end", "in", rooms[i]), ("end", "last", last)) for i in range(3)
        ]
    return events


_TWO_GPMS = {
        "a join": "DEFINE GPM A ON S { ?x :p ?v ; :in ?r } DEFINE GPM B ON S { ?y :q ?w ; :in ?r }",
        "an order": "DEFINE GPM A ON S { ?x :p ?v } DEFINE GPM B ON S { ?y :q ?w FILTER (?w < ?v) }",
        "a question": "DEFINE GPM A ON S { ?x :p ?v } DEFINE GPM B ON S { ?y :q ?w FILTER (STR(?w) = STR(?v)) }",
        "no order of numbers": "DEFINE GPM A ON S { ?x :p ?v } DEFINE GPM B ON S { ?y :last ?w FILTER (?w < ?v) }",
        "by OPTIONAL": "DEFINE GPM A ON S { ?x :in ?r OPTIONAL { ?x :p ?v } } DEFINE GPM B ON S { ?y :q ?v }",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "clause", "sequence"),
    [
        pytest.param(name, clause, sequence, marks=[] if (i + j + k) % 2 else [pytest.mark.slow])
        for i, name in enumerate(_TWO_GPMS)
        for j, clause in enumerate(["", "PARTITION BY (?r)", "WITHIN 40 SECONDS"])
        for k, sequence in enumerate(["A; B", "A; B!"])
        if name == "a join" or "PARTITION" not in clause  # the others do not bind ?r twice
    ],
)
def test_single_pushes_outgrow_what_they_began_with(name: str, clause: str, sequence: str) -> None:
    """More runs, more rows of a run, more matches at one event, more states than there is room for at first: what a
    single event cannot do is done as in a batch, and a snapshot between any two goes on from there."""
    gpms = _TWO_GPMS[name]
    query = spaseq.compile(f"{PREFIXES} SELECT * {clause} FROM STREAM S <{S}> WHERE {{ SEQ ({sequence}) {gpms} }}")
    events = _many(70)
    expected = _pushed(query, events, len(events))
    assert len(expected) > 20 or sequence == "A; B!"
    assert _pushed(query, events, 1) == expected
    session, found = query.open(), []
    for i, event in enumerate(events):
        if i % 29 == 0:
            session = query.open(session.snapshot())
        found += session.push(event)
    assert session.recogniser.entered  # past batches of rows
    assert _shown([*found, *session.close()]) == expected
