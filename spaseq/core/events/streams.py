"""From sources to one stream of event batches: types, times, order, merging.

Each stream passes these steps in order:

1. The type column is looked up (`type`, or the one that was named).
2. Every event gets its time, from a column or from its place.
3. Events that come late are put in order or dropped, as the policy says.

Streams are then merged by time: equal times keep the order of the streams, then the order in the source. Positions
count the merged stream from 0.

`EventStream` pulls from sources, `EventFeed` is pushed to; both give the same batches for the same events.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spaseq.core.errors import OptionError
from spaseq.core.events.ahead import Crew, ahead_or_none
from spaseq.core.events.batch import EventBatch, encode_texts, event_of
from spaseq.core.events.growing import LATE_BY_CLOCK, Arrived, Arriving, GrowingFile, time_by_clock
from spaseq.core.events.mixed import has_odd_items, of_known_items
from spaseq.core.events.options import EventOptions, LateEvent
from spaseq.core.events.readers import common_schema, held_tables, named_tables, source_name, tables
from spaseq.core.events.reorder import NEVER, Place, Released, Reorderer
from spaseq.core.events.seen import Seen
from spaseq.core.events.timestamps import Part, TimestampAssigner, check_columns, form_of, listed, read_by
from spaseq.core.held import Tells
from spaseq.core.integers import in_order
from spaseq.core.snapshot import array, expect

_STREAM: Final = "\0stream"


@dataclass(slots=True)
class EventCounters(Tells):
    """Counters of the reading: events kept, events dropped as late by stream, and the attributes that any event had.

    * `waiting`: events that an interrupt found held back for their order.
    * `forgotten_keys`: keys noticed to be silent for longer than `Settings.forget_keys_after`. A key that returns and
      is silent again counts once more. `lost_runs`: the runs that ended with these keys, counted by the compact
      structure.
    * `seen`: the kinds of events that sources held (not of pushed events).
    * `untimed`: True if events have the times of their arrival, although no option asked for that.
    * `guesses`: a line for each assumption that no option stated and that the answer depends on.
    * `memory`: the memory that the evaluation holds.
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


class _Orderer:
    """The events of one stream, in order of time by `reorder`; `pending` are those that it holds back."""

    def __init__(self, options: EventOptions, source: str, names: tuple[str, ...]) -> None:
        self.source = source
        self._names = names
        self.reorder = Reorderer(options, counted="event")
        self.pending: Part | None = None

    def push(self, part: Part, where: Callable[[int], Place] | None = None) -> Part:
        """Events that nothing on time can come before any more. `EventError` for a late one.

        `where`: the place of one of them; if not given, they are counted from the first that was pushed."""
        first = self.reorder.seen + 1
        place = where or (lambda row: (self.source, first + row))
        whole = part if self.pending is None else _join([self.pending, part], self.source)
        held = self.reorder.held
        found = self._take(whole, self.reorder.push(whole.times, place))
        if self.reorder.on_late is not None:
            for row, behind in self.reorder.take_late():
                late = event_of(whole.table, held + row)
                name = self._names[late.pop(_STREAM, 0)]
                time = int(whole.times[held + row])
                self.reorder.on_late(LateEvent(late, time, behind, name, *place(row)))
        return found

    def advance(self, now: int, *said: str) -> Part | None:
        """The events before `now`, of which no more will come: later ones are too late; `said` of one, as of
        `Arrivals.advance`."""
        self.reorder.advance(now, *said)
        return None if self.pending is None else self._take(self.pending, self.reorder.push(self.pending.times))

    def _take(self, part: Part, found: Released) -> Part:
        if found.error is not None:
            raise found.error
        self.pending = part.take(found.waiting).packed() if self.reorder.held else None
        return part.take(found.ready)

    def finish(self) -> Part | None:
        """The events still held back."""
        pending, self.pending = self.pending, None
        return None if pending is None else pending.take(self.reorder.push(pending.times, last=True).ready)


def with_items(table: pa.Table) -> pa.Table:
    """The table without lists of type null or of views."""
    for place, attribute in enumerate(table.schema):
        if has_odd_items(attribute.type):
            table = table.set_column(place, attribute.name, of_known_items(table.column(place)))
    return table


