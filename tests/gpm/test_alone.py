"""A small graph by itself gives what the plan gives on a batch of it, and the definition: random basic graph patterns
under FILTERs on random graphs of terms of all kinds, and what falls back to the plan."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef
from rdflib.namespace import XSD

from spaseq.core.errors import SpaseqError
from spaseq.gpm import Knowledge, PatternEvaluator, Source, algebra, compile_pattern, event_graph
from spaseq.gpm.columnar.alone import PAIRS, listed, prepare
from spaseq.gpm.columnar.evaluate import BatchEvaluator
from spaseq.language.syntax.scan import mask
from spaseq.rdf import GraphEvent
from tests.support import algebra_by_definition
from tests.support.sizes import some

E = "http://example.org/"
S = "urn:s"
_NAMES = [URIRef(E + name) for name in "abpq"]
_LITERALS = [
    Literal(1), Literal(2), Literal("1.0", datatype=XSD.decimal), Literal("01", datatype=XSD.integer, normalize=False),
    Literal("1e0", datatype=XSD.double), Literal("NaN", datatype=XSD.double), Literal("-INF", datatype=XSD.float),
    Literal("0.1", datatype=XSD.float), Literal("0.1", datatype=XSD.decimal), Literal("-0.0", datatype=XSD.double),
    Literal(2**53 + 1), Literal(2**53), Literal("12345678901234567.5", datatype=XSD.decimal), Literal(10**400),
    Literal("x"), Literal("x", datatype=XSD.string), Literal("x", lang="en"), Literal("x", lang="EN"), Literal(""),
    Literal("true", datatype=XSD.boolean), Literal("1", datatype=XSD.boolean), Literal("x", datatype=URIRef(E + "t")),
    Literal("2020-01-01T00:00:00Z", datatype=XSD.dateTime), Literal("2020-01-01", datatype=XSD.date),
    Literal("many", datatype=XSD.integer),
]  # fmt: skip
_VARIABLES = ["?u", "?v", "?w"]
_SHOWN = [":a", ":b", "1", "1.0", "0.1", "'x'", "'x'@en", "'x'^^xsd:string", "true", "9007199254740993",
          "'2020-01-01'^^xsd:date", "'NaN'^^xsd:double", "1e0", "'many'^^xsd:integer"]  # fmt: skip
_SIGNS = ["=", "!=", "<", "<=", ">", ">="]


@st.composite
def _condition(draw: st.DrawFn, names: list[str], depth: int = 2) -> str:
    operand = st.sampled_from([*names, *names, *_SHOWN])
    kind = draw(st.integers(0, 7 if depth else 4))
    if kind <= 3:
        return f"{draw(operand)} {draw(st.sampled_from(_SIGNS))} {draw(operand)}"
    if kind == 4:
        name = draw(st.sampled_from(names))
        return draw(st.sampled_from(["STR(%s) = 'x'", "%s", "isIRI(%s)", "%s IN (1, :a)", "LANG(%s) = 'en'"])) % name
    one = draw(_condition(names, depth - 1))
    if kind == 5:
        return f"!({one})"
    return f"({one} {draw(st.sampled_from(['&&', '||']))} {draw(_condition(names, depth - 1))})"


@st.composite
def _groups(draw: st.DrawFn) -> str:
    ends = st.sampled_from([*_VARIABLES, *_VARIABLES, ":a", ":b", "_:n"])
    predicates = st.sampled_from([":p", ":p", ":q", ":none", "?u", "?w"])
    objects = st.one_of(ends, st.sampled_from(_SHOWN))
    triples = draw(st.lists(st.tuples(ends, predicates, objects).map(" ".join), min_size=1, max_size=3))
    text = " . ".join(triples)
    names = [name for name in _VARIABLES if name in text.split()]
    conditions = draw(st.lists(_condition(names), max_size=2)) if names else []
    return f"{{ {text} . {' '.join(f'FILTER ({c})' for c in conditions)} }}"


@st.composite
def _operators(draw: st.DrawFn) -> str:
    """A group with other operators behind its triples, or around them."""
    own, other = draw(_groups()), draw(_groups())
    inside = draw(
        st.sampled_from(
            [
                "%s OPTIONAL { ?u :q ?x }",
                "%s OPTIONAL { ?u :q ?x FILTER (?x = ?v || ?x = ?w) }",
                "%s OPTIONAL { ?x :p ?u OPTIONAL { ?x :q ?y } } FILTER (?x != :a || !BOUND(?y))",
                "{ %s } UNION { %s }",
                "{ %s } UNION { ?u :q ?x } ?u :p ?y",
                "%s MINUS { %s }",
                "%s FILTER NOT EXISTS { ?u :q ?x FILTER (?x = ?v) }",
                "%s FILTER EXISTS { { ?u :p ?x } UNION { ?x :p|:q ?v } }",
                "%s BIND (?v + 1 AS ?x) FILTER (!BOUND(?x) || ?x > 1)",
                "%s VALUES (?v ?x) { (1 :a) (:b UNDEF) (UNDEF 2) }",
                "%s ?u :p/:q? ?x",
                "%s ?x (:p|^:q)+ ?v",
                "%s ?u :p* ?u",
                "{ SELECT ?u (COUNT(?v) AS ?x) (SUM(?v) AS ?y) (AVG(?v) AS ?z) { %s } GROUP BY ?u }",
                "{ SELECT (MIN(?v) AS ?x) (SAMPLE(?w) AS ?y) (GROUP_CONCAT(DISTINCT ?u) AS ?z) { %s } }",
                "{ SELECT DISTINCT ?u { %s } ORDER BY DESC(?v) LIMIT 2 } ?u :p ?x",
                "{ SELECT ?u (COUNT(*) AS ?x) { { %s } UNION { %s } } GROUP BY ?u HAVING (COUNT(*) > 1) }",
            ]
        )
    )
    inside = inside.replace("%s", own[1:-1], 1).replace("%s", other[1:-1], 1)
    blank = itertools.count()
    return "{ " + re.sub("_:n", lambda _: f"_:n{next(blank)}", inside) + " }"


_TERMS = st.sampled_from([*_NAMES, *_NAMES, BNode("n"), BNode("m"), *_LITERALS])
_TRIPLES = st.tuples(st.sampled_from([*_NAMES, BNode("n")]), st.sampled_from(_NAMES[2:]), _TERMS)
_GRAPHS = st.lists(st.lists(_TRIPLES, max_size=6), min_size=1, max_size=4)


def _pattern(group: str) -> Any:
    prefixes = (("", E), ("xsd", str(XSD)))
    return compile_pattern(Source(group, mask(group), 0, len(group), "A", prefixes, "", "q"), (S,))


def _evaluator(group: str, knowledge: Knowledge | None = None, *, removed: bool = True) -> BatchEvaluator:
    return BatchEvaluator([PatternEvaluator(_pattern(group), knowledge or Knowledge())], removed=removed)


def _events(graphs: list[Any]) -> list[GraphEvent]:
    return [GraphEvent(S, i, tuple(graph), None, "", i + 1) for i, graph in enumerate(graphs)]


def _each(evaluator: BatchEvaluator, events: list[GraphEvent]) -> list[set[Any]]:
    """(mapping, whether the FILTERs are true) of each event's solutions, as `solve_each` gives them."""
    found: list[set[Any]] = [set() for _ in events]
    for event, _, solutions, row, kept in evaluator.solve_each(events):
        found[event].add((solutions.mapping(row, None), kept))
    return found


