"""A pattern as a disjunction of branches, each a conjunction that can be evaluated in any order ([Lazy] §5.2).

A *branch* is a set of leaves, one event each, with a partial order of them, and conditions on tuples of them. A
sequence is a conjunction with order (the footnote of §5.2), a partial sequence one with less order (§4.3). So And,
Sequence and Or distribute as in a Boolean formula.

An iteration `φ+` is `φ* ; φ`. Its last round becomes leaves of the branch like any others. The rounds before it become
a `Rounds`, which is generated once all leaves have their events ([Lazy] §4.5 puts the iterated type last in the order).
So all missing events of an iteration lie between events that are known, and an instance only ever waits for single
events.

A variable is the set of leaves it takes. Every leaf has a number of its own, also in each copy of a round.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np

from spaseq.core.errors import UnsupportedFeature
from spaseq.core.pattern import (
    And,
    As,
    Atom,
    Batch,
    Bordered,
    Correlate,
    Filter,
    Iterate,
    Optional,
    Or,
    Pattern,
    Predicate,
    Project,
    Sequence,
    Skip,
)

BRANCHES: Final = 64
"""Branches that a pattern may have: each is an automaton of its own."""
LEAVES: Final = 24
"""Leaves that a branch may have, those of rounds included."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One event that satisfies `predicates`. One without `variables` is not marked, but is in the interval."""

    number: int
    predicates: frozenset[Predicate]
    variables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Test:
    """A guard, and for each of its variables the leaves that the variable takes in the guard's part of the pattern.

    Not `whole`: it holds for every choice of one event for each variable. `whole`: it is about all events at once, as
    an aggregate is.
    """

    guard: Hashable
    variables: tuple[tuple[str, frozenset[int]], ...]
    whole: bool

    @property
    def leaves(self) -> frozenset[int]:
        """Of all variables together."""
        return frozenset[int]().union(*(leaves for _, leaves in self.variables))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One kind of event that must not come: `predicates` hold, and `test`, in which it is `mark`, for all choices.

    With `clears`, the test says the opposite: an event for which it holds for all choices may come ([Lazy] Pattern 4).
    """

    predicates: frozenset[Predicate]
    mark: str
    test: Test | None
    clears: bool = False


@dataclass(frozen=True, slots=True)
class Absence:
    """No event of `alternatives` strictly between the end of the nodes `left` and the start of the nodes `right`."""

    left: frozenset[int]
    right: frozenset[int]
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Adjacent:
    """The nodes `right` start with the event that comes next in the partition after the nodes `left` end."""

    left: frozenset[int]
    right: frozenset[int]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Any number of rounds, none included, each a valuation of one of `branches`, one after the other."""

    number: int
    branches: tuple[Branch, ...]
    adjacent: bool


@dataclass(frozen=True, slots=True)
class Branch:
    """Leaves and rounds (the *nodes*), with `before`: pairs of nodes, all of the first before all of the second."""

    leaves: tuple[Leaf, ...]
    rounds: tuple[Rounds, ...] = ()
    before: frozenset[tuple[int, int]] = frozenset()
    adjacent: tuple[Adjacent, ...] = ()
    absences: tuple[Absence, ...] = ()
    tests: tuple[Test, ...] = ()

    @property
    def nodes(self) -> frozenset[int]:
        """Numbers of the leaves and the rounds, not of leaves inside rounds."""
        return frozenset((*(leaf.number for leaf in self.leaves), *(r.number for r in self.rounds)))

    @property
    def first(self) -> frozenset[int]:
        """The nodes that may start the branch: rounds that may be empty, and the nodes that start it in that case."""
        rounds = {r.number for r in self.rounds}
        return self.nodes - {b for a, b in self.before if a not in rounds}

    @property
    def last(self) -> frozenset[int]:
        """The nodes that no other must follow: leaves, as rounds have their last one behind them."""
        return self.nodes - {a for a, _ in self.before}

    def all_leaves(self) -> Iterator[Leaf]:
        """Those inside rounds too."""
        yield from self.leaves
        for rounds in self.rounds:
            for branch in rounds.branches:
                yield from branch.all_leaves()

    @property
    def is_unique(self) -> bool:
        """True if different ways to match are different complex events: a full order, all marked, one iteration."""
        if not all(leaf.variables for leaf in self.all_leaves()) or len(self.rounds) > 1:
            return False
        if any(len(r.branches) > 1 or len(r.branches[0].leaves) > 1 or r.branches[0].rounds for r in self.rounds):
            return False
        pairs = itertools.combinations(sorted(self.nodes), 2)
        return all((a, b) in self.before or (b, a) in self.before for a, b in pairs)


KindOf = Callable[[Hashable], str | None]
"""The scope of a guard: "tuples", "whole", or None if it can only be decided event by event."""


