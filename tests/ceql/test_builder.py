"""Queries as values of Python: their text, the names of variables, constants, and what is refused."""

from __future__ import annotations

import copy
import datetime
import pickle
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ceql
import spaseq
from ceql import (
    Pattern,
    PatternQuery,
    adjacent,
    all_of,
    any_of,
    event,
    fn,
    key,
    lit,
    match_end,
    match_start,
    no,
    parse,
    pattern,
    seq,
    steps,
    when,
)
from ceql.syntax.parse import parse as parse_text

A, B, C = event("A"), event("B"), event("C")


def shown(query: Pattern | PatternQuery) -> str:
    """The text on one line."""
    return " ".join(str(query).splitlines())


def formula(part: Pattern | PatternQuery) -> str:
    """The text behind WHERE."""
    return shown(part).removeprefix("SELECT * WHERE ")


# The programs of the issue


def test_failures_before_a_login() -> None:
    f, ok = event("fail"), event("login")
    q = (
        seq(f.times(3, None), ok)
        .over("user")
        .within("1m")
        .keep("max")
        .select(user=f.user, failures=f.count(), took=ok.time - f.time.first())
    )
    assert str(q) == (
        "SELECT MAX fail.user AS user, COUNT(fail) AS failures, login.time - FIRST(fail.time) AS took\n"
        "WHERE fail{3,} ; login\nPARTITION BY [user]\nWITHIN 1 MINUTES"
    )
    events = [{"type": "fail", "user": "ann", "time": t} for t in (0, 1, 2, 3)]
    events += [{"type": "fail", "user": "bob", "time": 4}, {"type": "login", "user": "ann", "time": 9}]
    events += [{"type": "login", "user": "bob", "time": 10}]
    assert [match.row for match in q.run(events)] == [{"user": "ann", "failures": 4, "took": 9}]


def test_a_buy_below_a_sell() -> None:
    s, b = event("Sell"), event("Buy")
    q = seq(s, b).where(b.price < s.price).within(events=10)
    assert shown(q) == "SELECT * WHERE Sell ; Buy FILTER Buy.price < Sell.price WITHIN 10 EVENTS"
    events = [{"type": "Sell", "price": 5}, {"type": "Buy", "price": 6}, {"type": "Buy", "price": 4}]
    assert [match.positions for match in q.run(events)] == [(0, 2)]


def test_an_alarm_without_an_answer() -> None:
    a, k = event("alarm"), event("ack")
    q = seq(a, no(k.where(k.id == a.id))).within("10s")
    assert formula(q) == "alarm ; NOT (ack FILTER ack.id = alarm.id) WITHIN 10 SECONDS"
    rows = [("alarm", 0, 1), ("alarm", 1, 2), ("ack", 2, 1), ("ack", 3, 3), ("other", 20, 0)]
    events = [{"type": kind, "time": time, "id": number} for kind, time, number in rows]
    assert [match.positions for match in q.run(events)] == [(1,)]


# Names


def test_one_object_is_one_variable() -> None:
    assert formula(seq(A, B, A).where(A.v > 1)) == "A ; B ; A FILTER A.v > 1"


def test_two_objects_of_one_type_are_two_variables() -> None:
    """`A` would hold the events of both, so neither is called so."""
    x, y = event("A"), event("A")
    assert formula(seq(x, B, y).where(y.v > x.v)) == "A AS A1 ; B ; A AS A2 FILTER A2.v > A1.v"
    found = seq(x, y).where(x.v < y.v).run([{"type": "A", "v": v} for v in (1, 3, 2)])
    assert [match.positions for match in found] == [(0, 1), (0, 2)]
    assert repr(x.v < y.v) == "<Condition A1.v < A2.v>"


def test_names_do_not_meet_others() -> None:
    assert formula(seq(event("A"), event("A"), event("A1"))) == "A AS A2 ; A AS A3 ; A1"
    assert formula(seq(event("A1"), event("A1"))) == "A1 AS A1_1 ; A1 AS A1_2"
    assert formula(seq(pattern("B AS A"), event("A"))) == "B AS A ; A AS A1"
    assert formula(seq(pattern("A"), event("A"))) == "A ; A AS A1"
    assert formula(seq(event("A").alias("x"), event("A"))) == "A AS x ; A AS A1"
    assert formula(seq(event("A", stream="S"), event("A", stream="T"))) == "S>A AS A1 ; T>A AS A2"


