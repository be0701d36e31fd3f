"""CEQL: a query language for complex events over typed tuples (CORE's language, and some more).

>>> import ceql
>>> query = ceql.compile("SELECT * WHERE A AS x ; B AS y FILTER y.price > x.price WITHIN 100 EVENTS")
>>> events = [{"type": "A", "price": 3}, {"type": "B", "price": 2}, {"type": "B", "price": 5}]
>>> [match.positions for match in query.run(events)]
[(0, 2)]

`compile` checks a query and gives a `Query`; its `run` takes files, frames, tables or dicts and gives lazy `Matches`;
its `open` gives a `Stream` to push events to. Errors are those of `spaseq.errors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ceql.query import Match, Matches, Query, Stream
    from spaseq.engine import Settings

__all__ = ["Match", "Matches", "Query", "Stream", "compile"]


def compile(text: str, *, source: str = "<query>", settings: Settings | None = None) -> Query:
    """Parse, check and compile a CEQL query.

    Args:
        text: the query.
        source: the name that errors show for it.
        settings: budgets of the engine.

    Raises `QuerySyntaxError`, `QuerySemanticsError` or `UnsupportedFeature`, each with the place in the text.
    """
    from ceql.query import compile_query

    return compile_query(text, source=source, settings=settings)


def __getattr__(name: str) -> Any:
    """The classes, loaded when first asked for: the command is there at once, and can be interrupted from then on."""
    if name in __all__:
        import ceql.query

        return getattr(ceql.query, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
