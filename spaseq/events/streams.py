"""From sources to one stream of event batches: types, times, order, merging.

Per stream, in this order: the type column is looked up (`type`, or the one that was named); every event gets its time,
from a column or from its place; events that come late are put in order or dropped, as the policy says. Streams are then
merged by time: equal times keep the order of the streams, then the order in the source. Positions count the merged
stream from 0.

`EventStream` pulls from sources, `EventFeed` is pushed to; both give the same batches for the same events.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.errors import EventError, OptionError
from spaseq.events.batch import EventBatch, encode_texts
from spaseq.events.blocks import check_names
from spaseq.events.clocks import TIME_COLUMNS, no_times, time_candidates, unlike_clocks
from spaseq.events.columns import Instant, MixedColumn, NumberColumn, TextColumn, TimeColumn, column_of
from spaseq.events.growing import GrowingFile
from spaseq.events.options import EventOptions
from spaseq.events.readers import common_schema, held_tables, named_tables, source_name, tables
from spaseq.events.reorder import Released, Reorderer
from spaseq.events.seen import Seen
from spaseq.events.time import decimal_times, parse_time, unit_nanoseconds
from spaseq.held import Tells
from spaseq.integers import in_order
from spaseq.snapshot import array, expect

__all__ = ["EventCounters", "EventFeed", "EventStream"]

_STREAM: Final = "\0stream"
_TYPE_LIKE: Final = frozenset(("event_type", "eventtype", "event_kind", "kind"))
"""Columns besides `type` that may hold the types of events, in small letters."""
_BY_TURNS: Final = (
    'no stream has times, so their events are taken by turns, the first of each first (time="COLUMN" names what holds '
    'times; time_from="arrival" if that is meant)'
)
_CHUNKS: Final = 16
"""Of the events that wait: each push adds one, and Arrow's calls take time for each."""


@dataclass(slots=True)
class EventCounters(Tells):
    """What was read: events kept, events dropped as late by stream, and the attributes that any event had.

    `waiting`: events that an interrupt found held back for their order. `forgotten_keys`: keys that were silent for
    longer than `Settings.forget_keys_after`, so far as it was noticed, one that came back and was silent again once
    more; `lost_runs`: the runs that ended with them, by the compact structure. `seen` tells the kinds of events that
    sources held (of pushed events nothing); `untimed`: whether they have the times of their arrival, although nobody
    said so; `guesses`: a line for each thing that nobody said and that the answer depends on. `memory` tells what the
    evaluation holds.
    """

    events: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    attributes: dict[str, None] = field(default_factory=dict)
    iso_times: bool = False
    seen: Seen = field(default_factory=Seen)
    untimed: bool = False
    waiting: int = 0
    guesses: dict[str, None] = field(default_factory=dict)
    forgotten_keys: int = 0
    lost_runs: int = 0

    @property
    def late(self) -> int:
        """Events dropped because they came too late, over all streams."""
        return sum(self.dropped.values())

    def warnings(self) -> list[str]:
        """A line for each stream that lost events, and one for runs that ended with their keys; none if nothing was
        lost."""
        late = [
            f"{source}: {'1 event came too late and was' if n == 1 else f'{n:,} events came too late and were'} dropped"
            for source, n in self.dropped.items()
        ]
        if self.waiting:
            late.append(f"{self.waiting:,} events were held back for their order, and not evaluated")
        if not self.lost_runs:
            return late
        return [*late, f"{self.lost_runs:,} run(s) ended with keys that were silent for longer than forget_keys_after"]


@dataclass(slots=True)
class _Part:
    """Some events of one stream, in order: `table` and int64 `times`."""

    table: pa.Table
    times: np.ndarray

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: int, end: int) -> _Part:
        return _Part(self.table.slice(start, end - start), self.times[start:end])

    def take(self, rows: np.ndarray | slice) -> _Part:
        """Some rows; nothing is copied of a slice."""
        if isinstance(rows, slice):
            return self.between(rows.start, rows.stop)
        return _Part(self.table.take(rows), self.times[rows])

    def packed(self) -> _Part:
        """The same, in one piece where it stands in many."""
        many = self.table.num_columns and self.table.column(0).num_chunks > _CHUNKS
        return _Part(self.table.combine_chunks(), self.times) if many else self


