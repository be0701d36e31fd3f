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
def _first_from(places: np.ndarray, bounds: np.ndarray, found: np.ndarray) -> None:
    """found[i] = the first place that is at least bounds[i], else the last. Both ascend. Two pointers, O(n)."""
    first, last = 0, len(places) - 1
    for i in range(len(bounds)):
        while first < last and places[first] < bounds[i]:
            first += 1
        found[i] = first


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
        ends = np.append(places[rows], places[-1:])
        if self._times is not None:
            places = np.concatenate([self._times, places])
            positions = np.concatenate([self._positions, positions])
        first = self._first_alive(places, ends)
        # Of a window that tumbles only the first event is ever asked for.
        kept = slice(first[-1], first[-1] + 1 if self._window.tumbles else None) if len(first) else slice(0)
        self._times, self._positions = places[kept].copy(), positions[kept].copy()
        return np.asarray(positions[first[: len(rows)]])

    def _first_alive(self, places: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The number of the first of `places` that is alive at each of `ends`, which ascend too: int64 (n,)."""
        found = np.empty(len(ends), np.int64)
        if places.dtype.kind != "f":
            _first_from(places, self._window.bounds(ends), found)
            return found
        ends = ends.astype(np.float64)
        low, sure = self._window.doubts(ends)
        alive = np.empty(len(ends), np.int64)
        _first_from(places, low, found)
        _first_from(places, sure, alive)
        asked = np.flatnonzero(found < alive)
        found[asked] = np.searchsorted(places, self._window.bounds(ends[asked]))
        return found

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
