"""Messages that hold RDF, as Kafka and other queues bring them, taken apart into quads for a query.

raw = spark.readStream.format("kafka")….load()
quads = parse_rdf(raw.select("value", F.col("topic").alias("stream"), F.col("timestamp").alias("time")))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from spaseq.errors import EventError, OptionError
from spaseq.rdf import Terms, format_of, parse_statements, term_key
from spaseq.spark.ingest.terms import ntriples
from spaseq.spark.session.failures import carried
from spaseq.spark.session.tables import STATEMENTS, plain_name, with_plain_names

__all__ = ["parse_rdf"]

_FORMATS: Final = ("nt", "nq", "ttl", "trig")
_TERMS: Final = tuple(STATEMENTS.names[3:])


def parse_rdf(messages: DataFrame, column: str = "value", format: str = "nq") -> DataFrame:
    """A row for each statement of each message: the message's other columns, and graph, subject, predicate, object, in
    N-Triples form. Works on DataFrames and on streaming ones; keeps no state.

    Args:
        column: where the RDF is: text, or UTF-8 in binary, as Kafka's `value`. Each message is a document.
        format: nt, nq, ttl or trig. A column `graph` of `messages` names the graph of statements that have none.

    A message that cannot be read is one row without a subject, whose object says why: a query reports it as malformed,
    or, with `malformed="drop"`, counts it. An empty message has no rows. Raises OptionError for a missing column and
    an unknown format.
    """
    if column not in messages.columns:
        raise OptionError(f"the messages have no column {column}", f"there are {', '.join(messages.columns)}")
    if format not in _FORMATS:
        raise OptionError(f"format {format}: not one of {', '.join(_FORMATS)}")
    others = [name for name in messages.columns if name != column and name not in _TERMS]
    graph = ["graph"] if "graph" in messages.columns else []
    kept = [messages.schema[name] for name in others]
    schema = StructType([*kept, *(StructField(name, StringType()) for name in _TERMS)])
    picked = with_plain_names(messages).select(*map(plain_name, [*others, *graph, column]))
    return picked.mapInArrow(partial(_parse, schema.names, bool(graph), format), schema)


@carried
def _parse(names: Sequence[str], named: bool, form: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    terms = Terms()
    for batch in batches:
        bodies = batch.columns[-1].to_pylist()
        graphs = batch.columns[-2].to_pylist() if named else [None] * len(bodies)
        places: list[int] = []
        quads: list[tuple[str | None, ...]] = []
        for place, (body, graph) in enumerate(zip(bodies, graphs, strict=True)):
            found = list(_quads(body, graph, form, terms))
            quads += found
            places += [place] * len(found)
        if not quads:
            continue
        index = pa.array(places, pa.int64())
        kept = [column.take(index) for column in batch.columns[: len(names) - len(_TERMS)]]
        columns = [pa.array(values, pa.string()) for values in zip(*quads, strict=True)]
        yield pa.record_batch([*kept, *columns], names=names)


def _quads(body: Any, graph: str | None, form: str, terms: Terms) -> Iterator[tuple[str | None, ...]]:
    """The statements of a message; if it cannot be read, a row that says so and none of its statements."""
    if body is None:
        return
    data = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    try:
        statements = list(parse_statements([data], format_of(f"message.{form}", None), "a message", terms=terms))
    except EventError as error:
        yield graph, None, None, str(error)
        return
    for s, p, o, g, _ in statements:
        own = graph if g is None else ntriples(term_key(g))
        yield own, ntriples(term_key(s)), ntriples(term_key(p)), ntriples(term_key(o))
