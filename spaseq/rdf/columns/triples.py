"""A graph as columns: different triples over numbered terms, those of a predicate together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import rdflib

from spaseq.core.integers import apart, in_order, ranges
from spaseq.core.jit import attempt_rows
from spaseq.core.watch import check, to_hold
from spaseq.rdf.columns.model import TermTable
from spaseq.rdf.columns.pairs import refuse_more
from spaseq.rdf.terms import Term, Triple, plain_literal

if TYPE_CHECKING:
    from spaseq.rdf.columns.dictionary import Dictionary

Orders = Mapping[int, np.ndarray]
"""By place, 0 (subject) and 2 (object): the indices of all rows, int32 (n,). Those of a predicate are together as in
`rows`, ordered by their term at the place; equal ones are in the order of `rows`."""
_FEW: Final = 1 << 16
_PART: Final = 1 << 20
"""Rows that are compared without a look at limits."""


class GraphColumns:
    """A graph. `terms`: its terms, and possibly some more. `groups`: each predicate's range of rows, by its number.

    `orders`: the orders that `find` needs; made by predicate on first use, unless given. Rows of a graph that is kept
    in a file (`spaseq.rdf.columns.kept`) are checked on use, as their terms are: EventError if they are none.
    """

    __slots__ = ("_made", "_orders", "_rows", "groups", "terms")

    def __init__(
        self,
        rows: np.ndarray,
        terms: TermTable,
        groups: Mapping[int, tuple[int, int]] | None = None,
        orders: Orders | None = None,
    ) -> None:
        self.terms: TermTable = terms
        self._rows, self.groups = _group(rows, len(terms)) if groups is None else (rows, groups)
        self._orders = orders
        self._made: dict[tuple[int, int], np.ndarray] = {}

    @staticmethod
    def of(triples: Iterable[Triple]) -> GraphColumns:
        """The columns of rdflib's triples. O(triples), a Python step each."""
        numbers: dict[Term, int] = {}
        rows = {
            (numbers.setdefault(s, len(numbers)), numbers.setdefault(p, len(numbers)),
             numbers.setdefault(plain_literal(o), len(numbers))): None
            for s, p, o in triples
        }  # fmt: skip
        return GraphColumns(np.array(list(rows), dtype=np.int32).reshape(-1, 3), TermTable.of(numbers))

    @property
    def rows(self) -> np.ndarray:
        """int32 (n, 3): the terms of subject, predicate and object, each triple once. Those of a predicate stand
        together, in the order of their source; predicates by their numbers."""
        return self._check(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Triple]:
        term = self.terms.term
        for s, p, o in self.rows.tolist():
            yield term(s), term(p), term(o)

    def numbers(self, predicates: Iterable[str]) -> list[int]:
        """The numbers of those of `predicates`, given by IRI, that the graph has, ascending."""
        found = {self.terms.id_of(rdflib.URIRef(predicate)) for predicate in predicates}
        return sorted(found & self.groups.keys())

    def about(self, predicates: Iterable[str]) -> np.ndarray:
        """The triples with one of `predicates` (IRIs): int32 (·, 3). The cost does not depend on the other triples."""
        ranges = [self.groups[number] for number in self.numbers(predicates)]
        if len(ranges) == 1:
            return self._check(self._rows[slice(*ranges[0])])
        parts = [self._rows[low:high] for low, high in ranges]
        return self._check(np.concatenate([np.zeros((0, 3), np.int32), *parts]))

    def find(self, predicate: int, place: int, terms: np.ndarray) -> np.ndarray:
        """The indices in `rows` of a predicate's triples that have one of `terms` (int32, different) as their subject
        (`place` 0) or object (2): int64, ascending. O(log n) for each term, and O(results)."""
        from spaseq.rdf.columns.kernels.gathering import find_rows

        low, high = self.groups.get(predicate, (0, 0))
        order = self._order(predicate, place, low, high)
        bounds = np.empty((len(terms), 2), np.int64)
        cost = 64 * len(terms)
        if not attempt_rows(find_rows, cost, self._rows, order, place, low, high, terms.astype(np.int32), bounds):
            raise self.terms.damaged()
        found = order[ranges(bounds[:, 0], bounds[:, 1] - bounds[:, 0])].astype(np.int64)
        found.sort()
        if len(found) and not low <= int(found[0]) <= int(found[-1]) < high:
            raise self.terms.damaged()
        return found

    def at(self, indices: np.ndarray) -> np.ndarray:
        """The rows at `indices`: int32 (·, 3)."""
        return self._check(self._rows[indices])

    def rows_over(self, dictionary: Dictionary) -> np.ndarray:
        """The rows over the terms of `dictionary`, which gets those of them that it does not have: int32 (n, 3). By a
        kernel for terms that were read, else a Python step for each."""
        used = apart(self.rows).astype(np.int64)
        table = getattr(self.terms.finds, "table", None)
        if table is None:
            numbers = np.zeros(len(self.terms), np.int32)
            numbers[used] = dictionary.intern_terms([self.terms.term(number) for number in used.tolist()])
        else:
            self.terms.check()
            numbers = dictionary.take(table, len(self.terms), used)
        found: np.ndarray = numbers[self.rows]
        return found

    def orders(self) -> Orders:
        """`find`'s indices of all rows."""
        parts = {place: [self._order(number, place, low, high) for number, (low, high) in self.groups.items()]
                 for place in (0, 2)}  # fmt: skip
        return {place: np.concatenate([np.zeros(0, np.int32), *own]) for place, own in parts.items()}

    def _order(self, predicate: int, place: int, low: int, high: int) -> np.ndarray:
        if self._orders is not None:
            return self._orders[place][low:high]
        made = self._made.get((predicate, place))
        if made is None:
            order = in_order(self._rows[low:high, place]) + low
            made = self._made[predicate, place] = order.astype(np.int32)
        return made

    def _check(self, rows: np.ndarray) -> np.ndarray:
        if self.terms.kept and len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(self.terms):
            raise self.terms.damaged()
        return rows

    def graph(self, identifier: rdflib.URIRef | None = None) -> rdflib.Graph:
        """An rdflib graph of the triples. Some 20 µs and 1 KB for each."""
        made = rdflib.Graph(identifier=identifier, bind_namespaces="none")
        for triple in self:
            made.add(triple)
        return made


