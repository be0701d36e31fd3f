"""One evaluation of a query over event batches: what the engine needs besides the pattern.

`Run` gives the engine its batches (`EngineBatch`: events with partition keys and the window's coordinate) and keeps the
events that matches can still name.
"""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ceql.lower import Lowered
from ceql.single import Block
from ceql.values import kind_of
from spaseq.engine import Window
from spaseq.errors import EventError
from spaseq.events import EventBatch, ListColumn, NumberColumn, TextColumn, TimeColumn, TruthColumn
from spaseq.events.readers import common_schema
from spaseq.events.streams import table_bytes, table_of_bytes
from spaseq.snapshot import array, expect

if TYPE_CHECKING:
    from spaseq.engine import MatchBatch, Program
    from spaseq.engine.opening import AnyEvaluator

__all__ = ["EngineBatch", "History", "Partition", "Run"]


@dataclass(frozen=True, slots=True)
class EngineBatch:
    """What is pushed to the engine, and what predicates and registers are given."""

    events: EventBatch
    positions: np.ndarray
    times: np.ndarray
    keys: np.ndarray | None

    def __len__(self) -> int:
        return len(self.positions)

    def part(self, start: int, stop: int) -> EngineBatch:
        """These rows, for samples."""
        keys = None if self.keys is None else self.keys[start:stop]
        return EngineBatch(self.events.part(start, stop), self.positions[start:stop], self.times[start:stop], keys)


