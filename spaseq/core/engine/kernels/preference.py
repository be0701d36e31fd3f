"""From events to the best runs, for NEXT and LAST: lists of places instead of single states.

A *group* is a set of machines (`spaseq.core.tecs.kernels.choices`) of one partition that are in the same list of
places. Group g has a row of `groups` (int64, (groups, GROUP_COLUMNS)), and its place i has cell `g * width + i`. The
groups of a partition are a chain from `first` (int64, (partitions,)). Two groups of one list become one if their keys
do not overlap. If they do, both stay: the list is right for both, and the answer is that of the least live key.

`steps` has the transitions of lists, `made` the nodes that mark the event at hand (`mark`); `trail` is scratch of
`join`.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.drivers import first_unconsumed, note_consumed
from spaseq.core.jit import hot, inline, kernel
from spaseq.core.tecs.kernels.choices import empty_cell, fold, prepend, start_of, write_run
from spaseq.core.tecs.kernels.layout import (
    CONSUME_NONE,
    COUNTED,
    DONE,
    E_CLASS,
    E_KEEP,
    E_KEY,
    E_LOW,
    E_POSITION,
    END,
    FIRST,
    FREE_COUNT,
    FREE_GROUP,
    G_KEY,
    G_LIST,
    G_NEXT,
    G_OLDEST,
    GROW_GROUPS,
    HEAD,
    HEAD_MAX,
    IS_OUTPUT,
    LENGTH,
    LONGEST,
    LOW,
    MAX,
    MERGED,
    NEED_STATES,
    NEVER,
    NIL,
    OLDEST,
    OUTS,
    ROW,
    T_ACCEPTS,
    T_COUNT,
    T_FROM,
    T_LIST,
    TAIL,
    UNKNOWN_CLASS,
    UNKNOWN_STATE,
)
from spaseq.core.tecs.kernels.structure import evict_dead_entries, free_entries, new_node, reserve

_JOINED = 70  # nodes of `join`, at most
_MADE = 16  # output nodes of an event among which an equal one is looked for


@hot
def unlink(groups, first, key, group):
    """Takes a group out of its partition's chain. O(groups of the partition)."""
    if first[key] == group:
        first[key] = groups[group, G_NEXT]
        return
    before = first[key]
    while groups[before, G_NEXT] != group:
        before = groups[before, G_NEXT]
    groups[before, G_NEXT] = groups[group, G_NEXT]


@kernel
def end_group(structure, groups, first, group, width):
    """Ends all machines of a group; its row is free. O(width)."""
    cells, entries, st = structure.cells, structure.entries, structure.st
    unlink(groups, first, groups[group, G_KEY], group)
    for cell in range(group * width, group * width + width):
        if cells[cell, HEAD] >= 0:
            free_entries(entries, st, cells[cell, FIRST])
            empty_cell(cells, cell)
    groups[group, G_LIST] = NIL
    groups[group, G_NEXT] = st[FREE_GROUP]
    st[FREE_GROUP] = group


@kernel
def end_groups(structure, groups, first, which, width):
    """`end_group` of each of `which`, int64 (n,)."""
    for i in range(which.shape[0]):
        end_group(structure, groups, first, which[i], width)


@kernel
def survey(structure, steps, groups, first, width, key, c, low, single):
    """Ends the dead groups of a partition. The number of places that an event of class `c` makes, one more for each
    step, 0 if it moves nothing; NIL if a step is not computed yet."""
    st, cells = structure.st, structure.cells
    made = 0
    group = first[key]
    while group >= 0:
        following = groups[group, G_NEXT]
        if cells[group * width, HEAD] < 0 or cells[group * width, HEAD_MAX] < low:
            end_group(structure, groups, first, group, width)
        else:
            step = steps.of[groups[group, G_LIST], c]
            if step < 0:
                st[UNKNOWN_STATE] = groups[group, G_LIST]
                st[UNKNOWN_CLASS] = c
                return NIL
            if step > 0:
                made += steps.heads[step, T_COUNT] + 1
        group = following
    begins = steps.of[0, c]
    if begins < 0:
        st[UNKNOWN_STATE] = 0
        st[UNKNOWN_CLASS] = c
        return NIL
    if begins > 0 and not (single and first[key] >= 0):
        made += 2
    return made


