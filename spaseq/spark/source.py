"""A Spark data source: RDF files as rows of statements, in Arrow record batches.

Columns (`SCHEMA`): `file` the number of the file; `place` orders the statements of a file; `line` where a statement
stands, from 1; `s`, `p`, `o`, `g` terms as texts (`spaseq.rdf.term_key`), `g` null in the default graph. A part whose
malformed lines were dropped ends with a row without terms, whose `line` is how many those were.
"""

from __future__ import annotations

import os
import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spaseq.rdf import Counters, Terms, format_of, parse_statements, term_key
from spaseq.spark.failures import carried
from spaseq.spark.parts import FilePart, part_chunks
from spaseq.spark.quarantine import Aside, good_statements

__all__ = ["SCHEMA", "StatementSource", "read_statements"]

SCHEMA: Final = "file int, place long, line long, s string, p string, o string, g string"
_ARROW: Final = pa.schema(
    [("file", pa.int32()), ("place", pa.int64()), ("line", pa.int64())] + [(name, pa.string()) for name in "spog"]
)
_ROWS: Final = 20_000
Malformed = Literal["error", "drop"]


def read_statements(
    spark: SparkSession, parts: Sequence[FilePart], form: str | None, malformed: Malformed, quarantine: str = ""
) -> DataFrame:
    """The statements of `parts`, a task for each part; `form` overrides what the files' names say.

    `quarantine`: a folder for lines that cannot be read.
    """
    spark.dataSource.register(StatementSource)
    folder = os.path.abspath(quarantine) if quarantine else ""
    plan = b64encode(pickle.dumps((tuple(parts), form, malformed, folder))).decode("ascii")
    return spark.read.format(StatementSource.name()).option("plan", plan).load()


class StatementSource(DataSource):
    """`spark.read.format("spaseq-statements")`; use `read_statements`."""

    @classmethod
    def name(cls) -> str:
        return "spaseq-statements"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self.options["plan"])


class _Reader(DataSourceReader):
    def __init__(self, plan: str) -> None:
        self.parts: tuple[FilePart, ...]
        self.parts, self.form, self.malformed, self.quarantine = pickle.loads(b64decode(plan))

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self.parts]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _statements(partition.value, self.form, self.malformed, self.quarantine)


@carried
def _statements(part: FilePart, form: str | None, malformed: Malformed, folder: str) -> Iterator[pa.RecordBatch]:
    """The statements of one part as record batches of up to `_ROWS` rows."""
    counters = Counters()
    known = format_of(part.path, form)
    if folder and known.lines:
        aside = Aside(folder, f"{part.file}-{part.start}-{os.path.basename(part.path)}.tsv")
        found = good_statements(part_chunks(part), known, part.name, part.first_line, counters, aside)
    else:
        found = parse_statements(
            part_chunks(part),
            known,
            part.name,
            first_line=part.first_line,
            terms=Terms(),
            counters=counters,
            malformed=malformed,
        )
    rows: list[tuple[Any, ...]] = []
    place = part.first_line
    for s, p, o, g, line in found:
        rows.append((line, term_key(s), term_key(p), term_key(o), None if g is None else term_key(g)))
        if len(rows) == _ROWS:
            yield _batch(part.file, place, rows)
            place += len(rows)
            rows.clear()
    if counters.malformed:
        rows.append((counters.malformed, None, None, None, None))
    if rows:
        yield _batch(part.file, place, rows)


def _batch(file: int, place: int, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """`rows` are (line, s, p, o, g); their places count on from `place`."""
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array([file] * len(rows), pa.int32()), pa.array(range(place, place + len(rows)), pa.int64())]
    arrays += [pa.array(column, field.type) for column, field in zip(columns, list(_ARROW)[2:], strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)
