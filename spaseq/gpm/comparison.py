"""Comparisons as SPARQL 1.1 §17.3 has them, in place of rdflib's.

rdflib orders any two literals (by the order that ORDER BY needs), so `"text" > 1` is true there and an error in
SPARQL; its numbers are exact, so `0.1 <= 0.1e0` is false there and true in SPARQL, which promotes both to double; and
its IN compares terms, so `1.0 IN (1)` is false there and true in SPARQL. `settle` gives an expression of rdflib's the
functions of this module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from types import MethodType
from typing import Any, Final

from rdflib.namespace import XSD
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.parserutils import CompValue, Expr
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Identifier, Literal, Variable

from spaseq.gpm import algebra

__all__ = ["SIGNS", "Test", "compares", "direct_test", "settle"]

Test = Callable[[Mapping[str, Any]], bool]
"""Whether a condition is true of a mapping; an error in it is not true."""

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


SIGNS: Final = frozenset({*_ORDER, "=", "!="})


def compares(sign: str, left: Any, right: Any) -> bool:
    """Whether two terms compare by one of `SIGNS`. SPARQLError where that is an error."""
    if sign in _ORDER:
        return _in_order(_ORDER[sign], left, right)
    return _equal(left, right) is (sign == "=")


def settle(value: CompValue) -> None:
    """Gives `value`, if it is a comparison, SPARQL's meaning."""
    if not isinstance(value, Expr) or value.name != "RelationalExpression":
        return
    if value.get("op") in _ORDER:
        value._evalfn = MethodType(_ordered, value)
    elif value.get("op") in ("=", "!="):
        value._evalfn = MethodType(_equality, value)
    elif value.get("op") in ("IN", "NOT IN"):
        value._evalfn = MethodType(_one_of, value)


def direct_test(expression: algebra.Expression) -> Test | None:
    """A test for a comparison of two terms, without rdflib's evaluator; None for any other expression."""
    match expression:
        case algebra.Call(name, (algebra.Term(left), algebra.Term(right))) if name.startswith("RelationalExpression "):
            sign = name.split(" ", 1)[1]
        case _:
            return None
    if sign in _ORDER:
        return partial(_test_order, _ORDER[sign], _reader(left), _reader(right))
    if sign in ("=", "!="):
        return partial(_test_equal, sign == "=", _reader(left), _reader(right))
    return None


_Reader = Callable[[Mapping[str, Any]], Any]


def _reader(term: Identifier) -> _Reader:
    """What gives the term's value under a mapping: None where it is unbound."""
    if isinstance(term, Variable):
        name = str(term)
        return lambda mapping: mapping.get(name)
    return lambda mapping: term


def _test_order(compare: Callable[[Any, Any], bool], left: _Reader, right: _Reader, mapping: Mapping[str, Any]) -> bool:
    try:
        return _in_order(compare, left(mapping), right(mapping))
    except SPARQLError:
        return False


def _test_equal(wanted: bool, left: _Reader, right: _Reader, mapping: Mapping[str, Any]) -> bool:
    try:
        return _equal(left(mapping), right(mapping)) is wanted
    except SPARQLError:
        return False


def _ordered(expression: Expr, context: Any) -> Literal:
    return Literal(_in_order(_ORDER[expression.op], expression.expr, expression.other))


def _equality(expression: Expr, context: Any) -> Literal:
    return Literal(_equal(expression.expr, expression.other) is (expression.op == "="))


def _in_order(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """Whether `left` and `right` compare so. SPARQLError where they have no order."""
    (kind, a), (other, b) = _comparable(left), _comparable(right)
    if kind != other:
        raise SPARQLError(f"{kind} and {other} have no order")
    try:
        return bool(compare(*_promoted(a, b)))
    except TypeError as error:
        raise SPARQLError(str(error)) from None


def _equal(left: Any, right: Any) -> bool:
    """`left = right`: by value for numbers, truth values and times, else as rdflib has it. SPARQLError where it is
    open."""
    if not isinstance(left, Identifier) or not isinstance(right, Identifier):
        raise SPARQLError("only terms can be equal")
    if _has_value(left) and _has_value(right):
        (kind, a), (other, b) = _comparable(left), _comparable(right)
        if kind == other and kind in ("number", "boolean", "dateTime"):
            a, b = _promoted(a, b)
            return bool(a == b)
    try:
        return bool(left.eq(right))
    except TypeError as error:
        raise SPARQLError(str(error)) from None


def _has_value(term: Identifier) -> bool:
    return isinstance(term, Literal) and term.value is not None and not term.language


def _promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values of one kind; a number beside a double becomes one (XPath's numeric promotion)."""
    if isinstance(a, float) is isinstance(b, float):
        return a, b
    try:
        return float(a), float(b)
    except OverflowError:
        return a, b


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
            if _equal(wanted, given):
                return Literal(expression.op == "IN")
        except SPARQLError as caught:
            error = caught
    if error is not None:
        raise error
    return Literal(expression.op == "NOT IN")
