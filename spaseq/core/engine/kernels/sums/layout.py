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

# slots of `Search.st`
B_ROOT = 0  # the root that is searched, of those in the part
B_PAIR = 1  # the next of its nodes to be ranked; NIL once all are and its search has begun
B_FIRST = 2  # 1 while the best of the ways that are left is gone on with
B_WAYS = 3  # ways in the heap
B_STACK = 4  # ways in the stack
B_TRAIL = 5  # rows of the trail in use
B_KEPT = 6  # those that are kept whatever is taken from the stack
B_TOPS = 7  # values in `tops`
B_MATCHES = 8
B_PLACES = 9
B_NEEDED = 10  # places that the next match needs
B_NUMBER = 11  # the last number that has a rank; this and the next are kept from part to part
B_CHOICES = 12  # rows of `choices` in use
BEST_SLOTS = 13

# statuses of the search
BEST_DONE = 0
BEST_FLUSH = 1
BEST_WAYS = 2  # no room in the heap or the stack
BEST_TRAIL = 3
BEST_CHOICES = 4

# columns of `Ranks.choices`
C_NODE = 0  # an output node or a product, the best of all below
C_LEFT = 1  # NIL for none
C_RIGHT = 2
C_RANK = 3  # how many rows there are on the way down the right ones
CHOICE_COLUMNS = 4

# columns of `Search.trail`
T_PLACE = 0  # a place, or of a product -1 less the number of its runs, with which the way goes on behind a suffix
T_BEFORE = 1  # the row before it, NIL for none
T_OPEN = 2  # the last row of a product whose runs the way has not come to yet, NIL for none
T_TAKEN = 3  # of a product: how many events its runs have, with those that wait for them
TRAIL_COLUMNS = 4

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
    place that it marks: a position above `bits` bits of its label. A product has -1 less the number of its runs, and
    the number of their suffixes. The first event of a suffix has NIL in place of 0. Part i has the pairs from
    `offsets[i]` on, int64 (m + 1,); the last of them has the number `last[i]`, int64 (m,). `roots` int64 (m,): the
    number of the root whose matches end at `ends[i]`, or NIL if the next part has more of its nodes.
    """

    pairs: np.ndarray
    offsets: np.ndarray
    last: np.ndarray
    roots: np.ndarray
    ends: np.ndarray
    bits: int


class Ranks(NamedTuple):
    """Rows for nodes that were written, by their numbers.

    `top` int64 (n,): the best of the output nodes and products that a way from the node may go on with, a row of
    `choices`. Others are of these nodes. `below` int64 (n, 3): the node below, the place, and how many events the best
    way down marks. A product has its runs, and -1 less the number of their suffixes. `own` float64 (n, values): what
    the event adds. `best` float64 (n, values): the greatest sum of the runs below. `choices` int64 (c, CHOICE_COLUMNS):
    leftist heaps that share rows. `path` int64 (p,): scratch of `meld_choices`.
    """

    top: np.ndarray
    below: np.ndarray
    own: np.ndarray
    best: np.ndarray
    choices: np.ndarray
    path: np.ndarray


class Search(NamedTuple):
    """The state of a search for the best matches below a root. A *way* leads from the root down to a row of `choices`,
    or NIL at its end. It has the last row of its trail, and the sum of its marks.

    `heap` int64 (h, 2) and `heap_sums` float64 (h, 2 * values): ways, with their sums and their bounds behind. `stack`
    int64 (s, 3) and `stack_sums` float64 (s, values): ways, the third column is the length of the trail then. `trail`
    int64 (t, TRAIL_COLUMNS): a place and the row of the one before it, or a product. `open_sums` float64 (t, values):
    of a product the greatest sum of all that the way has still to come to. `tops` float64 (k, values): the k greatest
    sums so far, in descending order. `spare` float64 (2, values).
    """

    st: np.ndarray
    heap: np.ndarray
    heap_sums: np.ndarray
    stack: np.ndarray
    stack_sums: np.ndarray
    trail: np.ndarray
    open_sums: np.ndarray
    tops: np.ndarray
    spare: np.ndarray


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
