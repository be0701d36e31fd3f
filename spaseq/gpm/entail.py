"""RDFS entailment: the background knowledge is closed and graph patterns are rewritten, so that streams need no change.

The rules are those with consequences for instances: rdfs7 and rdfs9 (sub-properties, subclasses), rdfs2 and rdfs3
(domain, range), with the schema closed under rdfs5 and rdfs11. The schema comes from all graphs of the background
knowledge together, and from nothing else. Axiomatic triples (everything is an rdfs:Resource) are left out.

`close_knowledge` adds the consequences to each graph. `entailed` rewrites a GPM to one whose solutions on an event are
those of the GPM on the event's closure: each triple pattern becomes the union of the patterns whose triples entail it,
without duplicates. So the work on streams grows with the patterns, not with the triples that events entail. More than a
few classes or properties are one pattern with a variable in their place, joined with VALUES: an event's terms are
looked up there, so its cost does not grow with the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

from pyparsing import ParseResults
from rdflib import Graph
from rdflib.namespace import RDF, RDFS
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.term import BNode, Literal, URIRef, Variable

from spaseq.errors import UnsupportedFeature
from spaseq.gpm import algebra
from spaseq.gpm.pattern import Condition, GraphPattern, Part
from spaseq.pattern import balanced

__all__ = ["Schema", "close_knowledge", "entailed"]

Terms = Mapping[Any, frozenset[Any]]
Triple = tuple[Any, Any, Any]
_NOTHING: Final[frozenset[Any]] = frozenset()
_CLASSES: Final = 8
"""More classes than these are looked up, not written out."""
_PROPERTIES: Final = 64
"""The same of properties, in whose place a variable makes all triples of an event be looked at."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema, closed: for each class and each property those above it (without itself), and for each property the
    classes of its subjects (domain) and of its objects (range)."""

    classes: Terms
    properties: Terms
    domains: Terms
    ranges: Terms

    def named(self) -> Schema:
        """The schema without classes and properties that are blank nodes: neither events nor patterns can name them."""
        return Schema(*(_named(terms) for terms in (self.classes, self.properties, self.domains, self.ranges)))

    def described(self) -> str:
        """A short text for the schema, with a hash of its contents; the same in every process."""
        digest = sha256()
        named = self.named()
        parts = (named.classes, named.properties, named.domains, named.ranges)
        for terms in parts:
            for term, over in sorted((str(term), sorted(map(str, over))) for term, over in terms.items()):
                digest.update("\n".join(["", term, *over]).encode())
        names = ("classes", "properties", "domains", "ranges")
        counted = ", ".join(f"{len(terms)} {name}" for name, terms in zip(names, parts, strict=True))
        return f"{counted} ({digest.hexdigest()[:16]})"

    def below(self, what: Terms, above: Any) -> list[Any]:
        """`above` and all that are below it."""
        return [above, *sorted((term for term, over in what.items() if above in over and term != above), key=str)]


def _named(terms: Terms) -> Terms:
    return {
        term: frozenset(kind for kind in over if isinstance(kind, URIRef))
        for term, over in terms.items()
        if isinstance(term, URIRef)
    }


def close_knowledge(graphs: Mapping[str, Graph]) -> tuple[dict[str, Graph], Schema]:
    """Copies of the graphs with their consequences, and the schema of all of them together.

    O(triples · consequences of a triple), repeated while the schema grows: consequences add to it if, for example, a
    property is a sub-property of rdfs:subClassOf.
    """
    closed = dict(graphs)
    while True:
        schema = _schema_of(closed.values())
        grown = {iri: _closed(graph, schema) for iri, graph in closed.items()}
        if sum(map(len, grown.values())) == sum(map(len, closed.values())):
            return grown, schema
        closed = grown


def _schema_of(graphs: Iterable[Graph]) -> Schema:
    direct: dict[URIRef, dict[Any, set[Any]]] = {
        link: {} for link in (RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range)
    }
    for graph in graphs:
        for link, found in direct.items():
            for s, o in graph.subject_objects(link):
                found.setdefault(s, set()).add(o)
    classes, properties = _transitive(direct[RDFS.subClassOf]), _transitive(direct[RDFS.subPropertyOf])
    domains, ranges = (_inherited(direct[link], properties, classes) for link in (RDFS.domain, RDFS.range))
    return Schema(classes, properties, domains, ranges)


def _transitive(direct: Mapping[Any, set[Any]]) -> dict[Any, frozenset[Any]]:
    found: dict[Any, frozenset[Any]] = {}
    for start in direct:
        above: set[Any] = set()
        queue = list(direct[start])
        while queue:
            term = queue.pop()
            if term not in above:
                above.add(term)
                queue += direct.get(term, ())
        found[start] = frozenset(above - {start})
    return found


def _inherited(stated: Mapping[Any, set[Any]], properties: Terms, classes: Terms) -> dict[Any, frozenset[Any]]:
    """For each property the classes stated for it or for a property above it, and all classes above these."""
    found: dict[Any, frozenset[Any]] = {}
    for name in {*stated, *properties}:
        own = {c for p in (name, *properties.get(name, ())) for c in stated.get(p, ())}
        found[name] = frozenset(own.union(*(classes.get(c, _NOTHING) for c in own)))
    return {name: over for name, over in found.items() if over}


def _closed(graph: Graph, schema: Schema) -> Graph:
    closed = Graph(identifier=graph.identifier, bind_namespaces="none")
    for s, p, o in graph:
        closed.add((s, p, o))
        for above in schema.properties.get(p, ()):
            closed.add((s, above, o))
        for kind in schema.domains.get(p, ()):
            closed.add((s, RDF.type, kind))
        if not isinstance(o, Literal):
            for kind in schema.ranges.get(p, ()):
                closed.add((o, RDF.type, kind))
        for link, terms in ((RDF.type, schema.classes), (RDFS.subClassOf, schema.classes),
                            (RDFS.subPropertyOf, schema.properties)):  # fmt: skip
            if p == link:
                for above in terms.get(o, ()):
                    closed.add((s, link, above))
    return closed


# -- patterns


def entailed(pattern: GraphPattern, schema: Schema) -> GraphPattern:
    """The GPM whose solutions on an event graph are those of `pattern` on the closure of the graph under `schema`.

    Parts under GRAPH read closed knowledge and are not changed. Classes that are blank nodes are ignored. Raises
    `UnsupportedFeature` for rdf:type inside a property path, and for a negated property set.
    """
    rewriter = _Rewriter(pattern, schema.named())
    handle = rewriter.rewrite(pattern.event.handle)
    local, correlated = (tuple(map(rewriter.condition, group)) for group in (pattern.local, pattern.correlated))
    if not rewriter.changed:
        return pattern
    names = [Variable(name) for name in sorted(algebra.visible(pattern.event.node))]
    handle = _subselect(handle, names)  # hides the variables that replace blank nodes
    node = algebra.convert(handle)
    required = algebra.required_predicates(node)
    return replace(pattern, event=Part(node, handle), local=local, correlated=correlated, required=required)


class _Rewriter:
    def __init__(self, pattern: GraphPattern, schema: Schema) -> None:
        self._pattern = pattern
        self._schema = schema
        self._fresh = 0
        self.changed = False

    def rewrite(self, value: Any) -> Any:
        """A copy of the algebra (or expression) with its basic graph patterns rewritten."""
        if isinstance(value, CompValue):
            if value.name == "Graph":
                return value
            if value.name == "BGP":
                return self._basic(value)
            copy = CompValue(value.name) if not isinstance(value, Expr) else Expr(value.name, _function(value))
            for name, child in value.items():
                copy[name] = self.rewrite(child)
            for name, child in vars(value).items():  # rdflib keeps the pattern of EXISTS as an attribute
                if name not in ("name", "ctx", "_evalfn"):
                    setattr(copy, name, self.rewrite(child))
            return copy
        if isinstance(value, (list, ParseResults)):
            return [self.rewrite(child) for child in value]
        return value

    def condition(self, condition: Condition) -> Condition:
        """A condition with the patterns of its EXISTS rewritten."""
        if not algebra.has_exists(condition.expression):
            return condition
        handle = self.rewrite(condition.handle)
        return replace(condition, expression=algebra.convert_expression(handle), handle=handle)

    def _basic(self, node: CompValue) -> CompValue:
        kept, joined = [], []
        for triple in node.triples:
            s, p, o = (Variable(f"__b{term}") if isinstance(term, BNode) else term for term in triple)
            if isinstance(p, Path):
                p = self._path(p)
            found = list(self._alternatives(s, p, o)) if not isinstance(p, Path) else []
            if len(found) > 1:
                names = [term for term in (s, p, o) if isinstance(term, Variable)]
                joined.append(_subselect(_union(found), list(dict.fromkeys(names)), distinct=True))
                self.changed = True
            else:
                kept.append((s, p, o))
        whole = _bgp(kept)
        for part in joined:
            whole = part if whole.name == "BGP" and not whole.triples else _binary("Join", whole, part)
        return whole

    # -- the triples that entail a triple

    def _alternatives(self, s: Any, p: Any, o: Any) -> Iterator[CompValue]:
        """A pattern for each way to entail `s p o`, the triple itself first."""
        yield _bgp([(s, p, o)])
        if not isinstance(p, Variable):
            yield from self._derived(s, p, o)
            return
        properties = self._schema.properties
        pairs = _by_text((below, name) for below, over in properties.items() for name in over)
        many = len(pairs) > _PROPERTIES
        if many:
            yield self._looked_up(_with_predicate(s, o), (p,), pairs)
        above = {RDF.type, *properties.get(RDF.type, ())}
        if not many:
            above = above.union(properties, *properties.values())
        for name in sorted(above):
            s_now, o_now = (name if term == p else term for term in (s, o))
            for pattern in self._typed(s_now, o_now) if many else self._derived(s_now, name, o_now):
                yield _extended(pattern, p, name)

    def _derived(self, s: Any, p: URIRef, o: Any) -> Iterator[CompValue]:
        """A pattern for each other way to entail `s p o`, p being known."""
        names = self._schema.below(self._schema.properties, p)
        yield from self._each_of(_with_predicate(s, o), names[1:], _PROPERTIES)
        if RDF.type in names:
            yield from self._typed(s, o)

    def _each_of(self, triple: Callable[[Any], Triple], terms: Sequence[Any], most: int) -> Iterator[CompValue]:
        """Patterns for the triples with any of `terms`: one each, or if there are more than `most` one for all."""
        if len(terms) > most:
            yield self._looked_up(triple, (), [(term,) for term in terms])
        else:
            yield from (_bgp([triple(term)]) for term in terms)

    def _looked_up(
        self, triple: Callable[[Any], Triple], names: tuple[Variable, ...], rows: Sequence[tuple[Any, ...]]
    ) -> CompValue:
        """The triples with the first term of a row, and for each the row's other terms as `names`."""
        term = self._new()
        return _binary("Join", _bgp([triple(term)]), _inline((term, *names), rows))

    def _typed(self, s: Any, o: Any) -> Iterator[CompValue]:
        """A pattern for each way to entail `s rdf:type o` by the schema's classes."""
        if not isinstance(o, Variable):
            yield from self._instances(s, o)
            return
        schema = self._schema
        pairs = _by_text((below, kind) for below, over in schema.classes.items() for kind in over)
        for name in schema.below(schema.properties, RDF.type):
            yield from self._all_of(_with_object(s, name), o, pairs, _CLASSES)
        for stated, is_domain in ((schema.domains, True), (schema.ranges, False)):
            pairs = _by_text((name, kind) for name, kinds in stated.items() for kind in kinds)
            other = self._new()
            ends = (s, other) if is_domain else (other, s)
            for found in self._all_of(_with_predicate(*ends), o, pairs, _PROPERTIES):
                yield found if is_domain or not isinstance(s, Variable) else _no_literal(found, s)

    def _all_of(
        self, triple: Callable[[Any], Triple], name: Variable, pairs: Sequence[tuple[Any, Any]], most: int
    ) -> Iterator[CompValue]:
        """Patterns for the triples with the first term of any of `pairs`, the second being `name`."""
        if len(pairs) > most:
            yield self._looked_up(triple, (name,), pairs)
            return
        for term, value in pairs:
            s, p, o = (value if end == name else end for end in triple(term))
            yield _extended(_bgp([(s, p, o)]), name, value)

    def _instances(self, s: Any, kind: Any) -> Iterator[CompValue]:
        schema = self._schema
        below = schema.below(schema.classes, kind)[1:]
        for name in schema.below(schema.properties, RDF.type):
            yield from self._each_of(_with_object(s, name), below, _CLASSES)
        other = self._new()
        names = sorted(p for p, kinds in schema.domains.items() if kind in kinds)
        yield from self._each_of(_with_predicate(s, other), names, _PROPERTIES)
        names = sorted(p for p, kinds in schema.ranges.items() if kind in kinds)
        for found in self._each_of(_with_predicate(other, s), names, _PROPERTIES):
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
                raise self._refused("a negated property set")
        below = self._schema.below(self._schema.properties, path)
        if RDF.type in below and (self._schema.classes or self._schema.domains or self._schema.ranges):
            raise self._refused("rdf:type inside a property path")
        if len(below) == 1:
            return path
        self.changed = True
        return AlternativePath(*below)

    def _refused(self, what: str) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{what} in GPM {self._pattern.name} with entailment is not supported by this version",
            hint="write it as triple patterns, or leave out the entailment",
        )


