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
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ceql.expressions.predicates import Satisfies
from ceql.guards.guard import Guard
from ceql.guards.registers import GuardRegisters
from ceql.lowering.absences import since
from ceql.lowering.borders import Borders
from ceql.lowering.disjunctions import Scope, as_conditions, as_single_events, count
from ceql.lowering.partition_keys import infer_keys
from ceql.lowering.parts import Part, Pending, atom_of, takes_one_event, with_last_marked, with_mark
from ceql.lowering.rounds import Refusal, at_events, decided_in_order, tested_at
from ceql.lowering.taken import size, taken
from ceql.semantics.filters import All, Any, Leaf, Test, as_test, leaves, owned, rename
from ceql.semantics.scopes import is_between, takers, without_border
from ceql.syntax import ast
from ceql.syntax.walk import aggregates_of, is_plain, reads_earlier
from spaseq.core import pattern as algebra
from spaseq.core.after import AfterText
from spaseq.core.engine import AfterMatch, Around, Choice, Consume, Selection, Settings, Window
from spaseq.core.errors import InternalError, Span, UnsupportedFeature
from spaseq.core.pattern import (
    Absent,
    NoneOf,
    Pattern,
    Predicate,
    Preference,
    Skip,
    skips_till_next,
)
from spaseq.core.trees import walk

