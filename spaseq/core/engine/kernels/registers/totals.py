"""Totals in registers: counts, exact sums, the greatest and the least of the values that a run has taken.

Numbers have *typed codes*: a double the code in the order of doubles, a whole number up to WHOLE one beyond those. So a
code tells 3 from 3.0, as the languages do, and stands for its value exactly.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.layout import (
    AT_MOST,
    CLASH,
    COLUMN,
    CONSTANT,
    DIFFERENT,
    EQUAL,
    GATHER_COUNT,
    GATHER_GREATEST,
    GATHER_SUM,
    GREATER,
    INFINITE,
    LESS,
    NOTHING,
    OP,
    REGISTER,
    SYMBOL,
    UNKNOWN,
    WHOLE,
)
from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import DONE


@hot
def double_of(code):
    """The double that a code stands for, of those in the order of doubles."""
    return np.int64(code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF).view(np.float64)


@hot
def number_of(code):
    """The number that a typed code stands for, as a double, which holds it exactly."""
    if code > INFINITE:
        return np.float64(code - INFINITE - 1)
    if code < -INFINITE - 1:
        return np.float64(code + INFINITE + 1)
    return double_of(code)


@hot
def is_whole(code):
    """True if a typed code stands for a whole number, not for a double."""
    return code > INFINITE or code < -INFINITE - 1


@hot
def constant_of(ops, o):
    """The double in row `o` of `ops`, a CONSTANT."""
    bits = (np.int64(ops[o, COLUMN]) << 32) | (np.int64(ops[o, REGISTER]) & 0xFFFFFFFF)
    return np.int64(bits).view(np.float64)


@hot
def compare_values(symbol, left, right):
    """True if `left symbol right`: doubles, or codes of one kind."""
    if symbol == EQUAL:
        return left == right
    if symbol == DIFFERENT:
        return left != right
    if symbol == LESS:
        return left < right
    if symbol == AT_MOST:
        return left <= right
    if symbol == GREATER:
        return left > right
    return left >= right


@hot
def total_of(ops, o, row):
    """The total in row `o` of `ops`, as a double; all its registers are known."""
    total = number_of(row[ops[o, REGISTER]])
    if ops[o, COLUMN] >= 0:
        return total / number_of(row[ops[o, COLUMN]])
    return total


@kernel
def admits_total(ops, o, row):
    """True if the test of totals in rows `o` and `o + 1` of `ops` holds, or a register holds nothing."""
    left = row[ops[o, REGISTER]]
    fixed = ops[o + 1, OP] == CONSTANT
    right = left if fixed else row[ops[o + 1, REGISTER]]
    if left == NOTHING or right == NOTHING:
        return True
    if left == UNKNOWN or right == UNKNOWN:
        return False
    other = constant_of(ops, o + 1) if fixed else total_of(ops, o + 1, row)
    return compare_values(ops[o, SYMBOL], total_of(ops, o, row), other)


@kernel
def add_numbers(one, two):
    """The typed code of the sum of two numbers, as Python adds them; NOTHING if it has none: a whole number beyond
    WHOLE, or NaN."""
    total = number_of(one) + number_of(two)
    if is_whole(one) and is_whole(two):
        if abs(total) > WHOLE:
            return np.int64(NOTHING)
        whole = np.int64(total)
        return np.int64(whole - 1 - INFINITE if whole < 0 else whole + 1 + INFINITE)
    if np.isnan(total):
        return np.int64(NOTHING)
    bits = np.float64(total + 0.0).view(np.int64)
    return np.int64(bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF)


@kernel
def gather(registers, at, how, value):
    """Take `value` into the total of a register; `how` is a rule and 8 times the greatest count. CLASH if the total has
    no code."""
    old = registers[at]
    rule = how & 7
    most = how >> 3
    if old == NOTHING or (old == UNKNOWN and value != NOTHING):
        registers[at] = value
    elif value in (NOTHING, UNKNOWN):
        return DONE
    elif rule == GATHER_COUNT:
        registers[at] = old + value
    elif rule == GATHER_SUM:
        total = add_numbers(old, value)
        if total == NOTHING:
            return CLASH
        registers[at] = total
    elif rule == GATHER_GREATEST:
        if number_of(value) > number_of(old):
            registers[at] = value
    elif number_of(value) < number_of(old):
        registers[at] = value
    if rule == GATHER_COUNT and most > 0 and registers[at] > most:
        registers[at] = most
    return DONE
