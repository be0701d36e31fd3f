"""Aligned columns, for people to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import IO, Final

from spaseq.core.measure import shorten, visible, width_of
from spaseq.tools.command.colours import styled

_SAMPLE: Final = 200
_WIDEST: Final = 60
_LEAST: Final = 12
"""Columns of a terminal that a text keeps."""
_GAP: Final = 2
_ONE_LINE: Final = str.maketrans("\t\r\n", "   ")
"""Of a cell; other control characters are made visible."""
_WHOLE: Final = re.compile(r"[-+]?[\d.,:_]+([eE][-+]?\d+)?%?|\d{4}-\d\d-\d\d\S*|")
"""Cells that are never shortened: numbers and times."""


class Table:
    """A table written row by row. Its columns are as wide as the first rows need, so that output can begin early.

    `right`: the columns that are aligned at the right, those of numbers. `live`: each row is written at once. `rule`:
    whether there is a line of dashes below the head. Wide characters (East Asian, emoji) count as two.

    `width`: that of the terminal, if it is written to one. Then texts are shortened to fit, numbers and times never; of
    an IRI its end is kept. If that is not enough, columns in the middle are left out (`left_out`). Before, and from
    the end, up to `spare` columns are.
    """

    def __init__(
        self,
        out: IO[str],
        head: Sequence[str],
        *,
        right: Sequence[int] = (),
        live: bool = False,
        rule: bool = True,
        spare: int = 0,
        width: int | None = None,
    ) -> None:
        self._out = out
        self._right = frozenset(right)
        self._rule = rule
        self._sample = 1 if live else _SAMPLE
        self._waiting: list[Sequence[str]] = [[_show(name) for name in head]]
        self._widths: list[int] | None = None
        self._width = width
        self._shown = list(range(len(head)))
        self._styled = width is not None
        self._spare = spare
        self.has_cut = False

    @property
    def left_out(self) -> int:
        """The number of columns that are not shown, once the first rows are."""
        return 0 if self._widths is None else len(self._widths) - len(self._shown)

    def row(self, cells: Sequence[str]) -> None:
        """Adds a row."""
        self._waiting.append([_show(cell) for cell in cells])
        if self._widths is not None or len(self._waiting) > self._sample:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that are held back to find the widths of columns, after the head."""
        if self._widths is None:
            columns = list(zip(*self._waiting, strict=True))
            self._widths = [min(_WIDEST, max(map(width_of, column))) for column in columns]
            if self._width is not None:
                self._fit(self._width, columns)
            lines = [self._align(self._waiting.pop(0))]
            if self._styled:
                lines = [styled(lines[0].rstrip("\n"), "head", self._out) + "\n"]
            if self._rule:
                lines.append(self._align(["-" * width for width in self._widths]))
            self._out.writelines(lines)
        self._out.writelines(map(self._align, self._waiting))
        self._waiting = []

    def _fit(self, width: int, columns: Sequence[Sequence[str]]) -> None:
        """Narrows columns of texts, the widest first, then leaves columns out."""
        assert self._widths is not None
        widths = self._widths
        texts = [i for i, column in enumerate(columns) if not all(_WHOLE.fullmatch(cell) for cell in column[1:])]

        def over() -> int:
            return sum(widths[i] for i in self._shown) + _GAP * (len(self._shown) - 1) - width

        for _ in range(self._spare):
            if over() > 0:
                self._shown.pop()
        texts = [i for i in texts if i in self._shown]
        while over() > 0 and texts:
            widest = max(texts, key=widths.__getitem__)
            if widths[widest] <= _LEAST:
                break
            widths[widest] = max(_LEAST, widths[widest] - over())
        while over() > 0 and len(self._shown) > 2:
            self._shown.pop(-2)

    def _align(self, cells: Sequence[str]) -> str:
        assert self._widths is not None
        parts = []
        for place in self._shown:
            cell, width = cells[place], self._widths[place]
            if self._width is not None and width_of(cell) > width and not _WHOLE.fullmatch(cell):
                cell = _cut(cell, width)
                self.has_cut = True
            padding = " " * (width - width_of(cell))
            parts.append(padding + cell if place in self._right else cell + padding)
        return (" " * _GAP).join(parts).rstrip() + "\n"


def _show(cell: str) -> str:
    return cell if cell.isprintable() else visible(cell.translate(_ONE_LINE))


def _cut(text: str, width: int) -> str:
    """The end of an IRI, which identifies it; the beginning of any other text."""
    if "/" in text or text.startswith("<"):
        while width_of(text) > width - 1:
            text = text[max(1, len(text) - width + 1) if len(text) >= width else 1 :]
        return "…" + text
    return shorten(text, width)
