"""The values of CEQL, their kinds, and comparisons of single ones; on columns see `ceql.expressions.vectorized`.

Values are int, float, str, bool, `Instant` (a time), `Duration`, tuples (lists of numbers or texts, with None for a
missing one) and None (NULL). Rules:

* NULL in, NULL out; a comparison with NULL is unknown (None).
* Numbers are compared by value, exactly: 2^53 + 1 is greater than the double 2^53. So equality is transitive, and
  orders are total, whatever kinds of numbers an attribute has.
* Integers are computed exactly within 64 bits; a result outside them is NULL. If either side is a double, both are
  taken as doubles. `/` always divides as doubles; `%` has the sign of its left side; both are NULL if the right side is
  0. A result that is NaN is NULL.
* Texts are compared by code point. Booleans have only `=` and `!=`. A time is compared with a time, or with a text in
  the form of a time. Other combinations are a mistake in the query or in the data and raise `EventError`.
* Lists are not compared with each other; `x = ANY(list)` compares x with the elements.
* CORR is Pearson's correlation of two lists of numbers. It is NULL if a list is NULL or contains a missing number, and
  if the lengths differ. It is also NULL for fewer than two pairs, and if all numbers of a list are equal.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError
from spaseq.core.events.batch import Instant
from spaseq.core.events.columns import Duration, kind_of_list, text_array
from spaseq.core.events.time import format_duration, format_time, parse_time

INT64: Final = range(-(1 << 63), 1 << 63)
_HOLDS: Final = {symbol: row.holds for symbol, row in COMPARISONS.items()}


def kind_of(value: Any) -> str:
    """The kind of a value that is not None: "number", "text", "truth", "time", "duration", "list" (of numbers) or
    "texts" (a list). A list of which nothing is known is a "list"."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, Instant):
        return "time"
    if isinstance(value, Duration):
        return "duration"
    if isinstance(value, tuple):
        return kind_of_list(value)
    return "text" if isinstance(value, str) else "number"


CLASSES: Final = {"number": (int, float), "text": (str,), "truth": (bool,), "time": (Instant,),
                  "duration": (Duration,), "list": (), "texts": (tuple,)}  # fmt: skip
"""By kind the Python classes of its values. Tuples are of two kinds: what takes one of them looks at the elements."""
ELEMENTS: Final = {"list": "number", "texts": "text"}
"""The kinds of lists, and of their elements."""
LISTS: Final = {kind: of for of, kind in ELEMENTS.items()}
KIND_WORDS: Final = {"number": "a number", "text": "a text", "truth": "a truth value", "time": "a time",
                      "duration": "a duration", "list": "a list of numbers", "texts": "a list of texts"}  # fmt: skip
ARROW_TYPES: Final = {"number": pa.float64(), "text": pa.string(), "truth": pa.bool_(),
                      "time": pa.timestamp("ns", "UTC"), "duration": pa.duration("ns"),
                      "list": pa.list_(pa.float64()), "texts": pa.list_(pa.string())}  # fmt: skip


_HINTS: Final = {
    frozenset(("number", "text")): "a text in quotes is not a number",
    frozenset(("number", "duration")): "a number of seconds is a time by TO_TIME(x.time, 's'), of milliseconds by "
    "TO_TIME(x.time, 'ms'); a duration is a number by x / 1 SECOND",
    frozenset(("number", "time")): "a number of seconds is a time by TO_TIME(x.time, 's'); a duration is 1 HOUR",
    frozenset(("text", "duration")): "a text in the form of a time is one by TO_TIME(x.time)",
    frozenset(("text",)): "texts have no arithmetic: TO_TIME(x.time) makes a time of one, CONCAT(a, b) joins them",
}


def mismatch(left: str, right: str, what: str) -> EventError:
    """The error for operands of kinds `left` and `right` that do not go together; `what` is the expression's text."""
    hint = _HINTS.get(frozenset((left, right)), "are the attributes the right ones?")
    return EventError(f"{what}: {KIND_WORDS[left]} cannot be combined with {KIND_WORDS[right]}", hint=hint)


def compare(symbol: str, left: Any, right: Any) -> bool | None:
    """The truth of `left symbol right`; None if unknown. Raises `EventError` if the kinds do not go together."""
    if left is None or right is None:
        return None
    kinds = kind_of(left), kind_of(right)
    if kinds[0] != kinds[1]:
        left, right = _as_times(symbol, left, right, kinds)
    elif kinds[0] in ELEMENTS or (kinds[0] == "truth" and COMPARISONS[symbol].is_order):
        raise mismatch(*kinds, f"{left} {symbol} {right}".lower())
    return bool(_HOLDS[symbol](left, right))


def _as_times(symbol: str, left: Any, right: Any, kinds: tuple[str, str]) -> tuple[int, int]:
    if kinds == ("time", "text"):
        return int(left), time_of(right)
    if kinds == ("text", "time"):
        return time_of(left), int(right)
    raise mismatch(*kinds, f"{text_of(left)} {symbol} {text_of(right)}")


def text_of(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Instant):
        return format_time(value)
    return format_duration(value) if isinstance(value, Duration) else repr(value)


@functools.lru_cache(4096)
def time_of(text: str) -> int:
    """A text that is compared with a time attribute, in nanoseconds since 1970. `EventError` if it is not a time."""
    return parse_time(text)


def whole_string(pattern: str) -> str:
    """The regular expression that matches a string if `pattern` matches all of it."""
    return rf"\A(?:{pattern})\z"


def like(value: Any, pattern: str) -> bool | None:
    """True if all of `value` matches a regular expression of RE2 (Arrow's); None for NULL. `EventError` if no text."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise mismatch(kind_of(value), "text", f"{value!r} LIKE {pattern!r}")
    return _known_like(value, pattern) if len(value) + len(pattern) <= _REMEMBERED else _like(value, pattern)


_REMEMBERED: Final = 256
"""Characters of a text and its pattern up to which the result of a match is cached: 65,536 are at most 90 MB."""


def _like(value: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(text_array([value]), whole_string(pattern))[0].as_py())


_known_like = functools.lru_cache(65536)(_like)
