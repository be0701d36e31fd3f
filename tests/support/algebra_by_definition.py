"""The SPARQL algebra by definition (SPARQL 1.1 §18), bottom up over lists of mappings, for one graph.

A list has a mapping as often as the definition has it. Shares nothing with the plan over columns but the nodes it
evaluates and the functions of single terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import groupby, product
from typing import Any

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath
from rdflib.plugins.sparql.operators import EBV
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.gpm import algebra
from spaseq.gpm.expressions import Row, value
from spaseq.gpm.reference import Context
from spaseq.rdf import plain_literal

Mapping = dict[str, Any]


class Oracle:
    """The value of a node on `triples` beside named `graphs`; `outer` are the bindings that EXISTS substitutes."""

    def __init__(self, triples: list[Any], prologue: Any, graphs: dict[str, Any] | None = None) -> None:
        self.triples = [(s, p, plain_literal(o)) for s, p, o in triples]
        self.prologue = prologue
        self.graphs = graphs or {}

    def value(self, node: algebra.Node, outer: Mapping | None = None) -> list[Mapping]:
        outer = outer or {}
        match node:
            case algebra.BGP(triples):
                return list(self.basic(list(triples), {}, outer))
            case algebra.Join(left, right):
                return [_union(a, b) for a, b in _compatible(self.value(left, outer), self.value(right, outer))]
            case algebra.Union(left, right):
                return [*self.value(left, outer), *self.value(right, outer)]
            case algebra.Minus(left, right):
                other = self.value(right, outer)
                return [m for m in self.value(left, outer) if not any(_meets(m, o) and m.keys() & o for o in other)]
            case algebra.LeftJoin(left, right, condition):
                return self.optional(self.value(left, outer), self.value(right, outer), condition, outer)
            case algebra.Filter(child, condition):
                return [m for m in self.value(child, outer) if self.truth(condition, {**outer, **m}) is True]
            case algebra.Extend(child, variable, value):
                return list(self.extended(self.value(child, outer), variable, value, outer))
            case algebra.Values(rows):
                return [_free(dict(row), outer) for row in rows if all(outer.get(n, t) == t for n, t in row)]
            case algebra.GraphNode(name, child):
                return [m for iri in self.graphs for m in self.named(iri, name, child, outer)]
            case _:
                return self.subquery(node, outer)

    def named(self, iri: str, name: Any, child: algebra.Node, outer: Mapping) -> list[Mapping]:
        term = URIRef(iri)
        if isinstance(name, URIRef):
            bound: Mapping = {}
            if name != term:
                return []
        else:
            bound = {str(name): term}
        if not _meets(bound, outer):
            return []
        found = Oracle(self.graphs[iri], self.prologue, self.graphs).value(child, outer)
        return [_free(_union(m, bound), outer) for m in found if _meets(m, bound)]

    def subquery(self, node: algebra.Node, outer: Mapping) -> list[Mapping]:
        match node:
            case algebra.Projected(child, names):
                seen = {n: t for n, t in outer.items() if n in names}
                return [{n: t for n, t in m.items() if n in names} for m in self.value(child, seen)]
            case algebra.Distinct(child):
                return [dict(m) for m in {frozenset(m.items()): None for m in self.value(child, outer)}]
            case algebra.Ordered(child, keys, descending):
                rows = sorted(self.value(child, outer), key=_row_order)
                for key, turned in reversed(list(zip(keys, descending, strict=True))):
                    rows = _sorted_by([(self.attempt(key, {**outer, **m}), m) for m in rows], turned)
                return rows
            case algebra.Sliced(child, start, length):
                rows = self.value(child, outer)
                rows = rows if _is_ordered(child) else sorted(rows, key=_row_order)
                return rows[start:] if length is None else rows[start : start + length]
            case algebra.Aggregated(algebra.Grouped(child, keys), results):
                return self.groups(self.value(child, outer), keys, results, outer, _is_ordered(child))
            case _:
                raise NotImplementedError(type(node).__name__)

    # -- groups

    def groups(self, rows: list[Mapping], keys: Any, results: Any, outer: Mapping, ordered: bool) -> list[Mapping]:
        found: dict[Any, list[Mapping]] = {} if keys else {(): []}
        for row in rows:
            found.setdefault(tuple(self.attempt(key, {**outer, **row}) for key in keys), []).append(row)
        return [self.group(members, results, outer, ordered) for members in found.values()]

    def group(self, rows: list[Mapping], results: Any, outer: Mapping, ordered: bool) -> Mapping:
        made = ((name, self.aggregate(one, rows, outer, ordered)) for name, one in results)
        return {name: plain_literal(term) for name, term in made if term is not None}

    def aggregate(self, aggregate: algebra.Aggregate, rows: list[Mapping], outer: Mapping, ordered: bool) -> Any:
        kind, once, argument = aggregate.name, aggregate.once, aggregate.over
        if argument is None:
            return Literal(len({frozenset(m.items()) for m in rows} if once else rows))
        values = [self.attempt(argument, {**outer, **row}) for row in rows]
        values = list(dict.fromkeys(values)) if once else values
        known = [v for v in values if v is not None]
        if kind != "GroupConcat" or not ordered:
            known.sort(key=_term_order)
        if kind == "Count":
            return Literal(len(known))
        if kind == "Sample":
            return known[0] if known else None
        if len(known) < len(values):
            return None
        if kind in ("Min", "Max"):
            return (known[0] if kind == "Min" else known[-1]) if known else None
        if kind == "GroupConcat" and any(isinstance(v, BNode) for v in known):
            return None  # a blank node has no text
        if kind == "GroupConcat":
            return Literal(aggregate.separator.join(str(v) for v in known))
        return _of_numbers(kind, known)

    def attempt(self, expression: Any, mapping: Mapping) -> Any:
        """The value, None for an error."""
        try:
            match expression:
                case algebra.Exists() | algebra.Call("&&" | "||" | "!", _):
                    decided = self.truth(expression, mapping)
                    return None if decided is None else Literal(decided)
                case algebra.Call("IF", (condition, yes, no)):
                    decided = self.truth(condition, mapping)
                    return None if decided is None else self.attempt(yes if decided else no, mapping)
                case _:
                    return plain_literal(self.term(expression, mapping))
        except SPARQLError:
            return None

    # -- patterns

    def optional(self, left: list[Mapping], right: list[Mapping], condition: Any, outer: Mapping) -> list[Mapping]:
        found = []
        for m in left:
            joined = [_union(m, o) for o in right if _meets(m, o)]
            joined = [j for j in joined if self.truth(condition, {**outer, **j}) is True]
            found += joined or [m]
        return found

    def extended(self, rows: list[Mapping], variable: str, value: Any, outer: Mapping) -> Iterator[Mapping]:
        for row in rows:
            found = self.attempt(value, {**outer, **row})
            if found is None:
                yield row
            elif outer.get(variable, found) == found:
                yield _free({**row, variable: found}, outer)

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

    def pairs(self, path: Any, ends: set[Any]) -> list[tuple[Any, Any]]:
        match path:
            case URIRef():
                return [(s, o) for s, p, o in self.triples if p == path]
            case InvPath(arg=arg):
                return [(b, a) for a, b in self.pairs(arg, ends)]
            case AlternativePath(args=args):
                return [pair for arg in args for pair in self.pairs(arg, ends)]
            case SequencePath(args=args):
                found = self.pairs(args[0], ends)
                for arg in args[1:]:
                    found = [(a, d) for (a, b), (c, d) in product(found, self.pairs(arg, ends)) if b == c]
                return found
            case NegatedPath(args=args):
                ahead = {a for a in args if isinstance(a, URIRef)}
                back = {a.arg for a in args if isinstance(a, InvPath)}
                found = [(s, o) for s, p, o in self.triples if p not in ahead] if ahead or not back else []
                return found + ([(o, s) for s, p, o in self.triples if p not in back] if back else [])
            case MulPath(path=inner, zero=zero, more=more):
                return list(self.repeated(set(self.pairs(inner, ends)), ends, zero, more))
            case _:
                raise NotImplementedError(type(path).__name__)

    def repeated(self, steps: set[Any], ends: set[Any], zero: bool, more: bool) -> set[Any]:
        found = set(steps)
        while more:
            longer = found | {(a, d) for (a, b), (c, d) in product(found, steps) if b == c}
            if longer == found:
                break
            found = longer
        nodes = {t for s, _, o in self.triples for t in (s, o)} | ends
        return found | {(n, n) for n in nodes} if zero else found

    # -- expressions

    def truth(self, expression: Any, mapping: Mapping) -> bool | None:
        """True, False, or None for an error."""
        match expression:
            case algebra.Call("true"):
                return True
            case algebra.Call("&&", arguments):
                parts = [self.truth(a, mapping) for a in arguments]
                return False if False in parts else None if None in parts else True
            case algebra.Call("||", arguments):
                parts = [self.truth(a, mapping) for a in arguments]
                return True if True in parts else None if None in parts else False
            case algebra.Call("!", (argument,)):
                inner = self.truth(argument, mapping)
                return None if inner is None else not inner
            case algebra.Call("IF", (condition, yes, no)):
                decided = self.truth(condition, mapping)
                return None if decided is None else self.truth(yes if decided else no, mapping)
            case algebra.Exists(pattern, negated):
                return bool(self.value(pattern, mapping)) is not negated
            case _:
                try:
                    return bool(EBV(self.term(expression, mapping)))
                except SPARQLError:
                    return None

    def term(self, expression: Any, mapping: Mapping) -> Any:
        return value(expression, Row(mapping, Context(prologue=self.prologue)))


def _of_numbers(kind: str, terms: list[Any]) -> Any:
    """Sums and means of integers and decimals."""
    values: list[Any] = [term.value if isinstance(term, Literal) else None for term in terms]
    if any(isinstance(v, bool) or not isinstance(v, (int, Decimal)) for v in values):
        return None
    whole = all(isinstance(v, int) for v in values)
    if kind == "Sum" and whole:
        return Literal(sum(values))
    if kind == "Avg" and not values:
        return Literal(0)
    total = sum(map(Decimal, values), Decimal(0))
    return _decimal(total if kind == "Sum" else total / len(values))


def _decimal(value: Decimal) -> Literal:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return Literal(text, datatype=URIRef("http://www.w3.org/2001/XMLSchema#decimal"), normalize=False)


def _term_order(term: Any) -> tuple[Any, ...]:
    """Unbound, blank nodes, IRIs, numbers by value, texts; equal ones by their spelling."""
    if term is None:
        return (0,)
    if isinstance(term, BNode):
        return (1, str(term))
    if isinstance(term, URIRef):
        return (2, str(term))
    return (*_value_order(term), str(term), str(term.datatype or ""))


def _value_order(term: Any) -> tuple[Any, ...]:
    if isinstance(term, Literal):
        if isinstance(term.value, bool):
            return (3, "boolean", term.value)
        if isinstance(term.value, (int, Decimal)):
            return (3, "number", term.value)
        return (3, "string", str(term))
    return _term_order(term)


def _row_order(mapping: Mapping) -> list[Any]:
    return [(name, _term_order(mapping.get(name))) for name in _ALL]


_ALL = sorted({"new", "n", "m", "g", *"uvwxyzabc"} | {f"new{i}" for i in range(300)})
"""Every variable of the random patterns that a row may bind."""


def _sorted_by(rows: list[tuple[Any, Mapping]], turned: bool) -> list[Mapping]:
    """By the keys; those with equal values stay as they are."""
    ranked = sorted(rows, key=lambda row: _value_order(row[0]))
    runs = [list(run) for _, run in groupby(ranked, key=lambda row: _value_order(row[0]))]
    return [mapping for run in (reversed(runs) if turned else runs) for _, mapping in run]


def _is_ordered(node: algebra.Node) -> bool:
    while isinstance(node, (algebra.Projected, algebra.Distinct, algebra.Sliced, algebra.Extend, algebra.Filter)):
        node = node.child
    return isinstance(node, algebra.Ordered)


def _free(mapping: Mapping, outer: Mapping) -> Mapping:
    """A mapping without the variables that are terms in the outer one."""
    return {n: t for n, t in mapping.items() if n not in outer}


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
