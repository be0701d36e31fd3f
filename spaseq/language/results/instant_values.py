"""The mappings of conjunctions at the instants of a batch, as codes of terms, which are numbered here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC

import numpy as np

from spaseq.core.engine.program.register_ops import NOTHING
from spaseq.core.integers import ranges
from spaseq.gpm import Mapping
from spaseq.language.guards.terms import NumberedTerms, SolutionTerms
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.solving.instants import InstantBatch

Block = tuple[np.ndarray, np.ndarray]
"""Places, ascending, one for each mapping: int64 (n,); and the codes of its terms, NOTHING if it does not bind a
variable: int64 (n, names)."""


class InstantValues:
    """Reads the values of instants. `terms`: the terms that codes stand for."""

    def __init__(self) -> None:
        self.terms: NumberedTerms = NumberedTerms()
        self._solved = SolutionTerms(self.terms)

    def forget(self) -> None:
        """Let go of the batches that were read."""
        self._solved.forget()

    def at(self, batch: InstantBatch, conjunction: Conjunction, names: Sequence[str], rows: np.ndarray) -> Block:
        """The different mappings of a conjunction on the variables `names`, in `rows` of a batch (ascending, each
        once): the row of each and the codes of its terms. The batch was asked in which of these rows it holds."""
        solved = batch.rows.solutions(conjunction[0]) if len(conjunction) == 1 and names else None
        if solved is None:
            every = np.zeros(len(batch), bool)
            every[rows] = True
            holding = np.flatnonzero(batch.holds(conjunction, every)).tolist()
            listed = {row: self.codes_of(batch.mappings(conjunction, row), names) for row in holding}
            return block_of(listed, len(names))
        found: list[np.ndarray] = []
        columns: list[np.ndarray] = []
        for own, solutions, places in solved:
            first = batch.first
            low, high = np.searchsorted(own, rows + first, "left"), np.searchsorted(own, rows + first, "right")
            if (here := ranges(low, high - low)).size:
                found.append(np.repeat(rows, high - low))
                columns.append(np.stack([self._solved.codes(solutions, places[here], name) for name in names], axis=1))
        if not found:
            return block_of({}, len(names))
        return each_once(np.concatenate(found), np.concatenate(columns))

    def codes_of(self, mappings: Iterable[Mapping], names: Sequence[str]) -> list[list[int]]:
        """The codes of different mappings, ordered."""
        terms, found = self.terms, set[tuple[int, ...]]()
        for mapping in mappings:
            bound = dict(mapping)
            found.add(tuple(NOTHING if bound.get(n) is None else terms.of(bound[n]) for n in names))
        return [list(codes) for codes in sorted(found)]


def block_of(codes: MappingABC[int, Sequence[Sequence[int]]], width: int) -> Block:
    """The block of mappings by position, or by row."""
    places = np.repeat(np.array(list(codes), np.int64), np.array([len(rows) for rows in codes.values()], np.int64))
    return places, np.array([row for rows in codes.values() for row in rows], np.int64).reshape(len(places), width)


def each_once(places: np.ndarray, codes: np.ndarray) -> Block:
    """Mappings ordered by their place and their codes, each once; as they are if each place has one."""
    if (places[1:] > places[:-1]).all():
        return places, codes
    order = np.lexsort((*codes.T[::-1], places))
    places, codes = places[order], codes[order]
    fresh = np.ones(len(places), bool)
    fresh[1:] = (places[1:] != places[:-1]) | (codes[1:] != codes[:-1]).any(axis=1)
    return places[fresh], codes[fresh]
