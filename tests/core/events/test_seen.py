"""What kinds of events were read is counted right, for few kinds and for many, and for events without one."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import ceql


@pytest.mark.parametrize("kinds", [2, 3, 8, 9, 40])
def test_events_by_kind(kinds: int) -> None:
    rng = Random(kinds)
    events: list[dict[str, Any]] = [{"type": f"T{rng.randrange(kinds)}"} for _ in range(500)]
    events += [{"type": None} for _ in range(7)]
    rng.shuffle(events)
    found = ceql.compile("SELECT * WHERE T0 ; T1 LIMIT 1").run(events)
    assert list(found)
    seen = found.counters.seen
    assert seen.kinds == Counter(event["type"] for event in events if event["type"] is not None)
    assert seen.others == 7
