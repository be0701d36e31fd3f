"""Streams as they come: files that grow, folders that get files, standard input.

Each stream is read by a thread of its own, as columns: input that can be read at once becomes a batch. `Followed`
merges them. While a stream has something to read, the others wait for it, so input already there is merged by time; a
silent stream does not hold up the others.

A file of N-Triples or N-Quads may grow: its last line counts once it is whole. Other files are read once, so they
belong into the folder in one move. The files of a folder follow each other by name, and one is done when the next is
there. It may be removed then; a file that appears in front of those read, and one that goes, becomes shorter or is
replaced while it is read, is an EventError.
"""

from __future__ import annotations

import heapq
import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import Final, Literal, cast

import numpy as np

from spaseq.core.errors import EventError, OptionError, SpaseqError
from spaseq.core.events import Seen
from spaseq.core.events.growing import LATE_BY_CLOCK, PAUSE, InTurn, Watched, readable, time_by_clock
from spaseq.core.events.reorder import NEVER
from spaseq.core.integers import in_order
from spaseq.rdf.columns.arrivals import ArrivedBatches
from spaseq.rdf.columns.model import BatchLimits, GraphBatch
from spaseq.rdf.files import COMPRESSED, STDIN, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.streams import StreamSource, settle

_CHUNK: Final = 1 << 18
_AHEAD: Final = 2
"""Batches that a stream may be read ahead of the others."""
_LIMITS: Final = BatchLimits(1 << 13)
_MOMENT: Final = 0.005
"""Seconds to wait for a pipe that nothing waits for."""


class Followed:
    """The events of `sources`, in order of time, as they come: `batches` in columns, or one by one by iterating.

    None stands for every `poll` seconds in which nothing comes. With time from arrival, an event gets the clock's time
    (ns since the epoch) when it comes out here. `now` is the clock at the last such moment, and never goes back.
    Otherwise events are put in order within the lateness, over all streams; a later one is an EventError or dropped and
    counted. With a `clock` (ns), while nothing comes, `now` is that of the machine, so much behind it, and the events
    before it come out. An event that gets no statement for half of that time has ended. `there`: the files at the
    start, for all of which `options` are settled. Ends when all streams have ended, which only standard input and
    compressed files do; `stop` ends it too.
    """

    def __init__(
        self, sources: Sequence[StreamSource], options: StreamOptions, *, poll: float = 0.2, clock: int | None = None
    ) -> None:
        self.there: list[StreamSource] = [replace(source, files=_there(source.files)) for source in sources]
        self.options: StreamOptions = settle(options, self.there)
        if clock is not None:
            poll = min(poll, PAUSE)
            if self.options.time == ARRIVAL:
                raise OptionError("the clock goes on by itself where it gives the times", "leave --clock out")
        self._poll = poll
        self.clock: int | None = clock
        self._stopped = threading.Event()
        self._news = threading.Condition()
        pause = None if clock is None else clock / 2e9
        self._readers = [_Reader(source, self.options, poll, self._stopped, self._news, pause) for source in sources]
        self._late = Counters()
        self._order = ArrivedBatches(self.options)
        self.now = 0

    @property
    def counters(self) -> Counters:
        """The counts of the input so far."""
        total = Counters()
        for counters in (self._late, *(reader.counters for reader in self._readers)):
            total.add(counters)
        return total

    @property
    def seen(self) -> Seen:
        """The number of events of each stream so far."""
        found = Seen()
        for reader in self._readers:
            if reader.counters.events:
                found.add(reader.stream, reader.counters.events)
        return found

    def rest(self) -> list[GraphBatch]:
        """The events that wait for others, within the lateness, in order of time; none when it has ended."""
        return self._order.close()

    def stop(self) -> None:
        """Lets the readers end; they are not waited for."""
        self._stopped.set()
        with self._news:
            self._news.notify_all()

    def __iter__(self) -> Iterator[GraphEvent | None]:
        for batches in self.batches():
            if batches is None:
                yield None
            else:
                events = (map(batch.event, range(len(batch))) for batch in batches)
                yield from heapq.merge(*events, key=attrgetter("time"))

    def batches(self, wanted: Collection[str] | None = None) -> Iterator[list[GraphBatch] | None]:
        """The events that have come and are in order, as batches, each in order of time. None is earlier than any that
        came out before. Those of one stream keep the order in which they came.

        `wanted`: IRIs of the predicates whose triples are needed, as of `open_batches`; None: all.
        """
        for reader in self._readers:
            reader.wanted = wanted
            reader.start()
        try:
            if self.options.time == ARRIVAL:
                yield from self._by_clock()
            else:
                yield from self._by_time()
        finally:
            self.stop()

    def _by_clock(self) -> Iterator[list[GraphBatch] | None]:
        for arrived in self._arrived():
            self.now = max(self.now, time.time_ns())
            if arrived is None:
                yield None
            else:
                # a nanosecond apart, so that events of several streams keep their order
                ranks = np.empty(sum(map(len, arrived)), np.int64)
                ranks[_merge(arrived)] = np.arange(len(ranks))
                ends = np.cumsum([len(batch) for batch in arrived])
                times = np.split(self.now + ranks, ends[:-1])
                self.now += len(ranks) - 1
                yield [replace(batch, times=own) for batch, own in zip(arrived, times, strict=True)]

    def _by_time(self) -> Iterator[list[GraphBatch] | None]:
        order = self._order
        for arrived in self._arrived():
            if arrived is None:
                if self.clock is not None and order.high > NEVER and self._is_idle():
                    self.now = max(self.now, time_by_clock(self.clock, order.high, "their time"))
                    if due := order.advance(self.now, *LATE_BY_CLOCK):
                        yield due
                yield None
                continue
            found, error = order.push(arrived, _merge(arrived) if len(self._readers) > 1 else None)
            self._late.late += order.take_dropped()
            if found:
                yield found
            if error is not None:
                raise error
        if found := order.close():
            yield found

    def _arrived(self) -> Iterator[list[GraphBatch] | None]:
        """The events read of the streams, in their order, up to the position of a stream that has more to read."""
        while True:
            with self._news:
                arrived = self._take()
                if not arrived:
                    if self._stopped.is_set() or all(reader.ended for reader in self._readers):
                        return
                    if self._news.wait(self._poll):
                        continue
            yield arrived or None

    def _is_idle(self) -> bool:
        """True if no stream has given anything that has not been taken."""
        with self._news:
            return not any(reader.pending or reader.held for reader in self._readers)

    def _take(self) -> list[GraphBatch]:
        readers = self._readers
        for reader in readers:
            if reader.error is not None and not reader.held:
                raise reader.error
        if not any(reader.held for reader in readers) or any(not (r.held or r.silent) for r in readers):
            return []
        self._news.notify_all()  # there will be room
        if len(readers) == 1 or all(reader.silent for reader in readers):
            return [batch for reader in readers for batch in reader.take(None)]
        # what a stream that has more to read said last is the furthest that the others may go
        until, last = min((reader.reached, place) for place, reader in enumerate(readers) if not reader.silent)
        return [
            batch
            for place, reader in enumerate(readers)
            for batch in reader.take(until, "right" if place <= last else "left")
        ]


