"""CEQL: a query language for complex events over typed tuples (CORE's language, and some more).

>>> import ceql
>>> query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price WITHIN 100 EVENTS")
>>> events = [{"type": "A", "price": 3}, {"type": "B", "price": 2}, {"type": "B", "price": 5}]
>>> [match.positions for match in query.run(events)]
[(0, 2)]

`compile` checks a query and gives a `Query`; its `run` takes files, frames, tables or dicts and gives lazy `Matches`;
its `open` gives a `Session` to push events to. `match` gives rows of matches, in a frame of the kind that came in. The
interface is that of `spaseq` (`spaseq.core.protocols`), errors included. `Stream` is the former name of `Session`, for
one release more.

Rooms, each of which imports only from those before it:

* `operators`: Operators and functions: tables, a row for each.
* `syntax`: Text to syntax tree and back.
* `expressions`: The values of expressions: on single values, on whole batches, and as generated code.
* `guards`: Conditions over several variables, decided as events are taken.
* `semantics`: Checks of a query: its names, its scopes, and its types against a schema.
* `rewrites`: Rewrites of formulas: functions from syntax tree to syntax tree, one a file, that change no answer.
* `lowering`: Syntax tree to pattern: the meaning of a query in terms of the core.
* `results`: The results of a query.
* `runtime`: A query, compiled and evaluated.
* `cli`: The `ceql` command.

`query` is the interface over all of them. Above it are `network`, queries that read the matches of others,
`builder`, queries as values of Python, and `containment`, the comparison of two queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaseq.core.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    LimitReached,
    OptionError,
    QueryError,
    QuerySemanticsError,
    QuerySyntaxError,
    SpaseqError,
    UnsupportedFeature,
)
from spaseq.core.lazy_names import loader
from spaseq.version import VERSION as __version__

if TYPE_CHECKING:
    from ceql.builder.clauses import PatternQuery
    from ceql.builder.patterns import Event, Pattern, adjacent, all_of, any_of, event, no, seq, steps
    from ceql.builder.reading import parse, pattern
    from ceql.builder.values import (
        Condition,
        Value,
        Variable,
        fn,
        group_start,
        key,
        lit,
        match_count,
        match_end,
        match_start,
        when,
    )
    from ceql.containment.compare import compare
    from ceql.network import Network
    from ceql.operators.own import register_function
    from ceql.query import Match, Matches, Query, Session, match
    from ceql.query import Session as Stream
    from ceql.semantics.schemas import Schema
    from spaseq.core.containment.result import Comparison
    from spaseq.core.engine import Settings
    from spaseq.core.protocols import Written

__all__ = [
    "BudgetExceeded",
    "Comparison",
    "Condition",
    "Event",
    "EventError",
    "InternalError",
    "LimitReached",
    "Match",
    "Matches",
    "Network",
    "OptionError",
    "Pattern",
    "PatternQuery",
    "Query",
    "QueryError",
    "QuerySemanticsError",
    "QuerySyntaxError",
    "Schema",
    "Session",
    "Settings",
    "SpaseqError",
    "Stream",
    "UnsupportedFeature",
    "Value",
    "Variable",
    "__version__",
    "adjacent",
    "all_of",
    "any_of",
    "compare",
    "compile",
    "event",
    "fn",
    "group_start",
    "key",
    "lit",
    "match",
    "match_count",
    "match_end",
    "match_start",
    "no",
    "parse",
    "pattern",
    "register_function",
    "seq",
    "steps",
    "when",
]


def compile(text: str | Written, *, source: str = "<query>", settings: Settings | None = None) -> Query:
    """Parse, check and compile a CEQL query.

    Args:
        text: the query, or a pattern of `event`, `seq` and the like, which stands for its text.
        source: the name that errors show for it.
        settings: budgets of the engine.

    Raises `QuerySyntaxError`, `QuerySemanticsError` or `UnsupportedFeature`, each with the place in the text.
    """
    from ceql.query import compile_query

    return compile_query(text, source=source, settings=settings)


__getattr__, __dir__ = loader(
    __name__,
    {
        "ceql.containment.compare": ("compare",),
        "ceql.network": ("Network",),
        "ceql.builder.clauses": ("PatternQuery",),
        "ceql.builder.patterns": (
            "Event",
            "Pattern",
            "adjacent",
            "all_of",
            "any_of",
            "event",
            "no",
            "seq",
            "steps",
        ),
        "ceql.builder.reading": ("parse", "pattern"),
        "ceql.builder.values": (
            "Condition",
            "Value",
            "Variable",
            "fn",
            "group_start",
            "key",
            "lit",
            "match_count",
            "match_end",
            "match_start",
            "when",
        ),
        "ceql.operators.own": ("register_function",),
        "ceql.query": ("Match", "Matches", "Query", "Session", "Stream", "match"),
        "ceql.semantics.schemas": ("Schema",),
        "spaseq.core.containment.result": ("Comparison",),
        "spaseq.core.engine": ("Settings",),
    },
)
