"""Comparisons by the rules of SPARQL 1.1 §17.3: values of different kinds have no order, so `"text" > 1` is an error.
If one number is a double, both become doubles, so `0.1 <= 0.1e0` is true."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import total_ordering
from typing import Any, Final

from rdflib.namespace import XSD
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

from spaseq.gpm import algebra
from spaseq.rdf import TripleTerm
from spaseq.rdf.terms import is_held, value_of_literal

_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_ARITHMETIC: Final = frozenset({"+", "*", "minus", "ABS", "CEIL", "FLOOR", "ROUND"})


def compares(sign: str, left: Any, right: Any) -> bool:
    """True if `left sign right`, with one of `SIGNS`. SPARQLError if that is an error in SPARQL."""
    if sign in _ORDER:
        return _in_order(_ORDER[sign], left, right)
    return _equal(left, right) is (sign == "=")


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a comparison with exactly one variable: that variable alone, or an expression computed from it."""

    name: str
    expression: algebra.Expression

    @property
    def is_variable(self) -> bool:
        return isinstance(self.expression, algebra.Term)


def compared_sides(expression: algebra.Expression) -> tuple[Side, str, Side] | None:
    """(left, sign, right) if the expression is a comparison whose sides are each computed from one variable, a
    different one on each side; else None."""
    match expression:
        case algebra.Call(sign, (left, right)) if sign in algebra.SIGNS:
            sides = _side(left), _side(right)
            if sides[0] is not None and sides[1] is not None:
                return sides[0], sign, sides[1]
    return None


Program = tuple[float | str, ...]
"""An expression in postfix form: numbers, variables as `?name`, `+ - * / neg abs`, comparisons, `not`, `and`, `or`."""

_LOGIC: Final = {"&&": "and", "||": "or"}


def number_program(expression: algebra.Expression) -> Program | None:
    """The expression as a program, if it consists of comparisons of arithmetic on numbers; else None."""
    match expression:
        case algebra.Call(sign, (left, right)) if sign in algebra.SIGNS:
            return _postfix((_value_program(left), _value_program(right)), (sign,))
        case algebra.Call(name, arguments) if name in _LOGIC:
            return _postfix(map(number_program, arguments), (_LOGIC[name],) * (len(arguments) - 1))
        case algebra.Call("!", (argument,)):
            return _postfix((number_program(argument),), ("not",))
    return None


def _value_program(expression: algebra.Expression) -> Program | None:
    match expression:
        case algebra.Term(Variable() as name):
            return (f"?{name}",)
        case algebra.Term(Literal() as literal):
            number = near_number(literal)
            return None if number is None else (number,)
        case algebra.Arithmetic(_, (first, *others), signs):
            program = _value_program(first)
            for sign, other in zip(signs, others, strict=True):
                program = _postfix((program, _value_program(other)), (sign,))
            return program
        case algebra.Call("minus", (argument,)):
            return _postfix((_value_program(argument),), ("neg",))
        case algebra.Call("ABS", (argument,)):
            return _postfix((_value_program(argument),), ("abs",))
    return None


def _postfix(parts: Iterable[Program | None], signs: Program) -> Program | None:
    """The parts one after another, then the signs; None if a part is None."""
    program: Program = ()
    for part in parts:
        if part is None:
            return None
        program += part
    return program + signs


def _side(expression: algebra.Expression) -> Side | None:
    names = _computed_from(expression)
    return Side(next(iter(names)), expression) if names is not None and len(names) == 1 else None


def _computed_from(expression: algebra.Expression) -> frozenset[str] | None:
    """The variables of an expression that is an error if one of them is unbound; None for other expressions."""
    match expression:
        case algebra.Term(Variable() as name):
            return frozenset({str(name)})
        case algebra.Term():
            return frozenset()
        case algebra.Call(name, arguments) if name in _ARITHMETIC:
            found = [_computed_from(argument) for argument in arguments]
            return None if None in found else frozenset().union(*(names for names in found if names is not None))
    return None


