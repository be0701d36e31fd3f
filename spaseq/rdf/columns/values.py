"""The values of the literals of a batch, as columns; the same as `rdflib.Literal.value` gives one by one.

Comparisons in a graph pattern go by kind (`spaseq.gpm.comparison`): strings with strings, numbers with numbers of any
type, times with times. The columns give the kind and a value that decides within it, and mark the literals for which it
does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any, Final

import numpy as np
from rdflib import Literal

from spaseq.core.integers import apart
from spaseq.core.jit import attempt_rows
from spaseq.rdf.terms import Term, is_held, term_from_key, value_of_literal
from spaseq.rdf.triple_terms import TRIPLE, TripleTerm

_LONG_DOUBLE: Final = re.compile(rb"[+-]?[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?")
_DATATYPES: Final = 64  # of more in one batch, literals are read one by one
_TRIPLE: Final = 254
"""In place of a kind: a triple term, for which the kernel has no rule."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Kinds(IntEnum):
    """The kind of comparison of a term."""

    NO_LITERAL = 0
    STRING = 1  # without a tag
    TAGGED = 2  # with a language tag
    INTEGER = 3  # xsd:integer and the types derived from it
    DECIMAL = 4
    DOUBLE = 5  # xsd:double and xsd:float
    BOOLEAN = 6
    DATE_TIME = 7
    OTHER = 8  # a value that these columns do not hold: ask rdflib's term
    ILL_TYPED = 9  # no value: the text does not fit the datatype, or the datatype is not known; or a triple term


_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_INTEGERS: Final = (
    "integer nonPositiveInteger negativeInteger long int short byte nonNegativeInteger unsignedLong unsignedInt "
    "unsignedShort unsignedByte positiveInteger"
)
_KINDS: Final = {
    **{_XSD + name: Kinds.INTEGER for name in _INTEGERS.split()},
    _XSD + "decimal": Kinds.DECIMAL,
    _XSD + "double": Kinds.DOUBLE,
    _XSD + "float": Kinds.DOUBLE,
    _XSD + "boolean": Kinds.BOOLEAN,
    _XSD + "dateTime": Kinds.DATE_TIME,
    str(TRIPLE): _TRIPLE,
}


@dataclass(frozen=True, slots=True, eq=False)
class LiteralColumns:
    """The literals of a table by term number; all arrays have a value for each of its t terms.

    * `kind`: uint8 of `Kinds`.
    * `number`: float64, of INTEGER, DECIMAL and DOUBLE the nearest value; NaN otherwise.
    * `exact`: bool, true of a DOUBLE, of an INTEGER within 2**53 and of a DECIMAL of at most 15 digits (`is_held`):
      comparing `number` of two such terms compares their values. If it is false for a number, use rdflib's term.
    * `whole`: int64, of an INTEGER its value, of a BOOLEAN 0 or 1, of a DATE_TIME nanoseconds since the epoch; 0
      otherwise. A DATE_TIME without a zone is UTC; rdflib holds microseconds, so smaller digits are cut off.
    * `has_whole`: bool, false of an INTEGER beyond int64 and of all that have no such value.
    """

    kind: np.ndarray
    number: np.ndarray
    exact: np.ndarray
    whole: np.ndarray
    has_whole: np.ndarray

    @property
    def is_number(self) -> np.ndarray:
        """bool (t,)."""
        return _numeric(self.kind)

    def numeric(self, numbers: np.ndarray) -> np.ndarray:
        """For each of the terms `numbers`, True if it is a number: bool. The last row stands for -1."""
        return _numeric(self.kind[numbers])


def _numeric(kind: np.ndarray) -> np.ndarray:
    found: np.ndarray = (kind >= _FIRST_NUMBER) & (kind <= _LAST_NUMBER)
    return found


_NUMBERS: Final = frozenset({Kinds.INTEGER, Kinds.DECIMAL, Kinds.DOUBLE})
_FIRST_NUMBER: Final = int(Kinds.INTEGER)  # PERF: an enum's member costs numpy a microsecond more
_LAST_NUMBER: Final = int(Kinds.DOUBLE)


def literal_columns(
    text: np.ndarray,
    start: np.ndarray,
    length: np.ndarray,
    lexical: np.ndarray,
    datatype: np.ndarray,
    term: Callable[[int], Term],
) -> LiteralColumns:
    """The columns of all literals of a table, given by its arrays (`TermTable`) and the function that makes a term.

    By a kernel for the usual forms, and by rdflib's terms for the rest.
    """
    from spaseq.rdf.columns.kernels import literals

    columns = empty_columns(len(datatype))
    asked = np.full(len(datatype) + 1, literals.NOT_SEEN, dtype=np.uint8)  # by datatype; the last place is that of -1
    asked[-1] = Kinds.STRING
    for number in apart(datatype[datatype >= 0]).tolist():
        asked[number] = _KINDS.get(str(term(number)), literals.NOT_SEEN)
    attempt_rows(literals.read_values, 16 * len(datatype), text, start, length, lexical, asked[datatype], columns.kind,
                 columns.number, columns.exact, columns.whole, columns.has_whole)  # fmt: skip
    _read_others(columns, text, start, lexical, asked[datatype], term)
    return columns