@kernel
def mark(nodes, st, left, position, made):
    """The output node of this event on top of `left`; of two runs that are the same, the same node. O(_MADE).

    `made` (int64, (_MADE + 1, 2)): what they stand on, and the nodes; its first row has their number.
    """
    for i in range(1, made[0, 0] + 1):
        if made[i, 0] == left:
            return made[i, 1]
    node = new_node(nodes, st, left, np.int64(IS_OUTPUT), position, nodes[left & (nodes.shape[0] - 1), MAX])
    if made[0, 0] < _MADE:
        made[0, 0] += 1
        made[made[0, 0], 0] = left
        made[made[0, 0], 1] = node
    return node


@hot
def set_run(cells, cell, node, key):
    """A cell with one run for all keys up to `key`."""
    cells[cell, HEAD] = node
    cells[cell, HEAD_MAX] = key
    cells[cell, MERGED] = NIL
    cells[cell, FIRST] = NIL
    cells[cell, LENGTH] = 0


@kernel
def offer_run(structure, node, low, write):
    """Keep the best of the runs that complete at the event, one for each group: that of the earliest start.

    That of the group with the least live key is the best of all. It began before any other, or is the same: it began at
    a key of the other group's machine or later, so it is the best of that machine, too. One run is a match whichever it
    is, so if matches are only counted no start is looked for.
    """
    outs, st, nodes = structure.outs, structure.st, structure.nodes
    if st[OUTS] == 0 or (write and start_of(nodes, node, low) < start_of(nodes, outs[0, 0], low)):
        outs[0, 0] = node
        st[OUTS] = 1


@kernel
def move_group(structure, steps, group, step, width, start, position, low, fresh, made, write):
    """One step of a group. `start`: the run that begins at the event, NIL for none. `fresh` (int64, (width, 5)) is
    scratch for the cells of its new places, whose number is returned. O(places)."""
    nodes, cells, entries, st = structure.nodes, structure.cells, structure.entries, structure.st
    base = group * width
    key = cells[base, HEAD_MAX]
    places = 0
    while places < width and cells[base + places, HEAD] >= 0:
        evict_dead_entries(cells, entries, st, base + places, low)
        places += 1
    way = steps.heads[step, T_ACCEPTS]
    if way >= 0:
        node = start
        if way >= 2:
            node = fold(nodes, cells, entries, st, base + (way >> 1) - 1, low)
            if way & 1:
                node = mark(nodes, st, node, position, made)
        offer_run(structure, node, low, write)
    count = steps.heads[step, T_COUNT]
    for i in range(count):
        way = steps.ways[steps.heads[step, T_FROM] + i]
        source = base + (way >> 1) - 1
        if way < 2:
            set_run(fresh, i, start, key)
        elif way & 1:
            set_run(fresh, i, mark(nodes, st, fold(nodes, cells, entries, st, source, low), position, made), key)
    for i in range(count):
        way = steps.ways[steps.heads[step, T_FROM] + i]
        source = base + (way >> 1) - 1
        if way >= 2 and not way & 1:
            for column in range(5):
                fresh[i, column] = cells[source, column]
            cells[source, FIRST] = NIL
    for place in range(places):
        free_entries(entries, st, cells[base + place, FIRST])
    for i in range(count):
        for column in range(5):
            cells[base + i, column] = fresh[i, column]
    for place in range(count, places):
        empty_cell(cells, base + place)
    return count


@kernel
def next_in_list(cells, groups, first, width, key, group):
    """Of the groups in the same list whose keys are all less, or all greater, one that no other lies between; NIL for
    none. O(groups of the partition)."""
    least, greatest = groups[group, G_OLDEST], cells[group * width, HEAD_MAX]
    found = np.int64(NIL)
    below = np.int64(NIL)
    above = np.int64(NEVER)
    other = first[key]
    while other >= 0:
        if other != group and groups[other, G_LIST] == groups[group, G_LIST]:
            if below < cells[other * width, HEAD_MAX] < least:
                found = other
                below = cells[other * width, HEAD_MAX]
            elif below < 0 and greatest < groups[other, G_OLDEST] < above:
                found = other
                above = groups[other, G_OLDEST]
        other = groups[other, G_NEXT]
    return found


