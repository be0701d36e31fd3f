"""Times and durations: their arithmetic, and the functions YEAR … SECOND, WEEKDAY, DATE_TRUNC and TO_TIME.

A time less a time is a duration. A time and a duration make a time, durations a duration. A duration may be multiplied
with a number or divided by one, to the nearest nanosecond; divided by a duration it is a number. What does not fit 64
bits of nanoseconds is NULL.

Years, hours and the like are those of UTC, or of the time zone given. WEEKDAY is 1 on Mondays and 7 on Sundays (ISO
8601). DATE_TRUNC gives the beginning of a year, quarter, month, week (Monday), day, hour, minute or second. A text in
the form of a time may stand for the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ceql.operators.columns import ByRow, Constant, Operand, both_known
from ceql.operators.function import Function
from ceql.operators.values import INT64, kind_of, mismatch, text_of, time_of
from ceql.operators.zones import SECOND, check_zone, offset_at, offsets_at, utc_of
from spaseq.core.errors import EventError
from spaseq.core.events import (
    Duration,
    DurationColumn,
    Instant,
    NumberColumn,
    TimeColumn,
)
from spaseq.core.events.time import UNITS, parse_time

KINDS: Final = {
    ("time", "-", "time"): "duration",
    ("time", "-", "duration"): "time",
    ("time", "+", "duration"): "time",
    ("duration", "+", "time"): "time",
    ("duration", "+", "duration"): "duration",
    ("duration", "-", "duration"): "duration",
    ("duration", "*", "number"): "duration",
    ("number", "*", "duration"): "duration",
    ("duration", "/", "number"): "duration",
    ("duration", "/", "duration"): "number",
}
"""The kind of the result by the kinds of both sides; others do not go together."""
_MOST: Final = 2.0**63
_DAY: Final = 86_400


def move(symbol: str, left: Any, right: Any) -> Any:
    """The value of `left symbol right` if one is a time or a duration; None for NULL. `EventError` if the kinds do not
    go together."""
    kinds = kind_of(left), kind_of(right)
    kind = KINDS.get((kinds[0], symbol, kinds[1]))
    if kind is None:
        raise mismatch(*kinds, f"{text_of(left)} {symbol} {text_of(right)}")
    if symbol in "+-":
        total = int(left) + int(right) if symbol == "+" else int(left) - int(right)
        return _fit(total, kind)
    if kind == "number":
        return float(left) / float(right) if right else None
    if symbol == "*":
        span, number = (left, right) if kinds[0] == "duration" else (right, left)
        return _fit(int(span) * number, kind) if isinstance(number, int) else _round(float(span) * number)
    if isinstance(right, int):
        return _fit(_quotient(int(left), right), kind) if right else None
    return _round(float(left) / right) if right else None


def nearest(total: Any, count: Any, start: int = 0) -> Any:
    """`start + total / count`, ints or int64 arrays, to the nearest whole number; of two the even one. `count` > 0."""
    below, rest = start + total // count, total % count
    return below + ((rest > count - rest) | ((rest == count - rest) & (below % 2 == 1)))


def _quotient(total: int, count: int) -> int:
    """`nearest`, for a `count` that is not 0."""
    return int(nearest(total, count) if count > 0 else nearest(-total, -count))


def _fit(total: int, kind: str) -> Instant | Duration | None:
    if total not in INT64 or (kind == "time" and total == INT64[0]):
        return None
    return Instant(total) if kind == "time" else Duration(total)


def _round(total: float) -> Duration | None:
    return Duration(round(total)) if abs(total) < _MOST else None


def moved_columns(symbol: str, left: Operand, right: Operand, what: str) -> Operand:
    """As `move`, of columns and constants, at least one of them a column; `what` is the expression's text."""
    if left is None or right is None:
        return None
    kinds = _kind(left), _kind(right)
    kind = KINDS.get((kinds[0], symbol, kinds[1]))
    if kind is None:
        raise mismatch(*kinds, what)
    if kind == "duration" and any(isinstance(side, NumberColumn) and side.whole is not None for side in (left, right)):
        raise ByRow  # a whole number is multiplied exactly
    (a, known_a), (b, known_b) = _array(left), _array(right)
    known = both_known(known_a, known_b)
    with np.errstate(all="ignore"):
        if symbol == "+":
            found = a + b
            fits = ~(((a ^ found) & (b ^ found)) < 0)
        elif symbol == "-":
            found = a - b
            fits = ~(((a ^ b) & (a ^ found)) < 0)
        elif symbol == "*" and a.dtype == b.dtype:
            found = a * b
            fits = np.abs(a.astype(np.float64) * b.astype(np.float64)) < _MOST / 2
            near = np.flatnonzero(~fits)
            wide = [np.broadcast_to(side, fits.shape)[near].tolist() for side in (a, b)]
            fits[near] = [one * two in INT64 for one, two in zip(*wide, strict=True)]
        elif symbol == "/" and kind == "duration" and a.dtype == b.dtype:
            if ((b == INT64[0]) | ((a == INT64[0]) & (b < 0))).any():
                raise ByRow  # 64 bits do not hold -a or -b
            fits = np.broadcast_to(b != 0, np.broadcast(a, b).shape)
            found = nearest(np.where(b < 0, -a, a), np.abs(np.where(b == 0, 1, b)))
        else:
            real = a.astype(np.float64) * b if symbol == "*" else a / b
            fits = np.broadcast_to(True if symbol == "*" else b != 0, real.shape)
            fits = fits if kind == "number" else fits & (np.abs(real) < _MOST)
            found = real if kind == "number" else np.rint(np.where(fits, real, 0.0)).astype(np.int64)
    if kind == "time":
        fits &= found != INT64[0]
    known = known if fits.all() else both_known(known, fits)
    found = found if known is None else np.where(known, found, 0)
    if kind == "number":
        return NumberColumn(found, known)
    return TimeColumn(found, known) if kind == "time" else DurationColumn(found, known)


