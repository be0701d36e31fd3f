"""The run of an automaton without registers: deterministic states made when first reached, and one kernel over them.
`ClassRun` is the common part with the other runs over symbol classes.

A pattern may have more deterministic states alive at one time than `Settings.automaton_bytes` holds, or make new ones
all the time (`Cache.pays`). Then it hands over: the next set of each live set of states is computed at every event, and
no table of it is kept.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final

import numpy as np

from spaseq.core.automata.determinise import Cache
from spaseq.core.engine.kernels.drivers import run_classes
from spaseq.core.engine.program.matches import Emit
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.runs.base import HandOver, LiveSets, Run
from spaseq.core.engine.runs.row_sets import registers_of
from spaseq.core.errors import BudgetExceeded
from spaseq.core.jit import Bound, Kernel, attempt_events, attempt_rows, interprets
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.structure import clear_cells

_LOG: Final = logging.getLogger("spaseq.core.engine")


class ClassRun(Run):
    """A run whose events are symbol classes alone, so that single events need no batch.

    `kernel` goes over events; its other arguments are `arguments`.
    """

    reads: ClassVar[bool] = False
    kernel: Kernel

    @abstractmethod
    def arguments(self, write: bool) -> tuple[Any, ...]:
        """Those of `kernel` behind the events, until an array grows or there are new steps."""

    @abstractmethod
    def fit(self) -> None:
        """Make room for the cells of every partition, and for the moves of any event."""

    @abstractmethod
    def _provide(self, status: int, events: np.ndarray) -> None:
        """Make room, or compute the steps, that the kernel's `status` asks for."""

    @abstractmethod
    def _sets(self) -> list[frozenset[int]] | None:
        """The sets of states that some run has been in; None if some of them are forgotten."""

    @property
    def reached(self) -> frozenset[int] | None:
        sets = self._sets()
        return None if sets is None else frozenset().union(*sets)

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        arena = self._arena
        self._admit(events)

        def kernel() -> int:
            writes = write or interprets(self.kernel)  # see `base.Run.advance`
            return attempt_events(self.kernel, arena.st, k.ROW, k.DONE, events, *self.arguments(writes))

        while True:
            self.fit()
            status = self._run_kernel(kernel, emit, events)
            yield
            if status == k.FLUSH:
                continue
            self._note_lows(events)
            if status == k.DONE:
                return
            self._provide(status, events)


