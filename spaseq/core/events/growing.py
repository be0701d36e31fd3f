"""Files of text that grow, read as lines are added; folders that get files; standard input as it comes; and several of
these as one stream."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from glob import has_magic
from io import BufferedReader
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any, Final, cast

import numpy as np
import pyarrow as pa

from spaseq.core.errors import EventError, OptionError
from spaseq.core.events.ahead import Crew
from spaseq.core.events.options import Duration, length_of
from spaseq.core.events.time import format_time
from spaseq.core.events.timestamps import Part
from spaseq.core.watch import check

_HEAD: Final = 4096
_CHUNK: Final = 1 << 20
PAUSE: Final = 0.02
"""Seconds between two looks at a file while the clock goes on."""
_LEAST: Final = 50_000_000
_TEXTS: Final = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, slots=True)
class GrowingFile:
    """A CSV, TSV or JSON Lines file that is written to while it is read, a folder that gets files, or `-` for standard
    input.

    The present contents are read first, then every `poll` seconds the new ones; a line counts once it is whole. A file
    has no end, standard input ends when it is closed. The files of a folder are read in the order of their names
    (`InTurn`); those that are no text are read once, as they appear. Raises `OptionError` if the format cannot be read
    as it grows.

    `clock` (ns): while nothing comes, the time of the stream goes on by the machine's clock, so much behind it. None:
    only events say the time. `apart`: a thread of its own reads it, which must end if it waits. `idle`: set while the
    reader waits, so what came has been given on.
    """

    path: str
    poll: float = 0.2
    clock: int | None = None
    apart: bool = False
    idle: threading.Event = field(default_factory=threading.Event, compare=False, repr=False)

    def __post_init__(self) -> None:
        if has_magic(self.path) and not os.path.exists(self.path):
            raise OptionError(
                f"{self.path}: a glob is not followed", "name the folder: its files are read as they come"
            )
        if self.path != "-" and not self.is_folder and not self.path.lower().endswith(_TEXTS):
            raise OptionError(
                f"{self.path}: only text can be read as it grows",
                "a .csv, .tsv or .jsonl file that is not compressed, - for standard input, or a folder into which "
                "whole files are moved",
            )

    @property
    def is_folder(self) -> bool:
        """True if files are moved into it."""
        return os.path.isdir(self.path)

    @property
    def name(self) -> str:
        """The name in errors."""
        return "<stdin>" if self.path == "-" else self.path

    @property
    def pause(self) -> float:
        """The seconds between two looks at what has come."""
        return self.poll if self.clock is None else min(self.poll, PAUSE)

    def wait(self) -> None:
        """Wait for that long, because nothing has come."""
        self.idle.set()
        check()
        time.sleep(self.pause)


def readable(file: Any, seconds: float = 0.0) -> bool:
    """True if input from a pipe, or its end, can be read within so many seconds. True for files that never wait."""
    try:
        return bool(select.select([file], [], [], seconds)[0])
    except (OSError, TypeError, ValueError):
        return True


class Watched:
    """A file that is read as it grows: the number of bytes read, and a check that it is still the same file."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._head = b""
        self.read: int = 0

    def check(self, piece: bytes = b"") -> None:
        """Count a piece that was read, and check the file; to be called for each piece. Raises `EventError` if the file
        is another one, or no longer holds the bytes already read. New content would otherwise be lost, or read from its
        middle."""
        self._head += piece[: max(0, _HEAD - self.read)]
        self.read += len(piece)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            raise self._problem("the file is gone") from None
        begun = os.fstat(self._file.fileno())
        if not S_ISREG(begun.st_mode):  # a pipe that has a name
            return
        if (there.st_dev, there.st_ino) != (begun.st_dev, begun.st_ino):
            raise self._problem("the file was replaced by another")
        if there.st_size < self.read:
            raise self._problem(f"the file became shorter, it has {there.st_size:,} bytes")
        if os.pread(self._file.fileno(), len(self._head), 0) != self._head:
            raise self._problem("the file was written anew")

    def _problem(self, what: str) -> EventError:
        return EventError(
            f"{what} while it was followed: {self.read:,} bytes of it had been read",
            source=self._path,
            hint="a file that is followed only grows, at its end; what comes next goes to its end, or to another file",
        )


