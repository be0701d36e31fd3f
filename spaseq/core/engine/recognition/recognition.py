"""The state of an evaluation between two events: its evaluator, the numbers of its partitions, the door for single
events. A language adds its own part: from events to rows of the engine, and the contents of its matches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from spaseq.core.engine.program.partitions import Partitions
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.progress import Progress, progress_of
from spaseq.core.held import Memory, Parts, join, measure
from spaseq.core.snapshot import expect

if TYPE_CHECKING:
    from spaseq.core.engine.opening import AnyEvaluator
    from spaseq.core.engine.runs.single_event import Single, SingleAround


class Recognition:
    """An evaluation of `program` in progress.

    `evaluator` moves the runs. `partitions` numbers the keys if there are any (`partitioned`); `pauses` is true if keys
    are forgotten after a pause, `by_key` if each partition needs events of its own. `time` (ns) is that of the last
    event. `door` takes events one by one, without making batches, between `enter` and
    `leave`. A subclass sets `counters` before the first key is forgotten.
    """

    def __init__(self, program: Program, evaluator: AnyEvaluator, *, partitioned: bool) -> None:
        self.program: Program = program
        self.evaluator: AnyEvaluator = evaluator
        self.partitioned: bool = partitioned
        self.partitions: Partitions = Partitions(program.reach, program.settings.forget_keys_after)
        self.pauses: bool = partitioned and self.partitions.pauses
        self.by_key: bool = partitioned and (program.window.per_partition or program.ends_by_key)
        self.counters: Any = None  # of `forgotten_keys`, and of the `lost_runs` that ended with them
        self.time: int | None = None
        self.door: Single | SingleAround | None = None
        self.entered: bool = False

    # Keys

    def reach(self, place: int | float, time: int) -> bool:
        """No event will come before `place`, in the window's measure, nor before `time` (ns). Forgets keys.

        True if keys may have been forgotten: a number that the caller keeps for a key is not to be used again.
        """
        forgot = self.partitions.reach(place, time)
        self.make_room()
        return forgot

    def hush(self, time: int | None) -> None:
        """Ends the runs of the keys that are silent for too long at `time` (ns); None before the first event."""
        if self.pauses and time is not None:
            self.partitions.hush(time)
            self.make_room()

    def make_room(self) -> None:
        """Ends the runs of keys that are forgotten after a pause, and counts them. To be called between events."""
        if self.pauses:
            self.partitions.make_room(self.forget)
            self.counters.forgotten_keys, self.counters.lost_runs = self.partitions.forgotten, self.partitions.lost

    def forget(self, numbers: np.ndarray) -> int | None:
        """Ends the runs of these partitions, as `spaseq.core.engine.runs.evaluation.Pushed.forget` does."""
        return (self.door if self.entered and self.door is not None else self.evaluator).forget(numbers)

    def nameable(self) -> np.ndarray | None:
        """The events that matches to come may name, as of `spaseq.core.engine.runs.evaluation.Pushed`; None also if the
        door is at work."""
        return None if self.entered else self.evaluator.nameable()

    # Single events

    def open_door(self) -> Single | SingleAround | None:
        """The `door`, made anew; None if this evaluator has none, as one that aggregates."""
        if self.program.summed is not None:
            return None
        from spaseq.core.engine.runs.single_event import Single, SingleAround  # loads the kernels

        evaluator: Any = self.evaluator.eager
        kinds = (kind for kind in (Single, SingleAround) if kind.applies(evaluator))
        self.door = next((kind(evaluator) for kind in kinds), None)
        return self.door

    def is_ready(self) -> bool:
        """True if the door leads to the evaluator in charge, which may be another one than before. It is made anew
        then."""
        if self.door is None or not (self.entered or self.evaluator.take_singles()):
            return False
        if not self.door.leads_to(self.evaluator.eager):
            self.open_door()
        return True

    def enter(self) -> bool:
        """Single events from here on, if there is a door; else False."""
        if self.door is not None and not self.entered:
            self.door.enter(self.partitioned)
            self.entered = True
        return self.entered

    def leave(self, last: tuple[int, int | float] | None) -> None:
        """Batches from here on. `last`: the last event's position and window place; None if none since `enter`."""
        if self.entered and self.door is not None and last is not None:
            self.door.leave(*last)
            self.evaluator.pass_singles(*last)
        self.entered = False

    # What it has to tell

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for people: those of the evaluator, and the keys that are held."""
        keys = {"keys": len(self.partitions)} if self.partitioned else {}
        return self.evaluator.statistics | keys

    def progress(self) -> Progress | None:
        """The progress of the evaluation: `progress_of`."""
        return progress_of(self.evaluator)

    def measured(self, own: Parts, outside: Parts, ignored: Iterable[Any], events: int) -> Memory:
        """The bytes that it holds, with those of a language, `own`, and those held `outside`; not the program, nor
        objects that can be reached from `ignored`. `events`: how many are held."""
        ours: Parts = {"keys": [self.partitions], "runs": [self.door], "rest": [self]}
        parts, keys = join(self.evaluator.parts(), ours, own, outside), self.statistics.get("keys", 0)
        return measure(parts, [*ignored, self.program], keys_held=keys, events_held=events)

    def snapshot(self) -> dict[str, Any]:
        """The state between two events, as plain values and those of a front end."""
        self.make_room()
        return {"engine": self.evaluator.snapshot(), "keys": self.partitions.snapshot(), "time": self.time}

    def restore_engine(self, state: dict[str, Any], evaluator: AnyEvaluator) -> None:
        """Takes the state of a snapshot, before the first event. `evaluator` is that of its state "engine"."""
        self.evaluator = evaluator
        self.partitions.restore(state["keys"], self.program.settings.partitions)
        self.time = state["time"]
        expect(self.time is None or type(self.time) is int, "the time of the last event")
