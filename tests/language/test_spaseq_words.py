"""Where a word ends: SPAseq's keywords are whole words. Held against what a name gives in their place."""

from __future__ import annotations

import re

import pytest
from lark.lexer import PatternStr

from spaseq.language.syntax.parse import _parser, parse
from tests.support.words import joined, read, with_plurals

WORDS = {"UNIT": "MILLISECOND SECOND MINUTE HOUR DAY", "SET_QUANTIFIER": "DISTINCT REDUCED"}
"""The words of terminals that have several."""
JOINTS = ("s", "X", "7", "_", "-", "é", "ſ", "ı", "Ж")
"""What a name may go on with."""
REST = " WHERE { SEQ (A) DEFINE GPM A ON S { ?x :p ?y } } "

# Between them these have every keyword of the grammar.
QUERIES = (
    "BASE <http://e/> PREFIX : <http://e/> SELECT DISTINCT ?x WITHIN 3 HOURS SLIDING FROM STREAM S <http://e/S>" + REST,
    "PREFIX : <http://e/> SELECT REDUCED ?x WITHIN 3 MINUTES STARTING AT 7 PARTITION BY (?x) FROM STREAM S :S" + REST,
    "PREFIX : <http://e/> ASK WITHIN 3 SECOND FROM STREAM S :S" + REST + "LIMIT 3 OFFSET 4",
    "PREFIX : <http://e/> CONSTRUCT { ?x :p ?y } WITHIN 3 MILLISECONDS FROM STREAM S :S" + REST + "ORDER BY ?x",
    "PREFIX : <e> SELECT ?x WITHIN 3 DAYS FROM STREAM S :S" + REST + "GROUP BY ?x HAVING (3 > 2) VALUES ?x {3}",
    "VERSION '1.2' PREFIX : <e> SELECT ?x AFTER MATCH SKIP TO FIRST A FROM STREAM S :S" + REST,
    "PREFIX : <e> SELECT ?x AFTER MATCH SKIP TO LAST A FROM STREAM S :S" + REST,
    "PREFIX : <e> SELECT ?x AFTER MATCH SKIP TO NEXT EVENT FROM STREAM S :S" + REST,
    "PREFIX : <e> SELECT ?x AFTER MATCH SKIP PAST LAST ROW FROM STREAM S :S" + REST,
    "PREFIX : <e> SELECT FIRST ?x AFTER MATCH NO SKIP FROM STREAM S :S" + REST,
    "PREFIX : <e> SELECT ?x FROM STREAM S :S" + REST.replace("(A)", "(A ; A! FOR 3 SECONDS)"),
)


def keywords() -> set[str]:
    """Every word that the grammar knows, in upper case, from the grammar itself."""
    words = set(" ".join(WORDS.values()).split())
    for terminal in _parser().terminals:
        pattern = terminal.pattern.value
        if isinstance(terminal.pattern, PatternStr):
            words |= {pattern.upper()} if pattern.isalpha() else set()
        elif re.match(r"\(?\w+\|", pattern):
            assert terminal.name in WORDS, f"say in this test which words the terminal {terminal.name} has"
    return words


def words_of(text: str) -> list[tuple[int, int]]:
    """Where the keywords of a query stand."""
    found = [(m.start(), m.end()) for m in re.finditer(r"(?<![\w:?/])[A-Za-z]{2,}(?![\w:/])", text)]
    return [(start, end) for start, end in found if {text[start:end], text[start : end - 1]} & keywords()]


def test_the_queries_have_every_keyword() -> None:
    written = {query[start:end] for query in QUERIES for start, end in words_of(query)}
    assert not {word for word in keywords() if not written & with_plurals({word})}


@pytest.mark.parametrize("query", QUERIES)
def test_a_word_joined_to_letters_or_digits_is_what_a_name_is(query: str) -> None:
    """A keyword with letters, digits, `_` or `-` before or behind it gives what a name gives: a tree, or an error."""
    parse(query)
    for before, word, behind in joined(query, words_of(query), JOINTS, with_plurals(keywords())):
        if word[0] not in "7-":  # no name begins so
            other = "z" * len(word)
            found = read(parse, before + word + behind, word)
            assert found == read(parse, before + other + behind, other), word
