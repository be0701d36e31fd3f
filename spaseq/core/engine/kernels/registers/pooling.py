"""Pools of configurations: which values of their register an event treats alike, and how a pool is dissolved.

A configuration may be a pool (`spaseq.core.tecs.kernels.pools`). Its set of states then has registers that transitions
only compare with values of the event. No state behind them needs these (`GuardedAutomaton.pools`). The runs of the set
differ in them; in the pool they hold POOLED. If a run holds NOTHING or UNKNOWN in one of them, it passes all tests of
it or none. Then the pool holds that, too. Runs without any value are a configuration of the usual kind.

A set of states of a partition begins with a configuration for each value, which is faster while few of them move. When
an event moves more than `st[POOL_FROM]` of one list, they become pools (`pool_bucket`), and later runs enter those.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.index import find_cell, leave_all, state_number
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
    GROUP_STATES,
    GROW_CELLS,
    HOME,
    HOME_REACH,
    OP,
    POOLED,
    REGISTER,
    REGISTERS,
    SAME,
    SAME_AT_HOME,
    SYMBOL,
    TEST,
    UNKNOWN,
)
from spaseq.core.engine.kernels.registers.operations import admits
from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.boxes import enter_pool, value_column
from spaseq.core.tecs.kernels.heaps import add_to_heap, insert_in_heap, tie_entries
from spaseq.core.tecs.kernels.layout import (
    B_COUNT,
    B_CUTS,
    B_GREATEST,
    B_LEAST,
    B_VALUE,
    BY_TESTS,
    CUT,
    DIMENSIONS,
    DONE,
    ENDS_RUNS,
    FIRST,
    FREE_COUNT,
    GROW_ENTRIES,
    GROW_NODES,
    GROW_POOLS,
    HEAD,
    HEAD_MAX,
    M_LABEL,
    M_POOLED,
    M_SKIP_POOLED,
    M_SKIP_VALUE,
    M_TAG,
    M_VALUE,
    MARK_ACCEPTS,
    MARK_TO,
    MELD_DEPTH,
    NEEDED,
    NIL,
    P_NODE,
    P_START,
    P_TIES,
    P_TIES_MAX,
    POOL_FROM,
    POOL_HOME,
    POOL_LEFT,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STARTS_ONLY,
)
from spaseq.core.tecs.kernels.pools import has_room
from spaseq.core.tecs.kernels.structure import clear_cell


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
def cut_register(pools, automaton, mover, values, at, only_tests, first):
    """Cuts the values of register `at` of a pool into ranges of which the mover's tests hold alike: their number, in
    `pools.cuts` from `first` on.

    Ranges are left out if `only_tests`, all runs move by tests of this register, and none of them holds. O((tests of
    the mover)²).
    """
    ops, cuts = automaton.ops, pools.cuts
    half = cuts.shape[0] - cuts.shape[0] // (DIMENSIONS + 1)
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
    count = first
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
        if truth == 0 and only_tests:
            before = np.int64(-1)
        elif truth >= 0 and truth == before:
            cuts[count - 1, 1] = most
        else:
            cuts[count, 0] = least
            cuts[count, 1] = most
            count += 1
            before = truth
    return count - first


@hot
def is_pool(pools, state, registers):
    """True if a configuration of this set of states, with these registers, is a pool."""
    found = False
    for i in range(pools.pooled[state, 0]):
        found = found or registers[pools.pooled[state, 2 + i]] == POOLED
    return found


@hot
def cut_values(pools, automaton, mover, values, state, registers):
    """Cuts the values of a pool, of several registers, into boxes of which the mover's tests hold alike: their number,
    0 or more. `hold_box` has each."""
    turns = 1
    first = 0
    found = 0
    for i in range(pools.pooled[state, 0]):
        at = pools.pooled[state, 2 + i]
        if registers[at] == POOLED:
            count = cut_register(pools, automaton, mover, values, at, pools.pooled[state, 1] & BY_TESTS != 0, first)
            pools.box[found, B_CUTS] = first
            pools.box[found, B_COUNT] = count
            first += count
            turns *= count
            found += 1
    return turns


@hot
def hold_box(pools, confs, source, turn):
    """Puts the registers of a run of the pool `source`, with values of box number `turn`, into `pools.held`, and this
    box into `pools.box`."""
    held, pooled = pools.held, pools.pooled
    state = confs[source, CONF_STATE]
    for r in range(held.shape[0]):
        held[r] = confs[source, REGISTERS + r]
    found = 0
    for i in range(pooled[state, 0]):
        at = pooled[state, 2 + i]
        if held[at] == POOLED:
            place = pools.box[found, B_CUTS] + turn % pools.box[found, B_COUNT]
            turn //= pools.box[found, B_COUNT]
            pools.box[found, B_LEAST] = pools.cuts[place, 0]
            pools.box[found, B_GREATEST] = pools.cuts[place, 1]
            held[at] = pools.cuts[place, 0]
            found += 1


@hot
def moves_on(pools, known, groups, count, home):
    """True if one of the first `count` groups marks or accepts, and does not only tag runs of the pools of `home`.
    `known`: as of `state_number`."""
    found = False
    for g in range(count):
        tags = False
        if home >= 0 and groups[g, GROUP_STATES] != 0:
            state = state_number(known, groups[g, GROUP_STATES])
            tags = state >= 0 and pools.pooled[state, POOL_HOME] == home
        found = found or (groups[g, GROUP_LABEL] >= 0 and not tags) or groups[g, GROUP_ACCEPTS] != 0
    return found


@hot
def take_values(pools, state, registers):
    """The number of values that a run of a set of states has in its pool, 0 if it is in none. Puts them into
    `pools.box`; `registers` become those of the pool."""
    count = 0
    for i in range(pools.pooled[state, 0]):
        at = pools.pooled[state, 2 + i]
        if registers[at] > UNKNOWN:
            pools.box[count, B_VALUE] = registers[at]
            registers[at] = POOLED
            count += 1
    return count


@hot
def home_of(pools, state):
    """The set of states whose list has the pools of this one."""
    home = pools.pooled[state, POOL_HOME]
    return home if home >= 0 else state


@kernel
def home_turns(pools, key, mover, reach):
    """The number of lists of a mover's home with pools that may move, in a partition. `reach`: as of the mover."""
    found = 0
    if pools is not None:
        home = mover[HOME]
        if home >= 0 and pools.modes[key * pools.pooled.shape[0] + home] != 0:
            found = 2 if reach == SAME and mover[HOME_REACH] == SAME_AT_HOME else 1
    return found


