"""Going through expressions: every part of one, and one with its attributes changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ceql import ast

__all__ = ["attributes_of", "parts", "with_variables"]

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


def with_variables(node: E, change: Callable[[str | None], str | None]) -> E:
    """The expression with `change` applied to the variable of each attribute."""
    return cast(E, _changed(node, change))


def _changed(node: Any, change: Callable[[str | None], str | None]) -> Any:
    if isinstance(node, ast.Attribute):
        return dataclasses.replace(node, variable=change(node.variable))
    if isinstance(node, tuple):
        return tuple(_changed(part, change) for part in node)
    if not isinstance(node, ast.Expression):
        return node
    changes = {f.name: _changed(getattr(node, f.name), change) for f in dataclasses.fields(node) if f.name != "span"}
    return dataclasses.replace(node, **changes)
