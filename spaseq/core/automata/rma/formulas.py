"""Formulas, the conditions on transitions; their simplification, satisfiability and minterms.

A formula is a Boolean combination of *tests*. A test is a relation applied to arguments. In an expression the arguments
are variables. On a transition they are registers, or `CURRENT` for the event at hand ([RMA] Definition 4.2). The
register selection of a transition is the list of its formula's arguments. Tests are two-valued, as minterms need it: a
comparison with an attribute that an event does not have is false, and its negation is true.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, assert_never, runtime_checkable

from spaseq.core.automata.rma.limits import Limits
from spaseq.core.comparisons import COMPARISONS
from spaseq.core.errors import EventError, OptionError
from spaseq.core.trees import fold, walk
from spaseq.core.watch import check

CURRENT: Final = "~"
"""The event at hand, as an argument of a test."""

Event = Mapping[str, Any]


@runtime_checkable
class Relation(Protocol):
    """An n-ary predicate on events. Hashable; equal relations must have the same meaning."""

    def __call__(self, *events: Any, **_: Any) -> bool:
        """True if the relation holds of these events: as many as it has arguments, by place."""
        ...

    def show(self, *names: str) -> str:
        """As text, with `names` for its arguments."""
        ...

    def reads(self, place: int) -> tuple[str, ...] | None:
        """The attributes that it reads of its argument at `place`; None for the event as a whole."""
        ...

    @property
    def excludes(self) -> Hashable | None:
        """A value that is equal for relations of which at most one holds for the same arguments; None if there is no
        such value."""
        ...


def is_compared(symbol: str, left: Any, right: Any, text: str) -> bool:
    if left is None or right is None:
        return False
    try:
        return bool(COMPARISONS[symbol].holds(left, right))
    except TypeError:
        raise EventError(f"{text}: {left!r} cannot be combined with {right!r}",
                         hint="are the attributes the right ones?") from None  # fmt: skip


@dataclass(frozen=True, slots=True)
class Is:
    """`z.attribute operator value`."""

    attribute: str
    operator: str
    value: Hashable

    def __call__(self, event: Event) -> bool:
        return is_compared(self.operator, event.get(self.attribute), self.value, self.show("event"))

    def show(self, *names: str) -> str:
        value = self.value if self.attribute == "type" else repr(self.value)
        return f"{names[0]}.{self.attribute} {self.operator} {value}"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return (self.attribute,)

    @property
    def excludes(self) -> Hashable | None:
        return ("attribute", self.attribute) if self.operator == "=" else None


@dataclass(frozen=True, slots=True)
class Relates:
    """`z.left operator w.right`."""

    left: str
    operator: str
    right: str

    def __call__(self, first: Event, second: Event) -> bool:
        return is_compared(self.operator, first.get(self.left), second.get(self.right), self.show("first", "second"))

    def show(self, *names: str) -> str:
        return f"{names[0]}.{self.left} {self.operator} {names[1]}.{self.right}"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return (self.left,) if place == 0 else (self.right,)

    @property
    def excludes(self) -> Hashable | None:
        return None


@dataclass(frozen=True, slots=True)
class Holds:
    """A relation given as a function of whole events; `name` is for people."""

    name: str
    function: Callable[..., bool]

    def __call__(self, *events: Event) -> bool:
        return bool(self.function(*events))

    def show(self, *names: str) -> str:
        return f"{self.name}({', '.join(names)})"

    def reads(self, place: int) -> tuple[str, ...] | None:
        return None

    @property
    def excludes(self) -> Hashable | None:
        return None


@dataclass(frozen=True, slots=True)
class Formula:
    """Base of all formulas."""


@dataclass(frozen=True, slots=True)
class Test(Formula):
    """`relation(arguments…)`."""

    relation: Relation
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Not(Formula):
    child: Formula


@dataclass(frozen=True, slots=True)
class All(Formula):
    """All of `parts` hold."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some(Formula):
    """Some of `parts` holds."""

    parts: tuple[Formula, ...]


TRUE: Final = All(())
FALSE: Final = Some(())


def compare(left: str, symbol: str, value: Hashable) -> Formula:
    """`left symbol value`; `left` is `variable.attribute`, as in `compare("x.value", "<", -40)`."""
    variable, attribute = _place(left)
    return Test(Is(attribute, _symbol(symbol), value), (variable,))


