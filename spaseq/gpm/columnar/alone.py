"""One small graph by itself: the plan's results on a batch of one event, over rdflib's terms, without arrays.

A pushed graph has a few triples, for which the plan's arrays cost more than the work on them. `prepare` compiles a GPM
for that case, once. The triple patterns of a basic graph pattern have the batch's order (`basic_pattern`), and FILTERs
of the whole the truth of `spaseq.gpm.columnar.truth`. All other operators are those of the reference
(`spaseq.gpm.reference`), which matches triples by this module. The plan stays the definition, and evaluates other
patterns and graphs with many candidates (`PAIRS`, `READ`). Tests compare the two.

PERF: three triple patterns on eight triples (benchmarks/pushes.py): the plan on a batch of one 38 µs, 11 here. A whole
push with a plain pattern took 41 µs. With OPTIONAL it took 307 by the plan and 102 here, with UNION and a path 472 and
113. The average and the sum of a group took 1,585 and 156 (a busy machine).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeGuard

from rdflib.plugins.sparql.sparql import Prologue, SPARQLError
from rdflib.term import Identifier, Literal, URIRef, Variable

from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import BudgetExceeded
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.amounts import error_of
from spaseq.gpm.columnar.basic import basic_pattern
from spaseq.gpm.columnar.coverage import counts, uncovered
from spaseq.gpm.columnar.rewrites import first_part, with_first_part
from spaseq.gpm.columnar.truth import ERROR, FALSE, TRUE, is_arithmetic
from spaseq.gpm.expressions import Row, is_true, verdict
from spaseq.gpm.mappings import Mapping as Solution
from spaseq.gpm.property_paths import Path, negates
from spaseq.gpm.reference import Context, evaluating, solutions
from spaseq.rdf import Triple, TripleTerm, plain_literal
from spaseq.rdf.columns import number_of_term

PAIRS: Final = 64
"""The greatest number of pairs of a solution so far and a triple at one step; with more the plan is faster."""
READ: Final = 512
"""The greatest number of triples that property paths read, each time counted."""
FEW: Final = 4
"""So many graphs with other operators that are pushed at once are solved one by one. PERF: with OPTIONAL, four take
123 µs a graph by the plan and 90 one by one, ten 75 and 103. With arithmetic in a FILTER one takes 193 and 126, four 76
and 118."""
MANY: Final = 1 << 30
"""The same for graphs without other operators, and with aggregates (ten: 251 µs by the plan, 144 one by one)."""

Listed = tuple[Mapping[int, Sequence[Triple]], Sequence[Triple]]
"""The triples of a graph that some pattern can use: by the number of their predicate, and all of them."""

_Row = list[Any]
"""The terms of a solution, by slot."""
_Test = Callable[[_Row], int]
"""The truth of a condition for a row: `TRUE`, `FALSE` or `ERROR`."""


def listed(triples: Sequence[Triple], places: Sequence[int | None], *, every: bool) -> Listed:
    """The triples of a graph whose predicates have the numbers `places`, or None. `every`: True if a pattern reads
    triples of any predicate."""
    by_predicate: dict[int, list[Triple]] = {}
    whole: list[Triple] = []
    for (subject, predicate, term), place in zip(triples, places, strict=True):
        if place is None and not every:
            continue
        triple = subject, predicate, plain_literal(term)
        if place is not None and isinstance(predicate, URIRef):
            by_predicate.setdefault(place, []).append(triple)
        if every:
            whole.append(triple)
    return by_predicate, whole


@dataclass(frozen=True, slots=True)
class GraphRows:
    """The solutions of a GPM on one graph: terms by slot, of which `names` gives each variable's; None if it is
    unbound. `kept`: True if the GPM's own FILTERs are true. Rows may be equal."""

    names: tuple[tuple[str, int], ...]
    rows: list[_Row]
    kept: list[bool]

    def mapping(self, row: int, names: Sequence[str] | None) -> Solution:
        """As of `Solutions`."""
        terms = self.rows[row]
        own = [(name, terms[slot]) for name, slot in self.names if names is None or name in names]
        return tuple([pair for pair in own if pair[1] is not None])


_NOTHING: Final = GraphRows((), [], [])


class Alone(Protocol):
    """A GPM made ready by `prepare`. `most`: so many graphs pushed at once are solved one by one; with more the
    plan is faster."""

    most: int

    def solve(self, graph: Listed) -> GraphRows | None:
        """The solutions on a graph; None if there is too much to try."""


