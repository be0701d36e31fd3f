"""The best matches of each event, found over nodes that matches share: a bound for each node, and a search."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.core.engine.kernels.sums import layout as s
from spaseq.core.engine.kernels.sums.best import find_best
from spaseq.core.engine.kernels.sums.layout import Nodes, Ranks, Search
from spaseq.core.engine.program.matches import MatchBatch
from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import attempt_rows
from spaseq.core.watch import check

if TYPE_CHECKING:
    from spaseq.core.engine.program.program import Program

_MATCHES: Final = 1 << 15
_PLACES: Final = 1 << 17
_WAYS: Final = 1 << 10
_CHOICES: Final = 1 << 10
_DEPTH: Final = 128
"""Two leftist heaps of 2^63 rows have no more on the way down their right ones."""
_EACH: Final = 8
"""A node that is met is about so many rows of work."""


class NodeBest:
    """Finds the `most` best matches of each event among the nodes that one evaluation has written
    (`MatchBatch.nodes`). A match has a sum of `values` numbers, of which the first that differ decide. The last
    `placed` of them are its start, and minus the positions of the next events that it takes.

    Memory is that of two rows for twice as many nodes as there is room for in the structure, and of the ways that a
    search has left. It is under the budget `arena_bytes`.
    """

    def __init__(self, program: Program, values: int, most: int, placed: int) -> None:
        self._budget = program.settings.arena_bytes
        self._placed = placed
        self._ranks = _no_ranks(1, values)._replace(
            choices=np.zeros((_CHOICES, s.CHOICE_COLUMNS), np.int64), path=np.zeros(_DEPTH, np.int64)
        )
        self._search = Search(
            np.zeros(s.BEST_SLOTS, np.int64), np.zeros((_WAYS, 2), np.int64), np.zeros((_WAYS, 2 * values)),
            np.zeros((_WAYS, 3), np.int64), np.zeros((_WAYS, values)), np.zeros((_WAYS, s.TRAIL_COLUMNS), np.int64),
            np.zeros((_WAYS, values)), np.zeros((most, values)), np.zeros((2, values)),
        )  # fmt: skip
        self._matches = np.zeros((3, _MATCHES + 1), np.int64)
        self._places = np.zeros(_PLACES, np.int64)

    @property
    def arrays(self) -> list[np.ndarray]:
        """All of them."""
        return [*self._ranks, *self._search, self._matches, self._places]

    def find(
        self, nodes: Nodes, which: np.ndarray, weights: np.ndarray, used: int, slack: float, *, labelled: bool
    ) -> Iterator[MatchBatch]:
        """The best matches of each event, those that tie with the last of them, and maybe others. All nodes must come
        here, in their order. `which`: int64 (pairs,), the row in `weights` of what each node adds. The first `used`
        numbers decide; the last of these may be wrong by less than half of `slack`. `labelled`: matches have labels.
        O(nodes), and for each match the ways off its own."""
        self._make_room(int(nodes.last.max()) + 1)
        st = self._search.st
        st[: s.B_NUMBER] = 0
        while True:
            status = attempt_rows(
                find_best, _EACH * len(nodes.pairs), nodes, weights, which, self._placed, self._ranks, self._search,
                used, slack, self._matches, self._places,
            )  # fmt: skip
            check()
            if status in (s.BEST_DONE, s.BEST_FLUSH):
                found = self._flush(nodes.bits, labelled)
                if len(found):
                    yield found
                if status == s.BEST_DONE:
                    return
                if st[s.B_NEEDED] > len(self._places):
                    self._places = np.zeros(2 * int(st[s.B_NEEDED]), np.int64)
            elif status == s.BEST_TRAIL:
                self._double_ways("trail", "open_sums")
            elif status == s.BEST_CHOICES:
                self._ranks = self._ranks._replace(choices=self._double(self._ranks.choices))
            else:
                self._double_ways("heap", "heap_sums", "stack", "stack_sums")

    def _flush(self, bits: int, labelled: bool) -> MatchBatch:
        """The matches that the kernel has written."""
        st = self._search.st
        count, places = int(st[s.B_MATCHES]), self._places[: st[s.B_PLACES]]
        st[[s.B_MATCHES, s.B_PLACES]] = 0
        start, end, offsets = self._matches[:, : count + 1].copy()
        labels = places & ((1 << bits) - 1) if labelled else None
        return MatchBatch(start[:count], end[:count], offsets, places >> bits, labels=labels)

    def _make_room(self, rows: int) -> None:
        old = self._ranks
        if rows <= len(old.top):
            return
        fresh = _no_ranks(2 * rows, old.best.shape[1])
        self._charge(sum(each.nbytes for each in fresh) + old.choices.nbytes)
        for before, after in zip(old[:4], fresh[:4], strict=True):
            after[: len(before)] = before
        self._ranks = fresh._replace(choices=old.choices, path=old.path)

    def _double_ways(self, *names: str) -> None:
        self._search = self._search._replace(**{name: self._double(getattr(self._search, name)) for name in names})

    def _double(self, array: np.ndarray) -> np.ndarray:
        self._charge(2 * array.nbytes)
        return np.concatenate([array, np.zeros_like(array)])

    def _charge(self, used: int) -> None:
        if used > self._budget:
            raise BudgetExceeded("arena_bytes", self._budget, used)


def _no_ranks(rows: int, values: int) -> Ranks:
    """Room for so many numbers, and for no choices yet."""
    ints, none = np.zeros((rows, 3), np.int64), np.zeros((0, s.CHOICE_COLUMNS), np.int64)
    doubles = np.zeros((rows, values)), np.zeros((rows, values))
    return Ranks(np.zeros(rows, np.int64), ints, *doubles, none, np.zeros(0, np.int64))
