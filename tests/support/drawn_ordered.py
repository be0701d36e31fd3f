"""Random queries of CEQL with ORDER BY, with or without LIMIT, and their matches by definition: a sorted list."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.support import drawn_orders, drawn_totals, oracle, oracle_ceql_text, strategies
from tests.support.strategies import CeqlCase

Events = list[dict[str, Any]]
Value = Callable[[Events], Any]


def _sum(values: list[Any]) -> Any:
    return sum(map(Fraction, values)) if values else None


def _present(events: Events, name: str) -> list[Any]:
    return [event[name] for event in events if event.get(name) is not None]


KEYS: dict[str, Value] = {
    "{}.a": lambda events: events[-1].get("a") if events else None,
    "{}.b": lambda events: events[-1].get("b") if events else None,
    "-{}.a": lambda events: -events[-1]["a"] if events and events[-1].get("a") is not None else None,
    "COUNT({})": len,
    "SUM({}.b)": lambda events: _sum(_present(events, "b")),
    "MIN({}.a)": lambda events: min(_present(events, "a"), default=None),
    "FIRST({}.b)": lambda events: events[0].get("b") if events else None,
    "{}.a > 2": lambda events: events[-1]["a"] > 2 if events and events[-1].get("a") is not None else None,
}  # fmt: skip

PLAIN_KEYS: dict[str, Value] = {
    "{}.p": lambda events: events[-1].get("p") if events else None,
    "{}.k": lambda events: events[-1].get("k") if events else None,
    "2 * {}.r": lambda events: 2 * events[-1]["r"] if events and events[-1].get("r") is not None else None,
}  # fmt: skip
"""The same of the events of `drawn_orders`; as a rule they are sums."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of ORDER BY: one of `KEYS` or `PLAIN_KEYS` of a variable, and minus `attribute` of another, if there is
    `other`."""

    form: str
    variable: str
    other: str
    descending: bool
    attribute: str = "a"

    @property
    def text(self) -> str:
        found = self.form.format(self.variable) + (f" - {self.other}.{self.attribute}" if self.other else "")
        return found + " DESC" * self.descending

    def of(self, taken: dict[str, Events]) -> Any:
        """The value of a match, given the events of its variables."""
        value = (KEYS | PLAIN_KEYS)[self.form](taken.get(self.variable, []))
        if not self.other:
            return value
        less = (KEYS | PLAIN_KEYS)[f"{{}}.{self.attribute}"](taken.get(self.other, []))
        return None if None in (value, less) else Fraction(value) - Fraction(less)


@dataclass(frozen=True, slots=True)
class OrderedCase:
    """A query without ORDER BY and LIMIT, and both."""

    base: CeqlCase
    keys: tuple[Key, ...]
    limit: int | None

    @property
    def events(self) -> tuple[tuple[tuple[str, Any], ...], ...]:
        return self.base.events

    @property
    def stream(self) -> Events:
        return self.base.stream

    @property
    def text(self) -> str:
        clauses = " ORDER BY " + ", ".join(key.text for key in self.keys)
        return self.base.text + clauses + ("" if self.limit is None else f" LIMIT {self.limit}")


def ordered_case(rng: random.Random) -> OrderedCase:
    """A query over a stream of at most 14 events, as a rule with several matches of one event."""
    return strategies.interesting(_draw, _most, rng)


def _most(case: OrderedCase) -> int:
    """The most matches of one event, but for one."""
    ends = Counter(end for _, end, _ in oracle.evaluate(case.base.query, case.stream))
    return max(ends.values(), default=1) - 1


def _draw(rng: random.Random) -> OrderedCase:
    while True:
        base = strategies.ceql_case(rng) if rng.random() < 0.6 else drawn_totals.totals_case(rng)
        query = replace(base.query, limit=None, ending=None, patience=None, select=None)
        if query.strategy == "ANY":
            query = replace(query, strategy="ALL")
        names = [name for name in sorted(oracle_ceql_text.shown(query.formula)) if ">" not in name]
        if names and (query.after is None or query.after[1] in ("", *names)):  # SELECT may have named others
            break
    base = CeqlCase(query, drawn_totals.with_decimals(rng, base.events))
    keys = tuple(_key(rng, names) for _ in range(rng.choice((1, 1, 2))))
    limit = None if query.after is not None or query.strategy == "FIRST" else rng.choice((None, 1, 2, 2, 3))
    return OrderedCase(base, keys, limit)


def _key(rng: random.Random, names: list[str]) -> Key:
    form = rng.choice(list(KEYS))
    other = rng.choice(names) if ">" not in form and rng.random() < 0.4 else ""
    return Key(form, rng.choice(names), other, rng.random() < 0.5)


def ordered_orders_case(rng: random.Random) -> OrderedCase:
    """A query with order conditions between events, whose values are compared again as a rule, and with LIMIT."""
    return strategies.interesting(_draw_orders, _most, rng)


def _draw_orders(rng: random.Random) -> OrderedCase:
    patterns = rng.choice((drawn_orders.PATTERNS, drawn_orders.KEPT, drawn_orders.KEPT))
    text, events = drawn_orders.draw(rng, patterns, drawn_orders.EXACT, texts=0)
    base = CeqlCase(oracle_ceql_text.read(text), tuple(tuple(event.items()) for event in events))
    names = [name for name in sorted(oracle_ceql_text.shown(base.query.formula)) if ">" not in name]
    keys = []
    for _ in range(rng.choice((1, 1, 2))):
        other = rng.choice(names) if rng.random() < 0.5 else ""
        keys.append(Key(rng.choice(list(PLAIN_KEYS)), rng.choice(names), other, rng.random() < 0.5, "p"))
    return OrderedCase(base, tuple(keys), rng.choice((1, 1, 2, 3, 5)))


def matches(drawn: OrderedCase) -> list[oracle.Match]:
    """The matches by definition: of each event those of its valuations, in their order."""
    shown = set(oracle_ceql_text.shown(drawn.base.query.formula))
    found: dict[int, set[Any]] = {}
    for start, end, taken in oracle.evaluate_valuations(drawn.base.query, drawn.stream):
        every = tuple(sorted(frozenset().union(*(at for _, at in taken)))) if taken else ()
        found.setdefault(end, set()).add((start, end, every, tuple((x, at) for x, at in taken if x in shown)))
    ordered = []
    for _, group in sorted(found.items()):
        whole = sorted(group, key=lambda match: (-match[0], match[2], _names(match)))
        for key in reversed(drawn.keys):
            whole.sort(key=lambda match: _place(key, match, drawn.stream))
        ordered += [match[:3] for match in whole[: drawn.limit]]
    return ordered


def _names(match: Any) -> list[list[str]]:
    return [sorted(x for x, at in match[3] if position in at) for position in match[2]]


def _place(key: Key, match: Any, stream: Events) -> tuple[bool, Any]:
    """The place of a match by one key: NULL is the greatest value."""
    value = key.of({x: [stream[i] for i in sorted(at)] for x, at in match[3]})
    if value is None:
        return (not key.descending, 0)
    return (key.descending, -Fraction(value) if key.descending else Fraction(value))


def smaller_ordered(drawn: OrderedCase) -> Iterator[OrderedCase]:
    for i in range(len(drawn.keys)):
        if len(drawn.keys) > 1:
            yield replace(drawn, keys=drawn.keys[:i] + drawn.keys[i + 1 :])
    for base in strategies.smaller_ceql(drawn.base):
        names = oracle_ceql_text.shown(base.query.formula)
        if base.query.select is None and all(n in names for k in drawn.keys for n in (k.variable, k.other) if n):
            yield replace(drawn, base=base)
