"""Random queries over the rounds of a Kleene+: lists, aggregates, clauses of a window over them, and their meaning.

Written from `docs/semantics.md`, "Aggregates over rounds" and "Lists", on the solutions of `oracle_spaseq`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from rdflib import Literal, URIRef

import spaseq
from spaseq.core.errors import SpaseqError
from tests.support import harness, oracle_spaseq, oracle_spaseq_text, strategies
from tests.support.harness import Case
from tests.support.oracle_spaseq import ROUNDS

LIST = URIRef("http://w3id.org/awslabs/neptune/SPARQL-CDTs/List")
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
Item = tuple[str, str]
"""The kind of a selected item, and its variable: "last", "list", or an aggregate: COUNT, COUNT DISTINCT or SUM."""


@dataclass(frozen=True, slots=True)
class RoundsCase:
    """`items`: the selected items, the i-th as ?ri. `having`: the least number of rounds, exclusive, and the variable.
    `order`: ORDER BY the first item, which is a COUNT, descending or not."""

    base: strategies.SpaseqCase
    items: tuple[Item, ...]
    distinct: bool = False
    having: tuple[int, str] | None = None
    order: bool | None = None
    limit: int | None = None

    @property
    def text(self) -> str:
        shown = " ".join(f"?{x}" if kind == "last" else f"({_write(kind, x)} AS ?r{i})"
                         for i, (kind, x) in enumerate(self.items))  # fmt: skip
        tail = [] if self.having is None else [f"HAVING (COUNT(?{self.having[1]}) > {self.having[0]})"]
        tail += [] if self.order is None else [f"ORDER BY {'DESC' if self.order else 'ASC'}(?r0)"]
        tail += [] if self.limit is None else [f"LIMIT {self.limit}"]
        select = f"{'DISTINCT ' if self.distinct else ''}{shown}"
        return f"{replace(self.base, select=select).text}{' '.join(tail)}\n"

    @property
    def variables_of_aggregates(self) -> frozenset[str]:
        """The variables in aggregates."""
        named = {x for kind, x in self.items if kind not in ("last", "list")}
        return frozenset(named if self.having is None else {*named, self.having[1]})

    @property
    def by_window(self) -> bool:
        return self.distinct or self.order is not None or self.limit is not None

    @property
    def case(self) -> Case:
        return Case("a random query", self.text, graphs=self.base.graphs, kb=strategies.BACKGROUND)


def _write(kind: str, x: str) -> str:
    match kind.split():
        case ["list"]:
            return f"?{x}+"
        case [function, "DISTINCT"]:
            return f"{function}(DISTINCT ?{x})"
    return f"{kind}(?{x})"


# ------------------------------------------------------------------------------------------------------------- meaning


def answers(drawn: RoundsCase) -> Counter[Any]:
    """By definition."""
    query = oracle_spaseq_text.read(replace(drawn.base, select="*").text)
    collect = drawn.variables_of_aggregates | {x for kind, x in drawn.items if kind == "list"}
    query = replace(query, sequence=oracle_spaseq.collecting(query.sequence, collect))
    streams, known = harness.streamset(drawn.base.graphs), harness.knowledge(strategies.BACKGROUND)
    found = oracle_spaseq.evaluate(query, streams, known)
    if drawn.variables_of_aggregates or drawn.limit is None:  # else LIMIT counts whole solutions
        needed = drawn.variables_of_aggregates | {x for _, x in drawn.items} | {ROUNDS}
        found = {(f, e, at, frozenset(pair for pair in m if pair[0] in needed)) for f, e, at, m in found}
    if not drawn.by_window:
        return Counter({(f, e, at, shown) for f, e, at, m in found if (shown := _row(drawn, m)) is not None})
    size, origin, rows = query.window, query.origin, list[Any]()
    ordered = sorted(found, key=lambda answer: (answer[1], answer[0], answer[2], _terms(answer[3])))
    for _, own in groupby(ordered, lambda answer: 0 if size is None else (answer[1] - origin) // size):
        rows += _of_window(drawn, list(own))
    return Counter(rows)


def _of_window(drawn: RoundsCase, matches: list[Any]) -> list[Any]:
    standing: dict[Any, Any] = {}
    for match in matches:
        standing.setdefault((match[1], match[3]), match)
    rows = [(f, e, at, shown) for f, e, at, m in standing.values() if (shown := _row(drawn, m)) is not None]
    if drawn.distinct:
        first: dict[Any, Any] = {}
        for row in rows:
            first.setdefault(row[3], row)
        rows = list(first.values())
    if drawn.order is not None:
        rows.sort(key=lambda row: int(dict(row[3])["r0"].split('"')[1]), reverse=drawn.order)
    return rows[: drawn.limit]


def _terms(mapping: oracle_spaseq.Solution) -> Any:
    """By this the mappings of one place are ordered."""
    kinds = {"<": "URIRef", "_": "BNode", '"': "Literal"}
    rows: list[Any] = []
    pairs: list[tuple[str, Any]] = sorted(mapping)
    for name, term in pairs:
        if name == ROUNDS:
            text = " ".join(f"{x} {own}" for taken in term for x, own in taken)
            rows.append((name, "tuple", text))
        else:
            rows.append((name, kinds[term[0]], term))
    return rows


def _row(drawn: RoundsCase, mapping: oracle_spaseq.Solution) -> frozenset[Any] | None:
    """The row of a solution; None if HAVING is not true."""
    own: dict[str, Any] = dict(mapping)
    rounds = [dict(taken) for taken in own.pop(ROUNDS, ())]
    row = {}

    def values(x: str) -> list[str]:
        return [taken[x] for taken in rounds if x in taken]

    if drawn.having is not None and not len(values(drawn.having[1])) > drawn.having[0]:
        return None
    for i, (kind, x) in enumerate(drawn.items):
        match kind:
            case "last":
                if x in own:
                    row[x] = own[x]
            case "list":
                texts = [v.split('"')[1] if v.endswith(INTEGER) else v for v in values(x)]
                row[f"r{i}"] = Literal(f"[{', '.join(texts)}]", datatype=LIST).n3()
            case "COUNT":
                row[f"r{i}"] = f'"{len(values(x))}"{INTEGER}'
            case "COUNT DISTINCT":
                row[f"r{i}"] = f'"{len(set(values(x)))}"{INTEGER}'
            case "SUM":
                if all(v.endswith(INTEGER) for v in values(x)):
                    row[f"r{i}"] = f'"{sum(int(v.split(chr(34))[1]) for v in values(x))}"{INTEGER}'
    return frozenset(row.items())


# ------------------------------------------------------------------------------------------------------------- drawing


def rounds_case(rng: random.Random) -> RoundsCase:
    """One that the engine takes: it names the variables that each round of a Kleene+ binds anew."""
    while True:
        base = strategies.spaseq_case(rng)
        if "+" not in base.sequence and "{" not in base.sequence:
            continue
        query = oracle_spaseq_text.read(replace(base, select="*").text)
        every = [oracle_spaseq.variables_at(e.what) for e in query.sequence if not e.negated]
        rounds = [oracle_spaseq.variables_at(e.what) for e in query.sequence if e.rounds]
        names = sorted(frozenset().union(*rounds))
        drawn = _clauses(rng, base, names, sorted(frozenset().union(*every))) if names else None
        if drawn is not None and _is_over_rounds(drawn) and (answers(drawn) or rng.random() < 1 / 20):
            return drawn


def _is_over_rounds(drawn: RoundsCase) -> bool:
    """True if the engine accepts it as a query over rounds."""
    try:
        plan = spaseq.compile(drawn.text).checked.clauses.plan
    except SpaseqError:
        return False
    return not drawn.variables_of_aggregates or (plan is not None and plan.over_rounds)


def _clauses(rng: random.Random, base: strategies.SpaseqCase, names: list[str], every: list[str]) -> RoundsCase:
    aggregates = rng.random() < 0.6
    kinds = ("COUNT", "COUNT DISTINCT", "SUM", "list") if aggregates else ("list",)
    items = [(rng.choice(kinds), rng.choice(names)) for _ in range(rng.randint(1, 3))]
    if aggregates:
        items.insert(0, ("COUNT", rng.choice(names)))
    items += [("last", x) for x in rng.sample(every, rng.randint(0, min(2, len(every))))]
    having = (rng.randrange(3), rng.choice(names)) if aggregates and rng.random() < 0.3 else None
    clauses = "SLIDING" not in base.clauses
    order = rng.random() < 0.5 if clauses and aggregates and rng.random() < 0.4 else None
    limit = rng.randint(1, 4) if clauses and rng.random() < 0.3 else None
    distinct = clauses and limit is None and rng.random() < 0.3
    return RoundsCase(base, tuple(items), distinct, having, order, limit)


def smaller_rounds(drawn: RoundsCase) -> Iterator[RoundsCase]:
    """The same with a part less, as the engine takes it."""
    found = [replace(drawn, base=base) for base in strategies.smaller_spaseq(drawn.base)]
    found += [replace(drawn, items=drawn.items[:i] + drawn.items[i + 1 :])
              for i in range(len(drawn.items) if len(drawn.items) > 1 else 0)]  # fmt: skip
    found += [replace(drawn, having=None), replace(drawn, order=None), replace(drawn, limit=None)]
    legal = (one for one in found if one != drawn and (one.order is None or one.items[0][0] == "COUNT"))
    yield from filter(_is_over_rounds, legal)
