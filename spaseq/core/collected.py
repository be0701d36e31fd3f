"""Matches in hand, as `Collected`: a sequence and a table. And `Lazy`: matches that are found as they are asked for.

Both languages' `Matches` are `Lazy`. Their parts are what evaluations give: lists of matches, or matches in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final, Generic, Protocol, SupportsIndex, TypeVar, overload

import pyarrow as pa

from spaseq.core.drawing.html import table_html
from spaseq.core.errors import expect_count, expect_type
from spaseq.core.events import frame_of
from spaseq.core.measure import shorten, width_of

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)

_NUMBER: Final = "matches[0], or a slice: matches[:3]"
_SHOWN: Final = 10
_COLUMNS: Final = 12
_CELL: Final = 40


class Part(Protocol[M_co]):
    """Some matches, at least as a list has them."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[M_co]: ...
    def __getitem__(self, rows: slice, /) -> Part[M_co]: ...


class InColumns:
    """A mixin with `to_arrow`, for the libraries of frames that read Arrow's streams: Polars, DuckDB, pyarrow."""

    __slots__ = ()
    to_arrow: Callable[..., pa.Table]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Refused: `pandas.DataFrame(matches)` takes an array of objects, as it cannot read Arrow's streams."""
        raise TypeError("matches are no array: to_pandas() gives a DataFrame, to_arrow() a table, list() the matches")


class Collected(InColumns, Generic[M]):
    """Matches that were found: a sequence of `Match`, and a table. It never changes.

    It is no `collections.abc.Sequence`, of which Polars would read the objects. `to_table(parts, **form)` gives the
    table of parts.
    """

    __slots__ = ("_ends", "_parts", "_to_table")

    def __init__(self, parts: Iterable[Part[M]], to_table: Callable[..., pa.Table]) -> None:
        self._parts: tuple[Part[M], ...] = tuple(part for part in parts if len(part))
        self._ends = tuple(accumulate(map(len, self._parts)))
        self._to_table = to_table

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[M]:
        for part in self._parts:
            yield from part

    @overload
    def __getitem__(self, number: int, /) -> M: ...
    @overload
    def __getitem__(self, number: slice, /) -> Collected[M]: ...
    def __getitem__(self, number: int | slice, /) -> M | Collected[M]:
        if not isinstance(number, slice):
            expect_type("the number of a match", number, SupportsIndex, _NUMBER)
            if not -len(self) <= number < len(self):
                raise IndexError(f"no match has the number {number}: there {_are(len(self))}")
            chosen = range(len(self))[number]
            return next(iter(self._between(chosen, chosen + 1)))
        rows = range(len(self))[number]
        if rows.step == 1:
            return self._between(rows.start, rows.stop)
        pieces = (self._between(row, row + 1)._parts for row in rows)
        return Collected((part for parts in pieces for part in parts), self._to_table)

    def _between(self, low: int, high: int) -> Collected[M]:
        starts = (0, *self._ends)
        cut = (
            part[max(low - start, 0) : max(high - start, 0)] for part, start in zip(self._parts, starts, strict=False)
        )
        return Collected(cut, self._to_table)

    def head(self, count: int = 5) -> Collected[M]:
        """The first `count` matches."""
        expect_count("count", count)
        return self._between(0, count)

    def to_arrow(self, **form: Any) -> pa.Table:
        """As `Matches.to_arrow`, of these matches."""
        table: pa.Table = self._to_table(self._parts, **form)
        return table

    def to_pandas(self, **form: Any) -> Any:
        """`to_arrow` as a `pandas.DataFrame`. `OptionError` without pandas."""
        return frame_of(lambda: self.to_arrow(**form))

    def to_polars(self, **form: Any) -> Any:
        """`to_arrow` as a `polars.DataFrame`. `OptionError` without Polars."""
        return frame_of(lambda: self.to_arrow(**form), "polars")

    def _first_rows(self) -> tuple[list[str], list[list[str]]]:
        table = self.head(_SHOWN).to_arrow()
        names = table.column_names[:_COLUMNS]
        rows = [[shorten(_cell(row[name]), _CELL) for name in names] for row in table.to_pylist()]
        return names, rows

    def _number(self) -> str:
        more = f", the first {_SHOWN} here" if len(self) > _SHOWN else ""
        return f"{len(self):,} match{'' if len(self) == 1 else 'es'}{more}"

    def __repr__(self) -> str:
        names, rows = self._first_rows()
        lines = [names, *rows] if rows else []
        widths = [max(map(width_of, column)) for column in zip(*lines, strict=True)]
        texts = (
            "  ".join(cell + " " * (width - width_of(cell)) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return "\n".join([f"<{self._number()}>", *(text.rstrip() for text in texts)])

    def _repr_html_(self) -> str:
        return table_html(*self._first_rows(), f"{self._number()}.")


def _are(count: int) -> str:
    return "is 1 match" if count == 1 else f"are {count:,} matches"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_cell, value))
    return "" if value is None else str(value)


class Lazy(InColumns, Generic[M]):
    """Matches that are found as they are asked for; each use reads the events anew.

    What uses the mixin gives `parts`, whose reading may end anywhere, and `table_of`.
    """

    def parts(self) -> Iterator[Part[M]]:
        """The matches, some at a time; each is read to its end before the next."""
        raise NotImplementedError

    def table_of(self, parts: Sequence[Part[M]], **form: Any) -> pa.Table:
        """The table of some of the parts."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[M]:
        for part in self.parts():
            yield from part

    def to_arrow(self) -> pa.Table:
        """All matches as a table."""
        return self.table_of(list(self.parts()))

    def to_pandas(self) -> Any:
        """`to_arrow` as a `pandas.DataFrame`. `OptionError` without pandas."""
        return frame_of(self.to_arrow)

    def to_polars(self) -> Any:
        """`to_arrow` as a `polars.DataFrame`. `OptionError` without Polars."""
        return frame_of(self.to_arrow, "polars")

    def collect(self) -> Collected[M]:
        """All matches, in hand: `len`, numbers and slices, tables. Memory grows with the matches."""
        return Collected(self.parts(), self.table_of)

    def head(self, count: int = 5) -> Collected[M]:
        """The first `count` matches. No event is read behind those that complete them, but for what is read at once."""
        expect_count("count", count)
        found: list[Part[M]] = []
        if count:
            for part in self.parts():
                found.append(part[:count])
                count -= len(found[-1])
                if not count:
                    break
        return Collected(found, self.table_of)

    @overload
    def __getitem__(self, number: int, /) -> M: ...
    @overload
    def __getitem__(self, number: slice, /) -> Collected[M]: ...
    def __getitem__(self, number: int | slice, /) -> M | Collected[M]:
        """One match, or a slice; counted from the end, all are found first."""
        if isinstance(number, slice):
            ends = (number.start or 0, number.stop)
            known = number.stop is not None and min(ends) >= 0 and (number.step or 1) > 0
            return (self.head(number.stop) if known else self.collect())[number]
        expect_type("the number of a match", number, SupportsIndex, _NUMBER)
        return (self.head(number + 1) if number >= 0 else self.collect())[number]
