"""The columns of SELECT by definition: expressions, drawn with their text and a function of the events of a match.

An expression's function takes the events that each variable took, dicts in order, and the whole match; None is NULL.
Numbers are as docs/semantics.md says: whole numbers within 64 bits, else doubles, and NaN is NULL.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Taken:
    """A match: its events by variable, all its events, and the times of its interval."""

    by: dict[str, list[Event]]
    events: list[Event]
    start: Any
    end: Any


@dataclass
class Drawn:
    """An expression. `kind` is number, text, truth or list; `variables` those that it reads."""

    text: str
    of: Callable[[Taken], Any]
    kind: str
    variables: frozenset[str] = field(default_factory=frozenset)


NUMBERS = ("n", "x")
TEXTS = ("s", "u")


def number(value: Any) -> Any:
    """A result: NULL for NaN, and for a whole number beyond 64 bits."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return None
    return value


def arithmetic(symbol: str, a: Any, b: Any) -> Any:
    if a is None or b is None or (symbol in "/%" and b == 0):
        return None
    whole = isinstance(a, int) and isinstance(b, int)
    match symbol:
        case "/":
            return number(float(a) / float(b))
        case "%":
            rest = math.fmod(a, b) if not whole else abs(a) % abs(b) * (1 if a >= 0 else -1)
            return number(rest)
    a, b = (a, b) if whole else (float(a), float(b))
    return number({"+": a + b, "-": a - b, "*": a * b}[symbol])


def total(values: list[Any]) -> Any:
    found = values[0]
    for value in values[1:]:
        found = found + value
    return found


def deviation(values: list[Any]) -> Any:
    if len(values) < 2:
        return None
    return math.sqrt(float(statistics.variance([Fraction(v) for v in values])))


AGGREGATES: dict[str, tuple[tuple[str, ...], str, Callable[[list[Any]], Any]]] = {
    "SUM": (("number",), "number", lambda vs: number(total(vs)) if vs else None),
    "AVG": (("number",), "number", lambda vs: number(float(total(vs)) / len(vs)) if vs else None),
    "STDDEV": (("number",), "number", deviation),
    "MIN": (("number", "text"), "argument", lambda vs: min(vs) if vs else None),
    "MAX": (("number", "text"), "argument", lambda vs: max(vs) if vs else None),
    "COUNT": (("number", "text"), "number", len),
    "COUNT DISTINCT": (("number", "text"), "number", lambda vs: len(set(vs))),
}


def leaf(rng: random.Random, variables: tuple[str, ...], kind: str) -> Drawn:
    """An attribute, an aggregate, a count or a key."""
    v = rng.choice(variables)
    name = rng.choice(NUMBERS if kind == "number" else TEXTS)
    used = frozenset((v,))

    def nth(place: Callable[[list[Event]], Event | None]) -> Callable[[Taken], Any]:
        def of(match: Taken) -> Any:
            event = place(match.by.get(v, []))
            return None if event is None else event.get(name)

        return of

    last = nth(lambda es: es[-1] if es else None)
    first = nth(lambda es: es[0] if es else None)
    match rng.randrange(9):
        case 0 | 1:
            return Drawn(f"{v}.{name}", last, kind, used)
        case 2:
            return Drawn(f"LAST({v}.{name})", last, kind, used)
        case 3:
            return Drawn(rng.choice((f"FIRST({v}.{name})", f"{v}[0].{name}")), first, kind, used)
        case 4:
            back = rng.randint(1, 2)
            text = f"PREV({v}.{name}{'' if back == 1 else ', 2'})"
            return Drawn(text, nth(lambda es: es[-1 - back] if len(es) > back else None), kind, used)
        case 5 if kind == "number":
            return Drawn(f"COUNT({v})", lambda m: len(m.by.get(v, [])), kind, used)
        case 6 if kind == "text":
            return Drawn("u", lambda m: m.events[-1].get("u"), kind)
    choices = [
        f for f, (takes, gives, _) in AGGREGATES.items() if kind in takes and (gives == "argument" or kind == gives)
    ]
    function = rng.choice(choices)
    inner = Drawn(f"{v}.{name}", lambda m: None, kind)
    per_event: Callable[[Event], Any] = lambda e: e.get(name)  # noqa: E731
    if kind == "number" and rng.random() < 0.3:
        symbol, constant = rng.choice("+-*"), rng.choice((2, 1.5, -3))
        inner = Drawn(f"{v}.{name} {symbol} {constant}", lambda m: None, kind)
        per_event = lambda e: arithmetic(symbol, e.get(name), constant)  # noqa: E731
    work = AGGREGATES[function][2]
    call = f"COUNT(DISTINCT {inner.text})" if function == "COUNT DISTINCT" else f"{function}({inner.text})"

    def of(match: Taken) -> Any:
        found = [per_event(event) for event in match.by.get(v, [])]
        return work([value for value in found if value is not None])

    return Drawn(call, of, kind, used)


def value(rng: random.Random, variables: tuple[str, ...], depth: int, kind: str) -> Drawn:
    """A value of a kind."""
    if kind == "text" or depth == 0 or rng.random() < 0.4:
        return leaf(rng, variables, kind)
    left, right = (value(rng, variables, depth - 1, kind) for _ in range(2))
    if rng.random() < 0.3:
        constant = rng.choice((1, 2, 0.5, 0))
        right = Drawn(str(constant), lambda m: constant, kind)
    symbol = rng.choice("+-*/%")
    return Drawn(f"({left.text} {symbol} {right.text})", lambda m: arithmetic(symbol, left.of(m), right.of(m)), kind,
                 left.variables | right.variables)  # fmt: skip


def condition(rng: random.Random, variables: tuple[str, ...], depth: int) -> Drawn:
    """A truth value, three-valued."""
    if depth and rng.random() < 0.5:
        left, right = (condition(rng, variables, depth - 1) for _ in range(2))
        settles = rng.random() < 0.5

        def of(match: Taken) -> Any:
            both = left.of(match), right.of(match)
            return settles if settles in both else None if None in both else not settles

        word = "OR" if settles else "AND"
        return Drawn(f"({left.text} {word} {right.text})", of, "truth", left.variables | right.variables)
    kind = rng.choice(("number", "text"))
    left, right = (value(rng, variables, 1, kind) for _ in range(2))
    symbol, work = rng.choice((("<", lambda a, b: a < b), ("=", lambda a, b: a == b), (">=", lambda a, b: a >= b)))

    def compare(match: Taken) -> Any:
        a, b = left.of(match), right.of(match)
        return None if a is None or b is None else work(a, b)

    return Drawn(f"{left.text} {symbol} {right.text}", compare, "truth", left.variables | right.variables)


def column(rng: random.Random, variables: tuple[str, ...]) -> Drawn:
    """An expression of SELECT."""
    match rng.randrange(8):
        case 0:
            return condition(rng, variables, 1)
        case 1:
            v, name = rng.choice(variables), rng.choice(NUMBERS + TEXTS)
            return Drawn(f"COLLECT({v}.{name})", lambda m: [e.get(name) for e in m.by.get(v, [])], "list",
                         frozenset((v,)))  # fmt: skip
        case 2:
            start = rng.random() < 0.5
            return Drawn("MATCH_START" if start else "MATCH_END", lambda m: m.start if start else m.end, "time")
        case 3 | 4:
            return value(rng, variables, 0, "text")
    return value(rng, variables, 2, "number")
