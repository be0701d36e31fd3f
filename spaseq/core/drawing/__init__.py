"""Pictures: automata as DOT and SVG text, matches on a time axis as SVG or HTML.

A `Diagram` is a graph of states and transitions, for automata of any kind. `to_dot` writes it for Graphviz, `to_svg`
has Graphviz lay it out (the extra `draw`, or its own programs). A `Timeline` needs no other program.

Modules:

* `diagram`: A graph to draw: labelled nodes, and labelled edges between them, perhaps lit by a run.
* `dot`: A diagram in the language of Graphviz, written so that labels stay short.
* `layout`: A diagram as SVG, laid out by Graphviz.
* `picture`: A drawing of an automaton, for a notebook or a file.
* `html`: Queries, matches and steps as HTML for notebooks: of bounded size, with all text escaped.
* `timeline`: Matches on a time axis, as SVG: a row for each match, a mark for each event.
"""

from __future__ import annotations

from spaseq.core.drawing.diagram import Diagram, Edge, Lit, Node, edge_class, node_class
from spaseq.core.drawing.dot import to_dot
from spaseq.core.drawing.html import (
    event_text,
    match_html,
    matches_html,
    query_html,
    step_html,
    text_html,
    time_text,
)
from spaseq.core.drawing.layout import to_svg
from spaseq.core.drawing.picture import Picture
from spaseq.core.drawing.timeline import Mark, Span, Timeline, timeline_of

__all__ = [
    "Diagram",
    "Edge",
    "Lit",
    "Mark",
    "Node",
    "Picture",
    "Span",
    "Timeline",
    "edge_class",
    "event_text",
    "match_html",
    "matches_html",
    "node_class",
    "query_html",
    "step_html",
    "text_html",
    "time_text",
    "timeline_of",
    "to_dot",
    "to_svg",
]
