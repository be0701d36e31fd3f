"""The effects of an event on one configuration, grouped by the label that its transitions mark with.

Nothing here allocates: sets of rows are put one behind the other in `sets`, and a status asks for a larger one.
"""

# mypy: disable-error-code="no-untyped-def"
# Types of arguments are in the docstrings: numba infers its own.
from __future__ import annotations

import numpy as np

from spaseq.core.engine.kernels.registers.layout import (
    ACCEPTED,
    ANSWERS,
    ARC_LABEL,
    ARC_MEMBER,
    ARC_OPS,
    ARC_OPS_END,
    ARC_RANK,
    ARC_TARGET,
    CLASH,
    COLUMN,
    EACH,
    GROUP_ACCEPTS,
    GROUP_ALIVE,
    GROUP_FIRST,
    GROUP_LABEL,
    GROUP_REGISTERS,
    GROUP_ROWS,
    GROUP_STATES,
    GROUP_TAKEN,
    GROUP_TAKEN_ROWS,
    GROW_SETS,
    HELD_NEXT,
    HELD_REGISTERS,
    IN_SETS,
    MANY,
    NEED_SETS,
    NOTHING,
    OP,
    REGISTER,
    REJECT,
)
from spaseq.core.engine.kernels.registers.operations import follow
from spaseq.core.jit import hot, inline, kernel
from spaseq.core.tecs.kernels.layout import NIL


@hot
def find_group(groups, count, label):
    """The group of a label among the first `count`, or a new one behind them."""
    g = 0
    while g < count and groups[g, GROUP_LABEL] != label:
        g += 1
    if g == count:
        group = groups[g]
        for i in range(GROUP_REGISTERS):
            group[i] = 0
        group[GROUP_LABEL] = label
        group[GROUP_ROWS] = 1
        group[GROUP_TAKEN_ROWS] = 1
        for i in range(GROUP_REGISTERS, group.shape[0]):
            group[i] = NOTHING
    return g


@inline
def group_arcs(registers, first, last, automaton, values, effects, asking, chains):
    """The effects of an event on a configuration of one row, by label: the number of groups, or minus a status, or
    IN_SETS if the event has several values.

    `able[first:last]` are the transitions of its states on the event's class, state by state and by rank. A
    transition fires if none of its state with a lower rank does, guards included.
    """
    able, arcs, ops, alive, outputs = automaton.able, automaton.arcs, automaton.ops, automaton.alive, automaton.outputs
    groups, out = effects.groups, effects.out[0]
    width = registers.shape[0]
    count = 0
    member = -1
    fired = np.int64(-1)
    for a in range(first, last):
        arc = arcs[able[a]]
        if arc[ARC_MEMBER] != member:
            member = arc[ARC_MEMBER]
            fired = np.int64(-1)
        if 0 <= fired < arc[ARC_RANK]:
            continue
        for r in range(width):
            out[r] = registers[r]
        status = follow(ops, arc[ARC_OPS], arc[ARC_OPS_END], values, out, asking, chains)
        if status == MANY:
            return IN_SETS
        if status == CLASH:
            return -NEED_SETS
        if status != 1:
            continue
        fired = arc[ARC_RANK]
        g = find_group(groups, count, arc[ARC_LABEL])
        count = max(count, g + 1)
        group = groups[g]
        target = arc[ARC_TARGET]
        needed = outputs if target < 0 else alive[target]
        have = group[GROUP_ALIVE]
        at = GROUP_REGISTERS
        if target < 0:
            have = outputs if group[GROUP_ACCEPTS] else 0
            at += width
        for r in range(width):
            if needed >> r & 1:
                if have >> r & 1 and group[at + r] != out[r]:
                    return -NEED_SETS
                group[at + r] = out[r]
        if target < 0:
            group[GROUP_ACCEPTS] = 1
        else:
            group[GROUP_STATES] |= 1 << target
            group[GROUP_ALIVE] = have | needed
    return count


