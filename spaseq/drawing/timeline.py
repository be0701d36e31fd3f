"""Matches on a time axis, as SVG: a row for each match, a line from its start to its end, a mark for each event.

The picture is complete without a script: marks say what they are as tooltips, and to screen readers. Text is measured
by its characters, wide ones as two, so that a browser's font may differ from ours without labels meeting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Final

from spaseq.errors import OptionError
from spaseq.events.time import CALENDAR, format_time
from spaseq.measure import shortened, width_of

__all__ = ["Mark", "Span", "Timeline", "timeline_of"]

MOST: Final = 200
"""Matches in a picture, if nobody says how many."""
_MARKS: Final = 400
"""Of one match; what is left out lies between the first and the last."""
_LABEL: Final = 48
_CHARACTER: Final = 7.2
"""Pixels of a character at the size of labels, on the wide side."""
_ROW, _TOP, _PLOT, _MARGIN = 22, 30, 660, 16
_EDGE = 75
"""Between the ends of the axis and the first and last place: half a date."""
_COLOURS: Final = ("#1f6fb4", "#d1730b", "#2b8a3e", "#b0262b", "#7a4fb5", "#7a5230", "#c2479b", "#5c5c5c")
"""Of the names of marks, in order of their appearance, then from the beginning again."""
_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
                   604800, 2592000, 7776000, 31536000, 157680000)  # fmt: skip
"""Between two ticks of a calendar."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An event of a match: its place (seconds, or a position), the part of the query that took it, and more text."""

    at: float
    name: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A match: its marks in order, and the text beside it."""

    marks: tuple[Mark, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """What `matches.timeline()` gives; a notebook shows it. `dates`: places are seconds since the epoch."""

    spans: tuple[Span, ...]
    title: str = ""
    axis: str = "position in the stream"
    dates: bool = False
    names: tuple[str, ...] = field(init=False)
    """Of marks, in order of their appearance."""

    def __post_init__(self) -> None:
        named = dict.fromkeys(mark.name for span in self.spans for mark in span.marks if mark.name)
        object.__setattr__(self, "names", tuple(named))

    def svg(self) -> str:
        """As an SVG document."""
        left = _MARGIN + _CHARACTER * max((width_of(_shown(span.label)) for span in self.spans), default=0) + 10
        width = max(left + _PLOT + _MARGIN, 2 * _MARGIN + _CHARACTER * width_of(_shown(self.title)))
        legend, top = self._legend(width)
        bottom = top + _ROW * max(1, len(self.spans))
        places = [mark.at for span in self.spans for mark in span.marks]
        low, high = min(places, default=0.0), max(places, default=1.0)
        scale = (_PLOT - 2 * _EDGE) / ((high - low) or 1.0)

        def x(at: float) -> float:
            return left + _EDGE + (at - low) * scale

        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {bottom + 52}" width="{width:.0f}" '
            f'height="{bottom + 52}" font-family="Helvetica,Arial,sans-serif" font-size="12" role="img" '
            f'aria-label="{escape(_shown(self.title))}">',
            f'<rect width="{width:.0f}" height="{bottom + 52}" fill="#ffffff"/>',
            _text(_MARGIN, 20, self.title or f"{len(self.spans):,} matches", "title"),
            *legend,
        ]
        for at, label in _ticks(low, high, self.dates):
            lines.append(f'<line x1="{x(at):.1f}" y1="{top}" x2="{x(at):.1f}" y2="{bottom + 4}" stroke="#dddddd"/>')
            lines.append(_text(x(at), bottom + 18, label, "tick", ' text-anchor="middle"'))
        lines.append(_text(left + _PLOT / 2, bottom + 40, "time (UTC)" if self.dates else self.axis, "axis",
                           ' text-anchor="middle"'))  # fmt: skip
        for row, span in enumerate(self.spans):
            lines += [f'<g class="match" data-match="{row}">']
            lines += [*self._row(span, x, top + _ROW * row + _ROW / 2, left), "</g>"]
        return "\n".join([*lines, "</svg>", ""])

    def html(self) -> str:
        """As a page by itself, which needs nothing else."""
        title = escape(_shown(self.title))
        return (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n{self.svg()}</html>\n'
        )

    def save(self, path: str | Path) -> None:
        """Writes it to a file, `.svg` or `.html`. Raises `OptionError` for another ending, or where it cannot."""
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".html"):
            raise OptionError(f"cannot tell from {path} what picture to make", "name it with .svg or .html")
        try:
            Path(path).write_text(self.html() if ending == ".html" else self.svg(), encoding="utf-8")
        except OSError as error:
            raise OptionError(f"cannot write {path}: {error.strerror or error}") from None

    def _repr_html_(self) -> str:
        return self.svg()

    def _legend(self, width: float) -> tuple[list[str], int]:
        """What names the marks' colours, in as many lines as it takes; and where the rows begin."""
        lines: list[str] = []
        x, y = float(_MARGIN), _TOP + 8
        for name in self.names[: len(_COLOURS)]:
            long = _CHARACTER * width_of(_shown(name))
            if x > _MARGIN and x + 14 + long > width - _MARGIN:
                x, y = float(_MARGIN), y + 18
            lines.append(f'<circle cx="{x + 4:.1f}" cy="{y - 4}" r="4" fill="{self._colour(name)}"/>')
            lines.append(_text(x + 13, y, name, "legend"))
            x += 13 + long + 18
        return lines, y + 12 if self.names else _TOP

    def _colour(self, name: str) -> str:
        return _COLOURS[self.names.index(name) % len(_COLOURS)] if name else _COLOURS[0]

    def _row(self, span: Span, x: Any, y: float, left: float) -> Iterator[str]:
        yield _text(_MARGIN, y + 4, span.label, "match")
        if not span.marks:
            return
        first, last = span.marks[0], span.marks[-1]
        ends = f'x1="{x(first.at):.1f}" y1="{y}" x2="{x(last.at):.1f}" y2="{y}"'
        yield f'<line {ends} stroke="#9aa7b4" stroke-width="2"/>'
        left_out = max(0, len(span.marks) - _MARKS)
        for mark in span.marks if not left_out else (*span.marks[: _MARKS - 1], last):
            tip = ": ".join(part for part in (mark.name, mark.text) if part)
            yield (
                f'<circle cx="{x(mark.at):.1f}" cy="{y}" r="5" fill="{self._colour(mark.name)}" tabindex="0">'
                f"<title>{escape(shortened(tip, 400))}</title></circle>"
            )


