"""Partial matches that time out, as rows: against their definition, on every road; their columns; what is refused."""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from ceql.query import Query, compile_query
from spaseq.core.errors import OptionError, QueryError, UnsupportedFeature
from tests.support.timed_out_by_definition import Row, draw, draw_events


def _rows(query: Query, found: Iterable[dict[str, Any]]) -> list[Row]:
    variables = query.timed_out().columns[6:]
    return [(row["waiting_for"], row["start"], row["end"], {v: row[v] for v in variables if row[v]}) for row in found]


def _sorted(rows: list[Row]) -> list[Any]:
    return sorted((start, waiting, end, sorted(taken.items())) for waiting, start, end, taken in rows)


def _compare(seed: int) -> int:
    """The number of rows that random sequence `seed` has by its definition, if it is told."""
    random = Random(seed)
    drawn, events = draw(random), draw_events(random)
    query = compile_query(drawn.text)
    try:
        timed_out = query.timed_out()
    except UnsupportedFeature as error:
        assert "relates a NOT at the end" in str(error) or "in a NOT" in str(error), f"{drawn.text}\n{error}"
        return -1
    expected = drawn.rows(events)
    found = _rows(query, timed_out.run(events))
    assert _sorted(found) == _sorted(expected), f"{seed}\n{drawn.text}\n{events}"
    in_order = drawn.by_time or not drawn.keyed  # else the windows of each key close by themselves
    assert not in_order or [(r[1], r[0], r[2]) for r in found] == [(r[1], r[0], r[2]) for r in expected], seed
    size = random.randint(1, 3)
    with timed_out.open() as session:
        pushed = [row for i in range(0, len(events), size) for row in session.push(events[i : i + size])]
        if drawn.by_time:
            pushed += session.advance((events[-1]["time"] + drawn.window + 1) * 10**9)
            before = len(pushed)
    pushed += session.rest
    assert not drawn.by_time or len(pushed) == before, f"{seed}: the clock closes all windows"
    came = _rows(query, pushed)
    assert came == found if in_order else _sorted(came) == _sorted(found), f"{seed}: pushed by {size}"
    return len(expected)


def test_rows_are_those_of_the_definition() -> None:
    counted = [_compare(seed) for seed in range(150)]
    assert sum(count > 0 for count in counted) > 40
    assert sum(count < 0 for count in counted) < 40


@pytest.mark.random
def test_rows_are_those_of_the_definition_at_full_size() -> None:
    first = 1000
    for seed in range(first, first + int(os.environ.get("SPASEQ_RANDOM", "2000"))):
        _compare(seed)
