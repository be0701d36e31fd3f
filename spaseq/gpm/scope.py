"""Which variables of a GPM stand where another GPM's value cannot reach them."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.gpm import algebra
from spaseq.gpm.pattern import GraphPattern

__all__ = ["hidden_variables"]


def hidden_variables(pattern: GraphPattern) -> Iterator[tuple[str, frozenset[str]]]:
    """Pairs (what it is, variables it names and the GPM does not bind) for what is not a plain top-level FILTER.

    Those are FILTERs and BINDs inside nested groups, and EXISTS. In a nested FILTER such a variable could only be
    unbound, so the condition an error; inside EXISTS it would be a fresh variable, where a reader may expect the value
    another GPM gave it.
    """
    for node in (pattern.event.node, *(part.node for _, part in pattern.knowledge)):
        yield from _conditions(node, pattern)
        for inner in algebra.walk(node):
            yield from _expressions(inner, pattern)
    for condition in (*pattern.local, *pattern.correlated):
        yield from _exists(condition.expression, pattern)


def _conditions(node: algebra.Node, pattern: GraphPattern) -> Iterator[tuple[str, frozenset[str]]]:
    for kind, named, bound in algebra.condition_scopes(node):
        hidden = named - bound - pattern.binds
        if hidden:
            yield kind, hidden


def _expressions(node: algebra.Node, pattern: GraphPattern) -> Iterator[tuple[str, frozenset[str]]]:
    match node:
        case algebra.Filter(_, condition) | algebra.LeftJoin(_, _, condition):
            yield from _exists(condition, pattern)


def _exists(expression: algebra.Expression, pattern: GraphPattern) -> Iterator[tuple[str, frozenset[str]]]:
    match expression:
        case algebra.Exists(inner, _):
            hidden = algebra.visible(inner) - pattern.binds
            if hidden:
                yield "an EXISTS", hidden
            for _, named, bound in algebra.condition_scopes(inner):
                if named - bound - pattern.binds:
                    yield "a FILTER inside EXISTS", named - bound - pattern.binds
        case algebra.Call(_, arguments):
            for argument in arguments:
                yield from _exists(argument, pattern)
