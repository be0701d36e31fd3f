"""Rewrites GRAPH and EXISTS for the plan: constant names only, moved inwards where needed, and variables for operands.

SPARQL 1.1 §18.6 evaluates `GRAPH ?g { P }` on every named graph and binds ?g to its name. That is the union, over the
graphs, of a GRAPH with a constant name joined with a row of inline data. And `GRAPH <g> { P op Q }` is equivalent to
`GRAPH <g> { P } op GRAPH <g> { Q }`; this is used only inside EXISTS, where outer terms are substituted into P and Q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from types import MethodType
from typing import Any

from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.term import URIRef, Variable

from spaseq.core.pattern import balanced
from spaseq.gpm import algebra

__all__ = ["exists_inside", "inward", "mapped_expression", "mentioned", "reads_knowledge", "with_known_graphs",
           "with_variables"]  # fmt: skip

_Change = Callable[[algebra.Node], algebra.Node]


def _mapped(node: algebra.Node, change: _Change) -> algebra.Node:
    """`node` with `change` applied to each node directly below it, also inside EXISTS."""
    changed = {part.name: _mapped_value(getattr(node, part.name), change) for part in fields(node)}
    return replace(node, **changed)


def _mapped_value(value: Any, change: _Change) -> Any:
    match value:
        case algebra.Node():
            return change(value)
        case algebra.Exists(pattern, negated):
            return algebra.Exists(change(pattern), negated)
        case algebra.Call(name, arguments, handle):
            return algebra.Call(name, tuple(_mapped_value(a, change) for a in arguments), handle)
        case tuple():
            return tuple(_mapped_value(item, change) for item in value)
        case _:
            return value


def mapped_expression(expression: algebra.Expression, change: _Change) -> algebra.Expression:
    """`expression` with `change` applied to the patterns of its EXISTS."""
    found: algebra.Expression = _mapped_value(expression, change)
    return found


def with_known_graphs(node: algebra.Node, names: Iterable[str]) -> algebra.Node:
    """`node` with each `GRAPH ?g` written out for the graphs `names`. A GRAPH with another constant name has no
    solutions."""
    known = tuple(names)

    def change(inner: algebra.Node) -> algebra.Node:
        inner = _mapped(inner, change)
        match inner:
            case algebra.GraphNode(Variable() as variable, child):
                return _on_each(str(variable), child, known)
            case algebra.GraphNode(name, _) if str(name) not in known:
                return algebra.Values(())
            case _:
                return inner

    return change(node)


def _on_each(variable: str, child: algebra.Node, names: tuple[str, ...]) -> algebra.Node:
    """The union over graphs; without graphs, a pattern without solutions."""
    parts: list[algebra.Node] = [
        algebra.Join(algebra.GraphNode(URIRef(name), child), algebra.Values((((variable, URIRef(name)),),)))
        for name in names
    ]
    return balanced(algebra.Union, parts) if parts else algebra.Values(())


def inward(name: URIRef, node: algebra.Node) -> algebra.Node:
    """`GRAPH name { node }` with GRAPH around basic graph patterns only. A nested GRAPH keeps its own name."""
    match node:
        case algebra.BGP(triples):
            return algebra.GraphNode(name, node) if triples else node
        case algebra.GraphNode():
            return node
        case _:
            return _mapped(node, lambda inner: inward(name, inner))


def reads_knowledge(node: algebra.Node) -> bool:
    """Whether there is a GRAPH in a pattern, outside of EXISTS."""
    match node:
        case algebra.GraphNode():
            return True
        case _:
            children = (getattr(node, part.name) for part in fields(node))
            return any(reads_knowledge(child) for child in children if isinstance(child, algebra.Node))


def mentioned(node: algebra.Node) -> frozenset[str]:
    """All variables that occur anywhere in a pattern."""
    found: set[str] = set()
    for inner in algebra.walk(node):
        match inner:
            case algebra.BGP() | algebra.Values():
                found |= algebra.visible(inner)
            case algebra.GraphNode(Variable() as name, _):
                found.add(str(name))
            case algebra.Extend(_, variable, value):
                found |= {variable} | algebra.expression_variables(value)
            case algebra.Filter(_, condition) | algebra.LeftJoin(_, _, condition):
                found |= algebra.expression_variables(condition)
            case algebra.Ordered(_, keys) | algebra.Grouped(_, keys):
                found |= frozenset().union(*map(algebra.expression_variables, keys))
            case algebra.Aggregated(_, results):
                found |= frozenset().union(*(algebra.expression_variables(value) for _, value in results))
            case _:
                pass
    return frozenset(found)


def exists_inside(expression: algebra.Expression) -> list[algebra.Exists]:
    """The EXISTS of an expression in order, without those nested in another EXISTS."""
    match expression:
        case algebra.Exists():
            return [expression]
        case algebra.Call(_, arguments):
            return [found for argument in arguments for found in exists_inside(argument)]
        case _:
            return []


def with_variables(value: Any, names: Iterator[Variable]) -> Any:
    """A copy of rdflib's expression with the next of `names` for each EXISTS, in the order of `algebra.Call`."""
    if isinstance(value, list):
        return [with_variables(item, names) for item in value]
    if not isinstance(value, CompValue):
        return value
    if value.name in ("Builtin_EXISTS", "Builtin_NOTEXISTS"):
        return next(names)
    children = {name: with_variables(child, names) for name, child in value.items()}
    if not isinstance(value, Expr):
        return CompValue(value.name, **children)
    copy = Expr(value.name, None, **children)
    function: Any = value._evalfn
    copy._evalfn = MethodType(getattr(function, "__func__", function), copy)
    return copy
