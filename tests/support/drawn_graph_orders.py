"""Random SPAseq queries with order conditions between GPMs, over graphs that have one solution as a rule."""

from __future__ import annotations

import random

from tests.support.strategies import SpaseqCase

_SYMBOLS = ("<", "<=", ">", ">=", "!=", ">", "<")
_SHAPES = ("A : B", "A : B : C", "A : B : C", "A ; B : C", "A : B+ : C", "A : (B|C) : C", "A : B!, C", "A : B : C!")
_WINDOWS = (
    "", "WITHIN 9 SECONDS", "WITHIN 20 SECONDS", "WITHIN 6 SECONDS SLIDING", "WITHIN 12 SECONDS SLIDING",
    "WITHIN 3 EVENTS", "WITHIN 8 EVENTS SLIDING",
)  # fmt: skip
_VALUES = (
    ("1", "2", "3", "4"), ("1.5", "2", "1", "2.50", "7"), ('"a"', '"b"', '"ab"', '""'),
    ("true", "false"), ("1", '"a"', "true", "2.5"),
)  # fmt: skip
"""The last ones are of several kinds. The definition takes `!=` between these for an error, rdflib for true."""


def graph_orders_case(rng: random.Random) -> SpaseqCase:
    """A query over at most 24 graphs. In half of the streams, some late graphs have several solutions."""
    shape = rng.choice(_SHAPES)
    while True:
        gpms = tuple((name, _gpm(rng, name, shape)) for name in "ABC" if name in shape)
        if any("FILTER" in body for _, body in gpms):
            break
    window = rng.choice(_WINDOWS)
    if "!" in shape:
        window = rng.choice(_WINDOWS[1:3])
    unequal = any("!=" in body for _, body in gpms)
    values = rng.choice(_VALUES[:-1] if unequal else _VALUES)
    several_from = rng.choice((0, 6, 12, 99, 99, 99))
    time, events = 0.0, []
    for number in range(rng.randint(8, 24)):
        time += rng.choice((0.5, 1, 1, 2))
        count = rng.choice((1, 2, 2)) if number >= several_from else 1
        kind = rng.choice("aabbc")
        triples = tuple(f":s{number}_{i} :{kind} {rng.choice(values)} ; :k :k{rng.randrange(2)}" for i in range(count))
        events.append(("S", time, triples))
    select = rng.choice(("*", "*", "?pA", "?pA ?pB")) if "B!" not in shape else "*"
    return SpaseqCase(shape, gpms, window, select, tuple(events))


def _gpm(rng: random.Random, name: str, shape: str) -> str:
    """A GPM on S; its FILTERs compare it with GPMs before it."""
    same = " ; :k ?k" if rng.random() < 0.4 else f" ; :k ?k{name}"
    before = [other for other in "AB" if other < name and f"{other}!" not in shape and f"{other}+" not in shape]
    before = [other for other in before if not (other == "B" and "|" in shape)]
    filters = "".join(f" FILTER (?p{name} {rng.choice(_SYMBOLS)} ?p{other})" for other in before if rng.random() < 0.6)
    return f"ON S {{ ?s{name} :{name.lower()} ?p{name}{same} .{filters} }}"
