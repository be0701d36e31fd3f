"""The semiring of aggregates: rows that are added and multiplied.

Alternatives are added, runs in a sequence multiplied. Numbers of runs and sums are added. In a product the numbers of
runs are multiplied, and a sum is that of dual numbers: (c, s)(d, t) = (cd, ct + sd). Extremes are combined by min in
both. These are semirings without a need for an inverse.

Whole numbers stop at MOST. For numbers that are not negative, min(x, MOST) is a congruence. So what is computed with
stopped numbers is the true result, or MOST if that is as much or more. No overflow is silent, and a result below MOST
is exact, whatever came before. Sums of negative numbers are kept by themselves for this reason.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.engine.kernels.sums.layout import MOST
from spaseq.core.jit import hot, kernel


@hot
def add_up(x, y):
    """x + y, at most MOST; neither is negative."""
    return x + y if x <= MOST - y else MOST


@hot
def multiply_up(x, y):
    """x * y, at most MOST; neither is negative.

    PERF: the division is left out for small numbers.
    """
    if (x | y) < 1 << 31:
        return x * y
    if x == 0 or y == 0:
        return 0
    if x > MOST // y:
        return MOST
    return x * y


@hot
def copy_row(to, t, row, r):
    """Row t of `to` is row r of `row`."""
    for j in range(to.ints.shape[1]):
        to.ints[t, j] = row.ints[r, j]
    for j in range(to.floats.shape[1]):
        to.floats[t, j] = row.floats[r, j]


@kernel
def add_row(to, t, row, r, added):
    """Row t of `to` gets the sum of itself and row r of `row`. `added`: how many of `ints` are added."""
    if row.ints[r, 0] == 0:
        return
    if to.ints[t, 0] == 0:
        copy_row(to, t, row, r)
        return
    for j in range(added):
        to.ints[t, j] = add_up(to.ints[t, j], row.ints[r, j])
    for j in range(added, to.ints.shape[1]):
        if row.ints[r, j] < to.ints[t, j]:
            to.ints[t, j] = row.ints[r, j]
    for j in range(to.floats.shape[1]):
        to.floats[t, j] += row.floats[r, j]


@kernel
def add_marked(to, t, row, r, added, takes, label, weights, e):
    """Row t of `to` gets the sum of itself and of the runs of row r of `row` once they have marked an event with
    `label`. `takes`: `Takes`; row e of `weights` has the event's own numbers."""
    count = row.ints[r, 0]
    if count == 0:
        return
    fresh = to.ints[t, 0] == 0
    for j in range(to.ints.shape[1]):
        value = row.ints[r, j]
        if takes.ints[label, j]:
            weight = weights.ints[e, j]
            if j >= added:
                value = min(value, weight)
            elif weight != 0:
                value = add_up(value, multiply_up(count, weight))
        if fresh:
            to.ints[t, j] = value
        elif j < added:
            to.ints[t, j] = add_up(to.ints[t, j], value)
        else:
            to.ints[t, j] = min(to.ints[t, j], value)
    for j in range(to.floats.shape[1]):
        total = row.floats[r, j]
        if takes.floats[label, j]:
            total += count * weights.floats[e, j]
        if fresh:
            to.floats[t, j] = total
        else:
            to.floats[t, j] += total


@kernel
def add_product(to, t, one, a, two, b, added):
    """Row t of `to` gets the sum of itself and the product of row a of `one` and row b of `two`."""
    c, d = one.ints[a, 0], two.ints[b, 0]
    if c == 0 or d == 0:
        return
    fresh = to.ints[t, 0] == 0
    for j in range(to.ints.shape[1]):
        if j == 0:
            value = multiply_up(c, d)
        elif j < added:
            value = add_up(multiply_up(c, two.ints[b, j]), multiply_up(one.ints[a, j], d))
        else:
            value = min(one.ints[a, j], two.ints[b, j])
        if fresh:
            to.ints[t, j] = value
        elif j < added:
            to.ints[t, j] = add_up(to.ints[t, j], value)
        else:
            to.ints[t, j] = min(to.ints[t, j], value)
    for j in range(to.floats.shape[1]):
        total = c * two.floats[b, j] + one.floats[a, j] * d
        if fresh:
            to.floats[t, j] = total
        else:
            to.floats[t, j] += total
