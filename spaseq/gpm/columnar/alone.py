"""One small graph by itself: the plan's results on a batch of one event, over rdflib's terms, without arrays.

A pushed graph has a few triples, for which the plan's arrays cost more than the work on them. `prepare` compiles a GPM
for that case, once: a basic graph pattern under FILTERs. Its triple patterns have the batch's order (`basic_pattern`),
its FILTERs the truth of `spaseq.gpm.columnar.truth`. The plan stays the definition, and evaluates other patterns and
graphs with many candidates (`PAIRS`). Tests compare the two.

PERF: three triple patterns on eight triples (benchmarks/pushes.py): the plan on a batch of one 38 µs, 11 here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rdflib.plugins.sparql.sparql import Prologue, SPARQLError
from rdflib.term import Identifier, Literal, URIRef, Variable

from spaseq.core.comparisons import COMPARISONS
from spaseq.gpm import algebra
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.amounts import error_of
from spaseq.gpm.columnar.basic import BasicPattern, basic_pattern
from spaseq.gpm.columnar.truth import ERROR, FALSE, TRUE, is_arithmetic
from spaseq.gpm.expressions import Row, verdict
from spaseq.gpm.mappings import Mapping as Solution
from spaseq.gpm.reference import Context, evaluating
from spaseq.rdf import Triple, TripleTerm, plain_literal
from spaseq.rdf.columns import number_of_term

PAIRS: Final = 64
"""The greatest number of pairs of a solution so far and a triple at one step; with more the plan is faster."""

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
    """The solutions of a GPM on one graph: terms by slot, of which `names` gives each variable's. `kept`: True if the
    GPM's own FILTERs are true. Rows may be equal."""

    names: tuple[tuple[str, int], ...]
    rows: list[_Row]
    kept: list[bool]

    def mapping(self, row: int, names: Sequence[str] | None) -> Solution:
        """As of `Solutions`."""
        terms = self.rows[row]
        return tuple([(name, terms[slot]) for name, slot in self.names if names is None or name in names])


class Alone:
    """A GPM made ready by `prepare`."""

    __slots__ = ("_names", "_steps", "_tests")

    def __init__(self, pattern: BasicPattern, places: Mapping[str, int], tests: tuple[_Test, ...]) -> None:
        self._names = pattern.names
        self._steps = tuple(_step(step.predicate, step.places, step.terms, places) for step in pattern.steps)
        self._tests = tests

    def solve(self, graph: Listed) -> GraphRows | None:
        """The solutions on a graph; None if there is too much to try."""
        by_predicate, whole = graph
        rows: list[_Row] = [[]]
        for predicate, tried in self._steps:
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
        tests = self._tests
        return GraphRows(self._names, rows, [all(test(row) == TRUE for test in tests) for row in rows])


def _step(
    predicate: URIRef | None, what: Sequence[tuple[int, int]], terms: Sequence[Any], places: Mapping[str, int]
) -> tuple[int | None, tuple[tuple[int, int, Any], ...]]:
    """A triple pattern as `Alone.solve` reads it: the number of its predicate, and for each place to check the action
    there and its operand. Slots are filled in the order of their numbers."""
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

    Covered are basic graph patterns without property paths, and conditions without EXISTS and arithmetic. `places`: the
    number of each predicate that a pattern names, by its text.
    """
    if not isinstance(node, algebra.BGP) or not node.triples:
        return None
    if not all(isinstance(triple[1], Identifier) for triple in node.triples):
        return None
    if any(algebra.has_exists(c) or is_arithmetic(c) for c in conditions):
        return None
    pattern = basic_pattern(node)
    slots = dict(pattern.names)
    return Alone(pattern, places, tuple(_test(condition, slots, prologue) for condition in conditions))


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
        slot = slots[str(term)]
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
                terms = {name: row[slot] for name, slot in names}
                return int(verdict(expression, Row(terms, Context(prologue=prologue))))
            except SPARQLError:
                return ERROR

    return test
