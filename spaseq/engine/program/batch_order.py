"""The order that evaluators need their events in."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.engine.program.settings import Batch
from spaseq.errors import EventError, InternalError
from spaseq.snapshot import expect

__all__ = ["check_order", "last_place"]


def check_order(batch: Batch, last: tuple[int, int] | None) -> tuple[int, int]:
    """The position and the time of the last event, given those of the batch before.

    Positions and times must not run backwards: front ends put events in order before they push them. Raises
    `EventError` where times do.
    """
    times, positions = np.asarray(batch.times), np.asarray(batch.positions)
    first = last if last is not None else (int(positions[0]), times[0])
    if positions[0] < first[0] or np.any(positions[1:] < positions[:-1]):
        raise InternalError("positions run backwards")
    back = np.flatnonzero(times[1:] < times[:-1]) + 1
    if times[0] < first[1]:
        back = np.array([0])
    if len(back):
        raise EventError("time runs backwards", record=int(positions[back[0]]) + 1, counted="event",
                         hint="put the events in order of time, or allow for lateness")  # fmt: skip
    return int(positions[-1]), times[-1]


def last_place(last: tuple[int, Any] | None) -> tuple[int, Any] | None:
    """What `check_order` gave, as plain values, for a snapshot and from one."""
    if last is None:
        return None
    position, time = last
    time = time.item() if isinstance(time, np.generic) else time
    expect(type(position) is int and 0 <= position < 1 << 61 and type(time) in (int, float), "a place in the stream")
    return position, time