def _ones(evaluator: BatchEvaluator, events: list[GraphEvent]) -> list[set[Any]]:
    """The same by the plan, on a batch of each."""
    found: list[set[Any]] = [set() for _ in events]
    for own, event in zip(found, events, strict=True):
        for solutions in evaluator.solve_pushed([event]).values():
            own.update((solutions.mapping(row, None), bool(kept)) for row, kept in enumerate(solutions.kept))
    return found


def _solved_alone(group: str, graph: list[Any]) -> bool:
    """Whether a graph is solved by itself, by a GPM without background knowledge."""
    compiled = _pattern(group)
    conditions = [c.expression for c in compiled.local]
    nodes = [compiled.event, *(node for c in conditions for node in algebra.patterns_inside(c))]
    predicates = sorted(frozenset().union(*map(algebra.predicates_named, nodes)))
    places = {str(iri): place for place, iri in enumerate(predicates)}
    alone = prepare(compiled.event, conditions, compiled.prologue, places)
    own = [places.get(str(predicate)) for _, predicate, _ in graph]
    return alone is not None and alone.solve(listed(graph, own, every=True)) is not None


@given(_groups(), _GRAPHS)
@example("{ ?u :p ?u . FILTER (?u = ?u) }", [[(_NAMES[0], _NAMES[2], _NAMES[0])]])
@example("{ ?u :p 'x' }", [[(_NAMES[0], _NAMES[2], Literal("x", datatype=XSD.string))]])
@settings(max_examples=some(400), deadline=None)
def test_a_graph_alone_is_a_batch_of_one(group: str, graphs: list[Any]) -> None:
    _check(group, graphs)


