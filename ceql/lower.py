"""Syntax tree to pattern: the meaning of a CEQL query in terms of the core.

`lower` gives the pattern (seed CORE, Figure 2), the window, the partition and the registers for conditions over several
variables. What the language has and this version does not run raises `UnsupportedFeature`, by name and place.

Conditions. FILTER distributes: `φ FILTER a AND b` is `(φ FILTER a) FILTER b`, and `φ FILTER a OR b` is `(φ FILTER a) OR
(φ FILTER b)` (seed CORE §2.2); NOT goes inward until it meets single conditions. A condition on one variable is a
`Filter`, on several a `Correlate`. A condition may name a variable of a wider scope, as in `x ; (y FILTER y.id =
x.id)+` (seed CEL §5.1): what its own formula takes is then marked with a name of its own, and the condition is put
where all of its variables are known, for all choices of marked events.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ceql import ast
from ceql.guards import Guard, GuardRegisters
from ceql.predicates import Satisfies, StreamIs, TypeIs
from ceql.walk import attributes_of, parts, with_variables
from spaseq import pattern as algebra
from spaseq.engine import Window
from spaseq.errors import InternalError, Span, UnsupportedFeature
from spaseq.pattern import Pattern, Skip

__all__ = ["Lowered", "lower"]


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query as the core sees it. `window_attribute` is None where the window is over time or events."""

    pattern: Pattern
    window: Window
    window_attribute: str | None
    partition: tuple[tuple[str, ...], ...]
    strict: bool
    registers: GuardRegisters | None


def lower(query: ast.Query, text: str = "", source: str = "<query>") -> Lowered:
    """The pattern of a checked query."""
    lowering = _Lowering(text, source)
    lowering.refuse_clauses(query)
    part = lowering.formula(query.where)
    if part.pending:
        raise InternalError("a condition found no scope")
    pattern = part.pattern
    if query.selection.items is not None:
        pattern = algebra.Project(pattern, frozenset(i.variable for i in query.selection.items))
    window, attribute = _window(query.within)
    guards = tuple(dict.fromkeys(_guards(pattern)))
    return Lowered(
        pattern,
        window,
        attribute,
        tuple(tuple(name.text for name in bracket) for bracket in query.partition),
        query.selection.strategy is ast.Strategy.STRICT,
        GuardRegisters(guards) if guards else None,
    )


def _window(within: ast.Within | None) -> tuple[Window, str | None]:
    match within:
        case None:
            return Window("none"), None
        case ast.WithinEvents(count):
            return Window("events", count), None
        case ast.WithinTime(nanoseconds):
            return Window("span", nanoseconds), None
        case ast.WithinAttribute(size, attribute):
            return Window("span", size), attribute.text
    raise InternalError(f"no window for {type(within).__name__}")


def _guards(node: Pattern) -> Iterator[Guard]:
    match node:
        case algebra.Correlate(child, _, Guard() as guard):
            yield guard
            yield from _guards(child)
        case algebra.Or(left, right) | algebra.Sequence(left, right, _):
            yield from _guards(left)
            yield from _guards(right)
        case algebra.As(child, _) | algebra.Filter(child, _, _) | algebra.Iterate(child, _) | algebra.Project(child, _):
            yield from _guards(child)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A single condition, its attributes naming their variables."""

    condition: ast.Condition
    variables: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class _Any:
    """`left OR right`, of filters."""

    left: _Test
    right: _Test


@dataclass(frozen=True, slots=True)
class _All:
    """`left AND right`, of filters."""

    left: _Test
    right: _Test


_Test = _Leaf | _Any | _All


@dataclass(frozen=True, slots=True)
class _Pending:
    """A condition that waits for the scope of `outside`; `inside` are the names given to what its own formula takes."""

    condition: ast.Condition
    outside: frozenset[str]
    inside: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class _Part:
    """A formula's pattern, the variables it takes, and conditions that wait for a wider scope."""

    pattern: Pattern
    defined: frozenset[str]
    pending: tuple[_Pending, ...] = ()


