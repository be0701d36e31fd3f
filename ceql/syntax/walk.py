"""The parts of an expression, and copies of an expression with some of its parts replaced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard, TypeVar, cast

from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast

E = TypeVar("E", bound=ast.Expression)


def _children(node: ast.Expression) -> Iterator[ast.Expression]:
    if isinstance(node, ast.In):
        yield node.value
        return
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(value, ast.Expression):
            yield value
        elif isinstance(value, tuple):
            yield from value


def parts(node: ast.Expression) -> Iterator[ast.Expression]:
    """An expression and all in it, from left to right. Without the constants of an IN: there may be thousands."""
    yield node
    for child in _children(node):
        yield from parts(child)


def attributes_of(node: ast.Expression) -> Iterator[ast.Attribute]:
    """The attributes in an expression, from left to right."""
    return (part for part in parts(node) if isinstance(part, ast.Attribute))


def calls_of(node: ast.Expression) -> Iterator[ast.Call]:
    """The calls of functions in an expression, from left to right."""
    return (part for part in parts(node) if isinstance(part, ast.Call))


def aggregates_of(node: ast.Expression) -> Iterator[ast.Call]:
    """The aggregates over the events of a variable in an expression, from left to right."""
    return (call for call in calls_of(node) if is_aggregate(call))


def is_aggregate(node: ast.Expression) -> TypeGuard[ast.Call]:
    """True for the call of an aggregate. An unknown function is none."""
    return isinstance(node, ast.Call) and node.function in FUNCTIONS and FUNCTIONS[node.function].add is not None


def reads_earlier(node: ast.Expression) -> bool:
    """True if a condition reads an event that one of its variables took before the event at hand."""
    return any(isinstance(part, ast.Earlier) for part in parts(node))


def is_plain(node: ast.Expression) -> bool:
    """True if one event of each of its variables decides a condition: it has no aggregate and reads no earlier
    event."""
    return not reads_earlier(node) and not any(True for _ in aggregates_of(node))


def has_uncoded(node: ast.Expression) -> bool:
    """True if a condition has an aggregate or reads lists, for which kernels have no codes; or earlier events, which
    have codes of their own (`ceql.guards.rounds`)."""
    reads_lists = any(call.function == "CORR" for call in calls_of(node))
    return reads_lists or not is_plain(node)


def variables_of(node: ast.Expression) -> Iterator[str]:
    """The variables an expression names, as `v.attribute` or as `v` alone (`COUNT(v)`), from left to right; a variable
    comes once for each time it is named."""
    for part in parts(node):
        if isinstance(part, ast.Variable):
            yield part.name
        elif isinstance(part, ast.Attribute) and part.variable is not None:
            yield part.variable


def with_variables(node: E, change: Callable[[str | None], str | None]) -> E:
    """The expression with `change` applied to each variable that it names, as `v.attribute` or as `v` alone."""

    def rename(part: ast.Expression) -> ast.Expression | None:
        if isinstance(part, ast.Attribute):
            return dataclasses.replace(part, variable=change(part.variable))
        if isinstance(part, ast.Variable):
            return dataclasses.replace(part, name=change(part.name) or part.name)
        return None

    return replace(node, rename)


def replace(node: E, change: Callable[[ast.Expression], ast.Expression | None]) -> E:
    """The expression with every part replaced by `change(part)` unless that is None.

    From the top down: the parts of a replacement are not visited, nor the constants of an IN.
    """
    return cast(E, _replace(node, change))


def _replace(node: Any, change: Callable[[ast.Expression], ast.Expression | None]) -> Any:
    if isinstance(node, tuple):
        return tuple(_replace(part, change) for part in node)
    if not isinstance(node, ast.Expression):
        return node
    found = change(node)
    if found is not None:
        return found
    if isinstance(node, ast.In):
        return dataclasses.replace(node, value=_replace(node.value, change))
    changes = {f.name: _replace(getattr(node, f.name), change) for f in dataclasses.fields(node) if f.name != "span"}
    return dataclasses.replace(node, **changes)
