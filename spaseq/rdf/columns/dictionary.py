"""The terms and rows of the batch being read: the arrays that the kernels work on, and their growth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyoxigraph

from spaseq.core.integers import apart
from spaseq.core.jit import attempt, attempt_rows
from spaseq.rdf.columns.kernels import layout
from spaseq.rdf.columns.kernels import scanning as k
from spaseq.rdf.columns.model import TermTable, datatype_of, kind_of, lexical_size
from spaseq.rdf.terms import Term, term_bytes, term_from_key
from spaseq.rdf.triple_terms import TRIPLE, TripleTerm, has_blanks

_PAD: Final = 32
_TERMS: Final = 1 << 14
_FIRST: Final = (
    b"<http://www.w3.org/2001/XMLSchema#string>",
    b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
    b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString>",
)
RESERVED: Final = frozenset(key[1:-1].decode() for key in _FIRST)
"""IRIs that have their own places in a table, so that they cannot be wanted predicates."""

Described: TypeAlias = tuple[bytes, int, int, bytes | None]
"""A term's key, its kind, the bytes of a literal's text (otherwise -1), and the key of its datatype if it has one."""

_TRIPLE: Final = term_bytes(TRIPLE)
_LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = b"0123456789"


def byte_classes(utf8: bool) -> np.ndarray:
    """uint8 (256,): roles that a byte cannot have, by bits of `kernels`. `utf8`: bytes beyond ASCII are UTF-8."""
    classes = np.full(256, 0xFF, dtype=np.uint8)

    def allow(characters: bytes | range, bit: int) -> None:
        classes[list(characters)] &= 0xFF ^ bit

    allow(_LETTERS + _DIGITS + b"-._~!$&'()*+,;=:@/?#%", k.NO_IRI)
    allow(range(0x20, 0x80), k.NO_TEXT)
    allow(b"\t", k.NO_TEXT)
    if utf8:
        allow(range(0x80, 0x100), k.NO_TEXT)
    classes[list(b'"\\')] |= k.NO_TEXT
    allow(_LETTERS + _DIGITS + b"_-", k.NO_LABEL)
    allow(_LETTERS + _DIGITS + b"-._~", k.NO_HOST)
    allow(_LETTERS + _DIGITS + b"+-.", k.NO_SCHEME)
    allow(_LETTERS, k.NO_LETTER)
    allow(_DIGITS + b"ABCDEFabcdef", k.NO_HEX)
    return classes


def key_given(iri: str) -> bytes:
    """The key of an IRI that a query or an option gives. Kernels take a key in a table for well formed, so a text that
    the parser rejects as IRI gets one that no line has."""
    key = f"<{iri}>".encode()
    try:
        sure = len(list(pyoxigraph.parse(b"%b %b %b ." % (key, key, key), pyoxigraph.RdfFormat.N_TRIPLES))) == 1
    except (SyntaxError, ValueError):
        sure = False
    return key if sure else b"< %b" % key


def wanted_keys(wanted: Collection[str] | None) -> list[bytes] | None:
    """The keys of the predicates with these IRIs, each once. None, which is all, also if one cannot be wanted."""
    if wanted is None or RESERVED & set(wanted):
        return None
    return [key_given(iri) for iri in dict.fromkeys(wanted)]


class Block:
    """A text in the form that kernels read: `data` is uint8, with a newline behind the text and zeros behind that."""

    __slots__ = ("data",)

    def __init__(self) -> None:
        self.data: np.ndarray = np.zeros(1 << 12, dtype=np.uint8)

    def fill(self, *parts: bytes | memoryview) -> None:
        """Copy the text in, which is the `parts` together."""
        size = sum(map(len, parts))
        if size + _PAD > len(self.data):
            self.data = np.zeros(_power(size + _PAD), dtype=np.uint8)
        at = 0
        for part in parts:
            self.data[at : at + len(part)] = np.frombuffer(part, dtype=np.uint8)
            at += len(part)
        self.end(size)

    def line_behind(self, at: int, size: int) -> int:
        """The start of the line after the one that has byte `at`, no further than `size`."""
        ends = np.flatnonzero(self.data[at:size] == 10)
        return at + int(ends[0]) + 1 if len(ends) else size

    def end(self, size: int) -> None:
        """Let the text end after `size` bytes."""
        self.data[size] = 10
        self.data[size + 1 : size + _PAD] = 0


class Dictionary:
    """The terms of the batch being read. `wanted`: keys of the predicates whose objects are kept; None: all.

    `table` and the arrays taken from it stay valid after `restart`, which begins new ones. `made` is for the objects of
    terms, made on first use.
    """

    __slots__ = ("_carried", "_kept", "_keys", "made", "state", "table", "wanted")

    def __init__(self, wanted: Sequence[bytes] | None = None, *, terms: int = 0, text: int = 0) -> None:
        self.wanted: Sequence[bytes] | None = wanted
        self._keys = Block()
        self._kept: bytes | None = None
        self.state: np.ndarray = np.zeros(k.STATE_SIZE, dtype=np.int64)
        self.restart(max(terms, _TERMS), max(text, _TERMS << 5))

    def __len__(self) -> int:
        return int(self.state[k.TERMS])

    def is_full(self, terms: int, text: int) -> bool:
        """True if there are more terms, or bytes of keys, than given; twice the carried ones do not count, so that
        carrying costs no more than reading."""
        return len(self) > terms + 2 * self._carried[0] or self.text_bytes > text + 2 * self._carried[1]

    @property
    def text_bytes(self) -> int:
        """The bytes of all keys."""
        return int(self.state[k.TEXT])

    def restart(self, terms: int = 0, text: int = 0) -> None:
        """Forget all terms but the first ones, with room for as many as are expected."""
        self.table: k.Table = _arrays(_power(terms), _power(text), 2 * _power(terms))
        self.table.slots.fill(layout.NIL)
        self.state[[k.TERMS, k.TEXT, k.WANTED_END]] = 0
        self.state[[k.DATATYPE, k.KEEP]] = layout.NIL
        self.made: dict[int, Term] = {}
        self._carried = 0, 0
        self.intern([*_FIRST, *(self.wanted or ())])
        if self.wanted is not None:
            self.state[k.WANTED_END] = len(self)
        if self._kept is not None:
            self.keep(self._kept)

    def keep(self, predicate: bytes) -> None:
        """Keep the objects of this predicate as well."""
        self._kept = predicate
        self.state[k.KEEP] = int(self.intern([predicate])[0])

    @property
    def room_used(self) -> tuple[int, int]:
        """The numbers of terms, and of bytes of keys, for which another one for as much text should have room. They are
        as many as here, but at most four times those used, so that one large part does not enlarge all later ones."""
        return min(len(self.table.start), 4 * len(self)), min(len(self.table.text) << 3, 4 * self.text_bytes)

    def empty(self, terms: int = 0, text: int = 0) -> Dictionary:
        """Another one that keeps the same objects, without any terms, and room for so many with so many bytes."""
        made = Dictionary(self.wanted, terms=terms, text=text)
        if self._kept is not None:
            made.keep(self._kept)
        return made

    def room(self, terms: int, text: int) -> None:
        """See to it that `terms` terms with keys of `text` bytes in all can be added."""
        have, used = len(self), self.text_bytes
        table = self.table
        need = used + text + 8 * (terms + k.TERMS_A_LINE)
        if have + terms > len(table.start) or need > len(table.text) << 3:
            grown = _arrays(max(_power(have + terms), len(table.start)), max(_power(need), len(table.text) << 3), 0)
            for old, new in zip(table[:-3], grown[:-3], strict=True):
                new[: len(old)] = old
            for name in ("follow", "before"):
                getattr(grown, name)[: len(table.start)] = getattr(table, name)
            table = self.table = grown._replace(slots=table.slots)
        if 2 * (have + terms) > len(table.slots):
            slots = np.full(_power(2 * (have + terms)), layout.NIL, dtype=np.int32)
            self.table = table._replace(slots=slots)
            attempt_rows(k.rehash, have, have, self.table)

    def intern(
        self,
        keys: Sequence[bytes],
        kinds: object = layout.IRI,
        lexicals: object = layout.NIL,
        datatypes: object = layout.NIL,
    ) -> np.ndarray:
        """The numbers (int64) of the terms with these keys, added if they are new."""
        sizes = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
        self.room(len(keys), int(sizes.sum()))
        self._keys.fill(*keys)
        numbers = np.empty(len(keys), dtype=np.int64)
        about = [np.broadcast_to(np.asarray(c, dtype=np.int64), len(keys)).copy() for c in (kinds, lexicals, datatypes)]
        attempt_rows(k.intern_all, 64 * len(keys), self._keys.data, np.cumsum(sizes) - sizes, sizes, *about, numbers,
                     self.table, self.state)  # fmt: skip
        return numbers

    def intern_terms(self, terms: Sequence[Term]) -> np.ndarray:
        """The numbers (int64) of rdflib's `terms`, added if they are new."""
        return self.intern_described([_describe(term) for term in terms])

    def intern_described(self, terms: Sequence[Described]) -> np.ndarray:
        """The numbers (int64) of the terms described, added if they are new."""
        if not terms:
            return np.zeros(0, dtype=np.int64)
        keys, kinds, lexicals, types = zip(*terms, strict=True)
        named = [key for key in dict.fromkeys(types) if key is not None]
        numbers: dict[bytes | None, int] = dict(zip(named, self.intern(named).tolist(), strict=True))
        return self.intern(keys, kinds, lexicals, [numbers.get(key, layout.NIL) for key in types])

    def nested_blanks(self, numbers: np.ndarray) -> dict[int, TripleTerm]:
        """Those of the terms `numbers` (NIL is left out) that are triple terms with blank nodes inside, by number.

        O(1) for a dictionary without triple terms, else O(numbers), and a Python step for each different one."""
        datatype = self.finder()(_TRIPLE)
        found: dict[int, TripleTerm] = {}
        if datatype == layout.NIL:
            return found
        table, used = self.table, apart(numbers[numbers >= 0].astype(np.int64))
        text = table.text.view(np.uint8)
        for number in used[table.datatype[used] == datatype].tolist():
            start, size = int(table.start[number]), int(table.length[number])
            key = text[start : start + size].tobytes()
            if b"_:" in key:
                term = term_from_key(key.decode())
                if isinstance(term, TripleTerm) and has_blanks(term):
                    found[number] = term
        return found

    def finder(self) -> Finder:
        """A finder of the numbers of terms by their keys, for the terms so far."""
        return Finder(len(self), self.table)

    def as_terms(self, find: Finder | None = None) -> TermTable:
        """The terms so far as a table, which finds them by `find`, or else by an index of its own."""
        count, table = len(self), self.table
        return TermTable(
            table.text.view(np.uint8),
            table.start[:count],
            table.length[:count],
            table.kind[:count],
            table.lexical[:count],
            table.datatype[:count],
            find=find,
        )

    def carry(self, used: np.ndarray) -> np.ndarray:
        """Restart with the terms `used` (int64, different). Their new numbers: int32, by old number."""
        old, count, size = self.table, len(self), self.text_bytes
        self.restart(max(len(old.start), 2 * len(used)), max(len(old.text) << 3, size))
        terms = self.take(old, count, used)
        self._carried = len(self), self.text_bytes
        return terms

    def take(self, other: k.Table, count: int, used: np.ndarray) -> np.ndarray:
        """Adds the terms `used` (int64, different), and their datatypes, of another table, which has `count`. Their
        numbers here: int32, by the number there, NIL for others."""
        literals = other.kind[used] == layout.LITERAL
        types = apart(other.datatype[used[literals]])
        order = np.concatenate((types[types >= 0].astype(np.int64), used[~literals], used[literals]))
        terms = np.full(count, layout.NIL, dtype=np.int32)
        self.room(len(order), int(other.length[order].sum()))
        attempt_rows(k.carry, 64 * len(order), other.text.view(np.uint8), order, other, terms, self.table, self.state)
        return terms


