"""Queries that parse and mean nothing, or nothing that can be run yet: one clear error each."""

from __future__ import annotations

import pytest

import ceql
from spaseq.core.errors import QuerySemanticsError, UnsupportedFeature

_SIDE = "NOT … FOR, a silence as a side of OR, with no part beside the OR"
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
    "SELECT * WHERE A FILTER AVGE(A.x) > 3": """\
<query>:1:25: unknown function AVGE
  SELECT * WHERE A FILTER AVGE(A.x) > 3
                          ^^^^^^^^^
hint: did you mean AVG?""",
    "SELECT AVG(ROUNDD(b.x)) AS y WHERE A ; B+ AS b": """\
<query>:1:12: unknown function ROUNDD
  SELECT AVG(ROUNDD(b.x)) AS y WHERE A ; B+ AS b
             ^^^^^^^^^^^
hint: did you mean ROUND?""",
    "SELECT * WHERE A ; B+ AS b FILTER AVG(1 - NOT(b.x)) > 3": """\
<query>:1:43: unknown function NOT
  SELECT * WHERE A ; B+ AS b FILTER AVG(1 - NOT(b.x)) > 3
                                            ^^^^^^^^
hint: a condition is no value; CASE WHEN x.price > 3 THEN 1 ELSE 0 END is one""",
    "SELECT * WHERE A ; NOT B AS n ; C FILTER n[price > 3]": """\
<query>:1:42: n is only under a NOT, so no match has an event of it for FILTER
  SELECT * WHERE A ; NOT B AS n ; C FILTER n[price > 3]
                                           ^
hint: conditions on what must not come stand in the NOT itself: NOT (B AS n FILTER n[price > 3])""",
    "SELECT B WHERE A ; NOT B ; C": """\
<query>:1:8: B is only under a NOT, so no match has an event of it for SELECT
  SELECT B WHERE A ; NOT B ; C
         ^
hint: select what is matched""",
    "SELECT * WHERE A+ AS x FILTER AVG(x) > 3": """\
<query>:1:35: AVG of which attribute of x?
  SELECT * WHERE A+ AS x FILTER AVG(x) > 3
                                    ^
hint: write AVG(x.price)""",
    "SELECT * WHERE A+ AS x FILTER MAX(x.p, x.q) > 3": """\
<query>:1:31: MAX takes one value, and there are 2
  SELECT * WHERE A+ AS x FILTER MAX(x.p, x.q) > 3
                                ^^^^^^^^^^^^^
hint: for example MAX(x.price)""",
    "SELECT * WHERE A+ AS x FILTER AVG(SUM(x.p)) > 3": """\
<query>:1:35: an aggregate inside an aggregate
  SELECT * WHERE A+ AS x FILTER AVG(SUM(x.p)) > 3
                                    ^^^^^^^^
hint: for example AVG(x.price)""",
    "SELECT * WHERE A+ AS x ; B AS y FILTER AVG(x.p - y.p) > 3": """\
<query>:1:44: AVG over x and y at once
  SELECT * WHERE A+ AS x ; B AS y FILTER AVG(x.p - y.p) > 3
                                             ^^^^^^^^^
hint: an aggregate is about one variable""",
    "SELECT * WHERE A+ AS x FILTER SUM(3) > x.p": """\
<query>:1:35: SUM of what is the same for every event
  SELECT * WHERE A+ AS x FILTER SUM(3) > x.p
                                    ^
hint: for example SUM(x.price)""",
    "SELECT * WHERE A FILTER 1 = 2": """\
<query>:1:25: this condition is about no variable
  SELECT * WHERE A FILTER 1 = 2
                          ^^^^^
hint: write x.price > 3, or x[price > 3]""",
    "SELECT COUNT(*) AS n WHERE A": """\
<query>:1:8: COUNT(*) counts the matches of a group, and the query has no GROUP BY
  SELECT COUNT(*) AS n WHERE A
         ^^^^^^^^
hint: GROUP BY EVENT behind the formula gives a row for each event at which matches end""",
    "SELECT * WHERE A GROUP BY EVENT": """\
<query>:1:18: GROUP BY goes with a SELECT that computes
  SELECT * WHERE A GROUP BY EVENT
                   ^^^^^^^^^^^^^^
hint: SELECT COUNT(*) AS matches, SUM(x.price) AS total … GROUP BY EVENT""",
    "SELECT STDDEV(A.p) AS d WHERE A GROUP BY EVENT": """\
<query>:1:8: STDDEV cannot be had of all matches without a list of them
  SELECT STDDEV(A.p) AS d WHERE A GROUP BY EVENT
         ^^^^^^^^^^^
hint: with GROUP BY the aggregates are COUNT, SUM, AVG, MIN, MAX""",
    "SELECT A.p, COUNT(*) AS n WHERE A GROUP BY EVENT": """\
<query>:1:8: A.p of which match?
  SELECT A.p, COUNT(*) AS n WHERE A GROUP BY EVENT
         ^^^
hint: write an aggregate: MIN(A.p), SUM(A.p)""",
    "SELECT SUM(A.p * B.p) AS s WHERE A ; B GROUP BY EVENT": """\
<query>:1:12: SUM over A and B at once
  SELECT SUM(A.p * B.p) AS s WHERE A ; B GROUP BY EVENT
             ^^^^^^^^^
hint: an aggregate is about one variable""",
    "SELECT COUNT(*) AS n WHERE A GROUP BY EVENT LIMIT 2": """\
<query>:1:45: LIMIT counts matches, and GROUP BY lists none
  SELECT COUNT(*) AS n WHERE A GROUP BY EVENT LIMIT 2
                                              ^^^^^^^
hint: a row is of all matches that end at an event; to_arrow().slice(0, 5) has the first rows""",
    "SELECT COUNT(*) AS n WHERE A GROUP BY EVENT, KEY": """\
<query>:1:30: an event has one key and one time
  SELECT COUNT(*) AS n WHERE A GROUP BY EVENT, KEY
                               ^^^^^^^^^^^^^^^^^^^
hint: GROUP BY EVENT alone; an attribute of PARTITION BY and MATCH_END may be columns""",
    "SELECT COUNT(*) AS n WHERE A GROUP BY KEY": """\
<query>:1:30: GROUP BY KEY without PARTITION BY
  SELECT COUNT(*) AS n WHERE A GROUP BY KEY
                               ^^^^^^^^^^^^
hint: PARTITION BY [user] … GROUP BY KEY has a row for each user""",
    "SELECT k, COUNT(*) AS n WHERE A PARTITION BY [k] GROUP BY 1 HOUR": """\
<query>:1:8: k of which match?
  SELECT k, COUNT(*) AS n WHERE A PARTITION BY [k] GROUP BY 1 HOUR
         ^
hint: GROUP BY KEY, 1 HOUR has a row for each key and hour""",
}


