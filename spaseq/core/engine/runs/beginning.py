"""Absence at the start: `NOT ψ ; φ` holds for a match of φ if no ψ lies in front of it and inside its window.

Let m be a match of φ, and b the first ψ of its partition inside the window that closes with m's end. Then m holds if it
starts at b or before. So the matches of one end that hold are those that start in a range: from the first live start on
(the window), and up to b. The compact structure enumerates such a range (`spaseq.core.tecs.Roots`), and it is all that
has to be known of the ψs. Both bounds only grow with the end.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from spaseq.core.engine.program.window import Window
from spaseq.core.pattern import NoneOf
from spaseq.core.snapshot import array
from spaseq.core.tecs.kernels.layout import NEVER


class Beginning:
    """The events inside the window that no match may have in front of it: of each partition their positions."""

    def __init__(self, none: NoneOf, window: Window) -> None:
        self.none: NoneOf = none
        self._window = window
        self._keys = np.zeros(0, np.int64)
        self._positions = np.zeros(0, np.int64)

    def bounds(
        self, positions: np.ndarray, keys: np.ndarray, strays: np.ndarray, lows: np.ndarray, ends: np.ndarray
    ) -> np.ndarray:
        """For matches that end at the rows `ends` of a batch, the position that they must start before: int64 (m,).

        Of each row of the batch, int64 (n,): its position, its partition, -1 for none, and the first live start; bool
        (n,): true for a ψ. O((rows + matches) log rows).
        """
        rows = np.flatnonzero(strays & (keys >= 0))
        self._keys = np.concatenate([self._keys, keys[rows]])
        self._positions = np.concatenate([self._positions, positions[rows]])
        order = np.lexsort((self._positions, self._keys))
        self._keys, self._positions = self._keys[order], self._positions[order]
        found = np.full(len(ends), NEVER)
        if len(order):
            # Partition and position as one number each, by the rank of the position.
            ranks, width = np.sort(self._positions), len(order) + 1
            codes = self._keys * width + np.searchsorted(ranks, self._positions)
            at = np.searchsorted(codes, keys[ends] * width + np.searchsorted(ranks, lows[ends]))
            there = at < len(order)
            there[there] = self._keys[at[there]] == keys[ends][there]
            found[there] = self._positions[at[there]] + 1
            self._drop(keys, lows)
        return found

    def _drop(self, keys: np.ndarray, lows: np.ndarray) -> None:
        """Forget the ψs that no window to come holds: without a window all but the first of each partition."""
        if not self._window.is_bounded:
            kept = np.append(True, self._keys[1:] != self._keys[:-1])
        elif self._window.per_partition:
            last = np.zeros(1 + max(int(self._keys[-1]), int(keys.max(initial=0))), np.int64)
            last[keys[keys >= 0]] = lows[keys >= 0]  # the last row of a key wins
            kept = self._positions >= last[self._keys]
        else:
            kept = self._positions >= lows[-1]
        self._keys, self._positions = self._keys[kept], self._positions[kept]

    def forget(self, keys: np.ndarray) -> None:
        """No event of these partitions comes any more; their numbers are those of others then."""
        kept = ~np.isin(self._keys, keys)
        self._keys, self._positions = self._keys[kept], self._positions[kept]

    @property
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """The partitions and positions of the ψs, in this order: int64 (n,) each."""
        return self._keys, self._positions

    def take_back(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Set the `entries`."""
        order = np.lexsort((positions, keys))
        self._keys, self._positions = keys[order], positions[order]

    def snapshot(self) -> Any:
        """The entries, as plain values."""
        return self.entries

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        keys, positions = state
        keys = array(keys, "partitions", low=0)
        self.take_back(keys, array(positions, "positions", rows=len(keys), low=0))


class BeginningOfOne:
    """`Beginning` for one event at a time; it goes on from `beginning`, until `close` hands back to it."""

    def __init__(self, beginning: Beginning, window: Window) -> None:
        self._beginning = beginning
        self._bounded = window.is_bounded
        self._held: dict[int, deque[int]] = {}
        keys, positions = beginning.entries
        for key, position in zip(keys.tolist(), positions.tolist(), strict=True):
            self._held.setdefault(key, deque()).append(position)

    def note(self, position: int, low: int, key: int) -> None:
        """A ψ of partition `key`, at which the first live start is `low`."""
        held = self._held.setdefault(key, deque())
        while held and held[0] < low:
            held.popleft()
        if not held or self._bounded:
            held.append(position)

    def high(self, low: int, key: int) -> int:
        """The position that a match must start before, if it ends at an event of partition `key` with the first live
        start `low`."""
        held = self._held.get(key)
        if held is None:
            return NEVER
        while held and held[0] < low:
            held.popleft()
        if held:
            return held[0] + 1
        del self._held[key]
        return NEVER

    def close(self) -> None:
        """Hand back."""
        some = [(key, position) for key, held in self._held.items() for position in held]
        table = np.array(some, np.int64).reshape(-1, 2)
        self._beginning.take_back(table[:, 0].copy(), table[:, 1].copy())
