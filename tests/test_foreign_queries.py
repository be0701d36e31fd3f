"""A query of another language, pasted into either command, gets a hint with its language and the nearest spelling."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

import ceql
import spaseq
from spaseq.core.errors import QuerySyntaxError

FOREIGN: Final = {
    "REGISTER QUERY q AS PREFIX ex: <http://e/> SELECT ?x FROM STREAM <http://e/s> [RANGE 10s STEP 1s] "
    "WHERE { ?x ex:p ?y }": "C-SPARQL",
    "PREFIX ex: <http://e/>\nSELECT ?x FROM STREAM <http://e/s> [RANGE 10s STEP 1s] WHERE { ?x ex:p ?y }": "C-SPARQL",
    "REGISTER RSTREAM <http://e/out> AS SELECT ?x FROM NAMED WINDOW <http://e/w> ON <http://e/s> "
    "[RANGE PT10S STEP PT1S] WHERE { WINDOW <http://e/w> { ?x ?p ?y } }": "RSP-QL",
    "PREFIX : <http://e/>\nSELECT ?x FROM NAMED WINDOW :w ON :s [RANGE PT10S] WHERE { WINDOW ?w { } }": "RSP-QL",
    "PATTERN SEQ(Shelf a, !(Counter b), Exit c)\nWHERE a.id = b.id\nWITHIN 12 hours": "SASE",
    "EVENT SEQ(Shelf a, Exit c) WHERE [id] WITHIN 12 hours": "SASE",
    "SELECT * FROM Ticker MATCH_RECOGNIZE (\n  PARTITION BY symbol ORDER BY rowtime\n  PATTERN (A B+ C)\n"
    "  DEFINE B AS B.price < A.price)": "SQL with MATCH_RECOGNIZE",
    "select * from pattern [every a=A -> b=B(id=a.id)]": "Esper's EPL",
    "every a=A -> b=B": "Esper's EPL",
    "from every e1=Stock[price > 10] -> e2=Stock[price > e1.price] within 5 min\n"
    "select e1.price as p insert into Out;": "Siddhi",
    "define stream S (a int);\nfrom every e1=S -> e2=S select e1.a insert into Out;": "Siddhi",
    "from e1=A -> not B[id == e1.id] for 1 sec select e1.id insert into Out;": "Siddhi",
    'Pattern.<Event>begin("a").where(x).notFollowedBy("b").within(Time.seconds(10));': "Flink CEP",
    'val p = Pattern.begin("a").where(x).next("b")': "Flink CEP",
    'begin("a").where(alarm).followedBy("b")': "Flink CEP",
    'sequence by user with maxspan=1m\n  [process where name == "cmd.exe"]\n  [any where true]': "EQL",
    'process where process.name == "cmd.exe"': "EQL",
}
OURS: Final = [
    (ceql, "SELECT WHERE A"),
    (ceql, "SELECT * FROM Pattern WHERE"),
    (ceql, "SELECT * WHERE every ; A => B"),
    (spaseq, "SELECT ?x FROM STREAM S <http://e/s> [RANGE 10s] WHERE { }"),
]


@pytest.mark.parametrize("language", [ceql, spaseq])
@pytest.mark.parametrize("text", FOREIGN)
def test_the_hint_names_the_language(language: Any, text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        language.compile(text)
    home = "SPAseq (spaseq run)" if "SPARQL" in FOREIGN[text] or "RSP" in FOREIGN[text] else "CEQL (ceql run)"
    assert caught.value.hint.startswith(f"this looks like {FOREIGN[text]}; the nearest in {home} is SELECT")


@pytest.mark.parametrize("text", [text for text, name in FOREIGN.items() if name not in ("C-SPARQL", "RSP-QL")])
def test_the_nearest_spelling_is_a_query(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(text)
    (spelling,) = re.findall(r"is (SELECT .*) \(docs/same\.md", caught.value.hint)
    ceql.compile(spelling)


@pytest.mark.parametrize(
    ("text", "absence"),
    [
        ("every a=A -> (timer:interval(10 sec) and not B)", True),
        ("from A -> e2=B select 1 as x", False),
        ("from e1=A -> not B for 1 sec select e1.id insert into Out;", True),
        ("PATTERN SEQ(Shelf a, !(Counter b), Exit c)", True),
        ('Pattern.begin("a").notNext("b").next("c")', True),
        ('Pattern.begin("a").next("b")', False),
        ("every notice=A -> b=B", False),
    ],
)
def test_the_nearest_spelling_has_an_absence_if_the_query_has_one(text: str, absence: bool) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(text)
    assert ("NOT (B AS b FILTER b.id = a.id) FOR 10 SECONDS" in caught.value.hint) is absence


@pytest.mark.parametrize(("language", "text"), OURS)
def test_a_slip_in_a_query_of_ours_is_taken_for_no_other_language(language: Any, text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        language.compile(text)
    assert "looks like" not in caught.value.hint


@pytest.mark.parametrize(
    ("window", "spelling"),
    [("5m", "5 MINUTES"), ("5 MIN", "5 MINUTES"), ("1 HOUR 30min", "30 MINUTES"), ("500ms", "500 MILLISECONDS")],
)
def test_a_unit_of_time_that_is_spelt_otherwise_gets_its_name(window: str, spelling: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(f"SELECT * WHERE A ; B WITHIN {window}")
    assert caught.value.hint.startswith(f"write {spelling}; units of time are DAYS, HOURS, MINUTES, SECONDS")


def test_a_number_with_a_name_behind_it_is_told_no_blank() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile("SELECT * WHERE A FILTER A[v > 5m]")
    assert caught.value.hint == "a name stands in back-quotes: `5m`"


def test_words_of_sql_and_of_core_get_a_hint() -> None:
    for text, hint in {
        "SELECT user, COUNT(*) FROM S WHERE A GROUP BY user": "a group is an EVENT at which matches end, a KEY of",
        "SELECT NXT * WHERE A": "the strategy is called NEXT here",
    }.items():
        with pytest.raises(QuerySyntaxError) as caught:
            ceql.compile(text)
        assert caught.value.hint.startswith(hint)