def test_an_event_of_whatever_type() -> None:
    e = event()
    assert formula(adjacent(A, e, A)) == "A : ANY : A"
    assert formula(e.where(e.v > 1)) == "ANY AS e FILTER e.v > 1"
    assert formula(seq(event(), event(stream="S"))) == "ANY AS e1 ; S>ANY AS e2"
    assert formula(event("ANY")) == "`ANY`"


def test_an_event_of_several_types() -> None:
    card = event("debit", "credit")
    assert formula(card.where(card.v > 1)) == "(debit OR credit) AS debit_or_credit FILTER debit_or_credit.v > 1"
    assert formula(card.alias("card").times(2)) == "(debit OR credit) AS card{2}"


def test_names_that_are_words_of_ceql() -> None:
    order = event("order by", stream="from")
    assert formula(order.where(order["is in"] == 1)) == "`from`>`order by` FILTER `order by`.`is in` = 1"


def test_alias() -> None:
    x = any_of(A, B).alias("x")
    assert formula(seq(x, C).where(x.v == C.v)) == "(A OR B) AS x ; C FILTER x.v = C.v"
    assert formula(A.alias("A")) == "A"
    assert formula(seq(A, B.alias(A)).where(A.v > 1)) == "A ; B AS A FILTER A.v > 1"
    assert formula(seq(B.alias(A), A).where(A.v > 1)) == "B AS A1 ; A AS A1 FILTER A1.v > 1"
    assert formula(A.where(A.v > 1).alias("x")) == "(A FILTER A.v > 1) AS x"
    assert formula(seq(A, A.alias("x"))) == "A AS A1 ; A AS x"
    assert formula(seq(x, C.alias(x))) == "(A OR B) AS x ; C AS x"


def test_a_part_alone_shows_the_names_of_other_parts() -> None:
    assert formula(B.where(B.v > A.v)) == "B FILTER B.v > A.v"
    assert repr(B.where(B.v > A.v)) == "<Pattern B FILTER B.v > A.v>"
    assert repr(A.within("2h 30m")) == "<PatternQuery SELECT * WHERE A WITHIN 150 MINUTES>"
    assert repr(A) == "<Event A>" and repr(A.v) == "<Value A.v>" and repr(seq(A, B)) == "<Pattern A ; B>"
    assert repr(seq(A.alias("f"), B.alias("f")).limit(1)).startswith("<PatternQuery: two parts")


# Constants


class _Money(float):
    """A subclass."""


