"""The progress of an evaluation: the steps of its pattern that no event fulfilled, and the states that its runs
reached.

It is computed on request, from data that an evaluator keeps anyway: the symbol classes that occurred and the states
that runs were in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Transition
from spaseq.core.pattern import Predicate


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an evaluation. A step is the predicates that one event has to fulfil together.

    `unmet`: the steps that no event fulfilled, in order of the automaton. `next`: the steps that the runs which came
    the furthest were waiting for; None if unknown, or if no run began. `reached`: the states that runs were in; None if
    unknown.
    """

    unmet: tuple[frozenset[Predicate], ...]
    next: tuple[frozenset[Predicate], ...] | None
    reached: frozenset[int] | None


def progress_of(evaluator: Any) -> Progress | None:
    """The progress of an evaluation; None if the evaluator does not record it, like the lazy ones. O(classes *
    steps)."""
    from spaseq.core.engine.runs.evaluator import Evaluator

    evaluator = getattr(evaluator, "inner", evaluator)  # of matches that are reported again
    evaluator = evaluator.eager
    if not isinstance(evaluator, Evaluator):
        return None
    cea = evaluator.program.cea
    vectors = evaluator.alphabet.vectors

    def met(step: Transition) -> bool:
        bits = sum(1 << p for p in step.predicates)
        return any(vector & bits == bits for vector in vectors)

    steps = [t for out in cea.transitions for t in out if t.marks or t.target != t.source]
    unmet = dict.fromkeys(_predicates(cea, t) for t in steps if not met(t))
    reached = evaluator.run.reached
    return Progress(tuple(unmet), None if not reached else _awaited_steps(cea, steps, reached), reached)


def stuck(
    progress: Progress, parts: str, order: str, limits: Sequence[str], told: Callable[[Iterable[Predicate]], str]
) -> str:
    """A line for people if every step had its events: the progress of runs, and the `limits` of the query. `parts` and
    `order`: the language's words for the parts of its pattern, and for their order; `told` gives the text of a step."""
    found = f"there are events for every {parts}, but "
    if progress.next:
        awaited = " or ".join(sorted(map(told, progress.next)))
        found += f"none that completes it: the furthest that it came is waiting for {awaited}"
    else:
        found += f"not in {order}"
    return found + (f". What limits it: {', '.join(limits)}" if limits else "")


def _predicates(cea: CEA, step: Transition) -> frozenset[Predicate]:
    return frozenset(cea.predicates[p] for p in step.predicates)


def _awaited_steps(cea: CEA, steps: list[Transition], reached: frozenset[int]) -> tuple[frozenset[Predicate], ...]:
    """The steps out of those states that are the nearest to the end, to states that no run was in."""
    distance = {ACCEPT: 0}
    while True:
        nearer = {t.source: distance[t.target] + 1 for t in steps if t.target in distance and t.source not in distance}
        if not nearer:
            break
        distance |= nearer
    places = (reached | {INITIAL}) & distance.keys()
    least = min((distance[q] for q in places), default=0)
    found = [t for t in steps if t.source in places and distance[t.source] == least and t.target not in reached]
    return tuple(dict.fromkeys(_predicates(cea, t) for t in found))
