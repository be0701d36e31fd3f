"""Automata as DOT for Graphviz, and as SVG with a layout of our own.

As in the paper's figures, a transition is labelled formula / register selection / write registers / output, formulas
have names, and a box lists the formulas by name. States are in columns by their distance from a start state, so that
automata without loops read from left to right.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from spaseq.automata.rma import formulas as f
from spaseq.automata.rma.automaton import RMA, Transition, register_order
from spaseq.automata.rma.formulas import Formula

__all__ = ["to_dot", "to_svg"]


def _named(automaton: RMA) -> dict[Formula, str]:
    """The names f1, f2, … of the formulas other than TRUE, in order of appearance."""
    found = dict.fromkeys(t.formula for t in automaton.transitions if not t.epsilon and t.formula != f.TRUE)
    return {formula: f"f{i}" for i, formula in enumerate(found, 1)}


def _label(t: Transition, names: dict[Formula, str]) -> str:
    if t.epsilon:
        return "ε"
    writes = ", ".join(sorted(t.writes, key=register_order))
    selection = ", ".join(t.selection) or f.CURRENT
    shown = names.get(t.formula, "TRUE")
    return f"{shown} / ({selection}) / {'{' + writes + '}' if writes else '∅'} / {'•' if t.marks else '∘'}"


def _legend(names: dict[Formula, str]) -> list[str]:
    return [f"{name} := {f.show(formula)}" for formula, name in names.items()]


def to_dot(automaton: RMA, title: str = "") -> str:
    """The automaton in Graphviz's language: start states with an arrow, final states doubled, formulas in a box."""
    names = _named(automaton)
    lines = ["digraph rma {", "  rankdir=LR;", "  node [shape=circle];"]
    if title:
        lines.append(f"  label={_quoted(title)};")
    for q, name in enumerate(automaton.names):
        double = ", shape=doublecircle" if q in automaton.finals else ""
        lines.append(f"  q{q} [label={_quoted(name)}{double}];")
    for q in sorted(automaton.starts):
        lines += [f"  start{q} [shape=point];", f"  start{q} -> q{q};"]
    for t in automaton.transitions:
        style = "" if t.marks else ", style=dashed"
        lines.append(f"  q{t.source} -> q{t.target} [label={_quoted(_label(t, names))}{style}];")
    if names:
        text = "".join(line.replace("\\", "\\\\").replace('"', '\\"') + "\\l" for line in _legend(names))
        lines.append(f'  formulas [shape=box, label="{text}"];')
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


# SVG

_CHARACTER: Final = 6.7
"""The width of a character of the labels' font, in pixels."""
_LINE: Final = 14
_ROW: Final = 96
_GAP: Final = 70


@dataclass(frozen=True, slots=True)
class _Place:
    x: float
    y: float
    half: float
    """Half the width of the state's outline."""


def to_svg(automaton: RMA, title: str = "") -> str:
    """The automaton as an SVG document; transitions that mark their event are solid, others dashed."""
    names = _named(automaton)
    between: dict[tuple[int, int], list[Transition]] = {}
    for t in automaton.transitions:
        between.setdefault((t.source, t.target), []).append(t)
    legend = ([title] if title else []) + _legend(names)
    columns = _columns(automaton)
    places = _places(automaton, columns, {e: [_label(t, names) for t in ts] for e, ts in between.items()},
                     len(legend) * _LINE + 30)  # fmt: skip
    drawn: list[str] = []
    labels: list[str] = []
    lowest = max((p.y + 18 for p in places), default=0)
    for (a, b), ts in between.items():
        path, (x, y) = _path(places[a], places[b], a == b, (b, a) in between)
        dashed = "" if any(t.marks for t in ts) else ' class="skip"'
        drawn.append(f'<path{dashed} d="{path}" marker-end="url(#arrow)"/>')
        labels += _text([_label(t, names) for t in ts], x, y)
        lowest = max(lowest, y)
    for q in automaton.starts:
        p = places[q]
        drawn.append(f'<path d="M{p.x - p.half - 34:.0f},{p.y:.0f} L{p.x - p.half:.0f},{p.y:.0f}" '
                     'marker-end="url(#arrow)"/>')  # fmt: skip
    nodes = [part for q in range(automaton.states) for part in _state(automaton, q, places[q])]
    width = max([p.x + p.half for p in places] + [len(line) * _CHARACTER for line in legend], default=0) + 40
    box = [f'<text class="legend" x="16" y="{22 + i * _LINE}">{escape(line)}</text>' for i, line in enumerate(legend)]
    head = _HEAD.format(width=round(width), height=round(lowest + 30))
    return "\n".join([head, *box, *drawn, *nodes, *labels, "</svg>", ""])


_HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"
 viewBox="0 0 {width} {height}">
