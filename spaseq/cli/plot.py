"""`spaseq plot`: the matches of a run on a time axis."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from spaseq.cli.output import prefixes_of
from spaseq.drawing import Span, draw_timeline
from spaseq.events.time import CALENDAR
from spaseq.gpm.serialise import short_text

if TYPE_CHECKING:
    from spaseq.language.evaluation.run import Match
    from spaseq.language.query import Query

__all__ = ["plot_matches"]

_SHOWN: Final = 3
"""Variables named beside a match."""


def plot_matches(matches: Iterable[Match], query: Query, path: str, limit: int) -> int:
    """Draws the first `limit` matches into `path`, and says how many. Raises `OptionError` as `draw_timeline` does."""
    prefixes = prefixes_of(query)
    spans, last = [], 0
    for match in islice(matches, limit):
        names = [name for name in query.variables if name in match.bindings][:_SHOWN]
        label = "  ".join(f"?{name} {short_text(match.bindings[name], prefixes)}" for name in names)
        spans.append(Span(tuple(time / 1e9 for time in match.times), label))
        last = max(last, match.time)
    title = f"{query.source}: {len(spans)} match" + ("" if len(spans) == 1 else "es")
    draw_timeline(spans, path, title=title, dates=last >= CALENDAR)
    return len(spans)
