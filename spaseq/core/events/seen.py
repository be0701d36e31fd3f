"""The kinds of events read, the number of each, and the time range, for reports that explain a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from spaseq.core.events.batch import EventBatch
from spaseq.core.events.time import CALENDAR, format_time, unit_nanoseconds

MOST: Final = 1000
"""Kinds that are counted by name; the events of others are counted together."""
_SHOWN: Final = 8
_FEW: Final = 8
"""So few kinds are looked for one by one, which is three times as fast."""


@dataclass(slots=True)
class Seen:
    """`kinds`: events by type (CEQL) or stream (SPAseq), those of `others` together; `first` and `last` time, ns."""

    kinds: dict[str, int] = field(default_factory=dict)
    others: int = 0
    first: int | None = None
    last: int | None = None

    def note(self, batch: EventBatch) -> None:
        """Some more events, in order.

        PERF: 0.03 ms for 65,536 events of four types, 0.1 of more; types are decoded for the predicates anyway.
        """
        self.span(batch.times)
        types = batch.types
        if types is None or len(types.texts) > MOST:
            self.others += len(batch)
            return
        counts = _counts(types.codes, len(types.texts))
        self.others += len(batch) - sum(counts)
        for kind, count in zip(types.texts.to_pylist(), counts, strict=True):
            if count:
                self.add(kind, count)

    def add(self, kind: str, count: int) -> None:
        """Some more events of a kind."""
        if kind in self.kinds or len(self.kinds) < MOST:
            self.kinds[kind] = self.kinds.get(kind, 0) + count
        else:
            self.others += count

    def span(self, times: np.ndarray) -> None:
        """The times of some more events: int64 (n,), ascending, n > 0."""
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(times[-1])

    def told(self, unit: str = "s", *, of: str = "") -> str:
        """All of it on a line; `of` stands between a number and its kind. Times that are no dates are in `unit`."""
        total = sum(self.kinds.values()) + self.others
        if not total:
            return "no event was read"
        ordered = sorted(self.kinds.items(), key=lambda item: -item[1])
        parts = [f"{count:,} {of}{kind}" for kind, count in ordered[:_SHOWN]]
        rest = sum(count for _, count in ordered[_SHOWN:]) + self.others
        parts += [f"{rest:,} others" if parts else ""] if rest else []
        text = f"{total:,} event{' was' if total == 1 else 's were'} read"
        text += f": {', '.join(parts)}" if any(parts) else ""
        if self.first is not None and self.last is not None:
            text += f"; from {_show_time(self.first, unit)} to {_show_time(self.last, unit)}"
        return text


def _counts(codes: np.ndarray, kinds: int) -> list[int]:
    """The number of occurrences of each code below `kinds`; -1 stands for none of them."""
    if kinds <= _FEW:
        return [int(np.count_nonzero(codes == kind)) for kind in range(kinds)]
    return list(map(int, np.bincount(codes + 1, minlength=kinds + 1)[1:]))


def _show_time(time: int, unit: str) -> str:
    if abs(time) >= CALENDAR:
        return format_time(time)
    return f"{time / unit_nanoseconds(unit):,.12g} {unit}"
