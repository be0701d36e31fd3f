"""The consequences of a graph under OWL 2 RL, over numbered terms: the rules of W3C OWL 2 Profiles, §4.3, as joins.

The answer is that of the library owlrl, whose lists of datatypes are used. Terms that are owl:sameAs are one while the
rules run (the smallest number stands for all). They are written out at the end, so that they cost only their own
triples. Each round applies all rules to all triples, by joins; transitivity is closed at once, so rounds are few.

The rules here do not cover owl:hasKey, qualified cardinality, negative assertions, lists with two ends, and OWL's
statements about its own equality and lists. These cases, and every inconsistency, whose words are owlrl's, are for
owlrl: `close_owl` reports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import numpy as np
from rdflib.namespace import OWL, RDF, RDFS

from spaseq.core.errors import EventError, OptionError, SpaseqError
from spaseq.core.integers import apart, in_order
from spaseq.core.watch import check, to_hold
from spaseq.rdf.columns.inherited import Hierarchy
from spaseq.rdf.columns.model import IRI, LITERAL
from spaseq.rdf.columns.pairs import (
    NO_PAIRS,
    codes_of,
    common,
    compose,
    meetings,
    met,
    once,
    reached,
    refuse_more,
    shared,
)
from spaseq.rdf.columns.triples import GraphColumns, different, widen
from spaseq.rdf.terms import quiet_literals, term_bytes

_NOT_HERE: Final = (OWL.hasKey, OWL.maxQualifiedCardinality, OWL.sourceIndividual)
_SHOWN: Final = 200
"""Characters of a term in an error."""
_PART: Final = 1 << 20
"""Rows of a rule that are made at a time."""
_INERT: Final = (OWL.sameAs, RDF.first, RDF.rest)
"""Predicates of which nothing may be said: they are read in a way of their own."""
_ALL_DIFFERENT: Final = (OWL.AllDifferent, OWL.AllDisjointProperties)
_VOCABULARY: Final = (
    RDF.type, *_INERT, RDF.Property, RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, RDFS.Datatype,
    OWL.Thing, OWL.Nothing, OWL.Class, OWL.AnnotationProperty, OWL.ObjectProperty, OWL.DatatypeProperty,
    OWL.FunctionalProperty, OWL.InverseFunctionalProperty, OWL.IrreflexiveProperty, OWL.SymmetricProperty,
    OWL.AsymmetricProperty, OWL.TransitiveProperty, OWL.propertyChainAxiom, OWL.equivalentProperty,
    OWL.propertyDisjointWith, OWL.inverseOf, OWL.differentFrom, OWL.intersectionOf, OWL.unionOf, OWL.complementOf,
    OWL.someValuesFrom, OWL.allValuesFrom, OWL.hasValue, OWL.onProperty, OWL.maxCardinality, OWL.oneOf,
    OWL.equivalentClass, OWL.disjointWith, OWL.members, OWL.AllDisjointClasses, *_ALL_DIFFERENT, *_NOT_HERE,
)  # fmt: skip


class _NotHereError(Exception):
    """Says why a graph is for owlrl."""


def close_owl(graph: GraphColumns, most: int | None = None) -> GraphColumns | str:
    """The graph with its consequences under OWL 2 RL; or the reason why it is for owlrl, in words.

    Needs owlrl, for its lists of datatypes. A round costs O((triples + consequences) log triples) and a few steps for
    each restriction, chain, list, and property with a character. Raises `BudgetExceeded` if the closed graph has more
    than `most` triples (`closed_triples`), EventError if a graph that is kept in a file is damaged.
    """
    try:
        return _Closing(graph, most).closed()
    except _NotHereError as reason:
        return str(reason)


def close_owl_rl(
    graph: GraphColumns, most: int | None = None, name: str = "background knowledge"
) -> tuple[GraphColumns, str]:
    """The graph with its consequences under OWL 2 RL, and the reason for the use of owlrl, in words, else nothing.

    The rules run over columns. If they do not cover the graph, or it contradicts itself, owlrl runs, triple by triple.

    Raises `OptionError` if owlrl (the extra `owl`) is not installed. Raises `EventError` with the `name` of the graph
    for input without a rule in owlrl: a list that begins again, a cardinality that is no number. Otherwise as
    `close_owl`.
    """
    try:
        import owlrl
    except ModuleNotFoundError as error:
        raise OptionError(
            f"OWL 2 RL needs {error.name}, which is not installed", "install it: pip install 'spaseq[owl]'"
        ) from None
    found = close_owl(graph, most)
    if isinstance(found, GraphColumns):
        return found, ""

    class Bounded(owlrl.OWLRL_Semantics):
        """owlrl's rules, within limits: they are looked at for each triple that follows."""

        def empty_stored_triples(self) -> None:
            super().empty_stored_triples()
            self.before = len(self.graph)

        def store_triple(self, t: Any) -> None:
            check()
            super().store_triple(t)
            refuse_more(self.before + len(self.added_triples), most)

        def rules(self, t: Any, cycle_num: int) -> None:
            try:
                super().rules(t, cycle_num)
            except SpaseqError:
                raise
            except Exception as error:  # a term is not of the kind, or a list not of the form, that owlrl expects
                said = " ".join(map(_show, t))
                hint = "the list that it names must end with rdf:nil, and what it counts or compares be a literal"
                raise EventError(f"OWL 2 RL has no rule for {said}", source=name, hint=hint) from error

        def _property_chain(self, p: Any, x: Any) -> None:
            """prp-spo2, with each end once: owlrl has one for each way to it, and their number may double at a step."""
            steps = self._list(x)
            own = {step: self._ends(step) for step in steps}
            reached = own[steps[0]] if steps else {}
            for step in steps[1:]:
                check()
                reached = {start: set().union(*(own[step].get(end, ()) for end in ends))
                           for start, ends in reached.items()}  # fmt: skip
            for start, ends in reached.items():
                for end in ends:
                    self.store_triple((start, p, end))

        def _properties(self, triple: Any, cycle_num: int) -> None:
            """prp-key without a choice of one value for each key, of which owlrl has all there are; as there, the last
            key is not compared."""
            kind, predicate, keys = triple
            if predicate != OWL.hasKey:
                super()._properties(triple, cycle_num)
                return
            own = [self._ends(key) for key in self._list(keys)]
            instances = list(self.graph.subjects(RDF.type, kind)) if own else []
            for one in instances:
                if not all(one in values for values in own):
                    continue
                for other in instances:
                    check()
                    if one != other and all(values[one] & values.get(other, set()) for values in own[:-1]):
                        self.store_triple((one, OWL.sameAs, other))

        def _ends(self, predicate: Any) -> dict[Any, set[Any]]:
            """The objects of a predicate's triples, by subject."""
            found: dict[Any, set[Any]] = {}
            for start, _, end in self.graph.triples((None, predicate, None)):
                found.setdefault(start, set()).add(end)
            return found

    closed = graph.graph()
    with quiet_literals():
        owlrl.DeductiveClosure(Bounded, axiomatic_triples=False, datatype_axioms=False).expand(closed)
    return GraphColumns.of(iter(closed)), found  # type: ignore[arg-type]  # rdflib says Node