class DeterministicRun(ClassRun):
    """An automaton without registers: lazy determinisation and the kernel over symbol classes.

    Cell `key * width + state` holds the runs of deterministic state `state` in partition `key`.
    """

    block: ClassVar[int] = 1 << 15
    """PERF: so many stay in the cache; Q1 of benchmarks/cel_figures.py, table2: 43.7 ms, 47.5 in one."""

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        self._cache = Cache(program.cea, program.settings.automaton_bytes, greedy=self._order == k.EARLIEST)
        self.kernel: Kernel = Bound(run_classes)
        self.width: int = 1

    @property
    def statistics(self) -> dict[str, int]:
        return {"deterministic_states": len(self._cache), "automaton_bytes": self._cache.memory_usage(),
                "automaton_clears": self._cache.clears}  # fmt: skip

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        keys = [self._arena.cells] if self.partitions > 1 else []
        return found | {"keys": found["keys"] + keys, "automaton": [*found["automaton"], self._cache]}

    def _sets(self) -> list[frozenset[int]] | None:
        if self._cache.clears:
            return None
        return [self._cache.states[i] for i in {*self._cache.learnt, *self._active()}]

    def add_classes(self, vectors: list[int]) -> None:
        super().add_classes(vectors)
        self._cache.add_classes(vectors)

    def arguments(self, write: bool) -> tuple[Any, ...]:
        arena, output = self._arena, self._arena.output(self._order, self._limit, write)
        return arena.structure, self._cache.tables(), self.width, self.floors, self._consume, *output, self.after

    def fit(self) -> None:
        """A cell for every partition and deterministic state.

        PERF: if partitions come one by one, each that finds no room makes an eighth more. 20,000 keys, each pushed
        alone, took 1,430 us a key when each made its own room, and take 200 (2026-11-27, a busy machine).
        """
        tables = self._cache.tables()
        ways = np.diff(tables.init_from) + np.diff(tables.affected_from)
        self._arena.add_moves(int(ways.max(initial=0)))
        width = self.width
        while width < len(self._cache):
            width *= 2
        if width != self.width:
            self._relocate(width, {s: s for s in range(self.width)})
        cells = self._arena.cells
        if len(cells) < self.partitions * self.width:
            room = len(cells) // self.width
            self._arena.add_cells(max(self.partitions, room + room // 8) * self.width)

    def open_partition(self, key: int) -> bool:
        """As of `Run`.

        PERF: without it each new key that is pushed alone is a batch of its own. 20,000 of them took 113 to 129 us
        each and take 15 to 22 (2026-11-28, a busy machine).
        """
        if key >= min(len(self._arena.cells) // self.width, self.room):
            return False
        self.partitions = max(self.partitions, key + 1)
        return True

    def _relocate(self, width: int, renumbered: dict[int, int]) -> None:
        """Move the cells to a layout of `width` states a partition, under new state numbers."""
        arena, old = self._arena, self.width
        cells = arena.cells.reshape(-1, old, 5)
        arena.cells = np.zeros((0, 5), np.int64)
        self.width = width
        arena.add_cells(len(cells) * width)
        target = arena.cells.reshape(-1, width, 5)
        before, after = list(renumbered), list(renumbered.values())
        target[:, after] = cells[:, before]

    def _active(self) -> list[int]:
        """The states that some run is in."""
        heads = self._arena.cells[:, k.HEAD].reshape(-1, self.width)
        return [int(s) for s in np.flatnonzero((heads >= 0).any(axis=0))]

    def _provide(self, status: int, events: np.ndarray) -> None:
        """Give the states that became active their transitions; forget the others if the budget is spent.

        Raises `HandOver` if that is not enough, or no longer pays.
        """
        arena, cache = self._arena, self._cache
        arena.st[k.UNKNOWN_STATE] = 0
        active = self._active()
        cache.learn(active)
        position = int(events[max(int(arena.st[k.ROW]), 1) - 1, k.E_POSITION])
        if not cache.pays(len(active), position):
            raise self._without(self.live(), "makes deterministic states that are hardly used, within")
        if cache.over_budget:
            live = self.live()
            try:
                renumbered = cache.clear(active)
            except BudgetExceeded:
                raise self._without(live, "has more live deterministic states than") from None
            self._relocate(self.width, renumbered)

    def _without(self, live: LiveSets, why: str) -> HandOver:
        """The end of this run; the moves of its sets of states are computed at each event from here on."""
        budget = f"{self.program.settings.automaton_bytes:,}"
        message = "the automaton %s automaton_bytes (%s bytes): evaluated set by set from here on, which is slower"
        _LOG.warning(message, why, budget)
        empty = registers_of(self.program).empty
        sets = [frozenset((q, empty) for q in states) for states in live.sets]
        return HandOver(replace(live, sets=sets), int(self._arena.st[k.ROW]))

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        arena = self._arena
        cells = (numbers[:, None] * self.width + np.arange(self.width)).ravel()
        cells = cells[arena.cells[cells, k.HEAD] >= 0]
        found = int(np.count_nonzero(arena.cells[cells, k.HEAD_MAX] >= alive[cells // self.width]))
        attempt_rows(clear_cells, len(cells), arena.cells, arena.entries, arena.st, cells)
        return found

    def waiting(self, low: int, most: int) -> list[tuple[frozenset[int], np.ndarray]] | None:
        return None if len(self._arena.cells) > most else self._waiting(low)

    def live(self) -> LiveSets:
        cells = np.flatnonzero(self._arena.cells[:, k.HEAD] >= 0)
        return LiveSets(cells, *np.divmod(cells, self.width), self._cache.states, *self._bounds())

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        self._take_bounds(live)
        self.add_classes(vectors)
        self._cache.restore(live.sets)
        cells = len(self._arena.cells)
        if self.partitions:
            expect(cells >= self.partitions, "cells for each partition")
            self.width = 1 << (cells // self.partitions).bit_length() - 1  # there is room for fewer than twice as many
        expect(cells % self.width == 0, "a width that grew by doubling")
        active = self._active()
        expect(max(active, default=-1) < len(self._cache), "states that are known")
        self._cache.learn(active)
