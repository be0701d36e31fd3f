"""The places of configurations: a hash table of their contents, and a list for each partition and set of states. Sets
that wait under one test have a hash of the value it looks up, or a skip list in its order."""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.engine.kernels.registers.layout import (
    ALL_OF_THEM,
    CONF_BEFORE,
    CONF_CHAIN,
    CONF_COUNT,
    CONF_EQUAL,
    CONF_FREE,
    CONF_HASH,
    CONF_KEY,
    CONF_LEVELS,
    CONF_MORE,
    CONF_NEXT,
    CONF_ROWS,
    CONF_STATE,
    CONF_TARGET,
    CONF_VALUE,
    HELD_FREE,
    HELD_LEFT,
    HELD_NEXT,
    HELD_REGISTERS,
    LEVELS,
    NOTHING,
    POOLED,
    REGISTERS,
    SAME,
    SAME_AT_HOME,
    SWEEP_AT,
)
from spaseq.core.engine.kernels.registers.operations import mix
from spaseq.core.jit import hot, inline, kernel
from spaseq.core.tecs.kernels.layout import HEAD, HEAD_MAX, MARK_TO, NIL, RANDOM, ROW, SKIP_TO, SOURCE
from spaseq.core.tecs.kernels.structure import clear_cell


@hot
def hash_of(key, state, registers, several, first, rows):
    """Hash of a configuration whose rows are `registers` and, from the second on, `sets[first + 1 : first + rows]`.

    PERF: the last step is for codes of doubles that are whole numbers, whose low bits are all 0. 1,000 configurations
    that an event moves took 5.6 ms without it, as most had one slot, and take 0.6 ms (2026-11-26).
    """
    hashed = mix(key, state)
    for r in range(registers.shape[0]):
        hashed = mix(hashed, registers[r])
    if several is not None:
        for i in range(1, rows):
            for r in range(registers.shape[0]):
                hashed = mix(hashed, several.sets[first + i, r])
    return mix(hashed, 7)


@hot
def equal_slot(key, state, value, table):
    """Slot of an indexed value in the chained hash table of the equality index."""
    return mix(mix(mix(key, state), value), 7) & (table.shape[0] - 1)


@kernel
def skip_path(links, tops, confs, bucket, value, cell, path):
    """path[level]: the last cell before (value, cell) in a bucket's skip list, NIL for its head in `tops`. Expected
    O(log n)."""
    at = NIL
    for i in range(LEVELS):
        level = LEVELS - 1 - i
        while True:
            following = tops[bucket, level] if at < 0 else links[at, level]
            if following < 0:
                break
            other = confs[following, CONF_VALUE]
            if other > value or (other == value and following >= cell):
                break
            at = following
        path[level] = at


@hot
def hang(confs, table, equals, index, cell):
    """Put the configuration `cell` into the two hash tables, `table` and `equals`."""
    slot = confs[cell, CONF_HASH] & (table.shape[0] - 1)
    confs[cell, CONF_CHAIN] = table[slot]
    table[slot] = cell
    state = confs[cell, CONF_STATE]
    if index[state, 0] == SAME:
        slot = equal_slot(confs[cell, CONF_KEY], state, confs[cell, CONF_VALUE], equals)
        confs[cell, CONF_EQUAL] = equals[slot]
        equals[slot] = cell


@kernel
def enter(configurations, st, cell):
    """Put a new configuration into the table, its state's list, and its state's index."""
    confs, table, heads, equals, links, tops, index, path = configurations
    key = confs[cell, CONF_KEY]
    state = confs[cell, CONF_STATE]
    hang(confs, table, equals, index, cell)
    bucket = key * index.shape[0] + state
    confs[cell, CONF_BEFORE] = NIL
    confs[cell, CONF_NEXT] = heads[bucket]
    if heads[bucket] >= 0:
        confs[heads[bucket], CONF_BEFORE] = cell
    heads[bucket] = cell
    if index[state, 0] != SAME and index[state, 0] != ALL_OF_THEM:
        x = st[RANDOM]
        x = (x * 2862933555777941757 + 3037000493) & 0x7FFFFFFFFFFFFFFF
        st[RANDOM] = x
        height = 1
        x = x >> 20
        while height < LEVELS and x & 3 == 0:
            height += 1
            x = x >> 2
        confs[cell, CONF_LEVELS] = height
        skip_path(links, tops, confs, bucket, confs[cell, CONF_VALUE], cell, path)
        for level in range(height):
            before = path[level]
            if before < 0:
                links[cell, level] = tops[bucket, level]
                tops[bucket, level] = cell
            else:
                links[cell, level] = links[before, level]
                links[before, level] = cell


