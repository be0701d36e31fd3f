"""Random CEQL queries on random streams: the engine, whole and in random batches, against the definitions."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support import harness, oracle, oracle_ceql_text
from tests.support.strategies import CeqlCase, ceql_case, ceql_toml, interesting, long_ceql_case, shrink_ceql

SAMPLE = 300
Evaluate = Callable[[oracle.Query, harness.Events], list[oracle.Match]]
FULL = int(os.environ.get("SPASEQ_RANDOM", "10000"))


def _matches(case: CeqlCase) -> int:
    return len(oracle.evaluate(case.query, case.stream))


def _long_matches(case: CeqlCase) -> int:
    return len(oracle.evaluate_long(case.query, case.stream))


def _difference(case: CeqlCase, seed: int, evaluate: Evaluate = oracle.evaluate) -> str:
    """What the engine reports too much and too little, empty if it agrees; an exception is a difference too."""
    expected = evaluate(replace(case.query, limit=None), case.stream)
    rng = random.Random(seed)
    batches = list(harness.cut(case.stream, rng, 1 + len(case.events) // 20))
    try:
        whole = harness.ceql_whole(case.text, case.stream)
        cut = harness.ceql_batches(case.text, batches, rng)
    except Exception as error:  # whatever the engine raises belongs into the report, with the case
        return f"{type(error).__name__}: {error}"
    lines = []
    for name, found in (("whole", whole), (f"in batches of {[len(b) for b in batches]}", cut)):
        wrong = oracle.compare_choice(case.query, expected, found)
        if wrong:
            lines.append(f"{name}: missing {wrong.missing}, surplus {wrong.surplus}")
    return "\n".join(lines)


def _check(seed: int) -> None:
    _compare(interesting(ceql_case, _matches, random.Random(seed)), seed, oracle.evaluate)


def _check_long(seed: int) -> None:
    _compare(interesting(long_ceql_case, _long_matches, random.Random(seed)), seed, oracle.evaluate_long)


def _compare(case: CeqlCase, seed: int, evaluate: Evaluate) -> None:
    if not _difference(case, seed, evaluate):
        return
    small = shrink_ceql(case, lambda c: bool(_difference(c, seed, evaluate)))
    report = _difference(small, seed, evaluate)
    matches = [[s, e, list(d)] for s, e, d in evaluate(small.query, small.stream)]
    toml = f"{ceql_toml(small, f'random {seed}')}matches = {matches}\n"
    pytest.fail(f"seed {seed}\n{report}\n\n{toml}", pytrace=False)


def test_printed_formulas_are_read_back() -> None:
    for seed in range(SAMPLE):
        case = ceql_case(random.Random(seed))
        assert oracle_ceql_text.read(case.text) == case.query, case.text


@pytest.mark.parametrize("block", range(10))
def test_sample(block: int) -> None:
    for seed in range(block * SAMPLE // 10, (block + 1) * SAMPLE // 10):
        _check(seed)


def test_windows_by_themselves_are_the_whole() -> None:
    """The naive evaluator for long streams agrees with the plain one."""
    for seed in range(SAMPLE):
        case = interesting(ceql_case, _matches, random.Random(seed))
        assert oracle.evaluate_long(case.query, case.stream) == oracle.evaluate(case.query, case.stream), case.text


@pytest.mark.parametrize("block", range(5))
def test_sample_of_long_streams(block: int) -> None:
    for seed in range(block * 5, (block + 1) * 5):
        _check_long(seed)


@pytest.mark.random
@pytest.mark.parametrize("block", range(100))
def test_full_of_long_streams(block: int) -> None:
    """A tenth of SPASEQ_RANDOM."""
    for seed in range(SAMPLE + block * FULL // 1000, SAMPLE + (block + 1) * FULL // 1000):
        _check_long(seed)


@pytest.mark.random
@pytest.mark.parametrize("block", range(100))
def test_full(block: int) -> None:
    """SPASEQ_RANDOM (10,000 by default) queries."""
    for seed in range(SAMPLE + block * FULL // 100, SAMPLE + (block + 1) * FULL // 100):
        _check(seed)
