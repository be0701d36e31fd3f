"""Windows as positions: the first start that is still alive at each row.

Every kind of window becomes one number per row, so the kernels compare positions and know no clocks. Times never run
backwards, hence the first live start never does within a substream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from spaseq.engine.settings import Window


@njit(cache=True)
def _span_lows(
    times: np.ndarray, positions: np.ndarray, size: float, skip: int, rows: np.ndarray, lows: np.ndarray
) -> int:
    """lows[i] = position of the first row whose time is at least times[skip + rows[i]] - size. Two pointers, O(n).

    `times`, `positions`: rows kept from before (`skip` of them), then the new ones; `rows` ascends. Returns the first
    row that the last one still sees.
    """
    first = 0
    for i in range(len(rows)):
        bound = times[skip + rows[i]] - size
        while times[first] < bound:
            first += 1
        lows[i] = positions[first]
    if len(times):
        bound = times[-1] - size
        while times[first] < bound:
            first += 1
    return first


class Lows:
    """Computes the first live start of each row, and the position before which nothing will be read again."""

    def __init__(self, window: Window, partitioned: bool) -> None:
        self._window = window
        self.partitioned = partitioned
        self._times: np.ndarray | None = None
        self._positions = np.zeros(0, np.int64)
        self._recent: dict[int, np.ndarray] = {}

    def of(
        self, positions: np.ndarray, times: np.ndarray, keys: np.ndarray | None, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(first live start, first position to keep) of each of `rows` (ascending; all by default): int64 each.

        All rows are taken in, those that nobody asks for too. O(n).
        """
        if rows is None:
            rows = np.arange(len(positions))
        match self._window.kind:
            case "none":
                zeros = np.zeros(len(rows), np.int64)
                return zeros, zeros
            case "events" if keys is not None:
                return self._in_partition(positions, keys)[rows], np.zeros(len(rows), np.int64)
            case "events":
                lows = self._span(positions, positions, rows)
            case "span":
                lows = self._span(positions, times, rows)
            case "tumbling":
                lows = self._tumbling(positions, times)[rows]
            case kind:
                raise ValueError(f"no window kind {kind!r}")
        return lows, lows

    def _history(self, positions: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._times is None:
            return times, positions
        return np.concatenate([self._times, times]), np.concatenate([self._positions, positions])

    def _span(self, positions: np.ndarray, times: np.ndarray, rows: np.ndarray) -> np.ndarray:
        all_times, all_positions = self._history(positions, times)
        lows = np.empty(len(rows), np.int64)
        first = _span_lows(all_times, all_positions, self._window.size, len(all_times) - len(times), rows, lows)
        self._times, self._positions = all_times[first:].copy(), all_positions[first:].copy()
        return lows

    def _tumbling(self, positions: np.ndarray, times: np.ndarray) -> np.ndarray:
        all_times, all_positions = self._history(positions, times)
        numbers = np.floor_divide(all_times - self._window.origin, self._window.size)
        starts = np.searchsorted(numbers, numbers, "left")
        lows = all_positions[starts][len(all_times) - len(times) :]
        if len(all_times):
            self._times, self._positions = all_times[starts[-1] :][:1].copy(), all_positions[starts[-1] :][:1].copy()
        return lows

    def _in_partition(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        size = int(self._window.size)
        lows = np.zeros(len(positions), np.int64)
        order = np.argsort(keys, kind="stable")
        bounds = np.flatnonzero(np.diff(keys[order])) + 1
        for rows in np.split(order, bounds):
            if not len(rows):
                continue
            key = int(keys[rows[0]])
            before = self._recent.get(key, np.zeros(0, np.int64))
            places = np.concatenate([before, positions[rows]])
            index = np.maximum(np.arange(len(before), len(places)) - size, 0)
            lows[rows] = places[index]
            self._recent[key] = places[max(0, len(places) - size) :].copy()
        return lows

    def state(self) -> dict[str, Any]:
        """What a snapshot must hold."""
        return {"times": self._times, "positions": self._positions, "recent": self._recent}

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `state`."""
        self._times, self._positions, self._recent = state["times"], state["positions"], state["recent"]