# -- rdflib's algebra


def _bgp(triples: list[Triple]) -> CompValue:
    names = {term for triple in triples for term in triple if isinstance(term, Variable)}
    return CompValue("BGP", triples=triples, _vars=names)


def _binary(name: str, left: CompValue, right: CompValue) -> CompValue:
    more = {"lazy": False} if name == "Join" else {}
    return CompValue(name, p1=left, p2=right, _vars=set(left._vars or ()) | set(right._vars or ()), **more)


def _by_text(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Pairs of IRIs in order."""
    # PERF: of the classes of a large schema there are many pairs, and IRIs of rdflib compare themselves in Python.
    return sorted(pairs, key=lambda pair: (str(pair[0]), str(pair[1])))


def _with_predicate(s: Any, o: Any) -> Callable[[Any], Triple]:
    return lambda term: (s, term, o)


def _with_object(s: Any, p: Any) -> Callable[[Any], Triple]:
    return lambda term: (s, p, term)


def _inline(names: tuple[Variable, ...], rows: Sequence[tuple[Any, ...]]) -> CompValue:
    """VALUES."""
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return CompValue("ToMultiSet", p=CompValue("values", res=found), _vars=set(names))


def _union(parts: list[CompValue]) -> CompValue:
    return balanced(partial(_binary, "Union"), parts)


def _extended(node: CompValue, name: Variable, term: Any) -> CompValue:
    return CompValue("Extend", p=node, expr=term, var=name, _vars=set(node._vars or ()) | {name})


def _subselect(node: CompValue, names: list[Variable], *, distinct: bool = False) -> CompValue:
    inner = CompValue("Project", p=node, PV=names, _vars=set(names))
    if distinct:
        inner = CompValue("Distinct", p=inner, _vars=set(names))
    return CompValue("ToMultiSet", p=inner, _vars=set(names))


def _no_literal(node: CompValue, name: Variable) -> CompValue:
    return CompValue("Filter", p=node, expr=_not_literal(str(name)), _vars=set(node._vars or ()))


def _function(expression: Any) -> Any:
    """The function that evaluates an expression of rdflib, unbound, for a copy of the expression."""
    return getattr(expression._evalfn, "__func__", expression._evalfn)


def _not_literal(name: str) -> Any:
    query = translateQuery(parseQuery(f"SELECT * WHERE {{ ?{name} ?__p ?__o FILTER (!isLiteral(?{name})) }}"))
    return query.algebra.p.p.expr
