"""Reads a drawing of an automaton back from its SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass

SVG = "{http://www.w3.org/2000/svg}"
_LETTER = 0.45
"""The width of a letter of Helvetica, as a part of its height; wide letters have more, and narrow ones less."""


@dataclass(frozen=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


@dataclass(frozen=True)
class Drawn:
    """`nodes`, `edges`: their names, sorted, as Graphviz gives them in titles. `texts` in order of their letters."""

    nodes: list[str]
    edges: list[str]
    texts: list[str]
    boxes: list[tuple[str, Box]]
    canvas: Box


def drawn(svg: str) -> Drawn:
    root = xml.fromstring(svg)
    left, top, width, height = map(float, root.get("viewBox", "").split())
    moved = re.search(r"translate\(([-\d.]+)[ ,]([-\d.]+)\)", root.find(f"{SVG}g").get("transform", ""))  # type: ignore[union-attr]
    assert moved is not None
    boxes = []
    for text in root.iter(f"{SVG}text"):
        shown, size = text.text or "", float(text.get("font-size", 0))
        x, y = float(text.get("x", 0)) + float(moved[1]), float(text.get("y", 0)) + float(moved[2])
        wide = len(shown) * size * _LETTER
        begin = x if text.get("text-anchor") == "start" else x - wide / 2
        boxes.append((shown, Box(begin, y - 0.75 * size, begin + wide, y)))
    titles = {
        kind: sorted(each.findtext(f"{SVG}title", "") for each in root.iter(f"{SVG}g") if each.get("class") == kind)
        for kind in ("node", "edge")
    }
    texts = sorted(shown for shown, _ in boxes)
    return Drawn(titles["node"], titles["edge"], texts, boxes, Box(left, top, left + width, top + height))
