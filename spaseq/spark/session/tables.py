"""The tables that flow between Spark's tasks: each is an Arrow schema, from which Spark's own follows (`spark_schema`).

Any column may be null where its line does not say more. Times are in ns since 1970. A *key* of a term is the text of
`spaseq.rdf.term_key`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from spaseq.core.errors import OptionError

__all__ = [
    "EVENTS",
    "GRAPH_MATCHES",
    "INPUTS",
    "KNOWLEDGE",
    "LATE_GRAPHS",
    "MIXED",
    "PARCELS",
    "PARTS",
    "PLACE",
    "QUADS",
    "RANK",
    "SOLUTIONS",
    "SOLVED",
    "STATE",
    "STATEMENTS",
    "STATE_PLACE",
    "TERM_MATCHES",
    "TOLD",
    "arrow_type",
    "batch_of",
    "one_name_each",
    "plain_name",
    "spark_schema",
    "with_own_names",
    "with_plain_names",
]

_ZONE: Final[dict[str, Any]] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
"""Before PySpark 4.2 the zone is UTC by itself."""

_INT, _LONG, _TEXT, _BYTES = pa.int32(), pa.int64(), pa.string(), pa.binary()
_LONGS, _TEXTS = pa.list_(pa.int64()), pa.list_(pa.string())

# -- what is read

STATEMENTS: Final = pa.schema([("stream", _TEXT), ("file", _TEXT), ("line", _LONG), ("graph", _TEXT),
                               ("subject", _TEXT), ("predicate", _TEXT), ("object", _TEXT)])  # fmt: skip
"""A statement of a file: the IRI of its `stream`, `file` and `line` where it stands, and the terms `graph` (null: the
default graph), `subject`, `predicate` and `object` in N-Triples form."""

PLACE: Final = pa.schema([("feed", _INT), ("file_number", _LONG), ("start", _LONG)])
"""Where a part of a stream begins: the `feed`'s number, the `file_number` in it, and the byte of `start`. Of a
DataFrame: the stream's number, the task, and 0."""

PARTS: Final = pa.schema([*PLACE, ("body", _TEXT)])
"""A part of a file to be read by a task: `feed`, `file_number` and `start` as of PLACE, and in the `body`, as JSON, the
options of the data source and the part (`spaseq.spark.ingest.datasource.planned_part`)."""

EVENTS: Final = pa.schema([*PLACE, ("stream", _TEXT), ("time", _LONG), ("file", _TEXT), ("line", _LONG),
                           ("graph", _TEXT), ("terms", _TEXTS), ("counts", _LONGS)])  # fmt: skip
"""A graph event: `feed`, `file_number` and `start` as of PLACE, the IRI of its `stream`, its `time`, `file` and `line`,
the key of its `graph`, and `terms`, the keys of subject, predicate and object of each triple one after another.
Or, where `counts` is not null, what a part held (`Told`); then `time`, `line`, `graph` and `terms` are null."""

QUADS: Final = pa.schema([("stream", _INT), ("time", _LONG), ("graph", _TEXT),
                          ("subject", _TEXT), ("predicate", _TEXT), ("object", _TEXT)])  # fmt: skip
"""A triple of an event of a DataFrame: the number of its `stream` in the query, its `time`, and `graph` (null: none),
`subject`, `predicate` and `object`, terms in N-Triples form. What cannot be read is null."""

KNOWLEDGE: Final = pa.schema([("subject", _TEXT), ("predicate", _TEXT), ("object", _TEXT)])
"""A triple of background knowledge: the keys of `subject`, `predicate` and `object`."""

# -- a batch job

INPUTS: Final = pa.schema([("number", _INT), ("body", _TEXT)])
"""What a task reads: in the `body`, as JSON, a piece of a file or an input (`spaseq.spark.ingest.inputs`); the `number`
is that of the task, or one that decides it."""

SOLVED: Final = pa.schema([("file", _INT), ("number", _LONG), ("stream", _INT), ("time", _LONG), ("graph", _TEXT),
                          ("found", _TEXTS), ("counts", _LONGS)])  # fmt: skip
"""An event with what the GPMs found on it: the number of the input `file`, its `number` there, the place of its
`stream` in the query, its `time`, of DataFrames the key of its `graph`, and in `found` its mappings, null for none.
A mapping is a text of three numbers (the GPM; how many terms; how many texts of the PARTITION BY key; -1 for null),
then the terms, then the key. Or, where `counts` is not null, what is told of an input, and but for its number nothing
else."""

SOLUTIONS: Final = pa.schema([("position", _LONG), ("time", _LONG), ("gpm", _INT), ("terms", _TEXTS), ("key", _TEXTS)])
"""A mapping at an instant: `position` and `time` of the instant; `gpm`, the place of the GPM in the layout, or -1 for a
row that only says that the instant exists; `terms`, a key or null for each of the GPM's variables, sorted by name;
`key`, the terms' keys of the PARTITION BY variables, sorted by name, null without PARTITION BY."""

