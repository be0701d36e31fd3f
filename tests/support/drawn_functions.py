"""Random expressions with the functions of CEQL, as texts, and random events for them."""

from __future__ import annotations

import datetime
import math
import random
import re
from typing import Any

_TEXTS = ("", "a", "ab", "Ab", "b", " a ", "éÉ", "a1b22", "İs", "ß", "10.1.2.3", "2026-01-05", "3", "-2.5", "true")
_NUMBERS = (
    0,
    1,
    -1,
    3,
    7,
    -8,
    2**53 + 1,
    -(2**63),
    2**63 - 1,
    0.5,
    -0.5,
    2.5,
    -1.5,
    0.0,
    -0.0,
    1e300,
    math.nan,
    12.125,
)
_START = datetime.datetime(2026, 3, 28, 22, 30, 15, 250000)

CHOICES = ("COALESCE({k}, {k})", "COALESCE({k}, {k}, {k})", "NULLIF({k}, {k})",
           "CASE WHEN {c} THEN {k} END", "CASE WHEN {c} THEN {k} WHEN {c} THEN {k} ELSE {k} END",
           "CASE {n} WHEN {n} THEN {k} ELSE {k} END")  # fmt: skip
FORMS: dict[str, tuple[str, ...]] = {
    "n": ("({n} + {n})", "({n} * {n})", "-({n})", "({n} % {n})", "LEAST({n}, {n})", "GREATEST({n}, {n}, {n})",
          "ABS({n})", "ROUND({n})", "ROUND({n}, 1)", "ROUND({n}, -1)", "ROUND({n}, j)", "FLOOR({n})", "CEIL({n})",
          "MOD({n}, {n})", "POWER({n}, {n})", "SQRT({n})", "LN({n})", "EXP({n})", "SIGN({n})",
          "LENGTH({t})", "POSITION({t}, {t})"),
    "t": ("LEAST({t}, {t})", "LOWER({t})", "UPPER({t})", "TRIM({t})", "LTRIM({t}, {t})", "RTRIM({t}, 'a ')",
          "SUBSTRING({t}, 2)", "SUBSTRING({t}, j, 2)", "SUBSTRING({t}, 0, 2)", "REPLACE({t}, {t}, {t})",
          "REPLACE({t}, 'a', 'xy')", "CONCAT({t}, {t})", "CONCAT({t}, '-', {t}, {t})",
          "REGEXP_EXTRACT({t}, '[a-z]+')", "REGEXP_EXTRACT({t}, '([a-z])([0-9])', 2)"),
    "b": ("CONTAINS({t}, {t})", "STARTSWITH({t}, {t})", "ENDSWITH({t}, 'b')", "CONTAINS({t}, 'a')"),
    "c": ("{n} < {n}", "{n} = {n}", "{t} = {t}", "{t} < {t}", "{b} = {b}", "NOT ({c})", "({c} AND {c})", "({c} OR {c})",
          "{n} IS NULL", "{t} IS NOT NULL", "{b} IS NULL", "{n} BETWEEN {n} AND {n}", "{n} NOT BETWEEN {n} AND {n}",
          "{t} LIKE 'a.*'", "{t} ILIKE 'A.*'", "STARTSWITH({t}, 'a')", "CONTAINS({t}, {t})",
          "{t} IN {'a', 'b'}", "{n} IN {1, 2.5}"),
}  # fmt: skip
"""By kind of the result (a number, a text, a truth value, a condition), forms with kinds of parts in braces."""
LEAVES: dict[str, tuple[str, ...]] = {
    "n": ("i", "j", "f", "m", "1", "2.5", "-3", "missing"),
    "t": ("t", "u", "'a'", "'Ab'", "missing"),
    "b": ("b", "p", "TRUE"),
    "c": ("i > 1", "t = 'a'"),
}


def expression(kind: str, random: random.Random, depth: int, variables: tuple[str, ...] = ()) -> str:
    """The text of an expression of a kind, forms up to `depth` in each other. Its attributes are those of the event at
    hand, or of `variables`."""
    if depth == 0 or (kind != "c" and random.random() < 0.2):
        leaf = random.choice(LEAVES[kind])
        return re.sub(r"^[a-z]", rf"{random.choice(variables)}.\g<0>", leaf) if variables else leaf
    forms = FORMS[kind] + (CHOICES if kind != "c" else ())
    text = random.choice(forms).replace("{k}", "{" + kind + "}")
    if variables:
        text = re.sub(r"\bj\b", f"{random.choice(variables)}.j", text)
    while any(part in text for part in ("{n}", "{t}", "{b}", "{c}", "{d}", "{s}", "{w}", "{l}")):
        place = min((text.find("{" + k + "}"), k) for k in "ntbcdswl" if "{" + k + "}" in text)
        at, part = place
        text = text[:at] + expression(part, random, depth - 1, variables) + text[at + 3 :]
    return text


def event(random: random.Random, mixes: bool) -> dict[str, Any]:
    """An event with attributes of all kinds, some missing; with `mixes`, `m` and `x` have values of several."""
    found: dict[str, Any] = {
        "i": random.choice([n for n in _NUMBERS if isinstance(n, int)]),
        "j": random.choice((0, 1, 2, 3, -4)),
        "f": random.choice([n for n in _NUMBERS if isinstance(n, float)]),
        "m": random.choice(_NUMBERS),
        "t": random.choice(_TEXTS),
        "u": random.choice(("a", "ab", "Ab", "")),
        "b": random.random() < 0.5,
        "p": random.random() < 0.5,
        "at": _START + datetime.timedelta(minutes=random.randrange(0, 600_000)),
        "to": _START + datetime.timedelta(seconds=random.randrange(-10_000, 10_000)),
        "l": [float(random.randrange(4)) for _ in range(random.randrange(4))],
    }
    if mixes:
        found["t"] = random.choice((found["t"], found["j"], found["b"]))
    return {name: value for name, value in found.items() if random.random() < 0.85}
