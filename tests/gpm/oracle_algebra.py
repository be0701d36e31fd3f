"""The SPARQL algebra by definition (SPARQL 1.1 §18), bottom up over sets of mappings, for one graph.

Shares nothing with the plan over columns but the nodes it evaluates and the functions of single terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.operators import EBV
from rdflib.plugins.sparql.sparql import FrozenBindings, SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.gpm import algebra
from spaseq.gpm.evaluate import algebra_context
from spaseq.rdf import plain_literal

Mapping = dict[str, Any]


class Oracle:
    """The value of a node on `triples`; `outer` are the bindings that EXISTS substitutes."""

    def __init__(self, triples: list[tuple[Any, Any, Any]], prologue: Any) -> None:
        self.triples = [(s, p, plain_literal(o)) for s, p, o in triples]
        self.prologue = prologue

    def value(self, node: algebra.Node, outer: Mapping | None = None) -> list[Mapping]:
        outer = outer or {}
        match node:
            case algebra.BGP(triples):
                return _once(self.basic(list(triples), {}, outer))
            case algebra.Join(left, right):
                return _once(_union(a, b) for a, b in _compatible(self.value(left, outer), self.value(right, outer)))
            case algebra.Union(left, right):
                return _once([*self.value(left, outer), *self.value(right, outer)])
            case algebra.Minus(left, right):
                other = self.value(right, outer)
                return [m for m in self.value(left, outer) if not any(_meets(m, o) and m.keys() & o for o in other)]
            case algebra.LeftJoin(left, right, condition):
                return self.optional(self.value(left, outer), self.value(right, outer), condition, outer)
            case algebra.Filter(child, condition):
                return [m for m in self.value(child, outer) if self.truth(condition, {**outer, **m}) is True]
            case algebra.Extend(child, variable, value):
                return [self.extended(m, variable, value, outer) for m in self.value(child, outer)]
            case algebra.Values(rows):
                return [dict(row) for row in rows if all(outer.get(n, t) == t for n, t in row)]
            case algebra.Projected(child, names):
                return _once({n: t for n, t in m.items() if n in names} for m in self.value(child, {}))
            case algebra.Distinct(child) | algebra.Ordered(child):
                return self.value(child, outer)
            case _:
                raise NotImplementedError(type(node).__name__)

    def optional(self, left: list[Mapping], right: list[Mapping], condition: Any, outer: Mapping) -> list[Mapping]:
        found = []
        for m in left:
            joined = [_union(m, o) for o in right if _meets(m, o)]
            joined = [j for j in joined if self.truth(condition, {**outer, **j}) is True]
            found += joined or [m]
        return _once(found)

    def extended(self, mapping: Mapping, variable: str, value: Any, outer: Mapping) -> Mapping:
        try:
            return {**mapping, variable: plain_literal(self.term(value, {**outer, **mapping}))}
        except SPARQLError:
            return mapping

    def basic(self, triples: list[Any], bound: Mapping, outer: Mapping) -> Iterator[Mapping]:
        if not triples:
            yield {n: t for n, t in bound.items() if not n.startswith("_:") and n not in outer}
            return
        (s, p, o), *rest = triples
        for found in self.matches(p, s, o):
            longer = dict(bound)
            if all(_bind(longer, outer, pattern, term) for pattern, term in zip((s, p, o), found, strict=True)):
                yield from self.basic(rest, longer, outer)

    def matches(self, p: Any, s: Any, o: Any) -> list[Any]:
        if isinstance(p, (URIRef, Variable, BNode)):
            return self.triples
        ends = {t for t in (s, o) if not isinstance(t, (Variable, BNode))}
        return [(a, p, b) for a, b in self.pairs(p, ends)]

    def pairs(self, path: Any, ends: set[Any]) -> set[tuple[Any, Any]]:
        match path:
            case URIRef():
                return {(s, o) for s, p, o in self.triples if p == path}
            case InvPath(arg=arg):
                return {(b, a) for a, b in self.pairs(arg, ends)}
            case AlternativePath(args=args):
                return set().union(*(self.pairs(arg, ends) for arg in args))
            case SequencePath(args=args):
                found = self.pairs(args[0], ends)
                for arg in args[1:]:
                    found = {(a, d) for (a, b), (c, d) in product(found, self.pairs(arg, ends)) if b == c}
                return found
            case NegatedPath(args=args):
                ahead = {a for a in args if isinstance(a, URIRef)}
                back = {a.arg for a in args if isinstance(a, InvPath)}
                found = {(s, o) for s, p, o in self.triples if p not in ahead} if ahead or not back else set()
                return found | ({(o, s) for s, p, o in self.triples if p not in back} if back else set())
            case MulPath(path=inner, zero=zero, more=more):
                steps = self.pairs(inner, ends)
                found = set(steps)
                while more:
                    longer = found | {(a, d) for (a, b), (c, d) in product(found, steps) if b == c}
                    if longer == found:
                        break
                    found = longer
                nodes = {t for s, _, o in self.triples for t in (s, o)} | ends
                return found | {(n, n) for n in nodes} if zero else found
            case _:
                raise NotImplementedError(type(path).__name__)

    def truth(self, expression: Any, mapping: Mapping) -> bool | None:
        """True, False, or None for an error."""
        match expression:
            case algebra.Call("TrueFilter"):
                return True
            case algebra.Call("ConditionalAndExpression", arguments):
                parts = [self.truth(a, mapping) for a in arguments]
                return False if False in parts else None if None in parts else True
            case algebra.Call("ConditionalOrExpression", arguments):
                parts = [self.truth(a, mapping) for a in arguments]
                return True if True in parts else None if None in parts else False
            case algebra.Call("UnaryNot", (argument,)):
                inner = self.truth(argument, mapping)
                return None if inner is None else not inner
            case algebra.Exists(pattern, negated):
                return bool(self.value(pattern, mapping)) is not negated
            case _:
                try:
                    return bool(EBV(self.term(expression, mapping)))
                except SPARQLError:
                    return None

    def term(self, expression: Any, mapping: Mapping) -> Any:
        bindings = FrozenBindings(algebra_context(self.prologue), {Variable(n): t for n, t in mapping.items()})
        handle = expression.value if isinstance(expression, algebra.Term) else expression.handle
        found = _eval(handle, bindings)
        if isinstance(found, SPARQLError):
            raise found
        return found if isinstance(found, (URIRef, BNode, Literal)) else Literal(found)


def _bind(bound: Mapping, outer: Mapping, pattern: Any, term: Any) -> bool:
    if isinstance(pattern, (Variable, BNode)):
        name = str(pattern) if isinstance(pattern, Variable) else f"_:{pattern}"
        return outer.get(name, term) == term and bound.setdefault(name, term) == term
    return bool(pattern == term)


def _meets(a: Mapping, b: Mapping) -> bool:
    return all(b.get(name, term) == term for name, term in a.items())


def _union(a: Mapping, b: Mapping) -> Mapping:
    return {**a, **b}


def _compatible(left: list[Mapping], right: list[Mapping]) -> Iterator[tuple[Mapping, Mapping]]:
    return ((a, b) for a, b in product(left, right) if _meets(a, b))


def _once(mappings: Any) -> list[Mapping]:
    return [dict(m) for m in {frozenset(m.items()): None for m in mappings}]
