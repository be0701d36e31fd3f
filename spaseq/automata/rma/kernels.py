"""The inner loop of the recogniser for automata without registers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def recognise(
    rows: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, cells: np.ndarray, first: np.ndarray,
    edges: np.ndarray, first_lost: np.ndarray, lost: np.ndarray, latest: np.ndarray, starts: np.ndarray, never: float,
    unmarked: float, size: float, found: np.ndarray,
) -> None:  # fmt: skip
    """found[i] is set at each row i of `rows` at which a run accepts inside the window.

    In: rows int64 (m,); classes int32 (n,); coordinates int64 or float64 (n,), never decreasing within a cell; cells
    int64 (n,), first cell of the row's partition; first int64 (classes + 1,), edges int64 (e, 4): source, target (-1
    where nothing leaves it), marks, accepts, those of class c being first[c] to first[c + 1], without the loops of
    states that wait; first_lost, lost int64 likewise: the states in which no run can wait through the class; size, the
    greatest distance of a match's events.
    In and out: latest, coordinates' dtype, (partitions * states,): the latest first marked coordinate of the runs in a
    state, `unmarked` (greater than any) where a run has marked nothing, `never` (less than any) where there is none.
    Scratch: starts, of the same dtype, as many as a class has edges. Out: found bool (n,), zeroed.

    Of the runs in one state only the one that began latest matters: what it does the others do, and it leaves the
    window last. O(m) times the edges and lost states of a class, no allocation.
    """
    for j in range(rows.shape[0]):
        i = rows[j]
        base, now, kind = cells[i], coordinates[i], classes[i]
        low, high = first[kind], first[kind + 1]
        for e in range(low, high):
            start = latest[base + edges[e, 0]]
            if start == unmarked:
                if edges[e, 2]:
                    start = now
            elif start != never and now - start > size:
                start = never
            if edges[e, 3] and start != never:
                found[i] = True
            starts[e - low] = start
        for d in range(first_lost[kind], first_lost[kind + 1]):
            latest[base + lost[d]] = never
        for e in range(low, high):
            target = edges[e, 1]
            if target >= 0 and starts[e - low] > latest[base + target]:
                latest[base + target] = starts[e - low]


# With registers: configurations in arrays

NIL = -1
NOTHING = -(1 << 63)
"""In a slot of a register that nothing can read."""
UNKNOWN = NOTHING + 1
"""The code of NULL: every comparison fails."""
CELL = 0  # columns of a configuration: partition * states + state, NIL once it is gone
NEXT = 1  # the next one in its cell
SLOTS = 2  # from here on what the registers hold, a code each
TARGET = 0  # columns of a move: NIL where nothing leaves the target
MARKS = 1
ACCEPTS = 2
LITERALS = 3
LITERALS_END = 4
WRITES = 5  # registers as bits
FORGETS = 6
DONE = 0
GROW_ARRIVING = 1
REBUILD = 2


@njit(cache=True)
def holds(symbol: int, left: int, right: int) -> bool:
    """`left symbol right` of codes; `symbol`: 0 =, 1 !=, 2 <, 3 <=, 4 >, 5 >=. NULL compares with nothing."""
    if left == UNKNOWN or right == UNKNOWN:
        return False
    if symbol == 0:
        return left == right
    if symbol == 1:
        return left != right
    if symbol == 2:
        return left < right
    if symbol == 3:
        return left <= right
    if symbol == 4:
        return left > right
    return left >= right


@njit(cache=True)
def slot_of(cell: int, held: np.ndarray, confs: np.ndarray, table: np.ndarray) -> int:
    """Where in the hash table the configuration of this cell that holds this is, or where it may be put.

    The table has room, and a power of two of entries. Those of configurations that are gone stay until `rebuild`.
    """
    code = np.uint64(cell) * np.uint64(0x9E3779B97F4A7C15)
    for s in range(held.shape[0]):
        code = (code ^ np.uint64(held[s])) * np.uint64(0xFF51AFD7ED558CCD)
        code ^= code >> np.uint64(32)
    mask = table.shape[0] - 1
    at = np.int64(code >> np.uint64(1)) & mask
    while table[at] != NIL:
        conf = table[at]
        if confs[conf, CELL] == cell:
            same = True
            for s in range(held.shape[0]):
                if confs[conf, SLOTS + s] != held[s]:
                    same = False
                    break
            if same:
                return at
        at = (at + 1) & mask
    return at


@njit(cache=True)
def arrive(
    cell: int, held: np.ndarray, start: float, confs: np.ndarray, starts: np.ndarray, heads: np.ndarray,
    table: np.ndarray, counts: np.ndarray,
) -> None:  # fmt: skip
    """A run is in a configuration of the cell; of all that are, the latest start counts. There is room for one more.

    counts int64 (2,): configurations alive, rows of `confs` used. Expected O(registers).
    """
    at = slot_of(cell, held, confs, table)
    conf = table[at]
    if conf != NIL:
        starts[conf] = max(starts[conf], start)
        return
    conf = counts[1]
    counts[0] += 1
    counts[1] += 1
    table[at] = conf
    confs[conf, CELL] = cell
    confs[conf, NEXT] = heads[cell]
    heads[cell] = conf
    starts[conf] = start
    for s in range(held.shape[0]):
        confs[conf, SLOTS + s] = held[s]


@njit(cache=True)
def rebuild(confs: np.ndarray, heads: np.ndarray, table: np.ndarray, counts: np.ndarray) -> None:
    """Lists and hash table of the first counts[1] configurations, all alive. O(configurations), heads and table."""
    heads[:] = NIL
    table[:] = NIL
    for conf in range(counts[1]):
        cell = confs[conf, CELL]
        confs[conf, NEXT] = heads[cell]
        heads[cell] = conf
        table[slot_of(cell, confs[conf, SLOTS:], confs, table)] = conf


@njit(cache=True)
def passes(
    move: np.ndarray, literals: np.ndarray, event: np.ndarray, confs: np.ndarray, conf: int
) -> bool:
    """Whether all literals of a move hold. A literal, int64 (6,): symbol, whether it is negated, and for each side
    whether it is a slot (else a column of the event), and which."""
    for i in range(move[LITERALS], move[LITERALS_END]):
        left = confs[conf, SLOTS + literals[i, 3]] if literals[i, 2] else event[literals[i, 3]]
        right = confs[conf, SLOTS + literals[i, 5]] if literals[i, 4] else event[literals[i, 5]]
        if holds(literals[i, 0], left, right) == (literals[i, 1] != 0):
            return False
    return True


@njit(cache=True)
def recognise_guarded(
    begin: int, rows: np.ndarray, classes: np.ndarray, coordinates: np.ndarray, keys: np.ndarray, values: np.ndarray,
    states: int, initial: np.ndarray, first: np.ndarray, moves: np.ndarray, literals: np.ndarray, stays: np.ndarray,
    registers: np.ndarray, columns: np.ndarray, unmarked: float, size: float, confs: np.ndarray, starts: np.ndarray,
    heads: np.ndarray, begun: np.ndarray, table: np.ndarray, counts: np.ndarray, arriving: np.ndarray,
    begins: np.ndarray, most: int, found: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """As `recognise` for automata with registers: (status, the row of `rows` that is to be done next).

    In: rows, classes, coordinates as there; keys int64 (n,), partitions; values int64 (n, c), codes that compare like
    the values they stand for, `UNKNOWN` for NULL; initial, the start states; moves int64 (m, 7), those of class c in
    state q being first[c * states + q] and up to the next; stays bool (classes * states,): runs may wait; registers
    int64 (s,): of which register a slot is, columns int64 (s,): what it takes of an event.
    In and out: confs int64 (k, 2 + s), starts (k,), in lists from heads int64 (partitions * states,) and found by
    `table`; begun bool (partitions,); counts int64 (2,). Scratch: arriving int64 (a, 1 + s), begins (a,).
    Out: found bool (n,). Stops between two events with `GROW_ARRIVING`, or with `REBUILD` where there is no room for
    more configurations or more than `most` are alive. An event costs the configurations whose state can move.
    """
    width = registers.shape[0]
    for j in range(begin, rows.shape[0]):
        i = rows[j]
        base, now, kind = keys[i] * states, coordinates[i], classes[i] * states
        if counts[1] + initial.shape[0] + arriving.shape[0] > confs.shape[0] or counts[0] > most:
            return REBUILD, j
        if not begun[keys[i]]:
            begun[keys[i]] = True
            arriving[0, 1:] = NOTHING
            for q in initial:
                arrive(base + q, arriving[0, 1:], unmarked, confs, starts, heads, table, counts)
        count = 0
        for q in range(states):
            if first[kind + q] == first[kind + q + 1]:
                continue
            conf = heads[base + q]
            while conf != NIL:
                start = starts[conf]
                if start == unmarked or now - start <= size:
                    for m in range(first[kind + q], first[kind + q + 1]):
                        move = moves[m]
                        if not passes(move, literals, values[i], confs, conf):
                            continue
                        if move[ACCEPTS]:
                            found[i] = True
                        if move[TARGET] == NIL:
                            continue
                        if count == arriving.shape[0]:
                            return GROW_ARRIVING, j
                        arriving[count, 0] = base + move[TARGET]
                        begins[count] = now if move[MARKS] and start == unmarked else start
                        for s in range(width):
                            bit = np.int64(1) << registers[s]
                            if move[WRITES] & bit:
                                arriving[count, 1 + s] = values[i, columns[s]]
                            elif move[FORGETS] & bit:
                                arriving[count, 1 + s] = NOTHING
                            else:
                                arriving[count, 1 + s] = confs[conf, SLOTS + s]
                        count += 1
                conf = confs[conf, NEXT]
        for q in range(states):
            if stays[kind + q] and first[kind + q] == first[kind + q + 1]:
                continue
            before, conf = NIL, heads[base + q]
            while conf != NIL:
                following = confs[conf, NEXT]
                if stays[kind + q] and (starts[conf] == unmarked or now - starts[conf] <= size):
                    before = conf
                else:
                    confs[conf, CELL] = NIL
                    counts[0] -= 1
                    if before == NIL:
                        heads[base + q] = following
                    else:
                        confs[before, NEXT] = following
                conf = following
        for a in range(count):
            arrive(arriving[a, 0], arriving[a, 1:], begins[a], confs, starts, heads, table, counts)
    return DONE, rows.shape[0]
