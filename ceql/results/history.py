"""The events that future matches may contain: batches, and blocks of events that were pushed one by one."""

from __future__ import annotations

from array import array as array_of
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from spaseq.core.engine.recognition.past import Blocks
from spaseq.core.events import EventBatch
from spaseq.core.events.memory import from_dicts
from spaseq.core.events.readers import common_schema
from spaseq.core.events.streams import table_bytes, table_of_bytes
from spaseq.core.integers import in_order
from spaseq.core.snapshot import array, expect

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch
    from spaseq.core.engine.recognition.recognition import Recognition


class Block:
    """Consecutive events that were pushed one by one, with the part of `EventBatch`'s interface that matches use.

    `typed_by` is as of `EventBatch`. An event in `events` is a tuple of its values if its attributes are `names`, in
    this order, else a dict. PERF: a dict of four attributes has 184 bytes, a tuple 72. It is None if the event moved no
    run, as no match contains it then. `keys` has the partition of each if `Past` needs it. `places` has the positions,
    once some events are left out.
    """

    __slots__ = ("events", "first", "keys", "names", "places", "stamps", "typed_by")

    def __init__(self, first: int, typed_by: str | tuple[str, ...], names: tuple[str, ...]) -> None:
        self.first: int = first
        self.typed_by: str | tuple[str, ...] = typed_by
        self.names: tuple[str, ...] = names
        self.events: list[tuple[Any, ...] | dict[str, Any] | None] = []
        self.stamps: array_of[int] = array_of("q")  # PERF: a list of numbers has 40 bytes for each
        self.keys: list[int] = []
        self.places: list[int] | None = None

    def __len__(self) -> int:
        return len(self.events)

    @property
    def positions(self) -> np.ndarray | range:
        if self.places is not None:
            return np.array(self.places, np.int64)
        return range(self.first, self.first + len(self.events))

    @property
    def times(self) -> np.ndarray:
        """The times of the events: int64 (n,), ns."""
        return np.array(self.stamps, np.int64)

    def drop_last(self) -> None:
        """Forget the last event."""
        del self.events[-1:], self.stamps[-1:], self.keys[-1:]

    def take(self, rows: np.ndarray) -> Block:
        """These rows, ascending, as a block of their own."""
        block, chosen, positions = Block(self.first, self.typed_by, self.names), rows.tolist(), self.positions
        block.events = [self.events[i] for i in chosen]
        block.stamps.extend([self.stamps[i] for i in chosen])
        block.places = [int(positions[i]) for i in chosen]
        block.first = block.places[0]
        return block

    def type_of(self, row: int) -> str:
        """The type of an event that a match names; all events come on one stream."""
        return self.typed_by[0] if isinstance(self.typed_by, tuple) else str(self.attributes(row)[self.typed_by])

    def attributes(self, row: int) -> dict[str, Any]:
        """The attributes of one event as they were pushed; none if it moved no run."""
        event = self.events[row]
        return dict(zip(self.names, event, strict=True)) if isinstance(event, tuple) else event or {}

    def event(self, row: int) -> dict[str, Any]:
        """The attributes of one event that are not NULL, as Python values."""
        return self.take(np.array([row])).in_columns().event(0)

    def in_columns(self) -> EventBatch:
        """The events in columns, in which each value keeps its kind."""
        table = from_dicts([self.attributes(row) for row in range(len(self.events))])
        return EventBatch(table, self.typed_by, self.times, np.asarray(self.positions))


