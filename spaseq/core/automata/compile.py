"""Compile a pattern to a complex event automaton ([CORE], proof of Theorem 2; [CEL] Theorem 3).

The construction is the paper's, by induction on the pattern, with two differences. Final states are the target `ACCEPT`
(see `spaseq.core.automata.cea`). In a sequence of φ and ψ, the paper leads every transition into a final state of φ to
each initial state of ψ. Here ψ's initial states are joined into one waiting state. Its loop passes over the events in
between, and with `Skip.NEXT` it has to see all transitions of ψ's first event. At the end, states with the same future
are merged.

A run that may take another round, or an optional part, or what follows them, waits in one state for all of these;
ranks say which it prefers. What follows is known only to a sequence around. Until then the edges that accept carry the
waiting states they could also lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import Final, assert_never

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Avoid, Leave, Take, Transition
from spaseq.core.automata.gaps import begin_in_time, keep_times, pass_in_time
from spaseq.core.automata.tidy import in_order_of_reach, merge_alike, strict_phases, trim
from spaseq.core.errors import BudgetExceeded, InternalError, UnsupportedFeature
from spaseq.core.pattern import (
    And,
    As,
    Atom,
    Border,
    Bordered,
    Correlate,
    Filter,
    Iterate,
    NoneOf,
    Optional,
    Or,
    Pattern,
    Predicate,
    Preference,
    Project,
    Sequence,
    Skip,
    are_exclusive,
    balance,
    push_filters,
)
from spaseq.core.trees import children, fold

_PASS = 1 << 30
"""The rank of the loop that passes over an event which nothing else takes, before ranks are numbered."""
_BESIDE = "a NOT of more than one event beside a condition on other events in a NOT is not run yet"
_CHOSEN = "a NOT with a condition on other events behind an optional part or a loop with -> is not run yet"
_INSTEAD = "write the part or loop with ALL, or join it by ;"


Marks = Mapping[tuple[bool, Border], str]
"""Variables for what must not come: True and what must not come behind a match, False and what not before it."""
UNSEEN: Final = "#unseen"
"""The variable of an event that a mark takes, and no variable of the pattern."""

_Way = tuple[int, tuple[Action, ...]]
"""A waiting state, and the actions of a run that takes the event it waits for."""
_Waits = dict[Border, list[int]]
"""The states that wait for what follows a part, for each of the borders behind it."""


@dataclass(frozen=True, slots=True)
class _Edge:
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
    before: tuple[_Way, ...] = ()
    after: tuple[_Way, ...] = ()
    exits: tuple[Action, ...] = ()
    head: Border = frozenset()
    tail: Border = frozenset()

    @property
    def has_ways(self) -> bool:
        return bool(self.before or self.after)


@dataclass(frozen=True, slots=True)
class _Part:
    """The automaton of a subpattern: the edges of first events, without a source, and all others. `empty`: the
    preference between the part and nothing, if the part may take no event."""

    starts: tuple[_Edge, ...]
    edges: tuple[_Edge, ...]
    empty: Preference | None = None

    def map(self, change: Callable[[_Edge], _Edge]) -> _Part:
        return replace(self, starts=tuple(map(change, self.starts)), edges=tuple(map(change, self.edges)))


def compile_pattern(
    pattern: Pattern,
    *,
    strict: bool = False,
    valuations: bool = False,
    negated: int = 8,
    shown: frozenset[str] | None = None,
    first: Predicate | None = None,
    products: int = 30_000,
    marks: Marks = MappingProxyType({}),
) -> CEA:
    """The automaton whose accepting runs are the complex events of `pattern`.

    With `strict`, only those whose marked positions are an interval of the (partition's) stream: selection STRICT
    ([CEL] §4). With `valuations`, the label of a transition stands for the variables that take its event; if `shown` is
    given, only for those of them. Valuations that differ in other variables alone are then one. `first` holds of the
    events that a match may begin with. `marks`, with valuations: variables that take the first event, or the last, of
    matches with such a border; if nothing else takes it, `UNSEEN` does, too. The size is linear in the pattern, with
    `strict` three times as large, but for conjunctions: their automata are products.

    Raises `BudgetExceeded` of `negated_conditions` if more than `negated` alternatives under one negation have guards,
    and of `conjunction_transitions` if conjunctions have more than `products` transitions together.
    """
    builder = _Builder(negated, products)
    part = builder.settle(builder.build(push_filters(pattern)))
    starts = _without_ranks(part.starts)
    if first is not None:
        starts = tuple(replace(e, predicates=e.predicates | {first}) for e in starts)
    edges = _with_numbered_ranks((*starts, *part.edges))
    edges = tuple(_with_marks(e, marks) for e in edges) if marks else edges
    shown = None if shown is None else shown.union((UNSEEN,), marks.values())
    predicates = tuple(dict.fromkeys(p for e in edges for p in _in_order(e.predicates)))
    index = {p: i for i, p in enumerate(predicates)}
    of_edge = [e.variables if shown is None else e.variables & shown for e in edges]
    marking = {said for e, said in zip(edges, of_edge, strict=True) if e.variables}
    labels = sorted(marking, key=sorted) if valuations else []
    transitions = [
        Transition(e.source, frozenset(index[p] for p in e.predicates), bool(e.variables), e.target, e.actions,
                   e.rank, labels.index(said) if e.variables and valuations else 0)
        for e, said in zip(edges, of_edge, strict=True)
    ]  # fmt: skip
    if strict:
        transitions = strict_phases(transitions)
    transitions = in_order_of_reach(merge_alike(trim(transitions)))
    used = sorted({p for t in transitions for p in t.predicates})
    renumber = {p: i for i, p in enumerate(used)}
    states = 1 + max((s for t in transitions for s in (t.source, t.target)), default=0)
    out: list[list[Transition]] = [[] for _ in range(states)]
    for t in transitions:
        out[t.source].append(replace(t, predicates=frozenset(renumber[p] for p in t.predicates)))
    said = tuple(labels) if valuations else None
    return CEA(states, tuple(map(tuple, out)), tuple(predicates[p] for p in used), said)


def _with_marks(e: _Edge, marks: Marks) -> _Edge:
    """The edge with the marks of the border before it, if it begins a match, and behind it, if it ends one."""
    borders = [(False, e.head)] * (e.source == INITIAL) + [(True, e.tail)] * (e.target == ACCEPT)
    names = frozenset(marks[border] for border in borders if border in marks)
    unseen = frozenset((UNSEEN,)) if names and not e.variables else frozenset[str]()
    return replace(e, variables=e.variables | names | unseen)


def _in_order(predicates: frozenset[Predicate]) -> list[Predicate]:
    """A set of predicates in an order that is the same in every process."""
    return sorted(predicates, key=lambda p: (type(p).__name__, str(p)))


def _in_one_order(ends: frozenset[frozenset[Predicate]]) -> list[frozenset[Predicate]]:
    """Conjunctions in an order that is the same in every process."""
    return sorted(ends, key=lambda end: [(type(p).__name__, str(p)) for p in _in_order(end)])


class _Builder:
    """Hands out state numbers while the pattern is walked.

    `_ends` has the waiting states of skip-till-next with the events that end the waiting, as conjunctions of
    predicates; None if conditions on a run's registers decide that.
    """

    def __init__(self, negated: int, products: int) -> None:
        self._states = INITIAL
        self._negated = negated
        self._products, self._made = products, 0
        self._ends: dict[int, frozenset[frozenset[Predicate]] | None] = {}
        self._entering: dict[int, tuple[Action, ...]] = {}  # the actions of an edge that leads to a waiting state

    def _state(self) -> int:
        self._states += 1
        return self._states

    def build(self, pattern: Pattern) -> _Part:
        match pattern:
            case Atom(predicates, variables, guard):
                actions = () if guard is None else (Take(guard, variables),)
                return _Part((_Edge(predicates, variables, ACCEPT, actions),), ())
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
                return _Part(_without_ranks(a.starts + b.starts), a.edges + b.edges, a.empty or b.empty)
            case Sequence():
                return self._sequence(pattern, self.build(pattern.left), self.build(pattern.right))
            case And(left, right):
                self._expect_products(_least_products(pattern))
                return self._both(self.build(left), self.build(right))
            case Iterate():
                return self._iterate(pattern, self.build(pattern.child))
            case Optional(child, preference):
                return replace(self.build(child), empty=preference)
            case Bordered():
                return self._add_borders(pattern, self.build(pattern.child))
            case _:
                assert_never(pattern)  # type: ignore[arg-type]

    def _wait(
        self, starts: tuple[_Edge, ...], skip: Skip, absent: tuple[Atom, ...] = (), watched: tuple[Atom, ...] = ()
    ) -> tuple[int, list[_Edge]]:
        """A state that waits for the first event of the part with the edges `starts`, and the edges that leave it."""
        state = self._state()
        edges = [replace(e, source=state) for e in (starts if skip is Skip.NEXT else _without_ranks(starts))]
        if skip is not Skip.NONE:
            loops = _loops(skip, absent, watched, self._negated)
            edges += [replace(e, source=state, target=state) for e in loops]
        if skip is Skip.NEXT:
            guarded = any(atom.guard is not None for atom in absent)
            self._ends[state] = None if guarded else frozenset(atom.predicates for atom in absent)
        return state, edges

    def _wait_without(self, starts: tuple[_Edge, ...], never: _Part) -> tuple[int, list[_Edge]]:
        """As `_wait`, while no match of a pattern may be completed: a state for each set of states that the search for
        such a match may be in, which begins anew at each event.

        At each set, 2^n loops for n different conditions on events. `BudgetExceeded` if n exceeds the limit.
        """
        if any(e.actions or e.rank or e.has_ways for e in (*never.starts, *never.edges)):
            raise InternalError("a pattern between two parts with guards or preferences")
        states: dict[frozenset[int], int] = {frozenset(): self._state()}
        edges: list[_Edge] = []
        for searched in (waiting := [frozenset[int]()]):  # it grows
            source = states[searched]
            edges += [replace(e, source=source) for e in _without_ranks(starts)]
            for predicates, found in self._searches(never, searched):
                if found not in states:
                    states[found] = self._state()
                    waiting.append(found)
                edges.append(_Edge(predicates, frozenset(), states[found], source=source))
        return states[frozenset()], edges

    def _searches(
        self, never: _Part, searched: frozenset[int]
    ) -> Iterator[tuple[frozenset[Predicate], frozenset[int]]]:
        """The sets of states that the search may be in behind an event, each with the predicates that lead to it; no
        set that completes a match. No event satisfies two of these conjunctions."""
        moves = [(e.predicates, e.target) for e in never.starts]
        moves += [(e.predicates, e.target) for e in never.edges if e.source in searched]
        conditions = _in_one_order(frozenset(predicates for predicates, _ in moves if predicates))
        if len(conditions) > self._negated:
            raise BudgetExceeded("negated_conditions", self._negated, len(conditions), "conditions under one negation",
                                 "raise negated_conditions, or negate a shorter part")  # fmt: skip
        for truth in product((False, True), repeat=len(conditions)):
            true = {condition for condition, holds in zip(conditions, truth, strict=True) if holds}
            found = frozenset(target for predicates, target in moves if not predicates or predicates in true)
            if ACCEPT not in found:
                false = frozenset(conditions) - true
                none = frozenset({NoneOf(false)}) if false else frozenset[Predicate]()
                yield none.union(*true), found

    def _sequence(self, node: Sequence, left: _Part, right: _Part) -> _Part:
        empty = left.empty if left.empty is not None and right.empty is not None else None
        prefers = node.skip is Skip.NEXT
        again: tuple[Action, ...] = () if node.again is None else (Again(node.again),)
        starts, edges = left.starts, left.edges
        waits: _Waits = {}
        waiting: list[_Edge] = []
        for tail, head, begin in self._gaps(left, right.starts):
            wait, leaving = self._gap(node, begin, tail | head)
            waits.setdefault(tail, []).append(wait)
            waiting += leaving
        if prefers and right.empty in (Preference.GREEDY, Preference.RELUCTANT):
            if again:
                raise InternalError("rounds that free variables, of which a run prefers some")
            # What follows this sequence is not known yet.
            chosen = right.empty
            self._expect_no_times(waits)
            starts, edges = (tuple(_choose(e, waits, chosen) for e in some) for some in (starts, edges))
            edges = (*edges, *waiting)
        else:
            keep = right.empty is not None
            starts, edges = self._lead(
                starts, (*edges, *waiting), len(waiting), waits, prefers=prefers, keep=keep, actions=again
            )
        if left.empty is not None:
            preference = left.empty if prefers else Preference.EACH
            starts = _in_preference(preference, starts, right.starts)
        return _Part(starts, (*edges, *right.edges), empty)

    def _gaps(self, left: _Part, starts: tuple[_Edge, ...]) -> Iterator[tuple[Border, Border, tuple[_Edge, ...]]]:
        """The gaps between a part and what begins with `starts`: one for each border behind the part and each before
        `starts`, with those that have it."""
        begin: dict[Border, list[_Edge]] = {}
        for e in starts:
            begin.setdefault(e.head, []).append(e)
        tails = dict.fromkeys(e.tail for e in (*left.starts, *left.edges) if e.target == ACCEPT)
        if (number := len(tails) * len(begin)) > 1 << self._negated:
            raise BudgetExceeded("negated_conditions", self._negated, (number - 1).bit_length(),
                                 "alternatives with NOTs of their own at one place, or pairs of them",
                                 "raise negated_conditions, or write fewer of them")  # fmt: skip
        for tail in tails:
            for head, some in begin.items():
                yield tail, head, tuple(replace(e, head=frozenset()) for e in some)

    def _gap(self, node: Sequence, begin: tuple[_Edge, ...], border: Border) -> tuple[int, list[_Edge]]:
        """A state between the two parts of a sequence, as `_wait`; `border`: what must not come there, besides."""
        absent, never = _split(border)
        begin = begin_in_time(begin, border)
        if node.never is None and not never:
            wait, leaving = self._wait(begin, node.skip, (*node.absent, *absent), node.watched)
            self._entering[wait] = keep_times(border)
            return wait, leaving
        if node.watched or any(atom.guard is not None for atom in (*node.absent, *absent)):
            raise UnsupportedFeature(_BESIDE, hint="keep one of the two")
        parts = [*([] if node.never is None else [node.never]), *never, *node.absent, *absent]
        return self._wait_without(begin, self.build(balance(Or, parts)))

    def _expect_no_times(self, waits: _Waits) -> None:
        """Raises `UnsupportedFeature` if a run keeps a time in one of these states, in which it chooses."""
        if any(self._entering.get(wait) for some in waits.values() for wait in some):
            raise UnsupportedFeature(_CHOSEN, hint=_INSTEAD)

    def _add_borders(self, node: Bordered, child: _Part) -> _Part:
        """The part with what must not come before it, behind it and at the events that it passes over."""
        before, behind = frozenset(node.before), frozenset(node.behind)
        if node.within:
            none = frozenset({NoneOf(frozenset(atom.predicates for atom in node.within if atom.guard is None))})
            timed = [atom for atom in node.within if atom.guard is not None]
            if len(timed) > self._negated:
                raise _too_many(self._negated, len(timed))
            child = self.settle(child)
            passes = (e if e.variables else replace(e, predicates=e.predicates | none) for e in child.edges)
            edges = ((e,) if e.variables else pass_in_time(e, timed) for e in passes)
            child = replace(child, edges=tuple(e for several in edges for e in several))
        starts = tuple(replace(e, head=e.head | before) for e in child.starts)
        return replace(child, starts=starts).map(lambda e: replace(e, tail=e.tail | behind))

    def _lead(
        self, starts: tuple[_Edge, ...], edges: tuple[_Edge, ...], apart: int, waits: _Waits, *, prefers: bool,
        keep: bool, actions: tuple[Action, ...] = (),
    ) -> tuple[tuple[_Edge, ...], tuple[_Edge, ...]]:  # fmt: skip
        """The edges with every accepting one led on, with `actions`, to a state that waits for what the run prefers,
        and as one of `waits` does. Not those of the last `apart` edges. With `keep` they accept as well, with their
        ways. A run that prefers nothing here waits for its ways apart from `waits`."""
        states: dict[tuple[_Way, ...], int] = {}
        own = len(edges) - apart
        part = _Part(starts, edges[:own])
        settled = part if prefers else self.settle(part)

        def ahead(e: _Edge) -> Iterator[_Edge]:
            for wait in waits.get(e.tail, ()):
                entering = self._entering.get(wait, ())
                if e.has_ways:
                    if entering:
                        raise UnsupportedFeature(_CHOSEN, hint=_INSTEAD)
                    ways = (*e.before, (wait, e.exits + actions), *e.after)
                    yield replace(e, target=self._choice(ways, states), before=(), after=(), exits=())
                else:
                    yield replace(e, target=wait, actions=e.actions + entering + actions)

        def lead(some: tuple[_Edge, ...], unsettled: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
            rest = (e for e in some if e.target != ACCEPT)
            kept = (e for e in unsettled if keep and e.target == ACCEPT)
            return (*rest, *kept, *(led for e in some if e.target == ACCEPT for led in ahead(e)))

        first, led = lead(settled.starts, part.starts), (*lead(settled.edges, part.edges), *edges[own:])
        return first, (*led, *self._choices(states, led))

    def _choice(self, ways: tuple[_Way, ...], states: dict[tuple[_Way, ...], int]) -> int:
        """The state that waits as all of `ways` do, in this order of preference."""
        if len(ways) == 1 and not ways[0][1]:
            return ways[0][0]
        if ways not in states:
            states[ways] = self._state()
        return states[ways]

    def _choices(self, states: dict[tuple[_Way, ...], int], edges: Iterable[_Edge]) -> list[_Edge]:
        """The edges that leave the `states` that wait in several ways: each way has its own ranks, after those of the
        ways before it. An event that ends the waiting for one of them leaves the others."""
        if not states:
            return []
        leaving: dict[int, list[_Edge]] = {}
        for e in edges:
            if e.rank != _PASS:
                leaving.setdefault(e.source, []).append(e)
        made: list[_Edge] = []
        todo = list(states)
        for ways in todo:
            source, rank = states[ways], 0
            for way, actions in ways:
                made += [
                    replace(e, source=source, rank=rank + e.rank, actions=actions + e.actions)
                    for e in leaving.get(way, ())
                ]
                rank += 1 + max((e.rank for e in leaving.get(way, ())), default=-1)
            for predicates, left in self._passes(ways):
                target = self._choice(left, states)
                if left in states and left not in todo:
                    todo.append(left)
                made.append(_Edge(predicates, frozenset(), target, (), _PASS, source))
        return made

    def _passes(self, ways: tuple[_Way, ...]) -> list[tuple[frozenset[Predicate], tuple[_Way, ...]]]:
        """The conditions on an event that is passed over, each with the ways that are still waited for behind it."""
        found: list[tuple[frozenset[Predicate], tuple[_Way, ...]]] = [(frozenset(), ())]
        for way in ways:
            ends = self._ends[way[0]]
            if ends is None:
                raise UnsupportedFeature(_CHOSEN, hint=_INSTEAD)
            stays = frozenset({NoneOf(ends)}) if ends else frozenset()
            found = [(known | stays, (*left, way)) for known, left in found] + [
                (known | end, left) for known, left in found for end in _in_one_order(ends)
            ]
            if len(found) > 1 << self._negated:
                raise BudgetExceeded("negated_conditions", self._negated, (len(found) - 1).bit_length(),
                                     "alternatives that end loops at one place, or pairs of them",
                                     "raise negated_conditions, or end fewer loops by UNTIL")  # fmt: skip
        return [(predicates, left) for predicates, left in found if left]

    def settle(self, part: _Part) -> _Part:
        """The part if nothing follows that a run could prefer: at its end it both accepts and waits for more."""
        if not any(e.has_ways for e in (*part.starts, *part.edges)):
            return part
        states: dict[tuple[_Way, ...], int] = {}

        def go_on(e: _Edge) -> _Edge:
            return replace(e, target=self._choice((*e.before, *e.after), states), before=(), after=(), exits=())

        def end(some: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
            ended = (
                replace(e, actions=e.actions + e.exits, before=(), after=(), exits=()) if e.has_ways else e
                for e in some
            )
            return (*ended, *(go_on(e) for e in some if e.has_ways))

        starts, edges = end(part.starts), end(part.edges)
        return replace(part, starts=starts, edges=(*edges, *self._choices(states, edges)))

    def _iterate(self, node: Iterate, child: _Part) -> _Part:
        prefers = node.skip is Skip.NEXT
        again: tuple[Action, ...] = () if node.again is None else (Again(node.again),)
        absent = tuple(Atom(stop, frozenset()) for stop in _in_one_order(node.stops))
        none = frozenset({NoneOf(node.stops)}) if absent else frozenset[Predicate]()
        child = replace(child, starts=tuple(replace(e, predicates=e.predicates | none) for e in child.starts))
        rounds = child.starts
        prefers_rounds = prefers and node.preference is not Preference.EACH
        if prefers_rounds:
            rounds = tuple(replace(e, actions=again + e.actions) for e in rounds)
        waits: _Waits = {}
        waiting: list[_Edge] = []
        for tail, head, begin in self._gaps(child, rounds):
            atoms, never = _split(tail | head)
            if not never:
                wait, leaving = self._wait(begin_in_time(begin, tail | head), node.skip, (*absent, *atoms))
                self._entering[wait] = keep_times(tail | head)
            elif any(atom.guard is not None for atom in atoms):
                raise UnsupportedFeature(_BESIDE, hint="keep one of the two")
            else:
                wait, leaving = self._wait_without(begin, self.build(balance(Or, [*never, *atoms, *absent])))
            waits.setdefault(tail, []).append(wait)
            waiting += leaving
        if prefers_rounds:
            self._expect_no_times(waits)
            return replace(child, edges=(*child.edges, *waiting)).map(lambda e: _choose(e, waits, node.preference))
        starts, edges = self._lead(
            child.starts, (*child.edges, *waiting), 0, waits, prefers=prefers, keep=True, actions=again
        )
        return _Part(starts, edges, child.empty)

    def _both(self, left: _Part, right: _Part) -> _Part:
        """The product of two automata, whose runs may start and end at different events and may share events.

        No edge is made for an event that predicates exclude. So n parts of one event each make 2ⁿ states and, if the
        types of their events differ, about n 2ⁿ⁻¹ edges. If they may share events, they make up to 3ⁿ edges.
        """
        left, right = (_with_few_ranks(self.settle(side)) for side in (left, right))
        ranks = 1 + max((e.rank for e in right.edges), default=0)
        first: tuple[int, int] = (_BEFORE, _BEFORE)
        numbers = {first: INITIAL}
        starts: list[_Edge] = []
        edges: list[_Edge] = []
        todo = [first]
        moves = _side_moves(left), _side_moves(right)
        exclusive = cache(are_exclusive)
        while todo:
            pair = todo.pop()
            for a in moves[0].get(pair[0], ()):  # no edge may leave a state of a conjunction inside
                for b in moves[1].get(pair[1], ()):
                    target = (a.target, b.target)
                    if target == first:
                        continue  # neither part starts here, and a run begins with the first event of one
                    if exclusive(a.predicates, b.predicates):
                        continue
                    self._made += 1
                    self._expect_products(0)
                    if target != (_AFTER, _AFTER) and target not in numbers:
                        numbers[target] = self._state()
                        todo.append(target)
                    edge = _Edge(
                        a.predicates | b.predicates,
                        a.variables | b.variables,
                        numbers.get(target, ACCEPT),
                        a.actions + b.actions,
                        a.rank * ranks + b.rank,  # each side moves by its own least rank, whatever the other does
                        numbers[pair],
                    )
                    (starts if pair == first else edges).append(edge)
        alone = (side for side, other in ((left, right), (right, left)) if other.empty is not None)
        for side in alone:
            starts += side.starts
            edges += side.edges
        empty = left.empty if right.empty is not None else None
        return _Part(tuple(starts), tuple(edges), empty)

    def _expect_products(self, more: int) -> None:
        """Raises `BudgetExceeded` if the conjunctions have too many transitions with so many `more`."""
        if self._made + more > self._products:
            raise BudgetExceeded("conjunction_transitions", self._products, self._made + more, "transitions of AND",
                                 "evaluators 'auto' and 'chain' list the matches of SELECT ALL without an automaton; "
                                 "for all else raise conjunction_transitions, or write fewer parts")  # fmt: skip


def _least_products(pattern: And) -> int:
    """The least number of transitions that a conjunction makes, with those of smaller conjunctions inside it.

    A conjunction of n parts makes n 2ⁿ⁻¹ + 2ⁿ - 2 itself; more than 50 parts count as 50. Behind some of the parts,
    each other part may start, and any event may be passed over. AND of events of different types makes no more.
    """

    def count(node: Pattern, below: list[tuple[int, int]]) -> tuple[int, int]:
        """The parts, and the transitions."""
        match node:
            case And():
                parts = min(below[0][0] + below[1][0], 50)  # more would be a number that no one can read
                return parts, below[0][1] + below[1][1] + parts * 2 ** (parts - 1) + 2**parts - 2
            case As() | Filter() | Correlate() | Project():
                return below[0]
        return 1, 0

    return fold(pattern, count)[1]


def _split(border: Border) -> tuple[list[Atom], list[Pattern]]:
    """The single events that must not come, and the patterns of several, in an order that is the same in every
    process."""
    found = sorted((absent.pattern for absent in border), key=_text_of)
    return [p for p in found if isinstance(p, Atom)], [p for p in found if not isinstance(p, Atom)]


def _text_of(pattern: Pattern) -> str:
    """A text that is the same in every process, for equal patterns alone."""
    if isinstance(pattern, Atom):
        said = [(type(p).__name__, str(p)) for p in _in_order(pattern.predicates)]
        return f"{said} {sorted(pattern.variables)} {pattern.guard}"
    return f"{type(pattern).__name__}({', '.join(map(_text_of, children(pattern)))})"


def _choose(edge: _Edge, waits: _Waits, preference: Preference) -> _Edge:
    """An accepting edge whose run may also wait in the state of `waits`, before or after what follows."""
    if edge.target != ACCEPT:
        return edge
    (wait,) = waits[edge.tail]  # steps and their loops have one border (`ceql.lowering`)
    way = (wait, edge.exits)
    if preference is Preference.GREEDY:
        return replace(edge, before=(*edge.before, way))
    return replace(edge, after=(way, *edge.after))


def _in_preference(preference: Preference, part: tuple[_Edge, ...], rest: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
    """The first events of an optional part and of what follows it, in ranks if the run prefers one to the other."""
    if preference is Preference.EACH:
        return _without_ranks(part + rest)
    first, second = (part, rest) if preference is Preference.GREEDY else (rest, part)
    least = 1 + max((e.rank for e in first), default=-1)
    return (*first, *(replace(e, rank=e.rank + least) for e in second))


def _without_ranks(starts: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
    """First events of a run or of an alternative, of which none is preferred."""
    return tuple(replace(e, rank=0) if e.rank else e for e in starts)


def _with_few_ranks(part: _Part) -> _Part:
    """The part with ranks numbered in each state, and none among its first events."""
    return replace(part, starts=_without_ranks(part.starts), edges=_with_numbered_ranks(part.edges))


def _with_numbered_ranks(edges: tuple[_Edge, ...]) -> tuple[_Edge, ...]:
    """The ranks of the edges that leave a state as 0, 1, 2 and so on."""
    ranks: dict[int, set[int]] = {}
    for e in edges:
        ranks.setdefault(e.source, set()).add(e.rank)
    numbers = {state: {rank: n for n, rank in enumerate(sorted(found))} for state, found in ranks.items()}
    return tuple(replace(e, rank=numbers[e.source][e.rank]) for e in edges)


_BEFORE, _AFTER = -2, -3
"""The state of a side of a conjunction that has not started, and of one that has ended."""


def _side_moves(part: _Part) -> dict[int, list[_Edge]]:
    """The edges of one side of a conjunction by their state; if it has not started or has ended, it may pass over any
    event."""
    moves = {state: [_Edge(frozenset(), frozenset(), state)] for state in (_BEFORE, _AFTER)}
    for state, e in (*((_BEFORE, e) for e in part.starts), *((e.source, e) for e in part.edges)):
        moves.setdefault(state, []).append(replace(e, target=_AFTER) if e.target == ACCEPT else e)
    return moves


def _too_many(limit: int, guarded: int) -> BudgetExceeded:
    return BudgetExceeded("negated_conditions", limit, guarded, "alternatives under one negation",
                          "raise negated_conditions, negate fewer, or give each a negation of its own")  # fmt: skip


def _loops(skip: Skip, absent: tuple[Atom, ...], watched: tuple[Atom, ...], limit: int) -> list[_Edge]:
    """The loops of a waiting state, for events that may be passed over; the caller sets source and target.

    2ⁿ loops for n of `absent` and `watched` with a guard. `BudgetExceeded` if n exceeds `limit`.
    """
    plain = frozenset({NoneOf(frozenset(a.predicates for a in absent if a.guard is None))})
    predicates = plain if any(a.guard is None for a in absent) else frozenset()
    guarded = sum(atom.guard is not None for atom in (*absent, *watched))
    if guarded > limit:
        raise _too_many(limit, guarded)
    loops = [_Edge(predicates, frozenset(), INITIAL, (), _PASS if skip is Skip.NEXT else 0)]
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


def _correlate(edge: _Edge, over: frozenset[str], guard: object) -> _Edge:
    actions = edge.actions
    if edge.variables & over:
        actions += (Take(guard, edge.variables & over),)
    if edge.has_ways:
        return replace(edge, actions=actions, exits=(*edge.exits, Leave(guard)))
    if edge.target == ACCEPT:
        actions += (Leave(guard),)
    return replace(edge, actions=actions)
