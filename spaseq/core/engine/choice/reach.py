"""The reach of the next event's window into the past, as far as the choice of an evaluator must know it.

The batches that some evaluator may have to read again are kept here. The engine's own windows are exact, event by event
(`spaseq.core.engine.program.window`); here whole batches are kept, perhaps too long, never too short.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from spaseq.core.engine.program.window import Window
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect

HISTORY: Final = 1 << 18
"""Events kept to be read again. If a window has more than that, the evaluator is not changed."""
EACH: Final = 1024
"""The window of one event in so many is looked at."""
SAMPLES: Final = 16
"""But no more windows than this of the first batch, before anything was measured."""
LATER: Final = 2
"""And of each after it."""
KEYS: Final = 4096
"""Events of a batch whose partitions are counted."""
_NEVER: Final = -(1 << 63)
"""No place is before it."""


class Reach:
    """The batches of the current window, and a check that all of them are there."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.batches: list[Batch] = []
        self.partitions: int = 1
        """Different ones in the last batch whose window was looked at, up to `KEYS`."""
        self._dropped: float | None = None
        """The place (position or time) of the last event that is no longer kept."""

    @property
    def is_whole(self) -> bool:
        """True if every event that a window still open can hold is kept."""
        return self._dropped is None or bool(self.batches and self._dropped < self._still_open())

    def evict(self) -> None:
        """Drop the batches that no open window holds, and those beyond `HISTORY`."""
        first = self._still_open() if self.batches else _NEVER
        size, count = sum(map(len, self.batches)), 0
        for kept in self.batches:
            last = self._last_place(kept)
            if last >= first and size <= HISTORY:
                break
            self._dropped = last
            size -= len(kept)
            count += 1
        del self.batches[:count]

    def open_batches(self) -> Iterator[Batch]:
        """The events of the windows still open, and some before them, in order."""
        first = self._still_open() if self.batches else _NEVER
        for batch in self.batches:
            at = int(np.searchsorted(self._window.places(batch), first))
            cut: Any = getattr(batch, "part", None)
            yield batch if cut is None or not at else cut(min(at, len(batch) - 1), len(batch))

    @property
    def open_events(self) -> int:
        """The number of events that `open_batches` would give if every batch could be cut."""
        first = self._still_open() if self.batches else _NEVER
        return sum(len(batch) - int(np.searchsorted(self._window.places(batch), first)) for batch in self.batches)

    def _still_open(self) -> float:
        """The start of the earliest window that did not end before the last event.

        Not that of the next event: matches that wait for their windows to close (NOT at the end) are still to come.
        """
        last = self.batches[-1]
        if self._window.per_partition and last.keys is not None:
            return _NEVER  # each partition's window reaches back by itself
        return self._window.open_from(self._last_place(last))

    def _last_place(self, batch: Batch) -> float:
        last: float = self._window.places(batch)[-1].item()
        return last

    def drop_all(self, place: float) -> None:
        """Nothing up to `place`, the last event's, can be read again."""
        self.batches.clear()
        self._dropped = place

    def append(self, batch: Batch) -> None:
        """Keep a batch; those before it stay."""
        self.batches.append(batch)

    def snapshot(self) -> float | None:
        """The last event. Batches are in no snapshot: it is as if all had been dropped."""
        last: Any = self._last_place(self.batches[-1]) if self.batches else self._dropped
        return last.item() if isinstance(last, np.generic) else last

    def restore(self, state: float | None) -> None:
        """The opposite of `snapshot`, before the first batch."""
        expect(state is None or type(state) in (int, float), "where the last event was")
        self._dropped = state

    def in_window(self, batch: Batch) -> float:
        """About how many events of one partition a window holds that ends in `batch`.

        Of different sizes the root of the mean square, as the number of tuples grows faster than the window.
        """
        self.partitions = 1 if batch.keys is None else _different(np.asarray(batch.keys)[-KEYS:])
        if self._window.per_partition:
            return float(self._window.size) + 1.0
        samples = min(LATER if self.batches else SAMPLES, -(-len(batch) // EACH))
        rows = len(batch) * (2 * np.arange(samples) + 1) // (2 * samples)
        counts = self._counts(batch, rows)
        return math.sqrt(float(np.mean(counts * counts))) / self.partitions + 1.0

    def _counts(self, batch: Batch, rows: np.ndarray) -> np.ndarray:
        """Events between the start of the window of each row and the row."""
        places = self._window.places(batch)
        first = self._window.bounds(places[rows])
        at = np.searchsorted(places, first)
        counts = np.maximum(rows - at, 0)
        for kept in reversed(self.batches):
            before = at == 0  # windows that reach further back
            if not before.any():
                break
            at[before] = np.searchsorted(self._window.places(kept), first[before])
            counts[before] += len(kept) - at[before]
        return counts


def _different(keys: np.ndarray) -> int:
    """The number of different ones, at least one. O(n) if they lie close together."""
    low, high = int(keys.min()), int(keys.max())
    if high - low > 16 * KEYS:
        return len(np.unique(keys))
    return int(np.count_nonzero(np.bincount(keys - low)))
