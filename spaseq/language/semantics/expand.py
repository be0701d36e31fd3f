"""From a sequence expression with `?` and `!` to sequences without them.

A sequence with optional elements is the union of the sequences in which each of them is there or not: where one is
not, the operator before the next element applies to the element before. What is left over are *variants*: what a run
takes, step by step, and what must not occur.

A negated element takes no part in a match. Where it stands decides what it forbids:

* after `;` or `:`: an instant between its neighbours that matches it. It is a condition on the wait for the next step
  (`Step.absent`); where the next step follows at once (`,`), there is no wait and nothing to forbid.
* after `,`: the very next instant may match it no more than the next step allows. Either the next step takes that
  instant, or the run lets it pass (a *gap*) if it does not match.
* before all others: an instant since the window opened (`Variant.before`). Behind all others: one until the window
  closes (`Variant.after`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from spaseq.errors import BudgetExceeded
from spaseq.language.syntax.ast import Operator

__all__ = ["Conjunction", "Element", "Step", "Variant", "expand"]

Conjunction = tuple[str, ...]
"""Names of GPMs that hold at one instant, each once, sorted."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of the sequence: `operator` stands before it (None before the first).

    `alternatives`: its BOp expression in disjunctive normal form. `repeated`, `optional`, `negated`: `+`, `?`, `!`.
    """

    operator: Operator | None
    alternatives: tuple[Conjunction, ...]
    repeated: bool = False
    optional: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run: it takes an instant that matches one of `alternatives`, or, a `gap`, passes one that matches
    none of them.

    `operator`: how the run comes to it (None for the first). `absent`: no instant that it
    waits through matches any of these.
    """

    operator: Operator | None
    alternatives: tuple[Conjunction, ...]
    repeated: bool = False
    gap: bool = False
    absent: tuple[Conjunction, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """A sequence without `?` and `!`: see the module. At least one step is no gap, and the first one is none."""

    steps: tuple[Step, ...]
    before: tuple[Conjunction, ...] = ()
    after: tuple[Conjunction, ...] = ()


def expand(elements: tuple[Element, ...], most: int = 256) -> tuple[Variant, ...]:
    """The variants of a sequence expression, each once, the longest first. There is none if nothing must occur.

    Raises `BudgetExceeded` if there are more than `most`: each `?`, and each `!` after `,` between others, doubles
    them.
    """
    doubling = sum(e.optional or (e.negated and e.operator is Operator.STRICT) for e in elements)
    if 2**doubling > most:
        raise BudgetExceeded(
            "variants",
            most,
            2**doubling,
            "sequences without '?' and '!'",
            "each '?' and each '!' after ',' doubles them: leave some out, write several queries, or raise variants",
        )
    found = (variant for chosen in _choices(elements) for variant in _variants(chosen))
    return tuple(dict.fromkeys(found))


def _choices(elements: tuple[Element, ...]) -> Iterator[list[Element]]:
    """The elements with each subset of the optional ones left out, those that leave out little first."""
    optional = [i for i, e in enumerate(elements) if e.optional]
    subsets = product((False, True), repeat=len(optional))
    for absent in sorted(subsets, key=sum):
        left_out = {i for i, gone in zip(optional, absent, strict=True) if gone}
        yield [e for i, e in enumerate(elements) if i not in left_out]


def _variants(elements: list[Element]) -> Iterator[Variant]:
    taken = [i for i, e in enumerate(elements) if not e.negated]
    if not taken:
        return
    first, last = taken[0], taken[-1]
    before, after = _all(elements[:first]), _all(elements[last + 1 :])
    start = Step(None, elements[first].alternatives, elements[first].repeated)
    for steps in _steps((start,), elements[first + 1 : last + 1], (), at_once=False):
        yield Variant(steps, before, after)


def _all(negated: Iterable[Element]) -> tuple[Conjunction, ...]:
    return tuple(dict.fromkeys(c for e in negated for c in e.alternatives))


def _steps(
    done: tuple[Step, ...], rest: list[Element], absent: tuple[Conjunction, ...], *, at_once: bool
) -> Iterator[tuple[Step, ...]]:
    """The ways to go on after `done`. `absent` is forbidden until the next step, which follows `at_once` if a `!` after
    `,` let no instant pass."""
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
        yield from _steps(done, later, (*absent, *element.alternatives), at_once=at_once)
    else:
        operator = Operator.STRICT if contiguous else element.operator
        forbidden = () if contiguous else tuple(dict.fromkeys(absent))
        step = Step(operator, element.alternatives, element.repeated, absent=forbidden)
        yield from _steps((*done, step), later, (), at_once=False)