class _Lowering:
    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.fresh = itertools.count(1)

    def unsupported(self, what: str, span: Span, hint: str = "") -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{what} is CEQL, but this version does not run it yet",
            text=self.text,
            span=span,
            source=self.source,
            hint=hint,
        )

    def refuse_clauses(self, query: ast.Query) -> None:
        strategy = query.selection.strategy
        if strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT):
            raise self.unsupported(
                f"the selection strategy {strategy.value}", query.selection.span, "leave it out for ALL"
            )
        for item in query.selection.items or ():
            if item.attributes:
                raise self.unsupported("a list of attributes in SELECT", item.span, f"write SELECT {item.variable}")
        if query.consume is not None and query.consume.policy is not ast.Consume.NONE:
            raise self.unsupported(f"CONSUME BY {query.consume.policy.value}", query.consume.span)
        if query.limit is not None:
            raise self.unsupported("LIMIT", query.limit.span, "--limit N stops after N matches in all")

    # Formulas

    def formula(self, node: ast.Formula) -> _Part:
        match node:
            case ast.EventType(name, stream):
                return _atom(name, stream)
            case ast.As(child, variable):
                part = self.formula(child)
                named = algebra.As(part.pattern, variable.text)
                return self.settle(_Part(named, part.defined | {variable.text}, part.pending))
            case ast.Filter(child, condition):
                part = self.formula(child)
                return self.settle(self.filtered(part, self.test(condition, False)))
            case ast.Either(left, right):
                first, second = self.formula(left), self.formula(right)
                return self.joined(algebra.Or(first.pattern, second.pattern), first, second)
            case ast.Sequence(left, right, contiguous):
                first, second = self.formula(left), self.formula(right)
                skip = Skip.NONE if contiguous else Skip.ANY
                return self.joined(algebra.Sequence(first.pattern, second.pattern, skip), first, second)
            case ast.Iterate(child, contiguous):
                part = self.formula(child)
                self.refuse_across_rounds(part)
                rounds = algebra.Iterate(part.pattern, Skip.NONE if contiguous else Skip.ANY)
                return _Part(rounds, part.defined, part.pending)
            case ast.Repeat():
                raise self.unsupported("the repetition φ{l,m}", node.span)
            case ast.Without():
                raise self.unsupported("NOT in a formula", node.span)
            case ast.Conjunction():
                raise self.unsupported("the conjunction AND(φ, ψ)", node.span)
        raise InternalError(f"no pattern for {type(node).__name__}")

    def joined(self, pattern: Pattern, first: _Part, second: _Part) -> _Part:
        return self.settle(_Part(pattern, first.defined | second.defined, first.pending + second.pending))

    def settle(self, part: _Part) -> _Part:
        """Puts the conditions whose variables are now all known around the pattern."""
        pattern, waiting = part.pattern, []
        for pending in part.pending:
            if pending.outside <= part.defined:
                variables = pending.outside | pending.inside
                pattern = algebra.Correlate(pattern, variables, Guard(pending.condition, variables))
            else:
                waiting.append(pending)
        return _Part(pattern, part.defined, tuple(waiting))

    def refuse_across_rounds(self, part: _Part) -> None:
        for pending in part.pending:
            if len(pending.inside) > 1:
                raise self.unsupported(
                    "one condition inside an iteration over two of its variables and one from outside it",
                    pending.span,
                    "split it into conditions over two variables",
                )

    # Filters

    def test(self, node: ast.Condition, negated: bool) -> _Test:
        match node:
            case ast.And(left, right) | ast.Or(left, right):
                first, second = self.test(left, negated), self.test(right, negated)
                return _All(first, second) if isinstance(node, ast.And) != negated else _Any(first, second)
            case ast.Not(child):
                return self.test(child, not negated)
            case ast.Holds(variable, ast.And(left, right)) if not negated:
                halves = [self.test(dataclasses.replace(node, condition=half), False) for half in (left, right)]
                return _All(*halves)
            case ast.Holds(variable, condition):
                condition = _owned(condition, variable.text)
                return self.leaf(condition, frozenset((variable.text,)), negated, node.span)
            case _:
                return self.leaf(node, frozenset(), negated, node.span)

    def leaf(self, condition: ast.Condition, variables: frozenset[str], negated: bool, span: Span) -> _Leaf:
        self.refuse_calls(condition)
        named = frozenset(a.variable for a in attributes_of(condition) if a.variable is not None)
        return _Leaf(ast.Not(condition) if negated else condition, variables | named, span)

    def refuse_calls(self, node: ast.Expression) -> None:
        for call in parts(node):
            if isinstance(call, ast.Call):
                what = "CORR" if call.function == "CORR" else f"the aggregate {call.function}"
                raise self.unsupported(what, call.span)

    def filtered(self, part: _Part, test: _Test) -> _Part:
        match test:
            case _All(left, right):
                return self.filtered(self.filtered(part, left), right)
            case _Any(left, right):
                return self.either(part, test, left, right)
            case _Leaf(condition, variables, span):
                return self.restricted(part, condition, variables, span)

    def either(self, part: _Part, test: _Any, left: _Test, right: _Test) -> _Part:
        """`(φ FILTER a) OR (φ FILTER b)`; one filter where both are about one variable that takes one event at most."""
        variable = _only_variable(test)
        if variable is not None and variable in part.defined and _most(part.pattern, variable) <= 1:
            return self.restricted(part, _merged(test), frozenset((variable,)), ast.NOWHERE)
        first, second = self.filtered(part, left), self.filtered(part, right)
        pending = tuple(dict.fromkeys(first.pending + second.pending))
        return _Part(algebra.Or(first.pattern, second.pattern), part.defined, pending)

    def restricted(self, part: _Part, condition: ast.Condition, variables: frozenset[str], span: Span) -> _Part:
        outside = variables - part.defined
        if outside:
            return self.deferred(part, condition, variables & part.defined, outside, span)
        if len(variables) == 1:
            (variable,) = variables
            predicate = Satisfies(_owned(condition, None))
            return dataclasses.replace(part, pattern=algebra.Filter(part.pattern, variable, predicate))
        pattern = algebra.Correlate(part.pattern, variables, Guard(condition, variables))
        return dataclasses.replace(part, pattern=pattern)

    def deferred(
        self, part: _Part, condition: ast.Condition, inside: frozenset[str], outside: frozenset[str], span: Span
    ) -> _Part:
        """Marks what this formula takes with fresh names, and leaves the condition to a wider scope."""
        number = next(self.fresh)
        pattern = part.pattern
        if not inside:
            marks = {"": f"#{number}"}
            pattern = algebra.As(pattern, marks[""])
        else:
            marks = {v: f"{v}#{number}" for v in sorted(inside)}
            for variable, mark in marks.items():
                pattern = _marked(pattern, variable, mark)
        pending = _Pending(_renamed(condition, marks), outside, frozenset(marks.values()), span)
        return _Part(pattern, part.defined, (*part.pending, pending))


