"""The order that evaluators need their events in."""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.core.errors import EventError, InternalError
from spaseq.core.pattern import Batch
from spaseq.core.snapshot import expect


def check_order(batch: Batch, last: tuple[int, int] | None) -> tuple[int, int]:
    """The position and the time of the last event, given those of the batch before.

    Positions and times must not run backwards: front ends put events in order before they push them. Raises
    `EventError` if times do.
    """
    times, positions = np.asarray(batch.times), np.asarray(batch.positions)
    place, time = last if last is not None else (None, None)
    if first_backward(positions, place) is not None:
        raise InternalError("positions run backwards")
    back = first_backward(times, time)
    if back is not None:
        raise EventError("time runs backwards", record=int(positions[back]) + 1, counted="event",
                         hint="put the events in order of time, or allow for lateness")  # fmt: skip
    return int(positions[-1]), times[-1]


def first_backward(numbers: np.ndarray, before: float | None) -> int | None:
    """The first row whose number is less than the one in front of it; None if there is none.

    `numbers`: int64 or float64 (n,), n > 0. `before`: the number in front of the first row, None if there is none.
    O(n).
    """
    if before is not None and numbers[0] < before:
        return 0
    back = numbers[1:] < numbers[:-1]
    return int(back.argmax()) + 1 if back.any() else None


def last_place(last: tuple[int, Any] | None) -> tuple[int, Any] | None:
    """The result of `check_order`, as plain values, for a snapshot and from one."""
    if last is None:
        return None
    position, time = last
    time = time.item() if isinstance(time, np.generic) else time
    expect(type(position) is int and 0 <= position < 1 << 61 and type(time) in (int, float), "a place in the stream")
    return position, time
