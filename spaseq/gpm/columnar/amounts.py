"""Arithmetic over columns of numbers, exact as SPARQL 1.1 §17.4.1 has it, and the literals it gives.

Integers and decimals are whole numbers with a count of digits behind the point, doubles are doubles. A row is left
*open* if 64 bits do not hold its value (long integers, decimals of many digits, quotients that do not end), and for
times. For open rows the caller asks `spaseq.gpm.functions.table`, which defines the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from spaseq.core.comparisons import COMPARISONS
from spaseq.core.integers import different, first_of_each
from spaseq.gpm.columnar.kernels import OPEN
from spaseq.gpm.columnar.table import Space
from spaseq.gpm.functions.numbers import double_text, quotient_text
from spaseq.rdf.columns import Kinds, LiteralColumns

__all__ = [
    "DOUBLE", "MOST_DIGITS", "MOST_WHOLE", "OPEN", "TENS", "Amounts", "Numbers", "amounts_of", "by_kind", "combine",
    "compare", "decimal_digits", "divide", "error_of", "quotient_key", "rounded", "signed", "term_numbers",
]  # fmt: skip

INTEGER: Final = 0
DECIMAL: Final = 1
DOUBLE: Final = 3
_ERROR: Final = -1
_ULP: Final = 2.0**-52
MOST_WHOLE: Final = float(1 << 62)
_HELD: Final = 1 << 53
_DIGITS: Final = 15
MOST_DIGITS: Final = 18
TENS: Final = 10 ** np.arange(MOST_DIGITS + 1, dtype=np.int64)
_EXACT_TENS: Final = 10.0 ** np.arange(23)
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_SUFFIX: Final = {rank: f'"^^<{_XSD}{name}>' for rank, name in ((0, "integer"), (1, "decimal"), (3, "double"))}
_OTHER: Final = np.array([kind not in (Kinds.NO_LITERAL, Kinds.STRING, Kinds.TAGGED, Kinds.INTEGER, Kinds.DECIMAL,
                                       Kinds.DOUBLE) for kind in Kinds])  # fmt: skip
"""By kind, True if arithmetic on such a term may have a meaning not defined here, as for times."""


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """Numbers, one for each row.

    `rank`, int8: their type (`INTEGER`, `DECIMAL`, `DOUBLE`), or -1 for an error. `whole`, int64, and `scale`, int64
    from 0: of the first two, the value is whole / 10**scale, and an integer has the scale 0. `real`, float64: of a
    double its value. `open`, bool: nothing is known of the row. `bare`, bool: the double is written as the whole number
    that it is; None if none is.
    """

    rank: np.ndarray
    whole: np.ndarray
    scale: np.ndarray
    real: np.ndarray
    open: np.ndarray
    bare: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rank)

    def doubles(self) -> tuple[np.ndarray, np.ndarray]:
        """(the nearest doubles, True if they are known to be): float64, bool."""
        sure = (self.rank == DOUBLE) | (self.scale == 0) | ((np.abs(self.whole) <= _HELD) & (self.scale <= 22))
        near = self.whole.astype(np.float64) / _EXACT_TENS[np.minimum(self.scale, 22)]
        return np.where(self.rank == DOUBLE, self.real, near), sure

    def terms(self, space: Space) -> np.ndarray:
        """The literals, as numbers of terms in `space`: int32, -1 for errors and open rows."""
        found = np.full(len(self), -1, np.int32)
        good = ~self.open
        for rank in (INTEGER, DECIMAL):
            rows = np.flatnonzero(good & (self.rank == rank))
            if len(rows):
                whole, scale = _shortest(self.whole[rows], self.scale[rows])
                found[rows] = _literals(whole, scale, rank, space)
        rows = np.flatnonzero(good & (self.rank == DOUBLE))
        if len(rows):
            bare = np.zeros(len(rows), bool) if self.bare is None else self.bare[rows]
            suffix = _SUFFIX[DOUBLE]
            for some, is_bare in ((rows[~bare], False), (rows[bare], True)):
                used, places = different(self.real[some].view(np.int64))
                values = used.view(np.float64)
                text = _whole_text if is_bare else repr if np.isfinite(values).all() else double_text
                if len(values):
                    found[some] = space.numbers_of_keys(_keys(map(text, values.tolist()), suffix))[places]
        return found


def _whole_text(value: float) -> str:
    return str(int(value))


def _shortest(whole: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same values without zeros at the end behind the point."""
    left = np.flatnonzero(scale > 0)
    if len(left):
        whole, scale = whole.copy(), scale.copy()
    while len(left):
        left = left[(scale[left] > 0) & (whole[left] % 10 == 0)]
        whole[left] //= 10
        scale[left] -= 1
    return whole, scale