def _atom(name: str, stream: ast.Name | None) -> _Part:
    if stream is None:
        variables, predicates = frozenset((name,)), frozenset((TypeIs(name),))
        return _Part(algebra.Atom(predicates, variables), variables)
    variables = frozenset((name, f"{stream.text}>{name}"))
    return _Part(algebra.Atom(frozenset((TypeIs(name), StreamIs(stream.text))), variables), variables)


def _marked(node: Pattern, variable: str, mark: str) -> Pattern:
    """The pattern with `mark` taking what `variable` takes in it."""
    match node:
        case algebra.Atom(predicates, variables, guard) if variable in variables:
            return algebra.Atom(predicates, variables | {mark}, guard)
        case algebra.As(child, name):
            inner = algebra.As(_marked(child, variable, mark), name)
            return algebra.As(inner, mark) if name == variable else inner
        case algebra.Filter(child, _, _) | algebra.Correlate(child, _, _) | algebra.Iterate(child, _, _):
            return dataclasses.replace(node, child=_marked(child, variable, mark))
        case algebra.Or(left, right) | algebra.Sequence(left, right, _):
            return dataclasses.replace(node, left=_marked(left, variable, mark), right=_marked(right, variable, mark))
    return node


def _most(node: Pattern, variable: str | None) -> float:
    """How many events `variable` takes at most in a pattern; all events that are taken, for None."""
    match node:
        case algebra.Atom(_, variables, _):
            return 1 if variable is None or variable in variables else 0
        case algebra.As(child, name):
            return _most(child, None if name == variable else variable)
        case algebra.Filter(child, _, _) | algebra.Correlate(child, _, _):
            return _most(child, variable)
        case algebra.Iterate(child, _, _):
            return float("inf") if _most(child, variable) else 0
        case algebra.Or(left, right):
            return max(_most(left, variable), _most(right, variable))
        case algebra.Sequence(left, right, _):
            return _most(left, variable) + _most(right, variable)
    return float("inf")


def _leaves(test: _Test) -> Iterator[_Leaf]:
    if isinstance(test, _Leaf):
        yield test
    else:
        yield from _leaves(test.left)
        yield from _leaves(test.right)


def _only_variable(test: _Test) -> str | None:
    variables = frozenset[str]().union(*(leaf.variables for leaf in _leaves(test)))
    return next(iter(variables)) if len(variables) == 1 else None


def _merged(test: _Test) -> ast.Condition:
    match test:
        case _Leaf(condition, _, _):
            return condition
        case _All(left, right):
            return ast.And(_merged(left), _merged(right))
        case _Any(left, right):
            return ast.Or(_merged(left), _merged(right))


# Expressions, with the variables of attributes changed


def _owned(node: ast.Condition, variable: str | None) -> ast.Condition:
    """With a variable: attributes that name none get it. Without: attributes lose theirs."""
    return with_variables(node, lambda own: (own or variable) if variable is not None else None)


def _renamed(node: ast.Condition, marks: dict[str, str]) -> ast.Condition:
    return with_variables(node, lambda own: None if own is None else marks.get(own, own))