def _in_order(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    """True if `compare` holds for the values of `left` and `right`. SPARQLError if they have no common order."""
    (kind, a), (other, b) = _comparable(left), _comparable(right)
    if kind != other:
        raise SPARQLError(f"{kind} and {other} have no order")
    try:
        return bool(compare(*_promote(a, b)))
    except TypeError as error:
        raise SPARQLError(str(error)) from None


def _equal(left: Any, right: Any) -> bool:
    """`left = right`: by value for numbers, truth values and times, else as rdflib does. SPARQLError if left open."""
    if not isinstance(left, Identifier) or not isinstance(right, Identifier):
        raise SPARQLError("only terms can be equal")
    if isinstance(left, TripleTerm) and isinstance(right, TripleTerm):
        return _equal_parts(left, right)
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return left == right
    if left.language or right.language:
        return left == right
    if not _is_known(left) or not _is_known(right):
        # Two texts of an unknown datatype may be the same value or not (SPARQL 1.1 §17.4.1.7).
        if left == right:
            return True
        raise SPARQLError(f"{left!r} and {right!r} may be equal or not")
    (kind, a), (other, b) = _comparable(left), _comparable(right)
    try:
        return kind == other and bool(operator.eq(*_promote(a, b)))
    except TypeError as error:
        raise SPARQLError(str(error)) from None


def _equal_parts(left: TripleTerm, right: TripleTerm) -> bool:
    """`left = right` of triple terms: if all parts are equal (SPARQL 1.2 §17.4.1.7). Parts that are certainly different
    decide it, whatever the others are."""
    error: SPARQLError | None = None
    for one, other in zip(left.parts, right.parts, strict=True):
        try:
            if not _equal(one, other):
                return False
        except SPARQLError as caught:
            error = caught
    if error is not None:
        raise error
    return True


def _is_known(term: Literal) -> bool:
    """True if the literal has a datatype whose values are known here."""
    return term.datatype is None or term.datatype == XSD.string or value_of_literal(term) is not None


def _promote(a: Any, b: Any) -> tuple[Any, Any]:
    """Two values of one kind; if one number is a double, both become doubles (XPath's numeric promotion)."""
    if isinstance(a, float) is isinstance(b, float):
        return a, b
    try:
        return float(a), float(b)
    except OverflowError:
        return a, b


def number_of(term: Any) -> float | None:
    """The value of a numeric literal as an exact double, so that comparing doubles compares the values. None for other
    literals, for NaN, and for numbers that doubles do not hold exactly."""
    try:
        kind, value = _comparable(term)
    except SPARQLError:
        return None
    if kind != "number" or value != value:
        return None
    return float(value) if is_held(value) else None


def order_code(term: Any) -> tuple[str, float | int | str] | None:
    """The kind of a literal and a value in the order of that kind. This is a double for numbers, nanoseconds since the
    epoch for times, minutes for dates, 0 or 1 for truth values. The kind is "" for literals without an order. None for
    kinds without such values, and for numbers that doubles do not hold exactly."""
    try:
        kind, value = _comparable(term)
    except SPARQLError:
        return "", 0
    match value:
        case str() | bool():
            return kind, value if kind == "string" else int(value)
        case int() | float() | Decimal():
            number = number_of(term)
            return None if number is None else (kind, number)
        case datetime():
            nanoseconds = (value - _EPOCH) // _MICROSECOND * 1000
            return (kind, nanoseconds) if abs(nanoseconds) < 1 << 62 else None
        case _Date(begin, zoned):
            return f"date {'with' if zoned else 'without'} zone", begin
    return None


def near_number(term: Any) -> float | None:
    """The double nearest to a numeric literal; None for others, and xsd:float, whose sums have fewer digits."""
    try:
        kind, value = _comparable(term)
        return float(value) if kind == "number" and term.datatype != XSD.float else None
    except (SPARQLError, OverflowError):
        return None


def order_place(term: Any) -> tuple[Any, ...]:
    """The sort key of a term for ORDER BY, MIN and MAX (SPARQL 1.2 §15.1). None (unbound or an error) is first, then
    come blank nodes, IRIs, literals, and triple terms by their parts. Terms of equal places have equal keys."""
    match term:
        case BNode():
            return (1, "", str(term))
        case URIRef():
            return (2, "", str(term))
        case Literal():
            return (3, *order_value(term))
        case TripleTerm():
            return (4, *map(order_place, term.parts))
        case _:
            return (0,)


def term_place(term: Any) -> tuple[Any, ...]:
    """The sort key of a term in a total order: that of `order_place`, and for equal ones the way they are written."""
    text = (str(term.datatype or ""), term.language or "") if isinstance(term, Literal) else ()
    return (order_place(term), str(term), *text)


def order_value(term: Literal) -> tuple[Any, ...]:
    """The sort key of a literal among all literals: by kind, then by value; literals without a value by their text."""
    try:
        kind, value = _comparable(term)
    except SPARQLError:
        return ("language" if term.language else "unknown", str(term.datatype or ""), str(term), term.language or "")
    match value:
        case bool() | str() | datetime():
            return kind, value
        case int() | float() | Decimal():
            return kind, value == value, value if value == value else 0
        case _Date():
            return kind, value.begin
        case _:
            return kind, str(term)


def is_name(term: Any) -> bool:
    """True if a term is equal to itself only: an IRI, a blank node, or a string without a language tag."""
    if isinstance(term, Literal):
        return term.datatype is None and not term.language
    return isinstance(term, Identifier) and not isinstance(term, TripleTerm)


def _comparable(term: Any) -> tuple[str, Any]:
    """The kind of a literal, and its value in the order of that kind. SPARQLError if it has no order."""
    if not isinstance(term, Literal) or term.language:
        raise SPARQLError("only literals without a language have an order")
    if term.datatype is None or term.datatype == XSD.string:
        return "string", str(term)
    match value_of_literal(term):
        case None:
            raise SPARQLError(f"{term!r} has no value")
        case bool() as truth:
            return "boolean", truth
        case int() | float() | Decimal() as number:
            return "number", number
        case datetime() as time:
            return "dateTime", time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        case date() if term.datatype == XSD.date:
            return "date", _Date.of(str(term))
        case other:
            return str(term.datatype), other


@total_ordering
@dataclass(frozen=True, slots=True)
class _Date:
    """A date: the minute at which its day begins, and True if it has a time zone. Without one, the day may begin up to
    14 hours earlier or later, so nearby dates, only one with a zone, have no order (XML Schema 1.1 §D.2.1)."""

    begin: int
    zoned: bool

    @staticmethod
    def of(text: str) -> _Date:
        found = _DATE.fullmatch(text.strip())
        if found is None:
            raise SPARQLError(f"{text} is not a date")
        days = date(int(found[1]), int(found[2]), int(found[3])).toordinal()
        zone = found[4] or ""
        hours, minutes = (int(part) for part in zone[1:].split(":")) if len(zone) > 1 else (0, 0)
        offset = (60 * hours + minutes) * (-1 if zone.startswith("-") else 1)
        return _Date(1440 * days - offset, bool(zone))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Date):
            return NotImplemented
        return not self._apart(other)

    def __lt__(self, other: _Date) -> bool:
        return self._apart(other) and self.begin < other.begin

    def __hash__(self) -> int:
        return hash(self.begin)

    def _apart(self, other: _Date) -> bool:
        """True if the dates are different. TypeError if that cannot be known."""
        if self.zoned is not other.zoned and abs(self.begin - other.begin) <= 14 * 60:
            raise TypeError("one date names a zone and the other does not")
        return self.begin != other.begin


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(Z|[+-]\d\d:\d\d)?")
