"""Kernels of the compact structure tECS and of the evaluation that builds it ([CORE] §4).

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
was created before the window's first position may be overwritten, and those nodes are a prefix of the ring. With
CONSUME BY ANY a match makes all runs forgotten, so the prefix also ends where the last one did.

Where windows differ from partition to partition (EVENTS with PARTITION BY) no prefix is dead as long as some partition
is quiet; there `compact` copies what is alive when the ring is full.

Rejected: reference counts (a write per handle copied), a table rebuilt per event (cost by states, not by moves),
one arena per partition (allocation for each key).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of kernel arguments are in their docstrings: numba infers its own.
from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

# PERF: the kernels allocate nothing, so they need no reference counts, which numba otherwise keeps, with atomic
# operations, for every array argument of every call. S3' of benchmarks/stock.py: 253 ns per moving event with them, 52
# without (`_nrt=False`), 26 with the kernels of the usual event inlined as well.
kernel = partial(njit, cache=True, _nrt=False)
# Small kernels are inlined by numba (`hot`), larger ones that are called once per event by LLVM (`inlined`): an array
# is seven words of a call, and `rise` of benchmarks/rma.py takes three times as long with calls. Each costs time to
# compile: numba's inlining grows with the caller's size times the number of calls, so it is not for kernels that
# inline much themselves; LLVM optimises what it inlines anew in each caller, so a large kernel is called at one place.
hot = partial(njit, cache=True, _nrt=False, inline="always")
inlined = partial(njit, cache=True, _nrt=False, forceinline=True)

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

# columns of `events`, one row per event that may move a run
E_ROW = 0  # its row in the batch
E_CLASS = 1  # symbol class
E_POSITION = 2
E_KEY = 3  # partition
E_LOW = 4  # first live start
E_KEEP = 5  # first position whose nodes must be kept
EVENT_COLUMNS = 6

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
BEST_EARLIEST = 3  # BEST_NEXT where every run marks its start
FRONTIERS = (BEST_NEXT, BEST_LAST, BEST_EARLIEST)
ENDS = 4  # only whether there is one: a cell holds the greatest start of its runs and no list

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
LABEL_BITS = 22  # a place is written as position << LABEL_BITS | label; slots from 24: `run_guarded`
SLOTS = 32

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
    """`union` of [CORE] §4.2: a safe node for what safe `a` and `b`, both of `max_start`, stand for. O(1)."""
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


@kernel()
def free_entries(entries, st, first):
    """Give the chain of entries that starts at `first` back. O(length)."""
    while first >= 0:
        following = entries[first, NEXT]
        entries[first, NEXT] = st[FREE]
        st[FREE] = first
        st[FREE_COUNT] += 1
        first = following


@kernel()
def clear_cell(cells, entries, st, cell):
    """The cell's state is no longer active."""
    free_entries(entries, st, cells[cell, FIRST])
    cells[cell, HEAD] = NIL
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@kernel()
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
    """`merge` of [CORE] §4.2 (Figure 5(e)): one safe node for the cell's list; at most LENGTH nodes. O(LENGTH)."""
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


@kernel()
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
        link_entry(cells, entries, st, cell, np.int64(NIL), folded, folded_max)
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


@kernel()
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


