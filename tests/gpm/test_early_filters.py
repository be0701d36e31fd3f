"""FILTERs that are evaluated before a group's OPTIONALs: which, and that the rest is then left undone."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import Literal, URIRef

import spaseq
from spaseq.gpm import algebra
from spaseq.gpm.columnar import alone
from spaseq.gpm.columnar.rewrites import filter_early
from spaseq.gpm.reference import solutions
from spaseq.rdf import GraphEvent
from tests.gpm.test_columnar import E, pattern, pushed, solved


def _outline(node: Any) -> str:
    """The operators of a node; a FILTER by its number of conditions."""
    match node:
        case algebra.BGP():
            return "T"
        case algebra.Filter(child, algebra.Call("&&", arguments)):
            return f"F{len(arguments)}({_outline(child)})"
        case algebra.Filter(child):
            return f"F1({_outline(child)})"
        case algebra.Extend(child):
            return f"bind({_outline(child)})"
        case algebra.LeftJoin(left, right) | algebra.Join(left, right) | algebra.Minus(left, right):
            return f"{type(node).__name__}({_outline(left)}, {_outline(right)})"
        case _:
            return type(node).__name__


@pytest.mark.parametrize(
    ("group", "outline", "left"),
    [
        ("?u :p ?v FILTER (?v > 1)", "T", 1),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER (?v > 1)", "LeftJoin(F1(T), T)", 0),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER (?v > 1 && ?u != :a)", "LeftJoin(F2(T), T)", 0),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER (!BOUND(?w))", "LeftJoin(T, T)", 1),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER (?v > 1) FILTER (?w > 1)", "LeftJoin(F1(T), T)", 1),
        ("?u :p ?v OPTIONAL { ?u :q ?w } OPTIONAL { ?w :q ?x } FILTER (?v > 1)", "LeftJoin(LeftJoin(F1(T), T), T)", 0),
        ("?u :p ?v MINUS { ?u :q ?w } FILTER (?v > 1)", "Minus(F1(T), T)", 0),
        ("?u :p ?v BIND (?v + 1 AS ?x) FILTER (?v > 1)", "bind(F1(T))", 0),
        ("?u :p ?v BIND (?v + 1 AS ?x) FILTER (?x > 1)", "bind(T)", 1),
        ("?u :p ?v { ?w :q ?x } UNION { ?w :p ?x } FILTER (?v > 1)", "Join(F1(T), Union)", 0),
        ("?u :p ?v { ?w :q ?x } UNION { ?w :p ?x } FILTER (?x > 1)", "Join(T, F1(Union))", 0),
        ("?u :p ?v { ?w :q ?x } UNION { ?w :p ?x } FILTER (?x > ?v)", "Join(T, Union)", 1),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER EXISTS { ?u :q ?v }", "LeftJoin(T, T)", 1),
        ("?u :p ?v OPTIONAL { ?u :q ?w } FILTER (?v > RAND())", "LeftJoin(T, T)", 1),
        ("?u :p ?v VALUES (?u ?x) { (:a 1) (:b 2) } FILTER (?x > 1)", "Join(T, Values)", 1),
        ("VALUES (?u ?x) { (:a 1) (:b 2) } ?u :p ?v FILTER (?u != :a)", "Join(Values, F1(T))", 0),
        (
            "?u :p ?v VALUES (?u ?x) { (:a 1) } OPTIONAL { ?u :q ?w } FILTER (?x > 1)",
            "LeftJoin(F1(Join(T, Values)), T)",
            0,
        ),
        ("?u :p ?v OPTIONAL { ?u :q ?w } GRAPH ?g { ?v :in ?x } FILTER (?x > 1)", "Join(LeftJoin(T, T), GraphNode)", 1),
        ("{ SELECT ?u (COUNT(*) AS ?n) { ?u :p ?v } GROUP BY ?u } FILTER (?n > 1)", "Projected", 1),
        ("{ ?u :p ?v FILTER (?v > 1) } OPTIONAL { ?u :q ?w } FILTER (?v < 9)", "LeftJoin(F2(T), T)", 0),
    ],
)
def test_a_filter_is_over_the_first_part_that_binds_its_variables(group: str, outline: str, left: int) -> None:
    compiled = pattern("{ " + group + " }")
    node, conditions = filter_early(compiled.event, [c.expression for c in compiled.local])
    assert (_outline(node), len(conditions)) == (outline, left)
    assert algebra.visible(node) == algebra.visible(compiled.event)


def test_many_conditions_are_one_filter() -> None:
    filters = " ".join(f"FILTER (?v > {i})" for i in range(500))
    compiled = pattern(f"{{ ?u :p ?v OPTIONAL {{ ?u :q ?w }} {filters} }}")
    node, conditions = filter_early(compiled.event, [c.expression for c in compiled.local])
    assert (_outline(node), conditions) == ("LeftJoin(F500(T), T)", ())
    graphs: list[Any] = [[(URIRef(E + "a"), URIRef(E + "p"), Literal(value))] for value in (499, 500)]
    for found in (solved(compiled, graphs, removed=False), pushed(compiled, graphs, 1, removed=False)):
        assert [len(after) for _, after in found] == [0, 1]


_TEXT = f"""PREFIX : <{E}> SELECT ?v ?w FROM STREAM S <urn:s> WHERE {{ SEQ (A)
    DEFINE GPM A ON S {{ ?u :p ?v OPTIONAL {{ ?u :q ?w }} FILTER (?v > 8) }} }}"""


def _events() -> list[GraphEvent]:
    node, values = URIRef(E + "a"), (1, 9, 2, 3, 9)
    graphs = [[(node, URIRef(E + "p"), Literal(value)), (node, URIRef(E + "q"), Literal(-value))] for value in values]
    return [GraphEvent("urn:s", i * 10**9, tuple(graph), None, "", i + 1) for i, graph in enumerate(graphs)]


@pytest.mark.parametrize(("partition", "asked"), [("", 2), ("PARTITION BY (?v)", 5)])
def test_nothing_else_of_a_graph_is_solved_if_a_filter_removes_all(
    partition: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the keys of a partition, of which the graph is an instant even then."""
    calls: list[Any] = []

    def counted(node: algebra.Node, context: Any) -> Any:
        calls.append(node)
        return solutions(node, context)

    monkeypatch.setattr(alone, "solutions", counted)
    session = spaseq.compile(_TEXT.replace("FROM", f"{partition} FROM", 1)).open()
    found = [match for event in _events() for match in session.push(event)] + session.close()
    assert [match.bindings for match in found] == [{"v": Literal(9), "w": Literal(-9)}] * 2
    assert len(calls) == asked
