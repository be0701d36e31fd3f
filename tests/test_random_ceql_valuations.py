"""Random CEQL queries: the valuations of the engine, whole and in random batches, against the definitions."""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest

from tests.support import harness, oracle
from tests.support.strategies import CeqlCase, ceql_case, interesting

SAMPLE = 200
FULL = int(os.environ.get("SPASEQ_RANDOM", "10000"))


def _draw(seed: int) -> CeqlCase:
    rng = random.Random(seed)
    return interesting(ceql_case, lambda case: len(oracle.evaluate(case.query, case.stream)), rng)


def _check(seed: int) -> None:
    case = _draw(seed)
    batches = list(harness.cut(case.stream, random.Random(seed), 1 + len(case.events) // 20))
    everything = harness.ceql_bindings_by_definition(case.text, case.stream)
    whole = harness.ceql_bindings_whole(case.text, case.stream)
    cut = harness.ceql_bindings_batches(case.text, batches, random.Random(seed))
    for name, found in (("whole", whole), (f"in batches of {[len(b) for b in batches]}", cut)):
        if case.query.strategy == "ANY" or case.query.limit is not None:
            problem = _wrong_choice(case.query, everything, found)
        else:
            problem = "" if found == everything else f"expected {everything}, found {found}"
        assert not problem, f"seed {seed}, {name}: {problem}\n{case.text}\n{case.stream}"


def _wrong_choice(query: oracle.Query, everything: harness.Bindings, found: harness.Bindings) -> str:
    """What is wrong where not all are reported: LIMIT and ANY count valuations, most recent starts first."""
    most = 1 if query.strategy == "ANY" else query.limit
    if any(found.count(match) > 1 or match not in everything for match in found):
        return f"{found} are not all among {everything}"
    for end in {m[1] for m in everything}:
        starts = sorted((m[0] for m in everything if m[1] == end), reverse=True)[:most]
        reported = sorted((m[0] for m in found if m[1] == end), reverse=True)
        if len(reported) != len(starts) or (query.strategy != "ANY" and reported != starts):
            return f"of those that end at {end}, {reported} begin the reported and {starts} were to be"
    return ""


@pytest.mark.parametrize("block", range(10))
def test_sample(block: int) -> None:
    for seed in range(block * SAMPLE // 10, (block + 1) * SAMPLE // 10):
        _check(seed)


@pytest.mark.random
@pytest.mark.parametrize("block", range(100))
def test_full(block: int) -> None:
    """A tenth of SPASEQ_RANDOM queries."""
    for seed in range(SAMPLE + block * FULL // 1000, SAMPLE + (block + 1) * FULL // 1000):
        _check(seed)


def test_valuations_are_told_apart_only_on_request() -> None:
    """The complex events under valuations are those without."""
    for seed in range(SAMPLE // 2):
        case = _draw(seed)
        query = replace(case.query, limit=None, strategy="ALL" if case.query.strategy == "ANY" else case.query.strategy)
        text = CeqlCase(query, case.events).text
        bound = harness.ceql_bindings_whole(text, case.stream)
        if query.select is None:
            marked = {(s, e) for s, e, _ in bound}
            assert marked == {(s, e) for s, e, _ in harness.ceql_whole(text, case.stream)}, text
