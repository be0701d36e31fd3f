"""The arrays of a compact structure and how they grow.

An `Arena` belongs to one evaluation. The kernels (`spaseq.core.tecs.kernels`) work on its arrays. A kernel that runs
out of room returns a status. The arena then grows that array within `arena_bytes`, and the kernel is called again and
goes on. Nodes are a ring: the node with handle h is row `h & (capacity - 1)`, and growing keeps the handles.

*Bound.* A node is kept while the position it was created at lies in the window. At the latest, it goes when the window
passes the next checkpoint (at most 1/256 of the ring further). An event creates at most `moves * (3 * (LONGEST + 2) +
8)` nodes (`structure.reserve`), with LONGEST at most the number of active states + 2. So a window of w events with m
moves each needs at most `w * m * (3 * (states + 4) + 8)` nodes of 32 bytes, whatever the length of the stream. The ring
is the next power of two. In practice an event creates one to three nodes for each move. With a window in events and
partitions the bound is that of one window for each partition.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spaseq.core.errors import BudgetExceeded, UnsupportedFeature
from spaseq.core.integers import in_order
from spaseq.core.jit import attempt_rows
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.after_match import drop_dead
from spaseq.core.tecs.kernels.structure import compact

_FIRST_NODES = 1 << 14
_FIRST_ENTRIES = 1 << 10
_MATCHES = 1 << 15
_PLACES = 1 << 18
NO_ROOTS = np.zeros((0, k.ROOT_COLUMNS), np.int64)


def _references(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[int, int]]:
    """The number of references to each array of each pair; a view of an array is a reference to it."""
    return [(sys.getrefcount(a), sys.getrefcount(b)) for a, b in pairs]


_IDLE = _references([(np.empty(1), np.empty(1))])[0]
"""The reference counts of a pair that is only in a list, in this interpreter: a pair with these counts is free."""


class Chunk(NamedTuple):
    """Matches as the kernels wrote them.

    `start`, `end`, `tag`: int64 (m,). `offsets`: int64 (m + 1,) into `places`, int64, the marked positions.
    """

    start: np.ndarray
    end: np.ndarray
    tag: np.ndarray
    offsets: np.ndarray
    places: np.ndarray


class TooManyMatches(UnsupportedFeature):
    """An event ends more matches than are counted."""


class Arena:
    """Nodes, cells and union lists of one evaluation, with its scratch space and output buffers.

    `has_keys`: True if unions are choices by key (`spaseq.core.tecs.kernels.choices`); the runs below a key began there
    or later, instead of there. `starts_only`: True if cells hold the greatest start of their runs, and no nodes.
    """

    matches: np.ndarray
    places: np.ndarray

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self.has_keys: bool = False
        self.starts_only: bool = False
        self.nodes: np.ndarray = np.zeros((_FIRST_NODES, 4), np.int64)
        self.cells: np.ndarray = np.zeros((0, 5), np.int64)
        self.entries: np.ndarray = np.zeros((0, 3), np.int64)
        self.st: np.ndarray = np.zeros(k.SLOTS, np.int64)
        self.st[k.FREE] = k.NIL
        self.st[k.LAST_POSITION] = -1
        self.checks: np.ndarray = np.zeros((k.CHECKPOINTS, 2), np.int64)
        self.moves: np.ndarray = np.zeros((16, k.MOVE_COLUMNS), np.int64)
        self.outs: np.ndarray = np.zeros((32, 2), np.int64)
        self.stack: np.ndarray = np.zeros((1024, 3), np.int64)
        self.heap: np.ndarray = np.zeros((256, 4), np.int64)
        self.path: np.ndarray = np.zeros(1024, np.int64)
        self.below: np.ndarray = np.zeros((0, k.BELOW_COLUMNS), np.int64)
        self.links: np.ndarray = np.zeros((1024, 2), np.int64)
        self.runs: np.ndarray = np.zeros((64, 2), np.int64)
        self.reach: np.ndarray = np.zeros((0, 3), np.int64)
        self.todo: np.ndarray = np.zeros(256, np.int64)
        self.dead: np.ndarray = np.zeros((0, 2), np.int64)
        self.listed: np.ndarray = np.zeros((4, 1), np.int64)
        self.listed_order: np.ndarray = np.zeros((3, 0), np.int64)
        self.listed_places: np.ndarray = np.zeros(0, np.int64)
        self._lent: list[tuple[np.ndarray, np.ndarray]] = []
        self._new_buffers(_PLACES)
        self.grow_entries(_FIRST_ENTRIES)

    def memory_usage(self) -> int:
        """Bytes of nodes, cells and entries."""
        return int(self.nodes.nbytes + self.cells.nbytes + self.entries.nbytes)

    @property
    def live_nodes(self) -> int:
        """The number of nodes that have not been reclaimed."""
        return int(self.st[k.TAIL] - self.st[k.OLDEST])

    @property
    def positions(self) -> np.ndarray:
        """The positions that nodes name: int64, in no order."""
        nodes = self.nodes[np.arange(self.st[k.OLDEST], self.st[k.TAIL]) & (len(self.nodes) - 1)]
        found: np.ndarray = nodes[(nodes[:, k.RIGHT] != k.IS_PRODUCT) & (nodes[:, k.POS] < k.FOREVER), k.POS]
        return found

    def add_cells(self, count: int) -> None:
        """Make room for `count` cells in all; new ones are empty."""
        extra = count - len(self.cells)
        if extra > 0:
            cells = np.full((extra, 5), k.NIL, np.int64)
            cells[:, k.LENGTH] = 0
            self.charge(cells.nbytes)
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
        compact: Callable[[], None] | None = None,
    ) -> int:
        """Call `kernel`, and grow the arrays that it needs, until it returns DONE, FLUSH or NEED_STATES; returns that
        status.

        After FLUSH, the matches in the buffers have gone to `emit`, and `run` is to be called again. After NEED_STATES,
        the caller has to compute the transitions of a state first. `compact`, for windows that differ between cells,
        drops dead nodes by the method of this name. Raises `BudgetExceeded` (`arena_bytes`).
        """
        while True:
            status = kernel()
            if status == k.GROW_NODES:
                need = int(self.st[k.NEEDED])
                if compact is not None:
                    compact()
                if compact is None or 2 * (self.live_nodes + need) > len(self.nodes):
                    self.grow_nodes()
            elif status == k.GROW_ENTRIES:
                self.grow_entries(max(len(self.entries), int(self.st[k.NEEDED])))
            elif status == k.GROW_STACK:
                self.stack, self.heap = self._double(self.stack), self._double(self.heap)
            elif status == k.GROW_PATH:
                self.path, self.links = self._double(self.path), self._double(self.links)
            elif status == k.GROW_BELOW:
                self.charge(8 * k.BELOW_COLUMNS * (len(self.nodes) - len(self.below)))
                self.below = np.zeros((len(self.nodes), k.BELOW_COLUMNS), np.int64)
                self.st[k.NUMBERED] = 0
            elif status == k.TOO_MANY:
                raise TooManyMatches(
                    f"more than {k.MOST_COUNTED:,} matches end at one event, too many to count",
                    hint="a limit ends the count (--limit, count(limit=…)); a narrower WITHIN has fewer matches",
                )
            elif status == k.GROW_TODO:
                self.todo = self._double(self.todo)
            elif status == k.GROW_LISTED:
                self._grow_listed(int(self.st[k.NEEDED]))
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

    @property
    def structure(self) -> k.Structure:
        """The arrays of the structure as kernels read them, until one grows."""
        return k.Structure(self.nodes, self.cells, self.entries, self.st, self.checks, self.moves, self.outs)

    def output(self, order: int, limit: int, write: bool) -> tuple[np.ndarray | None, k.Output, k.Recent | None]:
        """What kernels use for single runs and for matches, until an array grows: `runs`, None without frontiers
        (`order`); the output; scratch of LIMIT, None without a `limit`.

        numba compiles a kernel for the types of its arguments: for None it leaves out the code that uses the array.
        """
        output = k.Output(self.stack, self.path, self.below, self.matches, self.places, write, order, limit)
        recent = k.Recent(self.heap, self.links) if limit else None
        return self.runs if order in k.FRONTIERS else None, output, recent

    def after(self, rule: int, hidden: bool, takes: np.ndarray, floors: np.ndarray) -> k.After:
        """The arrays of a rule for what a match discards, until one grows. Arguments: as of `k.After`."""
        if not len(self.listed_places):
            self._list_anew(64, 1024)
        return k.After(rule, hidden, takes, floors, self.dead, self.listed, self.listed_places, self.listed_order)

    def _grow_listed(self, need: int) -> None:
        """Double the room for the matches of one event."""
        matches, places = self.listed, self.listed_places
        count, used = int(self.st[k.LISTED]), int(self.st[k.LISTED_PLACES])
        self._list_anew(2 * self.listed_order.shape[1], max(len(places), 2 * (used + need)))
        self.listed[:, : count + 1] = matches[:, : count + 1]
        self.listed_places[:used] = places[:used]

    def _list_anew(self, matches: int, places: int) -> None:
        self.charge(56 * matches + 8 * places)
        self.listed = np.zeros((4, matches + 1), np.int64)
        self.listed_order = np.zeros((3, matches), np.int64)
        self.listed_places = np.zeros(places, np.int64)

    def drop_dead(self, cells: np.ndarray, keys: np.ndarray, need: int) -> None:
        """Remove the runs of dead starts, and make room in the table for `need` more. `cells`: those with runs, of the
        partitions `keys`: int64 (n,) each. The table is longer than the entries, so this is seldom."""
        if self.st[k.DEAD_COUNT]:
            rows = len(cells) + len(self.entries) + len(self.dead)
            attempt_rows(drop_dead, rows, self.cells, self.entries, self.st, self.dead, cells, keys)
        size = max(64, len(self.dead))
        while need and size < max(4 * need, 2 * (len(self.entries) - int(self.st[k.FREE_COUNT]))):
            size *= 2
        if len(self.dead) < size:
            self.charge((size - len(self.dead)) * 16)
            self.dead = np.full((size, 2), k.NIL, np.int64)

    def flush(self, emit: Callable[[Chunk], None]) -> None:
        """Hands the matches in the buffers to `emit`: full buffers themselves, few matches as a copy."""
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
        """Sets the buffers for the next matches: buffers that were handed over and are no longer referenced, else new
        ones.

        PERF: full buffers are handed over, not copied, and reused once their last view is gone, because fresh memory
        costs a page fault every 64 matches. Q1 of benchmarks/stock.py, M matches/s: 14 copied, 23 handed over, 42
        reused.
        """
        for i, counts in enumerate(_references(self._lent)):
            if counts == _IDLE and len(self._lent[i][1]) >= places:
                self.matches, self.places = self._lent.pop(i)
                return
        self.matches = np.empty((4, _MATCHES + 1), np.int64)
        self.matches[2, 0] = 0
        self.places = np.empty(places, np.int64)

    def _double(self, array: np.ndarray) -> np.ndarray:
        self.charge(array.nbytes)
        return np.concatenate([array, np.zeros_like(array)])

    def charge(self, extra: int) -> None:
        """Raises `BudgetExceeded` if `extra` bytes more are beyond the budget."""
        listed = self.listed.nbytes + self.listed_order.nbytes + self.listed_places.nbytes + self.dead.nbytes
        walks = self.stack.nbytes + self.path.nbytes + self.reach.nbytes + self.below.nbytes
        used = self.memory_usage() + walks + listed + extra
        if used > self._budget:
            hint = "raise arena_bytes, or narrow the window: give a WITHIN where there is none"
            raise BudgetExceeded("arena_bytes", self._budget, int(used), hint=hint)

    def grow_nodes(self) -> None:
        """Make room for as many nodes as `st[NEEDED]` says, and for as many again."""
        old, need = len(self.nodes), int(self.st[k.NEEDED])
        size = old
        while size < self.live_nodes + 2 * need or size == old:
            size *= 2
        self.charge((size - old) * 32)
        nodes = np.zeros((size, 4), np.int64)
        first, tail = int(self.st[k.OLDEST]), int(self.st[k.TAIL])
        while first < tail:  # at most two pieces: up to the end of the old ring, and from its beginning
            stop = min(tail, (first | (old - 1)) + 1)
            at, to = first & (size - 1), first & (old - 1)
            nodes[at : at + stop - first] = self.nodes[to : to + stop - first]
            first = stop
        self.nodes = nodes

    def compact(self, cell_window_starts: np.ndarray, roots: np.ndarray = NO_ROOTS) -> None:
        """Drops the nodes that no cell in its window leads to, and no root, for windows that differ between cells.

        `cell_window_starts`: int64 (cells,). `roots`: int64 (r, ROOT_COLUMNS); their nodes get new handles, in place.
        """
        capacity = len(self.nodes)
        fresh = np.zeros((capacity, 4), np.int64)
        window_starts, remap = np.zeros(capacity, np.int64), np.zeros(capacity, np.int64)
        compact(self.nodes, fresh, window_starts, remap, self.cells, self.entries, roots, self.st, cell_window_starts)
        self.nodes = fresh

    def fit_reach(self) -> None:
        """A row of `reach` for each node of the ring; it takes memory only if roots are kept."""
        if len(self.reach) != len(self.nodes):
            self.charge((len(self.nodes) - len(self.reach)) * 24)
            self.reach = np.zeros((len(self.nodes), 3), np.int64)

    def grow_entries(self, extra: int = _FIRST_ENTRIES) -> None:
        """Make room for `extra` more entries."""
        old = len(self.entries)
        self.charge(extra * 24)
        entries = np.zeros((old + extra, 3), np.int64)
        entries[:old] = self.entries
        entries[old:, k.NEXT] = np.arange(old + 1, old + extra + 1)
        entries[-1, k.NEXT] = self.st[k.FREE]
        self.st[k.FREE] = old
        self.st[k.FREE_COUNT] += extra
        self.entries = entries

    def snapshot(self) -> dict[str, Any]:
        """The live nodes, cells and entries as plain values. The scratch space is empty between batches and left out.

        Cells whose head was reclaimed, and entries whose node was, are dead and left out. Union lists are written one
        after another instead of as links, so that `restore` follows no link that a damaged snapshot has.
        """
        st = self.st
        oldest = int(st[k.OLDEST])
        nodes = self.nodes[np.arange(oldest, st[k.TAIL]) & (len(self.nodes) - 1)]
        heads, starts = self.cells[:, k.HEAD].copy(), self.cells[:, k.HEAD_MAX].copy()
        heads[heads < oldest] = k.NIL
        starts[heads < 0] = k.NIL
        lengths, entries = self._lists(heads, oldest)
        active = (st[k.CHECK_FIRST] + np.arange(st[k.CHECK_COUNT])) % len(self.checks)
        return {
            "oldest": oldest,
            "nodes": tuple(np.ascontiguousarray(column) for column in nodes.T),
            "cells": (heads, starts, lengths),
            "entries": entries,
            "checks": (self.checks[active, 0], self.checks[active, 1]),
            "last": int(st[k.LAST_POSITION]),
            "floor": int(st[k.FLOOR]),
            "counted": int(st[k.COUNTED]),
        }

    def _lists(self, heads: np.ndarray, oldest: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """The union lists without heads: the length of each cell's list, int64 (cells,), and, list after list, the
        nodes and their maximum starts, int64 (n,) each. A list ends before its first node that was reclaimed."""
        lengths = np.zeros(len(heads), np.int64)
        cells = np.flatnonzero(heads >= 0)
        entries = self.cells[cells, k.FIRST]
        owners, places = [cells[:0]], [entries[:0]]
        while len(cells):
            there = entries >= 0
            there[there] = self.entries[entries[there], k.NODE] >= oldest
            cells, entries = cells[there], entries[there]
            owners.append(cells)
            places.append(entries)
            lengths[cells] += 1
            entries = self.entries[entries, k.NEXT]
        order = in_order(np.concatenate(owners))
        found = self.entries[np.concatenate(places)[order]]
        return lengths, (found[:, k.NODE].copy(), found[:, k.NODE_MAX].copy())

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`, for an arena with the same labels. O(nodes).

        Raises `OptionError` for values that break an invariant on which kernels rely without a check. Children have
        smaller handles than their parents and lie in the ring. Lists end. No maximum start is later than the position
        at which its node was created.
        """
        last, oldest = state["last"], state["oldest"]
        nodes = self._restored_nodes(state, oldest, last)
        tail = oldest + len(nodes)
        heads, starts, lengths = (array(c, "cells", low=k.NIL) for c in state["cells"])
        expect(len(heads) == len(starts) == len(lengths) and (lengths >= 0).all(), "a row for each cell")
        if self.starts_only:
            self._restore_starts(heads, starts, last)
        else:
            self._restore_lists(nodes, oldest, heads, starts, lengths, state["entries"])
        positions, tails = (array(c, "checkpoints") for c in state["checks"])
        st = self.st
        st[k.TAIL], st[k.OLDEST], st[k.LAST_POSITION] = tail, oldest, last
        st[k.CHECK_FIRST], st[k.CHECK_COUNT] = 0, len(positions)
        self.checks[: len(positions), 0], self.checks[: len(positions), 1] = positions, tails
        expect(0 <= state["floor"] <= last + 1 and 0 <= state["counted"] < 1 << 62, "counters within their range")
        st[k.FLOOR], st[k.COUNTED] = state["floor"], state["counted"]
        size = len(self.nodes)
        while size < len(nodes):
            size *= 2
        self.charge((size - len(self.nodes)) * 32)
        self.nodes = np.zeros((size, 4), np.int64)
        self.nodes[np.arange(oldest, tail) & (size - 1)] = nodes

    def _restored_nodes(self, state: dict[str, Any], oldest: int, last: int) -> np.ndarray:
        """The nodes, int64 (n, 4), without references to nodes that were reclaimed."""
        expect(0 <= oldest < 1 << 61 and -1 <= last < 1 << 61, "handles and positions within their range")
        left, right, places, starts = (array(column, "nodes") for column in state["nodes"])
        expect(len(left) == len(right) == len(places) == len(starts), "four columns of nodes")
        handles = np.arange(oldest, oldest + len(left))
        positions, tails = (array(c, "checkpoints") for c in state["checks"])
        steps = np.append(positions, last), np.append(tails, oldest + len(left))
        expect(len(positions) == len(tails) <= len(self.checks), "a position for each checkpoint")
        expect(all((np.diff(step) >= 0).all() for step in steps) and steps[1][0] >= oldest, "checkpoints in order")
        born = steps[0][np.searchsorted(tails, handles, "right")]  # created at this position or earlier
        labels = 1 << int(self.st[k.LABEL_BITS])
        union, product = right >= 0, right == k.IS_PRODUCT
        output = (right <= k.IS_OUTPUT) & ~product
        expect((left < handles).all() and (right < handles).all(), "children before their parents")
        expect((right[~product] > k.IS_OUTPUT - labels).all(), "nodes of the kinds there are")
        suffix = starts == k.FOREVER
        hole = left == k.HOLE
        expect((left >= k.NIL)[~hole].all() and (output & suffix)[hole].all(), "nodes of the kinds there are")
        expect(
            (left[union | product] >= 0).all() and (left[~union & ~output & ~product] < 0).all(), "children of nodes"
        )
        expect((left[suffix & output] != k.NIL).all() and not (suffix & (right == k.IS_BOTTOM)).any(), "whole suffixes")
        expect((places[suffix & union] == k.FOREVER).all(), "suffixes beside suffixes")
        expect((starts >= 0).all() and (starts <= born)[~suffix].all(), "maximum starts before their nodes")
        fits = np.where(union, starts >= places, output | product | (starts == places))
        expect(fits.all(), "maximum starts in order")
        expect((places >= np.where(suffix, 0, starts))[output].all() and (places <= born)[output].all(),
               "positions between start and end")  # fmt: skip
        expect(((places >= 0) & (places < handles))[product].all(), "suffixes before their products")
        dead = union & ((right < oldest) | (right == left))
        behind = np.where(product, places, right)
        own = np.where(product, k.FOREVER, places)
        for child, start, kept in (
            (left, starts, left >= oldest), (behind, own, union & ~dead | product & (behind >= oldest))
        ):  # fmt: skip
            fits = starts[child[kept] - oldest] == start[kept]
            if self.has_keys:
                fits |= (starts[child[kept] - oldest] > start[kept]) & union[kept]
            expect(fits.all(), "maximum starts as their children's")
        places[dead] = k.NIL  # with a maximum start before any window, the right child is never read
        gone = (left >= 0) & (left < oldest) | product & (behind < oldest)
        left[gone], right[gone] = k.NIL, k.IS_BOTTOM  # nor is a node read whose left child was reclaimed
        places[gone] = starts[gone]
        left[gone & suffix], right[gone & suffix], places[gone & suffix] = k.HOLE, k.IS_OUTPUT, 0
        return np.stack([left, right, places, starts], axis=1)

    def _restore_starts(self, heads: np.ndarray, starts: np.ndarray, last: int) -> None:
        """The cells of `starts_only`."""
        active = heads >= 0
        expect((heads[active] == 0).all() and (starts[~active] == k.NIL).all(), "cells with a start each")
        expect(((starts[active] >= 0) & (starts[active] <= last)).all(), "starts within the stream")
        self.charge(len(heads) * 40)
        self.cells = np.full((len(heads), 5), k.NIL, np.int64)
        self.cells[:, k.HEAD], self.cells[:, k.HEAD_MAX], self.cells[:, k.LENGTH] = heads, starts, 0

    def _restore_lists(
        self, nodes: np.ndarray, oldest: int, heads: np.ndarray, starts: np.ndarray, lengths: np.ndarray, entries: Any
    ) -> None:
        members, own = (array(column, "entries") for column in entries)
        active = np.flatnonzero(heads >= 0)
        expect((lengths[heads < 0] == 0).all() and int(lengths.sum()) == len(members), "lists of active cells")
        both = np.concatenate([heads[active], members])
        expect(((both >= oldest) & (both < oldest + len(nodes))).all(), "lists of nodes that are there")
        kept = np.concatenate([starts[active], own])
        begun = nodes[both - oldest, k.MAX]
        expect(((begun == kept) | ((begun > kept) & self.has_keys)).all(), "maximum starts beside their nodes")
        expect((nodes[heads[active] - oldest, k.RIGHT] < 0).all(), "heads that are no unions")
        expect((starts[active] < k.FOREVER).all(), "lists of runs")
        ends = np.cumsum(lengths)
        listed = lengths > 0
        before = np.concatenate([own[:1], own])[: len(own)]
        before[(ends - lengths)[listed]] = starts[listed]
        expect((own <= before).all(), "lists in order of maximum starts")
        count = len(members)
        self.charge(len(heads) * 40 + count * 24)
        self.cells = np.full((len(heads), 5), k.NIL, np.int64)
        self.cells[:, k.HEAD], self.cells[:, k.HEAD_MAX], self.cells[:, k.LENGTH] = heads, starts, lengths
        self.cells[listed, k.FIRST] = (ends - lengths)[listed]
        self.entries = np.zeros((count, 3), np.int64)
        self.entries[:, k.NODE], self.entries[:, k.NODE_MAX] = members, own
        self.entries[:, k.NEXT] = np.arange(1, count + 1)
        self.entries[ends[listed] - 1, k.NEXT] = k.NIL
        self.st[k.LONGEST] = lengths.max(initial=0)
        self.st[k.FREE], self.st[k.FREE_COUNT] = k.NIL, 0
        self.grow_entries(_FIRST_ENTRIES)
