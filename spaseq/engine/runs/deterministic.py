"""The run of an automaton without registers: deterministic states made when first reached, and one kernel over them.

A pattern may have more deterministic states alive at one time than `Settings.automaton_bytes` holds. Then the run gives
up by `Exploded`, between two events, and `spaseq.engine.runs.fallback` says how the evaluation goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spaseq.automata.determinise import Cache
from spaseq.engine.kernels.drivers import run_classes
from spaseq.engine.program.matches import Emit, MatchBatch, matches_of, no_matches
from spaseq.engine.program.program import Program
from spaseq.engine.program.selection import CONSUME, kernel_limit, kernel_order
from spaseq.engine.program.settings import Batch
from spaseq.errors import BudgetExceeded
from spaseq.jit import attempt_events
from spaseq.snapshot import array, expect
from spaseq.tecs import Arena, Chunk
from spaseq.tecs.kernels import layout as k

__all__ = ["DeterministicRun", "Exploded"]


class Exploded(Exception):
    """The live deterministic states alone exceed their budget. `states`: what each stands for, by number."""

    def __init__(self, states: list[frozenset[int]]) -> None:
        super().__init__("too many live deterministic states")
        self.states = states


class DeterministicRun:
    """An automaton without registers: lazy determinisation and the kernel over symbol classes.

    Cell `key * width + state` holds the runs of deterministic state `state` in partition `key`.
    """

    def __init__(self, program: Program, arena: Arena) -> None:
        self._arena = arena
        self._labels = program.labels
        self._cache = Cache(program.cea, program.settings.automaton_bytes)
        self._order = kernel_order(program)
        self._limit = kernel_limit(program.choice)
        self._consume = CONSUME[program.choice.consume]
        self.floors = np.zeros(0, np.int64)
        self.width = 4
        self.keys = 0
        self.key_lows = np.zeros(0, np.int64) if program.window.counts_events else None
        self.inert = np.zeros(0, bool)

    @property
    def statistics(self) -> dict[str, int]:
        return {"deterministic_states": len(self._cache), "automaton_bytes": self._cache.memory_usage(),
                "automaton_clears": self._cache.clears}  # fmt: skip

    def none(self) -> MatchBatch:
        return no_matches(self._labels)

    def matches(self, chunk: Chunk) -> MatchBatch:
        return matches_of(chunk, self._labels)

    def add_classes(self, vectors: list[int]) -> None:
        if len(vectors) > len(self.inert):
            self._cache.add_classes(vectors)
            self.inert = np.concatenate([self.inert, self._cache.inert(vectors[len(self.inert) :])])

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        arena = self._arena
        keys = events[:, k.E_KEY]
        self.keys = max(self.keys, int(keys.max()) + 1)
        if len(self.floors) < self.keys:
            self.floors = np.concatenate([self.floors, np.zeros(2 * self.keys - len(self.floors), np.int64)])
        self.fit()
        arena.st[k.ROW] = 0
        key_lows = self._grown_key_lows()

        def cell_lows() -> np.ndarray:
            assert key_lows is not None
            done = int(arena.st[k.ROW])
            key_lows[keys[:done]] = events[:done, k.E_LOW]  # the last row of a key wins
            return np.repeat(key_lows, self.width)

        while True:
            self.add_moves()

            def kernel() -> int:
                arguments = self.arguments(events, write)
                if not write:  # an event may have more matches than can be counted by interpreting
                    return int(run_classes(*arguments))
                return attempt_events(run_classes, arena.st, k.ROW, k.DONE, *arguments)

            status = arena.run(kernel, emit, None if key_lows is None else cell_lows)
            yield
            if status == k.DONE:
                if key_lows is not None:
                    key_lows[keys] = events[:, k.E_LOW]
                return
            if status == k.NEED_STATES:
                self.learn()
                self.fit()

    def add_moves(self) -> None:
        """Room for what any event may move."""
        tables = self._cache.tables()
        ways = np.diff(tables.init_from) + np.diff(tables.affected_from)
        self._arena.add_moves(int(ways.max(initial=0)))

    def arguments(self, events: np.ndarray, write: bool) -> tuple[Any, ...]:
        """Those of `run_classes`, until an array grows or there are new transitions."""
        arena = self._arena
        return (
            events, self.width, arena.nodes, arena.cells, arena.entries, arena.st, arena.checks, *self._cache.tables(),
            self.floors, *arena.buffers(self._order, self._limit), write, self._order, self._limit, self._consume,
        )  # fmt: skip

    def _grown_key_lows(self) -> np.ndarray | None:
        """The first live start of every partition seen so far, where partitions have windows of their own."""
        if self.key_lows is not None and len(self.key_lows) < self.keys:
            extra = np.zeros(2 * self.keys - len(self.key_lows), np.int64)
            self.key_lows = np.concatenate([self.key_lows, extra])
        return None if self.key_lows is None else self.key_lows[: self.keys]

    def fit(self) -> None:
        """Cells for every partition and deterministic state."""
        width = self.width
        while width < len(self._cache):
            width *= 2
        if width != self.width:
            self._relocate(width, {s: s for s in range(self.width)})
        self._arena.add_cells(self.keys * self.width)

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

    def _live(self) -> list[int]:
        heads = self._arena.cells[:, k.HEAD].reshape(-1, self.width)
        return [int(s) for s in np.flatnonzero((heads >= 0).any(axis=0))]

    def learn(self) -> None:
        """Give the states that became active their transitions; forget the others where the budget is spent.

        Raises `Exploded` where that is not enough.
        """
        self._cache.learn(self._live())
        if self._cache.over_budget:
            width, states = self.width, self._cache.states
            try:
                renumbered = self._cache.clear(self._live())
            except BudgetExceeded:
                raise Exploded(states) from None
            while width < len(self._cache):
                width *= 2
            self._relocate(width, renumbered)
        self._arena.st[k.UNKNOWN_STATE] = 0

    def snapshot(self) -> dict[str, Any]:
        return {"states": self._cache.snapshot(), "width": self.width, "keys": self.keys,
                "key_lows": self.key_lows, "floors": self.floors}  # fmt: skip

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        self.width, self.keys, lows = state["width"], state["keys"], state["key_lows"]
        self.floors = array(state["floors"], "floors", low=0)
        expect((lows is None) == (self.key_lows is None), "windows of the query's kind")
        self.key_lows = None if lows is None else array(lows, "windows", low=0)
        self.add_classes(vectors)
        self._cache.restore(state["states"])
        cells, width = len(self._arena.cells), self.width
        expect(width >= max(4, len(self._cache)) and width & (width - 1) == 0, "a cell for each state")
        expect(cells % width == 0 and 0 <= self.keys * width <= cells, "a cell for each partition")
        live = self._live()
        expect(max(live, default=-1) < len(self._cache), "states that are known")
        self._cache.learn(live)
