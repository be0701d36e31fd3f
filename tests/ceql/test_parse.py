"""Text to tree: what is read how, and what is said about text that is no query."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ceql
from ceql.syntax import ast
from ceql.syntax.parse import parse
from spaseq.core.errors import QueryError, QuerySyntaxError
from spaseq.core.pattern import Skip
from tests.support.sizes import some


def where(text: str) -> ast.Formula:
    return parse(f"SELECT * WHERE {text}").where


def condition(text: str) -> ast.Condition:
    formula = where(f"A AS x FILTER {text}")
    assert isinstance(formula, ast.Filter)
    return formula.condition


A, B, C = (ast.EventType(name) for name in "ABC")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A ; B : C", ast.Sequence(ast.Sequence(A, B, Skip.ANY), C, Skip.NONE)),
        ("A OR B ; C", ast.Either(A, ast.Sequence(B, C, Skip.ANY))),
        ("A ; B OR C", ast.Either(ast.Sequence(A, B, Skip.ANY), C)),
        ("A OR B AS x", ast.Either(A, ast.As(B, ast.Name("x")))),
        ("(A OR B) AS x", ast.As(ast.Either(A, B), ast.Name("x"))),
        ("A AS x+", ast.Repeat(ast.As(A, ast.Name("x")), 1, None)),
        ("A+ AS x :+", ast.Repeat(ast.As(ast.Repeat(A, 1, None), ast.Name("x")), 1, None, Skip.NONE)),
        ("A{2,3} ; B{2,} : C{,4}", ast.Sequence(
            ast.Sequence(ast.Repeat(A, 2, 3), ast.Repeat(B, 2, None), Skip.ANY), ast.Repeat(C, 0, 4), Skip.NONE)),
        ("A ; NOT B ; C", ast.Sequence(ast.Sequence(A, ast.Without(B), Skip.ANY), C, Skip.ANY)),
        ("AND(A, B ; C)", ast.Conjunction((A, ast.Sequence(B, C, Skip.ANY)))),
        ("s>A", ast.EventType("A", ast.Name("s"))),
        ("`AND` ; and_", ast.Sequence(ast.EventType("AND"), ast.EventType("and_"), Skip.ANY)),
        ("A -- comment ; B\n ; /* C */ B", ast.Sequence(A, B, Skip.ANY)),
    ],
)  # fmt: skip
def test_formulas(text: str, tree: ast.Formula) -> None:
    assert where(text) == tree


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("A ; NOT B ; NOT C ; D", "A ; NOT (B OR C) ; D"),
        ("A ; NOT B ; NOT C", "A ; NOT (B OR C)"),
        ("A ; (NOT B ; C)", "A ; NOT B ; C"),
        ("(A? ; B) ; (NOT B ; C)", "A? ; B ; NOT B ; C"),
        ("A ; (NOT B ; NOT C ; D ; E) ; F", "A ; NOT (B OR C) ; (D ; E) ; F"),
        ("NOT B ; NOT C ; D", "NOT (B OR C) ; D"),
        ("A -> (NOT B -> C)", "A -> NOT B -> C"),
    ],
)
def test_absences_in_a_row_and_in_brackets(text: str, same: str) -> None:
    assert parse(f"SELECT * WHERE {text}").where == parse(f"SELECT * WHERE {same}").where


@pytest.mark.parametrize("text", ["NOT B ; NOT C", "A : NOT B : NOT C", "A ; (NOT B : C)", "A ; NOT B : NOT C"])
def test_other_absences_stay_as_they_are(text: str) -> None:
    tree = parse(f"SELECT * WHERE {text}").where
    assert isinstance(tree, ast.Sequence)
    assert not any(isinstance(node, ast.Either) for node in (tree, tree.left, tree.right))


def test_filter_reaches_to_the_end_of_its_formula() -> None:
    tree = where("A ; (B FILTER B[p > 1]) FILTER A[p > 2] FILTER A[p > 3]")
    assert isinstance(tree, ast.Filter) and isinstance(tree.child, ast.Filter)
    assert isinstance(tree.child.child, ast.Sequence) and isinstance(tree.child.child.right, ast.Filter)


def attribute(name: str, variable: str | None = None) -> ast.Attribute:
    return ast.Attribute(name, variable)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("x[p == 1]", ast.Holds(ast.Name("x"), ast.Compare("=", attribute("p"), ast.Number(1)))),
        ("x.p <> x.q", ast.Compare("!=", attribute("p", "x"), attribute("q", "x"))),
        ("x.p + 2 * -x.q > 1e3", ast.Compare(">", ast.Arithmetic("+", attribute("p", "x"), ast.Arithmetic(
            "*", ast.Number(2), ast.Negate(attribute("q", "x")))), ast.Number(1000.0))),
        ("(x.p + 1) > 2", ast.Compare(">", ast.Arithmetic("+", attribute("p", "x"), ast.Number(1)), ast.Number(2))),
        ("(x.p > 1) AND NOT (x.q > 2 OR x.q < 1)", ast.And(
            ast.Compare(">", attribute("p", "x"), ast.Number(1)),
            ast.Not(ast.Or(ast.Compare(">", attribute("q", "x"), ast.Number(2)),
                           ast.Compare("<", attribute("q", "x"), ast.Number(1)))))),
        ("s>A[p = 1]", ast.Holds(ast.Name("s>A"), ast.Compare("=", attribute("p"), ast.Number(1)))),
        ("x[n IN {'a', \"b\"}]", ast.Holds(ast.Name("x"), ast.In(attribute("n"), (ast.Text("a"), ast.Text("b"))))),
        ("x[n NOT IN {-1, 2.5}]", ast.Holds(ast.Name("x"), ast.Not(
            ast.In(attribute("n"), (ast.Number(-1), ast.Number(2.5)))))),
        ("x[n IN {1..5}]", ast.Holds(ast.Name("x"), ast.InRange(attribute("n"), ast.Number(1), ast.Number(5)))),
        ("x[n IN {..5}]", ast.Holds(ast.Name("x"), ast.InRange(attribute("n"), None, ast.Number(5)))),
        ("x[n in {.5..}]", ast.Holds(ast.Name("x"), ast.InRange(attribute("n"), ast.Number(0.5), None))),
        ("x[n IN RANGE(p, p + 1)]", ast.Holds(ast.Name("x"), ast.InRange(
            attribute("n"), attribute("p"), ast.Arithmetic("+", attribute("p"), ast.Number(1))))),
        ("x[n LIKE 'it''s']", ast.Holds(ast.Name("x"), ast.Like(attribute("n"), "it's"))),
        ("x[n LIKE <<a|b>>]", ast.Holds(ast.Name("x"), ast.Like(attribute("n"), "a|b"))),
        ("x[n = ’MSFT’]", ast.Holds(ast.Name("x"), ast.Compare("=", attribute("n"), ast.Text("MSFT")))),
        ("x[n = “MSFT”]", ast.Holds(ast.Name("x"), ast.Compare("=", attribute("n"), ast.Text("MSFT")))),
        ("COUNT(x) >= 3", ast.Compare(">=", ast.Call("COUNT", (ast.Variable("x"),)), ast.Number(3))),
        ("corr(x.h, y.h) > .8", ast.Compare(">", ast.Call("CORR", (attribute("h", "x"), attribute("h", "y"))),
                                             ast.Number(0.8))),
    ],
)  # fmt: skip
def test_conditions(text: str, tree: ast.Condition) -> None:
    assert condition(text) == tree


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("WITHIN 10 EVENTS", ast.WithinEvents(10)),
        ("within 1 event", ast.WithinEvents(1)),
        ("WITHIN 1 HOUR 30 MINUTES 0.5 seconds", ast.WithinTime(5_400_500_000_000)),
        ("WITHIN 100 MILLISECONDS", ast.WithinTime(100_000_000)),
        ("WITHIN 2 days", ast.WithinTime(172_800 * 10**9)),
        ("WITHIN 10000 [stock_time]", ast.WithinAttribute(10000, ast.Name("stock_time"))),
        ("WITHIN 2.5 [t]", ast.WithinAttribute(2.5, ast.Name("t"))),
    ],
)
def test_windows(text: str, within: ast.Within) -> None:
    assert parse(f"SELECT * WHERE A {text}").within == within


def test_clauses() -> None:
    query = parse(
        "select max b, s>A[p, q] from S, T where A as b limit 3 within 5 events consume by partition"
        " partition by [a, b], [c]"
    )
    assert query.selection == ast.Selection(
        ast.Strategy.MAX, (ast.Selected("b"), ast.Selected("s>A", (ast.Name("p"), ast.Name("q"))))
    )
    assert query.streams == (ast.Name("S"), ast.Name("T"))
    assert query.partition == ((ast.Name("a"), ast.Name("b")), (ast.Name("c"),))
    assert query.consume == ast.Consumption(ast.Consume.PARTITION) and query.limit == ast.Limit(3)
    assert parse("SELECT NONE WHERE A").selection.items == ()
    assert parse("SELECT last, next WHERE A AS last ; B AS next").selection.strategy is None


def test_spans_count_code_points() -> None:
    text = "SELECT *\nWHERE Größe AS ü ;\n  日本 AS y"
    tree = parse(text).where
    assert isinstance(tree, ast.Sequence) and isinstance(tree.right, ast.As)
    span = tree.right.variable.span
    assert (span.line, span.column, text[span.start : span.end]) == (3, 9, "y")


GOLDEN = {
    "SELECT * WHERE A => B": """\
