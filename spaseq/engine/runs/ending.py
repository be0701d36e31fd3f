"""Absence at the end: `φ ; NOT ψ` holds for a match of φ once its window has closed without a ψ behind it.

Matches of φ wait here. Where an event of ψ comes behind the end of a waiting match and inside its window, the match is
off. When the window's first live start has passed a match's own, its window has closed, and the match is reported. The
end of the stream closes all windows. The interval of the match is that of φ.

Where ψ has conditions on what φ took, `Ending.against` evaluates `φ ; ψ`: its matches are those of φ that are off, with
the event of ψ behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from spaseq.engine.program.matches import MatchBatch
from spaseq.engine.program.window import Lows, Window
from spaseq.engine.runs.base import grown
from spaseq.integers import in_order
from spaseq.pattern import Batch, NoneOf
from spaseq.snapshot import array

_SURE: Final = -2
_NEVER: Final = 1 << 62


@dataclass(slots=True)
class _Waiting:
    """Matches whose windows are open, and the partition of each (0 without PARTITION BY; `_SURE`, of one that is
    forgotten). `codes`: those of `_codes`, where they have been asked for."""

    matches: MatchBatch = field(default_factory=MatchBatch)
    keys: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    codes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint64))

    def coded(self) -> np.ndarray:
        """The codes of the matches."""
        if len(self.codes) != len(self.matches):
            self.codes = _codes(self.matches)
        return self.codes


class Calling(Protocol):
    """What finds the matches that are off, each with one event more (`spaseq.engine.runs.evaluation.Pushed`)."""

    def stream(self, batch: Batch) -> Iterator[MatchBatch]: ...

    def forget(self, numbers: np.ndarray) -> int | None: ...

    def snapshot(self) -> dict[str, Any]: ...


class Ending:
    """The waiting matches of one evaluation. `against`: set by whoever opens the evaluation."""

    def __init__(self, absent: NoneOf, window: Window) -> None:
        self.against: Calling | None = None
        self.window: Window = window
        self._absent = absent
        self._lows_by_key = window.per_partition
        self._waiting = _Waiting()
        self._lows = np.zeros(0, np.int64)

    def push(self, batch: Batch, found: MatchBatch, lows: np.ndarray) -> MatchBatch:
        """The matches whose windows close within `batch`, given those of φ that it completes; without register rows.

        `lows`: first live start at each row, int64 (n,). Positions must differ from row to row. O((matches + rows) log
        rows).
        """
        positions = np.asarray(batch.positions, np.int64)
        row_keys = np.zeros(len(positions), np.int64) if batch.keys is None else np.asarray(batch.keys, np.int64)
        found_keys = row_keys[np.searchsorted(positions, found.end)] if len(found) else np.zeros(0, np.int64)
        found = replace(found, rows=None)
        matches = MatchBatch.concat([self._waiting.matches, found]) if len(found) else self._waiting.matches
        keys = np.concatenate([self._waiting.keys, found_keys])
        strays = ~self._absent.evaluate(batch) & (row_keys >= 0)
        if self._lows_by_key:
            there = row_keys >= 0
            self._lows = grown(self._lows, int(row_keys.max()) + 1)
            self._lows[row_keys[there]] = lows[there]  # the last row of a key wins
            open_from = self._lows[np.maximum(keys, 0)]
        else:
            open_from = np.full(len(matches), lows[-1])
        open_from[keys == _SURE] = _NEVER
        # Rows in order of key and position, as one number each; of a match, the first row that may be a stray.
        stray = np.flatnonzero(strays)
        stray = stray[in_order(row_keys[stray])]
        width = len(positions) + 1
        behind = keys * width + np.searchsorted(positions, matches.end, "right")
        place = np.searchsorted(row_keys[stray] * width + stray, behind)
        mine = np.flatnonzero(place < len(stray))
        mine = mine[row_keys[stray[place[mine]]] == keys[mine]]
        off = np.zeros(len(matches), bool)
        off[mine] = matches.start[mine] >= lows[stray[place[mine]]]
        codes = np.zeros(0, np.uint64)
        if self.against is not None:
            codes = np.concatenate([self._waiting.coded(), _codes(found)])
            off[_called_off(self.against.stream(batch), matches, codes)] = True
        closed = ~off & (matches.start < open_from)
        waiting = ~off & ~closed
        self._waiting = _Waiting(_pick(matches, waiting), keys[waiting], codes[waiting] if len(codes) else codes)
        return _pick(matches, closed)

    def forget(self, keys: np.ndarray) -> None:
        """No row of these partitions comes any more: what waits in them is sure, and given with the next matches."""
        if self.against is not None:
            self.against.forget(keys)
        self._waiting.keys[np.isin(self._waiting.keys, keys)] = _SURE
        if self._lows_by_key:
            self._lows[keys[keys < len(self._lows)]] = 0

    def advance(self, lows: Lows | None, place: int) -> MatchBatch:
        """The matches whose windows are closed at `place`, as no row before it will come any more.

        `lows`: what the rows so far were measured by, None where there was none. `place` is what the window is measured
        in; a window over positions closes by events alone.
        """
        closed = self._waiting.keys == _SURE
        if lows is not None and self.window.is_bounded and not self.window.by_position:
            closed |= self._waiting.matches.start < lows.at(place)
        if not closed.any():
            return MatchBatch()
        done = _pick(self._waiting.matches, closed)
        self._waiting = _Waiting(_pick(self._waiting.matches, ~closed), self._waiting.keys[~closed])
        return done

    @property
    def undecided(self) -> int | None:
        """The least end of a match that waits; None if none does."""
        return int(self._waiting.matches.end.min()) if len(self._waiting.matches) else None

    @property
    def waiting(self) -> tuple[MatchBatch, np.ndarray]:
        """The matches that wait, and the partition of each: int64 (m,)."""
        return self._waiting.matches, self._waiting.keys

    def take_back(self, matches: MatchBatch, keys: np.ndarray, lows: dict[int, int]) -> None:
        """What waits from here on (`waiting`), and, where windows are of partitions, the first live start of each of
        which there were events besides."""
        self._waiting = _Waiting(matches, keys)
        if lows:
            self._lows = grown(self._lows, max(lows) + 1)
            self._lows[list(lows)] = list(lows.values())

    def close(self) -> MatchBatch:
        """All that still waits: the stream ends, and nothing can come between."""
        rest, self._waiting = self._waiting.matches, _Waiting()
        return rest

    def snapshot(self) -> Any:
        """What waits, as plain values, and behind them what `against` has, where that is set."""
        plain = self._waiting.matches.snapshot(), self._waiting.keys, self._lows
        return plain if self.against is None else (*plain, self.against.snapshot())

    def restore(self, state: Any) -> None:
        """The opposite of `snapshot`, but for `against`."""
        matches, keys, lows = state[:3]
        self._lows = array(lows, "windows", low=0)
        most = len(self._lows) - 1 if self._lows_by_key else None
        keys = array(keys, "keys", rows=len(matches[0]), low=_SURE, high=most)
        self._waiting = _Waiting(MatchBatch.restore(matches), keys)


def _called_off(found: Iterable[MatchBatch], matches: MatchBatch, codes: np.ndarray) -> list[int]:
    """Which of the matches, whose `_codes` are given, are `found` with an event behind them.

    O(matches) array operations where any are found, besides a look at those that are.
    """
    off: list[int] = []
    for part in found:  # to its end
        others = _codes(part, 1)
        places: dict[tuple[int, bytes], list[int]] = {}
        for i in np.flatnonzero(np.isin(codes, others)).tolist():
            places.setdefault(_name(matches, i), []).append(i)
        for i in np.flatnonzero(np.isin(others, codes)).tolist():
            off += places.get(_name(part, i, 1), ())
    return off


def _name(matches: MatchBatch, row: int, behind: int = 0) -> tuple[int, bytes]:
    """What a match is told apart by, without its last `behind` positions."""
    taken = matches.positions[matches.offsets[row] : matches.offsets[row + 1] - behind]
    return int(matches.start[row]), taken.tobytes()


def _codes(matches: MatchBatch, behind: int = 0) -> np.ndarray:
    """A number for each match, equal for those of equal `_name`, and hardly ever for others: uint64 (m,)."""
    summed = np.zeros(len(matches.positions) + 1, np.uint64)
    np.cumsum(_mixed(matches.positions), out=summed[1:])  # wraps around
    own: np.ndarray = summed[matches.offsets[1:] - behind] - summed[matches.offsets[:-1]]
    return own + _mixed(~matches.start)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Integers scattered over 64 bits (the finaliser of splitmix64)."""
    mixed = values.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: np.ndarray = mixed ^ (mixed >> np.uint64(31))
    return found


def _pick(matches: MatchBatch, wanted: np.ndarray) -> MatchBatch:
    """The matches where `wanted`, in their order."""
    index = np.flatnonzero(wanted)
    sizes = np.diff(matches.offsets)
    places = np.repeat(wanted, sizes)
    rows = None if matches.rows is None else [matches.rows[i] for i in index.tolist()]
    offsets = np.concatenate([[0], np.cumsum(sizes[index])]).astype(np.int64)
    labels = None if matches.labels is None else matches.labels[places]
    return MatchBatch(matches.start[index], matches.end[index], offsets, matches.positions[places], rows, labels)
