"""CSV and TSV files, block by block: typed as the first block is, texts as dictionaries, errors with their record.

If the caller says nothing, signs are guessed: the quote and the delimiter by the first lines, a decimal comma by all
values of the first block. Arrow reads blocks; it has no separators of thousands, and takes the 31st of February for a
day of March. So columns with these are read as texts and converted here.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from spaseq.core.errors import EventError
from spaseq.core.events.blocks import Joined, check_names, clean, decode, line_blocks, not_utf8, read_some, to_arrow
from spaseq.core.events.mixed import array_of, beyond_exact
from spaseq.core.events.options import TextForm, two_columns
from spaseq.core.events.time import is_date, parse_time, time_by_form, times_by_form
from spaseq.core.kinds import KINDS, TRUTHS

DELIMITERS: Final = (",", ";", "\t", "|")
"""The delimiters that are guessed."""
_SHOWN: Final = {"\t": "tabs"}
_LOOKED_AT: Final = 20
"""Records that the delimiter is guessed by."""
_NULLS: Final = ["", "NULL", "null"]
_LONG: Final = re.compile(rb"[0-9]{16}(?![0-9.])")
_WHOLE: Final = re.compile("-?[0-9]{1,19}")
_INT64: Final = range(-(1 << 63), 1 << 63)
_NEWLINE: Final = 10
_HEAD: Final = 1 << 16
_LONGEST_HEADER: Final = 16 << 20
_FEW_BYTES: Final = 1 << 16
_COMMAS: Final = r"^[ ]*-?([0-9]{1,3}([.][0-9]{3})+|[0-9]+)(,[0-9]+)?[ ]*$"
"""A number with a decimal comma, and perhaps points between groups of three digits."""
_EMPTY_LINES: Final = re.compile(rb"[\r\n]*")
_SAID: Final = {"NUMBER": pa.float64(), "INTEGER": pa.int64(), "TEXT": pa.string()}
"""The types that Arrow reads columns as to which the caller gave a kind; those of other kinds are read as texts."""
_TEXTS: Final = 1 << 16
"""A column of the first block with more different texts is read as plain strings."""


@dataclass(slots=True)
class _Dialect:
    """A file's `header`, its signs, and the types of its columns, as far as they are known.

    `decimal` is None until a first block has decided. `types` are those that the caller gave, and of earlier blocks.
    `said` are the kinds that the caller gave. `grouped` are the columns of numbers with separators of thousands;
    `dated` are those of times in the caller's form. Both are read as texts.
    """

    name: str
    form: TextForm
    delimiter: str
    quote: str
    decimal: str | None
    header: list[str] = field(default_factory=list)
    included: list[str] | None = None
    types: dict[str, pa.DataType] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    grouped: set[str] = field(default_factory=set)
    dated: set[str] = field(default_factory=set)

    def begin(self, header: list[str]) -> None:
        """Take over the names of the columns, and the kinds that the caller gave some of them. A date and a time of day
        are joined as they are written."""
        self.header = header
        for name in header:
            self.form.columns.setdefault(name, self.name)
        words = self.form.column_types
        self.said = {name: KINDS[words[name].upper()] for name in header if name in words}
        joined = (two_columns(time, header) for time in self.form.times)
        self.said |= {name: "TEXT" for pair in joined for name in pair or () if name not in words}
        self.types |= {name: _SAID.get(kind, pa.string()) for name, kind in self.said.items()}

    def options(self, block: bytes) -> dict[str, Any]:
        """The options by which pyarrow reads a block."""
        many = self.quote.encode() in block if self.quote else False
        quote = self.quote or False
        return dict(
            read_options=pa.csv.ReadOptions(column_names=self.header, block_size=max(len(block) + 1, 1 << 10)),
            parse_options=pa.csv.ParseOptions(delimiter=self.delimiter, quote_char=quote, newlines_in_values=many),
        )

    def convert(self, types: dict[str, pa.DataType], included: list[str] | None) -> pa.csv.ConvertOptions:
        """The options by which pyarrow converts the fields of a block."""
        return pa.csv.ConvertOptions(
            column_types=types, null_values=_NULLS, strings_can_be_null=True, quoted_strings_can_be_null=False,
            auto_dict_encode=True, auto_dict_max_cardinality=_TEXTS, include_columns=included or None,
            decimal_point=self.decimal or ".",
        )  # fmt: skip

    def texts(self, block: bytes, columns: list[str]) -> pa.Table:
        """Columns of a block as texts."""
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), null_values=_NULLS, strings_can_be_null=True,
            quoted_strings_can_be_null=False, include_columns=columns,
        )  # fmt: skip
        return pa.csv.read_csv(to_arrow(block), convert_options=convert, **self.options(block))

    def note(self, line: str) -> None:
        self.form.guesses.append(line)


def read_csv(
    stream: Joined, name: str, delimiter: str, wanted: Collection[str] | None = None, form: TextForm | None = None
) -> Iterator[pa.Table]:
    """Blocks of a CSV file, typed as the first (16 MB) is; an integer column may turn to decimals later.

    `delimiter` is the usual one of such files; what `form` does not say is guessed. With `wanted`, the values of other
    columns are not looked at: they are there, and NULL throughout.
    """
    dialect, line, body = _read_header(_with_newlines(stream), name, delimiter, form or TextForm())
    if dialect is None:
        return
    header = dialect.header
    dialect.included = None if wanted is None else [n for n in header if n in wanted]
    for block in line_blocks(body, name, dialect.quote.encode()):
        if _EMPTY_LINES.fullmatch(block):
            line += block.count(b"\n")
            continue
        table = _csv_block(block, dialect, line)
        for field_ in table.schema:
            if not pa.types.is_null(field_.type):
                kind = pa.float64() if pa.types.is_union(field_.type) else field_.type
                dialect.types.setdefault(field_.name, kind)
        line += int(np.count_nonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
        if table.num_rows:
            yield table if dialect.included is None else pad(table, header)


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


def _read_header(stream: Joined, name: str, delimiter: str, form: TextForm) -> tuple[_Dialect | None, int, Joined]:
    """Read the column names from the first line that is not blank, and guess the signs by it and by those behind it.

    Returns what is known, None for a stream without such a line, the number of the line after it, and the stream from
    there.
    """
    blank, line = _blank_lines(form.delimiter or delimiter), 1
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
    quote = _guess_quote(text, form) if form.quote is None else form.quote
    found = form.delimiter or _guess_delimiter(head, delimiter, quote, form.decimal)
    dialect = _Dialect(name, form, found, quote, form.decimal)
    try:
        names = [n.strip() for n in next(_records([text], found, quote), [])]
    except csv.Error as error:
        raise EventError(f"the line of column names cannot be read: {error}", source=name, record=line) from None
    check_names(names, name, line)
    dialect.begin(names)
    if found != (form.delimiter or delimiter):
        sign = _SHOWN.get(found, found)
        dialect.note(f'the fields of {name} are separated by {sign} (delimiter="SIGN" names another sign)')
    if quote != '"' and form.quote is None:
        dialect.note(f'the fields of {name} stand between {quote} (quote="none" takes them for a part)')
    return dialect, line + 1, Joined(rest, stream)


def _blank_lines(delimiter: str) -> re.Pattern[bytes]:
    """The lines that may stand before the column names; byte order marks are as blanks."""
    other = b"" if delimiter == "\t" else rb"\t"
    return re.compile(rb"(?:(?:\xef\xbb\xbf|[ \r" + other + rb"])*\n)+")


def _records(lines: Any, delimiter: str, quote: str) -> Iterator[list[str]]:
    if quote:
        return csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True)
    return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE, strict=True)


def _guess_quote(header: str, form: TextForm) -> str:
    """The sign around fields: `'` if it stands around every name of a column, of which there are several."""
    for sign in (form.delimiter,) if form.delimiter else DELIMITERS:
        names = [name.strip() for name in header.split(sign)]
        if len(names) > 1 and all(len(name) > 1 and name[0] == "'" == name[-1] for name in names):
            return "'"
    return '"'


def _guess_delimiter(head: bytes, usual: str, quote: str, decimal: str | None) -> str:
    """The delimiter that cuts the header and the first records into equally many fields, and the more the better; the
    usual one, if none does or it is as good. It is not the sign before decimals. `head` begins with the header and may
    end within a record."""
    usual = ";" if usual == decimal else usual
    signs = (usual, *(sign for sign in DELIMITERS if sign not in (usual, decimal)))
    widths = {sign: _widths(head, sign, quote) for sign in signs}
    found = [sign for sign, seen in widths.items() if len(seen) == 1 and seen != {1}]
    return max(found, key=lambda sign: max(widths[sign]), default=usual)


def _widths(head: bytes, delimiter: str, quote: str) -> set[int]:
    """The numbers of fields of the first records; empty if they cannot be read. The last record does not count, as it
    may be cut off, unless it is the only one."""
    lines = io.StringIO(head.decode("utf-8", "replace"), newline="")
    try:
        records = [record for record in islice(_records(lines, delimiter, quote), _LOOKED_AT + 1) if record]
    except csv.Error:
        return set()
    return {len(record) for record in (records if head.endswith(b"\n") else records[:1] + records[1:-1])}


def _csv_block(block: bytes, dialect: _Dialect, line: int) -> pa.Table:
    if dialect.decimal is None:
        _decide_decimal(block, dialect)
    options = dialect.options(block)
    types = {**dialect.types, **dict.fromkeys(dialect.grouped | dialect.dated, pa.string())}
    while True:
        try:
            convert = dialect.convert(types, dialect.included)
            table = pa.csv.read_csv(to_arrow(block), convert_options=convert, **options)
        except pa.ArrowInvalid as error:
            column = _failed_column(str(error), dialect.header)
            kind = None if column is None else types.get(column)
            if column is not None and kind == pa.int64() and column not in dialect.said:
                types[column] = pa.float64()
            elif column is not None and kind in (pa.int64(), pa.float64()) and dialect.decimal == ",":
                types[column] = pa.string()
                dialect.grouped.add(column)
            elif options["read_options"].use_threads:
                options["read_options"].use_threads = False  # only then the message names the row
            else:
                raise _csv_error(str(error), column, block, dialect, line) from None
        else:
            odd = next((f.name for f in table.schema if _is_binary(f.type)), None)
            if odd is not None:
                raise _csv_error("invalid UTF-8", odd, block, dialect, line)
            return _with_whole(_with_converted(table, block, dialect, line), block, dialect)


def _decide_decimal(block: bytes, dialect: _Dialect) -> None:
    """Sets a decimal comma if fields are separated by `;` and all values of some column have one, or are whole.

    It looks at all columns, so that the answer does not depend on those that are wanted."""
    dialect.decimal = "."
    if dialect.delimiter != ";" or b"," not in block:
        return
    try:
        table = pa.csv.read_csv(to_arrow(block), convert_options=dialect.convert({}, None), **dialect.options(block))
    except pa.ArrowInvalid:
        return  # the block is read again, and the error reported then
    for name in table.column_names:
        texts = None if dialect.said.get(name) == "TEXT" else _different_texts(table[name])
        if texts is not None and _all_match(texts, _COMMAS):
            commas = texts.filter(pc.match_substring(texts, ","))
            if len(commas):
                dialect.decimal = ","
                dialect.note(
                    f"the numbers of {dialect.name} have a decimal comma, as {commas[0].as_py().strip()} in {name} "
                    '(decimal="." takes them for texts)'
                )
                return


def _different_texts(column: pa.ChunkedArray) -> pa.StringArray | None:
    """The different texts of a column; None if it is none of texts, or has no value."""
    kind = column.type
    if pa.types.is_dictionary(kind) and kind.value_type == pa.string():
        column = column.unify_dictionaries()
        texts = column.chunk(0).dictionary if column.num_chunks else pa.array([], pa.string())
    elif kind == pa.string():
        texts = pc.drop_null(pc.unique(column))
    else:
        return None
    return texts if len(texts) else None


def _all_match(texts: pa.StringArray, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is True


def _with_converted(table: pa.Table, block: bytes, dialect: _Dialect, line: int) -> pa.Table:
    """The table with the values that Arrow does not read. These are numbers with separators of thousands, times in the
    caller's form, and truth values and times of columns to which the caller gave these kinds."""
    for name in dialect.said.keys() & set(table.column_names):
        if dialect.said[name] not in _SAID:
            table = _set(table, name, _as_said(table[name], name, block, dialect, line))
    new = [name for name in table.column_names if name not in dialect.types]
    if dialect.decimal == ",":
        for name in new:
            texts = _different_texts(table[name])
            if texts is not None and _all_match(texts, _COMMAS) and _are_grouped(texts):
                dialect.grouped.add(name)
        for name in dialect.grouped.intersection(table.column_names):
            table = _set(table, name, _join_groups(table[name], name, block, dialect, line))
    if dialect.form.time_format is not None:
        table = _with_times(table, new, block, dialect, line)
    _note_zeros(table, new, block, dialect)
    return table


