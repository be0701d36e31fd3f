"""GPMs: compiled once, evaluated on event graphs and background knowledge."""

from __future__ import annotations

import logging
import socket
from typing import Any

import pytest
import rdflib
from rdflib import BNode, Graph, Literal, URIRef, Variable
from rdflib.plugins.sparql.parserutils import CompValue

from spaseq.core.errors import InternalError, OptionError, QuerySyntaxError, UnsupportedFeature
from spaseq.gpm import EventGraph, GraphPattern, Knowledge, PatternEvaluator, Source, algebra, compile_pattern, holds
from spaseq.gpm.columnar.evaluate import BatchEvaluator, value_on
from spaseq.language.syntax.scan import mask
from spaseq.rdf import GraphBatch, GraphEvent

E = "http://example.org/"
KB = E + "kb"
PREFIXES = (("", E), ("xsd", str(rdflib.XSD)))


def pattern(group: str) -> GraphPattern:
    return compile_pattern(Source(group, mask(group), 0, len(group), "A", PREFIXES, "", "q"), (E + "S",))


def graph(turtle: str) -> Graph:
    return Graph().parse(
        data=f"@prefix : <{E}> . @prefix xsd: <{rdflib.XSD}> .\n{turtle} .\n" if turtle else "", format="turtle"
    )


def solve(group: str, event: str, kb: str = "") -> list[dict[str, Any]]:
    """Ω of a group on an event, terms as text, in order."""
    evaluator = PatternEvaluator(pattern(group), Knowledge({KB: graph(kb)}))
    found = value_on(evaluator, graph(event))  # type: ignore[arg-type]
    return sorted(({name: str(term).removeprefix(E) for name, term in m} for m in found), key=repr)


@pytest.mark.parametrize(
    ("group", "event", "expected"),
    [
        ("{ ?a :p ?x }", ":a :p 1, 2 . :b :q 3", [{"a": "a", "x": "1"}, {"a": "a", "x": "2"}]),
        ("{ ?a :p ?x . FILTER (?x > 1). }", ":a :p 1, 2", [{"a": "a", "x": "2"}]),
        ("{ ?a :p ?x FILTER (?x = '2'^^<http://www.w3.org/2001/XMLSchema#double>) }",
         ":a :p 1, 2", [{"a": "a", "x": "2"}]),
        ("{ ?a :p ?x OPTIONAL { ?a :q ?y } }", ":a :p 1 . :b :p 2 ; :q 3",
         [{"a": "a", "x": "1"}, {"a": "b", "x": "2", "y": "3"}]),
        ("{ { ?a :p ?x } UNION { ?a :q ?x } }", ":a :p 1 ; :q 2", [{"a": "a", "x": "1"}, {"a": "a", "x": "2"}]),
        ("{ ?a :p ?x MINUS { ?a :q ?y } }", ":a :p 1 . :b :p 2 ; :q 3", [{"a": "a", "x": "1"}]),
        ("{ ?a :p/:q ?x }", ":a :p :b . :b :q 1", [{"a": "a", "x": "1"}]),
        ("{ ?a :p+ ?x }", ":a :p :b . :b :p :c", [{"a": "a", "x": "b"}, {"a": "a", "x": "c"}, {"a": "b", "x": "c"}]),
        ("{ ?a :p [ :q ?x ] }", ":a :p [ :q 1 ]", [{"a": "a", "x": "1"}]),
        ("{ ?a :p ?x BIND (?x + 1 AS ?y) }", ":a :p 1", [{"a": "a", "x": "1", "y": "2"}]),
        ("{ ?a :p ?x VALUES ?x { 1 3 } }", ":a :p 1, 2", [{"a": "a", "x": "1"}]),
        ("{ ?a :p ?x FILTER NOT EXISTS { ?a :q ?z } }", ":a :p 1 . :b :p 2 ; :q 3", [{"a": "a", "x": "1"}]),
        ("{ { SELECT ?a (SUM(?v) AS ?x) { ?a :p ?v } GROUP BY ?a } }", ":a :p 1, 2", [{"a": "a", "x": "3"}]),
        ("{ ?a :p ?x FILTER (?x IN (1, 2) || ?x > 7) }", ":a :p 1, 5, 8", [{"a": "a", "x": "1"}, {"a": "a", "x": "8"}]),
        ("{ }", ":a :p 1", [{}]),
        ("{ ?a :p ?x FILTER (?x > 1) }", ":a :p 'text', :b, 2, true, 'zwei'@de", [{"a": "a", "x": "2"}]),
        ("{ ?a :p ?x FILTER (?x > 1 || ?x <= 1) }", ":a :p 'text'", []),
        ("{ ?a :p ?x FILTER (?x >= 'b') }", ":a :p 'a', 'b', 3, 'b'^^xsd:string", [{"a": "a", "x": "b"}]),
        ("{ ?a :p ?x FILTER (?x < '2020-01-01T12:00:00Z'^^xsd:dateTime) }",
         ":a :p '2020-01-01T11:59:59'^^xsd:dateTime, '2020-01-01T12:00:00+00:00'^^xsd:dateTime, '2019-01-01'^^xsd:date",
         [{"a": "a", "x": "2020-01-01T11:59:59"}]),
        ("{ ?a :p ?x FILTER (?x > '2019-01-01'^^xsd:date) }", ":a :p '2019-01-02'^^xsd:date, '2019'^^xsd:date",
         [{"a": "a", "x": "2019-01-02"}]),
        ("{ ?a :p ?x FILTER (?x IN (1, 'b', 1/0)) }", ":a :p 1.0, 'b', 3",
         [{"a": "a", "x": "1.0"}, {"a": "a", "x": "b"}]),
        ("{ ?a :p ?x FILTER (?x NOT IN (1, 1/0)) }", ":a :p 1.0, 'b', 3", []),
        ("{ ?a :p ?x FILTER (?x NOT IN (1, 2)) }", ":a :p 1.0, 3", [{"a": "a", "x": "3"}]),
        ("{ ?a :p ?x FILTER (?x <= 0.1 && ?x = 0.1 && ?x IN (0.1) && !(?x != 0.1)) }", ":a :p 0.1e0, 'NaN'^^xsd:double",
         [{"a": "a", "x": "0.1"}]),
        ("{ ?a :p ?x FILTER (?x NOT IN ()) }", ":a :p 3", [{"a": "a", "x": "3"}]),
    ],
)  # fmt: skip
def test_sparql(group: str, event: str, expected: list[dict[str, str]]) -> None:
    assert solve(group, event) == expected