def _literals(whole: np.ndarray, scale: np.ndarray, rank: int, space: Space) -> np.ndarray:
    """The numbers of the literals, each made once."""
    code = whole if not scale.any() else None
    if code is None:
        low = int(whole.min())
        if int(whole.max()) - low < 1 << 56:  # both in one number
            code = (whole - low) << 6 | scale
    if code is None:
        _, first, places = np.unique(np.stack([whole, scale]), axis=1, return_index=True, return_inverse=True)
    else:
        first, places = first_of_each(code)
    suffix = _SUFFIX[rank]
    pairs = zip(whole[first].tolist(), scale[first].tolist(), strict=True)
    keys = _keys([decimal_digits(w, s) for w, s in pairs], suffix)
    return space.numbers_of_keys(keys)[places.reshape(-1)]


def _keys(texts: Iterable[str], suffix: str) -> list[bytes]:
    """The bytes of literals with these texts, of which there is one at least, without line ends.

    PERF: encoded all at once, a quarter of the time.
    """
    return ('"' + f'{suffix}\n"'.join(texts) + suffix).encode().split(b"\n")


def decimal_digits(whole: int, scale: int) -> str:
    """The text of whole / 10**scale, which has no zero at its end behind the point."""
    if not scale:
        return str(whole)
    digits = str(abs(whole))
    sign = "-" if whole < 0 else ""
    if len(digits) <= scale:
        return f"{sign}0.{digits.zfill(scale)}"
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}"


def amounts_of(numbers: np.ndarray, space: Space) -> Amounts:
    """The numbers that terms are, given by their numbers in `space`, int32, -1 for unbound ones."""
    literals = space.literals()
    kind = np.where(numbers >= 0, literals.kind[numbers], np.uint8(Kinds.NO_LITERAL))
    count = len(numbers)
    rank = np.full(count, _ERROR, np.int8)
    whole, scale = np.zeros(count, np.int64), np.zeros(count, np.int64)
    real = np.zeros(count)
    open_rows = _OTHER[kind]
    is_whole = kind == Kinds.INTEGER
    if is_whole.any():
        rank[is_whole] = INTEGER
        whole[is_whole] = literals.whole[numbers[is_whole]]
        open_rows = open_rows | (is_whole & ~literals.has_whole[numbers])
    rows = np.flatnonzero(kind == Kinds.DECIMAL)
    if len(rows):
        rank[rows] = DECIMAL
        terms = numbers[rows]
        whole[rows], scale[rows], known = _digits(literals.number[terms], literals.exact[terms])
        open_rows[rows] = ~known
    is_real = kind == Kinds.DOUBLE
    if is_real.any():
        rank[is_real] = DOUBLE
        real[is_real] = literals.number[numbers[is_real]]
        if space.has_floats:
            open_rows = open_rows | is_real
    return Amounts(rank, whole, scale, real, open_rows)