def _place(source: str, first: int, row: int) -> Place:
    """The place of an event of a source, of which `first` is the number of the first event."""
    return source, first + row


def _as_arrived(taken: list[Arrived], names: tuple[str, ...]) -> tuple[Part, Callable[[int], Place]]:
    """The events of several streams, with the codes of these, and the place of each. The earliest of the streams' next
    events always comes first."""
    whole = _join([one.part for one in taken], ", ".join(names))
    order = in_order(np.concatenate([one.highs for one in taken]))
    codes = np.concatenate([np.full(len(one.part), one.place, np.int32) for one in taken])[order]
    which = np.concatenate([np.full(len(one.part), number) for number, one in enumerate(taken)])[order]
    records = np.concatenate([one.records for one in taken])[order]
    table = whole.table.take(order).append_column(_STREAM, pa.array(codes))
    return Part(table, whole.times[order]), lambda row: (taken[which[row]].file, int(records[row]))


def _split_codes(part: Part) -> tuple[Part, np.ndarray]:
    """The events, and the codes of their streams."""
    codes = np.asarray(part.table[_STREAM].combine_chunks())
    return Part(part.table.drop_columns([_STREAM]), part.times), codes


def _join(parts: list[Part], source: str) -> Part:
    return Part(common_schema([p.table for p in parts], source), np.concatenate([p.times for p in parts]))


