"""The setups that the page can begin with: the query and the files of the command line, and each example."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.core.words import language_of
from spaseq.tools.command.demos import DEMOS, examples_folder
from spaseq.tools.studio.language import READING, Inputs

TEXT: Final = 1_000_000
"""Bytes of events that the page shows as text; larger files are read from disk."""
ENDINGS: Final = (
    *(".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json"),
    *(".nt", ".ntriples", ".nq", ".nquads", ".ttl", ".turtle", ".trig", ".n3", ".rdf", ".owl", ".xml", ".jsonld"),
)
"""Of files whose text the page shows: the readers know their form by the name."""
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f/\\:,*?\[\]=.~-][^\x00-\x1f\x7f/\\:,*?\[\]]*")
_EMPTY: Final = {
    "ceql": "SELECT *\nWHERE A AS x ; B AS y\nWITHIN 10 EVENTS\n",
    "spaseq": "PREFIX : <http://example.org/>\nSELECT ?x\nFROM STREAM S1 <http://example.org/stream>\nWHERE {\n"
    '  SEQ (A; B)\n  DEFINE GPM A ON S1 { ?x :state "on" }\n  DEFINE GPM B ON S1 { ?x :state "off" }\n}\n',
}
"""The setup that the page begins with if no query is named."""


def is_name(text: str) -> bool:
    """True if a file of one folder may have this name: it names no folder, no pattern, no list, and no option."""
    return _NAME.fullmatch(text) is not None and len(text.encode(errors="replace")) <= 200


@dataclass(frozen=True, slots=True)
class File:
    """A file of events (`events`, `stream`) or of knowledge (`kb`), by the name of the stream or the IRI; `path` as it
    was given."""

    role: str
    name: str
    path: str

    def text(self) -> str | None:
        """The text of the file. None if it is no text or too long, or if the name stands for several files, or for none
        for which a text could be sent."""
        try:
            name = os.path.basename(self.path)
            if os.path.getsize(self.path) > TEXT or not name.lower().endswith(ENDINGS) or not is_name(name):
                return None
            return Path(self.path).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError, ValueError):
            return None


@dataclass(frozen=True)
class Setup:
    """A query with its inputs. `file` is the path of the query, or a name for it if it is in no file."""

    name: str
    about: str
    language: str
    file: str
    query: Callable[[], str]
    files: tuple[File, ...] = ()
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def names(self) -> list[str]:
        """The page's name for each of the files: files of two folders have two names, also on a system that ignores
        case."""
        names: dict[str, str] = {}  # by path
        for file in self.files:
            base = name = os.path.basename(file.path)
            taken = {other.lower() for path, other in names.items() if path != file.path}
            number = 1
            while name.lower() in taken:
                number += 1
                name = f"{number}-{base}"
            names[file.path] = name
        return [names[file.path] for file in self.files]

    @property
    def paths(self) -> dict[tuple[str, str, str], str]:
        """The path of each file by its role, its name and the page's name for it."""
        return {(f.role, f.name, shown): f.path for f, shown in zip(self.files, self.names, strict=True)}

    def form(self, *, whole: bool) -> dict[str, Any]:
        """As JSON; `whole`: with the texts."""
        form: dict[str, Any] = {"name": self.name, "about": self.about, "language": self.language}
        if not whole:
            return form
        form |= {"source": os.path.basename(self.file), "query": self.query()}
        form["files"] = [
            {"role": file.role, "name": file.name, "file": shown, "text": file.text()}
            for file, shown in zip(self.files, self.names, strict=True)
        ]
        form |= {"reading": dict(self.inputs.reading), "valuations": self.inputs.valuations}
        return form


def examples(parse: Callable[[Sequence[str]], argparse.Namespace]) -> Iterator[Setup]:
    """The examples that `demo` runs, none if they are not installed; `parse` parses the words of `studio`."""
    import shlex

    try:
        folder = examples_folder()
    except OptionError:
        return
    for name, demo in DEMOS.items():
        words = [word.replace("{}", str(folder / demo.folder)) for word in shlex.split(demo.words)]
        options = parse(words)
        yield _setup(name, demo.about, options, demo.command)


def of_command_line(options: argparse.Namespace, command: str) -> Setup | None:
    """The setup of the command line; None if it names nothing."""
    if options.query is None and not options.stream and not options.events:
        return None
    return _setup("", "the command line", options, command)


def _setup(name: str, about: str, options: argparse.Namespace, command: str) -> Setup:
    language = options.language or language_of(options.query or "") or command
    reading = {word: getattr(options, word) for word in READING[language]}
    inputs = Inputs(
        groups={iri: given.split(",") for iri, given in map(_name_parser("--groups"), options.groups)},
        reading={word: str(value) for word, value in reading.items() if value is not None},
        valuations=options.valuations,
    )
    file = options.query or ""
    if not os.path.exists(file) or not is_name(os.path.basename(file)):  # the text of a query, or of standard input
        file = "query.ceql" if language == "ceql" else "query.rq"
    query = _text(options.query, language)
    return Setup(name, about, language, file, query, tuple(_files(options)), inputs)


def _text(path: str | None, language: str) -> Callable[[], str]:
    """The text of a query, read on first use; an unreadable file is reported now."""
    if path is None:
        return lambda: _EMPTY[language]
    from spaseq.tools.command.frame import query_text

    text, _ = query_text(path)
    if os.path.exists(path):
        return lambda: query_text(path)[0]
    return lambda: text


def _files(options: argparse.Namespace) -> Iterator[File]:
    for path in options.events:
        if path == "-":
            raise OptionError("the studio cannot read events from standard input", "name a file")
        if "=" in path and not os.path.exists(path):
            raise OptionError(
                f"--events {path}: no such file; the studio has no TYPE=FILE", "give the files a column type"
            )
        yield File("events", "", path)
    for option, role in (("stream", "stream"), ("kb", "kb")):
        for name, paths in map(_name_parser(f"--{option}"), getattr(options, option)):
            yield from (File(role, name.strip("<>"), path) for path in paths.split(",") if path)


def _name_parser(option: str) -> Callable[[str], tuple[str, str]]:
    def parts(text: str) -> tuple[str, str]:
        name, equals, rest = text.partition("=")
        if not (name and equals and rest):
            raise OptionError(f"{option} {text}: not of the form NAME=FILE[,FILE…]")
        return name, rest

    return parts
