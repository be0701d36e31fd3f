"""Readers: any source of events becomes a sequence of Arrow tables.

`tables(source)` takes one of these, or an iterable of them:

* a path: CSV, TSV, JSON Lines, Parquet; `.gz` and `.zst`; a glob; `-` for standard input; or several paths;
* a `GrowingFile`;
* events in memory: frames, dicts, objects (`spaseq.core.events.memory`).

`held_tables(source)` takes the same except paths: no file is opened for events that are pushed. Files are read in
blocks, so that a file larger than memory streams through. A thread reads a block or two ahead of the consumer. Errors
name file and record.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.ahead import ahead
from spaseq.core.events.blocks import Joined, Recoded, check_names, first_line, read_some, to_arrow
from spaseq.core.events.csv_files import DELIMITERS, pad, read_csv
from spaseq.core.events.growing import GrowingBytes, GrowingFile, InTurn
from spaseq.core.events.json_lines import read_json_lines
from spaseq.core.events.memory import EVENTS, from_dicts, is_event, no_events, tables_in_memory
from spaseq.core.events.mixed import Odd, together, unite
from spaseq.core.events.options import TextForm
from spaseq.core.events.parquet_pages import rows_at_once
from spaseq.core.files.places import matching
from spaseq.core.measure import shorten

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
_BLANKS: Final = b"\xef\xbb\xbf \t\r\n"
_DAMAGE: Final = ("truncated", "end-of-stream", "inflate", "zlib", "zstd", "compressed")
_FORMAT_HINT: Final = "events are read from .csv, .tsv, .jsonl and .parquet files, plain or compressed (.gz, .zst)"


def source_name(source: object) -> str:
    """The name of a source in errors."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    if isinstance(source, list | tuple) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return source_name(source[0])
    if isinstance(source, GrowingFile):
        return source.name
    return EVENTS


def tables(source: Any, wanted: Collection[str] | None = None, form: TextForm | None = None) -> Iterator[pa.Table]:
    """The events of `source` as tables, in order. The module lists the possible sources.

    `wanted` are the columns whose values will be used (None: all). Readers of CSV and Parquet files skip the others,
    which are then NULL. `form` is that of text files.
    """
    return (table for _, table in named_tables(source, wanted, form))


def named_tables(
    source: Any, wanted: Collection[str] | None = None, form: TextForm | None = None
) -> Generator[tuple[str, pa.Table]]:
    """`tables`, each after the name that errors call its file."""
    form = form or TextForm()
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if path == "-":
            yield from _with_name("<stdin>", _read(sys.stdin.buffer, "<stdin>", None, wanted, form))
        elif isinstance(path, str):
            yield from ahead(lambda: _files(path, wanted, form))
        else:
            raise no_events(source)
    elif isinstance(source, GrowingFile):
        yield from _growing_folder(source, wanted, form) if source.is_folder else _growing(source, wanted, form)
    elif is_event(source):
        raise OptionError(f"a {type(source).__name__} is one event, and a list of events is expected", "give [event]")
    else:
        yield from tables_in_memory(source, wanted, lambda part: named_tables(part, wanted, form))


def held_tables(source: Any) -> Iterator[pa.Table]:
    """The events of `source`, which are pushed, as `tables` gives them: from memory, never from a file. One event needs
    no list.

    Raises `OptionError` for a text or a path.
    """
    return (table for _, table in _pushed_tables(source))


def _pushed_tables(source: Any) -> Iterator[tuple[str, pa.Table]]:
    if isinstance(source, str | os.PathLike | GrowingFile):
        problem = f"a push takes events, and this is a text or a path: {shorten(str(source), 60)!r}"
        raise OptionError(problem, "query.run(path) reads a file; an event is a dict")
    if is_event(source):
        yield EVENTS, from_dicts([source])
    elif isinstance(source, Iterator) and not isinstance(source, pa.RecordBatchReader):
        yield from _pushed_tables(list(source))
    else:
        yield from tables_in_memory(source, None, _pushed_tables)


