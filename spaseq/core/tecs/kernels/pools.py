"""Pools: the runs that differ in one value only, found by a range of it.

A *pool* is a cell whose runs have a value each. Instead of a union list it has a tree: a priority search tree (E. M.
McCreight, 1985) whose ways are given by the bits of the values, from the bit `T_TOP` down, and whose heap order is that
of the starts. A row of the tree stands for one value: `P_NODE` is the latest run that came with it, `P_TIES` all
others, `P_UNION` all runs of the subtree.

1. A row's start is not before those of the rows below it. So the root has the greatest start, and stands in the cell.
2. The values of a subtree agree on all bits above its level, those of the tree above `T_TOP`. So no way down is longer
   than 64, nor than the number of rows. Two rows with one value never meet on a way down: the later takes the other
   into its ties.
3. `P_UNION` is NIL or has the runs of the whole subtree. If it is NIL, so is that of every row above.
4. Unions and ties have the shape of `heaps`; a union has at most three nodes in its chain (ties, left, right). So they
   are safe (law 4), and maximum starts descend (law 1).

*A range* of values is at most three nodes a level: a row's own, its ties, the union of a child. They are folded into
one safe node, O(log n) new ones if values are random and O(64) always. A stale union is made anew when it is read, from
two children and the ties; each was made stale by an insertion that passed it. So an event costs O(depth), amortised,
whatever the number of runs that pass.

*Expiry.* A row that began before the window has only such rows below it: walks stop there, and an insertion takes its
place. Rows that nothing leads to any more are found when none is free (`mark_rows`): O(rows), amortised O(1).

*Reclaiming.* A node is read only through a maximum start in the window, stored beside it, and was made at this start or
later, as in `structure`.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.heaps import is_pair, meld
from spaseq.core.tecs.kernels.kept import ALL_STALE, absorb_kept, settle
from spaseq.core.tecs.kernels.layout import (
    DONE,
    FIRST,
    GROW_NODES,
    HEAD,
    HEAD_MAX,
    KEEP,
    LEFT,
    LENGTH,
    MAX,
    MERGED,
    NEEDED,
    NIL,
    OLDEST,
    P_BOX,
    P_LEFT,
    P_MORE,
    P_NODE,
    P_RIGHT,
    P_STALE,
    P_START,
    P_TIES,
    P_TIES_MAX,
    P_UNION,
    P_VALUE,
    PIECES,
    POOL_FREE,
    POOL_LEFT,
    POS,
    RIGHT,
    STARTS_ONLY,
    T_ROOT,
    T_STEPS,
    T_TOP,
    T_VALUES,
    TAIL,
    WIDE_COLUMNS,
)
from spaseq.core.tecs.kernels.structure import evict_prefix, new_node


@hot
def side_of(value, bit):
    """The column of the child, P_LEFT or P_RIGHT, on whose side a value is at a bit; negative ones are left."""
    return P_LEFT + (((value >> bit) & 1) ^ (bit == 63))


@hot
def value_column(number):
    """The column of `Pools.rows` with the value of this number, from 0 on."""
    return P_VALUE if number == 0 else P_MORE - 1 + number


@hot
def side_at(rows, row, level, count):
    """`side_of` of a row with `count` values, at a level."""
    return side_of(rows[row, value_column(level % count)], level // count)


@hot
def set_box(rows, row, count):
    """The box of a row without children."""
    for number in range(count):
        value = rows[row, value_column(number)]
        rows[row, P_BOX + 2 * number] = value
        rows[row, P_BOX + 2 * number + 1] = value


@hot
def has_room(nodes, st, checks, need):
    """True if there is room for `need` nodes, after what the window has left is reclaimed if necessary."""
    if st[TAIL] - st[OLDEST] + need > nodes.shape[0]:
        evict_prefix(nodes, st, checks, st[KEEP])
        if st[TAIL] - st[OLDEST] + need > nodes.shape[0]:
            st[NEEDED] = need
            return False
    return True


@kernel
def make_stale(kept, rows, row, steps):
    """The union of a row is to be made anew; of all steps, with `steps`. `kept`, `steps`: as of `settle`."""
    rows[row, P_UNION] = NIL
    if kept is not None and steps > 0:
        rows[row, P_STALE] = ALL_STALE


@kernel
def absorb(kept, rows, nodes, st, upper, lower, steps, low, path, pieces):
    """Puts the runs of row `lower` into the ties of row `upper`, which has its value and begins no earlier. The row is
    free then. At most 2 * MELD_DEPTH + 4 new nodes; `absorbed_nodes` with `steps`. `kept`, `steps`: as of `settle`;
    `pieces`: as of `absorb_kept`."""
    if kept is not None and steps > 0:
        absorb_kept(rows, nodes, st, upper, lower, steps, low, path, pieces)
    if st[STARTS_ONLY] == 0 and steps <= 0:
        node = rows[lower, P_NODE]
        start = rows[lower, P_START]
        if rows[lower, P_TIES] >= 0 and rows[lower, P_TIES_MAX] >= low:
            node = new_node(nodes, st, node, rows[lower, P_TIES], rows[lower, P_TIES_MAX], start)
        if rows[upper, P_TIES] >= 0 and rows[upper, P_TIES_MAX] >= low:
            rows[upper, P_TIES] = meld(nodes, st, node, rows[upper, P_TIES], low, path)
            rows[upper, P_TIES_MAX] = max(start, rows[upper, P_TIES_MAX])
        else:
            rows[upper, P_TIES] = node
            rows[upper, P_TIES_MAX] = start
    rows[lower, P_LEFT] = st[POOL_FREE]
    st[POOL_FREE] = lower
    st[POOL_LEFT] += 1


@kernel
def take_root(kept, rows, nodes, st, root, steps, low):
    """Takes the root out of a tree: the root of the rest, NIL if there is none. O(depth). `kept`, `steps`: as of
    `settle`."""
    settle(kept, rows, nodes, st, root, steps, low)
    top = np.int64(NIL)
    parent = np.int64(NIL)
    at = P_LEFT
    while True:
        left = rows[root, P_LEFT]
        right = rows[root, P_RIGHT]
        side = P_LEFT
        if left < 0 or (right >= 0 and rows[right, P_START] > rows[left, P_START]):
            side = P_RIGHT
        child = rows[root, side]
        if parent < 0:
            top = child
        else:
            rows[parent, at] = child
        if child < 0:
            return top
        settle(kept, rows, nodes, st, child, steps, low)
        other = rows[root, P_LEFT + P_RIGHT - side]
        rows[root, P_LEFT] = rows[child, P_LEFT]  # the root sinks to the child's place
        rows[root, P_RIGHT] = rows[child, P_RIGHT]
        rows[child, P_LEFT + P_RIGHT - side] = other
        for column in range(P_BOX, min(rows.shape[1], WIDE_COLUMNS)):  # boxes are of places
            rows[root, column], rows[child, column] = rows[child, column], rows[root, column]
        make_stale(kept, rows, child, steps)
        parent = child
        at = side


@kernel
def raise_top(pools, nodes, st, cell, root, level, low):
    """Makes the levels of a tree above its top, up to `level`, at which all its values agree: its new root.
    O(64 * values * depth), at most 64 * values times in the life of a tree."""
    rows, trees, kept = pools.rows, pools.trees, pools.kept
    top, count, steps = trees[cell, T_TOP], trees[cell, T_VALUES], trees[cell, T_STEPS]
    trees[cell, T_TOP] = level
    fresh = np.int64(NIL)
    parent = np.int64(NIL)
    at = P_LEFT
    rest = root
    while level > top and rest >= 0:
        row = rest
        rest = take_root(kept, rows, nodes, st, row, steps, low)
        rows[row, P_LEFT] = NIL
        rows[row, P_RIGHT] = NIL
        make_stale(kept, rows, row, steps)
        if parent < 0:
            fresh = row
        else:
            rows[parent, at] = row
        if count > 1:
            set_box(rows, row, count)
        if count > 1 and rest >= 0:
            for number in range(count):
                least, most = P_BOX + 2 * number, P_BOX + 2 * number + 1
                rows[row, least] = min(rows[row, least], rows[rest, least])
                rows[row, most] = max(rows[row, most], rows[rest, most])
        parent = row
        at = side_at(rows, row, level, count)
        level -= 1
    if rest >= 0:
        rows[parent, at] = rest
    trees[cell, T_ROOT] = fresh
    return fresh


@kernel
def hang_row(pools, nodes, st, cell, row, low):
    """Puts a row into the tree of a cell. O(depth), and at most 2 * MELD_DEPTH + 4 new nodes."""
    rows, trees = pools.rows, pools.trees
    root = trees[cell, T_ROOT]
    if root >= 0 and rows[root, P_START] < low:
        root = np.int64(NIL)
    if root < 0:
        trees[cell, T_ROOT] = row  # the level of the root stays: the next values are as far apart as the last ones
        return
    bit = trees[cell, T_TOP]
    differ = rows[root, P_VALUE] ^ rows[row, P_VALUE]
    if bit < 63 and (differ < 0 or (differ >> (bit + 1)) != 0):
        highest = bit + 1
        if differ < 0:
            highest = np.int64(63)
        else:
            while highest < 62 and (differ >> (highest + 1)) != 0:
                highest += 1
        root = raise_top(pools, nodes, st, cell, root, highest, low)
        bit = highest
    at = np.int64(P_LEFT)
    parent = np.int64(NIL)
    here = root
    while True:
        if here < 0 or rows[here, P_START] < low:  # nothing is there, or nothing that is alive
            if parent >= 0:
                rows[parent, at] = row
            return
        if rows[here, P_START] >= rows[row, P_START]:
            rows[here, P_UNION] = NIL
            if rows[here, P_VALUE] == rows[row, P_VALUE]:
                absorb(None, rows, nodes, st, here, row, np.int64(NIL), low, pools.path, pools.pieces)
                return
        else:  # the row takes this place, and the one that had it goes down
            rows[row, P_LEFT] = rows[here, P_LEFT]
            rows[row, P_RIGHT] = rows[here, P_RIGHT]
            if parent >= 0:
                rows[parent, at] = row
            else:
                trees[cell, T_ROOT] = row
            if rows[here, P_VALUE] == rows[row, P_VALUE]:
                absorb(None, rows, nodes, st, row, here, np.int64(NIL), low, pools.path, pools.pieces)
                return
            here, row = row, here
            rows[row, P_LEFT] = NIL
            rows[row, P_RIGHT] = NIL
            rows[row, P_UNION] = NIL
        parent = here
        at = side_of(rows[row, P_VALUE], bit)
        here = rows[parent, at]
        bit -= 1


@kernel
def show_root(pools, cells, st, cell):
    """The root of a tree is the head of its cell."""
    root = pools.trees[cell, T_ROOT]
    cells[cell, HEAD] = pools.rows[root, P_NODE] if st[STARTS_ONLY] == 0 else 0
    cells[cell, HEAD_MAX] = pools.rows[root, P_START]
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@hot
def live_child(rows, row, side, low):
    """The child of a row on a side (`side`: P_LEFT or P_RIGHT) that is in the window; NIL if there is none, and then
    what is there hangs no longer."""
    child = rows[row, side]
    if child >= 0 and rows[child, P_START] < low:
        rows[row, side] = NIL
        child = np.int64(NIL)
    return child


@kernel
def unite_row(rows, nodes, st, row, left, right, low):
    """The union of a row whose children, NIL for none, have theirs. At most three new nodes."""
    x, x_max = rows[row, P_TIES], rows[row, P_TIES_MAX]
    if x < 0 or x_max < low:
        x_max = np.int64(NIL)
    y_max = rows[left, P_START] if left >= 0 else np.int64(NIL)
    y = rows[left, P_UNION] if left >= 0 else np.int64(NIL)
    z_max = rows[right, P_START] if right >= 0 else np.int64(NIL)
    z = rows[right, P_UNION] if right >= 0 else np.int64(NIL)
    if x_max < y_max:
        x, x_max, y, y_max = y, y_max, x, x_max
    if x_max < z_max:
        x, x_max, z, z_max = z, z_max, x, x_max
    if y_max < z_max:
        y, y_max, z, z_max = z, z_max, y, y_max
    own = rows[row, P_NODE]
    if x_max >= 0:
        if z_max >= 0:
            y = new_node(nodes, st, y, z, z_max, y_max)
        if y_max >= 0:
            x = new_node(nodes, st, x, y, y_max, x_max)
        own = new_node(nodes, st, own, x, x_max, rows[row, P_START])
    rows[row, P_UNION] = own


@kernel
def refresh(pools, nodes, st, checks, row, low):
    """Makes the stale unions of a subtree: DONE, or GROW_NODES, and then it goes on from there at the next call."""
    rows, ways = pools.rows, pools.ways
    ways[0, 3] = row
    depth = 1
    while depth > 0:
        if not has_room(nodes, st, checks, 1024):
            return GROW_NODES
        here = ways[depth - 1, 3]
        left = live_child(rows, here, P_LEFT, low)
        right = live_child(rows, here, P_RIGHT, low)
        if left >= 0 and rows[left, P_UNION] < 0:
            ways[depth, 3] = left
            depth += 1
        elif right >= 0 and rows[right, P_UNION] < 0:
            ways[depth, 3] = right
            depth += 1
        else:
            unite_row(rows, nodes, st, here, left, right, low)
            depth -= 1
    return DONE


@hot
def place_piece(pieces, count, node, start):
    """Puts a node and its start among the first `count` of `pieces`, by descending start."""
    at = count
    while at > 0 and pieces[at - 1, 1] < start:
        pieces[at, 0] = pieces[at - 1, 0]
        pieces[at, 1] = pieces[at - 1, 1]
        at -= 1
    pieces[at, 0] = node
    pieces[at, 1] = start


@kernel
def fold_pieces(nodes, st, pieces, count, low):
    """One safe node for `count` pieces, by descending start, all of the shape of `heaps` but for the length of chains.
    At most PIECES new nodes."""
    mask = nodes.shape[0] - 1
    first = pieces[0, 0]
    if count == 1:
        return first
    below = nodes[first & mask, RIGHT]
    if below >= 0:  # the left child of the result must be no union: open it
        pieces[0, 0] = nodes[first & mask, LEFT]
        start = nodes[first & mask, POS]
        while below >= 0 and start >= low:
            item, below_start, following = below, np.int64(NIL), np.int64(NIL)
            if is_pair(nodes, below):
                item = nodes[below & mask, LEFT]
                following = nodes[below & mask, RIGHT]
                below_start = nodes[below & mask, POS]
            place_piece(pieces, count, item, start)
            count += 1
            below, start = following, below_start
    base = st[TAIL]
    for i in range(count - 1):
        handle = base + count - 2 - i
        row = handle & mask
        nodes[row, LEFT] = pieces[i, 0]
        nodes[row, RIGHT] = handle - 1 if i < count - 2 else pieces[count - 1, 0]
        nodes[row, POS] = pieces[i + 1, 1]
        nodes[row, MAX] = pieces[i, 1]
    st[TAIL] = base + count - 1
    return base + count - 2


@kernel
def take_piece(pools, nodes, st, checks, child, low, count):
    """Adds all runs of a subtree to the pieces: their number, or minus a status."""
    if child < 0:
        return count
    rows = pools.rows
    if st[STARTS_ONLY] == 0 and rows[child, P_UNION] < 0:
        status = refresh(pools, nodes, st, checks, child, low)
        if status != DONE:
            return np.int64(-status)
    place_piece(pools.pieces, count, rows[child, P_UNION], rows[child, P_START])
    return count + 1 if st[STARTS_ONLY] == 0 else np.int64(1)


@kernel
def fold_range(pools, nodes, st, checks, cell, least, most, low):
    """(status, node, maximum start) of the live runs of a pool with values from `least` to `most`, which are in order;
    a maximum start NIL if there are none. With `STARTS_ONLY` the node means nothing.

    O(depth), and the stale unions that it meets. Statuses: DONE, GROW_NODES.
    """
    rows, pieces = pools.rows, pools.pieces
    only = st[STARTS_ONLY] != 0
    row = pools.trees[cell, T_ROOT]
    bit = pools.trees[cell, T_TOP]
    if not only and not has_room(nodes, st, checks, PIECES):
        return GROW_NODES, NIL, NIL
    count = np.int64(0)
    from_least = True
    to_most = True
    if bit < 63:
        prefix = rows[row, P_VALUE] >> (bit + 1)
        if prefix < (least >> (bit + 1)) or prefix > (most >> (bit + 1)):
            return DONE, np.int64(NIL), np.int64(NIL)
        from_least = prefix == (least >> (bit + 1))
        to_most = prefix == (most >> (bit + 1))
    second = np.int64(NIL)
    second_bit = bit
    if not from_least and not to_most:
        count = take_piece(pools, nodes, st, checks, row, low, count)
        row = np.int64(NIL)
    while row >= 0:
        if least <= rows[row, P_VALUE] <= most:
            place_piece(pieces, count, rows[row, P_NODE], rows[row, P_START])
            count = count + 1 if not only else np.int64(1)
            if not only and rows[row, P_TIES] >= 0 and rows[row, P_TIES_MAX] >= low:
                place_piece(pieces, count, rows[row, P_TIES], rows[row, P_TIES_MAX])
                count += 1
        left = live_child(rows, row, P_LEFT, low)
        right = live_child(rows, row, P_RIGHT, low)
        row = np.int64(NIL)
        if bit >= 0 and (left >= 0 or right >= 0):
            if from_least and to_most:
                if side_of(least, bit) != side_of(most, bit):
                    second, second_bit = right, bit - 1
                    row = left
                    to_most = False
                else:
                    row = left if side_of(least, bit) == P_LEFT else right
            elif from_least:
                row = right
                if side_of(least, bit) == P_LEFT:
                    count = take_piece(pools, nodes, st, checks, right, low, count)
                    row = left
            else:
                row = left
                if side_of(most, bit) == P_RIGHT:
                    count = take_piece(pools, nodes, st, checks, left, low, count)
                    row = right
            if count < 0:
                return -count, np.int64(NIL), np.int64(NIL)
            bit -= 1
        if row < 0 and second >= 0:
            row, bit = second, second_bit
            second = np.int64(NIL)
            from_least, to_most = False, True
    if count < 0:
        return -count, np.int64(NIL), np.int64(NIL)
    if count == 0:
        return DONE, np.int64(NIL), np.int64(NIL)
    latest = pieces[0, 1]
    if only:
        return DONE, np.int64(NIL), latest
    return DONE, fold_pieces(nodes, st, pieces, count, low), latest


@kernel
def mark_rows(pools, cells, which, lows, owners):
    """owners[row] gets the cell of each live row, -1 for the rows that no tree leads to; int64 (rows,), zeroed.

    `which`: int64 (n,), the pools that have runs. `lows`: int64 (cells,), their first live starts. Rows out of the
    window hang no longer then, nor do ties. O(rows).
    """
    rows = pools.rows
    for i in range(which.shape[0]):
        cell = which[i]
        low = lows[cell]
        todo = pools.trees[cell, T_ROOT]
        if cells[cell, HEAD_MAX] < low:
            todo = np.int64(NIL)
        while todo >= 0:
            row = todo
            todo = owners[row] - 2  # the next to do, if there is one
            if todo < 0:
                todo = np.int64(NIL)
            owners[row] = cell + 1
            if rows[row, P_TIES_MAX] < low:
                rows[row, P_TIES] = NIL
                rows[row, P_TIES_MAX] = NIL
            for side in range(P_LEFT, P_RIGHT + 1):
                child = live_child(rows, row, side, low)
                if child >= 0:
                    owners[child] = todo + 2
                    todo = child
    for row in range(rows.shape[0]):
        owners[row] -= 1


@kernel
def free_rows(rows, st, owners):
    """Chain the rows that `mark_rows` found to be of no tree: their `owners` are negative."""
    st[POOL_FREE] = NIL
    st[POOL_LEFT] = 0
    for i in range(rows.shape[0]):
        row = rows.shape[0] - 1 - i
        if owners[row] < 0:
            rows[row, P_LEFT] = st[POOL_FREE]
            st[POOL_FREE] = row
            st[POOL_LEFT] += 1