class Partition:
    """PARTITION BY: a number for each tuple of values, the same in every batch.

    Each bracket gives one value: that of the first of its attributes that the event has. An event without a value for
    some bracket belongs to no partition, -1.
    """

    def __init__(self, brackets: tuple[tuple[str, ...], ...]) -> None:
        self.brackets = brackets
        self.numbers: dict[tuple[Any, ...], int] = {}

    def keys(self, batch: EventBatch) -> np.ndarray:
        """int64 (n,)."""
        parts = [self._bracket(batch, names) for names in self.brackets]
        codes, found = parts[0]
        known = codes >= 0
        tuples = [(v,) for v in found]
        for more, values in parts[1:]:
            known &= more >= 0
            together, codes = np.unique(np.where(known, codes * max(1, len(values)) + more, 0), return_inverse=True)
            width = max(1, len(values))
            tuples = [(*_at(tuples, int(c) // width), *_at_value(values, int(c) % width)) for c in together]
        table = np.full(len(tuples) + 1, -1, np.int64)
        used = np.unique(codes[known])
        table[used] = [self.number(tuples[c]) for c in used.tolist()]
        return np.where(known, table[codes], -1)

    def number(self, values: tuple[Any, ...]) -> int:
        return self.numbers.setdefault(values, len(self.numbers))

    def _bracket(self, batch: EventBatch, names: tuple[str, ...]) -> tuple[np.ndarray, list[Any]]:
        codes = np.full(len(batch), -1, np.int64)
        values: list[Any] = []
        for name in names:
            column = batch.column(name)
            if isinstance(column, ListColumn):
                raise EventError(
                    f"attribute {name} is a list, and PARTITION BY goes by numbers, texts, truths or times",
                    source=batch.source,
                    attribute=name,
                )
            if column is not None:
                more, found = _encoded(column)
                codes = np.where((codes < 0) & (more >= 0), more + len(values), codes)
                values += found
        return codes, values


def _at(tuples: list[tuple[Any, ...]], index: int) -> tuple[Any, ...]:
    return tuples[index] if index < len(tuples) else ()


def _at_value(values: list[Any], index: int) -> tuple[Any, ...]:
    return (values[index],) if index < len(values) else ()


def _encoded(column: NumberColumn | TextColumn | TruthColumn | TimeColumn) -> tuple[np.ndarray, list[Any]]:
    """Codes (-1 NULL) and the values they stand for, tagged with their kind: 1 and true are different."""
    if isinstance(column, TextColumn):
        return column.codes.astype(np.int64), [("text", t) for t in column.texts.to_pylist()]
    distinct, codes = np.unique(column.values, return_inverse=True)
    if column.known is not None:
        codes = np.where(column.known, codes, -1)
    kind = "time" if isinstance(column, TimeColumn) else None
    return codes, [(kind or kind_of(v), v) for v in distinct.tolist()]


class Coordinate:
    """The numbers a window is measured in: the events' times, or those of a named attribute."""

    def __init__(self, attribute: str | None) -> None:
        self._attribute = attribute
        self.last: int | float | None = None
        self.kind: str | None = None

    def of(self, batch: EventBatch) -> np.ndarray:
        """int64 or, from the first decimal on, float64 (n,); never decreasing. `EventError` if it would."""
        name = self._attribute
        if name is None:
            return batch.times
        if name not in batch.table.column_names:
            close = difflib.get_close_matches(name, batch.table.column_names, 1, 0.6)
            hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(batch.table.column_names[:20])}"
            raise EventError(
                f"no attribute {name}, which the window is measured in",
                source=batch.source,
                attribute=name,
                hint=hint,
            )
        column = batch.column(name)
        known = None if not isinstance(column, NumberColumn | TimeColumn) else column.known
        if column is None or (known is not None and not known.all()):
            row = 0 if known is None else int(np.argmin(known))
            raise self._error(batch, row, f"this event has no {name}, which the window is measured in")
        if isinstance(column, TimeColumn):
            numbers = column.values // 10**9 + column.values % 10**9 / 1e9  # each rounded once
        elif isinstance(column, NumberColumn):
            numbers = column.values
        else:
            raise self._error(batch, 0, f"{name} holds no numbers, and the window is measured in it")
        if numbers.dtype.kind == "f" and not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise self._error(batch, row, f"{name} is {numbers[row]}, and the window is measured in it")
        numbers = self._settled(numbers)
        self._check_order(batch, numbers)
        self.last, self.kind = numbers[-1].item(), numbers.dtype.kind
        return numbers

    def _settled(self, numbers: np.ndarray) -> np.ndarray:
        """Whole numbers until there are decimals, decimals from then on."""
        if self.kind != "f" and numbers.dtype.kind == "f" and self.last is not None:
            whole = (np.abs(numbers) < 2.0**63) & (numbers == np.trunc(numbers))
            numbers = numbers.astype(np.int64) if whole.all() else numbers
        return numbers.astype(np.float64) if self.kind == "f" else numbers

    def _check_order(self, batch: EventBatch, numbers: np.ndarray) -> None:
        back = np.flatnonzero(numbers[1:] < numbers[:-1]) + 1
        row = int(back[0]) if len(back) else None
        if self.last is not None and numbers[0] < self.last:
            row = 0
        if row is not None:
            before = numbers[row - 1].item() if row else self.last
            raise self._error(
                batch,
                row,
                f"{self._attribute} goes back from {before} to {numbers[row].item()}, and the window is measured in it",
            )

    def _error(self, batch: EventBatch, row: int, problem: str) -> EventError:
        return EventError(
            problem,
            source=batch.source,
            record=int(batch.positions[row]) + 1,
            counted="event",
            attribute=self._attribute or "",
            hint="a window over an attribute needs its number in every event, in order; else use WITHIN n SECONDS",
        )


@dataclass(frozen=True, slots=True)
class History:
    """Batches that follow each other, and what they say about positions."""

    batches: tuple[EventBatch | Block, ...] = ()

    def times(self, positions: np.ndarray) -> np.ndarray:
        """Times of events, int64 ns."""
        if not self.batches:
            return np.zeros(0, np.int64)
        times = np.concatenate([b.times for b in self.batches]) if len(self.batches) > 1 else self.batches[0].times
        return np.asarray(times[positions - self.batches[0].positions[0]])

    @property
    def first(self) -> int:
        """The position of the first event."""
        return _first_position(self.batches[0])

    @property
    def table(self) -> pa.Table:
        """All events, in order; an attribute that a batch does not have is NULL there. Not of single events."""
        batches = [batch for batch in self.batches if isinstance(batch, EventBatch)]
        assert len(batches) == len(self.batches)
        tables = [batch.table for batch in batches]
        return tables[0] if len(tables) == 1 else common_schema(tables, batches[0].source)

    def event(self, position: int) -> dict[str, Any]:
        """The attributes of an event."""
        batch = self.batches[bisect.bisect_right(self.batches, position, key=_first_position) - 1]
        row = position - _first_position(batch)
        expect(0 <= row < len(batch), "a match names events that are there")  # but of a snapshot that was made up
        return batch.event(row)


def _first_position(batch: EventBatch | Block) -> int:
    return int(batch.positions[0])


class Past:
    """The batches that matches to come can still name, each with its last number on the window's coordinate."""

    def __init__(self) -> None:
        self.batches: list[EventBatch | Block] = []
        self.lasts: list[int | float] = []

    def append(self, batch: EventBatch | Block, last: int | float) -> None:
        self.batches.append(batch)
        self.lasts.append(last)

    def forget(self, window: Window, partitioned: bool, position: int, coordinate: int | float) -> None:
        """Lets go of what a window that ends at this position and coordinate, or later, cannot reach."""
        if window.counts_events:
            if partitioned:
                return
            reach = window.open_from(position)
            count = bisect.bisect_left(self.batches, reach, key=lambda b: int(b.positions[-1]))
        else:
            count = bisect.bisect_left(self.lasts, window.open_from(coordinate))
        if 2 * count >= len(self.batches):  # seldom, so that each batch is moved a few times at most
            del self.batches[:count], self.lasts[:count]

    def of(self, matches: MatchBatch) -> History:
        """The batches that these matches are about."""
        low, high = int(matches.start.min()), int(matches.end.max())
        first = bisect.bisect_right(self.batches, low, key=_first_position) - 1
        last = bisect.bisect_right(self.batches, high, key=_first_position)
        return History(tuple(self.batches[first:last]))


class Run:
    """The state of one evaluation: engine, partition numbers, window, and recent events."""

    def __init__(self, lowered: Lowered, program: Program, evaluator: AnyEvaluator | None = None) -> None:
        from spaseq.engine.opening import open_evaluator

        self._lowered = lowered
        self._partition = Partition(lowered.partition) if lowered.partition else None
        self._coordinate = Coordinate(lowered.window_attribute)
        self._evaluator = evaluator if evaluator is not None else open_evaluator(program)
        self._past = Past()
        self._reached: tuple[int, int | float] | None = None

    def advance(self, events: EventBatch) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that these events complete, with what they are about. Exhaust it before the next call."""
        batch = self._batch(events)
        partitioned = batch.keys is not None
        reached = int(batch.positions[0]), batch.times[0].item()
        if self._lowered.absent is not None:
            # A match waits for its window to close, and is reported with the first events behind that.
            reached, self._reached = self._reached or reached, (int(batch.positions[-1]), batch.times[-1].item())
        self._past.forget(self._lowered.window, partitioned, *reached)
        self._past.append(events, batch.times[-1].item())
        yield from ((m, self._past.of(m)) for m in self._evaluator.stream(batch) if len(m))

    def count(self, events: EventBatch) -> int:
        """How many matches these events complete."""
        return self._evaluator.count(self._batch(events))

    def ends(self, events: EventBatch | None) -> np.ndarray:
        """The positions of events at which matches end, as far as these events, or None at the end of the stream,
        decide it: int64, ascending, each once. Keeps no events; not to be mixed with `advance`."""
        parts = [self._evaluator.close()] if events is None else list(self._evaluator.stream(self._batch(events)))
        ends = np.concatenate([matches.end for matches in parts]) if parts else np.zeros(0, np.int64)
        return ends if np.all(ends[1:] > ends[:-1]) else np.unique(ends)

    @property
    def undecided(self) -> int | None:
        """The first event of which it is not known yet whether a match ends there; None if there is none."""
        return getattr(self._evaluator, "undecided", None)

    def close(self) -> tuple[MatchBatch, History]:
        """The matches that the end of the stream completes, with the events about them."""
        matches = self._evaluator.close()
        return matches, self._past.of(matches) if len(matches) else History()

    @property
    def valuations(self) -> bool:
        """Whether matches are valuations."""
        return self._evaluator._program.labels is not None

    @property
    def statistics(self) -> dict[str, int]:
        return self._evaluator.statistics

    def explain(self) -> str:
        """Who evaluates, and what was counted, as text."""
        from spaseq.engine.opening import explain_evaluator

        return explain_evaluator(self._evaluator)

    def _batch(self, events: EventBatch) -> EngineBatch:
        keys = None if self._partition is None else self._partition.keys(events)
        return EngineBatch(events, events.positions, self._coordinate.of(events), keys)

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "engine": self._evaluator.snapshot(),
            "partition": None if self._partition is None else list(self._partition.numbers),
            "coordinate": (self._coordinate.last, self._coordinate.kind),
            "reached": self._reached,
            "history": [
                b.snapshot()
                if isinstance(b, Block)
                else (table_bytes(b.table), b.type_column, b.times, b.positions, b.streams, b.stream_codes)
                for b in self._past.batches
            ],
            "lasts": self._past.lasts,
        }

    @staticmethod
    def restore(lowered: Lowered, program: Program, state: dict[str, Any]) -> Run:
        """A run that goes on where `snapshot` was taken, of the same query."""
        from spaseq.engine import restore_evaluator

        run = Run(lowered, program, restore_evaluator(program, state["engine"]))
        if run._partition is not None:
            run._partition.numbers = {values: number for number, values in enumerate(state["partition"])}
            expect(len(run._partition.numbers) == len(state["partition"]), "each key once")
        run._coordinate.last, run._coordinate.kind = state["coordinate"]
        expect(run._coordinate.kind in (None, "i", "f"), "a kind of number")
        run._reached = state["reached"]
        following = None
        for parts, last in zip(state["history"], state["lasts"], strict=True):
            batch = Block.restore(parts) if len(parts) == 4 else _batch(*parts)
            expect(following in (None, _first_position(batch)) and len(batch), "batches one behind the other")
            following = _first_position(batch) + len(batch)
            run._past.append(batch, last)
        return run


def _batch(
    table: bytes, type_column: str, times: Any, positions: Any, streams: tuple[str, ...], codes: np.ndarray | None
) -> EventBatch:
    """A batch from a snapshot."""
    held = table_of_bytes(table)
    rows = held.num_rows
    expect(len(set(held.column_names)) == held.num_columns, "each attribute once")
    expect(rows > 0 and type(type_column) is str and all(type(name) is str for name in streams), "events of a stream")
    places, when = array(positions, "positions", rows=rows, low=0), array(times, "times", rows=rows)
    expect((np.diff(places) == 1).all() and (np.diff(when) >= 0).all(), "events in order")
    if codes is not None:
        expect(codes.dtype == np.int32 and codes.shape == (rows,), "a stream for each event")
        expect(((codes >= 0) & (codes < len(streams))).all(), "a stream for each event")
    return EventBatch(held, type_column, when, places, streams, codes)
