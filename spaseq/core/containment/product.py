"""The search through the product of two automata that mark the same events.

A word is a sequence of events, each with the label under which it is marked, or none. A match of a query is a word that
its automaton accepts on the events of the match, from its start to its end. So two queries report the same matches if
their automata accept the same words (`docs/rma.md`, containment). The search follows both at once. Of each automaton it
keeps the set of all configurations that a word leads to, as the marks of a word determine that set ([CORE] §4.4). It
goes breadth first, so the words that it finds are shortest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from spaseq.core.automata import ACCEPT, CEA, INITIAL
from spaseq.core.automata.cea import Transition
from spaseq.core.containment.windows import Goal
from spaseq.core.engine import Registers
from spaseq.core.engine.runs.row_sets import act
from spaseq.core.errors import BudgetExceeded
from spaseq.core.watch import check

Configuration = tuple[int, Any]
Configurations = frozenset[Configuration]
Label = frozenset[str] | None
"""The variables that take an event; None if it is not marked."""

NOBODY: Final[Configurations] = frozenset()
UNSEEN: Final = -1
"""The bit vector of an event that a query does not see, as it is of another partition."""


class Letter(NamedTuple):
    """An event that may come next. `event`: its number, for registers and for the witness. `old`, `new`: its bit
    vectors over the predicates of both automata, or UNSEEN. `sure`: False if it is not known that such an event
    exists."""

    event: int
    old: int
    new: int
    sure: bool = True


class Letters(Protocol):
    """The events that may come next: one at least of each kind that the automata can tell apart."""

    def letters(self, old: Configurations, new: Configurations) -> Iterable[Letter]:
        """Those behind a word that leads the automata to these configurations."""

    def cost(self, old: Configurations, new: Configurations) -> int:
        """The steps that an event counts for there: 1, and 1 for each value that registers hold."""

    def key(self, old: Configurations, new: Configurations) -> Hashable:
        """A value that is equal for two pairs of configurations only if the same words are accepted from both."""


class _NoRegisters:
    """The registers of an automaton without guards."""

    empty: Hashable = ()


class Automaton:
    """An automaton with its registers, stepped from sets of configurations.

    `shown`: the variables by which matches differ; None if the positions of a match tell it.
    """

    def __init__(self, cea: CEA, registers: Registers | None, shown: frozenset[str] | None) -> None:
        self.cea: CEA = cea
        self.registers: Any = registers if registers is not None else _NoRegisters()
        self._labels: list[frozenset[str]] = [
            frozenset() if shown is None else names & shown for names in cea.labels or (frozenset(),)
        ]
        self._out = [sorted(out, key=lambda t: t.rank) for out in cea.transitions]
        self._needs = [[sum(1 << p for p in t.predicates) for t in out] for out in self._out]

    @property
    def start(self) -> Configurations:
        """The configurations of the empty word."""
        return frozenset({(INITIAL, self.registers.empty)})

    def step(self, source: Configurations, letter: int, event: int) -> dict[Label, tuple[Configurations, bool]]:
        """By label, the configurations that an event leads to, and if one of the runs accepts there.

        O(transitions of the states of `source`).
        """
        if letter == UNSEEN:  # and no run begins at it
            begun = frozenset(one for one in source if one[0] != INITIAL)
            return {None: (begun, False)} if begun else {}
        reached: dict[Label, set[Configuration]] = {}
        accepted: set[Label] = set()
        for state, row in source:
            for transition, after in self._fire(state, row, letter, event):
                label = self._labels[transition.label] if transition.marks else None
                to = reached.setdefault(label, set())
                if transition.target == ACCEPT:
                    accepted.add(label)
                else:
                    to.add((transition.target, after))
        return {label: (frozenset(to), label in accepted) for label, to in reached.items()}

    def _fire(self, state: int, row: Any, letter: int, event: int) -> list[tuple[Transition, Any]]:
        """The transitions that fire, with the rows behind them: of the least rank that has any, guards included."""
        fired: list[tuple[Transition, Any]] = []
        for need, transition in zip(self._needs[state], self._out[state], strict=True):
            if fired and fired[0][0].rank != transition.rank:
                break
            if need & letter == need:
                after = act(self.registers, row, transition, event) if transition.actions else row
                if after is not None:
                    fired.append((transition, after))
        return fired


class Bounds(NamedTuple):
    """The most events that a match may span, of both windows; None if it is not bounded. `apart`: the two see different
    events, so the lengths of their words differ."""

    old: int | None
    new: int | None
    apart: bool = False

    @property
    def counts_events(self) -> bool:
        """True if states must count events: lengths differ, or their bounds."""
        return self.old != self.new or (self.apart and self.old is not None)


@dataclass(slots=True)
class Found:
    """The result of a search, also of one that a budget ended. `words`: by the query that reports it (or "both") the
    goal and the events of a word. `unsure`: True if letters were left out of which it is not known if they exist."""

    words: dict[str, tuple[Goal, tuple[int, ...]]] = field(default_factory=dict)
    unsure: bool = False


class _Node(NamedTuple):
    """A state of the product: configurations, the lengths of the word for both, its length, and the way to it."""

    old: Configurations
    new: Configurations
    lengths: tuple[int, int]
    length: int
    before: int
    event: int


class Budget:
    """The steps that a comparison may still make. Raises `BudgetExceeded` with the setting."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0

    def spend(self, steps: int) -> None:
        """Count some steps."""
        self._used += steps
        if self._used > self._most:
            raise BudgetExceeded("compared_steps", self._most, self._used, "steps", "raise compared_steps")


