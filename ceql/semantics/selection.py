"""The columns that SELECT computes: their names, and what the bare names in them, and in ORDER BY, stand for.

A bare name is an attribute of PARTITION BY, which all events of a match share, or `MATCH_START` or `MATCH_END`, the
times of the match. With `NOT … FOR EVERY` it may also be `SILENCE`, the number of the silence behind it, and with
GROUP BY 1 HOUR `GROUP_START`. In ORDER BY it may also be the name that AS gives a column. A list of bare names that are
all variables is a list of variables.
"""

from __future__ import annotations

import dataclasses

from ceql.operators.functions import FUNCTIONS
from ceql.semantics.scopes import defined_names
from ceql.syntax import ast
from ceql.syntax.ast import GROUP_START, MATCH_TIMES, SILENCE
from ceql.syntax.printer import print_expression
from ceql.syntax.walk import replace, variables_of
from spaseq.core.trees import walk


def with_columns(query: ast.Query) -> ast.Query:
    """The query with each bare name in SELECT and ORDER BY read as what it stands for; the same object if there is
    none."""
    selection, known = query.selection, bare_names(query)
    variables, own = defined_names(query.where), match_names(query)

    def stands_for(name: str) -> str | None:
        upper = name.upper()
        return name if name in known else upper if upper in own and name not in variables else None

    columns = selection.columns
    bare = [item.variable for item in selection.items or () if not item.attributes]
    if any(name not in variables and stands_for(name) for name in bare) and len(bare) == len(selection.items or ()):
        columns = tuple(
            ast.Column(ast.Attribute(item.variable, span=item.span), span=item.span) for item in selection.items or ()
        )

    def read(part: ast.Expression) -> ast.Expression | None:
        match part:
            case ast.Call(name, (ast.Variable(argument),)) if _is_of_events(name) and argument in variables:
                return part
            case ast.Variable(name) | ast.Attribute(name, None):
                meant = stands_for(name)
                return None if meant is None else ast.Attribute(meant, span=part.span)
        return None

    read_columns = tuple(dataclasses.replace(c, expression=replace(c.expression, read)) for c in columns)
    titles = {c.name.text: c.expression for c in read_columns if c.name is not None}

    def read_key(part: ast.Expression) -> ast.Expression | None:
        titled = titles.get(part.name) if isinstance(part, ast.Attribute) and part.variable is None else None
        return read(part) if titled is None else titled

    order = query.order
    if order is not None:
        keys = tuple(dataclasses.replace(key, expression=replace(key.expression, read_key)) for key in order.keys)
        query = dataclasses.replace(query, order=dataclasses.replace(order, keys=keys))
    if not read_columns:
        return query
    items = None if columns is not selection.columns else selection.items
    return dataclasses.replace(query, selection=dataclasses.replace(selection, items=items, columns=read_columns))


def _is_of_events(name: str) -> bool:
    return name in FUNCTIONS and "event" in FUNCTIONS[name].takes


def bare_names(query: ast.Query) -> frozenset[str]:
    """The attributes of PARTITION BY."""
    return frozenset(name.text for bracket in query.partition for name in bracket)


def match_names(query: ast.Query) -> tuple[str, ...]:
    """The bare names that stand for something of the match, or the group, itself."""
    timed = query.grouping is not None and query.grouping.length is not None
    repeats = any(isinstance(node, ast.Without) and node.every for node in walk(query.where))
    return (*MATCH_TIMES, *((GROUP_START,) if timed else ()), *((SILENCE,) if repeats else ()))


def column_name(column: ast.Column) -> str:
    """The name of a column: that of its AS, else that of the attribute that it is, else its text."""
    if column.name is not None:
        return column.name.text
    match column.expression:
        case ast.Attribute(name) | ast.Earlier(ast.Attribute(name)):
            return name
    return print_expression(column.expression)


def with_whole_rows(query: ast.Query, partition: tuple[tuple[str, ...], ...]) -> ast.Query:
    """The query with rows that stand for themselves. They have the keys of `partition`, then the columns of SELECT, or
    the attributes that it lists, as lists `v.attribute`. The times of the match come last: `match_start`, `match_end`.
    With GROUP BY a row has the keys and the times that its group has: `group_start` if that is a stretch of time, and
    `match_end`.

    A key or a time is left out if a column of SELECT has its name.
    """
    written = query.selection.columns or tuple(
        ast.Column(
            ast.Call("COLLECT", (ast.Attribute(name.text, item.variable),)), ast.Name(f"{item.variable}.{name.text}")
        )
        for item in query.selection.items or ()
        for name in item.attributes
    )
    taken = {column_name(column).casefold() for column in written}
    shared, known = _of_groups(query, partition)
    keys = [ast.Column(ast.Attribute(bracket[0])) for bracket in shared if bracket[0].casefold() not in taken]
    times = [ast.Column(ast.Attribute(name), ast.Name(name.lower())) for name in known if name.casefold() not in taken]
    brackets = tuple(tuple(map(ast.Name, bracket)) for bracket in partition)
    selection = dataclasses.replace(query.selection, items=None, columns=(*keys, *written, *times))
    return dataclasses.replace(query, partition=brackets, selection=selection)


def _of_groups(
    query: ast.Query, partition: tuple[tuple[str, ...], ...]
) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """The brackets whose keys all matches of a row share, and the times that a row has."""
    grouping, (_, end) = query.grouping, MATCH_TIMES
    if grouping is None:
        return partition, MATCH_TIMES
    if grouping.event:
        return partition, (end,)
    keys = tuple(tuple(name.text for name in bracket) for bracket in query.partition) if grouping.key else ()
    return keys, (end,) if grouping.length is None else (GROUP_START, end)


def read_variables(query: ast.Query) -> tuple[str, ...]:
    """The variables that the columns of SELECT read, and the keys of ORDER BY."""
    return tuple(dict.fromkeys(name for expression in query.expressions for name in variables_of(expression)))