def relate(left: str, symbol: str, right: str) -> Formula:
    """`left symbol right`, both `variable.attribute`, as in `relate("x.id", "=", "y.id")`."""
    (first, a), (second, b) = _place(left), _place(right)
    return Test(Relates(a, _symbol(symbol), b), (first, second))


def _place(text: str) -> tuple[str, str]:
    variable, dot, attribute = text.partition(".")
    if not (variable and dot and attribute):
        raise OptionError(f"{text!r} is no attribute of a variable", "write variable.attribute")
    return variable, attribute


def _symbol(symbol: str) -> str:
    if symbol not in COMPARISONS:
        raise OptionError(f"no comparison {symbol!r}", f"one of {' '.join(COMPARISONS)}")
    return symbol


# Made so that they stay small


def conjunction(*parts: Formula) -> Formula:
    """The conjunction of `parts`, nested conjunctions flattened, each part once; FALSE if a part is FALSE."""
    return _join(All, Some, parts)


def disjunction(*parts: Formula) -> Formula:
    """The disjunction of `parts`, nested disjunctions flattened, each part once; TRUE if a part is TRUE."""
    return _join(Some, All, parts)


def _join(kind: type[All] | type[Some], other: type[All] | type[Some], parts: Sequence[Formula]) -> Formula:
    found: dict[Formula, None] = {}
    for part in parts:
        for leaf in part.parts if isinstance(part, kind) else (part,):
            found[leaf] = None
    if other(()) in found:
        return other(())
    return next(iter(found)) if len(found) == 1 else kind(tuple(found))


def negation(child: Formula) -> Formula:
    """The negation of `child`; double negations are removed."""
    if child in (TRUE, FALSE):
        return FALSE if child == TRUE else TRUE
    return child.child if isinstance(child, Not) else Not(child)


# Questions and changes


def tests(formula: Formula) -> Iterator[Test]:
    """The tests of a formula, from left to right, with repetitions."""
    return (part for part in walk(formula) if isinstance(part, Test))


def arguments(formula: Formula) -> tuple[str, ...]:
    """The arguments of a formula's tests, each once, in order of appearance: its register selection."""
    return tuple(dict.fromkeys(a for t in tests(formula) for a in t.arguments))


def holds(formula: Formula, truth: Callable[[Test], bool]) -> bool:
    """True if the formula holds; `truth` is called for tests until the value is determined."""
    match formula:
        case Test():
            return truth(formula)
        case Not(child):
            return not holds(child, truth)
        case All(parts):
            return all(holds(part, truth) for part in parts)
        case Some(parts):
            return any(holds(part, truth) for part in parts)
        case _:
            assert_never(formula)  # type: ignore[arg-type]


def _map(formula: Formula, change: Callable[[Test], Formula]) -> Formula:
    def changed(part: Formula, below: list[Formula]) -> Formula:
        if isinstance(part, Test):
            return change(part)
        make = negation if isinstance(part, Not) else conjunction if isinstance(part, All) else disjunction
        return make(*below)

    return fold(formula, changed)


def rename(formula: Formula, names: Mapping[str, str]) -> Formula:
    """The formula with each argument in `names` renamed to its value there."""
    return _map(formula, lambda t: Test(t.relation, tuple(names.get(a, a) for a in t.arguments)))


def restrict(formula: Formula, known: Mapping[Test, bool]) -> Formula:
    """The formula simplified by the truth of some of its tests."""

    def change(test: Test) -> Formula:
        truth = known.get(test)
        return test if truth is None else TRUE if truth else FALSE

    return _map(formula, change)


def satisfiable(formula: Formula) -> bool:
    """True if truth values for its tests exist that make it hold, with at most one true test among those that exclude
    each other.

    Other dependencies between relations are not considered: two comparisons count as independent. Exponential in the
    number of tests at worst.
    """
    propagated = _propagate(formula)
    if propagated is None:
        return False
    test = next(tests(propagated), None)
    if test is None or isinstance(propagated, Test):
        return propagated != FALSE
    return satisfiable(restrict(propagated, _if_true(test, propagated))) or satisfiable(
        restrict(propagated, {test: False})
    )


