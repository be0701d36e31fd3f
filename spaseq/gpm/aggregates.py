"""The rules of aggregates (SPARQL 1.1 §18.5.1), for both evaluators of graph patterns and for the result clauses.

If one of the values is an error, for example that of an unbound variable, the aggregate is an error and its variable is
unbound; only COUNT and SAMPLE ignore errors. MIN and MAX use the order of terms (`comparison.term_place`). That order
also decides what SPARQL leaves open: SAMPLE gives the first value, and GROUP_CONCAT follows it unless an ORDER BY gives
another order.

In the clauses behind WHERE (`behind_where`) two rules differ. All aggregates ignore solutions that do not bind a
variable, because optional elements and rounds of an iteration may leave it unbound. And SAMPLE and GROUP_CONCAT follow
the order of solutions; so do SUM and AVG, whose rounding of xsd:double depends on the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.sparql import NotBoundError, SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.core.errors import InternalError
from spaseq.gpm.comparison import term_place
from spaseq.gpm.functions import concatenation, mean, total
from spaseq.rdf import plain_literal

__all__ = ["LENIENT", "PLACES", "Aggregate", "aggregate_of", "aggregated", "combined"]

LENIENT: Final = frozenset({"Count", "Sample"})
"""The aggregates that ignore errors."""
PLACES: Final = {"Sample": 0, "Min": 0, "Max": -1}
"""The aggregates whose result is one of the values: its index among the values in order."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a SELECT or HAVING.

    `over` is its argument as rdflib's expression, None for `*`; `once` stands for DISTINCT; `separator` is read by
    GROUP_CONCAT only.
    """

    kind: str
    over: Any
    once: bool
    separator: str


def aggregate_of(handle: Any) -> Aggregate:
    """One of rdflib's aggregates as an `Aggregate`. `vars`, `distinct` and `separator` are read as dictionary items,
    because for a missing attribute rdflib returns its name."""
    over, separator = dict.get(handle, "vars"), dict.get(handle, "separator")
    return Aggregate(
        str(handle.name).removeprefix("Aggregate_"),
        None if over == "*" else over,
        bool(dict.get(handle, "distinct")),
        " " if separator is None else str(separator),
    )


def combined(aggregate: Aggregate, terms: Sequence[Any]) -> Identifier:
    """The value of an aggregate over `terms` without errors; sorted for Min and Max. SPARQLError if there is none."""
    match aggregate.kind:
        case "Count":
            return Literal(len(terms))
        case "Sum":
            return total(list(terms))
        case "Avg":
            return mean(list(terms))
        case "GroupConcat":
            return concatenation(list(terms), aggregate.separator)
        case kind if kind in PLACES:
            if not terms:
                raise SPARQLError("an aggregate of nothing")
            found: Identifier = terms[PLACES[kind]]
            return found
        case kind:
            raise InternalError(f"SPARQL has an aggregate {kind} that this version does not know")


def aggregated(
    handles: Sequence[Any], rows: Sequence[Any], *, ordered: bool, behind_where: bool
) -> dict[Variable, Identifier]:
    """The values of rdflib's aggregates over `rows`, by their variables; those that are errors are left out.

    `ordered`: whether an ORDER BY has ordered the rows.
    """
    found: dict[Variable, Identifier] = {}
    for handle in handles:
        aggregate = aggregate_of(handle)
        by_row = aggregate.kind == "Count" or (ordered and aggregate.kind == "GroupConcat")
        by_row |= behind_where and aggregate.kind not in ("Min", "Max")
        try:
            found[handle.res] = plain_literal(_result(aggregate, rows, by_row, behind_where))
        except SPARQLError:
            continue
    return found


def _result(aggregate: Aggregate, rows: Sequence[Any], by_row: bool, behind_where: bool) -> Any:
    if aggregate.over is None:
        return Literal(len({frozenset(row.items()) for row in rows} if aggregate.once else rows))
    values = list(_values(aggregate.over, rows, behind_where))
    if aggregate.once:
        values = list(dict.fromkeys(values))
    known = [term for term in values if term is not None]
    if len(known) < len(values) and aggregate.kind not in LENIENT:
        raise SPARQLError("an aggregate over an error")
    return combined(aggregate, known if by_row else sorted(known, key=term_place))


def _values(expression: Any, rows: Sequence[Any], behind_where: bool) -> Iterator[Identifier | None]:
    """The values of an expression; None is an error."""
    for row in rows:
        try:
            term = _eval(expression, row)
        except NotBoundError:  # a variable alone; inside an expression it is an error
            if not behind_where:
                yield None
            continue
        yield plain_literal(term) if isinstance(term, (URIRef, BNode, Literal)) else None
