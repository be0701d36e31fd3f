"""Aggregates over matches that are not listed, as nodes that these share: a row of numbers for each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.engine.kernels.sums.layout import NO_LEAST, Nodes, Rows
from spaseq.core.engine.kernels.sums.nodes import add_nodes
from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.engine.program.sums import Sums, no_rows
from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import attempt_rows

if TYPE_CHECKING:
    from spaseq.core.engine.program.program import Program
    from spaseq.core.engine.program.sums import Summed


class NodeSums:
    """The rows of the nodes that one evaluation has written (`MatchBatch.nodes`), by their numbers. Memory is that of
    rows for twice as many nodes as there is room for in the structure, and is under the budget `arena_bytes`."""

    def __init__(self, program: Program, summed: Summed) -> None:
        self._summed = summed
        self._takes = summed.takes(program.labels)
        self._budget = program.settings.arena_bytes
        self.values: Rows = no_rows(summed, 1)
        self.values.ints[0, 0] = 1
        self.values.ints[0, summed.totals :] = NO_LEAST

    def add(self, nodes: Nodes, which: np.ndarray, weights: Rows, kinds: tuple[tuple[Any, ...], ...]) -> MatchBatch:
        """The rows of the events at which matches end. All nodes must come here, in their order. `which`: int64
        (pairs,), the row in `weights` of the event that each node marks. O(nodes)."""
        self._make_room(int(nodes.last.max()) + 1)
        firsts = np.concatenate([[True], nodes.ends[1:] != nodes.ends[:-1]])
        ends, summed = nodes.ends[firsts], self._summed
        found = no_rows(summed, len(ends))
        attempt_rows(add_nodes, len(nodes.pairs), nodes, self.values, weights, which, self._takes, summed.totals, found)
        some = found.ints[:, 0] > 0  # all but an event whose nodes have not all come
        ends, ints, floats = ends[some], found.ints[some], found.floats[some]
        return MatchBatch(ends, ends, np.arange(len(ends) + 1), ends, sums=Sums(ints, floats, kinds))

    def _make_room(self, rows: int) -> None:
        if rows <= len(self.values.ints):
            return
        fresh = no_rows(self._summed, 2 * rows)
        used = fresh.ints.nbytes + fresh.floats.nbytes
        if used > self._budget:
            raise BudgetExceeded("arena_bytes", self._budget, used)
        for old, new in zip(self.values, fresh, strict=True):
            new[: len(old)] = old
        self.values = fresh
