"""Aggregates over all matches that end at an event, in place of the matches: what a program needs to compute them.

`spaseq.core.engine.kernels.sums` describes the numbers of a row and how they are combined. Here the front end says what
an event adds to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spaseq.core.engine.kernels.sums.layout import Rows, Takes
from spaseq.core.snapshot import array, expect

Labels = tuple[frozenset[str], ...] | None


class Summed(Protocol):
    """The aggregates of a query. A row has `totals` whole numbers that are added up, the first of which counts matches,
    `least` numbers of which the least counts, and `doubles` that are added up."""

    @property
    def totals(self) -> int: ...
    @property
    def least(self) -> int: ...
    @property
    def doubles(self) -> int: ...

    def takes(self, labels: Labels) -> Takes:
        """By label the numbers that an event with it changes."""

    def kinds(self) -> list[list[Any]]:
        """The kinds of the values that an evaluation has met, none before the first event: lists of plain values."""

    def read_kinds(self, kinds: Any) -> list[list[Any]]:
        """`kinds` of a snapshot. `OptionError` if they are none."""

    def weights(self, batch: Any, rows: np.ndarray, may: np.ndarray, labels: Labels, kinds: list[list[Any]]) -> Rows:
        """The numbers of these rows of a batch: not negative if they are added, NO_LEAST for no value. `may`: bool
        (rows, labels), the labels that an event can get. Notes in `kinds` what the values are. Raises `EventError` for
        values of which there is no such aggregate."""


@dataclass(frozen=True, slots=True)
class Sums:
    """The rows of aggregates, as of `kernels.sums.layout.Rows`; `kinds` as of `Summed`, by then."""

    ints: np.ndarray
    floats: np.ndarray
    kinds: tuple[tuple[Any, ...], ...]

    def __getitem__(self, rows: slice) -> Sums:
        return Sums(self.ints[rows], self.floats[rows], self.kinds)

    @staticmethod
    def concat(parts: Sequence[Sums]) -> Sums:
        """One after the other, of one evaluation."""
        ints, floats = (np.concatenate(each) for each in zip(*((p.ints, p.floats) for p in parts), strict=True))
        return Sums(ints, floats, parts[-1].kinds)


def no_rows(summed: Summed, count: int = 0) -> Rows:
    """`count` rows of no runs."""
    return Rows(np.zeros((count, summed.totals + summed.least), np.int64), np.zeros((count, summed.doubles)))


def plain_rows(name: str, rows: Rows | Sums) -> dict[str, np.ndarray]:
    """Rows as arrays that snapshots hold."""
    doubles = np.ascontiguousarray(rows.floats).ravel()
    return {name: rows.ints.ravel(), f"{name}_doubles": doubles.view(np.int64)}


def read_rows(summed: Summed, state: dict[str, Any], name: str, count: int) -> Rows:
    """The opposite of `plain_rows`: `count` rows of a snapshot. `OptionError` for others."""
    shape = no_rows(summed, count)
    ints = array(state[name], name, rows=shape.ints.size).reshape(shape.ints.shape)
    floats = array(state[f"{name}_doubles"], name, rows=shape.floats.size).view(np.float64)
    expect(not ints.size or ints[:, : summed.totals].min() >= 0, "sums that are not negative")
    return Rows(ints, floats.reshape(shape.floats.shape))
