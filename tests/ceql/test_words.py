"""Where a word ends: keywords are whole words, numbers end before a letter. Held against what a name gives there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from lark.lexer import PatternStr

import ceql
from ceql.syntax.parse import _parser, parse
from ceql.syntax.printer import print_query
from spaseq.core.errors import QuerySyntaxError, Span
from tests.support import oracle_ceql_text
from tests.support.words import joined, read, with_plurals

NO_WORDS = {
    "IDENT",
    "QUOTED",
    "NUMBER",
    "STRING",
    "REGEX",
    "COMMENT",
    "COMPARISON",
    "MORETHAN",
    "VALUES",
    "LOOP",
    "BOUNDS",
}
"""The terminals that are no words, besides lark's own for white space."""

# Between them these have every keyword of the grammar.
QUERIES = (
    "SELECT ALL * FROM S WHERE A ; B OR C",
    "SELECT NEXT A FROM S, T WHERE A AS x : NOT B PARTITION BY [k] WITHIN 3 EVENTS",
    "SELECT LAST NONE WHERE AND ( A , B ) WITHIN 1 EVENT CONSUME BY ANY",
    "SELECT MAX * WHERE A WITHIN 1 DAY 2 HOURS 3 MINUTES 4 SECONDS",
    "SELECT STRICT * WHERE A WITHIN 5 MILLISECONDS LIMIT 4",
    "SELECT COUNT ( DISTINCT x . n ) AS k WHERE A AS x",
    "SELECT ANY * WHERE A WITHIN 5 MICROSECOND 6 NANOSECONDS CONSUME BY PARTITION",
    "SELECT * WHERE A AS x FILTER x [ n = 3 OR NOT p = TRUE AND q = FALSE ] CONSUME BY NONE",
    "SELECT * WHERE A AS x FILTER x [ n LIKE 'a' ] OR x [ n NOT IN { 1 , 2 } ] AND x [ n IN RANGE ( 1 , 2 ) ]",
    "SELECT * WHERE A AS x FILTER x [ n IS NOT NULL ] AND x [ n BETWEEN 1 AND 2 AND m NOT ILIKE 'a' ]",
    "SELECT * WHERE A AS x FILTER x [ CASE WHEN n = 1 THEN 2 ELSE 3 END = 2 ]",
    "SELECT COUNT ( * ) AS n WHERE A GROUP BY EVENT",
    "SELECT COUNT ( * ) AS n WHERE A PARTITION BY [ k ] GROUP BY KEY , 1 HOUR",
    "SELECT COUNT ( * ) AS n WHERE A GROUP BY WINDOW",
    "SELECT FIRST * WHERE A AFTER MATCH NO SKIP",
    "SELECT * WHERE A -> B ->+ UNTIL ( C ) -> D ? ALL",
    "SELECT * WHERE A ; NOT B FOR 10 SECONDS ; C",
    "SELECT * WHERE A ; NOT B FOR EVERY 10 SECONDS",
    "SELECT * WHERE A AFTER MATCH SKIP PAST LAST ROW LIMIT 4",
    "SELECT * WHERE A ORDER BY A . v , A . w ASC , A . u DESC LIMIT 4",
    "SELECT * WHERE A AS x AFTER MATCH SKIP TO FIRST x",
    "SELECT all , any , last FROM next WHERE max ; strict ; day FILTER last [ none_ = 1 ]",
)
JOINTS = ("s", "X", "7", "_", "é", "ß", "ſ", "ı", "Ж", "٣")
"""Letters, digits and the underscore: what a name may go on with."""


def keywords() -> set[str]:
    """Every word that the grammar knows, in upper case, from the grammar itself."""
    words: set[str] = set()
    for terminal in _parser().terminals:
        pattern = terminal.pattern.value
        if isinstance(terminal.pattern, PatternStr):
            words |= {pattern.upper()} if pattern.isalpha() else set()
        elif terminal.name not in NO_WORDS and not terminal.name.startswith("__IGNORE"):
            tail = r"(?:(?:s\?)?\\b(?:\(\?!.*)?|\(\?=.*)"
            listed = re.fullmatch(rf"\(?(\w+(?:\|\w+)*)\)?{tail}", pattern, re.DOTALL)
            assert listed, f"say in this test what the terminal {terminal.name} is"
            words |= set(listed[1].upper().split("|"))
    return words


def tokens_of(text: str) -> list[tuple[int, int]]:
    """Where the words of a query that are keywords of some place stand."""
    found = ((m.start(), m.end()) for m in re.finditer(r"(?<!')\b[A-Za-z]+\b(?!')", text))
    known = keywords()
    return [(start, end) for start, end in found if {text[start:end].upper(), text[start:end].upper()[:-1]} & known]


