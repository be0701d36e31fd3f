"""Time literals, durations, and the policy for late events."""

from __future__ import annotations

import datetime
import doctest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventOptions
from spaseq.core.events import time as t
from spaseq.rdf import StreamOptions

S = 10**9


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("0", "s", 0),
        ("1.5", "s", 1_500_000_000),
        ("-2", "ms", -2_000_000),
        ("1e3", "us", 1_000_000),
        (" 7 ", "ns", 7),
        ("1700000000.123456789", "s", 1_700_000_000_123_456_789),
        ("1970-01-01", "s", 0),
        ("1970-01-01T00:00:01Z", "ms", S),
        ("1970-01-01T02:00:00+02:00", "s", 0),
        ("1969-12-31T19:00:00-0500", "s", 0),
        ("1970-01-01 00:01", "s", 60 * S),
        ("0" * 5_000 + "12", "s", 12 * S),
        ("1970-01-01T24:00:00", "s", 86_400 * S),
        ("1970-01-01T00:00:00.1234567899", "s", 123_456_789),
        ("2000-02-29T00:00:00Z", "s", 951_782_400 * S),
    ],
)
def test_parse_time(text: str, unit: str, expected: int) -> None:
    assert t.parse_time(text, unit) == expected


@pytest.mark.parametrize(
    "text", ["", "noon", "12:00", "2024-13-01", "2023-02-29", "2024-01-01T25:00:00", "2024-01-01T24:00:01", "1e30",
             "nan", "2024-01-01T00:00:00+15:00", "9999-01-01", "1e999", "0x10", "１２",
             "9" * 5_000, "-" + "9" * 5_000, "9" * 5_000 + "-01-01", "1" + "0" * 40]
)  # fmt: skip
def test_wrong_times(text: str) -> None:
    with pytest.raises(EventError):
        t.parse_time(text)


@given(st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1)))
def test_the_calendar_is_pythons(moment: datetime.datetime) -> None:
    delta = moment - datetime.datetime(1970, 1, 1)
    expected = (delta.days * 86_400 + delta.seconds) * S + delta.microseconds * 1000
    assert t.parse_time(moment.isoformat()) == expected
    assert t.parse_time(t.format_time(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("5s", 5 * S), ("100ms", 10**8), ("2 minutes", 120 * S), ("1h 30m", 5400 * S), ("1.5 HOURS", 5400 * S), ("0", 0),
     ("1 day", 86_400 * S), ("7ns", 7), ("3us", 3000), ("1m30s", 90 * S), (".5 sec", S // 2)],
)  # fmt: skip
def test_parse_duration(text: str, expected: int) -> None:
    assert t.parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "5", "soon", "5 parsecs", "-5s", "5s!", "400 years", "1e3s"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(OptionError, match="is not a duration"):
        t.parse_duration(text)


def test_wrong_units() -> None:
    with pytest.raises(OptionError):
        t.unit_nanoseconds("min")


def test_examples_in_docstrings() -> None:
    assert doctest.testmod(t).failed == 0


@pytest.mark.parametrize(
    ("word", "value"),
    [("type_column", 5), ("type_column", b"x"), ("time", 5), ("time", ["a"]), ("time", b"t"), ("interval", [1]),
     ("lateness", None), ("interval", float("nan")), ("lateness", float("inf"))],
)  # fmt: skip
def test_options_of_other_types_are_errors_that_name_them(word: str, value: object) -> None:
    """They were a TypeError at the first event, in Python and from a snapshot that was changed."""
    words: Any = {word: value}
    with pytest.raises(OptionError, match=f"^{word}\\b"):
        EventOptions.parse(**words)
    with pytest.raises(OptionError, match=f"^{word}\\b"):
        EventOptions(**words)
    if word == "time":
        with pytest.raises(OptionError, match=r"^time\b"):
            StreamOptions.parse(**words)
