"""Choices by start, for NEXT and LAST: of all runs in a place only the one that the window's first live start asks for.

A *machine* is the automaton begun at one start: of all runs that began there or later it keeps, for each place, the
best. `spaseq.core.automata.preference` defines places. The machine that a window asks for is that of the least live
start. Machines in the same list of places move together, so a cell holds the runs of many machines, each under its
*key*, the start of the machine.

Nodes are those of `structure`, but a union is a *choice*. On its left it has runs of greater keys, on its right of
lesser ones. MAX is the greatest key on the left, POS on the right. One branch is read: the right one if POS is alive,
else the left one. The run below a key began there or later, so a node that is read is alive if its key is, and prefixes
of the ring are reclaimed as ever.

*Depth.* Choices form a Patricia trie over the greatest keys of their branches (Okasaki & Gill, Fast Mergeable Integer
Maps, 1998), newest first. The branching bit of a choice is the highest bit in which MAX and POS differ, and decreases
on the way down. So a path has at most 64 choices, and about log2 of the live keys. The entries of a cell are the right
branches on the way to its head. Their choices are made when the cell is folded, so a new key costs amortised O(1)
nodes, and joining two cells whose keys do not overlap O(64).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    END,
    FIRST,
    FLUSH,
    FREE,
    FREE_COUNT,
    HEAD,
    HEAD_MAX,
    IS_OUTPUT,
    LABEL_BITS,
    LEFT,
    LENGTH,
    LONGEST,
    LOW,
    MATCHES,
    MAX,
    MERGED,
    NEEDED,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    OUTS,
    PLACES,
    POS,
    RIGHT,
)
from spaseq.core.tecs.kernels.structure import evict_dead_entries, new_node


@hot
def is_lower(x, y):
    """True if the highest bit of `x` is lower than that of `y`; both are positive."""
    return x < y and x < (x ^ y)


@hot
def choose(nodes, st, newer, older, newer_max, older_max):
    """A choice between two branches, `newer` and `older`, with the greatest keys `newer_max` and `older_max`. `newer`
    alone if both are the same run."""
    if newer == older:
        return newer
    return new_node(nodes, st, newer, older, older_max, newer_max)


@kernel
def fold(nodes, cells, entries, st, cell, low):
    """One node for all runs of a cell, kept in MERGED; at most LENGTH new nodes. O(LENGTH)."""
    node = cells[cell, MERGED]
    if node >= 0:
        return node
    evict_dead_entries(cells, entries, st, cell, low)
    node = cells[cell, HEAD]
    entry = cells[cell, FIRST]
    while entry >= 0:
        node = choose(nodes, st, node, entries[entry, NODE], cells[cell, HEAD_MAX], entries[entry, NODE_MAX])
        entry = entries[entry, NEXT]
    cells[cell, MERGED] = node
    return node


@kernel
def join(nodes, st, newer, newer_max, older, older_max, low, trail):
    """One node for two, `newer` and `older`, with all keys of the first greater than those of the second: `choose` at
    the place of the trie. `newer_max` and `older_max` are their greatest keys.

    `trail` (int64, (130, 4)) is scratch: the choices above that place, which are made anew. O(64).
    """
    depth = 0
    while True:
        bits = newer_max ^ older_max
        a = newer & (nodes.shape[0] - 1)
        b = older & (nodes.shape[0] - 1)
        if nodes[b, RIGHT] >= 0 and is_lower(bits, older_max ^ nodes[b, POS]):
            if nodes[b, POS] >= low:
                trail[depth, 0] = 0
                trail[depth, 1] = nodes[b, RIGHT]
                trail[depth, 2] = nodes[b, POS]
                trail[depth, 3] = newer_max
                depth += 1
            older = nodes[b, LEFT]
        elif nodes[a, RIGHT] >= 0 and not is_lower(newer_max ^ nodes[a, POS], bits):
            if nodes[a, POS] >= low:
                trail[depth, 0] = 1
                trail[depth, 1] = nodes[a, LEFT]
                trail[depth, 2] = nodes[a, POS]
                trail[depth, 3] = newer_max
                depth += 1
                newer_max = nodes[a, POS]
                newer = nodes[a, RIGHT]
            else:
                newer = nodes[a, LEFT]
        else:
            break
    node = choose(nodes, st, newer, older, newer_max, older_max)
    while depth > 0:
        depth -= 1
        if trail[depth, 0] == 0:
            node = choose(nodes, st, node, trail[depth, 1], trail[depth, 3], trail[depth, 2])
        else:
            node = choose(nodes, st, trail[depth, 1], node, trail[depth, 3], trail[depth, 2])
    return node


@kernel
def prepend(nodes, cells, entries, st, newer, older, low, trail):
    """Moves the runs of cell `newer` to cell `older`; all keys of the first are greater than those of the second.
    `trail` is scratch of `join`."""
    evict_dead_entries(cells, entries, st, newer, low)
    evict_dead_entries(cells, entries, st, older, low)
    newest = cells[newer, HEAD_MAX]
    key = cells[older, HEAD_MAX]
    bits = newest ^ key
    node = cells[older, HEAD]
    entry = cells[older, FIRST]
    rest = cells[older, LENGTH]
    while entry >= 0 and is_lower(key ^ entries[entry, NODE_MAX], bits):
        node = choose(nodes, st, node, entries[entry, NODE], key, entries[entry, NODE_MAX])
        following = entries[entry, NEXT]
        entries[entry, NEXT] = st[FREE]
        st[FREE] = entry
        st[FREE_COUNT] += 1
        entry = following
        rest -= 1
    last = np.int64(NIL)
    at = cells[newer, FIRST]
    while at >= 0:
        last = at
        at = entries[at, NEXT]
    count = cells[newer, LENGTH] + rest
    if last >= 0 and not is_lower(newest ^ entries[last, NODE_MAX], bits):
        entries[last, NODE] = join(nodes, st, entries[last, NODE], entries[last, NODE_MAX], node, key, low, trail)
    elif node != (cells[newer, HEAD] if last < 0 else entries[last, NODE]):
        link = st[FREE]
        st[FREE] = entries[link, NEXT]
        st[FREE_COUNT] -= 1
        entries[link, NODE] = node
        entries[link, NODE_MAX] = key
        if last < 0:
            cells[newer, FIRST] = link
        else:
            entries[last, NEXT] = link
        last = link
        count += 1
    if last < 0:
        cells[newer, FIRST] = entry
    else:
        entries[last, NEXT] = entry
    for column in range(5):
        cells[older, column] = cells[newer, column]
    cells[older, MERGED] = NIL
    cells[older, LENGTH] = count
    if count > st[LONGEST]:
        st[LONGEST] = count
    empty_cell(cells, newer)


@hot
def empty_cell(cells, cell):
    """Empties a cell whose entries belong to another one, or are free."""
    cells[cell, HEAD] = NIL
    cells[cell, HEAD_MAX] = NIL
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@hot
def follow(nodes, node, low):
    """The first node of the run that a window from `low` on asks for: no choice. O(64)."""
    mask = nodes.shape[0] - 1
    while nodes[node & mask, RIGHT] >= 0:
        node = nodes[node & mask, RIGHT] if nodes[node & mask, POS] >= low else nodes[node & mask, LEFT]
    return node


@kernel
def start_of(nodes, node, low):
    """The start of the run that a window from `low` on asks for. O(positions that it marks)."""
    mask = nodes.shape[0] - 1
    node = follow(nodes, node, low)
    while nodes[node & mask, LEFT] >= 0:
        node = follow(nodes, nodes[node & mask, LEFT], low)
    return nodes[node & mask, MAX]


@kernel
def write_run(nodes, st, node, matches, places):
    """Writes the run below `node` that the window asks for as a match. FLUSH if there is no room. O(its positions)."""
    mask = nodes.shape[0] - 1
    low = st[LOW]
    size = 0
    start = np.int64(NIL)
    at = node
    while at >= 0:
        at = follow(nodes, at, low)
        start = nodes[at & mask, MAX]
        size += 1
        at = nodes[at & mask, LEFT]
    if st[MATCHES] + 1 >= matches.shape[1] or st[PLACES] + size > places.shape[0]:
        st[NEEDED] = size
        return FLUSH
    place = st[PLACES] + size
    at = node
    m = st[MATCHES]
    matches[0, m] = start
    matches[1, m] = st[END]
    matches[2, m + 1] = place
    matches[3, m] = 0
    st[PLACES] = place
    st[MATCHES] = m + 1
    while at >= 0:
        at = follow(nodes, at, low)
        place -= 1
        places[place] = (nodes[at & mask, POS] << st[LABEL_BITS]) | (IS_OUTPUT - nodes[at & mask, RIGHT])
        at = nodes[at & mask, LEFT]
    st[OUTS] = 0
    return 0
