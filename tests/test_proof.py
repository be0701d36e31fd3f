"""A share of the standing proof (`proof.py`) in every run, and the most of it in the slow one."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ceql
from tests.support import graph_patterns, harness, oracle, oracle_ceql_text, oracle_sparql, proof, roads, strategies

SHARE = {
    "patterns": 4,
    "ceql": 8,
    "steps": 8,
    "spaseq": 6,
    "spaseq after": 6,
    "groups": 6,
    "unordered": 6,
    "lasting": 6,
    "lookups": 4,
    "graph orders": 8,
    "lasting borders": 8,
    "long ceql": 4,
    "long spaseq": 4,
    "rounds": 4,
    "counts": 4,
    "totals": 4,
    "aggregates": 12,
    "orders": 24,
    "order aggregates": 16,
    "totals in steps": 4,
    "earlier": 6,
    "earlier steps": 4,
    "after": 8,
    "absences": 6,
    "chosen": 4,
    "ordered": 6,
    "ordered orders": 8,
    "repeated": 4,
}
"""Queries of each kind in every run."""
MORE = {"ceql": 40, "valuations": 32, "spaseq": 24}
"""Queries of each kind that go only on the roads of `_FEW`."""
_FEW = ("batch", "snapshot", "pushed alerts")
FULL = int(os.environ.get("SPASEQ_RANDOM", "2000")) // 5
BLOCKS = 50
FIRST = 100_000


def _agree(kind: str, seeds: range, *only: str) -> None:
    report = proof.check(kind, seeds, only)
    assert report.compared
    if report.different:
        pytest.fail("\n\n".join(report.different.values()), pytrace=False)


@pytest.mark.parametrize("block", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", sorted(SHARE))
def test_share(kind: str, block: int) -> None:
    size = SHARE[kind] // 2
    _agree(kind, range(block * size, (block + 1) * size))


@pytest.mark.parametrize("block", [0, *(pytest.param(b, marks=pytest.mark.slow) for b in (1, 2, 3))])
@pytest.mark.parametrize("kind", sorted(MORE))
def test_more(kind: str, block: int) -> None:
    size = MORE[kind] // 4
    _agree(kind, range(1_000 + block * size, 1_000 + (block + 1) * size), *_FEW)


@pytest.mark.random
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", sorted(proof.KINDS))
def test_full(kind: str, block: int) -> None:
    """A fifth of SPASEQ_RANDOM (2,000 by default) of each kind."""
    _agree(kind, range(FIRST + block * FULL // BLOCKS, FIRST + (block + 1) * FULL // BLOCKS))


@pytest.mark.random
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", sorted(MORE))
def test_full_of_more(kind: str, block: int) -> None:
    """As many as SPASEQ_RANDOM of each kind."""
    first, count = 200_000, 5 * FULL
    seeds = range(first + block * count // BLOCKS, first + (block + 1) * count // BLOCKS)
    _agree(kind, seeds, *_FEW)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("kind", ["after", "ceql", "spaseq", "rounds"])
def test_on_spark(kind: str, block: int, spark_session: Any) -> None:
    """The same answers from Spark, which cuts the streams into parts by window and by key, slices and micro-batches."""
    report = proof.check(kind, range(3 * block, 3 * block + 3), spark=spark_session)
    assert report.compared
    assert not report.different, "\n\n".join(report.different.values())


def test_windows_by_themselves_are_the_whole() -> None:
    """The naive evaluator for long streams agrees with the plain one."""
    for seed in range(300):
        case = proof.ceql_with_matches(random.Random(seed))
        assert oracle.evaluate_long(case.query, case.stream) == oracle.evaluate(case.query, case.stream), case.text


def test_valuations_are_told_apart_only_on_request() -> None:
    """The complex events under valuations are those without."""
    for seed in range(100):
        case = proof.ceql_with_matches(random.Random(seed))
        query = replace(case.query, limit=None, strategy="ALL" if case.query.strategy == "ANY" else case.query.strategy)
        if query.select is None:
            compiled = ceql.compile(strategies.CeqlCase(query, case.events).text)
            marked = {(m.start, m.end) for m in compiled.run(case.stream, valuations=True)}
            assert marked == {(m.start, m.end) for m in compiled.run(case.stream)}, compiled.text


@pytest.mark.parametrize(
    ("kind", "answers", "first"), [("valuations", "bindings", 1), ("long ceql", "matches", 1), ("orders", "matches", 2)]
)
def test_a_difference_in_ceql_is_a_case(
    kind: str, answers: str, first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a road that loses its last answer the difference is a case that can be read, with the right answers."""
    batch = next(road for road in roads.ROADS if (road.language, road.name) == ("ceql", "batch"))
    losing = roads.Road("ceql", "batch", lambda case, ride: batch.take(case, ride)[:-1])
    monkeypatch.setattr(roads, "ROADS", (losing,))
    (text, *_) = proof.check(kind, range(first, first + 2)).different.values()  # that of seed 0 takes 15 s
    (tmp_path / "found.toml").write_text(text)
    (case,) = harness.load(tmp_path / "found.toml")
    case = replace(case, valuations=kind == "valuations")
    found = roads.given(case, batch, roads.Ride(random.Random(0), tmp_path))
    assert getattr(case, answers) and found == roads.expected(case, batch)


