"""The moves of an event, configuration by configuration, and the loop over events."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.drivers import apply_planned, finish_event
from spaseq.core.engine.kernels.registers.groups import group_arcs, group_sets, note_answers
from spaseq.core.engine.kernels.registers.index import (
    equal_slot,
    find_cell,
    follower,
    free_left,
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
    CONF_KEY,
    CONF_MORE,
    CONF_ROWS,
    CONF_STATE,
    CONF_TARGET,
    CONF_VALUE,
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
    SWEEP_AT,
    UNKNOWN,
    Automaton,
    Configurations,
)
from spaseq.core.jit import hot, inlined, kernel
from spaseq.core.tecs.kernels.layout import (
    CONSUME_ANY,
    CONSUME_PARTITION,
    DONE,
    E_CLASS,
    E_KEEP,
    E_KEY,
    E_LOW,
    E_POSITION,
    E_ROW,
    ENDS,
    FLOOR,
    HEAD,
    HEAD_MAX,
    M_LABEL,
    M_TAG,
    MARK_ACCEPTS,
    MARK_TO,
    NEED_STATES,
    NEEDED,
    NIL,
    OUTS,
    ROW,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STAY,
)
from spaseq.core.tecs.kernels.structure import clear_cell


@inlined
def plan_moves(
    source, key, first, last, automaton, values, extras, configurations, held, st, moves, count, accepted, answers,
    groups, sets, out, path, memo, questions, stack, chains,
):  # fmt: skip
    """Append the moves of one configuration (cell `source`, NIL for a run that starts here) to `moves`.

    Their number afterwards, or minus a status.
    """
    confs = configurations.confs
    outputs = automaton.outputs
    width = out.shape[1]
    registers = confs[source, REGISTERS:] if source >= 0 else out[1]
    if held is None:
        found = group_arcs(registers, first, last, automaton, values, groups, out[0], memo, questions, stack, chains)
    else:
        rows = confs[source, CONF_ROWS] if source >= 0 else 1
        found = IN_SETS
        if rows == 1:
            found = group_arcs(
                registers, first, last, automaton, values, groups, out[0], memo, questions, stack, chains
            )
        if found == IN_SETS:
            more = confs[source, CONF_MORE] if source >= 0 else NIL
            found = group_sets(
                registers, more, rows, held, first, last, automaton, values, extras, groups, sets, memo, questions,
                stack, chains,
            )  # fmt: skip
    if found < 0:
        return found
    if count + found + 1 > moves.shape[0]:
        return -GROW_MOVES
    idle = NIL if source < 0 else STAY
    begin = count
    skip_to = NIL
    skip = NIL
    for g in range(found):
        group = groups[g]
        cell = NIL
        if group[GROUP_STATES] != 0:
            state = state_number(automaton.known, group[GROUP_STATES])
            if state < 0:
                st[NEEDED] = group[GROUP_STATES]
                return -NEED_STATES
            if st[CONF_FREE] < 0:
                return -GROW_CELLS
            if held is not None and st[HELD_LEFT] < group[GROUP_ROWS] - 1:
                st[NEEDED] = group[GROUP_ROWS]
                return -GROW_HELD
            registers = group[GROUP_REGISTERS : GROUP_REGISTERS + width]
            cell = find_cell(
                configurations, held, st, key, state, registers, sets, group[GROUP_FIRST], group[GROUP_ROWS], path
            )
        if group[GROUP_LABEL] < 0:
            skip = g
            skip_to = STAY if cell == source and cell >= 0 else cell
            continue
        moves[count, SOURCE] = source
        moves[count, MARK_TO] = cell
        moves[count, MARK_ACCEPTS] = group[GROUP_ACCEPTS]
        moves[count, M_LABEL] = group[GROUP_LABEL]
        moves[count, SKIP_TO] = idle
        moves[count, SKIP_ACCEPTS] = 0
        moves[count, M_TAG] = 0
        if group[GROUP_ACCEPTS] and outputs:
            moves[count, M_TAG] = note_answers(st, accepted, answers, group, sets)
            if moves[count, M_TAG] < 0:
                return -GROW_ACCEPTED
        count += 1
    accepts = skip >= 0 and groups[skip, GROUP_ACCEPTS] != 0
    if count == begin:
        if skip_to == idle and not accepts:
            return count
        moves[count, SOURCE] = source
        moves[count, MARK_TO] = NIL
        moves[count, MARK_ACCEPTS] = 0
        moves[count, M_LABEL] = 0
        moves[count, M_TAG] = 0
        count += 1
    moves[count - 1, SKIP_TO] = skip_to
    moves[count - 1, SKIP_ACCEPTS] = accepts
    if accepts and outputs:  # the tag behind the one of the marking transition, which was the last, if it accepts
        tag = note_answers(st, accepted, answers, groups[skip], sets)
        if tag < 0:
            return -GROW_ACCEPTED
        moves[count - 1, M_TAG] = tag - 1
    return count


@hot
def looked_up(mover, values, extras):
    """(what configurations are looked up by, how many other values the event has, the first of them in `extras`).

    `mover`: a row of `movers`. Of several values the one that reaches most, for an order; NOTHING if one is.
    """
    if mover[REACH] == ALL_OF_THEM:
        return NOTHING, 0, 0
    column = mover[LOOKED_UP]
    value = values[column]
    if extras is None:
        return value, 0, 0
    others = values[mover[LOOKED_EACH]] if mover[LOOKED_EACH] >= 0 else 0
    first = values[mover[LOOKED_FIRST]] if others > 0 else 0
    for j in range(others):
        other = extras[first + j, column]
        if other == NOTHING or value == NOTHING:
            value = NOTHING
        elif mover[REACH] == SAME or other == UNKNOWN:
            continue
        elif value == UNKNOWN or (other > value) == (mover[REACH] == BELOW):
            value = other
    return value, others, first


@hot
def looked_before(mover, values, extras, first, j):
    """Whether the j-th of an event's other values, from `first` in `extras` on, is one of those before it; `mover` says
    of which column."""
    column = mover[LOOKED_UP]
    found = values[column] == extras[first + j, column]
    for i in range(j):
        found = found or extras[first + i, column] == extras[first + j, column]
    return found


@inlined
def plan_event(
    c, key, low, values, extras, init_from, movers_from, movers, automaton, cells, entries, configurations, held, st,
    moves, accepted, answers, groups, sets, out, path, memo, questions, stack, chains, order,
):  # fmt: skip
    """The moves of all configurations of one partition at one event: their number, or minus a status.

    `init_from`, `movers_from`, `movers`: as for `run_guarded`. Where only ends are asked for and one has been found,
    those that could but complete are passed over.
    """
    confs, heads, equals = configurations.confs, configurations.heads, configurations.equals
    links, tops, index = configurations.links, configurations.tops, configurations.indexed
    ended = False
    count = np.int64(0)
    starts = init_from[c] < init_from[c + 1]
    # The run that starts here comes first, as if it were one more set of states: so what is inlined stands once.
    for m in range(movers_from[c] - starts, movers_from[c + 1]):
        starting = m < movers_from[c]
        first_able, last_able = init_from[c], init_from[c + 1]
        only_ends = False
        state = np.int64(0)
        reach = np.int64(ALL_OF_THEM)
        value, others, first = np.int64(NOTHING), np.int64(0), np.int64(0)
        if starting:
            for r in range(out.shape[1]):
                out[1, r] = NOTHING
        else:
            only_ends = order == ENDS and movers[m, ONLY_ENDS] != 0
            state = movers[m, MOVER]
            reach = movers[m, REACH]
            first_able, last_able = movers[m, ARCS], movers[m, ARCS_END]
            value, others, first = looked_up(movers[m], values, extras)
            if value == NOTHING:
                reach = np.int64(ALL_OF_THEM)
        bucket = key * index.shape[0] + state
        # First the configurations that are indexed by nothing, which any value may pass, then those it selects.
        for part in range(2 + others if reach == SAME else 2):
            wanted = value
            if reach == ALL_OF_THEM:
                if part == 1:
                    break
                cell = np.int64(NIL) if starting else heads[bucket]
            elif reach == SAME:
                if part == 0:
                    wanted = NOTHING
                elif extras is not None and part > 1:
                    wanted = extras[first + part - 2, movers[m, LOOKED_UP]]
                if wanted == UNKNOWN:
                    continue
                if extras is not None and part > 1 and looked_before(movers[m], values, extras, first, part - 2):
                    continue
                cell = equals[equal_slot(key, state, wanted, equals)]
            elif part == 0:
                cell = tops[bucket, 0]
            else:
                if value == UNKNOWN or reach == BELOW:
                    break  # what is below was walked with those that hold nothing
                skip_path(links, tops, confs, bucket, value, np.int64(NIL), path)
                cell = tops[bucket, 0] if path[0] < 0 else links[path[0], 0]
            while starting or (cell >= 0 and not (only_ends and ended)):
                following = np.int64(NIL) if starting else follower(confs, links, reach, cell)
                if reach != ALL_OF_THEM:
                    by = confs[cell, CONF_VALUE]
                    if reach == SAME:
                        if by != wanted or confs[cell, CONF_STATE] != state or confs[cell, CONF_KEY] != key:
                            cell = following
                            continue
                    elif part == 0 and by != NOTHING and (reach == ABOVE or value == UNKNOWN or by > value):
                        break
                if not starting and (cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low):
                    if cells[cell, HEAD] >= 0:
                        clear_cell(cells, entries, st, cell)
                    if confs[cell, CONF_TARGET] != st[ROW]:  # else another move of this event leads here
                        leave_all(configurations, held, st, cell, path)
                    cell = following
                    continue
                count = plan_moves(
                    cell, key, first_able, last_able, automaton, values, extras, configurations, held, st, moves, count,
                    accepted, answers, groups, sets, out, path, memo, questions, stack, chains,
                )  # fmt: skip
                if count < 0:
                    return count
                starting = False
                ended |= only_ends and count > 0 and (moves[count - 1, MARK_ACCEPTS] or moves[count - 1, SKIP_ACCEPTS])
                cell = following
    return count


@kernel
def run_guarded(
    events, values, extras, init_from, movers_from, movers, able, arcs, ops, alive, outputs, known, index, nodes, cells,
    entries, st, checks, moves, outs, stack, path, matches, places, runs, heap, lists, confs, held, table, heads,
    equals, links, tops, floors, accepted, answers, groups, sets, out, levels, memo, questions, figures, chains, write,
    order, limit, consume, sweep_by_key, budget,
):  # fmt: skip
    """Algorithm 1 over a batch for an automaton whose guards are operations on registers.

    `events`, `floors`, `limit`: as for `run_classes`. `values` (int64, (rows of the batch, columns)): the codes of each
    event. `able` (int32): transitions, of the initial state those of class c from `init_from[c]` to `init_from[c + 1]`,
    and of each of the `movers` (int64, (k, 8), those of class c from `movers_from[c]`), the sets of states that may
    move. `known`: the sets of states met so far. What is flat here and a field of `layout.Automaton` or
    `layout.Configurations` below (`able`, `arcs`, `ops`, `alive`, `table`, `heads`, `equals`, `tops` and so on) is
    described there: passed flat, an array costs a call from Python least. `accepted` (int64, (a, 2)) receives at the
    tag of a match, one more where the event was not marked, where the rows it was accepted with are in `answers`
    (int64, (b, registers)) and how many, if there are `outputs`. `sweep_by_key`: whether partitions have windows of
    their own; `budget`: the most configurations. `lists` is `links` of `enumerate_recent`. Cost: the configurations
    whose transitions on the event's class have guards that hold, or cannot be looked up; of several rows, each with
    each value of the event. Goes on from `st[ROW]`, so the caller mends what the status names and calls again.
    """
    automaton = Automaton(able, arcs, ops, alive, outputs, known)
    configurations = Configurations(confs, table, heads, equals, links, tops, index)
    status = finish_event(nodes, st, outs, stack, path, matches, places, heap, lists, write, order, limit)
    if status != DONE:
        return status
    while st[ROW] < events.shape[0]:
        k = st[ROW]
        position = events[k, E_POSITION]
        key = events[k, E_KEY]
        low = events[k, E_LOW]
        keep = events[k, E_KEEP]
        if consume == CONSUME_ANY:
            low = max(low, st[FLOOR])
            keep = max(keep, st[FLOOR])
        elif consume == CONSUME_PARTITION:
            low = max(low, floors[key])
        if st[CONF_COUNT] > st[SWEEP_AT] or st[CONF_COUNT] >= budget:
            sweep(cells, entries, configurations, held, st, key if sweep_by_key else NIL,
                  low if sweep_by_key else events[k, E_LOW], levels)  # fmt: skip
            if st[CONF_COUNT] >= budget:
                return GROW_CELLS
        logged = st[ACCEPTED]
        answered = st[ANSWERS]
        count = plan_event(
            events[k, E_CLASS], key, low, values[events[k, E_ROW]], extras, init_from, movers_from, movers, automaton,
            cells, entries, configurations, held, st, moves, accepted, answers, groups, sets, out, levels, memo,
            questions, figures, chains, order,
        )  # fmt: skip
        if memo is not None and questions[0, 0] > 0:  # whatever else it came to, answers are missing
            count = np.int64(-NEED_ANSWERS)
        if chains is not None and chains[0, CHAINS_FULL] != 0:
            count = np.int64(-GROW_CHAINS)
        if count < 0:
            st[ACCEPTED] = logged
            st[ANSWERS] = answered
            return -count
        if count == 0:
            st[ROW] = k + 1
            continue
        status = apply_planned(nodes, cells, entries, st, checks, moves, count, position, low, keep, outs, runs, order)
        if status != DONE:
            st[ACCEPTED] = logged
            st[ANSWERS] = answered
            return status
        st[ROW] = k + 1
        free_left(cells, configurations, held, st, moves, count, levels)
        if st[OUTS] > 0:
            if consume == CONSUME_ANY:
                st[FLOOR] = position + 1
            elif consume == CONSUME_PARTITION:
                floors[key] = position + 1
            status = finish_event(nodes, st, outs, stack, path, matches, places, heap, lists, write, order, limit)
            if status != DONE:
                return status
    return DONE
