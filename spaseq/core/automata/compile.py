"""Compile a pattern to a complex event automaton ([CORE], proof of Theorem 2; [CEL] Theorem 3).

The construction is the paper's, by induction on the pattern, with two differences. Final states are the target `ACCEPT`
(see `spaseq.core.automata.cea`). In a sequence of φ and ψ, the paper leads every transition into a final state of φ to
each initial state of ψ. Here ψ's initial states are joined into one waiting state. Its loop passes over the events in
between, and with `Skip.NEXT` it has to see all transitions of ψ's first event. At the end, states with the same future
are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Avoid, Leave, Take, Transition
from spaseq.core.automata.states import alike, closure
from spaseq.core.errors import BudgetExceeded, InternalError
from spaseq.core.pattern import (
    And,
    As,
    Atom,
    Correlate,
    Filter,
    Iterate,
    NoneOf,
    Or,
    Pattern,
    Predicate,
    Project,
    Sequence,
    Skip,
    push_filters,
)


@dataclass(frozen=True, slots=True)
class _Edge:
    """A transition of the valuation automaton: labelled by the variables that take the event, and by predicates."""

    source: int
    predicates: frozenset[Predicate]
    variables: frozenset[str]
    target: int
    actions: tuple[Action, ...] = ()
    otherwise: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """The automaton of a subpattern: its initial states and edges."""

    initial: frozenset[int]
    edges: tuple[_Edge, ...]

    def map(self, change: Callable[[_Edge], _Edge]) -> _Part:
        return _Part(self.initial, tuple(change(e) for e in self.edges))

    def starts(self) -> list[_Edge]:
        return [e for e in self.edges if e.source in self.initial]


def compile_pattern(
    pattern: Pattern,
    *,
    strict: bool = False,
    valuations: bool = False,
    negated: int = 8,
    shown: frozenset[str] | None = None,
) -> CEA:
    """The automaton whose accepting runs are the complex events of `pattern`.

    With `strict`, only those whose marked positions are an interval of the (partition's) stream: selection STRICT
    ([CEL] §4). With `valuations`, the label of a transition stands for the variables that take its event; if `shown` is
    given, only for those of them. Valuations that differ in other variables alone are then one. The size is linear in
    the pattern, with `strict` three times as large. Raises `BudgetExceeded` (`negated_conditions`) if more than
    `negated` alternatives under one negation have guards.
    """
    part = _Builder(negated).build(push_filters(pattern))
    edges = _with_single_initial(part)
    predicates = tuple(dict.fromkeys(p for e in edges for p in _in_order(e.predicates)))
    index = {p: i for i, p in enumerate(predicates)}
    of_edge = [e.variables if shown is None else e.variables & shown for e in edges]
    marking = {said for e, said in zip(edges, of_edge, strict=True) if e.variables}
    labels = sorted(marking, key=sorted) if valuations else []
    transitions = [
        Transition(e.source, frozenset(index[p] for p in e.predicates), bool(e.variables), e.target, e.actions,
                   e.otherwise, labels.index(said) if e.variables and valuations else 0)
        for e, said in zip(edges, of_edge, strict=True)
    ]  # fmt: skip
    if strict:
        transitions = _strict(transitions)
    transitions = _in_order_of_reach(_merge_alike(_trim(transitions)))
    used = sorted({p for t in transitions for p in t.predicates})
    renumber = {p: i for i, p in enumerate(used)}
    states = 1 + max((s for t in transitions for s in (t.source, t.target)), default=0)
    out: list[list[Transition]] = [[] for _ in range(states)]
    for t in transitions:
        out[t.source].append(replace(t, predicates=frozenset(renumber[p] for p in t.predicates)))
    said = tuple(labels) if valuations else None
    return CEA(states, tuple(map(tuple, out)), tuple(predicates[p] for p in used), said)


def _in_order(predicates: frozenset[Predicate]) -> list[Predicate]:
    """A set of predicates in an order that is the same in every process."""
    return sorted(predicates, key=lambda p: (type(p).__name__, str(p)))


class _Builder:
    """Hands out state numbers while the pattern is walked."""

    def __init__(self, negated: int) -> None:
        self._states = INITIAL
        self._negated = negated

    def _state(self) -> int:
        self._states += 1
        return self._states

    def build(self, pattern: Pattern) -> _Part:
        match pattern:
            case Atom(predicates, variables, guard):
                state = self._state()
                actions = () if guard is None else (Take(guard, variables),)
                return _Part(frozenset({state}), (_Edge(state, predicates, variables, ACCEPT, actions),))
            case As(child, variable):
                return self.build(child).map(
                    lambda e: replace(e, variables=e.variables | {variable}) if e.variables else e
                )
            case Filter(child, variable, predicate):
                return self.build(child).map(
                    lambda e: replace(e, predicates=e.predicates | {predicate}) if variable in e.variables else e
                )
            case Correlate(child, over, guard):
                return self.build(child).map(lambda e: _correlate(e, over, guard))
            case Project(child, kept):
                return self.build(child).map(lambda e: replace(e, variables=e.variables & kept))
            case Or(left, right):
                a, b = self.build(left), self.build(right)
                return _Part(a.initial | b.initial, a.edges + b.edges)
            case Sequence(left, right, skip, absent):
                return self._sequence(self.build(left), self.build(right), skip, absent)
            case And(left, right):
                return self._both(self.build(left), self.build(right))
            case Iterate(child, skip, again):
                return self._iterate(self.build(child), skip, again)
            case _:
                assert_never(pattern)  # type: ignore[arg-type]

    def _wait(self, starts: list[_Edge], skip: Skip, absent: tuple[Atom, ...] = ()) -> tuple[int, list[_Edge]]:
        """A state that waits for the first event of the part with the edges `starts`, and the edges that leave it."""
        state = self._state()
        edges = [replace(e, source=state) for e in starts]
        if skip is not Skip.NONE:
            edges += [replace(e, source=state, target=state) for e in _loops(skip, absent, self._negated)]
        return state, edges

    def _sequence(self, left: _Part, right: _Part, skip: Skip, absent: tuple[Atom, ...]) -> _Part:
        wait, waiting = self._wait(right.starts(), skip, absent)
        first = [replace(e, target=wait) if e.target == ACCEPT else e for e in left.edges]
        return _Part(left.initial, (*first, *waiting, *right.edges))

    def _iterate(self, child: _Part, skip: Skip, again: object) -> _Part:
        wait, waiting = self._wait(child.starts(), skip)
        body = (*child.edges, *waiting)
        extra = () if again is None else (Again(again),)
        rounds = [replace(e, target=wait, actions=e.actions + extra) for e in body if e.target == ACCEPT]
        return _Part(child.initial, (*body, *rounds))

    def _both(self, left: _Part, right: _Part) -> _Part:
        """The product of two automata, whose runs may start and end at different events and may share events."""
        if any(e.otherwise for e in (*left.edges, *right.edges)):
            raise InternalError("a conjunction of patterns that skip till the next match")
        first: tuple[int, int] = (_BEFORE, _BEFORE)
        numbers = {first: self._state()}
        edges: list[_Edge] = []
        todo = [first]
        while todo:
            pair = todo.pop()
            for a in _side_moves(left, pair[0]):
                for b in _side_moves(right, pair[1]):
                    target = (a.target, b.target)
                    if target == first:
                        continue  # neither part starts here, and a run begins with the first event of one
                    if target != (_AFTER, _AFTER) and target not in numbers:
                        numbers[target] = self._state()
                        todo.append(target)
                    edges.append(
                        _Edge(
                            numbers[pair],
                            a.predicates | b.predicates,
                            a.variables | b.variables,
                            numbers.get(target, ACCEPT),
                            a.actions + b.actions,
                        )
                    )
        return _Part(frozenset({numbers[first]}), tuple(edges))


_BEFORE, _AFTER = -2, -3
"""The state of a side of a conjunction that has not started, and of one that has ended."""


def _side_moves(part: _Part, state: int) -> list[_Edge]:
    """The edges of one side of a conjunction in `state`; if it has not started or has ended, it may pass over any
    event."""
    idle = [_Edge(state, frozenset(), frozenset(), state)] if state in (_BEFORE, _AFTER) else []
    if state == _AFTER:
        return idle
    edges = part.starts() if state == _BEFORE else [e for e in part.edges if e.source == state]
    return idle + [replace(e, target=_AFTER) if e.target == ACCEPT else e for e in edges]


def _loops(skip: Skip, absent: tuple[Atom, ...], limit: int) -> list[_Edge]:
    """The loops of a waiting state, for events that may be passed over; the caller sets source and target.

    2ⁿ loops for n of `absent` with a guard. `BudgetExceeded` if n exceeds `limit`.
    """
    plain = frozenset({NoneOf(frozenset(a.predicates for a in absent if a.guard is None))})
    predicates = plain if any(a.guard is None for a in absent) else frozenset()
    guarded = sum(atom.guard is not None for atom in absent)
    if guarded > limit:
        raise BudgetExceeded("negated_conditions", limit, guarded, "alternatives under one negation",
                             "raise negated_conditions, negate fewer, or give each a negation of its own")  # fmt: skip
    loops = [_Edge(INITIAL, predicates, frozenset(), INITIAL, (), skip is Skip.NEXT)]
    for atom in absent:
        if atom.guard is not None:
            # The event may pass if it does not satisfy the atom's predicates, or if the guard rejects it.
            other = NoneOf(frozenset({atom.predicates}))
            avoid = Avoid(atom.guard, atom.variables)
            loops = [replace(e, predicates=e.predicates | {other}) for e in loops] + [
                replace(e, predicates=e.predicates | atom.predicates, actions=(*e.actions, avoid)) for e in loops
            ]
    return loops


def _correlate(edge: _Edge, over: frozenset[str], guard: object) -> _Edge:
    actions = edge.actions
    if edge.variables & over:
        actions += (Take(guard, edge.variables & over),)
    if edge.target == ACCEPT:
        actions += (Leave(guard),)
    return replace(edge, actions=actions)


def _with_single_initial(part: _Part) -> tuple[_Edge, ...]:
    return (*(replace(e, source=INITIAL) for e in part.starts()), *part.edges)


def _strict(transitions: list[Transition]) -> list[Transition]:
    """The automaton of the runs whose marks are an interval: each state in three phases, nothing marked yet (0), in the
    interval (1), behind it (2)."""
    if any(t.otherwise for t in transitions):
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


def _trim(transitions: list[Transition]) -> list[Transition]:
    """The transitions that lie on a path from the initial state to acceptance."""
    reached = closure({INITIAL}, [(t.source, t.target) for t in transitions])
    useful = closure({ACCEPT}, [(t.target, t.source) for t in transitions])
    return [t for t in transitions if t.source in reached and t.target in useful]


def _merge_alike(transitions: list[Transition]) -> list[Transition]:
    """Merges states with the same future, see `alike`. The initial state stays 0."""
    states = sorted({q for t in transitions for q in (t.source, t.target) if q != ACCEPT} | {INITIAL})
    out: dict[int, list[Transition]] = {q: [] for q in states}
    for t in transitions:
        out[t.source].append(t)

    def future(q: int, block: Mapping[int, Hashable]) -> Hashable:
        return frozenset(
            (t.predicates, t.marks, block.get(t.target), t.actions, t.otherwise, t.label) for t in out[q]
        )  # ACCEPT has no block

    block = alike(states, lambda q: q != INITIAL, future) | {ACCEPT: ACCEPT}
    return list(dict.fromkeys(replace(t, source=block[t.source], target=block[t.target]) for t in transitions))


def _in_order_of_reach(transitions: list[Transition]) -> list[Transition]:
    """The same automaton with its states numbered breadth first, so that people can follow it."""
    numbers, todo = {ACCEPT: ACCEPT, INITIAL: INITIAL}, [INITIAL]
    for state in todo:
        for t in transitions:
            if t.source == state and t.target not in numbers:
                numbers[t.target] = len(numbers) - 1
                todo.append(t.target)
    return [replace(t, source=numbers[t.source], target=numbers[t.target]) for t in transitions]
