"""Random queries: text, tree, calls of the builder, and text again are one, and so are the matches. By itself:

SPASEQ_RANDOM=10000 python -m pytest -m random tests/ceql/test_builder_random.py
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest

import ceql
from ceql.semantics.check import event_types
from ceql.syntax.parse import parse
from ceql.syntax.printer import print_formula
from tests.support import drawn_functions, harness
from tests.support.built import NotOffered, build, plain
from tests.support.drawn_earlier import earlier_case, earlier_steps_case
from tests.support.drawn_steps import steps_case
from tests.support.drawn_totals import steps_with_totals_case, totals_case
from tests.support.sizes import share, some
from tests.support.strategies import (
    CeqlCase,
    absence_case,
    after_case,
    border_case,
    ceql_case,
    ending_case,
    wide_ceql_case,
)

COUNT = int(os.environ.get("SPASEQ_RANDOM", 10_000))
KINDS: tuple[Callable[[random.Random], CeqlCase], ...] = (
    ceql_case, absence_case, border_case, ending_case, earlier_case, earlier_steps_case, steps_case, totals_case,
    steps_with_totals_case,
)  # fmt: skip
SLOW = (after_case, wide_ceql_case)
"""These draw until the query has matches."""
QUERIES = [case.query for case in harness.load_all() if not case.is_spaseq]


def _with_columns(case: CeqlCase, rng: random.Random) -> str:
    """The query of a case with computed columns, or with one more condition, of functions of all kinds."""
    tree = parse(case.text)
    names = tuple(dict.fromkeys(node.name for node in event_types(tree.where)))
    formula = print_formula(tree.where)
    if rng.random() < 0.5:
        columns = (drawn_functions.expression(rng.choice("ntbdsc"), rng, 2, names) for _ in range(rng.randint(1, 3)))
        listed = ", ".join(f"{column} AS c{place}" for place, column in enumerate(columns))
        return f"SELECT {listed} WHERE {formula} PARTITION BY [k]"
    more = drawn_functions.expression("c", rng, 3, (rng.choice(names),))
    return f"SELECT * WHERE ({formula}) FILTER {more}"


def _one(text: str, outcomes: Counter[str]) -> ceql.PatternQuery | None:
    """The query of the builder, once its text means what `text` does; None if the builder has no call for it."""
    tree = parse(text)
    assert parse(str(ceql.parse(text))) == tree, text
    assert parse(str(ceql.pattern(print_formula(tree.where)))).where == tree.where
    try:
        query = build(tree)
    except NotOffered as why:
        outcomes[str(why).partition(":")[0]] += 1
        return None
    outcomes["built"] += 1
    assert parse(str(query)) == plain(tree), f"{text}\n{query}"
    assert query.tree == plain(tree)
    assert str(ceql.parse(str(query))) == str(query)
    return query


def _matches(query: str | ceql.PatternQuery, case: CeqlCase) -> Counter[tuple[int, int, tuple[int, ...]]]:
    streams = harness.streams_of(case.stream)
    given = {"events": case.stream} if streams is None else {"streams": streams}
    return Counter((m.start, m.end, m.positions) for m in ceql.compile(query).run(**given))


def _agrees(count: int, seed: int, kinds: tuple[Callable[[random.Random], CeqlCase], ...]) -> None:
    rng, outcomes = random.Random(seed), Counter[str]()
    for _ in range(count):
        case = rng.choice(kinds)(rng)
        _one(case.text if rng.random() < 0.6 else _with_columns(case, rng), outcomes)
    assert outcomes["built"] > 0.9 * count, outcomes


def _same_matches(count: int, seed: int, kinds: tuple[Callable[[random.Random], CeqlCase], ...]) -> None:
    rng, outcomes = random.Random(seed), Counter[str]()
    found = 0
    for _ in range(count):
        case = rng.choice(kinds)(rng)
        query = _one(case.text, outcomes)
        if query is None:
            continue
        try:
            expected = _matches(case.text, case)
        except (ceql.UnsupportedFeature, ceql.BudgetExceeded):
            continue
        assert _matches(query, case) == expected, case.text
        found += bool(expected)
    assert found > count // 4


def test_the_queries_of_the_cases() -> None:
    outcomes = Counter[str]()
    for text in share(QUERIES):
        try:
            parse(text)
        except ceql.QuerySyntaxError:
            continue
        _one(text, outcomes)
    assert outcomes["built"] > 0.9 * outcomes.total(), outcomes


def test_random_queries() -> None:
    _agrees(some(150), 11, KINDS)


def test_matches_of_random_queries() -> None:
    _same_matches(10, 16, KINDS)


@pytest.mark.random
def test_many_random_queries() -> None:
    _agrees(COUNT, 13, KINDS + SLOW)


@pytest.mark.random
def test_matches_of_many_random_queries() -> None:
    _same_matches(COUNT // 20, 14, KINDS + SLOW)
