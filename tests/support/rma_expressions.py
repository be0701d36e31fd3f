"""Random bounded expressions as the oracle's tuples, and their translation to the library's nodes."""

from __future__ import annotations

import random
from typing import Any

from spaseq.core.automata import rma
from spaseq.core.automata.rma import formulas as f

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def random_stream(rng: random.Random, size: int) -> list[dict[str, Any]]:
    """Events of types T and H with small ids and values, now and then without one."""
    events = []
    for _ in range(size):
        event: dict[str, Any] = {"type": rng.choice("TTH"), "id": rng.randrange(2), "value": rng.randrange(4)}
        if rng.random() < 0.1:
            del event["value"]
        events.append(event)
    return events


class Names:
    """Hands out variables."""

    def __init__(self, prefix: str = "x") -> None:
        self._prefix, self._count = prefix, 0

    def fresh(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"


def random_expression(rng: random.Random, depth: int, names: Names, beyond: bool = False) -> tuple[Any, list[str]]:
    """A bounded expression and bound(e). `beyond` the paper: also contiguity and optional parts."""
    if depth == 0 or rng.random() < 0.1:
        name = names.fresh()
        return ("as", rng.choice("TTH"), name), [name]
    kind = rng.choice((";", ";", ";", "or", "+", "filter", "filter", *((":", ":+", "?") if beyond else ())))
    if kind in (";", ":"):
        (a, bound_a), (b, bound_b) = (random_expression(rng, depth - 1, names, beyond) for _ in range(2))
        return (kind, a, b), bound_a + bound_b
    if kind == "or":
        a, bound_a = random_expression(rng, depth - 1, names, beyond)
        if rng.random() < 0.5:  # both alternatives bind the same variables, perhaps in another order
            return ("or", a, mirrored(a) if rng.random() < 0.5 else retyped(rng, a)), bound_a
        b, bound_b = random_expression(rng, depth - 1, names, beyond)
        return ("or", a, b), [x for x in bound_a if x in bound_b]
    child, bound = random_expression(rng, depth - 1, names, beyond)
    if kind in ("+", ":+", "?"):
        return (kind, child), []
    return (("filter", child, random_condition(rng, bound)), bound) if bound else (child, bound)


def random_condition(rng: random.Random, bound: list[str]) -> Any:
    """A comparison of variables of `bound`, or of one with a number, or a few of these."""
    if rng.random() < 0.2:
        return (rng.choice(("and", "or")), random_condition(rng, bound), random_condition(rng, bound))
    if rng.random() < 0.1:
        return ("not", random_condition(rng, bound))
    attribute = rng.choice(("id", "value"))
    left = (rng.choice(bound), attribute)
    right = (rng.choice(bound), attribute) if rng.random() < 0.7 else rng.randrange(3)
    return (rng.choice(OPERATORS), left, right)


def mirrored(e: Any) -> Any:
    """With the parts of sequences in the other order."""
    match e:
        case (";" | ":" as how, a, b):
            return (how, mirrored(b), mirrored(a))
    return e


def retyped(rng: random.Random, e: Any) -> Any:
    """The same variables, of other types."""
    match e:
        case ("as", _, name):
            return ("as", rng.choice("TH"), name)
        case ("filter", child, condition):
            return ("filter", retyped(rng, child), condition)
        case (how, *parts):
            return (how, *(retyped(rng, part) for part in parts))
    raise AssertionError(e)


def lowered(e: Any) -> rma.Expression:
    """The same expression in the library's nodes."""
    match e:
        case ("as", kind, name):
            return rma.event(kind, name)
        case ("read", condition, writes, marks):
            return rma.Read(formula(condition), frozenset(writes), marks)
        case ("filter", child, condition):
            return rma.Where(lowered(child), formula(condition))
        case ("or", a, b):
            return rma.Either(lowered(a), lowered(b))
        case (";" | ":" as how, a, b):
            return rma.Then(lowered(a), lowered(b), how == ":")
        case ("+" | ":+" as how, child):
            return rma.Plus(lowered(child), how == ":+")
        case ("?", child):
            return rma.Maybe(lowered(child))
        case ("window", child, size):
            return rma.Within(lowered(child), size)
    raise AssertionError(e)


def formula(condition: Any) -> rma.Formula:
    """The same condition as a formula."""
    match condition:
        case ("true",):
            return f.TRUE
        case ("not", c):
            return f.negation(formula(c))
        case ("and", c, d):
            return f.conjunction(formula(c), formula(d))
        case ("or", c, d):
            return f.disjunction(formula(c), formula(d))
        case (symbol, (a, left), (b, right)):
            return f.Test(f.Relates(left, symbol, right), (a, b))
        case (symbol, (a, left), value):
            return f.Test(f.Is(left, symbol, value), (a,))
    raise AssertionError(condition)
