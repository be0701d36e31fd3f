"""Partial matches in columns: the instances of one state ([Lazy] §2.2), a row each."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from spaseq.core.engine.lazy.buffers import BIG
from spaseq.core.snapshot import array, expect


class Partial:
    """`n` partial matches that have taken the same leaves. Every array is int64 (n,) but for `extra`.

    Attributes:
        key: the partition.
        low, high: the first and the last handle taken; BIG and -1 where none is.
        columns: for each leaf that has its event, the handle.
        seen: for leaves that have none, the handle from which on events have not been tried.
        extra, kinds: (n, w), the events of rounds; and the leaf of each column.
        marks: what rounds need to know: bounds, and their first events.
    """

    __slots__ = ("columns", "extra", "high", "key", "kinds", "low", "marks", "seen")

    def __init__(self, key: np.ndarray) -> None:
        count = len(key)
        self.key: np.ndarray = key
        self.low: np.ndarray = np.full(count, BIG, np.int64)
        self.high: np.ndarray = np.full(count, -1, np.int64)
        self.columns: dict[int, np.ndarray] = {}
        self.seen: dict[int, np.ndarray] = {}
        self.extra: np.ndarray = np.zeros((count, 0), np.int64)
        self.kinds: tuple[int, ...] = ()
        self.marks: dict[Hashable, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return (3 + len(self.columns) + len(self.seen) + len(self.marks)) * 8 * len(self) + self.extra.nbytes

    def take(self, index: np.ndarray | slice) -> Partial:
        """The rows at `index`, which may be a bool mask or a slice."""
        new = Partial.__new__(Partial)
        new.key, new.low, new.high = self.key[index], self.low[index], self.high[index]
        new.columns = {leaf: c[index] for leaf, c in self.columns.items()}
        new.seen = {leaf: c[index] for leaf, c in self.seen.items()}
        new.extra, new.kinds = self.extra[index], self.kinds
        new.marks = {name: c[index] for name, c in self.marks.items()}
        return new

    def snapshot(self) -> tuple[Any, ...]:
        """The columns of instances that wait, which have nothing of rounds, as plain values."""
        return self.key, self.low, self.high, self.columns, self.seen

    @staticmethod
    def restore(state: tuple[Any, ...], leaves: Collection[int]) -> Partial:
        """The opposite of `snapshot`; `leaves`: those that may be."""
        key, low, high, columns, seen = state
        new = Partial(array(key, "instances"))
        new.low, new.high = (array(column, "instances", rows=len(new)) for column in (low, high))
        expect(columns.keys() <= set(leaves) and seen.keys() <= set(leaves), "leaves of the pattern")
        new.columns = {leaf: array(column, "instances", rows=len(new)) for leaf, column in columns.items()}
        new.seen = {leaf: array(column, "instances", rows=len(new)) for leaf, column in seen.items()}
        return new

    @staticmethod
    def concat(parts: Sequence[Partial]) -> Partial:
        """The rows of all, which have taken the same leaves, and none of rounds."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        new = Partial.__new__(Partial)
        new.key = np.concatenate([p.key for p in parts])
        new.low = np.concatenate([p.low for p in parts])
        new.high = np.concatenate([p.high for p in parts])
        new.columns = {leaf: np.concatenate([p.columns[leaf] for p in parts]) for leaf in first.columns}
        new.seen = {leaf: np.concatenate([p.seen[leaf] for p in parts]) for leaf in first.seen}
        new.extra, new.kinds = np.zeros((len(new.key), 0), np.int64), ()
        new.marks = {}
        return new
