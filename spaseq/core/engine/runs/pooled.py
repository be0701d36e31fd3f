"""The pools of a `GuardRun`: the rows of their trees, how they grow, and how they become configurations.

`spaseq.core.tecs.kernels.pools` has the structure and its kernels, `spaseq.core.engine.kernels.registers.pooling` what
configurations do with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spaseq.core.engine.kernels.registers import layout as reg
from spaseq.core.engine.kernels.registers.keeping import dissolve_family, settle_tree
from spaseq.core.engine.kernels.registers.pooling import dissolve_rows
from spaseq.core.engine.runs.coded_automaton import GuardTables
from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import attempt, attempt_rows
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.boxes import plant_rows
from spaseq.core.tecs.kernels.pools import free_rows, mark_rows

FROM = 8
"""An event that moves more configurations of one list makes pools of them.

PERF: `b.price > a.price` over 40,000 random events of four types, us an event. Within 10 events pools from the start
took 0.38 and configurations 0.17, within 100 events 0.37 and 0.48 (2026-11-26).
"""
_FIRST_ROWS = 1 << 12
"""PERF: with 64 rows a window of 30 events took 0.45 us an event, mostly for the look for rows that are free again."""
_NODES = (k.P_NODE, k.P_UNION, k.P_TIES)
"""The columns of a row that lead to nodes."""
_STEP_RUNS = tuple(range(k.P_RUNS, k.P_UNIONS, 2))
_STEP_UNIONS = tuple(range(k.P_UNIONS, k.P_OWN, 2))
_SUFFIXES = tuple(range(k.P_OWN, k.KEPT_COLUMNS))
"""Those of a row of several steps besides."""
_WRITTEN = (k.P_VALUE, k.P_NODE, k.P_START, k.P_TIES, k.P_TIES_MAX)
"""The columns of a row that a snapshot has; the trees are made anew."""
_VALUES = (k.P_VALUE, *range(k.P_MORE, k.P_MORE + k.DIMENSIONS - 1))
"""The columns of a row's values; if rows have one only, the first of these."""


def leading(held: np.ndarray, width: int) -> np.ndarray:
    """As many places at the beginning of each row as `held`, bool (n, registers), has: bool (n, width)."""
    found: np.ndarray = np.arange(width) < held.sum(axis=1)[:, None]
    return found


