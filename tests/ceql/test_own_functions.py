"""Functions of the user: the same on columns, on single values and on pushed events, with clear errors."""

from __future__ import annotations

import datetime
import math
import pickle
import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import ceql
from ceql.operators import own
from spaseq.core.errors import EventError, OptionError, QuerySemanticsError

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
EVENTS: list[dict[str, Any]] = [
    {"type": "A", "n": 3, "name": "ab", "at": START}, {"type": "A", "n": 12.5, "name": None, "at": START},
    {"type": "A", "n": None, "name": "b", "at": START + datetime.timedelta(hours=2)},
    {"type": "B", "n": 7, "name": "ab"},
]  # fmt: skip


def tenth(value: float) -> float:
    return value / 10


def rows(text: str, events: list[dict[str, Any]] = EVENTS) -> list[dict[str, Any]]:
    """The rows over a batch, which are those of events pushed one by one, and in pieces."""
    query = ceql.compile(text)
    found = query.run(events).to_arrow().to_pylist()
    with query.open() as session:
        pushed = [match.row for event in events for match in session.push(event)]
    with query.open() as session:
        pieces = [match.row for match in (*session.push(events[:2]), *session.push(events[2:]))]
    assert pushed == pieces == found
    return found


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_in_conditions_and_select(vectorized: bool) -> None:
    work = (lambda n: pc.multiply(n, 2)) if vectorized else (lambda n: n * 2)
    ceql.register_function("double", work, vectorized=vectorized)
    assert rows("SELECT DOUBLE(a.n) AS d, DOUBLE(a.n) + 1 AS e WHERE A AS a") == [
        {"d": 6.0, "e": 7.0}, {"d": 25.0, "e": 26.0}, {"d": None, "e": None}]  # fmt: skip
    assert rows("SELECT a.n WHERE A AS a FILTER a[Double(n) > 10]") == [{"n": 12.5}]
    assert rows("SELECT b.n WHERE A AS a ; B AS b FILTER DOUBLE(a.n) < b.n") == [{"n": 7}]


def test_kinds_of_arguments_and_results() -> None:
    ceql.register_function("SHOUT", lambda name: name.upper() + "!", returns="text")
    ceql.register_function("LATER", lambda at, n: at + datetime.timedelta(hours=n), returns="time")
    ceql.register_function("SINCE", lambda at: at - START, returns="duration")
    ceql.register_function("EVEN", lambda n: n % 2 == 0, returns="truth")
    found = rows("SELECT SHOUT(a.name) AS s, HOUR(LATER(a.at, 1)) AS h, SINCE(a.at) > 1 HOUR AS l, EVEN(a.n) AS e "
                 "WHERE A AS a")  # fmt: skip
    assert found == [{"s": "AB!", "h": 1, "l": False, "e": False}, {"s": None, "h": 1, "l": False, "e": False},
                     {"s": "B!", "h": 3, "l": True, "e": None}]  # fmt: skip
    assert [row["s"] for row in rows("SELECT SHOUT(a.name) AS s WHERE A AS a FILTER EVEN(LENGTH(a.name))")] == ["AB!"]


def test_random_values_are_the_same_vectorized_or_not() -> None:
    ceql.register_function("ONE", lambda a, b: None if b == 2 else a * b + 1)
    both = pa.scalar(None, pa.float64())
    ceql.register_function("ALL_", lambda a, b: pc.if_else(pc.equal(b, 2), both, pc.add(pc.multiply(a, b), 1)),
                           vectorized=True)  # fmt: skip
    draw = random.Random(4)
    for _ in range(30):
        events = [{"type": "A", "a": draw.choice((None, 1.5, -2.0, math.inf)), "b": draw.choice((None, 2, 3, 0))}
                  for _ in range(draw.randrange(1, 9))]  # fmt: skip
        one, other = (rows(f"SELECT {name}(x.a, x.b) AS c WHERE A AS x", events) for name in ("ONE", "ALL_"))
        assert one == other


