"""The inputs of `--stream`, `--streams`, `--kb`, `--groups` and `--spark`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spaseq.core.errors import OptionError
from spaseq.language.query import Query
from spaseq.language.runtime.opened import Reads
from spaseq.rdf import Grouped, StreamOptions, StreamSource, parse_streams_file
from spaseq.tools.command import times_of

_STDIN: Final = "<stdin>"
"""The name in errors of a query from standard input."""


def stream_options_of(options: argparse.Namespace) -> StreamOptions:
    """The options of the command for reading streams."""
    own = {"event_by": options.event_by, "ties": options.ties, "malformed": options.malformed}
    return StreamOptions.parse(**own, **times_of(options))


def stream_files(query: Reads, given: Sequence[str], streams_file: str | None) -> dict[str, StreamSource]:
    """The streams of a query, or of a network, by IRI.

    They are in `NAME=FILE[,FILE…]` options and in a stream file of the original engine. An option overrides the stream
    file. A stream of the stream file that the query does not read is left out.
    """
    iris = {name: iri for key, iri in query.streams for name in (key, iri)}
    sources: dict[str, StreamSource] = {}
    if streams_file is not None:
        for spec in parse_streams_file(streams_file):
            if spec.iri in iris:
                sources[spec.iri] = spec.source()
    named: set[str] = set()
    for text in given:
        name, files = _split(text, iris, "--stream", "NAME=FILE[,FILE…]")
        iri = iris.get(name)
        if iri is None:
            known = ", ".join(key for key, _ in query.streams)
            raise OptionError(f"--stream {text}: the query has no stream {name}", f"it reads {known}")
        if iri in named:
            raise OptionError(f"--stream {text}: stream {name} is given twice", "give all its files: NAME=FILE,FILE")
        named.add(iri)
        sources[iri] = StreamSource(iri, tuple(part for part in files.split(",") if part))
    asked = [
        getattr(query, "source", None) == _STDIN,
        *(path == "-" for source in sources.values() for path in source.files),
    ]
    if sum(asked) > 1:
        raise OptionError("standard input is asked for twice", "only one of the query and the streams' files can be -")
    return sources


def graphs_of(query: Query) -> set[str]:
    """The IRIs of the background knowledge that a query names."""
    return {iri for pattern in query.checked.patterns.values() for iri in pattern.graphs}


def knowledge_files(named: Iterable[str], given: Sequence[str]) -> dict[str, list[str]]:
    """The files of background knowledge by IRI, from `IRI=FILE[,FILE…]` options; one IRI may be given several times.
    `named`: the IRIs that the query names."""
    graphs = {iri: iri for iri in sorted(named)}
    files: dict[str, list[str]] = {}
    for text in given:
        iri, paths = _split(text, graphs, "--kb", "IRI=FILE")
        iri = iri.removeprefix("<").removesuffix(">")
        if any(c in iri for c in '<>"{}|^`\\ \t\n'):
            raise OptionError(f"--kb {text}: <{iri}> is no IRI", "write it as the query does behind GRAPH")
        files.setdefault(iri, []).extend(part for part in paths.split(",") if part)
    return files


def grouped_files(files: Mapping[str, list[str]], given: Sequence[str]) -> dict[str, Any]:
    """The background knowledge with the groups of `IRI=PROPERTY[,PROPERTY…]` options; one IRI may be given several
    times."""
    by: dict[str, list[str]] = {}
    for text in given:
        iri, properties = _split(text, dict.fromkeys(files, ""), "--groups", "IRI=PROPERTY", "property")
        iri = iri.removeprefix("<").removesuffix(">")
        if iri not in files:
            raise OptionError(f"--groups {text}: there is no knowledge <{iri}>", f"--kb {iri}=FILE gives it")
        by.setdefault(iri, []).extend(part for part in properties.split(",") if part)
    return {iri: Grouped(value, by[iri]) if iri in by else value for iri, value in files.items()}


def spark_settings(given: Sequence[str]) -> dict[str, str]:
    """Settings of Spark's, from `NAME=VALUE` options."""
    for text in given:
        if not text.partition("=")[1] or not text.partition("=")[0].startswith("spark."):
            raise OptionError(f"--spark {text}: not of the form spark.NAME=VALUE")
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def _split(text: str, known: dict[str, str], option: str, form: str, what: str = "file") -> tuple[str, str]:
    """The name and the files of an option; a known name may itself hold '='."""
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, _some(text[len(name) + 1 :], text, option, form, what)
    name, equals, files = text.partition("=")
    if not equals or not name:
        hint = f"name it too: {option} {next(iter(known))}={text}" if known and not equals else ""
        raise OptionError(f"{option} {text}: not of the form {form}", hint)
    return name, _some(files, text, option, form, what)


def _some(files: str, text: str, option: str, form: str, what: str) -> str:
    if not files.strip(","):
        raise OptionError(f"{option} {text}: names no {what}", f"write {option} {form}")
    return files
