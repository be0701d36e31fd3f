"""Solutions as columns, and the terms they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, cast

import numpy as np
from rdflib import Literal
from rdflib.namespace import XSD

from spaseq.core.integers import different, first_of_each, in_order
from spaseq.rdf import Term, TripleTerm, plain_literal, term_bytes, term_from_key, term_key
from spaseq.rdf.columns import LiteralColumns, TermTable, empty_columns, set_value, set_values, values_of_keys
from spaseq.rdf.columns.model import Finds

UNBOUND: Final = -1
_FLOAT: Final = str(XSD.float)  # texts are compared faster than terms
_FLOAT_KEY: Final = f'"^^<{_FLOAT}>'.encode()
_FEW: Final = 8  # so many literals are read one by one, not as columns
_WORD: Final = 8
_SPARSE: Final = 1_000  # from so many bytes of terms for each that is asked for, they are read one by one


class Space:
    """Numbers for the terms of one batch, then for those that a query adds from VALUES, BIND and background knowledge.

    Numbers below `base` are the batch's. Equal terms have equal numbers, except those that `adopt` adds with `compared`
    False. Pushed events share a space (`spaseq.gpm.columnar.pushed`) in which all terms are added ones; `text` is the
    number of characters of added terms.
    """

    __slots__ = ("_added", "_by_key", "_coded", "_codes", "_constants", "_extras", "_indexed", "_known", "_literals",
                 "_searched", "_terms", "_text", "_with_floats", "base", "text")  # fmt: skip

    def __init__(self, terms: TermTable) -> None:
        self.base: int = len(terms)
        self.text: int = 0
        self._extras: list[Term | bytes] = []  # a term, or the bytes of one that nobody has asked for
        self._by_key: dict[bytes, int] | None = None
        self._indexed = 0
        self._searched = 0
        self._terms = terms
        self._text: bytes | None = None
        self._codes: tuple[object, np.ndarray] | None = None
        self._coded: tuple[object, dict[tuple[int, ...], tuple[Sequence[np.ndarray], np.ndarray]]] | None = None
        self._known: dict[Term, int] = {}
        self._constants: dict[int, tuple[tuple[Any, ...], np.ndarray]] = {}
        self._literals: LiteralColumns | None = None
        self._with_floats = False
        self._added = 0

    def __len__(self) -> int:
        return self.base + len(self._extras)

    def term(self, number: int) -> Term:
        """rdflib's term for a number."""
        return self._terms.term(number) if number < self.base else self._extra(number - self.base)

    def _extra(self, place: int) -> Term:
        found = self._extras[place]
        if isinstance(found, bytes):
            found = self._extras[place] = term_from_key(found.decode())
        return found

    def key(self, number: int) -> bytes:
        """The bytes of a term (`term_bytes`)."""
        if number < self.base:
            return self._terms.key(number)
        found = self._extras[number - self.base]
        return found if isinstance(found, bytes) else term_bytes(found)

    def cased_key(self, number: int) -> str:
        """The key of a term, with its tag as it is written (`term_key`)."""
        found = self._extras[number - self.base] if number >= self.base else self._terms.key(number)
        return found.decode() if isinstance(found, bytes) else term_key(found)

    def cased_keys(self, numbers: Iterable[int]) -> list[str]:
        """`cased_key` of each number."""
        if self.base:
            return list(map(self.cased_key, numbers))
        found = map(self._extras.__getitem__, numbers)
        return [term.decode() if isinstance(term, bytes) else term_key(term) for term in found]

    def numbers_of_keys(self, keys: Sequence[bytes]) -> np.ndarray:
        """The numbers of terms given by their bytes (`term_bytes`), new ones if none: int32. No rdflib term is made."""
        if self.base:
            found = self._terms.find_keys(keys)
            left = np.flatnonzero(found < 0)
            if len(left):
                found[left] = self._added_keys([keys[place] for place in left.tolist()])
            return found
        return self._added_keys(keys)

    def add_keys(self, keys: Sequence[bytes]) -> np.ndarray:
        """New numbers for terms that the space does not have, given by their bytes: int32."""
        if self._by_key is None:
            self._by_key = {}  # filled when a term is looked for
        first = self.base + len(self._extras)
        self._extras += keys
        self.text += sum(map(len, keys))
        return np.arange(first, first + len(keys), dtype=np.int32)

    def _added_keys(self, keys: Sequence[bytes]) -> np.ndarray:
        """The numbers among added terms: int32."""
        index, extras = self._index(), self._extras
        fresh = list(dict.fromkeys([key for key in keys if key not in index]))
        if fresh:
            first = self.base + len(extras)
            index.update(zip(fresh, range(first, first + len(fresh)), strict=True))
            extras += fresh
            self.text += sum(map(len, fresh))
            self._indexed = len(extras)
            if len(fresh) == len(keys):  # PERF: all are new, each is there once
                return np.arange(first, first + len(keys), dtype=np.int32)
        return np.fromiter(map(index.__getitem__, keys), np.int32, len(keys))

    def _index(self) -> dict[bytes, int]:
        """The numbers of added terms by their bytes."""
        index = self._by_key
        if index is None:
            index = self._by_key = {}
        fresh = self._extras[self._indexed :]
        keys = fresh if _are_bytes(fresh) else [t if isinstance(t, bytes) else term_bytes(t) for t in fresh]
        numbers = range(self.base + self._indexed, self.base + len(self._extras))
        if not index:  # PERF: a third of the time; of equal terms the first counts, as below
            index.update(zip(reversed(keys), reversed(numbers), strict=True))
        else:
            for key, number in zip(keys, numbers, strict=True):
                index.setdefault(key, number)
        self._indexed = len(self._extras)
        return index

    def keys(self, numbers: np.ndarray) -> list[bytes | None]:
        """The bytes of the terms (`TermTable.key`); None for terms that a query added, and blank nodes of events
        (`TermTable.own`)."""
        terms = self._terms
        if not self.base:
            return [None] * len(numbers)
        few = self._text is None and _SPARSE * len(numbers) < len(terms.text)
        if self._text is None and not few:
            self._text = terms.text.tobytes()
        own = numbers < len(terms) - len(terms.own)
        places = np.where(own, numbers, 0)
        starts, lengths = terms.spans(places)
        bounds = zip(own.tolist(), starts.tolist(), (starts + lengths).tolist(), strict=True)
        if few:  # without the copy of all terms
            whole = terms.text.data
            found = [whole[start:end].tobytes() if known else None for known, start, end in bounds]
        else:
            text = self._text
            assert text is not None
            found = [text[start:end] if known else None for known, start, end in bounds]
        if terms.kept:
            terms.check_text(key for key in found if key is not None)
        return found

    def all_keys(self, numbers: np.ndarray) -> list[bytes]:
        """`key` of each term, the numbers ascending."""
        read = int(np.searchsorted(numbers, self.base))
        found = [self.key(n) if key is None else key
                 for n, key in zip(numbers[:read].tolist(), self.keys(numbers[:read]), strict=True)]  # fmt: skip
        extras = self._extras
        added = [extras[place] for place in (numbers[read:] - self.base).tolist()]
        return found + (added if _are_bytes(added) else [t if isinstance(t, bytes) else term_bytes(t) for t in added])

    def found_by(self, find: Finds, numbers: np.ndarray) -> np.ndarray:
        """The values of `find` for the terms `numbers`: int64, -1 for others, or without bytes here (`keys`)."""
        terms, found = self._terms, np.full(len(numbers), -1, np.int64)
        read = np.flatnonzero(numbers < len(terms) - len(terms.own))
        own = numbers[read]
        found[read] = find.all(terms.text, *terms.spans(own))
        return found

    def codes(self, owner: object) -> np.ndarray:
        """An array in which `owner` keeps a number for each of the batch's terms, initially -1: int64 (base,). It is
        lost when another owner asks."""
        if self._codes is None or self._codes[0] is not owner:
            self._codes = owner, np.full(self.base, -1, np.int64)
        return self._codes[1]

    def coded(self, owner: object) -> dict[tuple[int, ...], tuple[Sequence[np.ndarray], np.ndarray]]:
        """The cache of `owner` for columns of the batch's terms, by their ids: the columns themselves, and an array.
        Cleared when another owner calls."""
        if self._coded is None or self._coded[0] is not owner:
            self._coded = owner, {}
        return self._coded[1]

    def places(self, other: Space, numbers: np.ndarray) -> np.ndarray:
        """The numbers in this space of the terms `numbers` of another one, -1 for those without: int32. By a kernel for
        terms that were read; a Python step for each that a query has added."""
        found = np.full(len(numbers), UNBOUND, np.int32)
        read = np.flatnonzero(numbers < other.base)
        found[read] = self._terms.numbers_of(other._terms, numbers[read])
        left = np.flatnonzero(found < 0) if self._extras else np.flatnonzero(numbers >= other.base)
        if len(left):
            added, known = self._index(), self._terms.id_of
            terms = (plain_literal(other.term(number)) for number in numbers[left].tolist())
            found[left] = [n if (n := added.get(term_bytes(term), UNBOUND)) >= 0 else known(term) for term in terms]
        return found

    def find(self, term: Any) -> int:
        """The number of `term`, -1 if it has none. O(terms) array steps for the first call with a term, then cached."""
        found = self._known.get(term)
        if found is None:
            plain = plain_literal(term)
            if plain is not term:
                return self.find(plain)
            found = self._known[term] = _locate(self._terms, term) if self.base else UNBOUND
        return found

    def number(self, term: Any) -> int:
        """The number of `term`; a new one if it has none."""
        found = self._known.get(term)
        return self._number(term, found) if found is None or found < 0 else found

    def _number(self, term: Any, found: int | None) -> int:
        """The number of a term that is not in the cache (`found` None), or is known to have none (-1)."""
        plain = plain_literal(term)
        if plain is not term:
            return self.number(plain)
        if found is None and self.base:
            found = _locate(self._terms, term)
        if (found is None or found < 0) and self._by_key is not None:
            found = self._index().get(term_bytes(term))
        found = self._known[term] = self._append(term) if found is None or found < 0 else found
        return found

    def numbers(self, terms: Iterable[Any]) -> list[int]:
        """`number` of each term."""
        known, other = self._known.get, self._number
        return [n if (n := known(term)) is not None and n >= 0 else other(term, n) for term in terms]

    def constants(self, terms: tuple[Any, ...]) -> np.ndarray:
        """`number` of each term, int32; cached by the tuple's identity, as a query passes one for every batch."""
        found = self._constants.get(id(terms))
        if found is None:
            found = self._constants[id(terms)] = terms, np.array(self.numbers(terms), np.int32)
        return found[1]

    @property
    def has_floats(self) -> bool:
        """True if a term may be an xsd:float, whose sums are rounded to fewer digits than a double has."""
        extras = self._extras
        if not self._with_floats and self._searched < len(extras):
            added = extras[self._searched :]
            texts = added if _are_bytes(added) else [term for term in added if type(term) is bytes]
            if len(texts) < len(added) or _FLOAT_KEY in b"".join(texts):
                self._with_floats = any(map(_is_float, added))
            self._searched = len(extras)
        return self._with_floats or (self.base > 0 and self.find(XSD.float) >= 0)

    def adopt(self, term: Callable[[int], Term], numbers: np.ndarray, *, compared: bool) -> np.ndarray:
        """Numbers in this space for the terms `term(n)` of `numbers`: int32, of the same shape.

        With `compared` False the terms are added without a look-up; callers must not compare them with others.
        """
        used, places = different(numbers)
        if compared:
            own = [self.number(term(i)) for i in used.tolist()]
        else:
            own = [self._append(term(i)) for i in used.tolist()]
        return np.array(own, np.int32)[places]

    def take_in(self, other: Space, numbers: np.ndarray) -> np.ndarray:
        """`adopt`, compared, of terms of another space: those that were read in both are found by a kernel."""
        used, places = different(numbers)
        own = self._terms.numbers_of(other._terms, np.where(used < other.base, used, 0)) if other.base else used * 0 - 1
        own[used >= other.base] = UNBOUND
        for place in np.flatnonzero(own < 0).tolist():
            term = other.term(int(used[place]))
            found = self._known.get(term)
            if found is None or found < 0:
                found = self.number(term) if used[place] >= other.base else self._unread(term)
                self._known[term] = found
            own[place] = found
        return own.astype(np.int32)[places]

    def _unread(self, term: Term) -> int:
        """The number of a term that is not the batch's: that which a query added by its bytes, or a new one."""
        found = None if self._by_key is None else self._index().get(term_bytes(term))
        return self._append(term) if found is None else found

    def _append(self, term: Term) -> int:
        self._extras.append(term)
        self.text += len(term)
        self._with_floats |= _is_float(term)
        return self.base + len(self._extras) - 1

    def literals(self) -> LiteralColumns:
        """The values of the terms for comparisons, by number (`spaseq.rdf.columns.LiteralColumns`). There are unused
        rows at the end, for terms without a value; so -1 (unbound) can be looked up. Each added term is parsed once."""
        known = self._literals if self._literals is not None else self._terms.literals()
        if not len(known.kind):
            known = empty_columns(1)
        if self._added < len(self._extras):
            if len(known.kind) < len(self):
                known = _longer(known, max(64, 2 * len(self)))
            first = self._added
            fresh = self._extras[first:]
            unmade: Sequence[int] = range(first, len(self._extras))
            if not _are_bytes(fresh):
                unmade = [place for place, term in enumerate(fresh, first) if type(term) is bytes]
            if len(unmade) > _FEW:
                keys = fresh if len(unmade) == len(fresh) else [self._extras[place] for place in unmade]
                set_values(known, self.base + np.array(unmade), values_of_keys(cast("list[bytes]", keys)))
            else:
                for place in unmade:
                    fresh[place - first] = self._extra(place)
            if len(unmade) < len(fresh) or len(unmade) <= _FEW:
                for place, term in enumerate(fresh, first):
                    if isinstance(term, (Literal, TripleTerm)):
                        set_value(known, self.base + place, term)
            self._added = len(self._extras)
        self._literals = known
        return known


