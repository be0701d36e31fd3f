"""Files whose events are in order of time, as logs are: where in the bytes a time begins, found by looking at a few.

A file is taken for one in order without being read. Whoever reads a part of it sees whether that part is; parts that
meet are read by the same rule, so if each part is in order and holds what it should, then so is the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from spaseq.errors import EventError
from spaseq.events.places import file_size, open_file, whole_name
from spaseq.rdf import (
    ARRIVAL,
    GraphEvent,
    StreamOptions,
    StreamSource,
    assemble,
    expand_files,
    file_options,
    format_of,
    has_lines,
    merged_files,
    parse_statements,
)
from spaseq.spark.ingest.boundaries import first_boundary, is_empty, last_boundary
from spaseq.spark.ingest.parts import part_chunks

__all__ = ["TimedFile", "first_times", "timed_files"]

_BY: Final = {True: "graph", False: "subject"}


@dataclass(frozen=True, slots=True)
class TimedFile:
    """A file of the stream `source`, which has no other, and its `size` in bytes when it was planned to be read, 0 for
    one of blank lines and comments. `options` are settled.

    `chain`: the number of the files that it follows in time, one after another. `turn`: its first time and its last, if
    they have been looked at.
    """

    source: StreamSource
    options: StreamOptions
    size: int
    chain: int
    turn: tuple[int, int] | None = None

    @property
    def path(self) -> str:
        return self.source.files[0]

    def place_of(self, time: int, *, early: bool = False) -> int:
        """Where the first event begins whose time is not before `time`; the size if there is none. Looks at
        O(log size) events. EventError where one cannot be read.

        Where a cut does not fall between any two events (`boundaries`), some of the first ones may lie in front of
        that place; with `early` it is in front of all of them, and some that are before `time` may lie behind it.
        """
        size = self.size
        if not size or time <= (self.time_at(0) if self.turn is None else self.turn[0]):
            return 0
        if self.turn is not None and time > self.turn[1]:
            return size
        low, high = 0, size  # an event before `time` begins at `low`, and none does behind `high`
        with open_file(self.path) as file:
            while low < high:
                middle = (low + high) // 2
                place = first_boundary(file, middle, size)
                if place < size and self.time_at(place) < time:
                    low = place
                else:
                    high = middle
            behind = first_boundary(file, low, size)
            while behind < size and self.time_at(behind) < time:  # it is not seen from `middle`, among blank nodes
                low, behind = behind, first_boundary(file, behind, size)
        return low if early and self.times_at(low)[1] >= time else behind

    def time_at(self, place: int) -> int:
        """The time of the event that begins at byte `place`. EventError where there is none."""
        return next(self._events_at(place)).time

    def times_at(self, place: int) -> tuple[int, int]:
        """The times of the first and of the last event between byte `place`, where one begins, and the next place where
        one is seen to begin. EventError where one cannot be read."""
        first = last = self.time_at(place)
        for event in self._events_at(place):
            last = event.time
        return first, last

    def _events_at(self, place: int) -> Iterator[GraphEvent]:
        options = file_options(self.path, self.source, self.options)
        with open_file(self.path) as file:
            end = first_boundary(file, place, self.size)
        form = format_of(self.path, options.format)
        chunks = part_chunks(self.path, place, end)
        statements = parse_statements(chunks, form, self.path, malformed=options.malformed)
        events = assemble(statements, options, stream=self.source.iri, source=self.path)
        first = next(events, None)
        if first is None:
            raise EventError(f"no event begins at byte {place:,}", source=self.path)
        yield first
        yield from events

    def with_turn(self) -> TimedFile:
        """The file with its first time and its last, if it has events. EventError where one cannot be read."""
        if not self.size:
            return self
        with open_file(self.path) as file:
            last = last_boundary(file, 0, self.size)
        return replace(self, turn=(self.time_at(0), self.times_at(last)[1]))

    def samples(self, count: int) -> Iterator[tuple[int, int]]:
        """The times of about `count` events at equal distances, each with the bytes up to the next."""
        size = self.size
        step = max(1, size // max(1, count))
        with open_file(self.path) as file:
            for start in range(0, size, step):
                place = first_boundary(file, start, size) if start else 0
                if place < size:
                    yield self.time_at(place), step


def timed_files(sources: Sequence[StreamSource], options: StreamOptions) -> tuple[list[TimedFile], str]:
    """The files of the streams, and why they are not such as can be in order of time; empty where they are.

    `options` are settled. Names are looked at, and the first and the last events of files that the local engine reads
    one after another, as there are so many.
    """
    if options.time == ARRIVAL:
        return [], "times come from arrival, so they depend on all events before"
    found: list[TimedFile] = []
    chains = count()
    for source in sources:
        for part in merged_files(source, options):
            chain, latest = next(chains), None
            paths = expand_files(part.files)
            for path in map(whole_name, paths):
                form, by = format_of(path, options.format), file_options(path, part, options).event_by
                if not has_lines(path, form) or by is None or by.kind != _BY[form.named]:
                    return [], f"{path} is not of lines that are graphs in N-Quads or subjects in N-Triples"
                size = file_size(path)
                with open_file(path) as file:
                    size = 0 if is_empty(file, size) else size
                own = TimedFile(StreamSource(part.iri, (path,), part.event_by), options, size, chain)
                if len(paths) > 1:
                    try:
                        own = own.with_turn()
                    except EventError as error:
                        return [], str(error)
                    if own.turn is not None:
                        if latest is not None and own.turn[0] < latest:
                            return [], f"{path} begins before what is in front of it ends"
                        latest = own.turn[1]
                found.append(own)
    return found, ""


def first_times(files: Sequence[TimedFile], count: int, probes: int) -> list[int]:
    """The first times of `count` parts of about equal bytes, over all files; fewer where times are equal. Looks at
    about `probes` events. EventError where one cannot be read."""
    total = sum(file.size for file in files)
    if not total:
        return []
    found = sorted(sample for file in files for sample in file.samples(-(-probes * file.size // total)))
    every, times, past = sum(weight for _, weight in found) / count, [found[0][0]], 0
    for time, weight in found:
        if past >= every * len(times) and time > times[-1]:
            times.append(time)
        past += weight
    return times
