"""Branches that no stream can match are left out: `A FILTER A[v > 5 AND v < 3] OR B` is `B`.

The conditions on the events of a part are carried down to its event types. A type whose conditions contradict each
other (`ceql.semantics.contradictions`) matches nothing, and neither does a sequence, conjunction or iteration that
needs it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from ceql.semantics.contradictions import contradictory, culprits
from ceql.semantics.filters import All, Any, Leaf, Test, as_test, conjuncts, owned
from ceql.semantics.scopes import defined_names, taking, without, without_border
from ceql.syntax import ast
from ceql.syntax.printer import print_expression, print_formula
from ceql.syntax.walk import is_plain
from spaseq.core.errors import Span

WORK = 100_000
"""The number of parts that are tested, over all alternatives of FILTERs; parts beyond that are kept untested."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A part that matches nothing: its position, its text, and the conditions that contradict each other."""

    span: Span
    part: str
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        why = " and ".join(self.conditions)
        what = "never holds" if len(self.conditions) == 1 else "never hold together"
        return f"{self.span.line}:{self.span.column}: {self.part}: {why} {what}"


def remove_unsatisfiable(formula: ast.Formula) -> tuple[ast.Formula | None, tuple[Removed, ...]]:
    """The formula without the parts that match nothing, None if nothing is left; and the removed parts, in order.

    A condition on a variable that only removed parts define is removed too: an empty variable satisfies it.
    """
    bordered = without_border(formula)
    rest = bordered.formula
    search = _Search()
    if not search.prune(rest, _Facts()):
        return None, search.reasons()
    if not search.dead and not search.tests:
        return formula, ()
    found = without(rest, search.dead, search.tests)
    return None if found is None else bordered.around(found), search.reasons()


@dataclass(frozen=True, slots=True)
class _Facts:
    """Conditions on single events: those `on` the events of a variable, and those on `every` event of the part."""

    on: tuple[tuple[str, ast.Condition], ...] = ()
    every: tuple[ast.Condition, ...] = ()

    def of(self, names: frozenset[str]) -> tuple[ast.Condition, ...]:
        return self.every + tuple(condition for name, condition in self.on if name in names)

    def named(self, variable: str) -> _Facts:
        """The conditions for the formula inside `… AS variable`: those on the variable are on every event of it."""
        return dataclasses.replace(self, every=self.of(frozenset((variable,))))


@dataclass(slots=True)
class _Search:
    """Collects, by `id`, the parts that match nothing (`dead`) and the new conditions of FILTERs that lose alternatives
    (`tests`); `found` has the reasons."""

    dead: set[int] = field(default_factory=set)
    tests: dict[int, Test] = field(default_factory=dict)
    found: dict[Span, Removed] = field(default_factory=dict)
    work: int = WORK

    def reasons(self) -> tuple[Removed, ...]:
        return tuple(self.found[span] for span in sorted(self.found, key=lambda s: (s.start, s.end)))

    def prune(self, node: ast.Formula, facts: _Facts) -> bool:
        """True if the part can match; adds the parts of it that cannot to `dead`."""
        alive = self._prune(node, facts)
        if not alive:
            self.dead.add(id(node))
        return alive

    def _prune(self, node: ast.Formula, facts: _Facts) -> bool:
        match node:
            case ast.EventType() | ast.Without() | ast.As(ast.EventType() | ast.Without(), _):
                return self._event(node, facts)
            case ast.As(child, variable):
                return self.prune(child, facts.named(variable.text))
            case ast.Filter(child, condition):
                return self._filter(node, child, condition, facts)
            case ast.Either(left, right):
                one, two = self.prune(left, facts), self.prune(right, facts)
                return one or two
            case ast.Repeat(_, 0):
                return True  # without a round, if none can match
        alive = True
        for part in taking(node):
            alive &= self.prune(part, facts)
        return alive

    def _event(self, node: ast.Formula, facts: _Facts) -> bool:
        self.work -= 1
        names = defined_names(node)
        if isinstance(node, ast.As):
            facts = facts.named(node.variable.text)
            names |= defined_names(node.child)
        conditions = tuple(dict.fromkeys(facts.of(names)))
        if self.work < 0 or not contradictory(conditions):
            return True
        why = tuple(print_expression(c) for c in culprits(conditions))
        self.found.setdefault(node.span, Removed(node.span, print_formula(node), why))
        return False

    def _filter(self, node: ast.Formula, child: ast.Formula, condition: ast.Condition, facts: _Facts) -> bool:
        tests = list(conjuncts(as_test(condition)))
        variables = defined_names(child)
        for test in tests:
            facts = _more(facts, test, variables)
        kept: list[Test] = []
        for test in tests:
            left = self._possible(test, child, variables, facts)
            if left is None:
                return False
            kept.append(left)
        if any(a is not b for a, b in zip(kept, tests, strict=True)):
            together = kept[0]
            for test in kept[1:]:
                together = All(together, test)
            self.tests[id(node)] = together
            for test in kept:
                facts = _more(facts, test, variables)
        return self.prune(child, facts)

    def _possible(self, test: Test, child: ast.Formula, variables: frozenset[str], facts: _Facts) -> Test | None:
        """A condition of a FILTER without the alternatives under which `child` cannot match; None if none is left."""
        if not isinstance(test, Any):
            return test
        halves = [
            self._possible(half, child, variables, facts) if isinstance(half, Any)
            else half if self._matches(half, child, variables, facts) else None
            for half in (test.left, test.right)
        ]  # fmt: skip
        left, right = halves
        if left is None or right is None:
            return right if left is None else left
        return test if left is test.left and right is test.right else Any(left, right)

    def _matches(self, test: Test, child: ast.Formula, variables: frozenset[str], facts: _Facts) -> bool:
        """True if `child` can match under one alternative of its FILTER."""
        for part in conjuncts(test):
            facts = _more(facts, part, variables)
        trial = _Search(work=self.work)
        alive = trial.prune(child, facts)
        self.work = trial.work
        if not alive:
            self.found.update({span: reason for span, reason in trial.found.items() if span not in self.found})
        return alive


def _more(facts: _Facts, test: Test, variables: frozenset[str]) -> _Facts:
    """`facts`, and `test` if it is a single condition on single events of one of `variables`."""
    if not isinstance(test, Leaf) or len(test.variables) != 1 or not is_plain(test.condition):
        return facts
    (variable,) = test.variables
    if variable not in variables:
        return facts
    return dataclasses.replace(facts, on=(*facts.on, (variable, owned(test.condition, None))))
