"""Complete partial matches as complex events: intervals and marked positions, each once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spaseq.core.engine.lazy.partial import Partial
from spaseq.core.engine.lazy.plan import BranchPlan
from spaseq.core.engine.lazy.space import Space
from spaseq.core.engine.program.matches import MatchBatch


@dataclass(slots=True)
class Found:
    """Matches of one block: `start`, `end` (m,) and `marked` (m, w), positions ascending, then -1."""

    start: np.ndarray
    end: np.ndarray
    marked: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.start.nbytes + self.end.nbytes + self.marked.nbytes)

    @staticmethod
    def of(space: Space, plan: BranchPlan, partial: Partial, marks: frozenset[int], strict: bool) -> Found:
        """The matches of `partial`. `marks`: the leaves that mark; `strict`: only if the marked positions are an
        interval."""
        columns = [partial.columns[n][:, None] for n in plan.leaves if n in marks]
        columns += [partial.extra[:, c, None] for c, leaf in enumerate(partial.kinds) if leaf in marks]
        rows = space.rows
        handles = np.hstack(columns) if columns else np.zeros((len(partial), 0), np.int64)
        handles.sort(axis=1)
        twice = np.zeros(handles.shape, bool)  # two leaves of a conjunction may take one event
        twice[:, 1:] = handles[:, 1:] == handles[:, :-1]
        low, high = partial.low, partial.high
        if strict and handles.shape[1]:
            ordinals = rows.ordinal.values[handles - rows.base]
            ok = ordinals[:, -1] - ordinals[:, 0] + 1 == (~twice).sum(axis=1)
            handles, twice, low, high = handles[ok], twice[ok], low[ok], high[ok]
        places = rows.position.values
        marked = places[handles - rows.base]
        if twice.any():
            marked[twice] = np.iinfo(np.int64).max
            marked.sort(axis=1)
            marked[marked == np.iinfo(np.int64).max] = -1
        return Found(places[low - rows.base], places[high - rows.base], marked)

    @staticmethod
    def together(parts: list[Found], unique: bool) -> MatchBatch:
        """In order of their ends. Unless `unique`, equal ones are one: O(m log m)."""
        width = max(p.marked.shape[1] for p in parts)
        columns = 2 + width
        table = np.full((sum(len(p.start) for p in parts), columns), -1, np.int64)
        at = 0
        for p in parts:
            stop = at + len(p.start)
            table[at:stop, 0], table[at:stop, 1] = p.end, p.start
            table[at:stop, 2 : 2 + p.marked.shape[1]] = p.marked
            at = stop
        if unique:
            table = table[np.argsort(table[:, 0], kind="stable")]
        else:
            table = table[np.lexsort(table.T[::-1])]
            fresh = np.ones(len(table), bool)
            fresh[1:] = (table[1:] != table[:-1]).any(axis=1)
            table = table[fresh]
        marked = table[:, 2:]
        there = marked >= 0
        offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
        return MatchBatch(table[:, 1].copy(), table[:, 0].copy(), offsets, marked[there])
