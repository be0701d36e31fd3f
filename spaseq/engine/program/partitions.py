"""Numbers for the partitions of one evaluation; that of one which no run can be in any more is given to another."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar

from spaseq.engine.program.window import Window
from spaseq.snapshot import expect

__all__ = ["Partitions"]


class Partitions:
    """A number from 0 for each key of PARTITION BY, as small as can be.

    Runs of a partition whose last event has left the window are dead, and so is what CONSUME BY PARTITION holds against
    them. For the engine such a partition is like one that never was, so another key may have its number. There are two
    generations: keys that were seen since the last turn, and those seen before it. At a turn, which comes when the
    window no longer reaches back to the turn before, what is left of the older ones is forgotten. So a key is kept for
    one window behind its last event at least. A turn waits for so many new keys that it is worth its while: forgetting
    costs O(1) for each of them, and the keys held are some three times those of two windows at most.

    Windows in EVENTS are a partition's own, and a query may have no window: there no key is ever forgotten.
    """

    worth: ClassVar[int] = 1_000
    """So many new keys make a turn worth its while."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._forgets = window.is_bounded and not window.per_partition
        self._seen: dict[Any, int] = {}
        self._before: dict[Any, int] = {}
        self._turned: int | float | None = None
        self._new = 0
        self._free: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        """How many keys are held."""
        return len(self._seen) + len(self._before)

    def number(self, key: Hashable) -> int:
        """The number of a key that an event has. O(1)."""
        number = self._seen.get(key)
        if number is None:
            number = self._before.pop(key, None)
            if number is None:
                number = self._free.pop() if self._free else self._next
                self._next += number == self._next
                self._new += 1
            self._seen[key] = number
        return number

    def of(self, keys: list[Any]) -> list[int]:
        """The number of each key."""
        seen = self._seen.get
        return [self.number(key) if (number := seen(key)) is None else number for key in keys]

    def reach(self, place: int | float) -> None:
        """No event will come before `place`, in what the window is measured in. To be called between events."""
        if not self._forgets or self._new < max(self.worth, len(self) // 4):
            return
        if self._turned is None:
            self._turned = place  # the first generation is of the events before
        elif self._window.open_from(place) > self._turned:
            self._free += self._before.values()
            self._before, self._seen, self._turned, self._new = self._seen, {}, place, 0

    def snapshot(self) -> tuple[Any, ...]:
        """Keys and numbers of both generations, the place of the last turn, and how many keys are newer."""
        parts = self._seen, self._seen.values(), self._before, self._before.values()
        return *map(list, parts), self._turned, self._new

    def restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `snapshot`, before the first key. `OptionError` for numbers that are not each a key's own."""
        seen, seen_numbers, before, before_numbers, turned, new = state
        numbers = seen_numbers + before_numbers
        self._seen = dict(zip(seen, seen_numbers, strict=True))
        self._before = dict(zip(before, before_numbers, strict=True))
        whole = all(type(number) is int and number >= 0 for number in numbers)
        expect(whole and len({*seen, *before}) == len(set(numbers)) == len(numbers), "each key and each number once")
        expect(turned is None or type(turned) in (int, float), "a place in the stream")
        expect(type(new) is int and new >= 0, "a number of new keys")
        self._turned, self._new = turned, new
        self._next = 1 + max(numbers, default=-1)
        self._free = sorted(set(range(self._next)).difference(numbers), reverse=True)
