"""A diagram as SVG text, with a layout of our own, so that nothing has to be installed.

Nodes are in columns by their distance from the start; edges to later columns are arcs, edges back run below, and loops
are above their node. It suits the automata of queries, which are long rather than wide; for others use DOT.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Final

from spaseq.drawing.diagram import Diagram, Edge, Node

__all__ = ["to_svg"]

_RADIUS: Final = 18
_ROW: Final = 110
_LETTER: Final = 6.2
"""The approximate width of a letter of a label, in pixels."""
_LINE: Final = 13
_WIDEST: Final = 44
"""How many letters of a label are shown; the whole text is its tooltip."""
_MARGIN: Final = 50


@dataclass(frozen=True, slots=True)
class _Place:
    x: float
    y: float


def to_svg(diagram: Diagram) -> str:
    """The diagram as an SVG document. Cost linear in the nodes and edges."""
    edges = _bundled(diagram.edges)
    places = _places(diagram, edges)
    depth = max((place.y for place in places.values()), default=0.0)
    body = [line for i, edge in enumerate(edges) for line in _edge(edge, places, depth, i)]
    body += [line for node in diagram.nodes for line in _node(node, places[node.name])]
    width = max((place.x for place in places.values()), default=0.0) + 2 * _MARGIN
    back = sum(1 for edge in edges if places[edge.target].x < places[edge.source].x)
    height = depth + 2 * _MARGIN + 24 * back
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="11">',
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L10 5L0 10z"/></marker></defs>',
            '<rect width="100%" height="100%" fill="white"/>',
            *body,
            "</svg>\n",
        ]
    )


def _bundled(edges: tuple[Edge, ...]) -> list[Edge]:
    """The edges with those between the same two nodes and of the same style joined to one, with all their labels."""
    bundles: dict[tuple[str, str, bool], list[str]] = {}
    for edge in edges:
        bundles.setdefault((edge.source, edge.target, edge.dashed), []).extend(edge.lines)
    return [Edge(s, t, tuple(dict.fromkeys(lines)), dashed) for (s, t, dashed), lines in bundles.items()]


def _places(diagram: Diagram, edges: list[Edge]) -> dict[str, _Place]:
    """The place of each node: columns by distance from the start, as far apart as the labels between them need."""
    layers = diagram.layers()
    columns: dict[int, list[str]] = {}
    for node in diagram.nodes:
        columns.setdefault(layers[node.name], []).append(node.name)
    gaps = {layer: 90.0 for layer in columns}
    top = 60.0
    for edge in edges:
        wide = max((min(len(line), _WIDEST) for line in edge.lines), default=0) * _LETTER
        if layers[edge.source] != layers[edge.target]:
            gaps[layers[edge.source]] = max(gaps[layers[edge.source]], wide + 70)
        else:
            gaps[layers[edge.source]] = max(gaps[layers[edge.source]], wide / 2 + 60)
        top = max(top, 60.0 + _LINE * len(edge.lines))
    places: dict[str, _Place] = {}
    x = 2.0 * _MARGIN
    for layer in sorted(columns):
        for row, name in enumerate(columns[layer]):
            places[name] = _Place(x, top + _ROW * row)
        x += gaps[layer]
    return places


def _node(node: Node, at: _Place) -> Iterator[str]:
    if node.start:
        left = at.x - _RADIUS
        yield f'<path d="M{left - 28:.0f} {at.y:.0f}H{left:.0f}" stroke="black" fill="none" marker-end="url(#tip)"/>'
    yield f'<circle cx="{at.x:.0f}" cy="{at.y:.0f}" r="{_RADIUS}" stroke="black" fill="white"/>'
    if node.final:
        yield f'<circle cx="{at.x:.0f}" cy="{at.y:.0f}" r="{_RADIUS - 3}" stroke="black" fill="none"/>'
    yield f'<text x="{at.x:.0f}" y="{at.y + 4:.0f}" text-anchor="middle">{escape(node.label, quote=False)}</text>'


def _edge(edge: Edge, places: dict[str, _Place], depth: float, number: int) -> Iterator[str]:
    source, target = places[edge.source], places[edge.target]
    if edge.source == edge.target:
        path = f"M{source.x - 9:.0f} {source.y - 16:.0f}c-16 -34 34 -34 18 0"
        label = _Place(source.x, source.y - 46 - _LINE * (len(edge.lines) - 1))
    elif source.x < target.x:
        bend = -26.0 if source.y == target.y else 0.0
        middle = _Place((source.x + target.x) / 2, (source.y + target.y) / 2 + bend)
        path = (
            f"M{source.x + _RADIUS:.0f} {source.y:.0f}Q{middle.x:.0f} {middle.y + bend:.0f} "
            f"{target.x - _RADIUS:.0f} {target.y:.0f}"
        )
        label = _Place(middle.x, middle.y - 4 - _LINE * (len(edge.lines) - 1))
    else:
        low = depth + 34 + 24 * (number % 8)
        middle = _Place((source.x + target.x) / 2, low)
        path = (
            f"M{source.x:.0f} {source.y + _RADIUS:.0f}C{source.x:.0f} {low:.0f} {target.x:.0f} {low:.0f} "
            f"{target.x:.0f} {target.y + _RADIUS:.0f}"
        )
        label = _Place(middle.x, low - 4)
    style = ' stroke-dasharray="4 3"' if edge.dashed else ""
    yield f'<path d="{path}" stroke="black" fill="none"{style} marker-end="url(#tip)"/>'
    for row, line in enumerate(edge.lines):
        shown = line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"
        tip = f"<title>{escape(line, quote=False)}</title>" if shown != line else ""
        y = label.y + _LINE * row
        yield f'<text x="{label.x:.0f}" y="{y:.0f}" text-anchor="middle">{tip}{escape(shown, quote=False)}</text>'