@inlined()
def apply_moves(nodes, cells, entries, st, moves, count, position, low, outs):
    """One event of Algorithm 1 ([CORE] §4.3): lines 7-11 for the `count` transitions in `moves`.

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


@inlined()
def apply_starts(cells, st, moves, count, position, low, outs):
    """`apply_moves` where only ends are asked for: a cell holds the greatest start of its runs, and no node is made.

    Of the runs in one cell the one that started last leaves the window last, and all of them complete at the same
    events: so a match ends at an event if an accepting transition fires from a cell whose greatest start is alive.
    `outs[0]` receives the greatest start among these moves, and the tag of one that has it. O(moves).
    """
    for i in range(count):
        move = moves[i]
        if move[SOURCE] < 0:
            move[M_MAX] = position
        else:
            move[M_MAX] = cells[move[SOURCE], HEAD_MAX]
            if move[SKIP_TO] != STAY:
                cells[move[SOURCE], HEAD] = NIL
    outs[0, 0] = NIL
    for i in range(count):
        move = moves[i]
        start = move[M_MAX]
        if move[MARK_TO] >= 0:
            raise_start(cells, move[MARK_TO], start)
        if move[SKIP_TO] >= 0:
            raise_start(cells, move[SKIP_TO], start)
        if (move[MARK_ACCEPTS] or move[SKIP_ACCEPTS]) and start > outs[0, 0]:
            outs[0, 0] = start
            outs[0, 1] = move[M_TAG] if move[MARK_ACCEPTS] else -1 - move[M_TAG]
    st[OUTS] = 1 if outs[0, 0] >= low else 0
    st[END] = position


@hot()
def raise_start(cells, cell, start):
    """A run that began at `start` reaches a cell, of those that hold nothing but a start."""
    if cells[cell, HEAD] < 0:
        cells[cell, HEAD] = 0
        cells[cell, HEAD_MAX] = start
    elif start > cells[cell, HEAD_MAX]:
        cells[cell, HEAD_MAX] = start


@hot()
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


@kernel()
def enumerate_outs(nodes, st, outs, stack, path, matches, places, write):
    """Write the complex events of the roots in `outs` ([CORE] Appendix B.1), or only count them.

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
    difference is better, with LAST the one that holds the greatest ([CEL] §4). Walks down from the greatest
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
    before = np.int64(NIL)
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
def insert_by_start(nodes, cells, entries, st, cell, node, start, before):
    """`insert_run` for BEST_EARLIEST: a run that starts earlier is better, so only those of one start are compared.

    `before`: an entry with a later start, or NIL, from which on to look. The same for a run that starts no later.
    """
    entry = cells[cell, FIRST] if before < 0 else entries[before, NEXT]
    while entry >= 0 and entries[entry, NODE_MAX] > start:
        before = entry
        entry = entries[entry, NEXT]
    hint = before
    while entry >= 0 and entries[entry, NODE_MAX] == start:
        following = entries[entry, NEXT]
        verdict = compare_marks(nodes, entries[entry, NODE], node, np.int64(BEST_NEXT))
        if verdict > 0:
            return hint
        if verdict == 0:
            before = entry
        else:
            if before < 0:
                cells[cell, FIRST] = following
            else:
                entries[before, NEXT] = following
            entries[entry, NEXT] = NIL
            free_entries(entries, st, entry)
            cells[cell, LENGTH] -= 1
        entry = following
    link_entry(cells, entries, st, cell, before, node, start)
    cells[cell, HEAD] = entries[cells[cell, FIRST], NODE]
    cells[cell, HEAD_MAX] = entries[cells[cell, FIRST], NODE_MAX]
    return hint


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
        for column in (MARK_TO, SKIP_TO):
            if move[column] >= 0:
                drop_dead_entries(cells, entries, st, move[column], low)
        # Sources list their runs from the latest start on, so each is looked for from where the one before went.
        marked_behind = np.int64(NIL)
        skipped_behind = np.int64(NIL)
        for r in range(move[M_FIRST], move[M_FIRST] + move[M_LENGTH]):
            node = runs[r, 0]
            start = runs[r, 1]
            if move[MARK_TO] >= 0 or move[MARK_ACCEPTS]:
                marked = new_node(nodes, st, node, IS_OUTPUT - move[M_LABEL], position, start)
                if move[MARK_TO] >= 0 and order == BEST_EARLIEST:
                    marked_behind = insert_by_start(
                        nodes, cells, entries, st, move[MARK_TO], marked, start, marked_behind
                    )
                elif move[MARK_TO] >= 0:
                    insert_run(nodes, cells, entries, st, move[MARK_TO], marked, start, order)
                if move[MARK_ACCEPTS]:
                    offer(nodes, st, outs, marked, move[M_TAG], order)
            if move[SKIP_ACCEPTS]:
                offer(nodes, st, outs, node, -1 - move[M_TAG], order)
            if move[SKIP_TO] >= 0 and order == BEST_EARLIEST:
                skipped_behind = insert_by_start(nodes, cells, entries, st, move[SKIP_TO], node, start, skipped_behind)
            elif move[SKIP_TO] >= 0:
                insert_run(nodes, cells, entries, st, move[SKIP_TO], node, start, order)
            if move[MARK_TO] == move[SKIP_TO]:
                marked_behind = np.int64(NIL)
                skipped_behind = np.int64(NIL)
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
                push_heap(heap, st[DEPTH], nodes[outs[i, 0] & mask, MAX], outs[i, 0], -2 - i, np.int64(0))
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
def gather_events(rows, classes, positions, keys, lows, keeps, events):
    """events[i] gets what the evaluation reads of row rows[i] of a batch; `lows` and `keeps` are by i.

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


@kernel()
def run_classes(
    events, width, nodes, cells, entries, st, checks, init_from, init, affected_from, affected, known, floors, moves,
    outs, stack, path, matches, places, runs, heap, links, write, order, limit, consume,
):  # fmt: skip
    """Algorithm 1 over a batch for an automaton without registers, touching only the states that move.

    `events`: int64, (n, EVENT_COLUMNS). State s of partition p has cell `p * width + s`. `init` (int32, (i, 5), those
    of class c from `init_from[c]` to `init_from[c + 1]`) and `affected` (int32, (k, 6), likewise) are the deterministic
    transitions: the latter's state, then target, acceptance and label of the marking one, target and acceptance of the
    skipping one. `known` (bool, (states,)) says whose transitions are there. `floors` (int64, (partitions,)): what
    CONSUME BY PARTITION left alive. `limit`: 0 for none.
    Goes on from `st[ROW]`, so the caller mends what the status names and calls again.
    """
    status = finish_event(nodes, st, outs, stack, path, matches, places, heap, links, write, order, limit)
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
        if consume == CONSUME_ANY:
            low = max(low, st[FLOOR])
            keep = max(keep, st[FLOOR])
        elif consume == CONSUME_PARTITION:
            low = max(low, floors[key])
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
        status = apply_planned(nodes, cells, entries, st, checks, moves, count, position, low, keep, outs, runs, order)
        if status != DONE:
            return status
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
                floors[key] = position + 1
            status = finish_event(nodes, st, outs, stack, path, matches, places, heap, links, write, order, limit)
            if status != DONE:
                return status
        if st[UNKNOWN_STATE]:
            return NEED_STATES
    return DONE


@kernel()
def finish_event(nodes, st, outs, stack, path, matches, places, heap, links, write, order, limit):
    """Enumerate what the current event accepts: all of it, with LIMIT the most recent, or only that there is some."""
    if order == ENDS:
        return write_end(st, outs, matches, write)
    if heap is not None:
        return enumerate_recent(nodes, st, outs, heap, links, matches, places, write, limit)
    return enumerate_outs(nodes, st, outs, stack, path, matches, places, write)


@hot()
def apply_planned(nodes, cells, entries, st, checks, moves, count, position, low, dead_before, outs, runs, order):
    """`apply_moves`, `apply_best` or `apply_starts`, once there is room; else the status that asks for it."""
    if order == ENDS:
        apply_starts(cells, st, moves, count, position, low, outs)
        return DONE
    if runs is None:
        status = reserve(nodes, entries, st, checks, position, dead_before, count + 1)
        if status == DONE:
            apply_moves(nodes, cells, entries, st, moves, count, position, low, outs)
        return status
    status = reserve_runs(nodes, cells, entries, st, checks, moves, count, position, dead_before, runs, outs)
    if status == DONE:
        apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order)
    return status


@kernel()
def run_moves(
    nodes, cells, entries, st, checks, moves, outs, stack, path, matches, places, runs, heap, links, count, position,
    low, dead_before, write, order, limit,
):  # fmt: skip
    """One event whose moves the caller worked out (an automaton with registers).

    `st[ROW]` is 0 before and 1 once the moves are applied.
    """
    if st[ROW] == 0:
        status = apply_planned(
            nodes, cells, entries, st, checks, moves, count, position, low, dead_before, outs, runs, order
        )
        if status != DONE:
            return status
        st[ROW] = 1
    return finish_event(nodes, st, outs, stack, path, matches, places, heap, links, write, order, limit)


# Guards in the kernel
# --------------------
# A *configuration* is a set of states of the automaton (a run is in all of them at once) and the values of registers,
# of one partition; each has a cell, and the runs that agree on it hang off that cell. Registers hold codes: int64 that
# compare like the values they stand for. Of a side of a comparison one code is kept where many values were taken, since
# one decides: the greatest or the smallest for an order, and for `=` two different ones are as good as NULL. The states
# of one configuration share their registers; where two ways to take an event leave registers that differ although both
# are still needed, one configuration is not enough, and NEED_SETS says so.
#
# What the registers hold is a *row*. Where an event has several values at once (the mappings of a graph pattern), a
# configuration holds a set of rows, and a transition leads from the set to that of all rows that its tests let pass,
# for any row before and any value; it fires if there is one. The first row, in lexicographic order, stands in `confs`,
# the others are a list in `held`. Usually there is one, and `group_arcs` looks no further.

NOTHING = -(1 << 63)  # nothing was taken or bound: all tests hold
UNKNOWN = NOTHING + 1  # NULL, or an error: none holds

# symbols of tests
EQUAL = 0
DIFFERENT = 1
LESS = 2
AT_MOST = 3
GREATER = 4
AT_LEAST = 5
STRICT = 8  # added to a symbol: not where there is nothing to compare

# rules of what to keep of an old code and a new one
KEEP_SAME = 0  # two different ones are UNKNOWN
KEEP_ONE = 1  # two different ones are a CLASH
KEEP_GREATEST = 2
KEEP_LEAST = 3
KEEP_NEW = 4  # unless there is none

# columns of `ops`, what a transition does to the registers
OP = 0
REGISTER = 1
COLUMN = 2
SYMBOL = 3
TEST = 0  # go on only if `register symbol column`
BOTH = 1  # the same of two columns
KEEP = 2
DROP = 3
UNLESS = 4  # go on only if one of the tests in the next REGISTER rows does not hold
EACH = 5  # what follows, up to the next EACH, is done for the event's own values and for COLUMN others of `extras`,
# from the one on whose number is in the column REGISTER
ASK = 6  # go on only if question REGISTER, in the next COLUMN rows, has the answer yes; LENIENT ones have where
# something was not taken or bound

# rows of a question, told apart from operations: what it is about, and a program in postfix notation that may decide it
HELD = 16  # the register REGISTER
GIVEN = 17  # the column COLUMN
EITHER = 18  # the column, or the register where that holds nothing
ADD = 19
SUBTRACT = 20
MULTIPLY = 21
DIVIDE = 22
NEGATE = 23
ABSOLUTE = 24
CONSTANT = 25  # a double, its bits in REGISTER (low) and COLUMN
COMPARE = 26  # of two numbers, by SYMBOL
NOT = 27
AND = 28
OR = 29

# what HELD, GIVEN and EITHER are for
NAMED = 0  # part of what the question is about
NUMBER = 1  # an operand: a code in the order of doubles, close to the value

LENIENT = 1
STACK = 32  # how high the stack of programs may grow
ULP = 1.2e-16  # more than half the distance between doubles, relatively
TINY = 1e-300
HUGE = 9e18  # from where on a sum of whole numbers may be too great for a language

# columns of `arcs`, the automaton's transitions
ARC_LABEL = 0  # or -1: does not mark
ARC_TARGET = 1
ARC_OTHERWISE = 2
ARC_OPS = 3
ARC_OPS_END = 4
ARC_MEMBER = 5  # the state it leaves

# columns of `movers`, the sets of states that may move on a class
MOVER = 0
ARCS = 1  # of `able`
ARCS_END = 2
REACH = 3  # which configurations of the set can move: ALL_OF_THEM, or by its index
ALL_OF_THEM = 0
SAME = 1  # register equal to the event's value
BELOW = 2  # register less than it (or equal)
ABOVE = 3
LOOKED_UP = 4  # the column that is looked up
LOOKED_EACH = 5  # where that is one of several: the columns of its EACH, else -1
LOOKED_FIRST = 6
ONLY_ENDS = 7  # runs of the set that move complete and do not go on

# columns of `confs`, one row per cell; the registers follow
CONF_KEY = 0  # partition
CONF_STATE = 1  # number of the set of states, or NIL: the cell is free
CONF_CHAIN = 2  # next of the same hash; next free cell
CONF_NEXT = 3  # of the same partition and set of states
CONF_BEFORE = 4
CONF_EQUAL = 5  # next of the same hash of indexed value
CONF_LEVELS = 6  # height in the skip list
CONF_TARGET = 7  # the row of the batch at which a move last led to it
CONF_ROWS = 8  # rows it holds
CONF_MORE = 9  # the second of them, in `held`
CONF_HASH = 10
CONF_VALUE = 11  # what it is indexed by: the same in all rows, or NOTHING
REGISTERS = 12

# columns of `held`; the registers follow
HELD_NEXT = 0
HELD_REGISTERS = 1

# columns of `groups`, what a configuration does under one label; the registers follow, then those it accepts with
GROUP_LABEL = 0
GROUP_STATES = 1  # bits of the states reached
GROUP_ALIVE = 2  # bits of the registers that some of them needs
GROUP_ACCEPTS = 3
GROUP_FIRST = 4  # where its rows are in `sets`, if there are several, and how many
GROUP_ROWS = 5
GROUP_TAKEN = 6  # likewise those it accepts with
GROUP_TAKEN_ROWS = 7
GROUP_REGISTERS = 8



class Automaton(NamedTuple):
    """What transitions do, see `run_guarded`."""

    able: np.ndarray
    arcs: np.ndarray
    ops: np.ndarray
    alive: np.ndarray
    outputs: int
    known: np.ndarray


class Configurations(NamedTuple):
    """The configurations and how they are found."""

    confs: np.ndarray
    table: np.ndarray
    heads: np.ndarray
    equals: np.ndarray
    links: np.ndarray
    tops: np.ndarray
    indexed: np.ndarray


LEVELS = 8
REJECT = -1
CLASH = 2
MANY = 3

# more slots of `st`
CONF_FREE = 24
CONF_COUNT = 25
SWEEP_AT = 26
RANDOM = 27
ACCEPTED = 28  # rows of `accepted` in use
ANSWERS = 29  # and of `answers`
HELD_FREE = 30  # first free row of `held`
HELD_LEFT = 31  # how many there are

# more statuses
GROW_MOVES = 8
GROW_CELLS = 9
NEED_SETS = 10
GROW_ACCEPTED = 11
GROW_HELD = 12
GROW_SETS = 13
NEED_ANSWERS = 14
IN_SETS = -100


@hot()
def admits(symbol, left, right):
    """Whether `left symbol right` is known to hold, or has nothing to compare."""
    if left == NOTHING or right == NOTHING:
        return symbol < STRICT
    symbol = symbol & 7
    if left == UNKNOWN or right == UNKNOWN:
        return False
    if symbol == EQUAL:
        return left == right
    if symbol == DIFFERENT:
        return left != right
    if symbol == LESS:
        return left < right
    if symbol == AT_MOST:
        return left <= right
    if symbol == GREATER:
        return left > right
    return left >= right


@hot()
def remember(registers, at, rule, value):
    """Take `value` into a register by a rule; CLASH if one code does not do."""
    old = registers[at]
    if value == NOTHING:
        return DONE
    if old in (NOTHING, value) or rule == KEEP_NEW:
        registers[at] = value
    elif rule == KEEP_ONE:
        return CLASH
    elif old == UNKNOWN or value == UNKNOWN or rule == KEEP_SAME:
        registers[at] = UNKNOWN
    elif rule == KEEP_GREATEST:
        registers[at] = max(old, value)
    else:
        registers[at] = min(old, value)
    return DONE


@hot()
def double_of(code):
    """The double that a code stands for, of those in the order of doubles."""
    return np.int64(code if code >= 0 else code ^ 0x7FFFFFFFFFFFFFFF).view(np.float64)


@hot()
def operand_of(ops, o, values, row):
    """The code that a row of a question names."""
    code = NOTHING if ops[o, OP] == HELD else values[ops[o, COLUMN]]
    if code == NOTHING and ops[o, OP] != GIVEN:
        code = row[ops[o, REGISTER]]
    return code


@hot()
def compared(symbol, left, left_off, right, right_off):
    """1, 0, or -1 where the numbers are too close to say: whether `left symbol right`, each that far off at most."""
    gap = left - right
    if not abs(gap) > left_off + right_off + abs(gap) * ULP + TINY:
        return -1
    if symbol in (EQUAL, DIFFERENT):
        return symbol
    if symbol in (LESS, AT_MOST):
        return 1 if gap < 0 else 0
    return 1 if gap > 0 else 0


@kernel()
def decide(ops, first, last, values, row, stack):
    """Run the program of a question: 1, 0, or -1 where it has none or cannot say.

    `stack` (float64, (2, STACK)) holds numbers with a bound of their distance from what any of a language's
    arithmetics makes of exact operands: doubles, decimals, whole numbers. A truth is 1, 0 or -1.
    """
    depth = 0
    for o in range(first, last):
        kind = ops[o, OP]
        if kind <= EITHER:
            if ops[o, SYMBOL] == NAMED:
                continue
            code = operand_of(ops, o, values, row)
            value = double_of(code) if code > UNKNOWN else 0.0
            stack[0, depth] = value
            stack[1, depth] = abs(value) * 4 * ULP if code > UNKNOWN else np.inf
            depth += 1
        elif kind == CONSTANT:
            bits = (np.int64(ops[o, COLUMN]) << 32) | (np.int64(ops[o, REGISTER]) & 0xFFFFFFFF)
            value = np.int64(bits).view(np.float64)
            stack[0, depth] = value
            stack[1, depth] = abs(value) * 4 * ULP
            depth += 1
        elif kind == NEGATE:
            stack[0, depth - 1] = -stack[0, depth - 1]
        elif kind == ABSOLUTE:
            stack[0, depth - 1] = abs(stack[0, depth - 1])
        elif kind == NOT:
            if stack[0, depth - 1] >= 0:
                stack[0, depth - 1] = 1 - stack[0, depth - 1]
        else:
            depth -= 1
            a = stack[0, depth - 1]
            b = stack[0, depth]
            a_off = stack[1, depth - 1]
            b_off = stack[1, depth]
            off = 0.0
            if kind == COMPARE:
                a = compared(ops[o, SYMBOL], a, a_off, b, b_off)
            elif kind == AND:
                a = 0.0 if a == 0 or b == 0 else min(a, b)
            elif kind == OR:
                a = 1.0 if a == 1 or b == 1 else min(a, b)
            else:
                if kind == ADD:
                    off = a_off + b_off
                    a = a + b
                elif kind == SUBTRACT:
                    off = a_off + b_off
                    a = a - b
                elif kind == MULTIPLY:
                    off = abs(a) * b_off + abs(b) * a_off + a_off * b_off
                    a = a * b
                elif abs(b) > 2 * b_off:
                    off = 2 * (a_off + abs(a / b) * b_off) / abs(b)
                    a = a / b
                else:
                    off = np.inf
                off += abs(a) * 2 * ULP + TINY if abs(a) < HUGE else np.inf
            stack[0, depth - 1] = a
            stack[1, depth - 1] = off
    return int(stack[0, 0]) if depth == 1 else -1


@hot()
def question_slot(memo, question):
    """The slot of a question in the table of answers, or the free one where it belongs."""
    hashed = mixed(question[0], 3)
    for r in range(2, question.shape[0]):
        hashed = mixed(hashed, question[r])
    slot = hashed & (memo.shape[0] - 1)
    while memo[slot, 0] != 0:
        same = memo[slot, 0] == question[0]
        for r in range(2, question.shape[0]):
            same = same and memo[slot, r] == question[r]
        if same:
            break
        slot = (slot + 1) & (memo.shape[0] - 1)
    return slot


@kernel()
def remember_answers(memo, questions):
    """Put questions with their answers (see `granted`) into the table, which has room for them."""
    for i in range(questions.shape[0]):
        slot = question_slot(memo, questions[i])
        for r in range(questions.shape[1]):
            memo[slot, r] = questions[i, r]


@kernel()
def granted(ops, o, values, row, memo, questions, stack):
    """Whether the question in row `o` of `ops` has the answer yes, by its program or by `memo`. If neither says so, it
    is noted in `questions`, and the answer is no for now.

    `memo` (int64, (slots, 2 + codes)): the question's number from 1 on, or 0 for a free slot, its answer, and what it
    is about. `questions` likewise, from row 1 on; [0, 0] says how many. Where there is no room for more, they come up
    again.
    """
    last = o + 1 + ops[o, COLUMN]
    if ops[o, SYMBOL] == LENIENT:
        for i in range(o + 1, last):
            if ops[i, OP] <= EITHER and operand_of(ops, i, values, row) == NOTHING:
                return True
    found = decide(ops, o + 1, last, values, row, stack)
    if found >= 0:
        return found > 0
    count = questions[0, 0]
    if count + 1 >= questions.shape[0]:
        return False
    question = questions[count + 1]
    question[0] = ops[o, REGISTER] + 1
    question[1] = 0
    width = 2
    for i in range(o + 1, last):
        if ops[i, OP] <= EITHER and ops[i, SYMBOL] == NAMED:
            question[width] = operand_of(ops, i, values, row)
            width += 1
    for r in range(width, question.shape[0]):
        question[r] = NOTHING
    slot = question_slot(memo, question)
    if memo[slot, 0] != 0:
        return memo[slot, 1] != 0
    questions[0, 0] = count + 1
    return False


@inlined()
def follow(ops, first, last, values, row, memo, questions, stack):
    """Do the operations to a row of registers: 1, 0 where a test fails, REJECT where the transition must not fire,
    CLASH, or MANY at an EACH of several values."""
    o = first
    while o < last:
        kind = ops[o, OP]
        if kind == UNLESS:
            stop = o + ops[o, REGISTER]
            holds = True
            while o < stop:
                o += 1
                if memo is not None and ops[o, OP] == ASK:
                    holds = holds and granted(ops, o, values, row, memo, questions, stack)
                    o += ops[o, COLUMN]
                    continue
                left = row[ops[o, REGISTER]] if ops[o, OP] == TEST else values[ops[o, REGISTER]]
                holds = holds and admits(ops[o, SYMBOL], left, values[ops[o, COLUMN]])
            if holds:
                return REJECT
        elif memo is not None and kind == ASK:
            if not granted(ops, o, values, row, memo, questions, stack):
                return 0
            o += ops[o, COLUMN]
        elif kind == TEST:
            if not admits(ops[o, SYMBOL], row[ops[o, REGISTER]], values[ops[o, COLUMN]]):
                return 0
        elif kind == BOTH:
            if not admits(ops[o, SYMBOL], values[ops[o, REGISTER]], values[ops[o, COLUMN]]):
                return 0
        elif kind == KEEP:
            if remember(row, ops[o, REGISTER], ops[o, SYMBOL], values[ops[o, COLUMN]]) == CLASH:
                return CLASH
        elif kind == DROP:
            row[ops[o, REGISTER]] = NOTHING
        elif values[ops[o, COLUMN]] != 0:
            return MANY
        o += 1
    return 1


@hot()
def mixed(hashed, value):
    """One step of a hash."""
    hashed = (hashed ^ value) * 0x9E3779B97F4A7C1
    return hashed ^ (hashed >> 29)


@hot()
def hash_of(key, state, registers, sets, first, rows):
    """Hash of a configuration whose rows are `registers` and, from the second on, `sets[first + 1 : first + rows]`."""
    hashed = mixed(key, state)
    for r in range(registers.shape[0]):
        hashed = mixed(hashed, registers[r])
    if sets is not None:
        for i in range(1, rows):
            for r in range(registers.shape[0]):
                hashed = mixed(hashed, sets[first + i, r])
    return hashed


@hot()
def equal_slot(key, state, value, table):
    """Slot of an indexed value in the chained hash table of the equality index."""
    return mixed(mixed(mixed(key, state), value), 7) & (table.shape[0] - 1)


@kernel()
def skip_path(links, tops, confs, bucket, value, cell, path):
    """path[level]: the last cell before (value, cell) in a bucket's skip list, NIL for its head. Expected O(log n)."""
    at = NIL
    for i in range(LEVELS):
        level = LEVELS - 1 - i
        while True:
            following = tops[bucket, level] if at < 0 else links[at, level]
            if following < 0:
                break
            other = confs[following, CONF_VALUE]
            if other > value or (other == value and following >= cell):
                break
            at = following
        path[level] = at


