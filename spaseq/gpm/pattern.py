"""Compile the group graph pattern of a GPM ([SPAseq] §4.2, Definitions 7 and 15).

rdflib parses the group; `compile_pattern` splits it, once, into

* the *event part*, evaluated on every event graph;
* the *knowledge parts*: `GRAPH <iri> { … }` joined at the top level of the group, evaluated once on the registered
  graph and then joined. A GRAPH elsewhere (inside OPTIONAL, UNION, EXISTS, or with a variable) stays in the event part,
  which is evaluated with the same registered graphs;
* the *conditions*: the conjuncts of the top-level FILTERs (a FILTER keeps a solution if its condition is true, and
  `a && b` is true if and only if both are). A condition whose variables are all bound by the group is *local*; any
  other is *correlated*, and evaluated when the solutions are joined with those of a run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue
from rdflib.term import URIRef, Variable

from spaseq.core.errors import QuerySemanticsError, UnsupportedFeature
from spaseq.core.watch import check
from spaseq.gpm import algebra
from spaseq.gpm.functions import is_function
from spaseq.gpm.sparql import Piece, Source, settled, translated

__all__ = [
    "Condition",
    "GraphPattern",
    "Part",
    "Source",
    "compile_pattern",
    "with_answers",
]

_FRAMES: Final = 6
"""Python frames, at most, that evaluating one operator inside another takes."""
_HINT: Final = "it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern: our node, and rdflib's (`handle`), for its evaluator."""

    node: algebra.Node
    handle: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct of a top-level FILTER: its expression, the variables it names, and rdflib's expression."""

    expression: algebra.Expression
    variables: frozenset[str]
    handle: Any = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A compiled GPM.

    `streams`: IRIs of the streams it reads. `event`, `knowledge`: see the module. `local`, `correlated`: the
    conditions. `binds`: the variables a solution may bind; `certain`: those every solution binds. `required`:
    predicates that an event must have. `graphs`: IRIs of all graphs named by GRAPH; `any_graph`: whether there is a
    `GRAPH ?g`.
    """

    name: str
    streams: tuple[str, ...]
    event: Part
    knowledge: tuple[tuple[str, Part], ...]
    local: tuple[Condition, ...]
    correlated: tuple[Condition, ...]
    binds: frozenset[str]
    certain: frozenset[str]
    required: frozenset[URIRef]
    graphs: tuple[str, ...]
    any_graph: bool
    prologue: Prologue = field(compare=False, repr=False)

    @property
    def needs(self) -> frozenset[str]:
        """The variables in correlated conditions that other GPMs have to bind."""
        return frozenset().union(*(c.variables for c in self.correlated)) - self.binds

    @property
    def unknown_functions(self) -> frozenset[str]:
        """The IRIs of functions that its expressions call and that are not defined: every call is an error."""
        nodes = [self.event.node, *(part.node for _, part in self.knowledge)]
        conditions = [condition.expression for condition in (*self.local, *self.correlated)]
        called = frozenset(algebra.functions_called((*nodes, *conditions)))
        return frozenset(iri for iri in called if not is_function(iri))

    @property
    def mentions(self) -> frozenset[str]:
        """The variables of the GPM that other GPMs can share."""
        return self.binds | self.needs


def with_answers(
    pattern: GraphPattern, answers: Sequence[tuple[Sequence[str], Sequence[Sequence[tuple[str, Any]]]]]
) -> GraphPattern:
    """A GPM with a VALUES in place of each of its knowledge parts: the variables that the part may bind, and its
    solutions, each the pairs of a variable and its term."""
    parts = []
    for (iri, _), (names, rows) in zip(pattern.knowledge, answers, strict=True):
        unbound = frozenset(names) - {name for row in rows for name, _ in row}
        inline = CompValue("values", res=[{Variable(name): term for name, term in row} for row in rows])
        node = algebra.Values(tuple(map(tuple, rows)), unbound)
        parts.append((iri, Part(node, CompValue("ToMultiSet", p=inline))))
    return replace(pattern, knowledge=tuple(parts))


def compile_pattern(source: Source, streams: tuple[str, ...]) -> GraphPattern:
    """The compiled GPM.

    Raises what `translated` raises, and `UnsupportedFeature` for SERVICE; each with its place in the query.
    """
    check()
    group = Piece(source.start, source.end, f"the graph pattern of GPM {source.name}", _HINT)
    prologue, query, _ = translated(source, ["SELECT * WHERE ", group])
    root = settled(query.p.p)
    conditions, body = _conditions(root)
    leaves = tuple(_leaves(body))
    knowledge = [leaf for leaf in leaves if _is_knowledge(leaf)]
    event = _joined([leaf for leaf in leaves if not _is_knowledge(leaf)])
    whole = _node(root, source)
    names = algebra.graph_names(whole)
    binds = algebra.visible(whole)
    sorted_conditions = [_condition(c) for c in conditions]
    event_node = algebra.convert(event)
    return GraphPattern(
        name=source.name,
        streams=streams,
        event=Part(event_node, event),
        knowledge=tuple((str(leaf.term), Part(algebra.convert(leaf.p), leaf.p)) for leaf in knowledge),
        local=tuple(c for c in sorted_conditions if c.variables <= binds),
        correlated=tuple(c for c in sorted_conditions if not c.variables <= binds),
        binds=binds,
        certain=algebra.certain(whole),
        required=algebra.required_predicates(event_node),
        graphs=tuple(str(name) for name in names if not isinstance(name, Variable)),
        any_graph=any(isinstance(name, Variable) for name in names),
        prologue=prologue,
    )


def _node(root: CompValue, source: Source) -> algebra.Node:
    """Our node for the whole group. `UnsupportedFeature` gets the place of the word it names."""
    try:
        node = algebra.convert(root)
        deepest = algebra.depth(node)
    except RecursionError:
        raise _too_deep(source, "") from None
    except UnsupportedFeature as error:
        word = error.problem.split()[0]
        raise UnsupportedFeature(
            error.problem, text=source.query, span=source.find(rf"\b{word}\b"), source=source.file, hint=error.hint
        ) from None
    if deepest * _FRAMES > sys.getrecursionlimit():
        raise _too_deep(source, f": {deepest} operators inside each other")
    return node


def _too_deep(source: Source, how: str) -> QuerySemanticsError:
    return QuerySemanticsError(
        f"the graph pattern of GPM {source.name} is nested too deeply{how}",
        text=source.query,
        span=source.span(source.start, source.start + 1),
        source=source.file,
        hint=f"each OPTIONAL, BIND and MINUS is one; {sys.getrecursionlimit() // _FRAMES} can be evaluated "
        "(Python's recursion limit, sys.setrecursionlimit, divided by what one takes)",
    )


# -- splitting the group


def _conditions(root: CompValue) -> tuple[list[Any], CompValue]:
    """The conjuncts of the group's own FILTERs, and the pattern below them."""
    if root.name != "Filter":
        return [], root
    return list(_conjuncts(root.expr)), root.p


def _conjuncts(expression: Any) -> Iterator[Any]:
    if isinstance(expression, CompValue) and expression.name == "ConditionalAndExpression":
        yield from _conjuncts(expression.expr)
        for other in expression.other or ():
            yield from _conjuncts(other)
    else:
        yield expression


def _condition(handle: Any) -> Condition:
    expression = algebra.convert_expression(handle)
    return Condition(expression, algebra.expression_variables(expression), handle)


def _leaves(body: CompValue) -> Iterator[CompValue]:
    """The operands of the joins at the top of the group."""
    if body.name == "Join":
        yield from _leaves(body.p1)
        yield from _leaves(body.p2)
    else:
        yield body


def _is_knowledge(leaf: CompValue) -> bool:
    return leaf.name == "Graph" and isinstance(leaf.term, URIRef)


def _joined(leaves: list[CompValue]) -> CompValue:
    """The join of algebra nodes, in order; the empty pattern if there are none."""
    if not leaves:
        return CompValue("BGP", triples=[], _vars=set())
    first, *rest = leaves
    for leaf in rest:
        first = CompValue("Join", p1=first, p2=leaf, lazy=False, _vars=set(first._vars or ()) | set(leaf._vars or ()))
    return first
