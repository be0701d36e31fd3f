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
decided together, by the end, whatever they start with.

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

from spaseq.core.engine.program.matches import Labels, MatchBatch, matches_of
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.window import Lows, Window
from spaseq.core.engine.runs.base import grow
from spaseq.core.engine.runs.beginning import Beginning
from spaseq.core.integers import in_order
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import Arena, Roots
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.layout import NEVER

_SURE: Final = -2


@dataclass(slots=True)
class _Waiting:
    """Matches that are not decided, or roots; of each its partition (0 without PARTITION BY; `_SURE`, of one that is
    forgotten), and the position that it must start before. `codes`: those of `_codes`, if they have been asked for."""

    matches: MatchBatch = field(default_factory=MatchBatch)
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    highs: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def coded(self) -> np.ndarray:
        """The codes of the matches."""
        if len(self.codes) != len(self.matches):
            self.codes = _codes(self.matches)
        return self.codes


class Calling(Protocol):
    """Finds the matches that are off, each with one more event (`spaseq.core.engine.runs.evaluation.Pushed`)."""

    def stream(self, batch: Batch) -> Iterator[MatchBatch]: ...

    def forget(self, numbers: np.ndarray) -> int | None: ...

    def snapshot(self) -> dict[str, Any]: ...


class OpenRoots:
    """The matches below roots. As matches, roots have one position, their node, and a start that is no later than those
    of the matches below them. `ends_only`: one match of each root is enough, without positions."""

    def __init__(self, arena: Arena, labels: Labels, *, ends_only: bool) -> None:
        self.nodes: Roots = Roots(arena)
        self._labels = labels
        self._ends_only = ends_only

    def matches(self, roots: np.ndarray) -> Iterator[MatchBatch]:
        """The matches in the ranges of `roots`, int64 (r, ROOT_COLUMNS), a part at a time."""
        if not self._ends_only:
            return (matches_of(chunk, self._labels) for chunk in self.nodes.enumerate(roots))
        starts = self.nodes.latest_starts(roots)
        there = starts >= 0
        if not there.any():
            return iter(())
        return iter((MatchBatch(starts[there], roots[there, k.O_END], np.zeros(int(there.sum()) + 1, np.int64)),))


def _ranges(roots: MatchBatch, bounds: np.ndarray) -> np.ndarray:
    """Roots with the bounds of their starts, as `spaseq.core.tecs.Roots` takes them."""
    table = np.empty((len(roots), k.ROOT_COLUMNS), np.int64)
    table[:, k.O_NODE], table[:, k.O_LOW] = roots.positions, roots.start
    table[:, k.O_HIGH], table[:, k.O_END] = bounds, roots.end
    return table