class _Triples:
    """A basic graph pattern without paths, as `match` reads it."""

    __slots__ = ("names", "slots", "steps")

    def __init__(self, node: algebra.BGP, given: Sequence[Variable], places: Mapping[str, int]) -> None:
        pattern = basic_pattern(node, given)
        self.names = pattern.names
        known = {slot: term for step in pattern.steps for (_, slot), term in zip(step.places, step.terms, strict=True)}
        self.slots = (*given, *(known[slot] for slot in range(len(given), pattern.slots)))
        self.steps = tuple(_step(step.predicate, step.places, step.terms, places) for step in pattern.steps)

    def match(self, graph: Listed, given: _Row) -> list[_Row] | None:
        """The solutions on a graph that have the terms `given` in their first slots; None if there is too much to
        try."""
        by_predicate, whole = graph
        rows: list[_Row] = [given]
        for predicate, tried in self.steps:
            triples = whole if predicate is None else by_predicate.get(predicate, ())
            if len(rows) * len(triples) > PAIRS:
                return None
            found = []
            for row in rows:
                for triple in triples:
                    terms = row.copy()
                    for place, what, value in tried:
                        term = triple[place]
                        if what == k.FILL:
                            terms.append(term)
                            continue
                        other = terms[value] if what == k.SAME else value
                        if term is not other and term != other:
                            break
                    else:
                        found.append(terms)
            rows = found
        return rows


class _Basic:
    """A basic graph pattern under FILTERs."""

    __slots__ = ("_tests", "_triples", "most")

    def __init__(self, triples: _Triples, tests: tuple[_Test, ...], most: int) -> None:
        self.most = most
        self._triples = triples
        self._tests = tests

    def solve(self, graph: Listed) -> GraphRows | None:
        rows = self._triples.match(graph, [])
        if rows is None:
            return None
        tests = self._tests
        return GraphRows(self._triples.names, rows, [all(test(row) == TRUE for test in tests) for row in rows])


class _Algebra:
    """A pattern of any operators: by the rules of the reference, with triples matched here."""

    __slots__ = (
        "_counting",
        "_exists",
        "_first",
        "_leaf",
        "_made",
        "_names",
        "_node",
        "_places",
        "_prologue",
        "_tests",
        "most",
    )

    def __init__(
        self,
        node: algebra.Node,
        conditions: Sequence[algebra.Expression],
        prologue: Prologue,
        places: Mapping[str, int],
    ) -> None:
        self._names = tuple((name, slot) for slot, name in enumerate(sorted(algebra.visible(node))))
        self._first = _first(node, prologue, places)
        self._leaf = algebra.Values(())
        self._node = node if self._first is None else with_first_part(node, self._leaf)
        self._prologue = prologue
        self._places = places
        slots = dict(self._names)
        self._tests = tuple(_test(c, slots, prologue) for c in conditions if not algebra.has_exists(c))
        self._exists = tuple(c for c in conditions if algebra.has_exists(c))
        self._counting = counts(node)
        self.most = MANY if self._counting else FEW
        self._made: dict[tuple[int, tuple[Any, ...]], tuple[algebra.BGP, _Triples]] = {}

    def solve(self, graph: Listed) -> GraphRows | None:
        if self._counting:
            by_predicate, whole = graph  # a graph is a set
            graph = {number: _once(own) for number, own in by_predicate.items()}, _once(whole)
        first: list[dict[str, Any]] = []
        if self._first is not None:
            begun = self._first.solve(graph)
            if begun is None:
                return None
            names = begun.names
            first = [{n: row[slot] for n, slot in names} for row in itertools.compress(begun.rows, begun.kept)]
            if not first:
                return _NOTHING
        small = _Small(graph, self._places)
        context = Context(
            small, prologue=self._prologue, inline=(self._leaf, first), budget=PAIRS, match=partial(self._match, graph)
        )
        try:
            with evaluating():
                found = solutions(self._node, context)
                kept = [all(is_true(condition, row) for condition in self._exists) for row in found]
        except BudgetExceeded:  # the plan raises it anew, if it is the query's own
            return None
        rows = [[row.terms.get(name) for name, _ in self._names] for row in found]
        if self._tests:
            tests, own = self._tests, zip(rows, kept, strict=True)
            kept = [whether and all(test(row) == TRUE for test in tests) for row, whether in own]
        return GraphRows(self._names, rows, kept)

    def _match(self, graph: Listed, node: algebra.BGP, outer: dict[Any, Identifier]) -> list[dict[Any, Any]]:
        """The solutions of the triples of a basic graph pattern, with `outer` terms."""
        key = id(node), tuple(outer)
        found = self._made.get(key)
        if found is None:
            plain = algebra.BGP(tuple(triple for triple in node.triples if not isinstance(triple[1], Path)))
            found = self._made[key] = node, _Triples(plain, key[1], self._places)
        triples = found[1]
        rows = triples.match(graph, list(outer.values()))
        if rows is None:
            raise _too_many()
        return [dict(zip(triples.slots, row, strict=True)) for row in rows]


