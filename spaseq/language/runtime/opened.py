"""The streams of a run: by name, and as they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from spaseq.core.errors import OptionError, expect_type
from spaseq.core.events.options import known_words
from spaseq.language.runtime.read_ahead import Part
from spaseq.language.runtime.unmatched import Input
from spaseq.rdf import (
    Counters,
    EventBy,
    GivenSource,
    StreamOptions,
    StreamSource,
    StreamWords,
    check_given,
    given_batches,
    merged_files,
)

Streams = MappingABC[str, Any]
"""By name or IRI: a path, a list of paths, a `StreamSource`; for `run` graphs in memory, too."""


class Reads(Protocol):
    """A reader of streams: a checked query, or a network. `streams`: (name, IRI) of each, in order."""

    @property
    def streams(self) -> Sequence[tuple[str, str]]: ...


@dataclass(frozen=True, slots=True)
class Opened:
    """Open streams: their parts, in the order of the FROM clause; True if each event is an instant of its own; the
    counts of the input."""

    parts: Sequence[Part]
    apart: bool
    counters: Counters
    read: Input


def by_iri(streams: MappingABC[str, Any], query: Reads) -> dict[str, Any]:
    """`streams` by IRI, in order of the FROM clause; given by name or IRI. Raises `OptionError` for unknown and missing
    ones, and if it is no mapping."""
    if not isinstance(streams, MappingABC):
        hint = f'for example streams={{"{query.streams[0][0]}": "events.nq"}}'
        raise OptionError(f"streams are given by name, not as a {type(streams).__name__}", hint)
    found: dict[str, Any] = {}
    iris = {name: iri for key, iri in query.streams for name in (key, iri)}
    for name, value in streams.items():
        if name not in iris:
            known = ", ".join(key for key, _ in query.streams)
            raise OptionError(f"the query has no stream {name}", f"it reads {known}")
        if iris[name] in found:
            raise OptionError(f"stream {name} is given twice, by its name and by its IRI")
        found[iris[name]] = value
    for name, iri in query.streams:
        if iri not in found:
            raise OptionError(f"no file is given for stream {name} <{iri}>", f"give it: --stream {name}=FILE")
    return {iri: found[iri] for _, iri in query.streams}


def open_files(read: Input, wanted: frozenset[str] | None) -> Opened:
    """The streams of files, for the predicates `wanted` (None: for all), and those in memory; late events that are
    asked for have all."""
    from spaseq.rdf.columns.reader import may_read_ahead, read_batches  # loads the kernels

    wanted = wanted if read.settled.on_late is None else None

    parts = []
    for part in (part for source in read.sources for part in merged_files(source, read.settled)):
        counters = Counters()
        if isinstance(part, GivenSource):
            parts.append(Part(partial(given_batches, part, read.settled, counters), counters, ahead=False))
            continue
        batches = partial(read_batches, part, read.settled, counters, wanted)
        parts.append(Part(batches, counters, may_read_ahead(part, read.settled)))
    return Opened(parts, read.settled.apart, Counters(), read)


def stream_options(options: StreamOptions | None, words: MappingABC[str, Any]) -> StreamOptions:
    """The options for reading streams, from `options` or from words of the command line. Raises `OptionError`."""
    given = {key: value for key, value in words.items() if value is not None}
    if options is not None and given:
        raise OptionError(f"give options= or {', '.join(given)}=, not both")
    if options is not None:
        expect_type("options", options, StreamOptions, "StreamOptions.parse(…), or the words by themselves")
        return options
    known_words(given, StreamWords.__annotations__)
    return StreamOptions.parse(**given)


def stream_sources(query: Reads, streams: Streams, *, memory: bool = False) -> list[StreamSource]:
    """The streams to open, in order of the FROM clause; with `memory` also those of graphs that a program has."""
    return [_source(iri, value, memory) for iri, value in by_iri(streams, query).items()]


def check_memory(sources: Sequence[StreamSource], options: StreamOptions) -> None:
    """`OptionError` if `options` make events of files, and there are none."""
    if options.event_by is not None and all(isinstance(source, GivenSource) for source in sources):
        problem = f"event_by={str(options.event_by)!r} makes events of files, and these streams are graphs in memory"
        raise OptionError(problem, "leave it out: each graph is an event")


def _source(iri: str, value: Any, memory: bool) -> StreamSource:
    if memory and _in_memory(value):
        check_given(value, f"stream <{iri}>")
        return GivenSource(iri, (), None, value)
    own = value.event_by if isinstance(value, StreamSource) else None
    value = value.files if isinstance(value, StreamSource) else value
    if own is not None:
        expect_type(f"stream <{iri}>: event_by", own, EventBy, 'EventBy.parse("size:3") makes one')
    files = value if isinstance(value, (list, tuple)) else (value,)
    for file in files:
        if not isinstance(file, str | os.PathLike):
            raise OptionError(
                f"stream <{iri}>: a {type(file).__name__} is no path",
                "give a path or a list of them; Query.run takes graphs, too, and spaseq.spark DataFrames",
            )
    return StreamSource(iri, tuple(map(str, files)), own)


def _in_memory(value: Any) -> bool:
    """True for a value that gives no paths, and may give graphs."""
    if isinstance(value, str | bytes | os.PathLike | StreamSource | MappingABC) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, list | tuple) or (bool(value) and not isinstance(value[0], str | bytes | os.PathLike))