@given(_operators(), _GRAPHS)
@example("{ { SELECT (COUNT(*) AS ?x) { ?u :p ?v } } }", [[(_NAMES[0], _NAMES[2], Literal(1))] * 2, []])
@settings(max_examples=20, deadline=None)
def test_operators_on_a_graph_alone(group: str, graphs: list[Any]) -> None:
    _check(group, graphs)


@pytest.mark.random
@given(_operators(), _GRAPHS)
@settings(max_examples=1_000, deadline=None)
def test_more_operators_on_a_graph_alone(group: str, graphs: list[Any]) -> None:
    _check(group, graphs)


def _check(group: str, graphs: list[Any]) -> None:
    """A group on each graph alone, by the plan, and by definition."""
    try:
        compiled = _pattern(group)
    except SpaseqError:
        reject()
    evaluator, events = _evaluator(group), _events(graphs)
    found = _each(evaluator, events)
    assert found == _ones(evaluator, events)
    early = _evaluator(group, removed=False)
    for way in (_each(early, events), _ones(early, events)):
        assert [{m for m, kept in own if kept} for own in way] == [{m for m, kept in own if kept} for own in found]
    if "SELECT" in group and not all(_is_simple(term) for graph in graphs for _, _, term in graph):
        return
    for own, graph in zip(found, graphs, strict=True):
        oracle = algebra_by_definition.Oracle(list(dict.fromkeys(graph)), compiled.prologue, {})
        solutions = oracle.value(compiled.event)
        true = [m for m in solutions if all(oracle.truth(c.expression, m) is True for c in compiled.local)]
        assert {m for m, _ in own} == {tuple(sorted(m.items())) for m in solutions}
        assert {m for m, kept in own if kept} == {tuple(sorted(m.items())) for m in true}


def _is_simple(term: Any) -> bool:
    """Whether the definition in `algebra_by_definition` has the sums and the order of a term: no doubles, dates and
    language tags."""
    if not isinstance(term, Literal):
        return True
    return not term.language and (term.datatype is None or (isinstance(term.value, int | Decimal) and len(term) < 20))


@pytest.mark.parametrize("sign", _SIGNS)
def test_every_comparison_of_two_terms(sign: str) -> None:
    terms = [*_NAMES[:2], BNode("n"), *_LITERALS]
    graphs = [[(_NAMES[0], _NAMES[2], one), (_NAMES[0], _NAMES[3], other)] for one in terms for other in terms]
    evaluator, events = _evaluator(f"{{ ?u :p ?v ; :q ?w FILTER (?v {sign} ?w) }}"), _events(graphs)
    found = [any(kept for _, kept in own) for own in _each(evaluator, events)]
    assert found == evaluator.solve_pushed(events)["A"].kept.tolist()
    assert any(found) and not all(found)


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_every_truth_of_two_conditions(operator: str) -> None:
    """`?v > 1` is true of 2, false of 1, and an error of a text."""
    values = [Literal(2), Literal(1), Literal("x")]
    graphs = [[(_NAMES[0], _NAMES[2], one), (_NAMES[0], _NAMES[3], other)] for one in values for other in values]
    for signs in itertools.product(["", "!"], repeat=3):
        whole, left, right = signs
        text = f"{{ ?u :p ?v ; :q ?w FILTER ({whole}({left}(?v > 1) {operator} {right}(?w > 1))) }}"
        evaluator, events = _evaluator(text), _events(graphs)
        found = [any(kept for _, kept in own) for own in _each(evaluator, events)]
        assert found == evaluator.solve_pushed(events)["A"].kept.tolist(), text


_GRAPH = [
    (_NAMES[0], _NAMES[2], Literal(1)),
    (_NAMES[0], _NAMES[2], _NAMES[1]),
    (_NAMES[0], _NAMES[3], Literal("x")),
    (_NAMES[1], _NAMES[3], BNode("n")),
]