@pytest.mark.parametrize(
    ("constant", "text"),
    [
        (3, "3"),
        (-2.5, "-2.5"),
        (_Money(2.0), "2.0"),
        (1e300, "1e+300"),
        (True, "TRUE"),
        (Decimal("1.10"), "1.1"),
        (Decimal("4.00"), "4"),
        (Fraction(1, 4), "0.25"),
        (np.int16(3), "3"),
        (np.float32(0.5), "0.5"),
        (np.bool_(True), "TRUE"),
        (np.str_("a"), "'a'"),
        (np.datetime64("2026-01-05T10:00", "ns"), "TO_TIME('2026-01-05T10:00:00Z')"),
        (np.timedelta64(90, "s"), "90 SECONDS"),
        ("it's", "'it''s'"),
        (datetime.timedelta(minutes=90), "90 MINUTES"),
        (datetime.timedelta(seconds=-1), "-1 SECONDS"),
        (datetime.date(2026, 1, 5), "TO_TIME('2026-01-05')"),
        (datetime.datetime(2026, 1, 5, 10), "TO_TIME('2026-01-05T10:00:00Z')"),
        (
            datetime.datetime(2026, 1, 5, 10, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "TO_TIME('2026-01-05T08:00:00Z')",
        ),
    ],
)
def test_constants(constant: Any, text: str) -> None:
    query = A.where(A.v == constant)
    assert formula(query) == f"A FILTER A.v = {text}"
    assert parse_text(str(query)) == query.tree


def test_times_are_compared_in_utc() -> None:
    after = datetime.datetime(2026, 1, 5, 11, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    events = [{"type": "A", "at": datetime.datetime(2026, 1, 5, hour)} for hour in (8, 9, 10)]
    assert [match.positions for match in A.where(A.at > after).run(events)] == [(2,)]
    assert [match.positions for match in A.where(A.at >= datetime.datetime(2026, 1, 5, 9)).run(events)] == [(1,), (2,)]


# Expressions


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (A.v > 1, "A.v > 1"),
        (1 + A.v * 2 - 3 / A.w == 5 % A.w, "1 + A.v * 2 - 3 / A.w = 5 % A.w"),
        (-(A.v + 1) != +A.w, "-(A.v + 1) != A.w"),
        (np.float64(2) <= A.v, "A.v >= 2.0"),
        ((A.v > 1) & (A.w > 2) | ~(A.v == 3), "A.v > 1 AND A.w > 2 OR NOT A.v = 3"),
        ((A.v > 1) & ((A.w > 2) | (A.w < 1)), "A.v > 1 AND (A.w > 2 OR A.w < 1)"),
        (A.v.is_in([1, "a", True]), "A.v IN {1, 'a', TRUE}"),
        (A.v.is_in({3, 1, 2}), "A.v IN {1, 2, 3}"),
        (A.v.is_in(range(3)), "A.v IN {0, 1, 2}"),
        (A.v.is_in(np.array([1, 2])), "A.v IN {1, 2}"),
        (A.v.not_in((1,)), "NOT A.v IN {1}"),
        (A.v.is_in([B.v, 1]), "A.v = B.v OR A.v = 1"),
        (A.v.is_in(B.history), "MEMBER(A.v, B.history) = TRUE"),
        (A.v.between(1, B.v), "A.v IN RANGE(1, B.v)"),
        (A.v.between(1, None), "A.v IN {1..}"),
        (A.v.between(None, "z"), "A.v IN {..'z'}"),
        (A.v.between(B.v, None), "A.v >= B.v"),
        (A.v.between(None, datetime.date(2026, 1, 1)), "A.v <= TO_TIME('2026-01-01')"),
        (A.name.like("a.*"), "A.name LIKE 'a.*'"),
        (A.name.ilike("a.*"), "A.name ILIKE 'a.*'"),
        (A.v.is_null() | A.w.is_not_null(), "A.v IS NULL OR A.w IS NOT NULL"),
        (A.v == B.list.any(), "A.v = ANY(B.list)"),
        (B.list.all() < A.v, "A.v > ALL(B.list)"),
        (lit(3) >= B.list.any(), "3 >= ANY(B.list)"),
        (fn.startswith(A.name, "a") & A.open, "STARTSWITH(A.name, 'a') = TRUE AND A.open = TRUE"),
        (~fn.contains(A.name, "a"), "NOT CONTAINS(A.name, 'a') = TRUE"),
        (fn.coalesce(A.v, B.v, None, 0) > 1, "COALESCE(A.v, B.v, NULL, 0) > 1"),
        (when(A.v > 1).then(1).when(A.v < 0).then(None).otherwise(2) == 1,
         "CASE WHEN A.v > 1 THEN 1 WHEN A.v < 0 THEN NULL ELSE 2 END = 1"),
        (when(A.open).then(1) == 1, "CASE WHEN A.open = TRUE THEN 1 END = 1"),
        (A.v.cast("integer") == A.v.try_cast("NUMBER"), "CAST(A.v AS INTEGER) = TRY_CAST(A.v AS NUMBER)"),
        (fn.cast(A.v, "text") == "1", "CAST(A.v AS TEXT) = '1'"),
        (A.h.corr(B.h) > 0.9, "CORR(A.h, B.h) > 0.9"),
        (A.v.sum() + A.v.avg() + A.v.min() + A.v.max() + A.v.stddev() > 0,
         "SUM(A.v) + AVG(A.v) + MIN(A.v) + MAX(A.v) + STDDEV(A.v) > 0"),
        (A.v.first() + A.v.last() + A.v.count() + A.v.count_distinct() + A.count() > 0,
         "FIRST(A.v) + LAST(A.v) + COUNT(A.v) + COUNT(DISTINCT A.v) + COUNT(A) > 0"),
        (A.v < A.prev().v, "A.v < PREV(A.v)"),
        (A.each((A.v < 1) | (A.v > A.prev().v), A["w w"] == 3) & (B.v > 1),
         "A[(v < 1 OR v > PREV(v)) AND `w w` = 3] AND B.v > 1"),
        (A["v"] < A.prev(3)["w w"], "A.v < PREV(A.`w w`, 3)"),
        (A.v < A[0].v, "A.v < A[0].v"),
        (A["count"] + A["limit"] > 1, "A.count + A.`limit` > 1"),
        (lit(1) + 1 < A.v, "1 + 1 < A.v"),
        (A.v == lit(None), "A.v = NULL"),
        (A.v == lit("x").alias("y"), "A.v = 'x'"),
        (A.time - B.time > datetime.timedelta(hours=1), "A.time - B.time > 1 HOURS"),
    ],
)  # fmt: skip
def test_expressions(condition: ceql.Condition, text: str) -> None:
    assert str(condition) == text
    query = seq(A, B).where(condition)
    assert formula(query) == f"A ; B FILTER {text}"
    assert parse_text(str(query)) == query.tree