@kernel
def unite_groups(structure, groups, first, width, key, group, low, trail):
    """Joins a group with all others of its partition that are in the same list and whose keys do not overlap with its
    own. So no two groups of a list are left but such that overlap, unless there is no room: it is right to leave two.
    O(groups of the partition + places), each time."""
    nodes, cells, entries, st = structure.nodes, structure.cells, structure.entries, structure.st
    other = next_in_list(cells, groups, first, width, key, group)
    while other >= 0:
        room = nodes.shape[0] - (st[TAIL] - st[OLDEST])
        if room < width * (2 * st[LONGEST] + _JOINED) or st[FREE_COUNT] < width:
            return
        newer = group
        older = other
        if groups[other, G_OLDEST] > groups[group, G_OLDEST]:
            newer = other
            older = group
        place = 0
        while place < width and cells[newer * width + place, HEAD] >= 0:
            prepend(nodes, cells, entries, st, newer * width + place, older * width + place, low, trail)
            place += 1
        end_group(structure, groups, first, newer, width)
        group = older
        other = next_in_list(cells, groups, first, width, key, group)


@inline
def move_groups(structure, steps, groups, first, width, key, c, position, low, single, scratch, write):
    """One event of class `c`: all groups of the partition, and the machine that begins here."""
    nodes, cells, st = structure.nodes, structure.cells, structure.st
    made, moved = scratch.made, scratch.moved
    made[0, 0] = 0
    st[OUTS] = 0
    begins = steps.of[0, c]
    start = np.int64(NIL)
    if begins > 0:
        start = new_node(nodes, st, np.int64(NIL), np.int64(IS_OUTPUT), position, position)
    begin = begins > 0 and not (single and first[key] >= 0)
    count = 0
    group = first[key]
    while group >= 0:
        following = groups[group, G_NEXT]
        step = steps.of[groups[group, G_LIST], c]
        if step > 0:
            places = move_group(
                structure, steps, group, step, width, start, position, low, scratch.fresh, made, write
            )  # fmt: skip
            if places == 0:
                end_group(structure, groups, first, group, width)
            elif groups[group, G_LIST] != steps.heads[step, T_LIST]:
                groups[group, G_LIST] = steps.heads[step, T_LIST]
                moved[count] = group
                count += 1
        group = following
    if begin:
        if steps.heads[begins, T_ACCEPTS] >= 0:
            offer_run(structure, start, low, write)
        if steps.heads[begins, T_COUNT] > 0:
            group = st[FREE_GROUP]
            st[FREE_GROUP] = groups[group, G_NEXT]
            groups[group, G_LIST] = steps.heads[begins, T_LIST]
            groups[group, G_NEXT] = first[key]
            groups[group, G_OLDEST] = position
            groups[group, G_KEY] = key
            first[key] = group
            set_run(cells, group * width, start, position)
            moved[count] = group
            count += 1
    for i in range(count):
        if groups[moved[i], G_LIST] >= 0:
            unite_groups(structure, groups, first, width, key, moved[i], low, scratch.trail)
    st[END] = position
    st[LOW] = low


@kernel
def finish_run(structure, output):
    """The match of the current event, if there is one: written, or counted. FLUSH if there is no room for it."""
    st = structure.st
    if st[OUTS] == 0:
        return DONE
    if output.write:
        return write_run(structure.nodes, st, structure.outs[0, 0], output.matches, output.places)
    st[COUNTED] += 1
    st[OUTS] = 0
    return DONE


@kernel
def run_lists(events, structure, steps, groups, first, width, floors, consume, single, scratch, output):
    """[CEL] Theorem 6 for NEXT and LAST over a batch: the automaton over lists of places, begun at each start.

    `events`: int64 (n, EVENT_COLUMNS). `steps`: `spaseq.core.automata.preference.Steps`. `floors` (int64,
    (partitions,)): the first start that CONSUME BY PARTITION left alive. `single`: starts of a partition die all at one
    time, so only the first machine is kept. `scratch`: `Scratch`, with a row of `moved` for each group. Goes on from
    `st[ROW]`: the caller acts on the status and calls again. GROW_GROUPS if no group is free.
    """
    st = structure.st
    status = finish_run(structure, output)
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
        made = survey(structure, steps, groups, first, width, key, c, low, single)
        if made < 0:
            return NEED_STATES
        if made == 0:
            st[ROW] = k + 1
            continue
        if st[FREE_GROUP] < 0:
            return GROW_GROUPS
        # A place is folded and marked: LONGEST + 1 nodes. What is more is for groups that are joined.
        status = reserve(structure.nodes, structure.entries, st, structure.checks, position, keep, 6 * made + 6, 0)
        if status != DONE:
            return status
        move_groups(structure, steps, groups, first, width, key, c, position, low, single, scratch, output.write)
        st[ROW] = k + 1
        if st[OUTS] > 0:
            note_consumed(st, floors, consume, key, position)
            status = finish_run(structure, output)
            if status != DONE:
                return status
    return DONE
