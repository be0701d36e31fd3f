"""The interface of a language for the studio and for editors, and the modules that have it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from spaseq.core.words import TEXT_FORM

if TYPE_CHECKING:
    from spaseq.core.drawing import Picture, Timeline
    from spaseq.core.engine import Settings
    from spaseq.core.errors import SpaseqError

_MODULES: Final = {"ceql": "ceql.cli.studio", "spaseq": "spaseq.cli.studio"}
"""The module with the `STUDIO` of each language. Nothing of spaseq imports ceql, so it is named here."""
_TIMES: Final = ("time", "time_from", "time_unit", "interval", "lateness", "late")
READING: Final = {
    "ceql": ("type_column", "type", *_TIMES, *TEXT_FORM),
    "spaseq": ("event_by", *_TIMES, "ties", "malformed", "entailment"),
}
"""By language, the words of its `run` that say how events are read; none names a file."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files to run over: of all events, by the names of streams, by the IRIs of knowledge; the groups of knowledge
    by IRI. `reading`: the words for reading them (`READING`). `valuations`: True if matches of CEQL are valuations."""

    events: tuple[str, ...] = ()
    streams: Mapping[str, Sequence[str]] = field(default_factory=dict)
    knowledge: Mapping[str, Sequence[str]] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reading: Mapping[str, str] = field(default_factory=dict)
    valuations: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """The first matches, and the table of results. `columns` are (name, kind of its values), `rows` texts, `of` by row
    the number of its match, or None. `more`: True if there are others. `ended`: the error that ended the run early."""

    matches: Sequence[Any]
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str]]
    of: Sequence[int | None]
    more: bool = False
    ended: SpaseqError | None = None


class Language(Protocol):
    """A language, as the studio asks for it. Queries and matches are those of `spaseq.core.protocols`."""

    def compiled(self, text: str, source: str, settings: Settings) -> Any:
        """The query. Raises `QueryError`s that name it `source`."""

    def matches(self, query: Any, inputs: Inputs) -> Any:
        """The matches over files, lazily. Raises `OptionError` for inputs that do not fit the query."""

    def found(self, query: Any, matches: Any, limit: int) -> Found:
        """The first `limit` matches."""

    def timeline(self, query: Any, matches: Sequence[Any], limit: int) -> Timeline:
        """The first `limit` of the matches on a time axis."""

    def event(self, query: Any, event: Any) -> str:
        """An event as a line of text."""

    def lit(self, query: Any, matches: Any, found: Found) -> tuple[Picture, Sequence[Sequence[str]]]:
        """The automaton, lit by the run that gave `matches`, and the classes of the parts on the way of each match in
        `found`."""

    def remarks(self, query: Any, matches: Any, written: int) -> tuple[list[str], list[str]]:
        """Warnings and notes of a run that showed so many results, as the command prints them."""

    def python(self, file: str, inputs: Inputs) -> str:
        """The run as Python."""

    def command(self, file: str, inputs: Inputs) -> list[str]:
        """The run as the words of a command."""


def language(name: str) -> Language:
    """The language of this name, a key of `spaseq.core.words.LANGUAGES`. Imports its modules."""
    found: Language = importlib.import_module(_MODULES[name]).STUDIO
    return found


def reading_words(inputs: Inputs) -> list[str]:
    """The words of a command that say how events are read."""
    return [part for name, value in inputs.reading.items() for part in (f"--{name.replace('_', '-')}", value)]


def one_or_all(files: Sequence[str]) -> str | list[str]:
    """Files as the libraries take them."""
    return files[0] if len(files) == 1 else list(files)


def python_run(module: str, file: str, arguments: Sequence[str]) -> str:
    """A run as Python; `arguments` are those of `run`, as text."""
    lines = [
        f"import {module}",
        "",
        f"with open({file!r}, encoding='utf-8-sig') as file:",
        f"    query = {module}.compile(file.read())",
        f"matches = query.run({', '.join(arguments)})",
        "for match in matches:",
        "    print(match.start, match.end, match.bindings)",
    ]
    return "\n".join(lines) + "\n"