@kernel
def leave_all(configurations, several, st, cell):
    """The opposite of `enter`; the cell becomes free."""
    confs, table, heads, equals, links, tops, index, path = configurations
    key = confs[cell, CONF_KEY]
    state = confs[cell, CONF_STATE]
    slot = confs[cell, CONF_HASH] & (table.shape[0] - 1)
    if table[slot] == cell:
        table[slot] = confs[cell, CONF_CHAIN]
    else:
        at = table[slot]
        while confs[at, CONF_CHAIN] != cell:
            at = confs[at, CONF_CHAIN]
        confs[at, CONF_CHAIN] = confs[cell, CONF_CHAIN]
    bucket = key * index.shape[0] + state
    before = confs[cell, CONF_BEFORE]
    following = confs[cell, CONF_NEXT]
    if before < 0:
        heads[bucket] = following
    else:
        confs[before, CONF_NEXT] = following
    if following >= 0:
        confs[following, CONF_BEFORE] = before
    if index[state, 0] == SAME:
        slot = equal_slot(key, state, confs[cell, CONF_VALUE], equals)
        if equals[slot] == cell:
            equals[slot] = confs[cell, CONF_EQUAL]
        else:
            at = equals[slot]
            while confs[at, CONF_EQUAL] != cell:
                at = confs[at, CONF_EQUAL]
            confs[at, CONF_EQUAL] = confs[cell, CONF_EQUAL]
    elif index[state, 0] != ALL_OF_THEM:
        skip_path(links, tops, confs, bucket, confs[cell, CONF_VALUE], cell, path)
        for level in range(confs[cell, CONF_LEVELS]):
            before = path[level]
            if before < 0:
                tops[bucket, level] = links[cell, level]
            else:
                links[before, level] = links[cell, level]
    if several is not None:
        held = several.held
        more = confs[cell, CONF_MORE]
        while more >= 0:
            following = held[more, HELD_NEXT]
            held[more, HELD_NEXT] = st[HELD_FREE]
            st[HELD_FREE] = more
            st[HELD_LEFT] += 1
            more = following
    confs[cell, CONF_MORE] = NIL
    confs[cell, CONF_STATE] = NIL
    confs[cell, CONF_CHAIN] = st[CONF_FREE]
    st[CONF_FREE] = cell
    st[CONF_COUNT] -= 1


@hot
def holds_rows(confs, several, cell, registers, first, rows):
    """True if a configuration holds these rows; see `hash_of`."""
    if confs[cell, CONF_ROWS] != rows:
        return False
    for r in range(registers.shape[0]):
        if confs[cell, REGISTERS + r] != registers[r]:
            return False
    if several is not None:
        held, sets = several
        more = confs[cell, CONF_MORE]
        for i in range(1, rows):
            for r in range(registers.shape[0]):
                if held[more, HELD_REGISTERS + r] != sets[first + i, r]:
                    return False
            more = held[more, HELD_NEXT]
    return True


@inline
def find_cell(configurations, several, st, key, state, registers, first, rows, source):
    """The cell of a configuration, given one if it has none; the caller has ensured room for it and in `held`.

    It is looked for at the cell `source` (or NIL) of the same partition first.
    PERF: most runs that fail a condition stay as they are. Without a hash, one that is tried costs 0.09 us, not 0.2.
    """
    confs, table, index = configurations.confs, configurations.table, configurations.indexed
    if source >= 0 and confs[source, CONF_STATE] == state and holds_rows(
        confs, several, source, registers, first, rows
    ):  # fmt: skip
        confs[source, CONF_TARGET] = st[ROW]
        return source
    hashed = hash_of(key, state, registers, several, first, rows)
    cell = table[hashed & (table.shape[0] - 1)]
    while cell >= 0:
        same = confs[cell, CONF_KEY] == key and confs[cell, CONF_STATE] == state
        if same and holds_rows(confs, several, cell, registers, first, rows):
            confs[cell, CONF_TARGET] = st[ROW]
            return cell
        cell = confs[cell, CONF_CHAIN]
    cell = st[CONF_FREE]
    st[CONF_FREE] = confs[cell, CONF_CHAIN]
    st[CONF_COUNT] += 1
    confs[cell, CONF_KEY] = key
    confs[cell, CONF_STATE] = state
    confs[cell, CONF_TARGET] = st[ROW]
    confs[cell, CONF_HASH] = hashed
    confs[cell, CONF_ROWS] = rows
    confs[cell, CONF_MORE] = NIL
    for r in range(registers.shape[0]):
        confs[cell, REGISTERS + r] = registers[r]
    value = registers[index[state, 1]] if index[state, 0] != ALL_OF_THEM else NOTHING
    if several is not None:
        held, sets = several
        for i in range(rows - 1, 0, -1):
            row = st[HELD_FREE]
            st[HELD_FREE] = held[row, HELD_NEXT]
            st[HELD_LEFT] -= 1
            held[row, HELD_NEXT] = confs[cell, CONF_MORE]
            confs[cell, CONF_MORE] = row
            for r in range(registers.shape[0]):
                held[row, HELD_REGISTERS + r] = sets[first + i, r]
            if sets[first + i, index[state, 1]] != value:
                value = NOTHING
    confs[cell, CONF_VALUE] = value if value != POOLED else NOTHING  # a pool is to be found by any value
    enter(configurations, st, cell)
    return cell


