"""Pushes of one event each, a dict, without columns: `Run.advance` on a batch of one row, some hundred times faster.

`Singles` takes an event only if the columnar road would take it too, and give the same. Other events are left to that
road, before anything has changed. They have no type (if the query names types), a time that goes back, or any error.
Or the query reads an attribute of theirs that is no plain number, text, truth or time. The two roads share one engine;
they take turns by `enter` and `leave`, so batches and single events may be mixed.

It takes a list of a few events, too (`Singles.push_all` decides). It exists if events come in order on one stream,
without a lateness. It does not exist with NOT at the end if keys are forgotten after a pause. Attributes that the query
does not read are not looked at. Events that move a run are slower with conditions over several events and with MAX: the
engine gets them as batches of one row.

Times are those of a feed (`Stamps`); or the caller gives each event its time, as networks do (`Place`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from ceql.expressions.codegen import Unfit, compile_bits, normal
from ceql.results.history import Block, History
from ceql.runtime.batch import EngineBatch, kind_and_key
from ceql.runtime.run import Run
from ceql.syntax.walk import attributes_of
from spaseq.core.engine.program.matches import within
from spaseq.core.errors import EventError
from spaseq.core.events import (
    EVENT_TIME,
    Column,
    EventBatch,
    EventFeed,
    EventOptions,
    Instant,
    NumberColumn,
    TextColumn,
    TimeColumn,
    TruthColumn,
    parse_time,
    text_array,
)
from spaseq.core.events.reorder import NEVER
from spaseq.core.events.time import unit_nanoseconds
from spaseq.core.events.timestamps import TIME_COLUMNS

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch
    from spaseq.core.engine.runs.single_event import Single, SingleAround

Found = list[tuple["MatchBatch", History]]
_BLOCK: Final = 1024
_FEW: Final = 128
"""So many events at once are cheaper one by one than as columns."""
_MOVING: Final = 16
"""So many events that move runs, if each is read again as a batch of one row.

PERF: each takes 50 to 130 µs, a batch 1.6 ms and 7 to 20 µs for each event (2026-11-27, a busy machine).
"""
_TIMES: Final = frozenset(TIME_COLUMNS)
_APART: Final = 2.0**32
"""Doubles below it are so close together that a millionth separates them."""
_INT64: Final = range(-(1 << 63), 1 << 63)


class Row(EventBatch):
    """A batch of one event, for conditions over several: columns are made of the event's own values when asked for."""

    __slots__ = ("_event", "_made")

    def __init__(
        self, event: dict[str, Any], typed_by: str | tuple[str, ...], time: int, position: int, streams: tuple[str, ...]
    ) -> None:
        super().__init__(pa.table({}), typed_by, np.array([time]), np.array([position]), streams)
        self._event = event
        self._made: dict[str, Column | None] = {}

    def column(self, name: str) -> Column | None:
        """The column of an attribute whose value is `normal`; None if it is NULL."""
        if name not in self._made:
            self._made[name] = self._column(name)
        return self._made[name]

    def _column(self, name: str) -> Column | None:
        if name == EVENT_TIME:
            return super()._column(name)
        value = normal(self._event.get(name))
        match value:
            case None:
                return None
            case str():
                return TextColumn(np.zeros(1, np.int32), text_array([value]))
            case bool():
                return TruthColumn(np.array([value]), None)
            case Instant():
                return TimeColumn(np.array([int(value)], np.int64), None)
        return NumberColumn(np.array([value]), None)


class Place:
    """The place of single events in their stream, if the caller gives each its time (ns).

    `position`: that of the next event. `by_column`, `offset`, `interval`: times are those that a column has
    (`time_of`), or else `offset + position * interval`.
    """

    by_column: bool = False
    offset: int = 0
    interval: int = 0

    def __init__(self) -> None:
        self.position: int = 0
        self.high: int = NEVER
        """No time before it is in order (ns)."""

    def enter(self) -> bool:
        """Take over from batches; False before the first event, if that decides the source of times."""
        return True

    def settle(self, count: int, high: int) -> None:
        """Hand over to batches, behind `count` events, the last at time `high`."""
        self.position += count
        self.high = high

    def time_of(self, event: dict[str, Any]) -> int:
        """The time of an event by its column, ns."""
        raise Unfit

    def is_dated(self, event: dict[str, Any]) -> bool:
        """True if the event has a time, and those before it had none: the columnar road refuses it."""
        return False

    def note(self, event: dict[str, Any]) -> None:
        """Note the attributes of an event."""


