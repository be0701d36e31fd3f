"""Random CEQL queries with conditions on each round of a loop, which read earlier events: PREV, FIRST, LAST, `b[0]`."""

from __future__ import annotations

import random
from collections.abc import Sequence
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
    Without,
    anchor_of,
    has_steps,
    reads_earlier,
    variables_of,
)
from tests.support.strategies import NUMERIC, TYPES, CeqlCase, draw_formula, draw_stream, draw_window

SIGNS = ("=", "!=", "<", "<=", ">", ">=")


def earlier_case(rng: random.Random) -> CeqlCase:
    """A query of loops with such conditions inside and around, over a stream of at most 14 events."""
    formula = _formula(rng, rng.choice((0, 1, 1, 2)))
    names = sorted(variables_of(formula))
    select = frozenset(rng.sample(names, 1)) if rng.random() < 0.15 else None
    strategy = rng.choice(("ALL", "ALL", "ALL", "ALL", "NEXT", "LAST", "MAX", "STRICT"))
    consume = rng.choice(("ANY", "PARTITION")) if rng.random() < 0.1 else "NONE"
    keys = rng.choice(((), (), (), (("k",),)))
    query = Query(formula, select, strategy, keys, draw_window(rng), (), consume, None, None)
    timed = True if query.within is not None and query.within.unit == "time" else None
    return CeqlCase(query, draw_stream(rng, rng.choice((4, 6, 7, 8, 9, 10)), timed=timed))


def _formula(rng: random.Random, depth: int) -> Formula:
    if depth == 0:
        formula = _loop(rng)
    else:
        left, right = _formula(rng, depth - 1), _other(rng, depth)
        if rng.random() < 0.5:
            left, right = right, left
        kind = rng.choices(("then", "next", "or", "and", "plus"), (8, 6, 3, 1, 3))[0]
        if kind in ("then", "next"):
            formula = Then(left, right, kind == "next")
        elif kind == "plus":
            formula = Plus(Then(left, right, rng.random() < 0.5), rng.random() < 0.5)
        else:
            formula = Or(left, right) if kind == "or" else And(left, right)
    if rng.random() < 0.35:
        formula = Filter(formula, _condition(rng, sorted(variables_of(formula)), sorted(variables_of(formula))))
    return formula


def _other(rng: random.Random, depth: int) -> Formula:
    if rng.random() < 0.4:
        return _formula(rng, depth - 1)
    return draw_formula(rng, rng.choice((0, 0, 1)))


def _loop(rng: random.Random) -> Formula:
    """One or two events in a round, under conditions that read earlier events of the round's variables, or others'."""
    first = As(_event(rng), rng.choice("xy"))
    body: Formula = first
    if rng.random() < 0.25:
        body = Then(first, As(_event(rng), rng.choice("yz")), rng.random() < 0.6)
    own = sorted(variables_of(body))
    far = [*own, *own, *"xyz"]
    for _ in range(rng.choice((1, 1, 2))):
        condition = _condition(rng, own, [v for v in far if v in own])
        body = Filter(body, condition)
    if rng.random() < 0.12:
        low = rng.randint(1, 2)
        return Repeat(body, low, rng.choice((None, low, low + 2)))
    return Plus(body, rng.random() < 0.5)


def _event(rng: random.Random) -> Formula:
    return Type("ANY", None, True) if rng.random() < 0.5 else Type(rng.choice(TYPES[:2]))


