"""The rows of a batch at which the predicates of an automaton may matter.

This is the lazy evaluation of [SPAseq] §7.3, by batches. The first step is evaluated at all events. A later step is
evaluated only behind the first event of its partition at which the step before it holds. It is also evaluated for runs
that wait for it from before the batch. Guards are ignored, and so is a window that closes inside the batch. So a
predicate may be evaluated at more rows than matter, never at fewer.

A predicate that did not hold at any event so far is evaluated at all of them, because the report of a query without
matches names these predicates (`spaseq.core.engine.progress`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

import numpy as np

from spaseq.core.automata import ACCEPT, CEA, INITIAL
from spaseq.core.integers import in_order
from spaseq.core.pattern import Batch

_STATES: Final = 256
"""More states are not looked at one by one."""

Waiting = Iterable[tuple[Iterable[int], np.ndarray]]
"""States in which a run may be, and the partitions in which it is: int64."""


class Narrows(Protocol):
    """A batch that can be asked about some of its rows alone."""

    def __len__(self) -> int: ...

    def narrowed(self, rows: np.ndarray) -> Batch:
        """The batch, in which predicates need be right at `rows` only, bool (n,), and hold at no others."""


class Needed:
    """The truth of an automaton's predicates at the rows at which it may matter.

    `applies`: True if rows can be left out: there are steps behind the first one, each of at most one predicate.
    """

    def __init__(self, cea: CEA) -> None:
        self._predicates = cea.predicates
        self.applies: bool = False
        if cea.states > _STATES or any(len(t.predicates) > 1 for out in cea.transitions for t in out):
            return
        self._asks = [sorted(frozenset().union(*(t.predicates for t in out))) for out in cea.transitions]
        self._ways = [
            sorted({(min(t.predicates, default=-1), t.target) for t in out if t.target not in (q, ACCEPT)})
            for q, out in enumerate(cea.transitions)
        ]
        self._order, self._stays = _in_order(cea)
        self.applies = len(self._asks[INITIAL]) < len(self._predicates)

    def truth(self, batch: Any, keys: np.ndarray | None, waiting: Waiting, met: int) -> np.ndarray:
        """bool (predicates, n): the truth of each predicate at each row at which it may matter, False at others.

        `batch`: one that `Narrows`. `keys`: the partition of each row, int64 (n,), or None. `waiting`: the runs alive
        in front of the batch. `met`: the predicates that have held so far, as bits; the others are evaluated at all
        rows. O(n) for each transition out of a state that a run may be in, besides the predicates.
        """
        rows = _Rows(len(batch), keys)
        truth = np.zeros((len(self._predicates), len(batch)), bool)
        known = np.zeros_like(truth)
        every = np.ones(len(batch), bool)
        for p, predicate in enumerate(self._predicates):
            if not met >> p & 1:
                truth[p], known[p] = rows.ordered(predicate.evaluate(batch.narrowed(every))), True
        live = {INITIAL: every}
        for states, partitions in waiting:
            places = rows.of(partitions)
            if places.any():
                for q in states:
                    live[q] = live[q] | places if q in live else places
        # In order of the states all that leads to one comes before it, but for ways around a cycle.
        todo = set(live)
        while todo:
            q = min(todo, key=self._order.__getitem__)
            todo.discard(q)
            for p in self._asks[q]:
                asked = live[q] & ~known[p]
                if asked.any():
                    narrow = batch.narrowed(rows.given(asked))
                    truth[p] |= rows.ordered(self._predicates[p].evaluate(narrow)) & asked
                    known[p] |= asked
            for p, target in self._ways[q]:
                reached = rows.behind(live[q] if p < 0 else live[q] & truth[p], stays=self._stays[target])
                if target in live:
                    reached |= live[target]
                    if reached.sum() == live[target].sum():
                        continue
                elif not reached.any():
                    continue
                live[target] = reached
                todo.add(target)
        for p in np.flatnonzero(truth.any(axis=1)).tolist():
            truth[p] = rows.given(truth[p])
        return truth


class _Rows:
    """The rows of a batch in order of their partitions, in which they are places."""

    def __init__(self, count: int, keys: np.ndarray | None) -> None:
        self._keys = keys
        self._places = np.arange(count)
        if keys is None:
            self._begins = np.zeros(count, np.int64)
            return
        self._order = in_order(keys)
        self._sorted = keys[self._order]
        first = np.ones(count, bool)
        first[1:] = self._sorted[1:] != self._sorted[:-1]
        self._begins = np.maximum.accumulate(np.where(first, self._places, 0))

    def ordered(self, values: np.ndarray) -> np.ndarray:
        """Values given by row, put in order of place."""
        return values if self._keys is None else values[self._order]

    def given(self, values: np.ndarray) -> np.ndarray:
        """Values given by place, put in order of row."""
        if self._keys is None:
            return values
        found = np.empty_like(values)
        found[self._order] = values
        return found

    def of(self, partitions: np.ndarray) -> np.ndarray:
        """The places of some partitions: bool (n,)."""
        return np.full(len(self._places), bool(len(partitions))) if self._keys is None else np.isin(
            self._sorted, partitions)  # fmt: skip

    def behind(self, fired: np.ndarray, *, stays: bool) -> np.ndarray:
        """The places next to those with `fired`, in their partitions; all later ones there, if a run `stays`."""
        found = np.zeros_like(fired)
        if stays:
            latest = np.maximum.accumulate(np.where(fired, self._places, -1))
            found[1:] = latest[:-1] >= self._begins[1:]
        else:
            found[1:] = fired[:-1] & (self._begins[1:] < self._places[1:])
        return found


def _in_order(cea: CEA) -> tuple[dict[int, int], list[bool]]:
    """The rank of each state, and, for each, True if there is a way from the state to itself. A state's rank is lower
    than those of the states behind it from which no way leads back."""
    after = [sorted({t.target for t in out} - {ACCEPT}) for out in cea.transitions]
    done: dict[int, None] = {}
    path: list[tuple[int, list[int]]] = []
    seen: set[int] = set()
    for root in range(cea.states):
        if root not in seen:
            seen.add(root)
            path.append((root, list(after[root])))
        while path:
            left = path[-1][1]
            if not left:
                done[path.pop()[0]] = None
            elif (following := left.pop()) not in seen:
                seen.add(following)
                path.append((following, list(after[following])))
    order = {state: rank for rank, state in enumerate(reversed(done))}
    return order, [_returns(after, state) for state in range(cea.states)]


def _returns(after: list[list[int]], state: int) -> bool:
    seen: set[int] = set()
    todo = list(after[state])
    while todo:
        following = todo.pop()
        if following == state:
            return True
        if following not in seen:
            seen.add(following)
            todo += after[following]
    return False
