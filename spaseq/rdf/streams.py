"""Named streams: their files, the unit of an event in each, and their common clock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from spaseq.core.errors import EventError, OptionError
from spaseq.rdf.files import expand_files, format_of
from spaseq.rdf.options import ARRIVAL, GENERATED_AT, EventBy, StreamOptions


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A named stream and the files it is read from, one after another. `event_by` overrides the option."""

    iri: str
    files: tuple[str, ...]
    event_by: EventBy | None = None


@dataclass(frozen=True, slots=True)
class GivenSource(StreamSource):
    """A named stream of events in memory: `given`, as of `spaseq.rdf.memory`. It has no files.

    Graphs of an iterator can be read only once: `begin` raises `OptionError` the second time.
    """

    given: Any = None
    begun: list[bool] = field(default_factory=list, compare=False)

    def begin(self) -> Any:
        """The events, to be read from their start."""
        if self.begun and isinstance(self.given, Iterator):
            raise OptionError("these graphs can be read only once", "call run again, with the graphs from their start")
        self.begun.append(True)
        return self.given


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A line of the original engine's stream files: the stream's IRI, its file, the number of triples in an event."""

    iri: str
    path: str
    size: int

    def source(self) -> StreamSource:
        """The stream to open."""
        return StreamSource(self.iri, (self.path,), EventBy("size", self.size))


def settle(options: StreamOptions, sources: Sequence[StreamSource]) -> StreamOptions:
    """`options` with the clock settled for all `sources` together: a predicate or arrival.

    Without a choice by the user, named graphs have `prov:generatedAtTime`, as graphs in memory do to which the program
    gives no time, and everything else arrives. With nothing to read no event lacks a time.

    Raises OptionError if that would give the streams clocks that cannot be compared, and for a file whose format is not
    known.
    """
    clocks: dict[str, str] = {}
    for source in sources:
        if isinstance(source, GivenSource):
            clocks.setdefault(GENERATED_AT, f"stream <{source.iri}>")
        for path in expand_files(source.files):
            named = _event_by(path, source.event_by, options).kind == "graph"
            clocks.setdefault(GENERATED_AT if named else ARRIVAL, path)
    if options.time is not None:
        return options
    if len(clocks) > 1:
        raise OptionError(
            f"{clocks[GENERATED_AT]} has graphs with times and {clocks[ARRIVAL]} has none: their order is unknown",
            'time="PREDICATE" or time_from="arrival", for all streams',
        )
    return replace(options, time=next(iter(clocks), GENERATED_AT))


def merged_files(source: StreamSource, options: StreamOptions) -> tuple[StreamSource, ...]:
    """The parts of a stream that are to be merged by time: each of its files alone.

    With times from arrival, or with more than `options.merge` files, which would all be open at once, the only part is
    the stream itself: its files one after another.
    """
    files = expand_files(source.files)
    if options.time == ARRIVAL or not 1 < len(files) <= options.merge:
        return (source,)
    return tuple(StreamSource(source.iri, (file,), source.event_by) for file in files)


def _event_by(path: str, own: EventBy | None, options: StreamOptions) -> EventBy:
    """The unit that makes an event in the file `path`: the given one, or the one that its format suggests."""
    form = format_of(path, options.format)
    told = own or options.event_by
    if told is None:
        return EventBy("graph" if form.named else "subject" if form.lines else "file")
    if told.kind == "graph" and not form.named and not form.lines:
        return EventBy("file")
    return told


def file_options(path: str, source: StreamSource, options: StreamOptions) -> StreamOptions:
    """`options`, settled for all streams, with `event_by` settled for the file `path` of `source`."""
    return replace(options, event_by=_event_by(path, source.event_by, options))


def check_names(sources: Sequence[StreamSource]) -> None:
    """OptionError if two streams have one name."""
    names = [source.iri for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise OptionError(f"stream {name} is given twice", "give all its files at once: --stream NAME=FILE,FILE")


_LINE: Final = re.compile(r"^<([^<>\s]+)>\s+(?:<([^<>]+)>|(\S+))\s+([0-9]{1,9})$")


def parse_streams_file(path: str) -> list[StreamSpec]:
    """The streams that a stream file of the original engine names, a line `<iri> <path> N` each; `#` begins a comment.

    The paths in such files are often those of another machine. Each is tried as it stands, then from the stream file's
    own folder, then by its last part in that folder. EventError with file and line for any other line, and for a file
    found in none of these places.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise EventError("no such file", source=path) from None
    except UnicodeDecodeError:
        raise EventError("cannot read: this is not UTF-8 text", source=path) from None
    except OSError as error:
        raise EventError(f"cannot read: {error.strerror or error}", source=path) from error
    specs: list[StreamSpec] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            specs.append(_spec(line.strip(), path, number))
    return specs


def _spec(line: str, path: str, number: int) -> StreamSpec:
    found = _LINE.match(line)
    size = int(found[4]) if found else 0
    if found is None or size == 0:
        raise EventError(
            f"not a stream: {line}",
            source=path,
            record=number,
            hint="a line is <iri of the stream> <file> triples-per-event",
        )
    wanted = Path(found[2] or found[3])
    folder = Path(path).parent
    for place in (wanted, folder / wanted, folder / wanted.name):
        if place.is_file():
            return StreamSpec(found[1], str(place), size)
    raise EventError(
        f"no such file: {wanted}",
        source=path,
        record=number,
        hint=f"neither there, nor in {folder}; put it beside the streams file",
    )
