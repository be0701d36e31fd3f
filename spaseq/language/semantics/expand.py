"""From a sequence expression with `?` and `!` to sequences without them.

A sequence with optional elements is the union of the sequences with and without each of them. If an element is left
out, the operator before the next element applies to the element before it. These sequences are the *variants*: the
steps of a run, and its absences.

AND(A, B) is the union of the orders of its parts, joined by `:`, with parts of one instant joined by `&`:
A : B, B : A, A & B (`_orders`). It stays one step, too.

Parentheses around a sequence without a suffix and without `|` say nothing. Other sequences in parentheses stay one step
(`Step.inner`), in which the union is over what each round takes.

A negated element is not part of a match. Its place decides its meaning:

* after `;` or `:`: no instant between its neighbours may match it. It is a condition on the wait for the next step
  (`Step.absent`); if the next step follows at once (`,`), there is no wait and nothing is forbidden.
* after `,`: the next instant is either taken by the next step, or the run passes over it. It may do so only if the
  instant does not match the negated element (a *gap*).
* before all other elements: no instant since the window opened may match it (`Variant.before`). Behind all others: no
  instant until the window closes (`Variant.after`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

from spaseq.core.errors import BudgetExceeded, InternalError
from spaseq.language.syntax.ast import Operator

_COUNTED: Final = 10**9
"""The most orders that an error gives: their number may have thousands of digits."""
Conjunction = tuple[str, ...]
"""The names of GPMs that match at one instant together, sorted. One may occur twice: if its mappings bind different
variables, their join with one another has more of them."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of a repetition: `low` (at least 1) to `high` (None: no bound), joined by `operator`.

    `operator` None: `;` in the first step of a sequence (Definition 13), `,` in the others (Definition 14).
    """

    low: int = 1
    high: int | None = None
    operator: Operator | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the sequence; `operator` is the one before it (None for the first).

    `alternatives`: its BOp expression in disjunctive normal form. Or it has `inner`: sequences in parentheses, of which
    one is taken. With `unordered` these are the parts of an AND, each of one element, and all are taken. `rounds`:
    those of `+` and `{l,m}`, None without. `optional`, `negated`: `?`, `!`. `lasting`: the time of `!` with FOR, ns.
    """

    operator: Operator | None
    alternatives: tuple[Conjunction, ...]
    rounds: Rounds | None = None
    optional: bool = False
    negated: bool = False
    inner: tuple[tuple[Element, ...], ...] = ()
    unordered: bool = False
    lasting: int | None = None

    def parts(self) -> Iterator[Element]:
        """Itself, and all elements inside."""
        yield self
        for elements in self.inner:
            for element in elements:
                yield from element.parts()

    @property
    def orders(self) -> int:
        """The number of orders of an AND's parts, for each choice of their alternatives. Cost: the square of the number
        of parts."""
        found = [1]  # of so many parts; k of n parts come first, at one instant
        for n in range(1, len(self.inner) + 1):
            found.append(sum(math.comb(n, k) * found[n - k] for k in range(1, n + 1)))
        return found[-1] * math.prod(len(part[0].alternatives) for part in self.inner)


