"""The functions of texts: LOWER, TRIM, SUBSTRING, CONTAINS and others.

Lengths and places count characters (code points), the first is 1. LOWER and UPPER are those of Unicode, whatever the
language: `ß` in capitals is `SS`. TRIM takes blanks, or the characters given. REPLACE of an empty text changes nothing.
CONCAT leaves NULL out, as PostgreSQL and DuckDB do; it is the empty text if all are NULL.

Arrow's kernels compute them if they mean the same: LOWER and UPPER change letters of ASCII alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ceql.operators.columns import Constant, Operand, compact, renamed_texts
from ceql.operators.function import Function
from ceql.operators.sets import is_member
from ceql.operators.values import kind_of, mismatch
from spaseq.core.errors import EventError
from spaseq.core.events import NumberColumn, TextColumn, TruthColumn, text_array, truths_of

LONGEST: Final = 1 << 20
"""Characters of a text that a function makes: REPLACE in REPLACE could double it again and again."""
_REMEMBERED: Final = 256
"""Characters of a text and its pattern up to which a result is cached."""


def _check_size(text: str) -> str:
    if len(text) > LONGEST:
        problem = f"a function makes a text of {len(text):,} characters, and {LONGEST:,} is the most"
        raise EventError(problem, hint="REPLACE and CONCAT in each other double a text")
    return text


def whole_number(value: Any, name: str) -> int:
    """An argument that counts something. `EventError` if it is no whole number."""
    if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
        raise EventError(f"{name} counts in whole numbers, and this is {value}")
    return int(value)


# On single texts


def _trim(text: str, characters: str = " ") -> str:
    return text.strip(characters) if characters else text


def _trim_left(text: str, characters: str = " ") -> str:
    return text.lstrip(characters) if characters else text


def _trim_right(text: str, characters: str = " ") -> str:
    return text.rstrip(characters) if characters else text


def _substring(text: str, start: Any, length: Any = None) -> str:
    """SQL's: the characters at places from `start` on, `length` of them, as far as the text has such places."""
    first = whole_number(start, "SUBSTRING") - 1
    if length is None:
        return text[max(first, 0) :]
    count = whole_number(length, "SUBSTRING")
    if count < 0:
        raise EventError(f"SUBSTRING has a length of {count}", hint="the length is 0 or more")
    return text[max(first, 0) : max(first + count, 0)]


def _position(part: str, text: str) -> int:
    return text.find(part) + 1


def _contains(whole: Any, part: Any) -> bool:
    """A text contains a text, a list an element."""
    if isinstance(whole, tuple):
        return is_member(part, whole)
    if not isinstance(part, str):
        raise mismatch(kind_of(whole), kind_of(part), "CONTAINS")
    return part in whole


def _replace(text: str, old: str, new: str) -> str:
    return _check_size(text.replace(old, new)) if old else text


def _concat(*texts: str | None) -> str:
    return _check_size("".join([text for text in texts if text is not None]))


def group_pattern(pattern: str, group: int) -> str:
    """The pattern of RE2 in which the wanted group is the only one, and called `g`; group 0 is the whole match.
    `EventError` if there are not so many."""
    found, out, at, in_class = 0, [], 0, False
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            end = pattern.find("\\E", at)
            end = len(pattern) if end < 0 else end + 2
            out.append(pattern[at:end])
            at = end
            continue
        sign = pattern[at]
        if sign == "\\":
            out.append(pattern[at : at + 2])
            at += 2
            continue
        if in_class:
            in_class = sign != "]"
        elif sign == "[":
            in_class = True
            behind = at + 1 + pattern.startswith("^", at + 1)
            if pattern.startswith("]", behind):  # a class begins with a bracket that it contains
                out.append(pattern[at : behind + 1])
                at = behind + 1
                continue
        elif sign == "(":
            named = pattern.startswith(("(?P<", "(?<"), at)
            if named or not pattern.startswith("(?", at):
                found += 1
                out.append("(?P<g>" if found == group else "(?:")
                at = pattern.find(">", at) + 1 if named else at + 1
                continue
        out.append(sign)
        at += 1
    if found < group:
        problem = f"the pattern has {found} groups, and group {group} is asked for"
        raise EventError(problem, hint="a group stands in parentheses: REGEXP_EXTRACT(x.name, '([a-z]+)[0-9]', 1)")
    return "".join(out) if group else f"(?P<g>{''.join(out)})"


