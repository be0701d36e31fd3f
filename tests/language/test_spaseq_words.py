"""Where a word ends: SPAseq's keywords are whole words. Held against what a name gives in their place."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from lark.lexer import PatternStr

from spaseq.errors import QueryError
from spaseq.language.parse import _parser, parse

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


def plain(node: Any, word: str) -> Any:
    """A tree with its spans as tuples, with `word` as `?`."""
    if is_dataclass(node):
        return (type(node).__name__, *(plain(getattr(node, field.name), word) for field in fields(node)))
    if isinstance(node, tuple):
        return tuple(plain(child, word) for child in node)
    return node.replace(word, "?") if isinstance(node, str) else node


def read(text: str, word: str) -> Any:
    """What `text` is: its tree with `word` as `?`, or where it is wrong."""
    try:
        return plain(parse(text), word)
    except QueryError as error:
        assert error.span is not None
        return error.span


def test_the_queries_have_every_keyword() -> None:
    written = {query[start:end] for query in QUERIES for start, end in words_of(query)}
    assert not {word for word in keywords() if not written & {word, word + "S"}}


@pytest.mark.parametrize("query", QUERIES)
def test_a_word_joined_to_letters_or_digits_is_what_a_name_is(query: str) -> None:
    """A keyword with letters, digits, `_` or `-` before or behind it gives what a name gives: a tree, or an error."""
    parse(query)
    known = keywords() | {keyword + "S" for keyword in keywords()}
    for start, end in words_of(query):
        for joint in JOINTS:
            for word in (query[start:end] + joint, joint + query[start:end]):
                if word[0] not in "7-" and (word.upper() not in known or not word.isascii()):
                    other = "z" * len(word)
                    found = read(query[:start] + word + query[end:], word)
                    assert found == read(query[:start] + other + query[end:], other), word
