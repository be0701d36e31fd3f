"""Named streams from files to batches: what `spaseq.rdf.streams` does with events, with columns."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from spaseq.errors import EventError
from spaseq.rdf.columns.dictionary import RESERVED, Dictionary
from spaseq.rdf.columns.drafts import Drafting
from spaseq.rdf.columns.model import BatchLimits, GraphBatch
from spaseq.rdf.columns.ordering import Ordering
from spaseq.rdf.columns.scanner import Scanner
from spaseq.rdf.files import STDIN, byte_chunks, expand_files, format_of
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import ARRIVAL, StreamOptions
from spaseq.rdf.streams import StreamSource, check_names, file_options, read_stream, settle

__all__ = ["may_read_ahead", "open_batches", "read_batches", "stages"]

_CUT: Final = ("graph", "subject", "size")
_LIMITS: Final = BatchLimits()


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
) -> Iterator[GraphBatch]:
    """The batches of one stream in order of time; `options` are settled for all streams. Lines of N-Triples and N-Quads
    are read by kernels, from the `chunks` of each path; a stream with a file that is one document goes event by event,
    and `wanted` and `chunks` are not heeded."""
    paths = expand_files(source.files)
    if all(_by_columns(path, source, options) for path in paths):
        return _columns(source, paths, options, counters, wanted, limits, chunks)
    events = read_stream(source.iri, source.files, options, counters, event_by=source.event_by)
    return _collected(events, 1 if STDIN in paths else limits.triples)


def may_read_ahead(source: StreamSource, options: StreamOptions) -> bool:
    """Whether a thread may read the stream before its batches are asked for, and gains by it: it is files, read by
    kernels. Whoever waits for a pipe cannot be stopped, and the parsers of documents hold Python's lock."""
    paths = expand_files(source.files)
    return all(path != STDIN and Path(path).is_file() and _by_columns(path, source, options) for path in paths)


def _by_columns(path: str, source: StreamSource, options: StreamOptions) -> bool:
    by = file_options(path, source, options).event_by
    return format_of(path, options.format).lines and by is not None and by.kind in _CUT


def _collected(events: Iterator[GraphEvent], triples: int) -> Iterator[GraphBatch]:
    """Batches of about `triples` triples of one source each."""
    held: list[GraphEvent] = []
    count = 0
    failure = None
    while True:
        try:
            event = next(events, None)
        except EventError as error:
            event, failure = None, error
        if held and (event is None or event.source != held[0].source or count >= triples):
            yield GraphBatch.of(held)
            held, count = [], 0
        if event is None:
            break
        held.append(event)
        count += len(event.triples) + 1
    if failure is not None:
        raise failure


def stages(
    scope: str, options: StreamOptions, counters: Counters, wanted: Collection[str] | None
) -> tuple[Scanner, Drafting, Ordering]:
    """What a stream's bytes pass: made into rows, into events, into batches in order of time.

    `scope` tells its blank nodes from those of others; of the triples only those with a predicate of `wanted` are kept,
    all by default.
    """
    needed = None if wanted is None or RESERVED & set(wanted) else list(dict.fromkeys(wanted))
    times = [] if options.time in (None, ARRIVAL) or options.time in (needed or ()) else [options.time]
    keys = None if needed is None else [f"<{iri}>".encode() for iri in [*needed, *times]]
    scanner = Scanner(Dictionary(keys), counters, options.malformed)
    drafting = Drafting(scanner, counters)
    kept = None if needed is None else len(needed)
    return scanner, drafting, Ordering(scope, options, scanner, drafting, counters, kept)


def _columns(
    source: StreamSource,
    paths: Sequence[str],
    options: StreamOptions,
    counters: Counters,
    wanted: Collection[str] | None,
    limits: BatchLimits,
    chunks: Callable[[str], Iterator[bytes]],
) -> Iterator[GraphBatch]:
    scanner, drafting, ordering = stages(source.iri, options, counters, wanted)
    for path in paths:
        drafting.begin_file("<stdin>" if path == STDIN else path, file_options(path, source, options))
        blocks = scanner.read(chunks(path), format_of(path, options.format), path)
        last = False
        while not last:
            failure = None
            try:
                last = next(blocks, True)
            except EventError as error:
                last, failure = True, error
            if not last and not _is_time(scanner, drafting, limits, path):
                continue
            problem = drafting.feed() or failure or (drafting.end_file() if last else None)
            made, late = ordering.batches(limits, at_end=last and path is paths[-1] and problem is None)
            yield from made
            if late or problem:
                raise late or problem or AssertionError


def _is_time(scanner: Scanner, drafting: Drafting, limits: BatchLimits, path: str) -> bool:
    """Whether enough has been read for a batch, or nothing more can be read at once from a pipe."""
    fresh = scanner.count - drafting.rows
    if fresh >= max(limits.triples, drafting.rows // 2) or scanner.dictionary.is_full(sys.maxsize, limits.text):
        return True
    return fresh > 0 and not _has_more(path)


def _has_more(path: str) -> bool:
    """Whether there is something to read now, or the end: always in a file, never in a pipe that has a name."""
    if path != STDIN:
        return Path(path).is_file()
    try:
        return bool(select.select([sys.stdin.buffer], [], [], 0)[0])
    except (OSError, ValueError):  # not a file that can be waited for
        return True