@kernel()
def enter(configurations, st, cell, path):
    """Put a new configuration into the table, its state's list, and its state's index."""
    confs, table, heads, equals, links, tops, index = configurations
    key = confs[cell, CONF_KEY]
    state = confs[cell, CONF_STATE]
    slot = confs[cell, CONF_HASH] & (table.shape[0] - 1)
    confs[cell, CONF_CHAIN] = table[slot]
    table[slot] = cell
    bucket = key * index.shape[0] + state
    confs[cell, CONF_BEFORE] = NIL
    confs[cell, CONF_NEXT] = heads[bucket]
    if heads[bucket] >= 0:
        confs[heads[bucket], CONF_BEFORE] = cell
    heads[bucket] = cell
    if index[state, 0] == SAME:
        slot = equal_slot(key, state, confs[cell, CONF_VALUE], equals)
        confs[cell, CONF_EQUAL] = equals[slot]
        equals[slot] = cell
    elif index[state, 0] != ALL_OF_THEM:
        x = st[RANDOM]
        x = (x * 2862933555777941757 + 3037000493) & 0x7FFFFFFFFFFFFFFF
        st[RANDOM] = x
        height = 1
        x = x >> 20
        while height < LEVELS and x & 3 == 0:
            height += 1
            x = x >> 2
        confs[cell, CONF_LEVELS] = height
        skip_path(links, tops, confs, bucket, confs[cell, CONF_VALUE], cell, path)
        for level in range(height):
            before = path[level]
            if before < 0:
                links[cell, level] = tops[bucket, level]
                tops[bucket, level] = cell
            else:
                links[cell, level] = links[before, level]
                links[before, level] = cell


