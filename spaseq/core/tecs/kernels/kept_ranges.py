"""Ranges of values in pools with several steps (`kept`): they are tagged by an event, or folded for one step."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.boxes import (
    ACROSS,
    APART,
    INSIDE,
    fold_values,
    highest_level,
    hung_nodes,
    is_within,
    relate,
    sort_pieces,
)
from spaseq.core.tecs.kernels.kept import (
    MELD_NODES,
    PIECES_OF_STEP,
    pieces_at,
    set_runs,
    settle_row,
    settled_nodes,
    tag_row,
)
from spaseq.core.tecs.kernels.layout import (
    B_GREATEST,
    B_LEAST,
    B_VALUE,
    DIMENSIONS,
    DONE,
    GROW_NODES,
    GROW_PIECES,
    M_HEAD,
    M_LABEL,
    M_POOLED,
    M_SKIP_POOLED,
    M_SKIP_VALUE,
    M_TAG,
    M_VALUE,
    MARK_ACCEPTS,
    MARK_TO,
    NEEDED,
    NIL,
    P_LEFT,
    P_OWN,
    P_RIGHT,
    P_RUNS,
    P_STALE,
    P_START,
    P_TAGS,
    P_UNIONS,
    POOL_FREE,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STARTS_ONLY,
    STAY,
    T_ROOT,
    T_STEPS,
    T_TOP,
    T_VALUES,
    TAG,
    TAGGED,
)
from spaseq.core.tecs.kernels.pools import fold_pieces, has_room, live_child, raise_top, value_column


@hot
def begin_walk(pools, cell, low):
    """Puts the root of a pool on `pools.ways`, with its level and its relation to `pools.box`: the number of rows to be
    visited, 0 if nothing is in the box."""
    root, level = pools.trees[cell, T_ROOT], pools.trees[cell, T_TOP]
    if root < 0 or pools.rows[root, P_START] < low:
        return 0
    related = relate(pools.rows, root, level, pools.trees[cell, T_VALUES], pools.box)
    pools.ways[0, 0], pools.ways[0, 1], pools.ways[0, 2] = root, level, related
    return 0 if related == APART else 1


@hot
def push_children(pools, row, level, values, low, todo):
    """Puts the live children of a row at `level` that have something in `pools.box` on `pools.ways`: the number of rows
    then."""
    rows, ways = pools.rows, pools.ways
    for side in range(P_LEFT, P_RIGHT + 1):
        child = live_child(rows, row, side, low)
        if child >= 0:
            related = relate(rows, child, level - 1, values, pools.box)
            if related != APART:
                ways[todo, 0], ways[todo, 1], ways[todo, 2] = child, level - 1, related
                todo += 1
    return todo


@kernel
def settle_range(pools, nodes, st, checks, cell, low):
    """Settles the rows on the way to the values in `pools.box`: how many rows and subtrees the box has.

    Or minus GROW_NODES, and then it goes on from there at the next call.
    """
    rows, ways = pools.rows, pools.ways
    values, steps = pools.trees[cell, T_VALUES], pools.trees[cell, T_STEPS]
    todo = begin_walk(pools, cell, low)
    count = np.int64(0)
    while todo > 0:
        todo -= 1
        count += 1
        row, level = ways[todo, 0], ways[todo, 1]
        if ways[todo, 2] == ACROSS:
            if not has_room(nodes, st, checks, settled_nodes(steps)):
                return np.int64(-GROW_NODES)
            settle_row(rows, nodes, st, row, steps, low)
            todo = push_children(pools, row, level, values, low, todo)
    return count


@kernel
def tag_range(pools, nodes, st, move, position, low):
    """Does a TAG move, behind `settle_range`: at most twice `settled_nodes` new nodes for each row that it counted.

    A row on the way is settled once more. An earlier move of the event may have tagged it, and its own suffixes must
    not be taken for older ones than that tag.
    """
    rows, ways, box = pools.rows, pools.ways, pools.box
    cell, i, j, label = move[M_HEAD], move[M_POOLED], move[M_SKIP_POOLED], move[M_LABEL]
    for number in range(DIMENSIONS):
        box[number, B_LEAST] = move[M_VALUE + number]
        box[number, B_GREATEST] = move[M_SKIP_VALUE + number]
    values, steps = pools.trees[cell, T_VALUES], pools.trees[cell, T_STEPS]
    todo = begin_walk(pools, cell, low)
    while todo > 0:
        todo -= 1
        row, level = ways[todo, 0], ways[todo, 1]
        if ways[todo, 2] == INSIDE:
            tag_row(rows, nodes, st, row, P_TAGS, i, j, label, position)
            continue
        settle_row(rows, nodes, st, row, steps, low)
        rows[row, P_STALE] |= 1 << j
        if is_within(rows, row, values, box):
            tag_row(rows, nodes, st, row, P_OWN, i, j, label, position)
        todo = push_children(pools, row, level, values, low, todo)


@kernel
def apply_tags(kept, pools, nodes, st, moves, count, position, low):
    """Does the TAG moves of an event. Later steps come first, so none sees the effect of another one. `kept`: as of
    `settle`."""
    if kept is not None:
        last = np.int64(NIL)
        for n in range(count):
            if moves[n, SOURCE] == TAG:
                last = max(last, moves[n, M_SKIP_POOLED])
        for back in range(last + 1):
            i = last - back
            for further in range(last - i + 1):
                j = last - further
                for n in range(count):
                    if moves[n, SOURCE] == TAG and moves[n, M_POOLED] == i and moves[n, M_SKIP_POOLED] == j:
                        tag_range(pools, nodes, st, moves[n], position, low)


@kernel
def plan_tag(kept, pools, nodes, st, checks, cell, low, move, label, i, j):
    """Makes a TAG move, under `label`, of the runs of a pool with values in `pools.box` from step i to step j: DONE or
    GROW_NODES. `kept`: as of `settle`."""
    if kept is not None:
        count = settle_range(pools, nodes, st, checks, cell, low)
        if count < 0:
            return np.int64(-count)
        st[TAGGED] += 2 * count * settled_nodes(pools.trees[cell, T_STEPS])
        move[SOURCE] = TAG
        move[MARK_TO] = NIL
        move[MARK_ACCEPTS] = 0
        move[SKIP_TO] = STAY
        move[SKIP_ACCEPTS] = 0
        move[M_TAG] = 0
        move[M_LABEL] = label
        move[M_HEAD] = cell
        move[M_POOLED] = i
        move[M_SKIP_POOLED] = j
        for number in range(DIMENSIONS):
            move[M_VALUE + number] = pools.box[number, B_LEAST]
            move[M_SKIP_VALUE + number] = pools.box[number, B_GREATEST]
    return np.int64(DONE)


@kernel
def plan_entry(kept, pools, nodes, st, checks, cell, steps, count, low):
    """Sees to it that a run with the `count` values of `pools.box` may enter a pool with `steps` steps, if these are
    several, and not 0. DONE or GROW_NODES, and then it goes on from there at the next call. There is a free row.
    `kept`: as of `settle`."""
    if kept is not None and steps > 0:
        rows, trees = pools.rows, pools.trees
        root = trees[cell, T_ROOT]
        same = trees[cell, T_STEPS] == steps and trees[cell, T_VALUES] == count
        if same and root >= 0 and rows[root, P_START] >= low:
            free = st[POOL_FREE]
            for number in range(count):
                rows[free, value_column(number)] = pools.box[number, B_VALUE]
            highest = highest_level(rows, root, free, count)
            while trees[cell, T_TOP] < highest:
                need = 0 if st[STARTS_ONLY] else (trees[cell, T_TOP] + 3) * settled_nodes(steps)
                if not has_room(nodes, st, checks, need):
                    return np.int64(GROW_NODES)
                root = raise_top(pools, nodes, st, cell, root, trees[cell, T_TOP] + 1, low)
        st[TAGGED] += hung_nodes(pools, cell, steps)
    return np.int64(DONE)


@kernel
def refresh_kept(pools, nodes, st, checks, row, steps, step, low):
    """`refresh` for the unions of all steps up to `step` of a subtree."""
    rows, ways, pieces = pools.rows, pools.ways, pools.pieces
    last = pieces.shape[0] - 3 * PIECES_OF_STEP  # the pieces before are in use
    wanted = (2 << step) - 1
    ways[0, 3] = row
    depth = 1
    while depth > 0:
        here = ways[depth - 1, 3]
        left = live_child(rows, here, P_LEFT, low)
        right = live_child(rows, here, P_RIGHT, low)
        if left >= 0 and rows[left, P_STALE] & wanted:
            ways[depth, 3] = left
            depth += 1
        elif right >= 0 and rows[right, P_STALE] & wanted:
            ways[depth, 3] = right
            depth += 1
        else:
            if not has_room(nodes, st, checks, steps * 3 * PIECES_OF_STEP * (MELD_NODES + 1)):
                return GROW_NODES
            for number in range(step + 1):
                if rows[here, P_STALE] >> number & 1:
                    count = pieces_at(rows, nodes, st, here, P_RUNS, P_OWN, number, low, pieces, last)
                    if left >= 0:
                        count = pieces_at(rows, nodes, st, left, P_UNIONS, P_TAGS, number, low, pieces, count)
                    if right >= 0:
                        count = pieces_at(rows, nodes, st, right, P_UNIONS, P_TAGS, number, low, pieces, count)
                    set_runs(rows, nodes, st, here, P_UNIONS + 2 * number, pieces, last, count, low, pools.path)
            rows[here, P_STALE] &= ~wanted
            depth -= 1
    return DONE


@kernel
def fold_kept(pools, nodes, st, checks, cell, step, low):
    """`fold_box` for the runs at one step of a pool with several."""
    rows, ways, pieces = pools.rows, pools.ways, pools.pieces
    values, steps = pools.trees[cell, T_VALUES], pools.trees[cell, T_STEPS]
    todo = begin_walk(pools, cell, low)
    count = np.int64(0)
    while todo > 0:
        todo -= 1
        row, level = ways[todo, 0], ways[todo, 1]
        if count + 5 * PIECES_OF_STEP > pieces.shape[0]:
            st[NEEDED] = 2 * pieces.shape[0]
            return GROW_PIECES, NIL, NIL
        if not has_room(nodes, st, checks, settled_nodes(steps) + PIECES_OF_STEP):
            return GROW_NODES, NIL, NIL
        if ways[todo, 2] == INSIDE:
            if rows[row, P_STALE] & ((2 << step) - 1):
                status = refresh_kept(pools, nodes, st, checks, row, steps, step, low)
                if status != DONE:
                    return status, NIL, NIL
                if not has_room(nodes, st, checks, PIECES_OF_STEP):
                    return GROW_NODES, NIL, NIL
            count = pieces_at(rows, nodes, st, row, P_UNIONS, P_TAGS, step, low, pieces, count)
            continue
        settle_row(rows, nodes, st, row, steps, low)
        if is_within(rows, row, values, pools.box):
            count = pieces_at(rows, nodes, st, row, P_RUNS, P_OWN, step, low, pieces, count)
        todo = push_children(pools, row, level, values, low, todo)
    if count == 0:
        return DONE, NIL, NIL
    sort_pieces(pieces, count)
    latest = pieces[0, 1]
    if st[STARTS_ONLY]:
        return DONE, NIL, latest
    if not has_room(nodes, st, checks, count + 8):
        return GROW_NODES, NIL, NIL
    return DONE, fold_pieces(nodes, st, pieces, count, low), latest


@kernel
def fold_runs(kept, pools, nodes, st, checks, cell, step, low):
    """`fold_values`, or `fold_kept` at `step` if it is not NIL. `kept`: as of `settle`."""
    if kept is not None and step >= 0:
        return fold_kept(pools, nodes, st, checks, cell, step, low)
    return fold_values(pools, nodes, st, checks, cell, low)
