"""Named streams from files to batches: what `spaseq.rdf.streams` does with events, with columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from spaseq.core.errors import EventError
from spaseq.core.events.ahead import Ahead
from spaseq.rdf.columns.dictionary import RESERVED, Dictionary, key_given
from spaseq.rdf.columns.drafts import Drafting
from spaseq.rdf.columns.model import BatchLimits, GraphBatch
from spaseq.rdf.columns.ordering import Ordering
from spaseq.rdf.columns.parts import Part, parts_of
from spaseq.rdf.columns.scanner import Scanner, whole_lines
from spaseq.rdf.files import STDIN, Format, byte_chunks, expand_files, format_of, readable
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.streams import StreamSource, check_names, file_options, read_stream, settle

__all__ = ["ColumnFiles", "by_columns", "collected", "may_read_ahead", "open_batches", "read_batches", "stages"]

_CUT: Final = ("graph", "subject", "size")
_LIMITS: Final = BatchLimits()
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
    """For each of `sources`, its name and its batches in order of time; and the options as settled (as `open_streams`).

    `wanted`: IRIs of predicates; triples of others are counted as read and are not in the batches (an event that has
    lost all of them still is). None: all triples, as events that are shown must have.

    Errors as of `open_streams`: what cannot be used before this returns, what is wrong in a file when it is reached,
    after the batches of what comes before it.
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
    """The batches of one stream in order of time; `options` are settled for all streams. Lines of N-Triples and N-Quads
    are read by kernels, from the `chunks` of each path, with `ahead` in parts that several threads can read at once; a
    stream with a file that is one document goes event by event, and `wanted`, `chunks` and `ahead` are not heeded."""
    paths = expand_files(source.files)
    if all(by_columns(path, source, options) for path in paths):
        files = ColumnFiles(source, options, counters, wanted, limits, ahead=ahead)
        return (batch for path in paths for batch in files.read(path, chunks(path), last=path is paths[-1]))
    events = read_stream(source.iri, source.files, options, counters, event_by=source.event_by)
    return collected(events, 1 if STDIN in paths else limits.triples)


def may_read_ahead(source: StreamSource, options: StreamOptions) -> bool:
    """Whether a thread may read the stream before its batches are asked for, and gains by it: it is files, read by
    kernels. Whoever waits for a pipe cannot be stopped, and the parsers of documents hold Python's lock."""
    paths = expand_files(source.files)
    return all(path != STDIN and Path(path).is_file() and by_columns(path, source, options) for path in paths)


def by_columns(path: str, source: StreamSource, options: StreamOptions) -> bool:
    """Whether kernels read the file: a statement a line, and events that are not whole files."""
    by = file_options(path, source, options).event_by
    return format_of(path, options.format).lines and by is not None and by.kind in _CUT


def collected(events: Iterator[GraphEvent], triples: int) -> Iterator[GraphBatch]:
    """Batches of about `triples` triples of one source each."""
    held: list[GraphEvent] = []
    count = 0
    failure = None
    while True:
        try:
            event = next(events, None)
        except EventError as error:
            event, failure = None, error
        if held and (event is None or event.source != held[0].source):
            yield GraphBatch.of(held)
            held, count = [], 0
        if event is None:
            break
        held.append(event)
        count += len(event.triples) + 1
        if count >= triples:
            yield GraphBatch.of(held)
            held, count = [], 0
    if failure is not None:
        raise failure


def stages(
    scope: str, options: StreamOptions, counters: Counters, wanted: Collection[str] | None, *, ordered: bool = True
) -> tuple[Scanner, Drafting, Ordering]:
    """What a stream's bytes pass: made into rows, into events, into batches in order of time (as of `Ordering`).

    `scope` tells its blank nodes from those of others; of the triples only those with a predicate of `wanted` are kept,
    all by default.
    """
    needed = None if wanted is None or RESERVED & set(wanted) else list(dict.fromkeys(wanted))
    times = [] if options.time in (None, ARRIVAL) or options.time in (needed or ()) else [options.time]
    keys = None if needed is None else [key_given(iri) for iri in [*needed, *times]]
    scanner = Scanner(Dictionary(keys), counters, options.malformed)
    drafting = Drafting(scanner, counters)
    kept = None if needed is None else len(needed)
    return scanner, drafting, Ordering(scope, options, scanner, drafting, counters, kept, ordered=ordered)


class ColumnFiles:
    """The files of one stream, one after another, as batches that kernels make of their lines.

    `ordered`: as of `Ordering`; the other arguments are those of `read_batches`.
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
        self._scanner, self._drafting, self._ordering = stages(source.iri, options, counters, wanted, ordered=ordered)

    def read(
        self, path: str, chunks: Iterable[bytes], *, last: bool, has_more: Callable[[], bool] | None = None
    ) -> Iterator[GraphBatch]:
        """The batches of the next file. `last`: no other follows, so nothing has to wait for its order.

        `has_more`: whether another chunk, or the end, can be read at once; by default always from a file, and from a
        pipe if something stands in it. Before it is waited for, what has been read becomes a batch.
        """
        scanner, drafting, ordering = self._scanner, self._drafting, self._ordering
        more = partial(_has_more, path) if has_more is None else has_more
        drafting.begin_file("<stdin>" if path == STDIN else path, file_options(path, self._source, self._options))
        form = format_of(path, self._options.format)
        blocks = scanner.read(chunks, form, path) if self._ahead is None else self._joined(chunks, form, path)
        ended = False
        while not ended:
            failure = None
            try:
                ended = next(blocks, True)
            except EventError as error:
                ended, failure = True, error
            if not ended and not self._is_time(more):
                continue
            limits = self._limits_for(scanner.count - drafting.rows)
            problem = drafting.feed() or failure or (drafting.end_file() if ended else None)
            made, late = ordering.batches(limits, at_end=ended and last and problem is None)
            yield from made
            if late or problem:
                raise late or problem or AssertionError

    def _joined(self, chunks: Iterable[bytes], form: Format, path: str) -> Iterator[bool]:
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

    def _limits_for(self, fresh: int) -> BatchLimits:
        """The limits where a batch is made of `fresh` rows: each costs the terms that there are. With parts of a file
        these go with their part."""
        if self._ahead is not None:
            return BatchLimits(_PARTS * self._limits.triples, _PARTS * self._limits.text)
        return replace(self._limits, triples=min(self._limits.triples, max(_TERMS, 8 * fresh)))

    def _is_time(self, has_more: Callable[[], bool]) -> bool:
        """Whether enough has been read for a batch, or nothing more can be read at once."""
        scanner, drafting, limits = self._scanner, self._drafting, self._limits
        fresh = scanner.count - drafting.rows
        if self._ahead is not None:
            return fresh >= drafting.rows // 2
        if fresh >= max(limits.triples, drafting.rows // 2) or scanner.dictionary.is_full(sys.maxsize, limits.text):
            return True
        return fresh > 0 and not has_more()


def _has_more(path: str) -> bool:
    """Whether there is something to read now, or the end: always in a file, never in a pipe that has a name."""
    return readable(sys.stdin.buffer) if path == STDIN else Path(path).is_file()
