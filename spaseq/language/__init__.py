"""The SPAseq language: text to syntax tree to checked query to pattern, and its runs.

`compile_query` gives a `Query`; its `run` gives lazy `Matches`, its `open` a `Session` that events are pushed into.
`parse` and `print_query` are inverse up to layout. The modules in order of a query's way: `scan`, `parse`, `ast`,
`check`, `lower`, `solve`, `run`, `query`.

Rooms, each of which imports only from those before it:

* `syntax`: Text to syntax tree and back.
* `semantics`: From the syntax tree to a checked query.
* `solving`: The table between graph pattern matching and recognition: the value of every GPM at an instant.
* `guards`: The guards of a query's pattern, and their meaning.
* `lowering`: A checked query as a pattern of the core.
* `results`: Matches, and the results that result clauses compute from them.
* `runtime`: Instants in, matches out.

`query` is the interface over all of them; `network` of queries that read the graphs of others; `containment` compares
two queries.
"""

from __future__ import annotations

from spaseq.language.network import Network
from spaseq.language.query import Query, compile_query
from spaseq.language.results.match import Match
from spaseq.language.runtime.matches import Matches
from spaseq.language.runtime.session import Session
from spaseq.language.semantics.check import check
from spaseq.language.syntax.parse import parse
from spaseq.language.syntax.printer import print_query

__all__ = ["Match", "Matches", "Network", "Query", "Session", "check", "compile_query", "parse", "print_query"]
