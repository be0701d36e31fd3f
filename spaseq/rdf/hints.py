"""The guesses of a reader of streams, for options that were not given, and the options that it cannot do without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from rdflib import Literal

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.time import format_duration, is_date
from spaseq.core.events.timestamps import counted_hint
from spaseq.rdf.files import STDIN, expand_files, format_of
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.statements import Statement, read_statements
from spaseq.rdf.streams import StreamSource, file_options

_LOOKED_AT: Final = 500
"""Statements of a file that are looked at for times."""


def no_times(timed: str, sources: Sequence[StreamSource], options: StreamOptions) -> OptionError:
    """Times are needed by `timed`, a clause or an option, and the events have none. Looks for predicates of dates."""
    files = ", ".join(source.files[0] for source in sources if source.files)
    return OptionError(f"{timed} needs the times of the events, and none are named of {files}", _hint(sources, options))


def untimed_events(sources: Sequence[StreamSource], options: StreamOptions) -> str:
    """A line about events that have no times, and how to give them some."""
    said = f"the events are given no times: they count as {format_duration(options.step)} apart, in their order"
    return f"{said} ({_hint(sources, options)})"


def _hint(sources: Sequence[StreamSource], options: StreamOptions) -> str:
    dates = Counter(predicate for source in sources for predicate in _dates(source, options))
    candidates = [predicate for predicate, _ in dates.most_common()]
    return counted_hint("time", candidates, what="predicate", placeholder="PREDICATE")


def guessed_unit(sources: Sequence[StreamSource], options: StreamOptions) -> list[str]:
    """A line if times are numbers and their unit is not given; `options` are settled. Looks into files."""
    if options.time == ARRIVAL or options.time_unit is not None:
        return []
    for source in sources:
        values = (value for _, predicate, value, _, _ in _sample(source, options) if str(predicate) == options.time)
        first = next(values, None)
        if isinstance(first, Literal) and not is_date(str(first)):
            said = f"times are read from {options.time}, as seconds"
            return [f'{said} (time_unit="ms" and time="PREDICATE" read others)']
    return []


def sampled_predicates(source: StreamSource, options: StreamOptions) -> frozenset[str]:
    """The predicates of the first statements of a stream; none of standard input."""
    return frozenset(str(statement[1]) for statement in _sample(source, options))


def _dates(source: StreamSource, options: StreamOptions) -> Iterator[str]:
    """The predicates of the first statements that have a date as their object."""
    for _, predicate, value, _, _ in _sample(source, options):
        if isinstance(value, Literal) and is_date(str(value)):
            yield str(predicate)


def _sample(source: StreamSource, options: StreamOptions) -> Iterator[Statement]:
    try:
        for path in expand_files(source.files)[:1]:
            if path != STDIN:
                yield from islice(read_statements(path, format_of(path, options.format), malformed="drop"), _LOOKED_AT)
    except EventError:  # reading the file for its events says so
        return


def guessed_events(sources: Sequence[StreamSource], options: StreamOptions) -> list[str]:
    """A line if whole files, or runs of one subject, are events by default."""
    if options.event_by is not None:
        return []
    cuts: dict[str, list[str]] = {}
    for source in sources:
        for path in expand_files(source.files) if source.event_by is None else ():
            by = file_options(path, source, options).event_by
            assert by is not None
            cuts.setdefault(by.kind, []).append(path)
    return [*_whole_files(cuts.get("file", []), options), *_subjects(cuts.get("subject", []))]


def _whole_files(paths: Sequence[str], options: StreamOptions) -> Iterable[str]:
    if paths:
        form = format_of(paths[0], options.format)
        files = f"{paths[0]} is one event" if len(paths) == 1 else f"each of {len(paths)} files is one event"
        how = 'event_by="subject" makes one of each subject, event_by="size:N" of N triples'
        yield f"{files}, as {form.name} has no named graphs ({how})"


def _subjects(paths: Sequence[str]) -> Iterable[str]:
    if paths:
        files = paths[0] if len(paths) == 1 else f"{len(paths)} files"
        yield f'each subject of {files} is one event, as N-Triples has no named graphs (event_by="size:N": N triples)'
