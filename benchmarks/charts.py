"""Charts of the rows that `benchmarks.figures` keeps: small panels with one logarithmic scale, as SVG.

A chart depends on its rows alone, so a test compares it with its result. It is written by hand, as pictures of
matplotlib differ from version to version.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.harness import RESULTS

__all__ = ["MEASURES", "Panel", "draw", "newest", "panels"]

MEASURES: Final = {"events_per_s": "events a second", "cpu_s": "seconds", "bytes": "bytes held"}
"""Columns of a result that a chart can show -> the words of their axis."""
_COLOURS: Final = ("#1f6fb2", "#c1440e", "#2e8b57", "#7a5195")
_WIDE, _HIGH, _LEFT, _TOP, _IN_A_ROW, _LEGEND = 190, 130, 52, 30, 4, 30
_STEP: Final = (_WIDE + _LEFT + 18, _HIGH + _TOP + 30)

Row = Mapping[str, str]


class Panel(NamedTuple):
    """One panel: its title, the words of its axis, and for each series the values by place on the axis."""

    title: str
    axis: str
    places: tuple[str, ...]
    series: dict[str, dict[str, float]]


def newest(group: str) -> Path:
    """The newest result of a group of `benchmarks.figures`; `FileNotFoundError` if there is none."""
    found = sorted(RESULTS.glob(f"*-figures-{group}.csv"))
    if not found:
        raise FileNotFoundError(f"no result of `python -m benchmarks.figures {group}`")
    return found[-1]


def panels(path: Path, figure: str, measure: str) -> list[Panel]:
    """The panels of a figure in a result, one measure of them; those without the measure are left out."""
    found: dict[str, Panel] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["figure"] == figure and row[measure]:
                name = row["panel"]
                panel = found.setdefault(name, Panel(name, MEASURES[measure], (), {}))
                if row["x"] not in panel.places:
                    panel = found[name] = panel._replace(places=(*panel.places, row["x"]))
                panel.series.setdefault(row["series"], {})[row["x"]] = float(row[measure])
    return list(found.values())


def draw(title: str, drawn: Sequence[Panel]) -> str:
    """An SVG document of all panels, four in a row. Those with the same axis have one scale and rows of their own."""
    names = list(dict.fromkeys(name for panel in drawn for name in panel.series))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    alike = [[p for p in drawn if p.axis == axis] for axis in dict.fromkeys(p.axis for p in drawn)]
    rows = [(row, _decades(some)) for some in alike for row in _chunks(some)]
    width = max(len(row) for row, _ in rows) * _STEP[0] + 12
    height = len(rows) * _STEP[1] + _LEGEND + 6
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica,Arial,sans-serif" font-size="11">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    at = 12.0
    for name in names if len(names) > 1 else ():
        lines.append(f'<circle cx="{at + 4:.1f}" cy="16" r="4" fill="{colours[name]}"/>')
        lines.append(f'<text x="{at + 12:.1f}" y="20">{escape(name)}</text>')
        at += 34 + 6.5 * len(name)
    for i, (row, decades) in enumerate(rows):
        for j, panel in enumerate(row):
            lines += _panel(panel, j * _STEP[0] + _LEFT, i * _STEP[1] + _LEGEND + _TOP, decades, colours)
    return "\n".join([*lines, "</svg>", ""])


def _chunks(some: Sequence[Panel]) -> Iterator[Sequence[Panel]]:
    """Four at a time."""
    for start in range(0, len(some), _IN_A_ROW):
        yield some[start : start + _IN_A_ROW]


def _decades(drawn: Sequence[Panel]) -> tuple[int, int]:
    """The powers of ten below and above all values."""
    values = [value for panel in drawn for series in panel.series.values() for value in series.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _panel(panel: Panel, left: int, top: int, decades: tuple[int, int], colours: Mapping[str, str]) -> list[str]:
    low, high = decades
    lines = [
        f'<text x="{left}" y="{top - 8}"><tspan font-weight="bold">{escape(panel.title)}</tspan>, {panel.axis}</text>'
    ]
    for power in range(low, high + 1):
        y = top + _HIGH * (high - power) / (high - low)
        lines.append(f'<path d="M{left} {y:.1f}h{_WIDE}" stroke="#dddddd"/>')
        lines.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{_power(power)}</text>')
    across = {x: left + _WIDE * (i + 0.5) / len(panel.places) for i, x in enumerate(panel.places)}
    for x, place in across.items():
        lines.append(f'<text x="{place:.1f}" y="{top + _HIGH + 15}" text-anchor="middle">{escape(x)}</text>')
    for name, values in panel.series.items():
        points = [
            (across[x], top + _HIGH * (high - math.log10(value)) / (high - low)) for x, value in values.items()
        ]  # fmt: skip
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[name]}"/>' for x, y in points]
    return lines


def _power(power: int) -> str:
    """A power of ten in few letters: 100 k, 10 M, 1 ms."""
    for size, unit in ((9, " G"), (6, " M"), (3, " k"), (0, ""), (-3, " m"), (-6, " µ")):
        if power >= size:
            return f"{10 ** (power - size)}{unit}"
    return f"1e{power}"
