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
from functools import reduce
from typing import Any, Final, TypeGuard

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Prologue
from rdflib.term import URIRef, Variable

from spaseq.core.errors import QuerySemanticsError, UnsupportedFeature
from spaseq.core.watch import check
from spaseq.gpm import algebra
from spaseq.gpm.sparql import Piece, Source, settle, translate
from spaseq.gpm.triple_patterns import with_triple_terms

__all__ = [
    "Condition",
    "GraphPattern",
    "Source",
    "compile_pattern",
    "with_answers",
]

_FRAMES: Final = 6
"""Python frames, at most, that evaluating one operator inside another takes."""
_HINT: Final = "it holds triple patterns that end with '.', FILTER ( … ), OPTIONAL { … }, GRAPH <iri> { … }"


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct of a top-level FILTER: its expression, and the variables it names."""

    expression: algebra.Expression
    variables: frozenset[str]

    @staticmethod
    def of(expression: algebra.Expression) -> Condition:
        """The condition with an expression."""
        return Condition(expression, algebra.expression_variables(expression))


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """A compiled GPM.

    `streams`: IRIs of the streams it reads. `event`, `knowledge`: see the module. `local`, `correlated`: the
    conditions. `binds`: the variables a solution may bind; `certain`: those every solution binds. `required`:
    predicates that an event must have. `graphs`: IRIs of all graphs named by GRAPH; `any_graph`: True if there is a
    `GRAPH ?g`.
    """

    name: str
    streams: tuple[str, ...]
    event: algebra.Node
    knowledge: tuple[tuple[str, algebra.Node], ...]
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
    def parts(self) -> tuple[algebra.Node | algebra.Expression, ...]:
        """Its patterns and conditions."""
        nodes = (self.event, *(part for _, part in self.knowledge))
        return (*nodes, *(condition.expression for condition in (*self.local, *self.correlated)))

    @property
    def calls(self) -> tuple[tuple[str, int], ...]:
        """The functions that IRIs name in its expressions, with the numbers of their arguments; each once, in order."""
        return tuple(sorted({*algebra.functions_called(self.parts)}))

    @property
    def mentions(self) -> frozenset[str]:
        """The variables of the GPM that other GPMs can share."""
        return self.binds | self.needs


def with_answers(
    pattern: GraphPattern, answers: Sequence[tuple[Sequence[str], Sequence[Sequence[tuple[str, Any]]]]]
) -> GraphPattern:
    """A GPM with a VALUES in place of each of its knowledge parts. `answers` are, for each part, the variables that it
    may bind and its solutions, each the pairs of a variable and its term."""
    parts = []
    for (iri, _), (names, rows) in zip(pattern.knowledge, answers, strict=True):
        unbound = frozenset(names) - {name for row in rows for name, _ in row}
        parts.append((iri, algebra.Values(tuple(map(tuple, rows)), unbound)))
    return replace(pattern, knowledge=tuple(parts))


def compile_pattern(source: Source, streams: tuple[str, ...]) -> GraphPattern:
    """The compiled GPM.

    Raises the errors of `translated`, and `UnsupportedFeature` for SERVICE, with their places in the query.
    """
    check()
    group = Piece(source.start, source.end, f"the graph pattern of GPM {source.name}", _HINT)
    prologue, query, _ = translate(source, ["SELECT * WHERE ", group])
    whole = _node(settle(query.p.p), source)
    conditions, body = _conditions(whole)
    leaves = tuple(_leaves(body))
    event = [leaf for leaf in leaves if not _is_knowledge(leaf)]
    event_node = reduce(algebra.Join, event) if event else algebra.BGP(())
    names = algebra.graph_names(whole)
    binds = algebra.visible(whole)
    sorted_conditions = list(map(Condition.of, conditions))
    return GraphPattern(
        name=source.name,
        streams=streams,
        event=event_node,
        knowledge=tuple((str(leaf.name), leaf.child) for leaf in leaves if _is_knowledge(leaf)),
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
        node = with_triple_terms(algebra.convert(root))
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


def _conditions(root: algebra.Node) -> tuple[list[algebra.Expression], algebra.Node]:
    """The conjuncts of the group's own FILTERs, and the pattern below them."""
    if not isinstance(root, algebra.Filter):
        return [], root
    return list(algebra.conjuncts(root.condition)), root.child


def _leaves(body: algebra.Node) -> Iterator[algebra.Node]:
    """The operands of the joins at the top of the group."""
    if isinstance(body, algebra.Join):
        yield from _leaves(body.left)
        yield from _leaves(body.right)
    else:
        yield body


def _is_knowledge(leaf: algebra.Node) -> TypeGuard[algebra.GraphNode]:
    return isinstance(leaf, algebra.GraphNode) and isinstance(leaf.name, URIRef)
