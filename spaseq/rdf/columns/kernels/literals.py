"""Kernels that read literals: times as `spaseq.core.events.time.parse_time` does, values as `rdflib.Literal.value`.

Those have the last word: here only the usual forms are read, for which the answer is certain. The rest is left to the
caller. Times: numbers without an exponent, and xsd:dateTime with four digits of the year, seconds, and a zone or none.
Numbers: integers up to eighteen digits; and up to fifteen digits with powers of ten up to 22. For these one division or
multiplication of doubles is correctly rounded (Clinger, How to read floating point numbers accurately, 1990).
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from spaseq.core.jit import inline, kernel
from spaseq.rdf.columns.kernels.layout import LITERAL, NIL, NO_TIME, NOT_READ, TIME
from spaseq.rdf.columns.kernels.memory import byte


@kernel
def read_times(rows, begin, end, predicate, scale, text, table, values, status):
    """For the rows `begin:end` with this predicate, the time in nanoseconds of the object; returns the number of
    NOT_READ ones. `scale` is the factor of a plain number. NOT_READ if the object is not one of the usual forms."""
    left = 0
    for row in range(begin, end):
        status[row] = NO_TIME
        if rows[row, 1] == predicate:
            term = rows[row, 2]
            found = NOT_READ
            if table.kind[term] == LITERAL:
                first = table.start[term] + 1
                found, values[row] = time_of(text, first, first + table.lexical[term], scale)
            status[row] = found
            left += found == NOT_READ
    return left


@inline
def time_of(text, at, end, scale):
    """(TIME, nanoseconds) of the literal `at:end`, or (NOT_READ, 0)."""
    if end - at >= 19 and byte(text, at + 4) == 45:
        return date_time(text, at, end)
    known, value, count, shift, _ = number(text, at, end, np.bool_(False))
    if not known or count > 18 or shift < -9 or (shift < 0 and value < 0):  # a negative fraction rounds downwards
        return NOT_READ, 0
    part = np.int64(1)
    for _ in range(-shift):
        part *= 10
    if abs(value) // part > 9_000_000_000_000_000_000 // scale - 1:
        return NOT_READ, 0
    return TIME, value // part * scale + value % part * scale // part


@inline
def number(text, at, end, exponents):
    """The parts of the number `at:end`: a sign or none, digits, and possibly a point and digits, and an exponent if
    allowed. (valid, the digits as a whole number, the number of significant ones, the power of ten, negative)"""
    negative = at < end and byte(text, at) == 45
    if negative or (at < end and byte(text, at) == 43):
        at += 1
    value = np.int64(0)
    count = 0
    shift = 0
    seen = 0
    while at < end and 48 <= byte(text, at) <= 57 and count < 19:
        value = value * 10 + np.int64(byte(text, at)) - 48
        count += value != 0
        seen += 1
        at += 1
    if seen and at < end and byte(text, at) == 46:
        at += 1
        whole = seen
        while at < end and 48 <= byte(text, at) <= 57 and count < 19 and shift > -30:
            value = value * 10 + np.int64(byte(text, at)) - 48
            count += value != 0
            seen += 1
            shift -= 1
            at += 1
        if seen == whole:
            return False, 0, 0, 0, False
    if exponents and seen and at < end and (byte(text, at) == 101 or byte(text, at) == 69):
        at += 1
        down = at < end and byte(text, at) == 45
        if down or (at < end and byte(text, at) == 43):
            at += 1
        if end - at < 1 or end - at > 3:
            return False, 0, 0, 0, False
        power = digits(text, at, end - at)
        if power < 0:
            return False, 0, 0, 0, False
        shift += -power if down else power
        at = end
    if not seen or at < end or count > 18:
        return False, 0, 0, 0, False
    return True, -value if negative else value, count, shift, negative


@inline
def digits(text, at, count):
    """The number that `count` digits make, NIL if they are not digits."""
    value = np.int64(0)
    for i in range(count):
        digit = np.int64(byte(text, at + i)) - 48
        if digit < 0 or digit > 9:
            return NIL
        value = value * 10 + digit
    return value


@inline
def days_before(year, month, day):
    """(True, days) from 1970-01-01 to a day of the Gregorian calendar; (False, 0) if there is no such day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if month == 2:
        most = 29 if leap else 28
    else:
        most = 30 if month in (4, 6, 9, 11) else 31
    if month < 1 or month > 12 or day < 1 or day > most:
        return False, 0
    past = year - 1
    month_days = (367 * month - 362) // 12 if month <= 2 else (367 * month - 362) // 12 - (1 if leap else 2)
    return True, past * 365 + past // 4 - past // 100 + past // 400 + month_days + day - 719_163


@kernel
def date_time(text, at, end):
    """(TIME, nanoseconds) of an xsd:dateTime of 1678 to 2261, with up to nine digits of a second; or (NOT_READ, 0)."""
    if byte(text, at + 7) != 45 or byte(text, at + 10) != 84 or byte(text, at + 13) != 58 or byte(text, at + 16) != 58:
        return NOT_READ, 0
    year = digits(text, at, 4)
    hour = digits(text, at + 11, 2)
    minute = digits(text, at + 14, 2)
    second = digits(text, at + 17, 2)
    known, days = days_before(year, digits(text, at + 5, 2), digits(text, at + 8, 2))
    if not known or year < 1678 or year > 2261 or hour < 0 or hour > 23 or minute < 0 or minute > 59:
        return NOT_READ, 0
    if second < 0 or second > 59:
        return NOT_READ, 0
    at += 19
    fraction = np.int64(0)
    if at < end and byte(text, at) == 46:
        at += 1
        scale = np.int64(1_000_000_000)
        while at < end and 48 <= byte(text, at) <= 57 and scale > 1:
            fraction = fraction * 10 + np.int64(byte(text, at)) - 48
            scale //= 10
            at += 1
        if scale == 1_000_000_000:
            return NOT_READ, 0
        fraction *= scale
    known, zone = zone_minutes(text, at, end)
    if not known:
        return NOT_READ, 0
    seconds = days * 86_400 + hour * 3_600 + (minute - zone) * 60 + second
    return TIME, seconds * 1_000_000_000 + fraction


