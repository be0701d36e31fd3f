"""Frontiers of single runs, for NEXT and LAST. Enumeration of the most recent starts first, for LIMIT, and of the
earliest start alone.

With NEXT and LAST a cell holds a *frontier* instead of a union list: entries with one run each, the latest start first.
No entry is *beaten*: none has worse marked positions than an entry that starts at the same position or later. HEAD and
HEAD_MAX are those of the first entry, nothing is ever merged, and nodes are paths without unions.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    BEST_EARLIEST,
    BEST_LAST,
    BEST_NEXT,
    BEST_OF_START,
    COUNTED,
    DEPTH,
    DONE,
    END,
    FIRST,
    FLUSH,
    GROW_PATH,
    GROW_RUNS,
    GROW_STACK,
    HEAD,
    HEAD_MAX,
    HOLE,
    IS_BOTTOM,
    IS_OUTPUT,
    IS_PRODUCT,
    LABEL_BITS,
    LEFT,
    LEFT_TO_WRITE,
    LENGTH,
    LINKS,
    LOW,
    M_FIRST,
    M_LABEL,
    M_LENGTH,
    M_TAG,
    MARK_ACCEPTS,
    MARK_TO,
    MATCHES,
    MAX,
    NEEDED,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    OUT,
    OUTS,
    PLACES,
    POS,
    RIGHT,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
    STAY,
)
from spaseq.core.tecs.kernels.structure import (
    clear_cell,
    evict_dead_entries,
    free_entries,
    link_entry,
    new_node,
    reserve,
)


@kernel
def compare_marks(nodes, a, b, order):
    """1 if the marked positions of path `a` are better than those of path `b`, -1 if they are worse, 0 if they are the
    same.

    `a` and `b` are the first nodes of paths without unions. With NEXT the path that has the smallest position of their
    symmetric difference is better, with LAST the path that has the greatest ([CEL] §4). Walks down from the greatest
    positions: O(positions until the paths meet), with LAST only until they differ.
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


@kernel
def insert_run(nodes, cells, entries, st, cell, node, start, order):
    """Adds a run to a cell's frontier, unless an entry beats it, and removes the entries that it beats.

    A beaten run can be left out. Events that complete it also complete the better run, with the same further marks. A
    window that contains the beaten run contains the better one. O(length of the frontier) comparisons.
    """
    before = np.int64(NIL)
    entry = cells[cell, FIRST]
    while entry >= 0 and entries[entry, NODE_MAX] >= start:
        if compare_marks(nodes, entries[entry, NODE], node, order) > 0:
            return
        before = entry
        entry = entries[entry, NEXT]
    # Of the entries just passed, the new run may beat one, with the same start; the loop below removes it too.
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


