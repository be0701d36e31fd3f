"""A ferry between a harbour and a pier eleven kilometres off, its position every minute: the same on every run.

It lies at either end for a while, goes at nine to twelve metres a second, and now and then turns back half way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

PIER = 11.0  # km from the harbour
MINUTE = 60


def positions(trips: int = 240, seed: int = 7) -> Iterator[dict[str, Any]]:
    """Events with time (s), distance from the harbour (km), speed (km/h) and the angle off the harbour (degrees)."""
    rng = random.Random(seed)
    time, distance = 1_443_650_000, 0.0

    def at(speed: float, off: float) -> dict[str, Any]:
        return {"type": "AIS", "time": time, "distance": round(max(0.0, distance + rng.gauss(0, 0.03)), 3),
                "speed": round(speed, 1), "off": round(off, 1)}  # fmt: skip

    goal = PIER
    for _ in range(trips):
        for _ in range(rng.randrange(4, 15)):  # at rest: the bow points anywhere
            time += MINUTE
            yield at(rng.uniform(0, 0.5), rng.uniform(0, 180))
        turned = rng.random() < 0.15
        goal, home = (goal, goal == 0.0) if not turned else (rng.uniform(4.0, 9.0), goal == 0.0)
        while abs(distance - goal) > 0.4:
            step = rng.uniform(0.54, 0.72) * (1 if goal > distance else -1)
            distance = goal if abs(goal - distance) < abs(step) else distance + step
            time += MINUTE
            off = abs(rng.gauss(0, 8)) if step < 0 else 180 - abs(rng.gauss(0, 8))
            yield at(60 * abs(step), off)
        goal = PIER if home or (turned and distance < PIER / 2) else 0.0
