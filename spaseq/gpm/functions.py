"""Arithmetic, casts and string functions by the rules of SPARQL 1.1 §17 and XPath, in place of rdflib's.

rdflib computes some sums and products of integers as decimals and the other way round, has no xsd:float, casts values
that have no such cast, ignores some flags of REGEX, counts SUBSTR positions below 1 from the end, cannot round
infinity, accepts any argument of STR and STRDT, and takes dates and NaN as true. `replacement` gives the function of
this module for an expression; both evaluators of patterns use it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation, Overflow
from decimal import localcontext as decimal_context
from fractions import Fraction
from functools import partial
from typing import Any, Final, cast

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql import operators
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.parserutils import Expr
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import BNode, Literal, URIRef

from spaseq.core.watch import made_text
from spaseq.gpm import regex as expressions

__all__ = [
    "arithmetic", "cast_to", "concatenation", "double_text", "effective_truth", "is_function", "mean", "number_of",
    "quotient_text", "replacement", "total",
]  # fmt: skip

_INTEGERS: Final = frozenset({
    XSD.integer, XSD.nonPositiveInteger, XSD.negativeInteger, XSD.nonNegativeInteger, XSD.positiveInteger,
    XSD.unsignedLong, XSD.unsignedInt, XSD.unsignedShort, XSD.unsignedByte, XSD.long, XSD.int, XSD.short, XSD.byte,
})  # fmt: skip
_TYPES: Final = (XSD.integer, XSD.decimal, XSD.float, XSD.double)
"""The types of results, in order of promotion (XPath §6.2, B.1)."""
_FLOAT, _DOUBLE = 2, 3
_TAG: Final = re.compile(r"[a-zA-Z]{1,8}(?:-[a-zA-Z0-9]{1,8})*")
_PRECISION: Final = Context(prec=28)
_DIGITS: Final = 4_300
"""Digits of an integer or a decimal before or behind its point, at most: as many as Python reads. More are an overflow,
which is an error (XPath §4.2, FOAR0002); a decimal that is nearer to 0 is 0."""
_BITS: Final = 14_284
"""An integer of no more has no more than `_DIGITS` digits."""

_Function = Callable[[Expr, Any], Any]


def replacement(value: Expr) -> _Function | None:
    """The function to evaluate an expression with in place of rdflib's; None if rdflib's is correct."""
    if value.name == "Function":
        return _CASTS.get(dict.get(value, "iri"))
    return _FUNCTIONS.get(value.name)


def is_function(iri: str) -> bool:
    """Whether `iri` names a cast or a function: one of SPARQL's, or one that was registered with rdflib."""
    return URIRef(iri) in operators._CUSTOM_FUNCTIONS


# -- truth


def effective_truth(value: Any) -> bool:
    """The effective boolean value (SPARQL 1.1 §17.2.2): a string is true if it is not empty, a number if it is neither
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


def _chosen(expression: Expr, context: Any) -> Any:
    chosen = "arg2" if effective_truth(_eval(dict.__getitem__(expression, "arg1"), context)) else "arg3"
    return _eval(dict.__getitem__(expression, chosen), context)


def _negated(expression: Expr, context: Any) -> Literal:
    return Literal(not effective_truth(_eval(dict.__getitem__(expression, "expr"), context)))


# -- numbers


def number_of(term: Any) -> tuple[int, int | Decimal | float]:
    """(rank of its type in `_TYPES`, value) of a numeric literal. SPARQLError for other terms."""
    if isinstance(term, Literal) and term.datatype is not None:
        rank = _rank(term.datatype)
        value = term.value
        if rank is not None and isinstance(value, (int, Decimal, float)) and not isinstance(value, bool):
            return rank, value
    raise SPARQLError(f"{term!r} is not a number")


def _rank(datatype: Any) -> int | None:
    if datatype in _INTEGERS:
        return 0
    return _TYPES.index(datatype) if datatype in _TYPES else None


def _literal(rank: int, value: int | Decimal | float) -> Literal:
    """A number as a literal of its type."""
    if rank == _FLOAT:
        with np.errstate(over="ignore"):
            value = float(str(np.float32(value)))
    if rank == 0:
        text = str(_bounded(cast("int", value)))
    else:
        text = double_text(value) if isinstance(value, float) else _decimal_text(value)
    return Literal(text, datatype=_TYPES[rank], normalize=False)


def _decimal_text(value: Any) -> str:
    """The canonical text of a decimal (XML Schema 1.1 §3.3.3): no exponent, no trailing zeros or point."""
    whole, _, part = format(Decimal(value), "f").partition(".")
    digits = part.rstrip("0")
    return f"{whole}.{digits}" if digits else "0" if whole == "-0" else whole


def double_text(value: float) -> str:
    """The text of a double in a result of arithmetic."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    return repr(value)


