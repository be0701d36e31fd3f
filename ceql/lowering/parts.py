"""The parts of a formula on their way to a pattern: what lowering has made of each, and what is still to be placed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ceql.expressions.predicates import StreamIs, TypeIs
from ceql.guards.aggregates import named_by
from ceql.semantics.filters import Leaf
from ceql.semantics.scopes import defined_names
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of
from spaseq.core import pattern as algebra
from spaseq.core.errors import Span
from spaseq.core.pattern import Pattern, Predicate
from spaseq.core.trees import mapped


@dataclass(frozen=True, slots=True)
class Pending:
    """A condition that names variables of a wider scope, `outside`, and is to be placed there. `inside` are the fresh
    names of the variables of its own formula."""

    condition: ast.Condition
    outside: frozenset[str]
    inside: frozenset[str]
    span: Span

    @property
    def aggregates_inside(self) -> bool:
        """True if an aggregate ranges over events of its own formula."""
        return any(named_by(call) in self.inside for call in aggregates_of(self.condition))


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative that a NOT forbids: an event that satisfies `predicates` and, together with earlier events,
    `conditions`. `names` are the variables that it takes."""

    predicates: frozenset[Predicate]
    names: frozenset[str]
    conditions: tuple[Leaf, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A formula's pattern, the variables it defines, and the conditions still to be placed around a wider scope.
    `alternatives`: how often an event type of the formula is written out in the pattern, at most, because of ORs in
    FILTERs."""

    pattern: Pattern
    defined: frozenset[str]
    pending: tuple[Pending, ...] = ()
    alternatives: int = 1


def takes_one_event(node: ast.Formula) -> bool:
    """True if a formula takes one event."""
    match node:
        case ast.As(child) | ast.Filter(child):
            return takes_one_event(child)
        case ast.Either(left, right):
            return takes_one_event(left) and takes_one_event(right)
    return isinstance(node, ast.EventType)


def atom_of(node: ast.EventType) -> Part:
    """The part of an event type."""
    name, stream = node.name, node.stream
    variables, predicates = defined_names(node), frozenset[Predicate](() if node.every else (TypeIs(name),))
    if stream is not None:
        predicates |= {StreamIs(stream.text)}
    return Part(algebra.Atom(predicates, variables), variables)


def with_last_marked(node: Pattern, mark: str) -> Pattern | None:
    """The pattern in which the variable `mark` takes the last event; None if that may be one of several, or none."""
    match node:
        case algebra.Atom(_, variables):
            return dataclasses.replace(node, variables=variables | {mark})
        case algebra.Sequence():
            right = with_last_marked(node.right, mark)
            return None if right is None else dataclasses.replace(node, right=right)
        case algebra.Or():
            both = with_last_marked(node.left, mark), with_last_marked(node.right, mark)
            return None if None in both else algebra.Or(*both)  # type: ignore[arg-type]
        case algebra.As(child) | algebra.Filter(child) | algebra.Correlate(child) | algebra.Bordered(child):
            inner = with_last_marked(child, mark)
            return None if inner is None else dataclasses.replace(node, child=inner)
    return None


def with_mark(node: Pattern, variable: str, mark: str) -> Pattern:
    """The pattern in which the variable `mark` takes the events that `variable` takes."""

    def change(part: Pattern) -> Pattern:
        match part:
            case algebra.Atom(_, variables) if variable in variables:
                return dataclasses.replace(part, variables=variables | {mark})
            case algebra.As(_, name) if name == variable:
                return algebra.As(part, mark)
        return part

    return mapped(node, change)
