"""A silence as one side of an OR: `A ; (NOT B FOR 5 SECONDS OR C) ; D` is
`((A ; NOT B FOR 5 SECONDS) OR (A ; C)) ; D`.

A silence takes no event. It is in the gap behind the part in front of the OR, or else in that before the part behind
it. So each side of the OR is a sequence of its own with that part, and the border of the first one has the silence. If
`->` follows, each of these sequences goes on by itself, as the gap behind them differs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ceql.semantics.scopes import as_one_event, fresh, size
from ceql.syntax import ast
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import Skip
from spaseq.core.trees import mapped


def with_silent_choices(node: ast.Formula, limit: int) -> ast.Formula:
    """The formula with each OR of silences and parts, beside `;` or `->`, as an OR of sequences.

    Raises `BudgetExceeded` of `rewrite_size` if copies of parts add more than `limit` nodes. O(limit).
    """
    copied = 0

    def copies(part: ast.Formula, count: int) -> Iterator[ast.Formula]:
        nonlocal copied
        copied += size(part) * (count - 1)
        if copied > limit:
            raise BudgetExceeded(
                "rewrite_size", limit, copied, "nodes of parts beside an OR with NOT … FOR, of which each side has one",
                "raise rewrite_size, or write fewer of them",
            )  # fmt: skip
        return (fresh(part) for _ in range(count))

    def spread(part: ast.Formula) -> ast.Formula:
        match part:
            case ast.Sequence(left, ast.Either() as choice, Skip.ANY | Skip.NEXT) if any(
                map(_is_silent, _leaves(choice))
            ):
                sides = _sides(choice)
                several = list(zip(copies(left, len(sides)), sides, strict=True))
            case ast.Sequence(ast.Either() as choice, right, Skip.ANY | Skip.NEXT) if any(
                _is_silent(side) or (part.skip is Skip.NEXT and _ends_silent(side)) for side in _leaves(choice)
            ):
                sides = _sides(choice)
                several = list(zip(sides, copies(right, len(sides)), strict=True))
            case _:
                return part
        found: list[ast.Formula] = [ast.Sequence(*both, part.skip, span=part.span) for both in several]
        return functools.reduce(lambda one, other: ast.Either(one, other, span=part.span), found)

    return mapped(node, spread)


def _is_silent(node: ast.Formula) -> bool:
    return isinstance(node, ast.Without) and node.duration is not None


def _ends_silent(node: ast.Formula) -> bool:
    return isinstance(node, ast.Sequence) and _is_silent(node.right)


def _leaves(node: ast.Formula) -> Iterator[ast.Formula]:
    if isinstance(node, ast.Either):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    else:
        yield node


def _sides(choice: ast.Either) -> list[ast.Formula]:
    """Each silence of an OR and each side that ends with one, then the OR of all others."""
    silent = [side for side in _leaves(choice) if _is_silent(side) or _ends_silent(side)]
    others = [side for side in _leaves(choice) if not any(side is one for one in silent)]
    if len(others) == 1:
        silent.append(as_one_event(others[0]))
    elif others:
        silent.append(functools.reduce(lambda one, other: ast.Either(one, other, span=choice.span), others))
    return silent