def normal_form(pattern: Pattern, kind_of: KindOf) -> tuple[Branch, ...]:
    """The branches of `pattern`; `UnsupportedFeature` names the part that lazy evaluation does not support.

    Their number is the product of the alternatives in conjunctions and sequences, at most `BRANCHES`.
    """
    branches = tuple(_Normal(kind_of).of(pattern, frozenset()))
    longest = max(sum(1 for _ in branch.all_leaves()) for branch in branches)
    if longest > LEAVES:
        raise _refusal(f"a branch of {longest} events ({LEAVES} is the limit)")
    return branches


def _refusal(what: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"the lazy evaluators do not take {what}",
        hint="evaluator 'compact' runs every query, and 'auto' chooses it here",
    )


class _Normal:
    def __init__(self, kind_of: KindOf) -> None:
        self._kind_of = kind_of
        self._fresh = itertools.count()

    def of(self, pattern: Pattern, around: frozenset[Hashable]) -> list[Branch]:
        """The branches of a pattern; `around` are the guards of the correlations directly around it."""
        match pattern:
            case Atom(_, _, guard) if guard is not None:
                raise _refusal("conditions of single events on a run's registers (SPAseq)")
            case Atom(predicates, variables, _):
                return [Branch((Leaf(next(self._fresh), predicates, variables),))]
            case As(child, variable):
                return self._map(child, lambda leaf: leaf.variables | {variable} if leaf.variables else frozenset())
            case Project(child, kept):
                return self._map(child, lambda leaf: leaf.variables & kept)
            case Filter(child, variable, predicate):
                return [_restrict(b, variable, predicate) for b in self.of(child, frozenset())]
            case Correlate(child, over, guard):
                return self._correlate(self.of(child, around | {guard}), over, guard)
            case Or(left, right):
                return self._check_number(self.of(left, frozenset()) + self.of(right, frozenset()))
            case And(left, right):
                return self._product(left, right, _both)
            case Sequence(left, right, skip, again=again, never=never):
                if never is not None:
                    raise _refusal("NOT of more than one event")
                if skip is Skip.NEXT:
                    raise _refusal("skip-till-next (CEQL's '->', SPAseq's ';')")
                if again is not None:
                    raise _refusal("rounds that free variables (SPAseq's '{l,m}')")
                return self._product(left, right, lambda a, b: self._join(a, b, pattern, around))
            case Bordered():
                raise _refusal("NOT at the border of a part, or in AND")
            case Optional():
                raise _refusal("optional parts")
            case Iterate(child, skip, again, _, until):
                if until:
                    raise _refusal("repetitions with UNTIL")
                if skip is Skip.NEXT or again is not None:
                    raise _refusal("iterations that skip till the next match or free variables (SPAseq's '+')")
                return self._iterate(self.of(child, frozenset()), skip is Skip.NONE)
            case _:
                assert_never(pattern)  # type: ignore[arg-type]

    def _check_number(self, branches: list[Branch]) -> list[Branch]:
        if len(branches) > BRANCHES:
            raise _refusal(f"more than {BRANCHES} branches in disjunctive normal form")
        return branches

    def _map(self, child: Pattern, change: Callable[[Leaf], frozenset[str]]) -> list[Branch]:
        return [
            _with_leaves(b, lambda leaf: dataclasses.replace(leaf, variables=change(leaf)))
            for b in self.of(child, frozenset())
        ]

    def _product(self, left: Pattern, right: Pattern, join: Callable[[Branch, Branch], Branch]) -> list[Branch]:
        first, second = self.of(left, frozenset()), self.of(right, frozenset())
        if len(first) * len(second) > BRANCHES:
            raise _refusal(f"more than {BRANCHES} branches in disjunctive normal form")
        return [join(a, b) for a in first for b in second]

    def _correlate(self, branches: list[Branch], over: frozenset[str], guard: Hashable) -> list[Branch]:
        kind = self._kind_of(guard)
        if kind is None:
            raise _refusal(f"a condition that is only decided event by event: {guard}")
        found = []
        for branch in branches:
            test = _test(branch, over, guard, kind)
            # A variable without events satisfies the condition.
            found.append(branch if test is None else dataclasses.replace(branch, tests=(*branch.tests, test)))
        return found

    def _join(self, left: Branch, right: Branch, node: Sequence, around: frozenset[Hashable]) -> Branch:
        both = _both(left, right)
        before = both.before | frozenset(itertools.product(left.nodes, right.nodes))
        adjacent, absences = both.adjacent, both.absences
        if node.skip is Skip.NONE:
            adjacent += (Adjacent(left.last, right.first),)
        else:
            found = [self._alternative(atom, left, around) for atom in node.absent]
            watched = (self._alternative(atom, both, around, clears=True) for atom in node.watched)
            found += [a for a in watched if a.test is not None]  # one of its variables is empty: any event may come
            if found:
                absences += (Absence(left.last, right.first, tuple(found)),)
        return dataclasses.replace(both, before=before, adjacent=adjacent, absences=absences)

    def _alternative(
        self, atom: Atom, branch: Branch, around: frozenset[Hashable], clears: bool = False
    ) -> Alternative:
        """The alternative of an atom, whose guard is on events of `branch`."""
        if atom.guard is None:
            return Alternative(atom.predicates, "", None)
        if atom.guard not in around or self._kind_of(atom.guard) != "tuples" or len(atom.variables) != 1:
            raise _refusal(f"this condition of what must be absent: {atom.guard}")
        (mark,) = atom.variables
        known = frozenset(v for leaf in branch.all_leaves() for v in leaf.variables)
        over = frozenset(v for v in self._variables_of(atom.guard) if v != mark)
        test = _test(branch, over & known, atom.guard, "tuples") if over <= known else None
        return Alternative(atom.predicates, mark, test, clears)  # no test: one of its variables is empty

    def _variables_of(self, guard: Hashable) -> frozenset[str]:
        return getattr(guard, "variables")  # noqa: B009 - a guard of kind "tuples" has them

    def _iterate(self, branches: list[Branch], adjacent: bool) -> list[Branch]:
        rounds = Rounds(next(self._fresh), tuple(branches), adjacent)
        found = []
        for branch in branches:
            last = self._copy(branch)
            before = last.before | {(rounds.number, node) for node in last.nodes}
            found.append(dataclasses.replace(last, rounds=(rounds, *last.rounds), before=before))
        return found

    def _copy(self, branch: Branch) -> Branch:
        """The same with other numbers: conditions of one round are not about another."""
        return _renumber(branch, {}, self._fresh)


