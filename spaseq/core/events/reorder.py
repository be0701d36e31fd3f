"""Order and lateness: late events, and the order of time of the others.

Both languages hold events back only by this module, for batches and for pushed events, with one error. An event is
*late* if its time is more than the lateness before the greatest time that came before it. It is also late if its time
is before the time that its stream was advanced to. Late events are an `EventError`, or are dropped and counted. The
others are put in order of time; equal times keep the order in which they came.

An event waits until no other can come before it: the greatest time is past its own by the lateness, the stream is
advanced beyond it, or the stream ends. So the memory is that of the events within the lateness.

`Arrivals` finds the late events. `Reorderer` orders rows of arrays that its caller holds; `SingleReorderer` orders
objects that come one by one. (A batch sorts its rows at once; for one object the arrays of those that wait would be
copied.)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.events.options import OnLate, TimeOptions
from spaseq.core.events.time import format_time
from spaseq.core.integers import in_order
from spaseq.core.snapshot import expect

NEVER: Final = -(1 << 63)
"""Before every time."""

Place: TypeAlias = tuple[str, int]
"""The source of an event, and its record there, for messages."""
_ADVANCED: Final = "goes back in time, behind the time that it was advanced to"
_T = TypeVar("_T")


class Arrivals:
    """The progress of a stream, and which of its events are late.

    `high`: the greatest time that came (ns). `floor`: the time that the stream was advanced to. Both are `NEVER` at
    first. An event before `mark` is late; those before `end` wait for no other. `seen`: events that came; `dropped`:
    those of them that were late. `peak`: the place of the event with the greatest time.

    `late_ones`: the late events of the last call that were dropped, rows or objects, each with how far it is `behind`
    (`LateEvent`). It is empty without an `on_late`, which the caller calls.


    `name` is the stream's name in errors, `counted` as of `EventError`. `loose`: events have no order among themselves
    until `settle` is called, so an event is late only if it is behind those that came before the last call.
    """

    __slots__ = (
        "_counted", "_hint", "_reason", "coming", "dropped", "drops", "end", "floor", "high", "late_ones", "lateness",
        "loose", "mark", "name", "on_late", "peak", "seen",
    )  # fmt: skip

    def __init__(
        self, options: TimeOptions, name: str = "the stream", counted: Literal["", "event"] = "", *, loose: bool = False
    ) -> None:
        self.lateness = options.lateness
        self.drops = options.late == "drop"
        self.on_late: OnLate | None = options.on_late
        self.late_ones: list[tuple[Any, int]] = []
        self.name = name
        self.loose = loose
        self.high = self.floor = self.mark = self.end = self.coming = NEVER
        self.seen = self.dropped = 0
        self.peak: Any = None
        self._counted: Literal["", "event"] = counted
        self._reason, self._hint = _ADVANCED, ""

    @property
    def latest(self) -> int | None:
        """The greatest time that came (ns); None before the first event."""
        return None if self.high == NEVER else self.high

    def judge(
        self,
        times: np.ndarray,
        where: Callable[[int], Place] | None,
        named: Callable[[int], str] | None = None,
    ) -> tuple[np.ndarray | None, EventError | None]:
        """The late ones among the next events, bool (n,), None if none is late; and the error of the first, if late
        events are not dropped.

        With an error, the events behind that one are not judged.

        Args: `times` int64 (n,), ns; `where` gives the place of a row. None: the caller raises the error. `named`: the
        name in errors of a row's stream, if not `name`.
        """
        self.late_ones = []
        if not len(times):
            return None, None
        self.seen += len(times)
        if times[0] >= max(self.high, self.floor) and bool((times[1:] >= times[:-1]).all()):
            self._reach(times, where)
            return None, None
        if self.loose:
            late = times < self.mark
        else:
            highs = self.highs(times)
            # the difference of two times is not always an int64
            late = (highs.view(np.uint64) - times.view(np.uint64) > self.lateness) | (times < self.floor)
        if late.any() and not self.drops and where is not None:
            row = int(np.argmax(late))
            self.seen += row + 1 - len(times)
            self._reach(times[:row], where)
            name = self.name if named is None else named(row)
            return late, self._error(int(times[row]), name, where(row), self.peak)
        self.dropped += int(late.sum()) if self.drops else 0
        if self.on_late is not None and not self.loose:
            rows = np.flatnonzero(late)
            come_to = highs[rows].tolist()
            self.late_ones = [(row, high - int(times[row])) for row, high in zip(rows.tolist(), come_to, strict=True)]
        self._reach(times, where)
        return (late if late.any() else None), None

    def highs(self, times: np.ndarray) -> np.ndarray:
        """The time that the stream has come to at each of the next events, int64 (n,), ns.

        It is the greatest up to the event, or the time that the stream was advanced to. If the stream is `loose`, it is
        that of the last call.
        """
        known = max(self.high, self.floor)
        return np.full(len(times), known) if self.loose else np.maximum(np.maximum.accumulate(times), known)

    def settle(self) -> None:
        """Declare that all events so far are before all that follow (`loose`)."""
        if self.coming > self.high:
            self._rise(self.coming)

    def hear(self, latest: int) -> None:
        """Others are given events that count for the order here; the greatest time among them (`loose`)."""
        self.coming = max(self.coming, latest)

    def advance(self, now: int, reason: str = _ADVANCED, hint: str = "") -> None:
        """No event before `now` (ns) will come any more. One that does is late; its error gives `reason` and `hint`."""
        if now >= self.floor:
            self.floor, self._reason, self._hint = now, reason, hint
            self.mark, self.end = max(self.mark, now), max(self.end, now)

    def pass_by(self, count: int, high: int, peak: Any) -> None:
        """`count` events came that nobody had to order; the last at `high`, which is the greatest time."""
        self.seen += count
        if count and high > self.high:
            self.peak = peak
            self._rise(high)

    def take_late(self) -> list[tuple[Any, int]]:
        """`late_ones`, which begin anew."""
        found, self.late_ones = self.late_ones, []
        return found

    def take_dropped(self) -> int:
        """`dropped`, which begins at 0 again."""
        count, self.dropped = self.dropped, 0
        return count

    def undo(self, state: tuple[Any, ...], peak: Any) -> None:
        """Go back to a `snapshot`, because the events since then are refused."""
        self.restore(state)
        self.peak = peak

    def snapshot(self) -> tuple[Any, ...]:
        """The progress of the stream, as plain values."""
        return self.high, self.floor, self.coming, self.seen, self.dropped

    def restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `snapshot`; the lateness may be another one."""
        expect(len(state) == 5 and all(type(n) is int for n in state), "how far a stream has come")
        self.high, self.floor, self.coming, self.seen, self.dropped = state
        self.mark, self.end = self.floor, self.floor
        self._rise(self.high)

    def _reach(self, times: np.ndarray, where: Callable[[int], Place] | None) -> None:
        """Note the greatest time, and the first place that has it."""
        row = int(np.argmax(times)) if len(times) else -1
        if row < 0 or times[row] <= self.high:
            return
        if self.loose:
            self.coming = max(self.coming, int(times[row]))
            return
        self.peak = None if where is None else where(row)
        self._rise(int(times[row]))

    def _rise(self, high: int) -> None:
        self.high = high
        mark = high - self.lateness
        if mark > self.mark:
            self.mark = mark
        if mark >= self.end:
            self.end = mark + 1

    def _error(self, time: int, name: str, place: Place, peak: Place | None) -> EventError:
        """The error for a late event. `peak`: the place of the event with the greatest time, if known."""
        if time >= self.high - self.lateness:
            problem = f"{name} {self._reason}: {format_time(time)} comes after {format_time(self.floor)}"
            remedy = self._hint
        else:
            allowed = f", more than the lateness of {_seconds(self.lateness)} s" if self.lateness else ""
            separator = ", event " if self._counted else ":"
            known = f" ({peak[0]}{separator}{peak[1]})" if peak is not None else ""
            problem = (
                f"{name} goes back in time by {_seconds(self.high - time)} s{allowed}: {format_time(time)} comes after "
                f"{format_time(self.high)}{known}"
            )
            remedy = "a lateness (--lateness 5s) puts in order what comes late by no more than that"
        hint = f"{remedy}{'; ' if remedy else ''}--late drop leaves out what comes later and counts it"
        return EventError(problem, source=place[0], record=place[1], counted=self._counted, hint=hint)