@kernel()
def leave_all(configurations, held, st, cell, path):
    """The opposite of `enter`; the cell becomes free."""
    confs, table, heads, equals, links, tops, index = configurations
    key = confs[cell, CONF_KEY]
    state = confs[cell, CONF_STATE]
    slot = confs[cell, CONF_HASH] & (table.shape[0] - 1)
    if table[slot] == cell:
        table[slot] = confs[cell, CONF_CHAIN]
    else:
        at = table[slot]
        while confs[at, CONF_CHAIN] != cell:
            at = confs[at, CONF_CHAIN]
        confs[at, CONF_CHAIN] = confs[cell, CONF_CHAIN]
    bucket = key * index.shape[0] + state
    before = confs[cell, CONF_BEFORE]
    following = confs[cell, CONF_NEXT]
    if before < 0:
        heads[bucket] = following
    else:
        confs[before, CONF_NEXT] = following
    if following >= 0:
        confs[following, CONF_BEFORE] = before
    if index[state, 0] == SAME:
        slot = equal_slot(key, state, confs[cell, CONF_VALUE], equals)
        if equals[slot] == cell:
            equals[slot] = confs[cell, CONF_EQUAL]
        else:
            at = equals[slot]
            while confs[at, CONF_EQUAL] != cell:
                at = confs[at, CONF_EQUAL]
            confs[at, CONF_EQUAL] = confs[cell, CONF_EQUAL]
    elif index[state, 0] != ALL_OF_THEM:
        skip_path(links, tops, confs, bucket, confs[cell, CONF_VALUE], cell, path)
        for level in range(confs[cell, CONF_LEVELS]):
            before = path[level]
            if before < 0:
                tops[bucket, level] = links[cell, level]
            else:
                links[before, level] = links[cell, level]
    if held is not None:
        more = confs[cell, CONF_MORE]
        while more >= 0:
            following = held[more, HELD_NEXT]
            held[more, HELD_NEXT] = st[HELD_FREE]
            st[HELD_FREE] = more
            st[HELD_LEFT] += 1
            more = following
    confs[cell, CONF_MORE] = NIL
    confs[cell, CONF_STATE] = NIL
    confs[cell, CONF_CHAIN] = st[CONF_FREE]
    st[CONF_FREE] = cell
    st[CONF_COUNT] -= 1


