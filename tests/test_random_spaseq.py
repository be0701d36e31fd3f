"""Random SPAseq queries over random streamsets: the engine, whole and in random batches, against the definitions."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import harness
from tests.support.strategies import (
    BACKGROUND,
    SpaseqCase,
    interesting,
    long_spaseq_case,
    shrink_spaseq,
    spaseq_case,
    spaseq_toml,
)

SAMPLE = 200
FULL = int(os.environ.get("SPASEQ_RANDOM", "20000"))
FIRST = int(os.environ.get("SPASEQ_RANDOM_FIRST", SAMPLE))
"""The first seed of the full suite, to draw others."""


def _answers(case: SpaseqCase) -> int:
    return len(harness.spaseq_oracle(case.text, case.graphs, BACKGROUND))


def _difference(case: SpaseqCase, seed: int, folder: Path) -> str:
    """What the engine answers too much and too little, empty if it agrees; an exception is a difference too."""
    expected = Counter(harness.spaseq_oracle(case.text, case.graphs, BACKGROUND))
    streams, kb = harness.write_streams(case.graphs, folder), harness.write_knowledge(BACKGROUND, folder)
    try:
        whole = Counter(harness.spaseq_whole(case.text, streams, kb))
        cut = Counter(harness.spaseq_batches(case.text, streams, kb, random.Random(seed)))
    except Exception as error:  # whatever the engine raises belongs into the report, with the case
        return f"{type(error).__name__}: {error}"
    lines = []
    for name, found in (("whole", whole), ("in batches", cut)):
        if found != expected:
            lines.append(f"{name}: missing {list(expected - found)}, surplus {list(found - expected)}")
    return "\n".join(lines)


def _check(seed: int, folder: Path, draw: Callable[[random.Random], SpaseqCase] = spaseq_case) -> None:
    case = interesting(draw, _answers, random.Random(seed))
    first = _difference(case, seed, folder)
    if not first:
        return

    def fails(candidate: SpaseqCase) -> bool:
        """As the case does: what is left of it must still be a query."""
        found = _difference(candidate, seed, folder)
        return bool(found) and found.startswith("Query") == first.startswith("Query")

    small = shrink_spaseq(case, fails)
    report = _difference(small, seed, folder)
    pytest.fail(f"seed {seed}\n{report}\n\n{spaseq_toml(small, f'random {seed}')}", pytrace=False)


@pytest.mark.parametrize("block", range(10))
def test_sample(block: int, tmp_path: Path) -> None:
    for seed in range(block * SAMPLE // 10, (block + 1) * SAMPLE // 10):
        _check(seed, tmp_path)


@pytest.mark.parametrize("block", range(2))
def test_sample_of_long_streams(block: int, tmp_path: Path) -> None:
    for seed in range(block * 6, (block + 1) * 6):
        _check(seed, tmp_path, long_spaseq_case)


@pytest.mark.random
@pytest.mark.parametrize("block", range(20))
def test_full_of_long_streams(block: int, tmp_path: Path) -> None:
    """A fiftieth of SPASEQ_RANDOM."""
    for seed in range(FIRST + block * FULL // 1000, FIRST + (block + 1) * FULL // 1000):
        _check(seed, tmp_path, long_spaseq_case)


@pytest.mark.random
@pytest.mark.parametrize("block", range(100))
def test_full(block: int, tmp_path: Path) -> None:
    """SPASEQ_RANDOM (20,000 by default) queries."""
    for seed in range(FIRST + block * FULL // 100, FIRST + (block + 1) * FULL // 100):
        _check(seed, tmp_path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_on_spark(seed: int, tmp_path: Path, spark_session: Any) -> None:
    """The same answers from Spark, which cuts the streams into parts by window and by key."""
    case = interesting(spaseq_case, _answers, random.Random(seed))
    expected = Counter(harness.spaseq_oracle(case.text, case.graphs, BACKGROUND))
    kb = harness.write_knowledge(BACKGROUND, tmp_path)
    found = Counter(harness.spaseq_spark(case.text, spark_session, case.graphs, tmp_path, kb))
    assert found == expected, spaseq_toml(case, f"random {seed}")
