"""Aggregates over matches as nodes that these share, or over a list of matches: a row for each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ceql.results.history import History
from ceql.results.selected import events_at
from ceql.results.sums import Summing, fold_matches, frozen, join_rows
from spaseq.core.integers import different

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch, Program
    from spaseq.core.engine.kernels.sums.layout import Nodes
    from spaseq.core.engine.node_sums import NodeSums
    from spaseq.core.events import EventBatch


class Folding:
    """Folds the matches of one evaluation. `kinds`: as of `Summed`. Memory is O(events at which matches end), and a row
    for each node if these are added up."""

    def __init__(self, program: Program) -> None:
        self.summing: Summing = cast("Summing", program.summed)
        self.kinds: list[list[Any]] = self.summing.kinds()
        self._labels = program.labels
        every = program.labels or ()
        self._takes = {name: np.array([name in label for label in every], bool) for name in self.summing.variables}
        self.nodes: NodeSums | None = None
        if program.adds_nodes:
            from spaseq.core.engine.node_sums import NodeSums  # loads the kernels

            self.nodes = NodeSums(program, self.summing)

    @staticmethod
    def of(program: Program) -> Folding | None:
        """That of a program whose matches are added up behind the engine."""
        return Folding(program) if program.listed or program.adds_nodes else None

    def fold(self, parts: Iterable[MatchBatch], history_of: Callable[[MatchBatch], History]) -> Iterator[MatchBatch]:
        """The rows of all matches of the parts, which are those of one batch."""
        rows = [self._fold(part, history_of(part)) for part in parts if len(part)]
        if rows:
            yield join_rows(self.summing, rows)

    def _fold(self, matches: MatchBatch, history: History) -> MatchBatch:
        history = history.about(matches)
        if self.nodes is not None and matches.nodes is not None:
            return self._add_nodes(self.nodes, matches.nodes, history)
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

    def _add_nodes(self, sums: NodeSums, nodes: Nodes, history: History) -> MatchBatch:
        """The rows of the events of a part, with the weights of the events that its nodes mark, each once."""
        marks = np.flatnonzero(nodes.pairs[:, 1] < 0)
        places = -1 - nodes.pairs[marks, 1]
        positions, own = different(places >> nodes.bits)
        may = np.zeros((len(positions), len(self._labels or (None,))), bool)
        may[own, places & ((1 << nodes.bits) - 1)] = True
        attributes = self.summing.attributes
        weights = self.summing.weigh(
            lambda some: events_at(history, positions[some], attributes), may, self._labels, self.kinds
        )
        which = np.zeros(len(nodes.pairs), np.int64)
        which[marks] = own
        return sums.add(nodes, which, weights, frozen(self.kinds))

    def restore(self, kinds: Any) -> None:
        """Go on from a snapshot."""
        self.kinds = self.summing.read_kinds(kinds)