@hot
def compare_rows(sets, i, j):
    """-1, 0 or 1: the order of rows `i` and `j` of `sets`."""
    for r in range(sets.shape[1]):
        if sets[i, r] != sets[j, r]:
            return -1 if sets[i, r] < sets[j, r] else 1
    return 0


@kernel
def project_rows(sets, source, count, target, needed):
    """sets[target:] gets the rows of sets[source : source + count] without the registers that are not `needed` (bits),
    sorted and each once: how many. `target` is not behind `source`, or they do not overlap. Expected O(n^1.3)."""
    for i in range(count):
        for r in range(sets.shape[1]):
            sets[target + i, r] = sets[source + i, r] if needed >> r & 1 else NOTHING
    gap = count // 2
    while gap > 0:
        for i in range(target + gap, target + count):
            j = i
            while j - gap >= target and compare_rows(sets, j - gap, j) > 0:
                for r in range(sets.shape[1]):
                    sets[j - gap, r], sets[j, r] = sets[j, r], sets[j - gap, r]
                j -= gap
        gap //= 2
    kept = 0
    for i in range(count):
        if kept == 0 or compare_rows(sets, target + kept - 1, target + i) != 0:
            for r in range(sets.shape[1]):
                sets[target + kept, r] = sets[target + i, r]
            kept += 1
    return kept


@hot
def same_rows(sets, i, rows, j, others):
    """True if two sets of rows, both sorted, are equal: `rows` from `i` on, and `others` from `j` on."""
    same = rows == others
    n = 0
    while same and n < rows:
        same = compare_rows(sets, i + n, j + n) == 0
        n += 1
    return same


@kernel
def join_rows(sets, first, rows, have, second, others, needed):
    """Joins two sets of rows, over the registers `have` and `needed` (bits), behind the second one in `sets`. Gives the
    number of rows, -NEED_SETS if a row of either set has no partner, or -GROW_SETS."""
    common = have & needed
    at = second + others
    if at + rows + others >= sets.shape[0]:
        return -GROW_SETS
    fewer = project_rows(sets, first, rows, at, common)
    same = project_rows(sets, second, others, at + fewer, common)
    if not same_rows(sets, at, fewer, at + fewer, same):
        return -NEED_SETS
    found = np.int64(0)
    for i in range(first, first + rows):
        for j in range(second, second + others):
            if at + found >= sets.shape[0]:
                return -GROW_SETS
            agree = True
            for r in range(sets.shape[1]):
                agree = agree and (not common >> r & 1 or sets[i, r] == sets[j, r])
                sets[at + found, r] = sets[i, r] if have >> r & 1 else sets[j, r]
            found += agree
    return project_rows(sets, at, found, at, have | needed)


@kernel
def fire_each(ops, first, last, values, extras, sets, count, top, asking, chains):
    """Apply ops[first:last], a transition, to sets[:count]. Writes sets[top:]: (place there, count), or (0, minus a
    status)."""
    source = 0
    while first < last and count > 0:
        others = 0
        more = 0
        if ops[first, OP] == EACH:
            others = values[ops[first, COLUMN]]
            more = values[ops[first, REGISTER]]
            first += 1
        stop = first
        while stop < last and ops[stop, OP] != EACH:
            stop += 1
        found = 0
        for i in range(count):
            for j in range(others + 1):
                if top + found >= sets.shape[0]:
                    return 0, -GROW_SETS
                row = sets[top + found]
                for r in range(row.shape[0]):
                    row[r] = sets[source + i, r]
                given = values if j == 0 else extras[more + j - 1]
                status = follow(ops, first, stop, given, row, asking, chains)
                if status == REJECT:
                    return 0, 0
                if status == CLASH:
                    return 0, -NEED_SETS
                found += status
        source = top
        count = found
        top += found
        first = stop
    return source, count


