"""Basic graph patterns on event graphs without rdflib's evaluator.

An event has a few triples and a pattern a few triple patterns, so a nested loop over the triples of each predicate is
all that is needed; which variables are bound when a triple pattern is reached is known when the query is compiled.
rdflib's evaluator gives the same (a test compares them) and takes several times as long, most of it in making
contexts.

Not for property paths, nor for anything but a single basic graph pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rdflib import Graph
from rdflib.paths import Path
from rdflib.term import BNode, Variable

from spaseq.gpm import algebra
from spaseq.gpm.mappings import MappingSet
from spaseq.rdf import plain_literal

__all__ = ["BasicPlan", "EventGraph", "basic_plan", "ordered_triples"]

Triple = tuple[Any, Any, Any]


class EventGraph:
    """The graph of an event, in the forms its evaluators need; each is made when first asked for."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples: tuple[Triple, ...] = tuple((s, p, plain_literal(o)) for s, p, o in triples)

    @staticmethod
    def of(graph: Graph) -> EventGraph:
        """The same as `graph`, which is kept."""
        triples: Iterable[Any] = graph
        facts = EventGraph(triples)
        facts.__dict__["graph"] = graph
        return facts

    def __len__(self) -> int:
        return len(self.triples)

    @cached_property
    def by_predicate(self) -> dict[Any, list[Triple]]:
        """The triples of each predicate."""
        found: dict[Any, list[Triple]] = {}
        for triple in self.triples:
            found.setdefault(triple[1], []).append(triple)
        return found

    @cached_property
    def graph(self) -> Graph:
        """As rdflib holds it."""
        graph = Graph(bind_namespaces="none")
        for triple in self.triples:
            graph.add(triple)
        return graph


@dataclass(frozen=True, slots=True)
class _Step:
    """One triple pattern: the constants, the slots to compare with and the slots to fill, by place in the triple.

    `predicate` is the constant predicate, or None. A variable that stands twice in the pattern is filled at its first
    place and compared at the second, so `fills` are done before `compares`.
    """

    predicate: Any
    constants: tuple[tuple[int, Any], ...]
    fills: tuple[tuple[int, int], ...]
    compares: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class BasicPlan:
    """A basic graph pattern, ready to be matched. `names`: the visible variables and their slots, by name."""

    steps: tuple[_Step, ...]
    names: tuple[tuple[str, int], ...]
    slots: int

    def solve(self, facts: EventGraph) -> MappingSet:
        """⟦P⟧_G (seed SPAseq Definition 6)."""
        rows: list[list[Any]] = [[None] * self.slots]
        for step in self.steps:
            triples = facts.triples if step.predicate is None else facts.by_predicate.get(step.predicate, ())
            rows = [row for before in rows for triple in triples if (row := _extended(before, step, triple))]
            if not rows:
                return frozenset()
        return frozenset(tuple((name, row[slot]) for name, slot in self.names) for row in rows)


def _extended(row: list[Any], step: _Step, triple: Triple) -> list[Any] | None:
    """`row` with the variables that `triple` binds, or None if it does not match."""
    for place, term in step.constants:
        if triple[place] != term:
            return None
    longer = row.copy()
    for place, slot in step.fills:
        longer[slot] = triple[place]
    for place, slot in step.compares:
        if longer[slot] != triple[place]:
            return None
    return longer


def basic_plan(node: algebra.Node) -> BasicPlan | None:
    """The plan for `node`, or None where it is not a plain basic graph pattern."""
    if not isinstance(node, algebra.BGP) or not node.triples:
        return None
    if any(isinstance(predicate, Path) for _, predicate, _ in node.triples):
        return None
    slots: dict[Any, int] = {}
    steps = tuple(_step(triple, slots) for triple in ordered_triples(node.triples))
    names = tuple(sorted((str(term), slot) for term, slot in slots.items() if isinstance(term, Variable)))
    return BasicPlan(steps, names, max(1, len(slots)))


def _is_open(term: Any) -> bool:
    """Variables, and blank nodes of a pattern, which act as variables."""
    return isinstance(term, (Variable, BNode))


def ordered_triples(triples: Sequence[Triple]) -> list[Triple]:
    """The triple patterns, each as far as possible connected to those before it, those with most constants first."""
    rest, order = list(triples), []
    known: set[Any] = set()
    while rest:
        best = max(rest, key=lambda t: sum(term in known or not _is_open(term) for term in t))
        rest.remove(best)
        order.append(best)
        known.update(term for term in best if _is_open(term))
    return order


def _step(triple: Triple, slots: dict[Any, int]) -> _Step:
    constants, fills, compares = [], [], []
    for place, term in enumerate(triple):
        if not _is_open(term):
            constants.append((place, term))
        elif term in slots:
            compares.append((place, slots[term]))
        else:
            slots[term] = len(slots)
            fills.append((place, slots[term]))
    predicate = None if _is_open(triple[1]) else triple[1]
    checked = tuple(c for c in constants if c[0] != 1)
    return _Step(predicate, checked, tuple(fills), tuple(compares))