class History(Blocks["EventBatch | Block"]):
    """Batches in order, from which events may be missing that no match names, and their events by position."""

    def times(self, positions: np.ndarray) -> np.ndarray:
        if len(self.blocks) == 1:
            return np.asarray(self.blocks[0].times[self.rows(positions)])
        return super().times(positions)

    def rows(self, positions: np.ndarray) -> np.ndarray:
        """Which of all the events, counted from 0, those at `positions` are: int64 (n,)."""
        if self.blocks[-1].positions[-1] - self.firsts[0] + 1 == len(self):
            return positions - self.firsts[0]
        before, found = np.cumsum([0, *map(len, self.blocks)]), np.empty(len(positions), np.int64)
        for number, own, rows in self.places(positions):
            found[own] = before[number] + rows
        return found

    def kind(self, position: int) -> str:
        """The type of an event; empty if it has none."""
        batch, row = self.place(position)
        types = events_of(batch, np.array([row])).types
        return "" if types is None or types.codes[0] < 0 else str(types.texts[types.codes[0]])

    @property
    def table(self) -> pa.Table:
        """All events, in order; an attribute that a batch lacks is NULL there. No batch may be a `Block`."""
        return self.columns(None)

    def columns(self, names: Collection[str] | None) -> pa.Table:
        """These attributes of all events, in order, of those that any event has; `table` for None."""
        batches = [batch for batch in self.blocks if isinstance(batch, EventBatch)]
        assert len(batches) == len(self.blocks)
        tables = [batch.table for batch in batches]
        if names is not None:
            tables = [table.select([name for name in table.column_names if name in names]) for table in tables]
        return tables[0] if len(tables) == 1 else common_schema(tables, batches[0].source)

    def numbers_of_types(self, positions: np.ndarray, numbers: Mapping[str, int]) -> np.ndarray:
        """The number of the type of each of these events: int64. Each has one of the types in `numbers`."""
        found = np.zeros(len(positions), np.int64)
        for number, own, rows in self.places(positions):
            block = self.blocks[number]
            if isinstance(block, Block):
                found[own] = [numbers[block.type_of(row)] for row in rows.tolist()]
            elif (types := block.types) is not None:
                of_text = np.array([numbers.get(text, 0) for text in types.texts.to_pylist()], np.int64)
                found[own] = of_text[types.codes[rows]]
        return found

    def about(self, matches: MatchBatch) -> History:
        """The same events in columns; if some were pushed one by one, only those that the matches name."""
        if not any(isinstance(batch, Block) for batch in self.blocks):
            return self
        named = np.unique(np.concatenate([matches.positions, matches.start, matches.end]))
        found = History([], [])
        for number, own, rows in self.places(named):
            found.put(events_of(self.blocks[number], rows), int(named[own][0]))
        return found

    def event(self, position: int) -> dict[str, Any]:
        """The attributes of an event."""
        batch, row = self.place(position)
        return batch.event(row)


def events_of(batch: EventBatch | Block, rows: np.ndarray) -> EventBatch:
    """These rows, ascending, as events in columns."""
    taken = batch.take(rows)
    return taken.in_columns() if isinstance(taken, Block) else taken


