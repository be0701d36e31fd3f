"""Runs of an automaton over a stream of single events ([RMA] Definitions 4.3 to 4.5).

`matches` and `accepting_runs` follow every run by itself, for small examples. `Acceptor` follows configurations, a
state with the contents of the registers, and reports at which events a run accepts; an output-agnostic deterministic
automaton has one configuration. For streams in batches, windows of time and partitions see `Recogniser`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA, Transition
from spaseq.core.automata.rma.epsilon import eliminate_epsilon
from spaseq.core.automata.rma.limits import Limits

_Contents = tuple[int, ...]
"""The position of the event in each register, -1 for none."""


class _Steps:
    """Used by all functions that run automata: the transitions that apply to an event, and writing to registers."""

    def __init__(self, automaton: RMA) -> None:
        self.automaton = eliminate_epsilon(automaton) if automaton.has_epsilon else automaton
        self.place = {register: i for i, register in enumerate(self.automaton.registers)}
        self.empty: _Contents = (-1,) * len(self.place)

    def applying(self, state: int, contents: _Contents, current: Any, past: Any) -> Iterable[Transition]:
        """The transitions of `state` that apply to `current`; `past[p]` is the event at position p."""

        def truth(test: f.Test) -> bool:
            events = (current if a == f.CURRENT else past[contents[self.place[a]]] for a in test.arguments)
            return bool(test.relation(*events))

        return (t for t in self.automaton.leaving[state] if f.holds(t.formula, truth))

    def written(self, contents: _Contents, transition: Transition, position: int) -> _Contents:
        """The contents of the registers once the transition has written the event at `position`."""
        if not transition.writes:
            return contents
        return tuple([position if r in transition.writes else c for r, c in zip(self.place, contents, strict=True)])


def matches(
    automaton: RMA,
    events: Sequence[Any],
    *,
    start: int = 0,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> set[tuple[int, ...]]:
    """The matches ⟦A⟧ over `events[start:]`: for each accepting run the positions that it marked, in order.

    Follows every run by itself, so time and memory grow with the number of runs; `BudgetExceeded` if there are more
    than `max_configurations` at one time.
    """
    steps = _Steps(automaton)
    runs: set[tuple[int, _Contents, tuple[int, ...]]] = {(q, steps.empty, ()) for q in steps.automaton.starts}
    found: set[tuple[int, ...]] = set()
    for position in range(start, len(events)):
        moved: set[tuple[int, _Contents, tuple[int, ...]]] = set()
        for state, contents, marked in runs:
            for t in steps.applying(state, contents, events[position], events):
                longer = (*marked, position) if t.marks else marked
                if t.marks and t.target in steps.automaton.finals:
                    found.add(longer)
                moved.add((t.target, steps.written(contents, t, position), longer))
        limits.configurations(len(moved))
        runs = moved
    return found


@dataclass(frozen=True, slots=True)
class Configuration:
    """[j, q, γ] of [RMA] (Definition 4.3).

    `position`: that of the next event; `state`: its name. `registers`: for each register, by name, the position of its
    event, -1 if it is empty. `marks`: True if the transition that led here marked its event.
    """

    position: int
    state: str
    registers: tuple[tuple[str, int], ...]
    marks: bool


def accepting_runs(
    automaton: RMA,
    events: Sequence[Any],
    *,
    start: int = 0,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Iterator[tuple[Configuration, ...]]:
    """The runs over `events[start:]`, each up to the event at which it accepts, ordered by the position of that event.

    Their marked positions are what `matches` returns. Follows every run by itself, as `matches` does. ε-transitions
    are removed first.
    """
    steps = _Steps(automaton)
    names = steps.automaton.names

    def configuration(position: int, state: int, contents: _Contents, marks: bool) -> Configuration:
        return Configuration(position, names[state], tuple(zip(steps.place, contents, strict=True)), marks)

    runs: list[tuple[int, _Contents, tuple[Configuration, ...]]] = [
        (q, steps.empty, (configuration(start, q, steps.empty, False),)) for q in sorted(steps.automaton.starts)
    ]
    for position in range(start, len(events)):
        moved: list[tuple[int, _Contents, tuple[Configuration, ...]]] = []
        for state, contents, path in runs:
            for t in steps.applying(state, contents, events[position], events):
                after = steps.written(contents, t, position)
                longer = (*path, configuration(position + 1, t.target, after, t.marks))
                if t.marks and t.target in steps.automaton.finals:
                    yield longer
                moved.append((t.target, after, longer))
        limits.configurations(len(moved))
        runs = moved


def show_run(run: Sequence[Configuration]) -> str:
    """A run as the paper writes it, with the index of the event in each register: `[0, q0, ♯] ∘→ [1, q0, ♯] •→ …`."""

    def show(c: Configuration) -> str:
        held = ", ".join(f"{register} = t{at}" for register, at in c.registers if at >= 0)
        return f"[{c.position}, {c.state}, {held or '♯'}]"

    first, *others = run
    return " ".join([show(first), *(f"{'•' if c.marks else '∘'}→ {show(c)}" for c in others)])


class Acceptor:
    """Reads events one by one and reports, for each, if a run accepts at it.

    Keeps only the events that are in some register.
    """

    def __init__(self, automaton: RMA, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self._steps = _Steps(automaton)
        self._limits = limits
        self._position = 0
        self._past: dict[int, Any] = {}
        self._alive = {(q, self._steps.empty) for q in self._steps.automaton.starts}

    @property
    def configurations(self) -> int:
        """The number of configurations: at most one if the automaton is output-agnostic deterministic."""
        return len(self._alive)

    @property
    def states(self) -> frozenset[int]:
        """The states of the configurations: numbers of states of the automaton after `eliminate_epsilon`."""
        return frozenset(q for q, _ in self._alive)

    def push(self, event: Any) -> bool:
        """True if a run accepts at this event. Raises `BudgetExceeded` at `max_configurations`."""
        return any(t.marks and t.target in self._steps.automaton.finals for t in self.step(event))

    def step(self, event: Any) -> list[Transition]:
        """Reads an event; the transitions that were taken."""
        steps, position = self._steps, self._position
        taken, moved = [], set()
        for state, contents in self._alive:
            for t in steps.applying(state, contents, event, self._past):
                taken.append(t)
                moved.add((t.target, steps.written(contents, t, position)))
        self._limits.configurations(len(moved))
        needed = {p for _, contents in moved for p in contents if p >= 0}
        self._past[position] = event
        self._past = {p: self._past[p] for p in needed}
        self._alive, self._position = moved, position + 1
        return taken


def accepts(automaton: RMA, events: Iterable[Any], *, limits: Limits = Limits()) -> list[bool]:  # noqa: B008 - frozen
    """For each event: True if a run that began at the first one accepts at it."""
    acceptor = Acceptor(automaton, limits)
    return [acceptor.push(event) for event in events]
