"""Aggregates over all matches of an event by the nodes that these share, each once: a row for each node."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.engine.kernels.sums.rows import add_marked, add_product, add_row, copy_row
from spaseq.core.jit import kernel


@kernel
def add_nodes(nodes, values, weights, which, takes, added, found):
    """Fill the rows of `values` from the numbers of `nodes`, and add those of roots to `found`: a row for each event.

    `nodes`: `Nodes` of `layout`. `values`: `Rows`, that of number i in row i, and one run that has taken nothing in row
    0. `weights`: `Rows`; row which[i] has the event that pair i marks (int64 (pairs,)). `takes`: `Takes`. `added`: how
    many of the whole numbers are added. `found`: `Rows`, of no runs before. O(pairs).
    """
    pairs, bits = nodes.pairs, nodes.bits
    row = -1
    for m in range(nodes.roots.shape[0]):
        if m == 0 or nodes.ends[m] != nodes.ends[m - 1]:
            row += 1
        first = nodes.offsets[m]
        last = nodes.offsets[m + 1]
        number = nodes.last[m] - (last - first)
        for i in range(first, last):
            number += 1
            below = pairs[i, 0]
            other = pairs[i, 1]
            if other < 0:
                label = (-1 - other) & ((1 << bits) - 1)
                values.ints[number, 0] = 0
                add_marked(values, number, values, max(below, 0), added, takes, label, weights, which[i])
            elif below < 0:
                values.ints[number, 0] = 0
                add_product(values, number, values, -1 - below, values, other, added)
            else:
                copy_row(values, number, values, below)
                add_row(values, number, values, other, added)
        if nodes.roots[m] >= 0:
            add_row(found, row, values, nodes.roots[m], added)