class EventStream:
    """The merged stream of several sources, as an iterable of `EventBatch`. Can be run through once.

    `wanted`, if given, are the attributes that will be looked at; in batches from files others may be NULL. `timed`:
    the clause or setting of the query that needs times: without them it is an `OptionError`. `types`: the event types
    that the query names; without a column of types it is an `EventError`, unless there are none. None: they are not
    known, and events need types.
    """

    def __init__(
        self,
        sources: Mapping[str, Any],
        options: EventOptions,
        wanted: Collection[str] | None = None,
        timed: str = "",
        types: Collection[str] | None = None,
    ) -> None:
        if options.on_late is not None:
            wanted = None  # late events are given whole
        self._wanted = None if wanted is None else {*wanted, *read_by(options)}
        self.counters: EventCounters = EventCounters()
        self._options = options
        self._form = form_of(options)
        self._names = tuple(sources)
        self._sources = dict(sources)
        self._clocks: dict[str, TimestampAssigner] = {}
        self._timed = timed
        self._types = types
        self.schemas: dict[str, pa.Schema] = {}
        """Of the first table of each stream; complete when the first batch is given out."""

    @property
    def time_column(self) -> str | None:
        """The column of the times of the events so far; None if there is none."""
        return time_column_of(self._clocks.values())

    def __iter__(self) -> Iterator[EventBatch]:
        return (batch for batch in self.as_it_comes() if not isinstance(batch, int))

    def as_it_comes(self) -> Iterator[EventBatch | int]:
        """The batches, and between them, while a `GrowingFile` with a clock is silent, the times (ns) before which no
        event will come any more. An event before such a time that comes all the same is late."""
        position = 0
        for name, source in self._sources.items():
            self._clocks[name] = TimestampAssigner(
                self._options, source_name(source), self._timed, partial(self._head, source), self._clocks, self._types
            )
        stream: Iterator[tuple[Part | int, np.ndarray | None]]
        if len(self._names) > 1 and all(isinstance(source, GrowingFile) for source in self._sources.values()):
            stream = self._as_they_come()
        elif len(self._names) > 1:
            stream = _merge([self._order(name) for name in self._names], self._names)
        else:
            stream = ((part, None) for part in self._order_as_it_comes(self._names[0]))
        for part, codes in stream:
            if isinstance(part, int):
                yield part
                continue
            if not position:
                check_columns(self._form)
            if len(part):
                batch = _batch(part, codes, position, self._names, self._options, self.counters)
                self.counters.events += len(part)
                self.counters.seen.note(batch)
                yield batch
                position += len(part)
        check_columns(self._form)

    def _order(self, name: str) -> Iterator[Part]:
        return (part for part in self._order_as_it_comes(name) if not isinstance(part, int))

    def _order_as_it_comes(self, name: str) -> Iterator[Part | int]:
        """The events of a stream, in order, with the times of `as_it_comes`."""
        source, clock = self._sources[name], self._clocks[name]
        orderer = _Orderer(self._options, source_name(source), (name,))
        try:
            for piece in self._read(source, clock):
                if piece is None:
                    if clock.records:
                        now = time_by_clock(source.clock, orderer.reorder.high, clock.column)
                        due = orderer.advance(now, *LATE_BY_CLOCK)
                        yield from () if due is None else (due,)
                        yield now
                    continue
                file, read = piece
                table = with_items(read)
                self.schemas.setdefault(name, table.schema)
                clock.enter(file)
                if table.num_columns:
                    clock.choose(table)
                if table.num_rows:
                    first = clock.record(0)
                    part = orderer.push(clock.read(table), partial(_place, file, first))
                    self._note(name, clock, orderer)
                    yield part
        except KeyboardInterrupt:
            self.counters.waiting += 0 if orderer.pending is None else len(orderer.pending)
            raise
        last = orderer.finish()
        if last is not None:
            yield last

    def _as_they_come(self) -> Iterator[tuple[Part | int, np.ndarray | None]]:
        """The events of several streams that go on, in order, with the times of `as_it_comes`.

        A thread reads each stream. What is there at once is merged by time; a silent stream does not hold up the
        others, so an event may be late compared with another stream's. The lateness is over all streams.
        """
        clocks, names = [self._clocks[name] for name in self._names], self._names
        orderer = _Orderer(self._options, "the streams", names)
        sources = [replace(self._sources[name], apart=True, idle=threading.Event()) for name in names]
        tables = [self._tables(source, clock) for source, clock in zip(sources, clocks, strict=True)]
        try:
            with Crew[tuple[str, pa.Table], None](tables, None, None, threads=len(names), depth=1) as crew:
                arriving = Arriving(crew, [source.idle for source in sources], sources[0].pause, self._timed_part)
                for taken in arriving:
                    if taken is None:
                        if sources[0].clock is not None and orderer.reorder.high > NEVER:
                            now = time_by_clock(sources[0].clock, orderer.reorder.high, clocks[0].column)
                            due = orderer.advance(now, *LATE_BY_CLOCK)
                            yield from () if due is None else (_split_codes(due),)
                            yield now, None
                        continue
                    part, where = _as_arrived(taken, names)
                    ready = orderer.push(part, where)
                    for clock in clocks:
                        self._note(", ".join(names), clock, orderer)
                    yield _split_codes(ready)
        except KeyboardInterrupt:
            self.counters.waiting += 0 if orderer.pending is None else len(orderer.pending)
            raise
        last = orderer.finish()
        if last is not None:
            yield _split_codes(last)

    def _timed_part(self, place: int, file: str, read: pa.Table) -> Arrived | None:
        """The events of a table of the stream at `place`; None if there are none."""
        name = self._names[place]
        clock, table = self._clocks[name], with_items(read)
        self.schemas.setdefault(name, table.schema)
        clock.enter(file)
        if table.num_columns:
            clock.choose(table)
        if not table.num_rows:
            return None
        first = clock.record(0)
        part = clock.read(table)
        if clock.column is None:
            problem = "streams that go on have no common order without the times of their events"
            raise OptionError(problem, 'time="COLUMN" names what holds times; leave time_from and interval out')
        return Arrived(part, place, file, np.arange(first, first + len(part)))

    def _read(self, source: Any, clock: TimestampAssigner) -> Iterator[tuple[str, pa.Table] | None]:
        """As `_tables`; None while a source with a clock is silent."""
        if isinstance(source, GrowingFile) and source.clock is not None:
            return ahead_or_none(lambda: self._tables(source, clock), source.pause, source.idle.is_set)
        return self._tables(source, clock)

    def _tables(self, source: Any, clock: TimestampAssigner) -> Iterator[tuple[str, pa.Table]]:
        """The tables of a source; once the first has said which column its times are in, with the values of that."""
        wanted = None if self._head_is_lost(source) and clock.guesses else self._wanted
        found = named_tables(source, wanted, self._form)
        for file, table in found:
            if not clock.known and table.num_columns:
                clock.enter(file)
                clock.choose(table)
                if wanted is not None and clock.column is not None and clock.column not in wanted:
                    found.close()
                    yield from named_tables(source, {*wanted, clock.column}, self._form)
                    return
            yield file, table

    def _head_is_lost(self, source: Any) -> bool:
        """True if a source cannot be read from its start again."""
        once = hasattr(source, "__next__") or isinstance(source, pa.RecordBatchReader | GrowingFile)
        paths = source if isinstance(source, list | tuple) else [source]
        return once or any(isinstance(path, str | os.PathLike) and os.fspath(path) == "-" for path in paths[:1])

    def _head(self, source: Any) -> pa.Table | None:
        """The first events with all their columns, if the source can be read once more."""
        if self._head_is_lost(source):
            return None
        return next(tables(source, form=form_of(self._options)), None)

    def _note(self, name: str, clock: TimestampAssigner, orderer: _Orderer) -> None:
        self.counters.iso_times |= clock.iso
        self.counters.untimed |= clock.column is None and not self._options.from_arrival
        self.counters.guesses.update(dict.fromkeys([*self._form.guesses, *clock.guessed]))
        if dropped := orderer.reorder.take_dropped():
            place = name or clock.source
            self.counters.dropped[place] = self.counters.dropped.get(place, 0) + dropped


