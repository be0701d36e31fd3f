"""Time as the project holds it: an integer count of nanoseconds since 1970-01-01T00:00:00Z.

A literal is an xsd:dateTime (UTC if it names no zone) or a plain number in a stated unit. A duration is a number with a
unit. All arithmetic on literals is exact (integers and decimals), so the closed end of a window is exact. Digits below
a nanosecond are cut off.
"""

from __future__ import annotations

import datetime
import operator
import re
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.errors import EventError, OptionError

CALENDAR: Final = 10**17
"""ns: 1973-03-03. A time before it is an offset, not a date."""
UNITS: Final[dict[str, int]] = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds in each unit that `--time-unit` takes."""

_DURATION_UNITS: Final[dict[str, int]] = {
    **UNITS,
    "nanosecond": 1,
    "µs": 1_000,
    "microsecond": 1_000,
    "millisecond": 1_000_000,
    "second": 1_000_000_000,
    "sec": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "minute": 60_000_000_000,
    "h": 3_600_000_000_000,
    "hour": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "day": 86_400_000_000_000,
}

_INT64_MAX: Final = (1 << 63) - 1
_EXACT: Final = 1 << 52
_WHOLE: Final = 30
"""Characters of a whole number that Python is to read: it refuses thousands of them."""
_DATE_TIME: Final = re.compile(
    r"(?P<year>-?\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[Tt ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?)?"
    r"(?P<zone>[Zz]|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_DURATION_PART: Final = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-zµ]+)\s*")
_SAMPLE: Final = datetime.datetime(2024, 11, 23, tzinfo=datetime.UTC)
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_FORM_HINT: Final = "--time-format is the form of all times that are texts; without it they are xsd:dateTime"
_DAYS_BEFORE: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def unit_nanoseconds(unit: str) -> int:
    """Nanoseconds in a `--time-unit`; `OptionError` if there is no such unit."""
    try:
        return UNITS[unit]
    except KeyError:
        raise OptionError(f"unknown time unit {unit!r}", "one of s, ms, us, ns") from None


def parse_time(text: str, unit: str = "s") -> int:
    """Nanoseconds since the epoch of a time literal.

    `text` is an xsd:dateTime (`2024-05-01T12:00:00.5+02:00`; a blank may stand for the `T`, the seconds or the whole
    time of day may be missing) or a plain number in `unit`. Raises `EventError` without a source: the caller knows it.

    >>> parse_time("1970-01-01T00:00:01.5Z"), parse_time("1.5"), parse_time("1500", "ms")
    (1500000000, 1500000000, 1500000000)
    """
    literal = text.strip()
    scale = unit_nanoseconds(unit)
    if _NUMBER.fullmatch(literal):
        return _fit(_scale(literal, scale), text)
    match = _DATE_TIME.fullmatch(literal)
    if match is None:
        raise EventError(
            f"{_quote(text)} is not a time",
            hint=f"a time is an xsd:dateTime such as 2024-05-01T12:00:00Z, or a number (here counted in {unit})",
        )
    return _fit(_date_time_nanoseconds(match, text), text)


def check_form(form: str) -> None:
    """`OptionError` if `form`, as of `datetime.strptime`, has no date, or is none."""
    try:
        shown = _SAMPLE.strftime(form)
        again = datetime.datetime.strptime(shown, form)
    except (ValueError, re.error):
        again = None
    if again is None or again.date() != _SAMPLE.date():
        hint = "for example '%d.%m.%Y %H:%M'; it has a year, a month and a day"
        raise OptionError(f"--time-format {form!r}: not the form of a date", hint)


def time_by_form(text: str, form: str) -> int:
    """Nanoseconds since the epoch of a text in a form of `datetime.strptime`; in UTC, unless the text has a zone.

    Raises `EventError` without a source.

    >>> time_by_form("01.01.1970 00:01", "%d.%m.%Y %H:%M")
    60000000000
    """
    try:
        found = datetime.datetime.strptime(text.strip(), form)
    except (ValueError, OverflowError):
        raise EventError(f"{_quote(text)} is not a time of the form {form}", hint=_FORM_HINT) from None
    zone = found.utcoffset()
    span = found.replace(tzinfo=None) - _EPOCH - (datetime.timedelta() if zone is None else zone)
    return _fit(((span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds) * 1_000, text)


def times_by_form(texts: pa.StringArray, form: str) -> np.ndarray | None:
    """`time_by_form` of each text: int64 (n,), ns; None if one is of another form. An arbitrary value for NULL.

    PERF: 1 µs a text if Arrow's time, written in the form, is the text again. Arrow takes 31.02. for a day of March.
    So Python parses every other text, in 4 µs each.
    """
    parsed = pc.strptime(texts, format=form, unit="s", error_is_null=True)
    again = pc.equal(_in_form(parsed, form), texts)
    sure = pc.or_(pc.coalesce(again, pc.is_valid(again)), texts.is_null())
    rest = np.flatnonzero(_values(sure.cast(pa.uint8()), np.uint8) == 0)
    seconds = np.where(_values(parsed.is_valid().cast(pa.uint8()), np.uint8), _values(parsed, np.int64), 0)
    far = np.abs(seconds) > _INT64_MAX // UNITS["s"]
    times = np.where(far, 0, seconds) * UNITS["s"]
    try:
        for row in [*rest.tolist(), *np.flatnonzero(far).tolist()]:
            times[row] = time_by_form(texts[row].as_py(), form)
    except EventError:
        return None
    return np.asarray(times)


def _values(array: pa.Array, kind: type) -> np.ndarray:
    """The numbers in the buffer of an array: `np.asarray` and Arrow's scalars would import pandas if they can."""
    if not len(array):
        return np.zeros(0, kind)
    size = np.dtype(kind).itemsize
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * size)


