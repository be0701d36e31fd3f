"""Pools of configurations: which values of their register an event treats alike, and how a pool is dissolved.

A configuration may be a pool (`spaseq.core.tecs.kernels.pools`). Its set of states then has a register that transitions
only compare with values of the event. No state behind them needs it (`GuardedAutomaton.pools`). The runs of the set
differ in this register; in the pool it holds POOLED. Runs that hold NOTHING or UNKNOWN there pass all tests or none:
they are a configuration of the usual kind.

A set of states of a partition begins with a configuration for each value, which is faster while few of them move. When
an event moves more than `st[POOL_FROM]` of one list, they become pools (`pool_bucket`), and later runs enter those.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.index import find_cell, leave_all
from spaseq.core.engine.kernels.registers.layout import (
    ARC_OPS,
    ARC_OPS_END,
    ARCS,
    ARCS_END,
    COLUMN,
    CONF_FREE,
    CONF_KEY,
    CONF_NEXT,
    CONF_STATE,
    GREATEST,
    GROUP_ACCEPTS,
    GROUP_LABEL,
    GROW_CELLS,
    NOTHING,
    OP,
    POOLED,
    REGISTER,
    REGISTERS,
    SYMBOL,
    TEST,
    UNKNOWN,
)
from spaseq.core.engine.kernels.registers.operations import admits
from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.heaps import add_to_heap, insert_in_heap, meld
from spaseq.core.tecs.kernels.layout import (
    DONE,
    FIRST,
    FREE_COUNT,
    GROW_ENTRIES,
    GROW_NODES,
    GROW_POOLS,
    HEAD,
    HEAD_MAX,
    MELD_DEPTH,
    NEEDED,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    P_NODE,
    P_START,
    P_TIES,
    P_TIES_MAX,
    P_VALUE,
    POOL_FREE,
    POOL_LEFT,
    STARTS_ONLY,
)
from spaseq.core.tecs.kernels.pools import enter_pool, has_room
from spaseq.core.tecs.kernels.structure import clear_cell, evict_dead_entries


@hot
def truth_of(automaton, mover, values, at, value):
    """The tests of register `at` in a mover that hold of a value, as bits; -1 if they are too many for a word."""
    ops = automaton.ops
    truth = np.int64(0)
    bit = 0
    for a in range(mover[ARCS], mover[ARCS_END]):
        arc = automaton.arcs[automaton.able[a]]
        for o in range(arc[ARC_OPS], arc[ARC_OPS_END]):
            if ops[o, OP] == TEST and ops[o, REGISTER] == at:
                if bit > 60:
                    return np.int64(-1)
                truth |= np.int64(admits(ops[o, SYMBOL], value, values[ops[o, COLUMN]])) << bit
                bit += 1
    return truth


@kernel
def cut_values(pools, automaton, mover, values, state):
    """Cuts the values of a pool into ranges of which the mover's tests hold alike: their number, in `pools.cuts`.

    Ranges are left out if all runs move by tests and none of them holds. O((tests of the mover)²).
    """
    ops, cuts = automaton.ops, pools.cuts
    at = pools.pooled[state, 0]
    half = cuts.shape[0] // 2
    points = 0
    for a in range(mover[ARCS], mover[ARCS_END]):
        arc = automaton.arcs[automaton.able[a]]
        for o in range(arc[ARC_OPS], arc[ARC_OPS_END]):
            if ops[o, OP] == TEST and ops[o, REGISTER] == at and values[ops[o, COLUMN]] > UNKNOWN:
                value = values[ops[o, COLUMN]]
                i = points
                while i > 0 and cuts[half + i - 1, 0] > value:
                    i -= 1
                if i > 0 and cuts[half + i - 1, 0] == value:
                    continue
                for j in range(points, i, -1):
                    cuts[half + j, 0] = cuts[half + j - 1, 0]
                cuts[half + i, 0] = value
                points += 1
    count = 0
    before = np.int64(-1)
    for j in range(2 * points + 1):
        least = UNKNOWN + 1
        most = GREATEST
        if j % 2 == 1:
            least = most = cuts[half + j // 2, 0]
        else:
            if j > 0:
                if cuts[half + j // 2 - 1, 0] == GREATEST:
                    continue
                least = cuts[half + j // 2 - 1, 0] + 1
            if j < 2 * points:
                most = cuts[half + j // 2, 0] - 1
        if least > most:
            continue
        truth = truth_of(automaton, mover, values, at, least)
        if truth == 0 and pools.pooled[state, 1]:
            before = np.int64(-1)
        elif truth >= 0 and truth == before:
            cuts[count - 1, 1] = most
        else:
            cuts[count, 0] = least
            cuts[count, 1] = most
            count += 1
            before = truth
    return count


@hot
def hold_value(pools, confs, source, turn):
    """Puts the registers of a run of the pool `source`, with a value of the range `turn`, into `pools.held`."""
    held = pools.held
    for r in range(held.shape[0]):
        held[r] = confs[source, REGISTERS + r]
    held[pools.pooled[confs[source, CONF_STATE], 0]] = pools.cuts[turn, 0]


@hot
def moves_on(groups, count):
    """True if one of the first `count` groups marks or accepts."""
    found = False
    for g in range(count):
        found = found or groups[g, GROUP_LABEL] >= 0 or groups[g, GROUP_ACCEPTS] != 0
    return found


@hot
def pool_value(pools, key, state, registers):
    """The value with which a run enters the pool of a set of states; `registers` become those of the pool. NOTHING if
    it enters none."""
    value = NOTHING
    at = pools.pooled[state, 0]
    if at >= 0 and pools.modes[key * pools.pooled.shape[0] + state] != 0 and registers[at] > UNKNOWN:
        value = registers[at]
        registers[at] = POOLED
    return value


@kernel
def can_pool(pools, bucket, state):
    """True if the set of states can have pools, and the configurations of `bucket` are still in their place."""
    if pools is not None:
        return pools.pooled[state, 0] >= 0 and pools.modes[bucket] == 0
    return False


@kernel
def pool_bucket(configurations, structure, pools, bucket, low):
    """Makes pools of the configurations of a bucket: DONE, GROW_CELLS, GROW_NODES or GROW_POOLS, and then it goes on
    from there at the next call. O(n log n)."""
    st, cells, entries, nodes = structure.st, structure.cells, structure.entries, structure.nodes
    confs, rows, path, held = configurations.confs, pools.rows, pools.path, pools.held
    pools.modes[bucket] = 1
    cell = configurations.heads[bucket]
    while cell >= 0:
        following = confs[cell, CONF_NEXT]
        key = confs[cell, CONF_KEY]
        state = confs[cell, CONF_STATE]
        at = pools.pooled[state, 0]
        value = confs[cell, REGISTERS + at]
        if value > POOLED and (cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low):
            clear_cell(cells, entries, st, cell)
            leave_all(configurations, None, st, cell)
        elif value > POOLED:
            if st[CONF_FREE] < 0:
                return GROW_CELLS
            if st[POOL_LEFT] < 1:
                st[NEEDED] = 1
                return GROW_POOLS
            if st[STARTS_ONLY] == 0 and not has_room(nodes, st, structure.checks, 4 * MELD_DEPTH + 16):
                return GROW_NODES
            for r in range(held.shape[0]):
                held[r] = confs[cell, REGISTERS + r]
            held[at] = POOLED
            pool = find_cell(configurations, None, st, key, state, held, 0, 1)
            ties = np.int64(NIL)
            latest = np.int64(NIL)
            if st[STARTS_ONLY] == 0:
                evict_dead_entries(cells, entries, st, cell, low)
                entry = cells[cell, FIRST]
                if entry >= 0:
                    ties = entries[entry, NODE]
                    latest = entries[entry, NODE_MAX]
                    if entries[entry, NEXT] >= 0:
                        ties = meld(nodes, st, ties, entries[entries[entry, NEXT], NODE], low, path)
            row = st[POOL_FREE]
            enter_pool(pools, nodes, cells, st, pool, value, cells[cell, HEAD], cells[cell, HEAD_MAX], low)
            rows[row, P_TIES] = ties
            rows[row, P_TIES_MAX] = latest
            clear_cell(cells, entries, st, cell)
            leave_all(configurations, None, st, cell)
        cell = following
    return DONE


@kernel
def dissolve_rows(configurations, structure, pools, register, which, owners, lows, first):
    """Makes configurations of the rows which[first:]: (status, how far it came). Statuses: DONE, GROW_CELLS,
    GROW_ENTRIES, GROW_NODES.

    `register`: that of the pools. `which`: int64 (n,), by ascending start, so that each is the head of its cell;
    `owners`: int64 (n,), the pool of each. `lows`: int64 (cells,), the first live start of each pool. The set of states
    must have no pools any more.
    """
    st, cells, entries, nodes = structure.st, structure.cells, structure.entries, structure.nodes
    confs, rows = configurations.confs, pools.rows
    while first < which.shape[0]:
        if st[CONF_FREE] < 0:
            return GROW_CELLS, first
        if st[FREE_COUNT] < 8:
            st[NEEDED] = 1024
            return GROW_ENTRIES, first
        if st[STARTS_ONLY] == 0 and not has_room(nodes, st, structure.checks, 4 * MELD_DEPTH + 64):
            return GROW_NODES, first
        row = which[first]
        pool = owners[first]
        low = lows[pool]
        state = confs[pool, CONF_STATE]
        held = pools.held
        for r in range(held.shape[0]):
            held[r] = confs[pool, REGISTERS + r]
        held[register] = rows[row, P_VALUE]
        cell = find_cell(configurations, None, st, confs[pool, CONF_KEY], state, held, 0, 1)
        if st[STARTS_ONLY]:
            cells[cell, HEAD] = 0
            cells[cell, HEAD_MAX] = rows[row, P_START]
        else:
            add_to_heap(nodes, cells, entries, st, cell, rows[row, P_NODE], rows[row, P_START], low, pools.path)
            if rows[row, P_TIES] != NIL:
                insert_in_heap(
                    nodes, cells, entries, st, cell, rows[row, P_TIES], rows[row, P_TIES_MAX], low, pools.path
                )  # fmt: skip
        first += 1
    return DONE, first
