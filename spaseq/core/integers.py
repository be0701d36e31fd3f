"""Sorting and distinct values of arrays of integers, without comparisons if their values allow it.

numpy's stable `argsort` compares, except for numbers of 16 bits: these it counts. `numpy.unique` hashes, or sorts by
comparisons if it has to return indices. Keys, codes of terms, events and cells of a batch are numbers that lie close
together or are in order already. So here they are counted 16 bits at a time, or have a place each.

PERF: 16,000 numbers below 5,000: `numpy.argsort(kind="stable")` 740 to 1,340 µs, `in_order` 47; `numpy.unique` 520 to
940, with the first index of each 800 to 1,580, `apart` 68 and `first_of_each` 51. Two ascending runs of 8,000, far
apart: `numpy.unique` 1,000 to 2,000, `apart` 56 (numpy 2.4.6, 2026-11-25, the least of 15, with and without load).
"""

from __future__ import annotations

from typing import Final

import numpy as np

_CLOSE: Final = 16  # values within so many times their number have a place each
_BITS: Final = 16  # numpy's stable sort counts numbers of so many bits


class Memo:
    """A map from numbers (from 0) to numbers (from 0), in an array instead of a dict, so that one call looks up many. 8
    to 16 bytes for each number up to the highest recorded."""

    __slots__ = ("_told",)

    def __init__(self) -> None:
        self._told = np.zeros(0, np.int64)

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """The values recorded for `numbers`, ints from 0: int64, -1 for numbers without a value."""
        if not len(numbers):
            return np.zeros(0, np.int64)
        self._reach(int(numbers.max()))
        return self._told[numbers]

    def of_one(self, number: int) -> int:
        """`of` a single number."""
        return int(self._told[number]) if number < len(self._told) else -1

    def tell(self, numbers: np.ndarray, known: np.ndarray) -> None:
        """From now on these are `known` of `numbers`."""
        if len(numbers):
            self._reach(int(numbers.max()))
            self._told[numbers] = known

    def tell_one(self, number: int, known: int) -> None:
        """`tell` of a single number; -1 removes its value."""
        self._reach(number)
        self._told[number] = known

    def clear(self) -> None:
        """Remove all values."""
        self._told = np.zeros(0, np.int64)

    def _reach(self, highest: int) -> None:
        if highest >= len(self._told):
            longer = np.full(2 * highest + 1_024, -1, np.int64)
            longer[: len(self._told)] = self._told
            self._told = longer


def in_order(values: np.ndarray) -> np.ndarray:
    """The order that sorts `values`, an int array of one dimension, equal ones as they come: int64. As of
    `np.argsort(values, kind="stable")`. O(n) for numbers within 2^32 of each other, and for sorted ones."""
    if len(values) < 2 or (values[1:] >= values[:-1]).all():
        return np.arange(len(values))
    low, high = int(values.min()), int(values.max())
    if high - low >= 1 << 2 * _BITS:
        return np.argsort(values, kind="stable")
    above = values.astype(np.int64) - low
    order = np.argsort(above.astype(np.uint16), kind="stable")
    if high - low >= 1 << _BITS:
        order = order[np.argsort((above >> _BITS).astype(np.uint16)[order], kind="stable")]
    return order


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of ranges that begin so and are so long, one range behind the other: int64."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - (ends - lengths), lengths)


def apart(values: np.ndarray) -> np.ndarray:
    """The different ones of `values`, an int array, ascending: one dimension. As of `np.unique(values)`."""
    values = values.ravel()
    if len(values) < 2 or (values[1:] > values[:-1]).all():
        return values
    ordered = np.sort(values)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def different(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of `values`, an int array, ascending: one dimension; and for each value the index of its own
    in them: int64, of the shape of `values`. As of `np.unique(values, return_inverse=True)`."""
    flat = values.ravel()
    low = _dense(flat)
    if low is None:
        used, places = np.unique(flat, return_inverse=True)  # PERF: which sorts without heed to which is first
        return used, places.reshape(values.shape)
    at, places = _count_places(flat, low)
    used = np.flatnonzero(places >= 0)
    places[used] = np.arange(len(used))
    return (used + low).astype(values.dtype), places[at].reshape(values.shape)


def first_of_each(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first index of each different value, in ascending order of the values, and the number of each value among the
    different ones. `values`: ints of one dimension. Both results are int64, as `return_index` and `return_inverse` of
    `np.unique`."""
    low = _dense(values)
    if low is None:
        order = in_order(values)
        ordered = values[order]
        fresh = np.ones(len(values), bool)
        fresh[1:] = ordered[1:] != ordered[:-1]
        places = np.empty(len(values), np.int64)
        places[order] = np.cumsum(fresh) - 1
        return order[fresh], places
    at, places = _count_places(values, low)
    used = np.flatnonzero(places >= 0)
    first = places[used]
    places[used] = np.arange(len(used))
    return first, places[at]


def _dense(values: np.ndarray) -> int | None:
    """The least of the values if they lie close enough together for an array with a place for each between; else None.

    PERF: 25,000 values of as many 0.24 ms, sorting 1.4; 2,500 of 2,500 0.05 and 0.15; of 40,000 0.08 and 0.14; of
    160,000 as long as sorting.
    """
    if not len(values):
        return None
    low = int(values.min())
    return low if int(values.max()) - low < _CLOSE * len(values) else None


def _count_places(values: np.ndarray, low: int) -> tuple[np.ndarray, np.ndarray]:
    """For each value its place among those from `low` on, int64; and for each place the index of the first value that
    has it, int64, -1 if none has."""
    at = values.astype(np.int64) - low
    first = np.full(int(at.max()) + 1, -1, np.int64)
    first[at[::-1]] = np.arange(len(at) - 1, -1, -1)  # of equal places the last one that is written stays
    return at, first
