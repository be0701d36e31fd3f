"""From the patterns that queries compile to (`spaseq.core.pattern`) to register match automata.

These patterns have an automaton: events, AS, filters, OR, sequences with `;` and `:`, iterations with either, and
conditions over several variables. For these, each variable must have exactly one event in the part that the condition
filters. That is the bounded fragment ([RMA] Definition 3.2) with contiguity added. The others raise
`UnsupportedFeature`: AND, negation, skip-till-next, SPAseq's joins of mappings, projections that leave an event of the
match unmarked, and conditions with aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, assert_never, runtime_checkable

import numpy as np

from spaseq.core.automata.rma import formulas as f
from spaseq.core.automata.rma.automaton import RMA
from spaseq.core.automata.rma.construct import build
from spaseq.core.automata.rma.expressions import (
    Either,
    Expression,
    Maybe,
    Plus,
    Read,
    RelationAs,
    Then,
    Where,
    Within,
    keep_variables,
    why_unbounded,
)
from spaseq.core.errors import InternalError, OptionError, UnsupportedFeature
from spaseq.core.pattern import (
    And,
    As,
    Atom,
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
    push_filters,
)

Slots = Mapping[str, tuple[str, ...]]
Choice = tuple[tuple[Any, ...], ...]
Condition = tuple[Slots, Callable[[Any], "bool | None"]]
"""The attributes that a condition reads of each variable, and its test. The test gives the truth for a `Choice`, which
has the values of these attributes, a tuple for each variable in order of names."""


@runtime_checkable
class SingleEvents(Protocol):
    """A guard that can be evaluated on one event for each of its variables."""

    def on_single_events(self) -> Condition | None:
        """The condition; None if it relates several events of one variable, as aggregates do."""
        ...


_OF_BATCHES = "an automaton made of a query reads the query's batches: query.alerts().rows(events)"


@dataclass(frozen=True, slots=True)
class OfBatch:
    """A predicate of the pattern algebra as a relation. It can be evaluated on batches only (`Recogniser`); called on a
    single event it raises `OptionError`."""

    predicate: Predicate
    excludes: Hashable | None = None

    def __call__(self, *events: Any) -> bool:
        raise OptionError(f"the condition {self.predicate} cannot be evaluated on a single event", _OF_BATCHES)

    def evaluate(self, batch: Any) -> np.ndarray:
        """The truth of the predicate for each event of `batch`: bool (n,)."""
        return self.predicate.evaluate(batch)

    def show(self, *names: str) -> str:
        return f"{self.predicate} of {names[0]}" if names[0] != f.CURRENT else str(self.predicate)

    def reads(self, place: int) -> tuple[str, ...] | None:
        return ()


@dataclass(frozen=True, slots=True)
class Guarded:
    """A guard over several variables as a relation; its arguments are the events of `variables`, in that order."""

    guard: SingleEvents
    variables: tuple[str, ...]

    def __call__(self, *events: Any) -> bool:
        slots, test = _condition(self.guard)
        chosen = tuple(
            tuple([event.get(name) for name in slots.get(v, ())])
            for v, event in zip(self.variables, events, strict=True)
        )
        return test(chosen) is True

    def on_values(self) -> Callable[[Choice], bool]:
        """The test as a function of the values that it reads: a tuple for each argument, in the order of `reads`."""
        test = _condition(self.guard)[1]
        return lambda choice: test(choice) is True

    def show(self, *names: str) -> str:
        where = ", ".join(f"{v}: {n}" for v, n in zip(self.variables, names, strict=True))
        return f"{self.guard} [{where}]"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return tuple(_condition(self.guard)[0].get(self.variables[place], ()))

    @property
    def excludes(self) -> Hashable | None:
        return None


def _condition(guard: SingleEvents) -> Condition:
    found = guard.on_single_events()
    if found is None:
        raise InternalError(f"{guard} is about several events of a variable")
    return found


Excludes = Callable[[Predicate], "Hashable | None"]


def _unknown(predicate: Predicate) -> None:
    return None


def from_pattern(pattern: Pattern, excludes: Excludes = _unknown) -> RMA:
    """The automaton of a pattern; its matches are the marked positions of the pattern's matches.

    A window is not part of a pattern: give it to `Recogniser`, or to `count_events` (WITHIN n EVENTS is n + 1 events).
    `excludes` gives the same value for predicates of which at most one holds for an event, such as event types; then
    determinisation leaves out combinations that cannot be. Raises `UnsupportedFeature` for patterns outside the bounded
    fragment.
    """
    return build(to_expression(pattern, excludes))


def to_expression(pattern: Pattern, excludes: Excludes = _unknown) -> Expression:
    """The bounded expression of a pattern. Raises `UnsupportedFeature` for patterns outside the bounded fragment."""
    expression = _Translation(excludes).expression(push_filters(pattern))
    _check_marks(expression)
    kept = keep_variables(expression, _names(expression))
    return kept if why_unbounded(kept) is None else _Renaming().expression(expression)


def _outside(what: str, why: str = "") -> UnsupportedFeature:
    hint = why or "the engine evaluates it; register match automata have sequences, OR and iterations of single events"
    return UnsupportedFeature(f"{what} has no register match automaton", hint=hint)


class _Translation:
    """Patterns to expressions, node by node. Variables keep their names."""

    def __init__(self, excludes: Excludes) -> None:
        self._excludes = excludes

    def _narrow(self, predicate: Predicate) -> f.Formula:
        return f.Test(OfBatch(predicate, self._excludes(predicate)), (f.CURRENT,))

    def _filter(self, e: RelationAs, name: str, predicate: Predicate) -> RelationAs:
        if name not in e.variables:
            return e
        return replace(e, condition=f.conjunction(e.condition, self._narrow(predicate)))

    def expression(self, pattern: Pattern) -> Expression:
        """Raises `UnsupportedFeature`."""
        match pattern:
            case Atom(_, _, guard) if guard is not None:
                raise _outside("a join of the run's mappings (SPAseq)")
            case Atom(predicates, names, _):
                ordered = sorted(predicates, key=lambda p: (type(p).__name__, str(p)))
                return RelationAs(f.conjunction(*(self._narrow(p) for p in ordered)), names)
            case As(child, name):
                return _map(self.expression(child), lambda e: replace(e, variables=e.variables | {name}))
            case Filter(child, name, predicate):
                return _map(self.expression(child), lambda e: self._filter(e, name, predicate))
            case Correlate(child, over, guard):
                return self._correlate(self.expression(child), over, guard)
            case Or(left, right):
                return Either(self.expression(left), self.expression(right))
            case Sequence(_, _, Skip.NEXT, _) | Iterate(_, Skip.NEXT):
                raise _outside("skipping till the next match")
            case Sequence(absent=absent, never=never, watched=watched) if absent or watched or never is not None:
                raise _outside("a negation between two parts")
            case Sequence(_, _, _, _, again) | Iterate(_, _, again) if again is not None:
                raise _outside("rounds that free variables (SPAseq)")
            case Sequence(left, right, skip):
                return Then(self.expression(left), self.expression(right), skip is Skip.NONE)
            case Bordered():
                raise _outside("a negation")
            case Optional():
                raise _outside("an optional part")
            case Iterate(_, _, _, _, until) if until:
                raise _outside("a repetition with UNTIL")
            case Iterate(child, skip):
                return Plus(self.expression(child), skip is Skip.NONE)
            case Project(child, kept):
                return _hide(self.expression(child), kept)
            case And():
                raise _outside("a conjunction (AND)")
            case _:
                assert_never(pattern)  # type: ignore[arg-type]

    def _correlate(self, child: Expression, over: frozenset[str], guard: object) -> Expression:
        counts = _counts(child)
        if any(counts.get(v, (0, 0)) == (0, 0) for v in over):
            return child  # a variable is always empty, so the guard always holds
        if not isinstance(guard, SingleEvents) or guard.on_single_events() is None:
            raise _outside(f"the condition {guard}", "it is about several events of a variable, not about one of each")
        for name in sorted(over):
            if counts[name] != (1, 1):
                many = "several events" if counts[name][1] > 1 else "an event in one alternative only"
                raise _outside(
                    f"the condition {guard}, where {name} has {many},",
                    "a condition needs exactly one event for each of its variables ([RMA] Definition 3.2): put it "
                    "inside the iteration or alternative that binds them",
                )
        order = tuple(sorted(over))
        return Where(child, f.Test(Guarded(guard, order), order))


_HIDDEN = "hidden "
"""The prefix for names of variables that a projection removes: conditions inside the projection still read them."""


def _hide(e: Expression, kept: frozenset[str]) -> Expression:
    """The expression with variables that are not in `kept` renamed, in events and conditions, by the prefix."""

    def names(variables: frozenset[str]) -> dict[str, str]:
        return {v: v if v in kept else _HIDDEN + v for v in variables}

    return _map(
        e,
        lambda own: replace(own, variables=frozenset(names(own.variables).values())),
        lambda condition: f.rename(condition, names(frozenset(f.arguments(condition)))),
    )


def _map(
    e: Expression,
    change: Callable[[RelationAs], RelationAs],
    rewrite: Callable[[f.Formula], f.Formula] = lambda condition: condition,
) -> Expression:
    """The expression with `change` applied to every event, and `rewrite` to the condition of every `Where`."""
    match e:
        case RelationAs():
            return change(e)
        case Where(child, condition):
            return Where(_map(child, change, rewrite), rewrite(condition))
        case Plus(child, _) | Maybe(child) | Within(child, _):
            return replace(e, child=_map(child, change, rewrite))
        case Either(left, right) | Then(left, right, _):
            return replace(e, left=_map(left, change, rewrite), right=_map(right, change, rewrite))
        case Read():
            return e
        case _:
            assert_never(e)  # type: ignore[arg-type]


def _counts(e: Expression) -> dict[str, tuple[int, int]]:
    """For each variable the least and the greatest number of its events in a match; 2 stands for several."""
    match e:
        case RelationAs(_, names):
            return dict.fromkeys(names, (1, 1))
        case Where(child, _) | Within(child, _):
            return _counts(child)
        case Plus(child, _):
            return {v: (least, 2) for v, (least, _) in _counts(child).items()}
        case Maybe(child):
            return {v: (0, most) for v, (_, most) in _counts(child).items()}
        case Either(left, right) | Then(left, right):
            a, b = _counts(left), _counts(right)
            both = {v: (a.get(v, (0, 0)), b.get(v, (0, 0))) for v in (*a, *b)}
            if isinstance(e, Either):
                return {v: (min(x[0], y[0]), max(x[1], y[1])) for v, (x, y) in both.items()}
            return {v: (min(2, x[0] + y[0]), min(2, x[1] + y[1])) for v, (x, y) in both.items()}
        case Read():
            return {}
        case _:
            assert_never(e)  # type: ignore[arg-type]


def _check_marks(e: Expression) -> None:
    def change(event: RelationAs) -> RelationAs:
        if all(v.startswith(_HIDDEN) for v in event.variables):
            raise _outside("a match of which SELECT leaves out an event",
                           "an automaton marks all events of its matches: select them all")  # fmt: skip
        return event

    _map(e, change)


def _names(e: Expression) -> frozenset[str]:
    """The variables that conditions name."""
    match e:
        case Where(child, condition):
            return _names(child) | frozenset(f.arguments(condition))
        case Plus(child, _) | Maybe(child) | Within(child, _):
            return _names(child)
        case Either(left, right) | Then(left, right, _):
            return _names(left) | _names(right)
        case RelationAs() | Read():
            return frozenset()
        case _:
            assert_never(e)  # type: ignore[arg-type]


class _Renaming:
    """Gives every condition its own variables, for expressions in which two scopes use one name for different
    events."""

    def __init__(self) -> None:
        self._scopes = 0

    def expression(self, e: Expression) -> Expression:
        """An expression with the same matches, and with no other variables than those of conditions."""
        return self._rename(keep_variables(e, _names(e)), {})

    def _rename(self, e: Expression, names: Mapping[str, frozenset[str]]) -> Expression:
        """`names`: for each variable its new names, one for each condition around that has it."""
        match e:
            case RelationAs(_, own):
                return replace(e, variables=frozenset[str]().union(*(names.get(v, frozenset()) for v in own)))
            case Where(child, condition):
                self._scopes += 1
                mine = {v: f"{v}.{self._scopes}" for v in f.arguments(condition)}
                known = {v: names.get(v, frozenset()) | ({mine[v]} if v in mine else frozenset())
                         for v in (*names, *mine)}  # fmt: skip
                return Where(self._rename(child, known), f.rename(condition, mine))
            case Plus(child, _) | Maybe(child) | Within(child, _):
                return replace(e, child=self._rename(child, names))
            case Either(left, right) | Then(left, right, _):
                return replace(e, left=self._rename(left, names), right=self._rename(right, names))
            case Read():
                return e
            case _:
                assert_never(e)  # type: ignore[arg-type]
