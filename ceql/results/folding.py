"""Aggregates over matches that must be listed after all: the list of a batch becomes a row for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ceql.results.history import History
from ceql.results.selected import events_at
from ceql.results.sums import Summing, fold_matches, join_rows

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch, Program
    from spaseq.core.events import EventBatch


class Folding:
    """Folds the matches of one evaluation. `kinds`: as of `Summed`. Memory is O(events at which matches end)."""

    def __init__(self, summing: Summing, labels: tuple[frozenset[str], ...] | None) -> None:
        self.summing = summing
        self.kinds: list[list[Any]] = summing.kinds()
        every = labels or ()
        self._takes = {name: np.array([name in label for label in every], bool) for name in summing.variables}

    @staticmethod
    def of(program: Program) -> Folding | None:
        """That of a program whose matches are listed to be aggregated."""
        return Folding(cast("Summing", program.summed), program.labels) if program.listed else None

    def fold(self, parts: Iterable[MatchBatch], history_of: Callable[[MatchBatch], History]) -> Iterator[MatchBatch]:
        """The rows of all matches of the parts, which are those of one batch."""
        rows = [self._fold(part, history_of(part)) for part in parts if len(part)]
        if rows:
            yield join_rows(self.summing, rows)

    def _fold(self, matches: MatchBatch, history: History) -> MatchBatch:
        history = history.about(matches)
        attributes = self.summing.attributes

        def of(variable: str) -> tuple[np.ndarray, np.ndarray]:
            low, high = int(matches.offsets[0]), int(matches.offsets[-1])
            assert matches.labels is not None
            takes = self._takes[variable][matches.labels[low:high]]
            offsets = np.concatenate([[0], np.cumsum(takes)])[matches.offsets - low]
            return offsets, matches.positions[low:high][takes]

        def events(positions: np.ndarray) -> EventBatch:
            return events_at(history, positions, attributes)

        return fold_matches(self.summing, matches, of, events, self.kinds)

    def restore(self, kinds: Any) -> None:
        """Go on from a snapshot."""
        self.kinds = self.summing.read_kinds(kinds)
