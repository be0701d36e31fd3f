"""GROUP BY: a row for each event at which matches end, each key or each hour, of aggregates over all of these matches.

Without GROUP BY, an aggregate is over the events that a variable took in one match; with it, over those in all matches
of the group. So SELECT may have aggregates, and what a group has: its key, GROUP_START, and MATCH_END of its last
match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ceql.syntax import ast
from ceql.syntax.ast import GROUP_START, MATCH_TIMES
from ceql.syntax.walk import is_aggregate, parts, replace
from spaseq.core.errors import QuerySemanticsError, Span

OVER_MATCHES: Final = ("COUNT", "SUM", "AVG", "MIN", "MAX")
"""The aggregates over all matches, which can be had without a list of them."""
EXTREMES_OF: Final = ("number", "time", "duration")
"""The kinds of values that MIN and MAX over all matches are of."""
EXTREMES_HINT: Final = "with GROUP BY, MIN and MAX are of numbers, times and durations"
Problem = Callable[[str, Span, str], QuerySemanticsError]


def check_grouping(query: ast.Query, error: Problem) -> None:
    """Raises the error of a SELECT that does not go with the GROUP BY of the query, or the lack of one."""
    columns = query.selection.columns
    if query.grouping is None:
        for part in (part for column in columns for part in parts(column.expression)):
            if isinstance(part, ast.EveryMatch):
                hint = "GROUP BY EVENT behind the formula gives a row for each event at which matches end"
                raise error("COUNT(*) counts the matches of a group, and the query has no GROUP BY", part.span, hint)
        return
    span = query.grouping.span
    if not columns:
        hint = "SELECT COUNT(*) AS matches, SUM(x.price) AS total … GROUP BY EVENT"
        raise error("GROUP BY goes with a SELECT that computes", span, hint)
    if query.order is not None:
        hint = "sort the table of rows: to_pandas(), DuckDB"
        raise error("ORDER BY sorts matches, and GROUP BY lists none", query.order.span, hint)
    if query.limit is not None:
        hint = "a row is of all matches that end at an event; to_arrow().slice(0, 5) has the first rows"
        raise error("LIMIT counts matches, and GROUP BY lists none", query.limit.span, hint)
    _check_groups(query, query.grouping, error)
    for column in columns:
        _check_column(column.expression, query.grouping, error)


def _check_groups(query: ast.Query, grouping: ast.Grouping, error: Problem) -> None:
    if grouping.window:
        hint = "GROUP BY EVENT is of the window of each event, GROUP BY 1 HOUR of each hour"
        raise error("a window of WITHIN begins at each event, so a match lies in several", grouping.span, hint)
    if grouping.event and (grouping.key or grouping.length is not None):
        hint = "GROUP BY EVENT alone; an attribute of PARTITION BY and MATCH_END may be columns"
        raise error("an event has one key and one time", grouping.span, hint)
    if grouping.key and not query.partition:
        hint = "PARTITION BY [user] … GROUP BY KEY has a row for each user"
        raise error("GROUP BY KEY without PARTITION BY", grouping.span, hint)


def _check_column(top: ast.Expression, grouping: ast.Grouping, error: Problem) -> None:
    for call in (part for part in parts(top) if is_aggregate(part)):
        if call.function not in OVER_MATCHES:
            name = call.function.removesuffix(" DISTINCT")
            said = f"{name}(DISTINCT …)" if name != call.function else name
            names = ", ".join(OVER_MATCHES)
            raise error(f"{said} cannot be had of all matches without a list of them", call.span,
                        f"with GROUP BY the aggregates are {names}")  # fmt: skip
    for part in parts(replace(top, lambda part: ast.Null() if is_aggregate(part) else None)):
        match part:
            case ast.Attribute(name, None) if name == "MATCH_START":
                hint = "MATCH_END is the time of the event at which all of them end, or the last one"
                raise error("the matches of a group start at several events", part.span, hint)
            case ast.Attribute(name, None) if not (
                grouping.event or grouping.key or name in (*MATCH_TIMES, GROUP_START)
            ):
                hint = "GROUP BY KEY, 1 HOUR has a row for each key and hour"
                raise error(f"{name} of which match?", part.span, hint)
            case ast.Attribute(name, str() as variable):
                hint = f"write an aggregate: MIN({variable}.{name}), SUM({variable}.{name})"
                raise error(f"{variable}.{name} of which match?", part.span, hint)
            case ast.Earlier(ast.Attribute(name, str() as variable)):
                raise error(f"{variable}.{name} of which match?", part.span, "with GROUP BY, write an aggregate")
