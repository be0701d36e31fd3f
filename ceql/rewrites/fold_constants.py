"""Computes the constant parts of conditions: `x.v > 1 + 2` is `x.v > 3`, and `x[1 < 2]` is left out."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

from ceql.expressions.scalar import compile_condition
from ceql.operators.arithmetic import ARITHMETIC, negate
from ceql.rewrites.never import NEVER
from ceql.semantics.filters import Leaf, as_written
from ceql.semantics.scopes import rebuild, without_border
from ceql.syntax import ast
from ceql.syntax.walk import attributes_of, calls_of, replace
from spaseq.core.errors import EventError, InternalError


def fold_constants(formula: ast.Formula) -> ast.Formula:
    """The formula with constant parts of its conditions computed.

    A condition that always holds is left out; one that never holds stays, as it is satisfied only while its variable is
    empty. Expressions that are NULL (1 / 0) stay, as the literal would lose their kind; so do those of the wrong kinds
    ('a' < 1), which the check of types reports. A condition that is always NULL becomes `x[0 = 1]`.
    O(size of the formula).
    """
    bordered = without_border(formula)
    rest = bordered.formula
    found = rebuild(rest, lambda leaf, child, scopes: _fold(leaf))
    if found is None:
        raise InternalError("folding constants left nothing of a formula")
    return formula if found is rest else bordered.around(found)


def _fold(leaf: Leaf) -> ast.Condition | None:
    computed = _compute(leaf.condition)
    condition = _simplify(computed)
    if condition is True:
        return None
    if condition is False:
        same = computed == leaf.condition
        return leaf.condition if same else as_written(dataclasses.replace(leaf, condition=computed))
    if condition is None:
        if len(leaf.variables) != 1:
            return leaf.condition
        (variable,) = leaf.variables
        return ast.Holds(ast.Name(variable, span=leaf.span), NEVER, span=leaf.span)
    if condition == leaf.condition:
        return leaf.condition
    return as_written(dataclasses.replace(leaf, condition=condition))


def _compute(node: ast.Condition) -> ast.Condition:
    """The condition with its constant values computed, from the inside outwards."""
    return replace(node, _value)


def _value(node: ast.Expression) -> ast.Expression | None:
    match node:
        case ast.Arithmetic(symbol, left, right):
            one, two = replace(left, _value), replace(right, _value)
            if isinstance(one, ast.Number) and isinstance(two, ast.Number):
                found = _finite(ARITHMETIC[symbol].of_values(one.value, two.value))
                if found is not None:
                    return ast.Number(found, span=node.span)
            return dataclasses.replace(node, left=one, right=two)
        case ast.Negate(child):
            inner = replace(child, _value)
            if isinstance(inner, ast.Number):
                found = _finite(negate(inner.value))
                if found is not None:
                    return ast.Number(found, span=node.span)
            return dataclasses.replace(node, child=inner)
    return None


def _finite(number: float | None) -> int | float | None:
    return number if number is not None and math.isfinite(number) else None


def _simplify(node: ast.Condition) -> ast.Condition | bool | None:
    """The condition simplified, or its truth if that is constant: True, False or None (unknown), in Kleene's logic."""
    match node:
        case ast.Not(child):
            inner = _simplify(child)
            return dataclasses.replace(node, child=inner) if isinstance(inner, ast.Condition) else _not(inner)
        case ast.And(left, right) | ast.Or(left, right):
            return _join(node, _simplify(left), _simplify(right), isinstance(node, ast.Or))
    if any(True for _ in attributes_of(node)) or any(True for _ in calls_of(node)):
        return node
    try:
        truth: Callable[[None], bool | None] = compile_condition(node, _no_attribute)
        return truth(None)
    except EventError:
        return node


def _no_attribute(attribute: ast.Attribute) -> Callable[[None], object]:
    raise InternalError(f"{attribute.name} in what is constant")


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _join(
    node: ast.And | ast.Or, left: ast.Condition | bool | None, right: ast.Condition | bool | None, settles: bool
) -> ast.Condition | bool | None:
    """`left AND right` or `left OR right`. `settles`: the truth value of one side that decides the whole, False for AND
    and True for OR."""
    if left is settles or right is settles:
        return settles
    if left is (not settles):
        return right
    if right is (not settles):
        return left
    if left is None and right is None:
        return None
    one = left if isinstance(left, ast.Condition) else node.left
    two = right if isinstance(right, ast.Condition) else node.right
    return dataclasses.replace(node, left=one, right=two)
