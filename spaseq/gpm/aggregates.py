"""Aggregates over the solutions of one group, for the clauses behind WHERE (SPARQL 1.1 §18.5.1).

As in a subquery (`spaseq.gpm.columnar.groups`), an aggregate over an error is one, and so unbound; only COUNT and
SAMPLE leave errors out. What differs: a variable that a solution does not bind is left out by all, since solutions of
optional elements and rounds need not bind it, and SAMPLE and GROUP_CONCAT go by the order of solutions. rdflib's
aggregates fail on the first value that is no number, and make literals of the IRIs that MIN and MAX find.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.sparql import NotBoundError, SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.errors import InternalError
from spaseq.gpm.comparison import order_place
from spaseq.gpm.functions import concatenation, mean, total

__all__ = ["aggregated"]


def aggregated(aggregates: Sequence[Any], rows: Sequence[Any]) -> dict[Variable, Identifier]:
    """What each of rdflib's `aggregates` comes to over `rows`, by its variable; one that is an error is not there."""
    found = {}
    for aggregate in aggregates:
        try:
            found[aggregate.res] = _result(aggregate, rows)
        except SPARQLError:
            continue
    return found


def _result(aggregate: Any, rows: Sequence[Any]) -> Identifier:
    once = bool(dict.get(aggregate, "distinct"))
    if aggregate.vars == "*":
        return Literal(len({frozenset(row.items()) for row in rows} if once else rows))
    values = list(_values(aggregate.vars, rows))
    if once:
        values = list(dict.fromkeys(values))
    known = [term for term in values if term is not None]
    match aggregate.name:
        case "Aggregate_Count":
            return Literal(len(known))
        case "Aggregate_Sample":
            return _some(known)[0]
    if len(known) < len(values):
        raise SPARQLError("an aggregate over an error")
    match aggregate.name:
        case "Aggregate_Sum":
            return total(known)
        case "Aggregate_Avg":
            return mean(known)
        case "Aggregate_Min":
            return min(_some(known), key=order_place)
        case "Aggregate_Max":
            return max(_some(known), key=order_place)
        case "Aggregate_GroupConcat":
            separator = dict.get(aggregate, "separator")
            return concatenation(known, " " if separator is None else str(separator))
        case name:
            raise InternalError(f"SPARQL has an aggregate {name} that this version does not know")


def _values(expression: Any, rows: Sequence[Any]) -> Iterator[Identifier | None]:
    """The values of an expression; None is an error."""
    for row in rows:
        try:
            term = _eval(expression, row)
        except NotBoundError:  # a variable alone; inside an expression it is an error
            continue
        yield term if isinstance(term, (URIRef, BNode, Literal)) else None


def _some(terms: list[Identifier]) -> list[Identifier]:
    if not terms:
        raise SPARQLError("an aggregate of nothing")
    return terms
