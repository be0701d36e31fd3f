"""The common part of the evaluators: the output of a batch's matches, at once or a part at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from spaseq.core.engine.program.matches import MatchBatch, within
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.window import Lows
from spaseq.core.engine.runs.ending import Ending
from spaseq.core.pattern import Batch
from spaseq.core.watch import check


class Pushed(ABC):
    """The evaluation of a `program` batch by batch; subclasses move the runs."""

    def __init__(self, program: Program) -> None:
        self.program: Program = program

    @property
    @abstractmethod
    def last_position(self) -> int | None:
        """The position of the last event; None before the first."""

    def parts(self) -> dict[str, list[Any]]:
        """Its contents, by the parts of `spaseq.core.held.Memory`; all objects that they lead to count."""
        return {"runs": [self]}

    @property
    def eager(self) -> Pushed | None:
        """The evaluator in charge, if it takes events as they come; None while a lazy one is in charge of a choice."""
        return self

    def take_singles(self) -> bool:
        """Single events come next, for `eager`. False if they have to come as batches."""
        return True

    def pass_singles(self, position: int, place: Any) -> None:  # noqa: B027 - only a choice notes them
        """Single events have passed, the last of them at `position` and at this place in the window."""

    def none(self) -> MatchBatch:
        """No match, with the columns of all others."""
        return MatchBatch()

    def push(self, batch: Batch) -> MatchBatch:
        """The matches that `batch` completes, all at once. Raises `BudgetExceeded` at `output_bytes`."""
        return MatchBatch.concat(self.at_once(self.stream(batch)) or [self.none()])

    def at_once(self, parts: Iterable[MatchBatch]) -> list[MatchBatch]:
        """All of the parts. Raises `BudgetExceeded` at `output_bytes`."""
        return list(within(parts, self.program.settings.output_bytes))

    @abstractmethod
    def stream(self, batch: Batch) -> Iterator[MatchBatch]:
        """The matches that `batch` completes, a part at a time. Must be exhausted before the next batch."""

    def count(self, batch: Batch, most: int | None = None) -> int:
        """The number of matches that `batch` completes. Stops soon behind `most`; afterwards no batch can be pushed."""
        return counted(self.stream(batch), most)

    @abstractmethod
    def advance(self, place: int) -> Iterator[MatchBatch]:
        """The matches that only waited for windows which are closed at `place` (`Ending.advance`), a part at a time."""

    def forget(self, numbers: np.ndarray) -> int | None:
        """End the runs of these partitions, whose numbers may be reused from here on. Returns the number of runs, as
        sets of states and of register contents; None if an evaluator keeps them until the window has passed. Matches of
        these partitions that only wait for an absence behind them are sure, and given with the next ones."""
        return None

    @property
    def sure(self) -> np.ndarray:
        """The events of matches that `forget` made sure, and that are not given yet: positions, int64 (n,)."""
        return np.zeros(0, np.int64)

    def nameable(self) -> np.ndarray | None:
        """The events that matches to come may name, between two batches: positions, int64 (n,), each once, with others
        among them. None if an evaluator does not tell them."""
        return None

    @abstractmethod
    def close(self) -> Iterator[MatchBatch]:
        """The matches that the end of the stream completes, a part at a time: those that only waited for their windows
        to close."""


def counted(parts: Iterable[MatchBatch], most: int | None = None) -> int:
    """The number of matches that the parts have together; stops reading at `most`."""
    found = 0
    for part in parts:
        check()
        found += len(part)
        if most is not None and found >= most:
            break
    return found


class Evaluation(Pushed):
    """The runs of one evaluator. All matches leave through `stream`, but those of single events that
    `spaseq.core.engine.runs.single_event` pushes past the batches.

    `lows` finds first live starts, None before the first row; `ending` holds back matches until their windows close.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.lows: Lows | None = None
        self.ending: Ending | None = Ending(program) if program.around.decides else None
        self.midway: bool = False
        """True if events of a batch may have moved runs, and the batch is not done: an error leaves it so."""

    @abstractmethod
    def _complete(self, batch: Batch) -> Iterator[MatchBatch]:
        """The matches that end in `batch`, which is not empty, a part at a time, whatever must not come behind them."""

    @abstractmethod
    def _first_live(self, batch: Batch) -> np.ndarray:
        """The first live start at each row of the batch that `_complete` has done: int64 (n,)."""

    def stream(self, batch: Batch) -> Iterator[MatchBatch]:
        if not len(batch):
            return
        if self.ending is None:
            yield from self._complete(batch)
        else:
            held, budget = self.ending.waiting[0], self.program.settings.output_bytes
            _, *found = within(chain((held,), self._complete(batch)), budget)
            yield from self.ending.push(batch, MatchBatch.concat(found), self._first_live(batch))
        self.midway = False

    def advance(self, place: int) -> Iterator[MatchBatch]:
        return iter(()) if self.ending is None else self.ending.advance(self.lows, place)

    def close(self) -> Iterator[MatchBatch]:
        return iter(()) if self.ending is None else self.ending.close()

    @property
    def sure(self) -> np.ndarray:
        return super().sure if self.ending is None else self.ending.sure

    @property
    def undecided(self) -> int | None:
        """The first event at which a match may end that is not reported yet, as it waits for its window to close."""
        return None if self.ending is None else self.ending.undecided
