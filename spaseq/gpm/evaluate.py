"""Evaluate compiled GPMs on event graphs and background knowledge.

Plain basic graph patterns and comparisons are evaluated directly (`spaseq.gpm.direct`, `spaseq.gpm.comparison`), all
else by rdflib's algebra evaluator.

A pattern is parsed and translated once (`spaseq.gpm.pattern`) and evaluated on each event graph as the default graph,
the registered knowledge being the named graphs. Nothing is ever loaded: the evaluation context refuses, and a graph
that is not registered is an error before the first event.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as MappingABC
from contextlib import contextmanager
from typing import Any, Final

from rdflib import Graph
from rdflib.plugins.sparql.evaluate import evalPart
from rdflib.plugins.sparql.evalutils import _ebv
from rdflib.plugins.sparql.sparql import FrozenBindings, Prologue, QueryContext, SPARQLError
from rdflib.term import Identifier, URIRef, Variable

from spaseq.errors import InternalError, OptionError, SpaseqError
from spaseq.gpm import algebra
from spaseq.gpm.comparison import Side
from spaseq.gpm.direct import EventGraph, basic_plan
from spaseq.gpm.mappings import IDENTITY, IndexedMappings, Mapping, MappingSet, freeze
from spaseq.gpm.pattern import Condition, GraphPattern
from spaseq.rdf import plain_literal, quiet_literals

__all__ = ["Knowledge", "PatternEvaluator", "algebra_context", "evaluating", "event_graph", "holds"]

_LOCK: Final = threading.Lock()
"""rdflib's algebra nodes hold state while they are evaluated; two threads must not share a plan."""

_DIRECT: Final = 100
"""Triples in a graph up to which the direct evaluation is used."""

_NO_GRAPH: Final = Graph(bind_namespaces="none")


class _Named:
    """The registered graphs, as much of a dataset as rdflib's evaluator asks for."""

    def __init__(self, graphs: MappingABC[str, Graph]) -> None:
        self._graphs = graphs
        self.default_context = _NO_GRAPH

    def contexts(self) -> Iterable[Graph]:
        return self._graphs.values()

    def get_context(self, name: Any) -> Graph:
        return self._graphs.get(str(name), _NO_GRAPH)


class _Context(QueryContext):
    """An evaluation context over one graph and the registered graphs; it cannot load anything."""

    def __init__(self, graph: Graph | None, named: _Named, prologue: Prologue | None, bindings: Any = None) -> None:
        super().__init__(None, bindings or [], initBindings={})
        self.graph = graph
        self.prologue = prologue
        self._named = named

    @property
    def dataset(self) -> Any:
        return self._named

    def clone(self, bindings: Any = None) -> QueryContext:
        copy = _Context(self.graph, self._named, self.prologue, bindings or self.bindings)
        copy._now = self._now
        copy.bnodes = self.bnodes
        return copy

    def load(self, source: URIRef, default: bool = False, into: Identifier | None = None, **kwargs: Any) -> None:
        raise InternalError(f"a query tried to load {source}: nothing is ever loaded")


