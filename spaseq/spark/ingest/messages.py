"""Messages, as Kafka and other queues bring them, taken apart for a query: RDF into quads, JSON into tuples.

    raw = spark.readStream.format("kafka")….load()
    quads = parse_rdf(raw.select("value", "topic", "partition", "offset", …), format="nq")
    tuples = parse_json(raw, "time long, type string, price double")

What is said of a message names its topic, partition and offset where `messages` have these columns, as Kafka's do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.timestamps import TimestampAssigner
from spaseq.rdf import Terms, format_of, parse_statements, term_key
from spaseq.spark.ingest.frames import UNREADABLE
from spaseq.spark.ingest.terms import ntriples
from spaseq.spark.session.failures import carried
from spaseq.spark.session.tables import STATEMENTS, plain_name, with_plain_names

MALFORMED: Final = "spaseq_malformed"
"""The column of `parse_json` that says why a message cannot be read."""

_FORMATS: Final = ("nt", "nq", "ttl", "trig")
_TERMS: Final = tuple(STATEMENTS.names[3:])
MESSAGE_PLACE: Final = ("topic", "partition", "offset")
"""Columns that say where a message stood, as Kafka's do."""
_ERROR: Final = "error"
_SHOWN: Final = 100
"""Characters of a message that an error shows."""


def parse_rdf(messages: DataFrame, column: str = "value", format: str = "nq") -> DataFrame:
    """A row for each statement of each message: the message's other columns, and graph, subject, predicate, object, in
    N-Triples form. Works on DataFrames and on streaming ones; keeps no state.

    Args:
        column: where the RDF is: text, or UTF-8 in binary, as Kafka's `value`. Each message is a document.
        format: nt, nq, ttl or trig. A column `graph` of `messages` names the graph of statements that have none.

    A message that cannot be read is one row without a subject, whose object says why: a query reports it as malformed,
    or, with `malformed="drop"`, counts it; `dead_letters` gives such messages themselves. An empty message has no rows.
    Raises OptionError for a missing column and an unknown format.
    """
    _check_rdf(messages, column, format)
    others = [name for name in messages.columns if name != column and name not in _TERMS]
    graph = ["graph"] if "graph" in messages.columns else []
    kept = [messages.schema[name] for name in others]
    schema = StructType([*kept, *(StructField(name, StringType()) for name in _TERMS)])
    plain = with_plain_names(messages.withColumn(MALFORMED, _place(messages)))
    picked = plain.select(*map(plain_name, [*others, MALFORMED, *graph, column]))
    return picked.mapInArrow(carried(_parse, schema.names, bool(graph), format), schema)


def parse_json(messages: DataFrame, schema: str | StructType, column: str = "value") -> DataFrame:
    """A row for each message that is a JSON object: the message's other columns, the fields of `schema`, and
    `spaseq_malformed`. Works on DataFrames and on streaming ones; keeps no state, and needs no Python on the way.

    Args:
        schema: the fields, as Spark writes them ("time long NOT NULL, type string"). NOT NULL: a message must have it.
            A field of the name of another column takes its place.
        column: where the JSON is: text, or UTF-8 in binary, as Kafka's `value`.

    In `spaseq_malformed` it says why a message cannot be read: it is no JSON object, or more than one, or a field is
    missing or of another type; else it is null. `start_tuples` reports such a message, or, with `malformed="drop"`,
    counts it; `dead_letters` gives such messages themselves. A message without a value has no row (Kafka calls it a
    tombstone). Raises OptionError for a missing column and a schema that is none.
    """
    _check_column(messages, column)
    fields = _fields(messages, schema)
    names = {field.name.lower() for field in fields}
    others = [name for name in messages.columns if name != column and name.lower() not in names]
    read = messages.where(_quoted(column).isNotNull()).withColumn(_READ, _json(column, fields))
    why = _why_no_json(fields)
    place = _place(messages)
    said = F.when(why.isNotNull(), F.concat(F.coalesce(F.concat(place, F.lit(": ")), F.lit("")), why))
    values = (F.col(_READ).getField(field.name).alias(field.name) for field in fields)
    return read.select(*map(_quoted, others), *values, said.alias(MALFORMED))