@dataclass(slots=True, eq=False)
class Finder:
    """Finds the terms below `count` of a table by their keys. Another thread may add others meanwhile: no term is found
    behind one of them, which was put in the slot at which a look-up had ended before."""

    count: int
    table: k.Table

    def __call__(self, key: bytes) -> int:
        """The number of the term with this key, NIL if there is none."""
        text = np.frombuffer(key.ljust(len(key) + _PAD, b"\0"), dtype=np.uint8)
        return int(attempt(k.lookup, text, len(key), self.table, self.count))

    def all(self, text: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The numbers of terms given by their keys in another table's `text` (uint8), NIL for those not here: int64."""
        found = np.empty(len(starts), dtype=np.int64)
        attempt_rows(k.lookup_all, 64 * len(starts), text, starts, lengths, found, self.table, self.count)
        return found


def _describe(term: Term) -> Described:
    datatype = datatype_of(term)
    return term_bytes(term), kind_of(term), lexical_size(term), None if datatype is None else term_bytes(datatype)


def _arrays(terms: int, text: int, slots: int) -> k.Table:
    return k.Table(
        text=np.empty(text >> 3, dtype=np.uint64),
        start=np.empty(terms, dtype=np.int64),
        length=np.empty(terms, dtype=np.int32),
        kind=np.empty(terms, dtype=np.uint8),
        lexical=np.empty(terms, dtype=np.int32),
        datatype=np.empty(terms, dtype=np.int32),
        hashes=np.empty(terms, dtype=np.uint64),
        slots=np.empty(slots, dtype=np.int32),
        follow=np.empty(terms, dtype=np.int32),
        before=np.empty(terms, dtype=np.int32),
    )


def _power(at_least: int) -> int:
    return 1 << max(at_least - 1, (1 << 12) - 1).bit_length()
