"""Numbers for keys that are integers, by a hash table."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.jit import hot, kernel

ROW, GIVEN, FREE, PROBES = 0, 1, 2, 3
STATES = 4
PATIENCE = 16
FACTOR = 0x1E3779B97F4A7C15


@hot
def hash_of(value):
    """An integer whose low bits depend on all bits of `value`."""
    mixed = (value ^ (value >> 32)) * FACTOR
    return mixed ^ (mixed >> 32)


@kernel
def number_keys(values, known, numbers, keys, slots, free, seen, st):
    """numbers[i] = the number of the key values[i], which gets one if it has none: int64 (n,) each; -1 where `known`
    (bool (n,), or (0,) if all are) is false.

    `keys`: int64 (numbers,), the key of each number. `slots`: int32 (a power of two,), a number plus 1, or 0. `free`:
    int32, numbers without a key; the last is given first, and a new one if there is none. `seen`: bool (numbers,), set
    for each number that is found or given. `st`: int64 (STATES,). ROW is the row to go on from, GIVEN the numbers so
    far, and FREE how many of these are free. PROBES has the slots that were taken by other keys.

    Stops in front of a key for which `keys` or two thirds of `slots` have no room: the caller makes some. Stops also if
    a row takes more than PATIENCE probes on average, as keys do that are made to meet in one slot. O(n).
    """
    mask = slots.shape[0] - 1
    given = st[GIVEN]
    left = st[FREE]
    probes = st[PROBES]
    row = st[ROW]
    while row < values.shape[0]:
        if row < known.shape[0] and not known[row]:
            numbers[row] = -1
            row += 1
            continue
        value = values[row]
        at = hash_of(value) & mask
        number = slots[at] - 1
        while number >= 0 and keys[number] != value:
            at = (at + 1) & mask
            number = slots[at] - 1
            probes += 1
        if number < 0:
            if 3 * (given - left + 1) > 2 * slots.shape[0]:
                break
            if left > 0:
                left -= 1
                number = free[left]
            elif given < keys.shape[0]:
                number = given
                given += 1
            else:
                break
            keys[number] = value
            slots[at] = number + 1
        seen[number] = True
        numbers[row] = number
        row += 1
        if probes > PATIENCE * (row + 64):
            break
    st[GIVEN] = given
    st[FREE] = left
    st[PROBES] = probes
    st[ROW] = row


@kernel
def place_keys(held, keys, slots):
    """Put numbers into a table that is empty; False if their keys take more than PATIENCE probes on average.

    `held`: int32, the numbers, each once; their `keys` are different. `keys`, `slots`: as of `number_keys`; at most two
    thirds of the slots are needed. O(n).
    """
    mask = slots.shape[0] - 1
    probes = 0
    for i in range(held.shape[0]):
        at = hash_of(keys[held[i]]) & mask
        while slots[at] > 0:
            at = (at + 1) & mask
            probes += 1
        slots[at] = held[i] + 1
        if probes > PATIENCE * (i + 64):
            return False
    return True
