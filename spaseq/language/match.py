"""A match, as a query's user sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spaseq.rdf import GraphEvent

__all__ = ["Match"]


@dataclass(frozen=True, slots=True)
class Match:
    """A match: one per interval, set of positions and projected mapping.

    `start`, `end` and `positions` count instants of the streamset from 0; `positions` are those that were taken.
    `bindings` maps the selected variables that are bound to RDF terms. `times` are the positions' times, nanoseconds.
    `events` are the graph events at the positions (all streams), empty where the run was told not to keep events; they
    are made when first looked at, from the batches they stand in, which a match keeps until then.
    """

    start: int
    end: int
    positions: tuple[int, ...]
    bindings: dict[str, Any]
    times: tuple[int, ...]
    events: Sequence[GraphEvent]

    @property
    def time(self) -> int:
        """The time of the solution: that of the last matched instant, in nanoseconds (Definition 16)."""
        return self.times[-1]
