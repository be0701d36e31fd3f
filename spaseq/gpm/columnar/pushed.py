"""Lists for events that are pushed one by one; their terms keep their numbers from one push to the next.

A batch from a file numbers its terms once for thousands of events. For a single event, numbering its terms and building
the kernel's arguments for each pattern would cost far more than the match. So pushed events share one space of terms.
When it has grown too large a new one is begun; solutions keep a reference to the space of their terms.
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

TERMS: Final = 1 << 16
CHARACTERS: Final = 1 << 24
"""A push begins a new space if the old one has more terms, or more characters in them, than this."""

_NO_TERMS: Final = TermTable.of(())


class PushedTerms:
    """The space of terms for the events pushed to one stream.

    `wanted`: the predicates that get lists. `read`: those whose triples a pattern can use; None for all predicates.
    `places`: the number of each of these predicates, by its text; the same in every space. `reads_any`: True if a
    pattern can use triples of any predicate.
    """

    def __init__(self, wanted: Iterable[URIRef], read: frozenset[URIRef] | None, budget: int) -> None:
        self._wanted = tuple(dict.fromkeys(wanted))
        self._named = tuple(dict.fromkeys([*self._wanted, *sorted(read or ())]))
        # PERF: by text, because a look-up by an rdflib term calls Python code: 0.3 µs a triple became 0.1.
        self.places: dict[str, int] = {str(predicate): place for place, predicate in enumerate(self._named)}
        self._lists = {predicate: place for place, predicate in enumerate(self._wanted)}
        self.reads_any: bool = read is None
        self._budget = budget
        self._begin()

    def _begin(self) -> None:
        self.space: Space = Space(_NO_TERMS)
        self.space.numbers(self._named)
        self._which = np.arange(max(1, len(self._wanted)), dtype=np.int32)
        self._layouts: dict[int, tuple[BasicPattern, np.ndarray]] = {}

    def predicates(self, triples: Iterable[Triple]) -> list[int | None]:
        """For each triple the number of its predicate in `places`; None if it is not there."""
        place = self.places.get
        return [place(str(triple[1])) for triple in triples]

    def lists(self, graphs: Iterable[tuple[Sequence[Triple], Sequence[int | None]]]) -> Lists:
        """The lists of events, each given as its triples and their `predicates`. O(triples), a Python step for each
        triple that a pattern can use."""
        if len(self.space) > TERMS or self.space.text > CHARACTERS:
            self._begin()
        rows: list[tuple[int, int, int]] = []
        offsets = [0]
        for triples, places in graphs:
            own = self._number(triples, places)
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

    def _number(self, triples: Sequence[Triple], places: Sequence[int | None]) -> list[tuple[int, int, int]]:
        """The triples that some pattern can use, as numbers of terms."""
        if self.reads_any:
            terms = iter(self.space.numbers([term for triple in triples for term in triple]))
            return list(zip(terms, terms, terms, strict=True))
        read = [
            (triple, place)
            for triple, place in zip(triples, places, strict=True)
            if place is not None and isinstance(triple[1], URIRef)
        ]
        terms = iter(self.space.numbers([term for triple, _ in read for term in (triple[0], triple[2])]))
        return list(zip(terms, [place for _, place in read], terms, strict=True))