@pytest.mark.parametrize("text", GOLDEN)
def test_errors_name_the_thing_and_the_place(text: str) -> None:
    with pytest.raises(QuerySemanticsError) as caught:
        ceql.compile(text)
    assert str(caught.value) == GOLDEN[text]


@pytest.mark.parametrize(
    ("text", "name", "spot"),
    [
        ("SELECT * WHERE A AS x ; (B AS y ; C AS z FILTER y.p + z.p > x.p)+", "inside an iteration", "y.p + z.p > x.p"),
        ("SELECT * WHERE A AS x ; (B+ AS y FILTER AVG(y.p) > x.p)+", "inside an iteration", "AVG(y.p) > x.p"),
        ("SELECT * WHERE A AS x ; (B+ AS y FILTER AVG(y.p) > x.p){2}", "inside an iteration", "AVG(y.p) > x.p"),
        ("SELECT * WHERE NOT (A FILTER A.p > b.p) ; B AS b", "later events in a NOT at the start", "A.p > b.p"),
        ("SELECT * WHERE NOT (A ; B) ; C", "NOT of more than one event", "A ; B"),
        ("SELECT * WHERE C ; AND(A, NOT B FOR 1 SECOND)+ ; C", "begins and ends a round", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A? ; NOT B FOR 1 SECOND ; C? ; D", "may both take no event", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE (A ; NOT B FOR 1 SECOND)+ WITHIN 4 EVENTS", "with WITHIN … EVENTS", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A ; (NOT (B ; C) FOR 1 SECOND ; D)+ ; C", "NOT … FOR of several", "NOT (B ; C) FOR 1 SECOND"),
        ("SELECT * WHERE A ; NOT (B ; C) FOR 1 SECOND ; D", "NOT … FOR of several", "NOT (B ; C) FOR 1 SECOND"),
        ("SELECT * WHERE A ; NOT B FOR 1 SECOND WITHIN 4 EVENTS", "with WITHIN … EVENTS", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A ; NOT B FOR 1 SECOND WITHIN 4 [p]", "window over an attribute", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A ; NOT B FOR 1 SECOND ; C WITHIN 4 [p]", "over an attribute", "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A ; (C ; NOT (B ; D))", "NOT of more than one event at the end of the query", "NOT"),
        ("SELECT * WHERE A ; AND(B, NOT (C ; D)) ; E", "NOT of more than one event in AND", "NOT"),
        ("SELECT * WHERE A ; AND((B ; NOT C), D) ; E", "NOT at the border of a part of AND", "NOT C"),
        ("SELECT * WHERE A ; AND(B, NOT (C AS c FILTER c.v > B.v)) ; E", "condition on B in this NOT", "c.v > B.v"),
        ("SELECT * WHERE A -> ((NOT B -> C) OR D)", "NOT in some of the alternatives of a step", "NOT B"),
        ("SELECT * WHERE A ; NOT (NOT B ; C) ; D", "NOT at the border of what must not come", "NOT B"),
        ("SELECT * WHERE X ; (A AS a ; NOT (B FILTER B.v > a.v))+ ; D", "between two rounds", "B.v > a.v"),
        ("SELECT * WHERE X ; (A AS a ; NOT (B FILTER B.v > a.v))", "at the end of the query", "B.v > a.v"),
        (
            "SELECT * WHERE X AS x ; (A ; ((NOT (B FILTER B.v > x.v) ; C) OR D))",
            "condition on x in this NOT",
            "B.v > x.v",
        ),
        ("SELECT * WHERE A ; (X* AS x ; (NOT (B FILTER B.v > x.v) ; C)+)", "a condition on other events", "B.v > x.v"),
        ("SELECT * WHERE X AS x ; (X? AS x ; ((NOT (B FILTER B.v > x.v) ; C) OR D))", "for several gaps", "B.v > x.v"),
        (
            "SELECT * WHERE A AS a ; ((NOT (B FILTER B.v > a.v) ; NOT (C ; D) ; E) OR D)",
            "a condition on several events in a NOT of more than one",
            "B.v > a.v",
        ),
        ("SELECT * WHERE A ; NOT (B ; C)", "NOT of more than one event", "B ; C"),
        ("SELECT * WHERE A -> NOT B+ -> D", "NOT of more than one event between steps joined by ->", "B+"),
        ("SELECT * WHERE A ; NOT (B -> C) ; D", "-> in a NOT of more than one event", "B -> C"),
        ("SELECT * WHERE A AS a ; NOT (B ; C AS c FILTER c.v > a.v) ; D", "a condition on several events", "c.v > a.v"),
        ("SELECT * WHERE A ; NOT (B AS b ; C AS c FILTER c.v > b.v) ; D", "a condition on several events", "B AS"),
        ("SELECT * WHERE A ; NOT NOT B ; D", "NOT of a NOT", "NOT B"),
        ("SELECT * WHERE A ; NOT (B AS b FILTER b.p > d.p) ; C ; D AS d", "condition on d in this NOT", "b.p > d.p"),
        ("SELECT * WHERE A ; NOT (B AS b FILTER b.p > c.p) ; C+ AS c", "on such a variable", "b.p > c.p"),
        ("SELECT * WHERE A -> NOT (B AS b FILTER b.p > c.p) -> C AS c", "between steps joined by ->", "b.p > c.p"),
        (
            "SELECT * WHERE (A AS a OR C) ; NOT (B FILTER B.p > a.p)",
            "relates a NOT at the end to a part with OR",
            "B.p > a.p",
        ),
        (
            "SELECT STRICT A WHERE (A ; NOT B) OR (A ; C)",
            "NOT at the border of some alternatives, with SELECT STRICT of some",
            "NOT B",
        ),
        ("SELECT * WHERE (A ; NOT (B ; C)) OR D", "NOT of more than one event at the end", "NOT (B"),
        ("SELECT C WHERE A AS a ; C ; NOT (B FILTER B.p > a.p)", "SELECT that leaves out some events", "B.p > a.p"),
        ("SELECT * WHERE A AS a ; NOT (B FILTER B.p > AVG(a.p)) ; C", "an aggregate in a NOT", "B.p > AVG(a.p)"),
        (
            "SELECT * WHERE (A AS x OR B AS y) ; NOT (C AS z FILTER z.p = x.p AND z.p = y.p) ; A",
            "several conditions in a NOT",
            "z.p = y.p",
        ),
    ],
)
def test_what_is_not_run_yet_says_so_by_name(text: str, name: str, spot: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ceql.compile(text)
    error = caught.value
    assert "this version does not run it yet" in error.problem
    assert name in error.problem and error.span is not None
    assert text[error.span.start : error.span.end].startswith(spot.split()[0])


@pytest.mark.parametrize(
    ("text", "name", "spot"),
    [
        ("SELECT * WHERE X ; AND(NOT A, NOT B) ; C", "AND of NOTs alone", "AND(NOT"),
        ("SELECT * WHERE A ; (NOT B FOR 1 SECOND OR C)?", _SIDE, "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE A OR NOT B FOR 1 SECOND", _SIDE, "NOT B FOR 1 SECOND"),
        ("SELECT * WHERE X ; (NOT A -> NOT B) ; C", "a sequence of NOTs alone", "NOT B"),
        ("SELECT * WHERE NOT A ; NOT B", "a sequence of NOTs alone", "NOT B"),
        ("SELECT * WHERE A ; NOT B -> C", "this NOT is joined by ; on one side and by -> on the other", "NOT B"),
        ("SELECT * WHERE A ; NOT B : C", "this NOT is joined by ; on one side and by : on the other", "NOT B"),
        ("SELECT * WHERE A : (NOT B ; C)", "this NOT is joined by ; on one side and by : on the other", "NOT B"),
        ("SELECT * WHERE X ; (A -> NOT B)+ ; C", "this NOT is joined by -> on one side and by ; on the other", "NOT B"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(text: str, name: str, spot: str) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        ceql.compile(text)
    error = caught.value
    assert error.problem == name and error.hint and error.span is not None
    assert text[error.span.start : error.span.end].startswith(spot.split()[0])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ALL * WHERE A CONSUME BY NONE",
        "SELECT NEXT * WHERE A ; B PARTITION BY [k] WITHIN 5 EVENTS CONSUME BY PARTITION LIMIT 3",
        "SELECT STRICT * WHERE A ; NOT (B OR C) WITHIN 5 EVENTS",
        "SELECT * WHERE A{300} ; B{2,200}",
        "SELECT STRICT A WHERE A",
        "SELECT NONE WHERE A ; B",
        "SELECT x FROM S WHERE (A OR B AS x) FILTER x[p > 1] AND A[q < 2]",
        "SELECT * WHERE A AS x ; A AS x",  # a variable is a set of positions: this is no contradiction
        "SELECT * WHERE H AS x ; (T AS y FILTER y.id = x.id)+ ; H AS z",
    ],
)
def test_what_is_fine(text: str) -> None:
    ceql.compile(text)


def test_what_grows_too_large_says_how_large() -> None:
    for text, problem in (
        (
            "SELECT * WHERE A{2000}",
            "written out without repetitions this is 2,000 events long, and repeated_events is 1,000",
        ),
        ("SELECT * WHERE AND(A{600}, B){2}", "written out without repetitions this is 1,202 events long"),
    ):
        with pytest.raises(UnsupportedFeature) as caught:
            ceql.compile(text)
        assert caught.value.problem.startswith(problem) and caught.value.span is not None
