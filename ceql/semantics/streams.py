"""Variables of one stream: with `FROM S, T`, `S>R` holds the events of type R on S, also those that a plain `R` takes.

A plain `R` takes events of every stream. If the query names the variable `S>R`, `R` is read as `(S>R OR T>R)`, so that
each alternative defines the variable of its own stream.
"""

from __future__ import annotations

import dataclasses
import functools

from ceql.semantics.check import conditions, event_types
from ceql.semantics.filters import as_test, leaves
from ceql.syntax import ast
from spaseq.core.trees import mapped


def with_streams(query: ast.Query) -> ast.Query:
    """The query with a separate `R` for each stream if FILTER, SELECT or AFTER MATCH names an `S>R`; else the same
    object."""
    named = {item.variable for item in query.selection.items or ()}
    if query.after is not None and query.after.variable is not None:
        named.add(query.after.variable.text)
    for condition in conditions(query.where) if query.streams else ():
        named.update(*(leaf.variables for leaf in leaves(as_test(condition))))
    told = frozenset(
        atom.name
        for atom in event_types(query.where)
        if atom.stream is None and any(f"{stream.text}>{atom.name}" in named for stream in query.streams)
    )
    if not told:
        return query
    where = mapped(query.where, lambda node: _told_apart(node, told, query.streams))
    return dataclasses.replace(query, where=where)


def _told_apart(node: ast.Formula, types: frozenset[str], streams: tuple[ast.Name, ...]) -> ast.Formula:
    if not isinstance(node, ast.EventType) or node.stream is not None or node.name not in types:
        return node
    each: list[ast.Formula] = [dataclasses.replace(node, stream=stream) for stream in streams]
    return functools.reduce(lambda left, right: ast.Either(left, right, span=node.span), each)
