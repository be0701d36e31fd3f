"""The run of selection MAX over an automaton without registers: shapes made when first reached, and one kernel.

The live sets of a partition are a list, and each makes one step an event (`spaseq.core.engine.kernels.rivals`). If an
event may both belong to a run and begin another one, there may be one for each start in the window. Else their number
does not depend on the window.

If shapes are beyond `Settings.automaton_bytes`, those that no run has are forgotten. If that does not help, the run
hands over to `spaseq.core.engine.runs.maximal`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import numpy as np

from spaseq.core.engine.kernels import rivals as r
from spaseq.core.engine.program.matches import Emit
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.runs.base import HandOver, LiveSets, Run
from spaseq.core.engine.runs.maximal import flat, restore_set
from spaseq.core.engine.runs.rivals import Shape
from spaseq.core.engine.runs.row_sets import registers_of
from spaseq.core.engine.runs.shape_tables import Shapes
from spaseq.core.errors import BudgetExceeded
from spaseq.core.integers import in_order
from spaseq.core.jit import Bound, Kernel, attempt_events, attempt_rows, interprets
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.tecs.kernels.structure import clear_cells

_LOG: Final = logging.getLogger("spaseq.core.engine")
_FIRST_SETS: Final = 64
_SHORT: Final = 1_000
"""Positions between two clears of the shapes, below which they do not pay."""


class ShapedRun(Run):
    """The live sets, each with a cell of the arena: runs of one partition and shape with the same starts beside it."""

    reads: ClassVar[bool] = False
    block: ClassVar[int] = 1 << 15

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        self._shapes = Shapes(program.cea, program.window.slides)
        self._empty = registers_of(program).empty
        self._clears, self._cleared = 0, -_SHORT
        self.kernel: Kernel = Bound(r.run_shapes)
        states = program.cea.states
        self._state = np.zeros(r.STATE_SLOTS, np.int64)
        self._state[r.FREE_SET] = k.NIL
        self._state[r.SLIDES] = int(program.window.slides)
        self._sets = np.full((0, r.SET_COLUMNS), k.NIL, np.int64)
        self._starts = np.zeros((0, 1), np.int64)
        self._heads = np.full(1, k.NIL, np.int64)
        self._buckets = np.full(_FIRST_SETS, k.NIL, np.int64)
        self._planned = np.zeros((16, r.PLAN_COLUMNS), np.int64)
        self._latest = np.full((2, states), k.NIL, np.int64)
        self._vector = np.zeros(2 * states, np.int64)
        self._pattern = np.zeros(2 * states, np.int64)

    @property
    def statistics(self) -> dict[str, int]:
        return {"live_runs": int(self._state[r.SETS]), "deterministic_states": len(self._shapes.shapes),
                "automaton_bytes": self._shapes.bytes, "automaton_clears": self._clears}  # fmt: skip

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        keys = [self._heads] if self.partitions > 1 else []
        return {"keys": found["keys"] + keys, "automaton": found["automaton"] + self._shapes.parts()}

    def add_classes(self, vectors: list[int]) -> None:
        super().add_classes(vectors)
        self._shapes.add_classes(vectors)

    def advance(self, batch: Batch, events: np.ndarray, emit: Emit, write: bool) -> Iterator[None]:
        arena = self._arena
        self._admit(events)
        self.fit()

        def kernel() -> int:
            writes = write or interprets(self.kernel)  # see `base.Run.advance`
            return attempt_events(self.kernel, arena.st, k.ROW, k.DONE, events, *self.arguments(writes))

        while True:
            status = self._run_kernel(kernel, emit, events)
            yield
            if status == k.FLUSH:
                continue
            self._note_lows(events)
            match status:
                case k.DONE:
                    return
                case r.NEED_SHAPES:
                    self._shapes.answer(self._state, self._pattern)
                    self._keep_budget(int(events[int(arena.st[k.ROW]), k.E_POSITION]))
                case r.GROW_LIVE:
                    self._make_room(int(arena.st[k.NEEDED]), int(events[int(arena.st[k.ROW]), k.E_LOW]))
                case r.GROW_PLAN:
                    self._planned = np.zeros((2 * len(self._planned), r.PLAN_COLUMNS), np.int64)
            self.fit()

    def add_moves(self) -> None:
        """Make room for as many moves as can be planned."""
        self._arena.add_moves(len(self._planned))

    def arguments(self, write: bool) -> tuple[Any, ...]:
        """Those of `run_shapes` behind the events, until an array grows."""
        arena, output = self._arena, self._arena.output(self._order, self._limit, write)
        live = r.Live(
            self._sets, self._starts, self._heads, self._buckets, self._state, self._planned, self._latest,
            self._vector, self._pattern,
        )  # fmt: skip
        return arena.structure, self._shapes.arrays(), live, self.floors, self._consume, *output

    def fit(self) -> None:
        """Room for every partition, for the starts beside any live set, and for the moves that can be planned."""
        self.add_moves()
        if len(self._heads) < self.partitions:
            more = np.full(2 * self.partitions - len(self._heads), k.NIL, np.int64)
            self._heads = np.concatenate([self._heads, more])
        width = self._shapes.most_ranks
        if width > self._starts.shape[1]:
            wider = np.zeros((len(self._starts), width), np.int64)
            wider[:, : self._starts.shape[1]] = self._starts
            self._starts = wider

    def _make_room(self, count: int, low: int) -> None:
        """Free the live sets that are out of the window; add cells if more than half of them are left, or too few for
        `count` moves. Raises `BudgetExceeded` (`live_runs`)."""
        arena = self._arena
        held = arena.cells[: len(self._sets)]
        dead = (self._sets[:, r.KEY] >= 0) & ((held[:, k.HEAD] < 0) | (held[:, k.HEAD_MAX] < self._alive(low)))
        self._drop(np.flatnonzero(dead))
        used, budget = int(np.count_nonzero(self._sets[:, r.KEY] >= 0)), self.program.settings.live_runs
        if used + 2 * count > len(self._sets) // 2:
            if used > budget:
                raise BudgetExceeded("live_runs", budget, used, "runs")
            self._resize(max(_FIRST_SETS, 2 * (used + 2 * count)))
        self._link()

    def _alive(self, low: int) -> Any:
        """The first live start of each cell's partition: int64 (cells,), or one for all."""
        if self.own_windows:
            return np.where(self._sets[:, r.KEY] >= 0, self.lows[self._sets[:, r.KEY]], 0)
        return low

    def _resize(self, size: int) -> None:
        more = size - len(self._sets)
        self._sets = np.concatenate([self._sets, np.full((more, r.SET_COLUMNS), k.NIL, np.int64)])
        self._starts = np.concatenate([self._starts, np.zeros((more, self._starts.shape[1]), np.int64)])
        self._arena.add_cells(size)

    def _drop(self, cells: np.ndarray) -> None:
        """Empty these cells. To be followed by `_link`."""
        arena = self._arena
        attempt_rows(clear_cells, len(cells), arena.cells, arena.entries, arena.st, cells)
        self._sets[cells, r.KEY] = k.NIL

    def _link(self) -> None:
        """Make the lists of all partitions and buckets anew. O(n log n)."""
        sets = self._sets
        used = np.flatnonzero(sets[:, r.KEY] >= 0)
        buckets = len(self._buckets)
        while buckets < len(sets):
            buckets *= 2
        self._buckets = np.full(buckets, k.NIL, np.int64)
        _chain(sets, used, sets[used, r.KEY], self._heads, r.FOLLOWING)
        _chain(sets, used, r.bucket_of.function(sets[used, r.HASH], buckets), self._buckets, r.CHAIN)
        free = np.flatnonzero(sets[:, r.KEY] < 0)
        sets[free, r.FOLLOWING] = np.append(free[1:], k.NIL)[: len(free)]
        self._state[r.FREE_SET] = free[0] if len(free) else k.NIL
        self._state[r.FREE_SETS], self._state[r.SETS] = len(free), len(used)

    def _keep_budget(self, position: int) -> None:
        """Forget the shapes that no run has, if there are too many. Raises `HandOver` if the others are too many, or if
        the budget was spent on the shapes of few events."""
        budget = self.program.settings.automaton_bytes
        if self._shapes.bytes <= budget:
            return
        live, done = self.live(), int(self._arena.st[k.ROW])
        self._shapes = Shapes(self.program.cea, self.program.window.slides)
        self._shapes.add_classes(self._vectors)
        self._clears += 1
        self._follow(live)
        cleared, self._cleared = self._cleared, position
        if 2 * self._shapes.bytes > budget or position - cleared < _SHORT:
            message = "MAX needs more than automaton_bytes (%s bytes): evaluated set by set from here on, slower"
            _LOG.warning(message, f"{budget:,}")
            raise HandOver(live, done)

    def _end(self, numbers: np.ndarray, alive: np.ndarray) -> int:
        arena, sets = self._arena, self._sets
        gone = np.zeros(self.partitions, bool)
        gone[numbers] = True
        cells = np.flatnonzero((sets[:, r.KEY] >= 0) & gone[np.maximum(sets[:, r.KEY], 0)])
        held = arena.cells[cells]
        found = np.count_nonzero((held[:, k.HEAD] >= 0) & (held[:, k.HEAD_MAX] >= alive[sets[cells, r.KEY]]))
        self._drop(cells)
        self._link()
        return int(found)

    def live(self) -> LiveSets:
        arena, sets = self._arena, self._sets
        cells = np.flatnonzero((sets[:, r.KEY] >= 0) & (arena.cells[: len(sets), k.HEAD] >= 0))
        shapes = [self._with_registers(shape) for shape in self._shapes.shapes]
        found = []
        for cell in cells.tolist():
            number = int(sets[cell, r.SHAPE])
            starts = self._starts[cell, : self._shapes.ranks[number]].tolist()
            found.append((cell, int(sets[cell, r.KEY]), flat(shapes[number], tuple(starts))))
        return LiveSets.of(found, *self._bounds())

    def cell_lows(self) -> np.ndarray:
        lows = np.zeros(len(self._arena.cells), np.int64)
        lows[: len(self._sets)] = self._alive(0)
        return lows

    def restore(self, state: dict[str, Any], vectors: list[int]) -> None:
        live = LiveSets.restore(state["live"], self._arena)
        self._take_bounds(live)
        self.add_classes(vectors)
        self._follow(live)

    def _follow(self, live: LiveSets) -> None:
        """Go on from live sets as `live` has them. O(n log n)."""
        self._sets[:, r.KEY] = k.NIL
        self._resize(max(len(self._sets), len(self._arena.cells)))
        restored = [restore_set(some, self._expect_states) for some in live.sets]
        numbers = [self._shapes.number(_of_states(some.shape)) for some in restored]
        self.fit()
        for cell, key, which in zip(live.cells.tolist(), live.keys.tolist(), live.numbers.tolist(), strict=True):
            starts = restored[which].starts
            self._starts[cell, : len(starts)] = starts
            self._sets[cell, : r.SHAPE + 1] = key, numbers[which]
            with np.errstate(over="ignore"):
                number = r.mix.function(np.int64(key), np.int64(numbers[which]))
                for start in starts:
                    number = r.mix.function(number, np.int64(start))
            self._sets[cell, r.HASH] = number
        self._heads[:] = k.NIL
        self._link()

    def _expect_states(self, configurations: Any) -> None:
        states = range(self._stepper.states)
        expect(
            type(configurations) is frozenset
            and all(type(some) is tuple and type(some[0]) is int and some[0] in states for some in configurations),
            "states of the automaton",
        )

    def _with_registers(self, shape: Shape) -> Shape:
        """A shape of configurations, as runs with registers have them, for one of states."""
        empty = self._empty
        rivals = [frozenset(((q, empty), rank) for q, rank in some) for some in (shape.equal, shape.above)]
        return Shape(shape.bare, frozenset((q, empty) for q in shape.own), *rivals)


def _of_states(shape: Shape) -> Shape:
    """The opposite of `ShapedRun._with_registers`."""
    rivals = [frozenset((some[0], rank) for some, rank in found) for found in (shape.equal, shape.above)]
    return Shape(shape.bare, frozenset(some[0] for some in shape.own), *rivals)


def _chain(sets: np.ndarray, used: np.ndarray, lists: np.ndarray, heads: np.ndarray, column: int) -> None:
    """Chain the rows `used` of `sets` by `column`: row used[i] is in list lists[i], which begins at heads[lists[i]]."""
    heads[:] = k.NIL
    order = in_order(lists)
    rows, owners = used[order], lists[order]
    following = np.full(len(rows), k.NIL, np.int64)
    same = owners[1:] == owners[:-1]
    following[:-1][same] = rows[1:][same]
    sets[rows, column] = following
    first = np.append(True, ~same)[: len(rows)]
    heads[owners[first]] = rows[first]
