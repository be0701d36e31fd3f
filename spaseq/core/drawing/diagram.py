"""A graph to draw: labelled nodes, and labelled edges between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Lit: TypeAlias = Literal["", "taken", "open", "never"]
"""The part that a state or transition had in a run: on the way of a match; reached by runs, but by no match; or never
reached. `""` if no run is shown.
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A state. `name` is unique in its diagram, `label` is shown. `start`: a run begins here; `final`: it may end.
    `lit`: its part in a run; `count`: the number of matches whose way it is on."""

    name: str
    label: str
    start: bool = False
    final: bool = False
    lit: Lit = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition between two nodes, given by name, with its label. `notes`: texts of the legend; their numbers stand
    behind the label. `dashed`: true if it passes over its event, or takes none. `lit` and `count`: as of nodes."""

    source: str
    target: str
    label: str
    notes: tuple[str, ...] = ()
    dashed: bool = False
    lit: Lit = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph to draw. Edges name nodes of it. `title` and the lines of `legend` stand below it, then the notes."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    title: str = ""
    legend: tuple[str, ...] = ()


def node_class(name: str) -> str:
    """The class of a node in the SVG of a diagram that is lit."""
    return f"state-{name}"


def edge_class(source: str, target: str, dashed: bool) -> str:
    """The class of an edge in the SVG of a diagram that is lit."""
    return f"{'over' if dashed else 'move'}-{source}-{target}"