class TimestampAssigner:
    """Gives the events of one stream their times, and checks that they have types.

    `records`: how many events it has seen. `column`: where their times stand, None for arrival; `known` says whether
    that is decided, which the first events do. `iso`: whether some time was a date; `plain`: whether some was a number.
    `timed`: the clause or option that needs times, for errors; `head` gives the first events with all columns, or None.
    `clocks`: those of all streams by name, of which all have times, or none has. `guessed`: a line for each thing that
    nobody said and that the answer depends on.
    """

    def __init__(
        self,
        options: EventOptions,
        source: str,
        timed: str = "",
        head: Callable[[], pa.Table | None] = lambda: None,
        clocks: Mapping[str, TimestampAssigner] = MappingProxyType({}),
    ) -> None:
        self.options = options
        self.source = source
        self.timed = timed or ("lateness" if options.lateness else "")
        self.head = head
        self.clocks = clocks
        self.records: int = 0
        self._before: int = 0
        self.column: str | None = None
        self.known: bool = False
        self.iso: bool = False
        self.plain: bool = False
        self.guessed: tuple[str, ...] = ()

    def choose(self, table: pa.Table) -> None:
        """Decide by the first events, or by their columns alone, where times stand. `EventError` for events without
        types, `OptionError` if they have no times and `timed` needs them, or if other streams do have times."""
        if self.known:
            return
        self._check_type(table)
        column = self._choose(table)
        if column is None and self.timed and not self.options.counts:
            whole = self.head()
            raise no_times(self.timed, self.source or "<events>", table if whole is None else whole)
        for other, clock in self.clocks.items():
            if clock.known and (clock.column is None) != (column is None):
                own = next((name for name, clock in self.clocks.items() if clock is self), "") or self.source
                if column is None:
                    raise unlike_clocks(other, own, table)
                raise unlike_clocks(own, other, clock.head())
        self.column, self.known = column, True

    def state(self) -> tuple[int, str | None, bool, bool]:
        """How far it has come, as plain values."""
        return self.records, self.column, self.known, self.iso

    def restore(self, state: tuple[int, str | None, bool, bool]) -> None:
        """The opposite of `state`."""
        self.records, self.column, self.known, self.iso = state

    def enter(self, source: str) -> None:
        """The next events are of this file: errors name it, and count its events."""
        if source != self.source:
            self.source, self._before = source, self.records

    def record(self, row: int) -> int:
        """The number that errors give the event of a row that is read next."""
        return self.records - self._before + row + 1

    def read(self, table: pa.Table) -> _Part:
        """The events with their times. `EventError` for one without a time or a type; errors as of `choose`."""
        self._check_type(table)
        self.choose(table)
        count = table.num_rows
        if self.column is None:
            self._check_timeless(table)
            places = np.arange(self.records, self.records + count, dtype=np.int64)
            times = places * self.options.step
        else:
            times = self._times(table, self.column)
        if not self.records:
            self.guessed = tuple(self._guesses(table))
        self.records += count
        return _Part(table, times)

    def _guesses(self, table: pa.Table) -> Iterator[str]:
        """`guessed`, by the first events."""
        others = [name for name in table.column_names if name.lower() in _TYPE_LIKE]
        if self.options.type_column is None and others:
            yield f'types are read from the column type (type_column="{others[0]}" reads another one)'
        if self.column is None:
            if len(self.clocks) > 1 and not self.options.counts:
                yield _BY_TURNS
            return
        unsaid = self.options.time is None
        others = [name for name in time_candidates(table) if name != self.column] if unsaid and self.timed else []
        unit = self.plain and self.options.time_unit is None
        if self.timed and (unit or others or (unsaid and self.column != TIME_COLUMNS[0])):
            words = [f'time="{others[0] if others else "COLUMN"}"'] * unsaid + ['time_unit="ms"'] * unit
            what = f"times are read from the column {self.column}{', as seconds' if unit else ''}"
            yield f"{what} ({' and '.join(words)} read{'s' * (len(words) == 1)} others)"

    def _check_type(self, table: pa.Table) -> None:
        name = self.options.type_column or "type"
        check_names(table.column_names, self.source)
        if name in table.column_names:
            if _has_lists(table.schema.field(name).type):
                raise EventError(
                    f"attribute {name} holds lists, and says the type of each event", source=self.source,
                    attribute=name, hint="types are texts; --type-column COLUMN (type_column= in Python) names them",
                )  # fmt: skip
            return
        names = table.column_names
        hint = "name the column that holds the event type: --type-column COLUMN"
        if self.options.type_column is not None:
            hint = _did_you_mean(name, names) or hint
        if len(names) == 1 and (sign := next((c for c in ";\t|" if c in names[0]), None)):
            known = "; with tabs between them it is .tsv" if sign == "\t" else ""
            hint = f"this is one column: fields of .csv are separated by commas, and here is {sign!r}{known}"
        raise EventError(
            f"no column {name!r}, which would say the type of each event; there are: {_listed(names)}",
            source=self.source,
            attribute=name,
            hint=hint,
        )

    def _check_timeless(self, table: pa.Table) -> None:
        """`EventError` for an event with a time behind events that had none, unless the caller has them counted."""
        if self.options.from_arrival or (found := self._choose(table)) is None:
            return
        given = pc.is_valid(table[found].combine_chunks()).to_pylist()
        raise EventError(
            f"this event has a time, in the column {found}, and those before it have none",
            source=self.source,
            record=self.records + 1 + (given.index(True) if True in given else 0),
            counted="event",
            attribute=found,
            hint='all events need times, or none has one; time_from="arrival" counts them all',
        )

    def _choose(self, table: pa.Table) -> str | None:
        if self.options.from_arrival:
            return None
        if self.options.time is None:
            return next((c for c in TIME_COLUMNS if c in table.column_names), None)
        return self.options.time

    def _times(self, table: pa.Table, name: str) -> np.ndarray:
        if name not in table.column_names:
            raise EventError(
                f"no column {name!r} to take times from; there are: {_listed(table.column_names)}",
                source=self.source,
                attribute=name,
                hint=_did_you_mean(name, table.column_names) or "--time COLUMN names it",
            )
        column = column_of(table[name], name, self.source)
        unknown = None if column is None or isinstance(column, TextColumn) else column.known
        match column:
            case NumberColumn(values, known):
                self.plain = True
                times = self._scaled(_plain(table[name], column), values, known, name)
            case MixedColumn(values, _):
                times = self._each(values, name)
            case TimeColumn(values, _):
                self.iso = True
                times = values
            case TextColumn(codes, texts):
                times, unknown = self._parsed(codes, texts, name), codes >= 0
            case None if table.num_rows == 0:
                return np.zeros(0, np.int64)
            case None:
                times, unknown = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, bool)
            case _:
                raise EventError(
                    f"column {name!r} holds true or false, not times",
                    source=self.source,
                    record=self.record(0),
                    counted="event",
                    attribute=name,
                    hint="--time COLUMN names another column",
                )
        if unknown is not None and not unknown.all():
            record = int(np.argmin(unknown))
            raise EventError(
                "this event has no time", source=self.source, record=self.record(record), counted="event",
                attribute=name,
                hint=f"every event needs a value in column {name!r}; --time COLUMN names another one",
            )  # fmt: skip
        return times

    def _scaled(self, raw: pa.ChunkedArray, values: np.ndarray, known: np.ndarray | None, name: str) -> np.ndarray:
        """Numbers in the time unit as ns: integers exactly, others as their shortest decimal notation says.

        Anything where a number is not `known`.
        """
        scale = unit_nanoseconds(self.options.unit)
        whole = values.dtype == np.int64 or bool((np.trunc(values) == values).all())
        if not whole or pa.types.is_decimal(raw.type):
            times, done = np.zeros(len(values), np.int64), np.zeros(len(values), bool)
            if pa.types.is_float64(raw.type):
                times, done = decimal_times(values, scale)
            rest = ~done if known is None else known & ~done
            if rest.any():
                texts = pc.dictionary_encode(pc.cast(raw, pa.string()).combine_chunks())
                codes = np.where(rest, np.asarray(pc.fill_null(texts.indices, -1)), -1)
                times = np.where(done, times, self._parsed(codes, texts.dictionary, name))
            return times
        beyond = ((1 << 63) - 1) // scale + 1
        far = np.flatnonzero((values >= beyond) | (values <= -beyond))
        if len(far):
            raise EventError(
                f"the time {values[far[0]]} is outside those that can be held (1677 to 2262)", source=self.source,
                record=self.record(int(far[0])), counted="event",
                hint="is the unit right? --time-unit is s, ms, us or ns",
            )  # fmt: skip
        return values.astype(np.int64) * scale

    def _each(self, values: Sequence[Any], name: str) -> np.ndarray:
        """The times of values of several kinds. Anything where there is none."""
        times, codes = np.zeros(len(values), np.int64), np.full(len(values), -1)
        texts: list[str] = []
        for row, value in enumerate(values):
            if isinstance(value, Instant):
                self.iso, times[row] = True, int(value)
            elif isinstance(value, bool | tuple):
                raise self._no_time(row, name, "a truth value" if isinstance(value, bool) else "a list")
            elif value is not None:
                codes[row] = len(texts)
                texts.append(value if isinstance(value, str) else repr(value))
        return np.where(codes < 0, times, self._parsed(codes, pa.array(texts, pa.string()), name))

    def _no_time(self, row: int, name: str, what: str) -> EventError:
        return EventError(
            f"{name!r} is {what} here, and times are taken from it",
            source=self.source,
            record=self.record(row),
            counted="event",
            attribute=name,
            hint="--time COLUMN names another column",
        )

    def _parsed(self, codes: np.ndarray, texts: pa.StringArray, name: str) -> np.ndarray:
        """The times of rows that hold a text each; anything where the code is -1."""
        values = np.zeros(len(texts) + 1, np.int64)
        used = np.zeros(len(texts) + 1, bool)
        used[codes] = True
        for index, text in enumerate(texts.to_pylist()):
            if not used[index]:
                continue
            try:
                values[index] = parse_time(text, self.options.unit)
                dated = text.strip()[4:5] == "-"
                self.iso, self.plain = self.iso or dated, self.plain or not dated
            except EventError as error:
                record = self.record(int(np.argmax(codes == index)))
                hint = f"{error.hint}; --time COLUMN names another column, --time-from arrival takes none"
                raise EventError(
                    error.problem, source=self.source, record=record, counted="event", attribute=name, hint=hint
                ) from None
        return np.asarray(values[codes])