@hot
def holds_pooled(confs, cell):
    """True if a configuration is a pool."""
    found = False
    for r in range(REGISTERS, confs.shape[1]):
        found = found or confs[cell, r] == POOLED
    return found


@hot
def pool_values(pools, key, state, registers):
    """`take_values` if the set of states has pools in this partition."""
    if pools.pooled[state, 0] and pools.modes[key * pools.pooled.shape[0] + home_of(pools, state)] != 0:
        return take_values(pools, state, registers)
    return 0


@hot
def note_cut(pools, move, cell):
    """A move that ends the runs of the pool `cell` with values in `pools.box`."""
    for column in (MARK_ACCEPTS, SKIP_ACCEPTS, M_LABEL, M_TAG, M_POOLED, M_SKIP_POOLED):
        move[column] = 0
    move[SOURCE] = CUT
    move[MARK_TO] = NIL
    move[SKIP_TO] = cell
    for i in range(DIMENSIONS):
        move[M_VALUE + i] = pools.box[i, B_LEAST]
        move[M_SKIP_VALUE + i] = pools.box[i, B_GREATEST]


@kernel
def can_pool(pools, st, bucket, state, moved):
    """True if an event that has `moved` so many configurations of `bucket` makes pools of them. The set of states can
    have pools then, and has none yet.

    PERF: `A AS a ; NOT (B AS b FILTER b.price > a.price) ; E` keeps some six runs; pools take 0.17 us an event there,
    configurations 0.12 (2026-11-27).
    """
    if pools is not None and pools.pooled[state, 0] > 0:
        if pools.modes[bucket - state + home_of(pools, state)] != 0:
            return False
        return moved > (4 * st[POOL_FROM] if pools.pooled[state, 1] & ENDS_RUNS else st[POOL_FROM])
    return False


@kernel
def pool_bucket(configurations, structure, pools, bucket, low):
    """Makes pools of the configurations of a bucket: DONE, GROW_CELLS, GROW_NODES or GROW_POOLS, and then it goes on
    from there at the next call. O(n log n)."""
    st, cells, entries, nodes = structure.st, structure.cells, structure.entries, structure.nodes
    confs, path, held = configurations.confs, pools.path, pools.held
    pools.modes[bucket] = 1
    cell = configurations.heads[bucket]
    while cell >= 0:
        following = confs[cell, CONF_NEXT]
        key = confs[cell, CONF_KEY]
        state = confs[cell, CONF_STATE]
        for r in range(held.shape[0]):
            held[r] = confs[cell, REGISTERS + r]
        count = 0 if is_pool(pools, state, held) else take_values(pools, state, held)
        if count and (cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low):
            clear_cell(cells, entries, st, cell)
            leave_all(configurations, None, st, cell)
        elif count:
            if st[CONF_FREE] < 0:
                return GROW_CELLS
            if st[POOL_LEFT] < 1:
                st[NEEDED] = 1
                return GROW_POOLS
            if st[STARTS_ONLY] == 0 and not has_room(nodes, st, structure.checks, 6 * MELD_DEPTH + 24):
                return GROW_NODES
            pool = find_cell(configurations, None, st, key, state, held, 0, 1, NIL)
            ties = np.int64(NIL)
            latest = np.int64(NIL)
            if st[STARTS_ONLY] == 0:
                ties, latest = tie_entries(nodes, entries, st, cells[cell, FIRST], low, path)
            move = structure.moves[0]  # the event that asked for pools is planned anew
            for i in range(count):
                move[M_VALUE + i] = pools.box[i, B_VALUE]
            enter_pool(
                pools, nodes, cells, st, pool, move, M_VALUE, count, cells[cell, HEAD], cells[cell, HEAD_MAX], ties,
                latest, low,
            )  # fmt: skip
            clear_cell(cells, entries, st, cell)
            leave_all(configurations, None, st, cell)
        cell = following
    return DONE


@kernel
def dissolve_rows(configurations, structure, pools, which, owners, lows, first):
    """Makes configurations of the rows which[first:]: (status, how far it came). Statuses: DONE, GROW_CELLS,
    GROW_ENTRIES, GROW_NODES.

    `which`: int64 (n,), by ascending start, so that each is the head of its cell;
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
        number = 0
        for r in range(held.shape[0]):
            held[r] = confs[pool, REGISTERS + r]
            if held[r] == POOLED:
                held[r] = rows[row, value_column(number)]
                number += 1
        cell = find_cell(configurations, None, st, confs[pool, CONF_KEY], state, held, 0, 1, NIL)
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