@dataclass(frozen=True, slots=True)
class Among:
    """The place of a step in an order of the parts of an AND. `taken`: the conjunctions of the parts in front of it.
    `own`: the GPMs of its own parts, in all of their alternatives. `missing`: those of the parts behind it."""

    taken: tuple[Conjunction, ...]
    own: frozenset[str]
    missing: frozenset[str]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run: it takes an instant that matches one of `alternatives`; a `gap` passes over an instant that
    matches none of them. Or it takes one of the sequences `inner`, whose first steps have no operator.

    `operator`: the one before it (None for the first). `absent`: no instant that the run passes over while it waits for
    this step may match one of these. With `lasting` (ns) that is so for so long behind the step before, and this one
    comes later. `among`: its place among the parts of an AND.
    """

    operator: Operator | None
    alternatives: tuple[Conjunction, ...]
    rounds: Rounds | None = None
    gap: bool = False
    absent: tuple[Conjunction, ...] = ()
    inner: tuple[tuple[Step, ...], ...] = ()
    among: Among | None = None
    lasting: int | None = None

    def parts(self) -> Iterator[Step]:
        """Itself, and all steps inside."""
        yield self
        for steps in self.inner:
            for step in steps:
                yield from step.parts()

    def first(self) -> Iterator[Step]:
        """The steps that may take its first instant."""
        if not self.inner:
            yield self
        for steps in self.inner:
            yield from steps[0].first()


@dataclass(frozen=True, slots=True)
class Variant:
    """A sequence without `?` and `!`, see the module. The first step is not a gap."""

    steps: tuple[Step, ...]
    before: tuple[Conjunction, ...] = ()
    after: tuple[Conjunction, ...] = ()

    def parts(self) -> Iterator[Step]:
        """All steps, with those inside of steps."""
        for step in self.steps:
            yield from step.parts()


def is_solid(elements: Sequence[Element]) -> bool:
    """True if the elements neither begin nor end with `!`, whatever optional ones are left out, and are never empty."""
    return all(_edge(elements, step) is _Edge.TAKES for step in (1, -1))


class _Edge(enum.Enum):
    TAKES = "takes an instant"
    NEGATED = "begins with !"
    EMPTY = "may be empty"


def _edge(elements: Sequence[Element], step: int) -> _Edge:
    """The worst that elements may begin with, from the left (1) or from the right (-1)."""
    for element in elements[::step]:
        if element.negated:
            return _Edge.NEGATED
        inside = _edge(element.inner[0], step) if _is_spliced(element) else _Edge.TAKES
        if inside is _Edge.NEGATED or (inside is _Edge.TAKES and not element.optional):
            return inside
    return _Edge.EMPTY


def expand(elements: tuple[Element, ...], most: int = 256) -> tuple[Variant, ...]:
    """The variants of a sequence expression, each once, the longest first; none if the sequence has no element that
    takes an instant.

    Raises `BudgetExceeded` (`variants`) if there are more than `most`: each `?`, and each `!` after `,`, doubles them.
    Also if an AND's parts have more orders than that.
    """
    every = [part for element in elements for part in element.parts()]
    doubling = sum(e.optional or (e.negated and e.operator is Operator.STRICT) for e in every)
    if 2**doubling > most:
        raise BudgetExceeded(
            "variants",
            most,
            2**doubling,
            "sequences without '?' and '!'",
            "each '?' and each '!' after ',' doubles them: leave some out, write several queries, or raise variants",
        )
    if (orders := 2**doubling * _count_orders(elements)) > most:
        counted = "" if orders <= _COUNTED else "they were counted up to a billion; "
        raise BudgetExceeded(
            "variants",
            most,
            min(orders, _COUNTED),
            "orders of the parts of AND",
            f"{counted}4 parts have 75 orders, 5 have 541; alternatives of a part, rounds, '?' and '!' after ',' "
            "multiply them: write fewer parts, or raise variants",
        )
    found = (variant for chosen in _choices(_flat(elements)) for variant in _variants(chosen))
    return tuple(dict.fromkeys(found))


def _count_orders(elements: Iterable[Element]) -> int:
    """The orders of the parts of all ANDs, with bounded repetition written out."""
    return sum(
        (e.rounds.high or e.rounds.low if e.rounds else 1)
        * (e.orders if e.unordered else sum(map(_count_orders, e.inner)))
        for e in elements
    )


def _is_spliced(element: Element) -> bool:
    """True if its sequence in parentheses takes its place, if the element is not left out."""
    return len(element.inner) == 1 and element.rounds is None and not element.unordered


def _flat(elements: Iterable[Element]) -> tuple[Element, ...]:
    """The elements, those in parentheses that no suffix and no `|` is at among the others."""
    found: list[Element] = []
    for element in elements:
        if _is_spliced(element) and not element.optional:
            first, *others = _flat(element.inner[0])
            found += [replace(first, operator=element.operator), *others]
        else:
            found.append(element)
    return tuple(found)


def _choices(elements: tuple[Element, ...]) -> Iterator[list[Element]]:
    """The elements without each subset of the optional ones, the smallest subsets first."""
    optional = [i for i, e in enumerate(elements) if e.optional]
    subsets = product((False, True), repeat=len(optional))
    for absent in sorted(subsets, key=sum):
        left_out = {i for i, gone in zip(optional, absent, strict=True) if gone}
        chosen = [replace(e, optional=False) for i, e in enumerate(elements) if i not in left_out]
        flat = _flat(chosen)
        if any(e.optional for e in flat):  # those of parentheses that were optional themselves
            yield from _choices(flat)
        else:
            yield list(flat)


def _variants(elements: list[Element]) -> Iterator[Variant]:
    taken = [i for i, e in enumerate(elements) if not e.negated]
    if not taken:
        return
    first, last = taken[0], taken[-1]
    before, after = _all(elements[:first]), _all(elements[last + 1 :])
    for steps in _steps((_step(None, elements[first]),), elements[first + 1 : last + 1], (), at_once=False):
        yield Variant(steps, before, after)


def _step(
    operator: Operator | None, element: Element, absent: tuple[Conjunction, ...] = (), lasting: int | None = None
) -> Step:
    if element.unordered:
        inner = _orders(tuple(part.alternatives for (part,) in element.inner), ())
    else:
        inner = tuple(dict.fromkeys(steps for inside in element.inner for steps in _inner_steps(inside)))
    return Step(operator, element.alternatives, element.rounds, absent=absent, inner=inner, lasting=lasting)


def _orders(parts: tuple[tuple[Conjunction, ...], ...], taken: tuple[Conjunction, ...]) -> tuple[tuple[Step, ...], ...]:
    """The orders of an AND's `parts`, each by its alternatives, behind the conjunctions `taken`, as step sequences.

    What follows a first step is one step, so the number of steps is that of the beginnings of orders. The automaton has
    a state for each set of parts taken: states with the same future are one.
    """
    every, found = range(len(parts)), dict[tuple[Step, ...], None]()
    for chosen in (c for count in range(1, len(parts) + 1) for c in combinations(every, count)):
        rest = tuple(parts[i] for i in every if i not in chosen)
        own = frozenset(name for i in chosen for c in parts[i] for name in c)
        among = Among(taken, own, frozenset(name for part in rest for c in part for name in c))
        together = {tuple(sorted(n for c in some for n in c)) for some in product(*(parts[i] for i in chosen))}
        for conjunction in sorted(together):
            first = Step(None, (conjunction,), among=among)
            if rest:
                found[first, Step(Operator.ANY, (), inner=_orders(rest, (*taken, conjunction)))] = None
            else:
                found[(first,)] = None
    return tuple(found)


def _inner_steps(elements: tuple[Element, ...]) -> Iterator[tuple[Step, ...]]:
    """The step sequences of a sequence in parentheses."""
    for chosen in _choices(_flat(elements)):
        if not chosen or chosen[0].negated or chosen[-1].negated:
            raise InternalError("a sequence in parentheses that is empty, or begins or ends with '!'")
        yield from _steps((_step(None, chosen[0]),), chosen[1:], (), at_once=False)


def _all(negated: Iterable[Element]) -> tuple[Conjunction, ...]:
    return tuple(dict.fromkeys(c for e in negated for c in e.alternatives))


def _steps(
    done: tuple[Step, ...],
    rest: list[Element],
    absent: tuple[Conjunction, ...],
    *,
    at_once: bool,
    lasting: int | None = None,
) -> Iterator[tuple[Step, ...]]:
    """The step sequences that begin with `done` and continue with `rest`. `absent` is forbidden while the run waits for
    the next step, for the time `lasting`; `at_once`: that step must take the next instant."""
    if not rest:
        yield done
        return
    element, later = rest[0], rest[1:]
    contiguous = at_once or element.operator is Operator.STRICT
    if element.negated and element.operator is Operator.STRICT:
        yield from _steps(done, later, (), at_once=True)
        gap = Step(Operator.STRICT, element.alternatives, gap=True)
        yield from _steps((*done, gap), later, (), at_once=False)
    elif element.negated:
        both = (*absent, *element.alternatives)
        yield from _steps(done, later, both, at_once=at_once, lasting=element.lasting)
    else:
        operator = Operator.STRICT if contiguous else element.operator
        forbidden = () if contiguous else tuple(dict.fromkeys(absent))
        step = _step(operator, element, forbidden, lasting)
        yield from _steps((*done, step), later, (), at_once=False)
