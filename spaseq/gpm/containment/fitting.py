"""Random graphs that the triple patterns of graph patterns fit, with values around the constants of conditions."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.core.trees import walk
from spaseq.gpm import algebra
from spaseq.gpm.pattern import GraphPattern


class Fitting:
    """Makes graphs for some graph patterns, whose terms meet each other."""

    def __init__(self, patterns: Sequence[GraphPattern]) -> None:
        named = (part for p in patterns for triple in _triples(p) for part in triple[:2])
        self._subjects = {str(part) for part in named if isinstance(part, Variable)}
        self._values = _values(patterns)

    def graph(self, pattern: GraphPattern, rng: random.Random) -> list[str]:
        """The lines of a graph, N-Triples, for most of the triple patterns of a graph pattern."""
        terms = _Terms(rng, self._subjects, self._values)
        made = [terms.triple(triple) for triple in _triples(pattern) if rng.random() < 0.9]
        return sorted({line for line in made if line})


@dataclass(slots=True)
class _Terms:
    """Terms for the variables of one graph: few, so that graphs join. `subjects`: the variables that take IRIs, as they
    are subjects or predicates somewhere."""

    rng: random.Random
    subjects: set[str]
    values: list[Literal]
    chosen: dict[str, Any] = field(default_factory=dict)

    def triple(self, pattern: tuple[Any, Any, Any]) -> str:
        """A triple that fits a pattern, as N-Triples; empty for a property path or a triple term."""
        terms = [self._term(part) for part in pattern]
        if any(term is None for term in terms) or isinstance(terms[0], Literal) or not isinstance(terms[1], URIRef):
            return ""
        return " ".join(term.n3() for term in terms) + " ."

    def _term(self, part: Any) -> Any:
        if not isinstance(part, Variable | BNode):
            return part if isinstance(part, URIRef | Literal) else None
        name = str(part)
        if name not in self.chosen:
            named = name in self.subjects or isinstance(part, BNode)
            self.chosen[name] = URIRef(f"urn:x:{self.rng.randint(1, 2)}") if named else self.rng.choice(self.values)
        return self.chosen[name]


def _triples(pattern: GraphPattern) -> list[tuple[Any, Any, Any]]:
    """The triple patterns of the part of a graph pattern that is about events."""
    return [triple for node in walk(pattern.event) if isinstance(node, algebra.BGP) for triple in node.triples]


def _values(patterns: Iterable[GraphPattern]) -> list[Literal]:
    """The constants that conditions compare with, numbers also one less and one more; and some numbers."""
    found = {Literal(1), Literal(2)}
    for pattern in patterns:
        expressions = [c.expression for c in (*pattern.local, *pattern.correlated)]
        expressions += [node.condition for node in walk(pattern.event) if isinstance(node, algebra.Filter)]
        for expression in expressions:
            for term in _literals(expression):
                found.add(term)
                if isinstance(term.value, int | Decimal) and not isinstance(term.value, bool):
                    found |= {Literal(term.value - 1), Literal(term.value + 1)}
    return sorted(found, key=lambda term: (str(term.datatype), str(term)))


def _literals(node: algebra.Expression) -> Iterator[Literal]:
    match node:
        case algebra.Term(Literal() as value):
            yield value
        case algebra.Call():
            for argument in node.arguments:
                yield from _literals(argument)
