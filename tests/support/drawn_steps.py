"""Random CEQL queries with steps (`->`), optional parts, and loops joined by `->`, `;` and `:`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.support import oracle, strategies
from tests.support.oracle import (
    As,
    Before,
    Behind,
    Filter,
    Formula,
    Or,
    Plus,
    Repeat,
    Rounds,
    Step,
    Then,
    TooBig,
    Type,
    Without,
    variables_of,
)
from tests.support.oracle_steps import may_be_empty
from tests.support.strategies import NUMERIC, TYPES, CeqlCase


def steps_case(rng: random.Random) -> CeqlCase:
    """A query with a step, a loop or an optional part, as a rule one that has matches."""
    return strategies.interesting(_draw, lambda case: len(oracle.evaluate(case.query, case.stream)), rng)


def _draw(rng: random.Random) -> CeqlCase:
    while True:
        case = strategies.ceql_case(rng)
        formula = _draw_chain(rng) if rng.random() < 0.2 else draw_steps(rng, rng.choice((1, 2, 2, 3, 3)))
        if oracle.has_steps(formula):
            break
    if rng.random() < 0.05:
        formula = oracle.And(formula, draw_steps(rng, 1))
    names = sorted(variables_of(formula))
    select = case.query.select
    if select is not None:
        select = frozenset(rng.sample(names, rng.randint(0, min(2, len(names)))))
    strategy = "ALL" if case.query.strategy == "STRICT" else case.query.strategy
    query = replace(case.query, formula=formula, select=select, strategy=strategy, ending=None, after=None)
    return replace(case, query=query if case.query.after is None else strategies.draw_rule(rng, query))


def draw_steps(rng: random.Random, depth: int) -> Formula:
    """A formula of at most `depth` operators on a path, not counting AS and FILTER."""
    kinds = ("step", "then", "next", "or", "rounds", "plus", "without")
    if depth == 0:
        formula: Formula = Type(rng.choice(TYPES[:3]))
    else:
        kind = rng.choices(kinds, (14, 4, 3, 3, 12, 1, 2))[0]
        if kind in ("step", "then", "next", "or"):
            left, right = draw_steps(rng, depth - 1), draw_steps(rng, rng.randrange(depth))
            if rng.random() < 0.3:
                left, right = right, left
            if kind == "step" and rng.random() < 0.15:
                left, right = _draw_reference(rng, left, right)
            elif kind == "step" and rng.random() < 0.2 and may_be_empty(left) is may_be_empty(right) is None:
                left, right = _draw_border(rng, left, right)
            formula = (
                Step(left, right) if kind == "step" else Or(left, right) if kind == "or"
                else Then(left, right, kind == "next")
            )  # fmt: skip
        elif kind == "without":
            left, right = draw_steps(rng, depth - 1), draw_steps(rng, 0)
            absent: Formula = Type(rng.choice(TYPES))
            if rng.random() < 0.3:
                absent = Filter(As(absent, "n"), ("on", "n", strategies.draw_expression(rng, 1)))
            formula = Without(left, absent, right, rng.choice((";", "->", "->")))
        elif kind == "plus":
            formula = Plus(draw_steps(rng, depth - 1), rng.random() < 0.3)
        else:
            formula = _rounds(rng, draw_steps(rng, depth - 1))
    if rng.random() < (0.5 if depth == 0 else 0.15):
        formula = As(formula, rng.choice("xyz"))
    if rng.random() < (0.15 if depth < 2 else 0.3):
        formula = Filter(formula, _condition(rng, formula))
    return formula


def _draw_chain(rng: random.Random) -> Formula:
    """Three to five short parts, as people write them: `A -> B? : C? -> D`."""
    formula = draw_steps(rng, 0)
    for _ in range(rng.randint(2, 4)):
        part = draw_steps(rng, 0) if rng.random() < 0.4 else _rounds(rng, draw_steps(rng, 0))
        kind = rng.choice(("step", "step", "step", "then", "next", "next"))
        formula = Step(formula, part) if kind == "step" else Then(formula, part, kind == "next")
        if rng.random() < 0.1:
            formula = _rounds(rng, formula)
    return formula


def _draw_reference(rng: random.Random, left: Formula, right: Formula) -> tuple[Formula, Formula]:
    """The two sides, one with a condition on the other: on variables that no formula around can take for another's."""
    one, two = (As(side, f"{name}{rng.randrange(10**6)}") for side, name in ((left, "p"), (right, "q")))
    x, y = ("of", one.variable, rng.choice(NUMERIC)), ("of", two.variable, rng.choice(NUMERIC))
    condition = ("for all", (rng.choice(("=", "<", ">=")), x, y))
    if rng.random() < 0.7:
        return one, _inside(two, condition)
    return _inside(one, condition), two


def _draw_border(rng: random.Random, left: Formula, right: Formula) -> tuple[Formula, Formula]:
    """The two sides of a step, with a NOT behind the first, or before the second, or both."""
    absent = [strategies.draw_absent(rng, ()) for _ in range(2)]
    kind = rng.randrange(3)
    left = left if kind == 0 else Behind(left, absent[0], "->")
    return left, right if kind == 1 else Before(absent[1], right, "->")


def _inside(formula: Formula, condition: tuple[Any, ...]) -> Formula:
    """The formula under a condition, or each of its rounds."""
    if isinstance(formula, As) and isinstance(formula.child, Plus | Rounds):
        return replace(formula.child, child=Filter(As(formula.child.child, formula.variable), condition))
    return Filter(formula, condition)


def _rounds(rng: random.Random, child: Formula) -> Formula:
    preference = rng.choice(("greedy", "greedy", "greedy", "reluctant", "reluctant", "each"))
    if rng.random() < 0.35:
        return Rounds(child, 0, 1, ";", preference)
    join = rng.choice(("->", "->", "->", ";", ":"))
    low = rng.choice((0, 0, 1, 1, 1, 2))
    high = rng.choice((None, None, None, max(low, 1), low + 1, low + 2))
    if may_be_empty(child) is not None:
        low, high = min(low, 1), None  # counted rounds take an event each
    until = None
    if high is None and low < 2 and rng.random() < 0.25:
        until = Type(rng.choice(TYPES))
    if join == ";" and high != 1 and low > 0 and until is None:
        return Plus(child) if low == 1 and high is None else Repeat(child, low, high)
    return Rounds(child, low, high, join, preference if join == "->" else "each", until)


def _condition(rng: random.Random, formula: Formula) -> tuple[Any, ...]:
    """A condition without OR between variables: around `->` each side of one would take its own next event."""
    names = sorted(variables_of(formula))
    if len(names) > 1 and rng.random() < 0.5:
        x, y = rng.sample(names, 2)
        sign = rng.choice(("=", "!=", "<", "<=", ">", ">="))
        return ("for all", (sign, ("of", x, rng.choice(NUMERIC)), ("of", y, rng.choice(NUMERIC))))
    return ("on", rng.choice(names), strategies.draw_expression(rng, 2))


def smaller_steps(case: CeqlCase) -> Iterator[CeqlCase]:
    """The case with a part less."""
    for simpler in strategies.smaller_ceql(case):
        try:
            oracle.evaluate(simpler.query, simpler.stream)
        except TooBig:
            continue
        yield simpler