@kernel
def insert_by_start(nodes, cells, entries, st, cell, node, start, before):
    """`insert_run` for BEST_EARLIEST: a run that starts earlier is better, so only runs of one start are compared.

    `before`: the entry behind which the search begins, which must have a later start; or NIL. Returns such an entry for
    the next run, if that starts at the same position or earlier.
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


@kernel
def offer(nodes, st, outs, node, tag, order):
    """Adds `node`, with its tag, to the roots of this event if none is better, and removes those that it beats. With
    BEST_OF_START adds it to the others."""
    n = st[OUTS]
    if n > 0 and order != BEST_OF_START:
        verdict = compare_marks(nodes, node, outs[0, 0], order)
        if verdict < 0:
            return
        if verdict > 0:
            n = 0
    outs[n, 0] = node
    outs[n, 1] = tag
    st[OUTS] = n + 1


@kernel
def apply_best(nodes, cells, entries, st, moves, count, position, low, outs, runs, order):
    """`apply_moves` under NEXT or LAST: each cell holds a frontier of single runs instead of the structure of all.

    `runs` (int64, (r, 2)) is scratch for the runs of the sources. They are copied first, so that no transition sees the
    effects of another one at the same event. Precondition: `reserve_runs` returned DONE.
    """
    by_start = order in (BEST_EARLIEST, BEST_OF_START)
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
                evict_dead_entries(cells, entries, st, move[column], low)
        # The runs of a source come with the latest start first, so each search begins where the one before ended.
        marked_behind = np.int64(NIL)
        skipped_behind = np.int64(NIL)
        for r in range(move[M_FIRST], move[M_FIRST] + move[M_LENGTH]):
            node = runs[r, 0]
            start = runs[r, 1]
            if move[MARK_TO] >= 0 or move[MARK_ACCEPTS]:
                marked = new_node(nodes, st, node, IS_OUTPUT - move[M_LABEL], position, start)
                if move[MARK_TO] >= 0 and by_start:
                    marked_behind = insert_by_start(
                        nodes, cells, entries, st, move[MARK_TO], marked, start, marked_behind
                    )
                elif move[MARK_TO] >= 0:
                    insert_run(nodes, cells, entries, st, move[MARK_TO], marked, start, order)
                if move[MARK_ACCEPTS]:
                    offer(nodes, st, outs, marked, move[M_TAG], order)
            if move[SKIP_ACCEPTS]:
                offer(nodes, st, outs, node, -1 - move[M_TAG], order)
            if move[SKIP_TO] >= 0 and by_start:
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


@kernel
def reserve_runs(nodes, cells, entries, st, checks, moves, count, position, dead_before, runs, outs):
    """`reserve` for `apply_best`: one node and two entries for each run of the sources."""
    total = count
    for i in range(count):
        if moves[i, SOURCE] >= 0:
            total += cells[moves[i, SOURCE], LENGTH]
    if runs.shape[0] < total + 1 or outs.shape[0] < 2 * total + 2:
        st[NEEDED] = total + 1
        return GROW_RUNS
    return reserve(nodes, entries, st, checks, position, dead_before, total, 0)


@kernel
def push_heap(heap, size, max_start, node, link, depth):
    """Adds a row to the binary heap `heap` (int64, (h, 4)), in which the greatest `max_start` is on top. The row has
    the start, the node, and for the positions on the path to it the last `link` and their number `depth`. O(log
    size)."""
    i = size
    while i > 0 and heap[(i - 1) // 2, 0] < max_start:
        for column in range(4):
            heap[i, column] = heap[(i - 1) // 2, column]
        i = (i - 1) // 2
    heap[i, 0] = max_start
    heap[i, 1] = node
    heap[i, 2] = link
    heap[i, 3] = depth


@kernel
def pop_heap(heap, size):
    """Removes the top row, which is then at `heap[size - 1]`. O(log size)."""
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


CLOSES = -1
OPENS = -2  # and below: less the node of the runs


@hot
def push_link(links, st, value, link):
    """A link behind `link`, with a position or for a product: its row; there is room."""
    made = st[LINKS]
    links[made, 0] = value
    links[made, 1] = link
    st[LINKS] = made + 1
    return made


@hot
def runs_below(links, link):
    """The node of the runs that the last open product on the path to `link` stands on."""
    closed = 0
    while links[link, 0] > OPENS or closed > 0:
        if links[link, 0] <= OPENS:
            closed -= 1
        elif links[link, 0] == CLOSES:
            closed += 1
        link = links[link, 1]
    return OPENS - links[link, 0]


@kernel
def enumerate_recent(nodes, st, outs, heap, links, matches, places, write, limit):
    """Writes at most `limit` complex events of the roots in `outs`, those with the most recent starts first.

    Best-first search by maximum start: `heap` (int64, (h, 4)) has the nodes still to be visited, `links` (int64,
    (l, 2)) the positions on the paths to them. O(log size of the heap) for each node visited; every node visited is on
    the path to a match that is written, or that comes after a more recent one. Returns and continues like
    `enumerate_outs`.

    On the path through a product a link opens it, with the runs that its suffix stands on, and one closes it at the
    HOLE. All suffixes have the maximum start of these runs.
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
            if st[DEPTH] + 2 > heap.shape[0] or st[LINKS] + 2 > links.shape[0]:
                status = GROW_STACK if st[DEPTH] + 2 > heap.shape[0] else GROW_PATH
                push_heap(heap, st[DEPTH], max_start, node, link, depth)
                st[DEPTH] += 1
                return status
            if right >= 0:
                if nodes[row, POS] >= low:
                    push_heap(heap, st[DEPTH], min(nodes[row, POS], max_start), right, link, depth)
                    st[DEPTH] += 1
                node = nodes[row, LEFT]
                continue
            if right == IS_PRODUCT:
                link = push_link(links, st, OPENS - nodes[row, LEFT], link)
                node = nodes[row, POS]
                continue
            size = depth + (1 if right <= IS_OUTPUT else 0)
            if right <= IS_OUTPUT and (nodes[row, LEFT] >= 0 or nodes[row, LEFT] == HOLE):
                link = push_link(links, st, (nodes[row, POS] << bits) | (IS_OUTPUT - right), link)
                depth += 1
                node = nodes[row, LEFT]
                if node == HOLE:
                    node = runs_below(links, link)
                    link = push_link(links, st, CLOSES, link)
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
                    if links[link, 0] >= 0:
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


@kernel
def enumerate_earliest(nodes, st, outs, path, matches, places, write):
    """Writes the complex event of the earliest live start of the roots in `outs`, or only counts it.

    The order is EARLIEST: there is one run a start, and the starts of each cell lie next to each other. Of two lists
    that are united, all starts of one are then earlier than those of the other, so the right child of a union node has
    the earlier ones. The root with the least maximum start has the earliest. O(positions of the match * states).
    Arguments and statuses as of `enumerate_outs`; it begins anew after a status.
    """
    if st[OUTS] == 0:
        return DONE
    mask = nodes.shape[0] - 1
    low = st[LOW]
    bits = st[LABEL_BITS]
    root = -1
    for i in range(st[OUTS]):
        start = nodes[outs[i, 0] & mask, MAX]
        if start >= low and (root < 0 or start < nodes[outs[root, 0] & mask, MAX]):
            root = i
    if root >= 0 and not write:
        st[COUNTED] += 1
    elif root >= 0:
        node = outs[root, 0]
        size = 0
        while True:
            row = node & mask
            right = nodes[row, RIGHT]
            if right >= 0:
                node = right if nodes[row, POS] >= low else nodes[row, LEFT]
                continue
            if right <= IS_OUTPUT:
                if size >= path.shape[0]:
                    return GROW_PATH
                path[size] = (nodes[row, POS] << bits) | (IS_OUTPUT - right)
                size += 1
                if nodes[row, LEFT] >= 0:
                    node = nodes[row, LEFT]
                    continue
            break
        m = st[MATCHES]
        at = st[PLACES]
        if m + 1 >= matches.shape[1] or at + size > places.shape[0]:
            st[NEEDED] = size
            return FLUSH
        for i in range(size):
            places[at + i] = path[size - 1 - i]
        matches[0, m] = nodes[row, MAX]
        matches[1, m] = st[END]
        matches[2, m + 1] = at + size
        matches[3, m] = outs[root, 1]
        st[PLACES] = at + size
        st[MATCHES] = m + 1
    st[OUTS] = 0
    return DONE
