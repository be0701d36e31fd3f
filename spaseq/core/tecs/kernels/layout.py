"""Columns, slots and statuses of the arrays that kernels share, and the arrays that go together. Without numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# columns of `nodes`
LEFT = 0
RIGHT = 1
POS = 2
MAX = 3
NIL = -1
IS_BOTTOM = -1
IS_OUTPUT = -2  # and below: less the label
IS_PRODUCT = -(1 << 60)  # below all labels: the runs of LEFT, each followed by each suffix of POS; see `kept`
HOLE = -2  # as LEFT: the first node of a suffix, which stands on any run
FOREVER = 1 << 61  # as MAX: of a node that belongs to suffixes

# column 1 of a row of the stack of `enumerate_outs`
WAITS = -1  # the row waits for the suffixes of a product

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

# columns of `reach`, one row per node: what `measure` found for HIGH
R_EPOCH = 0  # the number of the measuring; a row of another one means nothing
R_BELOW = 1  # the greatest start below HIGH, NIL for none
R_FROM = 2  # the least start from HIGH on, NEVER for none
NEVER = 1 << 62

# columns of `below`, one row per node: what is known of it and of all below
N_NODE = 0  # its handle plus 1; another number means nothing
N_LEAST = 1  # the least live start below: the row holds until it leaves the window
N_VALUE = 2  # how many complex events, or its number
BELOW_COLUMNS = 3

# columns of `roots`, one row per node whose matches are to be enumerated
O_NODE = 0
O_LOW = 1  # first start
O_HIGH = 2  # first start that is too late
O_END = 3  # end of these matches
ROOT_COLUMNS = 4

# slots of `progress`, the state vector of the kernels over roots
EPOCH = 0
EPOCH_LOW = 1  # starts before it were left out
NEXT_ROOT = 2
WAITING = 3  # nodes in `todo`
FOUND = 4  # positions found
PROGRESS_SLOTS = 5

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
M_TAG = 10  # a number of the caller's, written with the matches of this move
M_LABEL = 11  # label of the output node that the marking transition makes
M_POOLED = 12  # how the run enters the pool MARK_TO, if any: see `pools.entry_of`; set only where there are pools
M_SKIP_POOLED = 13  # likewise of SKIP_TO
M_VALUE = 14  # these values, DIMENSIONS at most
M_SKIP_VALUE = 17
MOVE_COLUMNS = 20
STAY = -2
RANGE = -3  # as SOURCE: runs of a pool, given by M_NODE and M_MAX, which stay there
CUT = -4  # as SOURCE: runs of the pool SKIP_TO end, those with values from M_VALUE to M_SKIP_VALUE
TAG = -5  # as SOURCE: runs of the pool M_HEAD with values from M_VALUE to M_SKIP_VALUE, at step M_POOLED, also go on to
# step M_SKIP_POOLED, and keep their values

# columns of `Pools.rows`, one row per value of a pool; LEFT also chains free rows
P_VALUE = 0
P_NODE = 1  # an output or bottom node, of the latest run with this value
P_START = 2  # its maximum start, the greatest of the subtree
P_LEFT = 3
P_RIGHT = 4  # must be P_LEFT + 1
P_UNION = 5  # one node for all runs of the subtree, NIL when stale
P_TIES = 6  # one node for the other runs with this value, NIL for none
P_TIES_MAX = 7  # and its maximum start
ROW_COLUMNS = 8
P_MORE = 8  # further values, if pools may have several; see `boxes`
P_BOX = 10  # the least and the greatest first value of the subtree, or ones beyond; those of further values behind
WIDE_COLUMNS = 16
DIMENSIONS = 3  # the most values of a row
# a row of a pool with several steps; see `kept`
P_STALE = 16  # bits of the steps whose unions are stale
P_RUNS = 17  # for each step: one node for the runs there, NIL for none, and its maximum start
P_UNIONS = 25  # for each step: one node for all runs of the subtree but for what its tags add, and its maximum start
P_OWN = 33  # for each pair of steps: one node for the suffixes that lead runs of this row from one to the other
P_TAGS = 43  # likewise of all runs of the subtree, after what all rows have of their own
KEPT_COLUMNS = 53
STEPS = 4  # the most steps of a pool
PAIRS = 10  # of these, the earlier step first; a step and itself are one

# bits of column 1 of `Pools.pooled`
BY_TESTS = 1  # there is one register, and runs move only by tests on it
ENDS_RUNS = 2  # tests end some runs
# further columns of `Pools.pooled`, of a set of states whose pools have several steps
POOL_HOME = 2 + DIMENSIONS  # the set whose configurations they are, NIL for a set whose pools have one step
POOL_STEP = 3 + DIMENSIONS  # the step that stands for the set
POOL_STEPS = 4 + DIMENSIONS  # how many there are
POOL_COLUMNS = 5 + DIMENSIONS

# columns of `Pools.trees`, one row per cell
T_ROOT = 0
T_TOP = 1  # the highest level at which two rows of the tree differ, NIL if none do: with one value, a bit
T_VALUES = 2  # how many values its rows have
T_STEPS = 3  # how many steps, 0 if its rows are of one, NIL for no tree yet
TREE_COLUMNS = 4

# columns of `Pools.box`
B_LEAST = 0  # of a range of this value
B_GREATEST = 1
B_VALUE = 2  # with which a run enters a pool
B_SKIPPED = 3  # likewise if it skips the event
B_CUTS = 4  # the first range of this value in `cuts`
B_COUNT = 5  # and how many there are
BOX_COLUMNS = 6

# selection: which of the complex events with one end are reported
KEEP_ALL = 0
BEST_NEXT = 1
BEST_LAST = 2
BEST_EARLIEST = 3  # BEST_NEXT if every run marks its start
ENDS = 4  # only whether there is one: a cell holds the greatest start of its runs and no list
KEEP_OPEN = 5  # all, as roots: their matches are enumerated once it is known which of them hold
EARLIEST = 6  # all, one run a start, each cell with neighbouring starts: the earliest one is reported
PREFERRED = 7  # the best run of each place, in groups of starts (`run_lists`)
BEST_OF_START = 8  # cells as with BEST_EARLIEST; all runs that an event accepts are its roots
AS_NODES = 9  # all, for aggregates: the nodes below the roots are written, each once
FRONTIERS = (BEST_NEXT, BEST_LAST, BEST_EARLIEST, BEST_OF_START)

# columns of `groups`, one row per group of starts in one list of places
G_LIST = 0  # NIL if the row is free
G_NEXT = 1  # the next group of the partition, or the next free row
G_OLDEST = 2  # its least start, dead or alive
G_KEY = 3  # partition
GROUP_COLUMNS = 4

# columns of `Steps.heads`, one row per step of a list on a class
T_LIST = 0  # the list reached, NIL for none
T_FROM = 1  # its first row in `Steps.ways`
T_COUNT = 2  # the number of its places
T_ACCEPTS = 3  # the way of the run that is accepted, NIL for none
STEP_COLUMNS = 4

# consumption: which runs end with an event that completes a match
CONSUME_NONE = 0
CONSUME_ANY = 1
CONSUME_PARTITION = 2
CONSUME_ONCE = 3  # as CONSUME_PARTITION, and the runs to come
CONSUME_AFTER = 4  # the kernels of `after_match` raise the floors

# after a match: the runs and matches of its partition that it discards
AFTER_PAST_LAST = 0
AFTER_TO_NEXT = 1
AFTER_TO_FIRST = 2
AFTER_TO_LAST = 3
AFTER_ONCE = 4

# steps of `finish_after`
LISTING = 0
CHOOSING = 1
WRITING = 2

# columns of `dead`, the hash table of discarded starts
DEAD_KEY = 0
DEAD_START = 1  # NIL: the slot is free

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
LAST_POSITION = 13  # position of the row before
UNKNOWN_STATE = 14  # an active state whose transitions are not computed yet
END = 15  # end of the matches that are being enumerated
LOW = 16  # first live start for these matches
COUNTED = 17  # matches counted without being written
NEEDED = 18  # the capacity that the last status asks for
FLOOR = 19  # runs that started before this position have been consumed
LINKS = 20  # links in use by `enumerate_recent`
LEFT_TO_WRITE = 21  # matches that LIMIT still allows at the current event
LABEL_BITS = 22  # a place is written as position << LABEL_BITS | label
HIGH = 23  # with `reach`: only matches that start before it; slots from 24 to 31: `run_guarded`, or `run_lists`:
FREE_GROUP = 24  # first free row of `groups`
UNKNOWN_CLASS = 25  # the class on which the list UNKNOWN_STATE has no step yet
KEY = 32  # the partition of the event that is evaluated
STEP = 33  # the step of `finish_after`
LISTED = 34  # matches of the event in `After.matches`
LISTED_PLACES = 35  # and their places
CHOSEN = 36  # of these, the matches to be written
WRITTEN = 37  # of these, the matches that have been written
DEAD_COUNT = 38  # discarded starts in `After.dead`
RANDOM = 39  # state of a generator of random numbers
KEEP = 40  # with pools: the position before which no node is read again
STARTS_ONLY = 41  # with pools: 1 if cells hold starts and no nodes (ENDS)
POOL_FREE = 42  # first free row of `Pools.rows`
POOL_LEFT = 43  # how many there are
POOL_FROM = 44  # more configurations of one list that an event moves become pools; NEVER without pools
NUMBERED = 45  # the last number that `visit_below` has given
TAGGED = 46  # nodes that the moves of an event may make in pools with several steps
SLOTS = 47

COUNTED_AT_ONCE = 1 << 18  # matches that one call of a kernel counts: a fraction of a second
WALKED = 256  # matches of an event that are counted one by one; the rest by the nodes
MOST_COUNTED = (1 << 62) - 1  # matches of an event: the sum of two such numbers is an int64

# statuses
DONE = 0
GROW_NODES = 1
GROW_ENTRIES = 2
GROW_STACK = 3
GROW_PATH = 4
FLUSH = 5
NEED_STATES = 6
GROW_RUNS = 7
GROW_TODO = 16  # those from 8 to 15 are of `engine.kernels.registers.layout`
GROW_GROUPS = 20  # those from 17 to 19 are of `engine.kernels.rivals`
GROW_LISTED = 21
GROW_DEAD = 22
GROW_POOLS = 23
UNPOOL = 24  # a set of states cannot have pools; its number is in NEEDED
POOL_UP = 25  # the configurations of the bucket in NEEDED are to become pools
GROW_PIECES = 26
GROW_BELOW = 27
TOO_MANY = 28  # matches at one event to be counted

CHECKPOINTS = 1024
MELD_DEPTH = 40  # how far `meld` descends: further with probability n / 2^40
PIECES = 400  # of a range of one value, at most: three a level, on two ways down 64 levels, and those of one node


class Structure(NamedTuple):
    """The compact structure, and what one event does to it."""

    nodes: np.ndarray
    cells: np.ndarray
    entries: np.ndarray
    st: np.ndarray
    checks: np.ndarray
    moves: np.ndarray
    outs: np.ndarray


class Pools(NamedTuple):
    """The runs of configurations that differ in a few registers only, by their values; None instead if there are
    none."""

    rows: np.ndarray
    """int64, (r, ROW_COLUMNS), or WIDE_COLUMNS if some have several values, or KEPT_COLUMNS: the nodes of all trees."""
    trees: np.ndarray
    """int64, (cells, TREE_COLUMNS): the tree of each cell."""
    pieces: np.ndarray
    """int64, (PIECES or more, 2): scratch, nodes and maximum starts."""
    path: np.ndarray
    """int64, (MELD_DEPTH, 2): scratch of `meld`."""
    ways: np.ndarray
    """int64, (n, 4): scratch, rows of a tree that are still to be visited."""
    pooled: np.ndarray
    """int32, (sets of states, POOL_COLUMNS): the number of registers whose values a set's pools keep, BY_TESTS and
    ENDS_RUNS, these registers, POOL_HOME and so on."""
    modes: np.ndarray
    """int8, (buckets,): 1 if runs that reach a partition's set of states enter pools."""
    cuts: np.ndarray
    """int64, (c, 2): scratch, ranges of values, first and last."""
    box: np.ndarray
    """int64, (DIMENSIONS, BOX_COLUMNS): scratch, a row for each value."""
    held: np.ndarray
    """int64, (registers,): scratch, the registers of one run of a pool."""
    kept: np.ndarray | None
    """int64, (0,): some pools may have several steps; None if none has, and then numba leaves out the code for them."""


