"""The queries of a network in progress: one after another, in columns, for each batch of events in order.

`ceql.network` has the meaning. The matches of a query are a table, which is merged with the given events for the
queries that read them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ceql.results.matches import MatchTable
from ceql.results.named import NOTHING, NamedMatches
from ceql.results.selected import Times, value_type
from ceql.runtime.compiled import CompiledQuery
from ceql.runtime.ordered import OrderedMatches, part_of
from ceql.runtime.unmatched import unknown_attributes
from spaseq.core.engine import Choice
from spaseq.core.errors import EventError, OptionError
from spaseq.core.events import EventBatch, EventOptions, format_time
from spaseq.core.events.memory import in_microseconds
from spaseq.core.events.readers import common_schema
from spaseq.core.events.time import unit_nanoseconds
from spaseq.core.events.timestamps import Part
from spaseq.core.queries.networks import Member
from spaseq.core.snapshot import expect

NetworkMember = Member[CompiledQuery]
_TIME: Final = 2
_PLAIN: Final = (pa.types.is_int64, pa.types.is_float64, pa.types.is_string, pa.types.is_boolean, pa.types.is_null,
                 lambda kind: kind == pa.timestamp("us", "UTC"))  # fmt: skip


def is_timed(query: CompiledQuery) -> bool:
    """True if a time says when the matches that wait are events: that of a window, or of NOT … FOR."""
    lowered = query.lowered
    by_time = not lowered.window.by_position and lowered.window_attribute is None
    return lowered.around.patience is not None or (lowered.window.is_bounded and by_time)


def timed_clause(members: Iterable[NetworkMember]) -> str:
    """The first clause of the queries that needs times; empty if there is none."""
    return next((member.query.timed for member in members if member.query.timed), "")


def clash(name: str) -> tuple[str, str]:
    """The error that events of a type are given which is the name of a query: problem and hint."""
    return f"{name} is a query, and the type of given events", "give the query or the type another name"


@dataclass(frozen=True, slots=True)
class _Placed:
    """Events with their places. They are columns; or if one event was pushed, dicts.

    `places`: int64 (3, n), of which the first row decides the order first. It has the number of the given event that
    each is behind. The second row is 1 if it is, or was made by, a match that waited, as nobody knew of it before the
    next given event. The third has the times (ns).
    """

    events: pa.Table | list[dict[str, Any]]
    places: np.ndarray

    @property
    def times(self) -> np.ndarray:
        """The times: int64 (n,)."""
        return self.places[_TIME]

    @property
    def table(self) -> pa.Table:
        """The events in columns."""
        return part_of(self.events, self.times).table if isinstance(self.events, list) else self.events


class NetworkEvaluation:
    """The queries of a network in progress. `iso`: True if times are dates, as far as the events tell. `report`: those
    whose matches are reported."""

    def __init__(
        self,
        members: Sequence[NetworkMember],
        options: EventOptions,
        iso: Callable[[], bool],
        report: Collection[str],
    ) -> None:
        self._members = members
        self._report = report
        self._type_column = options.type_column or "type"
        for member in members:
            selected = member.query.selected
            if member.read and selected is not None and self._type_column in selected.names:
                problem = f"{member.name} has a column {self._type_column}, which says the types of events"
                raise OptionError(
                    problem, f"as an event, its match is of type {member.name}; give it another name: AS …"
                )
        self._derived = {member.name for member in self._members if member.read}
        self._options = dataclasses.replace(options, type=None, by_type=False, type_column=self._type_column)
        self._times = Times(iso, options.unit)
        self._scale = unit_nanoseconds(options.unit)
        self.matches: list[OrderedMatches] = [
            OrderedMatches(member.query, ("",), self._options, iso) for member in self._members
        ]
        self.times_in: tuple[str, bool] | None = None
        """The column of times of the given events, and True if it holds texts; None if there is none."""
        self._time_type: pa.DataType | None = None
        self.last: int = 0

    def lacking(self, given: Collection[str]) -> Iterator[str]:
        """A line for each attribute of a query that no event of it had. `given`: those of the given events."""
        for member in self._members:
            rows = (self.matches[i].columns for i in member.feeds)
            known = {*given, *(name for columns in rows for name in columns)}
            for line in unknown_attributes(member.query, known):
                yield f"{member.name}: {line}"

    def push(self, batch: EventBatch, time_column: str | None) -> NamedMatches:
        """The matches that these events complete, in order. `time_column`: that of their times, if there is one."""
        table = batch.table
        if isinstance(batch.typed_by, tuple):
            kinds = batch.types
            assert kinds is not None
            column = pa.DictionaryArray.from_arrays(pa.array(kinds.codes), kinds.texts)
            if self._type_column in table.column_names:
                table = table.drop_columns([self._type_column])
            table = table.append_column(self._type_column, column)
        if time_column is not None and time_column in table.column_names:
            self._time_type = value_type(table.schema.field(time_column).type)
            text = pa.types.is_string(self._time_type) or pa.types.is_large_string(self._time_type)
            self.times_in = time_column, text
        count = len(batch)
        given = _Placed(table, np.stack([np.arange(count), np.zeros(count, np.int64), batch.times]))
        self.last = int(batch.times[-1])
        return self._through(given, lambda matches: iter(()))

    def push_one(self, event: dict[str, Any], time: int, time_column: str | None) -> NamedMatches:
        """`push` of one event, at a time (ns), without columns. It has a type that is no query."""
        if time_column is not None:
            self.times_in = time_column, type(event[time_column]) is str
        self.last = time
        return self._through(_Placed([event], np.array([[0], [0], [time]])), lambda matches: iter(()))

    def is_given(self, event: dict[str, Any]) -> bool:
        """True if a text is the type of an event, and no query that others read."""
        kind = event.get(self._type_column)
        return type(kind) is str and kind not in self._derived

    def check_types(self, batch: EventBatch) -> EventBatch:
        """The batch. `EventError` if an event is of a type that is a query which others read."""
        found = batch.types if self._derived else None
        if found is None:
            return batch
        for code, name in enumerate(found.texts.to_pylist()):
            if name in self._derived and (rows := np.flatnonzero(found.codes == code)).size:
                problem, hint = clash(name)
                raise EventError(
                    problem, source="<events>", counted="event", record=int(batch.positions[rows[0]]) + 1, hint=hint
                )
        return batch

    def wait_until(self, now: int) -> NamedMatches:
        """The matches that wait for nothing but the time `now`."""
        return self._through(None, lambda matches: matches.wait_until(now))

    def close(self) -> NamedMatches:
        """The matches that the end of the stream completes."""
        return self._through(None, lambda matches: matches.close())

    def contents(self) -> dict[str, Any]:
        """The progress, as plain values."""
        places = [matches.contents() for matches in self.matches]
        return {"last": self.last, "times": self.times_in, "queries": places}

    def restore(self, contents: Mapping[str, Any]) -> None:
        """The opposite of `contents`, of the same network."""
        self.last, self.times_in = contents["last"], contents["times"]
        expect(type(self.last) is int, "the time of the last event")
        expect(len(contents["queries"]) == len(self.matches), "a place for each query")
        for matches, place in zip(self.matches, contents["queries"], strict=True):
            matches.restore(place)

    def _through(self, given: _Placed | None, end: Callable[[OrderedMatches], Iterator[MatchTable]]) -> NamedMatches:
        """The matches of all queries over the given events, and what `end` gives of each query behind them."""
        made: list[_Placed | None] = []
        found: list[tuple[str, MatchTable]] = []
        places: list[np.ndarray] = []
        for member, matches in zip(self._members, self.matches, strict=True):
            inputs = [rows for rows in (given, *(made[i] for i in member.feeds)) if rows is not None]
            merged = _merge(inputs)
            first = matches.position
            tables = [] if merged is None else list(_push(matches, merged))
            tables += end(matches)
            made.append(None)
            pieces = [(table, self._place(member, table, merged, first, given)) for table in tables if len(table)]
            if member.read and pieces:
                made[-1] = self._as_events(member, pieces, given)
            if member.name in self._report:
                found += ((member.name, table) for table, _ in pieces)
                places += (own for _, own in pieces)
        if not found:
            return NOTHING
        names, every = zip(*found, strict=True)
        return NamedMatches.of_places(names, every, np.concatenate(places, axis=1))

    def _place(
        self,
        member: NetworkMember,
        table: MatchTable,
        merged: _Placed | None,
        first: int,
        given: _Placed | None,
    ) -> np.ndarray:
        """The places of matches, as of `_Placed`."""
        lowered, ends = member.query.lowered, table.matches.end
        times = table.history.times(ends)
        if not lowered.around.waits:
            if merged is not None and len(ends) and int(ends.min()) >= first:
                return np.stack([*merged.places[:_TIME, ends - first], times])
        elif lowered.around.patience is not None and not lowered.around.marked:
            times = times + int(lowered.around.patience.size)
        elif lowered.choice != Choice() or lowered.around.marked:  # they wait for others, or not at all
            times = np.maximum(times, self.last)
        elif lowered.window.is_bounded and not lowered.window.by_position and lowered.window_attribute is None:
            times = table.history.times(table.matches.start) + int(lowered.window.size)
        else:
            times = np.maximum(times, self.last)
        before = np.zeros(0, np.int64) if given is None else given.times
        return np.stack([np.searchsorted(before, times, "right") - 1, np.ones(len(times), np.int64), times])

    def _as_events(
        self,
        member: NetworkMember,
        pieces: list[tuple[MatchTable, np.ndarray]],
        given: _Placed | None,
    ) -> _Placed:
        """Matches as the events that other queries read, in order: as dicts if `given` has some, and these hold the
        values."""
        places = np.concatenate([own for _, own in pieces], axis=1)
        rows = [table.rows(natural=True) for table, _ in pieces]
        table = rows[0] if len(rows) == 1 else common_schema(rows, member.name)
        if len(table) > 1:
            order = np.lexsort(places[::-1])
            table, places = table.take(pa.array(order)), places[:, order]
        times = places[_TIME]
        if given is not None and isinstance(given.events, list):
            found = self._as_dicts(member.name, table, times.tolist(), given.events[0])
            if found is not None:
                return _Placed(found, places)
            if self.times_in is not None:
                self._time_type = value_type(given.table.schema.field(self.times_in[0]).type)
        own = {self._type_column: pa.array([member.name] * len(table), pa.string())}
        if self.times_in is not None and self.times_in[0] not in table.column_names:
            own[self.times_in[0]] = self._in_form(times)
        for name, column in own.items():
            table = table.drop_columns([name]) if name in table.column_names else table
            table = table.append_column(name, column)
        return _Placed(table, places)

    def _as_dicts(
        self, name: str, table: pa.Table, times: list[int], given: dict[str, Any]
    ) -> list[dict[str, Any]] | None:
        """The rows of the matches of a query as dicts, of which columns would have the same values. None for times that
        these do not hold, and for values that are no numbers, texts, truths or times."""
        short = in_microseconds(table)
        if not all(any(fits(kind) for fits in _PLAIN) for kind in map(value_type, short.schema.types)):
            return None
        found = short.to_pylist()
        column = None if self.times_in is None else self.times_in[0]
        for row, time in zip(found, times, strict=True):
            row[self._type_column] = name
            if column is not None and column not in table.column_names:
                stated = given[column]
                if isinstance(stated, str):
                    row[column] = format_time(time)
                elif isinstance(stated, datetime) or self._times.are_dates():
                    if time != self.last or not isinstance(stated, datetime):
                        return None
                    row[column] = stated
                else:
                    row[column] = time / self._scale if time % self._scale else type(stated)(time // self._scale)
        return found

    def _in_form(self, times: np.ndarray) -> pa.Array:
        """Times as the given events have theirs: dates, numbers or texts."""
        if self.times_in is not None and self.times_in[1]:
            return pa.array([format_time(time) for time in times.tolist()])
        column = self._times.column(times)
        try:
            return column if self._time_type is None else column.cast(self._time_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of times that the type cannot hold
            return column


def _merge(inputs: list[_Placed]) -> _Placed | None:
    """The events of several inputs, in order of place; those of one place in the order of the inputs."""
    if len(inputs) < 2:
        return inputs[0] if inputs else None
    places = np.concatenate([rows.places for rows in inputs], axis=1)
    order = np.lexsort(places[::-1])
    events: pa.Table | list[dict[str, Any]]
    if all(isinstance(rows.events, list) for rows in inputs):
        every = list(chain.from_iterable(rows.events for rows in inputs))
        events = [every[i] for i in order.tolist()]
    else:
        events = common_schema([rows.table for rows in inputs], "the network").take(pa.array(order))
    return _Placed(events, places[:, order])


def _push(matches: OrderedMatches, rows: _Placed) -> Iterator[MatchTable]:
    """The matches of a query that these events complete."""
    if isinstance(rows.events, list):
        return matches.push_singly(rows.events, rows.times.tolist())
    return matches.push([Part(rows.events, rows.times)])