def _extract_each(texts: pa.StringArray, pattern: str, group: Any = 0) -> pa.StringArray:
    """The first match in each text, or a group of it; NULL without a match. Linear in the length of a text."""
    number = whole_number(group, "REGEXP_EXTRACT")
    return pc.struct_field(pc.extract_regex(texts, group_pattern(pattern, number)), [0])


def _extract(text: str, pattern: str, group: Any = 0) -> str | None:
    return (_known_extract if len(text) + len(pattern) <= _REMEMBERED else _extract_one)(text, pattern, group)


def _extract_one(text: str, pattern: str, group: Any) -> str | None:
    found: str | None = _extract_each(text_array([text]), pattern, group)[0].as_py()
    return found


_known_extract = functools.lru_cache(65536)(_extract_one)


def _check_extract(text: None, pattern: str, group: Any = 0) -> None:
    if not isinstance(pattern, str):
        raise EventError("the pattern of REGEXP_EXTRACT is a text", hint="REGEXP_EXTRACT(x.name, '[0-9]+')")
    if isinstance(group, str | bool) or group != group or int(group) != group or not 0 <= group <= 100:
        raise EventError("the group of REGEXP_EXTRACT is a whole number, 0 for the whole match")
    try:
        pc.match_substring_regex(text_array([""]), pattern)
        _extract_each(text_array([""]), pattern, group)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression:").strip()
        raise EventError(f"this is not a regular expression: {reason}", hint="it is one of RE2") from None


# On the distinct texts of a column