def test_an_or_of_each_event_is_not_an_or_of_all() -> None:
    events = [{"type": "A", "v": 0}, {"type": "A", "v": 9}]
    part = A.times(2)
    assert [m.positions for m in part.where(A.each((A.v < 1) | (A.v > 3))).run(events)] == [(0, 1)]
    assert [m.positions for m in part.where((A.v < 1) | (A.v > 3)).run(events)] == []


def test_names_before_brackets() -> None:
    x, y = event("A"), event("A")
    assert formula(seq(x, y).where(y.each(y.v > x.v))) == "A AS A1 ; A AS A2 FILTER A2[v > A1.v]"
    with pytest.raises(ceql.OptionError, match="one object is one event"):
        A.where(B.each(B.v > 1)).compile()


def test_functions_of_users() -> None:
    ceql.register_function("BUILT_TENTH", lambda value: value / 10, replace=True)
    assert "built_tenth" in dir(fn) and "lower" in dir(fn)
    query = A.where(fn.built_tenth(A.v) > 1)
    assert [match.positions for match in query.run([{"type": "A", "v": v} for v in (5, 15)])] == [(1,)]


# Patterns


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (seq(A, seq(B, C)), "A ; (B ; C)"),
        (steps(A, adjacent(B, C)), "A -> (B : C)"),
        (seq(A, no(B), no(C), A), "A ; NOT (B OR C) ; A"),
        (seq(A, seq(no(B), C)), "A ; NOT B ; C"),
        (any_of(A, B, C), "A OR B OR C"),
        (all_of(A, no(B), C), "AND(A, NOT B, C)"),
        (seq(no(A, lasting="10s"), B), "NOT A FOR 10 SECONDS ; B"),
        (seq(A, no(any_of(B, C), lasting=datetime.timedelta(hours=1))), "A ; NOT (B OR C) FOR 1 HOURS"),
        (A.times(3), "A{3}"),
        (A.times(2, 5), "A{2,5}"),
        (A.times(0, 2), "A{0,2}"),
        (A.times(3, None, by="steps"), "A->{3,}"),
        (A.times(0, 1, by="adjacent"), "A:{0,1}"),
        (A.one_or_more(), "A+"),
        (A.one_or_more(by="steps", choose="reluctant"), "A->+?"),
        (A.zero_or_more(by="steps", choose="each", until=B.where(B.v > 1)), "A->* ALL UNTIL (B FILTER B.v > 1)"),
        (A.optional(choose="reluctant"), "A??"),
        (A.optional().optional(), "(A?)?"),
        (seq(A, B).one_or_more(by="adjacent").alias("x"), "(A ; B):+ AS x"),
        (any_of(A, B).where(A.v > 1).where(B.v > 1, A.w > 1), "A OR B FILTER A.v > 1 FILTER B.v > 1 AND A.w > 1"),
        (seq(A.where(A.v > 1), B), "(A FILTER A.v > 1) ; B"),
    ],
)
def test_patterns(part: Pattern, text: str) -> None:
    assert formula(part) == text
    assert parse_text(str(part)) == part.tree