@pytest.mark.parametrize(
    ("group", "is_prepared"),
    [
        ("{ ?u :p ?v }", True),
        ("{ ?u ?v ?w . ?u :q _:n }", True),
        ("{ ?u :p ?v . ?v :q [] }", True),
        ("{ ?u :p ?v FILTER (?v > 0 && STR(?u) != 'x') }", True),
        ("{ ?u :p ?v FILTER (?v + 1 > 0) }", True),
        ("{ ?u :p ?v FILTER EXISTS { ?u :q ?w } }", True),
        ("{ ?u :p ?v OPTIONAL { ?v :q ?w } }", True),
        ("{ ?u :p ?v VALUES ?v { 1 :b UNDEF } }", True),
        ("{ ?u :p ?v BIND (STR(?v) AS ?w) }", True),
        ("{ { ?u :p ?v } UNION { ?u :q ?v } }", True),
        ("{ ?u :p ?v MINUS { ?v :q ?w } }", True),
        ("{ ?u :p/:q ?v }", True),
        ("{ ?u :p? ?v }", True),
        ("{ { SELECT ?u (COUNT(*) AS ?n) { ?u :p ?v } GROUP BY ?u } }", True),
        ("{ }", True),
        ("{ ?u !:p ?v }", False),
        ("{ ?u :p ?v FILTER EXISTS { ?u (!:p)+ ?w } }", False),
        ("{ ?u :p ?v BIND (UUID() AS ?w) }", False),
        (f"{{ ?u :p ?v VALUES ?v {{ :b {'1 ' * PAIRS} }} }}", False),
    ],
)
def test_which_patterns_are_prepared(group: str, is_prepared: bool) -> None:
    assert _solved_alone(group, _GRAPH) is is_prepared
    evaluator, events = _evaluator(group), _events([_GRAPH, [], _GRAPH[:2], _GRAPH * 2])
    found = _each(evaluator, events)
    if "UUID" not in group:
        assert found == _ones(evaluator, events)
    assert found[0]


@pytest.mark.parametrize("graph", [":kb", "?g"])
def test_background_knowledge_is_left_to_the_plan(graph: str) -> None:
    knowledge = Knowledge({E + "kb": event_graph([(_NAMES[1], URIRef(E + "in"), _NAMES[0])])})
    evaluator = _evaluator(f"{{ ?u :p ?v GRAPH {graph} {{ ?v :in ?w }} }}", knowledge)
    events = _events([_GRAPH, _GRAPH[2:]])
    assert _each(evaluator, events) == _ones(evaluator, events)
    assert list(map(len, _each(evaluator, events))) == [1, 0]


def test_a_graph_of_many_candidates_is_left_to_the_plan() -> None:
    group = "{ ?u :p ?v . ?w :q ?v }"
    small, large = (
        [(_NAMES[0], _NAMES[2 + i % 2], Literal(i // 2)) for i in range(2 * count)] for count in (3, PAIRS // 2)
    )
    assert [_solved_alone(group, graph) for graph in (small, large)] == [True, False]
    evaluator, events = _evaluator(group), _events([small, large])
    assert _each(evaluator, events) == _ones(evaluator, events)
    assert list(map(len, _each(evaluator, events))) == [3, PAIRS // 2]


@pytest.mark.parametrize("group", ["{ ?u :p+ ?v }", "{ ?u :p? ?v }", "{ ?u :p/:p ?v }"])
def test_a_path_that_reads_many_triples_is_left_to_the_plan(group: str) -> None:
    nodes = [URIRef(f"{E}n{i}") for i in range(600)]
    small, large = ([(one, _NAMES[2], other) for one, other in itertools.pairwise(nodes[:n])] for n in (4, 600))
    assert [_solved_alone(group, graph) for graph in (small, large)] == [True, False]
    evaluator, events = _evaluator(group), _events([small, large[:40]])
    assert _each(evaluator, events) == _ones(evaluator, events)


def test_several_gpms_of_which_some_are_prepared() -> None:
    groups = {"A": "{ ?u :p ?v }", "B": "{ ?u :p ?v OPTIONAL { ?v :q ?w } }", "C": "{ ?u :q ?v }"}
    patterns = [
        compile_pattern(Source(text, mask(text), 0, len(text), name, (("", E),), "", "q"), (S,))
        for name, text in groups.items()
    ]
    evaluator = BatchEvaluator([PatternEvaluator(pattern, Knowledge()) for pattern in patterns])
    events = _events([_GRAPH, _GRAPH[2:], []])
    found = {(event, name) for event, name, *_ in evaluator.solve_each(events)}
    assert found == {(0, "A"), (0, "B"), (0, "C"), (1, "C")}
