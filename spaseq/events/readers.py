"""Readers: whatever holds events becomes a run of Arrow tables.

`tables(source)` takes a path (CSV, TSV, JSON Lines, Parquet; `.gz` and `.zst`; a glob; `-` for standard input), several
paths, a `GrowingFile`, a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars frame, a list of dicts, or
an iterable of any of these. Files are read in blocks, so that a file larger than memory streams through, and a block or
two ahead of who uses them, in a thread. Errors name file and record.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from spaseq.errors import EventError, OptionError
from spaseq.events.ahead import ahead
from spaseq.events.blocks import Joined, first_line, read_some
from spaseq.events.csv_files import padded, read_csv
from spaseq.events.growing import GrowingBytes, GrowingFile
from spaseq.events.json_lines import read_json_lines
from spaseq.events.places import matching

__all__ = ["FORMATS", "frame_of", "source_name", "tables"]

FORMATS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSIONS: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
_ROWS: Final = 1 << 18
_DAMAGE: Final = ("truncated", "end-of-stream", "inflate", "zlib", "zstd", "compressed")
_SURROGATE_HINT: Final = "\\ud800 to \\udfff stand for a character only in pairs, the first one below \\udc00"
_FORMAT_HINT: Final = "events are read from .csv, .tsv, .jsonl and .parquet files, plain or compressed (.gz, .zst)"


def source_name(source: object) -> str:
    """What errors call a source."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    if isinstance(source, list | tuple) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return source_name(source[0])
    if isinstance(source, GrowingFile):
        return source.name
    return "<events>"


def tables(source: Any, wanted: Collection[str] | None = None) -> Iterator[pa.Table]:
    """The events of `source` as tables, in order. See the module for what a source may be.

    `wanted` are the columns whose values will be looked at (None: all). Readers of CSV and Parquet files spare
    themselves the others, which are NULL then.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            yield from _read(sys.stdin.buffer, "<stdin>", None, wanted)
        else:
            yield from ahead(lambda: _files(path, wanted))
    elif isinstance(source, GrowingFile):
        yield from _growing(source, wanted)
    elif isinstance(source, pa.Table):
        yield source
    elif isinstance(source, pa.RecordBatch):
        yield pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        for batch in source:
            yield pa.Table.from_batches([batch])
    elif isinstance(source, Mapping):
        raise _no_events(source, "one event is a list of one dict: [event]")
    elif hasattr(source, "collect") and hasattr(source, "lazy"):
        yield source.collect().to_arrow()
    elif hasattr(source, "to_arrow"):
        yield source.to_arrow()
    elif hasattr(source, "iloc"):
        yield _from_pandas(source)
    elif isinstance(source, list) and (not source or isinstance(source[0], Mapping)):
        yield from_dicts(source)
    elif isinstance(source, Iterable):
        for part in source:
            yield from tables([part] if isinstance(part, Mapping) else part, wanted)
    else:
        raise _no_events(source, "give a pyarrow Table, a pandas or Polars frame, a list of dicts, or a path")


def _no_events(source: object, hint: str) -> EventError:
    return EventError(f"a {type(source).__name__} holds no events", hint=hint)


def _from_pandas(frame: Any) -> pa.Table:
    if not hasattr(frame, "columns"):
        raise _no_events(frame, "give a frame: its columns are the attributes")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:  # sparse columns, two of one name
        raise EventError(f"the frame cannot be read as columns: {first_line(error)}") from None


def frame_of(rows: Callable[[], pa.Table]) -> Any:
    """The rows as a `pandas.DataFrame`. `OptionError` without pandas, before any are made."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        hint = "install pandas, or take to_arrow(), whose tables Polars, DuckDB and others read"
        raise OptionError("to_pandas needs pandas, which is not installed", hint) from None
    return rows().to_pandas()


