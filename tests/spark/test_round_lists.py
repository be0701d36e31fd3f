"""Lists of the rounds of a Kleene+, and aggregates over them: on Spark, in batches and in micro-batches, what they are
locally."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import spaseq
from tests.language.test_round_lists import HEADS, X, compiled
from tests.spark.test_micro_batches import _local, _rows
from tests.support.micro_batches import in_micro_batches

XSD = "http://www.w3.org/2001/XMLSchema#"
SEQUENCES = ["A; E+; C", "A, B+, C", "A; D+; C", "A, (B | D)+; C", "A; E+; F!", "D+; A; E+"]
WINDOWS = ["WITHIN 9 SECONDS", "WITHIN 7 SECONDS SLIDING", "WITHIN 12 SECONDS PARTITION BY (?c)"]


def _files(folder: Path, seed: str) -> dict[str, str]:
    """Two streams of N-Quads: each event tells of a thing, what it is of, and perhaps a price or a mood."""
    rng = random.Random(seed)
    for name in "ST":
        lines, at = [], 0
        for i in range(60):
            thing, graph = f"<{X}{name}{i}>", f"<{X}g{name}{i}>"
            lines.append(f"{thing} <{X}of> <{X}c{rng.randrange(2)}> {graph} .")
            if name == "S":
                lines.append(f'{thing} <{X}price> "{rng.randrange(7)}"^^<{XSD}integer> {graph} .')
            elif rng.random() < 0.6:
                lines.append(f'{thing} <{X}mood> "{rng.randrange(3)}"^^<{XSD}integer> {graph} .')
            at += rng.randrange(1, 3)
            lines.append(f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"^^<{XSD}integer> .')
        (folder / f"{name}.nq").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {name: str(folder / f"{name}.nq") for name in "ST"}


def _cases(window: str, sequence: str) -> list[spaseq.Query]:
    """The queries over these; clauses over all matches range over tumbling windows."""
    found = []
    for head, tail in HEADS:
        if "SLIDING" in window and ("SELECT DISTINCT" in head or tail):
            continue
        found.append(compiled(head, tail, window, sequence))
    return found


_PAIRS = [
    (sequence, window)
    for window in reversed(WINDOWS)
    for sequence in SEQUENCES
    if "PARTITION" not in window or not set("DF") & set(sequence)  # the second stream does not bind ?c
]
_MARKED = [(*_PAIRS[0], 5), *(pytest.param(*pair, 1, marks=pytest.mark.slow) for pair in _PAIRS)]
"""Each sequence within each window, with all queries, is slow; every fifth query of the first is in every run."""


@pytest.mark.parametrize(("sequence", "window", "step"), _MARKED)
def test_in_micro_batches(sequence: str, window: str, step: int, tmp_path: Path) -> None:
    streams = _files(tmp_path, sequence)
    for query in _cases(window, sequence)[::step]:
        given = {name: path for name, path in streams.items() if f"STREAM {name} " in query.text}
        expected = _local(query, given, {})
        found, _ = in_micro_batches(query, given, {}, 1, 2)
        assert _rows(found) == _rows(expected), query.text


@pytest.mark.spark
@pytest.mark.parametrize(("sequence", "window", "step"), _MARKED)
def test_in_a_batch(sequence: str, window: str, step: int, tmp_path: Path, spark: Any) -> None:
    streams, matches = _files(tmp_path, sequence), 0
    for query in _cases(window, sequence)[::step]:
        given = {name: path for name, path in streams.items() if f"STREAM {name} " in query.text}
        expected = query.run(given).to_arrow().to_pylist()
        found = spaseq.spark.collect(spaseq.spark.run(query, spark, given, {}, partitions=2)).to_pylist()
        if "ORDER BY" not in query.text:
            expected, found = sorted(expected, key=str), sorted(found, key=str)
        assert found == expected, query.text
        matches += len(expected)
    assert matches
