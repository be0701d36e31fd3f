"""One evaluation of a query over event batches: the engine's input other than the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ceql.lowering.lower import Lowered
from ceql.results.folding import Folding
from ceql.results.groups import Groups
from ceql.results.history import History, Past
from ceql.results.ordering import Ordering
from ceql.runtime.batch import Coordinate, EngineBatch, Partition
from spaseq.core.engine import open_evaluator
from spaseq.core.engine.recognition.recognition import Recognition
from spaseq.core.errors import EventError
from spaseq.core.events import EventBatch, EventCounters
from spaseq.core.held import Memory, Parts
from spaseq.core.integers import apart
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from ceql.results.sums import Summing
    from spaseq.core.engine import MatchBatch, Program
    from spaseq.core.engine.opening import AnyEvaluator
    from spaseq.core.engine.runs.evaluator import Evaluator

_PART: Final = 1 << 16


class Run(Recognition):
    """The state of one evaluation of a `lowered` query.

    `partition` numbers the keys of events, `coordinate` gives their places in the window, and `past` has the events
    that matches can still name. `reached`: the last event, if matches wait for their windows to close. `ordering` sorts
    the matches of each event.
    """

    def __init__(
        self, lowered: Lowered, program: Program, evaluator: AnyEvaluator | None = None,
        ordering: Ordering | None = None,
    ) -> None:  # fmt: skip
        brackets = lowered.partition
        if ordering is not None and ordering.ranking is not None:
            program = replace(program, ranked=True)
        super().__init__(program, evaluator or open_evaluator(program), partitioned=bool(brackets))
        self.lowered = lowered
        self.partition: Partition | None = Partition(brackets, self.partitions) if brackets else None
        self.coordinate: Coordinate = Coordinate(lowered.window_attribute)
        self.past: Past = Past()
        self.counters: EventCounters = EventCounters()
        self.reached: tuple[int, int | float] | None = None
        self.ordering: Ordering | None = ordering
        self._folding: Folding | None = Folding.of(program)
        self._groups: Groups | None = None
        grouping = lowered.grouping
        if program.summed is not None and grouping is not None and not grouping.event:
            # A key that conditions imply divides the evaluation, and no group.
            codes = Partition(lowered.written, self.partitions).codes if lowered.written else None
            self._groups = Groups(cast("Summing", program.summed), grouping, codes, program.settings.partitions)

    def advance(self, events: EventBatch, *, at_once: bool = False) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that these events complete, with the events they name. Exhaust it before the next call.

        `at_once`: the caller keeps all of them, so they are under the budget `output_bytes`.
        """
        ordering = self.ordering
        for part in self._parts(events):
            if ordering is None:
                yield from self._advance(part, at_once)
                continue
            found = ordering.sort((matches for matches, _ in self._advance(part, False)), self.past.of)
            for matches in self.evaluator.at_once(found) if at_once else found:
                yield matches, self.past.of(matches)

    def _parts(self, events: EventBatch) -> Iterator[EventBatch]:
        """The events, in small parts if keys are forgotten after a pause: numbers are reused only between batches."""
        if not self.pauses:
            yield events
            return
        for start in range(0, len(events), _PART):
            yield events.part(start, min(start + _PART, len(events)))

    def _advance(self, events: EventBatch, at_once: bool) -> Iterator[tuple[MatchBatch, History]]:
        before = self.time, self.reached, self.coordinate.last
        batch = self.batch(events)
        reached = int(batch.positions[0]), batch.times[0].item()
        if self.lowered.around.waits:
            # A match waits for its window to close, and is reported with the first events behind that.
            reached, self.reached = self.reached or reached, (int(batch.positions[-1]), batch.times[-1].item())
        self.past.evict(self, *reached)
        self.past.append(events, batch.times[-1].item(), batch.keys if self.by_key else None)
        try:
            yield from self._about(self.evaluator.stream(batch), at_once=at_once)
        except EventError:
            self.past.pop()
            if self.program.writes_nodes:
                cast("Evaluator", self.evaluator).number_anew()
            if not self.is_midway:
                self.time, self.reached, self.coordinate.last = before
            raise
        if self._groups is not None:
            yield from self._groups.until(int(events.times[-1]))

    @property
    def is_midway(self) -> bool:
        """True if an error ended the last batch behind events that had moved runs: the evaluation cannot go on."""
        return getattr(self.evaluator, "midway", False) or (self.ordering is not None and self.ordering.broken)

    def count(self, events: EventBatch | None, most: int | None = None) -> int:
        """The number of matches that these events complete, or if they are None, the end of the stream. Stops soon
        behind `most`; then the run can go no further."""
        from spaseq.core.engine.runs.evaluation import counted  # loads the kernels

        if self._groups is not None:
            return sum(len(found) for found, _ in (self.close() if events is None else self.advance(events)))
        if self._folding is not None:
            return len(self.ends(events))
        if events is None:
            return counted(self._closed(), most)
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
        return _ends_of(parts)

    @property
    def undecided(self) -> int | None:
        """The first event at which it is not decided yet if a match ends; None if there is none."""
        return getattr(self.evaluator, "undecided", None)

    def wait_until(self, now: int) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        yield from self._about(self._due(now), at_once=True)
        if self._groups is not None:
            yield from self._groups.until(now)

    def ends_until(self, now: int) -> np.ndarray:
        """As `ends`, of the matches that wait for nothing but the time `now` (ns)."""
        return _ends_of(list(self._due(now)))

    def _due(self, now: int) -> Iterator[MatchBatch]:
        self.hush(now)
        if self.lowered.around.waits and self.lowered.window_attribute is None:
            yield from self.evaluator.advance(now)

    def close(self, *, at_once: bool = False) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that the end of the stream completes, with the events about them. `at_once`: as of `advance`."""
        yield from self._about(self._closed(), at_once=at_once)
        if self._groups is not None:
            yield from self._groups.close()

    def _about(self, parts: Iterator[MatchBatch], *, at_once: bool) -> Iterator[tuple[MatchBatch, History]]:
        found = self.evaluator.at_once(parts) if at_once else parts
        if self._folding is not None:
            found = self._folding.fold(found, self.past.of)
        for matches in found:
            if not len(matches):
                continue
            if self._groups is None:
                yield matches, self.past.of(matches)
            else:
                self._groups.add(matches, self.past.of(matches))

    def _closed(self) -> Iterator[MatchBatch]:
        """The matches that the end of the stream completes; no key is silent for longer."""
        self.hush(self.time)
        return self.evaluator.close()

    def held(self, outside: Parts = MappingProxyType({}), ignored: Iterable[Any] = ()) -> Memory:
        """The bytes that it holds in memory, and those held `outside`, but for objects reached from `ignored`."""
        ranking = None if self.ordering is None else self.ordering.ranking
        buffers = [] if ranking is None else ranking.arrays
        own: Parts = {"events": [self.past], "waiting": [self._groups], "buffers": buffers}
        return self.measured(own, outside, [*ignored, self.lowered], len(self.past))

    def batch(self, events: EventBatch) -> EngineBatch:
        """The events as the engine takes them."""
        self.make_room()
        self.time = int(events.times[-1])
        places = self.coordinate.of(events)
        keys = None if self.partition is None else self.partition.keys(events, places)
        return EngineBatch(events, events.positions, places, keys)

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values, with the events that matches to come may name."""
        self.past.sift(self)
        return super().snapshot() | {
            "coordinate": (self.coordinate.last, self.coordinate.kind),
            "reached": self.reached,
            "history": self.past.snapshot(),
            "lasts": self.past.lasts,
            "folding": None if self._folding is None else self._folding.kinds,
            **({} if self._groups is None else {"groups": self._groups.snapshot()}),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on at the place of `snapshot`, of the same query, before the first event."""
        self.restore_engine(state, open_evaluator(self.program, state["engine"]))
        self.coordinate.last, self.coordinate.kind = state["coordinate"]
        expect(self.coordinate.kind in (None, "i", "f"), "a kind of number")
        self.reached = state["reached"]
        if self.reached is not None:
            position, coordinate = self.reached
            expect(type(position) is int and type(coordinate) in (int, float), "a place in the stream")
        self.past.restore(state["history"], state["lasts"])
        if self._folding is not None:
            self._folding.restore(state["folding"])
        if self._groups is not None:
            self._groups.restore(state["groups"])


def _ends_of(parts: list[MatchBatch]) -> np.ndarray:
    """The ends of matches: int64, ascending, each once."""
    ends = np.concatenate([np.zeros(0, np.int64), *(m.end for m in parts)])
    return ends if np.all(ends[1:] > ends[:-1]) else apart(ends)
