"""How far the streams of a streamset have come: lateness, watermark, and the numbers of instants.

`spaseq.core.events.reorder` says what is late, event by event, so it does not matter how a stream falls into batches.
An instant is complete when every stream is past it: the watermark is the least of the streams' latest times less the
lateness, and nothing is complete before every stream has said something.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from spaseq.core.events.growing import LATE_BY_CLOCK, check_running, clock_length
from spaseq.core.events.options import Duration, length_of
from spaseq.core.events.reorder import NEVER, Arrivals
from spaseq.core.snapshot import array, expect
from spaseq.rdf import ARRIVAL, StreamOptions

Place = tuple[int, int, int]
"""Time (ns), feed, and the number of an event in it: the order of the streamset."""
Words = tuple[int, Literal["error", "drop"], int, int | None]
"""Lateness, what to do with late events, and the fields of `Silence`."""

_END: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Silence:
    """The ends of the silence of a stream, in ns.

    * `idle`: a stream without an event for so long holds the others up no longer; 0: it always does.
    * `behind`: in a batch that brings nothing, time goes on to that of the batch, so much earlier. None: it does not.
    """

    idle: int = 0
    behind: int | None = None

    @staticmethod
    def of(idle: Duration, clock: Duration | None) -> Silence:
        """The value that users' words say. `OptionError` for what is no duration, and for a `clock` that is less than
        events take to come."""
        return Silence(length_of("idle", idle), None if clock is None else clock_length(clock))

    @property
    def identity(self) -> dict[str, Any]:
        """The part of a checkpoint's note that must stay the same: Spark's state has timers, or none."""
        return {} if self.behind is None else {"clock": "batches that bring nothing let time go on"}


AWAKE: Final = Silence()
"""Nothing ends a silence: streams without events hold the others up."""


@dataclass(slots=True)
class Clock:
    """The clock of `feeds` streams. `options` must be settled.

    `loose`: the streams have no order of their own inside a batch (a DataFrame), so an event is late only behind what
    came in batches before. `silence`: a stream that is idle by the times of the batches (`begin_batch`) holds the
    others up no longer; what it brings later is late if its instant was complete. So is what comes from before the
    time that a batch without events let time go on to (`pass_silence`).
    """

    feeds: int
    options: StreamOptions
    loose: bool = False
    silence: Silence = AWAKE
    closed: set[int] = field(default_factory=set)
    position: int = 0
    now: int = 0
    seen: dict[int, int] = field(default_factory=dict)
    released: int | None = None
    waiting: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    streams: list[Arrivals] = field(init=False)

    def __post_init__(self) -> None:
        self.streams = [Arrivals(self.options, "a stream", loose=self.loose) for _ in range(self.feeds)]

    @property
    def events(self) -> int:
        """Events of all streams so far."""
        return sum(stream.seen for stream in self.streams)

    @property
    def late(self) -> int:
        """Those of them that were dropped because they came too late."""
        return sum(stream.dropped for stream in self.streams)

    def identity(self) -> str:
        """What must be the same where a snapshot is gone on from: lateness and `idle` may change."""
        options = self.options
        times = f"times from arrival, {options.step} ns apart" if options.time == ARRIVAL else "times of their own"
        instants = "each event an instant" if options.apart else "events of one time an instant"
        return f"{self.feeds} streams with {times}, {instants}"

    def words(self) -> Words:
        """The options that decide what is late and what is complete: lateness, what to do with late events, then those
        of `silence`."""
        return self.options.lateness, self.options.late, self.silence.idle, self.silence.behind

    def use(self, words: Words) -> None:
        """From now on these `words` count. Those of an older log lack the last one."""
        lateness, late, idle, *behind = words
        self.silence = Silence(idle, *behind)
        self.options = replace(self.options, lateness=lateness, late=late)
        states = [stream.snapshot() for stream in self.streams]
        self.__post_init__()
        for stream, state in zip(self.streams, states, strict=True):
            stream.restore(state)

    def snapshot(self) -> tuple[Any, ...]:
        """How far the streams have come, as plain values."""
        streams = [stream.snapshot() for stream in self.streams]
        return streams, self.closed, self.position, self.now, self.seen, self.released, self.waiting

    def restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `snapshot`."""
        streams, self.closed, self.position, self.now, self.seen, self.released, waiting = state
        self.waiting = array(waiting, "places", columns=3)
        expect(len(streams) == self.feeds and self.closed | self.seen.keys() <= set(range(self.feeds)), "the streams")
        for stream, known in zip(self.streams, streams, strict=True):
            stream.restore(known)
        expect(type(self.position) is int is type(self.now), "counts")

    def take(self, feed: int, times: np.ndarray, lines: np.ndarray, file: str) -> tuple[np.ndarray, np.ndarray]:
        """The next events of a stream: their places, int64 (n, 3), and their lateness, as of `judge`.

        Raises EventError for a late one, unless they are to be dropped or `lines` is empty: of all buckets with the
        same events one has their lines, and it is enough that one raises.
        """
        seen = self.streams[feed].seen
        numbers = np.arange(seen, seen + len(times), dtype=np.int64)
        if self.options.time == ARRIVAL:
            times = numbers * self.options.step
        late_by = self.judge(feed, times, lines, file)
        places = np.stack([times, np.full(len(times), feed), numbers], axis=1)
        self.waiting = np.concatenate([self.waiting, places[late_by == 0]])
        return places, late_by

    def judge(self, feed: int, times: np.ndarray, lines: np.ndarray, file: str) -> np.ndarray:
        """The lateness of the next events of a stream, int64 (n,): 0 if they are not late, else the ns to the time that
        the stream had come to. Errors as of `take`."""
        stream = self.streams[feed]
        if len(times):
            self.seen[feed] = self.now
            if self.silence.idle and self.released is not None:
                silent = f"was silent for more than {self.silence.idle / 1e9:g} s, and what it brings now is too late"
                stream.advance(self.released, silent, "a longer idle waits for it")
        highs = stream.highs(times)
        found, error = stream.judge(times, (lambda row: (file, int(lines[row]))) if len(lines) else None)
        if error is not None:
            raise error
        if found is None:
            return np.zeros(len(times), np.int64)
        behind = np.minimum(highs.view(np.uint64) - times.view(np.uint64), _END).astype(np.int64)
        return np.where(found, behind, 0)

    def hear(self, feed: int, latest: int) -> None:
        """Others are given events of a stream in this batch; the last of them is at `latest`."""
        self.seen[feed] = self.now
        self.streams[feed].hear(latest)

    def begin_batch(self, now: int) -> None:
        """A batch begins, at `now` (ns) by the clock."""
        self.now = max(self.now, now)
        for feed in range(self.feeds):
            self.seen.setdefault(feed, self.now)

    def end_batch(self) -> None:
        """All events of a batch were taken."""
        for stream in self.streams:
            stream.settle()

    def pass_silence(self, column: str | None) -> None:
        """Nothing came in this batch: time goes on to that of the batch, `Silence.behind` earlier. `column`: that of
        the events' times. Raises `OptionError` if these are not times of a clock."""
        latest, behind = self.latest, self.silence.behind
        if behind is None or latest is None:
            return
        check_running(latest, column)
        reached = self.now - behind
        for stream in self.streams:
            stream.advance(reached, *LATE_BY_CLOCK)
        self.released = reached if self.released is None else max(self.released, reached)

    def awaits(self, reach: int | None) -> bool:
        """True if something may become complete by time alone: an event is held back, or a match waits, up to `reach`
        (ns, None: not at all) behind the last event. All buckets know it alike."""
        latest, mark = self.latest, self.watermark
        return latest is not None and not self.over and (mark is None or mark <= latest + (reach or 0))

    @property
    def latest(self) -> int | None:
        """The greatest time of an event of any stream (ns); None before the first one."""
        high = max((stream.high for stream in self.streams), default=NEVER)
        return None if high == NEVER else high

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
        least = min((self.streams[feed].high for feed in awaited), default=NEVER)
        if least == NEVER:
            return self.released
        mark = least - self.options.lateness
        return mark if self.released is None else max(mark, self.released)

    def _is_idle(self, feed: int) -> bool:
        return 0 < self.silence.idle < self.now - self.seen.get(feed, self.now)

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
        if self.options.apart:
            order = np.lexsort((ready[:, 2], ready[:, 1], ready[:, 0]))
            keys = [(t, f, n) for t, f, n in ready[order].tolist()]
        else:
            keys = list(np.unique(ready[:, 0]).tolist())
        first = self.position
        self.position += len(keys)
        return {key: first + i for i, key in enumerate(keys)}