@hot()
def holds_rows(confs, held, cell, registers, sets, first, rows):
    """Whether a configuration holds these rows; see `hash_of`."""
    if confs[cell, CONF_ROWS] != rows:
        return False
    for r in range(registers.shape[0]):
        if confs[cell, REGISTERS + r] != registers[r]:
            return False
    if held is not None:
        more = confs[cell, CONF_MORE]
        for i in range(1, rows):
            for r in range(registers.shape[0]):
                if held[more, HELD_REGISTERS + r] != sets[first + i, r]:
                    return False
            more = held[more, HELD_NEXT]
    return True


@inlined()
def find_cell(configurations, held, st, key, state, registers, sets, first, rows, path):
    """The cell of a configuration, given one if it has none; the caller has made sure of a free one, and of as many
    rows of `held`."""
    confs, table, index = configurations.confs, configurations.table, configurations.indexed
    hashed = hash_of(key, state, registers, sets, first, rows)
    cell = table[hashed & (table.shape[0] - 1)]
    while cell >= 0:
        same = confs[cell, CONF_KEY] == key and confs[cell, CONF_STATE] == state
        if same and holds_rows(confs, held, cell, registers, sets, first, rows):
            confs[cell, CONF_TARGET] = st[ROW]
            return cell
        cell = confs[cell, CONF_CHAIN]
    cell = st[CONF_FREE]
    st[CONF_FREE] = confs[cell, CONF_CHAIN]
    st[CONF_COUNT] += 1
    confs[cell, CONF_KEY] = key
    confs[cell, CONF_STATE] = state
    confs[cell, CONF_TARGET] = st[ROW]
    confs[cell, CONF_HASH] = hashed
    confs[cell, CONF_ROWS] = rows
    confs[cell, CONF_MORE] = NIL
    for r in range(registers.shape[0]):
        confs[cell, REGISTERS + r] = registers[r]
    value = registers[index[state, 1]] if index[state, 0] != ALL_OF_THEM else NOTHING
    if held is not None:
        for i in range(rows - 1, 0, -1):
            row = st[HELD_FREE]
            st[HELD_FREE] = held[row, HELD_NEXT]
            st[HELD_LEFT] -= 1
            held[row, HELD_NEXT] = confs[cell, CONF_MORE]
            confs[cell, CONF_MORE] = row
            for r in range(registers.shape[0]):
                held[row, HELD_REGISTERS + r] = sets[first + i, r]
            if sets[first + i, index[state, 1]] != value:
                value = NOTHING
    confs[cell, CONF_VALUE] = value
    enter(configurations, st, cell, path)
    return cell


