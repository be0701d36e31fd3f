"""The columns of SELECT by definition: expressions, drawn with their text and a function of the events of a match.

An expression's function takes the events that each variable took, dicts in order, and the whole match; None is NULL.
Numbers are as docs/semantics.md says: whole numbers within 64 bits, else doubles, and NaN is NULL. Times and durations
are whole numbers of nanoseconds within 64 bits.
"""

from __future__ import annotations

import datetime
import math
import operator
import random
import statistics
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
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
    """An expression. `kind` is number, text, truth, time, duration or list; `variables` those that it reads."""

    text: str
    of: Callable[[Taken], Any]
    kind: str
    variables: frozenset[str] = field(default_factory=frozenset)


class Time(int):
    """Nanoseconds since 1970."""


class Span(int):
    """Nanoseconds."""


NAMES = {"number": ("n", "x"), "text": ("s", "u"), "time": ("at", "to"), "duration": ("d",)}
LISTS = {"number": "h", "text": "w"}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata")


def plain(value: Any) -> Any:
    """The value of an event, or of a row, as expressions have it."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    below = getattr(value, "nanosecond", getattr(value, "nanoseconds", 0))
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        return Time((moment - EPOCH) // MICROSECOND * 1000 + below)
    if isinstance(value, datetime.timedelta):
        return Span((value.days * 86_400 + value.seconds) * 10**9 + value.microseconds * 1000 + below)
    return None if isinstance(value, float) and math.isnan(value) else value


def of(event: Event, name: str) -> Any:
    return plain(event.get(name))


def number(value: Any) -> Any:
    """A result: NULL for NaN, and for a whole number beyond 64 bits."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return None
    return value


def moment(total: int, kind: type[int]) -> Any:
    """A time or duration; NULL if 64 bits do not hold it."""
    return kind(total) if -(1 << 63) + (kind is Time) <= total < 1 << 63 else None


def move(symbol: str, a: Any, b: Any) -> Any:
    """Arithmetic of times and durations."""
    match symbol:
        case "+" | "-":
            is_time = isinstance(a, Time) != isinstance(b, Time)
            return moment(int(a) + int(b) if symbol == "+" else int(a) - int(b), Time if is_time else Span)
        case "*":
            span, factor = (a, b) if isinstance(a, Span) else (b, a)
            total = int(span) * factor if isinstance(factor, int) else float(span) * factor
            return moment(round(total), Span) if abs(total) < 1 << 63 else None
    if isinstance(b, Span):
        return float(a) / float(b)
    if isinstance(b, int):
        return moment(round(Fraction(int(a), b)), Span)
    return moment(round(float(a) / b), Span) if abs(float(a) / b) < 1 << 63 else None


def arithmetic(symbol: str, a: Any, b: Any) -> Any:
    if a is None or b is None or (symbol in "/%" and b == 0):
        return None
    if isinstance(a, Time | Span) or isinstance(b, Time | Span):
        return move(symbol, a, b)
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


def sum_of(values: list[Any]) -> Any:
    """SUM."""
    if not values:
        return None
    return moment(sum(values), Span) if isinstance(values[0], Span) else number(total(values))


def mean(values: list[Any]) -> Any:
    """AVG; of times and durations to the nearest nanosecond, of two the even one."""
    if not values:
        return None
    if isinstance(values[0], Time | Span):
        return type(values[0])(round(Fraction(sum(values), len(values))))
    return number(float(total(values)) / len(values))


AGGREGATES: dict[str, tuple[tuple[str, ...], str, Callable[[list[Any]], Any]]] = {
    "SUM": (("number", "duration"), "argument", sum_of),
    "AVG": (("number", "duration", "time"), "argument", mean),
    "STDDEV": (("number",), "number", deviation),
    "MIN": (tuple(NAMES), "argument", lambda vs: min(vs) if vs else None),
    "MAX": (tuple(NAMES), "argument", lambda vs: max(vs) if vs else None),
    "COUNT": (tuple(NAMES), "number", len),
    "COUNT DISTINCT": (tuple(NAMES), "number", lambda vs: len(set(vs))),
}


