"""Which part of a query took which event: the steps of a match, in both languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a query and an event that it took.

    `name`: the variable (CEQL; without valuations the event's type), or the GPM (SPAseq). `position` and `time` (ns)
    are those of the event, or of its instant. `event`: a dict of its attributes, or a `spaseq.GraphEvent`.
    """

    name: str
    position: int
    time: int
    event: Any
