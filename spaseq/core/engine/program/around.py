"""The events that must not come around a match, in front of it or behind it.

Of these, silence in front is decided first: `NOT ψ FOR d ; φ` holds for a match of φ if no ψ came within d before its
first event. Whether a match may begin with an event is known when the event comes. So silence is one more predicate,
`Quiet`, of the first events of the automaton, and everything behind it stays as it is: selection, consumption,
registers. If alternatives differ in their silence, each has the predicates of its own border (`Silent`). Unlike other
predicates a `Quiet` depends on the events before; `Silence` keeps what it needs, the place of the last ψ of each
partition. The rest is decided when a match ends, or later (`spaseq.core.engine.runs.ending`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from spaseq.core.engine.program.window import Window
from spaseq.core.errors import InternalError
from spaseq.core.integers import in_order
from spaseq.core.pattern import Batch, Border, NoneOf
from spaseq.core.snapshot import array

_NONE: Final = -(1 << 63)
"""The place of no event."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The predicate that holds at an event if none before it, in its partition and `duration`, fails `none`. `duration`
    is a span of time (closed, as windows are), or all that came before."""

    none: NoneOf
    duration: Window

    def __str__(self) -> str:
        if not self.duration.is_bounded:
            return f"{self.none} before it"
        return f"{self.none} in the {self.duration.size / 1e9:,.12g} s before it"

    def evaluate(self, batch: Any) -> np.ndarray:
        raise InternalError("silence is not known from one batch alone: `Silence.of`")


@dataclass(frozen=True, slots=True)
class Silent:
    """The silence in front of the matches with `border` before them; None: of all matches."""

    quiet: Quiet
    border: Border | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """The border of the matches of some alternatives: `none` holds of the events that may come there. It is `behind`
    them, or before them, and `mark` takes their last event, or first. An empty mark: all matches.

    Without `duration` it is about the window of the match. Else it is behind, for that time, which begins with the end
    of the match. If `since` is not empty, the time begins with the last event that this variable takes.
    """

    none: NoneOf
    behind: bool
    border: Border = frozenset()
    mark: str = ""
    duration: Window | None = None
    since: str = ""


@dataclass(frozen=True, slots=True)
class Repeated:
    """The silence behind a match that is reported again and again: after each `every`, until an event comes that fails
    `none`, or the window of the match is over (`spaseq.core.engine.repeating`). `most`: at most so many times."""

    none: NoneOf
    every: Window
    most: int = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Around:
    """The events that must not come around a match.

    * `absent` holds of the events that may come behind a match before it is reported; None if it need not wait.
    * `patience`: how long behind its end a match waits; None for its own window.
    * `before` holds of the events that may lie in front of a match and inside its window.
    * `silences` hold of the events that matches may begin with; they are predicates of the automaton.
    * `marked`: what some matches must not have around them, or besides `absent`, which has a time of its own.
    * `repeated`: the silence for which a match is reported several times, in place of `absent`.
    """

    absent: NoneOf | None = None
    patience: Window | None = None
    before: NoneOf | None = None
    silences: tuple[Silent, ...] = ()
    marked: tuple[Marked, ...] = ()
    repeated: Repeated | None = None

    @property
    def quiets(self) -> tuple[Quiet, ...]:
        """The predicates of `silences`, each once."""
        return tuple(dict.fromkeys(silent.quiet for silent in self.silences))

    @property
    def patiences(self) -> tuple[Window, ...]:
        """The times for which matches wait, each once."""
        found = (self.patience, *(one.duration for one in self.marked))
        return tuple(dict.fromkeys(window for window in found if window is not None))

    @property
    def time_variables(self) -> tuple[str, ...]:
        """The variables that take the events with which times begin, each once."""
        return tuple(dict.fromkeys(one.since for one in self.marked if one.since))

    @property
    def is_empty(self) -> bool:
        """True if every event may come around a match."""
        return not self.decides and not self.silences and self.repeated is None

    @property
    def waits(self) -> bool:
        """True if events behind a match decide about it."""
        return self.absent is not None or self.repeated is not None or any(one.behind for one in self.marked)

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks of `marked`, each once."""
        return tuple(dict.fromkeys(one.mark for one in self.marked if one.mark))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The variables of `marks` and `time_variables`, which are no part of a match."""
        return (*self.marks, *self.time_variables)

    @property
    def decides(self) -> bool:
        """True if events in front of a match or behind it decide about it, other than by the automaton or by what is
        `repeated`."""
        return self.absent is not None or self.before is not None or bool(self.marked)

    @property
    def is_timed(self) -> bool:
        """True if something must not come for a time of its own, or since the stream began."""
        return bool(self.patiences or self.silences)

    def reach(self, window: Window) -> Window:
        """The window that holds all events that decide about a match of `window`, when it is reported: those in front
        of it, its own, and those behind it."""
        times = [max(w.size for w in self.patiences)] if self.patiences else []
        times += [max(quiet.duration.size for quiet in self.quiets)] if self.silences else []
        if not times or not window.is_bounded or window.by_position:
            return window
        return replace(window, size=window.size + sum(times))


class Silence:
    """The state of a `Quiet`: the place of the last event that ended the silence, of each partition (0 without
    PARTITION BY); `_NONE` before the first."""

    def __init__(self, quiet: Quiet) -> None:
        self._quiet = quiet
        self._last = np.zeros(0, np.int64)

    def of(self, batch: Batch) -> np.ndarray:
        """The truth of the predicate at each event, which are taken in: bool (n,). O(n)."""
        times = np.asarray(batch.times, np.int64)
        keys = np.ones(len(times), np.int64) if batch.keys is None else np.maximum(batch.keys, -1) + 1
        self._fit(int(keys.max(initial=0)))
        order = in_order(keys)
        own, when, breaks = keys[order], times[order], ~self._quiet.none.evaluate(batch)[order]
        rows = np.arange(len(own))
        begins = np.maximum.accumulate(np.where(np.append(True, own[1:] != own[:-1]), rows, 0))
        last = np.maximum.accumulate(np.where(breaks, rows, -1))
        before = np.append(-1, last[:-1])
        since = np.where(before >= begins, when[before], self._last[own])
        found = np.empty(len(own), bool)
        found[order] = self._is_quiet(since, self._quiet.duration.bounds(when))
        ends = np.flatnonzero(np.append(own[1:] != own[:-1], True))
        ends = ends[last[ends] >= begins[ends]]
        self._last[own[ends]] = when[last[ends]]
        return found

    @staticmethod
    def _is_quiet(since: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        quiet: np.ndarray = (since < bounds) | (since == _NONE)
        return quiet

    def _fit(self, row: int) -> None:
        if row >= len(self._last):
            more = np.full(max(2 * len(self._last), row + 1) - len(self._last), _NONE, np.int64)
            self._last = np.concatenate([self._last, more])

    def holds(self, place: int, key: int) -> bool:
        """`of`, of one event at `place`, which `note` may follow. O(1)."""
        if key + 1 >= len(self._last):
            return True
        last = self._last.item(key + 1)
        return last == _NONE or last < self._quiet.duration.open_from(place)

    def note(self, place: int, key: int) -> None:
        """An event of partition `key` that ends its silence."""
        self._fit(key + 1)
        self._last[key + 1] = place

    def forget(self, keys: np.ndarray) -> None:
        """No event of these partitions comes any more; their numbers are those of others then."""
        rows = keys + 1
        self._last[rows[rows < len(self._last)]] = _NONE

    def snapshot(self) -> np.ndarray:
        """The state as plain values."""
        return self._last

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`."""
        self._last = array(state, "places")
