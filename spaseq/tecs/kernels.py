"""Kernels of the compact structure tECS and of the evaluation that builds it (seed CORE §4).

Everything here is arrays and scalars; a kernel returns a status and never raises (numba leaks what a raising call
allocated). `spaseq.tecs.arena` owns the arrays and says what each holds. Kernels that call each other share this file,
because numba's cache does not see edits in other files.

The structure
-------------
A *node* is a row of `nodes` (int64, shape (capacity, 4)), found by its *handle*: handles count upwards for ever and the
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

A *label* says which variables take the position, where matches are valuations; it is 0 for all nodes else.

A *union list* hangs off each *cell* (an active state, of one partition): a head, which is never a union, and entries
behind it. Laws, checked by `spaseq.tecs.check_laws`:

1. time order: `max(left) >= max(right)` at every union, and a union's MAX is its left child's;
2. 3-boundedness: at most three unions on the way down the left children to a node that is not a union;
3. a list's head has the greatest maximum start, and the entries' maximum starts strictly decrease;
4. every node in a list is *safe*: not a union, or of output depth 1 with a right child of output depth at most 2.

Touch only what moves
---------------------
Algorithm 1 rebuilds its table of active states at every event. Here a state whose only move is to skip stays where it
is, so the work per event is the number of transitions that fire. Insertion order then no longer gives the order that
`insert` needs (max(n) <= max(n0)), so:

* a node with a greater maximum start than the head becomes the new head, and the list before it is folded into one node
  (its `merge`, which is safe and has the old head's maximum start);
* two lists meet with the one whose head is greater in the lead, the other one folded and inserted.

*Lists stay short.* Let m be the maximum start of a cell's head, inserted at some event. All that is inserted behind it
later and starts before m was, when the run from m began, in some active cell, and what a cell passes on carries the
maximum start of its whole list, as extending, merging and uniting preserve it. So there are at most as many
different maximum starts below m as cells were active then; equal ones are united. A list has at most two entries more
than there are active states (CORE's bound). Law 3 for entry 1 against the head is `>=`, as in the paper.

*Reclaiming a prefix.* A child is read without a check where it shares its parent's maximum start (left, next), and
after a check of the maximum start beside its handle otherwise (right, list entries). So nothing whose maximum start
lies before the window is read; a node's maximum start is at most the position at which it was created; hence whatever
was created before the window's first position may be overwritten, and those nodes are a prefix of the ring.

Where windows differ from partition to partition (EVENTS with PARTITION BY) no prefix is dead as long as some partition
is quiet; there `compact` copies what is alive when the ring is full.

Rejected: reference counts (a write per handle copied), a table rebuilt per event (cost by states, not by moves),
one arena per partition (allocation for each key).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of kernel arguments are in their docstrings: numba infers its own.
from __future__ import annotations

from functools import partial

from numba import njit

# PERF: the kernels allocate nothing, so they need no reference counts, which numba otherwise keeps, with atomic
# operations, for every array argument of every call. S3' of benchmarks/stock.py: 253 ns per moving event with them, 52
# without (`_nrt=False`), 26 with the kernels of the usual event inlined as well; inlining all of them gives no more and
# doubles the time to compile.
kernel = partial(njit, cache=True, _nrt=False)
hot = partial(njit, cache=True, _nrt=False, inline="always")

# columns of `nodes`
LEFT = 0
RIGHT = 1
POS = 2
MAX = 3
NIL = -1
IS_BOTTOM = -1
IS_OUTPUT = -2  # and below: less the label

# columns of `cells`
HEAD = 0
HEAD_MAX = 1
MERGED = 2  # cached merge of the list, NIL when stale
FIRST = 3  # first entry behind the head, NIL when there is none
LENGTH = 4  # number of entries behind the head

# columns of `entries`
NODE = 0
NODE_MAX = 1
NEXT = 2

# columns of `moves`, one row per transition that fires at an event
SOURCE = 0  # cell, or NIL for a run that starts here
MARK_TO = 1  # cell reached by the marking transition, NIL for none
MARK_ACCEPTS = 2
SKIP_TO = 3  # cell reached by the other transition, NIL for none, STAY for the cell itself
SKIP_ACCEPTS = 4
M_NODE = 5  # merge of the source's list
M_HEAD = 6  # the detached list of a source that moves away
M_MAX = 7
M_FIRST = 8
M_LENGTH = 9
M_TAG = 10  # what the caller wants to know its matches by
M_LABEL = 11  # of what the marking transition marks
MOVE_COLUMNS = 12
STAY = -2

# selection: which of the complex events with one end are reported
KEEP_ALL = 0
BEST_NEXT = 1
BEST_LAST = 2

# consumption: which runs an event that completes a match makes forgotten
CONSUME_NONE = 0
CONSUME_ANY = 1
CONSUME_PARTITION = 2

# slots of the state vector `st`
TAIL = 0  # next handle
OLDEST = 1  # handles below are reclaimed
FREE = 2  # first free entry
FREE_COUNT = 3
ROW = 4  # next row of the batch
OUTS = 5  # roots to enumerate at the current event
OUT = 6  # root being enumerated
DEPTH = 7  # height of the enumeration stack
MATCHES = 8  # matches in the buffer
PLACES = 9  # positions in the buffer
LONGEST = 10  # longest list so far
CHECK_FIRST = 11  # checkpoints: ring of (position, tail)
CHECK_COUNT = 12
LAST_POSITION = 13  # of the row before
UNKNOWN_STATE = 14  # a state without its transitions became active
END = 15  # end and window of the enumeration under way
LOW = 16
COUNTED = 17  # matches counted without being written
NEEDED = 18  # capacity asked for by the last status
FLOOR = 19  # no run that started before is alive any more: it was consumed
LINKS = 20  # links in use by the enumeration of the most recent
LEFT_TO_WRITE = 21  # matches that LIMIT still allows at the current event
LABEL_BITS = 22  # a place is written as position << LABEL_BITS | label
SLOTS = 24

# statuses
DONE = 0
GROW_NODES = 1
GROW_ENTRIES = 2
GROW_STACK = 3
GROW_PATH = 4
FLUSH = 5
NEED_STATES = 6
GROW_RUNS = 7

CHECKPOINTS = 1024


@hot()
def new_node(nodes, st, left, right, pos, max_start):
    """Append a node; the caller has made sure of the room (`reserve`). O(1)."""
    handle = st[TAIL]
    row = handle & (nodes.shape[0] - 1)
    nodes[row, LEFT] = left
    nodes[row, RIGHT] = right
    nodes[row, POS] = pos
    nodes[row, MAX] = max_start
    st[TAIL] = handle + 1
    return handle


@kernel()
def unite(nodes, st, a, b, max_start):
    """`union` of seed CORE §4.2: a safe node for what safe `a` and `b`, both of `max_start`, stand for. O(1)."""
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


@hot()
def free_entries(entries, st, first):
    """Give the chain of entries that starts at `first` back. O(length)."""
    while first >= 0:
        following = entries[first, NEXT]
        entries[first, NEXT] = st[FREE]
        st[FREE] = first
        st[FREE_COUNT] += 1
        first = following


@hot()
def clear_cell(cells, entries, st, cell):
    """The cell's state is no longer active."""
    free_entries(entries, st, cells[cell, FIRST])
    cells[cell, HEAD] = NIL
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@hot()
def drop_dead_entries(cells, entries, st, cell, low):
    """Cut the entries whose maximum start is before `low` off the list: they are a suffix (law 3)."""
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


