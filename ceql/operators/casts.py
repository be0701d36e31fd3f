"""CAST and TRY_CAST: a value as one of another kind. What has no such value is an error, by TRY_CAST it is NULL.

=========  ====================================================================================================
kind       made of
=========  ====================================================================================================
NUMBER     numbers; texts of decimal digits; truth values: 1 and 0
INTEGER    the same, to the nearest whole number, a half away from zero; within 64 bits
TEXT       numbers, without `.0`; truth values: `true`, `false`; times, as xsd:dateTime in UTC
BOOLEAN    numbers: 0 is false; texts: true, t, yes, 1 and false, f, no, 0
TIMESTAMP  texts in the form of a time. Of numbers `TO_TIME(x, 's')` makes times, with their unit
=========  ====================================================================================================

A number is written as the same text whether it was read as 2 or as 2.0, as columns do not tell them apart.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ceql.operators.columns import Constant, Operand
from ceql.operators.function import Function
from ceql.operators.numbers import round_doubles, round_number
from ceql.operators.values import INT64, KIND_WORDS, kind_of, time_of
from spaseq.core.errors import EventError
from spaseq.core.events import Instant, NumberColumn, TextColumn, TimeColumn, TruthColumn, format_time
from spaseq.core.kinds import KINDS, TRUTHS, kind_hint

RESULTS: Final = {"NUMBER": "number", "INTEGER": "number", "TEXT": "text", "BOOLEAN": "truth", "TIMESTAMP": "time"}
"""The kind of the result (`ceql.operators.values.kind_of`)."""
_DIGITS: Final = 400
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_PLAIN: Final = 10**15
_SAME: Final = {"NUMBER": NumberColumn, "TEXT": TextColumn, "BOOLEAN": TruthColumn, "TIMESTAMP": TimeColumn}
"""The columns whose values stay as they are."""


def _number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _DIGITS or not _NUMBER.fullmatch(text):
            return None
        if text.lstrip("+-").isdigit() and int(text) in INT64:
            return int(text)
        found = float(text)
        return found if math.isfinite(found) else None
    return value if kind_of(value) == "number" else None


def _integer(value: Any) -> int | None:
    number = _number(value)
    if number is None or not math.isfinite(number):
        return None
    rounded = int(round_number(number) or 0)
    return rounded if rounded in INT64 else None


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Instant):
        return format_time(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _PLAIN else repr(value)
    return str(value) if isinstance(value, str) or kind_of(value) == "number" else None


def _truth(value: Any) -> bool | None:
    if isinstance(value, str):
        return TRUTHS.get(value.strip().lower())
    return bool(value) if kind_of(value) in ("number", "truth") else None


def _time(value: Any) -> Instant | None:
    if isinstance(value, Instant):
        return value
    if not isinstance(value, str):
        return None
    try:
        return Instant(time_of(value))
    except EventError:
        return None


_CASTS: Final[dict[str, Callable[[Any], Any]]] = {
    "NUMBER": _number, "INTEGER": _integer, "TEXT": _text, "BOOLEAN": _truth, "TIMESTAMP": _time,
}  # fmt: skip


def _try_cast(value: Any, kind: str) -> Any:
    return _CASTS[KINDS[kind.upper()]](value)


def _cast(value: Any, kind: str) -> Any:
    found = _try_cast(value, kind)
    if found is not None:
        return found
    word = kind_of(value)
    if word == "number" and KINDS[kind.upper()] == "TIMESTAMP":
        hint = "TO_TIME(x.time, 's') makes a time of seconds, with 'ms' of milliseconds"
    elif word == "duration":
        hint = "x / 1 SECOND is its number of seconds"
    else:
        hint = f"TRY_CAST(… AS {kind.upper()}) is NULL then"
    shown = f"{value!r}" if word in ("text", "number") else KIND_WORDS[word]
    raise EventError(f"CAST makes no {kind.upper()} of {shown}", hint=hint)


def _cast_columns(value: Operand, kind: Operand, count: int) -> Any:
    wanted = KINDS[kind.value.upper()] if isinstance(kind, Constant) else ""
    if isinstance(value, _SAME.get(wanted, ())):
        return value
    if not isinstance(value, NumberColumn) or wanted not in ("INTEGER", "TEXT"):
        return NotImplemented
    is_whole = value.values.dtype == np.int64
    if wanted == "TEXT":
        if not is_whole:
            return NotImplemented
        buffer = pa.py_buffer(np.ascontiguousarray(value.values))  # pa.array would import pandas if it can
        texts = pa.Int64Array.from_buffers(pa.int64(), count, [None, buffer]).cast(pa.string())
        rows = np.arange(count, dtype=np.int32)
        return TextColumn(rows if value.known is None else np.where(value.known, rows, np.int32(-1)), texts)
    if is_whole:
        return value
    with np.errstate(all="ignore"):
        rounded = round_doubles(value.values, 0)
        fits = (np.abs(rounded) < 2.0**63).all()
        return NumberColumn(rounded.astype(np.int64), value.known) if fits else NotImplemented


def _check(value: None, kind: str) -> None:
    if kind.upper() not in KINDS:
        raise EventError(f"CAST to {kind}, which is no kind of values", hint=kind_hint(kind))


CASTS: Final = tuple(
    Function(name, ("any", "text"), "cast", work, columns=_cast_columns, constants=(1,), check=_check,
             sample=f"{name}(x.price AS NUMBER)")
    for name, work in (("CAST", _cast), ("TRY_CAST", _try_cast))
)  # fmt: skip
