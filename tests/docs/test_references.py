"""The references of both languages are complete: what their grammars can read is on a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fences import ROOT, fences

CEQL = ROOT / "ceql" / "syntax" / "grammar.lark", ROOT / "docs" / "ceql" / "reference.md"
SPASEQ = ROOT / "spaseq" / "language" / "syntax" / "grammar.lark", ROOT / "docs" / "spaseq" / "reference.md"

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
UNITS = re.compile(r"/\(([\w|?]+)\)")


def _spelled(grammar: str) -> set[str]:
    """The words and signs that a grammar is made of, without those that its named regular expressions describe."""
    text = "\n".join(line.split(" //")[0] for line in grammar.splitlines() if not line.lstrip().startswith(("//", "%")))
    found = {word.upper() for word in re.findall(r'"([^"\s]+)"i?', re.sub(r"/[^/\n]*(?:\\/[^/\n]*)*/i?", "", text))}
    for words in UNITS.findall(text):
        found |= {word.upper().removesuffix("S?") for word in words.split("|")}
    return found


@pytest.mark.parametrize("grammar, page", [CEQL, SPASEQ], ids=["ceql", "spaseq"])
def test_each_terminal_is_in_a_block_or_a_table(grammar: Path, page: Path) -> None:
    text = page.read_text("utf-8")
    shown = "\n".join([*(fence.text for fence in fences(page)), *_CODE.findall(_BLOCK.sub("", text))])
    spelled = _spelled(grammar.read_text("utf-8"))
    assert len(spelled) > 30, spelled
    missing = {
        word
        for word in spelled
        if not (re.search(rf"\b{word}S?\b", shown, re.IGNORECASE) if word.isalpha() else word in shown)
    }
    assert not missing, f"{page.name} has no {' '.join(sorted(missing))}"


@pytest.mark.parametrize("page", [CEQL[1], SPASEQ[1]], ids=["ceql", "spaseq"])
def test_links_within_a_page_lead_to_its_headings(page: Path) -> None:
    text = page.read_text("utf-8")
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.+)$", text, re.M)}
    missing = set(re.findall(r"\]\(#([^)]+)\)", text)) - headings
    assert not missing