def _in_form(times: pa.TimestampArray, form: str) -> pa.Array:
    """Times as texts; NULL if Arrow cannot write the form."""
    try:
        return pc.strftime(times, format=form)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(times), pa.string())


def is_date(text: str) -> bool:
    """True if the text is an xsd:dateTime or a date, not a number."""
    return _DATE_TIME.fullmatch(text.strip()) is not None


def decimal_times(values: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Doubles times `scale`, exactly as their shortest decimal notation says, without the digits below one.

    `values`: float64 (n,). Returns int64 (n,), and bool (n,): true for the rows whose result is exact. These are all
    values with at most nine digits behind the point, in the range in which doubles lie close enough together. O(n).

    With d digits behind the point, and two doubles or more between two such decimals, at most one of these is rounded
    to a given double. If one is, the shortest notation of the double is that one.
    """
    times, known = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    for digits in (3, 6, 9):
        unit = 10**digits
        rows = np.flatnonzero(~known & (np.abs(values) < min(_EXACT / unit, _INT64_MAX // scale)))
        rows = rows[2.0 * unit * np.spacing(np.abs(values[rows])) < 1.0]
        some = values[rows]
        whole = np.rint(some * unit)
        right = whole / unit == some
        rows, numbers = rows[right], whole[right].astype(np.int64)
        times[rows] = numbers * (scale // unit) if unit <= scale else numbers // (unit // scale)
        known[rows] = True
    return times, known


def _scale(literal: str, scale: int) -> int:
    """`literal` x `scale`, exactly, without the digits below one."""
    if len(literal) <= _WHOLE and literal.lstrip("+-").isdigit():
        return int(literal) * scale
    try:
        return int((Decimal(literal) * scale).to_integral_value(ROUND_FLOOR))
    except InvalidOperation:
        raise EventError(f"{_quote(literal)} is too large for a time") from None


def _date_time_nanoseconds(match: re.Match[str], text: str) -> int:
    if len(match["year"]) > _WHOLE:
        raise EventError(f"{_quote(text)} is outside the times that can be held (1677 to 2262)")
    year, month, day = (int(match[k]) for k in ("year", "month", "day"))
    hour, minute, second = (int(match[k] or 0) for k in ("hour", "minute", "second"))
    end_of_day = hour == 24 and minute == 0 and second == 0 and not (match["fraction"] or "").strip("0")
    if not (1 <= month <= 12 and 1 <= day <= _month_length(year, month)):
        raise EventError(f"{_quote(text)} is not a day of the calendar")
    if not (hour <= 23 or end_of_day) or minute > 59 or second > 59:
        raise EventError(f"{_quote(text)} is not a time of day", hint="from 00:00:00 to 23:59:59.999…, or 24:00:00")
    fraction = int(((match["fraction"] or "") + "000000000")[:9])
    seconds = _days_from_epoch(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    return (seconds - _zone_seconds(match["zone"], text)) * 1_000_000_000 + fraction


def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _days_from_epoch(year: int, month: int, day: int) -> int:
    """Days of the proleptic Gregorian calendar from 1970-01-01; valid for any year."""
    past = year - 1
    leaps = past // 4 - past // 100 + past // 400
    this_leap = 1 if month > 2 and _month_length(year, 2) == 29 else 0
    return past * 365 + leaps + _DAYS_BEFORE[month - 1] + this_leap + day - 719_163


def _zone_seconds(zone: str | None, text: str) -> int:
    if zone is None or zone in "Zz":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 14 or minutes > 59:
        raise EventError(f"{_quote(text)} names no time zone", hint="a zone is Z or from -14:00 to +14:00")
    return (-1 if zone[0] == "-" else 1) * (hours * 3_600 + minutes * 60)


def _fit(nanoseconds: int, text: str) -> int:
    if not -_INT64_MAX <= nanoseconds <= _INT64_MAX:
        raise EventError(
            f"{_quote(text)} is outside the times that can be held (1677 to 2262)",
            hint="is the unit of the times right? --time-unit is s, ms, us or ns",
        )
    return nanoseconds


def _quote(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def format_time(nanoseconds: int) -> str:
    """The xsd:dateTime of a time, in UTC, with as many fraction digits as it needs.

    >>> format_time(1500000000)
    '1970-01-01T00:00:01.5Z'
    """
    seconds, fraction = divmod(int(nanoseconds), 1_000_000_000)
    text = str(np.datetime64(seconds, "s"))
    return text + (f".{fraction:09d}".rstrip("0") if fraction else "") + "Z"


def format_times(nanoseconds: np.ndarray) -> list[str]:
    """`format_time` of each of these (int64)."""
    seconds, fractions = np.divmod(nanoseconds, 1_000_000_000)
    texts = np.datetime_as_string(seconds.astype("datetime64[s]")).tolist()
    return [
        f"{text}.{fraction:09d}".rstrip("0") + "Z" if fraction else text + "Z"
        for text, fraction in zip(texts, fractions.tolist(), strict=True)
    ]


def format_duration(nanoseconds: int) -> str:
    """The shortest text that `parse_duration` reads as this, of one unit.

    >>> format_duration(1_000_000), format_duration(90 * 10**9)
    ('1 ms', '90 s')
    """
    units = {"d": 86_400 * 10**9, "h": 3_600 * 10**9, "min": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
    unit = next(unit for unit, size in units.items() if nanoseconds % size == 0)
    return f"{nanoseconds // units[unit]:,} {unit}" if nanoseconds else "0 s"


def clock_duration(nanoseconds: int) -> str:
    """A duration for people, all of one form: days if there are any, then hours, minutes and seconds.

    >>> clock_duration(8 * 10**9), clock_duration(-(90_000 * 10**9 + 1_500_000))
    ('0:00:08', '-1 d 1:00:00.0015')
    """
    rest, parts = divmod(abs(nanoseconds), 10**9), ""
    hours, seconds = divmod(rest[0], 3600)
    days, hours = divmod(hours, 24)
    parts = f"{hours}:{seconds // 60:02}:{seconds % 60:02}" + f".{rest[1]:09}".rstrip("0").rstrip(".")
    return f"{'-' if nanoseconds < 0 else ''}{f'{days} d ' if days else ''}{parts}"


def iso_duration(nanoseconds: int) -> str:
    """A duration as xsd:dayTimeDuration (ISO 8601).

    >>> iso_duration(90 * 10**9), iso_duration(-1_500_000), iso_duration(0)
    ('PT1M30S', '-PT0.0015S', 'PT0S')
    """
    rest, parts = abs(nanoseconds), []
    for letter, size in (("D", 86_400 * 10**9), ("H", 3_600 * 10**9), ("M", 60 * 10**9)):
        count, rest = divmod(rest, size)
        parts.append(f"{count}{letter}" if count else "")
    whole, fraction = divmod(rest, 10**9)
    days, *clock = parts
    seconds = f"{whole}.{fraction:09}".rstrip("0").rstrip(".") + "S" if rest or not any(parts) else ""
    time = "".join(clock) + seconds
    return f"{'-' if nanoseconds < 0 else ''}P{days}{'T' if time else ''}{time}"


def parse_duration(text: str) -> int:
    """Nanoseconds of a duration such as `5s`, `100ms`, `2 minutes`, `1h 30m`, `1.5 hours`, or `0`.

    Units: ns, us, ms, s, m (min), h, d and their English names, singular or plural. Raises `OptionError`.

    >>> parse_duration("1h 30m") // 10**9, parse_duration("2 minutes") // 10**9
    (5400, 120)
    """
    literal = text.strip()
    if literal == "0":
        return 0
    total, at = Decimal(0), 0
    while at < len(literal):
        match = _DURATION_PART.match(literal, at)
        scale = _unit_scale(match[2]) if match else None
        if match is None or scale is None:
            raise OptionError(
                f"{_quote(text)} is not a duration",
                "a number with a unit: 5s, 100ms, 2 minutes, 1h 30m (ns, us, ms, s, m, h, d)",
            )
        total += Decimal(match[1]) * scale
        at = match.end()
    if not literal or total > _INT64_MAX:
        raise OptionError(f"{_quote(text)} is not a duration that can be held", "for example 5s, 100ms, 2 minutes")
    return int(total)


def nanoseconds_of(now: Any) -> int:
    """A time that was given as nanoseconds, of any type of integers, or as a datetime; one without a zone is in UTC, as
    a literal is. Exact. Raises `OptionError` for anything else.

    >>> nanoseconds_of(datetime.datetime(1970, 1, 1, 0, 0, 1)), nanoseconds_of(5)
    (1000000000, 5)
    """
    if isinstance(now, datetime.datetime) and now == now:  # pandas' NaT is a datetime, and equals nothing
        span = now.replace(tzinfo=None) - _EPOCH - (now.utcoffset() or datetime.timedelta())
        microseconds = span // datetime.timedelta(microseconds=1)
        return int(microseconds) * 1_000 + getattr(now, "nanosecond", 0)  # pandas' Timestamps have it
    try:
        if not isinstance(now, bool):
            return operator.index(now)
    except TypeError:
        pass
    hint = "datetime.now(UTC), or an int of nanoseconds; parse_time of spaseq.core.events reads a text"
    raise OptionError(f"a time is a datetime, or nanoseconds as an int, and this is {_quote(str(now))}", hint)


def duration_nanoseconds(amount: str, unit: str) -> int:
    """Nanoseconds in `amount` (a decimal numeral) of a unit of time; `OptionError` for a word that is none.

    >>> duration_nanoseconds("1.5", "HOURS") // 10**9
    5400
    """
    scale = _unit_scale(unit)
    if scale is None:
        raise OptionError(f"{_quote(unit)} is not a unit of time", "one of ns, us, ms, s, m, h, d")
    return int(Decimal(amount) * scale)


def _unit_scale(word: str) -> int | None:
    """Nanoseconds in a unit word; plurals count, case only matters nowhere."""
    name = word.lower()
    return _DURATION_UNITS.get(name) or (_DURATION_UNITS.get(name[:-1]) if len(name) > 3 and name[-1] == "s" else None)
