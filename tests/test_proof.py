"""A share of the standing proof (`proof.py`) in every run, and the most of it in the slow one."""

from __future__ import annotations

import os
import random

import pytest

from tests.support import graph_patterns, oracle_sparql, proof, roads, strategies

SHARE = {"patterns": 24, "ceql": 60, "spaseq": 40}
"""Queries of each kind in every run."""
FULL = int(os.environ.get("SPASEQ_RANDOM", "10000")) // 5
BLOCKS = 50
FIRST = 100_000


def _agree(kind: str, seeds: range) -> None:
    report = proof.check(kind, seeds)
    if report.different:
        pytest.fail("\n\n".join(report.different.values()), pytrace=False)


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("kind", sorted(proof.KINDS))
def test_share(kind: str, block: int) -> None:
    size = SHARE[kind] // 4
    _agree(kind, range(block * size, (block + 1) * size))


@pytest.mark.random
@pytest.mark.parametrize("block", range(BLOCKS))
@pytest.mark.parametrize("kind", sorted(proof.KINDS))
def test_full(kind: str, block: int) -> None:
    """A fifth of SPASEQ_RANDOM (10,000 by default) of each kind."""
    _agree(kind, range(FIRST + block * FULL // BLOCKS, FIRST + (block + 1) * FULL // BLOCKS))


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
    from tests.support import oracle_ceql_text

    streams = edges = odd = 0
    for seed in range(200):
        case = strategies.wide_ceql_case(random.Random(seed))
        assert oracle_ceql_text.read(case.text) == case.query, case.text
        streams += bool(case.query.streams)
        edges += any(abs(dict(event).get("time", 0)) > 10**9 for event in case.events)
        odd += any(repr(dict(event).get("k")) == "-0.0" for event in case.events)
    assert min(streams, edges, odd) > 5
