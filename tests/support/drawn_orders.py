"""Random CEQL queries with order conditions between events, with streams for them, and pools that begin early."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from spaseq.core.engine.runs import coded_automaton, pooled
from tests.support import drawn_aggregates, oracle, oracle_ceql_text, strategies
from tests.support.drawn_aggregates import AggregatesCase
from tests.support.strategies import CeqlCase

SYMBOLS = ("<", "<=", ">", ">=", "!=")
ABC, ABCD = "A AS a ; B AS b ; C AS c", "A AS a ; B AS b ; C AS c ; D AS d"

PATTERNS = (
    ("A AS a ; B AS b", "b.p {} a.p"),
    *((ABC, condition) for condition in (
        "b.p {} a.p", "c.p {} a.p", "b.p {} a.p AND c.p {} b.p", "b.k = a.k AND b.p {} a.p",
        "b.p {} a.p AND b.k {} a.k", "b.p {} a.p AND b.k {} a.k AND b.r {} a.r",
        "b.p {} a.p AND b.k {} a.k AND b.r = a.r", "b.p {} a.p * 0.5 AND b.p {} a.p * 1.5",
        "b.p {} a.p AND b.p {} a.p * 2 AND a.k {} b.k", "b.k {} a.k AND b.k {} a.r",
        "b.p {} a.p + a.k AND b.p {} a.p - a.r",
    )),
    (ABCD, "b.p {} a.p AND c.p {} b.p AND d.p {} c.p"),
    ("A AS a ; B AS b : C AS c", "b.p {} a.p"),
    ("AND(A AS a, B AS b) ; C AS c", "b.p {} a.p AND c.p {} b.p"),
    ("A AS a ; (B OR C) AS b ; D AS d", "b.p {} a.p"),
    ("A AS a ; (B OR C) AS b ; D AS d", "b.p {} a.p AND b.k {} a.k AND d.r {} b.r"),
    ("A AS a ; B AS b ; A AS c ; C AS d", "b.p {} a.p AND d.p {} c.p"),
    ("(A AS a ; NOT C ; B AS b) OR (A AS a ; D AS b)", "b.p {} a.p"),
    ("A:+ AS a ; B AS b ; C", "b.p {} LAST(a.p)"),
    ("A AS a ; (B AS b)+ ; C AS c", "b.p {} a.p"),
    ("(A AS a ; B AS b FILTER b.p {} a.p)+ ; C AS c", ""),
    ("A AS a ; (B AS b FILTER b.p {} PREV(b.p))+ ; C AS c", "c.k {} a.k"),
    ("A AS a ; (B AS b FILTER b.p {} PREV(b.p))+ ; C AS c", "c.p {} LAST(b.p)"),
    ("A ; (B AS b FILTER b.p {} PREV(b.p))+ ; (C AS c FILTER c.p {} PREV(c.p))+ ; D", ""),
    ("(A AS a FILTER a.p {} PREV(a.p) AND a.k {} PREV(a.k))+ ; B", ""),
    ("A AS a ; NOT D ; B AS b", "b.p {} a.p * 1.5"),
    ("A AS a ; NOT (B AS b FILTER b.p {} a.p) ; C AS c", ""),
    ("A AS a ; NOT (B AS b FILTER b.k = a.k) ; C AS c", "c.r = a.r AND c.p {} a.p"),
    ("A AS a ; NOT (B AS b FILTER b.k = a.k) ; C AS c ; D AS d", "c.p {} a.p"),
    ("A AS a ; NOT (B AS b FILTER b.p {} a.p AND b.k {} a.k) ; (C OR B) AS c ; D AS d", "c.p {} a.p"),
    ("A AS a ; NOT (D AS x FILTER x.p {} a.p) ; B AS b ; NOT (D AS y FILTER y.p {} b.p) ; C AS c", "b.p {} a.p"),
    ("A AS a ; NOT (D AS x FILTER x.p {} a.p) ; (B AS b FILTER b.p {} a.p)+ ; C AS c", ""),
)  # fmt: skip
"""Patterns and their conditions; each {} is for a symbol."""
KEPT = (
    *((ABC, condition) for condition in (
        "c.p {} a.p", "b.p {} a.p AND c.p {} a.p", "b.p {} a.p AND c.p {} a.p * 1.5", "c.p {} a.p AND c.p {} b.p",
        "b.p {} a.p AND c.p {} b.p AND c.p {} a.p", "c.p {} a.p AND c.k {} a.k", "b.k = a.k AND c.p {} a.p",
        "b.k {} a.k AND c.p {} a.p AND c.r {} a.r", "b.p {} a.p AND c.k = a.k AND c.p {} a.p",
        "b.k = a.k AND c.k = a.k AND c.p {} a.p", "b.k = a.k AND c.k = a.k AND b.p {} a.p AND c.p {} a.p",
        "b.k = a.k AND c.k = b.k AND c.p {} a.p", "b.r = a.r AND c.k = a.k AND c.r = a.r AND c.p {} a.p",
    )),
    *((f"{ABC} ; NOT D", condition) for condition in ("c.p {} a.p", "b.p {} a.p AND c.p {} a.p")),
    ("(A OR B) AS a ; (B OR C) AS b ; (C OR A) AS c", "b.k = a.k AND c.k = a.k AND c.p {} a.p"),
    ("A AS a ; (B AS b FILTER b.k = a.k)+ ; C AS c", "c.k = a.k AND c.p {} a.p"),
    *((ABCD, condition) for condition in (
        "d.p {} a.p", "b.p {} a.p AND d.p {} a.p", "c.p {} b.p AND d.p {} a.p", "b.p {} a.p AND d.k {} a.k",
        "b.p {} a.p AND c.k {} a.k AND d.p {} a.p", "c.p {} a.p AND d.k {} b.k",
    )),
    (f"{ABCD} ; C AS e", "d.p {} a.p AND e.p {} b.p"),
    (f"{ABCD} ; A AS e", "c.p {} a.p AND e.p {} a.p"),
    ("A AS a ; B AS b ; B AS c ; D AS d", "c.p {} a.p AND d.p {} a.p"),
    ("A AS a ; B AS b ; (C OR B) AS c", "c.p {} a.p"),
    ("A AS a ; B AS b ; (C OR B) AS c ; D AS d", "b.k {} a.k AND d.p {} a.p"),
    ("A AS a ; (B OR A) AS b ; C AS c", "c.p {} a.p"),
    ("A AS a ; (B OR A) AS b ; C AS c", "c.p {} a.p AND c.k {} a.k"),
    ("(A OR B) AS a ; (B OR C) AS b ; (C OR B) AS c ; D AS d", "c.p {} a.p AND d.p {} a.p"),
    ("A AS a ; (B AS b OR (C AS x ; B AS b)) ; D AS d", "d.p {} a.p"),
    ("A AS a ; (B AS b)? ; C AS c ; D AS d", "c.p {} a.p AND d.p {} a.p"),
    ("A AS a ; (B AS b)+ ; C AS c", "c.p {} a.p"),
    ("A AS a ; (B AS b)+ ; C AS c", "b.p {} a.p AND c.p {} a.p"),
    ("A AS a ; (B AS b FILTER b.p {} a.p)+ ; C AS c", "c.p {} a.p"),
    ("A AS a ; (B AS b FILTER b.p {} a.p)+ ; (C AS c FILTER c.k {} a.k)+ ; D AS d", "d.p {} a.p"),
    ("A AS a ; (B AS b ; C AS c)+ ; D AS d", "d.p {} a.p"),
    ("A AS a ; NOT D ; B AS b ; C AS c", "c.p {} a.p"),
    ("A AS a ; NOT (D AS x FILTER x.p {} a.p) ; B AS b ; C AS c", "c.p {} a.p"),
)  # fmt: skip
"""Patterns with values that are compared, kept and compared again: the pools of most have several steps."""
CHAINS = (
    *((ABC, condition) for condition in (
        "b.k = a.k AND c.k = b.k AND c.p {} a.p", "a.k = b.k AND c.k = a.k AND b.p {} a.p AND c.p {} a.p",
        "c.k = b.k AND b.k = a.k AND c.p {} b.p", "a.k = c.k AND b.k = c.k AND c.p {} a.p",
        "b.k = a.r AND c.k = a.r AND c.p {} a.p", "b.k = a.r AND c.r = b.k AND c.p {} a.p",
        "b.k = a.k AND c.k = b.k AND b.r = a.r AND c.r = a.r AND c.p {} a.p", "b.k = a.k AND c.k = b.k AND c.k {} a.k",
        "b.k = a.k AND c.k = b.k AND c.k = a.k AND c.p {} a.p", "b.k = a.k AND c.k != b.k AND c.p {} a.p",
    )),
    *((f"{ABC} ; NOT D", condition) for condition in ("b.k = a.k AND c.k = b.k AND c.p {} a.p",)),
    *((ABCD, condition) for condition in (
        "b.k = a.k AND c.k = b.k AND d.k = c.k AND d.p {} a.p", "a.k = b.k AND d.k = c.k AND c.k = b.k AND c.p {} a.p",
        "c.k = a.k AND d.k = b.k AND d.k = c.k AND d.p {} a.p", "c.k = b.k AND d.k = c.k AND d.p {} b.p",
        "b.k = a.k AND d.k = c.k AND d.p {} a.p",
    )),
    ("(A OR B) AS a ; (B OR C) AS b ; (C OR A) AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("(A OR B) AS a ; (B OR A) AS b ; (B OR A) AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("AND(A AS a, B AS b) ; C AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("A AS a ; AND(B AS b, C AS c)", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("A AS a ; AND(B AS b, (B OR C) AS c) ; D AS d", "b.k = a.k AND c.k = b.k AND d.k = c.k AND d.p {} a.p"),
    ("A AS a ; (B AS b ; C AS c OR C AS c) ; D AS d", "c.k = a.k AND d.k = c.k AND d.p {} a.p"),
    ("A AS a ; (B AS b)? ; C AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("(B AS x)? ; (A OR B) AS a ; (B OR C) AS b ; (C AS y)? ; D AS d", "b.k = a.k AND d.k = b.k AND d.p {} a.p"),
    ("(B AS x)* ; (A OR B) AS a ; (B OR C) AS b ; (C AS y)? ; (D OR C) AS d", "b.k = a.k AND d.k = b.k AND d.p {} a.p"),
    ("(A AS a ; B AS b ; C AS c)+", "b.k = a.k AND c.k = b.k"),
    ("(A AS a ; B AS b ; C AS c FILTER b.k = a.k AND c.k = b.k AND c.p {} a.p)+ ; D", ""),
    ("A AS a ; (B AS b ; C AS c FILTER b.k = a.k AND c.k = b.k)+ ; D AS d", "d.k = a.k AND d.p {} a.p"),
    ("A AS a ; (B AS b FILTER b.k = a.k)+ ; C AS c", "c.k = b.k AND c.p {} a.p"),
    ("A AS a ; (B AS b)+ ; C AS c", "c.k = b.k AND b.k = a.k AND c.p {} a.p"),
    ("(A AS a)+ ; B AS b ; C AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("A AS a ; B AS b ; NOT (D AS x FILTER x.k = b.k) ; C AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("A AS a ; B AS b ; NOT (D AS x FILTER x.k != b.k) ; C AS c", "b.k = a.k AND c.p {} a.p"),
    ("A AS a ; B AS b ; NOT (D AS x FILTER x.k = b.k AND x.p {} a.p) ; C AS c", "b.k = a.k AND c.k = b.k"),
    ("A AS a ; NOT (D FILTER D.k = a.k) ; B AS b ; NOT (A AS y FILTER y.k = b.k) ; C AS c", "b.k = a.k AND c.k = a.k"),
    ("A AS a -> B AS b -> C AS c", "b.k = a.k AND c.k = b.k AND c.p {} a.p"),
    ("A AS a -> B AS b -> C AS c", "a.k = c.k AND b.k = c.k"),
    ("A AS a ; B AS b -> C AS c ; D AS d", "b.k = a.k AND c.k = b.k AND d.k = c.k AND d.p {} a.p"),
    ("A AS a ; B AS b : C AS c ; D AS d", "b.k = a.k AND c.k = b.k AND d.k = c.k AND d.p {} a.p"),
    ("A AS a ; (B AS b FILTER b.k = PREV(b.k))+ ; C AS c", "c.k = b.k AND c.k = a.k AND c.p {} a.p"),
)  # fmt: skip
"""Patterns with equalities that follow from others, in any direction: one register serves for several."""
IDS: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2), (0, 1), (0, 1.0, 1, None), (0.0, -0.0, None, 1), (2**53, 2**53 + 1, 0),
    ("a", "b", None),
)  # fmt: skip
"""Values that are compared by `=`: of one kind each, and equal in several forms; a column of a table holds them all."""
VALUES: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2, 3), (0, 0, 0, 1, None), (-5.25, -0.5, 0.0, -0.0, 3.5, 1e300, -1e300, 0.1), (-2, None, 1, 2.5),
    (2**60, -(2**62), 2**53 + 1, 0), tuple(range(-50, 50)),
)  # fmt: skip
TEXTS = ("", "a", "ab", "b", None)
EXACT: tuple[tuple[Any, ...], ...] = (
    (0, 1, 2, 3), (0, 0, 0, 1, None), (-5.25, -0.5, 0.0, -0.0, 3.5), (-2, None, 1, 2.5), tuple(range(-50, 50)),
)  # fmt: skip
"""Values whose sums are the same in any order."""
SIZES = ("", "4 EVENTS", "9 EVENTS", "20 EVENTS", "5 SECONDS", "12 [t]")
"""Of windows."""


@contextmanager
def early_pools(least: int = 0) -> Iterator[None]:
    """Pools in any window, begun by an event that moves more than `least` configurations."""
    with (
        mock.patch.object(pooled, "FROM", least),
        mock.patch.object(coded_automaton, "SMALL", 0),
        mock.patch.object(coded_automaton, "SHORT", 0),
    ):
        yield


def pools_of(seed: int) -> AbstractContextManager[None]:
    """Pools from the first run on for two seeds of three, and midway, behind some configurations, for the third."""
    return early_pools(0 if seed % 3 else (1, 1, 2, 3)[seed // 3 % 4])


def draw(
    rng: random.Random, patterns: Sequence[tuple[str, str]] = PATTERNS,
    numbers: Sequence[tuple[Any, ...]] = VALUES, texts: float = 0.2, ids: Sequence[tuple[Any, ...]] = IDS[:1],
) -> tuple[str, list[dict[str, Any]]]:  # fmt: skip
    """A query with order conditions, and a stream for it. `texts`: how often values are texts in place of `numbers`.
    `ids`: of those that are compared by `=`, as a rule."""
    pattern, condition = rng.choice(patterns)
    pattern, condition = (re.sub(r"\{\}", lambda _: rng.choice(SYMBOLS), text) for text in (pattern, condition))
    is_text = rng.random() < texts and not re.search(r"p [*+-]", condition)
    values = TEXTS if is_text else rng.choice(numbers)
    size = rng.choice(SIZES)
    window = size and f" WITHIN {size}"
    partition = " PARTITION BY [g]" if rng.random() < 0.3 else ""
    consume = rng.choice(("", "", "", "", " CONSUME BY ANY", " CONSUME BY PARTITION" if partition else ""))
    strategy = rng.choice(("", "", "", "", "NEXT ", "LAST ", "MAX ")) if patterns is CHAINS else ""
    known = rng.choice(ids)
    known = tuple(rng.sample(known, 2)) if ids is IDS and rng.random() < 0.6 else known
    time, events = 0, []
    for _ in range(rng.randrange(10, 17 if re.search(r"[+*]", pattern) else rng.choice((28, 28, 50)))):
        time += rng.choice((0, 1, 1, 2))
        events.append({"type": rng.choice("AABBBCCD"), "p": rng.choice(values), "k": rng.choice(known),
                       "r": rng.choice((0, 1, 1, None) if known is IDS[0] else known), "g": rng.randrange(2),
                       "t": time, "time": time})  # fmt: skip
    condition = condition and f" FILTER {condition}"
    return f"SELECT {strategy}* WHERE ({pattern}){condition}{partition}{window}{consume}", events


def draw_with_matches(
    rng: random.Random, patterns: Sequence[tuple[str, str]] = PATTERNS
) -> tuple[str, list[dict[str, Any]]]:
    """As `draw`; as a rule there are matches."""
    return strategies.interesting(
        lambda rng: draw(rng, patterns),
        lambda drawn: len(oracle.evaluate(oracle_ceql_text.read(drawn[0]), drawn[1])),
        rng,
    )


def orders_case(rng: random.Random) -> CeqlCase:
    """A query with order conditions over a stream; in most of them, values are compared again. Some have a LIMIT."""
    patterns = rng.choice((PATTERNS, KEPT, CHAINS))
    case = _case(*draw(rng, patterns, ids=IDS if patterns is CHAINS else IDS[:1]))
    limit = rng.choice((1, 2, 3)) if case.query.consume == "NONE" and rng.random() < 0.15 else None
    return replace(case, query=replace(case.query, limit=limit))


def _case(text: str, events: list[dict[str, Any]]) -> CeqlCase:
    return CeqlCase(oracle_ceql_text.read(text), tuple(tuple(event.items()) for event in events))


def order_aggregates_case(rng: random.Random) -> AggregatesCase:
    """The same with aggregates over all matches of an event; as a rule, there are matches."""
    return strategies.interesting(_aggregates, lambda case: len(oracle.evaluate(case.base.query, case.stream)), rng)


def _aggregates(rng: random.Random) -> AggregatesCase:
    base = _case(*draw(rng, rng.choice((PATTERNS, KEPT)), EXACT, texts=0))
    names = [name for name in sorted(oracle.variables_of(base.query.formula)) if ">" not in name]
    columns = (drawn_aggregates.draw_column(rng, names, drawn_aggregates.PRICES) for _ in range(rng.choice((1, 2, 3))))
    return AggregatesCase(base, tuple(columns))