def _with_name(name: str, found: Iterable[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    return ((name, table) for table in found)


# Files


def _files(pattern: str, wanted: Collection[str] | None, form: TextForm) -> Iterator[tuple[str, pa.Table]]:
    try:
        paths = list(matching(pattern))
    except OptionError as error:
        raise OptionError(error.problem, "spaseq.spark.match takes DataFrames from there") from None
    if not paths:
        raise EventError("no such file", source=pattern, hint="a path, a glob such as 'data/*.csv', or - for stdin")
    for path in paths:
        if os.path.isdir(path):
            raise EventError("this is a folder", source=path, hint=f"name the files in it: '{path.rstrip('/')}/*.csv'")
        yield from _with_name(path, _file(path, wanted, form))


def _compression_of(path: str) -> str | None:
    return _COMPRESSIONS.get(Path(path).suffix.lower())


def _format_of(path: str) -> str | None:
    """The format that a file's name gives, that of what is compressed; None if it gives none."""
    whole = Path(path)
    return FORMATS.get((whole.with_suffix("") if _compression_of(path) else whole).suffix.lower())


def _file(path: str, wanted: Collection[str] | None, form: TextForm) -> Iterator[pa.Table]:
    compression, kind = _compression_of(path), _format_of(path)
    with _translate_errors(path):
        if kind == "parquet" and compression is None:
            yield from _parquet(path, path, wanted)
            return
        with pa.input_stream(path, compression=compression) as stream:
            yield from _read(stream, path, kind, wanted, form)


def _growing(source: GrowingFile, wanted: Collection[str] | None, form: TextForm) -> Iterator[tuple[str, pa.Table]]:
    name = source.name
    with _translate_errors(name), contextlib.ExitStack() as stack:
        file = sys.stdin.buffer if source.path == "-" else stack.enter_context(open(source.path, "rb"))
        yield from _with_name(
            name, _read(GrowingBytes(source, source.path, file), name, _format_of(source.path), wanted, form)
        )


def _growing_folder(
    source: GrowingFile, wanted: Collection[str] | None, form: TextForm
) -> Iterator[tuple[str, pa.Table]]:
    """The files that a folder has and gets. Files of text may grow until the next is there; others are read once."""
    files = InTurn((source.path,), _in_folder)
    while files.goes_on:
        path = files.upcoming()
        if path is None:
            source.wait()
            continue
        files.begin(path)
        source.idle.clear()
        if _compression_of(path) is not None or _format_of(path) == "parquet":
            yield from _with_name(path, _file(path, wanted, form))
            continue
        with _translate_errors(path), open(path, "rb") as file:
            yield from _with_name(
                path, _read(GrowingBytes(source, path, file, files), path, _format_of(path), wanted, form)
            )
    raise EventError("the folder is gone", source=source.path)


def _in_folder(folders: Sequence[str]) -> list[str]:
    """The files of events in a folder, by name. Files of other formats are left alone."""
    (folder,) = folders
    with _translate_errors(folder):
        return [path for path in sorted(entry.path for entry in os.scandir(folder)) if _is_events(path)]


def _is_events(path: str) -> bool:
    hidden = os.path.basename(path).startswith(".")  # as programs call files that they have not finished
    return not hidden and _format_of(path) is not None and os.path.isfile(path)


def _read(
    stream: IO[bytes] | pa.NativeFile | GrowingBytes | Recoded,
    name: str,
    kind: str | None,
    wanted: Collection[str] | None,
    form: TextForm,
) -> Iterator[pa.Table]:
    """The tables in a stream of bytes. If no name gives the format, it is guessed from the first bytes."""
    with _translate_errors(name):
        if form.encoding is not None and kind != "parquet":
            stream = Recoded(stream, form.encoding, name)
        head = read_some(stream, 1 << 16)
        if kind is None:
            while not head.strip(_BLANKS) and (more := read_some(stream, 1 << 16)):
                head += more
            kind = "csv" if form.delimiter is not None else _guess(head, name)
        whole = Joined(head, stream)
        if kind == "parquet":
            yield from _parquet(to_arrow(whole.read()), name, wanted)
        elif kind == "jsonl":
            yield from read_json_lines(whole, name, from_dicts, () if form.time_format is None else form.times)
        else:
            yield from read_csv(whole, name, "\t" if kind == "tsv" else ",", wanted, form)


def _guess(head: bytes, name: str) -> str:
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.lstrip(_BLANKS)
    if text.startswith(b"{"):
        return "jsonl"
    first = text.split(b"\n", 1)[0]
    if b"\0" in head or not any(sign.encode() in first for sign in DELIMITERS):
        if not text:
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
        check_names(names, name)
        columns = None if wanted is None else [n for n in names if n in wanted]
        at_once = rows_at_once(file, source, name, columns, _ROWS)
        for batch in file.iter_batches(batch_size=at_once, columns=columns):
            table = pa.Table.from_batches([batch])
            rows += len(table)
            yield table if columns is None else pad(table, names)
        if rows != file.metadata.num_rows:  # the reader takes parts of the file at their word
            told = f"it holds {file.metadata.num_rows:,} events by its own account, and {rows:,} were read"
            raise EventError(f"the file is damaged: {told}", source=name)


@contextlib.contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """Turns errors in reading bytes into an `EventError` that names the file."""
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
    """One table of several; a column that one does not have is NULL there, and each value keeps its kind."""
    parts = _alike(parts, source)
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise EventError(first_line(error), source=source) from None


def _alike(parts: list[pa.Table], source: str) -> list[pa.Table]:
    """The same tables, with one type for each column, which holds all values as they are. If a column has several
    types, dictionaries are decoded, and types of different kinds become a union."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in parts:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    for name in (name for name, found in kinds.items() if len(found) > 1):
        having = [i for i, table in enumerate(parts) if name in table.column_names]
        columns = [_decode(parts[i].column(name)) for i in having]
        if together(columns):
            try:
                columns = unite(columns)
            except Odd:
                problem = f"attribute {name} holds values of too many types"
                raise EventError(problem, source=source, attribute=name, hint="flatten nested values first") from None
        for i, column in zip(having, columns, strict=True):
            place = parts[i].column_names.index(name)
            parts = [*parts[:i], parts[i].set_column(place, name, column), *parts[i + 1 :]]
    return parts


def _decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