@hot()
def merge(nodes, cells, entries, st, cell, low):
    """`merge` of seed CORE §4.2 (Figure 5(e)): one safe node for the cell's list; at most LENGTH nodes. O(LENGTH)."""
    node = cells[cell, MERGED]
    if node >= 0:
        return node
    drop_dead_entries(cells, entries, st, cell, low)
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


@hot()
def link_entry(cells, entries, st, cell, before, node, max_start):
    """Put `node` behind entry `before` of the cell's list (NIL: first)."""
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


@kernel()
def insert_behind(nodes, cells, entries, st, cell, node, max_start):
    """`insert` of seed CORE §4.2: a safe `node` with max_start <= the head's. O(LENGTH)."""
    cells[cell, MERGED] = NIL
    before = NIL
    entry = cells[cell, FIRST]
    while entry >= 0 and entries[entry, NODE_MAX] > max_start:
        before = entry
        entry = entries[entry, NEXT]
    if entry >= 0 and entries[entry, NODE_MAX] == max_start:
        entries[entry, NODE] = unite(nodes, st, entries[entry, NODE], node, max_start)
    else:
        link_entry(cells, entries, st, cell, before, node, max_start)


@hot()
def set_head(cells, cell, node, max_start):
    """The cell's list becomes `node` alone (which is not a union)."""
    cells[cell, HEAD] = node
    cells[cell, HEAD_MAX] = max_start
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@hot()
def add_node(nodes, cells, entries, st, cell, node, max_start, low):
    """Add an output or bottom node to the cell's list, wherever its maximum start belongs."""
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
        link_entry(cells, entries, st, cell, NIL, folded, folded_max)
    else:
        insert_behind(nodes, cells, entries, st, cell, node, max_start)


