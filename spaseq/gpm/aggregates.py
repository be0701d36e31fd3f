"""Aggregates (SPARQL 1.1 §18.5.1): their rules, for graph patterns over columns, by rdflib, and for the result clauses.

An aggregate over a value that is an error, as that of an unbound variable, is an error itself, and so unbound; only
COUNT and SAMPLE leave errors out. MIN and MAX go by the order of terms. What SPARQL leaves open is fixed by that order
too: SAMPLE gives the first value, GROUP_CONCAT goes by it where no ORDER BY says otherwise.

The clauses behind WHERE differ in two points (`behind_where`): a variable that a solution does not bind is left out by
all aggregates, since solutions of optional elements and rounds need not bind it, and SAMPLE and GROUP_CONCAT go by the
order of solutions (as SUM and AVG, whose rounding may tell orders of xsd:double apart).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.sparql import NotBoundError, SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.errors import InternalError
from spaseq.gpm.comparison import term_place
from spaseq.gpm.functions import concatenation, mean, total
from spaseq.rdf import plain_literal

__all__ = ["LENIENT", "PLACES", "Aggregate", "aggregate_of", "aggregated", "combined"]

LENIENT: Final = frozenset({"Count", "Sample"})
"""The kinds that leave errors out."""
PLACES: Final = {"Sample": 0, "Min": 0, "Max": -1}
"""The kinds that give one of the values, and the place of it among them in order."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate. `over`: rdflib's expression, None for `*`; `once`: DISTINCT; `separator`: of GROUP_CONCAT."""

    kind: str
    over: Any
    once: bool
    separator: str


def aggregate_of(handle: Any) -> Aggregate:
    """What one of rdflib's aggregates says. Its `vars`, `distinct` and `separator` are read as items, since rdflib
    gives a name for what is not there."""
    over, separator = dict.get(handle, "vars"), dict.get(handle, "separator")
    return Aggregate(
        str(handle.name).removeprefix("Aggregate_"),
        None if over == "*" else over,
        bool(dict.get(handle, "distinct")),
        " " if separator is None else str(separator),
    )


def combined(aggregate: Aggregate, terms: Sequence[Any]) -> Identifier:
    """The value over `terms`, which are in order and hold no error. SPARQLError where there is none."""
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
    """What each of rdflib's aggregates comes to over `rows`, by its variable; one that is an error is not there.

    `ordered`: whether the order of the rows means something.
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
