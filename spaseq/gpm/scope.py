"""The variables of a GPM's nested parts, which cannot have the value of another GPM."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.gpm import algebra
from spaseq.gpm.pattern import GraphPattern


def hidden_variables(pattern: GraphPattern) -> Iterator[tuple[str, frozenset[str]]]:
    """For each nested part that names variables which the GPM does not bind: its description, and these variables.

    Nested parts are FILTERs and BINDs inside nested groups, and EXISTS. In a nested FILTER such a variable would be
    unbound and the condition an error. Inside EXISTS it would be a fresh variable, while a reader may expect its value
    from another GPM.
    """
    for node in (pattern.event, *(part for _, part in pattern.knowledge)):
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
