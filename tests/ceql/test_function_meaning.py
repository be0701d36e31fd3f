"""Each function against values written down from SQL's definitions; DuckDB's, if it is installed, where it means the
same. `test_function_values.py` holds the other evaluators against the one used here."""

from __future__ import annotations

import datetime
import decimal
import os
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import ceql
from ceql.expressions.scalar import compile_value
from ceql.operators.functions import FUNCTIONS
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.errors import EventError
from spaseq.core.events import Duration, EventBatch, EventOptions, EventStream, Instant

NULL = None
AT = datetime.datetime(2026, 3, 29, 0, 30, 15, tzinfo=datetime.UTC)
HOUR = 3600 * 10**9


def instant(text: str) -> Instant:
    span = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC) - datetime.datetime(
        1970, 1, 1, tzinfo=datetime.UTC
    )
    return Instant((span.days * 86_400 + span.seconds) * 10**9)


ATTRIBUTES: dict[str, Any] = {
    "t": "Ab cd", "e": "", "n": -7, "f": 2.5, "b": True, "at": instant("2026-03-29T00:30:15"), "l": (1.0, 2.5),
    "w": ("a", None), "none": None, "s": "2026-03-29T00:30:15Z",
}  # fmt: skip


def value_tree(text: str) -> ast.Expression:
    formula = parse(f"SELECT * WHERE E FILTER E[{text} = 1]").where
    assert isinstance(formula, ast.Filter) and isinstance(formula.condition, ast.Holds)
    condition = formula.condition.condition
    assert isinstance(condition, ast.Compare)
    return condition.left


def value(text: str) -> Any:
    compute: Callable[[None], Any] = compile_value(
        value_tree(text), lambda attribute: lambda env: ATTRIBUTES[attribute.name]
    )
    return compute(None)


def batch_of(events: list[dict[str, Any]]) -> EventBatch:
    (batch,) = EventStream({"": [{"type": "E", **e} for e in events]}, EventOptions(from_arrival=True))
    return batch