def _read_others(
    columns: LiteralColumns,
    text: np.ndarray,
    start: np.ndarray,
    lexical: np.ndarray,
    asked: np.ndarray,
    term: Callable[[int], Term],
) -> None:
    """Fill in values that the kernel leaves: doubles of more digits as Python reads them, others by rdflib."""
    from spaseq.rdf.columns.kernels import literals

    columns.kind[asked == _TRIPLE] = Kinds.ILL_TYPED  # PERF: no triple term is made, for 20 µs each
    left = np.flatnonzero(columns.kind == literals.NOT_SEEN)
    doubles = asked[left] == Kinds.DOUBLE
    for number in left[doubles].tolist():
        first = int(start[number]) + 1
        digits = text[first : first + int(lexical[number])].tobytes()
        if _LONG_DOUBLE.fullmatch(digits):
            columns.kind[number] = Kinds.DOUBLE
            columns.number[number] = float(digits)
            columns.exact[number] = True
        else:
            _read(columns, number, term)
    for number in left[~doubles].tolist():
        _read(columns, number, term)


def _read(columns: LiteralColumns, number: int, term: Callable[[int], Term]) -> None:
    literal = term(number)
    assert isinstance(literal, (Literal, TripleTerm))
    set_value(columns, number, literal)


def values_of_keys(keys: Sequence[bytes]) -> LiteralColumns:
    """The columns of terms given by their bytes (`spaseq.rdf.terms.term_bytes`), as `literal_columns` has them. No term
    is made of the usual forms."""
    from spaseq.rdf.columns.kernels import literals

    count = len(keys)
    length = np.fromiter(map(len, keys), np.int32, count)
    start = np.cumsum(length, dtype=np.int64) - length
    text = np.frombuffer(bytearray(b"".join(keys)), np.uint8)  # which kernels take for one that is written
    lexical, datatype = np.empty(count, np.int32), np.empty(count, np.int32)
    firsts = np.zeros(_DATATYPES, np.int64)
    known = attempt_rows(literals.read_ends, 16 * count, text, start, length, lexical, datatype, firsts)
    asked = np.full(_DATATYPES + 2, literals.NOT_SEEN, dtype=np.uint8)  # the last but one: no room; the last: none
    asked[-1] = Kinds.STRING
    for number, first in enumerate(firsts[:known].tolist()):
        key = keys[first]
        asked[number] = _KINDS.get(key[key.rindex(b'"') + 4 : -1].decode(), literals.NOT_SEEN)
    columns = empty_columns(count)
    attempt_rows(literals.read_values, 16 * count, text, start, length, lexical, asked[datatype], columns.kind,
                 columns.number, columns.exact, columns.whole, columns.has_whole)  # fmt: skip
    _read_others(columns, text, start, lexical, asked[datatype], lambda number: term_from_key(keys[number].decode()))
    return columns


def empty_columns(count: int) -> LiteralColumns:
    """Columns of `count` terms that are no literals."""
    return LiteralColumns(
        np.zeros(count, dtype=np.uint8),
        np.full(count, np.nan),
        np.zeros(count, dtype=np.bool_),
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
    )


def set_value(columns: LiteralColumns, number: int, literal: Literal | TripleTerm) -> None:
    """Fill in the row of one literal from the value that rdflib gives it, or of a triple term."""
    kind, value = _value(literal)
    columns.kind[number] = kind
    if kind in _NUMBERS:
        columns.number[number] = _nearest(value)
        columns.exact[number] = is_held(value)
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        columns.whole[number] = value
        columns.has_whole[number] = True


def set_values(columns: LiteralColumns, numbers: np.ndarray, values: LiteralColumns) -> None:
    """Fill in the rows `numbers` (int64) from the first rows of `values`."""
    for name in ("kind", "number", "exact", "whole", "has_whole"):
        getattr(columns, name)[numbers] = getattr(values, name)[: len(numbers)]


def number_of_term(term: Term) -> tuple[float, bool] | None:
    """`LiteralColumns.number` and `exact` of one term; None for a term that is no number."""
    if not isinstance(term, Literal):
        return None
    kind, value = _value(term)
    return (_nearest(value), is_held(value)) if kind in _NUMBERS else None


def _value(literal: Literal | TripleTerm) -> tuple[Kinds, Any]:
    if isinstance(literal, TripleTerm):
        return Kinds.ILL_TYPED, None
    if literal.language:
        return Kinds.TAGGED, None
    if literal.datatype is None:
        return Kinds.STRING, None
    match value_of_literal(literal):
        case None:
            return Kinds.ILL_TYPED, None
        case bool() as truth:
            return Kinds.BOOLEAN, int(truth)
        case int() as whole:
            return Kinds.INTEGER, whole
        case Decimal() as decimal:
            return Kinds.DECIMAL, decimal
        case float() as double:
            return Kinds.DOUBLE, double
        case datetime() as time:
            aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
            past = aware - _EPOCH
            return Kinds.DATE_TIME, ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1_000
        case _:
            return Kinds.OTHER, None


def _nearest(value: int | float | Decimal) -> float:
    if value == 0 and not isinstance(value, float):  # only a double has a negative zero
        return 0.0
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