@inline
def zone_minutes(text, at, end):
    """(True for a zone, its minutes) of the text behind the seconds: nothing, Z, or an offset."""
    if at == end:
        return True, 0
    if end - at == 1 and byte(text, at) == 90:
        return True, 0
    sign = byte(text, at)
    if end - at != 6 or (sign != 43 and sign != 45) or byte(text, at + 3) != 58:
        return False, 0
    hours = digits(text, at + 1, 2)
    minutes = digits(text, at + 4, 2)
    if hours < 0 or hours > 14 or minutes < 0 or minutes > 59:
        return False, 0
    return True, (hours * 60 + minutes) * (-1 if sign == 45 else 1)


# the kind of comparison of a term: `values.Kinds`
NO_LITERAL = 0
STRING = 1
TAGGED = 2
INTEGER = 3
DECIMAL = 4
DOUBLE = 5
BOOLEAN = 6
DATE_TIME = 7
NOT_SEEN = 255  # left to the caller


@kernel
def read_values(text, start, length, lexical, kinds, kind, real, exact, whole, has_whole):
    """The values of all literals, by term: the columns of `values.LiteralColumns`. `kinds` (uint8, by term) is the kind
    of the datatype, NOT_SEEN of an unknown one. The kind is NOT_SEEN if the form is not one of the usual ones."""
    for term in range(len(start)):
        if lexical[term] < 0:
            continue
        at = start[term] + 1
        end = at + lexical[term]
        wanted = kinds[term]
        if wanted == STRING:
            kind[term] = STRING if length[term] == lexical[term] + 2 else TAGGED
        elif wanted == BOOLEAN:
            read_boolean(text, at, end, term, kind, whole, has_whole)
        elif wanted == DATE_TIME:
            found, time = NOT_READ, np.int64(0)
            if end - at >= 19 and byte(text, at + 4) == 45:
                found, time = date_time(text, at, end)
            kind[term] = DATE_TIME if found == TIME else NOT_SEEN
            if found == TIME:
                whole[term] = time // 1000 * 1000
                has_whole[term] = True
        elif wanted == NOT_SEEN:
            kind[term] = NOT_SEEN
        else:
            read_number(text, at, end, term, wanted, kind, real, exact, whole, has_whole)


@kernel
def read_ends(text, start, length, lexical, datatype, firsts):
    """For keys of terms: the bytes of a literal's text, otherwise NIL, and the number of its datatype, NIL if it has
    none. `firsts` gets for each datatype a key that has it; those without room have the number of its length."""
    known = 0
    for term in range(len(start)):
        lexical[term] = NIL
        datatype[term] = NIL
        begin, end = start[term], start[term] + length[term]
        if byte(text, begin) != 34:
            continue
        quote = end - 1
        while byte(text, quote) != 34:
            quote -= 1
        lexical[term] = quote - begin - 1
        if end - quote < 4 or byte(text, quote + 1) != 94:
            continue
        found = 0
        while found < known and not ends_alike(text, start, length, lexical, firsts[found], quote, end):
            found += 1
        datatype[term] = found
        if found == known and known < len(firsts):
            firsts[known] = term
            known += 1
    return known


@inline
def ends_alike(text, start, length, lexical, other, at, end):
    """True if the key of literal `other` has the bytes `at:end` behind its text."""
    first = start[other] + lexical[other] + 1
    size = end - at
    if start[other] + length[other] - first != size:
        return False
    same = 0
    while same < size and byte(text, first + same) == byte(text, at + same):
        same += 1
    return same == size


@inline
def read_boolean(text, at, end, term, kind, whole, has_whole):
    kind[term] = BOOLEAN
    has_whole[term] = True
    first = byte(text, at) if end > at else np.uint8(0)
    if end - at == 1 and (first == 48 or first == 49):
        whole[term] = first == 49
    elif end - at == 4 and first == 116 and byte(text, at + 1) == 114 and byte(text, at + 2) == 117 \
            and byte(text, at + 3) == 101:  # fmt: skip
        whole[term] = 1
    elif end - at == 5 and first == 102 and byte(text, at + 1) == 97 and byte(text, at + 2) == 108 \
            and byte(text, at + 3) == 115 and byte(text, at + 4) == 101:  # fmt: skip
        whole[term] = 0
    else:
        kind[term] = NOT_SEEN
        has_whole[term] = False


@inline
def read_number(text, at, end, term, wanted, kind, real, exact, whole, has_whole):
    known, value, count, shift, negative = number(text, at, end, np.bool_(wanted == DOUBLE))
    kind[term] = NOT_SEEN
    if not known:
        return
    if wanted == INTEGER:
        if shift == 0 and not has_point(text, at, end):
            kind[term] = INTEGER
            real[term] = value
            whole[term] = value
            has_whole[term] = True
            exact[term] = -(1 << 53) <= value <= 1 << 53
    elif count <= 15 and -22 <= shift <= 22:
        power = 1.0
        for _ in range(abs(shift)):
            power *= 10.0
        kind[term] = wanted
        result = abs(value) / power if shift < 0 else abs(value) * power
        real[term] = -result if negative and (value != 0 or wanted == DOUBLE) else result
        exact[term] = True


@inline
def has_point(text, at, end):
    while at < end:
        if byte(text, at) == 46:
            return True
        at += 1
    return False