_DEFAULT: Final = Settings()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query in the form that the engine takes.

    `window_attribute` is None if the window is over time or events. `partition` has the attributes of each bracket of
    PARTITION BY, and `keys`, which come from conditions (`ceql.lowering.partition_keys`). `around`: what the NOTs at
    the start and at the end are about. `against`: matches with such an event behind them, if there is a condition
    between both. `written`: the brackets of PARTITION BY alone, which GROUP BY KEY is by.
    """

    pattern: Pattern
    window: Window
    window_attribute: str | None
    partition: tuple[tuple[str, ...], ...]
    strict: bool
    registers: GuardRegisters | None
    choice: Choice = Choice()  # noqa: RUF009 - frozen
    around: Around = Around()  # noqa: RUF009 - frozen
    keys: tuple[str, ...] = ()
    against: Pattern | None = None
    against_registers: GuardRegisters | None = None
    grouping: ast.Grouping | None = None
    written: tuple[tuple[str, ...], ...] = ()


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
    bordered = without_border(query.where)
    lowering.refuse_lasting(bordered, query)
    lowering.refuse_repeated(bordered, query)
    lowering.takers = takers(bordered.formula)
    part = lowering.with_rounds(lowering.formula(bordered.formula))
    ending = bordered.behind
    absent, against = (None, None) if ending is None else lowering.absent_at_the_end(ending, part, query)
    around = lowering.around(part, bordered, absent, query)
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
    pattern, keys = infer_keys(pattern, window, choice, strict, not around.is_empty)
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
        around,
        keys,
        against,
        None if against is None else GuardRegisters(tuple(dict.fromkeys(_guards(against)))),
        query.grouping,
        partition,
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
        if isinstance(part, algebra.Bordered):
            lasting = [absent for absent in (*part.before, *part.behind) if absent.lasting is not None]
            found = [
                guard for a in lasting if a.lasting for guard in (a.lasting.guard, getattr(a.pattern, "guard", None))
            ]
            yield from (guard for guard in found if isinstance(guard, Guard))


class _Lowering(Borders):
    def __init__(self, text: str, source: str, settings: Settings) -> None:
        super().__init__(text, source, settings)
        self.before: dict[Guard, Span] = {}  # conditions that read earlier events
        self.takers: Counter[str] = Counter()  # of the whole formula

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
                part, test = self.formula(child), as_test(condition)
                total = any(True for leaf in leaves(test) for _ in aggregates_of(leaf.condition))
                return self.settle(
                    self.filter(part, test, condition.span, self.elsewhere(child) if total else frozenset())
                )
            case ast.Either(left, right):
                first, second = self.formula(left), self.formula(right)
                return self.joined(algebra.Or(first.pattern, second.pattern), first, second)
            case ast.Sequence(ast.Sequence(left, ast.Without() as no), right, skip) if is_between(node):
                return self.without(left, no, right, skip)
            case ast.Sequence(ast.Without() as absent, right, Skip.ANY | Skip.NEXT):
                part = self.neighbour(right)
                return dataclasses.replace(
                    part, pattern=algebra.Bordered(part.pattern, before=self.absent(absent, node.skip))
                )
            case ast.Sequence(left, ast.Without() as absent, Skip.ANY | Skip.NEXT):
                return self.behind(self.neighbour(left), absent, node.skip)
            case ast.Sequence(left, right, skip):
                first, second = self.formula(left), self.formula(right)
                return self.joined(
                    self.between(algebra.Sequence(first.pattern, second.pattern, skip), first, second), first, second
                )
            case ast.Repeat():
                return self.rounds(node)
            case ast.Without(child):
                alternatives, _ = self.alternatives(child, frozenset())
                none_of = NoneOf(frozenset(a.predicates for a in alternatives))
                return Part(algebra.Atom(frozenset((none_of,)), frozenset(("#other",))), frozenset())
            case ast.Conjunction():
                return self.conjunction(node)
        raise InternalError(f"no pattern for {type(node).__name__}")

    def rounds(self, node: ast.Repeat) -> Part:
        part = self.formula(node.child)
        low, high = node.low, node.high
        if high != 1:
            self.refuse_across_rounds(part)
            self.refuse_times_of_rounds(part)
            for absent in self.at_gap(part, part, node.skip):
                leaf = self.owed[absent].conditions[0]
                what = "a condition on other events in a NOT between two rounds"
                raise self.unsupported(what, leaf.span, "PARTITION BY [id] is for the events with the same id")
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

    def conjunction(self, node: ast.Conjunction) -> Part:
        children = [child for child in node.parts if not isinstance(child, ast.Without)]
        if not children:
            hint = "AND takes an event: AND(A, NOT B); NOTs alone are A ; NOT B FOR 5 SECONDS ; NOT C FOR 9 SECONDS"
            raise self.refused("AND of NOTs alone", hint, node.span)
        first, *rest = children
        part = self.one_of_several(first)
        for child in rest:
            other = self.one_of_several(child)
            part = self.joined(algebra.And(part.pattern, other.pattern), part, other)
        absent = [a for c in node.parts if isinstance(c, ast.Without) for a in self.absent(c, None)]
        if not absent:
            return part
        within = tuple(a.pattern for a in absent if isinstance(a.pattern, algebra.Atom))
        before, behind = zip(*map(self.around_all, absent), strict=True)
        pattern = algebra.Bordered(part.pattern, before, behind, within)
        return dataclasses.replace(part, pattern=pattern)

    def one_of_several(self, child: ast.Formula) -> Part:
        part = self.formula(child)
        found = self.borders(part.pattern)
        for absent in frozenset[algebra.Absent]().union(*found.before, *found.behind):
            hint = "as a part of the AND, NOT says that nothing of it comes before, between or behind: AND(A, NOT B, C)"
            raise self.unsupported("NOT at the border of a part of AND", self.places[absent], hint)
        return part

    def refuse_large(self, events: int, what: str, span: Span) -> None:
        most = self.settings.repeated_events
        if events > most:
            raise self.refused(
                f"written out without {what} this is {events:,} events long, and repeated_events is {most:,}",
                "φ+ FILTER COUNT(x) >= n says 'at least n', however large n is; Settings(repeated_events=…) allows "
                "more",
                span,
            )

    # NOT

    def neighbour(self, child: ast.Formula) -> Part:
        """The part beside a NOT that has nothing on its other side."""
        if isinstance(child, ast.Without):
            hint = "a match takes an event; (NOT B) AS n is one event, not a B"
            raise self.refused("a sequence of NOTs alone", hint, child.span)
        return self.formula(child)

    def behind(self, part: Part, absent: ast.Without, skip: Skip) -> Part:
        """`part ; NOT absent`, with what follows still to come. The conditions of the NOT are about events of `part`:
        its variables get a fresh name for them, as others around may have the same ones."""
        marks: dict[str, str] = {}
        found, pattern = self.absent(absent, skip, part, marks), part.pattern
        for name, mark in marks.items():
            pattern = with_mark(pattern, name, mark)
        return dataclasses.replace(part, pattern=algebra.Bordered(pattern, behind=found))

    def absent(
        self, node: ast.Without, skip: Skip | None, left: Part | None = None, marks: dict[str, str] | None = None
    ) -> tuple[Absent, ...]:
        """The events that must not come by a NOT at the border of a part, or in a conjunction (`skip` is None).
        `left`: the part before it, whose variables get names of their own, which are added to `marks`."""
        found, lasting = [], self.lasting(node)
        if takes_one_event(node.child):
            known = left.defined if left is not None else frozenset[str]() if skip is None else None
            for alternative in self.alternatives(node.child, known)[0]:
                absent = Absent(self.atom(alternative, left, {} if marks is None else marks, lasting), skip, lasting)
                if alternative.conditions:
                    self.owed[absent] = alternative
                if node.duration is not None:
                    self.times[absent] = node.duration
                found.append(absent)
        elif lasting is not None:
            raise self.unsupported("NOT … FOR of several events", node.span, "NOT B FOR 10 SECONDS is for one event B")
        elif skip is None:
            raise self.unsupported("NOT of more than one event in AND", node.span, "NOT of one event: AND(A, NOT B, C)")
        else:
            found.append(Absent(self.never(node.child, skip), skip))
        for absent in found:
            self.places.setdefault(absent, node.span)
        return tuple(found)

    def without(self, left: ast.Formula, no: ast.Without, right: ast.Formula, skip: Skip) -> Part:
        """`left ; NOT absent ; right`, or joined by `->`. With FOR, the absence is for a time behind the last event of
        `left`, and `right` comes later: conditions on the times of events say so."""
        absent, first, second = no.child, self.formula(left), self.formula(right)
        if no.duration is not None:
            return self.without_for(first, no, second, skip)
        if not takes_one_event(absent):
            gap: Pattern = algebra.Sequence(first.pattern, second.pattern, skip, never=self.never(absent, skip))
            return self.joined(self.between(gap, first, second), first, second)
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
        pattern = self.between(pattern, first, second)
        for guard in dict.fromkeys(guards):
            pattern = algebra.Correlate(pattern, guard.variables, guard)
        return self.joined(pattern, first, second)

    def without_for(self, first: Part, no: ast.Without, second: Part, skip: Skip) -> Part:
        """The absence between two parts, for a time. If the first one ends with a known event, conditions say it, which
        every evaluator takes; else it is at the border of that part."""
        last, later = f"#{next(self.fresh)}", f"#{next(self.fresh)}"
        marked = with_last_marked(first.pattern, last)
        if marked is None or not takes_one_event(no.child):
            return self.without_at_border(first, no, second, skip)
        assert no.duration is not None
        alternatives, number = self.alternatives(no.child, first.defined)
        mark = f"#{number}"
        atoms, guards = [], []
        for alternative in alternatives:
            timely = since(min(alternative.names), last, "<=", no.duration)
            leaf = Leaf(timely, frozenset({min(alternative.names), last}), no.span)
            both = dataclasses.replace(alternative, conditions=(*alternative.conditions, leaf))
            guard = self.guard_of(both, mark, marked)
            atoms.append(algebra.Atom(alternative.predicates, frozenset((mark,)), guard))
            guards.append(guard)
        whole: Pattern = algebra.Sequence(marked, algebra.As(second.pattern, later), skip, tuple(atoms))
        whole = self.between(whole, first, second)
        for condition in dict.fromkeys(
            (*guards, Guard(since(later, last, ">", no.duration), frozenset({later, last})))
        ):
            assert condition is not None
            whole = algebra.Correlate(whole, condition.variables, condition)
        return self.joined(whole, first, second)

    def without_at_border(self, first: Part, no: ast.Without, second: Part, skip: Skip) -> Part:
        """`without_for` at a border: behind the first part or, if the second may take no event, before that one, as the
        absence says nothing if one of them takes none."""
        if not self.borders(second.pattern).empty:
            first = self.behind(first, no, skip)
        elif self.borders(first.pattern).empty:
            hint = "let one of them take an event: A ; NOT B FOR 5 SECONDS ; C?"
            raise self.unsupported("NOT … FOR between two parts that may both take no event", no.span, hint)
        else:
            marks: dict[str, str] = {}
            found = self.absent(no, skip, first, marks)
            for name, mark in marks.items():
                first = dataclasses.replace(first, pattern=with_mark(first.pattern, name, mark))
            second = dataclasses.replace(second, pattern=algebra.Bordered(second.pattern, before=found))
        both = algebra.Sequence(first.pattern, second.pattern, skip)
        return self.joined(self.between(both, first, second), first, second)

    def never(self, node: ast.Formula, skip: Skip) -> Pattern:
        """The pattern of several events that a NOT between two parts forbids."""
        if skip is not Skip.ANY:
            raise self.unsupported("NOT of more than one event between steps joined by ->", node.span, "join them by ;")
        if isinstance(node, ast.Without):
            raise self.unsupported("NOT of a NOT", node.span, "(NOT B) AS n is one event, not a B")
        part = self.formula(node)
        for absent in self.in_order(
            frozenset[Absent]().union(*self.borders(part.pattern).before, *self.borders(part.pattern).behind)
        ):
            hint = "leave this NOT out: A ; NOT (B ; C) ; D forbids a B with a C behind it"
            raise self.unsupported("NOT at the border of what must not come", self.places[absent], hint)
        if part.pending or any(getattr(inner, "guard", None) is not None for inner in walk(part.pattern)):
            span = part.pending[0].span if part.pending else node.span
            hint = "a condition there is on one event, and NOT of one event may have some on the events before it"
            raise self.unsupported("a condition on several events in a NOT of more than one", span, hint)
        if skips_till_next(part.pattern):
            raise self.unsupported("-> in a NOT of more than one event", node.span, "join its events by ; or :")
        return part.pattern

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
                    "an aggregate inside an iteration, in a condition with a variable from outside it",
                    pending.span,
                    "without the outer iteration it is A AS a ; (B+ AS b FILTER AVG(b.price) > a.price)",
                )
            if len(pending.inside) > 1:
                raise self.unsupported(
                    "one condition inside an iteration over two of its variables and one from outside it",
                    pending.span,
                    "split it into conditions over two variables",
                )

    # Filters

    def elsewhere(self, node: ast.Formula) -> frozenset[str]:
        """The variables that also take events outside of a part of the query."""
        own = takers(node)
        return frozenset(name for name, count in self.takers.items() if count > own[name])

    def filter(self, part: Part, test: Test, span: Span, elsewhere: frozenset[str]) -> Part:
        """`part` under a whole FILTER, whose place is `span`. `elsewhere`: the variables that also take events outside
        of it, if the FILTER has an aggregate."""
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
        return self.filtered(part, test, elsewhere)

    def filtered(self, part: Part, test: Test, elsewhere: frozenset[str]) -> Part:
        match test:
            case All(left, right):
                return self.filtered(self.filtered(part, left, elsewhere), right, elsewhere)
            case Any(left, right):
                first, second = self.filtered(part, left, elsewhere), self.filtered(part, right, elsewhere)
                pending = tuple(dict.fromkeys(first.pending + second.pending))
                alternatives = first.alternatives + second.alternatives
                return Part(algebra.Or(first.pattern, second.pattern), part.defined, pending, alternatives)
            case Leaf(condition, variables, span):
                return self.restricted(part, condition, variables, span, elsewhere)

    def restricted(
        self, part: Part, condition: ast.Condition, variables: frozenset[str], span: Span, elsewhere: frozenset[str]
    ) -> Part:
        outside = variables - part.defined
        if not outside and not variables & elsewhere and not skips_till_next(part.pattern):
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
