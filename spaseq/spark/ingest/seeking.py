"""Files whose events are in order of time, as logs are: where in the bytes a time begins, found by looking at a few.

A file is taken for one in order without being read. Whoever reads a part of it sees whether that part is; parts that
meet are read by the same rule, so if each part is in order and holds what it should, then so is the whole file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import BinaryIO, Final

from spaseq.core.errors import EventError
from spaseq.core.files.places import file_size, open_file, whole_name
from spaseq.rdf import (
    ARRIVAL,
    Counters,
    StreamOptions,
    StreamSource,
    expand_files,
    file_options,
    format_of,
    has_lines,
    merged_files,
)
from spaseq.spark.ingest.boundaries import first_boundary, is_empty, last_boundary
from spaseq.spark.ingest.parts import part_of

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
        if not size or (self.turn is not None and time <= self.turn[0]):
            return 0
        if self.turn is not None and time > self.turn[1]:
            return size
        with self._opened() as file:
            return self._place_in(file, time, early)

    def _place_in(self, file: BinaryIO, time: int, early: bool) -> int:
        size = self.size
        if self.turn is None and time <= self._time_in(file, 0):
            return 0
        low, high = 0, size  # an event before `time` begins at `low`, and none does behind `high`
        while low < high:
            middle = (low + high) // 2
            place = first_boundary(file, middle, size)
            if place < size and self._time_in(file, place) < time:
                low = place
            else:
                high = middle
        behind = first_boundary(file, low, size)
        while behind < size and self._time_in(file, behind) < time:  # it is not seen from `middle`, among blank nodes
            low, behind = behind, first_boundary(file, behind, size)
        return low if early and self._times_in(file, low)[1] >= time else behind

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """The file, for all places that a search looks at: elsewhere, to open it again costs requests for each."""
        try:
            with open_file(self.path) as file:
                yield file
        except OSError as error:
            raise EventError(f"cannot read: {error.strerror or error}", source=self.path) from error

    def time_at(self, place: int) -> int:
        """The time of the event that begins at byte `place`. EventError where there is none."""
        with self._opened() as file:
            return self._time_in(file, place)

    def _time_in(self, file: BinaryIO, place: int) -> int:
        return next(self._times_from(file, place))

    def _times_in(self, file: BinaryIO, place: int) -> tuple[int, int]:
        """The times of the first and of the last event there."""
        times = list(self._times_from(file, place))
        return times[0], times[-1]

    def _times_from(self, file: BinaryIO, place: int) -> Iterator[int]:
        """Those of the events between byte `place` and the next place where one is seen to begin: at least one."""
        from spaseq.rdf.columns.reader import ColumnFiles  # loads the kernels

        chunks = part_of(file, self.path, place, first_boundary(file, place, self.size))
        files = ColumnFiles(self.source, self.options, Counters(), (), ordered=False)
        empty = True
        for batch in files.read(self.path, chunks, last=True):
            yield from batch.times.tolist()
            empty = False
        if empty:
            raise EventError(f"no event begins at byte {place:,}", source=self.path)

    def with_turn(self) -> TimedFile:
        """The file with its first time and its last, if it has events. EventError where one cannot be read."""
        if not self.size:
            return self
        with self._opened() as file:
            first = self._time_in(file, 0)
            return replace(self, turn=(first, self._times_in(file, last_boundary(file, 0, self.size))[1]))

    def samples(self, count: int) -> Iterator[tuple[int, int]]:
        """The times of about `count` events at equal distances, each with the bytes up to the next."""
        size = self.size
        step = max(1, size // max(1, count))
        with self._opened() as file:
            for start in range(0, size, step):
                place = first_boundary(file, start, size) if start else 0
                if place < size:
                    yield self._time_in(file, place), step


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
