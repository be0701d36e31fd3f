"""The contents of a part of a stream in numbers, as they travel beside its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

from spaseq.rdf import Counters

UNREADABLE: Final = 'malformed="drop" leaves such messages out and counts them; dead_letters(…) gives them'
"""The hint of errors about messages."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a part held: `Counters`, and `last` 1 where its stream ends with it."""

    counters: Counters
    last: int

    def row(self) -> list[int]:
        """As in the column `counts`."""
        return [*astuple(self.counters), self.last]

    @staticmethod
    def of(row: Sequence[int]) -> Told:
        """The inverse of `row`."""
        return Told(Counters(*row[:-1]), row[-1])
