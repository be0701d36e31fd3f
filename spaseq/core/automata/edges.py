"""The valuation automaton of a pattern as it grows: its edges, the parts it is put together from, and their ranks.

`spaseq.core.automata.compile` builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from spaseq.core.automata.cea import ACCEPT, INITIAL, Action, Avoid, Leave, Take
from spaseq.core.errors import BudgetExceeded
from spaseq.core.pattern import Atom, Border, NoneOf, Predicate, Preference, Skip

UNSEEN: Final = "#unseen"
"""The variable of an event that a mark takes, and no variable of the pattern."""
PASSES = 1 << 30
"""The rank of the loop that passes over an event which nothing else takes, before ranks are numbered."""


Way = tuple[int, tuple[Action, ...]]
"""A waiting state, and the actions of a run that takes the event it waits for."""
Waits = dict[Border, list[int]]
"""The states that wait for what follows a part, for each of the borders behind it."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition of the valuation automaton: labelled by the variables that take the event, and by predicates.

    An edge to `ACCEPT` may have ways on to another round, or to an optional part, the best first. The run prefers those
    in `before` to what follows, and what follows to those in `after`. `exits` are then the actions of a run that goes
    on in any other way than these.

    `head`: what must not come before the first event of a part, of an edge that begins it. `tail`: what must not come
    behind its last event, of an edge to `ACCEPT`.
    """

    predicates: frozenset[Predicate]
    variables: frozenset[str]
    target: int
    actions: tuple[Action, ...] = ()
    rank: int = 0
    source: int = INITIAL
    before: tuple[Way, ...] = ()
    after: tuple[Way, ...] = ()
    exits: tuple[Action, ...] = ()
    head: Border = frozenset()
    tail: Border = frozenset()

    @property
    def has_ways(self) -> bool:
        """True if a run that accepts here may also go on in ways of its own."""
        return bool(self.before or self.after)


@dataclass(frozen=True, slots=True)
class Part:
    """The automaton of a subpattern: the edges of first events, without a source, and all others. `empty`: the
    preference between the part and nothing, if the part may take no event."""

    starts: tuple[Edge, ...]
    edges: tuple[Edge, ...]
    empty: Preference | None = None

    def map(self, change: Callable[[Edge], Edge]) -> Part:
        """The part with all edges changed."""
        return replace(self, starts=tuple(map(change, self.starts)), edges=tuple(map(change, self.edges)))


def add_marks(edge: Edge, names: frozenset[str]) -> Edge:
    """The edge with marks that take its event; if nothing else does, `UNSEEN` does, too."""
    unseen = frozenset((UNSEEN,)) if names and not edge.variables else frozenset[str]()
    return replace(edge, variables=edge.variables | names | unseen)


def in_order(predicates: frozenset[Predicate]) -> list[Predicate]:
    """A set of predicates in an order that is the same in every process."""
    return sorted(predicates, key=lambda p: (type(p).__name__, str(p)))


def choose(edge: Edge, waits: Waits, preference: Preference) -> Edge:
    """An accepting edge whose run may also wait in the state of `waits`, before or after what follows."""
    if edge.target != ACCEPT:
        return edge
    (wait,) = waits[edge.tail]  # steps and their loops have one border (`ceql.lowering`)
    way = (wait, edge.exits)
    if preference is Preference.GREEDY:
        return replace(edge, before=(*edge.before, way))
    return replace(edge, after=(way, *edge.after))


def in_preference(preference: Preference, part: tuple[Edge, ...], rest: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The first events of an optional part and of what follows it, in ranks if the run prefers one to the other."""
    if preference is Preference.EACH:
        return without_ranks(part + rest)
    first, second = (part, rest) if preference is Preference.GREEDY else (rest, part)
    least = 1 + max((e.rank for e in first), default=-1)
    return (*first, *(replace(e, rank=e.rank + least) for e in second))


def without_ranks(starts: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """First events of a run or of an alternative, of which none is preferred."""
    return tuple(replace(e, rank=0) if e.rank else e for e in starts)


def with_few_ranks(part: Part) -> Part:
    """The part with ranks numbered in each state, and none among its first events."""
    return replace(part, starts=without_ranks(part.starts), edges=with_numbered_ranks(part.edges))


def with_numbered_ranks(edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
    """The ranks of the edges that leave a state as 0, 1, 2 and so on."""
    ranks: dict[int, set[int]] = {}
    for e in edges:
        ranks.setdefault(e.source, set()).add(e.rank)
    numbers = {state: {rank: n for n, rank in enumerate(sorted(found))} for state, found in ranks.items()}
    return tuple(replace(e, rank=numbers[e.source][e.rank]) for e in edges)


BEFORE, AFTER = -2, -3
"""The state of a side of a conjunction that has not started, and of one that has ended."""


def side_moves(part: Part) -> dict[int, list[Edge]]:
    """The edges of one side of a conjunction by their state; if it has not started or has ended, it may pass over any
    event."""
    moves = {state: [Edge(frozenset(), frozenset(), state)] for state in (BEFORE, AFTER)}
    for state, e in (*((BEFORE, e) for e in part.starts), *((e.source, e) for e in part.edges)):
        moves.setdefault(state, []).append(replace(e, target=AFTER) if e.target == ACCEPT else e)
    return moves


def too_many(limit: int, guarded: int) -> BudgetExceeded:
    """The error for more alternatives under one negation than the limit."""
    return BudgetExceeded("negated_conditions", limit, guarded, "alternatives under one negation",
                          "raise negated_conditions, negate fewer, or give each a negation of its own")  # fmt: skip


def pass_over(skip: Skip, absent: tuple[Atom, ...], watched: tuple[Atom, ...], limit: int) -> list[Edge]:
    """The loops of a waiting state, for events that may be passed over; the caller sets source and target.

    2ⁿ loops for n of `absent` and `watched` with a guard. `BudgetExceeded` if n exceeds `limit`.
    """
    plain = frozenset({NoneOf(frozenset(a.predicates for a in absent if a.guard is None))})
    predicates = plain if any(a.guard is None for a in absent) else frozenset()
    guarded = sum(atom.guard is not None for atom in (*absent, *watched))
    if guarded > limit:
        raise too_many(limit, guarded)
    loops = [Edge(predicates, frozenset(), INITIAL, (), PASSES if skip is Skip.NEXT else 0)]
    for atom in (*absent, *watched):
        if atom.guard is not None:
            # The event may pass if it does not satisfy the atom's predicates, or if the guard rejects it. One that is
            # watched passes; the guard notes it.
            other = NoneOf(frozenset({atom.predicates}))
            meets = (Take if atom in watched else Avoid)(atom.guard, atom.variables)
            loops = [replace(e, predicates=e.predicates | {other}) for e in loops] + [
                replace(e, predicates=e.predicates | atom.predicates, actions=(*e.actions, meets)) for e in loops
            ]
    return loops


def correlate(edge: Edge, over: frozenset[str], guard: object) -> Edge:
    """The edge of a part with a guard over some variables: it takes their events, and leaves as the part ends."""
    actions = edge.actions
    if edge.variables & over:
        actions += (Take(guard, edge.variables & over),)
    if edge.has_ways:
        return replace(edge, actions=actions, exits=(*edge.exits, Leave(guard)))
    if edge.target == ACCEPT:
        actions += (Leave(guard),)
    return replace(edge, actions=actions)
