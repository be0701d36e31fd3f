"""Streams as they come: files that grow, folders that get files, standard input.

Each stream is read by a thread of its own; `Followed` merges them. While a stream has something to read, the others
wait for it, so what is already there is merged by time; a stream that is silent holds nobody up.

A file of N-Triples or N-Quads may grow: its last line counts once it is whole. Other files are read once, so they
belong into the folder in one move. The files of a folder follow each other by name, and one is done when the next is
there. It may be removed then; a file that appears in front of those read, and one that goes, becomes shorter or is
replaced while it is read, is an EventError.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import Final, cast

from spaseq.errors import EventError, SpaseqError
from spaseq.events import Seen
from spaseq.events.growing import Watched
from spaseq.events.reorder import SingleReorderer
from spaseq.rdf.assemble import assemble
from spaseq.rdf.files import STDIN, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.order import described
from spaseq.rdf.statements import parse_statements
from spaseq.rdf.streams import StreamSource, file_options, settle
from spaseq.rdf.terms import Terms

__all__ = ["Followed"]

_CHUNK: Final = 1 << 16
_AHEAD: Final = 10_000
"""Events that a stream may be read ahead of the others."""


class Followed:
    """The events of `sources`, in order of time, as they come; None for every `poll` seconds in which none does.

    With time from arrival an event has the time of the clock (ns since the epoch) when it comes out here; `now` is that
    clock when something came out last, and never goes back. Else events are put in order within the lateness, over all
    streams, and what is later is an EventError or dropped and counted.
    `options` are as settled for all files there are at the start. Ends when all streams have ended, which only standard
    input and compressed files do; `stop` ends it too.
    """

    def __init__(self, sources: Sequence[StreamSource], options: StreamOptions, *, poll: float = 0.2) -> None:
        there = [replace(source, files=_there(source.files)) for source in sources]
        self.options: StreamOptions = settle(options, there)
        self._poll = poll
        self._stopped = threading.Event()
        self._news = threading.Event()
        self._readers = [_Reader(source, self.options, poll, self._stopped, self._news) for source in sources]
        self._late = Counters()
        self.now = 0

    @property
    def counters(self) -> Counters:
        """What became of the input so far."""
        total = Counters()
        for counters in (self._late, *(reader.counters for reader in self._readers)):
            total.add(counters)
        return total

    @property
    def seen(self) -> Seen:
        """How many events of each stream there were so far."""
        found = Seen()
        for reader in self._readers:
            if reader.counters.events:
                found.add(reader.stream, reader.counters.events)
        return found

    def stop(self) -> None:
        """Lets the readers end; they are not waited for."""
        self._stopped.set()

    def __iter__(self) -> Iterator[GraphEvent | None]:
        for reader in self._readers:
            reader.start()
        try:
            if self.options.time == ARRIVAL:
                yield from self._by_clock()
            else:
                yield from self._by_time()
        finally:
            self.stop()

    def _by_clock(self) -> Iterator[GraphEvent | None]:
        for event in self._merged():
            self.now = max(self.now, time.time_ns())
            yield None if event is None else replace(event, time=self.now)

    def _by_time(self) -> Iterator[GraphEvent | None]:
        order = SingleReorderer(self.options, described)
        for event in self._merged():
            if event is None:
                yield None
            else:
                yield from order.push(event.time, event)
                self._late.late += order.take_dropped()
        yield from order.due(last=True)

    def _merged(self) -> Iterator[GraphEvent | None]:
        while True:
            silent = [reader.silent for reader in self._readers]  # asked before the queues are emptied
            for reader in self._readers:
                reader.take()
            waiting = [reader for reader in self._readers if reader.held]
            if all(reader.held or quiet for reader, quiet in zip(self._readers, silent, strict=True)):
                if waiting:
                    yield min(waiting, key=lambda reader: reader.held[0].time).held.popleft()
                    continue
                if self._stopped.is_set() or all(reader.ended for reader in self._readers):
                    return
                yield None
            self._news.wait(self._poll)
            self._news.clear()


class _Reader(threading.Thread):
    """Reads one stream. `silent`: there is nothing to read right now, and all that was read is in the queue."""

    def __init__(
        self,
        source: StreamSource,
        options: StreamOptions,
        poll: float,
        stopped: threading.Event,
        news: threading.Event,
    ) -> None:
        super().__init__(name=f"stream {source.iri}", daemon=True)
        self.counters = Counters()
        self.held: deque[GraphEvent] = deque()
        self.silent = False
        self.ended = False
        self.stream = source.iri
        self._source = source
        self._options = options
        self._poll = poll
        self._stopped = stopped
        self._news = news
        self._begun: set[str] = set()  # of the files that are there
        self._queue: queue.Queue[GraphEvent | Exception] = queue.Queue(_AHEAD)

    def take(self) -> None:
        """Moves what has been read to `held`; raises what went wrong behind it."""
        while len(self.held) < _AHEAD:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return
            if isinstance(item, Exception):
                if self.held:
                    self._queue.queue.appendleft(item)  # first what came before it
                    return
                raise item
            self.held.append(item)

    def run(self) -> None:
        try:
            self._read()
        except Exception as error:  # whatever it is, it is raised where the events are taken
            self._put(error)
        finally:
            self.ended = self.silent = True
            self._news.set()

    def _read(self) -> None:
        terms, count = Terms(), 0
        for path in self._paths():
            own = file_options(path, self._source, self._options)
            name = "<stdin>" if path == STDIN else path
            form = format_of(path, self._options.format)
            statements = parse_statements(
                self._chunks(path, form.lines),
                form,
                path,
                terms=terms,
                counters=self.counters,
                malformed=self._options.malformed,
                empty_graphs=own.by_graph,
            )
            for event in assemble(
                statements, own, stream=self._source.iri, source=name, counters=self.counters, first=count
            ):
                count += 1
                self._put(event)

    def _put(self, item: GraphEvent | Exception) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=self._poll)
            except queue.Full:
                continue
            self._news.set()
            return

    def _wait(self) -> None:
        self.silent = True
        self._news.set()
        self._stopped.wait(self._poll)

    # -- files

    def _paths(self) -> Iterator[str]:
        """The files, one after another; where one is a folder, those that it has and gets."""
        last: dict[Path, str] = {}  # of each folder the name read last
        while not self._stopped.is_set():
            path = self._next()
            if path is not None:
                folder, name = Path(path).parent, Path(path).name
                if name < last.get(folder, "") and folder in self._folders:
                    raise EventError(
                        f"the file appeared in front of {last[folder]}, which has been read: nothing was read of it",
                        source=path,
                        hint="the files of a folder are read in the order of their names: name a new one behind them",
                    )
                self._begun.add(path)
                last[folder] = name
                yield path
            elif not any(Path(file).is_dir() for file in self._source.files):
                return
            else:
                self._wait()

    def _next(self) -> str | None:
        """The first file that has not been begun."""
        there = _there(self._source.files)
        self._begun &= set(there)
        return next((path for path in there if path not in self._begun), None)

    @property
    def _folders(self) -> frozenset[Path]:
        return frozenset(Path(file) for file in self._source.files if Path(file).is_dir())

    def _chunks(self, path: str, lines: bool) -> Iterator[bytes]:
        if path == STDIN:
            while not self._stopped.is_set():
                self.silent = True  # until something comes, which cannot be foretold
                self._news.set()
                piece = cast(BufferedReader, sys.stdin.buffer).read1(_CHUNK)
                self.silent = False
                if not piece:
                    return
                yield piece
        elif not lines or path.endswith((".gz", ".zst")):
            self.silent = False
            yield from byte_chunks(path)
        else:
            yield from self._growing(path)

    def _growing(self, path: str) -> Iterator[bytes]:
        try:
            with open(path, "rb") as file:
                watched = Watched(path, file)
                while not self._stopped.is_set():
                    piece = file.read(_CHUNK)
                    if not piece and not Path(path).exists() and Path(path).parent in self._folders:
                        return  # it was removed when all of it had been read
                    watched.check(piece)
                    if piece:
                        self.silent = False
                        yield piece
                    elif self._next() is not None:  # so nothing more is written to this one
                        return
                    else:
                        self._wait()
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
