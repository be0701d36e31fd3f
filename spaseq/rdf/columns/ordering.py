"""Drafts in order of time, as batches: `spaseq.rdf.order.in_order` over columns, for one stream."""

from __future__ import annotations

import zlib
from typing import Final

import numpy as np

from spaseq.errors import EventError
from spaseq.events.time import time_behind
from spaseq.rdf.columns.dictionary import Dictionary
from spaseq.rdf.columns.drafts import Drafting
from spaseq.rdf.columns.kernels import gathering, layout
from spaseq.rdf.columns.kernels import scanning as k
from spaseq.rdf.columns.model import BatchLimits, GraphBatch, TermTable
from spaseq.rdf.columns.scanner import Scanner
from spaseq.rdf.model import Counters, GraphEvent
from spaseq.rdf.options import StreamOptions
from spaseq.rdf.order import goes_back

__all__ = ["Ordering"]

_EVERYTHING: Final = (0, 1 << 31)


class Ordering:
    """Puts what `drafting` has ready in order of time and makes batches of it.

    `needed`: how many of the dictionary's wanted predicates a batch has the triples of; None: all triples.
    """

    __slots__ = ("_counters", "_dictionary", "_drafting", "_held", "_latest", "_needed", "_options", "_place",
                 "_scanner", "_stream")  # fmt: skip

    def __init__(
        self,
        stream: str,
        options: StreamOptions,
        scanner: Scanner,
        drafting: Drafting,
        counters: Counters,
        needed: int | None,
    ) -> None:
        self._stream = stream
        self._options = options
        self._scanner = scanner
        self._dictionary: Dictionary = scanner.dictionary
        self._drafting = drafting
        self._counters = counters
        self._needed = _EVERYTHING if needed is None else (k.WANTED, k.WANTED + needed)
        self._held = 0
        self._latest: int | None = None
        self._place = ("", 0)

    def batches(self, limits: BatchLimits, *, at_end: bool) -> tuple[list[GraphBatch], EventError | None]:
        """The events that nothing can come before any more, all of them if the stream is `at_end`; and the error of the
        first event that goes back in time."""
        drafting = self._drafting
        front, error = self._see(self._held, drafting.front)
        drafts = drafting.drafts
        ready = np.flatnonzero(drafts.size[:front] >= 0)
        times = drafts.time[ready]
        if at_end and error is None:
            released = np.ones(len(ready), dtype=np.bool_)
        else:
            released = times <= (self._latest or 0) - self._options.lateness
        order = ready[released]
        if len(order) > 1 and (np.diff(times[released]) < 0).any():
            order = order[np.argsort(times[released], kind="stable")]
        made = [self._batch(part) for part in self._by_file(order)]
        self._held = int(len(ready) - len(order))
        kept = ready[~released]
        drafting.keep(kept, restart=self._dictionary.is_full(limits.triples, limits.text))
        return made, error

    def _see(self, begin: int, end: int) -> tuple[int, EventError | None]:
        """Check that the drafts `begin:end` are not late. Those dropped get a negative count. How many drafts are good,
        from 0, and the error of the next one."""
        drafts, counters, lateness = self._drafting.drafts, self._counters, self._options.lateness
        times = drafts.time[begin:end]
        error = None
        if len(times):
            first = times[0] if self._latest is None else self._latest
            most = np.maximum.accumulate(np.maximum(times, first))
            late = np.flatnonzero(time_behind(most, times) > lateness)
            if len(late) and self._options.late != "drop":
                end = begin + int(late[0]) + 1
                self._note_latest(begin, end)
                error = self._goes_back(end - 1)
            else:
                drafts.size[begin + late] = -1
                counters.late += len(late)
                self._note_latest(begin, end)
        counters.events += end - begin
        counters.reopened += int(np.count_nonzero(drafts.repeated[begin:end]))
        return end - (error is not None), error

    def _note_latest(self, begin: int, end: int) -> None:
        """The greatest time so far, and the event that was the first to have it."""
        drafts = self._drafting.drafts
        at = begin + int(np.argmax(drafts.time[begin:end]))
        if self._latest is None or drafts.time[at] > self._latest:
            self._latest = int(drafts.time[at])
            self._place = self._drafting.files[drafts.file[at]], int(drafts.record[at])

    def _goes_back(self, draft: int) -> EventError:
        drafts = self._drafting.drafts
        source = self._drafting.files[drafts.file[draft]]
        event = GraphEvent(self._stream, int(drafts.time[draft]), (), None, source, int(drafts.record[draft]))
        latest = GraphEvent(self._stream, self._latest or 0, (), None, *self._place)
        return goes_back(event, latest, self._options.lateness)

    def _by_file(self, order: np.ndarray) -> list[np.ndarray]:
        """`order` cut where another file begins."""
        if not len(order):
            return []
        return np.split(order, np.flatnonzero(np.diff(self._drafting.drafts.file[order])) + 1)

    def _batch(self, order: np.ndarray) -> GraphBatch:
        """The batch of the drafts `order`, all of one file."""
        drafts, table, named = self._drafting.drafts, self._dictionary.table, len(self._dictionary)
        source = self._drafting.files[drafts.file[order[0]]]
        counts = drafts.size[order]
        triples = np.empty((int(counts.sum()), 3), dtype=np.int32)
        offsets = np.empty(len(order) + 1, dtype=np.int64)
        graphs = np.empty(len(order), dtype=np.int32)
        blank = bool((table.kind[:named] == layout.BLANK).any())
        own = np.empty((2 * len(triples) + len(order) if blank else 0, 2), dtype=np.int64)
        blank_of, blank_in = (np.full(named if blank else 0, layout.NIL, dtype=np.int32) for _ in range(2))
        slots = np.full(2 << int(counts.max()).bit_length(), layout.NIL, dtype=np.int64)
        rows = self._scanner.rows
        blanks = gathering.gather(order, rows, drafts, table.kind, self._needed, blank_of, blank_in, named, slots,
                                  triples, offsets, graphs, own)  # fmt: skip
        scope = f"e{zlib.crc32(f'{self._stream} {source}'.encode()):08x}n"
        return GraphBatch(
            self._stream,
            source,
            triples[: offsets[-1]],
            offsets,
            drafts.time[order],
            graphs,
            drafts.record[order],
            self._terms(scope, own[:blanks].copy()),
        )

    def _terms(self, scope: str, own: np.ndarray) -> TermTable:
        """The terms so far, with the events' own blank nodes behind them. Nothing is copied where there are none: the
        dictionary only ever adds."""
        count, table = len(self._dictionary), self._dictionary.table

        def column(values: np.ndarray, more: int) -> np.ndarray:
            if not len(own):
                return values[:count]
            return np.concatenate((values[:count], np.full(len(own), more, dtype=values.dtype)))

        return TermTable(
            table.text.view(np.uint8),
            column(table.start, layout.NIL),
            column(table.length, 0),
            column(table.kind, layout.BLANK),
            column(table.lexical, layout.NIL),
            column(table.datatype, layout.NIL),
            own,
            scope,
            self._dictionary.finder(),
            self._dictionary.made,
        )
