"""The rules of aggregates (SPARQL 1.1 §18.5.1), for both evaluators of graph patterns and for the result clauses.

If one of the values is an error, such as that of an unbound variable, the aggregate is an error and its variable
unbound. Only COUNT and SAMPLE ignore errors. MIN and MAX use the order of terms (`comparison.term_place`). It also
decides cases that SPARQL leaves open: SAMPLE gives the first value, and GROUP_CONCAT follows it without an ORDER BY.

In the clauses behind WHERE (`behind_where`) two rules differ. All aggregates ignore solutions that do not bind a
variable, because optional elements and rounds of an iteration may leave it unbound. And SAMPLE, GROUP_CONCAT, SUM and
AVG follow the order of solutions; the rounding of xsd:double depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Identifier, Literal

from spaseq.core.errors import InternalError
from spaseq.gpm.algebra import Aggregate, Expression, Term
from spaseq.gpm.comparison import term_place
from spaseq.gpm.expressions import Row, value_or_none
from spaseq.gpm.functions.numbers import concatenation, mean, total
from spaseq.rdf import plain_literal

LENIENT: Final = frozenset({"Count", "Sample"})
"""The aggregates that ignore errors."""
PLACES: Final = {"Sample": 0, "Min": 0, "Max": -1}
"""The aggregates whose result is one of the values: its index among the values in order."""


def in_row_order(aggregate: Aggregate, *, ordered: bool, behind_where: bool) -> bool:
    """True if an aggregate takes its values in the order of rows; else in the order of terms. `ordered`: an ORDER BY
    has ordered the rows."""
    if aggregate.name == "Count" or (ordered and aggregate.name == "GroupConcat"):
        return True
    return behind_where and aggregate.name not in ("Min", "Max")


def combine(aggregate: Aggregate, terms: Sequence[Any]) -> Identifier:
    """The value of an aggregate over `terms` without errors; sorted for Min and Max. SPARQLError if there is none."""
    match aggregate.name:
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
    results: Sequence[tuple[str, Aggregate]], rows: Sequence[Row], *, ordered: bool, behind_where: bool
) -> dict[str, Identifier]:
    """The values of aggregates over `rows`, by their variables; those that are errors are left out.

    `ordered`: True if an ORDER BY has ordered the rows.
    """
    found: dict[str, Identifier] = {}
    for name, aggregate in results:
        by_row = in_row_order(aggregate, ordered=ordered, behind_where=behind_where)
        try:
            found[name] = plain_literal(_result(aggregate, rows, by_row, behind_where))
        except SPARQLError:
            continue
    return found


def _result(aggregate: Aggregate, rows: Sequence[Row], by_row: bool, behind_where: bool) -> Any:
    if aggregate.over is None:
        return Literal(len({frozenset(row.terms.items()) for row in rows} if aggregate.once else rows))
    values = list(_values(aggregate.over, rows, behind_where))
    if aggregate.once:
        values = list(dict.fromkeys(values))
    known = [term for term in values if term is not None]
    if len(known) < len(values) and aggregate.name not in LENIENT:
        raise SPARQLError("an aggregate over an error")
    return combine(aggregate, known if by_row or len(known) < 2 else sorted(known, key=term_place))


def _values(expression: Expression, rows: Sequence[Row], behind_where: bool) -> Iterator[Identifier | None]:
    """The values of an expression; None is an error."""
    for row in rows:
        term = value_or_none(expression, row)
        # An unbound variable alone is left out behind WHERE; inside an expression it is an error.
        if term is not None or not (behind_where and isinstance(expression, Term)):
            yield term
