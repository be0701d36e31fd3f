"""A diagram in the language of Graphviz, written so that labels stay short: long texts become notes in the legend."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from spaseq.core.drawing.diagram import Diagram, Edge, Lit, Node, edge_class, node_class

_FONT: Final = 'fontname="Helvetica,Arial,sans-serif"'
"""Graphviz knows the widths of these fonts, even if no font is installed."""
_LABEL: Final = 28
"""Letters of a line of an edge's label."""
_LEGEND: Final = 90
_BLUE, _GREY = "#10568f", "#858585"
_NODES: Final[dict[Lit, str]] = {
    "": "",
    "taken": f'style="{{also}}filled", color="{_BLUE}", fillcolor="#dcebf9", penwidth=2',
    "open": "",
    "never": f'style="{{also}}dotted", color="{_GREY}", fontcolor="{_GREY}"',
}
_EDGES: Final[dict[Lit, str]] = {
    "": "",
    "taken": f'color="{_BLUE}", fontcolor="{_BLUE}", penwidth=2',
    "open": "",
    "never": f'style=dotted, color="{_GREY}", fontcolor="{_GREY}"',
}
_BRIGHTEST: Final[tuple[Lit, ...]] = ("taken", "open", "", "never")
_NUMBERS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def to_dot(diagram: Diagram) -> str:
    """The diagram in DOT, left to right; `dot -Tsvg` renders it, and `to_svg`. Cost linear in its size.

    Edges between the same nodes and of the same style are one, with all their labels. So are all loops of a node:
    Graphviz draws a second loop through the label of the first, and ignores the places of labels of loops at ports.
    """
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: Diagram) -> Iterator[str]:
    notes = {note: number for number, note in enumerate(dict.fromkeys(n for e in diagram.edges for n in e.notes), 1)}
    below = [diagram.title, *diagram.legend, *(f"{_superscript(number)} {note}" for note, number in notes.items())]
    text = "".join(_escape(line) + "\\l" for entry in below for line in _wrap(entry, _LEGEND))
    yield "digraph {"
    yield f"  graph [rankdir=LR, ranksep=0.4, nodesep=0.3, {_FONT}, fontsize=11];"
    if text:
        yield f'  graph [labelloc=b, labeljust=l, label="{text}"];'
    yield f"  node [shape=circle, fixedsize=true, width=0.42, {_FONT}, fontsize=12];"
    yield f"  edge [{_FONT}, fontsize=11, arrowsize=0.7];"
    for node in diagram.nodes:
        yield from _node(node)
    bundles: dict[tuple[object, ...], list[Edge]] = {}
    for edge in diagram.edges:
        style = () if edge.source == edge.target else (edge.dashed, edge.lit)
        bundles.setdefault((edge.source, edge.target, *style), []).append(edge)
    for edges in bundles.values():
        yield _edge(edges, notes)
    yield "}"


def _node(node: Node) -> Iterator[str]:
    label = " · ".join([node.label, *_times(node.count)])
    about, boxed = [f"label={_quote(label)}"], len(label) > 3
    if boxed:
        style = "" if _NODES[node.lit] else " style=rounded,"
        about.append(f'shape=box,{style} fixedsize=false, height=0.42, margin="0.12,0.04"')
    if node.lit == "taken":
        about.append(f"class={_quote(node_class(node.name))}")
    about += [_NODES[node.lit].format(also="rounded," if boxed else "")] * bool(_NODES[node.lit])
    if node.final:
        about.append("peripheries=2")
    yield f"  {_quote(node.name)} [{', '.join(about)}];"
    if node.start:
        entry = _quote("to " + node.name)
        yield f'  {entry} [shape=point, width=0.06, label=""];'
        yield f"  {entry} -> {_quote(node.name)};"


def _edge(edges: list[Edge], notes: dict[str, int]) -> str:
    """The line of a bundle. Of loops in two styles, the labels say which pass over their event."""
    edges = sorted(edges, key=lambda edge: edge.dashed)
    source, target, dashed = edges[0].source, edges[0].target, edges[0].dashed
    lit = next(lit for lit in _BRIGHTEST if any(edge.lit == lit for edge in edges))
    labels: dict[str, int] = {}
    for edge in edges:
        text = ("pass over: " if edge.dashed and not dashed else "") + _label(edge, notes)
        labels[text] = labels.get(text, 0) + edge.count
    lines = [line for text, count in labels.items() for line in [*_wrap(text, _LABEL), *_times(count)]]
    label = "\\n".join(map(_escape, lines))
    about = [f'label="{label}"', f"labeltooltip={_quote('; '.join(labels))}"]
    if dashed and lit != "never":
        about.append("style=dashed" if lit == "taken" else 'style=dashed, color="#777777", fontcolor="#777777"')
    if lit == "taken":
        taken = dict.fromkeys(edge_class(source, target, edge.dashed) for edge in edges if edge.lit == "taken")
        about.append(f"class={_quote(' '.join(taken))}")
    about += [_EDGES[lit]] * bool(_EDGES[lit])
    return f"  {_quote(source)} -> {_quote(target)} [{', '.join(about)}];"


def _label(edge: Edge, notes: dict[str, int]) -> str:
    """The label with the numbers of its notes. They do not part from the last word."""
    numbers = "\N{NO-BREAK SPACE}".join(_superscript(notes[note]) for note in edge.notes)
    return f"{edge.label}\N{NO-BREAK SPACE}{numbers}" if numbers else edge.label


def _times(count: int) -> list[str]:
    """The number of times, if known."""
    return [f"{count:,}×"] if count else []


def _superscript(number: int) -> str:
    return str(number).translate(_NUMBERS)


def _wrap(text: str, width: int) -> list[str]:
    """Lines of about so many letters, none of them blank; a longer word is not broken."""
    shown = "".join(c if c.isprintable() or c == "\N{NO-BREAK SPACE}" else " " for c in text)
    return wrap(shown, width, break_long_words=False, break_on_hyphens=False)


def _quote(text: str) -> str:
    return f'"{_escape(text)}"'


def _escape(text: str) -> str:
    """The text between quotes. Graphviz reads backslashes, and `&name;` as HTML does."""
    shown = "".join(c if c.isprintable() or c == "\N{NO-BREAK SPACE}" else " " for c in text)
    return shown.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
