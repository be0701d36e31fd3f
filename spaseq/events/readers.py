"""Readers: whatever holds events becomes a run of Arrow tables.

`tables(source)` takes a path (CSV, TSV, JSON Lines, Parquet; `.gz` and `.zst`; a glob; `-` for standard input), several
paths, a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars frame, a list of dicts, or an iterable of
any of these. Files are read in blocks, so that a file larger than memory streams through. Errors name file and record.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.json

from spaseq.errors import EventError

__all__ = ["FORMATS", "source_name", "tables"]

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
_BLOCK: Final = 16 << 20
_ROWS: Final = 1 << 18
_NULLS: Final = ["", "NULL", "null"]
_DAMAGE: Final = ("truncated", "end-of-stream", "inflate", "zlib", "zstd", "compressed")
_FORMAT_HINT: Final = "events are read from .csv, .tsv, .jsonl and .parquet files, plain or compressed (.gz, .zst)"


def source_name(source: object) -> str:
    """What errors call a source."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    if isinstance(source, list | tuple) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return source_name(source[0])
    return "<events>"


def tables(source: Any) -> Iterator[pa.Table]:
    """The events of `source` as tables, in order. See the module for what a source may be."""
    if isinstance(source, str | os.PathLike):
        yield from _files(os.fspath(source))
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
            yield from tables([part] if isinstance(part, Mapping) else part)
    else:
        raise _no_events(source, "give a pyarrow Table, a pandas or Polars frame, a list of dicts, or a path")


def _no_events(source: object, hint: str) -> EventError:
    return EventError(f"a {type(source).__name__} holds no events", hint=hint)


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise EventError(f"the frame cannot be read as columns: {_first_line(error)}") from None