class Past(History):
    """The batches whose events future matches may contain; `lasts` has the last window coordinate of each, `keys` the
    partition of each event where windows are of events in partitions: int64 (n,), else None."""

    worth: ClassVar[int] = 1 << 16
    """So many events make it worth while to look for those that no partition needs any more."""

    def __init__(self) -> None:
        super().__init__()
        self.lasts: list[int | float] = []
        self.keys: list[np.ndarray | None] = []
        self._sift_at = self.worth

    def append(self, batch: EventBatch | Block, last: int | float, keys: np.ndarray | None = None) -> None:
        self.put(batch, batch.first if isinstance(batch, Block) else int(batch.positions[0]))
        self.lasts.append(last)
        self.keys.append(keys)

    def pop(self) -> None:
        """Takes the last batch out again."""
        del self.blocks[-1], self.firsts[-1], self.lasts[-1], self.keys[-1]

    def evict(self, run: Recognition, position: int, coordinate: int | float) -> None:
        """Drops what no match of `run` needs that ends at this position and place in the window, or later.

        That is a whole batch that no window reaches. It is single events, if what is needed is different in each
        partition (`by_key`), which may be any number of positions ago, or if there is no window.
        """
        window = run.program.reach
        if run.by_key or not window.is_bounded:
            if position >= self._sift_at and self.blocks:
                self.sift(run, int(window.size) + 1 if window.per_partition else position + 1)
                self._sift_at = position + self.worth + len(self)
            return
        if window.by_position:
            reach = window.open_from(position)
            count = bisect_left(self.blocks, reach, key=lambda b: int(b.positions[-1]))
        else:
            count = bisect_left(self.lasts, window.open_from(coordinate))
        if 2 * count >= len(self.blocks):  # only when half can go, so that a batch is moved O(1) times on average
            self.drop(count)

    def drop(self, count: int) -> None:
        super().drop(count)
        del self.lasts[:count], self.keys[:count]

    def sift(self, run: Recognition, most: int | None = None) -> None:
        """Drops the events that no match to come may name from batches that lose half of theirs; the last one stays.

        If the evaluator does not tell them, and `run.by_key`, these are all but the last `most` of each partition,
        those before its last pause, and those of none. To be called between batches. O(events log events).
        """
        if not self.blocks:
            return
        named = run.nameable()
        if named is not None:
            positions = np.concatenate([np.asarray(batch.positions) for batch in self.blocks])
            wanted = np.isin(positions, named)
        elif run.by_key and most is not None:
            wanted = self._last_of_keys(run, most)
        else:
            return
        wanted[-1] = True
        before, start = list(zip(self.blocks, self.lasts, self.keys, strict=True)), 0
        self.drop(len(self.blocks))
        for batch, last, keys in before:
            rows = np.flatnonzero(wanted[start : start + len(batch)])
            start += len(batch)
            if 2 * len(rows) > len(batch):
                self.append(batch, last, keys)
            elif len(rows):
                part = batch.take(rows)
                if isinstance(part, Block) and isinstance(batch, Block) and batch.keys:
                    part.keys = [batch.keys[row] for row in rows.tolist()]
                self.append(part, last, None if keys is None else keys[rows])

    def _last_of_keys(self, run: Recognition, most: int) -> np.ndarray:
        """The last `most` events of each partition behind its last pause, and the events of matches that are still to
        be given: bool (events,)."""
        held = [
            np.array(batch.keys, np.int64) if isinstance(batch, Block) else keys
            for batch, keys in zip(self.blocks, self.keys, strict=True)
        ]
        known = [np.full(len(b), -1) if k is None else k for b, k in zip(self.blocks, held, strict=True)]
        keys = np.concatenate(known)
        order = in_order(keys)
        ends = np.append(np.flatnonzero(np.diff(keys[order])), len(order) - 1)
        behind = np.repeat(ends, np.diff(ends, prepend=-1)) - np.arange(len(order))
        wanted = np.zeros(len(keys), bool)
        wanted[order] = (behind < most) & (keys[order] >= 0)
        if run.pauses and len(keys):
            positions = np.concatenate([np.asarray(batch.positions) for batch in self.blocks])
            wanted &= positions >= run.partitions.born(keys)
            wanted |= np.isin(positions, run.evaluator.sure)
        return wanted

    def of(self, matches: MatchBatch) -> History:
        """The batches with the events of these matches."""
        low, high = int(matches.start.min()), int(matches.end.max())
        first, last = bisect_right(self.firsts, low) - 1, bisect_right(self.firsts, high)
        return History(self.blocks[first:last], self.firsts[first:last])

    def snapshot(self) -> list[tuple[Any, ...]]:
        """The batches with the partitions of their events, as plain values; `lasts`, which are numbers, are not
        included."""
        held = (
            (b.in_columns(), np.array(b.keys, np.int64) if b.keys else None) if isinstance(b, Block) else (b, keys)
            for b, keys in zip(self.blocks, self.keys, strict=True)
        )
        return [
            (table_bytes(b.table), b.typed_by, b.times, b.positions, b.streams, b.stream_codes, keys)
            for b, keys in held
        ]

    def restore(self, batches: list[tuple[Any, ...]], lasts: list[int | float]) -> None:
        """The opposite of `snapshot`."""
        following = 0
        for (*parts, keys), last in zip(batches, lasts, strict=True):
            batch = _stored_batch(*parts)
            expect(following <= batch.positions[0], "batches one behind the other")
            expect(type(last) in (int, float), "a number for the end of each batch")
            following = int(batch.positions[-1]) + 1
            if keys is not None:
                keys = array(keys, "keys", rows=len(batch), low=-1)
            self.append(batch, last, keys)


def _stored_batch(
    table: bytes, typed_by: str | tuple[str, ...], times: Any, positions: Any, streams: tuple[str, ...],
    codes: np.ndarray | None,
) -> EventBatch:  # fmt: skip
    """A batch from a snapshot."""
    held = table_of_bytes(table)
    rows = held.num_rows
    expect(len(set(held.column_names)) == held.num_columns, "each attribute once")
    expect(rows > 0 and all(type(name) is str for name in streams), "events of a stream")
    expect(type(typed_by) is str or _are_types(typed_by, len(streams)), "a column of types, or a type of each stream")
    places, when = array(positions, "positions", rows=rows, low=0), array(times, "times", rows=rows)
    expect((np.diff(places) > 0).all() and (np.diff(when) >= 0).all(), "events in order")
    if codes is not None:
        expect(codes.dtype == np.int32 and codes.shape == (rows,), "a stream for each event")
        expect(((codes >= 0) & (codes < len(streams))).all(), "a stream for each event")
    return EventBatch(held, typed_by, when, places, streams, codes)


def _are_types(given: Any, streams: int) -> bool:
    """True of a type for each stream; events that were pushed one by one have no name of their stream."""
    return type(given) is tuple and all(type(name) is str for name in given) and len(given) == max(streams, 1)
