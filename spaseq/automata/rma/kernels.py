"""The inner loop of the recogniser for automata without registers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def recognise(
    rows: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, cells: np.ndarray, first: np.ndarray,
    edges: np.ndarray, latest: np.ndarray, fresh: np.ndarray, never: float, unmarked: float, size: float,
    found: np.ndarray,
) -> None:  # fmt: skip
    """found[i] is set at each row i of `rows` at which a run accepts inside the window.

    In: rows int64 (m,); classes int32 (n,); coordinates int64 or float64 (n,), never decreasing within a cell; cells
    int64 (n,), first cell of the row's partition; first int64 (classes + 1,), edges int64 (e, 4): source, target,
    marks, accepts, those of class c being first[c] to first[c + 1]; size, the greatest distance of a match's events.
    In and out: latest, coordinates' dtype, (partitions * states,): the latest first marked coordinate of the runs in a
    state, `unmarked` (greater than any) where a run has marked nothing, `never` (less than any) where there is none.
    Scratch: fresh (states,). Out: found bool (n,), zeroed.

    Of the runs in one state only the one that began latest matters: what it does the others do, and it leaves the
    window last. O(m (states + edges of a class)), no allocation.
    """
    states = fresh.shape[0]
    for j in range(rows.shape[0]):
        i = rows[j]
        base, now, kind = cells[i], coordinates[i], classes[i]
        for q in range(states):
            fresh[q] = never
        for e in range(first[kind], first[kind + 1]):
            start = latest[base + edges[e, 0]]
            if start == never:
                continue
            if start == unmarked:
                if edges[e, 2]:
                    start = now
            elif now - start > size:
                continue
            if edges[e, 3]:
                found[i] = True
            if start > fresh[edges[e, 1]]:
                fresh[edges[e, 1]] = start
        for q in range(states):
            latest[base + q] = fresh[q]