def _note_zeros(table: pa.Table, new: list[str], block: bytes, dialect: _Dialect) -> None:
    """Add a note for each column of whole numbers that lost zeros: all are digits of one length, some begin with 0.

    PERF: 0.2 ms a file. The first lines tell the length of the digits. Only if the least number is shorter, the whole
    block is read as texts.
    """
    numbers = [name for name in new if table[name].type == pa.int64() and name not in dialect.form.times]
    end = block.rfind(b"\n", 0, _FEW_BYTES) + 1
    head = block if not end or (dialect.quote and dialect.quote.encode() in block[:end]) else block[:end]
    texts = dialect.texts(head, numbers) if numbers else pa.table({})
    for name in numbers:
        length = _length_of_digits(texts[name])
        if not length or pc.min(table[name]).as_py() >= 10 ** (length - 1):
            continue
        whole = texts if head is block else dialect.texts(block, [name])
        if _length_of_digits(whole[name]) == length:
            shortest = pc.min(whole[name]).as_py()
            dialect.note(f'{shortest} in {name} of {dialect.name} is read as the number {int(shortest)} '
                         f'(column_types="{name}=TEXT" keeps the zeros)')  # fmt: skip


def _length_of_digits(texts: pa.ChunkedArray) -> int:
    """The number of digits of each text, if all are digits, and equally many, more than one; else 0."""
    ends = pc.min_max(pc.utf8_length(texts)).as_py()
    length = int(ends["min"] or 0)
    alike = length == ends["max"] and length > 1
    return length if alike and pc.all(pc.utf8_is_digit(texts)).as_py() else 0


