"""Pools with several steps (`spaseq.core.tecs.kernels.kept`): made of configurations, and made configurations again.

The sets of states whose runs they hold are a *family*. Their configurations, in which registers hold POOLED, are of the
first set of the family, their *home*. `pooled` has for each set its home and its step.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.index import find_cell, leave_all
from spaseq.core.engine.kernels.registers.layout import (
    CONF_CHAIN,
    CONF_FREE,
    CONF_KEY,
    CONF_NEXT,
    CONF_STATE,
    GROW_CELLS,
    NOTHING,
    POOLED,
    REGISTERS,
)
from spaseq.core.engine.kernels.registers.pooling import is_pool, take_values
from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.boxes import enter_pool, entry_of
from spaseq.core.tecs.kernels.heaps import add_to_heap, insert_in_heap, is_pair, tie_entries
from spaseq.core.tecs.kernels.kept import MELD_NODES, absorbed_nodes, gather_runs, settle_row, settled_nodes
from spaseq.core.tecs.kernels.kept_ranges import plan_entry
from spaseq.core.tecs.kernels.layout import (
    B_VALUE,
    DONE,
    FIRST,
    FREE_COUNT,
    GROW_ENTRIES,
    GROW_NODES,
    GROW_POOLS,
    HEAD,
    HEAD_MAX,
    LEFT,
    M_VALUE,
    MAX,
    NEEDED,
    NIL,
    P_LEFT,
    P_RIGHT,
    P_RUNS,
    P_START,
    POOL_HOME,
    POOL_LEFT,
    POOL_STEP,
    POOL_STEPS,
    POS,
    RIGHT,
    STARTS_ONLY,
    T_ROOT,
    T_STEPS,
)
from spaseq.core.tecs.kernels.moves import raise_start
from spaseq.core.tecs.kernels.pools import has_room, live_child, value_column
from spaseq.core.tecs.kernels.structure import clear_cell


@kernel
def pool_family(configurations, structure, pools, key, home, low):
    """Makes pools of the configurations of a family in a partition: DONE, GROW_CELLS, GROW_NODES or GROW_POOLS, and
    then it goes on from there at the next call. O(n log n)."""
    st, cells, entries, nodes = structure.st, structure.cells, structure.entries, structure.nodes
    confs, held, pooled = configurations.confs, pools.held, pools.pooled
    steps = pooled[home, POOL_STEPS]
    pools.modes[key * pooled.shape[0] + home] = 1
    for state in range(pooled.shape[0]):
        if pooled[state, 0] <= 0 or pooled[state, POOL_HOME] != home:
            continue
        cell = configurations.heads[key * pooled.shape[0] + state]
        while cell >= 0:
            following = confs[cell, CONF_NEXT]
            for r in range(held.shape[0]):
                held[r] = confs[cell, REGISTERS + r]
            count = 0 if is_pool(pools, state, held) else take_values(pools, state, held)
            if count and cells[cell, HEAD] >= 0 and cells[cell, HEAD_MAX] >= low:
                if st[CONF_FREE] < 0:
                    return GROW_CELLS
                if st[POOL_LEFT] < 1:
                    st[NEEDED] = 1
                    return GROW_POOLS
                most = 2 * MELD_NODES + 200 * settled_nodes(steps) + absorbed_nodes(steps)
                if st[STARTS_ONLY] == 0 and not has_room(nodes, st, structure.checks, most):
                    return GROW_NODES
                pool = find_cell(configurations, None, st, key, home, held, 0, 1, NIL)
                if plan_entry(pools.kept, pools, nodes, st, structure.checks, pool, steps, count, low) != DONE:
                    return GROW_NODES
                ties = np.int64(NIL)
                latest = np.int64(NIL)
                if st[STARTS_ONLY] == 0:
                    ties, latest = tie_entries(nodes, entries, st, cells[cell, FIRST], low, pools.path)
                move = structure.moves[0]  # the event that asked for pools is planned anew
                for i in range(count):
                    move[M_VALUE + i] = pools.box[i, B_VALUE]
                enter_pool(
                    pools, nodes, cells, st, pool, move, M_VALUE, entry_of(count, steps, pooled[state, POOL_STEP]),
                    cells[cell, HEAD], cells[cell, HEAD_MAX], ties, latest, low,
                )  # fmt: skip
            if count:
                clear_cell(cells, entries, st, cell)
                leave_all(configurations, None, st, cell)
            cell = following
    return DONE


@kernel
def settle_tree(pools, structure, cell, low):
    """Settles all rows of a pool, and gives each its runs as nodes: DONE or GROW_NODES, and then it goes on from there
    at the next call. O(rows)."""
    rows, ways, st, nodes = pools.rows, pools.ways, structure.st, structure.nodes
    steps = pools.trees[cell, T_STEPS]
    root = pools.trees[cell, T_ROOT]
    todo = 0
    if root >= 0 and rows[root, P_START] >= low:
        ways[0, 0] = root
        todo = 1
    while todo > 0:
        todo -= 1
        row = ways[todo, 0]
        if not has_room(nodes, st, structure.checks, settled_nodes(steps) + absorbed_nodes(steps)):
            return GROW_NODES
        settle_row(rows, nodes, st, row, steps, low)
        gather_runs(rows, nodes, st, row, steps, low, pools.path, pools.pieces)
        for side in range(P_LEFT, P_RIGHT + 1):
            child = live_child(rows, row, side, low)
            if child >= 0:
                ways[todo, 0] = child
                todo += 1
    return DONE


@hot
def add_runs(structure, cell, node, low, path):
    """Adds a node of the shape of `heaps`, whose maximum start is `low` or later, to a list of two entries at most. At
    most 3 * MELD_NODES new nodes."""
    nodes, cells, entries, st = structure.nodes, structure.cells, structure.entries, structure.st
    mask = nodes.shape[0] - 1
    below, start = nodes[node & mask, RIGHT], nodes[node & mask, POS]
    own = nodes[node & mask, LEFT] if below >= 0 else node
    add_to_heap(nodes, cells, entries, st, cell, own, nodes[own & mask, MAX], low, path)
    while below >= 0 and start >= low:
        item, following, after = below, np.int64(NIL), np.int64(NIL)
        if is_pair(nodes, below):
            item, following, after = nodes[below & mask, LEFT], nodes[below & mask, RIGHT], nodes[below & mask, POS]
        insert_in_heap(nodes, cells, entries, st, cell, item, start, low, path)
        below, start = following, after


@kernel
def dissolve_family(configurations, structure, pools, which, owners, lows, numbers, first):
    """`dissolve_rows` for rows of several steps, behind `settle_tree`; `owners`, `lows`: as there.

    `numbers`: int64 (sets of states, STEPS, 2): for a home and each step, the set of states, and bits of the registers
    that it needs.
    """
    st, confs, rows, held = structure.st, configurations.confs, pools.rows, pools.held
    while first < which.shape[0]:
        row, pool = which[first], owners[first]
        low, home = lows[pool], confs[pool, CONF_STATE]
        steps = pools.trees[pool, T_STEPS]
        if not has_room(structure.nodes, st, structure.checks, steps * (4 * MELD_NODES + 64)):
            return GROW_NODES, first
        # cells first: nothing may be done twice
        cell = st[CONF_FREE]
        free = 0
        while cell >= 0 and free < steps:
            free += 1
            cell = confs[cell, CONF_CHAIN]
        if free < steps:
            return GROW_CELLS, first
        if st[FREE_COUNT] < 8 * steps:
            st[NEEDED] = 1024
            return GROW_ENTRIES, first
        for step in range(steps):
            node, start = rows[row, P_RUNS + 2 * step], rows[row, P_RUNS + 2 * step + 1]
            if node < 0 or start < low:
                continue
            number = 0
            for r in range(held.shape[0]):
                held[r] = confs[pool, REGISTERS + r]
                if held[r] == POOLED:
                    held[r] = rows[row, value_column(number)]
                    number += 1
                if numbers[home, step, 1] >> r & 1 == 0:
                    held[r] = NOTHING
            cell = find_cell(configurations, None, st, confs[pool, CONF_KEY], numbers[home, step, 0], held, 0, 1, NIL)
            if st[STARTS_ONLY]:
                raise_start(structure.cells, cell, start)
            else:
                add_runs(structure, cell, node, low, pools.path)
        first += 1
    return DONE, first
