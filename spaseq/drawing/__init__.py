"""Pictures: automata as DOT and SVG text, matches on a time axis as SVG or PNG.

A `Diagram` is what an automaton looks like, whatever its kind: `to_dot` is for Graphviz, `to_svg` lays it out by itself
and needs nothing installed. `draw_timeline` needs matplotlib (the extra `plot`), loaded when it is called.
"""

from __future__ import annotations

from spaseq.drawing.diagram import Diagram, Edge, Node
from spaseq.drawing.dot import to_dot
from spaseq.drawing.svg import to_svg
from spaseq.drawing.timeline import Span, draw_timeline

__all__ = ["Diagram", "Edge", "Node", "Span", "draw_timeline", "to_dot", "to_svg"]
