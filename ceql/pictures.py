"""A query's automaton and its matches as pictures: `ceql explain --format dot|svg|json` and `ceql plot`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from spaseq.automata.diagram import automaton_text
from spaseq.drawing import Span, draw_timeline

if TYPE_CHECKING:
    from ceql.matches import Match
    from ceql.query import Query

__all__ = ["explain_as", "plot_matches"]


def explain_as(query: Query, form: str) -> str:
    """The query's automaton as `dot` or `svg`, or with what `explain` says as `json`. `OptionError` for others."""
    about = {"warnings": list(query.warnings), "plan": query.explain().splitlines()}
    return automaton_text(query.automaton.cea, form, about)


def plot_matches(matches: Iterable[Match], source: str, path: str, limit: int) -> int:
    """Draws the first `limit` matches over the positions of the stream into `path`; how many they were.

    Raises `OptionError` as `draw_timeline` does.
    """
    spans = [
        Span(tuple(map(float, sorted({m.start, *m.positions, m.end}))), f"[{m.start}, {m.end}]")
        for m in islice(matches, limit)
    ]
    title = f"{source}: {len(spans)} match" + ("" if len(spans) == 1 else "es")
    draw_timeline(spans, path, title=title, axis="position in the stream")
    return len(spans)
