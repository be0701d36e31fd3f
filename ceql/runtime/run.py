"""One evaluation of a query over event batches: what the engine needs besides the pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ceql.lowering.lower import Lowered
from ceql.results.history import History, Past
from ceql.runtime.batch import Coordinate, EngineBatch, Partition
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, EventCounters
from spaseq.core.held import Memory, Parts, joined, measured
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from spaseq.core.engine import MatchBatch, Program
    from spaseq.core.engine.opening import AnyEvaluator

__all__ = ["Run"]

_PART: Final = 1 << 16


class Run:
    """The state of one evaluation of a `lowered` query.

    `evaluator` is the engine's, `partition` numbers the keys, `coordinate` says where events are in the window, and
    `past` has the events that matches can still name.
    """

    def __init__(self, lowered: Lowered, program: Program, evaluator: AnyEvaluator | None = None) -> None:
        from spaseq.core.engine.opening import open_evaluator

        self.lowered = lowered
        pause = program.settings.forget_keys_after
        keys = lowered.partition
        self.partition: Partition | None = Partition(keys, lowered.window, pause) if keys else None
        self.coordinate: Coordinate = Coordinate(lowered.window_attribute)
        self.evaluator: AnyEvaluator = evaluator if evaluator is not None else open_evaluator(program)
        self.past: Past = Past()
        self.counters: EventCounters = EventCounters()
        self._time: int | None = None
        self._reached: tuple[int, int | float] | None = None
        self._pauses = self.partition is not None and self.partition.numbers.pauses
        self.by_key: bool = bool(keys) and (lowered.window.per_partition or program.ends_by_key)
        """Whether what is needed of the events is different in each partition."""

    def advance(self, events: EventBatch, *, at_once: bool = False) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that these events complete, with what they are about. Exhaust it before the next call.

        `at_once`: the caller keeps all of them, so they are under the budget `output_bytes`.
        """
        for part in self._parts(events):
            yield from self._advance(part, at_once)

    def _parts(self, events: EventBatch) -> Iterator[EventBatch]:
        """Where keys are forgotten after a pause, their numbers are given away between batches, so these are small."""
        if not self._pauses:
            yield events
            return
        for start in range(0, len(events), _PART):
            yield events.part(start, min(start + _PART, len(events)))

    def _advance(self, events: EventBatch, at_once: bool) -> Iterator[tuple[MatchBatch, History]]:
        batch = self.batch(events)
        reached = int(batch.positions[0]), batch.times[0].item()
        if self.lowered.absent is not None:
            # A match waits for its window to close, and is reported with the first events behind that.
            reached, self._reached = self._reached or reached, (int(batch.positions[-1]), batch.times[-1].item())
        self.evict(*reached)
        self.past.append(events, batch.times[-1].item(), batch.keys if self.by_key else None)
        try:
            yield from self._about(self.evaluator.stream(batch), at_once=at_once)
        except EventError:
            self.past.pop()
            raise

    def count(self, events: EventBatch, most: int | None = None) -> int:
        """How many matches these events complete. Stops soon behind `most`; then the run can go no further."""
        found = 0
        for part in self._parts(events):
            if most is not None and found >= most:
                break
            found += self.evaluator.count(self.batch(part), None if most is None else most - found)
        return found

    def ends(self, events: EventBatch | None) -> np.ndarray:
        """The positions of events at which matches end, as far as these events, or None at the end of the stream,
        decide it: int64, ascending, each once. Keeps no events; not to be mixed with `advance`."""
        if events is None:
            parts = list(self._closed())
        else:
            parts = [found for part in self._parts(events) for found in self.evaluator.stream(self.batch(part))]
        ends = np.concatenate([matches.end for matches in parts]) if parts else np.zeros(0, np.int64)
        return ends if np.all(ends[1:] > ends[:-1]) else apart(ends)

    @property
    def undecided(self) -> int | None:
        """The first event of which it is not known yet whether a match ends there; None if there is none."""
        return getattr(self.evaluator, "undecided", None)

    def reach(self, now: int) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        if self._pauses and self.partition is not None:
            self.partition.numbers.hush(now)
            self.make_room(self.evaluator.forget)
        if self.lowered.absent is None or self.lowered.window_attribute is not None:
            return
        yield from self._about(self.evaluator.advance(now), at_once=True)

    def close(self, *, at_once: bool = False) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that the end of the stream completes, with the events about them. `at_once`: as of `advance`."""
        yield from self._about(self._closed(), at_once=at_once)

    def count_rest(self, most: int | None = None) -> int:
        """How many matches the end of the stream completes. Stops soon behind `most`."""
        from spaseq.core.engine.runs.evaluation import counted

        return counted(self._closed(), most)

    def _about(self, parts: Iterator[MatchBatch], *, at_once: bool) -> Iterator[tuple[MatchBatch, History]]:
        for matches in self.evaluator.at_once(parts) if at_once else parts:
            if len(matches):
                yield matches, self.past.of(matches)

    def _closed(self) -> Iterator[MatchBatch]:
        """What the end of the stream completes; no key is silent for longer."""
        if self.partition is not None and self._time is not None:
            self.partition.numbers.hush(self._time)
            self.make_room(self.evaluator.forget)
        return self.evaluator.close()

    def make_room(self, forget: Callable[[np.ndarray], int | None]) -> None:
        """Ends the runs of keys that are forgotten, by `forget`, and counts them. To be called between events."""
        if self._pauses and self.partition is not None:
            numbers = self.partition.numbers
            numbers.make_room(forget)
            self.counters.forgotten_keys, self.counters.lost_runs = numbers.forgotten, numbers.lost

    def note_time(self, time: int) -> None:
        """The time (ns) of the last event, where it did not come in a batch."""
        self._time = time

    def note_reached(self, position: int, coordinate: int | float) -> None:
        """The last event, where it did not come in a batch and matches wait for their windows to close."""
        self._reached = position, coordinate

    def evict(self, position: int, coordinate: int | float) -> None:
        """Drops the events that nothing from this position and place in the window on needs."""
        window = self.lowered.window
        if self.by_key:
            born = self.partition.numbers.born if self._pauses and self.partition is not None else None
            self.past.evict_by_key(window, position, born, lambda: self.evaluator.sure)
        else:
            self.past.evict(window, position, coordinate)

    @property
    def valuations(self) -> bool:
        """Whether matches are valuations."""
        return self.evaluator.program.labels is not None

    @property
    def statistics(self) -> dict[str, int]:
        keys = {} if self.partition is None else {"keys": len(self.partition.numbers)}
        return self.evaluator.statistics | keys

    def held(self, outside: Parts = MappingProxyType({}), ignored: Iterable[Any] = ()) -> Memory:
        """What it holds in memory, and what else is held `outside`, but for what can be reached from `ignored`."""
        keys = 0 if self.partition is None else len(self.partition.numbers)
        own: Parts = {"keys": [self.partition], "events": [self.past], "rest": [self]}
        compiled = [*ignored, self.lowered, self.evaluator.program]
        events = sum(map(len, self.past.batches))
        return measured(joined(self.evaluator.parts(), own, outside), compiled, keys_held=keys, events_held=events)

    def explain(self) -> str:
        """Who evaluates, and what was counted, as text."""
        from spaseq.core.engine.opening import explain_evaluator

        return explain_evaluator(self.evaluator)

    def batch(self, events: EventBatch) -> EngineBatch:
        """The events as the engine takes them."""
        self.make_room(self.evaluator.forget)
        self._time = int(events.times[-1])
        places = self.coordinate.of(events)
        keys = None if self.partition is None else self.partition.keys(events, places)
        return EngineBatch(events, events.positions, places, keys)

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values."""
        self.make_room(self.evaluator.forget)
        return {
            "engine": self.evaluator.snapshot(),
            "partition": None if self.partition is None else self.partition.numbers.snapshot(),
            "coordinate": (self.coordinate.last, self.coordinate.kind),
            "reached": self._reached,
            "history": self.past.snapshot(),
            "lasts": self.past.lasts,
            "time": self._time,
        }

    @staticmethod
    def restore(lowered: Lowered, program: Program, state: dict[str, Any]) -> Run:
        """A run that goes on where `snapshot` was taken, of the same query."""
        from spaseq.core.engine import restore_evaluator

        run = Run(lowered, program, restore_evaluator(program, state["engine"]))
        if run.partition is not None:
            run.partition.numbers.restore(state["partition"], program.settings.partitions)
        run.coordinate.last, run.coordinate.kind = state["coordinate"]
        expect(run.coordinate.kind in (None, "i", "f"), "a kind of number")
        run._reached = state["reached"]
        if run._reached is not None:
            position, coordinate = run._reached
            expect(type(position) is int and type(coordinate) in (int, float), "a place in the stream")
        run.past.restore(state["history"], state["lasts"])
        run._time = state["time"]
        expect(run._time is None or type(run._time) is int, "the time of the last event")
        return run
