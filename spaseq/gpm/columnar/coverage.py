"""The patterns that the columnar plan covers, and the triples of an event that a pattern can use.

The plan covers all group graph patterns of SPARQL but those with RAND, UUID, STRUUID or BNODE, whose values differ from
one evaluation to the next, in some places. These are patterns whose solutions it keeps, or which it evaluates once for
several rows: in EXISTS and GRAPH.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, SequencePath
from rdflib.term import URIRef

from spaseq.gpm import algebra
from spaseq.gpm.functions import FRESH
from spaseq.gpm.pattern import GraphPattern


def uncovered_pattern(pattern: GraphPattern) -> str | None:
    """The reason why the plan does not cover a GPM; None if it does."""
    root, local = pattern.event, [condition.expression for condition in pattern.local]
    inside = [node for condition in local for node in algebra.patterns_inside(condition)]
    inside += [node for inner in algebra.walk(root) if isinstance(inner, algebra.GraphNode) for node in [inner.child]]
    own = [expression for inner in algebra.walk(root) for expression in _expressions(inner)]
    inside += [node for expression in own for node in algebra.patterns_inside(expression)]
    if any(uncovered(node) for node in inside):
        return "a value that is another one each time, in EXISTS or GRAPH"
    return "BNODE of a text in several groups, or outside of BIND" if names_apart(root, local) else None


def names_apart(node: algebra.Node, local: Iterable[algebra.Expression] = ()) -> bool:
    """True if BNODE of a text may have to give one node in two places that the plan evaluates apart: in several groups,
    or outside of BIND and FILTER. `local`: FILTERs of the whole, which are apart from it."""
    links = (algebra.Extend, algebra.Filter)
    others = (e for inner in algebra.walk(node) if not isinstance(inner, links) for e in _expressions(inner))
    return len(named_nodes(node)) > 1 or any(map(_names_nodes, (*others, *local)))


def uncovered(node: algebra.Node) -> str | None:
    """The reason why solutions of a pattern cannot be kept, as those of knowledge are; None if they can."""
    for inner in algebra.walk(node):
        for expression in _expressions(inner):
            if unsteady(expression):
                what = "a BIND" if isinstance(inner, algebra.Extend) else "a condition"
                return f"{what} whose value is another one each time"
    return None


def named_nodes(node: algebra.Node) -> list[algebra.Node]:
    """The BINDs and FILTERs with BNODE of a text that have no other such above them in their group. These are the last
    of each run of BINDs and FILTERs over the same solutions."""
    found: list[algebra.Node] = []
    todo = [(node, False)]
    while todo:
        inner, is_inside = todo.pop()
        is_link = isinstance(inner, (algebra.Extend, algebra.Filter))
        names = is_link and any(map(_names_nodes, _expressions(inner)))
        if names and not is_inside:
            found.append(inner)
        below = (getattr(inner, part.name) for part in fields(inner))
        todo += [(child, is_link and (names or is_inside)) for child in below if isinstance(child, algebra.Node)]
    return found


def _names_nodes(expression: algebra.Expression) -> bool:
    match expression:
        case algebra.Call("BNODE", (_,)):
            return True
        case algebra.Call(_, arguments):
            return any(map(_names_nodes, arguments))
        case _:
            return False


def _expressions(value: object) -> Iterator[algebra.Expression]:
    """The expressions of a node itself."""
    match value:
        case algebra.Expression():
            yield value
        case tuple():
            for item in value:
                yield from _expressions(item)
        case algebra.BGP():
            pass
        case algebra.Node():
            for part in fields(value):
                if not isinstance(child := getattr(value, part.name), algebra.Node):
                    yield from _expressions(child)
        case _:
            pass


def unsteady(expression: algebra.Expression) -> bool:
    """True if the value of an expression may differ from one evaluation to the next; patterns in EXISTS are ignored."""
    match expression:
        case algebra.Call(name, arguments):
            return name in FRESH or any(map(unsteady, arguments))
        case _:
            return False


def counts(node: algebra.Node) -> bool:
    """True if the number of equal solutions matters: for LIMIT, OFFSET and aggregates, and for values that differ from
    one evaluation to the next."""
    return uncovered(node) is not None or any(
        isinstance(inner, (algebra.Sliced, algebra.Aggregated)) for inner in algebra.walk(node)
    )


def joins_alike(node: algebra.Node) -> bool:
    """True if a pattern inside EXISTS may be evaluated by itself and joined with the outer solutions, instead of
    substituting their terms for its variables (SPARQL 1.1 §18.6).

    Both give the same if every FILTER names only variables that its own group always binds, and if there is no
    OPTIONAL, MINUS, BIND or subquery.
    """
    match node:
        case algebra.BGP() | algebra.Values():
            return True
        case algebra.Join(left, right) | algebra.Union(left, right):
            return joins_alike(left) and joins_alike(right)
        case algebra.GraphNode(URIRef(), child):
            return joins_alike(child)
        case algebra.Filter(child, condition):
            own = algebra.expression_variables(condition) <= algebra.certain(child)
            return own and not algebra.has_exists(condition) and joins_alike(child)
        case _:
            return False


def read_by(*patterns: GraphPattern) -> frozenset[URIRef] | None:
    """The predicates whose triples in an event some GPM can use; None if one may use triples of any predicate."""
    inside = (c.expression for pattern in patterns for c in pattern.local)
    nodes = (*(pattern.event for pattern in patterns), *chain.from_iterable(map(algebra.patterns_inside, inside)))
    return _any_of(map(read_predicates, nodes))


def read_predicates(node: algebra.Node) -> frozenset[URIRef] | None:
    """The predicates whose triples in an event a pattern can use; None if it may use triples of any predicate. Patterns
    under GRAPH do not read events."""
    basic = (inner for inner in algebra.walk(node, into_graphs=False) if isinstance(inner, algebra.BGP))
    return _any_of(_path_predicates(predicate) for inner in basic for _, predicate, _ in inner.triples)


def _any_of(parts: Iterable[frozenset[URIRef] | None]) -> frozenset[URIRef] | None:
    """The union of the parts, None standing for everything."""
    found: frozenset[URIRef] = frozenset()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found


def _path_predicates(path: Any) -> frozenset[URIRef] | None:
    """The predicates that a path reads; None if it may read any, as negated sets and paths of length zero do."""
    match path:
        case URIRef():
            return frozenset({path})
        case InvPath(arg=arg):
            return _path_predicates(arg)
        case MulPath(path=inner, zero=False):
            return _path_predicates(inner)
        case SequencePath(args=args) | AlternativePath(args=args):
            return _any_of(map(_path_predicates, args))
        case _:
            return None
