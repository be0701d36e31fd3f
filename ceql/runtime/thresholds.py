"""Thresholds of alerts: reported are those of a key that has enough in a time, and had none reported just before.

The names are those of ElastAlert's frequency rules: `timeframe` and `realert`. `at_least` stands for its `num_events`,
since it counts the events at which matches end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spaseq.core.engine import Settings
from spaseq.core.errors import BudgetExceeded, OptionError
from spaseq.core.events.options import length_of
from spaseq.core.snapshot import expect

Key = tuple[Any, ...]
"""The values of PARTITION BY, in its order; () without it."""
_TIMES: Final = 50
"""So many times that are kept count as a key, of the budget `partitions`: some 2,000 bytes."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """An alert is reported if its key has had `at_least` alerts in the `timeframe` up to it, itself included, and none
    was reported less than `realert` before it. Both are durations, in ns.

    `attributes`: the brackets of PARTITION BY, each the attributes of which the first not NULL counts.
    """

    at_least: int
    timeframe: int
    realert: int
    attributes: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(at_least: Any, timeframe: Any, realert: Any, attributes: tuple[tuple[str, ...], ...]) -> Threshold | None:
        """The threshold that the arguments of `Query.alerts` ask for; None if they are None. `OptionError` for what is
        no number or duration, and for `at_least` or `timeframe` alone."""
        if at_least is None and timeframe is None and realert is None:
            return None
        if at_least is not None and (type(at_least) is not int or at_least < 1):
            raise OptionError(f"--at-least {at_least}: this is no number of alerts", "1 or more")
        if (at_least is None) is not (timeframe is None):
            missing = "--at-least" if at_least is None else "--timeframe"
            raise OptionError(f"{missing} is missing", "--at-least counts the alerts of a --timeframe")
        frame = 0 if timeframe is None else _span("--timeframe", timeframe)
        return Threshold(at_least or 1, frame, frame if realert is None else _span("--realert", realert), attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each value of a key: the first attribute of its bracket."""
        return tuple(bracket[0] for bracket in self.attributes)

    def key(self, event: Mapping[str, Any]) -> Key:
        """The key of an event, by its attributes."""
        return tuple(
            next((event[name] for name in bracket if event.get(name) is not None), None) for bracket in self.attributes
        )

    def keys(self, table: pa.Table, rows: np.ndarray) -> list[Key]:
        """The keys of some rows of a table of events."""
        names = dict.fromkeys(name for bracket in self.attributes for name in bracket if name in table.column_names)
        if not names:
            return [(None,) * len(self.attributes)] * len(rows)
        return [self.key(event) for event in table.select([*names]).take(pa.array(rows)).to_pylist()]


def _span(option: str, given: Any) -> int:
    """A duration in ns."""
    span = length_of(option, given)
    if span < 0:
        raise OptionError(f"{option} {given}: less than nothing", "a duration: 10m, 1 hour")
    return span


@dataclass(slots=True)
class _Kept:
    """The alerts of a key: their `times` in the timeframe, at most as many as are needed; when one was `reported`."""

    times: deque[int] = field(default_factory=deque)
    reported: int | None = None


class Reports:
    """Decides alert by alert, in order of time, which are reported. O(1) for each alert, amortised.

    It keeps the keys that had alerts within the longer of `timeframe` and `realert`, and for each at most `at_least`
    times.

    Raises `BudgetExceeded` of `partitions` if it keeps more keys, or as many bytes in times.
    """

    @staticmethod
    def of(threshold: Threshold | None, settings: Settings) -> Reports | None:
        """One for the alerts of a use; None if all are reported."""
        return None if threshold is None else Reports(threshold, settings)

    def __init__(self, threshold: Threshold, settings: Settings) -> None:
        self.threshold: Threshold = threshold
        self.left: int = 0
        """The number of alerts that were not reported."""
        self._most = settings.partitions
        self._kept: dict[Any, _Kept] = {}  # the key that waits longest for an alert is first
        self._times = 0

    def is_reported(self, key: Key, time: int) -> bool:
        """True if the alert of a key at a time (ns) is reported."""
        self._forget(time)
        wanted, own = self.threshold, tuple(map(_hashable, key))
        kept = self._kept.pop(own, None) or _Kept()
        self._kept[own] = kept
        times = kept.times
        times.append(time)
        self._times += 1
        while times[0] < time - wanted.timeframe or len(times) > wanted.at_least:
            times.popleft()
            self._times -= 1
        used = len(self._kept) + self._times // _TIMES
        if used > self._most:
            raise BudgetExceeded("partitions", self._most, used, "keys", "raise it, or narrow timeframe and realert")
        hushed = kept.reported is not None and time - kept.reported < wanted.realert
        if hushed or len(times) < wanted.at_least:
            self.left += 1
            return False
        kept.reported = time
        return True

    def _forget(self, now: int) -> None:
        """Forgets the keys that nothing depends on any more."""
        reach = max(self.threshold.timeframe, self.threshold.realert)
        while self._kept:
            key, kept = next(iter(self._kept.items()))
            if kept.times[-1] >= now - reach:
                return
            self._times -= len(kept.times)
            del self._kept[key]

    def snapshot(self) -> tuple[Any, ...]:
        """The keys that it keeps, and the number of alerts that were not reported, as plain values."""
        kept = self._kept.values()
        return self.left, list(self._kept), [list(one.times) for one in kept], [one.reported for one in kept]

    def restore(self, state: tuple[Any, ...]) -> None:
        """The opposite of `snapshot`, of the same threshold."""
        self.left, keys, times, reported = state
        expect(type(self.left) is int and self.left >= 0, "a number of alerts")
        for key, stamps, last in zip(keys, times, reported, strict=True):
            expect(type(key) is tuple and len(stamps) > 0 and {int} >= set(map(type, stamps)), "times of each key")
            expect(stamps == sorted(stamps) and (last is None or type(last) is int), "times in their order")
            self._kept[key] = _Kept(deque(stamps), last)
        expect(len(self._kept) == len(keys), "each key once")
        self._times = sum(map(len, times))

    def notes(self) -> list[str]:
        """A line about the alerts that were not reported, if there are some."""
        if not self.left:
            return []
        more = "s" * (self.left != 1)
        return [f"{self.left:,} alert{more} not reported: too few within the timeframe, or too soon after one that was"]


def _hashable(value: Any) -> Any:
    """A value of a key, apart from equal ones of other kinds: TRUE is not 1."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return ("truth", value) if isinstance(value, bool) else value
