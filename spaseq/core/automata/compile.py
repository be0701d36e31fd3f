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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import assert_never

from spaseq.core.automata.cea import ACCEPT, CEA, INITIAL, Action, Again, Take, Transition
from spaseq.core.automata.edges import (
    AFTER,
    BEFORE,
    PASSES,
    UNSEEN,
    Edge,
    Part,
    Waits,
    Way,
    add_marks,
    choose,
    correlate,
    in_order,
    in_preference,
    pass_over,
    side_moves,
    too_many,
    with_few_ranks,
    with_numbered_ranks,
    without_ranks,
)
from spaseq.core.automata.gaps import begin_in_time, close_times, keep_times, open_times, opened_by, pass_in_time
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

_BESIDE = "a NOT of more than one event beside a condition on other events in a NOT is not run yet"
_CHOSEN = "a NOT with a condition on other events behind an optional part or a loop with -> is not run yet"
_INSTEAD = "write the part or loop with ALL, or join it by ;"


Firsts = Iterable[tuple[Border | None, Predicate]]
"""Predicates of the first event of matches with a border before them; of all matches if that is None."""
Marks = Mapping[tuple[bool, Border], str]
"""Variables for what must not come: True and what must not come behind a match, False and what not before it."""


def compile_pattern(
    pattern: Pattern,
    *,
    strict: bool = False,
    valuations: bool = False,
    negated: int = 8,
    shown: frozenset[str] | None = None,
    first: Firsts = (),
    products: int = 30_000,
    marks: Marks = MappingProxyType({}),
    kept: tuple[str, ...] = (),
) -> CEA:
    """The automaton whose accepting runs are the complex events of `pattern`.

    With `strict`, only those whose marked positions are an interval of the (partition's) stream: selection STRICT
    ([CEL] §4). With `valuations`, the label of a transition stands for the variables that take its event; if `shown` is
    given, only for those of them. Valuations that differ in other variables alone are then one. `first` holds of the
    events that matches may begin with. `marks`, with valuations: variables that take the first event, or the last, of
    matches with such a border; if nothing else takes it, `UNSEEN` does, too. So do those of `kept` with the event with
    which their time begins (`Lasting.last`). The size is linear in the pattern, with `strict` three times as large,
    but for conjunctions: their automata are products.

    Raises `BudgetExceeded` of `negated_conditions` if more than `negated` alternatives under one negation have guards,
    and of `conjunction_transitions` if conjunctions have more than `products` transitions together.
    """
    builder = _Builder(negated, products, frozenset(kept))
    part = builder.settle(builder.build(push_filters(pattern)))
    starts = tuple(open_times(_restrict_first(e, first), frozenset(kept)) for e in without_ranks(part.starts))
    edges = with_numbered_ranks(tuple(map(close_times, (*starts, *part.edges))))
    edges = tuple(_with_marks(e, marks) for e in edges) if marks else edges
    shown = None if shown is None else shown.union((UNSEEN,), marks.values(), kept)
    predicates = tuple(dict.fromkeys(p for e in edges for p in in_order(e.predicates)))
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


def _restrict_first(e: Edge, first: Firsts) -> Edge:
    """The edge of a first event, for events that `first` holds of."""
    return replace(e, predicates=e.predicates.union(p for border, p in first if border in (None, e.head)))


def _with_marks(e: Edge, marks: Marks) -> Edge:
    """The edge with the marks of the border before it, if it begins a match, and behind it, if it ends one."""
    borders = [(False, e.head)] * (e.source == INITIAL) + [(True, e.tail)] * (e.target == ACCEPT)
    return add_marks(e, frozenset(marks[border] for border in borders if border in marks))


def _in_one_order(ends: frozenset[frozenset[Predicate]]) -> list[frozenset[Predicate]]:
    """Conjunctions in an order that is the same in every process."""
    return sorted(ends, key=lambda end: [(type(p).__name__, str(p)) for p in in_order(end)])