class InTurn:
    """Files one after another, each once: those that the `given` paths and folders have, and those that folders get.

    The files of a folder are read in the order of their names. One is done once the next is there, and may be removed
    then. `list_files` gives the files that stand for paths and folders now, in that order.
    """

    def __init__(self, given: Sequence[str], list_files: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self._given = given
        self._list_files = list_files
        self._begun: set[str] = set()  # of the files that are there
        self._last: dict[Path, str] = {}  # of each folder the name read last

    def upcoming(self) -> str | None:
        """The first file that has not been begun."""
        there = self._list_files(self._given)
        self._begun &= set(there)
        return next((path for path in there if path not in self._begun), None)

    def begin(self, path: str) -> None:
        """Take an `upcoming` file. Raises `EventError` if it appeared in front of one that was read."""
        folder, name = Path(path).parent, Path(path).name
        if name < self._last.get(folder, "") and folder in self._folders:
            raise EventError(
                f"the file appeared in front of {self._last[folder]}, which has been read: nothing was read of it",
                source=path,
                hint="the files of a folder are read in the order of their names: name a new one behind them",
            )
        self._begun.add(path)
        self._last[folder] = name

    def is_removed(self, path: str) -> bool:
        """True if a file was taken out of its folder."""
        return not Path(path).exists() and Path(path).parent in self._folders

    @property
    def goes_on(self) -> bool:
        """True if there may be more files: some path is a folder."""
        return bool(self._folders)

    @property
    def _folders(self) -> frozenset[Path]:
        return frozenset(Path(file) for file in self._given if Path(file).is_dir())


class GrowingBytes:
    """The bytes of a growing file in whole lines; see `spaseq.core.events.blocks.read_some` for `live`.

    `path` is that of the file, and `files` those of its folder, if `source` is one: then the file has an end.
    """

    live: Final = True

    def __init__(self, source: GrowingFile, path: str, file: IO[bytes], files: InTurn | None = None) -> None:
        self._source = source
        self._file = file
        self._path = path
        self._files = files
        self._rest = b""
        self._over = path == "-"
        self._watched = None if path == "-" else Watched(path, file)

    def read(self, size: int = -1) -> bytes:
        """The lines that have come, however long they are; waits for one. Empty at the end of standard input, and of a
        file of a folder."""
        while True:
            if self._source.clock is not None or self._source.apart:  # a thread reads, which must end where it waits
                check()
                if not readable(self._file):
                    self._source.idle.set()
                    if not readable(self._file, self._source.pause):
                        continue
            piece = cast(BufferedReader, self._file).read1(_CHUNK)
            if not piece and self._files is not None and self._files.is_removed(self._path):
                self._over = True  # when all of it had been read
            elif self._watched is not None:
                self._watched.check(piece)
            if piece:
                self._source.idle.clear()
            self._rest += piece
            cut = self._rest.rfind(b"\n") + 1 if piece else 0
            if cut or (not piece and self._over):
                lines, self._rest = (self._rest[:cut], self._rest[cut:]) if cut else (self._rest, b"")
                return lines
            if not piece and self._files is not None and self._files.upcoming() is not None:
                self._over = True  # nothing is written to it any more: what came meanwhile is read, and it ends
            elif not piece:
                self._source.wait()


@dataclass(frozen=True, slots=True)
class Arrived:
    """Some events of the stream at `place`, as they came. `file` and `records` (int64) are their places there."""

    part: Part
    place: int
    file: str
    records: np.ndarray

    @property
    def highs(self) -> np.ndarray:
        """The greatest time up to each event, int64: in a merge one that goes back comes out right behind."""
        found: np.ndarray = np.maximum.accumulate(self.part.times)
        return found

    def between(self, start: int, end: int) -> Arrived:
        """Some of them."""
        return Arrived(self.part.between(start, end), self.place, self.file, self.records[start:end])


class Arriving:
    """The events of several streams that go on, as they come: lists of those that may be merged now.

    None stands for every `pause` (s) in which nothing comes. A stream with something to read holds up the others: they
    give their events up to the greatest time that it has come to. A silent stream does not. `crew` reads the streams,
    `idle` is set while one is silent, and `made` gives the events of a table of the stream at a place. Ends when all
    streams have ended.
    """

    def __init__(
        self,
        crew: Crew[tuple[str, pa.Table], None],
        idle: Sequence[threading.Event],
        pause: float,
        made: Callable[[int, str, pa.Table], Arrived | None],
    ) -> None:
        self._crew = crew
        self._idle = idle
        self._pause = pause
        self._made = made
        self._waiting: dict[int, Arrived] = {}
        self._open = set(range(len(idle)))

    def __iter__(self) -> Iterator[list[Arrived] | None]:
        while self._open or self._waiting:
            check()
            if not all([self._is_settled(place) for place in sorted(self._open)]):
                self._crew.wait(PAUSE)  # what one of them reads may come before what is there
            elif self._waiting:
                yield self._take()
            elif self._open:
                self._crew.wait(self._pause)
                yield None

    def _is_settled(self, place: int) -> bool:
        """True if an event of the stream is there, or none will come now."""
        while place in self._open and place not in self._waiting:
            silent = self._idle[place].is_set()
            if not self._crew.is_ready(place, 0.0):  # in this order: what is read now comes behind
                return silent
            item = self._crew.take(place)
            if item is None:
                self._open.discard(place)
            elif (arrived := self._made(place, *item[0])) is not None:
                self._waiting[place] = arrived
        return True

    def _take(self) -> list[Arrived]:
        """The events that none of a stream with more to read can precede."""
        reached = [(int(self._waiting[place].highs[-1]), place) for place in self._waiting if self._has_more(place)]
        if not reached:
            taken, self._waiting = self._waiting, {}
            return [taken[place] for place in sorted(taken)]
        until, last = min(reached)
        found = []
        for place in sorted(self._waiting):
            one = self._waiting.pop(place)
            cut = int(np.searchsorted(one.highs, until, "right" if place <= last else "left"))
            if cut:
                found.append(one.between(0, cut))
            if cut < len(one.part):
                self._waiting[place] = one.between(cut, len(one.part))
        return found

    def _has_more(self, place: int) -> bool:
        silent = self._idle[place].is_set()
        return place in self._open and (self._crew.is_ready(place, 0.0) or not silent)


_RUNNING: Final = 946_684_800 * 10**9
"""The year 2000: times before it are of no clock that runs."""


def clock_length(given: Duration) -> int:
    """The nanoseconds that a clock is behind. `OptionError` for less than events take to be seen."""
    clock = length_of("clock", given)
    if clock < _LEAST:
        raise OptionError(f"a clock {given} behind: events would be late as they come", f"{_LEAST // 10**6}ms or more")
    return clock


LATE_BY_CLOCK: Final = ("goes back in time, behind the clock", "a longer --clock waits for it")
"""Of an event before the time that a silent stream has come to: what it does, and what helps."""


def time_by_clock(behind: int, last: int, column: str | None) -> int:
    """The time (ns since 1970) that a silent stream has come to: that of this machine, `behind` earlier.

    `last` is the greatest time of its events, `column` that of their times. Raises `OptionError` if these are not times
    of a clock.
    """
    check_running(last, column)
    return time.time_ns() - behind


def check_running(last: int, column: str | None) -> None:
    """Raises `OptionError` if events are not timed by a clock that runs. `last` is the greatest time of theirs (ns),
    `column` that of their times; None if they are counted."""
    if column is None:
        hint = "--time COLUMN names the column of times; events that are counted have no clock"
        raise OptionError("the events have no times for the clock to go on from", hint)
    if last < _RUNNING:
        hint = "they are dates, or numbers since 1970 in the unit of --time-unit; leave --clock out for others"
        raise OptionError(f"the clock goes on, and {column} is not of it: {format_time(last)}", hint)
