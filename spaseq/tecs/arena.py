"""The arrays of a compact structure and how they grow.

An `Arena` belongs to one evaluation. The kernels (`spaseq.tecs.kernels`) work on its arrays and say by their status
what must grow; the arena grows it within `arena_bytes` and they go on. Nodes are a ring in time: the node with handle
h is row `h & (capacity - 1)`, and growing keeps handles as they are.

*Bound.* A node is kept while the position it was created at lies in the window or, at the latest, until the checkpoint
after it (at most 1/256 of the ring further) is passed. An event creates at most `moves * (3 * (LONGEST + 2) + 8)` nodes
(`kernels.reserve`), with LONGEST at most the number of active states + 2. So a window of w events with m moves each
needs at most w * m * (3 * (states + 4) + 8) nodes of 32 bytes, whatever the length of the stream; the ring is the next
power of two. In practice an event creates one to three nodes for each move. With a window in events and partitions the
bound is that of one window for each partition.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spaseq.errors import BudgetExceeded
from spaseq.tecs import kernels as k

_FIRST_NODES = 1 << 14
_FIRST_ENTRIES = 1 << 10
_MATCHES = 1 << 15
_PLACES = 1 << 18


def _references(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[int, int]]:
    """How many references each array of each pair has; every view of an array is one more."""
    return [(sys.getrefcount(a), sys.getrefcount(b)) for a, b in pairs]


_IDLE = _references([(np.empty(1), np.empty(1))])[0]
"""The references of a pair in a list that nobody else knows, as this interpreter counts them."""


class Chunk(NamedTuple):
    """Matches as the kernels wrote them.

    `start`, `end`, `tag`: int64 (m,). `offsets`: int64 (m + 1,) into `places`, int64, the marked positions.
    """

    start: np.ndarray
    end: np.ndarray
    tag: np.ndarray
    offsets: np.ndarray
    places: np.ndarray


class Arena:
    """Nodes, cells and union lists of one evaluation, with its scratch space and output buffers."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.nodes = np.zeros((_FIRST_NODES, 4), np.int64)
        self.cells = np.zeros((0, 5), np.int64)
        self.entries = np.zeros((0, 3), np.int64)
        self.st = np.zeros(k.SLOTS, np.int64)
        self.st[k.FREE] = k.NIL
        self.st[k.LAST_POSITION] = -1
        self.checks = np.zeros((k.CHECKPOINTS, 2), np.int64)
        self.moves = np.zeros((16, k.MOVE_COLUMNS), np.int64)
        self.outs = np.zeros((32, 2), np.int64)
        self.stack = np.zeros((1024, 2), np.int64)
        self.heap = np.zeros((256, 4), np.int64)
        self.path = np.zeros(1024, np.int64)
        self.links = np.zeros((1024, 2), np.int64)
        self.runs = np.zeros((64, 2), np.int64)
        self._lent: list[tuple[np.ndarray, np.ndarray]] = []
        self._new_buffers(_PLACES)
        self._grow_entries(_FIRST_ENTRIES)

    def memory_usage(self) -> int:
        """Bytes held by the structure: nodes, cells, entries."""
        return int(self.nodes.nbytes + self.cells.nbytes + self.entries.nbytes)

    @property
    def live_nodes(self) -> int:
        """Nodes not reclaimed yet."""
        return int(self.st[k.TAIL] - self.st[k.OLDEST])

    def add_cells(self, count: int) -> None:
        """Make room for `count` cells in all; new ones are empty."""
        extra = count - len(self.cells)
        if extra > 0:
            cells = np.full((extra, 5), k.NIL, np.int64)
            cells[:, k.LENGTH] = 0
            self._charge(cells.nbytes)
            self.cells = np.concatenate([self.cells, cells])

    def add_moves(self, count: int) -> None:
        """Make room for `count` moves at one event."""
        if count > len(self.moves):
            self.moves = np.zeros((2 * count, k.MOVE_COLUMNS), np.int64)
            self.outs = np.zeros((max(4 * count, len(self.outs)), 2), np.int64)

    def run(
        self,
        kernel: Callable[[], int],
        emit: Callable[[Chunk], None],
        cell_lows: Callable[[], np.ndarray] | None = None,
    ) -> int:
        """Call `kernel` until it is done, or has filled the buffers, or asks for what only its caller can give.

        Matches go to `emit`. The status is DONE, FLUSH (call again), or NEED_STATES.

        `cell_lows`, for windows that differ from cell to cell, gives the first live start of each (int64, (cells,)).
        """
        while True:
            status = kernel()
            if status == k.GROW_NODES:
                need = int(self.st[k.NEEDED])
                if cell_lows is not None:
                    self._compact(cell_lows())
                if cell_lows is None or 2 * (self.live_nodes + need) > len(self.nodes):
                    self._grow_nodes(need)
            elif status == k.GROW_ENTRIES:
                self._grow_entries(max(len(self.entries), int(self.st[k.NEEDED])))
            elif status == k.GROW_STACK:
                self.stack, self.heap = self._doubled(self.stack), self._doubled(self.heap)
            elif status == k.GROW_PATH:
                self.path, self.links = self._doubled(self.path), self._doubled(self.links)
            elif status == k.GROW_RUNS:
                need = 2 * int(self.st[k.NEEDED])
                self.runs = np.zeros((need, 2), np.int64)
                self.outs = np.zeros((max(2 * need, len(self.outs)), 2), np.int64)
            elif status == k.FLUSH:
                self.flush(emit)
                if self.st[k.NEEDED] > len(self.places):
                    self._new_buffers(2 * int(self.st[k.NEEDED]))
                return status
            else:
                return status

    def flush(self, emit: Callable[[Chunk], None]) -> None:
        """Hand the matches in the buffers to `emit`: full buffers as they are, few matches as a copy."""
        count, places = int(self.st[k.MATCHES]), int(self.st[k.PLACES])
        self.st[k.MATCHES] = 0
        self.st[k.PLACES] = 0
        if not count:
            return
        start, end, offsets, tag = self.matches
        chunk = Chunk(start[:count], end[:count], tag[:count], offsets[: count + 1], self.places[:places])
        if 4 * count > _MATCHES or 4 * places > len(self.places):
            self._lent = [*self._lent[-2:], (self.matches, self.places)]
            self._new_buffers(len(self.places))
            emit(chunk)
        else:
            emit(Chunk(*(column.copy() for column in chunk)))

    def _new_buffers(self, places: int) -> None:
        """Buffers for the next matches: some handed over before that nobody looks at any more, else new ones.

        PERF: full buffers are handed over, not copied, and taken back once their last view is gone, as fresh memory
        costs a page fault every 64 matches. Q1 of benchmarks/stock.py, M matches/s: 14 copied, 23 handed over, 42 taken
        back.
        """
        for i, counts in enumerate(_references(self._lent)):
            if counts == _IDLE and len(self._lent[i][1]) >= places:
                self.matches, self.places = self._lent.pop(i)
                return
        self.matches = np.empty((4, _MATCHES + 1), np.int64)
        self.matches[2, 0] = 0
        self.places = np.empty(places, np.int64)

    def _doubled(self, array: np.ndarray) -> np.ndarray:
        self._charge(array.nbytes)
        return np.concatenate([array, np.zeros_like(array)])

    def _charge(self, extra: int) -> None:
        used = self.memory_usage() + self.stack.nbytes + self.path.nbytes + extra
        if used > self._budget:
            raise BudgetExceeded("arena_bytes", self._budget, int(used))

    def _grow_nodes(self, need: int) -> None:
        old = len(self.nodes)
        size = old
        while size < self.live_nodes + 2 * need or size == old:
            size *= 2
        self._charge((size - old) * 32)
        nodes = np.zeros((size, 4), np.int64)
        first, tail = int(self.st[k.OLDEST]), int(self.st[k.TAIL])
        while first < tail:  # at most two pieces: up to the end of the old ring, and from its beginning
            stop = min(tail, (first | (old - 1)) + 1)
            at, to = first & (size - 1), first & (old - 1)
            nodes[at : at + stop - first] = self.nodes[to : to + stop - first]
            first = stop
        self.nodes = nodes

    def _compact(self, cell_lows: np.ndarray) -> None:
        capacity = len(self.nodes)
        fresh = np.zeros((capacity, 4), np.int64)
        lows, remap = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        k.compact(self.nodes, fresh, lows, remap, self.cells, self.entries, self.st, cell_lows)
        self.nodes = fresh

    def _grow_entries(self, extra: int) -> None:
        old = len(self.entries)
        self._charge(extra * 24)
        entries = np.zeros((old + extra, 3), np.int64)
        entries[:old] = self.entries
        entries[old:, k.NEXT] = np.arange(old + 1, old + extra + 1)
        entries[-1, k.NEXT] = self.st[k.FREE]
        self.st[k.FREE] = old
        self.st[k.FREE_COUNT] += extra
        self.entries = entries

    def state(self) -> dict[str, np.ndarray]:
        """What a snapshot must hold. Not the scratch space: it is empty between batches."""
        return {
            "nodes": self.nodes[np.arange(self.st[k.OLDEST], self.st[k.TAIL]) & (len(self.nodes) - 1)],
            "capacity": np.array([len(self.nodes)]),
            "cells": self.cells,
            "entries": self.entries,
            "st": self.st,
            "checks": self.checks,
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """The opposite of `state`."""
        capacity = int(state["capacity"][0])
        self.st = state["st"].copy()
        self.nodes = np.zeros((capacity, 4), np.int64)
        self.nodes[np.arange(self.st[k.OLDEST], self.st[k.TAIL]) & (capacity - 1)] = state["nodes"]
        self.cells = state["cells"].copy()
        self.entries = state["entries"].copy()
        self.checks = state["checks"].copy()
