"""Events that come one by one or few at a time, for the plan: their terms keep their numbers from one push to the next.

A batch from a file numbers its terms once for thousands of events. For a single event that numbering, and what is made
of it (tables of terms, the kernels' view of a pattern), would cost far more than the match, so pushed events share one
space of terms. It is given up for a new one when it has grown too large; solutions made of it keep it as long as they
need it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from rdflib import URIRef

from spaseq.gpm.columnar.basic import BasicPattern
from spaseq.gpm.columnar.lists import Lists
from spaseq.gpm.columnar.table import Space
from spaseq.rdf import Triple
from spaseq.rdf.columns import TermTable

__all__ = ["PushedTerms"]

TERMS: Final = 1 << 16
CHARACTERS: Final = 1 << 24
"""Terms, and characters of them, from which on a new space is begun. A push may go beyond."""

_NO_TERMS: Final = TermTable.of(())


class PushedTerms:
    """The space of the events pushed to one stream.

    `wanted`: the predicates that have lists. `read`: those whose triples a pattern can use; None where it may be any.
    `places`: the number of each of them by its text, the same in every space.
    """

    def __init__(self, wanted: Iterable[URIRef], read: frozenset[URIRef] | None, budget: int) -> None:
        self._wanted = tuple(dict.fromkeys(wanted))
        self._named = tuple(dict.fromkeys([*self._wanted, *sorted(read or ())]))
        # PERF: by their texts, as a look-up by an rdflib term ends in Python: 0.3 µs a triple became 0.1.
        self.places = {str(predicate): place for place, predicate in enumerate(self._named)}
        self._lists = {predicate: place for place, predicate in enumerate(self._wanted)}
        self._reads_any = read is None
        self._budget = budget
        self._begin()

    def _begin(self) -> None:
        self.space = Space(_NO_TERMS)
        self.space.numbers(self._named)
        self._which = np.arange(max(1, len(self._wanted)), dtype=np.int32)
        self._layouts: dict[int, tuple[BasicPattern, np.ndarray]] = {}

    def predicates(self, triples: Iterable[Triple]) -> list[int | None]:
        """Which of `places` the predicate of each triple is; None for another."""
        place = self.places.get
        return [place(str(triple[1])) for triple in triples]

    def lists(self, graphs: Iterable[tuple[Sequence[Triple], Sequence[int | None]]]) -> Lists:
        """The triples of events, given with their `predicates`. O(triples), a Python step for each that is read."""
        if len(self.space) > TERMS or self.space.text > CHARACTERS:
            self._begin()
        rows: list[tuple[int, int, int]] = []
        offsets = [0]
        for triples, places in graphs:
            own = self._numbered(triples, places)
            rows += dict.fromkeys(own) if len(own) > 1 else own  # a graph is a set
            offsets.append(len(rows))
        if len(self._which) < len(self.space):
            longer = np.full(2 * len(self.space), -1, np.int32)
            longer[: len(self._wanted)] = np.arange(len(self._wanted))
            self._which = longer
        numbers = np.array(rows, np.int32) if rows else np.zeros((0, 3), np.int32)
        return Lists(
            numbers, np.array(offsets, np.int64), self.space, self._lists, self._which, self._budget, self._layouts
        )

    def _numbered(self, triples: Sequence[Triple], places: Sequence[int | None]) -> list[tuple[int, int, int]]:
        """The triples that some pattern can use, their terms as numbers."""
        if self._reads_any:
            terms = iter(self.space.numbers([term for triple in triples for term in triple]))
            return list(zip(terms, terms, terms, strict=True))
        read = [
            (triple, place)
            for triple, place in zip(triples, places, strict=True)
            if place is not None and isinstance(triple[1], URIRef)
        ]
        terms = iter(self.space.numbers([term for triple, _ in read for term in (triple[0], triple[2])]))
        return list(zip(terms, [place for _, place in read], terms, strict=True))
