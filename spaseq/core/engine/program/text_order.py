"""Texts as whole numbers in their order, so that kernels compare texts as they compare numbers.

This is order maintenance (Dietz and Sleator, STOC 1987) by labels in 60 bits: a new text gets a label between those of
its neighbours. If no label is left, `keep` gives new labels to all texts that are still in use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from spaseq.core.snapshot import expect

_TOP: Final = 1 << 60
"""Labels are between 0 and this one."""
_STEP: Final = 1 << 36
"""Between texts that come before or behind all others, at most: so many of them find room, as ever later times do."""
_TEXTS: Final = 1 << 16


class TextOrder:
    """A label for each text, int64, ascending in the order of code points. A label stands for one text until `keep`."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._labels: list[int] = []  # of those, ascending
        self._label_of: dict[str, int] = {}
        self._full = _TEXTS
        self._is_crowded = False

    def labels(self, texts: Sequence[str]) -> np.ndarray | None:
        """The labels of `texts`, int64, in their order; None if there is no room for new ones before `keep`.

        O(log n) comparisons for each new text among n.
        """
        known = self._label_of
        fresh = sorted({text for text in texts if text not in known})
        if fresh and not self._place(fresh):
            self._is_crowded = True
            return None
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))

    def text(self, label: int) -> str:
        """The text that a label stands for."""
        return self._texts[bisect_left(self._labels, label)]

    def has(self, codes: np.ndarray) -> bool:
        """For each of these, int64, True if it is a label."""
        return bool(np.isin(codes, np.array(self._labels, np.int64)).all())

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def full(self) -> bool:
        """True if `keep` should be called: there was no room, or there are twice as many texts as after the last
        call."""
        return self._is_crowded or len(self._texts) > self._full

    @property
    def crowded(self) -> bool:
        """True if there was no room."""
        return self._is_crowded

    def keep(self, held: np.ndarray) -> np.ndarray:
        """Forgets all texts whose labels are not in `held`, int64 of any shape, and gives the others new labels.
        Returns `held` with these; numbers that are no labels stay. O(texts + held)."""
        labels = np.array(self._labels, np.int64)
        places = np.searchsorted(labels, held)
        is_label = places < len(labels)
        is_label[is_label] = labels[places[is_label]] == held[is_label]
        used, which = np.unique(places[is_label], return_inverse=True)
        self._take([self._texts[i] for i in used.tolist()], _spread(_TOP // 4, 3 * (_TOP // 4), len(used)))
        self._full, self._is_crowded = 2 * len(used) + _TEXTS, False
        found = held.copy()
        found[is_label] = np.array(self._labels, np.int64)[which]
        return found

    def snapshot(self) -> Any:
        """The texts and their labels, as plain values."""
        return list(self._texts), list(self._labels)

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`. Raises `OptionError` for a value that is none."""
        texts, labels = state
        expect(all(type(text) is str for text in texts) and _ascend(texts), "texts in their order")
        expect(all(type(one) is int and 0 < one < _TOP for one in labels) and _ascend(labels), "labels in their order")
        expect(len(texts) == len(labels), "a label for each text")
        self._take(list(texts), list(labels))

    def _take(self, texts: list[str], labels: list[int]) -> None:
        self._texts, self._labels = texts, labels
        self._label_of = dict(zip(texts, labels, strict=True))

    def _place(self, fresh: list[str]) -> bool:
        """Labels for new texts, in their order; False if they do not find room, and nothing is changed."""
        places: list[int] = []
        for text in fresh:
            places.append(bisect_left(self._texts, text, lo=places[-1] if places else 0))
        labels: list[int] = []
        first = 0
        while first < len(fresh):
            last = bisect_right(places, places[first])
            found = self._between(places[first], last - first)
            if found is None:
                return False
            labels += found
            first = last
        if len(fresh) == 1:
            self._texts.insert(places[0], fresh[0])
            self._labels.insert(places[0], labels[0])
        else:
            self._texts += fresh
            self._texts.sort()
            self._labels += labels
            self._labels.sort()
        self._label_of.update(zip(fresh, labels, strict=True))
        return True

    def _between(self, place: int, count: int) -> list[int] | None:
        """Labels for so many new texts before the one at `place`, ascending; None if there are not so many."""
        taken = self._labels
        if not taken:
            return _spread(_TOP // 4, 3 * (_TOP // 4), count)
        low = taken[place - 1] if place else 0
        high = taken[place] if place < len(taken) else _TOP
        step = (high - low) // (count + 1)
        if step < 1:
            return None
        if place == 0:
            low = high - min(step, _STEP) * (count + 1)
        elif place == len(taken):
            high = low + min(step, _STEP) * (count + 1)
        return _spread(low, high, count)


def _spread(low: int, high: int, count: int) -> list[int]:
    """So many numbers between the two, as far apart as possible."""
    step = (high - low) // (count + 1)
    return [low + step * (i + 1) for i in range(count)]


def _ascend(values: Sequence[Any]) -> bool:
    return all(a < b for a, b in pairwise(values))