@kernel
def group_sets(
    registers, more, rows, several, first, last, automaton, values, extras, effects, asking, chains
):  # fmt: skip
    """As `group_arcs`, of a configuration of any number of rows, at an event of any number of values.

    `registers` is the first of its `rows`, `more` where the others begin in `held`.

    If states of one group need different registers, their rows must agree on those that both need, else NEED_SETS. The
    group then holds their join, in which each state finds its own rows.
    """
    able, arcs, ops, alive, outputs = automaton.able, automaton.arcs, automaton.ops, automaton.alive, automaton.outputs
    held, sets = several
    groups = effects.groups
    width = registers.shape[0]
    if rows >= sets.shape[0]:
        return -GROW_SETS
    for i in range(rows):
        for r in range(width):
            sets[i, r] = registers[r] if i == 0 else held[more, HELD_REGISTERS + r]
        if i > 0:
            more = held[more, HELD_NEXT]
    top = rows
    count = 0
    member = -1
    fired = np.int64(-1)
    for a in range(first, last):
        arc = arcs[able[a]]
        if arc[ARC_MEMBER] != member:
            member = arc[ARC_MEMBER]
            fired = np.int64(-1)
        if 0 <= fired < arc[ARC_RANK]:
            continue
        source, found = fire_each(ops, arc[ARC_OPS], arc[ARC_OPS_END], values, extras, sets, rows, top, asking, chains)
        if found < 0:
            return found
        if found == 0:
            continue
        fired = arc[ARC_RANK]
        g = find_group(groups, count, arc[ARC_LABEL])
        count = max(count, g + 1)
        group = groups[g]
        target = arc[ARC_TARGET]
        needed = outputs if target < 0 else alive[target]
        if top + found >= sets.shape[0]:
            return -GROW_SETS
        found = project_rows(sets, source, found, top, needed)
        if target < 0:
            if not group[GROUP_ACCEPTS]:
                group[GROUP_ACCEPTS] = 1
                group[GROUP_TAKEN] = top
                group[GROUP_TAKEN_ROWS] = found
                top += found
            elif not same_rows(sets, top, found, group[GROUP_TAKEN], group[GROUP_TAKEN_ROWS]):
                return -NEED_SETS
            continue
        if group[GROUP_STATES] == 0:
            group[GROUP_FIRST] = top
            group[GROUP_ROWS] = found
            group[GROUP_ALIVE] = needed
            top += found
        elif group[GROUP_ALIVE] == needed:
            if not same_rows(sets, top, found, group[GROUP_FIRST], group[GROUP_ROWS]):
                return -NEED_SETS
        else:
            joined = join_rows(sets, group[GROUP_FIRST], group[GROUP_ROWS], group[GROUP_ALIVE], top, found, needed)
            if joined < 0:
                return joined
            group[GROUP_FIRST] = top + found
            group[GROUP_ROWS] = joined
            group[GROUP_ALIVE] |= needed
            top += found + joined
        group[GROUP_STATES] |= 1 << target
    for g in range(count):
        for r in range(width):
            groups[g, GROUP_REGISTERS + r] = sets[groups[g, GROUP_FIRST], r]
            groups[g, GROUP_REGISTERS + width + r] = sets[groups[g, GROUP_TAKEN], r]
    return count


@kernel
def note_answers(st, effects, group, several):
    """Keep the rows that a group accepts with: their tag, or NIL if there is no room."""
    accepted, answers = effects.accepted, effects.answers
    rows = group[GROUP_TAKEN_ROWS]
    width = answers.shape[1]
    if st[ACCEPTED] >= accepted.shape[0] or st[ANSWERS] + rows > answers.shape[0]:
        return NIL
    tag = st[ACCEPTED]
    accepted[tag, 0] = st[ANSWERS]
    accepted[tag, 1] = rows
    for i in range(rows):
        for r in range(width):
            if several is not None and i > 0:
                answers[st[ANSWERS] + i, r] = several.sets[group[GROUP_TAKEN] + i, r]
            else:
                answers[st[ANSWERS] + i, r] = group[GROUP_REGISTERS + width + r]
    st[ANSWERS] += rows
    st[ACCEPTED] += 1
    return tag
