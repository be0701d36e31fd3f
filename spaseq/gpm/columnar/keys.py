"""The partitions of one evaluation, numbered as they occur, over all batches and streams."""

from __future__ import annotations

from spaseq.gpm.mappings import Mapping

__all__ = ["Keys"]


class Keys:
    """Numbers of mappings, from 0: equal mappings, equal numbers. Grows with the partitions, as their runs do.

    `known`: numbers by the bytes of the mappings' terms, where those were read off a batch, so that a term is made once
    for all batches.
    """

    __slots__ = ("_numbers", "_texts", "known", "mappings")

    def __init__(self) -> None:
        self.mappings: list[Mapping] = []
        self.known: dict[tuple[bytes | None, ...], int] = {}
        self._numbers: dict[Mapping, int] = {}
        self._texts: dict[int, str] = {}

    def number(self, mapping: Mapping) -> int:
        """The number of a mapping, which gets the next one where it has none."""
        found = self._numbers.setdefault(mapping, len(self.mappings))
        if found == len(self.mappings):
            self.mappings.append(mapping)
        return found

    def text(self, number: int) -> str:
        """What mappings of one instant are ordered by."""
        found = self._texts.get(number)
        if found is None:
            found = self._texts[number] = repr(self.mappings[number])
        return found