def from_dicts(events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of a list of dicts; a key that a dict does not have is NULL."""
    names: dict[str, None] = {}
    for index, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise EventError(f"{type(event).__name__} is not an event", record=index + 1, hint="an event is a dict")
        names.update(dict.fromkeys(event))
    for name in names:
        if not _is_text(str(name)):
            raise EventError(f"the name of an attribute, {name!r}, is no Unicode text", hint=_SURROGATE_HINT)
    columns = {str(name): _values([event.get(name) for event in events], str(name)) for name in names}
    return pa.table(columns) if columns else pa.Table.from_struct_array(pa.array(events, pa.struct([])))


def _values(values: list[Any], name: str) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except UnicodeEncodeError:
        odd = next((i for i, v in enumerate(values) if not _is_text(str(v))), 0)
        problem = f"attribute {name} is {values[odd]!r:.100}, which is no Unicode text"
        raise EventError(problem, record=odd + 1, attribute=name, hint=_SURROGATE_HINT) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    try:
        return pa.array(values, pa.float64(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise _not_a_column(values, name) from None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_a_column(values: list[Any], name: str) -> EventError:
    """Why `values` are no column: they are of several kinds, or of one that columns do not have."""
    kinds = list(dict.fromkeys(type(v).__name__ for v in values if v is not None))
    if kinds == ["int"]:
        odd = next((i for i, v in enumerate(values) if v is not None and not -(1 << 63) <= v < 1 << 63), 0)
        problem, hint = f"attribute {name} holds a whole number of more than 64 bits", "write such numbers as floats"
    else:
        odd = next((i for i, v in enumerate(values) if v is not None and type(v).__name__ == kinds[-1]), 0)
        what = f"of different kinds: {', '.join(kinds)}" if len(kinds) > 1 else f"of no known kind: {kinds[0]}"
        problem = f"attribute {name} holds values {what}"
        hint = "one attribute holds numbers, or texts, or booleans, or times, all along the stream"
    return EventError(problem, record=odd + 1, attribute=name, hint=hint)


# Files


def _files(pattern: str, wanted: Collection[str] | None) -> Iterator[pa.Table]:
    try:
        paths = list(matching(pattern))
    except OptionError as error:
        raise OptionError(error.problem, "spaseq.spark.run_tuples reads DataFrames from there") from None
    if not paths:
        raise EventError("no such file", source=pattern, hint="a path, a glob such as 'data/*.csv', or - for stdin")
    for path in paths:
        if os.path.isdir(path):
            raise EventError("this is a folder", source=path, hint=f"name the files in it: '{path.rstrip('/')}/*.csv'")
        yield from _file(path, wanted)


def _file(path: str, wanted: Collection[str] | None) -> Iterator[pa.Table]:
    suffixes = [s.lower() for s in Path(path).suffixes]
    compression = _COMPRESSIONS.get(suffixes.pop()) if suffixes and suffixes[-1] in _COMPRESSIONS else None
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    with _translated(path):
        if kind == "parquet" and compression is None:
            yield from _parquet(path, path, wanted)
            return
        with pa.input_stream(path, compression=compression) as stream:
            yield from _read(stream, path, kind, wanted)


def _growing(source: GrowingFile, wanted: Collection[str] | None) -> Iterator[pa.Table]:
    with _translated(source.name), contextlib.ExitStack() as stack:
        kind = FORMATS.get(Path(source.path).suffix.lower())
        file = sys.stdin.buffer if source.path == "-" else stack.enter_context(open(source.path, "rb"))
        yield from _read(GrowingBytes(source, file), source.name, kind, wanted)


def _read(
    stream: IO[bytes] | pa.NativeFile | GrowingBytes, name: str, kind: str | None, wanted: Collection[str] | None
) -> Iterator[pa.Table]:
    """The tables in a stream of bytes; the format is guessed from the first of them where no name tells it."""
    with _translated(name):
        head = read_some(stream, 1 << 16)
        if kind is None:
            kind = _guess(head, name)
        whole = Joined(head, stream)
        if kind == "parquet":
            yield from _parquet(pa.BufferReader(whole.read()), name, wanted)
        elif kind == "jsonl":
            yield from read_json_lines(whole, name, from_dicts)
        else:
            yield from read_csv(whole, name, "\t" if kind == "tsv" else ",", wanted)


def _guess(head: bytes, name: str) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    first = head.split(b"\n", 1)[0]
    if b"\0" in head or not (b"," in first or b"\t" in first):
        if not head.strip():
            return "csv"
        raise EventError("the format of these events is not known", source=name, hint=_FORMAT_HINT)
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def _parquet(source: Any, name: str, wanted: Collection[str] | None) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    rows = 0
    try:
        opened = pq.ParquetFile(source)
    except UnicodeDecodeError as error:  # pyarrow reads the names of columns as it opens the file
        raise EventError(f"the name of a column is not UTF-8: {error.object!r}", source=name) from None
    with opened as file:
        names = file.schema_arrow.names
        columns = None if wanted is None else [n for n in names if n in wanted]
        for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
            table = pa.Table.from_batches([batch])
            rows += len(table)
            yield table if columns is None else padded(table, names)
        if rows != file.metadata.num_rows:  # the reader takes parts of the file at their word
            told = f"it holds {file.metadata.num_rows:,} events by its own account, and {rows:,} were read"
            raise EventError(f"the file is damaged: {told}", source=name)


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turns what goes wrong in reading bytes into an `EventError` that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        text = first_line(error)
        if isinstance(error, PermissionError):
            raise EventError("this file may not be read", source=name) from None
        if isinstance(error, FileNotFoundError):
            raise EventError("no such file", source=name) from None
        if any(word in text.lower() for word in _DAMAGE):
            raise EventError(f"the compressed data is damaged or cut off: {text}", source=name) from None
        raise EventError(f"this cannot be read: {text}", source=name) from None


def common_schema(parts: list[pa.Table], source: str) -> pa.Table:
    """One table of several; a column that one does not have is NULL there. `EventError` where kinds do not agree."""
    parts = _alike(parts)
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        name = _disagreeing(parts)
        kinds = [str(t.schema.field(name).type) for t in parts if name in t.column_names] if name else []
        problem = f"attribute {name} is {' here and '.join(dict.fromkeys(kinds))} there" if name else first_line(error)
        raise EventError(
            problem, source=source, attribute=name or "", hint="an attribute has one kind of values in all streams"
        ) from None


def _alike(parts: list[pa.Table]) -> list[pa.Table]:
    """The same tables with dictionaries decoded where another table has the column as something else."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in parts:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    mixed = {name for name, found in kinds.items() if len(found) > 1}
    for i, table in enumerate(parts):
        for column, field in enumerate(table.schema):
            if field.name in mixed and pa.types.is_dictionary(field.type):
                decoded_texts = table.column(column).cast(field.type.value_type)
                table = table.set_column(column, field.name, decoded_texts)
        parts = [*parts[:i], table, *parts[i + 1 :]]
    return parts


def _disagreeing(parts: list[pa.Table]) -> str | None:
    names: dict[str, None] = dict.fromkeys(str(n) for t in parts for n in t.column_names)
    for name in names:
        schemas = [pa.schema([t.schema.field(name)]) for t in parts if name in t.column_names]
        try:
            pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return name
    return None