class _Small:
    """A graph as property paths read it. Raises `BudgetExceeded` if they read more than `READ` triples."""

    __slots__ = ("_by_predicate", "_left", "_places", "_whole")

    def __init__(self, graph: Listed, places: Mapping[str, int]) -> None:
        self._by_predicate, self._whole = graph
        self._places = places
        self._left = READ

    def triples(self, wanted: tuple[Any, Any, Any]) -> Iterator[Triple]:
        """The triples with a predicate, and with the subject and the object that are not None."""
        start, predicate, end = wanted
        for triple in self._read(self._by_predicate.get(self._places[str(predicate)], ())):
            if (start is None or triple[0] == start) and (end is None or triple[2] == end):
                yield triple

    def __iter__(self) -> Iterator[Triple]:
        return iter(self._read(self._whole))

    def __contains__(self, wanted: tuple[Any, None, Any]) -> bool:
        start, _, end = wanted
        return any(start in (None, triple[0]) and end in (None, triple[2]) for triple in self._read(self._whole))

    def _read(self, triples: Sequence[Triple]) -> Sequence[Triple]:
        self._left -= len(triples)
        if self._left < 0:
            raise _too_many()
        return triples


def _once(triples: Sequence[Triple]) -> Sequence[Triple]:
    """Each of the triples once. PERF: rdflib's terms take 0.6 µs to hash."""
    return triples if len(triples) < 2 else list(dict.fromkeys(triples))


def _too_many() -> BudgetExceeded:
    """The error of a graph that is too large for this module."""
    return BudgetExceeded("solution_rows", PAIRS, PAIRS + 1, "rows")


def _step(
    predicate: URIRef | None, what: Sequence[tuple[int, int]], terms: Sequence[Any], places: Mapping[str, int]
) -> tuple[int | None, tuple[tuple[int, int, Any], ...]]:
    """A triple pattern as `_Triples.match` reads it: the number of its predicate, and for each place to check the
    action there and its operand. Slots are filled in the order of their numbers."""
    tried = [
        (place, does, plain_literal(terms[place]) if does == k.CONSTANT else slot)
        for place, (does, slot) in enumerate(what)
        if place != 1 or predicate is None
    ]
    return None if predicate is None else places[str(predicate)], tuple(tried)


def prepare(
    node: algebra.Node, conditions: Sequence[algebra.Expression], prologue: Prologue, places: Mapping[str, int]
) -> Alone | None:
    """A pattern under FILTERs for graphs that are solved by themselves; None if that is left to the plan.

    Left are GRAPH, negated property sets, long VALUES, and values that differ from one solution to the next. `places`:
    the number of each predicate that a pattern names, by its text.
    """
    inside = [inner for condition in conditions for inner in algebra.patterns_inside(condition)]
    if any(_is_left(part) for whole in (node, *inside) for part in algebra.walk(whole)) or uncovered(node):
        return None
    if _is_basic(node) and not inside:
        triples = _Triples(node, (), places)
        slots = dict(triples.names)
        most = 1 if any(map(is_arithmetic, conditions)) else MANY
        return _Basic(triples, tuple(_test(condition, slots, prologue) for condition in conditions), most)
    return _Algebra(node, conditions, prologue, places)


def _first(node: algebra.Node, prologue: Prologue, places: Mapping[str, int]) -> _Basic | None:
    """The first part of a pattern, if it is triple patterns under a FILTER or none."""
    match first_part(node):
        case algebra.Filter(part, condition) if _is_basic(part) and not algebra.has_exists(condition):
            triples = _Triples(part, (), places)
            return _Basic(triples, (_test(condition, dict(triples.names), prologue),), MANY)
        case part if _is_basic(part):
            return _Basic(_Triples(part, (), places), (), MANY)
        case _:
            return None


