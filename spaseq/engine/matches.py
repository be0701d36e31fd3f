"""Matches as columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np


def _empty() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class MatchBatch:
    """Complex events ([start, end], D), in order of their ends.

    `start`, `end`: int64 (m,). `positions`: int64, D of match i ascending at `positions[offsets[i]:offsets[i + 1]]`.
    `rows`: for a program with registers, the register rows each match was accepted with; else None.
    """

    start: np.ndarray = field(default_factory=_empty)
    end: np.ndarray = field(default_factory=_empty)
    offsets: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    positions: np.ndarray = field(default_factory=_empty)
    rows: list[frozenset[Hashable]] | None = None

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.start.nbytes + self.end.nbytes + self.offsets.nbytes + self.positions.nbytes)

    @staticmethod
    def concat(batches: Sequence[MatchBatch]) -> MatchBatch:
        """One after the other."""
        batches = [b for b in batches if len(b)] or list(batches[:1])
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return MatchBatch()
        shifts = np.cumsum([0] + [len(b.positions) for b in batches])
        rows = None if any(b.rows is None for b in batches) else [r for b in batches for r in b.rows or ()]
        return MatchBatch(
            np.concatenate([b.start for b in batches]),
            np.concatenate([b.end for b in batches]),
            np.concatenate([[0], *(b.offsets[1:] + s for b, s in zip(batches, shifts, strict=False))]),
            np.concatenate([b.positions for b in batches]),
            rows,
        )
