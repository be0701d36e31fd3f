"""Pictures: automata as DOT and SVG text, matches on a time axis as SVG or PNG.

A `Diagram` is a graph of states and transitions, for automata of any kind: `to_dot` writes it for Graphviz, `to_svg`
computes a layout itself. `draw_timeline` needs matplotlib (the extra `plot`), which is imported when it is called.

Modules:

* `diagram` (`Diagram`, `Edge`, `Node`): A graph to draw: labelled nodes, and labelled edges between them.
* `dot` (`to_dot`): A diagram in the language of Graphviz.
* `svg` (`to_svg`): A diagram as SVG text, with a layout of our own, so that nothing has to be installed.
* `timeline` (`Span`, `draw_timeline`): Matches on a time axis: a line from start to end for each, a dot at each
  position it took.
"""

from __future__ import annotations

from spaseq.drawing.diagram import Diagram, Edge, Node
from spaseq.drawing.dot import to_dot
from spaseq.drawing.svg import to_svg
from spaseq.drawing.timeline import Span, draw_timeline

__all__ = ["Diagram", "Edge", "Node", "Span", "draw_timeline", "to_dot", "to_svg"]
