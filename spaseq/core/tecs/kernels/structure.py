"""Nodes and union lists: their construction, merging, reclaiming and enumeration ([CORE] §4).

The structure
-------------
A *node* is a row of `nodes` (int64, shape (capacity, 4)), found by its *handle*. Handles count upwards for ever and the
row is `handle & (capacity - 1)`, so the arena is a ring.

=======  ===================  ==========================  =========================
column   output node          bottom node                 union node
=======  ===================  ==========================  =========================
LEFT     next, or NIL (*)     NIL                         left child
RIGHT    IS_OUTPUT - label    IS_BOTTOM                   right child
POS      position it marks    position where runs start   maximum start of `right`
MAX      maximum start        the same position           maximum start (of `left`)
=======  ===================  ==========================  =========================

(*) an output node without `next` stands on a bottom node at its own maximum start, which needs no row of its own.

A *suffix* is what a run has behind some event. Its nodes are output nodes and unions with the maximum start FOREVER;
the last node down stands on a HOLE. A *product* is the runs of a node, LEFT, each with each suffix of another, POS, on
top. RIGHT is IS_PRODUCT, and the maximum start is that of LEFT. A product of suffixes is one, too. `kept` makes them.

A *label* is the number of the set of variables that take the position, if matches are valuations; else it is 0.

Each *cell* (a state of one partition) that is active has a *union list*: a head, which is never a union, and entries
behind it. Laws, checked by `tests.support.laws`:

1. time order: `max(left) >= max(right)` at every union, and a union's MAX is its left child's;
2. 3-boundedness: at most three unions on the way down the left children to a node that is not a union;
3. a list's head has the greatest maximum start, and the entries' maximum starts strictly decrease;
4. every node in a list is *safe*: not a union, or of output depth 1 with a right child of output depth at most 2.

Touch only what moves
---------------------
Algorithm 1 of [CORE] rebuilds its table of active states at every event. Here a state whose only move is to skip is not
touched, so the work per event is the number of transitions that fire. Nodes are then not always inserted in the order
that `insert` needs (max(n) <= max(n0)), so:

* a node with a greater maximum start than the head becomes the new head. The list before it is folded into one node
  (its `merge`, which is safe and has the old head's maximum start);
* of two lists that meet in a cell, the one with the greater head stays, and the other is folded and inserted into it.

*Lists stay short.* Let m be the maximum start of a cell's head, inserted at some event. Consider the nodes that are
inserted behind it later and have a maximum start below m. When the run from m began, the runs below them were in some
active cell. A cell passes on the maximum start of its whole list, as extending, merging and uniting preserve it. So
there are at most as many different maximum starts below m as cells were active then; nodes with equal ones are united.
A list has at most two entries more than there are active states ([CORE]'s bound). Between the head and entry 1, law 3
is `>=`, as in the paper.

*Reclaiming a prefix.* A child with the same maximum start as its parent (left, next) is read without a check. Any other
child is read after a check of its maximum start, which is stored beside its handle (right, list entries). So no node is
read whose maximum start lies before the window. A node's maximum start is at most the position at which it was created.
Hence nodes that were created before the window's first position may be overwritten, and they are a prefix of the ring.
With CONSUME BY ANY a match ends all runs, so all nodes up to the event of the last match are part of the prefix.

If windows differ between partitions (EVENTS with PARTITION BY), no prefix is dead as long as some partition is quiet.
In this case `compact` copies the live nodes when the ring is full.

Rejected: counting references to nodes (a write per handle copied), a table rebuilt per event (cost by states, not by
moves), one arena per partition (allocation for each key).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    CHECK_COUNT,
    CHECK_FIRST,
    COUNTED,
    COUNTED_AT_ONCE,
    DEPTH,
    DONE,
    END,
    FIRST,
    FLUSH,
    FOREVER,
    FREE,
    FREE_COUNT,
    GROW_BELOW,
    GROW_ENTRIES,
    GROW_NODES,
    GROW_PATH,
    GROW_STACK,
    HEAD,
    HEAD_MAX,
    HIGH,
    HOLE,
    IS_OUTPUT,
    IS_PRODUCT,
    LABEL_BITS,
    LAST_POSITION,
    LEFT,
    LENGTH,
    LONGEST,
    LOW,
    M_FIRST,
    M_HEAD,
    M_LENGTH,
    M_MAX,
    M_NODE,
    MATCHES,
    MAX,
    MERGED,
    MOST_COUNTED,
    NEEDED,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    O_LOW,
    O_NODE,
    OLDEST,
    OUT,
    OUTS,
    PLACES,
    POS,
    R_BELOW,
    RIGHT,
    TAGGED,
    TAIL,
    TOO_MANY,
    WAITS,
    WALKED,
)
from spaseq.core.tecs.kernels.shared import times, visit_below


@hot
def new_node(nodes, st, left, right, pos, max_start):
    """Appends a node and returns its handle; `reserve` must have made room for it. O(1)."""
    handle = st[TAIL]
    row = handle & (nodes.shape[0] - 1)
    nodes[row, LEFT] = left
    nodes[row, RIGHT] = right
    nodes[row, POS] = pos
    nodes[row, MAX] = max_start
    st[TAIL] = handle + 1
    return handle


@kernel
def unite(nodes, st, a, b, max_start):
    """`union` of [CORE] §4.2: a safe node for the runs of the safe nodes `a` and `b`, both with `max_start`. O(1)."""
    mask = nodes.shape[0] - 1
    right_a = nodes[a & mask, RIGHT]
    right_b = nodes[b & mask, RIGHT]
    if right_a < 0:  # Figure 5(a)
        return new_node(nodes, st, a, b, max_start, max_start)
    if right_b < 0:  # Figure 5(b)
        return new_node(nodes, st, b, a, max_start, max_start)
    max_a = nodes[a & mask, POS]
    max_b = nodes[b & mask, POS]
    if max_a >= max_b:  # Figure 5(c)
        low = new_node(nodes, st, right_a, right_b, max_b, max_a)
        low_max = max_a
    else:  # Figure 5(d)
        low = new_node(nodes, st, right_b, right_a, max_a, max_b)
        low_max = max_b
    middle = new_node(nodes, st, nodes[b & mask, LEFT], low, low_max, max_start)
    return new_node(nodes, st, nodes[a & mask, LEFT], middle, max_start, max_start)


@kernel
def free_entries(entries, st, first):
    """Frees the chain of entries that starts at `first`. O(length)."""
    while first >= 0:
        following = entries[first, NEXT]
        entries[first, NEXT] = st[FREE]
        st[FREE] = first
        st[FREE_COUNT] += 1
        first = following


@kernel
def clear_cell(cells, entries, st, cell):
    """Empties a cell: its state is no longer active."""
    free_entries(entries, st, cells[cell, FIRST])
    cells[cell, HEAD] = NIL
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@kernel
def clear_cells(cells, entries, st, which):
    """`clear_cell` of each of `which`, int64 (n,)."""
    for i in range(which.shape[0]):
        clear_cell(cells, entries, st, which[i])


@kernel
def evict_dead_entries(cells, entries, st, cell, low):
    """Removes the entries whose maximum start is before `low`: they are a suffix of the list (law 3)."""
    kept = 0
    last = NIL
    entry = cells[cell, FIRST]
    while entry >= 0 and entries[entry, NODE_MAX] >= low:
        kept += 1
        last = entry
        entry = entries[entry, NEXT]
    if entry >= 0:
        free_entries(entries, st, entry)
        if last >= 0:
            entries[last, NEXT] = NIL
        else:
            cells[cell, FIRST] = NIL
        cells[cell, LENGTH] = kept


@hot
def merge(nodes, cells, entries, st, cell, low):
    """`merge` of [CORE] §4.2 (Figure 5(e)): one safe node for the cell's list; at most LENGTH new nodes. O(LENGTH)."""
    node = cells[cell, MERGED]
    if node >= 0:
        return node
    evict_dead_entries(cells, entries, st, cell, low)
    k = cells[cell, LENGTH]
    node = cells[cell, HEAD]
    if k > 0:
        # Children before parents: union i of the chain n0, n1, … gets handle base + k - 1 - i.
        mask = nodes.shape[0] - 1
        base = st[TAIL]
        left = node
        left_max = cells[cell, HEAD_MAX]
        entry = cells[cell, FIRST]
        for i in range(k):
            handle = base + k - 1 - i
            row = handle & mask
            nodes[row, LEFT] = left
            nodes[row, RIGHT] = handle - 1 if i < k - 1 else entries[entry, NODE]
            nodes[row, POS] = entries[entry, NODE_MAX]
            nodes[row, MAX] = left_max
            left = entries[entry, NODE]
            left_max = entries[entry, NODE_MAX]
            entry = entries[entry, NEXT]
        st[TAIL] = base + k
        node = base + k - 1
    cells[cell, MERGED] = node
    return node


