"""Roots whose matches wait: the roots with matches that start in a range, and the enumeration of these matches.

A tECS prunes by the maximum start: a node tells only that some match starts late enough. If matches wait until their
windows close, those that start early come first, and the maximum gives no information on them. So `measure` computes
two starts, for a bound on the starts and each node below a root that has starts on both sides of it. They are the
greatest start below the bound and the least start from it on. Nodes whose maximum lies below the bound need nothing:
their maximum is the answer. A product has the starts of its runs; no node of its suffixes is measured. Each node is
measured once for a bound, however many roots lead to it. O(nodes measured), without recursion.

`rank_roots` finds the best run below roots, for NEXT or LAST ([CEL] §4), among those that start in a range. Both orders
compare two runs by one element of their symmetric difference. So equal ends of two runs change nothing, and the best
run of a node is made of the best runs of its children. Each node is ranked once: O(nodes * length of a run).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    DONE,
    END,
    EPOCH,
    EPOCH_LOW,
    FLUSH,
    FOUND,
    GROW_TODO,
    HIGH,
    HOLE,
    IS_OUTPUT,
    IS_PRODUCT,
    LABEL_BITS,
    LEFT,
    LOW,
    MATCHES,
    MAX,
    NEEDED,
    NEVER,
    NEXT_ROOT,
    NIL,
    O_END,
    O_HIGH,
    O_LOW,
    O_NODE,
    OUT,
    OUTS,
    PLACES,
    POS,
    R_BELOW,
    R_EPOCH,
    R_FROM,
    RIGHT,
    WAITING,
)
from spaseq.core.tecs.kernels.structure import enumerate_outs

_CHAIN = 16  # nodes that are looked at for the start of a root


@kernel
def write_roots(nodes, st, outs, matches, places):
    """Write the roots in `outs` as matches with one place each, the node, and a lower bound of the starts of the
    matches below. The bound is their start if the first nodes show that they have one start. FLUSH if an array is
    full."""
    mask = nodes.shape[0] - 1
    while st[OUT] < st[OUTS]:
        root = outs[st[OUT], 0]
        if nodes[root & mask, MAX] >= st[LOW]:
            m = st[MATCHES]
            at = st[PLACES]
            if m + 1 >= matches.shape[1] or at + 1 > places.shape[0]:
                st[NEEDED] = 1
                return FLUSH
            node = root
            steps = 0
            while steps < _CHAIN and nodes[node & mask, RIGHT] < 0 and nodes[node & mask, LEFT] >= 0:
                node = nodes[node & mask, LEFT]
                steps += 1
            single = nodes[node & mask, RIGHT] < 0 and nodes[node & mask, LEFT] < 0
            matches[0, m] = nodes[root & mask, MAX] if single else st[LOW]
            matches[1, m] = st[END]
            matches[2, m + 1] = at + 1
            matches[3, m] = outs[st[OUT], 1]
            places[at] = root << st[LABEL_BITS]
            st[MATCHES] = m + 1
            st[PLACES] = at + 1
        st[OUT] += 1
    return DONE


@hot
def is_open(nodes, reach, node, high, epoch):
    """True if a node has to be measured before those above it: it has starts from `high` on, and no row of this
    `epoch`."""
    row = node & (nodes.shape[0] - 1)
    return nodes[row, MAX] >= high and reach[row, R_EPOCH] != epoch


@hot
def start_below(nodes, reach, node, high):
    """The greatest start below `high`, of a node that is not open; NIL for none."""
    row = node & (nodes.shape[0] - 1)
    return nodes[row, MAX] if nodes[row, MAX] < high else reach[row, R_BELOW]


@hot
def start_from(nodes, reach, node, high):
    """The least start from `high` on, of a node that is not open; NEVER for none."""
    row = node & (nodes.shape[0] - 1)
    return NEVER if nodes[row, MAX] < high else reach[row, R_FROM]


@kernel
def measure(nodes, reach, todo, root, low, high, epoch):
    """Measure `root`, and first the nodes below it: `reach` (int64, (capacity, 3)) gets a row, with the number `epoch`,
    for each node with starts from `high` on. Right children without starts from `low` on are left out, as they may be
    reclaimed. `todo` (int64, (t,)) is scratch. GROW_TODO if it is full; the next call goes on, as the measured rows
    stay."""
    mask = nodes.shape[0] - 1
    todo[0] = root
    count = 1
    while count > 0:
        node = todo[count - 1]
        if not is_open(nodes, reach, node, high, epoch):
            count -= 1
            continue
        if count + 2 > todo.shape[0]:
            return GROW_TODO
        row = node & mask
        left = nodes[row, LEFT]
        right = nodes[row, RIGHT]
        both = right >= 0 and nodes[row, POS] >= low
        waits = False
        if both and is_open(nodes, reach, right, high, epoch):
            todo[count] = right
            count += 1
            waits = True
        if left >= 0 and is_open(nodes, reach, left, high, epoch):
            todo[count] = left
            count += 1
            waits = True
        if waits:
            continue
        below = NIL
        since = NEVER
        if left >= 0:
            below = start_below(nodes, reach, left, high)
            since = start_from(nodes, reach, left, high)
            if both:
                below = max(below, start_below(nodes, reach, right, high))
                since = min(since, start_from(nodes, reach, right, high))
        else:  # a bottom node, or an output node on top of one
            since = nodes[row, MAX]
        reach[row, R_EPOCH] = epoch
        reach[row, R_BELOW] = below
        reach[row, R_FROM] = since
        count -= 1
    return DONE


@kernel
def measure_next(nodes, reach, todo, st, progress, roots):
    """Measure root number progress[NEXT_ROOT] for its range; `st[LOW]` and `st[HIGH]` are then that range.

    What roots before it had measured counts, if these had the same bound and no later first start.
    """
    root = progress[NEXT_ROOT]
    low = roots[root, O_LOW]
    high = roots[root, O_HIGH]
    if high != st[HIGH] or low < progress[EPOCH_LOW]:
        progress[EPOCH] += 1
        progress[EPOCH_LOW] = low
    st[LOW] = low
    st[HIGH] = high
    return measure(nodes, reach, todo, roots[root, O_NODE], low, high, progress[EPOCH])


@kernel
def measure_roots(nodes, reach, todo, st, progress, roots, latest, following):
    """For root i, latest[i] gets the greatest start in its range, NIL for none, and following[i] the least start from
    its bound on, NEVER for none (int64 (roots,) each)."""
    while progress[NEXT_ROOT] < roots.shape[0]:
        status = measure_next(nodes, reach, todo, st, progress, roots)
        if status != DONE:
            return status
        root = progress[NEXT_ROOT]
        below = start_below(nodes, reach, roots[root, O_NODE], roots[root, O_HIGH])
        latest[root] = below if below >= roots[root, O_LOW] else NIL
        following[root] = start_from(nodes, reach, roots[root, O_NODE], roots[root, O_HIGH])
        progress[NEXT_ROOT] = root + 1
    return DONE


@kernel
def collect_positions(nodes, reach, todo, st, progress, roots, low, found):
    """Write to `found` (int64, (twice the live nodes,)) the positions that matches below the roots take, and their
    starts, each node's once; progress[FOUND] is how many. Right children without starts from `low` on are left out.
    `reach` tells which nodes were visited, by the number progress[EPOCH]. O(nodes below the roots)."""
    mask = nodes.shape[0] - 1
    while progress[WAITING] > 0 or progress[NEXT_ROOT] < roots.shape[0]:
        if progress[WAITING] + 2 > todo.shape[0]:
            return GROW_TODO
        if progress[WAITING] == 0:
            todo[0] = roots[progress[NEXT_ROOT], O_NODE]
            progress[WAITING] = 1
            progress[NEXT_ROOT] += 1
        progress[WAITING] -= 1
        row = todo[progress[WAITING]] & mask
        if reach[row, R_EPOCH] == progress[EPOCH]:
            continue
        reach[row, R_EPOCH] = progress[EPOCH]
        left = nodes[row, LEFT]
        right = nodes[row, RIGHT]
        if right >= 0 and nodes[row, POS] >= low:
            todo[progress[WAITING]] = right
            progress[WAITING] += 1
        if right == IS_PRODUCT:
            todo[progress[WAITING]] = nodes[row, POS]
            progress[WAITING] += 1
        elif right <= IS_OUTPUT:
            found[progress[FOUND]] = nodes[row, POS]
            progress[FOUND] += 1
        if left >= 0:
            todo[progress[WAITING]] = left
            progress[WAITING] += 1
        elif left != HOLE:
            found[progress[FOUND]] = nodes[row, MAX]
            progress[FOUND] += 1
    return DONE


@kernel
def enumerate_roots(nodes, reach, todo, st, progress, roots, outs, stack, path, matches, places):
    """Writes the complex events of `roots` (int64, (r, ROOT_COLUMNS)) that start in their ranges, root by root."""
    while True:
        status = enumerate_outs(nodes, st, outs, stack, path, None, matches, places, True, reach)
        if status != DONE:
            return status
        if progress[NEXT_ROOT] >= roots.shape[0]:
            return DONE
        status = measure_next(nodes, reach, todo, st, progress, roots)
        if status != DONE:
            return status
        root = progress[NEXT_ROOT]
        outs[0, 0] = roots[root, O_NODE]
        outs[0, 1] = 0
        st[END] = roots[root, O_END]
        st[OUT] = 0
        st[OUTS] = 1
        progress[NEXT_ROOT] = root + 1


@hot
def rest_of(nodes, reach, node):
    """The best run below an output node, as the node on its top; NIL if it ends there, or at a bottom node."""
    mask = nodes.shape[0] - 1
    left = nodes[node & mask, LEFT]
    if left < 0 or nodes[node & mask, RIGHT] > IS_OUTPUT:
        return NIL
    return reach[left & mask, R_BELOW]


@hot
def place_on(nodes, node):
    """The position that the node on top of a run marks; NIL for no node, and for one that marks none."""
    row = node & (nodes.shape[0] - 1)
    return nodes[row, POS] if node >= 0 and nodes[row, RIGHT] <= IS_OUTPUT else NIL


@kernel
def better_run(nodes, reach, one, other, latest):
    """The better of the best runs `one` and `other`, each the node on its top; the first if their positions are equal.
    It holds the smallest position of the symmetric difference, or the greatest if `latest`. O(positions)."""
    best = one
    a = one
    b = other
    while a != b:
        p = place_on(nodes, a)
        q = place_on(nodes, b)
        if p != q:
            best = one if p > q else other
            if latest:
                return best
        if p < 0 and q < 0:
            return best
        if p >= q:
            a = rest_of(nodes, reach, a)
        if q >= p:
            b = rest_of(nodes, reach, b)
    return best


@hot
def is_unranked(nodes, reach, node, low, epoch):
    """True if a node may have a run that starts from `low` on, and has no row of this `epoch`."""
    row = node & (nodes.shape[0] - 1)
    return nodes[row, MAX] >= low and reach[row, R_EPOCH] != epoch


@hot
def best_below(nodes, reach, node, low):
    """The best run of a node that is not unranked, as the node on its top; NIL for none."""
    row = node & (nodes.shape[0] - 1)
    return reach[row, R_BELOW] if nodes[row, MAX] >= low else NIL


@kernel
def rank(nodes, reach, todo, root, low, high, epoch, latest):
    """Rank `root`, and first the nodes below it. `reach` gets a row, with the number `epoch`, for each node with a
    start from `low` on: R_BELOW is its best run that starts in the range, up to `high`. With `latest` the order is that
    of LAST, else of NEXT. As `measure` otherwise."""
    mask = nodes.shape[0] - 1
    todo[0] = root
    count = 1
    while count > 0:
        node = todo[count - 1]
        if not is_unranked(nodes, reach, node, low, epoch):
            count -= 1
            continue
        if count + 2 > todo.shape[0]:
            return GROW_TODO
        row = node & mask
        left = nodes[row, LEFT]
        right = nodes[row, RIGHT]
        both = right >= 0 and nodes[row, POS] >= low
        waits = False
        if both and is_unranked(nodes, reach, right, low, epoch):
            todo[count] = right
            count += 1
            waits = True
        if left >= 0 and is_unranked(nodes, reach, left, low, epoch):
            todo[count] = left
            count += 1
            waits = True
        if waits:
            continue
        best = np.int64(NIL)
        if left < 0:  # a bottom node, or an output node on top of one
            best = node if nodes[row, MAX] < high else NIL
        elif right <= IS_OUTPUT:
            best = node if best_below(nodes, reach, left, low) >= 0 else NIL
        else:
            best = best_below(nodes, reach, left, low)
            other = best_below(nodes, reach, right, low) if both else NIL
            if best < 0:
                best = other
            elif other >= 0:
                best = better_run(nodes, reach, best, other, latest)
        reach[row, R_EPOCH] = epoch
        reach[row, R_BELOW] = best
        count -= 1
    return DONE


@kernel
def rank_roots(nodes, reach, todo, st, progress, roots, latest):
    """Rank the roots, which have one range, that of `st[LOW]` and `st[HIGH]`; progress[FOUND] gets the best run below
    them, as the node on its top, NIL for none. `latest`: as of `rank`."""
    while progress[NEXT_ROOT] < roots.shape[0]:
        root = roots[progress[NEXT_ROOT], O_NODE]
        status = rank(nodes, reach, todo, root, st[LOW], st[HIGH], progress[EPOCH], latest)
        if status != DONE:
            return status
        own = best_below(nodes, reach, root, st[LOW])
        best = progress[FOUND]
        if best < 0:
            progress[FOUND] = own
        elif own >= 0:
            progress[FOUND] = better_run(nodes, reach, best, own, latest)
        progress[NEXT_ROOT] += 1
    return DONE