def _seconds(nanoseconds: int) -> str:
    return format((Decimal(nanoseconds) / 1_000_000_000).normalize(), "f")


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """Rows of the times that `Reorderer.push` was given. `ready`: in order of time. `waiting`: rows that still wait,
    ascending. Both are int64, or slices if all rows came in order. `error` is about the events behind them."""

    ready: np.ndarray | slice
    waiting: np.ndarray | slice
    error: EventError | None


class Reorderer(Arrivals):
    """Puts rows in order of time. The caller keeps the rows that wait, in the order in which they came.

    `held`: the number of rows that wait.
    """

    __slots__ = ("held",)

    def __init__(self, options: TimeOptions, name: str = "the stream", counted: Literal["", "event"] = "") -> None:
        super().__init__(options, name, counted)
        self.held = 0

    def push(self, times: np.ndarray, where: Callable[[int], Place] | None = None, *, last: bool = False) -> Released:
        """The rows that no row on time can precede any more, or with `last` all.

        Args: `times` int64 (n,): of the `held` rows that wait, then of those that come now; `where` the place of one of
        these, counted from 0. O(n), and a sort of the rows that are ready if not all came in order.
        """
        held = self.held
        late, error = self.judge(times[held:], where)
        if late is None and bool((times[1:] >= times[:-1]).all()):
            cut = len(times)
            if cut and not last and self.end <= times[-1]:
                cut = int(np.searchsorted(times, max(self.end, NEVER)))
            self.held = len(times) - cut
            return Released(slice(0, cut), slice(cut, len(times)), None)
        kept = np.arange(len(times))
        if late is not None and error is not None:
            kept = kept[: held + int(np.argmax(late))]
        elif late is not None:
            kept = np.concatenate([kept[:held], kept[held:][~late]])
        due = np.ones(len(kept), bool) if last and error is None else times[kept] < self.end
        ready, waiting = kept[due], kept[~due]
        self.held = len(waiting)
        return Released(ready[in_order(times[ready])], waiting, error)