class Output(NamedTuple):
    """What enumerates the matches of an event, and receives them."""

    stack: np.ndarray
    path: np.ndarray
    below: np.ndarray
    matches: np.ndarray
    places: np.ndarray
    write: bool
    order: int
    limit: int


class Recent(NamedTuple):
    """Scratch of `enumerate_recent`; None instead if there is no limit."""

    heap: np.ndarray
    links: np.ndarray


class Scratch(NamedTuple):
    """Scratch of `run_lists`, of what it does at one event."""

    made: np.ndarray
    moved: np.ndarray
    fresh: np.ndarray
    trail: np.ndarray


class After(NamedTuple):
    """The rule for what a match discards, and what applies it; None instead if there is no rule.

    `rule`: one of AFTER_PAST_LAST and so on. `hidden`: True if labels are not part of matches: they only tell the
    events of the rule's variable. `takes`: bool (labels,), True for a label of the variable. `floors`: int64
    (partitions,), the first start alive. `dead`: int64 (d, 2), d a power of two: a hash table of (partition, start).
    `matches` and `places`: as of `Output`, all matches of one event. `order`: int64 (3, m), scratch: their order, and
    in row 2 those that are chosen.
    """

    rule: int
    hidden: bool
    takes: np.ndarray
    floors: np.ndarray
    dead: np.ndarray
    matches: np.ndarray
    places: np.ndarray
    order: np.ndarray
