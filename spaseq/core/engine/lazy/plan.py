"""A branch with the tables for its evaluation: order, tests and checks by leaf, and the place of each in the buffer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spaseq.core.engine.program.normal_form import Absence, Adjacent, Branch, Leaf, Rounds, Test
from spaseq.core.pattern import Predicate

Kinds = dict[frozenset[Predicate], int]
"""The sets of predicates that leaves and absences need, numbered: each has its postings."""


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that is decided once the nodes `needs` are known. `kinds` of an absence: the postings of its
    alternatives."""

    needs: frozenset[int]
    what: Adjacent | Absence | Test
    kinds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundsPlan:
    """Rounds, each of a branch with its plan."""

    rounds: Rounds
    branches: tuple[BranchPlan, ...]
    after: frozenset[int]
    before: frozenset[int]


class BranchPlan:
    """Never changes. `after[n]`, `before[n]`: the nodes that must precede n, and that must follow it.

    `first_chance`: absences are checked as soon as all they depend on is known ([Lazy] §4.4.2), else at the end
    (§4.4.1).
    """

    def __init__(self, branch: Branch, kinds: Kinds, first_chance: bool = True) -> None:
        self.branch = branch
        self.leaves: dict[int, Leaf] = {leaf.number: leaf for leaf in branch.leaves}
        self.kind: dict[int, int] = {
            n: kinds.setdefault(leaf.predicates, len(kinds)) for n, leaf in self.leaves.items()
        }
        nodes = branch.nodes
        self.after: dict[int, frozenset[int]] = {n: frozenset(a for a, b in branch.before if b == n) for n in nodes}
        self.before: dict[int, frozenset[int]] = {n: frozenset(b for a, b in branch.before if a == n) for n in nodes}
        self.rounds: tuple[RoundsPlan, ...] = tuple(
            RoundsPlan(r, tuple(BranchPlan(b, kinds, first_chance) for b in r.branches), self.after[r.number],
                       self.before[r.number])
            for r in _last_first(branch)
        )  # fmt: skip
        node_of = {n: n for n in self.leaves}
        for r in branch.rounds:
            node_of |= {leaf.number: r.number for b in r.branches for leaf in b.all_leaves()}
        self.inner: frozenset[int] = frozenset(n for n, node in node_of.items() if n != node)
        """Leaves inside rounds."""
        self.tests: dict[int, list[Test]] = {n: [] for n in node_of}
        self.checks: tuple[Check, ...] = tuple(self._checks(kinds, node_of, first_chance))
        for test in branch.tests:
            if not test.whole:
                for leaf in test.leaves:
                    self.tests[leaf].append(test)
        pairs = [(a.left, a.right) for a in branch.adjacent]
        alone = ((*left, *right) for left, right in pairs if len(left) == len(right) == 1)
        self.next_of: dict[int, int] = {a: b for a, b in alone if b in self.leaves}
        """Leaf to the leaf that must be the very next event."""

    def _checks(self, kinds: Kinds, node_of: dict[int, int], first_chance: bool) -> Iterator[Check]:
        for adjacent in self.branch.adjacent:
            yield Check(adjacent.left | adjacent.right, adjacent)
        for test in self.branch.tests:
            if test.whole:
                yield Check(frozenset(node_of[leaf] for leaf in test.leaves), test)
        for absence in self.branch.absences:
            needs = absence.left | absence.right
            for alternative in absence.alternatives:
                if alternative.test is not None:
                    needs |= {node_of[leaf] for leaf in alternative.test.leaves}
            numbers = tuple(kinds.setdefault(a.predicates, len(kinds)) for a in absence.alternatives)
            yield Check(needs if first_chance else self.branch.nodes, absence, numbers)

    def is_open(self, leaf: int, taken: frozenset[int]) -> bool:
        """True if an event of `leaf` may still come, after those of the leaves `taken` (`succ` is empty, §3)."""
        return not self.before[leaf] & taken

    def ready(self, node: int, done: frozenset[int]) -> list[Check]:
        """The checks that can be decided when `node` is the last of `done` to be known."""
        return [c for c in self.checks if node in c.needs and c.needs <= done]


def _last_first(branch: Branch) -> list[Rounds]:
    """The rounds such that those that come after another come before it: its last event is then known."""
    left, order = list(branch.rounds), []
    while left:
        numbers = {r.number for r in left}
        r = next(r for r in left if not any((r.number, n) in branch.before for n in numbers))
        order.append(r)
        left.remove(r)
    return order