class Stamps(Place):
    """The place of single events in a feed, and their times by its clock."""

    def __init__(self, feed: EventFeed, options: EventOptions, name: str) -> None:
        super().__init__()
        self._feed = feed
        self._options = options
        self._clock = feed.clocks[name]
        self._dates = options.time_format is not None
        self._scale = unit_nanoseconds(options.unit)
        self._limit = ((1 << 63) - 1) // self._scale
        self.interval = options.step

    def enter(self) -> bool:
        feed, clock = self._feed, self._clock
        if not clock.known:
            return False
        self.position, self.high = feed.position, feed.orderer.reorder.mark
        self.by_column = clock.column is not None
        self.offset = (clock.records - feed.position) * self.interval
        return True

    def settle(self, count: int, high: int) -> None:
        """Bring the counters of the feed up to date."""
        super().settle(count, high)
        feed, clock = self._feed, self._clock
        feed.position += count
        feed.counters.events += count
        feed.counters.iso_times |= clock.iso
        clock.records += count
        feed.orderer.reorder.pass_by(count, high, ("<events>", clock.records))

    def is_dated(self, event: dict[str, Any]) -> bool:
        return not (self.by_column or self._options.from_arrival or _TIMES.isdisjoint(event))

    def note(self, event: dict[str, Any]) -> None:
        self._feed.counters.attributes.update(dict.fromkeys(map(str, event)))

    def time_of(self, event: dict[str, Any]) -> int:
        """The time of an event by its column, ns. Raises `Unfit`, `KeyError` and `EventError` if that needs columns."""
        value = event[self._clock.column or ""]
        kind = value.__class__
        if self._dates and (kind is int or kind is float):
            raise Unfit
        if kind is int:
            if -self._limit <= value <= self._limit:
                return value * self._scale
        elif kind is float and abs(value) <= self._limit:
            whole = int(value)
            if whole == value:
                return whole * self._scale
            millions = round(value * 1e6)  # as in `decimal_times`
            if abs(value) < _APART and millions / 1e6 == value and self._scale >= 1_000_000:
                return millions * (self._scale // 1_000_000)
            return parse_time(repr(value), self._options.unit)
        elif kind is str:
            time = self._clock.parse(value)
            self._clock.iso = self._clock.iso or self._dates or value.strip()[4:5] == "-"
            return time
        else:
            instant = normal(value)
            if instant.__class__ is Instant:
                self._clock.iso = True
                return int(instant)
        raise Unfit


class Counted:
    """The times of single events of a feed, if the caller evaluates them itself. It counts them, from `enter` to
    `leave`."""

    def __init__(self, feed: EventFeed, options: EventOptions, name: str) -> None:
        self._stamps = Stamps(feed, options, name)
        self._shape: tuple[Any, ...] = ()
        self._entered = False
        self._count = self._high = 0

    def take(self, event: dict[str, Any]) -> int | None:
        """The time (ns) of the next event, which is then counted; None, before anything has changed, if the feed must
        take it."""
        stamps, shape = self._stamps, tuple(event)
        if not self._entered:
            if not stamps.enter():
                return None
            self._entered, self._count, self._high = True, 0, stamps.high
        if shape != self._shape and stamps.is_dated(event):
            return None
        try:
            at = stamps.position + self._count
            time = stamps.time_of(event) if stamps.by_column else stamps.offset + at * stamps.interval
        except (Unfit, KeyError, EventError):
            return None
        if time < self._high:
            return None
        if shape != self._shape:
            self._shape = shape
            stamps.note(event)
        self._count, self._high = self._count + 1, time
        return time

    def leave(self) -> None:
        """Hand over to the feed."""
        if self._entered:
            self._entered = False
            self._stamps.settle(self._count, self._high)


class Singles:
    """The road of single events into a `Run`."""

    def __init__(
        self, run: Run, place: Place, typed_by: str | tuple[str, ...], name: str, bits: Callable[[Any], int]
    ) -> None:
        from spaseq.core.engine.runs.single_event import INERT

        assert run.door is not None
        self._run = run
        self._place = place
        self._stated = place.time_of
        self._name = name
        self._bits = bits
        self._waits = run.lowered.around.waits
        self._engine: Single | SingleAround = run.door
        self._inert = INERT
        self._ordering = run.ordering
        self._partition = run.partition
        self._brackets = [] if run.partition is None else [(n, run.partition.kinds[n]) for n in run.partition.brackets]
        self._numbers = run.partitions
        self._pauses = run.pauses
        self._by_key = run.by_key
        self._window_attribute = run.lowered.window_attribute
        self._typed_by = typed_by
        both = (run.lowered.registers, run.lowered.against_registers)
        guards = [guard for registers in both if registers is not None for guard in registers.guards]
        self._guarded = tuple(dict.fromkeys(a.name for g in guards for a in attributes_of(g.condition)))
        self._shape: tuple[Any, ...] = ()
        self._block = Block(0, self._typed_by, ())
        self._entered = False
        self._base = self._position = self._high = 0
        self._coordinate: Any = 0
        self._by_column, self._offset, self._interval = False, 0, place.interval

    @staticmethod
    def of(run: Run, feed: EventFeed, options: EventOptions, names: tuple[str, ...]) -> Singles | None:
        """The road, if there is one, of the events of a feed."""
        if len(names) != 1 or options.lateness:
            return None
        needed = feed.clocks[names[0]].needs_types
        return Singles.into(run, Stamps(feed, options, names[0]), options.typed_by(names), names[0], needed=needed)

    @staticmethod
    def into(
        run: Run, place: Place, typed_by: str | tuple[str, ...], name: str = "", *, needed: bool = False
    ) -> Singles | None:
        """The road, if there is one, of events that come in order. `needed`: those without a type are not for it."""
        untold = run.program.labels is not None and run.lowered.around.waits  # matches wait without labels
        if untold or (door := run.open_door()) is None:
            return None
        bits = compile_bits(door.predicates, typed_by, name, needed=needed)
        return None if bits is None else Singles(run, place, typed_by, name, bits)

    def push(self, event: dict[str, Any], at: int | None = None) -> Found | None:
        """The matches that `event` completes, with the events they name; None: it is for the columnar road.
        `at`: its time (ns), if the place does not tell it.

        PERF: begins as `_look`, written again: the call, and a tuple, cost 0.2 µs of 2.
        """
        if not self._entered and not self._enter():
            return None
        shape = tuple(event)
        if shape != self._shape and self._place.is_dated(event):
            return None
        try:
            symbol = self._engine.symbols[self._bits(event)]
            if at is not None:
                time = at
            else:
                time = self._stated(event) if self._by_column else self._offset + self._position * self._interval
            coordinate = time if self._window_attribute is None else self._number(event)
            value = None if self._partition is None else self._key(event)
            if self._guarded and symbol != self._inert:
                for name in self._guarded:
                    normal(event.get(name))
        except (Unfit, KeyError, EventError):
            return None
        high, least = self._high, self._coordinate
        if time < high or coordinate < least:
            return None
        moving = symbol != self._inert
        key = 0
        position = self._position
        engine = self._engine
        if self._partition is not None and (moving or engine.counts or self._pauses):
            numbers = self._numbers
            if value is None:
                key = -1
            else:
                key = numbers.number_at(value, position, time) if self._pauses else numbers.number(value)
            moving = moving and key >= 0
        self._position = position + 1
        self._high = time
        self._coordinate = coordinate
        if shape != self._shape:
            self._note(event)
        block = self._block
        block.stamps.append(time)
        if self._by_key:
            block.keys.append(key)
        if moving:
            block.events.append(tuple(event.values()) if block.names is self._shape else dict(event))
            try:
                found = engine.push(symbol, position, coordinate, key, self._row)
            except EventError:  # a condition over several events refuses it
                self._position, self._high, self._coordinate = position, high, least
                block.drop_last()
                raise
        else:
            block.events.append(None)
            found = engine.pass_by(position, coordinate, key) if engine.counts and key >= engine.least else []
        if found and self._ordering is not None:
            found = list(self._ordering.sort(found, self._run.past.of))
        past = [(matches, self._run.past.of(matches)) for matches in found if len(matches)] if found else []
        if len(block.events) >= _BLOCK:
            self._seal()
        return past

    def push_all(self, events: list[Any]) -> Found | None:
        """`push` of several events; None, before anything has changed, if one is for the columnar road, or if that is
        cheaper.

        A condition over several events may refuse an event when those before it are taken.
        """
        if len(events) > _FEW or (not self._entered and not self._enter()):
            return None
        high, least, left = self._high, self._coordinate, _MOVING if self._engine.reads else _FEW
        for position, event in enumerate(events, self._position):
            seen = self._look(event, position, high, least) if type(event) is dict else None
            if seen is None:
                return None
            high, least, moves = seen
            left -= moves
            if left < 0:
                return None
        found: Found = []
        begun = self._position
        try:
            for _ in within(self._take(events, found), self._run.program.settings.output_bytes):
                pass
        except EventError:
            self._position = begun  # none of them counts
            raise
        return found

    def _take(self, events: list[dict[str, Any]], found: Found) -> Iterator[MatchBatch]:
        """The matches that events complete which this road takes; with their histories they are added to `found`."""
        for event in events:
            taken = self.push(event)
            assert taken is not None
            found += taken
            for matches, _ in taken:
                yield matches

    def _look(self, event: dict[str, Any], position: int, high: int, least: Any) -> tuple[int, Any, bool] | None:
        """The event's time, its place in the window, and True if it may move a run; None: it is for the columnar road.
        `high` and `least` are time and place of the event before."""
        if self._place.is_dated(event):
            return None
        try:
            moves = self._engine.symbols[self._bits(event)] != self._inert
            time = self._stated(event) if self._by_column else self._offset + position * self._interval
            coordinate = time if self._window_attribute is None else self._number(event)
            if self._partition is not None:
                self._key(event)
            for name in self._guarded:
                normal(event.get(name))
        except (Unfit, KeyError, EventError):
            return None
        return None if time < high or coordinate < least else (time, coordinate, moves)

    def _row(self) -> EngineBatch:
        """The last event as a batch of one row."""
        position = self._position - 1
        row = Row(self._block.attributes(-1), self._typed_by, self._high, position, (self._name,))
        return EngineBatch(row, row.positions, np.array([self._coordinate]), None)

    @property
    def position(self) -> int:
        """That of the next event."""
        return self._position if self._entered else self._place.position

    @property
    def undecided(self) -> int | None:
        """As of `Run`."""
        return self._engine.undecided if self._entered else self._run.undecided

    def leave(self) -> None:
        """Hand over to batches."""
        if not self._entered:
            return
        self._entered = False
        self._settle()
        self._run.leave((self._position - 1, self._coordinate) if self._position > self._base else None)
        past = self._run.past
        if not len(self._block):
            past.pop()
        else:
            past.lasts[-1] = self._coordinate

    def _settle(self) -> None:
        """Bring the counts of the place and of the run up to date."""
        count = self._position - self._base
        self._place.settle(count, self._high)
        if count:
            self._run.time = self._high
        if self._window_attribute is not None:
            self._run.coordinate.last = self._coordinate
        if self._waits and count:
            self._run.reached = self._position - 1, self._coordinate

    def _enter(self) -> bool:
        """Take over from batches; False before the first event, which decides the source of times."""
        run, place = self._run, self._place
        unplaced = self._window_attribute is not None and run.coordinate.last is None
        if not run.is_ready() or not place.enter() or unplaced:
            return False
        run.enter()
        assert run.door is not None
        self._engine = run.door
        self._base = self._position = place.position
        self._high = place.high
        self._coordinate = self._high if self._window_attribute is None else run.coordinate.last
        self._by_column, self._offset = place.by_column, place.offset
        self._begin_block()
        self._entered = True
        return True

    def _begin_block(self) -> None:
        self._block = Block(self._position, self._typed_by, self._shape)
        self._run.past.append(self._block, self._coordinate)

    def _seal(self) -> None:
        run, past = self._run, self._run.past
        past.lasts[-1] = self._coordinate
        past.evict(run, self._position - self._waits, self._coordinate)  # what waits may be reported with the next
        if self._partition is not None:
            run.reach(self._coordinate, self._high)
        self._begin_block()

    def _note(self, event: dict[str, Any]) -> None:
        self._shape = tuple(event)
        self._place.note(event)
        if not self._block.events:
            self._block.names = self._shape

    # What an event says besides its bits

    def _number(self, event: dict[str, Any]) -> int | float:
        """The event's place in a window over an attribute, in the type of the first."""
        value = event[self._window_attribute or ""]
        kind = value.__class__
        if kind is float:
            if self._run.coordinate.kind == "f" and isfinite(value):
                return value
            if isfinite(value) and abs(value) < 2.0**63 and int(value) == value:
                return int(value)
        elif kind is int and value in _INT64:
            return float(value) if self._run.coordinate.kind == "f" else value
        raise Unfit

    def _key(self, event: dict[str, Any]) -> Any:
        """The key of PARTITION BY, as of `Partition`; None if a bracket has no value."""
        assert self._partition is not None
        values: list[Any] = []
        for names, kinds in self._brackets:
            for name in names:
                value = event.get(name)
                if value.__class__ is str:
                    kinds.add("text")
                    values.append(value)
                    break
                value = normal(value)
                if value.__class__ is tuple:
                    raise Unfit
                if value is not None:
                    kind, key = kind_and_key(value)
                    kinds.add(kind)
                    values.append(key)
                    break
            else:
                return None
        return values[0] if len(values) == 1 else tuple(values)