def _plain(raw: pa.ChunkedArray, column: NumberColumn) -> pa.ChunkedArray:
    """The numbers as Arrow has them, doubles where they are whole numbers and decimals."""
    if not pa.types.is_union(raw.type):
        return raw
    return pa.chunked_array([pa.array(column.values, mask=None if column.known is None else ~column.known)])


def _has_lists(kind: pa.DataType) -> bool:
    kinds = [field.type for field in kind] if pa.types.is_union(kind) else [kind]
    return any(pa.types.is_list(k) or pa.types.is_large_list(k) or pa.types.is_fixed_size_list(k) for k in kinds)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "") if names else "none"


def _did_you_mean(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else ""


def _read_by(options: EventOptions) -> set[str]:
    """The columns that are looked at for types and times."""
    times = () if options.from_arrival else TIME_COLUMNS if options.time is None else (options.time,)
    return {options.type_column or "type", *times}


class _Orderer:
    """The events of one stream, in order of time by `reorder`; `pending` are those that it holds back."""

    def __init__(self, options: EventOptions, source: str) -> None:
        self.source = source
        self.reorder = Reorderer(options, counted="event")
        self.pending: _Part | None = None

    def push(self, part: _Part, source: str = "", first: int = 0) -> _Part:
        """Events that nothing on time can come before any more. `EventError` for a late one.

        `source`, `first`: the file of the events, and the number there of the first; of the stream if not given."""
        source, first = source or self.source, first or self.reorder.seen + 1
        whole = part if self.pending is None else _joined([self.pending, part], source)
        return self._taken(whole, self.reorder.push(whole.times, lambda row: (source, first + row)))

    def advance(self, now: int) -> _Part | None:
        """The events before `now`, of which no more will come: later ones are too late."""
        self.reorder.advance(now)
        return None if self.pending is None else self._taken(self.pending, self.reorder.push(self.pending.times))

    def _taken(self, part: _Part, found: Released) -> _Part:
        if found.error is not None:
            raise found.error
        self.pending = part.take(found.waiting).packed() if self.reorder.held else None
        return part.take(found.ready)

    def finish(self) -> _Part | None:
        """The events still held back."""
        pending, self.pending = self.pending, None
        return None if pending is None else pending.take(self.reorder.push(pending.times, last=True).ready)


def _joined(parts: list[_Part], source: str) -> _Part:
    return _Part(common_schema([p.table for p in parts], source), np.concatenate([p.times for p in parts]))


class EventStream:
    """The merged stream of several sources, as an iterable of `EventBatch`. Can be run through once.

    `wanted`, if given, are the attributes that will be looked at; in batches from files others may be NULL. `timed`:
    the clause or setting of the query that needs times: without them it is an `OptionError`.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        options: EventOptions,
        wanted: Collection[str] | None = None,
        timed: str = "",
    ) -> None:
        self._wanted = None if wanted is None else {*wanted, *_read_by(options)}
        self.counters: EventCounters = EventCounters()
        self._options = options
        self._names = tuple(sources)
        self._sources = dict(sources)
        self._clocks: dict[str, TimestampAssigner] = {}
        self._timed = timed
        self.schemas: dict[str, pa.Schema] = {}
        """Of the first table of each stream; complete when the first batch is given out."""

    def __iter__(self) -> Iterator[EventBatch]:
        position = 0
        parts = [self._ordered(name) for name in self._names]
        stream = _merge(parts, self._names) if len(parts) > 1 else ((p, None) for p in parts[0])
        for part, codes in stream:
            if len(part):
                batch = _batch(part, codes, position, self._names, self._options, self.counters)
                self.counters.events += len(part)
                self.counters.seen.note(batch)
                yield batch
                position += len(part)

    def _ordered(self, name: str) -> Iterator[_Part]:
        source = self._sources[name]
        label = source_name(source)
        clock = TimestampAssigner(self._options, label, self._timed, lambda: self._head(source), self._clocks)
        self._clocks[name], orderer = clock, _Orderer(self._options, label)
        try:
            for file, table in named_tables(source, self._wanted):
                self.schemas.setdefault(name, table.schema)
                clock.enter(file)
                if table.num_columns:
                    clock.choose(table)
                if table.num_rows:
                    first = clock.record(0)
                    part = orderer.push(clock.read(table), file, first)
                    self._note(name, clock, orderer)
                    yield part
        except KeyboardInterrupt:
            self.counters.waiting += 0 if orderer.pending is None else len(orderer.pending)
            raise
        last = orderer.finish()
        if last is not None:
            yield last

    def _head(self, source: Any) -> pa.Table | None:
        """The first events with all their columns, if the source can be read once more."""
        once = hasattr(source, "__next__") or isinstance(source, pa.RecordBatchReader | GrowingFile)
        paths = source if isinstance(source, list | tuple) else [source]
        if once or any(isinstance(path, str | os.PathLike) and os.fspath(path) == "-" for path in paths[:1]):
            return None
        return next(tables(source), None)

    def _note(self, name: str, clock: TimestampAssigner, orderer: _Orderer) -> None:
        self.counters.iso_times |= clock.iso
        self.counters.untimed |= clock.column is None and not self._options.from_arrival
        self.counters.guesses.update(dict.fromkeys(clock.guessed))
        if dropped := orderer.reorder.take_dropped():
            place = name or clock.source
            self.counters.dropped[place] = self.counters.dropped.get(place, 0) + dropped


def _batch(
    part: _Part,
    codes: np.ndarray | None,
    position: int,
    names: tuple[str, ...],
    options: EventOptions,
    counters: EventCounters,
) -> EventBatch:
    positions = np.arange(position, position + len(part), dtype=np.int64)
    table = encode_texts(part.table)
    counters.attributes.update(dict.fromkeys(table.column_names))
    return EventBatch(table, options.type_column or "type", part.times, positions, names, codes)


def _merge(streams: list[Iterator[_Part]], names: tuple[str, ...]) -> Iterator[tuple[_Part, np.ndarray]]:
    """Merges streams that are each in order. What is given out is before anything that any stream still has to give."""
    waiting: list[_Part | None] = [None] * len(streams)
    open_streams = set(range(len(streams)))
    while True:
        for index in sorted(open_streams):
            if not _fill(streams[index], waiting, index):
                open_streams.discard(index)
        mark = min((int(waiting[i].times[-1]) for i in open_streams), default=None)  # type: ignore[union-attr]
        taken: list[tuple[int, _Part]] = []
        for index, part in enumerate(waiting):
            if part is not None:
                cut = len(part) if mark is None else int(np.searchsorted(part.times, mark, "left"))
                taken.append((index, part.between(0, cut)))
                waiting[index] = part.between(cut, len(part)) if cut < len(part) else None
        if any(len(p) for _, p in taken):
            yield _interleaved(taken, names)
        if mark is None:
            return
        for index in list(open_streams):
            part = waiting[index]
            if part is not None and int(part.times[-1]) == mark:
                more = next((p for p in streams[index] if len(p)), None)
                if more is None:
                    open_streams.discard(index)
                else:
                    waiting[index] = _joined([part, more], names[index])


def _fill(stream: Iterator[_Part], waiting: list[_Part | None], index: int) -> bool:
    """Makes sure that the stream has events waiting; False when it has no more."""
    if waiting[index] is None:
        waiting[index] = next((p for p in stream if len(p)), None)
    return waiting[index] is not None


def _interleaved(taken: list[tuple[int, _Part]], names: tuple[str, ...]) -> tuple[_Part, np.ndarray]:
    whole = _joined([p for _, p in taken], ", ".join(names))
    codes = np.concatenate([np.full(len(p), i, np.int32) for i, p in taken])
    order = in_order(whole.times)
    return _Part(whole.table.take(order), whole.times[order]), codes[order]


class EventFeed:
    """A stream that events are pushed to, in order of arrival; with several streams, each push names its own.

    `clocks` give the events of each stream their times, `orderer` holds back what may still be overtaken, `position` is
    that of the next event.
    """

    def __init__(self, names: tuple[str, ...], options: EventOptions, timed: str = "") -> None:
        """`timed`: as of `EventStream`."""
        self.counters: EventCounters = EventCounters()
        self._names = names
        self._options = options
        self.clocks: dict[str, TimestampAssigner] = {}
        for name in names:
            self.clocks[name] = TimestampAssigner(options, name or "<events>", timed, clocks=self.clocks)
        self.orderer: _Orderer = _Orderer(options, "<events>")
        self.position: int = 0

    def push(self, source: Any, stream: str | None = None) -> Iterator[EventBatch]:
        """The batches that are now in order. If an error ends this, or the caller does not go on behind a batch, none
        of the events has been taken."""
        name = self._stream(stream)
        given = [table for table in held_tables(source) if table.num_rows]
        if not given:
            return
        clock, before = self.clocks[name], self._place(name)
        taken = False
        try:
            parts = [clock.read(table) for table in given]
            part = parts[0] if len(parts) == 1 else _joined(parts, "<events>")
            if len(self._names) > 1:
                codes = pa.array(np.full(len(part), self._names.index(name), np.int32))
                part = _Part(part.table.append_column(_STREAM, codes), part.times)
            yield from self._out(self.orderer.push(part))
            taken = True
        finally:
            if not taken:
                self._go_back(name, before)
        self.counters.iso_times |= clock.iso

    @property
    def taken(self) -> int:
        """How many events were pushed, those that wait or were late among them."""
        return sum(clock.records for clock in self.clocks.values())

    def _place(self, name: str) -> tuple[Any, ...]:
        clock, orderer = self.clocks[name], self.orderer
        order = orderer.reorder
        return clock.state(), order.snapshot(), order.peak, order.held, orderer.pending

    def _go_back(self, name: str, place: tuple[Any, ...]) -> None:
        clock, state, peak, held, pending = place
        self.clocks[name].restore(clock)
        self.orderer.reorder.undo(state, peak)
        self.orderer.reorder.held, self.orderer.pending = held, pending

    def advance(self, now: int) -> Iterator[EventBatch]:
        """The events before `now` (ns) that were held back for their order; any to come before it are late."""
        due = self.orderer.advance(now)
        if due is not None:
            yield from self._out(due)

    def finish(self) -> Iterator[EventBatch]:
        """The events that were held back for their order."""
        last = self.orderer.finish()
        if last is not None:
            yield from self._out(last)

    def _stream(self, stream: str | None) -> str:
        if stream is None and len(self._names) == 1:
            return self._names[0]
        if stream is None:
            names = _listed(list(self._names))
            raise OptionError("which stream are these events of?", f"push(events, stream=…) with one of {names}")
        if not isinstance(stream, str) or stream not in self.clocks:
            raise OptionError(f"unknown stream {stream!r}", f"the query reads {_listed(list(self._names))}")
        return stream

    def _out(self, part: _Part) -> Iterator[EventBatch]:
        if self.orderer.reorder.dropped:
            self.counters.dropped["<events>"] = self.orderer.reorder.dropped
        if not len(part):
            return
        codes = None
        if len(self._names) > 1:
            codes = np.asarray(part.table[_STREAM].combine_chunks())
            part = _Part(part.table.drop_columns([_STREAM]), part.times)
        yield _batch(part, codes, self.position, self._names, self._options, self.counters)
        self.position += len(part)  # not of events that were refused
        self.counters.events += len(part)

    def snapshot(self) -> dict[str, Any]:
        """How far the feed has come, and the events held back, as plain values."""
        pending, counters = self.orderer.pending, self.counters
        return {
            "clocks": {name: clock.state() for name, clock in self.clocks.items()},
            "order": self.orderer.reorder.snapshot(),
            "pending": None if pending is None else (table_bytes(pending.table), pending.times),
            "position": self.position,
            "counters": (counters.events, counters.dropped, list(counters.attributes), counters.iso_times),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The opposite of `snapshot`, of a feed of the same streams."""
        for name, (records, column, known, iso) in state["clocks"].items():
            self.clocks[name].restore((records, column, known, iso))
            expect(type(records) is int and (column is None or type(column) is str), "a count of each stream")
            expect(type(known) is bool is type(iso), "what is known of each stream")
        self.orderer.reorder.restore(state["order"])
        if state["pending"] is not None:
            blob, times = state["pending"]
            table = table_of_bytes(blob)
            self.orderer.pending = _Part(table, array(times, "times", rows=table.num_rows))
            self.orderer.reorder.held = table.num_rows
        self.position = state["position"]
        expect(type(self.position) is int and 0 <= self.position < 1 << 61, "a place in the stream")
        events, late, attributes, iso = state["counters"]
        expect(type(events) is int and type(late) is dict and type(iso) is bool, "what was read")
        self.counters = EventCounters(events, late, dict.fromkeys(attributes), iso)


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of_bytes(blob: bytes) -> pa.Table:
    """The inverse of `table_bytes`. `pa.ArrowInvalid` for what is no table: all of it is looked at."""
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table
