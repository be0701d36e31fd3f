"""The input buffer ([Lazy] §3), in columns: the events that some leaf can take, with a list of them for each kind of
leaf.

An event that is kept has a *handle*: 0, 1, 2… in order of arrival. A `Postings` is the sorted list of the handles that
satisfy some set of predicates. Their codes are `partition << SHIFT | handle`, so a range of time in a partition is a
slice found by binary search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from spaseq.core.errors import BudgetExceeded
from spaseq.core.snapshot import array, expect

SHIFT: Final = 40
BIG: Final = (1 << SHIFT) - 1
"""Above every handle."""
_PARTITIONS: Final = 1 << (62 - SHIFT)


class Growing:
    """An int64 array that grows behind and is forgotten before: amortised O(1) for each number."""

    __slots__ = ("_data", "_end", "_start")

    def __init__(self) -> None:
        self._data = np.zeros(64, np.int64)
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    @property
    def values(self) -> np.ndarray:
        """A view; valid until the next change."""
        return self._data[self._start : self._end]

    @property
    def nbytes(self) -> int:
        return int(self._data.nbytes)

    def append(self, values: np.ndarray) -> None:
        count = len(values)
        if self._end + count > len(self._data):
            live = self.values
            room = max(64, 2 * (len(live) + count))
            data = np.empty(room, np.int64) if 2 * room > len(self._data) or self._start < count else self._data
            data[: len(live)] = live.copy() if data is self._data else live
            self._data, self._start, self._end = data, 0, len(live)
        self._data[self._end : self._end + count] = values
        self._end += count

    def drop(self, count: int) -> None:
        self._start += count

    def set(self, values: np.ndarray) -> None:
        self._data, self._start, self._end = np.array(values, np.int64), 0, len(values)


def grow(values: Any, what: str, rows: int | None = None) -> Growing:
    """A column of a snapshot."""
    column = Growing()
    column.set(array(values, what, rows=rows))
    return column


class Rows:
    """The data of each kept event, by handle.

    `position`: in the stream; `ordinal`: among all events of its partition; `low`: the first handle that is in a window
    that ends with it; `key`: its partition.
    """

    __slots__ = ("base", "key", "low", "ordinal", "position", "sequence")

    def __init__(self) -> None:
        self.base: int = 0
        self.position: Growing = Growing()
        self.ordinal: Growing = Growing()
        self.low: Growing = Growing()
        self.key: Growing = Growing()
        self.sequence: Growing = Growing()
        """The number of the event among all that were pushed."""

    def __len__(self) -> int:
        return len(self.position)

    @property
    def end(self) -> int:
        """The handle that the next event will have."""
        return self.base + len(self)

    @property
    def columns(self) -> tuple[Growing, ...]:
        return self.position, self.ordinal, self.low, self.key, self.sequence

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns)

    def snapshot(self) -> tuple[int, list[np.ndarray]]:
        """The columns, as plain values."""
        return self.base, [column.values for column in self.columns]

    def restore(self, state: tuple[int, list[np.ndarray]]) -> None:
        """The opposite of `snapshot`."""
        self.base, columns = state
        expect(type(self.base) is int and 0 <= self.base < BIG and len(columns) == 5, "columns of the buffer")
        self.position, self.ordinal, self.low, self.key, self.sequence = (
            grow(column, "events", len(columns[0])) for column in columns
        )

    def evict_before(self, handle: int) -> int:
        """Forget the events before `handle`; how many they were."""
        count = min(max(handle - self.base, 0), len(self))
        for column in self.columns:
            column.drop(count)
        self.base += count
        return count

    def keep(self, kept: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Forget all events but those at the indexes `kept`, ascending; gives the new handles of old ones.

        A handle that is not kept becomes that of the next one that is.
        """
        old = kept + self.base
        first = self.end - len(kept)
        for column in self.columns:
            column.set(column.values[kept])
        self.base = first

        def renumber(handles: np.ndarray) -> np.ndarray:
            special = (handles < 0) | (handles >= BIG)
            return np.where(special, handles, first + np.searchsorted(old, handles))

        self.low.set(np.maximum(renumber(self.low.values), first))
        return renumber


class Postings:
    """The events that satisfy one set of predicates."""

    __slots__ = ("_keyed", "codes", "inserted")

    def __init__(self, keyed: bool) -> None:
        self.codes: Growing = Growing()
        self._keyed = keyed
        self.inserted: int = 0

    def __len__(self) -> int:
        return len(self.codes)

    def append(self, handles: np.ndarray, keys: np.ndarray) -> None:
        """Handles ascending, above all there are. O(new), with partitions O(all)."""
        self.inserted += len(handles)
        if not self._keyed:
            self.codes.append(handles)
            return
        if len(keys) and int(keys.max()) >= _PARTITIONS:
            raise BudgetExceeded("partitions of the lazy evaluators", _PARTITIONS, int(keys.max()) + 1, "partitions",
                                 "evaluator 'compact' takes any number of partitions")  # fmt: skip
        fresh = np.sort((keys << SHIFT) | handles)
        present = self.codes.values
        self.codes.set(np.insert(present, np.searchsorted(present, fresh), fresh))

    def find(self, keys: np.ndarray | int, handles: np.ndarray) -> np.ndarray:
        """The index of the first event of partition `keys[i]` whose handle is at least `handles[i]`."""
        wanted = (keys << SHIFT) | handles if self._keyed else handles
        return np.searchsorted(self.codes.values, wanted)

    def at(self, index: np.ndarray) -> np.ndarray:
        """The handles at `index`."""
        found = self.codes.values[index]
        return found & BIG if self._keyed else found

    def evict_before(self, handle: int) -> None:
        codes = self.codes.values
        if not self._keyed:
            self.codes.drop(int(np.searchsorted(codes, handle)))
        elif len(codes):
            self.codes.set(codes[(codes & BIG) >= handle])

    def keep(self, live: np.ndarray, base: int, renumber: Callable[[np.ndarray], np.ndarray]) -> None:
        """Only the events that are `live` (by old handle less `base`), under their new handles."""
        codes = self.codes.values
        codes = codes[live[(codes & BIG) - base]]
        self.codes.set((codes >> SHIFT << SHIFT) | renumber(codes & BIG))

    def snapshot(self) -> tuple[np.ndarray, int]:
        """The events, and how many there were so far, as plain values."""
        return self.codes.values, self.inserted

    def restore(self, state: tuple[np.ndarray, int], rows: Rows) -> None:
        """The opposite of `snapshot`, of the events in `rows`."""
        codes, self.inserted = state
        expect(type(self.inserted) is int, "a count of postings")
        self.codes = grow(codes, "postings")
        handles = self.codes.values & BIG if self._keyed else self.codes.values
        there = (handles >= rows.base) & (handles < rows.end)
        expect(there.all() and (np.diff(self.codes.values) > 0).all(), "postings of events that are kept")
