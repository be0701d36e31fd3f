"""The sequence queries of [CORE]'s appendices E (smart homes) and F (taxi trips): each runs and finds its match.

Built from what the listings say: which household or trip comes at each place, the common condition, the window.
(Appendices D and G, on the stock trace: `test_ceql_stock_counts`.) Each stream has one event for each place, in order,
among others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import ceql

HOUSEHOLDS = (0, 2, 4, 6, 9, 10, 12, 14, 15, 4, 9, 10, 0, 2, 4, 6, 9, 10, 12, 14, 15, 4, 9, 10)
STOPS = (
    "East Harlem North",
    "Midwood",
    "Gravesend",
    "West Brighton",
    "Lincoln Square West",
    "Sutton Place/Turtle Bay North",
    "East Concourse/Concourse Village",
    "East Harlem North",
    "East Harlem North",
    "Gravesend",
    "Midwood",
    "Midwood",
    "Gravesend",
)
TRIPS = tuple(itertools.pairwise(STOPS)) * 2
LENGTHS = (3, 6, 9, 12, 24)


def homes(length: int, factor: int = 1, missing: bool = False) -> str:
    """H3 … H24, with `missing` H3' … H24', with a factor H3'x2 …"""
    names = [f"plug{i}" for i in range(1, length + 1)]
    parts = [f"{name}[household_id = {h}]" for name, h in zip(names, HOUSEHOLDS, strict=False)]
    if missing:
        names.append("nobody")
        parts.append("nobody[household_id = 1000]")
    formula = "; ".join(f"LOAD AS {name}" for name in names)
    where = f"({formula}) AS every FILTER every[value > 76] AND {' AND '.join(parts)}"
    return f"SELECT * FROM S WHERE {where} WITHIN {10 * factor} [plug_timestamp]"


def trips(length: int, factor: int = 1, missing: bool = False) -> str:
    """T3 … T24, with `missing` T3' … T24', with a factor T3'x2 …"""
    names = [f"trip{i}" for i in range(1, length + 1)]
    parts = [
        f"{name}[pickup_loc = '{start}' AND dropoff_loc = '{end}']"
        for name, (start, end) in zip(names, TRIPS, strict=False)
    ]
    if missing:
        names.append("nobody")
        parts.append("nobody[pickup_loc = 'NotExists']")
    formula = "; ".join(f"TRIP AS {name}" for name in names)
    window = f"{10_000 * factor} [dropoff_datetime]"
    return f"SELECT * FROM S WHERE ({formula}) FILTER {' AND '.join(parts)} WITHIN {window}"


def loads(length: int) -> Iterator[dict[str, Any]]:
    for i, household in enumerate(HOUSEHOLDS[:length]):
        moment = i * 10 // length
        yield {"type": "LOAD", "household_id": household, "value": 80, "plug_timestamp": moment}
        yield {"type": "LOAD", "household_id": household, "value": 70, "plug_timestamp": moment}


def rides(length: int) -> Iterator[dict[str, Any]]:
    for i, (start, end) in enumerate(TRIPS[:length]):
        moment = i * 10_000 // length
        yield {"type": "TRIP", "pickup_loc": start, "dropoff_loc": end, "dropoff_datetime": moment}
        yield {"type": "TRIP", "pickup_loc": start, "dropoff_loc": "Chelsea", "dropoff_datetime": moment}


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(("query", "stream"), [(homes, loads), (trips, rides)], ids=["homes", "trips"])
def test_a_sequence_finds_its_events(query: Any, stream: Any, length: int) -> None:
    events = list(stream(length))
    (match,) = ceql.compile(query(length)).run(events)
    assert match.positions == tuple(range(0, 2 * length, 2))
    for factor in (1, 2, 3, 4):
        assert ceql.compile(query(length, factor, missing=True)).run(events).count() == 0
    late = [{name: 2 * v if name in ("plug_timestamp", "dropoff_datetime") else v for name, v in e.items()}
            for e in events]  # fmt: skip
    assert ceql.compile(query(length)).run(late).count() == 0
