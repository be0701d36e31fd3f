"""The variables that a run in a state of the automaton has bound, as far as the states determine them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC

from spaseq.core.automata import ACCEPT, CEA, INITIAL, Action, Again, Transition
from spaseq.core.automata import Take as TakeAction
from spaseq.gpm import GraphPattern
from spaseq.language.guards.guards import Free, Levels, Take, levels_after, trim_levels
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conjunction_binds

Bound = tuple[Levels, tuple[Conjunction, ...]]
"""The variables bound, by the rounds that they belong to, and the conjunctions that must stay absent from now on; as in
`registers.Row`."""


def transitions(cea: CEA) -> Iterator[Transition]:
    """All of them, state by state."""
    return (t for out in cea.transitions for t in out)


def bound_in_states(patterns: MappingABC[str, GraphPattern], cea: CEA) -> dict[int, Bound] | None:
    """The variables bound in each state, as far as repetitions need them; None if they depend on a run's way there."""
    found: dict[int, Bound] = {INITIAL: ((frozenset(),), ())}
    guards = [a.guard for t in transitions(cea) for a in t.actions if isinstance(a, TakeAction)]
    deepest = max((guard.inside for guard in guards if isinstance(guard, Take)), default=0)
    todo = [INITIAL]
    for state in todo:  # grows while it is walked
        for t in cea.transitions[state]:
            way = found[state]
            for action in t.actions:
                way = _after(patterns, way, action)
            # At the end only absences that are owed are checked. Before it none is owed. The next step adds the
            # variables of rounds in which it is not to those around, and keeps those it tracks.
            if t.target == ACCEPT:
                way = ((frozenset(),), way[1])
            else:
                levels = (*way[0][:deepest], frozenset().union(*way[0][deepest:]))
                way = _tracked_levels(cea.transitions[t.target], levels), ()
            if found.setdefault(t.target, way) != way:
                return None
            if t.target not in (ACCEPT, *todo):
                todo.append(t.target)
    return found


def _tracked_levels(out: Sequence[Transition], levels: Levels) -> Levels:
    """The levels, of the variables that the transitions out of a state look at."""
    takes = [[a.guard for a in t.actions if isinstance(a, TakeAction) and isinstance(a.guard, Take)] for t in out]
    if not all(takes):
        return trim_levels(levels)
    names = frozenset().union(*(take.track for own in takes for take in own))
    return trim_levels(level & names for level in levels)


def _after(patterns: MappingABC[str, GraphPattern], way: Bound, action: Action) -> Bound:
    match action:
        case TakeAction(Take(conjunction) as take):
            return levels_after(way[0], take, conjunction_binds(patterns, conjunction)), take.owed
        case Again(Free() as free):
            return trim_levels(way[0][: free.depth]), way[1]
        case _:
            return way


def collected_in_states(
    cea: CEA, patterns: MappingABC[str, GraphPattern], bound: MappingABC[int, Bound]
) -> dict[tuple[int, Take], frozenset[str]]:
    """By state and step out of it, the variables whose values in the round are kept."""
    found: dict[tuple[int, Take], frozenset[str]] = {}
    for t in transitions(cea):
        way = bound[t.source]
        for action in t.actions:
            if isinstance(action, TakeAction) and isinstance(action.guard, Take):
                found[t.source, action.guard] = action.guard.collects(way[0])
            way = _after(patterns, way, action)
    return found


def freed_by_rounds(
    cea: CEA, patterns: MappingABC[str, GraphPattern], bound: MappingABC[int, Bound]
) -> dict[Free, frozenset[str]] | None:
    """The variables that another round of each repetition frees; None if that depends on the run."""
    found: dict[Free, frozenset[str]] = {}
    for t in transitions(cea):
        way = bound[t.source]
        for action in t.actions:
            if isinstance(action, Again) and isinstance(action.action, Free):
                free = action.action
                names = free.variables - frozenset().union(*way[0][: free.depth])
                if found.setdefault(free, names) != names:
                    return None
            way = _after(patterns, way, action)
    return found


class MayBind:
    """The variables that a run may have bound, given those that another round of a Kleene+ frees
    (`freed_by_rounds`)."""

    def __init__(
        self,
        patterns: MappingABC[str, GraphPattern],
        freed: MappingABC[Free, frozenset[str]],
        cea: CEA,
    ) -> None:
        self._patterns = patterns
        self._freed = freed
        self._in_state: dict[int, frozenset[str]] = dict.fromkeys(range(cea.states), frozenset())
        reached, todo = {INITIAL}, [INITIAL]
        while todo:
            for t in cea.transitions[todo.pop()]:
                known = self.behind(t)
                if t.target != ACCEPT and (t.target not in reached or not known <= self._in_state[t.target]):
                    reached.add(t.target)
                    self._in_state[t.target] |= known
                    todo.append(t.target)

    def before(self, transition: Transition) -> frozenset[str]:
        """The variables that a run may have bound in front of a transition."""
        return self._in_state[transition.source]

    def behind(self, transition: Transition) -> frozenset[str]:
        """Those behind it."""
        known = self.before(transition)
        for action in transition.actions:
            known = self.after(known, action)
        return known

    def after(self, known: frozenset[str], action: Action) -> frozenset[str]:
        """Those behind an action, given those before it."""
        match action:
            case TakeAction(Take(conjunction, keep)):
                return (known | conjunction_binds(self._patterns, conjunction)) & keep
            case Again(Free() as free):
                return known - self._freed[free]
            case _:
                return known
