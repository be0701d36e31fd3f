"""A graph to draw: labelled nodes, and labelled edges between them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Diagram", "Edge", "Node"]


@dataclass(frozen=True, slots=True)
class Node:
    """A state: `name` is unique in its diagram, `label` is shown. `start`: a run begins here; `final`: it may end."""

    name: str
    label: str
    start: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition between two nodes, given by name, with its label. `notes`: what is said in the legend, where its
    number stands behind the label. `dashed`: whether it passes over its event, or takes none."""

    source: str
    target: str
    label: str
    notes: tuple[str, ...] = ()
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph to draw. Edges name nodes of it. `title` and the lines of `legend` stand below it, then the notes."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    title: str = ""
    legend: tuple[str, ...] = ()
