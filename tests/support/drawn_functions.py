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
    "n": ("CAST({b} AS NUMBER)", "CAST({n} AS INTEGER)", "TRY_CAST({t} AS NUMBER)", "TRY_CAST({t} AS INTEGER)",
          "LENGTH(l)", "LENGTH(w)", "({n} + {n})", "({n} * {n})", "-({n})", "({n} % {n})", "LEAST({n}, {n})",
          "GREATEST({n}, {n}, {n})", "ABS({n})", "ROUND({n})", "ROUND({n}, 1)", "ROUND({n}, -1)", "ROUND({n}, j)",
          "FLOOR({n})", "CEIL({n})", "MOD({n}, {n})", "POWER({n}, {n})", "SQRT({n})", "LN({n})", "EXP({n})",
          "SIGN({n})", "LENGTH({t})", "POSITION({t}, {t})", "{s} / {s}", "{s} / 1 HOUR", "YEAR({d})", "MONTH({d})",
          "DAY({d})", "HOUR({d})", "MINUTE({d})", "SECOND({d})", "WEEKDAY({d})", "HOUR({d}, 'Europe/Berlin')",
          "DAY({d}, 'America/New_York')", "MINUTE({d}, 'Asia/Kolkata')"),
    "d": ("TRY_CAST({t} AS TIMESTAMP)", "({d} + {s})", "({d} - {s})", "({s} + {d})", "DATE_TRUNC('hour', {d})",
          "DATE_TRUNC('day', {d})", "DATE_TRUNC('week', {d})", "DATE_TRUNC('month', {d})",
          "DATE_TRUNC('year', {d}, 'Europe/Berlin')", "DATE_TRUNC('day', {d}, 'Europe/Berlin')",
          "DATE_TRUNC('hour', {d}, 'Australia/Lord_Howe')", "DATE_TRUNC('quarter', {d})", "LEAST({d}, {d})",
          "TO_TIME(i, 'ms')", "TO_TIME(f)", "TO_TIME(m, 's')"),
    "s": ("({d} - {d})", "({s} + {s})", "({s} - {s})", "{s} * {n}", "{n} * {s}", "{s} / {n}", "-({s})",
          "GREATEST({s}, {s})"),
    "t": ("CAST({n} AS TEXT)", "CAST({b} AS TEXT)", "CAST({d} AS TEXT)", "LEAST({t}, {t})", "LOWER({t})",
          "UPPER({t})", "TRIM({t})", "LTRIM({t}, {t})", "RTRIM({t}, 'a ')", "SUBSTRING({t}, 2)",
          "SUBSTRING({t}, j, 2)", "SUBSTRING({t}, 0, 2)", "REPLACE({t}, {t}, {t})", "REPLACE({t}, 'a', 'xy')",
          "CONCAT({t}, {t})", "CONCAT({t}, '-', {t}, {t})", "REGEXP_EXTRACT({t}, '[a-z]+')",
          "REGEXP_EXTRACT({t}, '([a-z])([0-9])', 2)"),
    "b": ("CAST({n} AS BOOLEAN)", "TRY_CAST({t} AS BOOLEAN)", "CIDR_MATCH({t}, '10.0.0.0/8')", "CONTAINS(l, {n})",
          "CONTAINS(w, {t})",
          "CONTAINS({t}, {t})", "STARTSWITH({t}, {t})", "ENDSWITH({t}, 'b')", "CONTAINS({t}, 'a')"),
    "c": ("{n} < {n}", "{n} = {n}", "{t} = {t}", "{t} < {t}", "{b} = {b}", "NOT ({c})", "({c} AND {c})",
          "({c} OR {c})", "{n} IS NULL", "{t} IS NOT NULL", "{d} < {d}", "{d} - {d} > {s}", "{s} >= {s}",
          "{s} = {s}", "{d} IS NULL", "{d} BETWEEN {d} AND {d}", "{d} > '2026-07-01'", "{b} IS NULL",
          "{n} BETWEEN {n} AND {n}", "{n} NOT BETWEEN {n} AND {n}", "{t} LIKE 'a.*'", "{t} ILIKE 'A.*'", "{n} IN l",
          "{t} IN w",
          "{n} = ANY(l)", "{n} != ANY(l)", "{n} >= ANY(l)", "{n} != ALL(l)", "{n} < ALL(l)", "{n} = ALL(l)",
          "{t} = ANY(w)", "{t} <> ALL(w)", "{t} <= ANY(w)", "{t} > SOME(w)", "{t} < ALL(w)",
          "{d} > ANY(z)", "{d} <= ALL(z)",
          "CIDR_MATCH({t}, '10.0.0.0/8', 'fe80::/16')", "STARTSWITH({t}, 'a')", "CONTAINS({t}, {t})",
          "{t} IN {'a', 'b'}", "{n} IN {1, 2.5}"),
}  # fmt: skip
"""By kind of the result (a number, a text, a truth value, a condition), forms with kinds of parts in braces."""
LEAVES: dict[str, tuple[str, ...]] = {
    "n": ("i", "j", "f", "m", "1", "2.5", "-3", "missing", "NULL"),
    "t": ("t", "u", "'a'", "'Ab'", "missing", "NULL"),
    "b": ("b", "p", "TRUE", "NULL"),
    "d": ("at", "to", "missing", "NULL"),
    "s": ("1 HOUR", "90 DAYS 30 MINUTES", "(to - at)", "0 SECONDS", "NULL"),
    "c": ("i > 1", "t = 'a'"),
}


def expression(kind: str, random: random.Random, depth: int, variables: tuple[str, ...] = ()) -> str:
    """The text of an expression of a kind, forms up to `depth` in each other. Its attributes are those of the event at
    hand, or of `variables`."""
    if depth == 0 or (kind != "c" and random.random() < 0.2):
        return _name(random.choice(LEAVES[kind]), random, variables)
    forms = FORMS[kind] + (CHOICES if kind != "c" else ())
    text = random.choice(forms).replace("{k}", "{" + kind + "}")
    text = _name(text, random, variables)
    while any(part in text for part in ("{n}", "{t}", "{b}", "{c}", "{d}", "{s}", "{w}", "{l}")):
        place = min((text.find("{" + k + "}"), k) for k in "ntbcdswl" if "{" + k + "}" in text)
        at, part = place
        text = text[:at] + expression(part, random, depth - 1, variables) + text[at + 3 :]
    return text


def _name(text: str, random: random.Random, variables: tuple[str, ...]) -> str:
    """The text with a variable before each attribute; those stand outside of braces and quotes."""
    if not variables:
        return text
    return re.sub(r"'[^']*'|\{.\}|\b(?:[ijfmtubplwz]|at|to|missing)\b", lambda part: part[0] if part[0][0] in "'{"
                  else f"{random.choice(variables)}.{part[0]}", text)  # fmt: skip


def event(random: random.Random, mixes: bool) -> dict[str, Any]:
    """An event with attributes of all kinds, some missing; with `mixes`, `m` and `x` have values of several."""
    numbers = random.choice(((0, 1.0, 2, 3.0, 2.5, None), (1, 3, None, 2**53 + 1)))
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
        "l": [random.choice(numbers) for _ in range(random.randrange(4))],
        "w": [random.choice(("a", "ab", "Ab", "", "3", None)) for _ in range(random.randrange(4))],
        "z": [random.choice(("2026-03-28", "2026-07-01T10:00:00Z", None)) for _ in range(random.randrange(3))],
    }
    if mixes:
        found["t"] = random.choice((found["t"], found["j"], found["b"]))
    return {name: value for name, value in found.items() if random.random() < 0.85}
