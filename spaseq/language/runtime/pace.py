"""How many rows the engine gets at once: as many as it takes a fraction of a second to evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Final

from spaseq.core.engine import MatchBatch
from spaseq.core.watch import check

__all__ = ["Pace"]

_FIRST: Final = 1
_MOST: Final = 1 << 14
"""Rows at the beginning, and of any piece."""
_SECONDS: Final = 0.1
_MATCHES: Final = 8192
"""What a piece of more rows than one should take, and give."""


class Pace:
    """The size of the next piece of rows. The first ones are small, so that few results are found quickly, and a dense
    stream never makes more matches at once than a piece should. `rows` is at least 1."""

    def __init__(self) -> None:
        self.rows: int = _FIRST

    def noted(self, found: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """What a piece gives, as it is found; then `rows` is settled anew. The time of whoever takes it does not
        count."""
        taken, matches = 0.0, 0
        while True:
            began = perf_counter()
            part = next(found, None)
            taken += perf_counter() - began
            if part is None:
                break
            check()
            matches += len(part)
            yield part
        if taken > _SECONDS or matches > _MATCHES:
            self.rows = max(1, self.rows // 4)
        elif 8 * taken < _SECONDS and 8 * matches < _MATCHES:
            self.rows = min(_MOST, 4 * self.rows)
