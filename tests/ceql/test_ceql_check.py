"""Queries that parse and mean nothing, or nothing that can be run yet: one clear error each."""

from __future__ import annotations

import pytest

import ceql
from spaseq.errors import QuerySemanticsError, UnsupportedFeature

GOLDEN = {
    "SELECT msft WHERE SELL AS mfst": """\
<query>:1:8: unknown variable msft in SELECT
  SELECT msft WHERE SELL AS mfst
         ^^^^
hint: did you mean mfst?""",
    "SELECT * WHERE A AS x ; B AS y\nFILTER z[price > 3]": """\
<query>:2:8: unknown variable z in FILTER
  FILTER z[price > 3]
         ^
hint: the variables of the formula are A, x, B, y""",
    "SELECT * WHERE A AS x FILTER x.p > w.p": """\
<query>:1:36: unknown variable w in FILTER
  SELECT * WHERE A AS x FILTER x.p > w.p
                                     ^^^
hint: the variables of the formula are A, x""",
    "SELECT * FROM Stock WHERE Stok>A": """\
<query>:1:27: unknown stream Stok
  SELECT * FROM Stock WHERE Stok>A
                            ^^^^
hint: did you mean Stock?""",
    "SELECT * FROM S, S WHERE A": """\
<query>:1:18: stream S twice in FROM
  SELECT * FROM S, S WHERE A
                   ^""",
    "SELECT * WHERE A FILTER A[name LIKE 'a(b']": """\
<query>:1:27: this is not a regular expression: missing ): a(b
  SELECT * WHERE A FILTER A[name LIKE 'a(b']
                            ^^^^^^^^^^^^^^^
hint: LIKE takes a regular expression (RE2) for the whole text; '.*' stands for anything""",
    "SELECT * WHERE A FILTER A[name != NULL]": """\
<query>:1:35: NULL is not a value to compare with
  SELECT * WHERE A FILTER A[name != NULL]
                                    ^^^^
hint: a comparison with a missing attribute never holds""",
    "SELECT * WHERE A FILTER AVGE(A.x) > 3": """\
<query>:1:25: unknown function AVGE
  SELECT * WHERE A FILTER AVGE(A.x) > 3
                          ^^^^^^^^^
hint: did you mean AVG?""",
    "SELECT * WHERE A FILTER 1 = 2": """\
<query>:1:25: this condition is about no variable
  SELECT * WHERE A FILTER 1 = 2
                          ^^^^^
hint: write x.price > 3, or x[price > 3]""",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_errors_name_the_thing_and_the_place(text: str) -> None:
    with pytest.raises(QuerySemanticsError) as caught:
        ceql.compile(text)
    assert str(caught.value) == GOLDEN[text]


@pytest.mark.parametrize(
    ("text", "name", "spot"),
    [
        ("SELECT NEXT * WHERE A", "NEXT", "NEXT *"),
        ("SELECT LAST * WHERE A", "LAST", "LAST *"),
        ("SELECT MAX * WHERE A", "MAX", "MAX *"),
        ("SELECT ANY * WHERE A", "ANY", "ANY *"),
        ("SELECT A[p] WHERE A", "list of attributes in SELECT", "A[p]"),
        ("SELECT * WHERE A CONSUME BY ANY", "CONSUME BY ANY", "CONSUME BY ANY"),
        ("SELECT * WHERE A CONSUME BY PARTITION", "CONSUME BY PARTITION", "CONSUME BY PARTITION"),
        ("SELECT * WHERE A LIMIT 3", "LIMIT", "LIMIT 3"),
        ("SELECT * WHERE A ; NOT B ; C", "NOT", "NOT B"),
        ("SELECT * WHERE NOT (A FILTER A[p > 1])", "NOT", "NOT (A FILTER A[p > 1])"),
        ("SELECT * WHERE AND(A, B)", "AND(φ, ψ)", "AND(A, B)"),
        ("SELECT * WHERE A{2,3}", "φ{l,m}", "A{2,3}"),
        ("SELECT * WHERE A+ AS x ; B FILTER AVG(x.p) < B.p", "AVG", "AVG(x.p)"),
        ("SELECT * WHERE A+ AS x FILTER COUNT(x) >= 3", "COUNT", "COUNT(x)"),
        ("SELECT * WHERE A AS x ; B AS y FILTER CORR(x.h, y.h) > 0.8", "CORR", "CORR(x.h, y.h)"),
        ("SELECT * WHERE A AS x ; (B AS y ; C AS z FILTER y.p + z.p > x.p)+", "inside an iteration", "y.p + z.p > x.p"),
    ],
)
def test_what_is_not_run_yet_says_so_by_name(text: str, name: str, spot: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ceql.compile(text)
    error = caught.value
    assert name in error.problem and error.span is not None
    assert text[error.span.start : error.span.end].startswith(spot.split()[0])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ALL * WHERE A CONSUME BY NONE",
        "SELECT STRICT A WHERE A",
        "SELECT NONE WHERE A ; B",
        "SELECT x FROM S WHERE (A OR B AS x) FILTER x[p > 1] AND A[q < 2]",
        "SELECT * WHERE A AS x ; A AS x",  # a variable is a set of positions: this is no contradiction
        "SELECT * WHERE H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z",
    ],
)
def test_what_is_fine(text: str) -> None:
    ceql.compile(text)