def leaf(rng: random.Random, variables: tuple[str, ...], kind: str) -> Drawn:
    """An attribute, an aggregate, a count or a key."""
    v = rng.choice(variables)
    name = rng.choice(NAMES[kind])
    used = frozenset((v,))

    def nth(place: Callable[[list[Event]], Event | None]) -> Callable[[Taken], Any]:
        def work(match: Taken) -> Any:
            event = place(match.by.get(v, []))
            return None if event is None else of(event, name)

        return work

    last = nth(lambda es: es[-1] if es else None)
    first = nth(lambda es: es[0] if es else None)
    match rng.randrange(10):
        case 9 if kind == "number":
            listed = rng.choice(("h", "w"))
            size: Callable[[Taken], Any] = lambda m: (  # noqa: E731
                None if not m.by.get(v) or m.by[v][-1].get(listed) is None else len(m.by[v][-1][listed])
            )
            return Drawn(f"LENGTH({v}.{listed})", size, kind, used)
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
    if function.startswith("COUNT"):
        name = rng.choice(NAMES[rng.choice(tuple(NAMES))])
    inner = Drawn(f"{v}.{name}", lambda m: None, kind)
    per_event: Callable[[Event], Any] = lambda e: of(e, name)  # noqa: E731
    if kind == "duration" and rng.random() < 0.5:
        inner = Drawn(f"{v}.to - {v}.at", lambda m: None, kind)
        per_event = lambda e: arithmetic("-", of(e, "to"), of(e, "at"))  # noqa: E731
    elif not function.startswith("COUNT") and kind == "number" and rng.random() < 0.3:
        symbol, constant = rng.choice("+-*"), rng.choice((2, 1.5, -3))
        inner = Drawn(f"{v}.{name} {symbol} {constant}", lambda m: None, kind)
        per_event = lambda e: arithmetic(symbol, of(e, name), constant)  # noqa: E731
    work = AGGREGATES[function][2]
    call = f"COUNT(DISTINCT {inner.text})" if function == "COUNT DISTINCT" else f"{function}({inner.text})"

    def aggregate(match: Taken) -> Any:
        found = [per_event(event) for event in match.by.get(v, [])]
        return work([value for value in found if value is not None])

    return Drawn(call, aggregate, kind, used)


def value(rng: random.Random, variables: tuple[str, ...], depth: int, kind: str) -> Drawn:
    """A value of a kind."""
    if kind == "text" or depth == 0 or rng.random() < 0.4:
        return leaf(rng, variables, kind)
    if kind == "time":
        return time(rng, variables, depth)
    if kind == "duration":
        return span(rng, variables, depth)
    if rng.random() < 0.2:
        return of_times(rng, variables, depth)
    left, right = (value(rng, variables, depth - 1, kind) for _ in range(2))
    if rng.random() < 0.3:
        constant = rng.choice((1, 2, 0.5, 0))
        right = Drawn(str(constant), lambda m: constant, kind)
    symbol = rng.choice("+-*/%")
    return Drawn(f"({left.text} {symbol} {right.text})", lambda m: arithmetic(symbol, left.of(m), right.of(m)), kind,
                 left.variables | right.variables)  # fmt: skip


def join(symbol: str, left: Drawn, right: Drawn, kind: str) -> Drawn:
    compute: Callable[[Taken], Any] = lambda m: arithmetic(symbol, left.of(m), right.of(m))  # noqa: E731
    return Drawn(f"({left.text} {symbol} {right.text})", compute, kind, left.variables | right.variables)


