"""RDFS entailment: the background knowledge is closed and graph patterns are rewritten, so that streams need no change.

The rules, and the source of the schema, are those of `spaseq.rdf.columns.closing`. `close_knowledge` adds the
consequences to each graph. `entail` rewrites a GPM to one with the solutions on an event that the GPM has on the
event's closure. Each triple pattern becomes the union of the patterns whose triples entail it, without duplicates. So
the work on streams grows with the patterns, not with the triples that events entail. More than a few classes or
properties become one pattern with a variable in their place, joined with VALUES. An event's terms are looked up there,
so its cost does not grow with the schema. These VALUES stay columns of numbers (`spaseq.gpm.inline`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from hashlib import sha256
from typing import Any, Final

import numpy as np
from rdflib.namespace import RDF
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.term import BNode, URIRef, Variable

from spaseq.core.errors import UnsupportedFeature
from spaseq.core.pattern import balance
from spaseq.gpm import algebra
from spaseq.gpm.algebra import (
    BGP,
    Call,
    Distinct,
    Extend,
    Filter,
    GraphNode,
    Join,
    Node,
    Projected,
    Term,
    Union,
    Values,
)
from spaseq.gpm.inline import InlineTerms
from spaseq.gpm.pattern import Condition, GraphPattern
from spaseq.rdf import GraphColumns, SchemaColumns, close_rdfs, term_bytes

Triple = tuple[Any, Any, Any]
_CLASSES: Final = 8
"""More classes than these are looked up, not written out."""
_PROPERTIES: Final = 64
"""The same of properties, in whose place a variable makes all triples of an event be looked at."""


class Schema:
    """The closed relations of classes and properties; `columns` has their pairs of terms. It can be pickled."""

    def __init__(self, columns: SchemaColumns) -> None:
        self.columns: SchemaColumns = columns
        self._numbers = dict(zip(columns.keys, range(len(columns.keys)), strict=True))

    def described(self) -> str:
        """A short text for the schema, with a hash of its contents; the same in every process."""
        columns, digest = self.columns, sha256()
        lines = [b"\n" + key[1:-1] for key in columns.keys]
        counted = []
        for name in ("classes", "properties", "domains", "ranges"):
            pairs: np.ndarray = getattr(columns, name)
            # Each term before the first of its pairs, then the second terms of these.
            firsts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
            order = np.insert(pairs[:, 1], firsts, pairs[firsts, 0])
            digest.update(b"".join(map(lines.__getitem__, order.tolist())))
            counted.append(f"{len(firsts)} {name}")
        return f"{', '.join(counted)} ({digest.hexdigest()[:16]})"

    def above(self, pairs: np.ndarray, term: URIRef) -> np.ndarray:
        """The second terms of the pairs that begin with a term: numbers, ascending."""
        return pairs[pairs[:, 0] == self._number(term), 1]

    def below(self, pairs: np.ndarray, term: Any) -> np.ndarray:
        """The first terms of the pairs that end with a term: numbers, ascending."""
        return pairs[pairs[:, 1] == self._number(term), 0]

    def terms(self, numbers: np.ndarray) -> list[URIRef]:
        """The terms of some numbers."""
        return [URIRef(self.columns.keys[number][1:-1].decode()) for number in numbers.tolist()]

    def _number(self, term: Any) -> int:
        return self._numbers.get(term_bytes(term), -1)


def close_knowledge(
    graphs: Mapping[str, GraphColumns], most: int | None = None
) -> tuple[dict[str, GraphColumns], Schema]:
    """The graphs with their consequences, and the schema of all of them together. Cost and errors as of
    `spaseq.rdf.columns.closing.close_rdfs`."""
    closed, columns = close_rdfs(graphs, most)
    return closed, Schema(columns)


# -- patterns


def entail(pattern: GraphPattern, schema: Schema) -> GraphPattern:
    """The GPM whose solutions on an event graph are those of `pattern` on the closure of the graph under `schema`.

    Parts under GRAPH read closed knowledge and are not changed. Classes that are blank nodes are ignored. Raises
    `UnsupportedFeature` for rdf:type inside a property path, and for a negated property set.
    """
    rewriter = _Rewriter(pattern, schema)
    event = rewriter.rewrite(pattern.event)
    local, correlated = (tuple(map(rewriter.condition, group)) for group in (pattern.local, pattern.correlated))
    if not rewriter.changed:
        return pattern
    # The subquery hides the variables that replace blank nodes.
    event = algebra.Projected(event, tuple(sorted(algebra.visible(pattern.event))))
    required = algebra.required_predicates(event)
    return replace(pattern, event=event, local=local, correlated=correlated, required=required)


class _Rewriter:
    def __init__(self, pattern: GraphPattern, schema: Schema) -> None:
        self._pattern = pattern
        self._schema = schema
        self._fresh = 0
        self.changed = False

    def rewrite(self, node: Node) -> Node:
        """The pattern with its basic graph patterns rewritten."""
        match node:
            case GraphNode():
                return node
            case BGP(triples):
                return self._basic(triples)
            case _:
                found: Node = algebra.rebuild(node, self.rewrite)
                return found

    def condition(self, condition: Condition) -> Condition:
        """A condition with the patterns of its EXISTS rewritten."""
        return Condition.of(algebra.rebuild(condition.expression, self.rewrite))

    def _basic(self, triples: Iterable[Triple]) -> Node:
        kept, joined = [], []
        for triple in triples:
            s, p, o = (Variable(f"__b{term}") if isinstance(term, BNode) else term for term in triple)
            if isinstance(p, Path):
                p = self._path(p)
            found = list(self._alternatives(s, p, o)) if not isinstance(p, Path) else []
            if len(found) > 1:
                names = [str(term) for term in (s, p, o) if isinstance(term, Variable)]
                joined.append(Distinct(Projected(balance(Union, found), tuple(dict.fromkeys(names)))))
                self.changed = True
            else:
                kept.append((s, p, o))
        parts: list[Node] = [BGP(tuple(kept))] if kept or not joined else []
        return reduce(Join, [*parts, *joined])

    # -- the triples that entail a triple

    def _alternatives(self, s: Any, p: Any, o: Any) -> Iterator[Node]:
        """A pattern for each way to entail `s p o`, the triple itself first."""
        yield _bgp((s, p, o))
        if not isinstance(p, Variable):
            yield from self._derive(s, p, o)
            return
        schema, pairs = self._schema, self._schema.columns.properties
        many = len(pairs) > _PROPERTIES
        if many:
            yield self._looked_up(_with_predicate(s, o), (p,), pairs)
            above = schema.terms(schema.above(pairs, RDF.type))
        else:
            above = schema.terms(np.unique(pairs))
        for name in sorted({RDF.type, *above}):
            s_now, o_now = (name if term == p else term for term in (s, o))
            for pattern in self._type(s_now, o_now) if many else self._derive(s_now, name, o_now):
                yield _extend(pattern, p, name)

    def _derive(self, s: Any, p: URIRef, o: Any) -> Iterator[Node]:
        """A pattern for each other way to entail `s p o`, p being known."""
        below = self._schema.below(self._schema.columns.properties, p)
        yield from self._each_of(_with_predicate(s, o), below, _PROPERTIES)
        if p == RDF.type or RDF.type in self._schema.terms(below):
            yield from self._type(s, o)

    def _each_of(self, triple: Callable[[Any], Triple], terms: np.ndarray, most: int) -> Iterator[Node]:
        """Patterns for triples with any of `terms`, numbers of the schema: one each; if more than `most`, one for
        all."""
        if len(terms) > most:
            yield self._looked_up(triple, (), terms[:, np.newaxis])
        else:
            yield from (_bgp(triple(term)) for term in self._schema.terms(terms))

    def _looked_up(self, triple: Callable[[Any], Triple], names: tuple[Variable, ...], rows: np.ndarray) -> Node:
        """The triples with the first term of a row, and for each the row's other terms as `names`. `rows`: numbers of
        the schema, (n, 1 + names)."""
        term = self._new()
        columns = {str(name): rows[:, i] for i, name in enumerate((term, *names))}
        return Join(_bgp(triple(term)), Values(InlineTerms(self._schema.columns.keys, columns)))

    def _type(self, s: Any, o: Any) -> Iterator[Node]:
        """A pattern for each way to entail `s rdf:type o` by the schema's classes."""
        if not isinstance(o, Variable):
            yield from self._instances(s, o)
            return
        columns = self._schema.columns
        for name in self._kinds():
            yield from self._all_of(_with_object(s, name), o, columns.classes, _CLASSES)
        for pairs, is_domain in ((columns.domains, True), (columns.ranges, False)):
            other = self._new()
            ends = (s, other) if is_domain else (other, s)
            for found in self._all_of(_with_predicate(*ends), o, pairs, _PROPERTIES):
                yield found if is_domain or not isinstance(s, Variable) else _no_literal(found, s)

    def _kinds(self) -> list[URIRef]:
        """rdf:type and the properties below it."""
        return [RDF.type, *self._schema.terms(self._schema.below(self._schema.columns.properties, RDF.type))]

    def _all_of(self, triple: Callable[[Any], Triple], name: Variable, pairs: np.ndarray, most: int) -> Iterator[Node]:
        """Patterns for the triples with the first term of any of `pairs`, the second being `name`."""
        if len(pairs) > most:
            yield self._looked_up(triple, (name,), pairs)
            return
        for term, value in zip(*(self._schema.terms(pairs[:, i]) for i in (0, 1)), strict=True):
            s, p, o = (value if end == name else end for end in triple(term))
            yield _extend(_bgp((s, p, o)), name, value)

    def _instances(self, s: Any, kind: Any) -> Iterator[Node]:
        schema, columns = self._schema, self._schema.columns
        below = schema.below(columns.classes, kind)
        for name in self._kinds():
            yield from self._each_of(_with_object(s, name), below, _CLASSES)
        other = self._new()
        yield from self._each_of(_with_predicate(s, other), schema.below(columns.domains, kind), _PROPERTIES)
        for found in self._each_of(_with_predicate(other, s), schema.below(columns.ranges, kind), _PROPERTIES):
            yield _no_literal(found, s) if isinstance(s, Variable) else found

    def _new(self) -> Variable:
        self._fresh += 1
        return Variable(f"__e{self._fresh}")

    # -- property paths

    def _path(self, path: Any) -> Any:
        match path:
            case SequencePath():
                return SequencePath(*map(self._path, path.args))
            case AlternativePath():
                return AlternativePath(*map(self._path, path.args))
            case MulPath():
                return MulPath(self._path(path.path), path.mod)
            case InvPath():
                return InvPath(self._path(path.arg))
            case NegatedPath():
                raise self._refusal("a negated property set")
        columns = self._schema.columns
        below = [path, *self._schema.terms(self._schema.below(columns.properties, path))]
        if RDF.type in below and any(map(len, (columns.classes, columns.domains, columns.ranges))):
            raise self._refusal("rdf:type inside a property path")
        if len(below) == 1:
            return path
        self.changed = True
        return AlternativePath(*below)

    def _refusal(self, what: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{what} in GPM {self._pattern.name} with entailment is not supported by this version",
            hint="write it as triple patterns, or leave out the entailment",
        )


# -- the nodes of patterns


def _bgp(triple: Triple) -> Node:
    return BGP((triple,))


def _with_predicate(s: Any, o: Any) -> Callable[[Any], Triple]:
    return lambda term: (s, term, o)


def _with_object(s: Any, p: Any) -> Callable[[Any], Triple]:
    return lambda term: (s, p, term)


def _extend(node: Node, name: Variable, term: Any) -> Node:
    return Extend(node, str(name), Term(term))


def _no_literal(node: Node, name: Variable) -> Node:
    kept = tuple(Call("!", (Call(kind, (Term(name),)),)) for kind in ("isLITERAL", "isTRIPLE"))
    return Filter(node, Call("&&", kept))
