"""Comparisons as SPARQL 1.1 §17.3 has them, in place of rdflib's.

rdflib orders any two literals (by the order that ORDER BY needs), so `"text" > 1` is true there and an error in
SPARQL; and its IN compares terms, so `1.0 IN (1)` is false there and true in SPARQL. `settle` gives an expression of
rdflib's the functions of this module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from types import MethodType
from typing import Any, Final

from rdflib.namespace import XSD
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Literal

__all__ = ["settle"]

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def settle(value: CompValue) -> None:
    """Gives `value`, if it is a comparison by order or an IN, SPARQL's meaning."""
    if not isinstance(value, Expr) or value.name != "RelationalExpression":
        return
    if value.get("op") in _ORDER:
        value._evalfn = MethodType(_ordered, value)
    elif value.get("op") in ("IN", "NOT IN"):
        value._evalfn = MethodType(_one_of, value)


def _ordered(expression: Expr, context: Any) -> Literal:
    left, right = _comparable(expression.expr), _comparable(expression.other)
    if left[0] != right[0]:
        raise SPARQLError(f"{left[0]} and {right[0]} have no order")
    try:
        return Literal(_ORDER[expression.op](left[1], right[1]))
    except TypeError as error:
        raise SPARQLError(str(error)) from None


def _comparable(term: Any) -> tuple[str, Any]:
    """What a literal is compared as: a kind, and a value that has an order among those of its kind."""
    if not isinstance(term, Literal) or term.language:
        raise SPARQLError("only literals without a language have an order")
    if term.datatype is None or term.datatype == XSD.string:
        return "string", str(term)
    match term.value:
        case None:
            raise SPARQLError(f"{term.n3()} has no value")
        case bool() as truth:
            return "boolean", truth
        case int() | float() | Decimal() as number:
            return "number", number
        case datetime() as time:
            return "dateTime", time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        case other:
            return str(term.datatype), other


def _one_of(expression: Expr, context: Any) -> Literal:
    """`x IN (a, b)` is `x = a || x = b`: true if one is equal, else an error if one comparison was."""
    wanted = expression.expr
    items = dict.__getitem__(expression, "other")
    error: SPARQLError | None = None
    for item in items if isinstance(items, list) else []:  # an empty list is rdf:nil
        try:
            given = _eval(item, context)
            if isinstance(given, SPARQLError):
                raise given
            if wanted.eq(given):
                return Literal(expression.op == "IN")
        except SPARQLError as caught:
            error = caught
        except TypeError as caught:
            error = SPARQLError(str(caught))
    if error is not None:
        raise error
    return Literal(expression.op == "NOT IN")
