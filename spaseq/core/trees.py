"""Walks over trees of both languages, formulas and patterns: the children of a node, and copies with others.

Nodes are frozen dataclasses with their children in the fields `child`, `left`, `right`, and `until`, which may be
None, or in a tuple `parts`. A function over a tree names the nodes to which it gives a meaning, and passes the others
by with these functions. `walk`, `fold` and `mapped` are not recursive, so that any depth can be walked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

N = TypeVar("N")
R = TypeVar("R")
_fields: dict[Any, tuple[str, ...]] = {}
"""The fields with the children of each kind of node, once it has been met."""


def _fields_of(node: object) -> tuple[str, ...]:
    kind: Any = type(node)
    if kind not in _fields:
        known = kind.__dataclass_fields__
        _fields[kind] = tuple(name for name in ("child", "left", "right", "until", "parts") if name in known)
    return _fields[kind]


def children(node: N) -> tuple[N, ...]:
    """The children of a node, from left to right; () of a leaf."""
    fields = _fields_of(node)
    if fields == ("parts",):
        return node.parts  # type: ignore[attr-defined]
    return tuple([child for name in fields if (child := getattr(node, name)) is not None])


def with_children(node: N, new: Iterable[N]) -> N:
    """The node with these children, as many as it has; the same object if they are the same objects."""
    found = tuple(new)
    if all([one is other for one, other in zip(children(node), found, strict=True)]):
        return node
    fields = [name for name in _fields_of(node) if getattr(node, name) is not None]
    changes = {"parts": found} if fields == ["parts"] else dict(zip(fields, found, strict=True))
    return dataclasses.replace(node, **changes)  # type: ignore[type-var]


def walk(node: N) -> Iterator[N]:
    """A node and all nodes below it, from left to right, each before its children."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(children(found))


def fold(node: N, combine: Callable[[N, list[R]], R], parts: Callable[[N], tuple[N, ...]] = children) -> R:
    """The result of `combine(node, results of its parts)`, from the leaves upwards and from left to right."""
    order, waiting = [], [node]
    while waiting:
        found = waiting.pop()
        below = parts(found)
        order.append((found, len(below)))
        waiting += below
    results: list[R] = []
    for found, count in reversed(order):
        first = len(results) - count
        results[first:] = [combine(found, results[first:])]
    return results[0]


def mapped(node: N, change: Callable[[N], N]) -> N:
    """The node with `change` applied to each node, after its children. Unchanged parts stay the same objects."""
    return fold(node, lambda part, new: change(with_children(part, new)))
