"""Kernels that find rows by their places; `spaseq.core.engine.program.window` defines the bounds.

Windows over the events of a partition keep its last positions in a *ring*, a block of `pool` with a power of two of
places. `rings` has a row for each: BEGIN, the first place of its block; CLASS, the exponent of its size, 0 without a
block; COUNT, the positions that went in. Position j is at `BEGIN + (j & size - 1)`. Blocks that are free are linked by
their first places, from `free` of their class on, NIL at the end. `free[USED]` is the part of the pool that was given.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import allocating, hot, kernel

BEGIN, CLASS, COUNT = 0, 1, 2
RING_COLUMNS = 3
USED = 63


@allocating
def first_from(places: np.ndarray, positions: np.ndarray, bounds: np.ndarray, lows: np.ndarray) -> int:
    """lows[i] = the position of the first place that is at least bounds[i], else of the last. Both ascend. Returns the
    number of the last of them. Two pointers, O(n)."""
    first, last = 0, len(places) - 1
    for i in range(len(bounds)):
        while first < last and places[first] < bounds[i]:
            first += 1
        lows[i] = positions[first]
    return first


@allocating
def near(places: np.ndarray, low: np.ndarray, sure: np.ndarray, asked: np.ndarray) -> None:
    """asked[i] is true if some place lies in [low[i], sure[i]). All ascend. O(n)."""
    first, last = 0, len(places) - 1
    for i in range(len(low)):
        while first < last and places[first] < low[i]:
            first += 1
        asked[i] = low[i] <= places[first] < sure[i]


@hot
def free_ring(ring, pool, free):
    """Empties a row of `rings`; its block of `pool` is added to `free`."""
    size = ring[CLASS]
    if size > 0:
        pool[ring[BEGIN]] = free[size]
        free[size] = ring[BEGIN]
    ring[CLASS] = 0
    ring[COUNT] = 0


@kernel
def free_rings(slots, rings, pool, free):
    """`free_ring` of the rows `slots`, int64 (n,), of `rings`."""
    for i in range(slots.shape[0]):
        free_ring(rings[slots[i]], pool, free)


@kernel
def first_of_keys(keys, positions, size, rings, pool, free, lows, row):
    """lows[i] = the position `size` events before row i in its partition, or the first one that is known; from `row`
    on. The position of row i goes into ring keys[i] + 1.

    Returns the row to go on from. It is behind the last one unless `pool` has no room for a block twice as wide as that
    of a partition: the caller then makes `pool` longer. O(1) a row, amortised.
    """
    while row < keys.shape[0]:
        ring = rings[keys[row] + 1]
        count = ring[COUNT]
        room = 1 << ring[CLASS] if ring[CLASS] > 0 else 0
        if count == room and room < size:
            wider = max(ring[CLASS] + 1, 2)
            block = free[wider]
            if block >= 0:
                free[wider] = pool[block]
            elif free[USED] + (1 << wider) > pool.shape[0]:
                return row
            else:
                block = free[USED]
                free[USED] += 1 << wider
            begin = ring[BEGIN]
            for j in range(count):
                pool[block + j] = pool[begin + j]
            free_ring(ring, pool, free)
            ring[BEGIN] = block
            ring[CLASS] = wider
            ring[COUNT] = count
            room = 1 << wider
        begin = ring[BEGIN]
        if count > 0 and size > 0:
            lows[row] = pool[begin + (max(count - size, 0) & (room - 1))]
        else:
            lows[row] = positions[row]
        if size > 0:
            pool[begin + (count & (room - 1))] = positions[row]
            ring[COUNT] = count + 1
        row += 1
    return row