@hot()
def state_number(known, states):
    """The number of a set of states given as bits; -1 if it has none. `known`: int64 (slots, 2), bits and number."""
    slot = mixed(states, 11) & (known.shape[0] - 1)
    while known[slot, 0] != 0:
        if known[slot, 0] == states:
            return known[slot, 1]
        slot = (slot + 1) & (known.shape[0] - 1)
    return -1


@hot()
def find_group(groups, count, label):
    """The group of a label among the first `count`, or a new one behind them."""
    g = 0
    while g < count and groups[g, GROUP_LABEL] != label:
        g += 1
    if g == count:
        group = groups[g]
        for i in range(GROUP_REGISTERS):
            group[i] = 0
        group[GROUP_LABEL] = label
        group[GROUP_ROWS] = 1
        group[GROUP_TAKEN_ROWS] = 1
        for i in range(GROUP_REGISTERS, group.shape[0]):
            group[i] = NOTHING
    return g


@inlined()
def group_arcs(registers, first, last, automaton, values, groups, out, memo, questions, stack):
    """What a configuration of one row does at an event, grouped by label: how many groups, or minus a status, or
    IN_SETS where the event has several values.

    `able[first:last]` are the transitions of its states on the event's class, state by state, `otherwise` ones last:
    they fire where no other one of their state does, guards included.
    """
    able, arcs, ops, alive, outputs = automaton.able, automaton.arcs, automaton.ops, automaton.alive, automaton.outputs
    width = registers.shape[0]
    count = 0
    member = -1
    fired = False
    for a in range(first, last):
        arc = arcs[able[a]]
        if arc[ARC_MEMBER] != member:
            member = arc[ARC_MEMBER]
            fired = False
        if arc[ARC_OTHERWISE] and fired:
            continue
        for r in range(width):
            out[r] = registers[r]
        status = follow(ops, arc[ARC_OPS], arc[ARC_OPS_END], values, out, memo, questions, stack)
        if status == MANY:
            return IN_SETS
        if status == CLASH:
            return -NEED_SETS
        if status != 1:
            continue
        if not arc[ARC_OTHERWISE]:
            fired = True
        g = find_group(groups, count, arc[ARC_LABEL])
        count = max(count, g + 1)
        group = groups[g]
        target = arc[ARC_TARGET]
        needed = outputs if target < 0 else alive[target]
        have = group[GROUP_ALIVE]
        at = GROUP_REGISTERS
        if target < 0:
            have = outputs if group[GROUP_ACCEPTS] else 0
            at += width
        for r in range(width):
            if needed >> r & 1:
                if have >> r & 1 and group[at + r] != out[r]:
                    return -NEED_SETS
                group[at + r] = out[r]
        if target < 0:
            group[GROUP_ACCEPTS] = 1
        else:
            group[GROUP_STATES] |= 1 << target
            group[GROUP_ALIVE] = have | needed
    return count


@hot()
def compare_rows(sets, i, j):
    """-1, 0 or 1: the order of two rows of `sets`."""
    for r in range(sets.shape[1]):
        if sets[i, r] != sets[j, r]:
            return -1 if sets[i, r] < sets[j, r] else 1
    return 0


@kernel()
def project_rows(sets, source, count, target, needed):
    """sets[target:] gets the rows of sets[source : source + count] without the registers that are not `needed` (bits),
    sorted and each once: how many. `target` is not behind `source`, or they do not overlap. Expected O(n^1.3)."""
    for i in range(count):
        for r in range(sets.shape[1]):
            sets[target + i, r] = sets[source + i, r] if needed >> r & 1 else NOTHING
    gap = count // 2
    while gap > 0:
        for i in range(target + gap, target + count):
            j = i
            while j - gap >= target and compare_rows(sets, j - gap, j) > 0:
                for r in range(sets.shape[1]):
                    sets[j - gap, r], sets[j, r] = sets[j, r], sets[j - gap, r]
                j -= gap
        gap //= 2
    kept = 0
    for i in range(count):
        if kept == 0 or compare_rows(sets, target + kept - 1, target + i) != 0:
            for r in range(sets.shape[1]):
                sets[target + kept, r] = sets[target + i, r]
            kept += 1
    return kept


