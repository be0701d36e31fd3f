"""Selection MAX: only matches whose positions are not a proper subset of another's with the same end.

The construction of [CEL] (Theorems 4 and 6) determinises runs together with the runs that are better. Here a live set
holds a run's own configurations and those of its *rivals*. These are runs that have marked a proper superset of its
positions (`above`), and runs from other starts that have marked the same ones (`equal`). An equal rival is above as
soon as it marks an event that the run skips. A run that completes is reported unless some rival above it completes at
the same event.

With a window a rival counts only while its own start is alive. So the start of a live set and those of its rivals tell
live sets apart. A rival that started no earlier than the run itself outlives it and needs no start. Without projection
rivals never start later.

The effect of an event depends only on the order of these starts. So a live set is kept as a `_Shape`, which has *ranks*
in place of the rivals' starts, with the starts beside it. If guards keep no register rows, there are finitely many
shapes, and the step of each is computed once for each symbol class. This is an ordered form of the construction's
finite automaton.

Cost per event: the starts in the window, times the number of live sets of one start. No match is enumerated only to be
discarded.

PERF: `A ; B+ ; C` over three types at random, within 200 events (128 live sets): 2,270 us an event with each live set
computed anew, 460 with shapes. Within 20 events: 200 and 80. `A ; B ; C` within 200: 770 and 250 (processor time of a
busy machine, 2026-11-23). The rest is Python's work for each live set; a table in a kernel would save that too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from spaseq.core.automata.cea import INITIAL
from spaseq.core.engine.program.program import Program
from spaseq.core.engine.runs.base import LiveSets
from spaseq.core.engine.runs.row_sets import Configuration, Configurations, RegisterRun, Step
from spaseq.core.snapshot import expect
from spaseq.core.tecs import Arena
from spaseq.core.tecs.kernels import layout as k
from spaseq.core.watch import check

_ALWAYS = 1 << 62
"""The start of a rival that is alive as long as the run it is a rival of; greater than every start and rank."""
_SHAPES = 1 << 16
"""As many shapes, and steps of shapes, are kept; behind that they are forgotten and worked out anew."""

_Rivals = frozenset[tuple[Configuration, int]]
"""Configurations, each with the latest start of a rival that is in it, or that start's rank."""


class _Shape(NamedTuple):
    """The common part of runs of one live set, without the starts of the runs and their rivals. `bare`: they have
    marked nothing yet. Ranks count the different starts of rivals from 0, the earliest."""

    bare: bool
    own: Configurations
    equal: _Rivals
    above: _Rivals


class _Run(NamedTuple):
    """A live set: runs from one start with the same configurations and rivals; `starts[r]` is the start of rank r,
    ascending."""

    start: int
    shape: _Shape
    starts: tuple[int, ...]


class _To(NamedTuple):
    """The target of a shape: the next shape, and the ranks whose starts remain. An empty one is no run."""

    shape: _Shape
    ranks: tuple[int, ...]