def _is_left(node: algebra.Node) -> bool:
    match node:
        case algebra.BGP(triples):
            return any(isinstance(triple[1], Path) and negates(triple[1]) for triple in triples)
        case algebra.Values(rows):
            return len(rows) > PAIRS
        case _:
            return isinstance(node, algebra.GraphNode)


def _is_basic(node: algebra.Node) -> TypeGuard[algebra.BGP]:
    """True for triple patterns without paths."""
    match node:
        case algebra.BGP(triples):
            return bool(triples) and not any(isinstance(triple[1], Path) for triple in triples)
        case _:
            return False


# -- conditions


def _test(expression: algebra.Expression, slots: Mapping[str, int], prologue: Prologue) -> _Test:
    """`truth` of a condition for one row."""
    match expression:
        case algebra.Call("true"):
            return lambda row: TRUE
        case algebra.Call("&&", arguments):
            return _fold([_test(a, slots, prologue) for a in arguments], FALSE)
        case algebra.Call("||", arguments):
            return _fold([_test(a, slots, prologue) for a in arguments], TRUE)
        case algebra.Call("!", (argument,)):
            inner = _test(argument, slots, prologue)
            return lambda row: found if (found := inner(row)) == ERROR else 1 - found
        case algebra.Call(sign, (algebra.Term(left), algebra.Term(right))) if sign in algebra.SIGNS:
            return _comparison(sign, left, right, slots, _ask(expression, slots, prologue))
        case _:
            return _ask(expression, slots, prologue)


def _fold(tests: Sequence[_Test], settled: int) -> _Test:
    """`||` (`settled` TRUE) or `&&` (`settled` FALSE)."""

    def test(row: _Row) -> int:
        found = 1 - settled
        for each in tests:
            one = each(row)
            if one == settled:
                return settled
            if one == ERROR:
                found = ERROR
        return found

    return test


def _comparison(sign: str, left: Identifier, right: Identifier, slots: Mapping[str, int], ask: _Test) -> _Test:
    """A comparison of two terms, by their numbers if these decide it, else by `ask`."""
    compare, equality = COMPARISONS[sign].holds, sign in ("=", "!=")
    one, other = _operand(left, slots), _operand(right, slots)

    def test(row: _Row) -> int:
        a, first = one(row)
        b, second = other(row)
        if a is None or b is None:
            return ERROR
        if first is not None and second is not None:
            value, limit = first[0], second[0]
            if (first[1] and second[1]) or abs(value - limit) > error_of(*first) + error_of(*second):
                return int(compare(value, limit))
        elif equality and (not _is_literal(a) or not _is_literal(b) or (_is_plain(a) and _is_plain(b))):
            return int((a == b) == (sign == "="))
        return ask(row)

    return test


_Operand = Callable[[_Row], tuple[Any, tuple[float, bool] | None]]


def _operand(term: Identifier, slots: Mapping[str, int]) -> _Operand:
    """A term of a comparison, and `number_of_term` of it."""
    if isinstance(term, Variable):
        slot = slots.get(str(term))
        if slot is None:
            return lambda row: (None, None)
        return lambda row: (row[slot], number_of_term(row[slot]))
    constant: Any = plain_literal(term)  # type: ignore[arg-type]
    made = constant, number_of_term(constant)
    return lambda row: made


def _is_literal(term: Any) -> bool:
    return isinstance(term, (Literal, TripleTerm))  # triple terms are equal by their parts


def _is_plain(literal: Any) -> bool:
    """True if a literal is a string without a tag."""
    return isinstance(literal, Literal) and literal.datatype is None and not literal.language


def _ask(expression: algebra.Expression, slots: Mapping[str, int], prologue: Prologue) -> _Test:
    """The truth of any other expression."""
    names = [(name, slots[name]) for name in sorted(algebra.expression_variables(expression)) if name in slots]

    def test(row: _Row) -> int:
        with evaluating():
            try:
                terms = {name: row[slot] for name, slot in names if row[slot] is not None}
                return int(verdict(expression, Row(terms, Context(prologue=prologue))))
            except SPARQLError:
                return ERROR

    return test
