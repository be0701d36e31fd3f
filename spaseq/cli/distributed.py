"""`spaseq run --engine spark`: the same matches, found by Spark in local mode."""

from __future__ import annotations

import queue
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from spaseq.core.errors import OptionError
from spaseq.language.query import Query, compile_query
from spaseq.language.results.match import Match
from spaseq.rdf import Counters, StreamSource, term_from_key
from spaseq.tools.command.process import interrupt_once

if TYPE_CHECKING:
    from spaseq.spark.session.options import QueryWords

_LOOK: Final = 0.5  # seconds between two looks at whether the query still runs


def spark_matches(
    session: Callable[[], Any],
    query: Query,
    streams: Mapping[str, StreamSource],
    knowledge: Mapping[str, Any],
    counters: Counters,
    quarantine: str,
    **words: Unpack[QueryWords],
) -> Iterator[Match]:
    """The matches over files, in order of their ends. See `spaseq.spark.matches`.

    `session` starts Spark; the reading is counted in `counters`. Raises `OptionError` if PySpark is not installed.
    """
    spark = _spark()
    more: dict[str, Any] = {"counters": counters, "quarantine": quarantine, "progress": None, **words}
    yield from spark.matches(query, session(), streams, knowledge, **more)


def local_spark(configuration: Mapping[str, str]) -> Any:
    """A session on this machine, with settings of Spark's. Raises `OptionError` if PySpark is not installed."""
    return _spark().local_session(configuration=configuration)


def explain(
    query: Query, knowledge: Mapping[str, Any], configuration: Mapping[str, str], entailment: str | None
) -> str:
    """The plan of a query on Spark. A session is started only for knowledge, whose answers are computed."""
    spark = _spark()
    if not knowledge:
        return str(spark.explain(query))
    return str(spark.explain(query, knowledge, spark=local_spark(configuration), entailment=entailment))


def without_time_limit(query: Query) -> Query:
    """The query for Spark, whose tasks refuse that limit."""
    return compile_query(query.text, query.source, replace(query.settings, time_limit=None))


def followed_matches(
    session: Callable[[], Any],
    query: Query,
    streams: Mapping[str, StreamSource],
    knowledge: Mapping[str, Any],
    counters: Counters,
    quarantine: str,
    **words: Unpack[QueryWords],
) -> Iterator[Match]:
    """The matches over files that grow and folders that get files, as they are found; it ends by Ctrl-C or an error.

    What was read before a Ctrl-C is forgotten: a query that goes on after a restart is one of `spaseq.spark.start`.
    """
    spark = _spark()
    begun = session()
    if threading.current_thread() is threading.main_thread():  # Spark's handler would speak to a JVM that is spoken to
        interrupt_once()
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="spaseq-") as folder:
        running = spark.start(
            query,
            begun,
            streams,
            knowledge,
            checkpoint=folder,
            foreach_batch=lambda frame, number: found.put(frame.orderBy("end", "start").collect()),
            reading=spark.Reading(growing=True, quarantine=quarantine),
            terms="key",
            **words,
        )
        try:
            while running.isActive or not found.empty():
                yield from _arrivals(found, query)
            spark.wait(running)
        finally:
            for name, value in spark.progress(running).items():
                if hasattr(counters, name):
                    setattr(counters, name, value)
            running.stop()


def _arrivals(found: queue.SimpleQueue[Any], query: Query) -> Iterator[Match]:
    """The matches of a batch, if one comes soon. Earlier messages are shown first."""
    sys.stdout.flush()
    try:
        rows = found.get(timeout=_LOOK)
    except queue.Empty:
        return
    for row in rows:
        terms = zip(query.variables, row[5:], strict=True)
        bindings = {name: term_from_key(key) for name, key in sorted(terms) if key is not None}
        yield Match(row[0], row[1], tuple(row[2]), bindings, tuple(row[4]), ())


def _spark() -> Any:
    try:
        import spaseq.spark
        import spaseq.spark.session.session
    except ModuleNotFoundError as error:
        raise OptionError(
            f"--engine spark needs {error.name}, which is not installed", "install it: pip install 'spaseq[spark]'"
        ) from None
    return spaseq.spark