MEANINGS: list[tuple[str, Any]] = [
    ("LOWER(t)", "ab cd"), ("LOWER(none)", NULL), ("UPPER('straße')", "STRASSE"), ("LOWER('İ')", "i̇"),
    ("TRIM('  a b ')", "a b"), ("TRIM('\ta')", "\ta"), ("TRIM('xxaxx', 'x')", "a"), ("TRIM('a', '')", "a"),
    ("LTRIM(' a ')", "a "), ("RTRIM(' a ')", " a"), ("LENGTH('éa')", 2), ("LENGTH(e)", 0), ("LENGTH(l)", 2),
    ("SUBSTRING('hello', 2)", "ello"), ("SUBSTRING('hello', 2, 3)", "ell"), ("SUBSTRING('hello', 0, 2)", "h"),
    ("SUBSTRING('hello', -1, 3)", "h"), ("SUBSTRING('hello', 9)", ""), ("SUBSTRING('hello', 2, 0)", ""),
    ("SUBSTRING('hello', 2.0, 1)", "e"), ("SUBSTRING('hello', none)", NULL),
    ("POSITION('l', 'hello')", 3), ("POSITION('x', 'hello')", 0), ("POSITION('', 'hello')", 1),
    ("CONTAINS('hello', 'ell')", True), ("CONTAINS('hello', '')", True), ("CONTAINS('a.c', 'abc')", False),
    ("CONTAINS(l, 2.5)", True), ("CONTAINS(l, 3)", False), ("CONTAINS(l, none)", NULL),
    ("STARTSWITH('hello', 'he')", True), ("ENDSWITH('hello', 'he')", False),
    ("REPLACE('banana', 'an', 'x')", "bxxa"), ("REPLACE('abc', '', 'x')", "abc"), ("REPLACE(t, none, 'x')", NULL),
    ("CONCAT('a', none, 'b')", "ab"), ("CONCAT(none)", ""), ("CONCAT(t, '-', e)", "Ab cd-"),
    ("REGEXP_EXTRACT('a12b3', '[0-9]+')", "12"), ("REGEXP_EXTRACT('a12b3', '([a-z])([0-9])', 2)", "1"),
    ("REGEXP_EXTRACT('abc', '[0-9]')", NULL), ("REGEXP_EXTRACT('a)b', '(\\))(b)', 2)", "b"),
    ("REGEXP_EXTRACT('[x(y', '[[(]([a-z])', 1)", "x"), ("REGEXP_EXTRACT('k=v', '(?P<key>\\w)=(\\w)', 2)", "v"),
    ("REGEXP_EXTRACT('ab', '(?:a)(b)', 1)", "b"), ("REGEXP_EXTRACT('(q)', '\\Q(\\E(q)', 1)", "q"),
    ("REGEXP_EXTRACT(']z', '[]](z)', 1)", "z"),
    ("ABS(n)", 7), ("ABS(-2.5)", 2.5), ("ABS(-9223372036854775808)", NULL),
    ("ROUND(2.5)", 3.0), ("ROUND(-2.5)", -3.0), ("ROUND(0.49999999999999994)", 0.0), ("ROUND(1234.567, 2)", 1234.57),
    ("ROUND(1250, -2)", 1300), ("ROUND(-1250, -2)", -1300), ("ROUND(7, 3)", 7),
    ("ROUND(9223372036854775807, -1)", NULL),
    ("ROUND(1e300, 10)", 1e300), ("ROUND(15.0, -1)", 20.0),
    ("FLOOR(-2.5)", -3.0), ("CEIL(-2.5)", -2.0), ("FLOOR(n)", -7), ("MOD(n, 3)", -1), ("MOD(n, 0)", NULL),
    ("MOD(7.5, 2)", 1.5), ("POWER(2, 10)", 1024.0), ("POWER(-1, 0.5)", NULL),
    ("POWER(-0.0, -1)", float("inf")), ("POWER(10, 400)", float("inf")),
    ("SQRT(9)", 3.0), ("SQRT(-1)", NULL), ("LN(1)", 0.0), ("LN(0)", NULL), ("EXP(0)", 1.0), ("SIGN(-0.5)", -1),
    ("SIGN(0)", 0), ("LEAST(3, 2.5, 7)", 2.5), ("GREATEST('a', 'b')", "b"), ("LEAST(3, none)", NULL),
    ("COALESCE(none, none, 3)", 3), ("COALESCE(none)", NULL), ("NULLIF(n, -7)", NULL), ("NULLIF(n, none)", -7),
    ("NULLIF(none, 1)", NULL), ("CASE WHEN none > 1 THEN 'a' ELSE 'b' END", "b"),
    ("CASE WHEN n > 1 THEN 'a' END", NULL),
    ("CASE n WHEN 1 THEN 'a' WHEN -7 THEN 'b' END", "b"), ("CASE WHEN t = 'x' THEN LOWER(n) ELSE 'c' END", "c"),
    ("YEAR(at)", 2026), ("MONTH(at)", 3), ("DAY(at)", 29), ("HOUR(at)", 0), ("MINUTE(at)", 30), ("SECOND(at)", 15),
    ("WEEKDAY(at)", 7), ("WEEKDAY('2026-11-23')", 1), ("YEAR('1969-12-31')", 1969),
    ("SECOND('1969-12-31T23:59:59.5')", 59),
    ("HOUR(at, 'Europe/Berlin')", 1), ("HOUR('2026-03-29T01:00:00Z', 'Europe/Berlin')", 3),
    ("DAY(at, 'America/New_York')", 28), ("MINUTE(at, 'Asia/Kolkata')", 0), ("DAY('2024-02-29')", 29), ("HOUR(s)", 0),
    ("DATE_TRUNC('day', at)", instant("2026-03-29")), ("DATE_TRUNC('WEEK', at)", instant("2026-03-23")),
    ("DATE_TRUNC('month', at)", instant("2026-03-01")), ("DATE_TRUNC('quarter', at)", instant("2026-01-01")),
    ("DATE_TRUNC('year', at)", instant("2026-01-01")), ("DATE_TRUNC('minute', at)", instant("2026-03-29T00:30:00")),
    ("DATE_TRUNC('day', at, 'Europe/Berlin')", instant("2026-03-28T23:00:00")),
    ("DATE_TRUNC('day', '2026-03-29T12:00:00Z', 'Europe/Berlin')", instant("2026-03-28T23:00:00")),
    ("DATE_TRUNC('day', '2026-03-30T12:00:00Z', 'Europe/Berlin')", instant("2026-03-29T22:00:00")),
    # Clocks skip midnight on 2018-11-04 in São Paulo: the day begins at 1 o'clock.
    ("DATE_TRUNC('day', '2018-11-04T12:00:00Z', 'America/Sao_Paulo')", instant("2018-11-04T03:00:00")),
    ("TO_TIME(1.5)", Instant(1_500_000_000)), ("TO_TIME(1500, 'ms')", Instant(1_500_000_000)),
    ("TO_TIME('1970-01-02')", Instant(24 * HOUR)), ("TO_TIME(none)", NULL), ("TO_TIME(0.1)", Instant(10**8)),
    ("at - at", Duration(0)), ("TO_TIME('2026-01-02') - TO_TIME('2026-01-01') - 1 DAY", Duration(0)),
    ("at + 1 HOUR - at", Duration(HOUR)), ("1 HOUR 30 MINUTES * 2", Duration(3 * HOUR)),
    ("1 HOUR / 2", Duration(HOUR // 2)), ("90 MINUTES / 1 HOUR", 1.5), ("1 HOUR / 0", NULL),
    ("-1 HOUR", Duration(-HOUR)),
    ("at + none", NULL), ("1 HOUR * 1e300", NULL),
    ("CAST('12' AS NUMBER)", 12), ("CAST(' 1.50 ' AS DOUBLE)", 1.5), ("CAST('2.5' AS INTEGER)", 3),
    ("CAST(-2.5 AS INT)", -3), ("CAST(TRUE AS INTEGER)", 1), ("CAST(2.0 AS TEXT)", "2"), ("CAST(0.1 AS TEXT)", "0.1"),
    ("CAST(12 AS TEXT)", "12"), ("CAST(b AS TEXT)", "true"), ("CAST(at AS TEXT)", "2026-03-29T00:30:15Z"),
    ("CAST('Yes' AS BOOLEAN)", True), ("CAST(0 AS BOOLEAN)", False), ("CAST(s AS TIMESTAMP)", ATTRIBUTES["at"]),
    ("CAST(none AS TEXT)", NULL), ("TRY_CAST('x' AS NUMBER)", NULL), ("TRY_CAST('1e999' AS NUMBER)", NULL),
    ("TRY_CAST(at AS NUMBER)", NULL), ("TRY_CAST(1e30 AS INTEGER)", NULL),
    ("CIDR_MATCH('10.1.2.3', '10.0.0.0/8')", True), ("CIDR_MATCH('11.1.2.3', '10.0.0.0/8')", False),
    ("CIDR_MATCH('11.1.2.3', '10.0.0.0/8', '11.0.0.0/8')", True), ("CIDR_MATCH('-', '10.0.0.0/8')", NULL),
    ("CIDR_MATCH('2001:db8::1', '2001:db8::/32')", True), ("CIDR_MATCH('::1', '10.0.0.0/8')", False),
    ("CASE WHEN 1 = ANY(l) AND NOT 3 = ANY(l) THEN 1 END", 1), ("CASE WHEN 1 != ANY(l) THEN 1 END", 1),
    ("CASE WHEN 2 < ANY(l) AND 2.5 <= ANY(l) THEN 1 END", 1), ("CASE WHEN 2 > ANY(l) AND 1 >= ANY(l) THEN 1 END", 1),
    ("CASE WHEN 1 = ALL(l) THEN 1 ELSE 0 END", 0), ("CASE WHEN 3 != ALL(l) THEN 1 END", 1),
    ("CASE WHEN 0 < ALL(l) AND 1 <= ALL(l) THEN 1 END", 1), ("CASE WHEN 3 > ALL(l) AND 2.5 >= ALL(l) THEN 1 END", 1),
    ("CASE WHEN none = ANY(l) OR NOT none = ANY(l) THEN 1 END", NULL), ("CASE WHEN 1 = ALL(none) THEN 1 END", NULL),
    ("CONTAINS(w, 'a')", True), ("LENGTH(w)", 2), ("MEMBER('b', w)", False), ("MEMBER(none, w)", NULL),
    ("MEMBER(1, l)", True), ("MEMBER(3, l)", False), ("MEMBER(1, none)", NULL),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_meaning(text: str, expected: Any) -> None:
    found = value(text)
    assert found == expected and type(found) is type(expected)


def test_every_function_has_a_meaning_here() -> None:
    written = " ".join(text for text, _ in MEANINGS)
    assert not [
        name for name, row in FUNCTIONS.items() if row.add is None and f"{name}(" not in written and name != "CORR"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("LOWER(n)", "LOWER is of a text, and this is a number"),
        ("SUBSTRING(t, 1.5)", "counts in whole numbers"),
        ("SUBSTRING(t, 1, -1)", "a length of -1"),
        ("CAST('x' AS NUMBER)", "CAST makes no NUMBER of 'x'"),
        ("CAST(5 AS TIMESTAMP)", "CAST makes no TIMESTAMP of 5"),
        ("HOUR(n)", "argument 1 of HOUR is a time or a text, and this is a number"),
        ("HOUR(t)", "'Ab cd' is not a time"),
        ("n + 1 HOUR", "-7 + 1 h: a number cannot be combined with a duration"),
        ("at + at", "2026-03-29T00:30:15Z: a time cannot be combined with a time"),
        ("t + 'a'", "a text cannot be combined with a text"),
        ("LEAST(n, t)", "cannot be combined"),
        ("CIDR_MATCH('1.1.1.1', t)", "'Ab cd' is no network"),
        ("REPLACE(REPLACE(REPLACE(REPLACE('aaaaaaaa', 'a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), 'a', "
         "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'), 'a', "
         "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')", "is the most"),
    ],
)  # fmt: skip
def test_values_that_a_function_does_not_take(text: str, problem: str) -> None:
    with pytest.raises(EventError, match=re.escape(problem)):
        value(text)


@pytest.mark.parametrize(
    ("condition", "problem", "hint"),
    [
        ("LOWR(t) = 'a'", "unknown function LOWR", "did you mean LOWER"),
        ("LOWER(t, t) = 'a'", "LOWER takes one value, and there are 2", "LOWER(x.name)"),
        ("COALESCE() = 1", "COALESCE() is of nothing", ""),
        ("SUBSTRING(t) = 'a'", "SUBSTRING takes two or three values", "SUBSTRING(x.name, 1, 3)"),
        ("LOWER(3) = 'a'", "LOWER is of a text, and this is a number", "LOWER(x.name)"),
        ("REGEXP_EXTRACT(t, t) = 'a'", "argument 2 of REGEXP_EXTRACT is a constant", ""),
        ("REGEXP_EXTRACT(t, '(') = 'a'", "not a regular expression", "RE2"),
        ("REGEXP_EXTRACT(t, '(a)', 2) = 'a'", "the pattern has 1 groups", ""),
        ("DATE_TRUNC('dy', at) = at", "DATE_TRUNC to 'dy'", "'day'"),
        ("HOUR(at, 'Europe/Berln') = 1", "unknown time zone 'Europe/Berln'", "Europe/Berlin"),
        ("TO_TIME(n, 'h') = at", "TO_TIME in 'h'", "'ms'"),
        ("CAST(t AS NUMBR) = 1", "CAST to NUMBR", "did you mean NUMBER"),
        ("LOWER(t AS TEXT) = 'a'", "AS inside of LOWER()", "CAST"),
        ("CIDR_MATCH(t, '10.0.0.0/33')", "'10.0.0.0/33' is no network", "10.0.0.0/8"),
        ("CASE WHEN x[n = 1] THEN 1 END = 1", "brackets inside brackets", ""),
    ],
)
def test_calls_that_are_wrong_before_any_event(condition: str, problem: str, hint: str) -> None:
    with pytest.raises(ceql.QueryError) as caught:
        ceql.compile(f"SELECT * WHERE A AS x FILTER x[{condition}]")
    assert problem in str(caught.value) and hint in str(caught.value) and caught.value.span is not None


NAMES = (
    "case", "when", "then", "else", "end", "is", "between", "ilike", "null_", "cast", "day", "hour", "first", "lower",
    "second", "member", "time", "try_cast", "try", "at",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_words_of_functions_are_names_elsewhere(name: str) -> None:
    query = ceql.compile(
        f"SELECT {name} WHERE A AS {name} ; B AS y FILTER {name}[{name} = 1 AND 2 > {name}] AND y.v > {name}.{name}"
    )
    events = [{"type": "A", name: 1, "v": 1}, {"type": "B", "v": 2, name: 5}]
    assert [m.positions for m in query.run(events)] == [(0,)]


SAME_IN_DUCKDB: dict[str, tuple[str, ...]] = {
    "t": ("LOWER({t})", "UPPER({t})", "TRIM({t})", "LTRIM({t})", "RTRIM({t}, 'a ')", "SUBSTRING({t}, 2, 2)",
          "REPLACE({t}, 'a', 'xy')", "CONCAT({t}, '-', {t})", "REPLACE({t}, 'b', {t})"),
    "n": ("LENGTH({t})", "ABS({n})", "ROUND({n})", "FLOOR({n})", "CEIL({n})", "SIGN({n})", "YEAR(ts)", "MONTH(ts)",
          "DAY(ts)", "HOUR(ts)", "MINUTE(ts)", "SECOND(ts)", "({n} + {n})", "({n} - {n})", "POSITION(t IN u)",
          "POSITION('b' IN t)",
          "YEAR(DATE_TRUNC('year', ts))", "DAY(DATE_TRUNC('week', ts))", "MONTH(DATE_TRUNC('quarter', ts))"),
    "c": ("{n} < {n}", "{n} = {n}", "{t} = {t}", "{n} IS NULL", "{t} IS NOT NULL", "{n} BETWEEN {n} AND {n}",
          "{n} NOT BETWEEN {n} AND {n}", "NOT ({c})", "({c} AND {c})", "({c} OR {c})", "{n} = ANY(h)", "{n} <> ALL(h)",
          "{n} < ALL(h)", "{n} >= ANY(h)", "{t} = ANY(w)", "{t} <= SOME(w)", "{t} > ALL(w)", "{t} != ANY(w)",
          "CONTAINS({t}, 'a')", "STARTS_WITH(t, u)", "ENDS_WITH({t}, 'b')", "LIST_CONTAINS(w, COALESCE(t, u, 'a'))",
          "LIST_CONTAINS(h, COALESCE(f, 1))"),
    "any": ("COALESCE({k}, {k})", "NULLIF({k}, {k})", "CASE WHEN {c} THEN {k} ELSE {k} END",
            "CASE WHEN {c} THEN {k} END"),
}  # fmt: skip
LEAVES = {"t": ("t", "u", "'aB '", "''"), "n": ("n", "f", "1", "2.5"), "c": ("n > 1", "t = 'a'")}


def draw_text(kind: str, draw: random.Random, depth: int) -> str:
    """A random expression that means the same in DuckDB."""
    if depth == 0:
        return draw.choice(LEAVES[kind])
    text = draw.choice(SAME_IN_DUCKDB[kind] + (SAME_IN_DUCKDB["any"] if kind != "c" else ()))
    text = text.replace("{k}", "{" + kind + "}")
    return re.sub(r"\{(.)\}", lambda part: draw_text(part[1], draw, depth - 1), text)


def test_duckdb_agrees_where_its_functions_mean_the_same() -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: its functions are not compared")
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE events (k INT, t VARCHAR, u VARCHAR, n DOUBLE, f DOUBLE, ts TIMESTAMP, h DOUBLE[], w VARCHAR[])"
    )
    draw, rows = random.Random(7), []
    for k in range(12):
        at = datetime.datetime(1965, 1, 1) + datetime.timedelta(seconds=draw.randrange(3_000_000_000))
        row = [draw.choice(["", "a", "Ab", " ab ", "éb"]), draw.choice(["b", "ba", ""]), float(draw.randrange(-9, 9)),
               draw.choice([0.5, -2.5, 3.25, -0.75]), at]  # fmt: skip
        lists = [[draw.choice((0.5, -2.5, 1.0, 3.0, None)) for _ in range(k % 4)],
                 [draw.choice(("a", "Ab", "", "ba", None)) for _ in range(draw.randrange(4))]]  # fmt: skip
        rows.append([k, *[value if draw.random() < 0.85 else None for value in row], *lists])
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows[-1])
    names = ("t", "u", "n", "f", "ts", "h", "w")
    events = batch_of([dict(zip(names, row[1:], strict=True)) for row in rows])
    compared = 0
    for seed in range(int(os.environ.get("SPASEQ_RANDOM", 400))):
        draw = random.Random(seed)
        kind = draw.choice("tn")
        text = draw_text(kind, draw, draw.randrange(1, 4))
        theirs = [found for (found,) in connection.execute(f"SELECT {text} FROM events ORDER BY k").fetchall()]
        own = re.sub(r"POSITION\((\w+|'[^']*') IN", r"POSITION(\1,", text)
        node = value_tree(re.sub(r"(START|END)S_WITH", r"\1SWITH", own.replace("LIST_CONTAINS", "CONTAINS")))
        ours = [compile_value(node, lambda a: events.getter(a.name))(row) for row in range(len(rows))]
        assert ours == [float(v) if isinstance(v, decimal.Decimal) else v for v in theirs], text
        compared += sum(value is not None for value in ours)
    assert compared > 1500
