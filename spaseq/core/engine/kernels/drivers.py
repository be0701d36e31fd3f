"""From events to moves, for automata without registers. An event ends with its moves and matches."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.after_match import drop_dead_sources, finish_after
from spaseq.core.tecs.kernels.frontiers import apply_best, enumerate_earliest, enumerate_recent, reserve_runs
from spaseq.core.tecs.kernels.layout import (
    AS_NODES,
    CONSUME_ANY,
    CONSUME_NONE,
    CONSUME_ONCE,
    CONSUME_PARTITION,
    COUNTED,
    DONE,
    E_CLASS,
    E_KEEP,
    E_KEY,
    E_LOW,
    E_POSITION,
    E_ROW,
    EARLIEST,
    END,
    ENDS,
    FLOOR,
    FLUSH,
    HEAD,
    HEAD_MAX,
    KEEP_OPEN,
    KEY,
    M_LABEL,
    M_TAG,
    MARK_ACCEPTS,
    MARK_TO,
    MATCHES,
    MELD_DEPTH,
    NEED_STATES,
    NEEDED,
    NEVER,
    NIL,
    OUTS,
    ROW,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    UNKNOWN_STATE,
)
from spaseq.core.tecs.kernels.moves import apply_moves, apply_starts
from spaseq.core.tecs.kernels.roots import write_roots
from spaseq.core.tecs.kernels.shared import write_nodes
from spaseq.core.tecs.kernels.structure import clear_cell, enumerate_outs, reserve


@kernel
def moving_rows(classes, keys, inert, rows):
    """Write to `rows` (int64 (n,)) the rows whose class is not inert and whose partition is none below 0, ascending;
    how many there are. No `keys`: all in one partition. O(n).

    PERF: without a branch, which random classes would mispredict: 224,473 events, 0.19 ms; 0.75 as numpy's
    `flatnonzero(~inert[classes])`.
    """
    count = 0
    if keys.shape[0]:
        for i in range(classes.shape[0]):
            rows[count] = i
            count += not inert[classes[i]] and keys[i] >= 0
    else:
        for i in range(classes.shape[0]):
            rows[count] = i
            count += not inert[classes[i]]
    return count


@kernel
def gather_events(rows, classes, positions, keys, lows, keeps, events):
    """events[i] gets the values that the evaluation reads of row rows[i] of a batch; `lows` and `keeps` are by i,
    `classes`, `positions` and `keys` by row.

    No `keys`: partition 0.
    """
    for i in range(rows.shape[0]):
        row = rows[i]
        events[i, E_ROW] = row
        events[i, E_CLASS] = classes[row]
        events[i, E_POSITION] = positions[row]
        events[i, E_KEY] = keys[row] if keys.shape[0] else 0
        events[i, E_LOW] = lows[i]
        events[i, E_KEEP] = keeps[i]


@hot
def first_unconsumed(st, floors, consume, key, low, keep):
    """The first live start in partition `key`, `low`, and the first whose nodes are kept, `keep`, after what earlier
    matches consumed. `floors`: as for `run_classes`."""
    if consume == CONSUME_ANY:
        low = max(low, st[FLOOR])
        keep = max(keep, st[FLOOR])
    elif consume != CONSUME_NONE:
        low = max(low, floors[key])
        st[KEY] = key
    return low, keep


@hot
def note_consumed(st, floors, consume, key, position):
    """Of a match that ends at `position` in partition `key`: the starts up to it are consumed, or all to come. `floors`
    gets the first that is not."""
    if consume == CONSUME_ANY:
        st[FLOOR] = position + 1
    elif consume == CONSUME_PARTITION:
        floors[key] = position + 1
    elif consume == CONSUME_ONCE:
        floors[key] = NEVER


@kernel
def run_classes(events, structure, tables, width, floors, consume, runs, output, recent, after):
    """Algorithm 1 over a batch for an automaton without registers, touching only the states that move.

    `events`: int64, (n, EVENT_COLUMNS). State s of partition p has cell `p * width + s`. `tables`: the deterministic
    transitions, `spaseq.core.automata.determinise.Tables`; a row is, after the state in `affected`, target, acceptance
    and label of the marking one, target and acceptance of the skipping one. `floors` (int64, (partitions,)): the first
    start that CONSUME BY PARTITION, or a rule for what a match discards, left alive. Goes on from `st[ROW]`: the caller
    acts on the status and calls again.
    """
    st, cells, moves = structure.st, structure.cells, structure.moves
    init_from, init, affected_from, affected, known = tables
    status = finish_event(structure, output, recent, after)
    if status != DONE:
        return status
    if st[UNKNOWN_STATE]:
        return NEED_STATES
    while st[ROW] < events.shape[0]:
        k = st[ROW]
        c = events[k, E_CLASS]
        position = events[k, E_POSITION]
        key = events[k, E_KEY]
        base = key * width
        low = events[k, E_LOW]
        keep = events[k, E_KEEP]
        if consume != CONSUME_NONE:
            low, keep = first_unconsumed(st, floors, consume, key, low, keep)
            if low > position:
                st[ROW] = k + 1
                continue
        start = affected_from[c]
        stop = affected_from[c + 1]
        first = init_from[c]
        count = init_from[c + 1] - first
        for i in range(count):
            moves[i, SOURCE] = NIL
            moves[i, MARK_TO] = base + init[first + i, 0] if init[first + i, 0] >= 0 else NIL
            moves[i, MARK_ACCEPTS] = init[first + i, 1]
            moves[i, M_LABEL] = init[first + i, 2]
            moves[i, SKIP_TO] = base + init[first + i, 3] if init[first + i, 3] >= 0 else NIL
            moves[i, SKIP_ACCEPTS] = init[first + i, 4]
            moves[i, M_TAG] = 0
        for a in range(start, stop):
            cell = base + affected[a, 0]
            if cells[cell, HEAD] < 0:
                continue
            if cells[cell, HEAD_MAX] < low:
                clear_cell(cells, structure.entries, st, cell)
                continue
            moves[count, SOURCE] = cell
            moves[count, MARK_TO] = base + affected[a, 1] if affected[a, 1] >= 0 else NIL
            moves[count, MARK_ACCEPTS] = affected[a, 2]
            moves[count, M_LABEL] = affected[a, 3]
            moves[count, SKIP_TO] = base + affected[a, 4] if affected[a, 4] >= 0 else affected[a, 4]
            moves[count, SKIP_ACCEPTS] = affected[a, 5]
            moves[count, M_TAG] = 0
            count += 1
        if count == 0:
            st[ROW] = k + 1
            continue
        status = apply_planned(structure, runs, count, position, low, keep, output.order, after, None)
        if status != DONE:
            return status
        st[ROW] = k + 1
        for i in range(count):
            if moves[i, MARK_TO] >= 0 and not known[moves[i, MARK_TO] - base]:
                st[UNKNOWN_STATE] = 1
            if moves[i, SKIP_TO] >= 0 and not known[moves[i, SKIP_TO] - base]:
                st[UNKNOWN_STATE] = 1
        if st[OUTS] > 0:
            note_consumed(st, floors, consume, key, position)
            status = finish_event(structure, output, recent, after)
            if status != DONE:
                return status
        if st[UNKNOWN_STATE]:
            return NEED_STATES
    return DONE


@kernel
def run_moves(structure, runs, output, recent, after, count, position, low, dead_before):
    """One event whose moves the caller worked out (an automaton with registers).

    `st[ROW]` is 0 before and 1 once the moves are applied.
    """
    if structure.st[ROW] == 0:
        status = apply_planned(structure, runs, count, position, low, dead_before, output.order, after, None)
        if status != DONE:
            return status
        structure.st[ROW] = 1
    return finish_event(structure, output, recent, after)


@kernel
def finish_event(structure, output, recent, after):
    """Enumerate the matches of the current event: all, with LIMIT the most recent, that of the earliest start, only if
    any, the roots of all, or the nodes below these. With a rule for what a match discards (`after`), those that it
    leaves."""
    if after is not None:
        return finish_after(structure, output, after)
    nodes, st, outs = structure.nodes, structure.st, structure.outs
    matches, places, write = output.matches, output.places, output.write
    if output.order == ENDS:
        return write_end(st, outs, matches, write)
    if output.order == AS_NODES:
        return write_nodes(nodes, st, outs, output.stack, output.below, matches, places)
    if output.order == KEEP_OPEN:
        return write_roots(nodes, st, outs, matches, places)
    if output.order == EARLIEST:
        return enumerate_earliest(nodes, st, outs, output.path, matches, places, write)
    if recent is not None:
        return enumerate_recent(nodes, st, outs, recent.heap, recent.links, matches, places, write, output.limit)
    return enumerate_outs(nodes, st, outs, output.stack, output.path, output.below, matches, places, write, None)


@hot
def apply_planned(structure, runs, count, position, low, dead_before, order, after, pools):
    """`apply_moves`, `apply_best` or `apply_starts`, once there is room; else the status that asks for it."""
    nodes, cells, entries, st, checks, moves, outs = structure
    if order == ENDS:
        apply_starts(nodes, cells, st, moves, count, position, low, outs, pools)
        return DONE
    if runs is None:
        more = 0 if pools is None else 6 * MELD_DEPTH + 24
        status = reserve(nodes, entries, st, checks, position, dead_before, count + 1, more)
        if status == DONE:
            apply_moves(nodes, cells, entries, st, moves, count, position, low, outs, pools)
        return status
    status = reserve_runs(nodes, cells, entries, st, checks, moves, count, position, dead_before, runs, outs)
    if status != DONE:
        return status
    if after is not None:
        drop_dead_sources(cells, entries, st, moves, count, after.dead)
    apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order)
    return DONE


@hot
def write_end(st, outs, matches, write):
    """The event at which matches end, if any do, as one match without places: see `apply_starts`."""
    if st[OUTS] > 0:
        if write:
            m = st[MATCHES]
            if m + 1 >= matches.shape[1]:
                st[NEEDED] = 0
                return FLUSH
            matches[0, m] = outs[0, 0]
            matches[1, m] = st[END]
            matches[2, m + 1] = 0
            matches[3, m] = outs[0, 1]
            st[MATCHES] = m + 1
        else:
            st[COUNTED] += 1
        st[OUTS] = 0
    return DONE
