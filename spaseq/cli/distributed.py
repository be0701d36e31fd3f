"""`spaseq run --engine spark`: the same matches, found by Spark in local mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from spaseq.errors import OptionError
from spaseq.language.query import Query
from spaseq.language.run import Match
from spaseq.rdf import Counters, StreamOptions, StreamSource

__all__ = ["spark_matches"]


def spark_matches(
    query: Query,
    streams: Mapping[str, StreamSource],
    knowledge: Mapping[str, list[str]],
    options: StreamOptions,
    counters: Counters,
) -> Iterator[Match]:
    """The matches over files, in order of their ends; `counters` is given what was read.

    Raises `OptionError` where PySpark is not installed.
    """
    try:
        from spaseq.spark import local_session, matches
    except ModuleNotFoundError as error:
        raise OptionError(
            f"--engine spark needs {error.name}, which is not installed", "install it: pip install 'spaseq[spark]'"
        ) from None
    yield from matches(query, local_session(), streams, knowledge, options=options, counters=counters, progress=None)
