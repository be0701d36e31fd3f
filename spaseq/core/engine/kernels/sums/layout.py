"""The arrays of the kernels that aggregate over matches. Without numba.

A *row* is an element of the semiring: what is known of a set of runs. `ints[r]` are numbers that are added, the first
of which is the number of the runs, then extremes; `floats[r]` are sums of doubles. A row whose number of runs is 0 is
no run at all, whatever else it holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST = (1 << 63) - 1
"""Numbers of runs and sums stop here: they are so many, or more."""
NO_LEAST = (1 << 63) - 1
"""The least of no values."""

# columns of `keyed`, a row for each partition
FRONT = 0  # the entry of the front with the first start, NIL if the front is empty
BACK = 1  # the last event of the back, NIL if it is empty
FIRST = 2  # the first start in the back, NEVER if it has none
LAST = 3  # the last start in the back
LENGTH = 4  # events of the back at which runs start
KEYED_COLUMNS = 5

# columns of `links` of the front
NEWER = 0  # the entry with the next start, NIL for the last; of a free entry the next free one
START = 1
LINK_COLUMNS = 2

# columns of `chain`, a row for each event of the back
EARLIER = 0  # the event before it in its partition, NIL for the first; of a free row the next free one
CLASS = 1
PLACE = 2  # its position
CHAIN_COLUMNS = 3

# slots of `own`
FREE_ENTRY = 0  # the first free entry of the front, NIL for none
FREE_ENTRIES = 1  # how many there are
FREE_EVENT = 2  # the first free row of the back, NIL for none
OUTPUTS = 3  # rows of the output
OWN_SLOTS = 4

# statuses
SUMS_DONE = 0
SUMS_FLUSH = 1
SUMS_STATES = 2
SUMS_FRONT = 3  # no room in the front
SUMS_CHAIN = 4  # no room in the back

# the first rows of `spare`
SPARE_ONE = 0  # one run that has taken nothing
SPARE_SUM = 1
SPARE_RUNS = 2
SPARE_ROWS = 3


class Rows(NamedTuple):
    """`ints` int64 (rows, numbers), `floats` float64 (rows, numbers)."""

    ints: np.ndarray
    floats: np.ndarray


class Takes(NamedTuple):
    """By label the numbers that an event with it changes: bool (labels, numbers) each. The first column is False."""

    ints: np.ndarray
    floats: np.ndarray


class Nodes(NamedTuple):
    """Nodes that were written for aggregates (`spaseq.core.tecs.kernels.shared`), in parts, a root to each.

    `pairs` int64 (n, 2): the numbers of two children. An output node has the number of the node below, and -1 less the
    place that it marks: a position above `bits` bits of its label. Part i has the pairs from `offsets[i]` on, int64
    (m + 1,); the last of them has the number `last[i]`, int64 (m,). `roots` int64 (m,): the number of the root whose
    matches end at `ends[i]`, or NIL if the next part has more of its nodes.
    """

    pairs: np.ndarray
    offsets: np.ndarray
    last: np.ndarray
    roots: np.ndarray
    ends: np.ndarray
    bits: int


class Held(NamedTuple):
    """The state of all partitions. Partition p with `width` states has the rows from p * width on in `back`, and from
    p * width * width on in `matrix`; an entry of the front likewise. `spare` has a row for each affected state of a
    class behind SPARE_ROWS others, `product` width * width rows for a flip. `st`: the slots of the structure."""

    st: np.ndarray
    own: np.ndarray
    keyed: np.ndarray
    back: Rows
    matrix: Rows
    links: np.ndarray
    front: Rows
    chain: np.ndarray
    weights: Rows
    spare: Rows
    product: Rows


class Output(NamedTuple):
    """`ends` int64 (3, n): position, row in the batch and partition of each event at which matches end; `rows` of these
    matches."""

    ends: np.ndarray
    rows: Rows
