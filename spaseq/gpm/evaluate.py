"""Evaluates compiled GPMs by `spaseq.gpm.reference`, one event graph at a time, and conditions on one mapping.

This is for patterns that the columnar plan does not cover, and the reference that tests compare the plan with. A
pattern is parsed and translated once (`spaseq.gpm.pattern`) and evaluated with the event graph as the default graph and
the registered knowledge as the named graphs. A graph that is not registered is an error before the first event; the
evaluation never loads one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rdflib import Graph
from rdflib.plugins.sparql.sparql import Prologue
from rdflib.term import Identifier, URIRef

from spaseq.core.errors import OptionError
from spaseq.gpm.algebra import Node
from spaseq.gpm.comparison import Side
from spaseq.gpm.expressions import Row, is_true, value_or_none
from spaseq.gpm.mappings import IDENTITY, IndexedMappings, Mapping, MappingSet, freeze
from spaseq.gpm.pattern import Condition, GraphPattern
from spaseq.gpm.reference import Context, NamedGraphs, evaluating, solutions
from spaseq.rdf import GraphColumns, Triple, graph_of, plain_literal


@dataclass(frozen=True, slots=True)
class Closed:
    """The closing of a graph: the entailment, the triples `before` and `after`, and the reason, if owlrl did it."""

    entailment: str
    before: int
    after: int
    owlrl: str = ""

    def __str__(self) -> str:
        way = f"by owlrl, triple by triple: {self.owlrl}" if self.owlrl else "over columns"
        return f"closed under {self.entailment}, {self.before:,} triples to {self.after:,}, {way}"


class Knowledge:
    """The background knowledge of a run: named RDF graphs (the dataset D of Definition 15), static while it runs.

    Args: `graphs`, by IRI: columns, or graphs of rdflib. `closed`: how those were closed that were.
    """

    def __init__(
        self,
        graphs: MappingABC[str, Graph | GraphColumns] | None = None,
        closed: MappingABC[str, Closed] | None = None,
    ) -> None:
        if graphs is not None and not isinstance(graphs, MappingABC):
            hint = 'for example kb={"http://…": "kb.ttl"}'
            raise OptionError(f"background knowledge is given by IRI, not as a {type(graphs).__name__}", hint)
        self.closed: MappingABC[str, Closed] = closed or {}
        self._columns = {iri: _columns(graph) for iri, graph in (graphs or {}).items()}
        self.graphs: MappingABC[str, Graph] = _Made(self._columns)
        """The same as graphs of rdflib, each made when it is first asked for."""
        self.named: NamedGraphs = NamedGraphs(self.graphs)
        self._derived: dict[Any, Any] = {}

    def columns(self, iri: str) -> GraphColumns:
        """A registered graph as columns."""
        return self._columns[iri]

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make()`, something computed from the graphs: called once for each `key`."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

    def told(self, *, slow: bool = False) -> list[str]:
        """A line for each graph about its closing; with `slow` only those that owlrl closed."""
        return [f"GRAPH <{iri}>: {closed}" for iri, closed in self.closed.items() if closed.owlrl or not slow]

    def check(self, patterns: Iterable[GraphPattern]) -> None:
        """Raises `OptionError` if a pattern names a graph that is not registered."""
        for pattern in patterns:
            for iri in pattern.graphs:
                if iri not in self.graphs:
                    known = ", ".join(f"<{name}>" for name in self.graphs) or "none"
                    raise OptionError(
                        f"GPM {pattern.name} asks GRAPH <{iri}>, and no such background knowledge is given",
                        f"give it: --kb {iri}=FILE (given: {known})",
                    )


def _columns(graph: Graph | GraphColumns) -> GraphColumns:
    return graph if isinstance(graph, GraphColumns) else GraphColumns.of(graph_of(graph, "background knowledge"))


class _Made(MappingABC[str, Graph]):
    """Graphs with their IRIs for names, to which GRAPH ?g binds ?g."""

    def __init__(self, columns: MappingABC[str, GraphColumns]) -> None:
        self._columns = columns
        self._made: dict[str, Graph] = {}

    def __getitem__(self, iri: str) -> Graph:
        if iri not in self._made:
            self._made[iri] = self._columns[iri].graph(URIRef(iri))
        return self._made[iri]

    def __contains__(self, iri: object) -> bool:
        return iri in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def event_graph(triples: Iterable[tuple[Any, Any, Any]]) -> Graph:
    """An rdflib graph of an event's triples."""
    graph = Graph(bind_namespaces="none")
    for triple in triples:
        graph.add(triple)
    return graph