def _batch(
    part: Part,
    codes: np.ndarray | None,
    position: int,
    names: tuple[str, ...],
    options: EventOptions,
    counters: EventCounters,
) -> EventBatch:
    positions = np.arange(position, position + len(part), dtype=np.int64)
    table = encode_texts(part.table)
    counters.attributes.update(dict.fromkeys(table.column_names))
    return EventBatch(table, options.typed_by(names), part.times, positions, names, codes)


def _merge(streams: list[Iterator[Part]], names: tuple[str, ...]) -> Iterator[tuple[Part, np.ndarray]]:
    """Merges streams that are each in order. Rows are yielded once no stream can still give an earlier one."""
    waiting: list[Part | None] = [None] * len(streams)
    open_streams = set(range(len(streams)))
    while True:
        for index in sorted(open_streams):
            if not _fill(streams[index], waiting, index):
                open_streams.discard(index)
        mark = min((int(waiting[i].times[-1]) for i in open_streams), default=None)  # type: ignore[union-attr]
        taken: list[tuple[int, Part]] = []
        for index, part in enumerate(waiting):
            if part is not None:
                cut = len(part) if mark is None else int(np.searchsorted(part.times, mark, "left"))
                taken.append((index, part.between(0, cut)))
                waiting[index] = part.between(cut, len(part)) if cut < len(part) else None
        if any(len(p) for _, p in taken):
            yield _interleave(taken, names)
        if mark is None:
            return
        for index in list(open_streams):
            part = waiting[index]
            if part is not None and int(part.times[-1]) == mark:
                more = next((p for p in streams[index] if len(p)), None)
                if more is None:
                    open_streams.discard(index)
                else:
                    waiting[index] = _join([part, more], names[index])


def _fill(stream: Iterator[Part], waiting: list[Part | None], index: int) -> bool:
    """Makes sure that the stream has events waiting; False when it has no more."""
    if waiting[index] is None:
        waiting[index] = next((p for p in stream if len(p)), None)
    return waiting[index] is not None


def _interleave(taken: list[tuple[int, Part]], names: tuple[str, ...]) -> tuple[Part, np.ndarray]:
    whole = _join([p for _, p in taken], ", ".join(names))
    codes = np.concatenate([np.full(len(p), i, np.int32) for i, p in taken])
    order = in_order(whole.times)
    return Part(whole.table.take(order), whole.times[order]), codes[order]


def in_one_batch(chunk: Sequence[Part], names: tuple[str, ...], options: EventOptions, position: int) -> EventBatch:
    """The next events of several streams, a part of each, in order of time; equal times keep the order of the streams.
    `position` is that of the first."""
    part, codes = (chunk[0], None) if len(names) == 1 else _interleave(list(enumerate(chunk)), names)
    return _batch(part, codes, position, names, options, EventCounters())


