"""Named streams from files, and quads of tables, to batches of graph events, in order of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Literal

import numpy as np

from spaseq.core.errors import EventError
from spaseq.core.events.ahead import Ahead
from spaseq.core.events.growing import readable
from spaseq.core.files.places import is_elsewhere
from spaseq.rdf.columns.dictionary import Dictionary, key_given, wanted_keys
from spaseq.rdf.columns.drafts import Drafting, no_drafts
from spaseq.rdf.columns.kernels import layout
from spaseq.rdf.columns.model import BatchLimits, GraphBatch
from spaseq.rdf.columns.ordering import Ordering, gathered_batch, wanted_range
from spaseq.rdf.columns.parts import Part, parts_of
from spaseq.rdf.columns.scanner import Scanner, whole_lines
from spaseq.rdf.files import STDIN, Format, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.statements import Document, unmark
from spaseq.rdf.streams import StreamSource, check_names, file_options, settle

_LIMITS: Final = BatchLimits()
_QUADS: Final = format_of("quads.nq")
_PARTS: Final = 4
"""Parts of whose terms a dictionary may be made."""
_LINE: Final = 128
"""Bytes of a line, about."""
_TERMS: Final = 1 << 11
"""Terms that a dictionary may have whatever is read at once."""


def open_batches(
    sources: Sequence[StreamSource],
    options: StreamOptions,
    counters: Counters | None = None,
    *,
    wanted: Collection[str] | None = None,
    limits: BatchLimits = _LIMITS,
) -> tuple[list[tuple[str, Iterator[GraphBatch]]], StreamOptions]:
    """For each of `sources`, in FROM order, its name and its batches in order of time; and the settled options.

    `wanted`: IRIs of predicates; triples of others are counted as read and are not in the batches (an event that has
    lost all of them still is). None: all triples, as events that are shown must have.

    OptionError if two streams have one name or the clocks of the streams cannot be compared, EventError for a missing
    file: both before this returns. EventError with file and line when an error in a file is reached, after the batches
    before it.
    """
    check_names(sources)
    counters = counters if counters is not None else Counters()
    settled = settle(options, sources)
    return [(source.iri, read_batches(source, settled, counters, wanted, limits)) for source in sources], settled


def read_batches(
    source: StreamSource,
    options: StreamOptions,
    counters: Counters,
    wanted: Collection[str] | None = None,
    limits: BatchLimits = _LIMITS,
    chunks: Callable[[str], Iterator[bytes]] = byte_chunks,
    ahead: Ahead | None = None,
) -> Iterator[GraphBatch]:
    """The batches of one stream in order of time; `options` are settled for all streams.

    `chunks` gives the bytes of each path. With `ahead`, files of N-Triples and N-Quads are read in parts, of which
    several threads can read some at once.
    """
    paths = expand_files(source.files)
    files = ColumnFiles(source, options, counters, wanted, limits, ahead=ahead)
    return (batch for path in paths for batch in files.read(path, chunks(path), last=path is paths[-1]))


def may_read_ahead(source: StreamSource, options: StreamOptions) -> bool:
    """True if a thread may read the stream before its batches are asked for, and gains by it: it is files of lines.

    It may not if the caller has a function of late events, which is called in the caller's thread. A thread that waits
    for a pipe cannot be stopped, and the parsers of documents hold Python's lock.
    """
    paths = expand_files(source.files)
    return options.on_late is None and all(
        path != STDIN and Path(path).is_file() and format_of(path, options.format).lines for path in paths
    )


class ColumnFiles:
    """The files of one stream, one after another, as batches. Bytes become rows, rows become events, and events become
    batches in order of time (as of `Ordering`, also for `ordered`).

    The IRI of `source` sets its blank nodes apart from those of others. Only triples with a predicate of `wanted` are
    kept, by default all. The other arguments are those of `read_batches`.
    """

    def __init__(
        self,
        source: StreamSource,
        options: StreamOptions,
        counters: Counters,
        wanted: Collection[str] | None,
        limits: BatchLimits = _LIMITS,
        *,
        ordered: bool = True,
        ahead: Ahead | None = None,
    ) -> None:
        self._source = source
        self._ahead = ahead
        self._counters = counters
        self._options = options
        self._limits = limits
        needed = wanted_keys(wanted)
        times = [] if options.time in (None, ARRIVAL) else [key_given(options.time)]
        keys = None if needed is None else list(dict.fromkeys((*needed, *times)))
        kept = None if needed is None else len(needed)
        self._scanner = Scanner(Dictionary(keys), counters, options.malformed)
        self._drafting = Drafting(self._scanner, counters)
        self._ordering = Ordering(source.iri, options, self._scanner, self._drafting, counters, kept, ordered=ordered)

    def read(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        last: bool,
        line: int = 1,
        has_more: Callable[[], bool] | None = None,
        has_paused: Callable[[], bool] | None = None,
    ) -> Iterator[GraphBatch]:
        """The batches of the next file, or of a part of one that begins with the line number `line`. `last`: no other
        follows, so nothing has to wait for its order.

        `has_more`: true if another chunk, or the end, can be read at once; by default always of a file, and of a pipe
        if something stands in it. Before a wait, the input read becomes a batch. `has_paused`: true if the last chunk,
        which is empty, says that nothing has come for so long that the last event has ended; by default never.
        """
        drafting = self._drafting
        more = partial(_has_more, path) if has_more is None else has_more
        own = file_options(path, self._source, self._options)
        drafting.begin_file("<stdin>" if path == STDIN else path, own)
        form = format_of(path, self._options.format)
        by_parts = self._ahead is not None and form.lines
        if by_parts:
            blocks = self._join(chunks, form, path)
        elif form.lines:
            blocks = self._scanner.read(chunks, form, path, line)
        else:
            document = Document(unmark(chunks), form, path, by_graph=own.by_graph, has_more=more)
            blocks = self._scanner.read_document(document)
        ended = False
        while not ended:
            failure, waits = None, False
            try:
                waits = next(blocks)
            except StopIteration:
                ended = True
            except EventError as error:
                ended, failure = True, error
            paused = has_paused is not None and has_paused()
            if not (ended or waits or paused or self._is_time(more, by_parts)):
                continue
            limits = self._limits_for(self._scanner.count - drafting.rows, by_parts)
            problem = drafting.feed() or failure
            if problem is None and ended:
                problem = drafting.end_file()
            elif problem is None and paused and drafting.is_open:
                problem = drafting.end_events()
            made, late = self._ordering.batches(limits, at_end=ended and last and problem is None)
            yield from made
            if late or problem:
                raise late or problem or AssertionError

    def _join(self, chunks: Iterable[bytes], form: Format, path: str) -> Iterator[bool]:
        """As `Scanner.read`, a part of the file at a time."""
        assert self._ahead is not None
        drafting, line = self._drafting, 1
        room = [(0, 0)]
        read = partial(Part, lambda: self._scanner.empty(*room[-1]), form)
        for part in self._ahead(read, parts_of(whole_lines(chunks, path), _LINE * self._limits.triples)):
            try:
                line = part.finish(form, path, line, self._counters)
            finally:
                room[-1] = part.scanner.dictionary.room_used  # PERF: what grows is copied, 5% of reading
                drafting.join(part.scanner)
            yield False

    def _limits_for(self, fresh: int, by_parts: bool) -> BatchLimits:
        """The limits for a batch of `fresh` rows. A batch costs O(all terms); a part's terms go with the part."""
        if by_parts:
            return BatchLimits(_PARTS * self._limits.triples, _PARTS * self._limits.text)
        return replace(self._limits, triples=min(self._limits.triples, max(_TERMS, 8 * fresh)))

    def _is_time(self, has_more: Callable[[], bool], by_parts: bool) -> bool:
        """True if enough has been read for a batch, or nothing more can be read at once."""
        scanner, drafting, limits = self._scanner, self._drafting, self._limits
        fresh = scanner.count - drafting.rows
        if by_parts:
            return fresh >= drafting.rows // 2
        if fresh >= max(limits.triples, drafting.rows // 2) or scanner.dictionary.is_full(sys.maxsize, limits.text):
            return True
        return fresh > 0 and not has_more()


class GivenQuads:
    """The quads of lines of N-Quads, of which the caller knows the times, and where each event begins.

    `lines`: int64 (n,), the number of the line of each quad that was read, from 0. `named`: bool (n,), True if it is in
    a named graph. With `malformed` "drop", lines that cannot be read are left out and counted, else they are an
    EventError about `source`, with the line as `record`. Of `wanted` predicates alone batches have triples; None: all.
    """

    def __init__(
        self,
        text: bytes,
        source: str,
        counters: Counters,
        wanted: Collection[str] | None = None,
        malformed: Literal["error", "drop"] = "error",
    ) -> None:
        keys = wanted_keys(wanted)
        self._needed = wanted_range(None if keys is None else len(keys))
        self._scanner = Scanner(Dictionary(keys), counters, malformed)
        self._source = source
        for _ in self._scanner.read([text], _QUADS, source):
            pass
        count = self._scanner.count
        self._rows = self._scanner.rows[:count]
        self.lines: np.ndarray = self._scanner.lines[:count] - 1
        self.named: np.ndarray = self._rows[:, 3] != layout.NIL

    def keep(self, quads: np.ndarray) -> None:
        """Leave out all quads but these, int64, ascending."""
        self._rows, self.lines, self.named = self._rows[quads], self.lines[quads], self.named[quads]

    def batch(
        self, stream: str, scope: str, first: np.ndarray, size: np.ndarray, times: np.ndarray, numbers: np.ndarray,
        records: np.ndarray,
    ) -> GraphBatch:  # fmt: skip
        """The batch of some events: event i has the `size[i]` quads from `first[i]` on (int64), and happened at
        `times[i]` (int64, ns). It is named by that of its first quad. Its blank nodes are its own, their labels made of
        `scope` and `numbers[i]` (int64). O(quads)."""
        names = self._rows[first, 3]
        drafts = no_drafts()._replace(first=first, size=size, time=times, number=numbers, record=records, name=names)
        order = np.arange(len(first))
        dictionary = self._scanner.dictionary
        return gathered_batch(stream, self._source, scope, dictionary, self._rows, drafts, order, self._needed)


def _has_more(path: str) -> bool:
    """True if there is something to read now, or the end: always in a file, never in a pipe that has a name."""
    return readable(sys.stdin.buffer) if path == STDIN else is_elsewhere(path) or Path(path).is_file()
