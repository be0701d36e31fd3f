"""Selection MAX, live set by live set: only matches whose positions are not a proper subset of another's with the same
end (`spaseq.core.engine.runs.rivals`).

It evaluates automata with registers, and others if their shapes are too many for the kernel
(`spaseq.core.engine.runs.shaped`). The runs of a live set are in one cell of the structure, so its latest start is that
of the cell. If guards keep no register rows, there are finitely many shapes, and the step of each is computed once for
each symbol class. No match is enumerated only to be discarded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from spaseq.core.automata.cea import INITIAL
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.runs.base import LiveSets
from spaseq.core.engine.runs.rivals import ALWAYS, Relevant, Rivals, Shape, Target, To, begin
from spaseq.core.engine.runs.row_sets import Configuration, Configurations, RegisterRun, Step
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.watch import check

_SHAPES = 1 << 16
"""As many shapes, and steps of shapes, are kept; behind that they are forgotten and worked out anew."""


class LiveSet(NamedTuple):
    """Runs with the same configurations and rivals; `starts[r]` is the start of rank r, ascending."""

    shape: Shape
    starts: tuple[int, ...]


class MaxRun(RegisterRun):
    """Evaluation under selection MAX."""

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        self._finite = program.registers is None
        self._ends_together = not program.window.slides
        self._relevant = Relevant(program.cea, lambda configuration: int(configuration[0]))
        self._known: dict[tuple[Shape, int, int], Step] = {}
        self._states_of: dict[Shape, frozenset[int]] = {}

    def parts(self) -> dict[str, list[Any]]:
        found = super().parts()
        return found | {"automaton": [*found["automaton"], self._known, self._states_of]}

    def _steps(
        self, moving: list[tuple[int, Any]], event: int, c: int, live: Any, position: int, low: int
    ) -> list[tuple[int, Any, Step]]:
        memo: dict[Configuration, Step] = {}
        start = (INITIAL, self.registers.empty)
        found: list[tuple[int, Any, Step]] = []
        if self._can_move(frozenset({INITIAL}), c):
            new = LiveSet(*begin(*self._alive(live, low), start))
            found.append((k.NIL, None, self._advance(new, event, c, memo, low)))
        for cell, run in moving:
            check()
            found.append((cell, run, self._advance(run, event, c, memo, low)))
        return found

    def _alive(self, live: Any, low: int) -> tuple[dict[Configuration, int], dict[Configuration, int]]:
        """The latest start of the runs alive in each configuration: of those that marked nothing, of the others."""
        found: tuple[dict[Configuration, int], dict[Configuration, int]] = {}, {}
        for sets in live.values():
            cells = self._arena.cells[list(sets.values())].tolist()
            for (shape, _), cell in zip(sets, cells, strict=True):
                start = cell[k.HEAD_MAX]
                if cell[k.HEAD] >= 0 and start >= low:
                    known = found[not shape.bare]
                    for configuration in shape.own:
                        if known.get(configuration, low) <= start:
                            known[configuration] = ALWAYS if self._ends_together else start
        return found

    def _advance(self, run: LiveSet, event: int, c: int, memo: dict[Configuration, Step], low: int) -> Step:
        """The step of a live set: the step of its shape, with starts for ranks."""
        shape, starts = run
        dead = bisect_left(starts, low) if starts else 0
        step = self._known.get((shape, dead, c))
        if step is None:
            step = self._move_shape(shape, dead, event, c, memo)
            if self._finite:
                _keep(self._known, (shape, dead, c), step)
        return Step(
            tuple([(label, _live_set(to, starts), rows) for label, to, rows in step.marks]),
            _live_set(step.skip, starts),
            step.skip_rows,
        )

    def _move_shape(self, shape: Shape, dead: int, event: int, c: int, memo: dict[Configuration, Step]) -> Step:
        """The step of a shape, of whose rivals the `dead` earliest are out of the window."""
        ranks: tuple[int, ...] = ()
        if dead:
            now = self._relevant.without(shape, dead)
            assert now
            shape, ranks = now
        step = self._relevant.move(shape, (INITIAL, self.registers.empty), lambda own: self._step(own, event, c, memo))
        if not dead:
            return step
        return Step(
            tuple([(label, _rename(to, ranks), rows) for label, to, rows in step.marks]),
            _rename(step.skip, ranks),
            step.skip_rows,
        )

    def live(self) -> LiveSets:
        live = super().live()
        return replace(live, sets=[flat(*some) for some in live.sets])

    def _restore_set(self, configurations: Any) -> LiveSet:
        def check_states(some: Configurations) -> None:
            super(MaxRun, self)._restore_set(some)

        return restore_set(configurations, check_states)

    def follow(self, live: LiveSets, vectors: list[int]) -> None:
        sets = [some if isinstance(some, LiveSet) else self._restore_set(some) for some in live.sets]
        super().follow(replace(live, sets=sets), vectors)

    def _states(self, key: Any) -> frozenset[int]:
        shape: Shape = key.shape
        found = self._states_of.get(shape)
        if found is None:
            of_rivals = {r[0] for r, _ in (*shape.equal, *shape.above)}
            found = frozenset(of_rivals | {q for q, _ in shape.own} | ({INITIAL} if shape.bare else set()))
            if self._finite:
                _keep(self._states_of, shape, found)
        return found


def _keep(known: dict[Any, Any], what: Any, found: Any) -> None:
    if len(known) >= _SHAPES:
        known.clear()
    known[what] = found


def _rename(to: Target, ranks: tuple[int, ...]) -> Target:
    """A target whose ranks count among `ranks`."""
    return To(to.shape, tuple([ranks[r] for r in to.ranks])) if to else ()


def _live_set(to: Target, starts: tuple[int, ...]) -> LiveSet | tuple[()]:
    """The runs at the target; rank r of the shape they come from is `starts[r]`."""
    if not to:
        return ()
    shape, ranks = to
    return LiveSet(shape, tuple([starts[r] for r in ranks]) if ranks else ())


def flat(shape: Shape, starts: tuple[int, ...]) -> tuple[bool, Configurations, Rivals, Rivals]:
    """A live set as snapshots have it: with the starts themselves."""
    begun = dict(enumerate(starts)) | {ALWAYS: ALWAYS}
    level, over = (frozenset((r, begun[rank]) for r, rank in rivals) for rivals in (shape.equal, shape.above))
    return shape.bare, shape.own, level, over


def restore_set(state: Any, check_states: Callable[[Configurations], object]) -> LiveSet:
    """The opposite of `flat`. `check_states` raises `OptionError` for configurations of no automaton's state."""
    bare, own, equal, above = state
    for some in (own, frozenset(r for r, _ in (*equal, *above))):
        if some:
            check_states(some)
    starts = {s for _, s in (*equal, *above)}
    expect(all(type(s) is int and s >= 0 for s in starts) and type(bare) is bool and bool(own), "runs and their rivals")
    ranks = sorted(starts - {ALWAYS})
    rank = {start: number for number, start in enumerate(ranks)} | {ALWAYS: ALWAYS}
    level, over = (frozenset((r, rank[s]) for r, s in rivals) for rivals in (equal, above))
    return LiveSet(Shape(bare, own, level, over), tuple(ranks))
