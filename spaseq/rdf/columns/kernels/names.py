"""The table of names that ended last; see `spaseq.rdf.columns.names`.

`spaseq.rdf.columns.names` owns the arrays. `keys` (uint64 (·, 2)): the hashes of each entry. `links` (int64 (·, 2)):
the next older and newer one. `slots` (int32 (·, 2)): an entry, NIL if free, and low bits of its first hash. So a search
for a free slot reads nothing of other entries, which are far apart in memory.

Names are distinguished by 128 bits of two hashes, not by their text. They only decide a count, and the text of a
quarter of a million names would have to be kept. A list in order of age runs through a table in open addressing.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from spaseq.core.jit import inline, kernel
from spaseq.rdf.columns.kernels.layout import NIL
from spaseq.rdf.columns.kernels.memory import word

# places in `ends`
OLDEST = 0
NEWEST = 1
COUNT = 2
PENDING = 3  # whether `last` is a name that has not been entered yet
ENDS_SIZE = 4

_LOW = np.uint64(0x7FFFFFFF)


@inline
def second_hash(text, begin, length):
    h = np.uint64(length) ^ np.uint64(0x2545F4914F6CDD1D)
    for at in range(begin, begin + length, 8):  # what follows a key is zero
        h = (h ^ word(text, at)) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(29)
    return h


@inline
def slot_of(one, two, keys, slots):
    """The slot of the name, or the free slot for it."""
    mask = len(slots) - 1
    low = np.int64(one & _LOW)
    slot = low & mask
    while slots[slot, 0] != NIL:
        entry = slots[slot, 0]
        if slots[slot, 1] == low and keys[entry, 0] == one and keys[entry, 1] == two:
            break
        slot = (slot + 1) & mask
    return slot


@inline
def take(slot, entry, one, slots):
    """The slot is the entry's, whose first hash is `one`."""
    slots[slot, 0] = entry
    slots[slot, 1] = np.int64(one & _LOW)


@inline
def unlink(entry, links, ends):
    """Takes the entry out of the order of age."""
    older = links[entry, 0]
    newer = links[entry, 1]
    if older == NIL:
        ends[OLDEST] = newer
    else:
        links[older, 1] = newer
    if newer == NIL:
        ends[NEWEST] = older
    else:
        links[newer, 0] = older


@inline
def remove(slot, slots):
    """Frees the slot and moves up the entries behind it that belong before."""
    mask = len(slots) - 1
    free = slot
    at = (slot + 1) & mask
    while slots[at, 0] != NIL:
        home = np.int64(slots[at, 1]) & mask
        if ((at - home) & mask) >= ((at - free) & mask):
            slots[free, 0] = slots[at, 0]
            slots[free, 1] = slots[at, 1]
            free = at
        at = (at + 1) & mask
    slots[free, 0] = NIL


@kernel
def enter(one, two, limit, keys, links, slots, ends):
    """The name is the one that ended last. Of more than `limit` names the oldest is forgotten."""
    slot = slot_of(one, two, keys, slots)
    entry = np.int64(slots[slot, 0])
    if entry != NIL:
        unlink(entry, links, ends)
    elif ends[COUNT] < limit:
        entry = ends[COUNT]
        ends[COUNT] += 1
        take(slot, entry, one, slots)
    else:
        entry = ends[OLDEST]
        remove(slot_of(keys[entry, 0], keys[entry, 1], keys, slots), slots)
        unlink(entry, links, ends)
        take(slot_of(one, two, keys, slots), entry, one, slots)
    keys[entry, 0] = one
    keys[entry, 1] = two
    links[entry, 0] = ends[NEWEST]
    links[entry, 1] = NIL
    if ends[NEWEST] != NIL:
        links[ends[NEWEST], 1] = entry
    else:
        ends[OLDEST] = entry
    ends[NEWEST] = entry


@kernel
def mark(names, text, start, length, hashes, repeated, last, limit, keys, links, slots, ends):
    """For each of the graphs `names` (int32, one after another): True if one of this name ended before. Each ends at
    the beginning of the next one; `last` (uint64, (2,)) is the one that has not ended yet. O(1) expected for a name."""
    for i in range(len(names)):
        name = names[i]
        one = hashes[name]
        two = second_hash(text, start[name], length[name])
        if ends[PENDING]:
            enter(last[0], last[1], limit, keys, links, slots, ends)
        repeated[i] = slots[slot_of(one, two, keys, slots), 0] != NIL
        last[0] = one
        last[1] = two
        ends[PENDING] = True


@kernel
def refill(count, keys, slots):
    """Puts the entries below `count` into the empty slots."""
    for entry in range(count):
        take(slot_of(keys[entry, 0], keys[entry, 1], keys, slots), entry, keys[entry, 0], slots)
