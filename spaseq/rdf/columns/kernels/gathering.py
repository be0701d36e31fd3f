"""Kernels that copy the events which are ready into the columns of a batch (`spaseq.rdf.columns.drafts`)."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from spaseq.core.jit import inline, kernel
from spaseq.rdf.columns.kernels.layout import BLANK, NIL


@kernel
def gather(order, rows, drafts, kind, needed, blank_of, blank_in, named, slots, triples, offsets, graphs, own):
    """Copies the drafts `order` into a batch: `triples` (int32 (n, 3)), `offsets` and `graphs`, as in GraphBatch.

    Triples whose predicate is not below `needed[1]` and at least `needed[0]` are left out; so are those that came
    before in the event. Blank nodes become the event's own: terms from `named` on, described in `own` (int64 (·, 2)).
    `blank_of` and `blank_in` (int32, by term, the latter NIL) are scratch, as is `slots` (int64, NIL, a power of two of
    at least twice the triples of an event). How many rows of `own` are used. O(triples), expected.
    """
    to = np.int64(0)  # one type from the beginning, or what it is passed to is compiled twice
    blanks = np.int64(0)
    for event in range(len(order)):
        draft = order[event]
        begin = to
        offsets[event] = to
        rank = np.int64(0)
        first = drafts.first[draft]
        for row in range(first, first + drafts.size[draft]):
            s = np.int64(rows[row, 0])
            p = rows[row, 1]
            o = np.int64(rows[row, 2])
            if kind[s] == BLANK:
                s, rank, blanks = own_blank(
                    s, event, drafts.number[draft], rank, blanks, blank_of, blank_in, named, own
                )
            if o != NIL and kind[o] == BLANK:
                o, rank, blanks = own_blank(
                    o, event, drafts.number[draft], rank, blanks, blank_of, blank_in, named, own
                )
            if p < needed[0] or p >= needed[1]:
                continue
            triples[to, 0] = s
            triples[to, 1] = p
            triples[to, 2] = o
            if drafts.size[draft] == 1 or is_new(triples, begin, to, slots):
                to += 1
        name = np.int64(drafts.name[draft])
        if name != NIL and kind[name] == BLANK:
            number = drafts.number[draft]
            name, rank, blanks = own_blank(name, event, number, rank, blanks, blank_of, blank_in, named, own)
        graphs[event] = name
    offsets[len(order)] = to
    return blanks


@kernel
def distinct_triples(triples, to, begin, end, slots):
    """Moves those of the rows `begin:end` of `triples` (int32 (n, 3)) that are new behind the first `to`; returns their
    end. New rows differ from each other and from the first `to`; they stay in their order. `slots` (int32, a power of
    two of at least twice the rows) is NIL for `to` 0, and stays as it was left. O(rows), expected."""
    to = np.int64(to)
    for row in range(begin, end):
        triples[to, 0] = triples[row, 0]
        triples[to, 1] = triples[row, 1]
        triples[to, 2] = triples[row, 2]
        if is_new(triples, np.int64(0), to, slots):
            to += 1
    return to


@kernel
def find_rows(rows, order, place, low, high, sought, ranges):
    """Finds the rows that have the terms `sought` at `place`. `ranges` (int64 (·, 2)) receives for each its range in
    `order`, which has the indices `low:high` of `rows` by their terms there. False if it has other indices."""
    for i in range(len(sought)):
        term = sought[i]
        for side in range(2):
            begin = np.int64(0)
            end = np.int64(len(order))
            while begin < end:
                middle = (begin + end) >> 1
                row = np.int64(order[middle])
                if row < low or row >= high:
                    return False
                own = rows[row, place]
                if own < term or (side == 1 and own == term):
                    begin = middle + 1
                else:
                    end = middle
            ranges[i, side] = begin
        if ranges[i, 1] < ranges[i, 0]:
            return False
    return True


@inline
def own_blank(term, event, number, rank, blanks, blank_of, blank_in, named, own):
    """(the event's own term for the blank node, its next rank, blank nodes so far)."""
    if blank_in[term] != event:
        blank_in[term] = event
        blank_of[term] = named + blanks
        own[blanks, 0] = number
        own[blanks, 1] = rank
        blanks += 1
        rank += 1
    return np.int64(blank_of[term]), rank, blanks


@inline
def is_new(triples, begin, to, slots):
    """True if triple `to` differs from those of the event from `begin` on. Few are compared, many looked up."""
    s = triples[to, 0]
    p = triples[to, 1]
    o = triples[to, 2]
    if to - begin < 8:
        for i in range(begin, to):
            if triples[i, 2] == o and triples[i, 1] == p and triples[i, 0] == s:
                return False
        if to - begin < 7:
            return True
        for i in range(begin, to):  # from the ninth on they are looked up
            slots[slot_of(triples, begin, i, slots)] = i
    slot = slot_of(triples, begin, to, slots)
    if slots[slot] >= begin:
        return False
    slots[slot] = to
    return True


@inline
def slot_of(triples, begin, to, slots):
    """The slot of the triple, or the free one that is to be its own. Entries from before `begin` are free."""
    s = triples[to, 0]
    p = triples[to, 1]
    o = triples[to, 2]
    h = (np.uint64(s) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(p) * np.uint64(0xC2B2AE3D27D4EB4F))
    h = (h ^ np.uint64(o)) * np.uint64(0xFF51AFD7ED558CCD)
    mask = len(slots) - 1
    slot = np.int64((h ^ (h >> np.uint64(32))) & np.uint64(mask))
    while slots[slot] >= begin:
        i = slots[slot]
        if triples[i, 2] == o and triples[i, 1] == p and triples[i, 0] == s:
            break
        slot = (slot + 1) & mask
    return slot
