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
    """A transition between two nodes, given by name. `lines` are its label; `dashed` if it takes no event."""

    source: str
    target: str
    lines: tuple[str, ...]
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Diagram:
    """A graph to draw. Edges name nodes of it."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def layers(self) -> dict[str, int]:
        """The distance of each node from the nearest start, in edges; nodes that are not reached come last. O(size)."""
        onward: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for edge in self.edges:
            onward[edge.source].append(edge.target)
        found = {node.name: 0 for node in self.nodes if node.start}
        queue = list(found)
        for name in queue:  # grows while it is read
            for target in onward[name]:
                if target not in found:
                    found[target] = found[name] + 1
                    queue.append(target)
        last = 1 + max(found.values(), default=-1)
        return found | {node.name: last for node in self.nodes if node.name not in found}
