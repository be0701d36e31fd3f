"""The steps at which a partial match times out, each as a query.

Let φ₁, …, φₙ be the parts of a sequence. A match of the first k parts timed out at step k if φₖ₊₁ could begin with no
event behind it, inside its window. That is the query `φ₁ ; … ; φₖ ; NOT β`. Here β is the first event of φₖ₊₁: a type
with the conditions that are on this event and the k parts before it. A NOT between both parts is in β too, since its
event ends the partial match. Behind `:` any event is β: it either goes on with the match or ends it.

In `A -> B->+ -> C` a run waits for another B and for C, and C ends its rounds. So the step of C is
`A -> B->+ UNTIL C -> NOT (B OR C)`.

A condition is on the first k parts if all of its variables are there. Other conditions are not decided yet, and left
out. A step whose next part may be empty is left out: the step behind it has its partial matches.

Each part takes one event, or is a repetition of one event. So a partial match is always between two parts. All else is
refused, by name.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ceql.semantics.filters import Test, as_test, conjuncts, leaves, write
from ceql.semantics.scopes import defined_names, is_between, without_border
from ceql.semantics.selection import column_name
from ceql.syntax import ast
from ceql.syntax.printer import print_formula
from ceql.syntax.walk import is_plain, variables_of
from spaseq.core.errors import UnsupportedFeature
from spaseq.core.pattern import Preference, Skip
from spaseq.core.trees import walk

_STEPS: Final = 64
"""So many parts at most: each step is a query with an automaton of its own."""
_APART: Final = "a part takes one event, or repeats one: leave out the parentheses, A ; B ; C"


@dataclass(frozen=True, slots=True)
class Step:
    """A step that partial matches wait for: the text of its part, and the query of those that timed out."""

    waiting_for: str
    query: ast.Query


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a sequence, how it is joined to the part before, and the NOT between both."""

    skip: Skip
    absent: ast.Formula | None
    formula: ast.Formula


def timed_out_steps(query: ast.Query, text: str = "", source: str = "<query>") -> tuple[Step, ...]:
    """The steps of a checked query, in their order.

    Raises `UnsupportedFeature` for a query that has no such steps, by name; errors quote `text` and name `source`.
    Cost: O(parts²), as each query repeats the parts before it.
    """
    return _Steps(query, text, source).steps()