def _propagate(formula: Formula) -> Formula | None:
    """The formula left after some tests got a value. None if the values contradict each other.

    These are the tests that are parts of a conjunction, and those that they exclude. Also those that occur only
    positively or only negatively: these get the value that helps, whatever the others are.

    PERF: the formulas of runs that wait with different events in their registers are disjunctions of fifty tests, each
    wanted in one way. Without this, a test at a time, a forecast of two conditions took a minute.
    """
    while not isinstance(formula, Test):
        known: dict[Test, bool] = {}
        rest = []
        for part in _conjuncts(formula):
            test = part.child if isinstance(part, Not) else part
            if not isinstance(test, Test):
                rest.append(part)
            elif known.setdefault(test, test is part) != (test is part):
                return None
        held = [(t.relation.excludes, t.arguments) for t, truth in known.items()
                if truth and t.relation.excludes is not None]  # fmt: skip
        taken = set(held)
        if len(taken) < len(held):
            return None
        for test, wanted in _useful_values(rest).items():
            group = test.relation.excludes
            if wanted == {False} or (group, test.arguments) in taken:
                known.setdefault(test, False)
            elif wanted == {True} and group is None:
                known.setdefault(test, True)
        if not known:
            return formula
        formula = restrict(conjunction(*rest), known)
    return formula


def _conjuncts(formula: Formula) -> Iterator[Formula]:
    """Formulas that all hold if `formula` does."""
    match formula:
        case All(parts):
            for part in parts:
                yield from _conjuncts(part)
        case Not(Some(parts)):
            for part in parts:
                yield from _conjuncts(negation(part))
        case _:
            yield formula


def _useful_values(formulas: Iterable[Formula]) -> dict[Test, set[bool]]:
    """For each test of the formulas, which of its truth values can help them to hold."""
    found: dict[Test, set[bool]] = {}
    todo = [(formula, True) for formula in formulas]
    while todo:
        formula, truth = todo.pop()
        match formula:
            case Test():
                found.setdefault(formula, set()).add(truth)
            case Not(child):
                todo.append((child, not truth))
            case All(parts) | Some(parts):
                todo += [(part, truth) for part in parts]
    return found


def _if_true(test: Test, formula: Formula) -> dict[Test, bool]:
    """The truth of tests of `formula` that follows if `test` holds."""
    known = {test: True}
    group = test.relation.excludes
    if group is not None:
        for other in tests(formula):
            if other != test and other.arguments == test.arguments and other.relation.excludes == group:
                known[other] = False
    return known


def minterms(formulas: Sequence[Formula], limits: Limits) -> list[tuple[Formula, frozenset[int]]]:
    """The mutually exclusive conjunctions of `formulas` and their negations that can hold ([RMA] Appendix A.2).

    Each comes with the indices of the formulas that hold under it. Literals that follow from the others are left out.
    There are up to 2ⁿ; raises `BudgetExceeded` beyond `max_minterms`.
    """
    found: list[tuple[tuple[Formula, ...], frozenset[int]]] = [((), frozenset())]
    for index, formula in enumerate(formulas):
        grown: list[tuple[tuple[Formula, ...], frozenset[int]]] = []
        for literals, chosen in found:
            check()
            may = satisfiable(conjunction(*literals, formula))
            need_not = satisfiable(conjunction(*literals, negation(formula)))
            if may:
                grown.append(((*literals, formula) if need_not else literals, chosen | {index}))
            if need_not:
                grown.append(((*literals, negation(formula)) if may else literals, chosen))
        found = grown
        limits.minterms(len(found))
    return [(conjunction(*_drop_implied(literals)), chosen) for literals, chosen in found]


def _drop_implied(literals: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """The literals without those that follow from the others."""
    for literal in literals:
        others = tuple(o for o in literals if o is not literal)
        if not satisfiable(conjunction(*others, negation(literal))):
            return _drop_implied(others)
    return literals


def show(formula: Formula, names: Mapping[str, str] | None = None) -> str:
    """The formula as text, with the arguments in `names` renamed; TRUE and FALSE are written as words."""
    given = names or {}
    match formula:
        case Test(relation, args):
            return relation.show(*(given.get(a, a) for a in args))
        case Not(Test() as child):
            return f"¬({show(child, given)})"
        case Not(child):
            return f"¬{_bracket(child, given)}"
        case All(()):
            return "TRUE"
        case Some(()):
            return "FALSE"
        case All(parts):
            return " ∧ ".join(_bracket(p, given) if isinstance(p, Some) else show(p, given) for p in parts)
        case Some(parts):
            return " ∨ ".join(_bracket(p, given) if isinstance(p, All) else show(p, given) for p in parts)
        case _:
            assert_never(formula)  # type: ignore[arg-type]


def _bracket(formula: Formula, names: Mapping[str, str]) -> str:
    text = show(formula, names)
    return text if formula in (TRUE, FALSE) else f"({text})"
