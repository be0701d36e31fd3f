"""The prose of code and documents is plain: `tests.support.prose` counts what is not, and the counts may only fall."""

from __future__ import annotations

import ast

import pytest

from tests.support.prose import KINDS, Place, docstrings, paragraphs, places, sentences

LIMITS = {
    "long sentence": 53,
    "question": 97,
    "where": 41,
    "whoever": 5,
    "who": 6,
    "told": 18,
    "participle": 316,
}
"""Kind -> its places today. A change that mends some lowers the number here."""


@pytest.fixture(scope="module")
def found() -> dict[str, list[Place]]:
    return places()


def test_every_kind_has_a_limit() -> None:
    assert LIMITS.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_prose_gets_plainer(kind: str, found: dict[str, list[Place]]) -> None:
    listed = "\n".join(map(str, found[kind]))
    count, limit = len(found[kind]), LIMITS[kind]
    assert count <= limit, f"{count} places, {limit} were allowed. {KINDS[kind]}\n{listed}"
    assert count == limit, f"{count} places are left of {limit}: set LIMITS[{kind!r}] to {count}"


def test_a_sentence_ends_before_the_next() -> None:
    assert list(sentences("One, e.g. `a. B`: two. Three? `f` (4). \"Five.\" Six")) == [
        "One, e.g `code`: two.", "Three?", "`code` (4).", "\"Five.\"", "Six",
    ]  # fmt: skip


def test_code_and_tables_are_no_prose() -> None:
    text = "One\ntwo.\n\n    code, code\n\n* item one\n  goes on\n* two\n\n| a | b |\n```\nfence\n```\nthree"
    assert [paragraph for _, paragraph in paragraphs(text)] == ["One two.", "* item one goes on", "* two", "three"]


def test_docstrings_come_without_their_indentation() -> None:
    tree = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n')
    assert [text for _, text in docstrings(tree)] == ["One.\n\nTwo.\n"]
