"""Sequences as they are parsed: a NOT beside a part, and NOTs beside one another, in one form each."""

from __future__ import annotations

from ceql.syntax import ast
from spaseq.core.errors import Span
from spaseq.core.pattern import Skip
from spaseq.core.trees import children, fold


def then(left: ast.Formula, right: ast.Formula, skip: Skip, span: Span) -> ast.Sequence:
    """`left`, then `right`. `A ; NOT B ; NOT C` is `A ; NOT (B OR C)`, and `NOT B ; NOT C ; D` is `NOT (B OR C) ; D`.
    If A takes an event, `A ; (NOT B ; C)` is `A ; NOT B ; C`."""
    match left, right:
        case _, ast.Sequence(first, _, joined) if (
            joined is skip is not Skip.NONE and _begins_absent(first, skip) and not fold(left, _may_be_empty)
        ):
            absent, rest = _without_first(right, skip)
            return then(then(left, absent, skip, left.span.to(absent.span)), rest, skip, span)
        case ast.Sequence(first, ast.Without(one, None) as not_one, joined), ast.Without(two, None) if (
            joined is skip is not Skip.NONE
        ):
            both = ast.Either(one, two, span=one.span.to(two.span))
            return ast.Sequence(first, ast.Without(both, span=not_one.span.to(right.span)), skip, span=span)
        case ast.Sequence(ast.Without(one, None) as not_one, ast.Without(two, None) as not_two, joined), _ if (
            joined is skip is not Skip.NONE
        ):
            either = ast.Either(one, two, span=one.span.to(two.span))
            return ast.Sequence(ast.Without(either, span=not_one.span.to(not_two.span)), right, skip, span=span)
    return ast.Sequence(left, right, skip, span=span)


def _may_be_empty(node: ast.Formula, below: list[bool]) -> bool:
    """True if a formula may take no event; `below`: the same of its children."""
    match node:
        case ast.Either():
            return any(below)
        case ast.Repeat(_, low):
            return low == 0 or below[0]
        case ast.EventType() | ast.Without():
            return False
    return all(empty for part, empty in zip(children(node), below, strict=True) if not isinstance(part, ast.Without))


def _without_first(node: ast.Formula, skip: Skip) -> tuple[ast.Formula, ast.Formula]:
    """The NOT that a sequence joined by `skip` begins with, and the sequence without it."""
    spine: list[ast.Sequence] = []
    while isinstance(node, ast.Sequence) and node.skip is skip:
        spine.append(node)
        node = node.left
    rest = spine.pop().right
    while spine:
        part = spine.pop()
        rest = then(rest, part.right, skip, rest.span.to(part.right.span))
    return node, rest


def _begins_absent(node: ast.Formula, skip: Skip) -> bool:
    """True for a NOT, and for a sequence that begins with one, joined by `skip`."""
    while isinstance(node, ast.Sequence) and node.skip is skip:
        node = node.left
    return isinstance(node, ast.Without)
