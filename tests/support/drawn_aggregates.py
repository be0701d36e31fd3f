"""Random queries of CEQL with GROUP BY EVENT, and their rows by definition: aggregates over the list of all matches."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.support import drawn_totals, oracle, strategies
from tests.support.oracle import evaluate_valuations, variables_of
from tests.support.strategies import CeqlCase

LENGTHS = {"1 SECOND": 1000, "3 SECONDS": 3000, "2500 MILLISECONDS": 2500}
"""Stretches of time, in milliseconds."""
FUNCTIONS = ("COUNT", "SUM", "SUM", "AVG", "MIN", "MAX")
ARGUMENTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "{}.a": lambda e: e.get("a"),
    "{}.b": lambda e: e.get("b"),
    "({}.a - 3)": lambda e: None if e.get("a") is None else e["a"] - 3,
    "{}.a * {}.b": lambda e: None if None in (e.get("a"), e.get("b")) else e["a"] * e["b"],
}
PRICES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "{}.p": lambda e: e.get("p"),
    "({}.p - 3)": lambda e: None if e.get("p") is None else e["p"] - 3,
    "{}.p * {}.k": lambda e: None if None in (e.get("p"), e.get("k")) else e["p"] * e["k"],
}
"""Arguments of aggregates, for the events of `drawn_orders`."""


@dataclass(frozen=True, slots=True)
class AggregatesCase:
    """A query without columns, and its columns: (function, variable, argument) each; no variable for COUNT(*), no
    argument for the events of a variable. `group`: the text behind GROUP BY."""

    base: CeqlCase
    columns: tuple[tuple[str, str, str], ...]
    group: str = "EVENT"

    @property
    def events(self) -> tuple[tuple[tuple[str, Any], ...], ...]:
        return self.base.events

    @property
    def stream(self) -> list[dict[str, Any]]:
        return self.base.stream

    @property
    def text(self) -> str:
        listed = ", ".join(f"{_call(*column)} AS c{i}" for i, column in enumerate(self.columns))
        return self.base.text.replace("*", listed, 1) + f" GROUP BY {self.group}"


def _call(function: str, variable: str, argument: str) -> str:
    return f"{function}({argument.format(variable, variable) if argument else variable or '*'})"


def aggregates_case(rng: random.Random) -> AggregatesCase:
    """A query over a stream of at most 14 events, as a rule with matches: half of them without conditions that relate
    events."""
    return strategies.interesting(_draw, lambda case: len(oracle.evaluate(case.base.query, case.stream)), rng)


def _draw(rng: random.Random) -> AggregatesCase:
    kind = rng.random()
    if kind < 0.4:
        base = strategies.ceql_case(rng)
    elif kind < 0.9:
        formula = strategies.draw_formula(rng, rng.choice((1, 2, 2, 3)))
        base = CeqlCase(oracle.Query(formula, None, "ALL", (), None, (), "NONE", None, None), ())
        window = strategies.draw_window(rng)
        timed = window is not None and window.unit == "time"
        partition = rng.choice(((), (), (("k",),)))
        consume = rng.choice(("NONE",) * 6 + ("ANY", "PARTITION"))
        query = replace(base.query, within=window, partition=partition, consume=consume)
        base = CeqlCase(query, strategies.draw_stream(rng, timed=timed or None))
    else:
        base = drawn_totals.totals_case(rng)
    strategy = "NEXT" if base.query.strategy == "ANY" else base.query.strategy
    query = replace(base.query, select=None, limit=None, ending=None, patience=None, strategy=strategy)
    base = CeqlCase(query, drawn_totals.with_decimals(rng, base.events))
    names = [name for name in sorted(variables_of(query.formula)) if ">" not in name]
    columns = [draw_column(rng, names) for _ in range(rng.choice((1, 2, 3)))]
    by_key, by_time = bool(query.partition) and rng.random() < 0.5, _is_timed(base) and rng.random() < 0.5
    by = [*(["KEY"] if by_key else []), *([rng.choice(list(LENGTHS))] if by_time else [])]
    return AggregatesCase(base, tuple(columns), ", ".join(by) or "EVENT")


def _is_timed(base: CeqlCase) -> bool:
    return bool(base.events) and "time" in dict(base.events[0])


def draw_column(rng: random.Random, names: list[str], arguments: Mapping[str, Any] = ARGUMENTS) -> tuple[str, str, str]:
    """An aggregate of the events of one of these variables, or COUNT(*)."""
    if not names or rng.random() < 0.3:
        return ("COUNT", "", "")
    function, name = rng.choice(FUNCTIONS), rng.choice(names)
    events = function == "COUNT" and rng.random() < 0.5
    return (function, name, "" if events else rng.choice(list(arguments)))


def rows(drawn: AggregatesCase) -> Counter[Any]:
    """The rows by definition: the values of the columns, of each event at which matches end, or each key and stretch of
    time of these events."""
    read = {variable for _, variable, _ in drawn.columns if variable}
    after = drawn.base.query.after
    if read and after is not None and after[1]:  # matches show it beside what columns read
        read.add(after[1])
    found: dict[Any, set[Any]] = {}
    for start, end, taken in evaluate_valuations(drawn.base.query, drawn.stream):
        every = frozenset().union(*(at for _, at in taken)) if taken else frozenset()
        match = (start, end, every, tuple((x, at) for x, at in taken if x in read))
        found.setdefault(_group(drawn, end, every), set()).add(match)
    return Counter(tuple(_value(column, group, drawn.stream) for column in drawn.columns) for group in found.values())


def _group(drawn: AggregatesCase, end: int, every: frozenset[int]) -> Any:
    """The group of a match: an event, or the key and the stretch of time of its last event."""
    if drawn.group == "EVENT":
        return end
    event, parts = drawn.stream[end], drawn.group.split(", ")
    key = [
        next((event[n] for n in bracket if event.get(n) is not None), None) for bracket in drawn.base.query.partition
    ]
    seconds = [int(Fraction(str(event["time"])) * 1000 // LENGTHS[part]) for part in parts if part in LENGTHS]
    return tuple(key) if "KEY" in parts else (), tuple(seconds)


def _value(column: tuple[str, str, str], group: set[Any], stream: list[dict[str, Any]]) -> Any:
    function, variable, argument = column
    if not variable:
        return len(group)
    events = [stream[i] for _, _, _, taken in group for x, at in taken if x == variable for i in at]
    if not argument:
        return len(events)
    values = [v for v in map({**ARGUMENTS, **PRICES}[argument], events) if v is not None]
    if function == "COUNT":
        return len(values)
    if not values:
        return None
    total = sum(map(Fraction, values))
    return {"SUM": total, "AVG": float(total) / len(values), "MIN": min(values), "MAX": max(values)}[function]


def smaller_aggregates(drawn: AggregatesCase) -> Iterator[AggregatesCase]:
    for i in range(len(drawn.columns)):
        if len(drawn.columns) > 1:
            yield replace(drawn, columns=drawn.columns[:i] + drawn.columns[i + 1 :])
    for base in strategies.smaller_ceql(drawn.base):
        names = variables_of(base.query.formula)
        fits = ("KEY" not in drawn.group or base.query.partition) and (
            drawn.group in ("EVENT", "KEY") or _is_timed(base)
        )
        if fits and base.query.select is None and all(not v or v in names for _, v, _ in drawn.columns):
            yield replace(drawn, base=base)
