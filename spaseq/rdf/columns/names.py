"""The names that ended last, to detect graphs that come again (`reopened` of `Counters`)."""

from __future__ import annotations

from typing import Final

import numpy as np

from spaseq.core.jit import attempt_rows
from spaseq.rdf.columns.kernels.layout import NIL
from spaseq.rdf.columns.kernels.names import COUNT, ENDS_SIZE, NEWEST, OLDEST, mark, refill

_FIRST: Final = 1 << 10


class RecentNames:
    """The last `limit` names of one file. Memory: up to 64 bytes for each."""

    __slots__ = ("_ends", "_keys", "_last", "_limit", "_links", "_slots")

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._last = np.zeros(2, dtype=np.uint64)
        self._ends = np.zeros(ENDS_SIZE, dtype=np.int64)
        self._ends[[OLDEST, NEWEST]] = NIL
        self._keys = np.zeros((0, 2), dtype=np.uint64)
        self._links = np.zeros((0, 2), dtype=np.int64)
        self._grow(_FIRST)

    def _grow(self, entries: int) -> None:
        keys, links = np.zeros((entries, 2), dtype=np.uint64), np.zeros((entries, 2), dtype=np.int64)
        keys[: len(self._keys)], links[: len(self._links)] = self._keys, self._links
        self._keys, self._links = keys, links
        self._slots = np.full((2 << (entries - 1).bit_length(), 2), NIL, dtype=np.int32)
        count = int(self._ends[COUNT])
        attempt_rows(refill, count, count, keys, self._slots)

    def mark(
        self, names: np.ndarray, text: np.ndarray, start: np.ndarray, length: np.ndarray, hashes: np.ndarray
    ) -> np.ndarray:
        """uint8, 1 for each of the graphs `names` (int32, terms of a table) that has ended before."""
        need = min(int(self._ends[COUNT]) + len(names) + 1, self._limit)
        if need > len(self._keys):
            self._grow(min(max(need, 2 * len(self._keys)), max(self._limit, _FIRST)))
        repeated = np.zeros(len(names), dtype=np.uint8)
        attempt_rows(mark, 32 * len(names), names, text, start, length, hashes, repeated, self._last, self._limit,
                     self._keys, self._links, self._slots, self._ends)  # fmt: skip
        return repeated
