"""The variables that a run in a state of the automaton has bound, as far as the states determine them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as MappingABC

from spaseq.core.automata import ACCEPT, CEA, INITIAL, Action, Again, Transition
from spaseq.core.automata import Take as TakeAction
from spaseq.gpm import GraphPattern
from spaseq.language.guards.guards import Free, Take
from spaseq.language.semantics.expand import Conjunction
from spaseq.language.semantics.filters import conjunction_binds

Bound = tuple[frozenset[str], frozenset[str], tuple[Conjunction, ...]]
"""The variables bound by elements left behind, those bound by the round now taken, and the conjunctions that must stay
absent from now on; as in `lower.Row`."""


def transitions(cea: CEA) -> Iterator[Transition]:
    """All of them, state by state."""
    return (t for out in cea.transitions for t in out)


def bound_in_states(patterns: MappingABC[str, GraphPattern], cea: CEA) -> dict[int, Bound] | None:
    """The variables bound in each state, as far as Kleene+ needs them; None if they depend on a run's way there."""
    found: dict[int, Bound] = {INITIAL: (frozenset(), frozenset(), ())}
    todo = [INITIAL]
    for state in todo:  # grows while it is walked
        for t in cea.transitions[state]:
            way = found[state]
            for action in t.actions:
                way = _after(patterns, way, action)
            # At the end only absences that are owed are checked. Before it none is owed, and the next step adds the
            # variables bound in the round to those bound before, and keeps those it tracks.
            way = (
                (frozenset(), frozenset(), way[2])
                if t.target == ACCEPT
                else (_tracked_names(cea.transitions[t.target], way[0] | way[1]), frozenset(), ())
            )
            if found.setdefault(t.target, way) != way:
                return None
            if t.target not in (ACCEPT, *todo):
                todo.append(t.target)
    return found


def _tracked_names(out: Sequence[Transition], names: frozenset[str]) -> frozenset[str]:
    """Those of `names` that the transitions out of a state look at."""
    takes = [[a.guard for a in t.actions if isinstance(a, TakeAction) and isinstance(a.guard, Take)] for t in out]
    return names & frozenset().union(*(take.track for own in takes for take in own)) if all(takes) else names


def _after(patterns: MappingABC[str, GraphPattern], way: Bound, action: Action) -> Bound:
    match action:
        case TakeAction(Take(conjunction, _, track, _, owed)):
            return (way[0] | way[1]) & track, conjunction_binds(patterns, conjunction) & track, owed
        case Again():
            return way[0], frozenset(), way[2]
        case _:
            return way


def freed_by_rounds(
    cea: CEA, patterns: MappingABC[str, GraphPattern], bound: MappingABC[int, Bound]
) -> dict[frozenset[str], frozenset[str]] | None:
    """For the variables of each Kleene+, those that another round frees; None if that depends on the run."""
    found: dict[frozenset[str], frozenset[str]] = {}
    for t in transitions(cea):
        way = bound[t.source]
        for action in t.actions:
            if isinstance(action, Again):
                names: frozenset[str] = getattr(action.action, "variables")  # noqa: B009 - an opaque action: a `Free`
                if found.setdefault(names, names - way[0]) != names - way[0]:
                    return None
            way = _after(patterns, way, action)
    return found


class MayBind:
    """The variables that a run may have bound, given those that another round of a Kleene+ frees
    (`freed_by_rounds`)."""

    def __init__(
        self,
        patterns: MappingABC[str, GraphPattern],
        freed: MappingABC[frozenset[str], frozenset[str]],
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
            case Again(Free(names)):
                return known - self._freed[names]
            case _:
                return known
