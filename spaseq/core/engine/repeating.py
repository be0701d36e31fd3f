"""Repeated absence: `φ ; NOT ψ FOR EVERY d` reports a match of φ after each d of silence behind its end.

Silence k of a match is over once k·d have passed behind its end without a ψ. Each gives a row: the same match, with the
number k (`MatchBatch.silences`). A ψ ends the rows of all matches of its partition. So does the window that a match's
start opened: a silence that is over behind it gives no row.

This evaluator stands around another one, which finds the matches of φ, whatever its kind. A match waits here with four
numbers: its partition, the place of its end, the silences so far, and how many its window holds. All that tells rows of
a match apart is in this file; in front of it there are matches, and behind it rows.

Bounds are closed, as those of `NOT ψ FOR d`: an event at exactly k·d behind the end is still within silence k. That is
over with the first event behind it, or with `advance`. At the end of the stream the silences are over that the time
of the last event covers: nothing is known of the time behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import numpy as np

from spaseq.core.engine.program.matches import MatchBatch, within
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.window import Lows
from spaseq.core.engine.runs.ending import first_behind
from spaseq.core.engine.runs.evaluation import Pushed
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs.kernels.layout import NEVER
from spaseq.core.watch import check

_PART: Final = 1 << 14
"""About so many rows are made at once."""
_MAX: Final = (1 << 63) - 1


def _none() -> np.ndarray:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Silent:
    """Matches that wait, with four columns, int64 (m,). `keys`: the partition of each, 0 without PARTITION BY. `ends`:
    the place of its end. `told`: the silences reported so far. `most`: the number of the last one in its window."""

    matches: MatchBatch = field(default_factory=MatchBatch)
    keys: np.ndarray = field(default_factory=_none)
    ends: np.ndarray = field(default_factory=_none)
    told: np.ndarray = field(default_factory=_none)
    most: np.ndarray = field(default_factory=_none)

    def pick(self, wanted: np.ndarray) -> _Silent:
        """Those for which `wanted` is true, in their order."""
        if wanted.all():
            return self
        columns = (column[wanted] for column in (self.keys, self.ends, self.told, self.most))
        return _Silent(self.matches.take(np.flatnonzero(wanted)), *columns)

    def and_also(self, other: _Silent) -> _Silent:
        """These, and others behind them."""
        pairs = zip(self.columns, other.columns, strict=True)
        return _Silent(MatchBatch.concat([self.matches, other.matches]), *(np.concatenate(pair) for pair in pairs))

    @property
    def columns(self) -> tuple[np.ndarray, ...]:
        """All but the matches."""
        return self.keys, self.ends, self.told, self.most

    def until(self, places: np.ndarray | int, every: int) -> np.ndarray:
        """The silences of each in its window that are over before these places, as numbers: int64 (m,)."""
        return np.minimum(_silences(self.ends, places, every), self.most)


class Repeating(Pushed):
    """`inner`, an evaluation of the program without what `Around.repeated` says, and the silences behind its matches.

    `push`, `advance` and `close` change the state at once. They give rows a part at a time, to be read to the end
    before the next call, in the order of the moments at which the silences are over.

    Memory: the matches that wait, one by one, within `output_bytes`, and the times of the events in the window. Cost:
    O(waiting matches) a batch, and the rows.
    """

    def __init__(self, program: Program, inner: Any) -> None:
        """`inner` is any evaluator that `spaseq.core.engine.opening` opens."""
        super().__init__(program)
        repeated = program.around.repeated
        assert repeated is not None
        self.inner = inner
        self._repeated = repeated
        self._every = int(repeated.every.size)
        self._waiting = _Silent(inner.none())
        self._events: Lows | None = Lows(program.window, partitioned=False) if program.window.is_bounded else None
        self._last: int | None = None

    @property
    def last_position(self) -> int | None:
        return self.inner.last_position

    @property
    def midway(self) -> bool:
        """As of `spaseq.core.engine.runs.evaluation.Evaluation`."""
        return bool(getattr(self.inner, "midway", False))

    @property
    def statistics(self) -> dict[str, int]:
        """The counters of the inner evaluator, and the matches that wait for their next silence."""
        return self.inner.statistics | {"silent_matches": len(self._waiting.matches)}

    def parts(self) -> dict[str, list[Any]]:
        found = self.inner.parts()
        return {**found, "waiting": [*found.get("waiting", ()), self._waiting, self._events]}

    def none(self) -> MatchBatch:
        return self.inner.none()

    def stream(self, batch: Batch) -> Iterator[MatchBatch]:
        if not len(batch):
            return
        strays = ~self._repeated.none.evaluate(batch)  # an event that it refuses has changed nothing
        budget = self.program.settings.output_bytes
        _, *found = within(chain((self._waiting.matches,), self.inner.stream(batch)), budget)
        yield from self._push(batch, strays, MatchBatch.concat(found))

    def _push(self, batch: Batch, strays: np.ndarray, found: MatchBatch) -> Iterator[MatchBatch]:
        """The rows of the silences that end within `batch`, given the matches that it completes."""
        positions, places = np.asarray(batch.positions, np.int64), np.asarray(batch.times, np.int64)
        row_keys = np.zeros(len(positions), np.int64) if batch.keys is None else np.asarray(batch.keys, np.int64)
        some = self._waiting.and_also(self._begin(found, positions, places, row_keys))
        mine, rows = first_behind(strays & (row_keys >= 0), row_keys, positions, some.keys, some.matches.end)
        until, called = np.full(len(some.keys), places[-1]), np.zeros(len(some.keys), bool)
        until[mine], called[mine] = places[rows], True
        self._last = int(places[-1])
        return self._tell(some, some.until(until, self._every), ~called)

    def _begin(self, found: MatchBatch, positions: np.ndarray, places: np.ndarray, row_keys: np.ndarray) -> _Silent:
        """The matches that a batch completes, before their first silence."""
        known, when = positions, places
        if self._events is not None:
            if self._events.times is not None:
                known = np.concatenate([self._events.positions, positions])
                when = np.concatenate([self._events.times, places])
            self._events.of(positions, places, None, np.zeros(0, np.int64))
        if not len(found):
            return _Silent()
        rows = np.searchsorted(positions, found.end)
        ends = places[rows]
        most = np.full(len(found), self._repeated.most)
        if self._events is not None:
            starts = when[np.searchsorted(known, found.start)]
            over = np.array([self.program.window.closes_at(start) for start in starts.tolist()], np.int64)
            most = np.minimum(most, _silences(ends, np.minimum(over, _MAX - 1) + 1, self._every))
        return _Silent(replace(found, rows=None), row_keys[rows], ends, np.zeros(len(found), np.int64), most)

    def _tell(self, some: _Silent, upto: np.ndarray, stays: np.ndarray) -> Iterator[MatchBatch]:
        """The rows of the silences up to these; of the matches that have more, those wait on that `stays` says."""
        upto = np.maximum(upto, some.told)
        left = stays & (upto < some.most)
        self._waiting = _Silent(some.matches, some.keys, some.ends, upto, some.most).pick(left)
        return self._rows(some.pick(upto > some.told), upto[upto > some.told])

    def _rows(self, some: _Silent, upto: np.ndarray) -> Iterator[MatchBatch]:
        """The rows of the silences from those reported up to these, in order of their moments, then of the ends."""
        while len(some.keys):
            check()
            few = np.minimum(upto - some.told, _PART + 1).sum() <= _PART
            goal = upto if few else self._some_of(some, upto)
            counts = goal - some.told
            index = np.repeat(np.arange(len(counts)), counts)
            number = some.told[index] + 1 + np.arange(len(index)) - np.repeat(np.cumsum(counts) - counts, counts)
            order = np.lexsort((index, some.ends[index] + number * self._every))
            yield replace(some.matches.take(index[order]), silences=number[order])
            more = goal < upto
            some = _Silent(some.matches, some.keys, some.ends, goal, some.most).pick(more)
            upto = upto[more]

    def _some_of(self, some: _Silent, upto: np.ndarray) -> np.ndarray:
        """The silences up to a moment, which are about `_PART` in all, or if one moment has more, those of that one."""

        def at(moment: int) -> np.ndarray:
            """Up to the silences that are over at a moment."""
            return np.clip(_silences(some.ends, moment, self._every), some.told, upto)

        low = int((some.ends + (some.told + 1) * self._every).min()) + 1  # some row is due
        high = int((some.ends + upto * self._every).max()) + 1  # all are
        while low < high - 1:
            middle = (low + high) // 2
            few = int(np.minimum(at(middle) - some.told, _PART + 1).sum()) <= _PART
            low, high = (middle, high) if few else (low, middle)
        return at(low)

    def advance(self, place: int) -> Iterator[MatchBatch]:
        some = self._waiting
        return self._tell(some, some.until(place, self._every), np.ones(len(some.keys), bool))

    def close(self) -> Iterator[MatchBatch]:
        return iter(()) if self._last is None else self.advance(min(self._last, _MAX - 1) + 1)

    def _first_open(self) -> int | None:
        """The first event at which a match ends that no row has reported yet; None if there is none."""
        ends = self._waiting.matches.end[self._waiting.told == 0]
        return int(ends.min()) if len(ends) else None

    undecided = property(_first_open)

    def nameable(self) -> np.ndarray | None:
        named, matches = self.inner.nameable(), self._waiting.matches
        if named is None:
            return None
        return np.unique(np.concatenate([named, matches.start, matches.end, matches.positions]))

    def snapshot(self) -> dict[str, Any]:
        """The state of the evaluation as plain values and the front end's rows; `restore` goes on from it."""
        return {
            "inner": self.inner.snapshot(),
            "matches": self._waiting.matches.snapshot(),
            "columns": self._waiting.columns,
            "events": None if self._events is None else self._events.snapshot(),
            "last": self._last,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`, but for the inner evaluator."""
        matches = MatchBatch.restore(state["matches"])
        expect(bool((matches.start <= matches.end).all()), "matches that end no earlier than they start")
        lows = {"keys": 0, "places": None, "silences": 0, "last silences": 0}
        expect(len(state["columns"]) == len(lows), "four numbers for each match")
        columns = zip(state["columns"], lows.items(), strict=True)
        found = [array(column, what, rows=len(matches), low=low) for column, (what, low) in columns]
        self._waiting = _Silent(matches, *found)
        if self._events is not None:
            self._events.restore(state["events"])
        self._last = state["last"]
        expect(self._last is None or type(self._last) is int, "the place of the last event")


def _silences(ends: np.ndarray, places: np.ndarray | int, every: int) -> np.ndarray:
    """The number of times that `every` has passed between ends and places, before these: int64 (m,)."""
    bounds = np.broadcast_to(np.asarray(places, np.int64), ends.shape)
    passed = bounds.astype(np.uint64) - ends.astype(np.uint64) - np.uint64(1)  # exact, though int64 would overflow
    counted = np.minimum(passed // np.uint64(every), np.uint64(NEVER)).astype(np.int64)
    return np.where(bounds > ends, counted, 0)
