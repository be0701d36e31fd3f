"""Random queries that count the solutions of their windows, and their meaning.

Written from `docs/semantics.md`, "Groups" and "The match of a solution", on the solutions of `oracle_spaseq`. Most have
sequences joined by `:`, whose solutions the engine counts without a list.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import spaseq
from spaseq.core.errors import SpaseqError
from tests.support import harness, oracle_spaseq, oracle_spaseq_text, strategies
from tests.support.harness import Case

_INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


@dataclass(frozen=True, slots=True)
class CountsCase:
    """`times`: the factor of a second column, 1 for none. `having`: the least number of solutions, exclusive."""

    base: strategies.SpaseqCase
    times: int = 1
    having: int | None = None

    @property
    def text(self) -> str:
        second = "" if self.times == 1 else f" (COUNT(*) * {self.times} AS ?more)"
        tail = "" if self.having is None else f"HAVING (COUNT(*) > {self.having})\n"
        return replace(self.base, select=f"(COUNT(*) AS ?count){second}").text + tail

    @property
    def case(self) -> Case:
        return Case("a random query", self.text, graphs=self.base.graphs, kb=strategies.BACKGROUND)


def counts_case(rng: random.Random) -> CountsCase:
    """One with a solution as a rule."""
    while True:
        base = rng.choice((strategies.spaseq_case, strategies.spaseq_case, strategies.long_spaseq_case))(rng)
        clauses = base.clauses.partition(" SLIDING")[0]
        if "EVENTS" in clauses:
            clauses = "WITHIN 9 SECONDS"
        names = [name for name, _ in base.gpms]
        sequence = base.sequence
        if rng.random() < 0.85:
            steps = [rng.choice(names) for _ in range(rng.choice((1, 2, 2, 3, 3, 4)))]
            if len(names) > 1 and rng.random() < 0.1:
                steps[0] = " & ".join(rng.sample(names, 2))
            sequence, clauses = " : ".join(steps), clauses.partition("PARTITION")[0].strip()
            if rng.random() < 0.6:  # FILTERs between GPMs have the solutions listed
                base = replace(base, gpms=tuple(_alone(name, body) for name, body in base.gpms))
        base = replace(base, sequence=sequence, clauses=clauses, select="*")
        drawn = CountsCase(base, rng.choice((1, 1, 2)), rng.choice((None, None, None, 0, 1, 3)))
        if not _is_taken(drawn):
            continue
        try:
            if sum(_number(row) for row in answers(drawn)) or rng.random() < 1 / 20:
                return drawn
        except strategies.TooBig:
            continue


def smaller_counts(drawn: CountsCase) -> Iterator[CountsCase]:
    """The same with a part less, as the engine takes it."""
    found = [replace(drawn, base=replace(base, select="*")) for base in strategies.smaller_spaseq(drawn.base)]
    found += [replace(drawn, times=1), replace(drawn, having=None)]
    yield from (one for one in found if one != drawn and _is_taken(one))


def answers(drawn: CountsCase) -> Counter[Any]:
    """By definition: of each window with an instant the number of different pairs of an end and a mapping."""
    query = oracle_spaseq_text.read(drawn.base.text)
    streams, known = harness.streamset(drawn.base.graphs), harness.knowledge(strategies.BACKGROUND)
    found = oracle_spaseq.evaluate(query, streams, known)

    def window(time: int) -> int:
        return 0 if query.window is None else int((time - query.origin) // query.window)

    rows = Counter[Any]()
    instants = sorted({time for events in streams.values() for time, _ in events})
    for number, own in groupby(instants, window):
        last = list(own)[-1]
        matches = sorted((f, at, e, m) for f, e, at, m in found if window(e) == number)
        standing: dict[Any, Any] = {}
        for _, at, end, mapping in matches:
            standing.setdefault((end, mapping), at)
        if drawn.having is None or len(standing) > drawn.having:
            taken = tuple(sorted({time for at in standing.values() for time in at})) or (last,)
            row = {"count": len(standing)} | ({} if drawn.times == 1 else {"more": len(standing) * drawn.times})
            rows[taken[0], taken[-1], taken, frozenset((n, f'"{k}"{_INTEGER}') for n, k in row.items())] += 1
    return rows


def _number(row: Any) -> int:
    return int(dict(row[3])["count"].split('"')[1])


def _alone(name: str, body: str) -> tuple[str, str]:
    """A GPM without its FILTERs."""
    start = body.find("FILTER")
    return (name, body) if start < 0 else (name, body[:start].rstrip() + " }" * body.count("{", 0, start))


def _is_taken(drawn: CountsCase) -> bool:
    try:
        spaseq.compile(drawn.text)
        oracle_spaseq_text.read(drawn.base.text)
    except SpaseqError:
        return False
    return True
