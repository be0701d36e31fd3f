"""JSON Lines, block by block: one object a line, read by pyarrow if its reader can be trusted with the block.

pyarrow's reader has five faults here. It takes a `null` for an object without attributes; as the first value of a
block, `null` ends the process. It takes two objects on a line for two lines. It accepts any depth until the stack is
used up. It does not check that texts are UTF-8. It makes lists with nulls that are longer than their values. So a block
goes to it only if each line looks like one object of bounded depth, and it must read as many objects as there are
lines. Any other block is read line by line, which is slow, but errors then name the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.json

from spaseq.core.errors import EventError
from spaseq.core.events.blocks import Joined, decode, line_blocks, to_arrow
from spaseq.core.events.mixed import DEEPEST, beyond_exact
from spaseq.core.watch import to_hold

_BRACKETS: Final = 200
"""Brackets that a line may open and be given to pyarrow's reader, which recurses for each that is open."""
_MARGIN: Final = 8
"""Blanks before and behind the object of a line, given to pyarrow's reader."""
_NULL_IN_LIST: Final = re.compile(rb"[\[,]\s*null")
_LONG: Final = re.compile(rb"[0-9]{16}\s*[,}]")
_VALUE: Final = 80
"""Bytes of a value in memory, at most, and of its place in a list, but for its text."""
_SHORT: Final = 19
"""So many digits with a sign are within 64 bits, if they are fewer."""
_END: Final = 1 << 63
_NEWLINE: Final = 10
_OPENING: Final = np.isin(np.arange(256), list(b"[{"))
_BLANK: Final = np.isin(np.arange(256), list(b" \t\r"))


def read_json_lines(
    stream: Joined, name: str, from_dicts: Callable[[list[dict[str, Any]]], pa.Table], texts: Collection[str] = ()
) -> Iterator[pa.Table]:
    """Tables of the objects in a stream of bytes; empty lines are passed over.

    `texts` are the attributes whose texts stay texts, also those in the form of a time. Texts in lists and objects
    always do, as in dicts that are pushed. `from_dicts` makes a table of objects that were read line by line. Raises
    `EventError` with the line for what is not an object, not JSON, not UTF-8, nested beyond Python's recursion limit,
    or of another kind than before.
    """
    line = 1
    for block in line_blocks(stream, name):
        if block.strip():
            table = _at_once(block, texts)
            yield _line_by_line(block, name, line, from_dicts, texts) if table is None else table
        line += block.count(b"\n")


def _at_once(block: bytes, texts: Collection[str]) -> pa.Table | None:
    """The block by pyarrow's reader; None if the reader must not or cannot read it."""
    lines = _objects(block)
    if lines is None:
        return None
    try:
        table = pa.json.read_json(to_arrow(block), read_options=_options(block))
        kept = [(f.name, _with_texts(f.type) if f.name in texts else _with_texts_inside(f.type)) for f in table.schema]
        if taken := [pair for pair, f in zip(kept, table.schema, strict=True) if pair[1] != f.type]:
            again = pa.json.ParseOptions(explicit_schema=pa.schema(taken))
            table = pa.json.read_json(to_arrow(block), read_options=_options(block), parse_options=again)
    except pa.ArrowInvalid:
        return None
    return None if table.num_rows != lines or _is_rounded(table, block) or _is_deep(table.schema) else table


def _with_texts(kind: pa.DataType) -> pa.DataType:
    """The type, with texts for times."""
    return pa.string() if pa.types.is_temporal(kind) else _with_texts_inside(kind)


def _with_texts_inside(kind: pa.DataType) -> pa.DataType:
    """The type, with texts for times in its lists and objects."""
    if pa.types.is_list(kind):
        return pa.list_(_with_texts(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _with_texts(field.type)) for field in kind])
    return kind


def _is_deep(schema: pa.Schema) -> bool:
    """True if lists and objects of some column are nested deeper than those of events may be."""
    level = list(schema.types)
    for _ in range(DEEPEST + 1):
        level = [inner for kind in level for inner in _inner(kind)]
        if not level:
            return False
    return True


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_list(kind):
        return [kind.value_type]
    return [field.type for field in kind] if pa.types.is_struct(kind) else []


