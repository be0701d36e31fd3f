"""Syntax tree to pattern: the meaning of a CEQL query in the pattern algebra.

`lower` gives the pattern ([CORE] Figure 2), the window, the partition and the registers for conditions over several
variables. Features of CEQL that this version does not run raise `UnsupportedFeature`, with their name and place.

NOT. Between two parts of a sequence (`A; NOT B; C`, `A -> NOT B -> C`), and at the end of the query, NOT ψ means that
no event satisfies ψ there. Anywhere else it stands for one event that does not satisfy ψ.

Conditions. FILTER distributes: `φ FILTER a AND b` is `(φ FILTER a) FILTER b`, and `φ FILTER a OR b` is `(φ FILTER a) OR
(φ FILTER b)` ([CORE] §2.2), unless that would be many alternatives (`ceql.lowering.disjunctions`). NOT moves inward to
the single conditions. A condition on one variable is a `Filter`, one on several a `Correlate`. A condition may name a
variable of a wider scope, as in `x ; (y FILTER y.id = x.id)+` ([CEL] §5.1). Then the events that its own formula takes
for its variables get a fresh name. The condition, on that name, is placed around the wider scope, and holds there for
all events of that name.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ceql.expressions.predicates import Satisfies
from ceql.guards.guard import Guard
from ceql.guards.registers import GuardRegisters
from ceql.lowering.disjunctions import Scope, as_conditions, as_single_events, count, is_on, of_one_event
from ceql.lowering.partition_keys import infer_keys
from ceql.lowering.parts import Alternative, Part, Pending, atom_of, takes_one_event, with_mark
from ceql.lowering.rounds import Refusal, at_events, decided_in_order, tested_at
from ceql.lowering.taken import size, taken
from ceql.semantics.filters import All, Any, Leaf, Test, as_test, leaves, owned, rename
from ceql.semantics.scopes import is_between, without_ending
from ceql.syntax import ast
from ceql.syntax.walk import is_plain, reads_earlier
from spaseq.core import pattern as algebra
from spaseq.core.after import AfterText
from spaseq.core.engine import AfterMatch, Choice, Consume, Selection, Settings, Window
from spaseq.core.errors import InternalError, Span, UnsupportedFeature
from spaseq.core.pattern import (
    NoneOf,
    Pattern,
    Predicate,
    Preference,
    Skip,
    all_shown,
    skips_till_next,
    told_by_positions,
)
from spaseq.core.trees import walk

_DEFAULT: Final = Settings()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query in the form that the engine takes.

    `window_attribute` is None if the window is over time or events. `partition` has the attributes of each bracket of
    PARTITION BY, and `keys`, which come from conditions (`ceql.lowering.partition_keys`). `absent`: the event of a NOT
    at the end. `against`: matches with such an event behind them, if there is a condition between both.
    """

    pattern: Pattern
    window: Window
    window_attribute: str | None
    partition: tuple[tuple[str, ...], ...]
    strict: bool
    registers: GuardRegisters | None
    choice: Choice = Choice()  # noqa: RUF009 - frozen
    absent: NoneOf | None = None
    keys: tuple[str, ...] = ()
    against: Pattern | None = None
    against_registers: GuardRegisters | None = None


_NESTED: Final = 100
"""Optional rounds, each inside the one before, are built by functions that are recursive."""
_ALTERNATIVES: Final = 16
"""States tell apart at most so many alternatives of a FILTER, which is quick; conditions with registers take the place
of more. (Two events under n ORs: 2ⁿ + 1 states.)"""


def lower(query: ast.Query, text: str = "", source: str = "<query>", settings: Settings = _DEFAULT) -> Lowered:
    """The pattern, window and registers of a checked query; errors quote `text` and name `source`.

    Raises `UnsupportedFeature`, also for a pattern of more than `settings.repeated_events` events, repetitions written
    out, and for ORs of FILTERs that stand for more than `settings.filter_alternatives` alternatives.
    """
    lowering = _Lowering(text, source, settings)
    formula, ending = without_ending(query.where)
    part = lowering.with_rounds(lowering.formula(formula))
    absent, against = (None, None) if ending is None else lowering.absent_at_the_end(ending, part, query)
    if part.pending:
        raise InternalError("a condition found no scope")
    pattern = part.pattern
    if query.selection.items is not None:
        pattern = algebra.Project(pattern, frozenset(i.variable for i in query.selection.items))
    window, attribute = _window(query.within)
    lowering.refuse_after(query)
    choice, strict = _choice(query), query.selection.strategy is ast.Strategy.STRICT
    if strict and skips_till_next(pattern):
        raise lowering.refused(
            "SELECT STRICT of a formula with ->: it wants events in a row, and -> passes over events",
            "write : for events in a row",
            query.selection.span,
        )
    pattern, keys = infer_keys(pattern, window, choice, strict, absent is not None)
    partition = tuple(tuple(name.text for name in bracket) for bracket in query.partition)
    guards = tuple(dict.fromkeys(_guards(pattern)))
    return Lowered(
        pattern,
        window,
        attribute,
        partition + tuple((key,) for key in keys if (key,) not in partition),
        strict,
        GuardRegisters(guards) if guards else None,
        choice,
        absent,
        keys,
        against,
        None if against is None else GuardRegisters(tuple(dict.fromkeys(_guards(against)))),
    )