@hot()
def same_rows(sets, i, rows, j, others):
    """Whether two sets of rows, both sorted, are equal."""
    same = rows == others
    n = 0
    while same and n < rows:
        same = compare_rows(sets, i + n, j + n) == 0
        n += 1
    return same


@kernel()
def join_rows(sets, first, rows, have, second, others, needed):
    """Join two sets of rows, over the registers `have` and `needed` (bits), behind the second one in `sets`: how many
    rows, -NEED_SETS where one of either set has no partner, or -GROW_SETS."""
    common = have & needed
    at = second + others
    if at + rows + others >= sets.shape[0]:
        return -GROW_SETS
    fewer = project_rows(sets, first, rows, at, common)
    same = project_rows(sets, second, others, at + fewer, common)
    if not same_rows(sets, at, fewer, at + fewer, same):
        return -NEED_SETS
    found = np.int64(0)
    for i in range(first, first + rows):
        for j in range(second, second + others):
            if at + found >= sets.shape[0]:
                return -GROW_SETS
            agree = True
            for r in range(sets.shape[1]):
                agree = agree and (not common >> r & 1 or sets[i, r] == sets[j, r])
                sets[at + found, r] = sets[i, r] if have >> r & 1 else sets[j, r]
            found += agree
    return project_rows(sets, at, found, at, have | needed)


@kernel()
def fire_each(ops, first, last, values, extras, sets, count, top, memo, questions, stack):
    """A transition, from the rows sets[:count]: (where in `sets`, from `top` on, how many), or (0, minus a status)."""
    source = 0
    while first < last and count > 0:
        others = 0
        more = 0
        if ops[first, OP] == EACH:
            others = values[ops[first, COLUMN]]
            more = values[ops[first, REGISTER]]
            first += 1
        stop = first
        while stop < last and ops[stop, OP] != EACH:
            stop += 1
        found = 0
        for i in range(count):
            for j in range(others + 1):
                if top + found >= sets.shape[0]:
                    return 0, -GROW_SETS
                row = sets[top + found]
                for r in range(row.shape[0]):
                    row[r] = sets[source + i, r]
                given = values if j == 0 else extras[more + j - 1]
                status = follow(ops, first, stop, given, row, memo, questions, stack)
                if status == REJECT:
                    return 0, 0
                if status == CLASH:
                    return 0, -NEED_SETS
                found += status
        source = top
        count = found
        top += found
        first = stop
    return source, count


@kernel()
def group_sets(
    registers, more, rows, held, first, last, automaton, values, extras, groups, sets, memo, questions, stack
):  # fmt: skip
    """As `group_arcs`, of a configuration of any number of rows, at an event of any number of values.

    Where states of one group need different registers, their rows must agree on those that both need, else NEED_SETS;
    the group then holds the join of them, which either finds its own rows in.
    """
    able, arcs, ops, alive, outputs = automaton.able, automaton.arcs, automaton.ops, automaton.alive, automaton.outputs
    width = registers.shape[0]
    if rows >= sets.shape[0]:
        return -GROW_SETS
    for i in range(rows):
        for r in range(width):
            sets[i, r] = registers[r] if i == 0 else held[more, HELD_REGISTERS + r]
        if i > 0:
            more = held[more, HELD_NEXT]
    top = rows
    count = 0
    member = -1
    fired = False
    for a in range(first, last):
        arc = arcs[able[a]]
        if arc[ARC_MEMBER] != member:
            member = arc[ARC_MEMBER]
            fired = False
        if arc[ARC_OTHERWISE] and fired:
            continue
        source, found = fire_each(
            ops, arc[ARC_OPS], arc[ARC_OPS_END], values, extras, sets, rows, top, memo, questions, stack
        )
        if found < 0:
            return found
        if found == 0:
            continue
        if not arc[ARC_OTHERWISE]:
            fired = True
        g = find_group(groups, count, arc[ARC_LABEL])
        count = max(count, g + 1)
        group = groups[g]
        target = arc[ARC_TARGET]
        needed = outputs if target < 0 else alive[target]
        if top + found >= sets.shape[0]:
            return -GROW_SETS
        found = project_rows(sets, source, found, top, needed)
        if target < 0:
            if not group[GROUP_ACCEPTS]:
                group[GROUP_ACCEPTS] = 1
                group[GROUP_TAKEN] = top
                group[GROUP_TAKEN_ROWS] = found
                top += found
            elif not same_rows(sets, top, found, group[GROUP_TAKEN], group[GROUP_TAKEN_ROWS]):
                return -NEED_SETS
            continue
        if group[GROUP_STATES] == 0:
            group[GROUP_FIRST] = top
            group[GROUP_ROWS] = found
            group[GROUP_ALIVE] = needed
            top += found
        elif group[GROUP_ALIVE] == needed:
            if not same_rows(sets, top, found, group[GROUP_FIRST], group[GROUP_ROWS]):
                return -NEED_SETS
        else:
            joined = join_rows(sets, group[GROUP_FIRST], group[GROUP_ROWS], group[GROUP_ALIVE], top, found, needed)
            if joined < 0:
                return joined
            group[GROUP_FIRST] = top + found
            group[GROUP_ROWS] = joined
            group[GROUP_ALIVE] |= needed
            top += found + joined
        group[GROUP_STATES] |= 1 << target
    for g in range(count):
        for r in range(width):
            groups[g, GROUP_REGISTERS + r] = sets[groups[g, GROUP_FIRST], r]
            groups[g, GROUP_REGISTERS + width + r] = sets[groups[g, GROUP_TAKEN], r]
    return count


@kernel()
def note_answers(st, accepted, answers, group, sets):
    """Keep the rows that a group accepts with: their tag, or NIL where there is no room."""
    rows = group[GROUP_TAKEN_ROWS]
    width = answers.shape[1]
    if st[ACCEPTED] >= accepted.shape[0] or st[ANSWERS] + rows > answers.shape[0]:
        return NIL
    tag = st[ACCEPTED]
    accepted[tag, 0] = st[ANSWERS]
    accepted[tag, 1] = rows
    for i in range(rows):
        for r in range(width):
            if sets is not None and i > 0:
                answers[st[ANSWERS] + i, r] = sets[group[GROUP_TAKEN] + i, r]
            else:
                answers[st[ANSWERS] + i, r] = group[GROUP_REGISTERS + width + r]
    st[ANSWERS] += rows
    st[ACCEPTED] += 1
    return tag


