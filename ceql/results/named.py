"""Matches of several queries in one order: pairs of a query's name and a match, or a table of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa

from ceql.results.matches import Match, MatchTable, count_rows, join_tables
from spaseq.core.collected import Lazy, Part
from spaseq.core.events import EventCounters

Found = tuple[str, Match]
"""The name of a query, and a match of it."""
QUERY: Final = "query"
"""The column of a table of all that has the names of the queries."""


@dataclass(frozen=True, slots=True)
class InOrder:
    """Matches of one query, of several tables. `order`: their numbers, counted through all tables: int64 (n,)."""

    tables: tuple[MatchTable, ...]
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Match]:
        every = [match for table in self.tables for match in table]
        return map(every.__getitem__, self.order.tolist())

    def __getitem__(self, rows: slice) -> InOrder:
        return InOrder(self.tables, self.order[rows])

    def to_arrow(self, iso: bool) -> pa.Table:
        """As of `MatchTable`."""
        return join_tables([table.to_arrow(iso) for table in self.tables]).take(self.order)


@dataclass(frozen=True, slots=True)
class NamedMatches:
    """Matches of several queries: `names` has that of each table; `order` is as of `InOrder`."""

    names: tuple[str, ...]
    tables: tuple[MatchTable, ...]
    order: np.ndarray

    @staticmethod
    def of_places(names: Sequence[str], tables: Sequence[MatchTable], places: np.ndarray) -> NamedMatches:
        """The matches of these tables, in order of their places: int64 (n, matches), the first row decides first.
        Those of one place are in the order of the tables."""
        return NamedMatches(tuple(names), tuple(tables), np.lexsort(places[::-1]))

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[Found]:
        every = [(name, match) for name, table in zip(self.names, self.tables, strict=True) for match in table]
        return map(every.__getitem__, self.order.tolist())

    def __getitem__(self, rows: slice) -> NamedMatches:
        return NamedMatches(self.names, self.tables, self.order[rows])

    def of(self, name: str) -> InOrder:
        """The matches of one query."""
        own = np.array([each == name for each in self.names], bool)
        lengths = [len(table) for table in self.tables]
        is_own = np.repeat(own, lengths)
        numbers = np.cumsum(is_own) - 1
        tables = tuple(table for table, mine in zip(self.tables, own.tolist(), strict=True) if mine)
        return InOrder(tables, numbers[self.order[is_own[self.order]]])

    def to_arrow(self, iso: bool) -> pa.Table:
        """The rows of all, with a column `query`; a column that a query does not have is NULL there."""
        found = [_with_name(table.to_arrow(iso), name) for name, table in zip(self.names, self.tables, strict=True)]
        return join_tables(found).take(self.order)


def _with_name(rows: pa.Table, name: str) -> pa.Table:
    """Rows with the name of their query in front, in place of a column of theirs that is called so."""
    rows = rows.drop_columns([QUERY]) if QUERY in rows.column_names else rows
    return rows.add_column(0, QUERY, pa.array([name] * len(rows), pa.string()))


NOTHING: Final = NamedMatches((), (), np.zeros(0, np.int64))


class AllMatches(Lazy[Found]):
    """The matches of several queries over events: pairs of a query's name and a match, in order. What uses the mixin
    gives `parts` and `empty`. `counters` and `notes` are those of the latest use, as of `Matches`."""

    report: tuple[str, ...]

    def __init__(self) -> None:
        self.counters: EventCounters = EventCounters()
        self.notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True if there is a match."""
        return self.count(1) > 0

    def parts(self) -> Iterator[NamedMatches]:
        """The matches, as many at a time as a batch of events completes."""
        raise NotImplementedError

    def empty(self, name: str) -> pa.Table:
        """The table of no matches of a query; columns are NULL if their types are known from events alone."""
        raise NotImplementedError

    def count(self, limit: int | None = None) -> int:
        """The number of matches, or `limit` if there are as many; no row is computed, but for queries that read it."""
        return count_rows(self.parts(), limit)

    def table_of(self, parts: Sequence[Part[Found]], **form: Any) -> pa.Table:
        """`to_arrow`, of some of the `parts`; it has no other forms."""
        tables = [cast("NamedMatches", part).to_arrow(self.counters.iso_times, **form) for part in parts if len(part)]
        return join_tables(tables or [_with_name(self.empty(name), name) for name in self.report])


class QueryMatches(Lazy[Match]):
    """The matches of one of several queries. Each use reads the events anew. Tables have the keys, the columns that
    SELECT computes, `match_start` and `match_end`."""

    def __init__(self, matches: AllMatches, name: str) -> None:
        """`matches`: of this query alone."""
        self._matches = matches
        self._name = name

    @property
    def counters(self) -> EventCounters:
        """As of `Matches`."""
        return self._matches.counters

    @property
    def notes(self) -> tuple[str, ...]:
        """As of `Matches`."""
        return self._matches.notes

    def __bool__(self) -> bool:
        """True if there is a match."""
        return self.count(1) > 0

    def parts(self) -> Iterator[InOrder]:
        """The matches, as many at a time as a batch of events completes."""
        return (part.of(self._name) for part in self._matches.parts())

    def count(self, limit: int | None = None) -> int:
        """The number of matches, or `limit` if there are as many."""
        return self._matches.count(limit)

    def table_of(self, parts: Sequence[Part[Match]], **form: Any) -> pa.Table:
        """`to_arrow`, of some of the `parts`; it has no other forms."""
        found = [part for part in parts if len(part)]
        tables = [cast("InOrder", part).to_arrow(self.counters.iso_times, **form) for part in found]
        return join_tables(tables) if tables else self._matches.empty(self._name)
