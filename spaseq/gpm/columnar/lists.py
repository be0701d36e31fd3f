"""The triples of a batch of events, listed by predicate, and pairs of terms taken from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rdflib.term import URIRef

from spaseq.core.integers import apart, in_order
from spaseq.core.jit import attempt_rows
from spaseq.gpm.columnar import kernels as k
from spaseq.gpm.columnar.table import Space
from spaseq.rdf.columns import GraphBatch


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of terms (source, target), each at an event, in order of events: int32 (r,) each."""

    events: np.ndarray
    sources: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.events)

    @staticmethod
    def none() -> Pairs:
        """No pairs."""
        empty = np.zeros(0, np.int32)
        return Pairs(empty, empty, empty)

    @staticmethod
    def of(rows: np.ndarray, counting: bool) -> Pairs:
        """The pairs of `rows`, int32 (r, 3), sorted; each once unless `counting`."""
        if counting:
            rows = rows[in_order(rows[:, 0])]
        elif len(rows):
            rows = _once(rows)
        return Pairs(*(np.ascontiguousarray(rows[:, i], np.int32) for i in range(3)))

    def rows(self) -> np.ndarray:
        """(event, source, target) as one array: int32 (r, 3)."""
        return np.stack([self.events, self.sources, self.targets], axis=1)

    def turned(self) -> Pairs:
        """Each pair with source and target exchanged."""
        return Pairs(self.events, self.targets, self.sources)


def _once(rows: np.ndarray) -> np.ndarray:
    """Different rows of (event, source, target), none negative, sorted."""
    events, sources, targets = rows.astype(np.int64).T
    terms = int(max(sources.max(), targets.max())) + 1
    if (int(events.max()) + 1) * terms * terms >= 1 << 62:
        return np.unique(rows, axis=0)
    codes, ends = np.divmod(apart((events * terms + sources) * terms + targets), terms)
    return np.stack([*np.divmod(codes, terms), ends], axis=1)


class Lists:
    """The triples of some events by predicate and by event.

    * `triples`, `offsets`: as in `GraphBatch`, with terms numbered in `space`.
    * `numbers`: the number of the list of each predicate that has one; `which`: the same by the predicate's number in
      `space`, int32, -1 for others.
    * `budget`: the number of rows that one step of a pattern may have.
    * `layouts` caches the kernel's arguments of patterns, by the pattern's id, while terms keep their numbers.
    * `known_pairs` caches the pairs of property paths, `known_matches` the solutions of basic patterns: the events of
      the request, and the events and slots of the solutions.
    """

    def __init__(
        self,
        triples: np.ndarray,
        offsets: np.ndarray,
        space: Space,
        numbers: Mapping[URIRef, int],
        which: np.ndarray,
        budget: int,
        layouts: dict[int, tuple[Any, np.ndarray]] | None = None,
    ) -> None:
        self.triples = triples
        self.offsets = offsets
        self.budget = budget
        self.space = space
        self.layouts: dict[int, tuple[Any, np.ndarray]] = {} if layouts is None else layouts
        self._numbers = numbers
        self.rows: np.ndarray = np.empty(len(triples), np.int32)
        self.starts: np.ndarray = np.empty((len(numbers), len(offsets)), np.int64)
        self._longest = np.zeros(len(numbers), np.int64)
        attempt_rows(k.list_triples, len(triples) + self.starts.size, triples, offsets, which, self.rows, self.starts,
                     self._longest)  # fmt: skip
        self.known_pairs: dict[Any, Pairs] = {}
        self.known_matches: dict[Any, tuple[np.ndarray, np.ndarray, tuple[np.ndarray, ...]]] = {}
        self._held: dict[tuple[URIRef, ...], np.ndarray] = {}

    @staticmethod
    def of(batch: GraphBatch, space: Space, wanted: Iterable[URIRef], budget: int) -> Lists:
        """The lists of a batch, for the predicates `wanted`."""
        numbers = {p: i for i, p in enumerate(p for p in dict.fromkeys(wanted) if space.find(p) >= 0)}
        which = np.full(max(1, space.base), -1, np.int32)
        for predicate, number in numbers.items():
            which[space.find(predicate)] = number
        return Lists(batch.triples, batch.offsets, space, numbers, which, budget)

    @staticmethod
    def none(events: int, space: Space, budget: int) -> Lists:
        """Those of so many events without triples."""
        none, which = np.zeros((0, 3), np.int32), np.full(1, -1, np.int32)
        return Lists(none, np.zeros(events + 1, np.int64), space, {}, which, budget)

    def __len__(self) -> int:
        """The number of events."""
        return len(self.offsets) - 1

    def number(self, predicate: URIRef) -> int:
        """The number of the list of a wanted predicate; -1 if the predicate does not occur in the batch."""
        return self._numbers.get(predicate, -1)

    def longest(self, number: int) -> int:
        """The greatest number of triples that a list has at one event."""
        return int(self._longest[number])

    def holding(self, predicates: Iterable[URIRef]) -> np.ndarray:
        """The events that have all of `predicates`, which must be wanted ones: int32, ascending."""
        asked = tuple(predicates)
        found = self._held.get(asked)
        if found is None:
            found = self._held[asked] = self._holding(asked)
        return found

    def _holding(self, predicates: Iterable[URIRef]) -> np.ndarray:
        found = np.ones(len(self), bool)
        for predicate in predicates:
            number = self.number(predicate)
            if number < 0:
                return np.zeros(0, np.int32)
            found &= self.starts[number, 1:] > self.starts[number, :-1]
        return np.flatnonzero(found).astype(np.int32)

    def pairs(self, predicate: URIRef) -> Pairs:
        """The triples of one predicate as pairs."""
        number = self.number(predicate)
        if number < 0:
            return Pairs.none()
        starts = self.starts[number]
        rows = self.rows[starts[0] : starts[-1]]
        events = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(starts))
        return Pairs(events, self.triples[rows, 0], self.triples[rows, 2])
