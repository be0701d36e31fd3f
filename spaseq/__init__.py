"""spaseq: complex event recognition over streams of RDF graphs, and the engine beneath it.

    import spaseq
    query = spaseq.compile(text)
    for match in query.run(streams={"S1": "power.nq"}, kb={"http://example.org/kb": "kb.ttl"}):
        print(match.time, match.bindings)

`compile` checks a SPAseq query; the `Query` it gives runs over files (`run`), takes events as they come (`open`), and
says how it will be run (`explain`). `spaseq.spark` runs it on Spark. Importing this package loads nothing heavy:
rdflib, numba and pyspark are loaded when they are first needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spaseq.errors import (
    BudgetExceeded,
    EventError,
    InternalError,
    OptionError,
    QueryError,
    QuerySemanticsError,
    QuerySyntaxError,
    SpaseqError,
    UnsupportedFeature,
)

if TYPE_CHECKING:
    from spaseq.engine import Settings
    from spaseq.language.query import Query

__all__ = [
    "BudgetExceeded",
    "EventError",
    "InternalError",
    "OptionError",
    "QueryError",
    "QuerySemanticsError",
    "QuerySyntaxError",
    "SpaseqError",
    "UnsupportedFeature",
    "compile",
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


def __getattr__(name: str) -> Any:
    if name == "spark":
        import importlib

        return importlib.import_module("spaseq.spark")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
