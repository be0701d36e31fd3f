"""Batches merged into chunks of instants, and their rows, against those of each instant alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from rdflib import BNode, Literal, URIRef

import spaseq
from spaseq.core.errors import EventError
from spaseq.gpm import Knowledge, event_graph
from spaseq.language.solving.chunks import chunk_of, merge_batches, solve_each
from spaseq.language.solving.instants import InstantBatch
from spaseq.language.solving.solve import ChunkRows, InstantSolutions, SolvedRows, Solver
from spaseq.rdf import GraphBatch, GraphEvent, Instant, StreamOptions, Term, Triple
from tests.support.graph_events_by_definition import instants, merge_streams
from tests.support.sizes import some

E = "http://example.org/"
STREAMS = [E + name for name in "STU"]


def _event(stream: str, time: int, rng: random.Random) -> GraphEvent:
    triples: list[Triple] = [(_iri(rng, "uv"), _iri(rng, "pq"), _object(rng))]
    triples += [(_iri(rng, "uv"), _iri(rng, "pr"), Literal(rng.randrange(4))) for _ in range(rng.randrange(4))]
    return GraphEvent(stream, time, tuple(dict.fromkeys(triples)), None, f"{stream}.nt", time)


def _object(rng: random.Random) -> Term:
    terms: list[Term] = [Literal(rng.randrange(4)), _iri(rng, "uvw")]
    return rng.choice(terms)


def _iri(rng: random.Random, names: str) -> URIRef:
    return URIRef(E + rng.choice(names))


def _streams(rng: random.Random) -> list[tuple[str, list[GraphEvent]]]:
    return [
        (name, [_event(name, time, rng) for time in sorted(rng.choices(range(30), k=rng.randrange(25)))])
        for name in STREAMS
    ]


def _cut(events: list[GraphEvent], rng: random.Random) -> Iterator[GraphBatch]:
    rest = list(events)
    while rest:
        count = rng.randrange(1, 8)
        yield GraphBatch.of(rest[:count])
        rest = rest[count:]


def _query(text: str) -> Any:
    sources = " ".join(f"FROM STREAM {iri[-1]} <{iri}>" for iri in STREAMS)
    return spaseq.compile(f"PREFIX : <{E}> SELECT * {text.replace('FROM', sources)}")


QUERIES = {
    "one GPM on all streams": "FROM WHERE { SEQ (A) DEFINE GPM A ON S, T, U { ?x :p ?y } }",
    "a conjunction": """FROM WHERE { SEQ (A & B)
        DEFINE GPM A ON S { ?x :p ?y FILTER (?y > 0) } DEFINE GPM B ON T { ?x :p ?z FILTER (?z > ?y) } }""",
    "partitions": """PARTITION BY (?x) FROM WHERE { SEQ (A; B)
        DEFINE GPM A ON S, T { ?x :p ?y FILTER (?y > 1) } DEFINE GPM B ON U { ?x :q ?z OPTIONAL { ?x :r ?w } } }""",
    "partitions by two, one of them at times unbound": """PARTITION BY (?x, ?w) FROM WHERE { SEQ (A; B)
        DEFINE GPM A ON S { ?x :p ?w } DEFINE GPM B ON T { ?x :p ?z OPTIONAL { ?x :r ?w } } }""",
    "a GPM that is left to single events": """PARTITION BY (?x) FROM WHERE { SEQ (A; B)
        DEFINE GPM A ON S { ?x :p ?y BIND (STRLEN(STRUUID()) AS ?n) } DEFINE GPM B ON T { ?x :p ?z } }""",
}


def _table(rows: Any, names: list[str]) -> list[Any]:
    """Every row: position, time, key, and the GPMs' values."""
    places = range(len(rows.positions)) if rows.partitions is None else rows.partitions.tolist()
    keys = [None] * len(rows.positions) if rows.partitions is None else [rows.keys[k] for k in places]
    return [
        (position, time, key, {name: value for name in names if (value := frozenset(rows.mappings(name, i)))})
        for i, (position, time, key) in enumerate(zip(rows.positions.tolist(), rows.times.tolist(), keys, strict=True))
    ]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_rows(name: str, apart: bool, reference: bool) -> None:
    query = _query(QUERIES[name])
    gpms = sorted(query.checked.patterns)
    for seed in range(some(6)):
        rng = random.Random(seed)
        streams = _streams(rng)
        solver = Solver(query.checked, Knowledge(), reference=reference)
        options = StreamOptions(time="t", ties="arrival" if apart else "instant")
        expected = list(instants(merge_streams(streams), options))
        chunks = list(
            merge_batches([solve_each(_cut(own, rng), solver.solve_batch) for _, own in streams], apart=apart)
        )
        events = [chunk.events(i) for chunk in chunks for i in range(len(chunk))]
        assert events == [instant.events for instant in expected]
        found = [row for chunk in chunks for row in _table(solver.rows(chunk), gpms)]
        assert found == [row for i in expected for row in _table(solver.rows(chunk_of([i], solver.solve_pushed)), gpms)]
        for chunk in chunks:
            table: ChunkRows = solver.rows(chunk)
            for gpm in gpms:
                found = [bool(table.mappings(gpm, i)) for i in range(len(table.positions))]
                assert table.present(gpm).tolist() == found