def different(rows: np.ndarray) -> np.ndarray:
    """The different ones of `rows`, int32 (n, 3), which are overwritten, in their order: those at the front."""
    return rows[: _move(rows, 0, 0, len(rows), _slots(len(rows)))]


def widen(rows: np.ndarray, parts: Iterable[np.ndarray], most: int | None = None) -> np.ndarray:
    """`rows`, int32 (n, 3), each once, and behind them those of `parts` that are new, as they come. Raises
    BudgetExceeded if there are more than `most` (`closed_triples`).

    Held are the different ones, 12 bytes each, with a table of 8 to 16, twice as much while it grows.
    """
    held, to = np.array(rows, order="C"), len(rows)
    slots = _slots(to)
    _move(held, 0, 0, to, slots)
    for part in parts:
        refuse_more(to, most)
        for begin in range(0, len(part), _PART):
            check()
            own = part[begin : begin + _PART]
            end = to + len(own)
            if end > len(held):
                to_hold(12 * (end + to // 2))
                held.resize((end + to // 2, 3), refcheck=False)
            if 2 * end > len(slots):
                del slots
                slots = _slots(end)
                _move(held, 0, 0, to, slots)
            held[to:end] = own
            to = _move(held, to, to, end, slots)
    refuse_more(to, most)
    held.resize((to, 3), refcheck=False)
    return held


def _slots(rows: int) -> np.ndarray:
    from spaseq.rdf.columns.kernels.layout import NIL

    size = 1 << max(4, (2 * rows).bit_length())
    to_hold(4 * size)
    return np.full(size, NIL, dtype=np.int32)


def _move(rows: np.ndarray, to: int, begin: int, end: int, slots: np.ndarray) -> int:
    """`distinct_triples`, a part at a time."""
    from spaseq.rdf.columns.kernels import gathering

    while begin < end:
        check()
        upto = min(begin + _PART, end)
        to = int(attempt_rows(gathering.distinct_triples, 16 * (upto - begin), rows, to, begin, upto, slots))
        begin = upto
    return to


def _group(rows: np.ndarray, terms: int) -> tuple[np.ndarray, dict[int, tuple[int, int]]]:
    """The rows by predicate, in their order, and the range of each predicate's."""
    present = np.zeros(terms, bool)
    present[rows[:, 1]] = True
    numbers = np.flatnonzero(present)
    places = np.zeros(terms, np.uint16 if len(numbers) < _FEW else np.int32)  # of 16 bits, numpy sorts in O(n)
    places[numbers] = np.arange(len(numbers))
    own = places[rows[:, 1]]
    ends = np.cumsum(np.bincount(own, minlength=len(numbers)))
    begins = ends - np.diff(ends, prepend=0)
    groups = dict(zip(numbers.tolist(), zip(begins.tolist(), ends.tolist(), strict=True), strict=True))
    return rows if len(numbers) < 2 else rows[in_order(own)], groups
