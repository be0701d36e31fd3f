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

from ceql.query import Match, Matches, Query, Stream
from ceql.query import compile_query as compile

__all__ = ["Match", "Matches", "Query", "Stream", "compile"]
