"""The diagrams of the references are those of the grammars, each rule is on its page, and no box lies on another."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from tests.support.railroad import DIAGRAMS, Diagrams

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("language", DIAGRAMS)
def test_every_rule_is_drawn_and_on_its_page(language: str) -> None:
    grammar, folder = DIAGRAMS[language]
    diagrams = Diagrams(grammar.read_text("utf-8"))
    page = (folder / "reference.md").read_text("utf-8")
    assert len(diagrams.rules) > 25
    for name in diagrams.rules:
        again = "python -m tests.support.railroad makes it"
        assert (folder / "rail" / f"{name}.svg").read_text("utf-8") == diagrams.svg(name), f"{name}: {again}"
        assert f"(rail/{name}.svg)" in page, f"{folder.name}/reference.md has no diagram of {name}"
    assert sorted(path.stem for path in (folder / "rail").iterdir()) == sorted(diagrams.rules)


@pytest.mark.parametrize("language", DIAGRAMS)
def test_every_word_of_the_grammar_is_in_a_diagram(language: str) -> None:
    text = DIAGRAMS[language][0].read_text("utf-8")
    diagrams = Diagrams(text)
    shown = {label.text for name in diagrams.rules for label in ET.fromstring(diagrams.svg(name)).iter(f"{SVG}text")}
    rules = re.sub(r"/(?:[^/\\\n]|\\.)+/i?|//.*", "", text)
    words = {word.upper() if word.isalpha() else word for word in re.findall(r'"([^"\s]+)"', rules)}
    assert len(words) > 30 and words <= shown, words - shown


@pytest.mark.parametrize("language", DIAGRAMS)
def test_no_box_lies_on_another_and_all_are_inside(language: str) -> None:
    diagrams = Diagrams(DIAGRAMS[language][0].read_text("utf-8"))
    for name in diagrams.rules:
        root = ET.fromstring(diagrams.svg(name))
        width, height = float(root.get("width", "0")), float(root.get("height", "0"))
        found = []
        for box in list(root.iter(f"{SVG}rect"))[1:]:
            x, y, w, h = (float(box.get(side, "0")) for side in ("x", "y", "width", "height"))
            assert x >= 0 and x + w <= width and y >= 0 and y + h <= height, name
            found.append((x, y, x + w, y + h))
        for one, other in combinations(found, 2):
            assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1], name
