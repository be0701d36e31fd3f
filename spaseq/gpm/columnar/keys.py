"""Numbers for the keys of partitions, in order of appearance, over all batches and streams."""

from __future__ import annotations

from spaseq.gpm.mappings import Mapping

__all__ = ["Keys"]


class Keys:
    """Numbers mappings from 0; equal mappings have equal numbers. Grows with the mappings.

    `known`: the numbers by the bytes of the mappings' terms in a batch, so that rdflib terms are made once for all
    batches.
    """

    __slots__ = ("_numbers", "_texts", "known", "mappings")

    def __init__(self) -> None:
        self.mappings: list[Mapping] = []
        self.known: dict[tuple[bytes | None, ...], int] = {}
        self._numbers: dict[Mapping, int] = {}
        self._texts: dict[int, str] = {}

    def number(self, mapping: Mapping) -> int:
        """The number of a mapping; the next one if it is new."""
        found = self._numbers.setdefault(mapping, len(self.mappings))
        if found == len(self.mappings):
            self.mappings.append(mapping)
        return found

    def text(self, number: int) -> str:
        """The sort key for the partitions of one instant."""
        found = self._texts.get(number)
        if found is None:
            found = self._texts[number] = repr(self.mappings[number])
        return found
