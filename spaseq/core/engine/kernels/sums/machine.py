"""Events through a sliding window, in a time that does not depend on it: two stacks.

An event is an affine map of the row vector v of all deterministic states: v becomes v M + b. M are its transitions, b
the runs that start at it. The matches that end at it are v a + s, with a and s its accepting transitions. All of it is
over the semiring of `rows`.

The window is the composition of the maps of its events, applied to no runs. It is kept in two parts. The *back* has the
runs that started since the last flip, as a vector, and its events. The *front* has a vector for each earlier start that
may still be alive: all runs from that start on, as they were at the flip. `matrix` is the product of all maps since
then. A start that leaves the window is taken from the front. If the front is empty, the back becomes the front:
from its last event to its first, with the product of the maps behind each. So each event is met twice, whatever the
window, and nothing is ever subtracted (`docs/algorithms.md` has the proof).
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

from spaseq.core.engine.kernels.drivers import first_unconsumed, note_consumed
from spaseq.core.engine.kernels.sums.layout import (
    BACK,
    CLASS,
    EARLIER,
    FIRST,
    FREE_ENTRIES,
    FREE_ENTRY,
    FREE_EVENT,
    FRONT,
    LAST,
    LENGTH,
    NEWER,
    OUTPUTS,
    PLACE,
    SPARE_ONE,
    SPARE_ROWS,
    SPARE_RUNS,
    SPARE_SUM,
    START,
    SUMS_CHAIN,
    SUMS_DONE,
    SUMS_FLUSH,
    SUMS_FRONT,
    SUMS_STATES,
)
from spaseq.core.engine.kernels.sums.rows import add_marked, add_product, add_row, copy_row
from spaseq.core.jit import kernel
from spaseq.core.tecs.kernels.layout import (
    CONSUME_NONE,
    E_CLASS,
    E_KEY,
    E_LOW,
    E_POSITION,
    E_ROW,
    NEVER,
    NIL,
    ROW,
    UNKNOWN_STATE,
)

STAY = -2
"""As of `spaseq.core.automata.determinise`."""


@kernel
def run_sums(events, weights, held, tables, width, floors, consume, stores, added, takes, output):
    """Move the runs over `events`, int64 (n, EVENT_COLUMNS), from that at st[ROW] on, and write the row of all matches
    that end at each; the status.

    `weights`: the numbers of each of the events. `tables`: `spaseq.core.automata.determinise.Tables`. `floors`: as of
    `run_classes`. `stores`: 0 if no start leaves a window before all others do, so that no event is kept. `added`: how
    many of the whole numbers are added. Amortised O(width * affected states) an event, and O(width²) at one at which
    matches end.
    """
    st, keyed, own = held.st, held.keyed, held.own
    if st[UNKNOWN_STATE]:
        return SUMS_STATES
    while st[ROW] < events.shape[0]:
        i = st[ROW]
        if own[OUTPUTS] == output.ends.shape[1]:
            return SUMS_FLUSH
        c = events[i, E_CLASS]
        position = events[i, E_POSITION]
        key = events[i, E_KEY]
        low = events[i, E_LOW]
        if consume != CONSUME_NONE:
            low, _ = first_unconsumed(st, floors, consume, key, low, low)
            if low > position:
                st[ROW] = i + 1
                continue
        if stores:
            if own[FREE_EVENT] == NIL:
                return SUMS_CHAIN
            if keyed[key, FIRST] < low and keyed[key, LENGTH] > own[FREE_ENTRIES]:
                return SUMS_FRONT
            leave_window(held, tables, width, key, low, added, takes)
        elif keyed[key, LAST] < low:
            clear_rows(held.back, key * width, width)
            keyed[key, FIRST] = NEVER
        if complete(i, events, weights, held, tables, width, added, takes, output):
            note_consumed(st, floors, consume, key, position)
        moves = keyed[key, FIRST] != NEVER and move_rows(
            held.back, key * width, weights, i, held, tables, c, added, takes, True
        )
        entry = keyed[key, FRONT]
        if entry != NIL:
            for r in range(width):
                if held.front.ints[entry * width + r, 0] != 0:
                    move_rows(held.matrix, (key * width + r) * width, weights, i, held, tables, c, added, takes, True)
        starts = start_runs(held.back, key * width, weights, i, held, tables, c, added, takes)
        if starts:
            keyed[key, LAST] = position
            if keyed[key, FIRST] == NEVER:
                keyed[key, FIRST] = position
        if stores and (moves or starts):
            keep_event(held, weights, i, key, c, position)
            if starts:
                keyed[key, LENGTH] += 1
        st[ROW] = i + 1
        if st[UNKNOWN_STATE]:
            return SUMS_STATES
    return SUMS_DONE


@kernel
def clear_rows(rows, first, count):
    """No runs in these rows."""
    for r in range(first, first + count):
        rows.ints[r, 0] = 0


@kernel
def leave_window(held, tables, width, key, low, added, takes):
    """The runs of a partition that started before `low` end."""
    keyed, links, own = held.keyed, held.links, held.own
    entry = keyed[key, FRONT]
    while entry != NIL and links[entry, START] < low:
        newer = links[entry, NEWER]
        links[entry, NEWER] = own[FREE_ENTRY]
        own[FREE_ENTRY] = entry
        own[FREE_ENTRIES] += 1
        entry = newer
    keyed[key, FRONT] = entry
    if entry == NIL and keyed[key, FIRST] < low:
        flip(held, tables, width, key, low, added, takes)


@kernel
def flip(held, tables, width, key, low, added, takes):
    """The back becomes the front, which is empty, but for the starts before `low`.

    From the last event on, `product` is the product of the maps of all events behind the one at hand. The runs that
    start at an event, times that product, are where they are now.
    """
    keyed, links, own, chain, front, product = held.keyed, held.links, held.own, held.chain, held.front, held.product
    clear_rows(product, 0, width * width)
    for r in range(width):
        copy_row(product, r * width + r, held.spare, SPARE_ONE)
    entry, event = NIL, keyed[key, BACK]
    while event != NIL:
        if chain[event, PLACE] >= low:
            c = chain[event, CLASS]
            if start_states(tables, c):
                newer, entry = entry, own[FREE_ENTRY]
                own[FREE_ENTRY] = links[entry, NEWER]
                own[FREE_ENTRIES] -= 1
                links[entry, NEWER] = newer
                links[entry, START] = chain[event, PLACE]
                start_entry(held, tables, width, entry, newer, c, event, added, takes)
            precede(held, tables, width, c, event, added, takes)
        earlier = chain[event, EARLIER]
        chain[event, EARLIER] = own[FREE_EVENT]
        own[FREE_EVENT] = event
        event = earlier
    keyed[key, FRONT] = entry
    keyed[key, BACK] = NIL
    keyed[key, FIRST] = NEVER
    keyed[key, LENGTH] = 0
    base = key * width
    clear_rows(held.back, base, width)
    if entry != NIL:
        clear_rows(held.matrix, base * width, width * width)
        for r in range(width):
            if front.ints[entry * width + r, 0] != 0:
                copy_row(held.matrix, (base + r) * width + r, held.spare, SPARE_ONE)


@kernel
def start_states(tables, c):
    """True if runs start at an event of class c and go on."""
    for a in range(tables.init_from[c], tables.init_from[c + 1]):
        if tables.init[a, 0] >= 0 or tables.init[a, 3] >= 0:
            return True
    return False


@kernel
def start_entry(held, tables, width, entry, newer, c, event, added, takes):
    """The runs from `event` on, and all of the entry `newer`, as they are at the flip."""
    front, product, spare = held.front, held.product, held.spare
    for s in range(width):
        if newer == NIL:
            front.ints[entry * width + s, 0] = 0
        else:
            copy_row(front, entry * width + s, front, newer * width + s)
    for a in range(tables.init_from[c], tables.init_from[c + 1]):
        marked, skipped = tables.init[a, 0], tables.init[a, 3]
        if marked >= 0:
            spare.ints[SPARE_RUNS, 0] = 0
            add_marked(spare, SPARE_RUNS, spare, SPARE_ONE, added, takes, tables.init[a, 2], held.weights, event)
            for s in range(width):
                add_product(front, entry * width + s, spare, SPARE_RUNS, product, marked * width + s, added)
        if skipped >= 0:
            for s in range(width):
                add_row(front, entry * width + s, product, skipped * width + s, added)


@kernel
def precede(held, tables, width, c, event, added, takes):
    """`product` becomes that of the map of `event` and of those behind it: M P, row by row of the affected states."""
    product, spare = held.product, held.spare
    first, last = tables.affected_from[c], tables.affected_from[c + 1]
    for s in range(width):  # column by column, as each is by itself
        for a in range(first, last):
            spare.ints[SPARE_ROWS + a - first, 0] = 0
            marked, skipped = tables.affected[a, 1], tables.affected[a, 4]
            if marked >= 0:
                add_marked(spare, SPARE_ROWS + a - first, product, marked * width + s, added, takes,
                           tables.affected[a, 3], held.weights, event)  # fmt: skip
            if skipped >= 0:
                add_row(spare, SPARE_ROWS + a - first, product, skipped * width + s, added)
        for a in range(first, last):
            if tables.affected[a, 4] != STAY:
                product.ints[tables.affected[a, 0] * width + s, 0] = 0
        for a in range(first, last):
            add_row(product, tables.affected[a, 0] * width + s, spare, SPARE_ROWS + a - first, added)


@kernel
def move_rows(rows, base, weights, e, held, tables, c, added, takes, notes):
    """The vector at `base` of `rows` times the map of an event of class c, whose numbers are row e of `weights`; True
    if it changes. With `notes` a state that is reached and not known is noted."""
    spare, moves = held.spare, False
    first, last = tables.affected_from[c], tables.affected_from[c + 1]
    for a in range(first, last):
        marked, skipped = tables.affected[a, 1], tables.affected[a, 4]
        at = SPARE_ROWS + a - first
        if rows.ints[base + tables.affected[a, 0], 0] == 0 or (marked < 0 and skipped < 0 and skipped == STAY):
            spare.ints[at, 0] = 0
        else:
            copy_row(spare, at, rows, base + tables.affected[a, 0])
            moves = True
    if not moves:
        return False
    for a in range(first, last):
        if tables.affected[a, 4] != STAY:
            rows.ints[base + tables.affected[a, 0], 0] = 0
    for a in range(first, last):
        at = SPARE_ROWS + a - first
        if spare.ints[at, 0] == 0:
            continue
        marked, skipped = tables.affected[a, 1], tables.affected[a, 4]
        if marked >= 0:
            add_marked(rows, base + marked, spare, at, added, takes, tables.affected[a, 3], weights, e)
            if notes and not tables.known[marked]:
                held.st[UNKNOWN_STATE] = 1
        if skipped >= 0:
            add_row(rows, base + skipped, spare, at, added)
            if notes and not tables.known[skipped]:
                held.st[UNKNOWN_STATE] = 1
    return True


@kernel
def start_runs(rows, base, weights, e, held, tables, c, added, takes):
    """The runs that start at an event of class c join the vector at `base`; True if there are any."""
    starts = False
    for a in range(tables.init_from[c], tables.init_from[c + 1]):
        marked, skipped = tables.init[a, 0], tables.init[a, 3]
        if marked >= 0:
            starts = True
            add_marked(rows, base + marked, held.spare, SPARE_ONE, added, takes, tables.init[a, 2], weights, e)
            if not tables.known[marked]:
                held.st[UNKNOWN_STATE] = 1
        if skipped >= 0:
            starts = True
            add_row(rows, base + skipped, held.spare, SPARE_ONE, added)
            if not tables.known[skipped]:
                held.st[UNKNOWN_STATE] = 1
    return starts


@kernel
def keep_event(held, weights, e, key, c, position):
    """Put an event behind the back of its partition. There is room."""
    own, chain, keyed = held.own, held.chain, held.keyed
    event = own[FREE_EVENT]
    own[FREE_EVENT] = chain[event, EARLIER]
    chain[event, EARLIER] = keyed[key, BACK]
    chain[event, CLASS] = c
    chain[event, PLACE] = position
    copy_row(held.weights, event, weights, e)
    keyed[key, BACK] = event


@kernel
def complete(i, events, weights, held, tables, width, added, takes, output):
    """Write the row of all matches that end at event i, before it moves any run; True if there are any."""
    spare, own = held.spare, held.own
    c, key = events[i, E_CLASS], events[i, E_KEY]
    spare.ints[SPARE_SUM, 0] = 0
    for a in range(tables.init_from[c], tables.init_from[c + 1]):
        if tables.init[a, 1]:
            add_marked(spare, SPARE_SUM, spare, SPARE_ONE, added, takes, tables.init[a, 2], weights, i)
        if tables.init[a, 4]:
            add_row(spare, SPARE_SUM, spare, SPARE_ONE, added)
    entry = held.keyed[key, FRONT]
    for a in range(tables.affected_from[c], tables.affected_from[c + 1]):
        if tables.affected[a, 2] == 0 and tables.affected[a, 5] == 0:
            continue
        p = tables.affected[a, 0]
        spare.ints[SPARE_RUNS, 0] = 0
        add_row(spare, SPARE_RUNS, held.back, key * width + p, added)
        if entry != NIL:
            for r in range(width):
                add_product(spare, SPARE_RUNS, held.front, entry * width + r,
                            held.matrix, (key * width + r) * width + p, added)  # fmt: skip
        if tables.affected[a, 2]:
            add_marked(spare, SPARE_SUM, spare, SPARE_RUNS, added, takes, tables.affected[a, 3], weights, i)
        if tables.affected[a, 5]:
            add_row(spare, SPARE_SUM, spare, SPARE_RUNS, added)
    if spare.ints[SPARE_SUM, 0] == 0:
        return False
    m = own[OUTPUTS]
    output.ends[0, m] = events[i, E_POSITION]
    output.ends[1, m] = events[i, E_ROW]
    output.ends[2, m] = key
    copy_row(output.rows, m, spare, SPARE_SUM)
    own[OUTPUTS] = m + 1
    return True
