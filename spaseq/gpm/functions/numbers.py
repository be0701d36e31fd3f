"""Numbers by the rules of SPARQL 1.1 §17 and XPath: truth, arithmetic, rounding, and the texts of results.

A number is a pair: the rank of its type in `xsd:integer`, `xsd:decimal`, `xsd:float`, `xsd:double`, and its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation, Overflow
from decimal import localcontext as decimal_context
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Literal, URIRef

from spaseq.core.watch import made_text
from spaseq.rdf import TripleTerm

_INTEGERS: Final = frozenset({
    XSD.integer, XSD.nonPositiveInteger, XSD.negativeInteger, XSD.nonNegativeInteger, XSD.positiveInteger,
    XSD.unsignedLong, XSD.unsignedInt, XSD.unsignedShort, XSD.unsignedByte, XSD.long, XSD.int, XSD.short, XSD.byte,
})  # fmt: skip
TYPES: Final = (XSD.integer, XSD.decimal, XSD.float, XSD.double)
"""The types of results, in order of promotion (XPath §6.2, B.1)."""
_FLOAT: Final = 2
_RANKS: Final = dict.fromkeys(_INTEGERS, 0) | {datatype: rank for rank, datatype in enumerate(TYPES)}
_PRECISION: Final = Context(prec=28)
_DIGITS: Final = 4_300
"""Digits of an integer or a decimal before or behind its point, at most: as many as Python reads. More are an overflow,
which is an error (XPath §4.2, FOAR0002); a decimal that is nearer to 0 is 0."""
_BITS: Final = 14_284
"""An integer of no more has no more than `_DIGITS` digits."""

# -- truth


def effective_truth(value: Any) -> bool:
    """The effective boolean value (SPARQL 1.1 §17.2.2). A string is true if it is not empty, a number if it is neither
    zero nor NaN; a boolean or number with an invalid text is false. SPARQLError for everything else: IRIs, blank nodes,
    dates, unbound variables and errors."""
    if isinstance(value, Literal):
        if value.datatype is None or value.datatype == XSD.string:
            return len(value) > 0
        if value.datatype == XSD.boolean:
            return value.value is True
        if _rank(value.datatype) is not None:
            return bool(value.value) and value.value == value.value
    raise SPARQLError(f"{value!r} is neither true nor false")


# -- numbers


def number_of(term: Any) -> tuple[int, int | Decimal | float]:
    """(rank of its type in `TYPES`, value) of a numeric literal. SPARQLError for other terms."""
    if isinstance(term, Literal) and term.datatype is not None:
        rank = _rank(term.datatype)
        value = term.value
        if rank is not None and isinstance(value, (int, Decimal, float)) and not isinstance(value, bool):
            return rank, value
    raise SPARQLError(f"{term!r} is not a number")


def is_numeric(datatype: str) -> bool:
    """True if literals of a datatype are numbers."""
    return URIRef(datatype) in _RANKS


def _rank(datatype: Any) -> int | None:
    return _RANKS.get(datatype)


def number_text(rank: int, value: int | Decimal | float) -> str:
    """The text of a number in a literal of its type."""
    if rank == _FLOAT:
        with np.errstate(over="ignore"):
            value = float(str(np.float32(value)))
    if rank == 0:
        return str(_bound(cast("int", value)))
    return double_text(value) if isinstance(value, float) else decimal_text(value)


def _literal(rank: int, value: int | Decimal | float) -> Literal:
    return Literal(number_text(rank, value), datatype=TYPES[rank], normalize=False)


def decimal_text(value: Any) -> str:
    """The canonical text of a decimal (XML Schema 1.1 §3.3.3): no exponent, no trailing zeros or point. Of a double,
    which is finite, that of the shortest decimal that is nearest to it."""
    if isinstance(value, float):
        text = repr(value or 0.0)
        if "e" not in text:
            return text.removesuffix(".0")
        value = text
    whole, _, part = format(Decimal(value), "f").partition(".")
    digits = part.rstrip("0")
    return f"{whole}.{digits}" if digits else "0" if whole == "-0" else whole


def double_text(value: float) -> str:
    """The text of a double in a result of arithmetic."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if value != value else "INF" if value > 0 else "-INF"


def _bound(value: int) -> int:
    if value.bit_length() > _BITS:
        raise SPARQLError(f"an integer of more than {_DIGITS} digits")
    return value


