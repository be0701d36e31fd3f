"""Expressions as closures, for guards, which read a few events at a time.

They have the meaning of `ceql.expressions.vectorized`; a property test compares the two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from ceql.expressions.members import members
from ceql.operators import values
from ceql.operators.arithmetic import ARITHMETIC, negate
from ceql.operators.functions import FUNCTIONS, Function
from ceql.syntax import ast
from spaseq.core.errors import InternalError
from spaseq.core.events import Duration

E = TypeVar("E")
Value = Callable[[E], Any]
Truth = Callable[[E], bool | None]
Lookup = Callable[[ast.Attribute], Value[E]]


def compile_condition(node: ast.Condition, lookup: Lookup[E]) -> Truth[E]:
    """A function from an environment to True, False or None (unknown).

    `lookup` gives for each attribute the function that reads its value from an environment. The function raises
    `EventError` if kinds of values do not go together.
    """
    match node:
        case ast.And(left, right) | ast.Or(left, right):
            return _join(isinstance(node, ast.Or), compile_condition(left, lookup), compile_condition(right, lookup))
        case ast.Not(child):
            return _invert(compile_condition(child, lookup))
        case ast.Compare(symbol, left, right):
            return _compare(symbol, compile_value(left, lookup), compile_value(right, lookup))
        case ast.Like(value, pattern):
            read = compile_value(value, lookup)
            return lambda env: values.like(read(env), pattern)
        case ast.IsNull(value):
            read = compile_value(value, lookup)
            return lambda env: read(env) is None
        case ast.In(value):
            read, has = compile_value(value, lookup), members(node).has
            return lambda env: has(read(env))
        case ast.InRange(value):
            read = compile_value(value, lookup)
            return functools.reduce(
                functools.partial(_join, False),
                [_compare(symbol, read, compile_value(bound, lookup)) for symbol, bound in node.bounds],
            )
    raise InternalError(f"no evaluation of {type(node).__name__}")


def _compare(symbol: str, left: Value[E], right: Value[E]) -> Truth[E]:
    return lambda env: values.compare(symbol, left(env), right(env))


def _invert(child: Truth[E]) -> Truth[E]:
    def invert(env: E) -> bool | None:
        truth = child(env)
        return None if truth is None else not truth

    return invert


def _join(settles: bool, left: Truth[E], right: Truth[E]) -> Truth[E]:
    """AND and OR; `settles` is the truth of one side that decides the whole: False for AND, True for OR."""

    def join(env: E) -> bool | None:
        first, second = left(env), right(env)
        if first is settles or second is settles:
            return settles
        return None if first is None or second is None else not settles

    return join


def compile_value(node: ast.Expression, lookup: Lookup[E]) -> Value[E]:
    """A function from an environment to the value of an expression; `lookup` and errors as in `compile_condition`."""
    match node:
        case ast.Number(value) | ast.Text(value) | ast.Truth(value):
            return lambda env: value
        case ast.Null():
            return lambda env: None
        case ast.Duration(nanoseconds):
            span = Duration(nanoseconds)
            return lambda env: span
        case ast.Attribute():
            return lookup(node)
        case ast.Negate(child):
            inner = compile_value(child, lookup)
            return lambda env: negate(inner(env))
        case ast.Arithmetic(symbol, left, right):
            first, second = compile_value(left, lookup), compile_value(right, lookup)
            compute = ARITHMETIC[symbol].of_values
            return lambda env: compute(first(env), second(env))
        case ast.Case():
            return _case(node, lookup)
        case ast.Call(name, arguments):
            return _call(FUNCTIONS[name], [compile_value(a, lookup) for a in arguments])
    raise InternalError(f"no evaluation of {type(node).__name__}")


def _call(function: Function, reads: list[Value[E]]) -> Value[E]:
    """Values of the right classes go to `work` at once; NULL and wrong kinds are left to `of_values`."""
    # PERF: ABS(v) takes 0.2 us; 1.1 us if `of_values` looks at each value.
    work, of_values = function.work, function.of_values
    classes = [function.classes(place) for place in range(len(reads))]

    def several(env: E) -> Any:
        values = [read(env) for read in reads]
        for value, right in zip(values, classes, strict=True):
            if value.__class__ not in right:
                return of_values(*values)
        return work(*values)

    if len(reads) > 1:
        return several
    (read,), (right,) = reads, classes

    def one(env: E) -> Any:
        value = read(env)
        return work(value) if value.__class__ in right else of_values(value)

    return one


def _case(node: ast.Case, lookup: Lookup[E]) -> Value[E]:
    """Conditions and results are evaluated up to the first condition that is true: others may be of wrong kinds."""
    branches = [
        (compile_condition(condition, lookup), compile_value(result, lookup))
        for condition, result in zip(node.conditions, node.results, strict=True)
    ]
    otherwise: Value[E] = (lambda env: None) if node.otherwise is None else compile_value(node.otherwise, lookup)

    def choose(env: E) -> Any:
        for test, result in branches:
            if test(env) is True:
                return result(env)
        return otherwise(env)

    return choose
