"""Union lists of two entries at most, for nodes that come in any order of their maximum starts.

A list of `structure` has an entry for each maximum start behind its head. Lists stay short there, since runs reach a
cell nearly in the order of their starts. The runs of a range of values (`pools`) do not: a rises and b falls, and each
b brings another maximum start. So here a list has two entries, and further nodes go below them.

Every node of such a list has one *shape*: o, (o, H) or (o, (H, H)). Here o is an output or bottom node, H has the same
shape, and a pair (x, y) is a union with max(x) >= max(y). Such a node is safe (law 4). Two of them are melded as in the
randomised meldable heap of Gambin and Malinowski (1998): at each pair chance chooses the way down. So a node is
inserted with O(log n) new nodes expected, and with one if it starts last. Nodes never change, so every version of a
heap stays readable.

Several nodes of this shape in a row, by descending maximum start, are a *chain*: H or (H, chain). Its output depth is
at most two. A fold of a range has a longer chain below its first node; it is enumerated and never melded.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    FIRST,
    HEAD,
    HEAD_MAX,
    LEFT,
    LENGTH,
    M_FIRST,
    M_HEAD,
    M_LENGTH,
    M_MAX,
    M_NODE,
    MAX,
    MERGED,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    POS,
    RANDOM,
    RIGHT,
)
from spaseq.core.tecs.kernels.structure import (
    clear_cell,
    free_entries,
    link_entry,
    merge,
    new_node,
    set_head,
)


@hot
def is_pair(nodes, node):
    """True if a node below a union is a pair of nodes of the shape, and not one of them."""
    mask = nodes.shape[0] - 1
    return nodes[node & mask, RIGHT] >= 0 and nodes[nodes[node & mask, LEFT] & mask, RIGHT] >= 0


@hot
def draw_bit(st):
    """A random bit."""
    st[RANDOM] = (st[RANDOM] * 2862933555777941757 + 3037000493) & 0x7FFFFFFFFFFFFFFF
    return (st[RANDOM] >> 40) & 1


@kernel
def pair(nodes, st, a, b):
    """A union of two nodes that are safe or chains, in the order of their maximum starts. O(1)."""
    mask = nodes.shape[0] - 1
    a_max = nodes[a & mask, MAX]
    b_max = nodes[b & mask, MAX]
    if a_max >= b_max:
        return new_node(nodes, st, a, b, b_max, a_max)
    return new_node(nodes, st, b, a, a_max, b_max)


@kernel
def meld(nodes, st, a, b, low, path):
    """A node of the shape for the runs of two, both with a maximum start of `low` or later.

    At most 2 * MELD_DEPTH + 3 new nodes. `path`: as of `Pools`. Behind MELD_DEPTH pairs the rest becomes one union
    whatever its depth: no run is lost, and the delay before one grows by a union.
    """
    mask = nodes.shape[0] - 1
    depth = 0
    made = np.int64(NIL)
    while made < 0:
        if nodes[a & mask, MAX] < nodes[b & mask, MAX]:
            a, b = b, a
        right = nodes[a & mask, RIGHT]
        if right < 0 or depth == path.shape[0]:
            made = pair(nodes, st, a, b)
            break
        own = nodes[a & mask, LEFT]
        if nodes[a & mask, POS] < low:  # what is behind it is out of the window
            made = pair(nodes, st, own, b)
            break
        second = np.int64(NIL)
        if is_pair(nodes, right):
            if nodes[right & mask, POS] >= low:
                second = nodes[right & mask, RIGHT]
            right = nodes[right & mask, LEFT]
        if second < 0:
            both = pair(nodes, st, right, b)
            made = new_node(nodes, st, own, both, nodes[both & mask, MAX], nodes[own & mask, MAX])
            break
        if draw_bit(st):
            right, second = second, right
        path[depth, 0] = own
        path[depth, 1] = second
        depth += 1
        a = right
    while depth > 0:
        depth -= 1
        both = pair(nodes, st, made, path[depth, 1])
        own = path[depth, 0]
        made = new_node(nodes, st, own, both, nodes[both & mask, MAX], nodes[own & mask, MAX])
    return made


@kernel
def tie_entries(nodes, entries, st, first, low, path):
    """One node of the shape for the entries behind a head, two at most, and its maximum start; NIL if none is in the
    window. At most 2 * MELD_DEPTH + 3 new nodes."""
    ties = np.int64(NIL)
    latest = np.int64(NIL)
    if first >= 0 and entries[first, NODE_MAX] >= low:
        ties = entries[first, NODE]
        latest = entries[first, NODE_MAX]
        second = entries[first, NEXT]
        if second >= 0 and entries[second, NODE_MAX] >= low:
            ties = meld(nodes, st, ties, entries[second, NODE], low, path)
    return ties, latest


@kernel
def insert_in_heap(nodes, cells, entries, st, cell, node, max_start, low, path):
    """Adds a node of the shape, with a maximum start not after the head's, to a list of two entries at most."""
    cells[cell, MERGED] = NIL
    first = cells[cell, FIRST]
    if first >= 0 and entries[first, NODE_MAX] < low:  # both are out of the window
        free_entries(entries, st, first)
        cells[cell, FIRST] = NIL
        cells[cell, LENGTH] = 0
        first = np.int64(NIL)
    if first < 0:
        link_entry(cells, entries, st, cell, np.int64(NIL), node, max_start)
        return
    into = first
    if max_start < entries[first, NODE_MAX]:
        into = entries[first, NEXT]
        if into < 0:
            link_entry(cells, entries, st, cell, first, node, max_start)
            return
    elif cells[cell, LENGTH] == 1 and max_start > entries[first, NODE_MAX]:
        link_entry(cells, entries, st, cell, np.int64(NIL), node, max_start)
        return
    if entries[into, NODE_MAX] < low:
        entries[into, NODE] = node
        entries[into, NODE_MAX] = max_start
    else:
        entries[into, NODE] = meld(nodes, st, node, entries[into, NODE], low, path)
        entries[into, NODE_MAX] = max(entries[into, NODE_MAX], max_start)


@hot
def add_to_heap(nodes, cells, entries, st, cell, node, max_start, low, path):
    """`structure.add_node` for such lists."""
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
        insert_in_heap(nodes, cells, entries, st, cell, node, max_start, low, path)


@kernel
def add_heap(nodes, cells, entries, st, cell, move, low, path):
    """`structure.add_list` for such lists."""
    if cells[cell, HEAD] >= 0 and cells[cell, HEAD_MAX] < low:
        clear_cell(cells, entries, st, cell)
    if cells[cell, HEAD] >= 0 and cells[cell, HEAD_MAX] >= move[M_MAX]:
        free_entries(entries, st, move[M_FIRST])
        insert_in_heap(nodes, cells, entries, st, cell, move[M_NODE], move[M_MAX], low, path)
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
        insert_in_heap(nodes, cells, entries, st, cell, folded, folded_max, low, path)