def test_the_queries_have_every_keyword() -> None:
    written = {query[start:end].upper() for query in QUERIES for start, end in tokens_of(query)}
    missing = {word for word in keywords() if not written & with_plurals({word})}
    assert not missing


@pytest.mark.parametrize("query", QUERIES)
def test_the_queries_are_right(query: str) -> None:
    assert parse(print_query(parse(query))) == parse(query)


@pytest.mark.parametrize("query", QUERIES)
def test_a_word_joined_to_letters_or_digits_is_what_a_name_is(query: str) -> None:
    """A keyword with letters, digits or `_` before or behind it gives what a name gives: its tree, or its error."""
    for before, word, behind in joined(query, tokens_of(query), JOINTS, with_plurals(keywords())):
        check_joined(before, word, behind)


def check_joined(before: str, word: str, behind: str) -> None:
    other = ("9" + "z" * (len(word) - 1)) if word[0].isdigit() else "z" * len(word)
    found = read(parse, before + word + behind, word)
    assert found == read(parse, before + other + behind, other), before + word + behind
    if isinstance(found, Span):
        with pytest.raises(ValueError, match=r"."):
            oracle_ceql_text.read(before + word + behind)
    else:
        oracle_ceql_text.read(before + word + behind)


@pytest.mark.parametrize("spelt", [str.upper, str.lower, str.capitalize])
def test_a_keyword_in_back_quotes_is_a_name(spelt: Callable[[str], str]) -> None:
    text = "SELECT `{0}` FROM `{0}` WHERE `{0}` ; A AS `{0}` FILTER `{0}`[`{0}` > 1]"
    for word in map(spelt, sorted(keywords())):
        found, other = read(parse, text.format(word), word), "z" * len(word)
        assert isinstance(found, tuple) and found == read(parse, text.format(other), other)
        tree = parse(text.format(word))
        assert parse(print_query(tree)) == tree


@pytest.mark.parametrize(
    ("text", "column", "word"),
    [
        ("cart order", 21, "order"),
        ("cart asset", 21, "asset"),
        ("view AS v order AS o", 26, "order"),
        ("cart `or`", 21, "`or`"),
        ("(A ; B) orC", 24, "orC"),
        ("A+ asB", 19, "asB"),
        ("A{2} Ordnung", 21, "Ordnung"),
        ("A aſ x", 18, "aſ"),
        ("kauf\n\torder", 2, "order"),
    ],
)
def test_two_events_want_a_semicolon_between_them(text: str, column: int, word: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(f"SELECT * WHERE {text}")
    error = caught.value
    assert error.problem == f"two events want ';', '->' or ':' between them: nothing stands before {word}"
    assert error.span is not None and error.span.column == column
    assert str(error).splitlines()[2].endswith("^" * len(word))


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("A LIMIT3", "unexpected LIMIT3", "LIMIT 3"),
        ("A FILTERx[p > 1]", "unexpected FILTERx", "FILTER x"),
        ("A FILTER A.p = 1 ANDip > 3", "unexpected ANDip", "AND ip"),
        ("A WITHIN 10EVENTS", "10EVENTS is no number", "10 EVENTS"),
        ("A WITHIN 3SECONDS", "3SECONDS is no number", "3 SECONDS"),
        ("A WITHIN 1.5e3HOURS", "1.5e3HOURS is no number", "1.5e3 HOURS"),
        ("A FILTER A.p > 3OR A.q = 1", "3OR is no number", "3 OR"),
    ],
)
def test_words_run_together_are_told_apart(text: str, problem: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(f"SELECT * WHERE {text}")
    assert (caught.value.problem, caught.value.hint) == (problem, f"is a blank missing: {hint}?")
    with pytest.raises(ValueError, match=r"."):
        oracle_ceql_text.read(f"SELECT * WHERE {text}")


@pytest.mark.parametrize(
    ("text", "column"),
    [("A\ud800", 17), ("A FILTER A.p='a\udfff'", 31), ("A -- \ud83d\ude00", 21), ("A FILTER A.p LIKE <<\udc00>>", 36)],
)
def test_half_a_character_in_the_text(text: str, column: int) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        ceql.compile(f"SELECT * WHERE {text}")
    assert caught.value.span is not None and caught.value.span.column == column
    assert "is half of one" in caught.value.problem
    str(caught.value).encode("utf-8")


def test_ceql_has_no_escapes() -> None:
    tree = parse(r"SELECT * WHERE A FILTER A.p = '\uD800'")
    assert r"Text(text='\\uD800')" in repr(tree) or r"\\uD800" in repr(tree)
