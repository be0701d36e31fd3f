"""Kernels that read N-Triples and N-Quads into numbered terms, a table of different terms in open addressing.

`scan` takes a line only if its bytes alone prove that it is well formed. Its rules are narrower than the grammars: no
escapes, and IRIs of plain ASCII with a scheme and a simple authority. Labels have ASCII letters, digits, `_` and `-`,
tags two or three small letters. Every other line is left to the caller, which calls the parser. So this file never
rejects a line; it only accepts those that are certainly right.

Arrays, all owned by `spaseq.rdf.columns.dictionary`
----------------------------------------------------
* `data`: uint8, the block of text, followed by a newline and sixteen zeros or more.
* `table` (`Table`): the different terms.
* `rows` (int32, (capacity, 4)): subject, predicate, object, graph; `lines` (int64): the line of each row.
* `slow` (int64, (capacity, 4)): row, line, begin and end (in the block) of each line that is left to the caller; such a
  row is reserved and holds NIL.
* `state` (int64): the numbers below.

A kernel never raises and allocates nothing: `scan` stops before a line if there might not be room for it.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spaseq.core.jit import inline, kernel
from spaseq.rdf.columns.kernels.layout import BLANK, IRI, LITERAL, NIL
from spaseq.rdf.columns.kernels.memory import byte, word

# PERF: a call passes each array of the table by seven words, so all that `scan` calls for every term is inlined, and
# bytes are read without numba's check for negative indices (`memory`). One block of the card / smart-grid stream of
# benchmarks/reading.py, for a triple: 144 / 167 ns with calls, 85 / 107 inlined but with checks, 71 / 88 as it is (the
# parser alone: 730 / 870). Without guesses it is 93 / 114.


class Table(NamedTuple):
    """The terms of a batch. `text` is by word, `slots` by hash, all else by term."""

    text: np.ndarray
    """uint64: the keys, each from a word of its own on, padded with zeros."""
    start: np.ndarray
    """int64: the beginning of the key, in bytes."""
    length: np.ndarray
    """int32: bytes of the key."""
    kind: np.ndarray
    """uint8."""
    lexical: np.ndarray
    """int32: of a literal the bytes between the quotes, otherwise NIL."""
    datatype: np.ndarray
    """int32: of a typed literal the term of its datatype, otherwise NIL."""
    hashes: np.ndarray
    """uint64."""
    slots: np.ndarray
    """int32: a power of two, at least twice the terms; a term, NIL if free."""
    follow: np.ndarray
    """int32: a guess (right or wrong without consequence): the predicate that came after this one the last time."""
    before: np.ndarray
    """int32: a guess: the object that this predicate had the last time."""


# the first terms of every table
XSD_STRING = 0  # <…XMLSchema#string>: a literal of this type is held without
LANG_STRING = 1  # <…#langString> and <…#dirLangString>: not to be given as a datatype
DIR_LANG_STRING = 2
WANTED = 3  # from here the predicates that are wanted

# places in `state`
TERMS = 0
TEXT = 1  # bytes of text used
ROWS = 2
LINE = 3  # number of the next line
SLOW = 4
DATATYPE = 5  # the datatype of the last literal that had one
WANTED_END = 6  # terms from WANTED up to here are wanted predicates; 0: all predicates are
KEEP = 7  # a predicate whose objects are kept though it is not wanted
AT = 8  # how far `scan` came
STATE_SIZE = 9
TERMS_A_LINE = 5  # at most: four, and a datatype

# bits of the classes of bytes
NO_IRI = 1  # not a plain character of an IRI
NO_TEXT = 2  # ends a text between quotes, or is none that is taken here
NO_LABEL = 4
NO_HOST = 8
NO_SCHEME = 16
NO_LETTER = 32
NO_HEX = 64

_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_BYTE = np.uint64(8)
_64 = np.uint64(64)
_32 = np.uint64(32)
_29 = np.uint64(29)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_7 = np.uint64(7)
_56 = np.uint64(56)
_ONES = np.uint64(0x0101010101010101)  # the same byte eight times: 1, the one behind a blank, the end of an IRI
_BEHIND_BLANK = np.uint64(0x2121212121212121)
_CLOSE = np.uint64(0x3E3E3E3E3E3E3E3E)
_HIGH = np.uint64(0x8080808080808080)
_PLACES = np.uint64(0x0001020304050607)


@inline
def low_bytes(count):
    """A mask of the lowest `count` bytes, 1 to 8."""
    return _ALL >> (_64 - np.uint64(count) * _BYTE)


@inline
def mix(h, word):
    h = (h ^ word) * _MIX
    return h ^ (h >> _32)


@inline
def hash_of(data, begin, length):
    """The hash of `length` bytes, at least one, from byte `begin`."""
    h = _SEED ^ np.uint64(length)
    at = begin
    last = begin + length - 8
    while at < last:
        h = mix(h, word(data, at))
        at += 8
    h = mix(h, word(data, at) & low_bytes(begin + length - at))
    return h ^ (h >> _29)


@inline
def is_term(data, at, table, term):
    """True if the bytes from `at` are those of `term`."""
    q = table.start[term] >> 3
    left = np.int64(table.length[term])
    while left > 8:
        if word(data, at) != table.text[q]:
            return False
        at += 8
        q += 1
        left -= 8
    return (word(data, at) & low_bytes(left)) == table.text[q]


@inline
def find(data, begin, size, h, table):
    """(term, slot) of the `size` bytes from `begin`, whose hash is `h`; term NIL and the free slot if they are new."""
    mask = len(table.slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while True:
        term = np.int64(table.slots[slot])
        if term == NIL:
            return NIL, slot
        if table.hashes[term] == h and table.length[term] == size and is_term(data, begin, table, term):
            return term, slot
        slot = (slot + 1) & mask


@inline
def find_below(data, begin, size, count, table):
    """The term below `count` with these bytes, or NIL. Nothing is read of other terms, which another thread may be
    adding: the first of them that a look-up meets is in the slot at which it would have ended. Nothing is read outside
    of the arrays, whatever their contents: a table may be one that is kept in a file."""
    h = hash_of(data, begin, size)
    mask = len(table.slots) - 1
    slot = np.int64(h & np.uint64(mask))
    for _ in range(mask + 1):
        term = np.int64(table.slots[slot])
        if term < 0 or term >= count:
            return NIL
        if table.hashes[term] == h and table.length[term] == size:
            start = table.start[term]
            if 0 <= start <= (len(table.text) << 3) - size and is_term(data, begin, table, term):
                return term
        slot = (slot + 1) & mask
    return NIL


@inline
def add(data, begin, size, h, slot, kind, lexical, datatype, table, state):
    """A new term of the `size` bytes from `begin`, into the free `slot`. Its number."""
    term = state[TERMS]
    used = state[TEXT]
    q = used >> 3
    at = begin
    left = size
    while left > 8:
        table.text[q] = word(data, at)
        at += 8
        q += 1
        left -= 8
    table.text[q] = word(data, at) & low_bytes(left)
    table.start[term] = used
    table.length[term] = size
    table.kind[term] = kind
    table.lexical[term] = lexical
    table.datatype[term] = datatype
    table.hashes[term] = h
    table.follow[term] = NIL
    table.before[term] = NIL
    table.slots[slot] = term
    state[TERMS] = term + 1
    state[TEXT] = used + ((size + 7) & ~7)
    return term


@kernel
def intern(data, begin, size, kind, lexical, datatype, table, state):
    """The number of the term with these bytes, new or known."""
    h = hash_of(data, begin, size)
    term, slot = find(data, begin, size, h, table)
    return add(data, begin, size, h, slot, kind, lexical, datatype, table, state) if term == NIL else term


@kernel
def intern_all(data, begins, sizes, kinds, lexicals, datatypes, terms, table, state):
    """`intern` for each of several keys; `terms` receives their numbers."""
    for i in range(len(begins)):
        terms[i] = intern(data, begins[i], np.int64(sizes[i]), kinds[i], lexicals[i], datatypes[i], table, state)


@kernel
def lookup(data, size, table, count):
    """The number of the term below `count` whose key is the first `size` bytes of `data`, or NIL."""
    return find_below(data, 0, size, count, table)


@kernel
def lookup_all(text, starts, lengths, found, table, count):
    """`found` (int64) receives the number of the term of each key, below `count`, or NIL. The keys are the `lengths`
    bytes of `text` (uint8) from `starts`, in the form that a table has."""
    for i in range(len(starts)):
        found[i] = find_below(text, starts[i], np.int64(lengths[i]), count, table)


@kernel
def plain_iri(data, at, end, classes):
    """True if the plain characters `at:end` are certainly an absolute IRI. `byte(data, end)` is `>`."""
    if byte(classes, byte(data, at)) & NO_LETTER:
        return False
    at += 1
    while not byte(classes, byte(data, at)) & NO_SCHEME:
        at += 1
    if byte(data, at) != 58:  # :
        return False
    at += 1
    if at == end:
        return False
    if byte(data, at) == 47 and byte(data, at + 1) == 47:  # an authority
        at += 2
        first = at
        while not byte(classes, byte(data, at)) & NO_HOST:
            at += 1
        if at == first:
            return False
        if byte(data, at) == 58:  # its port
            at += 1
            while 48 <= byte(data, at) <= 57:
                at += 1
        if at < end and byte(data, at) != 47 and byte(data, at) != 63 and byte(data, at) != 35:
            return False
    fragments = 0
    while at < end:
        fragments += byte(data, at) == 35
        if byte(data, at) == 37 and (  # %
            byte(classes, byte(data, at + 1)) & NO_HEX or byte(classes, byte(data, at + 2)) & NO_HEX
        ):
            return False
        at += 1
    return fragments <= 1


@inline
def end_of_key(data, at):
    """Behind the first `>` from `at` on, or NIL if a blank, a control character or a zero comes before it.

    Eight bytes at a time: a byte less than another has its high bit set in (word - other) & ~word. The lowest byte for
    which that holds is the first one (Warren, Hacker's Delight, 2012, 6-1).
    """
    found = np.uint64(0)
    while found == 0:
        text = word(data, at)
        close = text ^ _CLOSE
        found = (((close - _ONES) & ~close) | ((text - _BEHIND_BLANK) & ~text)) & _HIGH
        at += 8
    lowest = (found & (~found + np.uint64(1))) >> _7
    at += np.int64((lowest * _PLACES) >> _56) - 8
    return at + 1 if byte(data, at) == 62 else NIL


@inline
def end_of_iri(data, at, classes):
    """The offset behind the `>` of the likely IRI whose `<` is at `at`, or NIL."""
    end = at + 1
    while not byte(classes, byte(data, end)) & NO_IRI:
        end += 1
    return end + 1 if byte(data, end) == 62 else NIL


@inline
def end_of_blank(data, at, classes):
    """Behind the label of the blank node whose `_` is at `at`, or NIL if it is not certainly one."""
    if byte(data, at + 1) != 58 or byte(data, at + 2) == 45 or byte(classes, byte(data, at + 2)) & NO_LABEL:
        return NIL
    end = at + 3
    while not byte(classes, byte(data, end)) & NO_LABEL:
        end += 1
    return end if byte(data, end) == 32 or byte(data, end) == 9 else NIL


@inline
def end_of_text(data, at, classes):
    """Behind the closing quote of the text whose opening quote is at `at`, or NIL if something else comes first."""
    end = at + 1
    while not byte(classes, byte(data, end)) & NO_TEXT:
        end += 1
    return end + 1 if byte(data, end) == 34 else NIL


@inline
def end_of_tag(data, at, classes):
    """Behind the language tag whose `@` is at `at`, or NIL if it is not certainly one."""
    end = at + 1
    while 97 <= byte(data, end) <= 122:
        end += 1
    return end if 2 <= end - at - 1 <= 3 and byte(classes, byte(data, end)) & NO_LABEL else NIL


@inline
def scan_datatype(data, at, table, state, classes):
    """(end, term) of the datatype whose `<` is at `at`; (NIL, NIL) if it is not certainly a proper one."""
    term = state[DATATYPE]
    if fits(data, at, term, table) and is_term(data, at, table, term):
        return at + table.length[term], term
    end = end_of_iri(data, at, classes)
    if end == NIL:
        return NIL, NIL
    h = hash_of(data, at, end - at)
    term, slot = find(data, at, end - at, h, table)
    if term == NIL:
        if not plain_iri(data, at + 1, end - 1, classes):
            return NIL, NIL
        term = add(data, at, end - at, h, slot, IRI, NIL, NIL, table, state)
    if term in (LANG_STRING, DIR_LANG_STRING):
        return NIL, NIL
    state[DATATYPE] = term
    return end, term


@inline
def past_blanks(data, at):
    while byte(data, at) == 32 or byte(data, at) == 9:
        at += 1
    return at


@inline
def fits(data, at, term, table):
    """True if `term` is one, and its key could stand at `at` with all bytes that the comparison reads."""
    return term != NIL and at + table.length[term] + 16 <= len(data)


@inline
def guessed(data, at, term, table):
    """True if `term` stands at `at` with a blank behind it."""
    if not fits(data, at, term, table) or byte(data, at + table.length[term]) != 32:
        return False
    return is_term(data, at, table, term)


@inline
def scan_term(data, at, place, keep, table, state, classes):
    """(end, term) of the term at `at`, which has this `place` in its statement; (NIL, NIL) if it is not certainly
    right. Without `keep` it is only looked at, and its term is NIL."""
    first = byte(data, at)
    inside = np.int64(NIL)
    datatype = np.int64(NIL)
    if first == 60:
        kind = IRI
        end = end_of_key(data, at)
        size = end - at
    elif first == 95 and place != 1:
        kind = BLANK
        end = end_of_blank(data, at, classes)
        size = end - at
    elif first == 34 and place == 2:
        kind = LITERAL
        end = end_of_text(data, at, classes)
        size = end - at
        inside = size - 2
        if end != NIL and byte(data, end) == 94:  # ^
            if byte(data, end + 1) != 94 or byte(data, end + 2) != 60:
                return NIL, NIL
            end, datatype = scan_datatype(data, end + 2, table, state, classes)
            if datatype == XSD_STRING:
                datatype = np.int64(NIL)
            else:
                size = end - at
        elif end != NIL and byte(data, end) == 64:  # @
            end = end_of_tag(data, end, classes)
            size = end - at
    else:
        return NIL, NIL
    if end == NIL:
        return NIL, NIL
    h = np.uint64(0)
    term = np.int64(NIL)
    slot = np.int64(NIL)
    if keep:
        h = hash_of(data, at, size)
        term, slot = find(data, at, size, h, table)
        if term != NIL:  # PERF: a term that is known is well formed
            return end, term
    if kind == IRI and not (end_of_iri(data, at, classes) == end and plain_iri(data, at + 1, end - 1, classes)):
        return NIL, NIL
    if keep:
        term = add(data, at, size, h, slot, kind, inside, datatype, table, state)
    return end, term


@inline
def scan_statement(data, at, quads, row, last, rows, table, state, classes):
    """The end of the line whose statement begins at `at`, and the terms in `rows[row]`; NIL if the line is not
    certainly right. `last` is the row before, or NIL."""
    rows[row, 3] = NIL
    predicate = np.int64(NIL)
    keep = True
    for place in range(4):
        if place == 3 and (byte(data, at) == 46 or not quads):
            break
        guess = np.int64(NIL)
        if place == 2:
            guess = np.int64(table.before[predicate])
            keep = state[WANTED_END] == 0 or WANTED <= predicate < state[WANTED_END] or predicate == state[KEEP]
            keep |= byte(data, at) == 95  # a blank node: events of subjects depend on the triples that point at them
        elif place == 1 and last != NIL:
            guess = np.int64(table.follow[rows[last, 1]])
        elif last != NIL:
            guess = np.int64(rows[last, place])
            if place == 0 and not guessed(data, at, guess, table):
                guess = np.int64(rows[last, 2])  # a chain: the object before is the subject now
                if guess != NIL and table.kind[guess] == LITERAL:
                    guess = np.int64(NIL)
            if place == 3 and not guessed(data, at, guess, table):
                guess = np.int64(rows[row, 0])  # a graph contains the statements about it
        if guessed(data, at, guess, table):
            term = guess
            at += table.length[term]
        else:
            at, term = scan_term(data, at, place, keep or place != 2, table, state, classes)
            if at == NIL:
                return NIL
            if place == 2:
                table.before[predicate] = term
            elif place == 1 and last != NIL:
                table.follow[rows[last, 1]] = term
        rows[row, place] = term
        if place == 1:
            predicate = term
        at = past_blanks(data, at)
    return line_end(data, at + 1) if byte(data, at) == 46 else NIL


@inline
def line_end(data, at):
    """The end of the line that has only blanks and a comment left at `at`; NIL if there is more."""
    at = past_blanks(data, at)
    if byte(data, at) == 35:  # #
        while byte(data, at) != 10:
            at += 1
    elif byte(data, at) == 13 and byte(data, at + 1) == 10:
        at += 1
    return at if byte(data, at) == 10 else NIL


@kernel
def scan(data, size, quads, rows, lines, slow, table, state, classes):
    """Reads the block of `size` bytes from `state[AT]` on: a row for each line that has a statement, or may have one
    (`slow`). It stops before the end if there is no more room.

    `data[size]` is a newline. A carriage return in the block stands before a newline. O(bytes) and, for each term that
    no guess gives, a look into the table.
    """
    at = state[AT]
    row = state[ROWS]
    line = state[LINE]
    left = state[SLOW]
    last = np.int64(NIL)  # one type from the beginning, or what it is passed to is compiled twice
    most_rows = min(len(rows), len(lines))
    most_terms = min(len(table.start), len(table.slots) >> 1) - TERMS_A_LINE
    most_text = (len(table.text) - TERMS_A_LINE) << 3
    while at < size and row < most_rows and left < len(slow):
        if state[TERMS] > most_terms or state[TEXT] + 2 * (size - at) > most_text:
            break
        begin = at
        end = line_end(data, at)
        if end == NIL:
            end = scan_statement(data, past_blanks(data, at), quads, row, last, rows, table, state, classes)
            if end == NIL:
                end = begin
                while byte(data, end) != 10:
                    end += 1
                slow[left, 0] = row
                slow[left, 1] = line
                slow[left, 2] = begin
                slow[left, 3] = min(end + 1, size)
                left += 1
                last = np.int64(NIL)
            else:
                last = row
            lines[row] = line
            row += 1
        at = end + 1
        line += 1
    state[AT] = min(at, size)
    state[ROWS] = row
    state[LINE] = line
    state[SLOW] = left


@kernel
def carry(text, used, old, terms, table, state):
    """Interns the terms `used` (int64) of the table `old`, whose text is `text` by bytes; `terms` (int32, by old term)
    receives their new numbers. The datatype of a literal stands before it."""
    for i in range(len(used)):
        term = used[i]
        datatype = old.datatype[term]
        terms[term] = intern(text, old.start[term], np.int64(old.length[term]), old.kind[term], old.lexical[term],
                             NIL if datatype == NIL else terms[datatype], table, state)  # fmt: skip


@kernel
def rehash(count, table):
    """Puts the terms below `count` into the table's empty slots."""
    mask = len(table.slots) - 1
    for term in range(count):
        slot = np.int64(table.hashes[term] & np.uint64(mask))
        while table.slots[slot] != NIL:
            slot = (slot + 1) & mask
        table.slots[slot] = term