class SingleReorderer(Arrivals, Generic[_T]):
    """Puts objects that come one by one in order of time. `described` gives the name of an object's stream and its
    place, for the error. O(log k) for an object if k wait."""

    __slots__ = ("_described", "_held")

    def __init__(self, options: TimeOptions, described: Callable[[_T], tuple[str, Place]]) -> None:
        super().__init__(options)
        self._described = described
        self._held: list[tuple[int, int, _T]] = []

    def push(self, time: int, item: _T) -> Sequence[_T]:
        """The objects that are in order now that `item`, of the time `time`, has come. Raises `EventError`."""
        self.seen += 1
        if time < self.mark:
            if not self.drops:
                raise self._late(time, item)
            self.dropped += 1
            if self.on_late is not None:
                self.late_ones.append((item, max(self.high, self.floor) - time))
            return ()
        if time > self.high:
            self.peak = item
            self._rise(time)
        if not self.lateness and not self._held:
            return (item,)
        held, end = self._held, self.end
        heapq.heappush(held, (time, self.seen, item))
        if held[0][0] >= end:
            return ()
        found = [heapq.heappop(held)[2]]
        while held and held[0][0] < end:
            found.append(heapq.heappop(held)[2])
        return found

    def expect_order(self, items: Iterable[tuple[int, _T]]) -> None:
        """Raises the `EventError` that pushing these, with their times, would, before any is taken. O(n)."""
        if self.drops:
            return
        before = self.high, self.mark, self.end, self.peak
        try:
            for time, item in items:
                if time < self.mark:
                    raise self._late(time, item)
                if time > self.high:
                    self.peak = item
                    self._rise(time)
        finally:
            self.high, self.mark, self.end, self.peak = before

    def _late(self, time: int, item: _T) -> EventError:
        peak = None if self.peak is None else self._described(self.peak)[1]
        return self._error(time, *self._described(item), peak)

    def due(self, *, last: bool = False) -> list[_T]:
        """The objects that wait for no other any more, or with `last` all."""
        held, found = self._held, []
        while held and (last or held[0][0] < self.end):
            found.append(heapq.heappop(held)[2])
        return found

    @property
    def waiting(self) -> list[_T]:
        """The objects that wait, in order."""
        return [item for _, _, item in sorted(self._held)]

    def wait_again(self, items: Sequence[tuple[int, _T]]) -> None:
        """Take back items that were `waiting`, with their times."""
        self._held = [(time, number - len(items), item) for number, (time, item) in enumerate(items)]