class Knowledge:
    """The background knowledge of a run: named RDF graphs (the dataset D of Definition 15), static while it runs.

    Args: `graphs`, by IRI.
    """

    def __init__(self, graphs: MappingABC[str, Graph] | None = None) -> None:
        self.graphs = {iri: _under_name(graph, iri) for iri, graph in (graphs or {}).items()}
        self.named = _Named(self.graphs)
        self._derived: dict[Any, Any] = {}

    def derived(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is made of the graphs, once: `make()`, kept under `key`."""
        if key not in self._derived:
            self._derived[key] = make()
        return self._derived[key]

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


def _under_name(graph: Graph, iri: str) -> Graph:
    """A copy of `graph` under the name `iri`, since GRAPH ?g binds ?g to the name; literals as in streams."""
    named = Graph(identifier=URIRef(iri), bind_namespaces="none")
    triples: Iterable[Any] = graph
    for s, p, o in triples:
        named.add((s, p, plain_literal(o)))
    return named


def event_graph(triples: Iterable[tuple[Any, Any, Any]]) -> Graph:
    """An rdflib graph of an event's triples."""
    graph = Graph(bind_namespaces="none")
    for triple in triples:
        graph.add(triple)
    return graph


class PatternEvaluator:
    """A GPM ready to run: its knowledge parts are evaluated once (Definition 15).

    `solve` gives the pairs (mappings before the FILTERs, mappings after them) for one event graph. With `reference`
    rdflib's evaluator does all of it.
    """

    def __init__(self, pattern: GraphPattern, knowledge: Knowledge, *, reference: bool = False) -> None:
        self.pattern = pattern
        self._reference = reference
        self._plan = None if reference else basic_plan(pattern.event.node)
        self._named = knowledge.named
        self._given = knowledge

    @property
    def graphs(self) -> tuple[str, ...]:
        """The names of the registered graphs."""
        return tuple(self._given.graphs)

    def graph(self, iri: str) -> Graph:
        """A registered graph."""
        return self._given.graphs[iri]

    def once(self, kind: str, owner: Any, make: Callable[[], Any]) -> Any:
        """What is made of the knowledge for `owner`, a part of the pattern: made once, and `owner` kept with it, so
        that no other object takes its place."""
        return self._given.derived((kind, id(owner)), lambda: (owner, make()))[1]

    def derived(self, kind: str, make: Callable[[], Any]) -> Any:
        """What is made of the knowledge for this pattern, once for all its evaluators. The pattern's parts are known by
        their handles, which are kept so that no other takes their place."""
        handles = tuple(part.handle for _, part in self.pattern.knowledge)
        key = (kind, *(iri for iri, _ in self.pattern.knowledge), *map(id, handles))
        return self._given.derived(key, lambda: (handles, make()))[1]

    @property
    def _knowledge(self) -> IndexedMappings | None:
        """The solutions of the knowledge parts, evaluated when first asked for."""
        return self.derived("mappings", self._evaluate_knowledge) if self.pattern.knowledge else None

    def _evaluate_knowledge(self) -> IndexedMappings:
        found = IDENTITY
        for iri, part in self.pattern.knowledge:
            if iri not in self._given.graphs:  # `Knowledge.check` is who refuses it
                return IndexedMappings(frozenset())
            context = _Context(self.graph(iri), self._named, self.pattern.prologue)
            found = IndexedMappings(found).join(_solutions(context, part.handle))
        return IndexedMappings(found)

    @property
    def knowledge(self) -> MappingSet | None:
        """The solutions of the knowledge parts, joined; None where there are none."""
        known = self._knowledge
        return None if known is None else known.mappings

    def solve(self, facts: EventGraph | Graph, predicates: frozenset[Any]) -> tuple[MappingSet, MappingSet]:
        """Ω without the top-level FILTERs, and Ω; `predicates` are the event's, to turn it away early."""
        if not self.pattern.required <= predicates:
            return frozenset(), frozenset()
        if isinstance(facts, Graph):
            facts = EventGraph.of(facts)
        found = self._found(facts)
        if (known := self._knowledge) is not None:
            found = known.join(found)
        if not self.pattern.local or not found:
            return found, found
        return found, frozenset(m for m in found if all(self._holds(c, m, facts) for c in self.pattern.local))

    def _found(self, facts: EventGraph) -> MappingSet:
        """The event part's mapping set. The direct way tries all triples of a predicate; rdflib has indexes."""
        if self._plan is not None and len(facts) <= _DIRECT:
            return self._plan.solve(facts)
        return self.by_rdflib(facts)

    def by_rdflib(self, facts: EventGraph) -> MappingSet:
        """The event part's mapping set as rdflib's evaluator gives it: the reference, and what any pattern can have."""
        context = _Context(facts.graph, self._named, self.pattern.prologue)
        return _solutions(context, self.pattern.event.handle)

    def _holds(self, condition: Condition, mapping: Mapping, facts: EventGraph) -> bool:
        if condition.test is not None and not self._reference:
            return condition.test(dict(mapping))
        return _true(condition, mapping, _Context(facts.graph, self._named, self.pattern.prologue))


@contextmanager
def evaluating() -> Iterator[None]:
    """While it is open, rdflib evaluates: one thread, no complaints about literals, its failures under our name."""
    with _LOCK, quiet_literals():
        try:
            yield
        except SpaseqError:
            raise
        except RecursionError:
            raise InternalError("rdflib could not evaluate a graph pattern: it is nested too deeply") from None
        except Exception as error:
            raise InternalError(
                f"rdflib failed to evaluate a graph pattern: {type(error).__name__}: {error}"
            ) from error


def algebra_context(prologue: Prologue) -> QueryContext:
    """A context for algebra that reads no graph."""
    return _Context(_NO_GRAPH, _Named({}), prologue)


def _solutions(context: _Context, handle: Any) -> MappingSet:
    """The solutions of an algebra node; blank nodes of the pattern, which act as variables, are not part of them."""
    with evaluating():
        return frozenset(
            freeze((str(name), plain_literal(term)) for name, term in solution.items() if isinstance(name, Variable))
            for solution in evalPart(context, handle)
        )


def _true(condition: Condition, mapping: Mapping, context: _Context) -> bool:
    bindings = FrozenBindings(context, {Variable(name): term for name, term in mapping})
    with evaluating():
        return bool(_ebv(condition.handle, bindings))


def holds(condition: Condition, mapping: Mapping, prologue: Prologue) -> bool:
    """Whether a condition without EXISTS is true of a mapping; an error in it, as an unbound variable, is not true."""
    if condition.test is not None:
        return condition.test(dict(mapping))
    return _true(condition, mapping, _Context(None, _Named({}), prologue))


def value_of(side: Side, term: Identifier, prologue: Prologue) -> Identifier | None:
    """What a side of a comparison comes to where its variable is `term`; None where that is an error."""
    match side.expression:
        case algebra.Call(handle=handle):
            bindings = FrozenBindings(_Context(None, _Named({}), prologue), {Variable(side.name): term})
            with evaluating():
                try:
                    found = handle.eval(bindings)
                except SPARQLError:
                    return None
            return None if isinstance(found, SPARQLError) else plain_literal(found)
        case _:
            return term