def dead_letters(
    messages: DataFrame, *, format: str | None = None, schema: str | StructType | None = None, column: str = "value"
) -> DataFrame:
    """The messages that `parse_rdf` (with this `format`) or `parse_json` (with this `schema`) cannot read, as they
    came, and `error`, which says why. For a query of its own that writes them to a topic or to files.

    It reads all messages again; nothing else depends on it, so neither query loses what the other does. Raises
    OptionError as those do.
    """
    if (format is None) == (schema is None):
        raise OptionError("dead letters of which messages?", "give format=, as parse_rdf has it, or schema=")
    if format is not None:
        _check_rdf(messages, column, format)
        kept = StructType([field for field in messages.schema if field.name != _ERROR])
        whole = StructType([*kept, StructField(_ERROR, StringType())])
        plain = with_plain_names(messages.withColumn(MALFORMED, _place(messages)))
        body = F.col(plain_name(column)).alias(_READ)
        picked = plain.select(*map(plain_name, kept.names), MALFORMED, body)
        return picked.mapInArrow(carried(_unreadable, whole.names, format), whole)
    assert schema is not None
    _check_column(messages, column)
    fields = _fields(messages, schema)
    read = messages.where(_quoted(column).isNotNull()).withColumn(_READ, _json(column, fields))
    why = _why_no_json(fields)
    return read.where(why.isNotNull()).withColumn(_ERROR, why).drop(_READ)


def times_read(table: pa.Table, clock: TimestampAssigner, *, drop: bool = False) -> pa.Array:
    """The times of tuples (int64, ns), by their column and `MALFORMED`. EventError for a message that could not be
    read, or a time that cannot; with `drop` these have the time NULL."""
    bad = np.zeros(table.num_rows, bool)
    if MALFORMED in table.column_names:
        why = table[MALFORMED]
        if why.null_count < len(why) and not drop:
            raise EventError(f"a message cannot be read: {why.drop_null()[0].as_py()}", hint=UNREADABLE)
        bad = pc.is_valid(why).to_numpy()
        table = table.drop_columns([MALFORMED])
    kept = table.filter(pa.array(~bad)) if bad.any() else table
    try:
        times = clock.read(kept).times
    except EventError as error:
        if not drop:
            raise _placed(table, clock, error) from None
        for row in np.flatnonzero(~bad).tolist():
            bad[row] = not _has_time(table.slice(row, 1), clock)
        times = clock.read(table.filter(pa.array(~bad))).times
    whole = np.zeros(len(bad), np.int64)
    whole[~bad] = times
    return pa.array(whole, mask=bad if bad.any() else None)


def _has_time(row: pa.Table, clock: TimestampAssigner) -> bool:
    try:
        clock.read(row)
    except EventError:
        return False
    return True


def _placed(table: pa.Table, clock: TimestampAssigner, error: EventError) -> EventError:
    """The error, with the place of the first message whose time cannot be read, where it has one."""
    if not set(MESSAGE_PLACE) <= set(table.column_names):
        return error
    bad = next((n for n in range(table.num_rows) if not _has_time(table.slice(n, 1), clock)), None)
    if bad is None:
        return error
    row = table.select(MESSAGE_PLACE).slice(bad, 1).to_pylist()[0]
    where = ", ".join(f"{name} {value}" for name, value in row.items())
    hint = "; ".join(said for said in (error.hint, UNREADABLE) if said)
    return EventError(error.problem, source=where, attribute=error.attribute, hint=hint)


# -- its pieces


