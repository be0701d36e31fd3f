"""Windows as positions: the first start that is still alive at each row.

Every kind of window becomes one number per row, so the kernels compare positions and know no clocks. What is alive
`spaseq.engine.window` says; here the rows are found. Times never run backwards, hence the first live start never does
within a substream.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from spaseq.engine.window import Window
from spaseq.snapshot import array, expect


@njit(cache=True)
def _first_from(places: np.ndarray, positions: np.ndarray, bounds: np.ndarray, lows: np.ndarray) -> int:
    """lows[i] = the position of the first place that is at least bounds[i], else of the last. Both ascend. Returns the
    number of the last of them. Two pointers, O(n)."""
    first, last = 0, len(places) - 1
    for i in range(len(bounds)):
        while first < last and places[first] < bounds[i]:
            first += 1
        lows[i] = positions[first]
    return first


@njit(cache=True)
def _near(places: np.ndarray, low: np.ndarray, sure: np.ndarray, asked: np.ndarray) -> None:
    """asked[i] = whether some place lies in [low[i], sure[i]). All ascend. O(n)."""
    first, last = 0, len(places) - 1
    for i in range(len(low)):
        while first < last and places[first] < low[i]:
            first += 1
        asked[i] = low[i] <= places[first] < sure[i]


class Lows:
    """Computes the first live start of each row, and the position before which nothing will be read again."""

    def __init__(self, window: Window, partitioned: bool) -> None:
        self._window = window
        self.partitioned = partitioned
        self._times: np.ndarray | None = None
        self._positions = np.zeros(0, np.int64)
        self._recent: dict[int, np.ndarray] = {}

    def of(
        self, positions: np.ndarray, places: np.ndarray, keys: np.ndarray | None, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(first live start, first position to keep) of each of `rows` (ascending; all by default): int64 each.

        `places`: what the window is measured in (`Window.places`). All rows are taken in, those that nobody asks for
        too. O(n).
        """
        if rows is None:
            rows = np.arange(len(positions))
        if not self._window.is_bounded:
            zeros = np.zeros(len(rows), np.int64)
            return zeros, zeros
        if self._window.counts_events and keys is not None:
            return self._in_partition(positions, keys)[rows], np.zeros(len(rows), np.int64)
        lows = self._in_all(positions, places, rows)
        return lows, lows

    def _in_all(self, positions: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        ends, lows = places[rows], np.empty(len(rows), np.int64)
        if self._times is not None:
            places = np.concatenate([self._times, places])
            positions = np.concatenate([self._positions, positions])
        if not len(places):
            return lows
        first = _first_from(places, positions, self._bounds(places, ends), lows)
        first += int(np.searchsorted(places[first:], self._window.open_from(places[-1].item())))
        # Of a window that tumbles only the first event is ever asked for.
        kept = slice(first, first + 1 if self._window.tumbles else None)
        self._times, self._positions = places[kept].copy(), positions[kept].copy()
        return lows

    def _bounds(self, places: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Numbers that divide `places` as the bounds of `ends` do, which ascend too, one after another.

        PERF: of decimals only the bounds that some place is close to are worked out exactly.
        """
        if places.dtype.kind != "f" or not len(ends):
            return self._window.bounds(ends)
        ends = ends.astype(np.float64, copy=False)
        bounds, sure = self._window.doubts(ends)
        asked = np.empty(len(ends), np.bool_)
        _near(places, bounds, sure, asked)
        bounds[asked] = self._window.bounds(ends[asked])
        return bounds

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

    def snapshot(self) -> dict[str, Any]:
        """The events that windows to come may still hold, as plain values."""
        return {"times": self._times, "positions": self._positions, "recent": self._recent}

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`."""
        times, self._recent = state["times"], dict(state["recent"])
        self._positions = array(state["positions"], "positions", low=0)
        self._times = None if times is None else np.array(times, times.dtype)
        if times is not None:
            expect(times.dtype in (np.int64, np.float64) and times.shape == self._positions.shape, "a time for each")
            expect((times[1:] >= times[:-1]).all() and (np.diff(self._positions) >= 0).all(), "events in order")
            expect(np.isfinite(times).all(), "times that are numbers")
        for key, places in self._recent.items():
            expect(type(key) is int and (np.diff(array(places, "positions", low=0)) >= 0).all(), "events in order")