@kernel
def link_entry(cells, entries, st, cell, before, node, max_start):
    """Inserts `node` behind entry `before` of the cell's list; NIL inserts it as the first entry."""
    entry = st[FREE]
    st[FREE] = entries[entry, NEXT]
    st[FREE_COUNT] -= 1
    entries[entry, NODE] = node
    entries[entry, NODE_MAX] = max_start
    if before < 0:
        entries[entry, NEXT] = cells[cell, FIRST]
        cells[cell, FIRST] = entry
    else:
        entries[entry, NEXT] = entries[before, NEXT]
        entries[before, NEXT] = entry
    cells[cell, LENGTH] += 1
    if cells[cell, LENGTH] > st[LONGEST]:
        st[LONGEST] = cells[cell, LENGTH]


@kernel
def insert_behind(nodes, cells, entries, st, cell, node, max_start):
    """`insert` of [CORE] §4.2: a safe `node` with max_start <= the head's. O(LENGTH)."""
    cells[cell, MERGED] = NIL
    before = np.int64(NIL)
    entry = cells[cell, FIRST]
    while entry >= 0 and entries[entry, NODE_MAX] > max_start:
        before = entry
        entry = entries[entry, NEXT]
    if entry >= 0 and entries[entry, NODE_MAX] == max_start:
        entries[entry, NODE] = unite(nodes, st, entries[entry, NODE], node, max_start)
    else:
        link_entry(cells, entries, st, cell, before, node, max_start)