def _choice(query: ast.Query) -> Choice:
    strategy = query.selection.strategy or ast.Strategy.ALL
    return Choice(
        # The automaton takes care of STRICT.
        Selection.ALL if strategy in (ast.Strategy.STRICT, ast.Strategy.FIRST) else Selection[strategy.value],
        Consume.NONE if query.consume is None else Consume[query.consume.policy.value],
        None if query.limit is None else query.limit.count,
        _after(query, bool(query.partition)),
    )


def _after(query: ast.Query, keyed: bool) -> AfterMatch | None:
    """The rule for what a match discards, of AFTER MATCH or SELECT FIRST; None if there is none."""
    once, clause = query.selection.strategy is ast.Strategy.FIRST, query.after
    named = "" if clause is None or clause.variable is None else clause.variable.text
    return AfterMatch.of(None if clause is None else clause.rule, named, once=once, keyed=keyed)


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
    for part in walk(node):
        if isinstance(part, algebra.Correlate) and isinstance(part.guard, Guard):
            yield part.guard


class _Lowering:
    def __init__(self, text: str, source: str, settings: Settings) -> None:
        self.text = text
        self.source = source
        self.settings = settings
        self.fresh = itertools.count(1)
        self.before: dict[Guard, Span] = {}  # conditions that read earlier events

    def unsupported(self, what: str, span: Span, hint: str = "") -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{what} is CEQL, but this version does not run it yet",
            text=self.text,
            span=span,
            source=self.source,
            hint=hint,
        )

    # Formulas

    def formula(self, node: ast.Formula) -> Part:
        match node:
            case ast.EventType():
                return atom_of(node)
            case ast.As(child, variable):
                part = self.formula(child)
                named = algebra.As(part.pattern, variable.text)
                names = part.defined | {variable.text}
                return self.settle(dataclasses.replace(part, pattern=named, defined=names))
            case ast.Filter(child, condition):
                part = self.formula(child)
                return self.settle(self.filter(part, as_test(condition), condition.span))
            case ast.Either(left, right):
                first, second = self.formula(left), self.formula(right)
                return self.joined(algebra.Or(first.pattern, second.pattern), first, second)
            case ast.Sequence(ast.Sequence(left, ast.Without(absent), before), right, skip) if is_between(before, skip):
                return self.without(left, absent, right, skip)
            case ast.Sequence(ast.Without(), _, Skip.ANY | Skip.NEXT):
                raise self.misplaced(node.left, "at the start of a sequence")
            case ast.Sequence(_, ast.Without(), Skip.ANY | Skip.NEXT):
                raise self.misplaced(node.right, "at the end of a part of the formula")
            case ast.Sequence(left, right, skip):
                first, second = self.formula(left), self.formula(right)
                return self.joined(algebra.Sequence(first.pattern, second.pattern, skip), first, second)
            case ast.Repeat():
                return self.rounds(node)
            case ast.Without(child):
                alternatives, _ = self.alternatives(child, frozenset())
                none_of = NoneOf(frozenset(a.predicates for a in alternatives))
                return Part(algebra.Atom(frozenset((none_of,)), frozenset(("#other",))), frozenset())
            case ast.Conjunction((first_child, *rest)):
                return self.conjunction(first_child, rest)
        raise InternalError(f"no pattern for {type(node).__name__}")

    def rounds(self, node: ast.Repeat) -> Part:
        part = self.formula(node.child)
        low, high = node.low, node.high
        if high != 1:
            self.refuse_across_rounds(part)
        self.refuse_large(size(part.pattern) * max(1, high or low), "repetitions", node.span)
        until: frozenset[frozenset[Predicate]] = frozenset()
        if node.until is not None:
            if high is not None or low > 1:
                raise self.refused("UNTIL ends φ+ and φ*, and this repetition is counted", "leave UNTIL out", node.span)
            alternatives, _ = self.alternatives(node.until.child, frozenset())
            until = frozenset(alternative.predicates for alternative in alternatives)
        preference = node.preference
        if node.skip is not Skip.NEXT and (low, high) != (0, 1):
            if preference is not Preference.GREEDY:
                raise self.refused(
                    "a run does not choose here: rounds joined by ; or : are taken in every way",
                    "a loop that prefers is joined by ->: φ->+? or φ->{2,5}?",
                    node.span,
                )
            preference = Preference.EACH
        if preference is not Preference.EACH and (high or low) - low > _NESTED:
            raise self.refused(
                f"more than {_NESTED} rounds that may be left out, in a loop that chooses",
                "φ->{2,} has no bound, and φ->{2,500} ALL prefers nothing",
                node.span,
            )
        pattern = algebra.repeat(part.pattern, low, high, node.skip, preference, until)
        return dataclasses.replace(part, pattern=pattern)

    def conjunction(self, first: ast.Formula, rest: Iterable[ast.Formula]) -> Part:
        part = self.one_of_several(first)
        for child in rest:
            other = self.one_of_several(child)
            part = self.joined(algebra.And(part.pattern, other.pattern), part, other)
        return part

    def one_of_several(self, child: ast.Formula) -> Part:
        if isinstance(child, ast.Without):
            raise self.misplaced(child, "in a conjunction")
        return self.formula(child)

    def refuse_large(self, events: int, what: str, span: Span) -> None:
        most = self.settings.repeated_events
        if events > most:
            raise self.refused(
                f"written out without {what} this is {events:,} events long, and repeated_events is {most:,}",
                "φ+ FILTER COUNT(x) >= n says 'at least n', however large n is; Settings(repeated_events=…) allows "
                "more",
                span,
            )

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

    def refused(self, problem: str, hint: str, span: Span) -> UnsupportedFeature:
        return UnsupportedFeature(problem, text=self.text, span=span, source=self.source, hint=hint)

    # NOT

    def misplaced(self, node: ast.Formula, where: str) -> UnsupportedFeature:
        return self.unsupported(
            f"NOT {where}",
            node.span,
            "NOT stands between two parts (A; NOT B; C) or at the end of the query; (NOT B) AS n is one event, not a B",
        )

    def without(self, left: ast.Formula, absent: ast.Formula, right: ast.Formula, skip: Skip) -> Part:
        """`left ; NOT absent ; right`, or joined by `->`."""
        first, second = self.formula(left), self.formula(right)
        if not takes_one_event(absent):
            between = algebra.Sequence(first.pattern, second.pattern, skip, never=self.never(absent, skip))
            return self.joined(between, first, second)
        later = second.defined - first.defined
        alternatives, number = self.alternatives(absent, first.defined | later)
        atoms, guards, watched = [], [], []
        # A guard that is decided behind the NOT would take the variables of both parts for one.
        marks = {name: f"{name}#{next(self.fresh)}" for name in sorted(first.defined & second.defined)}
        for alternative in alternatives:
            if named := {v for leaf in alternative.conditions for v in leaf.variables - alternative.names} & later:
                if skip is not Skip.ANY:
                    leaf = next(leaf for leaf in alternative.conditions if leaf.variables & named)
                    what = "a condition on later events in a NOT between steps joined by ->"
                    raise self.unsupported(what, leaf.span, "join them by ;")
                mark = f"#{next(self.fresh)}"
                guard: Guard | None = self.denied(alternative, mark, marks, first.pattern, second.pattern)
                for name in marks.keys() & {v for leaf in alternative.conditions for v in leaf.variables}:
                    first = dataclasses.replace(first, pattern=with_mark(first.pattern, name, marks[name]))
                watched.append(algebra.Atom(alternative.predicates, frozenset((mark,)), guard))
            else:
                mark = f"#{number}"
                guard = self.guard_of(alternative, mark, first.pattern)
                atoms.append(algebra.Atom(alternative.predicates, frozenset((mark,)), guard))
            guards += [] if guard is None else [guard]
        pattern: Pattern = algebra.Sequence(first.pattern, second.pattern, skip, tuple(atoms), watched=tuple(watched))
        for guard in dict.fromkeys(guards):
            pattern = algebra.Correlate(pattern, guard.variables, guard)
        return self.joined(pattern, first, second)

    def never(self, node: ast.Formula, skip: Skip) -> Pattern:
        """The pattern of several events that a NOT between two parts forbids."""
        if skip is not Skip.ANY:
            raise self.unsupported("NOT of more than one event between steps joined by ->", node.span, "join them by ;")
        if isinstance(node, ast.Without):
            raise self.unsupported("NOT of a NOT", node.span, "(NOT B) AS n is one event, not a B")
        part = self.formula(node)
        if part.pending or any(getattr(inner, "guard", None) is not None for inner in walk(part.pattern)):
            span = part.pending[0].span if part.pending else node.span
            hint = "a condition there is on one event, and NOT of one event may have some on the events before it"
            raise self.unsupported("a condition on several events in a NOT of more than one", span, hint)
        if skips_till_next(part.pattern):
            raise self.unsupported("-> in a NOT of more than one event", node.span, "join its events by ; or :")
        return part.pattern

    def guard_of(self, alternative: Alternative, mark: str, left: Pattern) -> Guard | None:
        """The conditions of an alternative as one guard, in which its event's variable is `mark`; None without
        conditions."""
        leaves = alternative.conditions
        if not leaves:
            return None
        outside = [leaf.variables - alternative.names for leaf in leaves]
        if len(set(outside)) > 1 and any(taken(left, v)[0] == 0 for names in outside for v in names):
            raise self.unsupported("several conditions in a NOT, on variables that may be empty", leaves[1].span)
        marks = {name: mark for name in alternative.names}
        conditions = [rename(leaf.condition, marks) for leaf in leaves]
        together = functools.reduce(ast.And, conditions)
        return Guard(together, frozenset((mark,)).union(*outside))

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

    def absent_at_the_end(self, node: ast.Without, part: Part, query: ast.Query) -> tuple[NoneOf, Pattern | None]:
        """The absence behind a match, for `φ ; NOT ψ` as the whole formula: the predicate of the events of ψ, and a
        pattern. The pattern is `φ ; ψ` of those alternatives of ψ that have conditions on φ; None if none has."""
        alternatives, number = self.alternatives(node.child, part.defined)
        related = [alternative for alternative in alternatives if alternative.conditions]
        for alternative in related:
            self.refuse_untold(alternative, part.pattern, query)
        if query.selection.strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT):
            strategy = f"NOT at the end with the selection strategy {query.selection.strategy.value}"
            raise self.unsupported(strategy, node.span, "leave the strategy out for ALL")
        if query.consume is not None and query.consume.policy is not ast.Consume.NONE:
            raise self.unsupported(f"NOT at the end with CONSUME BY {query.consume.policy.value}", node.span)
        if query.after is not None and query.after.rule is not AfterText.NO_SKIP:
            raise self.unsupported("NOT at the end with AFTER MATCH", node.span, "its matches wait for their windows")
        if query.limit is not None:
            raise self.unsupported("NOT at the end with LIMIT", node.span, "--limit N stops after N matches in all")
        plain = NoneOf(frozenset(a.predicates for a in alternatives if not a.conditions))
        return plain, self.followed(part.pattern, related, f"#{number}") if related else None

    def refuse_after(self, query: ast.Query) -> None:
        """Refuse what has no meaning together with AFTER MATCH or SELECT FIRST, by its name."""
        strategy = query.selection.strategy
        clause = None if query.after is None or query.after.rule is AfterText.NO_SKIP else query.after
        if strategy is not ast.Strategy.FIRST and clause is None:
            return
        named = "SELECT FIRST" if strategy is ast.Strategy.FIRST else "AFTER MATCH"
        if clause is not None and strategy not in (None, ast.Strategy.ALL, ast.Strategy.STRICT):
            hint = "AFTER MATCH takes the matches of one end in the order of NEXT: leave the strategy out"
            raise self.contradiction(f"SELECT {strategy.value} and AFTER MATCH", clause.span, hint)
        if query.consume is not None and query.consume.policy is not ast.Consume.NONE:
            hint = f"{named} says what a match forgets: leave CONSUME BY out"
            raise self.contradiction(f"{named} and CONSUME BY {query.consume.policy.value}", query.consume.span, hint)
        if query.limit is not None:
            hint = "AFTER MATCH SKIP PAST LAST EVENT reports at most one match for each end"
            raise self.contradiction(f"{named} and LIMIT", query.limit.span, hint)

    def contradiction(self, what: str, span: Span, hint: str) -> UnsupportedFeature:
        """The error for two clauses that have no meaning together."""
        problem = f"{what} do not go together"
        return UnsupportedFeature(problem, text=self.text, span=span, source=self.source, hint=hint)

    def followed(self, pattern: Pattern, related: Iterable[Alternative], mark: str) -> Pattern:
        """`pattern`, and the first event behind it, of each of the alternatives, that the condition holds with: later
        ones call off nothing that is not off."""
        found: list[Pattern] = []
        for alternative in related:
            guard = self.guard_of(alternative, mark, pattern)
            assert guard is not None
            event = algebra.Atom(alternative.predicates, frozenset((mark,)))
            both = algebra.Sequence(pattern, event, Skip.NEXT)
            found.append(algebra.Correlate(both, guard.variables, guard))
        return functools.reduce(algebra.Or, found)

    def refuse_untold(self, alternative: Alternative, pattern: Pattern, query: ast.Query) -> None:
        """Refuse a query if the positions of a match do not determine the events of the condition's variables, or if
        SELECT leaves one of them out. The reason: a match is compared with the events behind it by its positions."""
        leaf = alternative.conditions[0]
        names = frozenset(name for one in alternative.conditions for name in one.variables) - alternative.names
        items = query.selection.items
        if not told_by_positions(pattern, names):
            raise self.unsupported(
                "a condition that relates a NOT at the end to a part with OR, AND or two repetitions",
                leaf.span,
                "PARTITION BY keeps to events of one key",
            )
        if items is not None and not all_shown(pattern, frozenset(item.variable for item in items)):
            raise self.unsupported(
                "a condition that relates a NOT at the end to other events, with a SELECT that leaves out some events",
                leaf.span,
                "SELECT * shows all of them, as does a SELECT that names each",
            )

    def alternatives(self, node: ast.Formula, known: frozenset[str]) -> tuple[list[Alternative], int]:
        """The alternatives that a NOT forbids, and a fresh number for the name of its event. Conditions may name
        `known`, the variables of the part before the NOT."""
        found, _ = self.single_events(node, known)
        return found, next(self.fresh)

    def single_events(self, node: ast.Formula, known: frozenset[str]) -> tuple[list[Alternative], frozenset[str]]:
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
        self, found: list[Alternative], defined: frozenset[str], test: Test, known: frozenset[str]
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
        self, event: Alternative, defined: frozenset[str], leaf: Leaf, known: frozenset[str]
    ) -> Alternative:
        outside = leaf.variables - defined
        if not outside <= known:
            names = ", ".join(sorted(outside - known))
            raise self.unsupported(
                f"a condition on {names} in this NOT or UNTIL",
                leaf.span,
                "in A; NOT B; C the B that must not come may be compared with A and C, on its two sides; what ends a "
                "repetition is compared with no other event",
            )
        if not is_plain(leaf.condition):
            what = "PREV" if reads_earlier(leaf.condition) else "an aggregate"
            raise self.unsupported(f"{what} in a NOT", leaf.span)
        if not leaf.variables & defined <= event.names:
            return event  # it names a variable of another alternative, which is empty in this one
        if outside:
            # A variable that both the NOT and the part before it define is the one of the NOT.
            return dataclasses.replace(event, conditions=(*event.conditions, leaf))
        predicate = Satisfies(owned(leaf.condition, None))
        return dataclasses.replace(event, predicates=event.predicates | {predicate})

    def joined(self, pattern: Pattern, first: Part, second: Part) -> Part:
        alternatives = max(first.alternatives, second.alternatives)
        return self.settle(Part(pattern, first.defined | second.defined, first.pending + second.pending, alternatives))

    def settle(self, part: Part) -> Part:
        """Places the pending conditions whose variables the part defines around its pattern."""
        pattern, waiting = part.pattern, []
        for pending in part.pending:
            if pending.outside <= part.defined:
                variables = pending.outside | pending.inside
                pattern = algebra.Correlate(pattern, variables, Guard(pending.condition, variables))
            else:
                waiting.append(pending)
        return dataclasses.replace(part, pattern=pattern, pending=tuple(waiting))

    def refuse_across_rounds(self, part: Part) -> None:
        for pending in part.pending:
            if pending.aggregates_inside:
                raise self.unsupported(
                    "an aggregate inside an iteration, in a condition with a variable from outside it", pending.span
                )
            if len(pending.inside) > 1:
                raise self.unsupported(
                    "one condition inside an iteration over two of its variables and one from outside it",
                    pending.span,
                    "split it into conditions over two variables",
                )

    # Filters

    def filter(self, part: Part, test: Test, span: Span) -> Part:
        """`part` under a whole FILTER, whose place is `span`."""
        scope = Scope(part.defined, lambda variable: taken(part.pattern, variable)[1] <= 1)
        test = as_single_events(test, scope)
        if part.alternatives * count(test) > min(_ALTERNATIVES, self.settings.filter_alternatives):
            test = as_conditions(test, scope)
        if skips_till_next(part.pattern):
            test = as_conditions(test, scope)
            if count(test) > 1:
                raise self.refused(
                    "an OR of conditions on a variable of several events, around a part with ->: each side would take "
                    "its own next event",
                    "an OR about one event stands in its brackets: x[price > 3 OR price < 1]",
                    span,
                )
        self.refuse_alternatives(part.alternatives * count(test), span)
        return self.filtered(part, test)

    def filtered(self, part: Part, test: Test) -> Part:
        match test:
            case All(left, right):
                return self.filtered(self.filtered(part, left), right)
            case Any(left, right):
                first, second = self.filtered(part, left), self.filtered(part, right)
                pending = tuple(dict.fromkeys(first.pending + second.pending))
                alternatives = first.alternatives + second.alternatives
                return Part(algebra.Or(first.pattern, second.pattern), part.defined, pending, alternatives)
            case Leaf(condition, variables, span):
                return self.restricted(part, condition, variables, span)

    def restricted(self, part: Part, condition: ast.Condition, variables: frozenset[str], span: Span) -> Part:
        outside = variables - part.defined
        if not outside and not skips_till_next(part.pattern):
            condition = decided_in_order(condition, part.pattern)
        if reads_earlier(condition):
            return self.at_events(part, condition, span)
        if outside:
            return self.deferred(part, condition, variables & part.defined, outside, span)
        if len(variables) == 1 and is_plain(condition):
            (variable,) = variables
            predicate = Satisfies(owned(condition, None))
            return dataclasses.replace(part, pattern=algebra.Filter(part.pattern, variable, predicate))
        pattern = algebra.Correlate(part.pattern, variables, Guard(condition, variables))
        return dataclasses.replace(part, pattern=pattern)

    def at_events(self, part: Part, condition: ast.Condition, span: Span) -> Part:
        """Gives the events at which a condition that reads earlier events is tested a fresh name, and takes note of
        it."""
        anchor = tested_at(condition)
        if isinstance(anchor, str) and anchor not in part.defined:
            anchor = Refusal(
                f"a condition with PREV that names {anchor}, in a part of the formula that does not take it",
                f"it is tested at the event that it names: put the FILTER on the part with {anchor}",
            )
        if isinstance(anchor, Refusal):
            raise self.unsupported(anchor.problem, span, anchor.hint)
        mark = f"{anchor}#{next(self.fresh)}"
        self.before[at_events(condition, anchor, mark)] = span
        return dataclasses.replace(part, pattern=with_mark(part.pattern, anchor, mark))

    def with_rounds(self, part: Part) -> Part:
        """The whole formula under its conditions that read earlier events."""
        pattern = part.pattern
        if not self.before:
            return part
        both = [n for n in walk(pattern) if isinstance(n, algebra.And) and skips_till_next(n)]
        for guard, span in self.before.items():
            for node in both:
                if guard.variables & algebra.variables(node.left) and guard.variables & algebra.variables(node.right):
                    what = "a condition with PREV on both parts of an AND with ->"
                    raise self.unsupported(what, span, "each part takes its own next events, whatever the other takes")
            pattern = algebra.Correlate(pattern, guard.variables, guard)
        return dataclasses.replace(part, pattern=pattern)

    def deferred(
        self, part: Part, condition: ast.Condition, inside: frozenset[str], outside: frozenset[str], span: Span
    ) -> Part:
        """Gives the events of the condition's variables fresh names, and leaves the condition pending."""
        number = next(self.fresh)
        pattern = part.pattern
        if not inside:
            marks = {"": f"#{number}"}
            pattern = algebra.As(pattern, marks[""])
        else:
            marks = {v: f"{v}#{number}" for v in sorted(inside)}
            for variable, mark in marks.items():
                pattern = with_mark(pattern, variable, mark)
        pending = Pending(rename(condition, marks), outside, frozenset(marks.values()), span)
        return dataclasses.replace(part, pattern=pattern, pending=(*part.pending, pending))
