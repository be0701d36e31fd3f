"""The memory that the pages of a Parquet file will take, computed before they are decompressed.

A page of some kilobytes can be decompressed to gigabytes, and a text that a dictionary has once can be the value of
every row. The totals at the end of a file may be wrong. So the headers of the pages are read, by which the reader
decompresses them, and the longest text of each dictionary is found.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from spaseq.core.errors import EventError
from spaseq.core.watch import to_hold

_ROOM: Final = 128 << 20
"""Bytes that the rows read at once should take at most."""
_HEADER: Final = 256
"""Bytes that a page's header mostly takes; it may have statistics."""
_LONGEST_HEADER: Final = 1 << 24
_DICTIONARY: Final = 2
"""The type of a page that holds the different values of a column."""
_CODED: Final = {2, 8}
"""Encodings whose values are places in the dictionary."""
_WIDTH: Final = 16
"""Bytes of a value that is not a text, with its overhead."""
_LENGTH: Final = struct.Struct("<I")
_TEXTS: Final = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")


@dataclass(frozen=True, slots=True)
class _Taken:
    """The bytes of a column in a group of rows: for each row (`each`), for a page or two (`page`), and at most (`all`).
    In lists a row may have any number of values: `each` is 0, and `page` is all."""

    each: float
    page: int
    all: float

    def of(self, rows: int) -> float:
        return min(self.all, self.each * rows) + self.page


def rows_at_once(file: Any, source: Any, name: str, wanted: Collection[str] | None, most: int) -> int:
    """The number of rows of a `pyarrow.parquet.ParquetFile` that may be read at once, at most `most`.

    `source`: the file's path or buffer. Raises `LimitReached` or `MemoryError` if the rows take more memory than there
    is, `EventError` if the limits of the pages cannot be found.
    """
    taken: list[list[_Taken]] = []
    with pa.OSFile(source) if isinstance(source, str) else nullcontext(source) as bytes_:
        for group in range(file.metadata.num_row_groups):
            about = file.metadata.row_group(group)
            columns = [about.column(place) for place in range(about.num_columns)]
            taken.append(
                [
                    _memory_of(column, file.schema.column(place), bytes_, name)
                    for place, column in enumerate(columns)
                    if wanted is None or column.path_in_schema.split(".")[0] in wanted
                ]
            )
    rows = most
    while rows > 1 and _need(taken, rows) > _ROOM + _need(taken, 0):
        rows //= 2
    to_hold(int(_need(taken, rows)))
    return rows


def _need(taken: list[list[_Taken]], rows: int) -> float:
    return max((sum(column.of(rows) for column in group) for group in taken), default=0)


def _memory_of(column: Any, about: Any, file: Any, name: str) -> _Taken:
    is_text, values, largest, plain, each, longest = column.physical_type in _TEXTS, 0, 0, 0, 0.0, 0
    coded = 0
    for kind, size, count, encoding, packed in _pages(column, file, name):
        largest = max(largest, size)
        if kind == _DICTIONARY:
            longest = _longest(column, packed, size, file, name) if is_text else 0
        elif encoding in _CODED:
            values, coded = values + count, coded + count
            each = max(each, longest + _WIDTH)
        else:
            values, plain = values + count, plain + size
            each = max(each, size / max(count, 1) + _WIDTH)
    whole = plain + coded * longest + _WIDTH * values
    if about.max_repetition_level:
        return _Taken(0, whole + 2 * largest, 0)
    return _Taken(each, 2 * largest, whole)


def _pages(column: Any, file: Any, name: str) -> Iterator[tuple[int, int, int, int, tuple[int, int]]]:
    """Of each page its type, its size decompressed, its values, their encoding, and its place and size in the file."""
    at = column.data_page_offset
    if column.has_dictionary_page and 0 < (column.dictionary_page_offset or 0) < at:
        at = column.dictionary_page_offset
    left = column.num_values
    while left > 0:
        header, begin = _header(file, at, name)
        try:
            kind, size, packed = header[1], header[2], header[3]
            about = header[{0: 5, 2: 7, 3: 8}[kind]]
            count, encoding = about[1], about[4 if kind == 3 else 2]
        except (KeyError, TypeError):
            if header.get(1) != 1 or not isinstance(header.get(3), int):  # an index: the reader passes over it
                raise _damage_error(name) from None
            kind, size, count, encoding, packed = 1, 0, 0, 0, header[3]
        if min(size, packed, count) < 0:
            raise _damage_error(name)
        yield kind, size, count, encoding, (begin, packed)
        left -= 0 if kind == _DICTIONARY else count
        at = begin + packed


def _longest(column: Any, place: tuple[int, int], size: int, file: Any, name: str) -> int:
    """The bytes of the longest text of a dictionary."""
    begin, packed = place
    to_hold(2 * size)
    data = file.read_at(packed, begin)
    if column.compression != "UNCOMPRESSED":
        codec = {"LZ4": "lz4_raw"}.get(column.compression, column.compression.lower())
        data = pa.Codec(codec).decompress(data, decompressed_size=size, asbytes=True)
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return size
    longest = at = 0
    length_at, last = _LENGTH.unpack_from, len(data) - 4
    while at <= last:
        (length,) = length_at(data, at)
        if length > longest:
            longest = length
        at += 4 + length
    return min(longest, size)


def _damage_error(name: str) -> EventError:
    return EventError("the file is damaged: its pages cannot be told apart", source=name)


# -- the compact protocol of Thrift, in which headers are written


def _header(file: Any, at: int, name: str) -> tuple[dict[int, Any], int]:
    """The header of the page at a place in the file, by the numbers of its fields; and the place behind it."""
    room = _HEADER
    while True:
        data = file.read_at(room, at)
        try:
            fields, end = _struct(data, 0, 0)
            return fields, at + end
        except IndexError:
            if len(data) < room or room >= _LONGEST_HEADER:
                raise _damage_error(name) from None
            room *= 16
        except ValueError:
            raise _damage_error(name) from None


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    fields: dict[int, Any] = {}
    number = 0
    while True:
        head = data[at]
        at += 1
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _zigzag(data, at)
        fields[number], at = _value(data, at, head & 15, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    match kind:
        case 1 | 2:
            return kind == 1, at
        case 3:
            return data[at], at + 1
        case 4 | 5 | 6:
            return _zigzag(data, at)
        case 7:
            return None, at + 8
        case 8:
            size, at = _varint(data, at)
            if at + size > len(data):
                raise IndexError
            return None, at + size
        case 12 if depth < 4:
            return _struct(data, at, depth + 1)
    raise ValueError(kind)


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at
        if shift > 63:
            raise ValueError
