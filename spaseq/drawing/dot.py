"""A diagram in the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.drawing.diagram import Diagram

__all__ = ["to_dot"]


def to_dot(diagram: Diagram) -> str:
    """The diagram in DOT, left to right; render it with `dot -Tsvg`."""
    return "\n".join(_lines(diagram)) + "\n"


def _lines(diagram: Diagram) -> Iterator[str]:
    yield "digraph {"
    yield "  rankdir=LR; node [shape=circle, fontname=sans]; edge [fontname=sans, fontsize=10];"
    for node in diagram.nodes:
        shape = ", shape=doublecircle" if node.final else ""
        yield f"  {_quoted(node.name)} [label={_quoted(node.label)}{shape}];"
        if node.start:
            entry = _quoted("to " + node.name)
            yield f'  {entry} [shape=point, label=""];'
            yield f"  {entry} -> {_quoted(node.name)};"
    for edge in diagram.edges:
        style = ", style=dashed" if edge.dashed else ""
        label = _quoted("\n".join(edge.lines))
        yield f"  {_quoted(edge.source)} -> {_quoted(edge.target)} [label={label}{style}];"
    yield "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