def _both(left: Branch, right: Branch) -> Branch:
    return Branch(
        left.leaves + right.leaves,
        left.rounds + right.rounds,
        left.before | right.before,
        left.adjacent + right.adjacent,
        left.absences + right.absences,
        left.tests + right.tests,
    )


def _test(branch: Branch, over: frozenset[str], guard: Hashable, kind: str) -> Test | None:
    """The guard on the leaves of its variables; None if one of them has none."""
    leaves = [(v, frozenset(x.number for x in branch.all_leaves() if v in x.variables)) for v in sorted(over)]
    return Test(guard, tuple(leaves), kind == "whole") if all(numbers for _, numbers in leaves) else None


def _with_leaves(branch: Branch, change: Callable[[Leaf], Leaf]) -> Branch:
    rounds = tuple(
        dataclasses.replace(r, branches=tuple(_with_leaves(b, change) for b in r.branches)) for r in branch.rounds
    )
    return dataclasses.replace(branch, leaves=tuple(map(change, branch.leaves)), rounds=rounds)


def _restrict(branch: Branch, variable: str, predicate: Predicate) -> Branch:
    def change(leaf: Leaf) -> Leaf:
        if variable not in leaf.variables:
            return leaf
        return dataclasses.replace(leaf, predicates=leaf.predicates | {predicate})

    return _with_leaves(branch, change)


def _renumber(branch: Branch, numbers: dict[int, int], fresh: Iterator[int]) -> Branch:
    """`numbers` collects old to new."""
    for leaf in branch.leaves:
        numbers[leaf.number] = next(fresh)
    rounds = []
    for r in branch.rounds:
        numbers[r.number] = next(fresh)
        inner = tuple(_renumber(b, numbers, fresh) for b in r.branches)
        rounds.append(Rounds(numbers[r.number], inner, r.adjacent))

    def of(nodes: frozenset[int]) -> frozenset[int]:
        return frozenset(numbers[n] for n in nodes)

    def test(t: Test) -> Test:
        return Test(t.guard, tuple((v, of(leaves)) for v, leaves in t.variables), t.whole)

    def alternative(a: Alternative) -> Alternative:
        return a if a.test is None else dataclasses.replace(a, test=test(a.test))

    return Branch(
        tuple(dataclasses.replace(leaf, number=numbers[leaf.number]) for leaf in branch.leaves),
        tuple(rounds),
        frozenset((numbers[a], numbers[b]) for a, b in branch.before),
        tuple(Adjacent(of(a.left), of(a.right)) for a in branch.adjacent),
        tuple(Absence(of(a.left), of(a.right), tuple(map(alternative, a.alternatives))) for a in branch.absences),
        tuple(map(test, branch.tests)),
    )


def tests_of(branch: Branch) -> Iterator[Test]:
    """The tests of a branch, those inside rounds too; not those of absences."""
    yield from branch.tests
    for rounds in branch.rounds:
        for inner in rounds.branches:
            yield from tests_of(inner)


def membership(kinds: tuple[frozenset[Predicate], ...], batch: Batch) -> np.ndarray:
    """The membership of events in kinds, sets of predicates: bool (kinds, n), false without a partition."""
    holds = {p: p.evaluate(batch) for p in dict.fromkeys(p for kind in kinds for p in kind)}
    truth = np.ones((len(kinds), len(batch)), bool)
    for own, kind in zip(truth, kinds, strict=True):
        for predicate in kind:
            own &= holds[predicate]
    if batch.keys is not None:
        truth[:, np.asarray(batch.keys) < 0] = False
    return truth
