"""The inner loop of the recogniser for automata without registers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def recognise(
    rows: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, cells: np.ndarray, first: np.ndarray,
    edges: np.ndarray, first_lost: np.ndarray, lost: np.ndarray, latest: np.ndarray, starts: np.ndarray, never: float,
    unmarked: float, size: float, found: np.ndarray,
) -> None:  # fmt: skip
    """found[i] is set at each row i of `rows` at which a run accepts inside the window.

    In: rows int64 (m,); classes int32 (n,); coordinates int64 or float64 (n,), never decreasing within a cell; cells
    int64 (n,), first cell of the row's partition; first int64 (classes + 1,), edges int64 (e, 4): source, target (-1
    where nothing leaves it), marks, accepts, those of class c being first[c] to first[c + 1], without the loops of
    states that wait; first_lost, lost int64 likewise: the states in which no run can wait through the class; size, the
    greatest distance of a match's events.
    In and out: latest, coordinates' dtype, (partitions * states,): the latest first marked coordinate of the runs in a
    state, `unmarked` (greater than any) where a run has marked nothing, `never` (less than any) where there is none.
    Scratch: starts, of the same dtype, as many as a class has edges. Out: found bool (n,), zeroed.

    Of the runs in one state only the one that began latest matters: what it does the others do, and it leaves the
    window last. O(m) times the edges and lost states of a class, no allocation.
    """
    for j in range(rows.shape[0]):
        i = rows[j]
        base, now, kind = cells[i], coordinates[i], classes[i]
        low, high = first[kind], first[kind + 1]
        for e in range(low, high):
            start = latest[base + edges[e, 0]]
            if start == unmarked:
                if edges[e, 2]:
                    start = now
            elif start != never and now - start > size:
                start = never
            if edges[e, 3] and start != never:
                found[i] = True
            starts[e - low] = start
        for d in range(first_lost[kind], first_lost[kind + 1]):
            latest[base + lost[d]] = never
        for e in range(low, high):
            target = edges[e, 1]
            if target >= 0 and starts[e - low] > latest[base + target]:
                latest[base + target] = starts[e - low]
