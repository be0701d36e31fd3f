"""Aligned columns, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Final

from spaseq.measure import width_of

__all__ = ["Table"]

_SAMPLE: Final = 200
_WIDEST: Final = 60
_ONE_LINE: Final = str.maketrans("\t\r\n", "   ")


class Table:
    """A table written row by row. Its columns are as wide as the first rows need, so that output can begin early.

    `right`: the columns that are aligned at the right, those of numbers. `live`: each row is written at once. `rule`:
    whether there is a line of dashes below the head. Wide characters (East Asian, emoji) count as two.
    """

    def __init__(
        self, out: IO[str], head: Sequence[str], *, right: Sequence[int] = (), live: bool = False, rule: bool = True
    ) -> None:
        self._out = out
        self._right = frozenset(right)
        self._rule = rule
        self._sample = 1 if live else _SAMPLE
        self._waiting: list[Sequence[str]] = [head]
        self._widths: list[int] | None = None

    def row(self, cells: Sequence[str]) -> None:
        """Adds a row."""
        self._waiting.append([cell.translate(_ONE_LINE) for cell in cells])
        if self._widths is not None or len(self._waiting) > self._sample:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that are held back to find the widths of columns, after the head."""
        if self._widths is None:
            self._widths = [min(_WIDEST, max(map(width_of, column))) for column in zip(*self._waiting, strict=True)]
            if self._rule:
                self._waiting.insert(1, ["-" * width for width in self._widths])
        self._out.writelines(map(self._aligned, self._waiting))
        self._waiting = []

    def _aligned(self, cells: Sequence[str]) -> str:
        assert self._widths is not None
        parts = []
        for place, (cell, width) in enumerate(zip(cells, self._widths, strict=True)):
            padding = " " * (width - width_of(cell))
            parts.append(padding + cell if place in self._right else cell + padding)
        return "  ".join(parts).rstrip() + "\n"