def _are_grouped(texts: pa.StringArray) -> bool:
    """True if such texts are hardly anything but numbers: 192.168.100.200 alone is none."""
    return bool(pc.any(pc.match_substring(texts, ",")).as_py()) or pc.max(pc.count_substring(texts, ".")).as_py() < 3


def _set(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _as_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column of texts as one dictionary array."""
    found = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def _join_groups(column: pa.ChunkedArray, name: str, block: bytes, dialect: _Dialect, line: int) -> pa.Array:
    """Texts such as 1.234,56 as numbers: whole ones exactly, if all are whole and the caller does not say NUMBER."""
    whole, kind = _as_dictionary(column), dialect.said.get(name)
    texts = whole.dictionary
    odd = pc.invert(pc.match_substring_regex(texts, _COMMAS))
    if kind == "INTEGER":
        odd = pc.or_(odd, pc.match_substring(texts, ","))
    if pc.any(odd).as_py():
        raise _odd_text(whole, pc.index(odd, True).as_py(), name, pa.float64(), block, dialect, line)
    plain = pc.replace_substring(pc.replace_substring(pc.utf8_trim_whitespace(texts), ".", ""), ",", ".")
    numbers: pa.Array
    try:
        numbers = pc.cast(plain, pa.float64() if kind == "NUMBER" else pa.int64())
    except pa.ArrowInvalid:
        if kind == "INTEGER":  # beyond 64 bits
            longest = max(range(len(plain)), key=lambda i: len(plain[i].as_py()))
            raise _odd_text(whole, longest, name, pa.int64(), block, dialect, line) from None
        numbers = pc.cast(plain, pa.float64())
    if pa.types.is_floating(numbers.type) and beyond_exact(pa.chunked_array([numbers])):
        return array_of([_number(text) for text in plain.take(whole.indices).to_pylist()])
    return numbers.take(whole.indices)


def _as_said(column: pa.ChunkedArray, name: str, block: bytes, dialect: _Dialect, line: int) -> pa.Array:
    """Texts as the truth values or times that the caller said they are. `EventError` for another text.

    PERF: 3 µs for each different time, 1 µs if `times_by_form` reads them."""
    whole, kind, form = _as_dictionary(column), dialect.said[name], dialect.form.time_format
    times = times_by_form(whole.dictionary, form) if kind == "TIMESTAMP" and form is not None else None
    texts = whole.dictionary.to_pylist()
    values = [_value_said(text, kind, form) for text in texts] if times is None else times.tolist()
    if None in values:
        raise _odd_text(whole, values.index(None), name, None, block, dialect, line)
    numbers, wanted = (np.uint8, pa.bool_()) if kind == "BOOLEAN" else (np.int64, pa.timestamp("ns", "UTC"))
    buffers = [None, pa.py_buffer(np.array(values, numbers))]  # pa.array would import pandas if it can
    made = pa.Array.from_buffers(pa.from_numpy_dtype(numbers), len(values), buffers)
    return made.cast(wanted).take(whole.indices)


def _value_said(text: str, kind: str, form: str | None) -> bool | int | None:
    """The truth value, or the time in ns, of a text; None if it is none."""
    if kind == "BOOLEAN":
        return TRUTHS.get(text.strip().lower())
    with suppress(EventError):
        return time_by_form(text, form) if form is not None else parse_time(text) if is_date(text) else None
    return None


def _with_times(table: pa.Table, new: list[str], block: bytes, dialect: _Dialect, line: int) -> pa.Table:
    """The table with a column of times for each of texts that are all of the caller's form, and for the columns that
    hold times, whatever they look like. Columns are decided on with the first values that they have."""
    form = dialect.form.time_format
    assert form is not None
    again = [f.name for f in table.schema if f.name in new and _may_be_times(f, dialect.form.times)]
    if again:
        texts = dialect.texts(block, again)
        for name in again:
            if times_by_form(_as_dictionary(texts[name]).dictionary, form) is not None:
                dialect.dated.add(name)
                table = _set(table, name, texts[name])
    for name in dialect.dated.intersection(table.column_names):
        column = _as_dictionary(table[name])
        times = times_by_form(column.dictionary, form)
        if times is None:
            texts = column.dictionary
            odd = next(code for code in range(len(texts)) if times_by_form(texts[code : code + 1], form) is None)
            raise _odd_text(column, odd, name, pa.timestamp("ns"), block, dialect, line)
        kept = pa.Array.from_buffers(pa.timestamp("ns"), len(times), [None, pa.py_buffer(times)])
        table = _set(table, name, kept.take(column.indices))
    return table


def _may_be_times(column: pa.Field, times: tuple[str, ...]) -> bool:
    """True of texts, of what pyarrow took for times, and of numbers in a column that times may be taken from."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_null(kind):
        return False
    return kind == pa.string() or pa.types.is_temporal(kind) or column.name in times


def _with_whole(table: pa.Table, block: bytes, dialect: _Dialect) -> pa.Table:
    """The table with exact whole numbers: columns of doubles that may have rounded some are read again."""
    far = [
        f.name
        for f in table.schema
        if f.type == pa.float64() and f.name not in dialect.grouped and beyond_exact(table[f.name])
    ]
    if not far or _LONG.search(block) is None:
        return table
    texts = dialect.texts(block, far)
    for column in far:
        numbers = [_number(text, dialect.decimal or ".") for text in texts[column].to_pylist()]
        table = _set(table, column, array_of(numbers))
    return table


def _number(text: str | None, point: str = ".") -> int | float | None:
    """The number of a text that was read as a double: an int if it is a whole number of 64 bits, else a float."""
    if text is None:
        return None
    if _WHOLE.fullmatch(text.strip()) and int(text) in _INT64:
        return int(text)
    return float(text.replace(point, "."))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind.value_type if pa.types.is_dictionary(kind) else kind))


