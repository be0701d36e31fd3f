"""The answers of the studio and the language server about a query, as JSON: errors in one form, checks, runs.

`start` and `end` of an error count UTF-16 code units from the start of the text, as JavaScript and editors do. `line`
and `column` count from 1, in characters, as the commands do.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import Any, Final

from spaseq.core.drawing import Picture, time_text
from spaseq.core.engine import Settings
from spaseq.core.errors import OptionError, QueryError, SpaseqError, in_reader_words
from spaseq.core.measure import shorten
from spaseq.core.watch import limited
from spaseq.tools.studio.language import Found, Inputs, Language, language
from spaseq.tools.studio.replies import NOWHERE, VERSION

_CELL: Final = 2_000
"""Characters of a cell."""
_SIZE: Final = 2_000_000
"""Characters of a picture or of an explanation; larger ones are left out."""
_STEPS: Final = 60
"""Steps of a match that are listed."""
_DRAWN: Final = 200
"""Matches of the timeline."""


def code_units(text: str, offset: int) -> int:
    """A place in the text in UTF-16 code units; `offset` counts code points."""
    return offset + sum(c > "\uffff" for c in text[:offset])


def error_form(error: SpaseqError, text: str = "") -> dict[str, Any]:
    """An error as JSON; `text` is the query, for the place of the error in it."""
    form: dict[str, Any] = {"kind": type(error).__name__, "problem": getattr(error, "problem", str(error)), "hint": ""}
    form["hint"] = getattr(error, "hint", "")
    if not isinstance(error, (QueryError, OptionError)):  # its text says the place
        form["problem"], _, form["hint"] = str(error).partition("\nhint: ")
    form |= {"problem": in_reader_words(form["problem"]), "hint": in_reader_words(form["hint"]), **NOWHERE}
    if isinstance(error, QueryError):
        form["expected"] = list(error.expected)
        if error.span is not None:
            start, end = min(error.span.start, len(text)), min(error.span.end, len(text))
            form |= {"line": error.span.line, "column": error.span.column}
            form |= {"start": code_units(text, start), "end": code_units(text, end)}
    return form


def query_errors(name: str, text: str, source: str, settings: Settings) -> tuple[Any, list[dict[str, Any]]]:
    """The query, or None, and its errors."""
    try:
        with limited(settings):
            return language(name).compiled(text, source, settings), []
    except SpaseqError as error:
        return None, [error_form(error, text)]


def check_form(
    name: str, text: str, source: str, inputs: Inputs, settings: Settings, *, draws: bool = True
) -> dict[str, Any]:
    """The findings about a query before it is run; if it `draws`, the text of its plan and its automaton."""
    query, errors = query_errors(name, text, source, settings)
    form: dict[str, Any] = {"version": VERSION, "errors": errors, "warnings": [], "notes": []}
    form |= _as_words(language(name), source, inputs)
    if query is None:
        return form
    form["warnings"] = list(query.warnings)
    form["notes"] = list(map(in_reader_words, [*query.advice, *query.growth]))
    if draws:
        form["explain"] = _shorten(query.explain())
        form["automaton"] = _draw(query.picture())
    return form


def run_form(name: str, text: str, source: str, inputs: Inputs, settings: Settings, limit: int) -> dict[str, Any]:
    """The first `limit` matches of a query, as a table and on a time axis, and the report of the run."""
    began = perf_counter()
    query, errors = query_errors(name, text, source, settings)
    if query is None:
        return {"version": VERSION, "errors": errors}
    spoken = language(name)
    try:
        with limited(settings):
            matches = spoken.matches(query, inputs)
            found = spoken.found(query, matches, limit)
    except SpaseqError as error:
        return {"version": VERSION, "errors": [error_form(error, text)]}
    seconds = perf_counter() - began
    form = _results(spoken, query, found)
    form |= _lit(spoken, query, matches, found, settings)
    form["errors"] = [] if found.ended is None else [error_form(found.ended, text)]
    shown = len(found.rows) or int(found.more or found.ended is not None)  # else nothing was found, and it is said why
    form["warnings"], notes = spoken.remarks(query, matches, shown)
    form["notes"] = list(map(in_reader_words, notes))
    return form | {"events": matches.counters.events, "seconds": round(seconds, 3)}


def _results(spoken: Language, query: Any, found: Found) -> dict[str, Any]:
    rows = [[shorten(cell, _CELL) for cell in row] for row in found.rows]
    timeline = spoken.timeline(query, found.matches, _DRAWN).svg() if found.matches else ""
    return {
        "version": VERSION,
        "columns": [{"name": name, "kind": kind} for name, kind in found.columns],
        "rows": rows,
        "matches": list(found.of),
        "truncated": found.more,
        "timeline": timeline if len(timeline) <= _SIZE else "",
        "drawn": min(len(found.matches), _DRAWN),
        "steps": [_steps(spoken, query, match) for match in found.matches],
    }


def _steps(spoken: Language, query: Any, match: Any) -> list[list[Any]]:
    """(name, position, time, event) of the known steps of a match."""
    try:
        steps = match.steps
    except OptionError:
        return []
    return [
        [step.name, step.position, time_text(step.time), shorten(spoken.event(query, step.event), 400)]
        for step in islice(steps, _STEPS)
    ]


def _lit(spoken: Language, query: Any, matches: Any, found: Found, settings: Settings) -> dict[str, Any]:
    """The automaton after the run, and for each match the classes of the parts on its way."""
    try:
        with limited(settings):
            picture, ways = spoken.lit(query, matches, found)
    except SpaseqError:  # the limits are spent: the user wanted the matches
        return {"ways": []}
    return {"automaton": _draw(picture), "ways": list(map(list, ways))}


def _draw(picture: Picture) -> dict[str, str]:
    try:
        svg = _shorten(picture.svg())
    except SpaseqError as error:
        form = error_form(error)
        return {"svg": "", "problem": form["problem"], "hint": form["hint"]}
    return {"svg": svg, "problem": "" if svg else "the drawing is too large to show", "hint": ""}


def _shorten(text: str) -> str:
    return text if len(text) <= _SIZE else ""


def _as_words(spoken: Language, source: str, inputs: Inputs) -> dict[str, str]:
    try:
        return {"python": spoken.python(source, inputs), "command": shlex.join(spoken.command(source, inputs)) + "\n"}
    except OptionError as error:
        return {"python": "", "command": "", "input": str(error)}


def with_files(inputs: Inputs, paths: Sequence[tuple[str, str, str]]) -> Inputs:
    """`inputs` over files, given as (role, name, path): of `events`, `stream` or `kb`."""
    streams: dict[str, list[str]] = {}
    known: dict[str, list[str]] = {}
    events: list[str] = []
    for role, name, path in paths:
        if role == "events":
            events.append(path)
        else:
            (streams if role == "stream" else known).setdefault(name, []).append(path)
    return replace(inputs, events=tuple(events), streams=streams, knowledge=known)
