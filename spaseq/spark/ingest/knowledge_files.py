"""Files of background knowledge as a DataFrame of triples, which tasks read.

Files of lines are cut for several tasks; documents (Turtle, RDF/XML, …) and compressed files are read whole, one a
task; built files (`spaseq.rdf.columns.kept`) are mapped by tasks, each of which has some of their rows. Only triples
that the query can use become rows. Blank nodes have the names that they have locally.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spaseq.core.errors import EventError
from spaseq.core.files.places import file_size, is_elsewhere, open_file, whole_name
from spaseq.rdf import GraphColumns, expand_files, format_of, has_lines, is_kept, open_kept, read_part
from spaseq.spark.ingest.boundaries import newlines
from spaseq.spark.ingest.parts import part_chunks
from spaseq.spark.session.failures import carried
from spaseq.spark.session.session import broadcast_bytes
from spaseq.spark.session.storage import Access, access_to
from spaseq.spark.session.tables import INPUTS, KNOWLEDGE, batch_of, spark_schema

_SMALLEST: Final = 4 << 20
"""Bytes below which a file is not cut for another task: they take about half a second to read."""
_ROWS: Final = 10_000
_KEPT_ROWS: Final = 100_000
"""Rows below which a built file is not cut for another task."""
_UNPACKED: Final = 10
"""How many times the bytes of a compressed file or a document its triples may have as lines."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The lines of a file that begin in its bytes [`start`, `end`); `end` None: all of it, decompressed. Of a built
    file, these of the rows that the query can use. `name`: as the user called it, which may say less than the `path`
    does where tasks run."""

    name: str
    path: str
    start: int
    end: int | None


def triples_of_files(spark: SparkSession, files: Sequence[str], used: frozenset[str] | None, tasks: int) -> DataFrame:
    """The triples (KNOWLEDGE of `spaseq.spark.session.tables`) of `files`, which are paths and globs, as
    `load_knowledge` has them, perhaps several times; of them those with the predicates `used` (None: all).

    A file that is not there is an EventError now; what is wrong inside of one, when it is read.
    """
    access = access_to(spark, files)
    pieces = [piece for name in expand_files(files) for piece in _pieces(name, used, tasks)]
    rows = [(number, json.dumps(astuple(piece))) for number, piece in enumerate(pieces)]
    given = spark.createDataFrame(rows, spark_schema(INPUTS))
    parted = given.repartitionById(max(1, min(len(rows), tasks)), given["number"] % min(len(rows), tasks))
    found = parted.mapInArrow(carried(_read, used, access), spark_schema(KNOWLEDGE))
    size = sum(file_size(name) * (1 if is_kept(name) or has_lines(name, format_of(name, documents=True)) else _UNPACKED)
               for name in expand_files(files))  # fmt: skip
    # Spark takes the triples for as small as the list of the pieces, and would broadcast any file.
    return found.hint("merge") if size > broadcast_bytes(spark) else found


def _pieces(name: str, used: frozenset[str] | None, tasks: int) -> Iterator[_Piece]:
    path = whole_name(name)
    if is_kept(path):
        count = len(_rows_of(open_kept(path), used))
        step = max(1, count) if is_elsewhere(path) else max(_KEPT_ROWS, -(-count // tasks))
        for start in range(0, max(1, count), step):
            yield _Piece(name, path, start, min(count, start + step))
    elif not has_lines(path, format_of(path, documents=True)):
        yield _Piece(name, path, 0, None)
    else:
        size = file_size(path)
        step = max(_SMALLEST, -(-size // tasks))
        for start in range(0, max(1, size), step):
            yield _Piece(name, path, start, min(size, start + step))


def _rows_of(graph: GraphColumns, used: frozenset[str] | None) -> np.ndarray:
    """The rows of the triples with the predicates `used` (None: all), int32 (·, 3)."""
    return graph.rows if used is None else graph.about(sorted(used))


def _read(
    used: frozenset[str] | None, access: Access | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    if access is not None:
        access.use()
    for batch in batches:
        for body in batch.column("body").to_pylist():
            rows = _triples(_Piece(*json.loads(body)), used)
            while held := list(islice(rows, _ROWS)):
                yield batch_of(KNOWLEDGE, held)


def _triples(piece: _Piece, used: frozenset[str] | None) -> Iterator[tuple[str, str, str]]:
    if is_kept(piece.path):
        found = open_kept(piece.path)
        rows = _rows_of(found, used)[piece.start : piece.end]
    else:
        found = _read_lines(piece)
        rows = _rows_of(found, used)
    keys = {number: found.terms.key(number).decode() for number in np.unique(rows).tolist()}
    for s, p, o in rows.tolist():
        yield keys[s], keys[p], keys[o]


def _read_lines(piece: _Piece) -> GraphColumns:
    form = format_of(piece.path, documents=True)
    start, end = _lines(piece)
    first = 2 if start else 1  # only a file begins with the mark of its encoding
    chunks = part_chunks(piece.path, start, end)
    try:
        return read_part(chunks, form, piece.name, piece.path, first_line=first)
    except EventError as error:
        raise _told(error, piece, start) from None


def _lines(piece: _Piece) -> tuple[int, int | None]:
    """The bytes of the piece's lines."""
    if piece.end is None:
        return 0, None
    with open_file(piece.path) as file:
        bounds = []
        for place in (piece.start, piece.end):
            file.seek(max(0, place - 1))
            if place:
                file.readline()  # the rest of the line that began before
            bounds.append(file.tell())
    return bounds[0], bounds[1]


def _told(error: EventError, piece: _Piece, start: int) -> EventError:
    """The error of a piece that begins at byte `start`, with the file's name and the number of the line in the file."""
    line = error.record
    if start and line is not None:
        with open_file(piece.path) as file:
            line += newlines(file, 0, start) - 1  # they were counted from 2
    return EventError(error.problem, source=piece.name, record=line, attribute=error.attribute, hint=error.hint)
