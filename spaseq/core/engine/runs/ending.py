"""Absence around a match. `φ ; NOT ψ` holds for a match of φ once its window has closed without a ψ behind it.

Matches of φ wait here. If an event of ψ comes behind the end of a waiting match and inside its window, the match is
off. When the window's first live start has passed a match's own, its window has closed, and the match is reported. The
end of the stream closes all windows. The interval of the match is that of φ.

The first ψ behind an end decides all matches with that end: those that start in its window are off, and the windows of
the others have closed. So matches with one end need not wait one by one. The compact structure (`OpenRoots`) holds them
as the root of their nodes, a `MatchBatch` whose only position is the node and whose start is a lower bound. When the
first live start passes that bound, the matches that start before it are enumerated, and the root waits on with its next
start. So n events hold O(n) roots, though 2^n matches may wait.

`φ ; NOT ψ FOR d` holds for a match of φ once d has passed behind its end without a ψ. Then the matches of one end are
decided together, by the end, whatever they start with. If alternatives differ in such times, or have several, matches
wait one by one, and are reported once all of their times are over. The time of a conjunction that nothing follows
begins with an event that the match has taken before: its position waits with the match.

*A choice among the matches that are left* (`spaseq.core.engine.runs.chosen`) is made once all of one end are decided.
That is at its first ψ, or when the last of their windows has closed; until then the roots wait whole. If one end
depends on those before, ends are also taken in their order.

`NOT ψ ; φ` is decided when a match of φ ends (`spaseq.core.engine.runs.beginning`): of each root, by a bound of the
starts. With nothing behind, the matches before the bound are given at once.

If ψ has conditions on the events of φ, different events can call off matches with one end. `Ending.against` then
evaluates `φ ; ψ`: its matches are those of φ that are off, with the event of ψ behind them. In this case, and in the
lazy evaluators, matches wait one by one, and so within the budget `output_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from spaseq.core.engine.program.marks import Marks
from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.window import Lows, Window
from spaseq.core.engine.runs.base import grow
from spaseq.core.engine.runs.beginning import Beginning
from spaseq.core.engine.runs.chosen import Chooser, OpenRoots
from spaseq.core.integers import in_order
from spaseq.core.pattern import Batch, NoneOf
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.layout import NEVER

_SURE: Final = -2
"""The partition of matches that are sure; so are those of lesser ones, which tell the partitions apart."""


@dataclass(slots=True)
class _Waiting:
    """Matches that are not decided, or roots. Of each its partition, 0 without PARTITION BY and up to `_SURE` of one
    that is forgotten, and the position that it must start before. `marks` and `since`: those of `Marks.read`, if
    alternatives differ. `codes`: those of `_codes`, if they have been asked for."""

    matches: MatchBatch = field(default_factory=MatchBatch)
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    highs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    marks: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    since: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def pick(self, wanted: np.ndarray) -> _Waiting:
        """Those for which `wanted` is true, in their order."""
        codes = self.codes[wanted] if len(self.codes) else self.codes
        matches = _pick(self.matches, wanted)
        since = self.since[:, wanted]
        return _Waiting(matches, self.keys[wanted], self.highs[wanted], self.marks[wanted], since, codes)

    def and_also(self, found: _Waiting) -> _Waiting:
        """These, and others behind them. The codes are left out."""
        return _Waiting(
            MatchBatch.concat([self.matches, found.matches]) if len(found.matches) else self.matches,
            np.concatenate([self.keys, found.keys]),
            np.concatenate([self.highs, found.highs]),
            np.concatenate([self.marks, found.marks]),
            np.concatenate([self.since, found.since], axis=1),
        )

    def coded(self) -> np.ndarray:
        """The codes of the matches."""
        if len(self.codes) != len(self.matches):
            self.codes = _codes(self.matches)
        return self.codes


@dataclass(frozen=True, slots=True)
class _Behind:
    """The events that must not come behind the matches with some marks, all bits of `bit`. `lows`: those of its time;
    None if it is for the window of the match. The time begins with the event of row `since` of `_Waiting.since`, or
    with the end of the match if that is None."""

    bit: int
    none: NoneOf
    lows: Lows | None = None
    since: int | None = None

    def begin(self, some: _Waiting) -> np.ndarray:
        """The positions with which the window or the time begins, of each match: int64 (m,)."""
        if self.lows is None:
            return some.matches.start
        return some.matches.end if self.since is None else some.since[self.since]


class Calling(Protocol):
    """Finds the matches that are off, each with one more event (`spaseq.core.engine.runs.evaluation.Pushed`)."""

    def stream(self, batch: Batch) -> Iterator[MatchBatch]: ...

    def forget(self, numbers: np.ndarray) -> int | None: ...

    def snapshot(self) -> dict[str, Any]: ...


def _ranges(roots: MatchBatch, bounds: np.ndarray) -> np.ndarray:
    """Roots with the bounds of their starts, as `spaseq.core.tecs.Roots` takes them."""
    table = np.empty((len(roots), k.ROOT_COLUMNS), np.int64)
    table[:, k.O_NODE], table[:, k.O_LOW] = roots.positions, roots.start
    table[:, k.O_HIGH], table[:, k.O_END] = bounds, roots.end
    return table


class Ending:
    """The waiting matches of one evaluation. The evaluation sets `against`, or `roots`, and with these `chooser`, if
    its program asks for it.

    `push`, `advance` and `close` change the state at once and give matches a part at a time, to be read to the end
    before the next call.
    """

    def __init__(self, program: Program) -> None:
        self.against: Calling | None = None
        self.roots: OpenRoots | None = None
        self.chooser: Chooser | None = None
        self.window: Window = program.window
        self.patience: Window | None = program.around.patience
        self.beginning: Beginning | None = None
        if program.around.before is not None:
            self.beginning = Beginning(program.around.before, program.window)
        self._absent = program.around.absent
        around, labels = program.around, program.labels_written or ()
        after = program.whole_choice.after
        hides = program.hides_labels and not (after is not None and after.on_variable)
        self._marks = Marks(around.marks, around.time_variables, labels, hides=hides) if around.hidden else None
        bits = {mark: 1 << i for i, mark in enumerate(around.marks)} | {"": 0}
        self._starts = [
            (bits[one.mark], Beginning(one.none, program.window)) for one in around.marked if not one.behind
        ]
        self._times = {time: Lows(time, partitioned=False) for time in around.patiences}
        self.end_lows: Lows | None = None if self.patience is None else self._times[self.patience]
        """The first ends that wait, with patience."""
        self._behind = [] if self._absent is None else [_Behind(0, self._absent, self.end_lows)]
        for one in (one for one in around.marked if one.behind):
            lows = None if one.duration is None else self._times[one.duration]
            since = around.time_variables.index(one.since) if one.since else None
            self._behind.append(_Behind(bits[one.mark], one.none, lows, since))
        self._lows_by_key = program.window.per_partition
        self._waiting = _Waiting(since=np.zeros((len(around.time_variables), 0), np.int64))
        self._lows = np.zeros(0, np.int64)

    def push(self, batch: Batch, found: MatchBatch, lows: np.ndarray) -> Iterator[MatchBatch]:
        """The matches that are decided within `batch`, given those of φ that it completes; without register rows.

        `lows`: first live start at each row, int64 (n,). Positions must differ from row to row. O((matches + rows) log
        rows), roots standing for all of their matches, but for what `OpenRoots` gives.
        """
        positions = np.asarray(batch.positions, np.int64)
        row_keys = np.zeros(len(positions), np.int64) if batch.keys is None else np.asarray(batch.keys, np.int64)
        rows = np.searchsorted(positions, found.end) if len(found) else np.zeros(0, np.int64)
        found = replace(found, rows=None, labels=found.labels if self.roots is None else None)
        marks, since = np.zeros(len(found), np.int64), np.zeros((0, len(found)), np.int64)
        if self._marks is not None:
            found, marks, since = self._marks.read(found)
        highs = np.full(len(found), NEVER)
        for bit, beginning in self._beginnings():
            strays = ~beginning.none.evaluate(batch)
            bounds = beginning.bounds(positions, row_keys, strays, lows, rows)
            mine = marks & bit == bit
            highs[mine] = np.minimum(highs, bounds)[mine]
        if self.chooser is not None:
            first = int(self._waiting.matches.start.min(initial=NEVER))
            for key, low in zip(row_keys[rows].tolist(), lows[rows].tolist(), strict=True):
                self.chooser.drop_before(key, min(low, first))
        fresh = _Waiting(found, row_keys[rows], highs, marks, since)
        if not (holds := found.start < highs).all():
            fresh = fresh.pick(holds)
        some = self._waiting.and_also(fresh)
        firsts: dict[Window | None, np.ndarray] = {None: lows}
        for time, times in self._times.items():
            firsts[time] = times.of(positions, np.asarray(batch.times), batch.keys)[0]
        if self.roots is None:
            return self._push_listed(batch, some, fresh, row_keys, firsts)
        if self._absent is None:
            return self._give(some, np.full(len(some.keys), NEVER), False)
        return self._give(some, *self._decide(batch, self._absent, some, row_keys, firsts[self.patience]))

    def _beginnings(self) -> Iterator[tuple[int, Beginning]]:
        """The bounds of the matches with some marks, or of all: the marks, and the events before."""
        if self.beginning is not None:
            yield 0, self.beginning
        yield from self._starts

    def _push_listed(
        self, batch: Batch, some: _Waiting, fresh: _Waiting, row_keys: np.ndarray, firsts: dict[Any, np.ndarray]
    ) -> Iterator[MatchBatch]:
        """`push`, of matches that wait one by one: `some` are all of them, `fresh` the last ones. `firsts`: of each
        time, None for the window, the first position that is in it, at each row."""
        matches = some.matches
        sure, off = np.ones(len(matches), bool), np.zeros(len(matches), bool)
        for one in self._behind:
            time = None if one.lows is None else one.lows.window
            bounds, called = self._decide(batch, one.none, some, row_keys, firsts[time])
            closed, mine = one.begin(some) < bounds, some.marks & one.bit == one.bit
            off |= mine & called & ~closed
            sure &= closed | ~mine
        if self.against is not None:
            some.codes = np.concatenate([self._waiting.coded(), _codes(fresh.matches)])
            pairs = np.array(_called_off(self.against.stream(batch), matches, some.codes), np.int64).reshape(-1, 2)
            if self.patience is not None:  # not those that had been sure before
                positions = np.asarray(batch.positions, np.int64)
                bounds = firsts[self.patience][np.searchsorted(positions, pairs[:, 1])]
                pairs = pairs[matches.end[pairs[:, 0]] >= bounds]
            off[pairs[:, 0]] = True
        return self._release(some, sure, off)

    def _release(self, some: _Waiting, sure: np.ndarray, off: np.ndarray) -> Iterator[MatchBatch]:
        """The matches that are reported, of those that are `sure`; the others wait on, but for those that are `off`."""
        waits = ~sure & ~off
        if self.chooser is not None:
            waits = _of_group(waits, some.matches.end)
            if self.chooser.in_order:
                waits = _behind(waits, some.keys if self.chooser.by_key else np.zeros(len(waits), np.int64))
        given = ~waits & ~off
        if self._marks is not None and self.chooser is None and given.any():
            self._marks.once(some.matches, given, waits)
        reported = some.pick(given)
        self._waiting = some.pick(waits & ~off)
        if self.chooser is not None:
            return self.chooser.take_listed(reported.matches, reported.keys)
        return iter((reported.matches,))

    def _decide(
        self, batch: Batch, none: NoneOf, some: _Waiting, row_keys: np.ndarray, lows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of each match the first start that still waits when it is decided, with patience the first end: int64 (m,).
        True if an event that is not `none` decides it: bool (m,)."""
        matches, keys = some.matches, some.keys
        strays = ~none.evaluate(batch) & (row_keys >= 0)
        if self._lows_by_key:
            there = row_keys >= 0
            self._lows = grow(self._lows, int(row_keys.max()) + 1)
            self._lows[row_keys[there]] = lows[there]  # the last row of a key wins
            bounds = self._lows[np.maximum(keys, 0)]
        else:
            bounds = np.full(len(matches), lows[-1])
        bounds[keys <= _SURE] = NEVER
        mine, rows = first_behind(strays, row_keys, np.asarray(batch.positions, np.int64), keys, matches.end)
        called = np.zeros(len(matches), bool)
        bounds[mine], called[mine] = lows[rows], True
        return bounds, called

    def _give(self, some: _Waiting, bounds: np.ndarray, called: np.ndarray | bool) -> Iterator[MatchBatch]:
        """The matches below roots that start (with patience, end) before their bounds; the others wait on, but for
        those that are `called` off."""
        assert self.roots is not None
        if self.chooser is not None:
            return self._choose(some, bounds, called, self.chooser)
        matches, by_end = some.matches, self.patience is not None
        closed = (matches.end if by_end else matches.start) < bounds
        waits = ~closed & ~np.asarray(called)
        given, upto = _pick(matches, closed), (some.highs if by_end else np.minimum(some.highs, bounds))[closed]
        if not by_end:
            parts = closed & ~np.asarray(called) & (bounds < some.highs)
            rest = matches.start.copy()
            rest[parts] = self.roots.nodes.next_starts(_ranges(_pick(matches, parts), bounds[parts]))
            some.matches, waits = replace(matches, start=rest), waits | (parts & (rest < some.highs))
        self._waiting = some.pick(waits)
        return self.roots.matches(_ranges(given, upto))

    def _choose(
        self, some: _Waiting, bounds: np.ndarray, called: np.ndarray | bool, chooser: Chooser
    ) -> Iterator[MatchBatch]:
        """`_give`, of what the chooser reports of the matches of those ends that are decided."""
        assert self.roots is not None
        matches, off = some.matches, np.broadcast_to(called, len(bounds))
        highs = some.highs
        if self.patience is not None:
            closed = matches.end < bounds
            waits, kept = ~closed & ~off, closed | ~off
        else:
            latest = self.roots.nodes.upper_starts(matches.positions)
            waits, kept = (np.minimum(latest, highs - 1) >= bounds) & ~off, np.ones(len(bounds), bool)
            waits = _of_group(waits, matches.end)
            highs = np.where(waits, highs, np.minimum(highs, bounds))
        if chooser.in_order:
            groups = some.keys if chooser.by_key else np.zeros(len(waits), np.int64)
            waits = _behind(waits, groups)
        given = ~waits & kept
        table, keys = _ranges(_pick(matches, given), highs[given]), some.keys[given]
        some.highs = highs
        self._waiting = some.pick(waits & kept)
        return chooser.take(table, keys)

    def started_before(self, matches: MatchBatch, high: int, low: int, key: int) -> Iterator[MatchBatch]:
        """Those of `matches`, of one end in partition `key` with the first live start `low`, that start before `high`
        and are reported."""
        some = _pick(matches, matches.start < high)
        if not len(some):
            return iter(())
        if self.roots is None:
            return iter((some,))
        table = _ranges(some, np.full(len(some), high))
        if self.chooser is None:
            return self.roots.matches(table)
        self.chooser.drop_before(key, low)
        return self.chooser.take(table, np.full(len(some), key))

    def forget(self, keys: np.ndarray) -> None:
        """Note that these partitions get no more rows: matches that wait in them are sure, and given with the next
        matches."""
        if self.against is not None:
            self.against.forget(keys)
        for _, beginning in self._beginnings():
            beginning.forget(keys)
        if self.chooser is None:
            self._waiting.keys[np.isin(self._waiting.keys, keys)] = _SURE
        else:
            self._forget_apart(keys, self.chooser)
        if self._lows_by_key:
            self._lows[keys[keys < len(self._lows)]] = 0

    def _forget_apart(self, keys: np.ndarray, chooser: Chooser) -> None:
        """Give the matches that wait a partition of their own for each of `keys`, as what was reported of it counts."""
        own = self._waiting.keys
        for key in keys.tolist():
            mine = own == key
            other = min(_SURE + 1, int(own.min(initial=0)), *chooser.floors, *chooser.dead) - 1 if mine.any() else None
            own[mine] = _SURE if other is None else other
            chooser.rename(key, other)

    def advance(self, lows: Lows | None, place: int) -> Iterator[MatchBatch]:
        """The matches that are decided at `place`, as no row before it will come any more.

        `lows`: what the rows so far were measured by, None before the first. `place` is what the window is measured
        in; a window over positions closes by events alone.
        """
        sure = self._waiting.keys <= _SURE
        if self.roots is not None:
            bound = _first_at(lows if self.end_lows is None else self.end_lows, place)
            return self._give(self._waiting, np.where(sure, NEVER, bound), False)
        now = np.ones(len(sure), bool)
        for one in self._behind:
            bound = _first_at(lows if one.lows is None else one.lows, place)
            mine = self._waiting.marks & one.bit == one.bit
            now &= ~mine | (one.begin(self._waiting) < bound)
        return self._release(self._waiting, sure | now, np.zeros(len(sure), bool))

    @property
    def undecided(self) -> int | None:
        """The least end of a match that waits; None if none does."""
        return int(self._waiting.matches.end.min()) if len(self._waiting.matches) else None

    @property
    def waiting(self) -> tuple[MatchBatch, np.ndarray, np.ndarray]:
        """The matches that wait; of each the partition, and the position that it must start before: int64 (m,) each."""
        return self._waiting.matches, self._waiting.keys, self._waiting.highs

    @property
    def first_start(self) -> int:
        """With patience, or a choice, the least start of the matches that wait, which are kept although their windows
        have closed; NEVER if there is none."""
        kept = self.roots is not None and (self.patience is not None or self.chooser is not None)
        return int(self._waiting.matches.start.min(initial=NEVER)) if kept else NEVER

    @property
    def places(self) -> np.ndarray:
        """The positions that windows are compared with, besides those of runs: int64 (n,)."""
        return np.concatenate([np.zeros(0, np.int64), *(b.entries[1] for _, b in self._beginnings())])

    @property
    def sure(self) -> np.ndarray:
        """The starts, ends and positions of the matches that are sure, and wait to be given with the next ones: int64
        (n,)."""
        if not (self._waiting.keys <= _SURE).any():
            return np.zeros(0, np.int64)
        matches = _pick(self._waiting.matches, self._waiting.keys <= _SURE)
        taken = matches.positions if self.roots is None else self.roots.nodes.positions(_ranges(matches, matches.end))
        return np.concatenate([matches.start, matches.end, taken])

    def take_back(self, matches: MatchBatch, keys: np.ndarray, highs: np.ndarray, lows: dict[int, int]) -> None:
        """Set what is `waiting` and, if partitions have windows of their own, the first live start of each one that had
        events meanwhile."""
        none = np.zeros((1, len(keys)), np.int64)
        self._waiting = _Waiting(matches, keys, highs, none[0], none[:0])
        if lows:
            self._lows = grow(self._lows, max(lows) + 1)
            self._lows[list(lows)] = list(lows.values())

    def close(self) -> Iterator[MatchBatch]:
        """All that still waits: the stream ends, and nothing can come between."""
        count = len(self._waiting.keys)
        if self.roots is None:
            return self._release(self._waiting, np.ones(count, bool), np.zeros(count, bool))
        return self._give(self._waiting, np.full(count, NEVER), False)

    def compact(self, compact: Callable[[np.ndarray, np.ndarray], None], lows: np.ndarray) -> None:
        """`compact`, that of a `Run`, which keeps the nodes below the roots. `lows`: as of `Run.cell_lows`."""
        matches = self._waiting.matches
        table = _ranges(matches, matches.end)
        compact(lows, table)
        self._waiting.matches = replace(matches, positions=table[:, k.O_NODE].copy())

    def snapshot(self) -> dict[str, Any]:
        """The waiting matches and all else, as plain values."""
        # With an event of the past a time may begin once a run ends that has taken it: any event of the time is kept.
        open_times = {one.lows for one in self._behind if one.since is not None}
        for times in self._times.values():
            if times not in open_times:
                times.keep(self._waiting.matches.end)
        return {
            "matches": self._waiting.matches.snapshot(),
            "keys": self._waiting.keys,
            "highs": self._waiting.highs,
            "marks": self._waiting.marks,
            "lows": self._lows,
            "since": list(self._waiting.since),
            "times": [times.snapshot() for times in self._times.values()],
            "beginnings": [beginning.snapshot() for _, beginning in self._beginnings()],
            "chosen": None if self.chooser is None else self.chooser.snapshot(),
            "against": None if self.against is None else self.against.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`, but for `against`."""
        self._lows = array(state["lows"], "windows", low=0)
        most = len(self._lows) - 1 if self._lows_by_key else None
        low = _SURE if self.chooser is None else None
        waiting = MatchBatch.restore(state["matches"])
        fit = (waiting.start >= 0) & (waiting.start <= waiting.end)
        expect(fit.all(), "matches that end no earlier than they start")
        keys = array(state["keys"], "keys", rows=len(waiting), low=low, high=most)
        highs = array(state["highs"], "bounds", rows=len(waiting), low=0)
        expect(len(state["times"]) == len(self._times), "the events of each time")
        for times, known in zip(self._times.values(), state["times"], strict=True):
            times.restore(known)
        marks = array(state["marks"], "marks", rows=len(waiting), low=0)
        expect(len(state["since"]) == len(self._waiting.since), "the event with which each time begins")
        since = [array(some, "positions", rows=len(waiting), low=-1) for some in state["since"]]
        expect(all((some <= waiting.end).all() for some in since), "events that are not behind their match")
        expect(len(state["beginnings"]) == len(list(self._beginnings())), "what must not come, for each border")
        for (_, beginning), known in zip(self._beginnings(), state["beginnings"], strict=True):
            beginning.restore(known)
        if self.chooser is not None:
            self.chooser.restore(state["chosen"])
        if self.roots is not None:
            one = len(waiting.positions) == len(waiting) and bool((np.diff(waiting.offsets) == 1).all())
            expect(one and self.roots.nodes.are_known(_ranges(waiting, waiting.end)), "roots of nodes that are there")
        at = np.array(since, np.int64).reshape(len(since), len(waiting))
        self._waiting = _Waiting(waiting, keys, highs, marks, at)


def first_behind(
    strays: np.ndarray, row_keys: np.ndarray, positions: np.ndarray, keys: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The matches that a stray follows in their partition, and of each the row of the first: int64 (k,) each.

    Of each row of a batch: bool (n,), true for a stray, its partition and its position, int64 (n,). Of each match its
    partition and its end, int64 (m,). O((strays + matches) log strays).
    """
    # Rows in order of key and position, as one number each; of a match, the first row that may be a stray.
    stray = np.flatnonzero(strays)
    stray = stray[in_order(row_keys[stray])]
    width = len(positions) + 1
    behind = keys * width + np.searchsorted(positions, ends, "right")
    place = np.searchsorted(row_keys[stray] * width + stray, behind)
    mine = np.flatnonzero(place < len(stray))
    mine = mine[row_keys[stray[place[mine]]] == keys[mine]]
    return mine, stray[place[mine]]


def _first_at(lows: Lows | None, place: int) -> int:
    """The first start that is live at `place`, or the first end; 0 if the window is closed by events alone."""
    timed = lows is not None and lows.window.is_bounded and not lows.window.by_position
    return min(lows.at(place), NEVER) if lows is not None and timed else 0


def _of_group(waits: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """True for the matches with an end of which one waits; the matches of one end follow each other."""
    group = np.cumsum(np.append(True, ends[1:] != ends[:-1])[: len(ends)]) - 1
    some = np.zeros(len(ends), bool)
    some[group[waits]] = True
    return some[group]


def _behind(waits: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """True for what waits, and what comes behind it in its group."""
    order = in_order(groups)
    own = groups[order]
    first = np.flatnonzero(np.append(True, own[1:] != own[:-1])[: len(own)])
    waiting = np.cumsum(waits[order])
    before = np.repeat((waiting - waits[order])[first], np.diff(np.append(first, len(own))))
    found = np.empty(len(waits), bool)
    found[order] = waiting > before
    return found


def _called_off(found: Iterable[MatchBatch], matches: MatchBatch, codes: np.ndarray) -> list[tuple[int, int]]:
    """The numbers of those matches, whose `_codes` are given, that are `found` with an event behind them, and its
    position.

    O(matches) array operations if any are found, and a look at those that are.
    """
    off: list[tuple[int, int]] = []
    for part in found:  # to its end
        others = _codes(part, 1)
        places: dict[tuple[int, bytes], list[int]] = {}
        for i in np.flatnonzero(np.isin(codes, others)).tolist():
            places.setdefault(_name(matches, i), []).append(i)
        for i in np.flatnonzero(np.isin(others, codes)).tolist():
            off += [(place, int(part.end[i])) for place in places.get(_name(part, i, 1), ())]
    return off


def _name(matches: MatchBatch, row: int, behind: int = 0) -> tuple[int, bytes]:
    """The identity of a match: its start, and its positions without the last `behind`."""
    taken = matches.positions[matches.offsets[row] : matches.offsets[row + 1] - behind]
    return int(matches.start[row]), taken.tobytes()


def _codes(matches: MatchBatch, behind: int = 0) -> np.ndarray:
    """A number for each match, equal for those of equal `_name`, and hardly ever for others: uint64 (m,)."""
    summed = np.zeros(len(matches.positions) + 1, np.uint64)
    np.cumsum(_mix(matches.positions), out=summed[1:])  # wraps around
    own: np.ndarray = summed[matches.offsets[1:] - behind] - summed[matches.offsets[:-1]]
    return own + _mix(~matches.start)


def _mix(values: np.ndarray) -> np.ndarray:
    """Integers scattered over 64 bits (the finaliser of splitmix64)."""
    mixed = values.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: np.ndarray = mixed ^ (mixed >> np.uint64(31))
    return found


def _pick(matches: MatchBatch, wanted: np.ndarray) -> MatchBatch:
    """The matches for which `wanted` is true, in their order."""
    return matches if wanted.all() else matches.take(np.flatnonzero(wanted))