@kernel()
def add_list(nodes, cells, entries, st, cell, move, low):
    """Add the list that `move` detached from its source to the cell's list; the greater head leads."""
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


@kernel()
def reclaim(nodes, st, checks, dead_before):
    """Give the nodes created before position `dead_before` back: a prefix of the ring. Amortised O(1)."""
    while st[CHECK_COUNT] > 0:
        first = st[CHECK_FIRST]
        if checks[first, 0] >= dead_before:
            return
        st[OLDEST] = checks[first, 1]
        st[CHECK_FIRST] = (first + 1) % checks.shape[0]
        st[CHECK_COUNT] -= 1


@kernel()
def compact(nodes, fresh, lows, remap, cells, entries, st, cell_lows):
    """Copy what can still be read to `fresh` (of the same capacity), under new handles in the same order.

    For windows that differ from cell to cell, where nothing old enough for all is a prefix. `cell_lows` (int64,
    (cells,)) is the first live start of each cell. `lows` and `remap` (int64, (capacity,), zeroed) are scratch: one
    more than the first live start a node is kept for, and its new handle. Parents have greater handles than their
    children, so one pass down marks and one pass up copies. O(capacity). Between events only.
    """
    mask = nodes.shape[0] - 1
    for cell in range(cells.shape[0]):
        if cells[cell, HEAD] < 0:
            continue
        low = cell_lows[cell]
        if cells[cell, HEAD_MAX] < low:
            clear_cell(cells, entries, st, cell)
            continue
        drop_dead_entries(cells, entries, st, cell, low)
        lows[cells[cell, HEAD] & mask] = low + 1
        if cells[cell, MERGED] >= 0:
            lows[cells[cell, MERGED] & mask] = low + 1
        entry = cells[cell, FIRST]
        while entry >= 0:
            lows[entries[entry, NODE] & mask] = low + 1
            entry = entries[entry, NEXT]
    for handle in range(st[TAIL] - 1, st[OLDEST] - 1, -1):
        row = handle & mask
        if lows[row] == 0:
            continue
        if nodes[row, LEFT] >= 0:
            lows[nodes[row, LEFT] & mask] = lows[row]
        if nodes[row, RIGHT] >= 0 and nodes[row, POS] >= lows[row] - 1:
            lows[nodes[row, RIGHT] & mask] = lows[row]
    target = st[TAIL]
    for handle in range(st[OLDEST], st[TAIL]):
        row = handle & mask
        if lows[row] == 0:
            continue
        left = nodes[row, LEFT]
        right = nodes[row, RIGHT]
        if left >= 0:
            left = remap[left & mask]
        if right >= 0:
            # A right child outside the window is never read again: any handle does.
            right = remap[right & mask] if nodes[row, POS] >= lows[row] - 1 else left
        fresh[target & mask, LEFT] = left
        fresh[target & mask, RIGHT] = right
        fresh[target & mask, POS] = nodes[row, POS]
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
    st[OLDEST] = st[TAIL]
    st[TAIL] = target
    st[CHECK_COUNT] = 0


