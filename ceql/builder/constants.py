"""Constants of Python as constants of CEQL.

Times have no constants in CEQL: a datetime is `TO_TIME('2026-01-05T10:00:00Z')`. One without a zone is in UTC, as
everywhere in the library.
"""

from __future__ import annotations

import datetime
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np

from ceql.syntax import ast
from spaseq.core.errors import OptionError
from spaseq.core.events.options import length_of
from spaseq.core.events.time import parse_duration

Constant = int | float | str | bool | Decimal | datetime.date | datetime.timedelta
"""The types of constants; a datetime is a date, too. Numbers of numpy are taken as well."""

_INT64: Final = range(-(1 << 63), 1 << 63)
_UNPRINTABLE: Final = re.compile(r"[\0\r\n\u2028\u2029\ud800-\udfff]")


def article(found: object) -> str:
    """The type of a value with its article, for errors: "a list", "an Event"."""
    name = type(found).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def check_text(what: str, text: object) -> str:
    """The text. `OptionError` if it is none, or has characters that no text in a query has: ends of lines."""
    if not isinstance(text, str):
        raise OptionError(f"{what} is a text, and this is {article(text)}", "for example 'user'")
    if found := _UNPRINTABLE.search(text):
        hint = "a text in a query is on one line; a condition with fn.contains or .like finds a part of it"
        raise OptionError(f"{what} {text!r} has the character U+{ord(found[0]):04X}", hint)
    return text


def check_name(what: str, name: object) -> str:
    """The name of a type, stream, variable or attribute. `OptionError` if no query can have it."""
    text = check_text(what, name)
    if not text or "`" in text:
        raise OptionError(f"{what} cannot be {text!r}", "a name has one character or more, and no back-quotes")
    return text


def constant(given: Any) -> ast.Expression | None:
    """The expression of a constant; None if it is none. `OptionError` for one that CEQL cannot have: NaN, a whole
    number beyond 64 bits, a text of two lines."""
    if isinstance(given, np.datetime64 | np.timedelta64):
        given = given.astype(f"{'datetime' if isinstance(given, np.datetime64) else 'timedelta'}64[us]")
    if isinstance(given, np.generic):
        given = given.item()
    match given:
        case bool():
            return ast.Truth(given)
        case str():
            return ast.Text(check_text("a text", str(given)))
        case datetime.date() if given != given:  # pandas' NaT
            return None
        case datetime.datetime():
            moment = given.replace(tzinfo=datetime.UTC) if given.tzinfo is None else given.astimezone(datetime.UTC)
            return _moment(moment.isoformat().replace("+00:00", "Z"))
        case datetime.date():
            return _moment(given.isoformat())
        case datetime.timedelta():
            length = length_of("a duration", given)
            return ast.Duration(length) if length >= 0 else ast.Negate(ast.Duration(-length))
        case numbers.Real() | Decimal():
            return ast.Number(_number(given))
    return None


def _moment(text: str) -> ast.Call:
    return ast.Call("TO_TIME", (ast.Text(text),))


def _number(given: Any) -> int | float:
    if not (given.is_finite() if isinstance(given, Decimal) else math.isfinite(given)):
        raise OptionError(f"{given} is no number in a query", "x.price.is_null() is true if there is none")
    if isinstance(given, numbers.Integral) or (isinstance(given, Decimal) and given == given.to_integral_value()):
        whole = int(given)
        if whole not in _INT64:
            raise OptionError(f"the whole number {whole} is too large", f"whole numbers go up to {_INT64[-1]}")
        return whole
    return float(given)


def elements(given: Any) -> list[Any]:
    """The elements of a list, tuple, set, range, array or column; those of a set in order. `OptionError` for others."""
    if isinstance(given, set | frozenset):
        return sorted(given, key=lambda element: (type(element).__name__, element))
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(type(given), method) and isinstance(found := getattr(given, method)(), list):
            return found
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise OptionError(f"is_in takes a list, and this is {article(given)}", "x.name.is_in(['ann', 'bob'])")
    return list(given)


def duration(what: str, given: Any) -> int:
    """The nanoseconds of a text ("10s", "1h 30m") or a timedelta. `OptionError` for others, and below 0."""
    if not isinstance(given, str | datetime.timedelta):
        hint = "write '10s', '1h 30m' or a timedelta"
        raise OptionError(f"{what} is a duration, and this is {article(given)}", hint)
    length = length_of(what, given) if isinstance(given, datetime.timedelta) else parse_duration(given)
    if length < 0:
        raise OptionError(f"{what} {given} is below 0", "a duration is 0 or more")
    return length