<style>
text {{ font: 11px monospace; text-anchor: middle; fill: #222; paint-order: stroke; stroke: #fff; stroke-width: 4px; }}
.legend {{ text-anchor: start; }}
path {{ fill: none; stroke: #333; }} path.skip {{ stroke-dasharray: 4 3; stroke: #777; }}
rect {{ fill: #fff; stroke: #333; }}
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<polygon points="0,1 8,4 0,7" fill="#333"/></marker></defs>"""


def _columns(automaton: RMA) -> list[list[int]]:
    """The states in columns by distance from a start; a column is ordered by the places of its states' predecessors."""
    distance = dict.fromkeys(sorted(automaton.starts), 0)
    todo = list(distance)
    for q in todo:
        for t in automaton.leaving[q]:
            if t.target not in distance:
                distance[t.target] = distance[q] + 1
                todo.append(t.target)
    for q in range(automaton.states):
        distance.setdefault(q, 0)
    columns: list[list[int]] = [[] for _ in range(max(distance.values(), default=-1) + 1)]
    for q, far in distance.items():
        columns[far].append(q)
    row: dict[int, float] = {}
    for column in columns:
        entered: dict[int, list[float]] = {q: [] for q in column}
        for t in automaton.transitions:
            if t.target in entered and t.source in row and t.source not in entered:
                entered[t.target].append(row[t.source])
        column.sort(key=lambda q: sum(entered[q]) / len(entered[q]) if entered[q] else 0)
        row.update({q: i - (len(column) - 1) / 2 for i, q in enumerate(column)})
    return columns


def _places(
    automaton: RMA, columns: list[list[int]], labels: dict[tuple[int, int], list[str]], top: float
) -> list[_Place]:
    rows = max(map(len, columns), default=0)
    middle = top + 60 + (rows - 1) * _ROW / 2
    places = [_Place(0, 0, 0)] * automaton.states
    x = 60.0
    for i, column in enumerate(columns):
        half = max(max(18.0, len(automaton.names[q]) * _CHARACTER / 2 + 8) for q in column)
        x += half
        for k, q in enumerate(column):
            own = max(18.0, len(automaton.names[q]) * _CHARACTER / 2 + 8)
            places[q] = _Place(x, middle + (k - (len(column) - 1) / 2) * _ROW, own)
        following = set(columns[i + 1]) if i + 1 < len(columns) else set()
        widths = [len(s) for (a, b), texts in labels.items() for s in texts
                  if (a in column and (b in following or a == b)) or (b in column and a in following)]  # fmt: skip
        x += half + _GAP + max(widths, default=0) * _CHARACTER
    return places


def _state(automaton: RMA, q: int, p: _Place) -> list[str]:
    def outline(margin: float) -> str:
        w, h = 2 * (p.half - margin), 36 - 2 * margin
        return (f'<rect x="{p.x - p.half + margin:.0f}" y="{p.y - 18 + margin:.0f}" width="{w:.0f}" '
                f'height="{h:.0f}" rx="{h / 2:.0f}"/>')  # fmt: skip

    double = [outline(3)] if q in automaton.finals else []
    return [outline(0), *double, *_text([automaton.names[q]], p.x, p.y + 4)]


def _path(a: _Place, b: _Place, loop: bool, both_ways: bool) -> tuple[str, tuple[float, float]]:
    """The line from a to b, and where its label goes."""
    if loop:
        top = a.y - 18
        control = f"{a.x - 26:.0f},{top - 34:.0f} {a.x + 26:.0f},{top - 34:.0f}"
        return f"M{a.x - 10:.0f},{top:.0f} C{control} {a.x + 10:.0f},{top:.0f}", (a.x, top - 30)
    right = b.x > a.x
    x1, x2 = (a.x + a.half, b.x - b.half) if right else (a.x - a.half, b.x + b.half)
    y1, y2 = a.y, b.y
    if a.x == b.x:
        down = 18 if b.y > a.y else -18
        x1, x2, y1, y2 = a.x, b.x, a.y + down, b.y - down
    far = min(260.0, max(0.0, abs(b.x - a.x) - 260) * 0.35)  # around the states in between
    bow = (-30 - far if both_ways else 0) if right else 40 + far
    mx, my = (x1 + x2) / 2 + (30 if a.x == b.x else 0), (y1 + y2) / 2 + bow
    return f"M{x1:.0f},{y1:.0f} Q{mx:.0f},{my:.0f} {x2:.0f},{y2:.0f}", (mx, (y1 + y2) / 4 + my / 2 - 5)


def _text(lines: list[str], x: float, y: float) -> list[str]:
    """Lines of text, the last one at y."""
    first = y - (len(lines) - 1) * _LINE
    return [f'<text x="{x:.0f}" y="{first + i * _LINE:.0f}">{escape(line)}</text>' for i, line in enumerate(lines)]