class EventFeed:
    """A stream that events are pushed to, in order of arrival; with several streams, each push names its own.

    `clocks` give the events of each stream their times, `orderer` holds back what may still be overtaken, `position` is
    that of the next event.
    """

    def __init__(
        self, names: tuple[str, ...], options: EventOptions, timed: str = "", types: Collection[str] | None = None
    ) -> None:
        """`timed`, `types`: as of `EventStream`."""
        self.counters: EventCounters = EventCounters()
        check_columns(form_of(options))
        self._names = names
        self._options = options
        self.clocks: dict[str, TimestampAssigner] = {}
        for name in names:
            self.clocks[name] = TimestampAssigner(options, name or "<events>", timed, clocks=self.clocks, types=types)
        self.orderer: _Orderer = _Orderer(options, "<events>", names)
        self.position: int = 0

    def push(self, source: Any, stream: str | None = None) -> Iterator[EventBatch]:
        """The batches that are now in order. If an error ends this, or the caller does not go on behind a batch, none
        of the events has been taken."""
        name = self._stream(stream)
        given = [with_items(table) for table in held_tables(source) if table.num_rows]
        if not given:
            return
        clock, before = self.clocks[name], self._place(name)
        taken = False
        try:
            parts = [clock.read(table) for table in given]
            part = parts[0] if len(parts) == 1 else _join(parts, "<events>")
            if len(self._names) > 1:
                codes = pa.array(np.full(len(part), self._names.index(name), np.int32))
                part = Part(part.table.append_column(_STREAM, codes), part.times)
            yield from self._out(self.orderer.push(part))
            taken = True
        finally:
            if not taken:
                self._go_back(name, before)
        self.counters.iso_times |= clock.iso

    @property
    def time_column(self) -> str | None:
        """As of `EventStream`."""
        return time_column_of(self.clocks.values())

    @property
    def taken(self) -> int:
        """The number of events pushed, including those that wait or were late."""
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
            names = listed(list(self._names))
            if self._options.by_type:
                raise OptionError("which type have these events?", f"push(events, type=…) with one of {names}")
            raise OptionError("which stream are these events of?", f"push(events, stream=…) with one of {names}")
        if not isinstance(stream, str) or stream not in self.clocks:
            raise OptionError(f"unknown stream {stream!r}", f"the query reads {listed(list(self._names))}")
        return stream

    def _out(self, part: Part) -> Iterator[EventBatch]:
        if self.orderer.reorder.dropped:
            self.counters.dropped["<events>"] = self.orderer.reorder.dropped
        if not len(part):
            return
        codes = None
        if len(self._names) > 1:
            part, codes = _split_codes(part)
        yield _batch(part, codes, self.position, self._names, self._options, self.counters)
        self.position += len(part)  # not of events that were refused
        self.counters.events += len(part)

    def snapshot(self) -> dict[str, Any]:
        """The progress of the feed, and the events held back, as plain values."""
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
            self.orderer.pending = Part(table, array(times, "times", rows=table.num_rows))
            self.orderer.reorder.held = table.num_rows
        self.position = state["position"]
        expect(type(self.position) is int and 0 <= self.position < 1 << 61, "a place in the stream")
        events, late, attributes, iso = state["counters"]
        expect(type(events) is int and type(late) is dict and type(iso) is bool, "what was read")
        self.counters = EventCounters(events, late, dict.fromkeys(attributes), iso)


def time_column_of(clocks: Iterable[TimestampAssigner]) -> str | None:
    """The column of times that the first of these streams with one has."""
    return next((clock.column for clock in clocks if clock.column is not None), None)


def table_bytes(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of_bytes(blob: bytes) -> pa.Table:
    """The inverse of `table_bytes`. Raises `pa.ArrowInvalid` if the bytes are no table: all of them are validated."""
    with pa.ipc.open_stream(blob) as reader:
        table = reader.read_all()
    table.validate(full=True)
    return table
