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

from spaseq.gpm.columnar.basic import BasicPattern, Lists
from spaseq.gpm.columnar.table import Space
from spaseq.rdf import Term, Triple
from spaseq.rdf.columns import TermTable

__all__ = ["PushedTerms"]

TERMS: Final = 1 << 16
CHARACTERS: Final = 1 << 24
"""Terms, and characters of them, from which on a new space is begun. A push may go beyond."""

_NO_TERMS: Final = TermTable.of(())


class PushedTerms:
    """The space of the events pushed to one stream.

    `wanted`: the predicates that have lists. `read`: those whose triples a pattern can use; None where it may be any.
    """

    def __init__(self, wanted: Iterable[URIRef], read: frozenset[URIRef] | None, budget: int) -> None:
        self._wanted = tuple(dict.fromkeys(wanted))
        self._read = read
        self._budget = budget
        self._begin()

    def _begin(self) -> None:
        self.space = Space(_NO_TERMS)
        self._lists = {predicate: self.space.number(predicate) for predicate in self._wanted}
        self._predicates: dict[Term, int] | None = None
        if self._read is not None:
            self._predicates = {predicate: self.space.number(predicate) for predicate in self._read}
        self._which = np.arange(max(1, len(self._wanted)), dtype=np.int32)
        self._layouts: dict[int, tuple[BasicPattern, np.ndarray]] = {}

    def lists(self, graphs: Sequence[Sequence[Triple]]) -> Lists:
        """The triples of events. O(triples), a Python step for each that is read."""
        if len(self.space) > TERMS or self.space.text > CHARACTERS:
            self._begin()
        known, number = self._predicates, self.space.number
        rows: list[tuple[int, int, int]] = []
        offsets = [0]
        for triples in graphs:
            if known is None:
                own = [(number(s), number(p), number(o)) for s, p, o in triples]
            else:
                found = ((s, known.get(p), o) for s, p, o in triples)
                own = [(number(s), p, number(o)) for s, p, o in found if p is not None]
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