def _digits(number: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(whole, scale, bool: known) of decimals of no more than 15 digits (`exact`), given by the nearest doubles. Each
    is the one decimal of so few digits with that nearest double."""
    whole, scale = np.zeros(len(number), np.int64), np.zeros(len(number), np.int64)
    known = np.zeros(len(number), bool)
    left = np.flatnonzero(exact & (np.abs(number) < 10.0**_DIGITS))
    for digits in range(MOST_DIGITS + 1):
        if not len(left):
            break
        value = number[left]
        tried = np.rint(value * _EXACT_TENS[digits])
        fits = (tried / _EXACT_TENS[digits] == value) & (np.abs(tried) < 10.0**_DIGITS)
        rows = left[fits]
        whole[rows], scale[rows], known[rows] = tried[fits], digits, True
        left = left[~fits]
    return whole, scale, known


def combine(sign: str, left: Amounts, right: Amounts) -> Amounts:
    """`left sign right`, one of `+ - * /`, as `functions.arithmetic` has it."""
    rank = np.maximum(left.rank, right.rank)
    wrong = (left.rank < 0) | (right.rank < 0)
    with np.errstate(all="ignore"):
        if sign == "/":
            whole, scale, open_rows, by_zero = _quotients(left, right)
            rank = np.maximum(rank, np.int8(DECIMAL))
            wrong = wrong | (by_zero & (rank != DOUBLE))
        else:
            whole, scale, open_rows = _sums(sign, left, right) if sign in "+-" else _products(left, right)
        real = np.zeros(len(rank))
        if (rank == DOUBLE).any():
            (a, sure), (b, certain) = left.doubles(), right.doubles()
            real = a + b if sign == "+" else a - b if sign == "-" else a * b if sign == "*" else a / b
            open_rows = np.where(rank == DOUBLE, ~(sure & certain), open_rows)
    rank = np.where(wrong, np.int8(_ERROR), rank).astype(np.int8)
    return Amounts(rank, whole, scale, real, left.open | right.open | (open_rows & ~wrong))


def divide(left: Amounts, right: Amounts) -> Amounts:
    """The quotients."""
    return combine("/", left, right)


def quotient_key(whole: int, scale: int, divisor: int) -> bytes:
    """The key of the decimal whole / 10**scale / divisor, rounded as `functions.arithmetic` does it."""
    return f'"{quotient_text(whole, scale, divisor)}{_SUFFIX[DECIMAL]}'.encode()


def _sums(sign: str, left: Amounts, right: Amounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scale = np.maximum(left.scale, right.scale)
    up, other = scale - left.scale, scale - right.scale
    far = (up > MOST_DIGITS) | (other > MOST_DIGITS)
    a = left.whole.astype(np.float64) * 10.0**up
    b = right.whole.astype(np.float64) * 10.0**other
    open_rows = far | (np.abs(a) + np.abs(b) >= MOST_WHOLE)
    x = left.whole * TENS[np.minimum(up, MOST_DIGITS)]
    y = right.whole * TENS[np.minimum(other, MOST_DIGITS)]
    return x + y if sign == "+" else x - y, scale, open_rows


def _products(left: Amounts, right: Amounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    near = left.whole.astype(np.float64) * right.whole.astype(np.float64)
    scale = left.scale + right.scale
    return left.whole * right.whole, scale, (np.abs(near) >= MOST_WHOLE) | (scale > 2 * MOST_DIGITS)


def _quotients(left: Amounts, right: Amounts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Those that end within 64 bits; the others are open. The last: True if the divisor is zero."""
    by_zero = right.whole == 0
    below = np.where(by_zero, 1, right.whole)
    count = len(below)
    whole, scale = np.zeros(count, np.int64), np.zeros(count, np.int64)
    open_rows = np.ones(count, bool)
    left_over = np.flatnonzero(~by_zero)
    for digits in range(MOST_DIGITS + 1):
        if not len(left_over):
            break
        own = left.whole[left_over]
        left_over = left_over[np.abs(own.astype(np.float64)) * 10.0**digits < MOST_WHOLE]
        value = left.whole[left_over] * TENS[digits]
        ends = value % below[left_over] == 0
        rows = left_over[ends]
        whole[rows] = value[ends] // below[rows]
        scale[rows] = left.scale[rows] - right.scale[rows] + digits
        open_rows[rows] = False
        left_over = left_over[~ends]
    turned = np.flatnonzero(~open_rows & (scale < 0))
    if len(turned):
        up = np.minimum(-scale[turned], MOST_DIGITS)
        open_rows[turned] = (-scale[turned] > MOST_DIGITS) | (
            np.abs(whole[turned].astype(np.float64)) * 10.0**up >= MOST_WHOLE
        )
        whole[turned] *= TENS[up]
        scale[turned] = 0
    return whole, scale, open_rows | (scale > 2 * MOST_DIGITS), by_zero


def signed(name: str, given: Amounts) -> Amounts:
    """`neg`, `plus` or `abs` of numbers."""
    if name == "plus":
        return Amounts(given.rank, given.whole, given.scale, given.real, given.open)
    if name == "neg":
        return Amounts(given.rank, -given.whole, given.scale, -given.real, given.open)
    return Amounts(given.rank, np.abs(given.whole), given.scale, np.abs(given.real), given.open)


def rounded(name: str, given: Amounts, *, plain: bool) -> Amounts:
    """`CEIL`, `FLOOR` or `ROUND` of doubles, decimals, and of integers if they are `plain`: xsd:integer and no type
    derived from it. The result has the argument's type."""
    scale = np.minimum(given.scale, MOST_DIGITS)
    unit = TENS[scale]
    if name == "ROUND":
        whole = (given.whole + np.where(scale > 0, unit // 2, 0)) // unit
    else:
        whole = given.whole // unit if name == "FLOOR" else -(-given.whole // unit)
    is_real = given.rank == DOUBLE
    asked = (given.scale > MOST_DIGITS) | (np.abs(given.whole) >= 1 << 61) | (is_real & ~(np.abs(given.real) < _HELD))
    if not plain:
        asked = asked | (given.rank == INTEGER)
    with np.errstate(invalid="ignore"):
        real = np.ceil(given.real) if name == "CEIL" else np.floor(given.real)
        if name == "ROUND":
            real = real + (given.real - real >= 0.5)
    return Amounts(given.rank, whole, np.zeros_like(scale), real + 0.0, given.open | asked, is_real)


# -- comparisons


def compare(sign: str, a: Numbers, b: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """(True if the numbers decide the comparison, its truth if so): bool (rows,) each. A near tie is not decided."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = (np.abs(a.value - b.value) > a.error + b.error) | (a.exact & b.exact)
        return a.known & b.known & apart, COMPARISONS[sign].holds(a.value, b.value)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """Numbers, one for each row: `known`, bool; `value`, float64; `error`, the greatest distance of the true value from
    it. `exact`: the true value is `value`, and SPARQL's own arithmetic would not round it."""

    value: np.ndarray
    error: np.ndarray
    known: np.ndarray
    exact: np.ndarray


def term_numbers(terms: np.ndarray, space: Space) -> Numbers:
    """The values of terms, given by number; not known for terms that are not numbers and for unbound ones."""
    literals = space.literals()
    value = literals.number[terms]
    known = (terms >= 0) & literals.numeric(terms)
    exact = literals.exact[terms]
    with np.errstate(invalid="ignore"):
        error = np.where(exact, 0.0, np.abs(value) * _ULP)
    return Numbers(value, error, known, exact)


_CLASSES: Final = np.array([0, 1, 2, 3, 3, 3, 4, 5, -1, -1])
"""By kind, the values that are compared with each other: strings 1, numbers 3, truth values 4, times 5. No literals 0,
texts with a tag 2, others -1."""


def by_kind(sign: str, left: np.ndarray, right: np.ndarray, literals: LiteralColumns) -> np.ndarray:
    """The truth of comparisons of bound terms that their kinds decide, and of truth values and times; `OPEN` of
    others. Values of different kinds are not equal and have no order; only the same texts with a tag are equal."""
    one, other = _CLASSES[literals.kind[left]], _CLASSES[literals.kind[right]]
    known = (one > 0) & (other > 0) & (one != 2) & (other != 2)
    equality, negated = sign in ("=", "!="), int(sign == "!=")
    found = np.full(len(left), OPEN, np.int8)
    found[known & (one != other)] = negated if equality else _ERROR
    same = np.flatnonzero((one == other) & (one >= 4) & literals.has_whole[left] & literals.has_whole[right])
    found[same] = COMPARISONS[sign].holds(literals.whole[left[same]], literals.whole[right[same]])
    tagged = (one == 2) | (other == 2)
    if equality:
        rows = np.flatnonzero(tagged & (one != 0) & (other != 0))
        found[rows] = (left[rows] == right[rows]) != negated
    else:
        found[tagged | (one == 0) | (other == 0)] = _ERROR
    return found


def error_of(value: float, exact: bool) -> float:
    """The greatest distance of a number's true value from the nearest double."""
    return 0.0 if exact else abs(value) * _ULP