def as_double(value: int | Decimal | float) -> float:
    """The nearest double; an infinity for a number that is too large."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _combine(sign: str, left: tuple[int, Any], right: tuple[int, Any]) -> tuple[int, Any]:
    """The rank of the type and the value of `left sign right` (SPARQL 1.1 §17.4.1, XPath op:numeric-*)."""
    rank = max(left[0], right[0])
    if rank >= _FLOAT:
        return rank, _double(sign, as_double(left[1]), as_double(right[1]))
    a, b = left[1], right[1]
    if sign == "/":
        rank = 1
        if not b:
            raise SPARQLError("division by zero")
    try:
        if rank == 0:
            return 0, _bound(a + b if sign == "+" else a - b if sign == "-" else a * b)
        with decimal_context(_PRECISION):
            x, y = Decimal(a), Decimal(b)
            found = x + y if sign == "+" else x - y if sign == "-" else x * y if sign == "*" else x / y
        if found and abs(found.adjusted()) >= _DIGITS:
            if found.adjusted() > 0:
                raise SPARQLError(f"a decimal of more than {_DIGITS} digits")
            return 1, Decimal(0)
        return 1, found
    except (InvalidOperation, Overflow) as error:
        raise SPARQLError(str(error)) from None


def quotient_text(whole: int, scale: int, divisor: int) -> str:
    """The text of the decimal whole / 10**scale / divisor."""
    with decimal_context(_PRECISION):
        return decimal_text(Decimal(whole).scaleb(-scale) / divisor)


def _double(sign: str, a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        return float(x + y if sign == "+" else x - y if sign == "-" else x * y if sign == "*" else x / y)


def arithmetic(signs: Sequence[str], terms: Sequence[Any]) -> Literal | None:
    """Sums or products of terms from left to right (SPARQL 1.1 §17.4.1); None if they may be times. SPARQLError if a
    term is no number."""
    first = terms[0]
    if isinstance(first, Literal) and first.datatype is not None and _rank(first.datatype) is None:
        return None
    found = number_of(first)
    for sign, other in zip(signs, terms[1:], strict=True):
        found = _combine(sign, found, number_of(other))
    return _literal(*found)


def total(terms: list[Any]) -> Literal:
    """The sum of numbers (SPARQL 1.1 §18.5.1.3). SPARQLError if a term is not a number."""
    return _literal(*_sum(terms))


def mean(terms: list[Any]) -> Literal:
    """The mean of numbers, 0 without any (SPARQL 1.1 §18.5.1.4). SPARQLError if a term is not a number."""
    return _literal(*_combine("/", _sum(terms), (0, len(terms)))) if terms else _literal(0, 0)


def concatenation(terms: list[Any], separator: str) -> Literal:
    """The texts of terms joined by `separator` (SPARQL 1.1 §18.5.1.7). SPARQLError for a blank node or a triple
    term."""
    if any(isinstance(term, (BNode, TripleTerm)) for term in terms):
        raise SPARQLError("a blank node and a triple term have no text")
    made_text(sum(map(len, terms)) + len(separator) * max(len(terms) - 1, 0))
    return Literal(separator.join(map(str, terms)))


def _sum(terms: list[Any]) -> tuple[int, Any]:
    found: tuple[int, Any] = (0, 0)
    for term in terms:
        found = _combine("+", found, number_of(term))
    return found


def negate(term: Any) -> Literal:
    """`-x`."""
    rank, value = number_of(term)
    return _literal(rank, -value)


def keep_sign(term: Any) -> Literal:
    """`+x`."""
    return _literal(*number_of(term))


def absolute(term: Any) -> Literal:
    """ABS."""
    rank, value = number_of(term)
    return _literal(rank, cast("int | Decimal | float", abs(value)))


def nearest(value: int | Decimal | float) -> int:
    """The nearest whole number; of two equally near ones the greater (XPath §4.4.4)."""
    return math.floor(Fraction(value) + Fraction(1, 2))


def rounded(by: Callable[[Any], int], term: Any) -> Literal:
    """A number made whole by `by`, with the type that it has. Infinities and NaN are not changed."""
    _, value = number_of(term)
    if isinstance(value, float) and not math.isfinite(value):
        return cast("Literal", term)
    return Literal(str(_bound(by(value))), datatype=term.datatype, normalize=False)  # its value is that of its text
