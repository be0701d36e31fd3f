"""The moves of an event, configuration by configuration, and the loop over events."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.drivers import apply_planned, finish_event, first_unconsumed, note_consumed
from spaseq.core.engine.kernels.registers.groups import group_arcs, group_sets, note_answers
from spaseq.core.engine.kernels.registers.index import (
    equal_slot,
    find_cell,
    follower,
    free_left,
    is_indexed_by,
    leave_all,
    skip_path,
    state_number,
    sweep,
)
from spaseq.core.engine.kernels.registers.layout import (
    ABOVE,
    ACCEPTED,
    ALL_OF_THEM,
    ANSWERS,
    ARCS,
    ARCS_END,
    BELOW,
    CHAINS_FULL,
    CONF_COUNT,
    CONF_FREE,
    CONF_MORE,
    CONF_ROWS,
    CONF_STATE,
    CONF_TARGET,
    CONF_VALUE,
    GREATEST,
    GROUP_ACCEPTS,
    GROUP_FIRST,
    GROUP_LABEL,
    GROUP_REGISTERS,
    GROUP_ROWS,
    GROUP_STATES,
    GROW_ACCEPTED,
    GROW_CELLS,
    GROW_CHAINS,
    GROW_HELD,
    GROW_MOVES,
    HELD_LEFT,
    HOME,
    HOME_REACH,
    IN_SETS,
    LOOKED_EACH,
    LOOKED_FIRST,
    LOOKED_UP,
    MOVER,
    NEED_ANSWERS,
    NOTHING,
    ONLY_ENDS,
    REACH,
    REGISTERS,
    SAME,
    SAME_AT_HOME,
    STARTS,
    SWEEP_AT,
    UNKNOWN,
)
from spaseq.core.engine.kernels.registers.pooling import (
    can_pool,
    cut_values,
    hold_box,
    holds_pooled,
    home_turns,
    is_pool,
    moves_on,
    note_cut,
    pool_values,
)
from spaseq.core.jit import hot, inline, kernel
from spaseq.core.tecs.kernels.boxes import entry_of, has_rows
from spaseq.core.tecs.kernels.kept_ranges import fold_runs, plan_entry, plan_tag
from spaseq.core.tecs.kernels.layout import (
    B_SKIPPED,
    B_VALUE,
    CONSUME_NONE,
    DIMENSIONS,
    DONE,
    E_CLASS,
    E_KEEP,
    E_KEY,
    E_LOW,
    E_POSITION,
    E_ROW,
    ENDS,
    GROW_POOLS,
    HEAD,
    HEAD_MAX,
    KEEP,
    M_LABEL,
    M_MAX,
    M_NODE,
    M_POOLED,
    M_SKIP_POOLED,
    M_SKIP_VALUE,
    M_TAG,
    M_VALUE,
    MARK_ACCEPTS,
    MARK_TO,
    NEED_STATES,
    NEEDED,
    NIL,
    OUTS,
    POOL_FROM,
    POOL_HOME,
    POOL_LEFT,
    POOL_STEP,
    POOL_STEPS,
    POOL_UP,
    RANGE,
    ROW,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STAY,
    TAG,
    TAGGED,
    UNPOOL,
)
from spaseq.core.tecs.kernels.structure import clear_cell


@inline
def plan_moves(
    source, key, low, mover, values, extras, automaton, structure, configurations, several, effects, asking, chains,
    pools, count,
):  # fmt: skip
    """Append the moves of one configuration (cell `source`, NIL for a run that starts here) to `moves`.

    Their number afterwards, or minus a status. A pool moves as one run does for each box of values that the event
    treats alike; the runs of the box stay. If the event ends them, one more move does so. If it takes them to another
    set of states, the set can have no pools: UNPOOL.
    """
    confs, st, moves = configurations.confs, structure.st, structure.moves
    groups, outputs = effects.groups, automaton.outputs
    first, last = mover[ARCS], mover[ARCS_END]
    width = effects.out.shape[1]
    given = confs[source, REGISTERS:] if source >= 0 else effects.out[1]
    idle = NIL if source < 0 else STAY
    origin = source
    turns = 1
    home = np.int64(NIL)
    step = np.int64(NIL)
    if pools is not None and source >= 0 and is_pool(pools, confs[source, CONF_STATE], given):
        origin = np.int64(RANGE)
        turns = cut_values(pools, automaton, mover, values, mover[MOVER], given)
        given = pools.held
        home, step = pools.pooled[mover[MOVER], POOL_HOME], pools.pooled[mover[MOVER], POOL_STEP]
    for turn in range(turns):
        if pools is not None and origin == RANGE:
            hold_box(pools, confs, source, turn)
        if several is None:
            found = group_arcs(given, first, last, automaton, values, effects, asking, chains)
        else:
            rows = confs[source, CONF_ROWS] if source >= 0 else 1
            found = IN_SETS
            if rows == 1:
                found = group_arcs(given, first, last, automaton, values, effects, asking, chains)
            if found == IN_SETS:
                more = confs[source, CONF_MORE] if source >= 0 else NIL
                found = group_sets(
                    given, more, rows, several, first, last, automaton, values, extras, effects, asking, chains
                )
        if found < 0:
            return found
        node = np.int64(NIL)
        latest = np.int64(NIL)
        if pools is not None and origin == RANGE and moves_on(pools, automaton.known, groups, found, home):
            status, node, latest = fold_runs(
                pools.kept, pools, structure.nodes, st, structure.checks, source, step, low
            )  # fmt: skip
            if status != DONE:
                return np.int64(-status)
            if latest < 0:
                continue
        if count + 2 * found + 2 > moves.shape[0]:
            return -GROW_MOVES
        begin = count
        skip_to = NIL
        skip = NIL
        skip_pooled = 0
        ends = False
        for g in range(found):
            group = groups[g]
            cell = np.int64(NIL)
            pooled = 0
            if group[GROUP_STATES] != 0:
                state = state_number(automaton.known, group[GROUP_STATES])
                if state < 0:
                    st[NEEDED] = group[GROUP_STATES]
                    return -NEED_STATES
                if st[CONF_FREE] < 0:
                    return -GROW_CELLS
                if several is not None and st[HELD_LEFT] < group[GROUP_ROWS] - 1:
                    st[NEEDED] = group[GROUP_ROWS]
                    return -GROW_HELD
                registers = group[GROUP_REGISTERS : GROUP_REGISTERS + width]
                if pools is not None and home >= 0 and pools.pooled[state, POOL_HOME] == home:
                    cell = source  # the values are kept, whatever the registers hold for this box
                else:
                    at = state
                    steps = np.int64(0)
                    if pools is not None:
                        pooled = pool_values(pools, key, state, registers)
                        if pooled and st[POOL_LEFT] <= 2 * count + 1:
                            st[NEEDED] = 2 * count + 2
                            return -GROW_POOLS
                        if pooled and pools.pooled[state, POOL_HOME] >= 0:
                            at = pools.pooled[state, POOL_HOME]
                            steps = pools.pooled[state, POOL_STEPS]
                    cell = find_cell(
                        configurations, several, st, key, at, registers, group[GROUP_FIRST], group[GROUP_ROWS], source
                    )
                    if pools is not None and steps:
                        status = plan_entry(
                            pools.kept, pools, structure.nodes, st, structure.checks, cell, steps, pooled, low
                        )
                        if status != DONE:
                            return -status
                        pooled = entry_of(pooled, steps, pools.pooled[state, POOL_STEP])
            if group[GROUP_LABEL] < 0:
                skip = g
                skip_to = STAY if cell == source and cell >= 0 else cell
                if pools is not None:
                    skip_pooled = pooled
                    for i in range(DIMENSIONS):
                        pools.box[i, B_SKIPPED] = pools.box[i, B_VALUE]
                continue
            if pools is not None and home >= 0 and cell == source:
                status = plan_tag(
                    pools.kept, pools, structure.nodes, st, structure.checks, source, low, moves[count],
                    group[GROUP_LABEL], step, pools.pooled[state, POOL_STEP],
                )  # fmt: skip
                if status != DONE:
                    return -status
                count += 1
                if not group[GROUP_ACCEPTS]:
                    continue
                cell = np.int64(NIL)
            moves[count, SOURCE] = origin
            moves[count, MARK_TO] = cell
            moves[count, MARK_ACCEPTS] = group[GROUP_ACCEPTS]
            moves[count, M_LABEL] = group[GROUP_LABEL]
            moves[count, SKIP_TO] = idle
            moves[count, SKIP_ACCEPTS] = 0
            moves[count, M_TAG] = 0
            if pools is not None:
                moves[count, M_POOLED] = pooled
                moves[count, M_SKIP_POOLED] = 0
                for i in range(DIMENSIONS):
                    moves[count, M_VALUE + i] = pools.box[i, B_VALUE]
                if origin == RANGE:
                    moves[count, M_NODE] = node
                    moves[count, M_MAX] = latest
            if group[GROUP_ACCEPTS] and outputs:
                moves[count, M_TAG] = note_answers(st, effects, group, several)
                if moves[count, M_TAG] < 0:
                    return -GROW_ACCEPTED
            count += 1
        accepts = skip >= 0 and groups[skip, GROUP_ACCEPTS] != 0
        if pools is not None and origin == RANGE:
            if skip_to >= 0:
                st[NEEDED] = confs[source, CONF_STATE]
                return -UNPOOL
            ends = skip_to != STAY and has_rows(pools, source, low)
            skip_to = np.int64(STAY)
        if count > begin or skip_to != idle or accepts:
            if count == begin or (accepts and moves[count - 1, SOURCE] == TAG):
                moves[count, SOURCE] = origin
                moves[count, MARK_TO] = NIL
                moves[count, MARK_ACCEPTS] = 0
                moves[count, M_LABEL] = 0
                moves[count, M_TAG] = 0
                if pools is not None:
                    moves[count, M_POOLED] = 0
                    moves[count, M_SKIP_POOLED] = 0
                    moves[count, M_NODE] = node
                    moves[count, M_MAX] = latest
                count += 1
            moves[count - 1, SKIP_TO] = skip_to
            moves[count - 1, SKIP_ACCEPTS] = accepts
            if pools is not None and skip_pooled and skip_to >= 0:
                moves[count - 1, M_SKIP_POOLED] = skip_pooled
                for i in range(DIMENSIONS):
                    moves[count - 1, M_SKIP_VALUE + i] = pools.box[i, B_SKIPPED]
            if accepts and outputs:  # the tag behind that of the marking transition, which was the last, if it accepts
                tag = note_answers(st, effects, groups[skip], several)
                if tag < 0:
                    return -GROW_ACCEPTED
                moves[count - 1, M_TAG] = tag - 1
        if pools is not None and ends:
            note_cut(pools, moves[count], source)
            count += 1
    return count


@hot
def looked_up(mover, values, extras):
    """(which configurations can move, the value they are looked up by, the number of other values of the event, the
    first of these in `extras`).

    Several values are one for an order: the one that most registers pass. If a value is NOTHING, all can move.
    """
    reach = mover[REACH]
    if reach in (ALL_OF_THEM, STARTS):
        return reach, NOTHING, 0, 0
    column = mover[LOOKED_UP]
    value = values[column]
    others = 0
    first = 0
    if extras is not None and mover[LOOKED_EACH] >= 0:
        others = values[mover[LOOKED_EACH]]
        first = values[mover[LOOKED_FIRST]]
        for j in range(others):
            other = extras[first + j, column]
            if other == NOTHING or value == NOTHING:
                value = NOTHING
            elif reach == SAME or other == UNKNOWN:
                continue
            elif value == UNKNOWN or (other > value) == (reach == BELOW):
                value = other
    if value == NOTHING:
        return np.int64(ALL_OF_THEM), value, 0, 0
    return reach, value, others, first


@hot
def looked_before(mover, values, extras, first, j):
    """True if the j-th of an event's other values, from `first` in `extras` on, is one of those before it; `mover`
    names the column."""
    column = mover[LOOKED_UP]
    found = values[column] == extras[first + j, column]
    for i in range(j):
        found = found or extras[first + i, column] == extras[first + j, column]
    return found


@hot
def begin_same(configurations, mover, state, key, values, extras, first, turn):
    """The list of a hash for the set of states `state`, and the value that its configurations must have.

    It is NOTHING at turn 0, which any value passes, then each value of the event, once. There is a list at each `turn`.
    """
    wanted = NOTHING
    if turn == 1:
        wanted = values[mover[LOOKED_UP]]
    if extras is not None and turn > 1 and not looked_before(mover, values, extras, first, turn - 2):
        wanted = extras[first + turn - 2, mover[LOOKED_UP]]
    elif turn > 1:
        wanted = UNKNOWN
    if wanted == UNKNOWN:
        return NIL, wanted
    equals = configurations.equals
    return equals[equal_slot(key, state, wanted, equals)], wanted


@hot
def begin_ordered(configurations, bucket, reach, value, turn):
    """A part of the skip list of `bucket`, and the greatest value in it. At `turn` 0 these are the configurations that
    hold nothing, with those below the event's value if the test is BELOW; at turn 1 those ABOVE it."""
    confs, links, tops, path = configurations.confs, configurations.links, configurations.tops, configurations.path
    if turn == 0:
        return tops[bucket, 0], value if reach == BELOW and value != UNKNOWN else NOTHING
    if value == UNKNOWN:
        return NIL, value
    skip_path(links, tops, confs, bucket, value, np.int64(NIL), path)
    return tops[bucket, 0] if path[0] < 0 else links[path[0], 0], GREATEST