def test_a_decimal_and_nan_in_one_pattern() -> None:
    """rdflib, which orders triples by their terms, refused it: these two have no order."""
    assert pattern("{ ?a :p 1.0 . ?a :p 'NaN'^^xsd:double }").certain == {"a"}


KNOWLEDGE = ":a :in :X . :b :in :Y . :X :name 'x'"


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("{ ?a :p ?x GRAPH :kb { ?a :in ?r } }", [{"a": "a", "r": "X", "x": "1"}]),
        (
            "{ GRAPH :kb { ?a :in ?r } ?a :p ?x . GRAPH :kb { ?r :name ?n } }",
            [{"a": "a", "n": "x", "r": "X", "x": "1"}],
        ),
        ("{ ?a :p ?x GRAPH :kb { ?a :in ?r } FILTER (?r = :X && ?x = 1) }", [{"a": "a", "r": "X", "x": "1"}]),
        ("{ ?a :p ?x GRAPH :kb { ?a :in ?r } FILTER (?r = :Y) }", []),
        ("{ ?a :p ?x OPTIONAL { GRAPH :kb { ?a :in ?r } } }", [{"a": "a", "r": "X", "x": "1"}, {"a": "c", "x": "2"}]),
        ("{ ?a :p ?x FILTER EXISTS { GRAPH :kb { ?a :in ?z } } }", [{"a": "a", "x": "1"}]),
        ("{ ?a :p ?x GRAPH ?g { ?a :in ?r } }", [{"a": "a", "g": "kb", "r": "X", "x": "1"}]),
        ("{ GRAPH :kb { ?a :in ?r } }", [{"a": "a", "r": "X"}, {"a": "b", "r": "Y"}]),
        ("{ GRAPH :kb { ?s :p ?x } }", []),
    ],
)
def test_background_knowledge(group: str, expected: list[dict[str, str]]) -> None:
    assert solve(group, ":a :p 1 . :c :p 2", KNOWLEDGE) == expected


def test_knowledge_joined_at_the_top_is_taken_out() -> None:
    found = pattern("{ ?a :p ?x GRAPH :kb { ?a :in ?r } FILTER (?r = :X) }")
    assert [iri for iri, _ in found.knowledge] == [KB]
    assert not algebra.graph_names(found.event)
    nested = pattern("{ ?a :p ?x OPTIONAL { GRAPH :kb { ?a :in ?r } } }")
    assert not nested.knowledge and nested.graphs == (KB,)


def test_conditions_are_split_and_sorted() -> None:
    found = pattern("{ ?a :p ?x FILTER (?x > 1 && ?x < ?y) FILTER (?z = ?x || ?x = 2) }")
    assert [sorted(c.variables) for c in found.local] == [["x"]]
    assert sorted(sorted(c.variables) for c in found.correlated) == [["x", "y"], ["x", "z"]]
    assert found.needs == {"y", "z"} and found.binds == {"a", "x"}


def test_a_condition_over_several_gpms() -> None:
    (condition,) = pattern("{ ?a :p ?x FILTER (?x < ?y) }").correlated
    prologue = pattern("{ }").prologue
    assert holds(condition, (("x", Literal(1)), ("y", Literal(2))), prologue)
    assert not holds(condition, (("x", Literal(2)), ("y", Literal(2))), prologue)
    assert not holds(condition, (("x", Literal(2)),), prologue), "an unbound variable is an error, which is not true"
    assert not holds(condition, (("x", Literal(2)), ("y", URIRef(E))), prologue)