@hot
def set_head(cells, cell, node, max_start):
    """Makes `node`, which is not a union, the only node of the cell's list."""
    cells[cell, HEAD] = node
    cells[cell, HEAD_MAX] = max_start
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@hot
def add_node(nodes, cells, entries, st, cell, node, max_start, low):
    """Adds an output or bottom node to the cell's list, at the place of its maximum start."""
    if cells[cell, HEAD] < 0:
        set_head(cells, cell, node, max_start)
    elif cells[cell, HEAD_MAX] < low:
        clear_cell(cells, entries, st, cell)
        set_head(cells, cell, node, max_start)
    elif max_start > cells[cell, HEAD_MAX]:
        folded = merge(nodes, cells, entries, st, cell, low)
        folded_max = cells[cell, HEAD_MAX]
        free_entries(entries, st, cells[cell, FIRST])
        set_head(cells, cell, node, max_start)
        link_entry(cells, entries, st, cell, np.int64(NIL), folded, folded_max)
    else:
        insert_behind(nodes, cells, entries, st, cell, node, max_start)


@kernel
def add_list(nodes, cells, entries, st, cell, move, low):
    """Adds the list that `move` detached from its source to the cell's list. The list with the greater head stays."""
    if cells[cell, HEAD] >= 0 and cells[cell, HEAD_MAX] < low:
        clear_cell(cells, entries, st, cell)
    if cells[cell, HEAD] >= 0 and cells[cell, HEAD_MAX] >= move[M_MAX]:
        free_entries(entries, st, move[M_FIRST])
        insert_behind(nodes, cells, entries, st, cell, move[M_NODE], move[M_MAX])
        return
    folded = NIL
    folded_max = NIL
    if cells[cell, HEAD] >= 0:
        folded = merge(nodes, cells, entries, st, cell, low)
        folded_max = cells[cell, HEAD_MAX]
        free_entries(entries, st, cells[cell, FIRST])
    cells[cell, HEAD] = move[M_HEAD]
    cells[cell, HEAD_MAX] = move[M_MAX]
    cells[cell, FIRST] = move[M_FIRST]
    cells[cell, LENGTH] = move[M_LENGTH]
    cells[cell, MERGED] = move[M_NODE]
    if folded >= 0:
        insert_behind(nodes, cells, entries, st, cell, folded, folded_max)