class Ending:
    """The waiting matches of one evaluation. The evaluation sets `against`, or `roots`, if its program asks for it.

    `push`, `advance` and `close` change the state at once and give matches a part at a time, to be read to the end
    before the next call.
    """

    def __init__(self, program: Program) -> None:
        self.against: Calling | None = None
        self.roots: OpenRoots | None = None
        self.window: Window = program.window
        self.patience: Window | None = program.around.patience
        self.beginning: Beginning | None = None
        if program.around.before is not None:
            self.beginning = Beginning(program.around.before, program.window)
        self._absent = program.around.absent
        self._lows_by_key = program.window.per_partition
        self._waiting = _Waiting()
        self._lows = np.zeros(0, np.int64)
        self.end_lows: Lows | None = None if self.patience is None else Lows(self.patience, partitioned=False)
        """The first ends that wait, with patience."""

    def push(self, batch: Batch, found: MatchBatch, lows: np.ndarray) -> Iterator[MatchBatch]:
        """The matches that are decided within `batch`, given those of φ that it completes; without register rows.

        `lows`: first live start at each row, int64 (n,). Positions must differ from row to row. O((matches + rows) log
        rows), roots standing for all of their matches, but for what `OpenRoots` gives.
        """
        positions = np.asarray(batch.positions, np.int64)
        row_keys = np.zeros(len(positions), np.int64) if batch.keys is None else np.asarray(batch.keys, np.int64)
        rows = np.searchsorted(positions, found.end) if len(found) else np.zeros(0, np.int64)
        found_keys, found_highs = row_keys[rows], np.full(len(found), NEVER)
        if self.beginning is not None:
            strays = ~self.beginning.none.evaluate(batch)
            found_highs = self.beginning.bounds(positions, row_keys, strays, lows, rows)
        found = replace(found, rows=None, labels=found.labels if self.roots is None else None)
        if not (holds := found.start < found_highs).all():
            found, found_keys, found_highs = _pick(found, holds), found_keys[holds], found_highs[holds]
        matches = MatchBatch.concat([self._waiting.matches, found]) if len(found) else self._waiting.matches
        keys = np.concatenate([self._waiting.keys, found_keys])
        highs = np.concatenate([self._waiting.highs, found_highs])
        if self._absent is None:
            return self._give(_Waiting(matches, keys, highs), np.full(len(keys), NEVER), False)
        firsts = lows if self.end_lows is None else self.end_lows.of(positions, np.asarray(batch.times), batch.keys)[0]
        bounds, called = self._decide(batch, matches, keys, row_keys, firsts)
        codes = np.zeros(0, np.uint64)
        if self.against is not None:
            codes = np.concatenate([self._waiting.coded(), _codes(found)])
            off = np.array(_called_off(self.against.stream(batch), matches, codes), np.int64).reshape(-1, 2)
            if self.patience is not None:  # not those that had been sure before
                off = off[matches.end[off[:, 0]] >= firsts[np.searchsorted(positions, off[:, 1])]]
            bounds[off[:, 0]], called[off[:, 0]] = 0, True
        return self._give(_Waiting(matches, keys, highs, codes), bounds, called)

    def _decide(
        self, batch: Batch, matches: MatchBatch, keys: np.ndarray, row_keys: np.ndarray, lows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of each match the first start that still waits when it is decided, with patience the first end: int64 (m,).
        True if an event of ψ decides it: bool (m,)."""
        assert self._absent is not None
        strays = ~self._absent.evaluate(batch) & (row_keys >= 0)
        if self._lows_by_key:
            there = row_keys >= 0
            self._lows = grow(self._lows, int(row_keys.max()) + 1)
            self._lows[row_keys[there]] = lows[there]  # the last row of a key wins
            bounds = self._lows[np.maximum(keys, 0)]
        else:
            bounds = np.full(len(matches), lows[-1])
        bounds[keys == _SURE] = NEVER
        # Rows in order of key and position, as one number each; of a match, the first row that may be a stray.
        stray = np.flatnonzero(strays)
        stray = stray[in_order(row_keys[stray])]
        width = len(batch.positions) + 1
        behind = keys * width + np.searchsorted(np.asarray(batch.positions, np.int64), matches.end, "right")
        place = np.searchsorted(row_keys[stray] * width + stray, behind)
        mine = np.flatnonzero(place < len(stray))
        mine = mine[row_keys[stray[place[mine]]] == keys[mine]]
        called = np.zeros(len(matches), bool)
        bounds[mine], called[mine] = lows[stray[place[mine]]], True
        return bounds, called

    def _give(self, some: _Waiting, bounds: np.ndarray, called: np.ndarray | bool) -> Iterator[MatchBatch]:
        """The matches that start (with patience, end) before their bounds; the others wait on, but for those that are
        `called` off."""
        matches, by_end = some.matches, self.patience is not None
        closed = (matches.end if by_end else matches.start) < bounds
        given = _pick(matches, closed)
        waits = ~closed & ~np.asarray(called)
        if self.roots is not None and not by_end:
            parts = closed & ~np.asarray(called) & (bounds < some.highs)
            rest = matches.start.copy()
            rest[parts] = self.roots.nodes.next_starts(_ranges(_pick(matches, parts), bounds[parts]))
            matches, waits = replace(matches, start=rest), waits | (parts & (rest < some.highs))
        codes = some.codes[waits] if len(some.codes) else some.codes
        self._waiting = _Waiting(_pick(matches, waits), some.keys[waits], some.highs[waits], codes)
        if self.roots is None:
            return iter((given,))
        upto = some.highs if by_end else np.minimum(some.highs, bounds)
        return self.roots.matches(_ranges(given, upto[closed]))

    def started_before(self, matches: MatchBatch, high: int) -> Iterator[MatchBatch]:
        """Those of `matches`, of one end, that start before `high`."""
        some = _pick(matches, matches.start < high)
        if not len(some):
            return iter(())
        return iter((some,)) if self.roots is None else self.roots.matches(_ranges(some, np.full(len(some), high)))

    def forget(self, keys: np.ndarray) -> None:
        """Note that these partitions get no more rows: matches that wait in them are sure, and given with the next
        matches."""
        if self.against is not None:
            self.against.forget(keys)
        if self.beginning is not None:
            self.beginning.forget(keys)
        self._waiting.keys[np.isin(self._waiting.keys, keys)] = _SURE
        if self._lows_by_key:
            self._lows[keys[keys < len(self._lows)]] = 0

    def advance(self, lows: Lows | None, place: int) -> Iterator[MatchBatch]:
        """The matches that are decided at `place`, as no row before it will come any more.

        `lows`: what the rows so far were measured by, None before the first. `place` is what the window is measured
        in; a window over positions closes by events alone.
        """
        lows = lows if self.end_lows is None else self.end_lows
        timed = lows is not None and lows.window.is_bounded and not lows.window.by_position
        bounds = np.full(len(self._waiting.keys), lows.at(place) if lows is not None and timed else 0)
        bounds[self._waiting.keys == _SURE] = NEVER
        return self._give(self._waiting, np.minimum(bounds, NEVER), False)

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
        """With patience, the least start of the matches that wait, which are kept although their windows have closed;
        NEVER if there is none."""
        return NEVER if self.patience is None else int(self._waiting.matches.start.min(initial=NEVER))

    @property
    def places(self) -> np.ndarray:
        """The positions that windows are compared with, besides those of runs: int64 (n,)."""
        return np.zeros(0, np.int64) if self.beginning is None else self.beginning.entries[1]

    @property
    def sure(self) -> np.ndarray:
        """The starts, ends and positions of the matches that are sure, and wait to be given with the next ones: int64
        (n,)."""
        if _SURE not in self._waiting.keys:
            return np.zeros(0, np.int64)
        matches = _pick(self._waiting.matches, self._waiting.keys == _SURE)
        taken = matches.positions if self.roots is None else self.roots.nodes.positions(_ranges(matches, matches.end))
        return np.concatenate([matches.start, matches.end, taken])

    def take_back(self, matches: MatchBatch, keys: np.ndarray, highs: np.ndarray, lows: dict[int, int]) -> None:
        """Set what is `waiting` and, if partitions have windows of their own, the first live start of each one that had
        events meanwhile."""
        self._waiting = _Waiting(matches, keys, highs)
        if lows:
            self._lows = grow(self._lows, max(lows) + 1)
            self._lows[list(lows)] = list(lows.values())

    def close(self) -> Iterator[MatchBatch]:
        """All that still waits: the stream ends, and nothing can come between."""
        return self._give(self._waiting, np.full(len(self._waiting.keys), NEVER), False)

    def compact(self, compact: Callable[[np.ndarray, np.ndarray], None], lows: np.ndarray) -> None:
        """`compact`, that of a `Run`, which keeps the nodes below the roots. `lows`: as of `Run.cell_lows`."""
        matches = self._waiting.matches
        table = _ranges(matches, matches.end)
        compact(lows, table)
        self._waiting.matches = replace(matches, positions=table[:, k.O_NODE].copy())

    def snapshot(self) -> dict[str, Any]:
        """The waiting matches and all else, as plain values."""
        if self.end_lows is not None:
            self.end_lows.keep(self._waiting.matches.end)
        return {
            "matches": self._waiting.matches.snapshot(),
            "keys": self._waiting.keys,
            "highs": self._waiting.highs,
            "lows": self._lows,
            "end_lows": None if self.end_lows is None else self.end_lows.snapshot(),
            "beginning": None if self.beginning is None else self.beginning.snapshot(),
            "against": None if self.against is None else self.against.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`, but for `against`."""
        self._lows = array(state["lows"], "windows", low=0)
        most = len(self._lows) - 1 if self._lows_by_key else None
        waiting = MatchBatch.restore(state["matches"])
        fit = (waiting.start >= 0) & (waiting.start <= waiting.end)
        expect(fit.all(), "matches that end no earlier than they start")
        keys = array(state["keys"], "keys", rows=len(waiting), low=_SURE, high=most)
        highs = array(state["highs"], "bounds", rows=len(waiting), low=0)
        if self.end_lows is not None:
            self.end_lows.restore(state["end_lows"])
        if self.beginning is not None:
            self.beginning.restore(state["beginning"])
        if self.roots is not None:
            one = len(waiting.positions) == len(waiting) and bool((np.diff(waiting.offsets) == 1).all())
            expect(one and self.roots.nodes.are_known(_ranges(waiting, waiting.end)), "roots of nodes that are there")
        self._waiting = _Waiting(waiting, keys, highs)


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
    index = np.flatnonzero(wanted)
    sizes = np.diff(matches.offsets)
    places = np.repeat(wanted, sizes)
    rows = None if matches.rows is None else [matches.rows[i] for i in index.tolist()]
    offsets = np.concatenate([[0], np.cumsum(sizes[index])]).astype(np.int64)
    labels = None if matches.labels is None else matches.labels[places]
    return MatchBatch(matches.start[index], matches.end[index], offsets, matches.positions[places], rows, labels)