def _bounded(value: int) -> int:
    if value.bit_length() > _BITS:
        raise SPARQLError(f"an integer of more than {_DIGITS} digits")
    return value


def _as_float(value: int | Decimal | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _combined(sign: str, left: tuple[int, Any], right: tuple[int, Any]) -> tuple[int, Any]:
    """The rank of the type and the value of `left sign right` (SPARQL 1.1 §17.4.1, XPath op:numeric-*)."""
    rank = max(left[0], right[0])
    if rank >= _FLOAT:
        return rank, _double(sign, _as_float(left[1]), _as_float(right[1]))
    a, b = left[1], right[1]
    if sign == "/":
        rank = 1
        if not b:
            raise SPARQLError("division by zero")
    try:
        if rank == 0:
            return 0, _bounded(a + b if sign == "+" else a - b if sign == "-" else a * b)
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
        return _decimal_text(Decimal(whole).scaleb(-scale) / divisor)


def _double(sign: str, a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        x, y = np.float64(a), np.float64(b)
        return float(x + y if sign == "+" else x - y if sign == "-" else x * y if sign == "*" else x / y)


def _arithmetic(original: _Function) -> _Function:
    """The function for sums or products: numbers from left to right; times and durations by rdflib's `original`."""

    def evaluate(expression: Expr, context: Any) -> Any:
        first, others = expression.expr, expression.other
        if others is None:
            return first
        if isinstance(first, Literal) and first.datatype is not None and _rank(first.datatype) is None:
            return _of_times(original, expression, context)
        return arithmetic(expression.op, (first, *others))

    return evaluate


def arithmetic(signs: Sequence[str], terms: Sequence[Any]) -> Literal | None:
    """Sums or products of terms from left to right, as `replacement` of the expression has them; None where they may be
    times. SPARQLError where a term is no number."""
    first = terms[0]
    if isinstance(first, Literal) and first.datatype is not None and _rank(first.datatype) is None:
        return None
    found = number_of(first)
    for sign, other in zip(signs, terms[1:], strict=True):
        found = _combined(str(sign), found, number_of(other))
    return _literal(*found)


def _of_times(original: _Function, expression: Expr, context: Any) -> Any:
    """rdflib's arithmetic of times. It raises any exception for other values, which becomes a SPARQLError here."""
    if any(isinstance(term, Literal) and term.value is None for term in (expression.expr, *expression.other)):
        raise SPARQLError("a literal without a value has no sum or difference")
    try:
        return original(expression, context)
    except (AttributeError, TypeError, ValueError, ArithmeticError, KeyError) as error:
        raise SPARQLError(f"no sum or difference of these: {error}") from None


def total(terms: list[Any]) -> Literal:
    """The sum of numbers (SPARQL 1.1 §18.5.1.3). SPARQLError if a term is not a number."""
    return _literal(*_sum(terms))


def mean(terms: list[Any]) -> Literal:
    """The mean of numbers, 0 without any (SPARQL 1.1 §18.5.1.4). SPARQLError if a term is not a number."""
    return _literal(*_combined("/", _sum(terms), (0, len(terms)))) if terms else _literal(0, 0)


def concatenation(terms: list[Any], separator: str) -> Literal:
    """The texts of terms joined by `separator` (SPARQL 1.1 §18.5.1.7). SPARQLError for a blank node."""
    if any(isinstance(term, BNode) for term in terms):
        raise SPARQLError("a blank node has no text")
    made_text(sum(map(len, terms)) + len(separator) * max(len(terms) - 1, 0))
    return Literal(separator.join(map(str, terms)))


def _sum(terms: list[Any]) -> tuple[int, Any]:
    found: tuple[int, Any] = (0, 0)
    for term in terms:
        found = _combined("+", found, number_of(term))
    return found


def _minus(expression: Expr, context: Any) -> Literal:
    rank, value = number_of(expression.expr)
    return _literal(rank, -value)


def _plus(expression: Expr, context: Any) -> Literal:
    return _literal(*number_of(expression.expr))


# -- casts (SPARQL 1.1 §17.5, XPath §17.1)

_LEXICAL: Final = {
    XSD.integer: re.compile(r"[+-]?\d+"),
    XSD.decimal: re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)"),
    XSD.double: re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?INF|NaN"),
    XSD.boolean: re.compile(r"true|false|0|1"),
}
_DATE: Final = re.compile(r"(-?\d{4,}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?")


def cast_to(iri: Any) -> Callable[[Any], Literal] | None:
    """The cast that an IRI names, of a term; SPARQLError where it has no such value. None if it names another
    function."""
    return partial(_converted, target=iri) if iri in _CASTS else None


def _cast(target: URIRef) -> _Function:
    def evaluate(expression: Expr, context: Any) -> Literal:
        arguments = expression.expr
        if not isinstance(arguments, list) or len(arguments) != 1:
            raise SPARQLError("a cast has one argument")
        return _converted(arguments[0], target)

    return evaluate


def _converted(term: Any, target: URIRef) -> Literal:
    if isinstance(term, URIRef) and target == XSD.string:
        return Literal(str(term))
    if not isinstance(term, Literal) or (term.language and target != XSD.string):
        raise SPARQLError(f"{term!r} cannot be cast")
    if target == XSD.string:
        return Literal(_text_of(term))
    if term.datatype is None or term.datatype == XSD.string:
        return _read(str(term).strip(), target)
    if term.value is None:
        raise SPARQLError(f"{term!r} has no value")
    if target == XSD.dateTime:
        return _date_time(term)
    if term.datatype == XSD.boolean:
        truth = bool(term.value)
        return _truth(truth) if target == XSD.boolean else _number_as(target, 0, int(truth))
    rank, value = number_of(term)
    if target == XSD.boolean:
        return _truth(bool(value) and value == value)
    return _number_as(target, rank, value)


def _truth(value: bool) -> Literal:
    return Literal("true" if value else "false", datatype=XSD.boolean)


def _number_as(target: URIRef, rank: int, value: int | Decimal | float) -> Literal:
    if target in (XSD.double, XSD.float):
        return _literal(_TYPES.index(target), _as_float(value))
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise SPARQLError(f"{value} is no {target}")
    if target == XSD.integer:
        return _literal(0, int(Decimal(value).to_integral_value(ROUND_DOWN)))
    return _literal(1, Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


def _read(text: str, target: URIRef) -> Literal:
    """The literal of type `target` that a text denotes. SPARQLError if it is not a text of that type."""
    if target == XSD.dateTime:
        return _date_time(Literal(text, datatype=XSD.dateTime, normalize=False))
    if not _LEXICAL[XSD.double if target == XSD.float else target].fullmatch(text):
        raise SPARQLError(f"{text!r} is no {target}")
    if target == XSD.boolean:
        return _truth(text in ("true", "1"))
    if target == XSD.integer:
        try:
            return _literal(0, int(text))
        except ValueError as error:  # of more digits than Python reads
            raise SPARQLError(str(error)) from None
    if target == XSD.decimal:
        return _literal(1, Decimal(text))
    return _literal(_TYPES.index(target), float(text))


def _date_time(term: Literal) -> Literal:
    if term.datatype == XSD.dateTime and term.value is not None:
        return term
    found = _DATE.fullmatch(str(term)) if term.datatype == XSD.date else None
    if found is None:
        raise SPARQLError(f"{term!r} cannot be cast to a time")
    return Literal(f"{found[1]}T00:00:00{found[2] or ''}", datatype=XSD.dateTime, normalize=False)


def _text_of(term: Literal) -> str:
    """The canonical text of a number or a truth value; the text of other literals as it is."""
    value = term.value
    if term.datatype == XSD.boolean and value is not None:
        return "true" if value else "false"
    try:
        rank, number = number_of(term)
    except SPARQLError:
        return str(term)
    if not isinstance(number, float):
        return str(number) if rank == 0 else _decimal_text(number)
    if number != number or abs(number) == float("inf"):
        return double_text(number)
    if number == 0 or 1e-6 <= abs(number) < 1e6:
        return _decimal_text(Decimal(repr(number)))
    mantissa, exponent = f"{Decimal(repr(number)).normalize():E}".split("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


# -- strings


def _string(term: Any) -> Literal:
    if not isinstance(term, Literal) or (term.datatype is not None and term.datatype != XSD.string):
        raise SPARQLError(f"{term!r} is no string")
    return term


def _matches(expression: Expr, context: Any) -> Literal:
    flags = "" if expression.flags is None else str(_string(expression.flags))
    pattern = expressions.pattern_of(str(_string(expression.pattern)), flags)
    return Literal(expressions.found(pattern, str(_string(expression.text))))


def _replace(expression: Expr, context: Any) -> Literal:
    text = _string(expression.arg)
    flags = "" if expression.flags is None else str(_string(expression.flags))
    pattern = expressions.pattern_of(str(_string(expression.pattern)), flags)
    new = expressions.replaced(pattern, str(text), str(_string(expression.replacement)), literal="q" in flags)
    return Literal(new, lang=text.language)


def _substring(expression: Expr, context: Any) -> Literal:
    """SUBSTR. Positions count from 1; there are no characters at positions below (XPath §5.4.3)."""
    text = _string(expression.arg)
    start = _place(expression.start)
    stop = len(text) + 1 if expression.length is None else start + _place(expression.length)
    return Literal(str(text)[max(start, 1) - 1 : max(stop - 1, 0)], lang=text.language)


def _place(term: Any) -> int:
    rank, value = number_of(term)
    if rank:
        raise SPARQLError(f"{term!r} is no integer")
    return int(value)


def _text(expression: Expr, context: Any) -> Any:
    """STR of an IRI or a literal; an error for a blank node (SPARQL 1.1 §17.4.2.5)."""
    if isinstance(expression.arg, BNode):
        raise SPARQLError("a blank node has no text")
    return operators.Builtin_STR(expression, context)


def _typed(expression: Expr, context: Any) -> Literal:
    text = _string(expression.arg1)
    if text.language or not isinstance(expression.arg2, URIRef):
        raise SPARQLError("STRDT takes a string and an IRI")
    return Literal(str(text), datatype=expression.arg2, normalize=False)


def _tagged(expression: Expr, context: Any) -> Literal:
    text, tag = _string(expression.arg1), _string(expression.arg2)
    if text.language or not _TAG.fullmatch(tag):
        raise SPARQLError("STRLANG takes a string and a language tag")
    return Literal(str(text), lang=str(tag))


def _concatenated(expression: Expr, context: Any) -> Literal:
    """CONCAT; the result has the language tag that all arguments share, if they do."""
    given = dict.get(expression, "arg")
    arguments = [_string(term) for term in (expression.arg if isinstance(given, list) else [])]
    tags = {term.language for term in arguments}
    made_text(sum(map(len, arguments)))
    return Literal("".join(map(str, arguments)), lang=tags.pop() if len(tags) == 1 else None)


def _first_value(expression: Expr, context: Any) -> Any:
    if not isinstance(dict.get(expression, "arg"), list):  # an empty list is rdf:nil
        raise SPARQLError("COALESCE of nothing")
    return operators.Builtin_COALESCE(expression, context)


def _folded(settled: bool) -> _Function:
    """The function for `||` (`settled` True) or `&&` (`settled` False): if an argument has the truth value `settled`,
    that is the result, whatever errors others have (SPARQL 1.1 §17.2)."""

    def evaluate(expression: Expr, context: Any) -> Literal:
        error: SPARQLError | None = None
        for item in (dict.__getitem__(expression, "expr"), *(dict.get(expression, "other") or ())):
            try:
                if effective_truth(_eval(item, context)) is settled:
                    return Literal(settled)
            except SPARQLError as caught:
                error = caught
        if error is not None:
            raise error
        return Literal(not settled)

    return evaluate


def _exists(expression: Expr, context: Any) -> Literal:
    """EXISTS, evaluated by the context of the bindings (`spaseq.gpm.reference`). rdflib's own passes outer bindings
    into scopes that they do not reach."""
    found: bool = context.ctx.exists(vars(expression)["graph"], context)
    return Literal(found is (expression.name == "Builtin_EXISTS"))


def _time_zone(expression: Expr, context: Any) -> Literal:
    offset = operators.datetime(expression.arg).utcoffset()
    if offset is None:
        raise SPARQLError("the time names no zone")
    minutes = round(offset.total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    text = (f"{hours}H" if hours else "") + (f"{rest}M" if rest else "") or "0S"
    return Literal(f"{'-' if minutes < 0 else ''}PT{text}", datatype=XSD.dayTimeDuration, normalize=False)


_CASTS: Final[dict[Any, _Function]] = {
    target: _cast(target)
    for target in (XSD.string, XSD.boolean, XSD.integer, XSD.decimal, XSD.float, XSD.double, XSD.dateTime)
}


def _of_value(function: _Function) -> _Function:
    """rdflib's function of a number or a time, but an error for a literal whose text does not fit its type."""

    def checked(expression: Expr, context: Any) -> Any:
        if isinstance(expression.arg, Literal) and expression.arg.value is None:
            raise SPARQLError(f"{expression.arg!r} has no value")
        return function(expression, context)

    return checked


def _whole(rounded: Callable[[Any], int]) -> _Function:
    """The function for CEIL, FLOOR or ROUND: `rounded` on finite numbers; infinities and NaN are not changed."""

    def of(expression: Expr, context: Any) -> Literal:
        term = expression.arg
        _, value = number_of(term)
        if isinstance(value, float) and not math.isfinite(value):
            return term
        return Literal(
            str(_bounded(rounded(value))), datatype=term.datatype, normalize=False
        )  # its value is that of its text

    return of


def _nearest(value: int | Decimal | float) -> int:
    """The nearest whole number; of two equally near ones the greater (XPath §4.4.4)."""
    return math.floor(Fraction(value) + Fraction(1, 2))


def _of_terms(function: _Function) -> _Function:
    """rdflib's function of terms of any kind, but an error if an argument is one; rdflib takes the error for a term."""

    def checked(expression: Expr, context: Any) -> Any:
        for name in ("arg", "arg1", "arg2"):
            if name in expression and isinstance(term := getattr(expression, name), SPARQLError):
                raise term
        return function(expression, context)

    return checked


def _absolute(expression: Expr, context: Any) -> Literal:
    rank, value = number_of(expression.arg)
    return _literal(rank, cast("int | Decimal | float", abs(value)))


_OF_VALUES: Final = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TZ")
_OF_TERMS: Final[dict[str, _Function]] = {
    "isIRI": operators.Builtin_isIRI, "isURI": operators.Builtin_isIRI, "isBLANK": operators.Builtin_isBLANK,
    "isLITERAL": operators.Builtin_isLITERAL, "isNUMERIC": operators.Builtin_isNUMERIC,
    "sameTerm": operators.Builtin_sameTerm,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, _Function]] = {
    **{f"Builtin_{name}": _of_value(getattr(operators, f"Builtin_{name}")) for name in _OF_VALUES},
    **{f"Builtin_{name}": _of_terms(function) for name, function in _OF_TERMS.items()},
    "Builtin_ABS": _of_value(_absolute),
    "Builtin_IF": _chosen,
    "UnaryNot": _negated,
    "AdditiveExpression": _arithmetic(operators.AdditiveExpression),
    "MultiplicativeExpression": _arithmetic(operators.MultiplicativeExpression),
    "UnaryMinus": _minus,
    "UnaryPlus": _plus,
    "ConditionalAndExpression": _folded(False),
    "ConditionalOrExpression": _folded(True),
    "Builtin_REGEX": _matches,
    "Builtin_REPLACE": _replace,
    "Builtin_STR": _text,
    "Builtin_STRDT": _typed,
    "Builtin_EXISTS": _exists,
    "Builtin_NOTEXISTS": _exists,
    "Builtin_STRLANG": _tagged,
    "Builtin_CONCAT": _concatenated,
    "Builtin_COALESCE": _first_value,
    "Builtin_TIMEZONE": _of_value(_time_zone),
    "Builtin_CEIL": _whole(math.ceil),
    "Builtin_FLOOR": _whole(math.floor),
    "Builtin_ROUND": _whole(_nearest),
    "Builtin_SUBSTR": _substring,
}