def test_one_part_is_itself() -> None:
    assert seq(A) is steps(A) is adjacent(A) is any_of(A) is all_of(A) is A


# Clauses


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (A.over("user"), "SELECT * WHERE A PARTITION BY [user]"),
        (A.over("a", ["b", "c d"]), "SELECT * WHERE A PARTITION BY [a], [b, `c d`]"),
        (A.within("1h 30m"), "SELECT * WHERE A WITHIN 90 MINUTES"),
        (A.within(datetime.timedelta(milliseconds=5)), "SELECT * WHERE A WITHIN 5 MILLISECONDS"),
        (A.within(events=10), "SELECT * WHERE A WITHIN 10 EVENTS"),
        (A.within(2.5, "ts"), "SELECT * WHERE A WITHIN 2.5 [ts]"),
        (A.keep("MAX"), "SELECT MAX * WHERE A"),
        (A.select(A, B.alias("b")), "SELECT A, b WHERE A"),
        (A.select(A[["v", "w w"]]), "SELECT A[v, `w w`] WHERE A"),
        (A.select(None).keep("any"), "SELECT ANY NONE WHERE A"),
        (A.keep("any").select(None), "SELECT ANY NONE WHERE A"),
        (A.select(A.v, (A.v + 1).alias("w"), key("user"), n=A.count(), big=A.v > 3, one=1, start=match_start),
         "SELECT A.v, A.v + 1 AS w, user, COUNT(A) AS n, A.v > 3 AS big, 1 AS one, MATCH_START AS start WHERE A"),
        (A.select((A.v > 3).alias("big"), match_end), "SELECT A.v > 3 AS big, MATCH_END WHERE A"),
        (A.streams("S", "T"), "SELECT * FROM S, T WHERE A"),
        (A.order_by(A.v, A.w - 1, descending=[True, False]), "SELECT * WHERE A ORDER BY A.v DESC, A.w - 1"),
        (A.consume("partition").limit(3), "SELECT * WHERE A CONSUME BY PARTITION LIMIT 3"),
        (A.after_match("past_last"), "SELECT * WHERE A AFTER MATCH SKIP PAST LAST EVENT"),
        (A.after_match("to next"), "SELECT * WHERE A AFTER MATCH SKIP TO NEXT EVENT"),
        (A.after_match("no_skip"), "SELECT * WHERE A AFTER MATCH NO SKIP"),
        (A.after_match("to_last", A), "SELECT * WHERE A AFTER MATCH SKIP TO LAST A"),
        (A.within("1m").over("user").within("2m").over(), "SELECT * WHERE A WITHIN 2 MINUTES"),
        (A.within("1m").where(A.v > 1), "SELECT * WHERE A FILTER A.v > 1 WITHIN 1 MINUTES"),
    ],
)  # fmt: skip
def test_clauses(query: PatternQuery, text: str) -> None:
    assert shown(query) == text
    assert parse_text(str(query)) == parse_text(text)


def test_every_clause_of_the_grammar_has_a_method() -> None:
    from importlib.resources import files

    grammar = (files("ceql.syntax") / "grammar.lark").read_text("utf-8")
    rule = re.search(r"^clause:(.*?)\n\w", grammar, re.MULTILINE | re.DOTALL)
    assert rule is not None
    assert set(re.findall(r"-> (\w+)", rule[1])) | {"within"} == {
        "partition", "consume", "limit", "after_match", "within", "grouping", "order",
    }  # fmt: skip


# Values that never change


def test_values_never_change() -> None:
    query = A.within("1m")
    query.over("user")
    assert shown(query) == "SELECT * WHERE A WITHIN 1 MINUTES"
    for frozen in (A, query, A.v, A.v > 1):
        with pytest.raises(AttributeError):
            frozen.other = 1  # type: ignore[union-attr]