def test_a_road_that_gives_other_answers_is_found_out_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof can fail: of a road that loses its last answer it says what is missing, as a case."""
    batch = next(road for road in roads.ROADS if (road.language, road.name) == ("spaseq", "batch"))
    losing = roads.Road("spaseq", "batch", lambda case, ride: batch.take(case, ride)[:-1])
    monkeypatch.setattr(roads, "ROADS", (losing,))
    report = proof.check("patterns", range(2))
    assert report.compared == {"batch": 2}
    (text, *_) = report.different.values()
    assert "missing 1" in text and "[[case.solutions]]" in text
    assert max(text.count(".0, '"), 0) <= 2  # events: those that do not matter are gone


def test_every_kind_of_graph_pattern_is_drawn() -> None:
    """So that the random patterns are of what they should be."""
    seen: set[str] = set()
    for seed in range(400):
        case = graph_patterns.pattern_case(random.Random(seed))
        seen |= set(_parts(case.group))
        seen |= {"an event without triples"} if frozenset() in case.events else set()
    assert seen >= {
        "triple", "group", "optional", "minus", "union", "graph", "filter", "bind", "values", "select",
        "exists", "not exists", "minus in optional", "minus in exists", "select in exists", "select in select",
        "an event without triples", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "DISTINCT", "VALUES",
        "COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "a distinct aggregate",
    }  # fmt: skip


def _parts(node: object, around: tuple[str, ...] = ()) -> list[str]:
    """What a pattern has, by name, and what of it stands in what."""
    found: list[str] = []
    if isinstance(node, oracle_sparql.Select):
        found += ["GROUP BY"] * (node.by is not None) + ["HAVING"] * bool(node.having) + ["ORDER BY"] * bool(node.order)
        found += ["LIMIT"] * (node.limit is not None) + ["DISTINCT"] * node.distinct
        found += ["VALUES"] * (node.values is not None)
        return found + _parts((node.group, node.shown, node.having, node.order), around)
    if not isinstance(node, tuple):
        return found
    if node and isinstance(node[0], str):
        kind = node[0]
        if kind == "aggregate":
            found += [node[1]] + ["a distinct aggregate"] * node[2]
        elif kind in ("not exists", "exists"):
            found.append(kind)
            kind = "exists"
        found += [kind, *(f"{kind} in {outer}" for outer in around)]
        around = (*around, kind) if kind in ("optional", "exists", "select", "graph", "minus") else around
    return found + [name for part in node for name in _parts(part, around)]


def test_conditions_between_names_of_one_event_are_drawn_and_printed_as_they_are() -> None:
    """W3, odd keys, the edges of time and several streams: what is printed reads back as what was drawn."""
    streams = edges = odd = 0
    for seed in range(200):
        case = strategies.wide_ceql_case(random.Random(seed))
        assert oracle_ceql_text.read(case.text) == case.query, case.text
        streams += bool(case.query.streams)
        edges += any(abs(dict(event).get("time", 0)) > 10**9 for event in case.events)
        odd += any(repr(dict(event).get("k")) == "-0.0" for event in case.events)
    assert min(streams, edges, odd) > 5
