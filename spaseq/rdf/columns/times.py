"""Kernels that read times: the usual forms of what `spaseq.events.time.parse_time` reads, which has the last word.

Whole numbers, and xsd:dateTime with four digits of the year, seconds, and a zone or none. All else is left to the
caller.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from spaseq.rdf.columns.memory import byte

kernel = partial(njit, cache=True, _nrt=False)
inlined = partial(njit, cache=True, _nrt=False, forceinline=True)

NIL = -1
LITERAL = 2

# what a row says about time
NO_TIME = 0
TIME = 1
NOT_READ = 2  # only until the caller has read it
BAD_TIME = 3


@kernel
def read_times(rows, begin, end, predicate, scale, text, table, values, status):
    """For the rows `begin:end` with this predicate, the time in nanoseconds that the object says: `scale` is what a
    plain number counts. NOT_READ where it is not one of the usual forms. The number of those."""
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


@inlined
def time_of(text, at, end, scale):
    """(TIME, nanoseconds) of the literal `at:end`, or (NOT_READ, 0)."""
    if end - at >= 19 and byte(text, at + 4) == 45:
        return date_time(text, at, end)
    negative = at < end and byte(text, at) == 45
    if negative:
        at += 1
    if end - at < 1 or end - at > 18:
        return NOT_READ, 0
    value = np.int64(0)
    while at < end:
        digit = np.int64(byte(text, at)) - 48
        if digit < 0 or digit > 9:
            return NOT_READ, 0
        value = value * 10 + digit
        at += 1
    if value > 9_000_000_000_000_000_000 // scale:
        return NOT_READ, 0
    return TIME, -value * scale if negative else value * scale


@inlined
def digits(text, at, count):
    """The number that `count` digits make, NIL if they are not digits."""
    value = np.int64(0)
    for i in range(count):
        digit = np.int64(byte(text, at + i)) - 48
        if digit < 0 or digit > 9:
            return NIL
        value = value * 10 + digit
    return value


@inlined
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
    """(TIME, nanoseconds) of an xsd:dateTime of the years 1678 to 2261, with at most nine digits of a second; or
    (NOT_READ, 0)."""
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


@inlined
def zone_minutes(text, at, end):
    """(is it a zone, its minutes) for what follows the seconds: nothing, Z, or an offset."""
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
