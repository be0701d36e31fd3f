"""Numbers for the partitions of one evaluation; that of one which no run can be in any more is given to another."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

import numpy as np

from spaseq.engine.program.window import Window
from spaseq.snapshot import expect

__all__ = ["Partitions"]

_NONE = object()


class Partitions:
    """A number from 0 for each key of PARTITION BY, as small as can be.

    Runs of a partition whose last event has left the window are dead, and so is what CONSUME BY PARTITION holds against
    them. For the engine such a partition is like one that never was, so another key may have its number. Keys that were
    seen since the last turn are marked. At a turn, which comes when the window no longer reaches back to the turn
    before, those without a mark are forgotten and the marks are wiped off. So a key is kept for one window behind its
    last event at least. A turn waits for so many new keys that it is worth its while: forgetting costs O(1) for each of
    them, and the keys held are some three times those of two windows at most.

    Windows in EVENTS are a partition's own, and a query may have no window: there no key is ever forgotten.
    """

    worth: ClassVar[int] = 1_000
    """So many new keys make a turn worth its while."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._forgets = window.is_bounded and not window.per_partition
        self._numbers: dict[Any, int] = {}
        self._keys: list[Any] = []
        self._free: list[int] = []
        self._seen = np.zeros(1_024, bool)
        self._turned: int | float | None = None
        self._new = 0

    def __len__(self) -> int:
        """How many keys are held."""
        return len(self._numbers)

    def number(self, key: Hashable) -> int:
        """The number of a key that an event has. O(1)."""
        number = self._numbers.get(key)
        if number is None:
            number = self._given(key)
        self._seen[number] = True
        return number

    def of(self, keys: list[Any]) -> list[int]:
        """The number of each key, as `number` gives it."""
        known = self._numbers.get
        numbers = [self._given(key) if (number := known(key)) is None else number for key in keys]
        self._seen[numbers] = True
        return numbers

    def see(self, numbers: np.ndarray | int) -> None:
        """Events have the keys of these numbers, which were given since keys were last forgotten."""
        self._seen[numbers] = True

    def reach(self, place: int | float) -> bool:
        """No event will come before `place`, in what the window is measured in. To be called between events.

        Returns whether keys may have been forgotten: a number that the caller keeps for a key is not to be used again.
        """
        if not self._forgets or self._new < max(self.worth, len(self._numbers) // 4):
            return False
        if self._turned is not None and self._window.open_from(place) <= self._turned:
            return False
        if self._turned is not None:
            for number in np.flatnonzero(~self._seen[: len(self._keys)]).tolist():
                if self._keys[number] is not _NONE:
                    del self._numbers[self._keys[number]]
                    self._keys[number] = _NONE
                    self._free.append(number)
        self._seen[:] = False
        self._turned, self._new = place, 0
        return True

    def _given(self, key: Hashable) -> int:
        """The number of a key that has none."""
        self._new += 1
        if self._free:
            number = self._free.pop()
            self._keys[number] = key
        else:
            number = len(self._keys)
            self._keys.append(key)
            if number == len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros(number, bool)])
        self._numbers[key] = number
        return number

    def snapshot(self) -> tuple[Any, ...]:
        """Keys, their numbers, which of them are marked, the place of the last turn, and how many keys are newer."""
        numbers = list(self._numbers.values())
        return list(self._numbers), numbers, self._seen[numbers].tolist(), self._turned, self._new

    def restore(self, state: tuple[Any, ...], most: int) -> None:
        """The opposite of `snapshot`, before the first key; `most`: the budget for numbers. `OptionError` for numbers
        that are not each a key's own."""
        keys, numbers, seen, turned, new = state
        self._numbers = dict(zip(keys, numbers, strict=True))
        expect(all(type(number) is int and number >= 0 for number in numbers), "numbers of keys")
        expect(len(self._numbers) == len(set(numbers)) == len(numbers), "each key and each number once")
        expect(max(numbers, default=-1) < most, "no more keys than the budget")
        expect(all(type(each) is bool for each in seen) and len(seen) == len(numbers), "a mark for each key")
        expect(turned is None or type(turned) in (int, float), "a place in the stream")
        expect(type(new) is int and new >= 0, "a number of new keys")
        self._turned, self._new = turned, new
        self._keys = [_NONE] * (1 + max(numbers, default=-1))
        self._seen = np.zeros(len(self._keys) + 1_024, bool)
        self._seen[numbers] = seen
        for key, number in self._numbers.items():
            self._keys[number] = key
        self._free = [number for number in reversed(range(len(self._keys))) if self._keys[number] is _NONE]
