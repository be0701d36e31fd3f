"""Random queries and streams: CEQL formulas as the naive evaluator's data with a printer, SPAseq queries as text.

Everything is drawn from a `random.Random`, so a seed names a case. `shrink_*` make a failing case small.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from tests.support.harness import NAMESPACE, Events, Graphs
from tests.support.oracle import (
    And,
    Apart,
    As,
    Before,
    Behind,
    Filter,
    Formula,
    Or,
    Other,
    Plus,
    Project,
    Query,
    Repeat,
    Rounds,
    Step,
    Then,
    TooBig,
    Type,
    Within,
    Without,
    evaluate,
    named,
    variables_of,
)
from tests.support.oracle_repeated import Again

TYPES = "ABCD"
NUMERIC = ("a", "b")


# -------------------------------------------------------------------------------------------------------- CEQL, drawn


@dataclass(frozen=True, slots=True)
class CeqlCase:
    query: Query
    events: tuple[tuple[tuple[str, Any], ...], ...]

    @property
    def stream(self) -> Events:
        return [dict(event) for event in self.events]

    @property
    def text(self) -> str:
        return print_query(self.query)


def ceql_case(rng: random.Random) -> CeqlCase:
    """A query of at most four levels over a stream of at most 14 events."""
    return _case_of(rng, draw_formula(rng, rng.choice((1, 2, 3, 3, 4, 4))))


def absence_case(rng: random.Random) -> CeqlCase:
    """A query with a NOT at the border of a part or in a conjunction, or between two parts. Those between two parts are
    of several events or have conditions on later events, alone or within others."""
    if rng.random() < 0.6:
        return _case_of(rng, draw_between_parts(rng))
    left, right = draw_formula(rng, rng.choice((0, 0, 1, 2))), draw_formula(rng, rng.choice((0, 0, 0, 1)))
    absent = draw_never(rng, 2) if rng.random() < 0.5 else draw_denied(rng, left, right)
    formula: Formula = Without(left, absent, right)
    kind = rng.randrange(8)
    other = draw_formula(rng, rng.choice((0, 1)))
    if kind == 0:
        formula = Plus(formula, rng.random() < 0.2)
    elif kind == 1:
        formula = Or(formula, other)
    elif kind == 2:
        formula = And(formula, other)
    elif kind in (3, 4):
        formula = Then(*((formula, other) if kind == 3 else (other, formula)), rng.random() < 0.2)
    elif kind == 5:
        formula = Without(formula, draw_never(rng, 1), draw_formula(rng, 0))
    if rng.random() < 0.2:
        formula = Filter(formula, draw_condition(rng, sorted(variables_of(formula))))
    return _case_of(rng, formula)


def left_out(case: CeqlCase) -> int:
    """The number of matches that the NOTs of a query leave out; 0 if other clauses hide that."""
    plain = replace(case.query, formula=_without_absences(case.query.formula), ending=None)
    return len(set(evaluate(plain, case.stream)) - set(evaluate(case.query, case.stream)))


def _without_absences(formula: Any) -> Any:
    """The formula without what it says must not come."""
    if not isinstance(formula, Formula) or isinstance(formula, Type | Other):
        return formula
    if isinstance(formula, Before | Behind | Apart):
        return _without_absences(formula.child)
    sides = {n: _without_absences(getattr(formula, n)) for n in ("child", "left", "right") if hasattr(formula, n)}
    if isinstance(formula, Without):
        return Then(**sides) if formula.join == ";" else Step(**sides)
    return replace(formula, **sides)


def draw_between_parts(rng: random.Random) -> Formula:
    """A part with NOTs at its borders, with the part called `before` before it, and at times another behind it."""
    formula = draw_bordered(rng, rng.choice((1, 1, 2, 2, 3)))
    first = As(draw_formula(rng, rng.choice((0, 0, 1))), "before")
    formula = Without(first, draw_absent(rng, ()), formula) if rng.random() < 0.1 else Then(first, formula)
    if rng.random() < 0.6:
        formula = Then(formula, draw_formula(rng, 0))
    if rng.random() < 0.2:
        formula = Filter(formula, draw_condition(rng, sorted(variables_of(formula))))
    return formula


def draw_bordered(rng: random.Random, depth: int) -> Formula:
    """A formula with NOTs at its borders, in loops, alternatives, conjunctions, optional parts and sequences."""
    kinds = ("before", "behind", "apart", "or", "plus", "repeat", "then", "optional")
    kind = rng.choices(kinds if depth > 1 else kinds[:3], (3, 3, 3, 4, 3, 2, 4, 1) if depth > 1 else (1, 1, 1))[0]
    inner = draw_formula(rng, rng.choice((0, 0, 0, 1))) if depth < 2 else draw_bordered(rng, depth - 1)
    other = draw_bordered(rng, 1) if rng.random() < 0.3 else draw_formula(rng, rng.choice((0, 0, 1)))
    sides = (inner, other) if rng.random() < 0.5 else (other, inner)
    known: Sequence[str] = ()
    if kind == "before":
        known = ("before",) if rng.random() < 0.3 else ()
        formula: Formula = Before(draw_absent(rng, known) if rng.random() < 0.8 else draw_never(rng, 1), inner)
    elif kind == "behind":
        known = sorted(variables_of(inner)) if rng.random() < 0.5 else ()
        formula = Behind(inner, draw_absent(rng, known) if rng.random() < 0.8 else draw_never(rng, 1))
    elif kind == "apart":
        formula = _draw_apart(rng)
    elif kind == "or":
        formula = Or(*sides)
    elif kind == "plus":
        formula = Plus(inner)
    elif kind == "repeat":
        formula = Repeat(inner, low := rng.randint(1, 2), rng.choice((None, low, low + 1)))
    elif kind == "optional":
        formula = Rounds(inner, 0, rng.choice((1, 1, None)), ";", "greedy")
    else:
        formula = Then(*sides)
    if rng.random() < 0.15:
        formula = As(formula, rng.choice("xyz"))
    if rng.random() < 0.15:
        formula = Filter(formula, draw_condition(rng, sorted(variables_of(formula))))
    return formula


def _draw_apart(rng: random.Random) -> Formula:
    """AND with a NOT or two."""
    inner = draw_formula(rng, rng.choice((0, 1)))
    formula = Apart(And(inner, draw_formula(rng, 0)) if rng.random() < 0.8 else inner, draw_absent(rng, ()))
    return Apart(formula, draw_absent(rng, ())) if rng.random() < 0.2 else formula


def _draw_at_the_ends(rng: random.Random) -> Formula:
    """AND with NOTs, with a part on one side or none, or several NOTs in front of parts and behind them."""
    if rng.random() < 0.3:
        formula = draw_formula(rng, rng.choice((0, 1)))
        for _ in range(rng.choice((1, 2, 2, 3))):
            absent = draw_absent(rng, ())
            formula = Behind(formula, absent) if rng.random() < 0.5 else Before(absent, formula)
        return formula
    both, other = _draw_apart(rng), draw_formula(rng, 0)
    formula = rng.choice((both, Then(both, other), Then(other, both)))
    return Rounds(formula, rng.choice((0, 1)), rng.choice((2, None)), ";", "greedy") if rng.random() < 0.2 else formula


def lasting_case(rng: random.Random) -> CeqlCase:
    """A query with NOTs at borders of parts, at those of alternatives of the whole, or between two parts, most of them
    for a time of their own."""
    kind = rng.random()
    if kind < 0.5:
        formula = draw_between_parts(rng)
    elif kind < 0.7:
        formula = draw_alternatives(rng)
    elif kind < 0.8:
        formula = _draw_at_the_ends(rng)
    else:
        formula = draw_bordered(rng, rng.choice((1, 2, 2)))
        formula = formula if rng.random() < 0.4 else Then(formula, draw_formula(rng, 0))
        if not _free_variables(formula) <= variables_of(formula):
            formula = Then(As(draw_formula(rng, 0), "before"), formula)
    if rng.random() < 0.25:
        formula = Without(formula, draw_absent(rng, ()), draw_formula(rng, rng.choice((0, 0, 1))))
    case = _case_of(rng, _with_times(rng, formula))
    within = case.query.within if rng.random() < 0.5 else rng.choice((None, Within(Fraction(4 * 10**9), "time")))
    return replace(case, query=replace(case.query, within=within), events=draw_stream(rng, timed=True))


def _with_times(rng: random.Random, formula: Any) -> Any:
    """The formula with times of their own for most of its NOTs of one event."""
    if not isinstance(formula, Formula) or isinstance(formula, Type | Other):
        return formula
    formula = replace(
        formula, **{n: _with_times(rng, getattr(formula, n)) for n in ("child", "left", "right") if hasattr(formula, n)}
    )
    if isinstance(formula, Before | Behind | Without | Apart) and is_one_event(formula.absent) and rng.random() < 0.75:
        return replace(formula, span=Fraction(rng.choice((0, 1, 1, 2, 2, 3, 2.5))) * 10**9)
    return formula


def is_one_event(formula: Formula) -> bool:
    """True if each valuation of what a NOT forbids takes one event."""
    match formula:
        case As(child) | Filter(child):
            return is_one_event(child)
        case Or(left, right):
            return is_one_event(left) and is_one_event(right)
    return isinstance(formula, Type)


def draw_denied(rng: random.Random, left: Formula, right: Formula) -> Formula:
    """The formula of a NOT of one event that is compared with later ones, perhaps with earlier ones, too."""
    formula: Formula = As(Type(rng.choice(TYPES)), "n")
    names = [
        sorted(variables_of(side)) for side in ((right,), (right,), (right, left), (right, right))[rng.randrange(4)]
    ]
    for known in names:
        other = ("of", rng.choice(known), rng.choice(NUMERIC))
        sign = rng.choice(("=", "!=", "<", "<=", ">", ">="))
        formula = Filter(formula, ("for all", (sign, ("of", "n", rng.choice(NUMERIC)), other)))
    if rng.random() < 0.2:
        formula = Filter(formula, ("on", "n", draw_expression(rng, 1)))
    return Or(formula, draw_absent(rng, sorted(variables_of(left)))) if rng.random() < 0.25 else formula


def draw_never(rng: random.Random, depth: int) -> Formula:
    """The formula of a NOT of several events, perhaps filtered one by one."""
    if depth == 0:
        name = rng.choice("no")
        event: Formula = As(Type(rng.choice(TYPES)), name)
        return Filter(event, ("on", name, draw_expression(rng, 1))) if rng.random() < 0.3 else event
    left, right = draw_never(rng, depth - 1), draw_never(rng, rng.randrange(depth))
    kind = rng.choices(("then", "or", "plus", "repeat", "and", "without"), (9, 2, 2, 2, 1, 1))[0]
    if kind == "plus":
        return Plus(left, rng.random() < 0.4)
    if kind == "repeat":
        return Repeat(left, low := rng.randint(1, 2), rng.choice((None, low, low + 1)))
    if kind == "without":
        return Without(left, draw_never(rng, 0), right)
    if kind == "then":
        return Then(left, right, rng.random() < 0.4)
    return Or(left, right) if kind == "or" else And(left, right)


def _case_of(rng: random.Random, formula: Formula) -> CeqlCase:
    names = sorted(variables_of(formula))
    select: frozenset[str] | None = None
    if rng.random() < 0.35:
        select = frozenset(rng.sample(names, rng.randint(0, min(2, len(names)))))
    strategy, consume, limit, ending = "STRICT" if rng.random() < 0.12 else "ALL", "NONE", None, None
    if rng.random() < 0.07:
        ending = draw_absent(rng, ())
    else:
        strategy = rng.choice(("NEXT", "LAST", "MAX", "ANY")) if rng.random() < 0.25 else strategy
        consume = rng.choice(("ANY", "PARTITION")) if rng.random() < 0.15 else consume
        limit = rng.randint(1, 3) if rng.random() < 0.1 else limit
    query = Query(
        formula,
        select,
        strategy,
        rng.choice(((), (), (), (), (("k",),), (("k",), ("s",)))),
        draw_window(rng),
        (),
        consume,
        limit,
        ending,
    )
    stream = draw_stream(rng, timed=_needs_times(query.within))
    return CeqlCase(draw_rule(rng, query) if rng.random() < 0.15 else query, stream)


def after_case(rng: random.Random) -> CeqlCase:
    """A wide case with AFTER MATCH or SELECT FIRST; most of them leave matches out."""

    def left_out(case: CeqlCase) -> int:
        strategy = "ALL" if case.query.strategy == "FIRST" else case.query.strategy
        plain = replace(case.query, after=None, strategy=strategy)
        return len(evaluate(plain, case.stream)) - len(evaluate(case.query, case.stream))

    def draw(rng: random.Random) -> CeqlCase:
        case = _widen(rng)
        plain = replace(case.query, consume="NONE", limit=None, ending=None)
        query = plain
        while query.after is None and query.strategy != "FIRST":
            query = draw_rule(rng, plain)
        return replace(case, query=query)

    return interesting(draw, left_out, rng)


def draw_rule(rng: random.Random, query: Query) -> Query:
    """The query with SELECT FIRST, or with a rule of AFTER MATCH, if these go with its other clauses."""
    if (query.consume, query.limit, query.ending) != ("NONE", None, None):
        return query
    rule = rng.choice(("FIRST", "PAST LAST", "TO NEXT", "TO FIRST", "TO LAST"))
    if rule == "FIRST":
        return replace(query, strategy="FIRST")
    names = sorted(_shown_names(query.formula, False) if query.select is None else query.select)
    if rule in ("TO FIRST", "TO LAST") and not names:
        return query
    variable = rng.choice(names) if rule in ("TO FIRST", "TO LAST") else ""
    return replace(query, strategy="STRICT" if query.strategy == "STRICT" else "ALL", after=(rule, variable))


def _is_named(query: Query) -> bool:
    """True if AFTER MATCH names no variable, or one that matches show."""
    shown = _shown_names(query.formula, False) if query.select is None else query.select
    return query.after is None or query.after[1] in (*shown, "")


def _shown_names(formula: Formula, named: bool) -> frozenset[str]:
    """The variables of AS, and the event types that are under none."""
    match formula:
        case Type(name):
            return frozenset() if named else frozenset({name})
        case As(child, variable):
            return _shown_names(child, True) | {variable}
        case Other():
            return frozenset()
        case Filter(child) | Plus(child) | Repeat(child) | Rounds(child):
            return _shown_names(child, named)
        case Before(child=child) | Behind(child=child) | Apart(child=child):
            return _shown_names(child, named)
        case Then(left, right) | Or(left, right) | And(left, right) | Step(left, right) | Without(left, _, right):
            return _shown_names(left, named) | _shown_names(right, named)
    raise AssertionError(formula)


def _needs_times(within: Within | None) -> bool | None:
    """True if events are to have times, None if some streams may do without."""
    return True if within is not None and within.unit == "time" else None


def wide_ceql_case(rng: random.Random) -> CeqlCase:
    """A case with something more that is rare elsewhere: names of one event related, odd keys, windows at the edges of
    time, several streams. It has matches, as a rule."""

    def found(case: CeqlCase) -> int:
        return len(evaluate(replace(case.query, limit=None), case.stream))

    return interesting(_widen, found, rng)


def _widen(rng: random.Random) -> CeqlCase:
    case = ceql_case(rng)
    kind = rng.randrange(10)
    if kind < 2:
        widened = replace(case.query, formula=_two_names(rng, case.query.formula))
        case = replace(case, query=widened if _is_named(widened) else replace(widened, after=None))
    if kind == 2:
        case = replace(case, query=replace(case.query, partition=(("k",),)), events=_odd_keys(rng, case.events))
    if kind == 3:
        case = _at_the_edge(rng, case)
    if kind == 4:
        case = _of_streams(rng, case)
    return case


def ending_case(rng: random.Random) -> CeqlCase:
    """A NOT at the end, as a rule with conditions on the events before it."""
    formula = draw_alternatives(rng) if rng.random() < 0.15 else draw_formula(rng, rng.choice((0, 1, 1, 2, 2, 3)))
    names = sorted(variables_of(formula))
    ending = As(Type(rng.choice(TYPES)), "n")
    conditions = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        total = rng.random() < 0.15
        far = draw_total(rng, names) if total else ("of", rng.choice(names), rng.choice(NUMERIC))
        conditions.append((rng.choice(("=", "!=", "<", ">=")), ("of", "n", rng.choice(NUMERIC)), far))
    related: Formula = ending
    for condition in conditions:
        related = Filter(related, ("for all", condition))
    if rng.random() < 0.25:
        related = Or(related, draw_absent(rng, ()))
    strategy = "STRICT" if rng.random() < 0.1 else "ALL"
    keys = rng.choice(((), (), (("k",),), (("k",), ("s",))))
    query = Query(formula, None, strategy, keys, draw_window(rng), (), "NONE", None, related)
    query = draw_choice(rng, query) if rng.random() < 0.4 else query
    case = CeqlCase(query, draw_stream(rng, timed=_needs_times(query.within)))
    kind = rng.randrange(8)
    if kind == 0:
        return replace(case, query=replace(case.query, partition=(("k",),)), events=_odd_keys(rng, case.events))
    return _at_the_edge(rng, case) if kind == 1 else _of_streams(rng, case) if kind == 2 else case


def border_case(rng: random.Random) -> CeqlCase:
    """A NOT in front of all parts, or behind all of them for a time of its own, or both; or one for a time between
    parts."""
    formula = draw_alternatives(rng) if rng.random() < 0.4 else draw_formula(rng, rng.choice((0, 1, 1, 2, 2, 3)))
    kind = rng.randrange(7)
    spans = [Fraction(rng.choice((0, 1, 2, 3, 2.5))) * 10**9 for _ in range(2)]
    if kind == 5 or rng.random() < 0.1:
        left, right = draw_formula(rng, rng.choice((0, 1, 2))), draw_formula(rng, rng.choice((0, 0, 1)))
        absent = draw_absent(rng, sorted(variables_of(left)) if rng.random() < 0.3 else ())
        formula = Without(left, absent, right, rng.choice((";", ";", "->")), spans[0])
        formula = formula if rng.random() < 0.7 else Then(formula, draw_formula(rng, 0))
    query = Query(formula, None, "STRICT" if rng.random() < 0.1 else "ALL", within=draw_window(rng))
    query = replace(query, partition=rng.choice(((), (), (("k",),), (("k",), ("s",)))))
    if kind not in (1, 5, 6):
        query = replace(query, beginning=draw_absent(rng, ()), silence=spans[0] if rng.random() < 0.4 else None)
    if kind in (1, 2) or rng.random() < 0.2:
        ending = draw_absent(rng, sorted(variables_of(formula)) if rng.random() < 0.4 else ())
        query = replace(query, ending=ending, patience=spans[1] if rng.random() < 0.8 else None)
    query = draw_choice(rng, query) if rng.random() < 0.7 else query
    timed = _needs_times(query.within) or " FOR " in print_query(query) or None
    case = CeqlCase(query, draw_stream(rng, timed=timed))
    kind = rng.randrange(8)
    if kind == 0:
        return replace(case, query=replace(case.query, partition=(("k",),)), events=_odd_keys(rng, case.events))
    return _at_the_edge(rng, case) if kind == 1 else _of_streams(rng, case) if kind == 2 else case


def draw_alternatives(rng: random.Random) -> Formula:
    """A formula with NOTs at its borders, as a rule other ones in each of its alternatives."""
    formula = draw_bordered(rng, rng.choice((0, 1, 1, 2)))
    for _ in range(rng.choice((0, 1, 1, 1, 2))):
        other = draw_bordered(rng, 1) if rng.random() < 0.6 else draw_formula(rng, rng.choice((0, 1)))
        formula = Or(formula, other) if rng.random() < 0.5 else Or(other, formula)
    unknown = any(name.split()[0] == "before" for name in _free_variables(formula))
    return draw_alternatives(rng) if unknown else formula


def draw_choice(rng: random.Random, query: Query) -> Query:
    """The query with a selection strategy, consumption, LIMIT or a rule for what a match discards, and perhaps with a
    SELECT of some variables."""
    names = sorted(_shown_names(query.formula, False))
    query = replace(
        query,
        select=frozenset(rng.sample(names, rng.randint(0, min(2, len(names))))) if rng.random() < 0.3 else None,
        strategy=rng.choice(("NEXT", "LAST", "MAX", "ANY", query.strategy)),
        consume=rng.choice(("ANY", "PARTITION", "NONE", "NONE")),
        limit=rng.randint(1, 3) if rng.random() < 0.1 else None,
    )
    if rng.random() < 0.25:
        ending, query = query.ending, replace(query, ending=None, consume="NONE", limit=None)
        query = replace(draw_rule(rng, query), ending=ending)
    return query


def _two_names(rng: random.Random, formula: Formula) -> Formula:
    """A formula under a condition between two names that one event has."""
    names = sorted(variables_of(formula))
    inner = rng.choice(names)
    sign = rng.choice(("=", "!=", "<", "<=", ">", ">="))
    if rng.random() < 0.5:  # (A AS x) AS y FILTER x.a <= y.b, and A AS x FILTER A.a <= x.b
        kind = rng.choice(TYPES)
        one: Formula = As(As(Type(kind), "m"), "o")
        left, right = rng.choice((("m", "o"), (kind, "o"), (kind, "m")))
        one = Filter(one, ("for all", (sign, ("of", left, rng.choice(NUMERIC)), ("of", right, rng.choice(NUMERIC)))))
        sides = (one, formula) if rng.random() < 0.5 else (formula, one)
        return rng.choice((Then(*sides), Then(Plus(one), formula), Or(*sides)))
    whole = As(formula, "o")
    return Filter(whole, ("for all", (sign, ("of", inner, rng.choice(NUMERIC)), ("of", "o", rng.choice(NUMERIC)))))


def _odd_keys(rng: random.Random, events: tuple[Any, ...]) -> tuple[Any, ...]:
    """Keys that are equal but written differently, and such as are no keys."""
    keys = (0, 0.0, -0.0, 1, 1.0, None, 0.5, -1)
    return tuple((*(pair for pair in event if pair[0] != "k"), ("k", rng.choice(keys))) for event in events)


EDGES = (-9_223_372_036, -9_223_372_030, -6_900_000_000, -5, 9_223_372_030)
"""Seconds: the first that fit 64 bits of nanoseconds, 1751, before the epoch, the last that fit."""


def _at_the_edge(rng: random.Random, case: CeqlCase) -> CeqlCase:
    """Times near the least and the greatest there are, and windows up to all of time."""
    start = rng.choice(EDGES)
    events, clock = [], start
    for event in case.events:
        clock = min(clock + rng.choice((0, 0, 1, 1, 2)), 9_223_372_036)
        own = (pair for pair in event if pair[0] not in ("time", "t"))
        events.append((*own, ("t", clock * 10**9), ("time", clock)))
    size = Fraction(rng.choice((0, 1, 3, 10, 10**9, 9 * 10**9, 9_223_372_036)))
    within = rng.choice((Within(size * 10**9, "time"), Within(size * 10**9, "attribute", "t")))
    return replace(case, query=replace(case.query, within=within), events=tuple(events))


def _of_streams(rng: random.Random, case: CeqlCase) -> CeqlCase:
    """The events come on two streams, and some parts of the formula are of one of them alone."""
    streams = ("S", "T")
    events, clock = [], 0
    for event in case.events:
        clock += rng.choice((0, 1, 1, 2))
        own = tuple(pair for pair in event if pair[0] != "time")
        events.append((*own, ("time", clock), ("stream", rng.choice(streams))))
    # Of equal times those of the first stream come first.
    events.sort(key=lambda event: (dict(event)["time"], dict(event)["stream"]))
    if {dict(event)["stream"] for event in events} != set(streams):
        return case
    events = [(*(pair for pair in event if pair[0] != "t"), ("t", dict(event)["time"])) for event in events]

    def of_one(formula: Any) -> Any:
        if isinstance(formula, Type):
            return replace(formula, stream=rng.choice((None, None, "S", "T")))
        if not isinstance(formula, As | Filter | Or | Then | And | Plus | Repeat):
            return formula
        parts = {n: of_one(getattr(formula, n)) for n in ("child", "left", "right") if hasattr(formula, n)}
        return replace(formula, **parts)

    query = replace(case.query, formula=of_one(case.query.formula), streams=streams)
    return replace(case, query=query, events=tuple(events))


def long_ceql_case(rng: random.Random) -> CeqlCase:
    """A query with a short window over a long stream: events that have left the window must be forgotten, no others."""
    case = ceql_case(rng)
    size = Fraction(rng.randint(1, 6))
    within = rng.choice((Within(size, "events"), Within(size, "attribute", "t"), Within(size / 2 * 10**9, "time")))
    return CeqlCase(replace(case.query, within=within), draw_stream(rng, rng.randint(50, 300), timed=True))


Drawn = TypeVar("Drawn")


def interesting(draw: Callable[[random.Random], Drawn], found: Callable[[Drawn], int], rng: random.Random) -> Drawn:
    """A case, as a rule with matches: one without is drawn again, 19 times of 20. `found` may raise TooBig."""
    while True:
        case = draw(rng)
        try:
            if found(case) or rng.random() < 1 / 20:
                return case
        except TooBig:
            continue


def draw_formula(rng: random.Random, depth: int) -> Formula:
    """A formula of at most `depth` operators on a path, not counting AS and FILTER."""
    if depth == 0:
        formula: Formula = Type(rng.choice(TYPES))
    else:
        kind = rng.choices(("then", "next", "or", "plus", "next plus", "and", "without", "repeat", "other"),
                           (16, 6, 6, 6, 2, 2, 3, 2, 1))[0]  # fmt: skip
        if kind == "and":
            formula = And(draw_formula(rng, depth - 1), draw_formula(rng, rng.randrange(depth)))
        elif kind == "without":
            left, right = draw_formula(rng, depth - 1), draw_formula(rng, rng.randrange(depth))
            formula = Without(left, draw_absent(rng, sorted(variables_of(left))), right)
        elif kind == "other":
            formula = As(Other(draw_absent(rng, ())), rng.choice("xyz"))
        elif kind == "repeat":
            low = rng.randint(1, 3)
            formula = Repeat(draw_formula(rng, depth - 1), low, rng.choice((None, low, low, low + 1, low + 2)))
        elif kind in ("then", "next", "or"):
            left, right = draw_formula(rng, depth - 1), draw_formula(rng, rng.randrange(depth))
            if rng.random() < 0.5:
                left, right = right, left
            if kind != "or" and rng.random() < 0.15:
                left, right = draw_reference(rng, left, right)
            formula = Or(left, right) if kind == "or" else Then(left, right, kind == "next")
        else:
            formula = Plus(draw_formula(rng, depth - 1), kind == "next plus")
    if rng.random() < (0.5 if depth == 0 else 0.15):
        formula = As(formula, rng.choice("xyz"))
    if rng.random() < (0.15 if depth < 2 else 0.3):
        formula = Filter(formula, draw_condition(rng, sorted(variables_of(formula))))
    return formula


def draw_absent(rng: random.Random, outside: Sequence[str]) -> Formula:
    """The formula of a NOT: one event, perhaps filtered, perhaps compared with `outside`, perhaps one of two."""
    formula: Formula = As(Type(rng.choice(TYPES)), "n")
    kind = rng.random()
    if kind < 0.3:
        formula = Filter(formula, ("on", "n", draw_expression(rng, 1)))
    elif kind < 0.7:
        names = sorted(set(outside) - variables_of(formula))
        if names:
            other = ("of", rng.choice(names), rng.choice(NUMERIC))
            sign = rng.choice(("=", "!=", "<", ">="))
            formula = Filter(formula, ("for all", (sign, ("of", "n", rng.choice(NUMERIC)), other)))
    return Or(formula, Type(rng.choice(TYPES))) if rng.random() < 0.3 else formula


def draw_reference(rng: random.Random, left: Formula, right: Formula) -> tuple[Formula, Formula]:
    """The two sides of a sequence, one of them with a FILTER that names a variable of the other ([CEL] §2, φ4)."""
    inner, outer = (right, left) if rng.random() < 0.7 else (left, right)
    names = sorted(variables_of(outer) - variables_of(inner))
    if not names:
        return left, right
    own: tuple[Any, ...] = ("of", rng.choice(sorted(variables_of(inner))), rng.choice(NUMERIC))
    far: tuple[Any, ...] = ("of", rng.choice(names), rng.choice(NUMERIC))
    if rng.random() < 0.2:
        far = draw_total(rng, names)
    if rng.random() < 0.25:
        own = ("value", rng.randint(0, 4))  # about a variable of the other side alone
    condition = ("for all", (rng.choice(("=", "<", ">=")), own, far))
    wrapped: Formula = Filter(inner, condition)
    if isinstance(inner, Plus | Repeat):
        wrapped = replace(inner, child=Filter(inner.child, condition))
    return (left, wrapped) if inner is right else (wrapped, right)


def draw_total(rng: random.Random, names: Sequence[str]) -> tuple[Any, ...]:
    """An aggregate over a variable of `names`."""
    function = rng.choice(("AVG", "COUNT", "COUNT", "FIRST", "LAST", "MAX", "MIN", "STDDEV", "SUM"))
    inner: tuple[Any, ...] = ("attribute", rng.choice(NUMERIC))
    if function == "COUNT" and rng.random() < 0.7:
        inner = ("value", 1)
    elif rng.random() < 0.2:
        inner = ("*", inner, ("attribute", rng.choice(NUMERIC)))
    return ("total", function, rng.choice(names), inner)


def draw_condition(rng: random.Random, names: Sequence[str], depth: int = 1) -> tuple[Any, ...]:
    """A condition of FILTER over the variables `names`."""
    kind = rng.random()
    if rng.random() < 0.15:
        far: tuple[Any, ...] = ("value", rng.randint(0, 5))
        if rng.random() < 0.5:
            far = rng.choice((draw_total(rng, names), ("of", rng.choice(names), rng.choice(NUMERIC))))
        return ("for all", (rng.choice(("=", "!=", "<", "<=", ">", ">=")), draw_total(rng, names), far))
    if depth and kind < 0.3:
        parts = (draw_condition(rng, names, depth - 1), draw_condition(rng, names, depth - 1))
        return ("all" if kind < 0.2 else "any", *parts)
    if len(names) > 1 and kind < 0.65:
        x, y = rng.sample(list(names), 2)
        left: tuple[Any, ...] = ("of", x, rng.choice(NUMERIC))
        right: tuple[Any, ...] = ("of", y, rng.choice(NUMERIC))
        if rng.random() < 0.25:
            right = (rng.choice("+-"), right, ("value", rng.randint(1, 2)))
        return ("for all", (rng.choice(("=", "!=", "<", "<=", ">", ">=")), left, right))
    if kind < 0.7:
        return ("for all", (rng.choice("<>="), ("of", rng.choice(names), "a"), ("value", rng.randint(0, 4))))
    return ("on", rng.choice(names), draw_expression(rng, 2))


def draw_expression(rng: random.Random, depth: int) -> tuple[Any, ...]:
    """A predicate on one event."""
    kind = rng.random()
    if depth and kind < 0.4:
        inner = draw_expression(rng, depth - 1)
        if kind < 0.1:
            return ("not", inner)
        return ("and" if kind < 0.25 else "or", inner, draw_expression(rng, depth - 1))
    attribute = ("attribute", rng.choice(NUMERIC))
    if kind < 0.5:
        return ("in", attribute, tuple(sorted(rng.sample(range(5), 2))))
    if kind < 0.55:
        low = rng.randint(0, 3)
        return ("between", attribute, rng.choice((None, low)), low + rng.randint(0, 2))
    if kind < 0.65:
        return (rng.choice(("=", "!=")), ("attribute", "s"), ("value", rng.choice("uv")))
    left = ("*", attribute, ("value", 2)) if kind < 0.7 else attribute
    return (rng.choice(("=", "!=", "<", "<=", ">", ">=")), left, ("value", rng.randint(0, 4)))


def draw_window(rng: random.Random) -> Within | None:
    """No window, or one of each kind."""
    kind = rng.randrange(6)
    if kind < 2:
        return None
    if kind == 2:
        return Within(Fraction(rng.randint(0, 8)), "events")
    if kind == 3:
        return Within(Fraction(rng.randint(0, 6)), "attribute", "t")
    return Within(Fraction(rng.choice((0, 1, 2, 3, 5, 2.5))) * 10**9, "time")


def draw_stream(
    rng: random.Random, size: int | None = None, timed: bool | None = None
) -> tuple[tuple[tuple[str, Any], ...], ...]:
    """`size` events, or at most 14, with a `time` if `timed`.

    Attributes a, b (numbers), s (text) and k (the key) are NULL now and then, t never.
    """
    types = rng.choice((TYPES, "ABC", "ABC", "BCD", "AB", "AC"))
    clock, other = 0.0, 0
    if timed is None:
        timed = rng.random() < 0.7
    if size is None:
        size = rng.choice((0, 1, 3, 5, 6, 7, 8, 8, 9, 10, 11, 12, 14))
    events = []
    for _ in range(size):
        event: dict[str, Any] = {"type": rng.choice(types)}
        for name, values in (("a", range(5)), ("b", range(5)), ("s", "uv"), ("k", range(2))):
            if rng.random() > 0.12:
                event[name] = rng.choice(list(values))
        other += rng.choice((0, 0, 1, 2))
        event["t"] = other
        if timed:
            clock += rng.choice((0, 0.5, 1, 1, 2))
            event["time"] = clock
        events.append(tuple(event.items()))
    return tuple(events)


# ------------------------------------------------------------------------------------------------------ CEQL, printed


def print_query(query: Query) -> str:
    """The text of a query."""
    selected = "*" if query.select is None else ", ".join(sorted(query.select)) or "NONE"
    strategy = "" if query.strategy == "ALL" else query.strategy + " "
    is_bare = query.ending is None and query.beginning is None
    formula = print_formula(query.formula, _FILTER if is_bare else _SEQUENCE if query.beginning is None else _POSTFIX)
    if query.beginning is not None:
        formula = f"NOT {print_formula(query.beginning, _POSTFIX)}{_print_span(query.silence)} ; {formula}"
    source = f" FROM {', '.join(query.streams)}" if query.streams else ""
    text = f"SELECT {strategy}{selected}{source} WHERE {formula}"
    if query.ending is not None:
        text += f" ; NOT {print_formula(query.ending, _POSTFIX)}{_print_span(query.patience)}"
    if query.partition:
        text += " PARTITION BY " + ", ".join(f"[{', '.join(bracket)}]" for bracket in query.partition)
    text += _print_window(query.within)
    if query.consume != "NONE":
        text += f" CONSUME BY {query.consume}"
    if query.limit is not None:
        text += f" LIMIT {query.limit}"
    if query.after is not None:
        rule, variable = query.after
        text += f" AFTER MATCH SKIP {rule} {variable or 'EVENT'}"
    return text


def _print_span(span: Fraction | None) -> str:
    every = "EVERY " if isinstance(span, Again) else ""
    return "" if span is None else f" FOR {every}{_print_seconds(span)}"


def _print_seconds(nanoseconds: Fraction) -> str:
    seconds = nanoseconds / 10**9
    return f"{seconds.numerator if seconds.denominator == 1 else float(seconds)} SECONDS"


def _print_window(within: Within | None) -> str:
    if within is None:
        return ""
    if within.unit == "time":
        return f" WITHIN {_print_seconds(within.size)}"
    return f" WITHIN {within.size}" + (" EVENTS" if within.unit == "events" else f" [{within.attribute}]")


_FILTER, _OR, _SEQUENCE, _POSTFIX, _ATOM = range(5)


def print_formula(formula: Formula, least: int = _FILTER) -> str:
    """The text of a formula, in parentheses if it binds less than `least`."""
    level, text = _formula(formula)
    return text if level >= least else f"({text})"


def _formula(formula: Formula) -> tuple[int, str]:
    match formula:
        case Type(name, stream, _):
            return _POSTFIX, name if stream is None else f"{stream}>{name}"
        case As(child, variable):
            return _POSTFIX, f"{print_formula(child, _POSTFIX)} AS {variable}"
        case Plus(child, adjacent):
            return _POSTFIX, f"{print_formula(child, _POSTFIX)} {':+' if adjacent else '+'}"
        case Repeat(child, low, high):
            bounds = f"{low}" if low == high else f"{low},{'' if high is None else high}"
            return _POSTFIX, f"{print_formula(child, _POSTFIX)}{{{bounds}}}"
        case Rounds(child, low, high, join, preference, until):
            sign = "?" if (low, high, join) == (0, 1, ";") else ("" if join == ";" else join) + _rounds(low, high)
            choice = {"reluctant": "?", "each": " ALL"}.get(preference, "")
            if preference == "each" and join != "->" and (low, high) != (0, 1):
                choice = ""
            ending = "" if until is None else f" UNTIL ({print_formula(until)})"
            least = _ATOM if sign == "?" and isinstance(child, Rounds | Plus | Repeat) else _POSTFIX
            return _POSTFIX, f"{print_formula(child, least)} {sign}{choice}{ending}"
        case And(left, right):
            return _POSTFIX, f"AND({print_formula(left)}, {print_formula(right)})"
        case Before(absent, child, join, span):
            absence = f"NOT {print_formula(absent, _POSTFIX)}{_print_span(span)}"
            return _SEQUENCE, f"{absence} {join} {print_formula(child, _POSTFIX)}"
        case Behind(child, absent, join, span):
            absence = f"NOT {print_formula(absent, _POSTFIX)}{_print_span(span)}"
            return _SEQUENCE, f"{print_formula(child, _SEQUENCE)} {join} {absence}"
        case Apart(child, absent, span):
            parts, none = _parts_of(child), f"NOT {print_formula(absent, _POSTFIX)}{_print_span(span)}"
            return _POSTFIX, f"AND({', '.join([parts[0], none, *parts[1:]])})"
        case Other(child):
            return _FILTER, f"NOT {print_formula(child, _POSTFIX)}"
        case Without(left, absent, right, join, span):
            before, after = print_formula(left, _SEQUENCE), print_formula(right, _POSTFIX)
            absence = f"NOT {print_formula(absent, _POSTFIX)}{_print_span(span)}"
            return _SEQUENCE, f"{before} {join} {absence} {join} {after}"
        case Step(left, right):
            return _SEQUENCE, f"{print_formula(left, _SEQUENCE)} -> {print_formula(right, _POSTFIX)}"
        case Then(left, right, adjacent):
            sign = ":" if adjacent else ";"
            return _SEQUENCE, f"{print_formula(left, _SEQUENCE)} {sign} {print_formula(right, _POSTFIX)}"
        case Or(left, right):
            # Sequences inside OR keep their parentheses: users should not need to know which of the two binds tighter.
            return _OR, f"{print_formula(left, _POSTFIX)} OR {print_formula(right, _POSTFIX)}"
        case Filter(child, condition):
            return _FILTER, f"{print_formula(child)} FILTER {print_condition(condition)}"
        case Project():
            raise ValueError("CEQL writes projection in SELECT alone")
    raise AssertionError(formula)


def _parts_of(formula: Formula) -> list[str]:
    """The texts of the parts of a conjunction; of any other formula, its own."""
    match formula:
        case And(left, right):
            return [*(_parts_of(left) if isinstance(left, And) else [print_formula(left)]), print_formula(right)]
        case Apart(child, absent, span):
            return [*_parts_of(child), f"NOT {print_formula(absent, _POSTFIX)}{_print_span(span)}"]
    return [print_formula(formula)]


def _rounds(low: int, high: int | None) -> str:
    if high is None and low < 2:
        return "*+"[low]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def print_condition(condition: tuple[Any, ...]) -> str:
    """The text of a condition of FILTER."""
    match condition:
        case ("all", *parts):
            return " AND ".join(map(_part, parts))
        case ("any", *parts):
            return " OR ".join(map(_part, parts))
        case ("on", variable, expression):
            return f"{variable}[{print_expression(expression)}]"
        case ("for all", expression):
            return print_expression(expression)
    raise AssertionError(condition)


def _part(condition: tuple[Any, ...]) -> str:
    text = print_condition(condition)
    return f"({text})" if condition[0] in ("any", "all") else text


def print_expression(expression: tuple[Any, ...]) -> str:
    """The text of an expression; whatever is composed stands in parentheses inside another."""
    match expression:
        case ("value", value):
            return repr(value)
        case ("attribute", name):
            return str(name)
        case ("of", variable, name):
            return f"{variable}.{name}"
        case ("earlier", variable, name, back):
            more = f", {back}" if back > 1 else ""
            return f"PREV({variable}.{name}{more})" if back else f"{variable}[0].{name}"
        case ("total", function, variable, inner):
            return f"{function}({variable if inner == ('value', 1) else _print_own(variable, inner)})"
        case ("not", inner):
            return f"NOT ({print_expression(inner)})"
        case ("and" | "or" as word, left, right):
            return f"({print_expression(left)}) {word.upper()} ({print_expression(right)})"
        case ("in", inner, values):
            return f"{print_expression(inner)} IN {{{', '.join(map(repr, values))}}}"
        case ("between", inner, low, high):
            return f"{print_expression(inner)} IN {{{'' if low is None else low}..{'' if high is None else high}}}"
        case (sign, left, right):
            return f"{print_expression(left)} {sign} {print_expression(right)}"
    raise AssertionError(expression)


def _print_own(variable: str, inner: tuple[Any, ...]) -> str:
    if inner[0] == "attribute":
        return f"{variable}.{inner[1]}"
    return f" {inner[0]} ".join(_print_own(variable, part) for part in inner[1:])


# ------------------------------------------------------------------------------------------------------ CEQL, shrunk


def shrink_ceql(case: CeqlCase, fails: Callable[[CeqlCase], bool]) -> CeqlCase:
    """A case that still fails and of which no part can be left out alone."""
    while (smaller := next(filter(fails, smaller_ceql(case)), None)) is not None:
        case = smaller
    return case


def smaller_ceql(case: CeqlCase) -> Iterator[CeqlCase]:
    for i in range(len(case.events)):
        fewer = case.events[:i] + case.events[i + 1 :]
        if not case.query.streams or {dict(event)["stream"] for event in fewer} == set(case.query.streams):
            yield replace(case, events=fewer)
    query = case.query
    for simpler in (
        replace(query, within=None),
        replace(query, partition=query.partition[:-1]),
        replace(query, select=None),
        replace(query, strategy="ALL"),
        replace(query, consume="NONE"),
        replace(query, limit=None),
        replace(query, ending=None, patience=None),
        replace(query, patience=None),
        replace(query, beginning=None, silence=None),
        replace(query, silence=None),
        replace(query, after=None),
    ):
        if simpler != query and _is_named(simpler):
            yield replace(case, query=simpler)
    for formula in _smaller_formulas(query.formula):
        simpler = replace(query, formula=formula)
        if (_free_variables(formula) | (query.select or frozenset())) <= variables_of(formula) and _is_named(simpler):
            yield replace(case, query=simpler)
    for i, event in enumerate(case.events):
        for name, _ in event:
            if name not in ("type", "t", "time", "stream"):
                shorter = tuple(pair for pair in event if pair[0] != name)
                yield replace(case, events=(*case.events[:i], shorter, *case.events[i + 1 :]))


def _free_variables(formula: Formula) -> frozenset[str]:
    """The variables that conditions name and their own formula does not define."""
    match formula:
        case Filter(child, condition):
            return (named(condition) | _free_variables(child)) - variables_of(child)
        case Then(left, right) | Or(left, right) | And(left, right) | Step(left, right):
            return (_free_variables(left) | _free_variables(right)) - variables_of(formula)
        case Without(left, absent, right):
            lost = frozenset(f"{name} of a NOT" for name in _free_variables(absent) - variables_of(left))
            return ((_free_variables(left) | _free_variables(right)) - variables_of(formula)) | lost
        case As(child) | Plus(child) | Repeat(child) | Project(child) | Rounds(child):
            return _free_variables(child)
        case Before(absent, child) | Behind(child, absent) | Apart(child, absent):
            lost = frozenset(f"{name} of a NOT" for name in _free_variables(absent))
            return _free_variables(child) | lost
    return frozenset()


def _smaller_formulas(formula: Formula) -> Iterator[Formula]:
    match formula:
        case Without(left, absent, right, join):
            yield Then(left, right) if join == ";" else Step(left, right)
            yield from (replace(formula, absent=f) for f in _smaller_formulas(absent))
            yield from (replace(formula, left=f) for f in _smaller_formulas(left))
            yield from (replace(formula, right=f) for f in _smaller_formulas(right))
        case Before(absent, child) | Behind(child, absent) | Apart(child, absent):
            yield child
            yield from (replace(formula, absent=f) for f in _smaller_formulas(absent))
            yield from (replace(formula, child=f) for f in _smaller_formulas(child))
        case Then(left, right) | Or(left, right) | And(left, right) | Step(left, right):
            yield from (left, right)
            yield from (replace(formula, left=f) for f in _smaller_formulas(left))
            yield from (replace(formula, right=f) for f in _smaller_formulas(right))
        case Filter(child, condition):
            yield child
            if condition[0] in ("all", "any"):
                yield from (Filter(child, part) for part in condition[1:])
            inner = (f for f in _smaller_formulas(child) if named(condition) <= variables_of(f))
            yield from (Filter(f, condition) for f in inner)
        case As(Other(), _):
            return
        case As(child, variable):
            yield child
            yield from (As(f, variable) for f in _smaller_formulas(child))
        case Repeat(child, low, high):
            if low > 1:
                yield replace(formula, low=low - 1, high=None if high is None else high - 1)
            yield child
            yield from (replace(formula, child=f) for f in _smaller_formulas(child))
        case Plus(child) | Rounds(child):
            yield child
            yield from (replace(formula, child=f) for f in _smaller_formulas(child))


def ceql_toml(case: CeqlCase, name: str) -> str:
    """The case to paste into a file of `cases/`, without its matches."""
    columns = sorted({name for event in case.events for name, _ in event} | {"type"}, key=lambda c: (c != "type", c))
    rows = [["NULL" if (v := dict(event).get(c)) is None else v for c in columns] for event in case.events]
    listed = "".join(f"    {[*row]!r},\n".replace("'", '"') for row in rows)
    return (
        f'[[case]]\nname = "{name}"\nquery = "{case.text}"\ncolumns = {columns!r}\n'.replace("'", '"')
        + f"rows = [\n{listed}]\n"
    )


# ---------------------------------------------------------------------------------------------------- SPAseq, drawn

BACKGROUND = {NAMESPACE + "kb": ":m :near :n . :n :near :n . :n :near :m"}
"""The background knowledge of every random query."""


@dataclass(frozen=True, slots=True)
class SpaseqCase:
    """A query as its parts and a streamset: (stream, time, triples) per event, in order of time."""

    sequence: str
    gpms: tuple[tuple[str, str], ...]
    clauses: str
    select: str
    events: tuple[tuple[str, float, tuple[str, ...]], ...]

    @property
    def text(self) -> str:
        streams = "\n".join(f"FROM STREAM {s} <{NAMESPACE}{s}>" for s in ("S", "T"))
        gpms = "\n".join(f"  DEFINE GPM {name} {body}" for name, body in self.gpms)
        return (
            f"PREFIX : <{NAMESPACE}>\nSELECT {self.select} {self.clauses}\n{streams}\n"
            f"WHERE {{\n  SEQ ({self.sequence})\n{gpms}\n}}\n"
        )

    @property
    def graphs(self) -> Graphs:
        return {
            name: [(time, " . ".join(triples)) for stream, time, triples in self.events if stream == name]
            for name in ("S", "T")
        }


def spaseq_case(rng: random.Random) -> SpaseqCase:
    """A sequence of at most four elements over two small streams with ties and events of several solutions."""
    partition = rng.random() < 0.2
    elements: list[str] = []
    gpms: list[tuple[str, str]] = []
    bound: list[str] = []
    rest = list("ABCD"[: rng.choice((1, 2, 2, 3, 3, 3, 4))])
    negates = len(rest) > 1 and rng.random() < 0.35
    while rest:
        width = rng.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3))
        together, rest = rest[:width], rest[width:]
        sign = rng.choice("&|")
        suffix = _draw_suffix(rng, len(together) > 1)
        if negates and (rng.random() < 0.4 or not (rest or any(e.endswith("!") for e in elements))):
            suffix = "!"
        before, here = list(bound), list(bound)
        for name in together:
            # A FILTER may name variables of the part before it, or of one joined to it at the same instant.
            body, own = _draw_gpm(rng, here if sign == "&" else before, partition)
            gpms.append((name, body))
            here += own
        if suffix != "!":  # an absence binds nothing
            bound = here
        elements.append(_together(rng, together, sign) + suffix)
    if rng.random() < 0.3 or all(e.endswith("!") for e in elements):
        elements.append(_draw_again(rng, gpms, bound) + _draw_suffix(rng, False))
    sequence = elements[0] + "".join(f" {rng.choice(',;:')} {element}" for element in elements[1:])
    variables = sorted(set(bound))
    select = "*"
    if variables and rng.random() < 0.4:
        select = " ".join("?" + v for v in sorted(rng.sample(variables, rng.randint(1, len(variables)))))
    clauses = rng.choice((
        "", "", "", "", "", "WITHIN 5 SECONDS", "WITHIN 9 SECONDS", "WITHIN 4 SECONDS SLIDING",
        "WITHIN 1500 MILLISECONDS", "WITHIN 2500 MILLISECONDS SLIDING", "WITHIN 4 SECONDS STARTING AT 1.5",
        "WITHIN 3 EVENTS", "WITHIN 2 EVENTS SLIDING",
    ))  # fmt: skip
    if "EVENTS" in clauses and (partition or opens_with_negation(sequence) or ends_with_negation(sequence)):
        clauses = "WITHIN 9 SECONDS"
    if opens_with_negation(sequence):
        clauses = clauses.removesuffix(" SLIDING")
    if partition:
        clauses += " PARTITION BY (?s)"
    return SpaseqCase(sequence, tuple(gpms), clauses.strip(), select, _draw_events(rng))


def _together(rng: random.Random, names: list[str], sign: str) -> str:
    """GPMs that are joined at one instant, with the other sign inside parentheses at times."""
    if len(names) < 3 or sign == "&":  # a FILTER of one alternative may not name another one
        return f"({f' {sign} '.join(names)})" if len(names) > 1 else names[0]
    first, second, third = names
    return rng.choice((f"({first} | {second} | {third})", f"({first} & ({second} | {third}))",
                       f"({first} | {second} & {third})"))  # fmt: skip


def _draw_again(rng: random.Random, gpms: list[tuple[str, str]], bound: list[str]) -> str:
    """The name of a GPM that can stand at the end too: its FILTER names nothing but its own variables and `bound`."""
    fitting = []
    for name, body in gpms:
        triples, _, condition = body.rpartition(" FILTER") if body.endswith(") }") else (body, "", "")
        if set(re.findall(r"\?\w+", condition)) <= set(re.findall(r"\?\w+", triples)) | {f"?{v}" for v in bound}:
            fitting.append(name)
    return rng.choice(fitting)


def opens_with_negation(sequence: str) -> bool:
    """True if some negated element need not have anything before it: impossible with a sliding window."""
    return _begin_with_negation(re.split(" [,;:] ", sequence))


def ends_with_negation(sequence: str) -> bool:
    """True if some negated element need not have anything behind it: impossible with a window of events."""
    return _begin_with_negation(reversed(re.split(" [,;:] ", sequence)))


def _begin_with_negation(elements: Iterable[str]) -> bool:
    for element in elements:
        if element.endswith("!"):
            return True
        if not (element.endswith("?") or re.search(r"\{0?,", element)):
            break
    return False


def long_spaseq_case(rng: random.Random) -> SpaseqCase:
    """A query with a short window over a long streamset: only events that have left the window are forgotten."""
    case = spaseq_case(rng)
    events: list[tuple[str, float, tuple[str, ...]]] = []
    for _ in range(rng.randint(4, 12)):
        start = events[-1][1] + rng.choice((0, 1)) if events else 0.0
        events += [(stream, start + time, triples) for stream, time, triples in _draw_events(rng)]
    windows = ["4 SECONDS", "6 SECONDS", "3 SECONDS SLIDING", "5 SECONDS SLIDING", "7 SECONDS STARTING AT 2"]
    if opens_with_negation(case.sequence):
        windows = [window for window in windows if "SLIDING" not in window]
    partition = " PARTITION BY (?s)" if "PARTITION" in case.clauses else ""
    if not (partition or opens_with_negation(case.sequence) or ends_with_negation(case.sequence)):
        windows.append("4 EVENTS")
    return replace(case, events=tuple(events), clauses=f"WITHIN {rng.choice(windows)}{partition}")


def _draw_suffix(rng: random.Random, several: bool) -> str:
    suffix = rng.choice(("", "", "", "+", "?", "+?") if several else ("", "", "", "", "+", "+", "?", "?", "+?"))
    if "+" not in suffix or rng.random() < 0.5:
        return suffix
    low, more = rng.randint(0, 3), rng.randint(0, 2)
    least = max(low, 1)
    bounds = rng.choice(("+", f"{{{least}}}", f"{{{low},}}", f"{{{low},{least + more}}}", "{,2}"))
    return rng.choice(("", "", ",", ";", ":", ":")) + suffix.replace("+", bounds)


def _draw_gpm(rng: random.Random, before: list[str], partition: bool) -> tuple[str, list[str]]:
    """The text of a GPM behind its name, and the variables it binds; a FILTER may name one of `before`."""
    streams = rng.choice(("S", "S", "T", "S, T", "S, T"))
    subject = "s" if partition else rng.choice("stuv")
    first, second = rng.sample("xyzw", 2)
    own = [subject, first]
    body = f"?{subject} :{rng.choice('pq')} ?{first} ."
    kind = rng.random()
    if kind < 0.25:
        body += f" ?{subject} :{rng.choice('pq')} ?{second} ."
        own.append(second)
    elif kind < 0.3:
        body += f" OPTIONAL {{ ?{subject} :{rng.choice('pq')} ?{second} }}"
        own.append(second)
    elif kind < 0.35:
        body = f"{{ ?{subject} :p ?{first} }} UNION {{ ?{subject} :q ?{first} }}"
    elif kind < 0.4:  # each leaves something unbound
        body = f"{{ ?{subject} :p ?{first} }} UNION {{ ?{subject} :q ?{second} }}"
        own.append(second)
    elif kind < 0.45:
        body = f"{{ {body} FILTER (?{first} < 3) }} OPTIONAL {{ ?{subject} :q ?{second} FILTER (?{second} > 1) }}"
        own.append(second)
    if rng.random() < 0.15:
        neighbour = rng.choice([v for v in "stuv" if v != subject])
        known = f"GRAPH <{NAMESPACE}kb> {{ ?{subject} :near ?{neighbour} }}"
        body += rng.choice((f" {known}", f" {known}", f" OPTIONAL {{ {known} }}",
                            f" {{ {known} }} UNION {{ ?{subject} :r ?{neighbour} }}"))  # fmt: skip
        own.append(neighbour)
    sign = rng.choice(("<", "<=", ">", "=", "!="))
    kind = rng.random()
    outer = [v for v in before if v not in own and v not in "stuv"]
    if kind < 0.2:
        body += f" FILTER (?{first} {sign} {rng.randint(1, 3)})"
    elif kind < 0.5 and outer:
        other, third = rng.choice(outer), rng.choice([*outer, first])
        body += rng.choice((f" FILTER (?{first} {sign} ?{other})",) * 5 + (
            f" FILTER (?{first} + 1 {sign} ?{other})", f" FILTER (?{first} {sign} ?{other} || ?{first} = 2)",
            f" FILTER (!bound(?{other}) || ?{first} {sign} ?{other})", f" FILTER (?{first} * ?{other} {sign} 3)",
            f" FILTER (?{first} + ?{other} {sign} ?{third} + 1)", f" FILTER (?{first} / ?{other} {sign} ?{third} - 1)",
            f" FILTER (!(?{first} = ?{other} && ?{first} {sign} ?{third}))",
        ))  # fmt: skip
    return f"ON {streams} {{ {body} }}", own


def _draw_events(rng: random.Random) -> tuple[tuple[str, float, tuple[str, ...]], ...]:
    events = []
    time = float(rng.randint(0, 3))
    for _ in range(rng.choice((0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11))):
        time += rng.choice((0, 0.5, 1, 1, 1, 2))
        triples = {
            f":{rng.choice('mn')} :{rng.choice('pppqqqr')} {rng.randint(1, 3)}" for _ in range(rng.choice((1, 1, 2, 3)))
        }
        events.append((rng.choice("SST"), time, tuple(sorted(triples))))
    return tuple(events)


def smaller_spaseq(case: SpaseqCase) -> Iterator[SpaseqCase]:
    for i, (stream, time, triples) in enumerate(case.events):
        before, after = case.events[:i], case.events[i + 1 :]
        yield replace(case, events=before + after)
        for j in range(len(triples) if len(triples) > 1 else 0):
            yield replace(case, events=(*before, (stream, time, triples[:j] + triples[j + 1 :]), *after))
    for simpler in (replace(case, clauses=""), replace(case, select="*")):
        if simpler != case:
            yield simpler
    for i, (name, body) in enumerate(case.gpms):
        plain = re.sub(r" FILTER \((?:[^()]|\([^()]*\)|!\((?:[^()]|\([^()]*\))*\))*\)", "", body)
        if plain != body:
            yield replace(case, gpms=(*case.gpms[:i], (name, plain), *case.gpms[i + 1 :]))
    for suffix in (r"[,;:]?(\+|\{[^}]*\})", r"\?", "!"):
        for found in re.finditer(suffix, case.sequence):
            yield replace(case, sequence=case.sequence[: found.start()] + case.sequence[found.end() :])
    for found in re.finditer(r"[,;:](?=[+{])", case.sequence):
        yield replace(case, sequence=case.sequence[: found.start()] + case.sequence[found.end() :])
    first, *others = re.split("( [,;:] )", case.sequence)
    for i in range(0, len(others), 2):
        yield replace(case, sequence=first + "".join(others[:i] + others[i + 2 :]))
    if others:
        yield replace(case, sequence="".join(others[1:]))


def spaseq_toml(case: SpaseqCase, name: str) -> str:
    """The case to paste into a file of `cases/`, without its solutions."""
    text = f"[[case]]\nname = \"{name}\"\nquery = '''\n{case.text}'''\n[case.graphs]\n"
    for stream, events in case.graphs.items():
        text += f"{stream} = [\n" + "".join(f'    [{time}, "{triples}"],\n' for time, triples in events) + "]\n"
    if "GRAPH" in case.text:
        text += "[case.kb]\n" + "".join(f'"{iri}" = "{triples}"\n' for iri, triples in BACKGROUND.items())
    return text