@kernel
def evict_prefix(nodes, st, checks, dead_before):
    """Reclaims the nodes that were created before position `dead_before`: a prefix of the ring. Amortised O(1)."""
    while st[CHECK_COUNT] > 0:
        first = st[CHECK_FIRST]
        if checks[first, 0] >= dead_before:
            return
        st[OLDEST] = checks[first, 1]
        st[CHECK_FIRST] = (first + 1) % checks.shape[0]
        st[CHECK_COUNT] -= 1


@hot
def keep_from(window_starts, row, start):
    """Note in `window_starts` that a node is needed: of several owners the one with the earliest window counts."""
    if window_starts[row] == 0 or window_starts[row] > start:
        window_starts[row] = start


@kernel
def compact(nodes, fresh, window_starts, remap, cells, entries, roots, st, cell_window_starts):
    """Copies the nodes that can still be read to `fresh` (of the same capacity), under new handles in the same order.

    For windows that differ between cells, for which the nodes that are dead in all of them need not be a prefix.
    `cell_window_starts` (int64, (cells,)) is the first live start of each cell; `roots` (int64, (r, ROOT_COLUMNS)) are
    nodes that are kept besides, and get their new handles. `window_starts` and `remap` (int64,
    (capacity,), zeroed) are scratch: for each node to keep, its cell's first live start plus 1, and its new handle.
    Parents have greater handles than their children, so one pass down marks nodes and one pass up copies them.
    O(capacity). Call it between events only.
    """
    mask = nodes.shape[0] - 1
    for cell in range(cells.shape[0]):
        if cells[cell, HEAD] < 0:
            continue
        low = cell_window_starts[cell]
        if cells[cell, HEAD_MAX] < low:
            clear_cell(cells, entries, st, cell)
            continue
        evict_dead_entries(cells, entries, st, cell, low)
        keep_from(window_starts, cells[cell, HEAD] & mask, low + 1)
        if cells[cell, MERGED] >= 0:
            keep_from(window_starts, cells[cell, MERGED] & mask, low + 1)
        entry = cells[cell, FIRST]
        while entry >= 0:
            keep_from(window_starts, entries[entry, NODE] & mask, low + 1)
            entry = entries[entry, NEXT]
    for root in range(roots.shape[0]):
        keep_from(window_starts, roots[root, O_NODE] & mask, roots[root, O_LOW] + 1)
    for handle in range(st[TAIL] - 1, st[OLDEST] - 1, -1):
        row = handle & mask
        if window_starts[row] == 0:
            continue
        if nodes[row, LEFT] >= 0:
            keep_from(window_starts, nodes[row, LEFT] & mask, window_starts[row])
        if nodes[row, RIGHT] >= 0 and nodes[row, POS] >= window_starts[row] - 1:
            keep_from(window_starts, nodes[row, RIGHT] & mask, window_starts[row])
        if nodes[row, RIGHT] == IS_PRODUCT:
            keep_from(window_starts, nodes[row, POS] & mask, window_starts[row])
    target = st[TAIL]
    for handle in range(st[OLDEST], st[TAIL]):
        row = handle & mask
        if window_starts[row] == 0:
            continue
        left = nodes[row, LEFT]
        right = nodes[row, RIGHT]
        if left >= 0:
            left = remap[left & mask]
        if right >= 0:
            # A right child outside the window is never read again: any handle will do.
            right = remap[right & mask] if nodes[row, POS] >= window_starts[row] - 1 else left
        fresh[target & mask, LEFT] = left
        fresh[target & mask, RIGHT] = right
        fresh[target & mask, POS] = nodes[row, POS] if right != IS_PRODUCT else remap[nodes[row, POS] & mask]
        fresh[target & mask, MAX] = nodes[row, MAX]
        remap[row] = target
        target += 1
    for cell in range(cells.shape[0]):
        if cells[cell, HEAD] < 0:
            continue
        cells[cell, HEAD] = remap[cells[cell, HEAD] & mask]
        if cells[cell, MERGED] >= 0:
            cells[cell, MERGED] = remap[cells[cell, MERGED] & mask]
        entry = cells[cell, FIRST]
        while entry >= 0:
            entries[entry, NODE] = remap[entries[entry, NODE] & mask]
            entry = entries[entry, NEXT]
    for root in range(roots.shape[0]):
        roots[root, O_NODE] = remap[roots[root, O_NODE] & mask]
    st[OLDEST] = st[TAIL]
    st[TAIL] = target
    st[CHECK_COUNT] = 0


