"""Readers: any source of events becomes a sequence of Arrow tables.

`tables(source)` takes one of these, or an iterable of them:

* a path: CSV, TSV, JSON Lines, Parquet; `.gz` and `.zst`; a glob; `-` for standard input; or several paths;
* a `GrowingFile`;
* a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars frame;
* a list of dicts or named tuples.

`held_tables(source)` takes the same except paths: no file is opened for events that are pushed. Files are read in
blocks, so that a file larger than memory streams through. A thread reads a block or two ahead of the consumer. Errors
name file and record.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, Literal

import pyarrow as pa

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.ahead import ahead
from spaseq.core.events.blocks import Joined, Recoded, check_names, first_line, read_some
from spaseq.core.events.columns import NO_VALUE
from spaseq.core.events.csv_files import DELIMITERS, pad, read_csv
from spaseq.core.events.growing import GrowingBytes, GrowingFile, InTurn
from spaseq.core.events.json_lines import read_json_lines
from spaseq.core.events.mixed import Odd, array_of, together, unite
from spaseq.core.events.options import TextForm
from spaseq.core.events.parquet_pages import rows_at_once
from spaseq.core.events.places import matching
from spaseq.core.events.timestamps import INDEX
from spaseq.core.measure import shorten

_EVENTS: Final = "<events>"
"""The name in errors of events that come from no file."""
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
_SURROGATE_HINT: Final = "\\ud800 to \\udfff stand for a character only in pairs, the first one below \\udc00"
_FORMAT_HINT: Final = "events are read from .csv, .tsv, .jsonl and .parquet files, plain or compressed (.gz, .zst)"


def source_name(source: object) -> str:
    """The name of a source in errors."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    if isinstance(source, list | tuple) and source and all(isinstance(s, str | os.PathLike) for s in source):
        return source_name(source[0])
    if isinstance(source, GrowingFile):
        return source.name
    return _EVENTS


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
            raise _no_events(source)
    elif isinstance(source, GrowingFile):
        yield from _growing_folder(source, wanted, form) if source.is_folder else _growing(source, wanted, form)
    elif isinstance(source, Mapping) or _is_record(source):
        raise OptionError(f"a {type(source).__name__} is one event, and a list of events is expected", "give [event]")
    else:
        yield from _in_memory(source, lambda part: named_tables(part, wanted, form))


def held_tables(source: Any) -> Iterator[pa.Table]:
    """The events of `source`, which are pushed, as `tables` gives them: from memory, never from a file. One event needs
    no list.

    Raises `OptionError` for a text or a path.
    """
    return (table for _, table in _tables_in_memory(source))


def _tables_in_memory(source: Any) -> Iterator[tuple[str, pa.Table]]:
    if isinstance(source, str | os.PathLike | GrowingFile):
        problem = f"a push takes events, and this is a text or a path: {shorten(str(source), 60)!r}"
        raise OptionError(problem, "query.run(path) reads a file; an event is a dict")
    if isinstance(source, Mapping) or _is_record(source):
        yield _EVENTS, from_dicts([source])
    elif isinstance(source, Iterator) and not isinstance(source, pa.RecordBatchReader):
        yield from _tables_in_memory(list(source))
    else:
        yield from _in_memory(source, _tables_in_memory)


def _in_memory(
    source: Any, parts_of: Callable[[Any], Iterator[tuple[str, pa.Table]]]
) -> Iterator[tuple[str, pa.Table]]:
    """The tables of a frame, a list of events or an iterable, each part of which is read by `parts_of`."""
    if isinstance(source, pa.Table):
        yield _EVENTS, source
    elif isinstance(source, pa.RecordBatch):
        yield _EVENTS, pa.Table.from_batches([source])
    elif isinstance(source, pa.RecordBatchReader):
        for batch in source:
            yield _EVENTS, pa.Table.from_batches([batch])
    elif isinstance(source, type) or hasattr(source, "__dataclass_fields__"):
        raise _no_events(source)
    elif hasattr(source, "collect") and hasattr(source, "lazy"):
        yield _EVENTS, _table(source, source.collect().to_arrow())
    elif hasattr(source, "to_arrow"):
        yield _EVENTS, _table(source, source.to_arrow())
    elif hasattr(source, "iloc"):
        yield _EVENTS, _from_pandas(source)
    elif isinstance(source, list) and (not source or isinstance(source[0], Mapping) or _is_record(source[0])):
        yield _EVENTS, from_dicts(source)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | bytearray | memoryview | pa.Array):
        for part in source:
            yield from parts_of([part] if isinstance(part, Mapping) or _is_record(part) else part)
    else:
        raise _no_events(source)


