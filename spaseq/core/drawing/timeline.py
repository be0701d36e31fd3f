"""Matches on a time axis, as SVG: a row for each match, a line from its start to its end, a mark for each event.

The picture is complete without a script: tooltips describe the marks, also to screen readers. Text is measured in
characters, wide ones as two, so that labels do not overlap if the browser's font differs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from spaseq.core.errors import OptionError, expect_count
from spaseq.core.events.time import CALENDAR, format_time
from spaseq.core.files.beside import save_text
from spaseq.core.measure import shorten, width_of

MOST: Final = 200
"""Matches in a picture, if nobody says how many."""
_MARKS: Final = 400
"""Marks of one match; marks left out lie between the first and the last."""
_LABEL: Final = 48
_CHARACTER: Final = 7.2
"""Pixels of a character at the size of labels, on the wide side."""
_ROW, _TOP, _PLOT, _MARGIN = 22, 30, 660, 16
_EDGE = 75
"""Between the ends of the axis and the first and last place: half a date."""
_COLOURS: Final = ("#1f6fb4", "#d1730b", "#2b8a3e", "#b0262b", "#7a4fb5", "#7a5230", "#c2479b", "#5c5c5c")
"""Of the names of marks, in order of their appearance, then from the beginning again."""
_TICKS: Final = 10
"""Ticks of an axis, at most, if their labels have room."""
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_SECONDS: Final = (
    *(n / unit for unit in (1_000, 100, 10) for n in (1, 2, 5)), 1, 2, 5, 10, 15, 20, 30,
    *(n * _MINUTE for n in (1, 2, 3, 5, 10, 15, 20, 30)), *(n * _HOUR for n in (1, 2, 3, 4, 6, 12)),
    *(n * _DAY for n in (1, 2, 3, 5, 7, 14)),
)  # fmt: skip
"""Between two ticks of a calendar."""
_MONTHS: Final = (1, 2, 3, 4, 6, *(12 * n * power for power in (1, 10, 100, 1_000) for n in (1, 2, 5)))
"""The same, beyond weeks."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An event of a match: its place (seconds, or a position), the part of the query that took it, and more text."""

    at: float
    name: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A match: its marks in order, the text beside it, and more text, which a pointer shows."""

    marks: tuple[Mark, ...]
    label: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The result of `matches.timeline()`; a notebook shows it. `dates`: places are seconds since the epoch."""

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
        left = _MARGIN + _CHARACTER * max((width_of(_show(span.label)) for span in self.spans), default=0) + 10
        width = max(left + _PLOT + _MARGIN, 2 * _MARGIN + _CHARACTER * width_of(_show(self.title)))
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
            f'aria-label="{escape(_show(self.title))}">',
            f'<rect width="{width:.0f}" height="{bottom + 52}" fill="#ffffff"/>',
            _text(_MARGIN, 20, self.title or f"{len(self.spans):,} matches", "title"),
            *legend,
        ]
        ticks, axis = _date_ticks(low, high) if self.dates else (_position_ticks(low, high), self.axis)
        for at, label in ticks:
            lines.append(f'<line x1="{x(at):.1f}" y1="{top}" x2="{x(at):.1f}" y2="{bottom + 4}" stroke="#dddddd"/>')
            lines.append(_text(x(at), bottom + 18, label, "tick", ' text-anchor="middle"'))
        lines.append(_text(left + _PLOT / 2, bottom + 40, axis, "axis", ' text-anchor="middle"'))
        for row, span in enumerate(self.spans):
            lines += [f'<g class="match" data-match="{row}">']
            lines += [*self._row(span, x, top + _ROW * row + _ROW / 2, left), "</g>"]
        return "\n".join([*lines, "</svg>", ""])

    def html(self) -> str:
        """As a page by itself, which needs nothing else."""
        title = escape(_show(self.title))
        return (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n{self.svg()}</html>\n'
        )

    def save(self, path: str | Path) -> None:
        """Writes it to a file, `.svg` or `.html`. Raises `OptionError` for another ending, or if it cannot be
        written.
        """
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".html"):
            raise OptionError(f"cannot tell from {path} what picture to make", "name it with .svg or .html")
        save_text(path, self.html() if ending == ".html" else self.svg())

    def _repr_html_(self) -> str:
        return self.svg()

    def _legend(self, width: float) -> tuple[list[str], int]:
        """The legend of the marks' colours, in as many lines as it takes, and the height at which the rows begin."""
        lines: list[str] = []
        x, y = float(_MARGIN), _TOP + 8
        for name in self.names[: len(_COLOURS)]:
            long = _CHARACTER * width_of(_show(name))
            if x > _MARGIN and x + 14 + long > width - _MARGIN:
                x, y = float(_MARGIN), y + 18
            lines.append(f'<circle cx="{x + 4:.1f}" cy="{y - 4}" r="4" fill="{self._colour(name)}"/>')
            lines.append(_text(x + 13, y, name, "legend"))
            x += 13 + long + 18
        return lines, y + 12 if self.names else _TOP

    def _colour(self, name: str) -> str:
        return _COLOURS[self.names.index(name) % len(_COLOURS)] if name else _COLOURS[0]

    def _row(self, span: Span, x: Any, y: float, left: float) -> Iterator[str]:
        if span.text:
            yield f"<title>{escape(shorten(span.text, 400))}</title>"
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
                f"<title>{escape(shorten(tip, 400))}</title></circle>"
            )


