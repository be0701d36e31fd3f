"""Evaluate a program over a stream, batch by batch.

`Evaluator` takes batches and gives the matches they complete; any cut of a stream into batches gives the same matches.
It processes a batch in these steps:

1. Evaluate the predicates.
2. Turn their bits into symbol classes, and leave out the events that cannot matter.
3. Compute the window's first live start of each row.
4. Let a `Run` move over the events (`spaseq.core.engine.runs.base`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from spaseq.core.automata.alphabet import Alphabet
from spaseq.core.engine.kernels.drivers import gather_events, moving_rows
from spaseq.core.engine.program.around import Silence
from spaseq.core.engine.program.batch_order import check_order, last_place
from spaseq.core.engine.program.matches import Emit, MatchBatch, label_bits, nodes_of
from spaseq.core.engine.program.needed import Needed
from spaseq.core.engine.program.program import Program, codes_of
from spaseq.core.engine.program.selection import kernel_order, prefers_places
from spaseq.core.engine.program.settings import Selection
from spaseq.core.engine.program.window import Lows
from spaseq.core.engine.runs.base import HandOver, Run
from spaseq.core.engine.runs.chosen import Chooser, OpenRoots
from spaseq.core.engine.runs.coded import GuardRun
from spaseq.core.engine.runs.coded_automaton import compares_all
from spaseq.core.engine.runs.deterministic import DeterministicRun
from spaseq.core.engine.runs.evaluation import Evaluation
from spaseq.core.engine.runs.maximal import MaxRun
from spaseq.core.engine.runs.preferred import PreferredRun
from spaseq.core.engine.runs.row_sets import RegisterRun
from spaseq.core.engine.runs.shape_tables import Shapes
from spaseq.core.engine.runs.shaped import ShapedRun
from spaseq.core.engine.runs.summing import SummingRun
from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import apart
from spaseq.core.jit import attempt_rows
from spaseq.core.pattern import Batch, Predicate
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena, Chunk, TooManyMatches
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.watch import check

_NO_KEYS: Final = np.zeros(0, np.int64)
_FOR_EACH: Final = 8
_FOR_ALL: Final = 512
"""`Run.waiting` may look at `_FOR_EACH` cells for each event of a batch, and at `_FOR_ALL` more."""
_FEW_NODES: Final = 8192
"""`Evaluator.is_full` is False below this number of nodes."""


class Evaluator(Evaluation):
    """One evaluation of a `program`: the runs alive after the events pushed so far.

    `alphabet` numbers the symbol classes, `run` moves the runs, `last` is the place of the last event. `low` is the
    first live start at the last event that moved a run, if that is the same in all partitions, else 0.
    `spaseq.core.engine.runs.single_event` shares them: it pushes events past the columns.
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._arena = Arena(program.settings.arena_bytes)
        self._arena.st[k.LABEL_BITS] = label_bits(program.cea.labels)
        self._arena.starts_only = kernel_order(program) == k.ENDS
        self.alphabet: Alphabet = Alphabet(len(program.cea.predicates))
        self.last: tuple[int, Any] | None = None
        self._batch_lows = np.zeros(0, np.int64)
        self.low: int = 0
        self._handed_over = False
        self._needed = Needed(program.cea)
        self._met = [0, 0]  # the number of symbol classes looked at, and the predicates that held in them
        self.run: Run
        if program.adds_states:
            self.run = SummingRun(program, self._arena)
        elif program.choice.selection is Selection.MAX:
            shaped = program.registers is None and Shapes.applies(program.cea)
            self.run = ShapedRun(program, self._arena) if shaped else MaxRun(program, self._arena)
        elif program.cea.has_registers:
            codes = codes_of(program)
            self.run = RegisterRun(program, self._arena) if codes is None else GuardRun(program, self._arena, codes)
        elif prefers_places(program):
            self.run = PreferredRun(program, self._arena)
        else:
            self.run = DeterministicRun(program, self._arena)
        if self.ending is not None and program.keeps_roots:
            ends_only = program.choice.selection is Selection.ENDS
            self.ending.roots = OpenRoots(self._arena, program.labels_written, ends_only=ends_only)
        if self.ending is not None and program.chosen is not None:
            self.ending.chooser = Chooser(program, self.ending.roots)
        self._compacted = 0  # nodes that were left by the last compaction for roots
        self.silences: dict[Predicate, Silence] = {quiet: Silence(quiet) for quiet in program.around.quiets}
        open_against(self)

    @property
    def last_position(self) -> int | None:
        return None if self.last is None else self.last[0]

    def none(self) -> MatchBatch:
        return self.run.none()

    def _complete(self, batch: Batch) -> Iterator[MatchBatch]:
        return self.collect(partial(self._advance, batch, write=True))

    def _first_live(self, batch: Batch) -> np.ndarray:
        return self._batch_lows

    def collect(self, advance: Callable[[Emit], Iterator[None]]) -> Iterator[MatchBatch]:
        """The matches that `advance` gives to its argument, a buffer at a time."""
        chunks: list[Chunk] = []
        for _ in advance(chunks.append):
            check()
            for chunk in chunks:  # the meaning of their numbers may change with the next
                yield nodes_of(chunk, self.program.labels) if self.program.writes_nodes else self.run.matches(chunk)
            chunks.clear()

    def count(self, batch: Batch, most: int | None = None) -> int:
        """The number of matches that `batch` completes, without listing them. Stops soon behind `most`; afterwards no
        batch can be pushed."""
        if self.ending is not None:
            return super().count(batch, most)
        found = 0

        def emit(chunk: Chunk) -> None:
            nonlocal found
            found += len(chunk.start)

        def take() -> int:
            """The number that kernels counted, which may be too large to add up in int64."""
            counted = int(self._arena.st[k.COUNTED])
            self._arena.st[k.COUNTED] = 0
            return counted

        try:
            for _ in self._advance(batch, emit, write=False):
                check()
                found += take()
                if most is not None and found >= most:
                    break
        except TooManyMatches:
            if most is None:
                raise
            return max(most, found + take())
        return found + take()

    def parts(self) -> dict[str, list[Any]]:
        found, arena = self.run.parts(), self._arena
        if self.lows is not None and self.lows.partitioned:
            found["keys"].append(self.lows)
        found["automaton"].append(self.alphabet)
        buffers = [arena.matches, arena.places, arena.moves, arena.outs, arena.stack, arena.path, arena.heap]
        waiting = [] if self.ending is None else [self.ending.waiting, self.ending.against]
        return {**found, "waiting": waiting, "buffers": buffers, "runs": [self]}

    def number_anew(self) -> None:
        """Write all nodes again from the next event on, as those that were written are lost (`MatchBatch.nodes`)."""
        self._arena.below = self._arena.below[:0]

    @property
    def statistics(self) -> dict[str, int]:
        """Counters for people: bytes of the structure, live nodes, deterministic states, clears, symbol classes.

        `fell_back` is 1 if the deterministic states became too many and sets of states are followed one by one.
        """
        return {
            "arena_bytes": self._arena.memory_usage(),
            "live_nodes": self._arena.live_nodes,
            "symbol_classes": len(self.alphabet.vectors),
            "fell_back": int(self._handed_over and not self.program.cea.has_registers),
            **self.run.statistics,
        }

    def _advance(self, batch: Batch, emit: Emit, write: bool) -> Iterator[None]:
        """Run over `batch`; yields whenever chunks may have been emitted."""
        count = len(batch)
        if not count:
            return
        last = check_order(batch, self.last)
        if self.is_full:
            self.compact()
        classes = self.alphabet.classify(self._truth(batch))  # an event that it refuses has changed nothing
        self.last = last
        self.midway = len(batch) > 1 or self.ending is not None
        self.run.add_classes(self.alphabet.vectors)
        if self.lows is None:
            self.lows = Lows(self.program.window, batch.keys is not None)
        if batch.keys is not None:
            check_partitions(int(batch.keys.max()), self.program.settings.partitions)
        yield from self.move(batch, self._moving(batch, classes), emit, write)

    def compares_all(self) -> bool:
        """True if an event may be compared with all runs, one by one, and a window may have many of them."""
        automaton = self.run.automaton if isinstance(self.run, GuardRun) else None
        return self.program.cea.has_registers and compares_all(self.program, automaton)

    @property
    def is_full(self) -> bool:
        """True if `compact` is due, because there may be many nodes that neither runs nor roots need. This happens if
        windows differ between partitions and roots are kept, which the kernels cannot see while they run. It happens
        without a window, too, if runs end by CONSUME or AFTER MATCH."""
        between = self.run.compacts_between or not self.program.window.is_bounded
        return between and self._arena.live_nodes >= 2 * self._compacted + _FEW_NODES

    def compact(self) -> None:
        """Drops the nodes that neither runs nor roots need. To be called between batches. O(capacity + roots)."""
        self.run.drop_dead()
        lows = np.maximum(self.run.cell_lows(), self.low)
        if self.ending is None or self.ending.roots is None:
            self.run.compact(lows)
        else:
            self.ending.compact(self.run.compact, lows)
        self._compacted = self._arena.live_nodes

    def nameable(self) -> np.ndarray:
        self.compact()
        arena = self._arena
        parts = [arena.positions, arena.cells[:, k.HEAD_MAX], self.run.starts()]
        if self.ending is not None:
            matches, *_ = self.ending.waiting
            parts += [matches.start, matches.end, *([] if self.ending.roots is not None else [matches.positions])]
        return apart(np.concatenate(parts))

    def _truth(self, batch: Batch) -> np.ndarray:
        """The truth of each predicate at each event, or at those at which it may matter: bool (predicates, n)."""
        predicates = self.program.cea.predicates
        if hasattr(batch, "narrowed") and self._needed.applies and self.ending is None and not self.silences:
            waiting = self.run.waiting(self.low, _FOR_EACH * len(batch) + _FOR_ALL)
            if waiting is not None:
                for vector in self.alphabet.vectors[self._met[0] :]:
                    self._met[1] |= vector
                self._met[0] = len(self.alphabet.vectors)
                return self._needed.truth(batch, batch.keys, waiting, self._met[1])
        truth = np.zeros((len(predicates), len(batch)), bool)
        for p, predicate in enumerate(predicates):
            silent = self.silences.get(predicate)
            truth[p] = predicate.evaluate(batch) if silent is None else silent.of(batch)
        return truth

    def move(self, batch: Batch, blocks: Iterable[np.ndarray], emit: Emit, write: bool) -> Iterator[None]:
        """`Run.advance` over blocks of events, and the last of the matches."""
        for events in blocks:
            yield from self._move(batch, events, emit, write)
        yield from self.flush(emit)

    def flush(self, emit: Emit) -> Iterator[None]:
        """Hand over the written matches."""
        self._arena.flush(emit)
        yield

    def _move(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        """`Run.advance`; if the run cannot go on, sets of configurations are followed one by one from there."""
        try:
            yield from self.run.advance(batch, events, emit, write)
        except HandOver as over:
            yield from self.flush(emit)
            following = self._set_by_set()
            following.follow(over.live, self.alphabet.vectors)
            self.run, self._handed_over = following, True
            if over.done < len(events):
                yield from self.run.advance(batch, events[over.done :], emit, write)

    def _set_by_set(self) -> RegisterRun:
        """The run that goes on if another cannot."""
        of_max = self.program.choice.selection is Selection.MAX
        return MaxRun(self.program, self._arena) if of_max else RegisterRun(self.program, self._arena)

    def forget(self, numbers: np.ndarray, low: int | None = None) -> int:
        """As of `Pushed`. `low`: the first live start by now, if it is not that of the last batch."""
        if self.lows is not None:
            self.lows.forget(numbers)
        if self.ending is not None:
            self.ending.forget(numbers)
        for silence in self.silences.values():
            silence.forget(numbers)
        return self.run.forget(numbers, self.low if low is None else low)

    def _moving(self, batch: Batch, classes: np.ndarray) -> Iterator[np.ndarray]:
        """The events of a batch that may move a run, as `run_classes` reads them: int64 (n, EVENT_COLUMNS).

        An array is overwritten by the next.
        """
        assert self.lows is not None
        positions, places = np.asarray(batch.positions, np.int64), self.program.window.places(batch)
        keys = None if batch.keys is None else np.asarray(batch.keys, np.int64)
        given = _NO_KEYS if keys is None else keys
        rows = np.empty(len(classes), np.int64)
        rows = rows[: attempt_rows(moving_rows, len(rows), classes, given, self.run.inert, rows)]
        if self.ending is None:
            lows, keeps = self.lows.of(positions, places, keys, rows)
        else:
            self._batch_lows, keeps = self.lows.of(positions, places, keys)
            lows, keeps = self._batch_lows[rows], keeps[rows]
        before, self.low = self.low, int(keeps[-1]) if len(keeps) else self.low
        if self.program.keeps_roots:  # roots are read behind the batch or later, so their nodes are kept until then
            assert self.ending is not None
            keeps = np.full(len(rows), min(before, self.ending.first_start))
        size = self.run.block
        block = np.empty((min(size, len(rows)), k.EVENT_COLUMNS), np.int64)
        for at in range(0, len(rows), size):
            part = slice(at, at + size)
            events = block[: len(rows[part])]
            attempt_rows(
                gather_events, len(events), rows[part], classes, positions, given, lows[part], keeps[part], events,
            )  # fmt: skip
            self._arena.st[k.ROW] = 0
            yield events

    def snapshot(self) -> dict[str, Any]:
        """The state of the evaluation as plain values and the front end's rows; `restore` goes on from it."""
        named = self.nameable()
        if self.lows is not None and self.program.choice.selection is not Selection.MAX:  # it has starts of rivals, too
            self.lows.keep(named if self.ending is None else np.concatenate([named, self.ending.places]))
        without_nodes = self._arena.starts_only or isinstance(self.run, SummingRun)
        if without_nodes and self.last is not None:  # nodes have the last position else
            self._arena.st[k.LAST_POSITION] = self.last[0]
        run = self.run.snapshot()  # first: it may make nodes
        return {
            "arena": self._arena.snapshot(),
            "alphabet": self.alphabet.vectors,
            "lows": None if self.lows is None else self.lows.snapshot(),
            "partitioned": self.lows is not None and self.lows.partitioned,
            "last": last_place(self.last),
            "run": run,
            "handed_over": self._handed_over,
            "ending": None if self.ending is None else self.ending.snapshot(),
            "silences": [silence.snapshot() for silence in self.silences.values()],
        }

    @staticmethod
    def restore(program: Program, state: dict[str, Any]) -> Evaluator:
        """An evaluator that goes on from `snapshot`, of the same program."""
        evaluator = Evaluator(program)
        evaluator.last = last_place(state["last"])
        evaluator._arena.restore(state["arena"])
        evaluator.alphabet.restore(state["alphabet"], len(program.cea.predicates))
        if state["lows"] is not None:
            evaluator.lows = Lows(program.window, state["partitioned"])
            evaluator.lows.restore(state["lows"], program.settings.partitions)
        last = -1 if evaluator.last is None else evaluator.last[0]
        expect(state["arena"]["last"] <= last, "the structure is as old as the stream")
        restore_ending(evaluator, state["ending"])
        expect(len(state["silences"]) == len(evaluator.silences), "the last event that ended each silence")
        for silence, known in zip(evaluator.silences.values(), state["silences"], strict=True):
            silence.restore(known)
        if state["handed_over"]:
            expect(not isinstance(evaluator.run, SummingRun), "an evaluation that aggregates as it began")
            evaluator._handed_over, evaluator.run = True, evaluator._set_by_set()
        evaluator.run.restore(state["run"], evaluator.alphabet.vectors)
        return evaluator


def open_against(evaluation: Evaluation) -> None:
    """Start the evaluation that finds the matches that are called off (`Ending.against`)."""
    against = evaluation.program.against
    if evaluation.ending is not None and against is not None:
        evaluation.ending.against = Evaluator(against)


def restore_ending(evaluation: Evaluation, state: Any) -> None:
    """Restore the waiting matches of an evaluation from `Ending.snapshot`."""
    if evaluation.ending is None:
        return
    evaluation.ending.restore(state)
    against = evaluation.program.against
    if against is not None:
        evaluation.ending.against = Evaluator.restore(against, state["against"])


def check_partitions(key: int, budget: int) -> None:
    """Raise `BudgetExceeded` if the number of a partition is beyond `Settings.partitions`."""
    if key >= budget:
        hint = "raise partitions, partition by an attribute of fewer values, or give a shorter window in time"
        raise BudgetExceeded("partitions", budget, key + 1, "keys", hint)
