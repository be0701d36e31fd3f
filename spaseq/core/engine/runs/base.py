"""The common part of the runs, the evaluations over the compact structure, and the change from one to another.

A `Run` moves the live runs of an automaton over the events that may move any. There is one for each kind of automaton:
`DeterministicRun` without registers, `GuardRun` if guards are operations on codes. `RegisterRun` is for the others, and
for all automata if a state is not enough. `MaxRun` and `PreferredRun` are for selections.

`DeterministicRun` and `GuardRun` may come upon an event that is beyond them. They stop in front of it by `HandOver`,
and `RegisterRun` goes on from `LiveSets`, the runs that are alive then. The structure stays as it is, and so does every
cell; only the sets of a cell's runs get another form. Snapshots hold the same `LiveSets`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from spaseq.core.automata.determinise import Stepper
from spaseq.core.engine.program.matches import Emit, MatchBatch, matches_of, no_matches
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.program.selection import AFTER, CONSUME, after_rule, kernel_limit, kernel_order
from spaseq.core.integers import apart
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import array, expect
from spaseq.core.tecs import NO_ROOTS, Arena, Chunk
from spaseq.core.tecs.kernels import layout as k

_FEW: Final = 64
"""Up to so many partitions, room is made for twice as many, else for a quarter more."""


def grow(numbers: np.ndarray, size: int) -> np.ndarray:
    """`numbers` if they are that many, else twice as many as that, the new ones 0. One dimension."""
    return numbers if size <= len(numbers) else longer(numbers, 2 * size)


def longer(numbers: np.ndarray, size: int) -> np.ndarray:
    """`numbers`, and zeros behind them, `size` in all. One dimension."""
    return np.concatenate([numbers, np.zeros(size - len(numbers), numbers.dtype)])


@dataclass(frozen=True, slots=True)
class LiveSets:
    """The runs alive between two events: their places in the structure, and the set that the runs of one cell have in
    common.

    `cells`, `keys`, `numbers`: int64 (n,). Cell `cells[i]`, no cell twice, has the runs of partition `keys[i]` that are
    in `sets[numbers[i]]`.

    `sets`, none twice: sets of automaton states, if these and the other contents of the run tell runs apart; else sets
    of configurations, (state, register row). `MaxRun` has configurations of its own.

    `lows`, `floors`: int64 (partitions,), all keys being less than their number. `lows`: the first live start of each
    partition at its last event, if partitions have windows of their own, else 0. `floors`: the first start that CONSUME
    BY PARTITION has left alive. That of CONSUME BY ANY is in the structure.
    """

    cells: np.ndarray
    keys: np.ndarray
    numbers: np.ndarray
    sets: Sequence[Any]
    lows: np.ndarray
    floors: np.ndarray

    @staticmethod
    def of(live: Iterable[tuple[int, int, Any]], lows: np.ndarray, floors: np.ndarray) -> LiveSets:
        """`live`: of each cell its number, its partition and its set."""
        numbers: dict[Any, int] = {}
        rows = [(cell, key, numbers.setdefault(some, len(numbers))) for cell, key, some in live]
        cells, keys, which = np.array(rows, np.int64).reshape(-1, 3).T.copy()
        return LiveSets(cells, keys, which, list(numbers), lows, floors)

    def snapshot(self) -> tuple[Any, ...]:
        """The columns, as plain values if those of `sets` are. O(n)."""
        return self.cells, self.keys, self.numbers, list(self.sets), self.lows, self.floors

    @staticmethod
    def restore(state: tuple[Any, ...], arena: Arena) -> LiveSets:
        """The opposite of `snapshot`, over the same structure. O(n log n). Raises `OptionError` for columns that do not
        fit together. The run checks the elements of `sets`."""
        cells, keys, numbers, sets, lows, floors = state
        floors = array(floors, "floors", low=0)
        lows = array(lows, "windows", low=0, rows=len(floors))
        cells = array(cells, "cells", low=0, high=len(arena.cells) - 1)
        keys = array(keys, "partitions", rows=len(cells), low=0, high=len(floors) - 1)
        numbers = array(numbers, "sets", rows=len(cells), low=0, high=len(sets) - 1)
        expect(len(apart(cells)) == len(cells) and len(set(sets)) == len(sets), "each cell and each set once")
        return LiveSets(cells, keys, numbers, sets, lows, floors)


class HandOver(Exception):
    """A run cannot go on. `live`, in sets of configurations, are the runs alive behind the first `done` of its
    events."""

    def __init__(self, live: LiveSets, done: int) -> None:
        super().__init__("a run hands over")
        self.live: LiveSets = live
        self.done: int = done


class Run(ABC):
    """The live runs of `program` in the structure `arena`; subclasses move them.

    `inert`: bool (classes,), True if events of a symbol class move no run. `partitions`: their number so far; arrays
    have `room` for so many. `floors`, if matches discard runs by partition, and `lows`, with `own_windows`: as in
    `LiveSets`, but with that room. `own_windows`: True if partitions have windows of their own, as those in events are,
    or end by themselves without a window.
    `compacts_between`: True if then dead nodes are dropped only between batches (`Evaluator.compact`).
    """

    reads: ClassVar[bool] = True
    """True if `advance` looks at the events in their batch again, and not at their symbol classes alone."""
    block: ClassVar[int] = 1 << 62
    """So many events `advance` is given at a time."""

    def __init__(self, program: Program, arena: Arena) -> None:
        self.program: Program = program
        self.inert: np.ndarray = np.zeros(0, bool)
        self.own_windows: bool = program.window.per_partition or program.ends_by_key
        self.compacts_between: bool = self.own_windows and program.keeps_roots
        self.partitions: int = 0
        self.room: int = 0
        self.lows: np.ndarray = np.zeros(0, np.int64)
        self.floors: np.ndarray = np.zeros(0, np.int64)
        self._arena = arena
        self._stepper = Stepper(program.cea)
        self._vectors: list[int] = []
        self._order = kernel_order(program)
        self._labels = program.labels_written if program.around.decides else program.labels
        self._limit = kernel_limit(program.choice)
        rule = after_rule(program)
        self._rule: int | None = None if rule is None else AFTER[rule.rule]
        self._consume = CONSUME[program.choice.consume] if rule is None else k.CONSUME_AFTER
        self._has_floors = self._consume not in (k.CONSUME_NONE, k.CONSUME_ANY)
        named = "" if rule is None else rule.variable
        self._takes = np.array([named in label for label in program.cea.labels or [()]], bool)

    @abstractmethod
    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        """Move the runs over `events`, int64 (n, EVENT_COLUMNS), rows of `batch`, from that at `st[ROW]` on.

        Yields whenever matches may have been given to `emit`; `matches` reads them before the next step. Unless
        `write`, they are only counted (`st[COUNTED]`): one event may have more than can be listed. While kernels are
        interpreted `emit` gets them nonetheless, since nothing stops a kernel that counts, and a full buffer does.
        Raises `HandOver` in front of an event that is beyond it, `BudgetExceeded`.
        """

    @property
    @abstractmethod
    def statistics(self) -> dict[str, int]:
        """Counters for people."""

    def parts(self) -> dict[str, list[Any]]:
        """Its contents, except the structure, by the parts of `spaseq.core.held.Memory`: lists and arrays to be
        measured. Objects that none of them leads to count as `runs`."""
        return {"keys": [self.lows, self.floors], "automaton": [self._stepper, self._vectors]}

    def forget(self, numbers: np.ndarray, low: int) -> int:
        """The runs of these partitions end. How many cells had some that began at `low` or later, were not consumed,
        and were in their window. To be called between events."""
        numbers = numbers[numbers < self.partitions]
        if not len(numbers):
            return 0
        alive = np.full(self.partitions, low)
        if self._consume == k.CONSUME_ANY:
            alive = np.maximum(alive, self._arena.st[k.FLOOR])
        found = self._end(numbers, np.maximum(alive, np.maximum(*self._bounds())))
        if self._has_floors:
            self.floors[numbers] = 0
        if self.own_windows:
            self.lows[numbers] = 0
        return found

    @abstractmethod
    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        """Empties all cells of some partitions; how many were alive by `alive`, the first live start of each."""

    @abstractmethod
    def live(self) -> LiveSets:
        """The runs alive between two events. O(cells)."""

    def waiting(self, low: int, most: int) -> list[tuple[frozenset[int], np.ndarray]] | None:
        """The sets of states of the runs that began at `low` or later, and the partitions of these: int64.

        None if a run does not support it, or would look at more than `most` cells. O(cells).
        """
        return None

    def _waiting(self, low: int) -> list[tuple[frozenset[int], np.ndarray]]:
        """`waiting`, if `live` has sets of states."""
        live = self.live()
        held = self._arena.cells[live.cells]
        alive = (held[:, k.HEAD] >= 0) & (held[:, k.HEAD_MAX] >= low)
        numbers, keys = live.numbers[alive], live.keys[alive]
        return [(live.sets[number], keys[numbers == number]) for number in apart(numbers).tolist()]

    @property
    def reached(self) -> frozenset[int] | None:
        """The states that some run has been in so far; None if they are not recorded."""
        return None

    @property
    def has_rows(self) -> bool:
        """True if matches come with the register rows that they are accepted with."""
        return False

    def none(self) -> MatchBatch:
        """No match, with the columns of `matches`."""
        return no_matches(self.program.labels, [] if self.has_rows else None)

    def matches(self, chunk: Chunk) -> MatchBatch:
        """The matches that were given to `emit` at the last step of `advance`."""
        return matches_of(chunk, self._labels)

    def add_classes(self, vectors: list[int]) -> None:
        """Take note of new symbol classes; `vectors` lists all of them, by number. O(classes * transitions)."""
        fresh = vectors[len(self._vectors) :]
        if fresh:
            self.inert = np.concatenate([self.inert, np.array([self._stepper.inert(v) for v in fresh], bool)])
            self._vectors = list(vectors)

    @property
    def after(self) -> k.After | None:
        """The rule for what a match discards, as kernels read it, until an array grows; None if there is none."""
        if self._rule is None:
            return None
        return self._arena.after(self._rule, self.program.hides_labels, self._takes, self.floors)

    def drop_dead(self, need: int = 0) -> None:
        """Remove the runs of starts that matches have discarded one by one, and make room for `need` such starts. To be
        called between events, or while one asks for room. O(cells + entries)."""
        if self._rule is not None and (need or self._arena.st[k.DEAD_COUNT]):
            live = self.live()
            self._arena.drop_dead(live.cells, live.keys, need)

    def snapshot(self) -> dict[str, Any]:
        """The live runs, as plain values and the front end's; `restore` goes on from it."""
        return {"live": self.live().snapshot()}

    @abstractmethod
    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        """The opposite of `snapshot`, for a run that has seen nothing, over the same structure and symbol classes."""

    # Partitions

    def _admit(self, events: np.ndarray) -> None:
        """Room for the partitions of `events`, of which there is one at least."""
        self.partitions = max(self.partitions, int(events[:, k.E_KEY].max()) + 1)
        if self.partitions <= self.room:
            return
        self.room = self.partitions + (self.partitions if self.partitions < _FEW else self.partitions // 4)
        if self._has_floors:
            self.floors = longer(self.floors, self.room)
        if self.own_windows:
            self.lows = longer(self.lows, self.room)

    def open_partition(self, key: int) -> bool:
        """Gives partition `key`, and all before it, runs of their own, if no array has to grow for that: True if so."""
        return False

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """`LiveSets.lows` and `LiveSets.floors`."""
        none = np.zeros(self.partitions, np.int64)
        lows = self.lows[: self.partitions].copy() if self.own_windows else none
        return lows, self.floors[: self.partitions].copy() if self._has_floors else none

    def _take_bounds(self, live: LiveSets) -> None:
        self.partitions = self.room = len(live.lows)
        if self._has_floors:
            self.floors = live.floors
        if self.own_windows:
            self.lows = live.lows

    def _note_lows(self, events: np.ndarray) -> None:
        """The events before `st[ROW]` are done."""
        if self.own_windows:
            done = events[: int(self._arena.st[k.ROW])]
            self.lows[done[:, k.E_KEY]] = done[:, k.E_LOW]  # the last row of a key wins

    def _run_kernel(self, kernel: Callable[[], int], emit: Emit, events: np.ndarray) -> int:
        """`Arena.run`, for a kernel that goes over `events` from `st[ROW]` on."""

        def compact() -> None:
            self._note_lows(events)
            self.compact(self.cell_lows())

        compacts = self.own_windows and not self.compacts_between
        while True:
            status = self._arena.run(kernel, emit, compact if compacts else None)
            if status != k.GROW_DEAD:
                return status
            self.drop_dead(int(self._arena.st[k.NEEDED]))

    def compact(self, lows: np.ndarray, roots: np.ndarray = NO_ROOTS) -> None:
        """`Arena.compact`, which keeps the nodes that runs lead to. `lows`: as of `cell_lows`."""
        self._arena.compact(lows, roots)

    def starts(self) -> np.ndarray:
        """Starts of runs that neither nodes nor cells show."""
        return np.zeros(0, np.int64)

    def cell_lows(self) -> np.ndarray:
        """The first live start of each cell of the arena, by its partition: int64 (cells,)."""
        live, lows = self.live(), np.zeros(len(self._arena.cells), np.int64)
        lows[live.cells] = np.maximum(live.lows, live.floors)[live.keys]
        return np.maximum(lows, self._arena.st[k.FLOOR]) if self._consume == k.CONSUME_ANY else lows