class _Builder:
    """Hands out state numbers while the pattern is walked.

    `_ends` has the waiting states of skip-till-next with the events that end the waiting, as conjunctions of
    predicates; None if conditions on a run's registers decide that.
    """

    def __init__(self, negated: int, products: int, kept: frozenset[str]) -> None:
        self._states = INITIAL
        self._kept = kept
        self._negated = negated
        self._products, self._made = products, 0
        self._ends: dict[int, frozenset[frozenset[Predicate]] | None] = {}
        # Of an edge that leads to a waiting state: its actions, and the variables that keep its event.
        self._entering: dict[int, tuple[Action, ...]] = {}
        self._last: dict[int, frozenset[str]] = {}

    def _state(self) -> int:
        self._states += 1
        return self._states

    def build(self, pattern: Pattern) -> Part:
        match pattern:
            case Atom(predicates, variables, guard):
                actions = () if guard is None else (Take(guard, variables),)
                return Part((Edge(predicates, variables, ACCEPT, actions),), ())
            case As(child, variable):
                return self.build(child).map(
                    lambda e: replace(e, variables=e.variables | {variable}) if e.variables else e
                )
            case Filter(child, variable, predicate):
                return self.build(child).map(
                    lambda e: replace(e, predicates=e.predicates | {predicate}) if variable in e.variables else e
                )
            case Correlate(child, over, guard):
                return self.build(child).map(lambda e: correlate(e, over, guard))
            case Project(child, kept):
                return self.build(child).map(
                    lambda e: add_marks(replace(e, variables=e.variables & kept), e.variables & self._kept)
                )
            case Or(left, right):
                a, b = self.build(left), self.build(right)
                return Part(without_ranks(a.starts + b.starts), a.edges + b.edges, a.empty or b.empty)
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
        self, starts: tuple[Edge, ...], skip: Skip, absent: tuple[Atom, ...] = (), watched: tuple[Atom, ...] = ()
    ) -> tuple[int, list[Edge]]:
        """A state that waits for the first event of the part with the edges `starts`, and the edges that leave it."""
        state = self._state()
        edges = [replace(e, source=state) for e in (starts if skip is Skip.NEXT else without_ranks(starts))]
        if skip is not Skip.NONE:
            loops = pass_over(skip, absent, watched, self._negated)
            edges += [replace(e, source=state, target=state) for e in loops]
        if skip is Skip.NEXT:
            guarded = any(atom.guard is not None for atom in absent)
            self._ends[state] = None if guarded else frozenset(atom.predicates for atom in absent)
        return state, edges

    def _wait_without(self, starts: tuple[Edge, ...], never: Part) -> tuple[int, list[Edge]]:
        """As `_wait`, while no match of a pattern may be completed: a state for each set of states that the search for
        such a match may be in, which begins anew at each event.

        At each set, 2^n loops for n different conditions on events. `BudgetExceeded` if n exceeds the limit.
        """
        if any(e.actions or e.rank or e.has_ways for e in (*never.starts, *never.edges)):
            raise InternalError("a pattern between two parts with guards or preferences")
        states: dict[frozenset[int], int] = {frozenset(): self._state()}
        edges: list[Edge] = []
        for searched in (waiting := [frozenset[int]()]):  # it grows
            source = states[searched]
            edges += [replace(e, source=source) for e in without_ranks(starts)]
            for predicates, found in self._searches(never, searched):
                if found not in states:
                    states[found] = self._state()
                    waiting.append(found)
                edges.append(Edge(predicates, frozenset(), states[found], source=source))
        return states[frozenset()], edges

    def _searches(self, never: Part, searched: frozenset[int]) -> Iterator[tuple[frozenset[Predicate], frozenset[int]]]:
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

    def _sequence(self, node: Sequence, left: Part, right: Part) -> Part:
        empty = left.empty if left.empty is not None and right.empty is not None else None
        prefers = node.skip is Skip.NEXT
        again: tuple[Action, ...] = () if node.again is None else (Again(node.again),)
        starts, edges = left.starts, left.edges
        waits: Waits = {}
        waiting: list[Edge] = []
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
            starts, edges = (tuple(choose(e, waits, chosen) for e in some) for some in (starts, edges))
            edges = (*edges, *waiting)
        else:
            keep = right.empty is not None
            starts, edges = self._lead(
                starts, (*edges, *waiting), len(waiting), waits, prefers=prefers, keep=keep, actions=again
            )
        if left.empty is not None:
            preference = left.empty if prefers else Preference.EACH
            starts = in_preference(preference, starts, right.starts)
        return Part(starts, (*edges, *right.edges), empty)

    def _gaps(self, left: Part, starts: tuple[Edge, ...]) -> Iterator[tuple[Border, Border, tuple[Edge, ...]]]:
        """The gaps between a part and what begins with `starts`: one for each border behind the part and each before
        `starts`, with those that have it."""
        begin: dict[Border, list[Edge]] = {}
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

    def _gap(self, node: Sequence, begin: tuple[Edge, ...], border: Border) -> tuple[int, list[Edge]]:
        """A state between the two parts of a sequence, as `_wait`; `border`: what must not come there, besides."""
        absent, never = _split(border)
        begin = begin_in_time(begin, border)
        if node.never is None and not never:
            wait, leaving = self._wait(begin, node.skip, (*node.absent, *absent), node.watched)
            self._keep(wait, border)
            return wait, leaving
        if node.watched or any(atom.guard is not None for atom in (*node.absent, *absent)):
            raise UnsupportedFeature(_BESIDE, hint="keep one of the two")
        parts = [*([] if node.never is None else [node.never]), *never, *node.absent, *absent]
        return self._wait_without(begin, self.build(balance(Or, parts)))

    def _keep(self, wait: int, border: Border) -> None:
        """Note what an edge into the waiting state of a gap with this border keeps."""
        self._entering[wait], self._last[wait] = keep_times(border), opened_by(border)

    def _expect_no_times(self, waits: Waits) -> None:
        """Raises `UnsupportedFeature` if a run keeps a time in one of these states, in which it chooses."""
        if any(self._entering.get(wait) for some in waits.values() for wait in some):
            raise UnsupportedFeature(_CHOSEN, hint=_INSTEAD)

    def _add_borders(self, node: Bordered, child: Part) -> Part:
        """The part with what must not come before it, behind it and at the events that it passes over."""
        before, behind = frozenset(node.before), frozenset(node.behind)
        if node.within:
            none = frozenset({NoneOf(frozenset(atom.predicates for atom in node.within if atom.guard is None))})
            timed = [atom for atom in node.within if atom.guard is not None]
            if len(timed) > self._negated:
                raise too_many(self._negated, len(timed))
            child = self.settle(child)
            passes = (e if e.variables else replace(e, predicates=e.predicates | none) for e in child.edges)
            edges = ((e,) if e.variables else pass_in_time(e, timed) for e in passes)
            child = replace(child, edges=tuple(e for several in edges for e in several))
        starts = tuple(replace(e, head=e.head | before) for e in child.starts)
        return replace(child, starts=starts).map(lambda e: replace(e, tail=e.tail | behind))

    def _lead(
        self, starts: tuple[Edge, ...], edges: tuple[Edge, ...], apart: int, waits: Waits, *, prefers: bool,
        keep: bool, actions: tuple[Action, ...] = (),
    ) -> tuple[tuple[Edge, ...], tuple[Edge, ...]]:  # fmt: skip
        """The edges with every accepting one led on, with `actions`, to a state that waits for what the run prefers,
        and as one of `waits` does. Not those of the last `apart` edges. With `keep` they accept as well, with their
        ways. A run that prefers nothing here waits for its ways apart from `waits`."""
        states: dict[tuple[Way, ...], int] = {}
        own = len(edges) - apart
        part = Part(starts, edges[:own])
        settled = part if prefers else self.settle(part)

        def ahead(e: Edge) -> Iterator[Edge]:
            for wait in waits.get(e.tail, ()):
                entering = self._entering.get(wait, ())
                if e.has_ways:
                    if entering:
                        raise UnsupportedFeature(_CHOSEN, hint=_INSTEAD)
                    ways = (*e.before, (wait, e.exits + actions), *e.after)
                    yield replace(e, target=self._choice(ways, states), before=(), after=(), exits=())
                else:
                    led = replace(e, target=wait, actions=e.actions + entering + actions)
                    yield add_marks(led, self._kept & self._last.get(wait, frozenset())) if self._kept else led

        def lead(some: tuple[Edge, ...], unsettled: tuple[Edge, ...]) -> tuple[Edge, ...]:
            rest = (e for e in some if e.target != ACCEPT)
            kept = (e for e in unsettled if keep and e.target == ACCEPT)
            return (*rest, *kept, *(led for e in some if e.target == ACCEPT for led in ahead(e)))

        first, led = lead(settled.starts, part.starts), (*lead(settled.edges, part.edges), *edges[own:])
        return first, (*led, *self._choices(states, led))

    def _choice(self, ways: tuple[Way, ...], states: dict[tuple[Way, ...], int]) -> int:
        """The state that waits as all of `ways` do, in this order of preference."""
        if len(ways) == 1 and not ways[0][1]:
            return ways[0][0]
        if ways not in states:
            states[ways] = self._state()
        return states[ways]

    def _choices(self, states: dict[tuple[Way, ...], int], edges: Iterable[Edge]) -> list[Edge]:
        """The edges that leave the `states` that wait in several ways: each way has its own ranks, after those of the
        ways before it. An event that ends the waiting for one of them leaves the others."""
        if not states:
            return []
        leaving: dict[int, list[Edge]] = {}
        for e in edges:
            if e.rank != PASSES:
                leaving.setdefault(e.source, []).append(e)
        made: list[Edge] = []
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
                made.append(Edge(predicates, frozenset(), target, (), PASSES, source))
        return made

    def _passes(self, ways: tuple[Way, ...]) -> list[tuple[frozenset[Predicate], tuple[Way, ...]]]:
        """The conditions on an event that is passed over, each with the ways that are still waited for behind it."""
        found: list[tuple[frozenset[Predicate], tuple[Way, ...]]] = [(frozenset(), ())]
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

    def settle(self, part: Part) -> Part:
        """The part if nothing follows that a run could prefer: at its end it both accepts and waits for more."""
        if not any(e.has_ways for e in (*part.starts, *part.edges)):
            return part
        states: dict[tuple[Way, ...], int] = {}

        def go_on(e: Edge) -> Edge:
            return replace(e, target=self._choice((*e.before, *e.after), states), before=(), after=(), exits=())

        def end(some: tuple[Edge, ...]) -> tuple[Edge, ...]:
            ended = (
                replace(e, actions=e.actions + e.exits, before=(), after=(), exits=()) if e.has_ways else e
                for e in some
            )
            return (*ended, *(go_on(e) for e in some if e.has_ways))

        starts, edges = end(part.starts), end(part.edges)
        return replace(part, starts=starts, edges=(*edges, *self._choices(states, edges)))

    def _iterate(self, node: Iterate, child: Part) -> Part:
        prefers = node.skip is Skip.NEXT
        again: tuple[Action, ...] = () if node.again is None else (Again(node.again),)
        absent = tuple(Atom(stop, frozenset()) for stop in _in_one_order(node.stops))
        none = frozenset({NoneOf(node.stops)}) if absent else frozenset[Predicate]()
        child = replace(child, starts=tuple(replace(e, predicates=e.predicates | none) for e in child.starts))
        rounds = child.starts
        prefers_rounds = prefers and node.preference is not Preference.EACH
        if prefers_rounds:
            rounds = tuple(replace(e, actions=again + e.actions) for e in rounds)
        waits: Waits = {}
        waiting: list[Edge] = []
        for tail, head, begin in self._gaps(child, rounds):
            atoms, never = _split(tail | head)
            if not never:
                wait, leaving = self._wait(begin_in_time(begin, tail | head), node.skip, (*absent, *atoms))
                self._keep(wait, tail | head)
            elif any(atom.guard is not None for atom in atoms):
                raise UnsupportedFeature(_BESIDE, hint="keep one of the two")
            else:
                wait, leaving = self._wait_without(begin, self.build(balance(Or, [*never, *atoms, *absent])))
            waits.setdefault(tail, []).append(wait)
            waiting += leaving
        if prefers_rounds:
            self._expect_no_times(waits)
            return replace(child, edges=(*child.edges, *waiting)).map(lambda e: choose(e, waits, node.preference))
        starts, edges = self._lead(
            child.starts, (*child.edges, *waiting), 0, waits, prefers=prefers, keep=True, actions=again
        )
        return Part(starts, edges, child.empty)

    def _both(self, left: Part, right: Part) -> Part:
        """The product of two automata, whose runs may start and end at different events and may share events.

        No edge is made for an event that predicates exclude. So n parts of one event each make 2ⁿ states and, if the
        types of their events differ, about n 2ⁿ⁻¹ edges. If they may share events, they make up to 3ⁿ edges.
        """
        left, right = (with_few_ranks(self.settle(side)) for side in (left, right))
        ranks = 1 + max((e.rank for e in right.edges), default=0)
        first: tuple[int, int] = (BEFORE, BEFORE)
        numbers = {first: INITIAL}
        starts: list[Edge] = []
        edges: list[Edge] = []
        todo = [first]
        moves = side_moves(left), side_moves(right)
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
                    if target != (AFTER, AFTER) and target not in numbers:
                        numbers[target] = self._state()
                        todo.append(target)
                    edge = Edge(
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
        return Part(tuple(starts), tuple(edges), empty)

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
        said = [(type(p).__name__, str(p)) for p in in_order(pattern.predicates)]
        return f"{said} {sorted(pattern.variables)} {pattern.guard}"
    return f"{type(pattern).__name__}({', '.join(map(_text_of, children(pattern)))})"
