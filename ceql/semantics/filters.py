"""A FILTER as single conditions under AND and OR, and conditions with other names for their variables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ceql.syntax import ast
from ceql.syntax.walk import variables_of, with_variables
from spaseq.core.errors import Span
from spaseq.core.trees import fold, walk


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single condition; its attributes name their variables."""

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


def as_test(node: ast.Condition, negated: bool = False) -> Test:
    """A FILTER as single conditions under AND and OR; NOT is moved inward to the single conditions ([CORE] §2.2).

    `x[a AND b]` becomes `x[a] AND x[b]`; any other `x[…]` is a single condition.
    """
    match node:
        case ast.And(left, right) | ast.Or(left, right):
            first, second = as_test(left, negated), as_test(right, negated)
            return All(first, second) if isinstance(node, ast.And) != negated else Any(first, second)
        case ast.Not(child):
            return as_test(child, not negated)
        case ast.Holds(_, ast.And(left, right)) if not negated:
            return All(*(as_test(dataclasses.replace(node, condition=half)) for half in (left, right)))
        case ast.Holds(variable, condition):
            return _leaf(owned(condition, variable.text), frozenset((variable.text,)), negated, node.span)
    return _leaf(node, frozenset(), negated, node.span)


def _leaf(condition: ast.Condition, variables: frozenset[str], negated: bool, span: Span) -> Leaf:
    named = frozenset(variables_of(condition))
    return Leaf(ast.Not(condition, span=span) if negated else condition, variables | named, span)


def as_written(leaf: Leaf) -> ast.Condition:
    """A single condition in CEQL: `x.a > 3`, or `x[…]` if it has AND, OR or NOT inside."""
    condition, named = leaf.condition, frozenset(variables_of(leaf.condition))
    inner = condition.child if isinstance(condition, ast.Not) else condition
    if leaf.variables == named and not isinstance(inner, ast.And | ast.Or | ast.Not):
        return condition
    variable = min(leaf.variables - named or named)
    body = with_variables(condition, lambda own: None if own == variable else own)
    return ast.Holds(ast.Name(variable, span=leaf.span), body, span=leaf.span)


def leaves(test: Test) -> Iterator[Leaf]:
    """The single conditions, from left to right."""
    return (part for part in walk(test) if isinstance(part, Leaf))


def conjuncts(test: Test) -> list[Test]:
    """The parts of a chain of AND."""
    return [*conjuncts(test.left), *conjuncts(test.right)] if isinstance(test, All) else [test]


def only_variable(test: Test) -> str | None:
    """The variable of all conditions; None if they have several."""
    variables = frozenset[str]().union(*(leaf.variables for leaf in leaves(test)))
    return next(iter(variables)) if len(variables) == 1 else None


def merge(test: Test) -> ast.Condition:
    """`test` as one condition. That means the same only for one variable that takes at most one event."""
    return write(test, lambda leaf: leaf.condition)


def write(test: Test, of: Callable[[Leaf], ast.Condition] = as_written) -> ast.Condition:
    """`test` as the condition of a FILTER; `of` gives a single condition."""

    def join(part: Test, below: list[ast.Condition]) -> ast.Condition:
        if isinstance(part, Leaf):
            return of(part)
        return ast.And(*below) if isinstance(part, All) else ast.Or(*below)

    return fold(test, join)


# Expressions, with the variables of attributes changed


def owned(node: ast.Condition, variable: str | None) -> ast.Condition:
    """The condition with `variable` for attributes that name none; with None, no attribute names a variable."""
    return with_variables(node, lambda own: (own or variable) if variable is not None else None)


def rename(node: ast.Condition, marks: dict[str, str]) -> ast.Condition:
    """The condition with each variable in `marks` renamed to its value there."""
    return with_variables(node, lambda own: None if own is None else marks.get(own, own))
