"""Sequences as they are parsed: a NOT beside a part, and NOTs beside one another, in one form each."""

from __future__ import annotations

from ceql.syntax import ast
from spaseq.core.errors import Span
from spaseq.core.pattern import Skip
from spaseq.core.trees import children, fold


def then(left: ast.Formula, right: ast.Formula, skip: Skip, span: Span) -> ast.Sequence:
    """`left`, then `right`. `A ; NOT B ; NOT C` is `A ; NOT (B OR C)`, and `NOT B ; NOT C ; D` is `NOT (B OR C) ; D`.
    With times, `NOT B FOR 5 SECONDS ; NOT C FOR 9 SECONDS ; D` keeps both. If A takes an event, `A ; (NOT B ; C)` is
    `A ; NOT B ; C`."""
    match left, right:
        case _, ast.Sequence(first, _, joined) if (
            joined is skip is not Skip.NONE
            and _begins_absent(first, skip)
            and not fold(left, _may_be_empty)
            and not (_is_absent(left, skip) and (_has_time(left) or _has_time(right)))
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
        case ast.Sequence(some, ast.Without() as last, joined), _ if (
            joined is skip is not Skip.NONE and not isinstance(right, ast.Without) and _is_absent(some, skip)
        ):
            return then(some, then(last, right, skip, last.span.to(right.span)), skip, span)
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


def _is_absent(node: ast.Formula, skip: Skip) -> bool:
    """True for a NOT, and for a sequence of NOTs alone, joined by `skip`."""
    while isinstance(node, ast.Sequence) and node.skip is skip and isinstance(node.right, ast.Without):
        node = node.left
    return isinstance(node, ast.Without)


def _has_time(node: ast.Formula) -> bool:
    """True if the NOT that a sequence begins with has a time of its own, or the one that it ends with."""
    last = node.right if isinstance(node, ast.Sequence) else node
    while isinstance(node, ast.Sequence):
        node = node.left
    return any(isinstance(end, ast.Without) and end.duration is not None for end in (node, last))


def _begins_absent(node: ast.Formula, skip: Skip) -> bool:
    """True for a NOT, and for a sequence that begins with one, joined by `skip`."""
    while isinstance(node, ast.Sequence) and node.skip is skip:
        node = node.left
    return isinstance(node, ast.Without)