@kernel
def reserve(nodes, entries, st, checks, position, dead_before, moves, more):
    """DONE if there is room for the nodes and entries of one event with at most `moves` moves; else GROW_NODES or
    GROW_ENTRIES, with the number in NEEDED.

    A move merges its source (LONGEST nodes), makes one output node, and adds at most two nodes or lists to cells. Each
    of these folds a list (LONGEST nodes) or unites (3 nodes), and links at most two entries. `more`: the nodes that a
    move makes besides; st[TAGGED]: those that all make together.
    """
    capacity = nodes.shape[0]
    last = (st[CHECK_FIRST] + st[CHECK_COUNT] - 1) % checks.shape[0]
    since = st[TAIL] - (checks[last, 1] if st[CHECK_COUNT] > 0 else st[OLDEST])
    if since * 256 >= capacity and st[CHECK_COUNT] < checks.shape[0]:
        slot = (st[CHECK_FIRST] + st[CHECK_COUNT]) % checks.shape[0]
        checks[slot, 0] = st[LAST_POSITION]
        checks[slot, 1] = st[TAIL]
        st[CHECK_COUNT] += 1
    st[LAST_POSITION] = position
    need = moves * (3 * (st[LONGEST] + 2) + 8 + more) + st[TAGGED]
    if st[TAIL] - st[OLDEST] + need > capacity:
        evict_prefix(nodes, st, checks, dead_before)
        if st[TAIL] - st[OLDEST] + need > capacity:
            st[NEEDED] = need
            return GROW_NODES
    if st[FREE_COUNT] < 4 * moves:
        st[NEEDED] = 4 * moves
        return GROW_ENTRIES
    return DONE


@hot
def latest_start(nodes, reach, row, high):
    """The greatest start of a node that a match may have: with `reach`, one below `high`. FOREVER for suffixes."""
    if reach is None or nodes[row, MAX] < high or nodes[row, MAX] == FOREVER:
        return nodes[row, MAX]
    return reach[row, R_BELOW]


@hot
def push_row(stack, st, node, depth, then):
    """A row on top of the stack of `enumerate_outs`, which has room."""
    stack[st[DEPTH], 0] = node
    stack[st[DEPTH], 1] = depth
    stack[st[DEPTH], 2] = then
    st[DEPTH] += 1