def time(rng: random.Random, variables: tuple[str, ...], depth: int) -> Drawn:
    """A time: one and a duration, or the beginning of a day in a zone."""
    inner = value(rng, variables, depth - 1, "time")
    if rng.random() < 0.6:
        return join(rng.choice("+-"), inner, value(rng, variables, depth - 1, "duration"), "time")
    zone = rng.choice(ZONES)

    def begin(match: Taken) -> Any:
        at = inner.of(match)
        if at is None:
            return None
        start = local(at, zone).replace(hour=0, minute=0, second=0)
        return moment((start - EPOCH) // datetime.timedelta(seconds=1) * 10**9, Time)

    return Drawn(f"DATE_TRUNC('day', {inner.text}, '{zone}')", begin, "time", inner.variables)


def local(at: Time, zone: str) -> datetime.datetime:
    return (EPOCH + datetime.timedelta(seconds=at // 10**9)).astimezone(zoneinfo.ZoneInfo(zone))


def span(rng: random.Random, variables: tuple[str, ...], depth: int) -> Drawn:
    """A duration: of times, of durations, or of one and a number."""
    down = partial(value, rng, variables, depth - 1)
    match rng.randrange(5):
        case 0:
            return join("-", down("time"), down("time"), "duration")
        case 1:
            return join(rng.choice("+-"), down("duration"), down("duration"), "duration")
        case 2:
            return join("*", down("duration"), down("number"), "duration")
        case 3:
            return join("/", down("duration"), down("number"), "duration")
    count, (word, size) = rng.randint(0, 90), rng.choice((("SECONDS", 1), ("HOURS", 3600), ("DAYS", 86_400)))
    return Drawn(f"{count} {word}", lambda m: Span(count * size * 10**9), "duration")


def of_times(rng: random.Random, variables: tuple[str, ...], depth: int) -> Drawn:
    """A number that is computed of durations or of a time."""
    if rng.random() < 0.5:
        left, right = (value(rng, variables, depth - 1, "duration") for _ in range(2))
        return join("/", left, right, "number")
    inner, zone = value(rng, variables, depth - 1, "time"), rng.choice(ZONES)
    name, part = rng.choice((("HOUR", "hour"), ("DAY", "day"), ("MINUTE", "minute"), ("YEAR", "year")))

    def of_time(match: Taken) -> Any:
        at = inner.of(match)
        return None if at is None else getattr(local(at, zone), part)

    return Drawn(f"{name}({inner.text}, '{zone}')", of_time, "number", inner.variables)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def of_list(rng: random.Random, variables: tuple[str, ...]) -> Drawn:
    """`x < ANY(list)`, `x < ALL(list)`, `x IN list`, `CONTAINS(list, x)`, of the list of a variable's last event."""
    kind, v = rng.choice(tuple(LISTS)), rng.choice(variables)
    left, name = value(rng, variables, 1, kind), LISTS[kind]
    listed: Callable[[Taken], Any] = lambda m: m.by[v][-1].get(name) if m.by.get(v) else None  # noqa: E731
    used = left.variables | {v}

    def has(match: Taken) -> Any:
        a, among = left.of(match), listed(match)
        return None if a is None or among is None else a in among

    match rng.randrange(5):
        case 0:
            return Drawn(f"{left.text} IN {v}.{name}", has, "truth", used)
        case 1:
            return Drawn(f"CONTAINS({v}.{name}, {left.text})", has, "truth", used)
    symbol, word = rng.choice(tuple(COMPARISONS)), rng.choice(("ANY", "SOME", "ALL"))

    def holds(match: Taken) -> Any:
        a, among = left.of(match), listed(match)
        if among is None:
            return None
        found = [None if a is None or each is None else COMPARISONS[symbol](a, each) for each in among]
        settles = word != "ALL"
        return settles if settles in found else None if None in found else not settles

    return Drawn(f"{left.text} {symbol} {word}({v}.{name})", holds, "truth", used)


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
    if rng.random() < 0.4:
        return of_list(rng, variables)
    kind = rng.choice(tuple(NAMES))
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
            v, name = rng.choice(variables), rng.choice((*sum(NAMES.values(), ()), *LISTS.values()))
            return Drawn(f"COLLECT({v}.{name})", lambda m: [of(e, name) for e in m.by.get(v, [])], "list",
                         frozenset((v,)))  # fmt: skip
        case 2:
            start = rng.random() < 0.5
            return Drawn("MATCH_START" if start else "MATCH_END", lambda m: m.start if start else m.end, "time")
        case 3 | 4:
            return value(rng, variables, 0, "text")
    return value(rng, variables, 2, rng.choice(("number", "number", "time", "duration")))
