"""Queries whose solutions are counted, and not listed: `SELECT (COUNT(*) AS ?n)` over a sequence joined by `:`.

A solution is a pair of an end and a mapping (Definition 16), each once, however many matches have it. Let every step
take one instant, `:` stand between the steps, and the mapping tell which mapping each step took. Then the solutions
are the choices of a mapping for each step that occur in that order and agree. Let the variables that a step and those
in front of it share with later ones be variables of this step and the next one, always bound. Then a choice is
continued by the next step's mapping alone, if its values of these variables are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spaseq.language.semantics.expand import Conjunction, Variant
from spaseq.language.semantics.filters import conditions, conjunction_binds
from spaseq.language.syntax.ast import Operator

if TYPE_CHECKING:
    from spaseq.language.semantics.check import CheckedQuery


@dataclass(frozen=True, slots=True)
class CountedStep:
    """A step of the sequence. `names`: the variables of its mappings, sorted. `before`: the places in `names` of the
    variables that it shares with the steps in front of it. `behind`: of those that steps up to it share with later
    ones."""

    conjunction: Conjunction
    names: tuple[str, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]


def counted_steps(query: CheckedQuery) -> tuple[CountedStep, ...] | None:
    """The steps of a query whose solutions are counted; None if they are listed, or if none are counted."""
    found = _steps(query)
    return None if isinstance(found, str) else found


def why_listed(query: CheckedQuery) -> str:
    """The reason for which the solutions of a query with aggregates are listed; empty if they are counted, or if it has
    no aggregates."""
    found = _steps(query) if query.clauses.groups else ""
    return found if isinstance(found, str) else ""


def _steps(query: CheckedQuery) -> tuple[CountedStep, ...] | str:
    """The steps, or the reason why there are none."""
    variant, patterns, plan = query.variants[0], query.patterns, query.clauses.plan
    taken = _conjunctions(query, variant)
    if not query.clauses.one_group or plan is None:
        return "there is a GROUP BY"
    if isinstance(taken, str):
        return taken
    if not plan.counts(frozenset().union(*(_certain(query, conjunction) for conjunction in taken))):
        return "more is asked of them than their number"
    if any(True for conjunction in taken for _ in conditions(patterns, conjunction, inner=False)):
        return "a FILTER names variables of several GPMs"
    binds = [conjunction_binds(patterns, conjunction) for conjunction in taken]
    certain = [_certain(query, conjunction) for conjunction in taken]
    kept, steps = frozenset[str](), []
    for place, (conjunction, own) in enumerate(zip(taken, binds, strict=True)):
        before = kept
        later = frozenset[str]().union(*binds[place + 1 :])
        kept = (before | own) & later
        if not before <= own:
            return "GPMs share a variable that one between them has not"
        if not (before | kept) <= certain[place]:
            return "GPMs share a variable that may be unbound"
        names = tuple(sorted(own))
        steps.append(CountedStep(conjunction, names, _places(names, before), _places(names, kept)))
    return tuple(steps)


def _conjunctions(query: CheckedQuery, variant: Variant) -> list[Conjunction] | str:
    """The conjunctions of the steps, or the reason why they do not do."""
    steps = variant.steps
    if len(query.variants) > 1 or any(len(step.alternatives) > 1 or step.inner or step.among for step in steps):
        return "the sequence has alternatives"
    if any(step.rounds is not None for step in steps):
        return "a GPM repeats"
    absent = any(step.gap or step.absent or step.lasting is not None for step in steps)
    if absent or variant.before or variant.after or query.lasting.silence is not None:
        return "a GPM is negated"
    if query.partition:
        return "there is a PARTITION BY"
    if query.after is not None:
        return "matches are chosen"
    if any(step.operator is not Operator.ANY for step in steps[1:]):
        return "a run skips to the next match: only ':' skips to any"
    return [step.alternatives[0] for step in steps]


def _certain(query: CheckedQuery, conjunction: Conjunction) -> frozenset[str]:
    """The variables that every mapping of a conjunction binds."""
    return frozenset[str]().union(*(query.patterns[name].certain for name in conjunction))


def _places(names: tuple[str, ...], some: frozenset[str]) -> tuple[int, ...]:
    return tuple(place for place, name in enumerate(names) if name in some)