def test_certain_and_required() -> None:
    found = pattern("{ ?a :p ?x OPTIONAL { ?a :q ?y } { ?a :r ?z } UNION { ?a :r ?w } BIND (1 AS ?k) }")
    assert found.binds == set("axyzwk")
    assert found.certain == {"a", "x"}
    assert found.required == {URIRef(E + "p"), URIRef(E + "r")}


def test_an_event_without_a_required_predicate_is_turned_away() -> None:
    evaluator = PatternEvaluator(pattern("{ ?a :p ?x }"), Knowledge())
    assert evaluator.solve(EventGraph([]), frozenset()) == (frozenset(), frozenset())
    assert not value_on(evaluator, [])


def test_mappings_before_and_after_the_filters() -> None:
    evaluator = PatternEvaluator(pattern("{ ?a :p ?x FILTER (?x > 1) }"), Knowledge())
    facts = EventGraph(graph(":a :p 1, 2"))  # type: ignore[arg-type]
    before, after = evaluator.solve(facts, facts.predicates)
    assert len(before) == 2 and len(after) == 1
    event = GraphEvent(E, 0, facts.triples, None, "", 1)
    (columns,) = BatchEvaluator([evaluator]).solve(GraphBatch.of([event])).values()
    assert sorted(columns.kept.tolist()) == [False, True]


def test_literals_match_as_written(caplog: pytest.LogCaptureFixture) -> None:
    facts = [(URIRef(E + "a"), URIRef(E + "p"), Literal("01", datatype=rdflib.XSD.integer, normalize=False))]
    with caplog.at_level(logging.DEBUG):
        for group, count in [("{ ?a :p 01 }", 1), ("{ ?a :p 1 }", 0), ("{ ?a :p ?x FILTER (?x = 1) }", 1)]:
            assert len(value_on(PatternEvaluator(pattern(group), Knowledge()), facts)) == count
        pattern("{ ?a :p ?x FILTER (?x = '10'^^xsd:date) }")
    assert not caplog.records, "rdflib complains about literals that do not fit their type"


def test_strings_with_and_without_their_type_are_one_term() -> None:
    assert solve("{ ?a :p 'x'^^xsd:string }", ":a :p 'x'") == [{"a": "a"}]
    evaluator = PatternEvaluator(pattern("{ ?a :p ?x BIND (xsd:string(?x) AS ?y) }"), Knowledge())
    ((_, _, (_, text)),) = value_on(evaluator, graph(":a :p 1"))  # type: ignore[arg-type]
    assert text == Literal("1") and text.datatype is None


def test_blank_nodes_of_a_pattern_are_no_variables_of_it() -> None:
    assert pattern("{ _:b :p ?x . [] :q ?y }").binds == {"x", "y"}
    triples = [(BNode("n"), URIRef(E + "p"), BNode("m"))]
    ((pair,),) = value_on(PatternEvaluator(pattern("{ _:b :p ?x }"), Knowledge()), triples)
    assert pair == ("x", BNode("m"))


def test_missing_knowledge_is_named() -> None:
    with pytest.raises(OptionError, match=rf"GRAPH <{KB}>.*\n.*kb={{\"{KB}\": \"FILE\"}}"):
        Knowledge().check([pattern("{ ?a :p ?x OPTIONAL { GRAPH :kb { ?a :in ?r } } }")])


@pytest.mark.parametrize("group", ["{ SERVICE :x { ?a :p ?x } }", "{ ?a :p ?x OPTIONAL { SERVICE ?x { ?a :p ?y } } }",
                                   "{ ?a :p ?x FILTER EXISTS { SERVICE SILENT :x { ?a :p ?y } } }"])  # fmt: skip
def test_service_is_refused(group: str) -> None:
    with pytest.raises(UnsupportedFeature, match="SERVICE is refused") as caught:
        pattern(group)
    assert caught.value.span is not None and group[caught.value.span.start :].startswith("SERVICE")


def test_nothing_opens_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr("urllib.request.urlopen", refuse)
    group = "{ GRAPH <http://example.org/unknown> { ?a :in ?r } }"
    with pytest.raises(OptionError):
        Knowledge().check([pattern(group)])
    assert solve("{ ?a :p ?x GRAPH ?g { ?a :in <http://example.org/X> } }", ":a :p 1", KNOWLEDGE) != []
    with pytest.raises(QuerySyntaxError):
        pattern("{ } FROM <http://example.org/data> { }")


def test_unknown_nodes_name_themselves() -> None:
    with pytest.raises(InternalError, match="'Teleport'"):
        algebra.convert(CompValue("Teleport"))
    with pytest.raises(InternalError, match="'Builtin_GUESS'"):
        algebra.convert_expression(CompValue("Builtin_GUESS", arg=Variable("x")))


def test_nesting_beyond_the_stack_is_an_error_of_the_query() -> None:
    with pytest.raises(QuerySyntaxError, match="nested too deeply"):
        pattern("{" * 2000 + "}" * 2000)
