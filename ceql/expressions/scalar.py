"""Expressions as closures, for guards, which read a few events at a time.

They have the meaning of `ceql.expressions.vectorized`; a property test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ceql.expressions import values
from ceql.expressions.members import members
from ceql.syntax import ast
from spaseq.core.errors import InternalError

__all__ = ["compile_condition", "compile_value"]

E = TypeVar("E")
Value = Callable[[E], Any]
Truth = Callable[[E], bool | None]
Lookup = Callable[[ast.Attribute], Value[E]]


def compile_condition(node: ast.Condition, lookup: Lookup[E]) -> Truth[E]:
    """A function from an environment to True, False or None (unknown).

    `lookup` gives for each attribute the function that reads its value from an environment. The function raises
    `EventError` where kinds of values do not go together.
    """
    match node:
        case ast.And(left, right):
            return _both(compile_condition(left, lookup), compile_condition(right, lookup))
        case ast.Or(left, right):
            return _either(compile_condition(left, lookup), compile_condition(right, lookup))
        case ast.Not(child):
            return _inverted(compile_condition(child, lookup))
        case ast.Compare(symbol, left, right):
            return _compared(symbol, compile_value(left, lookup), compile_value(right, lookup))
        case ast.Like(value, pattern):
            read = compile_value(value, lookup)
            return lambda env: values.like(read(env), pattern)
        case ast.In(value):
            read, has = compile_value(value, lookup), members(node).has
            return lambda env: has(read(env))
        case ast.InRange(value, low, high):
            return _in_range(value, low, high, lookup)
    raise InternalError(f"no evaluation of {type(node).__name__}")


def _compared(symbol: str, left: Value[E], right: Value[E]) -> Truth[E]:
    return lambda env: values.compare(symbol, left(env), right(env))


def _inverted(child: Truth[E]) -> Truth[E]:
    def inverted(env: E) -> bool | None:
        truth = child(env)
        return None if truth is None else not truth

    return inverted


def _both(left: Truth[E], right: Truth[E]) -> Truth[E]:
    def both(env: E) -> bool | None:
        first, second = left(env), right(env)
        if first is False or second is False:
            return False
        return None if first is None or second is None else True

    return both


def _either(left: Truth[E], right: Truth[E]) -> Truth[E]:
    def either(env: E) -> bool | None:
        first, second = left(env), right(env)
        if first is True or second is True:
            return True
        return None if first is None or second is None else False

    return either


def _in_range(
    value: ast.Expression, low: ast.Expression | None, high: ast.Expression | None, lookup: Lookup[E]
) -> Truth[E]:
    read = compile_value(value, lookup)
    bounds = [_compared(s, read, compile_value(b, lookup)) for s, b in ((">=", low), ("<=", high)) if b is not None]
    return bounds[0] if len(bounds) == 1 else _both(bounds[0], bounds[1])


def compile_value(node: ast.Expression, lookup: Lookup[E]) -> Value[E]:
    """A function from an environment to the value of an expression; `lookup` and errors as in `compile_condition`."""
    match node:
        case ast.Number(value) | ast.Text(value) | ast.Truth(value):
            return lambda env: value
        case ast.Attribute():
            return lookup(node)
        case ast.Negate(child):
            inner = compile_value(child, lookup)
            return lambda env: values.negate(inner(env))
        case ast.Arithmetic(symbol, left, right):
            first, second = compile_value(left, lookup), compile_value(right, lookup)
            return lambda env: values.compute(symbol, first(env), second(env))
        case ast.Call("CORR", (left, right)):
            one, two = compile_value(left, lookup), compile_value(right, lookup)
            return lambda env: values.correlation(one(env), two(env))
    raise InternalError(f"no evaluation of {type(node).__name__}")
