"""Runs beside the runs that are better, for selection MAX: the construction of [CEL] (Theorems 4 and 6), with windows.

A *live set* holds a run's own configurations and those of its *rivals*. These are runs that have marked a proper
superset of its positions (`above`), and runs from other starts that have marked the same ones (`equal`). An equal rival
is above as soon as it marks an event that the run skips. A run that completes is reported unless some rival above it
completes at the same event.

With a window a rival counts only while its own start is alive. A rival that started no earlier than the run itself
outlives it, and its start is ALWAYS. Without projection rivals never start later. Without a window, and in windows that
tumble, runs that are alive together end together, so all rivals are ALWAYS. The effect of an event depends only on the
order of the other starts. So a live set is a `Shape`, which has *ranks* in place of these starts, with the starts
beside it; runs from different starts share it.

*What is left out.* Let a rival above a run, which outlives it, be in one of its configurations. Whatever the run may
complete from there, the rival completes with more, so the run leaves the configuration, and ends without any. As a
rival of others it is not missed: that rival beats whatever it would have beaten. For the same reason an equal rival in
a configuration of the run itself is left out, and one in a configuration of a rival above that outlives it. Of rivals
above only those are kept that may complete together with the run (`find_rivals`).

So the shapes of an automaton without registers are finite, and independent of the window. Only the starts beside them
are not: there are some if an event may belong to a run and begin another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from spaseq.core.automata.cea import ACCEPT, CEA
from spaseq.core.engine.runs.row_sets import Step

ALWAYS = 1 << 62
"""The start of a rival that is alive as long as the run it is a rival of; greater than every start and rank."""
STATES = 62
"""The most states for which rivals that cannot complete together with a run are left out."""

Rivals = frozenset[tuple[Any, int]]
"""Configurations, each with the latest start of a rival that is in it, or that start's rank."""
StepOf = Callable[[frozenset[Any]], Step]
"""The step of a set of configurations on the event at hand."""


class Shape(NamedTuple):
    """The common part of the runs of one live set, without the starts of their rivals. `bare`: they have marked nothing
    yet. Ranks count the different starts of rivals from 0, the earliest."""

    bare: bool
    own: frozenset[Any]
    equal: Rivals
    above: Rivals


class To(NamedTuple):
    """The target of a shape: the next shape, and the ranks or starts that its ranks stand for. An empty one is none."""

    shape: Shape
    ranks: tuple[int, ...]


Target = To | tuple[()]


