"""Going through expressions: every part of one, and one with its attributes changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

from ceql.syntax import ast

__all__ = ["CORR", "aggregates_of", "attributes_of", "calls_of", "parts", "replaced", "variables_of", "with_variables"]

CORR: Final = "CORR"
"""The function that is no aggregate: of two lists, each of one event."""
E = TypeVar("E", bound=ast.Expression)


def _children(node: ast.Expression) -> Iterator[ast.Expression]:
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if isinstance(value, ast.Expression):
            yield value
        elif isinstance(value, tuple):
            yield from value


def parts(node: ast.Expression) -> Iterator[ast.Expression]:
    """An expression and all expressions in it, from left to right."""
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
    return (call for call in calls_of(node) if call.function != CORR)


def variables_of(node: ast.Expression) -> Iterator[str]:
    """The variables an expression names, in attributes and by themselves."""
    for part in parts(node):
        if isinstance(part, ast.Variable):
            yield part.name
        elif isinstance(part, ast.Attribute) and part.variable is not None:
            yield part.variable


def with_variables(node: E, change: Callable[[str | None], str | None]) -> E:
    """The expression with `change` applied to the variable of each attribute, and to variables by themselves."""

    def renamed(part: ast.Expression) -> ast.Expression | None:
        if isinstance(part, ast.Attribute):
            return dataclasses.replace(part, variable=change(part.variable))
        if isinstance(part, ast.Variable):
            return dataclasses.replace(part, name=change(part.name) or part.name)
        return None

    return replaced(node, renamed)


def replaced(node: E, change: Callable[[ast.Expression], ast.Expression | None]) -> E:
    """The expression with `change` in place of every part it is given and is not None for; from the top down."""
    return cast(E, _replaced(node, change))


def _replaced(node: Any, change: Callable[[ast.Expression], ast.Expression | None]) -> Any:
    if isinstance(node, tuple):
        return tuple(_replaced(part, change) for part in node)
    if not isinstance(node, ast.Expression):
        return node
    found = change(node)
    if found is not None:
        return found
    changes = {f.name: _replaced(getattr(node, f.name), change) for f in dataclasses.fields(node) if f.name != "span"}
    return dataclasses.replace(node, **changes)