def _by_kernel(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The function of columns for one text column and constants. `kernel` takes an Arrow array of distinct texts and
    the constants, and gives an Arrow array; NotImplemented if it would not mean the same."""

    def compute(column: Operand, *constants: Operand, count: int) -> Any:
        fixed = [c.value for c in constants if isinstance(c, Constant)]
        is_mixed = len(fixed) < len(constants) or (kernel is pc.match_substring and not isinstance(fixed[0], str))
        if not isinstance(column, TextColumn) or is_mixed:
            return NotImplemented
        column = compact(column)
        found = kernel(column.texts, *fixed)
        if found is NotImplemented:
            return found
        codes = column.codes
        if pa.types.is_string(found.type):
            return renamed_texts(codes, found)
        known = codes >= 0
        if pa.types.is_boolean(found.type):
            return TruthColumn(column.where(truths_of(found)), None if known.all() else known)
        # Of the buffer: to_numpy would import pandas if it can.
        numbers = np.append(
            np.frombuffer(found.buffers()[1], np.int32, len(found), 4 * found.offset).astype(np.int64), 0
        )
        return NumberColumn(numbers[codes], None if known.all() else known)

    return compute


def _of_ascii(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """`kernel` if all texts are of ASCII."""

    def compute(texts: pa.StringArray, *constants: Any) -> Any:
        return kernel(texts, *constants) if pc.all(pc.string_is_ascii(texts)).as_py() is not False else NotImplemented

    return compute


def _trim_by(kernel: Callable[..., Any]) -> Callable[..., Any]:
    return lambda texts, characters=" ": kernel(texts, characters) if characters else texts


def _slice(texts: pa.StringArray, start: Any, length: Any = None) -> Any:
    first = whole_number(start, "SUBSTRING") - 1
    if first < 0 or first > LONGEST or (length is not None and not 0 <= length <= LONGEST):
        return NotImplemented
    return pc.utf8_slice_codeunits(texts, first, None if length is None else first + whole_number(length, "SUBSTRING"))


def _replace_each(texts: pa.StringArray, old: str, new: str) -> Any:
    longest = pc.max(pc.utf8_length(texts)).as_py() or 0
    if not old or longest * max(1, len(new)) > LONGEST:
        return NotImplemented
    return pc.replace_substring(texts, old, new)


def _longest(part: TextColumn | Constant) -> int:
    return len(part.value) if isinstance(part, Constant) else pc.max(pc.utf8_length(part.texts)).as_py() or 0


def _concat_columns(*operands: Operand, count: int) -> Any:
    """Once for each distinct text if one column alone varies; of several with many texts, row by row, by Arrow."""
    parts = [compact(o) if isinstance(o, TextColumn) else o for o in operands if isinstance(o, TextColumn | Constant)]
    columns = [part for part in parts if isinstance(part, TextColumn)]
    combinations = math.prod(len(column.texts) + 1 for column in columns)
    if len(parts) < len(operands) or (len(columns) > 1 and combinations <= 2 * count):
        return NotImplemented
    if sum(map(_longest, parts)) > LONGEST:
        return NotImplemented
    rows = np.arange(count, dtype=np.int32)
    if len(columns) == 1:  # the last text is that of NULL
        codes = columns[0].codes
        rows = np.where(codes < 0, np.int32(len(columns[0].texts)), codes)
    empty = text_array([""])
    arrays = []
    for part in parts:
        if isinstance(part, Constant):
            times = count if len(columns) > 1 else len(columns[0].texts) + 1
            arrays.append(pa.repeat(text_array([part.value])[0], times))
        else:
            texts = pa.concat_arrays([part.texts, empty])
            places = np.where(part.codes < 0, len(part.texts), part.codes)
            arrays.append(texts if len(columns) == 1 else texts.take(pa.array(places)))
    return TextColumn(rows, pc.binary_join_element_wise(*arrays, empty[0]))


TEXTS: Final = (
    Function("LOWER", ("text",), "text", str.lower, columns=_by_kernel(_of_ascii(pc.utf8_lower))),
    Function("UPPER", ("text",), "text", str.upper, columns=_by_kernel(_of_ascii(pc.utf8_upper))),
    Function("TRIM", ("text", "text"), "text", _trim, optional=1, columns=_by_kernel(_trim_by(pc.utf8_trim)),
             sample="TRIM(x.name)"),
    Function("LTRIM", ("text", "text"), "text", _trim_left, optional=1, columns=_by_kernel(_trim_by(pc.utf8_ltrim)),
             sample="LTRIM(x.name)"),
    Function("RTRIM", ("text", "text"), "text", _trim_right, optional=1, columns=_by_kernel(_trim_by(pc.utf8_rtrim)),
             sample="RTRIM(x.name)"),
    Function("LENGTH", ("text/list/texts",), "number", len, columns=_by_kernel(pc.utf8_length)),
    Function("SUBSTRING", ("text", "number", "number"), "text", _substring, optional=1, columns=_by_kernel(_slice),
             sample="SUBSTRING(x.name, 1, 3)"),
    Function("POSITION", ("text", "text"), "number", _position, sample="POSITION('@', x.name)"),
    Function("CONTAINS", ("text/list/texts", "text/number"), "truth", _contains, columns=_by_kernel(pc.match_substring),
             sample="CONTAINS(x.name, 'adm')"),
    Function("STARTSWITH", ("text", "text"), "truth", str.startswith, columns=_by_kernel(pc.starts_with),
             sample="STARTSWITH(x.name, 'adm')"),
    Function("ENDSWITH", ("text", "text"), "truth", str.endswith, columns=_by_kernel(pc.ends_with),
             sample="ENDSWITH(x.name, 'min')"),
    Function("REPLACE", ("text", "text", "text"), "text", _replace, columns=_by_kernel(_replace_each),
             sample="REPLACE(x.name, '-', '')"),
    Function("CONCAT", ("text",), "text", _concat, repeats=True, takes_null=True, columns=_concat_columns,
             sample="CONCAT(x.name, ' ', x.place)"),
    Function("REGEXP_EXTRACT", ("text", "text", "number"), "text", _extract, optional=1,
             columns=_by_kernel(_extract_each), constants=(1, 2), check=_check_extract,
             sample="REGEXP_EXTRACT(x.name, '[0-9]+')"),
)  # fmt: skip
