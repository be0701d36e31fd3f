"""How far the streams of a streamset have come: lateness, watermark, and the numbers of instants.

The rules are the local engine's (`spaseq.rdf.order`), event by event, so it does not matter how a stream falls into
batches: an event is late if it is more than `lateness` behind the latest one of its stream that came before it. An
instant is complete when every stream is past it: the watermark is the least of the streams' latest times less the
lateness, and nothing is complete before every stream has said something.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from spaseq.errors import EventError
from spaseq.events.time import format_time, time_behind
from spaseq.rdf import ARRIVAL, StreamOptions
from spaseq.snapshot import array, expect

__all__ = ["Clock", "Place"]

Place = tuple[int, int, int]
"""Time (ns), feed, and the number of an event in it: the order of the streamset."""

_END: Final = np.iinfo(np.int64).max


@dataclass(slots=True)
class Clock:
    """The clock of `feeds` streams. `options` must be settled.

    `loose`: the streams have no order of their own inside a batch (a DataFrame), so an event is late only behind what
    came in batches before. `idle` (ns, 0: never): a stream without an event for so long, by the times of the batches
    (`begin_batch`), holds the others up no longer; what it brings later is late if its instant was complete.
    """

    feeds: int
    options: StreamOptions
    loose: bool = False
    idle: int = 0
    highs: dict[int, int] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    late: int = 0
    events: int = 0
    position: int = 0
    coming: dict[int, int] = field(default_factory=dict)
    now: int = 0
    seen: dict[int, int] = field(default_factory=dict)
    released: int | None = None
    waiting: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    def identity(self) -> str:
        """What must be the same where a snapshot is gone on from: lateness and `idle` may change."""
        options = self.options
        times = f"times from arrival, {options.interval} ns apart" if options.time == ARRIVAL else "times of their own"
        return f"{self.feeds} streams with {times}, {'each event' if self.apart else 'events of one time'} an instant"

    def snapshot(self) -> tuple[Any, ...]:
        """How far the streams have come, as plain values."""
        return (self.highs, self.counts, self.closed, self.late, self.events, self.position, self.coming, self.now,
                self.seen, self.released, self.waiting)  # fmt: skip

    def restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `snapshot`."""
        (self.highs, self.counts, self.closed, self.late, self.events, self.position, self.coming, self.now,
         self.seen, self.released, waiting) = state  # fmt: skip
        self.waiting = array(waiting, "places", columns=3)
        feeds = self.highs.keys() | self.counts.keys() | self.closed | self.coming.keys() | self.seen.keys()
        expect(feeds <= set(range(self.feeds)), "streams that there are")
        expect(all(type(n) is int for n in (self.late, self.events, self.position, self.now)), "counts")

    @property
    def apart(self) -> bool:
        """Whether each event is an instant of its own."""
        return self.options.time == ARRIVAL or self.options.ties == "arrival"

    def take(self, feed: int, times: np.ndarray, lines: np.ndarray, file: str) -> tuple[np.ndarray, np.ndarray]:
        """The next events of a stream: their places, int64 (n, 3), and which are late, bool (n,).

        Raises EventError for a late one, unless they are to be dropped or `lines` is empty: of all who are given the
        same events one has their lines, and it is enough that one raises.
        """
        first = self.counts.get(feed, 0)
        numbers = np.arange(first, first + len(times), dtype=np.int64)
        self.counts[feed] = first + len(times)
        self.events += len(times)
        if self.options.time == ARRIVAL:
            times = numbers * self.options.interval
        late = np.zeros(len(times), bool)
        if len(times):
            high = self._highest(feed, times)
            late = (times < high[:-1]) & (time_behind(high[:-1], times) > self.options.lateness)
            self.seen[feed] = self.now
            if self.idle and self.released is not None:
                self._note_missed(times, lines, file, late)
            if late.any():
                self._note_late(feed, times, high, late, lines, file)
        places = np.stack([times, np.full(len(times), feed), numbers], axis=1)
        self.waiting = np.concatenate([self.waiting, places[~late]])
        return places, late

    def _highest(self, feed: int, times: np.ndarray) -> np.ndarray:
        """The latest time before each event, and that after them: int64 (n + 1,). Moves the stream on."""
        if self.loose:
            before = self.highs.get(feed, int(times.min()))
            self.coming[feed] = max(before, int(times.max()), self.coming.get(feed, before))
            return np.full(len(times) + 1, before)
        high = np.maximum.accumulate(np.concatenate([[self.highs.get(feed, times[0])], times]))
        self.highs[feed] = int(high[-1])
        return high

    def begin_batch(self, now: int) -> None:
        """A batch begins, at `now` (ns) by the clock."""
        self.now = max(self.now, now)
        for feed in range(self.feeds):
            self.seen.setdefault(feed, self.now)

    def end_batch(self) -> None:
        """All events of a batch were taken."""
        self.highs |= self.coming
        self.coming = {}

    def _note_late(
        self, feed: int, times: np.ndarray, high: np.ndarray, late: np.ndarray, lines: np.ndarray, file: str
    ) -> None:
        if self.options.late != "drop":
            if not len(lines):
                return  # the bucket that knows the lines says so
            row = int(np.argmax(late))
            allowed = f", more than the lateness of {self.options.lateness / 1e9:g} s" if self.options.lateness else ""
            raise EventError(
                f"a stream goes back in time{allowed}: {format_time(int(times[row]))} comes after "
                f"{format_time(int(high[row]))}",
                source=file,
                record=int(lines[row]),
                hint="lateness=DURATION puts in order what comes late by no more than that; "
                "late=drop leaves out what comes later and counts it",
            )
        self.late += int(late.sum())

    def _note_missed(self, times: np.ndarray, lines: np.ndarray, file: str, late: np.ndarray) -> None:
        """Marks as late, in `late`, what comes of a stream that was idle when its instant was completed."""
        missed = (times < self.released) & ~late
        if missed.any() and self.options.late != "drop" and len(lines):
            row = int(np.argmax(missed))
            raise EventError(
                f"a stream was silent for more than {self.idle / 1e9:g} s, and what it brings now is too late: "
                f"{format_time(int(times[row]))} comes after {format_time(int(self.released or 0))}",
                source=file,
                record=int(lines[row]),
                hint="a longer idle waits for it; late=drop leaves it out and counts it",
            )
        late |= missed

    def close(self, feed: int) -> None:
        """Nothing more comes of a stream."""
        self.closed.add(feed)

    @property
    def over(self) -> bool:
        """Whether all streams are closed."""
        return len(self.closed) == self.feeds

    @property
    def watermark(self) -> int | None:
        """No event before this time (ns) will come any more; None: nothing is known yet."""
        if self.over:
            return int(_END)
        awaited = [feed for feed in range(self.feeds) if feed not in self.closed and not self._is_idle(feed)]
        if not awaited or not all(feed in self.highs for feed in awaited):
            return self.released
        mark = min(self.highs[feed] for feed in awaited) - self.options.lateness
        return mark if self.released is None else max(mark, self.released)

    def _is_idle(self, feed: int) -> bool:
        return self.idle > 0 and self.now - self.seen.get(feed, self.now) > self.idle

    def complete(self) -> dict[Place | int, int]:
        """The instants that are complete now, each with its position: by its time, or by its event's place if `apart`.

        They are not given again.
        """
        mark = self.released = self.watermark
        if mark is None or not len(self.waiting):
            return {}
        done = self.waiting[:, 0] < mark
        ready, self.waiting = self.waiting[done], self.waiting[~done]
        keys: list[Place | int]
        if self.apart:
            order = np.lexsort((ready[:, 2], ready[:, 1], ready[:, 0]))
            keys = [(t, f, n) for t, f, n in ready[order].tolist()]
        else:
            keys = list(np.unique(ready[:, 0]).tolist())
        first = self.position
        self.position += len(keys)
        return {key: first + i for i, key in enumerate(keys)}