def _condition(rng: random.Random, own: Sequence[str], far: Sequence[str], depth: int = 1) -> tuple[Any, ...]:
    if depth and rng.random() < 0.25:
        word = rng.choice(("all", "any"))
        return (word, _condition(rng, own, far, 0), _condition(rng, own, far, 0))
    anchor = rng.choice([v for v in own if v in "xyz"] or own)
    other = anchor if rng.random() < 0.6 else rng.choice(far)
    kind = rng.random()
    sign, name = rng.choice(SIGNS), rng.choice(NUMERIC)
    if kind < 0.1:
        return ("for all", (sign, ("value", rng.randint(0, 4)), _earlier(rng, anchor, name)))
    if kind < 0.2:
        inner = (sign, ("attribute", name), _earlier(rng, anchor, name, (1, 1, 2)))
        kinds = (("or", inner, ("=", ("attribute", "a"), ("value", 2))), ("not", inner), inner)
        return ("on", anchor, rng.choice(kinds))
    here: Any = ("of", anchor, name)
    there = _earlier(rng, other, rng.choice((name, name, "b")))
    if kind < 0.35:
        there = (rng.choice("+-*"), there, ("value", rng.randint(1, 2)))
    elif kind < 0.5:
        here = (rng.choice("+-"), here, _earlier(rng, anchor, rng.choice(NUMERIC)))
    elif kind < 0.6:
        there = ("total", rng.choice(("FIRST", "LAST")), other, ("attribute", name))
    elif kind < 0.65:
        return ("for all", ("=", ("of", anchor, "s"), ("earlier", other, "s", rng.choice((0, 1)))))
    condition = (sign, here, there) if rng.random() < 0.7 else (sign, there, here)
    return ("for all", ("not", condition) if rng.random() < 0.1 else condition)


def _earlier(rng: random.Random, variable: str, name: str, backs: Sequence[int] = (0, 1, 1, 1, 2, 3)) -> Any:
    return ("earlier", variable, name, rng.choice(backs))


def earlier_steps_case(rng: random.Random) -> CeqlCase:
    """The same with steps: some sequences and loops are joined by `->`."""
    while True:
        case = earlier_case(rng)
        formula = _with_steps(rng, case.query.formula)
        if formula is not None and has_steps(formula):
            break
    strategy = "ALL" if case.query.strategy == "STRICT" else case.query.strategy
    return replace(case, query=replace(case.query, formula=formula, strategy=strategy))


def _with_steps(rng: random.Random, formula: Formula) -> Formula | None:
    """None for a formula with AND, whose parts take their own next events."""
    match formula:
        case And():
            return None
        case Then(left, right, adjacent):
            one, two = _with_steps(rng, left), _with_steps(rng, right)
            if one is None or two is None:
                return None
            return Step(one, two) if not adjacent and rng.random() < 0.6 else Then(one, two, adjacent)
        case Or(left, right) | Without(left, _, right):
            one, two = _with_steps(rng, left), _with_steps(rng, right)
            return None if one is None or two is None else replace(formula, left=one, right=two)
        case Plus(child, False) if rng.random() < 0.7:
            inner = _with_steps(rng, child)
            preference = rng.choice(("greedy", "greedy", "reluctant", "each"))
            return None if inner is None else Rounds(inner, rng.choice((1, 1, 1, 0)), None, "->", preference)
        case Filter(child, condition):
            inner = _with_steps(rng, child)
            if inner is None:
                return None
            plain = _without_totals(condition)
            if plain[0] == "any" and has_steps(inner):
                plain = plain[1]
            return Filter(inner, plain) if _is_about_one(plain) else inner
        case As(child) | Plus(child) | Repeat(child):
            inner = _with_steps(rng, child)
            return None if inner is None else replace(formula, child=inner)
    return formula


def _is_about_one(condition: Any) -> bool:
    """True if each part of a condition that reads earlier events is tested at the events of one variable."""
    if condition[0] in ("all", "any"):
        return all(map(_is_about_one, condition[1:]))
    if not reads_earlier(condition) or condition[0] == "on":
        return True
    try:
        anchor_of(condition)
    except ValueError:
        return False
    return True


def _without_totals(expression: Any) -> Any:
    """Around a step an aggregate is decided as the step ends; what it is of is read where the event is taken."""
    match expression:
        case ("total", function, variable, inner):
            name = next((p[1] for p in (inner, *inner[1:]) if isinstance(p, tuple) and p[0] == "attribute"), "a")
            return ("earlier", variable, name, int(function != "FIRST"))
        case (str(), *parts):
            return (expression[0], *map(_without_totals, parts))
    return expression
