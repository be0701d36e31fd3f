"""Kernels that find rows by their places; `spaseq.core.engine.program.window` defines the bounds."""

from __future__ import annotations

import numpy as np

from spaseq.core.jit import allocating


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
