"""The last events of each partition, for windows that count them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from spaseq.core.jit import attempt_rows
from spaseq.core.snapshot import array, expect

_FIRST: Final = 1 << 10
_LONGEST: Final = 1 << 40


class RecentOfKeys:
    """The positions of the last `size` events of each partition; partition -1 has the events without a key.

    PERF: rings of a kernel. Before, Python cut and joined an array for each partition and batch. Measured with
    `A ; B ; C ; E PARTITION BY [k] WITHIN 1000 EVENTS` over 400,000 random events without an E (2026-11-27, a very busy
    machine, the median of pairs). With 20 keys an event took 321 ns in all and takes 236, with 1,000 keys 676 and 444.
    With 100,000 keys it took 8,000 and takes 1,300. `partitions.code` saved the lesser part of that.
    """

    def __init__(self, size: int) -> None:
        self._size = min(size, _LONGEST)
        self._rings = np.zeros((0, 3), np.int64)
        self._pool = np.zeros(_FIRST, np.int64)
        self._free = np.full(64, -1, np.int64)
        self._free[-1] = 0

    def first(self, positions: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """The first start that is alive at each of the next events: int64 (n,). O(n) amortised."""
        from spaseq.core.engine.kernels import windows as kernels

        lows = np.empty(len(keys), np.int64)
        if not len(keys):
            return lows
        slots = int(keys.max()) + 2
        if slots > len(self._rings):
            rings = np.zeros((max(slots, len(self._rings) * 5 // 4), kernels.RING_COLUMNS), np.int64)
            rings[: len(self._rings)] = self._rings
            self._rings = rings
        row = 0
        while True:
            row = attempt_rows(
                kernels.first_of_keys, len(keys) - row, keys, positions, self._size, self._rings, self._pool,
                self._free, lows, row,
            )  # fmt: skip
            if row == len(keys):
                return lows
            ring = self._rings[keys[row] + 1]
            need = max(len(self._pool), 2 * int(ring[kernels.COUNT]))
            self._pool = np.concatenate([self._pool, np.zeros(need, np.int64)])

    def of(self, key: int) -> np.ndarray:
        """The last positions of a partition, ascending, `size` at most: int64."""
        if key + 1 >= len(self._rings):
            return np.zeros(0, np.int64)
        begin, kind, count = self._rings[key + 1].tolist()
        return self._pool[begin + (np.arange(max(0, count - self._size), count) & (1 << kind) - 1)]

    def put(self, recent: dict[int, np.ndarray]) -> None:
        """These are the last positions of some partitions from now on, each ascending."""
        keys = np.fromiter(recent, np.int64, len(recent))
        self.forget(keys)
        counts = np.fromiter(map(len, recent.values()), np.int64, len(recent))
        self.first(np.concatenate([np.zeros(0, np.int64), *recent.values()]), np.repeat(keys, counts))

    def forget(self, keys: np.ndarray) -> None:
        """No row of these partitions comes any more; their numbers are those of others then."""
        from spaseq.core.engine.kernels import windows as kernels

        slots = keys[keys + 1 < len(self._rings)] + 1
        attempt_rows(kernels.free_rings, len(slots), slots, self._rings, self._pool, self._free)

    def snapshot(self) -> dict[int, np.ndarray]:
        """The last positions of each partition that has any."""
        from spaseq.core.engine.kernels import windows as kernels

        return {slot - 1: self.of(slot - 1) for slot in np.flatnonzero(self._rings[:, kernels.COUNT]).tolist()}

    def restore(self, state: dict[Any, Any], most: int) -> None:
        """The opposite of `snapshot`; `most`: the budget for partitions."""
        for key, places in state.items():
            expect(type(key) is int and -1 <= key < most, "numbers of partitions")
            expect((np.diff(array(places, "positions", low=0)) >= 0).all(), "events in order")
        self.put(state)