class _Steps:
    def __init__(self, query: ast.Query, text: str, source: str) -> None:
        self.query = query
        self.text = text
        self.source = source
        self.names: list[ast.Name] = []
        self.tests: list[Test] = []
        self.parts: list[_Part] = []

    def refusal(self, what: str, node: ast.Node, hint: str = "") -> UnsupportedFeature:
        return UnsupportedFeature(
            f"partial matches that time out are not reported for {what}",
            text=self.text,
            span=node.span,
            source=self.source,
            hint=hint,
        )

    def steps(self) -> tuple[Step, ...]:
        self.refuse_clauses()
        self.parts = list(self.split(self.unwrap(self.query.where)))
        if len(self.parts) == 1:
            raise self.not_a_sequence(self.parts[0].formula)
        if len(self.parts) > _STEPS:
            what = f"a sequence of {len(self.parts)} parts; {_STEPS} is the most"
            raise self.refusal(what, self.query.where)
        for part in self.parts:
            self.refuse_part(part.formula)
        self.refuse_conditions()
        found = tuple(self.step(k) for k in range(1, len(self.parts)) if not _may_be_empty(self.parts[k].formula))
        if not found:
            raise self.refusal("a formula of which one event is a match", self.query.where)
        return found

    def refuse_clauses(self) -> None:
        query, selection = self.query, self.query.selection
        if query.within is None:
            raise self.refusal("a query without WITHIN", query.where, "WITHIN says when their time is over")
        if selection.strategy not in (None, ast.Strategy.ALL):
            raise self.refusal(f"SELECT {selection.strategy.value}", selection, "leave the strategy out for ALL")
        if query.consume is not None and query.consume.policy is not ast.Consume.NONE:
            what = f"CONSUME BY {query.consume.policy.value}"
            raise self.refusal(what, query.consume, "a match takes partial matches away")
        if query.after is not None:
            raise self.refusal("AFTER MATCH", query.after, "a match takes partial matches away")
        if query.limit is not None:
            raise self.refusal("LIMIT", query.limit, "--limit N stops after N matches in all")
        if query.order is not None:
            raise self.refusal("ORDER BY", query.order, "they come in the order in which their windows close")
        bordered = without_border(query.where)
        for node in bordered.before:
            raise self.refusal("NOT in front of all parts", node)
        for inner in walk(bordered.formula):
            if isinstance(inner, ast.Without) and inner.duration is not None:
                raise self.refusal("NOT … FOR inside of the formula", inner)

    def unwrap(self, node: ast.Formula) -> ast.Formula:
        """The sequence below FILTER and AS, without the NOT at its end; takes note of conditions and names."""
        while True:
            match node:
                case ast.Filter(child, condition):
                    self.tests += conjuncts(as_test(condition))
                    node = child
                case ast.As(child, variable):
                    if variable.text in defined_names(child):
                        raise self.refusal("a name around a part with the same name", node, "give it another name")
                    self.names.append(variable)
                    node = child
                case ast.Sequence(left, ast.Without(), Skip.ANY | Skip.NEXT):
                    node = left
                case _:
                    return node

    def split(self, node: ast.Formula) -> Iterator[_Part]:
        """The parts of a sequence, in order; brackets make no difference, as `;`, `->` and `:` are associative."""
        behind: list[tuple[Skip, ast.Formula | None, ast.Formula]] = []
        while True:
            match node:
                case ast.Sequence(ast.Sequence(left, ast.Without(absent)), right, skip) if is_between(node):
                    behind.append((skip, absent, right))
                case ast.Sequence(left, right, skip):
                    behind.append((skip, None, right))
                case _:
                    break
            node = left
        yield _Part(Skip.ANY, None, node)
        for skip, between, right in reversed(behind):
            first, *rest = self.split(right)
            yield _Part(skip, between, first.formula)
            yield from rest

    def not_a_sequence(self, node: ast.Formula) -> UnsupportedFeature:
        match node:
            case ast.Either():
                return self.refusal("OR around the whole formula", node, "run its sides as two queries")
            case ast.Conjunction():
                return self.refusal("AND(…)", node, "its events come in any order, so no step is the next")
            case ast.Repeat():
                return self.refusal("a repetition of the whole formula", node, "write a sequence, A ; B")
        return self.refusal("a formula of one event", node, "write a sequence, A ; B")

    def refuse_part(self, node: ast.Formula) -> None:
        """Refuse a part that is not one event or a repetition of one: its partial matches would be inside of it."""
        for inner in walk(node):
            match inner:
                case ast.Sequence():
                    raise self.refusal("a part of several events", inner, _APART)
                case ast.Conjunction():
                    raise self.refusal("AND(…)", inner, "its events come in any order, so no step is the next")
                case ast.Repeat(_, low, _) if low > 1:
                    hint = "write the first rounds out: B ; B{1,2} for B{2,3}"
                    raise self.refusal(f"a repetition of at least {low} rounds", inner, hint)

    def refuse_conditions(self) -> None:
        """Refuse conditions that may be decided in part at a step."""
        defined = [defined_names(part.formula) for part in self.parts]
        for number, part in enumerate(self.parts):
            known = frozenset[str]().union(*defined[: number + 1], (name.text for name in self.names))
            for test in _tests_in(part.formula):
                if not _variables(test) <= known:
                    hint = "write this condition in a FILTER around the whole formula"
                    raise self.refusal("a condition in a part on a later one", next(leaves(test)).condition, hint)
        several = {v for a, one in enumerate(defined) for v in one if any(v in two for two in defined[a + 1 :])}
        several |= {name.text for name in self.names}
        for test in self.tests:
            named = _variables(test) & several
            if named and (len(_variables(test)) > 1 or not _is_plain(test)):
                what = f"a condition that relates {min(named)}, which several parts take, to others"
                hint = "give each part a name of its own: A AS x ; A AS y"
                raise self.refusal(what, next(leaves(test)).condition, hint)

    def step(self, k: int) -> Step:
        """Step `k`, at which the first k parts are there."""
        waited, last = self.parts[k], self.parts[k - 1].formula
        loop = self.loop_that_chooses(k)
        parts = [part.formula for part in self.parts[:k]]
        here = frozenset[str]().union(*map(defined_names, parts), (name.text for name in self.names))
        event = self.ending(waited, here)
        if loop is not None:
            parts[-1] = self.until(last, loop, event)
            event = ast.Either(self.with_conditions(self.first(last), last, here), event)
        first, *rest = (dataclasses.replace(self.parts[i], formula=parts[i]) for i in range(k))
        before: ast.Formula = functools.reduce(_join, rest, first.formula)
        for name in self.names:
            before = ast.As(before, name, span=last.span)
        ending = ast.Without(event, span=waited.formula.span)
        where: ast.Formula = ast.Sequence(before, ending, Skip.NEXT if waited.skip is Skip.NEXT else Skip.ANY)
        for test in self.tests:
            if _variables(test) <= here:
                where = ast.Filter(where, write(test))
        return Step(
            print_formula(waited.formula),
            dataclasses.replace(self.query, selection=_selection(self.query.selection, here), where=where),
        )

    def loop_that_chooses(self, k: int) -> ast.Repeat | None:
        """The repetition before the step at which runs choose between a round and what follows, as `B->+ -> C`; None if
        there is none. Refuses one that has no query: it is without a bound, and joined to one event by `->`."""
        last, waited = self.parts[k - 1], self.parts[k]
        hint = "φ->+ -> ψ has steps; others are joined by ;"
        if _may_be_empty(last.formula) and Skip.NEXT in (last.skip, waited.skip):
            raise self.refusal("a part beside -> that may be empty", last.formula, hint)
        loops = [node for node in walk(last.formula) if isinstance(node, ast.Repeat)]
        loop = next((node for node in loops if node.skip is Skip.NEXT and node.high != 1), None)
        if loop is None:
            return None
        inner = last.formula
        while isinstance(inner, ast.As):
            inner = inner.child
        plain = loop is inner and len(loops) == 1 and loop.high is None and loop.until is None
        if not plain or waited.skip is not Skip.NEXT or waited.absent is not None or loop.preference is Preference.EACH:
            raise self.refusal("such a repetition by -> with a part behind it", loop, hint)
        own = defined_names(last.formula)
        for test in (*self.tests, *_tests_in(last.formula)):
            if not _is_plain(test) and _variables(test) & own:
                what = "a repetition by -> under a condition on its rounds, with a part behind it"
                raise self.refusal(what, next(leaves(test)).condition, hint)
        return loop

    def until(self, part: ast.Formula, loop: ast.Repeat, event: ast.Formula) -> ast.Formula:
        """The part with a repetition that ends, as a run's does, with the event that goes on with what follows. Both
        are events of different types: UNTIL excludes its events from the first round, too."""
        kinds = [{node.name for node in walk(side) if isinstance(node, ast.EventType)} for side in (loop.child, event)]
        if kinds[0] & kinds[1] or ast.EVERY in kinds[0] | kinds[1]:
            what = "a repetition by -> of events that may be those of the part behind it"
            raise self.refusal(what, loop, "they need different types")
        own = defined_names(event)
        for test in _tests_in(event):
            if not _variables(test) <= own:
                what = "a repetition by -> before a part with a condition on other parts"
                raise self.refusal(what, next(leaves(test)).condition)

        names: list[ast.As] = []
        while isinstance(part, ast.As):
            names.append(part)
            part = part.child
        ended: ast.Formula = dataclasses.replace(loop, until=ast.Without(event))
        for name in reversed(names):
            ended = dataclasses.replace(name, child=ended)
        return ended

    def ending(self, waited: _Part, before: frozenset[str]) -> ast.Formula:
        """The event that ends a partial match's waiting: one that its next part could begin with, or of the NOT."""
        if waited.skip is Skip.NONE:
            return ast.EventType(ast.EVERY, every=True)
        event = self.with_conditions(self.first(waited.formula), waited.formula, before)
        own = defined_names(event)
        if waited.absent is None:
            return event
        later = own - defined_names(waited.absent) - before
        for node in walk(waited.absent):
            if isinstance(node, ast.Sequence | ast.Conjunction | ast.Repeat | ast.Without):
                raise self.refusal("a NOT of several events", waited.absent, "NOT (B ; C) is no end of a partial match")
            if isinstance(node, ast.Filter) and set(variables_of(node.condition)) & later:
                raise self.refusal("a NOT with a condition on the part behind it", node.condition)
        return ast.Either(waited.absent, event)

    def with_conditions(self, event: ast.Formula, part: ast.Formula, before: frozenset[str]) -> ast.Formula:
        """The first event of a part, under the conditions on it and on the parts before."""
        for name in self.names:
            event = ast.As(event, name)
        own = defined_names(event)
        for test in self.tests:
            variables = _variables(test)
            if variables & own and variables <= before | own and self.is_decided(test, part):
                event = ast.Filter(event, write(test))
        return event

    def first(self, node: ast.Formula) -> ast.Formula:
        """The first event of a part."""
        match node:
            case ast.As(child, variable):
                return ast.As(self.first(child), variable, span=node.span)
            case ast.Either(left, right):
                return ast.Either(self.first(left), self.first(right), span=node.span)
            case ast.Filter(child, condition):
                kept = [test for test in conjuncts(as_test(condition)) if self.is_decided(test, child)]
                return functools.reduce(lambda event, test: ast.Filter(event, write(test)), kept, self.first(child))
            case ast.Repeat(child):
                if node.until is not None:
                    raise self.refusal("a repetition with UNTIL that is waited for", node)
                return self.first(child)
            case ast.Without():
                raise self.refusal("an event that is described by NOT and waited for", node)
        return node

    def is_decided(self, test: Test, part: ast.Formula) -> bool:
        """True if a condition is decided at the first event of a part. One on aggregates or rounds of a repetition is
        not: later rounds may fulfil it."""
        repeats = any(isinstance(node, ast.Repeat) and node.high != 1 for node in walk(part))
        return not repeats or _is_plain(test)