def _are_bytes(terms: Sequence[Term | bytes]) -> TypeGuard[list[bytes]]:
    """True if no term was made of any of these bytes. PERF: a tenth of the time of a check for each."""
    return set(map(type, terms)) <= {bytes}


def _is_float(term: Term | bytes) -> bool:
    if isinstance(term, bytes):
        return term.endswith(_FLOAT_KEY)
    return isinstance(term, Literal) and str(term.datatype) == _FLOAT


def _longer(columns: LiteralColumns, count: int) -> LiteralColumns:
    """The columns extended to `count` rows; the new rows are those of terms that are not literals."""
    longer = empty_columns(count)
    for name in ("kind", "number", "exact", "whole", "has_whole"):
        own = getattr(columns, name)
        getattr(longer, name)[: len(own)] = own
    return longer


def _locate(terms: TermTable, term: Term) -> int:
    """The number of a term in a table, -1 if it is not there. If no kernel finds it, the whole table is searched by
    array operations, which is enough for the few terms of a query."""
    if terms.finds is not None:
        return terms.id_of(term)  # a part of a triple term may be a blank node of an event
    key = term_bytes(term)
    named = len(terms) - len(terms.own)
    places = np.flatnonzero(terms.length[:named] == len(key))
    if not len(places):
        return UNBOUND
    words = terms.text.view(np.uint64)
    wanted = np.frombuffer(key.ljust(-len(key) // _WORD * -_WORD, b"\0"), np.uint64)
    first = terms.start[places] // _WORD
    # The last word is compared first, as it differs most often: IRIs share their beginnings.
    for i in range(len(wanted) - 1, -1, -1):
        same = words[first + i] == wanted[i]
        places, first = places[same], first[same]
        if not len(places):
            return UNBOUND
    return int(places[0])


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Solution rows: `events`, int32 (r,), ascending; for each variable its terms, int32 (r,), -1 if unbound."""

    events: np.ndarray
    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.events)

    def take(self, rows: np.ndarray) -> Table:
        """The rows at `rows`, a mask or ascending indices."""
        return Table(self.events[rows], {name: column[rows] for name, column in self.columns.items()})

    def column(self, name: str) -> np.ndarray:
        """A variable's terms; all unbound if the table does not have the variable."""
        found = self.columns.get(name)
        return np.full(len(self), UNBOUND, np.int32) if found is None else found

    def keep(self, names: Iterable[str]) -> Table:
        """Only the columns in `names`."""
        wanted = set(names)
        return Table(self.events, {name: column for name, column in self.columns.items() if name in wanted})

    def with_column(self, name: str, column: np.ndarray) -> Table:
        """The table with a column added or replaced."""
        return Table(self.events, {**self.columns, name: column})

    @staticmethod
    def none(names: Iterable[str] = ()) -> Table:
        """A table without rows."""
        return Table(np.zeros(0, np.int32), {name: np.zeros(0, np.int32) for name in names})

    @staticmethod
    def identity(events: np.ndarray) -> Table:
        """The empty mapping at each of `events`."""
        return Table(events, {})

    @staticmethod
    def concat(tables: Sequence[Table]) -> Table:
        """The rows of all tables, in order of events; unbound if a table does not have a column."""
        names = dict.fromkeys(name for table in tables for name in table.columns)
        events = np.concatenate([table.events for table in tables])
        order = in_order(events)
        columns = {name: np.concatenate([table.column(name) for table in tables])[order] for name in names}
        return Table(events[order], columns)


def stack(table: Table, names: Sequence[str]) -> np.ndarray:
    """The columns `names` side by side: int32 (r, names)."""
    if not names:
        return np.zeros((len(table), 0), np.int32)
    return np.ascontiguousarray(np.stack([table.column(name) for name in names], axis=1))


def distinct(columns: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of `columns`, int arrays of equal length: (index of one row of each kind, kind of each row).

    `count`: the number of rows, needed if there are no columns. O(r log r).
    """
    if not columns:
        return np.zeros(min(1, count), np.int64), np.zeros(count, np.int64)
    first, codes = first_of_each(columns[0])
    for column in columns[1:]:
        _, more = first_of_each(column)
        first, codes = first_of_each(codes * (int(more.max(initial=0)) + 1) + more)
    return first, codes
