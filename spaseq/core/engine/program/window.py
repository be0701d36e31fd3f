"""The arithmetic of windows, in one place and exact over the whole range of int64 and float64; windows as positions.

A *place* is the number of an event that a window measures: its position, its time (ns), or the number of an attribute.
No difference of places is ever formed that could overflow: bounds stop at the ends of int64. They are exact there, as
no place lies beyond them.

Decimals count as they are written: a float64 stands for its shortest decimal notation, so 0.4 is within 0.1 of 0.3. The
exact comparison is made only for places so near to a bound that rounding could decide (`doubt`).

Every kind of window becomes one number per row, the first start that is still alive there (`Lows`), so the kernels
compare positions and know no clocks.
"""

from __future__ import annotations

import math
import sys
from array import array as array_of
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from spaseq.core.engine.program.recent import RecentOfKeys
from spaseq.core.errors import OptionError
from spaseq.core.jit import attempt_rows
from spaseq.core.snapshot import array, expect

if TYPE_CHECKING:
    from spaseq.core.pattern import Batch

Kind = Literal["none", "events", "span", "tumbling"]

_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1
_EXACT: Final = Context(prec=1500, Emax=10_000, Emin=-10_000)
"""Sums of float64 in decimal notation have fewer digits than that."""
_FLOAT_MAX: Final = sys.float_info.max
_SURE: Final = 2.0**-48
"""Relative: a subtraction in float64 of two numbers is nearer than that to the one of their decimal notations."""
_LEAST: Final = 2.0**-1070
_LISTED: Final = 8
"""So many events of a partition are in a list, more in a deque."""
_GRID: Final = 2.0**52
"""Numbers of steps of 10^-d below this limit have different nearest float64s, and the float64 is their decimal
notation."""


