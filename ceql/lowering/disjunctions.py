"""The ORs of a FILTER: the number of alternatives they stand for, and conditions that take the place of many.

`φ FILTER a OR b` is `(φ FILTER a) OR (φ FILTER b)` ([CORE] §2.2). So n such conditions under AND stand for 2ⁿ
alternatives, and the automaton has to tell them apart. If these are many, an OR becomes one condition over all of its
variables instead, which is decided with registers.

A FILTER holds for all choices of one event for each variable. So the two mean the same if no variable of two
alternatives takes several events. (∀x a) OR (∀y b) is ∀x ∀y (a OR b), also if x or y has no event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ceql.semantics.filters import All, Any, Leaf, Test, conjuncts, leaves, merge, only_variable
from ceql.syntax import ast
from ceql.syntax.walk import is_plain, reads_earlier
from spaseq.core.pattern import balance
from spaseq.core.trees import fold

_CLAUSES = 64
"""Conditions that one OR of ANDs may become."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The facts about a FILTER's formula: the variables that it defines, and those that take at most one event."""

    defined: frozenset[str]
    is_single: Callable[[str], bool]


def as_single_events(test: Test, scope: Scope) -> Test:
    """The test with each OR on one variable that takes at most one event as one condition, and without repetitions."""
    if isinstance(test, Leaf):
        return test
    variable = only_variable(test) if isinstance(test, Any) else None
    if any(reads_earlier(leaf.condition) for leaf in leaves(test)):
        variable = None  # each holds by itself if the event that it reads is not there
    if variable is not None and variable in scope.defined and scope.is_single(variable):
        return Leaf(merge(test), frozenset((variable,)), ast.NOWHERE)
    left, right = as_single_events(test.left, scope), as_single_events(test.right, scope)
    if _key(left) == _key(right):
        return left
    return All(left, right) if isinstance(test, All) else Any(left, right)


def _key(test: Test) -> object:
    """A key that is equal for equal tests: everything except their places in the text."""
    if isinstance(test, Leaf):
        return test.condition, test.variables
    return type(test), _key(test.left), _key(test.right)


def is_on(test: Test, variables: frozenset[str]) -> bool:
    """True if all conditions are on single events of these variables."""
    return all(_is_plain(leaf, variables) for leaf in leaves(test))


def _is_plain(leaf: Leaf, variables: frozenset[str]) -> bool:
    return leaf.variables <= variables and is_plain(leaf.condition)


def of_one_event(test: Test, names: frozenset[str]) -> Leaf | None:
    """The test for a single event that the variables `names` take, while others are empty, as one condition; None if it
    holds of any."""
    if isinstance(test, Leaf):
        return test if test.variables <= names else None
    left, right = of_one_event(test.left, names), of_one_event(test.right, names)
    if isinstance(test, Any):
        if left is None or right is None:
            return None
        return Leaf(ast.Or(left.condition, right.condition), left.variables | right.variables, left.span)
    if left is None or right is None:
        return right if left is None else left
    return Leaf(ast.And(left.condition, right.condition), left.variables | right.variables, left.span)


def count(test: Test) -> int:
    """The number of alternatives that the ORs of a test stand for, written out."""
    return fold(test, _count)


def _count(test: Test, below: list[int]) -> int:
    return 1 if isinstance(test, Leaf) else math.prod(below) if isinstance(test, All) else sum(below)


def as_conditions(test: Test, scope: Scope) -> Test:
    """The test with a condition over several variables for every OR that can be one; one for all ORs on the same
    variables."""
    kept: list[Test] = []
    found: dict[frozenset[str], dict[ast.Condition, None]] = {}
    for part in conjuncts(test):
        clauses = None if isinstance(part, Leaf) else _clauses(part)
        if clauses is None or not all(_is_one(clause, scope) for clause in clauses):
            kept.append(part)
            continue
        for clause in clauses:
            variables = frozenset[str]().union(*(leaf.variables for leaf in clause))
            condition = balance(ast.Or, [leaf.condition for leaf in clause])
            found.setdefault(variables, {})[condition] = None
    for variables, conditions in found.items():
        kept.append(Leaf(balance(ast.And, list(conditions)), variables, ast.NOWHERE))
    return balance(All, kept)


def _clauses(test: Test) -> list[Sequence[Leaf]] | None:
    """The test as ORs of single conditions, all of which have to hold; None if these are too many."""
    match test:
        case Leaf():
            return [(test,)]
        case All(left, right) | Any(left, right):
            first, second = _clauses(left), _clauses(right)
            if first is None or second is None:
                return None
            if isinstance(test, All):
                return [*first, *second]
            if len(first) * len(second) > _CLAUSES:
                return None
            return [(*a, *b) for a in first for b in second]


def _is_one(clause: Sequence[Leaf], scope: Scope) -> bool:
    """True if an OR of single conditions means the same as one condition over all of their variables."""
    seen: set[str] = set()
    for leaf in clause:
        if not _is_plain(leaf, scope.defined) or any(v in seen and not scope.is_single(v) for v in leaf.variables):
            return False
        seen |= leaf.variables
    return True
