"""Triple terms in graph patterns and templates (SPARQL 1.2 §4.1.5), as the algebra of SPARQL 1.1 with functions.

The grammar writes a triple term as a blank node with three triples, whose predicates are `PARTS`. So rdflib's
translation, and every rule about variables and blank nodes, see what stands inside. Here they become

* a constant, if it names no variable and no blank node;
* else a variable `?t` of its own in the triple, and FILTER (isTRIPLE(?t)). The parts follow: BIND (SUBJECT(?t) AS ?x)
  if ?x has no value yet, else FILTER (sameTerm(SUBJECT(?t), x)). That is the unification of the pattern with the term.

Such triples are matched apart from the others, and joined with them by the variables that they share. Variables of our
own are projected away, so the solutions are those of the basic graph pattern. Blank nodes become such variables, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.gpm.algebra import BGP, Bound, Call, Expression, Filter, Join, Node, Projected, Term, rebuild, visible
from spaseq.rdf import TripleTerm

SUBJECT: Final = URIRef("triple:\x1fsubject")
PREDICATE: Final = URIRef("triple:\x1fpredicate")
OBJECT: Final = URIRef("triple:\x1fobject")
PARTS: Final = (SUBJECT, PREDICATE, OBJECT)
"""The predicates of the triples that describe a triple term. No query can name them, and
no base changes them."""
_FUNCTIONS: Final = ("SUBJECT", "PREDICATE", "OBJECT")
_OWN: Final = "__triple "
_NODE: Final = "__node "
"""Variables of our own: for triple terms, and for blank nodes."""

_Triple = tuple[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple term with variables or blank nodes in it, or a triple term as a subject, which matches nothing."""

    subject: Any
    predicate: Any
    object: Any

    @property
    def parts(self) -> _Triple:
        """Subject, predicate and object."""
        return self.subject, self.predicate, self.object


def nest(triples: Iterable[_Triple]) -> list[_Triple]:
    """The triples with a `TripleTerm` or a `TriplePattern` for each triple term that the grammar described."""
    described: dict[Any, dict[Any, Any]] = {}
    plain = []
    for triple in triples:
        if triple[1] in PARTS and isinstance(triple[1], URIRef):
            described.setdefault(triple[0], {})[triple[1]] = triple[2]
        else:
            plain.append(triple)
    if not described:
        return plain

    def make(term: Any) -> Any:
        parts = described.get(term) if isinstance(term, BNode) else None
        if parts is None:
            return term
        subject, predicate, object = (make(parts[part]) for part in PARTS)
        open_ = any(isinstance(part, (BNode, Variable, TriplePattern)) for part in (subject, predicate, object))
        known = not open_ and isinstance(subject, URIRef) and isinstance(predicate, URIRef)
        return TripleTerm(subject, predicate, object) if known else TriplePattern(subject, predicate, object)

    return [(make(s), p, make(o)) for s, p, o in plain]


def with_triple_terms(node: Node) -> Node:
    """`node` with the triple terms in its basic graph patterns as the algebra evaluates them; also inside EXISTS."""
    if not isinstance(node, BGP):
        found: Node = rebuild(node, with_triple_terms)
        return found
    triples = nest(node.triples)
    if not any(isinstance(term, TriplePattern) for triple in triples for term in triple):
        return BGP(tuple(triples)) if len(triples) < len(node.triples) else node
    return _match([tuple(map(_with_variables, triple)) for triple in triples])


def _with_variables(term: Any) -> Any:
    """A term of a pattern with variables for blank nodes."""
    match term:
        case BNode():
            return Variable(f"{_NODE}{term}")
        case TriplePattern(s, p, o):
            return TriplePattern(_with_variables(s), _with_variables(p), _with_variables(o))
        case _:
            return term


def _match(triples: Sequence[_Triple]) -> Node:
    """A basic graph pattern with triple terms, without blank nodes."""
    plain = [triple for triple in triples if not any(isinstance(term, TriplePattern) for term in triple)]
    units: list[Node] = [BGP(part) for part in _components(plain)]
    taken = 0
    for triple in triples:
        patterns = [term for term in triple if isinstance(term, TriplePattern)]
        if patterns:
            names = {pattern: Variable(f"{_OWN}{taken + place}") for place, pattern in enumerate(patterns)}
            taken += _size(patterns)
            s, p, o = (names.get(term, term) if isinstance(term, TriplePattern) else term for term in triple)
            unit: Node = BGP(((s, p, o),))
            fresh = iter(range(taken - _size(patterns) + len(patterns), taken))
            for pattern, name in names.items():
                unit = _unify(unit, name, pattern, fresh)
            units.append(unit)
    whole = units.pop(0)
    while units:  # those that share variables first, so that no pairs are made that a later join leaves out
        bound = visible(whole)
        best = max(units, key=lambda unit: bool(bound & visible(unit)))
        units.remove(best)
        whole = Join(whole, best)
    return Projected(whole, tuple(sorted(name for name in visible(whole) if not name.startswith((_OWN, _NODE)))))


def _size(patterns: Iterable[TriplePattern]) -> int:
    """The number of patterns, and of those inside them."""
    return sum(1 + _size(part for part in p.parts if isinstance(part, TriplePattern)) for p in patterns)


def _unify(node: Node, name: Variable, pattern: TriplePattern, fresh: Any) -> Node:
    """`node` with the term of the variable `name` unified with a pattern; `fresh` numbers further variables."""
    term = Term(name)
    node = Filter(node, Call("isTRIPLE", (term,)))
    for function, part in zip(_FUNCTIONS, pattern.parts, strict=True):
        value: Expression = Call(function, (term,))
        if isinstance(part, TriplePattern):
            inner = Variable(f"{_OWN}{next(fresh)}")
            node = _unify(Bound(node, str(inner), value), inner, part, fresh)
        elif isinstance(part, Variable) and str(part) not in visible(node):
            node = Bound(node, str(part), value)
        else:
            node = Filter(node, Call("sameTerm", (value, Term(part))))
    return node


def _components(triples: Sequence[_Triple]) -> list[tuple[_Triple, ...]]:
    """The triples in groups of those that share variables, directly or through others."""
    groups: list[tuple[set[Any], list[_Triple]]] = []
    for triple in triples:
        names = {term for term in triple if isinstance(term, Variable)}
        near = [group for group in groups if group[0] & names]
        groups = [group for group in groups if not group[0] & names]
        joined = [own for _, group in near for own in group]
        groups.append((names.union(*(others for others, _ in near)), [*joined, triple]))
    return [tuple(group) for _, group in groups]


# -- templates


def nodes_of(term: Any) -> set[BNode]:
    """The blank nodes of a term of a template, also inside triple terms."""
    if isinstance(term, TriplePattern):
        return set().union(*map(nodes_of, term.parts))
    return {term} if isinstance(term, BNode) else set()


def fill(term: Any, terms: Mapping[Any, Any]) -> Any:
    """A term of a template with `terms` for its variables and blank nodes. None for a triple term that is none: with a
    variable without a term, or a literal as its subject."""
    if not isinstance(term, TriplePattern):
        return terms.get(term, term)
    subject, predicate, object = (fill(part, terms) for part in term.parts)
    node = isinstance(subject, (URIRef, BNode)) and isinstance(predicate, URIRef)
    value = isinstance(object, Identifier) and not isinstance(object, Variable)
    return TripleTerm(subject, predicate, object) if node and value else None


def is_object(term: Any) -> bool:
    """True if a term may be the object of a triple."""
    return isinstance(term, (URIRef, BNode, Literal, TripleTerm))
