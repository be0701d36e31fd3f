"""Pools with several steps: runs that go on and keep the values that later events compare again.

In `A ; B ; C FILTER c.price > a.price` an event b moves all runs, and each keeps its `a.price`. The runs of both steps
are in one tree (`pools`, `boxes`), whose rows have a node for each step. An event that moves a range of runs from step
i to step j changes none of them. It *tags* the rows on the way, and the subtrees in the range, with a suffix.

* `P_RUNS` has, for each step, the runs of the row itself.
* `P_OWN` has, for each pair of steps (i, j), the suffixes that lead runs of the row from i to j. So at step j the row
  has its runs at j, and for each i the product of those at i and the suffixes of (i, j).
* `P_TAGS` has likewise the suffixes of the whole subtree, to be applied after all that the rows have of their own.
* `P_UNIONS` has, for each step, all runs of the subtree but for what its tags add, unless the step's bit of `P_STALE`
  is set.

A suffix is a node as any other, but its last node down stands on a HOLE; a product puts it on runs (`structure`). If a
new event e leads from i to j, (h, j) gets the suffixes of (h, i) with e behind them, for each h up to i. (i, j) also
gets e itself.
Tags are *settled* before a row is read by itself or gets suffixes of its own, or a run passes it. They go into its own
suffixes and the tags of its children. Suffixes that follow others are a product, too.

If only starts are kept (`STARTS_ONLY`), any number that is not NIL stands for a node: there are runs, or suffixes. The
maximum starts beside it are all that is read.

*No suffix is older than a run below it.* A run that enters settles the tags of all rows that it passes. So a suffix is
read only if a run is alive that began before its first event, and nodes of suffixes are reclaimed as all others.

*Cost.* An event settles, tags or reads O(depth) rows. A stale union that is read is made anew by melding (`heaps`),
O(log n) nodes expected. So an event costs O(log² n) for one value, amortised, whatever the number of runs that it
moves.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.heaps import meld
from spaseq.core.tecs.kernels.layout import (
    FOREVER,
    HOLE,
    IS_OUTPUT,
    IS_PRODUCT,
    KEPT_COLUMNS,
    MAX,
    MELD_DEPTH,
    NIL,
    P_LEFT,
    P_NODE,
    P_OWN,
    P_RIGHT,
    P_RUNS,
    P_STALE,
    P_START,
    P_TAGS,
    P_TIES,
    P_TIES_MAX,
    PAIRS,
    STARTS_ONLY,
    STEPS,
)
from spaseq.core.tecs.kernels.structure import new_node, unite

ALL_STALE = (1 << STEPS) - 1
PIECES_OF_STEP = 1 + STEPS  # nodes that a row or a subtree has at one step: its runs, and products of those at others
MELD_NODES = 2 * MELD_DEPTH + 4


@hot
def pair_of(i, j):
    """The place of the pair of steps (i, j) among the columns of pairs; i is at most j."""
    return j * (j + 1) // 2 + i


@hot
def settled_nodes(steps):
    """At most so many nodes are made to settle a row of a pool with `steps` steps, or to tag it."""
    return 3 * (steps * (steps + 1) // 2) * (4 * steps + 6)


@hot
def absorbed_nodes(steps):
    """At most so many nodes are made to join two rows of a pool with `steps` steps."""
    return (steps * (steps + 1) + steps) * (MELD_NODES + 1)


@hot
def join_suffixes(nodes, st, some, others):
    """A safe node for the suffixes of the nodes `some` and `others`, NIL for none."""
    if some < 0:
        return others
    if others < 0 or st[STARTS_ONLY]:
        return some
    return unite(nodes, st, some, others, FOREVER)


@hot
def put_on(nodes, st, below, suffixes):
    """The product of runs, or suffixes, `below` and the suffixes behind them."""
    if st[STARTS_ONLY]:
        return below
    return new_node(nodes, st, below, IS_PRODUCT, suffixes, nodes[below & (nodes.shape[0] - 1), MAX])


@kernel
def add_tags(rows, nodes, st, row, first, source, steps):
    """Applies the tags of row `source` to the suffixes of `row` in the columns from `first` on."""
    for back in range(steps):
        j = steps - 1 - back
        for h in range(j + 1):
            made = join_suffixes(nodes, st, rows[row, first + pair_of(h, j)], rows[source, P_TAGS + pair_of(h, j)])
            for i in range(h, j + 1):
                earlier, later = rows[row, first + pair_of(h, i)], rows[source, P_TAGS + pair_of(i, j)]
                if earlier >= 0 and later >= 0:
                    made = join_suffixes(nodes, st, made, put_on(nodes, st, earlier, later))
            rows[row, first + pair_of(h, j)] = made


@kernel
def settle_row(rows, nodes, st, row, steps, low):
    """Passes the tags of a row on to what it has of its own, and to its children. At most `settled_nodes` nodes."""
    stale = np.int64(0)
    for j in range(steps):
        for i in range(j + 1):
            if rows[row, P_TAGS + pair_of(i, j)] >= 0:
                stale |= 1 << j
    if stale == 0:
        return
    add_tags(rows, nodes, st, row, P_OWN, row, steps)
    for side in range(P_LEFT, P_RIGHT + 1):
        child = rows[row, side]
        if child >= 0 and rows[child, P_START] >= low:
            add_tags(rows, nodes, st, child, P_TAGS, row, steps)
    for pair in range(PAIRS):
        rows[row, P_TAGS + pair] = NIL
    rows[row, P_STALE] |= stale


@kernel
def settle(kept, rows, nodes, st, row, steps, low):
    """`settle_row` if the row is of a pool with several steps, `steps` being their number, else below 1. `kept`: as of
    `Pools`, None without such pools."""
    if kept is not None and steps > 0:
        settle_row(rows, nodes, st, row, steps, low)


@hot
def mark(nodes, st, before, label, position):
    """The suffix of an event at `position`, under `label`, behind the suffixes `before`, HOLE for none."""
    if st[STARTS_ONLY]:
        return np.int64(0)
    return new_node(nodes, st, before, IS_OUTPUT - label, position, FOREVER)


@kernel
def tag_row(rows, nodes, st, row, first, i, j, label, position):
    """Puts an event at `position` under `label`, which leads runs from step i to step j, behind the suffixes of a row
    in the columns from `first` on. At most `settled_nodes` nodes."""
    for h in range(i + 1):
        added = np.int64(NIL)
        before = rows[row, first + pair_of(h, i)]
        if before >= 0:
            added = mark(nodes, st, before, label, position)
        if h == i:
            added = join_suffixes(nodes, st, added, mark(nodes, st, HOLE, label, position))
        rows[row, first + pair_of(h, j)] = join_suffixes(nodes, st, rows[row, first + pair_of(h, j)], added)


@hot
def pieces_at(rows, nodes, st, row, runs, suffixes, step, low, pieces, count):
    """Adds what a row has at a step to the pieces: their number then, at most PIECES_OF_STEP more.

    `runs`: P_RUNS for the row by itself, P_UNIONS for its subtree; `suffixes`: P_OWN or P_TAGS. `pieces`: int64
    (n, 2), nodes of the shape of `heaps` and their maximum starts.
    """
    if rows[row, runs + 2 * step] >= 0 and rows[row, runs + 2 * step + 1] >= low:
        pieces[count, 0] = rows[row, runs + 2 * step]
        pieces[count, 1] = rows[row, runs + 2 * step + 1]
        count += 1
    for i in range(step + 1):
        node, start = rows[row, runs + 2 * i], rows[row, runs + 2 * i + 1]
        if rows[row, suffixes + pair_of(i, step)] >= 0 and node >= 0 and start >= low:
            pieces[count, 0] = put_on(nodes, st, node, rows[row, suffixes + pair_of(i, step)])
            pieces[count, 1] = start
            count += 1
    return count


@kernel
def gather_runs(rows, nodes, st, row, steps, low, path, pieces):
    """Makes the runs of a row at each step from its runs and suffixes, of which it has none then. `pieces`: int64
    (PIECES_OF_STEP or more, 2), scratch."""
    for back in range(steps):
        step = steps - 1 - back
        count = pieces_at(rows, nodes, st, row, P_RUNS, P_OWN, step, low, pieces, 0)
        set_runs(rows, nodes, st, row, P_RUNS + 2 * step, pieces, 0, count, low, path)
    for pair in range(PAIRS):
        rows[row, P_OWN + pair] = NIL


@kernel
def set_runs(rows, nodes, st, row, column, pieces, first, count, low, path):
    """Melds pieces[first:count] into one node for `column` of a row, with its maximum start behind it."""
    made = np.int64(NIL)
    latest = np.int64(NIL)
    for n in range(first, count):
        if made < 0 or st[STARTS_ONLY]:
            made = pieces[n, 0]
        else:
            made = meld(nodes, st, made, pieces[n, 0], low, path)
        latest = max(latest, pieces[n, 1])
    rows[row, column] = made
    rows[row, column + 1] = latest


@kernel
def absorb_kept(rows, nodes, st, upper, lower, steps, low, path, pieces):
    """Joins the runs of row `lower` to those of row `upper`, which has its values, and begins no earlier. At most
    `absorbed_nodes` nodes. `pieces`: as of `gather_runs`."""
    gather_runs(rows, nodes, st, upper, steps, low, path, pieces)
    gather_runs(rows, nodes, st, lower, steps, low, path, pieces)
    for step in range(steps):
        count = pieces_at(rows, nodes, st, upper, P_RUNS, P_OWN, step, low, pieces, 0)
        count = pieces_at(rows, nodes, st, lower, P_RUNS, P_OWN, step, low, pieces, count)
        set_runs(rows, nodes, st, upper, P_RUNS + 2 * step, pieces, 0, count, low, path)


@kernel
def begin_kept(rows, nodes, st, row, step, low):
    """Gives a fresh row its latest run and its ties as its runs at a step. It has no ties then."""
    for column in range(P_RUNS, KEPT_COLUMNS):
        rows[row, column] = NIL
    rows[row, P_STALE] = ALL_STALE
    node, start = rows[row, P_NODE], rows[row, P_START]
    if st[STARTS_ONLY]:
        node = np.int64(0)
    if rows[row, P_TIES] >= 0 and rows[row, P_TIES_MAX] >= low:
        node = new_node(nodes, st, node, rows[row, P_TIES], rows[row, P_TIES_MAX], start)
    rows[row, P_RUNS + 2 * step] = node
    rows[row, P_RUNS + 2 * step + 1] = start
    rows[row, P_TIES] = NIL
    rows[row, P_TIES_MAX] = NIL
