"""Codes for the values of a column, by a hash table."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.jit import hot, kernel

ROW, CODES, PROBES = 0, 1, 2
PATIENCE = 16
FACTOR = 0x1E3779B97F4A7C15


@hot
def hash_of(value):
    """An integer whose low bits depend on all bits of `value`."""
    mixed = (value ^ (value >> 32)) * FACTOR
    return mixed ^ (mixed >> 29)


@kernel
def code_values(values, codes, firsts, table, st):
    """codes[i] = the number of values[i] among the different ones, in the order in which they come first: int64 (n,)
    each. `firsts` (int64 (n,)) gets the first row of each.

    `table`: int64 (a power of two, 2), zeroed; a slot has a value, and its code plus 1, or 0. `st` (int64 (3,)): ROW,
    the row to go on from; CODES, the different values so far; PROBES, the slots that were taken by other values. Stops
    in front of a value that would fill more than half of the table: the caller brings a larger one. Stops also if a row
    takes more than PATIENCE probes on average, as values do that are made to meet in one slot. O(n).
    """
    mask = table.shape[0] - 1
    count = st[CODES]
    probes = st[PROBES]
    for code in range(count):
        at = hash_of(values[firsts[code]]) & mask
        while table[at, 1] > 0:
            at = (at + 1) & mask
        table[at, 0] = values[firsts[code]]
        table[at, 1] = code + 1
    row = st[ROW]
    while row < values.shape[0]:
        value = values[row]
        at = hash_of(value) & mask
        while table[at, 1] > 0 and table[at, 0] != value:
            at = (at + 1) & mask
            probes += 1
        if table[at, 1] == 0:
            if 2 * count >= table.shape[0]:
                break
            table[at, 0] = value
            firsts[count] = row
            count += 1
            table[at, 1] = count
        codes[row] = table[at, 1] - 1
        row += 1
        if probes > PATIENCE * (row + 64):
            break
    st[ROW] = row
    st[CODES] = count
    st[PROBES] = probes