def test_equality_and_hashes() -> None:
    assert seq(A, B) == seq(A, B) and hash(seq(A, B)) == hash(seq(A, B))
    assert event("A") != event("A") and A.within("1m") == A.within("60s")
    assert {A.v: 1, B.v: 2} and len({A.v, B.v, A.v > 1}) == 3


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_are_the_same_variables(again: Callable[[Any], Any]) -> None:
    other = again(A)
    assert other == A
    assert formula(seq(A, B).where(other.v > again(B.v), again(A.v > 1))) == "A ; B FILTER A.v > B.v AND A.v > 1"
    query = again(seq(A, B).within("1m"))
    assert query == seq(A, B).within("1m")


def test_a_long_pattern() -> None:
    parts = [event(f"T{number}") for number in range(100)]
    assert seq(*parts).compile().automaton
    with pytest.raises(ceql.QuerySemanticsError, match="nested too deeply"):
        seq(*(event("A") for _ in range(20_000))).compile()


# Texts


def test_parts_from_text() -> None:
    falling = pattern("(T AS p FILTER p.price < PREV(p.price)):+ -- a comment")
    p = falling.variable("p")
    assert formula(seq(A, falling).where(p.v == A.v)) == (
        "A ; (T AS p FILTER p.price < PREV(p.price)):+ FILTER p.v = A.v"
    )
    assert formula(pattern("A ; B").where(pattern("A").variable("A").v > 1)) == "A ; B FILTER A.v > 1"


def test_queries_from_text() -> None:
    text = "SELECT MAX x WHERE A AS x ; B WITHIN 10 SECONDS"
    assert shown(parse(text).within("1m")) == "SELECT MAX x WHERE A AS x ; B WITHIN 1 MINUTES"
    with pytest.raises(ceql.QuerySyntaxError, match=r"q\.ceql:1:15"):
        parse("SELECT * WHERE", source="q.ceql")
    with pytest.raises(ceql.QuerySyntaxError, match="unexpected"):
        pattern("A ; ; B")


# The library takes them


def test_compile_has_the_text() -> None:
    query = ceql.compile(seq(A, B).within("1m"), source="mine", settings=ceql.Settings(live_runs=10))
    assert query.text == "SELECT *\nWHERE A ; B\nWITHIN 1 MINUTES" and query.source == "mine"
    assert query.settings.live_runs == 10
    assert seq(A, B).compile(source="mine").source == "mine"
    rows = ceql.match([{"type": "A", "v": 1}, {"type": "B", "v": 5}], seq(A, B).select(rise=B.v - A.v))
    assert rows == [{"rise": 4}]
    with query.open() as session:
        assert [m.positions for m in session.push([{"type": "A", "time": 0}, {"type": "B", "time": 1}])] == [(0, 1)]


def test_errors_of_checks_show_the_text() -> None:
    with pytest.raises(ceql.QuerySemanticsError) as error:
        seq(A, B).where(fn.lower(A.v, B.v) == "a").compile(source="mine")
    assert str(error.value) == (
        "mine:2:20: LOWER takes one value, and there are 2\n  WHERE A ; B FILTER LOWER(A.v, B.v) = 'a'\n"
        "                     ^^^^^^^^^^^^^^^\nhint: for example LOWER(x.name)"
    )


# What is refused

