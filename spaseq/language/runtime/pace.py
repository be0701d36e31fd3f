"""The number of rows that the engine gets at once: as many as it takes a fraction of a second to evaluate."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Final

from spaseq.core.engine import MatchBatch
from spaseq.core.watch import check

_FIRST: Final = 1
_MOST: Final = 1 << 14
"""Rows at the beginning, and of any piece."""
_SECONDS: Final = 0.1
_MATCHES: Final = 8192
"""The seconds that a piece of more than one row should take at most, and its matches."""


class Pace:
    """The size of the next piece of rows. The first ones are small, so that few results are found quickly, and a dense
    stream never makes more matches at once than a piece should. `rows` is at least 1."""

    def __init__(self) -> None:
        self.rows: int = _FIRST

    def noted(self, found: Iterator[MatchBatch]) -> Iterator[MatchBatch]:
        """The matches of a piece, as they are found; then `rows` is set anew. The consumer's time does not count."""
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