def _show(term: Any) -> str:
    text: str = term.n3()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class _Closing:
    def __init__(self, graph: GraphColumns, most: int | None) -> None:
        from owlrl.AxiomaticTriples import OWLRL_Datatypes_Disjointness
        from owlrl.OWLRL import OWLRL_Annotation_properties
        from owlrl.XsdDatatypes import OWL_Datatype_Subsumptions, OWL_RL_Datatypes

        from spaseq.rdf.columns.dictionary import Dictionary  # loads the kernels

        self._most = most
        datatypes = dict.fromkeys((*OWL_RL_Datatypes, *OWL_Datatype_Subsumptions))
        names = (*_VOCABULARY, *OWLRL_Annotation_properties, *datatypes)
        dictionary = Dictionary()
        numbers = dictionary.intern([term_bytes(name) for name in names]).tolist()
        self._known = len(dictionary)
        rows = graph.rows_over(dictionary)
        self._terms = dictionary.as_terms(dictionary.finder())
        self._of: dict[Any, int] = dict(zip(names, numbers, strict=True))
        of, kind = self._of, self._of[RDF.type]
        added = [(of[name], kind, of[OWL.Class]) for name in (OWL.Thing, OWL.Nothing)]
        added += [(of[name], kind, of[OWL.AnnotationProperty]) for name in OWLRL_Annotation_properties]
        added += [(of[name], kind, of[RDFS.Datatype]) for name in OWL_RL_Datatypes]
        below = {of[name]: [of[other] for other in above] for name, above in OWL_Datatype_Subsumptions.items()}
        used = {of[name] for name in OWL_RL_Datatypes}
        disjoint = [(of[a], of[b]) for a, _, b in OWLRL_Datatypes_Disjointness]
        typed = self._datatypes(rows, used, below, disjoint)
        self._same = np.arange(len(self._terms), dtype=np.int32)
        whole = different(np.concatenate([rows, _rows(added), *typed]))
        equal = whole[:, 1] == of[OWL.sameAs]
        self._stated: np.ndarray = whole[equal]
        self._graph = GraphColumns(whole[~equal], self._terms)
        self._closed_at: dict[tuple[int, bool], int] = {}
        self._ways: dict[int, tuple[int, tuple[np.ndarray, np.ndarray]]] = {}
        self._above: dict[int, tuple[int, Hierarchy]] = {}
        self._inherited: dict[int, tuple[int, int]] = {}
        self._read: dict[tuple[int, int], np.ndarray] = {}

    # -- datatypes: once, of the stated triples

    def _datatypes(
        self, rows: np.ndarray, used: set[int], below: dict[int, list[int]], disjoint: list[tuple[int, int]]
    ) -> Iterator[np.ndarray]:
        """dt-type1, dt-type2 and an addition of owlrl: the types of literals, and of terms that have datatypes."""
        terms, kind, of = self._terms, self._of[RDF.type], self._of
        there = apart(rows[:, 2])
        literals = there[terms.kind[there] == LITERAL]
        last = terms.text[terms.start[literals] + terms.length[literals] - 1]
        literals = literals[(last == ord(">")) & np.isin(terms.datatype[literals], list(used))]
        self._well_typed(literals)
        stated = rows[(rows[:, 1] == kind) & np.isin(rows[:, 2], list(used))]
        same = rows[rows[:, 1] == of[OWL.sameAs]][:, [0, 2]]
        if np.isin(same, stated[:, 0]).any() or np.isin(same[:, 1], literals).any():
            raise _NotHereError("owl:sameAs of a literal or of a term with a datatype")
        both = np.concatenate([np.stack([literals, terms.datatype[literals]], axis=1), stated[:, [0, 2]]])
        found = set(both[:, 1].tolist())
        yield _triples(both[:, 0], kind, both[:, 1])
        for datatype in sorted(found):
            own = both[both[:, 1] == datatype, 0]
            for other in below.get(datatype, ()):
                found.add(other)
                yield _triples(own, kind, np.full(len(own), other))
                yield _rows([(other, kind, of[RDFS.Datatype])])
        yield _rows([(a, of[OWL.disjointWith], b) for a, b in disjoint if a in found and b in found])

    def _well_typed(self, literals: np.ndarray) -> None:
        from owlrl.DatatypeHandling import AltXSDToPYTHON

        with quiet_literals():
            for number in literals.tolist():
                literal: Any = self._terms.term(number)
                reads = AltXSDToPYTHON.get(literal.datatype)
                if reads is not None:
                    try:
                        reads(str(literal))
                    except Exception as error:
                        raise _NotHereError(f"{literal.n3()} is no value of its datatype") from error

    # -- rounds

    def closed(self) -> GraphColumns:
        """The closed graph. Raises `_NotHereError`."""
        self._check_covered()
        while True:
            before, equal = len(self._graph), NO_PAIRS
            whole = widen(self._graph.rows, self._find(), self._most)
            said = whole[before:, 1] == self._of[OWL.sameAs]
            if said.any():
                equal = whole[before:][said][:, [0, 2]]
                whole = np.concatenate([whole[:before], whole[before:][~said]])
            if merged := self._merge(equal):
                whole = different(self._same[whole])
                self._closed_at.clear()
                self._ways.clear()
                self._above.clear()
                self._inherited.clear()
            if not merged and len(whole) == before:
                break
            self._read.clear()
            self._graph = GraphColumns(whole, self._terms)
        self._check_covered()
        self._check_consistent()
        return GraphColumns(self._written_out(), self._terms)

    def _merge(self, said: np.ndarray) -> bool:
        """Make one term of those stated to be the same, and of these pairs. True if any was not one before."""
        same = self._same
        pairs = once(same[np.concatenate([self._stated[:, [0, 2]], said])])
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        if not len(pairs):
            return False
        # The first of each: literals come last. The larger one of two is put over to the least that it is paired with.
        order = in_order(self._terms.kind == LITERAL).astype(np.int32)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        pairs, top = place[pairs], np.arange(len(order), dtype=np.int32)
        while len(pairs := pairs[pairs[:, 0] != pairs[:, 1]]):
            check()
            np.minimum.at(top, pairs.max(axis=1), pairs.min(axis=1))
            while not np.array_equal(top, above := top[top]):
                top = above
            pairs = top[pairs]
        top = order[top[place]]
        if (top[: self._known] != np.arange(self._known)).any():
            raise _NotHereError("owl:sameAs between words of OWL")
        self._same = top[same]
        self._many = np.bincount(self._same, minlength=len(same)) > 1
        return True

    _many: np.ndarray = np.zeros(0, bool)

    def _differ(self, pairs: np.ndarray) -> np.ndarray:
        """The pairs of two terms, or of one that stands for several."""
        two = pairs[:, 0] != pairs[:, 1]
        return pairs[two | self._many[pairs[:, 0]] if len(self._many) else two]

    # -- the input of the rules

    def _pairs(self, predicate: Any) -> np.ndarray:
        return self._by(self._of[predicate], 0)

    def _by(self, predicate: int, place: int) -> np.ndarray:
        """Subjects and objects of a predicate's triples (`place` 1: objects and subjects), in order."""
        made = self._read.get((predicate, place))
        if made is None:
            low, high = self._graph.groups.get(predicate, (0, 0))
            own = self._graph.rows[low:high]
            made = self._read[predicate, place] = once(own[:, [2, 0] if place else [0, 2]])
        return made

    def _instances(self, kind: int) -> np.ndarray:
        """The terms that have a type, ascending."""
        pairs = self._by(self._of[RDF.type], 1)
        low, high = np.searchsorted(pairs[:, 0], (kind, kind + 1))
        return pairs[low:high, 1]

    def _with(self, character: Any) -> list[int]:
        found: list[int] = self._instances(self._of[character]).tolist()
        return found

    def _lists(self, predicate: Any) -> Iterator[tuple[int, list[int]]]:
        """The subjects of a predicate, and the members of the lists that are its objects."""
        first, rest = self._pairs(RDF.first), self._pairs(RDF.rest)
        firsts, rests = ({s: o for s, o in pairs.tolist()} for pairs in (first, rest))
        twice = {s for pairs in (first, rest) for s in pairs[1:, 0][np.diff(pairs[:, 0]) == 0].tolist()}
        for subject, place in self._pairs(predicate).tolist():
            members, seen, node = [], set(), place
            while node is not None:
                if node in twice or node in seen:
                    raise _NotHereError("a list that has two ends, or none")
                seen.add(node)
                if node in firsts:
                    members.append(firsts[node])
                node = rests.get(node)
            yield subject, members

    def _restrictions(self, predicate: Any) -> np.ndarray:
        """int32 (n, 3): a restriction, its class or value, and its property."""
        pairs, on = self._pairs(predicate), self._pairs(OWL.onProperty)
        mine, theirs = met(pairs[:, 0], on[:, 0], self._most)
        return np.column_stack([pairs[mine], on[theirs, 1]])

    # -- consequences along hierarchies

    def _reach(self, link: int) -> tuple[np.ndarray, np.ndarray]:
        """`reached` of a hierarchy, which several rules follow."""
        low, high = self._graph.groups.get(link, (0, 0))
        known = self._ways.get(link)
        if known is None or known[0] != high - low:
            known = self._ways[link] = (high - low, reached(self._by(link, 0), self._most))
        return known[1]

    def _hierarchy(self, link: int, *, down: bool = False) -> Hierarchy:
        """The terms above each term by a link that is transitive, closed; `down`: the terms below it."""
        low, high = self._graph.groups.get(link, (0, 0))
        known = self._above.get(2 * link + down)
        if known is None or known[0] != high - low:
            pairs = self._reach(link)[0]
            if link == self._of[RDFS.subPropertyOf]:  # no predicate is a literal
                pairs = pairs[self._terms.kind[pairs[:, 1]] != LITERAL]
            made = Hierarchy(pairs[:, ::-1] if down else pairs, len(self._terms))
            known = self._above[2 * link + down] = (high - low, made)
        return known[1]

    def _of_classes(self) -> Iterator[np.ndarray]:
        """The types that follow from the types of the same term."""
        kind, above = self._of[RDF.type], self._hierarchy(self._of[RDFS.subClassOf])
        low, high = self._graph.groups.get(kind, (0, 0))
        if self._inherited.get(kind) == (above.size, high - low):
            return
        types, size = self._graph.rows[low:high], high - low
        for own, ends in above.of_terms(types[:, 0], types[:, 2], self._most):
            size += len(own)
            yield _triples(own, kind, ends)
        self._inherited[kind] = above.size, size

    def _of_properties(self) -> Iterator[np.ndarray]:
        """The triples that follow from triples of the same subject and object."""
        under = self._of[RDFS.subPropertyOf]
        above, groups = self._hierarchy(under), self._graph.groups
        parts = [self._graph.rows[low:high] for predicate, (low, high) in groups.items() if predicate in above]
        size = sum(map(len, parts))
        if self._inherited.get(under) == (above.size, size):
            return
        rows = np.concatenate([_rows([]), *parts])
        for own, predicates, ends in above.of_links(rows[:, 0], rows[:, 1], rows[:, 2], self._most):
            size += len(own)
            yield _triples(own, predicates, ends)
        self._inherited[under] = above.size, size

    # -- rules

    def _find(self) -> Iterator[np.ndarray]:
        """The consequences of the triples. No predicate is a literal."""
        for own in chain(self._properties(), self._classes(), self._schema()):
            yield own if (fits := self._terms.kind[own[:, 1]] != LITERAL).all() else own[fits]

    def _join(self, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """The triples whose predicates begin pairs, and the ends of these."""
        rows, groups = self._graph.rows, self._graph.groups
        for predicate, end in pairs[np.isin(pairs[:, 0], list(groups))].tolist():
            check()
            low, high = groups[predicate]
            for at in range(low, high, _PART):
                yield rows[at : min(at + _PART, high)], end

    def _properties(self) -> Iterator[np.ndarray]:
        """prp-*, without those whose consequences the schema has already (prp-eqp)."""
        kind = self._of[RDF.type]
        yield from self._of_properties()  # prp-spo1
        inverse, symmetric = self._pairs(OWL.inverseOf), self._with(OWL.SymmetricProperty)
        turned = np.concatenate([inverse, inverse[:, ::-1], np.array([symmetric, symmetric], np.int32).T])
        for rows, ends in self._join(once(turned)):
            yield _triples(rows[:, 2], ends, rows[:, 0])  # prp-inv, prp-symp
        for link, place in ((RDFS.domain, 0), (RDFS.range, 2)):
            least = self._pairs(link)
            if len(least) > 1:  # the others by cax-sco
                least = self._hierarchy(self._of[RDFS.subClassOf]).least(least)
            for rows, ends in self._join(least):
                yield _triples(rows[:, place], kind, ends)
        for character, place in ((OWL.FunctionalProperty, 0), (OWL.InverseFunctionalProperty, 1)):
            for number in self._with(character):
                yield self._alike(self._by(number, place))
        for number in self._with(OWL.TransitiveProperty):
            yield from self._transitive(number, loops=True)
        for number, steps in self._lists(OWL.propertyChainAxiom):
            if steps:
                pairs = self._by(steps[0], 0)
                for step in steps[1:]:
                    pairs = compose(pairs, self._by(step, 0), self._most)
                yield _triples(pairs[:, 0], number, pairs[:, 1])

    def _alike(self, pairs: np.ndarray) -> np.ndarray:
        """The second terms of equal first ones are the same."""
        one, other = pairs[:-1], pairs[1:]
        same = one[:, 0] == other[:, 0]
        return _triples(one[same, 1], self._of[OWL.sameAs], other[same, 1])

    def _transitive(self, predicate: int, *, loops: bool) -> Iterator[np.ndarray]:
        """The triples that a transitive predicate adds; `loops`: also from terms to themselves, by a way back."""
        low, high = self._graph.groups.get(predicate, (0, 0))
        if self._closed_at.get((predicate, loops)) == high - low:
            return
        pairs = self._by(predicate, 0)
        found, back = reached(pairs, self._most) if loops else self._reach(predicate)
        if not loops:
            back = back[self._many[back]] if len(self._many) else back[:0]
        back = np.union1d(back, pairs[pairs[:, 0] == pairs[:, 1], 0])
        self._closed_at[predicate, loops] = len(found) + len(back)
        for low in range(0, len(found), _PART):
            yield _triples(found[low : low + _PART, 0], predicate, found[low : low + _PART, 1])
        yield _triples(back, predicate, back)

    def _classes(self) -> Iterator[np.ndarray]:
        """cls-* and cax-*, without those whose consequences the schema has already (cls-int2, cls-uni, cax-eqc)."""
        kind, thing = self._of[RDF.type], self._of[OWL.Thing]
        yield from self._of_classes()  # cax-sco
        for whole, parts in self._lists(OWL.intersectionOf):
            if parts:
                found = self._instances(parts[0])
                for part in parts[1:]:
                    found = shared(found, self._instances(part))
                yield _triples(found, kind, whole)  # cls-int1
        for whole, parts in self._lists(OWL.oneOf):
            yield _rows([(part, kind, whole) for part in parts])
        for own, value, on in self._restrictions(OWL.someValuesFrom).tolist():
            if value == thing:
                yield _triples(apart(self._by(on, 0)[:, 0]), kind, own)
            yield _triples(apart(self._at(self._instances(value), on, 1)), kind, own)
        for own, value, on in self._restrictions(OWL.allValuesFrom).tolist():
            yield _triples(apart(self._at(self._instances(own), on, 0)), kind, value)
        for own, value, on in self._restrictions(OWL.hasValue).tolist():
            yield _triples(self._instances(own), on, value)
            yield _triples(self._at(np.array([value], np.int32), on, 1), kind, own)
        for own, value, on in self._restrictions(OWL.maxCardinality).tolist():
            yield self._at_most(own, value, on)

    def _at(self, terms: np.ndarray, predicate: int, place: int) -> np.ndarray:
        """The other ends of a predicate's triples from `terms`, their subjects (`place` 0) or objects (1)."""
        pairs = self._by(predicate, place)
        return pairs[met(terms, pairs[:, 0])[1], 1]

    def _at_most(self, own: int, value: int, on: int) -> np.ndarray:
        """cls-maxc1 and cls-maxc2."""
        term: Any = self._terms.term(value)
        if self._terms.kind[value] != LITERAL or (len(self._many) and self._many[value]):
            raise _NotHereError("a cardinality that is no literal")
        pairs = self._by(on, 0)
        pairs = pairs[met(self._instances(own), pairs[:, 0])[1]]
        if term.value == 0 and len(pairs):
            raise _NotHereError("an inconsistency (owl:maxCardinality 0)")
        return self._alike(pairs) if term.value == 1 else _rows([])

    def _schema(self) -> Iterator[np.ndarray]:
        """scm-*."""
        of, sub, under = self._of, self._of[RDFS.subClassOf], self._of[RDFS.subPropertyOf]
        classes = self._instances(of[OWL.Class])
        for s, p, o in ((classes, sub, classes), (classes, of[OWL.equivalentClass], classes),
                        (classes, sub, of[OWL.Thing]), (of[OWL.Nothing], sub, classes)):  # fmt: skip
            yield _triples(s, p, o)  # scm-cls
        for character in (OWL.ObjectProperty, OWL.DatatypeProperty, RDF.Property):
            own = self._instances(of[character])
            yield _triples(own, under, own)  # scm-op, scm-dp
            yield _triples(own, of[OWL.equivalentProperty], own)
        for link, same in ((sub, of[OWL.equivalentClass]), (under, of[OWL.equivalentProperty])):
            yield from self._transitive(link, loops=False)  # scm-sco, scm-spo
            pairs = self._by(link, 0)
            pairs = common(pairs, pairs[:, ::-1])
            if link == under:
                pairs = self._differ(pairs)
            yield _triples(pairs[:, 0], same, pairs[:, 1])  # scm-eqc2, scm-eqp2
            pairs = self._differ(self._by(same, 0))
            yield _triples(pairs[:, 0], link, pairs[:, 1])  # scm-eqc1, scm-eqp1
            yield _triples(pairs[:, 1], link, pairs[:, 0])
        for name in (RDFS.domain, RDFS.range):
            if not len(pairs := self._pairs(name)):
                continue
            for properties, ends in self._hierarchy(sub).of_terms(pairs[:, 0], pairs[:, 1], self._most):
                yield _triples(properties, of[name], ends)  # scm-dom1, scm-rng1
            for ends, properties in self._hierarchy(under, down=True).of_terms(pairs[:, 1], pairs[:, 0], self._most):
                yield _triples(properties, of[name], ends)  # scm-dom2, scm-rng2
        above, over = self._by(sub, 0), self._by(under, 0)
        for whole, parts in self._lists(OWL.intersectionOf):
            yield _rows([(whole, sub, part) for part in parts])
        for whole, parts in self._lists(OWL.unionOf):
            yield _rows([(part, sub, whole) for part in parts])
        for name, turned in ((OWL.someValuesFrom, False), (OWL.allValuesFrom, True), (OWL.hasValue, False)):
            own = self._restrictions(name)
            if name != OWL.hasValue:
                yield from self._order(own, 1, above)  # scm-svf1, scm-avf1
            for found in self._order(own, 2, over):  # scm-svf2, scm-avf2, scm-hv
                yield found[:, [2, 1, 0]] if turned else found

    def _order(self, own: np.ndarray, place: int, above: np.ndarray) -> Iterator[np.ndarray]:
        """A restriction is below those that differ in its class (`place` 1) or property (2), which is above its own."""
        codes = codes_of(own[:, 1:])
        order = np.argsort(codes)
        for mine, theirs in meetings(own[:, place], above[:, 0]):
            wider = own[mine]
            wider[:, place] = above[theirs, 1]
            for one, other in meetings(codes_of(wider[:, 1:]), codes[order]):
                yield _triples(wider[one, 0], self._of[RDFS.subClassOf], own[order[other], 0])

    # -- at the end

    def _check_covered(self) -> None:
        """Raises `_NotHereError` if the graph has statements that are for owlrl."""
        for name in _NOT_HERE:
            if self._of[name] in self._graph.groups:
                raise _NotHereError(name.n3())
        inert = [self._of[name] for name in _INERT]
        if self._present((0, 2))[inert].any():
            raise _NotHereError("something said about owl:sameAs, rdf:first or rdf:rest")
        for name in _ALL_DIFFERENT:
            if len(self._instances(self._of[name])):
                raise _NotHereError(name.n3())

    def _check_consistent(self) -> None:
        """Raises `_NotHereError` if the closed graph contradicts itself."""
        of = self._of
        different_ = self._pairs(OWL.differentFrom)
        wrong = [(different_[:, 0] == different_[:, 1]).any(), len(self._instances(of[OWL.Nothing]))]
        for number in self._with(OWL.IrreflexiveProperty):
            pairs = self._by(number, 0)
            wrong.append((pairs[:, 0] == pairs[:, 1]).any())
        for number in self._with(OWL.AsymmetricProperty):
            wrong.append(len(common(self._by(number, 0), self._by(number, 1))))
        for one, other in self._pairs(OWL.propertyDisjointWith).tolist():
            wrong.append(len(common(self._by(one, 0), self._by(other, 0))))
        for name in (OWL.complementOf, OWL.disjointWith):
            for one, other in self._pairs(name).tolist():
                wrong.append(len(shared(self._instances(one), self._instances(other))))
        disjoint = set(self._with(OWL.AllDisjointClasses))
        for node, members in self._lists(OWL.members) if disjoint else ():
            every = np.concatenate([NO_PAIRS[:, 0], *map(self._instances, members)])
            wrong.append(node in disjoint and len(apart(every)) < len(every))
        if any(wrong):
            raise _NotHereError("an inconsistency")

    def _present(self, places: tuple[int, ...]) -> np.ndarray:
        """bool, by term: True if triples have it at one of `places`."""
        found = np.zeros(len(self._terms), bool)
        for rows in (self._graph.rows, self._same[self._stated]):
            for place in places:
                found[rows[:, place]] = True
        return found

    def _written_out(self) -> np.ndarray:
        """The rows with all terms in the places of those that stand for them, and the rows that each term is the same
        as itself. Rows with a blank node for a predicate are left out."""
        rows, link, kind = self._graph.rows, self._of[OWL.sameAs], self._terms.kind
        present = self._present((0, 1, 2))
        present[link] = True
        every = np.flatnonzero(present)
        rows = np.concatenate([rows, _triples(every, link, every)])
        if len(self._many):
            order = in_order(self._same).astype(np.int32)
            for place in range(3):
                rows = self._each_for_one(rows, place, order)
        refuse_more(len(rows), self._most)
        fits = kind[rows[:, 1]] == IRI
        return rows if fits.all() else rows[fits]

    def _each_for_one(self, rows: np.ndarray, place: int, order: np.ndarray) -> np.ndarray:
        """The rows with all terms at `place` that the one there stands for; `order` has those of one together."""
        keys = self._same[order]
        size = int(np.bincount(self._same, minlength=len(keys))[rows[:, place]].sum())
        refuse_more(size, self._most)
        to_hold(12 * size)
        made, to = np.empty((size, 3), np.int32), 0
        for mine, theirs in meetings(rows[:, place], keys):
            own = made[to : to + len(mine)]
            own[:] = rows[mine]
            own[:, place] = order[theirs]
            to += len(mine)
        return made


def _rows(triples: list[tuple[int, int, int]]) -> np.ndarray:
    return np.array(triples, np.int32).reshape(-1, 3)


def _triples(s: Any, p: Any, o: Any) -> np.ndarray:
    """The rows of terms, of which any may be one for all."""
    made = np.empty((max(map(np.size, (s, p, o))) if np.size(s) and np.size(o) else 0, 3), np.int32)
    made[:, 0], made[:, 1], made[:, 2] = s, p, o
    return made