@hot
def plan_list(
    cell, bound, reach, mover, key, low, values, extras, automaton, structure, configurations, several, effects, asking,
    chains, only_ends, count, ended,
):  # fmt: skip
    """Append the moves of a list of configurations, from `cell` on: (their number, or minus a status; `ended`).

    Of the list of a hash those that have the value `bound`, of a skip list those up to it. `reach`: as of a mover.
    `only_ends`: the first that completes is enough; `ended`: there is one.
    """
    cells, confs, st, moves = structure.cells, configurations.confs, structure.st, structure.moves
    more = cell >= 0 or reach == STARTS
    while more:
        following = NIL if cell < 0 else follower(confs, configurations.links, reach, cell)
        if reach in (BELOW, ABOVE) and confs[cell, CONF_VALUE] > bound:
            break
        if reach == SAME and not is_indexed_by(confs, cell, key, mover[MOVER], bound):
            pass  # another one of the same hash
        elif reach == SAME_AT_HOME and not is_indexed_by(confs, cell, key, mover[HOME], bound):
            pass
        elif cell >= 0 and confs[cell, CONF_STATE] != mover[MOVER] and not holds_pooled(confs, cell):
            pass  # the mover has come for the pools in the list of their home
        elif cell >= 0 and (cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low):
            if cells[cell, HEAD] >= 0:
                clear_cell(cells, structure.entries, st, cell)
            if confs[cell, CONF_TARGET] != st[ROW]:  # else another move of this event leads here
                leave_all(configurations, several, st, cell)
        else:
            count = plan_moves(
                cell, key, low, mover, values, extras, automaton, structure, configurations, several, effects, asking,
                chains, effects.pools, count,
            )  # fmt: skip
            if count < 0:
                break
            ended |= only_ends and count > 0 and (moves[count - 1, MARK_ACCEPTS] or moves[count - 1, SKIP_ACCEPTS])
        cell = following
        more = cell >= 0 and not (only_ends and ended)
    return count, ended