def from_dicts(events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """A table of a list of dicts; a key that a dict does not have is NULL."""
    names: dict[str, None] = {}
    for index, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise EventError(f"{type(event).__name__} is not an event", record=index + 1, hint="an event is a dict")
        names.update(dict.fromkeys(event))
    columns = {str(name): _values([event.get(name) for event in events], str(name)) for name in names}
    return pa.table(columns) if columns else pa.table({})


def _values(values: list[Any], name: str) -> pa.Array:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    try:
        return pa.array(values, pa.float64(), from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        kinds = list(dict.fromkeys(type(v).__name__ for v in values if v is not None))
        odd = next((i for i, v in enumerate(values) if v is not None and type(v).__name__ == kinds[-1]), None)
        raise EventError(
            f"attribute {name} holds values of different kinds: {', '.join(kinds)}",
            record=None if odd is None else odd + 1,
            attribute=name,
            hint="one attribute holds numbers, or texts, or booleans, or times, all along the stream",
        ) from None


# Files


def _files(pattern: str) -> Iterator[pa.Table]:
    if pattern == "-":
        yield from _read(sys.stdin.buffer, "<stdin>", None)
        return
    paths = [pattern] if os.path.exists(pattern) else sorted(glob.glob(pattern, recursive=True))
    if not paths:
        raise EventError("no such file", source=pattern, hint="a path, a glob such as 'data/*.csv', or - for stdin")
    for path in paths:
        if os.path.isdir(path):
            raise EventError("this is a folder", source=path, hint=f"name the files in it: '{path.rstrip('/')}/*.csv'")
        yield from _file(path)


def _file(path: str) -> Iterator[pa.Table]:
    suffixes = [s.lower() for s in Path(path).suffixes]
    compression = _COMPRESSIONS.get(suffixes.pop()) if suffixes and suffixes[-1] in _COMPRESSIONS else None
    kind = FORMATS.get(suffixes[-1]) if suffixes else None
    with _translated(path):
        if kind == "parquet" and compression is None:
            yield from _parquet(path)
            return
        with pa.input_stream(path, compression=compression) as stream:
            yield from _read(stream, path, kind)


def _read(stream: IO[bytes] | pa.NativeFile, name: str, kind: str | None) -> Iterator[pa.Table]:
    """The tables in a stream of bytes; the format is guessed from the first of them where no name tells it."""
    with _translated(name):
        head = _read_some(stream, 1 << 16)
        if kind is None:
            kind = _guess(head, name)
        whole = _Joined(head, stream)
        if kind == "parquet":
            yield from _parquet(pa.BufferReader(whole.read()))
        elif kind == "jsonl":
            yield from _json_lines(whole, name)
        else:
            yield from _csv(whole, name, "\t" if kind == "tsv" else ",")


def _read_some(stream: Any, size: int) -> bytes:
    """Up to `size` bytes, fewer only at the end."""
    parts: list[bytes] = []
    while size > 0 and (part := bytes(stream.read(size))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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


class _Joined(io.RawIOBase):
    """Bytes already read, and then the rest of the stream."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size is None or size < 0:
            return self._head.read() + bytes(self._rest.read())
        part = self._head.read(size)
        return part if part else bytes(self._rest.read(size))


def _parquet(source: Any) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        for batch in file.iter_batches(batch_size=_ROWS):
            yield pa.Table.from_batches([batch])


def _csv(stream: _Joined, name: str, delimiter: str) -> Iterator[pa.Table]:
    """Blocks of a CSV file, typed as the first (16 MB) is; an integer column may turn to decimals later."""
    header, body = _header(stream, name, delimiter)
    if header is None:
        return
    widened: dict[str, pa.DataType] = {}
    line = 2
    for block in _blocks(body, quoted=True):
        table = _csv_block(block, header, widened, delimiter, name, line)
        for field in table.schema:
            if not pa.types.is_null(field.type):
                widened.setdefault(field.name, field.type)
        line += block.count(b"\n")
        if table.num_rows:
            yield table


def _header(stream: _Joined, name: str, delimiter: str) -> tuple[list[str] | None, _Joined]:
    """The column names, and the stream after them; None for an empty stream."""
    import csv

    head = _read_some(stream, 1 << 16)
    line, _, rest = head.partition(b"\n")
    text = _decoded(line, name, 1).rstrip("\r")
    if not text.strip() and not rest:
        return None, stream
    names = next(csv.reader([text], delimiter=delimiter), [])
    names = [n.strip() for n in names]
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise EventError(f"two columns are called {twice!r}", source=name, record=1, attribute=twice)
    return names, _Joined(rest, stream)


def _decoded(line: bytes, name: str, record: int) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EventError(
            "this is not UTF-8 text", source=name, record=record, hint="convert the file to UTF-8"
        ) from None


def _blocks(stream: _Joined, quoted: bool) -> Iterator[bytes]:
    """The stream in blocks that end with a line; with `quoted`, not inside a quoted field."""
    rest = b""
    while part := _read_some(stream, _BLOCK):
        rest += part
        if len(part) < _BLOCK:
            break
        cut = rest.rfind(b"\n") + 1
        while quoted and cut and rest.count(b'"', 0, cut) % 2:
            cut = rest.rfind(b"\n", 0, cut - 1) + 1
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _csv_block(
    block: bytes, header: list[str], known: dict[str, pa.DataType], delimiter: str, name: str, line: int
) -> pa.Table:
    options: dict[str, Any] = dict(
        read_options=pa.csv.ReadOptions(column_names=header, block_size=max(len(block) + 1, 1 << 10)),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block),
    )
    types = dict(known)
    while True:
        convert = pa.csv.ConvertOptions(
            column_types=types, null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        try:
            table = pa.csv.read_csv(io.BytesIO(block), convert_options=convert, **options)
        except pa.ArrowInvalid as error:
            column = _failed_column(str(error), header)
            if column is not None and types.get(column) == pa.int64():
                types[column] = pa.float64()
            elif options["read_options"].use_threads:
                options["read_options"].use_threads = False  # only then the message names the row
            else:
                raise _csv_error(str(error), column, types, block, name, line) from None
        else:
            odd = next((f.name for f in table.schema if pa.types.is_binary(f.type)), None)
            if odd is not None:
                raise _csv_error("invalid UTF-8", odd, types, block, name, line)
            return table


def _failed_column(message: str, header: list[str]) -> str | None:
    match = re.search(r"In CSV column #(\d+)", message)
    return header[int(match[1])] if match and int(match[1]) < len(header) else None


def _csv_error(
    message: str, column: str | None, types: dict[str, pa.DataType], block: bytes, name: str, line: int
) -> EventError:
    if match := re.search(r"Expected (\d+) columns, got (\d+)", message):
        record = _line_of_row(message, line)
        return EventError(
            f"this record has {match[2]} fields and the header names {match[1]}", source=name, record=record
        )
    if "UTF8" in message or "UTF-8" in message:
        at = next((i for i, text in enumerate(block.split(b"\n")) if not _is_utf8(text)), 0)
        return EventError("this is not UTF-8 text", source=name, record=line + at, hint="convert the file to UTF-8")
    value = re.search(r"invalid value '(.*?)'", message)
    if column is not None and value is not None:
        at = block.find(value[1].encode())
        record = line + block.count(b"\n", 0, at) if at >= 0 and value[1] else None
        return EventError(
            f"attribute {column} is {value[1]!r} here, and {_kind_words(types.get(column))} in the records before",
            source=name,
            record=record,
            attribute=column,
            hint="one attribute holds numbers, or texts, or booleans, or times, all along the stream",
        )
    return EventError(_clean(message), source=name)


def _kind_words(kind: pa.DataType | None) -> str:
    if kind is None:
        return "something else"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "a number"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "a time" if pa.types.is_temporal(kind) else f"a value of type {kind}"


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _line_of_row(message: str, line: int) -> int | None:
    match = re.search(r"Row #(\d+)", message)
    return line + int(match[1]) - 1 if match else None  # rows count from 1 in the block


def _json_lines(stream: _Joined, name: str) -> Iterator[pa.Table]:
    """Blocks of JSON Lines: one object a line. Empty lines are passed over."""
    line = 1
    for block in _blocks(stream, quoted=False):
        if block.strip():
            yield _json_block(block, name, line)
        line += block.count(b"\n")


def _json_block(block: bytes, name: str, line: int) -> pa.Table:
    if block.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        raise EventError("this is a JSON array, not JSON Lines", source=name, record=line, hint="one object a line")
    try:
        options = pa.json.ReadOptions(block_size=max(len(block) + 1, 1 << 10))
        return pa.json.read_json(io.BytesIO(block), read_options=options)
    except pa.ArrowInvalid:
        pass
    events = []
    lines = []
    for number, text in enumerate(block.split(b"\n"), line):
        if not text.strip():
            continue
        events.append(_json_object(text, name, number))
        lines.append(number)
    try:
        return from_dicts(events)
    except EventError as error:
        record = None if error.record is None else lines[error.record - 1]
        raise EventError(
            error.problem, source=name, record=record, attribute=error.attribute, hint=error.hint
        ) from None


def _json_object(text: bytes, name: str, line: int) -> dict[str, Any]:
    try:
        value = json.loads(_decoded(text, name, line))
    except json.JSONDecodeError as error:
        raise EventError(
            f"this is not JSON (column {error.colno}: {error.msg})", source=name, record=line, hint="one object a line"
        ) from None
    if not isinstance(value, dict):
        raise EventError("this is JSON, but not an object", source=name, record=line, hint="one object a line")
    return value


@contextlib.contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turns what goes wrong in reading bytes into an `EventError` that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        text = _first_line(error)
        if isinstance(error, PermissionError):
            raise EventError("this file may not be read", source=name) from None
        if isinstance(error, FileNotFoundError):
            raise EventError("no such file", source=name) from None
        if any(word in text.lower() for word in _DAMAGE):
            raise EventError(f"the compressed data is damaged or cut off: {text}", source=name) from None
        raise EventError(f"this cannot be read: {text}", source=name) from None


def _first_line(error: Exception) -> str:
    return _clean(str(error))


def _clean(message: str) -> str:
    """One line without the library's own prefixes."""
    return re.sub(r"\s+", " ", message.split("Detail:")[0]).strip().rstrip(".")[:300]


def common_schema(parts: list[pa.Table], source: str) -> pa.Table:
    """One table of several; a column that one does not have is NULL there. `EventError` where kinds do not agree."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        name = _disagreeing(parts)
        kinds = [str(t.schema.field(name).type) for t in parts if name in t.column_names] if name else []
        problem = f"attribute {name} is {' here and '.join(dict.fromkeys(kinds))} there" if name else _first_line(error)
        raise EventError(
            problem, source=source, attribute=name or "", hint="an attribute has one kind of values in all streams"
        ) from None


def _disagreeing(parts: list[pa.Table]) -> str | None:
    names: dict[str, None] = dict.fromkeys(str(n) for t in parts for n in t.column_names)
    for name in names:
        schemas = [pa.schema([t.schema.field(name)]) for t in parts if name in t.column_names]
        try:
            pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            return name
    return None
