"""Conditions on each round of a loop: FIRST and LAST inside a loop are of the events before the one at hand.

A condition that names an event, and reads FIRST(v.a) or LAST(v.a) in a FILTER inside a loop, is about that event: there
FIRST(v.a) is `v[0].a` and LAST(v.a) is `PREV(v.a)`. Everywhere else they are aggregates over the events of the
FILTER's formula, as AVG is (docs/semantics.md, CEQL).
"""

from __future__ import annotations

import dataclasses
from typing import Final

from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, attributes_of, is_aggregate, reads_earlier, replace
from spaseq.core.trees import children, mapped

_BACK: Final = {"FIRST": 0, "LAST": 1}


def with_rounds(query: ast.Query) -> ast.Query:
    """The query with FIRST and LAST in conditions on each round of a loop as events before; else the same object."""
    inside: dict[int, ast.Condition] = {}
    waiting = [(query.where, False)]
    while waiting:
        node, in_loop = waiting.pop()
        if in_loop and isinstance(node, ast.Filter):
            inside[id(node.condition)] = node.condition
        in_loop = in_loop or (isinstance(node, ast.Repeat) and node.high != 1)
        waiting += [(child, in_loop) for child in children(node) if not isinstance(child, ast.Without)]
    changed = {number: new for number, old in inside.items() if (new := _of_rounds(old)) is not old}
    if not changed:
        return query

    def change(node: ast.Formula) -> ast.Formula:
        if isinstance(node, ast.Filter) and id(node.condition) in changed:
            return dataclasses.replace(node, condition=changed[id(node.condition)])
        return node

    return dataclasses.replace(query, where=mapped(query.where, change))


def _of_rounds(node: ast.Condition) -> ast.Condition:
    """A condition inside a loop, each single condition in it by `as_earlier`; the same object if none changes."""
    match node:
        case ast.And(left, right) | ast.Or(left, right):
            one, two = _of_rounds(left), _of_rounds(right)
            return node if one is left and two is right else dataclasses.replace(node, left=one, right=two)
        case ast.Not(child):
            new = _of_rounds(child)
            return node if new is child else dataclasses.replace(node, child=new)
        case ast.Holds(_, ast.And() as inner):
            new = _of_rounds(inner)
            return node if new is inner else dataclasses.replace(node, condition=new)
    return as_earlier(node)


def as_earlier(node: ast.Condition) -> ast.Condition:
    """A single condition with `v[0].a` for FIRST(v.a) and `PREV(v.a)` for LAST(v.a), if it names an event and has no
    other aggregate; else the same object."""
    found = list(aggregates_of(node))
    if not found or any(call.function not in _BACK for call in found):
        return node
    rest = replace(node, lambda part: ast.Number(0) if is_aggregate(part) else None)
    return replace(node, _earlier) if reads_earlier(rest) or any(True for _ in attributes_of(rest)) else node


def _earlier(node: ast.Expression) -> ast.Expression | None:
    if not is_aggregate(node):
        return None
    back = _BACK[node.function]
    (argument,) = node.arguments
    return replace(
        argument, lambda part: ast.Earlier(part, back, span=part.span) if isinstance(part, ast.Attribute) else None
    )