@kernel
def enumerate_outs(nodes, st, outs, stack, path, below, matches, places, write, reach):
    """Writes the complex events of the roots in `outs` ([CORE] Appendix B.1), or only counts them.

    Depth first, left before right, and right only if its maximum start lies in the window. The delay before each
    complex event is linear in its size. At most three unions precede each node on the path (law 2), and no side of a
    product is empty. Of a product the suffixes come first. A row of `stack` then waits with the runs below, until all
    of them have been through, and leads a suffix on from its HOLE. A row is a node, the number of events before it, or
    WAITS, and the row that waits for its suffix, NIL for none. `matches`
    (int64, (4, m + 1)) gets a column for each: start, end, (in the next column) one past its last place, tag. `places`
    (int64) gets the marked positions, ascending, each as `position << LABEL_BITS | label`. `reach` is None, or the
    result of `measure` of `roots` for the bound st[HIGH]: then only the matches that start before it are written, with
    the same delay. Returns FLUSH, GROW_STACK or GROW_PATH if an array is full, and continues from there at the next
    call. It also returns FLUSH after so many counted matches that the user may want to stop.

    Behind WALKED matches of an event, others are counted by `visit_below`: in the time of its nodes.
    """
    mask = nodes.shape[0] - 1
    low = st[LOW]
    end = st[END]
    bits = st[LABEL_BITS]
    walked = WALKED if st[DEPTH] > 0 else 0  # it goes on as it was
    by_nodes = False
    while st[OUT] < st[OUTS] or st[DEPTH] > 0:
        if st[DEPTH] == 0:
            if latest_start(nodes, reach, outs[st[OUT], 0] & mask, st[HIGH]) >= low:
                stack[0, 0] = outs[st[OUT], 0]
                stack[0, 1] = 0
                stack[0, 2] = NIL
                st[DEPTH] = 1
            st[OUT] += 1
            continue
        node = stack[st[DEPTH] - 1, 0]
        depth = stack[st[DEPTH] - 1, 1]
        then = stack[st[DEPTH] - 1, 2]
        st[DEPTH] -= 1
        if depth == WAITS:
            continue
        if not write and below is not None and walked >= WALKED:
            found = np.int64(-GROW_BELOW)
            if below.shape[0] == nodes.shape[0]:
                found = visit_below(nodes, st, stack, below, node, places, False)
            while found >= 0 and then >= 0:  # with all that the suffixes stand on
                runs = visit_below(nodes, st, stack, below, stack[then, 0], places, False)
                found = times(found, runs) if runs >= 0 else runs
                if found > MOST_COUNTED:
                    found = np.int64(-TOO_MANY)
                then = stack[then, 2]
            if found < 0:
                st[DEPTH] += 1
                return -found
            st[COUNTED] += found
            by_nodes = True
            if st[COUNTED] >= MOST_COUNTED:
                st[NEEDED] = 0
                return FLUSH
            continue
        while True:
            row = node & mask
            right = nodes[row, RIGHT]
            if right >= 0:
                if nodes[row, POS] >= low and latest_start(nodes, reach, right & mask, st[HIGH]) >= low:
                    if reach is not None and latest_start(nodes, reach, nodes[row, LEFT] & mask, st[HIGH]) < low:
                        node = right
                        continue
                    if st[DEPTH] + 2 > stack.shape[0]:
                        push_row(stack, st, node, depth, then)
                        return GROW_STACK
                    push_row(stack, st, right, depth, then)
                node = nodes[row, LEFT]
                continue
            if right == IS_PRODUCT:
                if st[DEPTH] + 2 > stack.shape[0]:
                    push_row(stack, st, node, depth, then)
                    return GROW_STACK
                push_row(stack, st, nodes[row, LEFT], WAITS, then)
                then = st[DEPTH] - 1
                node = nodes[row, POS]
                continue
            if right <= IS_OUTPUT and depth >= path.shape[0]:
                push_row(stack, st, node, depth, then)
                return GROW_PATH
            if right <= IS_OUTPUT and (nodes[row, LEFT] >= 0 or nodes[row, LEFT] == HOLE):
                path[depth] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                depth += 1
                node = nodes[row, LEFT]
                if node == HOLE:
                    node = stack[then, 0]
                    then = stack[then, 2]
                continue
            # A bottom node, or an output node on top of one.
            size = depth + (1 if right <= IS_OUTPUT else 0)
            if write:
                if st[MATCHES] + 1 >= matches.shape[1] or st[PLACES] + size > places.shape[0]:
                    push_row(stack, st, node, depth, then)
                    st[NEEDED] = size
                    return FLUSH
                if right <= IS_OUTPUT:
                    path[depth] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                at = st[PLACES]
                for i in range(size):
                    places[at + i] = path[size - 1 - i]
                m = st[MATCHES]
                matches[0, m] = nodes[row, MAX]
                matches[1, m] = end
                matches[2, m + 1] = at + size
                matches[3, m] = outs[st[OUT] - 1, 1]
                st[PLACES] = at + size
                st[MATCHES] = m + 1
            else:
                st[COUNTED] += 1
                walked += 1
                if st[COUNTED] % COUNTED_AT_ONCE == 0:
                    st[NEEDED] = 0
                    return FLUSH
            break
    if by_nodes:  # the caller may want to stop, and takes the number away before it is too large
        st[NEEDED] = 0
        return FLUSH
    return DONE
