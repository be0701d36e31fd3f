"""The number of matches, if an event completes more than are counted one by one."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

import ceql
from spaseq.core.errors import UnsupportedFeature


def _run(length: int, events: int) -> ceql.Matches:
    query = ceql.compile(f"SELECT * FROM S WHERE {' ; '.join('A' * length)} WITHIN {events} EVENTS")
    return query.run(pa.table({"type": ["A"] * events}))


@pytest.mark.parametrize(("length", "events"), [(3, 100), (6, 400), (7, 2_000)])
def test_every_choice_of_events(length: int, events: int) -> None:
    """Of 2,000 events there are more choices of seven than an int64 has numbers."""
    assert _run(length, events).count() == math.comb(events, length)


def test_a_limit_ends_the_count() -> None:
    assert _run(6, 400).count(5) == 5


def test_too_many_at_one_event_are_an_error() -> None:
    with pytest.raises(UnsupportedFeature, match="too many to count\\nhint: a limit ends the count"):
        _run(12, 400).count()
    events = pa.table({"type": [*"A" * 300, "C"]})
    query = ceql.compile("SELECT * WHERE A+ ; C")
    with pytest.raises(UnsupportedFeature, match="too many to count"):
        query.run(events).count()
    assert query.run(events).count(1_000_000) == 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "A ; B ; C WITHIN 80 EVENTS",
        "(A OR B)+ ; C WITHIN 14 EVENTS",
        "A AS a ; B AS b ; C FILTER b[price > a.price] WITHIN 80 EVENTS",
        "A AS a ; B AS b ; C FILTER b[id = a.id] WITHIN 80 EVENTS",
        "A ; B ; C PARTITION BY [id] WITHIN 150 EVENTS",
        "A ; B+ ; C CONSUME BY ANY WITHIN 25 EVENTS",
        "A ; ANY ; B ; ANY ; C WITHIN 30 EVENTS",
    ],
)
def test_as_many_as_are_listed(text: str) -> None:
    random.seed(3)
    columns = {"type": "ABCD", "price": range(50), "id": range(2)}
    events = pa.table({name: random.choices(values, k=600) for name, values in columns.items()})
    query = ceql.compile(f"SELECT * FROM S WHERE {text}")
    assert query.run(events).count() == sum(1 for _ in query.run(events)) > 256