class MaxRun(RegisterRun):
    """Evaluation under selection MAX."""

    def __init__(self, program: Program, arena: Arena) -> None:
        super().__init__(program, arena)
        self._finite = program.registers is None
        self._known: dict[tuple[_Shape, int, int], Step] = {}
        self._states_of: dict[_Shape, frozenset[int]] = {}

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
            new = _rank(position, True, frozenset({start}), *self._alive(live, low))
            found.append((k.NIL, None, self._advance(new, event, c, memo, low)))
        for cell, run in moving:
            check()
            found.append((cell, run, self._advance(run, event, c, memo, low)))
        return found

    def _alive(self, live: Any, low: int) -> tuple[_Rivals, _Rivals]:
        """The latest start of the runs alive in each configuration: of those that marked nothing, of the others."""
        latest: tuple[dict[Configuration, int], dict[Configuration, int]] = {}, {}
        for sets in live.values():
            for start, shape, _ in sets:
                if start >= low:
                    known = latest[not shape.bare]
                    for configuration in shape.own:
                        if known.get(configuration, low) <= start:
                            known[configuration] = start
        return frozenset(latest[0].items()), frozenset(latest[1].items())

    def _advance(self, run: _Run, event: int, c: int, memo: dict[Configuration, Step], low: int) -> Step:
        """The step of a live set: the step of its shape, with starts for ranks."""
        start, shape, starts = run
        dead = bisect_left(starts, low) if starts else 0
        step = self._known.get((shape, dead, c))
        if step is None:
            step = self._move_shape(shape, dead, event, c, memo)
            if self._finite:
                _keep(self._known, (shape, dead, c), step)
        return Step(
            tuple([(label, _begin(to, start, starts), rows) for label, to, rows in step.marks]),
            _begin(step.skip, start, starts),
            step.skip_rows,
        )

    def _move_shape(self, run: _Shape, dead: int, event: int, c: int, memo: dict[Configuration, Step]) -> Step:
        """The step of a shape, of whose rivals the `dead` earliest are out of the window: a `_To` for each way."""
        own = self._step(run.own, event, c, memo)
        # A run that starts now has marked the same as a bare run: nothing.
        equal = run.equal | {((INITIAL, self.registers.empty), _ALWAYS)} if run.bare else run.equal
        beside = [(self._step(frozenset({r}), event, c, memo), rank) for r, rank in equal if rank >= dead]
        above = [(self._step(frozenset({r}), event, c, memo), rank) for r, rank in run.above if rank >= dead]
        # Marking the event, a run stays below those above it that mark it too.
        over_mark = [(r, s) for step, s in above for r in step.mark]
        beaten_mark = any(step.completes for step, _ in above)
        # Skipping it: below all of them, and below the runs that were level and mark it.
        over_skip = over_mark + [(r, s) for step, s in above for r in step.skip]
        over_skip += [(r, s) for step, s in beside for r in step.mark] + [(r, _ALWAYS) for r in own.mark]
        beaten_skip = bool(
            beaten_mark
            or any(step.skip_rows for step, _ in above)
            or any(step.completes for step, _ in beside)
            or own.completes
        )
        level_mark = [(r, s) for step, s in beside for r in step.mark]
        if len(own.marks) > 1:  # the same positions under another label are a run of their own
            level_mark += [(r, _ALWAYS) for r in own.mark]
        level_skip = [(r, s) for step, s in beside for r in step.skip]
        level, over = _rivals(level_mark), _rivals(over_mark)
        marks = [
            (label, _to(False, where, level, over), frozenset() if beaten_mark else rows)
            for label, where, rows in own.marks
        ]
        return Step(
            tuple(way for way in marks if way[1] or way[2]),
            _to(run.bare, own.skip, _rivals(level_skip), _rivals(over_skip)),
            frozenset() if beaten_skip else own.skip_rows,
        )

    def live(self) -> LiveSets:
        live = super().live()
        return replace(live, sets=list(map(_flat, live.sets)))

    def _restore_set(self, configurations: Any) -> _Run:
        start, bare, own, equal, above = configurations
        rivals = [r for r, _ in (*equal, *above)]
        for some in (own, frozenset(rivals)):
            if some:
                super()._restore_set(some)
        starts = [start, *(s for _, s in (*equal, *above))]
        expect(all(type(s) is int for s in starts) and type(bare) is bool and bool(own), "runs of one start")
        return _rank(start, bare, own, equal, above)

    def _states(self, key: Any) -> frozenset[int]:
        shape: _Shape = key.shape
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


def _rivals(found: Iterable[tuple[Configuration, int]]) -> _Rivals:
    """The latest rival in each configuration."""
    latest: dict[Configuration, int] = {}
    for configuration, rank in found:
        latest[configuration] = max(rank, latest.get(configuration, rank))
    return frozenset(latest.items())


def _to(bare: bool, own: Configurations, equal: _Rivals, above: _Rivals) -> _To | tuple[()]:
    """The target of runs with these configurations, and rivals of these starts or ranks."""
    if not own:
        return ()
    starts = sorted({start for rivals in (equal, above) for _, start in rivals if start != _ALWAYS})
    rank = {start: number for number, start in enumerate(starts)} | {_ALWAYS: _ALWAYS}
    ranked = [frozenset((r, rank[start]) for r, start in rivals) for rivals in (equal, above)]
    return _To(_Shape(bare, own, *ranked), tuple(starts))


def _rank(start: int, bare: bool, own: Configurations, equal: _Rivals, above: _Rivals) -> _Run:
    to = _to(bare, own, equal, above)
    assert to
    return _Run(start, *to)


def _begin(to: _To | tuple[()], start: int, starts: tuple[int, ...]) -> _Run | tuple[()]:
    """The runs of a start at the target; rank r of the shape they come from is `starts[r]`."""
    if not to:
        return ()
    shape, ranks = to
    return _Run(start, shape, tuple([starts[r] for r in ranks]) if ranks else ())


def _flat(run: _Run) -> tuple[int, bool, Configurations, _Rivals, _Rivals]:
    """A live set as snapshots have it: with the starts themselves."""
    start, (bare, own, equal, above), starts = run
    begun = dict(enumerate(starts)) | {_ALWAYS: _ALWAYS}
    level, over = (frozenset((r, begun[rank]) for r, rank in rivals) for rivals in (equal, above))
    return start, bare, own, level, over
