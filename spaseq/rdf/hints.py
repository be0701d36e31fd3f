"""What a reader of streams assumed because nobody said otherwise, for whoever wonders about a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rdflib import XSD, Literal

from spaseq.errors import EventError
from spaseq.events.time import format_duration
from spaseq.rdf.files import STDIN, expand_files, format_of
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.statements import Statement, read_statements
from spaseq.rdf.streams import StreamSource, file_options

__all__ = ["guessed_events", "guessed_times", "sampled_predicates"]

_LOOKED_AT: Final = 500
"""Statements of a file that are looked at for times."""
_DATES: Final = (XSD.dateTime, XSD.dateTimeStamp)


def guessed_times(sources: Sequence[StreamSource], options: StreamOptions, *, dated: bool = False) -> list[str]:
    """A line if events have the times of their arrival and nobody said so; `options` as settled, after a choice that
    left `time` open. Looks into files for predicates that hold dates; with `dated` there is no line without one."""
    if options.time != ARRIVAL:
        return []
    said = f"the events are given no times: they count as {format_duration(options.interval)} apart, in their order"
    dates = Counter[str]()
    for source in sources:
        dates.update(_dates(source, options))
    if dates:
        ((predicate, _),) = dates.most_common(1)
        return [f"{said}; --time {predicate} takes those that are there"]
    return [] if dated else [f"{said} (--time PREDICATE names what holds them; --time-from arrival if that is meant)"]


def sampled_predicates(source: StreamSource, options: StreamOptions) -> frozenset[str]:
    """The predicates of the first statements of a stream; none of standard input."""
    return frozenset(str(statement[1]) for statement in _sample(source, options))


def _dates(source: StreamSource, options: StreamOptions) -> Iterator[str]:
    """The predicates of the first statements that have a date as their object."""
    for _, predicate, value, _, _ in _sample(source, options):
        if isinstance(value, Literal) and value.datatype in _DATES:
            yield str(predicate)


def _sample(source: StreamSource, options: StreamOptions) -> Iterator[Statement]:
    try:
        for path in expand_files(source.files)[:1]:
            if path != STDIN:
                yield from islice(read_statements(path, format_of(path, options.format), malformed="drop"), _LOOKED_AT)
    except EventError:  # whoever reads the file for its events says so
        return


def guessed_events(sources: Sequence[StreamSource], options: StreamOptions) -> list[str]:
    """A line if whole files are events because nobody said what makes one."""
    whole = [
        path
        for source in sources
        for path in expand_files(source.files)
        if path != STDIN and str(file_options(path, source, options).event_by) == "file"
    ]
    if not whole:
        return []
    files = f"{whole[0]} is one event" if len(whole) == 1 else f"each of {len(whole)} files is one event"
    return [
        f"{files}, as Turtle has no named graphs: --event-by subject makes one of each subject, size:N of N triples"
    ]
