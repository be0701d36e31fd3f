"""The rows of a frame on the driver, with clear errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from spaseq.core.events.streams import table_bytes
from spaseq.spark.session.bar import progress_bar
from spaseq.spark.session.failures import clear_errors
from spaseq.spark.session.tables import RANK


def collect(matches: DataFrame, *, progress: bool | None = False) -> pa.Table:
    """The rows of a DataFrame that `run` or `match` gave, matches in order of their ends. An error of a worker
    comes out as itself."""
    with progress_bar(matches.sparkSession, "finding matches", enabled=progress), clear_errors():
        table = _table(matches)
    if RANK.name in table.column_names:
        return table.sort_by(RANK.name).drop_columns([RANK.name])
    if {"start", "end", "positions"} <= set(table.column_names):
        return table.sort_by([("end", "ascending"), ("start", "ascending")])
    return table  # rows that SELECT computes have no order


def _table(frame: DataFrame) -> pa.Table:
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    schema = to_arrow_schema(frame.schema)
    numbered = frame.toDF(*(f"c{number}" for number in range(len(schema))))  # PySpark before 4.0; names may have dots
    bodies = numbered.mapInArrow(_packed, "body binary").collect()
    tables = (pa.ipc.open_stream(row[0]).read_all().rename_columns(schema.names).cast(schema) for row in bodies)
    return pa.concat_tables([schema.empty_table(), *tables])


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as bytes, in a row."""
    for batch in batches:
        yield pa.record_batch([pa.array([table_bytes(pa.Table.from_batches([batch]))], pa.binary())], names=["body"])
