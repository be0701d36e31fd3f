"""Random CEQL queries with NOT … FOR EVERY at their end."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.support import strategies
from tests.support.oracle import Query, Within, variables_of
from tests.support.oracle_repeated import Again
from tests.support.strategies import CeqlCase


def repeated_case(rng: random.Random) -> CeqlCase:
    """A query of a part, perhaps with a NOT in front or within, over events with pauses between them."""
    formula = strategies.draw_formula(rng, rng.choice((0, 0, 1, 1, 2)))
    if rng.random() < 0.2:
        formula = strategies.draw_between_parts(rng)
    every = Again(Fraction(rng.choice((1, 1, 2, 3, 2.5, 0.5))) * 10**9)
    size = Fraction(rng.choice((1, 2, 3.5, 5, 8, 20))) * 10**9
    within = None if rng.random() < 0.4 else Within(size, "time")
    query = Query(formula, None, rng.choice(("ALL", "ALL", "NEXT", "LAST", "MAX", "STRICT")), within=within)
    query = replace(query, partition=rng.choice(((), (), (("k",),), (("k",), ("s",)))))
    query = replace(query, ending=strategies.draw_absent(rng, ()), patience=every)
    if rng.random() < 0.2:
        silence = every if rng.random() < 0.5 else None
        query = replace(
            query, beginning=strategies.draw_absent(rng, ()), silence=None if silence is None else Fraction(silence)
        )
    if rng.random() < 0.2:
        names = sorted(variables_of(formula))
        query = replace(query, select=frozenset(rng.sample(names, rng.randint(0, min(2, len(names))))))
    return CeqlCase(query, _with_pauses(rng, strategies.draw_stream(rng, timed=True)))


def _with_pauses(rng: random.Random, events: tuple[Any, ...]) -> tuple[Any, ...]:
    """The events, some of them later by seconds, with all that follow them."""
    found, late = [], 0.0
    for event in events:
        late += rng.choice((0, 0, 0, 1, 3, 6.5))
        found.append(tuple((name, value + late if name == "time" else value) for name, value in event))
    return tuple(found)
