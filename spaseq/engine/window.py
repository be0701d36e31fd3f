"""The arithmetic of windows, in one place and exact over the whole range of int64 and float64.

A *place* is where an event is on what a window is measured in: its position, its time (ns), or the number of an
attribute. No difference of places is ever formed that could overflow: bounds stop at the ends of int64, where they are
exact, as no place lies beyond them.

Decimals count as they are written: a float64 stands for its shortest decimal notation, so 0.4 is within 0.1 of 0.3.
That is asked exactly only of places so near to a bound that rounding could decide (`doubt`).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Final, Literal, overload

import numpy as np

from spaseq.errors import OptionError

if TYPE_CHECKING:
    from spaseq.engine.settings import Batch
    from spaseq.engine.windows import Lows

__all__ = ["Kind", "Window"]

Kind = Literal["none", "events", "span", "tumbling"]

_MIN: Final = -(1 << 63)
_MAX: Final = (1 << 63) - 1
_EXACT: Final = Context(prec=1500, Emax=10_000, Emin=-10_000)
"""Sums of float64 in decimal notation have fewer digits than that."""
_FLOAT_MAX: Final = sys.float_info.max
_SURE: Final = 2.0**-48
"""Relative: a subtraction in float64 of two numbers is nearer than that to the one of their decimal notations."""
_LEAST: Final = 2.0**-1070
_GRID: Final = 2.0**52
"""Numbers of steps of 10^-d below that are told apart by the nearest float64, and are its decimal notation."""


@dataclass(frozen=True, slots=True)
class Window:
    """Which starts are still alive at an end.

    * `none`: all of them;
    * `events`: position(end) - position(start) <= size, counted in rows of the partition;
    * `span`: time(end) - time(start) <= size, in the unit of `Batch.times` (closed, seed CORE §2.2). A size that is no
      whole number counts as the whole number below it where times are whole numbers;
    * `tumbling`: both in one [origin + k size, origin + (k+1) size) (half-open, seed SPAseq Definition 16).

    Raises `OptionError` for a size that is none.
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
        """Whether any start ever leaves it."""
        return self.kind != "none"

    @property
    def counts_events(self) -> bool:
        """Whether it is measured in positions, not in times; partitions then have windows of their own."""
        return self.kind == "events"

    @property
    def slides(self) -> bool:
        """Whether each end has a window of its own."""
        return self.kind in ("events", "span")

    @property
    def tumbles(self) -> bool:
        """Whether the line of times is divided into windows."""
        return self.kind == "tumbling"

    def places(self, batch: Batch) -> np.ndarray:
        """What it is measured in: int64 or float64 (n,), ascending."""
        return np.asarray(batch.positions if self.counts_events else batch.times)

    def lows(self, partitioned: bool) -> Lows:
        """The window over a stream from its first row on: the first live start of each row, batch by batch."""
        from spaseq.engine.windows import Lows

        return Lows(self, partitioned)

    # Bounds

    @overload
    def open_from(self, place: int) -> int: ...
    @overload
    def open_from(self, place: float) -> float: ...
    def open_from(self, place: float) -> float:
        """The least place whose start is alive at an end at `place`; where all are, the least number there is."""
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
        """The greatest place at which a match that starts at `start` may end; None where it never closes."""
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
        """Which tumbling window a time lies in: that of the origin is 0; 0 where there is only one."""
        return (int(time) - self.origin) // int(self.size) if self.tumbles else 0

    @overload
    def _since(self, places: int) -> int: ...
    @overload
    def _since(self, places: np.ndarray) -> np.ndarray: ...
    def _since(self, places: int | np.ndarray) -> int | np.ndarray:
        """How far behind the beginning of their tumbling windows places lie; of an array without overflow."""
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


def _decimal(number: float) -> Decimal:
    """What the shortest notation of a float64 says."""
    return Decimal(repr(float(number)))
