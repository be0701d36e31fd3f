"""Pools whose rows have several values, and what enters any pool, is folded and is taken out.

A row of such a pool has up to `DIMENSIONS` values. The tree's levels take the bits of the values in turn, from the
highest on: level `bit * values + number of the value`. So it is a k-d tree (J. L. Bentley, 1975) as a
priority search tree. Laws 1, 3 and 4 of `pools` hold as they are, and law 2 holds of levels in place of bits. A row
also has a *box*: for each value a range that has those of the subtree. It may be too large, since it does not shrink
when rows leave.

*A range of each value* is folded from the rows on the way and from the children whose boxes lie in it. On values that
depend on each other (`a.price * 0.9` and `a.price * 1.1`) this visits O(depth) rows, on independent ones
O(n^(1 - 1/k)).

*Rows are taken out* if an event ends their runs (`cut_rows`). Whole subtrees are let go. A row on the way gives its
place to the later of its children, and so on down. O(depth²) for one value.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.kept import absorbed_nodes, begin_kept, settle, settled_nodes
from spaseq.core.tecs.kernels.layout import (
    DIMENSIONS,
    DONE,
    GROW_NODES,
    GROW_PIECES,
    HEAD,
    HEAD_MAX,
    MELD_DEPTH,
    MERGED,
    NEEDED,
    NIL,
    P_BOX,
    P_LEFT,
    P_NODE,
    P_RIGHT,
    P_START,
    P_TIES,
    P_TIES_MAX,
    P_UNION,
    P_VALUE,
    POOL_FREE,
    POOL_LEFT,
    STARTS_ONLY,
    STEPS,
    T_ROOT,
    T_STEPS,
    T_TOP,
    T_VALUES,
)
from spaseq.core.tecs.kernels.pools import (
    absorb,
    fold_pieces,
    fold_range,
    hang_row,
    has_room,
    live_child,
    make_stale,
    raise_top,
    refresh,
    set_box,
    show_root,
    side_at,
    take_root,
    value_column,
)

APART = 0  # relations of a subtree to a box: no value is in it, all are, or neither is known
INSIDE = 1
ACROSS = 2


@hot
def highest_level(rows, one, other, count):
    """The highest level at which two rows with `count` values differ, -1 if they have the same."""
    highest = np.int64(-1)
    for number in range(count):
        differ = rows[one, value_column(number)] ^ rows[other, value_column(number)]
        bit = np.int64(-1)
        if differ < 0:
            bit = np.int64(63)
        else:
            while differ != 0:
                differ >>= 1
                bit += 1
        if bit >= 0:
            highest = max(highest, bit * count + number)
    return highest


@hot
def has_values_of(rows, one, other, count):
    """True if two rows have the same `count` values."""
    same = True
    for number in range(count):
        same = same and rows[one, value_column(number)] == rows[other, value_column(number)]
    return same


@hot
def widen_box(rows, row, other, count):
    """The box of a row that another one goes below."""
    for number in range(count):
        value = rows[other, value_column(number)]
        rows[row, P_BOX + 2 * number] = min(rows[row, P_BOX + 2 * number], value)
        rows[row, P_BOX + 2 * number + 1] = max(rows[row, P_BOX + 2 * number + 1], value)


@hot
def copy_box(rows, row, other, count):
    """The box of a row that takes the place of another one."""
    for column in range(P_BOX, P_BOX + 2 * count):
        rows[row, column] = rows[other, column]


@kernel
def hang_box(pools, nodes, st, cell, row, low):
    """`hang_row` for a row with several values or steps. At most `hung_nodes` new nodes."""
    rows, trees, kept = pools.rows, pools.trees, pools.kept
    count, steps = trees[cell, T_VALUES], trees[cell, T_STEPS]
    set_box(rows, row, count)
    root = trees[cell, T_ROOT]
    if root >= 0 and rows[root, P_START] < low:
        root = np.int64(NIL)
    if root < 0:
        trees[cell, T_ROOT] = row
        return
    level = trees[cell, T_TOP]
    highest = highest_level(rows, root, row, count)
    if highest > level:
        root = raise_top(pools, nodes, st, cell, root, highest, low)
        level = highest
    at = np.int64(P_LEFT)
    parent = np.int64(NIL)
    here = root
    while True:
        if here < 0 or rows[here, P_START] < low:
            if parent >= 0:
                rows[parent, at] = row
            return
        same = has_values_of(rows, here, row, count)
        settle(kept, rows, nodes, st, here, steps, low)
        if rows[here, P_START] >= rows[row, P_START]:
            make_stale(kept, rows, here, steps)
            if same:
                absorb(kept, rows, nodes, st, here, row, steps, low, pools.path, pools.pieces)
                return
            widen_box(rows, here, row, count)
        else:
            rows[row, P_LEFT] = rows[here, P_LEFT]
            rows[row, P_RIGHT] = rows[here, P_RIGHT]
            copy_box(rows, row, here, count)
            widen_box(rows, row, row, count)
            if parent >= 0:
                rows[parent, at] = row
            else:
                trees[cell, T_ROOT] = row
            if same:
                absorb(kept, rows, nodes, st, row, here, steps, low, pools.path, pools.pieces)
                return
            here, row = row, here
            rows[row, P_LEFT] = NIL
            rows[row, P_RIGHT] = NIL
            make_stale(kept, rows, row, steps)
            set_box(rows, row, count)
        parent = here
        at = side_at(rows, row, level, count)
        here = rows[parent, at]
        level -= 1


@hot
def entry_of(count, steps, step):
    """One number for how a run enters a pool: with `count` values, and at a `step` of `steps`; these are 0 for a pool
    of one step."""
    return count + (DIMENSIONS + 1) * (steps + (STEPS + 1) * step)


@kernel
def begin_steps(kept, rows, nodes, st, row, steps, step, low):
    """Gives a fresh row its runs at a step, if it is of a pool with several. `kept`, `steps`: as of `settle`."""
    if kept is not None and steps > 0:
        begin_kept(rows, nodes, st, row, step, low)


@hot
def hung_nodes(pools, cell, steps):
    """At most so many nodes are made to hang a row of several steps into a tree whose top is above its values."""
    return (pools.trees[cell, T_TOP] + 3) * settled_nodes(steps) + absorbed_nodes(steps) + 1


@kernel
def enter_pool(pools, nodes, cells, st, cell, move, first, entry, node, start, ties, ties_max, low):
    """Adds a run, an output or bottom node, to a pool under values, those from move[first] on. `entry`: as of
    `entry_of`.

    `ties`: a node of the shape of `heaps` for further runs with these values, with the maximum start `ties_max`; NIL
    for none. There is a free row, and room as of `hang_row`.
    """
    rows = pools.rows
    count, steps = entry % (DIMENSIONS + 1), entry // (DIMENSIONS + 1) % (STEPS + 1)
    row = st[POOL_FREE]
    st[POOL_FREE] = rows[row, P_LEFT]
    st[POOL_LEFT] -= 1
    for number in range(count):
        rows[row, value_column(number)] = move[first + number]
    rows[row, P_NODE] = node
    rows[row, P_START] = start
    rows[row, P_LEFT] = NIL
    rows[row, P_RIGHT] = NIL
    rows[row, P_UNION] = NIL
    rows[row, P_TIES] = ties
    rows[row, P_TIES_MAX] = ties_max
    if cells[cell, HEAD] < 0:
        pools.trees[cell, T_ROOT] = NIL
    if pools.trees[cell, T_VALUES] != count or pools.trees[cell, T_STEPS] != steps:  # the cell was that of another pool
        pools.trees[cell, T_VALUES] = count
        pools.trees[cell, T_STEPS] = steps
        pools.trees[cell, T_TOP] = NIL
    begin_steps(pools.kept, rows, nodes, st, row, steps, entry // ((DIMENSIONS + 1) * (STEPS + 1)), low)
    if count == 1 and steps == 0:
        hang_row(pools, nodes, st, cell, row, low)
    else:
        hang_box(pools, nodes, st, cell, row, low)
    show_root(pools, cells, st, cell)


@kernel
def plant_rows(pools, nodes, cells, st, checks, which, owners, lows, first):
    """Puts the rows which[first:], which hang nowhere, into the trees of their cells: how far it came.

    `which`: int64 (n,), by descending start, `owners` the cell of each; `lows`: as of `mark_rows`. T_VALUES of these
    cells is given. If it stops earlier, nodes are missing.
    """
    rows = pools.rows
    while first < which.shape[0]:
        if st[STARTS_ONLY] == 0 and not has_room(nodes, st, checks, 2 * MELD_DEPTH + 4):
            return first
        row = which[first]
        cell = owners[first]
        rows[row, P_LEFT] = NIL
        rows[row, P_RIGHT] = NIL
        rows[row, P_UNION] = NIL
        if pools.trees[cell, T_VALUES] == 1:
            hang_row(pools, nodes, st, cell, row, lows[cell])
        else:
            hang_box(pools, nodes, st, cell, row, lows[cell])
        show_root(pools, cells, st, cell)
        first += 1
    return first


@hot
def relate(rows, row, level, count, box):
    """The relation of a subtree to a box: APART, INSIDE or ACROSS. `level`: that at which the row's children differ;
    `box`: as of `Pools`."""
    if count == 1:
        value = rows[row, P_VALUE]
        if level >= 63:
            least, greatest = np.int64(-(1 << 63)), np.int64((1 << 63) - 1)
        else:
            below = (np.int64(1) << (level + 1)) - 1 if level < 62 else np.int64((1 << 63) - 1)
            least, greatest = value & ~below, value | below
        if greatest < box[0, 0] or least > box[0, 1]:
            return APART
        return INSIDE if least >= box[0, 0] and greatest <= box[0, 1] else ACROSS
    found = INSIDE
    for number in range(count):
        least, greatest = rows[row, P_BOX + 2 * number], rows[row, P_BOX + 2 * number + 1]
        if greatest < box[number, 0] or least > box[number, 1]:
            return APART
        if least < box[number, 0] or greatest > box[number, 1]:
            found = ACROSS
    return found


@hot
def is_within(rows, row, count, box):
    """True if the values of a row are in a box."""
    found = True
    for number in range(count):
        found = found and box[number, 0] <= rows[row, value_column(number)] <= box[number, 1]
    return found


@kernel
def sort_pieces(pieces, count):
    """The first `count` pieces by descending start. Expected O(n^1.3)."""
    gap = count // 2
    while gap > 0:
        for i in range(gap, count):
            node, start = pieces[i, 0], pieces[i, 1]
            j = i
            while j >= gap and pieces[j - gap, 1] < start:
                pieces[j, 0] = pieces[j - gap, 0]
                pieces[j, 1] = pieces[j - gap, 1]
                j -= gap
            pieces[j, 0] = node
            pieces[j, 1] = start
        gap //= 2


@kernel
def fold_box(pools, nodes, st, checks, cell, low):
    """`fold_range` for `pools.box`, of rows with several values. Statuses: DONE, GROW_NODES, GROW_PIECES."""
    rows, pieces, ways, box = pools.rows, pools.pieces, pools.ways, pools.box
    only = st[STARTS_ONLY] != 0
    values = pools.trees[cell, T_VALUES]
    latest = np.int64(NIL)
    count = np.int64(0)
    todo = 0
    root = pools.trees[cell, T_ROOT]
    related = relate(rows, root, np.int64(NIL), values, box)
    if related != APART:
        ways[0, 0] = root
        ways[0, 1] = related
        todo = 1
    while todo > 0:
        todo -= 1
        row = ways[todo, 0]
        if only and rows[row, P_START] <= latest:
            continue
        if count + 8 > pieces.shape[0]:
            st[NEEDED] = 2 * pieces.shape[0]
            return GROW_PIECES, NIL, NIL
        if ways[todo, 1] == INSIDE:
            if not only and rows[row, P_UNION] < 0:
                status = refresh(pools, nodes, st, checks, row, low)
                if status != DONE:
                    return status, NIL, NIL
            pieces[count, 0] = rows[row, P_UNION]
            pieces[count, 1] = rows[row, P_START]
            latest = max(latest, rows[row, P_START])
            count += 1
            continue
        if is_within(rows, row, values, box):
            pieces[count, 0] = rows[row, P_NODE]
            pieces[count, 1] = rows[row, P_START]
            latest = max(latest, rows[row, P_START])
            count += 1
            if not only and rows[row, P_TIES] >= 0 and rows[row, P_TIES_MAX] >= low:
                pieces[count, 0] = rows[row, P_TIES]
                pieces[count, 1] = rows[row, P_TIES_MAX]
                count += 1
        for side in range(P_LEFT, P_RIGHT + 1):
            child = live_child(rows, row, side, low)
            if child >= 0:
                related = relate(rows, child, np.int64(NIL), values, box)
                if related != APART:
                    ways[todo, 0] = child
                    ways[todo, 1] = related
                    todo += 1
    if count == 0 or only:
        return DONE, NIL, latest
    if not has_room(nodes, st, checks, count + 8):
        return GROW_NODES, NIL, NIL
    sort_pieces(pieces, count)
    return DONE, fold_pieces(nodes, st, pieces, count, low), latest


@hot
def fold_values(pools, nodes, st, checks, cell, low):
    """(status, node, maximum start) of the live runs of a pool with values in `pools.box`; a maximum start NIL if there
    are none. Statuses: DONE, GROW_NODES, GROW_PIECES."""
    if pools.trees[cell, T_VALUES] == 1:
        return fold_range(pools, nodes, st, checks, cell, pools.box[0, 0], pools.box[0, 1], low)
    return fold_box(pools, nodes, st, checks, cell, low)


@kernel
def has_rows(pools, cell, low):
    """True if a live row of a pool has values in `pools.box`. At most as many steps as to fold them."""
    rows, ways, box = pools.rows, pools.ways, pools.box
    values = pools.trees[cell, T_VALUES]
    ways[0, 0], ways[0, 1] = pools.trees[cell, T_ROOT], pools.trees[cell, T_TOP]
    todo = 1
    while todo > 0:
        todo -= 1
        row, level = ways[todo, 0], ways[todo, 1]
        if rows[row, P_START] < low:
            continue
        related = relate(rows, row, level, values, box)
        if related == INSIDE or (related == ACROSS and is_within(rows, row, values, box)):
            return True
        if related == ACROSS:
            for side in range(P_LEFT, P_RIGHT + 1):
                if rows[row, side] >= 0:
                    ways[todo, 0], ways[todo, 1] = rows[row, side], level - 1
                    todo += 1
    return False


@kernel
def cut_rows(pools, nodes, cells, st, cell, move, first, last, low):
    """Takes out of a pool all rows with values from move[first:] to move[last:]. If none is left, its cell is empty."""
    rows, trees, ways, box = pools.rows, pools.trees, pools.ways, pools.box
    values = trees[cell, T_VALUES]
    for number in range(DIMENSIONS):
        box[number, 0] = move[first + number]
        box[number, 1] = move[last + number]
    root = trees[cell, T_ROOT]
    level = trees[cell, T_TOP]
    related = relate(rows, root, level, values, box)
    if related == INSIDE or rows[root, P_START] < low:
        root = np.int64(NIL)
    elif related == ACROSS:
        todo = 1  # a row, its parent, the side there; and 1 if its children are done, from their level on
        ways[0, 0], ways[0, 1], ways[0, 2], ways[0, 3] = root, NIL, P_LEFT, 2 * level
        while todo > 0:
            row, parent, side = ways[todo - 1, 0], ways[todo - 1, 1], ways[todo - 1, 2]
            at = ways[todo - 1, 3]
            level = at >> 1
            if at & 1 == 0:
                rows[row, P_UNION] = NIL
                ways[todo - 1, 3] = at + 1
                for way in range(P_LEFT, P_RIGHT + 1):
                    child = live_child(rows, row, way, low)
                    if child >= 0:
                        related = relate(rows, child, level - 1, values, box)
                        if related == INSIDE:
                            rows[row, way] = NIL
                        elif related == ACROSS:
                            ways[todo, 0], ways[todo, 1], ways[todo, 2], ways[todo, 3] = child, row, way, 2 * level - 2
                            todo += 1
                continue
            todo -= 1
            if is_within(rows, row, values, box):
                rest = take_root(None, rows, nodes, st, row, np.int64(NIL), low)
                if parent < 0:
                    root = rest
                else:
                    rows[parent, side] = rest
                rows[row, P_LEFT] = st[POOL_FREE]
                st[POOL_FREE] = row
                st[POOL_LEFT] += 1
    trees[cell, T_ROOT] = root
    if root >= 0:
        show_root(pools, cells, st, cell)
    else:
        cells[cell, HEAD] = NIL
        cells[cell, HEAD_MAX] = NIL
        cells[cell, MERGED] = NIL
