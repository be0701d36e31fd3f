"""Numbers for the keys of partitions, in order of appearance, over all batches and streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from spaseq.core.integers import Memo
from spaseq.gpm.mappings import Mapping

if TYPE_CHECKING:
    from spaseq.gpm.columnar.table import Space
    from spaseq.rdf.columns.dictionary import Dictionary

_FEW: Final = 4
"""All keys are put in order if they are at most so many times as many as those needed."""


class Keys:
    """Numbers mappings from 0; equal mappings have equal numbers. Grows with the mappings.

    `known`: the numbers by the bytes of the mappings' terms in a batch, so that rdflib terms are made once for all
    batches. The numbers of single terms are found by a kernel (`numbers_of`).
    """

    __slots__ = ("_numbers", "_ranks", "_terms", "_texts", "_told", "known", "mappings")

    def __init__(self) -> None:
        self.mappings: list[Mapping] = []
        self.known: dict[tuple[bytes | None, ...], int] = {}
        self._numbers: dict[Mapping, int] = {}
        self._texts: dict[int, str] = {}
        self._ranks = np.zeros(0, np.int64)
        self._terms: Dictionary | None = None  # of the keys of one term that batches have named
        self._told = Memo()  # by the number of the term there

    def number(self, mapping: Mapping) -> int:
        """The number of a mapping; the next one if it is new."""
        found = self._numbers.setdefault(mapping, len(self.mappings))
        if found == len(self.mappings):
            self.mappings.append(mapping)
        return found

    def numbers_of(self, space: Space, terms: np.ndarray) -> np.ndarray:
        """The numbers of the keys of one variable that have these terms of a batch, as far as `learn` recorded them:
        int64, -1 for others."""
        if self._terms is None:
            return np.full(len(terms), -1, np.int64)
        found = space.found_by(self._terms.finder(), terms)
        return np.where(found < 0, -1, self._told.of(np.where(found < 0, 0, found)))

    def learn(self, keys: Sequence[bytes], numbers: Sequence[int]) -> None:
        """The numbers of the keys that have terms of these bytes (`term_bytes`)."""
        from spaseq.rdf.columns.dictionary import Dictionary  # loads the kernels

        if self._terms is None:
            self._terms = Dictionary()
        places = self._terms.intern(keys)
        self._told.tell(places, np.array(numbers, np.int64))

    def text(self, number: int) -> str:
        """The sort key for the partitions of one instant."""
        found = self._texts.get(number)
        if found is None:
            found = self._texts[number] = repr(self.mappings[number])
        return found

    def in_order(self, numbers: np.ndarray) -> np.ndarray:
        """Different numbers, in the order of their texts: int64."""
        if len(numbers) and int(numbers.max()) >= len(self._ranks):
            if len(self.mappings) > _FEW * len(numbers):
                return np.array(sorted(numbers.tolist(), key=self.text), np.int64)
            order = np.array(sorted(range(len(self.mappings)), key=self.text), np.int64)
            self._ranks = np.empty(len(order), np.int64)
            self._ranks[order] = np.arange(len(order))
        return numbers[np.argsort(self._ranks[numbers])]