def _merge(batches: Sequence[GraphBatch]) -> np.ndarray:
    """The order in which the events of these batches, given by stream, come out if of the streams' next events always
    the earliest does: int64."""
    times = [np.zeros(0, np.int64)]
    for place, batch in enumerate(batches):
        same = place > 0 and batches[place - 1].stream == batch.stream
        times.append(_highs(batch.times, int(times[-1][-1]) if same else None))
    return in_order(np.concatenate(times))


def _highs(times: np.ndarray, before: int | None = None) -> np.ndarray:
    """The greatest time up to each event, that of another one `before` them included: in a merge an event that goes
    back comes out right behind."""
    highs: np.ndarray = np.maximum.accumulate(times)
    return highs if before is None else np.maximum(highs, before)


class _Reader(threading.Thread):
    """Reads one stream. `silent`: there is nothing to read right now, and all that was read is in `held`. `pending`:
    what was read last may not be there yet.

    The data of both threads (`held`, `silent`, `ended`, `error`) is read and changed within `news`.
    """

    def __init__(
        self,
        source: StreamSource,
        options: StreamOptions,
        poll: float,
        stopped: threading.Event,
        news: threading.Condition,
        pause: float | None,
    ) -> None:
        super().__init__(name=f"stream {source.iri}", daemon=True)
        self.counters = Counters()
        self.held: deque[GraphBatch] = deque()
        self.silent = False
        self.ended = False
        self.error: Exception | None = None
        self.stream = source.iri
        self.wanted: Collection[str] | None = None
        self._source = source
        self._options = options
        self._poll = poll
        self._stopped = stopped
        self._news = news
        self._files = InTurn(source.files, _there)
        self._file: BufferedReader | None = None  # a file that grows, or a pipe
        self._grows = False
        self._pause = pause
        self._read_at = 0.0
        self._paused = False
        self.pending = True

    @property
    def reached(self) -> int:
        """The greatest time of the held events, which exist."""
        return max(int(batch.times.max()) for batch in self.held)

    def take(self, until: int | None, side: Literal["left", "right"] = "right") -> list[GraphBatch]:
        """Takes the held events, up to the first behind the time `until`; "left": up to the first at that time."""
        taken, high = [], None
        while self.held:
            batch = self.held.popleft()
            if until is not None:
                highs = _highs(batch.times, high)
                high = int(highs[-1])
                count = int(np.searchsorted(highs, until, side))
                if count < len(batch):
                    self.held.appendleft(batch.select(np.arange(count, len(batch))))
                    if count:
                        taken.append(batch.select(np.arange(count)))
                    break
            taken.append(batch)
        return taken

    def run(self) -> None:
        try:
            self._read()
        except Exception as error:  # whatever it is, it is raised where the events are taken
            self.error = error
        finally:
            with self._news:
                self.ended = self.silent = True
                self.pending = False
                self._news.notify_all()

    def _read(self) -> None:
        from spaseq.rdf.columns.reader import ColumnFiles  # loads the kernels

        files = ColumnFiles(self._source, self._options, self.counters, self.wanted, _LIMITS, ordered=False)
        for path in self._paths():
            lines = format_of(path, self._options.format).lines
            chunks = self._chunks(path, lines)
            for batch in files.read(path, chunks, last=False, has_more=self._has_more, has_paused=self._has_paused):
                self._put(batch)

    def _put(self, batch: GraphBatch) -> None:
        with self._news:
            self._news.wait_for(lambda: len(self.held) < _AHEAD or self._stopped.is_set())
            self.held.append(batch)
            self._news.notify_all()

    def _say(self, *, silent: bool) -> None:
        if silent != self.silent:
            with self._news:
                self.silent = silent
                self._news.notify_all()

    def _wait(self) -> None:
        self._say(silent=True)
        self._stopped.wait(self._poll)

    def _has_more(self) -> bool:
        """True if the open file has something to read now, or has ended."""
        file = self._file
        if file is None:
            return True
        if self._grows:
            return os.fstat(file.fileno()).st_size > file.tell()
        # a moment, while nobody asks for what has been read: then the next batch is more than a piece
        return readable(file, _MOMENT if self.held else 0.0)

    def _has_paused(self) -> bool:
        """True right behind an empty chunk."""
        paused, self._paused = self._paused, False
        return paused

    def _pauses(self) -> Iterator[bytes]:
        """An empty chunk, once nothing has come for the pause that ends an event."""
        if self._pause is not None and time.monotonic() - self._read_at >= self._pause:
            self._paused, self._read_at = True, math.inf
            yield b""
            self.pending = False

    # -- files

    def _paths(self) -> Iterator[str]:
        """The files, one after another; for a folder, those that it has and gets."""
        while not self._stopped.is_set():
            path = self._files.upcoming()
            if path is not None:
                self._files.begin(path)
                self.pending = True
                yield path
            elif not self._files.goes_on:
                return
            else:
                self.pending = False
                self._wait()

    def _chunks(self, path: str, lines: bool) -> Iterator[bytes]:
        try:
            if path == STDIN:
                self._file = cast(BufferedReader, sys.stdin.buffer)
                yield from self._pipe(self._file, lines)
            elif not lines or path.endswith(COMPRESSED):
                self._say(silent=False)
                yield from byte_chunks(path)
            else:
                yield from self._growing(path)
        finally:
            self._file, self._grows = None, False

    def _pipe(self, file: BufferedReader, lines: bool) -> Iterator[bytes]:
        while not self._stopped.is_set():
            self._say(silent=not readable(file))
            if lines and self._pause is not None and not readable(file, self._poll):
                yield from self._pauses()
                continue
            piece = file.read1(_CHUNK)
            self._say(silent=False)
            self._read_at, self.pending = time.monotonic(), True
            if not piece:
                return
            yield piece

    def _is_followed_by_another(self, watched: Watched) -> bool:
        """True if there is a file behind the one that is read, to which nothing more is written then."""
        try:
            return self._files.upcoming() is not None
        except EventError:
            watched.check()  # the error is of this file, if it was taken away meanwhile
            raise

    def _growing(self, path: str) -> Iterator[bytes]:
        try:
            with open(path, "rb") as file:
                self._file = file
                watched = Watched(path, file)
                self._grows = S_ISREG(os.fstat(file.fileno()).st_mode)
                over = False
                while not self._stopped.is_set():
                    if not self._grows:
                        self._say(silent=not readable(file))
                    piece = file.read1(_CHUNK)
                    if not piece and (over or self._files.is_removed(path)):
                        return  # if it was removed, all of it had been read
                    watched.check(piece)
                    if piece:
                        self._say(silent=False)
                        self._read_at, self.pending = time.monotonic(), True
                        yield piece
                    elif self._is_followed_by_another(watched):
                        over = True  # nothing more is written to it: what came meanwhile is read
                    else:
                        self._wait()
                        yield from self._pauses()
        except OSError as error:
            raise EventError(f"cannot read: {error.strerror or error}", source=path) from error


def _there(files: Sequence[str]) -> tuple[str, ...]:
    """The files that paths, globs and folders stand for now. Of folders those whose format is known, by name."""
    found: list[str] = []
    for path in files:
        if path != STDIN and Path(path).is_dir():
            inside = sorted(str(file) for file in Path(path).iterdir() if file.is_file())
            found += [file for file in inside if _is_stream(file)]
        else:
            found += expand_files([path])
    return tuple(found)


def _is_stream(path: str) -> bool:
    try:
        format_of(path)
    except SpaseqError:
        return False
    return True
