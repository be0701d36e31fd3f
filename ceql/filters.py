"""The conditions of a FILTER on their way to a pattern: single ones under AND and OR, and their variables changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ceql import ast
from ceql.walk import with_variables
from spaseq.errors import Span

__all__ = ["All", "Any", "Leaf", "Test", "leaves", "merged", "only_variable", "owned", "renamed"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single condition, its attributes naming their variables."""

    condition: ast.Condition
    variables: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class Any:
    """`left OR right`, of filters."""

    left: Test
    right: Test


@dataclass(frozen=True, slots=True)
class All:
    """`left AND right`, of filters."""

    left: Test
    right: Test


Test = Leaf | Any | All


def leaves(test: Test) -> Iterator[Leaf]:
    """The single conditions, from left to right."""
    if isinstance(test, Leaf):
        yield test
    else:
        yield from leaves(test.left)
        yield from leaves(test.right)


def only_variable(test: Test) -> str | None:
    """The variable that all conditions are about, if it is one."""
    variables = frozenset[str]().union(*(leaf.variables for leaf in leaves(test)))
    return next(iter(variables)) if len(variables) == 1 else None


def merged(test: Test) -> ast.Condition:
    """As one condition; the same as the filters where they are about one variable that takes one event at most."""
    match test:
        case Leaf(condition, _, _):
            return condition
        case All(left, right):
            return ast.And(merged(left), merged(right))
        case Any(left, right):
            return ast.Or(merged(left), merged(right))


# Expressions, with the variables of attributes changed


def owned(node: ast.Condition, variable: str | None) -> ast.Condition:
    """With a variable: attributes that name none get it. Without: attributes lose theirs."""
    return with_variables(node, lambda own: (own or variable) if variable is not None else None)


def renamed(node: ast.Condition, marks: dict[str, str]) -> ast.Condition:
    """Variables by the names that `marks` gives them, where it does."""
    return with_variables(node, lambda own: None if own is None else marks.get(own, own))
