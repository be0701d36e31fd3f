"""The aggregates over the events of a variable, and CORR.

NULL as in SQL: COUNT(b) counts events, COUNT(b.a) those with a value. SUM, AVG, MIN, MAX and STDDEV are over the values
that are not NULL. They are NULL if there are none (STDDEV, of the sample, if there are fewer than two). FIRST and LAST
are the values of the first and the last event, NULL or not; COLLECT lists those of all events.

SUM and AVG are of durations, too, and AVG is of times. Such a mean is to the nearest nanosecond, of two the even one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any, Final

from ceql.operators.function import Function, kind_words
from ceql.operators.times import nearest
from ceql.operators.values import INT64, compare, kind_of, mismatch, text_of
from spaseq.core.errors import EventError
from spaseq.core.events import Duration, Instant

_NUMBERS: Final = (int, float)
_SPANS: Final = {"duration": Duration, "time": Instant}


def _itself(state: Any) -> Any:
    return state


def _first(state: Any) -> Any:
    return state[0]


def _count(state: Any, value: Any) -> Hashable:
    return state if value is None else state + 1


def _adder(*kinds: str) -> Callable[[Any, Any], Hashable]:
    """State: None before the first value, then (count, sum); of durations and times (count, sum in ns, kind)."""

    def add(state: Any, value: Any) -> Hashable:
        if value is None:
            return state
        if value.__class__ in _NUMBERS and (state is None or len(state) == 2):
            return (1, value) if state is None else (state[0] + 1, state[1] + value)
        kind = kind_of(value)
        if kind not in kinds:
            words = kind_words("/".join(kinds))
            raise EventError(f"{text_of(value)} is not {words}, and an aggregate is taken of it")
        if state is None:
            return (1, int(value), kind)
        if state[2:] != (kind,):
            before = state[2] if len(state) > 2 else "number"
            raise mismatch(before, kind, f"an aggregate of {text_of(value)}")
        return (state[0] + 1, state[1] + int(value), kind)

    return add


def _sum(state: Any) -> int | float | None:
    if state is None:
        return None
    total = state[1]
    if not isinstance(total, int):
        return _real(total)
    return None if total not in INT64 else Duration(total) if state[2:] else total


def _mean(state: Any) -> int | float | None:
    if state is None:
        return None
    count, total, *of = state
    if of:
        return _SPANS[of[0]](nearest(total, count))
    return _real(_double(total) / count)


def _square(state: Any, value: Any) -> Hashable:
    """State: None before the first value, then (count, first value, sum of differences to it, sum of their squares)."""
    if value is None:
        return state
    _check_number(value)
    if state is None:
        return (1, value, 0, 0)
    count, first, total, squares = state
    distance = value - first
    return (count + 1, first, total + distance, squares + distance * distance)


def _deviation(state: Any) -> float | None:
    """The standard deviation of the sample."""
    if state is None or state[0] < 2:
        return None
    count, _, total, squares = state
    variance = _double(count * squares - total * total) / (count * (count - 1))
    return _real(math.sqrt(max(variance, 0.0)) if not math.isnan(variance) else variance)


def _extreme(symbol: str) -> Callable[[Any, Any], Hashable]:
    def extreme(state: Any, value: Any) -> Hashable:
        if value is None or state is None:
            return state if value is None else value
        return value if compare(symbol, value, state) else state

    return extreme


def _check_number(value: Any) -> None:
    if kind_of(value) != "number":
        raise EventError(f"{value!r} is not a number, and an aggregate is taken of it")


def _double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _real(number: float) -> float | None:
    return None if math.isnan(number) else number


def _distinct(state: Any, value: Any) -> Hashable:
    """State: the values so far, each with its kind: 1 is not TRUE."""
    return state if value is None else state | {(kind_of(value), value)}


def _correlation(left: tuple[float, ...], right: tuple[float, ...]) -> float | None:
    """Pearson's correlation of two lists of numbers, within -1 and 1. O(length)."""
    count = len(left)
    if count != len(right) or count < 2 or None in left or None in right:
        return None
    try:
        first, second = math.fsum(left) / count, math.fsum(right) / count
        spread = math.fsum((a - first) ** 2 for a in left) * math.fsum((b - second) ** 2 for b in right)
        together = math.fsum((a - first) * (b - second) for a, b in zip(left, right, strict=True))
    except (OverflowError, ValueError):  # beyond doubles
        return None
    if not 0 < spread < math.inf or not math.isfinite(together):
        return None
    return max(-1.0, min(1.0, together / math.sqrt(spread)))


AGGREGATES: Final = (
    Function("AVG", ("number/duration/time",), "argument", _mean, _adder("number", "duration", "time")),
    Function("COLLECT", ("any",), "collected", list, lambda state, value: (*state, value), ()),
    Function("CORR", ("list", "list"), "number", _correlation),
    Function("COUNT", ("event",), "number", _itself, _count, 0),
    Function("COUNT DISTINCT", ("any",), "number", len, _distinct, frozenset(), sample="COUNT(DISTINCT x.price)"),
    Function("FIRST", ("any",), "argument", _first, lambda state, value: state or (value,), ()),
    Function("LAST", ("any",), "argument", _first, lambda state, value: (value,), ()),
    Function("MAX", ("ordered",), "argument", _itself, _extreme(">")),
    Function("MIN", ("ordered",), "argument", _itself, _extreme("<")),
    Function("STDDEV", ("number",), "number", _deviation, _square),
    Function("SUM", ("number/duration",), "argument", _sum, _adder("number", "duration")),
)
