"""Selection MAX: only matches whose positions are not a proper subset of another's with the same end.

The construction of [CEL] (Theorems 4 and 6) determinises runs together with the runs that are better. Here a live
set holds, besides a run's own configurations, those of its *rivals*: runs that have marked a proper superset of its
positions (`above`), and runs from other starts that have marked the same ones (`equal`), which are above as soon as
they mark an event that it skips. A run that completes is reported unless some rival above it completes at the same
event.

With a window a rival counts only while its own start is alive. So the start of a live set and those of its rivals are
part of what tells live sets apart; a rival that started no earlier than the run itself outlives it and needs no start.
Without projection rivals never start later. Cost per event: the starts in the window, times what distinguishes runs of
one start; no match is ever enumerated to be thrown away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from spaseq.automata.cea import INITIAL
from spaseq.engine.runs.base import LiveSets
from spaseq.engine.runs.row_sets import Configuration, Configurations, RegisterRun, Step
from spaseq.snapshot import expect
from spaseq.tecs.kernels import layout as k
from spaseq.watch import check

_ALWAYS = 1 << 62
"""The start of a rival that is alive as long as the run it is a rival of."""

_Rivals = frozenset[tuple[Configuration, int]]
"""Configurations, each with the latest start of a rival that is in it."""


class _Run(NamedTuple):
    """A live set: runs from one start with the same configurations and rivals. `bare`: they have marked nothing yet."""

    start: int
    bare: bool
    own: Configurations
    equal: _Rivals
    above: _Rivals


class MaxRun(RegisterRun):
    """Evaluation under selection MAX."""

    def _steps(
        self, moving: list[tuple[int, Any]], event: int, c: int, live: Any, position: int, low: int
    ) -> list[tuple[int, Any, Step]]:
        memo: dict[Configuration, Step] = {}
        start = (INITIAL, self.registers.empty)
        found: list[tuple[int, Any, Step]] = []
        if self._can_move(frozenset({INITIAL}), c):
            bare, marked = self._alive(live, low)
            new = _Run(position, True, frozenset({start}), _rivals(bare, position, low), _rivals(marked, position, low))
            found.append((k.NIL, None, self._advance(new, new.equal, event, c, memo, low)))
        for cell, run in moving:
            check()
            # A run that starts now has marked what a bare run has: nothing.
            equal = run.equal | {(start, _ALWAYS)} if run.bare else run.equal
            found.append((cell, run, self._advance(run, equal, event, c, memo, low)))
        return found

    def _alive(self, live: Any, low: int) -> tuple[list[tuple[Configuration, int]], list[tuple[Configuration, int]]]:
        """Configurations and starts of the runs alive: those that have marked nothing, and the others."""
        found: tuple[list[Any], list[Any]] = [], []
        for sets in live.values():
            for run in sets:
                if run.start >= low:
                    found[not run.bare].extend((configuration, run.start) for configuration in run.own)
        return found

    def _advance(
        self, run: _Run, equal: _Rivals, event: int, c: int, memo: dict[Configuration, Step], low: int
    ) -> Step:
        own = self._step(run.own, event, c, memo)
        beside = [(self._step(frozenset({r}), event, c, memo), start) for r, start in equal if start >= low]
        above = [(self._step(frozenset({r}), event, c, memo), start) for r, start in run.above if start >= low]
        # Marking the event, a run stays below those above it that mark it too.
        over_mark = [(r, s) for step, s in above for r in step.mark]
        beaten_mark = any(step.completes for step, _ in above)
        # Skipping it, below all of them, and below whoever was level and marks it.
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
        start = run.start
        level, over = _rivals(level_mark, start, low), _rivals(over_mark, start, low)
        marks = [
            (label, _Run(start, False, where, level, over) if where else (), frozenset() if beaten_mark else rows)
            for label, where, rows in own.marks
        ]
        return Step(
            tuple(way for way in marks if way[1] or way[2]),
            _Run(start, run.bare, own.skip, _rivals(level_skip, start, low), _rivals(over_skip, start, low))
            if own.skip
            else (),
            frozenset() if beaten_skip else own.skip_rows,
        )

    def live(self) -> LiveSets:
        live = super().live()
        return replace(live, sets=list(map(tuple, live.sets)))

    def _restored(self, configurations: Any) -> _Run:
        run = _Run(*configurations)
        rivals = [r for r, _ in (*run.equal, *run.above)]
        for some in (run.own, frozenset(rivals)):
            if some:
                super()._restored(some)
        expect(type(run.start) is int and type(run.bare) is bool and bool(run.own), "runs of one start")
        return run

    def _states(self, key: Any) -> frozenset[int]:
        states = {q for q, _ in key.own} | {r[0] for r, _ in key.equal} | {r[0] for r, _ in key.above}
        return frozenset(states | {INITIAL} if key.bare else states)


def _rivals(found: Iterable[tuple[Configuration, int]], start: int, low: int) -> _Rivals:
    """The rivals of a run that began at `start`: the latest one in each configuration, those in the window."""
    latest: dict[Configuration, int] = {}
    for configuration, begun in found:
        if begun >= low:
            begun = _ALWAYS if begun >= start else begun
            latest[configuration] = max(begun, latest.get(configuration, begun))
    return frozenset(latest.items())