def _with_name(name: str, found: Iterable[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    return ((name, table) for table in found)


def _table(source: object, made: object) -> pa.Table:
    """`made` of a frame; a series makes something else."""
    if not isinstance(made, pa.Table):
        raise _no_events(source)
    return made


def _is_record(value: object) -> bool:
    """True of a named tuple, which is an event as a dict is."""
    return isinstance(value, tuple) and hasattr(value, "_asdict")


def _no_events(source: object) -> OptionError:
    taken = "events are dicts or named tuples, in a list, or a pyarrow Table, or a pandas or Polars frame"
    if hasattr(source, "__dataclass_fields__"):
        taken = "dataclasses.asdict(event) makes a dict of it; " + taken
    return OptionError(f"a {type(source).__name__} holds no events", taken)


def _from_pandas(frame: Any) -> pa.Table:
    if not hasattr(frame, "columns"):
        raise _no_events(frame)
    mixed: dict[str, pa.Array] = {}
    try:
        names = [name for name, kind in frame.dtypes.items() if str(kind) == "object"]
        if names and frame.columns.is_unique:
            from pandas.api.types import infer_dtype

            names = [name for name in names if infer_dtype(frame[name]).startswith("mixed")]
            arrays = {name: _values(frame[name].tolist(), str(name)) for name in names}
            mixed = {str(name): array for name, array in arrays.items() if pa.types.is_union(array.type)}
            frame = frame.assign(**{name: None for name in names if str(name) in mixed}) if mixed else frame
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:  # sparse columns, two of one name
        raise EventError(f"the frame cannot be read as columns: {first_line(error)}") from None
    for name, array in mixed.items():
        table = table.set_column(table.column_names.index(name), name, array)
    return _with_index(table, frame.index)


def _with_index(table: pa.Table, index: Any) -> pa.Table:
    """The table with an index of times as its last column, under its name, or `INDEX`; if no column is called so."""
    if not str(getattr(index, "dtype", "")).startswith("datetime64"):
        return table
    name = index.name if isinstance(index.name, str) else INDEX
    if not table.num_columns:
        return pa.table({name: pa.Array.from_pandas(index)})
    return table if name in table.column_names else table.append_column(name, pa.Array.from_pandas(index))


def frame_of(rows: Callable[[], pa.Table], library: Literal["pandas", "polars"] = "pandas") -> Any:
    """The rows as a `DataFrame` of a library. `OptionError` if it is not installed, before any are made."""
    try:
        if library == "polars":
            import polars
        else:
            import pandas  # noqa: F401
    except ImportError:
        hint = f"install {library}, or take to_arrow(), whose tables pandas, Polars, DuckDB and others read"
        raise OptionError(f"to_{library} needs {library}, which is not installed", hint) from None
    return polars.from_arrow(rows()) if library == "polars" else rows().to_pandas()


def _mapping(event: Any, record: int) -> Mapping[str, Any]:
    """An event of a list as a mapping. Raises `EventError` if it is none."""
    if isinstance(event, Mapping):
        return event
    if _is_record(event):
        made: dict[str, Any] = event._asdict()
        return made
    raise EventError(f"{type(event).__name__} is not an event", record=record, hint="an event is a dict")


def from_dicts(events: Sequence[Any]) -> pa.Table:
    """A table of a list of dicts or named tuples; a key that an event does not have is NULL."""
    names: dict[str, None] = {}
    for event in events:
        if not isinstance(event, Mapping):
            return from_dicts([_mapping(event, record) for record, event in enumerate(events, 1)])
        names.update(dict.fromkeys(event))
    for name in names:
        if not _is_text(str(name)):
            raise EventError(f"the name of an attribute, {name!r}, is no Unicode text", hint=_SURROGATE_HINT)
    columns = {str(name): _values([event.get(name) for event in events], str(name)) for name in names}
    return pa.table(columns) if columns else pa.Table.from_struct_array(pa.array(events, pa.struct([])))


def _values(values: list[Any], name: str) -> pa.Array:
    try:
        return array_of(values)
    except UnicodeEncodeError:
        odd = next((i for i, v in enumerate(values) if not _is_text(str(v))), 0)
        problem = f"attribute {name} is {values[odd]!r:.100}, which is no Unicode text"
        raise EventError(problem, record=odd + 1, attribute=name, hint=_SURROGATE_HINT) from None
    except Odd as odd_value:
        raise _not_a_column(values, odd_value.row, name) from None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_a_column(values: list[Any], odd: int, name: str) -> EventError:
    """Why the value at `odd` is in no column: it is of a kind that columns do not have."""
    if type(values[odd]) is int:
        problem, hint = f"attribute {name} holds a whole number of more than 64 bits", "write such numbers as floats"
    else:
        problem = f"attribute {name} holds values of no known kind: {type(values[odd]).__name__}"
        hint = NO_VALUE
    return EventError(problem, record=odd + 1, attribute=name, hint=hint)


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
            yield from _parquet(pa.BufferReader(whole.read()), name, wanted)
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
