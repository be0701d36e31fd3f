"""Nodes whose matches wait, and the matches below them that start in a range (`spaseq.core.tecs.kernels.roots`)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final

import numpy as np

from spaseq.core.jit import Kernel, attempt, interprets
from spaseq.core.tecs.arena import Arena, Chunk
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.roots import collect_positions, enumerate_roots, measure_roots, rank_roots

_AT_ONCE: Final = 64


class Roots:
    """The kernels over `roots`, int64 (r, ROOT_COLUMNS), of one arena. To be called between events only.

    Every node must still be there: `dead_before` of the events so far is no greater than any O_LOW. Memory besides the
    arena's: 24 bytes for each node of its ring, charged to its budget.
    """

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._progress = np.zeros(k.PROGRESS_SLOTS, np.int64)

    @property
    def label_bits(self) -> int:
        """The bits of a place that are its label's."""
        return int(self._arena.st[k.LABEL_BITS])

    def next_starts(self, roots: np.ndarray) -> np.ndarray:
        """The least start from O_HIGH on below each root, NEVER for none: int64 (r,)."""
        return self._measure(roots)[1]

    def next_starts_of_few(self, roots: Sequence[tuple[int, int, int, int]]) -> list[int]:
        """`next_starts`, of a few rows.

        PERF: most of them have no later start, which their node shows: 1 µs; a kernel's call takes 8.
        """
        nodes, mask = self._arena.nodes, len(self._arena.nodes) - 1
        found = []
        for node, _, high, _ in roots:
            latest = nodes.item(node & mask, k.MAX)
            if latest > high:
                return self.next_starts(np.array(roots, np.int64)).tolist()
            found.append(high if latest == high else k.NEVER)
        return found

    def upper_starts(self, nodes: np.ndarray) -> np.ndarray:
        """The greatest start below each node: int64 (r,)."""
        found: np.ndarray = self._arena.nodes[nodes & (len(self._arena.nodes) - 1), k.MAX]
        return found

    def latest_starts(self, roots: np.ndarray) -> np.ndarray:
        """The greatest start in the range of each root, NIL for none: int64 (r,)."""
        return self._measure(roots)[0]

    def positions(self, roots: np.ndarray) -> np.ndarray:
        """The positions that matches below the roots take, from O_LOW on, and their starts, in no order: int64 (n,)."""
        if not len(roots):
            return np.zeros(0, np.int64)
        self._begin()
        self._progress[k.EPOCH] += 1
        found = np.empty(2 * self._arena.live_nodes, np.int64)
        low = int(roots[:, k.O_LOW].min())
        self._arena.run(lambda: self._call(collect_positions, roots, low, found), _nothing)
        return found[: self._progress[k.FOUND]]

    def enumerate(self, roots: np.ndarray) -> Generator[Chunk]:
        """The matches in the ranges of the roots, root by root, a buffer at a time. To be read to its end, or closed.

        The time before a match is linear in the match, after O(nodes with starts on both sides of a bound) for each
        bound.
        """
        arena, chunks = self._arena, list[Chunk]()
        self._begin()
        arena.st[k.OUTS] = arena.st[k.OUT] = arena.st[k.DEPTH] = 0

        def kernel() -> int:
            # While it is interpreted a few matches are written at a time: a buffer of them takes a second.
            matches = arena.matches[:, :_AT_ONCE] if interprets(enumerate_roots) else arena.matches
            return self._call(enumerate_roots, roots, arena.outs, arena.stack, arena.path, matches, arena.places)

        try:
            while arena.run(kernel, chunks.append) != k.DONE:
                yield from chunks
                chunks.clear()
            arena.flush(chunks.append)
            yield from chunks
        finally:  # one may stop reading before the end
            arena.st[[k.OUTS, k.OUT, k.DEPTH, k.MATCHES, k.PLACES]] = 0

    def best(self, roots: np.ndarray, *, latest: bool, marked: bool) -> list[tuple[int, list[int]]]:
        """The complex event with the best positions below the roots, whose ranges are one. These hold the smallest of
        the symmetric difference with any other, or the greatest if `latest`. As matches: of each the start and its
        places (position and label), ascending. None if there is none; several if there are several
        starts, or valuations. `marked`: True if each run marks its first event. O(nodes with starts in the range *
        positions)."""
        arena, nodes, mask = self._arena, self._arena.nodes, len(self._arena.nodes) - 1
        low, high = roots[0, k.O_LOW], roots[0, k.O_HIGH]
        self._begin()
        self._progress[k.EPOCH] += 1
        self._progress[k.FOUND] = k.NIL
        arena.st[k.LOW], arena.st[k.HIGH] = low, high
        arena.run(lambda: self._call(rank_roots, roots, latest), _nothing)
        node, positions = int(self._progress[k.FOUND]), list[int]()
        if node < 0:
            return []
        reach = arena.reach
        while node >= 0:
            left, right, position, start = nodes[node & mask].tolist()
            if right <= k.IS_OUTPUT:
                positions.append(position)
            node = int(reach[left & mask, k.R_BELOW]) if left >= 0 else k.NIL
        if marked and not self.label_bits:  # its first position is its start
            return [(start, positions[::-1])]
        return self._with_positions(roots[:, k.O_NODE].tolist(), positions, (int(low), int(high)))

    def _with_positions(
        self, roots: list[int], positions: list[int], starts: tuple[int, int]
    ) -> list[tuple[int, list[int]]]:
        """The matches below the roots with these positions, the greatest first, that start in a range; as `best`."""
        nodes, mask, bits = self._arena.nodes, len(self._arena.nodes) - 1, self.label_bits
        low, high = starts
        found = set[tuple[int, tuple[int, ...]]]()
        todo: set[tuple[int, tuple[int, ...]]] = {(root, ()) for root in roots}
        seen = set(todo)
        while todo:
            node, taken = todo.pop()
            left, right, position, start = nodes[node & mask].tolist()
            if start < low:
                continue
            following = [left]
            if right >= 0:
                following += [right] * (position >= low)
            elif right <= k.IS_OUTPUT:
                if len(taken) == len(positions) or position != positions[len(taken)]:
                    continue
                taken = (position << bits | k.IS_OUTPUT - right, *taken)
            if left < 0:
                if len(taken) == len(positions) and start < high:
                    found.add((start, taken))
                continue
            fresh = {(child, taken) for child in following} - seen
            seen |= fresh
            todo |= fresh
        return [(start, list(taken)) for start, taken in sorted(found)]

    def are_known(self, roots: np.ndarray) -> bool:
        """True if every node is in the ring, and has matches that start from O_LOW on and no later than they end."""
        arena = self._arena
        nodes = roots[:, k.O_NODE]
        if not ((nodes >= arena.st[k.OLDEST]) & (nodes < arena.st[k.TAIL])).all():
            return False
        latest = arena.nodes[nodes & (len(arena.nodes) - 1), k.MAX]
        return bool(((roots[:, k.O_LOW] >= 0) & (roots[:, k.O_LOW] <= latest) & (latest <= roots[:, k.O_END])).all())

    def _measure(self, roots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        latest, following = np.empty(len(roots), np.int64), np.empty(len(roots), np.int64)
        if len(roots):
            self._begin()
            self._arena.run(lambda: self._call(measure_roots, roots, latest, following), _nothing)
        return latest, following

    def _begin(self) -> None:
        """Discard the earlier measurements: the ring may have other nodes in its rows by now."""
        self._arena.fit_reach()
        self._progress[k.EPOCH_LOW :] = 0
        self._arena.st[k.HIGH] = k.NIL

    def _call(self, kernel: Kernel, roots: np.ndarray, *others: Any) -> int:
        arena = self._arena
        return int(attempt(kernel, arena.nodes, arena.reach, arena.todo, arena.st, self._progress, roots, *others))


def _nothing(_: Chunk) -> None:
    """No kernel that only measures writes matches."""
