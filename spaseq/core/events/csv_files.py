"""CSV and TSV files, block by block: typed as the first block is, texts as dictionaries, errors with their record."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from spaseq.core.errors import EventError
from spaseq.core.events.blocks import Joined, check_names, clean, decode, line_blocks, not_utf8, read_some
from spaseq.core.events.mixed import array_of, beyond_exact

_NULLS: Final = ["", "NULL", "null"]
_LONG: Final = re.compile(rb"[0-9]{16}[\s,;\"]")
_WHOLE: Final = re.compile("-?[0-9]{1,19}")
_INT64: Final = range(-(1 << 63), 1 << 63)
_NEWLINE: Final = 10
_HEAD: Final = 1 << 16
_LONGEST_HEADER: Final = 16 << 20
_BLANK_LINES: Final = {
    delimiter: re.compile(rb"(?:(?:\xef\xbb\xbf|[ \r" + other + rb"])*\n)+")
    for delimiter, other in ((",", rb"\t"), ("\t", b""))
}
"""The lines that may stand before the column names, by delimiter; byte order marks are as blanks."""
_EMPTY_LINES: Final = re.compile(rb"[\r\n]*")
_TEXTS: Final = 1 << 16
"""A column of the first block with more different texts is read as plain strings."""


def read_csv(stream: Joined, name: str, delimiter: str, wanted: Collection[str] | None = None) -> Iterator[pa.Table]:
    """Blocks of a CSV file, typed as the first (16 MB) is; an integer column may turn to decimals later.

    With `wanted`, the values of other columns are not looked at: they are there, and NULL throughout.
    """
    header, line, body = _read_header(_with_newlines(stream), name, delimiter)
    if header is None:
        return
    included = None if wanted is None else [n for n in header if n in wanted]
    widened: dict[str, pa.DataType] = {}
    for block in line_blocks(body, name, quoted=True):
        if _EMPTY_LINES.fullmatch(block):
            line += block.count(b"\n")
            continue
        table = _csv_block(block, header, widened, delimiter, name, line, included)
        for field in table.schema:
            if not pa.types.is_null(field.type):
                kind = pa.float64() if pa.types.is_union(field.type) else field.type
                widened.setdefault(field.name, kind)
        line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        if table.num_rows:
            yield table if included is None else pad(table, header)


def _with_newlines(stream: Joined) -> Joined:
    """The stream with newlines as line ends, if its lines end with bare carriage returns (as the first 64 kB do)."""
    head = read_some(stream, _HEAD)
    if b"\r" in head and b"\n" not in head and head.index(b"\r") < len(head) - 1:
        return Joined(head.replace(b"\r", b"\n"), _CarriageReturns(stream))
    return Joined(head, stream)


class _CarriageReturns:
    """A stream of bytes whose lines end with carriage returns, read as one whose lines end with newlines."""

    def __init__(self, stream: Joined) -> None:
        self._stream = stream
        self.live = stream.live

    def read(self, size: int = -1) -> bytes:
        return self._stream.read(size).replace(b"\r", b"\n")


def _read_header(stream: Joined, name: str, delimiter: str) -> tuple[list[str] | None, int, Joined]:
    """Read the column names from the first line that is not blank.

    Returns them, None for a stream without such a line, the number of the line after them, and the stream from there.
    """
    blank, line = _BLANK_LINES[delimiter], 1
    head = read_some(stream, _HEAD)
    while True:
        passed = blank.match(head)
        if passed is not None:
            line += head.count(b"\n", 0, passed.end())
            head = head[passed.end() :]
        if b"\n" in head or len(head) >= _LONGEST_HEADER or not (more := read_some(stream, _HEAD)):
            break
        head += more
    first, _, rest = head.partition(b"\n")
    if b"\0" in first:
        raise not_utf8(name, line)
    text = decode(first, name, line).rstrip("\r")
    if not text.strip() and not rest:
        return None, line, stream
    try:
        names = [n.strip() for n in next(csv.reader([text], delimiter=delimiter, strict=True), [])]
    except csv.Error as error:
        raise EventError(f"the line of column names cannot be read: {error}", source=name, record=line) from None
    check_names(names, name, line)
    return names, line + 1, Joined(rest, stream)


def _csv_block(
    block: bytes, header: list[str], known: dict[str, pa.DataType], delimiter: str, name: str, line: int,
    included: list[str] | None,
) -> pa.Table:  # fmt: skip
    options: dict[str, Any] = dict(
        read_options=pa.csv.ReadOptions(column_names=header, block_size=max(len(block) + 1, 1 << 10)),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block),
    )
    types = dict(known)
    while True:
        convert = pa.csv.ConvertOptions(
            column_types=types, null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False,
            auto_dict_encode=True, auto_dict_max_cardinality=_TEXTS, include_columns=included or None,
        )  # fmt: skip
        try:
            table = pa.csv.read_csv(pa.BufferReader(block), convert_options=convert, **options)
        except pa.ArrowInvalid as error:
            column = _failed_column(str(error), header)
            if column is not None and types.get(column) == pa.int64():
                types[column] = pa.float64()
            elif options["read_options"].use_threads:
                options["read_options"].use_threads = False  # only then the message names the row
            else:
                raise _csv_error(str(error), column, types, block, name, line) from None
        else:
            odd = next((f.name for f in table.schema if _is_binary(f.type)), None)
            if odd is not None:
                raise _csv_error("invalid UTF-8", odd, types, block, name, line)
            return _with_whole(table, block, options)


def _with_whole(table: pa.Table, block: bytes, options: dict[str, Any]) -> pa.Table:
    """The table with exact whole numbers: columns of doubles that may have rounded some are read again."""
    far = [f.name for f in table.schema if f.type == pa.float64() and beyond_exact(table[f.name])]
    if not far or _LONG.search(block) is None:
        return table
    again = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(far, pa.string()), null_values=_NULLS, strings_can_be_null=True,
        quoted_strings_can_be_null=False, include_columns=far,
    )  # fmt: skip
    texts = pa.csv.read_csv(pa.BufferReader(block), convert_options=again, **options)
    for column in far:
        numbers = [_number(text) for text in texts[column].to_pylist()]
        table = table.set_column(table.column_names.index(column), column, array_of(numbers))
    return table


def _number(text: str | None) -> int | float | None:
    """The number of a text that was read as a double: an int if it is a whole number of 64 bits, else a float."""
    if text is None:
        return None
    if _WHOLE.fullmatch(text.strip()) and int(text) in _INT64:
        return int(text)
    return float(text)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind.value_type if pa.types.is_dictionary(kind) else kind))


def pad(table: pa.Table, header: list[str]) -> pa.Table:
    """The table with all columns of the header, those that it does not have being NULL."""
    nothing = pa.nulls(table.num_rows)
    return pa.table({n: table[n] if n in table.column_names else nothing for n in header})


def _failed_column(message: str, header: list[str]) -> str | None:
    match = re.search(r"In CSV column #(\d+)", message)
    return header[int(match[1])] if match and int(match[1]) < len(header) else None


def _csv_error(
    message: str, column: str | None, types: dict[str, pa.DataType], block: bytes, name: str, line: int
) -> EventError:
    if match := re.search(r"Expected (\d+) columns, got (\d+)", message):
        record = _line_of_row(message, block, line)
        return EventError(
            f"this record has {match[2]} fields and the header names {match[1]}", source=name, record=record
        )
    if "UTF8" in message or "UTF-8" in message:
        at = next((i for i, text in enumerate(block.split(b"\n")) if not _is_utf8(text)), 0)
        return not_utf8(name, line + at)
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
    return EventError(clean(message), source=name)


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


def _line_of_row(message: str, block: bytes, line: int) -> int | None:
    """The line of the row that a message names; rows count from 1 in the block, without empty lines."""
    match = re.search(r"Row #(\d+)", message)
    if match is None:
        return None
    rows = (at for at, text in enumerate(block.split(b"\n"), line) if text.strip(b"\r"))
    return next(islice(rows, int(match[1]) - 1, None), None)
