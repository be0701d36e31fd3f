"""Random CEQL queries that choose among the matches which a NOT at their borders leaves: both leave matches out."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

from tests.support import oracle, strategies
from tests.support.oracle import As, Before, Behind, Filter, Formula, Or, Plus, Query, Then, Type, Within
from tests.support.strategies import NUMERIC, CeqlCase

_TYPES = "ABC"
_TRIES = 40


def chosen_case(rng: random.Random) -> CeqlCase:
    """A query of loops with NOT in front, behind or in some alternatives, and with a choice, over at most 10 events."""
    while True:
        case = _case(rng)
        for _ in range(_TRIES):
            case = replace(case, events=_stream(rng, timed=strategies._needs_times(case.query.within) or True))
            if _matters(case):
                return case


def _matters(case: CeqlCase) -> bool:
    """True if the matches are others without the NOTs, and with another choice there are more."""
    query = case.query
    every = replace(query, strategy="ALL", consume="NONE", limit=None, after=None)
    plain = replace(query, formula=strategies._without_absences(query.formula), beginning=None, ending=None)
    found = set(oracle.evaluate(query, case.stream))
    more = query.strategy == "ANY" or len(found) < len(oracle.evaluate(every, case.stream))
    return more and found != set(oracle.evaluate(plain, case.stream))


def _case(rng: random.Random) -> CeqlCase:
    formula = _formula(rng)
    place = rng.randrange(6)
    if place == 0:
        formula = Or(_with_border(rng, formula), _with_border(rng, _formula(rng)))
    elif place == 1:
        formula = Or(formula, _with_border(rng, rng.choice((formula, _formula(rng)))))
    size = Fraction(rng.choice((2, 3, 4, 6)))
    within = rng.choice((Within(size, "events"), Within(size * 10**9, "time"), Within(size, "attribute", "t")))
    if within.unit == "time" and rng.random() < 0.5:
        formula = strategies._with_times(rng, formula)
    query = Query(formula, within=within, partition=rng.choice(((), (), (("k",),))))
    if place in (2, 4):
        query = replace(query, beginning=strategies.draw_absent(rng, ()))
    if place in (3, 4, 5) or rng.random() < 0.2:
        names = sorted(oracle.variables_of(formula)) if rng.random() < 0.2 else ()
        query = replace(query, ending=strategies.draw_absent(rng, names))
        if place == 5 and within.unit != "attribute":
            query = replace(query, patience=size * 10**9 / 2, within=rng.choice((None, Within(size * 10**9, "time"))))
    return CeqlCase(strategies.draw_choice(rng, query), ())


def _formula(rng: random.Random) -> Formula:
    one, two, three = (Type(rng.choice(_TYPES)) for _ in range(3))
    some: Formula = Plus(As(one, "x")) if rng.random() < 0.7 else Plus(As(Or(one, two), "x"))
    whole = rng.choice(
        (some, Then(some, As(two, "y")), Then(As(two, "y"), some), Then(Then(As(two, "y"), some), As(three, "z")))
    )
    if whole is some or rng.random() < 0.7:
        return whole
    return Filter(whole, ("for all", ("<=", ("of", "x", rng.choice(NUMERIC)), ("of", "y", rng.choice(NUMERIC)))))


def _with_border(rng: random.Random, formula: Formula) -> Formula:
    absent = strategies.draw_absent(rng, ())
    return Before(absent, formula) if rng.random() < 0.4 else Behind(formula, absent)


def _stream(rng: random.Random, *, timed: bool) -> tuple[tuple[tuple[str, object], ...], ...]:
    return strategies.draw_stream(rng, rng.choice((5, 6, 7, 8, 9, 10)), timed=timed)
