"""Random queries with aggregates over loops: thresholds, sums, averages, alone and compared with other events."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.support.oracle import (
    And,
    As,
    Filter,
    Formula,
    Or,
    Plus,
    Query,
    Repeat,
    Rounds,
    Step,
    Then,
    Type,
    evaluate,
    variables_of,
)
from tests.support.strategies import NUMERIC, CeqlCase, draw_expression, draw_stream, draw_window, interesting

SYMBOLS = ("=", "!=", "<", "<=", ">", ">=")


def totals_case(rng: random.Random) -> CeqlCase:
    """A query with one or two loops under conditions with aggregates, over a stream of at most 14 events. As a rule it
    has matches."""
    return interesting(_draw, lambda case: len(evaluate(replace(case.query, limit=None), case.stream)), rng)


def steps_with_totals_case(rng: random.Random) -> CeqlCase:
    """As `totals_case`, with one run a start: steps and loops joined by `->`. Each condition is on the smallest part
    that has its variables."""
    return interesting(_draw_steps, lambda case: len(evaluate(replace(case.query, limit=None), case.stream)), rng)


def _draw_steps(rng: random.Random) -> CeqlCase:
    low = rng.choice((1, 1, 1, 2))
    high = rng.choice((None, None, None, low + 1, low + 3))
    inner: Formula = Type(rng.choice("AB"))
    if rng.random() < 0.2:
        inner = rng.choice((Or(inner, Type("C")), Step(inner, Type("C")), Filter(inner, _on(rng, inner))))
    preference = rng.choice(("greedy", "greedy", "reluctant", "each"))
    formula: Formula = As(Rounds(inner, low, high, "->", preference), "x")
    if rng.random() < 0.6:
        formula = Filter(formula, _comparison(rng, ["x"], attributes=False))
    if rng.random() < 0.6:
        formula = Step(As(Type(rng.choice("AB")), "y"), formula)
        if rng.random() < 0.5:
            formula = Filter(formula, _against(rng, "y"))
    if rng.random() < 0.6:
        formula = Step(formula, As(Type(rng.choice("BC")), "z"))
        if rng.random() < 0.5:
            formula = Filter(formula, _against(rng, "z"))
    if rng.random() < 0.1:
        formula = Or(formula, As(Type("C"), "z"))
    strategy = rng.choice(("ALL", "ALL", "ALL", "NEXT", "LAST", "MAX"))
    return _case(rng, formula, strategy)


def _on(rng: random.Random, event: Formula) -> tuple[Any, ...]:
    return ("on", min(variables_of(event)), draw_expression(rng, 1))


def _against(rng: random.Random, name: str) -> tuple[Any, ...]:
    """An aggregate of x against an attribute of another variable."""
    return ("for all", (rng.choice(SYMBOLS), _total(rng, ["x"]), ("of", name, rng.choice(NUMERIC))))


def _draw(rng: random.Random) -> CeqlCase:
    formula = _loop(rng, "x")
    if rng.random() < 0.6:
        formula = Then(As(Type(rng.choice("AB")), "y"), formula, rng.random() < 0.2)
    if rng.random() < 0.3:
        formula = Then(formula, _loop(rng, rng.choice("xz")), rng.random() < 0.2)
    if rng.random() < 0.5:
        formula = Then(formula, As(Type(rng.choice("BC")), "z"), rng.random() < 0.2)
    for joined in (Or, And):
        if rng.random() < 0.1:
            formula = joined(formula, As(Type("C"), "z"))
    for _ in range(rng.choice((1, 1, 2))):
        formula = Filter(formula, _condition(rng, sorted(variables_of(formula))))
    if rng.random() < 0.1:
        formula = Plus(formula, rng.random() < 0.3)
    return _case(rng, formula, rng.choice(("ALL", "ALL", "ALL", "NEXT", "LAST", "MAX", "STRICT")))


def _case(rng: random.Random, formula: Formula, strategy: str) -> CeqlCase:
    """The formula with a strategy, and a window, a partition, a limit and a stream at random."""
    consume = rng.choice(("NONE", "NONE", "NONE", "ANY", "PARTITION"))
    partition = rng.choice(((), (), (("k",),)))
    limit = rng.choice((None, None, None, None, 1, 2))
    query = Query(formula, None, strategy, partition, draw_window(rng), (), consume, limit, None)
    timed = query.within is not None and query.within.unit == "time"
    return CeqlCase(query, with_decimals(rng, draw_stream(rng, timed=timed or None)))


def _loop(rng: random.Random, name: str) -> Formula:
    kind = rng.random()
    inner: Formula = Type(rng.choice("AB"))
    if kind < 0.15:
        inner = Or(inner, Type("C"))
    elif kind < 0.3:
        inner = Then(inner, Type(rng.choice("BC")), rng.random() < 0.3)
    elif kind < 0.4:
        inner = As(inner, name)
    elif kind < 0.5:
        inner = Filter(As(inner, "w"), ("on", "w", draw_expression(rng, 1)))
    low = rng.randint(1, 3)
    loop = Plus(inner, rng.random() < 0.3)
    return As(Repeat(inner, low, rng.choice((None, low + 1, low + 3))) if rng.random() < 0.15 else loop, name)


def _condition(rng: random.Random, names: list[str]) -> tuple[Any, ...]:
    if rng.random() < 0.15:
        return (rng.choice(("all", "any")), _comparison(rng, names), _comparison(rng, names))
    return _comparison(rng, names)


def _comparison(rng: random.Random, names: list[str], attributes: bool = True) -> tuple[Any, ...]:
    total = _total(rng, names)
    kind = rng.random()
    bound = rng.randint(0, 4) * (2 if total[1] == "SUM" else 1)
    other: tuple[Any, ...] = ("value", bound if rng.random() < 0.8 else bound + 0.5)
    if kind < 0.3 and attributes:
        other = ("of", rng.choice(names), rng.choice(NUMERIC))
    elif 0.3 <= kind < 0.4:
        other = _total(rng, names)
    if rng.random() < 0.15:
        other = (rng.choice("+-*"), other, ("value", rng.randint(1, 2)))
    sides = (total, other) if rng.random() < 0.7 else (other, total)
    return ("for all", (rng.choice(SYMBOLS), *sides))


def _total(rng: random.Random, names: list[str]) -> tuple[Any, ...]:
    function = rng.choice(("COUNT", "COUNT", "SUM", "SUM", "AVG", "AVG", "MIN", "MAX", "LAST", "STDDEV"))
    inner: tuple[Any, ...] = ("attribute", rng.choice(NUMERIC))
    if function == "COUNT" and rng.random() < 0.7:
        inner = ("value", 1)
    elif rng.random() < 0.15:
        inner = ("*", inner, ("attribute", rng.choice(NUMERIC)))
    name = "x" if "x" in names and rng.random() < 0.7 else rng.choice(names)
    return ("total", function, name, inner)


def with_decimals(rng: random.Random, events: tuple[Any, ...]) -> tuple[Any, ...]:
    """The events, with halves added to some numbers of one of three streams."""
    if rng.random() < 0.6:
        return events
    return tuple(
        tuple((n, v + rng.choice((0, 0.5)) if n in NUMERIC and rng.random() < 0.5 else v) for n, v in event)
        for event in events
    )