def test_an_exception_names_the_function_and_the_event() -> None:
    ceql.register_function("INVERSE", lambda n: 1 / n)
    for text in ("SELECT INVERSE(a.n) AS i WHERE A AS a", "SELECT a.n WHERE A AS a FILTER a[INVERSE(n) > 0]"):
        with pytest.raises(EventError, match="INVERSE raised ZeroDivisionError: division by zero"):
            ceql.compile(text).run([{"type": "A", "n": 2}, {"type": "A", "n": 0}]).to_arrow()
    query = ceql.compile("SELECT a.n WHERE A AS a FILTER a[INVERSE(n) > 0]")
    with pytest.raises(EventError) as caught:
        query.run([{"type": "A", "n": 1}, {"type": "A", "n": 0}]).count()
    assert caught.value.record == 2


@pytest.mark.parametrize(("function", "words", "said"), [
    (lambda n: "text", {}, "gave a text, and returns='number'"),
    (lambda n: {}, {}, "gave a dict, and returns='number'"),
    (lambda n: pa.array([1, 2, 3]), {"vectorized": True}, "gave 3 values for"),
    (lambda n: pa.array(["a"] * len(n)), {"vectorized": True}, "gave a text, and returns='number'"),
])  # fmt: skip
def test_a_result_of_another_kind(function: Any, words: dict[str, Any], said: str) -> None:
    ceql.register_function("ODD", function, **words)
    with pytest.raises(EventError, match=said):
        ceql.compile("SELECT ODD(b.n) AS o WHERE B AS b").run(EVENTS).to_arrow()


@pytest.mark.parametrize(("name", "function", "words", "said"), [
    ("UPPER", len, {}, "UPPER is a function of CEQL"), ("prev", len, {}, "PREV is a function of CEQL"),
    ("a b", len, {}, "no name of a function"), ("F", 3, {}, "is no function"),
    ("F", lambda: 1, {}, "fixed number"), ("F", lambda *n: 1, {}, "does not|fixed number"),
    ("F", len, {"returns": "numbr"}, "returns='numbr'"),
])  # fmt: skip
def test_what_cannot_be_registered(name: str, function: Any, words: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        ceql.register_function(name, function, **words)


def test_registering_again_needs_replace() -> None:
    ceql.register_function("F", tenth)
    ceql.register_function("F", tenth)
    with pytest.raises(OptionError, match="registered already"):
        ceql.register_function("F", lambda n: n)
    ceql.register_function("F", lambda n: n, replace=True)
    with pytest.raises(QuerySemanticsError, match="F takes one value, and there are 2"):
        ceql.compile("SELECT F(a.n, 1) AS f WHERE A AS a")


def test_a_query_takes_its_functions_with_it() -> None:
    ceql.register_function("TENTH", tenth)
    sent = pickle.dumps(ceql.compile("SELECT TENTH(a.n) AS t WHERE A AS a"))
    own.OWN.forget()
    query = pickle.loads(sent)
    assert [match.row["t"] for match in query.run(EVENTS)] == [0.3, 1.25, None]


def test_a_snapshot_names_its_functions() -> None:
    ceql.register_function("TENTH", tenth)
    query = ceql.compile("SELECT TENTH(a.n) AS t WHERE A AS a ; B")
    with query.open() as session:
        session.push({"type": "A", "n": 3})
        state = session.snapshot()
    assert query.identity["functions"] == "TENTH"
    with query.open(state) as session:
        assert [match.row for match in session.push({"type": "B", "n": 3})] == [{"t": 0.3}]


def test_a_function_that_is_replaced_is_so_on_every_road() -> None:
    ceql.register_function("F", lambda n: n + 1)
    query = ceql.compile("SELECT F(a.n) AS f WHERE A AS a FILTER a[F(n) > 0]")
    with query.open() as session:
        assert [match.row for match in session.push({"type": "A", "n": 1})] == [{"f": 2}]
        ceql.register_function("F", lambda n: pc.add(n, 100), vectorized=True, replace=True)
        assert [match.row for match in session.push({"type": "A", "n": -50})] == [{"f": 50}]
    assert [match.row for match in query.run([{"type": "A", "n": -50}])] == [{"f": 50}]
