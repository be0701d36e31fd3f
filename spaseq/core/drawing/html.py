"""Queries, matches and steps as HTML for notebooks: of bounded size, with all text escaped."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any, Final

from spaseq.core.drawing.picture import Picture
from spaseq.core.errors import LimitReached, OptionError, SpaseqError
from spaseq.core.events.time import CALENDAR, format_time
from spaseq.core.measure import shorten
from spaseq.core.watch import TEXT_LENGTH, limited

_ROWS: Final = 10
_COLUMNS: Final = 12
_CELL: Final = 60
_TEXT: Final = 20_000
"""Characters of a query."""
_PICTURE: Final = 200_000
"""Characters of a drawing, beyond which it is left out."""


_SECONDS: Final = (2.0, 20.0)
"""Seconds of the search for matches. If the first search finds none, a longer one follows, as the first run waits for
kernels to be compiled."""


class _Within:
    """The limits of looking at matches, as `spaseq.core.watch.limited` reads them."""

    memory_limit = None
    text_length = TEXT_LENGTH

    def __init__(self, seconds: float) -> None:
        self.time_limit = seconds


def table_html(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table; numbers are aligned at the right, a column's name as its first value, and texts shortened."""
    rows = list(rows)
    named = "".join(
        f'<th style="text-align:{_side(rows[0][i] if rows else name)}">{_cell(name)}</th>'
        for i, name in enumerate(head[:_COLUMNS])
    )
    lines = ["<table>", f"<thead><tr>{named}</tr></thead>"]
    for row in rows:
        cells = (f'<td style="text-align:{_side(cell)}">{_cell(cell)}</td>' for cell in row[:_COLUMNS])
        lines.append(f"<tr>{''.join(cells)}</tr>")
    more = f" {len(head) - _COLUMNS} more columns." if len(head) > _COLUMNS else ""
    lines.append("</table>")
    return "\n".join([*lines, f"<p>{escape(caption)}{more}</p>"] if caption or more else lines)


def text_html(text: str) -> str:
    """Lines of text, in letters of one width, which a notebook does not give them by itself."""
    return f'<pre style="font-family:monospace; white-space:pre-wrap">{escape(text)}</pre>'


def query_html(text: str, warnings: Sequence[str], picture: Picture) -> str:
    """The text of a query, its warnings, and its automaton if Graphviz can draw it."""
    lines = [text_html(text[:_TEXT] + ("…" if len(text) > _TEXT else ""))]
    lines += [f"<p>warning: {escape(shorten(warning, 400))}</p>" for warning in warnings[:_ROWS]]
    try:
        svg = picture.svg()
    except OptionError:
        svg = ""
    return "\n".join([*lines, svg] if len(svg) <= _PICTURE else lines)


def matches_html(matches: Any, head: Sequence[str], row: Callable[[Any], Sequence[Any]]) -> str:
    """The first matches, or the reason why there is none. The matches shown come from a separate use of `matches`,
    limited to two seconds if there are any. So `matches` and its counters stay as they are."""
    for seconds in _SECONDS:
        rows: list[Sequence[Any]] = []
        notes: list[str] = []
        ended = True
        said = ""
        try:
            with limited(_Within(seconds)):
                used = copy.copy(matches)
                for match in islice(used, _ROWS + 1):
                    ended = len(rows) < _ROWS
                    if ended:
                        rows.append(row(match))
                notes = [] if rows else used.why_none()
        except LimitReached:
            ended, said = False, f"; nothing was looked for beyond {seconds:g} seconds"
        except SpaseqError as error:
            return text_html(str(error))
        if rows or ended:
            break
    count = f"{len(rows)} match{'' if len(rows) == 1 else 'es'}"
    if not ended:
        count = f"the first {len(rows)} matches" if rows else "no match so far"
    told = [f"<p>{escape(shorten(note, 400))}</p>" for note in notes]
    return "\n".join([table_html(head, rows, f"{count}{said}."), *told])


def match_html(match: Any) -> str:
    """The steps of a match, or its positions and times if its events are not known."""
    try:
        steps = match.steps
    except OptionError:
        pairs = zip(match.positions, match.times, strict=False)
        return table_html(("position", "time"), [(place, time_text(time)) for place, time in islice(pairs, _ROWS)])
    shown = [
        (step.name, step.position, time_text(step.time), event_text(step.event, _local)) for step in steps[: 2 * _ROWS]
    ]
    more = f"{len(steps) - len(shown):,} more steps." if len(steps) > len(shown) else ""
    return table_html(("step", "position", "time", "event"), shown, more)


def step_html(step: Any) -> str:
    """A step as a table of its event, with an attribute or a triple in each row."""
    if isinstance(step.event, dict):
        head: tuple[str, ...] = ("attribute", "value")
        rows: Iterable[Sequence[Any]] = step.event.items()
    else:
        head, rows = ("subject", "predicate", "object"), step.event.triples
    caption = f"{step.name} at position {step.position}, {time_text(step.time)}"
    return table_html(head, islice(rows, 10 * _ROWS), caption)


def time_text(time: int) -> str:
    """A time for people."""
    return format_time(time) if abs(time) >= CALENDAR else f"{time / 1e9:,.9g} s"


def event_text(event: Any, term: Callable[[Any], str] = str) -> str:
    """The first values or triples of an event, for people; `term` writes a term of a triple."""
    if isinstance(event, dict):
        return "  ".join(f"{name}={value}" for name, value in islice(event.items(), _COLUMNS))
    return " . ".join(" ".join(map(term, triple)) for triple in event.triples[:_ROWS])


def _local(term: Any) -> str:
    """A term as short as it can be: of an IRI the last part, since a cell has not room for a triple."""
    text = str(term)
    return re.split("[/#]", text.rstrip("/#"))[-1] if re.match(r"\w+://\S+$", text) else text


def _side(value: Any) -> str:
    return "right" if isinstance(value, int | float) else "left"


def _cell(value: Any) -> str:
    return escape(shorten(str(value), _CELL))
