"""After a match: the runs and matches that it discards, by the rule of a query.

All rules discard by the start, in the partition of the match. A rule that discards a prefix of the starts raises a
floor. TO NEXT EVENT discards single starts, which are kept in a hash table (`dead`). The runs of a dead start are not
searched: they leave a cell when it next moves (`drop_dead_sources`), or when the table is full (`drop_dead`).

The matches of one event are all listed, put in the order of NEXT, and taken one by one. With BEST_OF_START a cell
keeps, of the runs with one start, only the best: the others could complete only where the best does, and then it
discards them. So an event lists at most one match for each start and accepting move. Each of them is then discarded or
has discarded its own start. So over a stream a run is listed once.

`key` is the partition of the event; a place is a position shifted by `bits`, and a label.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.jit import hot, kernel
from spaseq.core.tecs.kernels.layout import (
    AFTER_ONCE,
    AFTER_PAST_LAST,
    AFTER_TO_FIRST,
    AFTER_TO_LAST,
    AFTER_TO_NEXT,
    CHOOSING,
    CHOSEN,
    COUNTED,
    DEAD_COUNT,
    DEAD_KEY,
    DEAD_START,
    DONE,
    END,
    FIRST,
    FLUSH,
    GROW_DEAD,
    GROW_LISTED,
    HEAD,
    HEAD_MAX,
    KEY,
    LABEL_BITS,
    LENGTH,
    LISTED,
    LISTED_PLACES,
    LISTING,
    MATCHES,
    NEEDED,
    NEVER,
    NEXT,
    NIL,
    NODE,
    NODE_MAX,
    OUT,
    OUTS,
    PLACES,
    SOURCE,
    STEP,
    WRITING,
    WRITTEN,
)
from spaseq.core.tecs.kernels.structure import (
    clear_cell,
    enumerate_outs,
    free_entries,
)


@hot
def dead_slot(dead, key, start):
    """The slot of a start in the table, or the free one where it belongs."""
    mask = dead.shape[0] - 1
    hashed = (start ^ (key * 0x632BE59BD9B4E01)) * 0x9E3779B97F4A7C1
    slot = (hashed ^ (hashed >> 29)) & mask
    while dead[slot, DEAD_START] >= 0 and (dead[slot, DEAD_START] != start or dead[slot, DEAD_KEY] != key):
        slot = (slot + 1) & mask
    return slot


@hot
def is_dead(dead, st, key, start):
    """True if a match of the partition discarded what began at `start`."""
    return st[DEAD_COUNT] > 0 and dead[dead_slot(dead, key, start), DEAD_START] >= 0


@kernel
def drop_dead_entries(cells, entries, st, dead, cell, key):
    """Removes the runs of dead starts from a cell that keeps single runs. O(entries)."""
    last = np.int64(NIL)
    entry = cells[cell, FIRST]
    while entry >= 0:
        following = entries[entry, NEXT]
        if is_dead(dead, st, key, entries[entry, NODE_MAX]):
            if last < 0:
                cells[cell, FIRST] = following
            else:
                entries[last, NEXT] = following
            entries[entry, NEXT] = NIL
            free_entries(entries, st, entry)
            cells[cell, LENGTH] -= 1
        else:
            last = entry
        entry = following
    if cells[cell, FIRST] >= 0:
        cells[cell, HEAD] = entries[cells[cell, FIRST], NODE]
        cells[cell, HEAD_MAX] = entries[cells[cell, FIRST], NODE_MAX]
    else:
        clear_cell(cells, entries, st, cell)
        cells[cell, HEAD_MAX] = NIL


@kernel
def drop_dead(cells, entries, st, dead, which, keys):
    """Removes the runs of dead starts from the cells `which`, of the partitions `keys` (int64 (n,) each), and empties
    the table. O(entries + slots)."""
    for i in range(which.shape[0]):
        if cells[which[i], HEAD] >= 0:
            drop_dead_entries(cells, entries, st, dead, which[i], keys[i])
    for slot in range(dead.shape[0]):
        dead[slot, DEAD_START] = NIL
    st[DEAD_COUNT] = 0


@kernel
def drop_dead_sources(cells, entries, st, moves, count, dead):
    """Removes the runs of dead starts from the sources of the moves. O(entries)."""
    if st[DEAD_COUNT] > 0:
        for i in range(count):
            if moves[i, SOURCE] >= 0:
                drop_dead_entries(cells, entries, st, dead, moves[i, SOURCE], st[KEY])


@kernel
def compare_listed(matches, places, bits, i, j):
    """-1 if match i is taken before match j, 1 if behind it, 0 if they are one complex event.

    The one that has the smallest position of the symmetric difference comes first ([CEL] §4, NEXT); of equal positions
    the one that began first. O(positions).
    """
    a, b = matches[2, i], matches[2, j]
    a_end, b_end = matches[2, i + 1], matches[2, j + 1]
    while a < a_end and b < b_end:
        one = places[a] >> bits
        other = places[b] >> bits
        if one != other:
            return -1 if one < other else 1
        a += 1
        b += 1
    if a < a_end:
        return -1
    if b < b_end:
        return 1
    if matches[0, i] != matches[0, j]:
        return -1 if matches[0, i] < matches[0, j] else 1
    return 0


@kernel
def sort_listed(matches, places, bits, order, count):
    """Put the numbers of the first `count` matches in their order, in one of the first two rows of `order`: that row.
    Merge sort, O(count log count) comparisons."""
    for i in range(count):
        order[0, i] = i
    row = 0
    width = 1
    while width < count:
        first = 0
        while first < count:
            i = first
            middle = min(first + width, count)
            j = middle
            stop = min(first + 2 * width, count)
            for at in range(first, stop):
                left = i < middle
                if left and j < stop:
                    left = compare_listed(matches, places, bits, order[row, i], order[row, j]) <= 0
                if left:
                    order[1 - row, at] = order[row, i]
                    i += 1
                else:
                    order[1 - row, at] = order[row, j]
                    j += 1
            first = stop
        row = 1 - row
        width *= 2
    return row


@kernel
def choose_first(after, bits, order, count):
    """Write the numbers of the first match in the order to row 2 of `order`; how many there are: valuations of it."""
    matches, places = after.matches, after.places
    best = 0
    for i in range(1, count):
        if compare_listed(matches, places, bits, i, best) < 0:
            best = i
    chosen = 0
    for i in range(best, count):
        if i == best or (not after.hidden and compare_listed(matches, places, bits, i, best) == 0):
            order[2, chosen] = i
            chosen += 1
    return chosen


@kernel
def choose_matches(st, after):
    """Take the listed matches by the rule: row 2 of `order` gets the numbers of those that are reported, and the floor
    or the dead starts change. How many there are."""
    rule, order, dead = after.rule, after.order, after.dead
    matches, places = after.matches, after.places
    bits, count, key = st[LABEL_BITS], st[LISTED], st[KEY]
    if rule in (AFTER_PAST_LAST, AFTER_ONCE):
        after.floors[key] = NEVER if rule == AFTER_ONCE else st[END] + 1
        return choose_first(after, bits, order, count)
    row = sort_listed(matches, places, bits, order, count)
    floor = after.floors[key]
    chosen = 0
    i = 0
    while i < count:
        first = order[row, i]
        start = matches[0, first]
        stop = i + 1
        while stop < count and compare_listed(matches, places, bits, order[row, stop], first) == 0:
            stop += 1
        if start >= floor and not (rule == AFTER_TO_NEXT and is_dead(dead, st, key, start)):
            reached = np.int64(NIL)
            for j in range(i, stop):
                one = order[row, j]
                if j == i or not after.hidden:
                    order[2, chosen] = one
                    chosen += 1
                if rule in (AFTER_TO_FIRST, AFTER_TO_LAST):
                    for at in range(matches[2, one], matches[2, one + 1]):
                        if after.takes[places[at] & ((1 << bits) - 1)]:
                            place = places[at] >> bits
                            if reached < 0 or (place < reached) == (rule == AFTER_TO_FIRST):
                                reached = place
            floor = max(floor, reached)
            if rule == AFTER_TO_NEXT:
                slot = dead_slot(dead, key, start)
                dead[slot, DEAD_KEY] = key
                dead[slot, DEAD_START] = start
                st[DEAD_COUNT] += 1
        i = stop
    after.floors[key] = floor
    return chosen


@hot
def exchange_cursors(st):
    """Exchange the places where `enumerate_outs` writes: in the output, and among the matches of the event."""
    st[MATCHES], st[LISTED] = st[LISTED], st[MATCHES]
    st[PLACES], st[LISTED_PLACES] = st[LISTED_PLACES], st[PLACES]


@kernel
def finish_after(structure, output, after):
    """`finish_event` under a rule: list the matches of the event, choose by the rule, and write the chosen ones.

    Goes on from `st[STEP]`, after GROW_LISTED, GROW_DEAD, FLUSH, or the statuses of `enumerate_outs`.
    """
    st = structure.st
    if st[OUTS] == 0:
        return DONE
    if st[STEP] == LISTING:
        exchange_cursors(st)
        status = enumerate_outs(
            structure.nodes, st, structure.outs, output.stack, output.path, output.below, after.matches, after.places,
            True, None,
        )  # fmt: skip
        exchange_cursors(st)
        if status != DONE:
            return GROW_LISTED if status == FLUSH else status
        st[STEP] = CHOOSING
    if st[STEP] == CHOOSING:
        if after.rule == AFTER_TO_NEXT and 2 * (st[DEAD_COUNT] + st[LISTED]) > after.dead.shape[0]:
            st[NEEDED] = st[LISTED]
            return GROW_DEAD
        st[CHOSEN] = choose_matches(st, after) if st[LISTED] > 0 else 0
        st[WRITTEN] = 0
        st[STEP] = WRITING
    status = write_chosen(st, after, output)
    if status == DONE:
        st[STEP] = LISTING
        st[LISTED] = 0
        st[LISTED_PLACES] = 0
        st[OUTS] = 0
        st[OUT] = 0
    return status


@kernel
def write_chosen(st, after, output):
    """Write the chosen matches to the output, or count them; FLUSH if it is full. Hidden labels are left out."""
    if not output.write:
        st[COUNTED] += st[CHOSEN]
        return DONE
    matches, places = output.matches, output.places
    hidden = st[LABEL_BITS] if after.hidden else 0
    while st[WRITTEN] < st[CHOSEN]:
        one = after.order[2, st[WRITTEN]]
        first = after.matches[2, one]
        size = after.matches[2, one + 1] - first
        m = st[MATCHES]
        at = st[PLACES]
        if m + 1 >= matches.shape[1] or at + size > places.shape[0]:
            st[NEEDED] = size
            return FLUSH
        for i in range(size):
            places[at + i] = after.places[first + i] >> hidden
        matches[0, m] = after.matches[0, one]
        matches[1, m] = st[END]
        matches[2, m + 1] = at + size
        matches[3, m] = after.matches[3, one]
        st[PLACES] = at + size
        st[MATCHES] = m + 1
        st[WRITTEN] += 1
    return DONE