class Relevant:
    """The rivals of a run that matter. `state`: the automaton state of a configuration."""

    def __init__(self, cea: CEA, state: Callable[[Any], int]) -> None:
        self._state = state
        self.rivals: list[int] | None = find_rivals(cea) if cea.states <= STATES else None

    def of(self, own: frozenset[Any], above: dict[Any, int]) -> dict[Any, int]:
        """Of the rivals above a run, those that may complete together with it."""
        if self.rivals is None:
            return above
        known = 0
        for configuration in own:
            known |= self.rivals[self._state(configuration)]
        return {r: start for r, start in above.items() if known >> self._state(r) & 1}

    def target(self, bare: bool, own: frozenset[Any], equal: dict[Any, int], above: dict[Any, int]) -> Target:
        """The target of runs with these configurations, and rivals of these starts or ranks."""
        own = frozenset([q for q in own if above.get(q) != ALWAYS]) if above else own
        if not own:
            return ()
        above = self.of(own, above)
        equal = {r: start for r, start in equal.items() if r not in own and above.get(r, -1) < start}
        starts = sorted({*equal.values(), *above.values()} - {ALWAYS})
        rank = {start: number for number, start in enumerate(starts)} | {ALWAYS: ALWAYS}
        ranked = [frozenset((r, rank[start]) for r, start in rivals.items()) for rivals in (equal, above)]
        return To(Shape(bare, own, *ranked), tuple(starts))

    def without(self, shape: Shape, dead: int) -> Target:
        """The shape once the rivals of the `dead` earliest starts are out of the window."""
        alive = [{r: rank for r, rank in rivals if rank >= dead} for rivals in (shape.equal, shape.above)]
        return self.target(shape.bare, shape.own, *alive)

    def move(self, run: Shape, start: Any, step_of: StepOf) -> Step:
        """The step of a shape: a `Target` for each way. `start`: the configuration that every run begins in."""
        own = step_of(run.own)
        # A run that starts now has marked the same as a bare run: nothing.
        equal = run.equal | {(start, ALWAYS)} if run.bare and start not in run.own else run.equal
        beside = [(step_of(frozenset({r})), rank) for r, rank in equal]
        above = [(step_of(frozenset({r})), rank) for r, rank in run.above]
        # Marking the event, a run stays below those above it that mark it too.
        over_mark = [(r, s) for step, s in above for r in step.mark]
        beaten_mark = any(step.completes for step, _ in above)
        # Skipping it: below all of them, and below the runs that were level and mark it.
        over_skip = over_mark + [(r, s) for step, s in above for r in step.skip]
        over_skip += [(r, s) for step, s in beside for r in step.mark] + [(r, ALWAYS) for r in own.mark]
        beaten_skip = bool(
            beaten_mark
            or any(step.skip_rows for step, _ in above)
            or any(step.completes for step, _ in beside)
            or own.completes
        )
        level_mark = [(r, s) for step, s in beside for r in step.mark]
        if len(own.marks) > 1:  # the same positions under another label are a run of their own
            level_mark += [(r, ALWAYS) for r in own.mark]
        level_skip = [(r, s) for step, s in beside for r in step.skip]
        level, over = latest(level_mark), latest(over_mark)
        marks = [
            (label, self.target(False, where, level, over), frozenset() if beaten_mark else rows)
            for label, where, rows in own.marks
        ]
        return Step(
            tuple(way for way in marks if way[1] or way[2]),
            self.target(run.bare, own.skip, latest(level_skip), latest(over_skip)),
            frozenset() if beaten_skip else own.skip_rows,
        )


def latest(found: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """The latest rival in each configuration."""
    known: dict[Any, int] = {}
    for configuration, start in found:
        known[configuration] = max(start, known.get(configuration, start))
    return known


def find_rivals(cea: CEA) -> list[int]:
    """By state p, the states q as bits such that a run in p and a rival above it in q may complete at one event.

    The rival marks every event that the run marks. Conditions of events and guards are left out: there may be more of
    these than there are. Goes backwards from completing pairs. O(states² * transitions²).
    """
    moves = [{(t.marks, t.target) for t in out} for out in cea.transitions]
    before: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for p, own in enumerate(moves):
        for q, other in enumerate(moves):
            for marks, to in own:
                for more, there in other:
                    if marks <= more and (to == ACCEPT) == (there == ACCEPT):
                        before.setdefault((to, there), set()).add((p, q))
    found, todo = set[tuple[int, int]](), [(ACCEPT, ACCEPT)]
    while todo:
        fresh = before.get(todo.pop(), set()) - found
        found |= fresh
        todo += fresh
    return [sum(1 << q for q in range(cea.states) if (p, q) in found) for p in range(cea.states)]


def begin(bare: dict[Any, int], others: dict[Any, int], start: Any) -> To:
    """The shape of a run that begins, before its first event, and the starts of its rivals.

    `bare`: the latest starts, by configuration, of the runs alive that have marked nothing. `others`: those of the runs
    that have. All of them are kept."""
    starts = sorted({*bare.values(), *others.values()} - {ALWAYS})
    rank = {at: number for number, at in enumerate(starts)} | {ALWAYS: ALWAYS}
    ranked = [frozenset((r, rank[at]) for r, at in rivals.items()) for rivals in (bare, others)]
    return To(Shape(True, frozenset({start}), *ranked), tuple(starts))
