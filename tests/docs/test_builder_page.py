"""The page of the builder shows each query of the reference, in its order, and both forms have one answer."""

from __future__ import annotations

import dataclasses
import re

import pytest

import ceql
from tests.support.fences import ROOT, Fence, Folder, fences, run

PAGE, REFERENCE = ROOT / "docs" / "ceql" / "builder.md", ROOT / "docs" / "ceql" / "reference.md"
HEADING = "## The reference in both forms"


def _texts() -> list[str]:
    """The queries that the page prints below the heading."""
    first = PAGE.read_text("utf-8").partition(HEADING)[0].count("\n")
    blocks = [fence.text for fence in fences(PAGE) if fence.language == "output" and fence.line > first]
    return [query for block in blocks for query in re.findall(r"^SELECT .*(?:\n(?!SELECT).+)*", block, re.MULTILINE)]


def _answered() -> list[Fence]:
    """The queries of the reference that have an answer."""
    blocks = [fence for fence in fences(REFERENCE) if fence.language == "ceql"]
    return [fence for fence in blocks if fence.parts()[1][-1][0] == "gives"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("page"))


def test_the_page_has_as_many_queries_as_the_reference() -> None:
    assert len(_texts()) == len(_answered()) > 80


def test_the_page_names_every_method() -> None:
    text = PAGE.read_text("utf-8")
    listed = text.partition("The methods of an event are ")[2].partition(".\n")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted(name for name in dir(ceql.Event) if not name.startswith("_"))
    for owner in (ceql.Value, ceql.Condition):
        missing = [name for name in vars(owner) if not name.startswith("_") and name not in text]
        assert missing in ([], ["column_name"]), missing


@pytest.mark.parametrize(
    ("text", "block"), list(zip(_texts(), _answered(), strict=False)), ids=lambda part: getattr(part, "line", None)
)
def test_both_forms_have_one_answer(text: str, block: Fence, folder: Folder) -> None:
    query, _ = block.parts()
    asked = block.text.replace(query, text, 1)
    assert asked != block.text or text == query
    run(block, folder)
    run(dataclasses.replace(block, text=asked), folder)