@hot()
def reserve(nodes, entries, st, checks, position, dead_before, moves):
    """Room for the nodes and entries of one event with at most `moves` moves, or the status that asks for it.

    A move merges its source (LONGEST nodes), makes one output node, and adds at most two things, each of which folds a
    list (LONGEST) or unites (3), and links at most two entries.
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
    need = moves * (3 * (st[LONGEST] + 2) + 8)
    if st[TAIL] - st[OLDEST] + need > capacity:
        reclaim(nodes, st, checks, dead_before)
        if st[TAIL] - st[OLDEST] + need > capacity:
            st[NEEDED] = need
            return GROW_NODES
    if st[FREE_COUNT] < 4 * moves:
        st[NEEDED] = 4 * moves
        return GROW_ENTRIES
    return DONE


@hot()
def apply_moves(nodes, cells, entries, st, moves, count, position, low, outs):
    """One event of Algorithm 1 (seed CORE §4.3): lines 7-11 for the `count` transitions in `moves`.

    First every source is merged and those that leave are detached, then the targets are extended, so that no transition
    sees what another one did at the same event. `outs` (int64, (2 * rows of moves, 2)) receives the roots of what this
    event accepts and their tags. Precondition: `reserve` said DONE for `count` moves.
    """
    for i in range(count):
        move = moves[i]
        cell = move[SOURCE]
        if cell < 0:
            move[M_MAX] = position
            move[M_NODE] = NIL
            if move[SKIP_TO] >= 0 or move[SKIP_ACCEPTS]:
                move[M_NODE] = new_node(nodes, st, NIL, IS_BOTTOM, position, position)
            move[M_HEAD] = move[M_NODE]
            move[M_FIRST] = NIL
            move[M_LENGTH] = 0
        else:
            move[M_NODE] = merge(nodes, cells, entries, st, cell, low)
            move[M_MAX] = cells[cell, HEAD_MAX]
            if move[SKIP_TO] != STAY:
                move[M_HEAD] = cells[cell, HEAD]
                move[M_FIRST] = cells[cell, FIRST]
                move[M_LENGTH] = cells[cell, LENGTH]
                cells[cell, HEAD] = NIL
                cells[cell, MERGED] = NIL
                cells[cell, FIRST] = NIL
                cells[cell, LENGTH] = 0
    n_outs = 0
    for i in range(count):
        move = moves[i]
        if move[MARK_TO] >= 0 or move[MARK_ACCEPTS]:
            node = new_node(nodes, st, move[M_NODE], IS_OUTPUT - move[M_LABEL], position, move[M_MAX])
            if move[MARK_TO] >= 0:
                add_node(nodes, cells, entries, st, move[MARK_TO], node, move[M_MAX], low)
            if move[MARK_ACCEPTS]:
                outs[n_outs, 0] = node
                outs[n_outs, 1] = move[M_TAG]
                n_outs += 1
        if move[SKIP_ACCEPTS]:
            outs[n_outs, 0] = move[M_NODE]
            outs[n_outs, 1] = -1 - move[M_TAG]
            n_outs += 1
        if move[SKIP_TO] >= 0:
            add_list(nodes, cells, entries, st, move[SKIP_TO], move, low)
        elif move[SKIP_TO] != STAY:
            free_entries(entries, st, move[M_FIRST])
    st[OUTS] = n_outs
    st[OUT] = 0
    st[DEPTH] = 0
    st[END] = position
    st[LOW] = low


@kernel()
def enumerate_outs(nodes, st, outs, stack, path, matches, places, write):
    """Write the complex events of the roots in `outs` (seed CORE Appendix B.1), or only count them.

    Depth first, left before right, right only while its maximum start lies in the window: the delay before each complex
    event is linear in its size, since at most three unions precede each node on the path (law 2). `matches` (int64,
    (4, m + 1)) gets a column each: start, end, in the next column one past its last place, tag; `places` (int64) the
    marked positions, ascending, each as `position << LABEL_BITS | label`.
    Stops with FLUSH, GROW_STACK or GROW_PATH where an array is full, and goes on from there when called again.
    """
    mask = nodes.shape[0] - 1
    low = st[LOW]
    end = st[END]
    bits = st[LABEL_BITS]
    while st[OUT] < st[OUTS] or st[DEPTH] > 0:
        if st[DEPTH] == 0:
            if nodes[outs[st[OUT], 0] & mask, MAX] >= low:
                stack[0, 0] = outs[st[OUT], 0]
                stack[0, 1] = 0
                st[DEPTH] = 1
            st[OUT] += 1
            continue
        node = stack[st[DEPTH] - 1, 0]
        depth = stack[st[DEPTH] - 1, 1]
        st[DEPTH] -= 1
        while True:
            row = node & mask
            right = nodes[row, RIGHT]
            if right >= 0:
                if nodes[row, POS] >= low:
                    if st[DEPTH] + 2 > stack.shape[0]:
                        stack[st[DEPTH], 0] = node
                        stack[st[DEPTH], 1] = depth
                        st[DEPTH] += 1
                        return GROW_STACK
                    stack[st[DEPTH], 0] = right
                    stack[st[DEPTH], 1] = depth
                    st[DEPTH] += 1
                node = nodes[row, LEFT]
                continue
            if right <= IS_OUTPUT and depth >= path.shape[0]:
                stack[st[DEPTH], 0] = node
                stack[st[DEPTH], 1] = depth
                st[DEPTH] += 1
                return GROW_PATH
            if right <= IS_OUTPUT and nodes[row, LEFT] >= 0:
                path[depth] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                depth += 1
                node = nodes[row, LEFT]
                continue
            # A bottom node, or an output node that stands on one.
            size = depth + (1 if right <= IS_OUTPUT else 0)
            if write:
                if st[MATCHES] + 1 >= matches.shape[1] or st[PLACES] + size > places.shape[0]:
                    stack[st[DEPTH], 0] = node
                    stack[st[DEPTH], 1] = depth
                    st[DEPTH] += 1
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
            break
    return DONE


@kernel()
def compare_marks(nodes, a, b, order):
    """Whether the marked positions under `a` are better (1) or worse (-1) than those under `b`, or the same (0).

    `a` and `b` head paths without unions. With NEXT the one that holds the smallest position of their symmetric
    difference is better, with LAST the one that holds the greatest (seed CEL §4). Walks down from the greatest
    positions; O(positions until the paths meet), for LAST only until they differ.
    """
    mask = nodes.shape[0] - 1
    result = 0
    while a != b:
        pos_a = NIL
        pos_b = NIL
        if a >= 0 and nodes[a & mask, RIGHT] <= IS_OUTPUT:
            pos_a = nodes[a & mask, POS]
        if b >= 0 and nodes[b & mask, RIGHT] <= IS_OUTPUT:
            pos_b = nodes[b & mask, POS]
        if pos_a == NIL and pos_b == NIL:
            return result
        if pos_a != pos_b:
            result = 1 if pos_a > pos_b else -1
            if order == BEST_LAST:
                return result
        if pos_a >= pos_b:
            a = nodes[a & mask, LEFT]
        if pos_b >= pos_a:
            b = nodes[b & mask, LEFT]
    return result


@kernel()
def insert_run(nodes, cells, entries, st, cell, node, start, order):
    """Add a run to a cell's frontier: its chain of entries, latest start first, none beaten by a later or equal start.

    A beaten run can be left out: whatever completes it completes the better one, at the same event, by the same marks,
    and no window holds the beaten one alone. O(length of the frontier) comparisons.
    """
    before = NIL
    entry = cells[cell, FIRST]
    while entry >= 0 and entries[entry, NODE_MAX] >= start:
        if compare_marks(nodes, entries[entry, NODE], node, order) > 0:
            return
        before = entry
        entry = entries[entry, NEXT]
    # Entries with the same start that the new run beats stand among those just passed; there is at most one.
    link_entry(cells, entries, st, cell, before, node, start)
    new = cells[cell, FIRST] if before < 0 else entries[before, NEXT]
    last = NIL
    entry = cells[cell, FIRST]
    while entry >= 0:
        following = entries[entry, NEXT]
        if (
            entry != new
            and entries[entry, NODE_MAX] <= start
            and compare_marks(nodes, node, entries[entry, NODE], order) > 0
        ):
            if last < 0:
                cells[cell, FIRST] = following
            else:
                entries[last, NEXT] = following
            entries[entry, NEXT] = NIL
            free_entries(entries, st, entry)
            cells[cell, LENGTH] -= 1
        else:
            last = entry
        entry = following
    cells[cell, HEAD] = entries[cells[cell, FIRST], NODE]
    cells[cell, HEAD_MAX] = entries[cells[cell, FIRST], NODE_MAX]


@kernel()
def offer(nodes, st, outs, node, tag, order):
    """Keep `node` among the roots of this event if none is better; drop those that it beats."""
    n = st[OUTS]
    if n > 0:
        verdict = compare_marks(nodes, node, outs[0, 0], order)
        if verdict < 0:
            return
        if verdict > 0:
            n = 0
    outs[n, 0] = node
    outs[n, 1] = tag
    st[OUTS] = n + 1


@kernel()
def apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order):
    """`apply_moves` under NEXT or LAST: each cell holds a frontier of single runs instead of the structure of all.

    `runs` (int64, (r, 2)) is scratch for the runs of the sources, taken down first so that no transition sees what
    another one did at the same event. Precondition: `reserve_runs` said DONE.
    """
    used = 0
    for i in range(count):
        move = moves[i]
        cell = move[SOURCE]
        move[M_FIRST] = used
        if cell < 0:
            node = NIL
            if move[SKIP_TO] >= 0 or move[SKIP_ACCEPTS]:
                node = new_node(nodes, st, NIL, IS_BOTTOM, position, position)
            runs[used, 0] = node
            runs[used, 1] = position
            used += 1
        else:
            entry = cells[cell, FIRST]
            while entry >= 0 and entries[entry, NODE_MAX] >= low:
                runs[used, 0] = entries[entry, NODE]
                runs[used, 1] = entries[entry, NODE_MAX]
                used += 1
                entry = entries[entry, NEXT]
            if move[SKIP_TO] != STAY:
                clear_cell(cells, entries, st, cell)
        move[M_LENGTH] = used - move[M_FIRST]
    st[OUTS] = 0
    for i in range(count):
        move = moves[i]
        for r in range(move[M_FIRST], move[M_FIRST] + move[M_LENGTH]):
            node = runs[r, 0]
            start = runs[r, 1]
            if move[MARK_TO] >= 0 or move[MARK_ACCEPTS]:
                marked = new_node(nodes, st, node, IS_OUTPUT - move[M_LABEL], position, start)
                if move[MARK_TO] >= 0:
                    drop_dead_entries(cells, entries, st, move[MARK_TO], low)
                    insert_run(nodes, cells, entries, st, move[MARK_TO], marked, start, order)
                if move[MARK_ACCEPTS]:
                    offer(nodes, st, outs, marked, move[M_TAG], order)
            if move[SKIP_ACCEPTS]:
                offer(nodes, st, outs, node, -1 - move[M_TAG], order)
            if move[SKIP_TO] >= 0:
                drop_dead_entries(cells, entries, st, move[SKIP_TO], low)
                insert_run(nodes, cells, entries, st, move[SKIP_TO], node, start, order)
    st[OUT] = 0
    st[DEPTH] = 0
    st[END] = position
    st[LOW] = low


@kernel()
def reserve_runs(nodes, cells, entries, st, checks, moves, count, position, dead_before, runs, outs):
    """`reserve` for `apply_best`: one node and two entries for each run of the sources."""
    total = count
    for i in range(count):
        if moves[i, SOURCE] >= 0:
            total += cells[moves[i, SOURCE], LENGTH]
    if runs.shape[0] < total + 1 or outs.shape[0] < 2 * total + 2:
        st[NEEDED] = total + 1
        return GROW_RUNS
    return reserve(nodes, entries, st, checks, position, dead_before, total)


@kernel()
def push_heap(heap, size, max_start, node, link, depth):
    """Put a row into the binary heap `heap` (int64, (h, 4)), greatest `max_start` on top. O(log size)."""
    i = size
    while i > 0 and heap[(i - 1) // 2, 0] < max_start:
        for column in range(4):
            heap[i, column] = heap[(i - 1) // 2, column]
        i = (i - 1) // 2
    heap[i, 0] = max_start
    heap[i, 1] = node
    heap[i, 2] = link
    heap[i, 3] = depth


@kernel()
def pop_heap(heap, size):
    """Take the top row off; it is left at `heap[size - 1]`. O(log size)."""
    top_0, top_1, top_2, top_3 = heap[0, 0], heap[0, 1], heap[0, 2], heap[0, 3]
    last_0, last_1, last_2, last_3 = heap[size - 1, 0], heap[size - 1, 1], heap[size - 1, 2], heap[size - 1, 3]
    size -= 1
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1, 0] > heap[child, 0]:
            child += 1
        if heap[child, 0] <= last_0:
            break
        for column in range(4):
            heap[i, column] = heap[child, column]
        i = child
    heap[i, 0], heap[i, 1], heap[i, 2], heap[i, 3] = last_0, last_1, last_2, last_3
    heap[size, 0], heap[size, 1], heap[size, 2], heap[size, 3] = top_0, top_1, top_2, top_3


@kernel()
def enumerate_recent(nodes, st, outs, heap, links, matches, places, write, limit):
    """Write at most `limit` complex events of the roots in `outs`, those with the most recent starts first.

    Best first over maximum starts: `heap` (int64, (h, 4)) holds what is still to be opened, `links` (int64, (l, 2)) the
    positions on the way there. O(log) for each node opened, and every node opened is on the way to a match that is
    written or was put off for a more recent one. Stops and goes on as `enumerate_outs`.
    """
    mask = nodes.shape[0] - 1
    low = st[LOW]
    bits = st[LABEL_BITS]
    if st[OUT] == 0 and st[OUTS] > 0:
        if heap.shape[0] < st[OUTS]:
            return GROW_STACK
        for i in range(st[OUTS]):
            if nodes[outs[i, 0] & mask, MAX] >= low:
                push_heap(heap, st[DEPTH], nodes[outs[i, 0] & mask, MAX], outs[i, 0], -2 - i, 0)
                st[DEPTH] += 1
        st[OUT] = st[OUTS]
        st[LINKS] = 0
        st[LEFT_TO_WRITE] = limit
    while st[DEPTH] > 0 and st[LEFT_TO_WRITE] > 0:
        pop_heap(heap, st[DEPTH])
        st[DEPTH] -= 1
        max_start, node, link, depth = (
            heap[st[DEPTH], 0], heap[st[DEPTH], 1], heap[st[DEPTH], 2], heap[st[DEPTH], 3]
        )  # fmt: skip
        while True:
            row = node & mask
            right = nodes[row, RIGHT]
            if st[DEPTH] + 2 > heap.shape[0] or st[LINKS] + 1 > links.shape[0]:
                status = GROW_STACK if st[DEPTH] + 2 > heap.shape[0] else GROW_PATH
                push_heap(heap, st[DEPTH], max_start, node, link, depth)
                st[DEPTH] += 1
                return status
            if right >= 0:
                if nodes[row, POS] >= low:
                    push_heap(heap, st[DEPTH], nodes[row, POS], right, link, depth)
                    st[DEPTH] += 1
                node = nodes[row, LEFT]
                continue
            size = depth + (1 if right <= IS_OUTPUT else 0)
            if right <= IS_OUTPUT and nodes[row, LEFT] >= 0:
                links[st[LINKS], 0] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                links[st[LINKS], 1] = link
                link = st[LINKS]
                st[LINKS] += 1
                depth += 1
                node = nodes[row, LEFT]
                continue
            if write:
                if st[MATCHES] + 1 >= matches.shape[1] or st[PLACES] + size > places.shape[0]:
                    push_heap(heap, st[DEPTH], max_start, node, link, depth)
                    st[DEPTH] += 1
                    st[NEEDED] = size
                    return FLUSH
                at = st[PLACES]
                if right <= IS_OUTPUT:
                    places[at] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                    at += 1
                while link >= 0:
                    places[at] = links[link, 0]
                    at += 1
                    link = links[link, 1]
                m = st[MATCHES]
                matches[0, m] = nodes[row, MAX]
                matches[1, m] = st[END]
                matches[2, m + 1] = at
                matches[3, m] = outs[-2 - link, 1]
                st[PLACES] = at
                st[MATCHES] = m + 1
            else:
                st[COUNTED] += 1
            st[LEFT_TO_WRITE] -= 1
            break
    st[OUTS] = 0
    st[OUT] = 0
    st[DEPTH] = 0
    return DONE


@kernel()
def run_classes(
    rows, windows, nodes, cells, entries, st, checks, init_from, init, affected_from, affected, known, moves, outs,
    runs, floors, stack, heap, path, links, matches, places, write, order, limit, consume,
):  # fmt: skip
    """Algorithm 1 over a batch for an automaton without registers, touching only the states that move.

    `rows` (int64, (n, 4)): symbol class, position, first cell of the partition, partition. `windows` (int64, (n, 2)):
    first live start, first position whose nodes must be kept. `init` (int32, (i, 5), those of class c from
    `init_from[c]` to `init_from[c + 1]`) and `affected` (int32, (k, 6), likewise) are the deterministic transitions:
    the latter's state, then target, acceptance and label of the marking one, target and acceptance of the skipping
    one. `known` (bool, (states,)) says whose transitions are there. `floors` (int64, (partitions,)): what CONSUME BY
    PARTITION left alive. `limit`: 0 for none.
    Goes on from `st[ROW]`, so the caller mends what the status names and calls again.
    """
    status = finish_event(nodes, st, outs, stack, heap, path, links, matches, places, write, limit)
    if status != DONE:
        return status
    if st[UNKNOWN_STATE]:
        return NEED_STATES
    while st[ROW] < rows.shape[0]:
        k = st[ROW]
        c = rows[k, 0]
        position = rows[k, 1]
        base = rows[k, 2]
        low = windows[k, 0]
        if consume != CONSUME_NONE:
            low = max(low, st[FLOOR] if consume == CONSUME_ANY else floors[rows[k, 3]])
        start = affected_from[c]
        stop = affected_from[c + 1]
        first = init_from[c]
        count = init_from[c + 1] - first
        if order == KEEP_ALL:
            status = reserve(nodes, entries, st, checks, position, windows[k, 1], stop - start + count)
            if status != DONE:
                return status
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
                clear_cell(cells, entries, st, cell)
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
        if order == KEEP_ALL:
            apply_moves(nodes, cells, entries, st, moves, count, position, low, outs)
        else:
            status = reserve_runs(nodes, cells, entries, st, checks, moves, count, position, windows[k, 1], runs, outs)
            if status != DONE:
                return status
            apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order)
        st[ROW] = k + 1
        for i in range(count):
            if moves[i, MARK_TO] >= 0 and not known[moves[i, MARK_TO] - base]:
                st[UNKNOWN_STATE] = 1
            if moves[i, SKIP_TO] >= 0 and not known[moves[i, SKIP_TO] - base]:
                st[UNKNOWN_STATE] = 1
        if st[OUTS] > 0:
            if consume == CONSUME_ANY:
                st[FLOOR] = position + 1
            elif consume == CONSUME_PARTITION:
                floors[rows[k, 3]] = position + 1
            status = finish_event(nodes, st, outs, stack, heap, path, links, matches, places, write, limit)
            if status != DONE:
                return status
        if st[UNKNOWN_STATE]:
            return NEED_STATES
    return DONE


@kernel()
def finish_event(nodes, st, outs, stack, heap, path, links, matches, places, write, limit):
    """Enumerate what the current event accepts: all of it, or with LIMIT the most recent."""
    if limit > 0:
        return enumerate_recent(nodes, st, outs, heap, links, matches, places, write, limit)
    return enumerate_outs(nodes, st, outs, stack, path, matches, places, write)


@kernel()
def run_moves(
    nodes, cells, entries, st, checks, moves, count, position, low, dead_before, outs, runs, stack, heap, path, links,
    matches, places, write, order, limit,
):  # fmt: skip
    """One event whose moves the caller worked out (an automaton with registers).

    `st[ROW]` is 0 before and 1 once the moves are applied.
    """
    if st[ROW] == 0:
        if order == KEEP_ALL:
            status = reserve(nodes, entries, st, checks, position, dead_before, count + 1)
        else:
            status = reserve_runs(nodes, cells, entries, st, checks, moves, count, position, dead_before, runs, outs)
        if status != DONE:
            return status
        if order == KEEP_ALL:
            apply_moves(nodes, cells, entries, st, moves, count, position, low, outs)
        else:
            apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order)
        st[ROW] = 1
    return finish_event(nodes, st, outs, stack, heap, path, links, matches, places, write, limit)