def search(
    old: Automaton, new: Automaton, letters: Letters, goals: Sequence[Goal], bounds: Bounds, budget: Budget,
    found: Found, *, unsure: bool,
) -> None:  # fmt: skip
    """Adds to `found` shortest words for the goals, one for each query and for both, as far as there are any.

    `unsure`: letters of which it is not known if they exist take part, too. Then only the absence of a word means
    something. Raises `BudgetExceeded` (`compared_steps`). O(states of the product × letters × transitions).
    """
    nodes = [_Node(old.start, new.start, (0, 0), 0, -1, -1)]
    seen: set[Hashable] = set()
    place = 0
    while place < len(nodes):
        check()
        node = nodes[place]
        wanted = [goal for goal in goals if goal.reported_by not in found.words]
        if not wanted:
            break
        cost = letters.cost(node.old, node.new)
        for letter in letters.letters(node.old, node.new):
            if not letter.sure and not unsure:
                found.unsure = True
                continue
            budget.spend(cost)
            for after, accepts in _steps(old, new, node, place, letter, bounds):
                for goal in wanted:
                    if accepts == (goal.old, goal.new) and not (goal.several and after.length < 2):
                        found.words.setdefault(goal.reported_by, (goal, _events_of(nodes, after)))
                if not _leads_on(after, wanted):
                    continue
                key = (letters.key(after.old, after.new), after.lengths if bounds.counts_events else None)
                if key not in seen:
                    seen.add(key)
                    nodes.append(after)
        place += 1


def _steps(
    old: Automaton, new: Automaton, node: _Node, place: int, letter: Letter, bounds: Bounds
) -> Iterable[tuple[_Node, tuple[bool, bool]]]:
    """The nodes behind one, one for each label, and which automata accept there."""
    first, second = old.step(node.old, letter.old, letter.event), new.step(node.new, letter.new, letter.event)
    lengths = node.lengths[0] + (letter.old != UNSEEN), node.lengths[1] + (letter.new != UNSEEN)
    out_of_old = bounds.old is not None and lengths[0] > bounds.old
    out_of_new = bounds.new is not None and lengths[1] > bounds.new
    for label in sorted({*first, *second}, key=lambda one: (one is None, sorted(one or ()))):
        one, accepted = (NOBODY, False) if out_of_old else first.get(label, (NOBODY, False))
        two, too = (NOBODY, False) if out_of_new else second.get(label, (NOBODY, False))
        kept = (
            lengths[0] if one and bounds.old is not None else 0,
            lengths[1] if two and bounds.new is not None else 0,
        )
        yield _Node(one, two, kept, node.length + 1, place, letter.event), (accepted, too)


def _leads_on(node: _Node, wanted: Sequence[Goal]) -> bool:
    """True if a word that goes on from here may still be one that is wanted."""
    return any((node.old or not goal.old) and (node.new or not goal.new) for goal in wanted)


def _events_of(nodes: list[_Node], node: _Node) -> tuple[int, ...]:
    """The events of the word that led to a node."""
    events = [node.event]
    while nodes[node.before].before >= 0:
        node = nodes[node.before]
        events.append(node.event)
    return tuple(reversed(events))
