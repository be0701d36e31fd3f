"""The events that a NOT says must not come, as alternatives of predicates and guards, and the errors that name what of
it is not run."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable
from typing import Final

from ceql.expressions.predicates import Satisfies
from ceql.guards.guard import Guard
from ceql.lowering.disjunctions import is_on, of_one_event
from ceql.lowering.parts import Alternative, Part, atom_of, with_mark
from ceql.lowering.taken import taken
from ceql.semantics.filters import All, Any, Leaf, Test, as_test, leaves, owned, rename
from ceql.syntax import ast
from ceql.syntax.walk import is_plain, reads_earlier
from spaseq.core import pattern as algebra
from spaseq.core.engine import Settings
from spaseq.core.errors import Span, UnsupportedFeature
from spaseq.core.events import EVENT_TIME
from spaseq.core.pattern import Absent, Border, Lasting, NoneOf, Pattern, Skip

_SIGNS: Final = {Skip.ANY: ";", Skip.NEXT: "->", Skip.NONE: ":"}


class Absences:
    """Lowers the NOTs of one query. Errors quote `text` and name `source`."""

    def __init__(self, text: str, source: str, settings: Settings) -> None:
        self.text = text
        self.source = source
        self.settings = settings
        self.fresh = itertools.count(1)
        # Of each NOT at the border of a part: its place, and its alternative if that has conditions on other events.
        self.places: dict[Absent, Span] = {}
        self.owed: dict[Absent, Alternative] = {}
        self.times: dict[Absent, int] = {}  # of those with FOR, ns
        self.decided: set[Absent] = set()  # those of which a sequence has the conditions
        self._known: algebra.KnownBorders = {}

    def unsupported(self, what: str, span: Span, hint: str = "") -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{what} is CEQL, but this version does not run it yet",
            text=self.text,
            span=span,
            source=self.source,
            hint=hint,
        )

    def refused(self, problem: str, hint: str, span: Span) -> UnsupportedFeature:
        return UnsupportedFeature(problem, text=self.text, span=span, source=self.source, hint=hint)

    def refuse_alternatives(self, alternatives: int, span: Span) -> None:
        most = self.settings.filter_alternatives
        if alternatives > most:
            number = f"{alternatives:,}" if alternatives < 10**9 else "more than a billion"
            raise self.refused(
                f"the ORs of this FILTER stand for {number} alternatives, and filter_alternatives is {most:,}",
                "each OR under AND multiplies them, unless it is on one variable that takes one event, or no variable "
                "of two of its sides takes several; Settings(filter_alternatives=…) allows more",
                span,
            )

    def guard_of(
        self, alternative: Alternative, mark: str, left: Pattern | None, lasting: Lasting | None = None
    ) -> Guard | None:
        """The conditions of an alternative as one guard, in which its event's variable is `mark`; None without
        conditions. `left`: the part with their other variables; None if that is not known yet. `lasting`: the time of
        the absence, in a gap that keeps it."""
        leaves = alternative.conditions
        timely = [] if lasting is None else [_timely(lasting, mark)]
        if not leaves and not timely:
            return None
        outside = [leaf.variables - alternative.names for leaf in leaves]
        may_be_empty = left is None or any(taken(left, v)[0] == 0 for names in outside for v in names)
        if len(set(outside)) + len(timely) > 1 and may_be_empty:
            hint = "let these variables take an event, or write one condition"
            raise self.unsupported("several conditions in a NOT, on variables that may be empty", leaves[-1].span, hint)
        marks = {name: mark for name in alternative.names}
        conditions = [rename(leaf.condition, marks) for leaf in leaves] + timely
        together = functools.reduce(ast.And, conditions)
        kept = frozenset[str]() if lasting is None else frozenset({lasting.last})
        return Guard(together, kept.union((mark,), *outside))

    def denied(
        self, alternative: Alternative, mark: str, marks: dict[str, str], left: Pattern, right: Pattern
    ) -> Guard:
        """The guard that an alternative's conditions, some on events behind the NOT, are not all true of any event that
        lies between. Each of their other variables takes one event: for several, no event would be the one. `marks`:
        the names of variables of both parts in the first one, which is meant."""
        leaves = alternative.conditions
        names = frozenset(name for leaf in leaves for name in leaf.variables) - alternative.names
        for name in sorted(names):
            side = left if taken(left, name)[1] else right
            if taken(side, name) != (1, 1):
                leaf = next(leaf for leaf in leaves if name in leaf.variables)
                hint = f"{name} may take no event, or several; the condition must be about one"
                raise self.unsupported("a condition on later events in a NOT, on such a variable", leaf.span, hint)
        together = functools.reduce(ast.And, (leaf.condition for leaf in leaves))
        untrue = ast.IsNull(ast.Case((together,), (ast.Truth(True),)))
        known = marks | dict.fromkeys(alternative.names, mark)
        return Guard(rename(untrue, known), frozenset(known.get(name, name) for name in names) | {mark})

    def alternatives(self, node: ast.Formula, known: frozenset[str] | None) -> tuple[list[Alternative], int]:
        """The alternatives that a NOT forbids, and a fresh number for the name of its event. Conditions may name
        `known`, the variables of the part before the NOT; None if that part is not known yet."""
        found, _ = self.single_events(node, known)
        return found, next(self.fresh)

    def single_events(
        self, node: ast.Formula, known: frozenset[str] | None
    ) -> tuple[list[Alternative], frozenset[str]]:
        """The alternatives that a NOT forbids, and the variables that they define together."""
        match node:
            case ast.EventType():
                atom = atom_of(node).pattern
                assert isinstance(atom, algebra.Atom)
                return [Alternative(atom.predicates, atom.variables)], atom.variables
            case ast.As(child, variable):
                found, defined = self.single_events(child, known)
                name = variable.text
                return [dataclasses.replace(a, names=a.names | {name}) for a in found], defined | {name}
            case ast.Either(left, right):
                one, first = self.single_events(left, known)
                two, second = self.single_events(right, known)
                return one + two, first | second
            case ast.Filter(child, condition):
                found, defined = self.single_events(child, known)
                return self.restrict_events(found, defined, as_test(condition), known), defined
        raise self.unsupported(
            "NOT of more than one event", node.span, "NOT takes an event type, with a FILTER, or several joined by OR"
        )

    def restrict_events(
        self, found: list[Alternative], defined: frozenset[str], test: Test, known: frozenset[str] | None
    ) -> list[Alternative]:
        match test:
            case All(left, right):
                return self.restrict_events(self.restrict_events(found, defined, left, known), defined, right, known)
            case Any() if is_on(test, defined):
                return [
                    a if left is None else self.restrict_event(a, defined, left, known)
                    for a, left in ((a, of_one_event(test, a.names)) for a in found)
                ]
            case Any(left, right):
                both = [a for half in (left, right) for a in self.restrict_events(found, defined, half, known)]
                self.refuse_alternatives(len(both), next(leaves(test)).span)
                return both
            case Leaf():
                return [self.restrict_event(a, defined, test, known) for a in found]

    def restrict_event(
        self, event: Alternative, defined: frozenset[str], leaf: Leaf, known: frozenset[str] | None
    ) -> Alternative:
        outside = leaf.variables - defined
        if known is not None and not outside <= known:
            names = ", ".join(sorted(outside - known))
            raise self.unsupported(
                f"a condition on {names} in this NOT or UNTIL",
                leaf.span,
                "in A; NOT B; C the B that must not come may be compared with A and C, on its two sides; what ends a "
                "repetition is compared with no other event",
            )
        if not is_plain(leaf.condition):
            what = "PREV" if reads_earlier(leaf.condition) else "an aggregate"
            raise self.unsupported(
                f"{what} in a NOT", leaf.span, "compare attributes of single events: b.price < a.price"
            )
        if not leaf.variables & defined <= event.names:
            return event  # it names a variable of another alternative, which is empty in this one
        if outside:
            # A variable that both the NOT and the part before it define is the one of the NOT.
            return dataclasses.replace(event, conditions=(*event.conditions, leaf))
        predicate = Satisfies(owned(leaf.condition, None))
        return dataclasses.replace(event, predicates=event.predicates | {predicate})

    # At the borders of parts

    def lasting(self, node: ast.Without) -> Lasting | None:
        """The time of a NOT in the gap that it is for."""
        if node.duration is None:
            return None
        last, event = f"#{next(self.fresh)}", f"#{next(self.fresh)}"
        return Lasting(Guard(since(event, last, "<=", node.duration), frozenset({event, last})), last, event)

    def atom(
        self, alternative: Alternative, left: Part | None, names: dict[str, str], lasting: Lasting | None = None
    ) -> algebra.Atom:
        """The atom of an event that must not come at a border, behind `left` or, if that is None, before a part.
        `names`: names for the variables of `left`, to which it adds."""
        if not alternative.conditions:
            if lasting is not None:
                return algebra.Atom(alternative.predicates, frozenset({lasting.event}), lasting.guard)
            return algebra.Atom(alternative.predicates, frozenset())
        if left is not None:
            outside = frozenset(v for leaf in alternative.conditions for v in leaf.variables) - alternative.names
            for name in sorted(outside - names.keys()):
                names[name] = f"{name}#{next(self.fresh)}"
            marks = {name: names[name] for name in sorted(outside)}
            marked = functools.reduce(lambda pattern, name: with_mark(pattern, name, marks[name]), marks, left.pattern)
            leaves = tuple(
                Leaf(rename(leaf.condition, marks), frozenset(marks.get(v, v) for v in leaf.variables), leaf.span)
                for leaf in alternative.conditions
            )
            alternative = dataclasses.replace(alternative, conditions=leaves)
        mark = f"#{next(self.fresh)}"
        guard = self.guard_of(alternative, mark, None if left is None else marked, lasting)
        return algebra.Atom(alternative.predicates, frozenset((mark,)), guard)

    def around_all(self, absent: Absent) -> tuple[Absent, Absent]:
        """The absence of a conjunction in the gap before it, and in the one behind it. Its time runs from the one to
        the other."""
        if absent.lasting is None:
            return absent, absent
        before = dataclasses.replace(absent, lasting=dataclasses.replace(absent.lasting, closes=False))
        behind = dataclasses.replace(absent, lasting=dataclasses.replace(absent.lasting, opens=False))
        for found in (before, behind):
            self.places[found], self.times[found] = self.places[absent], self.times[absent]
        return before, behind

    def refuse_times_of_rounds(self, part: Part) -> None:
        """Refuse a conjunction with a time that is both the first and the last of a round: its time would end and begin
        in one gap."""
        found = self.borders(part.pattern)
        begun = {a.lasting.guard for way in found.before for a in way if a.lasting is not None and not a.lasting.closes}
        for absent in self.in_order(frozenset[Absent]().union(*found.behind)):
            if absent.lasting is not None and absent.lasting.guard in begun:
                what = "NOT … FOR in an AND that begins and ends a round"
                raise self.unsupported(what, self.places[absent], "end the round with another part")

    def between(self, pattern: Pattern, first: Part, second: Part) -> Pattern:
        """A sequence of two parts, under the conditions that the NOTs at their borders have for its gap."""
        for absent in self.at_gap(first, second, pattern.skip if isinstance(pattern, algebra.Sequence) else Skip.ANY):
            leaf = self.owed[absent].conditions[0]
            unknown = frozenset(v for each in self.owed[absent].conditions for v in each.variables)
            unknown -= self.owed[absent].names | first.defined
            if unknown:
                what = f"a condition on {', '.join(sorted(unknown))} in this NOT"
                raise self.unsupported(what, leaf.span, "it may be about events of the part before it")
            if absent in self.decided:
                what = "a condition on other events in a NOT that is for several gaps"
                raise self.unsupported(what, leaf.span, "PARTITION BY [id] is for the events with the same id")
            self.decided.add(absent)
            assert isinstance(absent.pattern, algebra.Atom) and isinstance(absent.pattern.guard, Guard)
            pattern = algebra.Correlate(pattern, absent.pattern.guard.variables, absent.pattern.guard)
        return pattern

    def at_gap(self, first: Part, second: Part, skip: Skip) -> list[Absent]:
        """The NOTs at the borders between two parts joined by `skip` that have conditions on other events. Refuses what
        has no clear meaning."""
        if not self.places:
            return []
        behind, before = self.borders(first.pattern).behind, self.borders(second.pattern).before
        found = self.in_order(frozenset[Absent]().union(*behind, *before))
        for absent in found:
            if absent.skip not in (None, skip):
                raise self.refused(
                    f"this NOT is joined by {_SIGNS[absent.skip]} on one side and by {_SIGNS[skip]} on the other",
                    "NOT has the same sign on both sides, ; or ->, and : has nothing in between",
                    self.places[absent],
                )
            if skip is Skip.NEXT and max(len(behind), len(before)) > 1:
                raise self.unsupported(
                    "NOT in some of the alternatives of a step joined by ->", self.places[absent], "join it by ;"
                )
        return [absent for absent in found if absent in self.owed]

    def borders(self, pattern: Pattern) -> algebra.Borders:
        """The borders of a part of the query, each computed once."""
        return algebra.borders(pattern, self._known)

    def in_order(self, absences: Iterable[Absent]) -> list[Absent]:
        """The NOTs in the order of the text."""
        return sorted(absences, key=lambda absent: self.places[absent].start)

    def of_the_whole(self, ways: frozenset[Border], where: str) -> list[Absent]:
        """The NOTs at a border of the whole formula, or of some of its alternatives, in the order of the text."""
        found = self.in_order(frozenset[Absent]().union(*ways))
        for absent in found:
            if not isinstance(absent.pattern, algebra.Atom):
                what = f"NOT of more than one event at the {where} of the query"
                raise self.unsupported(what, self.places[absent], "NOT of one event, or several joined by OR")
            if absent in self.owed:
                what = f"a condition on other events in this NOT, at the {where} of the query"
                hint = "without parentheses: A AS a ; NOT (B AS b FILTER b.id = a.id)"
                raise self.unsupported(what, self.owed[absent].conditions[0].span, hint)
        return found


def since(event: str, last: str, symbol: str, duration: int) -> ast.Compare:
    """The condition that the time from an event of `last` to one of `event` is so long (ns), by `symbol`."""
    passed = ast.Arithmetic("-", ast.Attribute(EVENT_TIME, event), ast.Attribute(EVENT_TIME, last))
    return ast.Compare(symbol, passed, ast.Duration(duration))


def _timely(lasting: Lasting, mark: str) -> ast.Condition:
    """The condition that an event of `mark` comes within the time."""
    assert isinstance(lasting.guard, Guard)
    return rename(lasting.guard.condition, {lasting.event: mark})


def either_of(one: NoneOf | None, other: NoneOf | None) -> NoneOf | None:
    """The predicate of an event that both hold for; None holds for every event."""
    if one is None or other is None:
        return one or other
    return NoneOf(one.alternatives | other.alternatives)