@dataclass(frozen=True, slots=True)
class Window:
    """The starts that are still alive at an end.

    * `none`: all of them;
    * `events`: position(end) - position(start) <= size, counted in rows of the partition;
    * `span`: time(end) - time(start) <= size, in the unit of `Batch.times` (closed, [CORE] §2.2). If times are whole
      numbers, a size that is not counts as the whole number below it;
    * `tumbling`: both in one [origin + k size, origin + (k+1) size) (half-open, [SPAseq] Definition 16).

    Raises `OptionError` for a value that is not a size.
    """

    kind: Kind
    size: int | float = 0
    origin: int = 0

    def __post_init__(self) -> None:
        whole = isinstance(self.size, int) and self.size <= _MAX
        right = {"none": True, "events": whole, "span": self.size <= _FLOAT_MAX, "tumbling": whole and self.size > 0}
        if self.kind not in right:
            raise OptionError(f"there is no window of kind {self.kind!r}", f"one of {', '.join(right)}")
        if not (right[self.kind] and self.size >= 0):
            raise OptionError(
                f"a window of kind {self.kind} cannot have the size {self.size}",
                "sizes are not negative; of events and tumbling windows whole numbers up to 2^63 - 1",
            )

    @property
    def is_bounded(self) -> bool:
        """True if a start ever leaves it."""
        return self.kind != "none"

    @property
    def by_position(self) -> bool:
        """True if it is measured in positions, not in times."""
        return self.kind == "events"

    @property
    def per_partition(self) -> bool:
        """True if each partition has windows of its own, in which the events of other partitions do not count."""
        return self.kind == "events"

    @property
    def slides(self) -> bool:
        """True if each end has a window of its own."""
        return self.kind in ("events", "span")

    @property
    def tumbles(self) -> bool:
        """True if the line of times is divided into windows."""
        return self.kind == "tumbling"

    def places(self, batch: Batch) -> np.ndarray:
        """The places of a batch's events: int64 or float64 (n,), ascending."""
        return np.asarray(batch.positions if self.by_position else batch.times)

    def growth(self, keys: Sequence[str], values: Sequence[str], forgets: bool = False) -> tuple[str, ...]:
        """The reasons why the memory of an evaluation grows for ever, in words; empty if this window ends all runs.

        `keys`: the keys of its partitions; `values`: the values that conditions over several events keep of each;
        `forgets`: True if keys are forgotten after a pause (`Settings.forget_keys_after`).
        """
        if forgets:
            held = "the events of each key that is never silent for as long as forget_keys_after"
            return () if self.is_bounded else (f"without WITHIN runs end with their keys: memory grows with {held}",)
        ends = "; forget_keys_after (--forget-keys-after 1h) ends the runs of keys that no event had for so long"
        if self.is_bounded:
            if not (keys and self.per_partition):
                return ()
            counted = "WITHIN … EVENTS is counted in each partition: memory grows with the number of distinct"
            return (f"{counted} {_and(keys)}{ends}",)
        grows = [f"the number of distinct {_and(names)}" for names in (keys, values) if names]
        grows.append("the events that some run has taken")
        if keys:
            grows[0] += ends
        return tuple(f"without WITHIN no run ever ends: memory grows with {what}" for what in grows)

    def lows(self, partitioned: bool) -> Lows:
        """The window over a stream from its first row on: the first live start of each row, batch by batch."""
        return Lows(self, partitioned)

    # Bounds

    @overload
    def open_from(self, place: int) -> int: ...
    @overload
    def open_from(self, place: float) -> float: ...
    def open_from(self, place: float) -> float:
        """The least place whose start is alive at an end at `place`; the least number there is if all are alive."""
        if isinstance(place, float):
            return -math.inf if self.kind == "none" else self._decimal_bound(place)
        if self.kind == "none":
            return _MIN
        return max(_MIN, int(place) - (self._since(int(place)) if self.tumbles else math.floor(self.size)))

    def bounds(self, places: np.ndarray) -> np.ndarray:
        """`open_from` of each: int64 or float64 (n,), as `places` are. O(n)."""
        if places.dtype.kind == "f":
            return self._decimal_bounds(places)
        if self.kind == "none":
            return np.full(len(places), _MIN)
        if self.tumbles:
            since = self._since(places)
            return np.asarray(np.maximum(places, _MIN + since) - since)
        rest = min(math.floor(self.size), 1 << 64)
        while rest:
            step = min(rest, _MAX)
            places, rest = np.maximum(places, _MIN + step) - step, rest - step
        return places

    @overload
    def closes_at(self, start: int) -> int | None: ...
    @overload
    def closes_at(self, start: float) -> float | None: ...
    def closes_at(self, start: float) -> float | None:
        """The greatest place at which a match that starts at `start` may end; None if its window never closes."""
        if self.kind == "none":
            return None
        if isinstance(start, float):
            bound = _EXACT.add(_decimal(start), _decimal(self.size))
            near = float(bound)
            return near if _decimal(near) <= bound else math.nextafter(near, -math.inf)
        if self.tumbles:
            return min(_MAX, int(start) - self._since(int(start)) + int(self.size) - 1)
        return min(_MAX, int(start) + math.floor(self.size))

    def number(self, time: int) -> int:
        """The number of the tumbling window that a time lies in: that of the origin is 0; 0 if there is only one."""
        return (int(time) - self.origin) // int(self.size) if self.tumbles else 0

    def closes(self, time: int) -> int:
        """The first time behind the tumbling window that a time lies in."""
        return min(_MAX, self.origin + (self.number(time) + 1) * int(self.size))

    @overload
    def _since(self, places: int) -> int: ...
    @overload
    def _since(self, places: np.ndarray) -> np.ndarray: ...
    def _since(self, places: int | np.ndarray) -> int | np.ndarray:
        """The distance of places from the beginning of their tumbling windows; of an array without overflow."""
        size = int(self.size)
        return (places % size - self.origin % size) % size

    # Decimals

    def doubt(self, place: float) -> tuple[float, float]:
        """Around the bound of a place: a start before the first of the two is out, one from the second on is alive."""
        bound = max(place - self.size, -_FLOAT_MAX)
        margin = _SURE * (abs(place) * 0.5 + self.size * 0.5) + _LEAST
        return bound - margin, min(bound + margin, place)

    def doubts(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`doubt` of each, with one margin for all: float64 (n,), ascending as `places` are."""
        margin = _SURE * (max(abs(places[0].item()), abs(places[-1].item())) * 0.5 + self.size * 0.5) + _LEAST
        with np.errstate(over="ignore"):
            bounds = np.maximum(places - self.size, -_FLOAT_MAX)
            return bounds - margin, np.minimum(bounds + margin, places)

    def _decimal_bound(self, place: float) -> float:
        bound = _EXACT.subtract(_decimal(place), _decimal(self.size))
        near = float(bound)
        return near if _decimal(near) >= bound else math.nextafter(near, math.inf)

    def _decimal_bounds(self, places: np.ndarray) -> np.ndarray:
        if self.kind == "none":
            return np.full(len(places), -np.inf)
        for digits in range(10):
            scale = 10.0**digits
            with np.errstate(over="ignore"):
                size, steps = np.rint(self.size * scale), np.rint(places * scale)
            if not (np.abs(steps) + size < _GRID).all():
                break
            if size / scale == self.size and (steps / scale == places).all():
                return np.asarray((steps - size) / scale)
        return np.array([self._decimal_bound(place) for place in places.tolist()])


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _decimal(number: float) -> Decimal:
    """The value of the shortest notation of a float64."""
    return Decimal(repr(float(number)))


class Lows:
    """Computes the first live start of each row, and the position before which nothing will be read again.

    Times never run backwards, hence the first live start never does within a substream. What a window to come may
    reach is kept: `times` and `positions`, or the `recent` positions of each partition.
    """

    def __init__(self, window: Window, partitioned: bool) -> None:
        self.window = window
        self.partitioned = partitioned
        self.times: np.ndarray | None = None
        self._positions: np.ndarray | range = range(0)
        self.recent: RecentOfKeys | None = (
            RecentOfKeys(int(window.size)) if partitioned and window.per_partition else None
        )

    @property
    def positions(self) -> np.ndarray:
        """The positions that are kept, ascending: int64 (n,). In memory they are two numbers, if none is missing."""
        return _as_array(self._positions)

    @positions.setter
    def positions(self, positions: np.ndarray) -> None:
        self._positions = _join(range(0), positions)

    def of(
        self, positions: np.ndarray, places: np.ndarray, keys: np.ndarray | None, rows: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(first live start, first position to keep) of each of `rows` (ascending; all by default): int64 each.

        `places`: what the window is measured in (`Window.places`). All rows are taken in, those that nobody asks for
        too. O(n).
        """
        if rows is None:
            rows = np.arange(len(positions))
        if not self.window.is_bounded:
            zeros = np.zeros(len(rows), np.int64)
            return zeros, zeros
        if self.recent is not None and keys is not None:
            return self.recent.first(positions, keys)[rows], np.zeros(len(rows), np.int64)
        lows = self._in_all(positions, places, rows)
        return lows, lows

    def at(self, place: int) -> int:
        """The first live start of an end at `place` that is behind all rows so far: past all of them if none is alive.
        Not for windows over positions."""
        if self.times is None:
            return 0
        first = int(np.searchsorted(self.times, self.window.open_from(place)))
        return int(self._positions[first]) if first < len(self._positions) else np.iinfo(np.int64).max

    def _in_all(self, positions: np.ndarray, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        ends, lows = places[rows], np.empty(len(rows), np.int64)
        held = _join(self._positions, positions)
        if self.times is not None:
            places = np.concatenate([self.times, places])
        if not len(places):
            return lows
        from spaseq.core.engine.kernels import windows as kernels

        first = attempt_rows(kernels.first_from, len(lows), places, _as_array(held), self._bounds(places, ends), lows)
        first += int(np.searchsorted(places[first:], self.window.open_from(places[-1].item())))
        # Of a window that tumbles only the first event is ever asked for.
        kept = slice(first, first + 1 if self.window.tumbles else None)
        self.times, self._positions = places[kept].copy(), held[kept] if isinstance(held, range) else held[kept].copy()
        return lows

    def _bounds(self, places: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Numbers that divide `places` as the bounds of `ends` do, which ascend too, one after another.

        PERF: of decimals only the bounds that some place is close to are worked out exactly.
        """
        if places.dtype.kind != "f" or not len(ends):
            return self.window.bounds(ends)
        from spaseq.core.engine.kernels import windows as kernels

        ends = ends.astype(np.float64, copy=False)
        bounds, sure = self.window.doubts(ends)
        asked = np.empty(len(ends), np.bool_)
        attempt_rows(kernels.near, len(asked), places, bounds, sure, asked)
        bounds[asked] = self.window.bounds(ends[asked])
        return bounds

    def forget(self, keys: np.ndarray) -> None:
        """No row of these partitions comes any more; their numbers are those of others then."""
        if self.recent is not None:
            self.recent.forget(keys)

    def keep(self, starts: np.ndarray) -> None:
        """Forgets the events that are none of `starts`, as first live starts are only compared with those of runs. Of a
        window that tumbles the first event stays, which begins it."""
        if self.times is not None and not self.window.tumbles:
            kept = np.isin(self.positions, starts)
            self.times, self.positions = self.times[kept], self.positions[kept]

    def snapshot(self) -> dict[str, Any]:
        """The events that windows to come may still hold, as plain values."""
        recent = {} if self.recent is None else self.recent.snapshot()
        return {"times": self.times, "positions": self.positions, "recent": recent}

    def restore(self, state: dict[str, Any], most: int = 0) -> None:
        """The opposite of `snapshot`; `most`: the budget for partitions, if there are any."""
        times = state["times"]
        self.positions = array(state["positions"], "positions", low=0, high=_MAX - 1)
        self.times = None if times is None else np.array(times, times.dtype)
        if times is not None:
            expect(times.dtype in (np.int64, np.float64) and times.shape == self.positions.shape, "a time for each")
            expect((times[1:] >= times[:-1]).all() and (np.diff(self.positions) >= 0).all(), "events in order")
            expect(np.isfinite(times).all(), "times that are numbers")
        expect(self.recent is not None or not state["recent"], "windows of partitions, if there are partitions")
        if self.recent is not None:
            self.recent.restore(state["recent"], most)


def _join(before: np.ndarray | range, more: np.ndarray) -> np.ndarray | range:
    """Positions, and more behind them: a range if they follow one another, else int64 (n,). O(n) for the new ones."""
    if not len(more):
        return before
    first, stop = int(more[0]), int(more[-1]) + 1
    follows = isinstance(before, range) and (not before or before.stop == first)
    if follows and stop - first == len(more) and (more[1:] > more[:-1]).all():
        return range(before.start if before else first, stop)  # type: ignore[union-attr]
    return np.concatenate([_as_array(before), more])


def _as_array(positions: np.ndarray | range) -> np.ndarray:
    return np.arange(positions.start, positions.stop) if isinstance(positions, range) else positions


class LowsOfOne:
    """`Lows.of` for one row at a time, without arrays: goes on from `lows`, until `close` hands back to it.

    `of(position, place, key)` gives the first live start of a row, `key` its partition or 0. A first live start is only
    compared with starts, and a run starts only at a row that moves something. So `of` need not be called for rows at
    which no run moves. The exception is a window that counts the rows of each partition (`by_key`). `decimal`: True if
    places are float64.
    """

    def __init__(self, lows: Lows, decimal: bool) -> None:
        window = self._window = lows.window
        self.by_key: bool = lows.partitioned and window.per_partition
        self.of: Callable[[int, Any, int], int]
        self._lows = lows
        self._whole = math.floor(window.size)
        self._most: int = min(self._whole + 1, _LISTED)
        self._places: array_of[Any] = array_of("d" if decimal else "q")
        self._positions = array_of("q")
        self._first = 0  # of both, that a window to come may hold
        self._by_key: list[list[int] | deque[int] | None] = []  # at the number of each partition and 1
        if lows.times is not None and not self.by_key:
            self._places.extend(lows.times.tolist())
            self._positions.extend(lows.positions.tolist())
        if not window.is_bounded:
            self.of = lambda position, place, key: 0
        elif self.by_key:
            self.of = self._in_partition
        elif window.by_position:
            self.of = lambda position, place, key: self._sliding(position, position, key)
        elif window.tumbles:
            self.of = self._tumbling
        else:
            self.of = self._decimal if decimal else self._sliding

    def forget(self, keys: np.ndarray) -> None:
        """As `Lows.forget`."""
        self._lows.forget(keys)
        for key in keys[keys + 1 < len(self._by_key)].tolist():
            self._by_key[key + 1] = None

    def close(self) -> None:
        """Hand over to `lows`."""
        lows = self._lows
        if lows.recent is not None:
            lows.recent.put({key: np.array(own, np.int64) for key, own in enumerate(self._by_key, -1) if own})
        if self._places:
            lows.times, lows.positions = np.array(self._places[self._first :]), np.array(self._positions[self._first :])

    def _sliding(self, position: int, place: Any, key: int) -> int:
        return self._from(place - self._whole, position, place)

    def _decimal(self, position: int, place: float, key: int) -> int:
        bound, sure = self._window.doubt(place)
        low = self._from(bound, position, place)
        if self._places[self._first] < sure:
            low = self._from(self._window.open_from(place))
        return low

    def _from(self, bound: Any, position: int | None = None, place: Any = None) -> int:
        """The first position whose place is `bound` or later, of all and of `position`, which is put behind them.

        PERF: arrays of numbers. Pairs in a deque held 140 bytes an event, as long as the window.
        """
        places = self._places
        if position is not None:
            try:
                places.append(place)
            except TypeError:  # the first decimal
                places = self._places = array_of("d", places)
                places.append(place)
            self._positions.append(position)
        first = self._first
        if places[first] < bound:
            while places[first] < bound:
                first += 1
            if first > _LISTED and 2 * first > len(places):
                del places[:first], self._positions[:first]
                first = 0
            self._first = first
        return self._positions[first]

    def _tumbling(self, position: int, place: int, key: int) -> int:
        """Only the first event of a window is ever asked for."""
        if not self._places or self._places[0] < self._window.open_from(place):
            self._places, self._positions = array_of("q", (place,)), array_of("q", (position,))
        return self._positions[0]

    def _in_partition(self, position: int, place: Any, key: int) -> int:
        """PERF: a deque has 624 bytes at least, and most partitions have few events in a window: a list of these has
        88. 20,000 keys, each pushed once, took 882 bytes of runs each and take 177 (2026-11-28)."""
        by_key = self._by_key
        if key + 1 >= len(by_key):
            by_key += [None] * (key + 2 - len(by_key))
        recent = by_key[key + 1]
        if recent is None:
            recent = by_key[key + 1] = [] if self._lows.recent is None else self._lows.recent.of(key).tolist()
        recent.append(position)
        if len(recent) > self._most and type(recent) is list:
            if self._most > self._whole:
                del recent[0]
            else:
                recent = by_key[key + 1] = deque(recent, maxlen=min(self._whole + 1, sys.maxsize))
        return recent[0]