@inlined()
def plan_moves(
    source, key, first, last, automaton, values, extras, configurations, held, st, moves, count, accepted, answers,
    groups, sets, out, path, memo, questions, stack,
):  # fmt: skip
    """Append the moves of one configuration (cell `source`, NIL for a run that starts here) to `moves`.

    Their number afterwards, or minus a status.
    """
    confs = configurations.confs
    outputs = automaton.outputs
    width = out.shape[1]
    registers = confs[source, REGISTERS:] if source >= 0 else out[1]
    if held is None:
        found = group_arcs(registers, first, last, automaton, values, groups, out[0], memo, questions, stack)
    else:
        rows = confs[source, CONF_ROWS] if source >= 0 else 1
        found = IN_SETS
        if rows == 1:
            found = group_arcs(registers, first, last, automaton, values, groups, out[0], memo, questions, stack)
        if found == IN_SETS:
            more = confs[source, CONF_MORE] if source >= 0 else NIL
            found = group_sets(
                registers, more, rows, held, first, last, automaton, values, extras, groups, sets, memo, questions,
                stack,
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


@kernel()
def sweep(cells, entries, configurations, held, st, key, low, path):
    """Free the configurations whose runs are out of the window: of one partition, or of all (key NIL). O(cells)."""
    confs = configurations.confs
    for cell in range(cells.shape[0]):
        if confs[cell, CONF_STATE] < 0 or (key >= 0 and confs[cell, CONF_KEY] != key):
            continue
        if cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low:
            if cells[cell, HEAD] >= 0:
                clear_cell(cells, entries, st, cell)
            leave_all(configurations, held, st, cell, path)
    st[SWEEP_AT] = 2 * st[CONF_COUNT] + 256


@hot()
def follower(confs, links, reach, cell):
    """The configuration after `cell` in the order that `reach` walks them."""
    if reach == SAME:
        return confs[cell, CONF_EQUAL]
    if reach == ALL_OF_THEM:
        return confs[cell, CONF_NEXT]
    return links[cell, 0]


@hot()
def looked_up(mover, values, extras):
    """(what configurations are looked up by, how many other values the event has, the first of them in `extras`).

    Of several values the one that reaches most, for an order; NOTHING if one is.
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


@hot()
def looked_before(mover, values, extras, first, j):
    """Whether the j-th of an event's other values is one of those before it."""
    column = mover[LOOKED_UP]
    found = values[column] == extras[first + j, column]
    for i in range(j):
        found = found or extras[first + i, column] == extras[first + j, column]
    return found


@inlined()
def plan_event(
    c, key, low, values, extras, init_from, movers_from, movers, automaton, cells, entries, configurations, held, st,
    moves, accepted, answers, groups, sets, out, path, memo, questions, stack, order,
):  # fmt: skip
    """The moves of all configurations of one partition at one event: their number, or minus a status.

    Where only ends are asked for and one has been found, those that could but complete are passed over.
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
                    accepted, answers, groups, sets, out, path, memo, questions, stack,
                )  # fmt: skip
                if count < 0:
                    return count
                starting = False
                ended |= only_ends and count > 0 and (moves[count - 1, MARK_ACCEPTS] or moves[count - 1, SKIP_ACCEPTS])
                cell = following
    return count


@inlined()
def free_left(cells, configurations, held, st, moves, count, path):
    """Free the configurations that the moves of an event have left without runs."""
    for i in range(count):
        for column in (SOURCE, MARK_TO, SKIP_TO):
            cell = moves[i, column]
            if cell >= 0 and cells[cell, HEAD] < 0 and configurations.confs[cell, CONF_STATE] >= 0:
                leave_all(configurations, held, st, cell, path)


@kernel()
def run_guarded(
    events, values, extras, init_from, movers_from, movers, able, arcs, ops, alive, outputs, known, index, nodes, cells,
    entries, st, checks, moves, outs, stack, path, matches, places, runs, heap, lists, confs, held, table, heads,
    equals, links, tops, floors, accepted, answers, groups, sets, out, levels, memo, questions, figures, write, order,
    limit, consume, sweep_by_key, budget,
):  # fmt: skip
    """Algorithm 1 over a batch for an automaton whose guards are operations on registers.

    `events`, `floors`, `limit`: as for `run_classes`. `values` (int64, (rows of the batch, columns)): the codes of each
    event, `extras` (likewise) those of its other values. `init_able` (int32, those of class c from `init_from[c]`): the
    transitions of the initial state; `movers` (int32, (k, 8), likewise) the sets of states that may move, `able` their
    transitions. `arcs` (int32, (t, 6)), `ops` (int32, (o, 4)): the automaton; `alive` (int64, (states,)): bits of the
    registers still needed in a state, `outputs` those that matches are told apart by. `known`: the sets of states met
    so far; `index` (int32, (sets, 2)): how the configurations of a set are indexed, and by which register. `accepted`
    (int64, (a, 2)) receives at the tag of a match, one more where the event was not marked, where the rows it was
    accepted with are in `answers` (int64, (b, registers)) and how many, if there are `outputs`. `groups` (int64,
    (labels + 1, 8 + 2 registers)), `sets` (int64, (c, registers)), `out` (int64, (2, registers)) and `levels` (int64,
    (LEVELS,)) are scratch. `memo`, `questions`: see `granted`; `figures` is its stack. Cost: the configurations whose
    transitions on the event's class have guards that hold, or cannot be looked up; of several rows, each with each
    value of the event.
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
            questions, figures, order,
        )  # fmt: skip
        if memo is not None and questions[0, 0] > 0:  # whatever else it came to, answers are missing
            count = np.int64(-NEED_ANSWERS)
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


@kernel()
def rebuild(confs, table, heads, equals, links, tops, index, st, path):
    """Fill emptied tables, lists and indexes anew, and chain the free cells."""
    configurations = Configurations(confs, table, heads, equals, links, tops, index)
    st[CONF_FREE] = NIL
    for i in range(confs.shape[0]):
        cell = confs.shape[0] - 1 - i
        if confs[cell, CONF_STATE] >= 0:
            enter(configurations, st, cell, path)
        else:
            confs[cell, CONF_CHAIN] = st[CONF_FREE]
            st[CONF_FREE] = cell


@kernel()
def note_state(known, states, number):
    """Put a set of states, given as bits, into the table that `state_number` reads; at most half full."""
    slot = mixed(states, 11) & (known.shape[0] - 1)
    while known[slot, 0] != 0:
        slot = (slot + 1) & (known.shape[0] - 1)
    known[slot, 0] = states
    known[slot, 1] = number