@inline
def plan_event(
    c, key, low, values, extras, automaton, structure, configurations, several, effects, asking, chains, order
):  # fmt: skip
    """The moves of all configurations of one partition at one event: their number, or minus a status.

    If only ends are asked for and one has been found, those that could but complete are passed over.
    """
    st = structure.st
    st[TAGGED] = 0
    ended = False
    count = np.int64(0)
    for m in range(automaton.movers_from[c], automaton.movers_from[c + 1]):
        mover = automaton.movers[m]
        only_ends = order == ENDS and mover[ONLY_ENDS] != 0
        reach, value, others, first = looked_up(mover, values, extras)
        bucket = key * configurations.indexed.shape[0] + mover[MOVER]
        turns = 2 + others if reach == SAME else 2 if reach == ABOVE else 1
        way = reach
        more = 0
        if mover[HOME] >= 0:
            more = home_turns(effects.pools, key, mover, reach)
        for turn in range(0 if only_ends and ended else turns + more):
            cell, bound = np.int64(NIL), np.int64(NOTHING)
            if turn == turns:
                way = mover[HOME_REACH] if reach == SAME else np.int64(ALL_OF_THEM)
            if way in (SAME, SAME_AT_HOME):
                state = mover[MOVER] if way == SAME else mover[HOME]
                at = turn if way == SAME else turn - turns
                cell, bound = begin_same(configurations, mover, state, key, values, extras, first, at)
            elif turn == turns:
                cell = configurations.heads[bucket - mover[MOVER] + mover[HOME]]
            elif reach == ALL_OF_THEM:
                cell = configurations.heads[bucket]
            elif reach != STARTS:
                cell, bound = begin_ordered(configurations, bucket, reach, value, turn)
            before = count
            count, ended = plan_list(
                cell, bound, way, mover, key, low, values, extras, automaton, structure, configurations, several,
                effects, asking, chains, only_ends, count, ended,
            )  # fmt: skip
            if count < 0:
                return count
            # PERF: the call copies all arrays of pools, 25 ns of the 130 of an event
            if turn < turns and count - before > st[POOL_FROM] and can_pool(
                effects.pools, st, bucket, mover[MOVER], count - before
            ):  # fmt: skip
                st[NEEDED] = bucket
                return np.int64(-POOL_UP)
    return count


