"""The SPAseq language: text to syntax tree to checked query to pattern, and its runs.

`compile_query` gives a `Query`; its `run` gives lazy `Matches`, its `open` a `Session` that events are pushed into.
`parse` and `print_query` are inverse up to layout. The modules in order of the road: `scan`, `parse`, `ast`, `check`,
`lower`, `solve`, `run`, `query`.
"""

from __future__ import annotations

from spaseq.language.check import CheckedQuery, check
from spaseq.language.parse import parse
from spaseq.language.printer import print_query
from spaseq.language.query import Query, compile_query
from spaseq.language.run import Match, Matches, Session

__all__ = ["CheckedQuery", "Match", "Matches", "Query", "Session", "check", "compile_query", "parse", "print_query"]
