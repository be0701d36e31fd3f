"""spaseq: complex event recognition over streams of RDF graphs, and the engine beneath it.

    import spaseq
    query = spaseq.compile(text)
    for match in query.run(streams={"S1": "power.nq"}, kb={"http://example.org/kb": "kb.ttl"}):
        print(match.time, match.bindings)

`compile` checks a SPAseq query; the `Query` it gives runs over files (`run`), takes events as they come (`open`), and
says how it will be run (`explain`). `spaseq.spark` runs it on Spark; `ceql` is the other language, over tuples, with
the same face (`spaseq.core.protocols`). Importing this package loads nothing heavy: rdflib, numba and pyspark are
loaded when they are first needed.
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
    from spaseq.core.containment.result import Comparison
    from spaseq.core.engine import Settings
    from spaseq.gpm import Knowledge
    from spaseq.gpm.functions.own import register_function
    from spaseq.language import Match, Matches, Network, Query, Session
    from spaseq.language.containment import compare
    from spaseq.rdf import DirectionalString, GraphEvent, Grouped, StreamOptions, StreamSource, TripleTerm

__all__ = [
    "BudgetExceeded",
    "Comparison",
    "DirectionalString",
    "EventError",
    "GraphEvent",
    "Grouped",
    "InternalError",
    "Knowledge",
    "LimitReached",
    "Match",
    "Matches",
    "Network",
    "OptionError",
    "Query",
    "QueryError",
    "QuerySemanticsError",
    "QuerySyntaxError",
    "Session",
    "Settings",
    "SpaseqError",
    "StreamOptions",
    "StreamSource",
    "TripleTerm",
    "UnsupportedFeature",
    "__version__",
    "compare",
    "compile",
    "register_function",
]


def compile(text: str, *, source: str = "<query>", settings: Settings | None = None) -> Query:
    """Parse and check a SPAseq query.

    Args:
        text: the query.
        source: the name that errors show for it.
        settings: budgets of the engine.

    Raises `QuerySyntaxError`, `QuerySemanticsError` or `UnsupportedFeature`, each with the place in the text.
    """
    from spaseq.language.query import compile_query

    return compile_query(text, source, settings)


__getattr__, __dir__ = loader(
    __name__,
    {
        "spaseq.core.containment.result": ("Comparison",),
        "spaseq.core.engine": ("Settings",),
        "spaseq.gpm": ("Knowledge",),
        "spaseq.gpm.functions.own": ("register_function",),
        "spaseq.language": ("Match", "Matches", "Network", "Query", "Session"),
        "spaseq.language.containment": ("compare",),
        "spaseq.rdf": ("DirectionalString", "GraphEvent", "Grouped", "StreamOptions", "StreamSource", "TripleTerm"),
        "spaseq.spark": (None,),
    },
)
