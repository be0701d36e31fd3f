"""Pictures: automata as DOT and SVG text, matches on a time axis as SVG or PNG.

A `Diagram` is a graph of states and transitions, for automata of any kind: `to_dot` writes it for Graphviz, `to_svg`
has Graphviz lay it out (the extra `draw`, or its own programs). `draw_timeline` needs matplotlib (the extra `plot`).
What they need is imported when they are called.

Modules:

* `diagram` (`Diagram`, `Edge`, `Node`): A graph to draw: labelled nodes, and labelled edges between them.
* `dot` (`to_dot`): A diagram in the language of Graphviz, written so that labels stay short.
* `layout` (`LARGEST`, `to_svg`): A diagram as SVG, laid out by Graphviz.
* `picture` (`Picture`): A drawing of an automaton to look at: in a notebook, in a file.
* `timeline` (`Span`, `draw_timeline`): Matches on a time axis: a line from start to end for each, a dot at each
  position it took.
"""

from __future__ import annotations

from spaseq.drawing.diagram import Diagram, Edge, Node
from spaseq.drawing.dot import to_dot
from spaseq.drawing.layout import LARGEST, to_svg
from spaseq.drawing.picture import Picture
from spaseq.drawing.timeline import Span, draw_timeline

__all__ = ["LARGEST", "Diagram", "Edge", "Node", "Picture", "Span", "draw_timeline", "to_dot", "to_svg"]
