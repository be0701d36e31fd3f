"""The catalogue of wrong queries: every one has one message, with place, caret, what was expected and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

import ceql
from spaseq.core.errors import QueryError

_BLOCKS = Path(__file__).with_name("wrong_queries.txt").read_text("utf-8").split("\n\n")
CATALOGUE = dict(block.strip("\n").removeprefix("> ").split("\n", 1) for block in _BLOCKS if block.startswith("> "))


def test_the_catalogue_is_whole() -> None:
    assert len(CATALOGUE) >= 80


@pytest.mark.parametrize("text", CATALOGUE)
def test_message(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        ceql.compile(text)
    assert str(caught.value) == CATALOGUE[text]
    assert caught.value.span is not None and caught.value.exit_code == 2


@pytest.mark.parametrize(
    "formula",
    [
        "A -> NOT B FOR 10 SECONDS",
        "A -> NOT B FOR 10 SECONDS -> C",
        "A ; NOT (A OR B) FOR 10 SECONDS",
        "A -> NOT B -> C",
        "NOT B ; A",
        "A ; NOT B",
        "A : NOT B",
        "B{2,5} ; B{2,} ; B{,5} ; B{5}",
        "(A FILTER A[price > 3])",
    ],
)
def test_the_forms_that_hints_name_for_absences_are_queries(formula: str) -> None:
    assert ceql.compile(f"SELECT * WHERE {formula}").text
