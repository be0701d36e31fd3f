"""One event at a time: the steps of a batch, without arrays for each event.

A `Single` drives the same evaluator that batches are pushed to, between `enter` and `leave`. The caller evaluates the
predicates. A dictionary turns their bits into a symbol class. Classes that move nothing end there, and the others are
one call of the kernel on arrays that are kept. The window needs to see inert events only if it counts the events of
each partition (`LowsOfOne`); then the caller passes them to `pass_by`.

Other events go to the kernel over symbol classes, or to that over registers with a batch of one row that the caller
makes, on arrays that are kept. Two kinds of events go to the evaluator's `move`: those that begin a partition without
room (`Run.open_partition`), and those at which a kernel stops. A kernel stops if it lacks room or transitions, or if a
run is beyond it.

`SingleAround` is the same for matches that events around them decide about (NOT at the start or the end).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from spaseq.core.engine.program.matches import MatchBatch, within
from spaseq.core.engine.program.window import Lows, LowsOfOne
from spaseq.core.engine.runs.beginning import BeginningOfOne
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.engine.runs.evaluator import Evaluator, check_partitions
from spaseq.core.engine.runs.waiting import WaitingOnes
from spaseq.core.errors import InternalError
from spaseq.core.jit import attempt, interprets
from spaseq.core.pattern import Batch, Predicate
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.layout import NEVER

INERT: Final = -1
_SILENCES: Final = 4
"""The most silences of one query on this road: an event has 2ⁿ meanings for n of them."""


class _Symbols(dict[int, int]):
    """Symbol class by bit vector, `INERT` if it moves nothing; computed when a vector first occurs."""

    def __init__(self, learn: Callable[[int], int]) -> None:
        self._learn = learn

    def __missing__(self, vector: int) -> int:
        symbol = self[vector] = self._learn(vector)
        return symbol


class Single:
    """The road of single events into `evaluator`.

    `symbols[bits]` is the symbol class of an event or `INERT`; the bits are those of `predicates`. `counts` says
    whether inert events must be told to `pass_by`, `reads` whether what moves is looked at again in its batch.
    """

    least: Final = 0
    """`pass_by` needs only the events of partitions from this number on; -1: also those of no partition."""
    undecided: Final = None
    """As of `Evaluation`."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self.predicates: tuple[Predicate, ...] = evaluator.program.cea.predicates
        self._run: Any = None
        self._arena = evaluator._arena
        self._state = self._arena.st.data
        self.symbols: _Symbols = _Symbols(self._learn)
        self.reads: bool = True  # as of the run
        self.counts: bool = False
        buffer = np.zeros(k.EVENT_COLUMNS, np.int64)
        self._pack = struct.Struct("=6q").pack_into
        self._buffer = buffer.data
        self._event = buffer.reshape(1, k.EVENT_COLUMNS)
        self._arguments: tuple[Any, ...] = ()
        self._kernel: Callable[..., Any] = self._attempt
        self._lows: LowsOfOne
        self._low: Callable[[int, Any, int], int]

    @staticmethod
    def applies(evaluator: Any) -> bool:
        """True if this road exists: for the compact structure, unless events around a match decide about it."""
        return isinstance(evaluator, Evaluator) and evaluator.ending is None and not evaluator.silences

    def leads_to(self, evaluator: Any) -> bool:
        """True if single events go to this evaluator."""
        return self._evaluator is evaluator

    def enter(self, partitioned: bool) -> None:
        """Take over from batches. O(events of the window) if a window was open."""
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

    def pass_by(self, position: int, time: Any, key: int) -> list[MatchBatch]:
        """An inert event of partition `key` in a window of events by partition, which completes nothing."""
        self.tell(position, time, key)
        return []

    def tell(self, position: int, time: Any, key: int) -> int:
        """The first live start at an event that is not pushed."""
        return self._low(position, time, key)

    def forget(self, numbers: np.ndarray) -> int:
        """`Evaluator.forget`."""
        self._lows.forget(numbers)
        return self._evaluator.forget(numbers, int(self._event[0, k.E_KEEP]))

    def push(
        self, symbol: int, position: int, time: Any, key: int, batch: Callable[[], Batch], low: int | None = None,
        kept: int | None = None,
    ) -> list[MatchBatch]:  # fmt: skip
        """The matches that an event completes. `time` is its place in the window, `key` its partition or 0. `low` is
        the result of `tell` for this event, if that was called. `kept`: a start from which on nodes are kept, if it is
        less."""
        run = self._run
        if low is None:
            low = self._low(position, time, key)
        keep = low if kept is None or kept > low else kept
        self._pack(self._buffer, 0, 0, symbol, position, key, low, 0 if self.counts else keep)
        state = self._state
        state[k.ROW] = 0
        if key >= run.partitions:
            check_partitions(key, self._evaluator.program.settings.partitions)
            if not run.open_partition(key):
                return self._move(batch())
        if self.reads:
            one = batch()
            if type(run) is not GuardRun or not run.step(one, self._event, self._kernel, self._arguments):
                return self._move(one)
        elif self._kernel(self._event, *self._arguments) != k.DONE:
            return self._move(batch())
        if run.own_windows:
            run.lows[key] = low
        return self._flush() if state[k.MATCHES] else []

    def _move(self, batch: Batch) -> list[MatchBatch]:
        """Push the event as a batch of one row.

        This is the road for automata with registers, and for the first event of a partition, whose cells must be made.
        It is also the road for events at which the kernel stopped for lack of room or of transitions.
        """
        evaluator = self._evaluator
        try:
            return evaluator.at_once(evaluator.collect(partial(evaluator.move, batch, (self._event,), write=True)))
        finally:  # a condition may refuse the event, after the evaluator has another run
            self._take_run()

    def _flush(self) -> list[MatchBatch]:
        buffer = self._arena.matches
        found = self._evaluator.at_once(self._evaluator.collect(self._evaluator.flush))
        if self._arena.matches is not buffer:  # it was full, and was handed over
            self._arrange()
        return found

    def _take_run(self) -> None:
        """The evaluator's run, which may be another one now."""
        self._run = self._evaluator.run
        self.reads = self._run.reads
        self.refresh()

    def refresh(self) -> None:
        """Make room for the moves of an event, on arrays that may have been replaced: by growth, by new transitions or
        classes, or by batches."""
        if not self.reads:
            self._run.fit()
        self._kernel = self._attempt
        self._arrange()

    def _arrange(self) -> None:
        """The arguments of the kernel."""
        if not self.reads or (type(self._run) is GuardRun and self._run.partitions):  # before, it has not all arrays
            self._arguments = self._run.arguments(True)

    def _attempt(self, *arguments: Any) -> Any:
        """The kernel while it is interpreted, and once more."""
        kernel = self._run.kernel
        status = attempt(kernel, *arguments)
        if not interprets(kernel):
            self._kernel = kernel.compiled
        return status

    def _learn(self, vector: int) -> int:
        """The class of a vector that did not occur since `enter`."""
        evaluator = self._evaluator
        count = len(evaluator.program.cea.predicates)
        truth = np.array([bool(vector >> p & 1) for p in range(count)], bool).reshape(count, 1)
        symbol = int(evaluator.alphabet.classify(truth)[0])
        self._run.add_classes(evaluator.alphabet.vectors)
        self.refresh()
        return INERT if self._run.inert[symbol] else symbol


