"""The nodes below roots, each once, however many matches share it: the number of these matches, or the nodes written.

What is known of a node is kept from event to event. It depends on the first live start alone. Of a node below which no
start has left the window since, the same starts are alive, so the same is known. `below` therefore has beside it the
*least* live start. An event visits only nodes that are new, or that have lost a start.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    DEPTH,
    DONE,
    END,
    FLUSH,
    GROW_BELOW,
    GROW_STACK,
    HOLE,
    IS_OUTPUT,
    IS_PRODUCT,
    LABEL_BITS,
    LEFT,
    LOW,
    MATCHES,
    MAX,
    MOST_COUNTED,
    N_LEAST,
    N_NODE,
    N_VALUE,
    NEEDED,
    NIL,
    NUMBERED,
    OUT,
    OUTS,
    PLACES,
    POS,
    RIGHT,
    TOO_MANY,
)


@hot
def next_fork(nodes, node, low):
    """The first product at or below `node`, or union of which both sides have a live start. If there is none, one
    complex event or suffix is below, and this is the last node of it."""
    mask = nodes.shape[0] - 1
    while True:
        row = node & mask
        right = nodes[row, RIGHT]
        if right >= 0:
            if nodes[row, POS] >= low and nodes[right & mask, MAX] >= low:
                return node
        elif right == IS_PRODUCT or right > IS_OUTPUT or nodes[row, LEFT] < 0:
            return node
        node = nodes[row, LEFT]


@hot
def known_below(nodes, below, node, low, write):
    """(the node that is visited for this one, what is known of it or NIL, its least live start)."""
    if not write:
        node = next_fork(nodes, node, low)
    row = node & (nodes.shape[0] - 1)
    right = nodes[row, RIGHT]
    if right < 0 and right != IS_PRODUCT and (right > IS_OUTPUT or not write):
        return node, np.int64(0 if write else 1), nodes[row, MAX]
    if below[row, N_NODE] == node + 1 and below[row, N_LEAST] >= low:
        return node, below[row, N_VALUE], below[row, N_LEAST]
    return node, np.int64(NIL), np.int64(NIL)


@hot
def times(value, other):
    """The product of two numbers of complex events, `value` and `other`; one more than MOST_COUNTED if it is above."""
    if value > 0 and other > MOST_COUNTED // value:
        return np.int64(MOST_COUNTED + 1)
    return value * other


@kernel
def visit_below(nodes, st, stack, below, root, places, write):
    """The number of complex events below `root` that `enumerate_outs` would go through, or with `write` the number of
    the node. O(nodes that are not known).

    With `write` each node that is visited, children first, gets the next number and two places. These are the numbers
    of its children. An output node has the number of the node below, or NIL on a HOLE, and -1 less its own place. A
    product has -1 less the number of its runs, and the number of the suffixes. A node of which one side is dead has the
    number of the other side, and what is below the last output node has 0. Minus a status if an array is full, or the
    number of events is above MOST_COUNTED; what is known so far stays.
    """
    mask = nodes.shape[0] - 1
    low = st[LOW]
    bottom = st[DEPTH]
    top = bottom
    value = np.int64(NIL)
    if top >= stack.shape[0]:
        return np.int64(-GROW_STACK)
    stack[top, 0] = root
    top += 1
    while top > bottom:
        node, value, least = known_below(nodes, below, stack[top - 1, 0], low, write)
        if value >= 0:
            top -= 1
            continue
        row = node & mask
        right = nodes[row, RIGHT]
        forks = right >= 0 and nodes[row, POS] >= low and nodes[right & mask, MAX] >= low
        value = np.int64(0)
        least = nodes[row, MAX]
        left = nodes[row, LEFT]
        if left >= 0:
            left, value, least = known_below(nodes, below, left, low, write)
        other = np.int64(0)
        product = right == IS_PRODUCT
        second = nodes[row, POS] if product else right
        if forks or product:
            second, other, other_least = known_below(nodes, below, second, low, write)
            least = min(least, other_least)
        if value < 0 or other < 0:
            if top + 2 > stack.shape[0]:
                return np.int64(-GROW_STACK)
            if value < 0:
                stack[top, 0] = left
                top += 1
            if other < 0:
                stack[top, 0] = second
                top += 1
            continue
        if write and (forks or right <= IS_OUTPUT):
            at = st[PLACES]
            if at + 4 > places.shape[0]:
                return np.int64(-FLUSH)
            places[at] = -1 - value if product else value
            places[at + 1] = other
            if not forks and not product:
                places[at + 1] = -1 - ((nodes[row, POS] << st[LABEL_BITS]) | (IS_OUTPUT - right))
                if left == HOLE:
                    places[at] = NIL
            st[PLACES] = at + 2
            st[NUMBERED] += 1
            value = st[NUMBERED]
        elif product:
            value = times(value, other)
        elif forks:
            value += other
        if value > MOST_COUNTED:
            return np.int64(-TOO_MANY)
        below[row, N_NODE] = node + 1
        below[row, N_LEAST] = least
        below[row, N_VALUE] = value
        top -= 1
    return value


@kernel
def write_nodes(nodes, st, outs, stack, below, matches, places):
    """Write the nodes below the roots in `outs` that were not written before, for aggregates over their matches.

    For each root `matches` gets a column as of a match, whose places are those of `visit_below`. Behind them are the
    number of the root, or NIL if there was no room for all of its nodes, and the last number so far. Numbers begin anew
    once there are many more than nodes. Returns DONE or a status, and continues from there at the next call.
    """
    while st[OUT] < st[OUTS]:
        root = outs[st[OUT], 0]
        if nodes[root & (nodes.shape[0] - 1), MAX] < st[LOW]:
            st[OUT] += 1
            continue
        if below.shape[0] != nodes.shape[0] or st[NUMBERED] > 2 * nodes.shape[0]:
            return GROW_BELOW
        m = st[MATCHES]
        if m + 1 >= matches.shape[1] or st[PLACES] + 4 > places.shape[0]:
            st[NEEDED] = 0
            return FLUSH
        found = visit_below(nodes, st, stack, below, root, places, True)
        if found < 0 and found != -FLUSH:
            return -found
        at = st[PLACES]
        places[at] = found if found >= 0 else NIL
        places[at + 1] = st[NUMBERED]
        matches[0, m] = st[END]
        matches[1, m] = st[END]
        matches[2, m + 1] = at + 2
        matches[3, m] = 0
        st[PLACES] = at + 2
        st[MATCHES] = m + 1
        if found < 0:
            st[NEEDED] = 0
            return FLUSH
        st[OUT] += 1
    return DONE