def _is_rounded(table: pa.Table, block: bytes) -> bool:
    """True if some column of doubles may stand for whole numbers that doubles do not hold."""
    far = (
        column.type == pa.float64() and len(column) > column.null_count and beyond_exact(column)
        for column in table.columns
    )
    return any(far) and _LONG.search(block) is not None


def _options(block: bytes) -> pa.json.ReadOptions:
    return pa.json.ReadOptions(block_size=max(len(block) + 1, 1 << 10))


def _objects(block: bytes) -> int | None:
    """The number of lines that are not empty, if they may be given to pyarrow's reader: UTF-8, each from `{` to `}` and
    with few brackets, without nulls in lists.

    If the block is JSON, no object then goes over the end of a line: between `}` and `{` inside of one stands a comma.
    """
    try:
        block.decode()
    except UnicodeDecodeError:
        return None
    opening = block.count(b"[") + block.count(b"{")
    if opening > _BRACKETS * (block.count(b"\n") + 1):  # places of brackets take eight bytes each
        return None
    text = np.frombuffer(block.removeprefix(b"\xef\xbb\xbf"), np.uint8)
    ends = np.append(np.flatnonzero(text == _NEWLINE), len(text))
    starts = np.append(0, ends[:-1] + 1)
    for _ in range(_MARGIN):
        starts, ends = starts[starts < ends], ends[starts < ends]
        before, behind = _BLANK[text[starts]], _BLANK[text[ends - 1]]
        if not (before.any() or behind.any()):
            break
        starts, ends = starts + before, ends - behind
    if not (np.all(text[starts] == ord("{")) and np.all(text[ends - 1] == ord("}"))):
        return None
    if opening > len(starts):
        if b"null" in block and _NULL_IN_LIST.search(block):
            return None
        opened = np.diff(np.searchsorted(np.flatnonzero(_OPENING[text]), ends), prepend=0)
        if np.max(opened) > _BRACKETS:
            return None
    return len(starts)


def _line_by_line(
    block: bytes,
    name: str,
    line: int,
    from_dicts: Callable[[list[dict[str, Any]]], pa.Table],
    texts: Collection[str],
) -> pa.Table:
    events, lines = [], []
    for number, text in enumerate(block.split(b"\n"), line):
        if text.strip():
            events.append(_object(text, name, number))
            lines.append(number)
    try:
        table = from_dicts(events)
    except EventError as error:
        record = None if error.record is None else lines[error.record - 1]
        raise EventError(
            error.problem, source=name, record=record, attribute=error.attribute, hint=error.hint
        ) from None
    for column, field in enumerate(table.schema):
        if pa.types.is_string(field.type) and field.name not in texts:
            table = table.set_column(column, field.name, _infer_type(table.column(column).to_pylist()))
    return table


def _infer_type(texts: list[str | None]) -> pa.ChunkedArray:
    """The texts with the type that pyarrow's reader would give them: times if all of them are times."""
    block = "\n".join(f'{{"v":{json.dumps(text)}}}' for text in texts).encode()
    return pa.json.read_json(to_arrow(block), read_options=_options(block)).column("v")


def _whole(digits: str) -> int | float:
    """The whole number, or a double if 64 bits do not hold it, as pyarrow's reader does it."""
    if len(digits) < _SHORT:
        return int(digits)
    number = int(digits) if len(digits) < 2 * _SHORT else _END
    return number if -_END <= number < _END else float(digits)


def _object(text: bytes, name: str, line: int) -> dict[str, Any]:
    to_hold(len(text) + _VALUE * sum(map(text.count, (b",", b"[", b"{"))))
    try:
        value = json.loads(decode(text, name, line), parse_int=_whole)
    except json.JSONDecodeError as error:
        problem = f"this is not JSON (column {error.colno}: {error.msg})"
    except RecursionError:
        problem = "this is nested too deeply"
    else:
        if isinstance(value, dict):
            return value
        problem = (
            "this is a JSON array, not an object" if isinstance(value, list) else "this is JSON, but not an object"
        )
    raise EventError(problem, source=name, record=line, hint="one object a line") from None