@kernel
def run_guarded(
    events, values, extras, automaton, structure, configurations, several, effects, asking, chains, floors, consume,
    sweep_by_key, budget, runs, output, recent, after,
):  # fmt: skip
    """Algorithm 1 over a batch for an automaton whose guards are operations on registers.

    `events`, `floors`, `runs`, `output`, `recent`, `after`: as for `run_classes`. `values` (int64, (rows of the batch,
    columns)): the codes of each event. `sweep_by_key`: True if partitions have windows of their own; `budget`: the most
    configurations. Cost: the configurations whose transitions on the event's class have guards that hold, or cannot be
    looked up; of several rows, each with each value of the event. Goes on from `st[ROW]`, so the caller mends what the
    status names and calls again.
    """
    st = structure.st
    status = finish_event(structure, output, recent, after)
    if status != DONE:
        return status
    while st[ROW] < events.shape[0]:
        k = st[ROW]
        position = events[k, E_POSITION]
        key = events[k, E_KEY]
        low = events[k, E_LOW]
        keep = events[k, E_KEEP]
        if consume != CONSUME_NONE:
            low, keep = first_unconsumed(st, floors, consume, key, low, keep)
            if low > position:
                st[ROW] = k + 1
                continue
        if st[CONF_COUNT] > st[SWEEP_AT] or st[CONF_COUNT] >= budget:
            sweep(structure, configurations, several, key if sweep_by_key else NIL,
                  low if sweep_by_key else events[k, E_LOW])  # fmt: skip
            if st[CONF_COUNT] >= budget:
                return GROW_CELLS
        st[KEEP] = keep
        logged = st[ACCEPTED]
        answered = st[ANSWERS]
        count = plan_event(
            events[k, E_CLASS], key, low, values[events[k, E_ROW]], extras, automaton, structure, configurations,
            several, effects, asking, chains, output.order,
        )  # fmt: skip
        if asking is not None and asking.questions[0, 0] > 0:  # whatever else it came to, answers are missing
            count = np.int64(-NEED_ANSWERS)
        if chains is not None and chains[0, CHAINS_FULL] != 0:
            count = np.int64(-GROW_CHAINS)
        if count == 0:
            st[ROW] = k + 1
            continue
        status = -count
        if count > 0:
            status = apply_planned(
                structure, runs, count, position, low, keep, output.order, after, effects.pools
            )  # fmt: skip
        if status != DONE:
            st[ACCEPTED] = logged
            st[ANSWERS] = answered
            return status
        st[ROW] = k + 1
        free_left(structure, configurations, several, count)
        if st[OUTS] > 0:
            note_consumed(st, floors, consume, key, position)
            status = finish_event(structure, output, recent, after)
            if status != DONE:
                return status
    return DONE
