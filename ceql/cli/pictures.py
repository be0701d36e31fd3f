"""Matches as a picture: `ceql plot`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from spaseq.drawing import Span, draw_timeline

if TYPE_CHECKING:
    from ceql.results.matches import Match

__all__ = ["plot_matches"]


def plot_matches(matches: Iterable[Match], source: str, path: str, limit: int) -> int:
    """Draws the first `limit` matches over the positions of the stream into `path`; returns how many it drew.

    Raises `OptionError` as `draw_timeline` does.
    """
    spans = [
        Span(tuple(map(float, sorted({m.start, *m.positions, m.end}))), f"[{m.start}, {m.end}]")
        for m in islice(matches, limit)
    ]
    title = f"{source}: {len(spans)} match" + ("" if len(spans) == 1 else "es")
    draw_timeline(spans, path, title=title, axis="position in the stream")
    return len(spans)
