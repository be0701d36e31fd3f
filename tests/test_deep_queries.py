"""Queries with hundreds of parts: they run, or one error says that they are nested too deeply."""

from __future__ import annotations

from typing import Any

import pytest
import rdflib

import ceql
import spaseq
from spaseq import GraphEvent
from spaseq.core.errors import QueryError

_HEAD = "PREFIX : <http://e/>\nSELECT ?y WITHIN 1 HOURS FROM STREAM S <http://e/s>\nWHERE {\n"


def _query(sequence: str, *patterns: str) -> str:
    defined = "\n".join(f"DEFINE GPM G{i} ON S {{ {text} }}" for i, text in enumerate(patterns))
    return f"{_HEAD}SEQ ({sequence})\n{defined}\n}}"


def _pushed(query: str, *data: str, **more: Any) -> list[int]:
    """The values of ?y over an event graph that is pushed."""
    graph = rdflib.Graph().parse(data="@prefix : <http://e/> .\n" + " ".join(data), format="turtle")
    triples: Any = tuple(graph)
    event = GraphEvent("http://e/s", 0, triples)
    with spaseq.compile(query).open(**more) as session:
        return sorted(match.bindings["y"].toPython() for match in [*session.push(event), *session.close()])


def test_a_union_of_hundreds() -> None:
    union = " UNION ".join(f"{{ ?x :p{i} ?y }}" for i in range(400))
    assert _pushed(_query("G0", union), ":a :p0 1 .", ":a :p399 2 .", ":a :q 3 .") == [1, 2]


@pytest.mark.parametrize("end", ["", " ."])
def test_thousands_of_triples(end: str) -> None:
    """rdflib's grammar calls itself for each that stands behind a dot."""
    values = range(400)
    data = ":a " + " ; ".join(f":p{i} {i}" for i in values) + " ."
    gpm = " . ".join(f"?x :p{i} ?{'y' if i == 7 else f'y{i}'}" for i in values) + end
    assert _pushed(_query("G0", gpm), data) == [7]
    template = " . ".join(f"?x :p{i} ?y" for i in values) + end
    query = spaseq.compile(_query("G0", "?x :p ?y").replace("SELECT ?y", f"CONSTRUCT {{ {template} }}"))
    triple: Any = (rdflib.URIRef("http://e/a"), rdflib.Literal(1))
    assert len(query.construct({"x": triple[0], "y": triple[1]})) == 400
    for wrong in ("?x :p ?y . . ?y :p ?z", ". ?x :p ?y", "?x :p ?y . ."):
        with pytest.raises(QueryError):
            spaseq.compile(_query("G0", wrong))


def test_a_class_with_hundreds_of_subclasses() -> None:
    """Entailment writes a triple pattern as the union of what entails it."""
    links = " ".join(f":C{i} rdfs:subClassOf :C . :q{i} rdfs:subPropertyOf :q ." for i in range(400))
    prefixes = "@prefix : <http://e/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    schema = rdflib.Graph().parse(data=prefixes + links, format="turtle")
    query = _query("G0", "?x a :C ; :q ?y")
    assert _pushed(query, ":a a :C399 ; :q7 1 .", kb={"http://e/kb": schema}, entailment="rdfs") == [1]


def test_hundreds_of_alternatives_and_joint_steps() -> None:
    gpms = [f"?x :p{i} ?y" for i in range(24)]
    both = " & ".join(f"(G{2 * i}|G{2 * i + 1})" for i in range(12))
    assert _pushed(_query(both, *gpms), ":a :p0 1 .") == []
    assert _pushed(_query(" | ".join(f"G{i % 24}" for i in range(300)), *gpms), ":a :p23 1 .") == [1]


@pytest.mark.parametrize(
    "query",
    [
        _query("; ".join(["G0"] * 1200), "?x :p ?y"),
        _query("(" * 3000 + "G0" + ")" * 3000, "?x :p ?y"),
        _query("G0", "?x :p ?y " + " ".join(f"OPTIONAL {{ ?x :q{i} ?z{i} }}" for i in range(300))),
        _query("G0", "?x :p ?y0 " + " ".join(f"BIND(?y{i} + 1 AS ?y{i + 1})" for i in range(300))),
        _query("G0", "{" * 500 + "?x :p ?y" + "}" * 500),
    ],
    ids=["steps", "parentheses", "optional", "bind", "braces"],
)
def test_one_error_says_that_a_query_is_too_deep(query: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply") as raised:
        spaseq.compile(query, source="q.rq")
    assert raised.value.source == "q.rq"


@pytest.mark.parametrize("part", [" ; ", " OR "])
def test_ceql_says_so_too(part: str) -> None:
    with pytest.raises(QueryError, match=r"q\.ceql: the query is nested too deeply"):
        ceql.compile("SELECT * WHERE " + part.join(["A"] * 3000), source="q.ceql")


def test_construct_of_nothing() -> None:
    query = spaseq.compile(_query("G0", "?x :p ?y").replace("SELECT ?y", "CONSTRUCT { }"))
    assert query.construct({}) == ()


def test_counts_of_thousands_of_digits() -> None:
    """They were refused by Python, and so was the query, as "a bug"."""
    many = "9" * 5_000
    data = ":a :p 1 . :b :p 2 ."
    for inside, found in ((f"LIMIT {many}", [1, 2]), (f"LIMIT 1 OFFSET {many}", []), (f"OFFSET {many}", [])):
        query = _query("G0", f"{{ SELECT ?y {{ ?x :p ?y }} ORDER BY ?y {inside} }}")
        assert _pushed(query, data) == found
        assert _pushed(query, data, reference=True) == found
    outer = _query("G0", "?x :p ?y") + f" ORDER BY ?y LIMIT {many}"
    assert _pushed(outer, data) == [1, 2]
    with pytest.raises(QueryError, match="is outside the times that can be held"):
        spaseq.compile(outer.replace("1 HOURS", f"1 HOURS STARTING AT {many}"))


def test_a_sequence_of_hundreds_that_is_too_deep_to_be_printed() -> None:
    query = ceql.compile("SELECT * WHERE " + " : ".join(["A"] * 700))
    with pytest.raises(QueryError, match="nested too deeply"):
        query.explain()
    assert query.warnings == query.advice == ()


@pytest.mark.parametrize(("deep", "error"), [(300, spaseq.BudgetExceeded), (5_000, QueryError)])
def test_and_inside_of_and(deep: int, error: type[Exception]) -> None:
    """The parts of hundreds have more orders than digits could tell; thousands are nested too deeply."""
    query = _query("AND(G0, " * deep + "G1" + ")" * deep, "?x :p0 ?y", "?x :p1 ?y")
    with pytest.raises(error) as caught:
        spaseq.compile(query)
    assert len(str(caught.value)) < 400
