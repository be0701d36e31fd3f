"""What a stream is like, as far as the choice of an evaluator depends on it: rates, window sizes, selectivities.

Counters with exponential decay over batches, and for conditions over several events a sample of tuples. All of it is
a function of the events alone, so a run over the same batches always chooses alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from spaseq.engine.lazy.conditions import Conditions
from spaseq.engine.lazy.normal import Branch, Test
from spaseq.engine.settings import Batch
from spaseq.errors import EventError
from spaseq.pattern import Predicate

__all__ = ["Statistics"]

TUPLES: Final = 256
"""Tuples that a selectivity is estimated from, per observation."""
MEMORY: Final = 8_000
"""Events over which counters decay to about a third."""


class Statistics:
    """Rates of sets of predicates and selectivities of tests of `branches`; O(events) per observation."""

    def __init__(self, branches: Sequence[Branch], conditions: Conditions | None) -> None:
        self._conditions = conditions
        leaves = [leaf for branch in branches for leaf in branch.all_leaves()]
        self._kind_of = {leaf.number: leaf.predicates for leaf in leaves}
        self._kinds = tuple(dict.fromkeys(self._kind_of.values()))
        self._tests = tuple(dict.fromkeys(t for branch in branches for t in _tests(branch) if not t.whole))
        self._held = {test: (0.0, 0.0) for test in self._tests}
        self._counts = dict.fromkeys(self._kinds, 0.0)
        self.events = 0.0
        """Decayed number of events."""
        self.window = 0.0
        """Decayed sum of the number of events in the windows that end with each."""
        self._draws = 0

    def observe(self, batch: Batch, in_window: float, sample: bool) -> None:
        """Count `batch`; `in_window`: events in a window, on average. `sample`: selectivities too."""
        size = len(batch)
        fade = float(np.exp(-size / MEMORY))
        predicates: dict[Predicate, np.ndarray] = {p: p.evaluate(batch) for p in dict.fromkeys(_all(self._kinds))}
        self.events = self.events * fade + size
        self.window = self.window * fade + size * in_window
        found = {}
        for kind in self._kinds:
            holds = [predicates[p] for p in kind]
            rows = np.flatnonzero(np.logical_and.reduce(holds)) if holds else np.arange(size)
            self._counts[kind] = self._counts[kind] * fade + len(rows)
            found[kind] = rows
        if sample and self._conditions is not None and self._tests:
            self._sample(batch, found, fade)

    def rate(self, leaf: int) -> float:
        """Events of a leaf's kind per event; never 0, for what has not come may come."""
        return max(self._counts[self._kind_of[leaf]], 0.5) / max(self.events, 1.0)

    def rates(self) -> tuple[float, ...]:
        """What tells whether the stream has changed: the rate of every kind, and the size of windows."""
        return (*(max(c, 0.5) / max(self.events, 1.0) for c in self._counts.values()), self.events_in_window)

    def selectivity(self, test: Test) -> float:
        """The part of the tuples that hold; 1/2 while nothing is known."""
        held, tried = self._held.get(test, (0.0, 0.0))
        return (held + 0.5) / (tried + 1.0)

    @property
    def events_in_window(self) -> float:
        """On average."""
        return self.window / max(self.events, 1.0)

    def state(self) -> Any:
        """What a snapshot must hold."""
        return (list(self._held.values()), list(self._counts.values()), self.events, self.window, self._draws)

    def restore(self, state: Any) -> None:
        """The opposite of `state`, for the same branches."""
        held, counts, self.events, self.window, self._draws = state
        self._held = dict(zip(self._tests, held, strict=True))
        self._counts = dict(zip(self._kinds, counts, strict=True))

    def _sample(self, batch: Any, found: dict[frozenset[Predicate], np.ndarray], fade: float) -> None:
        assert self._conditions is not None
        rng = np.random.default_rng(self._draws)
        self._draws += 1
        for test in self._tests:
            pools = [
                np.concatenate([found[self._kind_of[leaf]] for leaf in sorted(leaves) if leaf in self._kind_of])
                for _, leaves in test.variables
            ]
            if not all(len(pool) for pool in pools):
                continue
            rows = np.stack([rng.choice(pool, TUPLES) for pool in pools])
            kept, at = np.unique(rows, return_inverse=True)
            at = at.reshape(rows.shape)
            memory = self._conditions.memory()
            memory.append(batch, kept)
            try:
                ok = memory.test(test.guard, {v: at[i] for i, (v, _) in enumerate(test.variables)})
            except EventError:
                continue  # the evaluation itself says so, should it come to compare such values
            held, tried = self._held[test]
            self._held[test] = held * fade + float(np.count_nonzero(ok)), tried * fade + len(ok)


def _all(kinds: tuple[frozenset[Predicate], ...]) -> list[Predicate]:
    return [p for kind in kinds for p in kind]


def _tests(branch: Branch) -> list[Test]:
    return [*branch.tests, *(t for r in branch.rounds for b in r.branches for t in _tests(b))]