def timeline_of(matches: Iterable[Any], labels: Any, *, title: str, limit: int = MOST) -> Timeline:
    """The first `limit` matches of either language as a picture, over time where their events have dates, else over
    positions. `labels`: the text beside a match."""
    shown = list(islice(matches, limit))
    dated = bool(shown) and all(match.time >= CALENDAR for match in shown)
    spans = tuple(Span(tuple(_marks(match, dated)), labels(match)) for match in shown)
    first = "first " if isinstance(matches, Sized) and len(matches) > len(spans) else ""
    title += f"{': ' if title else ''}{first}{len(spans)} match" + ("" if len(spans) == 1 else "es")
    return Timeline(spans, title, dates=dated)


def _marks(match: Any, dated: bool) -> Iterator[Mark]:
    """Those of the steps, where they are known."""
    try:
        steps = match.steps
    except OptionError:
        steps = ()
    if steps:
        for step in steps:
            time = format_time(step.time) if dated else f"position {step.position}"
            yield Mark(step.time / 1e9 if dated else float(step.position), step.name, time)
        return
    places = [time / 1e9 for time in match.times] if dated else [*map(float, match.positions)]
    yield from map(Mark, places or ([match.time / 1e9] if dated else [float(match.start), float(match.end)]))


def _ticks(low: float, high: float, dates: bool) -> Iterator[tuple[float, str]]:
    """Places between both ends, and their labels, which do not meet."""
    least = (high - low) * (0.3 if dates else 0.2)  # of the axis is what a label takes
    if dates:
        step = float(next((s for s in _SECONDS if s >= least), _SECONDS[-1] * math.ceil(least / _SECONDS[-1])))
    else:
        power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
        step = next(power * n for n in (1, 2, 5, 10) if power * n >= least * (1 - 1e-9))
        step = max(step, 1.0)  # between positions there is nothing
    at = math.ceil(low / step) * step
    for _ in range(10):
        if at > high:
            return
        yield at, format_time(round(at) * 10**9).removesuffix("Z").replace("T", " ") if dates else f"{at:,.0f}"
        at += step


def _shown(text: str) -> str:
    return shortened(text, _LABEL)


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" fill="#222222"{more}>{escape(_shown(text))}</text>'
