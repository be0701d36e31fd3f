"""`match.as_(Theft)`: rows as objects of a class of the user's, with names and kinds checked."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NewType, NotRequired, TypedDict

import pytest

import ceql

QUERY = "SELECT user, COUNT(f) AS failures, ok.time - FIRST(f.time) AS took, COLLECT(f.ip) AS ips, ok.place AS place "
QUERY += "WHERE fail+ AS f ; login AS ok PARTITION BY [user] WITHIN 1 MINUTE"
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
EVENTS: list[dict[str, Any]] = [
    {"type": kind, "user": "ann", "time": START + datetime.timedelta(seconds=second), "ip": "::1", "place": place}
    for second, (kind, place) in enumerate([("fail", None), ("login", "Ulm"), ("fail", None), ("login", None)])
]
TOOK = datetime.timedelta(seconds=1)
User = NewType("User", str)


@dataclass(frozen=True)
class Break:
    user: User
    failures: float
    took: datetime.timedelta
    ips: Sequence[str]
    place: str | None
    note: Literal["new", "known"] = "new"
    count: int = field(init=False, default=0)


class Short(NamedTuple):
    failures: Annotated[int, "of them"]
    user: str = "nobody"
    more: Any = None


class Entry(TypedDict):
    user: str
    place: NotRequired[str | None]
    age: NotRequired[int]


class _Info:
    """As pydantic has it for a field."""

    def __init__(self, *, required: bool) -> None:
        self._required = required

    def is_required(self) -> bool:
        return self._required


class Model:
    """As pydantic has its models: it checks its values, and refuses them by a `ValueError`."""

    model_fields: ClassVar = {
        "user": _Info(required=True),
        "failures": _Info(required=True),
        "age": _Info(required=False),
    }

    def __init__(self, user: str, failures: int, age: int = 7) -> None:
        if failures < 1:
            raise ValueError("1 validation error for Model\nfailures\n  Input should be less than 1")
        self.shown = (user, failures, age)


def _matches(events: list[dict[str, Any]] = EVENTS, query: str = QUERY) -> list[ceql.Match]:
    return list(ceql.compile(query.replace("SELECT", "SELECT MAX")).run(events))


def test_rows_are_objects_of_each_kind_of_class() -> None:
    first, *_, last = _matches()
    assert first.as_(Break) == Break(User("ann"), 1, TOOK, ["::1"], "Ulm")
    assert first.as_(Short) == Short(1, "ann") and first.as_(Entry) == {"user": "ann", "place": "Ulm"}
    assert first.as_(Model).shown == ("ann", 1, 7) and last.as_(Break).place is None
    session = ceql.compile(QUERY).open()
    (pushed,) = [match for event in EVENTS[:2] for match in session.push(event)]
    assert pushed.as_(Break) == first.as_(Break)
    network = ceql.Network({"theft": QUERY})
    assert [match.as_(Short).failures for _, match in network.run(EVENTS[:2])] == [1]


@dataclass
class Misspelt:
    usr: str


@dataclass
class Sure:
    place: str


@dataclass
class Number:
    user: int | bool


@dataclass
class Truth:
    failures: bool


@dataclass
class Odd:
    user: complex


class Plain:
    user: str


WRONG = [
    (
        Misspelt,
        "Misspelt.usr is no column of SELECT; there are: user, failures, took, ips, place",
        "did you mean user?",
    ),
    (Number, "SELECT: Number.user takes int or bool, and this match has 'ann', a str", "CAST"),
    (Truth, "Truth.failures takes bool, and this match has 1, an int", "CAST"),
    (Odd, "Odd.user is a complex, which no column of SELECT holds", "columns hold int"),
    (Plain, "Plain is no class for rows", "a dataclass"),
    (int, "int is no class for rows", "a NamedTuple"),
    ("Break", "'Break' is no class for rows", "a TypedDict"),
    ([], "[] is no class for rows", "pydantic"),
]


@pytest.mark.parametrize(("kind", "problem", "hint"), WRONG)
def test_a_class_that_does_not_fit_is_refused(kind: Any, problem: str, hint: str) -> None:
    with pytest.raises(ceql.SpaseqError) as caught:
        _matches()[0].as_(kind)
    assert problem in str(caught.value) and hint in str(caught.value)


def test_a_model_refuses_by_itself() -> None:
    query = QUERY.replace("COUNT(f) AS", "COUNT(f) - 1 AS")
    with pytest.raises(ceql.EventError, match="Model refuses the row of this match: 1 validation error for Model f"):
        _matches(query=query)[0].as_(Model)


def test_null_needs_none() -> None:
    with pytest.raises(ceql.EventError, match=r"Sure.place takes str, and this match has NULL\n.*\| None takes NULL"):
        _matches()[-1].as_(Sure)
    assert _matches()[0].as_(Sure).place == "Ulm"


def test_values_of_arrow_have_their_annotations() -> None:
    """Decimals and dates of the input are those of the row; a time is a date, too."""

    @dataclass
    class Bill:
        at: datetime.date
        v: decimal.Decimal | None
        raw: bytes | None = None

    day, now = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    for at, v, raw in ((day, decimal.Decimal("1.10"), b"x"), (now, None, None)):
        (match,) = _matches(
            [{"type": "A", "at": at, "v": v, "raw": raw}], "SELECT a.at AS at, a.v AS v, a.raw AS raw WHERE A AS a"
        )
        assert match.as_(Bill) == Bill(at, v, raw)
    (match,) = _matches([{"type": "A", "at": "today", "v": None}], "SELECT a.at AS at, a.v AS v WHERE A AS a")
    with pytest.raises(ceql.EventError, match=r"Bill\.at takes date, and this match has 'today', a str"):
        match.as_(Bill)


def test_a_match_without_columns_has_no_row() -> None:
    (match,) = ceql.compile("SELECT * WHERE fail AS f ; login AS l WITHIN 1 EVENTS").run(EVENTS[:2])
    with pytest.raises(ceql.OptionError, match="no row for Short: SELECT computes no columns"):
        match.as_(Short)


def test_annotations_that_the_program_does_not_know_are_not_checked() -> None:
    @dataclass
    class Local:
        user: Unknown  # type: ignore[name-defined] # noqa: F821

    assert _matches()[0].as_(Local).user == "ann"
