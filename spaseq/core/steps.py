"""The steps of a match: the part of the query that took each event, in both languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spaseq.core.drawing import event_text, step_html, time_text
from spaseq.core.measure import shorten


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

    def __repr__(self) -> str:
        return shorten(f"<Step {self.name} at {self.position}, {time_text(self.time)}: {event_text(self.event)}>", 100)

    def _repr_html_(self) -> str:
        return step_html(self)
