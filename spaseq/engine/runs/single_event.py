"""One event at a time: what a batch does, without arrays for each event.

A `Single` drives the same evaluator that batches are pushed to, between `enter` and `leave`. The caller evaluates the
predicates; here the bits become a symbol class by a dictionary, classes that move nothing end there, and the others are
one call of the kernel on arrays that are kept. Events that move nothing need not be told to the window, but where it
counts the events of each partition (`LowsOfOne`): there `pass_by` is told of them.

What moves goes to the kernel over symbol classes, or to that over registers with a batch of one row that the caller
makes, on arrays that are kept. The first event of a partition, and one at which a kernel stops (for want of room, for
transitions not met yet, for a run beyond it), goes to the evaluator's `move`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from spaseq.engine.kernels.drivers import run_classes
from spaseq.engine.program.matches import MatchBatch
from spaseq.engine.program.window import Lows, LowsOfOne
from spaseq.engine.runs.coded import GuardRun
from spaseq.engine.runs.deterministic import DeterministicRun
from spaseq.engine.runs.evaluator import Evaluator, check_partitions
from spaseq.jit import attempt, interprets
from spaseq.pattern import Batch
from spaseq.tecs.kernels import layout as k

__all__ = ["INERT", "Single"]

INERT: Final = -1


class _Symbols(dict[int, int]):
    """Symbol class by bit vector, `INERT` where it moves nothing; worked out when a vector first occurs."""

    def __init__(self, learn: Callable[[int], int]) -> None:
        self._learn = learn

    def __missing__(self, vector: int) -> int:
        symbol = self[vector] = self._learn(vector)
        return symbol


class Single:
    """The road of single events into `evaluator`.

    `symbols[bits]` is the symbol class of an event or `INERT`. `counts` says whether inert events must be told to
    `pass_by`, `reads` whether what moves is looked at again in its batch.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._run: Any = None
        self._arena = evaluator._arena
        self._state = self._arena.st.data
        self.symbols: _Symbols = _Symbols(self._learn)
        self.reads: bool = True  # unless the run is a `DeterministicRun`
        self.counts: bool = False
        buffer = np.zeros(k.EVENT_COLUMNS, np.int64)
        self._pack = struct.Struct("=6q").pack_into
        self._buffer = buffer.data
        self._event = buffer.reshape(1, k.EVENT_COLUMNS)
        self._arguments: tuple[Any, ...] = ()
        self._kernel: Callable[..., Any] = self._attempted
        self._lows: LowsOfOne
        self._low: Callable[[int, Any, int], int]

    @staticmethod
    def applies(evaluator: Any) -> bool:
        """Whether this road exists: for the compact structure, not where matches wait for what comes behind."""
        return isinstance(evaluator, Evaluator) and evaluator.ending is None

    def enter(self, partitioned: bool) -> None:
        """Take over from batches. O(events of the window) where a window was open."""
        evaluator = self._evaluator
        if evaluator.lows is None:
            evaluator.lows = Lows(evaluator.program.window, partitioned)
        self._take_run()
        self._lows = LowsOfOne(evaluator.lows, evaluator.last is not None and isinstance(evaluator.last[1], float))
        self._low = self._lows.of
        self.counts = self._lows.by_key

    def leave(self, position: int, time: Any) -> None:
        """Hand over to batches, the last event being at `position` and `time`."""
        self._evaluator.last = (position, time)
        self._evaluator.low = int(self._event[0, k.E_KEEP])
        self._lows.close()

    def pass_by(self, position: int, key: int) -> None:
        """An inert event of partition `key` in a window of events by partition."""
        self._low(position, 0, key)

    def forget(self, numbers: np.ndarray) -> int:
        """`Evaluator.forget`."""
        self._lows.forget(numbers)
        return self._evaluator.forget(numbers, int(self._event[0, k.E_KEEP]))

    def push(self, symbol: int, position: int, time: Any, key: int, batch: Callable[[], Batch]) -> list[MatchBatch]:
        """The matches that an event completes. `time` is what the window is measured in, `key` its partition or 0."""
        run = self._run
        low = self._low(position, time, key)
        self._pack(self._buffer, 0, 0, symbol, position, key, low, 0 if self.counts else low)
        state = self._state
        state[k.ROW] = 0
        if key >= run.partitions:
            check_partitions(key, self._evaluator.program.settings.partitions)
            return self._moved(batch())
        if self.reads:
            one = batch()
            if type(run) is not GuardRun or not run.step(one, self._event, self._arguments):
                return self._moved(one)
        elif self._kernel(*self._arguments) != k.DONE:
            return self._moved(batch())
        if run.own_windows:
            run.lows[key] = low
        return self._flushed() if state[k.MATCHES] else []

    def _moved(self, batch: Batch) -> list[MatchBatch]:
        """As a batch of one row: what has registers, the first event of a partition, whose cells must be made, and
        where the kernel stopped for want of room or of transitions."""
        evaluator = self._evaluator
        found = evaluator.at_once(evaluator.collect(partial(evaluator.move, batch, (self._event,), write=True)))
        self._take_run()
        return found

    def _flushed(self) -> list[MatchBatch]:
        found = self._evaluator.at_once(self._evaluator.collect(self._evaluator.flush))
        self._arrange()  # a full buffer was handed over
        return found

    def _take_run(self) -> None:
        """The evaluator's run, which may be another one now."""
        self._run = self._evaluator.run
        self.reads = type(self._run) is not DeterministicRun
        self._refresh()

    def _refresh(self) -> None:
        """Room for what may move, on arrays that may have been replaced: by growth, by new transitions or classes, or
        by batches."""
        if not self.reads:
            self._run.fit()
            self._run.add_moves()
            self._kernel = self._attempted if interprets(run_classes) else run_classes.compiled
        self._arrange()

    def _arrange(self) -> None:
        """The arguments of the kernel."""
        if not self.reads:
            self._arguments = self._run.arguments(self._event, True)
        elif type(self._run) is GuardRun and self._run.partitions:  # before the first, it has not all arrays
            self._arguments = self._run.arguments(True)

    def _attempted(self, *arguments: Any) -> Any:
        """The kernel while it is interpreted."""
        status = attempt(run_classes, *arguments)
        if not interprets(run_classes):
            self._kernel = run_classes.compiled
        return status

    def _learn(self, vector: int) -> int:
        """The class of a vector that did not occur since `enter`."""
        evaluator = self._evaluator
        count = len(evaluator.program.cea.predicates)
        truth = np.array([bool(vector >> p & 1) for p in range(count)], bool).reshape(count, 1)
        symbol = int(evaluator.alphabet.classify(truth)[0])
        self._run.add_classes(evaluator.alphabet.vectors)
        self._refresh()
        return INERT if self._run.inert[symbol] else symbol
