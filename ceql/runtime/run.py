"""One evaluation of a query over event batches: what the engine needs besides the pattern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ceql.lowering.lower import Lowered
from ceql.results.history import History, Past
from ceql.runtime.batch import Coordinate, EngineBatch, Partition
from spaseq.events import EventBatch
from spaseq.snapshot import expect

if TYPE_CHECKING:
    from spaseq.engine import MatchBatch, Program
    from spaseq.engine.opening import AnyEvaluator

__all__ = ["Run"]


class Run:
    """The state of one evaluation of a `lowered` query.

    `evaluator` is the engine's, `partition` numbers the keys, `coordinate` says where events are in the window, and
    `past` has the events that matches can still name.
    """

    def __init__(self, lowered: Lowered, program: Program, evaluator: AnyEvaluator | None = None) -> None:
        from spaseq.engine.opening import open_evaluator

        self.lowered = lowered
        self.partition: Partition | None = Partition(lowered.partition, lowered.window) if lowered.partition else None
        self.coordinate: Coordinate = Coordinate(lowered.window_attribute)
        self.evaluator: AnyEvaluator = evaluator if evaluator is not None else open_evaluator(program)
        self.past: Past = Past()
        self._reached: tuple[int, int | float] | None = None

    def advance(self, events: EventBatch, *, at_once: bool = False) -> Iterator[tuple[MatchBatch, History]]:
        """The matches that these events complete, with what they are about. Exhaust it before the next call.

        `at_once`: the caller keeps all of them, so they are under the budget `output_bytes`.
        """
        batch = self.batch(events)
        partitioned = batch.keys is not None
        reached = int(batch.positions[0]), batch.times[0].item()
        if self.lowered.absent is not None:
            # A match waits for its window to close, and is reported with the first events behind that.
            reached, self._reached = self._reached or reached, (int(batch.positions[-1]), batch.times[-1].item())
        self.past.evict(self.lowered.window, partitioned, *reached)
        self.past.append(events, batch.times[-1].item(), batch.keys if self.lowered.window.per_partition else None)
        found = self.evaluator.stream(batch)
        yield from ((m, self.past.of(m)) for m in (self.evaluator.at_once(found) if at_once else found) if len(m))

    def count(self, events: EventBatch, most: int | None = None) -> int:
        """How many matches these events complete. Stops soon behind `most`; then the run can go no further."""
        return self.evaluator.count(self.batch(events), most)

    def ends(self, events: EventBatch | None) -> np.ndarray:
        """The positions of events at which matches end, as far as these events, or None at the end of the stream,
        decide it: int64, ascending, each once. Keeps no events; not to be mixed with `advance`."""
        parts = [self.evaluator.close()] if events is None else list(self.evaluator.stream(self.batch(events)))
        ends = np.concatenate([matches.end for matches in parts]) if parts else np.zeros(0, np.int64)
        return ends if np.all(ends[1:] > ends[:-1]) else np.unique(ends)

    @property
    def undecided(self) -> int | None:
        """The first event of which it is not known yet whether a match ends there; None if there is none."""
        return getattr(self.evaluator, "undecided", None)

    def reach(self, now: int) -> tuple[MatchBatch, History] | None:
        """The matches that wait for nothing but the time `now` (ns), before which no event will come any more."""
        if self.lowered.absent is None or self.lowered.window_attribute is not None:
            return None
        matches = self.evaluator.advance(now)
        return (matches, self.past.of(matches)) if len(matches) else None

    def close(self) -> tuple[MatchBatch, History]:
        """The matches that the end of the stream completes, with the events about them."""
        matches = self.evaluator.close()
        return matches, self.past.of(matches) if len(matches) else History()

    @property
    def valuations(self) -> bool:
        """Whether matches are valuations."""
        return self.evaluator.program.labels is not None

    @property
    def statistics(self) -> dict[str, int]:
        keys = {} if self.partition is None else {"keys": len(self.partition.numbers)}
        return self.evaluator.statistics | keys

    def explain(self) -> str:
        """Who evaluates, and what was counted, as text."""
        from spaseq.engine.opening import explain_evaluator

        return explain_evaluator(self.evaluator)

    def batch(self, events: EventBatch) -> EngineBatch:
        """The events as the engine takes them."""
        places = self.coordinate.of(events)
        keys = None if self.partition is None else self.partition.keys(events, places)
        return EngineBatch(events, events.positions, places, keys)

    def snapshot(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "engine": self.evaluator.snapshot(),
            "partition": None if self.partition is None else self.partition.numbers.snapshot(),
            "coordinate": (self.coordinate.last, self.coordinate.kind),
            "reached": self._reached,
            "history": self.past.snapshot(),
            "lasts": self.past.lasts,
        }

    @staticmethod
    def restore(lowered: Lowered, program: Program, state: dict[str, Any]) -> Run:
        """A run that goes on where `snapshot` was taken, of the same query."""
        from spaseq.engine import restore_evaluator

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
        return run