GRAPH_MATCHES: Final = pa.schema([("start", _LONG), ("end", _LONG), ("positions", _LONGS), ("times", _LONGS)])
"""What comes first in a match of a SPAseq query: positions of its `start` and `end`, its `positions` and their `times`.
In a stream a column for the term of each variable of the query follows."""

LATE_GRAPHS: Final = pa.schema([("stream", _TEXT), ("time", _LONG), ("graph", _TEXT), ("triples", _TEXTS),
                                ("source", _TEXT), ("record", _LONG), ("late_by", _LONG)])  # fmt: skip
"""A graph event that came too late: the IRI of its `stream`, its `time`, and the name of its `graph` (null: none). Each
of its `triples` is a text of N-Triples without the dot. `source` and `record` are its file and line (null: of a
DataFrame), and `late_by` is the ns to the time that its stream had come to."""

TERM_MATCHES: Final = pa.schema([*GRAPH_MATCHES, ("terms", _TEXTS)])
"""A match of a SPAseq query from which `Match` is made again: `start`, `end`, `positions` and `times` as of
GRAPH_MATCHES, and `terms`, a key or null for each variable of the query."""

TOLD: Final = pa.schema([("?slice", _INT), ("?told", _LONGS), ("?why", _TEXT)])
"""What stands behind a match of a slice of time: the number of its `?slice`. Or, in the last row of a slice, which has
no match: in `?told` how many instants are its own, and the `Counters` of what it read; or `?why` it cannot be a slice.
The names are none that a variable can have."""

RANK: Final = pa.field("?rank", pa.decimal128(38))
"""The further column of a query with an ORDER BY, by which its rows are to be sorted."""

# -- a stream

PARCELS: Final = pa.schema([("bucket", _INT), *PLACE, ("part", _INT), ("body", _BYTES)])
"""A parcel to a `bucket`: `feed`, `file_number` and `start` as of PLACE, `part`, its number behind that place, and the
packed parcel as `body`."""

MIXED: Final = pa.schema([*PARCELS, ("gpm", _INT), ("number", _INT), ("time", _LONG), ("terms", _TEXTS)])
"""Parcels, whose `gpm` is -1, and solutions that are still to be joined with knowledge, whose `bucket` is -1 and whose
`body` is null: `feed`, `file_number`, `start` and `part` of the parcel of their event, the place of the `gpm` in the
layout, the event's `number` in the parcel, its `time`, and `terms` as of SOLUTIONS."""

STATE: Final = pa.schema([("state", _BYTES)])
"""What Spark keeps for a bucket between batches: a snapshot, or what a batch brought since, the `state`."""

STATE_PLACE: Final = pa.schema([("mark", _BYTES), ("logged", _LONG), ("size", _LONG)])
"""A `mark` of the state of a bucket, fresh for each batch, the bytes that were `logged`, and the `size` of the
snapshot."""


def spark_schema(table: pa.Schema) -> StructType:
    """The columns of a table as Spark has them."""
    return from_arrow_schema(table)


def one_name_each(rows: pa.Schema) -> pa.Schema:
    """The columns of rows. Raises `OptionError` if two have one name."""
    for name in rows.names:
        if rows.names.count(name) > 1:
            raise OptionError(f"two columns of the rows have the name {name}", "SELECT … AS gives one another name")
    return rows


def arrow_type(kind: DataType) -> pa.DataType:
    """A type of Spark's as Arrow has it. Raises `PySparkException` for one that Python is given no columns of."""
    return to_arrow_type(kind, **_ZONE)


def batch_of(table: pa.Schema, rows: Iterable[Sequence[Any]]) -> pa.RecordBatch:
    """Rows of a table, each a value for each column; there may be none. O(rows) in Python."""
    columns = list(zip(*rows, strict=True)) or [()] * len(table)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, table, strict=True)]
    return pa.record_batch(arrays, schema=table)


# -- tables of users


def plain_name(name: str) -> str:
    """A column's name without what PySpark takes for more than a name: to it `a.b` is a field in a struct. Spark
    compares names without case, so letters that have one are written out: `Price` and `price` are two."""
    return "".join(_escaped(c) if c in "%.`" or c != c.casefold() else c for c in name)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def with_plain_names(frame: DataFrame) -> DataFrame:
    """A user's DataFrame, its columns under plain names, as `mapInArrow` needs them."""
    names = list(map(plain_name, frame.columns))
    return frame if names == frame.columns else frame.toDF(*names)


def with_own_names(*batches: pa.RecordBatch) -> pa.Table:
    """What a task is given of such a DataFrame, under the names that the user knows."""
    table = pa.Table.from_batches(batches)
    return table.rename_columns([unquote(name) for name in table.column_names])