class EventGraph:
    """The graph of an event; the rdflib graph is made when `graph` is first read."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.triples: tuple[Triple, ...] = tuple((s, p, plain_literal(o)) for s, p, o in triples)

    @property
    def predicates(self) -> frozenset[Any]:
        """The predicates of the event's triples."""
        return frozenset(predicate for _, predicate, _ in self.triples)

    @cached_property
    def graph(self) -> Graph:
        """The event as an rdflib graph."""
        return event_graph(self.triples)


class PatternEvaluator:
    """A GPM with the background knowledge; its knowledge parts are evaluated once ([SPAseq] Definition 15).

    `solve` evaluates it on one event graph.
    """

    def __init__(self, pattern: GraphPattern, knowledge: Knowledge) -> None:
        self.pattern = pattern
        self._named = knowledge.named
        self._given = knowledge

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of the registered graphs."""
        return tuple(self._given.graphs)

    def graph(self, iri: str) -> Graph:
        """A registered graph, as rdflib's."""
        return self._given.graphs[iri]

    def columns(self, iri: str) -> GraphColumns:
        """A registered graph as columns."""
        return self._given.columns(iri)

    def once(self, kind: str, owner: Any, make: Callable[[], Any]) -> Any:
        """The result of `make()`, computed from the knowledge for `owner`, a part of the pattern; called once. `owner`
        is kept alive, since it is identified by `id`."""
        return self._given.derived((kind, id(owner)), lambda: (owner, make()))[1]

    def derived(self, kind: str, make: Callable[[], Any]) -> Any:
        """The result of `make()`, computed from the knowledge for this pattern; called once for all its evaluators. The
        pattern's parts are kept alive, since they are identified by `id`."""
        parts = tuple(part for _, part in self.pattern.knowledge)
        key = (kind, *(iri for iri, _ in self.pattern.knowledge), *map(id, parts))
        return self._given.derived(key, lambda: (parts, make()))[1]

    @property
    def _knowledge(self) -> IndexedMappings | None:
        """The solutions of the knowledge parts, evaluated when first asked for."""
        return self.derived("mappings", self._evaluate_knowledge) if self.pattern.knowledge else None

    def _evaluate_knowledge(self) -> IndexedMappings:
        found = IDENTITY
        for iri, part in self.pattern.knowledge:
            if iri not in self._given.graphs:  # `Knowledge.check` reports it
                return IndexedMappings(frozenset())
            found = IndexedMappings(found).join(self.of_part(iri, part))
        return IndexedMappings(found)

    def of_part(self, iri: str, part: Node) -> MappingSet:
        """The solutions of a knowledge part on a registered graph."""
        return _solutions(part, Context(self.graph(iri), self._named, self.pattern.prologue))

    def solve(
        self, facts: EventGraph, predicates: frozenset[Any], budget: int | None = None
    ) -> tuple[MappingSet, MappingSet]:
        """The mapping sets before and after the top-level FILTERs. `predicates` are those of the event: without the
        required ones there are no solutions.

        Raises `BudgetExceeded` if a step of the evaluation has more solutions than `budget`.
        """
        if not self.pattern.required <= predicates:
            return frozenset(), frozenset()
        found = self.by_rdflib(facts, budget)
        if (known := self._knowledge) is not None:
            found = known.join(found)
        if not self.pattern.local or not found:
            return found, found
        return found, frozenset(m for m in found if all(self._holds(c, m, facts) for c in self.pattern.local))

    def by_rdflib(self, facts: EventGraph, budget: int | None = None) -> MappingSet:
        """The event part's mapping set."""
        context = Context(facts.graph, self._named, self.pattern.prologue, budget=budget)
        return _solutions(self.pattern.event, context)

    def _holds(self, condition: Condition, mapping: Mapping, facts: EventGraph) -> bool:
        return _is_true(condition, mapping, Context(facts.graph, self._named, self.pattern.prologue))


def _solutions(node: Node, context: Context) -> MappingSet:
    """The solutions of a pattern."""
    with evaluating():
        return frozenset(freeze(row.terms.items()) for row in solutions(node, context))


def _is_true(condition: Condition, mapping: Mapping, context: Context) -> bool:
    with evaluating():
        return is_true(condition.expression, Row(dict(mapping), context))


def holds(condition: Condition, mapping: Mapping, prologue: Prologue) -> bool:
    """True if a condition without EXISTS is true for a mapping; False if it is an error, as an unbound variable is."""
    return _is_true(condition, mapping, Context(prologue=prologue))


def value_of(side: Side, term: Identifier, prologue: Prologue) -> Identifier | None:
    """The value of a side of a comparison with `term` for its variable; None if it is an error."""
    if side.is_variable:
        return term
    with evaluating():
        found: Identifier | None = value_or_none(side.expression, Row({side.name: term}, Context(prologue=prologue)))
    return found