def pad(table: pa.Table, header: list[str]) -> pa.Table:
    """The table with all columns of the header, those that it does not have being NULL."""
    nothing = pa.nulls(table.num_rows)
    return pa.table({n: table[n] if n in table.column_names else nothing for n in header})


def _failed_column(message: str, header: list[str]) -> str | None:
    match = re.search(r"In CSV column #(\d+)", message)
    return header[int(match[1])] if match and int(match[1]) < len(header) else None


def _csv_error(message: str, column: str | None, block: bytes, dialect: _Dialect, line: int) -> EventError:
    name, row = dialect.name, re.search(r"Row #(\d+)", message)
    record = None if row is None else _line_of(int(row[1]) - 1, block, dialect, line)
    if match := re.search(r"Expected (\d+) columns, got (\d+)", message):
        hint = ""
        if match[1] == "1":  # the delimiter is not what was guessed
            hint = 'delimiter=";" (or another sign) names what separates the fields'
        return EventError(
            f"this record has {match[2]} fields and the header names {match[1]}", source=name, record=record, hint=hint
        )
    if "UTF8" in message or "UTF-8" in message:
        at = next((i for i, text in enumerate(block.split(b"\n")) if not _is_utf8(text)), 0)
        return not_utf8(name, line + at)
    value = re.search(r"invalid value '(.*?)'", message)
    if column is not None and value is not None:
        return _odd_value(value[1], column, dialect.types.get(column), block, dialect, line, record)
    return EventError(clean(message), source=name)


