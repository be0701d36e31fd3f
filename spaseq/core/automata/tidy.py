"""The last steps of compiling a pattern: selection STRICT, and fewer states and transitions for the same matches."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from spaseq.core.automata.cea import ACCEPT, INITIAL, Transition
from spaseq.core.automata.states import alike, closure
from spaseq.core.errors import InternalError


def strict_phases(transitions: list[Transition]) -> list[Transition]:
    """The automaton of the runs whose marks are an interval: each state in three phases, nothing marked yet (0), in the
    interval (1), behind it (2)."""
    if any(t.rank for t in transitions):
        raise InternalError("selection STRICT of a pattern that skips till the next match")
    phases = {(0, True): 1, (0, False): 0, (1, True): 1, (1, False): 2, (2, False): 2}

    def state(q: int, phase: int) -> int:
        return q if q in (INITIAL, ACCEPT) else 3 * q + phase

    return [
        replace(t, source=state(t.source, phase), target=state(t.target, phases[phase, t.marks]))
        for t in transitions
        for phase in ((0,) if t.source == INITIAL else (0, 1, 2))
        if (phase, t.marks) in phases
    ]


def trim(transitions: list[Transition]) -> list[Transition]:
    """The transitions that lie on a path from the initial state to acceptance."""
    reached = closure({INITIAL}, [(t.source, t.target) for t in transitions])
    useful = closure({ACCEPT}, [(t.target, t.source) for t in transitions])
    return [t for t in transitions if t.source in reached and t.target in useful]


def merge_alike(transitions: list[Transition]) -> list[Transition]:
    """Merges states with the same future, see `alike`. The initial state stays 0."""
    states = sorted({q for t in transitions for q in (t.source, t.target) if q != ACCEPT} | {INITIAL})
    out: dict[int, list[Transition]] = {q: [] for q in states}
    for t in transitions:
        out[t.source].append(t)

    def future(q: int, block: Mapping[int, Hashable]) -> Hashable:
        return frozenset(
            (t.predicates, t.marks, block.get(t.target), t.actions, t.rank, t.label) for t in out[q]
        )  # ACCEPT has no block

    block = alike(states, lambda q: q != INITIAL, future) | {ACCEPT: ACCEPT}
    return list(dict.fromkeys(replace(t, source=block[t.source], target=block[t.target]) for t in transitions))


def in_order_of_reach(transitions: list[Transition]) -> list[Transition]:
    """The same automaton with its states numbered breadth first, so that people can follow it."""
    numbers, todo = {ACCEPT: ACCEPT, INITIAL: INITIAL}, [INITIAL]
    targets: dict[int, list[int]] = {}
    for t in transitions:
        targets.setdefault(t.source, []).append(t.target)
    for state in todo:
        for target in targets.get(state, ()):
            if target not in numbers:
                numbers[target] = len(numbers) - 1
                todo.append(target)
    return [replace(t, source=numbers[t.source], target=numbers[t.target]) for t in transitions]