<query>:1:18: unexpected =
  SELECT * WHERE A => B
                   ^
expected: a repetition (? + * {2,5}, with -> or : before it), ->, :, ;, AFTER MATCH, AS, CONSUME BY, FILTER, GROUP BY, \
LIMIT, OR, ORDER BY, PARTITION BY, WITHIN, the end of the query
hint: CEQL writes 'followed by' as -> (the next that fits), ; (anything between) or : (immediately)""",
    "SELECT *\nWHERE (A ; B\nWITHIN 3 EVENTS": """\
<query>:2:7: '(' is not closed
  WHERE (A ; B
        ^
hint: add the missing ')'""",
    "SELECT * WHERE A FILTER A[p IN {1, 2]": """\
<query>:1:32: '{' is not closed
  SELECT * WHERE A FILTER A[p IN {1, 2]
                                 ^
hint: add the missing '}'""",
    "SELECT * WHERE A FILTER A[n = 'x]": """\
<query>:1:31: this text is not closed
  SELECT * WHERE A FILTER A[n = 'x]
                                ^
hint: a text ends on its line with the quote it begins with; '' is a quote in it""",
    "SELECT * WHERE A /* B": """\
<query>:1:18: this comment is not closed
  SELECT * WHERE A /* B
                   ^
hint: a comment ends with */""",
    "SELECT * WHERE A)": """\
<query>:1:17: nothing is open here that ')' could close
  SELECT * WHERE A)
                  ^
expected: AFTER MATCH, CONSUME BY, FILTER, GROUP BY, LIMIT, ORDER BY, PARTITION BY, WITHIN, the end of the query""",
    "SELECT * WHERE A ; B;": """\
<query>:1:22: the query ends too early
  SELECT * WHERE A ; B;
                       ^
expected: a name, (, AND, NOT
hint: a query does not end with ';': that means 'followed by'""",
    "SELECT * WHERE A PARTITION BY name": """\
<query>:1:31: unexpected name
  SELECT * WHERE A PARTITION BY name
                                ^^^^
expected: [
hint: PARTITION BY lists attributes in brackets: PARTITION BY [name]""",
    "SELECT * WHERE A WITHIN 10 s": """\
<query>:1:28: unexpected s
  SELECT * WHERE A WITHIN 10 s
                             ^
expected: a unit of time (DAYS, HOURS, MINUTES, SECONDS, MILLISECONDS), EVENTS, [
hint: write 10 SECONDS; units of time are DAYS, HOURS, MINUTES, SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS""",
    "SELECT * FROM S MATCH_RECOGNIZE (PATTERN (A B))": """\
<query>:1:17: unexpected MATCH_RECOGNIZE
  SELECT * FROM S MATCH_RECOGNIZE (PATTERN (A B))
                  ^^^^^^^^^^^^^^^
expected: ',', WHERE
hint: this looks like SQL with MATCH_RECOGNIZE; the nearest in CEQL (ceql run) is SELECT * WHERE A AS a ; B+ AS b \
FILTER b[price > 3] PARTITION BY [key] WITHIN 10 SECONDS (docs/same.md compares the languages)""",
    "SELECT * WHERE A FILTER price > 3": """\
<query>:1:25: whose price? A FILTER names the variable
  SELECT * WHERE A FILTER price > 3
                          ^^^^^
hint: write x.price, or x[price …]""",
    "SELECT * WHERE A FILTER A[p]": """\
<query>:1:27: p is a value, and a condition is needed here
  SELECT * WHERE A FILTER A[p]
                            ^
hint: compare it with something: p > 3""",
    "SELECT * WHERE A{3,2}": """\
<query>:1:16: {3,2} allows no number of rounds
  SELECT * WHERE A{3,2}
                 ^^^^^^
hint: the greatest number of rounds is 1 or more, and not below the least""",
    "": """\
<query>:1:1: the query is empty
expected: SELECT
hint: a query begins with SELECT: SELECT * FROM s WHERE A; B""",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_errors_say_where_and_what_to_do(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert str(caught.value) == GOLDEN[text]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT * WHERE A FILTER A[p = 1 && q = 2]", "write AND"),
        ("SELECT * WHERE A FILTER A[p = 1 || q = 2]", "write OR"),
        ("SELECT * WHERE A FILTER A.p = A.q = 1", "compare two values at a time"),
        ("SELECT * WHERE A FILTER A[p > 1] ; B", "put (φ FILTER …) in parentheses"),
        ("SELECT * WHERE A FILTER A[p BETWEEN 1, 2]", "BETWEEN 10 AND 20"),
        ("SELECT * WHERE A FILTER A[p IS 3]", "IS NULL"),
        ("WHERE A", "begins with SELECT"),
        ("SELECT * FROM S WHERE A GROUP BY x", "PARTITION BY"),
        ("SELECT * WHERE A FILTER A[x[p > 1]]", "write x[a > 1] AND y[b > 2]"),
        ("SELECT * WHERE A WITHIN 1 EVENTS WITHIN 2 EVENTS", "at most one"),
    ],
)
def test_hints_for_common_slips(text: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert hint in caught.value.hint


def test_deep_nesting_is_an_error_of_ours() -> None:
    depth = 20_000
    with pytest.raises(QueryError, match=r"q\.ceql: the query is nested too deeply"):
        ceql.compile(
            "SELECT * WHERE " + "(" * depth + "A" + ")" * depth + " FILTER A[" + "NOT " * depth + "p = 1]",
            source="q.ceql",
        )


PIECES = [
    "SELECT",
    "*",
    "MAX",
    "FROM",
    "S",
    ",",
    "WHERE",
    "A",
    "AS",
    "x",
    "B",
    ";",
    ":",
    "+",
    ":+",
    "OR",
    "AND",
    "NOT",
    "FILTER",
    "x",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "p",
    "q",
    "=",
    "<",
    ">",
    "'a'",
    '"',
    "'",
    "`",
    "3",
    "2.5",
    "..",
    ".",
    "LIKE\nIN",
    "RANGE",
    "WITHIN",
    "EVENTS",
    "SECONDS",
    "PARTITION",
    "BY",
    "CONSUME",
    "NONE",
    "LIMIT",
    "-",
    "*",
    "/",
    "%",
    "--",
    "/*",
    "*/",
    "COUNT",
    "\n",
    "é",
]


@settings(max_examples=some(500), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14), st.booleans())
def test_no_text_raises_anything_but_our_errors(pieces: list[str], whole: bool) -> None:
    text = ("SELECT * WHERE A AS x FILTER x[p = 3] " if whole else "") + " ".join(pieces)
    try:
        ceql.compile(text)
    except QueryError as error:
        assert str(error).startswith("<query>:") and "VisitError" not in str(error)
        assert error.span is None or 0 <= error.span.start <= error.span.end <= max(len(text), 1)


@pytest.mark.parametrize("cut", range(0, 150, 3))
def test_half_a_query_is_a_syntax_error_or_a_query(cut: int) -> None:
    text = (
        "SELECT a FROM S WHERE (A AS a ; (B OR C)+ AS b) FILTER a[name LIKE 'x.*'] AND b.price > a.price * 1.01"
        " PARTITION BY [k], [l, m] WITHIN 1 HOUR 5 MINUTES CONSUME BY NONE"
    )
    try:
        ceql.compile(text[:cut])
    except QueryError as error:
        assert error.span is not None
