"""Which patterns the columnar plan covers, and which triples of an event a pattern can use.

The plan works with sets, so it leaves alone what counts solutions (LIMIT, OFFSET and aggregates in a subquery), what
reads another graph than the event's, and what needs the outer solution's variables inside EXISTS.
"""

from __future__ import annotations

from typing import Any, Final

from rdflib.paths import AlternativePath, InvPath, MulPath, SequencePath
from rdflib.term import URIRef

from spaseq.errors import InternalError
from spaseq.gpm import algebra
from spaseq.gpm.pattern import GraphPattern

__all__ = ["read_predicates", "uncovered", "uncovered_condition", "uncovered_pattern", "unsteady"]

_UNSTEADY: Final = frozenset({"Builtin_RAND", "Builtin_UUID", "Builtin_STRUUID", "Builtin_BNODE"})


def uncovered_pattern(pattern: GraphPattern) -> str | None:
    """Why the plan does not cover a GPM; None where it does."""
    conditions = (uncovered_condition(c.expression) for c in pattern.local)
    return uncovered(pattern.event.node) or next((why for why in conditions if why), None)


def uncovered(node: algebra.Node) -> str | None:
    """Why the plan does not cover a pattern; None where it does."""
    match node:
        case algebra.BGP() | algebra.Values():
            return None
        case algebra.Join(left, right) | algebra.Union(left, right) | algebra.Minus(left, right):
            return uncovered(left) or uncovered(right)
        case algebra.LeftJoin(left, right, condition):
            return uncovered(left) or uncovered(right) or uncovered_condition(condition)
        case algebra.Filter(child, condition):
            return uncovered(child) or uncovered_condition(condition)
        case algebra.Extend(child, _, value):
            if unsteady(value):
                return "a BIND whose value is another one each time"
            if algebra.has_exists(value):
                return "EXISTS in a BIND"
            return uncovered(child)
        case algebra.Projected(child) | algebra.Distinct(child) | algebra.Ordered(child):
            return uncovered(child)
        case algebra.Sliced():
            return "LIMIT or OFFSET in a subquery"
        case algebra.Grouped() | algebra.Aggregated():
            return "aggregates in a subquery"
        case algebra.GraphNode():
            return "GRAPH inside another pattern"
        case _:
            raise InternalError(f"no rule for the plan of {type(node).__name__}")


def uncovered_condition(expression: algebra.Expression) -> str | None:
    """Why the plan does not cover a condition; None where it does."""
    match expression:
        case algebra.Exists(pattern):
            return _uncovered_inside(pattern)
        case algebra.Call(name, arguments):
            if unsteady(expression):
                return "a condition whose value is another one each time"
            logical = name in ("ConditionalAndExpression", "ConditionalOrExpression", "UnaryNot")
            if not logical and algebra.has_exists(expression):
                return "EXISTS as an operand"
            return next((why for why in map(uncovered_condition, arguments) if why), None)
        case _:
            return None


def _uncovered_inside(node: algebra.Node) -> str | None:
    """As `uncovered`, for a pattern inside EXISTS, into which the outer solution's variables reach.

    The plan joins instead: the same where no FILTER or BIND names a variable that its own group may leave unbound, and
    nothing is taken away or optional.
    """
    match node:
        case algebra.BGP() | algebra.Values():
            return None
        case algebra.Join(left, right) | algebra.Union(left, right):
            return _uncovered_inside(left) or _uncovered_inside(right)
        case algebra.Filter(child, condition):
            if not algebra.expression_variables(condition) <= algebra.certain(child):
                return "a FILTER inside EXISTS that names variables from outside"
            return _uncovered_inside(child) or uncovered_condition(condition)
        case _:
            return f"{_WORDS.get(type(node), 'a subquery')} inside EXISTS"


_WORDS: dict[type, str] = {
    algebra.LeftJoin: "OPTIONAL",
    algebra.Minus: "MINUS",
    algebra.Extend: "BIND",
    algebra.GraphNode: "GRAPH",
}


def unsteady(expression: algebra.Expression) -> bool:
    """Whether an expression may have another value each time it is asked."""
    match expression:
        case algebra.Call(name, arguments):
            return name in _UNSTEADY or any(map(unsteady, arguments))
        case _:
            return False


def read_predicates(node: algebra.Node) -> frozenset[URIRef] | None:
    """The predicates whose triples a pattern can use; None where it may use any."""
    found: frozenset[URIRef] = frozenset()
    for inner in algebra.walk(node):
        if isinstance(inner, algebra.BGP):
            for _, predicate, _ in inner.triples:
                read = _path_predicates(predicate)
                if read is None:
                    return None
                found |= read
    return found


def _path_predicates(path: Any) -> frozenset[URIRef] | None:
    """The predicates a path reads; None where it may read any, as negated sets and paths of no steps do."""
    match path:
        case URIRef():
            return frozenset({path})
        case InvPath(arg=arg):
            return _path_predicates(arg)
        case MulPath(path=inner, zero=False):
            return _path_predicates(inner)
        case SequencePath(args=args) | AlternativePath(args=args):
            found: frozenset[URIRef] = frozenset()
            for arg in args:
                some = _path_predicates(arg)
                if some is None:
                    return None
                found |= some
            return found
        case _:
            return None
