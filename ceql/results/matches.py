"""Matches as objects, or in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ceql.results.bindings import Bindings, Shown, plain
from ceql.results.column_types import Types
from ceql.results.history import Block, History
from ceql.results.selected import Selected, Times
from ceql.results.typed import R, row_as
from spaseq.core.drawing import match_html
from spaseq.core.engine import MatchBatch
from spaseq.core.errors import OptionError, expect_count
from spaseq.core.events import EventBatch, in_microseconds
from spaseq.core.events.readers import common_schema
from spaseq.core.steps import Step


@dataclass(frozen=True, slots=True, repr=False)
class Match:
    """A complex event: interval, positions, and which variable took which of them.

    `bindings` maps each variable that took events to their positions, ascending. It is empty unless valuations were
    asked for: `run(…, valuations=True)`, attributes in SELECT, or columns that read variables. `silence`: the number of
    the silence behind it that this row reports, from 1 on, of `NOT … FOR EVERY`; else 0.
    """

    start: int
    end: int
    positions: tuple[int, ...]
    bindings: dict[str, list[int]] = field(default_factory=dict, compare=False)
    _history: History | None = field(default=None, repr=False, compare=False)
    _shown: Shown | None = field(default=None, repr=False, compare=False)
    _rows: _Rows | None = field(default=None, repr=False, compare=False)
    _number: int = field(default=0, repr=False, compare=False)
    silence: int = 0

    def __repr__(self) -> str:
        told = f"start={self.start}, end={self.end}, positions={self.positions}, bindings={self.bindings}"
        told += f", silence={self.silence}" if self.silence else ""
        return f"Match({told}, row={self.row})" if self._rows is not None else f"Match({told})"

    def _repr_html_(self) -> str:
        return match_html(self)

    @property
    def row(self) -> dict[str, Any]:
        """The row of the match: the values of the columns that SELECT computes, by name; {} if it computes none."""
        return {} if self._rows is None else self._rows.of(self._number)

    def as_(self, row: type[R]) -> R:
        """`row` as an object of a class of yours: a dataclass, a NamedTuple, a TypedDict or a pydantic model. Columns
        that it has no field for are left out.

        Raises `OptionError` for a field that is no column, `EventError` for a value that its annotation does not admit.
        """
        return row_as(row, self.row)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The matched events, in order, as dicts of their attributes that are not NULL.

        If SELECT lists attributes for all variables that took an event, its dict has only those.
        """
        if self._history is None:
            return []
        found = [self._history.event(p) for p in self.positions]
        if self._shown is None or all(listed is None for listed in self._shown.attributes.values()):
            return found
        return [_only(event, self._listed_attributes(p)) for event, p in zip(found, self.positions, strict=True)]

    @property
    def attributes(self) -> dict[str, list[dict[str, Any]]]:
        """For each variable of `bindings` its events, as dicts of the attributes that SELECT lists for it, or of
        all."""
        if self._history is None or self._shown is None:
            return {}
        return {
            variable: [_only(self._history.event(p), self._shown.attributes[variable]) for p in positions]
            for variable, positions in self.bindings.items()
        }

    @property
    def steps(self) -> tuple[Step, ...]:
        """The variable that took each event, in order of the positions; an event that several took has a step for each.

        For a match that is no valuation (`bindings`) only the events are known: their types are the names.
        """
        taken: dict[int, list[str]] = {}
        for name, positions in self.bindings.items():
            for position in positions:
                taken.setdefault(position, []).append(name)
        times = dict(zip(self.positions, self.times, strict=True))
        events = {} if self._history is None else {p: self._history.event(p) for p in self.positions}
        return tuple(
            Step(name, position, times[position], events[position])
            for position in self.positions
            for name in taken.get(position, () if taken else (self._of_events().kind(position),))
        )

    @property
    def pieces(self) -> list[tuple[EventBatch | Block, int]]:
        """The batch and the row there of each of `positions`; empty if the match does not have its events."""
        return [] if self._history is None else list(map(self.piece, self.positions))

    def piece(self, position: int) -> tuple[EventBatch | Block, int]:
        """The batch and the row there of one event: of `start`, of `end`, or of one of `positions`."""
        return self._of_events().place(position)

    @property
    def times(self) -> tuple[int, ...]:
        """The times of `positions`, ns."""
        return tuple(self._of_events().times(np.array(self.positions, np.int64)).tolist())

    @property
    def time(self) -> int:
        """The time of the match: that of the event it ends at, ns."""
        return int(self._of_events().times(np.array([self.end]))[0])

    @property
    def last_event(self) -> dict[str, Any]:
        """The attributes of the event it ends at, which an alert has, too."""
        return self._of_events().event(self.end)

    def _of_events(self) -> History:
        if self._history is None:
            raise OptionError("this match does not know its events")
        return self._history

    def _listed_attributes(self, position: int) -> tuple[str, ...] | None:
        """The attributes that SELECT lists for the variables that took an event; None if one of these has no list."""
        assert self._shown is not None
        found: dict[str, None] = {}
        for variable, positions in self.bindings.items():
            listed = self._shown.attributes[variable]
            if position in positions:
                if listed is None:
                    return None
                found.update(dict.fromkeys(listed))
        return tuple(found)