def _odd_text(
    column: pa.DictionaryArray, code: int, name: str, kind: pa.DataType | None, block: bytes, dialect: _Dialect,
    line: int,
) -> EventError:  # fmt: skip
    """`_odd_value` of the first field that holds the text of a code."""
    row = pc.index(column.indices, pa.scalar(code, column.indices.type)).as_py()
    record = _line_of(row, block, dialect, line)
    return _odd_value(column.dictionary[code].as_py(), name, kind, block, dialect, line, record)


def _odd_value(
    value: str, column: str, kind: pa.DataType | None, block: bytes, dialect: _Dialect, line: int,
    record: int | None = None,
) -> EventError:  # fmt: skip
    """The error for a value of another kind than those of its column before, or than the caller said."""
    if record is None:
        at = block.find(value.encode())
        record = line + block.count(b"\n", 0, at) if at >= 0 and value else None
    wanted = dialect.said.get(column)
    if wanted is None:
        problem = f"attribute {column} is {value!r} here, and {_kind_words(kind)} in the records before"
        hint = "one attribute holds numbers, or texts, or booleans, or times, all along the stream"
    else:
        problem = f"attribute {column} is {value!r} here, and --column-types says {dialect.form.column_types[column]}"
        hint = f'column_types="{column}=TEXT" takes every value as it is'
        if wanted == "TIMESTAMP":
            hint = f'time_format="%d.%m.%Y %H:%M" reads other forms of times; {hint}'
    if dialect.decimal == "." and dialect.form.decimal is None and re.fullmatch(_COMMAS, value) and "," in value:
        hint = 'decimal="," reads numbers with a decimal comma'
    return EventError(problem, source=dialect.name, record=record, attribute=column, hint=hint)


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


def _line_of(row: int, block: bytes, dialect: _Dialect, line: int) -> int | None:
    """The line on which a row of a block begins; rows count from 0, without empty lines. O(bytes before it)."""
    if not dialect.quote or dialect.quote.encode() not in block:
        lines = (at for at, text in enumerate(block.split(b"\n"), line) if text.strip(b"\r"))
        return next(islice(lines, row, None), None)
    records: Any = _records(io.StringIO(block.decode("utf-8", "replace"), newline=""), dialect.delimiter, dialect.quote)
    begins = line
    with suppress(csv.Error):
        for record in records:
            if record and not row:
                return begins
            row, begins = row - bool(record), line + int(records.line_num)
    return None