class RunPools:
    """The rows of all pools of one evaluation. `budget`: of live runs, of which a row is one for each step. `tests`:
    the most tests of one event. `starts_only`: True if cells hold starts, and no nodes are made. `steps`: the most
    steps of a pool, 0 if all have one."""

    def __init__(self, arena: Arena, width: int, tests: int, budget: int, starts_only: bool, steps: int = 0) -> None:
        self._arena = arena
        self._budget = budget
        self._steps = max(steps, 1)
        self._kept = np.zeros(0, np.int64) if steps else None
        self._compacted = 0  # no node of an earlier start is there any more, even if events behind a match wait for it
        self._rows = np.zeros((0, k.KEPT_COLUMNS if steps else k.ROW_COLUMNS), np.int64)
        self._trees = np.zeros((0, k.TREE_COLUMNS), np.int64)
        self._modes = np.zeros(0, np.int8)
        self._pieces = np.zeros((k.PIECES, 2), np.int64)
        self._scratch = np.zeros((k.MELD_DEPTH, 2), np.int64), np.zeros((2 * 64 * k.DIMENSIONS + 8, 4), np.int64)
        self._cuts = np.zeros(((k.DIMENSIONS + 1) * (2 * tests + 2), 2), np.int64)
        self._own = np.zeros((k.DIMENSIONS, k.BOX_COLUMNS), np.int64), np.zeros(width, np.int64)
        arena.st[k.STARTS_ONLY] = starts_only
        arena.st[k.POOL_FROM] = FROM
        arena.st[k.POOL_FREE] = k.NIL

    def arrays(self, tables: GuardTables) -> k.Pools:
        """The arrays as kernels read them, until one grows or `tables` are others."""
        if len(self._trees) < len(self._arena.cells):
            trees = np.full((len(self._arena.cells), k.TREE_COLUMNS), k.NIL, np.int64)
            trees[: len(self._trees)] = self._trees
            self._trees = trees
        if self._rows.shape[1] == k.ROW_COLUMNS and tables.pooled[:, 0].max() > 1:
            self._arena.charge(len(self._rows) * 8 * (k.WIDE_COLUMNS - k.ROW_COLUMNS))
            more = np.zeros((len(self._rows), k.WIDE_COLUMNS - k.ROW_COLUMNS), np.int64)
            self._rows = np.concatenate([self._rows, more], axis=1)
        return k.Pools(
            self._rows, self._trees, self._pieces, *self._scratch, tables.pooled, self._modes, self._cuts, *self._own,
            self._kept,
        )  # fmt: skip

    def add_pieces(self) -> None:
        """Room for twice as many pieces of a range."""
        self._pieces = np.zeros((2 * len(self._pieces), 2), np.int64)

    @property
    def parts(self) -> list[Any]:
        """Arrays to be measured."""
        return [self._rows, self._trees, self._modes]

    def fit(self, buckets: int) -> None:
        """More buckets, which have no pools."""
        self._modes = np.concatenate([self._modes, np.zeros(buckets - len(self._modes), np.int8)])

    def open_buckets(self, buckets: int, pooled: np.ndarray) -> None:
        """`buckets` in all; those in `pooled`, int64, have pools, and later runs enter them."""
        self._modes = np.zeros(buckets, np.int8)
        self._modes[pooled] = 1

    @staticmethod
    def cells(confs: np.ndarray, pooled: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """The pools that have runs: int64, rows of `confs`. `pooled`: as of `Pools`; `cells`: of the arena."""
        live = np.flatnonzero((confs[:, reg.CONF_STATE] >= 0) & (cells[: len(confs), k.HEAD] >= 0))
        live = live[pooled[confs[live, reg.CONF_STATE], 0] > 0]
        return live[(confs[live, reg.REGISTERS :] == reg.POOLED).any(axis=1)]

    def owners(self, pools: k.Pools, which: np.ndarray, lows: np.ndarray) -> np.ndarray:
        """The cell of each live row, -1 for others: int64 (rows,). `which`: of `cells`; `lows`: the first live start of
        each cell. O(rows)."""
        found = np.zeros(len(self._rows), np.int64)
        attempt_rows(mark_rows, len(found), pools, self._arena.cells, which, lows, found)
        return found

    def make_room(self, pools: k.Pools, which: np.ndarray, lows: np.ndarray) -> None:
        """Frees the rows that are out of the window, and doubles them if more than half are in it. O(rows), so O(1) for
        each new row. Raises `BudgetExceeded`."""
        owners = self.owners(pools, which, lows)
        attempt_rows(free_rows, len(owners), self._rows, self._arena.st, owners)
        live = len(owners) - int(self._arena.st[k.POOL_LEFT])
        need = int(self._arena.st[k.NEEDED])
        if 2 * live >= len(owners) or self._arena.st[k.POOL_LEFT] <= need:
            if self._steps * live >= self._budget:
                raise BudgetExceeded("live_runs", self._budget, self._steps * live + 1, "runs")
            self._add_rows(max(len(owners), _FIRST_ROWS, need))

    def _add_rows(self, count: int) -> None:
        first = len(self._rows)
        width = self._rows.shape[1]
        self._arena.charge(count * 8 * width)
        fresh = np.zeros((count, width), np.int64)
        fresh[:, k.P_LEFT] = np.arange(first + 1, first + count + 1)
        fresh[-1, k.P_LEFT] = self._arena.st[k.POOL_FREE]
        self._arena.st[k.POOL_FREE] = first
        self._arena.st[k.POOL_LEFT] += count
        self._rows = np.concatenate([self._rows, fresh])

    # Nodes

    def roots(self, owners: np.ndarray, lows: np.ndarray) -> np.ndarray:
        """The roots that `Arena.compact` has to keep: int64 (r, ROOT_COLUMNS)."""
        rows = np.flatnonzero(owners >= 0)
        columns = self._columns(rows, lows[owners[rows]])
        found = np.zeros((len(columns), len(rows), k.ROOT_COLUMNS), np.int64)
        for own, column in zip(found, columns, strict=True):
            own[:, k.O_NODE] = self._rows[rows, column]
        found[..., k.O_LOW] = lows[owners[rows]]
        roots = found.reshape(-1, k.ROOT_COLUMNS)
        return roots[roots[:, k.O_NODE] >= 0]

    def _columns(self, rows: np.ndarray, lows: np.ndarray) -> list[int]:
        """The columns of live rows that lead to nodes. `lows`: the first live start of each row.

        In rows of several steps, what is out of the window is taken out first: its nodes may have been reclaimed.
        """
        if self._kept is None:
            return list(_NODES)
        for column in (*_STEP_RUNS, *_STEP_UNIONS):
            self._rows[rows[self._rows[rows, column + 1] < lows], column] = k.NIL
        for number, column in enumerate(_STEP_UNIONS):
            self._rows[rows[self._rows[rows, k.P_STALE] >> number & 1 != 0], column] = k.NIL
        return [*_NODES, *_STEP_RUNS, *_STEP_UNIONS, *_SUFFIXES]

    def move_roots(self, owners: np.ndarray, lows: np.ndarray, roots: np.ndarray) -> None:
        """Takes the new handles of `roots`, after the nodes have moved. `lows`: as of `roots()`."""
        if len(lows):
            self._compacted = max(self._compacted, int(lows.min()))
        rows = np.flatnonzero(owners >= 0)
        at = 0
        for column in self._columns(rows, lows[owners[rows]]):
            held = rows[self._rows[rows, column] >= 0]
            self._rows[held, column] = roots[at : at + len(held), k.O_NODE]
            at += len(held)

    def starts(self, owners: np.ndarray) -> np.ndarray:
        """The starts of live rows: int64."""
        return np.asarray(self._rows[owners >= 0, k.P_START])

    def values(self, owners: np.ndarray) -> np.ndarray:
        """The values of live rows: int64 (n, DIMENSIONS), or (n, 1) if no row has several."""
        return np.asarray(self._rows[owners >= 0][:, self._value_columns])

    def registers(
        self, confs: np.ndarray, live: np.ndarray, owners: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The places of pools among the configurations `live`, rows of `confs`, and the registers that hold POOLED:
        int64 (n,) each.

        Also the values of the rows of pools as rows of registers, int64 (rows, registers), and their places there,
        bool.
        """
        pools, registers = np.nonzero(confs[live, reg.REGISTERS :] == reg.POOLED)
        held = confs[owners[owners >= 0], reg.REGISTERS :] == reg.POOLED
        rows = np.full(held.shape, reg.NOTHING, np.int64)
        values = self.values(owners)
        rows[held] = values[leading(held, values.shape[1])]
        return pools, registers, rows, held

    @property
    def _value_columns(self) -> list[int]:
        return list(_VALUES if self._rows.shape[1] >= k.WIDE_COLUMNS else _VALUES[:1])

    # Rows that hang anew, or as configurations

    def plant(
        self, pools: k.Pools, owners: np.ndarray, lows: np.ndarray, counts: np.ndarray,
        values: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Makes the trees of live rows of one step anew. `counts`: int64 (cells,), how many values the rows of a pool
        have; `values`: other ones, if given, as those of `values()`."""
        rows = np.flatnonzero(owners >= 0)
        if values is not None:
            self._rows[rows[:, None], self._value_columns] = values
        rows = rows[np.argsort(-self._rows[rows, k.P_START], kind="stable")]
        self._trees[:] = k.NIL
        self._trees[: len(counts), k.T_VALUES] = counts
        self._trees[:, k.T_STEPS] = 0
        done = 0
        while done < len(rows):
            arena = self._arena
            done = int(attempt_rows(
                plant_rows, len(rows), pools, arena.nodes, arena.cells, arena.st, arena.checks, rows, owners[rows],
                lows, done,
            ))  # fmt: skip
            if done < len(rows):
                arena.grow_nodes()

    def dissolve(
        self, arrays: Callable[[], tuple[reg.Configurations, k.Pools]], owners: np.ndarray, lows: np.ndarray,
        grow: Callable[[], None], families: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Makes configurations of the rows of pools of one set of states, which has none any more. `arrays`: the
        configurations, and `arrays()`; `grow`: makes room for more of them. `families`: as `numbers` of
        `dissolve_family`, for pools with several steps. O(n log n)."""
        rows = np.flatnonzero(owners >= 0)
        rows = rows[np.argsort(self._rows[rows, k.P_START], kind="stable")]
        status, done = k.GROW_NODES, 0
        while True:
            (own, pools), arena = arrays(), self._arena
            lows = np.concatenate([lows, np.zeros(len(arena.cells) - len(lows), np.int64)])
            arguments = own, arena.structure, pools, rows, owners[rows], lows
            if families is None:
                status, done = attempt_rows(dissolve_rows, len(rows), *arguments, done)
            else:
                status, done = attempt_rows(dissolve_family, len(rows), *arguments, families, done)
            if status == k.DONE:
                return
            if status == k.GROW_NODES:
                arena.grow_nodes()
            elif status == k.GROW_ENTRIES:
                arena.grow_entries()
            else:
                grow()

    def dissolve_families(
        self, arrays: Callable[[], tuple[reg.Configurations, k.Pools]], which: np.ndarray, lows: np.ndarray,
        grow: Callable[[], None], numbers: np.ndarray,
    ) -> None:  # fmt: skip
        """Makes configurations of the rows of several steps, for now. `which`: of `cells`; the rest as of `dissolve`.
        O(n log n)."""
        lows = np.maximum(lows, max(int(self._arena.st[k.KEEP]), self._compacted))
        own, pools = arrays()
        which = which[pools.pooled[own.confs[which, reg.CONF_STATE], k.POOL_HOME] >= 0]
        for cell in which.tolist():
            while attempt(settle_tree, arrays()[1], self._arena.structure, cell, int(lows[cell])) != k.DONE:
                self._arena.grow_nodes()
        keys, homes = own.confs[which, reg.CONF_KEY], own.confs[which, reg.CONF_STATE]
        self._modes[keys * len(pools.pooled) + homes] = 0
        if len(which):
            self.dissolve(arrays, self.owners(arrays()[1], which, lows), lows, grow, numbers)

    # Snapshots

    def snapshot(self, owners: np.ndarray, numbers: np.ndarray) -> tuple[Any, ...]:
        """The live rows as plain values. `numbers`: for each cell, the number of its configuration."""
        rows = np.flatnonzero(owners >= 0)
        columns = (*_WRITTEN, *self._value_columns[1:])
        return numbers[owners[rows]], *(self._rows[rows, column].copy() for column in columns)

    def restore(self, state: tuple[Any, ...], cells: np.ndarray) -> np.ndarray:
        """The opposite of `snapshot`: the cell of each row; they hang nowhere yet. `cells`: of each configuration.
        Raises `OptionError` for values that kernels could not rely on."""
        numbers, *columns = (array(column, "pools") for column in state)
        expect(len({len(numbers), *map(len, columns)}) == 1, "columns of pools of one length")
        expect(((numbers >= 0) & (numbers < len(cells))).all(), "a configuration for each row of a pool")
        count = len(numbers)
        wide = len(columns) > len(_WRITTEN)
        expect(not wide or len(columns) == len(_WRITTEN) + len(_VALUES) - 1, "the columns of pools")
        width = k.WIDE_COLUMNS if wide else k.ROW_COLUMNS
        self._rows = np.zeros((0, width if self._kept is None else k.KEPT_COLUMNS), np.int64)
        self._arena.st[k.POOL_FREE], self._arena.st[k.POOL_LEFT] = k.NIL, 0
        self._add_rows(max(_FIRST_ROWS, 2 * count))
        for column, values in zip((*_WRITTEN, *self._value_columns[1:]), columns, strict=True):
            self._rows[:count, column] = values
        _, nodes, starts, ties, ties_max = columns[: len(_WRITTEN)]
        if not self._arena.st[k.STARTS_ONLY]:
            self._check(nodes, starts, ends=True)
            tied = ties >= 0
            self._check(ties[tied], ties_max[tied], ends=False)
            expect((ties_max <= starts).all() and (ties_max[~tied] < 0).all(), "ties that begin no later")
        expect(((starts >= 0) & (starts < 1 << 61)).all(), "starts of pools")
        owners = np.full(len(self._rows), -1, np.int64)
        owners[:count] = cells[numbers]
        attempt_rows(free_rows, len(owners), self._rows, self._arena.st, owners)
        return owners

    def _check(self, nodes: np.ndarray, starts: np.ndarray, ends: bool) -> None:
        st = self._arena.st
        expect(((nodes >= st[k.OLDEST]) & (nodes < st[k.TAIL])).all(), "nodes of pools that are there")
        held = self._arena.nodes[nodes & (len(self._arena.nodes) - 1)]
        expect((held[:, k.MAX] == starts).all(), "starts of pools as their nodes'")
        expect(not ends or bool((held[:, k.RIGHT] < 0).all()), "nodes of pools that are no unions")
