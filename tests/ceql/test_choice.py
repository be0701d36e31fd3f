"""Evaluator "auto" on CEQL queries: what it chooses within 5,000 events, and what `explain` says of it."""

from __future__ import annotations

import random

import pytest

import ceql
from ceql.runtime.run import Run
from spaseq.core.engine import Settings
from spaseq.core.engine.choice.auto import AutoEvaluator
from spaseq.core.events import EventFeed, EventOptions


@pytest.mark.parametrize(("formula", "chosen"), [
    ("(A AS a ; B AS b) FILTER b.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E) FILTER b.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER b.v > a.v AND e.v > b.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER b.v > a.v AND e.v > a.v", "compact"),
    ("(A AS a ; B AS b ; E AS e) FILTER a.v != b.v AND b.v != e.v AND a.v != e.v", "chain"),
])  # fmt: skip
def test_the_choice_knows_pools_and_comes_early(formula: str, chosen: str) -> None:
    """What pools keep costs little, whatever passes. Three values that differ have none: the rare end comes first."""
    rng = random.Random(41)
    events = [{"type": "E" if i % 1000 == 999 else rng.choice("ABCD"), "v": rng.random()} for i in range(4500)]
    text = f"SELECT * WHERE {formula} WITHIN 400 EVENTS"
    query = ceql.compile(text, settings=Settings(evaluator="auto"))
    run = Run(query.compiled.lowered, query.program())
    feed = EventFeed(query.stream_names(()), EventOptions())
    found = sum(run.count(batch) for i in range(0, 4500, 500) for batch in feed.push(events[i : i + 500]))
    evaluator = run.evaluator
    assert isinstance(evaluator, AutoEvaluator) and evaluator.evaluator == chosen
    assert found == ceql.compile(text).run(events).count()


def test_explain_names_auto_if_events_cost_the_values_of_runs() -> None:
    for select, condition, named in (
        ("*", "c.v > a.v + b.v", True), ("*", "c.v > a.v", False), ("NEXT *", "c.v > a.v", False),
        ("*", "c.v > b.v", False),
    ):  # fmt: skip
        text = f"SELECT {select} WHERE (A AS a ; B AS b ; C AS c) FILTER b.v > a.v AND {condition} WITHIN 99 EVENTS"
        assert ("evaluator 'auto'" in ceql.compile(text).explain()) == named, text