def _only(event: dict[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    return event if names is None else {name: event[name] for name in names if name in event}


class _Rows:
    """The rows of the matches of a table, computed together when the first is asked for."""

    __slots__ = ("_found", "_table")

    def __init__(self, table: MatchTable) -> None:
        self._table: MatchTable | None = table
        self._found: list[dict[str, Any]] = []

    def of(self, number: int) -> dict[str, Any]:
        """The row of one match."""
        table = self._table
        if table is not None:
            self._found = in_microseconds(table.rows(natural=True)).to_pylist()
            self._table = None
        return self._found[number]


@dataclass(frozen=True, slots=True)
class Computing:
    """The columns that SELECT computes, with the form of times and the types that a schema gives."""

    selected: Selected
    times: Times
    declared: Types


class OverTable:
    """A mixin for rows of another form over a table of matches, `found`: what Spark reads of them besides."""

    __slots__ = ()
    found: MatchTable

    @property
    def matches(self) -> MatchBatch:
        """The matches, or partial matches, with the numbers of their events."""
        return self.found.matches

    @property
    def history(self) -> History:
        """Their events."""
        return self.found.history

    def __len__(self) -> int:
        return len(self.found)


@dataclass(frozen=True, slots=True)
class MatchTable:
    """Matches in columns, with their events; `bindings` if valuations were asked for, `computing` if SELECT computes
    columns."""

    matches: MatchBatch
    history: History
    bindings: Bindings | None = None
    computing: Computing | None = None

    @staticmethod
    def of(matches: MatchBatch, history: History, bindings: Bindings | None, computing: Computing | None) -> MatchTable:
        """The table of matches as an evaluation gives them."""
        labelled = matches if bindings is None else bindings.label(matches, history)
        return MatchTable(labelled, history, bindings, computing)

    def __len__(self) -> int:
        return len(self.matches)

    def __iter__(self) -> Iterator[Match]:
        m, history, bindings = self.matches, self.history, self.bindings
        starts, ends, offsets, positions = (a.tolist() for a in (m.start, m.end, m.offsets, m.positions))
        bound = None if bindings is None else bindings.dictionaries(m)
        shown = None if bindings is None else bindings.shown
        rows = None if self.computing is None else _Rows(self)
        silences = [0] * len(starts) if m.silences is None else m.silences.tolist()
        for i in range(len(starts)):
            taken, own = {} if bound is None else bound[i], tuple(positions[offsets[i] : offsets[i + 1]])
            yield Match(starts[i], ends[i], own, taken, history, shown, rows, i, silences[i])

    def __getitem__(self, rows: slice) -> MatchTable:
        """Matches in a row."""
        low, high, _ = rows.indices(len(self))
        if (low, high) == (0, len(self)):
            return self
        m, high = self.matches, max(low, high)
        first, last = m.offsets[low], m.offsets[high]
        labels = None if m.labels is None else m.labels[first:last]
        sums = None if m.sums is None else m.sums[low:high]
        offsets = m.offsets[low : high + 1] - first
        silences = None if m.silences is None else m.silences[low:high]
        cut = MatchBatch(
            m.start[low:high], m.end[low:high], offsets, m.positions[first:last],
            labels=labels, sums=sums, silences=silences,
        )  # fmt: skip
        return MatchTable(cut, self.history, self.bindings, self.computing)

    def rows(self, *, natural: bool = False) -> pa.Table:
        """The columns that SELECT computes. With `natural` each value keeps its kind, in unions; without, a column has
        the type that is known from the input."""
        assert self.computing is not None
        c = self.computing
        return c.selected.table(self.matches, self.history, self.bindings, c.times, c.declared, natural)

    def to_arrow(self, iso: bool) -> pa.Table:
        """The columns that SELECT computes; else start, end, positions, start_time and end_time (int64 ns, or with
        `iso` timestamps), and `silence` of a query with `NOT … FOR EVERY`.

        With valuations, each variable v has a column `v`, lists of the positions it took, and columns `v.attribute`,
        lists of its events' values, as long as the former. An attribute that no event has had yet has no column.
        """
        if self.computing is not None:
            return self.rows()
        m = self.matches
        offsets = m.offsets - (m.offsets[0] if len(m.offsets) else 0)
        positions = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(m.positions, pa.int64()))
        kind = pa.timestamp("ns", "UTC") if iso else pa.int64()
        times = [pa.array(self.history.times(p), pa.int64()).cast(kind) for p in (m.start, m.end)]
        columns: dict[str, Any] = dict(zip(("start", "end", "positions", "start_time", "end_time"),
                           (pa.array(m.start), pa.array(m.end), positions, *times), strict=True))  # fmt: skip
        if m.silences is not None:
            columns["silence"] = pa.array(m.silences)
        if self.bindings is not None:
            columns.update(self.bindings.columns(m, self.history.table, self.history.rows))
        return pa.table(columns)


def count_rows(tables: Iterator[Sized], limit: int | None) -> int:
    """The rows of the tables, or `limit` if there are as many; no table behind those is asked for."""
    if limit is not None:
        expect_count("limit", limit)
    found = 0
    for table in tables:
        found += len(table)
        if limit is not None and found >= limit:
            return limit
    return found


def join_tables(tables: list[pa.Table]) -> pa.Table:
    """One table of several. A column whose values are of several kinds has doubles, or else texts, as of one batch."""
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        together = common_schema(tables, "SELECT")
        return pa.table({name: plain(together.column(name)) for name in together.column_names})


def empty_table(iso: bool = False, shown: Shown | None = None, *, repeats: bool = False) -> pa.Table:
    """The table of no matches; with `shown`, it has the columns of valuations that are known without events. `repeats`:
    they would be reported again after each silence."""
    kind = pa.timestamp("ns", "UTC") if iso else pa.int64()
    positions = pa.large_list(pa.int64())
    fields = [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("positions", positions),
        ("start_time", kind),
        ("end_time", kind),
        *([("silence", pa.int64())] if repeats else []),
    ]
    for variable in () if shown is None else shown.variables:
        fields.append((variable, positions))
        fields += [(f"{variable}.{name}", pa.large_list(pa.null())) for name in shown.attributes[variable] or ()]  # type: ignore[union-attr]
    return pa.schema(fields).empty_table()