class SingleAround:
    """`Single` for matches that events in front of them or behind them decide about.

    `symbols[bits]` is a number for what an event is to the pattern, to what must not come around a match, and to
    `Ending.against`. The bits are those of `predicates`: the pattern's, what must not come, and those of
    `Program.against`, each once.
    """

    counts: Final = True

    def __init__(self, evaluator: Evaluator) -> None:
        program, ending = evaluator.program, evaluator.ending
        self._evaluator = evaluator
        self._ending = ending
        self._silences = list(evaluator.silences.values())
        self._output_bytes = program.settings.output_bytes
        self._inner = Single(evaluator)
        against = None if ending is None else cast("Evaluator | None", ending.against)
        self._behind = None if against is None else Single(against)
        behind = () if against is None else against.program.cea.predicates
        around = program.around
        quiets = list(evaluator.silences)
        own = tuple(predicate for predicate in program.cea.predicates if predicate not in quiets)
        none = (around.absent, around.before, *(quiet.none for quiet in around.quiets))
        other = (predicate for predicate in none if predicate is not None)
        self.predicates: tuple[Predicate, ...] = tuple(dict.fromkeys((*own, *other, *behind)))
        place: dict[Predicate | None, int] = {predicate: i for i, predicate in enumerate(self.predicates)}
        self._absent, self._before = place.get(around.absent, -1), place.get(around.before, -1)
        self._breaks = [place[quiet.none] for quiet in around.quiets]
        self._own = [~quiets.index(p) if p in quiets else place[p] for p in program.cea.predicates]
        self._other = [place[predicate] for predicate in behind]
        self._meanings: list[_Meaning] = []
        self.symbols: _Symbols = _Symbols(self._learn)
        self.least: int = 0
        self._waiting: WaitingOnes | None = None  # these three are set between `enter` and `leave`
        self._beginning: BeginningOfOne | None = None
        self._ends: LowsOfOne | None = None

    @property
    def reads(self) -> bool:
        """As of `Single`; of the pattern's events or those behind it."""
        return self._inner.reads or (self._behind is not None and self._behind.reads)

    @staticmethod
    def applies(evaluator: Any) -> bool:
        """True if this road exists: for the compact structure. Not if keys are forgotten after a pause, if a choice
        waits for the windows of several matches to close, if alternatives differ, or of many silences."""
        if not isinstance(evaluator, Evaluator) or (evaluator.ending is None and not evaluator.silences):
            return False
        program = evaluator.program
        around = program.around
        if around.marked or (program.chosen is not None and around.waits) or len(around.quiets) > _SILENCES:
            return False
        return evaluator.program.settings.forget_keys_after is None

    def leads_to(self, evaluator: Any) -> bool:
        """As of `Single`."""
        return self._evaluator is evaluator

    def enter(self, partitioned: bool) -> None:
        """As of `Single`. O(matches that wait) besides."""
        self._inner.enter(partitioned)
        self.least = 0 if self._inner.counts else -1
        if self._behind is not None:
            self._behind.enter(partitioned)
        if self._ending is None:
            return
        self._waiting = WaitingOnes(self._ending, self._evaluator.low)
        if self._ending.beginning is not None:
            self._beginning = BeginningOfOne(self._ending.beginning, self._ending.window)
        if self._ending.end_lows is not None:
            self._ends = LowsOfOne(self._ending.end_lows, decimal=False)

    def leave(self, position: int, time: Any) -> None:
        """As of `Single`. O(matches that wait) besides."""
        self._inner.leave(position, time)
        for state in (self._waiting, self._beginning, self._ends):
            if state is not None:
                state.close()
        if self._behind is not None:
            self._behind.leave(position, time)
        self._waiting = self._beginning = self._ends = None

    def forget(self, numbers: np.ndarray) -> int:
        """Never asked for (`applies`)."""
        raise InternalError("keys are forgotten where matches wait, one event at a time")

    def pass_by(self, position: int, time: Any, key: int) -> list[MatchBatch]:
        """An event that is nothing to the pattern and what must not come; `key` -1 for one of no partition."""
        if self._behind is not None and self._behind.counts:
            self._behind.tell(position, time, key)
        return self._sure(self._inner.tell(position, time, key), position, time, key)

    def push(self, symbol: int, position: int, time: Any, key: int, batch: Callable[[], Batch]) -> list[MatchBatch]:
        """The matches that the event decides. Arguments: those of `Single.push`."""
        meaning = self._meanings[symbol]
        if self._evaluator.is_full:
            self._compact()
        waiting, silent = self._waiting, 0
        low = self._inner.tell(position, time, key)
        decided = self._sure(low, position, time, key)  # before nodes out of the window are given up
        for i, silence in enumerate(self._silences):
            silent |= silence.holds(time, key) << i
        own = meaning.own[silent]
        kept = None if waiting is None else waiting.first_start
        found = [] if own == INERT else self._inner.push(own, position, time, key, batch, low, kept)
        for i in meaning.breaks:
            self._silences[i].note(time, key)
        if waiting is None:
            return found
        if meaning.forbids:
            waiting.forbid(key)
        if self._behind is not None:
            if meaning.other != INERT:
                for matches in self._behind.push(meaning.other, position, time, key, batch):
                    waiting.call_off(matches)
            elif self._behind.counts:
                self._behind.tell(position, time, key)
        high = NEVER
        if self._beginning is not None:
            if meaning.precedes:
                self._beginning.note(position, low, key)
            high = self._beginning.high(low, key) if found else NEVER
        for matches in found:
            decided += self._take(matches, key, low, high)
        return decided

    def _take(self, matches: MatchBatch, key: int, low: int, high: int) -> Iterable[MatchBatch]:
        """The matches that are decided, of those just completed; the others wait."""
        assert self._ending is not None and self._waiting is not None
        if self._evaluator.program.around.absent is None:
            return within(self._ending.started_before(matches, high, low, key), self._output_bytes)
        self._waiting.add(matches, key, low, high)
        return ()

    def _compact(self) -> None:
        if self._waiting is not None:
            self._waiting.close()
        self._evaluator.compact()
        if self._ending is not None:
            self._waiting = WaitingOnes(self._ending, self._evaluator.low)
        self._inner.refresh()

    def _sure(self, low: int, position: int, time: Any, key: int) -> list[MatchBatch]:
        if self._waiting is None:
            return []
        if self._ends is not None:
            low = self._ends.of(position, time, key)
        decided = self._waiting.reach(low, key)
        return list(within(decided, self._output_bytes)) if decided else []

    @property
    def undecided(self) -> int | None:
        """As of `Evaluation`."""
        return None if self._waiting is None else self._waiting.undecided

    def _learn(self, vector: int) -> int:
        meaning = _Meaning(
            own=tuple(
                self._inner.symbols[_choose_bits(vector, self._own, silent)] for silent in range(1 << len(self._breaks))
            ),
            forbids=_fails(vector, self._absent),
            precedes=_fails(vector, self._before),
            breaks=tuple(i for i, place in enumerate(self._breaks) if _fails(vector, place)),
            other=INERT if self._behind is None else self._behind.symbols[_choose_bits(vector, self._other)],
        )
        moves = {meaning.other, *meaning.own} != {INERT}
        if not (moves or meaning.forbids or meaning.precedes or meaning.breaks):
            return INERT
        self._meanings.append(meaning)
        return len(self._meanings) - 1


class _Meaning(NamedTuple):
    """An event to the pattern, for each set of silences that hold (bits); to the matches that wait, to those to come,
    and the silences that it ends; to `Ending.against`."""

    own: tuple[int, ...]
    forbids: bool
    precedes: bool
    breaks: tuple[int, ...]
    other: int


def _fails(vector: int, place: int) -> bool:
    """True if the predicate at `place` is there and false."""
    return place >= 0 and not vector >> place & 1


def _choose_bits(vector: int, places: list[int], silent: int = 0) -> int:
    """The bits of a vector at some places, in their order; those of negative places, `~i`, are of `silent`."""
    bits = (silent >> ~place & 1 if place < 0 else vector >> place & 1 for place in places)
    return sum(bit << i for i, bit in enumerate(bits))