@pytest.mark.parametrize(
    "gpms",
    [
        "GPM A ON S { ?x :p ?y } DEFINE GPM B ON T { ?x :p ?z FILTER (?z > ?y) }",
        "GPM A ON S { ?x :p ?y } DEFINE GPM B ON T { ?x :p ?z FILTER (STR(?z) != STR(?y)) }",
        "GPM A ON S { ?x :p ?y FILTER (?y != ?w) } DEFINE GPM B ON T { ?x :p ?z OPTIONAL { ?x :r ?w } }",
        "GPM A ON S { ?x :p ?y OPTIONAL { ?x :r ?z } } DEFINE GPM B ON T, U { ?x :p ?w OPTIONAL { ?w :q ?z } }",
        "GPM A ON S { ?x :p ?y } DEFINE GPM B ON T { ?v :p ?z FILTER (?z + 1 = ?y || ?v = ?y) }",
        "GPM A ON S { [] :p ?y } DEFINE GPM B ON T { ?x :p ?y FILTER NOT EXISTS { ?x :r ?y } }",
        "GPM A ON S { ?x :p ?y } DEFINE GPM B ON T { ?w :q ?v GRAPH :kb { ?v :p ?y } }",
    ],
)
def test_conjunctions(gpms: str) -> None:
    """Joined as columns, and row by row."""
    query = _query(f"FROM WHERE {{ SEQ (A & B) DEFINE {gpms} }}")
    conjunction, patterns = ("A", "B"), query.checked.patterns
    triples = [(URIRef(E + name), URIRef(E + "p"), Literal(i)) for name in "uvw" for i in range(4)]
    known = Knowledge({E + "kb": event_graph(triples)})
    joined = 0
    for seed in range(some(30)):
        rng = random.Random(seed)
        streams = _streams(rng)
        solver = Solver(query.checked, known)
        every = list(instants(merge_streams(streams), StreamOptions(time="t")))
        whole = InstantBatch(SolvedRows(_solved(solver, every)), patterns, None)
        at = 0
        for chunk in merge_batches([solve_each(_cut(own, rng), solver.solve_batch) for _, own in streams], apart=False):
            found = InstantBatch(solver.rows(chunk), patterns, None)
            holds = whole.holds(conjunction)[at : at + len(found)]
            assert found.holds(conjunction).tolist() == holds.tolist()
            for row in range(len(found)):
                assert _shown(found.value(conjunction, row)) == _shown(whole.value(conjunction, at + row))
            at += len(found)
            joined += int(holds.sum())
    assert joined


def _solved(solver: Solver, every: list[Instant]) -> list[InstantSolutions]:
    """Each instant alone, as mappings."""
    rows = [solver.rows(chunk_of([instant], solver.solve_pushed)) for instant in every]
    return [
        InstantSolutions(i.position, i.time, None, {name: frozenset(row.mappings(name, 0)) for name in "AB"})
        for i, row in zip(every, rows, strict=True)
    ]


def _shown(mappings: Any) -> set[Any]:
    """Without what blank nodes are called."""
    return {tuple((n, "_" if isinstance(t, BNode) else t) for n, t in mapping) for mapping in mappings}


def test_what_comes_before_an_error_is_done_first() -> None:
    rng = random.Random(1)

    def broken() -> Iterator[GraphBatch]:
        yield GraphBatch.of([_event(STREAMS[0], time, rng) for time in (1, 2, 3)])
        raise EventError("oh", source="f")

    whole = [GraphBatch.of([_event(STREAMS[1], time, rng) for time in (2, 9)])]
    merged = merge_batches([solve_each(each, lambda batch: {}) for each in (broken(), iter(whole))], apart=False)
    assert next(merged).times.tolist() == [1, 2]
    with pytest.raises(EventError, match="oh"):
        next(merged)


def test_what_nothing_else_reads_is_not_shown() -> None:
    query = _query("FROM WHERE { SEQ (A; B) DEFINE GPM A ON S { ?x :p ?y } DEFINE GPM B ON T { ?x :p ?z } }")
    query = spaseq.compile(query.text.replace("SELECT *", "SELECT ?z"))
    solver = Solver(query.checked, Knowledge())
    batch = GraphBatch.of([_event(STREAMS[0], 1, random.Random(3))])
    (chunk,) = merge_batches([solve_each(iter([batch]), solver.solve_batch)], apart=False)
    (mapping,) = solver.rows(chunk).mappings("A", 0)
    assert [name for name, _ in mapping] == ["x"]
    assert solver.wanted == frozenset({URIRef(E + "p")})


def test_gpms_without_variables() -> None:
    """The engine told no rows of runs that hold nothing, and their matches were lost."""
    query = _query("FROM WHERE { SEQ (A; B) DEFINE GPM A ON S { [] :p [] } DEFINE GPM B ON S { :u :q 1 } }")
    p, q, u = (URIRef(E + name) for name in "pqu")
    events = [GraphEvent(STREAMS[0], t, ((u, p, u), (u, q, Literal(1))), None, "f", t) for t in range(3)]
    session = query.open()
    assert [m.positions for m in [*session.push(events), *session.close()]] == [(0, 1), (1, 2)]