def _kind(operand: Any) -> str:
    return kind_of(operand.value) if isinstance(operand, Constant) else str(operand.kind)


def _array(operand: Any) -> tuple[np.ndarray, np.ndarray | None]:
    if not isinstance(operand, Constant):
        return operand.values, operand.known
    value = operand.value
    return np.asarray(value if isinstance(value, float) else int(value)), None


# Parts of times. All of these take an int or an int64 array.


def _date_of(day: Any) -> tuple[Any, Any, Any]:
    """(year, month, day) of a day since 1970-01-01, by the proleptic Gregorian calendar."""
    shifted = day + 719_468  # years begin in March, periods of 400 years in the year 0
    period, within = shifted // 146_097, shifted % 146_097
    year = (within - within // 1_460 + within // 36_524 - within // 146_096) // 365
    rest = within - (365 * year + year // 4 - year // 100)
    month = (5 * rest + 2) // 153
    calendar = (month + 2) % 12 + 1
    return year + period * 400 + (calendar <= 2), calendar, rest - (153 * month + 2) // 5 + 1


def _day_of(year: Any, month: Any) -> Any:
    """The first day of a month, since 1970-01-01."""
    year = year - (month <= 2)
    period, within = year // 400, year % 400
    rest = (153 * ((month + 9) % 12) + 2) // 5
    return period * 146_097 + within * 365 + within // 4 - within // 100 + rest - 719_468


def _month_start(months: int) -> Callable[[Any], Any]:
    """The beginning of a year (12 months) or a quarter (3)."""

    def start(second: Any) -> Any:
        year, month, _ = _date_of(second // _DAY)
        return _day_of(year, (month - 1) // months * months + 1) * _DAY

    return start


_PARTS: Final[dict[str, Callable[[Any], Any]]] = {
    "YEAR": lambda second: _date_of(second // _DAY)[0],
    "MONTH": lambda second: _date_of(second // _DAY)[1],
    "DAY": lambda second: _date_of(second // _DAY)[2],
    "HOUR": lambda second: second // 3_600 % 24,
    "MINUTE": lambda second: second // 60 % 60,
    "SECOND": lambda second: second % 60,
    "WEEKDAY": lambda second: (second // _DAY + 3) % 7 + 1,
}
_STARTS: Final[dict[str, Callable[[Any], Any]]] = {
    "year": _month_start(12),
    "quarter": _month_start(3),
    "month": _month_start(1),
    "week": lambda second: ((second // _DAY + 3) // 7 * 7 - 3) * _DAY,
    "day": lambda second: second // _DAY * _DAY,
}
_SHORT: Final = {"hour": 3_600, "minute": 60, "second": 1}
_LEAST: Final = -(INT64[-1] // SECOND)
"""The first second of which 64 bits hold the nanoseconds."""


def _nanoseconds(time: Any) -> int:
    return time_of(time) if isinstance(time, str) else int(time)


def _part(name: str) -> Function:
    of_seconds = _PARTS[name]

    def work(time: Any, zone: str | None = None) -> int:
        second = _nanoseconds(time) // SECOND
        return int(of_seconds(second if zone is None else second + offset_at(zone, second)))

    def columns(time: Operand, zone: Operand = None, *, count: int) -> Any:
        if not isinstance(time, TimeColumn):
            return NotImplemented
        return NumberColumn(_by_day(of_seconds, name, _local(time, zone)[0]), time.known)

    return Function(name, ("time/text", "text"), "number", work, optional=1, columns=columns, constants=(1,),
                    check=_check_part,
                    sample=f"{name}(x.time)")  # fmt: skip


def _by_day(of_seconds: Callable[[Any], Any], name: str, seconds: np.ndarray) -> np.ndarray:
    """The part of each second since 1970. Parts of dates are computed once for each run of seconds of one day."""
    if name not in ("YEAR", "MONTH", "DAY"):
        return np.asarray(of_seconds(seconds))
    # PERF: 8 ns an event for events in order of time; 120 ns day by day.
    return _each_run(seconds // _DAY, lambda days: of_seconds(days * _DAY))


def _each_run(values: np.ndarray, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`compute` of each value: once for each run of equal ones, which are few if events are in order of time."""
    if not len(values):
        return values
    starts = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    if 2 * len(starts) > len(values):
        return compute(values)
    return np.repeat(compute(values[starts]), np.diff(np.append(starts, len(values))))


def _check_part(time: None, zone: str | None = None) -> None:
    if zone is not None:
        check_zone(zone)


def _local(time: TimeColumn, zone: Operand) -> tuple[np.ndarray, np.ndarray | int]:
    """The seconds of local time since 1970, and their offsets to UTC."""
    seconds = time.values // SECOND
    if not isinstance(zone, Constant):
        return seconds, 0
    offsets = offsets_at(zone.value, seconds)
    return seconds + offsets, offsets


def _truncate(unit: str, time: Any, zone: str | None = None) -> Instant | None:
    second = _nanoseconds(time) // SECOND
    local = second if zone is None else second + offset_at(zone, second)
    name = unit.lower()
    if name in _SHORT:
        start = second - local % _SHORT[name]
    else:
        start = int(_STARTS[name](local))
        start = start if zone is None else utc_of(zone, start)
    return Instant(start * SECOND) if start >= _LEAST else None


def _truncated_columns(unit: Operand, time: Operand, zone: Operand = None, *, count: int) -> Any:
    if not isinstance(time, TimeColumn) or not isinstance(unit, Constant):
        return NotImplemented
    local, offsets = _local(time, zone)
    name = unit.value.lower()
    if name in _SHORT:
        starts = local - offsets - local % _SHORT[name]
    else:
        starts = _each_run(local // _DAY, lambda days: np.asarray(_STARTS[name](days * _DAY)))
        if isinstance(zone, Constant):
            starts = _each_run(starts, lambda some: np.array([utc_of(zone.value, s) for s in some.tolist()], np.int64))
    fits = starts >= _LEAST
    known = time.known if fits.all() else both_known(time.known, fits)
    return TimeColumn(np.where(fits, starts, 0) * SECOND, known)


def _check_truncated(unit: str, time: None, zone: str | None = None) -> None:
    names = (*_STARTS, *_SHORT)
    if str(unit).lower() not in names:
        raise EventError(f"DATE_TRUNC to {unit!r}", hint=f"units are {', '.join(repr(name) for name in names)}")
    if zone is not None:
        check_zone(zone)


def _to_time(value: Any, unit: str = "s") -> Instant | None:
    """A number in a unit, as a time since 1970. The digits below a nanosecond are cut off."""
    if isinstance(value, str):
        return Instant(time_of(value) if unit == "s" else parse_time(value, unit))
    if isinstance(value, Instant):
        return value
    if isinstance(value, float) and not abs(value) < _MOST:
        return None
    total = value * UNITS[unit] if isinstance(value, int) else parse_time(repr(value), unit)
    return Instant(total) if total in INT64 else None


def _check_to_time(value: None, unit: str = "s") -> None:
    if unit not in UNITS:
        raise EventError(f"TO_TIME in {unit!r}", hint=f"units are {', '.join(repr(name) for name in UNITS)}")


def _to_time_columns(value: Operand, unit: Operand = None, *, count: int) -> Any:
    if isinstance(value, TimeColumn):
        return value
    if not isinstance(value, NumberColumn) or value.values.dtype != np.int64:
        return NotImplemented
    scale = UNITS[unit.value if isinstance(unit, Constant) else "s"]
    least, most = -(-INT64[0] // scale), INT64[-1] // scale
    fits = (value.values >= least) & (value.values <= most)
    known = value.known if fits.all() else both_known(value.known, fits)
    return TimeColumn(np.where(fits, value.values, 0) * scale, known)


TIMES: Final = (
    *map(_part, _PARTS),
    Function("DATE_TRUNC", ("text", "time/text", "text"), "time", _truncate, optional=1, columns=_truncated_columns,
             constants=(0, 2), check=_check_truncated, sample="DATE_TRUNC('day', x.time)"),
    Function("TO_TIME", ("number/text/time", "text"), "time", _to_time, optional=1, columns=_to_time_columns,
             constants=(1,), check=_check_to_time, sample="TO_TIME(x.time, 'ms')"),
)  # fmt: skip