def _quoted(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _check_column(messages: DataFrame, column: str) -> None:
    if column not in messages.columns:
        raise OptionError(f"the messages have no column {column}", f"there are {', '.join(messages.columns)}")


def _check_rdf(messages: DataFrame, column: str, format: str) -> None:
    _check_column(messages, column)
    if format not in _FORMATS:
        raise OptionError(f"format {format}: not one of {', '.join(_FORMATS)}")


def _place(messages: DataFrame) -> Column:
    """Where each message stood, by the columns of Kafka; null where there are none."""
    if not set(MESSAGE_PLACE) <= set(messages.columns):
        return F.lit(None).cast("string")
    parts = (F.concat(F.lit(f"{name} "), F.col(name).cast("string")) for name in MESSAGE_PLACE)
    whole = F.concat_ws(", ", *parts)
    return F.when(reduce(Column.__and__, (F.col(name).isNotNull() for name in MESSAGE_PLACE)), whole)


_READ: Final = "spaseq_read"
_BROKEN: Final = "spaseq_broken"


def _fields(messages: DataFrame, schema: str | StructType) -> StructType:
    if isinstance(schema, StructType):
        return schema
    try:
        found = messages.sparkSession.createDataFrame([], schema).schema
    except PySparkException as error:
        said = str(error).strip().splitlines()[0]
        raise OptionError(f"schema {schema}: {said}", 'write for example "time long NOT NULL, type string"') from None
    return found


def _json(column: str, fields: StructType) -> Column:
    """The fields of a message, and `_BROKEN`: the message where it is no object, or a field has another type.

    Spark's reader of JSON stops behind the first value, so whether there is more is asked of the message in brackets.
    """
    text = _quoted(column).cast("string")
    optional = [StructField(field.name, field.dataType) for field in fields]
    schema = StructType([*optional, StructField(_BROKEN, StringType())])
    options = {"columnNameOfCorruptRecord": _BROKEN, "allowSingleQuotes": "false"}
    read = F.from_json(text, schema, options)
    array = F.from_json(F.concat(F.lit("["), text, F.lit("]")), "array<string>", {"allowSingleQuotes": "false"})
    nothing = (F.lit(None).cast(field.dataType).alias(field.name) for field in optional)
    return F.when(F.size(array) == 1, read).otherwise(F.struct(*nothing, text.alias(_BROKEN)))


def _why_no_json(fields: StructType) -> Column:
    """Why a message that was read to `_READ` cannot be used; null where it can."""
    read = F.col(_READ)
    broken = read.getField(_BROKEN)
    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)
    shown = F.concat(F.lit(f"not a JSON object with {kinds}: "), F.substring(broken, 1, _SHOWN))
    why = F.when(broken.isNotNull(), shown)
    for field in fields:
        if not field.nullable:
            why = why.when(read.getField(field.name).isNull(), F.lit(f"it has no {field.name}"))
    return why


def _parse(names: Sequence[str], named: bool, form: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of messages: columns to be kept, the message's place, its graph if `named`, its body."""
    terms = Terms()
    for batch in batches:
        bodies = batch.columns[-1].to_pylist()
        graphs = batch.columns[-2].to_pylist() if named else [None] * len(bodies)
        known = batch.columns[-3 if named else -2].to_pylist()
        places: list[int] = []
        quads: list[tuple[str | None, ...]] = []
        for place, (body, graph, source) in enumerate(zip(bodies, graphs, known, strict=True)):
            try:
                found = _quads(body, graph, form, terms, source)
            except EventError as error:
                found = [(graph, None, None, str(error))]
            quads += found
            places += [place] * len(found)
        if not quads:
            continue
        index = pa.array(places, pa.int64())
        kept = [column.take(index) for column in batch.columns[: len(names) - len(_TERMS)]]
        columns = [pa.array(values, pa.string()) for values in zip(*quads, strict=True)]
        yield pa.record_batch([*kept, *columns], names=names)


def _unreadable(names: Sequence[str], form: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those of the messages that cannot be read, and why."""
    terms = Terms()
    for batch in batches:
        places: list[int] = []
        errors: list[str] = []
        for place, (body, source) in enumerate(
            zip(*(c.to_pylist() for c in reversed(batch.columns[-2:])), strict=True)
        ):
            try:
                _quads(body, None, form, terms, source)
            except EventError as error:
                places.append(place)
                errors.append(str(error))
        if places:
            kept = batch.take(pa.array(places, pa.int64())).columns[:-2]
            yield pa.record_batch([*kept, pa.array(errors, pa.string())], names=names)


def _quads(body: Any, graph: str | None, form: str, terms: Terms, source: str | None) -> list[tuple[str | None, ...]]:
    """The statements of a message. EventError where it cannot be read."""
    if body is None:
        return []
    data = body.encode("utf-8") if isinstance(body, str) else bytes(body)
    found = parse_statements([data], format_of(f"message.{form}", None), source or "a message", terms=terms)
    return [
        (graph if g is None else ntriples(term_key(g)), *(ntriples(term_key(term)) for term in (s, p, o)))
        for s, p, o, g, _ in found
    ]
