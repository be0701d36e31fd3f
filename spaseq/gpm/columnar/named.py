"""Rewrites GRAPH and EXISTS for the plan: constant names only, moved inwards as needed, and variables for operands.

SPARQL 1.1 §18.6 evaluates `GRAPH ?g { P }` on every named graph and binds ?g to its name. That is the union, over the
graphs, of a GRAPH with a constant name joined with a row of inline data. And `GRAPH <g> { P op Q }` is equivalent to
`GRAPH <g> { P } op GRAPH <g> { Q }`; this is used only inside EXISTS, since outer terms are substituted into P and Q.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from rdflib.term import URIRef, Variable

from spaseq.core.pattern import balance
from spaseq.gpm import algebra


def with_known_graphs(node: algebra.Node, names: Iterable[str]) -> algebra.Node:
    """`node` with each `GRAPH ?g` written out for the graphs `names`. Any other constant name has no solutions."""
    known = tuple(names)

    def change(inner: algebra.Node) -> algebra.Node:
        inner = algebra.rebuild(inner, change)
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
    return balance(algebra.Union, parts) if parts else algebra.Values(())


def inward(name: URIRef, node: algebra.Node) -> algebra.Node:
    """`GRAPH name { node }` with GRAPH around basic graph patterns only. A nested GRAPH keeps its own name."""
    match node:
        case algebra.BGP(triples):
            return algebra.GraphNode(name, node) if triples else node
        case algebra.GraphNode():
            return node
        case _:
            return algebra.rebuild(node, lambda inner: inward(name, inner))


def reads_knowledge(node: algebra.Node) -> bool:
    """True if there is a GRAPH in a pattern, outside of EXISTS."""
    match node:
        case algebra.GraphNode():
            return True
        case _:
            children = (getattr(node, part.name) for part in fields(node))
            return any(reads_knowledge(child) for child in children if isinstance(child, algebra.Node))


def with_variables(expression: algebra.Expression, names: Iterator[Variable]) -> algebra.Expression:
    """`expression` with the next of `names` for each of `exists_inside`."""
    match expression:
        case algebra.Exists():
            return algebra.Term(next(names))
        case algebra.Call(_, arguments):
            return replace(expression, arguments=tuple(with_variables(argument, names) for argument in arguments))
        case _:
            return expression
