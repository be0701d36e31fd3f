"""A NOT at the end with conditions on what came before, over random queries and streams, against the definition."""

from __future__ import annotations

import random

import pytest

import ceql
from ceql import UnsupportedFeature
from tests.support.oracle import Query, TooBig, evaluate, variables_of
from tests.support.strategies import CeqlCase, draw_absent, draw_formula, draw_stream, draw_window


def _case(rng: random.Random) -> CeqlCase:
    formula = draw_formula(rng, rng.choice((1, 1, 2, 2, 3)))
    ending = draw_absent(rng, sorted(variables_of(formula)))
    keys = rng.choice(((), (), (("k",),)))
    strategy = "STRICT" if rng.random() < 0.1 else "ALL"
    return CeqlCase(Query(formula, None, strategy, keys, draw_window(rng), (), "NONE", None, ending), draw_stream(rng))


@pytest.mark.parametrize("block", range(3))
def test_an_ending_that_is_related_to_the_match(block: int) -> None:
    compared = 0
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        rng = random.Random(seed)
        case = _case(rng)
        try:
            query = ceql.compile(case.text)
            expected = evaluate(case.query, case.stream)
        except (UnsupportedFeature, TooBig):
            continue
        found = [(m.start, m.end, m.positions) for m in query.run(case.stream)]
        assert sorted(found) == expected, case.text
        session, pushed = query.open(), []
        for event in case.stream:
            pushed += session.push([event])
            session = query.open(session.snapshot()) if rng.random() < 0.3 else session
        pushed += session.close()
        assert sorted((m.start, m.end, m.positions) for m in pushed) == expected, case.text
        compared += query.compiled.lowered.against is not None
    assert compared > 3