def timeline_of(matches: Iterable[Any], labels: Any = None, *, title: str, limit: int = MOST) -> Timeline:
    """The first `limit` matches of either language as a picture, over time if their events have dates, else over
    positions. `labels`: the text beside a match; without them its number and times. A pointer shows the positions."""
    expect_count("limit", limit)
    shown = list(islice(matches, min(limit, sys.maxsize)))
    dated = bool(shown) and all(match.time >= CALENDAR for match in shown)
    spans = tuple(
        Span(marks, _name(number, marks, dated) if labels is None else labels(match), _positions(match))
        for number, match in enumerate(shown, 1)
        for marks in (tuple(_marks(match, dated)),)
    )
    first = "first " if isinstance(matches, Sized) and len(matches) > len(spans) else ""
    title += f"{': ' if title else ''}{first}{len(spans)} match" + ("" if len(spans) == 1 else "es")
    return Timeline(spans, title, dates=dated)


def _name(number: int, marks: Sequence[Mark], dated: bool) -> str:
    """A match by its number and its times."""
    if not dated:
        return f"match {number:,}"
    first, last = (str(np.datetime64(math.floor(mark.at), "s")).replace("T", " ") for mark in (marks[0], marks[-1]))
    day = last[: last.index(" ") + 1]
    return f"{number:,}: {first} – {last.removeprefix(day) if first.startswith(day) else last}"


def _positions(match: Any) -> str:
    return f"positions {match.start:,} to {match.end:,}"


def _marks(match: Any, dated: bool) -> Iterator[Mark]:
    """The marks of the steps, if these are known."""
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


Ticks: TypeAlias = list[tuple[float, str]]
"""Places on an axis, and their labels."""


def _position_ticks(low: float, high: float) -> Ticks:
    """Ticks at round positions."""
    steps = chain((1, 2, 5), (n * 10**power for power in range(18) for n in (10, 20, 25, 50)))
    return _fitting(low, high, ((step, _every(low, high, step), "{:,.0f}".format) for step in steps))


def _date_ticks(low: float, high: float) -> tuple[Ticks, str]:
    """Ticks at round times, and the text of the axis, which has the part of the date that the labels leave out."""
    first, last = (str(np.datetime64(math.floor(at), "s")) for at in (low, high))
    same_day, same_year = first[:10] == last[:10], first[:4] == last[:4]

    def clock(step: float, at: float) -> str:
        text = format_time(round(at * 1_000) * 10**6).removesuffix("Z")
        date, _, time = text.partition("T")
        date = date[5:] if same_year else date
        time = time if step < _MINUTE else time[:5]
        return time if same_day else date if step >= _DAY else f"{date} {time}"

    def month(at: float) -> str:
        return str(np.datetime64(round(at), "s"))[:7]

    ways: Iterator[tuple[float, Iterable[float], Callable[[float], str]]] = chain(
        ((step, _every(low, high, step), partial(clock, step)) for step in _SECONDS),
        ((step * 30 * _DAY, _months(low, high, step), month) for step in _MONTHS),
    )
    ticks = _fitting(low, high, ways) or [(low, clock(1, low))]
    left_out = first[:10] if same_day else first[:4] if same_year else ""
    return ticks, "time (UTC)" + (f", {left_out}" if left_out else "")


def _fitting(low: float, high: float, ways: Iterable[tuple[float, Iterable[float], Callable[[float], str]]]) -> Ticks:
    """The closest ticks whose labels do not meet. A way: the step, the places, and the label of a place."""
    for step, places, label in ways:
        if high - low > _TICKS * step:
            continue
        ticks = [(at, label(at)) for at in places]
        room = _CHARACTER * (max((len(text) for _, text in ticks), default=0) + 1)
        if len(ticks) < 2 or step * (_PLOT - 2 * _EDGE) >= room * (high - low):
            return ticks
    return []


def _every(low: float, high: float, step: float) -> Iterator[float]:
    for n in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield n * step


def _months(low: float, high: float, step: int) -> Iterator[float]:
    """The beginnings of every so many months."""
    first, last = (int(np.datetime64(math.floor(at), "s").astype("datetime64[M]").astype(int)) for at in (low, high))
    for n in range(math.ceil(first / step), last // step + 1):
        at = float(np.datetime64(n * step, "M").astype("datetime64[s]").astype(int))
        if low <= at <= high:
            yield at


def _show(text: str) -> str:
    return shorten(text, _LABEL)


def _text(x: float, y: float, text: str, kind: str, more: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" fill="#222222"{more}>{escape(_show(text))}</text>'