def _join(before: ast.Formula, part: _Part) -> ast.Formula:
    if part.absent is not None:
        before = ast.Sequence(before, ast.Without(part.absent), part.skip)
    return ast.Sequence(before, part.formula, part.skip)


def _may_be_empty(node: ast.Formula) -> bool:
    match node:
        case ast.Repeat(child, low):
            return low == 0 or _may_be_empty(child)
        case ast.As(child) | ast.Filter(child):
            return _may_be_empty(child)
        case ast.Either(left, right):
            return _may_be_empty(left) or _may_be_empty(right)
    return False


def _tests_in(node: ast.Formula) -> list[Test]:
    """The conditions of the FILTERs in a formula."""
    filters = (inner for inner in walk(node) if isinstance(inner, ast.Filter))
    return [test for inner in filters for test in conjuncts(as_test(inner.condition))]


def _variables(test: Test) -> frozenset[str]:
    return frozenset[str]().union(*(leaf.variables for leaf in leaves(test)))


def _is_plain(test: Test) -> bool:
    return all(is_plain(leaf.condition) for leaf in leaves(test))


def _selection(selection: ast.Selection, here: frozenset[str]) -> ast.Selection:
    """SELECT of the first parts: a list without the variables of later parts; a column that reads one is NULL."""
    if selection.columns:
        columns = tuple(
            column
            if here.issuperset(variables_of(column.expression))
            else ast.Column(ast.Null(), ast.Name(column_name(column)))
            for column in selection.columns
        )
        return ast.Selection(None, None, columns, span=selection.span)
    items = None if selection.items is None else tuple(i for i in selection.items if i.variable in here)
    return ast.Selection(None, items, span=selection.span)