to: Any = ceql
graphs: Any = spaseq
a: Any = A
b: Any = B
c: Any = C
"""Without types: type checkers refuse most of what follows, too."""
WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: 1 < a.v < 5, TypeError, "between(1, 5)"),
    (lambda: a.v and b.v, TypeError, "& | ~"),
    (lambda: not (a.v > 1), TypeError, "& | ~"),
    (lambda: a.v in [1, 2], TypeError, "is_in"),
    (lambda: bool(a), TypeError, "a pattern is neither true nor false"),
    (lambda: bool(a.within("1m")), TypeError, "a pattern is neither true nor false"),
    (lambda: a.v > 1 & b.v, TypeError, "parentheses"),
    (lambda: 1 | (a.v > 1), TypeError, "parentheses"),
    (lambda: (a.v > 1) == True, TypeError, "~condition"),  # noqa: E712
    (lambda: list(a), TypeError, "collect"),
    (lambda: list(a.v), TypeError, "collect"),
    (lambda: "v" in a, TypeError, "is_in"),
    (lambda: a.tmies(3), TypeError, "did you mean times"),
    (lambda: a.user.name, AttributeError, "A.user is a value, and has no name"),
    (lambda: a.v.summ(), AttributeError, "did you mean sum"),
    (lambda: a.select(n=a.count), ceql.OptionError, "x.count()"),
    (lambda: a < b, TypeError, "a.price < b.price"),
    (lambda: a & b, TypeError, "all_of(a, b)"),
    (lambda: a(3), TypeError, "times(3)"),
    (lambda: a.v == None, ceql.OptionError, "is_null"),  # noqa: E711
    (lambda: a.v == b, ceql.OptionError, "this is an Event"),
    (lambda: a.v == [1], ceql.OptionError, "is_in"),
    (lambda: a.v + (a.v > 1), ceql.OptionError, "when(A.v > 1)"),
    (lambda: a.v == b"a", ceql.OptionError, "this is a bytes"),
    (lambda: a.v == "a\nb", ceql.OptionError, "U+000A"),
    (lambda: a.v == float("nan"), ceql.OptionError, "is no number"),
    (lambda: a.v == Decimal("inf"), ceql.OptionError, "is no number"),
    (lambda: a.v == Decimal("sNaN"), ceql.OptionError, "is no number"),
    (lambda: a.v == pd.NaT, ceql.OptionError, "this is a NaTType"),
    (lambda: a.v == np.datetime64("NaT"), ceql.OptionError, "this is a datetime64"),
    (lambda: a.v.is_in(np.int64(3)), ceql.OptionError, "is_in takes a list"),
    (lambda: a.v.is_in(a.prev()), ceql.OptionError, "is_in takes a list"),
    (lambda: a.v == 2**63, ceql.OptionError, "too large"),
    (lambda: a.where(a == b), ceql.OptionError, "x.id == y.id"),
    (lambda: a.where(), ceql.OptionError, "one condition or more"),
    (lambda: a.where("A.v > 1"), ceql.OptionError, "this is a str"),
    (lambda: a.where(a.v + 1), ceql.OptionError, "compare it"),
    (lambda: a.where(lambda e: e.v > 1), ceql.OptionError, "this is a function"),
    (lambda: a.v.is_in("abc"), ceql.OptionError, "is_in takes a list"),
    (lambda: a.v.is_in([]), ceql.OptionError, "one constant or more"),
    (lambda: a.v.is_in([None]), ceql.OptionError, "is_null"),
    (lambda: a.v.between(None, None), ceql.OptionError, "no bounds"),
    (lambda: a.v.like(3), ceql.OptionError, "this is an int"),
    (lambda: a[1], ceql.OptionError, "f[0].price"),
    (lambda: a[""], ceql.OptionError, "one character or more"),
    (lambda: a.prev(17), ceql.OptionError, "from 1 to 16"),
    (lambda: a.each(a.count() > 1), ceql.OptionError, "stands outside"),
    (lambda: a.each(a.each(a.v > 1)), ceql.OptionError, "each within each"),
    (lambda: a.each(), ceql.OptionError, "one condition or more"),
    (lambda: to.fn.lowr(a.v), ceql.OptionError, "did you mean fn.lower"),
    (lambda: to.fn.prev(a.v), ceql.OptionError, "x.prev().price"),
    (lambda: to.event(5), ceql.OptionError, "this is an int"),
    (lambda: to.event("a`b"), ceql.OptionError, "back-quotes"),
    (lambda: to.seq(), ceql.OptionError, "one part or more"),
    (lambda: to.seq("A", "B"), ceql.OptionError, "event('A')"),
    (lambda: to.seq(a, a.within("1m")), ceql.OptionError, "clauses of the whole query"),
    (lambda: to.seq(a, a.v > 1), ceql.OptionError, "a.where(a.price > 3)"),
    (lambda: to.no([A]), ceql.OptionError, "this is a list"),
    (lambda: to.no(a, lasting=3), ceql.OptionError, "'10s'"),
    (lambda: a.times(0), ceql.OptionError, "allows no number of rounds"),
    (lambda: a.times(3, 2), ceql.OptionError, "times(3, 2)"),
    (lambda: a.times("3"), ceql.OptionError, "this is a str"),
    (lambda: a.one_or_more(by="step"), ceql.OptionError, "did you mean steps"),
    (lambda: a.one_or_more(choose="lazy"), ceql.OptionError, "greedy, reluctant, each"),
    (lambda: a.within(5), ceql.OptionError, "has no unit"),
    (lambda: a.within(), ceql.OptionError, "one window"),
    (lambda: a.within("5 parsecs"), ceql.OptionError, "not a duration"),
    (lambda: a.within(datetime.timedelta(-1)), ceql.OptionError, "below 0"),
    (lambda: a.within(events=-1), ceql.OptionError, "cannot be -1"),
    (lambda: a.within("1m", "ts"), ceql.OptionError, "a number, 0 or more"),
    (lambda: a.keep("maximum"), ceql.OptionError, "did you mean max"),
    (lambda: a.over(a.v), ceql.OptionError, "over('user', 'shop')"),
    (lambda: a.over([]), ceql.OptionError, "an empty list"),
    (lambda: a.select(), ceql.OptionError, "select(None)"),
    (lambda: a.select("v"), ceql.OptionError, "key('user')"),
    (lambda: a.select(a, a.v), ceql.OptionError, "one beside the other"),
    (lambda: a.select(a=a), ceql.OptionError, "one beside the other"),
    (lambda: a.select(a=[1]), ceql.OptionError, "this is a list"),
    (lambda: a.consume("all"), ceql.OptionError, "any, partition, none"),
    (lambda: a.limit(True), ceql.OptionError, "a whole number"),
    (lambda: a.after_match("to_last"), ceql.OptionError, "of a variable"),
    (lambda: a.after_match("to_next", a), ceql.OptionError, "of no variable"),
    (lambda: a.after_match("to_last", "A"), ceql.OptionError, "this is a str"),
    (lambda: to.seq(a, b).where(to.event("A").v > 1).compile(), ceql.OptionError, "one object is one event"),
    (lambda: to.seq(a, b).select(c).compile(), ceql.OptionError, "one object is one event"),
    (lambda: to.seq(a, b).after_match("to_last", c).compile(), ceql.OptionError, "one object is one event"),
    (lambda: to.seq(a.alias("f"), b.alias("f")).compile(), ceql.OptionError, "two parts of the pattern are called f"),
    (lambda: to.seq(to.pattern("A AS f"), b.alias("f")).compile(), ceql.OptionError, "are called f"),
    (lambda: to.seq(a.alias("B"), b).compile(), ceql.OptionError, "a type of other events"),
    (lambda: to.pattern("A WITHIN 1 MINUTE"), ceql.OptionError, "has clauses"),
    (lambda: to.pattern("SELECT * WHERE A"), ceql.OptionError, "ceql.parse"),
    (lambda: to.pattern(a), ceql.OptionError, "cannot be a Event"),
    (lambda: to.parse(a), ceql.OptionError, "cannot be a Event"),
    (lambda: to.pattern("A ; B").variable("C"), ceql.OptionError, "its variables are A, B"),
    (lambda: graphs.compile(a), ceql.OptionError, "ceql.compile"),
    (lambda: to.seq(a, to.no(b), c).where(b.v > 1).compile(), ceql.QuerySemanticsError, "NOT"),
    (lambda: a.keep("next").after_match("past_last").compile(), ceql.UnsupportedFeature, "do not go together"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "kind", "part"), WRONG, ids=range(len(WRONG)))
def test_wrong_uses(use: Callable[[], Any], kind: type[Exception], part: str) -> None:
    with pytest.raises(kind) as error:
        use()
    assert part in str(error.value), error.value
    assert type(error.value) is kind