@hot
def is_indexed_by(confs, cell, key, state, value):
    """True if a configuration in the hash table of indexed values has this one, of this partition and set of states."""
    return confs[cell, CONF_VALUE] == value and confs[cell, CONF_STATE] == state and confs[cell, CONF_KEY] == key


@hot
def follower(confs, links, reach, cell):
    """The configuration after `cell` in the order that `reach` walks them."""
    if reach in (SAME, SAME_AT_HOME):
        return confs[cell, CONF_EQUAL]
    if reach == ALL_OF_THEM:
        return confs[cell, CONF_NEXT]
    return links[cell, 0]


@kernel
def sweep(structure, configurations, several, key, low):
    """Free the configurations whose runs are out of the window: of one partition, or of all (key NIL). O(cells)."""
    cells, st, confs = structure.cells, structure.st, configurations.confs
    for cell in range(cells.shape[0]):
        if confs[cell, CONF_STATE] < 0 or (key >= 0 and confs[cell, CONF_KEY] != key):
            continue
        if cells[cell, HEAD] < 0 or cells[cell, HEAD_MAX] < low:
            if cells[cell, HEAD] >= 0:
                clear_cell(cells, structure.entries, st, cell)
            leave_all(configurations, several, st, cell)
    st[SWEEP_AT] = 2 * st[CONF_COUNT] + 256


@kernel
def leave_cells(structure, configurations, several, which):
    """Free the configurations of the cells `which`, int64 (n,), whatever runs are in them."""
    for i in range(which.shape[0]):
        clear_cell(structure.cells, structure.entries, structure.st, which[i])
        leave_all(configurations, several, structure.st, which[i])


@inline
def free_left(structure, configurations, several, count):
    """Free the configurations that the moves of an event have left without runs."""
    cells, moves = structure.cells, structure.moves
    for i in range(count):
        for column in (SOURCE, MARK_TO, SKIP_TO):
            cell = moves[i, column]
            if cell >= 0 and cells[cell, HEAD] < 0 and configurations.confs[cell, CONF_STATE] >= 0:
                leave_all(configurations, several, structure.st, cell)


@kernel
def rebuild(configurations, st):
    """Fill `table`, `heads`, `equals` and `tops`, emptied, anew, and chain the free cells."""
    confs = configurations.confs
    st[CONF_FREE] = NIL
    for i in range(confs.shape[0]):
        cell = confs.shape[0] - 1 - i
        if confs[cell, CONF_STATE] >= 0:
            enter(configurations, st, cell)
        else:
            confs[cell, CONF_CHAIN] = st[CONF_FREE]
            st[CONF_FREE] = cell


@kernel
def rehash(configurations, st):
    """Fill `table` and `equals`, emptied, anew, and chain the free cells; lists stay as they are."""
    confs = configurations.confs
    st[CONF_FREE] = NIL
    for i in range(confs.shape[0]):
        cell = confs.shape[0] - 1 - i
        if confs[cell, CONF_STATE] >= 0:
            hang(confs, configurations.table, configurations.equals, configurations.indexed, cell)
        else:
            confs[cell, CONF_CHAIN] = st[CONF_FREE]
            st[CONF_FREE] = cell


@kernel
def renumber(confs, held, index):
    """Recompute hashes and indexed values of configurations with new codes. `rebuild` must follow."""
    for cell in range(confs.shape[0]):
        if confs[cell, CONF_STATE] < 0:
            continue
        hashed = mix(confs[cell, CONF_KEY], confs[cell, CONF_STATE])
        for r in range(REGISTERS, confs.shape[1]):
            hashed = mix(hashed, confs[cell, r])
        more = confs[cell, CONF_MORE]
        while more >= 0:
            for r in range(HELD_REGISTERS, held.shape[1]):
                hashed = mix(hashed, held[more, r])
            more = held[more, HELD_NEXT]
        confs[cell, CONF_HASH] = mix(hashed, 7)
        if confs[cell, CONF_VALUE] != NOTHING:
            confs[cell, CONF_VALUE] = confs[cell, REGISTERS + index[confs[cell, CONF_STATE], 1]]


@hot
def state_number(known, states):
    """The number of a set of states given as bits; -1 if it has none. `known`: int64 (slots, 2), bits and number."""
    slot = mix(states, 11) & (known.shape[0] - 1)
    while known[slot, 0] != 0:
        if known[slot, 0] == states:
            return known[slot, 1]
        slot = (slot + 1) & (known.shape[0] - 1)
    return -1


@kernel
def note_state(known, states, number):
    """Put a set of states, given as bits, into `known`, which `state_number` reads; at most half full."""
    slot = mix(states, 11) & (known.shape[0] - 1)
    while known[slot, 0] != 0:
        slot = (slot + 1) & (known.shape[0] - 1)
    known[slot, 0] = states
    known[slot, 1] = number
