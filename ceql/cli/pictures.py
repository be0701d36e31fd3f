"""Matches as a picture: `ceql plot`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from spaseq.drawing import Span, draw_timeline
from spaseq.events.time import CALENDAR

if TYPE_CHECKING:
    from ceql.results.matches import Match

__all__ = ["plot_matches"]


def plot_matches(matches: Iterable[Match], source: str, path: str, limit: int) -> int:
    """Draws the first `limit` matches into `path`, over time where events have dates, else over the positions of the
    stream; returns how many it drew.

    Raises `OptionError` as `draw_timeline` does.
    """
    shown = list(islice(matches, limit))
    dated = bool(shown) and all(match.time >= CALENDAR for match in shown)
    spans = [Span(_points(match, dated), f"[{match.start}, {match.end}]") for match in shown]
    title = f"{source}: {len(spans)} match" + ("" if len(spans) == 1 else "es")
    draw_timeline(spans, path, title=title, axis="position in the stream", dates=dated)
    return len(spans)


def _points(match: Match, dated: bool) -> tuple[float, ...]:
    """Seconds, or positions."""
    if dated:
        return tuple(time / 1e9 for time in match.times)
    return tuple(map(float, sorted({match.start, *match.positions, match.end})))
