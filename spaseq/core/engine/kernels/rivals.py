"""From events to moves under selection MAX, for automata without registers (`spaseq.core.engine.runs.rivals`).

`tables` has the shapes and their steps on symbol classes, `live` the live sets of all partitions. `c` is the class of
the event, `key` its partition, `floors` (int64, (partitions,)) the first start that consumption left alive.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.core.engine.kernels.drivers import apply_planned, finish_event, first_unconsumed, note_consumed
from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    CONSUME_NONE,
    DONE,
    E_CLASS,
    E_KEEP,
    E_KEY,
    E_LOW,
    E_POSITION,
    HEAD,
    HEAD_MAX,
    M_LABEL,
    M_TAG,
    MARK_ACCEPTS,
    MARK_TO,
    NEEDED,
    NIL,
    OUTS,
    ROW,
    SKIP_ACCEPTS,
    SKIP_TO,
    SOURCE,
)
from spaseq.core.tecs.kernels.structure import clear_cell

# columns of `shapes`
RANKS = 0  # the number of starts beside a live set of the shape
OWN = 1  # automaton states of its runs, as bits
BARE = 2  # 1 if they have marked nothing
LATER = 3  # where its row in `later` begins
SHAPE_COLUMNS = 4

# columns of `rows`: a way of a shape on a symbol class; a target is a shape, NIL, or STAY
TO = 0
ACCEPTS = 1
LABEL = 2
SKIP = 3
PASSES = 4  # it accepts without the event
TO_RANKS = 5  # where in `ranks` the starts of the target are, as ranks of the source
SKIP_RANKS = 6
IS_LAST = 7  # of the ways of this shape on this class
ROW_COLUMNS = 8

# `rows_at` besides the first row
UNKNOWN = -1
UNMOVED = -2

# columns of `begins`, by symbol class
BEGINS = 0  # UNKNOWN, 0, or 1 if a run may begin
BARE_RIVALS = 1  # states of runs that matter to it, as bits: of those that have marked nothing
RIVALS = 2  # and of the others
BEGIN_COLUMNS = 3

# columns of `sets`, a live set for each cell
KEY = 0  # its partition, NIL for a free one
SHAPE = 1
FOLLOWING = 2  # the next live set of the partition, or the next free one
CHAIN = 3  # the next one in the bucket
HASH = 4
SET_COLUMNS = 5

# slots of `state`
FREE_SET = 0
FREE_SETS = 1
SETS = 2
SLIDES = 3  # 1 if runs alive together may end one by one
ASKED = 4  # what the caller is to work out: one of the following, of ASK_1 and ASK_2
ASK_1 = 5
ASK_2 = 6
STATE_SLOTS = 7
ASK_ROWS = 0  # of a shape on a class
ASK_LATER = 1  # a shape without so many of its earliest ranks
ASK_BEGINS = 2  # of a class
ASK_BEGIN = 3  # of a class, with `pattern`

# columns of `planned`: the way of a move
P_SET = 0  # its source, NIL for a run that begins
P_ROW = 1
P_DEAD = 2  # starts of the source that are out of the window
PLAN_COLUMNS = 3

ALWAYS_RANK = 1 << 20

# statuses besides those of `tecs.kernels.layout` and `registers.layout`
NEED_SHAPES = 17
GROW_LIVE = 18
GROW_PLAN = 19

_GOLDEN = 0x9E3779B97F4A7C1


class ShapeTables(NamedTuple):
    """The shapes found so far and their steps.

    `rows_at`: int32 (shapes, classes). `rows`: int32 (r, ROW_COLUMNS). `ranks`: int32 (n,). `shapes`: int64 (shapes,
    SHAPE_COLUMNS). `later`: int32 (n,): the number of a shape whose first rank is out of the window, its first two, and
    so on, or UNKNOWN. `begins`: int64 (classes, BEGIN_COLUMNS). `patterns`: int32 (p, 2 + 2 * states): the class, the
    shape, and `Live.pattern` of a run that begins. `chains`, int32 (p,), chains rows of one bucket. They begin in
    `buckets`, int32 (a power of two,). Shape 0 is a run that begins without rivals.
    """

    rows_at: np.ndarray
    rows: np.ndarray
    ranks: np.ndarray
    shapes: np.ndarray
    later: np.ndarray
    begins: np.ndarray
    patterns: np.ndarray
    chains: np.ndarray
    buckets: np.ndarray


class Live(NamedTuple):
    """The live sets, by the number of their cell in the structure.

    `sets`: int64 (cells, SET_COLUMNS). `starts`: int64 (cells, most ranks): those of rivals, ascending. `heads`: int64
    (partitions,): the first live set. `buckets`: int64 (a power of two,). `state`: int64 (STATE_SLOTS,). `planned`:
    int64 (as many as moves, PLAN_COLUMNS).

    The others are scratch for a run that begins. `latest`: int64 (2, states), the latest starts of its rivals by state.
    `vector`: int64 (2 * states,), the different ones of these, ascending. `pattern`: int64 (2 * states,), the ranks of
    `latest`.
    """

    sets: np.ndarray
    starts: np.ndarray
    heads: np.ndarray
    buckets: np.ndarray
    state: np.ndarray
    planned: np.ndarray
    latest: np.ndarray
    vector: np.ndarray
    pattern: np.ndarray


@kernel
def run_shapes(events, structure, tables, live, floors, consume, runs, output, recent):
    """`run_classes` for shapes: each live set of the event's partition makes a step. The arguments are those of
    `run_classes`, besides `tables` and `live`.

    O(live sets of the partition) an event. Returns NEED_SHAPES if the caller must work out `state[ASKED]` first.
    """
    st = structure.st
    status = finish_event(structure, output, recent, None)
    if status != DONE:
        return status
    while st[ROW] < events.shape[0]:
        k = st[ROW]
        c = events[k, E_CLASS]
        position = events[k, E_POSITION]
        key = events[k, E_KEY]
        low = events[k, E_LOW]
        keep = events[k, E_KEEP]
        if consume != CONSUME_NONE:
            low, keep = first_unconsumed(st, floors, consume, key, low, keep)
            if low > position:
                st[ROW] = k + 1
                continue
        status = plan_moves(structure, tables, live, c, key, low)
        if status != DONE:
            return status
        count = st[NEEDED]
        if count == 0:
            st[ROW] = k + 1
            continue
        if live.state[FREE_SETS] < 2 * count:
            return GROW_LIVE
        for i in range(count):
            write_move(structure, tables, live, i, key)
        status = apply_planned(structure, runs, count, position, low, keep, output.order, None, None)
        if status != DONE:
            return status
        st[ROW] = k + 1
        if st[OUTS] > 0:
            note_consumed(st, floors, consume, key, position)
            status = finish_event(structure, output, recent, None)
            if status != DONE:
                return status
    return DONE


@kernel
def plan_moves(structure, tables, live, c, key, low):
    """Write to `planned` the ways of the live sets of a partition on class c, and of a run that begins; `st[NEEDED]` is
    their number. Live sets without live runs are freed. DONE, or a status after which it begins anew."""
    cells, st = structure.cells, structure.st
    sets, starts, planned, state, latest = live.sets, live.starts, live.planned, live.state, live.latest
    shapes = tables.shapes
    begins = tables.begins[c, BEGINS]
    if begins < 0:
        return ask(state, ASK_BEGINS, c, 0)
    if begins > 0:
        for q in range(latest.shape[1]):
            latest[0, q] = NIL
            latest[1, q] = NIL
    count = 0
    rivals = False
    before = np.int64(NIL)
    some = live.heads[key]
    while some >= 0:
        following = sets[some, FOLLOWING]
        if cells[some, HEAD] < 0 or cells[some, HEAD_MAX] < low:
            if before < 0:
                live.heads[key] = following
            else:
                sets[before, FOLLOWING] = following
            free_set(structure, live, some)
            some = following
            continue
        shape = sets[some, SHAPE]
        dead = 0
        while dead < shapes[shape, RANKS] and starts[some, dead] < low:
            dead += 1
        if dead > 0:
            later = tables.later[shapes[shape, LATER] + dead - 1]
            if later < 0:
                return ask(state, ASK_LATER, shape, dead)
            shape = np.int64(later)
        row = np.int64(tables.rows_at[shape, c])
        if row == UNKNOWN:
            return ask(state, ASK_ROWS, shape, c)
        if begins > 0:
            bare = 1 - shapes[shape, BARE]
            known = shapes[shape, OWN] & tables.begins[c, RIVALS if bare else BARE_RIVALS]
            q = 0
            while known > 0:
                if known & 1 and latest[bare, q] < cells[some, HEAD_MAX]:
                    latest[bare, q] = cells[some, HEAD_MAX]
                    rivals = True
                known >>= 1
                q += 1
        while row >= 0:
            if count >= planned.shape[0]:
                return GROW_PLAN
            planned[count, P_SET] = some
            planned[count, P_ROW] = row
            planned[count, P_DEAD] = dead
            count += 1
            row = NIL if tables.rows[row, IS_LAST] else row + 1
        before = some
        some = following
    if begins > 0:
        shape = np.int64(0)
        if rivals:
            shape = find_begin(tables, live, c)
            if shape < 0:
                return ask(state, ASK_BEGIN, c, 0)
        row = np.int64(tables.rows_at[shape, c])
        if row == UNKNOWN:
            return ask(state, ASK_ROWS, shape, c)
        while row >= 0:
            if count >= planned.shape[0]:
                return GROW_PLAN
            planned[count, P_SET] = NIL
            planned[count, P_ROW] = row
            planned[count, P_DEAD] = 0
            count += 1
            row = NIL if tables.rows[row, IS_LAST] else row + 1
    st[NEEDED] = count
    return DONE


@hot
def ask(state, what, first, second):
    """The status for a question to the caller: of the kind `what`, about `first` and `second`."""
    state[ASKED] = what
    state[ASK_1] = first
    state[ASK_2] = second
    return NEED_SHAPES


@kernel
def find_begin(tables, live, c):
    """The shape of a run that begins, whose rivals are in `latest`; NIL if it is not known. Writes `vector` and
    `pattern`."""
    latest, vector, pattern = live.latest, live.vector, live.pattern
    n = latest.shape[1]
    size = 0
    for i in range(2 * n):
        start = latest[i // n, i % n]
        if start < 0 or not live.state[SLIDES]:
            continue
        at = size
        while at > 0 and vector[at - 1] > start:
            at -= 1
        if at > 0 and vector[at - 1] == start:
            continue
        for j in range(size, at, -1):
            vector[j] = vector[j - 1]
        vector[at] = start
        size += 1
    number = np.int64(c)
    for i in range(2 * n):
        start = latest[i // n, i % n]
        rank = np.int64(NIL)
        if start >= 0 and not live.state[SLIDES]:
            rank = np.int64(ALWAYS_RANK)
        elif start >= 0:
            rank = np.int64(0)
            while vector[rank] < start:
                rank += 1
        pattern[i] = rank
        number = mix(number, rank)
    at = tables.buckets[bucket_of(number, tables.buckets.shape[0])]
    while at >= 0:
        same = tables.patterns[at, 0] == c
        i = 0
        while same and i < 2 * n:
            same = tables.patterns[at, 2 + i] == pattern[i]
            i += 1
        if same:
            return np.int64(tables.patterns[at, 1])
        at = tables.chains[at]
    return np.int64(NIL)


@kernel
def write_move(structure, tables, live, i, key):
    """Row i of `moves`: the moves of runs that begin come first, since theirs is the latest start."""
    moves, st = structure.moves, structure.st
    count = st[NEEDED]
    begun = 0
    while begun < count and live.planned[count - 1 - begun, P_SET] < 0:
        begun += 1
    plan = live.planned[(i + count - begun) % count]
    row = tables.rows[plan[P_ROW]]
    moves[i, SOURCE] = plan[P_SET]
    moves[i, MARK_TO] = NIL if row[TO] < 0 else find_set(tables, live, key, row[TO], plan, row[TO_RANKS])
    moves[i, MARK_ACCEPTS] = row[ACCEPTS]
    moves[i, M_LABEL] = row[LABEL]
    moves[i, SKIP_TO] = row[SKIP]
    if row[SKIP] >= 0:
        moves[i, SKIP_TO] = find_set(tables, live, key, row[SKIP], plan, row[SKIP_RANKS])
    moves[i, SKIP_ACCEPTS] = row[PASSES]
    moves[i, M_TAG] = 0


@kernel
def find_set(tables, live, key, shape, plan, ranks):
    """The live set of a shape in a partition with the starts that a plan leads to, made if there is none. Expected
    O(ranks)."""
    sets, starts, buckets, state = live.sets, live.starts, live.buckets, live.state
    size = tables.shapes[shape, RANKS]
    number = mix(np.int64(key), np.int64(shape))
    for j in range(size):
        number = mix(number, start_of(tables, live, plan, ranks + j))
    bucket = bucket_of(number, buckets.shape[0])
    some = buckets[bucket]
    while some >= 0:
        same = sets[some, KEY] == key and sets[some, SHAPE] == shape
        j = 0
        while same and j < size:
            same = starts[some, j] == start_of(tables, live, plan, ranks + j)
            j += 1
        if same:
            return some
        some = sets[some, CHAIN]
    some = state[FREE_SET]
    state[FREE_SET] = sets[some, FOLLOWING]
    state[FREE_SETS] -= 1
    state[SETS] += 1
    for j in range(size):
        starts[some, j] = start_of(tables, live, plan, ranks + j)
    sets[some, KEY] = key
    sets[some, SHAPE] = shape
    sets[some, HASH] = number
    sets[some, CHAIN] = buckets[bucket]
    buckets[bucket] = some
    sets[some, FOLLOWING] = live.heads[key]
    live.heads[key] = some
    return some


@hot
def start_of(tables, live, plan, at):
    """The start that `ranks[at]` stands for at the source of a plan."""
    if plan[P_SET] < 0:
        return live.vector[tables.ranks[at]]
    return live.starts[plan[P_SET], plan[P_DEAD] + tables.ranks[at]]


@hot
def mix(number, more):
    """A hash of the hash `number` and one number `more`."""
    return (number ^ more) * _GOLDEN + (number >> 29)


@hot
def bucket_of(number, buckets):
    """The bucket of the hash `number`; `buckets` is a power of two."""
    return (number >> 24) & (buckets - 1)


@kernel
def free_set(structure, live, some):
    """Free `some` live set, one that no list of its partition has any more."""
    sets, state = live.sets, live.state
    bucket = bucket_of(sets[some, HASH], live.buckets.shape[0])
    at = live.buckets[bucket]
    if at == some:
        live.buckets[bucket] = sets[some, CHAIN]
    else:
        while sets[at, CHAIN] != some:
            at = sets[at, CHAIN]
        sets[at, CHAIN] = sets[some, CHAIN]
    clear_cell(structure.cells, structure.entries, structure.st, some)
    sets[some, KEY] = NIL
    sets[some, FOLLOWING] = state[FREE_SET]
    state[FREE_SET] = some
    state[FREE_SETS] += 1
    state[SETS] -= 1
